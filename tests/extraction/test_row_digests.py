"""Large rows are digested in another process, and the stage is the same, whatever becomes of that process."""

import hashlib
import os
import signal

import pytest

from obygaze_features.extraction.row_digests import RowDigests
from obygaze_features.store import Stage, staging_path, writer
from obygaze_features.store.sealing import seal

from ..store.toy_stores import CORPUS, LICENSED, group, make_sealed_store, plan, result, status_of, tree


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

    for worker in row_digests.pids():
        os.kill(worker, signal.SIGKILL)
    assert digests_by_worker(row_digests, file, parts) == expected_digests


def let_rows_count_as_large_from(monkeypatch, n_bytes):
    """Let rows of so many bytes go to a worker, as only large ones do; a toy store has small ones."""
    monkeypatch.setattr(writer, "WRITE_BLOCK", n_bytes)


def test_digesting_rows_in_another_process_changes_no_byte(tmp_path, monkeypatch, row_digests):
    """Two stores of the same 20 clips are made: one digests its rows here, the other by a worker process.

    Some of the clips have failed and have no rows; the worker digests one row for each of the others. Both
    stores have the same files with the same bytes.
    """
    let_rows_count_as_large_from(monkeypatch, n_bytes=16)
    parts_digested_by_worker = []

    def digest_by_worker(*part):
        parts_digested_by_worker.append(part)
        return row_digests(*part)

    store_digested_here = make_sealed_store(tmp_path / "here", 20)
    path = tmp_path / "elsewhere" / "toy"
    stage = Stage.open(staging_path(path), plan(20), [group()], CORPUS)
    clip_ids = stage.missing()  # all 20
    with stage.writer(clip_ids, digest_by_worker) as stage_writer:
        for clip in clip_ids:
            stage_writer.commit([result(clip, stage.groups, status_of(clip))])
    store_digested_by_worker = seal(stage_path=None, destination=path, **LICENSED)

    clips_with_rows = [clip for clip in clip_ids if status_of(clip) != "failed"]
    assert len(parts_digested_by_worker) == len(clips_with_rows)
    bytes_of_files_by_worker = tree(store_digested_by_worker)
    bytes_of_files_here = tree(store_digested_here)
    assert bytes_of_files_by_worker == bytes_of_files_here
