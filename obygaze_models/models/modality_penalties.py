"""Fit the linear probe on joined features, with a penalty of its own for each modality."""

from dataclasses import dataclass
from itertools import product
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from obygaze_models.models.binary import LogitClassifier
from obygaze_models.models.grouped_selection import GroupedSelection
from obygaze_models.models.linear import PENALTIES
from obygaze_models.models.ridge_logistic import RidgeLogistic
from obygaze_models.models.scaling import ClippedScaler

RELATIVE_STRENGTHS = (1.0, 0.1, 10.0)
"""Inverse strengths to try for the penalties of all modalities but the first, in the order of preference.

They are multiples of the inverse strength of the first modality's penalty.
"""


@dataclass(eq=False, repr=False)
class PenaltyPerModality(LogitClassifier):
    """The linear probe with a penalty for each modality; the features are standardised one by one.

    Parameters
    ----------
    widths : tuple of int
        Number of features of each modality.

    Attributes
    ----------
    relative_ : tuple of float
        Inverse strengths of the modalities' penalties, as multiples of the first's.
    selection_ : GroupedSelection
        The fitted probe of these penalties.
    """

    widths: tuple[int, ...] = ()

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike) -> Self:
        """Choose the penalties by inner folds of movies, then fit on all clips.

        Parameters
        ----------
        X : array-like, shape [N, D]
            The features of all modalities side by side.
        y, groups : array-like, shape [N]
            The label and the movie of each clip.
        """
        # A penalty for each modality has a strength and ratios: how much weaker or stronger than the first
        # modality's penalty the others are. All ratios are tried here; each selection tries the strengths.
        # With three modalities the ratios are (1, 1, 1), (1, 1, 0.1), (1, 1, 10), (1, 0.1, 1) and so on.
        n_other_modalities = len(self.widths) - 1
        selections: dict[tuple[float, ...], GroupedSelection] = {}
        for ratios_of_others in product(RELATIVE_STRENGTHS, repeat=n_other_modalities):
            ratios = (1.0, *ratios_of_others)
            selections[ratios] = self._selection(ratios).fit(X, y, groups=groups)

        # The ratios are in the order of preference: of equal losses, the first is taken.
        ratios_tried = list(selections)
        losses = [_lowest_inner_loss(selection) for selection in selections.values()]
        self.relative_ = ratios_tried[int(np.argmin(losses))]

        # The probe with the best ratios is the model, with all that its selection found.
        self.selection_ = selections[self.relative_]
        self.classes_ = self.selection_.classes_
        self.threshold_ = self.selection_.threshold_
        self.held_out_ = self.selection_.held_out_
        self.candidates_ = self.selection_.candidates_
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Score each clip [N] of X [N, D]: the logit of its probability to be positive."""
        check_is_fitted(self)
        return np.asarray(self.selection_.decision_function(X), np.float64)

    def _selection(self, ratios: tuple[float, ...]) -> GroupedSelection:
        """Make the unfitted probe in which the inverse strengths of the penalties have these ratios.

        The probe has one penalty, on the squares of all weights. To make the penalty of a modality r times
        weaker, its features are multiplied by the root of r. If r is 4, its features are doubled. Weights of
        half the size then give the same logits, and the penalty on their squares is a quarter.
        """
        factor_of_modality = np.sqrt(ratios)
        weights = np.repeat(factor_of_modality, self.widths)  # one for each feature
        weighing = FunctionTransformer(weigh, kw_args={"weights": weights})
        pipeline = make_pipeline(ClippedScaler(), weighing, RidgeLogistic())
        return GroupedSelection(pipeline, PENALTIES)


def weigh(X: ArrayLike, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Multiply standardised features [N, D] by weights [D], which makes their penalties differ."""
    return np.asarray(X) * weights


def _lowest_inner_loss(selection: GroupedSelection) -> float:
    """Return the lowest inner loss of a selection's candidates."""
    return min(candidate.inner_loss for candidate in selection.candidates_)
