"""Fit a CAV per concept, and project clips on them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from obygaze_models.blas import one_blas_thread
from obygaze_models.concepts.cav_fitting import (
    KINDS,
    Floats,
    Hyperplanes,
    Kind,
    fit_hyperplanes,
    refuse_constant,
)
from obygaze_models.concepts.ridge_tuning import Tuned, tuned_ridge
from obygaze_models.errors import ConceptError
from obygaze_models.models.linear import MOST, ClippedScaler

Values = Literal["standardised", "distance", "decision"]


@dataclass(eq=False, repr=False)
class ConceptBank(TransformerMixin, BaseEstimator):
    """Fit one CAV per concept, and project clips on all of them.

    Parameters
    ----------
    kind : {"svm", "logistic", "ridge", "mean_difference"}
        How each CAV is fitted; see `LinearCAV`. SVMs share one Gram matrix.
    C : float, mapping of str to float, or None
        Inverse strength of the penalty, for all concepts or for each. None, for ``ridge``: chosen for each
        concept by leaving one movie out at a time, in closed form (`tuned_ridge`).
    balanced : bool
        Whether SVMs and logistic regressions weigh clips with and without a concept alike.
    values : {"standardised", "distance", "decision"}
        What `transform` gives: signed distances less their mean and over their deviation on the training
        clips; signed distances; or the raw decision values w x + b, which the published models were fed.
    concepts : sequence of str, optional
        Names of the columns of Y; when not given, those of the data frame, else ``concept0`` and so on.
    clip : float, optional
        Standardise features first, cut off at so many deviations (`ClippedScaler`); hyperplanes and distances
        are then of standardised features. None: features as they are, as in the paper.

    Attributes
    ----------
    concepts_ : ndarray of str, shape [K]
    n_features_in_ : int
        D.
    scaler_ : ClippedScaler or None
        None where `clip` is.
    hyperplanes_ : Hyperplanes
        Of all concepts, in order.
    mean_, scale_ : ndarray, shape [K]
        Moments of the training clips' distances.
    tuned_ : Tuned
        With C None: the penalties chosen and their losses.
    cross_distances_ : ndarray, shape [N, K]
        With C None: each training clip's signed distances to the CAVs fitted without its movie.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> present = data.present[["Body", "Clothing"]]
    >>> bank = om.ConceptBank().fit(data.X, present)
    >>> bank.concepts_
    array(['Body', 'Clothing'], dtype='<U8')
    >>> bank.transform(data.X).shape
    (95, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kind": [StrOptions(set(KINDS))],
        "C": [Interval(Real, 0, None, closed="neither"), Mapping, None],
        "balanced": ["boolean"],
        "values": [StrOptions({"standardised", "distance", "decision"})],
        "concepts": ["array-like", None],
        "clip": [Interval(Real, 0, MOST, closed="right"), None],
    }

    kind: Kind = "svm"
    _: KW_ONLY
    C: float | Mapping[str, float] | None = 1.0
    balanced: bool = True
    values: Values = "standardised"
    concepts: Sequence[str] | None = None
    clip: float | None = None

    def __sklearn_tags__(self) -> Tags:
        """Needs presences, several concepts or one, two values each."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Fit the CAVs.

        Parameters
        ----------
        X : array-like, shape [N, D]
        y : array-like, shape [N, K] or [N]
            Presence of each concept: two values, the larger for clips with it; NaN for a clip that this
            concept's CAV is not fitted on.
        groups : array-like, shape [N], optional
            The movie of each clip, to choose penalties by; not used otherwise.

        Raises
        ------
        ConceptError
            A concept, named, is in all its clips or in none; or names and columns don't match.
        """
        self._validate_params()
        named = getattr(y, "columns", None)
        features, labels = validate_data(
            self,
            X,
            y,
            validate_separately=(
                {"dtype": (np.float64, np.float32), "ensure_min_samples": 2, "estimator": self},
                {"ensure_2d": False, "ensure_all_finite": "allow-nan", "dtype": np.float64},
            ),
        )
        check_consistent_length(features, labels)
        columns = labels.reshape(len(labels), -1)
        self.concepts_ = self._names(columns.shape[1], named)
        present = np.column_stack(
            [presence(name, column) for name, column in zip(self.concepts_, columns.T, strict=True)]
        )
        for name in ("tuned_", "cross_distances_"):
            self.__dict__.pop(name, None)
        if self.C is None:
            self.hyperplanes_ = self._tuned(features, present, groups)
        else:
            self.scaler_ = fitted_scaler(features, self.clip)
            self.hyperplanes_ = fit_hyperplanes(
                self._scaled(features),
                present,
                names=self.concepts_.tolist(),
                kind=self.kind,
                C=self._penalties(self.C),
                balanced=self.balanced,
            )
        self.rescale(self._distances(self._scaled(features)))
        return self

    def rescale(self, distances: NDArray[np.float64]) -> None:
        """Take mean and deviation of distances [N, K] for those by which values are standardised."""
        self.mean_, scale = distances.mean(axis=0), distances.std(axis=0)
        # Rounding leaves a constant column a tiny deviation.
        self.scale_ = np.where(scale > 1e-12 * (1 + np.abs(self.mean_)), scale, 1.0)

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute each clip's value on each concept: [N, K]."""
        check_is_fitted(self)
        features = self._scaled(validate_data(self, X, dtype=(np.float64, np.float32), reset=False))
        if self.values == "decision":
            with one_blas_thread():
                return self.hyperplanes_.decisions(features)
        distances = self._distances(features)
        if self.values == "distance":
            return distances
        standard: NDArray[np.float64] = (distances - self.mean_) / self.scale_
        return standard

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Name the columns that `transform` gives: the concepts."""
        del input_features
        check_is_fitted(self)
        return self.concepts_.astype(object)

    def _scaled(self, X: Floats) -> Floats:
        return X if self.scaler_ is None else self.scaler_.transform(X)

    def _distances(self, X: Floats) -> NDArray[np.float64]:
        with one_blas_thread():
            return self.hyperplanes_.distances(X)

    def _names(self, n_concepts: int, columns: Iterable[object] | None) -> NDArray[np.str_]:
        given = columns if self.concepts is None else self.concepts
        if given is None:
            return np.array([f"concept{number}" for number in range(n_concepts)])
        names = [str(name) for name in given]
        if len(set(names)) != len(names) or len(names) != n_concepts:
            raise ConceptError(
                f"{n_concepts} columns of presences need as many different names of concepts: "
                f"found {len(names)} ({', '.join(names)})"
            )
        return np.array(names)

    def _tuned(self, X: Floats, present: NDArray[np.float64], groups: ArrayLike | None) -> Hyperplanes:
        """Fit the scaler, and ridge CAVs at penalties chosen by movie."""
        names = self.concepts_.tolist()
        self.tuned_ = tuned_by_movie(self.kind, X, present, groups, names, clip=self.clip)
        self.scaler_, self.cross_distances_ = self.tuned_.scaler, self.tuned_.distances
        return self.tuned_.planes

    def _penalties(self, C: float | Mapping[str, float]) -> list[float]:
        if not isinstance(C, Mapping):
            return [float(C)] * len(self.concepts_)
        missing = [name for name in self.concepts_.tolist() if name not in C]
        if missing:
            raise ConceptError(f"C has no value for concept {missing[0]}: it has {', '.join(C)}")
        return [float(C[name]) for name in self.concepts_.tolist()]


def fitted_scaler(X: Floats, clip: float | None) -> ClippedScaler | None:
    """Fit the scaler that cuts features off at so many deviations; none where they are taken as they are."""
    return None if clip is None else ClippedScaler(clip).fit(X)


def tuned_by_movie(
    kind: Kind,
    X: Floats,
    present: NDArray[np.float64],
    groups: ArrayLike | None,
    names: Sequence[str],
    *,
    clip: float | None,
) -> Tuned:
    """Tune ridge CAVs by movie (`tuned_ridge`), refusing by name what can't be learnt so.

    Raises
    ------
    ConceptError
        Another kind; no movies; a clip that does not say of each concept whether it is there; or a concept
        that all clips have, or none, whatever movie is left out.
    """
    if kind != "ridge" or groups is None:
        raise ConceptError("C can be chosen (None) for ridge CAVs alone, and by movies: give the groups")
    if np.isnan(present).any():
        raise ConceptError("C can be chosen (None) where every clip says of each concept whether it is there")
    movies = np.asarray(groups)
    for name, column in zip(names, present.T, strict=True):
        refuse_constant(name, column)
        for movie in np.unique(movies):
            refuse_constant(f"{name}, without movie {movie},", column[movies != movie])
    return tuned_ridge(X, present == 1, movies, clip)


def presence(name: str, column: NDArray[np.float64]) -> NDArray[np.float64]:
    """Read two values as 0 and 1, NaN staying NaN.

    Raises
    ------
    ConceptError
        There are more than two values; or one alone that says neither present (1) nor absent (0).
    """
    values = np.unique(column[~np.isnan(column)])
    if values.size > 2:
        raise ConceptError(
            f"concept {name} has {values.size} different values: expected two, absent and present"
        )
    if values.size < 2:
        return column
    return np.where(np.isnan(column), np.nan, column == values[1]).astype(np.float64)


def crossfit(
    bank: ConceptBank, X: Floats, present: NDArray[np.float64], folds: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Compute each clip's signed distances [N, K] to CAVs that were fitted without its fold.

    Parameters
    ----------
    bank : ConceptBank
        What to fit; left as it is.
    X : ndarray, shape [N, D]
    present : ndarray, shape [N, K]
    folds : ndarray of int64, shape [N]
        The fold that holds each clip out; whole movies.

    Raises
    ------
    ConceptError
        Without some fold a concept, named, has clips of one class only.
    """
    distances = np.empty((len(X), present.shape[1]))
    for fold in np.unique(folds):
        held_out = folds == fold
        fitted = clone(bank).set_params(values="distance").fit(X[~held_out], present[~held_out])
        distances[held_out] = fitted.transform(X[held_out])
    return distances


class Control(ConceptBank):
    """Base class of the controls: banks without knowledge of concepts, which concept banks must beat.

    Parameters
    ----------
    random_state : int
        Seed of what is drawn.
    """

    def __init__(
        self,
        *,
        values: Values = "standardised",
        concepts: Sequence[str] | None = None,
        clip: float | None = None,
        random_state: int = 0,
    ) -> None:
        super().__init__("ridge", C=None, values=values, concepts=concepts, clip=clip)
        self.random_state = random_state


class RandomDirections(Control):
    """A control: random directions in place of CAVs, as many as there are concepts.

    Parameters
    ----------
    random_state : int
        Seed of the directions.
    """

    def _tuned(self, X: Floats, present: NDArray[np.float64], groups: ArrayLike | None) -> Hyperplanes:
        del groups
        k = present.shape[1]
        rng = np.random.default_rng(self.random_state)
        planes = Hyperplanes(rng.normal(size=(k, X.shape[1])), np.zeros(k))
        self.scaler_ = fitted_scaler(X, self.clip)
        self.cross_distances_ = planes.distances(self._scaled(X))
        return planes


class ShuffledConcepts(Control):
    """A control: CAVs of presences exchanged between the clips of a movie.

    Whole rows of presences are exchanged, so that concepts stay correlated with each other but not with the
    clips.

    Parameters
    ----------
    random_state : int
        Seed of the exchange.
    """

    def _tuned(self, X: Floats, present: NDArray[np.float64], groups: ArrayLike | None) -> Hyperplanes:
        movies, rows = np.asarray(groups), np.arange(len(present))
        rng = np.random.default_rng(self.random_state)
        for movie in np.unique(movies):
            own = np.flatnonzero(movies == movie)
            rows[own] = rng.permutation(own)
        return super()._tuned(X, present[rows], groups)
