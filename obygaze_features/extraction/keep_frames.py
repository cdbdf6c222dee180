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
    Keep,
    Pixels,
    Prepared,
    wish_of,
)
from obygaze_features.extraction.decoders import Decode
from obygaze_features.io import make_folder, sha256_of, write_whole
from obygaze_features.video import Sampling, file_digest
from obygaze_features.video.file_facts import file_state

SHORT, QUALITY = 256, 95
RECORD = {
    "resize": f"shortest edge to {SHORT} at most, pillow-bicubic",
    "codec": f"JPEG, quality {QUALITY}, 4:4:4",
    "pillow": PIL.__version__,
}
"""What frames are that are kept, for the provenance."""
VERSION = 3
MOST_BYTES = 1 << 31
"""Most bytes of the frames of a clip."""

DAMAGED = "kept frames were damaged, or not ours: decoded again"


class _Kept(msgspec.Struct):
    """Frames of a clip by one rule, as JPEG, and the clip without them: a file, after its digest."""

    clip: DecodedClip
    index: list[int]
    time_s: list[float]
    jpegs: list[bytes]


def to_jpeg(frame: Pixels) -> NDArray[Any]:
    """Make of a frame, uint8 [H, W, 3], a small JPEG: an array of no axis that holds bytes."""
    height, width = frame.shape[:2]
    if (short := min(height, width)) > SHORT:
        size = height * SHORT // short, width * SHORT // short
        frame = antialiased_resize(frame, size, (0, 0, *size), "bicubic")
    buffer = BytesIO()
    Image.fromarray(frame).save(buffer, "JPEG", quality=QUALITY, subsampling=0)
    return np.array(buffer.getvalue(), object)


def from_jpeg(data: bytes) -> Pixels:
    """Decode a JPEG as RGB, uint8 [h, w, 3]."""
    with Image.open(BytesIO(data), formats=("JPEG",)) as picture:
        return np.array(picture)


def keeping(decode: Decode, *, always: bool = False, writes: bool = True) -> Decode:
    """Let a decoder's tasks with `keep` read what is kept, and keep what the decoder gives for the others.

    Parameters
    ----------
    always
        Call the decoder also if all is kept, for it gives more than clips.
    writes
        Keep frames that are decoded, not only read those that are kept.
    """

    def read_or_decode(tasks: Sequence[DecodeTask]) -> Iterator[tuple[int, DecodedClip]]:
        if not tasks or tasks[0].keep is None or tasks[0].path is None:
            yield from decode(tasks)
            return
        video = _Video(tasks[0].path, tasks[0].keep)
        left: dict[int, list[str]] = {}
        for number, task in enumerate(tasks):
            try:
                clip = video.clip(task, video.read(task))
            except FileNotFoundError:
                left[number] = []
            except Exception:  # noqa: BLE001 - damage takes many forms, and the video is there
                left[number] = [DAMAGED]
            else:
                yield number, clip
        if not left and not always:
            return
        numbers = list(left)
        for place, clip in decode([as_jpegs(tasks[number]) for number in numbers]):
            number, task = numbers[place], tasks[numbers[place]]
            if clip.status == "failed":
                yield number, clip
                continue
            kept = _kept(task, clip)
            remarks = (*clip.remarks, *left[number], *(video.keep_frames(task, kept) if writes else ()))
            whole = video.clip(task, kept)
            yield number, replace(whole, n_decoded=clip.n_decoded, remarks=remarks, source=clip.source)

    return read_or_decode


def as_jpegs(task: DecodeTask) -> DecodeTask:
    """Have a task give frames as they are kept, if it keeps them."""
    if task.keep is None:
        return task
    jpegs = {name: request._replace(prepare=to_jpeg) for name, request in task.requests.items()}
    return replace(task, requests=jpegs)


class _Video:
    """A video, and where its frames are kept."""

    def __init__(self, path: Path, keep: Keep) -> None:
        self.path, self.keep, self.digest = path, keep, ""
        with suppress(OSError, ObygazeError):  # the decoder says what is wrong with it
            self.state = file_state(path)
            self.digest = file_digest(path)

    def _file(self, task: DecodeTask, sampling: Sampling) -> Path:
        """Name the file of a clip's frames by all that they depend on."""
        span = task.start_s, task.end_s
        made = [VERSION, RECORD, self.keep.decoder, task.strict, span, sampling.record()]
        return self.keep.folder / self.digest / f"{sha256_of(json.dumps(made).encode())[:32]}.frames"

    def read(self, task: DecodeTask) -> dict[Sampling, _Kept]:
        """Read the frames of a clip by all rules.

        Raises
        ------
        FileNotFoundError
            They are not kept.
        """
        if not self.digest:
            raise FileNotFoundError
        found = {}
        for sampling in _samplings(task):
            file = self._file(task, sampling)
            digest, _, data = read_bytes(file, MOST_BYTES, within=self.keep.folder).partition(b"\n")
            found[sampling] = kept = msgspec.msgpack.decode(data, type=_Kept)
            n_frames = {len(kept.index), len(kept.time_s), len(kept.jpegs)}
            if digest.decode() != sha256_of(data) or n_frames != {sampling.n or len(kept.jpegs)}:
                raise ValueError("another digest, or number of frames")
        return found

    def keep_frames(self, task: DecodeTask, kept: Mapping[Sampling, _Kept]) -> list[str]:
        """Keep the frames of a clip; return what is to be said."""
        if not self.digest:
            return []
        try:
            for sampling, each in kept.items():
                if file_state(self.path) == self.state:  # else it was another video that was decoded
                    file = self._file(task, sampling)
                    make_folder(file.parent)
                    data = msgspec.msgpack.encode(each)
                    write_whole(file, sha256_of(data).encode() + b"\n" + data, links=False)
        except (OSError, ObygazeError) as error:
            return [f"frames could not be kept: {getattr(error, 'strerror', None) or error}"]
        return []

    def clip(self, task: DecodeTask, kept: Mapping[Sampling, _Kept]) -> DecodedClip:
        """Prepare the kept frames of a clip for all backbones."""
        every = [each.clip for each in kept.values()]
        pictures = {sampling: [from_jpeg(data) for data in each.jpegs] for sampling, each in kept.items()}
        shared: dict[Hashable, Prepared] = {}
        for wish, (sampling, prepare) in task.wishes().items():
            images = np.stack([prepare(picture) for picture in pictures[sampling]])
            times = np.array(kept[sampling].index, np.int64), np.array(kept[sampling].time_s)
            shared[wish] = Prepared(images, *times)
        return replace(
            every[0],
            clip_id=task.clip_id,
            status="partial" if any(clip.status == "partial" for clip in every) else "ok",
            reason="; ".join(dict.fromkeys(clip.reason for clip in every if clip.reason)),
            frames={name: shared[wish_of(request)] for name, request in task.requests.items()},
            source={**every[0].source, **({"sha256": self.digest} if task.hash_source else {})},
            remarks=tuple(dict.fromkeys(remark for clip in every for remark in clip.remarks)),
        )


def _samplings(task: DecodeTask) -> dict[Sampling, str]:
    """Map the rules by which frames of a clip are taken to a backbone that takes them."""
    return {request.sampling: name for name, request in task.requests.items()}


def _kept(task: DecodeTask, clip: DecodedClip) -> dict[Sampling, _Kept]:
    """Make of what a decoder gave what is kept."""
    source = {field: value for field, value in clip.source.items() if field != "sha256"}
    bare = replace(clip, clip_id="", frames={}, source=source, n_decoded=0)
    taken = {sampling: clip.frames[name] for sampling, name in _samplings(task).items()}
    return {
        sampling: _Kept(bare, each.frame_index.tolist(), each.time_s.tolist(), each.images.tolist())
        for sampling, each in taken.items()
    }
