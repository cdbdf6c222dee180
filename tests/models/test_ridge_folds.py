"""Fits of all folds in one product: each is the fit on its own clips alone, and as scikit-learn has it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from obygaze_models.blas import one_blas_thread
from obygaze_models.models import GroupedSelection, linear_probe, ridge_folds
from obygaze_models.models.linear import PENALTIES
from obygaze_models.models.probe_search import TrainingSet, search_probes
from obygaze_models.models.ridge_folds import FoldLogistic
from obygaze_models.models.scaling import (
    ClippedScaler,
    mean_and_scale,
    mean_and_scale_of_subsets,
    mean_and_scale_without_groups,
)
from obygaze_models.protocol.selection import inner_folds

STRENGTHS = (1e-4, 1e-2, 1.0, 10.0)


def corpus(n=240, d=12, *, tails=3.0, seed=0):
    """Clips of 8 films with heavy tails; one feature varies in one film alone, one is constant."""
    rng = np.random.default_rng(seed)
    film = np.arange(n) % 8
    y = (rng.random(n) < 0.4).astype(np.int64)
    X = rng.standard_t(tails, size=(n, d)) + 0.5 * y[:, None] * rng.normal(size=d)
    X[:, 0] = np.where(film == 0, X[:, 0], 2.0)
    X[:, 1] = 7.0
    return X.astype(np.float32), y, film


def logits_of_penalties(X, y, subsets):
    """Fit all subsets with each penalty, and return the logits [N, K] of each penalty."""
    logits = []
    with one_blas_thread():
        logistic = FoldLogistic(X, y, 5.0)
        for C in STRENGTHS:
            blocks = logistic.minima(subsets, [C] * subsets.shape[1])
            logits.append(np.concatenate([fits.logits for fits in blocks], axis=1))
    return logits


@pytest.mark.parametrize("d", [12, 400])
def test_each_fit_is_that_of_scikit_learn_on_its_own_standardised_clips(d):
    X, y, film = corpus(d=d)
    subsets = np.stack([film != 0, film != 3, film % 2 == 1], axis=1)
    logits_by_penalty = logits_of_penalties(X, y, subsets)
    for subset, inside in enumerate(subsets.T):
        standardised = ClippedScaler().fit(X[inside]).transform(X)
        for C, logits in zip(STRENGTHS, logits_by_penalty, strict=True):
            reference = LogisticRegression(C=C, tol=1e-10, max_iter=100_000)
            reference.fit(standardised[inside], y[inside])
            expected = reference.decision_function(standardised)
            np.testing.assert_allclose(logits[:, subset], expected, atol=2e-5 * np.abs(expected).max())


def test_a_fit_alone_and_among_others_agree_and_blocks_change_nothing(monkeypatch):
    X, y, film = corpus()
    subsets = np.stack([film != out for out in range(8)] * 5, axis=1)
    together = logits_of_penalties(X, y, subsets)
    monkeypatch.setattr(ridge_folds, "MOST_FITS", ridge_folds.WIDTH)
    in_blocks = logits_of_penalties(X, y, subsets)
    inside = film != 2
    alone = logits_of_penalties(X[inside], y[inside], np.ones((inside.sum(), 1), dtype=bool))
    for penalty in range(len(STRENGTHS)):
        tolerance = 1e-6 * np.abs(together[penalty]).max()
        np.testing.assert_allclose(together[penalty], in_blocks[penalty], atol=tolerance)
        np.testing.assert_allclose(together[penalty][inside, 2], alone[penalty][:, 0], atol=tolerance)


def test_a_side_among_others_chooses_as_it_does_alone():
    X, y, film = corpus()
    sides = []
    for out in range(8):
        rows = np.flatnonzero(film != out)
        sides.append(TrainingSet(rows, inner_folds(y[rows], film[rows])))
    chosen_of_sides = list(search_probes(linear_probe(), PENALTIES, X, y, sides))
    for side, chosen in zip(sides, chosen_of_sides, strict=True):
        rows = side.rows
        alone = GroupedSelection(linear_probe(), PENALTIES).fit(X[rows], y[rows], groups=film[rows])
        assert chosen.estimator[-1].C == alone.estimator_[-1].C
        expected = alone.decision_function(X)
        scores = chosen.estimator.decision_function(X)
        np.testing.assert_allclose(scores, expected, atol=1e-6 * np.abs(expected).max())
        is_chosen = [candidate.chosen for candidate in chosen.candidates]
        assert is_chosen == [candidate.chosen for candidate in alone.candidates_]


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e3, 1e7]))
def test_moments_of_subsets_and_without_groups_are_those_of_the_rows_alone(seed, far):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 4)) + far
    film = rng.integers(0, 4, 60)
    X[film == 0, 3] += 1e6  # nearly all of the variance is one film's
    groups = [np.flatnonzero(film == number) for number in range(4)]
    inside = np.stack([film != number for number in range(4)], axis=1)
    without = mean_and_scale_without_groups(X, groups)
    subsets = mean_and_scale_of_subsets(X, inside)
    for number in range(4):
        mean, scale = mean_and_scale(X[inside[:, number]])
        for computed in (without, subsets):
            np.testing.assert_allclose(computed.mean[number], mean, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(computed.scale[number], scale, rtol=1e-5)


def test_all_folds_cost_less_than_a_third_of_as_many_fits_one_after_the_other():
    """Counted in steps of all fits together, each of which reads the features once."""
    X, y, film = corpus(n=400, d=30)
    subsets = np.stack([film != out for out in range(8)] * 4, axis=1)
    n_steps = 0
    with one_blas_thread():
        logistic = FoldLogistic(X, y, 5.0)
        for C in STRENGTHS:
            blocks = logistic.minima(subsets, [C] * subsets.shape[1])
            n_steps += max(fits.n_steps.max() for fits in blocks)
    # A fit alone takes ten steps at least.
    n_steps_one_by_one = 32 * len(STRENGTHS) * 10
    assert n_steps < n_steps_one_by_one / 3
