"""Define the settings of a training, and check all inputs before the first video is decoded."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from obygaze_features.backbones import LoadedNetwork, LsmdcFormat, find_weights, load_network
from obygaze_studies.errors import TrainError
from obygaze_studies.lsmdc.execution import ARITHMETICS, Arithmetic
from obygaze_studies.lsmdc.frame_cache import FrameCache
from obygaze_studies.lsmdc.initialise import initial_tensors, load_clip
from obygaze_studies.lsmdc.lsmdc16 import (
    FILES,
    OBYGAZE12,
    Caption,
    ExcludedMovies,
    count_movies,
    exclude,
    find_videos,
    read_annotations,
    read_titles,
)
from obygaze_studies.lsmdc.samples import steps_of_an_epoch

BATCHES: Mapping[int, int] = {32: 300, 16: 80}
"""Patch size of the CLIP -> batch of the published script for it; the paper does not say which was used."""

PUBLISHED_PROCESSES = 4


@dataclass(frozen=True, slots=True)
class LsmdcSettings:
    """Settings of a training.

    Parameters
    ----------
    clip
        The CLIP to start from: a repository, a folder in the hub's format, or safetensors in OpenAI's names.
    annotations, videos
        Folder of LSMDC16's three annotation files; folder of the clips.
    out
        Folder of the run.
    batch
        Pairs per step, over all processes; None: 300 for patches of 32 pixels, 80 for 16.
    lr, clip_lr_scale
        Peak learning rate of the tensors outside CLIP; that of CLIP's tensors is `lr * clip_lr_scale`.
    gather_share
        Factor of the towers' gradients: 1/4 as published, 1 for the true gradient.
    chunk
        Pairs whose activations are held at a time; None: a quarter of the batch, as on each of the four GPUs
        of the publication.
    cache
        Folder of decoded frames; None: `cache` in the run's folder.
    exclude_movies
        File of film titles to leave out of training and validation.
    save_every
        Number of steps between saved states.
    """

    clip: str
    annotations: Path
    videos: Path
    out: Path
    batch: int | None = None
    epochs: int = 5
    lr: float = 1e-4
    clip_lr_scale: float = 1e-3
    gather_share: float = 1 / PUBLISHED_PROCESSES
    arithmetic: Arithmetic = "float32"
    chunk: int | None = None
    cache: Path | None = None
    exclude_movies: Path | None = None
    resume: bool = False
    save_every: int = 200
    workers: int | None = None
    device: str = "auto"

    def __post_init__(self) -> None:
        if self.arithmetic not in ARITHMETICS:
            raise TrainError(f"arithmetic '{self.arithmetic}' is not one of {', '.join(ARITHMETICS)}")
        wanted = {
            "batch": self.batch,
            "epochs": self.epochs,
            "chunk": self.chunk,
            "save_every": self.save_every,
        }
        for name, value in wanted.items():
            if value is not None and value < 1:
                raise TrainError(f"--{name.replace('_', '-')} {value}: expected 1 or more")
        for name, rate in (
            ("lr", self.lr),
            ("clip-lr-scale", self.clip_lr_scale),
            ("gather-share", self.gather_share),
        ):
            if not 0 < rate <= 1:
                raise TrainError(f"--{name} {rate:g}: expected a number above 0 and at most 1")


@dataclass(frozen=True, slots=True)
class LsmdcPlan:
    """A training with its inputs found and checked.

    Parameters
    ----------
    network
        The network at step 0, with CLIP's tokenizer.
    size
        Its sizes and published format.
    captions
        Split -> sentences, excluded films left out.
    videos
        Clip id -> file, for the clips that have one.
    excluded
        Films left out.
    shared_movies
        Title of an ObyGaze12 film -> number of its sentences that remain in the training set.
    """

    settings: LsmdcSettings
    network: LoadedNetwork
    size: LsmdcFormat
    batch: int
    captions: Mapping[str, tuple[Caption, ...]]
    videos: Mapping[str, Path]
    excluded: ExcludedMovies
    shared_movies: Mapping[str, int]
    cache: FrameCache

    @property
    def chunk(self) -> int:
        """Return the number of pairs whose activations are held at a time."""
        return self.settings.chunk or -(-self.batch // PUBLISHED_PROCESSES)

    def with_video(self, split: str) -> int:
        """Count a split's sentences that have a video."""
        return sum(caption.clip_id in self.videos for caption in self.captions[split])

    def describe(self) -> dict[str, Any]:
        """Return the plan as plain JSON."""
        to_decode = self.cache.count_missing(self.videos)
        per_frame = 3 * self.size.image**2
        steps = steps_of_an_epoch(self.with_video("training"), self.batch)
        return {
            "sentences": {split: len(of) for split, of in self.captions.items()},
            "without_video": {split: len(of) - self.with_video(split) for split, of in self.captions.items()},
            "clips": len(self.videos),
            "clips_to_decode": to_decode,
            "cache_bytes_at_most": to_decode * self.size.max_frames * per_frame,
            "batch": self.batch,
            "steps_an_epoch": steps,
            "steps": steps * self.settings.epochs,
            "excluded_movies": {split: dict(of) for split, of in (self.excluded.sentences or {}).items()},
            "movies_not_found": list(self.excluded.unmatched),
            "movies_shared_with_obygaze12": dict(self.shared_movies),
        }

    def record(self) -> dict[str, Any]:
        """Return as plain JSON what determines the weights, except the data."""
        settings = self.settings
        return {
            "backbone": "xclip-lsmdc",
            "arithmetic": settings.arithmetic,
            "gather_share": settings.gather_share,
            "batch": self.batch,
            "epochs": settings.epochs,
            "lr": settings.lr,
            "clip_lr_scale": settings.clip_lr_scale,
            "clip": self.network.weights.record() | {"tokenizer_sha256": self.network.tokenizer_sha256},
            "architecture": self.size.record(),
            "frames": self.cache.recipe,
            "movies": {
                "excluded": list(self.excluded.titles),
                "excluded_sentences": {
                    split: dict(of) for split, of in (self.excluded.sentences or {}).items()
                },
                "shared_with_obygaze12": dict(self.shared_movies),
            },
            "software": {name: version(name) for name in ("torch", "transformers")},
        }


def make_plan(settings: LsmdcSettings) -> LsmdcPlan:
    """Find and check all inputs of a training, without opening a video.

    Raises
    ------
    TrainError, BackboneError
        In one line, naming the file, line or option at fault.
    """
    captions = read_annotations(settings.annotations)
    excluded = ExcludedMovies()
    if settings.exclude_movies is not None:
        captions, excluded = exclude(captions, read_titles(settings.exclude_movies))
        for split, of in captions.items():
            if not of:
                raise TrainError(f"{settings.exclude_movies}: excludes every {split} sentence")
    videos = find_videos(settings.videos, (caption.clip_id for of in captions.values() for caption in of))
    weights = find_weights(settings.clip)
    tensors = initial_tensors(weights.name, load_clip(weights))
    size = LsmdcFormat.of(weights.name, tensors)
    batch = settings.batch or BATCHES.get(size.patch)
    if batch is None:
        known = " and ".join(f"{patch} ({pairs})" for patch, pairs in BATCHES.items())
        raise TrainError(
            f"{weights.name}: patches of {size.patch} pixels, and a batch was published for {known} alone; "
            "name one with --batch"
        )
    network = load_network("xclip-lsmdc", weights, tensors=tensors)
    plan = LsmdcPlan(
        settings=settings,
        network=network,
        size=size,
        batch=batch,
        captions=captions,
        videos=videos,
        excluded=excluded,
        shared_movies=count_movies(captions["training"], OBYGAZE12),
        cache=FrameCache(settings.cache or settings.out / "cache", network.preset, size.max_frames),
    )
    steps_of_an_epoch(plan.with_video("training"), batch)
    return plan


def data_record(
    plan: LsmdcPlan,
    kept: Mapping[str, tuple[Caption, ...]],
    left_out: Mapping[str, int],
    digests: Mapping[str, Mapping[str, str]],
) -> dict[str, Any]:
    """Return as plain JSON the counts and digests of the training's data, by split."""
    return {
        split: {
            "annotations_sha256": _file_digest(plan.settings.annotations / FILES[split]),
            "sentences": len(of),
            "clips": len({caption.clip_id for caption in of}),
            "left_out": left_out[split],
            **digests[split],
        }
        for split, of in kept.items()
    }


def default_workers() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
