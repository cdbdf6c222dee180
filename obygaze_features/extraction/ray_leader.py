"""Lead a run on a Ray cluster: start the process that drives it, and say why it ended."""

import os
import shutil
import socket
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from obygaze_features.errors import ExtractError
from obygaze_features.extraction.encode import uses_gpu
from obygaze_features.extraction.job import Job
from obygaze_features.extraction.pool import POLL_S
from obygaze_features.extraction.ray_order import RUN, Head, Order
from obygaze_features.extraction.report import Run, RunReport
from obygaze_features.extraction.schedule import LoopWorker, extract_in_processes, write_failed
from obygaze_features.io import NO_SUCH_FILE
from obygaze_features.store import Stage
from obygaze_features.store.missing_videos import missing_files
from obygaze_features.store.provenance import clipped
from obygaze_features.text import counted
from obygaze_features.workers import Event, Parent, WorkerPool

LONGEST_FOLDER = 40
"""Most characters of a folder for Ray's sockets, whose paths add up to 60; AF_UNIX allows 107."""
ANSWER_S = 10.0
"""Seconds within which the head of a cluster must accept a connection."""
JOIN_S = 50.0
"""Seconds within which the child must join a cluster, so that every failure is reported within a minute."""


def run_ray(
    job: Job,
    stage: Stage,
    clip_ids: Sequence[str],
    *,
    workers: int | None,
    batch_size: int,
    timeout_s: float,
    stopped: Callable[[], bool] = lambda: False,
    note: Callable[[str], object] = warnings.warn,
) -> Run:
    """Extract clips on the Ray cluster at RAY_ADDRESS, or on one that is started for the run.

    Every node must have the videos, the stage, and weights given as files, under the same path. Yields the
    report so far, and the results that were written since the last one.

    Parameters
    ----------
    job
        The settings that determine the features.
    stage
        The unfinished store that the features are written to.
    clip_ids
        Clips to extract.
    workers
        Decoders, one core each; None, or a larger number, uses all cores of the cluster.
    batch_size
        Clips encoded together. Features do not depend on it.
    timeout_s
        Time limit for decoding one clip, in seconds.
    stopped
        Polled often; once true, the current clips are finished and the run ends.
    note
        Called with messages for the user during the run: the nodes in use, a wait for cores.

    Raises
    ------
    ExtractError
        If the job has no recipes, no cluster is available, its head is lost, a node lacks the stage or a
        video that this process finds, a node would compute other features than this process, or the process
        that drives the cluster ends.
    """
    worker = LoopWorker(job, stage, batch_size)  # what each encoder of the cluster runs
    report = RunReport(engine="ray")

    # Clips whose video is missing fail here and now. That a node does not find a video which this process
    # finds is an error of the cluster.
    clips = [job.manifest.by_id[clip_id] for clip_id in clip_ids]
    path_of_clip = {clip.clip_id: job.manifest.video_path(clip) for clip in clips}
    absent_files = missing_files(path for path in path_of_clip.values() if path is not None)
    ids_without_file = [clip_id for clip_id, path in path_of_clip.items() if path in absent_files]
    if ids_without_file:
        yield report, write_failed(stage, ids_without_file, NO_SUCH_FILE, report)
    else:
        yield report, []
    ids_to_do = [clip_id for clip_id, path in path_of_clip.items() if path not in absent_files]
    if not ids_to_do:
        return

    # All other clips are extracted on the cluster, which a child process drives.
    address = os.environ.get("RAY_ADDRESS") or None
    if address:
        refuse_unreachable(address)
    # `folder` is for what Ray keeps while it runs. By the marker file a node tells that it sees the stage.
    with _ray_folder() as folder, _marker_file(stage.path.absolute()) as marker:
        order = Order(
            worker=worker,
            marker=marker,
            backbones=[backbone.name for backbone in job.backbones],
            decoder=job.decoder,
            on_gpu=any(uses_gpu(backbone) for backbone in job.backbones),
            address=address,
            folder=None if address else str(folder),
            workers=workers,
            timeout_s=timeout_s,
        )
        with RayCluster(order, folder / "printed", stage, note) as cluster:
            if cluster.join(stopped):
                report.encoders = cluster.workers  # each worker of the cluster holds the backbones
                yield from extract_in_processes(stage, ids_to_do, cluster, report, stopped=stopped)


@contextmanager
def _marker_file(stage: Path) -> Iterator[Path]:
    """Make an empty file in a folder, so that other machines can check that they see the folder.

    The file is removed when the `with` block ends.
    """
    marker = stage / f"run-{uuid.uuid4().hex}"
    marker.touch()
    try:
        yield marker
    finally:
        marker.unlink(missing_ok=True)


@contextmanager
def _ray_folder() -> Iterator[Path]:
    """Make a folder for Ray's output, and for a cluster on this machine; remove it after the `with` block."""
    parent_folder = tempfile.gettempdir()
    if len(parent_folder) > LONGEST_FOLDER:  # the paths of Ray's sockets would be too long
        parent_folder = "/tmp"  # noqa: S108 - a private folder is made in it
    folder = Path(tempfile.mkdtemp(prefix="oby", dir=parent_folder))
    try:
        yield folder
    finally:
        # Ray's processes end some seconds after the one that drives the cluster, and write until then. So the
        # folder is removed again and again, for five seconds at most.
        for _attempt in range(50):
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
            time.sleep(0.1)


def _drive(task: tuple[Order, Path], parent: Parent) -> None:
    """Drive the Ray cluster in a child process, until the process is killed."""
    from obygaze_features.extraction.ray_driver import drive  # noqa: PLC0415 - Ray, in the child alone

    order, log_file = task
    drive(order, log_file, parent)


class RayCluster:
    """A Ray cluster that a child process drives, with the methods of a `WorkerPool`.

    At the end the child is killed: a cluster that it started, and its work on another one, end with it.

    Parameters
    ----------
    order
        What the child needs.
    log_file
        File for what Ray prints.
    stage
        Tells how many clips are left.
    note
        Called with messages for the user.

    Attributes
    ----------
    workers
        Number of encoders, which are the workers of a cluster; 0 before the child has joined.
    """

    def __init__(self, order: Order, log_file: Path, stage: Stage, note: Callable[[str], object]) -> None:
        """Prepare the child process that joins and drives the cluster; it starts with the `with` block."""
        self.workers = 0
        self._order = order
        self._log_file = log_file
        self._stage = stage
        self._note = note
        self._where = order.address or "this machine"
        self._head = ""  # address of the cluster's head, once the child has joined
        self._deadline = float("inf")  # when the child must have joined at the latest (`time.monotonic`)
        self._pool = WorkerPool(workers=1, work=_drive)

    def __enter__(self) -> Self:
        """Start the child process, which joins the cluster."""
        self._pool.put(RUN, (self._order, self._log_file))
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the child process."""
        self._pool.close()

    def join(self, stopped: Callable[[], bool]) -> bool:
        """Wait until the child has joined the cluster; return False if the run was stopped before."""
        while not self.workers and not stopped():
            self.get(POLL_S)  # sets the number of workers when the child sends it
        return self.workers > 0

    def put(self, key: Hashable, task: Any) -> None:
        """Queue an assignment (ids of clips) for the encoders; the events of it will have the key."""
        self._pool.tell(RUN, (key, task))

    def tell(self, _key: Hashable, message: Any) -> None:
        """Send a message, the request to stop, to all encoders: they share one child process.

        The key of an assignment is a parameter because a `WorkerPool` has it, and is not needed here.
        """
        self._pool.tell(RUN, message)

    def get(self, timeout_s: float) -> Event | None:
        """Wait for the next event of the cluster's encoders: a report with results, or an end.

        Returns None after the timeout, or if the child process has sent something else, such as a note.

        Raises
        ------
        ExtractError
            The child did not join the cluster in time or has ended, because the head of the cluster was lost
            or for another reason.
        """
        try:
            event = self._pool.get(timeout_s)
        except Exception as error:
            self._refuse_lost_head(error)  # an error that follows from a lost head is replaced
            raise

        if event is None:
            self._refuse_late_join()
            return None

        is_message = event.kind == "item"
        if is_message:
            return self._take_message(event.value)

        # The child has ended: because the head was lost, or for another reason.
        self._refuse_lost_head()
        how = self._with_last_line(event.value)
        raise ExtractError(
            f"the process that drove the Ray cluster at {self._where} ended ({how}). {self._clips_left()}"
        )

    def _take_message(self, message: Event | Head | str | int) -> Event | None:
        """Handle a message of the process that drives the cluster; return it if it is an encoder's event.

        Parameters
        ----------
        message
            An event of an encoder; a `Head` before and after joining the cluster; a text, which is a note for
            the user; or the number of encoders, when all is ready.
        """
        if isinstance(message, Event):
            return message
        if isinstance(message, Head):
            self._store_head(message)
        elif isinstance(message, str):
            self._note(message)
        else:
            self.workers = message
        return None

    def _store_head(self, head: Head) -> None:
        """Store the address of the cluster's head, and when the child must have joined.

        The child sends this message twice: without an address when it begins to join, and with one when it
        has joined. There is a limit only while it joins an existing cluster: a machine under load may take
        minutes to start one of its own.
        """
        self._head = head.address
        joins_existing_cluster = self._order.address is not None
        has_joined = head.address != ""
        if joins_existing_cluster and not has_joined:
            self._deadline = time.monotonic() + JOIN_S
        else:
            self._deadline = float("inf")

    def _refuse_late_join(self) -> None:
        """Raise an ExtractError if the child must have joined the cluster by now."""
        if time.monotonic() > self._deadline:
            raise ExtractError(
                f"the Ray cluster at {self._where} did not let this process in within {JOIN_S:.0f} s; "
                "`ray status` on its first node shows what it is about"
            )

    def _refuse_lost_head(self, error: Exception | None = None) -> None:
        """Raise an ExtractError if the cluster was joined, and its first node does not answer any more.

        A child process does the work on the cluster. When it has joined, it tells the address of the
        cluster's first node, the head, without which the cluster is lost.

        Parameters
        ----------
        error
            The error that showed it, if any, which becomes the cause.
        """
        has_joined = self._head != ""
        if not has_joined:
            return
        host, _, port = self._head.rpartition(":")
        problem = _why_unreachable(host, int(port))  # empty if the head answers
        if problem:
            raise ExtractError(
                f"the Ray cluster at {self._where} was lost: its first node does not answer any more. "
                + self._clips_left()
            ) from error

    def _clips_left(self) -> str:
        """Return the sentence that ends an error: how many clips are left, and how to continue."""
        return f"{counted(len(self._stage.missing()), 'clip is', 'clips are')} left; the same command goes on"

    def _with_last_line(self, end: str) -> str:
        """Return how the child process ended, with the last line that Ray printed, if any.

        Parameters
        ----------
        end
            How it ended, in words.
        """
        text = self._log_file.read_text(encoding="utf-8", errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if not lines:
            return end
        return f"{end}: {clipped(lines[-1])}"


def refuse_unreachable(address: str) -> None:
    """Raise an ExtractError if no Ray cluster answers at an address, because Ray would wait for it forever.

    Parameters
    ----------
    address
        The value of RAY_ADDRESS: HOST:PORT of the first node of a cluster.

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
    if not port.isdecimal():  # Ray itself refuses it
        return
    reason = _why_unreachable(host, int(port))
    if reason:
        raise ExtractError(
            f"RAY_ADDRESS={address}: nobody answers there ({reason}); is the first node of the Ray cluster "
            "up? Unset RAY_ADDRESS to start one on this machine"
        )


def _why_unreachable(host: str, port: int) -> str | None:
    """Try to connect to an address; return why that fails, or None if a server answers."""
    try:
        socket.create_connection((host.strip("[]"), port), timeout=ANSWER_S).close()
    except OSError as error:
        return error.strerror or str(error)
    return None
