"""Encode tokens by the units of a sparse autoencoder, few of which are active in a token.

A token x, less the mean of all and over their mean length, is encoded as the K largest of W x + b that are
above 0, and decoded as the sum of the units' directions, weighed by these (top-k sparse autoencoders:
Makhzani and Frey 2013; Gao et al. 2024, arXiv 2406.04093). `dictionary_learning` trains the units.
"""

from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from obygaze_models.blas import one_blas_thread

Floats = NDArray[np.float32]

SMALLEST_LIVE_SHARE = 1e-3
"""A unit that was active in a smaller share of an epoch's tokens counts as dead."""


@dataclass(eq=False)
class Dictionary:
    """The H units of a sparse autoencoder, and the state of their training.

    Attributes
    ----------
    n_active : int
        Largest number of units that are active in a token, K; there are more if activations are equal.
    centre : ndarray of float32, shape [D]
    scale : float
        The mean distance of tokens from the centre.
    encoder, decoder : ndarray of float32, shape [H, D]
        The rows of the decoder have length 1.
    bias : ndarray of float32, shape [H]
    moments : ndarray of float32, shape [2, 2 H D + H]
    decays : ndarray of float64, shape [2]
        Moments and decays of `Adam`, for the parameters of encoder, decoder and bias one after the other.
    epoch, step : int
        Number of epochs and steps of the training so far.
    shares : ndarray of float64, shape [H]
        Share of the last epoch's tokens in which each unit was active.
    unexplained : float
        Share of the tokens' variance around the centre that their reconstruction in the last epoch missed.
    """

    n_active: int
    centre: Floats
    scale: float
    encoder: Floats
    decoder: Floats
    bias: Floats
    moments: Floats = field(default_factory=lambda: np.empty(0, np.float32))
    decays: NDArray[np.float64] = field(default_factory=lambda: np.ones(2))
    epoch: int = 0
    step: int = 0
    shares: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    unexplained: float = np.nan

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all attributes as arrays, for a file."""
        return {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Self:
        """Make a dictionary from the arrays that `to_arrays` returned."""
        attributes = {}
        for name, array in arrays.items():
            # Scalars were stored as arrays without dimensions.
            attributes[name] = array if array.ndim else array.item()
        return cls(**attributes)

    @property
    def n_dead(self) -> int:
        """Count the units that are active in fewer than one of 1,000 tokens."""
        return int((self.shares < SMALLEST_LIVE_SHARE).sum())

    def scaled(self, tokens: NDArray[Any]) -> Floats:
        """Subtract the centre from tokens [T, D], and divide by the scale."""
        return np.asarray((tokens - self.centre) / np.float32(self.scale), np.float32)

    def encode(self, scaled: Floats) -> csr_matrix:
        """Compute the sparse activations [T, H] of scaled tokens [T, D].

        For each token the `n_active` largest activations are kept, if they are above 0. Activations equal to
        the smallest of these are kept too.
        """
        activations = scaled @ self.encoder.T
        activations += self.bias
        # `partition` puts the `n_active` largest activations of each token last, the smallest of them first.
        partitioned = np.partition(activations, -self.n_active, axis=1)
        smallest_kept = partitioned[:, -self.n_active]  # [T]
        is_active = (activations >= smallest_kept[:, None]) & (activations > 0)

        tokens, units = np.nonzero(is_active)  # token by token
        values = activations[tokens, units]
        # A sparse matrix in CSR form: the values of all tokens one after the other, the unit of each value,
        # and the place at which the values of each token begin, with the end of the last one.
        n_values_of_tokens = is_active.sum(axis=1)
        starts = np.concatenate([[0], np.cumsum(n_values_of_tokens)])
        return csr_matrix((values, units, starts), shape=activations.shape)


def present_tokens(values: NDArray[Any]) -> Floats:
    """Collect the present tokens or frames of clips [N, T, D], one clip after the other: [n, D].

    Where a clip has fewer tokens than the longest, tokens are absent: all of their values are NaN.
    """
    tokens = values.reshape(-1, values.shape[-1])
    is_present = ~np.isnan(tokens[:, 0])
    return np.asarray(tokens[is_present], np.float32)


class ClipActivations(NamedTuple):
    """The activations of a clip's present tokens.

    Attributes
    ----------
    tokens : ndarray of int, shape [n]
        Indices of the present tokens among all of the clip.
    values : ndarray of float32, shape [n, H]
    """

    tokens: NDArray[np.intp]
    values: Floats


def activations_of_clip(dictionary: Dictionary, clip: Any) -> ClipActivations:
    """Encode the present tokens of a clip [T, D]; a token of NaN is absent.

    Examples
    --------
    A dictionary of one unit, of tokens of one feature. The first token of the clip is absent.

    >>> one = np.ones((1, 1), np.float32)
    >>> bias = np.zeros(1, np.float32)
    >>> dictionary = Dictionary(n_active=1, centre=bias, scale=1.0, encoder=one, decoder=one, bias=bias)
    >>> tokens, values = activations_of_clip(dictionary, [[np.nan], [3.0]])
    >>> tokens.tolist(), values.tolist()
    ([1], [[3.0]])
    """
    tokens = np.asarray(clip, np.float32)
    present = np.flatnonzero(~np.isnan(tokens[:, 0]))
    with one_blas_thread():
        activations = dictionary.encode(dictionary.scaled(tokens[present])).toarray()
    return ClipActivations(present, activations)


def strongest_activations(
    dictionary: Dictionary, clips: Any
) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Find each unit's largest activation in each clip, and the token where it occurs.

    Parameters
    ----------
    dictionary : Dictionary
    clips : array-like or StoredClips, shape [N, T, D]
        Tokens; NaN where absent. Every clip has at least one.

    Returns
    -------
    largest : ndarray of float32, shape [N, H]
        The largest activation.
    token_of_largest : ndarray of int32, shape [N, H]
        Index of the token that has it.
    """
    shape = (len(clips), len(dictionary.bias))
    largest = np.zeros(shape, np.float32)
    token_of_largest = np.zeros(shape, np.int32)
    for row in range(len(clips)):
        # Read as a slice, since clips of a store are read by slices.
        clip = np.asarray(clips[row : row + 1])[0]
        activations = activations_of_clip(dictionary, clip)
        index_of_largest = activations.values.argmax(axis=0)  # among the present tokens, [H]
        token_of_largest[row] = activations.tokens[index_of_largest]
        largest[row] = activations.values.max(axis=0)
    return largest, token_of_largest
