"""Fit directions that know no concept: a control, which concept banks must beat."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from obygaze_models.concepts.bank import ConceptBank
from obygaze_models.concepts.cav_fitting import Floats, Hyperplanes, Kind
from obygaze_models.models.parameters import Positive
from obygaze_models.protocol.exchanges import rows_that_exchange

Directions = Literal["shuffled", "random"]
"""The directions of a control (`ControlBank`)."""


@dataclass(eq=False, repr=False)
class ControlBank(ConceptBank):
    """A concept bank whose directions know no concept.

    Shuffled directions are CAVs of presences that were exchanged between the clips of a movie. Whole rows are
    exchanged, so that concepts stay correlated with each other, and not with the clips. Random directions are
    as many as there are concepts.

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

    def _fit_tuned(self, X: Floats, present: NDArray[np.float64], groups: ArrayLike | None) -> Hyperplanes:
        """Fit the control's hyperplanes: CAVs of shuffled presences, or hyperplanes of random directions.

        As in `ConceptBank._fit_tuned`, the attributes `scaler_` and `held_out_distances_` are set.

        Parameters
        ----------
        X : ndarray, shape [N, D]
        present : ndarray, shape [N, K]
            Presence of each concept.
        groups : array-like, shape [N], optional
            The movie of each clip.
        """
        if self.directions == "shuffled":
            # Each clip gets the presences of another clip of its movie.
            rows = exchange_within_movies(np.asarray(groups), self.random_state)
            return super()._fit_tuned(X, present[rows], groups)
        return self._random_hyperplanes(X, n_concepts=present.shape[1])

    def _random_hyperplanes(self, X: Floats, n_concepts: int) -> Hyperplanes:
        """Fit the scaler, and draw hyperplanes with random directions in the scaled features of X [N, D].

        The hyperplanes go through the mean of the clips. The clips' distances to them are kept.
        """
        self._fit_scaler(X)
        rng = np.random.default_rng(self.random_state)
        directions = rng.normal(size=(n_concepts, X.shape[1]))
        hyperplanes = Hyperplanes(directions, np.zeros(n_concepts))
        # The directions were fitted to no clip, so that every clip counts as held out.
        self.held_out_distances_ = hyperplanes.distances(self._scale(X))
        return hyperplanes


def exchange_within_movies(movies: NDArray[Any], seed: int) -> NDArray[np.intp]:
    """Draw a random permutation of clips [N] that exchanges them within their movies only.

    Movies of one clip exchange theirs with each other (`rows_that_exchange`).

    `movies` [N] is the movie of each clip.
    """
    exchanged = np.arange(len(movies))
    rng = np.random.default_rng(seed)
    for rows in rows_that_exchange(movies):
        exchanged[rows] = rng.permutation(rows)
    return exchanged
