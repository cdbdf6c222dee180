"""Standardise clips' values on concepts by the moments of the training clips."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin

from obygaze_models.models.parameters import Estimator


class Standardised(TransformerMixin, Estimator):
    """Base class of estimators that compute clips' values on concepts, in deviations from the training mean.

    What is standardised, such as distances to a hyperplane, is called distances here; the result is called
    values.

    Attributes
    ----------
    concepts_ : ndarray of str, shape [K]
    mean_, scale_ : ndarray, shape [K]
        Mean and standard deviation of the training clips' distances.
    held_out_distances_ : ndarray, shape [N, K]
        The distances of each training clip, by what was learnt without its movie.
    """

    concepts: Sequence[str] | None = None
    held_out_distances_: NDArray[np.float64]

    def set_moments(self, distances: NDArray[np.float64]) -> None:
        """Set `mean_` and `scale_` to mean and standard deviation of the training clips' distances [N, K].

        The scale of a constant column is set to 1.
        """
        self.mean_ = distances.mean(axis=0)
        scale = distances.std(axis=0)
        # Rounding gives a constant column a tiny deviation, not 0.
        self.scale_ = np.where(scale > 1e-12 * (1 + np.abs(self.mean_)), scale, 1.0)

    @property
    def held_out_values_(self) -> NDArray[np.float64]:
        """The values [N, K] of the training clips: `held_out_distances_`, standardised."""
        return self._standardised(self.held_out_distances_)

    def _standardised(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        """Standardise distances [N, K] by the moments of the training clips."""
        return np.asarray((distances - self.mean_) / self.scale_)
