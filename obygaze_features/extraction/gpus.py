"""Run the local engine once per GPU: one process for each GPU, with the cores divided among them."""

import contextlib
import dataclasses
import os
import pickle
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from obygaze_features.backbones import backbone_options
from obygaze_features.cores import usable_cores
from obygaze_features.errors import ExtractError, ObygazeError
from obygaze_features.extraction.job import Job, Recipe
from obygaze_features.extraction.local import run_local
from obygaze_features.extraction.pool import POLL_S
from obygaze_features.extraction.report import OnCommit, RunReport
from obygaze_features.store import ClipResult, Stage, read_stage
from obygaze_features.store.journal import is_done
from obygaze_features.store.provenance import differences
from obygaze_features.workers import pickled_for_workers, start_process

ATTEMPTS = 3  # consecutive crashes of one GPU's process without a finished clip
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
    on_commit: OnCommit = lambda *_: None,
) -> RunReport:
    """Extract some clips into a stage with one process per GPU; each process takes every n-th clip.

    A process that dies is restarted. Features do not depend on the assignment of clips to GPUs.

    Parameters
    ----------
    gpus
        Indices of GPUs, as numbered in this process.
    workers
        Decoders of all processes together; None is one per usable core.
    batch_size, timeout_s, stopped, on_commit
        As in `run_local`.

    Raises
    ------
    ExtractError
        If a process cannot build the backbones, would compute other features, or dies repeatedly.
    """
    if len(job.recipes) != len(job.backbones):
        raise ExtractError("several GPUs need a recipe for every backbone")
    each = max((workers or usable_cores()) // len(gpus), 1)
    settings = {"workers": each, "batch_size": batch_size, "timeout_s": timeout_s}
    cards = [
        _Card(gpu, job, stage, clip_ids[number :: len(gpus)], settings) for number, gpu in enumerate(gpus)
    ]
    try:
        while running := [card for card in cards if card.process is not None]:
            for card in running if stopped() else []:
                card.stop()
            for connection in wait([card.channel for card in running], POLL_S):
                card = next(card for card in running if card.channel is connection)
                results = card.receive()
                if results:
                    on_commit(_together(cards), results)
    finally:
        for card in cards:
            card.end()
    return _together(cards)


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


class _Card:
    """Handle of one GPU's process in the main process.

    Attributes
    ----------
    process
        None when its clips are done.
    report
        Its last report, added to those of the dead processes that it replaces.
    """

    def __init__(
        self, gpu: int, job: Job, stage: Stage, clip_ids: Sequence[str], settings: dict[str, Any]
    ) -> None:
        self.gpu = gpu
        self._job, self._stage, self._settings = job, stage, settings
        self._left = list(clip_ids)
        self._before: list[RunReport] = []
        self._now = RunReport()
        self._crashes = 0
        self._stopped = False
        self.process: subprocess.Popen[bytes] | None = None
        self._start()

    @property
    def report(self) -> RunReport:
        return added([*self._before, self._now])

    def _start(self) -> None:
        if not self._left:
            return
        self._stopped = False
        job = dataclasses.replace(self._job, backbones=())
        groups = {group.name: group.provenance for group in self._job.groups()}
        # Unpickled in the process after its GPU is set: the settings of some networks initialise CUDA.
        work = pickled_for_workers((job, groups, self._stage.path, self._left, self._settings))
        self.process, self.channel = start_process(_work, _name(self.gpu), work)

    def receive(self) -> list[ClipResult]:
        """Read one message; return the clips that it reports as written."""
        try:
            message = self.channel.recv()
        except (EOFError, OSError):
            self._on_exit()
            return []
        if isinstance(message, str):
            raise ExtractError(f"GPU {self.gpu}: {message}")
        if message is None:
            self.end()
            return []
        results: list[ClipResult]
        self._now, results = message
        self._crashes = 0
        written = {result.clip_id for result in results}
        self._left = [clip for clip in self._left if clip not in written]
        return results

    def _on_exit(self) -> None:
        code = self.end()
        self._crashes += 1
        if self._crashes == ATTEMPTS:
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise ExtractError(
                f"the process of GPU {self.gpu} died {ATTEMPTS} times ({how}); {len(self._left)} of its "
                "clips are left; the same command goes on"
            )
        done = {clip for clip, entry in read_stage(self._stage.path).status().items() if is_done(entry)}
        self._left = [clip for clip in self._left if clip not in done]
        self._before, self._now = [*self._before, self._now], RunReport()
        self._start()

    def stop(self) -> None:
        """Request the process to finish its current clips and end; once, for it reads no second request."""
        if self._stopped:
            return
        self._stopped = True
        with contextlib.suppress(OSError):  # it has just ended; the next read of its channel notices it
            self.channel.send(None)

    def end(self) -> int:
        """Wait until the process ends, which it does when the channel is closed; return its exit code."""
        if self.process is None:
            return 0
        self.channel.close()
        self.process.communicate()
        code = self.process.returncode
        self.process = None
        return code


def added(reports: Sequence[RunReport]) -> RunReport:
    """Sum reports; the wall time is the longest."""
    total = RunReport()
    for field in dataclasses.fields(RunReport):
        values = [getattr(report, field.name) for report in reports]
        known = [value for value in values if value is not None]
        if not known or field.name == "engine":
            continue
        if field.name in ("wall_s", "encoders"):
            setattr(total, field.name, max(known))
        elif isinstance(known[0], Counter):
            setattr(total, field.name, sum(known, Counter()))
        elif isinstance(known[0], dict):
            setattr(total, field.name, {key: value for each in known for key, value in each.items()})
        else:
            setattr(total, field.name, sum(known))
    return total


def _together(cards: Sequence[_Card]) -> RunReport:
    return dataclasses.replace(added([card.report for card in cards]), encoders=len(cards))


def _name(gpu: int) -> str:
    """Return the value of CUDA_VISIBLE_DEVICES that selects this GPU in another process."""
    visible = os.environ.get(VISIBLE)
    return visible.split(",")[gpu].strip() if visible else str(gpu)


def _work(channel: Connection, gpu: str, pickled: bytes) -> None:
    """Process the clips of one GPU; runs in that GPU's process."""
    os.environ[VISIBLE] = gpu
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the main process forwards stop requests
    stop = threading.Event()

    def listen() -> None:
        """Stop on any message, and when the main process has ended."""
        with contextlib.suppress(EOFError, OSError):
            channel.recv()
        stop.set()

    try:
        job, groups, path, clip_ids, settings = pickle.loads(pickled)  # noqa: S301 - from the main process
        job = job.with_backbones()
        if fields := differences({group.name: group.provenance for group in job.groups()}, groups):
            raise ExtractError(f"gives other numbers than the first one ({', '.join(fields)})")
        threading.Thread(target=listen, daemon=True).start()
        run_local(
            job,
            read_stage(path),
            clip_ids,
            **settings,
            stopped=stop.is_set,
            on_commit=lambda report, results: channel.send(
                (report, [dataclasses.replace(result, groups={}) for result in results])
            ),
        )
        channel.send(None)
    except ObygazeError as error:
        with contextlib.suppress(OSError):
            channel.send(str(error))
    except BrokenPipeError:
        return  # the main process has ended; written clips are safe
