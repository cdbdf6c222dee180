"""Several processes share a stage: they end together, and only a clip that kills them fails."""

import heapq
import json
from collections import Counter
from itertools import chain, count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from obygaze_features.errors import ExtractError
from obygaze_features.extraction.report import RunReport, write_report
from obygaze_features.extraction.schedule import MAX_DEATHS_IN_A_ROW, extract_in_processes
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
            results = [result(clip, [GROUP_OF_POOLED]) for clip in reported]
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
            writer.commit([result(clip, [GROUP_OF_POOLED]) for clip in durable])

    def _push(self, time_s, event):
        heapq.heappush(self._events, (time_s, next(self._numbers), event))

    def tell(self, key, message):
        self.stops.append((key, message))

    def get(self, _timeout_s):
        self.now, _, event = heapq.heappop(self._events)
        return event


GROUP_OF_POOLED = group(arrays=("pooled",))


@pytest.fixture(scope="module")
def begin_stage(tmp_path_factory):
    """Begin a stage of some clips."""

    def begin(n_clips) -> Stage:
        return Stage.open(
            tmp_path_factory.mktemp("stage") / "s.staging", plan(n_clips), [GROUP_OF_POOLED], CORPUS
        )

    return begin


def extract_all(stage, processes, stopped=lambda: False):
    """Extract the clips that a stage lacks with processes; return each report with its results."""
    report = RunReport(engine="ray", encoders=2)
    return list(extract_in_processes(stage, stage.missing(), processes, report, stopped=stopped))


def test_every_clip_is_done_once_and_the_reports_add_up(begin_stage):
    """Three processes share 200 clips. Each report counts the results of all steps up to its own."""
    stage = begin_stage(200)
    processes = PretendedProcesses(stage, workers=3)

    steps = extract_all(stage, processes)

    all_clips = sorted(stage.rows)
    given_to_processes = sorted(chain.from_iterable(processes.shares))
    assert given_to_processes == all_clips
    assert stage.missing() == []
    n_results = 0
    for report, results in steps:
        n_results += len(results)
        assert report.clips == n_results
    last_report, _ = steps[-1]
    assert last_report.ok == 200
    assert last_report.engine == "ray"
    assert last_report.encoders == 2


@pytest.mark.long
@pytest.mark.parametrize("workers", [2, 8])
def test_processes_end_together_though_clips_take_unequal_times(begin_stage, workers):
    """Processes share 1000 clips, which take from some hundredths of a second to 20 s, in the median 1 s.

    None waits long for the others at the end: the run takes at most a tenth longer than an even division of
    the work.
    """
    stage = begin_stage(1000)
    rng = np.random.default_rng(workers)
    seconds_of_clip = dict(zip(stage.rows, rng.lognormal(0.0, 1.0, 1000), strict=True))
    processes = PretendedProcesses(stage, workers, seconds_of_clip)

    extract_all(stage, processes)

    evenly_divided_s = sum(seconds_of_clip.values()) / workers
    time_at_end_s = processes.now
    assert time_at_end_s <= 1.1 * evenly_divided_s


# The ids that `plan` gives to a multiple of seven clips are not unique.
NUMBERS_OF_CLIPS = st.integers(1, 50).filter(lambda n: n % 7 != 0)


@settings(max_examples=15)  # each writes a stage to the disk, several times
@given(st.data())
def test_only_a_clip_that_kills_every_process_fails(begin_stage, data):
    """Of up to 50 clips, up to two kill every process that does them: these fail, and all others are done.

    Up to two more clips have bad luck: a process dies of one if it does the clip in a certain share of the
    work, such as the second share that is given out. Since the next process gets the clip in another share,
    it does not die of it.
    """
    n_clips = data.draw(NUMBERS_OF_CLIPS)
    stage = begin_stage(n_clips)
    killers = data.draw(st.sets(st.sampled_from(sorted(stage.rows)), max_size=2))
    row_of_clip = st.integers(0, n_clips - 1)
    number_of_share = st.integers(1, 4)
    unlucky = data.draw(st.sets(st.tuples(row_of_clip, number_of_share), max_size=2))
    workers = data.draw(st.integers(1, 3))
    processes = PretendedProcesses(stage, workers, killers=killers, unlucky=unlucky)

    steps = extract_all(stage, processes)  # reports on the run so far, each with the clips that are new

    failed_clips = {clip for clip, entry in stage.status().items() if entry.status == "failed"}
    assert failed_clips == killers
    assert stage.missing() == []
    last_report, _ = steps[-1]
    assert last_report.ok == n_clips - len(killers)
    assert last_report.failed == len(killers)


def test_a_clip_that_failed_in_an_earlier_run_is_done_again(begin_stage):
    """All four clips of a stage failed in an earlier run, and one process does them again.

    It dies once, at the third clip, which is done again, too: in the end all four are ok.
    """
    stage = begin_stage(n_clips=4)
    clips = sorted(stage.rows)
    with stage.writer() as writer:
        writer.commit([result(clip, [GROUP_OF_POOLED], "failed") for clip in clips])
    row_of_third_clip = 2
    first_share = 1
    processes = PretendedProcesses(stage, workers=1, unlucky={(row_of_third_clip, first_share)})

    steps = extract_in_processes(stage, clips, processes, RunReport(), stopped=lambda: False)
    for _report_and_results in steps:
        pass

    assert [entry.status for entry in stage.status().values()] == ["ok"] * 4


def test_processes_that_always_die_end_the_run(begin_stage):
    """Every clip kills its process, until the limit of deaths in a row is reached.

    At that moment the other one of the two processes may be dying, which makes one death more.
    """
    stage = begin_stage(100)
    processes = PretendedProcesses(stage, workers=2, killers=stage.rows)

    with pytest.raises(ExtractError):
        extract_all(stage, processes)

    assert processes.deaths in (MAX_DEATHS_IN_A_ROW, MAX_DEATHS_IN_A_ROW + 1)


def test_a_wish_to_stop_reaches_every_process_and_nothing_more_is_begun(begin_stage):
    """200 clips are shared out to three processes, of which each has one share when the run is told to stop.

    All three are told to stop, no further share is given, and some clips are left.
    """
    stage = begin_stage(200)
    processes = PretendedProcesses(stage, workers=3)

    def has_had_an_event():
        clock_of_processes = processes.now  # 0 until the first one has done something
        return clock_of_processes > 0

    extract_all(stage, processes, stopped=has_had_an_event)

    processes_told_to_stop = {process for process, _ in processes.stops}
    assert processes_told_to_stop == {0, 1, 2}
    assert len(processes.shares) == 3
    assert 0 < len(stage.missing()) < 200


def test_each_run_has_a_report_of_its_own_whatever_numbers_are_taken(begin_stage):
    """Three runs have written reports, of which the first was deleted: the fourth must replace none.

    A report says how long clips took, from which the time of a whole corpus is expected.
    """
    stage = begin_stage(8)
    reports = stage.path / "reports"
    for n_clips in (1, 2, 3):
        write_report(RunReport(ok=n_clips), stage.path)
    (reports / "0001.json").unlink()

    write_report(RunReport(ok=4), stage.path)

    ok_of_report = {path.name: json.loads(path.read_text("utf-8"))["ok"] for path in reports.iterdir()}
    assert ok_of_report == {"0002.json": 2, "0003.json": 3, "0004.json": 4}
