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


class PausingRecipe(Recipe):
    """A recipe whose processes pause as the environment says, so that none has ended when it is killed."""

    def build(self):
        stopping.arm()
        return super().build()


@pytest.fixture(scope="module")
def job(tmp_path_factory) -> Job:
    """The extraction of four frames of 24 clips, one of them an empty file.

    One GPU gets a piece of 16 clips, and the other one of 8.
    """
    folder = tmp_path_factory.mktemp("films")
    clips = [Clip(f"tt1-{number:02}", "tt1", f"{number}.mp4") for number in range(24)]
    for number in range(23):
        frames = (np.full((48, 64, 3), 9 * number + t, np.uint8) for t in range(12 + number))
        write_video(folder / f"{number}.mp4", frames, rate=24)
    (folder / "23.mp4").touch()
    recipe = Recipe("descriptors", n_frames=4)
    return Job(Manifest(tuple(clips), folder), "films", (recipe.build(),), recipes=(recipe,))


SETTINGS = {"workers": 2, "batch_size": 1, "timeout_s": 600.0}


@pytest.fixture
def pausing_job(job, pause, monkeypatch) -> Job:
    """The job in processes that pause after their first clip."""
    for name, value in pause.variables(after_clips=1).items():
        monkeypatch.setenv(name, value)
    return replace(job, recipes=(PausingRecipe("descriptors", n_frames=4),))


@pytest.fixture
def pools_of_gpus(monkeypatch) -> list[WorkerPool]:
    """The pools of the processes of GPUs, of which there is one once a run has begun."""
    started_pools = []

    class NotedPool(WorkerPool):
        def __enter__(self):
            started_pools.append(self)
            return super().__enter__()

    monkeypatch.setattr(gpus, "WorkerPool", NotedPool)
    return started_pools


@pytest.fixture(scope="module")
def store_of_one_process(job, tmp_path_factory):
    place = tmp_path_factory.mktemp("alone") / "films"
    stage = begin_stage(job, place)
    last_report(run_local(job, stage, stage.missing(), **SETTINGS))
    return seal(stage.path, place, licence="CC0-1.0")


@pytest.mark.long
@pytest.mark.nightly
def test_killed_gpu_processes_are_started_again_to_the_same_bytes(
    pausing_job, pause, store_of_one_process, pools_of_gpus, tmp_path, file_digests
):
    """A run has a process for each of two GPUs; both pause after their first clip, and are killed.

    The run starts two others, which do the rest. The store then has the bytes of the store that one process
    made.
    """
    stage = begin_stage(pausing_job, tmp_path / "films")
    reports = run_gpus(pausing_job, stage, stage.missing(), gpus=(0, 1), **SETTINGS)
    next(reports)  # the first clip is done, and its process pauses

    ids_of_processes = pools_of_gpus[0].pids()
    for process_id in ids_of_processes:
        os.kill(process_id, signal.SIGKILL)
    pause.end()
    report = last_report(reports)

    assert len(ids_of_processes) == 2
    assert stage.missing() == []
    assert report.encoders == 2
    store = seal(stage.path, tmp_path / "films", licence="CC0-1.0")
    assert file_digests(store) == file_digests(store_of_one_process)


@pytest.mark.long
def test_a_gpu_whose_process_builds_another_backbone_is_refused(job, tmp_path):
    """The job is of four frames a clip, and its recipe tells the process of a GPU to take five."""
    stage = begin_stage(job, tmp_path / "films")
    backbone_of_four_frames = load_backbone("descriptors", n_frames=4)
    recipe_of_five_frames = Recipe("descriptors", n_frames=5)
    mismatched_job = replace(job, backbones=(backbone_of_four_frames,), recipes=(recipe_of_five_frames,))

    with pytest.raises(ExtractError, match="GPU 0"):
        last_report(run_gpus(mismatched_job, stage, stage.missing(), gpus=(0,), **SETTINGS))


def test_gpus_are_refused_where_no_backbone_is_a_network():
    """Descriptors are computed on cores alone; the message names them."""
    with pytest.raises(ExtractError, match="descriptors"):
        on_gpus([Recipe("descriptors")], (0, 1))


def test_networks_are_moved_to_the_first_of_the_gpus_that_are_typed(monkeypatch):
    """GPUs 1 and 0 are typed, in this order. Descriptors are no network, and stay as they are.

    The machine is pretended to have two GPUs that PyTorch can use.
    """
    pytest.importorskip("torch")
    from obygaze_features.backbones import compute

    monkeypatch.setattr(compute, "no_cuda", lambda: None)  # no reason why there is none
    monkeypatch.setattr(compute.Compute, "_check_gpu", lambda *_: None)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)

    network, descriptors = on_gpus([Recipe("xclip"), Recipe("descriptors")], (1, 0))

    assert network.options["compute"].device == "cuda:1"
    assert descriptors == Recipe("descriptors")
