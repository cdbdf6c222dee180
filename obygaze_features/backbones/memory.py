"""Run out of memory and go on: recognise it, wait, halve what goes together, and try more again later."""

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
    """Check whether an error, or what caused it, says that memory ran out.

    Torch's own allocator is one of several that may fail where somebody else fills the card: contexts,
    handles, workspaces, kernels and pinned memory come from elsewhere, and torch.compile wraps all of them.
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
    """How many clips (or texts) go through a network together, given the memory there is.

    The first failure of a size waits a second and tries the same size again, since a neighbour's peak
    passes; the second halves it. After 50 calls without trouble the size before is tried again, up to the
    first one; each further try waits for twice as many calls. Every change is logged.

    Parameters
    ----------
    first
        The size to begin with, and the largest.
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
        """Note that memory ran out; the caller has let go of all that it held on the device.

        Raises
        ------
        BackboneError
            If not even one fits.
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
        """Note that a call went well."""
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
