"""A table of pairs to judge may be half filled in, and a mistyped choice is told what to write."""

import pytest

from tests.command import obygaze

CLIPS = "clip_id,movie,video,start_s,end_s,level,concepts,annotator,codebook\n" + "".join(
    f"c{n},f{n % 2},v{n}.mp4,,,,,,mediaeval15\n" for n in range(4)
)


@pytest.fixture
def rank_four_clips(tmp_path, monkeypatch, capsys):
    """Return a function that ranks the clips c0 to c3 by comparisons: exit code, and what is printed.

    A comparison is a row "worker,left,right,chosen": who compared which two clips, and the one they chose.
    `ask` makes the command propose the next pairs, too.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clips.csv").write_text(CLIPS)

    def rank_four_clips(*rows, ask=False):
        (tmp_path / "pairs.csv").write_text("\n".join(["worker,left,right,chosen", *rows, ""]))
        options = ["--ask"] if ask else []
        code = obygaze(
            "manifest", "rank", "clips.csv", "pairs.csv", "--scale", "valence", *options, "--out", "out.csv"
        )
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return rank_four_clips


FOUR_JUDGED_ROWS = ("ann,c0,c1,c0", "ann,c1,c2,c1", "bo,c2,c3,c2", "bo,c0,c3,c0")
"""Comparisons by ann and bo, on lines 2 to 5 of the table."""


@pytest.mark.parametrize("ask", [False, True], ids=["to rank", "to ask for further pairs"])
def test_rows_that_nobody_judged_yet_are_left_out_and_counted(rank_four_clips, ask):
    """A row is "worker,left,right,chosen". Four rows are judged, and in two no clip is chosen.

    The first of these two does not name a worker either.
    """
    without_worker_and_choice = ",c0,c2,"
    without_choice = "ann,c1,c3,"

    exit_code, printed = rank_four_clips(
        *FOUR_JUDGED_ROWS, without_worker_and_choice, without_choice, ask=ask
    )

    assert exit_code == 0
    assert "pairs.csv: 2 rows left out, as no clip is chosen" in printed


def test_a_table_without_any_choice_ranks_nothing(rank_four_clips):
    """A row is "worker,left,right,chosen": here only the two clips to be compared are named."""
    exit_code, printed = rank_four_clips(",c0,c2,", ",c1,c3,")

    assert exit_code == 1
    assert "there is no comparison to rank by" in printed


@pytest.mark.parametrize("choice", ["left", "L", "1", "c3"])
def test_a_choice_that_is_no_clip_of_the_row_is_refused_with_the_two_that_are(rank_four_clips, choice):
    """On line 6, below the header and four good rows, ann compares c0 with c2 and names neither of them."""
    row_on_line_6 = f"ann,c0,c2,{choice}"

    exit_code, printed = rank_four_clips(*FOUR_JUDGED_ROWS, row_on_line_6)

    assert exit_code == 1
    assert f"line 6, column chosen: {choice!r} is neither of the two clips: write 'c0' or 'c2'" in printed


def test_a_choice_needs_its_worker(rank_four_clips):
    """On line 6, below the header and four good rows, c0 is chosen of c0 and c2, and nobody says by whom."""
    row_on_line_6 = ",c0,c2,c0"

    exit_code, printed = rank_four_clips(*FOUR_JUDGED_ROWS, row_on_line_6)

    assert exit_code == 1
    assert "line 6, column worker: no worker is named" in printed
