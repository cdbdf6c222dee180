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

SHARE_OF_EPOCHS_WITH_REPLACEMENT = 0.7
"""Dead units are replaced after this first share of the epochs: later ones would not be learnt in time."""

REPLACED_ENCODER_LENGTH = 0.8
"""Length of a replaced unit's encoder; its decoder has length 1. With 1 it would be active too often."""

N_EPOCHS = 12
"""Passes over the clips, by default."""

N_CANDIDATE_TOKENS = 4096
"""Tokens whose reconstruction errors may become the directions of units that replace dead ones."""


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

    In the first epochs (`SHARE_OF_EPOCHS_WITH_REPLACEMENT`), units that are hardly ever active are replaced.

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
        statistics = _token_statistics(read, n_clips, block_size)
        if not statistics.scale:
            raise ModelError("there are no two different frames or tokens to learn units from")

        dictionary = resume_from or _new_dictionary(n_units, n_active, statistics, seed)
        batch_size = min(N_TOKENS_OF_STEP, statistics.n_tokens)
        n_steps_of_training = n_epochs * (statistics.n_tokens // batch_size)
        clips = _ShuffledClips(read, n_clips, block_size, batch_size)
        while dictionary.epoch < n_epochs:
            # Each epoch has its own seed, so that resumed training draws the same numbers. `_new_dictionary`
            # draws from (seed, 0).
            rng = np.random.default_rng((seed, 1 + dictionary.epoch))
            _run_epoch(dictionary, clips.batches(dictionary, rng), n_steps_of_training)
            dictionary.epoch += 1

            replaces_units = dictionary.epoch < SHARE_OF_EPOCHS_WITH_REPLACEMENT * n_epochs
            if replaces_units:
                tokens = _read_some_tokens(read, rng.permutation(n_clips))
                _replace_dead_units(dictionary, dictionary.scaled(tokens), rng)
            after_epoch(dictionary)
    return dictionary


# --- reading
# ---------------------------------------------------------------------------


def _block_size(read: Read, n_clips: int) -> int:
    """Compute how many clips to read at once, so that their tokens take about `BLOCK_BYTES`.

    The size of a clip is estimated by the mean of the first `N_CLIPS_TO_MEASURE` clips.
    """
    n_measured = min(n_clips, N_CLIPS_TO_MEASURE)
    n_values = sum(read(np.arange(row, row + 1)).size for row in range(n_measured))
    n_values_of_clip = n_values // max(n_measured, 1)
    bytes_of_clip = 4 * n_values_of_clip  # as float32
    return max(1, BLOCK_BYTES // max(bytes_of_clip, 1))


class _TokenStatistics(NamedTuple):
    """Number, mean and spread of all tokens, by which they are scaled.

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


def _token_statistics(read: Read, n_clips: int, block_size: int) -> _TokenStatistics:
    """Compute the number of tokens, their mean, and their mean distance from the mean.

    All clips are read twice, in blocks of `block_size` clips, since they may not fit in memory.
    """
    blocks = [np.arange(start, min(start + block_size, n_clips)) for start in range(0, n_clips, block_size)]
    n_tokens = 0
    total: NDArray[np.float64] | float = 0.0  # an array [D] after the first block
    for rows in blocks:
        tokens = read(rows)
        n_tokens += len(tokens)
        total = total + tokens.sum(axis=0, dtype=np.float64)
    # Without any token, all statistics are 0; the maximum avoids a division by 0.
    centre = np.asarray(total / max(n_tokens, 1), np.float32)
    # In float64, as squares of large float32 values overflow.
    centre64 = centre.astype(np.float64)

    sum_of_distances = 0.0
    for rows in blocks:
        sum_of_distances += float(np.linalg.norm(read(rows) - centre64, axis=1).sum())
    return _TokenStatistics(n_tokens, centre, scale=sum_of_distances / max(n_tokens, 1))


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
        # Tokens left over from a block, fewer than a batch, are added to the next block: of 1,200 tokens in
        # batches of 512, 176 are left.
        left_over = np.empty((0, len(dictionary.centre)), np.float32)
        for start in range(0, self.n_clips, self.block_size):
            tokens = self.read(order[start : start + self.block_size])
            block = np.concatenate([left_over, dictionary.scaled(tokens)])
            block = block[rng.permutation(len(block))]
            n_batches = len(block) // self.batch_size
            n_in_batches = n_batches * self.batch_size
            for first in range(0, n_in_batches, self.batch_size):
                yield block[first : first + self.batch_size]
            left_over = block[n_in_batches:]


def _read_some_tokens(read: Read, order: NDArray[np.intp]) -> Floats:
    """Read clips in the given order until there are `N_CANDIDATE_TOKENS` tokens, and return these [T, D].

    There are fewer if all clips together have fewer.
    """
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


def _new_dictionary(n_units: int, n_active: int, statistics: _TokenStatistics, seed: int) -> Dictionary:
    """Make an untrained dictionary: random directions of length 1, with the encoder equal to the decoder.

    The tokens' centre and scale are kept in it, by which tokens are scaled before they are encoded.
    """
    rng = np.random.default_rng((seed, 0))
    n_features = len(statistics.centre)
    decoder = rng.standard_normal((n_units, n_features), np.float32)
    decoder /= np.linalg.norm(decoder, axis=1, keepdims=True)
    n_parameters = 2 * n_units * n_features + n_units  # of encoder, decoder and bias
    return Dictionary(
        n_active=n_active,
        centre=statistics.centre,
        scale=statistics.scale,
        encoder=decoder.copy(),
        decoder=decoder,
        bias=np.zeros(n_units, np.float32),
        moments=np.zeros((2, n_parameters), np.float32),  # Adam's sums of gradients and of their squares
    )


def _run_epoch(dictionary: Dictionary, batches: Iterator[Floats], n_steps_of_training: int) -> None:
    """Train a dictionary, in place, on the batches of scaled tokens of one epoch.

    Two of its statistics are set to those of the epoch: `shares`, how often each unit was active, and
    `unexplained`, the share of the tokens' variance that the units leave. The learning rate falls over the
    steps of the whole training, `n_steps_of_training`.
    """
    n_active_tokens = np.zeros(len(dictionary.bias))  # of each unit
    n_tokens = 0
    squared_error = 0.0
    squared_length = 0.0
    for tokens in batches:
        step = _training_step(dictionary, tokens, n_steps_of_training)
        n_active_tokens += step.counts
        n_tokens += len(tokens)
        squared_error += step.squared_error
        squared_length += float(np.vdot(tokens, tokens))
    dictionary.shares = n_active_tokens / n_tokens
    # Scaled tokens have about the mean 0, so that the sum of their squared lengths measures their variance.
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


def _training_step(dictionary: Dictionary, tokens: Floats, n_steps_of_training: int) -> _Step:
    """Take one Adam step on the mean squared reconstruction error of a batch of scaled tokens [B, D].

    The dictionary is updated in place.
    """
    codes = dictionary.encode(tokens)  # [B, H]
    reconstructions = np.asarray(codes @ dictionary.decoder, np.float32)  # [B, D]
    error = np.subtract(reconstructions, tokens, out=reconstructions)  # overwrites them, to save memory
    squared_error = float(np.vdot(error, error))  # summed over tokens and features

    gradients = _gradients(dictionary, tokens, codes, error)
    _take_adam_step(dictionary, gradients, _learning_rate(dictionary.step, n_steps_of_training))
    # The directions keep length 1: longer ones would allow smaller activations without any other effect.
    dictionary.decoder /= np.linalg.norm(dictionary.decoder, axis=1, keepdims=True)
    active_units = codes.indices  # the column of each non-zero activation
    counts = np.bincount(active_units, minlength=len(dictionary.bias))
    return _Step(counts, squared_error)


class _Gradients(NamedTuple):
    """The derivatives of the loss by the parameters of a dictionary, in the order of the parameters.

    Attributes
    ----------
    encoder, decoder : ndarray of float32, shape [H, D]
    bias : ndarray of float32, shape [H]
    """

    encoder: Floats
    decoder: Floats
    bias: Floats


def _gradients(dictionary: Dictionary, tokens: Floats, codes: csr_matrix, error: Floats) -> _Gradients:
    """Compute the derivatives of the mean squared error of a batch by the parameters.

    The forward pass is codes = encoder times token plus bias, for active units, then reconstruction = codes @
    decoder. By the chain rule, derivatives are computed in the reverse order:

    1. by the reconstruction, from the error;
    2. by the decoder and by the codes, from that;
    3. by the encoder and by the bias, from the derivative by the codes.

    Parameters
    ----------
    dictionary : Dictionary
    tokens : ndarray, shape [B, D]
        Scaled.
    codes : csr_matrix, shape [B, H]
        The tokens' activations.
    error : ndarray, shape [B, D]
        The tokens' reconstructions less the tokens.
    """
    derivative_by_reconstruction = error * np.float32(2 / len(tokens))  # [B, D]

    gradient_of_decoder = np.asarray(codes.T @ derivative_by_reconstruction, np.float32)  # [H, D]
    # The length of a direction in the decoder stays 1, so that the part of the gradient along it is removed.
    lengths_along = np.einsum("hd,hd->h", gradient_of_decoder, dictionary.decoder)  # dot products, [H]
    gradient_of_decoder -= lengths_along[:, None] * dictionary.decoder

    derivative_by_codes = _derivative_by_codes(codes, derivative_by_reconstruction, dictionary.decoder)
    gradient_of_encoder = derivative_by_codes.T @ tokens
    gradient_of_bias = derivative_by_codes.sum(axis=0)  # a matrix [1, H]
    return _Gradients(
        encoder=np.asarray(gradient_of_encoder, np.float32),
        decoder=gradient_of_decoder,
        bias=np.asarray(gradient_of_bias, np.float32).reshape(-1),
    )


def _learning_rate(step: int, n_steps_of_training: int) -> float:
    """Compute Adam's learning rate at a step: it rises over the first steps, then falls to near 0."""
    warm_up = min(1.0, (step + 1) / N_WARM_UP_STEPS)
    return LEARNING_RATE * warm_up * math.sqrt(1 - step / n_steps_of_training)


def _take_adam_step(dictionary: Dictionary, gradients: _Gradients, learning_rate: float) -> None:
    """Move the parameters of a dictionary by one step of Adam, in place.

    The dictionary also keeps Adam's state between steps, which is updated: the moments of the gradients, one
    pair of arrays for each array of parameters, and the number of steps and the decays, which are the same
    for all of them. The gradients are overwritten with intermediate values.
    """
    gradient_decay, square_decay = dictionary.decays.tolist()
    for (parameters, moments), gradient in zip(_parameters_with_moments(dictionary), gradients, strict=True):
        # All arrays begin with the same number of steps and the same decays. `adam_step` changes the state,
        # the moments and, through flat views, the parameters.
        state = Adam(
            gradient_sum=moments[0],
            square_sum=moments[1],
            n_steps=dictionary.step,
            gradient_decay=gradient_decay,
            square_decay=square_decay,
        )
        adam_step(parameters.reshape(-1), gradient.reshape(-1), state, learning_rate)
    # After the step, number and decays are again the same for all arrays: those of the last one are kept.
    dictionary.step = state.n_steps
    dictionary.decays = np.array([state.gradient_decay, state.square_decay])


def _derivative_by_codes(
    codes: csr_matrix, derivative_by_reconstruction: Floats, decoder: Floats
) -> csr_matrix:
    """Compute the derivative of the loss by each non-zero activation, as a sparse matrix [B, H].

    The derivative by the activation of a unit in a token is a dot product: of the derivative by the token's
    reconstruction, and of the unit's direction. A dense matrix product would compute it for all H units,
    though few are active in a token.

    Parameters
    ----------
    codes : csr_matrix, shape [B, H]
        Activations. The result has its entries at the same places.
    derivative_by_reconstruction : ndarray of float32, shape [B, D]
    decoder : ndarray of float32, shape [H, D]
        The directions of units.
    """
    # The token and the unit of each of the E entries of the sparse matrix.
    n_entries_of_tokens = np.diff(codes.indptr)  # indptr holds the place at which each row's entries begin
    token_of_entry = np.repeat(np.arange(len(n_entries_of_tokens)), n_entries_of_tokens)
    unit_of_entry = codes.indices

    # In blocks of entries, to bound the memory.
    derivatives = np.empty(codes.nnz, np.float32)
    for start in range(0, codes.nnz, N_ENTRIES_AT_ONCE):
        block = slice(start, start + N_ENTRIES_AT_ONCE)
        by_reconstruction = derivative_by_reconstruction[token_of_entry[block]]  # [E of block, D]
        directions = decoder[unit_of_entry[block]]  # [E of block, D]
        np.einsum("ed,ed->e", by_reconstruction, directions, out=derivatives[block])
    return csr_matrix((derivatives, codes.indices, codes.indptr), shape=codes.shape)


def _parameters_with_moments(dictionary: Dictionary) -> Iterator[tuple[Floats, Floats]]:
    """Yield encoder, decoder and bias, each with a view of its moments in Adam.

    The moments are decaying sums of the gradient and of its square, [2, number of parameters]. In the
    dictionary they are side by side, in the order of the parameters.
    """
    parameters = (dictionary.encoder, dictionary.decoder, dictionary.bias)
    end_of_encoder = dictionary.encoder.size
    end_of_decoder = end_of_encoder + dictionary.decoder.size
    moments = np.split(dictionary.moments, [end_of_encoder, end_of_decoder], axis=1)
    return zip(parameters, moments, strict=True)


def _replace_dead_units(dictionary: Dictionary, tokens: Floats, rng: np.random.Generator) -> None:
    """Replace units that are hardly ever active by directions of tokens that are reconstructed badly.

    A dead unit gets the direction of the reconstruction error of one of the scaled tokens [T, D]. Tokens are
    drawn with probability proportional to the fourth power of the error's length, so that the worst ones are
    preferred. The dictionary is updated in place.
    """
    dead = np.flatnonzero(dictionary.shares < SMALLEST_LIVE_SHARE)
    if not len(dead):
        return

    reconstructions = np.asarray(dictionary.encode(tokens) @ dictionary.decoder)
    errors = tokens - reconstructions  # [T, D]
    lengths = np.linalg.norm(errors, axis=1).astype(np.float64)
    odds = lengths**4
    n_possible = int((odds > 0).sum())
    if not n_possible:
        return  # every token is reconstructed without an error

    # Each dead unit gets another token, unless there are fewer tokens than dead units.
    may_repeat = len(dead) > n_possible
    drawn = rng.choice(len(tokens), len(dead), replace=may_repeat, p=odds / odds.sum())

    # Adam forgets the gradients of the parameters that are replaced.
    dictionary.decoder[dead] = errors[drawn] / lengths[drawn, None]
    dictionary.encoder[dead] = REPLACED_ENCODER_LENGTH * dictionary.decoder[dead]
    dictionary.bias[dead] = 0
    _forget_gradients(dictionary, dead)


def _forget_gradients(dictionary: Dictionary, units: NDArray[np.intp]) -> None:
    """Set Adam's moments of some units' parameters to 0, in place, as at the beginning of training."""
    for parameters, moments in _parameters_with_moments(dictionary):
        # A view of the moments with a row for each unit, like the parameters: [2, H, D], or [2, H, 1].
        n_units = len(parameters)
        moments_by_unit = moments.reshape(2, n_units, -1)
        moments_by_unit[:, units] = 0
