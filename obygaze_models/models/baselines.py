"""Define baselines that ignore the features, of two classes and of ordered levels.

All take the inputs of a probe, and give a score and a threshold as probes do, so that every table holds them.
Each score is the same for all clips of an unseen movie, or drawn at random: their within-movie AUC is 0.5, in
expectation or exactly.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, validate_data

from obygaze_models.models.binary import BinaryClassifier, encode_labels
from obygaze_models.models.parameters import Seed
from obygaze_models.models.spec import ModelSpec
from obygaze_models.protocol.selection import best_threshold
from obygaze_models.protocol.targets import Kind

TWO_CLASSES: tuple[Kind, ...] = ("levels", "concept")
"""The kinds of target that have two classes."""

ORDERED_LEVELS: tuple[Kind, ...] = ("ordinal",)
"""The kind of target that has ordered levels."""


class Baseline(BinaryClassifier):
    """Base class of the baselines, which score clips without reading their features.

    Attributes
    ----------
    classes_ : ndarray, shape [2]
        The negative and the positive label.
    n_features_in_ : int
        D; `decision_function` refuses features of another width.
    prevalence_ : float
        Share of positive clips in training.
    threshold_ : float
        A clip is called positive if its score is at least this.
    """

    # The threshold and the score of every clip, for baselines that learn neither.
    _fixed_threshold: ClassVar[float] = 0.5
    _fixed_score: ClassVar[float]
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}
    __metadata_request__decision_function: ClassVar[dict[str, bool]] = {"groups": True}

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that a baseline may score badly, and that it accepts NaN."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Fit on the labels y [N] and, for `MoviePrior`, the movies."""
        self._validate_params()
        X, y = validate_data(self, X, y, ensure_all_finite="allow-nan")
        self.classes_, labels = encode_labels(y, type(self).__name__)
        self.prevalence_ = float(labels.mean())

        movies = None
        if groups is not None:
            movies = check_array(groups, ensure_2d=False, dtype=None)
            check_consistent_length(X, movies)
        self.threshold_ = self._learn_from_labels(labels, movies)
        return self

    def decision_function(self, X: ArrayLike, groups: ArrayLike | None = None) -> NDArray[np.float64]:
        """Score each clip [N] of X [N, D], without its features; `groups` [N] are the clips' movies."""
        check_is_fitted(self)
        features = validate_data(self, X, reset=False, ensure_all_finite="allow-nan")
        movies = None if groups is None else np.asarray(groups)
        return self._score(len(features), movies)

    def predict(self, X: ArrayLike, groups: ArrayLike | None = None) -> NDArray[Any]:
        """Return the label of each clip [N]: positive if its score reaches the threshold."""
        return self._labels_of(self.decision_function(X, groups))

    def _learn_from_labels(self, labels: NDArray[np.int64], movies: NDArray[Any] | None) -> float:
        """Set what `_score` needs, and return the threshold of `predict`.

        `labels` [N], 0 or 1, and `movies` [N] are those of the training clips. This default learns nothing,
        and returns the fixed threshold of the class. A subclass may set attributes, and learn the threshold.
        """
        del labels, movies
        return self._fixed_threshold

    def _score(self, n_clips: int, movies: NDArray[Any] | None) -> NDArray[np.float64]:
        """Score `n_clips` clips; this default gives all of them the fixed score of the class."""
        del movies
        return np.full(n_clips, self._fixed_score)


class AlwaysPositive(Baseline):
    """Call every clip positive: with f1_pos = 2 p / (1 + p) at prevalence p, the best constant for f1_pos."""

    _fixed_score = 1.0


class AlwaysNegative(Baseline):
    """Call every clip negative: f1_pos is 0, but f1_weighted may look good when positives are rare."""

    _fixed_score = 0.0


@dataclass(eq=False, repr=False)
class RandomGuess(Baseline):
    """Call each clip positive at random, with one probability for all.

    With the probability p, a uniform draw from [0, 1) is at least 1 - p. The score is the draw less (1 - p),
    so that it is at least the threshold, 0, with the probability p.

    Parameters
    ----------
    probability : float, optional
        Probability of calling a clip positive; by default the training prevalence.
    random_state : int
        Seed of the draws, which are the same at every call.
    """

    _fixed_threshold = 0.0

    probability: Annotated[float, Interval(Real, 0, 1, closed="both")] | None = None
    _: KW_ONLY
    random_state: Seed = 0

    def _score(self, n_clips: int, movies: NDArray[Any] | None) -> NDArray[np.float64]:
        """Draw a score for each clip [N], which is at least 0 with the baseline's probability."""
        del movies
        probability = self.prevalence_ if self.probability is None else self.probability
        draws = np.random.default_rng(self.random_state).random(n_clips)
        return draws - (1 - probability)


class MoviePrior(Baseline):
    """Score a clip by the share of positive training clips in its movie (movie identity only).

    Clips of a movie that was not trained on, and all clips if no movies are given, score the training
    prevalence. If one movie is left out at a time, the score is therefore one number per fold, and its
    within-movie AUC is 0.5. Pooled over folds its AUC is *below* 0.5, since a movie with many positives
    leaves fewer to train on; that is an artefact of pooling. If the tested movies are also trained on, it
    shows how much a probe could gain by recognising the movie alone.

    The threshold has the highest f1_pos on the training clips themselves.

    Attributes
    ----------
    priors_ : dict
        Share of positive clips of each training movie.

    Examples
    --------
    >>> import obygaze_models as om
    >>> prior = om.MoviePrior().fit([[0.0], [0.0], [0.0]], [1, 0, 0], groups=["a", "a", "b"])
    >>> {str(movie): float(share) for movie, share in prior.priors_.items()}
    {'a': 0.5, 'b': 0.0}
    """

    def _learn_from_labels(self, labels: NDArray[np.int64], movies: NDArray[Any] | None) -> float:
        """Set `priors_`, each movie's share of positive clips, and return the threshold.

        It is the threshold with the highest f1_pos on the training clips, scored by these shares. Without
        movies, `_score` gives all clips the share of all.
        """
        self.priors_: dict[Any, float] = {}
        if movies is not None:
            names, movie_of_clip = np.unique(movies, return_inverse=True)
            n_positive = np.bincount(movie_of_clip, weights=labels)
            n_clips = np.bincount(movie_of_clip)
            shares = n_positive / n_clips
            self.priors_ = dict(zip(names.tolist(), shares.tolist(), strict=True))
        scores_of_training_clips = self._score(len(labels), movies)
        return best_threshold(labels, scores_of_training_clips)

    def _score(self, n_clips: int, movies: NDArray[Any] | None) -> NDArray[np.float64]:
        """Look up the share of each clip's movie [N]; the training prevalence for unknown movies."""
        if movies is None:
            return np.full(n_clips, self.prevalence_)
        return np.array([self.priors_.get(movie, self.prevalence_) for movie in movies.tolist()])


class MedianLevel(BaseEstimator):
    """Score every clip by the median level of the training clips."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Store the median of the levels y [N], the lower of the two middle ones; X is not used."""
        del X
        levels = np.sort(np.asarray(y))
        lower_middle = (len(levels) - 1) // 2
        self.level_ = float(levels[lower_middle])
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Score each clip [N] of X by the same level, the median of the training clips."""
        return np.full(len(np.asarray(X)), self.level_)


class RandomLevel(BaseEstimator):
    """Score every clip by a level drawn from those of the training clips.

    Parameters
    ----------
    random_state : int
        Seed of the draws, which are the same at every call.
    """

    def __init__(self, *, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Store the levels y [N]; X is not used."""
        del X
        self.levels_ = np.asarray(y, dtype=np.float64)
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Score each clip [N] by a level that is drawn at random from those of the training clips."""
        rng = np.random.default_rng(self.random_state)
        return rng.choice(self.levels_, len(np.asarray(X)))


def _baseline_spec(
    name: str, title: str, make: Callable[[int], Any], kinds: tuple[Kind, ...] = TWO_CLASSES
) -> ModelSpec:
    """Make the spec of a baseline.

    `make` takes a seed and returns the unfitted baseline. `kinds` are the kinds of target that it can be
    trained on. A baseline has no parameters that inner folds could choose (``choose=None``).
    """
    return ModelSpec(name, title, make, choose=None, looks_at_features=False, kinds=kinds)


SPECS = (
    _baseline_spec("always_positive", "Always positive", lambda _: AlwaysPositive()),
    _baseline_spec("always_negative", "Always negative", lambda _: AlwaysNegative()),
    _baseline_spec(
        "random_prevalence", "Random, at the prevalence", lambda seed: RandomGuess(random_state=seed)
    ),
    _baseline_spec(
        "random_half", "Random, half", lambda seed: RandomGuess(probability=0.5, random_state=seed)
    ),
    _baseline_spec("movie_prior", "Movie prior", lambda _: MoviePrior()),
    _baseline_spec("median_level", "Median level", lambda _: MedianLevel(), kinds=ORDERED_LEVELS),
    _baseline_spec(
        "random_level",
        "Random, at the levels' shares",
        lambda seed: RandomLevel(random_state=seed),
        kinds=ORDERED_LEVELS,
    ),
)
