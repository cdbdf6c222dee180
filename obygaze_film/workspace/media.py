"""Make what the desk shows of a film once: a still of each shot, its colours, and its sound's peaks."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from obygaze_features.io import sha256_of, write_whole
from obygaze_features.lines import json_bytes
from obygaze_features.video import at, frame_times, keyframes, played, read_frames
from obygaze_film.workspace.proxy import cache_folder, content_key, private_cache

if TYPE_CHECKING:
    from obygaze_film.timeline import Timeline

WIDTH: Final = 96
"""Of a still, in pixels."""

COLUMNS: Final = 40
"""Stills in a row of their sheet."""

MOST_STILLS, MOST_COLOURS, MOST_PEAKS = 2000, 1200, 4000

QUALITY: Final = 40
"""Of WebP."""

KINDS: Final = {"stills.webp": "image/webp", "colours.png": "image/png", "media.json": "application/json"}
"""What is made of a film -> its type."""


def media_paths(path: Path, film: "Timeline") -> dict[str, Path]:
    """Return where `KINDS` are, or would be, of a scored film's copy; they are of its shots."""
    shots = sha256_of(film.shots["start_s"].to_numpy(dtype=np.float64).tobytes())[:8]
    start = f"{content_key(path)}.{shots}"
    return {name: cache_folder() / f"{start}.{name}" for name in KINDS}


def make_media(path: Path, film: "Timeline") -> None:
    """Make `KINDS` in the user's cache, where they are not there yet.

    Key frames are decoded, and the middle of each shot that has none. Without shots, stills are as far apart
    as a hundred of them.

    Raises
    ------
    VideoError
        The film cannot be decoded.
    """
    paths, whole_s = media_paths(path, film), film.record.duration_s
    if paths["media.json"].is_file():  # written last
        return
    private_cache(cache_folder())
    begins = film.shots["start_s"].to_numpy(dtype=np.float64)
    begins = begins if len(begins) else np.linspace(0, whole_s, 101)[:-1]
    begins = begins[:: -(-len(begins) // MOST_STILLS)]
    spread = read_frames(path, keyframes(MOST_COLOURS), each=_small)
    pictures = _of_shots(path, begins, np.append(begins[1:], whole_s), spread)
    tall, wide = pictures[0].shape[:2]
    sheet = np.zeros((-(-len(pictures) // COLUMNS) * tall, COLUMNS * wide, 3), np.uint8)
    for place, picture in enumerate(pictures):
        row, column = divmod(place, COLUMNS)
        part = picture[:tall]  # a film's pictures may change their shape
        sheet[row * tall : row * tall + len(part), column * wide : (column + 1) * wide] = part
    colours = np.stack([picture.mean(axis=(0, 1)) for picture in spread.images]).astype(np.uint8)
    write_whole(paths["stills.webp"], _encoded(sheet, "WEBP"))
    write_whole(paths["colours.png"], _encoded(colours[None], "PNG"))
    described = {"starts": begins.tolist(), "width": wide, "height": tall, "columns": COLUMNS}
    write_whole(paths["media.json"], json_bytes(described | {"peaks": _peaks(path, whole_s)}))


def _of_shots(path: Path, begins: Any, ends: Any, spread: Any) -> list[NDArray[np.uint8]]:
    """Take of each shot the key frame nearest its middle; of one without, the frame in the middle."""
    middles = (begins + ends) / 2
    nearest = np.abs(spread.time_s[None] - middles[:, None]).argmin(axis=1)
    found = [spread.images[place] for place in nearest]
    lacking = np.flatnonzero((spread.time_s[nearest] < begins) | (spread.time_s[nearest] >= ends))
    if len(lacking):
        times = frame_times(path)
        frames = np.clip(np.searchsorted(times, middles[lacking]), 0, len(times) - 1)
        wanted, place_of = np.unique(frames, return_inverse=True)
        taken = read_frames(path, at(wanted.tolist()), each=_small).images
        for shot, place in zip(lacking, place_of, strict=True):
            found[shot] = taken[place]
    return found


def _peaks(path: Path, whole_s: float) -> list[int]:
    """Find the highest samples of the sound's parts, of 255; empty without sound."""
    peaks, n = np.zeros(MOST_PEAKS), 0
    for at_s, frame in played(path, pictures=False):
        part = min(max(int(at_s / whole_s * MOST_PEAKS), 0), MOST_PEAKS - 1)
        peaks[part], n = max(peaks[part], _loudest(frame.to_ndarray())), n + 1
    return (255 * peaks.clip(0, 1)).astype(int).tolist() if n else []


def _loudest(samples: NDArray[Any]) -> float:
    """Return the highest sample, of 1, of whole numbers or floats."""
    kind = samples.dtype.kind
    most = 1.0 if kind == "f" else np.iinfo(samples.dtype).max / (1 + (kind == "u"))
    return float(np.abs(samples.astype(np.float64) - most * (kind == "u")).max(initial=0)) / most


def _small(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Shrink a frame [H, W, 3]."""
    from PIL import Image  # noqa: PLC0415 - an extra

    height = max(1, round(frame.shape[0] * WIDTH / frame.shape[1]))
    return np.asarray(Image.fromarray(frame).resize((WIDTH, height), Image.Resampling.BOX))


def _encoded(picture: NDArray[np.uint8], kind: str) -> bytes:
    from PIL import Image  # noqa: PLC0415 - an extra

    file = io.BytesIO()
    Image.fromarray(picture).save(file, kind, quality=QUALITY)
    return file.getvalue()
