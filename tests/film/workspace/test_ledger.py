"""The ledger: files that are only appended to, whose union is the same however it comes about."""

import errno
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
from obygaze_film.workspace import ledger as ledgers
from obygaze_film.workspace.ledger import LATEST, Ledger, standing


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


def test_no_clock_of_a_stranger_keeps_later_lines_from_being_read(tmp_path):
    (tmp_path / "ledger").mkdir()
    (tmp_path / "ledger" / "0.jsonl").write_bytes(encode_line(GOOD | {"clock": LATEST}))
    ledger = read(tmp_path)
    ledger.add("note", row(1))
    assert len(read(tmp_path).lines) == 2


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
    rows = [(row(1), ""), None, (row(2), "")]
    with monkeypatch.context() as disk:
        disk.setattr(io, "write_all", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
        with pytest.raises(OSError, match="full"):
            ledger.add_table(digest, "note", rows)
    assert read(tmp_path).lines == {}
    assert [ledger.add_table(digest, "note", rows) for _ in range(2)] == [2, 0]
    assert [name.partition("-")[2] for name, _ in stands(ledger)] == ["2", "4"]
    other = tmp_path / "other"
    other.mkdir()
    opened(other).add_table(digest, "note", [(row(1), ""), (row(3), ""), None])
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
