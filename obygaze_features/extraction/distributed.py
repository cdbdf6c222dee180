"""Run extraction on several machines with Ray Data: many decoders feed a few encoders with the networks.

Ray moves the clips and replaces dead workers. Only the stage's journal, written by the main process, records
which clips are done. If a worker dies, the clips it was processing are tried again, at most three times.
"""

import queue
import re
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from obygaze_features.backbones import backbone_options
from obygaze_features.errors import ExtractError
from obygaze_features.extraction.cluster import Link, cluster, ray
from obygaze_features.extraction.deaths import Ledger
from obygaze_features.extraction.decode import DecodeTask, pieces
from obygaze_features.extraction.decoders import decoder_record
from obygaze_features.extraction.encode import uses_gpu
from obygaze_features.extraction.job import Job
from obygaze_features.extraction.nodes import Decoder, Encoded, Encoder, Refusal
from obygaze_features.extraction.pool import POLL_S
from obygaze_features.extraction.recording import OnCommit, Recording
from obygaze_features.extraction.report import RunReport
from obygaze_features.io import NO_SUCH_FILE
from obygaze_features.store import ClipResult, Stage
from obygaze_features.store.sights import absent_files

FIRST_NOTE_S, NEXT_NOTES_S = 20.0, 300.0  # without a clip, before a note reports the wait


def run_ray(
    job: Job,
    stage: Stage,
    clip_ids: Sequence[str],
    *,
    workers: int | None,
    batch_size: int,
    timeout_s: float,
    stopped: Callable[[], bool] = lambda: False,
    on_commit: OnCommit = lambda *_: None,
    note: Callable[[str], object] = warnings.warn,
) -> RunReport:
    """Extract some clips into a stage on a Ray cluster; results arrive in any order.

    Only this process writes to the stage. Every node must have the videos, and weights given as files, under
    the same path.

    Parameters
    ----------
    workers
        Decoders, one core each; None, or a larger number, uses all cores of the cluster.
    batch_size
        Clips encoded together. Features do not depend on it.
    timeout_s
        Time limit for decoding one clip, in seconds.
    stopped
        Polled often; once true, nothing more is written and the run ends.
    on_commit
        Called with the report so far and the clips that were just written.
    note
        Called with messages for the user during the run: the nodes in use, a wait for cores.

    Raises
    ------
    ExtractError
        If the job has no recipes, no cluster is available, its head is lost, a node lacks a video that this
        process finds, or a node would compute other features than this process.
    """
    if len(job.recipes) != len(job.backbones):
        raise ExtractError("the engine 'ray' needs a recipe for every backbone")
    report = RunReport(engine="ray")
    with Recording(stage, report, on_commit) as recording:
        if not clip_ids:
            return report
        tasks = [
            replace(
                task, path=task.path and task.path.absolute()
            )  # workers have a working folder of their own
            for task in job.tasks(clip_ids)
        ]
        absent = absent_files(task.path for task in tasks if task.path)
        here = [task for task in tasks if task.path not in absent]
        recording.commit(
            [ClipResult(task.clip_id, "failed", NO_SUCH_FILE) for task in tasks if task.path in absent]
        )
        if not here:
            return report
        with cluster(workers, stopped) as link:
            if link is None:
                return report
            pools = _pools(workers, job, note)
            report.encoders = pools.encoders
            dataset = _pipeline(job, here, pools, batch_size=batch_size, timeout_s=timeout_s)
            for encoded in _polled(dataset, stopped, link, note):
                report.infer_s += encoded.infer_s
                report.decode_cpu_s += encoded.decode_cpu_s
                report.n_decoded += encoded.n_decoded
                report.remarks.update(encoded.remarks)
                if encoded.gpu_busy_s is not None:
                    report.gpu_busy_s = (report.gpu_busy_s or 0.0) + encoded.gpu_busy_s
                report.waited_s = max(recording.elapsed_s() * report.encoders - report.infer_s, 0.0)
                recording.commit(encoded.results)
            if link.lost():
                raise ExtractError(
                    f"the Ray cluster at {link.address} was lost: its first node does not answer any more. "
                    f"{len(clip_ids) - report.clips} clips are left; the same command goes on"
                )
    return report


@dataclass(frozen=True, slots=True)
class Pools:
    """Number of workers of each kind, and whether each encoder uses a GPU."""

    decoders: int
    encoders: int
    on_gpu: bool


def _pools(workers: int | None, job: Job, note: Callable[[str], object]) -> Pools:
    """Choose the number of decoders (one per core) and of encoders (one per GPU, else one per node)."""
    resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]  # Ray
    cpus, gpus = (int(resources.get(name, 0)) for name in ("CPU", "GPU"))
    on_gpu = any(uses_gpu(backbone) for backbone in job.backbones)
    if not cpus:
        raise ExtractError("the Ray cluster has no CPU to decode on; start its nodes with --num-cpus")
    if on_gpu and gpus == 0:
        raise ExtractError("the backbones run on a GPU here, but Ray's cluster has none; try --device cpu")
    if gpus and not on_gpu and any("compute" in backbone_options(recipe.name) for recipe in job.recipes):
        note(f"the {gpus} GPUs of the cluster are not used: run this command on a node that has one")
    nodes = sum(bool(node["Alive"]) for node in ray.nodes())  # type: ignore[no-untyped-call]  # Ray
    pools = Pools(min(workers or cpus, cpus), gpus if on_gpu else nodes, on_gpu)
    note(f"Ray: {nodes} nodes with {cpus} cores, {pools.decoders} decoders, {pools.encoders} encoders")
    return pools


def _pipeline(
    job: Job, tasks: Sequence[DecodeTask], pools: Pools, *, batch_size: int, timeout_s: float
) -> Any:
    """Build the pipeline tasks -> decoders -> encoders; blocks are small: a dead worker loses few clips."""
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    work = [{"tasks": piece} for piece in pieces(tasks, pools.decoders)]
    rows: Any = ray.data.from_items(work, override_num_blocks=len(work))
    # Decoders request cores, encoders request GPUs: so Ray does not fuse the two into one worker.
    decoded = rows.flat_map(
        Decoder,
        fn_constructor_args=(timeout_s, job.decoder, decoder_record(job.decoder)),
        compute=ray.data.ActorPoolStrategy(size=pools.decoders),
        num_cpus=1,
    )
    return decoded.map_batches(
        Encoder,
        fn_constructor_args=(
            job.without_backbones(),
            {group.name: group.provenance for group in job.groups()},
            ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(Ledger).remote(),
        ),
        batch_size=batch_size,
        batch_format="numpy",
        compute=ray.data.ActorPoolStrategy(size=pools.encoders),
        num_cpus=0,
        num_gpus=1 if pools.on_gpu else 0,
    )


def _polled(
    dataset: Any, stopped: Callable[[], bool], link: Link, note: Callable[[str], object]
) -> Iterator[Encoded]:
    """Run a pipeline in a thread, so that a stop request or a lost cluster is noticed at once."""
    arrived: queue.SimpleQueue[Encoded | Exception | None] = queue.SimpleQueue()

    def run() -> None:
        try:
            for batch in dataset.iter_batches(batch_size=None, batch_format="numpy", prefetch_batches=0):
                for encoded in batch["encoded"]:
                    arrived.put(encoded.error() if isinstance(encoded, Refusal) else encoded)
            arrived.put(None)
        except Exception as error:  # noqa: BLE001 - raised again in the main thread
            arrived.put(error)

    threading.Thread(target=run, daemon=True).start()
    said_at, patience = time.monotonic(), FIRST_NOTE_S
    while not (stopped() or link.lost()):
        try:
            found = arrived.get(timeout=POLL_S)
        except queue.Empty:
            if time.monotonic() - said_at > patience:
                note(_what_it_waits_for())
                said_at, patience = time.monotonic(), NEXT_NOTES_S
            continue
        if found is None:
            return
        if isinstance(found, Exception):
            raise _explained(found)
        said_at = time.monotonic()
        yield found


def _what_it_waits_for() -> str:
    free: dict[str, float] = ray.available_resources()  # type: ignore[no-untyped-call]  # Ray
    whole: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]  # Ray
    counts = ", ".join(
        f"{int(free.get(kind, 0))} of {int(whole[kind])} {kind}s" for kind in ("CPU", "GPU") if kind in whole
    )
    return f"no clip has come back for a while; free in the Ray cluster: {counts}"


def _explained(error: Exception) -> Exception:
    """Shorten an error of Ray, which contains a remote traceback, to its cause."""
    if not isinstance(error, ray.exceptions.RayError):
        return error
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    cause = next((line for line in reversed(lines) if re.match(r"[\w.]*(Error|Exception)\b", line)), lines[0])
    place = re.search(r"\bip=([\w.:]+)", text)
    node = f"node {place[1]}" if place else "a node"
    return ExtractError(
        f"{node} of the Ray cluster failed: {cause}; every node needs the same installation as this one"
    )
