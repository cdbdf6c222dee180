"""A round of annotation: films, lengths and pairs are spread evenly, by a seed."""

from collections import Counter
from dataclasses import replace
from itertools import combinations
from unicodedata import normalize

import numpy as np
import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, Manifest, assign, windows
from obygaze_features.manifest.rounds import CALIBRATION, ORDER

NAMES = ("AB", "CD", "EF", "GH")


def clips(tmp_path, films=20, seed=0):
    """Make a corpus of films of 20 to 119 windows of 46 s."""
    n_windows = np.random.default_rng(seed).integers(20, 120, films).tolist()
    made = [
        Clip(f"f{film:02}-{k:03}", f"f{film:02}", "", 46.0 * k, 46.0 * k + 46)
        for film, n in enumerate(n_windows)
        for k in range(n)
    ]
    return Manifest(tuple(made), tmp_path)


def films_of(assignment):
    """Return each annotator's films, {annotator: {movie: a clip of it}}.

    Every clip of a film has in its extras the film's place in the annotator's order.
    """
    films = {}
    for clip in assignment:
        films.setdefault(clip.annotator, {})[clip.movie] = clip
    return films


def annotators_of(made):
    """Give each film's annotators."""
    found = {}
    for clip in made:
        found.setdefault(clip.movie, set()).add(clip.annotator)
    return found


rounds = pytest.mark.parametrize(("each", "calibration"), [(1, 0), (2, 0), (2, 3), (3, 2), (4, 0)])


@rounds
def test_a_film_has_as_many_annotators_as_asked_and_all_where_it_is_for_calibration(
    tmp_path, each, calibration
):
    given = clips(tmp_path)
    made = assign(given, NAMES, each, calibration=calibration)
    annotators = annotators_of(made)
    assert annotators.keys() == set(given.movies)
    n_films = Counter(len(names) for names in annotators.values())
    assert n_films == Counter({each: 20 - calibration}) + Counter({len(NAMES): calibration})
    assert all(clip.level is None for clip in made)


@rounds
def test_all_annotators_have_as_many_films_and_about_as_many_clips(tmp_path, each, calibration):
    made = assign(clips(tmp_path), NAMES, each, calibration=calibration)
    n_films = [len(own) for own in films_of(made).values()]
    assert max(n_films) - min(n_films) <= 1
    n_clips = Counter(clip.annotator for clip in made).values()
    assert max(n_clips) / min(n_clips) < 1.15


@pytest.mark.long
@pytest.mark.parametrize(("each", "calibration"), [(2, 0), (2, 3), (3, 2)])
def test_all_pairs_of_annotators_have_about_as_many_films_in_common(tmp_path, each, calibration):
    annotators = annotators_of(assign(clips(tmp_path), NAMES, each, calibration=calibration))
    n_common = Counter(pair for names in annotators.values() for pair in combinations(sorted(names), 2))
    assert max(n_common.values()) - min(n_common.values()) <= 2


@rounds
def test_each_annotators_films_are_numbered_and_those_for_calibration_marked(tmp_path, each, calibration):
    made = assign(clips(tmp_path), NAMES, each, calibration=calibration)
    for own in films_of(made).values():
        assert sorted(int(clip.extras[ORDER]) for clip in own.values()) == list(range(1, len(own) + 1))
        assert sum(clip.extras[CALIBRATION] == "1" for clip in own.values()) == calibration


def test_films_for_calibration_stand_evenly_through_the_order(tmp_path):
    """Each annotator has 12 films: 4 for calibration, and half of the other 16."""
    made = assign(clips(tmp_path), NAMES, 2, calibration=4, seed=1)
    for own in films_of(made).values():
        places = sorted(int(clip.extras[ORDER]) for clip in own.values() if clip.extras[CALIBRATION] == "1")
        assert places[0] == 1
        assert max(np.diff([*places, len(own) + 1])) <= 4


def test_a_seed_decides_the_assignment(tmp_path):
    made = assign(clips(tmp_path), NAMES, 2, calibration=4, seed=1)
    assert assign(clips(tmp_path), NAMES, 2, calibration=4, seed=1) == made
    assert assign(clips(tmp_path), NAMES, 2, calibration=4, seed=2) != made


def test_columns_of_ones_own_are_not_replaced(tmp_path):
    given = clips(tmp_path)
    named = given.with_clips(replace(clip, extras={"order": "story"}) for clip in given)
    with pytest.raises(ManifestError, match="order"):
        assign(named, NAMES, 2)


@pytest.mark.long
def test_a_corpus_of_mobygaze_is_assigned(segments):
    made = assign(windows(segments, 46), NAMES, 2, calibration=2)
    films = films_of(made)
    assert [len(own) for own in films.values()] == [11] * 4
    minutes = [sum(c.duration_s for c in made if c.annotator == name) / 60 for name in NAMES]
    assert max(minutes) / min(minutes) < 1.1


def test_half_of_sixty_annotate_each_film(tmp_path):
    made = films_of(assign(clips(tmp_path, films=8), tuple(map(str, range(60))), 30))
    assert {len(own) for own in made.values()} == {4}


@pytest.mark.parametrize(
    ("names", "each", "calibration"),
    [(("AB", "ab "), 1, 0), (("AB",), 2, 0), (NAMES, 2, 4), (("AB", ""), 1, 0)],
    ids=[
        "one name twice",
        "fewer annotators than asked",
        "fewer films than for calibration",
        "an empty name",
    ],
)
def test_rounds_that_cannot_be_are_refused(tmp_path, names, each, calibration):
    three_films = clips(tmp_path, films=3)
    with pytest.raises(ManifestError):
        assign(three_films, names, each, calibration=calibration)


def test_names_have_one_form_of_unicode(tmp_path):
    made = assign(clips(tmp_path, films=3), [normalize("NFD", "Léa"), "AB"], 2)
    assert {clip.annotator for clip in made} == {"Léa", "AB"}
