"""Large rows are digested in another process, and the stage is the same, whatever becomes of that process."""

import hashlib
import os
import signal

import pytest

from obygaze_features.extraction.row_digests import RowDigests
from obygaze_features.store import Stage, staging_path, writer
from obygaze_features.store.sealing import seal

from ..store.toy_stores import CORPUS, LICENSED, group, plan, result, sealed, status_of, tree


@pytest.fixture
def digests():
    with RowDigests() as digests:
        yield digests


def digests_of(digests, file, parts):
    """Ask for the digests of all parts of a file, then wait for each."""
    waiting = [digests(str(file), offset, size) for offset, size in parts]
    return [wait() for wait in waiting]


@pytest.mark.long
def test_digests_are_those_of_the_parts_also_when_the_worker_is_killed(tmp_path, digests):
    """The parts of a file may overlap. A worker that was killed is replaced."""
    data = os.urandom(700_000)
    file = tmp_path / "rows"
    file.write_bytes(data)
    parts = [(0, 10), (5, 600_000), (699_990, 10)]
    expected = [hashlib.sha256(data[offset : offset + size]).hexdigest() for offset, size in parts]

    assert digests_of(digests, file, parts) == expected

    for pid in digests.pids():
        os.kill(pid, signal.SIGKILL)
    assert digests_of(digests, file, parts) == expected


def test_digesting_rows_in_another_process_changes_no_byte(tmp_path, monkeypatch, digests):
    monkeypatch.setattr(writer, "WRITE_BLOCK", 16)  # so that the rows of a toy store count as large
    parts_digested = []

    def digest_and_note(*part):
        parts_digested.append(part)
        return digests(*part)

    n_clips = 20
    digested_here = sealed(tmp_path / "here", n_clips)
    store = tmp_path / "elsewhere" / "toy"
    stage = Stage.open(staging_path(store), plan(n_clips), [group()], CORPUS)
    clip_ids = stage.missing()
    with stage.writer(clip_ids, digest_and_note) as stage_writer:
        for clip in clip_ids:
            stage_writer.commit([result(clip, stage.groups, status_of(clip))])

    clips_with_rows = [clip for clip in clip_ids if status_of(clip) != "failed"]
    assert len(parts_digested) == len(clips_with_rows)

    digested_elsewhere = seal(None, store, **LICENSED)
    assert tree(digested_elsewhere) == tree(digested_here)
