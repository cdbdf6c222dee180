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
from obygaze_features.untrusted import read_bytes
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
FILE_VERSION = 4
"""Version of the files of frames; files of other versions are not read."""
MAX_BYTES = 1 << 31
"""Most bytes of the frames of a clip."""

DAMAGED_REMARK = "kept frames were damaged, or not ours: decoded again"


class _KeptFrames(msgspec.Struct):
    """The frames of a clip that one sampling chose, as they are kept in a file.

    A file has the digest of the rest as its first line, then this object, encoded by msgpack.

    Attributes
    ----------
    clip
        The clip without its frames, and without what depends on the manifest or the run.
    index, time_s, jpegs
        Number, time in seconds and JPEG of each frame.
    """

    clip: DecodedClip
    index: list[int]
    time_s: list[float]
    jpegs: list[bytes]


def to_jpeg(frame: Pixels) -> NDArray[Any]:
    """Shrink a frame, uint8 [H, W, 3], to `SHORT_SIDE` pixels at the short side, and encode it as JPEG.

    The JPEG (bytes) is returned in an array of one object, shape (), because this function stands in for a
    backbone's `prepare`, which returns an array.
    """
    height, width = frame.shape[:2]
    short_side = min(height, width)
    if short_side > SHORT_SIDE:
        size = (height * SHORT_SIDE // short_side, width * SHORT_SIDE // short_side)
        whole_picture = (0, 0, *size)  # top, left, height and width of what is kept: nothing is cropped
        frame = antialiased_resize(frame, size, whole_picture, "bicubic")

    buffer = BytesIO()
    # Without subsampling colour keeps its resolution (4:4:4).
    Image.fromarray(frame).save(buffer, "JPEG", quality=QUALITY, subsampling=0)
    return np.array(buffer.getvalue(), object)


def from_jpeg(data: bytes) -> Pixels:
    """Decode a JPEG to an RGB picture, uint8 [h, w, 3]."""
    with Image.open(BytesIO(data), formats=("JPEG",)) as picture:
        return np.array(picture)


def with_frame_cache(decode: Decode, *, always: bool = False, writes: bool = True) -> Decode:
    """Return a decoder that takes frames from the clips' frame cache, and decodes the other clips.

    A frame cache is a folder in which users keep sampled frames for later runs (`--keep-frames`). Clips
    without one are decoded as usual.

    Parameters
    ----------
    decode
        Decodes the clips whose frames are not in the cache.
    always
        Call `decode` even if the frames of all clips are in the cache. This is for decoders that, along with
        the clips, measure a whole part of a film to find its shots.
    writes
        Whether the frames that were decoded are added to the cache.
    """

    def read_or_decode(tasks: Sequence[DecodeTask]) -> Iterator[tuple[int, DecodedClip]]:
        """Yield the clips whose frames are in the cache, then the others, each with its position."""
        first_task = tasks[0] if tasks else None  # all tasks are of one file
        if first_task is None or first_task.frame_cache is None or first_task.path is None:
            yield from decode(tasks)
            return
        video = _VideoFrames(first_task.path, first_task.frame_cache)

        # Yield the clips that are in the cache.
        positions_to_decode: list[int] = []  # in `tasks`
        damaged_positions: set[int] = set()  # those among them whose cached frames are damaged
        for position, task in enumerate(tasks):
            try:
                clip = video.clip(task, video.read(task))
            except FileNotFoundError:  # not in the cache
                positions_to_decode.append(position)
            except Exception:  # noqa: BLE001 - damage takes many forms, and the video is there
                positions_to_decode.append(position)
                damaged_positions.add(position)
            else:
                yield position, clip
        all_are_in_cache = not positions_to_decode
        if all_are_in_cache and not always:
            return

        # Decode the others to JPEGs, as the cache holds them, and write these into the cache. What is yielded
        # is made of the JPEGs, as if they had been read from it.
        tasks_to_decode = [as_jpegs(tasks[position]) for position in positions_to_decode]
        for index, decoded_clip in decode(tasks_to_decode):
            position = positions_to_decode[index]
            remarks = [DAMAGED_REMARK] if position in damaged_positions else []
            yield position, video.clip_through_cache(tasks[position], decoded_clip, remarks, writes=writes)

    return read_or_decode


def as_jpegs(task: DecodeTask) -> DecodeTask:
    """Return a task that prepares frames as JPEGs for the frame cache; the task itself if it has no cache.

    The frames are prepared for the backbones later, from the JPEGs.
    """
    if task.frame_cache is None:
        return task
    requests_of_jpegs = {}
    for backbone_name, request in task.requests.items():
        requests_of_jpegs[backbone_name] = request._replace(prepare=to_jpeg)
    return replace(task, requests=requests_of_jpegs)


class _VideoFrames:
    """The frames of one video in a frame cache, in a folder named after the video's digest.

    Attributes
    ----------
    digest
        SHA-256 of the video; empty if it cannot be read.
    state
        Size and modification time of the video when the digest was computed; None if it cannot be read.
    """

    def __init__(self, path: Path, frame_cache: FrameCache) -> None:
        """Compute the digest of the video, after which the folder of its frames is named.

        It is left empty if the video cannot be read.
        """
        self.path = path
        self.frame_cache = frame_cache
        self.digest = ""
        self.state: tuple[int, int] | None = None
        with suppress(OSError, ObygazeError):  # the decoder then gives the reason
            self.state = file_state(path)
            self.digest = file_digest(path)

    def _file(self, task: DecodeTask, sampling: Sampling) -> Path:
        """Return the path of the file that keeps a clip's frames: `FOLDER/DIGEST-OF-VIDEO/KEY.frames`.

        The key is a digest of all that the frames depend on besides the video.

        Parameters
        ----------
        task
            The clip's task.
        sampling
            The rule by which the frames are chosen; there is a file for each.
        """
        span = (task.start_s, task.end_s)
        settings = [
            FILE_VERSION,
            KEEPING_RECORD,
            self.frame_cache.decoder,
            task.strict,
            span,
            sampling.record(),
        ]
        key = sha256_of(json.dumps(settings).encode())[:32]
        return self.frame_cache.folder / self.digest / f"{key}.frames"

    def read(self, task: DecodeTask) -> dict[Sampling, _KeptFrames]:
        """Read the frames of a clip from the cache: one file for each sampling that its backbones need.

        Raises
        ------
        FileNotFoundError
            They are not in the cache.
        Exception
            A file is damaged. The exception may be of any class, as bytes of any kind are decoded.
        """
        if not self.digest:  # the video cannot be read
            raise FileNotFoundError
        frames_of_sampling = {}
        for sampling in _samplings(task):
            # The path must not lead out of the cache's folder, as a link could.
            content = read_bytes(self._file(task, sampling), MAX_BYTES, within=self.frame_cache.folder)
            digest, _, data = content.partition(b"\n")
            frames = msgspec.msgpack.decode(data, type=_KeptFrames)

            # A sampling of some frames a second has a number for each clip, which is not known here.
            n_expected = sampling.n or len(frames.jpegs)
            has_all_frames = len(frames.index) == len(frames.time_s) == len(frames.jpegs) == n_expected
            is_undamaged = digest.decode() == sha256_of(data)
            if not is_undamaged or not has_all_frames:
                raise ValueError("another digest, or number of frames")
            frames_of_sampling[sampling] = frames
        return frames_of_sampling

    def clip_through_cache(
        self, task: DecodeTask, decoded: DecodedClip, remarks: Sequence[str], *, writes: bool
    ) -> DecodedClip:
        """Write a decoded clip's JPEGs into the cache, and return the clip as a later run will read it there.

        So the features do not depend on whether the frames were in the cache.

        Parameters
        ----------
        task
            The clip's task.
        decoded
            The decoded clip, which is returned as it is if it has failed.
        remarks
            Further remarks on the clip.
        writes
            Whether to add the frames to the cache.
        """
        if decoded.status == "failed":
            return decoded
        frames_of_sampling = _frames_to_keep(task, decoded)
        all_remarks = [*decoded.remarks, *remarks]
        if writes:
            all_remarks += self.write(task, frames_of_sampling)
        clip = self.clip(task, frames_of_sampling)
        return replace(clip, n_decoded=decoded.n_decoded, remarks=tuple(all_remarks), source=decoded.source)

    def write(self, task: DecodeTask, frames_of_sampling: Mapping[Sampling, _KeptFrames]) -> list[str]:
        """Write the frames of a clip to the cache, one file for each sampling; return a remark if that fails.

        Frames of a video that cannot be read, or was replaced while it was decoded, are not written.

        Parameters
        ----------
        task
            The clip's task.
        frames_of_sampling
            The frames, for each sampling (rule that chooses frames) that the backbones need.

        Returns
        -------
        list of str
            The remark, or nothing.
        """
        if not self.digest:  # the video cannot be read
            return []
        try:
            for sampling, frames in frames_of_sampling.items():
                was_replaced = file_state(self.path) != self.state  # since its digest was computed
                if was_replaced:
                    continue
                file = self._file(task, sampling)
                make_folder(file.parent)
                data = msgspec.msgpack.encode(frames)
                digest_line = sha256_of(data).encode() + b"\n"
                write_whole(file, digest_line + data, links=False)
        except (OSError, ObygazeError) as error:
            reason = getattr(error, "strerror", None) or error
            return [f"frames could not be kept: {reason}"]
        return []

    def clip(self, task: DecodeTask, frames_of_sampling: Mapping[Sampling, _KeptFrames]) -> DecodedClip:
        """Return a clip as a decoder would, but from kept JPEGs, which are prepared for each backbone here.

        The JPEGs are in a file for each sampling (rule that chooses frames). Each file also says how the clip
        was decoded for this sampling: status, reason and remarks. These are merged into those of the clip.

        Parameters
        ----------
        task
            The clip's task.
        frames_of_sampling
            The kept frames, for each sampling that the backbones need.
        """
        # Backbones with the same request share their prepared frames.
        prepared_of_request = _prepared_frames(task, frames_of_sampling)
        frames_of_backbone = {}
        for backbone_name, request in task.requests.items():
            frames_of_backbone[backbone_name] = prepared_of_request[request_key(request)]

        # The clip is partial if it is for one of the samplings.
        clips = [frames.clip for frames in frames_of_sampling.values()]
        is_partial = any(clip.status == "partial" for clip in clips)
        distinct_reasons = dict.fromkeys(clip.reason for clip in clips if clip.reason)
        distinct_remarks = dict.fromkeys(remark for clip in clips for remark in clip.remarks)
        # Gaps are those of the file, and so the same for all samplings that have noticed them.
        gaps_of_samplings = [clip.without_pictures_s for clip in clips if clip.without_pictures_s]
        gaps: tuple[tuple[float, float], ...] = gaps_of_samplings[0] if gaps_of_samplings else ()

        first_clip = clips[0]
        source = dict(first_clip.source)
        if task.hash_source:
            source["sha256"] = self.digest

        return replace(
            first_clip,
            clip_id=task.clip_id,
            status="partial" if is_partial else "ok",
            reason="; ".join(distinct_reasons),
            frames=frames_of_backbone,
            source=source,
            remarks=tuple(distinct_remarks),
            without_pictures_s=gaps,
        )


def _samplings(task: DecodeTask) -> dict[Sampling, str]:
    """Return each sampling (rule that chooses frames) of a clip's backbones -> one backbone that needs it.

    Backbones with the same sampling get the same frames, so that any of them stands for all.
    """
    return {request.sampling: name for name, request in task.requests.items()}


def _prepared_frames(
    task: DecodeTask, frames_of_sampling: Mapping[Sampling, _KeptFrames]
) -> dict[Hashable, Prepared]:
    """Decode the kept JPEGs of a clip, and prepare them for the backbones.

    Parameters
    ----------
    task
        The clip's task, which says how the frames are prepared for each backbone.
    frames_of_sampling
        The kept frames, for each sampling (rule that chooses frames) that the backbones need.

    Returns
    -------
    dict
        `request_key` of a request -> prepared frames; backbones with the same request share them.
    """
    # Decode each JPEG once, although several backbones may prepare it in their ways.
    pictures_of_sampling = {}
    for sampling, frames in frames_of_sampling.items():
        pictures_of_sampling[sampling] = [from_jpeg(data) for data in frames.jpegs]

    prepared: dict[Hashable, Prepared] = {}
    for key, (sampling, prepare) in task.frame_requests().items():
        frames = frames_of_sampling[sampling]
        images = np.stack([prepare(picture) for picture in pictures_of_sampling[sampling]])
        prepared[key] = Prepared(images, np.array(frames.index, np.int64), np.array(frames.time_s))
    return prepared


def _frames_to_keep(task: DecodeTask, clip: DecodedClip) -> dict[Sampling, _KeptFrames]:
    """Return for each sampling of a clip what to write to the frame cache: its JPEGs, and facts on the clip.

    Parameters
    ----------
    task
        The clip's task.
    clip
        The clip as it was decoded to JPEGs (`as_jpegs`).
    """
    # The file is read by other manifests and runs too. What may be otherwise there is not kept: the clip's
    # id, the digest of the video (which a run may not want), and how many frames were decoded (none then).
    # The frames are kept beside the clip.
    source = {field: value for field, value in clip.source.items() if field != "sha256"}
    clip_to_keep = replace(clip, clip_id="", frames={}, source=source, n_decoded=0)

    frames_of_sampling = {}
    # Several backbones may share a sampling. Their JPEGs are the same, so that those of one are kept.
    for sampling, backbone_name in _samplings(task).items():
        frames = clip.frames[backbone_name]
        jpegs: list[bytes] = frames.images.tolist()  # an array of bytes objects, as `to_jpeg` makes them
        frames_of_sampling[sampling] = _KeptFrames(
            clip_to_keep, frames.frame_index.tolist(), frames.time_s.tolist(), jpegs
        )
    return frames_of_sampling
