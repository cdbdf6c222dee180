"""Several processes share a stage: they end together, and only a clip that kills them fails."""

import heapq
from collections import Counter
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from obygaze_features.errors import ExtractError
from obygaze_features.extraction.report import RunReport
from obygaze_features.extraction.schedule import MOST_DEATHS, share_out
from obygaze_features.store import Stage
from obygaze_features.workers import Event
from tests.store.toy_stores import CORPUS, group, plan, result


class Pretended:
    """Processes that write to the stage, take as long as they are told, and die of the clips that kill."""

    def __init__(self, stage, workers, seconds=None, killers=(), unlucky=()):
        self.stage, self.workers = stage, workers
        self.seconds = seconds or {}
        self.killers, self.unlucky = set(killers), set(unlucky)
        self.now, self.begun, self.deaths, self.stops = 0.0, [], 0, []
        self.events, self.numbers = [], count()

    def put(self, key, clip_ids):
        self.begun.append(clip_ids)
        assert len(clip_ids) == len(set(clip_ids)) > 0
        deadly = (
            n
            for n, clip in enumerate(clip_ids)
            if clip in self.killers or (self.stage.rows[clip], len(self.begun)) in self.unlucky
        )
        died = next(deadly, len(clip_ids))
        self.deaths += died < len(clip_ids)
        reported = clip_ids[:died]
        lost = self.stage.piece(clip_ids[died]) if died < len(clip_ids) else None
        with self.stage.writer(clip_ids) as writer:
            kept = [clip for clip in reported if self.stage.piece(clip) != lost]
            writer.commit([result(clip, [TOY]) for clip in kept])
        at = self.now + sum(self.seconds.get(clip, 1.0) for clip in reported)
        if reported:
            report = RunReport(ok=len(reported), devices=Counter(cpu=len(reported)))
            self.push(at, Event(key, "item", (report, [result(clip, [TOY]) for clip in reported])))
        self.push(at, Event(key, "died" if died < len(clip_ids) else "done", "signal 9"))

    def push(self, at, event):
        heapq.heappush(self.events, (at, next(self.numbers), event))

    def tell(self, key, message):
        self.stops.append((key, message))

    def get(self, _timeout_s):
        self.now, _, event = heapq.heappop(self.events)
        return event


TOY = group(arrays=("pooled",))


@pytest.fixture(scope="module")
def begin(tmp_path_factory):
    def begin(n_clips) -> Stage:
        return Stage.open(tmp_path_factory.mktemp("stage") / "s.staging", plan(n_clips), [TOY], CORPUS)

    return begin


def share(stage, processes, stopped=lambda: False):
    report = RunReport(engine="ray", encoders=2)
    return list(share_out(stage, stage.missing(), processes, report, stopped=stopped))


def test_every_clip_is_done_once_and_the_reports_add_up(begin):
    stage = begin(200)
    processes = Pretended(stage, 3)
    seen = share(stage, processes)
    report = seen[-1][0]
    assert sorted(clip for some in processes.begun for clip in some) == sorted(stage.rows)
    assert (report.ok, report.engine, report.encoders) == (200, "ray", 2)
    assert [now.clips for now, _ in seen] == list(np.cumsum([len(results) for _, results in seen]))
    assert stage.missing() == []


@pytest.mark.parametrize("workers", [2, 8])
def test_processes_of_unequal_speed_on_uneven_clips_end_together(begin, workers):
    """Each process has a tenth of the work as its last piece at most."""
    stage = begin(1000)
    rng = np.random.default_rng(workers)
    seconds = dict(zip(stage.rows, rng.lognormal(0.0, 1.0, 1000), strict=True))
    processes = Pretended(stage, workers, seconds)
    share(stage, processes)
    assert processes.now <= 1.1 * sum(seconds.values()) / workers


@settings(max_examples=15)  # each writes a stage to the disk, several times
@given(st.data())
def test_only_a_clip_that_kills_every_process_fails(begin, data):
    n_clips = data.draw(st.integers(1, 50).filter(lambda n: n % 7))
    stage = begin(n_clips)
    killers = data.draw(st.sets(st.sampled_from(sorted(stage.rows)), max_size=2))
    unlucky = data.draw(st.sets(st.tuples(st.integers(0, n_clips - 1), st.integers(1, 4)), max_size=2))
    processes = Pretended(stage, data.draw(st.integers(1, 3)), killers=killers, unlucky=unlucky)
    report = share(stage, processes)[-1][0]
    failed = {clip for clip, entry in stage.status().items() if entry.status == "failed"}
    assert failed == killers
    assert stage.missing() == []
    assert (report.ok, report.failed) == (n_clips - len(killers), len(killers))


def test_a_clip_that_failed_in_an_earlier_run_is_done_again(begin):
    stage = begin(4)
    clips = sorted(stage.rows)
    with stage.writer() as writer:
        writer.commit([result(clip, [TOY], "failed") for clip in clips])
    processes = Pretended(stage, 1, unlucky={(2, 1)})
    assert list(share_out(stage, clips, processes, RunReport(), stopped=lambda: False))
    assert {entry.status for entry in stage.status().values()} == {"ok"}


def test_processes_that_always_die_end_the_run(begin):
    stage = begin(100)
    processes = Pretended(stage, 2, killers=stage.rows)
    with pytest.raises(ExtractError):
        share(stage, processes)
    assert MOST_DEATHS <= processes.deaths <= MOST_DEATHS + processes.workers - 1


def test_a_wish_to_stop_reaches_every_process_and_nothing_more_is_begun(begin):
    stage = begin(200)
    processes = Pretended(stage, 3)
    share(stage, processes, stopped=lambda: processes.now > 0)
    assert len(processes.begun) == 3
    assert {key for key, _ in processes.stops} == {0, 1, 2}
    assert 0 < len(stage.missing()) < 200
