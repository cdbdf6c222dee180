"""Define the messages between the process that leads a run on a Ray cluster and its child that drives it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from obygaze_features.extraction.schedule import LoopWorker

RUN, STOP = "run", "stop"


@dataclass(frozen=True, slots=True)
class Order:
    """Everything that the child needs to drive a cluster.

    Parameters
    ----------
    worker
        Encodes and writes clips on a node of the cluster.
    marker
        File in the stage that the main process has just made; a node that does not see it is refused.
    backbones
        Names of the backbones.
    decoder
        Name of the decoder.
    on_gpu
        Whether the backbones use a GPU here.
    address
        Address of the cluster; None starts one in `folder`.
    folder
        Folder for the sockets and logs of a cluster that is started here.
    workers
        Cores that decode; None uses all.
    timeout_s
        Time limit for decoding one clip, in seconds.
    """

    worker: LoopWorker
    marker: Path
    backbones: Sequence[str]
    decoder: str
    on_gpu: bool
    address: str | None
    folder: str | None
    workers: int | None
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Head:
    """Message of the child: the address of the cluster's head, its first node; empty when it begins to join.

    Its other messages are notes for the user, the number of encoders once they take shares, and events.
    """

    address: str
