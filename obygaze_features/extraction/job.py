"""Describe an extraction job: the manifest's clips, the sampling and the backbones."""

import importlib.metadata
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from obygaze_features.arguments import checked
from obygaze_features.backbones import Backbone, BackboneOutput, SideGroup, TextBackbone, load_backbone
from obygaze_features.errors import ExtractError
from obygaze_features.extraction.decode_clips import DecodeTask, Keep, Request
from obygaze_features.extraction.decoders import PYAV, decoder_record
from obygaze_features.extraction.each_frame import of_each_frame
from obygaze_features.extraction.keep_frames import RECORD
from obygaze_features.manifest import Manifest
from obygaze_features.messages import pickled_for_workers
from obygaze_features.store import ArraySpec, GroupSpec, PlannedClip
from obygaze_features.video import Sampling, fps, is_still, keyframes, uniform
from obygaze_features.video.sampling import pairs

POLICIES = {"uniform": uniform, "keyframes": keyframes}


@dataclass(frozen=True, slots=True)
class Recipe:
    """Arguments to build a backbone; unlike a network, a recipe can be sent to another process.

    Parameters
    ----------
    name, n_frames, options
        As in `load_backbone`.
    each_frame
        Whether each frame is encoded alone, so that clips may have any number of them.
    """

    name: str
    n_frames: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    each_frame: bool = False

    def build(self) -> Backbone:
        """Build the backbone."""
        backbone = load_backbone(self.name, self.n_frames, **self.options)
        return of_each_frame(backbone) if self.each_frame else backbone


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
        refuse_twins([name for backbone in self.backbones for name in backbone.group_names()])
        for backbone in self.backbones:
            sent = (backbone.prepare, _in_worker(backbone), backbone.hears)
            pickled_for_workers(sent, f"backbone '{backbone.name}'")
        if self.keep_frames is not None and all(backbone.hears is not None for backbone in self.backbones):
            raise ExtractError(f"{self.keep_frames}: no backbone here takes frames that could be kept")
        if self.per_second is not None and of_stills(self.manifest):
            raise ExtractError("the clips are still images, of which no frames a second can be taken")
        for backbone in self.backbones if of_stills(self.manifest) else ():
            if backbone.n_frames != 1:
                raise ExtractError(
                    f"backbone '{backbone.name}' is to take {backbone.n_frames} frames of a clip, "
                    "and the clips are still images, which have one (extract: leave out --n, or give --n 1)"
                )
            if backbone.hears is not None:
                raise ExtractError(f"backbone '{backbone.name}' hears, and the clips are still images")

    def sampling(self, backbone: Backbone) -> Sampling:
        """Return the sampling of frames for a backbone."""
        if self.per_second is not None:
            return fps(self.per_second)
        if backbone.pair_gap_s:
            return pairs(backbone.n_frames, backbone.pair_gap_s)
        return POLICIES[self.policy](backbone.n_frames)

    def planned_clips(self) -> list[PlannedClip]:
        """List the clips in the form of the store's plan."""
        return [
            PlannedClip(clip.clip_id, clip.movie, clip.start_s, clip.end_s) for clip in self.manifest.clips
        ]

    def groups(self) -> list[GroupSpec]:
        """Describe the groups of the store of each backbone, with their complete provenance."""
        groups = []
        for backbone in self.backbones:
            taken = self._taken(backbone)
            groups.append(group_of(backbone, specs_of(backbone.outputs), backbone.n_frames, **taken))
            groups += [side_group_of(backbone, side, **taken) for side in backbone.beside]
        return groups

    def corpus_record(self) -> dict[str, object]:
        """Return the corpus name and the manifest of the clips."""
        return {"name": self.corpus, "manifest_sha256": self.manifest.digest()}

    def tasks(self, clip_ids: Sequence[str]) -> list[DecodeTask]:
        """Create decode tasks for some of the clips."""
        requests = {
            each.name: Request(self.sampling(each), each.prepare, _in_worker(each)) for each in self.backbones
        }
        hearing = {each.name: each.hears for each in self.backbones if each.hears is not None}
        sounds = {name: (hears, requests.pop(name)) for name, hears in hearing.items()}
        clips = self.manifest.by_id
        keep = None if self.keep_frames is None else Keep(self.keep_frames, self._decoder_record())
        return [
            DecodeTask(
                clip_id,
                self.manifest.video_path(clips[clip_id]),
                clips[clip_id].start_s,
                clips[clip_id].end_s,
                requests,
                self.strict,
                self.hash_sources,
                sounds,
                keep,
            )
            for clip_id in clip_ids
        ]

    def bytes_per_clip(self) -> int:
        """Size of one clip's features in the store, in bytes."""
        n_bytes = 0
        for group in self.groups():
            for array in group.arrays:
                n_bytes += np.dtype(array.dtype).itemsize * math.prod(array.shape)
        return n_bytes

    def _taken(self, backbone: Backbone) -> dict[str, object]:
        """Say for the provenance which frames are taken, and what decodes them."""
        on_damage = "refuse" if self.strict else "what can be read, status partial"
        kept = {} if self.keep_frames is None or backbone.hears is not None else {"kept_frames": dict(RECORD)}
        sampling = self.sampling(backbone).record()
        sampling.setdefault("n", None)  # of frames a second
        return {
            "sampling": sampling,
            "decoder": {**self._decoder_record(), "on_damage": on_damage, **kept},
        }

    def _decoder_record(self) -> dict[str, str]:
        return decoder_record(self.decoder, stills=of_stills(self.manifest))


def _in_worker(backbone: Backbone) -> Any:
    return backbone.encode if backbone.encode_in_worker else None


def specs_of(outputs: Sequence[BackboneOutput]) -> list[ArraySpec]:
    """Describe arrays of a backbone in the form of the store's plan."""
    return [ArraySpec(output.name, output.shape, output.dtype) for output in outputs]


def group_of(
    backbone: Backbone | TextBackbone, arrays: Sequence[ArraySpec], n_frames: int, **taken: object
) -> GroupSpec:
    """Describe the group of a backbone, with its complete provenance, given that of what it takes."""
    own = {**backbone.provenance, **taken, **_software(backbone)}
    return GroupSpec(backbone.name, tuple(arrays), n_frames, {"name": backbone.name, **own})


def side_group_of(backbone: Backbone, side: SideGroup, **taken: object) -> GroupSpec:
    """Describe a group beside a backbone's own, with its complete provenance, given that of what it takes."""
    name = f"{backbone.name}.{side.name}"
    own = {**side.provenance, **taken, **_software(backbone)}
    return GroupSpec(name, tuple(specs_of(side.outputs)), backbone.n_frames, {"name": name, **own})


def _software(backbone: Backbone | TextBackbone) -> dict[str, object]:
    """Return the fields of a provenance on the software that affects the features."""
    names = ["obygaze", "numpy", *backbone.libraries]
    software = {name: importlib.metadata.version(name) for name in names}
    return {"software": software, "commit": None, "contact": ""}


def refuse_twins(names: Sequence[str]) -> None:
    """Refuse backbones of one name."""
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
    named = [clip for clip in manifest if clip.video]
    stills = [clip for clip in named if is_still(clip.video)]
    if stills and len(stills) < len(named):
        video = next(clip for clip in named if not is_still(clip.video))
        raise ExtractError(
            f"clip {stills[0].clip_id} is a still image ({stills[0].video}) and clip {video.clip_id} a video "
            f"({video.video}): give each kind a manifest and a store of its own"
        )
    return bool(stills)


def frames_of(manifest: Manifest, wanted: int | None) -> int | None:
    """Return the number of frames per clip: as requested, else 1 for still images."""
    return 1 if wanted is None and of_stills(manifest) else wanted


class ArrayTask(NamedTuple):
    """A task of a Slurm job array: its number, those of the first and the last, and how many there are."""

    number: int
    first: int
    last: int
    n_tasks: int


def array_task(environment: Mapping[str, str]) -> ArrayTask | None:
    """Read which task of a job array this process is, from variables that Slurm sets; None if it is none."""
    number = environment.get("SLURM_ARRAY_TASK_ID", "")
    count = environment.get("SLURM_ARRAY_TASK_COUNT", "")
    if not number.isdecimal() or not count.isdecimal():
        return None
    first = int(environment.get("SLURM_ARRAY_TASK_MIN", "0"))
    last = int(environment.get("SLURM_ARRAY_TASK_MAX", first + int(count) - 1))
    return ArrayTask(int(number), first, last, int(count))


@checked
def array_shard(environment: Mapping[str, str], n_shares: int | None = None) -> tuple[int, int] | None:
    """Return the shard (i, n) of this task of a job array; None outside a job array.

    Parameters
    ----------
    environment
        Variables that Slurm sets.
    n_shares
        Into how many shares the clips are divided already; None where no share has begun. A later array may
        be of some shares alone (`--array=3`), the first one must be of all.

    Raises
    ------
    ExtractError
        If the array's indices are no shares.
    """
    task = array_task(environment)
    if task is None:
        return None
    if n_shares is not None:
        if task.last >= n_shares:
            raise ExtractError(
                f"a job array with tasks up to {task.last}, and the clips are divided into {n_shares} "
                f"shares, 0 to {n_shares - 1}: submit it again with some of these, as in "
                f"--array=0-{n_shares - 1}"
            )
        return task.number, n_shares
    if (task.first, task.last) != (0, task.n_tasks - 1) or task.number > task.last:
        raise ExtractError(
            f"task {task.number} of a job array with {task.n_tasks} tasks from {task.first} to {task.last} "
            "cannot tell its share, since the first array of a store divides it: number it from 0 without "
            "gaps, as in --array=0-7"
        )
    return task.number, task.n_tasks


@checked
def check_first_array(environment: Mapping[str, str], shard: tuple[int, int]) -> None:
    """Refuse a shard (i, n) that was typed, where the tasks of a store's first job array would not do all.

    Raises
    ------
    ExtractError
        If the array has another number of tasks than there are shares, or this task does another one's share.
    """
    task = array_task(environment)
    if task is None:
        return
    share, n_shares = shard
    if task.n_tasks != n_shares:
        raise ExtractError(
            f"a job array of {task.n_tasks} tasks, and --shard divides the clips into {n_shares}: shares "
            "without a task would never be done; submit as many tasks as there are shares"
        )
    if task.number - task.first != share:
        raise ExtractError(
            f"task {task.number} of a job array that begins with {task.first} is told to do share {share}: "
            "each task has a share of its own; leave out --shard, and number the array from 0"
        )
