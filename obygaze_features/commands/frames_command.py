"""`obygaze frames`: show or save the frames an extraction would use."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

import obygaze_features as of
from obygaze_features import video as videos
from obygaze_features.errors import ManifestError, VideoError
from obygaze_features.io import refuse_existing, whole_file, write_whole
from obygaze_features.options import FILE, Answer, Number
from obygaze_features.screen import table
from obygaze_features.signatures import argument, command, option
from obygaze_features.text import counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Time(click.types.FloatParamType):
    """Parameter type of times in seconds, which may be written as a clock: `1:01:30.5`."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert a typed time to seconds: "90.5", or a clock such as "1:01:30.5".

        click calls this method with the value, the parameter and the context of the command.
        """
        from obygaze_features.manifest import time_code

        try:
            time_s = time_code(str(value).strip())
        except ManifestError as error:
            self.fail(str(error), param, ctx)
        if time_s is None:
            self.fail("is empty", param, ctx)
        return time_s


@command()
def frames(
    video: Annotated[Path, argument()],
    *,
    n: Annotated[
        int | None,
        option(
            "Take n evenly spaced frames: frame int(i * L / n) of L frames.  [default: 32; 1 for a "
            "still image]",
            type=click.IntRange(1),
        ),
    ] = None,
    indices: Annotated[
        str | None,
        option(
            "Take the frames with these indices, counted from 0 over the whole video, such as 0,5,390.",
            metavar="LIST",
        ),
    ] = None,
    rate: Annotated[
        float | None,
        option(
            "Take the frame nearest to every 1/FPS seconds.", name="fps", type=Number(min=0, min_open=True)
        ),
    ] = None,
    keyframes: Annotated[
        int | None,
        option("Take the keyframe nearest to each of this many evenly spaced times.", type=click.IntRange(1)),
    ] = None,
    start: Annotated[
        float | None,
        option("Start of sampling, in seconds or as a clock (1:01:30.5), as shown by a player.", type=Time()),
    ] = None,
    end: Annotated[
        float | None, option("End of sampling (exclusive), in the same formats.", type=Time())
    ] = None,
    npz: Annotated[
        Path | None,
        option("Save the frames to this file: arrays frames (uint8 [F,H,W,3]), index and time_s.", type=FILE),
    ] = None,
    sheet: Annotated[
        Path | None,
        option(
            "Save a contact sheet to this .png file: thumbnails of the frames with index and time.", type=FILE
        ),
    ] = None,
    force: Annotated[bool, option("Replace existing files.")] = False,
) -> Answer:
    """List or save the frames of VIDEO that an extraction would use.

    Print the index and time of each frame. Save the frames themselves only with --npz or --sheet. A still
    image has one frame, at time 0.

    \b
    Examples:
      obygaze frames clip.mp4           # which 32 frames, and when they are shown
      obygaze frames clip.mp4 --indices 0,5,390 --npz f.npz   # these, full size
      obygaze frames film.mkv --start 61.5 --end 74 --sheet scene.png
    """
    from obygaze_features.video.sheet import contact_sheet, thumbnail

    sampling = chosen_sampling(n, indices, rate, keyframes, default=1 if videos.is_still(video) else 32)
    check_output(npz, ".npz", "--npz", force=force)
    check_output(sheet, ".png", "--sheet", force=force)
    # Only --npz needs whole frames: otherwise each is made small at once, which saves memory.
    keeps_whole_frames = npz is not None
    make_small_or_keep = _same_frame if keeps_whole_frames else thumbnail
    taken = of.read_frames(video, sampling, start_s=start, end_s=end, each=make_small_or_keep)
    if npz is not None:
        save_npz(npz, video, taken)
    if sheet is not None:
        pictures = [thumbnail(image) for image in taken.images] if keeps_whole_frames else taken.images
        write_whole(sheet, contact_sheet(pictures, taken.index, taken.time_s))
    document = as_document(video, sampling, start, end, taken)
    remarks = [f"saved {path}" for path in (npz, sheet) if path]
    return Answer(document, as_table(video, taken), remarks)


def _same_frame(frame: "NDArray[np.uint8]") -> "NDArray[np.uint8]":
    """Return a frame as it is."""
    return frame


def chosen_sampling(
    n: int | None, indices: str | None, rate: float | None, keyframes: int | None, *, default: int
) -> "videos.Sampling":
    """Return the sampling rule (which frames to take) that the options of `obygaze frames` name.

    Parameters
    ----------
    n
        --n: this many evenly spaced frames.
    indices
        --indices: the frames with these numbers, such as "0,5,390".
    rate
        --fps: this many frames a second.
    keyframes
        --keyframes: this many key frames.
    default
        Number of evenly spaced frames if all of these are None.

    Raises
    ------
    click.UsageError
        Several options are given, or one has an invalid value.
    """
    options = {"--n": n, "--indices": indices, "--fps": rate, "--keyframes": keyframes}
    names = [name for name, value in options.items() if value is not None]
    if len(names) > 1:
        raise click.UsageError(f"{' and '.join(names)} cannot be combined: each is a way to choose frames")
    try:
        if indices is not None:
            return videos.at(int(index) for index in indices.split(","))
        if rate is not None:
            return videos.fps(rate)
    except VideoError as error:
        raise click.BadParameter(str(error), param_hint=names[0]) from None
    except ValueError:
        raise click.BadParameter(
            f"whole numbers joined by commas are expected, not {indices!r}", param_hint=names[0]
        ) from None
    if keyframes is not None:
        return videos.keyframes(keyframes)
    return videos.uniform(n or default)


def check_output(path: Path | None, suffix: str, option_name: str, *, force: bool) -> None:
    """Check a file to write: it must have the right suffix, and must not exist unless `force` is set.

    Parameters
    ----------
    path
        The file; None if none is to be written.
    suffix
        The suffix that it must have.
    option_name
        The option that names it, for messages.
    force
        Whether an existing file is replaced.
    """
    if path is None:
        return
    if path.suffix.lower() != suffix:
        raise click.UsageError(f"{option_name} {path}: name it {suffix}")
    refuse_existing(path, force=force)


def save_npz(path: Path, video: Path, taken: "videos.Frames[NDArray[np.uint8]]") -> None:
    """Save the frames' pixels [F, H, W, 3], indices [F] and times [F] in one .npz file.

    The same frames give the same bytes, as numpy writes no dates.

    Parameters
    ----------
    path
        The file to write.
    video, taken
        The video, and the frames that were taken of it.

    Raises
    ------
    VideoError
        The frames have different sizes.
    """
    import numpy as np

    if len({picture.shape for picture in taken.images}) > 1:
        raise VideoError("its pictures change size, so they cannot be saved as one array", video)
    with whole_file(path) as partial, partial.open("wb") as file:
        np.savez(file, frames=np.stack(taken.images), index=taken.index, time_s=taken.time_s)


def as_table(video: Path, taken: "videos.Frames[NDArray[np.uint8]]") -> str:
    """Format frames for printing: lines on how they were read, then a table of indices and times.

    Parameters
    ----------
    video, taken
        The video, and the frames that were taken of it.
    """
    size = f"{taken.width}x{taken.height}"
    if taken.rotation:
        size += f", turned {taken.rotation} degrees clockwise"
    method: str = taken.method
    if taken.why_sequential:
        method += f" ({taken.why_sequential})"
    rows = [(index, f"{time_s:.3f}") for index, time_s in zip(taken.index, taken.time_s, strict=True)]
    lines = [
        f"{video}: {len(taken)} of {counted(taken.total, 'frame')}, {size}",
        f"status {taken.status}, method {method}, {counted(taken.decoded, 'frame')} decoded",
        *(f"note: {note}" for note in taken.notes),
        "",
        table(rows, ("index", "time_s"), right=(0, 1)),
    ]
    return "\n".join(lines)


def as_document(
    video: Path,
    sampling: "videos.Sampling",
    start: float | None,
    end: float | None,
    taken: "videos.Frames[NDArray[np.uint8]]",
) -> dict[str, object]:
    """Return the frames, and how they were chosen and read, as JSON values; unknown times are null.

    Parameters
    ----------
    video, taken
        The video, and the frames that were taken of it.
    sampling
        The rule by which they were chosen.
    start, end
        Start and end of sampling in seconds; None for those of the file.
    """
    frame_records = []
    for index, time_s in zip(taken.index.tolist(), taken.time_s.tolist(), strict=True):
        frame_records.append({"index": index, "time_s": None if math.isnan(time_s) else time_s})
    return {
        "video": str(video),
        "sampling": sampling.record(),
        "start_s": start,
        "end_s": end,
        **taken.record(),
        "frames": frame_records,
    }
