"""Decide by units that are learnt without labels, as a bottleneck does by concepts."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from obygaze_models.blas import one_blas_thread
from obygaze_models.concepts.bank import Standardised
from obygaze_models.concepts.dictionary import Dictionary, learn_dictionary
from obygaze_models.concepts.in_time import ConceptsUnlabelled
from obygaze_models.models.linear import FrameReader, check_frames
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
    cross_distances_ : ndarray of float64, shape [N, H]
        The training clips' largest activations: no label was used.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        name: [Interval(Integral, 1, None, closed="left")] for name in ("n_units", "n_active", "n_epochs")
    } | {"random_state": [Interval(Integral, 0, None, closed="left")]}

    n_units: int = 256
    n_active: int = 8
    n_epochs: int = 12
    random_state: int = 0

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, groups: ArrayLike | None = None) -> Self:
        """Learn the units of frames X [N, F, D]; y and groups are not used.

        Raises
        ------
        ModelError
            There are fewer units than may be active.
        """
        del y, groups
        self._validate_params()
        frames = check_frames(X)
        self.n_features_in_ = frames.shape[2]

        def read(rows: NDArray[np.intp]) -> NDArray[np.float32]:
            tokens = frames[rows].reshape(-1, self.n_features_in_)
            return np.asarray(tokens[~np.isnan(tokens[:, 0])], np.float32)

        sizes = {name: getattr(self, name) for name in ("n_units", "n_active", "n_epochs")}
        self.dictionary_ = learn_dictionary(read, len(frames), seed=self.random_state, **sizes)
        self.concepts_ = np.array([f"unit{number + 1}" for number in range(self.n_units)])
        self.cross_distances_ = strongest(self.dictionary_, frames)[0].astype(np.float64)
        self.rescale(self.cross_distances_)
        return self

    def frame_scores(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute each frame's activations [N, F, H]; NaN where a frame is absent."""
        check_is_fitted(self)
        frames = self._frames(X)
        scores = np.full((*frames.shape[:2], self.n_units), np.nan)
        for row in range(len(frames)):
            there, active = _active(self.dictionary_, frames[row])
            scores[row, there] = active
        return scores

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute each clip's largest activations [N, H], standardised as in training clips."""
        check_is_fitted(self)
        return self._standardised(strongest(self.dictionary_, self._frames(X))[0].astype(np.float64))


def strongest(dictionary: Dictionary, clips: Any) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Find each unit's largest activation in each clip's tokens [T, D], and the token that has it: [N, H].

    A token of NaN is absent.
    """
    shape = (len(clips), len(dictionary.bias))
    values, places = np.zeros(shape, np.float32), np.zeros(shape, np.int32)
    for row in range(len(clips)):
        there, active = _active(dictionary, np.asarray(clips[row : row + 1])[0])
        places[row] = there[active.argmax(axis=0)]
        values[row] = active.max(axis=0)
    return values, places


def _active(dictionary: Dictionary, clip: Any) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Find the present tokens of a clip [T, D], and their activations [T', H]."""
    tokens = np.asarray(clip, np.float32)
    there = np.flatnonzero(~np.isnan(tokens[:, 0]))
    with one_blas_thread():
        return there, dictionary.encode(dictionary.scaled(tokens[there])).toarray()


SPECS = (
    ModelSpec(
        "units",
        "Units without labels",
        lambda seed: ConceptsUnlabelled("logistic", bank=UnitBank(random_state=seed), random_state=seed),
        choose=None,
        reads="frames",
        uses=("groups", "unlabelled"),
        kinds=(),
        beside=("linear", "mean_frames", "pcbm_time"),
    ),
)
