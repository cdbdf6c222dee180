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


def make_corpus(tmp_path, films=20, seed=0):
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


def annotators_of(assignment):
    """Give each film's annotators."""
    annotators = {}
    for clip in assignment:
        annotators.setdefault(clip.movie, set()).add(clip.annotator)
    return annotators


@pytest.mark.parametrize(("each", "calibration"), [(1, 0), (2, 3), (4, 0)])
def test_films_are_assigned_evenly_and_numbered_for_each_annotator(tmp_path, each, calibration):
    """Films for calibration are annotated by all four people, to compare them.

    The others of the 20 films are annotated by `each` people. Numbers of films differ by one at most, and
    numbers of clips by less than 15%. An annotator works through the films in the order of their numbers.
    """
    corpus = make_corpus(tmp_path)
    assignment = assign(corpus, NAMES, each, calibration=calibration)
    annotators = annotators_of(assignment)
    assert annotators.keys() == set(corpus.movies)
    n_films = Counter(len(names) for names in annotators.values())
    assert n_films == Counter({each: 20 - calibration}) + Counter({len(NAMES): calibration})
    assert all(clip.level is None for clip in assignment)

    films = films_of(assignment).values()
    n_films_of_each = [len(own) for own in films]
    assert max(n_films_of_each) - min(n_films_of_each) <= 1
    n_clips = Counter(clip.annotator for clip in assignment).values()
    assert max(n_clips) / min(n_clips) < 1.15
    for own in films:
        assert sorted(int(clip.extras[ORDER]) for clip in own.values()) == list(range(1, len(own) + 1))
        assert sum(clip.extras[CALIBRATION] == "1" for clip in own.values()) == calibration


@pytest.mark.long
@pytest.mark.parametrize(("each", "calibration"), [(2, 0), (2, 3), (3, 2)])
def test_pairs_of_annotators_share_about_as_many_films(tmp_path, each, calibration):
    """Agreement is measured for each pair, so no pair should have much fewer films than another."""
    annotators = annotators_of(assign(make_corpus(tmp_path), NAMES, each, calibration=calibration))
    n_common = Counter(pair for names in annotators.values() for pair in combinations(sorted(names), 2))
    assert max(n_common.values()) - min(n_common.values()) <= 2


def test_films_for_calibration_stand_evenly_through_the_order_that_a_seed_decides(tmp_path):
    """Each annotator has 12 films: 4 for calibration, and half of the other 16.

    The first film is for calibration, and the next ones follow within 4 films, so that drifts over time show.
    """
    corpus = make_corpus(tmp_path)
    assignment = assign(corpus, NAMES, 2, calibration=4, seed=1)
    for own in films_of(assignment).values():
        places = sorted(int(clip.extras[ORDER]) for clip in own.values() if clip.extras[CALIBRATION] == "1")
        assert places[0] == 1
        assert max(np.diff([*places, len(own) + 1])) <= 4
    assert assign(corpus, NAMES, 2, calibration=4, seed=1) == assignment
    assert assign(corpus, NAMES, 2, calibration=4, seed=2) != assignment


def test_existing_columns_are_not_replaced(tmp_path):
    """The assignment would write a column "order", and the manifest has one with another meaning."""
    corpus = make_corpus(tmp_path, films=3)
    named = corpus.with_clips(replace(clip, extras={"order": "story"}) for clip in corpus)
    with pytest.raises(ManifestError, match="order"):
        assign(named, NAMES, 2)


@pytest.mark.long
def test_the_films_of_mobygaze_are_assigned_evenly(segments):
    """Of 20 films 2 are for calibration; the other 18 by two people are 36, or 9 for each of 4.

    So each has 11.
    """
    made = assign(windows(segments, 46), NAMES, 2, calibration=2)
    films = films_of(made)
    assert [len(own) for own in films.values()] == [11] * 4
    minutes = [sum(c.duration_s for c in made if c.annotator == name) / 60 for name in NAMES]
    assert max(minutes) / min(minutes) < 1.1


def test_half_of_sixty_annotate_each_film(tmp_path):
    """8 films times 30 annotators are 240, so that each of the 60 annotators has 4."""
    made = films_of(assign(make_corpus(tmp_path, films=8), tuple(map(str, range(60))), 30))
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
def test_impossible_rounds_are_refused(tmp_path, names, each, calibration):
    three_films = make_corpus(tmp_path, films=3)
    with pytest.raises(ManifestError):
        assign(three_films, names, each, calibration=calibration)


def test_names_are_stored_in_one_form_of_unicode(tmp_path):
    """The accent of Léa is given as a sign of its own (NFD). It is stored as one letter with the e."""
    made = assign(make_corpus(tmp_path, films=3), [normalize("NFD", "Léa"), "AB"], 2)
    assert {clip.annotator for clip in made} == {"Léa", "AB"}
