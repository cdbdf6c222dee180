"""Define what runs on the nodes of a Ray cluster: tasks that decode, and encoders that hold the networks."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from obygaze_features.errors import ExtractError, ObygazeError
from obygaze_features.extraction.decode_clips import DecodedClip, DecodeTask, group_into_passes
from obygaze_features.extraction.decoders import decoder_record
from obygaze_features.extraction.loop import DecodeAll
from obygaze_features.extraction.pool import POLL_S, DecodePool
from obygaze_features.extraction.ray_cluster import ray
from obygaze_features.extraction.report import RunReport
from obygaze_features.extraction.schedule import LoopWorker, describe_differences
from obygaze_features.machine import host_name
from obygaze_features.store import ClipResult
from obygaze_features.store.missing_videos import failed_for_absent_video, missing_files

KEPT_CLIPS = 2
"""Clips of a decode task that wait to be taken; it then decodes no further."""


class NodeError(ExtractError):
    """Reason why a node cannot work.

    A node returns it instead of raising it, because Ray adds a page of traceback to what is raised.

    Parameters
    ----------
    reason
        What is wrong, beginning with the node; of a missing video: "node N does not find PATH".
    path
        The video that the node lacks; None if something else is wrong.
    """

    def __init__(self, reason: str, path: Path | None = None) -> None:
        """Keep the reason and the missing video."""
        super().__init__(reason, path)  # pickling calls this method again with what is passed here
        self.reason = reason
        self.path = path

    def error(self) -> ExtractError:
        """Return the error to show to the user; it is called on the machine that leads the run.

        A video that the node lacks is looked for on this machine: either it is gone everywhere, or the node
        does not have its file system.
        """
        if self.path is None:
            return ExtractError(self.reason)
        if missing_files([self.path]):
            return ExtractError(
                f"{self.path} was there when the run began and is not any more: {self.reason}"
            )
        return ExtractError(
            f"{self.reason}, and {host_name()}, which leads the run, does: mount it on every node, or leave "
            "that node out. The same command goes on"
        )


class RayEncoder:
    """Ray actor that encodes and writes clips on a node.

    Parameters
    ----------
    worker
        Encodes decoded clips with the networks of the backbones, and writes their features.
    marker
        File in the stage that the main process has just made. A node that does not see it does not share the
        main process's file system.
    decode
        Function that decodes the clips of a list of tasks, in other processes of the cluster.
    """

    def __init__(self, worker: LoopWorker, marker: Path, decode: DecodeAll) -> None:
        """Store the three parts that this actor joins, and start nothing: `begin` builds the networks.

        Ray makes the actor on another machine. What fails there is to be returned by `begin`, as a sentence
        that names the node; raised here, it would come with a page of Ray's traceback.
        """
        self.worker = worker
        self.marker = marker
        self.decode = decode

    def begin(self) -> NodeError | None:
        """Build the networks and open the unfinished store on this node; return why that failed, or None."""
        if not self.marker.exists():
            return NodeError(
                f"node {_node()} does not see {self.marker.parent}, which all nodes write to: put it on a "
                "file system that they share, or leave that node out. The same command goes on"
            )
        try:
            self.worker.begin()
        except ObygazeError as error:
            return NodeError(f"node {_node()}: {error}")
        return None

    def do(self, clip_ids: Sequence[str]) -> Iterator[tuple[RunReport, list[ClipResult]] | NodeError]:
        """Extract clips into the unfinished store; yield reports so far, each with the new results.

        An error is yielded as the last item, as a NodeError, because Ray adds a page of traceback to what is
        raised.
        """
        try:
            yield from self.worker.do(clip_ids, self.decode)
        except NodeError as error:
            yield error
        except ObygazeError as error:
            yield NodeError(f"node {_node()}: {error}")

    def stop(self) -> None:
        """Finish the current clips and start no others."""
        self.worker.stop()


class DecodeSettings(NamedTuple):
    """Settings of the tasks that decode.

    Attributes
    ----------
    timeout_s
        Time limit for decoding one clip, in seconds.
    decoder
        Name of the decoder.
    decoder_record
        Its record in the main process, which that of every node must equal.
    """

    timeout_s: float
    decoder: str
    decoder_record: Mapping[str, Any]


def decode_by_ray(
    tasks: Sequence[DecodeTask],
    stopped: Callable[[], bool],
    *,
    workers: int,
    settings: DecodeSettings,
) -> Iterator[DecodedClip]:
    """Decode clips on the nodes of a Ray cluster, in tasks of one core each; yield them as they finish.

    Clips of one file are decoded together, in one task.

    Parameters
    ----------
    tasks
        The clips.
    stopped
        Polled regularly; once true, nothing more is yielded.
    workers
        Most Ray tasks at once.
    settings
        Settings of the Ray tasks.

    Raises
    ------
    NodeError
        A node cannot decode.
    """
    decode_remotely: Any = ray.remote(
        num_cpus=1,
        max_retries=-1,  # a task that is lost with its node is done again on another one, without limit
    )(decode_pass).options(
        num_returns="streaming",
        _generator_backpressure_num_objects=KEPT_CLIPS,  # a task waits while so many clips were not taken
    )
    # A pass is a list of clips of one file, for one Ray task.
    waiting_passes = deque(group_into_passes(tasks, workers))
    # Stream of results of a running Ray task -> its clips that have not come yet, by id.
    missing_of_stream: dict[Any, dict[str, DecodeTask]] = {}
    while not stopped():
        # Start as many Ray tasks as may run at once.
        while waiting_passes and len(missing_of_stream) < workers:
            pass_tasks = waiting_passes.popleft()
            stream = decode_remotely.remote(pass_tasks, settings)
            missing_of_stream[stream] = {task.clip_id: task for task in pass_tasks}
        if not missing_of_stream:
            return

        # Take the next clip of each Ray task that has one.
        ready_streams: list[Any]
        ready_streams, _ = ray.wait(list(missing_of_stream), timeout=POLL_S)
        for stream in ready_streams:
            missing_tasks = missing_of_stream[stream]
            clip = _next_of(stream)  # None: the task has ended
            if isinstance(clip, NodeError):
                raise clip
            # When Ray does a task again on another node, its clips may come in another order, and the stream
            # goes on where it was: some clips come twice, others not at all.
            if clip is None:
                del missing_of_stream[stream]
                if missing_tasks:  # clips that did not come are decoded in a new task
                    waiting_passes.append(list(missing_tasks.values()))
                continue
            has_come_before = clip.clip_id not in missing_tasks
            if not has_come_before:
                del missing_tasks[clip.clip_id]
                yield clip


def _next_of(stream: Any) -> Any:
    """Wait for the next result of a streaming Ray task and return it; None if the task has ended."""
    reference = next(iter(stream), None)
    return None if reference is None else ray.get(reference)


def decode_pass(tasks: Sequence[DecodeTask], settings: DecodeSettings) -> Iterator[DecodedClip | NodeError]:
    """Decode clips of one file on a node of a Ray cluster, in a child process that can be killed.

    Yields each clip. Where the node cannot decode them, an error is yielded and not raised, because Ray adds
    a page of traceback to what is raised. There are two such cases. The node's decoder is of another version
    than that of the main process, and may give other pictures. Or the node does not find a video; since the
    main process has found all videos of the tasks before, that is a fault of the node and not of the clip.

    Parameters
    ----------
    tasks
        The clips.
    settings
        The decoder, with its record on the main process (name and versions), and the time limit of a clip.
    """
    record_here = decoder_record(settings.decoder)
    differences = describe_differences(record_here, settings.decoder_record)
    if differences:
        yield NodeError(
            f"node {_node()} has another decoder than the main process: {differences}; give every node "
            "the same installation"
        )
        return

    for clip in _pool(settings.timeout_s, settings.decoder).decode(tasks):
        if failed_for_absent_video(clip):
            path_of_clip = {task.clip_id: task.path for task in tasks}
            path = path_of_clip[clip.clip_id]
            yield NodeError(f"node {_node()} does not find {path}", path)
        else:
            yield clip


@cache
def _pool(timeout_s: float, decoder: str) -> DecodePool:
    """Return a pool of one child process that decodes; later tasks with equal settings use it again.

    A clip may take `timeout_s` seconds.
    """
    return DecodePool(workers=1, timeout_s=timeout_s, decoder=decoder)


def _node() -> str:
    """Return the host name and address of this node of the Ray cluster, for messages."""
    return f"{host_name()} ({ray.util.get_node_ip_address()})"  # type: ignore[no-untyped-call]  # untyped in Ray
