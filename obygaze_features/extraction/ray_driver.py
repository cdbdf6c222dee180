"""Drive a Ray cluster: start an encoder per GPU or node, give it the shares that the main process sends.

This runs in a child of the main process, because Ray may end its process at any time.
"""

import os
import queue
import re
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from obygaze_features.backbones import backbone_options
from obygaze_features.errors import ExtractError
from obygaze_features.extraction.decoders import decoder_record
from obygaze_features.extraction.ray_cluster import join, ray
from obygaze_features.extraction.ray_nodes import NodeError, RayEncoder, decode_by_ray
from obygaze_features.extraction.ray_order import STOP, Head, Order
from obygaze_features.extraction.schedule import ATTEMPTS
from obygaze_features.workers import Event, Parent

FIRST_NOTE_S, NEXT_NOTES_S = 20.0, 300.0  # without a clip, before a note reports the wait


def drive(order: Order, printed: Path, parent: Parent) -> None:
    """Join the cluster, do the shares that the parent sends, and send what it must know; until it is killed.

    Parameters
    ----------
    printed
        Takes what Ray prints.
    """
    with printed.open("ab") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
    parent.send(Head(""))
    parent.send(Head(join(order.address, order.workers, order.folder)))
    n_decoders, n_encoders, notes = choose_pools(order)
    for note in notes:
        parent.send(note)
    parent.send(n_encoders)
    encoders = _Encoders(order, n_decoders, n_encoders)

    def listen() -> None:
        while True:
            message = parent.receive()
            if message == STOP:
                encoders.stop()
            else:
                encoders.shares.put(message)

    threading.Thread(target=listen, daemon=True).start()
    patience = FIRST_NOTE_S
    event: Event | Exception | str
    while True:
        try:
            event = encoders.events.get(timeout=patience)
            patience = FIRST_NOTE_S
        except queue.Empty:
            event, patience = _what_it_waits_for(), NEXT_NOTES_S
        if isinstance(event, Exception):
            raise explained(event)
        parent.send(event)


def choose_pools(order: Order) -> tuple[int, int, list[str]]:
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
    if gpus and not order.on_gpu and any("compute" in backbone_options(name) for name in order.backbones):
        notes.append(f"the {gpus} GPUs of the cluster are not used: run this command on a node that has one")
    nodes = sum(bool(node["Alive"]) for node in ray.nodes())  # type: ignore[no-untyped-call]  # Ray
    n_decoders, n_encoders = min(order.workers or cpus, cpus), gpus if order.on_gpu else nodes
    notes.append(f"Ray: {nodes} nodes with {cpus} cores, {n_decoders} decoders, {n_encoders} encoders")
    return n_decoders, n_encoders, notes


class _Encoders:
    """The encoders of the cluster, each served by a thread that starts it again when it has died.

    Attributes
    ----------
    shares
        Pairs of key and clip ids, which the encoders take.
    events
        Events of the shares, or an error that ends the run.
    """

    def __init__(self, order: Order, n_decoders: int, n_encoders: int) -> None:
        self.shares: queue.SimpleQueue[tuple[int, Sequence[str]]] = queue.SimpleQueue()
        self.events: queue.SimpleQueue[Event | Exception] = queue.SimpleQueue()
        # More tasks than cores, so that none is idle while an encoder computes; unless fewer are wanted.
        tasks = order.workers or 2 * n_decoders
        settings = order.timeout_s, order.decoder, decoder_record(order.decoder)
        decode = partial(decode_by_ray, workers=-(-tasks // n_encoders), settings=settings)
        self._words = order.worker, order.mark, decode
        # Two calls at once: it can be asked to stop while it works.
        how: Any = {"num_gpus": int(order.on_gpu), "scheduling_strategy": "SPREAD", "max_concurrency": 2}
        self._class: Any = ray.remote(num_cpus=0, **how)(RayEncoder)
        self._actors: dict[int, Any] = {}
        for number in range(n_encoders):
            threading.Thread(target=self._serve, args=(number,), daemon=True).start()

    def stop(self) -> None:
        """Finish the current clips and do no others."""
        for actor in list(self._actors.values()):
            actor.stop.remote()
        while not self.shares.empty():
            key, _ = self.shares.get()
            self.events.put(Event(key, "done"))

    def _serve(self, number: int) -> None:
        starts = 0
        try:
            while True:
                starts += 1
                actor = self._actors[number] = self._class.remote(*self._words)
                try:
                    _refuse(ray.get(actor.begin.remote()))
                    starts = 0
                    while True:
                        self._do(actor, *self.shares.get())
                except ray.exceptions.RayActorError:
                    if starts == ATTEMPTS:
                        raise
        except Exception as error:  # noqa: BLE001 - raised again in the main thread
            self.events.put(error)

    def _do(self, actor: Any, key: int, clip_ids: Sequence[str]) -> None:
        try:
            for each in actor.do.options(num_returns="streaming").remote(clip_ids):
                item = ray.get(each)
                _refuse(item)
                self.events.put(Event(key, "item", item))
        except ray.exceptions.RayActorError as error:
            self.events.put(Event(key, "died", " ".join(str(error).split())))
            raise
        self.events.put(Event(key, "done"))


def _refuse(item: object) -> None:
    if isinstance(item, NodeError):
        raise item.error()


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
