"""Cache decoded clips: each clip is decoded once, in parallel, to a small file that all epochs read.

A clip's frames are every int(rate)-th, at most 12 of them, as 8-bit squares: one file, uint8 `[F, h, w, 3]`
in NumPy's format. `index.jsonl` is a journal of one line per clip with its source video; a clip whose line is
damaged, or whose video has changed, is decoded again. Several trainings may share a cache.

Decode workers import this module: it must not import torch.
"""

import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones import Geometry, Preset
from obygaze_features.errors import InputError, VideoError
from obygaze_features.io import is_temporary, sha256_of, write_whole
from obygaze_features.lines import LineJournal, json_bytes, read_lines
from obygaze_features.locks import locked
from obygaze_features.untrusted import read_bytes
from obygaze_features.video import Frames, at, decoder_versions, opened, probe, read_frames, uniform
from obygaze_features.workers import Parent, WorkerPool
from obygaze_studies.errors import TrainError

TIMEOUT_S = 600.0
"""Longest time for the decoding of one clip, in seconds."""

POLL_S = 0.2
"""Time between two checks for a stop request, in seconds."""

INDEX = "index.jsonl"
"""Journal of the cache, with a line for each clip."""

RECIPE = "recipe.json"
"""File that says how the frames were prepared."""

_HOW_TO_REPAIR = "remove it, and it is decoded again"
Pixels = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class CachedClip:
    """The cache's record of a clip.

    Parameters
    ----------
    bytes, modified_ns
        Size and modification time of the source video.
    frames
        Number of frames; 0 if the video cannot be read.
    sha256
        Digest of the pixels; empty if there are none.
    note
        Why there are no frames, or what is damaged.
    """

    clip_id: str
    bytes: int
    modified_ns: int
    frames: int
    sha256: str
    note: str


class FrameCache:
    """A folder of decoded clips.

    Parameters
    ----------
    folder
        Created if it does not exist.
    preset
        Preprocessing of a frame; a cache made with another preset is refused.
    max_frames
        Maximum number of frames per clip.

    Raises
    ------
    TrainError
        If the folder is not a cache, or its frames were made with other preprocessing.
    """

    def __init__(self, folder: Path, preset: Preset, max_frames: int) -> None:
        """Describe how frames of this cache are prepared; no file is read or written yet.

        The recipe has all that changes their pixels: which frames are taken (at most `max_frames`), how they
        are resized and cropped (`preset`), and the version of the decoder.
        """
        self.folder = folder
        self.geometry = preset.geometry
        self.max_frames = max_frames
        rule = "number 0, f, 2f, ... with f = int(frames a second)"
        recipe = {
            "frames": f"{rule}; at most {max_frames}, by linspace",  # numpy's: evenly spaced
            "preset": preset.record(),
            "decoder": decoder_versions(),
        }
        # Through JSON and back, so that it equals the recipe that is read from a file (no tuples).
        self.recipe: dict[str, Any] = json.loads(json.dumps(recipe))
        self._entries: dict[str, CachedClip] = {}  # clip id -> record; filled by `_read_index`

    def fill(
        self,
        videos: Mapping[str, Path],
        workers: int,
        progress: Callable[[int, int], None],
        stopped: Callable[[], bool] = lambda: False,
    ) -> dict[str, CachedClip]:
        """Decode the clips that are not cached; other processes that use the same cache wait.

        Parameters
        ----------
        videos
            Clip id -> file.
        workers
            Number of decoding processes.
        progress
            Called with the number of clips decoded and to decode.
        stopped
            Polled regularly; once it returns true, no more clips are decoded.

        Returns
        -------
        Clip id -> entry, for all clips, including unreadable ones; for fewer if it was stopped.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.folder, wait=True):
            self._check_or_write_recipe()
            self._entries = self._read_index()
            missing = {
                clip_id: path for clip_id, path in videos.items() if not self._is_current(clip_id, path)
            }
            if missing:
                self._decode_and_record(missing, workers, progress, stopped)
        return {clip_id: self._entries[clip_id] for clip_id in videos if clip_id in self._entries}

    def _decode_and_record(
        self,
        missing: Mapping[str, Path],
        workers: int,
        progress: Callable[[int, int], None],
        stopped: Callable[[], bool],
    ) -> None:
        """Decode the clips that are not cached, and add each one's record to the index as it is finished.

        The parameters are those of `fill`; `missing` are the clips that are not cached.
        """
        progress(0, len(missing))
        with closing(LineJournal(self.folder / INDEX)) as index:
            for number, entry in enumerate(self._decode_all(missing, workers, stopped), start=1):
                index.append(asdict(entry), force=False)
                self._entries[entry.clip_id] = entry
                progress(number, len(missing))

    def read(self, clip_id: str) -> NDArray[np.uint8]:
        """Read the frames of a clip that has some, uint8 `[F, h, w, 3]`.

        Raises
        ------
        TrainError
            If the file of frames is missing or damaged.
        """
        path = self._path(clip_id)
        try:
            frames: Pixels = np.load(io.BytesIO(read_bytes(path)), allow_pickle=False)
        except (OSError, InputError, ValueError, EOFError, MemoryError) as error:
            raise TrainError(
                f"{path}: the cached frames cannot be read ({error}); {_HOW_TO_REPAIR}"
            ) from None
        return frames

    def _read_index(self) -> dict[str, CachedClip]:
        """Read the index of the cache: clip id -> its record; the later of two records of a clip is valid."""
        index = self.folder / INDEX
        entries: dict[str, CachedClip] = {}
        if index.exists():
            for _, line in read_lines(index, dict[str, Any]):
                if line:  # a damaged line is read as None
                    entries[line["clip_id"]] = CachedClip(**line)
        return entries

    def _check_or_write_recipe(self) -> None:
        """Check that the cached frames were prepared in this way; write the recipe of a new cache.

        Raises
        ------
        TrainError
            The frames were prepared in another way, or the folder is not a cache.
        """
        path = self.folder / RECIPE
        text = json_bytes(self.recipe)
        if not path.exists():
            if not all(map(is_temporary, self.folder.iterdir())):
                raise TrainError(
                    f"{self.folder}: not a cache of frames, and not empty; name another folder for --cache"
                )
            write_whole(path, text)
        elif read_bytes(path) != text:
            raise TrainError(
                f"{path}: these frames were prepared in another way (size, preset or decoder's version); "
                "name another folder for --cache, or remove this one"
            )

    def _is_current(self, clip_id: str, video: Path) -> bool:
        """Return whether a clip is cached, and its video has the recorded size and modification time."""
        entry = self._entries.get(clip_id)
        if entry is None:
            return False
        has_lost_its_file = entry.frames > 0 and not self._path(clip_id).exists()
        if has_lost_its_file:
            return False
        status = video.stat()
        return entry.bytes == status.st_size and entry.modified_ns == status.st_mtime_ns

    def _path(self, clip_id: str) -> Path:
        """Return the file of a clip's frames.

        The files are spread over 256 folders, since 100,000 files in one are slow on many file systems.
        """
        return self.folder / "frames" / sha256_of(clip_id.encode())[:2] / f"{clip_id}.npy"

    def _decode_all(
        self, videos: Mapping[str, Path], workers: int, stopped: Callable[[], bool]
    ) -> Iterator[CachedClip]:
        """Decode clips in worker processes, which write the frames; yield the clips' records as they finish.

        A clip whose decoder crashes or takes too long has a record with the reason and without frames.

        Parameters
        ----------
        videos
            Clip id -> file.
        workers
            Number of worker processes.
        stopped
            Polled regularly; once it returns true, the remaining clips are not decoded.
        """
        waiting = set(videos)  # ids of the clips whose record is not there yet
        decode = partial(_decode_clip, geometry=self.geometry, max_frames=self.max_frames)
        with WorkerPool(workers, decode) as pool:
            for clip_id, video in videos.items():
                pool.put(clip_id, (clip_id, video, self._path(clip_id)), TIMEOUT_S)
            while waiting and not stopped():
                event = pool.get(POLL_S)  # waits at most so long, to ask `stopped` in between
                if event is None or event.key not in waiting:
                    continue
                clip_id = str(event.key)
                waiting.remove(clip_id)
                if event.kind == "item":
                    yield event.value
                elif event.kind == "died":
                    yield _make_record(clip_id, videos[clip_id], "the decoder crashed on this file")
                else:  # its time is over
                    late = f"decoding took longer than {TIMEOUT_S:g} s"
                    yield _make_record(clip_id, videos[clip_id], late)


def digest_of(entries: Iterable[CachedClip]) -> str:
    """Compute one SHA-256 of the frames of clips, from the digests of the clips sorted by clip id."""
    lines = sorted(f"{entry.clip_id}\t{entry.sha256}\n" for entry in entries if entry.frames)
    return sha256_of("".join(lines).encode())


def _decode_clip(task: tuple[str, Path, Path], parent: Parent, *, geometry: Any, max_frames: int) -> None:
    """Decode one clip in a worker: write its frames to a file, and send its record to the parent.

    Parameters
    ----------
    task
        Clip id, video file, and file to write the frames to.
    parent
        Receives the record, a `CachedClip`; it has the reason if the clip cannot be decoded.
    geometry
        Resizes and crops a frame.
    max_frames
        Maximum number of frames.
    """
    clip_id, video, target = task
    try:
        sampled = sample_frames(video, geometry, max_frames)
    except VideoError as error:
        parent.send(_make_record(clip_id, video, error.reason))
    except OSError as error:
        parent.send(_make_record(clip_id, video, f"the file cannot be read: {error.strerror or error}"))
    else:
        data = io.BytesIO()
        pixels = np.stack(sampled.images)
        np.save(data, pixels)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, data.getvalue())
        damage = "; ".join(sampled.notes) if sampled.status != "ok" else ""
        parent.send(_make_record(clip_id, video, damage, pixels))


def _make_record(clip_id: str, video: Path, note: str, images: Pixels | None = None) -> CachedClip:
    """Make the cache's record of a clip, with the present size and time of its video.

    Parameters
    ----------
    clip_id, video
        The clip and its file.
    note
        Why it could not be decoded, or what is damaged; "" if nothing is.
    images
        Its frames, uint8 `[F, h, w, 3]`; None if it could not be decoded.
    """
    status = video.stat()
    n_frames = 0
    digest = ""
    if images is not None:
        n_frames = len(images)
        digest = sha256_of(images.tobytes())
    return CachedClip(
        clip_id=clip_id,
        bytes=status.st_size,
        modified_ns=status.st_mtime_ns,
        frames=n_frames,
        sha256=digest,
        note=note,
    )


def sample_frames(path: Path, geometry: Geometry, max_frames: int) -> Frames[Pixels]:
    """Take frames 0, f, 2f, ... with f = int(frames per second), and at most `max_frames` of them.

    In a damaged file the same rule is applied to the decodable frames, numbered in order.

    Raises
    ------
    VideoError
        If no frame can be read.
    """
    stride = max(int(frame_rate(path)), 1)
    n_frames = probe(path).frames
    try:
        numbers = _sampled_numbers(n_frames, stride, max_frames)
        return read_frames(path, at(numbers), each=geometry)
    except VideoError:
        # The file is damaged. Read it once to find out which frames can be decoded, without keeping pixels.
        all_frames = read_frames(path, uniform(n_frames), each=lambda _: None)
        decodable = np.unique(all_frames.index)
        numbers = decodable[_sampled_numbers(len(decodable), stride, max_frames)]
        return read_frames(path, at(numbers), each=geometry)


def frame_rate(path: Path) -> float:
    """Read the frame rate stated in the file, which the original's decoder (OpenCV) uses.

    Raises
    ------
    VideoError
        If the file cannot be opened or states none.
    """
    with opened(path) as source:
        rate = source.stream.guessed_rate
    if not rate:
        raise VideoError("the file states no frame rate", path)
    return float(rate)


def kept_frames(n_sampled: int, max_frames: int) -> NDArray[np.int64]:
    """Return the positions of the frames that are kept, out of `n_sampled` frames taken from a video.

    All are kept, or `max_frames` evenly spaced ones if there are more.
    """
    return np.linspace(0, n_sampled - 1, num=min(n_sampled, max_frames), dtype=np.int64)


def _sampled_numbers(n_frames: int, stride: int, max_frames: int) -> NDArray[np.int64]:
    """Return the numbers of every `stride`-th frame, thinned evenly to at most `max_frames`."""
    n_sampled = math.ceil(n_frames / stride)
    return kept_frames(n_sampled, max_frames) * stride
