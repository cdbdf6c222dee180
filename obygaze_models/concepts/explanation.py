"""Why a clip got its score: a contribution of each concept, and the way through the tree."""

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
    """A node of a tree that the clip passed: its question, the answer, and who else was there.

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
    """A score taken apart: score = base + contributions + residual.

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
    threshold: float,
    residual: float,
) -> Explanation:
    """Take apart the score that a head gives the concept values [K] of one clip.

    Parameters
    ----------
    train : ndarray, shape [N, K]
        The training clips' values.
    """
    percentiles = (train <= values).mean(axis=0) * 100
    if hasattr(head, "tree_"):
        base, parts, path = _through_tree(head, values, concepts)
    else:
        weights, centre = head.coef_[0], train.mean(axis=0)
        base = float(head.intercept_[0] + weights @ centre)
        parts, path = weights * (values - centre), ()
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


def _through_tree(
    head: Any, values: NDArray[np.float64], concepts: Sequence[str]
) -> tuple[float, NDArray[np.float64], tuple[Step, ...]]:
    """Walk from the root to the leaf, giving each change of logit to the concept asked for."""
    tree, logits, counts = head.tree_, node_logits(head), node_counts(head)
    parts, path, node = np.zeros(len(values)), [], 0
    # The tree compares in float32, and so does this walk.
    narrow = values.astype(np.float32)
    while tree.children_left[node] != tree.children_right[node]:
        concept, threshold = int(tree.feature[node]), float(tree.threshold[node])
        above = bool(narrow[concept] > threshold)
        share = float(counts[node, 1] / counts[node].sum())
        path.append(
            Step(
                concepts[concept],
                float(values[concept]),
                threshold,
                above,
                int(tree.n_node_samples[node]),
                share,
            )
        )
        below = int((tree.children_right if above else tree.children_left)[node])
        parts[concept] += logits[below] - logits[node]
        node = below
    return float(logits[0]), parts, tuple(path)
