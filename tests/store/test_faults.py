"""Processes at once and full disks: nothing that was said to be done is lost, and no byte changes."""

import errno
import json
import os
from pathlib import Path

import pytest

from obygaze_features.errors import StoreError
from obygaze_features.store import Stage, metadata, seal, staging_path
from tests.process import python

from .toy_stores import (
    CORPUS,
    KINDS,
    LICENSED,
    commit_clips,
    group,
    plan,
    result,
    sealed,
    staged,
    status_of,
    tree,
)

TOY = group()


FOUR_PROCESSES = """
import importlib.util, os, sys
os.fsync = lambda _descriptor: None  # nothing waits for the disk
spec = importlib.util.spec_from_file_location("toy_stores", sys.argv[1])
toy = importlib.util.module_from_spec(spec); spec.loader.exec_module(toy)
kind = toy.KINDS[sys.argv[3]]()
from obygaze_features.store import Stage
children = []
for shard in range(4):
    children.append(os.fork())
    if not children[-1]:
        stage = Stage.open(sys.argv[2], toy.plan(60), [kind], toy.CORPUS)
        toy.commit_clips(stage, stage.missing((shard, 4)))
        os._exit(0)
print([os.waitpid(child, 0)[1] for child in children])
"""


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_four_processes_that_start_at_once_make_the_store_of_one(tmp_path, kind):
    path = staging_path(tmp_path / "shared" / "toy")
    process = python("-c", FOUR_PROCESSES, Path(__file__).with_name("toy_stores.py"), path, kind)
    exit_codes = json.loads(process.stdout)
    assert exit_codes == [0] * 4
    assert sorted(node.name for node in path.parent.iterdir()) == ["toy.staging"]
    sealed_together = seal(path, tmp_path / "shared" / "toy", **LICENSED)
    assert tree(sealed_together) == tree(sealed(tmp_path / "alone", 60, [KINDS[kind]()]))


class FailingCall:
    """A system call that fails with an error from call number `after` on; the first write to fail is torn.

    Parameters
    ----------
    call
        The real call, such as `os.write`.
    number
        Of the error.
    """

    def __init__(self, call, after, number):
        self.call = call
        self.left = after
        self.number = number

    @property
    def has_failed(self):
        return self.left <= 0

    def __call__(self, descriptor, *data):
        self.left -= 1
        if self.left == 0 and data:
            return self.call(descriptor, data[0][: len(data[0]) // 2])
        if self.has_failed:
            raise OSError(self.number, os.strerror(self.number))
        return self.call(descriptor, *data)


WRITES = (*range(1, 12), 30, 40)
"""Numbers of writes: every one of the first piece, and two of later ones."""
FSYNCS = range(1, 9)
"""All of a run."""


@pytest.mark.parametrize(
    ("call", "number", "after"),
    [("write", errno.ENOSPC, after) for after in WRITES] + [("fsync", errno.EIO, after) for after in FSYNCS],
)
def test_clips_committed_before_a_disk_fails_are_kept_and_the_others_are_done_again(
    tmp_path, monkeypatch, toy, reference, call, number, after
):
    """The disk fails at every call of a run, so wherever a commit may be interrupted."""
    stage = Stage.open(staging_path(tmp_path / "toy"), plan(20), [toy], CORPUS)
    committed = stage.missing()[::2]
    commit_clips(stage, committed)
    failing = FailingCall(getattr(os, call), after, number)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing)
        with pytest.raises(OSError, match=os.strerror(number)) as caught:
            commit_clips(stage, stage.missing(retry_failed=True))
    assert failing.has_failed
    assert str(stage.path) in caught.value.filename

    reopened = Stage.open(stage.path, plan(20), [toy], CORPUS)
    assert reopened.damage() == ()
    assert {clip for clip in committed if status_of(clip) != "failed"}.isdisjoint(reopened.missing())
    reopened.sweep()
    commit_clips(reopened, reopened.missing(retry_failed=True))
    assert tree(seal(None, tmp_path / "toy", **LICENSED)) == reference


def test_a_writer_whose_disk_is_full_keeps_the_clips_before_and_takes_no_more(tmp_path, monkeypatch):
    stage = Stage.open(staging_path(tmp_path / "toy"), plan(8), [TOY], CORPUS)
    write = os.write

    def write_no_features(descriptor, data):
        """Leave room for the journal alone."""
        if "pieces" in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data)

    first, second, *_ = stage.missing()
    with stage.writer() as writer:
        writer.commit([result(first, [TOY])])
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", write_no_features)
            with pytest.raises(OSError, match="No space left"):
                writer.commit([result(second, [TOY])])
        with pytest.raises(StoreError):
            writer.commit([])
    assert list(stage.status()) == [first]


def test_a_disk_that_fills_while_a_stage_is_made_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "write", FailingCall(os.write, 1, errno.ENOSPC))
    with pytest.raises(OSError, match="No space left"):
        Stage.open(staging_path(tmp_path / "toy"), plan(8), [TOY], CORPUS)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_while_a_stage_is_sealed_leaves_the_stage_to_seal_later(tmp_path, monkeypatch):
    def no_space(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    staged(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(metadata, "clips_csv_bytes", no_space)
        with pytest.raises(OSError, match="No space left") as caught:
            seal(None, tmp_path / "toy", licence="MIT")
    assert "toy.building" in caught.value.filename
    assert [node.name for node in tmp_path.iterdir()] == ["toy.staging"]
    sealed_later = seal(None, tmp_path / "toy", **LICENSED)
    assert tree(sealed_later) == tree(sealed(tmp_path / "other"))
