"""Tiny stages and stores whose every number is known."""

import errno
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from obygaze_features.store import (
    ArraySpec,
    ClipFeatures,
    ClipResult,
    GroupSpec,
    PlannedClip,
    Stage,
    open_store,
    seal,
    staging_path,
)
from obygaze_features.store.format import ANY_NUMBER

F = 3
D = 4
T = 5
DT = 6
LICENSED = {"licence": "CC-BY-4.0", "citation": "Nobody, 2026"}
CORPUS = {"name": "Toy films", "manifest_sha256": "ab" * 32}


def provenance(name: str = "toy", **changes: object) -> dict[str, object]:
    return {
        "name": name,
        "head": None,
        "layer": "last",
        "hub": {"repository": "lab/toy", "revision": "0" * 40},
        "weights_sha256": "1" * 64,
        "architecture": {"width": D},
        "preset": {
            "resize": "bilinear 8",
            "crop": None,
            "constants": [0.5, 0.5],
            "order": "resize, normalise",
        },
        "sampling": {"policy": "uniform", "n": F},
        "decoder": {"av": "15.1.0", "ffmpeg": "7.1", "on_damage": "keep what decodes"},
        "compute": {"dtype": "float32", "autocast": None, "attention": None, "tf32": False, "device": "cpu"},
        "software": {"obygaze": "0.1.0"},
        "commit": None,
        "licence": "MIT",
        "citation": "Nobody, 2026",
        "contact": "",
        **changes,
    }


def group(
    name: str = "toy",
    arrays: Sequence[str] = ("pooled", "frames", "tokens"),
    n_frames: int = F,
    **changes: object,
) -> GroupSpec:
    kinds = {
        "pooled": ArraySpec("pooled", (D,), "float32"),
        "frames": ArraySpec("frames", (n_frames, D), "float16"),
        "tokens": ArraySpec("tokens", (T, DT), "float16"),
    }
    return GroupSpec(name, tuple(kinds[array] for array in arrays), n_frames, provenance(name, **changes))


def ragged_group(
    name: str = "toy", arrays: Sequence[str] = ("pooled", "frames", "tokens"), **changes: object
) -> GroupSpec:
    """A group in which every clip has its own number of frames."""
    return group(name, arrays, ANY_NUMBER, **changes)


GROUP_MAKERS = {"fixed": group, "ragged": ragged_group}
"""Kind of group -> the function that makes one: with as many frames of each clip, or any number of each."""


def plan(n: int) -> list[PlannedClip]:
    """Clips in an order that is not the one of their ids."""
    return [PlannedClip(f"tt{(7 * i) % n:04d}-é", f"tt{i % 2}", float(i), i + 1.5) for i in range(n)]


def planted_features(clip_id: str, kind: GroupSpec) -> ClipFeatures:
    """The planted truth: numbers that only this clip, group and array have."""
    rng = np.random.default_rng([*clip_id.encode(), *kind.name.encode()])
    n_frames = int(rng.integers(1, 3 * F)) if kind.ragged else kind.n_frames
    shapes = {spec.name: (n_frames, D) if spec.ragged else spec.shape for spec in kind.arrays}
    return ClipFeatures(
        time_s=np.sort(rng.random(n_frames)),
        frame_index=np.sort(rng.integers(0, 99, n_frames)),
        arrays={spec.name: rng.standard_normal(shapes[spec.name]).astype(spec.dtype) for spec in kind.arrays},
    )


def result(
    clip_id: str, groups: Iterable[GroupSpec], status: str = "ok", absent: Mapping[str, str] = {}
) -> ClipResult:
    reason = "" if status == "ok" else f"the file is {status}"
    source = {"bytes": 1000, "duration_s": 5.25, "sha256": "c" * 64}
    kinds = [] if status == "failed" else [kind for kind in groups if kind.name not in absent]
    return ClipResult(
        clip_id, status, reason, source, {k.name: planted_features(clip_id, k) for k in kinds}, absent
    )


def status_of(clip_id: str) -> str:
    """Return the planted status of a clip of `plan`, which is known by the number in its id."""
    number = int(clip_id[2:6])
    if number % 7 == 3:
        return "failed"
    if number % 7 == 5:
        return "partial"
    return "ok"


def make_stage(
    folder: Path,
    n: int = 20,
    groups: Sequence[GroupSpec] | None = None,
    name: str = "toy",
    absent: Mapping[str, Mapping[str, str]] = {},
) -> Stage:
    """A stage with every clip committed; `absent` is clip -> group -> reason."""
    kinds = [group()] if groups is None else groups
    stage = Stage.open(staging_path(folder / name), plan(n), kinds, CORPUS)
    commit_clips(stage, stage.missing(), absent=absent)
    return stage


def commit_clips(
    stage: Stage,
    clips: Iterable[str],
    status: Callable[[str], str] = status_of,
    absent: Mapping[str, Mapping[str, str]] = {},
) -> None:
    """Commit clips one after the other with a writer of their own."""
    clips = list(clips)
    with stage.writer(clips) as writer:
        for clip in clips:
            writer.commit([result(clip, stage.groups, status(clip), absent.get(clip, {}))])


def make_sealed_store(
    folder: Path,
    n: int = 20,
    groups: Sequence[GroupSpec] | None = None,
    name: str = "toy",
    absent: Mapping[str, Mapping[str, str]] = {},
    **settings: object,
) -> Path:
    """A sealed store."""
    make_stage(folder, n, groups, name, absent)
    return seal_stage_of(folder / name, **LICENSED, **settings)


def seal_stage_of(destination: Path, **settings: object) -> Path:
    """Seal the stage `DESTINATION.staging` into the store `DESTINATION-VERSION`, and return its path."""
    return seal(stage_path=None, destination=destination, **settings)


def read_all(place: Path | str) -> tuple[np.ndarray, ...]:
    """Open a store and read every array of its group toy."""
    group = open_store(place)["toy"]
    return group.pooled(), group.frames(), group.tokens(), group.time_s


def respecify(path: Path, **changes: object) -> None:
    """Change what a store says of itself."""
    file = path / "data/features.zarr/zarr.json"
    document = json.loads(file.read_bytes())
    document["attributes"]["obygaze"].update(changes)
    file.write_text(json.dumps(document), encoding="utf-8")


def no_link(source: Path, target: Path, real: Callable[..., None] = os.link) -> None:
    """Stand in for `os.link` on a disk that cannot link the files of a stage.

    Other files are linked: zarr moves its own so.
    """
    if "pieces" in str(source) or ".link" in str(source):
        raise OSError(errno.EPERM, "no links here")
    real(source, target)


def bytes_of_files(root: Path) -> dict[str, bytes]:
    """Return the bytes of every file below a folder, by its path from there."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
