"""Start the process that leads a Ray cluster, and yield its messages; however it ends, say why."""

import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any, Self

from obygaze_features.errors import ExtractError
from obygaze_features.extraction.decode import DecodeTask
from obygaze_features.extraction.job import Job
from obygaze_features.extraction.pool import POLL_S
from obygaze_features.store import ClipResult
from obygaze_features.store.provenance import clipped
from obygaze_features.workers import Event, WorkerPool

ANSWER_S = 10.0  # until the head accepts a connection
JOIN_S = 50.0  # until the child has joined; every failure is reported within a minute
LEAVE_S = 15.0
LOST_S = 15.0  # without an answer; after 60 s Ray would end the child
AHEAD = 4
"""Most messages of the child that wait here: a slow disk then slows the cluster down."""


@dataclass(frozen=True, slots=True)
class Order:
    """Everything that the child needs to lead a run.

    Parameters
    ----------
    job
        The job without its backbones.
    provenance
        Group -> its provenance here; a node with another one is refused.
    on_gpu
        Whether the backbones use a GPU here.
    address
        Address of the cluster; None starts one in `folder`.
    """

    job: Job
    tasks: Sequence[DecodeTask]
    provenance: Mapping[str, Any]
    on_gpu: bool
    address: str | None
    folder: str | None
    workers: int | None
    batch_size: int
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Head:
    """Address of the cluster's head; empty when the child begins to join."""

    address: str


@dataclass(frozen=True, slots=True)
class Note:
    """A line for the user."""

    text: str


@dataclass(frozen=True, slots=True)
class Pools:
    """Number of workers of each kind."""

    decoders: int
    encoders: int


@dataclass(frozen=True, slots=True)
class Encoded:
    """Result of an encoder for one batch."""

    results: list[ClipResult]
    infer_s: float
    gpu_busy_s: float | None
    decode_cpu_s: float
    n_decoded: int
    remarks: tuple[str, ...]


Message = Head | Note | Pools | Encoded


def _lead(order: Order, files: Mapping[int, int]) -> Iterator[Message]:
    from obygaze_features.extraction.pipeline import lead  # noqa: PLC0415 - Ray, in the child alone

    yield from lead(order, files)


@contextmanager
def led(order: Order, stopped: Callable[[], bool]) -> Iterator[Iterator[Message]]:
    """Start the child; give its messages until all clips have come back or the run is stopped.

    The child is killed at the end: a cluster that it started, and its work on another one, end with it.
    """
    read, write = os.pipe()
    with tempfile.TemporaryFile() as printed:
        try:
            with WorkerPool(1, _lead) as pool, _Watch() as watch:
                pool.put("run", order, float("inf"), {0: printed.fileno(), 1: read})
                yield _messages(order, _Child(pool, watch, printed, write), stopped)
        finally:
            os.close(read)
            os.close(write)


@dataclass(frozen=True, slots=True)
class _Child:
    """The child, the watch on the head that it works with, what Ray prints, and the pipe of `lead`."""

    pool: WorkerPool
    watch: "_Watch"
    printed: IO[bytes]
    pipe: int

    def event(self, where: str, left: str) -> Event | None:
        """Wait a moment for the next event.

        Raises
        ------
        ExtractError
            If the head of the cluster at `where` does not answer any more, whatever the child says of that.
        """
        lost = f"the Ray cluster at {where} was lost: its first node does not answer any more. {left}"
        try:
            event = self.pool.get(POLL_S)
        except Exception as error:
            if self.watch.answers():
                raise
            raise ExtractError(lost) from error
        if self.watch.lost() or (event and event.kind == "died" and not self.watch.answers()):
            raise ExtractError(lost)
        return event

    def end(self, how: str) -> str:
        """Describe how the child ended, with the last line that Ray printed."""
        text = os.pread(self.printed.fileno(), 1 << 20, 0).decode(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return f"{how}: {clipped(lines[-1])}" if lines else how


def _messages(order: Order, child: _Child, stopped: Callable[[], bool]) -> Iterator[Message]:
    where, waiting = order.address or "this machine", len(order.tasks)
    left = "{} clips are left; the same command goes on"
    deadline = float("inf")
    os.write(child.pipe, b"." * AHEAD)
    while not stopped():
        event = child.event(where, left.format(waiting)) if waiting else _last(child.pool)
        if not waiting and (event is None or event.kind != "item"):
            return
        if event is None:
            if time.monotonic() > deadline:
                raise ExtractError(
                    f"the Ray cluster at {where} did not let this process in within {JOIN_S:.0f} s; "
                    "`ray status` on its first node shows what it is about"
                )
            continue
        if event.kind != "item":
            raise ExtractError(
                f"the process that led the Ray cluster at {where} ended ({child.end(event.value)}). "
                + left.format(waiting)
            )
        os.write(child.pipe, b".")
        message: Message = event.value
        if isinstance(message, Head):
            # A machine under load may take minutes to start a cluster of its own.
            deadline = time.monotonic() + JOIN_S if order.address and not message.address else float("inf")
            child.watch.begin(message.address)
        elif isinstance(message, Encoded):
            waiting -= len(message.results)
        yield message


def _last(pool: WorkerPool) -> Event | None:
    """Wait until the child has left the cluster; whatever goes wrong there costs nothing any more."""
    with suppress(Exception):
        return pool.get(LEAVE_S)
    return None


class _Watch:
    """Ask the head of the cluster every two seconds, in a thread, whether it still answers."""

    def __init__(self) -> None:
        self._address = ""
        self._lost, self._ended = threading.Event(), threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def begin(self, address: str) -> None:
        """Watch the head at this address; an empty one is not known yet."""
        self._address = address
        if address:
            threading.Thread(target=self._watch, daemon=True).start()

    def lost(self) -> bool:
        """Whether the head has not answered for a while."""
        return self._lost.is_set()

    def answers(self) -> bool:
        """Ask the head now; true if its address is not known."""
        host, _, port = self._address.rpartition(":")
        return not self._address or _obstacle(host, int(port)) is None

    def _watch(self) -> None:
        answered = time.monotonic()
        while not self._ended.wait(2.0):
            if self.answers():
                answered = time.monotonic()
            elif time.monotonic() - answered > LOST_S:
                self._lost.set()
                return


def reach(address: str) -> None:
    """Refuse an address that does not answer; Ray would wait for it forever.

    Raises
    ------
    ExtractError
        If nobody answers there, or the address is one for clients outside of the cluster.
    """
    if address.startswith("ray://"):
        raise ExtractError(
            f"RAY_ADDRESS={address}: this is for clients outside of the cluster. Run this command on a node "
            "of the cluster, with RAY_ADDRESS=HOST:PORT of its first node"
        )
    host, _, port = address.rpartition(":")
    if port.isdecimal() and (obstacle := _obstacle(host, int(port))):
        raise ExtractError(
            f"RAY_ADDRESS={address}: nobody answers there ({obstacle}); is the first node of the Ray cluster "
            "up? Unset RAY_ADDRESS to start one on this machine"
        )


def _obstacle(host: str, port: int) -> str | None:
    try:
        socket.create_connection((host.strip("[]"), port), timeout=ANSWER_S).close()
    except OSError as error:
        return error.strerror or str(error)
    return None
