"""Kills, full disks, read-only folders: nothing that was said to be done is lost, and no byte changes."""

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
from obygaze_features.store import Stage, metadata, read_stage, seal, staging_path
from tests.process import execute

from .toy_stores import CORPUS, WITH, do, group, plan, result, sealed, staged, status_of, tree

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
    stage.sweep()
    toy.do(stage, stage.missing(retry_failed=True))

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
    done = execute(*words)
    assert done.stdout.split() == [str(-signal.SIGKILL)] * 20 + ["0"]
    stage = read_stage(path)
    assert stage.sweep() == 0
    attempts = {entry.of for entry in stage.best().values()}
    assert {f"{piece}.{writer}.{number}" for piece, writer, number in attempts} >= {
        name.rpartition(".")[0].removesuffix(".toy") for name in tree(path / "pieces")
    }
    assert tree(seal(path, tmp_path / "killed" / "toy", **WITH)) == tree(sealed(tmp_path / "undisturbed", 60))


SHARD = """
import importlib.util, os, sys
os.fsync = lambda _descriptor: None  # a kill is not a power cut
spec = importlib.util.spec_from_file_location("toy_stores", sys.argv[1])
toy = importlib.util.module_from_spec(spec); spec.loader.exec_module(toy)
from obygaze_features.store import Stage
print("up", flush=True)
sys.stdin.readline()
stage = Stage.open(sys.argv[2], toy.plan(60), [toy.group()], toy.CORPUS)
toy.do(stage, stage.missing((int(sys.argv[3]), 4)))
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
    one = seal(path, tmp_path / "shared" / "toy", **WITH)
    assert tree(one) == tree(sealed(tmp_path / "alone", 60))


class Failing:
    """A system call that fails from some call on; before a write fails, one is torn."""

    def __init__(self, call, after, number):
        self.call, self.left, self.number = call, after, number

    def __call__(self, descriptor, *data):
        self.left -= 1
        if self.left == 0 and data:
            return self.call(descriptor, data[0][: len(data[0]) // 2])
        if self.left <= 0:
            raise OSError(self.number, os.strerror(self.number))
        return self.call(descriptor, *data)


@pytest.mark.parametrize(
    ("call", "number", "after"),
    [("write", errno.ENOSPC, after) for after in (*range(1, 12), 30, 40)]
    + [("fsync", errno.EIO, after) for after in range(1, 9)],
)
def test_what_was_done_before_a_disk_fails_is_there_or_missing_and_never_torn(
    tmp_path, monkeypatch, reference, call, number, after
):
    stage = Stage.open(staging_path(tmp_path / "toy"), plan(20), [TOY], CORPUS)
    first = stage.missing()[::2]
    do(stage, first)
    failing = Failing(getattr(os, call), after, number)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing)
        with pytest.raises(OSError, match=os.strerror(number)) as caught:
            do(stage, stage.missing(retry_failed=True))
    assert failing.left <= 0
    assert str(stage.path) in caught.value.filename
    again = Stage.open(stage.path, plan(20), [TOY], CORPUS)
    assert again.damage() == ()
    assert {clip for clip in first if status_of(clip) != "failed"}.isdisjoint(again.missing())
    again.sweep()
    do(again, again.missing(retry_failed=True))
    assert tree(seal(None, tmp_path / "toy", **WITH)) == reference


def test_a_writer_that_failed_records_what_it_had_if_it_can_and_takes_no_more(tmp_path, monkeypatch):
    stage = Stage.open(staging_path(tmp_path / "toy"), plan(8), [TOY], CORPUS)

    def full(descriptor, data, write=os.write):
        if "pieces" in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data)

    first, second, *_ = stage.missing()
    with stage.writer() as writer:
        writer.commit([result(first, [TOY])])
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(OSError, match="No space left"):
                writer.commit([result(second, [TOY])])
        with pytest.raises(StoreError):
            writer.commit([])
    assert list(stage.status()) == [first]


def test_a_disk_that_fills_while_a_stage_is_made_or_sealed_leaves_nothing_half(tmp_path, monkeypatch):
    path = staging_path(tmp_path / "toy")
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", Failing(os.write, 1, errno.ENOSPC))
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
    assert [node.name for node in tmp_path.iterdir()] == ["toy.staging"]
    again = seal(None, tmp_path / "toy", **WITH)
    assert tree(again) == tree(sealed(tmp_path / "other"))


SEALING = """
import itertools, os, signal, sys
from obygaze_features.store import seal

path, last = sys.argv[1], int(sys.argv[2])
folder, steps = os.path.dirname(path), itertools.count(1)

def step():
    if next(steps) == last:
        os.kill(os.getpid(), signal.SIGKILL)

def hook(event, given):
    if event in ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link"):
        if str(given[0]).startswith(folder):
            step()

os.fsync = lambda _descriptor: step()  # a kill is not a power cut
sys.addaudithook(hook)
seal(None, path, licence="CC-BY-4.0", citation="Nobody, 2026")
print(next(steps))
"""


def killed_sealing(folder, last):
    """Seal in a process that kills itself at its step `last` (opening, renaming, linking, removing)."""
    command = [sys.executable, "-c", SEALING, str(folder / "toy"), str(last)]
    return subprocess.run(command, capture_output=True, check=False)


def scattered(folder):
    """A stage of 300 clips whose pieces two writers at once made."""
    stage = Stage.open(staging_path(folder / "toy"), plan(300), [TOY], CORPUS)
    todo = stage.missing()
    with stage.writer(todo) as one, stage.writer(todo) as two:
        for number, clip in enumerate(todo):
            (one, two)[number % 100 < 50].commit([result(clip, [TOY], status_of(clip))])


@pytest.mark.long
@pytest.mark.parametrize("stage", [scattered, lambda folder: staged(folder, 300)], ids=["scattered", "whole"])
def test_twenty_kills_of_a_sealing_process_change_no_byte_of_the_store(tmp_path, stage):
    """Only here is a sealing process really killed, up to five times in a row, in its own threads."""
    stage(tmp_path / "calm")
    steps = int(killed_sealing(tmp_path / "calm", 0).stdout)
    good = tree(tmp_path / "calm" / "toy-1.0.0")
    assert steps > 100
    rng = random.Random(3)
    kills = stores = 0
    while kills < 20:
        stores += 1
        folder = tmp_path / str(stores)
        stage(folder)
        for turn in range(6):
            # Threads share the work, so the number of steps may differ a little: none of the last is drawn.
            child = killed_sealing(folder, rng.randrange(1, steps * 9 // 10) if turn < 5 else 0)
            if child.returncode != -signal.SIGKILL:
                assert child.returncode == 0 or b"a sealed store never changes" in child.stderr
                break
            kills += 1
        assert turn > 0  # the first was killed, however fast this machine is
        assert tree(folder / "toy-1.0.0") == good
        assert sorted(node.name for node in folder.iterdir()) == ["toy-1.0.0", "toy.staging"]


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
        done = execute(*command, code=None)
        if "Permission denied" in done.stderr:
            pytest.skip("this installation can't be read by another user")
        assert done.stdout.startswith(f"refused {folder}"), done.stderr
        assert tree(folder) == before
