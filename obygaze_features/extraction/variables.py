"""Measure variables of staging in windows of a film: loudness, speech, cuts, black pictures, camera, people.

People are counted and measured, and nobody is recognised. Pictures are decoded once for all variables.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from math import ceil, inf, isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones.camera import FEATURES, GAP_S, N_PAIRS, camera_values, encode, prepare
from obygaze_features.backbones.people import COLUMNS, N_FRAMES, People, people_values
from obygaze_features.backbones.people import prepare as prepare_people
from obygaze_features.backbones.sound_measures import BLOCKS_A_SECOND, RATE, gated_loudness, weighted_squares
from obygaze_features.backbones.speech import CHUNK, SPEECH, speech_probabilities
from obygaze_features.errors import VideoError, install_command
from obygaze_features.extraction.decode_clips import (
    UNREAD_REMARKS,
    DecodedClip,
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
from obygaze_features.text import counted, first_few
from obygaze_features.video import Rest, SoundTrack, find_shots, joined_shots, probe
from obygaze_features.video.sampling import is_large_hole, pairs, uniform
from obygaze_features.video.shots import Shot

VARIABLES = ("loudness", "speech", "cuts", "black", "camera", *FEATURES, *COLUMNS)
"""Columns that are measured: loudness in LUFS, share of time with speech, cuts a minute, share of time with
black pictures; then what `camera_values` and `people_values` give."""

SPEECH_PART_S = 32
"""Seconds of sound that are searched for speech at a time: a whole number of chunks."""

MOST_REMARKS = 8
"""Remarks on a film that its note has at most; the others are counted."""

REMARKS_ON_SHAPE = ("pixels are not square", "the edges of all pictures are black")
"""Beginnings of remarks that are not passed on: here the picture's shape and its bars are allowed for."""

Span = tuple[float, float]
Values = dict[str, float]
Rows = tuple[NDArray[Any], NDArray[np.float64]]
"""`frames` of `camera` or of `people` in a window, and their times in seconds."""


def film_variables(
    path: Path,
    spans: Sequence[Span],
    *,
    shots: Sequence[FilmPart | Shot] | None = None,
    camera_rows: Sequence[Rows | None] | None = None,
    people_rows: Sequence[Rows | None] | None = None,
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
    camera_rows
        What the backbone `camera` gave for each window. By default, and where pixels are not square, the
        camera is measured, if OpenCV is installed.
    people_rows
        What the backbone `people` gave for each window; not used where pixels are not square.
    speech
        Whether to measure the share of time with speech, which takes some two seconds of a core a minute.
    people
        Detectors of people, who are counted and measured in three frames of each window.
    note
        Called with a line about what is damaged or absent, and how many windows lack a column.
    show
        Called now and then with the number of decoded windows and of all windows.

    Returns
    -------
    list of dict
        For each window column -> value, of the columns of `VARIABLES` that are known; no cuts if the pictures
        cannot be decoded.

    Raises
    ------
    VideoError
        The file cannot be opened.
    """
    if speech:
        speech_probabilities(())  # so that a missing package is reported before the film is decoded
    film = probe(path)
    film_end_s = film.start_s + film.duration_s
    windows = _windows_in_film(spans, film_end_s)
    remark_counts = Counter[str]()  # remark for the user -> number of windows that it is about
    ends_s = [spans[number][1] for number in windows]
    remark_counts["measured as far as the film goes"] = sum(
        end_s > film_end_s + OVERHANG_S for end_s in ends_s
    )
    remark_counts["after the film's end"] = len(spans) - len(windows)
    pixel_aspect = film.stream.pixel_aspect if film.stream else 1.0
    measured_before: _RowsOfKind = {"camera": None, "people": None}
    if pixel_aspect == 1:  # else rows were measured in pictures of another shape
        measured_before = {"camera": camera_rows, "people": people_rows}
    requests = _requests(measured_before, pixel_aspect, people)
    if measured_before["camera"] is None and "camera" not in requests:
        remark_counts[f"no columns of the camera: OpenCV: {install_command('obygaze[extract]')}"] = len(spans)
    if people_rows is not None and pixel_aspect != 1 and "people" not in requests:
        remark_counts["no columns of people: pixels are not square: measure them with --people"] = len(spans)
    if film.damage and not requests:  # else the windows themselves have a remark
        remark_counts[film.damage] = len(windows)
    rows: list[Values] = [{} for _ in spans]
    if windows:
        picture_values = _measure_pictures(
            path, windows, requests, measured_before, shots, remark_counts=remark_counts, show=show
        )
        sound_values = _measure_sound(path, windows, speech, remark_counts)
        for number in windows:
            values = picture_values[number] | sound_values[number]
            rows[number] = {name: value for name, value in values.items() if isfinite(value)}
    remark_counts.update(_n_without_columns(rows, windows, measured_before, requests))
    _note_remarks(path, remark_counts, len(spans), note)
    return rows


def _note_remarks(
    path: Path, remark_counts: Counter[str], n_windows: int, note: Callable[[str], object]
) -> None:
    """Note the remarks on a film in one line, those on most windows first; nothing if there is none."""
    remarks = []
    for remark, n in remark_counts.most_common():
        if n > 0:
            remarks.append(f"{remark} ({n} of {counted(n_windows, 'window')})")
    if remarks:
        note(f"{path.name}: {first_few(remarks, MOST_REMARKS)}")


def _windows_in_film(spans: Sequence[Span], film_end_s: float) -> dict[int, Span]:
    """Return the windows that begin before the end of the film, cut there: position -> window.

    Parameters
    ----------
    spans
        Start and end of each window in seconds.
    film_end_s
        End of the film in seconds.
    """
    windows = {}
    for number, (start_s, end_s) in enumerate(spans):
        if start_s < film_end_s:
            windows[number] = (start_s, min(end_s, film_end_s))
    return windows


_RowsOfKind = Mapping[str, Sequence[Rows | None] | None]
"""Of `camera` and `people` the rows of every window that are measured already; None if they are not."""


def _n_without_columns(
    rows: Sequence[Values],
    windows: Collection[int],
    measured_before: _RowsOfKind,
    requests: Mapping[str, Request],
) -> dict[str, int]:
    """Count the windows without cuts, camera or people, where these were measured: remark -> windows.

    Parameters
    ----------
    rows
        Values of each window.
    windows
        Positions of the windows to count.
    measured_before, requests
        What was measured before, and now.
    """
    measured = {"cuts"}
    measured.update(requests)
    measured.update(kind for kind, known_rows in measured_before.items() if known_rows is not None)
    n_without = {}
    # One column stands for all of its kind.
    for kind, column in (("cuts", "cuts"), ("camera", "camera"), ("people", PEOPLE_FRAMES)):
        if kind in measured:
            n_without[f"no {kind}"] = sum(column not in rows[number] for number in windows)
    return n_without


def _requests(measured_before: _RowsOfKind, pixel_aspect: float, people: People | None) -> dict[str, Request]:
    """Return the requests for those of camera and people that are not measured yet and can be measured."""
    requests = {}
    if measured_before["camera"] is None and opencv() is not None:
        requests["camera"] = Request(pairs(2 * N_PAIRS, GAP_S), partial(prepare, shape=pixel_aspect), encode)
    if measured_before["people"] is None and people is not None:
        requests["people"] = Request(uniform(N_FRAMES), partial(prepare_people, shape=pixel_aspect), people)
    return requests


class _DecodedFilm(NamedTuple):
    """What was measured while the windows of a film were decoded.

    Attributes
    ----------
    rows
        `camera` or `people` -> number of a window -> its rows, of the windows that could be decoded.
    stretch_results
        Measurements for the shots, if they were asked for and the film could be decoded as a whole.
    """

    rows: dict[str, dict[int, Rows]]
    stretch_results: list[Rest[Any]]


def _decode_windows(
    path: Path,
    spans: Mapping[int, Span],
    requests: Mapping[str, Request],
    *,
    measures_shots: bool,
    remark_counts: Counter[str],
    show: Callable[[int, int], object],
) -> _DecodedFilm:
    """Decode the windows of a film once for all requests; without requests nothing is decoded.

    Parameters
    ----------
    path, spans
        The film, and its windows by number.
    requests
        What to measure in the windows.
    measures_shots
        Whether to measure frames for shots too, which decodes the whole film.
    remark_counts
        Remark -> number of windows; this function adds the remarks on the windows that it decodes.
    show
        Called with the number of decoded windows, and of all.
    """
    stretch_results: list[Rest[Any]] = []
    rows: dict[str, dict[int, Rows]] = {name: {} for name in requests}
    undone: dict[str, DecodeTask] = {}
    if requests:
        for number, (start_s, end_s) in spans.items():
            undone[str(number)] = DecodeTask(str(number), path, start_s, end_s, requests)
    decoders: list[Any] = [decode_with_av]
    if measures_shots:
        decode_film = partial(
            decode_stretch, path=path, stretch=(-inf, inf), others=(), stretch_results=stretch_results
        )
        # It stops where the film cannot be decoded exactly; the windows that are left are decoded alone.
        decoders = [decode_film, decode_with_av]
    for decode in decoders:
        if not undone:
            break
        for _, clip in decode_clips(list(undone.values()), decode):
            remark_counts.update(_remarks_of(clip))
            for name, features in clip.encoded.items():
                rows[name][int(clip.clip_id)] = (features.arrays["frames"], features.time_s)
            del undone[clip.clip_id]
            show(len(spans) - len(undone), len(spans))
    return _DecodedFilm(rows, stretch_results)


def _remarks_of(clip: DecodedClip) -> list[str]:
    """Return the remarks on a window that the user should read, each once."""
    remarks = [remark for remark in clip.remarks if not remark.startswith(REMARKS_ON_SHAPE)]
    if clip.reason:
        remarks.append(clip.reason)
    not_read = UNREAD_REMARKS.values()
    wanted = [remark for remark in remarks if remark and remark not in not_read]
    return list(dict.fromkeys(wanted))  # each once


def _measure_pictures(
    path: Path,
    spans: Mapping[int, Span],
    requests: Mapping[str, Request],
    measured_before: _RowsOfKind,
    shots: Sequence[FilmPart | Shot] | None,
    *,
    remark_counts: Counter[str],
    show: Callable[[int, int], object],
) -> dict[int, Values]:
    """Measure what is seen in each window: cuts, black pictures, camera and people.

    The film is decoded once for the requests and, unless they are known, its shots. The parameters are those
    of `_decode_windows`, and:

    Parameters
    ----------
    measured_before
        Rows of camera and people that were measured before.
    shots
        Shots of the film; None finds them.
    """
    decoded = _decode_windows(
        path, spans, requests, measures_shots=shots is None, remark_counts=remark_counts, show=show
    )
    rows_of: dict[str, Mapping[int, Rows | None]] = {}
    for name, known_rows in measured_before.items():
        rows_of[name] = decoded.rows.get(name, dict(enumerate(known_rows or ())))
    if not shots:
        try:
            shots = _found_shots(path, decoded)
        except VideoError as error:
            remark_counts[f"the pictures cannot be decoded: {error.reason}"] = len(spans)
            shots = ()
    cuts_s = [shot.start_s for shot in shots[1:]]
    values_of = {}
    for number, span in spans.items():
        values = _measure_cuts(span, shots)
        camera = rows_of["camera"].get(number)
        if camera is not None:
            values |= camera_values(*camera, cuts_s)
        people = rows_of["people"].get(number)
        if people is not None:
            people_rows, _ = people
            values |= people_values(people_rows)
        values_of[number] = values
    return values_of


def _found_shots(path: Path, decoded: _DecodedFilm) -> Sequence[Shot]:
    """Return the shots of a film by what was measured while its windows were decoded, else find them anew."""
    measured_shots = joined_shots([stretch.measured for stretch in decoded.stretch_results])
    return measured_shots or find_shots(path)


def _measure_cuts(span: Span, shots: Sequence[FilmPart | Shot]) -> Values:
    """Compute the cuts a minute and the share of black pictures, in the part of a window with known shots."""
    start_s, end_s = span
    seconds_in_window = []  # of each shot
    black_seconds = []
    for shot in shots:
        in_window_s = max(min(shot.end_s, end_s) - max(shot.start_s, start_s), 0.0)
        seconds_in_window.append(in_window_s)
        if "black" in shot.flags:
            black_seconds.append(in_window_s)
    known_s = sum(seconds_in_window)
    if known_s == 0:
        return {}
    n_cuts = 0
    for shot in shots[1:]:  # the first shot begins with the film, not with a cut
        if start_s <= shot.start_s < end_s:
            n_cuts += 1
    return {"cuts": n_cuts / known_s * 60, "black": sum(black_seconds) / known_s}


def _measure_sound(
    path: Path, spans: Mapping[int, Span], speech: bool, remark_counts: Counter[str]
) -> dict[int, Values]:
    """Measure what is heard in each window: loudness and, if wanted, the share of time with speech.

    Windows without sound get no values.
    """
    values_of: dict[int, Values] = {number: {} for number in spans}
    try:
        track = SoundTrack(path)
    except VideoError as error:
        remark_counts[f"no columns of sound: {error.reason}"] = len(spans)
        return values_of
    is_speech = None  # of each chunk of the film
    if speech:
        last_end_s = max(end_s for _, end_s in spans.values())
        is_speech = speech_probabilities(_samples_of_film(track, last_end_s)) > SPEECH
    for number, (start_s, end_s) in spans.items():
        try:
            (squares,), missing_s = track.parts(
                start_s, end_s, (), rate=RATE, measure=weighted_squares, steps_a_second=BLOCKS_A_SECOND
            )
        except VideoError:
            remark_counts["no sound"] += 1
            continue
        values_of[number]["loudness"] = gated_loudness(squares)
        if is_large_hole(missing_s, end_s - start_s):
            remark_counts["sound missing in part, taken for silence"] += 1
        if is_speech is not None:
            first_chunk = int(start_s * RATE / CHUNK)
            end_chunk = round(end_s * RATE / CHUNK)
            values_of[number]["speech"] = float(is_speech[first_chunk:end_chunk].mean())
    return values_of


def _samples_of_film(track: SoundTrack, end_s: float) -> Iterator[NDArray[np.float32]]:
    """Yield the samples of a track in parts, from the start of the film; silence where it has none."""
    for first_s in range(0, ceil(end_s), SPEECH_PART_S):
        last_s = min(first_s + SPEECH_PART_S, end_s)
        try:
            (samples,), _ = track.parts(first_s, last_s, (), rate=RATE)
        except VideoError:
            samples = np.zeros(round((last_s - first_s) * RATE), np.float32)
        yield samples
