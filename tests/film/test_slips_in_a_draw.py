"""A judged row that a slip has spoilt is a gap in the draw: what comes after it does not count.

A row that fell out while later rows stayed would change the share by what was judged in it.
"""

from dataclasses import replace
from pathlib import Path

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
def thirty_judgements(planted_timeline, tmp_path):
    """AB's judgements of the first 30 windows of the draw, in its order."""
    return judged(choose_next([planted_timeline], 30, blind=True), tmp_path)


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
def test_a_spoilt_row_ends_the_count_as_a_missing_one_does(planted_timeline, thirty_judgements, spoil):
    """AB judged the first 30 windows of a random draw, and a slip spoilt the 15th row of the table.

    The 14 windows before it are a random draw too, and the rate is of them, as if the row were not there. The
    15 after it are left out, and a notice counts them.
    """
    rows = thirty_judgements.clips
    row_15 = rows[14]
    with_spoilt_row = with_row_15(thirty_judgements, spoil(row_15))
    with_missing_row = thirty_judgements.with_clips([*rows[:14], *rows[15:]])

    rate, notices = correct_rate(planted_timeline, with_spoilt_row)
    rate_with_missing_row, _notices = correct_rate(planted_timeline, with_missing_row)

    assert rate.n == 14
    assert rate == rate_with_missing_row
    assert any(notice.startswith("left out 15 judgements drawn after place 15,") for notice in notices)


def test_the_notice_on_a_spoilt_row_says_what_to_restore(planted_timeline, thirty_judgements):
    """One row of AB's 30 was changed so that it begins a second late: no window of the film has these times.

    The notice, in English and in French, says that the times must be restored.
    """
    with_slip = with_row_15(thirty_judgements, begun_later(thirty_judgements.clips[14]))

    _, notices = correct_rate(planted_timeline, with_slip)

    expected = "left out 1 judgement whose times are no window of this film's grid of 8 s: restore times"
    assert expected in notices[0]
    assert "rétablissez les temps" in Words("fr").translated(notices[0])


def test_a_slip_of_one_judge_ends_that_judges_count_and_the_panels(
    planted_timeline, thirty_judgements, tmp_path
):
    """AB and CD judged the same 30 windows of a draw, and AB's 15th row has a wrong start (a slip).

    Windows count in the order of the draw, up to the first that is missing. So AB's rate is of the 14 before
    the slip, and CD's of all 30. The rate of both together needs both: 14.
    """
    row_15_of_ab = thirty_judgements.clips[14]
    by_ab = with_row_15(thirty_judgements, begun_later(row_15_of_ab))
    by_cd = judged(choose_next([planted_timeline], 30, blind=True), tmp_path, judge="CD")

    rates = correct_rates(planted_timeline, by_ab.with_clips([*by_ab, *by_cd])).rates

    n_windows_by_judges = {tuple(rate.annotators): rate.n for rate in rates}
    assert n_windows_by_judges == {("AB",): 14, ("CD",): 30, ("AB", "CD"): 14}


def with_black_from_to(timeline, start_s, end_s):
    """Let the film's rows that meet a span be black; they may reach beyond it."""
    table = timeline.table.copy()
    meets_span = (table["start_s"] < end_s) & (table["end_s"] > start_s)
    table.loc[meets_span, "flags"] = "black"
    return replace(timeline, table=table)


def test_a_judged_window_that_is_found_to_be_black_is_no_gap_in_the_draw(planted_timeline, thirty_judgements):
    """AB judged 30 windows. Then the rows of the film that meet the 15th are found to be black.

    Rows may reach into neighbours of that window, so that some judged windows may be black with it. Black is
    no content, and a share is of content: the other windows are still a random draw of it. So black windows
    are left out, and none of the others counts as judged after a gap. The judgements do not say what content
    windows had when they were drawn (`content_s`): only the film itself tells.
    """
    judgements = thirty_judgements.with_clips([with_column(row, content_s="") for row in thirty_judgements])
    window_15 = judgements.clips[14]
    film_now = with_black_from_to(planted_timeline, window_15.start_s, window_15.end_s)
    cells_before = cells_of(planted_timeline)
    cells_now = cells_of(film_now)
    has_become_black = (cells_before.content_s > 0) & (cells_now.content_s == 0)
    judged_cells = [cells_now.index_of(row.start_s, row.end_s) for row in judgements]
    assert has_become_black[judged_cells[14]]

    windows_of_ab = judged_film(film_now, judgements).of("AB")

    n_judged_and_black = int(has_become_black[judged_cells].sum())
    assert windows_of_ab.n_after_gap == 0
    assert windows_of_ab.counts.judged == 30 - n_judged_and_black


def test_one_window_at_two_places_is_refused(planted_timeline, thirty_judgements):
    """A slip gave the 15th row the times of the 16th: nobody knows which window was judged."""
    row_15 = thirty_judgements.clips[14]
    row_16 = thirty_judgements.clips[15]
    with_times_of_16 = replace(row_15, start_s=row_16.start_s, end_s=row_16.end_s)

    with pytest.raises(FilmError, match="one window, at place 15 and at place 16 of the draw"):
        correct_rate(planted_timeline, with_row_15(thirty_judgements, with_times_of_16))


def test_the_place_of_a_spoilt_row_is_drawn_again(planted_timeline, thirty_judgements, tmp_path):
    """AB judged 30 windows, and the 15th row has a wrong start: its window is the next one to be judged.

    Judging it anew mends the draw, also if the spoilt row stays in the table: the rate is again that of all
    30 windows.
    """
    row_15 = thirty_judgements.clips[14]
    with_spoilt_row = with_row_15(thirty_judgements, begun_later(row_15))

    (next_window,) = choose_next([planted_timeline], 1, blind=True, judged=with_spoilt_row)
    judged_anew = judged([replace(next_window, clip_id="again")], tmp_path)
    mended = with_spoilt_row.with_clips([*with_spoilt_row, *judged_anew])
    rate_of_mended, _notices = correct_rate(planted_timeline, mended)
    rate_without_slip, _notices = correct_rate(planted_timeline, thirty_judgements)

    assert next_window.extras["place"] == "15"
    assert next_window.start_s == row_15.start_s
    assert rate_of_mended == rate_without_slip


def test_a_window_whose_end_was_rounded_to_milliseconds_is_the_same_window(
    thirty_judgements, planted_timeline
):
    """AB and CD judged the same 30 windows. In CD's table their ends are off by less than half a millisecond.

    That is so where a table has times with three decimals, and the desk keeps all of them. The windows are
    the same: 30 are judged by both.
    """
    rows = list(thirty_judgements)
    of_cd = [
        replace(row, annotator="CD", clip_id=f"CD-{row.clip_id}", end_s=row.end_s + 0.0004) for row in rows
    ]

    film = judged_film(planted_timeline, thirty_judgements.with_clips([*rows, *of_cd]))

    assert film.panel().counts.judged == 30
