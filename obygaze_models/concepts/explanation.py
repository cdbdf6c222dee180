"""Explain a clip's score: the contribution of each concept and the path through the tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_models.concepts.heads import node_counts, node_logits


@dataclass(frozen=True, slots=True)
class Contribution:
    """A concept's part in a score.

    Attributes
    ----------
    concept : str
    value : float
        The clip's value on the concept, as the head reads it.
    percentile : float
        Share of the training clips with a value no larger, in percent.
    contribution : float
        What the concept adds to the score.
    """

    concept: str
    value: float
    percentile: float
    contribution: float


@dataclass(frozen=True, slots=True)
class Step:
    """A tree node on the clip's path: its test, the outcome, and its training clips.

    Attributes
    ----------
    concept : str
    value, threshold : float
    above : bool
        Whether the clip's value is above the threshold.
    n_train : int
        Training clips in the node.
    share_positive : float
        Positives among them.
    """

    concept: str
    value: float
    threshold: float
    above: bool
    n_train: int
    share_positive: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """A decomposed score: score = base + contributions + residual.

    Attributes
    ----------
    score : float
        A logit.
    threshold : float
        The score from which on a clip is called positive.
    base : float
        The score of the mean training clip (linear head), or of the tree's root.
    contributions : tuple of Contribution
        In the concepts' order. A linear head's is weight times distance from the training mean; a tree's is
        the change of logit at the nodes that ask for the concept.
    residual : float
        What the features add beyond concepts; 0 without a residual.
    path : tuple of Step
        The decision path, root first; empty for a linear head.
    """

    score: float
    threshold: float
    base: float
    contributions: tuple[Contribution, ...]
    residual: float
    path: tuple[Step, ...]


def explain_score(
    head: Any,
    values: NDArray[np.float64],
    train: NDArray[np.float64],
    concepts: Sequence[str],
    *,
    centre: NDArray[np.float64],
    threshold: float,
    residual: float,
) -> Explanation:
    """Decompose the score that a head gives the concept values [K] of one clip.

    Parameters
    ----------
    train : ndarray, shape [N, K]
        The training clips' values, or quantiles of them at equal steps.
    centre : ndarray, shape [K]
        Their mean.
    """
    percentiles = (train <= values).mean(axis=0) * 100
    base, rows = additive_parts(head, values[None], centre)
    parts = rows[0]
    path = _path(head, values, concepts) if hasattr(head, "tree_") else ()
    return Explanation(
        score=base + float(parts.sum()) + residual,
        threshold=threshold,
        base=base,
        contributions=tuple(
            Contribution(concept, float(value), float(percentile), float(part))
            for concept, value, percentile, part in zip(concepts, values, percentiles, parts, strict=True)
        ),
        residual=residual,
        path=path,
    )


def additive_parts(
    head: Any, values: NDArray[np.float64], centre: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Decompose the scores of concept values [N, K] into a base and each concept's contribution [N, K].

    Parameters
    ----------
    head : estimator
        A fitted linear model or tree of scikit-learn.
    values : ndarray, shape [N, K]
    centre : ndarray, shape [K]
        The training clips' mean values, from which a linear head's parts are measured.
    """
    if not hasattr(head, "tree_"):
        weights = head.coef_[0]
        return float(head.intercept_[0] + weights @ centre), weights * (values - centre)
    tree, logits = head.tree_, node_logits(head)
    parts = np.zeros(values.shape)
    # The tree compares in float32, and so does this walk.
    narrow, nodes = values.astype(np.float32), np.zeros(len(values), dtype=np.intp)
    rows = np.arange(len(values))
    while (inner := tree.children_left[nodes] != tree.children_right[nodes]).any():
        here, at = rows[inner], nodes[inner]
        asked = tree.feature[at]
        above = narrow[here, asked] > tree.threshold[at]
        below = np.where(above, tree.children_right[at], tree.children_left[at])
        parts[here, asked] += logits[below] - logits[at]
        nodes[here] = below
    return float(logits[0]), parts


def _path(head: Any, values: NDArray[np.float64], concepts: Sequence[str]) -> tuple[Step, ...]:
    """Walk from the root to the leaf, noting each question and its answer."""
    tree, counts = head.tree_, node_counts(head)
    path, node = [], 0
    narrow = values.astype(np.float32)
    while tree.children_left[node] != tree.children_right[node]:
        concept, threshold = int(tree.feature[node]), float(tree.threshold[node])
        above = bool(narrow[concept] > threshold)
        path.append(
            Step(
                concept=concepts[concept],
                value=float(values[concept]),
                threshold=threshold,
                above=above,
                n_train=int(tree.n_node_samples[node]),
                share_positive=float(counts[node, 1] / counts[node].sum()),
            )
        )
        node = int((tree.children_right if above else tree.children_left)[node])
    return tuple(path)
