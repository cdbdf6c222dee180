"""`obygaze frames`: show or save the frames an extraction would use."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import obygaze_features as of
from obygaze_features import video as videos
from obygaze_features.errors import ManifestError, VideoError
from obygaze_features.io import refuse_existing, whole_file, write_whole
from obygaze_features.options import Answer, Output, declared
from obygaze_features.screen import table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Time(click.types.FloatParamType):
    """Parameter type of times in seconds, which may be written as a clock: `1:01:30.5`."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read a time as tables have it."""
        from obygaze_features.manifest import time_code

        try:
            time_s = time_code(str(value).strip())
        except ManifestError as error:
            self.fail(str(error), param, ctx)
        if time_s is None:
            self.fail("is empty", param, ctx)
        return time_s


@declared(__package__, "frames", start={"type": Time()}, end={"type": Time()})
def frames(
    video: Path,
    n: int | None,
    indices: str | None,
    rate: float | None,
    keyframes: int | None,
    start: float | None,
    end: float | None,
    npz: Path | None,
    sheet: Path | None,
    output: Output,
) -> Answer:
    """Show or save the frames an extraction would use.

    Pixels are saved only with --npz or --sheet. A still image has one frame, at time 0.

    \b
    Examples:
      obygaze frames clip.mp4             which 32 frames, and when they are shown
      obygaze frames clip.mp4 --indices 0,5,390 --npz f.npz   these, full size
      obygaze frames film.mkv --start 61.5 --end 74 --sheet scene.png
    """
    from obygaze_features.video.sheet import contact_sheet, thumbnail

    sampling = chosen_sampling(n, indices, rate, keyframes, default=1 if videos.is_still(video) else 32)
    check_output(npz, ".npz", force=output.force)
    check_output(sheet, ".png", force=output.force)
    keep = thumbnail if npz is None else lambda frame: frame
    taken = of.read_frames(video, sampling, start_s=start, end_s=end, each=keep)
    if npz is not None:
        save_npz(npz, video, taken)
    if sheet is not None:
        pictures = taken.images if npz is None else list(map(thumbnail, taken.images))
        write_whole(sheet, contact_sheet(pictures, taken.index, taken.time_s))
    document = as_document(video, sampling, start, end, taken)
    return Answer(document, as_table(video, taken), [f"saved {path}" for path in (npz, sheet) if path])


def chosen_sampling(
    n: int | None, indices: str | None, rate: float | None, keyframes: int | None, *, default: int
) -> "videos.Sampling":
    """Return the sampling rule that the options name; by default, evenly spaced frames."""
    given = {"--n": n, "--indices": indices, "--fps": rate, "--keyframes": keyframes}
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise click.UsageError(f"{' and '.join(names)} cannot be combined: each is a way to choose frames")
    try:
        if indices is not None:
            return videos.at(int(item) for item in indices.split(","))
        if rate is not None:
            return videos.fps(rate)
    except VideoError as error:
        raise click.BadParameter(str(error), param_hint=names[0]) from None
    except ValueError:
        wanted = "whole numbers joined by commas are expected"
        raise click.BadParameter(f"{wanted}, not {indices!r}", param_hint=names[0]) from None
    return videos.uniform(n or default) if keyframes is None else videos.keyframes(keyframes)


def check_output(path: Path | None, suffix: str, *, force: bool) -> None:
    """Refuse a wrong suffix, and an existing file unless `force` is set."""
    if path is None:
        return
    if path.suffix.lower() != suffix:
        raise click.UsageError(f"--{'npz' if suffix == '.npz' else 'sheet'} {path}: name it {suffix}")
    refuse_existing(path, force=force)


def save_npz(path: Path, video: Path, taken: "videos.Frames[NDArray[np.uint8]]") -> None:
    """Save pixels, indices and times; the same frames give the same bytes, as numpy writes no dates."""
    import numpy as np

    if len({picture.shape for picture in taken.images}) > 1:
        raise VideoError("its pictures change size, so they cannot be saved as one array", video)
    with whole_file(path) as partial, partial.open("wb") as file:
        np.savez(file, frames=np.stack(taken.images), index=taken.index, time_s=taken.time_s)


def as_table(video: Path, taken: "videos.Frames[NDArray[np.uint8]]") -> str:
    """Format the frames as a plain table, headed by how they were read."""
    how = taken.method + (f" ({taken.why_sequential})" if taken.why_sequential else "")
    turned = f", turned {taken.rotation} degrees clockwise" if taken.rotation else ""
    lines = [
        f"{video}: {len(taken)} of {taken.total} frames, {taken.width}x{taken.height}{turned}",
        f"status {taken.status}, method {how}, {taken.decoded} frames decoded",
        *(f"note: {note}" for note in taken.notes),
        "",
        table(
            [(index, f"{time_s:.3f}") for index, time_s in zip(taken.index, taken.time_s, strict=True)],
            ("index", "time_s"),
            right=(0, 1),
        ),
    ]
    return "\n".join(lines)


def as_document(
    video: Path,
    sampling: "videos.Sampling",
    start: float | None,
    end: float | None,
    taken: "videos.Frames[NDArray[np.uint8]]",
) -> dict[str, object]:
    """Return the same for JSON; unknown times are null."""
    times = [None if second != second else second for second in taken.time_s.tolist()]  # noqa: PLR0124 - NaN alone differs
    return {
        "video": str(video),
        "sampling": sampling.record(),
        "start_s": start,
        "end_s": end,
        **taken.record(),
        "frames": [{"index": i, "time_s": t} for i, t in zip(taken.index.tolist(), times, strict=True)],
    }
