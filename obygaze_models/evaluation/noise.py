"""Estimate how often each annotator is right, with a model of the features (Raykar et al., JMLR 2010).

An annotator calls a positive clip positive with one probability and a negative clip negative with another
(Dawid and Skene, Applied Statistics 1979). Whether a clip is positive is unknown; a logistic model of its
features says how probable that is before anybody is asked. EM estimates all together. The model speaks only
of films that it was not fitted on, on a scale that is fitted with the rest: one with many features would
otherwise repeat what annotators said. Without features this is Dawid and Skene's method.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.model_selection import GroupKFold

from obygaze_models.blas import one_blas_thread
from obygaze_models.models.ridge_logistic import soft_logits
from obygaze_models.protocol.targets import NOT_ASKED

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

PARTS: Final = 5
"""Of the films, each of which the model speaks of that was fitted on the others."""
MODELS: Final = 4
"""How often the model is fitted anew."""
STEPS: Final = 30
"""Of EM after each."""
STRENGTHS: Final = (10.0, 1.0, 0.1, 0.01)
"""Penalties of standardised features, of which held-out loss chooses."""
PRIOR: Final = 1.0
"""Calls of each kind that an annotator is given beforehand."""


@dataclass(frozen=True, eq=False)
class Noise:
    """What annotators are worth, and what their clips are.

    Attributes
    ----------
    right : ndarray, shape [J, 2]
        Share of negative and of positive clips that each annotator calls as they are.
    positive : ndarray, shape [N]
        Probability of each clip to be positive, after all.
    """

    right: Floats
    positive: Floats


def annotators_noise(calls: Codes, movies: NDArray[np.str_], X: Floats | None = None) -> Noise:
    """Estimate annotators' confusions.

    Parameters
    ----------
    calls : ndarray of int, shape [J, N]
        0 or 1; `NOT_ASKED` where an annotator did not judge a clip.
    movies : ndarray, shape [N]
    X : ndarray, shape [N, D], optional
        Features, NaN where there are none; without any a clip is as probable as another one before anybody
        is asked.
    """
    known, said = calls != NOT_ASKED, calls == 1
    positive = ((said & known).sum(axis=0) + 0.5) / (known.sum(axis=0) + 1)
    with one_blas_thread():
        for _ in range(MODELS if X is not None else 1):
            score = None if X is None else _held_out(X, positive, movies)
            for _ in range(STEPS):
                before = _before(positive, score)
                right = _right(said, known, positive)
                positive = expit(before + _evidence(said, known, right))
    return Noise(_right(said, known, positive), positive)


def _right(said: NDArray[np.bool_], known: NDArray[np.bool_], positive: Floats) -> Floats:
    """Share of negatives and positives that each annotator calls right, [J, 2]."""
    sides = [
        ((known & call) @ weight + PRIOR) / (known @ weight + 2 * PRIOR)
        for weight, call in ((1 - positive, ~said), (positive, said))
    ]
    return np.stack(sides, axis=1)


def _evidence(said: NDArray[np.bool_], known: NDArray[np.bool_], right: Floats) -> Floats:
    """Log-odds of each clip by what annotators called it, [N]."""
    of_no, of_yes = right.T[:, :, None]
    odds: Floats = np.where(said, np.log(of_yes / (1 - of_no)), np.log((1 - of_yes) / of_no))
    total: Floats = (odds * known).sum(axis=0)
    return total


def _before(positive: Floats, score: Floats | None) -> Floats:
    """Log-odds of each clip before anybody is asked, [N]: by the share, or by a model's score."""
    share = float(logit(positive.mean()))
    if score is None or np.ptp(score) == 0:
        return np.full(len(positive), share)
    (found,) = soft_logits(score[:, None], positive, score[:, None], (1e-6,))
    rises = float((score - score.mean()) @ (found - found.mean())) > 0
    return found if rises else np.full(len(positive), share)


def _held_out(X: Floats, positive: Floats, movies: NDArray[np.str_]) -> Floats:
    """Score clips [N] by logistic models of other films; the penalty of least held-out loss."""
    scale = np.nanstd(X, axis=0)
    standard = np.nan_to_num((X - np.nanmean(X, axis=0)) / np.where(scale > 0, scale, 1.0))
    logits = np.zeros((len(STRENGTHS), len(X)))
    groups = movies if len(np.unique(movies)) > 1 else np.arange(len(movies))
    for train, test in GroupKFold(min(PARTS, len(np.unique(groups)))).split(X, groups=groups):
        logits[:, test] = soft_logits(standard[train], positive[train], standard[test], STRENGTHS)
    loss = (np.logaddexp(0, logits) - positive * logits).mean(axis=1)
    best: Floats = logits[int(loss.argmin())]
    return best
