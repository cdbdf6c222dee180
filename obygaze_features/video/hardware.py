"""Decode pictures on a GPU (NVIDIA's NVDEC), from exactly the packets that a core would decode.

libavcodec reads the headers, knows which pictures refer to which, and puts pictures into the order of
display, whoever computes their pixels. So packets are chosen, pictures skipped and frames numbered as on a
core (`decode`). Only the wanted frames are copied from the GPU. They are brought into the format in which a
core gives them, which loses nothing, and become RGB as all frames do (`picture`).

A GPU gives the bits of a core, or nothing: `NotOnGpu` is raised where the bits may be others. Whether a
GPU decoded a frame is told by the frame itself, because FFmpeg falls back to a core without a word. Damage
inside of a picture's data, which a core flags, cannot be told: a GPU may conceal it.

None of this was tried on a GPU yet.
"""

import ctypes
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import av
import numpy as np
from av import FFmpegError
from av.codec.hwaccel import HWAccel, hwdevices_available
from av.sidedata.sidedata import Type
from av.video.frame import VideoFrame

from obygaze_features.cores import no_gpu_here
from obygaze_features.errors import VideoError
from obygaze_features.video.decode import Frame, NotSafe
from obygaze_features.video.index import index_packets
from obygaze_features.video.packet_table import PacketTable
from obygaze_features.video.passes import (
    ConvertedFrame,
    FrameRequests,
    Window,
    WindowReader,
    WindowResult,
    Windows,
    missing_frames,
)
from obygaze_features.video.picture import RgbPicture, orientation
from obygaze_features.video.source import LIMITS, Source, opened
from obygaze_features.video.stills import is_still

T = TypeVar("T")

MIN_PIXELS = 1280 * 720
"""Pixels of the smallest pictures that go to a GPU. A GPU takes 50 to 70 ms to begin a file, in which cores
decode a good part of a clip of smaller pictures. Not tried on a GPU."""

MAX_COMPARED = 120
"""Frames of a group of pictures that are decoded both ways at most: a group may last for minutes."""

CORES_FORMATS = {
    "nv12": ("yuv420p", "yuvj420p"),
    "p010le": ("yuv420p10le",),
    "p016le": ("yuv420p12le",),
    "yuv444p": ("yuv444p",),
}
"""Format in which a GPU holds pictures -> formats in which a core gives the same samples, in other places of
memory: P010 and P016 have the bits of a sample at the upper end of 16."""

FILM_GRAIN = "film grain is put on by cores"
OTHER_BITS = "a card gives other bits"
DRIVER = ("nvcuda.dll", "nvcuvid.dll") if sys.platform == "win32" else ("libcuda.so.1", "libnvcuvid.so.1")
"""Libraries of NVIDIA's driver: for computing, and for video."""


class NotOnGpu(Exception):  # noqa: N818 - not an error: the signal to decode on a core
    """A GPU does not give these frames, or might give other bits than a core.

    Parameters
    ----------
    reason
        The reason, as text.
    for_whole_file
        Whether it holds for all frames of the file.
    """

    def __init__(self, reason: str, *, for_whole_file: bool = False) -> None:
        """Keep why the GPU is not used, and whether that holds for all frames of the file."""
        super().__init__(reason)
        self.for_whole_file = for_whole_file


class NotDecoded(NotOnGpu):
    """A GPU does not decode streams of a kind and size, or gives them in a format that is not known."""


class Gpu(Protocol):
    """A GPU that decodes pictures; it is pickled for the process that uses it."""

    @property
    def min_pixels(self) -> int:
        """Pixels of the smallest pictures that it decodes."""

    def missing(self) -> str:
        """Return what is missing to decode on the GPU; empty if nothing is."""

    def opened(self, path: Path) -> AbstractContextManager[Source]:
        """Open a file so that the GPU decodes its pictures."""

    def is_from_gpu(self, frame: VideoFrame) -> bool:
        """Return whether the GPU decoded a frame, and not a core in its place."""

    def to_host(self, frame: VideoFrame, pixels: str) -> VideoFrame:
        """Copy a frame from the GPU, converted to the pixel format in which the CPU would decode it.

        Raises
        ------
        NotDecoded
            The frame cannot be brought into that format without loss.
        """


@dataclass(frozen=True)
class NvidiaGpu:
    """A GPU of NVIDIA.

    Parameters
    ----------
    number
        Its number among the GPUs that this process may use.
    min_pixels
        Pixels of the smallest pictures that it decodes.
    """

    number: int = 0
    min_pixels: int = MIN_PIXELS

    def missing(self) -> str:
        """Return what is missing to decode on the GPU, as a phrase; empty if nothing is."""
        reason = no_gpu_here()
        if reason:
            return reason
        if "cuda" not in hwdevices_available():
            return f"the FFmpeg of PyAV {av.__version__} was built without CUDA"

        for library in DRIVER:
            try:
                ctypes.CDLL(library)
            except OSError:
                return (
                    f"{library} of NVIDIA's driver is not found; a container needs "
                    "NVIDIA_DRIVER_CAPABILITIES=compute,utility,video"
                )

        # All that is needed is there; the GPU itself may still refuse.
        try:
            self._accelerator().create(av.Codec("h264", "r"))
        except FFmpegError as error:
            return f"card {self.number} cannot be opened ({error.strerror})"
        return ""

    @contextmanager
    def opened(self, path: Path) -> Iterator[Source]:
        """Open a file so that the GPU decodes its pictures."""
        with opened(path, self._accelerator()) as source:
            # Frames with film grain say so only if they are asked to.
            source.context.options = LIMITS | {"export_side_data": "film_grain"}
            yield source

    def is_from_gpu(self, frame: VideoFrame) -> bool:
        """Return whether the GPU decoded a frame, and not a core in its place."""
        return frame.format.name == "cuda"

    def to_host(self, frame: VideoFrame, pixels: str) -> VideoFrame:
        """Copy a frame from the GPU, converted to the pixel format in which the CPU would decode it.

        The frame on the GPU holds its pixels in a format of the GPU, such as `nv12`. From it and the wanted
        one follows whether the conversion loses nothing.

        Parameters
        ----------
        frame
            A frame that the GPU decoded.
        pixels
            FFmpeg's name of the format in which a CPU would decode it, such as `yuv420p`.
        """
        gpu_format = frame.sw_format  # None if it is not known
        gpu_pixels = "" if gpu_format is None else gpu_format.name
        return to_core_format(frame, gpu_pixels, pixels)

    def _accelerator(self) -> HWAccel:
        """Return PyAV's setting to decode on this GPU, and to leave decoded frames there.

        By default PyAV copies every decoded frame to the host, also those that are not wanted.
        """
        return HWAccel("cuda", str(self.number), allow_software_fallback=True, is_hw_owned=True)


def to_core_format(frame: VideoFrame, gpu_pixels: str, pixels: str) -> VideoFrame:
    """Convert a frame that a GPU decoded to the pixel format in which the CPU decodes, without loss.

    Parameters
    ----------
    frame
        A frame on a GPU, which is copied to the host, or one on the host.
    gpu_pixels
        FFmpeg's name of the pixel format in which the GPU holds it; empty if it is not known.
    pixels
        FFmpeg's name of the pixel format in which the CPU would decode it.

    Raises
    ------
    NotDecoded
        It is not known how to convert the format without loss.
    """
    lossless_formats = CORES_FORMATS.get(gpu_pixels, ())
    if pixels not in lossless_formats:
        raise NotDecoded(f"a card gives {gpu_pixels or 'another format'} for {pixels}", for_whole_file=True)
    host = frame.reformat(format=pixels, threads=1)
    host.colorspace = frame.colorspace  # PyAV does not copy the tag as it is
    return host


class Sample(NamedTuple):
    """A frame of a file, by its number, and its picture as a core decodes it."""

    number: int
    picture: RgbPicture

    def compare(self, picture: RgbPicture) -> None:
        """Raise an error if the GPU's picture of this frame differs from the core's.

        Raises
        ------
        NotOnGpu
            It differs.
        """
        if not are_equal(picture, self.picture):
            raise NotOnGpu(f"{OTHER_BITS} of this file", for_whole_file=True)


class GpuReader(WindowReader[T]):
    """Reader of windows of one file, whose pictures a GPU decodes.

    Parameters
    ----------
    path
        A video file.
    requests
        As for `WindowReader`.
    gpu
        The GPU.
    sample
        A frame that is decoded with the others, and compared; None compares none.

    Raises
    ------
    VideoError
        The file cannot be read at all.
    """

    def __init__(
        self, path: Path, requests: FrameRequests[T], gpu: Gpu, sample: Sample | None = None
    ) -> None:
        """Read the packet table of the file; the GPU is not used before `read_all`."""
        super().__init__(path, requests, strict=False)
        self._gpu = gpu
        self._sample = sample
        self._close_files_opened_for_cores()

    def _close_files_opened_for_cores(self) -> None:
        """Close the file if it is still open since its packets were read.

        A small file stays open for a `Decoder` on a core to go on with. A GPU needs it opened in its own way.
        """
        while self._reusable:
            _, still_open = self._reusable.pop()
            still_open.close()

    @contextmanager
    def _opened(self) -> Iterator[Source]:
        """Open the file so that the GPU decodes it."""
        with self._gpu.opened(self.path) as source:
            yield source

    def read_all(self, windows: Windows) -> Iterator[WindowResult[T]]:
        """Decode the frames of all windows (time spans of the file) on the GPU.

        Yields the number of each window with its frames by request, or with the error.

        Parameters
        ----------
        windows
            Start and end of each, in seconds.

        Raises
        ------
        NotOnGpu
            The GPU cannot decode the remaining windows exactly; a core is to decode those not yielded.
        """
        if self.lacks_keys:  # all frames are to be decoded first, which a core does
            raise NotOnGpu("which frames are key frames shows when all are decoded", for_whole_file=True)
        pending, errors = self.choose_frames(Window(number, span) for number, span in enumerate(windows))
        yield from errors

        frame_numbers = set(missing_frames(pending))  # of all windows
        if self._sample is not None:  # `convert` compares this frame with what a core decoded
            frame_numbers.add(self._sample.number)
        frames = self.decode_sparsely(sorted(frame_numbers))
        try:
            # Yields the windows that are complete, and removes them from `pending`.
            yield from self.distribute(self.convert(frames), pending)
        except NotSafe as reason:
            raise NotOnGpu(f"{reason}") from reason

        has_incomplete_windows = len(pending) > 0
        if has_incomplete_windows:
            raise NotOnGpu("frames did not come out of the card")

    def convert(self, frames: Iterable[Frame]) -> Iterator[ConvertedFrame[T]]:
        """Copy frames from the GPU and convert them to RGB pictures; check one of them.

        One frame of the file, the sample, was decoded on a core before. If it is among these frames, both
        pictures are compared. What is yielded is as in `WindowReader.convert`.

        Raises
        ------
        NotOnGpu
            The GPU's picture of the sample differs from the core's, or a frame cannot be copied exactly.
        """
        for number, picture, result_of_request in super().convert(self._on_host(frames)):
            if self._sample is not None and number == self._sample.number:
                self._sample.compare(picture)
            yield number, picture, result_of_request

    def _on_host(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """Copy frames from the GPU, and refuse those that the CPU would decode to other pixel values.

        Raises
        ------
        NotDecoded
            The CPU decoded a frame in place of the GPU.
        NotOnGpu
            A frame has film grain, which the CPU adds when it decodes, and the GPU does not.
        """
        stream = self.table.stream
        for number, frame in frames:
            self._refuse_different_pixels(frame)
            yield number, self._gpu.to_host(frame, stream.pixels)

    def _refuse_different_pixels(self, frame: VideoFrame) -> None:
        """Raise an error if the CPU would decode a frame to other pixel values than the GPU.

        The whole file is then decoded by the CPU, so that all frames of a clip are of one decoder.

        Raises
        ------
        NotDecoded
            The CPU decoded the frame in place of the GPU, which lacks the codec.
        NotOnGpu
            The frame has film grain, which only the CPU adds.
        """
        if not self._gpu.is_from_gpu(frame):
            raise NotDecoded(f"a card does not decode {kind_of(self.table)}", for_whole_file=True)
        _, names_of_side_data = orientation(frame)
        if Type.FILM_GRAIN_PARAMS.name in names_of_side_data:
            raise NotOnGpu(FILM_GRAIN, for_whole_file=True)


def are_equal(one: RgbPicture, other: RgbPicture) -> bool:
    """Return whether two pictures have the same pixels, flags and remarks on their conversion."""
    facts = (one.shown, one.corrupt, one.remarks)
    other_facts = (other.shown, other.corrupt, other.remarks)
    return facts == other_facts and np.array_equal(one.rgb, other.rgb)


def kind_of(table: PacketTable) -> str:
    """Return the codec and the format of pixels of a stream as text, such as `h264, yuv420p`."""
    return f"{table.stream.codec}, {table.stream.pixels}"


class GpuCheck(NamedTuple):
    """Why the GPU cannot decode a file (empty if it may), and width and height of its pictures."""

    reason: str
    width: int = 0
    height: int = 0


def check_for_gpu(path: Path, min_pixels: int) -> GpuCheck:
    """Check without decoding whether a GPU may decode a file.

    Parameters
    ----------
    path
        A file.
    min_pixels
        Pixels of the smallest pictures that the GPU decodes.

    Raises
    ------
    VideoError
        The file cannot be read at all.
    """
    if is_still(path):
        return GpuCheck("still images are read by cores")
    with opened(path) as source:
        width = source.context.width
        height = source.context.height
    if width * height < min_pixels:
        return GpuCheck(f"pictures of under {min_pixels:,} pixels take cores less time")
    table = index_packets(path)
    if table.unsafe:
        return GpuCheck(f"all frames are to be decoded: {table.unsafe}")
    if not table.random_access.any():
        return GpuCheck("it says nowhere that decoding can start")
    return GpuCheck("", width, height)


def group_around(table: PacketTable, frame: int) -> range:
    """Return the numbers of the frames in the group of pictures that holds a frame, in display order.

    A group begins with a frame at which decoding can start, and ends before the next one. A frame that is
    shown before the first group belongs to none; the first group is returned for it.
    """
    begins_group = table.random_access[table.shown]  # of each frame in display order
    group_starts = np.flatnonzero(begins_group).tolist()
    n_started = bisect_right(group_starts, frame)  # groups that begin with this frame or before it
    group = max(n_started - 1, 0)
    edges = [*group_starts, len(table.shown)]
    return range(edges[group], edges[group + 1])


def sample_of(path: Path, number: int) -> Sample:
    """Decode one frame on a core, to compare it with the GPU's.

    Raises
    ------
    NotOnGpu
        A core does not decode it without errors.
    """
    ((_, picture),) = _decode_on_core(path, [number])
    return Sample(number, picture)


def find_difference(path: Path, frames: Sequence[int], gpu: Gpu) -> str:
    """Decode frames on a core and on a GPU, and say whether their bits differ; empty if they are equal.

    Parameters
    ----------
    path
        A video file for which `check_for_gpu` gives no reason.
    frames
        Numbers of frames, rising.
    gpu
        The GPU.

    Raises
    ------
    NotOnGpu
        A core or the GPU does not decode them without errors, or the GPU not at all (`NotDecoded`).
    """
    reader: GpuReader[Any] = GpuReader(path, (), gpu)
    # Frame by frame, so that only two pictures are in memory.
    from_gpu = reader.convert(reader.decode_sparsely(frames))
    for number, expected in _decode_on_core(path, frames):
        try:
            gpu_number, picture, _ = next(from_gpu)
        except (NotSafe, VideoError, StopIteration) as error:  # StopIteration: the GPU gives fewer frames
            raise NotOnGpu("a card does not decode it without errors", for_whole_file=True) from error
        is_same_frame = gpu_number == number
        if not is_same_frame or not are_equal(picture, expected):
            return f"{OTHER_BITS} of {kind_of(reader.table)}"
    return ""


def _decode_on_core(path: Path, frames: Sequence[int]) -> Iterator[tuple[int, RgbPicture]]:
    """Decode frames on a core, to compare them with those of a GPU; yield number and picture of each.

    Raises
    ------
    NotOnGpu
        A core cannot decode them exactly, as they are damaged, so that there is nothing to compare with. The
        file is then to be read on a core, which notices damage and describes it, as a GPU does not.
    """
    no_requests: FrameRequests[Any] = ()  # pictures are wanted, and nothing that is computed from them
    reader: WindowReader[Any] = WindowReader(path, no_requests, strict=False)
    try:
        for number, picture, _ in reader.convert(reader.decode_sparsely(frames)):
            yield number, picture
    except (NotSafe, VideoError) as reason:
        raise NotOnGpu("damage is told by cores", for_whole_file=True) from reason
