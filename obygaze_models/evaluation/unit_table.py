"""Describe units that were learnt without labels: their strongest frames, nearest concepts and words."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.preprocessing import normalize

from obygaze_models.concepts.dictionary import Dictionary
from obygaze_models.concepts.texts import TextVectors
from obygaze_models.evaluation.intervals import t_interval
from obygaze_models.evaluation.significance import circular_shifts

N_SHIFTS = 199


Association = tuple[NDArray[np.float64], NDArray[np.float64]]
"""AUC of units for concepts by film [M, H, K], and p [H, K]."""


def associate(
    values: NDArray[np.floating], present: NDArray[np.bool_], movies: NDArray[np.str_], *, seed: int = 0
) -> Association:
    """Compare units' activations with concepts, film by film.

    Units are ranked within films, and the largest deviation of a mean AUC from .5 is compared with that of
    labels shifted in a circle within each film, which keeps their course: of rare units tests of each, times
    their number, find too many.

    Parameters
    ----------
    values : ndarray, shape [N, H]
        The largest activation in each clip; a film's clips in the order of time.
    present : ndarray of bool, shape [N, K]
    movies : ndarray, shape [N]
    seed : int
        Of the shifts.

    Returns
    -------
    auc : ndarray, shape [M, H, K]
        By film, NaN where a film has no clips with, or none without the concept.
    p : ndarray, shape [H, K]
        Share of shifts of the labels in which some unit's mean AUC lies as far from .5 for some concept:
        corrected for the number of units and of concepts.
    """
    films = [np.flatnonzero(movies == movie) for movie in np.unique(movies)]
    ranks = [rankdata(values[rows], axis=0).astype(np.float32).T for rows in films]

    def areas(labels: NDArray[np.bool_]) -> NDArray[np.float64]:
        found = np.full((len(films), values.shape[1], labels.shape[1]), np.nan)
        for film, rows in enumerate(films):
            own = labels[rows].astype(np.float32)
            n, n_with = len(rows), own.sum(axis=0)
            kept = (n_with > 0) & (n_with < n)
            with_, without = n_with[kept], n - n_with[kept]
            found[film][:, kept] = (ranks[film] @ own[:, kept] - with_ * (with_ + 1) / 2) / (with_ * without)
        return found

    def mean(found: NDArray[np.float64]) -> NDArray[np.float64]:
        n = (~np.isnan(found)).sum(axis=0)
        return np.asarray(np.abs(np.nansum(found, axis=0) / np.maximum(n, 1) - 0.5 * (n > 0)))

    auc = areas(present)
    codes = np.unique(movies, return_inverse=True)[1]
    orders = circular_shifts(codes, N_SHIFTS, np.random.default_rng(seed))
    largest = np.array([mean(areas(present[order])).max(initial=0) for order in orders])
    reached = (largest[:, None, None] >= mean(auc) - 1e-9).sum(axis=0)
    return auc, (1 + reached) / (1 + N_SHIFTS)


def unit_table(
    dictionary: Dictionary,
    frames: Sequence[str],
    concepts: Sequence[str] = (),
    association: Association | None = None,
    texts: TextVectors | None = None,
) -> pd.DataFrame:
    """Lay out units, the most used first.

    Parameters
    ----------
    dictionary : Dictionary
    frames : sequence of str, length H
        The strongest frames of each.
    concepts : sequence of str, length K
    association : Association, optional
    texts : TextVectors, optional
        In the space of the tokens.

    Returns
    -------
    DataFrame
        Columns unit, share (of tokens in which it is active), frames; with concepts the nearest one, its AUC
        by film with its interval, and p; with texts the three nearest to the unit's direction, less the mean
        of all texts.
    """
    table = pd.DataFrame({"unit": 1 + np.arange(len(frames)), "share": dictionary.shares, "frames": frames})
    if association is not None:
        auc, p = association
        away = np.abs(np.nansum(auc - 0.5, axis=0)) / np.maximum((~np.isnan(auc)).sum(axis=0), 1)
        nearest = away.argmax(axis=1)
        units = np.arange(len(frames))
        means = [t_interval(own, bounds=(0, 1)) for own in auc[:, units, nearest].T]
        table["concept"] = [concepts[place] for place in nearest]
        for column, name in (("auc", "mean"), ("auc_low", "low"), ("auc_high", "high")):
            table[column] = [getattr(mean, name) for mean in means]
        table["p"] = p[units, nearest]
    if texts is not None:
        directions = normalize(texts.vectors - texts.vectors.mean(axis=0))
        order = np.argsort(-(dictionary.decoder @ directions.T), axis=1, kind="stable")[:, :3]
        table["words"] = ["; ".join(texts.texts[place] for place in own) for own in order]
    return table.sort_values("share", ascending=False, kind="stable", ignore_index=True)
