"""Decode passes over films on a GPU ("card"), in one process with several threads.

A GPU's driver takes some 400 MB for each process, and may take a process down: so all threads of a GPU are
in one process, which can be killed, and which the main process sees through messages alone (`gpu_pool`).
What the GPU does not decode to the same bits as a core is handed back with the reason.
"""

import faulthandler
import os
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np

from obygaze_features.errors import first_line
from obygaze_features.extraction.decode_clips import (
    DecodedClip,
    DecodeTask,
    Pixels,
    decode_clips,
    decode_with_av,
)
from obygaze_features.extraction.films import FilePass
from obygaze_features.extraction.keep_frames import with_frame_cache
from obygaze_features.video import share_in
from obygaze_features.video.hardware import (
    MAX_COMPARED,
    Gpu,
    GpuCheck,
    GpuReader,
    NotDecoded,
    NotOnGpu,
    check_for_gpu,
    find_difference,
    group_around,
    kind_of,
    sample_of,
)
from obygaze_features.video.index import index_packets
from obygaze_features.video.packet_table import PacketTable
from obygaze_features.video.passes import FrameRequests, WindowResult, Windows
from obygaze_features.workers import Parent

GPU_THREADS = 4
"""Passes that are decoded at once on a GPU: while one is decoded, frames of others are converted to RGB."""

DAMAGED_CLIPS = "damage is told by cores"
"""Reason why a pass leaves clips to cores though the GPU decoded all of it."""


class GpuOpened(NamedTuple):
    """Message that the process has looked for its GPU: what is missing to decode on it, or ""."""

    missing: str


class ClipGiven(NamedTuple):
    """Message with a clip that the GPU has decoded, and its position in the pass."""

    key: Hashable
    position: int
    clip: DecodedClip


class PassEnded(NamedTuple):
    """Message that a pass has ended: why clips of it are left, and whether that holds for the whole file."""

    key: Hashable
    reason: str = ""
    for_whole_file: bool = False


class NewPass(NamedTuple):
    """Message with a pass to decode, and the seconds that one clip may take."""

    key: Hashable
    file_pass: FilePass
    limit_s: float


def serve_gpu(_task: object, parent: Parent, *, gpu: Gpu, folder: Path, n_threads: int) -> None:
    """Be the process of a GPU: decode the clips that the main process sends, until this process is killed.

    Clips of one file are sent together, as a pass. Several passes are decoded at once, each in a thread.

    Parameters
    ----------
    _task
        Unused: the work comes as messages of the main process.
    parent
        The main process. It sends a `NewPass` for each pass, and gets `GpuOpened`, then `ClipGiven` for each
        decoded clip and `PassEnded` for each pass.
    gpu
        The GPU.
    folder
        Where processes share what they compute for a large file.
    n_threads
        Passes that are decoded at once.
    """
    share_in(folder)
    missing = gpu.missing()
    parent.send(GpuOpened(missing))
    if missing:
        return
    waiting: queue.SimpleQueue[NewPass] = queue.SimpleQueue()
    decoder = GpuDecoder(gpu, parent)
    for _number in range(n_threads):
        thread = threading.Thread(target=decoder.decode_all, args=(waiting,), daemon=True)
        thread.start()
    while True:  # until this process is killed
        waiting.put(parent.receive())


class GpuDecoder:
    """Decode passes on one GPU, in several threads.

    It remembers which kinds of streams the GPU decodes to the same bits as a core, which sizes of them it
    does not decode, and what is known of files.

    Parameters
    ----------
    gpu
        The GPU.
    parent
        Receives what is decoded.
    """

    def __init__(self, gpu: Gpu, parent: Parent) -> None:
        """Begin without results of earlier checks and comparisons, which all threads share."""
        self._gpu = gpu
        self._parent = parent  # the main process, which gets what is decoded
        self._watch = Watch()  # kills this process if a clip takes too long

        # Results of checks. The GPU must give the same bits as a core.
        self._check_of_file: dict[Path, GpuCheck] = {}  # whether it may decode a file, by the file's headers
        self._compared_files: set[Path] = set()  # of which one picture was compared with that of a core
        # Kind of stream (codec and format of pixels) -> how the pictures differ from a core's; "": they don't
        self._difference_of_kind: dict[str, str] = {}
        # Kind of stream -> lock that a thread holds while it compares the first stream of this kind
        self._lock_of_kind: dict[str, threading.Lock] = defaultdict(threading.Lock)
        self._not_decoded: set[_KindAndSize] = set()  # streams that the GPU does not decode at all

    def decode_all(self, waiting: "queue.SimpleQueue[NewPass]") -> None:
        """Decode passes (clips of one file each) from a queue, one after the other, for ever.

        It runs in a thread. The main process gets a message at the end of each pass. If a pass gives no clip
        within its time limit, this process is killed, because the GPU's driver may hang.

        Parameters
        ----------
        waiting
            The passes, each with its time limit.
        """
        while True:
            new_pass = waiting.get()
            self._watch.expect(new_pass.key, new_pass.limit_s)
            try:
                end_message = self._decode(new_pass)
            except Exception as error:  # noqa: BLE001 - whatever it is, a core decodes what is left
                end_message = PassEnded(new_pass.key, _reason_of(error))
            self._watch.forget(new_pass.key)
            self._parent.send(end_message)

    def _decode(self, new_pass: NewPass) -> PassEnded:
        """Decode clips of one file and send the undamaged ones; return the message that the pass has ended.

        The main process then lets cores decode all clips of the pass that it did not get: damaged ones,
        because cores describe the damage, and those after an error.
        """
        # An error of the GPU must not reach `decode_clips`, which would try each clip again on the GPU. So
        # `_decode_until_error` ends without raising it, and puts it into this list.
        errors: list[Exception] = []
        decode_on_gpu = partial(self._decode_until_error, errors=errors)
        # Frames that earlier runs have kept on the disk are read, and those decoded now are kept.
        decode = with_frame_cache(decode_on_gpu)
        for position, clip in decode_clips(new_pass.file_pass.tasks, decode, time.thread_time):
            self._watch.expect(
                new_pass.key, new_pass.limit_s
            )  # the next clip gets the whole time limit again
            if clip.status == "ok":
                self._parent.send(ClipGiven(new_pass.key, position, clip))
        if not errors:  # only damaged clips are left, if any
            return PassEnded(new_pass.key, DAMAGED_CLIPS)
        error = errors[0]
        for_whole_file = isinstance(error, NotOnGpu) and error.for_whole_file
        return PassEnded(new_pass.key, _reason_of(error), for_whole_file)

    def _decode_until_error(
        self, tasks: Sequence[DecodeTask], errors: list[Exception]
    ) -> Iterator[tuple[int, DecodedClip]]:
        """Decode clips of one file on the GPU; yield each with its position in `tasks`, up to an error.

        The error is added to `errors` instead of raised. If it were raised, `decode_clips` would try
        each of the remaining clips alone on the GPU, but cores are to decode them.
        """
        try:
            yield from decode_with_av(tasks, read=self._read)
        except Exception as error:  # noqa: BLE001 - a core decodes what is left, and says what is wrong
            errors.append(error)

    def _read(
        self,
        path: Path,
        windows: Windows,
        requests: FrameRequests[Pixels],
        **settings: object,
    ) -> Iterator[WindowResult[Pixels]]:
        """Decode frames of some time spans of a file on the GPU; the GPU's counterpart of `read_windows`.

        The GPU must give the same bits as a core. So before the first windows of a file, one of its pictures
        is compared with a core's, and for the first file of a kind of stream several.

        Parameters
        ----------
        path
            The video.
        windows
            Start and end of each span in seconds.
        requests
            Which frames to take of each span, and how to prepare them.
        settings
            The other settings of `read_windows`, `strict` and `known`; only their defaults are supported.

        Raises
        ------
        NotOnGpu
            A core must read them: a setting is not its default, or the GPU does not decode this file or its
            kind of stream to the same bits.
        NotDecoded
            The GPU gives no pictures of streams of this kind and size.
        """
        # The defaults (`strict` False, `known` None) are all false.
        has_other_settings = any(settings.values())
        if has_other_settings:
            raise NotOnGpu("a core reads these windows")
        check = self._checked_headers(path)
        if check.reason:  # why the file's headers rule out the GPU; empty if they do not
            raise NotOnGpu(check.reason, for_whole_file=True)

        # The GPU decodes the frames from one key frame to the next together. Such a group is there anyway for
        # the first window, so its frames are the ones that are compared.
        packets = index_packets(path)
        stream = _KindAndSize(kind_of(packets), check.width, check.height)
        compared_frames = group_around(packets, _first_frame(packets, windows))

        try:
            self._refuse_different_pictures(path, stream, compared_frames[:MAX_COMPARED])
            picture_of_core = None  # with which the reader compares the GPU's; None: it was compared before
            if path not in self._compared_files:
                picture_of_core = sample_of(path, compared_frames[0])
            yield from GpuReader(path, requests, self._gpu, picture_of_core).read_all(windows)
        except NotDecoded:  # other files of this kind and size are left to cores at once
            self._not_decoded.add(stream)
            raise
        self._compared_files.add(path)

    def _checked_headers(self, path: Path) -> GpuCheck:
        """Return whether the GPU may decode a file, by its headers, which are read once."""
        if path not in self._check_of_file:
            self._check_of_file[path] = check_for_gpu(path, self._gpu.min_pixels)
        return self._check_of_file[path]

    def _refuse_different_pictures(self, path: Path, stream: "_KindAndSize", frames: Sequence[int]) -> None:
        """Refuse a stream whose pictures from the GPU differ from a core's, or that it does not decode.

        For the first file of a kind of stream, some frames are decoded by the GPU and by a core, and the
        result is stored. Threads with another file of this kind wait until it is known.

        Parameters
        ----------
        path, stream
            The file, and the kind and size of its stream.
        frames
            Numbers of the frames that are compared.

        Raises
        ------
        NotOnGpu
            With the reason.
        """
        kind = stream.kind
        with self._lock_of_kind[kind]:
            if stream in self._not_decoded:
                raise NotOnGpu(f"a card does not decode {kind} of this size", for_whole_file=True)
            if kind not in self._difference_of_kind:
                try:
                    self._difference_of_kind[kind] = find_difference(path, frames, self._gpu)
                except NotDecoded:  # the GPU gives no pictures of this kind and size, another size may work
                    self._not_decoded.add(stream)
                    raise
            difference = self._difference_of_kind[kind]
        if difference:
            raise NotOnGpu(difference, for_whole_file=True)


class _KindAndSize(NamedTuple):
    """Kind of a stream (`kind_of`), with width and height of its pictures."""

    kind: str
    width: int
    height: int


def _first_frame(table: PacketTable, windows: Windows) -> int:
    """Return the number of the first frame from the start of the earliest window on; 0 if there is none.

    Parameters
    ----------
    table
        The packets of the file, with the time of each frame.
    windows
        Start and end of each window in seconds.
    """
    first_s = min(start_s or 0.0 for start_s, _ in windows)  # a start of None is that of the file
    later_frames = np.flatnonzero(table.frame_times.time_s >= first_s)
    return int(later_frames[0]) if len(later_frames) else 0


def _reason_of(error: Exception) -> str:
    """Return in one line why a GPU did not decode clips."""
    if isinstance(error, NotOnGpu):
        return str(error)
    return f"a card failed: {type(error).__name__}: {first_line(error, longest=200)}"


class Watch:
    """Kill this process if a pass over a file gives no result within its time limit.

    The timer of `faulthandler` runs in a separate thread, so it works even if the driver hangs.
    """

    def __init__(self) -> None:
        """Begin without time limits."""
        self._ends_s: dict[Hashable, float] = {}  # pass -> when its time is over (`time.monotonic`)
        self._changing = threading.Lock()  # held while the time limits change
        # The timer prints a traceback before it ends the process; it goes to a file that discards it.
        self._null_file: TextIO = open(os.devnull, "w")  # noqa: SIM115, PTH123

    def expect(self, key: Hashable, limit_s: float) -> None:
        """Start, or start again, the time limit of a pass over a file; the process is killed at its end.

        Parameters
        ----------
        key
            The pass.
        limit_s
            Seconds from now within which the pass must give a result.
        """
        with self._changing:
            self._ends_s[key] = time.monotonic() + limit_s
            self._set_timer()

    def forget(self, key: Hashable) -> None:
        """Remove the time limit of a pass, which has ended."""
        with self._changing:
            del self._ends_s[key]
            self._set_timer()

    def _set_timer(self) -> None:
        """Set the timer that ends this process to the earliest time limit; stop it if there is none.

        Python's `faulthandler` can print tracebacks after some seconds and then end the process: here only
        the latter is wanted.
        """
        faulthandler.cancel_dump_traceback_later()
        if not self._ends_s:
            return
        left_s = min(self._ends_s.values()) - time.monotonic()
        left_s = max(left_s, 1e-3)  # the timer takes no number of seconds that is not above 0
        faulthandler.dump_traceback_later(left_s, exit=True, file=self._null_file)
