"""A table of comparisons that is given twice, or as a copy, is refused: each judgement would count twice."""

import pytest

from tests.command import obygaze

CLIPS = "clip_id,movie,video,start_s,end_s,level,concepts,annotator,codebook\n" + "".join(
    f"c{n},f{n % 2},v{n}.mp4,,,,,,mediaeval15\n" for n in range(4)
)
JUDGED = ("ann,c0,c1,c0", "ann,c1,c2,c1", "bo,c2,c3,c2", "bo,c0,c3,c0")


@pytest.fixture
def ranked(tmp_path, monkeypatch, capsys):
    """Return a function that ranks four clips by tables (name -> rows): exit code, and what is printed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clips.csv").write_text(CLIPS)

    def ranked(tables, *paths):
        for name, rows in tables.items():
            (tmp_path / name).write_text("\n".join(["worker,left,right,chosen", *rows, ""]))
        code = obygaze("manifest", "rank", "clips.csv", *paths, "--scale", "valence", "--out", "out.csv")
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return ranked


def test_one_table_named_twice_is_refused(ranked):
    code, printed = ranked({"one.csv": JUDGED}, "one.csv", "one.csv")

    assert code == 1
    assert "one.csv: the same 4 judgements in the same order as one.csv: give one of the two" in printed


def test_a_copy_is_refused_though_rows_without_a_choice_differ(ranked):
    code, printed = ranked({"one.csv": JUDGED, "copy.csv": (*JUDGED, ",c1,c3,")}, "one.csv", "copy.csv")

    assert code == 1
    assert "copy.csv: the same 4 judgements in the same order as one.csv" in printed


def test_a_second_round_counts_beside_the_first(ranked):
    second_round = ("ann,c0,c1,c1", *JUDGED[1:])

    code, printed = ranked({"one.csv": JUDGED, "two.csv": second_round}, "one.csv", "two.csv")

    assert code == 0
    assert "4 rows repeat a worker's judgement of two clips, and each counts" in printed


def test_two_tables_that_nobody_judged_yet_are_no_copies(ranked):
    unjudged = (",c0,c1,", ",c1,c2,")

    code, printed = ranked(
        {"one.csv": JUDGED, "a.csv": unjudged, "b.csv": unjudged}, "one.csv", "a.csv", "b.csv"
    )

    assert code == 0
    assert "same" not in printed
