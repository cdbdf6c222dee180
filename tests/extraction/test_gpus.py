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

CLIPS = 24  # a piece of 16 for one card, and one of 8 for the other


@pytest.fixture(scope="module")
def job(tmp_path_factory) -> Job:
    """Clips of two pieces, one of them an empty file."""
    folder = tmp_path_factory.mktemp("films")
    clips = [Clip(f"tt1-{i:02}", "tt1", f"{i}.mp4") for i in range(CLIPS)]
    for i in range(CLIPS - 1):
        write_video(
            folder / f"{i}.mp4", (np.full((48, 64, 3), 9 * i + t, np.uint8) for t in range(12 + i)), 24
        )
    (folder / f"{CLIPS - 1}.mp4").touch()
    recipe = Recipe("descriptors", 4)
    return Job(Manifest(tuple(clips), folder), "films", (recipe.build(),), recipes=(recipe,))


SETTINGS = {"workers": 2, "batch_size": 1, "timeout_s": 600.0}


class HeldRecipe(Recipe):
    """A recipe whose processes wait after their first clip, so that none has ended when it is killed."""

    def build(self):
        stopping.arm()
        return super().build()


@pytest.fixture
def held_job(job, hold, monkeypatch) -> Job:
    """The job in processes that wait until they are killed or let go."""
    for name, value in hold.after_clips(1).items():
        monkeypatch.setenv(name, value)
    return replace(job, recipes=(HeldRecipe("descriptors", 4),))


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
def alone(job, tmp_path_factory):
    """The store of one process."""
    place = tmp_path_factory.mktemp("alone") / "films"
    stage = begin_stage(job, place)
    last_report(run_local(job, stage, stage.missing(), **SETTINGS))
    return seal(stage.path, place, licence="CC0-1.0")


@pytest.mark.long
def test_processes_killed_in_the_middle_are_started_again_to_the_same_bytes(
    held_job, hold, alone, pools, tmp_path, tree
):
    """Only here are the real processes of two cards killed; test_schedule.py has pretended ones."""
    stage = begin_stage(held_job, tmp_path / "films")
    killed = []
    for report, _ in run_gpus(held_job, stage, stage.missing(), gpus=(0, 1), **SETTINGS):  # noqa: B007 - the last
        for pid in [] if killed else pools[0].pids():
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
        hold.release()
    assert len(killed) == 2
    assert stage.missing() == []
    assert report.encoders == 2
    assert tree(seal(stage.path, tmp_path / "films", licence="CC0-1.0")) == tree(alone)


@pytest.mark.long
def test_a_card_that_would_give_other_numbers_is_refused(job, tmp_path):
    """Only here does the process of a card build another backbone than the one that leads."""
    stage = begin_stage(job, tmp_path / "films")
    other = replace(job, backbones=(load_backbone("descriptors", 4),), recipes=(Recipe("descriptors", 5),))
    with pytest.raises(ExtractError, match="GPU 0"):
        last_report(run_gpus(other, stage, stage.missing(), gpus=(0,), **SETTINGS))


def test_networks_are_moved_to_the_first_gpu_and_descriptors_alone_are_not_shared(monkeypatch):
    with pytest.raises(ExtractError, match="descriptors"):
        on_gpus([Recipe("descriptors")], (0, 1))
    pytest.importorskip("torch")
    from obygaze_features.backbones.compute import Compute

    monkeypatch.setattr("obygaze_features.backbones.compute.no_cuda", lambda: None)
    monkeypatch.setattr(Compute, "_check_card", lambda *_: None)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    moved = on_gpus([Recipe("xclip"), Recipe("descriptors")], (1, 0))
    assert moved[0].options["compute"].device == "cuda:1"
    assert moved[1] == Recipe("descriptors")
