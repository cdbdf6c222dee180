"""Run a torch network over uint8 clips or over tokens, with smaller batches if memory is short."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from obygaze_features.backbones.backbone import Output
from obygaze_features.backbones.card_queue import DTYPES, Arrays, Call, CardQueue, Clips
from obygaze_features.backbones.compute import (
    BatchSize,
    Compute,
    card_of,
    card_record,
    inference,
    is_out_of_memory,
)
from obygaze_features.backbones.presets import Affine
from obygaze_features.errors import BackboneError, first_line


@dataclass(frozen=True, slots=True)
class EncodedClips:
    """The results of some clips.

    Parameters
    ----------
    arrays
        Name -> `[B, ...]`, in the data types of the store.
    finite
        Whether all values of a clip are finite, `[B]`.
    at_once
        Number of clips per call for each clip, `[B]`: smaller than requested if memory was short.
    """

    arrays: Arrays
    finite: NDArray[np.bool_]
    at_once: NDArray[np.int64]


class Runner:
    """A backbone's `encode`: uint8 `[B, F, h, w, 3]` to one array per name, in the data types of the store.

    Every call of the network has the same number of clips (the last is padded), so a clip gets the same bytes
    in any batch. Results differ from those of single clips by at most 1e-5 of the largest value (float32).

    `start` queues clips on a card and returns at once; a call of the object waits. On a CPU both compute. The
    network is moved to its device by the first of them, or by `warm_up`.

    Parameters
    ----------
    network
        Takes float `[B, F, 3, h, w]` and gives a tensor `[B, ...]` for every output.
    affine
        The normalisation, done on the device.
    outputs
        What the network gives, with the shapes of one clip; checked at every call.
    size
        Height and width of the frames.

    Attributes
    ----------
    busy_s
        Seconds that the device had work.
    """

    def __init__(
        self,
        name: str,
        network: nn.Module,
        affine: Affine,
        outputs: tuple[Output, ...],
        *,
        n_frames: int,
        size: int,
        compute: Compute,
    ) -> None:
        self.name = name
        self.shape = (n_frames, size, size, 3)
        self.outputs = outputs
        self.compute = compute
        self.device = compute.torch_device()
        self.busy_s = 0.0
        self._size = BatchSize(name, compute.first_size(), "clip", self.device)
        self._dtype = torch.bfloat16 if compute.precision == "bfloat16-weights" else torch.float32
        self._affine = affine
        self.network: Any = network.eval()
        self._scale: Any = None
        self._shift: Any = None
        self._queue: CardQueue | None = None

    @property
    def clips_at_once(self) -> int:
        """Clips in every call of the network at present."""
        return self._size.now

    @property
    def card(self) -> str:
        """Model of the card; `cpu` without one."""
        return card_of(self.device)

    def card_record(self) -> dict[str, Any]:
        """Describe the card and its peak memory so far."""
        return card_record(self.device)

    def __call__(self, batch: NDArray[np.uint8]) -> Arrays:
        """Encode clips, uint8 `[B, F, h, w, 3]`.

        Raises
        ------
        BackboneError
            If the frames are of another number, size or type, or not even one clip fits in the memory.
        """
        return self.start(batch).result().arrays

    def warm_up(self) -> None:
        """Move the network to its device and call it once, to exclude one-time costs from timings.

        Libraries, kernels and workspaces are loaded, a network is compiled; too little memory shows before
        anything is decoded.

        Raises
        ------
        BackboneError
            If not even one clip fits in the memory, or the network cannot be compiled.
        """
        before = self.busy_s
        try:
            self(np.zeros((1, *self.shape), np.uint8))
        except RuntimeError as error:  # such as: no C compiler
            if not self.compute.compiled:
                raise
            reason = first_line(error)
            raise BackboneError(
                f"backbone '{self.name}': torch.compile failed ({reason}); it needs a C compiler and "
                "Python's headers, or leave out --compile"
            ) from error
        self.busy_s = before

    def start(self, clips: Clips) -> "Pending":
        """Start encoding clips, uint8 `[F, h, w, 3]` each; they may be overwritten after the return.

        Raises
        ------
        BackboneError
            As a call of the object.
        """
        self._check(clips)
        calls = []
        n_queued = 0
        while n_queued < len(clips):
            some = clips[n_queued : n_queued + self._size.now]
            if (call := self._attempt(some)) is not None:
                calls.append(call)
                n_queued += len(some)
        return Pending(self, calls)

    def _check(self, clips: Clips) -> None:
        wrong = [clip for clip in clips if clip.dtype != np.uint8 or clip.shape != self.shape]
        if wrong or len(clips) == 0:
            description = f"found {wrong[0].dtype} {list(wrong[0].shape)}" if wrong else "found none"
            raise BackboneError(
                f"backbone '{self.name}' takes clips of uint8 {list(self.shape)} (frames, height, width, 3); "
                f"{description}"
            )

    def _load(self) -> None:
        """Move the network to its device, once."""
        if self._scale is not None:
            return
        network = self.network.to(self.device)
        if self._dtype != torch.float32:
            network = network.to(self._dtype)
        channels = (1, 1, 3, 1, 1)
        scale, shift = (
            torch.tensor(values, dtype=torch.float64).float().reshape(channels).to(self.device)
            for values in (self._affine.scale, self._affine.shift)
        )
        if self.device.type == "cuda":
            self._queue = CardQueue(self.device, self.shape, self.outputs)
        self.network = torch.compile(network, dynamic=False) if self.compute.compiled else network
        self._scale, self._shift = scale, shift

    def _attempt(self, clips: Clips) -> Call | EncodedClips | None:
        """Call the network once; None if memory ran out, with everything freed that was held."""
        try:
            self._load()
            if self._queue is not None:
                return self._queue.put(clips, self._size.now, self._forward)
            return self._compute(clips, self._size.now)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
        # Outside the handler, since its traceback keeps the tensors alive.
        self.lost()
        return None

    def _compute(self, clips: Clips, at_once: int) -> EncodedClips:
        """Call the network on a CPU."""
        began = time.perf_counter()
        filled = np.stack([*clips, *[clips[-1]] * (at_once - len(clips))]) if at_once > 1 else clips[0][None]
        filled = np.require(filled, requirements=["C", "W"])  # torch warns of read-only arrays
        results = self._forward(torch.from_numpy(filled))
        arrays = {name: result[: len(clips)].numpy() for name, result in results.items()}
        finite = [np.isfinite(values).reshape(len(clips), -1).all(axis=1) for values in arrays.values()]
        self.busy_s += time.perf_counter() - began
        self._size.worked()
        return EncodedClips(arrays, np.all(finite, axis=0), np.full(len(clips), at_once))

    def _forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        with inference(self.compute, self.device):
            frames = pixels.permute(0, 1, 4, 2, 3).to(torch.float32, memory_format=torch.contiguous_format)
            frames = frames.mul_(self._scale).add_(self._shift)
            results = self.network(frames.to(self._dtype))
            return {output.name: self._checked(output, results) for output in self.outputs}

    def _checked(self, output: Output, results: Mapping[str, torch.Tensor]) -> torch.Tensor:
        if output.name not in results:
            raise BackboneError(
                f"backbone '{self.name}' announced '{output.name}' and gave {', '.join(results) or 'nothing'}"
            )
        result = results[output.name]
        if tuple(result.shape[1:]) != output.shape:
            raise BackboneError(
                f"backbone '{self.name}' announced '{output.name}' as "
                f"{list(output.shape)} a clip and gave {list(result.shape[1:])}"
            )
        return result.to(DTYPES[output.dtype])  # beyond float16 becomes infinite, which no store takes

    def finish(self, call: Call) -> EncodedClips:
        """Wait for a call on a GPU; if memory ran out, which may be reported only here, compute it again."""
        results = call.take()
        if isinstance(results, np.ndarray):
            self.lost()
            return self.start(results).result()
        self.busy_s += call.busy_s
        self._size.worked()
        return EncodedClips(*results, np.full(call.clips, call.at_once))

    def lost(self) -> None:
        """After a lack of memory, wait for the calls in progress and reduce the batch size."""
        if self._queue is not None:
            self._queue.drain()
        self._size.failed()


class Pending:
    """Clips in progress; `result` waits for them."""

    def __init__(self, runner: Runner, calls: Sequence[Call | EncodedClips]) -> None:
        self._runner = runner
        self._calls = calls

    def result(self) -> EncodedClips:
        """Wait for the results; call it only once."""
        parts = [self._runner.finish(call) if isinstance(call, Call) else call for call in self._calls]
        if len(parts) == 1:
            return parts[0]
        return EncodedClips(
            {name: np.concatenate([part.arrays[name] for part in parts]) for name in parts[0].arrays},
            np.concatenate([part.finite for part in parts]),
            np.concatenate([part.at_once for part in parts]),
        )


class TextRunner:
    """A text backbone's `encode`: tokens of one length, int64 `[B, L]`, to float32 `[B, D]`.

    On a CPU texts go through one at a time and on one thread, so a text gets the same bytes in any batch and
    on any number of cores; short texts gain nothing from more threads. Several at once, as on a GPU, agree
    within 1e-5 of the largest value in float32.

    Parameters
    ----------
    network
        Takes int64 `[B, L]` and gives `[B, D]`.
    """

    def __init__(self, name: str, network: nn.Module, compute: Compute) -> None:
        self.name = name
        self.compute = compute
        self.device = compute.torch_device()
        dtype = torch.bfloat16 if compute.precision == "bfloat16-weights" else None
        self.network: Any = network.to(device=self.device, dtype=dtype).eval()
        self._size = BatchSize(name, compute.first_size(), "text", self.device)

    def __call__(self, tokens: NDArray[np.int64]) -> NDArray[np.float32]:
        """Encode texts.

        Raises
        ------
        BackboneError
            If not even one text fits in the memory.
        """
        parts: list[NDArray[np.float32]] = []
        n_encoded = 0
        with _one_thread():
            while n_encoded < len(tokens):
                part = self._attempt(tokens[n_encoded : n_encoded + self._size.now])
                if part is None:
                    self._size.failed()
                    continue
                self._size.worked()
                parts.append(part)
                n_encoded += len(part)
        return np.concatenate(parts)

    def _attempt(self, tokens: NDArray[np.int64]) -> NDArray[np.float32] | None:
        """Encode some texts; None if memory ran out."""
        try:
            with inference(self.compute, self.device):
                vectors = self.network(torch.tensor(tokens, device=self.device))
            encoded: NDArray[np.float32] = vectors.float().cpu().numpy()
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            return None
        return encoded


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
