"""Read the frames that sampling rules select from video files and still images."""

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, overload

import av
import numpy as np
import PIL
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.errors import VideoError
from obygaze_features.io import local_path
from obygaze_features.video.file_facts import file_state
from obygaze_features.video.frames import Frames, Probe
from obygaze_features.video.index import index_packets
from obygaze_features.video.passes import FrameRequests, Known, Pixels, WindowReader, WindowResult, Windows
from obygaze_features.video.sampling import Sampling, choose, describe_gaps
from obygaze_features.video.source import check_file, naming_file
from obygaze_features.video.stills import is_still, read_still

T = TypeVar("T")
CONVERSION = "3"
"""Version of how pixels become RGB. Version 1 darkened pictures of 10 bits, and ignored crop, transparency
and the range of grey. Version 2 ignored tags of colours that only the container has, and crops at the left
that H.264 and HEVC state."""


@overload
def read_frames(
    path: str | Path,
    sampling: Sampling,
    *,
    start_s: float | None = None,
    end_s: float | None = None,
    strict: bool = False,
) -> Frames[Pixels]: ...
@overload
def read_frames(
    path: str | Path,
    sampling: Sampling,
    *,
    start_s: float | None = None,
    end_s: float | None = None,
    strict: bool = False,
    each: Callable[[Pixels], T],
) -> Frames[T]: ...
@checked
def read_frames(
    path: str | Path,
    sampling: Sampling,
    *,
    start_s: float | None = None,
    end_s: float | None = None,
    strict: bool = False,
    each: Callable[[Pixels], T] | None = None,
) -> Frames[T] | Frames[Pixels]:
    """Read exactly the frames that a sampling rule selects.

    Parameters
    ----------
    path
        A video file, or a still image, which has one frame at time 0.
    sampling
        The rule, e.g. ``uniform(32)``.
    start_s, end_s
        Span to sample inside, in seconds of the player's clock: start inclusive, end exclusive.
    strict
        Refuse a video with detected damage, and enable the decoder's stricter error detection.
    each
        Function applied to every wanted frame (RGB uint8 [H, W, 3], full size, upright) when it is decoded,
        so that only one full-size frame is in memory. By default the frames themselves are kept.

    Returns
    -------
    Frames[T]
        Results of `each`, in sampling order, with index, time and how they were read.

    Raises
    ------
    VideoError
        The file can't be read, or can't give these frames.

    Examples
    --------
    >>> from obygaze_features import read_frames, uniform
    >>> frames = read_frames("videos/clip.mp4", uniform(4))
    >>> frames.index.tolist()
    [0, 4, 8, 12]
    >>> frames.images[0].shape
    (48, 64, 3)
    """
    apply: Callable[[Pixels], Any] = each or (lambda frame: frame)
    requests: FrameRequests[Any] = [(sampling, apply)]
    results = read_windows(local_path(path), [(start_s, end_s)], requests, strict=strict)
    _, frames_or_error = next(results)
    if isinstance(frames_or_error, VideoError):
        raise frames_or_error
    (frames,) = frames_or_error  # of the only request
    return frames


@checked
def read_windows(
    path: str | Path,
    windows: Windows,
    requests: FrameRequests[T],
    *,
    strict: bool = False,
    known: Mapping[int, Known[T]] | None = None,
) -> Iterator[WindowResult[T]]:
    """Read many windows of one file in one pass that decodes shared frames once.

    Parameters
    ----------
    path
        A video file, or a still image.
    windows
        Start (inclusive) and end (exclusive) of each, in seconds of the player's clock; None leaves a side
        open. Windows may overlap and be in any order.
    requests
        Sampling rules, each with the function applied to its frames; all rules are applied to every window.
    strict
        Refuse windows with detected damage, and enable the decoder's stricter error detection.
    known
        Frame number -> results that `read_stretch` computed for the same requests. Windows that need no other
        frames are not decoded.

    Yields
    ------
    int
        Position of the window in `windows`. A window is yielded as soon as its last frame is decoded. So
        windows come in the order of their ends, except those that need a second attempt.
    tuple of Frames, or VideoError
        The frames of each request, or the error. They are as if the window were read alone, except that
        `decoded` counts the frames decoded since the previous window.

    Raises
    ------
    VideoError
        The file can't be read at all.

    Examples
    --------
    >>> windows = [(start, start + 8.0) for start in range(0, 600, 4)]
    >>> for number, result in read_windows("film.mkv", windows, [(uniform(32), shrink)]):  # doctest: +SKIP
    ...     print(windows[number], result)
    """
    path = Path(path)
    if not is_still(path):
        yield from WindowReader(path, requests, strict=strict).read(windows, known)
        return
    for number, (start_s, end_s) in enumerate(windows):
        has_span = start_s is not None or end_s is not None
        try:
            yield number, read_still(path, requests, spanned=has_span, strict=strict)
        except VideoError as error:
            yield number, error


@checked
def probe(path: str | Path) -> Probe:
    """Return properties of a video or still image without decoding: frames, duration, damage and more.

    It takes tens of milliseconds per clip.

    Raises
    ------
    VideoError
        The file can't be opened.

    Examples
    --------
    >>> from obygaze_features import probe
    >>> probe("videos/clip.mp4").frames
    16
    """
    path = local_path(path)
    if is_still(path):
        check_file(path)
        n_bytes, _ = file_state(path)
        return Probe(bytes=n_bytes, start_s=0.0, duration_s=math.nan, frames=1, damage="")

    table = index_packets(path)
    times = table.frame_times
    losses = [loss for _, loss in table.losses]
    gap = describe_gaps(times.gaps(None, None, table.holes))
    if gap:
        losses.append(gap)
    first_s = float(times.time_s[0])
    n_bytes, _ = file_state(path)
    return Probe(
        bytes=n_bytes,
        start_s=first_s,
        duration_s=times.end_s - first_s,
        frames=len(times),
        damage="; ".join(losses),
        besides=table.besides,
        stream=table.stream,
        stated_end_s=table.stated_end_s,
    )


@checked
def frame_times(path: str | Path) -> NDArray[np.float64]:
    """Read when each frame of a video is shown, from its packets: [L] seconds of the player's clock.

    Raises
    ------
    VideoError
        The file can't be opened, or does not say when its frames are shown.
    """
    path = local_path(path)
    times = index_packets(path).frame_times
    with naming_file(path):
        times.need_times("so windows can't count them")
    return times.time_s


@checked
def sampled_times(
    path: Path, sampling: Sampling, start_s: float | None, end_s: float | None
) -> tuple[NDArray[np.int64], NDArray[np.float64], float]:
    """Find which frames of a time span a sampling rule selects, and their times, without decoding.

    Parameters
    ----------
    path
        A video file.
    sampling
        The rule.
    start_s, end_s
        The span in seconds; None leaves a side open.

    Returns
    -------
    NDArray[np.int64]
        Shape [F]: numbers of the frames in the whole video.
    NDArray[np.float64]
        Shape [F]: their times in seconds.
    float
        End of the span in seconds, or of the video if it ends before.

    Raises
    ------
    VideoError
        The file can't be opened, or can't give these frames.
    """
    all_frames = index_packets(path).frame_times
    with naming_file(path):
        frames = all_frames.within(start_s, end_s)
        index = choose(sampling, frames)
    span_end_s = all_frames.end_s if end_s is None else min(end_s, all_frames.end_s)
    return index, all_frames.time_s[index], span_end_s


@checked
def decoder_versions(*, stills: bool = False) -> dict[str, str]:
    """Return the versions of PyAV, its FFmpeg, and the conversion to RGB; for still images also Pillow's."""
    versions = {"av": av.__version__, "ffmpeg": av.ffmpeg_version_info, "pixels": CONVERSION}
    if stills:
        versions["pillow"] = PIL.__version__
    return versions
