"""Cut films into rows (shots or steps), and average a model's predictions of windows over them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array

from obygaze_features.manifest import (
    FIELDS,
    Account,
    FilmPart,
    RawSpan,
    Row,
    Subtitle,
    counted,
    find_film,
    read_parts,
    read_subtitles,
    read_table,
)
from obygaze_features.store import Store
from obygaze_features.text import file_name
from obygaze_film.coverage import SLACK_S, find_coverage
from obygaze_film.errors import FilmError
from obygaze_film.schema import (
    BARS,
    BLACK,
    CREDITS,
    FLAGS,
    MISSING,
    MOST_S,
    NO_CONTENT,
    NO_SKILL,
    PARTIAL,
    SHORT,
    SHOT_COLUMNS,
    TEXT_COLUMNS,
    TRAINED_ON,
    UNLIKE,
    RowKind,
    Spans,
)

if TYPE_CHECKING:
    from obygaze_models.prediction import Model

Floats = NDArray[np.float64]

SUBTITLE_SUFFIXES = (".srt", ".vtt", ".ass", ".ssa", ".sub", ".txt")
"""Files of subtitles; whatever else is given is a film with a track of them."""

HOLE_SLACK_S = 0.1
"""Seconds by which the edges of a stretch without pictures may miss those of rows: detectors of shots find a
cut a picture earlier or later, and windows are rounded to milliseconds."""

NO_HOLES = np.zeros((0, 2))


@dataclass(frozen=True, eq=False, slots=True)
class Windows:
    """The windows of one film in a store.

    Attributes
    ----------
    clip_ids : tuple of str, length N
    spans : ndarray, shape [N, 2]
    holes : ndarray, shape [H, 2]
        Stretches of the film without pictures, as far as windows that were read in part have them.
    scarcely_read : tuple of int
        Numbers of the windows of which less than half has pictures.
    with_holes : tuple of int
        Numbers of the windows that have a stretch without pictures.
    """

    clip_ids: tuple[str, ...]
    spans: Spans
    holes: Spans = field(default_factory=lambda: NO_HOLES)
    scarcely_read: tuple[int, ...] = ()
    with_holes: tuple[int, ...] = ()

    @property
    def end_s(self) -> float:
        """End of the last window in seconds."""
        return float(self.spans[:, 1].max())

    @property
    def window_s(self) -> float:
        """Median length in seconds."""
        return round(float(np.median(self.spans[:, 1] - self.spans[:, 0])), 3)

    @property
    def hop_s(self) -> float | None:
        """Median time between two starts in seconds; None for a single window.

        The last window is moved back where it would go on behind the film. Where all others begin at equal
        steps, the shorter step to it is left out.
        """
        steps = np.diff(self.spans[:, 0])
        if not len(steps):
            return None
        others = steps[:-1]
        if len(others) and np.ptp(others) <= SLACK_S and steps[-1] < others[0] - SLACK_S:
            steps = others
        return round(float(np.median(steps)), 3)


def windows_of(store: Store) -> dict[str, Windows]:
    """Find the windows of each film of a store; films are sorted by name.

    Raises
    ------
    FilmError
        A clip is a whole file, so its position in the film is unknown; or the store has no clip.
    """
    table = store.table
    if not len(table):
        raise FilmError(f"store {store.name} has no clip")
    without_times = np.flatnonzero(np.isnan(table.start_s) | np.isnan(table.end_s))
    if len(without_times):
        clip_id = table.clip_ids[without_times[0]]
        raise FilmError(
            f"store {store.name}: clip {clip_id} is a whole file and has no place in a film: "
            "cut films into windows first (obygaze manifest import film)"
        )
    rows_of: dict[str, list[int]] = {}
    for row, movie in enumerate(table.movies):
        rows_of.setdefault(movie, []).append(row)
    windows: dict[str, Windows] = {}
    for movie in sorted(rows_of):
        rows = sorted(
            rows_of[movie], key=lambda row: (table.start_s[row], table.end_s[row], table.clip_ids[row])
        )
        spans = np.column_stack([table.start_s[rows], table.end_s[rows]])
        stretches = [table.without_pictures_s.get(row, ()) for row in rows]
        clip_ids = tuple(table.clip_ids[row] for row in rows)
        with_holes = tuple(number for number, of_window in enumerate(stretches) if of_window)
        windows[movie] = Windows(
            clip_ids, spans, _holes(stretches), _scarcely_read(spans, stretches), with_holes
        )
    return windows


def _holes(stretches: Sequence[Sequence[tuple[float, float]]]) -> Spans:
    """Join the stretches without pictures of overlapping windows."""
    joined: list[list[float]] = []
    for start, end in sorted(chain.from_iterable(stretches)):
        if joined and start <= joined[-1][1] + HOLE_SLACK_S:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([start, end])
    return np.array(joined, dtype=np.float64).reshape(-1, 2)


def _scarcely_read(spans: Spans, stretches: Sequence[Sequence[tuple[float, float]]]) -> tuple[int, ...]:
    """List the windows of which less than half has pictures."""
    numbers = []
    for number, stretches_of_window in enumerate(stretches):
        missing_s = sum(end - start for start, end in stretches_of_window)
        if missing_s > (spans[number, 1] - spans[number, 0]) / 2:
            numbers.append(number)
    return tuple(numbers)


@dataclass(frozen=True, eq=False, slots=True)
class RowGrid:
    """The rows of a film, before any model.

    Attributes
    ----------
    movie : str
    windows : Windows
    kind : str
        Kind of rows: "shots", "windows" or "steps".
    spans : ndarray, shape [R, 2]
    covered : sparse array, shape [R, N]
        Seconds of each row that each window covers; none of a row without pictures, and none by a window of
        which less than half has any.
    flags : dict of str to ndarray, shape [R]
        Flags that do not depend on a model.
    """

    movie: str
    windows: Windows
    kind: RowKind
    spans: Spans
    covered: csr_array
    flags: Mapping[str, NDArray[np.bool_]]


def make_grid(movie: str, windows: Windows, shots: pd.DataFrame) -> RowGrid:
    """Cut a film into rows, and flag those covered by more than half by shots with a flag.

    Rows are also cut where a stretch without pictures begins and ends: no window counts for what lies in it.
    """
    if len(shots) and shots["end_s"].max() > MOST_S:
        raise FilmError(f"film {movie}: a shot ends at {shots['end_s'].max():g} s: {MOST_S:g} s is the most")
    kind, spans = cut_into_rows(windows, shots[["start_s", "end_s"]].to_numpy(dtype=np.float64))
    spans = _cut_at(spans, windows.holes)
    seconds = spans[:, 1] - spans[:, 0]
    flags = {flag: flagged_seconds(spans, shots, flag) > seconds / 2 for flag in (BLACK, CREDITS, BARS)}
    flags[SHORT] = np.full(len(spans), windows.end_s < 2 * windows.window_s)
    return RowGrid(movie, windows, kind, spans, _covered(spans, windows), flags)


def _cut_at(rows: Spans, holes: Spans) -> Spans:
    """Cut rows where holes begin and end within them."""
    cut: list[tuple[float, float]] = []
    edges = holes.ravel()
    for start, end in rows.tolist():
        inside = edges[(edges > start + HOLE_SLACK_S) & (edges < end - HOLE_SLACK_S)].tolist()
        cut += pairwise([start, *inside, end])
    return np.array(cut, dtype=np.float64)


def _covered(rows: Spans, windows: Windows) -> csr_array:
    """Compute how many seconds of each row each window covers, as `RowGrid` counts them."""
    covered = overlaps(rows, windows.spans)
    if not len(windows.holes):
        return covered
    in_hole = _seconds_in_holes(rows, windows) > (rows[:, 1] - rows[:, 0]) / 2
    is_read = np.ones(len(windows.spans), dtype=np.bool_)
    is_read[[*windows.scarcely_read]] = False
    return _kept(_kept(covered, ~in_hole[:, None]), is_read[None])


def _seconds_in_holes(rows: Spans, windows: Windows) -> Floats:
    """Compute how many seconds of each row [R] have no pictures."""
    return np.asarray(overlaps(rows, windows.holes).sum(axis=1), np.float64)


def _partly_read(grid: RowGrid, cut: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mark the rows [R] that could be read in part only, of windows [N] of which some are `cut`.

    Of a window whose stretches without pictures are known, a row is read in part if these lie in the row. Of
    one that says only that something was lost, it is unknown where: every row that it covers counts.
    """
    lost_somewhere = cut.copy()
    lost_somewhere[[*grid.windows.with_holes]] = False
    may_lack = _kept(grid.covered, lost_somewhere[None]).sum(axis=1) > 0
    is_covered = grid.covered.sum(axis=1) > 0
    lacks = is_covered & (_seconds_in_holes(grid.spans, grid.windows) > HOLE_SLACK_S)
    return np.asarray(may_lack | lacks, np.bool_)


def rows_of_model(
    model: "Model", key: str, table: pd.DataFrame, grid: RowGrid, *, is_trained_on: bool
) -> pd.DataFrame:
    """Compute the rows of one model.

    The logits of the windows that cover a row are averaged with their overlap as weights; so are concepts'
    values and contributions, so that contributions still add up to the logit. Windows that are unlike any
    training clip are left out of the average of a row that others cover for at least half of what is covered;
    otherwise the row itself is unlike. A row that is unlike, missing, black or credits has a logit alone.

    Parameters
    ----------
    model : Model
    key : str
        Its name in the column `model`.
    table : DataFrame
        Its predictions for windows (`Predicted.table`) by clip, with those that are unlike any training clip
        marked `far`, those that were read in part `cut`, and those trained on `seen`.
    grid : Grid
    is_trained_on : bool
        Whether the model knows the film.

    Returns
    -------
    DataFrame
        The columns of `timeline.csv` that this model has.
    """
    table = table.reindex(list(grid.windows.clip_ids))
    # Of the windows [N]: predicted at all, unlike the training, read in part, trained on.
    has = table["movie"].notna().to_numpy()
    far = table["far"].eq(True).to_numpy()
    cut = table["cut"].eq(True).to_numpy()
    in_training = table["seen"].eq(True).to_numpy()
    # Seconds of each row that each window covers [R, N]: all, those like the training, those averaged.
    every = _kept(grid.covered, has[None])
    near = _kept(grid.covered, (has & ~far)[None])
    total = every.sum(axis=1)
    missing = total <= 0
    unlike = ~missing & (near.sum(axis=1) < total / 2)
    used = _kept(near, ~unlike[:, None]) + _kept(every, unlike[:, None])
    partial = _partly_read(grid, cut)

    def averaged(name: str) -> Floats:
        return _average(used, table[name].to_numpy(dtype=np.float64))

    undefined = unlike | missing | np.any([grid.flags[flag] for flag in NO_CONTENT], axis=0)

    def told(values: Floats) -> Floats:
        return np.where(undefined, np.nan, values)

    n = len(grid.spans)
    logit = averaged("logit")
    p = low = high = np.full(n, np.nan)
    if model.calibration is not None:
        filled = np.where(np.isnan(logit), 0.0, logit)
        p = model.calibration.probability(filled)
        low, high = model.calibration.band(filled)
    called = (logit >= model.card.threshold).astype(np.float64) if model.decides else np.full(n, np.nan)
    flags = {**grid.flags, UNLIKE: unlike, MISSING: missing, PARTIAL: partial}
    flags[NO_SKILL] = np.full(n, model.card.no_skill)
    flags[TRAINED_ON] = is_trained_on | (_kept(grid.covered, in_training[None]).sum(axis=1) > 0)
    columns: dict[str, Any] = {
        "movie": grid.movie,
        "start_s": grid.spans[:, 0],
        "end_s": grid.spans[:, 1],
        "level_task": model.card.target["name"],
        "model": key,
        "logit": logit,
        "p": told(p),
        "p_low": told(low),
        "p_high": told(high),
        "called": told(called),
        "unlike": _average(every, table["unlike"].to_numpy(dtype=np.float64)),
        "flags": _joined_flags(flags, n),
    }
    from obygaze_models.concepts import ConceptBottleneck  # noqa: PLC0415 - slow, and a desk trains nothing

    by_concepts = isinstance(model.estimator, ConceptBottleneck) and bool(model.concepts_with_probability)
    values = np.array([averaged(f"{concept}_value") for concept in model.concepts_with_probability]).T
    shares = model.probabilities_of(values)
    for index, concept in enumerate(model.concepts_with_probability):
        columns[f"{concept}_value"] = values[:, index]
        columns[f"{concept}_p"] = told(shares[:, index])
        if by_concepts:
            columns[f"{concept}_contribution"] = told(averaged(f"{concept}_contribution"))
    if by_concepts:
        columns["base_contribution"] = told(averaged("base_contribution"))
    columns["n_windows"] = (used > 0).sum(axis=1)
    columns["status"] = np.select([missing, partial], ["missing", "partial"], "ok")
    return pd.DataFrame(columns)


def _joined_flags(flags: Mapping[str, NDArray[np.bool_]], n_rows: int) -> list[str]:
    """Write the flags that hold in each row, in their order, as tables have them."""

    def flags_of(row: int) -> str:
        return ";".join(name for name in FLAGS if flags[name][row])

    return [*map(flags_of, range(n_rows))]


def _kept(weights: csr_array, which: NDArray[np.bool_]) -> csr_array:
    """Keep the weights [R, N] of some windows [1, N], or of some rows [R, 1]."""
    return csr_array(weights.multiply(which.astype(np.float64)))


def _average(weights: csr_array, values: Floats) -> Floats:
    """Average the values of windows [N] over rows [R]; NaN where no window covers a row."""
    total = weights.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        means: Floats = (weights @ np.nan_to_num(values)) / total
    if np.isnan(values).all():
        means[:] = np.nan
    return means


def cut_into_rows(windows: Windows, shots: Spans | None) -> tuple[RowKind, Spans]:
    """Cut a film into rows that do not overlap and cover it.

    With shots, a row is a shot; one longer than a window is cut into equal parts. Without, a row is a window
    where windows do not overlap, and otherwise a step from one window's start to the next, the last steps as
    long as the hop. What neither shots nor windows reach is a row of its own.

    Parameters
    ----------
    windows : Windows
    shots : ndarray, shape [S, 2], optional

    Returns
    -------
    kind : str
        "shots", "windows" or "steps".
    rows : ndarray, shape [R, 2]
    """
    spans = windows.spans
    window_s = windows.window_s
    if shots is not None and len(shots):
        parts = [
            _equal_parts(start, end, max(1, int(np.ceil((end - start) / window_s - 0.01))))
            for start, end in shots
        ]
        return "shots", _filled(np.concatenate(parts), windows.end_s)
    if len(spans) == 1 or (spans[1:, 0] >= spans[:-1, 1] - SLACK_S).all():
        return "windows", _filled(spans, windows.end_s)
    hop_s = windows.hop_s or window_s
    starts = [float(spans[0, 0])]
    for start in spans[1:, 0].tolist():
        if start - starts[-1] >= hop_s - SLACK_S:  # the last window is moved back: its start is no step
            starts.append(start)
    while windows.end_s - starts[-1] >= 1.5 * hop_s:
        starts.append(starts[-1] + hop_s)
    edges = np.round([*starts, windows.end_s], 3)
    return "steps", _filled(np.column_stack([edges[:-1], edges[1:]]), windows.end_s)


def _equal_parts(start: float, end: float, n: int) -> Spans:
    edges = np.round(np.linspace(start, end, n + 1), 3) if n > 1 else np.array([start, end])
    edges[0] = start
    edges[-1] = end
    return np.column_stack([edges[:-1], edges[1:]])


def _filled(spans: Spans, end_s: float) -> Spans:
    """Add the gaps between spans, and before and after them, as spans."""
    ends = np.concatenate([[0.0], spans[:, 1]])
    starts = np.concatenate([spans[:, 0], [max(end_s, spans[-1, 1])]])
    gaps = np.column_stack([ends, starts])[starts - ends > SLACK_S]
    every = np.concatenate([spans, gaps])
    return every[np.argsort(every[:, 0], kind="stable")]


def overlaps(rows: Spans, windows: Spans) -> csr_array:
    """Compute how many seconds of each row each window covers, [R, N]."""
    coverage = find_coverage(rows, windows)
    places = coverage.span_index, coverage.other_index
    return csr_array((coverage.seconds, places), shape=(len(rows), len(windows)))


def read_shots(path: Path, movies: Sequence[str], flags: Path | None = None) -> dict[str, pd.DataFrame]:
    """Read a table of shots (see `read_parts`) for some films, which need not all be in it.

    Parameters
    ----------
    path : Path
        The table.
    movies : sequence of str
        The films.
    flags : Path, optional
        Table of a person's flags, whose rows replace the flags of the shots in their time.

    Raises
    ------
    FilmError
        The flags are of films that have no shots.
    ManifestError
        As `read_parts`; or there is one film and a table is of others.
    """
    only = movies if len(movies) == 1 else None
    parts_of = {find_film(name, movies) or name: parts for name, parts in read_parts(path, only).items()}
    shots = {movie: _shot_table(movie, parts, path.name) for movie, parts in parts_of.items()}
    if flags is not None:
        for name, parts in read_parts(flags, only, flagged=True).items():
            movie = find_film(name, movies) or name
            if movie not in shots:
                raise FilmError(f"{flags}: movie {movie!r} has no shots in {path}")
            shots[movie] = _flagged(shots[movie], _shot_table(movie, parts, flags.name))
    return shots


def read_said(
    files: Sequence[Path],
    movies: Sequence[str],
    encoding: str = "",
    tell: Callable[[str], None] = lambda _: None,
    windows: Mapping[str, Windows] | None = None,
) -> dict[str, pd.DataFrame]:
    """Read the subtitles of films, each from a file that is named as its film's id, or is the only one.

    `tell` gets a line for each file: what was read and left out, and what begins behind its `windows`.

    Raises
    ------
    FilmError
        A file's name is no film's id, or two files are of one film.
    ManifestError, VideoError
        A file has no subtitles.
    """
    tables = {}
    for movie, path in files_of(movies, files).items():
        lines, notice = read_words(path, encoding)
        tell(notice)
        end_s = windows[movie].end_s if windows else lines[-1][1]
        if late := sum(start_s >= end_s for start_s, *_ in lines):
            tell(f"{path.name}: {late:,} begin behind the last window, {end_s:g} s: are they of another cut?")
        tables[movie] = pd.DataFrame(lines, columns=list(TEXT_COLUMNS))
    return tables


def files_of(movies: Sequence[str], files: Sequence[Path]) -> dict[str, Path]:
    """Find the films whose ids files are named by; the only file of an only film may have any name.

    Raises
    ------
    FilmError
        A name is no film's, or two files are of one film.
    """
    if len(movies) == len(files) == 1:
        return {movies[0]: files[0]}
    names = {file_name(movie): movie for movie in movies}
    file_of = dict[str, Path]()
    for path in files:
        ways = (find_film(name, movies) for name in (path.stem, path.name))
        movie = names.get(file_name(path.stem)) or next(filter(None, ways), None)
        if movie is None:
            raise FilmError(f"{path}: no scored film has this name: {', '.join(movies)}; rename the file")
        earlier = file_of.setdefault(movie, path)
        if earlier != path:
            raise FilmError(f"{path}: of film {movie}, as {earlier} is: give one of them")
    return file_of


def read_words(path: Path, encoding: str = "") -> tuple[list[tuple[float, float, str]], str]:
    """Read what is said in a film, of a file of subtitles or of the film's own track; say what was read.

    Raises
    ------
    ManifestError, VideoError
        It has no subtitles that are text.
    """
    spans: Sequence[Subtitle | RawSpan]
    account = Account(path, "its text track")
    if path.suffix.lower() in SUBTITLE_SUFFIXES:
        spans = read_subtitles(path, encoding=encoding, account=account)
    else:
        from obygaze_features.video import read_subtitle_track  # noqa: PLC0415 - scores alone need no FFmpeg

        track = enumerate(read_subtitle_track(path, account.note), start=1)
        spans = account.spans(RawSpan(f"line {n}, {line[2][:40]!r}", *line) for n, line in track)
        account.used = len(spans)
    return [(line.start_s, line.end_s, line.text) for line in spans], account.line()


def read_variables(
    path: Path, films: Mapping[str, Windows], tell: Callable[[str], None] = lambda _: None
) -> dict[str, pd.DataFrame]:
    """Read what `obygaze film variables` measured in windows of films; `tell` gets what was left out.

    Raises
    ------
    FilmError
        The table has no window of these films, one twice, or no column of numbers.
    ManifestError
        It is no table of windows, or a cell is no number.
    """
    table = read_table(path, needed=("movie", "start_s", "end_s"))
    measures = [name for name in table.columns if name not in FIELDS]
    rows = list(table.pointed(measures).timed())
    tables = _windows_by_film(path, rows, ["start_s", "end_s", *measures], films)
    used = [name for name in measures if _is_measured(name, tables.values())]
    if not used:
        raise FilmError(f"{path}: it has no window of {', '.join(films)}, or no column of numbers")
    n_others = len(rows) - sum(map(len, tables.values()))
    left_out = [name for name in table.columns if name not in {"clip_id", "movie", "start_s", "end_s", *used}]
    if n_others:
        left_out.append(f"{counted(n_others, 'row')} of other films, or behind a film's end")
    account = f"{path.name}: {', '.join(used)}"
    if left_out:
        account += f"; left out {', '.join(left_out)}"
    tell(account)
    return tables


def _windows_by_film(
    path: Path, rows: Sequence[Row], names: list[str], films: Mapping[str, Windows]
) -> dict[str, pd.DataFrame]:
    """Read the windows of these films, in order of time; `names` begins with their start and end."""
    windows_of: dict[str, dict[tuple[float, float], list[float]]] = {}
    n_behind = Counter[str]()
    for row in rows:
        numbers = [row.number(name, path) for name in names]
        start_s, end_s = numbers[:2]
        if not 0 <= start_s < end_s <= MOST_S:
            raise FilmError(f"{path}: line {row.line}: no window lasts from {start_s:g} to {end_s:g} s")
        movie = find_film(row.cells["movie"], films)
        if movie is None:
            continue
        if start_s >= films[movie].end_s:
            n_behind[movie] += 1
            continue
        windows = windows_of.setdefault(movie, {})
        if (start_s, end_s) in windows:
            raise FilmError(f"{path}: film {movie} has two rows of the window at {start_s:g} s")
        windows[start_s, end_s] = numbers
    for movie, windows in windows_of.items():
        if n_behind[movie] > len(windows):
            raise FilmError(
                f"{path}: most windows of film {movie} begin behind its end, {films[movie].end_s:g} s: their "
                "times should be seconds, not frames or milliseconds, of this film"
            )
    return {
        movie: pd.DataFrame(sorted(windows.values()), columns=names) for movie, windows in windows_of.items()
    }


def _is_measured(name: str, tables: Iterable[pd.DataFrame]) -> bool:
    return any(table[name].notna().any() for table in tables)


def _shot_table(movie: str, parts: Sequence[FilmPart], detector: str) -> pd.DataFrame:
    """Make the table of a film's shots; `detector` is that of shots that do not name theirs."""
    rows = [
        (movie, part.start_s, part.end_s, part.detector or detector, ";".join(part.flags)) for part in parts
    ]
    return pd.DataFrame(rows, columns=SHOT_COLUMNS)


def _flagged(shots: pd.DataFrame, flags: pd.DataFrame) -> pd.DataFrame:
    """Cut shots where a person's flags begin and end, and replace their flags in between."""
    edges = np.unique(
        np.concatenate([table[["start_s", "end_s"]].to_numpy().ravel() for table in (shots, flags)])
    )
    spans = pd.DataFrame({"start_s": edges[:-1], "end_s": edges[1:]})

    def at_spans(table: pd.DataFrame) -> pd.DataFrame:
        """Give each span the row of the table that it lies in, or nothing."""
        placed = pd.merge_asof(spans, table.rename(columns={"end_s": "until_s"}), on="start_s")
        return placed[list(SHOT_COLUMNS)].where(placed["until_s"] >= placed["end_s"])

    flagged = at_spans(flags).combine_first(at_spans(shots))
    return flagged.dropna().reset_index(drop=True)[list(SHOT_COLUMNS)]


def flagged_seconds(rows: Spans, shots: pd.DataFrame, flag: str) -> NDArray[np.float64]:
    """Compute how many seconds of each row [R] lie in shots with a flag."""
    marked = shots.loc[[flag in flags.split(";") for flags in shots["flags"]], ["start_s", "end_s"]]
    if marked.empty:
        return np.zeros(len(rows))
    return np.asarray(overlaps(rows, marked.to_numpy(dtype=np.float64)).sum(axis=1), dtype=np.float64)
