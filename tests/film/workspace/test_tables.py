"""Tables of what people decide: written of the ledger, edited elsewhere, and read back."""

import csv
import os
import shutil

import numpy as np
import pytest

from obygaze_features.errors import ObygazeError
from obygaze_film.workspace.decisions import JUDGEMENTS, NOTES, PASSAGES, Decisions
from obygaze_film.workspace.judged_tables import read_judged
from tests.files import rows_of
from tests.film.workspace.deciding import HEAD, ROW, judge, open_again, standing_levels, what_stands


def test_concepts_that_may_have_stayed_ticked_by_mistake_are_named(decisions, tmp_path):
    """In an earlier version the concepts of a span stayed ticked at the next one.

    So a table of that version may have, at a span after another, concepts that nobody chose there: a notice
    names the line. A ledger was never written by that version, and beside one there is no such notice.
    """
    judge(decisions, 10, 15, "violent", concepts=["Gun"])
    judge(decisions, 30, 35, "violent", concepts=["Gun"])  # line 3 of the table, after the head
    judge(decisions, 50, 55, "violent", concepts=[])
    assert open_again(decisions).notices == []

    table_alone = tmp_path / "table_alone"
    table_alone.mkdir()
    shutil.copy(decisions.folder / JUDGEMENTS, table_alone)
    notices = Decisions(table_alone, decisions.film, decisions.codebook).notices
    (notice,) = [notice for notice in notices if "1 decision " in notice]
    assert notice.endswith(" line 3")


def table_of_judgements(*rows):
    """Write a table of judgements, as an earlier version did: `HEAD` names the columns."""
    lines = [",".join(row.get(column, "") for column in HEAD.strip().split(",")) for row in rows]
    return HEAD + "".join(f"{line}\n" for line in lines)


@pytest.fixture
def earlier_version(scored_tt1):
    """A folder with tables and no ledger: two judgements of XY, with a column of their own, and a note."""
    folder = scored_tt1[0]
    by_xy = {"movie": "tt1", "annotator": "XY", "seen_score": "1"}
    first = by_xy | {"clip_id": "a", "start_s": "0", "end_s": "8.50", "level": "calm", "mine": "kept"}
    second = by_xy | {"clip_id": "b", "start_s": "8", "end_s": "16", "level": "Violent", "concepts": "gun"}
    (folder / JUDGEMENTS).write_text(table_of_judgements(first, second), "utf-8")
    (folder / NOTES).write_text(
        "movie,start_s,end_s,annotator,note,written_at\ntt1,0,1,XY,why,2020\n", "utf-8"
    )
    return folder


def test_tables_without_a_ledger_are_read_into_one_once(earlier_version, scored_tt1):
    """An earlier version wrote tables only. Their rows become decisions, and a notice names each file.

    8.50 is read as the number 8.5, and "Violent" as the codebook's level "violent". The tables are written
    anew from the ledger, and keep the user's columns `mine` and `written_at`. A second opening has nothing to
    report. XY did not decide in this sitting, so has nothing to undo.
    """
    decisions = Decisions(*scored_tt1)
    assert what_stands(decisions)["judgement"] == [("XY", 0, 8.5, "calm", ""), ("XY", 8, 16, "violent", "")]
    assert what_stands(decisions)["note"] == [("XY", 0, 1, None, "why")]
    of_judgements, of_notes = decisions.notices
    assert str(earlier_version / JUDGEMENTS) in of_judgements
    assert str(earlier_version / NOTES) in of_notes
    assert [row["mine"] for row in rows_of(earlier_version / JUDGEMENTS)] == ["kept", ""]
    assert [row["written_at"] for row in rows_of(earlier_version / NOTES)] == ["2020"]

    again = open_again(decisions)
    assert again.notices == []
    assert what_stands(again) == what_stands(decisions)
    assert decisions.undo("XY") is None


def test_an_old_table_that_comes_back_removes_nothing(earlier_version, scored_tt1):
    """A program that synchronises folders brings back the table as it was with the two judgements of XY.

    AB's two, one before and one after it, stay beside them: 4 in all. A row that is missing is no
    deletion.
    """
    path = earlier_version / JUDGEMENTS
    old_table = path.read_bytes()
    decisions = Decisions(*scored_tt1)
    judge(decisions, 10, 20)
    again = open_again(decisions)
    path.write_bytes(old_table)
    judge(again, 30, 40)

    assert again.notices
    assert all(str(path) in notice for notice in again.notices)
    assert len(standing_levels(again)) == 4
    assert len(rows_of(path)) == 4


@pytest.mark.parametrize(
    ("movie_in_row", "movie"),
    [("TT1", "tt1"), ("0000001", "tt1"), ("x/tt1.mkv", "tt1"), ("tt2", "tt2")],
    ids=["in capitals", "digits of IMDb", "the video's file", "another film"],
)
def test_a_row_is_of_the_film_however_it_spells_its_id(scored_tt1, movie_in_row, movie):
    """TT1, 0000001 and x/tt1.mkv all name the film tt1: a notice "of another film" is only of tt2."""
    cells = {"clip_id": "a", "movie": movie_in_row, "start_s": "8", "end_s": "16"}
    judgement = cells | {"level": "calm", "annotator": "XY", "seen_score": "1"}
    (scored_tt1[0] / JUDGEMENTS).write_text(table_of_judgements(judgement), "utf-8")
    decisions = Decisions(*scored_tt1)

    (clip,) = decisions.kept["judgement"]
    assert clip.movie == movie
    assert any("of another film" in notice for notice in decisions.notices) == (movie == "tt2")


def replace_text(path, old, new):
    """Replace a text in a file, which must be there."""
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def add_row(path, **cells):
    """Add a row at the end of a table; columns that are not named stay empty."""
    with path.open(encoding="utf-8") as file:
        columns = next(csv.reader(file))
    with path.open("a", encoding="utf-8", newline="") as file:
        csv.DictWriter(file, columns, lineterminator="\n").writerow(cells)


def test_a_decision_is_added_to_a_table_edited_meanwhile(decisions):
    """AB judges twice, both rows are changed to violent, a colleague's row is added, and AB judges again.

    What was edited by hand is kept as decisions, and the new one is written beside it: 4 in all.
    """
    path = decisions.folder / JUDGEMENTS
    first_id = judge(decisions, 0, 8)
    judge(decisions, 20, 28)
    replace_text(path, ",calm,", ",violent,")
    cells = {"clip_id": "b", "movie": "tt1", "start_s": 10, "end_s": 20, "level": "violent"}
    add_row(path, **cells, annotator="COLLEAGUE", seen_score=1)
    judge(decisions, 30, 38)

    expected = [("AB", "calm"), ("AB", "violent"), ("AB", "violent"), ("COLLEAGUE", "violent")]
    assert sorted(standing_levels(decisions)) == expected
    assert sorted((row["annotator"], row["level"]) for row in rows_of(path)) == expected
    assert what_stands(open_again(decisions)) == what_stands(decisions)
    # A changed row is a new decision, which replaces the earlier one.
    assert first_id not in {clip.clip_id for clip in decisions.kept["judgement"]}
    (notice,) = decisions.notices
    assert str(path) in notice
    n_sittings = len([*decisions.folder.glob("ledger/*.jsonl")])
    assert n_sittings == 2  # that of the desk, and one of the table


def save_as_a_spreadsheet_does(path):
    """Write a table with semicolons, a byte order mark, ends of lines of Windows, and 8.50 for 8.5."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [[cell.replace("8.5", "8.50") for cell in row] for row in csv.reader(file)]
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=";", lineterminator="\r\n").writerows(rows)


def test_a_table_saved_by_a_spreadsheet_changes_nothing(decisions):
    """A spreadsheet writes the same rows in another way; only cells that differ in meaning are edits."""
    judge(decisions, 0, 8.5, who="=A")
    judge(decisions, 10, 20, "violent", concepts=["Gun", "Dim light"])
    before = what_stands(decisions)
    path = decisions.folder / JUDGEMENTS
    save_as_a_spreadsheet_does(path)
    text = path.read_bytes()
    assert text.startswith(b"\xef\xbb\xbf")
    assert b'"Gun;Dim light"' in text
    assert b"8.50" in text

    again = open_again(decisions)
    assert what_stands(again) == before
    assert again.notices == []
    assert len([*decisions.folder.glob("ledger/*.jsonl")]) == 1  # nothing came in


def test_a_row_deleted_from_a_table_is_written_again(decisions):
    """A row may be missing by accident, so that deleting it deletes no decision: that is done at the desk."""
    path = decisions.folder / JUDGEMENTS
    judge(decisions, 0, 8)
    judge(decisions, 10, 20)
    header, first_row, _ = path.read_text("utf-8").splitlines(keepends=True)
    written_at = path.stat().st_mtime
    path.write_text(header + first_row, "utf-8")
    nine_seconds_later = written_at + 9  # another time on any disk, however it rounds times
    os.utime(path, (nine_seconds_later, nine_seconds_later))

    again = open_again(decisions)
    (notice,) = again.notices
    assert str(path) in notice
    assert len(rows_of(path)) == 2
    assert len(standing_levels(again)) == 2


def test_a_deleted_table_is_written_again_with_the_next_decision(decisions):
    """The ledger has both decisions, so that the new table has two rows."""
    path = decisions.folder / JUDGEMENTS
    judge(decisions, 0, 8)
    path.unlink()
    judge(decisions, 30, 40)
    assert len(rows_of(path)) == 2


NO_JUDGEMENTS = {
    "a start that is no number": "a,tt1,,abc,8,calm,,AB,1,,,",
    "a start that is not a number": "a,tt1,,nan,8,calm,,AB,1,,,",
    "an end before the start": "a,tt1,,8,0,calm,,AB,1,,,",
    "no start": "a,tt1,,,8,calm,,AB,1,,,",
    "an end after the film": "a,tt1,,0,1e9,calm,,AB,1,,,",
    "a level of another codebook": "a,tt1,,0,8,S,,AB,1,,,",
    "a concept of another codebook": "a,tt1,,0,8,calm,Body,AB,1,,,",
    "no annotator": "a,tt1,,0,8,calm,,,1,,,",
    "neither blind nor in sight": "a,tt1,,0,8,calm,,AB,,,,",
    "seen_score is 2": "a,tt1,,0,8,calm,,AB,2,,,",
    "a name that turns the direction of texts": "a,tt1,,0,8,calm,,A\u202eB,1,,,",
    "no film": "a,,,0,8,calm,,AB,1,,,",
}
"""Rows under `HEAD` that are no judgement, by what is wrong."""


@pytest.mark.parametrize("wrong_row", NO_JUDGEMENTS.values(), ids=NO_JUDGEMENTS)
def test_a_table_with_a_wrong_row_is_refused_by_file_and_line(scored_tt1, wrong_row):
    """The wrong row is on line 3, after the header and a good row. A film with such a table is not opened."""
    table = scored_tt1[0] / JUDGEMENTS
    table.write_text(f"{HEAD}a,tt1,,0,8,calm,,XY,1,,,\n{wrong_row}\n", "utf-8")
    with pytest.raises(ObygazeError, match=rf"{JUDGEMENTS}.*line 3"):
        Decisions(*scored_tt1)


def test_a_table_that_becomes_wrong_stays_as_it_is_until_corrected(decisions):
    """The user's edit must not be lost, so that the table is not written over as long as it has a wrong row.

    Once the row is gone, the table has XY's row and the three judgements of AB made meanwhile: 4.
    """
    path = decisions.folder / JUDGEMENTS
    wrong_row = NO_JUDGEMENTS["an end after the film"]
    path.write_text(f"{HEAD}a,tt1,,0,8,calm,,XY,1,,,\n{wrong_row}\n", "utf-8")
    before = path.read_bytes()
    judge(decisions, 10, 20)
    judge(decisions, 20, 30)

    (notice,) = decisions.notices
    assert str(path) in notice
    assert "line 3" in notice
    assert path.read_bytes() == before

    replace_text(path, wrong_row, "")
    judge(decisions, 30, 40)
    assert len(rows_of(path)) == len(standing_levels(decisions)) == 4


def test_a_file_of_other_columns_is_refused(scored_tt1):
    (scored_tt1[0] / PASSAGES).write_text("a,b\n1,2\n", "utf-8")
    with pytest.raises(ObygazeError, match=PASSAGES):
        Decisions(*scored_tt1)


def test_commands_see_decisions_that_are_not_yet_in_the_table(decisions):
    """CD's judgement came by a synchronised folder, into the ledger alone.

    The command writes the table anew.
    """
    judge(decisions, 10, 20)
    decisions.ledger.add("judgement", ROW | {"annotator": "CD"})  # as a synchronised folder gets it
    read = read_judged({decisions.folder: decisions.film}, decisions.codebook, (JUDGEMENTS,))
    assert len(read.manifest) == len(rows_of(decisions.folder / JUDGEMENTS)) == 2
    assert all("spans read" in notice for notice in read.notices)  # and nothing is wrong


# --- a table states what stands
# ---------------------------------------------------------------------------
def edit_rows(path, change):
    """Edit a table as a spreadsheet does: read its rows, change them, write them all."""
    rows = rows_of(path)
    columns = [*rows[0]]
    change(rows)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def judged(decisions):
    """Return annotator, start and level of each judgement that stands."""
    return sorted((clip.annotator, clip.start_s, clip.level) for clip in decisions.kept["judgement"])


def copy_first_row_for_bc(rows):
    rows.append(rows[0] | {"annotator": "BC"})


def give_first_row_to_bc(rows):
    rows[0].update(annotator="BC", level="violent")


def fill_first_row_down(rows):
    rows += [rows[0] | {"start_s": f"{start}", "end_s": f"{start + 8}"} for start in (24, 32)]


def change_first_row_and_copy_it(rows):
    rows[0]["level"] = "violent"
    rows.append(rows[0] | {"start_s": "24", "end_s": "32"})


def empty_ids(rows):
    for row in rows:
        row["clip_id"] = ""


def empty_definitions(rows):
    for row in rows:
        row["definition"] = ""


AB_AT_0, AB_AT_8 = ("AB", 0, "calm"), ("AB", 8, "calm")


@pytest.mark.parametrize(
    ("edit", "expected", "is_of_two_people"),
    [
        (copy_first_row_for_bc, [AB_AT_0, AB_AT_8, ("BC", 0, "calm")], True),
        (give_first_row_to_bc, [AB_AT_0, AB_AT_8, ("BC", 0, "violent")], True),
        (fill_first_row_down, [AB_AT_0, AB_AT_8, ("AB", 24, "calm"), ("AB", 32, "calm")], False),
        (change_first_row_and_copy_it, [("AB", 0, "violent"), AB_AT_8, ("AB", 24, "violent")], False),
        (empty_ids, [AB_AT_0, AB_AT_8], False),
        (empty_definitions, [AB_AT_0, AB_AT_8], False),
    ],
)
def test_a_row_with_the_id_of_a_judgement_is_new_if_it_is_of_another_span_or_person(
    decisions, edit, expected, is_of_two_people
):
    """AB judged two spans. A row that is copied has the id of the first: nobody can edit another's judgement.

    The notice names both people, in case AB's name was changed by mistake. Without its id or definition a row
    is still known by its annotator, span and level.
    """
    judge(decisions, 0, 8)
    judge(decisions, 8, 16)
    edit_rows(decisions.folder / JUDGEMENTS, edit)
    decisions.refresh()

    assert judged(decisions) == judged(open_again(decisions)) == expected
    assert decisions.conflicts() == set()
    assert any("AB" in notice and "BC" in notice for notice in decisions.notices) == is_of_two_people


def test_changing_an_edited_row_at_the_desk_can_be_undone(decisions):
    """A row was edited to "unsure", then judged "violent" at the desk: undo brings "unsure" back.

    The edited row is a second version already, so that its line in the ledger replaces another one.
    """
    judge(decisions, 0, 8, "calm")
    judge(decisions, 0, 8, "violent")
    edit_rows(decisions.folder / JUDGEMENTS, lambda rows: rows[0].update(level="unsure"))
    decisions.refresh()
    assert judged(decisions) == [("AB", 0, "unsure")]

    judge(decisions, 0, 8, "violent")
    assert judged(decisions) == [("AB", 0, "violent")]
    decisions.undo("AB")
    assert judged(decisions) == [("AB", 0, "unsure")]
    assert judged(open_again(decisions)) == [("AB", 0, "unsure")]


ACTS = ("leave", "level", "give", "move", "copy", "copy for another", "delete")


def random_span(rng, step):
    """Draw a span that no other step draws: it begins at second 60 + `step`, after all judgements."""
    milliseconds = rng.integers(1, 999)
    return {"start_s": f"{60 + step}", "end_s": f"{61 + step}.{milliseconds:03d}"}


def edit_at_random(rows, rng, step):
    """Do one of `ACTS` with each row; return what was done, by the id of the row's line."""
    act_by_id = {}
    for row in [*rows]:
        act = str(rng.choice(ACTS))
        act_by_id[row["clip_id"]] = act
        span = random_span(rng, step)
        if act == "level":
            row["level"] = "violent" if row["level"] == "calm" else "calm"
        elif act == "give":
            row["annotator"] += "X"
        elif act == "move":
            row.update(span)
        elif act == "copy":
            rows.append(row | span)
        elif act == "copy for another":
            rows.append(row | span | {"annotator": f"{row['annotator']}Y"})
        elif act == "delete":
            rows.remove(row)
    return act_by_id


def edit_table_at_random(path, rng, step):
    """Edit each row of a table of judgements at random; return what was done, by the id of the row's line."""
    act_by_id = {}

    def edit(rows):
        act_by_id.update(edit_at_random(rows, rng, step))

    edit_rows(path, edit)
    return act_by_id


def test_only_another_level_or_span_in_a_row_replaces_a_judgement(decisions):
    """People may edit the table of judgements in a spreadsheet. What they do decides what becomes of them.

    A row with another level or span replaces its judgement. A row that is given to somebody, copied or
    deleted leaves the judgement as it is. Each edit but "leave" and "delete" adds one judgement.
    """
    rng = np.random.default_rng(0)
    for number in range(6):
        judge(decisions, 8 * number, 8 * number + 8, "calm", who="AB" if number % 2 else "CD")
    path = decisions.folder / JUDGEMENTS
    for step in range(8):
        ids_before = {*decisions.lines}
        act_by_id = edit_table_at_random(path, rng, step)
        decisions.refresh()
        ids_after = {*decisions.lines}

        ids_of_replacing_rows = {line_id for line_id, act in act_by_id.items() if act in {"level", "move"}}
        assert ids_before - ids_after == ids_of_replacing_rows
        adding_acts = [act for act in act_by_id.values() if act not in {"leave", "delete"}]
        assert len(ids_after - ids_before) == len(adding_acts)
        assert len(rows_of(path)) == len(ids_after)  # the table is written anew
    assert judged(open_again(decisions)) == judged(decisions)
