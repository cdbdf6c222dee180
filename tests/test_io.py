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

from obygaze_features import io as obygaze_io
from obygaze_features import locks
from obygaze_features.errors import OutputError
from obygaze_features.io import files_below, refuse_existing, whole_folder, write_together, write_whole
from obygaze_features.lines import csv_line


def write_file(path):
    write_whole(path, b"whole")


def write_folder(folder, file="file"):
    """Write a folder that has one file of a name."""
    with whole_folder(folder) as partial:
        (partial / file).write_bytes(b"whole")


@pytest.mark.parametrize(
    ("content", "octets"), [(b"\x00\r\n", b"\x00\r\n"), ("é\r\n", b"\xc3\xa9\r\n")], ids=["bytes", "text"]
)
def test_bytes_and_text_are_written_as_they_are(tmp_path, content, octets):
    """Text is written as UTF-8; no end of a line is changed, and no other file is left in the folder."""
    path = tmp_path / "a"

    write_whole(path, content)

    assert path.read_bytes() == octets
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("step", ["write_all", "sync"])
def test_a_write_that_fails_leaves_the_old_file_and_names_it(tmp_path, monkeypatch, step):
    """The disk is full: a network's disk may say so only when the file is forced to it (`sync`)."""
    path = tmp_path / "a"
    write_whole(path, b"old")

    def fail_as_on_a_full_disk(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(obygaze_io, step, fail_as_on_a_full_disk)
    with pytest.raises(OSError, match="No space left") as caught:
        write_whole(path, b"new")

    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="has no such modes")
@pytest.mark.parametrize("mode", [0o600, 0o664])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path, mode):
    """A new file takes the place of the old one, so its mode must be set: 0o600 is for its owner alone."""
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(mode)

    write_whole(path, "new")

    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_of_files_written_together_none_is_replaced_unless_all_are_on_the_disk(tmp_path, monkeypatch):
    """The disk is full as the second of two files is forced to it; a network's disk may not say so before."""
    codebook, manifest = tmp_path / "codebook", tmp_path / "manifest"
    write_together({codebook: b"old", manifest: b"old"})
    sync = obygaze_io.sync

    def fail_for_the_manifest(path):
        if "manifest" in path.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(path)

    monkeypatch.setattr(obygaze_io, "sync", fail_for_the_manifest)
    with pytest.raises(OSError, match="No space left"):
        write_together({codebook: b"new", manifest: b"new"})

    assert codebook.read_bytes() == b"old"
    assert manifest.read_bytes() == b"old"
    assert sorted(tmp_path.iterdir()) == [codebook, manifest]


def test_a_file_is_whole_though_each_call_of_the_system_writes_only_a_part(tmp_path, monkeypatch):
    """On a nearly full disk, or on NFS, `os.write` may write less than it is given; here, 3 bytes."""
    write = os.write

    def write_three_bytes(file, data):
        return write(file, bytes(data)[:3])

    monkeypatch.setattr(os, "write", write_three_bytes)
    write_whole(tmp_path / "a", b"ten bytes.")

    assert (tmp_path / "a").read_bytes() == b"ten bytes."


def test_a_folder_is_not_there_until_it_is_whole(tmp_path):
    """`whole_folder` gives another folder to write in, which gets the name when the block ends."""
    folder = tmp_path / "run"

    with whole_folder(folder) as partial:
        (partial / "a").write_bytes(b"1")
        assert not folder.exists()

    assert [path.name for path in folder.iterdir()] == ["a"]
    assert list(tmp_path.iterdir()) == [folder]


def test_a_whole_folder_replaces_the_old_one(tmp_path):
    """Until the block ends, the old folder is there."""
    folder = tmp_path / "run"
    write_folder(folder, file="old")

    with whole_folder(folder) as partial:
        (partial / "new").write_bytes(b"2")
        assert [path.name for path in folder.iterdir()] == ["old"]

    assert [path.name for path in folder.iterdir()] == ["new"]
    assert list(tmp_path.iterdir()) == [folder]


def test_an_error_while_a_new_folder_is_written_leaves_the_old_folder_as_it_was(tmp_path):
    """The folder `run` has the file `old`, and is to be replaced by a new one.

    `whole_folder` gives a temporary folder to write in, which gets the name `run` when the `with` block ends.
    Here an error ends the block: `run` is as it was, and no temporary folder stays beside it.
    """
    folder = tmp_path / "run"
    write_folder(folder, file="old")

    with pytest.raises(RuntimeError, match="stopped"), whole_folder(folder):
        raise RuntimeError("stopped")

    assert [path.name for path in folder.iterdir()] == ["old"]
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


def replace_a_folder_and_be_killed(folder, system):
    """Write a folder of "old file", begin to replace it by one of "new file", and be killed meanwhile.

    The process is killed as soon as the old folder has lost its name. A system "can exchange" the names of
    two folders in one step, or "cannot exchange" them.
    """
    command = [sys.executable, "-c", KILLED_WHILE_IT_REPLACES, str(folder), system]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL


def test_where_names_can_be_exchanged_the_new_folder_is_there_after_a_kill(tmp_path):
    """Linux exchanges the names of two folders in one step.

    A process replaces the folder `run`, with "old file" in it, by one with "new file", and is killed as soon
    as the old folder has lost its name. The new folder is there then, and the old one beside it, under a name
    of its own. It is removed by whoever next writes something beside it, here the file `other`.
    """
    folder = tmp_path / "run"

    replace_a_folder_and_be_killed(folder, "can exchange")
    assert [path.name for path in folder.iterdir()] == ["new file"]

    write_whole(tmp_path / "other", b"")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "run"]
    assert [path.name for path in folder.iterdir()] == ["new file"]


def test_where_names_cannot_be_exchanged_the_next_writer_puts_the_old_folder_back(tmp_path):
    """Such a system renames twice: killed between the two, the process leaves no folder of the name."""
    folder = tmp_path / "run"

    replace_a_folder_and_be_killed(folder, "cannot exchange")
    assert not folder.exists()

    write_whole(tmp_path / "other", b"")  # whoever next writes beside it mends and removes what was left
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "run"]
    assert [path.name for path in folder.iterdir()] == ["old file"]


def test_what_exists_is_not_overwritten_unless_forced(tmp_path):
    """Commands call `refuse_existing` with the paths that they will write, of which some may be None."""
    new, existing = tmp_path / "new", tmp_path / "existing"
    existing.touch()

    with pytest.raises(OutputError, match="existing exists already"):
        refuse_existing(new, existing)

    refuse_existing(new, None)  # raises nothing, as there is nothing
    refuse_existing(existing, force=True)


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\x00")), min_size=2))
def test_any_cells_written_as_a_line_of_csv_are_read_back_by_pythons_csv(cells):
    """Cells are any texts, also with commas, quotes and line breaks, but for the character of number 0."""
    line = csv_line(cells)

    rows = list(csv.reader(io.StringIO(line, newline=""), strict=True))

    assert rows == [cells]


def test_a_lock_on_a_file_that_is_replaced_meanwhile_is_not_held(tmp_path, monkeypatch):
    """Another process puts a new file in the place of the one that has just been locked.

    The lock is then on a file that has no name: whoever locks the new one would not see it.
    """
    path = tmp_path / "a"
    path.touch()
    hold = locks.hold

    def hold_and_replace_the_file(*arguments, **options):
        result = hold(*arguments, **options)
        new_file = tmp_path / "b"
        new_file.touch()
        new_file.replace(path)
        return result

    with locks.locked(path, wait=False) as is_held:
        assert is_held, "nobody replaces the file yet"

    monkeypatch.setattr(locks, "hold", hold_and_replace_the_file)
    with locks.locked(path, wait=False) as is_held:
        assert not is_held


@pytest.fixture
def macos_whose_full_fsync_fails(monkeypatch):
    """Let `io` see macOS, which has a full fsync (`F_FULLFSYNC`) beside the usual one.

    Gives a function of the error number with which the full fsync fails. It gives a list, to which each file
    descriptor is added that the usual fsync forces to the disk.
    """
    synced_by_usual_fsync = []
    monkeypatch.setattr(obygaze_io, "sys", SimpleNamespace(platform="darwin"))
    monkeypatch.setattr(os, "fsync", synced_by_usual_fsync.append)

    def fail_with(error_number):
        def full_fsync(*_):
            raise OSError(error_number, os.strerror(error_number))

        monkeypatch.setitem(sys.modules, "fcntl", SimpleNamespace(fcntl=full_fsync, F_FULLFSYNC=51))
        return synced_by_usual_fsync

    return fail_with


def test_on_macos_a_disk_without_full_fsync_gets_the_usual_one(macos_whose_full_fsync_fails):
    """A network's disk may not know the full fsync: it answers ENOTSUP, "operation not supported"."""
    descriptor = 7
    synced_by_usual_fsync = macos_whose_full_fsync_fails(errno.ENOTSUP)

    obygaze_io.force_to_disk(descriptor)

    assert synced_by_usual_fsync == [descriptor]


def test_on_macos_an_error_of_the_disk_in_full_fsync_is_raised(macos_whose_full_fsync_fails):
    """With EIO, "input/output error", the disk could not write: the usual fsync may not hide this."""
    descriptor = 7
    synced_by_usual_fsync = macos_whose_full_fsync_fails(errno.EIO)

    with pytest.raises(OSError, match="error"):
        obygaze_io.force_to_disk(descriptor)

    assert synced_by_usual_fsync == []


# --- what others do in the same folder
# ---------------------------------------------------------------------------
def test_two_writers_of_one_name_never_share_a_file(tmp_path):
    """Two containers write the same file at once: their host name and process number may be the same.

    Each writes a temporary file of its own, which gets the name when it is finished; the last one stays.
    """
    path = tmp_path / "a"

    with obygaze_io.whole_file(path) as first:
        first.write_bytes(b"AAA")
        with obygaze_io.whole_file(path) as second:
            second.write_bytes(b"BBB")
            assert first.read_bytes() == b"AAA"
        assert path.read_bytes() == b"BBB"

    assert path.read_bytes() == b"AAA"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="has no such locks and modes")
def test_what_killed_processes_left_behind_is_swept_away(tmp_path):
    """The first write of a process in a folder removes temporary files that nobody has locked.

    An old folder (b) that was to be replaced gets its name back. A link is not ours, and stays.
    """
    (tmp_path / ".a.0123456789ab.partial").mkdir()
    (tmp_path / ".b.0123456789ab.old").mkdir()
    (tmp_path / ".c.0123456789ab.partial").write_bytes(b"left")
    (tmp_path / ".d.0123456789ab.partial").symlink_to("/dev/zero")

    write_whole(tmp_path / "other", b"")

    assert {path.name for path in tmp_path.iterdir()} == {"b", "other", ".d.0123456789ab.partial"}


@pytest.mark.skipif(sys.platform == "win32", reason="has no such locks and modes")
def test_temporary_files_in_use_are_not_swept_away(tmp_path, monkeypatch):
    """While file x and folder y are being written, another file is, which sweeps away what nobody uses."""
    left_behind = tmp_path / ".c.0123456789ab.partial"
    with obygaze_io.whole_file(tmp_path / "x") as used, whole_folder(tmp_path / "y") as folder:
        (folder / "z").touch()
        used.write_bytes(b"used")
        left_behind.write_bytes(b"left")
        folders_already_swept = set()  # as in another process, which has not swept here yet
        monkeypatch.setattr(obygaze_io, "_SWEPT", folders_already_swept)
        write_whole(tmp_path / "other", b"")
        assert not left_behind.exists()

    assert {path.name for path in tmp_path.iterdir()} == {"other", "x", "y"}
    assert (tmp_path / "x").read_bytes() == b"used"
    assert (tmp_path / "y" / "z").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="has no such locks")
@pytest.mark.parametrize("write", [write_file, write_folder], ids=["file", "folder"])
def test_a_temporary_file_that_is_swept_before_it_is_locked_is_begun_anew(tmp_path, monkeypatch, write):
    """A temporary file or folder is created, then locked.

    Another process may begin to write beside it between the two steps, and remove it as one left behind.
    """
    create = obygaze_io._create_temporary
    n_created = 0

    def create_and_be_swept_the_first_time(path, is_folder):
        nonlocal n_created
        n_created += 1
        temporary = create(path, is_folder)
        if n_created == 1:
            obygaze_io._sweep(tmp_path)
            assert not temporary.exists()
        return temporary

    monkeypatch.setattr(obygaze_io, "_create_temporary", create_and_be_swept_the_first_time)
    write(tmp_path / "a")

    assert n_created == 2
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


has_links_and_modes = pytest.mark.skipif(sys.platform == "win32", reason="has no such links and modes")


@has_links_and_modes
def test_a_file_is_replaced_through_its_link_and_keeps_its_group_and_mode(tmp_path):
    """`link` leads to the file `real`, which others of its group may read (0o640)."""
    real = tmp_path / "real"
    real.write_bytes(b"old")
    real.chmod(0o640)
    is_root = os.geteuid() == 0
    group = 12 if is_root else os.getegid()  # root may give a file to any group, others to their own
    os.chown(real, -1, group)
    link = tmp_path / "link"
    link.symlink_to("real")

    write_whole(link, b"new")

    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert real.stat().st_gid == group


@has_links_and_modes
def test_a_link_is_replaced_itself_where_links_are_not_followed(tmp_path):
    """With `links=False` the file that the link leads to stays as it is."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"old")
    link.symlink_to("real")

    write_whole(link, b"new", links=False)

    assert not link.is_symlink()
    assert link.read_bytes() == b"new"
    assert real.read_bytes() == b"old"


@has_links_and_modes
@pytest.mark.parametrize("target", ["nowhere", "/dev/null"])
def test_a_file_that_is_written_to_a_link_to_nothing_or_to_a_device_takes_the_links_place(tmp_path, target):
    """`link` leads to `nowhere`, which does not exist, or to the device /dev/null.

    Where a link leads to a file, the link is kept, and that file gets the new content. Here it leads to no
    file: so `link` itself becomes a file, and neither is `nowhere` created, nor is anything lost in the
    device.
    """
    link = tmp_path / "link"
    link.symlink_to(target)

    write_whole(link, b"new")

    assert link.read_bytes() == b"new"
    assert not (tmp_path / "nowhere").exists()


@has_links_and_modes
def test_a_folder_is_replaced_through_its_link_and_keeps_its_mode(tmp_path):
    """`link` leads to a folder, which others of its group may read (0o750)."""
    folder, link = tmp_path / "folder", tmp_path / "link"
    folder.mkdir(mode=0o750)
    link.symlink_to("folder")

    with whole_folder(link) as partial:
        (partial / "a").touch()

    assert link.is_symlink()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o750
    assert (folder / "a").exists()


@pytest.mark.parametrize("can_refuse_to_replace", [True, False])
def test_write_once_replaces_nothing(tmp_path, monkeypatch, can_refuse_to_replace):
    """Some systems can rename a file unless the new name exists, in one step; others cannot."""
    path = tmp_path / "a"
    if not can_refuse_to_replace:
        monkeypatch.setattr(obygaze_io, "_rename", lambda *_: False)
    obygaze_io.write_once(path, b"first")

    with pytest.raises(FileExistsError, match="a"):
        obygaze_io.write_once(path, b"second")

    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_be_listed_is_not_passed_over(tmp_path, monkeypatch):
    """The disk fails while a folder below another is listed, after its files were written.

    A store whose files are listed so would be sealed with digests of a part of them. A folder that is not
    there has no files.
    """
    unlisted = tmp_path / "data" / "frames"
    unlisted.mkdir(parents=True)
    (unlisted / "0").write_bytes(b"features")
    scan = os.scandir

    def scan_unless_broken(path):
        if path == str(unlisted):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", scan_unless_broken)
    with pytest.raises(OSError, match="Input/output") as refused:
        files_below(tmp_path)

    assert refused.value.filename == str(unlisted)
    assert files_below(tmp_path / "no such folder") == []
