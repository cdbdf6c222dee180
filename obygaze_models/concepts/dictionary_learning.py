"""Train the units of a sparse autoencoder on the tokens of clips, without labels.

Training reads clips in blocks, in an order drawn from the seed and the epoch, so that it needs the memory of
one block and can go on after any epoch.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from obygaze_models.blas import one_blas_thread
from obygaze_models.concepts.dictionary import RARE, Dictionary, Floats
from obygaze_models.errors import ModelError
from obygaze_models.models.adam import Adam, adam_step

Read = Callable[[NDArray[np.intp]], Floats]
"""Takes rows of clips, gives their tokens [T, D], one clip after the other."""

BATCH = 512
"""Tokens a step."""

CLIPS_TRIED = 16
"""Clips by whose size it is known how many are read at once."""

BLOCK_BYTES = 1 << 25
"""Bytes of tokens, as float32, that are in memory at a time, at least one clip's."""

RATE = 2e-3
"""Adam's step size after the first steps; it falls with the root of the share of steps that are left."""

WARM_STEPS = 50
"""First steps, over which Adam's step size rises."""

RENEWED = 0.7
"""Share of the epochs after which dead units are renewed: later ones could not be learnt."""

RENEWED_ENCODER = 0.8
"""Length of a renewed unit's encoder, as a share of its decoder's: shorter, as it would be active often."""

N_EPOCHS = 12
"""Passes over the clips."""

TOKENS_TRIED = 4096
"""Tokens among which dead units choose."""


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
        Rows of clips -> their tokens [T, D].
    n_clips : int
    n_units, n_active : int
        Units, and how many of them may be active in a token.
    n_epochs, seed : int
    begun : Dictionary, optional
        Trained for some epochs with the same arguments: training goes on after them, to the same bytes.
    keep : callable
        Called with the dictionary after every epoch.

    Raises
    ------
    ModelError
        There are no tokens, all are equal, or there are fewer units than may be active.
    """
    if n_active > n_units:
        raise ModelError(f"{n_active} active units of {n_units}: give as many units at least")
    block_size = _clips_of_block(read, n_clips)
    with one_blas_thread():
        moments = _moments(read, n_clips, block_size)
        if not moments.scale:
            raise ModelError("there are no two different frames or tokens to learn units from")
        dictionary = begun or _new_dictionary(n_units, n_active, moments, seed)
        batch_size = min(BATCH, moments.n_tokens)
        n_steps_of_epoch = moments.n_tokens // batch_size
        for epoch in range(dictionary.epoch, n_epochs):
            rng = np.random.default_rng((seed, 1 + epoch))
            clips = _ShuffledClips(read, n_clips, block_size, batch_size)
            _run_epoch(dictionary, clips.batches(dictionary, rng), n_epochs * n_steps_of_epoch)
            dictionary.epoch = epoch + 1
            if epoch + 1 < RENEWED * n_epochs:
                tokens = _some_tokens(read, rng.permutation(n_clips))
                _renew_dead_units(dictionary, dictionary.scaled(tokens), rng)
            keep(dictionary)
    return dictionary


# --- reading
# ---------------------------------------------------------------------------


def _clips_of_block(read: Read, n_clips: int) -> int:
    """Compute how many clips have about `BLOCK_BYTES` of tokens, by the size of the first clips."""
    # One clip alone may be the shortest.
    n_tried = min(n_clips, CLIPS_TRIED)
    total = sum(read(np.arange(row, row + 1)).size for row in range(n_tried))
    numbers_of_clip = total // max(n_tried, 1)
    return max(1, BLOCK_BYTES // max(4 * numbers_of_clip, 1))


class _TokenMoments(NamedTuple):
    """Moments of all tokens.

    Attributes
    ----------
    n_tokens : int
    centre : ndarray, shape [D]
        Their mean.
    scale : float
        Their mean distance from it.
    """

    n_tokens: int
    centre: Floats
    scale: float


def _moments(read: Read, n_clips: int, block_size: int) -> _TokenMoments:
    """Read all clips twice, block by block, for the mean of their tokens and the distances from it."""
    blocks = [np.arange(start, min(start + block_size, n_clips)) for start in range(0, n_clips, block_size)]
    n_tokens = 0
    total: NDArray[np.float64] | float = 0.0
    for rows in blocks:
        tokens = read(rows)
        n_tokens += len(tokens)
        total = total + tokens.sum(axis=0, dtype=np.float64)
    centre = np.asarray(total / max(n_tokens, 1), np.float32)
    # float64 has the squares of all that float32 has.
    wide_centre = centre.astype(np.float64)
    lengths = 0.0
    for rows in blocks:
        lengths += float(np.linalg.norm(read(rows) - wide_centre, axis=1).sum())
    return _TokenMoments(n_tokens, centre, lengths / max(n_tokens, 1))


class _ShuffledClips(NamedTuple):
    """Clips that are read in random order.

    Attributes
    ----------
    read : callable
    n_clips : int
    block_size : int
        Clips that are read at a time.
    batch_size : int
        Tokens of a step.
    """

    read: Read
    n_clips: int
    block_size: int
    batch_size: int

    def batches(self, dictionary: Dictionary, rng: np.random.Generator) -> Iterator[Floats]:
        """Yield the scaled tokens of all clips in batches [B, D]; those that fill no batch are left out.

        Clips are read in random order, and the tokens of a block of clips are put in random order.
        """
        order = rng.permutation(self.n_clips)
        # Tokens that are fewer than a batch wait for the next block.
        waiting = np.empty((0, len(dictionary.centre)), np.float32)
        for start in range(0, self.n_clips, self.block_size):
            tokens = self.read(order[start : start + self.block_size])
            block = np.concatenate([waiting, dictionary.scaled(tokens)])
            block = block[rng.permutation(len(block))]
            n_in_batches = len(block) // self.batch_size * self.batch_size
            for first in range(0, n_in_batches, self.batch_size):
                yield block[first : first + self.batch_size]
            waiting = block[n_in_batches:]


def _some_tokens(read: Read, order: NDArray[np.intp]) -> Floats:
    """Read the tokens of clips in some order until there are enough for dead units to choose among."""
    blocks = []
    n_tokens = 0
    for index in range(len(order)):
        if n_tokens >= TOKENS_TRIED:
            break
        blocks.append(read(order[index : index + 1]))
        n_tokens += len(blocks[-1])
    return np.concatenate(blocks)[:TOKENS_TRIED]


# --- learning
# ---------------------------------------------------------------------------


def _new_dictionary(n_units: int, n_active: int, moments: _TokenMoments, seed: int) -> Dictionary:
    """Draw random directions; to begin with, units decode as they encode."""
    rng = np.random.default_rng((seed, 0))
    n_features = len(moments.centre)
    decoder = rng.standard_normal((n_units, n_features), np.float32)
    decoder /= np.linalg.norm(decoder, axis=1, keepdims=True)
    n_parameters = 2 * n_units * n_features + n_units
    return Dictionary(
        n_active=n_active,
        centre=moments.centre,
        scale=moments.scale,
        encoder=decoder.copy(),
        decoder=decoder,
        bias=np.zeros(n_units, np.float32),
        moments=np.zeros((2, n_parameters), np.float32),
    )


def _run_epoch(dictionary: Dictionary, batches: Iterator[Floats], n_steps: int) -> None:
    """Step once for each batch of scaled tokens, of `n_steps` of the whole training; note how it went."""
    counts = np.zeros(len(dictionary.bias))
    n_tokens = 0
    squared_error = 0.0
    squared_length = 0.0
    for tokens in batches:
        step = _step(dictionary, tokens, n_steps)
        counts += step.counts
        n_tokens += len(tokens)
        squared_error += step.squared_error
        squared_length += float(np.vdot(tokens, tokens))
    dictionary.shares = counts / n_tokens
    dictionary.unexplained = squared_error / squared_length


class _Step(NamedTuple):
    """What a step saw of its tokens.

    Attributes
    ----------
    counts : ndarray of int, shape [H]
        How often each unit was active.
    squared_error : float
        Sum of the tokens' squared errors before the step.
    """

    counts: NDArray[np.intp]
    squared_error: float


def _step(dictionary: Dictionary, tokens: Floats, n_steps: int) -> _Step:
    """Move the units along the gradient of the mean squared error of scaled tokens [B, D]."""
    codes = dictionary.encode(tokens)  # [B, H]
    error = np.asarray(codes @ dictionary.decoder, np.float32)
    error -= tokens
    squared_error = float(np.vdot(error, error))
    # From here on the derivative of the mean squared error by what is decoded.
    error *= np.float32(2 / len(tokens))
    by_decoder = np.asarray(codes.T @ error, np.float32)
    # Along a unit's direction nothing is to be moved, as its length stays 1.
    along = np.einsum("hd,hd->h", by_decoder, dictionary.decoder)
    by_decoder -= along[:, None] * dictionary.decoder
    by_codes = _derivative_by_codes(codes, error, dictionary.decoder)
    gradients = (by_codes.T @ tokens, by_decoder, by_codes.sum(axis=0))
    warmth = min(1.0, (dictionary.step + 1) / WARM_STEPS)
    rate = RATE * warmth * math.sqrt(1 - dictionary.step / n_steps)
    decay_1, decay_2 = dictionary.decays.tolist()
    for (parameters, moments), gradient in zip(_parameters(dictionary), gradients, strict=True):
        # Each of the three has sums of its own; steps and decays are those of all.
        state = Adam(moments[0], moments[1], dictionary.step, decay_1, decay_2)
        adam_step(parameters.reshape(-1), np.asarray(gradient, np.float32).reshape(-1), state, rate)
    dictionary.step = state.n_steps
    dictionary.decays = np.array([state.decay_1, state.decay_2])
    dictionary.decoder /= np.linalg.norm(dictionary.decoder, axis=1, keepdims=True)
    return _Step(np.bincount(codes.indices, minlength=len(dictionary.bias)), squared_error)


def _derivative_by_codes(codes: csr_matrix, error: Floats, decoder: Floats) -> csr_matrix:
    """Compute the derivative of the loss by each activation that is not 0: `error` [B, D] times directions.

    A product for all activations would be 100 times as many numbers.
    """
    rows = np.repeat(np.arange(codes.shape[0]), np.diff(codes.indptr))
    derivative = np.empty(codes.nnz, np.float32)
    for start in range(0, codes.nnz, BATCH):
        entries = slice(start, start + BATCH)
        directions = decoder[codes.indices[entries]]
        np.einsum("nd,nd->n", error[rows[entries]], directions, out=derivative[entries])
    return csr_matrix((derivative, codes.indices, codes.indptr), shape=codes.shape)


def _parameters(dictionary: Dictionary) -> Iterator[tuple[Floats, Floats]]:
    """Pair encoder, decoder and bias with their sums of Adam, [2, number of parameters]."""
    size = dictionary.encoder.size
    moments = np.split(dictionary.moments, [size, 2 * size], axis=1)
    return zip((dictionary.encoder, dictionary.decoder, dictionary.bias), moments, strict=True)


def _renew_dead_units(dictionary: Dictionary, tokens: Floats, rng: np.random.Generator) -> None:
    """Give dead units the directions of what is not explained of scaled tokens [T, D].

    Tokens are drawn in proportion to the fourth power of the length of what is not explained, so that it is
    those which are explained worst.
    """
    dead = np.flatnonzero(dictionary.shares < RARE)
    unexplained = tokens - np.asarray(dictionary.encode(tokens) @ dictionary.decoder)
    lengths = np.linalg.norm(unexplained, axis=1).astype(np.float64)
    odds = lengths**4
    n_possible = int((odds > 0).sum())
    if not len(dead) or not n_possible:
        return
    # A token is drawn more than once only where there are too few.
    chosen = rng.choice(len(tokens), len(dead), replace=len(dead) > n_possible, p=odds / odds.sum())
    dictionary.decoder[dead] = unexplained[chosen] / lengths[chosen, None]
    dictionary.encoder[dead] = RENEWED_ENCODER * dictionary.decoder[dead]
    dictionary.bias[dead] = 0
    for parameters, moments in _parameters(dictionary):
        for moment in moments:
            moment.reshape(len(parameters), -1)[dead] = 0
