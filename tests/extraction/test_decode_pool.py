"""Clips and windows of films go through the decode workers: each gets what it gets alone, none waits."""

import heapq
import os
import signal
from collections import deque
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from obygaze.demo_corpus import write_video
from obygaze_features.extraction.decode_clips import (
    PASS_CLIPS,
    DecodedClip,
    DecodeTask,
    Request,
    decode_clips,
    decode_with_av,
    passes,
)
from obygaze_features.extraction.pool import DecodePool
from obygaze_features.video import file_facts, uniform
from obygaze_features.workers import Event

WINDOWS = 20


def grey(number: int) -> np.ndarray:
    return np.full((48, 64, 3), 20 + number, np.uint8)


def quarter(frame: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(frame[::4, ::4])


def crashing(frame: np.ndarray) -> np.ndarray:
    """Crash in the film's third second."""
    if 20 + 50 < frame.mean() < 20 + 60:
        os.kill(os.getpid(), signal.SIGSEGV)
    return quarter(frame)


def odd(frame: np.ndarray) -> np.ndarray:
    """Raise what no decoder should, in the film's third second."""
    if 20 + 50 < frame.mean() < 20 + 60:
        raise ZeroDivisionError("a table of tones")
    return quarter(frame)


@pytest.fixture(scope="module")
def film(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("film") / "film.mkv"
    write_video(path, (grey(number) for number in range(220)), 24)
    return path


def tasks_of(film: Path, prepare=quarter, **changes) -> list[DecodeTask]:
    wishes = {"five": Request(uniform(5), prepare), "two": Request(uniform(2), prepare)}
    return [
        DecodeTask(f"film-{i:04d}", film, 0.4 * i, 0.4 * i + 1.0, wishes, **changes) for i in range(WINDOWS)
    ]


def alone_of(task: DecodeTask) -> DecodedClip:
    ((_, clip),) = decode_clips([task], decode_with_av)
    return clip


def in_order(clips, tasks) -> list[DecodedClip]:
    """Sort clips, which come as they are done; each comes once."""
    by_id = {clip.clip_id: clip for clip in clips}
    assert len(by_id) == len(tasks)
    return [by_id[task.clip_id] for task in tasks]


def same(one: DecodedClip, other: DecodedClip) -> bool:
    arrays = [
        np.array_equal(getattr(one.frames[name], column), getattr(other.frames[name], column))
        for name in one.frames
        for column in ("images", "frame_index", "time_s")
    ]
    facts = ("clip_id", "status", "reason", "source", "remarks")
    return all(arrays) and all(getattr(one, fact) == getattr(other, fact) for fact in facts)


def test_each_window_comes_as_it_comes_alone(film, monkeypatch):
    monkeypatch.setattr(file_facts, "LARGE_BYTES", 0)
    tasks = tasks_of(film, hash_source=True)
    tasks += [replace(tasks[0], clip_id="late", start_s=50.0, end_s=60.0)]
    tasks += [replace(tasks[0], clip_id="whole", start_s=None, end_s=None)]
    with DecodePool(2, 600) as pool:
        together = in_order(pool.decode(tasks), tasks)
    alone = [alone_of(task) for task in tasks]
    assert [clip.clip_id for clip in together] == [task.clip_id for task in tasks]
    assert all(map(same, together, alone))
    assert together[-2].status == "failed"
    assert len(str(together[0].source["sha256"])) == 64
    of_windows = slice(0, WINDOWS)
    assert sum(clip.n_decoded for clip in together[of_windows]) < 0.7 * sum(
        clip.n_decoded for clip in alone[of_windows]
    )


def test_a_pass_is_neighbouring_spans_of_one_file_and_every_worker_has_one(film):
    tasks = tasks_of(film)
    whole = replace(tasks[0], start_s=None, end_s=None)
    assert [len(some) for some in passes(tasks, 1)] == [PASS_CLIPS, WINDOWS - PASS_CLIPS]
    assert [len(some) for some in passes(tasks, 4)] == [5] * 4
    assert [len(some) for some in passes(tasks, 64)] == [1] * WINDOWS
    assert [len(some) for some in passes([whole, whole, *tasks[:2], whole], 1)] == [1, 1, 2, 1]
    other = replace(tasks[0], path=Path("other.mkv"))
    assert [len(some) for some in passes([tasks[0], other, tasks[1]], 1)] == [1, 1, 1]
    assert passes([], 2) == []


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        pytest.param(
            crashing, "the decoder crashed on this file 3 times (signal 11)", marks=pytest.mark.long
        ),
        (odd, "ZeroDivisionError: a table of tones"),
    ],
)
def test_a_crash_or_an_exception_costs_the_window_that_holds_it_alone(film, prepare, reason):
    with DecodePool(1, 600) as pool:
        tasks = tasks_of(film, prepare)[:9:4]
        decoded = in_order(pool.decode(tasks), tasks)
    assert [clip.status for clip in decoded] == ["ok", "failed", "ok"]
    assert decoded[1].reason.endswith(reason)
    alone = [alone_of(task) for task in tasks_of(film)[:9:8]]
    assert all(map(same, decoded[::2], alone))


@pytest.mark.parametrize("part", ["hear", "encode"])
def test_what_fails_beside_the_pictures_fails_the_clip_alone(film, part):
    def broken(*_, **__):
        raise ArithmeticError("no such layout")

    wishes = {"five": Request(uniform(5), quarter, broken if part == "encode" else None)}
    sounds = {"heard": (None, Request(uniform(5), quarter))} if part == "hear" else {}
    tasks = [DecodeTask("a", film, 0.0, 1.0, wishes, sounds=sounds)]
    ((_, clip),) = decode_clips(tasks, decode_with_av)
    reason = clip.absent["heard"] if part == "hear" else clip.reason
    assert clip.status == ("ok" if part == "hear" else "failed")
    assert "Error" in reason


class PretendedWorkers:
    """Stands for worker processes: a clip takes as long as `cost` says, on a clock of its own."""

    def __init__(self, workers, cost):
        self.clock, self._cost, self._idle = 0.0, cost, workers
        self._waiting, self._running, self._done, self._count = deque(), [], deque(), count()

    def put(self, key, task, _limit_s):
        self._waiting.append((key, task[0].tasks[0].clip_id))

    def get(self, _timeout_s):
        while not self._done:
            while self._idle and self._waiting:
                key, clip = self._waiting.popleft()
                self._idle -= 1
                heapq.heappush(self._running, (self.clock + self._cost[clip], next(self._count), key, clip))
            self.clock, _, key, clip = heapq.heappop(self._running)
            self._idle += 1
            self._done += [Event(key, "item", (0, DecodedClip(clip, "ok"))), Event(key, "done")]
        return self._done.popleft()

    def close(self):
        pass


@pytest.mark.parametrize("workers", [2, 16])
def test_long_clips_among_short_ones_keep_no_worker_idle(workers):
    """The best of all orders could take as long as the workers have work, or as the longest clip."""
    costs = np.random.default_rng(0).lognormal(sigma=1.0, size=3000)
    tasks = [DecodeTask(str(i), Path(f"{i}.mp4"), None, None, {}) for i in range(len(costs))]
    with DecodePool(workers, 600.0, batch_size=8) as pool:
        pool._pool.close()
        pool._pool = pretended = PretendedWorkers(workers, {str(i): cost for i, cost in enumerate(costs)})
        given = [clip.clip_id for clip in pool.decode(tasks)]
    assert len(set(given)) == len(costs)
    assert pretended.clock <= 1.05 * max(costs.sum() / workers, costs.max())
