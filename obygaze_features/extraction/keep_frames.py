"""Keep the sampled frames of clips in a folder, small and as JPEG, so that later backbones need not decode.

A clip's frames are one file, under the SHA-256 of its video, named by what they were sampled with. All
backbones of a run see the JPEG, also those of the run that decodes: features do not depend on who was first.
"""

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import PIL
from numpy.typing import NDArray
from PIL import Image

from obygaze_features.backbones.resize import antialiased_resize
from obygaze_features.door import read_bytes
from obygaze_features.errors import ObygazeError
from obygaze_features.extraction.decode_clips import (
    DecodedClip,
    DecodeTask,
    FrameCache,
    Pixels,
    Prepared,
    request_key,
)
from obygaze_features.extraction.decoders import Decode
from obygaze_features.io import make_folder, sha256_of, write_whole
from obygaze_features.video import Sampling, file_digest
from obygaze_features.video.file_facts import file_state

SHORT_SIDE = 256
"""Most pixels of the short side of a kept frame."""
QUALITY = 95
"""Quality of its JPEG."""
KEEPING_RECORD = {
    "resize": f"shortest edge to {SHORT_SIDE} at most, pillow-bicubic",
    "codec": f"JPEG, quality {QUALITY}, 4:4:4",
    "pillow": PIL.__version__,
}
"""How frames are kept, for the provenance."""
VERSION = 4
"""Version of the files of frames; files of other versions are not read."""
MOST_BYTES = 1 << 31
"""Most bytes of the frames of a clip."""

DAMAGED_REMARK = "kept frames were damaged, or not ours: decoded again"


class _Kept(msgspec.Struct):
    """What is kept of a clip: the frames that one sampling chose, as JPEG, and the clip without frames.

    It is encoded by msgpack in a file whose first line is the digest of the rest.
    """

    clip: DecodedClip
    index: list[int]
    time_s: list[float]
    jpegs: list[bytes]


def to_jpeg(frame: Pixels) -> NDArray[Any]:
    """Shrink a frame, uint8 [H, W, 3], and encode it as JPEG; return the bytes in an array without axes.

    It is an array because a backbone's `prepare`, in whose place this function is called, returns one.
    """
    height, width = frame.shape[:2]
    short = min(height, width)
    if short > SHORT_SIDE:
        size = (height * SHORT_SIDE // short, width * SHORT_SIDE // short)
        frame = antialiased_resize(frame, size, (0, 0, *size), "bicubic")
    buffer = BytesIO()
    Image.fromarray(frame).save(buffer, "JPEG", quality=QUALITY, subsampling=0)
    return np.array(buffer.getvalue(), object)


def from_jpeg(data: bytes) -> Pixels:
    """Decode a JPEG to an RGB picture, uint8 [h, w, 3]."""
    with Image.open(BytesIO(data), formats=("JPEG",)) as picture:
        return np.array(picture)


def with_frame_cache(decode: Decode, *, always: bool = False, writes: bool = True) -> Decode:
    """Return a decoder that first reads the frames that earlier runs kept as files, then decodes the others.

    The frames that it decodes are kept, too. Tasks without `keep` are decoded as usual.

    Parameters
    ----------
    decode
        Decodes the clips whose frames are not kept.
    always
        Call `decode` even if all frames are kept, because it measures more than the clips.
    writes
        Whether decoded frames are written to the folder; False only reads those that are there.
    """

    def read_or_decode(tasks: Sequence[DecodeTask]) -> Iterator[tuple[int, DecodedClip]]:
        """Yield the clips whose frames are kept, then the others, each with its position."""
        if not tasks or tasks[0].frame_cache is None or tasks[0].path is None:
            yield from decode(tasks)
            return
        video = _VideoFrames(tasks[0].path, tasks[0].frame_cache)
        remarks_on_kept: dict[int, list[str]] = {}  # position of each clip to decode -> remarks on it
        for number, task in enumerate(tasks):
            try:
                clip = video.clip(task, video.read(task))
            except FileNotFoundError:
                remarks_on_kept[number] = []
            except Exception:  # noqa: BLE001 - damage takes many forms, and the video is there
                remarks_on_kept[number] = [DAMAGED_REMARK]
            else:
                yield number, clip
        if not remarks_on_kept and not always:
            return
        positions = list(remarks_on_kept)
        for index, decoded in decode([as_jpegs(tasks[position]) for position in positions]):
            position = positions[index]
            remarks = remarks_on_kept[position]
            yield position, video.kept_clip(tasks[position], decoded, remarks, writes=writes)

    return read_or_decode


def as_jpegs(task: DecodeTask) -> DecodeTask:
    """Return a task whose frames are prepared as JPEGs to keep, if it keeps frames; else the task itself."""
    if task.frame_cache is None:
        return task
    jpegs = {name: request._replace(prepare=to_jpeg) for name, request in task.requests.items()}
    return replace(task, requests=jpegs)


class _VideoFrames:
    """The kept frames of one video, in a folder named after the video's digest.

    Attributes
    ----------
    digest
        SHA-256 of the video; empty if it cannot be read.
    """

    def __init__(self, path: Path, frame_cache: FrameCache) -> None:
        """Compute the digest of the video."""
        self.path = path
        self.frame_cache = frame_cache
        self.digest = ""
        with suppress(OSError, ObygazeError):  # the decoder then gives the reason
            self.state = file_state(path)  # size and modification time
            self.digest = file_digest(path)

    def _file(self, task: DecodeTask, sampling: Sampling) -> Path:
        """Return the file of a clip's frames, whose name is a digest of all that the frames depend on."""
        span = (task.start_s, task.end_s)
        settings = [VERSION, KEEPING_RECORD, self.frame_cache.decoder, task.strict, span, sampling.record()]
        key = sha256_of(json.dumps(settings).encode())[:32]
        return self.frame_cache.folder / self.digest / f"{key}.frames"

    def read(self, task: DecodeTask) -> dict[Sampling, _Kept]:
        """Read the kept frames of a clip, for each sampling that its backbones need.

        Raises
        ------
        FileNotFoundError
            They are not kept.
        Exception
            A file is damaged: of any kind.
        """
        if not self.digest:
            raise FileNotFoundError
        kept_of_sampling = {}
        for sampling in _samplings(task):
            file = self._file(task, sampling)
            digest, _, data = read_bytes(file, MOST_BYTES, within=self.frame_cache.folder).partition(b"\n")
            kept = msgspec.msgpack.decode(data, type=_Kept)
            n_expected = sampling.n or len(kept.jpegs)  # a number of frames a second has no fixed one
            has_all = len(kept.index) == len(kept.time_s) == len(kept.jpegs) == n_expected
            if digest.decode() != sha256_of(data) or not has_all:
                raise ValueError("another digest, or number of frames")
            kept_of_sampling[sampling] = kept
        return kept_of_sampling

    def kept_clip(
        self, task: DecodeTask, decoded: DecodedClip, remarks_on_kept: Sequence[str], *, writes: bool
    ) -> DecodedClip:
        """Keep the frames of a clip that was decoded to JPEGs, and return the clip with the kept frames.

        Parameters
        ----------
        decoded
            Is returned as it is if it has failed.
        remarks_on_kept
            Remarks on the frames of the clip that were kept before.
        writes
            Whether to write the frames, or only return what would be kept.
        """
        if decoded.status == "failed":
            return decoded
        kept = _frames_to_keep(task, decoded)
        remarks = [*decoded.remarks, *remarks_on_kept]
        if writes:
            remarks += self.keep_frames(task, kept)
        clip = self.clip(task, kept)
        return replace(clip, n_decoded=decoded.n_decoded, remarks=tuple(remarks), source=decoded.source)

    def keep_frames(self, task: DecodeTask, kept_of_sampling: Mapping[Sampling, _Kept]) -> list[str]:
        """Write the frames of a clip, one file a sampling; return a remark if that fails."""
        if not self.digest:
            return []
        try:
            for sampling, kept in kept_of_sampling.items():
                if file_state(self.path) == self.state:  # else the video was replaced while it was decoded
                    file = self._file(task, sampling)
                    make_folder(file.parent)
                    data = msgspec.msgpack.encode(kept)
                    write_whole(file, sha256_of(data).encode() + b"\n" + data, links=False)
        except (OSError, ObygazeError) as error:
            return [f"frames could not be kept: {getattr(error, 'strerror', None) or error}"]
        return []

    def clip(self, task: DecodeTask, kept_of_sampling: Mapping[Sampling, _Kept]) -> DecodedClip:
        """Make the result of a clip from its kept frames, which are prepared for each backbone."""
        prepared = _prepared_frames(task, kept_of_sampling)
        clips = [kept.clip for kept in kept_of_sampling.values()]  # the same clip, by each sampling
        reasons = dict.fromkeys(clip.reason for clip in clips if clip.reason)  # in order, each once
        remarks: dict[str, None] = {}
        stretches: tuple[tuple[float, float], ...] = ()  # of the span, whatever the sampling
        for clip in clips:
            stretches = stretches or clip.without_pictures_s
            remarks.update(dict.fromkeys(clip.remarks))
        source = dict(clips[0].source)
        if task.hash_source:
            source["sha256"] = self.digest
        return replace(
            clips[0],
            clip_id=task.clip_id,
            status="partial" if any(clip.status == "partial" for clip in clips) else "ok",
            reason="; ".join(reasons),
            frames={name: prepared[request_key(request)] for name, request in task.requests.items()},
            source=source,
            remarks=tuple(remarks),
            without_pictures_s=stretches,
        )


def _samplings(task: DecodeTask) -> dict[Sampling, str]:
    """Return the samplings of frames that a clip's backbones need -> name of one backbone that needs it."""
    return {request.sampling: name for name, request in task.requests.items()}


def _prepared_frames(
    task: DecodeTask, kept_of_sampling: Mapping[Sampling, _Kept]
) -> dict[Hashable, Prepared]:
    """Decode the kept JPEGs of a clip, and prepare them: `request_key` -> prepared frames."""
    pictures = {}
    for sampling, kept in kept_of_sampling.items():
        pictures[sampling] = [from_jpeg(data) for data in kept.jpegs]
    prepared: dict[Hashable, Prepared] = {}
    for key, (sampling, prepare) in task.frame_requests().items():
        kept = kept_of_sampling[sampling]
        images = np.stack([prepare(picture) for picture in pictures[sampling]])
        prepared[key] = Prepared(images, np.array(kept.index, np.int64), np.array(kept.time_s))
    return prepared


def _frames_to_keep(task: DecodeTask, clip: DecodedClip) -> dict[Sampling, _Kept]:
    """Return, for each sampling of a clip that was decoded to JPEGs, the frames to write."""
    # What depends on the manifest, or on the run, is not kept.
    source = {field: value for field, value in clip.source.items() if field != "sha256"}
    bare = replace(clip, clip_id="", frames={}, source=source, n_decoded=0)
    frames_of_sampling = {}
    for sampling, backbone in _samplings(task).items():
        frames = clip.frames[backbone]
        jpegs = frames.images.tolist()
        frames_of_sampling[sampling] = _Kept(bare, frames.frame_index.tolist(), frames.time_s.tolist(), jpegs)
    return frames_of_sampling
