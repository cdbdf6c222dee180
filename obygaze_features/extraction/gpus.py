"""Run the loop once per GPU: one process for each, with the cores divided among them."""

import dataclasses
import os
import signal
import threading
from collections.abc import Callable, Sequence

from obygaze_features.backbones import backbone_options
from obygaze_features.cores import usable_cores
from obygaze_features.errors import ExtractError, ObygazeError
from obygaze_features.extraction.gpu_pool import decode_pool
from obygaze_features.extraction.job import Job, Recipe
from obygaze_features.extraction.report import Run, RunReport
from obygaze_features.extraction.schedule import LoopWorker, extract_in_processes
from obygaze_features.store import Stage
from obygaze_features.workers import Parent, WorkerPool

VISIBLE_GPUS = "CUDA_VISIBLE_DEVICES"
"""Environment variable that says which GPUs a process sees."""


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
    """Extract clips with one process per GPU; each gets the next clips when it is done.

    Parameters
    ----------
    job
        The settings that determine the features.
    stage
        The unfinished store that the features are written to.
    clip_ids
        Clips to extract.
    gpus
        Indices of GPUs, as numbered in this process.
    workers
        Decoders of all processes together; None is one per usable core.
    batch_size
        Clips encoded together. Features do not depend on it.
    timeout_s
        Time limit for decoding one clip, in seconds.
    stopped
        Polled often; once true, the current clips are finished and the run ends.

    Raises
    ------
    ExtractError
        If a process cannot build the backbones, would compute other features, or dies repeatedly.
    """
    n_decoders = workers or usable_cores()
    gpu_worker = _GpuWorker(
        worker=LoopWorker(job, stage, batch_size),
        gpus=gpus,
        visible_names=[_visible_name(gpu) for gpu in gpus],
        n_decoders=max(n_decoders // len(gpus), 1),
        timeout_s=timeout_s,
        decoder=job.decoder,
        batch_size=batch_size,
    )
    report = RunReport(encoders=len(gpus))
    with WorkerPool(len(gpus), gpu_worker) as pool:
        yield from extract_in_processes(stage, clip_ids, pool, report, stopped=stopped)


def on_gpus(recipes: Sequence[Recipe], gpus: Sequence[int]) -> tuple[Recipe, ...]:
    """Return recipes (arguments to build backbones) that build their networks on the first of the GPUs.

    They are for the main process, which builds the networks only for their provenance, such as the data type
    on this model of GPU. The clips are encoded in other processes, one for each GPU, which build the networks
    again.

    Parameters
    ----------
    recipes
        Recipes without a device.
    gpus
        Numbers of the GPUs.

    Raises
    ------
    ExtractError
        No backbone is a network that takes a device, a GPU is named twice, or a recipe has a device already.
    BackboneError
        torch does not see one of the GPUs.
    """
    networks = [recipe.name for recipe in recipes if "compute" in backbone_options(recipe.name)]
    if not networks:
        names = ", ".join(recipe.name for recipe in recipes)
        raise ExtractError(f"{names}: runs on no GPU; leave out --gpus")
    if len(set(gpus)) < len(gpus):
        raise ExtractError(f"--gpus {','.join(map(str, gpus))}: a GPU is named twice")
    from obygaze_features.backbones.compute import Compute  # noqa: PLC0415 - torch

    for gpu in gpus:
        Compute(f"cuda:{gpu}").torch_device()  # raises if torch does not see it

    first_device = f"cuda:{gpus[0]}"
    recipes_on_gpu = []
    for recipe in recipes:
        if recipe.name not in networks:
            recipes_on_gpu.append(recipe)
            continue
        compute = recipe.options.get("compute") or Compute()  # device, data type and so on
        if compute.device != "auto":
            raise ExtractError(f"--device {compute.device} and --gpus say two things; leave one out")
        options = {**recipe.options, "compute": dataclasses.replace(compute, device=first_device)}
        recipes_on_gpu.append(dataclasses.replace(recipe, options=options))
    return tuple(recipes_on_gpu)


@dataclasses.dataclass(frozen=True)
class _GpuWorker:
    """Extracts clips in the process of a GPU; called there once for each assignment of clips.

    Parameters
    ----------
    worker
        Encodes and writes the clips.
    gpus, visible_names
        By number of the process, its GPU, and the value of `VISIBLE_GPUS` that shows it this GPU alone.
    n_decoders
        Number of decode workers of each process.
    timeout_s
        Time limit for decoding one clip, in seconds.
    decoder
        Name of the decoder.
    batch_size
        Clips that are encoded together.
    """

    worker: LoopWorker
    gpus: Sequence[int]
    visible_names: Sequence[str]
    n_decoders: int
    timeout_s: float
    decoder: str
    batch_size: int

    def __call__(self, clip_ids: Sequence[str], parent: Parent) -> None:
        """Extract some clips in the process of a GPU, and send reports and results to the main process.

        The process stays for further assignments, and keeps its networks.

        Parameters
        ----------
        clip_ids
            The clips.
        parent
            The main process. It also knows the number of this process, from 0, as `parent.number`.
        """
        own_number = parent.number
        # This process sees its own GPU alone. CUDA reads the variable when it is initialised, which happens
        # in `begin` at the earliest.
        os.environ[VISIBLE_GPUS] = self.visible_names[own_number]
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the main process forwards stop requests

        def wait_for_stop() -> None:
            """Wait for the only message that comes, the request to stop, and stop the work."""
            parent.receive()
            self.worker.stop()

        try:
            self.worker.begin()  # builds the networks, unless an earlier assignment has built them
            threading.Thread(target=wait_for_stop, daemon=True).start()
            with decode_pool(self.n_decoders, self.timeout_s, self.decoder, self.batch_size) as pool:
                for report_and_results in self.worker.do(clip_ids, pool.decode):
                    parent.send(report_and_results)
        except ObygazeError as error:
            raise ExtractError(f"GPU {self.gpus[own_number]}: {error}") from error


def _visible_name(gpu: int) -> str:
    """Return the value of CUDA_VISIBLE_DEVICES that shows another process this GPU alone.

    If the variable is set here, GPUs are numbered by their positions in its value.

    Examples
    --------
    >>> from unittest.mock import patch
    >>> with patch.dict(os.environ, {VISIBLE_GPUS: "3, GPU-5f1c"}):
    ...     _visible_name(0), _visible_name(1)
    ('3', 'GPU-5f1c')
    >>> with patch.dict(os.environ, clear=True):
    ...     _visible_name(1)
    '1'
    """
    visible = os.environ.get(VISIBLE_GPUS)
    if not visible:
        return str(gpu)
    return visible.split(",")[gpu].strip()
