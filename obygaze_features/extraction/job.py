"""Describe an extraction job: the manifest's clips, the sampling and the backbones."""

import importlib.metadata
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from obygaze_features.arguments import checked
from obygaze_features.backbones import (
    Backbone,
    BackboneOutput,
    Hearing,
    SideGroup,
    TextBackbone,
    load_backbone,
)
from obygaze_features.errors import ExtractError
from obygaze_features.extraction.decode_clips import DecodeTask, FrameCache, Request
from obygaze_features.extraction.decoders import PYAV, decoder_record
from obygaze_features.extraction.each_frame import encode_each_frame
from obygaze_features.extraction.keep_frames import KEEPING_RECORD
from obygaze_features.manifest import Manifest
from obygaze_features.messages import pickled_for_workers
from obygaze_features.store import ArraySpec, GroupSpec, PlannedClip
from obygaze_features.store.disk_usage import frames_per_clip
from obygaze_features.text import counted
from obygaze_features.video import Sampling, fps, is_still, keyframes, uniform
from obygaze_features.video.sampling import pairs

POLICIES = {"uniform": uniform, "keyframes": keyframes}
"""Name of a policy -> the function that chooses the frames of a clip."""


REFUSED: Final = "refuse"
"""Field `decoder.on_damage` of features for which damaged files were refused (`--strict`)."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """Arguments to build a backbone; unlike a network, a recipe can be sent to another process.

    Parameters
    ----------
    name
        Name of the backbone.
    n_frames
        Frames of a clip; None for the backbone's usual number.
    options
        Further arguments of `load_backbone`, such as `weights`.
    each_frame
        Whether each frame is encoded alone, so that clips may have any number of them.
    """

    name: str
    n_frames: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    each_frame: bool = False

    def build(self) -> Backbone:
        """Build the backbone that the recipe describes."""
        backbone = load_backbone(self.name, self.n_frames, **self.options)
        return encode_each_frame(backbone) if self.each_frame else backbone


@dataclass(frozen=True)
class Job:
    """All settings that determine the features in the store.

    Parameters
    ----------
    corpus
        Name of the corpus in the store.
    policy
        How frames are sampled; each backbone sets their number.
    strict
        Refuse damaged files that can be read in part.
    hash_sources
        Record the SHA-256 of every video file.
    recipes
        Recipe of each backbone; needed only by engines that build backbones in other processes.
    decoder
        Name of the decoder, as listed by `obygaze_features.extraction.decoders`.
    keep_frames
        Folder of frames that are kept, small and as JPEG, for later runs, and read; None reads exact frames.
    per_second
        Frames taken of each second, in place of a number of frames a clip; each is then encoded alone.

    Raises
    ------
    ExtractError
        If two backbones have the same name, or several frames are requested of still images.
    WorkerError
        If decode workers cannot import what prepares the frames of a backbone.
    """

    manifest: Manifest
    corpus: str
    backbones: tuple[Backbone, ...]
    policy: Literal["uniform", "keyframes"] = "uniform"
    strict: bool = False
    hash_sources: bool = False
    recipes: tuple[Recipe, ...] = ()
    decoder: str = PYAV
    keep_frames: Path | None = None
    per_second: float | None = None

    def __post_init__(self) -> None:
        """Refuse backbones that cannot be combined, sent to workers, or run on these clips."""
        group_names: list[str] = []
        for backbone in self.backbones:
            group_names += backbone.group_names()
        refuse_duplicates(group_names)
        for backbone in self.backbones:
            sent_to_workers = (backbone.prepare, _encode_in_worker(backbone), backbone.hears)
            pickled_for_workers(sent_to_workers, f"backbone '{backbone.name}'")  # only for its check

        # Backbones that hear take sound, and no frames.
        all_hear = all(backbone.hears is not None for backbone in self.backbones)
        if self.keep_frames is not None and all_hear:
            raise ExtractError(f"{self.keep_frames}: no backbone here takes frames that could be kept")
        if of_stills(self.manifest):
            self._check_stills()

    def _check_stills(self) -> None:
        """Refuse settings that need several frames or sound, where the clips are still images."""
        if self.per_second is not None:
            raise ExtractError("the clips are still images, of which no frames a second can be taken")
        for backbone in self.backbones:
            if backbone.n_frames != 1:
                raise ExtractError(
                    f"backbone '{backbone.name}' is to take {counted(backbone.n_frames, 'frame')} of a clip, "
                    "and the clips are still images, which have one (extract: leave out --n, or give --n 1)"
                )
            if backbone.hears is not None:
                raise ExtractError(f"backbone '{backbone.name}' hears, and the clips are still images")

    def sampling(self, backbone: Backbone) -> Sampling:
        """Return the rule by which the frames of a clip are chosen for a backbone.

        It is a number of frames a second, if the job has one; else pairs of frames, if the backbone compares
        neighbouring frames; else the job's policy with the backbone's number of frames.
        """
        if self.per_second is not None:
            return fps(self.per_second)
        if backbone.pair_gap_s:
            return pairs(backbone.n_frames, backbone.pair_gap_s)
        return POLICIES[self.policy](backbone.n_frames)

    def planned_clips(self) -> list[PlannedClip]:
        """List the clips of the manifest as rows that the store will have."""
        return [
            PlannedClip(clip.clip_id, clip.movie, clip.start_s, clip.end_s) for clip in self.manifest.clips
        ]

    def groups(self) -> list[GroupSpec]:
        """Describe the groups of features that the store will have, with their complete provenance.

        Each backbone has a main group, and perhaps side groups, such as one for each of a network's layers.
        """
        groups = []
        for backbone in self.backbones:
            frames_record = self._frames_record(backbone)
            arrays = specs_of(backbone.outputs)
            groups.append(group_of(backbone, arrays, backbone.n_frames, **frames_record))
            groups += [side_group_of(backbone, side, **frames_record) for side in backbone.side_groups]
        return groups

    def corpus_record(self) -> dict[str, object]:
        """Return what the store records of its corpus: its name, and the digest of the clips' manifest."""
        return {"name": self.corpus, "manifest_sha256": self.manifest.digest()}

    def tasks(self, clip_ids: Sequence[str]) -> list[DecodeTask]:
        """Describe for each clip what a decode worker does with it: its file and span, and what to read.

        All clips have the same backbones, and so the same requests for pictures and for sound. Frames that
        are kept on the disk (`keep_frames`) are read from there.
        """
        picture_requests: dict[str, Request] = {}  # name of a backbone -> what it needs
        sound_requests: dict[str, tuple[Hearing, Request]] = {}  # with the sound track and rate to read
        for backbone in self.backbones:
            request = Request(self.sampling(backbone), backbone.prepare, _encode_in_worker(backbone))
            if backbone.hears is None:  # it takes pictures
                picture_requests[backbone.name] = request
            else:
                sound_requests[backbone.name] = (backbone.hears, request)

        frame_cache = None
        if self.keep_frames is not None:
            frame_cache = FrameCache(self.keep_frames, self._decoder_record())

        tasks = []
        for clip_id in clip_ids:
            clip = self.manifest.by_id[clip_id]
            task = DecodeTask(
                clip_id=clip_id,
                path=self.manifest.video_path(clip),
                start_s=clip.start_s,
                end_s=clip.end_s,
                requests=picture_requests,
                strict=self.strict,
                hash_source=self.hash_sources,
                sounds=sound_requests,
                frame_cache=frame_cache,
            )
            tasks.append(task)
        return tasks

    def bytes_per_clip(self) -> int:
        """Return the size of one clip's features in the store, in bytes; of clips of any length, the mean."""
        planned = self.planned_clips()
        n_bytes = 0.0
        for group in self.groups():
            for array in group.arrays:
                n_rows = frames_per_clip(group, planned) if array.ragged else array.shape[0]
                n_bytes += np.dtype(array.dtype).itemsize * n_rows * math.prod(array.shape[1:])
        return int(n_bytes)

    def _frames_record(self, backbone: Backbone) -> dict[str, object]:
        """Return how frames are chosen and read: the fields `sampling` and `decoder` of the provenance.

        For example {"sampling": {"policy": "uniform", "n": 8}, "decoder": {"av": "14.0.1", ...}}.
        """
        sampling = self.sampling(backbone).record()
        sampling.setdefault("n", None)  # with frames a second, clips have no common number of frames
        decoder: dict[str, object] = {**self._decoder_record()}
        decoder["on_damage"] = REFUSED if self.strict else "what can be read, status partial"
        takes_kept_frames = self.keep_frames is not None and backbone.hears is None
        if takes_kept_frames:
            decoder["kept_frames"] = dict(KEEPING_RECORD)
        return {"sampling": sampling, "decoder": decoder}

    def _decoder_record(self) -> dict[str, str]:
        """Describe for the provenance what decodes these clips: name and version of the decoder."""
        return decoder_record(self.decoder, stills=of_stills(self.manifest))


def _encode_in_worker(backbone: Backbone) -> Any:
    """Return the function that encodes, of a backbone that runs in the decode workers; None for others.

    Other backbones, such as networks, run in the main process or in a process of a GPU.
    """
    return backbone.encode if backbone.encode_in_worker else None


def specs_of(outputs: Sequence[BackboneOutput]) -> list[ArraySpec]:
    """Describe the arrays of a backbone as the store's plan does."""
    return [ArraySpec(output.name, output.shape, output.dtype) for output in outputs]


def group_of(
    backbone: Backbone | TextBackbone, arrays: Sequence[ArraySpec], n_frames: int, **frames_record: object
) -> GroupSpec:
    """Describe the group of features that a backbone fills in the store, with its complete provenance.

    Parameters
    ----------
    backbone
        The backbone.
    arrays
        Names, shapes and data types of the group's arrays.
    n_frames
        Number of frames of a clip; `ANY_NUMBER` if each clip has its own.
    frames_record
        Fields of the provenance that say which frames or texts the backbone gets.
    """
    provenance = {
        "name": backbone.name,
        **backbone.provenance,
        **frames_record,
        **_software(backbone),
    }
    return GroupSpec(backbone.name, tuple(arrays), n_frames, provenance)


def side_group_of(backbone: Backbone, side: SideGroup, **frames_record: object) -> GroupSpec:
    """Describe a further group that a backbone fills in the store, such as a layer's, with its provenance.

    Parameters
    ----------
    backbone, side
        The backbone, and what it says of the group.
    frames_record
        Fields of the provenance that say which frames the backbone gets.
    """
    name = f"{backbone.name}.{side.name}"
    provenance = {"name": name, **side.provenance, **frames_record, **_software(backbone)}
    return GroupSpec(name, tuple(specs_of(side.outputs)), backbone.n_frames, provenance)


def _software(backbone: Backbone | TextBackbone) -> dict[str, object]:
    """Return the fields of a group's provenance that say which versions of software computed its features.

    `commit` and `contact` are fields of the format, which are not known here.
    """
    names = ["obygaze", "numpy", *backbone.libraries]
    software = {name: importlib.metadata.version(name) for name in names}
    return {"software": software, "commit": None, "contact": ""}


def refuse_duplicates(names: Sequence[str]) -> None:
    """Raise an ExtractError if a name of a backbone, or of a group of its features, is there twice."""
    if len(set(names)) < len(names):
        raise ExtractError(f"two backbones have the same name: {', '.join(names)}")


@checked
def of_stills(manifest: Manifest) -> bool:
    """Return whether a manifest's clips are still images rather than videos.

    Raises
    ------
    ExtractError
        If the manifest mixes both: their features are computed differently.
    """
    stills = [clip for clip in manifest if clip.video and is_still(clip.video)]
    videos = [clip for clip in manifest if clip.video and not is_still(clip.video)]
    if stills and videos:
        still = stills[0]
        video = videos[0]
        raise ExtractError(
            f"clip {still.clip_id} is a still image ({still.video}) and clip {video.clip_id} a video "
            f"({video.video}): give each kind a manifest and a store of its own"
        )
    return len(stills) > 0


def frames_of(manifest: Manifest, n_frames: int | None) -> int | None:
    """Return the number of frames per clip: `n_frames` if it is set, else 1 for still images.

    None for videos leaves the number to each backbone.
    """
    if n_frames is None and of_stills(manifest):
        return 1
    return n_frames


class ArrayTask(NamedTuple):
    """A task of a Slurm job array.

    Attributes
    ----------
    number
        Its number.
    first, last
        Numbers of the array's first and last task.
    n_tasks
        Number of tasks in the array.
    """

    number: int
    first: int
    last: int
    n_tasks: int


def array_task(environment: Mapping[str, str]) -> ArrayTask | None:
    """Return which task of a Slurm job array this process is; None outside of a job array.

    Parameters
    ----------
    environment
        Environment variables, among them those that Slurm sets.
    """
    number = environment.get("SLURM_ARRAY_TASK_ID", "")
    n_tasks = environment.get("SLURM_ARRAY_TASK_COUNT", "")
    if not number.isdecimal() or not n_tasks.isdecimal():
        return None
    first = int(environment.get("SLURM_ARRAY_TASK_MIN", "0"))
    last_without_gaps = first + int(n_tasks) - 1
    last = int(environment.get("SLURM_ARRAY_TASK_MAX", last_without_gaps))
    return ArrayTask(int(number), first, last, int(n_tasks))


@checked
def array_shard(environment: Mapping[str, str], n_shares: int | None = None) -> tuple[int, int] | None:
    """Return which share of the clips this task of a job array does, as (i, n): share i of n.

    None outside of a job array.

    Parameters
    ----------
    environment
        Variables that Slurm sets.
    n_shares
        Number of shares into which the clips are divided already; None if no share has begun. The first array
        must have a task for every share; a later one may have tasks for some of them (`--array=3`).

    Raises
    ------
    ExtractError
        If the numbers of the array's tasks are not numbers of shares.
    """
    task = array_task(environment)
    if task is None:
        return None
    if n_shares is None:
        _refuse_first_array_with_gaps(task)
        return task.number, task.n_tasks
    if task.last >= n_shares:
        raise ExtractError(
            f"a job array with tasks up to {task.last}, and the clips are divided into {n_shares} "
            f"shares, 0 to {n_shares - 1}: submit it again with some of these, as in "
            f"--array=0-{n_shares - 1}"
        )
    return task.number, n_shares


def _refuse_first_array_with_gaps(task: ArrayTask) -> None:
    """Raise an ExtractError unless the tasks of a store's first array are numbered 0, 1, ... without gaps.

    Each share of the clips then has a task, since task i of n does share i of n.
    """
    is_without_gaps = task.first == 0 and task.last == task.n_tasks - 1
    if not is_without_gaps or task.number > task.last:
        raise ExtractError(
            f"task {task.number} of a job array with {counted(task.n_tasks, 'task')} from {task.first} to "
            f"{task.last} cannot tell its share, since the first array of a store divides it: number it "
            "from 0 without gaps, as in --array=0-7"
        )


@checked
def check_first_array(environment: Mapping[str, str], shard: tuple[int, int]) -> None:
    """Refuse a share that does not fit the job array of this task, so that some share would never be done.

    It is called for the first job array of a store, which divides the clips. Outside a job array nothing is
    checked.

    Parameters
    ----------
    environment
        Variables that Slurm sets.
    shard
        The option --shard: share i of n.

    Raises
    ------
    ExtractError
        If the array's number of tasks is not the number of shares, or this task does the share of another.
    """
    task = array_task(environment)
    if task is None:
        return
    share, n_shares = shard
    if task.n_tasks != n_shares:
        raise ExtractError(
            f"a job array of {counted(task.n_tasks, 'task')}, and --shard divides the clips into {n_shares}: "
            "shares without a task would never be done; submit as many tasks as there are shares"
        )
    if task.number - task.first != share:
        raise ExtractError(
            f"task {task.number} of a job array that begins with {task.first} is told to do share {share}: "
            "each task has a share of its own; leave out --shard, and number the array from 0"
        )
