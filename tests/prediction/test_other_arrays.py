"""A model reads one array of a store: what other arrays the store has, or lacks, is no matter to it."""

import numpy as np
import pytest

import obygaze_features as of
import obygaze_models as om
from obygaze_features.store.provenance import same_numerics
from obygaze_features.store.testing import seal_arrays
from obygaze_models.errors import ModelError

FILMS = ("a", "b", "c", "d")


def make_sealed_store(folder, name, arrays):
    """Seal a store of six clips of each of four films, with these arrays of the backbone net."""
    movie_of = {f"{name}-{movie}-{index}": f"{name} {movie}" for movie in FILMS for index in range(6)}
    rng = np.random.default_rng(0)
    values = {
        "pooled": rng.normal(size=(len(movie_of), 5)).astype(np.float32),
        "tokens": rng.normal(size=(len(movie_of), 3, 5)).astype(np.float16),
        "frames": rng.normal(size=(len(movie_of), 2, 5)).astype(np.float32),
    }
    groups = {"net": {array: values[array] for array in arrays}}
    return of.open_store(seal_arrays(folder / name, movie_of, groups))


def trained(folder, store, features):
    """Train a model on a store whose clips are HN and S in turn, and read it from its file."""
    levels = ("HN", "S")
    clips = [
        of.Clip(clip.clip_id, clip.movie, level=levels[number % 2]) for number, clip in enumerate(store.clips)
    ]
    data = om.load_dataset(store, of.Manifest(tuple(clips), folder), features=features)
    run = om.evaluate(data, ["linear"], task="hn_s")
    return om.load_model(om.save_models(run, data, ["linear"], folder / "kept")["linear"])


@pytest.mark.parametrize(
    ("arrays_trained_on", "arrays_asked"),
    [(["pooled", "tokens"], ["pooled"]), (["pooled"], ["pooled", "tokens", "frames"])],
    ids=["a store without tokens", "a store with more"],
)
def test_a_model_of_pooled_vectors_reads_them_whatever_is_beside_them(
    tmp_path, arrays_trained_on, arrays_asked
):
    """A model reads the array "pooled" of a store. It must score a store that has fewer arrays, or more.

    Tokens take most of a store, so that new films are often extracted without them. A store has 24 clips.
    """
    model = trained(tmp_path, make_sealed_store(tmp_path, "trained", arrays_trained_on), "pooled")

    predicted = om.predict(model, make_sealed_store(tmp_path, "asked", arrays_asked))

    assert len(predicted.table) == 24


def test_a_store_without_the_array_that_a_model_reads_is_refused_by_its_name(tmp_path):
    """The message says which arrays there are; it does not say that they were made otherwise."""
    model = trained(tmp_path, make_sealed_store(tmp_path, "trained", ["pooled", "frames"]), "frames")

    with pytest.raises(ModelError, match="has no frames features of net, which the model reads, but pooled"):
        om.predict(model, make_sealed_store(tmp_path, "asked", ["pooled"]))


def test_differences_of_two_extractions_that_matter_to_one_array_leave_out_those_of_other_arrays():
    """Two extractions sample 8 and 16 frames. Their "pooled" is a mean in one, in the other a class token.

    Only the first has an array of tokens. `same_numerics` lists in what extractions differ. For a model that
    reads "pooled" alone, the tokens do not matter, but what "pooled" is and the frames do.
    """
    first = {"arrays": {"pooled": "mean", "tokens": "patches"}, "sampling": {"n": 8}}
    second = {"arrays": {"pooled": "class token"}, "sampling": {"n": 16}}

    assert same_numerics(first, second, array="pooled") == ["arrays.pooled", "sampling.n"]
    assert same_numerics(first, second) == ["arrays.pooled", "arrays.tokens", "sampling.n"]
