"""Clips and windows of films go through the decode workers: each gets what it gets alone, none waits."""

import heapq
import os
import signal
from collections import deque
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from obygaze.demo_corpus import write_video
from obygaze_features.extraction.decode_clips import (
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

RATE = 24
"""Pictures a second of the film."""
GREY_OF_FIRST = 20


def grey(number: int) -> np.ndarray:
    """A picture of the film, whose lightness tells its number."""
    return np.full((48, 64, 3), GREY_OF_FIRST + number, np.uint8)


def number_of(frame: np.ndarray) -> float:
    """Return the number of a picture that was encoded and decoded, about."""
    return frame.mean() - GREY_OF_FIRST


def is_in_third_second(frame: np.ndarray) -> bool:
    """Return whether a picture is surely of the film's third second, whose pictures are 48 to 71."""
    return 50 < number_of(frame) < 60


def quarter(frame: np.ndarray) -> np.ndarray:
    """Prepare a frame at a quarter of its height and width."""
    return np.ascontiguousarray(frame[::4, ::4])


def crash_in_third_second(frame: np.ndarray) -> np.ndarray:
    """Prepare a frame; crash at those of the film's third second."""
    if is_in_third_second(frame):
        os.kill(os.getpid(), signal.SIGSEGV)
    return quarter(frame)


def fail_in_third_second(frame: np.ndarray) -> np.ndarray:
    """Prepare a frame; raise an error of Python at those of the film's third second."""
    if is_in_third_second(frame):
        raise ZeroDivisionError("a fault of the code")
    return quarter(frame)


@pytest.fixture(scope="module")
def film(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("film") / "film.mkv"
    write_video(path, (grey(number) for number in range(220)), RATE)
    return path


def windows_of(film: Path, prepare=quarter, **changes) -> list[DecodeTask]:
    """Make tasks of twenty windows of a second, every .4 s; two backbones take five frames and two."""
    requests = {"five": Request(uniform(5), prepare), "two": Request(uniform(2), prepare)}
    tasks = []
    for number in range(20):
        start_s = 0.4 * number
        tasks.append(DecodeTask(f"film-{number:04d}", film, start_s, start_s + 1.0, requests, **changes))
    return tasks


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


def let_workers_share_facts_of_small_files_too(monkeypatch):
    """Let workers share what one of them has learnt of a file, as they do of large ones."""
    monkeypatch.setattr(file_facts, "LARGE_BYTES", 0)


@pytest.mark.long
def test_windows_that_are_decoded_together_are_those_decoded_alone(film, monkeypatch):
    """Twenty windows of a film, one behind its end, and the whole film are decoded by two workers together.

    Each window lasts a second and begins .4 s after the one before, so that neighbours share frames: less
    than 70 % as many are decoded as for each alone. Each of the 20 also has the digest of the film.
    """
    twenty_windows = windows_of(film, hash_source=True)
    behind_the_end = replace(twenty_windows[0], clip_id="late", start_s=50.0, end_s=60.0)
    whole_film = replace(twenty_windows[0], clip_id="whole", start_s=None, end_s=None)
    tasks = [*twenty_windows, behind_the_end, whole_film]
    let_workers_share_facts_of_small_files_too(monkeypatch)

    with DecodePool(workers=2, timeout_s=600) as pool:
        together = in_order(pool.decode(tasks), tasks)
    alone = [decoded_alone(task) for task in tasks]

    for clip, expected in zip(together, alone, strict=True):
        assert_same(clip, expected)

    n_frames_together = sum(clip.n_decoded for clip in together[:20])
    n_frames_alone = sum(clip.n_decoded for clip in alone[:20])
    assert n_frames_together < 0.7 * n_frames_alone

    *clips_of_windows, clip_behind_the_end, _clip_of_whole_film = together
    assert clip_behind_the_end.status == "failed"
    for clip in clips_of_windows:
        assert len(str(clip.source["sha256"])) == 64  # hexadecimal digits


def sizes_of_passes(tasks, workers):
    return [len(tasks_of_pass) for tasks_of_pass in group_into_passes(tasks, workers)]


@pytest.mark.parametrize(
    ("workers", "sizes"),
    [(1, [16, 4]), (4, [5, 5, 5, 5]), (64, [1] * 20)],
    ids=["one", "four", "more workers than windows"],
)
def test_windows_of_a_film_are_grouped_into_a_pass_for_each_worker(film, workers, sizes):
    """A pass reads a part of a film once for several windows, 16 at most.

    More workers get smaller passes of the twenty windows.
    """
    twenty_windows = windows_of(film)

    assert sizes_of_passes(twenty_windows, workers) == sizes


def test_a_whole_film_is_a_pass_of_its_own(film):
    """Clips are grouped in their order: here, only the two windows are neighbours."""
    window, other_window, *_ = windows_of(film)
    whole_film = replace(window, start_s=None, end_s=None)

    sizes = sizes_of_passes([whole_film, whole_film, window, other_window, whole_film], workers=1)

    assert sizes == [1, 1, 2, 1]


def test_only_neighbouring_windows_of_one_film_share_a_pass(film):
    """A window of another film lies between two windows of one film."""
    window, other_window, *_ = windows_of(film)
    window_of_other_film = replace(window, path=Path("other.mkv"))

    sizes = sizes_of_passes([window, window_of_other_film, other_window], workers=1)

    assert sizes == [1, 1, 1]


def test_no_clips_are_no_passes():
    assert sizes_of_passes([], workers=2) == []


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        pytest.param(
            crash_in_third_second,
            "the decoder crashed on this file 3 times (signal 11)",
            marks=pytest.mark.long,
        ),
        (fail_in_third_second, "ZeroDivisionError: a fault of the code"),
    ],
    ids=["a crash", "an exception"],
)
def test_a_crash_or_an_exception_fails_only_the_window_in_which_it_happens(film, prepare, reason):
    """A function prepares each frame, and crashes or raises an error at those of the film's third second.

    Windows of a second begin every 0.4 s: of numbers 0, 4 and 8, only 4, from 1.6 to 2.6 s, has such frames.
    """
    windows = windows_of(film, prepare)
    tasks = [windows[0], windows[4], windows[8]]

    with DecodePool(workers=1, timeout_s=600) as pool:
        clip_before, clip_at_fault, clip_behind = in_order(pool.decode(tasks), tasks)

    assert clip_at_fault.status == "failed"
    assert clip_at_fault.reason.endswith(reason)
    windows_with_harmless_function = windows_of(film)
    assert_same(clip_before, decoded_alone(windows_with_harmless_function[0]))
    assert_same(clip_behind, decoded_alone(windows_with_harmless_function[8]))


def test_an_encoder_that_fails_in_the_worker_fails_the_clip(film):
    """Small backbones encode in the worker that decodes."""

    def fail(*_, **__):
        raise ArithmeticError("no such layout")

    requests = {"five": Request(uniform(5), quarter, encode=fail)}
    task = DecodeTask("a", film, start_s=0.0, end_s=1.0, requests=requests)

    clip = decoded_alone(task)

    assert clip.status == "failed"
    assert "ArithmeticError" in clip.reason


def test_a_clip_is_decoded_for_other_backbones_where_reading_its_sound_fails(film):
    """The backbone "heard" has None where it should say which samples it takes, so that reading fails."""
    pictures = {"five": Request(uniform(5), quarter)}
    sounds = {"heard": (None, Request(uniform(5), quarter))}
    task = DecodeTask("a", film, start_s=0.0, end_s=1.0, requests=pictures, sounds=sounds)

    clip = decoded_alone(task)

    assert clip.status == "ok"
    assert "Error" in clip.absent["heard"]


@dataclass(order=True)
class RunningClip:
    """A clip that a pretended worker has begun; clips are ordered by when they end."""

    end_s: float
    number: int
    key: object = field(compare=False)
    clip_id: str = field(compare=False)


class PretendedWorkers:
    """Stands for worker processes, on a clock of its own that jumps from event to event.

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
        self._running = []  # a heap: the clip that ends first is its first
        self._events = deque()
        self._numbers = count()

    def put(self, key, task, _limit_s):
        """Queue a pass of one clip."""
        (decode_task,) = task.file_pass.tasks
        self._waiting.append((key, decode_task.clip_id))

    def get(self, _timeout_s):
        """Return the next event: the clip of a pass that ends, and then that the pass is done."""
        if not self._events:
            self._begin_clips()
            ended = heapq.heappop(self._running)
            self.clock_s = ended.end_s
            self._n_idle += 1
            result = ClipMessage(position=0, clip=DecodedClip(ended.clip_id, "ok"))
            self._events += [Event(ended.key, "item", result), Event(ended.key, "done")]
        return self._events.popleft()

    def _begin_clips(self):
        """Give waiting clips to idle workers."""
        while self._n_idle and self._waiting:
            key, clip_id = self._waiting.popleft()
            end_s = self.clock_s + self._seconds[clip_id]
            heapq.heappush(self._running, RunningClip(end_s, next(self._numbers), key, clip_id))
            self._n_idle -= 1

    def close(self):
        pass


@pytest.mark.parametrize("workers", [2, 16])
def test_clips_of_any_lengths_take_five_percent_longer_at_most_than_the_best_order(workers):
    """3,000 clips take from some hundredths of a second to half a minute, 1 s in the median.

    No order is quicker than an even share of the work for each worker, or than the longest clip.
    """
    clip_seconds = np.random.default_rng(0).lognormal(sigma=1.0, size=3000)
    tasks = []
    seconds_of_clip = {}
    for number, seconds in enumerate(clip_seconds):
        tasks.append(DecodeTask(str(number), Path(f"{number}.mp4"), start_s=None, end_s=None, requests={}))
        seconds_of_clip[str(number)] = seconds
    pretended_workers = PretendedWorkers(workers, seconds_of_clip)

    with DecodePool(workers, timeout_s=600.0, batch_size=8) as pool:
        pool._pool.close()  # the real workers
        pool._pool = pretended_workers
        clip_ids = [clip.clip_id for clip in pool.decode(tasks)]

    assert len(set(clip_ids)) == 3000
    even_share_s = clip_seconds.sum() / workers
    longest_clip_s = clip_seconds.max()
    time_at_end_s = pretended_workers.clock_s
    assert time_at_end_s <= 1.05 * max(even_share_s, longest_clip_s)
