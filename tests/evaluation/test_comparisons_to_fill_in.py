"""A table of pairs to judge may be half filled in, and a mistyped choice is told what to write."""

import pytest

from tests.command import obygaze

CLIPS = "clip_id,movie,video,start_s,end_s,level,concepts,annotator,codebook\n" + "".join(
    f"c{n},f{n % 2},v{n}.mp4,,,,,,mediaeval15\n" for n in range(4)
)


@pytest.fixture
def ranked(tmp_path, monkeypatch, capsys):
    """Return a function that ranks four clips by rows of comparisons: exit code, and what is printed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clips.csv").write_text(CLIPS)

    def ranked(*rows, ask=False):
        (tmp_path / "pairs.csv").write_text("\n".join(["worker,left,right,chosen", *rows, ""]))
        options = ["--ask"] if ask else []
        code = obygaze(
            "manifest", "rank", "clips.csv", "pairs.csv", "--scale", "valence", *options, "--out", "out.csv"
        )
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return ranked


JUDGED = ("ann,c0,c1,c0", "ann,c1,c2,c1", "bo,c2,c3,c2", "bo,c0,c3,c0")


@pytest.mark.parametrize("ask", [False, True])
def test_rows_that_nobody_judged_yet_are_left_out_and_counted(ranked, ask):
    code, printed = ranked(*JUDGED, ",c0,c2,", "ann,c1,c3,", ask=ask)

    assert code == 0
    assert "pairs.csv: 2 rows left out, as no clip is chosen" in printed


def test_a_table_without_any_choice_ranks_nothing(ranked):
    code, printed = ranked(",c0,c2,", ",c1,c3,")

    assert code == 1
    assert "there is no comparison to rank by" in printed


@pytest.mark.parametrize("choice", ["left", "L", "1", "c3"])
def test_a_choice_that_is_no_clip_of_the_row_is_told_the_two(ranked, choice):
    code, printed = ranked(*JUDGED, f"ann,c0,c2,{choice}")

    assert code == 1
    assert f"line 6, column chosen: {choice!r} is neither of the two clips: write 'c0' or 'c2'" in printed


def test_a_choice_needs_its_worker(ranked):
    code, printed = ranked(*JUDGED, ",c0,c2,c0")

    assert code == 1
    assert "line 6, column worker: no worker is named" in printed
