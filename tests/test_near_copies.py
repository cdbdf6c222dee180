"""A twin is found: a film under a second name, with features that differ in their last bits.

Twins would let a model see a film of the test among its training films. Films that are only similar are not
found.
"""

import time
from types import SimpleNamespace

import numpy as np
import pytest

from obygaze_models.dataset.near_copies import nearly_equal_films

D = 256
"""Features of a clip."""


def dataset(**features_of_film):
    """Make a dataset of films, each with the features of its clips."""
    X = np.concatenate(list(features_of_film.values())).astype(np.float32)
    movies = np.repeat(list(features_of_film), [len(clips) for clips in features_of_film.values()])
    return SimpleNamespace(parts=(), X=X, movies=movies)


def clips_of_a_film(rng, n_clips=60, n_features=D):
    """Plant the features of a film's clips, which no other film has.

    Five clips in a row are of one shot, and as alike as overlapping windows are.
    """
    of_shots = np.repeat(rng.normal(size=(n_clips // 5, n_features)), 5, axis=0)
    return of_shots + 0.2 * rng.normal(size=of_shots.shape)


def in_bfloat16(features):
    """Cut numbers to the 8 leading bits of bfloat16."""
    bits = np.ascontiguousarray(features, dtype=np.float32).view(np.uint32)
    return (bits & np.uint32(0xFFFF0000)).view(np.float32)


LAST_BITS = {
    "half precision": lambda features, _: features.astype(np.float16),
    "bfloat16": lambda features, _: in_bfloat16(features),
    "a thousandth": lambda features, rng: features * (1 + 1e-3 * rng.normal(size=features.shape)),
    "a hundredth": lambda features, rng: features + 0.01 * rng.normal(size=features.shape),
    "none": lambda features, _: features,
}
"""What changed a film's features -> how."""


@pytest.mark.parametrize(
    ("change", "in_common"),
    [
        *(pytest.param(change, 3.0, id=f"{change}, with much in common") for change in LAST_BITS),
        pytest.param("a hundredth", 0.0, id="a hundredth, centred"),
    ],
)
def test_a_twin_with_other_last_bits_is_found(change, in_common):
    """Of six films, film2 has a twin: the same features, changed a little as by another machine.

    `in_common` is added to all features: those of networks often have much in common, by which films of
    different content look alike too.
    """
    rng = np.random.default_rng(0)
    films = {f"film{number}": clips_of_a_film(rng) + in_common for number in range(6)}
    twin = LAST_BITS[change](films["film2"], rng)

    found = nearly_equal_films(dataset(**films, twin=twin))

    ((first, second, similarity),) = found
    assert first == "film2"
    assert second == "twin"
    assert similarity > 0.9


def test_a_twin_that_has_only_a_part_of_the_film_and_other_clips_is_found():
    """The twin has 50 clips: the last 40 of the 60 of film0, in another order, and 10 clips of its own.

    The features of the 40 are rounded to float16, so that their last bits differ. What is reported is the
    share of the twin's clips that are in film0 too. The other three films share nothing.
    """
    rng = np.random.default_rng(1)
    films = {f"film{number}": clips_of_a_film(rng) for number in range(4)}
    last_40_of_film0 = films["film0"][20:].astype(np.float16)
    twin = np.concatenate([rng.permutation(last_40_of_film0), clips_of_a_film(rng, n_clips=10)])

    ((film, other, share),) = nearly_equal_films(dataset(**films, twin=twin))

    assert (film, other) == ("film0", "twin")
    assert share == pytest.approx(40 / 50)


def test_three_names_of_one_film_are_three_pairs():
    """The films a, b and c have the same features but for a thousandth of noise, and a fourth has others."""
    rng = np.random.default_rng(2)
    film = clips_of_a_film(rng)
    copies = {name: film + 1e-3 * rng.normal(size=film.shape) for name in ("a", "b", "c")}

    found = nearly_equal_films(dataset(**copies, other=clips_of_a_film(rng)))

    names_of_pairs = {(first, second) for first, second, _ in found}
    assert names_of_pairs == {("a", "b"), ("a", "c"), ("b", "c")}


@pytest.mark.parametrize("difference", [0.05, 0.1, 0.3])
def test_films_of_one_series_with_similar_shots_are_no_twins(difference):
    """They have the same sets, faces and framings, shot for shot; what differs is a twentieth or more."""
    rng = np.random.default_rng(3)
    shots_of_series = clips_of_a_film(rng) + 2.0
    series = {}
    for number in range(5):
        series[f"part{number}"] = shots_of_series + difference * rng.normal(size=shots_of_series.shape)
    assert nearly_equal_films(dataset(**series)) == []


def test_films_that_share_a_third_of_their_clips_are_no_twins():
    """Two films of 60 clips have their first 20 in common, but for the last bits, which float16 rounds.

    That may be an excerpt that both quote; a twin has most of its clips from one film. A third film shares
    nothing.
    """
    rng = np.random.default_rng(4)
    film = clips_of_a_film(rng)
    other = clips_of_a_film(rng)
    other[:20] = film[:20].astype(np.float16)

    found = nearly_equal_films(dataset(film=film, other=other, third=clips_of_a_film(rng)))

    assert found == []


@pytest.mark.parametrize("n_features", [1, 2, 3])
def test_few_features_lie_close_by_chance(n_features):
    """Of loudness and brightness alone, each clip has a near one in every film, and in its own."""
    rng = np.random.default_rng(5)
    films = {f"film{number}": rng.normal(size=(300, n_features)) for number in range(4)}
    assert nearly_equal_films(dataset(**films)) == []


def test_films_that_show_one_still_picture_are_no_twins():
    """Three films show the same slide all the time: their 60 clips each differ by a thousandth.

    So clips of one film are as near to each other as to those of another film. That they are near says
    nothing of where they come from, unlike in a twin, whose clips are nearer to those of one film than to
    each other. Two usual films are there too, one of them with features ten times as large.
    """
    rng = np.random.default_rng(6)
    slide = rng.normal(size=D)
    still_films = {f"still{number}": slide + 1e-3 * rng.normal(size=(60, D)) for number in range(3)}
    usual_film = clips_of_a_film(rng)
    film_of_large_features = 10 * clips_of_a_film(rng)

    found = nearly_equal_films(dataset(**still_films, moving=usual_film, other=film_of_large_features))

    assert found == []


def test_two_films_of_blank_clips_alone_are_no_twins():
    """All 40 clips of two films have features of 0, as of black pictures, which any two films may have."""
    rng = np.random.default_rng(7)
    blank = np.zeros((40, D))

    assert nearly_equal_films(dataset(film=clips_of_a_film(rng), black=blank, dark=blank)) == []


def test_a_single_film_has_no_twin():
    """A film is not compared with itself."""
    rng = np.random.default_rng(7)

    assert nearly_equal_films(dataset(film=clips_of_a_film(rng))) == []


@pytest.mark.long
def test_a_large_corpus_is_compared_in_seconds():
    """200 films of 200 clips; comparing each clip with each takes 100 times as long."""
    rng = np.random.default_rng(8)
    films = {
        f"film{number}": clips_of_a_film(rng, n_clips=200, n_features=512).astype(np.float32)
        for number in range(200)
    }
    data = dataset(**films, twin=films["film7"].astype(np.float16))
    begun = time.perf_counter()
    ((film, other, _),) = nearly_equal_films(data)
    assert (film, other) == ("film7", "twin")
    assert time.perf_counter() - begun < 30
