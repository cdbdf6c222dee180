"""An empty list, as of a folder in which nothing was found, is refused by what was expected in it."""

import numpy as np
import pytest

import obygaze_features as of
import obygaze_models as om
from obygaze_features.store.testing import seal_arrays
from obygaze_models.dataset import load_datasets
from obygaze_models.errors import DatasetError, ModelError, ProtocolError

MOVIES = ("A", "B", "C")


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """A store of four clips of each of three films, and its manifest, in which HN and S take turns."""
    folder = tmp_path_factory.mktemp("labelled")
    movie_of = {f"{movie}-{index}": movie for movie in MOVIES for index in range(4)}
    features = np.random.default_rng(0).normal(size=(len(movie_of), 3)).astype(np.float32)
    store = of.open_store(seal_arrays(folder / "films", movie_of, {"net": {"pooled": features}}))
    levels = ("HN", "S")
    clips = [
        of.Clip(clip_id, movie, level=levels[number % 2])
        for number, (clip_id, movie) in enumerate(movie_of.items())
    ]
    return store, of.Manifest(tuple(clips), folder)


def test_no_store_to_load_is_refused(labelled):
    """Also where every backbone of every store is loaded."""
    _, manifest = labelled
    with pytest.raises(DatasetError, match="no store is given: expected one or more"):
        om.load_dataset([], manifest)
    with pytest.raises(DatasetError, match="no store is given: expected one or more"):
        load_datasets([], manifest)


def test_no_store_to_score_is_refused(labelled, tmp_path):
    store, manifest = labelled
    data = om.load_dataset(store, manifest)
    run = om.evaluate(data, ["linear"], task="hn_s")
    model = om.load_model(om.save_models(run, data, ["linear"], tmp_path)["linear"])
    with pytest.raises(ModelError, match="no store is given: expected one or more"):
        om.predict(model, [])


def test_no_sums_to_join_are_refused():
    with pytest.raises(ModelError, match="no sums are given: expected those of one lab or more"):
        om.join([])


@pytest.mark.parametrize(
    ("seeds", "message"),
    [({"n_seeds": 0}, "n_seeds: expected 1 or more"), ({"seed": -1}, "seed -1: expected 0 or more")],
    ids=["none", "a negative one"],
)
def test_seeds_by_which_nothing_can_be_drawn_are_refused(labelled, seeds, message):
    """The command's options have these limits of their own."""
    data = om.load_dataset(*labelled)
    with pytest.raises(ProtocolError, match=message):
        om.evaluate(data, ["linear"], task="hn_s", **seeds)
