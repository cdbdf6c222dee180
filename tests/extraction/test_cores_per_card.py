"""How many cores decode as fast as a card computes, before a run and after it."""

import numpy as np
import pytest

from obygaze_features.cores import usable_cores
from obygaze_features.extraction import cost_estimate
from obygaze_features.extraction.cost_estimate import estimate_clips
from obygaze_features.extraction.report import RunReport, sum_reports


def test_a_report_says_how_many_cores_decode_as_fast_as_a_card_computes():
    decode_cpu_s, gpu_busy_s = 480.0, 20.0
    report = RunReport(ok=100, wall_s=60.0, decode_cpu_s=decode_cpu_s, n_decoded=9_600, gpu_busy_s=gpu_busy_s)
    assert report.cores_per_card() == decode_cpu_s / gpu_busy_s == 24
    assert report.record()["cores_per_card"] == 24
    assert "24 decoding cores" in report.sentence()
    assert f"{usable_cores()} here" in report.sentence()


def test_the_sum_of_the_reports_of_two_cards_has_the_cores_of_one():
    report = RunReport(ok=100, wall_s=60.0, decode_cpu_s=480.0, n_decoded=9_600, gpu_busy_s=20.0)
    assert sum_reports([report, report]).cores_per_card() == report.cores_per_card()


def test_a_report_divides_the_wall_time_by_what_it_was_spent_on():
    report = RunReport(ok=100, wall_s=40.0, waited_s=30.0, infer_s=40.0, write_s=8.0, encoders=2)
    assert report.time_percentages() == {"decode": 37.5, "infer": 50.0, "write": 10.0}


def test_a_report_says_which_share_of_the_time_was_decoding_inference_and_writing_beside_them():
    report = RunReport(ok=100, wall_s=40.0, waited_s=30.0, infer_s=10.0, write_s=2.0)
    share_of_wall = {"decode": 30 / 40, "infer": 10 / 40, "write": 2 / 40}
    assert share_of_wall == {"decode": 0.75, "infer": 0.25, "write": 0.05}
    assert "decode 75 %, infer 25 %, and beside that write 5 %;" in report.sentence()
    assert "; infer 25 %, and beside that write 5 %;" in report.sentence("text")  # which is not decoded


@pytest.mark.parametrize("seconds", [None, 0.0])
def test_a_report_without_a_card_says_nothing_of_one(seconds):
    report = RunReport(ok=1, wall_s=1.0, decode_cpu_s=1.0, gpu_busy_s=seconds)
    assert report.record()["cores_per_card"] is None
    assert "keep a card busy" not in report.sentence()


class Job:
    """Ten clips of one file, of which a pass decodes five."""

    decoder = "default"
    backbones = ()

    def __init__(self, path):
        self.every = [type("Task", (), {"path": path})() for _ in range(10)]

    def tasks(self, clip_ids):
        return [self.every[int(clip_id)] for clip_id in clip_ids]

    def bytes_per_clip(self):
        return 100


DECODE_CPU_S = 0.6
CARD_S = 0.05


@pytest.fixture
def pretended_trial(tmp_path, monkeypatch):
    """Estimate ten clips by a pretended clock, on which each is decoded and encoded in the times above."""
    (tmp_path / "film.mkv").write_bytes(b"x")
    job = Job(tmp_path / "film.mkv")
    job.backbones = ("network",)
    clock = np.zeros(2)  # seconds, and seconds of cores

    def decode(tasks, _decoder):
        clock[:] += DECODE_CPU_S * len(tasks)
        return [(task, task) for task in tasks]

    def encode(_backbones, clips):
        clock[0] += CARD_S * len(clips)

    monkeypatch.setattr(cost_estimate, "_now", clock.copy)
    monkeypatch.setattr(cost_estimate, "group_into_passes", lambda tasks, _: [tasks[:5], tasks[5:]])
    monkeypatch.setattr(cost_estimate, "decode_clips", decode)
    monkeypatch.setattr(cost_estimate, "encode_batch", encode)
    monkeypatch.setattr(cost_estimate, "load_decoder", lambda _: None)
    monkeypatch.setattr(cost_estimate, "probe", lambda _: None)
    monkeypatch.setattr(cost_estimate, "clips_at_once", lambda _: 8)

    def estimate(*, on_card):
        monkeypatch.setattr(cost_estimate, "uses_gpu", lambda _: on_card)
        return estimate_clips(job, [str(k) for k in range(10)], 4)

    return estimate


def test_a_trial_divides_the_seconds_of_decoding_by_those_of_the_card(pretended_trial):
    estimate = pretended_trial(on_card=True)
    assert estimate.cores_per_card == pytest.approx(DECODE_CPU_S / CARD_S)
    assert dict(estimate.facts())["decoding cores"] == f"12 keep a card busy; {usable_cores()} here"


def test_a_trial_without_a_card_says_nothing_of_one(pretended_trial):
    estimate = pretended_trial(on_card=False)
    assert estimate.cores_per_card is None
    assert "decoding cores" not in dict(estimate.facts())
