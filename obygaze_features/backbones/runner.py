"""Run a torch network over uint8 clips: upload, normalise, forward; halve the batch when out of memory."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from obygaze_features.backbones.backbone import Output
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.presets import Affine
from obygaze_features.errors import BackboneError

DTYPES = {"float32": torch.float32, "float16": torch.float16}
CUDA: Any = torch.cuda  # parts of it have no types
AUTOCAST = {"bfloat16": torch.bfloat16, "float16": torch.float16}


class Runner:
    """A backbone's `encode`: uint8 `[B, F, h, w, 3]` to one array per name, in the data types of the store.

    On CUDA the next clips are uploaded from pinned memory on a stream of their own while the network works on
    the ones before. What a clip gets depends on how many clips go together only as far as the matrix library
    does: not at all on a CPU with one at a time, else within 1e-5 of the largest value in float32.

    Its `busy_s` adds up the seconds that the device computed.

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
        self.clips_at_once = compute.first_size()
        self.busy_s = 0.0
        network = network.to(self.device).eval()
        self.network: Any = torch.compile(network) if compute.compiled else network
        channels = (1, 1, 3, 1, 1)
        self._scale = (
            torch.tensor(affine.scale, dtype=torch.float64).float().reshape(channels).to(self.device)
        )
        self._shift = (
            torch.tensor(affine.shift, dtype=torch.float64).float().reshape(channels).to(self.device)
        )
        self._uploads = CUDA.Stream(self.device) if self.device.type == "cuda" else None

    def __call__(self, batch: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
        """Encode clips, uint8 `[B, F, h, w, 3]`.

        Raises
        ------
        BackboneError
            If the frames are of another number, size or type, or not even one clip fits in the memory.
        """
        if batch.dtype != np.uint8 or batch.shape[1:] != self.shape or len(batch) == 0:
            raise BackboneError(
                f"backbone '{self.name}' takes clips of uint8 {list(self.shape)} (frames, height, width, 3); "
                f"found {batch.dtype} {list(batch.shape[1:])}"
            )
        parts: list[dict[str, NDArray[Any]]] = []
        done = 0
        ahead: torch.Tensor | None = None
        while done < len(batch):
            stop = min(done + self.clips_at_once, len(batch))
            part = None
            try:
                part, ahead = self._encode(ahead, batch[done:stop], batch[stop : stop + self.clips_at_once])
            except torch.OutOfMemoryError:
                ahead = None
            if part is None:  # outside of the handler, whose traceback would keep the tensors alive
                self._halve()
                continue
            parts.append({name: values[: stop - done] for name, values in part.items()})
            done = stop
        return {output.name: np.concatenate([part[output.name] for part in parts]) for output in self.outputs}

    def _encode(
        self, uploaded: torch.Tensor | None, clips: NDArray[np.uint8], following: NDArray[np.uint8]
    ) -> tuple[dict[str, NDArray[Any]], torch.Tensor | None]:
        """Encode clips, perhaps uploaded already, and upload those that follow meanwhile."""
        pixels = self._upload(clips) if uploaded is None else uploaded
        if self._uploads is not None:
            stream = CUDA.current_stream(self.device)
            stream.wait_stream(self._uploads)
            pixels.record_stream(stream)
        began = self._now()
        results = self._forward(pixels)
        ended = self._now()
        ahead = self._upload(following) if len(following) and self._uploads is not None else None
        arrays = {name: result.cpu().numpy() for name, result in results.items()}  # waits for the device
        self.busy_s += ended - began if self._uploads is None else began.elapsed_time(ended) / 1e3
        return arrays, ahead

    def _upload(self, clips: NDArray[np.uint8]) -> torch.Tensor:
        if self.compute.compiled and len(clips) < self.clips_at_once:  # one shape, compiled once
            clips = np.concatenate([clips, np.repeat(clips[-1:], self.clips_at_once - len(clips), axis=0)])
        clips = np.require(clips, requirements=["C", "W"])  # torch warns of arrays that nobody may write
        if self._uploads is None:
            return torch.from_numpy(clips)
        with torch.cuda.stream(self._uploads):
            return torch.from_numpy(clips).pin_memory().to(self.device, non_blocking=True)

    def _forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        with torch.inference_mode(), products(tf32=self.compute.tf32), autocast(self.compute, self.device):
            frames = pixels.permute(0, 1, 4, 2, 3).to(torch.float32, memory_format=torch.contiguous_format)
            results = self.network(frames.mul_(self._scale).add_(self._shift))
            return {output.name: self._checked(output, results) for output in self.outputs}

    def _checked(self, output: Output, results: Mapping[str, torch.Tensor]) -> torch.Tensor:
        result = results[output.name]
        if tuple(result.shape[1:]) != output.shape:
            raise BackboneError(
                f"backbone '{self.name}' announced '{output.name}' as "
                f"{list(output.shape)} a clip and gave {list(result.shape[1:])}"
            )
        return result.to(DTYPES[output.dtype])  # beyond float16 becomes infinite, which no store takes

    def _now(self) -> Any:
        """Read the clock of the device: seconds on a CPU, an event in the stream on CUDA."""
        if self._uploads is None:
            return time.perf_counter()
        event = CUDA.Event(enable_timing=True)
        event.record(CUDA.current_stream(self.device))
        return event

    def _halve(self) -> None:
        if self.clips_at_once == 1:
            raise BackboneError(
                f"backbone '{self.name}': one clip does not fit in the memory of {self.device}"
            )
        self.clips_at_once //= 2
        if self.device.type == "cuda":
            torch.cuda.empty_cache()


def autocast(compute: Compute, device: torch.device) -> Any:
    """Let torch compute in half precision where that was asked for."""
    if compute.precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, AUTOCAST[compute.precision])


@contextmanager
def products(*, tf32: bool) -> Iterator[None]:
    """Decide whether float32 products may drop mantissa bits; torch allows convolutions that by default."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32
    matmul.allow_tf32, cudnn.allow_tf32 = tf32, tf32
    try:
        yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32 = before
