"""What the works of `harness.RARE` read can be made; only `benchmarks/calls.py` tries these works."""

import pytest

from .conftest import run_in_runner


@pytest.mark.long
@pytest.mark.nightly
def test_the_inputs_of_rarely_tried_works_can_be_made(runner, tmp_path):
    """They are a CLIP and a corpus to train it on, and the manifest and store of the paper's tables.

    A run and its model are made besides, of films and features that are made before.
    """
    folder = tmp_path.resolve()
    for function in ("make_inputs", "make_films", "make_rare_inputs"):
        run_in_runner(runner, folder, function)

    assert (folder / "clip" / "config.json").is_file()
    assert (folder / "lsmdc" / "annotations").is_dir()
    assert (folder / "paper.csv").is_file()
    assert (folder / "paper-1.0.0").is_dir()
    assert (folder / "run").is_dir()
