"""Windows that could not be read: nobody is asked to judge them, and shares say that they are left out."""

from dataclasses import replace

import pytest
from msgspec import structs

from obygaze_features.manifest import Manifest
from obygaze_film import compare_films, score_film
from obygaze_film.cells import cells_of
from obygaze_film.claims import Words, sentences
from obygaze_film.claims.of_groups import group_share
from obygaze_film.claims.of_judgements import judged_share
from obygaze_film.claims.phrases import groups_sentence
from obygaze_film.judged_rate import correct_rates
from obygaze_film.positive import positive_of
from obygaze_film.windows_to_judge import choose_next, unread_notices
from tests.film.films import film_store
from tests.planted_models import codebook

CUT_S = 121.0
"""Second from which nothing of the film of 168 s can be read: 47 s, and one second of the window before."""


@pytest.fixture(scope="module")
def cut(trained, tmp_path_factory):
    """A scored film whose file is cut off, without black and credits."""
    folder = tmp_path_factory.mktemp("cut")
    store = film_store(folder, "cut", end_s=168.0, planted=((30.0, 60.0),), holes=((CUT_S, 168.0),))
    return score_film(store, [trained.paths["pcbm_lr"]])


@pytest.fixture(scope="module")
def judged(cut, tmp_path_factory):
    """AB calls every window of the film that can be drawn violent or calm."""
    folder = tmp_path_factory.mktemp("book")
    clips = []
    for clip in choose_next([cut], 30, blind=True):
        level = "violent" if 30 <= clip.start_s < 60 else "calm"
        clips.append(replace(clip, level=level, annotator="AB"))
    return Manifest(tuple(clips), folder, codebook(folder))


def test_no_window_is_drawn_of_which_more_than_half_could_not_be_read(cut):
    cells = cells_of(cut)
    window_s = cells.spans[0, 1]
    blind = choose_next([cut], 30, blind=True)
    in_sight = choose_next([cut], 30)
    n_read = int((CUT_S + window_s / 2) // window_s)
    assert len(blind) == n_read
    for clip in [*blind, *in_sight]:
        assert CUT_S - clip.start_s >= window_s / 2
    n_left_out = len(cells.spans) - n_read
    assert n_left_out > 3
    assert unread_notices([cut]) == [
        f"cut: {n_left_out} windows are never drawn: more than half of each could not be read"
    ]
    assert cells.content_s.sum() + cells.unread_s == pytest.approx(168.0)


def test_a_share_is_of_what_could_be_read(cut, judged):
    (rate,) = correct_rates(cut, judged).rates
    assert rate.content_s + rate.unread_s == pytest.approx(168.0)
    english, french = (sentences([judged_share(rate)], language)[0] for language in ("en", "fr"))
    assert "of what could be read of the film, without black and credits" in english
    assert "de ce qui a pu être lu du film, sans noir ni générique" in french
    unsure = structs.replace(rate, n_unsure=1, unsure_s=4.0)
    english, french = (sentences([judged_share(unsure)], language)[0] for language in ("en", "fr"))
    assert "of what could be read of the film, without black, credits and 1 window (4 s)" in english
    assert "de ce qui a pu être lu du film, sans noir, ni générique, ni 1 fenêtre (4 s)" in french


def test_compared_films_that_could_be_read_in_part_are_named(cut, judged):
    notes = compare_films([cut], judged).notes
    assert "films of which a part could not be read, and counts in no share of theirs: 1 (cut)" in notes


def test_the_share_of_a_group_is_of_what_could_be_read_of_its_films(cut, judged):
    (row,) = compare_films([cut], judged).groups.to_dict("records")
    assert row["has_unread"]
    claim = group_share(row | {"value": 0.3, "low": 0.2, "high": 0.5}, positive_of(cut.model()))
    english, french = (groups_sentence([claim], Words(language)) for language in ("en", "fr"))
    assert "of what could be read of a film, without black and credits" in english
    assert "de ce qui a pu être lu d’un film, sans noir ni générique" in french
    whole = row | {"value": 0.3, "low": 0.2, "high": 0.5, "has_unread": False}
    plain = group_share(whole, positive_of(cut.model()))
    assert "of a film without black and credits" in groups_sentence([plain], Words("en"))


def test_a_film_of_which_no_window_could_be_read_is_in_no_group(trained, tmp_path, cut, judged):
    store = film_store(tmp_path, "lost", end_s=60.0, holes=((0.0, 55.0),))
    lost = score_film(store, [trained.paths["pcbm_lr"]])
    compared = compare_films([cut, lost], judged)
    assert [film.timeline.movie for film in compared.films] == ["cut"]
    assert (
        "films left out, as more than half of each of their windows could not be read: 1 (lost)"
        in compared.notes
    )
