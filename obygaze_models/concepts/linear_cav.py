"""Fit the concept activation vector of one concept, as a classifier."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from obygaze_models.blas import one_blas_thread
from obygaze_models.concepts.bank import ConceptBank
from obygaze_models.concepts.cav_fitting import Hyperplanes, Kind
from obygaze_models.concepts.ridge_tuning import PENALTIES, TunedCavs
from obygaze_models.models.binary import ABOVE_ZERO, BinaryClassifier, encode_labels, validated_rows
from obygaze_models.models.choices import Candidate, candidates
from obygaze_models.models.parameters import Positive
from obygaze_models.models.scaling import CLIP, Limit
from obygaze_models.models.spec import ModelSpec
from obygaze_models.protocol.held_out import HeldOut


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
        Whether ``svm`` and ``logistic`` weigh the two classes equally; ``ridge`` and ``mean_difference``
        always do, by the place of the hyperplane.
    clip : float, optional
        Standardise features first, and limit them to this many deviations; the direction is then one of
        standardised features.

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
        Signed distance of the origin to the hyperplane.
    norm_ : float
        ||w|| of the fitted hyperplane: distance times norm is the raw decision value.
    threshold_ : float
        A clip is called positive (with the concept) if its distance is at least this. It is the smallest
        number above 0, unless `C` is None.
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
        """Fit the CAV of a concept, and with C None choose its penalty and threshold by movies.

        Parameters
        ----------
        X : array-like, shape [N, D]
        y : array-like, shape [N]
            Two labels; the second in sorted order is that of clips with the concept.
        groups : array-like, shape [N], optional
            The movie of each clip; needed with C None, not used otherwise.

        Raises
        ------
        ValueError
            There are not two classes.
        ConceptError
            C is None, and there are no movies, or without some movie all clips are of one class.
        """
        self._validate_params()
        features, given_labels = validate_data(self, X, y, dtype=(np.float64, np.float32))
        self.classes_, labels = encode_labels(given_labels, type(self).__name__)
        # The hyperplane is fitted by a bank of one concept, which is named after the positive label.
        concepts = [str(self.classes_[1])]
        bank = ConceptBank(self.kind, C=self.C, balanced=self.balanced, concepts=concepts, clip=self.clip)
        bank.fit(features, labels, groups)

        self.scaler_ = bank.scaler_
        self._set_plane(bank.hyperplanes_)
        self._forget_choice()
        if self.C is None:
            self._set_choice(bank.tuned_, labels, np.asarray(groups))
        return self

    def _set_plane(self, plane: Hyperplanes) -> None:
        """Set direction, offset and norm from one hyperplane w x + b = 0, divided by the length of w."""
        weights = plane.weights[0]
        intercept = float(plane.intercepts[0])
        self.norm_ = float(plane.norms[0])
        # Weights of 0 stay 0.
        length = self.norm_ if self.norm_ > 0 else 1.0
        self.direction_ = weights / length
        self.offset_ = intercept / length

    def _forget_choice(self) -> None:
        """Set threshold and candidates to those without a choice by movies; remove held-out scores, if any.

        They may be left from an earlier fit, which chose by movies.
        """
        self.threshold_ = ABOVE_ZERO
        self.candidates_: tuple[Candidate, ...] = ()
        if hasattr(self, "held_out_"):
            del self.held_out_

    def _set_choice(self, tuned: TunedCavs, labels: NDArray[np.int64], movies: NDArray[np.generic]) -> None:
        """Set the attributes that leaving movies out gives: `held_out_`, `threshold_` and `candidates_`.

        The threshold is the best on the held-out distances; the candidates are the penalties.

        Parameters
        ----------
        tuned : TunedCavs
            The CAVs of a bank of one concept.
        labels : ndarray of int, shape [N]
            0 or 1.
        movies : ndarray, shape [N]
        """
        self.held_out_ = HeldOut(tuned.distances[:, 0], labels, movies)
        self.threshold_ = self.held_out_.threshold()
        self.candidates_ = candidates("penalty", PENALTIES, tuned.losses[:, 0], int(tuned.chosen[0]))

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the signed distance [N] of each clip of X [N, D] to the hyperplane."""
        check_is_fitted(self)
        features = validated_rows(self, X, np.float64, np.float32)
        if self.scaler_ is not None:
            features = self.scaler_.transform(features)
        with one_blas_thread():
            # The direction has length 1, so that decision values are distances.
            plane = Hyperplanes(self.direction_[None], np.array([self.offset_]))
            return plane.decisions(features)[:, 0]


SPECS = (
    ModelSpec("cav", "CAV", lambda _: LinearCAV("ridge", C=None, clip=CLIP), choose=None, kinds=("concept",)),
)
