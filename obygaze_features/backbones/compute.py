"""Choose how a network runs (device, precision, clips per call), and record it in the provenance."""

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import torch

from obygaze_features.errors import BackboneError, first_line

Precision = Literal["float32", "bfloat16", "float16", "bfloat16-weights"]
PRECISIONS = ("float32", "bfloat16", "float16", "bfloat16-weights")
BFLOAT16_SINCE = (8, 0)  # compute capability; below it torch emulates bfloat16, slowly
ON_A_CARD = 8
"""Clips at once on CUDA: 2.7 GB for the largest network in float32, and enough to fill the largest card."""


@dataclass(frozen=True, slots=True)
class Compute:
    """Settings for running a network.

    Parameters
    ----------
    device
        `auto` (CUDA if there is one), `cpu`, `cuda` or `cuda:1`.
    precision
        `float32` is the reference. `bfloat16` and `float16` autocast, with weights in float32.
        `bfloat16-weights` keeps weights and activations in bfloat16: less memory traffic, less exact.
    tf32
        Allow TF32 (fewer mantissa bits) in float32 matrix products and convolutions on CUDA.
    compiled
        Compile the network with torch.compile.
    clips_at_once
        Clips per call of the network; smaller batches are padded, and running out of memory halves it.
        None: 1 on a CPU, where more is not faster, and 8 on CUDA.
    storage
        Data type of `frames`; None: float32 at precision float32, else float16.
    same_device
        Record the GPU model, so that only the same model may continue the store.
    """

    device: str = "auto"
    precision: Precision = "float32"
    tf32: bool = False
    compiled: bool = False
    clips_at_once: int | None = None
    storage: Literal["float32", "float16"] | None = None
    same_device: bool = False

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise BackboneError(f"precision '{self.precision}' is not one of {', '.join(PRECISIONS)}")
        if self.clips_at_once is not None and self.clips_at_once < 1:
            raise BackboneError(f"{self.clips_at_once} clips at once: at least one is needed")

    def torch_device(self) -> torch.device:
        """Choose the device.

        Raises
        ------
        BackboneError
            If there is no such device, torch has no kernels for it, or it does not support this precision.
        """
        wanted = ("cpu" if no_cuda() else "cuda") if self.device == "auto" else self.device
        try:
            device = torch.device(wanted)
        except RuntimeError:
            raise BackboneError(f"device '{wanted}': expected auto, cpu, cuda or cuda:NUMBER") from None
        if device.type not in ("cpu", "cuda"):
            raise BackboneError(f"device '{wanted}': expected auto, cpu, cuda or cuda:NUMBER")
        if device.type == "cuda":
            if reason := no_cuda():
                raise BackboneError(f"device '{wanted}': {reason}")
            if (device.index or 0) >= torch.cuda.device_count():
                raise BackboneError(
                    f"device '{wanted}': torch sees {torch.cuda.device_count()} CUDA devices here"
                )
            self._check_card(device)
        return device

    def _check_card(self, device: torch.device) -> None:
        name, capability = torch.cuda.get_device_name(device), torch.cuda.get_device_capability(device)
        kernels = torch.cuda.get_arch_list()
        if kernels and not _runs_on(capability, kernels):
            raise BackboneError(
                f"{name} (compute capability {capability[0]}.{capability[1]}): torch {torch.__version__} has "
                f"no kernels for it, only {', '.join(kernels)}; install a build of torch that has them (for "
                "cards below 7.5 one for CUDA 12.6: see README.md), or take --device cpu"
            )
        if self.precision.startswith("bfloat16") and capability < BFLOAT16_SINCE:
            raise BackboneError(
                f"{name} (compute capability {capability[0]}.{capability[1]}) has no bfloat16, "
                "which begins with 8.0: use --dtype fp16 or fp32"
            )

    def fallback(self) -> str | None:
        """Return why `auto` selects the CPU; None if it does not."""
        return no_cuda() if self.device == "auto" else None

    def frames_dtype(self) -> Literal["float32", "float16"]:
        """Return the data type in which `frames` are stored."""
        return self.storage or ("float32" if self.precision == "float32" else "float16")

    def first_size(self) -> int:
        """Return the initial number of clips per call."""
        return self.clips_at_once or (ON_A_CARD if self.torch_device().type == "cuda" else 1)

    def record(self, attention: str | None) -> dict[str, Any]:
        """Return what affects the numbers, in the store's terms.

        A GPU is recorded without its model, so that a machine with another model can continue a store; the
        journal has the model for each clip. The fields `clips_at_once` and `same_device` are omitted if they
        have no effect.
        """
        device = self.torch_device()
        at_once = self.first_size()
        name = torch.cuda.get_device_name(device) if device.type == "cuda" and self.same_device else None
        return {
            "dtype": "bfloat16" if self.precision == "bfloat16-weights" else "float32",
            "autocast": self.precision if self.precision in ("bfloat16", "float16") else None,
            "attention": attention,
            "tf32": self.tf32,
            "compiled": self.compiled,
            "device": name or device.type,
            **({} if at_once == 1 else {"clips_at_once": at_once}),
        }


def no_cuda() -> str | None:
    """Return why there is no CUDA device; None if there is one."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        if torch.cuda.is_available():
            return None
    if torch.version.cuda is None:
        return f"no CUDA device (torch {torch.__version__} was built without CUDA)"
    if said:  # such as: the driver is too old
        return f"no CUDA device ({first_line(said[0].message)})"
    return "no CUDA device is visible to this process (nvidia-smi and CUDA_VISIBLE_DEVICES tell why)"


def card_of(device: torch.device) -> str:
    """Return the GPU model, or `cpu`."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def card_record(device: torch.device) -> dict[str, Any]:
    """Describe a GPU for a run's report: what affects results and speed, and its peak memory."""
    properties = torch.cuda.get_device_properties(device)
    cudnn: Any = torch.backends.cudnn
    return {
        "compute_capability": f"{properties.major}.{properties.minor}",
        "memory_mb": round(properties.total_memory / 1e6),
        "peak_memory_mb": round(torch.cuda.max_memory_allocated(device) / 1e6),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": cudnn.version(),
    }


def room_on(device: torch.device) -> str:
    """Describe the free memory of a device for messages; empty for a CPU."""
    if device.type != "cuda":
        return ""
    try:
        free, total = torch.cuda.mem_get_info(device)
    except RuntimeError:  # not enough memory for a CUDA context
        return f" ({card_of(device)})"
    return f" ({card_of(device)}: {free / 1e9:.1f} of {total / 1e9:.1f} GB free)"


def _runs_on(capability: tuple[int, int], kernels: list[str]) -> bool:
    """Return whether kernels for the given architectures run on a GPU.

    Binary code (`sm_86`) runs on the same major version from its minor version on, PTX (`compute_90`) on
    everything later.
    """
    major, minor = capability
    for kernel in kernels:
        kind, _, version = kernel.rpartition("_")
        digits = version.rstrip("af")  # sm_90a, sm_120f: specific to an architecture or family
        if not digits.isdecimal():
            continue
        theirs = divmod(int(digits), 10)
        same = theirs[0] == major and theirs[1] <= minor
        if same or (kind == "compute" and theirs <= (major, minor)):
            return True
    return False
