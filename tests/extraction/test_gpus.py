"""One process for each GPU: the bytes of one process, whoever dies. The GPUs are pretended."""

import os
import signal
from dataclasses import replace

import numpy as np
import pytest

from obygaze.demo_corpus import write_video
from obygaze_features.backbones import load_backbone
from obygaze_features.errors import ExtractError
from obygaze_features.extraction import Job, Recipe, gpus, run_local
from obygaze_features.extraction.gpus import on_gpus, run_gpus
from obygaze_features.manifest import Clip, Manifest
from obygaze_features.store import seal
from obygaze_features.workers import WorkerPool

from . import stopping
from .conftest import begin_stage, last_report

N_CLIPS = 24
"""A piece of 16 clips for one card, and one of 8 for the other."""


class PausingRecipe(Recipe):
    """A recipe whose processes pause as the environment says, so that none has ended when it is killed."""

    def build(self):
        stopping.arm()
        return super().build()


@pytest.fixture(scope="module")
def job(tmp_path_factory) -> Job:
    """Clips of two pieces, one of them an empty file."""
    folder = tmp_path_factory.mktemp("films")
    clips = [Clip(f"tt1-{i:02}", "tt1", f"{i}.mp4") for i in range(N_CLIPS)]
    for i in range(N_CLIPS - 1):
        write_video(
            folder / f"{i}.mp4", (np.full((48, 64, 3), 9 * i + t, np.uint8) for t in range(12 + i)), 24
        )
    (folder / f"{N_CLIPS - 1}.mp4").touch()
    recipe = Recipe("descriptors", 4)
    return Job(Manifest(tuple(clips), folder), "films", (recipe.build(),), recipes=(recipe,))


SETTINGS = {"workers": 2, "batch_size": 1, "timeout_s": 600.0}


@pytest.fixture
def pausing_job(job, pause, monkeypatch) -> Job:
    """The job in processes that pause after their first clip."""
    for name, value in pause.variables(after_clips=1).items():
        monkeypatch.setenv(name, value)
    return replace(job, recipes=(PausingRecipe("descriptors", 4),))


@pytest.fixture
def pools(monkeypatch) -> list[WorkerPool]:
    """The pool of the processes of GPUs, once it runs."""
    started = []

    class Pool(WorkerPool):
        def __enter__(self):
            started.append(self)
            return super().__enter__()

    monkeypatch.setattr(gpus, "WorkerPool", Pool)
    return started


@pytest.fixture(scope="module")
def store_of_one_process(job, tmp_path_factory):
    place = tmp_path_factory.mktemp("alone") / "films"
    stage = begin_stage(job, place)
    last_report(run_local(job, stage, stage.missing(), **SETTINGS))
    return seal(stage.path, place, licence="CC0-1.0")


@pytest.mark.long
@pytest.mark.nightly
def test_killed_gpu_processes_are_started_again_to_the_same_bytes(
    pausing_job, pause, store_of_one_process, pools, tmp_path, file_digests
):
    """Only here are the real processes of two GPUs killed; test_schedule.py has pretended ones."""
    stage = begin_stage(pausing_job, tmp_path / "films")
    reports = run_gpus(pausing_job, stage, stage.missing(), gpus=(0, 1), **SETTINGS)
    next(reports)  # the first clip is done, and its process pauses
    killed = pools[0].pids()
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    pause.end()

    report = last_report(reports)
    assert len(killed) == 2
    assert stage.missing() == []
    assert report.encoders == 2

    sealed = seal(stage.path, tmp_path / "films", licence="CC0-1.0")
    assert file_digests(sealed) == file_digests(store_of_one_process)


@pytest.mark.long
def test_a_gpu_whose_process_builds_another_backbone_is_refused(job, tmp_path):
    """Here the process of a GPU is told five frames a clip where the job says four."""
    stage = begin_stage(job, tmp_path / "films")
    four_frames, five_frames = load_backbone("descriptors", 4), Recipe("descriptors", 5)
    mismatched = replace(job, backbones=(four_frames,), recipes=(five_frames,))

    with pytest.raises(ExtractError, match="GPU 0"):
        last_report(run_gpus(mismatched, stage, stage.missing(), gpus=(0,), **SETTINGS))


def test_gpus_are_refused_where_no_backbone_is_a_network():
    """Descriptors are computed on cores alone."""
    with pytest.raises(ExtractError, match="descriptors"):
        on_gpus([Recipe("descriptors")], (0, 1))


def test_networks_are_moved_to_the_first_of_the_gpus_that_are_typed(monkeypatch):
    """GPUs 1 and 0 are typed, in this order. Descriptors are no network, and stay as they are."""
    pytest.importorskip("torch")
    from obygaze_features.backbones import compute

    monkeypatch.setattr(compute, "no_cuda", lambda: None)  # no reason against it
    monkeypatch.setattr(compute.Compute, "_check_card", lambda *_: None)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)

    network, descriptors = on_gpus([Recipe("xclip"), Recipe("descriptors")], (1, 0))
    assert network.options["compute"].device == "cuda:1"
    assert descriptors == Recipe("descriptors")
