"""Standardise clips' values on concepts by the moments of the training clips."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin

from obygaze_models.models.parameters import Estimator


class Standardised(TransformerMixin, Estimator):
    """Base class of estimators that give clips values on concepts: deviations from the training clips' mean.

    What is standardised, such as distances to a hyperplane, is called distances here.

    Attributes
    ----------
    concepts_ : ndarray of str, shape [K]
    mean_, scale_ : ndarray, shape [K]
        Moments of the training clips' distances.
    held_out_distances_ : ndarray, shape [N, K]
        The distances of each training clip, by what was learnt without its movie.
    """

    concepts: Sequence[str] | None = None
    held_out_distances_: NDArray[np.float64]

    def fit_moments(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        """Set `mean_` and `scale_` to the moments of distances [N, K]; return the distances standardised."""
        self.mean_ = distances.mean(axis=0)
        scale = distances.std(axis=0)
        # Rounding gives a constant column a tiny deviation, not 0.
        self.scale_ = np.where(scale > 1e-12 * (1 + np.abs(self.mean_)), scale, 1.0)
        return self._standardised(distances)

    @property
    def held_out_values_(self) -> NDArray[np.float64]:
        """The values of training clips, by what was learnt without their movies."""
        return self._standardised(self.held_out_distances_)

    def _standardised(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        """Standardise distances [N, K] by the moments of the training clips."""
        return np.asarray((distances - self.mean_) / self.scale_)
