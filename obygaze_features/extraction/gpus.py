"""Run the loop once per GPU: one process for each, with the cores divided among them."""

import dataclasses
import os
import signal
import threading
from collections.abc import Callable, Sequence

from obygaze_features.backbones import backbone_options
from obygaze_features.cores import usable_cores
from obygaze_features.errors import ExtractError, ObygazeError
from obygaze_features.extraction.job import Job, Recipe
from obygaze_features.extraction.pool import DecodePool
from obygaze_features.extraction.report import Run, RunReport
from obygaze_features.extraction.schedule import LoopWorker, share_out
from obygaze_features.store import Stage
from obygaze_features.workers import Parent, WorkerPool

VISIBLE = "CUDA_VISIBLE_DEVICES"


def run_gpus(
    job: Job,
    stage: Stage,
    clip_ids: Sequence[str],
    *,
    gpus: Sequence[int],
    workers: int | None,
    batch_size: int,
    timeout_s: float,
    stopped: Callable[[], bool] = lambda: False,
) -> Run:
    """Extract some clips into a stage with one process per GPU, which take the next pieces of the stage.

    Parameters
    ----------
    gpus
        Indices of GPUs, as numbered in this process.
    workers
        Decoders of all processes together; None is one per usable core.
    batch_size, timeout_s, stopped
        As in `run_local`.

    Raises
    ------
    ExtractError
        If a process cannot build the backbones, would compute other features, or dies repeatedly.
    """
    each = max((workers or usable_cores()) // len(gpus), 1)
    pool_settings = each, timeout_s, job.decoder, batch_size
    card = _Card(LoopWorker(job, stage, batch_size), [_name(gpu) for gpu in gpus], gpus, pool_settings)
    with WorkerPool(len(gpus), card) as pool:
        yield from share_out(stage, clip_ids, pool, RunReport(encoders=len(gpus)), stopped=stopped)


def on_gpus(recipes: Sequence[Recipe], gpus: Sequence[int]) -> tuple[Recipe, ...]:
    """Set the device of recipes to the first GPU, for the main process, which only describes the backbones.

    Raises
    ------
    ExtractError
        If no backbone takes a device, or a device was given for one.
    BackboneError
        If torch does not see one of the GPUs.
    """
    takers = [recipe.name for recipe in recipes if "compute" in backbone_options(recipe.name)]
    if not takers:
        raise ExtractError(
            f"{', '.join(recipe.name for recipe in recipes)}: runs on no GPU; leave out --gpus"
        )
    if len(set(gpus)) < len(gpus):
        raise ExtractError(f"--gpus {','.join(map(str, gpus))}: a GPU is named twice")
    from obygaze_features.backbones.compute import Compute  # noqa: PLC0415 - torch

    for gpu in gpus:
        Compute(f"cuda:{gpu}").torch_device()
    moved = []
    for recipe in recipes:
        compute = recipe.options.get("compute") or Compute()
        if recipe.name not in takers:
            moved.append(recipe)
            continue
        if compute.device != "auto":
            raise ExtractError(f"--device {compute.device} and --gpus say two things; leave one out")
        first = dataclasses.replace(compute, device=f"cuda:{gpus[0]}")
        moved.append(dataclasses.replace(recipe, options={**recipe.options, "compute": first}))
    return tuple(moved)


@dataclasses.dataclass(frozen=True)
class _Card:
    """Does clips on one GPU, in that GPU's process."""

    worker: LoopWorker
    names: Sequence[str]
    gpus: Sequence[int]
    pool_settings: tuple[int, float, str, int]

    def __call__(self, clip_ids: Sequence[str], parent: Parent) -> None:
        os.environ[VISIBLE] = self.names[parent.number]
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the main process forwards stop requests

        def listen() -> None:
            parent.receive()
            self.worker.stop()

        try:
            self.worker.begin()
            threading.Thread(target=listen, daemon=True).start()
            with DecodePool(*self.pool_settings) as pool:
                for item in self.worker.do(clip_ids, pool.decode):
                    parent.send(item)
        except ObygazeError as error:
            raise ExtractError(f"GPU {self.gpus[parent.number]}: {error}") from error


def _name(gpu: int) -> str:
    """Return the value of CUDA_VISIBLE_DEVICES that selects this GPU in another process."""
    visible = os.environ.get(VISIBLE)
    return visible.split(",")[gpu].strip() if visible else str(gpu)
