"""Sealing goes on where it stopped, frees what it has sealed if asked, and links what did not change."""

import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from obygaze_features.errors import StoreError
from obygaze_features.store import (
    ArraySpec,
    GroupSpec,
    PlannedClip,
    Stage,
    metadata,
    open_store,
    seal,
    sealing,
    staging_path,
    verify,
)
from obygaze_features.store import part_writer as parts
from obygaze_features.store.writer import may_punch

from .toy_stores import CORPUS, group, plan, provenance, result, staged, status_of, tree

TOY = group()
N = 150
WITH = {"licence": "CC-BY-4.0", "citation": "Nobody, 2026"}


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """A store of 150 clips sealed without any disturbance: file -> bytes."""
    folder = tmp_path_factory.mktemp("reference")
    staged(folder, N)
    return tree(seal(None, folder / "toy", **WITH))


class StoppedError(Exception):
    """What a test stops sealing with."""


def stop_after(patch, n_parts):
    """Let sealing end with an error after so many parts, and count the parts that are written."""
    written, turns = [], itertools.count()  # several threads take turns

    def write(self, part, lines, real=parts.PartWriter._pour_into):
        if next(turns) >= n_parts:
            raise StoppedError
        written.append(part.file)
        return real(self, part, lines)

    patch.setattr(parts.PartWriter, "_pour_into", write)
    return written


@pytest.mark.parametrize("consume", [False, True])
def test_a_stopped_sealing_goes_on_and_writes_no_part_twice(tmp_path, monkeypatch, reference, consume):
    staged(tmp_path, N)
    written = []
    for _ in range(40):
        with monkeypatch.context() as patch:
            more = stop_after(patch, 1)
            with contextlib.suppress(StoppedError):
                path = seal(None, tmp_path / "toy", consume=consume, workers=1, **WITH)
            written += more
        if (tmp_path / "toy-1.0.0").exists():
            break
    assert tree(path) == reference
    assert len(written) == len(set(written)) == 3 + 3 + 10  # of 150 clips: small arrays, frames, tokens
    assert [node.name for node in tmp_path.iterdir()] == ["toy-1.0.0"] + ["toy.staging"] * (not consume)


@given(
    consume=st.booleans(),
    # Fewer parts than the 16 there are, even if every worker writes one more.
    stops=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=3),
    workers=st.integers(1, 3),
)
@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_number_of_workers_and_of_stops_gives_the_same_bytes(
    tmp_path_factory, reference, consume, stops, workers
):
    folder = tmp_path_factory.mktemp("stops")
    staged(folder, N)
    for stop, others in stops:
        with pytest.MonkeyPatch.context() as patch:
            stop_after(patch, stop)
            with pytest.raises(StoppedError):
                seal(None, folder / "toy", consume=consume, workers=others, **WITH)
    path = seal(None, folder / "toy", consume=consume, workers=workers, **WITH)
    assert tree(path) == reference


SEALING = """
import itertools, os, signal, sys
from obygaze_features.store import seal

path, how, last = sys.argv[1], sys.argv[2], int(sys.argv[3])
folder, steps = os.path.dirname(path), itertools.count(1)

def step():
    if next(steps) == last:
        os.kill(os.getpid(), signal.SIGKILL)

def hook(event, given):
    if event in ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir"):
        if str(given[0]).startswith(folder):
            step()

os.fsync = lambda _descriptor: step()  # a kill is not a power cut
sys.addaudithook(hook)
seal(None, path, licence="CC-BY-4.0", citation="Nobody, 2026", consume=how == "consume")
print(next(steps))
"""


def killed_sealing(folder, how, last):
    """Seal in a process that kills itself at its step `last` (a file opened, renamed, removed, forced)."""
    command = [sys.executable, "-c", SEALING, str(folder / "toy"), how, str(last)]
    return subprocess.run(command, capture_output=True, check=False)


@pytest.mark.long
@pytest.mark.parametrize("how", ["consume", "keep"])
def test_twenty_kills_of_a_sealing_process_change_no_byte_of_the_store(tmp_path, how):
    clips = 600
    staged(tmp_path / "calm", clips)
    steps = int(killed_sealing(tmp_path / "calm", how, 0).stdout)
    good = tree(tmp_path / "calm" / "toy-1.0.0")
    assert steps > 100
    rng = random.Random(3)
    kills = stores = 0
    while kills < 20:
        stores += 1
        folder = tmp_path / str(stores)
        staged(folder, clips)
        for turn in range(6):
            # Threads share the work, so the number of steps may differ a little: none of the last is drawn.
            child = killed_sealing(folder, how, rng.randrange(1, steps * 9 // 10) if turn < 5 else 0)
            if child.returncode != -signal.SIGKILL:
                assert child.returncode == 0 or b"a sealed store never changes" in child.stderr
                break
            kills += 1
        assert turn > 0  # the first was killed, however fast this machine is
        assert tree(folder / "toy-1.0.0") == good
        assert (folder / "toy.staging").exists() == (how == "keep")


def room(folder):
    """Count the bytes that a folder takes on the disk."""
    return sum(512 * path.stat().st_blocks for path in folder.rglob("*") if path.is_file())


def test_a_consumed_stage_never_takes_its_room_beside_the_store(tmp_path, monkeypatch):
    if not may_punch(tmp_path):
        pytest.skip("this file system can't free parts of files")
    arrays = (ArraySpec("pooled", (256,), "float32"), ArraySpec("tokens", (96, 128), "float16"))
    kind = GroupSpec("big", arrays, 1, provenance("big"))
    rng = np.random.default_rng(0)
    clips = [PlannedClip(f"c{row:04d}", "m") for row in rng.permutation(480)]
    stage = Stage.open(staging_path(tmp_path / "big"), clips, [kind], CORPUS)
    for shard in range(3):
        with stage.writer() as writer:
            writer.commit([result(clip, [kind]) for clip in stage.missing((shard, 3))])
    peak = [room(tmp_path)]

    def free(self, name, lines, real=sealing.Consumption.free):
        peak.append(room(tmp_path))
        real(self, name, lines)

    monkeypatch.setattr(sealing.Consumption, "free", free)
    path = seal(None, tmp_path / "big", consume=True, workers=1, **WITH)
    assert verify(path, "full").ok
    assert max(peak) <= 1.1 * room(path)
    assert [node.name for node in tmp_path.iterdir()] == ["big-1.0.0"]


def test_where_parts_of_files_cannot_be_freed_whole_files_are(tmp_path, monkeypatch, reference):
    monkeypatch.setattr("obygaze_features.store.writer.punch", lambda *_: False)
    stage = staged(tmp_path, N)
    left = []

    def free(self, name, lines, real=sealing.Consumption.free):
        real(self, name, lines)
        left.append(len(list((stage.path / "rows").rglob("toy.*"))))

    monkeypatch.setattr(sealing.Consumption, "free", free)
    assert tree(seal(None, tmp_path / "toy", consume=True, workers=1, **WITH)) == reference
    assert left == sorted(left, reverse=True)
    assert (left[0], left[-1]) == (4, 0)


def test_a_stage_that_is_being_consumed_takes_no_new_clips_and_no_other_place(tmp_path, monkeypatch):
    stage = staged(tmp_path, N)
    with monkeypatch.context() as patch:
        stop_after(patch, 5)
        with pytest.raises(StoppedError):
            seal(None, tmp_path / "toy", consume=True, **WITH)
    with pytest.raises(StoreError, match=r"is being sealed with --consume.*then extract with --append"):
        Stage.open(stage.path, [*plan(N), PlannedClip("new", "m")], [TOY], CORPUS)
    with pytest.raises(StoreError, match=r"part of it is in .*toy\.building already"):
        seal(stage.path, tmp_path / "other", **WITH)
    assert Stage.open(stage.path, plan(N), [TOY], CORPUS).missing() == []
    assert seal(None, tmp_path / "toy", **WITH).is_dir()  # without --consume too
    assert stage.path.is_dir()


def test_a_row_that_is_damaged_while_a_stage_is_consumed_costs_its_clip_alone(tmp_path, reference):
    stage = staged(tmp_path, N)
    clip = next(clip for clip in stage.status().values() if clip.status == "ok")
    tokens = stage.path / "rows/0001/toy.tokens"
    data = bytearray(tokens.read_bytes())
    data[clip.slot * 60] ^= 1
    tokens.write_bytes(data)
    with pytest.raises(StoreError, match=rf"1 clips are not what they were.* {clip.clip_id} .toy/tokens"):
        seal(None, tmp_path / "toy", consume=True, **WITH)
    again = Stage.open(stage.path, plan(N), [TOY], CORPUS)
    assert again.missing() == [clip.clip_id]
    with again.writer() as writer:
        writer.commit([result(clip.clip_id, [TOY], status_of(clip.clip_id))])
    assert tree(seal(None, tmp_path / "toy", consume=True, **WITH)) == reference


def test_a_clip_that_changes_after_its_parts_were_sealed_is_mended_from_them(tmp_path, monkeypatch):
    """A failed clip is tried again between two sealings: rows around it are in the store alone by then."""
    stage = Stage.open(staging_path(tmp_path / "toy"), plan(N), [TOY], CORPUS)
    bad = "tt0003-é"
    with stage.writer() as writer:
        writer.commit([result(clip, [TOY], "failed" if clip == bad else "ok") for clip in stage.missing()])
    with monkeypatch.context() as patch:
        stop_after(patch, 8)
        with pytest.raises(StoppedError):
            seal(None, tmp_path / "toy", consume=True, workers=1, **WITH)
    with stage.writer() as writer:
        writer.commit([result(bad, [TOY])])
    path = seal(None, tmp_path / "toy", consume=True, **WITH)
    assert verify(path, "full").ok
    assert {clip.status for clip in open_store(path).clips} == {"ok"}


def test_a_disk_that_is_too_small_is_said_before_a_byte_is_written(tmp_path, monkeypatch):
    staged(tmp_path, N)

    class Disk:
        f_bavail, f_frsize, f_blocks = 3, 4096, 9

    monkeypatch.setattr(os, "statvfs", lambda _path: Disk)
    with pytest.raises(StoreError, match=r"sealing needs .* GB more, and 1.23e-05 GB are free; .*--consume"):
        seal(None, tmp_path / "toy", **WITH)


def test_sealing_again_under_another_version_writes_no_part_anew(tmp_path, monkeypatch, reference):
    staged(tmp_path, N)
    with monkeypatch.context() as patch:
        stop_after(patch, 16)
        patch.setattr(metadata, "clips_csv_bytes", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            seal(None, tmp_path / "toy", **WITH)
    with monkeypatch.context() as patch:
        assert stop_after(patch, 0) == []
        path = seal(None, tmp_path / "toy", version="1.0.1", **WITH)
    changed = {name for name, data in tree(path).items() if data != reference[name]}
    assert changed == {"bag-info.txt", "croissant.json", "tagmanifest-sha256.txt"}


def test_progress_counts_every_row_once(tmp_path):
    staged(tmp_path, 20)
    seen = []
    seal(None, tmp_path / "toy", progress=lambda done, total: seen.append((done, total)), **WITH)
    assert seen[-1] == (100, 100)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert Path(tmp_path / "toy-1.0.0").is_dir()


def test_after_a_torn_line_no_part_is_recorded_so_that_none_is_freed(tmp_path, monkeypatch):
    done = parts.PartList(tmp_path / "parts.jsonl")
    some = [parts.SealedPart(f"part {number}", 1, "0" * 64, "") for number in range(3)]
    done.add(some[0])

    def tears(descriptor, data, write=os.write):
        write(descriptor, data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", tears)
        with pytest.raises(OSError, match="No space left"):
            done.add(some[1])
    with pytest.raises(OSError, match="No space left"):
        done.add(some[2])
    done.close()
    again = parts.PartList(tmp_path / "parts.jsonl")
    again.add(some[2])
    again.close()
    known = parts.PartList(tmp_path / "parts.jsonl")
    known.close()
    assert known.known.keys() == {"part 0", "part 2"}
