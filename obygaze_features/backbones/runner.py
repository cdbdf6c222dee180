"""Run a torch network over uint8 clips or over tokens, with smaller batches if memory is short."""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from obygaze_features.backbones.backbone import BackboneOutput
from obygaze_features.backbones.compute import (
    Compute,
    card_record,
    free_memory,
    gpu_name,
    inference,
    is_out_of_memory,
)
from obygaze_features.backbones.encoder_specs import ReadText
from obygaze_features.backbones.presets import Affine
from obygaze_features.errors import BackboneError, first_line

DTYPES = {"float32": torch.float32, "float16": torch.float16}
"""Data type of an array in the store -> the same in torch."""
CALLS_AHEAD = 2
"""Calls of a network that are queued on a card before the host waits: it fills one while another runs."""
PAUSE_S = 1.0
"""Seconds to wait after memory ran out, since another process may have had a peak."""
CUDA: Any = torch.cuda  # partly untyped
log = logging.getLogger(__name__)

Arrays = dict[str, NDArray[Any]]
Clips = Sequence[NDArray[np.uint8]] | NDArray[np.uint8]
Items = TypeVar("Items", bound=Sequence[Any] | NDArray[Any])
Result = TypeVar("Result")


class BatchSize:
    """Batch size (clips or texts) that halves whenever memory runs out.

    Parameters
    ----------
    name
        Name of the backbone, for messages.
    initial
        Size to begin with.
    unit
        What is counted: clip or text.

    Attributes
    ----------
    current
        Clips or texts per call now.
    """

    def __init__(self, name: str, initial: int, unit: str, device: torch.device) -> None:
        """Begin with `initial` clips or texts per call of the network on `device`."""
        self.name = name
        self.unit = unit
        self.device = device
        self.current = initial

    def map(self, call: Callable[[Items], Result], items: Items) -> list[Result]:
        """Call a function on batches of the current size, and return the result of each batch.

        A batch for which memory runs out is tried again at half the size, and the smaller size stays for
        later calls. The function must not return None.

        Raises
        ------
        BackboneError
            If not even one item fits in the memory.
        """
        results: list[Result] = []
        n_done = 0
        while n_done < len(items):
            batch: Any = items[n_done : n_done + self.current]
            result = _result_unless_out_of_memory(call, batch)
            if result is None:
                self._halve()
            else:
                results.append(result)
                n_done += len(batch)
        return results

    def _halve(self) -> None:
        """Wait after memory ran out, as another process may have had a peak, and halve the batch size.

        The new size is logged.

        Raises
        ------
        BackboneError
            If the size is 1 already.
        """
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        if self.current == 1:
            raise BackboneError(
                f"backbone '{self.name}': one {self.unit} does not fit in the memory of {self.device}"
                f"{free_memory(self.device)}"
            )
        time.sleep(PAUSE_S)
        self.current //= 2
        free = free_memory(self.device)
        log.warning("%s: out of memory, going on with %d at once%s", self.name, self.current, free)


def _result_unless_out_of_memory(call: Callable[[Items], Result], items: Items) -> Result | None:
    """Call a function with a batch of items, and return its result; None if memory ran out.

    Only when the `except` block has ended is the error released, and with it the tensors of the call. So the
    caller can free memory and try again.
    """
    try:
        return call(items)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
    return None


@dataclass(frozen=True, slots=True)
class EncodedClips:
    """The results of some clips.

    Parameters
    ----------
    arrays
        Name -> `[B, ...]`, in the data types of the store. After a call on a card they have no values yet
        until the call has ended.
    finite
        Whether all values of a clip are finite, `[B]`.
    at_once
        Number of clips per call for each clip, `[B]`: smaller than requested if memory was short.
    """

    arrays: Arrays
    finite: NDArray[np.bool_]
    at_once: NDArray[np.int64]


class Call(NamedTuple):
    """A call of a network: its results, and the events of its begin and end on a GPU; None on a CPU.

    On a GPU the call may be queued only: its arrays have no values before `ended` has happened.
    """

    encoded: EncodedClips
    began: Any
    ended: Any


class Runner:
    """A backbone's `encode`: uint8 `[B, F, h, w, 3]` to one array per name, in the data types of the store.

    Every call of the network has the same number of clips (the last is padded), so that a clip gets the same
    bytes in any batch. On a CPU it is one clip, since products may depend on a clip's position in a call.
    Results differ from those of single clips by at most 1e-5 of the largest value (float32).

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
        Height and width of the frames; one number for squares.

    Attributes
    ----------
    card
        Model of the GPU; `cpu` without one.
    busy_s
        Seconds for which the GPU had work.
    """

    def __init__(
        self,
        name: str,
        network: nn.Module,
        affine: Affine,
        outputs: tuple[BackboneOutput, ...],
        *,
        n_frames: int,
        size: int | tuple[int, int],
        compute: Compute,
    ) -> None:
        """Hold the network in evaluation mode; `_load` moves it to its device at the first call."""
        self.name = name
        height, width = size if isinstance(size, tuple) else (size, size)
        self.shape = (n_frames, height, width, 3)  # of a clip
        self.outputs = outputs
        self.compute = compute
        self.device = compute.torch_device()
        self.card = gpu_name(self.device)
        self.busy_s = 0.0

        self._on_gpu = self.device.type == "cuda"
        self._batch_size = BatchSize(name, compute.initial_batch_size(), "clip", self.device)
        self._dtype = torch.bfloat16 if compute.precision == "bfloat16-weights" else torch.float32
        self.network: Any = network.eval()
        self._affine = affine
        self._scale_and_shift: tuple[torch.Tensor, ...] = ()  # of the affine, on the device once loaded
        self._queued_ends: deque[Any] = deque()  # events of the ends of the queued calls, the oldest first

    @property
    def clips_at_once(self) -> int:
        """Clips in every call of the network at present."""
        return self._batch_size.current

    def card_record(self) -> dict[str, Any]:
        """Describe the GPU and its peak memory so far, for the provenance."""
        return card_record(self.device)

    def __call__(self, batch: NDArray[np.uint8]) -> Arrays:
        """Encode clips, uint8 `[B, F, h, w, 3]`, and wait for the results.

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
            If not even one clip fits in the memory, or the network cannot be compiled or run.
        """
        try:
            self(np.zeros((1, *self.shape), np.uint8))
        except RuntimeError as error:  # such as: no C compiler, or no kernels for this card
            hint = "; --compile needs a C compiler and Python's headers" if self.compute.compiled else ""
            raise BackboneError(
                f"backbone '{self.name}' does not run on {self.card}: {first_line(error)}{hint}"
            ) from error

    def start(self, clips: Clips) -> "Pending":
        """Start to encode clips, uint8 `[F, h, w, 3]` each; `result` of the returned object waits for them.

        On a GPU the work is queued, and this returns soon; on a CPU it is done when this returns. The clips
        are copied before this returns, so that their memory may be used again.

        Raises
        ------
        BackboneError
            If the frames are of another number, size or type, or not even one clip fits in the memory.
        """
        if len(clips) == 0:
            raise self._unexpected("found none")
        for clip in clips:
            if clip.dtype != np.uint8 or clip.shape != self.shape:
                raise self._unexpected(f"found {clip.dtype} {list(clip.shape)}")
        # One call of the network for each batch of clips; batches become smaller if memory runs out.
        calls = self._batch_size.map(self._call, clips)
        return Pending(self, calls)

    def _unexpected(self, problem: str) -> BackboneError:
        """Return the error for clips that the network does not take; `problem` says what was found."""
        return BackboneError(
            f"backbone '{self.name}' takes clips of uint8 {list(self.shape)} (frames, height, width, 3); "
            f"{problem}"
        )

    def _load(self) -> None:
        """Move the network and the constants of the normalisation to the device, at the first call only."""
        is_loaded = bool(self._scale_and_shift)
        if is_loaded:
            return
        network = self.network.to(device=self.device, dtype=self._dtype)
        constants = []
        for values_of_channels in (self._affine.scale, self._affine.shift):
            constant = torch.tensor(values_of_channels, dtype=torch.float64).float()
            # Axes as those of frames, [B, F, 3, h, w].
            constants.append(constant.reshape(1, 1, 3, 1, 1).to(self.device))
        self.network = torch.compile(network, dynamic=False) if self.compute.compiled else network
        self._scale_and_shift = tuple(constants)

    def _call(self, clips: Clips) -> Call:
        """Call the network once with clips, of which there are at most as many as the batch size.

        On a CPU the results are there when this returns. A GPU does its work in the order in which it is
        queued, and this returns as soon as all of it is queued: the copy of the clips to the GPU, an event,
        the network, the copies of its results, and another event. The returned arrays have their values once
        the last event, `ended`, has happened; `Pending.result` waits for it.
        """
        self._load()
        self._wait_if_many_are_queued()
        n_clips = len(clips)
        # A fixed shape selects the same kernels in every call: the last clip is repeated to fill the batch.
        batch_size = self._batch_size.current
        pixels = self._padded(clips, batch_size).to(self.device, non_blocking=True)

        began = self._record_event()
        results = self._forward(pixels)
        are_finite = _are_all_finite(results)  # [batch_size]: of each clip, whether all of its results are
        arrays_without_padding = {}
        for name, result in results.items():
            arrays_without_padding[name] = self._copied_to_cpu(result[:n_clips])
        finite = self._copied_to_cpu(are_finite[:n_clips])
        ended = self._record_event()
        if self._on_gpu:
            self._queued_ends.append(ended)  # `_wait_if_many_are_queued` waits for it in a later call

        encoded = EncodedClips(arrays_without_padding, finite, at_once=np.full(n_clips, batch_size))
        return Call(encoded, began, ended)

    def _wait_if_many_are_queued(self) -> None:
        """Wait for the oldest queued call if `CALLS_AHEAD` calls are queued on the GPU.

        So that memory holds the clips and results of few calls, while the GPU always has work.
        """
        if len(self._queued_ends) == CALLS_AHEAD:
            end_of_oldest = self._queued_ends.popleft()
            end_of_oldest.synchronize()

    def _padded(self, clips: Clips, batch_size: int) -> torch.Tensor:
        """Copy clips into a tensor, `[batch_size, F, h, w, 3]`, and repeat the last clip until it is full.

        For a card its memory is pinned: from other memory a copy to the card would block the host. Torch uses
        it again once the copy has ended.
        """
        padded = torch.empty((batch_size, *self.shape), dtype=torch.uint8, pin_memory=self._on_gpu)
        padded_array = padded.numpy()  # shares the tensor's memory
        last_clip = len(clips) - 1
        for index in range(batch_size):
            padded_array[index] = clips[min(index, last_clip)]
        return padded

    @staticmethod
    def _copied_to_cpu(result: torch.Tensor) -> NDArray[Any]:
        """Copy a result to the CPU; from a GPU the copy is queued, and the array has no values yet."""
        return result.to("cpu", non_blocking=True).numpy()

    def _record_event(self) -> Any:
        """Queue an event after the GPU's work so far, to wait for or to measure time by; None on a CPU."""
        if not self._on_gpu:
            return None
        event = CUDA.Event(enable_timing=True, blocking=True)
        event.record(CUDA.current_stream(self.device))
        return event

    def _forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Normalise clips, uint8 `[B, F, h, w, 3]`, run the network, and return its outputs by name."""
        with inference(self.compute, self.device):
            # Of shape [B, F, 3, h, w].
            frames = pixels.permute(0, 1, 4, 2, 3).to(torch.float32, memory_format=torch.contiguous_format)
            scale, shift = self._scale_and_shift
            frames = frames.mul_(scale).add_(shift)
            results = self.network(frames.to(self._dtype))
            return {output.name: self._checked(output, results) for output in self.outputs}

    def _checked(self, output: BackboneOutput, results: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return an output of the network in the data type of the store.

        Parameters
        ----------
        output
            Name, data type and shape of the output, which the backbone announced.
        results
            Name -> tensor `[B, ...]`, as the network gave them.

        Raises
        ------
        BackboneError
            If the network gave no such output, or gave it in another shape.
        """
        shapes = {name: list(result.shape[1:]) for name, result in results.items()}
        if shapes.get(output.name) != list(output.shape):
            raise BackboneError(
                f"backbone '{self.name}' announced '{output.name}' as {list(output.shape)} a clip and gave "
                f"{shapes}"
            )
        # Values beyond the range of float16 become infinite, and then the clip fails.
        return results[output.name].to(DTYPES[output.dtype])


def _are_all_finite(results: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Return for each clip whether all values of all its results `[B, ...]` are finite, bool `[B]`."""
    is_finite = [result.flatten(1).isfinite().all(dim=1) for result in results.values()]
    return torch.stack(is_finite).all(dim=0)


class Pending:
    """Clips that are being encoded; `result` waits for them."""

    def __init__(self, runner: Runner, calls: Sequence[Call]) -> None:
        """Hold the calls of the network that were queued for these clips."""
        self._runner = runner
        self._calls = calls

    def result(self) -> EncodedClips:
        """Wait until all calls have ended, and join their results; may be called once.

        It adds the time that the calls took on a GPU to the runner's `busy_s`, so a second time would count
        twice.
        """
        for call in self._calls:
            if call.ended is not None:  # on a CPU there are no events, and all calls have ended
                call.ended.synchronize()
                milliseconds = call.began.elapsed_time(call.ended)
                self._runner.busy_s += milliseconds / 1e3

        batches = [call.encoded for call in self._calls]
        arrays = {}
        for name in batches[0].arrays:
            arrays[name] = np.concatenate([batch.arrays[name] for batch in batches])
        finite = np.concatenate([batch.finite for batch in batches])
        at_once = np.concatenate([batch.at_once for batch in batches])
        return EncodedClips(arrays, finite, at_once)


class TextRunner:
    """A text backbone's `encode`: tokens of one length, int64 `[B, L]`, to float32 `[B, D]`.

    On a CPU texts go through one at a time and on one thread, so a text gets the same bytes in any batch and
    on any number of cores; short texts gain nothing from more threads. Several at once, as on a GPU, agree
    within 1e-5 of the largest value in float32.

    Parameters
    ----------
    read
        Calls the network with int64 `[B, L]`; gives `[B, D]`.
    """

    def __init__(self, name: str, network: nn.Module, read: ReadText, compute: Compute) -> None:
        """Move the network to its device, in evaluation mode."""
        self.name = name
        self.read = read
        self.compute = compute
        self.device = compute.torch_device()
        dtype = torch.bfloat16 if compute.precision == "bfloat16-weights" else None
        self.network: Any = network.to(device=self.device, dtype=dtype).eval()
        self._batch_size = BatchSize(name, compute.initial_batch_size(), "text", self.device)

    def __call__(self, tokens: NDArray[np.int64]) -> NDArray[np.float32]:
        """Encode tokens of texts, int64 `[B, L]`, to vectors, float32 `[B, D]`.

        Raises
        ------
        BackboneError
            If not even one text fits in the memory.
        """
        with _one_thread():
            vectors_of_batches = self._batch_size.map(self._encode, tokens)
        return np.concatenate(vectors_of_batches)

    def _encode(self, tokens: NDArray[np.int64]) -> NDArray[np.float32]:
        """Run the network once on tokens `[B, L]`, and return vectors `[B, D]` on the CPU."""
        with inference(self.compute, self.device):
            vectors = self.read(self.network, torch.tensor(tokens, device=self.device))
        encoded: NDArray[np.float32] = vectors.float().cpu().numpy()
        return encoded


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limit torch to one CPU thread within a `with` block."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)
