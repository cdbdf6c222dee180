"""Learn units of clips' frames without labels, and decide by them as a bottleneck decides by concepts."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from obygaze_models.concepts.dictionary import activations_of_clip, present_tokens
from obygaze_models.concepts.dictionary_learning import N_EPOCHS, learn_dictionary
from obygaze_models.concepts.in_time import ConceptsUnlabelled
from obygaze_models.concepts.standardised import Standardised
from obygaze_models.models.frames import FrameReader
from obygaze_models.models.parameters import Count, Seed
from obygaze_models.models.spec import ModelSpec


@dataclass(eq=False, repr=False)
class UnitBank(FrameReader, Standardised):
    """Learn units of a sparse autoencoder on clips' frames, and give the largest activation of each.

    Parameters
    ----------
    n_units, n_active, n_epochs, random_state : int
        As of `learn_dictionary`.

    Attributes
    ----------
    dictionary_ : Dictionary
    concepts_ : ndarray of str, shape [H]
        ``unit1`` and so on.
    mean_, scale_ : ndarray of float64, shape [H]
        Moments of the training clips' activations.
    held_out_distances_ : ndarray of float64, shape [N, H]
        The training clips' largest activations by the same units. As no label was used, there is nothing to
        hold out.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> from obygaze_models.concepts.in_time import ConceptsUnlabelled
    >>> from obygaze_models.concepts.units import UnitBank
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> model = ConceptsUnlabelled("logistic", bank=UnitBank(16, 4))
    >>> model = model.fit(data.read("frames"), data.levels == "S", data.movies)
    >>> model.concepts_[:2]
    ('unit1', 'unit2')
    """

    n_units: Count = 256
    n_active: Count = 8
    n_epochs: Count = N_EPOCHS
    random_state: Seed = 0

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, groups: ArrayLike | None = None) -> Self:
        """Learn the units on frames X [N, F, D], without labels: y and groups are ignored.

        Raises
        ------
        ModelError
            There are fewer units than may be active.
        """
        del y, groups
        self._validate_params()
        frames = self._check_frames_to_fit(X)

        def read(rows: NDArray[np.intp]) -> NDArray[np.float32]:
            """Read the present frames of the clips in these rows, one clip after the other [frames, D]."""
            return present_tokens(frames[rows])

        self.dictionary_ = learn_dictionary(
            read,
            len(frames),
            n_units=self.n_units,
            n_active=self.n_active,
            n_epochs=self.n_epochs,
            seed=self.random_state,
        )
        self.concepts_ = np.array([f"unit{number + 1}" for number in range(self.n_units)])
        self.held_out_distances_ = self._largest_activations(frames)
        self.set_moments(self.held_out_distances_)
        return self

    def frame_scores(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the activation of each unit in each frame of X [N, F, D]: [N, F, H]; NaN if absent."""
        check_is_fitted(self)
        frames = self._check_frames(X)
        scores = np.full((*frames.shape[:2], self.n_units), np.nan)
        for row, clip in enumerate(frames):
            activations = activations_of_clip(self.dictionary_, clip)
            scores[row, activations.tokens] = activations.values
        return scores

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute each unit's largest activation in each clip [N, H], standardised as the training clips."""
        return self._standardised(self._largest_activations(X))

    def _largest_activations(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute each unit's largest activation over the present frames of each clip, [N, H]."""
        largest: NDArray[np.float64] = np.nanmax(self.frame_scores(X), axis=1)
        return largest


def _make_unit_bottleneck(seed: int) -> ConceptsUnlabelled:
    """Make the bottleneck of units for a seed."""
    return ConceptsUnlabelled("logistic", bank=UnitBank(random_state=seed), random_state=seed)


SPECS = (
    ModelSpec(
        "units",
        "Units without labels",
        _make_unit_bottleneck,
        choose=None,
        reads="frames",
        uses=("groups", "unlabelled"),
        kinds=(),
        compared_with=("linear", "mean_frames", "pcbm_time"),
    ),
)
