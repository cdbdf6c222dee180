"""Configure how a network runs: device and precision, and their record in the provenance."""

from dataclasses import dataclass
from typing import Any, Literal

import torch

from obygaze_features.errors import BackboneError

Precision = Literal["float32", "bfloat16", "float16"]


@dataclass(frozen=True, slots=True)
class Compute:
    """Settings for running a network.

    Parameters
    ----------
    device
        `auto` (CUDA if there is one), `cpu`, `cuda` or `cuda:1`.
    precision
        `float32` is the reference; the others autocast, the weights staying in float32.
    tf32
        Allow matrix products and convolutions of float32 to drop mantissa bits on CUDA.
    compiled
        Compile the network with torch.compile; batches are then filled up to one size.
    clips_at_once
        Clips that go through the network together; out of memory halves it. None: 1 on a CPU, where more
        gains nothing and one gives every clip the same bytes in any batch, and 8 on CUDA.
    storage
        Data type of `frames`; None: float32 at precision float32, else float16.
    """

    device: str = "auto"
    precision: Precision = "float32"
    tf32: bool = False
    compiled: bool = False
    clips_at_once: int | None = None
    storage: Literal["float32", "float16"] | None = None

    def __post_init__(self) -> None:
        if self.precision not in ("float32", "bfloat16", "float16"):
            raise BackboneError(f"precision '{self.precision}' is not one of float32, bfloat16, float16")
        if self.clips_at_once is not None and self.clips_at_once < 1:
            raise BackboneError(f"{self.clips_at_once} clips at once: at least one is needed")

    def torch_device(self) -> torch.device:
        """Choose the device.

        Raises
        ------
        BackboneError
            If there is no such device on this machine.
        """
        wanted = ("cuda" if torch.cuda.is_available() else "cpu") if self.device == "auto" else self.device
        try:
            device = torch.device(wanted)
        except RuntimeError:
            raise BackboneError(f"device '{wanted}': expected auto, cpu, cuda or cuda:NUMBER") from None
        if device.type not in ("cpu", "cuda"):
            raise BackboneError(f"device '{wanted}': expected auto, cpu, cuda or cuda:NUMBER")
        if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
            raise BackboneError(
                f"device '{wanted}': torch sees {torch.cuda.device_count()} CUDA devices here"
            )
        return device

    def frames_dtype(self) -> Literal["float32", "float16"]:
        """Return the data type that `frames` are stored in."""
        return self.storage or ("float32" if self.precision == "float32" else "float16")

    def first_size(self) -> int:
        """Return the clips at once to begin with."""
        return self.clips_at_once or (8 if self.torch_device().type == "cuda" else 1)

    def record(self, attention: str | None) -> dict[str, Any]:
        """Describe what decides the numbers, in the store's words."""
        device = self.torch_device()
        return {
            "dtype": "float32",
            "autocast": None if self.precision == "float32" else self.precision,
            "attention": attention,
            "tf32": self.tf32,
            "compiled": self.compiled,
            "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        }
