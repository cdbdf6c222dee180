"""Measure variables of staging in windows of a film: loudness, speech, cuts, black pictures, camera, faces.

They describe pictures and sound, and nobody who is in them. Pictures are decoded once for all of them.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf, isfinite, nan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones.camera import FEATURES, GAP_S, N_PAIRS, camera_values, encode, prepare
from obygaze_features.backbones.faces import N_FRAMES, FaceDetector
from obygaze_features.backbones.sound_measures import BLOCKS_A_SECOND, RATE, gated_loudness, weighted_squares
from obygaze_features.backbones.speech import CHUNK, SPEECH, SpeechDetector
from obygaze_features.errors import VideoError, install_command
from obygaze_features.manifest import FilmPart
from obygaze_features.manifest.clip import OVERHANG_S
from obygaze_features.pixels import opencv
from obygaze_features.text import first_few
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
from obygaze_features.video.sampling import Sampling, is_large_hole, pairs, uniform
from obygaze_features.video.shots import Shot

CAMERA = ("camera", *FEATURES)
VARIABLES = ("loudness", "speech", "cuts", "black", *CAMERA, "faces", "face")
"""LUFS; share of time; a minute; share of time; `camera_values`; `FaceDetector`."""

HEARD_S = 30.0
"""Seconds of sound that are read at a time."""

MOST_SAID = 8
"""Remarks on a film that are passed on; the rest is counted."""

Span = tuple[float, float]
Values = dict[str, float]
Measure = tuple[Sampling, Callable[[Any], Any], str, Callable[[Any], dict[str, Any]]]
"""Which frames are taken, what is made of each, the first column, and what is measured in them."""
MOVED = "moved"
Motions = tuple[NDArray[Any], NDArray[np.float64]]
"""Of a window: `frames` of `camera`, and their times."""


def film_variables(
    path: Path,
    spans: Sequence[Span],
    *,
    shots: Sequence[FilmPart | Shot] | None = None,
    camera: Sequence[Motions | None] | None = None,
    speech: bool = False,
    faces: FaceDetector | None = None,
    note: Callable[[str], object] = lambda _: None,
    show: Callable[[int, int], object] = lambda _done, _all: None,
) -> list[Values]:
    """Measure windows of a film, as far as it goes.

    Parameters
    ----------
    path
        A video file.
    spans
        Start and end of each window in seconds.
    shots
        The film's shots; by default they are found.
    camera
        What `camera` gave of each window. By default, and where pixels are not square, it is measured, if
        OpenCV is installed.
    speech
        Whether to measure the share of time with speech, which takes some two seconds of a core a minute.
    faces
        Detector of faces, which are counted and measured in two frames of each window.
    note
        Gets a line about what is damaged or absent, and how many windows are without a column.
    show
        Called now and then with the windows decoded and all.

    Returns
    -------
    list of dict
        Of each window the columns of `VARIABLES` that are known; no cuts if the pictures cannot be decoded.

    Raises
    ------
    VideoError
        The file cannot be opened.
    """
    film = probe(path)
    last_s = film.start_s + film.duration_s

    def say(what: str) -> None:
        note(f"{path.name}: {what}")

    if late := sum(end_s > last_s + OVERHANG_S for _, end_s in spans):
        say(f"{late} of {len(spans)} windows end after the film: measured as far as it goes")
    inside = {
        n: (start_s, min(end_s, last_s)) for n, (start_s, end_s) in enumerate(spans) if start_s < last_s
    }
    shape = film.stream.shape if film.stream else 1.0
    known = None if camera is None or shape != 1 else [camera[number] for number in inside]
    rows: list[Values] = [{} for _ in spans]
    if not inside:
        return rows
    measures = _measures(faces, None if known else shape, say)
    account = Counter({film.damage: len(inside)} if film.damage and not measures else {})
    seen = _seen(path, [*inside.values()], measures, known, shots, account=account, say=say, show=show)
    heard = _heard_in(path, [*inside.values()], speech, account, say)
    for number, *found in zip(inside, seen, heard, strict=True):
        for name, value in (found[0] | found[1]).items():
            if isfinite(value):
                rows[number][name] = value
            else:
                account[f"no {name}"] += 1
    if told := [f"{what} ({n} of {len(inside)} windows)" for what, n in account.most_common() if n]:
        say(first_few(told, MOST_SAID))
    return rows


def _measures(faces: FaceDetector | None, shape: float | None, say: Callable[[str], object]) -> list[Measure]:
    """Choose what is measured in pictures whose pixels have a shape; no camera without one."""
    found: list[Measure] = []
    if shape is not None and opencv() is None:
        say(f"no columns of the camera: OpenCV is missing ({install_command('obygaze[extract]')})")
    elif shape is not None:
        found.append((pairs(2 * N_PAIRS, GAP_S), partial(prepare, shape=shape), "camera", _moved))
    if faces is not None:
        found.append((uniform(N_FRAMES), faces.prepare, "faces", lambda two: faces(two.images)))
    return found


def _moved(frames: "Frames[Any]") -> dict[str, Motions]:
    """Measure the motion of pairs of frames."""
    return {MOVED: (encode(np.stack(frames.images)[None])["frames"][0], frames.time_s)}


def _seen(
    path: Path,
    spans: Sequence[Span],
    measures: Sequence[Measure],
    camera: Sequence[Motions | None] | None,
    shots: Sequence[FilmPart | Shot] | None,
    *,
    account: Counter[str],
    say: Callable[[str], object],
    show: Callable[[int, int], object],
) -> Iterator[Values]:
    """Yield what is seen in spans, of each measure NaN where it cannot be told."""
    try:
        seen, shots = _decoded(path, spans, measures, shots, account=account, show=show)
    except VideoError as error:
        say(f"the pictures cannot be decoded: {error.reason}")
        seen, shots = [{} for _ in spans], ()
    names = [*["camera"] * bool(camera), *(name for *_, name, _ in measures)]
    cuts_s = [shot.start_s for shot in shots[1:]]
    for span, row, known in zip(spans, seen, camera or [None for _ in spans], strict=True):
        moved = row.pop(MOVED, known)
        moves = camera_values(moved[0], moved[1], cuts_s) if moved else {}
        yield dict.fromkeys(names, nan) | _of_shots(span, shots) | row | moves


def _decoded(
    path: Path,
    spans: Sequence[Span],
    measures: Sequence[Measure],
    shots: Sequence[FilmPart | Shot] | None,
    *,
    account: Counter[str],
    show: Callable[[int, int], object],
) -> tuple[list[dict[str, Any]], Sequence[FilmPart | Shot]]:
    """Decode a film once for what is measured in its windows and, unless they are known, its shots."""
    seen, parts = dict[int, dict[str, Any]](), []
    windows, wishes = spans if measures else (), [wish[:2] for wish in measures]

    def take(number: int, result: "tuple[Frames[Any], ...] | VideoError") -> None:
        seen[number] = {}
        if isinstance(result, VideoError):
            account[result.reason] += 1
            return
        account.update({note for frames in result for note in frames.notes})
        for (*_, measure), own in zip(measures, result, strict=True):
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


def _of_shots(span: Span, shots: Sequence[FilmPart | Shot]) -> Values:
    """Count the cuts a minute, and the share of black, in as much of a span as shots are known of."""
    start_s, end_s = span
    seconds = [max(min(shot.end_s, end_s) - max(shot.start_s, start_s), 0.0) for shot in shots]
    if not (known_s := sum(seconds)):
        return {"cuts": nan}
    cuts = sum(start_s <= shot.start_s < end_s for shot in shots[1:])
    black = sum(own_s for own_s, shot in zip(seconds, shots, strict=True) if "black" in shot.flags)
    return {"cuts": cuts / known_s * 60, "black": black / known_s}


def _heard_in(
    path: Path, spans: Sequence[Span], speech: bool, account: Counter[str], say: Callable[[str], object]
) -> Iterator[Values]:
    """Yield what is heard in spans, NaN where it cannot be told."""
    try:
        track = SoundTrack(path)
    except VideoError as error:
        say(f"no columns of sound: {error.reason}")
        yield from ({} for _ in spans)
        return
    first_s = min(start_s for start_s, _ in spans)
    spoken = _spoken(track, first_s, max(end_s for _, end_s in spans)) if speech else None
    for start_s, end_s in spans:
        squares, missing_s = _heard(track, start_s, end_s, BLOCKS_A_SECOND, weighted_squares)
        account["sound is missing in part, and taken for silence"] += is_large_hole(
            missing_s, end_s - start_s
        )
        row = {"loudness": nan if squares is None else gated_loudness(squares[:, 0])}
        if spoken is not None:
            chunks = slice(*(round((second - first_s) * RATE / CHUNK) for second in (start_s, end_s)))
            known = squares is not None and len(spoken[chunks])
            row["speech"] = float((spoken[chunks] > SPEECH).mean()) if known else nan
        yield row


def _heard(track: SoundTrack, start_s: float, end_s: float, per_s: int, measure: Any = None) -> Any:
    """Read the samples of a span, or what is measured of them, and the seconds missing; None without any."""
    try:
        (heard,), missing_s = track.parts(
            start_s, end_s, (), rate=RATE, measure=measure, steps_a_second=per_s
        )
    except VideoError:
        return None, 0.0
    return heard, missing_s


def _spoken(track: SoundTrack, start_s: float, end_s: float) -> NDArray[np.float64]:
    """Give the probability of speech of every chunk of a span."""
    detector, found = SpeechDetector(), []
    for first_s in np.arange(start_s, end_s, HEARD_S).tolist():
        last_s = min(first_s + HEARD_S, end_s)
        samples, _ = _heard(track, first_s, last_s, RATE)
        if samples is None:
            samples = np.zeros(round(last_s * RATE) - round(first_s * RATE), np.float32)
        found.append(detector(samples, last=last_s == end_s))
    return np.concatenate(found)
