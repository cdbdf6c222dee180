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
def cut_off_film(trained_models, tmp_path_factory):
    """A scored film "cut" of 168 s, whose file is cut off at 121 s; it has neither black nor credits."""
    folder = tmp_path_factory.mktemp("cut")
    store = film_store(folder, "cut", end_s=168.0, planted=((30.0, 60.0),), holes=((CUT_S, 168.0),))
    return score_film(store, [trained_models.paths["pcbm_lr"]])


@pytest.fixture(scope="module")
def judged_by_ab(cut_off_film, tmp_path_factory):
    """AB calls every window of the film that can be drawn violent or calm."""
    folder = tmp_path_factory.mktemp("book")
    clips = []
    for clip in choose_next([cut_off_film], 30, blind=True):
        level = "violent" if 30 <= clip.start_s < 60 else "calm"
        clips.append(replace(clip, level=level, annotator="AB"))
    return Manifest(tuple(clips), folder, codebook(folder))


def n_windows_read(cells):
    """Count the windows of the film of which half or more could be read: their middle is before the cut."""
    middles_s = cells.spans.mean(axis=1)
    return int((middles_s <= CUT_S).sum())


def test_no_mostly_unread_window_is_drawn(cut_off_film):
    """Nobody can judge a window whose pictures are mostly lost.

    From second 121 of 168 on nothing of the file could be read. More windows are asked for than can be drawn:
    all come whose middle lies before the cut, and no other one.
    """
    cells = cells_of(cut_off_film)
    window_s = cells.spans[0, 1]

    blind = choose_next([cut_off_film], 30, blind=True)
    in_sight = choose_next([cut_off_film], 30)

    assert len(blind) == n_windows_read(cells)
    for clip in [*blind, *in_sight]:
        assert 121.0 - clip.start_s >= window_s / 2


def test_a_notice_counts_the_windows_that_are_never_drawn(cut_off_film):
    """The film "cut" of 168 s cannot be read from 121 s on: more than three windows lie mostly behind this.

    They are those whose middle is after the cut.
    """
    cells = cells_of(cut_off_film)
    n_left_out = len(cells.spans) - n_windows_read(cells)
    assert n_left_out > 3
    assert unread_notices([cut_off_film]) == [
        f"cut: {n_left_out} windows are never drawn: more than half of each could not be read"
    ]


OF_WHAT_WAS_READ_WITHOUT_BLACK = {
    "en": "of what could be read of the film in windows that can be drawn, without black",
    "fr": "de ce qui a pu être lu du film dans les fenêtres qui peuvent être tirées, sans noir",
}
"""Of which time a share is: no window of which more than half could not be read counts, not even what was."""


def test_a_share_is_of_what_could_be_read_in_windows_that_can_be_drawn(cut_off_film, judged_by_ab):
    """The film of 168 s could be read up to 121 s, and has neither black nor credits.

    Windows of which more than half could not be read are never drawn, and so the one from 120 to 128 s: the
    share is of less than 121 s. What it is of, and what is counted as unread, are the whole film.
    """
    (rate,) = correct_rates(cut_off_film, judged_by_ab).rates
    cells = cells_of(cut_off_film)
    assert cells.content_s.sum() + cells.unread_s == pytest.approx(168.0)
    assert rate.content_s + rate.unread_s == pytest.approx(168.0)
    assert rate.content_s < 121.0


@pytest.mark.parametrize(("language", "and_credits"), [("en", " and credits"), ("fr", " ni générique")])
def test_the_sentence_on_the_share_of_a_cut_off_film_says_that_it_is_of_what_was_read(
    cut_off_film, judged_by_ab, language, and_credits
):
    """The file of a film of 168 s is cut off at 121 s. AB judged all windows that can be drawn.

    AB's share is not of the whole film: the sentence says that it is of what could be read "in windows that
    can be drawn", as windows that could mostly not be read are never drawn.
    """
    (rate,) = correct_rates(cut_off_film, judged_by_ab).rates
    (sentence,) = sentences([judged_share(rate)], language)
    assert OF_WHAT_WAS_READ_WITHOUT_BLACK[language] + and_credits in sentence


@pytest.mark.parametrize(
    ("language", "credits_and_unsure_window"),
    [("en", ", credits and 1 window (4 s)"), ("fr", ", ni générique, ni 1 fenêtre (4 s)")],
)
def test_the_sentence_on_the_share_of_a_cut_off_film_leaves_out_unsure_windows_beside_what_was_not_read(
    cut_off_film, judged_by_ab, language, credits_and_unsure_window
):
    """A film's file is cut off, and AB's rate says that AB was not sure of one window, of 4 s of content.

    The sentence says that the share is of what could be read, without black, credits and that window.
    """
    (rate,) = correct_rates(cut_off_film, judged_by_ab).rates
    with_unsure_window = structs.replace(rate, n_unsure=1, unsure_s=4.0)
    (sentence,) = sentences([judged_share(with_unsure_window)], language)
    assert OF_WHAT_WAS_READ_WITHOUT_BLACK[language] + credits_and_unsure_window in sentence


@pytest.fixture
def sentence_on_group(cut_off_film, judged_by_ab):
    """A function that writes the sentence on a share of a group of films.

    The group is of the cut film alone, which is too few for a share: .3, from .2 to .5, is planted.
    """
    (group,) = compare_films([cut_off_film], judged_by_ab).groups.to_dict("records")
    assert group["has_unread"]

    def sentence(language, **changed):
        with_share = group | {"value": 0.3, "low": 0.2, "high": 0.5} | changed
        return groups_sentence([group_share(with_share, positive_of(cut_off_film.model()))], Words(language))

    return sentence


@pytest.mark.parametrize(
    ("language", "of_what"),
    [
        ("en", "of what could be read of a film in windows that can be drawn, without black and credits"),
        (
            "fr",
            (
                "de ce qui a pu être lu d’un film dans les fenêtres qui peuvent être tirées, "
                "sans noir ni générique"
            ),
        ),
    ],
    ids=["en", "fr"],
)
def test_a_groups_share_is_of_what_could_be_read_of_its_films(sentence_on_group, language, of_what):
    """A part of a film of the group could not be read, which the sentence on the group's share says."""
    assert of_what in sentence_on_group(language)


def test_a_groups_share_is_of_its_films_if_all_could_be_read(sentence_on_group):
    """If no part was unread (`has_unread` is False), the share is of films, but for black and credits."""
    sentence = sentence_on_group("en", has_unread=False)
    assert "of a film without black and credits" in sentence


def test_a_film_without_readable_windows_is_in_no_group(trained_models, tmp_path, cut_off_film, judged_by_ab):
    """Of the 60 s of the film "lost" the first 55 could not be read, which is more than half of each window.

    Of the film "cut" a part could not be read. The notes name both.
    """
    store = film_store(tmp_path, "lost", end_s=60.0, holes=((0.0, 55.0),))
    lost = score_film(store, [trained_models.paths["pcbm_lr"]])

    compared = compare_films([cut_off_film, lost], judged_by_ab)

    assert [film.timeline.movie for film in compared.films] == ["cut"]
    assert (
        "films of which a part could not be read, and counts in no share of theirs: 1 (cut)" in compared.notes
    )
    assert (
        "films left out, as more than half of each of their windows could not be read: 1 (lost)"
        in compared.notes
    )


def test_a_comparison_shows_the_same_expected_share_of_a_cut_off_film_as_its_own_page(
    trained_models, tmp_path
):
    """A film of 168 s could be read up to 145 s, and nobody judged it: its share is the model's.

    The last second that could be read lies in a window (144 to 152 s) that is never drawn, as it is mostly
    unread. The model's share counts that second all the same, on the film's page and among other films.
    """
    store = film_store(tmp_path, "cut", end_s=168.0, planted=((30.0, 60.0),), holes=((145.0, 168.0),))
    film = score_film(store, [trained_models.paths["pcbm_lr"]])

    (compared,) = compare_films([film], Manifest((), tmp_path, codebook(tmp_path))).films

    assert film.model().rate.value is not None
    assert compared.expected == film.model().rate.value
