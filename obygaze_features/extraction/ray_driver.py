"""Drive a Ray cluster: start an encoder per GPU or node, give it the clips that the main process assigns.

This runs in a child of the main process, because Ray may end its process at any time.
"""

import os
import queue
import re
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from obygaze_features.backbones import backbone_options
from obygaze_features.errors import ExtractError
from obygaze_features.extraction.decoders import decoder_record
from obygaze_features.extraction.ray_cluster import join_or_start, ray
from obygaze_features.extraction.ray_nodes import DecodeSettings, NodeError, RayEncoder, decode_by_ray
from obygaze_features.extraction.ray_order import STOP, Head, Order
from obygaze_features.extraction.schedule import ATTEMPTS
from obygaze_features.workers import Event, Parent

FIRST_NOTE_S = 20.0
"""Seconds without a clip after which a first note reports the wait."""
NEXT_NOTES_S = 300.0
"""Seconds until each further note of the same wait."""


def drive(order: Order, log_file: Path, parent: Parent) -> None:
    """Be the process that drives a Ray cluster: join it, and run what the main process sends, until killed.

    Parameters
    ----------
    order
        What to run, and on which cluster.
    log_file
        File to which all output of Ray is appended.
    parent
        The main process. It gets, in this order: a `Head` without an address when joining begins, a `Head`
        with the cluster's address, notes for the user as texts, the number of encoders, and then the events
        of assignments.
    """
    with log_file.open("ab") as file:
        for descriptor in (1, 2):  # standard output and error, to which Ray's C++ part also prints
            os.dup2(file.fileno(), descriptor)
    parent.send(Head(""))
    parent.send(Head(join_or_start(order.address, order.workers, order.folder)))
    pools = choose_pools(order)
    for note in pools.notes:
        parent.send(note)
    parent.send(pools.n_encoders)
    encoders = _Encoders(order, pools.n_decoders, pools.n_encoders)
    listener = threading.Thread(target=_pass_on_messages, args=(parent, encoders), daemon=True)
    listener.start()
    _send_events(encoders, parent)  # never returns


def _pass_on_messages(parent: Parent, encoders: "_Encoders") -> None:
    """Pass messages of the main process on to the encoders: clips to encode, or a request to stop.

    It runs in a thread and never returns.
    """
    while True:
        message = parent.receive()
        if message == STOP:
            encoders.stop()
        else:
            encoders.assignments.put(message)


def _send_events(encoders: "_Encoders", parent: Parent) -> None:
    """Send results of the encoders to the main process, and a note if none comes for long; never return.

    The first note comes soon, further ones of the same wait are rare.

    Raises
    ------
    Exception
        An error that ends the run, such as an error of a node.
    """
    timeout_s = FIRST_NOTE_S
    while True:
        try:
            event = encoders.events.get(timeout=timeout_s)
        except queue.Empty:
            parent.send(_note_on_waiting())
            timeout_s = NEXT_NOTES_S
            continue
        if isinstance(event, Exception):
            raise without_remote_traceback(event)
        parent.send(event)
        timeout_s = FIRST_NOTE_S


class Pools(NamedTuple):
    """How many decoders and encoders are started in a cluster, and notes on them for the user."""

    n_decoders: int
    n_encoders: int
    notes: list[str]


def choose_pools(order: Order) -> Pools:
    """Choose how many decoders and encoders to start in a Ray cluster.

    Decoders decode video, one on each core. Encoders run the networks, one on each GPU, or one on each node
    if no GPU is used.

    Raises
    ------
    ExtractError
        The cluster has no cores, or no GPU although the backbones use one on this machine.
    """
    resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]  # Ray
    n_cores = int(resources.get("CPU", 0))
    n_gpus = int(resources.get("GPU", 0))
    if n_cores == 0:
        raise ExtractError("the Ray cluster has no CPU to decode on; start its nodes with --num-cpus")
    if order.on_gpu and n_gpus == 0:
        raise ExtractError("the backbones run on a GPU here, but Ray's cluster has none; try --device cpu")

    notes = []
    # A backbone without the option `compute` has no network, and uses no GPU anywhere.
    has_networks = any("compute" in backbone_options(name) for name in order.backbones)
    if n_gpus and not order.on_gpu and has_networks:
        notes.append(
            f"the {n_gpus} GPUs of the cluster are not used: run this command on a node that has one"
        )

    nodes = ray.nodes()  # type: ignore[no-untyped-call]  # Ray
    n_nodes = len([node for node in nodes if node["Alive"]])
    n_decoders = min(order.workers or n_cores, n_cores)
    n_encoders = n_gpus if order.on_gpu else n_nodes
    notes.append(f"Ray: {n_nodes} nodes with {n_cores} cores, {n_decoders} decoders, {n_encoders} encoders")
    return Pools(n_decoders, n_encoders, notes)


class _Encoders:
    """The encoders of the cluster: Ray actors, each with a thread here that restarts it if it dies.

    Attributes
    ----------
    assignments
        Queue of key and clip ids, from which the encoders take their work.
    events
        Queue of events of the assignments, or of an error that ends the run.
    """

    def __init__(self, order: Order, n_decoders: int, n_encoders: int) -> None:
        """Start a thread for each encoder, which starts the encoder and gives it clips.

        Parameters
        ----------
        order
            What to run, and on which cluster.
        n_decoders, n_encoders
            Number of decoders, one on each core, and of encoders, which hold the networks.
        """
        # Clips to extract, each list with its key; and what becomes of them
        self.assignments: queue.SimpleQueue[tuple[int, Sequence[str]]] = queue.SimpleQueue()
        self.events: queue.SimpleQueue[Event | Exception] = queue.SimpleQueue()
        self._order = order

        # How an encoder has its clips decoded, by tasks of Ray. The whole cluster has as many of these at
        # once as the user wants, or else two for each decoder, so that no core is idle while an encoder
        # computes.
        n_tasks = order.workers or 2 * n_decoders
        n_tasks_of_encoder = ceil(n_tasks / n_encoders)
        settings = DecodeSettings(order.timeout_s, order.decoder, decoder_record(order.decoder))
        self._decode = partial(decode_by_ray, workers=n_tasks_of_encoder, settings=settings)

        # An encoder is an actor: an object of Ray that lives in a process on some node.
        actor_options: Any = {
            "num_cpus": 0,  # the cores are for the decoders
            "num_gpus": 1 if order.on_gpu else 0,
            "scheduling_strategy": "SPREAD",  # over the nodes
            "max_concurrency": 2,  # calls at once: `do`, and meanwhile `stop`
        }
        self._actor_class: Any = ray.remote(**actor_options)(RayEncoder)
        self._actors: dict[int, Any] = {}  # number of an encoder -> its actor
        for number in range(n_encoders):
            threading.Thread(target=self._serve, args=(number,), daemon=True).start()

    def stop(self) -> None:
        """Ask all encoders to finish their current clips, and end the assignments that none has taken."""
        for actor in list(self._actors.values()):  # a copy, since other threads add actors
            actor.stop.remote()
        while not self.assignments.empty():
            key, _ = self.assignments.get()
            self.events.put(Event(key, "done"))  # the main process sees that none of its clips is written

    def _serve(self, number: int) -> None:
        """Start an encoder and give it clips; start it again if it dies. Runs in a thread for ever.

        An error ends the thread. It is put into `events`, and raised again in the main thread.

        Parameters
        ----------
        number
            Number of the encoder, from 0.
        """
        try:
            while True:
                actor = self._start(number)
                with suppress(ray.exceptions.RayActorError):  # the encoder died: start it again
                    self._do_assignments(actor)
        except Exception as error:  # noqa: BLE001 - raised again in the main thread
            self.events.put(error)

    def _start(self, number: int) -> Any:
        """Start an encoder, wait until it has built its networks, and return its Ray actor.

        Parameters
        ----------
        number
            Number of the encoder, from 0.

        Raises
        ------
        RayActorError
            The encoder has died `ATTEMPTS` times in a row before it was ready.
        ExtractError
            The node cannot work.
        """
        n_failures = 0
        while True:
            actor = self._actor_class.remote(self._order.worker, self._order.marker, self._decode)
            self._actors[number] = actor
            try:
                _raise_node_error(ray.get(actor.begin.remote()))
            except ray.exceptions.RayActorError:
                n_failures += 1
                if n_failures == ATTEMPTS:
                    raise
            else:
                return actor

    def _do_assignments(self, actor: Any) -> None:
        """Give an encoder assignments one after the other, until it dies: then a RayActorError is raised."""
        while True:
            key, clip_ids = self.assignments.get()
            self._do(actor, key, clip_ids)

    def _do(self, actor: Any, key: int, clip_ids: Sequence[str]) -> None:
        """Extract some clips with an encoder; put each report with results, and the end, into `events`.

        Parameters
        ----------
        actor
            The encoder.
        key
            Key of the assignment, which its events get.
        clip_ids
            The clips.

        Raises
        ------
        RayActorError
            The encoder has died. An event says so too.
        """
        try:
            references = actor.do.options(num_returns="streaming").remote(clip_ids)
            for reference in references:
                item = ray.get(reference)  # waits for the next results
                _raise_node_error(item)
                self.events.put(Event(key, "item", item))
        except ray.exceptions.RayActorError as error:
            self.events.put(Event(key, "died", " ".join(str(error).split())))
            raise
        self.events.put(Event(key, "done"))


def _raise_node_error(item: object) -> None:
    """Raise the error if a node returned one in place of a result."""
    if isinstance(item, NodeError):
        raise item.error()


def _note_on_waiting() -> str:
    """Return a note that no clip has come for a while, with the free cores and GPUs of the Ray cluster."""
    free: dict[str, float] = ray.available_resources()  # type: ignore[no-untyped-call]  # Ray
    total: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]  # Ray
    kinds = [kind for kind in ("CPU", "GPU") if kind in total]
    counts = [f"{int(free.get(kind, 0))} of {int(total[kind])} {kind}s" for kind in kinds]  # "3 of 8 CPUs"
    return f"no clip has come back for a while; free in the Ray cluster: {', '.join(counts)}"


def without_remote_traceback(error: Exception) -> Exception:
    """Return an error that names the node and the cause, for an error of Ray, whose text is a long traceback.

    Other errors are returned as they are.
    """
    if not isinstance(error, ray.exceptions.RayError):
        return error
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # Lines such as "ValueError: ..."; the last error of a traceback is the one that was raised.
    causes = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    cause = causes[-1] if causes else lines[0]
    address = re.search(r"\bip=([\w.:]+)", text)
    node = f"node {address[1]}" if address else "a node"
    return ExtractError(
        f"{node} of the Ray cluster failed: {cause}; every node needs the same installation as this one"
    )
