"""One selection for all models: whole movies held out, and their labels out of reach."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.metrics import f1_pos
from obygaze_models.models import EarlyStopping, Grid, GroupedSelection, MLPProbe, Threshold, linear_probe
from obygaze_models.models.choices import log_loss
from obygaze_models.models.scaling import ClippedScaler
from obygaze_models.protocol import best_threshold, inner_folds
from tests.labelled_clips import LabelledClips


@parametrize_with_checks(
    [
        GroupedSelection(linear_probe()),
        GroupedSelection(LogisticRegression(), Threshold()),
        GroupedSelection(LogisticRegression(), Grid("C", (0.1, 1.0))),
    ]
)
def test_a_selection_keeps_the_conventions_of_scikit_learn(estimator, check):
    """Each check of scikit-learn runs on selections that choose a penalty, a threshold alone, and a grid."""
    check(estimator)


@pytest.fixture(scope="module")
def clips(make_synthetic_data):
    """Features, labels (1 for S) and movies of 240 clips of six movies; S clips lie along one direction."""
    data = make_synthetic_data(direction=3.0, film=1.0)
    return LabelledClips(data.X, (data.levels == "S").astype(np.int64), data.movies)


ESTIMATOR_AND_CHOICE = {
    "threshold": (LinearSVC(), Threshold()),
    "grid": (LogisticRegression(), Grid("C", (0.01, 1.0))),
    "epochs": (MLPProbe(n_hidden=8, max_epochs=20, learning_rate=0.01), EarlyStopping()),
}


class MovieRecorder(ClassifierMixin, BaseEstimator):
    """Record the movies, in the last column of X, that each instance was trained on and then scored."""

    trained_and_scored: list = []  # noqa: RUF012  shared by all clones on purpose

    def fit(self, X, y, X_val=None, y_val=None):
        del y, y_val
        self.classes_ = np.array([0, 1])
        self.trained_ = set(X[:, -1])
        self.n_epochs_ = 1
        if X_val is not None:
            MovieRecorder.trained_and_scored.append((self.trained_, set(X_val[:, -1])))
        return self

    def decision_function(self, X):
        MovieRecorder.trained_and_scored.append((self.trained_, set(X[:, -1])))
        return X[:, 0].astype(np.float64)

    def set_params(self, **params):
        del params
        return self


@pytest.mark.parametrize(
    ("choose", "n_scorings_of_fold"),
    [(Threshold(), 1), (Grid("a_parameter", (1, 2)), 2), (EarlyStopping(), 2)],
    ids=["threshold", "grid of two values", "early stopping, which validates and scores"],
)
def test_each_inner_model_is_trained_on_whole_movies_and_scores_all_other_movies(
    clips, choose, n_scorings_of_fold
):
    """To choose a setting, clips of movies 0 to 5 are divided into 4 inner folds, each scored by a model.

    The estimator records the movies that it is trained on and scores: it finds the number of a clip's movie
    in the last column of X. (It also scores its own training movies, to know the mean of those scores.)
    """
    movie_numbers = np.unique(clips.movies, return_inverse=True)[1]
    X_with_movies = np.column_stack([clips.X, movie_numbers])
    MovieRecorder.trained_and_scored.clear()

    GroupedSelection(MovieRecorder(), choose).fit(X_with_movies, clips.y, groups=clips.movies)

    n_scorings_of_others = 0
    for trained, scored in MovieRecorder.trained_and_scored:
        are_own_training_movies = scored.issubset(trained)
        if are_own_training_movies:
            continue
        n_scorings_of_others += 1
        assert trained.isdisjoint(scored)
        assert trained | scored == {0, 1, 2, 3, 4, 5}
    assert n_scorings_of_others == 4 * n_scorings_of_fold


def with_labels_reversed_in_each_movie(y, movies, in_fold):
    """Reverse the order of labels in each movie of a fold.

    So they are as many of each class, and the division into folds, which looks at them, stays the same.
    """
    changed_labels = y.copy()
    for movie in np.unique(movies[in_fold]):
        changed_labels[movies == movie] = y[movies == movie][::-1]
    assert (changed_labels != y).any()
    return changed_labels


@pytest.mark.parametrize(
    ("estimator", "choose"),
    [
        (LinearSVC(), Threshold()),
        # Of one value and one epoch: between several, the labels held out may choose.
        (LogisticRegression(), Grid("C", (1.0,))),
        (MLPProbe(n_hidden=8, max_epochs=1), EarlyStopping()),
    ],
    ids=["threshold", "grid", "epochs"],
)
def test_inner_models_can_not_learn_from_the_labels_of_the_movies_held_out(clips, estimator, choose):
    """Movies are divided into folds; the clips of a fold are scored by a model of the other folds.

    Labels of the movies of fold 2 are changed: the scores of these movies stay the same, and those of the
    others, whose models are trained on them, change.
    """
    in_fold_2 = inner_folds(clips.y, clips.movies) == 2
    changed_labels = with_labels_reversed_in_each_movie(clips.y, clips.movies, in_fold_2)

    selection = GroupedSelection(estimator, choose).fit(clips.X, clips.y, groups=clips.movies)
    scores = selection.held_out_.scores
    selection_of_changed_labels = GroupedSelection(estimator, choose).fit(
        clips.X, changed_labels, groups=clips.movies
    )
    scores_of_changed_labels = selection_of_changed_labels.held_out_.scores

    assert np.array_equal(scores[in_fold_2], scores_of_changed_labels[in_fold_2])
    assert not np.array_equal(scores[~in_fold_2], scores_of_changed_labels[~in_fold_2])


@pytest.mark.parametrize("name", ESTIMATOR_AND_CHOICE)
def test_the_threshold_is_the_best_for_held_out_scores(clips, name):
    """It is chosen on scores of films that the model had not seen."""
    estimator, choice = ESTIMATOR_AND_CHOICE[name]

    selection = GroupedSelection(estimator, choice).fit(clips.X, clips.y, groups=clips.movies)

    assert selection.held_out_.scores.shape == clips.y.shape
    assert selection.threshold_ == best_threshold(clips.y, selection.held_out_.scores)


@pytest.mark.parametrize("name", ESTIMATOR_AND_CHOICE)
def test_clips_that_reach_the_threshold_are_called_positive(clips, name):
    """Positive clips lie along a planted direction, so that most of these calls are right: F1 is above .7."""
    estimator, choice = ESTIMATOR_AND_CHOICE[name]
    selection = GroupedSelection(estimator, choice).fit(clips.X, clips.y, groups=clips.movies)

    calls = selection.predict(clips.X)

    reaches_threshold = selection.decision_function(clips.X) >= selection.threshold_
    assert np.array_equal(calls == 1, reaches_threshold)
    assert f1_pos(clips.y, reaches_threshold) > 0.7


@pytest.mark.parametrize("name", ESTIMATOR_AND_CHOICE)
def test_the_probabilities_of_the_two_classes_add_up_to_1(clips, name):
    """Inner folds choose a threshold for an SVM, a penalty for a regression, or the epochs of a perceptron.

    Whatever was chosen, each clip has probabilities of the negative and the positive class.
    """
    estimator, choice = ESTIMATOR_AND_CHOICE[name]
    selection = GroupedSelection(estimator, choice).fit(clips.X, clips.y, groups=clips.movies)

    assert selection.predict_proba(clips.X).sum(axis=1) == pytest.approx(1)


def test_a_grid_takes_the_value_of_the_lowest_loss(clips):
    """The inner loss of a candidate is the loss of its scores of held-out movies."""
    selection = GroupedSelection(LogisticRegression(), Grid("C", (1e-6, 0.1, 10.0)))

    selection.fit(clips.X, clips.y, groups=clips.movies)

    assert [candidate.name for candidate in selection.candidates_] == ["C=1e-06", "C=0.1", "C=10"]
    (chosen,) = [candidate for candidate in selection.candidates_ if candidate.chosen]
    assert chosen.inner_loss == min(candidate.inner_loss for candidate in selection.candidates_)
    assert chosen.inner_loss == log_loss(clips.y, selection.held_out_.scores)
    assert chosen.name == f"C={selection.estimator_.C:g}"


def test_a_grid_takes_the_first_of_values_of_equal_loss(clips):
    """The only feature is the label itself, so that trees of depth 3, 2 and 1 make the same, no, errors."""
    selection = GroupedSelection(DecisionTreeClassifier(random_state=0), Grid("max_depth", (3, 2, 1)))

    selection.fit(clips.y[:, None], clips.y, groups=clips.movies)

    assert selection.estimator_.max_depth == 3


class RegressionFittedTogether(LogisticRegression):
    """A logistic regression that has a method for all candidates, which records their values of C."""

    strengths_fitted_together: list = []  # noqa: RUF012  of all instances

    @staticmethod
    def fit_together(models, X, y):
        RegressionFittedTogether.strengths_fitted_together = [model.C for model in models]
        for model in models:
            LogisticRegression.fit(model, X, y)


def test_candidates_fitted_together_give_the_same_choice(clips):
    """One estimator has the method `fit_together`, which fits all values of C at once and records them.

    The other, scikit-learn's, is fitted once for each value of C.
    """
    values = (0.01, 0.1, 1.0)
    with_method = make_pipeline(ClippedScaler(), RegressionFittedTogether())
    without_method = make_pipeline(ClippedScaler(), LogisticRegression())
    together = GroupedSelection(with_method, Grid("regressionfittedtogether__C", values))
    one_by_one = GroupedSelection(without_method, Grid("logisticregression__C", values))

    together.fit(clips.X, clips.y, groups=clips.movies)
    one_by_one.fit(clips.X, clips.y, groups=clips.movies)

    assert tuple(RegressionFittedTogether.strengths_fitted_together) == values
    assert together.candidates_ == one_by_one.candidates_
    np.testing.assert_array_equal(together.held_out_.scores, one_by_one.held_out_.scores)


def test_candidates_with_weights_of_clips_are_fitted_one_by_one(clips):
    """`fit_together` takes clips and labels alone, and could not be given the weights."""
    RegressionFittedTogether.strengths_fitted_together = []  # the values of C that it fits
    selection = GroupedSelection(RegressionFittedTogether(), Grid("C", (0.1, 1.0)))

    selection.fit(clips.X, clips.y, groups=clips.movies, sample_weight=np.ones(len(clips.y)))

    assert RegressionFittedTogether.strengths_fitted_together == []


def test_early_stopping_trains_for_the_median_of_the_best_epochs_of_the_folds(clips):
    """There are four inner folds; the best epoch of one has the lowest loss on its held-out movies."""
    probe = MLPProbe(n_hidden=8, max_epochs=20, learning_rate=0.01)

    selection = GroupedSelection(probe, EarlyStopping()).fit(clips.X, clips.y, groups=clips.movies)

    best_epochs = [np.argmin(curve.validation_loss) + 1 for curve in selection.curves_]
    assert len(best_epochs) == 4
    median_rounded_up = int(np.ceil(np.median(best_epochs)))
    assert selection.candidates_[0].name == f"max_epochs={median_rounded_up}"
    assert selection.estimator_.n_epochs_ == median_rounded_up


def test_early_stopping_gives_the_network_that_is_trained_on_all_clips_for_the_chosen_epochs(clips):
    """Folds only choose the number of epochs; the same network comes of training for that number at once."""
    probe = MLPProbe(n_hidden=8, max_epochs=20, learning_rate=0.01)

    selection = GroupedSelection(probe, EarlyStopping()).fit(clips.X, clips.y, groups=clips.movies)

    n_epochs = selection.estimator_.n_epochs_
    expected = MLPProbe(n_hidden=8, max_epochs=n_epochs, learning_rate=0.01).fit(clips.X, clips.y)
    assert selection.estimator_.parameters_.tobytes() == expected.parameters_.tobytes()


def test_fitting_again_without_movies_forgets_the_former_choice(clips):
    """Without movies there are no folds, so nothing is chosen and C stays 0.3."""
    selection = GroupedSelection(LogisticRegression(C=0.3), Grid("C", (1.0, 2.0)))
    selection.fit(clips.X, clips.y, groups=clips.movies)

    selection.fit(clips.X, clips.y)

    assert not hasattr(selection, "held_out_")
    assert selection.candidates_ == ()
    assert selection.estimator_.C == 0.3
    assert np.array_equal(selection.predict(clips.X), selection.estimator_.predict(clips.X))


def test_weights_of_clips_reach_the_final_fit(clips):
    """Positive clips weigh three times as much as negative ones."""
    weights = np.where(clips.y == 1, 3.0, 1.0)

    selection = GroupedSelection(LogisticRegression()).fit(
        clips.X, clips.y, groups=clips.movies, sample_weight=weights
    )

    expected = LogisticRegression().fit(clips.X, clips.y, sample_weight=weights)
    np.testing.assert_allclose(selection.decision_function(clips.X), expected.decision_function(clips.X))


def test_weights_of_clips_reach_the_fit_of_each_fold(clips):
    """Where positive clips weigh three times as much, held-out clips get higher scores."""
    weights = np.where(clips.y == 1, 3.0, 1.0)

    weighted = GroupedSelection(LogisticRegression()).fit(
        clips.X, clips.y, groups=clips.movies, sample_weight=weights
    )
    unweighted = GroupedSelection(LogisticRegression()).fit(clips.X, clips.y, groups=clips.movies)

    assert weighted.held_out_.scores.mean() > unweighted.held_out_.scores.mean()


class WithoutScores(BaseEstimator):
    """An estimator that can be fitted and has no method that scores."""

    def fit(self, X, y):
        del X, y
        return self


class WithScoresOfNan(DummyClassifier):
    """A classifier whose probabilities are not numbers."""

    def predict_proba(self, X):
        return np.full((len(X), 2), np.nan)


def test_clips_of_one_movie_or_of_one_class_are_refused(clips):
    """Nothing can be chosen on held-out movies where there is one movie, or one class."""
    selection = GroupedSelection(LogisticRegression())

    with pytest.raises(ProtocolError, match="2 training movies"):
        selection.fit(clips.X, clips.y, groups=["one"] * len(clips.y))
    with pytest.raises(ValueError, match="one class: 0"):
        selection.fit(clips.X, np.zeros_like(clips.y), groups=clips.movies)


def test_estimators_without_finite_scores_are_refused(clips):
    """One estimator has no method that scores; the probabilities of the other are NaN."""
    with pytest.raises(ValueError, match="WithoutScores"):
        GroupedSelection(WithoutScores()).fit(clips.X, clips.y, groups=clips.movies)
    with pytest.raises(ValueError, match="not finite"):
        GroupedSelection(WithScoresOfNan()).fit(clips.X, clips.y, groups=clips.movies)


def test_scikit_learns_metadata_routing_passes_movies_to_a_selection_that_requests_them():
    """scikit-learn calls the movies `groups`; with its routing, meta-estimators pass what is requested."""
    with config_context(enable_metadata_routing=True):
        selection = GroupedSelection(LogisticRegression()).set_fit_request(groups=True)

        passed = selection.get_metadata_routing().consumes("fit", {"groups"})

        assert passed == {"groups"}
