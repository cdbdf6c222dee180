"""Fit a CAV per concept, and project clips on them; fit the CAV of one concept as a classifier."""

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin, clone
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from obygaze_models.blas import one_blas_thread
from obygaze_models.concepts.cav_fitting import Floats, Hyperplanes, Kind, fit_hyperplanes
from obygaze_models.concepts.ridge_tuning import PENALTIES, tuned_ridge
from obygaze_models.errors import ConceptError
from obygaze_models.models.binary import ABOVE_ZERO, BinaryClassifier, encode_labels, rows_for
from obygaze_models.models.choices import Candidate, candidates
from obygaze_models.models.parameters import Estimator, Positive
from obygaze_models.models.scaling import CLIP, ClippedScaler, Limit
from obygaze_models.models.spec import ModelSpec
from obygaze_models.protocol.held_out import HeldOut

Directions = Literal["shuffled", "random"]


class Standardised(TransformerMixin, Estimator):
    """Base class of what gives clips values on concepts: deviations from their mean on training clips.

    Attributes
    ----------
    concepts_ : ndarray of str, shape [K]
    mean_, scale_ : ndarray, shape [K]
        Moments of the training clips' values.
    cross_distances_ : ndarray, shape [N, K]
        What is standardised, of each training clip, from what was learnt without its movie.
    """

    concepts: Sequence[str] | None = None
    cross_distances_: NDArray[np.float64]

    def rescale(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        """Standardise distances [N, K] by their own mean and deviation, as all values from now on."""
        self.mean_, scale = distances.mean(axis=0), distances.std(axis=0)
        # Rounding leaves a constant column a tiny deviation.
        self.scale_ = np.where(scale > 1e-12 * (1 + np.abs(self.mean_)), scale, 1.0)
        return self._standardised(distances)

    @property
    def cross_values_(self) -> NDArray[np.float64]:
        """The values of training clips from what was learnt without their movies."""
        return self._standardised(self.cross_distances_)

    def _standardised(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((distances - self.mean_) / self.scale_)


@dataclass(eq=False, repr=False)
class ConceptBank(Standardised):
    """Fit one CAV per concept, and project clips on all of them.

    Parameters
    ----------
    kind : {"svm", "logistic", "ridge", "mean_difference"}
        How each CAV is fitted; see `LinearCAV`. SVMs share one Gram matrix.
    C : float, optional
        Inverse strength of the penalty. None, for ``ridge``: chosen for each concept by leaving one movie out
        at a time, in closed form (`tuned_ridge`).
    balanced : bool
        Whether SVMs and logistic regressions weigh clips with and without a concept alike.
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

    kind: Kind = "svm"
    _: KW_ONLY
    C: Positive | None = 1.0
    balanced: bool = True
    concepts: Annotated[Sequence[str], "array-like"] | None = None
    clip: Limit | None = None

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
            A concept, named, is in all its clips or in none; names and columns don't match; or C is None
            and there are no movies, another kind, or a clip that does not say of each concept whether it is
            there.
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
        present = self._presences(labels, named)
        for name in ("tuned_", "cross_distances_"):
            self.__dict__.pop(name, None)
        if self.C is None:
            self.hyperplanes_ = self._tuned(features, present, groups)
        else:
            self._fit_scaler(features)
            self.hyperplanes_ = fit_hyperplanes(
                self._scaled(features),
                present,
                names=self.concepts_.tolist(),
                kind=self.kind,
                C=float(self.C),
                balanced=self.balanced,
            )
        with one_blas_thread():
            self.rescale(self.hyperplanes_.distances(self._scaled(features)))
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute each clip's value on each concept: [N, K]."""
        return self._standardised(self.distances(X))

    def distances(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute each clip's signed distance to each hyperplane [N, K], in the units of the features."""
        check_is_fitted(self, "hyperplanes_")
        features = self._scaled(rows_for(self, X, np.float64, np.float32))
        with one_blas_thread():
            return self.hyperplanes_.distances(features)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Name the columns that `transform` gives: the concepts."""
        del input_features
        check_is_fitted(self)
        return self.concepts_.astype(object)

    def _fit_scaler(self, X: Floats) -> None:
        self.scaler_ = None if self.clip is None else ClippedScaler(self.clip).fit(X)

    def _scaled(self, X: Floats) -> Floats:
        return X if self.scaler_ is None else self.scaler_.transform(X)

    def _presences(self, labels: NDArray[np.float64], named: Iterable[object] | None) -> NDArray[np.float64]:
        """Name the concepts, and read their presences [N, K]."""
        columns = labels.reshape(len(labels), -1)
        self.concepts_ = self._names(columns.shape[1], named)
        return np.column_stack(
            [presence(name, column) for name, column in zip(self.concepts_, columns.T, strict=True)]
        )

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
        """Fit the scaler, and ridge CAVs at penalties chosen by movie (`tuned_ridge`)."""
        if self.kind != "ridge" or groups is None:
            raise ConceptError("C can be chosen (None) for ridge CAVs alone, and by movies: give the groups")
        if np.isnan(present).any():
            raise ConceptError(
                "C can be chosen (None) where every clip says of each concept whether it is there"
            )
        names = self.concepts_.tolist()
        self.tuned_ = tuned_ridge(X, present == 1, np.asarray(groups), self.clip, names=names)
        self.scaler_, self.cross_distances_ = self.tuned_.scaler, self.tuned_.distances
        return self.tuned_.planes


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
        distances[held_out] = clone(bank).fit(X[~held_out], present[~held_out]).distances(X[held_out])
    return distances


@dataclass(eq=False, repr=False)
class ControlBank(ConceptBank):
    """A control, which concept banks must beat: directions that know no concept.

    CAVs of presences exchanged between the clips of a movie: whole rows, so that concepts stay correlated
    with each other and not with the clips. Or random directions, as many as there are concepts.

    Parameters
    ----------
    directions : {"shuffled", "random"}
    random_state : int
        Seed of what is drawn.
    """

    kind: Kind = "ridge"
    _: KW_ONLY
    C: Positive | None = None
    directions: Directions = "shuffled"
    random_state: int = 0

    def _tuned(self, X: Floats, present: NDArray[np.float64], groups: ArrayLike | None) -> Hyperplanes:
        if self.directions == "shuffled":
            return super()._tuned(X, present[exchanged(np.asarray(groups), self.random_state)], groups)
        rng, k = np.random.default_rng(self.random_state), present.shape[1]
        planes = Hyperplanes(rng.normal(size=(k, X.shape[1])), np.zeros(k))
        self._fit_scaler(X)
        self.cross_distances_ = planes.distances(self._scaled(X))
        return planes


def exchanged(movies: NDArray[Any], seed: int) -> NDArray[np.intp]:
    """Draw for each clip [N] another of its movie: a permutation within movies."""
    rows, rng = np.arange(len(movies)), np.random.default_rng(seed)
    for movie in np.unique(movies):
        own = np.flatnonzero(movies == movie)
        rows[own] = rng.permutation(own)
    return rows


# --- one concept
# ---------------------------------------------------------------------------
@dataclass(eq=False, repr=False)
class LinearCAV(BinaryClassifier):
    """Fit a linear concept activation vector: a direction and the threshold on it.

    It is the normal of a hyperplane that parts clips with the concept from clips without (Kim et al., ICML
    2018). The decision function is the signed distance to that hyperplane, (w x + b) / ||w||, in the units of
    the features: a positive distance predicts the concept. Features are taken as they are, not standardised.

    Parameters
    ----------
    kind : {"svm", "logistic", "ridge", "mean_difference"}
        How the hyperplane is fitted. ``svm`` is the paper's: ``SVC(kernel="linear")``, without probabilities.
        ``ridge`` and ``mean_difference`` put it midway between the two classes' mean projections.
    C : float, optional
        Inverse strength of the penalty on w; `mean_difference` has none. None, for ``ridge``: chosen by
        leaving one movie out at a time, in closed form, and the threshold with it; needs the movies.
    balanced : bool
        Whether ``svm`` and ``logistic`` weigh the two classes alike; the two others do, by where they put the
        hyperplane.
    clip : float, optional
        Standardise features first, cut off at so many deviations; the direction is then of these.

    Attributes
    ----------
    classes_ : ndarray, shape [2]
        The labels of clips without and with the concept.
    n_features_in_ : int
        D.
    scaler_ : ClippedScaler or None
        None where `clip` is.
    direction_ : ndarray of float64, shape [D]
        Unit normal, towards the concept.
    offset_ : float
        Signed distance of the origin.
    norm_ : float
        ||w|| of the fitted hyperplane: distance times norm is the raw decision value.
    threshold_ : float
        The distance from which on a clip is said to have the concept: above 0, unless `C` is None.
    candidates_ : tuple of Candidate
        With C None: the penalties tried; their losses are squared errors of the presence.
    held_out_ : HeldOut
        With C None: each clip's distance to the CAV fitted without its movie.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> cav = om.LinearCAV("ridge").fit(data.X, data.present["Body"])
    >>> cav.decision_function(data.X).shape
    (95,)
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}

    kind: Kind = "svm"
    _: KW_ONLY
    C: Positive | None = 1.0
    balanced: bool = True
    clip: Limit | None = None

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Fit on features X [N, D] and labels y [N]; the second in sorted order is "with the concept".

        Parameters
        ----------
        X : array-like, shape [N, D]
        y : array-like, shape [N]
        groups : array-like, shape [N], optional
            The movie of each clip; needed with C None, not used otherwise.

        Raises
        ------
        ValueError
            There are not two classes.
        ConceptError
            C is None and there are no movies, or a movie without which there is one class.
        """
        self._validate_params()
        features, y = validate_data(self, X, y, dtype=(np.float64, np.float32))
        self.classes_, labels = encode_labels(y, type(self).__name__)
        self.threshold_ = ABOVE_ZERO
        self.__dict__.pop("held_out_", None)
        self.candidates_: tuple[Candidate, ...] = ()
        bank = ConceptBank(
            self.kind, C=self.C, balanced=self.balanced, concepts=[str(self.classes_[1])], clip=self.clip
        ).fit(features, labels, groups)
        self.scaler_, planes = bank.scaler_, bank.hyperplanes_
        if self.C is None:
            tuned = bank.tuned_
            self.held_out_ = HeldOut(tuned.distances[:, 0], labels, np.asarray(groups))
            self.threshold_ = self.held_out_.threshold()
            self.candidates_ = candidates("penalty", PENALTIES, tuned.losses[:, 0], int(tuned.chosen[0]))
        self.norm_ = float(planes.norms[0])
        length = self.norm_ or 1.0
        self.direction_ = planes.weights[0] / length
        self.offset_ = float(planes.intercepts[0]) / length
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the signed distance [N] of each clip of X [N, D]."""
        check_is_fitted(self)
        features = rows_for(self, X, np.float64, np.float32)
        if self.scaler_ is not None:
            features = self.scaler_.transform(features)
        with one_blas_thread():
            plane = Hyperplanes(self.direction_[None], np.array([self.offset_]))
            return plane.decisions(features)[:, 0]


SPECS = (ModelSpec("cav", "CAV", lambda _: LinearCAV("ridge", C=None, clip=CLIP), None, kinds=("concept",)),)
