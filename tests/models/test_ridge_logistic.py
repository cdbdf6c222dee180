"""Logistic regression with an L2 penalty has scikit-learn's minimum, in far fewer passes over the clips."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from obygaze_models.models import Grid, GroupedSelection, RidgeLogistic
from obygaze_models.models.linear import PENALTIES
from obygaze_models.models.ridge_path import NUMBERS_OF_BLOCK

STRENGTHS = PENALTIES.values


@pytest.fixture(autouse=True)
def one_thread():
    """Threads of the reference solver wait for each other where all cores are busy."""
    with threadpool_limits(limits=1):
        yield


@parametrize_with_checks([RidgeLogistic()])
def test_it_keeps_the_conventions_of_scikit_learn(estimator, check):
    """Each check of scikit-learn runs on our logistic regression."""
    check(estimator)


def draw_clips(n_clips, n_features, *, seed=0, correlated=False, prevalence=0.5):
    """Draw features and labels that depend on them a little."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_clips, n_features))
    if correlated:
        # Deviations that fall along random axes.
        axes, _ = np.linalg.qr(rng.standard_normal((n_features, n_features)))
        X = (X / np.arange(1, n_features + 1)) @ axes
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    logit = X @ rng.standard_normal(n_features) / 4 + np.log(prevalence / (1 - prevalence))
    y = (rng.random(n_clips) < expit(logit)).astype(np.int64)
    # Both classes, whatever was drawn.
    y[0] = 0
    y[1] = 1
    return X, y


def loss(model, X, y, C):
    """Compute the loss of scikit-learn's documentation, for one clip."""
    logit = X @ model.coef_[0] + model.intercept_[0]
    misfit = np.logaddexp(0, (1 - 2 * y) * logit).sum()
    penalty = (model.coef_**2).sum() / 2
    return (C * misfit + penalty) / (C * len(y))


CASES = {
    "few features": draw_clips(200, 5),
    "correlated": draw_clips(200, 30, correlated=True),
    "wide": draw_clips(40, 90),
    "wide and correlated": draw_clips(50, 200, correlated=True),
    "rare": draw_clips(500, 20, prevalence=0.03),
    "far from 0": (draw_clips(200, 5)[0] * 3 + 1e3, draw_clips(200, 5)[1]),
    "constant column": (np.column_stack([draw_clips(200, 5)[0], np.ones(200)]), draw_clips(200, 5)[1]),
    "one feature twice": (np.repeat(draw_clips(200, 5)[0], 2, axis=1), draw_clips(200, 5)[1]),
    "separable": (draw_clips(200, 5)[0], (draw_clips(200, 5)[0][:, 0] > 0).astype(np.int64)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("C", STRENGTHS)
def test_the_minimum_of_the_loss_is_the_one_that_scikit_learn_finds(case, C):
    """CASES has clips that are difficult in one respect, such as correlated features or few positive clips.

    Of features far from 0 scikit-learn's solver stops too early, so it gets them centred: the minimum stays.
    """
    X, y = CASES[case]
    centred = X - X.mean(axis=0)
    reference = LogisticRegression(C=C, tol=1e-9, max_iter=100_000).fit(centred, y)

    model = RidgeLogistic(C, tol=1e-9).fit(X, y)

    expected = reference.decision_function(centred)
    np.testing.assert_allclose(model.decision_function(X), expected, atol=2e-5, rtol=2e-5)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=2e-5)


@pytest.mark.parametrize("case", CASES)
def test_models_fitted_together_are_as_near_to_the_minimum_as_those_fitted_alone(case):
    """Models of all penalties are fitted together on clips that are difficult in one respect (CASES).

    Their loss, and that of models fitted alone, is compared with the loss of a more precise fit.
    """
    X, y = CASES[case]
    models = [RidgeLogistic(C) for C in reversed(STRENGTHS)]

    RidgeLogistic.fit_together(models, X, y)

    for model in models:
        alone = RidgeLogistic(model.C).fit(X, y)
        precise = RidgeLogistic(model.C, tol=1e-9).fit(X, y)
        min_loss = loss(precise, X, y, model.C)
        assert loss(model, X, y, model.C) - min_loss < 1e-9
        assert loss(alone, X, y, model.C) - min_loss < 1e-9
        assert model.n_features_in_ == X.shape[1]
        assert model.get_params() == alone.get_params()


def two_groups_50_apart():
    """Draw clips of which one feature tells the two classes perfectly."""
    X, _ = draw_clips(n_clips=200, n_features=5)
    y = np.arange(200) % 2
    X[:, 0] += 50 * y
    return X, y


@pytest.mark.parametrize("C", [10.0, 1e4])
@pytest.mark.parametrize(
    "clips",
    [two_groups_50_apart(), draw_clips(n_clips=60, n_features=512, prevalence=0.3)],
    ids=["two groups 50 apart", "more features than clips"],
)
def test_the_gradient_is_nearly_0_even_for_separable_clips(clips, C):
    """Where classes are separable, the loss is nearly flat far from the minimum. A solver may stop early.

    At the minimum the gradients of the clips' losses and of the penalty cancel, here to a hundredth.
    """
    X, y = clips

    model = RidgeLogistic(C).fit(X, y)

    assert (model.predict(X) == y).all()
    residuals = expit(model.decision_function(X)) - y
    gradient_of_losses = residuals @ X
    gradient_of_penalty = model.coef_[0] / C
    gradient_of_weights = gradient_of_losses + gradient_of_penalty
    assert np.linalg.norm(gradient_of_weights) < 0.01 * np.linalg.norm(gradient_of_penalty)
    gradient_of_intercept = residuals.sum()
    assert abs(gradient_of_intercept) < 0.01 * np.abs(residuals).sum()


def test_correlated_features_need_fewer_than_15_iterations_at_each_penalty():
    """The features of networks are correlated.

    scikit-learn's solver, which follows gradients, needs more iterations for one penalty than ours for all.
    """
    X, y = draw_clips(n_clips=1_000, n_features=64, correlated=True)
    models = [RidgeLogistic(C) for C in STRENGTHS]

    RidgeLogistic.fit_together(models, X, y)

    n_iterations = [model.n_iter_ for model in models]
    assert max(n_iterations) < 15
    reference = LogisticRegression(C=10.0, tol=1e-6, max_iter=10_000).fit(X, y)
    assert sum(n_iterations) < reference.n_iter_[0]


def test_the_minimum_is_the_same_where_clips_fill_two_blocks_and_a_part_of_a_third():
    """Products of matrices are computed in blocks of clips, and the last block has seven of them."""
    n_features = 512
    n_clips_of_block = NUMBERS_OF_BLOCK // n_features
    X, y = draw_clips(2 * n_clips_of_block + 7, n_features)
    reference = LogisticRegression(C=0.01, tol=1e-9, max_iter=10_000).fit(X, y)

    model = RidgeLogistic(0.01, tol=1e-9).fit(X, y)

    np.testing.assert_allclose(model.decision_function(X), reference.decision_function(X), atol=1e-5)


def choose_penalty(*values):
    """Choose among values of C on six movies of 20 clips each."""
    X, y = draw_clips(n_clips=120, n_features=20)
    movies = np.repeat(np.arange(6), 20)
    return GroupedSelection(RidgeLogistic(), Grid("C", values)).fit(X, y, groups=movies)


def test_the_chosen_penalty_gives_the_same_bytes_again():
    """A penalty is chosen twice, of the values .1 and 1 of C, on the same clips of six movies."""
    first = choose_penalty(0.1, 1.0)
    again = choose_penalty(0.1, 1.0)

    np.testing.assert_array_equal(again.estimator_.coef_, first.estimator_.coef_)
    np.testing.assert_array_equal(again.held_out_.scores, first.held_out_.scores)


def test_the_chosen_penalty_gives_the_same_bytes_beside_another_candidate():
    """The other candidate, C = 1e-9, is not chosen."""
    of_two = choose_penalty(0.1, 1.0)
    of_three = choose_penalty(1e-9, 0.1, 1.0)

    np.testing.assert_array_equal(of_three.estimator_.coef_, of_two.estimator_.coef_)


def test_too_few_iterations_give_a_warning():
    """One iteration is allowed, and the fit needs more."""
    X, y = draw_clips(n_clips=60, n_features=90)

    with pytest.warns(ConvergenceWarning, match="max_iter=1 iterations"):
        RidgeLogistic(10.0, max_iter=1).fit(X, y)
