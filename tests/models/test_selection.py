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
        self.classes_, self.trained_, self.n_epochs_ = np.array([0, 1]), set(X[:, -1]), 1
        if X_val is not None:
            Watcher.seen.append((self.trained_, set(X_val[:, -1])))
        return self

    def decision_function(self, X):
        Watcher.seen.append((self.trained_, set(X[:, -1])))
        return X[:, 0].astype(np.float64)

    def set_params(self, **params):
        del params
        return self


@pytest.mark.parametrize("choose", [Threshold(), Grid("nothing", (1, 2)), EarlyStopping()])
def test_whole_movies_are_held_out(clips, choose):
    X, y, movies = clips
    numbered = np.column_stack([X, np.unique(movies, return_inverse=True)[1]])
    Watcher.seen.clear()
    GroupedSelection(Watcher(), choose).fit(numbered, y, groups=movies)
    # Those trained on are scored as well, for the mean of their scores alone.
    held_out = [(trained, scored) for trained, scored in Watcher.seen if not scored <= trained]
    assert len(held_out) == (4 if choose == Threshold() else 8)
    for trained, scored in held_out:
        assert not trained & scored
        assert trained | scored == set(range(6))


@pytest.mark.parametrize("name", CHOICES)
def test_inner_models_can_not_learn_from_the_labels_of_the_movies_held_out(clips, name):
    X, y, movies = clips
    estimator, choose = CHOICES[name]
    if name == "grid":  # one value, for held-out labels may choose between several
        choose = Grid("C", (1.0,))
    if name == "epochs":
        estimator = MLPProbe(8, max_epochs=1)
    held_out = inner_folds(y, movies) == 2
    # Reversed inside each of its movies, the labels are dealt into the same folds.
    misleading = y.copy()
    for movie in np.unique(movies[held_out]):
        misleading[movies == movie] = y[movies == movie][::-1]
    assert (misleading != y).any()
    right, misled = (
        GroupedSelection(estimator, choose).fit(X, labels, groups=movies).held_out_.scores
        for labels in (y, misleading)
    )
    assert np.array_equal(right[held_out], misled[held_out])
    assert not np.array_equal(right[~held_out], misled[~held_out])


@pytest.mark.parametrize("name", CHOICES)
def test_the_threshold_is_the_best_of_the_held_out_scores_and_the_model_is_of_all_clips(clips, name):
    X, y, movies = clips
    found = GroupedSelection(*CHOICES[name]).fit(X, y, groups=movies)
    assert found.held_out_.scores.shape == y.shape
    assert found.threshold_ == best_threshold(y, found.held_out_.scores)
    called = found.decision_function(X) >= found.threshold_
    assert np.array_equal(found.predict(X) == 1, called)
    assert f1_pos(y, called) > 0.7
    assert found.predict_proba(X).sum(axis=1) == pytest.approx(1)


def test_a_grid_takes_the_value_of_the_lowest_loss_and_of_equals_the_first(clips):
    X, y, movies = clips
    found = GroupedSelection(LogisticRegression(), Grid("C", (1e-6, 0.1, 10.0))).fit(X, y, groups=movies)
    assert [one.name for one in found.candidates_] == ["C=1e-06", "C=0.1", "C=10"]
    losses = [one.inner_loss for one in found.candidates_]
    (chosen,) = [place for place, one in enumerate(found.candidates_) if one.chosen]
    assert chosen == np.argmin(losses)
    assert f"C={found.estimator_.C:g}" == found.candidates_[chosen].name
    assert losses[chosen] == log_loss(y, found.held_out_.scores)
    depths = Grid("max_depth", (3, 2, 1))
    same = GroupedSelection(DecisionTreeClassifier(random_state=0), depths).fit(y[:, None], y, groups=movies)
    assert same.estimator_.max_depth == 3


class Together(LogisticRegression):
    """Fits its candidates at once."""

    @staticmethod
    def fit_together(models, X, y):
        Together.strengths = [model.C for model in models]
        for model in models:
            LogisticRegression.fit(model, X, y)


def test_an_estimator_may_fit_the_candidates_of_a_grid_together(clips):
    X, y, movies = clips
    values, found = (0.01, 0.1, 1.0), []
    for head in (LogisticRegression(), Together()):
        grid = Grid(f"{type(head).__name__.lower()}__C", values)
        found.append(GroupedSelection(make_pipeline(ClippedScaler(), head), grid).fit(X, y, groups=movies))
    assert tuple(Together.strengths) == values
    assert found[0].candidates_ == found[1].candidates_
    np.testing.assert_array_equal(found[0].held_out_.scores, found[1].held_out_.scores)
    Together.strengths = []
    weighted = GroupedSelection(Together(), Grid("C", values))
    weighted.fit(X, y, groups=movies, sample_weight=np.ones(len(y)))
    assert not Together.strengths  # it is not given the weights


def test_early_stopping_keeps_the_median_epoch_of_streams_of_their_own(clips):
    X, y, movies = clips
    estimator, choose = CHOICES["epochs"]
    found = GroupedSelection(estimator, choose).fit(X, y, groups=movies)
    assert len(found.curves_) == 4
    kept = [curve.kept for curve in found.curves_]
    epochs = int(np.ceil(np.median(kept)))
    assert found.estimator_.n_epochs_ == epochs
    assert found.candidates_[0].name == f"max_epochs={epochs}"
    for curve in found.curves_:
        assert curve.kept == np.argmin(curve.validation_loss) + 1
    # The kept model is the probe trained for so many epochs on all clips.
    alone = MLPProbe(8, max_epochs=epochs, learning_rate=0.01).fit(X, y)
    assert alone.parameters_.tobytes() == found.estimator_.parameters_.tobytes()


def test_without_movies_nothing_is_chosen(clips):
    X, y, movies = clips
    found = GroupedSelection(LogisticRegression(C=0.3), Grid("C", (1.0, 2.0)))
    found.fit(X, y, groups=movies).fit(X, y)
    assert not hasattr(found, "held_out_")
    assert found.candidates_ == ()
    assert found.estimator_.C == 0.3
    assert np.array_equal(found.predict(X), found.estimator_.predict(X))


def test_arrays_for_the_estimators_fit_are_cut_to_the_clips_of_each_fold(clips):
    X, y, movies = clips
    weights = np.where(y == 1, 3.0, 1.0)
    found = GroupedSelection(LogisticRegression()).fit(X, y, groups=movies, sample_weight=weights)
    expected = LogisticRegression().fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(found.decision_function(X), expected.decision_function(X))
    assert (found.held_out_.scores.mean()) > GroupedSelection(LogisticRegression()).fit(
        X, y, groups=movies
    ).held_out_.scores.mean()


class Silent(BaseEstimator):
    def fit(self, X, y):
        del X, y
        return self


class Undefined(DummyClassifier):
    def predict_proba(self, X):
        return np.full((len(X), 2), np.nan)


def test_what_can_not_be_selected_is_refused(clips):
    X, y, movies = clips
    for estimator, labels, groups, error, place in (
        (LogisticRegression(), y, ["one"] * len(y), ProtocolError, "2 training movies"),
        (LogisticRegression(), np.zeros_like(y), movies, ValueError, "one class: 0"),
        (Silent(), y, movies, ValueError, "Silent"),
        (Undefined(), y, movies, ValueError, "not finite"),
    ):
        with pytest.raises(error, match=place):
            GroupedSelection(estimator).fit(X, labels, groups=groups)


def test_it_asks_for_movies_by_the_rules_of_metadata_routing():
    with config_context(enable_metadata_routing=True):
        model = GroupedSelection(LogisticRegression()).set_fit_request(groups=True)
        assert model.get_metadata_routing().consumes("fit", {"groups"}) == {"groups"}
