"""Run a torch network over tokens: batch texts of equal length; halve the batch when out of memory."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.runner import autocast, products
from obygaze_features.errors import BackboneError


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
        self.network: Any = network.to(self.device).eval()
        on_cpu = self.device.type == "cpu"
        self.texts_at_once = compute.clips_at_once or (1 if on_cpu else None)

    def __call__(self, tokens: NDArray[np.int64]) -> NDArray[np.float32]:
        """Encode texts.

        Raises
        ------
        BackboneError
            If not even one text fits in the memory.
        """
        parts: list[NDArray[np.float32]] = []
        done = 0
        with _one_thread():
            while done < len(tokens):
                size = self.texts_at_once or len(tokens)
                part = None
                with suppress(torch.OutOfMemoryError):
                    part = self._encode(tokens[done : done + size])
                if part is None:
                    self._halve(size)
                    continue
                parts.append(part)
                done += len(part)
        return np.concatenate(parts)

    def _encode(self, tokens: NDArray[np.int64]) -> NDArray[np.float32]:
        with torch.inference_mode(), products(tf32=self.compute.tf32), autocast(self.compute, self.device):
            vectors = self.network(torch.tensor(tokens, device=self.device))
        found: NDArray[np.float32] = vectors.float().cpu().numpy()
        return found

    def _halve(self, size: int) -> None:
        if size == 1:
            raise BackboneError(
                f"backbone '{self.name}': one text does not fit in the memory of {self.device}"
            )
        self.texts_at_once = size // 2
        torch.cuda.empty_cache()


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
