"""Score concept values by a linear head or a tree, and decompose the scores into what each concept adds.

Trees are walked here and not by scikit-learn: a model file keeps the numbers of a tree, and no estimator.
"""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from obygaze_features.arguments import checked
from obygaze_models.concepts.cav_fitting import Floats
from obygaze_models.errors import ConceptError

Tree: TypeAlias = DecisionTreeClassifier | SimpleNamespace
"""A decision tree, or its arrays as a model file stores them."""

Nodes = NDArray[np.intp]


@checked
def head_scores(head: Any, values: Floats) -> NDArray[np.float64]:
    """Score concept values [N, K]: the logit [N], positive for the positive class.

    The logit of a linear head with weights w and intercept b is values w + b. The logit of a tree is
    log((n1 + 1) / (n0 + 1)), with n1 positive and n0 negative training clips in the leaf: one clip of each
    class is added so that a pure leaf is finite. Its sign is the tree's prediction.

    Raises
    ------
    ConceptError
        The estimator is neither linear nor a tree.
    """
    if hasattr(head, "tree_"):
        # Every row starts in the root, node 0, and moves down level by level until it is in a leaf.
        leaves = np.zeros(len(values), np.intp)
        for level in walk(head.tree_, values):
            leaves[level.rows] = level.next_nodes
        return np.asarray(node_logits(head)[leaves])

    if hasattr(head, "coef_"):
        return np.asarray(values @ head.coef_[0] + head.intercept_[0])
    raise ConceptError(
        f"the head is a {type(head).__name__}, which is neither linear nor a tree: its score has no parts"
    )


def additive_parts(
    head: Any, values: NDArray[np.float64], centre: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Decompose scores by a linear head or a tree into a base and the contribution of each concept.

    Parameters
    ----------
    head : estimator
        A fitted linear model or tree of scikit-learn.
    values : ndarray, shape [N, K]
    centre : ndarray, shape [K]
        The training clips' mean values, at which a linear head's contributions are 0.

    Returns
    -------
    base : float
        The score of the mean values, or of the tree's root.
    contributions : ndarray, shape [N, K]
        Of each concept; base and contributions add up to the score.
    """
    is_linear = not hasattr(head, "tree_")
    if is_linear:
        weights = head.coef_[0]
        base = float(head.intercept_[0] + weights @ centre)
        return base, weights * (values - centre)

    logits = node_logits(head)
    contributions = np.zeros(values.shape)
    for level in walk(head.tree_, values):
        # The change of the logit from a node to its child is credited to the concept that the node tests.
        changes = logits[level.next_nodes] - logits[level.nodes]
        tested_concepts = head.tree_.feature[level.nodes]
        contributions[level.rows, tested_concepts] += changes
    root = 0
    return float(logits[root]), contributions


def sum_by_concept(contributions: NDArray[np.float64], n_concepts: int) -> NDArray[np.float64]:
    """Sum the contributions of all values of each concept: [N, K].

    Parameters
    ----------
    contributions : ndarray, shape [N, V K]
        Of the V values of each of K concepts: the first value of all concepts, then the second of all. With
        presences and positions, the first K columns are of presences, the next K of positions.
    n_concepts : int
        K.
    """
    by_value_and_concept = contributions.reshape(len(contributions), -1, n_concepts)  # [N, V, K]
    return np.asarray(by_value_and_concept.sum(axis=1))


# --- trees
# ---------------------------------------------------------------------------


@checked
def node_counts(head: Tree) -> NDArray[np.float64]:
    """Count the training clips of each class in each node of a tree, [M, 2].

    If the tree was fitted with class weights, a clip counts as much as its weight.
    """
    # scikit-learn's `value` is [M, outputs, classes], and there is one output.
    shares = head.tree_.value[:, 0, :]
    return np.asarray(shares * head.tree_.weighted_n_node_samples[:, None])


def node_logits(head: Tree) -> NDArray[np.float64]:
    """Compute the smoothed logit of each node of a tree [M], log((n1 + 1) / (n0 + 1)) of its class counts."""
    counts = node_counts(head)
    return np.log((counts[:, 1] + 1) / (counts[:, 0] + 1))


class LevelOfTree(NamedTuple):
    """The step from one level of a tree to the next, of all rows that are not in a leaf yet.

    Attributes
    ----------
    rows : ndarray of int, shape [n]
        Indices of these rows.
    nodes : ndarray of int, shape [n]
        The node that each row is in.
    next_nodes : ndarray of int, shape [n]
        The child of that node that each row goes to.
    """

    rows: Nodes
    nodes: Nodes
    next_nodes: Nodes


def walk(tree: Any, values: NDArray[Any]) -> Iterator[LevelOfTree]:
    """Move all rows of concept values [N, K] down a decision tree, and yield each step to the next level.

    All rows begin in the root. In each step, a row goes from its node to the right child if its value of the
    concept that the node tests is above the node's threshold, and else to the left child. A row that is in a
    leaf stays there; the walk ends when all rows are in leaves.

    `tree` is scikit-learn's ``tree_``. It has arrays with an entry for each node: `feature`, the concept that
    the node tests; `threshold`; and `children_left` and `children_right`, the nodes below, or -1 in a leaf.
    """
    root = 0
    no_child = -1
    # scikit-learn compares in float32.
    values32 = values.astype(np.float32)
    node_of_row = np.full(len(values), root, dtype=np.intp)
    while True:
        # A node has two children or none.
        is_in_leaf = tree.children_left[node_of_row] == no_child
        rows = np.flatnonzero(~is_in_leaf)
        if not len(rows):
            return

        nodes = node_of_row[rows]
        tested_concepts = tree.feature[nodes]
        is_above = values32[rows, tested_concepts] > tree.threshold[nodes]
        next_nodes = np.where(is_above, tree.children_right[nodes], tree.children_left[nodes])
        node_of_row[rows] = next_nodes
        yield LevelOfTree(rows, nodes, next_nodes)
