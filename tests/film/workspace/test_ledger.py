"""The ledger: files that are only appended to, whose union is the same however it comes about."""

import errno
import json
import os
import shutil
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_features import io, lines
from obygaze_features.lines import encode_line
from obygaze_film.errors import FilmError
from obygaze_film.workspace import ledger as ledgers
from obygaze_film.workspace.authority import in_force
from obygaze_film.workspace.ledger import Ledger, TableRow
from obygaze_film.workspace.ledger_lines import LATEST, Header, StoredCodebook


def decision_row(n, annotator="AB"):
    """Make the cells of a decision; `n` tells it from others."""
    return {"annotator": annotator, "start_s": f"{n}"}


class ListeningLedger(Ledger):
    """A ledger that collects the messages on what is wrong in its files, in `damage`."""

    def __init__(self, folder):
        self.damage = []
        super().__init__(folder, self._add_message)

    def _add_message(self, message):
        if message not in self.damage:
            self.damage.append(message)


def unread_ledger(folder):
    """Make a ledger that has not read its folder yet."""
    return ListeningLedger(folder)


def read_ledger(folder):
    """Open the ledger of a folder, and read what is in it."""
    ledger = unread_ledger(folder)
    ledger.read()
    return ledger


def lines_in_force(ledger):
    """Return the id and the cells of each line that stands."""
    return [(line.id, dict(line.row)) for line in in_force(ledger.lines.values())]


def ids_in_force(ledger):
    """Return the ids of the lines that are in force: neither replaced nor undone."""
    return [line.id for line in in_force(ledger.lines.values())]


def fail_to_write(*_):
    """Fail as a broken disk does."""
    raise OSError(errno.EIO, "Input/output error")


def fail_for_want_of_space(*_):
    """Fail as a full disk does."""
    raise OSError(errno.ENOSPC, "No space left on device")


class Act(NamedTuple):
    """What one of three machines does.

    Attributes
    ----------
    machine
        Number of the machine: 0, 1 or 2.
    kind
        "note": a note is added. "replace": a decision that stands is decided again. "undo": a line is undone.
        "fetch": the files of another machine are copied here.
    choice
        Which decision is replaced, which line is undone, or which machine is fetched from: its number, see
        `item_in_turn`.
    """

    machine: int
    kind: str
    choice: int


ACTS = st.lists(
    st.builds(
        Act, st.integers(0, 2), st.sampled_from(["note", "replace", "undo", "fetch"]), st.integers(0, 9)
    ),
    max_size=25,
)


def perform(act, ledgers_of_machines):
    """Let a machine perform one act, after it has read its folder.

    Where it has no line that could be replaced or undone, it adds a note instead.
    """
    ledger = ledgers_of_machines[act.machine]
    ledger.read()
    cells = decision_row(act.choice)
    standing_ids = ids_in_force(ledger)
    all_ids = [*ledger.lines]
    if act.kind == "fetch":
        other = item_in_turn(ledgers_of_machines, act.choice)
        copy(other.folder.parent, ledger.folder.parent)
    elif act.kind == "replace" and standing_ids:
        ledger.add("judgement", cells, [item_in_turn(standing_ids, act.choice)])
    elif act.kind == "undo" and all_ids:
        # An undo is itself a line, which may be undone: then its decision is done again.
        ledger.add("undo", cells, [item_in_turn(all_ids, act.choice)])
    else:
        ledger.add("note", cells)


def item_in_turn(items, number):
    """Return an item of a list by its number, and begin again behind the last: of three, 3 is the first."""
    return items[number % len(items)]


def begin_a_line(folder, n_bytes):
    """Append the first bytes of a line to each file, as a crash leaves it: the line was never kept."""
    beginning = encode_line({"id": "torn"})[:n_bytes]
    for path in folder.glob("ledger/*.jsonl"):
        with path.open("ab") as file:
            file.write(beginning)


@given(acts=ACTS, order=st.permutations(range(3)), n_torn_bytes=st.integers(0, 40))
def test_merging_sittings_gives_the_same_in_any_order(acts, order, n_torn_bytes):
    """Three machines decide at random, and fetch each other's files; then all files are merged, in any order.

    A ledger that is read after each merge has the same decisions as one that is read at the end, and none of
    any machine is lost. A line of which a crash left only the first bytes changes nothing.
    """
    with TemporaryDirectory() as folder:
        folders_of_machines = [Path(folder, name) for name in "abc"]
        merged = Path(folder, "merged")
        for path in (*folders_of_machines, merged):
            path.mkdir()

        # Given: what each machine has after its acts
        ledgers_of_machines = [unread_ledger(path) for path in folders_of_machines]
        for act in acts:
            perform(act, ledgers_of_machines)
        for ledger in ledgers_of_machines:
            ledger.close()

        # When one reader reads after each merge, and another one when all are merged
        reader_of_each_step = unread_ledger(merged)
        for number in order:
            copy(folders_of_machines[number], merged)
            reader_of_each_step.read()
        begin_a_line(merged, n_torn_bytes)
        reader_of_each_step.read()
        reader_of_all = read_ledger(merged)

        # Then both know the same, and all that any machine knew
        assert lines_in_force(reader_of_each_step) == lines_in_force(reader_of_all)
        assert reader_of_each_step.damage == []
        for ledger in ledgers_of_machines:
            assert ledger.lines.items() <= reader_of_all.lines.items()


def copy(source, target):
    """Copy the ledger's files that are new or longer, as a program that synchronises folders does."""
    (target / "ledger").mkdir(exist_ok=True)
    for path in source.glob("ledger/*.jsonl"):
        copied = target / "ledger" / path.name
        if not copied.exists() or copied.stat().st_size < path.stat().st_size:
            shutil.copyfile(path, copied)


def test_a_judgement_that_two_sittings_change_at_once_has_both_changes_until_one_is_undone(tmp_path):
    """Two desks on one folder change the same judgement, neither knowing of the other's change.

    So neither change replaces the other, and both are in force. Once the first desk undoes its own, that of
    the second is in force alone: the judgement that both replaced does not come back.
    """
    first_sitting = unread_ledger(tmp_path)
    judgement = first_sitting.add("judgement", decision_row(1))
    second_sitting = read_ledger(tmp_path)

    change_by_first = first_sitting.add("judgement", decision_row(3), replaces=[judgement.id])
    change_by_second = second_sitting.add("judgement", decision_row(2), replaces=[judgement.id])
    assert set(ids_in_force(read_ledger(tmp_path))) == {change_by_first.id, change_by_second.id}

    first_sitting.add("undo", decision_row(3), replaces=[change_by_first.id])
    assert ids_in_force(read_ledger(tmp_path)) == [change_by_second.id]


def test_a_line_has_the_clock_after_that_of_the_last_line_read(tmp_path):
    """Lines of all sittings are ordered by their clocks, which count up.

    One sitting adds a judgement. Another one reads the folder and adds the next.
    """
    first_sitting = unread_ledger(tmp_path)
    first = first_sitting.add("judgement", decision_row(1))

    second_sitting = read_ledger(tmp_path)
    second = second_sitting.add("judgement", decision_row(2))

    assert second.clock == first.clock + 1


def test_a_sitting_does_not_write_into_anothers_file(tmp_path, monkeypatch):
    """Each sitting has a file of a random name; here the same name is drawn twice.

    In this rare case an error is better than two writers of one file. The first sitting's note stands.
    """
    monkeypatch.setattr(ledgers, "token_hex", lambda _n_bytes: "0" * 16)  # which draws names
    first_sitting = unread_ledger(tmp_path)
    second_sitting = unread_ledger(tmp_path)

    note = first_sitting.add("note", decision_row(1))
    with pytest.raises(FileExistsError):
        second_sitting.add("note", decision_row(2))

    assert lines_in_force(read_ledger(tmp_path)) == [(note.id, decision_row(1))]


def add_conflicted_copy(path):
    """Copy a sitting beside itself, as programs that synchronise folders do: its lines have the same ids."""
    path.with_name(f"{path.stem} (conflicted copy).jsonl").write_bytes(path.read_bytes())


def write_lines_as_on_windows(path):
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


@pytest.mark.parametrize("change", [add_conflicted_copy, write_lines_as_on_windows])
def test_what_other_programs_do_to_a_sitting_changes_no_decision(tmp_path, change):
    """A sitting has three notes. A synchronising program copies its file, or Git changes its ends of line."""
    ledger = unread_ledger(tmp_path)
    for number in range(3):
        ledger.add("note", decision_row(number))
    (path,) = tmp_path.glob("ledger/*.jsonl")

    change(path)
    again = read_ledger(tmp_path)

    assert lines_in_force(again) == lines_in_force(ledger)
    assert again.damage == []


def test_git_is_told_to_leave_the_ends_of_lines_of_a_ledger(tmp_path):
    """Git on Windows would rewrite the files, which are only appended to, unless it is told not to.

    The first decision in a folder writes `-text`, which tells it, into Git's file of attributes.
    """
    ledger = unread_ledger(tmp_path)

    ledger.add("note", decision_row(1))

    attributes = (tmp_path / "ledger" / ".gitattributes").read_text("utf-8")
    assert "-text" in attributes


VALID_ENTRY = {"id": "0123456789abcdef-1", "clock": 1, "kind": "note", "row": {}}
"""An entry of a ledger's line."""

NO_LINES = {
    "another sum of its bytes": b'{"crc32":"00000000","entry":{}}\n',
    "no JSON": b"x" * 100 + b"\n",
    "a byte of zero": b"\0\n",
    "an id without a sitting": encode_line(VALID_ENTRY | {"id": "1"}),
    "a number of 0": encode_line(VALID_ENTRY | {"id": "0123456789abcdef-0"}),
    "an id that is a path": encode_line(VALID_ENTRY | {"id": "../etc/passwd-1"}),
    "a clock of 0": encode_line(VALID_ENTRY | {"clock": 0}),
    "half a clock": encode_line(VALID_ENTRY | {"clock": 1.5}),
    "a clock that is too late": encode_line(VALID_ENTRY | {"clock": LATEST + 1}),
    "an unknown kind": encode_line(VALID_ENTRY | {"kind": "other"}),
    "a cell that is a number": encode_line(VALID_ENTRY | {"row": {"a": 1}}),
    "cells without names": encode_line(VALID_ENTRY | {"row": []}),
    "a replaced id that is none": encode_line(VALID_ENTRY | {"replaces": ["x"]}),
    "no entry of a ledger": encode_line({"entry": 1}),
}
"""Bytes that are no line of a ledger, by what is wrong."""


@pytest.mark.parametrize("no_line", NO_LINES.values(), ids=NO_LINES)
def test_a_broken_line_is_left_out_and_named_once(tmp_path, no_line):
    """The broken line is the second of three: the first and the third are read.

    The ledger is read twice, and the message on file and line comes once.
    """
    ledger = unread_ledger(tmp_path)
    ledger.add("note", decision_row(1))
    (path,) = tmp_path.glob("ledger/*.jsonl")
    with path.open("ab") as file:
        file.write(no_line + encode_line(VALID_ENTRY))

    ledger.read()
    ledger.read()

    (message,) = ledger.damage
    assert str(path) in message
    assert "line 2" in message
    assert len(ledger.lines) == 2


def write_sitting(folder, *entries, name="0" * 16):
    """Write a sitting as a stranger does, who knows the format."""
    (folder / "ledger").mkdir(exist_ok=True)
    path = folder / "ledger" / f"{name}.jsonl"
    path.write_bytes(b"".join(map(encode_line, entries)))
    return path


@pytest.mark.parametrize(
    "clock",
    [
        pytest.param(LATEST, id="the largest number that is read as a clock"),
        pytest.param(1 + 2**32 + 1, id="one more than line 1 may have"),
    ],
)
def test_a_line_with_an_impossible_clock_is_left_out(tmp_path, clock):
    """Lines of a ledger are ordered by their clocks, which count up: only a later line replaces another.

    So a clock far ahead would make all honest lines too early. A line's clock may be 2^32 more than its
    number in the file, at most. Line 1 of MALLORY's file has more: a message names the file and who wrote the
    line, and AB's note, added later, is the only line of the ledger.
    """
    path = write_sitting(tmp_path, VALID_ENTRY | {"clock": clock, "row": decision_row(1, "MALLORY")})

    ledger = read_ledger(tmp_path)
    note_of_ab = ledger.add("note", decision_row(1, "AB"))

    (message,) = ledger.damage
    assert str(path) in message
    assert "MALLORY" in message
    assert list(read_ledger(tmp_path).lines) == [note_of_ab.id]


@pytest.mark.parametrize(
    "clock",
    [1, 99, 2**20 + 9, 1 + 2**32],
    ids=["the first", "ahead", "far ahead", "the latest that a first line may have"],
)
def test_a_strangers_clock_does_not_hinder_undo_and_redo(tmp_path, clock):
    """Each line has a clock, a number that counts up, and only a line with a higher one replaces another.

    MALLORY wrote line 1 of a file, with a clock that may be far ahead, up to 2^32. AB's lines count on from
    it, so that AB's change of a note, the undo of that change and its redo all work.
    """
    of_stranger = VALID_ENTRY | {"clock": clock, "row": decision_row(0, "MALLORY")}
    write_sitting(tmp_path, of_stranger)
    id_of_stranger = of_stranger["id"]
    first_note = read_ledger(tmp_path).add("note", decision_row(1, "AB"))
    ledger = read_ledger(tmp_path)  # another sitting of AB

    changed_note = ledger.add("note", decision_row(2, "AB"), replaces=[first_note.id])
    assert set(ids_in_force(read_ledger(tmp_path))) == {id_of_stranger, changed_note.id}

    undo = ledger.add("undo", decision_row(2, "AB"), replaces=[changed_note.id])
    assert set(ids_in_force(read_ledger(tmp_path))) == {id_of_stranger, first_note.id}

    ledger.add("undo", decision_row(2, "AB"), replaces=[undo.id])  # undoing the undo is a redo
    assert set(ids_in_force(read_ledger(tmp_path))) == {id_of_stranger, changed_note.id}


@pytest.mark.parametrize(
    "clock",
    [99, 2**20 + 9, 1 + 2**32],
    ids=["ahead", "far ahead", "the latest that a first line may have"],
)
def test_nobody_can_undo_lines_before_they_are_written(tmp_path, clock):
    """The id of a line is that of its sitting and a number, so that the ids of the next lines can be guessed.

    A stranger signs as AB an undo of AB's lines 2 to 59, which are not written yet, with a clock (an order in
    time) ahead of theirs. So AB's next lines go into another sitting, with ids that nobody could guess.
    """
    ledger = unread_ledger(tmp_path)
    first_note = ledger.add("note", decision_row(1, "AB"))
    ids_of_next_lines = [f"{first_note.sitting}-{number}" for number in range(2, 60)]
    forged_undo = {
        "clock": clock,
        "kind": "undo",
        "row": decision_row(0, "AB"),
        "replaces": ids_of_next_lines,
    }
    write_sitting(tmp_path, VALID_ENTRY | forged_undo)

    ledger.read()
    second_note = ledger.add("note", decision_row(2, "AB"))
    third_note = ledger.add("note", decision_row(3, "AB"))

    assert second_note.sitting != first_note.sitting
    standing_ids = set(ids_in_force(read_ledger(tmp_path)))
    assert standing_ids == {first_note.id, second_note.id, third_note.id}


def test_a_line_with_the_latest_clock_that_any_line_may_have_cannot_be_undone(tmp_path):
    """Lines are ordered by their clocks. A clock may be 2^32 more than the line's number of nine digits.

    A stranger's line has the largest number and the largest clock. An undo would need a larger one, and there
    is none: an error says so, and the line stays in force. AB's note can still be added.
    """
    largest_number = 999_999_999
    id_of_stranger = f"0123456789abcdef-{largest_number}"
    largest_clock = largest_number + 2**32
    write_sitting(
        tmp_path, VALID_ENTRY | {"id": id_of_stranger, "clock": largest_clock, "row": decision_row(0)}
    )
    ledger = read_ledger(tmp_path)

    with pytest.raises(FilmError, match="clock"):
        ledger.add("undo", decision_row(0), replaces=[id_of_stranger])
    note = ledger.add("note", decision_row(1))

    assert set(ids_in_force(read_ledger(tmp_path))) == {id_of_stranger, note.id}


@pytest.mark.skipif(
    os.environ.get("SIMULATED", os.name) in {"windows", "nt"}, reason="Windows has neither in a folder"
)
def test_a_pipe_and_a_link_among_the_files_are_not_read(tmp_path):
    """Reading a pipe would wait for ever, and a link may lead anywhere: both are reported instead."""
    (tmp_path / "ledger").mkdir()
    (tmp_path / "other").write_bytes(encode_line(VALID_ENTRY))
    os.mkfifo(tmp_path / "ledger" / "a.jsonl")
    (tmp_path / "ledger" / "b.jsonl").symlink_to(tmp_path / "other")

    ledger = read_ledger(tmp_path)

    assert ledger.lines == {}
    assert len(ledger.damage) == 2


@pytest.mark.parametrize("next_annotator", ["AB", "CD"])
@pytest.mark.parametrize("failing_call", ["write_all", "force_to_disk"])
def test_a_line_that_failed_to_be_written_does_not_stand(tmp_path, monkeypatch, failing_call, next_annotator):
    """The disk fails while AB's second note is written to a file, or forced to the disk: AB gets an error.

    The line may have got into the file all the same: the ledger takes it back together with the next
    decision, whoever makes it. So the first and the third note stand.
    """
    ledger = unread_ledger(tmp_path)
    first_note = ledger.add("note", decision_row(1, "AB"))
    with monkeypatch.context() as broken_disk:
        broken_disk.setattr(lines, failing_call, fail_to_write)
        with pytest.raises(OSError, match="Input/output"):
            ledger.add("note", decision_row(2, "AB"))
    ledger.read()
    assert ids_in_force(ledger) == [first_note.id]

    third_note = ledger.add("note", decision_row(3, next_annotator))
    assert ids_in_force(read_ledger(tmp_path)) == [first_note.id, third_note.id]


@pytest.mark.skipif(
    os.environ.get("SIMULATED", os.name) in {"windows", "nt"},
    reason="Windows renames no folder of an open file",
)
def test_a_replaced_folder_gets_a_new_file(tmp_path):
    """Somebody moves the ledger's folder away while the desk is open: the next line goes to a new one.

    The first note is in the folder that was moved, and the second one alone in the new one.
    """
    ledger = unread_ledger(tmp_path)
    ledger.add("note", decision_row(1))

    shutil.move(tmp_path / "ledger", tmp_path / "old")
    line = ledger.add("note", decision_row(2))

    assert lines_in_force(read_ledger(tmp_path)) == [(line.id, decision_row(2))]


def test_a_table_that_finds_no_space_is_not_imported(tmp_path, monkeypatch):
    """The disk is full while a table of two rows is written to the ledger.

    All rows are imported or none, so that the import can be repeated.
    """
    ledger = unread_ledger(tmp_path)
    rows = [TableRow(decision_row(1)), TableRow(decision_row(2))]
    digest_of_table = token_hex(32)  # by which a table is known; any will do

    with monkeypatch.context() as full_disk:
        full_disk.setattr(io, "write_all", fail_for_want_of_space)
        with pytest.raises(OSError, match="No space left"):
            ledger.add_table(digest_of_table, "note", rows)

    assert read_ledger(tmp_path).lines == {}


def test_a_table_is_imported_once_with_the_numbers_of_its_rows(tmp_path):
    """A table is known by its digest: the second import of the same bytes adds no row.

    Line 1 of the ledger's file is on the table itself, so its three rows have the numbers 2 to 4. The second
    row is known already and not added, but keeps its number, so that all machines number the others alike.
    """
    ledger = unread_ledger(tmp_path)
    digest_of_table = token_hex(32)
    rows = [TableRow(decision_row(1)), ROW_THAT_IS_KNOWN, TableRow(decision_row(2))]

    n_added_at_first = ledger.add_table(digest_of_table, "note", rows)
    n_added_again = ledger.add_table(digest_of_table, "note", rows)

    assert n_added_at_first == 2
    assert n_added_again == 0
    numbers = [line.number for line in in_force(ledger.lines.values())]
    assert numbers == [2, 4]


ROW_THAT_IS_KNOWN = None
"""In place of a table's row that says nothing new."""


def test_a_table_imported_on_two_machines_gives_each_row_once(tmp_path):
    """Two machines import a table of three rows. The first knows its second row already, the other its third.

    So each writes two rows, to a file named after the table. When the second machine's folder is copied over
    the first's, one file is left: its two rows stand, and the row that both wrote stands once.
    """
    folder_of_first = tmp_path / "first"
    folder_of_second = tmp_path / "second"
    folder_of_first.mkdir()
    folder_of_second.mkdir()
    digest_of_table = token_hex(32)
    row_1 = TableRow(decision_row(1))
    row_2 = TableRow(decision_row(2))
    row_3 = TableRow(decision_row(3))
    unread_ledger(folder_of_first).add_table(digest_of_table, "note", [row_1, ROW_THAT_IS_KNOWN, row_3])
    unread_ledger(folder_of_second).add_table(digest_of_table, "note", [row_1, row_2, ROW_THAT_IS_KNOWN])

    copy(folder_of_second, folder_of_first)

    assert len(ids_in_force(read_ledger(folder_of_first))) == 2


@pytest.fixture
def two_notes_that_are_read(tmp_path):
    """A reader that has read a sitting of two notes, the sitting's file, and the ids of its lines."""
    writer = unread_ledger(tmp_path)
    ids = [writer.add("note", decision_row(1)).id, writer.add("note", decision_row(2)).id]
    (path,) = tmp_path.glob("ledger/*.jsonl")
    reader = read_ledger(tmp_path)
    assert [*reader.lines] == ids
    return reader, path, ids


def test_a_sitting_that_shrinks_and_grows_again_is_read_anew(two_notes_that_are_read):
    """A program that synchronises brings back an earlier version, and later this one.

    The earlier version had the first of the two notes.
    """
    reader, path, (first_id, second_id) = two_notes_that_are_read
    whole_file = path.read_bytes()
    first_line, _ = whole_file.splitlines(keepends=True)

    path.write_bytes(first_line)
    reader.read()
    assert list(reader.lines) == [first_id]

    path.write_bytes(whole_file)
    reader.read()
    assert set(reader.lines) == {first_id, second_id}
    assert reader.damage == []


def test_a_sitting_replaced_by_a_longer_file_is_read_anew(two_notes_that_are_read):
    """The new file has the second of the two notes, and then two others.

    A reader that only read on from where it stopped would miss the lines at the new file's beginning.
    """
    reader, path, (_, second_id) = two_notes_that_are_read
    _, second_line = path.read_bytes().splitlines(keepends=True)
    third_id, fourth_id = "0123456789abcdef-1", "0123456789abcdef-2"
    third_line = encode_line(VALID_ENTRY | {"id": third_id})
    fourth_line = encode_line(VALID_ENTRY | {"id": fourth_id})

    arriving = path.with_suffix(".arriving")
    arriving.write_bytes(second_line + third_line + fourth_line)
    arriving.replace(path)
    reader.read()

    assert set(reader.lines) == {second_id, third_id, fourth_id}
    assert reader.damage == []


def test_a_line_stays_as_long_as_one_file_has_it(tmp_path):
    """Two files of a ledger have the same line, as one is a copy of the other, and one becomes empty.

    A desk that has read both reads the folder again, and still has the line.
    """
    writer = unread_ledger(tmp_path)
    line = writer.add("note", decision_row(1))
    (path,) = tmp_path.glob("ledger/*.jsonl")
    copied_file = path.with_name(f"{path.stem} (copy).jsonl")
    copied_file.write_bytes(path.read_bytes())
    reader = read_ledger(tmp_path)

    path.write_bytes(b"")
    reader.read()

    assert list(reader.lines) == [line.id]


@pytest.mark.parametrize(
    "levels", [("calm", "violent"), ("violent", "calm")], ids=["calm is read first", "violent is read first"]
)
def test_all_machines_choose_the_same_of_two_lines_with_one_id(tmp_path, levels):
    """Two files have a line with the same id, of two people, whom the message names.

    Which of them counts does not depend on the files' names, so that all machines agree. Here it is always
    the calm one.
    """
    level_in_first_file, level_in_second_file = levels
    for file_name, level in (("0" * 16, level_in_first_file), ("1" * 16, level_in_second_file)):
        cells = decision_row(1, annotator=f"judge of {level}") | {"level": level}
        write_sitting(tmp_path, VALID_ENTRY | {"row": cells}, name=file_name)

    ledger = read_ledger(tmp_path)

    assert [line.row["level"] for line in in_force(ledger.lines.values())] == ["calm"]
    (message,) = ledger.damage
    assert "judge of calm" in message
    assert "judge of violent" in message


def test_the_first_decision_forces_the_name_of_its_file_to_the_disk(tmp_path, monkeypatch):
    """A new file's name is on the disk when its folder is forced to it, after the file was made.

    The ledger's folder is new, too, and so the folder that it is in must be forced to the disk as well. A
    stand-in for the function that forces a folder records the names that are in it then.
    """
    names_in_forced_folders = {}

    def record_names(folder):
        names_in_forced_folders[folder] = {path.name for path in folder.iterdir()}

    monkeypatch.setattr(ledgers, "sync", record_names)
    unread_ledger(tmp_path).add("note", decision_row(1))

    (path,) = tmp_path.glob("ledger/*.jsonl")
    assert path.name in names_in_forced_folders[tmp_path / "ledger"]
    assert "ledger" in names_in_forced_folders[tmp_path]


def test_the_first_line_of_a_sitting_is_its_header(tmp_path):
    """The header names the codebook that the sitting's decisions were made under, by its digest.

    Here the digest is 64 times d, and the codebook's text is one line. The header also names a definition
    that is declared to mean the same.
    """
    codebook = StoredCodebook("d" * 64, 'name = "x"')
    header = Header(codebook, ("e" * 64,))
    ledger = Ledger(tmp_path, pytest.fail, lambda: header)  # it calls the second if a file is damaged

    ledger.add("note", decision_row(1))

    (path,) = tmp_path.glob("ledger/*.jsonl")
    first_line, _line_of_note = path.read_bytes().splitlines()
    entry = json.loads(first_line)["entry"]
    assert entry["kind"] == "sitting"
    assert entry["header"]["codebook"]["definition"] == "d" * 64


def add_field_to_header(path, name, value):
    """Add a field to the header, the first of two lines in a file of a ledger."""
    line_of_header, line_of_decision = path.read_bytes().splitlines(keepends=True)
    entry = json.loads(line_of_header)["entry"]
    entry["header"][name] = value
    path.write_bytes(encode_line(entry) + line_of_decision)


def test_a_header_with_a_field_of_a_later_version_is_read(tmp_path):
    """A file of the ledger has a header and a note. The header has a field `law`, unknown to this version.

    A later version of the program may have added it: header (the codebook, and the digest of an earlier
    definition) and note are read all the same.
    """
    codebook = StoredCodebook(definition="d" * 64, text='name = "x"')
    header = Header(codebook, ("e" * 64,))

    def fail_if_a_file_is_damaged(message):
        pytest.fail(message)

    def header_of_new_file():
        return header

    writer = Ledger(tmp_path, fail_if_a_file_is_damaged, header_of_new_file)
    note = writer.add("note", decision_row(1))
    (path,) = tmp_path.glob("ledger/*.jsonl")
    add_field_to_header(path, "law", {"of": "a later version"})

    ledger = read_ledger(tmp_path)

    assert ledger.header_of(ledger.lines[note.id]) == header
    assert ids_in_force(ledger) == [note.id]


def test_nothing_is_appended_after_a_torn_line(tmp_path):
    """A failed write may have left half a line, and a line after it would be torn, too.

    So the journal refuses to append from then on, even when it could write again.
    """
    path = tmp_path / "journal"
    journal = lines.LineJournal(path)
    journal.append({"first": 1})

    open_descriptor = journal.descriptor
    journal.descriptor = -1  # writing to it fails, as it is no open file
    with pytest.raises(OSError, match="descriptor"):
        journal.append({"second": 2})

    journal.descriptor = open_descriptor  # it could write again
    with pytest.raises(OSError, match="descriptor"):
        journal.append({"third": 3})
    journal.close()

    entries = [entry for _, entry in lines.read_lines(path, dict)]
    assert entries == [{"first": 1}]


def test_an_edited_row_replaces_a_line_whatever_its_clock(tmp_path):
    """A note that was changed three times is exported to a table, edited there, and the table is imported.

    Each change of a note has a later clock (a number), while clocks of an imported table begin anew. But the
    edited row names the note's last version by its id, and takes its place.
    """
    ledger = unread_ledger(tmp_path)
    note = ledger.add("note", decision_row(1))
    for number in range(3):
        note = ledger.add("note", decision_row(number), replaces=[note.id])
    digest_of_table = token_hex(32)
    edited_cells = decision_row(9)
    id_of_last_version = note.id
    edited_row = TableRow(edited_cells, id_of_last_version)

    ledger.add_table(digest_of_table, "note", [edited_row])

    ((_, standing_cells),) = lines_in_force(read_ledger(tmp_path))
    assert standing_cells == edited_cells


def test_ten_damaged_lines_are_named_and_the_others_counted(tmp_path):
    """Of 5,000 empty lines ten are named one by one, and 4,990 in one message."""
    (tmp_path / "ledger").mkdir()
    (tmp_path / "ledger" / "0000000000000000.jsonl").write_bytes(b"\n" * 5000)

    messages = []
    Ledger(tmp_path, messages.append).read()

    *messages_on_single_lines, message_on_all_others = messages
    assert len(messages_on_single_lines) == 10
    assert "4990" in message_on_all_others.replace(",", "")


def test_lines_of_an_imported_table_have_the_clocks_that_every_version_gave_them(tmp_path):
    """Two machines with two versions of the program import one table: its lines must be equal on both.

    So clocks do not depend on what else a ledger holds. Line 1, on the table itself, has the clock 1. Line 2,
    a new row, has one more than that. Line 3, a row that replaces the last of four notes, must come after it:
    its clock is one more than that of the note.
    """
    ledger = unread_ledger(tmp_path)
    notes = [ledger.add("note", decision_row(number)) for number in range(4)]
    last_note = notes[-1]
    earlier_ids = {*ledger.lines}
    new_row = TableRow(decision_row(5))
    row_that_replaces = TableRow(decision_row(6), last_note.id)

    digest_of_table = token_hex(32)
    ledger.add_table(digest_of_table, "note", [new_row, row_that_replaces])

    lines_of_table = [line for line in read_ledger(tmp_path).lines.values() if line.id not in earlier_ids]
    clock_of_line = {line.number: line.clock for line in lines_of_table}
    assert clock_of_line == {1: 1, 2: 2, 3: last_note.clock + 1}


def test_the_message_on_a_last_line_without_a_line_end_has_its_own_number(tmp_path):
    """A sitting has two lines, the second with a clock that no line may have, and was copied incompletely.

    The last byte, the line end of line 2, is missing. The message names line 2, and line 1 is read.
    """
    good = VALID_ENTRY | {"id": "0000000000000000-1"}
    with_impossible_clock = VALID_ENTRY | {"id": "0000000000000000-2", "clock": LATEST}
    path = write_sitting(tmp_path, good, with_impossible_clock, name="0000000000000000")
    path.write_bytes(path.read_bytes().rstrip(b"\n"))

    ledger = read_ledger(tmp_path)

    (message,) = ledger.damage
    assert "line 2" in message
    assert len(ledger.lines) == 1


@pytest.mark.parametrize(
    ("unread", "call"),
    [("ledger/0000000000000000.jsonl", (ledgers, "open_regular")), ("ledger", (Path, "iterdir"))],
    ids=["a file", "the folder"],
)
def test_a_ledger_that_the_disk_does_not_give_is_no_empty_one(tmp_path, monkeypatch, unread, call):
    """The disk fails while a file of the ledger is opened, or its folder listed.

    If the ledger went on without these lines, decisions would be missing from every export and table, and
    the same ones would come in a second time with the next import. What the disk gives later is read.
    """
    write_sitting(tmp_path, VALID_ENTRY | {"row": decision_row(0)}, name="0" * 16)
    ledger = unread_ledger(tmp_path)

    def fail_to_read(*_, **__):
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(tmp_path / unread))

    with monkeypatch.context() as broken_disk:
        broken_disk.setattr(*call, fail_to_read)
        with pytest.raises(FilmError) as refused:
            ledger.read()
    assert str(refused.value).startswith(f"{tmp_path / unread}: not read (Input/output error)")

    ledger.read()
    assert ids_in_force(ledger) == [VALID_ENTRY["id"]]
