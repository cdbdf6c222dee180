"""Cut films into rows (shots or steps), and average a model's predictions of windows over them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array

from obygaze_features.manifest import (
    FIELDS,
    SUFFIXES_OF_SUBTITLES,
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
    MAX_S,
    MISSING,
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

SUFFIXES_OF_TEXT = (*SUFFIXES_OF_SUBTITLES, ".sub", ".txt")
"""Files of subtitles; whatever else is given is a film with a track of them."""

HOLE_SLACK_S = 0.1
"""Seconds by which the edges of a stretch without pictures may miss those of rows: detectors of shots find a
cut a picture earlier or later, and windows are rounded to milliseconds."""

NO_HOLES = np.zeros((0, 2))

SHOT_SLACK = 0.01
"""Part of a window's length by which a shot may be longer than a window without being cut."""

LONGEST_LAST_STEP = 1.5
"""Length of the last step of a film, in hops, from which on another step is cut off."""


@dataclass(frozen=True, eq=False, slots=True)
class Windows:
    """The windows of one film in a store.

    Attributes
    ----------
    clip_ids : tuple of str, length N
    spans : ndarray, shape [N, 2]
    holes : ndarray, shape [H, 2]
        Starts and ends in seconds of the holes: stretches of the film without pictures that could be read, as
        its windows record them.
    mostly_holes : tuple of int
        Indices of the windows of which less than half has pictures.
    with_holes : tuple of int
        Indices of the windows that have a hole.
    """

    clip_ids: tuple[str, ...]
    spans: Spans
    holes: Spans = field(default_factory=lambda: NO_HOLES)
    mostly_holes: tuple[int, ...] = ()
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
        """Median time between the starts of two windows in seconds; None for a single window.

        The last window is moved back if it would end after the film. A last step that is shorter than all
        others, which are equal, is therefore left out.
        """
        steps = np.diff(self.spans[:, 0])
        if len(steps) == 0:
            return None
        earlier_steps = steps[:-1]
        if len(earlier_steps) > 0:
            are_equal = earlier_steps.max() - earlier_steps.min() <= SLACK_S
            is_last_shorter = steps[-1] < earlier_steps[0] - SLACK_S
            if are_equal and is_last_shorter:
                steps = earlier_steps
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
    rows_of_movie: dict[str, list[int]] = {}
    for row, movie in enumerate(table.movies):
        rows_of_movie.setdefault(movie, []).append(row)
    return {movie: _windows_of_rows(store, rows_of_movie[movie]) for movie in sorted(rows_of_movie)}


def _windows_of_rows(store: Store, rows: Sequence[int]) -> Windows:
    """Make the windows of one film, in time order.

    `rows` are the film's rows in the store's table of clips, in any order.
    """
    table = store.table

    def time_order(row: int) -> tuple[float, float, str]:
        """Return the sort key of a row; of windows with the same times, that of the lower id comes first."""
        return table.start_s[row], table.end_s[row], table.clip_ids[row]

    ordered_rows = sorted(rows, key=time_order)
    spans = np.column_stack([table.start_s[ordered_rows], table.end_s[ordered_rows]])
    holes_of_windows = [table.without_pictures_s.get(row, ()) for row in ordered_rows]
    return Windows(
        clip_ids=tuple(table.clip_ids[row] for row in ordered_rows),
        spans=spans,
        holes=_joined_holes(holes_of_windows),
        mostly_holes=_mostly_holes(spans, holes_of_windows),
        with_holes=tuple(index for index, holes in enumerate(holes_of_windows) if holes),
    )


Holes = Sequence[tuple[float, float]]
"""Starts and ends in seconds of the holes of one window (see `Windows`)."""


def _joined_holes(holes_of_windows: Sequence[Holes]) -> Spans:
    """Return the holes [H, 2] of all windows in time order; those that overlap or touch are joined.

    A hole of the film is recorded by each window that it lies in, and windows may overlap.
    """
    joined: list[tuple[float, float]] = []
    for start, end in sorted(chain.from_iterable(holes_of_windows)):
        if joined:
            last_start, last_end = joined[-1]
            if start <= last_end + HOLE_SLACK_S:
                joined[-1] = (last_start, max(last_end, end))
                continue
        joined.append((start, end))
    return np.array(joined, dtype=np.float64).reshape(-1, 2)


def _mostly_holes(spans: Spans, holes_of_windows: Sequence[Holes]) -> tuple[int, ...]:
    """Return the indices of the windows of which less than half has pictures."""
    indices = []
    for index, holes in enumerate(holes_of_windows):
        missing_s = sum(end - start for start, end in holes)
        length_s = spans[index, 1] - spans[index, 0]
        if missing_s > length_s / 2:
            indices.append(index)
    return tuple(indices)


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
        Seconds of each row that each window covers. They are 0 for rows, and for windows, of which less than
        half has pictures.
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
    """Cut a film into rows, and give each the flags of the shots that cover more than half of it.

    Rows are also cut where a hole begins and ends, so that what lies in the hole has rows of its own, which
    no window covers. All rows of a film shorter than two windows have the flag `SHORT`.
    """
    # A shot that ends so late is a mistake, such as frames or milliseconds in place of seconds.
    if len(shots) and shots["end_s"].max() > MAX_S:
        raise FilmError(f"film {movie}: a shot ends at {shots['end_s'].max():g} s: {MAX_S:g} s is the most")

    shot_spans = shots[["start_s", "end_s"]].to_numpy(dtype=np.float64)
    kind, uncut_rows = cut_into_rows(windows, shot_spans)
    rows = _cut_at_holes(uncut_rows, windows.holes)

    half_s = (rows[:, 1] - rows[:, 0]) / 2
    flags = {}
    for flag in (BLACK, CREDITS, BARS):
        flags[flag] = flagged_seconds(rows, shots, flag) > half_s
    is_short = windows.end_s < 2 * windows.window_s
    flags[SHORT] = np.full(len(rows), is_short)

    return RowGrid(
        movie=movie,
        windows=windows,
        kind=kind,
        spans=rows,
        covered=_covered(rows, windows),
        flags=flags,
    )


def _cut_at_holes(rows: Spans, holes: Spans) -> Spans:
    """Cut rows where holes begin and end within them.

    A row with one edge of a hole in it becomes two rows, one with both edges becomes three. Edges that are
    within `HOLE_SLACK_S` of an end of the row do not cut it.

    Parameters
    ----------
    rows : ndarray, shape [R, 2]
    holes : ndarray, shape [H, 2]
        In time order and disjoint.
    """
    cut: list[tuple[float, float]] = []
    edges = holes.ravel()  # starts and ends in turn, rising
    for start, end in rows.tolist():
        is_inside = (edges > start + HOLE_SLACK_S) & (edges < end - HOLE_SLACK_S)
        cut += pairwise([start, *edges[is_inside].tolist(), end])
    return np.array(cut, dtype=np.float64)


def _covered(rows: Spans, windows: Windows) -> csr_array:
    """Compute how many seconds [R, N] of each row each window covers.

    Rows and windows of which less than half has pictures count as covering nothing.
    """
    covered = overlaps(rows, windows.spans)  # [R, N]
    if not len(windows.holes):
        return covered

    half_of_row_s = (rows[:, 1] - rows[:, 0]) / 2
    row_has_pictures = _seconds_in_holes(rows, windows) <= half_of_row_s  # [R]
    window_has_pictures = np.ones(len(windows.spans), dtype=np.bool_)  # [N]
    window_has_pictures[list(windows.mostly_holes)] = False
    return _only_windows(_only_rows(covered, row_has_pictures), window_has_pictures)


def _seconds_in_holes(rows: Spans, windows: Windows) -> Floats:
    """Compute how many seconds of each row [R] have no pictures."""
    return np.asarray(overlaps(rows, windows.holes).sum(axis=1), np.float64)


def _partly_read(grid: RowGrid, is_window_partial: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mark the rows [R] in which some pictures are missing, or may be.

    - Pictures are missing in a row that a recorded hole lies in.
    - They may be missing in each row of a window that was read in part (`is_window_partial` [N]) and records
      no hole: nobody knows where its pictures are missing.
    """
    is_covered = grid.covered.sum(axis=1) > 0
    has_hole = is_covered & (_seconds_in_holes(grid.spans, grid.windows) > HOLE_SLACK_S)

    is_window_without_record = is_window_partial.copy()  # [N]
    is_window_without_record[list(grid.windows.with_holes)] = False
    may_have_hole = _has_window(grid, is_window_without_record)

    return np.asarray(has_hole | may_have_hole, np.bool_)


def _has_window(grid: RowGrid, is_marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mark the rows [R] that at least one marked window [N] covers in part."""
    return np.asarray(_only_windows(grid.covered, is_marked).sum(axis=1) > 0, np.bool_)


def rows_of_model(
    model: "Model", key: str, predictions: pd.DataFrame, grid: RowGrid, *, is_trained_on: bool
) -> pd.DataFrame:
    """Compute the rows of one model.

    The logit of a row is the mean of the logits of the windows that cover it, weighted by their overlap;
    `_weights_of` says which windows count. Concepts' values, contributions and changes are averaged in the
    same way, so that contributions still add up to the logit. A row that is unlike the training, missing,
    black or credits has a logit, but no probability.

    Parameters
    ----------
    model : Model
    key : str
        Its name in the column `model`.
    predictions : DataFrame
        Its predictions for windows (`Predicted.table`) by clip, with the columns `is_unlike` (unlike any
        training clip), `is_partial` (read in part) and `is_trained_on`.
    grid : RowGrid
    is_trained_on : bool
        Whether the model was trained on the film: then all rows are flagged, not only those of its windows.

    Returns
    -------
    DataFrame
        The columns of `timeline.csv` that this model has.
    """
    # One line for each window [N] of the film; all is NaN in that of a window without a prediction.
    film_predictions = predictions.reindex(list(grid.windows.clip_ids))
    is_predicted = film_predictions["movie"].notna().to_numpy()
    weights = _weights_of(grid, is_predicted, _is_true(film_predictions["is_unlike"]))

    # Flags of the rows [R]
    is_partial = _partly_read(grid, _is_true(film_predictions["is_partial"]))
    has_training_window = _has_window(grid, _is_true(film_predictions["is_trained_on"]))
    flags = {
        **grid.flags,
        UNLIKE: weights.unlike,
        MISSING: weights.missing,
        PARTIAL: is_partial,
        NO_SKILL: np.full(len(grid.spans), model.card.no_skill),
        TRAINED_ON: is_trained_on | has_training_window,
    }
    has_no_p = np.any([flags[flag] for flag in (UNLIKE, MISSING, *NO_CONTENT)], axis=0)

    # Columns of the table, in its order
    logit = _average(weights.used, film_predictions["logit"])
    columns: dict[str, Any] = {
        "movie": grid.movie,
        "start_s": grid.spans[:, 0],
        "end_s": grid.spans[:, 1],
        "level_task": model.card.target["name"],
        "model": key,
        "logit": logit,
    }
    for name, values in _probability_columns(model, logit).items():
        columns[name] = np.where(has_no_p, np.nan, values)
    columns["unlike"] = _average(weights.predicted, film_predictions["unlike"])
    columns["flags"] = _joined_flags(flags, len(grid.spans))
    columns |= _concept_columns(model, film_predictions, weights.used, has_no_p)
    columns["n_windows"] = (weights.used > 0).sum(axis=1)
    columns["status"] = _status(weights.missing, is_partial)
    return pd.DataFrame(columns)


def _is_true(column: pd.Series) -> NDArray[np.bool_]:
    """Tell which cells of a column are True; neither False nor NaN is."""
    return np.asarray(column.eq(True), np.bool_)


def _status(is_missing: NDArray[np.bool_], is_partial: NDArray[np.bool_]) -> NDArray[np.str_]:
    """Return the status of each row [R]: "missing", else "partial" if it was read in part, else "ok"."""
    return np.where(is_missing, "missing", np.where(is_partial, "partial", "ok"))


class _Weights(NamedTuple):
    """Which windows are averaged over a film's rows, and with what weight.

    Attributes
    ----------
    predicted : sparse array, shape [R, N]
        Seconds of each row that each window with a prediction covers.
    used : sparse array, shape [R, N]
        The same, of the windows that are averaged: 0 for the others.
    missing : ndarray of bool, shape [R]
        Rows that no window with a prediction covers.
    unlike : ndarray of bool, shape [R]
        Rows that count as unlike any training clip.
    """

    predicted: csr_array
    used: csr_array
    missing: NDArray[np.bool_]
    unlike: NDArray[np.bool_]


def _weights_of(grid: RowGrid, is_predicted: NDArray[np.bool_], is_unlike: NDArray[np.bool_]) -> _Weights:
    """Weigh the windows [N] of a film for averages over its rows: by the seconds of each row that they cover.

    Only windows with a prediction count. Some of them may be unlike any training clip. If these cover more of
    a row than the others, the row counts as unlike the training, and all its windows are averaged. Any other
    row is averaged over the windows that are like the training.

    Parameters
    ----------
    grid : RowGrid
        The windows, the rows, and how many seconds of each row [R] each window covers.
    is_predicted, is_unlike : ndarray of bool, shape [N]
        Whether a window has a prediction, and whether it is unlike any training clip.
    """
    # Seconds of each row by each window [R, N]; 0 for windows that do not count
    predicted = _only_windows(grid.covered, is_predicted)
    like_training = _only_windows(grid.covered, is_predicted & ~is_unlike)

    predicted_s = predicted.sum(axis=1)  # [R]
    like_training_s = like_training.sum(axis=1)  # [R]
    is_row_missing = predicted_s <= 0
    is_row_unlike = ~is_row_missing & (like_training_s < predicted_s / 2)

    # A row that is unlike the training has the first weights, any other row the second: each of the two
    # arrays is made 0 in the other one's rows, so that their sum is the choice.
    used = _only_rows(predicted, is_row_unlike) + _only_rows(like_training, ~is_row_unlike)
    return _Weights(predicted=predicted, used=used, missing=is_row_missing, unlike=is_row_unlike)


def _probability_columns(model: "Model", logit: Floats) -> dict[str, Floats]:
    """Compute the probability of logits [R], its band, and whether they reach the threshold (`called`).

    Probabilities are NaN if the model has no calibration, and `called`, 1 or 0, if it gives no logits. A row
    without a logit, which no predicted window covers, gets arbitrary values here; `rows_of_model` replaces
    them by NaN.
    """
    unknown = np.full(len(logit), np.nan)
    columns = {"p": unknown, "p_low": unknown, "p_high": unknown, "called": unknown}
    if model.calibration is not None:
        finite_logit = np.where(np.isnan(logit), 0.0, logit)  # calibrations take no NaN
        columns["p"] = model.calibration.probability(finite_logit)
        columns["p_low"], columns["p_high"] = model.calibration.band(finite_logit)
    if model.decides:
        columns["called"] = (logit >= model.card.threshold).astype(np.float64)
    return columns


def _concept_columns(
    model: "Model", film_predictions: pd.DataFrame, weights: csr_array, has_no_p: NDArray[np.bool_]
) -> dict[str, Floats]:
    """Compute what a model finds of each concept in the rows of a film, as columns [R].

    - `CONCEPT_value`: the mean of its values over the row's windows;
    - `CONCEPT_p`: its probability, computed from this mean;
    - of a concept bottleneck, `CONCEPT_contribution`: the mean of what it adds to the logit. The logit is the
      sum of these and of a constant one, `base_contribution`;
    - of a bottleneck without usual values, such as a tree, `CONCEPT_change`: the mean change of the
      probability due to it.

    Parameters
    ----------
    model : Model
    film_predictions : DataFrame, N rows
        Its predictions for windows.
    weights : sparse array, shape [R, N]
        Weight of each window in the averages over each row.
    has_no_p : ndarray of bool, shape [R]
        Rows whose probabilities, contributions and changes are NaN.
    """
    from obygaze_models.concepts import ConceptBottleneck  # noqa: PLC0415 - slow, and a desk trains nothing

    concepts = model.concepts_with_probability
    if not concepts:
        return {}
    averages = [_average(weights, film_predictions[f"{concept}_value"]) for concept in concepts]
    values = np.array(averages).T  # [R, concepts]
    probabilities = model.probabilities_of(values)

    has_contributions = isinstance(model.estimator, ConceptBottleneck)
    columns = {}
    for index, concept in enumerate(concepts):
        columns[f"{concept}_value"] = values[:, index]
        columns[f"{concept}_p"] = np.where(has_no_p, np.nan, probabilities[:, index])
        if has_contributions:
            contribution = _average(weights, film_predictions[f"{concept}_contribution"])
            columns[f"{concept}_contribution"] = np.where(has_no_p, np.nan, contribution)
        if f"{concept}_change" in film_predictions:
            change = _average(weights, film_predictions[f"{concept}_change"])
            columns[f"{concept}_change"] = np.where(has_no_p, np.nan, change)
    if has_contributions:
        base_contribution = _average(weights, film_predictions["base_contribution"])
        columns["base_contribution"] = np.where(has_no_p, np.nan, base_contribution)
    return columns


def _joined_flags(flags: Mapping[str, NDArray[np.bool_]], n_rows: int) -> list[str]:
    """Write the flags of each row, such as `black;short`, in the order of `FLAGS`.

    `flags` has for each flag the rows [R] that have it.
    """
    cells = []
    for row in range(n_rows):
        names = [name for name in FLAGS if flags[name][row]]
        cells.append(";".join(names))
    return cells


def _only_windows(weights: csr_array, is_kept: NDArray[np.bool_]) -> csr_array:
    """Set the weights [R, N] of windows [N] that are not kept to 0."""
    return csr_array(weights.multiply(is_kept.astype(np.float64)[None, :]))


def _only_rows(weights: csr_array, is_kept: NDArray[np.bool_]) -> csr_array:
    """Set the weights [R, N] of rows [R] that are not kept to 0."""
    return csr_array(weights.multiply(is_kept.astype(np.float64)[:, None]))


def _average(weights: csr_array, column: pd.Series) -> Floats:
    """Average a column of windows [N] over rows [R], with weights [R, N].

    NaN in rows for which no window has a weight; and in all rows if all values are NaN, as the model then has
    no such number.
    """
    values = column.to_numpy(dtype=np.float64)
    if np.isnan(values).all():
        return np.full(weights.shape[0], np.nan)
    # NaN of windows without a prediction becomes 0: their weight is 0 too, but 0 times NaN is NaN.
    sums = weights @ np.nan_to_num(values)
    with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0 is NaN, as it should be here
        means: Floats = sums / weights.sum(axis=1)
    return means


def cut_into_rows(windows: Windows, shots: Spans | None) -> tuple[RowKind, Spans]:
    """Cut a film into rows that do not overlap and cover it.

    With shots, a row is a shot, or an equal part of a shot that is longer than a window. Without shots, a row
    is a window; if windows overlap, it is a step from one window's start to the next. A gap that neither
    shots nor windows cover is a row of its own.

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
    end_s = windows.end_s
    if shots is not None and len(shots):
        return "shots", _with_gaps(_parts_of_shots(shots, windows.window_s), end_s)
    starts, ends = windows.spans.T
    are_disjoint = (starts[1:] >= ends[:-1] - SLACK_S).all()
    if are_disjoint:
        return "windows", _with_gaps(windows.spans, end_s)
    return "steps", _with_gaps(_steps(windows), end_s)


def _parts_of_shots(shots: Spans, window_s: float) -> Spans:
    """Cut each shot [S, 2] that is longer than a window into equal parts, as few as are short enough.

    A part may be a little longer than a window (`SHOT_SLACK`), so that rounding does not cut a shot.
    """
    parts = []
    for start, end in shots:
        length_in_windows = (end - start) / window_s
        n_parts = max(1, int(np.ceil(length_in_windows - SHOT_SLACK)))
        parts.append(_equal_parts(start, end, n_parts))
    return np.concatenate(parts)


def _equal_parts(start: float, end: float, n: int) -> Spans:
    """Cut a span into n parts [n, 2] of equal length, up to rounding to milliseconds."""
    edges = np.round(np.linspace(start, end, n + 1), 3)
    edges[0] = start  # not rounded, so that parts of neighbouring shots still touch
    edges[-1] = end
    return np.column_stack([edges[:-1], edges[1:]])


def _steps(windows: Windows) -> Spans:
    """Cut a film from one window's start to the next; after the last start, at each hop.

    Of windows of 10 s at 0, 5, 10 and 15 s, the steps are 0-5, 5-10, 10-15, 15-20 and 20-25 s. The last step
    reaches to the end of the last window, and is shorter than `LONGEST_LAST_STEP` hops.
    """
    hop_s = windows.hop_s or windows.window_s  # a single window has no hop

    # The starts of windows
    starts = [float(windows.spans[0, 0])]
    for start_s in windows.spans[1:, 0].tolist():
        # A window that begins less than a hop after the one before was moved back, to end with the film.
        is_moved_back = start_s - starts[-1] < hop_s - SLACK_S
        if not is_moved_back:
            starts.append(start_s)

    # After the last of them
    while windows.end_s - starts[-1] >= LONGEST_LAST_STEP * hop_s:
        starts.append(starts[-1] + hop_s)

    edges = np.round([*starts, windows.end_s], 3)
    return np.column_stack([edges[:-1], edges[1:]])


def _with_gaps(spans: Spans, end_s: float) -> Spans:
    """Add the gaps before, between and after disjoint spans, up to a film's end, as spans; in time order."""
    film_end_s = max(end_s, spans[-1, 1])  # shots may reach beyond the last window
    # A gap lasts from one span's end to the next span's start; most of these are of no length.
    gap_starts = np.concatenate([[0.0], spans[:, 1]])
    gap_ends = np.concatenate([spans[:, 0], [film_end_s]])
    is_gap = gap_ends - gap_starts > SLACK_S
    gaps = np.column_stack([gap_starts, gap_ends])[is_gap]
    all_spans = np.concatenate([spans, gaps])
    return all_spans[np.argsort(all_spans[:, 0], kind="stable")]


def overlaps(rows: Spans, windows: Spans) -> csr_array:
    """Compute how many seconds of each row each window covers, [R, N]."""
    coverage = find_coverage(rows, windows)
    indices = (coverage.span_index, coverage.other_index)
    return csr_array((coverage.seconds, indices), shape=(len(rows), len(windows)))


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

    Returns
    -------
    dict of str to DataFrame
        Film -> `SHOT_COLUMNS`, in time order.

    Raises
    ------
    FilmError
        The flags are of films that have no shots.
    ManifestError
        As `read_parts`; or there is one film and a table is of others.
    """
    shots = dict(_read_tables(path, movies))
    if flags is not None:
        for movie, flags_of_film in _read_tables(flags, movies, flagged=True):
            if movie not in shots:
                raise FilmError(f"{flags}: movie {movie!r} has no shots in {path}")
            shots[movie] = _with_flags_of_person(shots[movie], flags_of_film)
    return shots


def _read_tables(
    path: Path, movies: Sequence[str], *, flagged: bool = False
) -> list[tuple[str, pd.DataFrame]]:
    """Read a table of shots, or of a person's flags (`flagged`); return each film with its rows.

    A film is named as in `movies`, whatever form of its id the table has; one that is none of these keeps the
    name that it has in the table. If there is one movie, only its rows are read.
    """
    only_movies = movies if len(movies) == 1 else None
    parts_of_film = read_parts(path, only_movies, flagged=flagged)  # name in the table -> its shots
    tables = []
    for name_in_table, parts in parts_of_film.items():
        movie = find_film(name_in_table, movies) or name_in_table
        tables.append((movie, _shot_table(movie, parts, path.name)))
    return tables


def read_subtitles_of(
    files: Sequence[Path],
    movies: Sequence[str],
    encoding: str = "",
    tell: Callable[[str], None] = lambda _: None,
    windows: Mapping[str, Windows] | None = None,
) -> dict[str, pd.DataFrame]:
    """Read the subtitles of films, each from a file that is named as its film's id.

    A single file of a single film may have any name.

    Parameters
    ----------
    files : sequence of Path
        Files of subtitles, or films with a track of them.
    movies : sequence of str
        The films.
    encoding : str
        Of files of subtitles; "" if it is not known.
    tell : callable
        Gets a line for each file: what was read and left out, and how many subtitles begin after its windows.
    windows : mapping of str to Windows, optional
        Film -> its windows.

    Returns
    -------
    dict of str to DataFrame
        Film -> `TEXT_COLUMNS`.

    Raises
    ------
    FilmError
        A file's name is no film's id, or two files are of one film.
    ManifestError, VideoError
        A file has no subtitles.
    """
    tables = {}
    for movie, path in match_files(movies, files).items():
        lines, notice = read_subtitle_lines(path, encoding)
        tell(notice)

        # Subtitles of another cut of the film are often later than its windows.
        if windows:
            end_s = windows[movie].end_s
            n_late = sum(start_s >= end_s for start_s, _, _ in lines)
            if n_late:
                tell(
                    f"{path.name}: {n_late:,} begin behind the last window, {end_s:g} s: "
                    "are they of another cut?"
                )

        tables[movie] = pd.DataFrame(lines, columns=list(TEXT_COLUMNS))
    return tables


def match_files(movies: Sequence[str], files: Sequence[Path]) -> dict[str, Path]:
    """Match files to films by their names: a file is named as its film's id, with any suffix.

    If there is one file and one film, the file may have any name.

    Raises
    ------
    FilmError
        A name is no film's, or two files are of one film.
    """
    if len(movies) == len(files) == 1:
        return {movies[0]: files[0]}
    movie_by_file_name = {file_name(movie): movie for movie in movies}
    file_of = dict[str, Path]()
    for path in files:
        movie = movie_by_file_name.get(file_name(path.stem))
        if movie is None:
            # Another spelling of the id, or an id with a dot in it.
            movie = find_film(path.stem, movies) or find_film(path.name, movies)
        if movie is None:
            raise FilmError(f"{path}: no scored film has this name: {', '.join(movies)}; rename the file")
        earlier = file_of.get(movie, path)
        if earlier != path:
            raise FilmError(f"{path}: of film {movie}, as {earlier} is: give one of them")
        file_of[movie] = path
    return file_of


def read_subtitle_lines(path: Path, encoding: str = "") -> tuple[list[tuple[float, float, str]], str]:
    """Read the subtitles of a film, from a file of subtitles or from the film's own track.

    Returns
    -------
    lines : list of (start_s, end_s, text)
    notice : str
        How many subtitles were read and left out.

    Raises
    ------
    ManifestError, VideoError
        It has no subtitles that are text.
    """
    spans: Sequence[Subtitle | RawSpan]
    account = Account(path, "its text track")
    if path.suffix.lower() in SUFFIXES_OF_TEXT:
        spans = read_subtitles(path, encoding=encoding, account=account)
    else:
        spans = _spans_of_track(path, account)
    return [(span.start_s, span.end_s, span.text) for span in spans], account.line()


def _spans_of_track(path: Path, account: Account) -> list[RawSpan]:
    """Read the subtitles of a film's own track.

    The account is where a reader counts the records that it used, and notes why others were left out.
    """
    from obygaze_features.video import read_subtitle_track  # noqa: PLC0415 - scores alone need no FFmpeg

    raw_spans = []  # still to be checked: `Account.spans` leaves out those whose times are not possible
    for number, (start_s, end_s, text) in enumerate(read_subtitle_track(path, account.note), start=1):
        raw_spans.append(RawSpan(f"line {number}, {text[:40]!r}", start_s, end_s, text))
    spans = account.spans(raw_spans)
    account.used = len(spans)
    return spans


def read_variables(
    path: Path, films: Mapping[str, Windows], tell: Callable[[str], None] = lambda _: None
) -> dict[str, pd.DataFrame]:
    """Read what `obygaze film variables` measured in windows of films.

    Parameters
    ----------
    path : Path
        The table.
    films : mapping of str to Windows
        Film -> its windows.
    tell : callable
        Gets a line on the columns that were read, and on the columns and rows that were left out.

    Returns
    -------
    dict of str to DataFrame
        Film -> `start_s`, `end_s` and the variables of its windows, in time order.

    Raises
    ------
    FilmError
        The table has no window of these films, one twice, or no column of numbers.
    ManifestError
        It is no table of windows, or a cell is no number.
    """
    table = read_table(path, needed=("movie", "start_s", "end_s"))
    variables = [name for name in table.columns if name not in FIELDS]
    # `pointed` writes decimal points for decimal commas, and `timed` times as numbers of seconds.
    rows = list(table.pointed(variables).timed())
    tables = _windows_by_film(path, rows, variables, films)
    used = [name for name in variables if _has_numbers(name, tables.values())]
    if not used:
        raise FilmError(f"{path}: it has no window of {', '.join(films)}, or no column of numbers")

    read_columns = {"clip_id", "movie", "start_s", "end_s", *used}
    left_out = [name for name in table.columns if name not in read_columns]
    n_rows_left_out = len(rows) - sum(len(windows) for windows in tables.values())
    if n_rows_left_out:
        left_out.append(f"{counted(n_rows_left_out, 'row')} of other films, or behind a film's end")
    notice = f"{path.name}: {', '.join(used)}"
    if left_out:
        notice += f"; left out {', '.join(left_out)}"
    tell(notice)
    return tables


def _windows_by_film(
    path: Path, rows: Sequence[Row], variables: Sequence[str], films: Mapping[str, Windows]
) -> dict[str, pd.DataFrame]:
    """Read the start, the end and the variables of each window of these films, in time order.

    Windows that begin after the film's end are left out; films of which more than half do are refused.
    """
    columns = ["start_s", "end_s", *variables]  # all are numbers
    windows_by_film: dict[str, dict[tuple[float, float], list[float]]] = {}  # film -> times -> numbers
    n_after_end = Counter[str]()  # film -> windows that begin after its end
    for row in rows:
        numbers = [row.number(name, path) for name in columns]
        start_s, end_s = numbers[:2]  # the first two of `columns`
        if not 0 <= start_s < end_s <= MAX_S:
            message = f"no window lasts from {start_s:g} to {end_s:g} s"
            raise FilmError(f"{path}: line {row.line}: {message}")

        movie = find_film(row.cells["movie"], films)
        if movie is None:  # a film that is not asked for
            continue
        if start_s >= films[movie].end_s:
            n_after_end[movie] += 1
            continue

        windows = windows_by_film.setdefault(movie, {})
        if (start_s, end_s) in windows:
            raise FilmError(f"{path}: film {movie} has two rows of the window at {start_s:g} s")
        windows[start_s, end_s] = numbers

    tables = {}
    for movie, windows in windows_by_film.items():
        if n_after_end[movie] > len(windows):
            raise FilmError(
                f"{path}: most windows of film {movie} begin behind its end, {films[movie].end_s:g} s: their "
                "times should be seconds, not frames or milliseconds, of this film"
            )
        tables[movie] = pd.DataFrame(sorted(windows.values()), columns=columns)
    return tables


def _has_numbers(column: str, tables: Iterable[pd.DataFrame]) -> bool:
    """Whether a column holds a number in any row of some tables."""
    return any(table[column].notna().any() for table in tables)


def _shot_table(movie: str, parts: Sequence[FilmPart], detector: str) -> pd.DataFrame:
    """Make the table of a film's shots; a shot that does not name its detector gets `detector`."""
    rows = []
    for part in parts:
        flags = ";".join(part.flags)
        rows.append((movie, part.start_s, part.end_s, part.detector or detector, flags))
    return pd.DataFrame(rows, columns=SHOT_COLUMNS)


def _with_flags_of_person(shots: pd.DataFrame, flags: pd.DataFrame) -> pd.DataFrame:
    """Cut shots where a person's flags begin and end, and replace their flags in between.

    Parameters
    ----------
    shots, flags : DataFrame
        With `SHOT_COLUMNS`: the shots that a detector found, and the spans that a person flagged.
    """
    # Between two neighbouring edges of shots and flags, all flags are the same throughout.
    times = [table[["start_s", "end_s"]].to_numpy().ravel() for table in (shots, flags)]
    edges = np.unique(np.concatenate(times))  # rising
    spans = pd.DataFrame({"start_s": edges[:-1], "end_s": edges[1:]})

    by_person = _shots_around(spans, flags)
    by_detector = _shots_around(spans, shots)
    flagged = by_person.combine_first(by_detector)  # the detector's row where the person flagged nothing

    # In a gap between shots neither has a row, and all is NaN.
    without_gaps = flagged.dropna().reset_index(drop=True)
    return without_gaps[list(SHOT_COLUMNS)]


def _shots_around(spans: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Return for each span the row of a table of shots that it lies in; NaN if it lies in none.

    Parameters
    ----------
    spans : DataFrame
        Columns start_s and end_s, in time order. No span reaches over the edge of a shot.
    table : DataFrame
        Shots, or spans that a person flagged, in time order.
    """
    # Spans and shots both have a column `end_s`.
    shots = table.rename(columns={"end_s": "shot_end_s"})
    # For each span, `merge_asof` finds the last shot that begins at its start or before it.
    rows = pd.merge_asof(spans, shots, on="start_s")
    lies_in_shot = rows["shot_end_s"] >= rows["end_s"]
    return rows[list(SHOT_COLUMNS)].where(lies_in_shot)


def flagged_seconds(rows: Spans, shots: pd.DataFrame, flag: str) -> NDArray[np.float64]:
    """Compute how many seconds of each row [R] lie in shots with a flag."""
    has_flag = [flag in flags.split(";") for flags in shots["flags"]]
    flagged = shots.loc[has_flag, ["start_s", "end_s"]].to_numpy(dtype=np.float64)
    if not len(flagged):
        return np.zeros(len(rows))
    seconds = overlaps(rows, flagged).sum(axis=1)
    return np.asarray(seconds, dtype=np.float64)
