"""Files are written whole or not at all, and nothing is overwritten unasked."""

import csv
import errno
import io
import os
import signal
import stat
import subprocess
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import obygaze_features.io as ours
from obygaze_features import locks
from obygaze_features.errors import OutputError
from obygaze_features.io import refuse_existing, whole_folder, write_together, write_whole
from obygaze_features.lines import csv_line


def test_bytes_and_text_are_written_as_they_are(tmp_path):
    write_whole(tmp_path / "a", b"\x00\r\n")
    assert (tmp_path / "a").read_bytes() == b"\x00\r\n"
    write_whole(tmp_path / "a", "é\r\n")
    assert (tmp_path / "a").read_bytes() == "é\r\n".encode()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("step", ["write_all", "sync"])
def test_a_write_that_fails_leaves_the_old_file_and_names_it(tmp_path, monkeypatch, step):
    path = tmp_path / "a"
    write_whole(path, b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ours, step, full)
    with pytest.raises(OSError, match="No space left") as caught:
        write_whole(path, b"new")
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="has no such modes")
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path):
    for mode in (0o600, 0o664):
        (path := tmp_path / f"{mode:o}").write_text("old")
        path.chmod(mode)
        write_whole(path, "new")
        assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", mode)


def test_of_files_written_together_none_is_replaced_unless_all_are_on_the_disk(tmp_path, monkeypatch):
    """A network's disk may say only then that it is full."""
    paths = [tmp_path / "codebook", tmp_path / "manifest"]
    write_together(dict.fromkeys(paths, b"old"))
    sync = ours.sync

    def full(path):
        if "manifest" in path.name:
            raise OSError(28, "No space left on device")
        sync(path)

    monkeypatch.setattr(ours, "sync", full)
    with pytest.raises(OSError, match="No space left"):
        write_together(dict.fromkeys(paths, b"new"))
    assert [path.read_bytes() for path in paths] == [b"old", b"old"]
    assert sorted(tmp_path.iterdir()) == paths


def test_a_file_is_whole_though_each_call_writes_a_part(tmp_path, monkeypatch):
    """As nearly full disks and NFS do."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, bytes(data)[:3]))
    write_whole(tmp_path / "a", b"ten bytes.")
    assert (tmp_path / "a").read_bytes() == b"ten bytes."


def test_a_folder_appears_whole_and_replaces_the_old_one(tmp_path):
    folder = tmp_path / "run"
    with whole_folder(folder) as partial:
        (partial / "a").write_bytes(b"1")
        assert not folder.exists()
    with whole_folder(folder) as partial:
        (partial / "b").write_bytes(b"2")
        assert [path.name for path in folder.iterdir()] == ["a"]
    assert [path.name for path in folder.iterdir()] == ["b"]
    assert list(tmp_path.iterdir()) == [folder]


def test_a_folder_that_was_not_finished_leaves_the_old_one(tmp_path):
    folder = tmp_path / "run"
    with whole_folder(folder) as partial:
        (partial / "a").write_bytes(b"1")
    with pytest.raises(RuntimeError, match="stopped"), whole_folder(folder) as partial:
        raise RuntimeError("stopped")
    assert [path.name for path in folder.iterdir()] == ["a"]
    assert list(tmp_path.iterdir()) == [folder]


KILLED_WHILE_IT_REPLACES = """
import os, sys
from pathlib import Path
from obygaze_features import io

folder = Path(sys.argv[1])
with io.whole_folder(folder) as partial:
    (partial / "old file").touch()

with io.whole_folder(folder) as partial:
    (partial / "new file").touch()
    kill = lambda *_, **__: os.kill(os.getpid(), 9)
    io.remove_tree = kill  # what removes the old folder in the end
    if sys.argv[2] == "cannot exchange":
        io._rename = lambda *_: False
        replace = Path.replace

        def rename_the_old_folder_alone(path, target):
            replace(path, target) if target.name.endswith(".old") else kill()

        Path.replace = rename_the_old_folder_alone
"""
"""Replaces a folder, and is killed as soon as the old one has lost its name."""


def replace_and_be_killed(folder, system):
    """Run the program above, on a system that can exchange the names of two folders or one that cannot."""
    command = [sys.executable, "-c", KILLED_WHILE_IT_REPLACES, str(folder), system]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL


def test_where_names_can_be_exchanged_a_replaced_folder_is_the_new_one_at_every_moment(tmp_path):
    folder = tmp_path / "run"
    replace_and_be_killed(folder, "can exchange")
    assert [path.name for path in folder.iterdir()] == ["new file"]

    write_whole(tmp_path / "other", b"")  # who writes there next removes what was left
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "run"]
    assert [path.name for path in folder.iterdir()] == ["new file"]


def test_where_names_cannot_be_exchanged_the_next_writer_puts_the_old_folder_back(tmp_path):
    folder = tmp_path / "run"
    replace_and_be_killed(folder, "cannot exchange")
    assert not folder.exists()

    write_whole(tmp_path / "other", b"")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "run"]
    assert [path.name for path in folder.iterdir()] == ["old file"]


def test_what_exists_is_not_overwritten_unless_forced(tmp_path):
    (tmp_path / "b").touch()
    refuse_existing(tmp_path / "a", None)
    refuse_existing(tmp_path / "b", force=True)
    with pytest.raises(OutputError, match="b exists already"):
        refuse_existing(tmp_path / "a", tmp_path / "b")


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\x00")), min_size=2))
def test_a_line_of_csv_reads_back(cells):
    assert list(csv.reader(io.StringIO(csv_line(cells), newline=""), strict=True)) == [cells]


def test_a_lock_on_a_file_that_was_replaced_meanwhile_is_not_held(tmp_path, monkeypatch):
    path, other = tmp_path / "a", tmp_path / "b"
    path.touch()
    hold = locks.hold

    def hold_and_replace(*arguments, **options):
        result = hold(*arguments, **options)
        other.touch()
        other.replace(path)
        return result

    with locks.locked(path, wait=False) as is_held:
        assert is_held
    monkeypatch.setattr(locks, "hold", hold_and_replace)
    with locks.locked(path, wait=False) as is_held:
        assert not is_held


@pytest.fixture
def macos(monkeypatch):
    """Let `io` see macOS, whose full fsync fails with an error number.

    Gives a function of this number, which gives the descriptors that the usual fsync forces.
    """
    forced = []
    monkeypatch.setattr(ours, "sys", SimpleNamespace(platform="darwin"))
    monkeypatch.setattr(os, "fsync", forced.append)

    def fail_with(number):
        def full_fsync(*_):
            raise OSError(number, os.strerror(number))

        monkeypatch.setitem(sys.modules, "fcntl", SimpleNamespace(fcntl=full_fsync, F_FULLFSYNC=51))
        return forced

    return fail_with


def test_on_macos_a_share_without_full_fsync_gets_the_usual_one(macos):
    forced = macos(errno.ENOTSUP)
    ours.force_to_disk(7)
    assert forced == [7]


def test_on_macos_an_error_of_full_fsync_is_raised(macos):
    forced = macos(errno.EIO)
    with pytest.raises(OSError, match="error"):
        ours.force_to_disk(7)
    assert forced == []


def write_folder(path, data):
    """Write a folder of one file."""
    with whole_folder(path) as folder:
        (folder / "file").write_bytes(data)


# --- what others do in the same folder
# ---------------------------------------------------------------------------
def test_two_writers_of_one_name_never_share_a_file(tmp_path):
    """Containers may have one host name and each a process 1, so that neither tells them apart."""
    path = tmp_path / "a"
    with ours.whole_file(path) as first:
        first.write_bytes(b"AAA")
        with ours.whole_file(path) as second:
            second.write_bytes(b"BBB")
            assert first.read_bytes() == b"AAA"
        assert path.read_bytes() == b"BBB"
    assert path.read_bytes() == b"AAA"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="has no such locks and modes")
def test_temporary_files_in_use_are_not_swept_and_those_left_behind_are(tmp_path, monkeypatch):
    for name in (".a.0123456789ab.partial", ".b.0123456789ab.old"):
        (tmp_path / name).mkdir()
    (tmp_path / ".c.0123456789ab.partial").write_bytes(b"left")
    (tmp_path / ".d.0123456789ab.partial").symlink_to("/dev/zero")
    with ours.whole_file(tmp_path / "x") as used, whole_folder(tmp_path / "y") as folder:
        (folder / "z").touch()
        used.write_bytes(b"used")
        monkeypatch.setattr(ours, "_SWEPT", set())
        write_whole(tmp_path / "other", b"")
    assert {path.name for path in tmp_path.iterdir()} == {"b", "other", "x", "y", ".d.0123456789ab.partial"}
    assert (tmp_path / "y" / "z").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="has no such locks")
@pytest.mark.parametrize("write", [write_whole, write_folder], ids=["file", "folder"])
def test_a_file_that_is_swept_before_it_is_locked_is_begun_anew(tmp_path, monkeypatch, write):
    """Another process may begin to write in the same folder between the two steps, and sweep it."""
    create = ours._create_temporary
    n_created = 0

    def create_beside_a_sweep(path, is_folder):
        nonlocal n_created
        n_created += 1
        node = create(path, is_folder)
        if n_created == 1:
            ours._sweep(tmp_path)
            assert not node.exists()
        return node

    monkeypatch.setattr(ours, "_create_temporary", create_beside_a_sweep)
    write(tmp_path / "a", b"whole")
    assert n_created == 2
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


has_links_and_modes = pytest.mark.skipif(sys.platform == "win32", reason="has no such links and modes")


@has_links_and_modes
def test_a_file_is_replaced_through_its_link_and_keeps_its_group_and_mode(tmp_path):
    real = tmp_path / "real"
    real.write_bytes(b"old")
    real.chmod(0o640)
    group = os.getegid() if os.geteuid() else 12  # root may give a file to any group
    os.chown(real, -1, group)
    link = tmp_path / "link"
    link.symlink_to("real")
    write_whole(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert (stat.S_IMODE(real.stat().st_mode), real.stat().st_gid) == (0o640, group)


@has_links_and_modes
def test_a_link_is_replaced_itself_where_links_are_not_followed(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    write_whole(tmp_path / "link", b"new", links=False)
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"old"


@has_links_and_modes
@pytest.mark.parametrize("target", ["nowhere", "/dev/null"])
def test_a_link_to_nothing_or_to_a_device_is_replaced_itself(tmp_path, target):
    (tmp_path / "link").symlink_to(target)
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").read_bytes() == b"new"
    assert not (tmp_path / "nowhere").exists()


@has_links_and_modes
def test_a_folder_is_replaced_through_its_link_and_keeps_its_mode(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o750)
    (tmp_path / "link").symlink_to("folder")
    with whole_folder(tmp_path / "link") as partial:
        (partial / "a").touch()
    assert (tmp_path / "link").is_symlink()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o750
    assert (folder / "a").exists()


@pytest.mark.parametrize("in_one_step", [True, False])
def test_write_once_replaces_nothing(tmp_path, monkeypatch, in_one_step):
    if not in_one_step:
        monkeypatch.setattr(ours, "_rename", lambda *_: False)
    ours.write_once(tmp_path / "a", b"first")
    with pytest.raises(FileExistsError, match="a"):
        ours.write_once(tmp_path / "a", b"second")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"first"]
