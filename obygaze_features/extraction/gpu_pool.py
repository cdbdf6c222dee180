"""Decode clips on a GPU ("card") and on cores, from one queue; yield clips as they finish.

A pass is a group of clips of one file that are decoded together. One process decodes on the GPU, in several
threads, and gets passes as long as a thread is free; the decode workers, one for each core, get the others. A
pass that the GPU does not decode, or had begun when its process died, goes to the workers. A remark on the
clip says what decoded it; the store does not record it, because the clips are the same.
"""

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

from obygaze_features.backbones import Backbone
from obygaze_features.errors import ExtractError
from obygaze_features.extraction.decode_clips import DecodedClip, DecodeTask, take_pictures
from obygaze_features.extraction.decoders import CUDA, PYAV
from obygaze_features.extraction.films import FilePass, Films, WorkQueue
from obygaze_features.extraction.gpu_process import (
    GPU_THREADS,
    ClipGiven,
    GpuOpened,
    NewPass,
    PassEnded,
    serve_gpu,
)
from obygaze_features.extraction.pool import DecodePool
from obygaze_features.video.hardware import Gpu, NvidiaGpu
from obygaze_features.workers import Event, Parent, WorkerPool

MAX_STARTS = 3
"""Times that the process of the GPU is started: after the last death cores decode alone."""

PASSES_AHEAD = 2
"""Passes that wait in the process of the GPU, so that its threads find one while this process encodes."""

SEARCHED_PASSES = 64
"""Passes at the front of the queue among which one for the GPU is looked for: the search stays short."""

ON_GPU = "decoded on a card, in the bits of a core"
BY_CORES = "decoded by cores, not on the card"
"""Remarks on clips."""

STRICT = "--strict asks for what only cores tell of damage"
"""Reason why cores decode a clip."""

GPU_SEARCH_S = 60.0
"""Seconds that looking for a GPU may take."""

MAKE_GPU: Callable[[int], Gpu] = NvidiaGpu
"""Returns the GPU of a number; tests put a pretended one in its place."""


class _GpuKey(NamedTuple):
    """Key of the only task of the GPU's process, and so of its events, unlike those of the decode workers."""

    process_number: int


class GpuPool(DecodePool):
    """Decode clips on a GPU, in a process of its own, and on cores, in separate processes.

    It keeps track of the passes on the GPU, of those that it handed back, and of why passes and files are
    decoded by cores.

    Parameters
    ----------
    workers
        Number of decode workers, one for each core.
    timeout_s
        Time limit for one clip, in seconds.
    batch_size
        Clips that are taken together.
    GPU
        The GPU.
    """

    def __init__(self, workers: int, timeout_s: float, batch_size: int, gpu: Gpu) -> None:
        """Start the decode workers, one for each core, and the process of the GPU.

        A pass is a list of clips of one file that are decoded together.
        """
        super().__init__(workers, timeout_s, PYAV, batch_size)  # the workers decode with PyAV
        # The process of the GPU
        self._gpu = gpu
        self._process_number = 0  # how often the process has been started
        self._is_open = False  # whether it can decode

        # Passes that the GPU was given, by their numbers; of each the tasks that are not decoded yet, by
        # their positions in the pass
        self._pass_numbers = count()  # 0, 1, ...
        self._on_gpu: dict[Hashable, dict[int, DecodeTask]] = {}

        # Passes that the GPU has handed back, with the reason; they wait for a decode worker
        self._handed_back: deque[tuple[FilePass, str]] = deque()
        # Why a file as a whole is not for the GPU: its passes go to decode workers at once
        self._reason_of_file: dict[Path | None, str] = {}
        # Why a decode worker does a pass in place of the GPU, by the pass's key among the workers
        self._reason_of_pass: dict[Hashable, str] = {}
        self._process = self._start()

    def __exit__(self, *_: object) -> None:
        """End the process of the GPU, then the workers."""
        self._process.close()
        super().__exit__()

    # --- what the loop over the queue asks
    # -------------------------------------------------------------------------
    def _begin_next(self, queue: WorkQueue) -> bool:
        """Give one pass (clips of one file) to the GPU or to a free core; return False if none was given.

        The GPU gets the first pass of the queue that it may decode. Cores get passes that the GPU handed
        back undecoded, and then the first pass of the queue.

        Parameters
        ----------
        queue
            Passes that wait; the pass that is given is removed from it.
        """
        if self._gpu_has_room():
            first_passes = islice(queue, SEARCHED_PASSES)
            for position, file_pass in enumerate(first_passes):
                if self._is_for_gpu(file_pass):
                    del queue[position]
                    self._put_on_gpu(file_pass)
                    return True

        # The GPU has enough to do, or may decode none of these.
        cores_have_room = self._has_room()
        if not cores_have_room:
            return False
        if self._handed_back:
            file_pass, reason = self._handed_back.popleft()
            self._put_on_cores(file_pass, reason)
            return True
        if queue:
            file_pass = queue.popleft()
            self._put_on_cores(file_pass, self._why_not_on_gpu(file_pass))
            return True
        return False

    def _is_idle(self) -> bool:
        """Return whether no pass is being decoded, nor was handed back by the GPU and waits for a core."""
        if self._on_gpu or self._handed_back:
            return False
        return super()._is_idle()

    def _handle_event(self, event: Event, queue: WorkQueue, films: Films | None = None) -> list[DecodedClip]:
        """Handle an event of the GPU's process or of a decode worker; return the clips that it finishes.

        Each clip gets a remark: that the GPU decoded it, or why cores did in place of the GPU.

        Parameters
        ----------
        event
            A message with a decoded clip, or the end of a pass. Its key names the pass, or the GPU's process.
        queue
            Passes (clips of one file each) that wait for a worker.
        films
            Films whose frames are measured for shots; None if there are none.
        """
        is_of_gpu_process = isinstance(event.key, _GpuKey)
        if is_of_gpu_process:
            return self._handle_gpu_event(event)

        # An event of a decode worker, which the pool of workers knows how to handle.
        clips = super()._handle_event(event, queue, films)
        # Why the worker decodes this pass in place of the GPU; "" if the GPU was not to decode it.
        why_not_on_gpu = self._reason_of_pass.get(event.key, "")
        pass_has_ended = event.kind != "item"  # an item is one clip of the pass
        if pass_has_ended:
            self._reason_of_pass.pop(event.key, None)
        if not why_not_on_gpu:
            return clips
        return [_remarked(clip, f"{BY_CORES}: {why_not_on_gpu}") for clip in clips]

    # --- the GPU
    # -------------------------------------------------------------------------
    def _start(self) -> WorkerPool:
        """Start the process of the GPU, which sends `GpuOpened` once it can decode.

        It has one task, which lasts as long as the process; passes are messages to it.
        """
        self._process_number += 1
        self._is_open = False
        folder = Path(self._shared.name)
        serve = partial(serve_gpu, gpu=self._gpu, folder=folder, n_threads=GPU_THREADS)
        # Its events come together with those of the decode workers.
        process = WorkerPool(workers=1, work=serve, beside=self._pool)
        process.put(_GpuKey(self._process_number), None)
        return process

    def _gpu_has_room(self) -> bool:
        """Return whether the GPU takes another pass.

        Its process holds one pass for each of its threads, and `PASSES_AHEAD` more that wait. If it hands
        passes back faster than the cores decode them, it gets no more until they have caught up.
        """
        max_passes = GPU_THREADS + PASSES_AHEAD
        has_place = len(self._on_gpu) < max_passes
        few_wait_for_cores = len(self._handed_back) < max_passes
        return self._is_open and has_place and few_wait_for_cores

    def _is_for_gpu(self, file_pass: FilePass) -> bool:
        """Return whether the GPU may decode a pass; all other passes are for cores."""
        measures_shots = file_pass.stretch is not None  # decodes all of a part of a film to find its shots
        uses_measured_frames = len(file_pass.stretch_frames) > 0  # some come from such a pass
        if measures_shots or uses_measured_frames:
            return False
        needs_pictures = take_pictures(file_pass.tasks)  # False if all backbones take sound
        return needs_pictures and not self._why_not_on_gpu(file_pass)

    def _why_not_on_gpu(self, file_pass: FilePass) -> str:
        """Return why the GPU cannot decode a pass (clips of one file); "" if no reason is known."""
        if not file_pass.tasks:
            return ""
        first_task = file_pass.tasks[0]  # all tasks are of one file, and have the same settings
        if first_task.strict:
            return STRICT
        return self._reason_of_file.get(first_task.path, "")

    def _put_on_gpu(self, file_pass: FilePass) -> None:
        """Send a pass to the process of the GPU, and remember its clips until they are decoded."""
        key = next(self._pass_numbers)
        self._on_gpu[key] = dict(enumerate(file_pass.tasks))
        self._process.tell(_GpuKey(self._process_number), NewPass(key, file_pass, self.timeout_s))

    def _put_on_cores(self, file_pass: FilePass, reason: str) -> None:
        """Give a pass to a decode worker, and remember why cores decode it; "" if there is no reason."""
        key = self._put(file_pass)
        self._reason_of_pass[key] = reason

    def _handle_gpu_event(self, event: Event) -> list[DecodedClip]:
        """Handle a message of the GPU's process, or its end; return the clip that it brings, if any.

        When a pass ends, its clips that the GPU did not decode are queued for cores.

        Parameters
        ----------
        event
            A message (`GpuOpened`, `ClipGiven` or `PassEnded`), or the end of the process.

        Returns
        -------
        list of DecodedClip
            One clip or none.

        Raises
        ------
        ExtractError
            There is no GPU that decodes.
        """
        is_of_earlier_process = event.key != _GpuKey(self._process_number)
        if is_of_earlier_process:
            return []
        process_has_ended = event.kind != "item"
        if process_has_ended:
            self._end_process(how=str(event.value))
            return []

        message = event.value
        if isinstance(message, ClipGiven):
            del self._on_gpu[message.key][message.position]
            return [_remarked(message.clip, ON_GPU)]
        if isinstance(message, GpuOpened):
            self._allow_passes(message)
        elif isinstance(message, PassEnded):
            self._end_pass_on_gpu(message)
        return []

    def _allow_passes(self, message: GpuOpened) -> None:
        """Allow passes to be sent to the GPU's process, which has started and can decode.

        If it cannot, an error is raised when that is found at its first start. At a later start the driver
        has become unreliable, and cores decode alone.

        Parameters
        ----------
        message
            What is missing for decoding on the GPU; "" if nothing is.

        Raises
        ------
        ExtractError
            Something is missing at the first start.
        """
        is_first_start = self._process_number == 1
        if message.missing and is_first_start:
            raise ExtractError(no_gpu(message.missing))
        self._is_open = not message.missing

    def _end_pass_on_gpu(self, message: PassEnded) -> None:
        """Queue for cores the clips of an ended pass that the GPU did not decode, and remember why.

        Parameters
        ----------
        message
            Which pass has ended, why clips of it are left, and whether the reason holds for the whole file.
        """
        undecoded_tasks = list(self._on_gpu.pop(message.key).values())
        if not undecoded_tasks:
            return
        self._handed_back.append((FilePass(undecoded_tasks), message.reason))
        if message.for_whole_file:  # later passes over this file go to cores at once
            path = undecoded_tasks[0].path
            self._reason_of_file[path] = message.reason

    def _end_process(self, how: str) -> None:
        """Queue for cores what the GPU's ended process had not decoded, and start the process again.

        It is started `MAX_STARTS` times at most.

        Parameters
        ----------
        how
            How the process ended, for the remark on the clips. It ends itself when a clip takes too long.
        """
        self._is_open = False
        self._process.close()
        reason = f"its process ended ({how}), or a clip took longer than {self.timeout_s:g} s"
        for undecoded_tasks in self._on_gpu.values():
            if undecoded_tasks:
                self._handed_back.append((FilePass(list(undecoded_tasks.values())), reason))
        self._on_gpu.clear()
        if self._process_number < MAX_STARTS:
            self._process = self._start()


def _remarked(clip: DecodedClip, remark: str) -> DecodedClip:
    """Return a decoded clip with one more remark for the user, such as on what decoded it."""
    return replace(clip, remarks=(*clip.remarks, remark))


def decode_pool(
    workers: int,
    timeout_s: float,
    decoder: str,
    batch_size: int,
    backbones: Sequence[Backbone] = (),
) -> DecodePool:
    """Return the pool that decodes clips on this machine: on cores, or with the decoder `cuda` also on a GPU.

    Parameters
    ----------
    workers
        Number of decode workers, one for each core.
    timeout_s
        Time limit for one clip, in seconds.
    decoder
        Name of the decoder.
    batch_size
        Clips that are taken together.
    backbones
        The backbones that encode the clips. The GPU on which they run decodes, or GPU 0 if they run on none.
    """
    if decoder != CUDA:
        return DecodePool(workers, timeout_s, decoder, batch_size)
    gpu = MAKE_GPU(gpu_number(backbones))
    return GpuPool(workers, timeout_s, batch_size, gpu)


def gpu_number(backbones: Sequence[Backbone]) -> int:
    """Return the number of the GPU that decodes: the one that backbones run on; 0 if none runs on a GPU.

    If they run on several GPUs, it is that of the first backbone on one.
    """
    for backbone in backbones:
        device: Any = getattr(backbone.encode, "device", None)
        if getattr(device, "type", "") == "cuda":
            return int(device.index or 0)
    return 0


def refuse_without_gpu(backbones: Sequence[Backbone]) -> None:
    """Raise an error unless a GPU of this machine can decode video.

    The GPU is tried in a separate process, because a faulty driver may end the process that calls it.

    Parameters
    ----------
    backbones
        The GPU is the one on which they run, or GPU 0 if they run on none.

    Raises
    ------
    ExtractError
        The message says what is missing.
    """
    gpu = MAKE_GPU(gpu_number(backbones))
    with WorkerPool(workers=1, work=_send_missing) as pool:
        # The pool ends the process after the limit. A hanging driver may delay even that, so the wait for the
        # event has a limit too.
        pool.put("look for a GPU", gpu, limit_s=GPU_SEARCH_S)
        event = pool.get(timeout_s=2 * GPU_SEARCH_S)
    missing = "the driver of the card fails, or does not answer"
    if event is not None and event.kind == "item":
        missing = event.value
    if missing:
        raise ExtractError(no_gpu(missing))


def _send_missing(gpu: Any, parent: Parent) -> None:
    """Try a GPU in a process of its own: send what is missing to decode on it, "" if nothing is."""
    parent.send(gpu.missing())


def no_gpu(missing: str) -> str:
    """Return the message that no GPU can decode, and what to do.

    Parameters
    ----------
    missing
        What is missing, in words.
    """
    return f"--decoder {CUDA}: {missing}. Without the option the cores decode"
