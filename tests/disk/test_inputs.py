"""What the works of `harness.RARE` read can be made; only `benchmarks/calls.py` tries these works."""

import pytest

from .conftest import run_in_runner


@pytest.mark.long
@pytest.mark.nightly
def test_the_inputs_of_commands_that_only_the_benchmark_of_calls_tries_can_be_made(runner, tmp_path):
    """Tests on full disks run some commands; others (`harness.RARE`) only `benchmarks/calls.py` runs.

    No other test would notice that the files which these commands read are no longer made. They are a small
    CLIP network and a corpus to train it on, the manifest and the store of the paper's tables, and a run of
    an evaluation, which needs the films and features that are made first.
    """
    folder = tmp_path.resolve()
    for function in ("make_inputs", "make_films", "make_rare_inputs"):
        run_in_runner(runner, folder, function)

    clip_network = folder / "clip" / "config.json"
    corpus_to_train_it_on = folder / "lsmdc" / "annotations"
    manifest_of_paper = folder / "paper.csv"
    store_of_paper = folder / "paper-1.0.0"
    run_of_evaluation = folder / "run"
    assert clip_network.is_file()
    assert corpus_to_train_it_on.is_dir()
    assert manifest_of_paper.is_file()
    assert store_of_paper.is_dir()
    assert run_of_evaluation.is_dir()
