"""A judged row that a slip has spoilt is a gap in the draw: what comes after it does not count.

A row that fell out while later rows stayed would change the share by what was judged in it.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from obygaze_features.manifest import Manifest
from obygaze_film.cells import cells_of
from obygaze_film.claims import Words
from obygaze_film.errors import FilmError
from obygaze_film.judged_rate import correct_rate, correct_rates
from obygaze_film.judged_windows import judged_film
from obygaze_film.windows_to_judge import choose_next
from tests.planted_models import codebook

SPOILT = 15
"""Place of the row that a slip has spoilt, of 30 that were judged."""


def judged(clips, folder, judge="AB"):
    """Let a judge call windows violent that begin in the first 200 of 600 seconds."""
    rows = []
    for clip in clips:
        level = "violent" if clip.start_s < 200 else "calm"
        rows.append(replace(clip, level=level, annotator=judge, clip_id=f"{judge}-{clip.clip_id}"))
    return Manifest(tuple(rows), Path(folder), codebook(folder))


@pytest.fixture
def thirty(timeline, tmp_path):
    """AB's judgements of the first 30 windows of the draw, in its order."""
    return judged(choose_next([timeline], 30, blind=True), tmp_path)


def with_slip(judgements, change):
    """Change the row of the place `SPOILT`."""
    rows = list(judgements)
    rows[SPOILT - 1] = change(rows[SPOILT - 1])
    return judgements.with_clips(rows)


def with_extra(column, value):
    return lambda clip: replace(clip, extras={**clip.extras, column: value})


SLIPS = {
    "another start": lambda clip: replace(clip, start_s=clip.start_s + 1),
    "another end": lambda clip: replace(clip, end_s=clip.end_s - 1),
    "times of a window before": lambda clip: replace(
        clip, start_s=clip.start_s + 0.5, end_s=clip.end_s + 0.5
    ),
    "content of no window": with_extra("content_s", "80"),
    "content of no number": with_extra("content_s", "8 s"),
    "no place": with_extra("place", ""),
    "not blind": with_extra("seen_score", "1"),
    "no level": lambda clip: replace(clip, level=None),
    "another film": lambda clip: replace(clip, movie="tt9"),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_spoilt_row_ends_the_count_as_a_missing_one_does(timeline, thirty, slip):
    """14 windows come before it. The 15 after it are left out and counted, whatever the slip was."""
    without_the_row = thirty.with_clips([*thirty.clips[: SPOILT - 1], *thirty.clips[SPOILT:]])

    rate, notices = correct_rate(timeline, with_slip(thirty, SLIPS[slip]))

    assert rate.n == 14
    assert rate == correct_rate(timeline, without_the_row)[0]
    assert any(notice.startswith("left out 15 judgements drawn after place 15,") for notice in notices)


def test_the_notice_says_what_to_restore(timeline, thirty):
    moved = with_slip(thirty, SLIPS["another start"])

    _, notices = correct_rate(timeline, moved)

    assert (
        "left out 1 judgement whose times are no window of this film's grid of 8 s: restore times"
        in notices[0]
    )
    assert "rétablissez les temps" in Words("fr").translated(notices[0])


def test_a_slip_of_one_judge_ends_that_judges_count_and_the_panels(timeline, thirty, tmp_path):
    """CD's share is of 30 windows, AB's and that of both are of 14."""
    by_cd = judged(choose_next([timeline], 30, blind=True), tmp_path, judge="CD")
    both = thirty.with_clips([*with_slip(thirty, SLIPS["another start"]), *by_cd])

    rates = correct_rates(timeline, both).rates

    assert {tuple(rate.annotators): rate.n for rate in rates} == {("AB",): 14, ("CD",): 30, ("AB", "CD"): 14}


def test_a_window_that_is_black_by_now_is_no_gap(timeline, thirty):
    """The film has lost the window, and with it the share that is estimated: the 29 others are a draw of it.

    The row does not say the content that its window had.
    """
    row = thirty.clips[SPOILT - 1]
    table = timeline.table.copy()
    in_window = (table["start_s"] < row.end_s) & (table["end_s"] > row.start_s)
    table.loc[in_window, "flags"] = "black"
    film = replace(timeline, table=table)
    judgements = thirty.with_clips([with_extra("content_s", "")(clip) for clip in thirty])

    judged_now = judged_film(film, judgements)

    cells = cells_of(film)
    lost = np.flatnonzero((cells.content_s == 0) & (cells_of(timeline).content_s > 0)).tolist()
    assert cells.index_of(row.start_s, row.end_s) in lost
    assert judged_now.of("AB").n_after_gap == 0
    assert judged_now.of("AB").counts.judged == 30 - len(
        [clip for clip in thirty if cells.index_of(clip.start_s, clip.end_s) in lost]
    )


def test_one_window_at_two_places_is_refused(timeline, thirty):
    """A slip gave the row the times of the next one: nobody knows which window was judged."""
    next_row = thirty.clips[SPOILT]

    def as_the_next(clip):
        return replace(clip, start_s=next_row.start_s, end_s=next_row.end_s)

    with pytest.raises(FilmError, match="one window, at place 15 and at place 16 of the draw"):
        correct_rate(timeline, with_slip(thirty, as_the_next))


def test_the_place_of_a_spoilt_row_is_drawn_again(timeline, thirty, tmp_path):
    """Judging it anew mends the draw, also if the spoilt row stays in the table."""
    moved = with_slip(thirty, SLIPS["another start"])

    (again,) = choose_next([timeline], 1, blind=True, judged=moved)

    original = thirty.clips[SPOILT - 1]
    assert (again.extras["place"], again.start_s) == (str(SPOILT), original.start_s)
    mended = moved.with_clips([*moved, *judged([replace(again, clip_id="again")], tmp_path)])
    assert correct_rate(timeline, mended)[0] == correct_rate(timeline, thirty)[0]
