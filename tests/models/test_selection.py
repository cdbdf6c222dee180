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


@parametrize_with_checks(
    [
        GroupedSelection(linear_probe()),
        GroupedSelection(LogisticRegression(), Threshold()),
        GroupedSelection(LogisticRegression(), Grid("C", (0.1, 1.0))),
    ]
)
def test_a_selection_keeps_the_conventions_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def clips(make_planted):
    data = make_planted(direction=3.0, film=1.0)
    return data.X, (data.levels == "S").astype(np.int64), data.movies


CHOICES = {
    "threshold": (LinearSVC(), Threshold()),
    "grid": (LogisticRegression(), Grid("C", (0.01, 1.0))),
    "epochs": (MLPProbe(8, max_epochs=20, learning_rate=0.01), EarlyStopping()),
}


class Watcher(ClassifierMixin, BaseEstimator):
    """Remember which movies, the last column of X, each instance is trained and scored on."""

    seen: list = []  # noqa: RUF012  shared by all clones on purpose

    def fit(self, X, y, X_val=None, y_val=None):
        del y, y_val
        self.classes_ = np.array([0, 1])
        self.trained_ = set(X[:, -1])
        self.n_epochs_ = 1
        if X_val is not None:
            Watcher.seen.append((self.trained_, set(X_val[:, -1])))
        return self

    def decision_function(self, X):
        Watcher.seen.append((self.trained_, set(X[:, -1])))
        return X[:, 0].astype(np.float64)

    def set_params(self, **params):
        del params
        return self


@pytest.mark.parametrize(
    ("choose", "times_held_out"),
    [(Threshold(), 1), (Grid("nothing", (1, 2)), 2), (EarlyStopping(), 2)],
    ids=["threshold", "grid of two values", "early stopping, which also scores"],
)
def test_whole_movies_are_held_out(clips, choose, times_held_out):
    X, y, movies = clips
    movie_numbers = np.unique(movies, return_inverse=True)[1]
    Watcher.seen.clear()
    GroupedSelection(Watcher(), choose).fit(np.column_stack([X, movie_numbers]), y, groups=movies)
    # Clips trained on are scored as well, for the mean of their scores alone.
    held_out = [(trained, scored) for trained, scored in Watcher.seen if not scored <= trained]
    n_folds = 4
    assert len(held_out) == n_folds * times_held_out
    for trained, scored in held_out:
        assert not trained & scored
        assert trained | scored == set(range(6))


@pytest.mark.parametrize("name", CHOICES)
def test_inner_models_can_not_learn_from_the_labels_of_the_movies_held_out(clips, name):
    X, y, movies = clips
    estimator, choose = CHOICES[name]
    # One value and one epoch, as held-out labels may choose between several.
    if name == "grid":
        choose = Grid("C", (1.0,))
    if name == "epochs":
        estimator = MLPProbe(8, max_epochs=1)
    held_out = inner_folds(y, movies) == 2
    # Reversed inside each of its movies, the labels are dealt into the same folds.
    misleading = y.copy()
    for movie in np.unique(movies[held_out]):
        misleading[movies == movie] = y[movies == movie][::-1]
    assert (misleading != y).any()
    right = GroupedSelection(estimator, choose).fit(X, y, groups=movies).held_out_.scores
    misled = GroupedSelection(estimator, choose).fit(X, misleading, groups=movies).held_out_.scores
    assert np.array_equal(right[held_out], misled[held_out])
    assert not np.array_equal(right[~held_out], misled[~held_out])


@pytest.mark.parametrize("name", CHOICES)
def test_the_threshold_is_the_best_of_the_held_out_scores_and_the_model_is_of_all_clips(clips, name):
    X, y, movies = clips
    selection = GroupedSelection(*CHOICES[name]).fit(X, y, groups=movies)
    assert selection.held_out_.scores.shape == y.shape
    assert selection.threshold_ == best_threshold(y, selection.held_out_.scores)
    reaches_threshold = selection.decision_function(X) >= selection.threshold_
    assert np.array_equal(selection.predict(X) == 1, reaches_threshold)
    assert f1_pos(y, reaches_threshold) > 0.7
    assert selection.predict_proba(X).sum(axis=1) == pytest.approx(1)


def test_a_grid_takes_the_value_of_the_lowest_loss(clips):
    X, y, movies = clips
    selection = GroupedSelection(LogisticRegression(), Grid("C", (1e-6, 0.1, 10.0)))
    selection.fit(X, y, groups=movies)
    assert [candidate.name for candidate in selection.candidates_] == ["C=1e-06", "C=0.1", "C=10"]
    (chosen,) = [candidate for candidate in selection.candidates_ if candidate.chosen]
    assert chosen.inner_loss == min(candidate.inner_loss for candidate in selection.candidates_)
    assert chosen.inner_loss == log_loss(y, selection.held_out_.scores)
    assert chosen.name == f"C={selection.estimator_.C:g}"


def test_a_grid_takes_of_equal_losses_the_first(clips):
    _, y, movies = clips
    tree = DecisionTreeClassifier(random_state=0)
    selection = GroupedSelection(tree, Grid("max_depth", (3, 2, 1)))
    # The feature is the label, so that a tree of any depth knows it.
    selection.fit(y[:, None], y, groups=movies)
    assert selection.estimator_.max_depth == 3


class Together(LogisticRegression):
    """Fits its candidates at once."""

    @staticmethod
    def fit_together(models, X, y):
        Together.strengths = [model.C for model in models]
        for model in models:
            LogisticRegression.fit(model, X, y)


def test_an_estimator_may_fit_the_candidates_of_a_grid_together(clips):
    X, y, movies = clips
    values = (0.01, 0.1, 1.0)

    def selected(head):
        grid = Grid(f"{type(head).__name__.lower()}__C", values)
        return GroupedSelection(make_pipeline(ClippedScaler(), head), grid).fit(X, y, groups=movies)

    one_by_one = selected(LogisticRegression())
    together = selected(Together())
    assert tuple(Together.strengths) == values
    assert together.candidates_ == one_by_one.candidates_
    np.testing.assert_array_equal(together.held_out_.scores, one_by_one.held_out_.scores)


def test_candidates_are_not_fitted_together_where_fit_takes_more_than_clips(clips):
    """The method for all candidates could not be given the weights."""
    X, y, movies = clips
    Together.strengths = []
    selection = GroupedSelection(Together(), Grid("C", (0.1, 1.0)))
    selection.fit(X, y, groups=movies, sample_weight=np.ones(len(y)))
    assert not Together.strengths


def test_early_stopping_keeps_the_median_epoch_of_streams_of_their_own(clips):
    X, y, movies = clips
    selection = GroupedSelection(*CHOICES["epochs"]).fit(X, y, groups=movies)
    assert len(selection.curves_) == 4
    for curve in selection.curves_:
        assert curve.kept == np.argmin(curve.validation_loss) + 1
    epochs = int(np.ceil(np.median([curve.kept for curve in selection.curves_])))
    assert selection.candidates_[0].name == f"max_epochs={epochs}"
    # The kept model is the probe trained for so many epochs on all clips.
    assert selection.estimator_.n_epochs_ == epochs
    alone = MLPProbe(8, max_epochs=epochs, learning_rate=0.01).fit(X, y)
    assert alone.parameters_.tobytes() == selection.estimator_.parameters_.tobytes()


def test_without_movies_nothing_is_chosen(clips):
    X, y, movies = clips
    selection = GroupedSelection(LogisticRegression(C=0.3), Grid("C", (1.0, 2.0)))
    selection.fit(X, y, groups=movies)
    selection.fit(X, y)
    assert not hasattr(selection, "held_out_")
    assert selection.candidates_ == ()
    assert selection.estimator_.C == 0.3
    assert np.array_equal(selection.predict(X), selection.estimator_.predict(X))


def test_arrays_for_the_estimators_fit_are_cut_to_the_clips_of_each_fold(clips):
    X, y, movies = clips
    weights = np.where(y == 1, 3.0, 1.0)
    weighted = GroupedSelection(LogisticRegression()).fit(X, y, groups=movies, sample_weight=weights)
    expected = LogisticRegression().fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(weighted.decision_function(X), expected.decision_function(X))
    # Positive clips weigh more in every fold, so that held-out scores are higher, too.
    plain = GroupedSelection(LogisticRegression()).fit(X, y, groups=movies)
    assert weighted.held_out_.scores.mean() > plain.held_out_.scores.mean()


class Silent(BaseEstimator):
    def fit(self, X, y):
        del X, y
        return self


class Undefined(DummyClassifier):
    def predict_proba(self, X):
        return np.full((len(X), 2), np.nan)


def test_clips_of_one_movie_are_refused(clips):
    X, y, _ = clips
    with pytest.raises(ProtocolError, match="2 training movies"):
        GroupedSelection(LogisticRegression()).fit(X, y, groups=["one"] * len(y))


def test_clips_of_one_class_are_refused(clips):
    X, y, movies = clips
    with pytest.raises(ValueError, match="one class: 0"):
        GroupedSelection(LogisticRegression()).fit(X, np.zeros_like(y), groups=movies)


@pytest.mark.parametrize(("estimator", "words"), [(Silent(), "Silent"), (Undefined(), "not finite")])
def test_an_estimator_without_finite_scores_is_refused(clips, estimator, words):
    X, y, movies = clips
    with pytest.raises(ValueError, match=words):
        GroupedSelection(estimator).fit(X, y, groups=movies)


def test_it_asks_for_movies_by_the_rules_of_metadata_routing():
    with config_context(enable_metadata_routing=True):
        model = GroupedSelection(LogisticRegression()).set_fit_request(groups=True)
        assert model.get_metadata_routing().consumes("fit", {"groups"}) == {"groups"}
