"""Learn units without labels, a sparse autoencoder few of whose units are active, and decide by them.

A token x, less the mean of all and over their mean length, is encoded as the K largest of W x + b that are
above 0, and decoded as the sum of the units' directions, weighed by these (top-k sparse autoencoders:
Makhzani and Frey 2013; Gao et al. 2024, arXiv 2406.04093). Training reads clips in blocks, in an order drawn
from the seed and the epoch, so that it needs the memory of one block and can go on after any epoch. A
bottleneck decides by units as by concepts.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from sklearn.utils.validation import check_is_fitted

from obygaze_models.blas import one_blas_thread
from obygaze_models.concepts.bank import Standardised
from obygaze_models.concepts.in_time import ConceptsUnlabelled
from obygaze_models.errors import ModelError
from obygaze_models.models.adam import Adam, adam_step
from obygaze_models.models.linear import FrameReader
from obygaze_models.models.parameters import Count, Seed
from obygaze_models.models.spec import ModelSpec

Floats = NDArray[np.float32]
Read = Callable[[NDArray[np.intp]], Floats]
"""Takes places of clips, gives their tokens [T, D]."""

BATCH = 512
CLIPS_TRIED = 16
"""Clips by which it is known how many are read at once."""
BLOCK_BYTES = 1 << 25
"""Bytes of tokens, as float32, that are in memory at a time, at least one clip's."""

RATE, WARM_STEPS = 2e-3, 50
"""Adam's rate after the first steps; it falls with the root of the steps that are left."""

RARE = 1e-3
"""A unit active in a smaller share of an epoch's tokens is dead, and takes a badly explained token."""

RENEWED = 0.7
"""Share of the epochs after which dead units are renewed: later ones could not be learnt."""

N_EPOCHS = 12
"""Passes over the clips."""

TRIED = 4096
"""Tokens among which dead units choose."""


@dataclass(eq=False)
class Dictionary:
    """Units of a sparse autoencoder, and how far their training is.

    Attributes
    ----------
    n_active : int
        Units that are active in a token, K, or fewer; more only where activations are equal.
    centre : ndarray of float32, shape [D]
    scale : float
        The mean length of tokens less the centre.
    encoder, decoder : ndarray of float32, shape [H, D]
        The rows of the decoder have length 1.
    bias : ndarray of float32, shape [H]
    moments : ndarray of float32, shape [2, 2 H D + H]
    decays : ndarray of float64, shape [2]
        Adam's (`obygaze_models.models.adam.Adam`).
    epoch, step : int
        How many are done.
    shares : ndarray of float64, shape [H]
        Share of the last epoch's tokens in which each unit was active.
    unexplained : float
        Share of the tokens' variance about the centre that the last epoch did not explain.
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
        """Return all of it as arrays."""
        return {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Self:
        """Make it again of what `to_arrays` gave."""
        return cls(**{name: array if array.ndim else array.item() for name, array in arrays.items()})

    @property
    def n_dead(self) -> int:
        """Count the units that are active in fewer than one of 1,000 tokens."""
        return int((self.shares < RARE).sum())

    def scaled(self, tokens: NDArray[Any]) -> Floats:
        """Subtract the centre from tokens [T, D], and divide by the scale."""
        return np.asarray((tokens - self.centre) / np.float32(self.scale), np.float32)

    def encode(self, scaled: Floats) -> csr_matrix:
        """Compute the activations [T, H] of scaled tokens [T, D]."""
        active = scaled @ self.encoder.T
        active += self.bias
        least = np.partition(active, -self.n_active, axis=1)[:, [-self.n_active]]
        rows, columns = np.nonzero((active >= least) & (active > 0))
        starts = np.searchsorted(rows, np.arange(len(scaled) + 1))
        return csr_matrix((active[rows, columns], columns, starts), shape=active.shape)


def present_tokens(values: NDArray[Any]) -> Floats:
    """Return the tokens or frames of clips [N, T, D] that are there, one after another: [n, D].

    A clip with fewer than the longest has NaN in the place of the others.
    """
    tokens = values.reshape(-1, values.shape[-1])
    return np.asarray(tokens[~np.isnan(tokens[:, 0])], np.float32)


def learn_dictionary(
    read: Read,
    n_clips: int,
    *,
    n_units: int,
    n_active: int,
    n_epochs: int,
    seed: int,
    begun: Dictionary | None = None,
    keep: Callable[[Dictionary], object] = lambda _: None,
) -> Dictionary:
    """Train a dictionary of units on the tokens of clips.

    Parameters
    ----------
    read : callable
    n_clips, n_units, n_active, n_epochs, seed : int
    begun : Dictionary, optional
        Of some epochs with the same arguments: training goes on after them, to the same bytes.
    keep : callable
        Called with it after every epoch.

    Raises
    ------
    ModelError
        There are no tokens, all are equal, or there are fewer units than may be active.
    """
    if n_active > n_units:
        raise ModelError(f"{n_active} active units of {n_units}: give as many units at least")
    n_tried = min(n_clips, CLIPS_TRIED)  # one alone may be the shortest
    n_numbers = sum(read(np.arange(row, row + 1)).size for row in range(n_tried)) // max(n_tried, 1)
    per_block = max(1, BLOCK_BYTES // max(4 * n_numbers, 1))
    with one_blas_thread():
        n_tokens, centre, scale = _moments(read, n_clips, per_block)
        if not scale:
            raise ModelError("there are no two different frames or tokens to learn units from")
        size = min(BATCH, n_tokens)
        made = begun or _new(n_units, n_active, centre, scale, seed)
        n_steps = n_epochs * (n_tokens // size)
        for epoch in range(made.epoch, n_epochs):
            rng = np.random.default_rng((seed, 1 + epoch))
            counts, left, total, rest = np.zeros(n_units), 0.0, 0.0, np.empty((0, len(centre)), np.float32)
            order = rng.permutation(n_clips)
            for start in range(0, n_clips, per_block):
                block = np.concatenate([rest, made.scaled(read(order[start : start + per_block]))])
                block = block[rng.permutation(len(block))]
                whole = len(block) // size * size
                for first in range(0, whole, size):
                    batch = block[first : first + size]
                    used, lost = _step(made, batch, n_steps)
                    counts, left, total = counts + used, left + lost, total + float(np.vdot(batch, batch))
                rest = block[whole:]  # fewer than a batch wait for the next block
            made.shares = counts / (n_tokens // size * size)
            made.unexplained, made.epoch = left / total, epoch + 1
            if epoch + 1 < RENEWED * n_epochs:
                _renew(made, made.scaled(_some(read, rng.permutation(n_clips))), rng)
            keep(made)
    return made


def _moments(read: Read, n_clips: int, per_block: int) -> tuple[int, Floats, float]:
    """Count tokens, and compute their mean [D] and their mean distance from it."""
    blocks = [np.arange(start, min(start + per_block, n_clips)) for start in range(0, n_clips, per_block)]
    n, total = 0, 0.0
    for rows in blocks:
        tokens = read(rows)
        n, total = n + len(tokens), total + tokens.sum(axis=0, dtype=np.float64)
    centre = np.asarray(total / max(n, 1), np.float32)
    middle = centre.astype(np.float64)  # which has the squares of all that float32 has
    length = sum(float(np.linalg.norm(read(rows) - middle, axis=1).sum()) for rows in blocks)
    return n, centre, length / max(n, 1)


def _new(n_units: int, n_active: int, centre: Floats, scale: float, seed: int) -> Dictionary:
    """Draw directions; units decode as they encode, to begin with."""
    rng, d = np.random.default_rng((seed, 0)), len(centre)
    decoder = rng.standard_normal((n_units, d), np.float32)
    decoder /= np.linalg.norm(decoder, axis=1, keepdims=True)
    bias, moments = np.zeros(n_units, np.float32), np.zeros((2, 2 * n_units * d + n_units), np.float32)
    return Dictionary(n_active, centre, scale, decoder.copy(), decoder, bias, moments)


def _parts(made: Dictionary) -> Iterator[tuple[Floats, Floats]]:
    """Pair encoder, decoder and bias with their moments [2, ...]."""
    size = made.encoder.size
    moments = np.split(made.moments, [size, 2 * size], axis=1)
    return zip((made.encoder, made.decoder, made.bias), moments, strict=True)


def _step(made: Dictionary, z: Floats, n_steps: int) -> tuple[NDArray[np.intp], float]:
    """Move the units along the gradient of the squared error of scaled tokens [B, D].

    Returns how often each unit was active [H], and the squared error before.
    """
    codes = made.encode(z)
    error = np.asarray(codes @ made.decoder, np.float32)
    error -= z
    lost = float(np.vdot(error, error))
    error *= np.float32(2 / len(z))
    to_decoder = np.asarray(codes.T @ error, np.float32)
    to_decoder -= np.einsum("hd,hd->h", to_decoder, made.decoder)[:, None] * made.decoder
    # The slope of active units alone is needed: a product of all would be 100 times as many.
    rows = np.repeat(np.arange(len(z)), np.diff(codes.indptr))
    slope = np.empty(codes.nnz, np.float32)
    for start in range(0, codes.nnz, BATCH):
        some = slice(start, start + BATCH)
        np.einsum("nd,nd->n", error[rows[some]], made.decoder[codes.indices[some]], out=slope[some])
    through = csr_matrix((slope, codes.indices, codes.indptr), shape=codes.shape)
    gradients = (through.T @ z, to_decoder, through.sum(axis=0))
    rate = RATE * min(1.0, (made.step + 1) / WARM_STEPS) * math.sqrt(1 - made.step / n_steps)
    for (own, moments), gradient in zip(_parts(made), gradients, strict=True):
        state = Adam(moments[0], moments[1], made.step, *made.decays.tolist())
        adam_step(own.reshape(-1), np.asarray(gradient, np.float32).reshape(-1), state, rate)
    made.step, made.decays = state.n_steps, np.array([state.decay_1, state.decay_2])
    made.decoder /= np.linalg.norm(made.decoder, axis=1, keepdims=True)
    return np.bincount(codes.indices, minlength=len(made.bias)), lost


def _some(read: Read, order: NDArray[np.intp]) -> Floats:
    """Read the tokens of clips in some order until there are enough to choose among."""
    found, n = [], 0
    for place in range(len(order)):
        if n < TRIED:
            found.append(read(order[place : place + 1]))
            n += len(found[-1])
    return np.concatenate(found)[:TRIED]


def _renew(made: Dictionary, z: Floats, rng: np.random.Generator) -> None:
    """Give dead units the directions of what is left of tokens [T, D], drawn by its length to the fourth."""
    dead = np.flatnonzero(made.shares < RARE)
    left = z - np.asarray(made.encode(z) @ made.decoder)
    lengths = np.linalg.norm(left, axis=1).astype(np.float64)
    odds = lengths**4
    possible = int((odds > 0).sum())
    if not len(dead) or not possible:
        return
    chosen = rng.choice(len(z), len(dead), replace=len(dead) > possible, p=odds / odds.sum())
    made.decoder[dead] = left[chosen] / lengths[chosen, None]
    made.encoder[dead], made.bias[dead] = 0.8 * made.decoder[dead], 0
    for own, moments in _parts(made):
        for moment in moments:
            moment.reshape(len(own), -1)[dead] = 0


# --- a bottleneck of units
# ---------------------------------------------------------------------------
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

    n_units: Count = 256
    n_active: Count = 8
    n_epochs: Count = N_EPOCHS
    random_state: Seed = 0

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, groups: ArrayLike | None = None) -> Self:
        """Learn the units of frames X [N, F, D]; y and groups are not used.

        Raises
        ------
        ModelError
            There are fewer units than may be active.
        """
        del y, groups
        self._validate_params()
        frames = self._first_frames(X)

        def read(rows: NDArray[np.intp]) -> NDArray[np.float32]:
            return present_tokens(frames[rows])

        sizes = {name: getattr(self, name) for name in ("n_units", "n_active", "n_epochs")}
        self.dictionary_ = learn_dictionary(read, len(frames), seed=self.random_state, **sizes)
        self.concepts_ = np.array([f"unit{number + 1}" for number in range(self.n_units)])
        self.cross_distances_ = np.nanmax(self.frame_scores(frames), axis=1)
        self.rescale(self.cross_distances_)
        return self

    def frame_scores(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute each frame's activations [N, F, H]; NaN where a frame is absent."""
        check_is_fitted(self)
        frames = self._frames(X)
        scores = np.full((*frames.shape[:2], self.n_units), np.nan)
        for clip, own in zip(frames, scores, strict=True):
            there, active = _active(self.dictionary_, clip)
            own[there] = active
        return scores

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute each clip's largest activations [N, H], standardised as in training clips."""
        return self._standardised(np.nanmax(self.frame_scores(X), axis=1))


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


def _make(seed: int) -> ConceptsUnlabelled:
    return ConceptsUnlabelled("logistic", bank=UnitBank(random_state=seed), random_state=seed)


_USES, _BESIDE = ("groups", "unlabelled"), ("linear", "mean_frames", "pcbm_time")

SPECS = (ModelSpec("units", "Units without labels", _make, None, "frames", _USES, kinds=(), beside=_BESIDE),)
