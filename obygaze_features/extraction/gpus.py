"""Run the local engine once per GPU: one process for each GPU, with the cores divided among them."""

import dataclasses
import os
import pickle
import signal
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from obygaze_features.backbones import backbone_options
from obygaze_features.cores import usable_cores
from obygaze_features.errors import ExtractError, ObygazeError
from obygaze_features.extraction.job import Job, Recipe
from obygaze_features.extraction.local import run_local
from obygaze_features.extraction.pool import POLL_S
from obygaze_features.extraction.report import OnCommit, RunReport
from obygaze_features.messages import pickled_for_workers
from obygaze_features.store import Stage, read_stage
from obygaze_features.store.journal import is_done
from obygaze_features.store.provenance import differences
from obygaze_features.workers import Parent, WorkerPool

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
    """Extract some clips into a stage with one process per GPU; each process takes every n-th piece.

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
    groups = {group.name: group.provenance for group in job.groups()}
    # Unpickled in the process after its GPU is set: the settings of some networks initialise CUDA.
    work = pickled_for_workers((dataclasses.replace(job, backbones=()), groups))
    names = [_name(gpu) for gpu in gpus]
    order = {piece: rank for rank, piece in enumerate(sorted({stage.piece(clip) for clip in clip_ids}))}
    cards = {gpu: _Card(gpu, []) for gpu in gpus}
    for clip in clip_ids:
        cards[gpus[order[stage.piece(clip)] % len(gpus)]].left.append(clip)
    waiting = [card for card in cards.values() if card.left]
    running: set[int] = set()
    with WorkerPool(len(gpus), _work) as pool:
        while waiting or running:
            for card in waiting:
                pool.put(card.gpu, _Share(gpus, names, work, stage.path, card.left, settings))
                running.add(card.gpu)
            waiting.clear()
            for gpu in running if stopped() else ():
                pool.tell(gpu, "stop")
            event = pool.get(POLL_S)
            if event is None:
                continue
            card = cards[cast("int", event.key)]
            if event.kind == "item":
                card.now, results = event.value
                card.crashes = 0
                on_commit(_together(cards), results)
                continue
            running.remove(card.gpu)
            if event.kind == "died":
                card.resume(stage, event.value)
                waiting += [card] if card.left else []
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


@dataclasses.dataclass(slots=True)
class _Card:
    """A GPU, the clips that its process has left, and the reports of that process and of its dead ones."""

    gpu: int
    left: list[str]
    before: list[RunReport] = dataclasses.field(default_factory=list)
    now: RunReport = dataclasses.field(default_factory=RunReport)
    crashes: int = 0

    def resume(self, stage: Stage, how: str) -> None:
        """Go on with what a dead process has not finished; what it reported may be of an open piece."""
        self.crashes += 1
        if self.crashes == ATTEMPTS:
            raise ExtractError(
                f"the process of GPU {self.gpu} died {ATTEMPTS} times ({how}); {len(self.left)} of its "
                "clips are left; the same command goes on"
            )
        done = {clip for clip, entry in read_stage(stage.path).status().items() if is_done(entry)}
        self.left = [clip for clip in self.left if clip not in done]
        self.before, self.now = [*self.before, self.now], RunReport()


class _Share(NamedTuple):
    """What the process of a GPU gets."""

    gpus: Sequence[int]
    names: Sequence[str]
    work: bytes
    stage: Path
    clip_ids: Sequence[str]
    settings: Mapping[str, Any]


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


def _together(cards: Mapping[int, _Card]) -> RunReport:
    reports = [report for card in cards.values() for report in (*card.before, card.now)]
    return dataclasses.replace(added(reports), encoders=len(cards))


def _name(gpu: int) -> str:
    """Return the value of CUDA_VISIBLE_DEVICES that selects this GPU in another process."""
    visible = os.environ.get(VISIBLE)
    return visible.split(",")[gpu].strip() if visible else str(gpu)


def _work(share: _Share, parent: Parent) -> None:
    """Process the clips of one GPU; runs in that GPU's process."""
    gpu = share.gpus[parent.number]
    os.environ[VISIBLE] = share.names[parent.number]
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the main process forwards stop requests
    stop = threading.Event()

    def listen() -> None:
        parent.receive()
        stop.set()

    try:
        job, groups = pickle.loads(share.work)  # noqa: S301 - from the main process
        job = job.with_backbones()
        if fields := differences({group.name: group.provenance for group in job.groups()}, groups):
            raise ExtractError(f"gives other numbers than the first one ({', '.join(fields)})")
        threading.Thread(target=listen, daemon=True).start()
        run_local(
            job,
            read_stage(share.stage),
            share.clip_ids,
            **share.settings,
            stopped=stop.is_set,
            on_commit=lambda report, results: parent.send(
                (report, [dataclasses.replace(result, groups={}) for result in results])
            ),
        )
    except ObygazeError as error:
        raise ExtractError(f"GPU {gpu}: {error}") from error
