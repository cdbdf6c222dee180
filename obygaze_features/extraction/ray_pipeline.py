"""Lead a run on a Ray cluster with Ray Data: many decoders feed a few encoders with the networks.

Ray moves the clips and replaces dead workers. This runs in a child of the process that writes the stage.
"""

import os
import queue
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from obygaze_features.backbones import backbone_options
from obygaze_features.errors import ExtractError
from obygaze_features.extraction.decode import pieces
from obygaze_features.extraction.decoders import decoder_record
from obygaze_features.extraction.ray_cluster import join, ray
from obygaze_features.extraction.ray_messages import Encoded, Head, Message, Order, Pools, Remark
from obygaze_features.extraction.ray_nodes import CrashCounts, RayDecoder, RayEncoder, Refusal
from obygaze_features.workers import Parent

AHEAD = 4  # most messages that the parent has not taken
FIRST_NOTE_S, NEXT_NOTES_S = 20.0, 300.0  # without a clip, before a note reports the wait


def lead(order: Order, printed: Path, parent: Parent) -> None:
    """Join the cluster, run the pipeline, and send what the parent must know.

    After an error Ray is not shut down, because that may end this process before the error is sent: the
    parent then kills it.

    Parameters
    ----------
    printed
        Takes what Ray prints.
    parent
        Tells of each message that it has taken, so that a slow disk slows the cluster down.
    """
    with printed.open("ab") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
    for number, message in enumerate(_messages(order)):
        if number >= AHEAD:
            parent.receive()
        parent.send(message)
    ray.shutdown()


def _messages(order: Order) -> Iterator[Message]:
    yield Head("")
    yield Head(join(order.address, order.workers, order.folder))
    pools, notes = choose_pools(order)
    yield pools
    yield from map(Remark, notes)
    yield from _polled(_pipeline(order, pools))


def choose_pools(order: Order) -> tuple[Pools, list[str]]:
    """Choose the number of decoders (one per core) and of encoders (one per GPU, else one per node).

    Returns
    -------
    The numbers, and what the user should know.

    Raises
    ------
    ExtractError
        If the cluster lacks cores, or the GPUs that the backbones use here.
    """
    resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]  # Ray
    cpus, gpus = (int(resources.get(name, 0)) for name in ("CPU", "GPU"))
    if not cpus:
        raise ExtractError("the Ray cluster has no CPU to decode on; start its nodes with --num-cpus")
    if order.on_gpu and gpus == 0:
        raise ExtractError("the backbones run on a GPU here, but Ray's cluster has none; try --device cpu")
    notes = []
    takers = [recipe for recipe in order.job.recipes if "compute" in backbone_options(recipe.name)]
    if gpus and takers and not order.on_gpu:
        notes.append(f"the {gpus} GPUs of the cluster are not used: run this command on a node that has one")
    nodes = sum(bool(node["Alive"]) for node in ray.nodes())  # type: ignore[no-untyped-call]  # Ray
    pools = Pools(min(order.workers or cpus, cpus), gpus if order.on_gpu else nodes)
    notes.append(
        f"Ray: {nodes} nodes with {cpus} cores, {pools.decoders} decoders, {pools.encoders} encoders"
    )
    return pools, notes


def _pipeline(order: Order, pools: Pools) -> Any:
    """Build the pipeline tasks -> decoders -> encoders; blocks are small: a dead worker loses few clips."""
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    work = [{"tasks": piece} for piece in pieces(order.tasks, pools.decoders)]
    rows: Any = ray.data.from_items(work, override_num_blocks=len(work))
    # Decoders request cores, encoders request GPUs: so Ray does not fuse the two into one worker.
    decoded = rows.flat_map(
        RayDecoder,
        fn_constructor_args=(order.timeout_s, order.job.decoder, decoder_record(order.job.decoder)),
        compute=ray.data.ActorPoolStrategy(size=pools.decoders),
        num_cpus=1,
    )
    return decoded.map_batches(
        RayEncoder,
        fn_constructor_args=(
            order.job,
            order.provenance,
            ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(CrashCounts).remote(),
        ),
        batch_size=order.batch_size,
        batch_format="numpy",
        compute=ray.data.ActorPoolStrategy(size=pools.encoders),
        num_cpus=0,
        num_gpus=1 if order.on_gpu else 0,
    )


def _polled(dataset: Any) -> Iterator[Encoded | Remark]:
    """Run a pipeline in a thread; yield its results, and a note when none has come for a while."""
    arrived: queue.Queue[Encoded | Exception | None] = queue.Queue(2)

    def run() -> None:
        try:
            for batch in dataset.iter_batches(batch_size=None, batch_format="numpy", prefetch_batches=0):
                for encoded in batch["encoded"]:
                    arrived.put(encoded.error() if isinstance(encoded, Refusal) else encoded)
            arrived.put(None)
        except Exception as error:  # noqa: BLE001 - raised again in the main thread
            arrived.put(error)

    threading.Thread(target=run, daemon=True).start()
    patience = FIRST_NOTE_S
    while True:
        try:
            result = arrived.get(timeout=patience)
        except queue.Empty:
            yield Remark(_what_it_waits_for())
            patience = NEXT_NOTES_S
            continue
        if result is None:
            return
        if isinstance(result, Exception):
            raise explained(result)
        patience = FIRST_NOTE_S
        yield result


def _what_it_waits_for() -> str:
    free: dict[str, float] = ray.available_resources()  # type: ignore[no-untyped-call]  # Ray
    whole: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]  # Ray
    counts = ", ".join(
        f"{int(free.get(kind, 0))} of {int(whole[kind])} {kind}s" for kind in ("CPU", "GPU") if kind in whole
    )
    return f"no clip has come back for a while; free in the Ray cluster: {counts}"


def explained(error: Exception) -> Exception:
    """Shorten an error of Ray, which contains a remote traceback, to its cause."""
    if not isinstance(error, ray.exceptions.RayError):
        return error
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    cause = next((line for line in reversed(lines) if re.match(r"[\w.]*(Error|Exception)\b", line)), lines[0])
    address = re.search(r"\bip=([\w.:]+)", text)
    node = f"node {address[1]}" if address else "a node"
    return ExtractError(
        f"{node} of the Ray cluster failed: {cause}; every node needs the same installation as this one"
    )
