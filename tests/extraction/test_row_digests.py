"""Large rows are digested in another process, and the stage is the same, whatever becomes of that process."""

import hashlib
import os
import signal

import pytest

from obygaze_features.extraction.row_digests import RowDigests
from obygaze_features.store import Stage, staging_path, writer

from ..store.toy_stores import (
    CORPUS,
    LICENSED,
    bytes_of_files,
    group,
    make_sealed_store,
    plan,
    result,
    seal_stage_of,
    status_of,
)


@pytest.fixture
def row_digests():
    """Ask for the digest of a part of a file; a worker computes it in a process of its own."""
    with RowDigests() as row_digests:
        yield row_digests


def digests_by_worker(row_digests, file, parts):
    """Ask for the digests of all parts of a file, then wait for each."""
    waiting = [row_digests(str(file), offset, size) for offset, size in parts]
    return [wait() for wait in waiting]


@pytest.mark.long
def test_digests_are_those_of_the_parts_also_when_the_worker_is_killed(tmp_path, row_digests):
    """A part is given by its offset and size; parts may overlap. A worker that was killed is replaced."""
    data = os.urandom(700_000)
    file = tmp_path / "rows"
    file.write_bytes(data)
    parts = [(0, 10), (5, 600_000), (699_990, 10)]
    expected_digests = []
    for offset, size in parts:
        part = data[offset : offset + size]
        expected_digests.append(hashlib.sha256(part).hexdigest())

    assert digests_by_worker(row_digests, file, parts) == expected_digests
    assert row_digests._digests == {}  # nothing is kept of what was asked for, over millions of rows

    for worker in row_digests.pids():
        os.kill(worker, signal.SIGKILL)
    assert digests_by_worker(row_digests, file, parts) == expected_digests


def seal_with_digests_of(digest_later, folder, n_clips):
    """Seal a store of toy clips whose large rows `digest_later` digests: a function of a part of a file."""
    path = folder / "toy"
    stage = Stage.open(staging_path(path), plan(n_clips), [group()], CORPUS)
    clip_ids = stage.missing()
    with stage.writer(clip_ids, digest_later) as stage_writer:
        for clip in clip_ids:
            stage_writer.commit([result(clip, stage.groups, status_of(clip))])
    return seal_stage_of(path, **LICENSED)


@pytest.fixture
def rows_of_toy_stores_count_as_large(monkeypatch):
    """A row of 16 bytes is large enough for its digest to be left to a worker."""
    monkeypatch.setattr(writer, "WRITE_BLOCK", 16)


@pytest.mark.usefixtures("rows_of_toy_stores_count_as_large")
def test_digesting_rows_in_another_process_changes_no_byte(tmp_path, row_digests):
    """Two stores of the same 20 clips are sealed: rows of one are digested here, of the other by a worker.

    Each clip has one large row, but for those that failed, which have none.
    """
    parts_digested_by_worker = []

    def digest_by_worker(*part):
        parts_digested_by_worker.append(part)
        return row_digests(*part)

    store_digested_here = make_sealed_store(tmp_path / "here", 20)
    store_digested_by_worker = seal_with_digests_of(digest_by_worker, tmp_path / "elsewhere", n_clips=20)

    clips_with_rows = [clip.clip_id for clip in plan(20) if status_of(clip.clip_id) != "failed"]
    assert len(parts_digested_by_worker) == len(clips_with_rows)
    bytes_of_files_by_worker = bytes_of_files(store_digested_by_worker)
    bytes_of_files_here = bytes_of_files(store_digested_here)
    assert bytes_of_files_by_worker == bytes_of_files_here
