"""Overlap upload, computation and download on a GPU with three CUDA streams and reused pinned memory.

Copies from pageable memory block the host, and pinning memory for each copy costs more than the copy. Two
slots per network are enough: the host fills one while the GPU works on the other.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from obygaze_features.backbones.backbone import Output
from obygaze_features.backbones.compute import is_out_of_memory

DTYPES = {"float32": torch.float32, "float16": torch.float16}
SLOTS = 2
CUDA: Any = torch.cuda  # partly untyped

Arrays = dict[str, NDArray[Any]]
Clips = Sequence[NDArray[np.uint8]] | NDArray[np.uint8]
Forward = Callable[[torch.Tensor], dict[str, torch.Tensor]]


class PinnedSlot:
    """Pinned memory for the clips of one call and for its results."""

    def __init__(self, at_once: int, shape: tuple[int, ...], outputs: Sequence[Output]) -> None:
        self.at_once = at_once
        self.clips = torch.empty((at_once, *shape), dtype=torch.uint8).pin_memory()
        self.arrays = {
            output.name: torch.empty((at_once, *output.shape), dtype=DTYPES[output.dtype]).pin_memory()
            for output in outputs
        }
        self.finite = torch.empty(at_once, dtype=torch.bool).pin_memory()


class Call:
    """One call of the network, in progress on the GPU or done.

    Attributes
    ----------
    clips
        Number of requested clips in the call; the rest is padding.
    at_once
        Clips in the call.
    busy_s
        Seconds that the GPU worked on it, known once it is done.
    slot
        The memory of its clips and results, until they are taken.

    Parameters
    ----------
    events
        Computation began, computation ended, results arrived.
    """

    def __init__(self, slot: PinnedSlot, clips: int, events: tuple[Any, Any, Any]) -> None:
        self.clips = clips
        self.at_once = slot.at_once
        self.busy_s = 0.0
        self.slot = slot
        self._events = events
        self._taken: tuple[Arrays, NDArray[np.bool_]] | NDArray[np.uint8] | None = None

    def take(self) -> tuple[Arrays, NDArray[np.bool_]] | NDArray[np.uint8]:
        """Wait for the results and copy them out of the slot, which frees the slot.

        Returns
        -------
        tuple
            The arrays, [clips, ...] each, and whether all values of a clip are finite, [clips]. If the GPU
            ran out of memory, which may be reported only here: the clips, to be computed again.
        """
        if self._taken is None:
            began, ended, arrived = self._events
            try:
                arrived.synchronize()
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
                self._taken = self.slot.clips[: self.clips].numpy().copy()
            else:
                self.busy_s = began.elapsed_time(ended) / 1e3
                arrays = {
                    name: values[: self.clips].numpy().copy() for name, values in self.slot.arrays.items()
                }
                self._taken = arrays, self.slot.finite[: self.clips].numpy().copy()
        return self._taken


class CardQueue:
    """The streams and slots of one network on one GPU."""

    def __init__(self, device: torch.device, shape: tuple[int, ...], outputs: Sequence[Output]) -> None:
        self.device = device
        self.shape = shape
        self.outputs = outputs
        self._up, self._down = CUDA.Stream(device), CUDA.Stream(device)
        self._free: list[PinnedSlot] = []
        self._waiting: deque[Call] = deque()

    def put(self, clips: Clips, at_once: int, forward: Forward) -> Call:
        """Queue one call of the network on clips, padded to `at_once` with the last clip.

        This does not wait. A fixed shape selects the same kernels in every call, so a clip gets the same
        bytes in any batch.
        """
        slot = self._slot(at_once)
        try:
            call = Call(slot, len(clips), self._queue(slot, clips, forward))
        except BaseException:
            # Copies from and to the slot may be in progress: it is reused only after they have ended.
            CUDA.synchronize(self.device)
            self._free.append(slot)
            raise
        self._waiting.append(call)
        return call

    def _queue(self, slot: PinnedSlot, clips: Clips, forward: Forward) -> tuple[Any, Any, Any]:
        target = slot.clips.numpy()
        for index, clip in enumerate(clips):
            target[index] = clip
        target[len(clips) :] = target[len(clips) - 1]
        compute = CUDA.current_stream(self.device)
        with CUDA.stream(self._up):
            pixels = slot.clips.to(self.device, non_blocking=True)
        compute.wait_stream(self._up)
        pixels.record_stream(compute)
        began, ended, arrived = (
            CUDA.Event(enable_timing=True),
            CUDA.Event(enable_timing=True),
            CUDA.Event(blocking=True),  # waiting does not occupy a core
        )
        began.record(compute)
        results = forward(pixels)
        flags = [result.flatten(1).isfinite().all(dim=1) for result in results.values()]
        finite = torch.stack(flags).all(dim=0)
        ended.record(compute)
        self._down.wait_stream(compute)
        with CUDA.stream(self._down):
            there = [(slot.finite, finite), *((slot.arrays[name], value) for name, value in results.items())]
            for here, value in there:
                here.copy_(value, non_blocking=True)
                value.record_stream(self._down)
            arrived.record(self._down)
        return began, ended, arrived

    def drain(self) -> None:
        """Wait for all calls in progress, so that their GPU memory is free."""
        while self._waiting:
            self._take_oldest()

    def _slot(self, at_once: int) -> PinnedSlot:
        if len(self._waiting) == SLOTS:
            self._take_oldest()
        self._free = [slot for slot in self._free if slot.at_once == at_once]
        return self._free.pop() if self._free else PinnedSlot(at_once, self.shape, self.outputs)

    def _take_oldest(self) -> None:
        self._waiting[0].take()
        self._free.append(self._waiting.popleft().slot)
