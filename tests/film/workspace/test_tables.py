"""Tables of what people decide: written of the ledger, edited elsewhere, and read back."""

import csv
import errno
import os
import shutil
from typing import NamedTuple

import numpy as np
import pytest

from obygaze_features import io
from obygaze_features.errors import ObygazeError
from obygaze_film.errors import FilmError
from obygaze_film.workspace.decisions import JUDGEMENTS, NOTES, PASSAGES, Decisions
from obygaze_film.workspace.judged_tables import read_judged
from tests.files import rows_of
from tests.film.workspace.deciding import (
    HEADER_OF_JUDGEMENTS,
    ROW_OF_AB,
    Standing,
    judge,
    levels_in_force,
    lines_in_force,
    reopen,
)


def test_concepts_that_may_have_stayed_ticked_by_mistake_are_named(decisions, tmp_path):
    """In an earlier version the concepts of a span stayed ticked at the next one.

    So a table of that version may have, at a span after another, concepts that nobody chose there: a notice
    names the line. A ledger was never written by that version, and beside one there is no such notice.
    """
    judge(decisions, start=10, end=15, level="violent", concepts=["Gun"])
    judge(
        decisions, start=30, end=35, level="violent", concepts=["Gun"]
    )  # line 3 of the table, after the head
    judge(decisions, start=50, end=55, level="violent", concepts=[])
    folder_without_ledger = tmp_path / "table_alone"
    folder_without_ledger.mkdir()
    shutil.copy(decisions.folder / JUDGEMENTS, folder_without_ledger)

    with_ledger = reopen(decisions)
    without_ledger = Decisions(folder_without_ledger, decisions.film, decisions.codebook)

    assert with_ledger.notices == []
    (notice,) = [notice for notice in without_ledger.notices if "1 decision " in notice]
    assert notice.endswith(" line 3")


def table_of_judgements(*rows):
    """Write a table of judgements, as an earlier version did: `HEADER_OF_JUDGEMENTS` names the columns."""
    lines = [
        ",".join(row.get(column, "") for column in HEADER_OF_JUDGEMENTS.strip().split(",")) for row in rows
    ]
    return HEADER_OF_JUDGEMENTS + "".join(f"{line}\n" for line in lines)


@pytest.fixture
def folder_of_earlier_version(scored_tt1):
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


def test_tables_without_a_ledger_are_read_into_one(folder_of_earlier_version, scored_tt1):
    """An earlier version wrote tables only: two judgements of XY and a note. Their rows become decisions.

    XY called 0 to 8.50 s calm, and 8 to 16 s "Violent": 8.50 is read as the number 8.5, and "Violent" as the
    codebook's level "violent". A notice names each file.
    """
    decisions = Decisions(*scored_tt1)

    in_force = lines_in_force(decisions)
    assert in_force["judgement"] == [
        Standing("XY", start_s=0, end_s=8.5, level="calm"),
        Standing("XY", start_s=8, end_s=16, level="violent"),
    ]
    assert in_force["note"] == [Standing("XY", start_s=0, end_s=1, level=None, note="why")]
    notice_on_judgements, notice_on_notes = decisions.notices
    assert str(folder_of_earlier_version / JUDGEMENTS) in notice_on_judgements
    assert str(folder_of_earlier_version / NOTES) in notice_on_notes


def test_tables_that_are_read_into_a_ledger_keep_the_users_columns(folder_of_earlier_version, scored_tt1):
    """An earlier version kept decisions in tables alone, to which the user added columns.

    They are `mine` in the table of two judgements, with "kept" in the first row, and `written_at` in that of
    notes. Opened, the film gets a ledger of what the tables say, and they are written anew from it.
    """
    Decisions(*scored_tt1)  # opens the film in its folder, which is that of the earlier version

    rows_of_judgements = rows_of(folder_of_earlier_version / JUDGEMENTS)
    assert [row["mine"] for row in rows_of_judgements] == ["kept", ""]
    (note,) = rows_of(folder_of_earlier_version / NOTES)
    assert note["written_at"] == "2020"


@pytest.mark.usefixtures("folder_of_earlier_version")
def test_tables_of_an_earlier_version_are_read_into_a_ledger_only_once(scored_tt1):
    """A folder has tables that an earlier version wrote, and no ledger: the first opening makes one of them.

    When the folder is opened again the tables are still there, and must not be read once more: nothing is
    reported, and the same decisions stand.
    """
    opened_first = Decisions(*scored_tt1)
    opened_again = reopen(opened_first)
    assert opened_again.notices == []
    assert lines_in_force(opened_again) == lines_in_force(opened_first)


@pytest.mark.usefixtures("folder_of_earlier_version")
def test_what_is_read_from_tables_is_not_undone(scored_tt1):
    """XY made the judgements in the tables, and did not decide in this sitting: there is nothing to undo."""
    decisions = Decisions(*scored_tt1)
    assert decisions.undo("XY") is None


def test_an_old_table_that_comes_back_removes_nothing(folder_of_earlier_version, scored_tt1):
    """A table had two judgements of XY, and AB added one; then synchronisation brings the old table back.

    AB judges once more. A row that is missing in a table is no deletion, so that all four judgements stand,
    and the notices name the table.
    """
    table = folder_of_earlier_version / JUDGEMENTS
    old_content = table.read_bytes()
    decisions = Decisions(*scored_tt1)
    judge(decisions, start=10, end=20, annotator="AB")
    opened_again = reopen(decisions)

    table.write_bytes(old_content)
    judge(opened_again, start=30, end=40, annotator="AB")

    assert len(levels_in_force(opened_again)) == 4
    assert len(rows_of(table)) == 4
    assert len(opened_again.notices) > 0
    for notice in opened_again.notices:
        assert str(table) in notice


def decisions_on_tt1_of_a_table_with_movie(scored_tt1, movie):
    """Read the decisions on the film tt1 from a table of one judgement, whose movie is spelt so."""
    cells = {"clip_id": "a", "movie": movie, "start_s": "8", "end_s": "16"}
    judgement = cells | {"level": "calm", "annotator": "XY", "seen_score": "1"}
    (scored_tt1.folder / JUDGEMENTS).write_text(table_of_judgements(judgement), "utf-8")
    return Decisions(*scored_tt1)


@pytest.mark.parametrize(
    "spelling",
    ["TT1", "0000001", "x/tt1.mkv"],
    ids=["in capitals", "digits of IMDb", "the video's file"],
)
def test_a_row_is_of_the_film_however_it_spells_its_id(scored_tt1, spelling):
    """A table's row may name the film tt1 in capitals, by its digits, or by its video: it is of tt1."""
    decisions = decisions_on_tt1_of_a_table_with_movie(scored_tt1, spelling)

    (clip,) = decisions.clips_by_kind["judgement"]
    assert clip.movie == "tt1"
    assert not any("of another film" in notice for notice in decisions.notices)


def test_a_row_of_another_film_stays_so_and_a_notice_says_it(scored_tt1):
    """In the folder of the film tt1 a table has one judgement, of the film tt2."""
    decisions = decisions_on_tt1_of_a_table_with_movie(scored_tt1, "tt2")

    (clip,) = decisions.clips_by_kind["judgement"]
    assert clip.movie == "tt2"
    assert any("of another film" in notice for notice in decisions.notices)


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
    table = decisions.folder / JUDGEMENTS
    judge(decisions, start=0, end=8, level="calm", annotator="AB")
    judge(decisions, start=20, end=28, level="calm", annotator="AB")
    replace_text(table, ",calm,", ",violent,")
    cells_of_colleague = {"clip_id": "b", "movie": "tt1", "start_s": 10, "end_s": 20, "level": "violent"}
    add_row(table, **cells_of_colleague, annotator="COLLEAGUE", seen_score=1)

    judge(decisions, start=30, end=38, level="calm", annotator="AB")

    expected_levels = [("AB", "calm"), ("AB", "violent"), ("AB", "violent"), ("COLLEAGUE", "violent")]
    assert sorted(levels_in_force(decisions)) == expected_levels
    levels_in_table = [(row["annotator"], row["level"]) for row in rows_of(table)]
    assert sorted(levels_in_table) == expected_levels
    assert lines_in_force(reopen(decisions)) == lines_in_force(decisions)


def test_an_edited_row_is_a_new_decision_in_a_sitting_of_its_own(decisions):
    """AB calls a span calm at the desk. In the table somebody changes this level to violent.

    At the next judgement the desk reads the table. The edited row replaces AB's judgement, and a notice names
    the table. The ledger has two files: that of the desk's sitting, and one of what came from the table.
    """
    table = decisions.folder / JUDGEMENTS
    id_at_the_desk = judge(decisions, start=0, end=8, level="calm", annotator="AB")
    replace_text(table, ",calm,", ",violent,")

    judge(decisions, start=30, end=38, level="calm", annotator="AB")

    ids_in_force = [clip.clip_id for clip in decisions.clips_by_kind["judgement"]]
    assert id_at_the_desk not in ids_in_force
    (notice,) = decisions.notices
    assert str(table) in notice
    sittings = list(decisions.folder.glob("ledger/*.jsonl"))
    assert len(sittings) == 2


def save_as_a_spreadsheet_does(path):
    """Write a table with semicolons, a byte order mark, ends of lines of Windows, and 8.50 for 8.5."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [[cell.replace("8.5", "8.50") for cell in row] for row in csv.reader(file)]
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=";", lineterminator="\r\n").writerows(rows)


def test_a_table_saved_by_a_spreadsheet_changes_nothing(decisions):
    """A spreadsheet writes the same rows in another way; only cells that differ in meaning are edits.

    It separates cells by semicolons, begins the file with a byte order mark, and writes 8.50 for 8.5.
    """
    judge(decisions, start=0, end=8.5, annotator="=A")
    judge(decisions, start=10, end=20, level="violent", concepts=["Gun", "Dim light"])
    before = lines_in_force(decisions)
    table = decisions.folder / JUDGEMENTS
    save_as_a_spreadsheet_does(table)
    saved = table.read_bytes()
    byte_order_mark = b"\xef\xbb\xbf"
    assert saved.startswith(byte_order_mark)
    assert b'"Gun;Dim light"' in saved  # in quotes, as semicolons part cells
    assert b"8.50" in saved

    again = reopen(decisions)

    assert lines_in_force(again) == before
    assert again.notices == []
    files_of_ledger = list(decisions.folder.glob("ledger/*.jsonl"))
    assert len(files_of_ledger) == 1  # edits would be in a further one


def test_a_row_deleted_from_a_table_is_written_again(decisions):
    """A row may be missing by accident, so that deleting it deletes no decision: that is done at the desk."""
    table = decisions.folder / JUDGEMENTS
    judge(decisions, start=0, end=8)
    judge(decisions, start=10, end=20)
    header, first_row, _second_row = table.read_text("utf-8").splitlines(keepends=True)
    nine_seconds_later = table.stat().st_mtime + 9  # another time on any disk, however it rounds times
    table.write_text(header + first_row, "utf-8")
    os.utime(table, (nine_seconds_later, nine_seconds_later))

    again = reopen(decisions)

    (notice,) = again.notices
    assert str(table) in notice
    assert len(rows_of(table)) == 2
    assert len(levels_in_force(again)) == 2


def test_a_deleted_table_is_written_again_with_the_next_decision(decisions):
    """The ledger has both decisions, so that the new table has two rows."""
    path = decisions.folder / JUDGEMENTS
    judge(decisions, start=0, end=8)
    path.unlink()
    judge(decisions, start=30, end=40)
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
"""Rows under `HEADER_OF_JUDGEMENTS` that are no judgement, by what is wrong."""


@pytest.mark.parametrize("wrong_row", NO_JUDGEMENTS.values(), ids=NO_JUDGEMENTS)
def test_a_table_with_a_wrong_row_is_refused_by_file_and_line(scored_tt1, wrong_row):
    """The wrong row is on line 3, after the header and a good row. A film with such a table is not opened.

    Columns: clip_id, movie, video, start_s, end_s, level, concepts, annotator, seen_score, draw, place, mine.
    """
    good_row = "a,tt1,,0,8,calm,,XY,1,,,"
    (scored_tt1.folder / JUDGEMENTS).write_text(f"{HEADER_OF_JUDGEMENTS}{good_row}\n{wrong_row}\n", "utf-8")

    with pytest.raises(ObygazeError, match=rf"{JUDGEMENTS}.*line 3"):
        Decisions(*scored_tt1)


def test_a_table_that_becomes_wrong_stays_as_it_is_until_corrected(decisions):
    """The user's edit must not be lost, so that the table is not written over as long as it has a wrong row.

    Once the row is gone, the table has XY's row and the three judgements of AB made meanwhile: 4.
    """
    table = decisions.folder / JUDGEMENTS
    row_of_xy = "a,tt1,,0,8,calm,,XY,1,,,"
    row_that_ends_after_the_film = "a,tt1,,0,1e9,calm,,AB,1,,,"
    table.write_text(f"{HEADER_OF_JUDGEMENTS}{row_of_xy}\n{row_that_ends_after_the_film}\n", "utf-8")
    edited_table = table.read_bytes()

    judge(decisions, start=10, end=20, annotator="AB")
    judge(decisions, start=20, end=30, annotator="AB")
    (notice,) = decisions.notices
    assert str(table) in notice
    assert "line 3" in notice
    assert table.read_bytes() == edited_table

    replace_text(table, row_that_ends_after_the_film, "")
    judge(decisions, start=30, end=40, annotator="AB")
    assert len(rows_of(table)) == 4
    assert len(levels_in_force(decisions)) == 4


def test_a_file_of_other_columns_is_refused_by_its_name(scored_tt1):
    """In the folder of a scored film the table of passages has the columns a and b, as by a mistake."""
    (scored_tt1.folder / PASSAGES).write_text("a,b\n1,2\n", "utf-8")
    with pytest.raises(ObygazeError, match=PASSAGES):
        Decisions(*scored_tt1)


def test_commands_see_decisions_that_are_not_yet_in_the_table(decisions):
    """AB judged at this desk. CD's judgement came by a synchronised folder, into the ledger alone.

    Whatever reads the judgements of a folder writes the table anew.
    """
    judge(decisions, start=10, end=20, annotator="AB")
    decisions.ledger.add("judgement", ROW_OF_AB | {"annotator": "CD"})

    read = read_judged({decisions.folder: decisions.film}, decisions.codebook, (JUDGEMENTS,))

    assert len(read.manifest) == 2
    assert len(rows_of(decisions.folder / JUDGEMENTS)) == 2
    for notice in read.notices:
        assert "spans read" in notice  # none says that something is wrong


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


class Judgement(NamedTuple):
    """A judgement that stands."""

    annotator: str
    start_s: float
    level: str


def judgements_in_force(decisions):
    """Return annotator, start and level of each judgement that stands."""
    return sorted(
        Judgement(clip.annotator, clip.start_s, clip.level) for clip in decisions.clips_by_kind["judgement"]
    )


def copy_first_row_for_bc(rows):
    rows.append(rows[0] | {"annotator": "BC"})


def give_first_row_to_bc(rows):
    rows[0].update(annotator="BC", level="violent")


def fill_first_row_down(rows):
    """Copy the first row to the spans from 24 and from 32 s on, as a spreadsheet does by dragging."""
    rows += [rows[0] | {"start_s": f"{start}", "end_s": f"{start + 8}"} for start in (24, 32)]


def change_first_row_and_copy_it(rows):
    """Call the first row's span violent, and copy the row to the span from 24 s on."""
    rows[0]["level"] = "violent"
    rows.append(rows[0] | {"start_s": "24", "end_s": "32"})


def empty_ids(rows):
    for row in rows:
        row["clip_id"] = ""


def empty_definitions(rows):
    for row in rows:
        row["definition"] = ""


OF_AB_AT_0_S = Judgement("AB", start_s=0, level="calm")
OF_AB_AT_8_S = Judgement("AB", start_s=8, level="calm")


def edit_table_of_two_judgements(decisions, change_rows):
    """Let AB judge the spans from 0 and 8 s as calm, and somebody edit the table of them."""
    judge(decisions, start=0, end=8, level="calm", annotator="AB")
    judge(decisions, start=8, end=16, level="calm", annotator="AB")
    edit_rows(decisions.folder / JUDGEMENTS, change_rows)
    decisions.refresh()


@pytest.mark.parametrize(
    ("change_rows", "judgement_of_bc"),
    [
        (copy_first_row_for_bc, Judgement("BC", start_s=0, level="calm")),
        (give_first_row_to_bc, Judgement("BC", start_s=0, level="violent")),
    ],
)
def test_a_row_of_another_person_is_a_new_judgement(decisions, change_rows, judgement_of_bc):
    """AB judged two spans calm, from 0 and 8 s on. In the table the first row is then given another name, BC.

    Either a copy of it gets the name, or the row itself, with the level "violent". The row has the id of AB's
    judgement; but nobody can edit another's, so that AB's stays and BC has a judgement beside it. A notice
    names both people, as the name may have been changed by mistake.
    """
    edit_table_of_two_judgements(decisions, change_rows)

    expected = [OF_AB_AT_0_S, OF_AB_AT_8_S, judgement_of_bc]
    assert judgements_in_force(decisions) == expected
    assert judgements_in_force(reopen(decisions)) == expected
    assert decisions.conflicts() == set()
    assert any("AB" in notice and "BC" in notice for notice in decisions.notices)


@pytest.mark.parametrize(
    ("change_rows", "expected"),
    [
        pytest.param(
            fill_first_row_down,
            [
                OF_AB_AT_0_S,
                OF_AB_AT_8_S,
                Judgement("AB", start_s=24, level="calm"),
                Judgement("AB", start_s=32, level="calm"),
            ],
            id="the first row is filled down to 24 and 32 s",
        ),
        pytest.param(
            change_first_row_and_copy_it,
            [
                Judgement("AB", start_s=0, level="violent"),
                OF_AB_AT_8_S,
                Judgement("AB", start_s=24, level="violent"),
            ],
            id="the first row is changed and copied to 24 s",
        ),
    ],
)
def test_a_row_that_is_copied_to_another_span_is_a_new_judgement_although_it_has_the_firsts_id(
    decisions, change_rows, expected
):
    """AB judged two spans calm, from 0 and 8 s on. Then the table is edited in a spreadsheet.

    Rows that are copied to spans from 24 or 32 s on keep the id of the first row. They contradict neither it
    nor each other: all are in force, also when the film is opened again, and a notice on each copied row says
    that it is a decision of its own.
    """
    edit_table_of_two_judgements(decisions, change_rows)

    assert judgements_in_force(decisions) == expected
    assert judgements_in_force(reopen(decisions)) == expected
    assert decisions.conflicts() == set()
    n_copied_rows = len(expected) - 2
    notices_of_copies = [notice for notice in decisions.notices if "it is a decision of its own" in notice]
    assert len(notices_of_copies) == n_copied_rows


@pytest.mark.parametrize("change_rows", [empty_ids, empty_definitions], ids=["id", "definition"])
def test_a_row_without_its_id_or_definition_is_no_new_judgement(decisions, change_rows):
    """AB judged two spans calm, from 0 and 8 s on. In the table all ids, or all definitions, are emptied.

    Each row is still known by its annotator, span and level: the two judgements are in force as before.
    """
    edit_table_of_two_judgements(decisions, change_rows)

    assert judgements_in_force(decisions) == [OF_AB_AT_0_S, OF_AB_AT_8_S]
    assert judgements_in_force(reopen(decisions)) == [OF_AB_AT_0_S, OF_AB_AT_8_S]
    assert decisions.conflicts() == set()
    assert not any("it is a decision of its own" in notice for notice in decisions.notices)


def test_changing_an_edited_row_at_the_desk_can_be_undone(decisions):
    """AB judges a span calm, then violent; then the row of the table is edited to "unsure".

    At the desk AB judges the span violent once more, and undoes this. Undo must bring back what stood before,
    "unsure", which came from the table, and not an older judgement of the desk.
    """
    judge(decisions, start=0, end=8, level="calm", annotator="AB")
    judge(decisions, start=0, end=8, level="violent", annotator="AB")
    edit_rows(decisions.folder / JUDGEMENTS, lambda rows: rows[0].update(level="unsure"))
    decisions.refresh()
    assert judgements_in_force(decisions) == [Judgement("AB", start_s=0, level="unsure")]

    judge(decisions, start=0, end=8, level="violent", annotator="AB")
    assert judgements_in_force(decisions) == [Judgement("AB", start_s=0, level="violent")]

    decisions.undo("AB")
    assert judgements_in_force(decisions) == [Judgement("AB", start_s=0, level="unsure")]
    assert judgements_in_force(reopen(decisions)) == [Judgement("AB", start_s=0, level="unsure")]


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
    """AB and CD made six judgements. Eight times each row of their table is edited at random, or left alone.

    A row with another level (act "level") or span ("move") replaces its judgement. A row that is copied or
    given to somebody adds one and leaves the judgement as it is, and a deleted row changes nothing.
    """
    rng = np.random.default_rng(0)
    for start_s, annotator in ((0, "CD"), (8, "AB"), (16, "CD"), (24, "AB"), (32, "CD"), (40, "AB")):
        judge(decisions, start=start_s, end=start_s + 8, level="calm", annotator=annotator)
    table = decisions.folder / JUDGEMENTS

    for step in range(8):
        ids_before = set(decisions.lines)
        act_by_id = edit_table_at_random(table, rng, step)  # one act on each row
        decisions.refresh()
        ids_after = set(decisions.lines)

        replaced_ids = {line_id for line_id, act in act_by_id.items() if act in {"level", "move"}}
        adding_acts = [act for act in act_by_id.values() if act not in {"leave", "delete"}]
        ids_that_went = ids_before - ids_after
        ids_that_came = ids_after - ids_before
        assert ids_that_went == replaced_ids
        assert len(ids_that_came) == len(adding_acts)
        assert len(rows_of(table)) == len(ids_after)  # the table is written anew
    assert judgements_in_force(reopen(decisions)) == judgements_in_force(decisions)


def test_judgements_are_not_read_from_a_table_that_lacks_some(decisions, monkeypatch):
    """A judgement is in the ledger, and the disk is full for the table that a command is to read.

    The table is written anew of the ledger first. If that failed with a notice alone, the command would count
    or learn from fewer judgements than people made, and end as done.
    """
    judge(decisions, start=10, end=20)
    table = decisions.folder / JUDGEMENTS
    table.unlink()

    def read_judgements():
        return read_judged({decisions.folder: decisions.film}, decisions.codebook, [JUDGEMENTS]).manifest

    def fail_as_on_a_full_disk(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as full_disk:
        full_disk.setattr(io, "write_all", fail_as_on_a_full_disk)
        with pytest.raises(FilmError) as refused:
            read_judgements()
    assert str(refused.value).startswith(f"{table}: not written (No space left on device)")

    assert len(read_judgements()) == 1
