"""Processes at once and full disks: nothing that was said to be done is lost, and no byte changes."""

import errno
import json
import os
from contextlib import contextmanager
from pathlib import Path

import pytest

from obygaze_features.errors import StoreError
from obygaze_features.store import Stage, metadata, seal, staging_path
from tests.process import python

from .toy_stores import (
    CORPUS,
    GROUP_MAKERS,
    LICENSED,
    bytes_of_files,
    commit_clips,
    group,
    make_sealed_store,
    make_stage,
    plan,
    result,
    seal_stage_of,
    status_of,
)

FIXED_GROUP = group()


FOUR_PROCESSES = """
import importlib.util, os, sys
from obygaze_features.store import Stage

module_of_toys, path_of_stage, kind = sys.argv[1:]
spec = importlib.util.spec_from_file_location("toy_stores", module_of_toys)
toy = importlib.util.module_from_spec(spec)
spec.loader.exec_module(toy)
os.fsync = lambda _descriptor: None  # nothing waits for the disk
children = []
for shard in range(4):
    child = os.fork()
    if child == 0:
        stage = Stage.open(path_of_stage, toy.plan(60), [toy.GROUP_MAKERS[kind]()], toy.CORPUS)
        toy.commit_clips(stage, stage.missing((shard, 4)))
        os._exit(0)
    children.append(child)
exit_codes = [os.waitpid(child, 0)[1] for child in children]
print(exit_codes)
"""
"""Four processes open one stage of 60 clips at once, and each commits one of its four pieces."""


@pytest.mark.long
@pytest.mark.parametrize("kind", GROUP_MAKERS)
def test_four_processes_make_the_same_store_as_one(tmp_path, kind):
    """A program has four processes open one stage of 60 clips at once; each commits one of its four pieces.

    A store of their stage has the same bytes as one whose clips a single process committed. `kind` is
    "fixed" if each clip has as many frames, and "ragged" if each has its own number.
    """
    stage = staging_path(tmp_path / "shared" / "toy")
    module_of_toys = Path(__file__).with_name("toy_stores.py")

    process = python("-c", FOUR_PROCESSES, module_of_toys, stage, kind)

    exit_codes = json.loads(process.stdout)
    assert exit_codes == [0, 0, 0, 0]
    assert [node.name for node in stage.parent.iterdir()] == ["toy.staging"]

    sealed_together = seal(stage, tmp_path / "shared" / "toy", **LICENSED)
    sealed_alone = make_sealed_store(tmp_path / "alone", 60, [GROUP_MAKERS[kind]()])
    assert bytes_of_files(sealed_together) == bytes_of_files(sealed_alone)


class FailingCall:
    """A system call that fails from its call number `first_failure` on, counted from 1.

    The first write that fails is torn, as on a full disk: half of its bytes are written, and the error is
    that of the next call. Calls without data, as of `os.fsync`, fail at once.

    Parameters
    ----------
    call
        The real call, such as `os.write`.
    first_failure
        The number of the first call that fails.
    error_number
        That of the error, such as `errno.ENOSPC`.
    """

    def __init__(self, call, first_failure, error_number):
        self.call = call
        self.first_failure = first_failure
        self.error_number = error_number
        self.n_calls = 0

    @property
    def has_failed(self):
        return self.n_calls >= self.first_failure

    def __call__(self, descriptor, *data):
        self.n_calls += 1
        if not self.has_failed:
            return self.call(descriptor, *data)
        if self.n_calls == self.first_failure and data:
            (to_write,) = data
            return self.call(descriptor, to_write[: len(to_write) // 2])
        raise OSError(self.error_number, os.strerror(self.error_number))


def commit_until_the_disk_fails(stage, clips, monkeypatch, *, call, error_number, first_failure):
    """Commit clips while `os.write` or `os.fsync` fails from its call number `first_failure` on."""
    failing = FailingCall(getattr(os, call), first_failure, error_number)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing)
        with pytest.raises(OSError, match=os.strerror(error_number)) as failure:
            commit_clips(stage, clips)
    assert failing.has_failed
    assert str(stage.path) in failure.value.filename


# Numbers of the system call that is the first to fail while ten clips are committed. They are written in two
# pieces, each in several writes and fsyncs, so that the disk fails at every moment of the first piece.
WRITES_OF_FIRST_PIECE = range(1, 12)
TWO_LATER_WRITES = (30, 40)
ALL_FSYNCS = range(1, 9)


@pytest.mark.parametrize(
    ("call", "error_number", "first_failure"),
    [("write", errno.ENOSPC, number) for number in (*WRITES_OF_FIRST_PIECE, *TWO_LATER_WRITES)]
    + [("fsync", errno.EIO, number) for number in ALL_FSYNCS],
)
def test_clips_committed_before_a_disk_fails_are_kept(
    tmp_path, monkeypatch, fixed_or_ragged_group, undisturbed_files, call, error_number, first_failure
):
    """Every second of 20 clips is committed, then the disk fails while the other ten are.

    It fails from a certain write on because it is full (ENOSPC), or from a certain fsync on because it is
    broken (EIO). The first ten stay done, but for those of them that had failed, which are tried again. A
    second run first removes what the first one left unfinished (`sweep`), and does the rest. Then the store
    has the same bytes as one that was made without disturbance.
    """
    # Given a stage with every second clip,
    stage = Stage.open(staging_path(tmp_path / "toy"), plan(20), [fixed_or_ragged_group], CORPUS)
    every_second_clip = stage.missing()[::2]
    committed_before = every_second_clip
    commit_clips(stage, committed_before)

    # when the disk fails while the others are committed,
    other_clips = stage.missing(retry_failed=True)
    commit_until_the_disk_fails(
        stage, other_clips, monkeypatch, call=call, error_number=error_number, first_failure=first_failure
    )

    # then the clips before are kept,
    reopened = Stage.open(stage.path, plan(20), [fixed_or_ragged_group], CORPUS)
    assert reopened.damage() == ()
    kept = {clip for clip in committed_before if status_of(clip) != "failed"}
    assert kept.isdisjoint(reopened.missing())

    # and a second run makes the store that one run without disturbance makes.
    reopened.sweep()
    commit_clips(reopened, reopened.missing(retry_failed=True))
    store = seal_stage_of(tmp_path / "toy", **LICENSED)
    assert bytes_of_files(store) == undisturbed_files


@contextmanager
def disk_with_room_for_the_journal_alone(monkeypatch):
    """Writing to the files of features, which are in the folder "pieces", fails for want of space."""
    write = os.write

    def write_no_features(descriptor, data):
        if "pieces" in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write_no_features)
        yield


def test_a_writer_takes_no_more_clips_once_its_disk_is_full(tmp_path, monkeypatch):
    """The second of two commits fails for want of space; the first clip stays recorded.

    After that the writer refuses every commit, also one of no clip.
    """
    stage = Stage.open(staging_path(tmp_path / "toy"), plan(8), [FIXED_GROUP], CORPUS)
    first, second, *_ = stage.missing()

    with stage.writer() as writer:
        writer.commit([result(first, [FIXED_GROUP])])

        with (
            disk_with_room_for_the_journal_alone(monkeypatch),
            pytest.raises(OSError, match="No space left"),
        ):
            writer.commit([result(second, [FIXED_GROUP])])

        no_clips = []
        with pytest.raises(StoreError):
            writer.commit(no_clips)

    assert list(stage.status()) == [first]


def test_a_disk_that_fills_while_a_stage_is_made_leaves_nothing(tmp_path, monkeypatch):
    """The first write is torn, as on a full disk, and every later one fails for want of space."""
    full_disk = FailingCall(os.write, first_failure=1, error_number=errno.ENOSPC)
    monkeypatch.setattr(os, "write", full_disk)

    with pytest.raises(OSError, match="No space left"):
        Stage.open(staging_path(tmp_path / "toy"), plan(8), [FIXED_GROUP], CORPUS)

    assert list(tmp_path.iterdir()) == []


@contextmanager
def disk_that_is_full_at_the_table_of_clips(monkeypatch):
    def no_space(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(metadata, "clips_csv_bytes", no_space)
        yield


def test_a_stage_can_be_sealed_after_a_seal_ran_out_of_disk(tmp_path, monkeypatch):
    """A store is made in a folder "toy.building"; the disk is full when its table of clips is written.

    The half-made folder is removed, and the stage "toy.staging" stays. Sealed later, with room again, it
    gives the same bytes as a stage that met no full disk.
    """
    make_stage(tmp_path)

    with (
        disk_that_is_full_at_the_table_of_clips(monkeypatch),
        pytest.raises(OSError, match="No space left") as caught,
    ):
        seal_stage_of(tmp_path / "toy", licence="MIT")
    assert "toy.building" in caught.value.filename
    assert [node.name for node in tmp_path.iterdir()] == ["toy.staging"]

    sealed_later = seal_stage_of(tmp_path / "toy", **LICENSED)
    sealed_undisturbed = make_sealed_store(tmp_path / "other")
    assert bytes_of_files(sealed_later) == bytes_of_files(sealed_undisturbed)
