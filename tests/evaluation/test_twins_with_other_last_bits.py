"""`evaluate` warns of a film under two names whose features another card or codec made."""

import numpy as np
import pytest

from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.store.testing import seal_arrays
from tests.command import obygaze


def evaluate_with_twin(folder, capsys, twin_of):
    """Evaluate four films and one that is made of the first; return what is printed beside the table."""
    rng = np.random.default_rng(0)
    films = {name: 2 + rng.normal(size=(12, 24)).astype(np.float32) for name in ("a", "b", "c", "d")}
    films["twin"] = twin_of(films["a"], rng).astype(np.float32)
    clips = []
    for name in films:
        levels = ["S" if number % 2 else "HN" for number in range(12)]
        clips += [Clip(f"{name}-{number}", name, level=level) for number, level in enumerate(levels)]
    movie_of = {clip.clip_id: clip.movie for clip in clips}
    store = seal_arrays(
        folder / "films", movie_of, {"descriptors": {"pooled": np.concatenate([*films.values()])}}
    )
    write_manifest(Manifest(tuple(clips), folder), folder / "m.csv")

    options = ["--task", "hn_s", "--model", "linear", "--out", folder / "run"]
    assert obygaze("evaluate", folder / "m.csv", store, *options) == 0
    return capsys.readouterr().err


@pytest.mark.long
def test_a_film_whose_features_are_those_of_another_film_but_for_rounding_is_warned_of(tmp_path, capsys):
    """The film "twin" has the features of film "a", rounded to half precision, as a card may compute them."""

    def rounded(film, _rng):
        return film.astype(np.float16)

    printed = evaluate_with_twin(tmp_path, capsys, rounded)

    assert "warning: a and twin have nearly equal features in 100% of their clips" in printed
    assert "one film under two names is trained on and tested; leave one out" in printed


@pytest.mark.long
def test_a_film_whose_features_are_exactly_those_of_another_film_is_warned_of_once(tmp_path, capsys):
    """The film "twin" is an exact copy of "a": equal, and so nearly equal, but only the first is said."""

    def copied(film, _rng):
        return film

    printed = evaluate_with_twin(tmp_path, capsys, copied)

    assert printed.count("a and twin have equal features in 100% of their clips") == 1
    assert "nearly equal" not in printed


@pytest.mark.long
def test_a_film_with_similar_shots_is_not_warned_of(tmp_path, capsys):
    """Features of the film "twin" differ from those of "a" by .1 at random: the same set on another day.

    Copies differ far less, by rounding.
    """

    def filmed_again(film, rng):
        return film + 0.1 * rng.normal(size=film.shape)

    printed = evaluate_with_twin(tmp_path, capsys, filmed_again)

    assert "two names" not in printed
