"""Logistic regressions of a few features on subsets of clips: each is the fit on its own clips alone."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from obygaze_models.concepts.heads import CANDIDATES, ConceptHead, make_head
from obygaze_models.models import GroupedSelection, few_features
from obygaze_models.models.choices import Grid
from tests.labelled_clips import LabelledClips


def concept_values(n=300, k=5, seed=0):
    """Draw concept values [N, K], of which the first goes with the label, labels, and films 0 to 5."""
    rng = np.random.default_rng(seed)
    film = np.arange(n) % 6
    X = rng.standard_t(3, size=(n, k))
    y = (X[:, 0] + rng.normal(size=n) > 0.3).astype(np.int64)
    return LabelledClips(X, y, film)


def subsets_without_each_film(film):
    """Mark the clips of six subsets, [N, 6]: each has all films but one."""
    return np.stack([film != left_out for left_out in range(6)], axis=1)


@pytest.mark.parametrize("C", [0.001, 0.1, 10.0])
def test_each_fit_is_that_of_scikit_learn_on_its_own_clips(C):
    """Six logistic regressions are fitted together, each on all films but one."""
    clips = concept_values()
    subsets = subsets_without_each_film(clips.movies)

    logits_of_fits = few_features.logits_of_subsets(clips.X, clips.y, subsets, [C] * 6)

    for left_out in range(6):
        is_in_subset = clips.movies != left_out
        reference = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-12, max_iter=1000)
        expected = reference.fit(clips.X[is_in_subset], clips.y[is_in_subset]).decision_function(clips.X)
        np.testing.assert_allclose(logits_of_fits[left_out], expected, atol=1e-9 * np.abs(expected).max())


def test_a_fit_on_one_subset_is_the_one_among_other_subsets():
    """The third of six subsets is fitted alone, too."""
    clips = concept_values()
    subsets = subsets_without_each_film(clips.movies)

    six_together = few_features.logits_of_subsets(clips.X, clips.y, subsets, [0.1] * 6)
    (third_alone,) = few_features.logits_of_subsets(clips.X, clips.y, subsets[:, [2]], [0.1])

    np.testing.assert_allclose(six_together[2], third_alone, atol=1e-9 * np.abs(third_alone).max())


def test_fits_in_blocks_of_one_subset_are_those_of_all_subsets_at_once(monkeypatch):
    """Where a block may have one byte, it has one subset, which is the least."""
    clips = concept_values()
    subsets = subsets_without_each_film(clips.movies)
    all_at_once = few_features.logits_of_subsets(clips.X, clips.y, subsets, [0.1] * 6)

    monkeypatch.setattr(few_features, "MAX_BYTES", 1)
    one_by_one = few_features.logits_of_subsets(clips.X, clips.y, subsets, [0.1] * 6)

    np.testing.assert_allclose(all_at_once, one_by_one, atol=1e-9 * np.abs(all_at_once).max())


@pytest.mark.parametrize("C", [1e-6, 1e6])
def test_separable_and_constant_features_end_in_a_finite_fit(C):
    """Feature 0 tells the classes perfectly: it is 100 or -100. Feature 1 is constant.

    A fit without a penalty would be infinite.
    """
    clips = concept_values()
    clips.X[:, 0] = np.where(clips.y == 1, 100, -100)
    clips.X[:, 1] = 0.0
    subsets = subsets_without_each_film(clips.movies)

    logits = few_features.logits_of_subsets(clips.X, clips.y, subsets, [C] * 6)  # [6, N]

    assert np.isfinite(logits).all()
    for logits_of_fit in logits:
        assert logits_of_fit[clips.y == 1].min() > logits_of_fit[clips.y == 0].max()


def test_heads_searched_together_equal_those_searched_one_by_one(monkeypatch):
    """A head without `logits_of_subsets` is fitted to one inner fold and penalty after the other."""
    clips = concept_values()
    grid = Grid("estimator__C", tuple(CANDIDATES["logistic"]["C"]))
    head = ConceptHead(make_head("logistic", seed=0), clips.X.shape[1])
    at_once = GroupedSelection(head, grid).fit(clips.X, clips.y, groups=clips.movies)

    monkeypatch.setattr(ConceptHead, "logits_of_subsets", staticmethod(lambda *_: None))
    one_by_one = GroupedSelection(head, grid).fit(clips.X, clips.y, groups=clips.movies)

    expected = one_by_one.held_out_
    np.testing.assert_allclose(at_once.held_out_.scores, expected.scores, atol=1e-7)
    np.testing.assert_allclose(at_once.held_out_.training_means, expected.training_means, atol=1e-7)
    losses = [candidate.inner_loss for candidate in at_once.candidates_]
    expected_losses = [candidate.inner_loss for candidate in one_by_one.candidates_]
    np.testing.assert_allclose(losses, expected_losses, atol=1e-7)
