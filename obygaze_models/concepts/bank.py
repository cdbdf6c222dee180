"""Fit a concept activation vector (CAV) for each concept, and project clips on all of them."""

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from obygaze_features.text import counted
from obygaze_models.blas import one_blas_thread
from obygaze_models.concepts.cav_fitting import Floats, Hyperplanes, Kind, fit_hyperplanes
from obygaze_models.concepts.ridge_tuning import tuned_ridge
from obygaze_models.concepts.standardised import Standardised
from obygaze_models.errors import ConceptError
from obygaze_models.models.binary import validated_rows
from obygaze_models.models.parameters import Positive
from obygaze_models.models.scaling import ClippedScaler, Limit


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
        Whether clips with and without a concept weigh the same in SVMs and logistic regressions.
    concepts : sequence of str, optional
        Names of the columns of y; when not given, those of the data frame, else ``concept0`` and so on.
    clip : float, optional
        Standardise features first, and limit them to this many deviations (`ClippedScaler`); hyperplanes and
        distances are then of standardised features. None: features as they are, as in the paper.

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
    tuned_ : TunedCavs
        With C None: the penalties chosen and their losses.
    held_out_distances_ : ndarray, shape [N, K]
        With C None: each training clip's signed distances to the CAVs fitted without its movie.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> from obygaze_models.concepts import ConceptBank
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> present = data.present[["Body", "Clothing"]]
    >>> bank = ConceptBank().fit(data.X, present)
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
        """Tell scikit-learn that y is needed: one or several columns of labels, with two values in each."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.classifier_tags = ClassifierTags(multi_class=False)  # a column has two values, not more
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Fit one CAV for each concept.

        Parameters
        ----------
        X : array-like, shape [N, D]
        y : array-like, shape [N, K] or [N]
            Presence of each concept: one of two values, of which the larger marks clips with the concept; NaN
            for a clip that this concept's CAV is not fitted on.
        groups : array-like, shape [N], optional
            The movie of each clip, to choose penalties by; not used otherwise.

        Raises
        ------
        ConceptError
            A concept (the message names it) is present in all clips or in none; or there are not as many
            names as concepts. If penalties are to be chosen (C is None), also if the kind is not ``ridge``,
            if `groups` is not given, or if a presence is NaN.
        """
        self._validate_params()
        features, labels = self._check_training(X, y)
        # Concepts are named by the parameter `concepts`, or else by the columns of a data frame.
        columns_of_frame = getattr(y, "columns", None)
        self.concepts_ = self._concept_names(labels.shape[1], columns_of_frame)
        present = read_presences(self.concepts_, labels)

        self._forget_tuning()  # of an earlier fit
        if self.C is None:
            self.hyperplanes_ = self._fit_tuned(features, present, groups)
        else:
            self._fit_scaler(features)
            self.hyperplanes_ = fit_hyperplanes(
                self._scale(features),
                present,
                names=self.concepts_.tolist(),
                kind=self.kind,
                C=float(self.C),
                balanced=self.balanced,
            )

        # `transform` standardises distances by their moments on the training clips.
        with one_blas_thread():
            distances = self.hyperplanes_.distances(self._scale(features))
            self.set_moments(distances)
        return self

    def _check_training(self, X: ArrayLike, y: ArrayLike) -> tuple[Floats, NDArray[np.float64]]:
        """Validate features and presences to fit on, and return them as arrays: [N, D] and [N, K]."""
        # Features and presences are checked by different rules: presences may be NaN, and may be one column.
        rules_of_X = {"dtype": (np.float64, np.float32), "ensure_min_samples": 2, "estimator": self}
        rules_of_y = {"ensure_2d": False, "ensure_all_finite": "allow-nan", "dtype": np.float64}
        features, labels = validate_data(self, X, y, validate_separately=(rules_of_X, rules_of_y))
        check_consistent_length(features, labels)
        return features, labels.reshape(len(labels), -1)

    def _forget_tuning(self) -> None:
        """Remove what an earlier fit may have set: the attributes that `fit` sets only if C is None."""
        for name in ("tuned_", "held_out_distances_"):
            if hasattr(self, name):
                delattr(self, name)

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute each clip's value on each concept [N, K]: its standardised distance to the hyperplane."""
        return self._standardised(self.distances(X))

    def distances(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute each clip's signed distance to each hyperplane [N, K], in the units of the features.

        If the bank standardises features (the parameter `clip`), the units are those of standardised
        features. The distance is positive on the side of the clips with the concept.
        """
        check_is_fitted(self, "hyperplanes_")
        features = self._scale(validated_rows(self, X, np.float64, np.float32))
        with one_blas_thread():
            return self.hyperplanes_.distances(features)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns of `transform`: the concepts; `input_features` is not used."""
        del input_features
        check_is_fitted(self)
        return self.concepts_.astype(object)

    def _fit_scaler(self, X: Floats) -> None:
        """Set `scaler_` to a scaler fitted to features X [N, D]; to None if the parameter `clip` is None."""
        self.scaler_ = None if self.clip is None else ClippedScaler(self.clip).fit(X)

    def _scale(self, X: Floats) -> Floats:
        """Standardise features X [N, D] by the fitted scaler; unchanged if there is none."""
        return X if self.scaler_ is None else self.scaler_.transform(X)

    def _concept_names(self, n_concepts: int, columns_of_frame: Iterable[object] | None) -> NDArray[np.str_]:
        """Return the names of the concepts [K].

        They are those of the parameter `concepts`, else of the columns of a data frame, else ``concept0`` and
        so on.
        """
        chosen_names = columns_of_frame if self.concepts is None else self.concepts
        if chosen_names is None:
            return np.array([f"concept{number}" for number in range(n_concepts)])

        names = [str(name) for name in chosen_names]
        has_repeated_names = len(set(names)) < len(names)
        if has_repeated_names or len(names) != n_concepts:
            raise ConceptError(
                f"{counted(n_concepts, 'column')} of presences: as many different names of concepts are "
                f"needed: found {len(names)} ({', '.join(names)})"
            )
        return np.array(names)

    def _fit_tuned(self, X: Floats, present: NDArray[np.float64], groups: ArrayLike | None) -> Hyperplanes:
        """Fit ridge CAVs, with penalties chosen by leaving movies out (`tuned_ridge`), and the scaler.

        The attributes `tuned_`, `scaler_` and `held_out_distances_` are set; the hyperplanes are returned.

        Parameters
        ----------
        X : ndarray, shape [N, D]
        present : ndarray, shape [N, K]
        groups : array-like, shape [N]
            The movie of each clip.

        Returns
        -------
        Hyperplanes
            Of all concepts, in order.

        Raises
        ------
        ConceptError
            The CAVs are not of kind ``ridge``, there are no movies, or a presence is unknown.
        """
        if self.kind != "ridge" or groups is None:
            raise ConceptError("C can be chosen (None) for ridge CAVs alone, and by movies: give the groups")
        if np.isnan(present).any():
            raise ConceptError(
                "C can be chosen (None) where every clip says of each concept whether it is there"
            )
        names = self.concepts_.tolist()
        self.tuned_ = tuned_ridge(X, present == 1, np.asarray(groups), self.clip, names=names)
        self.scaler_ = self.tuned_.scaler
        self.held_out_distances_ = self.tuned_.distances
        return self.tuned_.hyperplanes


def read_presences(concepts: NDArray[np.str_], labels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Convert the presences of concepts to 0 and 1, [N, K].

    Parameters
    ----------
    concepts : ndarray of str, shape [K]
    labels : ndarray, shape [N, K]
        Each concept has two values, of which the larger marks clips with the concept; NaN where unknown.
    """
    columns = [_presences_of(concept, column) for concept, column in zip(concepts, labels.T, strict=True)]
    return np.column_stack(columns)


def _presences_of(name: str, column: NDArray[np.float64]) -> NDArray[np.float64]:
    """Convert the presences [N] of a concept from any two values to 0 and 1, the larger value being 1.

    NaN stays NaN. A column of a single value is returned unchanged; fits refuse such a concept.

    Raises
    ------
    ConceptError
        There are more than two values; the message names the concept.
    """
    is_unknown = np.isnan(column)
    values = np.unique(column[~is_unknown])
    if values.size > 2:
        raise ConceptError(
            f"concept {name} has {values.size} different values: expected two, absent and present"
        )
    if values.size < 2:
        return column
    is_present = column == values[1]  # the larger value
    return np.where(is_unknown, np.nan, is_present).astype(np.float64)


def crossfit(
    bank: ConceptBank, X: Floats, present: NDArray[np.float64], folds: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Compute each clip's signed distances [N, K] to CAVs that were fitted without its fold.

    Parameters
    ----------
    bank : ConceptBank
        Its parameters are used; copies of it are fitted.
    X : ndarray, shape [N, D]
    present : ndarray, shape [N, K]
    folds : ndarray of int64, shape [N]
        The fold that holds each clip out; all clips of a movie are in the same one.

    Raises
    ------
    ConceptError
        Without some fold, all clips have or all lack a concept; the message names it.
    """
    distances = np.empty((len(X), present.shape[1]))
    for fold in np.unique(folds):
        held_out = folds == fold
        bank_of_fold = clone(bank).fit(X[~held_out], present[~held_out])
        distances[held_out] = bank_of_fold.distances(X[held_out])
    return distances
