"""Kills, full disks, read-only folders: nothing that was said to be done is lost."""

import contextlib
import errno
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from obygaze_features.errors import StoreError
from obygaze_features.store import Stage, metadata, seal, staging_path, verify

from .toy_stores import CORPUS, group, plan, result, sealed, staged, status_of, tree

TOY = group()

COMMITTING = """
import importlib.util, os, signal, sys
spec = importlib.util.spec_from_file_location("toy_stores", sys.argv[1])
toy = importlib.util.module_from_spec(spec); spec.loader.exec_module(toy)
from obygaze_features.store import Stage

left = 0

def counted(call, torn=None):
    def one(*words):
        global left
        left -= 1
        if left == 0:
            if torn:
                torn(*words)
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*words)
    return one

def commit():
    stage = Stage.open(sys.argv[2], toy.plan(60), [toy.group()], toy.CORPUS)
    with stage.writer() as writer:
        todo = stage.missing()
        for start in range(0, len(todo), 3):
            some = todo[start:start + 3]
            writer.commit([toy.result(clip, stage.groups, toy.status_of(clip)) for clip in some])

write = os.write
os.write = counted(write, lambda descriptor, data: write(descriptor, data[: len(data) // 2]))
os.fsync = counted(lambda _descriptor: None)  # a kill is not a power cut
for calls in map(int, sys.argv[3:]):
    if not (child := os.fork()):
        left = calls
        commit()
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_twenty_kills_of_a_committing_process_change_no_byte_of_the_sealed_store(tmp_path):
    """Each process ends itself at one of its writes or fsyncs: the speed of the machine does not matter."""
    rng = random.Random(7)
    path = staging_path(tmp_path / "killed" / "toy")
    helper = str(Path(__file__).with_name("toy_stores.py"))
    calls = [rng.randrange(1, 30) for _ in range(20)]
    words = [sys.executable, "-c", COMMITTING, helper, str(path), *map(str, calls), "0"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(-signal.SIGKILL)] * 20 + ["0"]
    one = seal(path, tmp_path / "killed" / "toy", licence="CC-BY-4.0", citation="Nobody, 2026")
    two = sealed(tmp_path / "undisturbed", 60)
    assert tree(one) == tree(two)


SHARD = """
import importlib.util, os, sys
os.fsync = lambda _descriptor: None  # a kill is not a power cut
spec = importlib.util.spec_from_file_location("toy_stores", sys.argv[1])
toy = importlib.util.module_from_spec(spec); spec.loader.exec_module(toy)
from obygaze_features.store import Stage
print("up", flush=True)
sys.stdin.readline()
stage = Stage.open(sys.argv[2], toy.plan(60), [toy.group()], toy.CORPUS)
with stage.writer() as writer:
    for clip in stage.missing((int(sys.argv[3]), 4)):
        writer.commit([toy.result(clip, stage.groups, toy.status_of(clip))])
"""


def test_four_processes_that_start_at_once_share_one_job_without_a_coordinator(tmp_path):
    path = staging_path(tmp_path / "shared" / "toy")
    helper = str(Path(__file__).with_name("toy_stores.py"))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    command = [sys.executable, "-c", SHARD, helper, str(path)]
    children = [subprocess.Popen([*command, str(shard)], **pipes) for shard in range(4)]
    for child in children:
        child.stdout.readline()
    for child in children:
        child.stdin.write(b"go\n")
        child.stdin.flush()
    for child in children:
        child.communicate()
        assert child.returncode == 0
    assert sorted(node.name for node in path.parent.iterdir()) == ["toy.staging"]
    one = seal(path, tmp_path / "shared" / "toy", licence="CC-BY-4.0", citation="Nobody, 2026")
    assert tree(one) == tree(sealed(tmp_path / "alone", 60))


class Full:
    """A disk that is full after so many writes."""

    def __init__(self, writes, number=errno.ENOSPC):
        self.left, self.number, self.write = writes, number, os.write

    def __call__(self, descriptor, data):
        if self.left == 0:
            raise OSError(self.number, os.strerror(self.number))
        self.left -= 1
        if self.left == 0:
            return self.write(descriptor, data[: len(data) // 2])  # the last write is torn
        return self.write(descriptor, data)


@pytest.mark.parametrize("writes", range(6))
def test_a_full_disk_is_named_and_what_was_committed_is_safe(tmp_path, monkeypatch, writes):
    stage = Stage.open(staging_path(tmp_path / "toy"), plan(8), [TOY], CORPUS)
    first, *rest = stage.missing()
    with stage.writer() as writer:
        writer.commit([result(first, [TOY])])
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", Full(writes))
            with pytest.raises(OSError, match="No space left") as caught:
                writer.commit([result(clip, [TOY]) for clip in rest])
        assert str(stage.path) in caught.value.filename
        with pytest.raises(StoreError, match="begin another"):
            writer.commit([])
    again = Stage.open(stage.path, plan(8), [TOY], CORPUS)
    assert again.missing() == rest
    assert again.damage() == ()
    with again.writer() as writer:
        writer.commit([result(clip, [TOY]) for clip in rest])
    assert verify(seal(None, tmp_path / "toy", licence="MIT"), "full").ok


def test_bytes_are_on_the_disk_before_the_journal_says_so(tmp_path, monkeypatch):
    stage = Stage.open(staging_path(tmp_path / "toy"), plan(8), [TOY], CORPUS)
    events = []

    def name(descriptor):
        return Path(f"/proc/self/fd/{descriptor}").readlink().relative_to(stage.path).as_posix()

    def fsync(descriptor):
        events.append(("fsync", name(descriptor)))

    def write(descriptor, data, write=os.write):
        events.append(("write", name(descriptor)))
        return write(descriptor, data)

    with stage.writer() as writer, monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        patch.setattr(os, "write", write)
        writer.commit([result(clip, [TOY]) for clip in stage.missing()])
    rows = f"rows/{writer.name}"
    files = {f"{rows}/toy.{array}" for array in ("pooled", "frames", "tokens", "time_s", "frame_index")}
    journal = f"journal/{writer.name}.jsonl"
    assert {path for what, path in events[:-2] if what == "fsync"} == files | {rows, "rows"}
    last = {path: number for number, (_, path) in enumerate(events[:-2])}
    written = [number for number, (what, _) in enumerate(events[:-2]) if what == "write"]
    assert max(written) < min(number for path, number in last.items() if path in files)
    assert events[-2:] == [("write", journal), ("fsync", journal)]


def test_a_failed_fsync_is_no_commit(tmp_path, monkeypatch):
    stage = Stage.open(staging_path(tmp_path / "toy"), plan(8), [TOY], CORPUS)
    with stage.writer() as writer, monkeypatch.context() as patch:

        def fails(_descriptor):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        patch.setattr(os, "fsync", fails)
        with pytest.raises(OSError, match="Input/output error"):
            writer.commit([result(clip, [TOY]) for clip in stage.missing()])
    assert len(stage.missing()) == 8


def test_a_disk_that_fills_while_a_stage_is_made_or_sealed_leaves_nothing_half(tmp_path, monkeypatch):
    path = staging_path(tmp_path / "toy")
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", Full(1))
        with pytest.raises(OSError, match="No space left"):
            Stage.open(path, plan(8), [TOY], CORPUS)
    assert list(tmp_path.iterdir()) == []
    staged(tmp_path)
    with monkeypatch.context() as patch:

        def full(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        patch.setattr(metadata, "clips_csv_bytes", full)
        with pytest.raises(OSError, match="No space left") as caught:
            seal(None, tmp_path / "toy", licence="MIT")
    assert "toy.building" in caught.value.filename
    assert sorted(node.name for node in tmp_path.iterdir()) == ["toy.building", "toy.staging"]
    again = seal(None, tmp_path / "toy", licence="CC-BY-4.0", citation="Nobody, 2026")
    assert tree(again) == tree(sealed(tmp_path / "other"))


@pytest.fixture
def small_disk(tmp_path):
    """A real file system of 400 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if (
        os.getuid() != 0
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(disk)], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("a file system can't be mounted here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_really_full_disk_is_named_and_the_job_resumes_once_there_is_room(small_disk):
    stage = Stage.open(staging_path(small_disk / "toy"), plan(500), [TOY], CORPUS)
    todo = stage.missing()

    def commit_all(writer):
        for clip in todo:
            writer.commit([result(clip, [TOY], status_of(clip))])

    with stage.writer() as writer, pytest.raises(OSError, match="No space left") as caught:
        commit_all(writer)
    assert str(small_disk) in str(caught.value.filename)
    done = len(stage.status())
    assert 0 < done < 500
    assert len(stage.missing()) == 500 - done
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    again = Stage.open(stage.path, plan(500), [TOY], CORPUS)
    with again.writer() as writer:
        writer.commit([result(clip, [TOY], status_of(clip)) for clip in again.missing()])
    assert verify(seal(None, small_disk / "toy", licence="MIT"), "full").ok


READ_ONLY = """
import importlib.util, os, sys
spec = importlib.util.spec_from_file_location("toy_stores", sys.argv[1])
toy = importlib.util.module_from_spec(spec); spec.loader.exec_module(toy)
from obygaze_features.store import Stage
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    Stage.open(sys.argv[2], toy.plan(int(sys.argv[3])), [toy.group()], toy.CORPUS).writer()
except PermissionError as error:
    print("refused", error.filename)
"""


@pytest.mark.parametrize("existing", [True, False])
def test_a_read_only_folder_is_named_and_untouched(tmp_path_factory, existing):
    folder = tmp_path_factory.mktemp("shelf")
    with contextlib.ExitStack() as stack:
        path = staged(folder, 8).path if existing else folder / "new.staging"
        before = tree(folder)
        for parent in [folder, *folder.parents][:4]:
            mode = parent.stat().st_mode
            parent.chmod(0o555 if parent == folder else mode | 0o055)
            stack.callback(parent.chmod, mode)
        helper = str(Path(__file__).with_name("toy_stores.py"))
        command = [sys.executable, "-c", READ_ONLY, helper, str(path), "8"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if "Permission denied" in done.stderr:
            pytest.skip("this installation can't be read by another user")
        assert done.stdout.startswith(f"refused {folder}"), done.stderr
        assert tree(folder) == before
