"""Define hyperplanes, the common form of all concept activation vectors."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False, slots=True)
class Hyperplanes:
    """K hyperplanes w x + b = 0, each with its concept on the positive side.

    Attributes
    ----------
    weights : ndarray of float64, shape [K, D]
    intercepts : ndarray of float64, shape [K]
    """

    weights: NDArray[np.float64]
    intercepts: NDArray[np.float64]

    def one(self, place: int) -> "Hyperplanes":
        """Return one of the hyperplanes."""
        return Hyperplanes(self.weights[[place]], self.intercepts[[place]])

    @property
    def norms(self) -> NDArray[np.float64]:
        """Length of each weight vector [K]."""
        lengths: NDArray[np.float64] = np.sqrt(np.einsum("kd,kd->k", self.weights, self.weights))
        return lengths

    def decisions(self, X: Floats) -> NDArray[np.float64]:
        """Compute w x + b for each row of X [N, D] and each hyperplane: [N, K]."""
        values: NDArray[np.float64] = X.astype(np.float64) @ self.weights.T + self.intercepts
        return values

    def distances(self, X: Floats) -> NDArray[np.float64]:
        """Compute the signed distance (w x + b) / ||w|| [N, K], in the units of X.

        A hyperplane without a direction has no distance; its decision is given.
        """
        lengths = self.norms
        return self.decisions(X) / np.where(lengths > 0, lengths, 1.0)
