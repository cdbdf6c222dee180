"""Describe the decomposed score of one clip: what each concept adds, and the path through a tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_models.concepts.head_scores import node_counts, walk

MIN_PART = 0.1
"""A value of a concept is named as a reason if it makes at least this share of the concept's contribution."""


@dataclass(frozen=True, slots=True)
class Contribution:
    """The contribution of a concept to the score of a clip.

    Attributes
    ----------
    concept : str
    value : float
        The clip's value on the concept, as the head reads it.
    percentile : float
        Percentage of training clips whose value is at most this one. The value of a training clip is by a
        bank fitted without its movie.
    contribution : float
        What the concept adds to the score.
    usual : float or None
        The mean value of training clips, at which the concept contributes 0; None if the head is a tree.
    position, usual_position : float or None
        Of a concept in time: when it is in the clip, and the mean of training clips. Both are None for other
        concepts, and if the head is a tree.
    position_contribution : float
        The part of `contribution` that comes from the position; 0 for a concept without one.
    """

    concept: str
    value: float
    percentile: float
    contribution: float
    usual: float | None = None
    position: float | None = None
    usual_position: float | None = None
    position_contribution: float = 0.0

    @property
    def amount(self) -> str:
        """The word "more" or "less", if the concept contributes because the clip has more or less than usual.

        It is "" if the usual value is not known, or if the concept contributes by its position in the clip:
        "more Body" would then name a cause whose removal has the opposite effect, or none.
        """
        if self.usual is None:
            return ""
        value_contribution = self.contribution - self.position_contribution
        if not self._is_made_by(value_contribution):
            return ""
        return "more" if self.value > self.usual else "less"

    @property
    def time(self) -> str:
        """The word "earlier" or "later", if the concept contributes because it comes so compared with usual.

        It is "" for a concept without position, or if the position is not what makes the contribution.
        """
        if self.position is None or self.usual_position is None:
            return ""
        if not self._is_made_by(self.position_contribution):
            return ""
        return "later" if self.position > self.usual_position else "earlier"

    def _is_made_by(self, part: float) -> bool:
        """Tell whether a part of the contribution has its sign, and is no negligible share of it."""
        return part * self.contribution > 0 and abs(part) >= MIN_PART * abs(self.contribution)


@dataclass(frozen=True, slots=True)
class Step:
    """A node of a decision tree on the path of a clip.

    Attributes
    ----------
    concept : str
        The concept that the node tests.
    value, threshold : float
        The clip's value on it, and the threshold that it is compared with.
    above : bool
        Whether the clip's value is above the threshold.
    n_train : int
        Number of training clips in the node.
    share_positive : float
        Share of these clips that are positive.
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
        A clip is called positive if its score is at least this.
    base : float
        The score of the mean training clip (linear head), or of the tree's root.
    contributions : tuple of Contribution
        In the concepts' order. A linear head's is weight times distance from the training mean; a tree's is
        the change of logit at the nodes that test the concept.
    residual : float
        The score of the residual, a term of the features that are not in the concepts; 0 without one.
    path : tuple of Step
        The decision path, root first; empty for a linear head.
    """

    score: float
    threshold: float
    base: float
    contributions: tuple[Contribution, ...]
    residual: float
    path: tuple[Step, ...]


def tree_path(head: Any, values: NDArray[np.float64], concepts: Sequence[str]) -> tuple[Step, ...]:
    """List a clip's path through a decision tree: the nodes from the root, each with its test and outcome.

    The path is empty for a linear head.

    Parameters
    ----------
    head : estimator
        A fitted linear model or tree.
    values : ndarray, shape [K]
        The clip's values on the concepts.
    concepts : sequence of str, length K
    """
    if not hasattr(head, "tree_"):
        return ()

    tree = head.tree_
    counts = node_counts(head)  # training clips of each class in each node
    path = []
    one_clip = values[None]
    # `walk` takes all clips down the tree level by level; here there is one.
    for level in walk(tree, one_clip):
        node = level.nodes[0]
        next_node = level.next_nodes[0]
        column = int(tree.feature[node])  # of the concept that the node tests
        step = Step(
            concept=concepts[column],
            value=float(values[column]),
            threshold=float(tree.threshold[node]),
            above=bool(next_node == tree.children_right[node]),
            n_train=int(tree.n_node_samples[node]),
            share_positive=float(counts[node, 1] / counts[node].sum()),
        )
        path.append(step)
    return tuple(path)
