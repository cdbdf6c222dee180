"""Tables of comparisons: one given twice, or as a copy, is refused; one may be half filled in.

Each judgement of a copy would count twice. A mistyped choice is told what to write.
"""

import pytest

from tests.command import obygaze

CLIPS = "clip_id,movie,video,start_s,end_s,level,concepts,annotator,codebook\n" + "".join(
    f"c{n},f{n % 2},v{n}.mp4,,,,,,mediaeval15\n" for n in range(4)
)
JUDGED = ("ann,c0,c1,c0", "ann,c1,c2,c1", "bo,c2,c3,c2", "bo,c0,c3,c0")
"""Comparisons by ann and bo, on lines 2 to 5 of a table: who compared which two clips, and the choice."""


@pytest.fixture
def rank_by_tables(tmp_path, monkeypatch, capsys):
    """Return a function that ranks clips c0 to c3 by tables (name -> rows): exit code, and what is printed.

    A row is "worker,left,right,chosen": who compared which two clips, and the one they chose. `ask` makes the
    command propose the next pairs, too.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clips.csv").write_text(CLIPS)

    def ranked(tables, *paths, ask=False):
        for name, rows in tables.items():
            (tmp_path / name).write_text("\n".join(["worker,left,right,chosen", *rows, ""]))
        options = ["--ask"] if ask else []
        code = obygaze(
            "manifest", "rank", "clips.csv", *paths, "--scale", "valence", *options, "--out", "out.csv"
        )
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return ranked


def test_one_table_named_twice_is_refused(rank_by_tables):
    """The four judgements of one.csv would count twice."""
    code, printed = rank_by_tables({"one.csv": JUDGED}, "one.csv", "one.csv")

    assert code == 1
    assert "one.csv: the same 4 judgements in the same order as one.csv: give one of the two" in printed


def test_a_copy_of_a_table_of_comparisons_is_refused_even_if_it_has_a_row_more_without_a_choice(
    rank_by_tables,
):
    """Two tables have the same four judgements, which would count twice.

    The second has one row more, of two clips that nobody has compared yet, and is a copy all the same.
    """
    without_choice = ",c1,c3,"

    code, printed = rank_by_tables(
        {"one.csv": JUDGED, "copy.csv": (*JUDGED, without_choice)}, "one.csv", "copy.csv"
    )

    assert code == 1
    assert "copy.csv: the same 4 judgements in the same order as one.csv" in printed


def test_judgements_of_a_second_round_of_the_same_pairs_count_like_those_of_the_first(rank_by_tables):
    """In a first table ann and bo compared four pairs of clips, and chose one of each.

    In a second round they compared the same pairs once more. Of c0 and c1 ann chose c0 first and c1 now, by
    which the second table is no copy of the first, which would be refused. So each of its four rows counts,
    and a notice says that they repeat judgements.
    """
    first_round = JUDGED
    second_round = ("ann,c0,c1,c1", *JUDGED[1:])

    code, printed = rank_by_tables({"one.csv": first_round, "two.csv": second_round}, "one.csv", "two.csv")

    assert code == 0
    assert "4 rows repeat a worker's judgement of two clips, and each counts" in printed


def test_two_tables_that_nobody_judged_yet_are_not_refused_as_copies(rank_by_tables):
    """The tables a.csv and b.csv ask for the same two pairs of clips, without a worker or a choice.

    Tables with the same judgements are refused, as these would count twice. Here there are none to count
    twice; one.csv, which is given too, has judgements.
    """
    unjudged = (",c0,c1,", ",c1,c2,")  # columns worker, left, right, chosen

    code, printed = rank_by_tables(
        {"one.csv": JUDGED, "a.csv": unjudged, "b.csv": unjudged}, "one.csv", "a.csv", "b.csv"
    )

    assert code == 0
    assert "same" not in printed


@pytest.mark.parametrize("ask", [False, True], ids=["to rank", "to ask for further pairs"])
def test_rows_that_nobody_judged_yet_are_left_out_and_counted(rank_by_tables, ask):
    """A row is "worker,left,right,chosen". Four rows are judged, and in two no clip is chosen.

    The first of these two does not name a worker either.
    """
    without_worker_and_choice = ",c0,c2,"
    without_choice = "ann,c1,c3,"

    exit_code, printed = rank_by_tables(
        {"pairs.csv": (*JUDGED, without_worker_and_choice, without_choice)}, "pairs.csv", ask=ask
    )

    assert exit_code == 0
    assert "pairs.csv: 2 rows left out, as no clip is chosen" in printed


def test_a_table_without_any_choice_ranks_nothing(rank_by_tables):
    """A row is "worker,left,right,chosen": here only the two clips to be compared are named."""
    exit_code, printed = rank_by_tables({"pairs.csv": (",c0,c2,", ",c1,c3,")}, "pairs.csv")

    assert exit_code == 1
    assert "there is no comparison to rank by" in printed


@pytest.mark.parametrize("choice", ["left", "c3"])
def test_a_choice_that_is_no_clip_of_the_row_is_refused_with_the_two_that_are(rank_by_tables, choice):
    """On line 6, below the header and four good rows, ann compares c0 with c2 and names neither of them."""
    row_on_line_6 = f"ann,c0,c2,{choice}"

    exit_code, printed = rank_by_tables({"pairs.csv": (*JUDGED, row_on_line_6)}, "pairs.csv")

    assert exit_code == 1
    assert f"line 6, column chosen: {choice!r} is neither of the two clips: write 'c0' or 'c2'" in printed


def test_a_choice_needs_its_worker(rank_by_tables):
    """On line 6, below the header and four good rows, c0 is chosen of c0 and c2, and nobody says by whom."""
    row_on_line_6 = ",c0,c2,c0"

    exit_code, printed = rank_by_tables({"pairs.csv": (*JUDGED, row_on_line_6)}, "pairs.csv")

    assert exit_code == 1
    assert "line 6, column worker: no worker is named" in printed
