"""Logistic regressions of a few features on subsets of clips: each is the fit on its own clips alone."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from obygaze_models.concepts.heads import CANDIDATES, ConceptHead, make_head
from obygaze_models.models import GroupedSelection, few_features
from obygaze_models.models.choices import Grid

STRENGTHS = [0.001, 0.1, 10.0]


def concept_values(n=300, k=5, seed=0):
    """Draw concept values [N, K], of which the first goes with the label, labels, and films 0 to 5."""
    rng = np.random.default_rng(seed)
    film = np.arange(n) % 6
    X = rng.standard_t(3, size=(n, k))
    y = (X[:, 0] + rng.normal(size=n) > 0.3).astype(np.int64)
    return X, y, film


def without_each(film):
    """Mark the clips of all films but one, film by film, [N, 6]."""
    return np.stack([film != left_out for left_out in range(6)], axis=1)


def test_each_fit_is_that_of_scikit_learn_on_its_own_clips():
    X, y, film = concept_values()
    subsets = without_each(film)
    for C in STRENGTHS:
        logits_of_fits = few_features.logits_of_subsets(X, y, subsets, [C] * 6)
        for subset, logits in enumerate(logits_of_fits):
            inside = subsets[:, subset]
            reference = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-12, max_iter=1000)
            expected = reference.fit(X[inside], y[inside]).decision_function(X)
            np.testing.assert_allclose(logits, expected, atol=1e-9 * np.abs(expected).max())


def test_a_fit_on_one_subset_is_the_one_among_other_subsets():
    X, y, film = concept_values()
    subsets = without_each(film)
    together = few_features.logits_of_subsets(X, y, subsets, [0.1] * 6)
    (alone,) = few_features.logits_of_subsets(X, y, subsets[:, [2]], [0.1])
    np.testing.assert_allclose(together[2], alone, atol=1e-9 * np.abs(alone).max())


def test_fits_in_blocks_of_one_subset_are_those_of_all_subsets_at_once(monkeypatch):
    X, y, film = concept_values()
    subsets = without_each(film)
    together = few_features.logits_of_subsets(X, y, subsets, [0.1] * 6)
    monkeypatch.setattr(few_features, "MOST_BYTES", 1)
    one_by_one = few_features.logits_of_subsets(X, y, subsets, [0.1] * 6)
    np.testing.assert_allclose(together, one_by_one, atol=1e-9 * np.abs(together).max())


@pytest.mark.parametrize("C", [1e-6, 1e6])
def test_separable_and_constant_features_end_in_a_finite_fit(C):
    """Feature 0 tells the classes perfectly, where a fit without a penalty would be infinite.

    Feature 1 is constant.
    """
    X, y, film = concept_values()
    X[:, 0] = 100 * (2 * y - 1)
    X[:, 1] = 0.0
    logits = few_features.logits_of_subsets(X, y, without_each(film), [C] * 6)
    assert np.isfinite(logits).all()
    assert (logits[:, y == 1].min(axis=1) > logits[:, y == 0].max(axis=1)).all()


def test_heads_searched_together_equal_those_searched_one_by_one(monkeypatch):
    X, y, film = concept_values()
    grid = Grid("estimator__C", tuple(CANDIDATES["logistic"]["C"]))
    head = ConceptHead(make_head("logistic", 0), X.shape[1])
    at_once = GroupedSelection(head, grid).fit(X, y, groups=film)
    monkeypatch.setattr(ConceptHead, "logits_of_subsets", staticmethod(lambda *_: None))
    one_by_one = GroupedSelection(head, grid).fit(X, y, groups=film)
    np.testing.assert_allclose(at_once.held_out_.scores, one_by_one.held_out_.scores, atol=1e-7)
    np.testing.assert_allclose(
        at_once.held_out_.training_means, one_by_one.held_out_.training_means, atol=1e-7
    )
    losses = [candidate.inner_loss for candidate in at_once.candidates_]
    losses_one_by_one = [candidate.inner_loss for candidate in one_by_one.candidates_]
    np.testing.assert_allclose(losses, losses_one_by_one, atol=1e-7)
