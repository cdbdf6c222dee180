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
from obygaze_models.concepts.dictionary import SMALLEST_LIVE_SHARE, Dictionary, Floats
from obygaze_models.errors import ModelError
from obygaze_models.models.adam import Adam, adam_step

Read = Callable[[NDArray[np.intp]], Floats]
"""Takes indices of clips, and returns their tokens [T, D], one clip after the other."""

N_TOKENS_OF_STEP = 512
"""Tokens of a training step, unless there are fewer."""

N_ENTRIES_AT_ONCE = 512
"""Non-zero activations whose derivatives are computed at once."""

N_CLIPS_TO_MEASURE = 16
"""First clips, by whose mean size it is estimated how many clips are read at once."""

BLOCK_BYTES = 1 << 25
"""Bytes of tokens, as float32, that are in memory at a time, at least one clip's."""

LEARNING_RATE = 2e-3
"""Adam's learning rate, which falls with the root of the share of steps that are left."""

N_WARM_UP_STEPS = 50
"""First steps, over which the learning rate rises linearly from near 0."""

RENEWAL_SHARE = 0.7
"""Dead units are renewed in this first share of the epochs: later ones would not be learnt in time."""

RENEWED_ENCODER_LENGTH = 0.8
"""Length of a renewed unit's encoder; its decoder has length 1. At the same length it is active too often."""

N_EPOCHS = 12
"""Passes over the clips, by default."""

N_CANDIDATE_TOKENS = 4096
"""Tokens of which dead units get the reconstruction errors as their new directions."""


def learn_dictionary(
    read: Read,
    n_clips: int,
    *,
    n_units: int,
    n_active: int,
    n_epochs: int,
    seed: int,
    resume_from: Dictionary | None = None,
    after_epoch: Callable[[Dictionary], object] = lambda _: None,
) -> Dictionary:
    """Train the units of a sparse autoencoder on the tokens of clips, without labels.

    Parameters
    ----------
    read : callable
        Takes indices of clips, and returns their tokens [T, D].
    n_clips : int
    n_units, n_active : int
        Number of units, and how many of them may be active in a token.
    n_epochs, seed : int
    resume_from : Dictionary, optional
        A dictionary that was trained for some epochs with the same arguments: training resumes after them,
        with the same result to the byte as without interruption.
    after_epoch : callable
        Called with the dictionary after every epoch, for example to save it.

    Raises
    ------
    ModelError
        There are no tokens, all are equal, or there are fewer units than may be active.
    """
    if n_active > n_units:
        raise ModelError(f"{n_active} active units of {n_units}: give as many units at least")
    block_size = _block_size(read, n_clips)
    with one_blas_thread():
        moments = _token_moments(read, n_clips, block_size)
        if not moments.scale:
            raise ModelError("there are no two different frames or tokens to learn units from")
        dictionary = resume_from or _new_dictionary(n_units, n_active, moments, seed)
        batch_size = min(N_TOKENS_OF_STEP, moments.n_tokens)
        n_steps_of_epoch = moments.n_tokens // batch_size
        for epoch in range(dictionary.epoch, n_epochs):
            # Each epoch has a seed of its own, so that resumed training draws the same; 0 is for the start.
            rng = np.random.default_rng((seed, 1 + epoch))
            clips = _ShuffledClips(read, n_clips, block_size, batch_size)
            _run_epoch(dictionary, clips.batches(dictionary, rng), n_epochs * n_steps_of_epoch)
            dictionary.epoch = epoch + 1
            if epoch + 1 < RENEWAL_SHARE * n_epochs:
                tokens = _read_some_tokens(read, rng.permutation(n_clips))
                _renew_dead_units(dictionary, dictionary.scaled(tokens), rng)
            after_epoch(dictionary)
    return dictionary


# --- reading
# ---------------------------------------------------------------------------


def _block_size(read: Read, n_clips: int) -> int:
    """Compute how many clips to read at once, so that their tokens take about `BLOCK_BYTES`.

    It is estimated from the sizes of the first clips.
    """
    n_measured = min(n_clips, N_CLIPS_TO_MEASURE)
    n_values = sum(read(np.arange(row, row + 1)).size for row in range(n_measured))
    n_values_of_clip = n_values // max(n_measured, 1)
    bytes_of_clip = 4 * n_values_of_clip  # as float32
    return max(1, BLOCK_BYTES // max(bytes_of_clip, 1))


class _TokenMoments(NamedTuple):
    """Number, mean and spread of all tokens.

    Attributes
    ----------
    n_tokens : int
    centre : ndarray, shape [D]
        Mean of the tokens.
    scale : float
        Mean distance of the tokens from their centre.
    """

    n_tokens: int
    centre: Floats
    scale: float


def _token_moments(read: Read, n_clips: int, block_size: int) -> _TokenMoments:
    """Compute the number of tokens, their mean, and their mean distance from the mean, in two passes."""
    blocks = [np.arange(start, min(start + block_size, n_clips)) for start in range(0, n_clips, block_size)]
    n_tokens = 0
    total: NDArray[np.float64] | float = 0.0
    for rows in blocks:
        tokens = read(rows)
        n_tokens += len(tokens)
        total = total + tokens.sum(axis=0, dtype=np.float64)
    centre = np.asarray(total / max(n_tokens, 1), np.float32)
    # In float64, as squares of large float32 values overflow.
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
        """Yield the scaled tokens of all clips in random order, in batches [B, D] of equal size.

        Clips are read in random order, block by block, and the tokens of each block are shuffled. Tokens that
        do not fill a last batch are left out.
        """
        order = rng.permutation(self.n_clips)
        # Tokens left over from a block, fewer than a batch, are added to the next block.
        left_over = np.empty((0, len(dictionary.centre)), np.float32)
        for start in range(0, self.n_clips, self.block_size):
            tokens = self.read(order[start : start + self.block_size])
            block = np.concatenate([left_over, dictionary.scaled(tokens)])
            block = block[rng.permutation(len(block))]
            n_in_batches = len(block) // self.batch_size * self.batch_size
            for first in range(0, n_in_batches, self.batch_size):
                yield block[first : first + self.batch_size]
            left_over = block[n_in_batches:]


def _read_some_tokens(read: Read, order: NDArray[np.intp]) -> Floats:
    """Read clips in the given order up to `N_CANDIDATE_TOKENS` tokens [T, D], for renewing dead units."""
    blocks = []
    n_tokens = 0
    for index in range(len(order)):
        if n_tokens >= N_CANDIDATE_TOKENS:
            break
        blocks.append(read(order[index : index + 1]))
        n_tokens += len(blocks[-1])
    return np.concatenate(blocks)[:N_CANDIDATE_TOKENS]


# --- learning
# ---------------------------------------------------------------------------


def _new_dictionary(n_units: int, n_active: int, moments: _TokenMoments, seed: int) -> Dictionary:
    """Make an untrained dictionary: random unit directions, with the encoder equal to the decoder."""
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
    """Train on all batches of scaled tokens of one epoch, and update the dictionary's statistics.

    `n_steps` is the number of steps of the whole training, for the learning rate.
    """
    counts = np.zeros(len(dictionary.bias))
    n_tokens = 0
    squared_error = 0.0
    squared_length = 0.0
    for tokens in batches:
        step = _training_step(dictionary, tokens, n_steps)
        counts += step.counts
        n_tokens += len(tokens)
        squared_error += step.squared_error
        squared_length += float(np.vdot(tokens, tokens))
    dictionary.shares = counts / n_tokens
    dictionary.unexplained = squared_error / squared_length


class _Step(NamedTuple):
    """Statistics of one training step.

    Attributes
    ----------
    counts : ndarray of int, shape [H]
        How often each unit was active.
    squared_error : float
        Sum of the tokens' squared errors before the step.
    """

    counts: NDArray[np.intp]
    squared_error: float


def _training_step(dictionary: Dictionary, tokens: Floats, n_steps: int) -> _Step:
    """Take one Adam step on the mean squared reconstruction error of a batch of scaled tokens [B, D].

    The dictionary is updated in place. `n_steps` is the number of steps of the whole training, over which the
    learning rate falls.
    """
    codes = dictionary.encode(tokens)  # [B, H]
    error = np.asarray(codes @ dictionary.decoder, np.float32)
    error -= tokens
    squared_error = float(np.vdot(error, error))
    # From here on, `error` is the derivative of the mean squared error by the reconstruction.
    error *= np.float32(2 / len(tokens))
    decoder_gradient = np.asarray(codes.T @ error, np.float32)
    # The length of a direction stays 1, so the gradient along it is removed.
    along = np.einsum("hd,hd->h", decoder_gradient, dictionary.decoder)
    decoder_gradient -= along[:, None] * dictionary.decoder
    by_codes = _derivative_by_codes(codes, error, dictionary.decoder)
    # An activation is encoder times token, plus bias.
    encoder_gradient = by_codes.T @ tokens
    bias_gradient = by_codes.sum(axis=0)
    gradients = (encoder_gradient, decoder_gradient, bias_gradient)
    warm_up = min(1.0, (dictionary.step + 1) / N_WARM_UP_STEPS)
    rate = LEARNING_RATE * warm_up * math.sqrt(1 - dictionary.step / n_steps)
    gradient_decay, square_decay = dictionary.decays.tolist()
    for (parameters, moments), gradient in zip(_parameters_with_moments(dictionary), gradients, strict=True):
        # Encoder, decoder and bias have moments of their own; they share the number of steps and the decays.
        state = Adam(
            gradient_sum=moments[0],
            square_sum=moments[1],
            n_steps=dictionary.step,
            gradient_decay=gradient_decay,
            square_decay=square_decay,
        )
        adam_step(parameters.reshape(-1), np.asarray(gradient, np.float32).reshape(-1), state, rate)
    dictionary.step = state.n_steps
    dictionary.decays = np.array([state.gradient_decay, state.square_decay])
    dictionary.decoder /= np.linalg.norm(dictionary.decoder, axis=1, keepdims=True)
    return _Step(np.bincount(codes.indices, minlength=len(dictionary.bias)), squared_error)


def _derivative_by_codes(codes: csr_matrix, error: Floats, decoder: Floats) -> csr_matrix:
    """Compute the derivative of the loss by each non-zero activation in `codes` [B, H], as a sparse matrix.

    It is the dot product of the token's `error` [B, D] with the unit's direction in the decoder [H, D]. A
    dense product of all activations would compute some 100 times as many numbers.
    """
    # The row of each non-zero entry of the sparse matrix, whose columns are `codes.indices`.
    rows = np.repeat(np.arange(codes.shape[0]), np.diff(codes.indptr))
    derivative = np.empty(codes.nnz, np.float32)
    for start in range(0, codes.nnz, N_ENTRIES_AT_ONCE):
        entries = slice(start, start + N_ENTRIES_AT_ONCE)
        directions = decoder[codes.indices[entries]]
        np.einsum("nd,nd->n", error[rows[entries]], directions, out=derivative[entries])
    return csr_matrix((derivative, codes.indices, codes.indptr), shape=codes.shape)


def _parameters_with_moments(dictionary: Dictionary) -> Iterator[tuple[Floats, Floats]]:
    """Yield encoder, decoder and bias, each with a view of its moments in Adam.

    The moments are running means of the gradient and of its square, [2, number of parameters].
    """
    size = dictionary.encoder.size
    moments = np.split(dictionary.moments, [size, 2 * size], axis=1)
    return zip((dictionary.encoder, dictionary.decoder, dictionary.bias), moments, strict=True)


def _renew_dead_units(dictionary: Dictionary, tokens: Floats, rng: np.random.Generator) -> None:
    """Replace units that are hardly ever active by directions of tokens that are reconstructed badly.

    A dead unit gets the direction of the reconstruction error of one of the scaled tokens [T, D], drawn with
    probability proportional to the fourth power of the error's length. The dictionary is updated in place.
    """
    dead = np.flatnonzero(dictionary.shares < SMALLEST_LIVE_SHARE)
    unexplained = tokens - np.asarray(dictionary.encode(tokens) @ dictionary.decoder)
    lengths = np.linalg.norm(unexplained, axis=1).astype(np.float64)
    odds = lengths**4
    n_possible = int((odds > 0).sum())
    if not len(dead) or not n_possible:
        return
    # A token is drawn more than once only if there are fewer than dead units.
    chosen = rng.choice(len(tokens), len(dead), replace=len(dead) > n_possible, p=odds / odds.sum())
    dictionary.decoder[dead] = unexplained[chosen] / lengths[chosen, None]
    dictionary.encoder[dead] = RENEWED_ENCODER_LENGTH * dictionary.decoder[dead]
    dictionary.bias[dead] = 0
    # The replaced units start with no gradients of the past.
    for parameters, moments in _parameters_with_moments(dictionary):
        for moment in moments:
            moment.reshape(len(parameters), -1)[dead] = 0
