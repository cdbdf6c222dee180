"""What is written into a folder is not written into one that is called like an address."""

import numpy as np
import pytest

import obygaze_features as of
import obygaze_models as om
from obygaze_features.errors import OutputError
from obygaze_features.extraction import Site, write_job_scripts
from obygaze_features.store.testing import seal_arrays

ADDRESS = "gs://bucket/kept"


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """A run on four clips of each of three films, in which HN and S take turns, and the run's data."""
    folder = tmp_path_factory.mktemp("labelled")
    movie_of = {f"{movie}-{index}": movie for movie in "ABC" for index in range(4)}
    features = np.random.default_rng(0).normal(size=(len(movie_of), 3)).astype(np.float32)
    store = of.open_store(seal_arrays(folder / "films", movie_of, {"net": {"pooled": features}}))
    clips = [
        of.Clip(clip_id, movie, level=("HN", "S")[number % 2])
        for number, (clip_id, movie) in enumerate(movie_of.items())
    ]
    data = om.load_dataset(store, of.Manifest(tuple(clips), folder))
    return om.evaluate(data, ["linear"], task="hn_s"), data


WRITERS = {
    "models": lambda run, data: om.save_models(run, data, ["linear"], ADDRESS),
    "run": lambda run, _data: om.write_run(run, ADDRESS),
    "report": lambda run, _data: om.write_report(om.run_report(run), ADDRESS),
    "job scripts": lambda _run, _data: write_job_scripts(ADDRESS, Site(licence="CC-BY-4.0")),
}


@pytest.mark.parametrize("what", WRITERS)
def test_nothing_is_written_into_a_folder_called_like_an_address(evaluated, tmp_path, monkeypatch, what):
    """It would lie in a folder `gs:` on this machine, where nobody looks for it."""
    monkeypatch.chdir(tmp_path)

    with pytest.raises(OutputError, match=f"^{ADDRESS}: expected a folder on this machine; "):
        WRITERS[what](*evaluated)

    assert not list(tmp_path.iterdir())
