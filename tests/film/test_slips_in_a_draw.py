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


def judged(clips, folder, judge="AB"):
    """Let a judge call windows violent that begin in the first 200 of 600 seconds."""
    rows = []
    for clip in clips:
        level = "violent" if clip.start_s < 200 else "calm"
        rows.append(replace(clip, level=level, annotator=judge, clip_id=f"{judge}-{clip.clip_id}"))
    return Manifest(tuple(rows), Path(folder), codebook(folder))


@pytest.fixture
def thirty_judgements(timeline, tmp_path):
    """AB's judgements of the first 30 windows of the draw, in its order."""
    return judged(choose_next([timeline], 30, blind=True), tmp_path)


def with_row_15(judgements, row):
    """Put a row in the place of the 15th of some judgements."""
    rows = list(judgements)
    rows[14] = row
    return judgements.with_clips(rows)


def with_column(row, **columns):
    """Set columns of a row of judgements that not all manifests have, such as `place`."""
    return replace(row, extras={**row.extras, **columns})


def begun_later(row):
    """Return the row with a start that is one second late."""
    return replace(row, start_s=row.start_s + 1)


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(begun_later, id="another start"),
        pytest.param(lambda row: replace(row, end_s=row.end_s - 1), id="another end"),
        pytest.param(
            lambda row: replace(row, start_s=row.start_s + 0.5, end_s=row.end_s + 0.5),
            id="both times half a second late",
        ),
        pytest.param(lambda row: with_column(row, content_s="80"), id="more content than a window has"),
        pytest.param(lambda row: with_column(row, content_s="8 s"), id="content that is no number"),
        pytest.param(lambda row: with_column(row, place=""), id="no place"),
        pytest.param(lambda row: with_column(row, seen_score="1"), id="not blind"),
        pytest.param(lambda row: replace(row, level=None), id="no level"),
        pytest.param(lambda row: replace(row, movie="tt9"), id="another film"),
    ],
)
def test_a_spoilt_row_ends_the_count_as_a_missing_one_does(timeline, thirty_judgements, spoil):
    """AB judged the first 30 windows of a random draw, and a slip spoilt the row of the 15th.

    The 14 windows before it are a random draw, too. The 15 after it are left out, and a notice counts them.
    """
    rows = thirty_judgements.clips
    with_slip = with_row_15(thirty_judgements, spoil(rows[14]))
    without_the_row = thirty_judgements.with_clips([*rows[:14], *rows[15:]])

    rate, notices = correct_rate(timeline, with_slip)
    rate_without_the_row, _notices = correct_rate(timeline, without_the_row)

    assert rate.n == 14
    assert rate == rate_without_the_row
    assert any(notice.startswith("left out 15 judgements drawn after place 15,") for notice in notices)


def test_the_notice_on_a_spoilt_row_says_what_to_restore(timeline, thirty_judgements):
    """One row of AB's 30 begins a second late: no window of the film has these times."""
    with_slip = with_row_15(thirty_judgements, begun_later(thirty_judgements.clips[14]))

    _, notices = correct_rate(timeline, with_slip)

    expected = "left out 1 judgement whose times are no window of this film's grid of 8 s: restore times"
    assert expected in notices[0]
    assert "rétablissez les temps" in Words("fr").translated(notices[0])


def test_a_slip_of_one_judge_ends_that_judges_count_and_the_panels(timeline, thirty_judgements, tmp_path):
    """AB and CD judged the same 30 windows, and AB's 15th row is spoilt.

    CD's share is of all 30. AB's is of the 14 before the slip, and so is that of both, which needs both.
    """
    of_ab = with_row_15(thirty_judgements, begun_later(thirty_judgements.clips[14]))
    of_cd = judged(choose_next([timeline], 30, blind=True), tmp_path, judge="CD")
    of_both = of_ab.with_clips([*of_ab, *of_cd])

    rates = correct_rates(timeline, of_both).rates

    n_windows = {tuple(rate.annotators): rate.n for rate in rates}
    assert n_windows == {("AB",): 14, ("CD",): 30, ("AB", "CD"): 14}


def test_a_window_that_is_black_by_now_is_no_gap(timeline, thirty_judgements):
    """AB judged 30 windows; then the time of the 15th is found to be black, which is no content.

    The share is of content, so that the other windows are still a random draw of it: none counts as judged
    after a gap. The rows of the film that become black may reach beyond the window, so that a neighbour can
    be lost with it. No judgement says the content that its window had (`content_s`).
    """
    judgements = thirty_judgements.with_clips([with_column(row, content_s="") for row in thirty_judgements])
    judged_window = judgements.clips[14]
    table = timeline.table.copy()
    is_in_window = (table["start_s"] < judged_window.end_s) & (table["end_s"] > judged_window.start_s)
    table.loc[is_in_window, "flags"] = "black"
    film_now = replace(timeline, table=table)

    of_ab = judged_film(film_now, judgements).of("AB")

    cells = cells_of(film_now)
    had_content = cells_of(timeline).content_s > 0
    lost_cells = np.flatnonzero(had_content & (cells.content_s == 0)).tolist()
    judged_cells = [cells.index_of(row.start_s, row.end_s) for row in judgements]
    n_lost = sum(cell in lost_cells for cell in judged_cells)
    assert judged_cells[14] in lost_cells
    assert of_ab.n_after_gap == 0
    assert of_ab.counts.judged == 30 - n_lost


def test_one_window_at_two_places_is_refused(timeline, thirty_judgements):
    """A slip gave the 15th row the times of the 16th: nobody knows which window was judged."""
    row_15 = thirty_judgements.clips[14]
    row_16 = thirty_judgements.clips[15]
    with_times_of_16 = replace(row_15, start_s=row_16.start_s, end_s=row_16.end_s)

    with pytest.raises(FilmError, match="one window, at place 15 and at place 16 of the draw"):
        correct_rate(timeline, with_row_15(thirty_judgements, with_times_of_16))


def test_the_place_of_a_spoilt_row_is_drawn_again(timeline, thirty_judgements, tmp_path):
    """AB judged 30 windows, and a slip spoilt the row of the 15th: this is the next window to be judged.

    Judging it anew mends the draw, also if the spoilt row stays in the table: the share is again that of all
    30 windows.
    """
    row_15 = thirty_judgements.clips[14]
    with_slip = with_row_15(thirty_judgements, begun_later(row_15))

    (window,) = choose_next([timeline], 1, blind=True, judged=with_slip)
    assert window.extras["place"] == "15"
    assert window.start_s == row_15.start_s

    judged_anew = judged([replace(window, clip_id="again")], tmp_path)
    mended = with_slip.with_clips([*with_slip, *judged_anew])
    rate_of_mended, _notices = correct_rate(timeline, mended)
    rate_without_slip, _notices = correct_rate(timeline, thirty_judgements)
    assert rate_of_mended == rate_without_slip


def test_a_window_whose_end_was_rounded_to_milliseconds_is_the_same_window(thirty_judgements, timeline):
    """CD's table has the ends of windows with three decimals, the desk that AB judged at with all of them."""
    rows = list(thirty_judgements)
    of_cd = [
        replace(row, annotator="CD", clip_id=f"CD-{row.clip_id}", end_s=row.end_s + 0.0004) for row in rows
    ]

    film = judged_film(timeline, thirty_judgements.with_clips([*rows, *of_cd]))

    assert film.panel().counts.judged == 30
