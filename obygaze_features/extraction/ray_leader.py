"""Start the process that leads a Ray cluster, and yield its messages; however it ends, say why."""

import os
import shutil
import socket
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from obygaze_features.errors import ExtractError
from obygaze_features.extraction.encode import uses_gpu
from obygaze_features.extraction.job import Job
from obygaze_features.extraction.pool import POLL_S
from obygaze_features.extraction.ray_messages import Encoded, Head, Message, Order, Pools, Remark
from obygaze_features.extraction.report import OnCommit, Recording, RunReport
from obygaze_features.io import NO_SUCH_FILE
from obygaze_features.store import ClipResult, Stage
from obygaze_features.store.missing_videos import missing_files
from obygaze_features.store.provenance import clipped
from obygaze_features.workers import Event, Parent, WorkerPool

LONGEST_FOLDER = 40  # Ray's socket paths add up to 60 characters; AF_UNIX allows 107


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
    """Extract some clips into a stage on the Ray cluster at RAY_ADDRESS, or on one started for the run.

    Results arrive in any order; only this process writes to the stage. Every node must have the videos, and
    weights given as files, under the same path.

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
        process finds, a node would compute other features than this process, or the child ends.
    """
    if len(job.recipes) != len(job.backbones):
        raise ExtractError("the engine 'ray' needs a recipe for every backbone")
    report = RunReport(engine="ray")
    with Recording(stage, clip_ids, report, on_commit) as recording:
        if not clip_ids:
            return report
        tasks = [
            replace(
                task, path=task.path and task.path.absolute()
            )  # workers have a working folder of their own
            for task in job.tasks(clip_ids)
        ]
        absent = missing_files(task.path for task in tasks if task.path)
        here = [task for task in tasks if task.path not in absent]
        recording.commit(
            [ClipResult(task.clip_id, "failed", NO_SUCH_FILE) for task in tasks if task.path in absent]
        )
        if not here:
            return report
        address = os.environ.get("RAY_ADDRESS") or None
        if address:
            reach(address)
        with _folder(address) as folder:
            order = Order(
                job=job.without_backbones(),
                tasks=here,
                provenance={group.name: group.provenance for group in job.groups()},
                on_gpu=any(uses_gpu(backbone) for backbone in job.backbones),
                address=address,
                folder=folder,
                workers=workers,
                batch_size=batch_size,
                timeout_s=timeout_s,
            )
            with led(order, stopped) as messages:
                for message in messages:
                    if isinstance(message, Remark):
                        note(message.text)
                    elif isinstance(message, Pools):
                        report.encoders = message.encoders
                    elif isinstance(message, Encoded):
                        _count(message, report)
                        report.waited_s = max(recording.elapsed_s() * report.encoders - report.infer_s, 0.0)
                        recording.commit(message.results)
    return report


def _count(encoded: Encoded, report: RunReport) -> None:
    report.infer_s += encoded.infer_s
    report.decode_cpu_s += encoded.decode_cpu_s
    report.n_decoded += encoded.n_decoded
    report.remarks.update(encoded.remarks)
    if encoded.gpu_busy_s is not None:
        report.gpu_busy_s = (report.gpu_busy_s or 0.0) + encoded.gpu_busy_s


@contextmanager
def _folder(address: str | None) -> Iterator[str | None]:
    """Make the folder of a cluster that is started for the run, and remove it afterwards."""
    if address:
        yield None
        return
    temporary = tempfile.gettempdir()
    short = temporary if len(temporary) <= LONGEST_FOLDER else "/tmp"  # noqa: S108 - private folder in it
    folder = Path(tempfile.mkdtemp(prefix="oby", dir=short))
    try:
        yield str(folder)
    finally:
        for _ in range(50):  # Ray's processes end soon after their leader, and write until then
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
            time.sleep(0.1)


ANSWER_S = 10.0  # until the head accepts a connection
JOIN_S = 50.0  # until the child has joined; every failure is reported within a minute
LEAVE_S = 15.0
LOST_S = 15.0  # without an answer; after 60 s Ray would end the child
RUN = "run"


def _lead(task: tuple[Order, Path], parent: Parent) -> None:
    from obygaze_features.extraction.ray_pipeline import lead  # noqa: PLC0415 - Ray, in the child alone

    lead(*task, parent)


@contextmanager
def led(order: Order, stopped: Callable[[], bool]) -> Iterator[Iterator[Message]]:
    """Start the child; give its messages until all clips have come back or the run is stopped.

    The child is killed at the end: a cluster that it started, and its work on another one, end with it.
    """
    with (
        tempfile.NamedTemporaryFile(prefix="obygaze-") as printed,
        WorkerPool(1, _lead) as pool,
        _Watch() as watch,
    ):
        pool.put(RUN, (order, Path(printed.name)))
        yield _messages(order, _Child(pool, watch, Path(printed.name)), stopped)


@dataclass(frozen=True, slots=True)
class _Child:
    """The child, the watch on the head that it works with, and what Ray prints."""

    pool: WorkerPool
    watch: "_Watch"
    printed: Path

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
        text = self.printed.read_text(encoding="utf-8", errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return f"{how}: {clipped(lines[-1])}" if lines else how


def _messages(order: Order, child: _Child, stopped: Callable[[], bool]) -> Iterator[Message]:
    where, waiting = order.address or "this machine", len(order.tasks)
    left = "{} clips are left; the same command goes on"
    deadline = float("inf")
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
        child.pool.tell(RUN, "taken")
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
