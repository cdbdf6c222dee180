"""Define the messages between the process that writes the stage and the one that leads a Ray cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from obygaze_features.extraction.decode import DecodeTask
from obygaze_features.extraction.job import Job
from obygaze_features.store import ClipResult


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
class Remark:
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


Message = Head | Remark | Pools | Encoded
