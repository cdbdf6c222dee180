"""Handle running out of memory: detect it, wait, halve the batch, and later try larger batches again."""

import logging
import time

import torch

from obygaze_features.backbones.compute import room_on
from obygaze_features.errors import BackboneError

WORDS = (
    "out of memory",  # torch.OutOfMemoryError, and "CUDA error: out of memory" outside of torch's allocator
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUDA_ERROR_OUT_OF_MEMORY",  # of the driver: modules of kernels that are loaded late
    "can't allocate memory",  # torch on a CPU
)
PAUSE_S = 1.0
PATIENCE = 50
"""Calls without trouble after which twice as many are tried again."""

log = logging.getLogger(__name__)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error or its cause is a lack of memory.

    Besides torch's allocator, others may fail if another process fills the GPU: contexts, handles,
    workspaces, kernels and pinned memory. torch.compile wraps all of these errors.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, torch.OutOfMemoryError | MemoryError):
            return True
        if isinstance(cause, RuntimeError) and any(words in str(cause) for words in WORDS):
            return True
        cause = cause.__cause__
    return False


class BatchSize:
    """Batch size (clips or texts) that adapts to the available memory.

    After the first failure of a size, the same size is tried again one second later, since another process's
    peak may pass; the second failure halves the size. After 50 calls without failure the previous size is
    tried again, up to the first one; each further try waits for twice as many calls. Every change is logged.

    Parameters
    ----------
    first
        The initial and largest size.
    unit
        What is counted: clip or text.
    """

    def __init__(self, name: str, first: int, unit: str, device: torch.device) -> None:
        self.name = name
        self.first = first
        self.unit = unit
        self.device = device
        self._halved = 0
        self._waited = False
        self._good = 0
        self._patience = PATIENCE

    @property
    def now(self) -> int:
        """The present size."""
        return max(self.first >> self._halved, 1)

    def failed(self) -> None:
        """Record a lack of memory; the caller must have released its memory on the device.

        Raises
        ------
        BackboneError
            If a size of one does not fit.
        """
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        self._good = 0
        if not self._waited:
            self._waited = True
            time.sleep(PAUSE_S)
            return
        self._waited = False
        if self.now == 1:
            raise BackboneError(
                f"backbone '{self.name}': one {self.unit} does not fit in the memory of {self.device}"
                f"{room_on(self.device)}"
            )
        self._halved += 1
        self._say("out of memory, going on with")

    def worked(self) -> None:
        """Record a successful call."""
        self._waited = False
        if self._halved == 0:
            return
        self._good += 1
        if self._good >= self._patience:
            self._good = 0
            self._patience *= 2
            self._halved -= 1
            self._say("trying again with")

    def _say(self, what: str) -> None:
        units = self.unit if self.now == 1 else f"{self.unit}s"
        log.warning("%s: %s %d %s at once%s", self.name, what, self.now, units, room_on(self.device))
