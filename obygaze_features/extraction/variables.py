"""Measure variables of staging in windows of a film: loudness, speech, cuts, black pictures, camera, people.

People are counted and measured, and nobody is recognised. Pictures are decoded once for all variables.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from math import ceil, inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones.camera import FEATURES, GAP_S, N_PAIRS, camera_values, encode, prepare
from obygaze_features.backbones.people import COLUMNS, N_FRAMES, People, people_values
from obygaze_features.backbones.people import prepare as prepare_people
from obygaze_features.backbones.sound_measures import BLOCKS_A_SECOND, RATE, gated_loudness, weighted_squares
from obygaze_features.backbones.speech import CHUNK, SPEECH, speech_chances
from obygaze_features.errors import VideoError, install_command
from obygaze_features.extraction.decode_clips import (
    UNREAD,
    DecodeTask,
    Request,
    decode_clips,
    decode_stretch,
    decode_with_av,
)
from obygaze_features.manifest import FilmPart
from obygaze_features.manifest.clip import OVERHANG_S
from obygaze_features.perception import PEOPLE_FRAMES
from obygaze_features.pixels import opencv
from obygaze_features.text import first_few
from obygaze_features.video import Rest, SoundTrack, find_shots, joined_shots, probe
from obygaze_features.video.sampling import is_large_hole, pairs, uniform
from obygaze_features.video.shots import Shot

VARIABLES = ("loudness", "speech", "cuts", "black", "camera", *FEATURES, *COLUMNS)
"""LUFS; share of time; a minute; share of time; `camera_values`; `people_values`."""

HEARD_S = 32
"""Seconds of sound that speech is told in at a time: whole chunks."""

MOST_SAID = 8
"""Remarks on a film that are passed on; the rest is counted."""

OF_SHAPE = ("pixels are not square", "black bars cover")
"""Beginnings of remarks that are not passed on: the camera is read in the picture's shape, with its bars."""

Span = tuple[float, float]
Values = dict[str, float]
Rows = tuple[NDArray[Any], NDArray[np.float64]]
"""Of a window: `frames` of `camera` or of `people`, and their times."""


def film_variables(
    path: Path,
    spans: Sequence[Span],
    *,
    shots: Sequence[FilmPart | Shot] | None = None,
    camera: Sequence[Rows | None] | None = None,
    seen: Sequence[Rows | None] | None = None,
    speech: bool = False,
    people: People | None = None,
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
    seen
        What `people` gave of each window, unless pixels are not square.
    speech
        Whether to measure the share of time with speech, which takes some two seconds of a core a minute.
    people
        What finds people, who are counted and measured in three frames of each window.
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
    if speech:
        speech_chances(())  # whose package may be absent: before the film is decoded
    film = probe(path)
    last_s = film.start_s + film.duration_s
    inside = {
        n: (start_s, min(end_s, last_s)) for n, (start_s, end_s) in enumerate(spans) if start_s < last_s
    }
    account = Counter[str]()
    account["measured as far as the film goes"] = sum(spans[n][1] > last_s + OVERHANG_S for n in inside)
    account["after the film's end"] = len(spans) - len(inside)
    shape = film.stream.shape if film.stream else 1.0
    known = {"camera": camera, "people": seen} if shape == 1 else {"camera": None, "people": None}
    requests = _requests(known, shape, people)
    if known["camera"] is None and "camera" not in requests:
        account[f"no columns of the camera: OpenCV: {install_command('obygaze[extract]')}"] = len(spans)
    if seen is not None and shape != 1 and "people" not in requests:
        account["no columns of people: pixels are not square: measure them with --people"] = len(spans)
    if film.damage and not requests:
        account[film.damage] = len(inside)
    pictured = _pictured(path, inside, requests, known, shots, account=account, show=show)
    heard = _heard(path, inside, speech, account)
    rows: list[Values] = [{} for _ in spans]
    for number, *found in zip(inside, pictured, heard, strict=False):  # of no window nothing is decoded
        rows[number] = {name: value for name, value in (found[0] | found[1]).items() if isfinite(value)}
    for name, column in (("cuts", "cuts"), ("camera", "camera"), ("people", PEOPLE_FRAMES)):
        if name == "cuts" or name in requests or known[name] is not None:
            account[f"no {name}"] = sum(column not in rows[number] for number in inside)
    if told := [f"{what} ({n} of {len(spans)} windows)" for what, n in account.most_common() if n]:
        note(f"{path.name}: {first_few(told, MOST_SAID)}")
    return rows


def _requests(
    known: Mapping[str, Sequence[Rows | None] | None], shape: float, people: People | None
) -> dict[str, Request]:
    """List what is measured of frames: whatever is not known, can be measured, and is asked for."""
    requests = {}
    if known["camera"] is None and opencv() is not None:
        requests["camera"] = Request(pairs(2 * N_PAIRS, GAP_S), partial(prepare, shape=shape), encode)
    if known["people"] is None and people is not None:
        requests["people"] = Request(uniform(N_FRAMES), partial(prepare_people, shape=shape), people)
    return requests


def _pictured(
    path: Path,
    spans: Mapping[int, Span],
    requests: Mapping[str, Request],
    known: Mapping[str, Sequence[Rows | None] | None],
    shots: Sequence[FilmPart | Shot] | None,
    *,
    account: Counter[str],
    show: Callable[[int, int], object],
) -> Iterator[Values]:
    """Yield what is seen in spans; a film is decoded once for it and, unless they are known, its shots."""
    tasks = [DecodeTask(str(n), path, *span, requests) for n, span in spans.items() if requests]
    read: set[str] = set()
    rows_of = {name: dict(enumerate(rows or ())) for name, rows in known.items()}
    rests: list[Rest[Any]] = []
    whole = partial(decode_stretch, path=path, stretch=(-inf, inf), others=(), rests=rests)
    # The second where the film cannot be decoded exactly from its first frame on, or its shots are known.
    ways: list[Any] = [whole, decode_with_av] if shots is None else [decode_with_av]
    for decode in ways:
        left = [task for task in tasks if task.clip_id not in read]
        for _, clip in decode_clips(left, decode) if left else ():
            remarks = {remark for remark in clip.remarks if not remark.startswith(OF_SHAPE)}
            account.update({*remarks, clip.reason} - {"", *UNREAD.values()})
            for name, measured in clip.encoded.items():
                rows_of[name][int(clip.clip_id)] = measured.arrays["frames"], measured.time_s
            read.add(clip.clip_id)
            show(len(read), len(spans))
    try:
        shots = shots or joined_shots([rest.measured for rest in rests]) or find_shots(path)
    except VideoError as error:
        account[f"the pictures cannot be decoded: {error.reason}"] = len(spans)
        shots = ()
    cuts_s = [shot.start_s for shot in shots[1:]]
    for n, span in spans.items():
        values = _of_shots(span, shots)
        if motions := rows_of["camera"].get(n):
            values |= camera_values(*motions, cuts_s)
        if sighted := rows_of["people"].get(n):
            values |= people_values(sighted[0])
        yield values


def _of_shots(span: Span, shots: Sequence[FilmPart | Shot]) -> Values:
    """Count the cuts a minute, and the share of black, in as much of a span as shots are known of."""
    start_s, end_s = span
    seconds = [max(min(shot.end_s, end_s) - max(shot.start_s, start_s), 0.0) for shot in shots]
    if not (known_s := sum(seconds)):
        return {}
    cuts = sum(start_s <= shot.start_s < end_s for shot in shots[1:])
    black = sum(own_s for own_s, shot in zip(seconds, shots, strict=True) if "black" in shot.flags)
    return {"cuts": cuts / known_s * 60, "black": black / known_s}


def _heard(path: Path, spans: Mapping[int, Span], speech: bool, account: Counter[str]) -> Iterator[Values]:
    """Yield what is heard in spans."""
    try:
        track = SoundTrack(path)
    except VideoError as error:
        account[f"no columns of sound: {error.reason}"] = len(spans)
        yield from ({} for _ in spans)
        return
    samples = _samples(track, max(end_s for _, end_s in spans.values()))
    spoken = speech_chances(samples) > SPEECH if speech else None
    for start_s, end_s in spans.values():
        row = Values()
        with suppress(VideoError):
            (squares,), missing_s = track.parts(
                start_s, end_s, (), rate=RATE, measure=weighted_squares, steps_a_second=BLOCKS_A_SECOND
            )
            row["loudness"] = gated_loudness(squares)
            account["sound missing in part, taken for silence"] += is_large_hole(missing_s, end_s - start_s)
            if spoken is not None:
                chunks = slice(int(start_s * RATE / CHUNK), round(end_s * RATE / CHUNK))
                row["speech"] = float(spoken[chunks].mean())
        account["no sound"] += not row
        yield row


def _samples(track: SoundTrack, end_s: float) -> Iterator[NDArray[np.float32]]:
    """Yield a track's samples from its film's start on, silence where it has none."""
    for first_s in range(0, ceil(end_s), HEARD_S):
        last_s = min(first_s + HEARD_S, end_s)
        try:
            (samples,), _ = track.parts(first_s, last_s, (), rate=RATE)
        except VideoError:
            samples = np.zeros(round((last_s - first_s) * RATE), np.float32)
        yield samples
