"""Measure variables of staging in windows of a film: loudness, speech, cuts, black pictures, camera, faces.

They describe pictures and sound, and nobody who is in them. Pictures are decoded once for all of them.
"""

from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones.camera import GAP_S, N_PAIRS, camera_values, encode, prepare
from obygaze_features.backbones.faces import N_FRAMES, FaceDetector
from obygaze_features.backbones.sound_measures import BLOCKS_A_SECOND, RATE, gated_loudness, weighted_squares
from obygaze_features.backbones.speech import CHUNK, SPEECH, SpeechDetector
from obygaze_features.errors import VideoError, install_command
from obygaze_features.manifest import FilmPart
from obygaze_features.manifest.clip import OVERHANG_S
from obygaze_features.pixels import opencv
from obygaze_features.video import (
    Frames,
    Rest,
    SoundTrack,
    find_shots,
    joined_shots,
    probe,
    read_stretch,
    read_windows,
)
from obygaze_features.video.sampling import pairs, uniform
from obygaze_features.video.shots import Shot

VARIABLES = (
    "loudness", "speech", "cuts", "black",
    "camera", "pan", "tilt", "zoom", "roll", "inliers", "faces", "face",
)  # fmt: skip
"""LUFS; share of time; a minute; share of time; `camera_values`; `FaceDetector`."""

HEARD_S = 30.0
"""Seconds of sound that are read at a time."""

Span = tuple[float, float]
Values = dict[str, float]


def film_variables(
    path: Path,
    spans: Sequence[Span],
    *,
    shots: Sequence[FilmPart | Shot] | None = None,
    camera: Sequence[Values] | None = None,
    speech: bool = False,
    faces: FaceDetector | None = None,
    note: Callable[[str], object] = lambda _: None,
    show: Callable[[int, int], object] = lambda _done, _all: None,
) -> list[Values]:
    """Measure windows of a film.

    Parameters
    ----------
    path
        A video file.
    spans
        Start and end of each window in seconds.
    shots
        The film's shots; by default they are found.
    camera
        `camera_values` of each window; by default they are measured, if OpenCV is installed.
    speech
        Whether to measure the share of time with speech, which takes some two seconds of a core a minute.
    faces
        Detector of faces, which are counted and measured in two frames of each window.
    note
        Gets a line about what is absent.
    show
        Called now and then with the windows decoded and all.

    Returns
    -------
    list of dict
        Of each window the columns of `VARIABLES` that are known.

    Raises
    ------
    VideoError
        The film cannot be read.
    """
    measures: list[Any] = []
    if camera is None and opencv() is None:
        note(f"no columns of the camera: OpenCV is missing ({install_command('obygaze[extract]')})")
    elif camera is None:
        measures.append((pairs(2 * N_PAIRS, GAP_S), prepare, _moved))
    if faces is not None:
        measures.append((uniform(N_FRAMES), faces.prepare, lambda two: faces(two.images)))
    seen, shots = _decoded(path, spans, measures, shots, show)
    seen = [mine | moves for mine, moves in zip(seen, camera, strict=True)] if camera else seen
    told = ["camera" in values for values in seen]
    if any(told) and not all(told):
        note(
            f"{path.name}: no motion of the camera can be told in {told.count(False)} of {len(told)} windows"
        )
    shown = _inside(path, spans, note)
    rows = [_of_shots(span, shots) | values for span, values in zip(shown, seen, strict=True)]
    try:
        track = SoundTrack(path)
    except VideoError as error:
        note(f"{path.name}: no columns of sound: {error.reason}")
        return rows
    first_s = min(start_s for start_s, _ in spans)
    spoken = _spoken(track, first_s, max(end_s for _, end_s in spans)) if speech else None
    for row, (start_s, end_s) in zip(rows, spans, strict=True):
        squares = _heard(track, start_s, end_s, BLOCKS_A_SECOND, weighted_squares)
        if squares is None:
            continue
        row["loudness"] = gated_loudness(squares[:, 0])
        if spoken is not None:
            chunks = slice(*(round((second - first_s) * RATE / CHUNK) for second in (start_s, end_s)))
            row["speech"] = float((spoken[chunks] > SPEECH).mean())
    return rows


def _moved(frames: "Frames[Any]") -> Values:
    """Measure the camera in pairs of frames."""
    return camera_values(encode(np.stack(frames.images)[None])["frames"][0], frames.time_s)


def _decoded(
    path: Path,
    spans: Sequence[Span],
    measures: Sequence[Any],
    shots: Sequence[FilmPart | Shot] | None,
    show: Callable[[int, int], object],
) -> tuple[list[Values], Sequence[FilmPart | Shot]]:
    """Decode a film once for what is measured in its windows and, unless they are known, its shots."""
    seen, parts = dict[int, Values](), []
    windows, wishes = spans if measures else (), [wish[:2] for wish in measures]

    def take(number: int, result: "tuple[Frames[Any], ...] | VideoError") -> None:
        seen[number] = {}
        for (*_, measure), own in zip(
            measures, () if isinstance(result, VideoError) else result, strict=False
        ):
            seen[number] |= measure(own)
        show(len(seen), len(spans))

    for given in read_stretch(path, (-inf, inf), windows, (), wishes) if shots is None else ():
        if isinstance(given, Rest):
            parts.append(given.measured)
        else:
            take(*given)
    # Where the film cannot be decoded exactly from its first frame on, or its shots are known.
    again = [number for number in range(len(windows)) if number not in seen]
    for number, result in read_windows(path, [spans[number] for number in again], wishes) if again else ():
        take(again[number], result)
    if shots is None:
        shots = joined_shots(parts) or find_shots(path)
    return [seen.get(number, {}) for number in range(len(spans))], shots


def _inside(path: Path, spans: Sequence[Span], note: Callable[[str], object]) -> list[Span]:
    """Cut spans at the end of the film, and say so."""
    film = probe(path)
    last_s = film.start_s + film.duration_s
    if late := sum(end_s > last_s + OVERHANG_S for _, end_s in spans):
        note(f"{path.name}: {late} of {len(spans)} windows end after the film: measured as far as it goes")
    return [(start_s, min(end_s, last_s)) for start_s, end_s in spans]


def _of_shots(span: Span, shots: Sequence[FilmPart | Shot]) -> Values:
    """Count the cuts a minute in a span, and its share of black shots; nothing of one after the film."""
    start_s, end_s = span
    if end_s <= start_s:
        return {}
    cuts = sum(start_s < shot.start_s < end_s for shot in shots[1:])
    black = sum(
        max(min(shot.end_s, end_s) - max(shot.start_s, start_s), 0.0)
        for shot in shots
        if "black" in shot.flags
    )
    return {"cuts": cuts / (end_s - start_s) * 60, "black": black / (end_s - start_s)}


def _heard(track: SoundTrack, start_s: float, end_s: float, per_s: int, measure: Any = None) -> Any:
    """Read the samples of a span, or what is measured of them; None if it has none."""
    try:
        return track.parts(start_s, end_s, (), rate=RATE, measure=measure, steps_a_second=per_s)[0][0]
    except VideoError:
        return None


def _spoken(track: SoundTrack, start_s: float, end_s: float) -> NDArray[np.float64]:
    """Give the probability of speech of every chunk of a span."""
    detector, found = SpeechDetector(), []
    for first_s in np.arange(start_s, end_s, HEARD_S).tolist():
        last_s = min(first_s + HEARD_S, end_s)
        samples = _heard(track, first_s, last_s, RATE)
        if samples is None:
            samples = np.zeros(round(last_s * RATE) - round(first_s * RATE), np.float32)
        found.append(detector(samples, last=last_s == end_s))
    return np.concatenate(found)
