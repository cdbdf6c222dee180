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


N_FILMS = 8


def corpus(n=240, n_features=12):
    """Make features, labels and films of clips; one feature varies in one film alone, one is constant."""
    rng = np.random.default_rng(0)
    film = np.arange(n) % N_FILMS
    y = (rng.random(n) < 0.4).astype(np.int64)
    X = rng.standard_t(3.0, size=(n, n_features)) + 0.5 * y[:, None] * rng.normal(size=n_features)
    X[:, 0] = np.where(film == 0, X[:, 0], 2.0)
    X[:, 1] = 7.0
    return X.astype(np.float32), y, film


def clips_without_each_film(film):
    """Return one column for each film, which is true for the clips of the other films."""
    return np.stack([film != left_out for left_out in range(N_FILMS)], axis=1)


def logits_of_penalties(X, y, subsets):
    """Fit each subset, a column of `subsets`, with each penalty; return the logits [N, K] of each penalty."""
    logits = []
    with one_blas_thread():
        logistic = FoldLogistic(X, y, 5.0)
        for C in STRENGTHS:
            blocks = logistic.minima(subsets, [C] * subsets.shape[1])
            logits.append(np.concatenate([fits.logits for fits in blocks], axis=1))
    return logits


@pytest.mark.parametrize("n_features", [12, 400], ids=["more clips", "more features"])
def test_each_fit_is_that_of_scikit_learn_on_its_own_standardised_clips(n_features):
    X, y, film = corpus(n_features=n_features)
    subsets = np.stack([film != 0, film != 3, film % 2 == 1], axis=1)
    logits_by_penalty = logits_of_penalties(X, y, subsets)
    for subset, inside in enumerate(subsets.T):
        standardised = ClippedScaler().fit(X[inside]).transform(X)
        for C, logits in zip(STRENGTHS, logits_by_penalty, strict=True):
            reference = LogisticRegression(C=C, tol=1e-10, max_iter=100_000)
            reference.fit(standardised[inside], y[inside])
            expected = reference.decision_function(standardised)
            np.testing.assert_allclose(logits[:, subset], expected, atol=2e-5 * np.abs(expected).max())


def test_a_fit_on_the_clips_of_a_subset_alone_is_the_one_among_other_subsets():
    X, y, film = corpus()
    together = logits_of_penalties(X, y, clips_without_each_film(film))
    inside = film != 2
    all_of_them = np.ones((inside.sum(), 1), dtype=bool)
    alone = logits_of_penalties(X[inside], y[inside], all_of_them)
    for logits_together, logits_alone in zip(together, alone, strict=True):
        tolerance = 1e-6 * np.abs(logits_together).max()
        np.testing.assert_allclose(logits_together[inside, 2], logits_alone[:, 0], atol=tolerance)


def test_fits_in_several_blocks_are_those_in_one(monkeypatch):
    X, y, film = corpus()
    five_times_each = np.tile(clips_without_each_film(film), 5)
    in_one_block = logits_of_penalties(X, y, five_times_each)
    monkeypatch.setattr(ridge_folds, "MOST_FITS", ridge_folds.WIDTH)
    assert five_times_each.shape[1] > ridge_folds.WIDTH
    in_blocks = logits_of_penalties(X, y, five_times_each)
    for expected, logits in zip(in_one_block, in_blocks, strict=True):
        np.testing.assert_allclose(logits, expected, atol=1e-6 * np.abs(expected).max())


def test_a_training_set_searched_among_others_gets_what_it_gets_alone():
    """Several training sets share their products of matrices for speed.

    Penalty and scores must not depend on that.
    """
    X, y, film = corpus()
    training_sets = []
    for left_out in range(N_FILMS):
        rows = np.flatnonzero(film != left_out)
        training_sets.append(TrainingSet(rows, inner_folds(y[rows], film[rows])))
    chosen_of_sets = list(search_probes(linear_probe(), PENALTIES, X, y, training_sets))
    for training_set, chosen in zip(training_sets, chosen_of_sets, strict=True):
        rows = training_set.rows
        alone = GroupedSelection(linear_probe(), PENALTIES).fit(X[rows], y[rows], groups=film[rows])
        assert chosen.estimator[-1].C == alone.estimator_[-1].C
        expected = alone.decision_function(X)
        scores = chosen.estimator.decision_function(X)
        np.testing.assert_allclose(scores, expected, atol=1e-6 * np.abs(expected).max())
        is_chosen = [candidate.chosen for candidate in chosen.candidates]
        assert is_chosen == [candidate.chosen for candidate in alone.candidates_]


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), offset=st.sampled_from([0.0, 1e3, 1e7]))
def test_mean_and_deviation_without_each_film_are_exact(seed, offset):
    """They are computed from sums over films, which must not lose digits where features are far from 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 4)) + offset
    film = rng.integers(0, 4, 60)
    X[film == 0, 3] += 1e6  # nearly all of the variance is one film's
    films = range(4)
    without_groups = mean_and_scale_without_groups(X, [np.flatnonzero(film == out) for out in films])
    of_subsets = mean_and_scale_of_subsets(X, np.stack([film != out for out in films], axis=1))
    for left_out in films:
        mean, scale = mean_and_scale(X[film != left_out])
        for computed in (without_groups, of_subsets):
            np.testing.assert_allclose(computed.mean[left_out], mean, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(computed.scale[left_out], scale, rtol=1e-5)


def test_fitting_subsets_together_takes_a_third_of_the_steps():
    """A step of all fits together reads the features once, as a step of one fit does."""
    X, y, film = corpus(n=400, n_features=30)
    subsets = np.tile(clips_without_each_film(film), 4)
    n_fits = subsets.shape[1]
    n_steps = 0
    with one_blas_thread():
        logistic = FoldLogistic(X, y, 5.0)
        for C in STRENGTHS:
            blocks = logistic.minima(subsets, [C] * n_fits)
            n_steps += max(fits.n_steps.max() for fits in blocks)
    least_steps_of_a_fit = 10
    n_steps_one_by_one = n_fits * len(STRENGTHS) * least_steps_of_a_fit

    assert n_steps < n_steps_one_by_one / 3
