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
    lengths = np.random.default_rng(seed).integers(20, 120, films).tolist()
    made = [
        Clip(f"f{film:02}-{k:03}", f"f{film:02}", "", 46.0 * k, 46.0 * k + 46)
        for film, n in enumerate(lengths)
        for k in range(n)
    ]
    return Manifest(tuple(made), tmp_path)


def films_of(made):
    found = {}
    for clip in made:
        found.setdefault(clip.annotator, {})[clip.movie] = clip
    return found


@pytest.mark.parametrize(("each", "calibration"), [(1, 0), (2, 0), (2, 3), (3, 2), (4, 0)])
def test_each_film_has_its_annotators_and_all_have_as_much_to_do(tmp_path, each, calibration):
    given = clips(tmp_path)
    made = assign(given, NAMES, each, calibration=calibration)
    films = films_of(made)
    who = {film: {name for name, own in films.items() if film in own} for film in given.movies}
    common = {film for film in given.movies if len(who[film]) == 4}
    if each < 4:
        assert len(common) == calibration
        assert all(len(names) == each for film, names in who.items() if film not in common)
    counts = [len(own) for own in films.values()]
    assert max(counts) - min(counts) <= 1
    rows = Counter(clip.annotator for clip in made)
    assert max(rows.values()) / min(rows.values()) < 1.15
    if 1 < each < 4:
        pairs = Counter(pair for film, names in who.items() for pair in combinations(sorted(names), 2))
        assert max(pairs.values()) - min(pairs.values()) <= 2
    for own in films.values():
        assert sorted(int(clip.extras[ORDER]) for clip in own.values()) == list(range(1, len(own) + 1))
        assert sum(clip.extras[CALIBRATION] == "1" for clip in own.values()) == calibration
    assert all(clip.level is None for clip in made)


def test_films_for_calibration_stand_evenly_through_the_order(tmp_path):
    made = assign(clips(tmp_path), NAMES, 2, calibration=4, seed=1)
    places = {}
    for name, own in films_of(made).items():
        common = sorted(int(c.extras[ORDER]) for c in own.values() if c.extras[CALIBRATION] == "1")
        assert common[0] == 1
        assert max(np.diff([*common, len(own) + 1])) <= 4
        places[name] = common
    assert assign(clips(tmp_path), NAMES, 2, calibration=4, seed=1) == made
    assert assign(clips(tmp_path), NAMES, 2, calibration=4, seed=2) != made


def test_columns_of_ones_own_are_not_replaced(tmp_path):
    given = clips(tmp_path)
    named = given.with_clips(replace(clip, extras={"order": "story"}) for clip in given)
    with pytest.raises(ManifestError, match="order"):
        assign(named, NAMES, 2)


def test_a_corpus_of_mobygaze_is_assigned(segments):
    made = assign(windows(segments, 46), NAMES, 2, calibration=2)
    films = films_of(made)
    assert [len(own) for own in films.values()] == [11] * 4
    minutes = [sum(c.duration_s for c in made if c.annotator == name) / 60 for name in NAMES]
    assert max(minutes) / min(minutes) < 1.1


def test_half_of_sixty_annotate_each_film(tmp_path):
    made = films_of(assign(clips(tmp_path, films=8), tuple(map(str, range(60))), 30))
    assert {len(own) for own in made.values()} == {4}


def test_rounds_that_cannot_be_are_refused(tmp_path):
    given = clips(tmp_path, films=3)
    for names, each, calibration in (
        (("AB", "ab "), 1, 0),
        (("AB",), 2, 0),
        (NAMES, 2, 4),
        (("AB", ""), 1, 0),
    ):
        with pytest.raises(ManifestError):
            assign(given, names, each, calibration=calibration)


def test_names_have_one_form_of_unicode(tmp_path):
    made = assign(clips(tmp_path, films=3), [normalize("NFD", "Léa"), "AB"], 2)
    assert {clip.annotator for clip in made} == {"Léa", "AB"}
