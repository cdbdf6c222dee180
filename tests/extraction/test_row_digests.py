"""Large rows are digested in another process, and the stage is the same, whatever becomes of that process."""

import hashlib
import os
import signal

import pytest

from obygaze_features.extraction.row_digests import RowDigests
from obygaze_features.store import Stage, staging_path, writer
from obygaze_features.store.sealing import seal

from ..store.toy_stores import CORPUS, WITH, group, plan, result, sealed, status_of, tree


@pytest.fixture
def later():
    with RowDigests() as digests:
        yield digests


def test_digests_are_those_of_the_parts_that_were_asked_for(tmp_path, later):
    file = tmp_path / "rows"
    data = os.urandom(700_000)
    file.write_bytes(data)
    parts = [(0, 10), (5, 600_000), (699_990, 10)]
    wanted = [hashlib.sha256(data[offset : offset + size]).hexdigest() for offset, size in parts]
    assert [wait() for wait in [later(str(file), *part) for part in parts]] == wanted
    for pid in later.pids():
        os.kill(pid, signal.SIGKILL)
    assert [wait() for wait in [later(str(file), *part) for part in parts]] == wanted


def test_a_stage_is_the_same(tmp_path, monkeypatch, later):
    monkeypatch.setattr(writer, "WRITE_BLOCK", 16)
    asked = []

    def counted(*part):
        asked.append(part)
        return later(*part)

    before = sealed(tmp_path / "before", 20)
    stage = Stage.open(staging_path(tmp_path / "after" / "toy"), plan(20), [group()], CORPUS)
    ids = stage.missing()
    with stage.writer(ids, counted) as some:
        for clip in ids:
            some.commit([result(clip, stage.groups, status_of(clip))])
    assert len(asked) == sum(status_of(clip) != "failed" for clip in ids)
    assert tree(seal(None, tmp_path / "after" / "toy", **WITH)) == tree(before)
