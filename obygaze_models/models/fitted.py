"""Fit a model of the zoo on clips of two classes, and score clips by it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context

from obygaze_features.arguments import checked
from obygaze_features.errors import ObygazeError
from obygaze_models.errors import ModelError
from obygaze_models.models.choices import sample_evenly
from obygaze_models.models.estimator_scores import scores_of
from obygaze_models.models.spec import ModelSpec

ESTIMATOR_ERRORS = (AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What any estimator may raise about clips that it can't use; torch's own errors are RuntimeErrors."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A trained model that scores clips.

    Attributes
    ----------
    spec : ModelSpec
    estimator : estimator
    threshold : float
        A clip is called positive if its score is at least this.
    """

    spec: ModelSpec
    estimator: Any
    threshold: float

    def scores(self, X: NDArray[Any], movies: NDArray[np.str_]) -> NDArray[np.float64]:
        """Score clips: one finite number each, [N].

        Parameters
        ----------
        X : ndarray, shape [N, ...]
            What the model reads.
        movies : ndarray of str, shape [N]
            Passed on to estimators that request ``groups`` for scoring, such as the movie prior.

        Raises
        ------
        ModelError
            The estimator refuses its input, or does not give one finite score a clip.
        """
        arguments: dict[str, Any] = {}
        # If something is chosen, the estimator is a `GroupedSelection`, which takes no movies for scoring.
        is_selection = self.spec.choose is not None
        if not is_selection and "groups" in self.spec.requests("decision_function"):
            arguments["groups"] = movies
        try:
            return scores_of(self.estimator, X, **arguments)
        except ESTIMATOR_ERRORS as error:
            raise ModelError(f"model {self.spec.name} can't score clips: {error}") from error

    def mean_score(self, X: NDArray[Any], rows: NDArray[np.intp], movies: NDArray[np.str_]) -> float:
        """Compute the mean score of the training clips, or of a sample of them if there are many.

        It is used in place of an intercept, which estimators define in different ways or not at all.

        Parameters
        ----------
        X : ndarray, shape [N, ...]
            What the model reads, of all clips.
        rows : ndarray of int
            The training clips.
        movies : ndarray of str, shape [N]
        """
        some_rows = sample_evenly(rows)
        return float(self.scores(X[some_rows], movies[some_rows]).mean())


@checked
def fit(
    spec: ModelSpec,
    seed: int,
    X: NDArray[Any],
    y: NDArray[np.int64],
    *,
    movies: NDArray[np.str_],
    present: Any = None,
) -> Fitted:
    """Fit a model of the zoo on clips of two classes from several movies.

    Parameters
    ----------
    spec : ModelSpec
    seed : int
    X : ndarray, shape [N, ...]
        What the model reads.
    y : ndarray of int, shape [N]
        1 positive, 0 negative, -1 for a clip that is not in the task. Only models that use "unlabelled" are
        given the latter; for all others, they are left out.
    movies : ndarray of str, shape [N]
    present : DataFrame, shape [N, K], optional
        Presence of each concept, its names as columns.

    Raises
    ------
    ModelError
        The estimator refuses its input, or gives no scores.
    """
    names_of_arguments = spec.requests()

    # Clips that are not in the task are left out, unless the model learns from them too.
    is_in_task = y >= 0
    if "unlabelled" not in names_of_arguments and not is_in_task.all():
        X = X[is_in_task]
        y = y[is_in_task]
        movies = movies[is_in_task]
        if present is not None:
            present = present.loc[is_in_task]

    arguments: dict[str, Any] = {}
    # Inner folds, by which parameters and thresholds are chosen, are folds of movies.
    needs_inner_folds = spec.choose is not None
    if needs_inner_folds or "groups" in names_of_arguments:
        arguments["groups"] = movies
    if "present" in names_of_arguments:
        arguments["present"] = present

    try:
        estimator = spec.estimator(seed)
        with config_context(enable_metadata_routing=True):
            estimator.fit(X, y, **arguments)
    except ObygazeError:
        raise  # our own errors have their message already
    except ESTIMATOR_ERRORS as error:
        raise ModelError(f"model {spec.name} can't be trained: {error}") from error

    # The score of an estimator that sets no threshold is a logit: 0 stands for a probability of one half.
    threshold = float(getattr(estimator, "threshold_", 0.0))
    return Fitted(spec, estimator, threshold)
