"""Run a torch network over tokens: batch texts of equal length; halve the batch when out of memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.memory import BatchSize, is_out_of_memory
from obygaze_features.backbones.precision import autocast, products


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
        done = 0
        with _one_thread():
            while done < len(tokens):
                part = self._attempt(tokens[done : done + self._size.now])
                if part is None:
                    self._size.failed()
                    continue
                self._size.worked()
                parts.append(part)
                done += len(part)
        return np.concatenate(parts)

    def _attempt(self, tokens: NDArray[np.int64]) -> NDArray[np.float32] | None:
        """Encode some texts; None if memory ran out."""
        try:
            with (
                torch.inference_mode(),
                products(tf32=self.compute.tf32),
                autocast(self.compute, self.device),
            ):
                vectors = self.network(torch.tensor(tokens, device=self.device))
            found: NDArray[np.float32] = vectors.float().cpu().numpy()
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            return None
        return found


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
