"""Several processes share a stage: they end together, and only a clip that kills them fails."""

import heapq
from collections import Counter
from itertools import chain, count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from obygaze_features.errors import ExtractError
from obygaze_features.extraction.report import RunReport
from obygaze_features.extraction.schedule import MOST_DEATHS_IN_A_ROW, extract_in_processes
from obygaze_features.store import Stage
from obygaze_features.workers import Event
from tests.store.toy_stores import CORPUS, group, plan, result


class PretendedProcesses:
    """Processes that write to a stage, in a time that is planted, and die of clips that kill.

    Parameters
    ----------
    stage, workers
        What they write to, and how many there are.
    seconds
        Clip -> seconds that it takes; 1 for others.
    killers
        Clips that kill every process that does them.
    unlucky
        Pairs of a clip's row in the stage and the number of a share, from 1: a process that does this clip
        dies of it in this share alone.
    """

    def __init__(self, stage, workers, seconds=None, killers=(), unlucky=()):
        self.stage = stage
        self.workers = workers
        self.seconds = seconds or {}
        self.killers = set(killers)
        self.unlucky = set(unlucky)
        self.now = 0.0
        self.shares = []
        self.deaths = 0
        self.stops = []
        self._events = []
        self._numbers = count()

    def put(self, key, clip_ids):
        """Give a share to a process: write its results now, and let `get` return its events in their time.

        A process that dies reports the clips before the one that kills it, at the time of its death.
        """
        assert clip_ids
        assert len(clip_ids) == len(set(clip_ids))
        self.shares.append(clip_ids)
        killer = self._first_killer(clip_ids)
        reported = clip_ids if killer is None else clip_ids[: clip_ids.index(killer)]
        self._write(clip_ids, reported, killer)
        end_s = self.now + sum(self.seconds.get(clip, 1.0) for clip in reported)
        if reported:
            report = RunReport(ok=len(reported), devices=Counter(cpu=len(reported)))
            results = [result(clip, [TOY]) for clip in reported]
            self._push(end_s, Event(key, "item", (report, results)))
        if killer is None:
            self._push(end_s, Event(key, "done", ""))
        else:
            self.deaths += 1
            self._push(end_s, Event(key, "died", "signal 9"))

    def _first_killer(self, clip_ids):
        """Return the first clip of the latest share that kills its process; None if all are harmless."""
        number_of_share = len(self.shares)
        for clip in clip_ids:
            is_unlucky = (self.stage.rows[clip], number_of_share) in self.unlucky
            if clip in self.killers or is_unlucky:
                return clip
        return None

    def _write(self, clip_ids, reported, killer):
        """Write what was reported, but for the piece that was open when the process died."""
        lost_piece = None if killer is None else self.stage.piece(killer)
        with self.stage.writer(clip_ids) as writer:
            durable = [clip for clip in reported if self.stage.piece(clip) != lost_piece]
            writer.commit([result(clip, [TOY]) for clip in durable])

    def _push(self, time_s, event):
        heapq.heappush(self._events, (time_s, next(self._numbers), event))

    def tell(self, key, message):
        self.stops.append((key, message))

    def get(self, _timeout_s):
        self.now, _, event = heapq.heappop(self._events)
        return event


TOY = group(arrays=("pooled",))


@pytest.fixture(scope="module")
def begin(tmp_path_factory):
    """Begin a stage of some clips."""

    def begin(n_clips) -> Stage:
        return Stage.open(tmp_path_factory.mktemp("stage") / "s.staging", plan(n_clips), [TOY], CORPUS)

    return begin


def extract_all(stage, processes, stopped=lambda: False):
    """Extract the clips that a stage lacks with processes; return each report with its results."""
    report = RunReport(engine="ray", encoders=2)
    return list(extract_in_processes(stage, stage.missing(), processes, report, stopped=stopped))


def test_every_clip_is_done_once_and_the_reports_add_up(begin):
    stage = begin(200)
    processes = PretendedProcesses(stage, 3)

    steps = extract_all(stage, processes)

    assert sorted(chain.from_iterable(processes.shares)) == sorted(stage.rows)
    assert stage.missing() == []

    last_report, _ = steps[-1]
    assert (last_report.ok, last_report.engine, last_report.encoders) == (200, "ray", 2)

    n_results = np.cumsum([len(results) for _, results in steps])
    assert [report.clips for report, _ in steps] == n_results.tolist()


@pytest.mark.long
@pytest.mark.parametrize("workers", [2, 8])
def test_processes_of_unequal_speed_on_uneven_clips_end_together(begin, workers):
    """The run takes at most a tenth longer than an even division of the work."""
    stage = begin(1000)
    rng = np.random.default_rng(workers)
    seconds = dict(zip(stage.rows, rng.lognormal(0.0, 1.0, 1000), strict=True))
    processes = PretendedProcesses(stage, workers, seconds)
    extract_all(stage, processes)

    evenly_s = sum(seconds.values()) / workers
    assert processes.now <= 1.1 * evenly_s


@settings(max_examples=15)  # each writes a stage to the disk, several times
@given(st.data())
def test_only_a_clip_that_kills_every_process_fails(begin, data):
    """Another clip may have bad luck: its process dies in one of its shares, and not in a later one."""
    # The ids that `plan` gives to a multiple of seven clips are not unique.
    n_clips = data.draw(st.integers(1, 50).filter(lambda n: n % 7 != 0))
    stage = begin(n_clips)
    killers = data.draw(st.sets(st.sampled_from(sorted(stage.rows)), max_size=2))
    row_and_share = st.tuples(st.integers(0, n_clips - 1), st.integers(1, 4))
    unlucky = data.draw(st.sets(row_and_share, max_size=2))
    workers = data.draw(st.integers(1, 3))

    steps = extract_all(stage, PretendedProcesses(stage, workers, killers=killers, unlucky=unlucky))

    report, _ = steps[-1]

    failed = {clip for clip, entry in stage.status().items() if entry.status == "failed"}
    assert failed == killers
    assert stage.missing() == []
    assert (report.ok, report.failed) == (n_clips - len(killers), len(killers))


def test_a_clip_that_failed_in_an_earlier_run_is_done_again(begin):
    """Also a clip at which its process dies once is done again, and has then not failed."""
    stage = begin(4)
    clips = sorted(stage.rows)
    with stage.writer() as writer:
        writer.commit([result(clip, [TOY], "failed") for clip in clips])

    third_row, first_share = 2, 1
    processes = PretendedProcesses(stage, 1, unlucky={(third_row, first_share)})
    for _ in extract_in_processes(stage, clips, processes, RunReport(), stopped=lambda: False):
        pass

    assert {entry.status for entry in stage.status().values()} == {"ok"}


def test_processes_that_always_die_end_the_run(begin):
    """Every clip kills its process.

    When the limit of deaths in a row is reached, other processes may be dying.
    """
    stage = begin(100)
    processes = PretendedProcesses(stage, 2, killers=stage.rows)

    with pytest.raises(ExtractError):
        extract_all(stage, processes)
    assert MOST_DEATHS_IN_A_ROW <= processes.deaths <= MOST_DEATHS_IN_A_ROW + processes.workers - 1


def test_a_wish_to_stop_reaches_every_process_and_nothing_more_is_begun(begin):
    """Each of three processes has been given one share; no further one is given."""
    stage = begin(200)
    processes = PretendedProcesses(stage, 3)
    extract_all(stage, processes, stopped=lambda: processes.now > 0)

    assert len(processes.shares) == 3
    assert {key for key, _ in processes.stops} == {0, 1, 2}
    assert 0 < len(stage.missing()) < 200
