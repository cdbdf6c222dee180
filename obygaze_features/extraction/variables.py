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

COLUMN_OF_KIND = {"cuts": "cuts", "camera": "camera", "people": PEOPLE_FRAMES}
"""Kind of columns -> one of them, which a window has if it has the others of its kind."""

SPEECH_PART_S = 32
"""Seconds of sound that are searched for speech at a time: a whole number of chunks."""

NO_CUTS: tuple[float, ...] = ()
"""Times at which the sound of a window is cut into parts: none, so that there is one part."""

MAX_REMARKS = 8
"""Remarks on a film that its note has at most; the others are counted."""

REMARKS_ON_SHAPE = ("pixels are not square", "the edges of all pictures are black")
"""Beginnings of remarks that are not passed on: here the picture's shape and its bars are allowed for."""

Span = tuple[float, float]
Values = dict[str, float]
"""Column of `VARIABLES` -> value, of one window."""
Rows = tuple[NDArray[Any], NDArray[np.float64]]
"""What `camera` or `people` gave of a window: its `frames` [F, D], and their times in seconds [F]."""


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
    """Measure windows of a film; a window that ends after the film is measured up to the film's end.

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
    windows = _windows_in_film(spans, film_end_s)  # number of a window -> its span, up to the film's end

    # What is known already, and what is to be measured of camera and people
    pixel_aspect = film.stream.pixel_aspect if film.stream else 1.0
    known_rows: _KnownRows = {"camera": camera_rows, "people": people_rows}
    has_square_pixels = pixel_aspect == 1
    if not has_square_pixels:  # the backbones saw pictures of another shape
        known_rows = {"camera": None, "people": None}
    requests = _requests(known_rows, pixel_aspect, people)  # what is to be measured, of camera and people

    # What the user must be told of the film. Remarks are added from here to the end, and shown then.
    remark_counts = Counter[str]()  # remark -> number of windows that it is about
    remark_counts["measured as far as the film goes"] = _n_cut_windows(spans, windows, film_end_s)
    remark_counts["after the film's end"] = len(spans) - len(windows)
    has_unused_people_rows = people_rows is not None and known_rows["people"] is None
    for remark in _remarks_on_absent_columns(
        known_rows, requests, has_unused_people_rows=has_unused_people_rows
    ):
        remark_counts[remark] = len(spans)
    if film.damage and not requests:  # else the decoder puts a remark on the damage on each window
        remark_counts[film.damage] = len(windows)

    # The measurements. Values that are not finite are left out as unknown.
    values_of_windows: list[Values] = [{} for _ in spans]
    if windows:
        pictures = _measure_pictures(path, windows, requests, known_rows, shots, show=show)
        sound = _measure_sound(path, windows, speech)
        remark_counts.update(pictures.remark_counts)
        remark_counts.update(sound.remark_counts)
        for number in windows:
            values = pictures.values_of_window[number] | sound.values_of_window[number]
            values_of_windows[number] = {name: value for name, value in values.items() if isfinite(value)}

    remark_counts.update(_remarks_on_lacking_columns(values_of_windows, windows, known_rows, requests))
    _note_remarks(path, remark_counts, len(spans), note)
    return values_of_windows


def _remarks_on_absent_columns(
    known_rows: "_KnownRows", requests: Mapping[str, Request], *, has_unused_people_rows: bool
) -> list[str]:
    """Return remarks on why no window has columns on camera movement, or on people, for the user.

    The camera is measured wherever it can be, so that its columns are absent only for want of OpenCV. People
    are measured only on demand: there is a remark only if the user gave rows of them, which cannot be used.

    Parameters
    ----------
    known_rows
        Rows of `camera` and `people` that were measured before.
    requests
        Which of the two are measured now.
    has_unused_people_rows
        Whether a backbone gave rows of people that are not used, because pixels are not square.
    """
    remarks = []
    has_camera = known_rows["camera"] is not None or "camera" in requests
    if not has_camera:
        remarks.append(f"no columns of the camera: OpenCV: {install_command('obygaze[extract]')}")
    measures_people = "people" in requests
    if has_unused_people_rows and not measures_people:
        remarks.append("no columns of people: pixels are not square: measure them with --people")
    return remarks


def _note_remarks(
    path: Path, remark_counts: Counter[str], n_windows: int, note: Callable[[str], object]
) -> None:
    """Show the user the remarks on a film in one line, those on most windows first.

    `remark_counts` has for each remark the number of windows that it is about.
    """
    remarks = []
    for remark, n_concerned in remark_counts.most_common():
        if n_concerned > 0:
            remarks.append(f"{remark} ({n_concerned} of {counted(n_windows, 'window')})")
    if remarks:
        note(f"{path.name}: {first_few(remarks, MAX_REMARKS)}")


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


def _n_cut_windows(spans: Sequence[Span], windows: Collection[int], film_end_s: float) -> int:
    """Count the windows that end after the end of the film, by more than the usual overhang.

    Parameters
    ----------
    spans
        Start and end of all windows in seconds.
    windows
        Positions of those that begin in the film.
    film_end_s
        End of the film in seconds.

    Examples
    --------
    >>> film_end_s = 20.0
    >>> windows = [(0.0, 10.0), (10.0, 20.0 + OVERHANG_S), (12.0, 22.0), (30.0, 40.0)]
    >>> _n_cut_windows(windows, [0, 1, 2], film_end_s)  # the last window begins after the film
    1
    """
    n_cut = 0
    for number in windows:
        _, end_s = spans[number]
        if end_s > film_end_s + OVERHANG_S:  # the last window of a film may be this much longer
            n_cut += 1
    return n_cut


_KnownRows = Mapping[str, Sequence[Rows | None] | None]
"""`camera` and `people` -> the rows of every window that backbones gave already; None if they gave none."""


def _remarks_on_lacking_columns(
    values_of_windows: Sequence[Values],
    windows: Collection[int],
    known_rows: _KnownRows,
    requests: Mapping[str, Request],
) -> dict[str, int]:
    """Count windows that lack cuts, camera or people although these were measured, as {"no cuts": 3, ...}.

    A window may lack them because its pictures cannot be decoded, or it is too short.

    Parameters
    ----------
    values_of_windows
        The values of every window of the film.
    windows
        Numbers of the windows that begin in the film.
    known_rows
        Rows of camera and people that were measured before.
    requests
        Which of the two were measured now.
    """
    n_lacking_of_remark = {}
    for kind, column in COLUMN_OF_KIND.items():
        # Cuts are measured in every film; the camera and people before, now, or not at all.
        was_measured = kind == "cuts" or kind in requests or known_rows[kind] is not None
        if was_measured:
            lacking = [number for number in windows if column not in values_of_windows[number]]
            n_lacking_of_remark[f"no {kind}"] = len(lacking)
    return n_lacking_of_remark


def _requests(known_rows: _KnownRows, pixel_aspect: float, people: People | None) -> dict[str, Request]:
    """Return which frames of a window to read, and what to compute from them: for `camera` and `people`.

    Each is there only if its rows are not known and it can be measured: the camera needs OpenCV, people need
    detectors.

    Parameters
    ----------
    known_rows
        Rows of camera and people that were measured before.
    pixel_aspect
        Width of a pixel divided by its height, by which pictures are stretched.
    people
        The detectors of people; None if people are not to be measured.
    """
    requests = {}
    has_opencv = opencv() is not None
    if known_rows["camera"] is None and has_opencv:
        n_frames = 2 * N_PAIRS  # a pair has two frames
        requests["camera"] = Request(
            sampling=pairs(n_frames, GAP_S),
            prepare=partial(prepare, shape=pixel_aspect),
            encode=encode,
        )
    if known_rows["people"] is None and people is not None:
        requests["people"] = Request(
            sampling=uniform(N_FRAMES),
            prepare=partial(prepare_people, shape=pixel_aspect),
            encode=people,
        )
    return requests


class _MeasuredWindows(NamedTuple):
    """What was measured in the windows of a film.

    Attributes
    ----------
    values_of_window
        Number of a window -> its values.
    remark_counts
        Remark for the user -> number of windows that it is about.
    """

    values_of_window: dict[int, Values]
    remark_counts: Counter[str]


class _DecodedFilm(NamedTuple):
    """What was measured while the windows of a film were decoded.

    Attributes
    ----------
    rows
        `camera` or `people` -> number of a window -> its rows, of the windows that could be decoded.
    stretch_results
        Measurements of all frames for the shots, if they were asked for and the film could be decoded as a
        whole; else empty.
    remark_counts
        Remark of the decoder -> number of windows that it is about.
    """

    rows: dict[str, dict[int, Rows]]
    stretch_results: list[Rest[Any]]
    remark_counts: Counter[str]


def _decode_windows(
    path: Path,
    spans: Mapping[int, Span],
    requests: Mapping[str, Request],
    *,
    measures_shots: bool,
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
    show
        Called with the number of decoded windows, and of all.
    """
    rows: dict[str, dict[int, Rows]] = {name: {} for name in requests}
    stretch_results: list[Rest[Any]] = []
    remark_counts = Counter[str]()
    if not requests:
        return _DecodedFilm(rows, stretch_results, remark_counts)

    tasks = []
    for number, (start_s, end_s) in spans.items():
        tasks.append(DecodeTask(str(number), path, start_s, end_s, requests))
    clips = _decode_whole_film(path, tasks, stretch_results) if measures_shots else _decode_alone(tasks)

    for n_done, clip in enumerate(clips, start=1):
        remark_counts.update(_remarks_of(clip))
        for name, features in clip.encoded.items():
            number = int(clip.clip_id)
            rows[name][number] = (features.arrays["frames"], features.time_s)
        show(n_done, len(spans))
    return _DecodedFilm(rows, stretch_results, remark_counts)


def _decode_whole_film(
    path: Path, tasks: Sequence[DecodeTask], stretch_results: list[Rest[Any]]
) -> Iterator[DecodedClip]:
    """Decode all frames of a film once, for its windows and its shots; yield the windows.

    If some frames cannot be decoded exactly, there are no measurements for the shots, and the windows that
    are not yielded until then are decoded alone.

    Parameters
    ----------
    path
        The film.
    tasks
        Its windows.
    stretch_results
        The measurements for the shots are appended to this list, since a generator yields windows only.
    """
    whole_film = (-inf, inf)  # in seconds
    # `decode_stretch` measures a part of a film for shots, along with the windows in it. Here the part is the
    # whole film, so that no windows of it are the task of another process (`others`).
    decode_film: Any = partial(
        decode_stretch, path=path, stretch=whole_film, others=(), stretch_results=stretch_results
    )
    task_of_missing_window = {task.clip_id: task for task in tasks}
    for _, clip in decode_clips(tasks, decode_film):
        del task_of_missing_window[clip.clip_id]
        yield clip
    if task_of_missing_window:
        yield from _decode_alone(list(task_of_missing_window.values()))


def _decode_alone(tasks: Sequence[DecodeTask]) -> Iterator[DecodedClip]:
    """Decode only the frames that the windows need, and yield the windows; no shots are measured."""
    for _, clip in decode_clips(tasks, decode_with_av):
        yield clip


def _remarks_of(clip: DecodedClip) -> list[str]:
    """Return the remarks on a window that the user should read, each once.

    Left out are those on the shape of pictures, which is allowed for here, and on sound and subtitles, which
    other functions read.
    """
    remarks = [remark for remark in clip.remarks if not remark.startswith(REMARKS_ON_SHAPE)]
    if clip.reason:  # why it failed or is partial
        remarks.append(clip.reason)
    remarks_on_other_streams = UNREAD_REMARKS.values()
    shown_remarks = [remark for remark in remarks if remark and remark not in remarks_on_other_streams]
    return list(dict.fromkeys(shown_remarks))  # each once


def _measure_pictures(
    path: Path,
    windows: Mapping[int, Span],
    requests: Mapping[str, Request],
    known_rows: _KnownRows,
    shots: Sequence[FilmPart | Shot] | None,
    *,
    show: Callable[[int, int], object],
) -> _MeasuredWindows:
    """Measure what is seen in each window: cuts, black pictures, camera and people.

    The film is decoded once for the requests and, unless they are known, its shots.

    Parameters
    ----------
    path, windows
        The film, and its windows by number.
    requests
        What to measure in the windows.
    known_rows
        Rows of camera and people that were measured before.
    shots
        Shots of the film. None if nobody has looked for them: they are found along with the windows. Empty if
        somebody has and there are none: the film is decoded again for them.
    show
        Called with the number of decoded windows, and of all.
    """
    decoded = _decode_windows(path, windows, requests, measures_shots=shots is None, show=show)
    camera_rows = _rows_by_window("camera", decoded, known_rows)  # of windows decoded now, or known before
    people_rows = _rows_by_window("people", decoded, known_rows)

    remark_counts = Counter(decoded.remark_counts)
    if not shots:
        try:
            shots = _found_shots(path, decoded)
        except VideoError as error:
            remark_counts[f"the pictures cannot be decoded: {error.reason}"] = len(windows)
            shots = ()

    cuts_s = [shot.start_s for shot in shots[1:]]  # the first shot begins with the film
    values_of_window = {}
    for number, window in windows.items():
        values = _measure_cuts(window, shots)
        camera = camera_rows.get(number)
        if camera is not None:
            camera_frames, time_s = camera
            values |= camera_values(camera_frames, time_s, cuts_s)
        people = people_rows.get(number)
        if people is not None:
            people_frames, _ = people
            values |= people_values(people_frames)
        values_of_window[number] = values
    return _MeasuredWindows(values_of_window, remark_counts)


def _rows_by_window(kind: str, decoded: _DecodedFilm, known_rows: _KnownRows) -> Mapping[int, Rows | None]:
    """Return number of a window -> what its frames were measured to be, of the kind `camera` or `people`.

    These are the rows that were measured now. If the kind was not measured now, they are those that were
    known before; empty if there are none.
    """
    was_measured_now = kind in decoded.rows
    if was_measured_now:
        return decoded.rows[kind]
    rows_known_before = known_rows[kind] or ()
    return dict(enumerate(rows_known_before))


def _found_shots(path: Path, decoded: _DecodedFilm) -> Sequence[Shot]:
    """Return the shots of a film by what was measured while its windows were decoded.

    If nothing was measured for them, or not of all frames, the film is decoded for its shots alone.

    Parameters
    ----------
    path
        The film.
    decoded
        What was measured of it.
    """
    shots = joined_shots([result.measured for result in decoded.stretch_results])
    if shots:
        return shots
    return find_shots(path)


def _measure_cuts(span: Span, shots: Sequence[FilmPart | Shot]) -> Values:
    """Compute two variables of a window: `cuts`, the cuts a minute, and `black`, the share of black pictures.

    Both are of the seconds of the window that are in a shot: a table of shots may end before the film.

    Parameters
    ----------
    span
        Start and end of the window in seconds.
    shots
        All shots of the film, in order.

    Returns
    -------
    dict
        Name of the variable -> value; empty if the window is in no shot.
    """
    start_s, end_s = span
    seconds_in_shots = []
    seconds_in_black_shots = []
    for shot in shots:
        overlap_s = max(min(shot.end_s, end_s) - max(shot.start_s, start_s), 0.0)
        seconds_in_shots.append(overlap_s)
        if "black" in shot.flags:
            seconds_in_black_shots.append(overlap_s)
    known_s = sum(seconds_in_shots)
    if known_s == 0:
        return {}

    n_cuts = 0
    for shot in shots[1:]:  # the first shot begins with the film, not with a cut
        if start_s <= shot.start_s < end_s:
            n_cuts += 1
    cuts_a_minute = n_cuts / known_s * 60
    share_of_black = sum(seconds_in_black_shots) / known_s
    return {"cuts": cuts_a_minute, "black": share_of_black}


def _measure_sound(path: Path, windows: Mapping[int, Span], speech: bool) -> _MeasuredWindows:
    """Measure the sound of each window: `loudness` and, if wanted, `speech`, the share of time with speech.

    Windows without sound have no values.

    Parameters
    ----------
    path, windows
        The film, and its windows by number: start and end in seconds.
    speech
        Whether to measure speech, which takes long.
    """
    values_of_window: dict[int, Values] = {number: {} for number in windows}
    remark_counts = Counter[str]()
    try:
        track = SoundTrack(path)
    except VideoError as error:
        remark_counts[f"no columns of sound: {error.reason}"] = len(windows)
        return _MeasuredWindows(values_of_window, remark_counts)

    is_speech = None  # of each `CHUNK` samples of the film, from its start
    if speech:
        last_end_s = max(end_s for _, end_s in windows.values())
        probabilities = speech_probabilities(_samples_of_film(track, last_end_s))
        is_speech = probabilities > SPEECH

    for number, (start_s, end_s) in windows.items():
        try:
            parts, missing_s = track.parts(
                start_s,
                end_s,
                NO_CUTS,
                rate=RATE,
                measure=weighted_squares,
                steps_a_second=BLOCKS_A_SECOND,
            )
        except VideoError:
            remark_counts["no sound"] += 1
            continue
        squares = parts[0]  # without cuts there is one part
        values_of_window[number]["loudness"] = gated_loudness(squares)
        if is_large_hole(missing_s, end_s - start_s):
            remark_counts["sound missing in part, taken for silence"] += 1
        if is_speech is not None:
            values_of_window[number]["speech"] = _share_with_speech(is_speech, start_s, end_s)
    return _MeasuredWindows(values_of_window, remark_counts)


def _share_with_speech(is_speech: NDArray[np.bool_], start_s: float, end_s: float) -> float:
    """Return the share of a window's time with speech, from 0 to 1; NaN for a window that is too short.

    Time is counted by chunks of `CHUNK` samples of the film. The first one is that in which the window
    starts; the last one is the last that ends in the window, or at most half a chunk after it.

    Parameters
    ----------
    is_speech
        Whether each chunk of the film is speech, [chunks].
    start_s, end_s
        The window in seconds.
    """
    first_chunk = int(start_s * RATE / CHUNK)
    end_chunk = round(end_s * RATE / CHUNK)
    return float(is_speech[first_chunk:end_chunk].mean())


def _samples_of_film(track: SoundTrack, end_s: float) -> Iterator[NDArray[np.float32]]:
    """Yield the samples of a sound track, `RATE` a second, in parts of up to `SPEECH_PART_S` seconds.

    The parts follow each other from the film's start to `end_s`, with silence where the track has no sound.
    So only one part is in memory at a time.
    """
    for part_start_s in range(0, ceil(end_s), SPEECH_PART_S):
        part_end_s = min(part_start_s + SPEECH_PART_S, end_s)
        try:
            parts, _ = track.parts(part_start_s, part_end_s, NO_CUTS, rate=RATE)
            samples = parts[0]  # without cuts there is one part
        except VideoError:
            samples = np.zeros(round((part_end_s - part_start_s) * RATE), np.float32)
        yield samples
