"""Define the value objects `Backbone` and `Output`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Output:
    """One array that a backbone computes per clip.

    Parameters
    ----------
    name
        `frames` (one vector per sampled frame), `tokens` (everything) or `pooled` (one vector per clip).
    shape
        Of one clip: `(F, D)`, `(T, D)` or `(D,)`.
    dtype
        Data type of the backbone's array and of the store.
    """

    name: str
    shape: tuple[int, ...]
    dtype: Literal["float32", "float16"] = "float32"


@dataclass(frozen=True)
class Backbone:
    """A frozen network or descriptor that turns sampled frames into tokens.

    Parameters
    ----------
    name
        Name of the group in the store.
    n_frames
        Number of frames per clip.
    prepare
        Turns one full-size RGB frame, uint8 `[H, W, 3]`, into what `encode` takes, uint8 `[h, w, c]`. It runs
        in the decode workers, so it must be importable by name.
    encode
        Turns a batch of prepared clips, uint8 `[B, F, h, w, c]`, into one array `[B, ...]` per output. The
        result of a clip must not depend on the other clips of the batch.
    outputs
        The arrays that `encode` returns.
    provenance
        Everything needed to reproduce the numbers: head, layer, hub, architecture, preset, compute.
    libraries
        Distributions besides numpy whose versions affect the numbers.
    encode_in_worker
        Run `encode` in the worker that decoded the clip, one clip at a time, so that only results are sent
        between processes: for backbones without weights and device. `encode` must then be importable by
        name, like `prepare`.

    Examples
    --------
    >>> import numpy as np
    >>> from obygaze_features.backbones import Backbone, Output
    >>> def mean_colour(batch):
    ...     return {"pooled": batch.mean(axis=(1, 2, 3), dtype=np.float32)}
    >>> backbone = Backbone("colour", 4, np.array, mean_colour, (Output("pooled", (3,)),), {"head": None})
    >>> backbone.encode(np.zeros((1, 4, 16, 16, 3), dtype=np.uint8))["pooled"]
    array([[0., 0., 0.]], dtype=float32)
    """

    name: str
    n_frames: int
    prepare: Callable[[NDArray[np.uint8]], NDArray[np.uint8]]
    encode: Callable[[NDArray[np.uint8]], dict[str, NDArray[Any]]]
    outputs: tuple[Output, ...]
    provenance: Mapping[str, Any]
    libraries: tuple[str, ...] = ()
    encode_in_worker: bool = False
