"""Choose how a network runs: device, precision and clips per call."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch

from obygaze_features.arguments import checked
from obygaze_features.errors import BackboneError, first_line

Precision = Literal["float32", "bfloat16", "float16", "bfloat16-weights"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
AUTOCAST = {"bfloat16": torch.bfloat16, "float16": torch.float16}
"""Precisions in which products are computed while weights stay in float32."""
BFLOAT16_SINCE = (8, 0)
"""Compute capability from which on GPUs have bfloat16; for others torch emulates it, slowly."""
ATTENTION = "sdpa"
"""Implementation of attention in all networks of the transformers library."""
CLIPS_ON_CUDA = 8
"""Clips at once on CUDA: 2.7 GB for the largest network in float32, and enough to fill the largest card."""
OUT_OF_MEMORY = (
    "out of memory",  # torch.OutOfMemoryError, and "CUDA error: out of memory" outside of torch's allocator
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUDA_ERROR_OUT_OF_MEMORY",  # of the driver: modules of kernels that are loaded late
    "can't allocate memory",  # torch on a CPU
)
BACKENDS: Any = torch.backends  # parts of it have no types


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
        """Refuse a precision that is not offered, and fewer than one clip at once."""
        if self.precision not in PRECISIONS:
            raise BackboneError(f"precision '{self.precision}' is not one of {', '.join(PRECISIONS)}")
        if self.clips_at_once is not None and self.clips_at_once < 1:
            raise BackboneError(f"{self.clips_at_once} clips at once: at least one is needed")

    def torch_device(self) -> torch.device:
        """Return the torch device to run on.

        Raises
        ------
        BackboneError
            If there is no such device, or it does not support this precision.
        """
        name = self.device
        if name == "auto":
            name = "cpu" if no_cuda() else "cuda"
        if not re.fullmatch(r"(cpu|cuda)(:\d{1,2})?", name, re.ASCII):
            raise BackboneError(f"device '{name}': expected auto, cpu, cuda or cuda:NUMBER")
        device = torch.device(name)
        if device.type == "cuda":
            self._check_gpu(device)
        return device

    def _check_gpu(self, device: torch.device) -> None:
        """Raise a BackboneError for a GPU that does not exist, or lacks bfloat16 that the precision needs."""
        reason = no_cuda()
        if reason:
            raise BackboneError(f"device '{device}': {reason}")
        n_devices = torch.cuda.device_count()
        if (device.index or 0) >= n_devices:
            raise BackboneError(f"device '{device}': torch sees {n_devices} CUDA devices here")
        capability = torch.cuda.get_device_capability(device)
        if self.precision.startswith("bfloat16") and capability < BFLOAT16_SINCE:
            major, minor = capability
            raise BackboneError(
                f"{torch.cuda.get_device_name(device)} (compute capability {major}.{minor}) has no bfloat16, "
                "which begins with 8.0: use --dtype fp16 or fp32"
            )

    def fallback(self) -> str | None:
        """Return why `auto` selects the CPU; None if it selects CUDA or another device was named."""
        return no_cuda() if self.device == "auto" else None

    def frames_dtype(self) -> Literal["float32", "float16"]:
        """Return the data type in which the array `frames` of a store is written.

        It is the chosen one, else float32 for a network in float32, and float16 for all others.
        """
        if self.storage is not None:
            return self.storage
        return "float32" if self.precision == "float32" else "float16"

    def initial_batch_size(self) -> int:
        """Return the number of clips per call of the network to start with, before any lack of memory."""
        if self.clips_at_once is not None:
            return self.clips_at_once
        on_cuda = self.torch_device().type == "cuda"
        return CLIPS_ON_CUDA if on_cuda else 1

    def record(self, attention: str | None = ATTENTION) -> dict[str, Any]:
        """Return the settings that affect the numbers, as the provenance of a store records them.

        A GPU is recorded as `cuda`, so that a machine with another model can continue a store; the journal
        records the model for each clip. With `same_device` the model is recorded instead of `cuda`. The
        number of clips at once is recorded only if it is not 1.

        Parameters
        ----------
        attention
            The attention implementation; None for a network without attention.
        """
        device = self.torch_device()
        clips_at_once = self.initial_batch_size()
        dtype_of_weights = "bfloat16" if self.precision == "bfloat16-weights" else "float32"
        autocast_dtype = self.precision if self.precision in AUTOCAST else None
        record: dict[str, Any] = {
            "dtype": dtype_of_weights,
            "autocast": autocast_dtype,
            "attention": attention,
            "tf32": self.tf32,
            "compiled": self.compiled,
            "device": gpu_name(device) if self.same_device else device.type,
        }
        if clips_at_once != 1:
            record["clips_at_once"] = clips_at_once
        return record


def no_cuda() -> str | None:
    """Return why no CUDA device can be used; None if there is one."""
    with warnings.catch_warnings(record=True) as torch_warnings:
        warnings.simplefilter("always")
        if torch.cuda.is_available():
            return None
    if torch.version.cuda is None:
        return f"no CUDA device (torch {torch.__version__} was built without CUDA)"
    if torch_warnings:  # such as: the driver is too old
        return f"no CUDA device ({first_line(torch_warnings[0].message)})"
    return "no CUDA device is visible to this process (nvidia-smi and CUDA_VISIBLE_DEVICES tell why)"


def gpu_name(device: torch.device) -> str:
    """Return the model name of a GPU, or `cpu`."""
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


def free_memory(device: torch.device) -> str:
    """Describe the free memory of a GPU in parentheses, for messages; empty for a CPU."""
    if device.type != "cuda":
        return ""
    try:
        free, total = torch.cuda.mem_get_info(device)
    except RuntimeError:  # not enough memory for a CUDA context
        return f" ({gpu_name(device)})"
    return f" ({gpu_name(device)}: {free / 1e9:.1f} of {total / 1e9:.1f} GB free)"


@checked
@contextmanager
def matmul_precision(*, tf32: bool) -> Iterator[None]:
    """Allow or forbid TF32 in float32 products on CUDA within a `with` block; CPUs keep full precision.

    Afterwards all settings are what they were before.

    Torch has an older interface for this (`allow_tf32`) and a newer one (`fp32_precision`). The newer one is
    used here. Reading the older one fails once the newer one has been set to something else, as
    transformers and many notebooks do. For cuDNN the older one is set to the same, because some networks read
    it (PE-AV's for sound).

    CPUs are set, too: after `torch.set_float32_matmul_precision("medium")`, which a notebook may have called,
    oneDNN would round to bfloat16.
    """
    full_precision = "ieee"
    cuda_backends = (BACKENDS.cuda.matmul, BACKENDS.cudnn.conv, BACKENDS.cudnn.rnn)
    cpu_backends = (BACKENDS.mkldnn.matmul, BACKENDS.mkldnn.conv)
    backends = (*cuda_backends, *cpu_backends)
    precisions_before = [backend.fp32_precision for backend in backends]
    was_allowed_in_older = _older_tf32()

    _set_older_tf32(allowed=tf32)
    for backend in cuda_backends:
        backend.fp32_precision = "tf32" if tf32 else full_precision
    for backend in cpu_backends:
        backend.fp32_precision = full_precision
    try:
        yield
    finally:
        if was_allowed_in_older is not None:  # None: it could not be read
            _set_older_tf32(allowed=was_allowed_in_older)
        for backend, precision in zip(backends, precisions_before, strict=True):
            _restore_precision(backend, precision)


def _restore_precision(backend: Any, precision: str) -> None:
    """Set a backend of torch back to a precision that was read from it before.

    Reading does not tell whether the precision was set for this backend, or inherited from torch's setting
    for all backends. If inheriting gives it, the backend inherits again.
    """
    backend.fp32_precision = "none"  # inherit
    if backend.fp32_precision != precision:
        backend.fp32_precision = precision


def _older_tf32() -> bool | None:
    """Return whether torch's older setting allows TF32 in cuDNN; None if torch refuses to say.

    Torch refuses if its newer setting says something else.
    """
    try:
        return bool(BACKENDS.cudnn.allow_tf32)
    except RuntimeError:
        return None


def _set_older_tf32(*, allowed: bool) -> None:
    """Allow or forbid TF32 in cuDNN by torch's older setting, without the warning that it is deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        BACKENDS.cudnn.allow_tf32 = allowed


@contextmanager
def inference(compute: Compute, device: torch.device) -> Iterator[None]:
    """Set torch to run networks without gradients and in a precision, within a `with` block.

    Parameters
    ----------
    compute
        The settings of the network, such as its precision.
    device
        The device on which it runs.
    """
    autocast_dtype = AUTOCAST.get(compute.precision)  # None for precisions without autocast
    autocast = torch.autocast(device.type, autocast_dtype, enabled=autocast_dtype is not None)
    with torch.inference_mode(), matmul_precision(tf32=compute.tf32), autocast:
        yield


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error, or an error that caused it, is a lack of memory.

    Besides torch's allocator, CUDA contexts, handles, workspaces, kernels and pinned memory can fail if
    another process fills the GPU. torch.compile wraps all of these errors.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, torch.OutOfMemoryError | MemoryError):
            return True
        # All other failures are RuntimeErrors, which only their messages tell apart.
        if isinstance(cause, RuntimeError) and any(words in str(cause) for words in OUT_OF_MEMORY):
            return True
        cause = cause.__cause__
    return False
