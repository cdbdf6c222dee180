"""Tables of what people decide: written of the ledger, edited elsewhere, and read back."""

import csv
import os

import numpy as np
import pytest

from obygaze_features.errors import ObygazeError
from obygaze_film.workspace.decisions import JUDGEMENTS, NOTES, PASSAGES, Decisions
from obygaze_film.workspace.judged_tables import read_judged
from tests.files import rows_of
from tests.film.workspace.deciding import HEAD, ROW, judge, standing_levels, stands


def test_concepts_that_decisions_of_an_earlier_page_share_are_named(scored_tt1):
    folder, film, book = scored_tt1
    made = Decisions(*scored_tt1)
    for start in (10, 30, 50):
        judge(made, start, start + 5, "violent", concepts=["Gun"] if start < 50 else [])
    assert Decisions(*scored_tt1).notices == []
    rows = (folder / JUDGEMENTS).read_text("utf-8")
    other, timeline = folder.parent / "other", film
    other.mkdir()
    (other / JUDGEMENTS).write_text(rows, "utf-8")
    notices = Decisions(other, timeline, book).notices
    assert any("1 decision " in notice and notice.endswith(" line 3") for notice in notices)


def test_a_folder_of_an_earlier_version_is_read_into_the_ledger_once(scored_tt1):
    folder = scored_tt1[0]
    path = folder / JUDGEMENTS
    path.write_text(f"{HEAD}a,tt1,,0,8.50,calm,,XY,1,,,kept\nb,tt1,,8,16,Violent,gun,XY,1,,,\n", "utf-8")
    before = path.read_bytes()
    (folder / NOTES).write_text(
        "movie,start_s,end_s,annotator,note,written_at\ntt1,0,1,XY,why,2020\n", "utf-8"
    )
    made = Decisions(*scored_tt1)
    assert [str(path) in made.notices[0], str(folder / NOTES) in made.notices[1]] == [True, True]
    assert stands(made)["judgement"] == [("XY", 0, 8.5, "calm", ""), ("XY", 8, 16, "violent", "")]
    assert stands(made)["note"] == [("XY", 0, 1, None, "why")]
    assert [row["mine"] for row in rows_of(path)] == ["kept", ""]
    assert rows_of(folder / NOTES)[0]["written_at"] == "2020"
    again = Decisions(*scored_tt1)
    judge(again, 10, 20)
    assert (again.notices, len(standing_levels(again))) == ([], 3)
    assert not made.undo("XY")
    path.write_bytes(before)  # a synchronised folder brings the old file back
    judge(again, 30, 40)
    assert {str(path) in notice for notice in again.notices} == {True}
    assert len(standing_levels(again)) == len(rows_of(path)) == 4


@pytest.mark.parametrize(
    ("movie", "is_own"), [("TT1", True), ("0000001", True), ("x/tt1.mkv", True), ("tt2", False)]
)
def test_a_row_is_of_the_film_however_it_spells_it_and_of_another_is_said(scored_tt1, movie, is_own):
    (scored_tt1[0] / JUDGEMENTS).write_text(f"{HEAD}a,{movie},,8,16,calm,,XY,1,,,\n", "utf-8")
    made = Decisions(*scored_tt1)
    assert [clip.movie for clip in made.kept["judgement"]] == ["tt1" if is_own else movie]
    assert any("of another film" in notice for notice in made.notices) == (not is_own)


def edited(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def add_row(path, **cells):
    """Add a row at the end of a table; columns that are not named stay empty."""
    with path.open(encoding="utf-8") as file:
        columns = next(csv.reader(file))
    with path.open("a", encoding="utf-8", newline="") as file:
        csv.DictWriter(file, columns, lineterminator="\n").writerow(cells)


def test_a_row_that_a_colleague_adds_or_changes_meanwhile_stands_beside_ours(scored_tt1):
    folder, path = scored_tt1[0], scored_tt1[0] / JUDGEMENTS
    made = Decisions(*scored_tt1)
    first, _ = judge(made, 0, 8), judge(made, 20, 28)
    edited(path, ",calm,", ",violent,")
    add_row(
        path,
        clip_id="b",
        movie="tt1",
        start_s=10,
        end_s=20,
        level="violent",
        annotator="COLLEAGUE",
        seen_score=1,
    )
    judge(made, 30, 38)
    assert [str(path) in notice for notice in made.notices] == [True]
    expected = [("AB", "violent"), ("AB", "violent"), ("COLLEAGUE", "violent"), ("AB", "calm")]
    assert sorted(standing_levels(made)) == sorted(expected)
    assert sorted((row["annotator"], row["level"]) for row in rows_of(path)) == sorted(expected)
    assert first not in {clip.clip_id for clip in made.kept["judgement"]}
    assert stands(Decisions(*scored_tt1)) == stands(made)
    assert len([*folder.glob("ledger/*.jsonl")]) == 2


def test_a_spreadsheet_saves_it_in_its_own_way_and_nothing_comes_in(scored_tt1):
    path = scored_tt1[0] / JUDGEMENTS
    made = Decisions(*scored_tt1)
    judge(made, 0, 8.5, who="=A")
    judge(made, 10, 20, "violent", concepts=["Gun", "Dim light"])
    before = stands(made)
    text = path.read_text("utf-8").replace("Gun;Dim light", "Gun|").replace(",", ";").replace("8.5;", "8.50;")
    text = text.replace("Gun|", '"Gun;Dim light"')
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    again = Decisions(*scored_tt1)
    assert (stands(again), again.notices) == (before, [])
    assert len([*scored_tt1[0].glob("ledger/*.jsonl")]) == 1


def test_rows_and_files_that_are_gone_are_written_anew(scored_tt1):
    path = scored_tt1[0] / JUDGEMENTS
    made = Decisions(*scored_tt1)
    judge(made, 0, 8)
    judge(made, 10, 20)
    path.write_text("".join(path.read_text("utf-8").splitlines(keepends=True)[:2]), "utf-8")
    os.utime(path, (later := path.stat().st_mtime + 9, later))
    again = Decisions(*scored_tt1)
    assert [str(path) in notice for notice in again.notices] == [True]
    assert len(rows_of(path)) == len(standing_levels(again)) == 2
    path.unlink()
    judge(made, 30, 40)
    assert len(rows_of(path)) == 3


@pytest.mark.parametrize(
    "row",
    [
        "a,tt1,,abc,8,calm,,AB,1,,,", "a,tt1,,nan,8,calm,,AB,1,,,", "a,tt1,,8,0,calm,,AB,1,,,",
        "a,tt1,,,8,calm,,AB,1,,,", "a,tt1,,0,1e9,calm,,AB,1,,,", "a,tt1,,0,8,S,,AB,1,,,",
        "a,tt1,,0,8,calm,Body,AB,1,,,", "a,tt1,,0,8,calm,,,1,,,", "a,tt1,,0,8,calm,,AB,,,,",
        "a,tt1,,0,8,calm,,AB,2,,,", "a,tt1,,0,8,calm,,A\u202eB,1,,,", "a,,,0,8,calm,,AB,1,,,",
    ],
)  # fmt: skip
def test_nonsense_in_a_table_is_named_by_file_and_line_at_opening_and_meanwhile(scored_tt1, row):
    path = scored_tt1[0] / JUDGEMENTS
    made = Decisions(*scored_tt1)
    path.write_text(f"{HEAD}a,tt1,,0,8,calm,,XY,1,,,\n{row}\n", "utf-8")
    before = path.read_bytes()
    with pytest.raises(ObygazeError, match=rf"{JUDGEMENTS}.*line 3"):
        Decisions(*scored_tt1)
    judge(made, 10, 20)
    judge(made, 20, 30)
    assert [str(path) in notice and "line 3" in notice for notice in made.notices] == [True]
    assert path.read_bytes() == before  # it may be mended
    edited(path, row, "")
    judge(made, 30, 40)
    assert len(rows_of(path)) == len(standing_levels(made)) == 4


def test_a_file_of_other_columns_is_refused(scored_tt1):
    (scored_tt1[0] / PASSAGES).write_text("a,b\n1,2\n", "utf-8")
    with pytest.raises(ObygazeError, match=PASSAGES):
        Decisions(*scored_tt1)


def test_commands_read_what_a_ledger_got_since_its_tables_were_written(scored_tt1):
    folder, film, book = scored_tt1
    made = Decisions(*scored_tt1)
    judge(made, 10, 20)
    made.ledger.add("judgement", ROW | {"annotator": "CD"})  # as a synchronised folder gets it
    read = read_judged({folder: film}, book, (JUDGEMENTS,))
    assert len(read.manifest) == len(rows_of(folder / JUDGEMENTS)) == 2
    assert [notice for notice in read.notices if "spans read" not in notice] == []


# --- a table states what stands
# ---------------------------------------------------------------------------
def rewritten(path, change):
    """Edit a table as a spreadsheet does: read its rows, change them, write them all."""
    rows = rows_of(path)
    columns = [*rows[0]]
    change(rows)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def judged(made):
    return sorted((clip.annotator, clip.start_s, clip.level) for clip in made.kept["judgement"])


def test_a_row_that_is_copied_for_another_judge_removes_nothing(scored_tt1):
    made = Decisions(*scored_tt1)
    judge(made, 0, 8)
    judge(made, 8, 16)
    rewritten(scored_tt1[0] / JUDGEMENTS, lambda rows: rows.append(rows[0] | {"annotator": "BC"}))
    made.refresh()
    assert judged(made) == [("AB", 0, "calm"), ("AB", 8, "calm"), ("BC", 0, "calm")]
    assert any("AB" in notice and "BC" in notice for notice in made.notices)
    assert judged(Decisions(*scored_tt1)) == judged(made)


def test_a_row_that_is_filled_down_over_other_windows_removes_nothing(scored_tt1):
    made = Decisions(*scored_tt1)
    judge(made, 0, 8)

    def fill_down(rows):
        rows += [rows[0] | {"start_s": f"{start}", "end_s": f"{start + 8}"} for start in (8, 16, 24)]

    rewritten(scored_tt1[0] / JUDGEMENTS, fill_down)
    made.refresh()
    assert judged(made) == [("AB", start, "calm") for start in (0, 8, 16, 24)]
    assert made.conflicts() == set()


def test_of_two_rows_with_the_id_of_a_line_that_both_change_one_replaces_it(scored_tt1):
    made = Decisions(*scored_tt1)
    judge(made, 0, 8)

    def change(rows):
        rows[0]["level"] = "violent"
        rows.append(rows[0] | {"start_s": "8", "end_s": "16"})

    rewritten(scored_tt1[0] / JUDGEMENTS, change)
    made.refresh()
    assert judged(made) == [("AB", 0, "violent"), ("AB", 8, "violent")]
    assert made.conflicts() == set()  # the second row is a decision of its own


def test_a_row_whose_annotator_is_changed_is_that_persons_and_the_first_stays(scored_tt1):
    made = Decisions(*scored_tt1)
    judge(made, 0, 8)
    rewritten(scored_tt1[0] / JUDGEMENTS, lambda rows: rows[0].update(annotator="BC", level="violent"))
    made.refresh()
    assert judged(made) == [("AB", 0, "calm"), ("BC", 0, "violent")]
    assert [line.replaces for line in made.lines.values()] == [(), ()]
    assert any("AB" in notice and "BC" in notice for notice in made.notices)


@pytest.mark.parametrize("lost", ["clip_id", "definition"])
def test_a_column_that_a_spreadsheet_loses_doubles_nothing(scored_tt1, lost):
    made = Decisions(*scored_tt1)
    judge(made, 0, 8)
    judge(made, 8, 16)
    rewritten(scored_tt1[0] / JUDGEMENTS, lambda rows: [row.update({lost: ""}) for row in rows])
    made.refresh()
    assert judged(made) == [("AB", 0, "calm"), ("AB", 8, "calm")]


def test_what_a_table_changes_can_be_changed_back_at_the_desk(scored_tt1):
    made = Decisions(*scored_tt1)
    for level in ("calm", "violent"):  # the line that is replaced has a clock of its own
        judge(made, 0, 8, level)
    rewritten(scored_tt1[0] / JUDGEMENTS, lambda rows: rows[0].update(level="unsure"))
    made.refresh()
    assert judged(made) == [("AB", 0, "unsure")]
    judge(made, 0, 8, "violent")
    made.undo("AB")
    assert judged(made) == judged(Decisions(*scored_tt1)) == [("AB", 0, "unsure")]


ACTS = ("leave", "level", "give", "move", "copy", "copy for another", "delete")


def edit_at_random(rows, rng, step):
    """Edit each row in one way; return what was done to each line, by its id."""
    done = {}
    for row in [*rows]:
        act = str(rng.choice(ACTS))
        done[row["clip_id"]] = act
        span = {"start_s": f"{60 + step}", "end_s": f"{61 + step}.{rng.integers(1, 999):03d}"}
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
    return done


def test_random_edits_of_a_table_replace_what_its_own_row_changes_and_nothing_else(scored_tt1):
    rng = np.random.default_rng(0)
    made = Decisions(*scored_tt1)
    for number in range(6):
        judge(made, 8 * number, 8 * number + 8, "calm", "AB" if number % 2 else "CD")
    path = scored_tt1[0] / JUDGEMENTS
    for step in range(8):
        before = dict(made.lines)
        done = {}
        rewritten(path, lambda rows, done=done, step=step: done.update(edit_at_random(rows, rng, step)))
        made.refresh()
        changed = {name for name, act in done.items() if act in {"level", "move"}}
        assert {*before} - {*made.lines} == changed
        new = [line for name, line in made.lines.items() if name not in before]
        assert len(new) == sum(act not in {"leave", "delete"} for act in done.values())
        assert len(rows_of(path)) == len(made.lines)
    assert judged(Decisions(*scored_tt1)) == judged(made)
