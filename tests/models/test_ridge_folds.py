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
from tests.labelled_clips import LabelledClips

STRENGTHS = (1e-4, 1e-2, 1.0, 10.0)


N_FILMS = 8


def draw_clips_of_films(n=240, n_features=12):
    """Make features, labels and films of clips; one feature varies in one film alone, one is constant."""
    rng = np.random.default_rng(0)
    film = np.arange(n) % N_FILMS
    y = (rng.random(n) < 0.4).astype(np.int64)
    X = rng.standard_t(3.0, size=(n, n_features)) + 0.5 * y[:, None] * rng.normal(size=n_features)
    X[:, 0] = np.where(film == 0, X[:, 0], 2.0)
    X[:, 1] = 7.0
    return LabelledClips(X.astype(np.float32), y, film)


def clips_without_each_film(film):
    """Return subsets of clips that each leave out a film, [N clips, K films]: column k has all but film k."""
    return np.stack([film != left_out for left_out in range(N_FILMS)], axis=1)


def logits_of_penalties(X, y, subsets):
    """Fit each subset, a column of `subsets`, with each penalty; return the logits [N, K] of each penalty."""
    logits = []
    with one_blas_thread():
        logistic = FoldLogistic(X, y, limit=5.0)
        for C in STRENGTHS:
            blocks = logistic.minima(subsets, [C] * subsets.shape[1])
            logits.append(np.concatenate([fits.logits for fits in blocks], axis=1))
    return logits


@pytest.mark.parametrize("n_features", [12, 400], ids=["more clips", "more features"])
def test_each_fit_is_that_of_scikit_learn_on_its_own_standardised_clips(n_features):
    """Three subsets are fitted together, each with four penalties: two leave out a film, one has odd films.

    Features are standardised by the clips of the subset alone.
    """
    clips = draw_clips_of_films(n_features=n_features)
    subsets = [clips.movies != 0, clips.movies != 3, clips.movies % 2 == 1]

    logits_by_penalty = logits_of_penalties(clips.X, clips.y, np.stack(subsets, axis=1))

    for number, in_subset in enumerate(subsets):
        standardised = ClippedScaler().fit(clips.X[in_subset]).transform(clips.X)
        for C, logits in zip(STRENGTHS, logits_by_penalty, strict=True):
            reference = LogisticRegression(C=C, tol=1e-10, max_iter=100_000)
            reference.fit(standardised[in_subset], clips.y[in_subset])
            expected = reference.decision_function(standardised)
            np.testing.assert_allclose(logits[:, number], expected, atol=2e-5 * np.abs(expected).max())


def test_a_model_that_is_fitted_together_with_those_of_other_subsets_of_clips_is_the_one_fitted_alone():
    """Eight models are fitted together, each on the clips of all films but one, as in leaving films out.

    The one without film 2 is also fitted alone, on data that have no other clips than its own. With each
    penalty, both must score these clips alike. A fit that let the subsets mix would score them otherwise.
    """
    left_out = 2
    clips = draw_clips_of_films()
    in_subset = clips.movies != left_out
    only_subset = np.ones((in_subset.sum(), 1), dtype=bool)  # one subset, of all clips that there are

    fitted_together = logits_of_penalties(clips.X, clips.y, clips_without_each_film(clips.movies))
    fitted_alone = logits_of_penalties(clips.X[in_subset], clips.y[in_subset], only_subset)

    for logits, logits_alone in zip(fitted_together, fitted_alone, strict=True):  # of each penalty
        tolerance = 1e-6 * np.abs(logits).max()
        np.testing.assert_allclose(logits[in_subset, left_out], logits_alone[:, 0], atol=tolerance)


def test_fits_in_several_blocks_are_those_in_one(monkeypatch):
    """The eight subsets of clips that lack one film are fitted five times each: 40 fits.

    They are fitted together, in one block, and then in blocks of the smallest width, of which 40 fits need
    several. The logits must be the same but for rounding.
    """
    clips = draw_clips_of_films()
    subsets = np.tile(clips_without_each_film(clips.movies), 5)
    n_fits = subsets.shape[1]
    smallest_block = ridge_folds.WIDTH
    assert n_fits > smallest_block
    in_one_block = logits_of_penalties(clips.X, clips.y, subsets)

    monkeypatch.setattr(ridge_folds, "MAX_FITS", smallest_block)
    in_blocks = logits_of_penalties(clips.X, clips.y, subsets)

    for expected, logits in zip(in_one_block, in_blocks, strict=True):  # of each penalty
        np.testing.assert_allclose(logits, expected, atol=1e-6 * np.abs(expected).max())


def training_sets_without_each_film(y, film):
    """The rows of all clips but one film's, divided into inner folds, for each film."""
    training_sets = []
    for left_out in range(N_FILMS):
        rows = np.flatnonzero(film != left_out)
        training_sets.append(TrainingSet(rows, inner_folds(y[rows], film[rows])))
    return training_sets


def test_a_training_set_searched_among_others_gets_what_it_gets_alone():
    """A penalty is chosen for several training sets, each without one film, in one search for speed.

    The choice among penalties, and the scores, are those of a search on one training set alone.
    """
    clips = draw_clips_of_films()
    training_sets = training_sets_without_each_film(clips.y, clips.movies)

    results = list(search_probes(linear_probe(), PENALTIES, clips.X, clips.y, training_sets))

    for training_set, result in zip(training_sets, results, strict=True):
        rows = training_set.rows
        alone = GroupedSelection(linear_probe(), PENALTIES).fit(
            clips.X[rows], clips.y[rows], groups=clips.movies[rows]
        )
        assert result.estimator[-1].C == alone.estimator_[-1].C
        is_chosen = [candidate.chosen for candidate in result.candidates]
        assert is_chosen == [candidate.chosen for candidate in alone.candidates_]
        scores = result.estimator.decision_function(clips.X)
        expected = alone.decision_function(clips.X)
        np.testing.assert_allclose(scores, expected, atol=1e-6 * np.abs(expected).max())


def features_with_one_feature_of_huge_variance(seed, offset):
    """60 clips of four films, [60, 4] and [60]: all features are far from 0 by an offset.

    Of the last feature nearly all of the variance is film 0's.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 4)) + offset
    film = rng.integers(0, 4, 60)
    X[film == 0, 3] += 1e6
    return X, film


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), offset=st.sampled_from([0.0, 1e3, 1e7]))
def test_mean_and_deviation_without_each_film_are_exact(seed, offset):
    """Mean and deviation of features without each of four films are computed from sums, by two functions.

    Differences of such sums lose digits where features are far from 0, or where nearly all of the variance is
    one film's. The results must be those of the remaining clips alone (`mean_and_scale`).
    """
    X, film = features_with_one_feature_of_huge_variance(seed, offset)
    rows_of_films = [np.flatnonzero(film == left_out) for left_out in range(4)]
    is_in_subset = np.stack([film != left_out for left_out in range(4)], axis=1)

    without_groups = mean_and_scale_without_groups(X, rows_of_films)
    of_subsets = mean_and_scale_of_subsets(X, is_in_subset)

    for left_out in range(4):
        mean, scale = mean_and_scale(X[film != left_out])
        for computed in (without_groups, of_subsets):
            np.testing.assert_allclose(computed.mean[left_out], mean, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(computed.scale[left_out], scale, rtol=1e-5)


def test_fitting_subsets_together_takes_less_than_a_third_of_the_steps():
    """Four penalties are fitted on 32 subsets: those that lack one of eight films, four times each.

    A step of all fits together reads the features once, as a step of one fit does. With one penalty, the
    slowest fit decides how many steps there are. One by one, each fit would take ten steps at the least.
    """
    clips = draw_clips_of_films(n=400, n_features=30)
    subsets = np.tile(clips_without_each_film(clips.movies), 4)
    n_subsets = subsets.shape[1]
    assert n_subsets == 32
    n_steps = 0
    with one_blas_thread():
        logistic = FoldLogistic(clips.X, clips.y, limit=5.0)
        for C in STRENGTHS:
            blocks = logistic.minima(subsets, [C] * n_subsets)
            n_steps += max(fits.n_steps.max() for fits in blocks)

    assert len(STRENGTHS) == 4
    min_n_steps_one_by_one = n_subsets * len(STRENGTHS) * 10
    assert n_steps < min_n_steps_one_by_one / 3
