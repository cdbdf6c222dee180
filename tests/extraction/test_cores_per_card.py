"""How many cores decode as fast as a GPU computes, before a run and after it."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from obygaze_features.cores import usable_cores
from obygaze_features.extraction import cost_estimate
from obygaze_features.extraction.cost_estimate import estimate_clips
from obygaze_features.extraction.report import RunReport, sum_reports


def test_a_report_says_how_many_cores_decode_as_fast_as_a_gpu_computes():
    """480 s of decoding on cores for 20 s of a busy GPU: 24 cores keep it busy all the time.

    In the sum of the reports of two GPUs, both times double, and their ratio is that of one.
    """
    report = RunReport(ok=100, wall_s=60.0, decode_cpu_s=480.0, n_decoded=9_600, gpu_busy_s=20.0)

    assert report.cores_per_card() == 24
    assert report.record()["cores_per_card"] == 24
    n_cores_of_this_machine = usable_cores()
    assert f"24 decoding cores keep a card busy, {n_cores_of_this_machine} here" in report.sentence()
    assert sum_reports([report, report]).cores_per_card() == 24


def test_a_report_gives_the_time_spent_in_percent():
    """Two encoders have 2 x 40 s. Of these 80 s they waited 30 s for decoders, computed 40 s and wrote 8 s.

    That is 37.5, 50 and 10 percent.
    """
    report = RunReport(ok=100, wall_s=40.0, waited_s=30.0, infer_s=40.0, write_s=8.0, encoders=2)

    assert report.time_percentages() == {"decode": 37.5, "infer": 50.0, "write": 10.0}


def test_a_report_sentence_gives_the_shares_of_decoding_and_inference():
    """Of 40 s, 30 s were spent waiting for decoders, 10 s on inference and 2 s on writing: 75, 25 and 5 %.

    Writing goes on beside the others. Texts are not decoded, so that their sentence leaves decoding out.
    """
    report = RunReport(ok=100, wall_s=40.0, waited_s=30.0, infer_s=10.0, write_s=2.0)

    sentence_on_clips = report.sentence()
    sentence_on_texts = report.sentence("text")

    assert "decode 75 %, infer 25 %, and beside that write 5 %;" in sentence_on_clips
    assert "; infer 25 %, and beside that write 5 %;" in sentence_on_texts


@pytest.mark.skipif(sys.platform != "linux", reason="Linux counts memory in KiB")
def test_a_report_gives_the_peak_memory_in_megabytes_not_in_kib(monkeypatch):
    """The process had 100,000 KiB at most, and its largest child 50,000 KiB: 153.6 MB together."""
    import resource

    usage_of = {resource.RUSAGE_SELF: 100_000, resource.RUSAGE_CHILDREN: 50_000}
    monkeypatch.setattr(resource, "getrusage", lambda who: SimpleNamespace(ru_maxrss=usage_of[who]))

    assert RunReport().record()["peak_memory_mb"] == 153.6


def test_a_report_names_each_gpu_with_its_peak_memory():
    """The GPUs were busy for 30 of 60 s, which is 50 percent."""
    cards = {"Card A": {"peak_memory_mb": 1_234}, "Card B": {"peak_memory_mb": 567}}
    report = RunReport(ok=100, wall_s=60.0, gpu_busy_s=30.0, gpus=cards)

    sentence = report.sentence()

    assert "50 %, Card A, peak 1,234 MB, Card B, peak 567 MB" in sentence


@pytest.mark.parametrize("gpu_busy_s", [None, 0.0], ids=["not measured", "never busy"])
def test_a_report_without_a_gpu_says_nothing_of_one(gpu_busy_s):
    """The run was on cores alone, or its GPU was never busy: there is no time to divide by."""
    report = RunReport(ok=1, wall_s=1.0, decode_cpu_s=1.0, gpu_busy_s=gpu_busy_s)

    assert report.record()["cores_per_card"] is None
    assert "keep a card busy" not in report.sentence()


class Job:
    """Ten clips of one film, for one network."""

    decoder = "default"
    backbones = ("network",)

    def __init__(self, film):
        self.all_tasks = [SimpleNamespace(path=film) for _ in range(10)]

    def tasks(self, clip_ids):
        return [self.all_tasks[int(clip_id)] for clip_id in clip_ids]

    def bytes_per_clip(self):
        return 100


DECODE_CPU_S = 0.6
"""Seconds in which a clip is decoded; one core does it."""
GPU_S = 0.05
"""Seconds in which a GPU computes a clip."""


class Clock:
    """A clock that stands still but for the work that is done: seconds, and seconds of cores."""

    def __init__(self):
        self.wall_s = 0.0
        self.cpu_s = 0.0

    def now(self):
        return np.array([self.wall_s, self.cpu_s])

    def decode(self, tasks, _decoder):
        self.wall_s += DECODE_CPU_S * len(tasks)
        self.cpu_s += DECODE_CPU_S * len(tasks)
        return [(task, task) for task in tasks]

    def encode(self, _backbones, clips):
        self.wall_s += GPU_S * len(clips)


@pytest.fixture
def pretended_trial(tmp_path, monkeypatch):
    """Return a function that estimates ten clips by a trial of them, of which only its clock knows.

    The clips are decoded in two passes of five, for `DECODE_CPU_S` each, and computed for `GPU_S` each.
    """
    film = tmp_path / "film.mkv"
    film.write_bytes(b"x")
    clock = Clock()
    stand_ins = {
        "_now": clock.now,
        "group_into_passes": lambda tasks, _: [tasks[:5], tasks[5:]],
        "decode_clips": clock.decode,
        "encode_batch": clock.encode,
        "load_decoder": lambda _: None,
        "probe": lambda _: None,
        "clips_at_once": lambda _: 8,
    }
    for name, stand_in in stand_ins.items():
        monkeypatch.setattr(cost_estimate, name, stand_in)

    def estimate(*, on_gpu):
        monkeypatch.setattr(cost_estimate, "uses_gpu", lambda _: on_gpu)
        n_workers = 4
        return estimate_clips(Job(film), [str(number) for number in range(10)], n_workers)

    return estimate


def test_a_trial_divides_the_seconds_of_decoding_by_those_of_the_gpu(pretended_trial):
    """In the pretended trial, a clip takes 0.6 s on a core and 0.05 s on a GPU.

    0.6 / 0.05 = 12 cores keep the GPU busy.
    """
    estimate = pretended_trial(on_gpu=True)

    assert estimate.cores_per_card == pytest.approx(12)
    n_cores_of_this_machine = usable_cores()
    fact = dict(estimate.facts())["decoding cores"]
    assert fact == f"12 keep a card busy; {n_cores_of_this_machine} here"


def test_a_trial_without_a_gpu_says_nothing_of_one(pretended_trial):
    """Ten clips are tried on cores alone, which both decode and compute."""
    estimate = pretended_trial(on_gpu=False)

    assert estimate.cores_per_card is None
    assert "decoding cores" not in dict(estimate.facts())
