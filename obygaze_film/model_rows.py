"""Compute the rows of one model: average logits of windows; give no probability for unlike ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit

from obygaze_film.record import BARS, BLACK, CREDITS, MISSING, PARTIAL, SHORT, TRAINED_ON, UNLIKE
from obygaze_film.windows import Spans, Windows, flagged_seconds, overlaps, rows_of
from obygaze_models.concepts import ConceptBottleneck
from obygaze_models.prediction import PARTIAL as WINDOW_PARTIAL
from obygaze_models.prediction import UNLIKE as WINDOW_UNLIKE
from obygaze_models.prediction import Model, Predicted

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class Grid:
    """The rows of a film, before any model.

    Attributes
    ----------
    movie : str
    windows : Windows
    kind : str
        Kind of rows: "shots", "windows" or "steps".
    spans : ndarray, shape [R, 2]
    covered : sparse array, shape [R, N]
        Seconds of each row that each window covers.
    flags : dict of str to ndarray, shape [R]
        Flags that do not depend on a model.
    """

    movie: str
    windows: Windows
    kind: str
    spans: Spans
    covered: csr_array
    flags: Mapping[str, NDArray[np.bool_]]

    @property
    def seconds(self) -> Floats:
        """Length of each row [R]."""
        found: Floats = self.spans[:, 1] - self.spans[:, 0]
        return found


def make_grid(movie: str, windows: Windows, shots: pd.DataFrame) -> Grid:
    """Cut a film into rows, and flag those covered by more than half by shots with a flag."""
    kind, spans = rows_of(windows, shots[["start_s", "end_s"]].to_numpy(dtype=np.float64))
    seconds = spans[:, 1] - spans[:, 0]
    flags = {flag: flagged_seconds(spans, shots, flag) > seconds / 2 for flag in (BLACK, CREDITS, BARS)}
    flags[SHORT] = np.full(len(spans), windows.end_s < 2 * windows.window_s)
    return Grid(movie, windows, kind, spans, overlaps(spans, windows.spans), flags)


def rows_by(model: Model, key: str, predicted: Predicted, grid: Grid) -> pd.DataFrame:
    """Compute the rows of one model.

    The logits of the windows that cover a row are averaged with their overlap as weights; so are concepts'
    values and contributions, so that contributions still add up to the logit. Windows that are unlike any
    training clip are left out of the average of a row that others cover for at least half of what is covered;
    otherwise the row itself is unlike.

    Parameters
    ----------
    model : Model
    key : str
        Its name in the column `model`.
    predicted : Predicted
        Its predictions for the windows.
    grid : Grid

    Returns
    -------
    DataFrame
        The columns of `timeline.csv` that this model has.
    """
    table = predicted.table.assign(far=predicted.has(WINDOW_UNLIKE), cut=predicted.has(WINDOW_PARTIAL))
    table = table.set_index("clip_id").reindex(list(grid.windows.clip_ids))
    has = table["movie"].notna().to_numpy()
    far, cut = (has & np.array(table[name] == True) for name in ("far", "cut"))  # noqa: E712 - or missing
    every, near = _only(grid.covered, has), _only(grid.covered, has & ~far)
    total = every.sum(axis=1)
    missing = total <= 0
    unlike = ~missing & (near.sum(axis=1) < total / 2)
    used = _rows_only(near, ~unlike) + _rows_only(every, unlike)
    partial = _only(grid.covered, cut).sum(axis=1) > 0

    def averaged(name: str) -> Floats:
        return _average(used, table[name].to_numpy(dtype=np.float64))

    def told(values: Floats) -> Floats:
        return np.where(unlike | missing, np.nan, values)

    n = len(grid.spans)
    logit = averaged("logit")
    p = low = high = np.full(n, np.nan)
    if model.calibration is not None:
        filled = np.where(np.isnan(logit), 0.0, logit)
        p, (low, high) = model.calibration.probability(filled), model.calibration.band(filled)
    called = (logit >= model.card.threshold).astype(np.float64) if model.decides else np.full(n, np.nan)
    flags = {
        UNLIKE: unlike,
        MISSING: missing,
        **{name: grid.flags[name] for name in (BLACK, CREDITS, BARS)},
        PARTIAL: partial,
        SHORT: grid.flags[SHORT],
        TRAINED_ON: np.full(n, grid.movie in model.card.movies),
    }
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
        "flags": [";".join(name for name in flags if flags[name][row]) for row in range(n)],
    }
    by_concepts = isinstance(model.estimator, ConceptBottleneck)
    for place, concept in enumerate(model.concepts):
        slope, intercept = model.concept_sigmoids[place]
        columns[f"{concept}_value"] = value = averaged(f"{concept}_value")
        columns[f"{concept}_p"] = told(expit(slope * value + intercept))
        if by_concepts:
            columns[f"{concept}_contribution"] = told(averaged(f"{concept}_contribution"))
    if by_concepts:
        columns["base_contribution"] = told(averaged("base_contribution"))
    columns["n_windows"] = (used > 0).sum(axis=1)
    columns["status"] = np.select([missing, partial], ["missing", "partial"], "ok")
    return pd.DataFrame(columns)


def _only(weights: csr_array, windows: NDArray[np.bool_]) -> csr_array:
    """Keep the weights [R, N] of some windows [N]."""
    return csr_array(weights.multiply(windows[None, :].astype(np.float64)))


def _rows_only(weights: csr_array, rows: NDArray[np.bool_]) -> csr_array:
    """Keep the weights [R, N] of some rows [R]."""
    return csr_array(weights.multiply(rows[:, None].astype(np.float64)))


def _average(weights: csr_array, values: Floats) -> Floats:
    """Average the values of windows [N] over rows [R]; NaN where no window covers a row."""
    total = weights.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Floats = (weights @ np.nan_to_num(values)) / total
    if np.isnan(values).all():
        found[:] = np.nan
    return found
