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
    group_into_passes,
)
from obygaze_features.extraction.pool import ClipMessage, DecodePool
from obygaze_features.video import file_facts, uniform
from obygaze_features.workers import Event

WINDOWS = 20


def grey(number: int) -> np.ndarray:
    """A picture of the film, whose lightness tells its number."""
    return np.full((48, 64, 3), 20 + number, np.uint8)


def quarter(frame: np.ndarray) -> np.ndarray:
    """Prepare a frame at a quarter of its height and width."""
    return np.ascontiguousarray(frame[::4, ::4])


def crashing(frame: np.ndarray) -> np.ndarray:
    """Crash in the film's third second."""
    if 20 + 50 < frame.mean() < 20 + 60:
        os.kill(os.getpid(), signal.SIGSEGV)
    return quarter(frame)


def failing(frame: np.ndarray) -> np.ndarray:
    """Raise an error that no decoder should, in the film's third second."""
    if 20 + 50 < frame.mean() < 20 + 60:
        raise ZeroDivisionError("a table of tones")
    return quarter(frame)


@pytest.fixture(scope="module")
def film(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("film") / "film.mkv"
    write_video(path, (grey(number) for number in range(220)), 24)
    return path


def tasks_of(film: Path, prepare=quarter, **changes) -> list[DecodeTask]:
    """Twenty windows of a second, of which two backbones take five frames and two."""
    requests = {"five": Request(uniform(5), prepare), "two": Request(uniform(2), prepare)}

    def task(number: int) -> DecodeTask:
        start_s = 0.4 * number
        return DecodeTask(f"film-{number:04d}", film, start_s, start_s + 1.0, requests, **changes)

    return [task(number) for number in range(WINDOWS)]


def decoded_alone(task: DecodeTask) -> DecodedClip:
    ((_, clip),) = decode_clips([task], decode_with_av)
    return clip


def in_order(clips, tasks) -> list[DecodedClip]:
    """Sort clips, which come as they are done; each comes once."""
    by_id = {clip.clip_id: clip for clip in clips}
    assert len(by_id) == len(tasks)
    return [by_id[task.clip_id] for task in tasks]


def assert_same(clip: DecodedClip, expected: DecodedClip) -> None:
    """Compare all but what depends on the pass in which a clip was decoded."""
    for fact in ("clip_id", "status", "reason", "source", "remarks"):
        assert getattr(clip, fact) == getattr(expected, fact)
    assert clip.frames.keys() == expected.frames.keys()
    for name, prepared in clip.frames.items():
        for column in ("images", "frame_index", "time_s"):
            assert np.array_equal(getattr(prepared, column), getattr(expected.frames[name], column))


def test_each_window_comes_as_it_comes_alone_and_shares_decoded_frames(film, monkeypatch):
    monkeypatch.setattr(file_facts, "LARGE_BYTES", 0)  # so that workers share what they know of the file
    windows = tasks_of(film, hash_source=True)
    after_the_end = replace(windows[0], clip_id="late", start_s=50.0, end_s=60.0)
    whole_film = replace(windows[0], clip_id="whole", start_s=None, end_s=None)
    tasks = [*windows, after_the_end, whole_film]

    with DecodePool(2, 600) as pool:
        together = in_order(pool.decode(tasks), tasks)
    alone = [decoded_alone(task) for task in tasks]

    for clip, expected in zip(together, alone, strict=True):
        assert_same(clip, expected)
    assert together[WINDOWS].status == "failed"
    assert len(str(together[0].source["sha256"])) == 64
    n_together = sum(clip.n_decoded for clip in together[:WINDOWS])
    n_alone = sum(clip.n_decoded for clip in alone[:WINDOWS])
    assert n_together < 0.7 * n_alone


def test_a_pass_is_neighbouring_spans_of_one_file_and_every_worker_has_one(film):
    windows = tasks_of(film)
    whole_film = replace(windows[0], start_s=None, end_s=None)
    of_other_film = replace(windows[0], path=Path("other.mkv"))

    def sizes(tasks, workers):
        return [len(pass_tasks) for pass_tasks in group_into_passes(tasks, workers)]

    assert sizes(windows, 1) == [PASS_CLIPS, WINDOWS - PASS_CLIPS]
    assert sizes(windows, 4) == [5, 5, 5, 5]
    assert sizes(windows, 64) == [1] * WINDOWS
    assert sizes([whole_film, whole_film, *windows[:2], whole_film], 1) == [1, 1, 2, 1]
    assert sizes([windows[0], of_other_film, windows[1]], 1) == [1, 1, 1]
    assert sizes([], 2) == []


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        pytest.param(
            crashing, "the decoder crashed on this file 3 times (signal 11)", marks=pytest.mark.long
        ),
        (failing, "ZeroDivisionError: a table of tones"),
    ],
)
def test_a_crash_or_an_exception_costs_the_window_that_holds_it_alone(film, prepare, reason):
    windows = tasks_of(film, prepare)
    tasks = [windows[0], windows[4], windows[8]]  # the second lies in the film's third second
    with DecodePool(1, 600) as pool:
        before, at_fault, after = in_order(pool.decode(tasks), tasks)
    assert at_fault.status == "failed"
    assert at_fault.reason.endswith(reason)
    harmless_windows = tasks_of(film)
    assert_same(before, decoded_alone(harmless_windows[0]))
    assert_same(after, decoded_alone(harmless_windows[8]))


def broken(*_, **__):
    raise ArithmeticError("no such layout")


def test_an_encoder_that_fails_in_the_worker_fails_the_clip(film):
    requests = {"five": Request(uniform(5), quarter, encode=broken)}
    clip = decoded_alone(DecodeTask("a", film, 0.0, 1.0, requests))
    assert clip.status == "failed"
    assert "ArithmeticError" in clip.reason


def test_a_backbone_that_cannot_hear_leaves_the_clip_to_the_others(film):
    requests = {"five": Request(uniform(5), quarter)}
    hearing_that_fails = (None, Request(uniform(5), quarter))
    clip = decoded_alone(DecodeTask("a", film, 0.0, 1.0, requests, sounds={"heard": hearing_that_fails}))
    assert clip.status == "ok"
    assert "Error" in clip.absent["heard"]


class PretendedWorkers:
    """Stands for worker processes on a clock of its own.

    Parameters
    ----------
    workers
        Number of processes.
    seconds
        Clip -> seconds that it takes.
    """

    def __init__(self, workers, seconds):
        self.clock_s = 0.0
        self._seconds = seconds
        self._n_idle = workers
        self._waiting = deque()
        self._running = []  # heap, by the time of the end
        self._events = deque()
        self._numbers = count()

    def put(self, key, task, _limit_s):
        (decode_task,) = task.file_pass.tasks
        self._waiting.append((key, decode_task.clip_id))

    def get(self, _timeout_s):
        while not self._events:
            while self._n_idle and self._waiting:
                key, clip = self._waiting.popleft()
                end_s = self.clock_s + self._seconds[clip]
                heapq.heappush(self._running, (end_s, next(self._numbers), key, clip))
                self._n_idle -= 1
            self.clock_s, _, key, clip = heapq.heappop(self._running)
            self._n_idle += 1
            self._events.append(Event(key, "item", ClipMessage(0, DecodedClip(clip, "ok"))))
            self._events.append(Event(key, "done"))
        return self._events.popleft()

    def close(self):
        pass


@pytest.mark.parametrize("workers", [2, 16])
def test_long_clips_among_short_ones_keep_no_worker_idle(workers):
    """No order is better than an even division of the work, or than the longest clip."""
    clip_seconds = np.random.default_rng(0).lognormal(sigma=1.0, size=3000)
    tasks = [DecodeTask(str(i), Path(f"{i}.mp4"), None, None, {}) for i in range(len(clip_seconds))]
    pretended = PretendedWorkers(workers, {str(i): seconds for i, seconds in enumerate(clip_seconds)})

    with DecodePool(workers, 600.0, batch_size=8) as pool:
        pool._pool.close()
        pool._pool = pretended
        clip_ids = [clip.clip_id for clip in pool.decode(tasks)]

    assert len(set(clip_ids)) == len(clip_seconds)
    best_s = max(clip_seconds.sum() / workers, clip_seconds.max())
    assert pretended.clock_s <= 1.05 * best_s
