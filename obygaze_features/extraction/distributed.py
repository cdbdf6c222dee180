"""Run extraction on several machines with Ray Data: many decoders feed few encoders that hold the networks.

Ray moves the clips and replaces workers that die. What is done is known by the stage's journal alone, which
the main process writes: if a worker dies, the clips it was processing are done again,
three times at most.
"""

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from obygaze_features.errors import BackboneError, ExtractError
from obygaze_features.extraction.cluster import cluster, ray
from obygaze_features.extraction.deaths import Ledger, encode_carefully
from obygaze_features.extraction.decode import DecodeTask, pieces
from obygaze_features.extraction.decoders import decoder_record
from obygaze_features.extraction.encode import encode_batch, gpu_busy_s, uses_gpu
from obygaze_features.extraction.job import Job
from obygaze_features.extraction.pool import POLL_S, DecodePool
from obygaze_features.extraction.recording import OnCommit, Recording
from obygaze_features.extraction.report import RunReport
from obygaze_features.store import ClipResult, Stage
from obygaze_features.store.provenance import differences


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
) -> RunReport:
    """Extract some clips into a stage on a Ray cluster; they come back in any order.

    Only this process writes to the stage. The videos, and weights given as files, must be found by every node
    under the same path.

    Parameters
    ----------
    workers
        Decoders, one core each; None is as many as the cluster has cores.
    batch_size
        Clips that go through a backbone together. What a clip gets does not depend on it.
    timeout_s
        The longest that decoding one clip may take.
    stopped
        Asked often; once true, nothing more is written and the run ends.
    on_commit
        Called with the report so far and the clips that were just written.

    Raises
    ------
    ExtractError
        If the job has no recipes, no cluster is to be had, or a node would give other numbers than this one.
    """
    if len(job.recipes) != len(job.backbones):
        raise ExtractError("the engine 'ray' needs a recipe for every backbone")
    report = RunReport(engine="ray")
    with Recording(stage, report, on_commit) as recording:
        if not clip_ids:
            return report
        with cluster(workers):
            on_gpu = any(uses_gpu(backbone) for backbone in job.backbones)
            decoders, report.encoders = _pools(workers, on_gpu=on_gpu)
            dataset = _pipeline(
                job,
                clip_ids,
                decoders,
                report.encoders,
                batch_size=batch_size,
                timeout_s=timeout_s,
                on_gpu=on_gpu,
            )
            for encoded in _polled(dataset, stopped):
                report.infer_s += encoded.infer_s
                report.decode_cpu_s += encoded.decode_cpu_s
                report.n_decoded += encoded.n_decoded
                report.remarks.update(encoded.remarks)
                if encoded.gpu_busy_s is not None:
                    report.gpu_busy_s = (report.gpu_busy_s or 0.0) + encoded.gpu_busy_s
                report.waited_s = max(recording.elapsed_s() * report.encoders - report.infer_s, 0.0)
                recording.commit(encoded.results)
    return report


@dataclass(frozen=True, slots=True)
class Encoded:
    """What an encoder sends back of one batch."""

    results: list[ClipResult]
    infer_s: float
    gpu_busy_s: float | None
    decode_cpu_s: float
    n_decoded: int
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a worker will not work: its node would give other numbers. Raised, it would be a page of Ray's."""

    reason: str


class Decoder:
    """Decodes the clips of one file at a time, in a process below this one that can be killed."""

    def __init__(self, timeout_s: float, decoder: str, record: Mapping[str, Any]) -> None:
        self.refusal = _refusal(differences(decoder_record(decoder), record), "decoder")
        self.pool = DecodePool(1, timeout_s, decoder)

    def __call__(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        """Turn a row with tasks into rows with a decoded clip each, or the reason why there is none."""
        tasks: list[DecodeTask] = row["tasks"]
        clips = [self.refusal] if self.refusal else self.pool.decode(tasks, ahead=len(tasks))
        return [{"clip": clip} for clip in clips]


class Encoder:
    """Holds the backbones, built here, and turns batches of decoded clips into features."""

    def __init__(self, job: Job, provenance: Mapping[str, Any], ledger: Any) -> None:
        self.ledger = ledger
        try:
            self.job = job.with_backbones()
        except BackboneError as error:
            self.refusal: Refusal | None = Refusal(f"a node of the cluster cannot build a backbone: {error}")
            return
        here = {group.name: group.provenance for group in self.job.groups()}
        self.refusal = _refusal(differences(here, provenance), "provenance")

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Turn rows with decoded clips into one row with everything that became of them."""
        clips = list(batch["clip"])
        refusals = [self.refusal, *(clip for clip in clips if isinstance(clip, Refusal))]
        for refusal in refusals:
            if refusal is not None:
                return {"encoded": [refusal]}
        backbones = self.job.backbones
        busy_before = gpu_busy_s(backbones)
        started = time.perf_counter()
        results = encode_carefully(clips, lambda some: encode_batch(backbones, some), self._ask)
        infer_s = time.perf_counter() - started
        encoded = Encoded(
            results,
            infer_s,
            None if busy_before is None else (gpu_busy_s(backbones) or 0.0) - busy_before,
            sum(clip.cpu_s for clip in clips),
            sum(clip.n_decoded for clip in clips),
            tuple(remark for clip in clips for remark in clip.remarks),
        )
        return {"encoded": [encoded]}

    def _ask(self, method: str, *words: Any) -> Any:
        return ray.get(getattr(self.ledger, method).remote(*words))


def _refusal(fields: list[str], what: str) -> Refusal | None:
    if not fields:
        return None
    return Refusal(
        f"a node of the cluster has another {what} than the process that leads the run: {', '.join(fields)}; "
        "give every node the same installation and the same kind of device"
    )


def _pools(workers: int | None, *, on_gpu: bool) -> tuple[int, int]:
    """Count the decoders and the encoders: one a core, and one a GPU or else one a node."""
    resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    gpus = int(resources.get("GPU", 0))
    if on_gpu and gpus == 0:
        raise ExtractError("the backbones run on a GPU here, but Ray's cluster has none; try --device cpu")
    nodes = sum(bool(node["Alive"]) for node in ray.nodes())  # type: ignore[no-untyped-call]
    return workers or max(int(resources.get("CPU", 1)), 1), gpus if on_gpu else nodes


def _pipeline(
    job: Job,
    clip_ids: Sequence[str],
    decoders: int,
    encoders: int,
    *,
    batch_size: int,
    timeout_s: float,
    on_gpu: bool,
) -> Any:
    """Plan tasks -> decoders -> encoders, a clip (or windows of a film) a block: a dead worker costs few."""
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    tasks = [
        replace(task, path=task.path and task.path.absolute())  # workers have a working folder of their own
        for task in job.tasks(clip_ids)
    ]
    work = [{"tasks": piece} for piece in pieces(tasks, decoders)]
    rows: Any = ray.data.from_items(work, override_num_blocks=len(work))
    # Decoders own the cores and encoders the GPUs: Ray never joins the two into one worker then.
    decoded = rows.flat_map(
        Decoder,
        fn_constructor_args=(timeout_s, job.decoder, decoder_record(job.decoder)),
        compute=ray.data.ActorPoolStrategy(size=decoders),
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
        compute=ray.data.ActorPoolStrategy(size=encoders),
        num_cpus=0,
        num_gpus=1 if on_gpu else 0,
    )


def _polled(dataset: Any, stopped: Callable[[], bool]) -> Iterator[Encoded]:
    """Run a pipeline in a thread, so that a wish to stop is noticed while nothing comes."""
    arrived: queue.SimpleQueue[Encoded | Refusal | Exception | None] = queue.SimpleQueue()

    def run() -> None:
        try:
            for batch in dataset.iter_batches(batch_size=None, batch_format="numpy", prefetch_batches=0):
                for encoded in batch["encoded"]:
                    arrived.put(encoded)
            arrived.put(None)
        except Exception as error:  # noqa: BLE001 - raised again in the main thread
            arrived.put(error)

    threading.Thread(target=run, daemon=True).start()
    while not stopped():
        try:
            found = arrived.get(timeout=POLL_S)
        except queue.Empty:
            continue
        if found is None:
            return
        if isinstance(found, Refusal):
            raise ExtractError(found.reason)
        if isinstance(found, Exception):
            raise found
        yield found
