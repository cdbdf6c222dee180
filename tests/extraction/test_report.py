"""Where the time went: what a report says of encoders and GPUs."""

import json
from dataclasses import replace

import numpy as np

from obygaze_features.backbones import load_backbone
from obygaze_features.demo.corpus import write_video
from obygaze_features.extraction import Job, RunReport, run_local
from obygaze_features.extraction.report import write_report
from obygaze_features.manifest import Clip, Manifest
from obygaze_features.store import Stage


def test_shares_are_those_of_one_encoder():
    report = RunReport(wall_s=10.0, encoders=2, waited_s=15.0, infer_s=5.0, write_s=1.0)
    assert report.shares() == {"decode": 75.0, "infer": 25.0, "write": 10.0}


def test_gpus_have_work_or_none():
    assert RunReport(wall_s=10.0).gpu_busy_percent() is None
    report = RunReport(wall_s=10.0, encoders=2, gpu_busy_s=5.0)
    assert report.gpu_busy_percent() == 25.0
    assert "GPU had work 25 %" in report.sentence()


class BusyGPU:
    """Keeps a GPU at work for two seconds a call, so it says; seven seconds before the run began."""

    def __init__(self, encode):
        self.encode = encode
        self.busy_s = 7.0

    def __call__(self, batch):
        self.busy_s += 2.0
        return self.encode(batch)


def test_a_run_counts_its_own_seconds_of_the_gpu_and_leaves_them_beside_the_stage(tmp_path):
    films = Manifest((Clip("a", "m", "a.mp4"), Clip("b", "m", "a.mp4"), Clip("c", "m", "none.mp4")), tmp_path)
    write_video(tmp_path / "a.mp4", (np.full((48, 64, 3), 5 * t, np.uint8) for t in range(12)), 24)
    plain = load_backbone("descriptors", 2)
    compute = {**plain.provenance["compute"], "device": "a GPU"}
    backbone = replace(
        plain,
        encode=BusyGPU(plain.encode),
        provenance={**plain.provenance, "compute": compute},
        encode_in_worker=False,
    )
    job = Job(films, "films", (backbone,))
    stage = Stage.open(tmp_path / "s.staging", job.planned_clips(), job.groups(), job.corpus_record())
    report = run_local(job, stage, stage.missing(), workers=1, batch_size=1, timeout_s=600)
    assert report.gpu_busy_s == 4.0
    write_report(report, stage.path)
    (left,) = (tmp_path / "s.staging" / "reports").iterdir()
    told = json.loads(left.read_text(encoding="utf-8"))
    assert (told["engine"], told["clips"], told["failed"], told["gpu_busy_s"]) == ("local", 3, 1, 4.0)
