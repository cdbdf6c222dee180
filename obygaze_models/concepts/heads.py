"""Define classifier heads on concept values, a linear model or a tree, and decompose their scores."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from obygaze_features.arguments import checked
from obygaze_models.concepts.cav_fitting import Floats
from obygaze_models.errors import ConceptError
from obygaze_models.models import few_features
from obygaze_models.models.choices import Grid, Threshold
from obygaze_models.models.scaling import MOST_LIMIT, ClippedScaler
from obygaze_models.protocol.held_out import logistic

HeadName = Literal["logistic", "elastic_net", "tree"]

CANDIDATES: Mapping[HeadName, Mapping[str, Sequence[float]]] = {
    "logistic": {"C": (0.001, 0.01, 0.1, 1.0, 10.0)},
    "elastic_net": {"C": (0.001, 0.01, 0.1, 1.0, 10.0)},
    "tree": {"max_depth": (1, 2, 3, 4, 6, 8)},
}
"""What inner folds choose among; the middle value (3 and .1) is taken where nothing can be chosen."""


def make_head(head: HeadName | BaseEstimator, seed: int) -> BaseEstimator:
    """Make the estimator of a head: its middle candidate, or the one given."""
    if isinstance(head, BaseEstimator):
        head._validate_params()
        return clone(head)
    ((_, values),) = CANDIDATES[head].items()
    value = values[(len(values) - 1) // 2]
    if head == "tree":
        return DecisionTreeClassifier(max_depth=int(value), min_samples_leaf=10, random_state=seed)
    if head == "elastic_net":
        return LogisticRegression(
            C=value, l1_ratio=0.5, solver="saga", tol=1e-5, max_iter=20_000, random_state=seed
        )
    return LogisticRegression(C=value, solver="newton-cholesky", tol=1e-8, max_iter=10_000)


def choice(head: HeadName | BaseEstimator) -> Grid | Threshold:
    """Return what inner folds tune for a head: its one parameter, or the threshold of a given estimator."""
    if isinstance(head, BaseEstimator):
        return Threshold()
    ((parameter, values),) = CANDIDATES[head].items()
    return Grid(f"estimator__{parameter}", tuple(values))


@dataclass(eq=False, repr=False)
class ConceptHead(ClassifierMixin, BaseEstimator):
    """Score clips by their concept values, and by a residual in the features if there is one.

    Parameters
    ----------
    estimator : estimator
        A linear model or a tree of scikit-learn.
    n_concepts : int
        The first columns of X are concept values; the rest, features for the residual.
    residual_C : float, optional
        Inverse strength of the residual's penalty; None for no residual.

    Attributes
    ----------
    estimator_ : estimator
    residual_ : Residual or None
    """

    estimator: Any
    n_concepts: int
    residual_C: float | None = None  # noqa: N815  as scikit-learn spells it

    def fit(self, X: Floats, y: NDArray[np.int64]) -> Self:
        """Fit on concept values, and features, X [N, K + D] and labels y [N], 0 or 1."""
        values = X[:, : self.n_concepts]
        self.classes_ = np.array([0, 1])
        # Values and parameters were checked by the bottleneck: to do so again takes a fifth of a small fit.
        with config_context(
            assume_finite=True, skip_parameter_validation=True, enable_metadata_routing=False
        ):
            self.estimator_ = copy(self.estimator).fit(values, y)
        self.residual_ = None
        if self.residual_C is not None:
            logit = head_scores(self.estimator_, values)
            self.residual_ = fit_residual(X[:, self.n_concepts :], y, logit, self.residual_C)
        return self

    @staticmethod
    def logits_of_subsets(
        heads: Sequence["ConceptHead"], X: Floats, y: NDArray[np.int64], subsets: NDArray[np.bool_]
    ) -> NDArray[np.float64] | None:
        """Fit heads on each of F subsets [N, F] of the clips, all at once, and score all clips.

        Parameters
        ----------
        heads : sequence of ConceptHead, length H
            Alike but for a parameter.
        X : ndarray, shape [N, K]
            Concept values.
        y : ndarray of int, shape [N]
        subsets : ndarray of bool, shape [N, F]

        Returns
        -------
        ndarray, shape [H, F, N], or None
            None where the heads are no logistic regressions as `make_head` makes them, or have a residual.
        """
        if not all(head._is_plain_logistic() for head in heads):
            return None
        n_subsets = subsets.shape[1]
        strengths = np.repeat([head.estimator.C for head in heads], n_subsets)
        repeated = np.tile(subsets, (1, len(heads)))
        values = X[:, : heads[0].n_concepts].astype(np.float64)
        logits = few_features.logits_of_subsets(values, y, repeated, strengths.tolist())
        return logits.reshape(len(heads), n_subsets, len(y))

    def _is_plain_logistic(self) -> bool:
        """Tell whether the head is the logistic regression of `make_head`, but for C, and has no residual."""
        if self.residual_C is not None or type(self.estimator) is not LogisticRegression:
            return False
        usual = make_head("logistic", 0).set_params(C=self.estimator.C)
        return bool(self.estimator.get_params() == usual.get_params())

    def decision_function(self, X: Floats) -> NDArray[np.float64]:
        """Compute the logit [N] of each row of X [N, K + D]."""
        scores = head_scores(self.estimator_, X[:, : self.n_concepts])
        return scores if self.residual_ is None else scores + self.residual_.scores(X[:, self.n_concepts :])


@checked
def head_scores(head: Any, P: Floats) -> NDArray[np.float64]:
    """Score concept values P [N, K]: the logit, positive for the positive class.

    A linear head's is P w + b. A tree's is the logit of its leaf's share of positives with one clip of each
    class added, so that a pure leaf is finite: log((n1 + 1) / (n0 + 1)). Its sign is the tree's prediction.

    Raises
    ------
    ConceptError
        The estimator is neither linear nor a tree.
    """
    if hasattr(head, "tree_"):
        leaves = np.zeros(len(P), np.intp)
        for rows, _, below in walk(head.tree_, P):
            leaves[rows] = below
        return np.asarray(node_logits(head)[leaves])
    if hasattr(head, "coef_"):
        return np.asarray(P @ head.coef_[0] + head.intercept_[0])
    raise ConceptError(
        f"the head is a {type(head).__name__}, which is neither linear nor a tree: its score has no parts"
    )


Tree: TypeAlias = DecisionTreeClassifier | SimpleNamespace
"""A decision tree, or what a model file keeps of one."""


@checked
def node_counts(head: Tree) -> NDArray[np.float64]:
    """Count the training clips of each class in each node [M, 2], weighted where classes are."""
    shares = head.tree_.value[:, 0, :]
    return np.asarray(shares * head.tree_.weighted_n_node_samples[:, None])


def node_logits(head: Tree) -> NDArray[np.float64]:
    """Compute log((n1 + 1) / (n0 + 1)) of each node [M]."""
    counts = node_counts(head)
    return np.log((counts[:, 1] + 1) / (counts[:, 0] + 1))


@dataclass(frozen=True, eq=False, slots=True)
class Residual:
    """A linear term of the features, added to the head's logit, for what the concepts do not explain.

    Attributes
    ----------
    scaler : ClippedScaler
    weights : ndarray, shape [D]
    intercept : float
    """

    scaler: ClippedScaler
    weights: NDArray[np.float64]
    intercept: float

    def scores(self, X: Floats) -> NDArray[np.float64]:
        """Compute the term [N] of each row of X [N, D]."""
        return self.scaler.transform(X) @ self.weights + self.intercept


def fit_residual(X: Floats, y: NDArray[np.int64], logit: NDArray[np.float64], C: float) -> Residual:
    """Fit the residual on top of the head's logit [N], which stays as it is.

    Minimises the log loss of ``logit + r(X)`` plus ||w||^2 / (2 C) (the residual of Yuksekgonul et al., ICLR
    2023, PCBM-h, as one logit).
    """
    scaler = ClippedScaler(MOST_LIMIT)
    given = scaler.fit_transform(X), y, np.ones(len(y))
    *weights, intercept = logistic(*given, offsets=logit, penalty=1 / C, least=None)
    return Residual(scaler, np.array(weights), intercept)


# --- explaining a score
# ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Contribution:
    """A concept's part in a score.

    Attributes
    ----------
    concept : str
    value : float
        The clip's value on the concept, as the head reads it.
    percentile : float
        Share of the training clips with a value no larger, in percent: each by a model without its movie.
    contribution : float
        What the concept adds to the score.
    usual : float or None
        The value at which it adds nothing, the training clips' mean, each by a model without its movie; None
        of a tree.
    """

    concept: str
    value: float
    percentile: float
    contribution: float
    usual: float | None = None

    @property
    def amount(self) -> str:
        """``more`` or ``less`` than usual; empty where no usual value is known."""
        if self.usual is None:
            return ""
        return "more" if self.value > self.usual else "less"


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
        the change of logit at the nodes that test the concept.
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
    for rows, nodes, below in walk(tree, values):
        parts[rows, tree.feature[nodes]] += logits[below] - logits[nodes]
    return float(logits[0]), parts


Nodes = NDArray[np.intp]


def walk(tree: Any, values: NDArray[Any]) -> Iterator[tuple[Nodes, Nodes, Nodes]]:
    """Walk all rows of concept values [N, K] down a tree together, level by level.

    Yields the rows that are not yet in a leaf, their nodes, and the nodes below into which they go.
    """
    # The tree compares in float32, and so does this walk.
    narrow, nodes = values.astype(np.float32), np.zeros(len(values), dtype=np.intp)
    while len(rows := np.flatnonzero(tree.children_left[nodes] != tree.children_right[nodes])):
        at = nodes[rows]
        above = narrow[rows, tree.feature[at]] > tree.threshold[at]
        nodes[rows] = below = np.where(above, tree.children_right[at], tree.children_left[at])
        yield rows, at, below


def by_concept(parts: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """Add up the parts [N, V K] of the V values of each of k concepts: [N, K]."""
    return np.asarray(parts.reshape(len(parts), -1, k).sum(axis=1))


def path_of(head: Any, values: NDArray[np.float64], concepts: Sequence[str]) -> tuple[Step, ...]:
    """List the nodes from the root to the leaf, each with its test and the outcome; none of a linear head."""
    if not hasattr(head, "tree_"):
        return ()
    tree, counts, path = head.tree_, node_counts(head), []
    for _, (node,), (below,) in walk(tree, values[None]):
        concept = int(tree.feature[node])
        asked = float(values[concept]), float(tree.threshold[node]), bool(below == tree.children_right[node])
        share = float(counts[node, 1] / counts[node].sum())
        path.append(Step(concepts[concept], *asked, int(tree.n_node_samples[node]), share))
    return tuple(path)
