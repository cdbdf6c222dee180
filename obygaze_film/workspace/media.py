"""Make what the desk shows of a film once: a still of each shot, its colours, and its sound's peaks."""

import io
import math
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from obygaze_features.io import sha256_of, write_whole
from obygaze_features.lines import json_bytes
from obygaze_features.untrusted import parse_json, read_bytes
from obygaze_features.video import Frames, at, frame_times, keyframes, played, read_frames
from obygaze_film.workspace.cache import cache_folder, prepare_cache
from obygaze_film.workspace.proxy import content_key

if TYPE_CHECKING:
    from obygaze_film.timeline import Timeline

STILL_WIDTH: Final = 96
"""Width of a still, in pixels."""

STILLS_IN_ROW: Final = 40
"""Stills in a row of the sheet, the one picture that holds all stills."""

MAX_STILLS: Final = 2000
"""Maximum number of stills of a film."""

MAX_COLOURS: Final = 1200
"""Maximum number of key frames whose mean colours are shown."""

MAX_PEAKS: Final = 4000
"""Parts of equal length that a film's sound is divided into, each with one peak."""

STILLS_WITHOUT_SHOTS: Final = 100
"""Stills of a film whose shots are unknown, at equal distances."""

WEBP_QUALITY: Final = 40
"""Quality at which the sheet of stills is encoded as WebP, of 100."""

MEDIA_TYPES: Final = {
    "stills.webp": "image/webp",
    "colours.png": "image/png",
    "media.json": "application/json",
}
"""Name of each file that is made of a film -> its media type."""


def media_paths(path: Path, film: "Timeline") -> dict[str, Path]:
    """Return the path in the cache of each file of `MEDIA_TYPES`, whether or not the file is there yet.

    The paths depend on the content of the user's copy of the film and on the starts of the film's shots.
    """
    starts = film.shots["start_s"].to_numpy(dtype=np.float64)
    digest_of_shots = sha256_of(starts.tobytes())[:8]
    prefix = f"{content_key(path)}.{digest_of_shots}"
    return {name: cache_folder() / f"{prefix}.{name}" for name in MEDIA_TYPES}


def make_media(path: Path, film: "Timeline") -> None:
    """Make the files of `MEDIA_TYPES` in the user's cache, unless they are there already.

    The film's key frames are decoded, and the middle frame of each shot that has no key frame. A film without
    shots gets `STILLS_WITHOUT_SHOTS` stills at equal distances.

    Raises
    ------
    VideoError
        The film cannot be decoded.
    """
    paths = media_paths(path, film)
    if paths["media.json"].is_file():  # it is written last: where it is there, the others are too
        return
    prepare_cache(cache_folder())
    film_s = film.record.duration_s

    # The stills, as one picture
    key_frames = read_frames(path, keyframes(MAX_COLOURS), each=_small)  # each frame is shrunk by `_small`
    starts = _still_starts(film)
    ends = np.append(starts[1:], film_s)
    stills = _choose_stills(path, starts, ends, key_frames)
    height, width = stills[0].shape[:2]
    write_whole(paths["stills.webp"], _encoded(_sheet(stills), "WEBP"))

    write_whole(paths["colours.png"], _encoded(_mean_colours(key_frames), "PNG"))

    # The layout of the stills, and the sound. It is written last, when the pictures are complete.
    description = {
        "starts": starts.tolist(),  # of the part of the film that each still stands for, in seconds
        "width": width,  # of a still, in pixels
        "height": height,
        "columns": STILLS_IN_ROW,
        "peaks": _sound_peaks(path, film_s),
    }
    write_whole(paths["media.json"], json_bytes(description))


def _mean_colours(frames: Frames[Any]) -> NDArray[np.uint8]:
    """Return the mean colour of each frame, as a picture of one row [1, K frames, 3]."""
    colours = np.stack([picture.mean(axis=(0, 1)) for picture in frames.images])  # [K, 3]
    picture_of_one_row: NDArray[np.uint8] = colours.astype(np.uint8)[None]
    return picture_of_one_row


def still_sheet(path: Path, film: "Timeline") -> dict[str, Any]:
    """Return the stills of a film, to be put into a page; make them first if they are not in the cache.

    Returns
    -------
    dict
        `sheet` is the picture with all stills as a data address; `starts` (the start of each still's part of
        the film, in seconds), `width`, `height` and `columns` are its layout.
    """
    make_media(path, film)
    paths = media_paths(path, film)
    description = parse_json(read_bytes(paths["media.json"]))
    picture = b64encode(read_bytes(paths["stills.webp"])).decode("ascii")
    layout = {name: description[name] for name in ("starts", "width", "height", "columns")}
    return {"sheet": f"data:image/webp;base64,{picture}", **layout}


class StillSheet:
    """The stills of a film that `make_media` made before, one by one, for a figure.

    Parameters
    ----------
    paths : mapping of str to Path
        The paths of the film's files of `MEDIA_TYPES`.

    Attributes
    ----------
    width, height : int
        Size of a still, in pixels.
    columns : int
        Stills in a row of the sheet.
    starts : list of float
        Start of the part of the film that each still stands for, in seconds.
    sheet : PIL.Image.Image
        The picture that holds all stills.
    """

    def __init__(self, paths: Mapping[str, Path]) -> None:
        """Read the sheet, one picture with all stills row by row, and where each still lies in it."""
        from PIL import Image  # noqa: PLC0415 - an extra

        layout = parse_json(read_bytes(paths["media.json"]))
        self.width = layout["width"]  # of a still, in pixels
        self.height = layout["height"]
        self.columns = layout["columns"]  # stills in a row
        self.starts = layout["starts"]  # of the part of the film that each still stands for, in seconds
        with Image.open(io.BytesIO(read_bytes(paths["stills.webp"]))) as sheet:
            self.sheet = sheet.convert("RGB")

    def address(self, at_s: float) -> str:
        """Return the still that stands for a time of the film, as a data URI of a PNG file."""
        # The last part of the film that starts at this time or before; the first one before all parts.
        n_started = int(np.searchsorted(self.starts, at_s, side="right"))
        index = max(0, n_started - 1)

        # Cut it out of the sheet, where stills lie row by row.
        row, column = divmod(index, self.columns)
        left = column * self.width
        top = row * self.height
        still = self.sheet.crop((left, top, left + self.width, top + self.height))
        file = io.BytesIO()
        still.save(file, "PNG")
        return f"data:image/png;base64,{b64encode(file.getvalue()).decode('ascii')}"


def _still_starts(film: "Timeline") -> NDArray[np.float64]:
    """Return the start of the part of the film that each still stands for, in seconds.

    Each part is a shot. If there are more than `MAX_STILLS` shots, each is two, three or more shots, so that
    there are at most `MAX_STILLS` parts.
    """
    starts = film.shots["start_s"].to_numpy(dtype=np.float64)
    if not len(starts):
        starts = np.linspace(0, film.record.duration_s, STILLS_WITHOUT_SHOTS + 1)[:-1]
    shots_per_still = math.ceil(len(starts) / MAX_STILLS)
    return starts[::shots_per_still]


def _choose_stills(
    path: Path, starts: NDArray[np.float64], ends: NDArray[np.float64], key_frames: Frames[Any]
) -> list[NDArray[np.uint8]]:
    """Choose a still for each part of a film [S], from `starts` to `ends` in seconds.

    It is the key frame nearest to the part's middle. A part without any key frame gets the frame in its
    middle, which has to be decoded.
    """
    middles = (starts + ends) / 2
    distances = np.abs(key_frames.time_s[None, :] - middles[:, None])  # [S parts, K key frames]
    nearest = distances.argmin(axis=1)
    stills = [key_frames.images[index] for index in nearest]

    nearest_s = key_frames.time_s[nearest]
    lacks_key_frame = (nearest_s < starts) | (nearest_s >= ends)
    parts_to_decode = np.flatnonzero(lacks_key_frame).tolist()
    pictures = _frames_at(path, middles[parts_to_decode])
    for part, picture in zip(parts_to_decode, pictures, strict=True):
        stills[part] = picture
    return stills


def _frames_at(path: Path, times_s: NDArray[np.float64]) -> list[NDArray[np.uint8]]:
    """Decode the frame of a film at each time [T], shrunk to the size of a still.

    It is the first frame at the time or after it; after the last frame, it is that one.
    """
    if not len(times_s):
        return []
    frame_s = frame_times(path)  # time of each frame of the film, rising
    numbers = np.searchsorted(frame_s, times_s)
    numbers = np.minimum(numbers, len(frame_s) - 1)

    # Several times may have the same frame, which is decoded once.
    distinct_numbers = np.unique(numbers).tolist()
    pictures = read_frames(path, at(distinct_numbers), each=_small).images
    picture_of_frame = dict(zip(distinct_numbers, pictures, strict=True))
    return [picture_of_frame[number] for number in numbers.tolist()]


def _sheet(stills: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Lay stills [H, W, 3] row by row onto one picture, `STILLS_IN_ROW` in a row."""
    height, width = stills[0].shape[:2]
    n_rows = math.ceil(len(stills) / STILLS_IN_ROW)
    sheet = np.zeros((n_rows * height, STILLS_IN_ROW * width, 3), np.uint8)
    for index, still in enumerate(stills):
        row, column = divmod(index, STILLS_IN_ROW)
        top = row * height
        left = column * width
        visible = still[:height]  # if a film's pictures change their shape, a still may be taller or shorter
        sheet[top : top + len(visible), left : left + width] = visible
    return sheet


def _sound_peaks(path: Path, film_s: float) -> list[int]:
    """Divide the film's sound into `MAX_PEAKS` equal parts, and find the peak of each, from 0 to 255.

    The list is empty if the film has no sound.
    """
    peaks = np.zeros(MAX_PEAKS)
    has_sound = False
    for at_s, frame in played(path, pictures=False):
        has_sound = True
        part = int(at_s / film_s * MAX_PEAKS)
        part = min(max(part, 0), MAX_PEAKS - 1)  # sound may begin before the pictures, and end after them
        peaks[part] = max(peaks[part], _peak_amplitude(frame.to_ndarray()))
    if not has_sound:
        return []
    peaks_of_255: list[int] = (255 * peaks.clip(0, 1)).astype(int).tolist()
    return peaks_of_255


def _peak_amplitude(samples: NDArray[Any]) -> float:
    """Return the normalised peak of samples of sound: 0 for silence, 1 at the largest possible amplitude."""
    amplitudes = samples.astype(np.float64)
    if samples.dtype.kind == "f":  # floats, from -1 to 1
        full_scale = 1.0
    elif samples.dtype.kind == "u":  # unsigned whole numbers: silence is the middle of the range
        full_scale = np.iinfo(samples.dtype).max / 2
        amplitudes -= full_scale
    else:  # signed whole numbers: silence is 0
        full_scale = float(np.iinfo(samples.dtype).max)
    return float(np.abs(amplitudes).max(initial=0)) / full_scale


def _small(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Shrink a frame [H, W, 3] to the width of a still; its proportions stay."""
    from PIL import Image  # noqa: PLC0415 - an extra

    frame_height, frame_width = frame.shape[:2]
    height = max(1, round(frame_height * STILL_WIDTH / frame_width))
    return np.asarray(Image.fromarray(frame).resize((STILL_WIDTH, height), Image.Resampling.BOX))


def _encoded(picture: NDArray[np.uint8], image_format: str) -> bytes:
    """Encode a picture [H, W, 3] as WEBP, at `WEBP_QUALITY`, or as PNG."""
    from PIL import Image  # noqa: PLC0415 - an extra

    file = io.BytesIO()
    Image.fromarray(picture).save(file, image_format, quality=WEBP_QUALITY)  # PNG ignores the quality
    return file.getvalue()
