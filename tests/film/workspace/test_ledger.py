"""The ledger: files that are only appended to, whose union is the same however it comes about."""

import errno
import json
import os
import shutil
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from obygaze_features import io, lines
from obygaze_features.lines import encode_line
from obygaze_film.errors import FilmError
from obygaze_film.workspace import ledger as ledgers
from obygaze_film.workspace.authority import standing
from obygaze_film.workspace.ledger import MOST_OF_A_KIND, Ledger, TableRow
from obygaze_film.workspace.ledger_lines import LATEST, Header, StoredCodebook


def row(n, who="AB"):
    return {"annotator": who, "start_s": f"{n}"}


def opened(folder):
    """Make a ledger that collects what is wrong in its files."""
    damage = {}
    ledger = Ledger(folder, damage.setdefault)
    ledger.damage = damage
    return ledger


def read(folder):
    ledger = opened(folder)
    ledger.read()
    return ledger


def stands(ledger):
    return [(line.id, dict(line.row)) for line in standing(ledger.lines.values())]


ACTS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["add", "again", "undo", "sync"]), st.integers(0, 9)),
    max_size=25,
)


@settings(max_examples=25, deadline=None)
@given(acts=ACTS, order=st.permutations(range(3)), torn=st.integers(0, 40))
def test_the_union_of_random_sittings_is_the_same_in_any_order_of_merging(acts, order, torn):
    """Three machines decide, and fetch what others have now and then; then all files come together."""
    with TemporaryDirectory() as made:
        machines = [Path(made, name) for name in "abc"]
        for machine in machines:
            machine.mkdir()
        sittings = [opened(machine) for machine in machines]
        for who, act, number in acts:
            ledger = sittings[who]
            ledger.read()
            known = [line.id for line in standing(ledger.lines.values())]
            known = [*ledger.lines] if act == "undo" else known  # what takes back is taken back too
            if act == "sync":
                copy(machines[number % 3], machines[who])
            elif act == "add" or not known:
                ledger.add("note", row(number))
            else:
                kind = "undo" if act == "undo" else "judgement"
                ledger.add(kind, row(number), [known[number % len(known)]])
        for ledger in sittings:
            ledger.close()
        merged = Path(made, "merged")
        merged.mkdir()
        step_by_step = opened(merged)
        for place in order:
            copy(machines[place], merged)
            step_by_step.read()
        for path in merged.glob("ledger/*.jsonl"):  # a crash tears a line that nobody was told of
            path.write_bytes(path.read_bytes() + encode_line({"id": "torn"})[:torn])
        step_by_step.read()
        assert stands(step_by_step) == stands(read(merged))
        assert step_by_step.damage == {}
        for one, machine in zip(sittings, machines, strict=True):
            assert one.lines.items() <= read(merged).lines.items(), machine


def copy(source, target):
    """Synchronise a folder: files that are new or longer."""
    (target / "ledger").mkdir(exist_ok=True)
    for path in source.glob("ledger/*.jsonl"):
        there = target / "ledger" / path.name
        if not there.exists() or there.stat().st_size < path.stat().st_size:
            shutil.copyfile(path, there)


def test_a_later_line_of_a_slow_clock_stands_and_two_that_replace_one_both_stand(tmp_path):
    first = opened(tmp_path)
    old = first.add("judgement", row(1))
    second = read(tmp_path)
    new = second.add("judgement", row(2), [old.id])
    assert new.clock == old.clock + 1
    other = first.add("judgement", row(3), [old.id])  # which had not read the second
    assert {line.id for line in standing(read(tmp_path).lines.values())} == {new.id, other.id}
    first.add("undo", row(3), [other.id])
    assert stands(read(tmp_path)) == [(new.id, row(2))]


def test_what_is_taken_back_brings_back_what_it_replaced(tmp_path):
    ledger = opened(tmp_path)
    one = ledger.add("judgement", row(1))
    two = ledger.add("judgement", row(2), [one.id])
    ledger.add("undo", row(2), [two.id])
    assert stands(ledger) == [(one.id, row(1))]


def test_a_sitting_has_a_file_that_no_other_has(tmp_path, monkeypatch):
    names = iter(["0" * 16, "0" * 16, "1" * 16])
    monkeypatch.setattr(ledgers, "token_hex", lambda _: next(names))
    one = opened(tmp_path).add("note", row(1))
    with pytest.raises(FileExistsError):
        opened(tmp_path).add("note", row(2))
    assert stands(read(tmp_path)) == [(one.id, row(1))]


def test_git_and_sync_folders_may_change_ends_of_lines_and_names(tmp_path):
    ledger = opened(tmp_path)
    for number in range(3):
        ledger.add("note", row(number))
    (path,) = tmp_path.glob("ledger/*.jsonl")
    before = stands(ledger)
    path.with_name(f"{path.stem} (conflicted copy).jsonl").write_bytes(path.read_bytes())
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    again = read(tmp_path)
    assert (stands(again), again.damage) == (before, {})
    assert "-text" in (tmp_path / "ledger" / ".gitattributes").read_text("utf-8")


GOOD = {"id": "0123456789abcdef-1", "clock": 1, "kind": "note", "row": {}}


@pytest.mark.parametrize(
    "line",
    [
        b'{"crc32":"00000000","entry":{}}\n',
        b"x" * 100 + b"\n",
        b"\0\n",
        *(
            encode_line(GOOD | wrong)
            for wrong in (
                {"id": "1"}, {"id": "0123456789abcdef-0"}, {"id": "../etc/passwd-1"}, {"clock": 0},
                {"clock": 1.5},
                {"clock": LATEST + 1}, {"kind": "other"}, {"row": {"a": 1}}, {"row": []}, {"replaces": ["x"]},
            )
        ),
        encode_line({"entry": 1}),
    ],
)  # fmt: skip
def test_a_line_that_is_none_is_named_once_and_left_out(tmp_path, line):
    ledger = opened(tmp_path)
    ledger.add("note", row(1))
    (path,) = tmp_path.glob("ledger/*.jsonl")
    with path.open("ab") as file:
        file.write(line + encode_line(GOOD))
    ledger.read()
    ledger.read()
    assert [str(path) in message and "line 2" in message for message in ledger.damage] == [True]
    assert len(ledger.lines) == 2


def write_sitting(folder, *entries, name="0" * 16):
    """Write a sitting as a stranger does, who knows the format."""
    (folder / "ledger").mkdir(exist_ok=True)
    path = folder / "ledger" / f"{name}.jsonl"
    path.write_bytes(b"".join(map(encode_line, entries)))
    return path


@pytest.mark.parametrize("clock", [LATEST, 2**32 + 2])
def test_a_clock_that_no_ledger_comes_to_is_left_out_and_said_with_its_name(tmp_path, clock):
    path = write_sitting(tmp_path, GOOD | {"clock": clock, "row": row(1, "MALLORY")})
    ledger = read(tmp_path)
    kept = ledger.add("note", row(1))
    assert [(str(path) in said, "MALLORY" in said) for said in ledger.damage] == [(True, True)]
    assert [*read(tmp_path).lines] == [kept.id]


@pytest.mark.parametrize("clock", [1, 99, 2**20 + 9, 2**32 + 1])
def test_with_any_clock_that_is_read_people_go_on_changing_what_they_decided(tmp_path, clock):
    """Whatever clock a stranger writes, undo, redo and changes of earlier sittings go on."""
    write_sitting(tmp_path, GOOD | {"clock": clock, "row": row(0, "MALLORY")})
    old = read(tmp_path).add("note", row(1))
    ledger = read(tmp_path)
    new = ledger.add("note", row(2), [old.id])
    undo = ledger.add("undo", row(2), [new.id])
    ledger.add("undo", row(2), [undo.id])
    hostile = (GOOD["id"], row(0, "MALLORY"))
    assert sorted(stands(read(tmp_path))) == sorted([hostile, (new.id, row(2))])


@pytest.mark.parametrize("clock", [99, 2**20 + 9, 2**32 + 1])
def test_nobody_takes_back_beforehand_what_somebody_will_decide(tmp_path, clock):
    """An undo that is signed by the victim, of lines of the victim's sitting that are not written yet."""
    ledger = opened(tmp_path)
    first = ledger.add("note", row(1))
    ahead = [f"{first.sitting}-{number}" for number in range(2, 60)]
    write_sitting(tmp_path, GOOD | {"clock": clock, "kind": "undo", "row": row(0), "replaces": ahead})
    ledger.read()
    kept = [first.id] + [ledger.add("note", row(number)).id for number in (2, 3)]
    assert sorted(name for name, _ in stands(read(tmp_path))) == sorted(kept)


def test_a_line_whose_clock_leaves_no_later_one_cannot_be_taken_back_and_that_is_said(tmp_path):
    number = 999_999_999
    last = f"0123456789abcdef-{number}"
    write_sitting(tmp_path, GOOD | {"id": last, "clock": number + 2**32, "row": row(0)})
    ledger = read(tmp_path)
    with pytest.raises(FilmError, match="clock"):
        ledger.add("undo", row(0), [last])
    kept = ledger.add("note", row(1))
    assert {name for name, _ in stands(read(tmp_path))} == {last, kept.id}


@pytest.mark.skipif(
    os.environ.get("SIMULATED", os.name) in {"windows", "nt"}, reason="Windows has neither in a folder"
)
def test_a_pipe_or_a_link_among_the_files_is_named(tmp_path):
    (tmp_path / "ledger").mkdir()
    (tmp_path / "other").write_bytes(encode_line(GOOD))
    os.mkfifo(tmp_path / "ledger" / "a.jsonl")
    (tmp_path / "ledger" / "b.jsonl").symlink_to(tmp_path / "other")
    ledger = read(tmp_path)
    assert (ledger.lines, len(ledger.damage)) == ({}, 2)


@pytest.mark.parametrize("call", ["write_all", "force_to_disk"])
def test_what_was_said_not_to_be_kept_is_not_kept(tmp_path, monkeypatch, call):
    ledger = opened(tmp_path)
    kept = [ledger.add("note", row(1)).id]

    def fails(*_):
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as disk:
        disk.setattr(lines, call, fails)
        with pytest.raises(OSError, match="Input/output"):
            ledger.add("note", row(2))
    ledger.read()
    assert [name for name, _ in stands(ledger)] == kept
    kept.append(ledger.add("note", row(3)).id)
    assert [name for name, _ in stands(read(tmp_path))] == kept


@pytest.mark.skipif(
    os.environ.get("SIMULATED", os.name) in {"windows", "nt"},
    reason="Windows renames no folder of an open file",
)
def test_a_folder_that_was_exchanged_gets_a_new_file(tmp_path):
    ledger = opened(tmp_path)
    ledger.add("note", row(1))
    shutil.move(tmp_path / "ledger", tmp_path / "old")
    line = ledger.add("note", row(2))
    assert stands(read(tmp_path)) == [(line.id, row(2))]


def test_a_table_comes_in_whole_and_once(tmp_path, monkeypatch):
    ledger, digest = opened(tmp_path), token_hex(32)
    rows = [TableRow(row(1)), None, TableRow(row(2))]
    with monkeypatch.context() as disk:
        disk.setattr(io, "write_all", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
        with pytest.raises(OSError, match="full"):
            ledger.add_table(digest, "note", rows)
    assert read(tmp_path).lines == {}
    assert [ledger.add_table(digest, "note", rows) for _ in range(2)] == [2, 0]
    assert [name.partition("-")[2] for name, _ in stands(ledger)] == ["2", "4"]
    other = tmp_path / "other"
    other.mkdir()
    opened(other).add_table(digest, "note", [TableRow(row(1)), TableRow(row(3)), None])
    copy(other, tmp_path)  # the same table on another machine, which knew another row
    assert len(stands(read(tmp_path))) == 2


def test_what_takes_back_is_taken_back_as_often_as_one_likes(tmp_path):
    ledger = Ledger(tmp_path, pytest.fail)
    old = ledger.add("judgement", {"level": "calm"})
    new = ledger.add("judgement", {"level": "violent"}, [old.id])
    last, stands = new, []
    for _ in range(4):
        last = ledger.add("undo", {}, [last.id])
        stands += [line.id for line in standing(reversed(ledger.lines.values()))]
    assert stands == [old.id, new.id] * 2


def test_a_sitting_that_became_shorter_or_another_is_read_anew(tmp_path):
    """As a program that synchronises brings back an earlier version, or another file of this name."""
    writer = opened(tmp_path)
    kept, gone = writer.add("note", row(1)), writer.add("note", row(2))
    (path,) = tmp_path.glob("ledger/*.jsonl")
    reader = read(tmp_path)
    assert {*reader.lines} == {kept.id, gone.id}
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first)
    reader.read()
    assert ({*reader.lines}, reader.damage) == ({kept.id}, {})
    path.write_bytes(first + second)
    reader.read()
    assert {*reader.lines} == {kept.id, gone.id}
    other = path.with_suffix(".arriving")
    other.write_bytes(second + encode_line(GOOD) + encode_line(GOOD | {"id": "0123456789abcdef-2"}))
    other.replace(path)
    reader.read()
    assert ({*reader.lines}, reader.damage) == ({gone.id, GOOD["id"], "0123456789abcdef-2"}, {})


def test_a_line_that_another_file_has_too_stays_when_one_of_them_becomes_shorter(tmp_path):
    writer = opened(tmp_path)
    kept = writer.add("note", row(1))
    (path,) = tmp_path.glob("ledger/*.jsonl")
    path.with_name(f"{path.stem} (copy).jsonl").write_bytes(path.read_bytes())
    reader = read(tmp_path)
    path.write_bytes(b"")
    reader.read()
    assert [*reader.lines] == [kept.id]


@pytest.mark.parametrize("first", ["calm", "violent"])
def test_of_two_lines_with_one_id_every_machine_takes_the_same_and_both_people_are_named(tmp_path, first):
    """Whichever is read first, by whatever names of files."""
    levels = ["calm", "violent"] if first == "calm" else ["violent", "calm"]
    for name, level in zip(("0" * 16, "1" * 16), levels, strict=True):
        cells = row(1, f"judge of {level}") | {"level": level}
        write_sitting(tmp_path, GOOD | {"row": cells}, name=name)
    ledger = read(tmp_path)
    assert [line.row["level"] for line in standing(ledger.lines.values())] == ["calm"]
    (told,) = ledger.damage
    assert "judge of calm" in told
    assert "judge of violent" in told


def test_a_new_sittings_name_is_on_the_disk_before_a_decision_is_said_to_be_kept(tmp_path, monkeypatch):
    forced = []
    monkeypatch.setattr(ledgers, "sync", lambda path: forced.append((path, {*path.glob("*.jsonl")})))
    ledger = opened(tmp_path)
    ledger.add("note", row(1))
    (path,) = tmp_path.glob("ledger/*.jsonl")
    assert (path.parent, {path}) in forced
    assert tmp_path in [folder for folder, _ in forced]


def test_a_sittings_first_line_says_what_it_is_of_and_readers_pass_over_what_they_do_not_know(tmp_path):
    header = Header(StoredCodebook("d" * 64, 'name = "x"'), ("e" * 64,))
    ledger = Ledger(tmp_path, pytest.fail, lambda: header)
    line = ledger.add("note", row(1))
    (path,) = tmp_path.glob("ledger/*.jsonl")
    first, _ = path.read_bytes().splitlines()
    entry = json.loads(first)["entry"]
    assert (entry["kind"], entry["header"]["codebook"]["definition"]) == ("sitting", "d" * 64)
    again = read(tmp_path)
    assert again.header_of(again.lines[line.id]) == header
    assert [name for name, _ in stands(again)] == [line.id]
    entry["header"]["law"] = {"of": "a later version"}
    path.write_bytes(encode_line(entry) + path.read_bytes().splitlines(keepends=True)[1])
    assert read(tmp_path).header_of(line) == header


def test_a_line_that_was_refused_is_taken_back_whoever_decides_next(tmp_path, monkeypatch):
    """It may have got into the file all the same; then it must not stand, for anybody."""
    ledger = opened(tmp_path)
    kept = ledger.add("note", row(1, "AB"))
    with monkeypatch.context() as disk:
        disk.setattr(lines, "force_to_disk", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "error")))
        with pytest.raises(OSError, match="error"):
            ledger.add("note", row(2, "AB"))
    other = ledger.add("judgement", row(3, "CD"))
    assert {name for name, _ in stands(read(tmp_path))} == {kept.id, other.id}


def test_after_a_failed_write_nothing_is_appended_behind_a_torn_line(tmp_path):
    path = tmp_path / "journal"
    journal = lines.LineJournal(path)
    journal.append({"a": 1})
    descriptor, journal.descriptor = journal.descriptor, -1
    with pytest.raises(OSError, match="descriptor"):
        journal.append({"b": 2})
    journal.descriptor = descriptor
    with pytest.raises(OSError, match="descriptor"):
        journal.append({"c": 3})
    journal.close()
    assert [entry for _, entry in lines.read_lines(path, dict)] == [{"a": 1}]


def test_a_tables_lines_come_after_what_they_replace(tmp_path):
    ledger = opened(tmp_path)
    old = ledger.add("note", row(1))
    for number in range(3):
        old = ledger.add("note", row(number), [old.id])
    ledger.add_table(token_hex(32), "note", [TableRow(row(9), old.id)])
    assert [cells for _, cells in stands(read(tmp_path))] == [row(9)]


def test_notices_of_a_kind_are_counted_after_the_first_ones(tmp_path):
    said = []
    (tmp_path / "ledger").mkdir()
    (tmp_path / "ledger" / "0000000000000000.jsonl").write_bytes(b"\n" * 5000)
    Ledger(tmp_path, said.append).read()
    assert len(said) == MOST_OF_A_KIND + 1
    assert "4990" in said[-1].replace(",", "")
