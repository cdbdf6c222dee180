"""Train attentive probes of all inner folds and penalties together, in one pass over the clips an epoch.

A probe is trained on each *group* of clips: those that an inner fold of movies does not hold out, and all
clips. Of every group there is one probe for each penalty. Letters of shapes, here and below:

- N clips, T frames or tokens of each, D features;
- G groups, K penalties, J = G K probes, group by group;
- M queries of a probe;
- B clips of a batch.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from obygaze_models.dataset.features import StoredClips
from obygaze_models.models.adam import Adam, adam_step
from obygaze_models.models.binary import Floats
from obygaze_models.models.frames import most_differing_directions
from obygaze_models.models.scaling import MeanAndScale, as_mean_and_scale

Masks = NDArray[np.bool_]

QUERY_PENALTY = 0.01
"""Penalty on the queries: its product with half the sum of their squares is added to the loss."""

MAX_DIRECTIONS = 2
"""Most directions along which a probe's first queries are set, each with its opposite."""

N_TOKENS_AT_ONCE = 2048
"""Tokens that are multiplied at once: those of one clip, or of several clips that have fewer."""


class TokenBlock(NamedTuple):
    """Frames or tokens of some clips.

    Attributes
    ----------
    X : ndarray, shape [B, T, D]
        0 where a frame is absent.
    absent : ndarray of bool, shape [B, T], or None
        None if all frames are present.
    """

    X: Floats
    absent: Masks | None

    def present_frames(self, clip: int) -> Floats:
        """Return the frames [t, D] of a clip that are not absent; `clip` is its index in the block."""
        frames: Floats = self.X[clip]
        if self.absent is None:
            return frames
        return np.asarray(frames[~self.absent[clip]])


def read_block(
    clips: Floats | StoredClips, rows: slice | NDArray[np.intp], dtype: np.dtype[Any]
) -> TokenBlock:
    """Read the clips `rows` of [N, T, D] as an array of type `dtype`, with absent frames marked and set to 0.

    A frame whose first feature is NaN is absent.
    """
    X = np.asarray(clips[rows]).astype(dtype)
    absent = np.isnan(X[..., 0])
    if not absent.any():
        return TokenBlock(X, absent=None)
    X[absent] = 0
    return TokenBlock(X, absent)


def token_blocks(n_clips: int, n_tokens: int) -> Iterator[slice]:
    """Split clips into blocks of about `N_TOKENS_AT_ONCE` tokens.

    Parameters
    ----------
    n_clips : int
    n_tokens : int
        Frames or tokens of a clip.

    Yields
    ------
    slice
        The clips of a block.
    """
    n_clips_at_once = max(N_TOKENS_AT_ONCE // n_tokens, 1)
    for start in range(0, n_clips, n_clips_at_once):
        yield slice(start, start + n_clips_at_once)


class Attended(NamedTuple):
    """Clips pooled by probes.

    Attributes
    ----------
    weights : ndarray, shape [B, T, J, M]
        Attention of each query: over a clip's tokens it adds up to 1.
    evidence : ndarray, shape [B, T, J, M]
        Evidence for the positive class that each query finds in each token.
    pooled : ndarray, shape [B, J, M]
        Sum over tokens of weights times evidence.
    """

    weights: Floats
    evidence: Floats
    pooled: Floats


def attend(block: TokenBlock, projection: Floats) -> Attended:
    """Pool a block of clips by the attention of J probes with M queries each.

    Parameters
    ----------
    block : TokenBlock
        Clips [B, T, D].
    projection : ndarray, shape [D, 2, J, M]
        The probes' queries at index 0 of the second axis, their evidence at index 1.
    """
    n_clips, n_tokens, n_features = block.X.shape

    # One matrix product of all tokens with all queries and evidence.
    tokens = block.X.reshape(n_clips * n_tokens, n_features)
    products = tokens @ projection.reshape(n_features, -1)
    products = products.reshape(n_clips, n_tokens, *projection.shape[1:])  # [B, T, 2, J, M]
    scores = products[:, :, 0]
    evidence = products[:, :, 1]
    if block.absent is not None:
        # exp(-inf) is 0: absent tokens get no weight.
        scores[block.absent] = -np.inf

    # The softmax over tokens.
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    pooled = np.einsum("btjm,btjm->bjm", weights, evidence)
    return Attended(weights, evidence, pooled)


# --- initial queries
# ---------------------------------------------------------------------------


class InitialStatistics(NamedTuple):
    """Moments of each group's tokens, and the directions in which its queries start.

    Attributes
    ----------
    mean, scale : ndarray, shape [G, D]
        Moments of the tokens.
    directions : ndarray, shape [G, D, n]
        The first queries start along these, each direction and its opposite.
    """

    mean: Floats
    scale: Floats
    directions: NDArray[np.float64]


class _TokenSums:
    """Sums over the tokens of clips by the fold that holds the clips out, and by their label.

    Attributes
    ----------
    counts : ndarray, shape [F, 2]
        Number of tokens of each of F folds and each label, 0 or 1.
    origin : ndarray, shape [D]
        A point near the tokens, relative to which sums and squares are precise.
    sums, squares : ndarray, shape [F, D]
        Sums of tokens less `origin`, and of their squares.
    scatters : ndarray, shape [F, 2, D, D]
        Sums of products of tokens less the mean of their own clip.
    """

    def __init__(self, n_folds: int, origin: Floats) -> None:
        """Set all sums to 0, for tokens of `n_folds` folds.

        The sums and squares, of all clips of a fold, give mean and scale; the counts and scatters, of each
        label of a fold, give directions in which labels differ. From tokens, `origin` [D] is subtracted
        before they are summed: it is near them, so that little is lost in rounding.
        """
        n_features = len(origin)
        n_labels = 2
        self.origin = origin.astype(np.float64)
        self.counts = np.zeros((n_folds, n_labels))
        self.sums = np.zeros((n_folds, n_features))
        self.squares = np.zeros((n_folds, n_features))
        self.scatters = np.zeros((n_folds, n_labels, n_features, n_features))

    def add(self, tokens: Floats, fold: int, label: int) -> None:
        """Add the tokens [t, D] of a clip to the sums of its inner fold and label."""
        # The variance will be the mean square less the squared mean. If the mean were large, the difference
        # would be lost in rounding: sums are relative to `origin`, and in float64.
        offsets = tokens - self.origin
        self.sums[fold] += offsets.sum(axis=0)
        self.squares[fold] += np.einsum("td,td->d", offsets, offsets)  # offsets * offsets, summed over tokens
        self.counts[fold, label] += len(tokens)

        # Scatters are around the clip's own mean instead.
        centred = tokens - tokens.mean(axis=0, dtype=np.float64)
        self.scatters[fold, label] += centred.T @ centred

    def mean_and_scale(self, folds: Masks, dtype: np.dtype[Any]) -> MeanAndScale:
        """Compute mean and scale [D] of the tokens of some folds, which are marked in `folds` [F]."""
        n_tokens = self.counts[folds].sum(axis=0).sum()
        mean_offset = self.sums[folds].sum(axis=0) / n_tokens
        mean_square = self.squares[folds].sum(axis=0) / n_tokens
        deviation = np.sqrt(np.maximum(mean_square - mean_offset**2, 0))
        return as_mean_and_scale(self.origin + mean_offset, deviation, dtype)

    def directions_and_opposites(self, folds: Masks, scale: Floats, n: int) -> NDArray[np.float64]:
        """Return n directions in which the scatter of tokens differs most between labels, and the opposites.

        The scatter of a label is the covariance of its standardised tokens around their own clip's mean.
        Queries start along these directions, so that they attend to tokens that are unusual for their clip in
        ways in which the two labels differ. A query gives the highest weight to tokens far along its
        direction and the lowest to those far on the opposite side, where another query looks.

        Parameters
        ----------
        folds : ndarray of bool, shape [F]
            Marks the folds whose clips are used.
        scale : ndarray, shape [D]
            The deviation of each feature.
        n : int
            Number of directions.

        Returns
        -------
        ndarray, shape [D, 2 n]
            The n directions, then their opposites: eigenvectors of the difference of the two scatters, with
            the largest eigenvalues.
        """
        negative = self._scatter(folds, label=0)
        positive = self._scatter(folds, label=1)
        # The scatters are of tokens as they are. Entry [d, e] of the scatter of standardised tokens is that
        # divided by the scales of the features e (of a column) and d (of a row).
        difference = (positive - negative) / scale / scale[:, None]
        most_differing = most_differing_directions(difference, n)
        return np.concatenate([most_differing, -most_differing], axis=1)

    def _scatter(self, folds: Masks, label: int) -> NDArray[np.float64]:
        """Compute the covariance [D, D] of tokens around the means of their clips, of clips with one label.

        `folds` is a mask of the folds whose clips count. It is 0 if these have no token.
        """
        n_tokens = self.counts[folds, label].sum()
        scatter: NDArray[np.float64] = self.scatters[folds, label].sum(axis=0) / max(n_tokens, 1)
        return scatter


def initial_statistics(
    clips: Floats | StoredClips,
    y: NDArray[np.int64],
    folds: NDArray[np.int64] | None,
    n_directions: int,
    dtype: np.dtype[Any],
) -> InitialStatistics:
    """Read all clips once, and compute for each group of clips what its probes need before they are trained.

    A group is a set of clips that probes are trained on: all clips, or those that one inner fold does not
    hold out. Its probes need the mean and scale of its tokens (its moments), and the directions in which
    their queries start; a query is a learnt vector by which a probe weighs tokens.

    Parameters
    ----------
    clips : array or StoredClips, shape [N, T, D]
    y : ndarray of int, shape [N]
        Labels, 0 or 1.
    folds : ndarray of int, shape [N], or None
        The fold that holds each clip out. Group f is the clips that fold f does not hold out, and the last
        group is all clips; None for this group alone.
    n_directions : int
        Number of directions. Each is used for two queries, one for the direction and one for its opposite.
    dtype : dtype
        Type of the moments that are returned.

    Raises
    ------
    ValueError
        A feature is not finite.
    """
    # Without folds, all clips are summed as one fold.
    fold_of = np.zeros(len(y), np.int64) if folds is None else folds
    n_folds = int(fold_of.max()) + 1
    sums = _sum_tokens(clips, y, fold_of, n_folds, dtype)
    means = []
    scales = []
    directions = []
    for is_in_group in _fold_masks_of_groups(n_folds, has_inner_folds=folds is not None):
        mean, scale = sums.mean_and_scale(is_in_group, dtype)
        means.append(mean)
        scales.append(scale)
        directions.append(sums.directions_and_opposites(is_in_group, scale, n_directions))
    return InitialStatistics(np.stack(means), np.stack(scales), np.stack(directions))


def _fold_masks_of_groups(n_folds: int, *, has_inner_folds: bool) -> list[Masks]:
    """List for each group of clips that probes are trained on a mask [F] of the folds that it consists of.

    The first F groups lack one fold each, and the last has all folds. Without inner folds there is only the
    group of all clips.
    """
    all_folds = np.ones(n_folds, bool)
    if not has_inner_folds:
        return [all_folds]
    groups = []
    for held_out in range(n_folds):
        other_folds = all_folds.copy()
        other_folds[held_out] = False
        groups.append(other_folds)
    groups.append(all_folds)
    return groups


def _sum_tokens(
    clips: Floats | StoredClips,
    y: NDArray[np.int64],
    fold_of: NDArray[np.int64],
    n_folds: int,
    dtype: np.dtype[Any],
) -> _TokenSums:
    """Read clips [N, T, D] block by block, and sum their tokens by fold and label.

    Labels y and folds `fold_of` are one per clip, [N]; `dtype` is the type that clips are read in. A feature
    that is not finite raises ValueError, since stored clips are read here for the first time.

    Examples
    --------
    Three clips of one token, of which two are positive. Squares of numbers so large have no digits left for a
    variance of 2.

    >>> clips = 2.0**40 + np.array([[[1.0]], [[3.0]], [[5.0]]])
    >>> sums = _sum_tokens(clips, np.array([0, 1, 1]), np.array([0, 1, 1]), 2, np.dtype(np.float64))
    >>> sums.counts.tolist()  # of the folds 0 and 1, of label 0 and 1
    [[1.0, 0.0], [0.0, 2.0]]
    >>> mean, scale = sums.mean_and_scale(np.array([True, True]), np.dtype(np.float64))
    >>> (mean - 2.0**40).round(6).tolist(), (scale**2).round(6).tolist()
    ([3.0], [2.666667])
    """
    sums: _TokenSums | None = None
    for rows in token_blocks(len(y), clips.shape[1]):
        block = read_block(clips, rows, dtype)
        if not np.isfinite(block.X).all():
            raise ValueError("a feature of a frame or token is not finite")
        if sums is None:
            # Sums are precise relative to a point near the tokens, such as one of them.
            first_token = block.X[0, 0]
            sums = _TokenSums(n_folds, origin=first_token)

        for clip in range(len(block.X)):
            row = rows.start + clip
            sums.add(block.present_frames(clip), fold_of[row], y[row])
    if sums is None:
        raise ValueError("there are no clips")
    return sums


# --- training
# ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """How probes are trained.

    Attributes
    ----------
    n_queries : int
        M.
    batch_size : int
        Clips a step.
    learning_rate : float
        Adam's step size.
    seed : int
    """

    n_queries: int
    batch_size: int
    learning_rate: float
    seed: int


class ProbeLayers(NamedTuple):
    """Views of a flat vector of the parameters of J probes, or of its gradient.

    Attributes
    ----------
    projection : ndarray, shape [D, 2, J, M]
        Vectors by which tokens of D features are multiplied: of each probe, M queries (index 0 of the second
        axis) and M vectors of evidence (index 1).
    bias : ndarray, shape [J]
        What is added to each probe's logit.
    """

    projection: Floats
    bias: Floats

    @property
    def queries(self) -> Floats:
        """The M queries of each of J probes, [D, J, M].

        A token's product with one says how much attention the token gets. They are a view of `projection`, in
        which they come before the evidence.
        """
        return np.asarray(self.projection[:, 0])

    @property
    def evidence(self) -> Floats:
        """The M vectors of evidence of each of J probes, [D, J, M].

        A token's product with one is evidence for the label 1, or against it if it is negative. They are a
        view of `projection`, in which they come after the queries.
        """
        return np.asarray(self.projection[:, 1])


class ProbesInTraining:
    """Attentive probes of all groups and penalties, as they are trained by Adam.

    Each group has its own moments of tokens. The projection takes them into account, so that all groups read
    the same raw tokens.

    Parameters
    ----------
    clips : array or StoredClips, shape [N, T, D]
    y : ndarray of int, shape [N]
        Labels, 0 or 1.
    folds : ndarray of int, shape [N], or None
        The inner fold that holds each clip out; None for one group, of all clips.
    penalties : tuple of float, length K
        Penalties on the evidence: each is multiplied by half the sum of its squares.
    settings : TrainingSettings

    Attributes
    ----------
    in_group : ndarray of bool, shape [N, G]
        The clips of each group; the last group is all clips.
    mean, scale : ndarray, shape [G, D]
        Moments of each group's tokens.
    dtype : dtype
        The floating-point type in which probes are trained.
    parameters, gradient : ndarray, shape [P]
        All parameters of the probes, and their gradient, as one vector each; `layers_of` gives the layers.
    """

    def __init__(
        self,
        clips: Floats | StoredClips,
        y: NDArray[np.int64],
        folds: NDArray[np.int64] | None,
        penalties: tuple[float, ...],
        settings: TrainingSettings,
    ) -> None:
        """Read all clips once, for the mean and scale of each group's tokens, and set the first parameters.

        A probe has M queries, vectors of D features by which it weighs the tokens of a clip; for each query
        another vector, by which it reads evidence from tokens; and a bias. Queries have a start that differs
        from query to query, as equal ones would stay equal; evidence and biases start at 0. There is a probe
        for each group of clips and each penalty: with G groups and K penalties, J = G K probes. Those of a
        group start with the same queries.
        """
        self.clips = clips
        self.y = y
        self.penalties = penalties
        self.settings = settings
        self.in_group = _clips_of_groups(len(y), folds)
        self.dtype = np.result_type(clips.dtype, np.float32)

        # Some queries start along directions in which the tokens of the two labels differ.
        # One of the M queries starts at 0 instead, and each direction takes two: along it and opposite to it.
        n_pairs_of_queries = (settings.n_queries - 1) // 2
        n_directions = min(MAX_DIRECTIONS, n_pairs_of_queries)
        statistics = initial_statistics(clips, y, folds, n_directions, self.dtype)
        self.mean = statistics.mean
        self.scale = statistics.scale
        first_queries_of_groups = self._first_queries(statistics.directions)  # [D, G, M]

        # All parameters are 0 but for the queries: a group's are copied to its probes, one for each penalty.
        self.parameters = np.zeros(self._n_parameters(), self.dtype)
        layers = self.layers_of(self.parameters)  # views: what is written to them is written to `parameters`
        layers.queries[:] = np.repeat(first_queries_of_groups, len(penalties), axis=1)  # [D, J, M]
        self.gradient = np.empty_like(self.parameters)
        self._adam = Adam.zeros_like(self.parameters)

    @property
    def n_probes(self) -> int:
        """Count the probes, J."""
        n_groups: int = self.in_group.shape[1]
        return n_groups * len(self.penalties)

    def _n_parameters(self) -> int:
        """Count the parameters of all J probes, P.

        A probe has two vectors of D features for each of its M queries, the query and its evidence, and a
        bias: 2 D M + 1.
        """
        n_features = int(self.clips.shape[2])
        n_parameters_of_a_probe = 2 * n_features * self.settings.n_queries + 1
        return self.n_probes * n_parameters_of_a_probe

    def _first_queries(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Make the initial queries [D, G, M].

        The first queries of a group point along its `directions` [G, D, n]. The next query is 0, which weighs
        all tokens equally. The others are random, and the same for all groups.
        """
        n_groups, n_features, n_along_directions = directions.shape
        n_queries = self.settings.n_queries
        n_random = max(n_queries - n_along_directions - 1, 0)
        rng = np.random.default_rng((self.settings.seed, 0))
        random_queries = rng.standard_normal((n_features, n_random)) / np.sqrt(n_features)

        queries = np.zeros((n_features, n_groups, n_queries))
        index_of_zero = n_along_directions
        for group in range(n_groups):
            queries[:, group, :index_of_zero] = directions[group][:, :n_queries]
            queries[:, group, index_of_zero + 1 :] = random_queries
        return queries

    def layers_of(self, parameters: Floats) -> ProbeLayers:
        """Return views of a vector [P] of parameters, or of their gradient, as the layers of J probes.

        The vector holds first the projection, flattened, and then a bias for each probe: P = 2 D J M + J.
        The projection [D, 2, J, M] is what a token's D features are multiplied with: of each of J probes, M
        queries (index 0 of the second axis) and the evidence that goes with each query (index 1).
        """
        n_features = self.clips.shape[2]
        n_queries = self.settings.n_queries
        queries_and_evidence = 2
        shape = (n_features, queries_and_evidence, self.n_probes, n_queries)
        projection = parameters[: -self.n_probes].reshape(shape)
        bias = parameters[-self.n_probes :]
        return ProbeLayers(projection, bias)

    def parameters_on_all_clips(self, penalty_index: int) -> Floats:
        """Copy the parameters of the probe trained on all clips with one of the penalties, as a vector.

        It has 2 D M + 1 numbers: M queries and M vectors of evidence for D features, and the bias.
        """
        layers = self.layers_of(self.parameters)
        # Probes are in order of groups, and of penalties within a group; the group of all clips is the last.
        first_probe_on_all_clips = self.n_probes - len(self.penalties)
        probe = first_probe_on_all_clips + penalty_index
        queries_and_evidence = layers.projection[:, :, probe].ravel()
        return np.append(queries_and_evidence, layers.bias[probe])

    def epoch(self, rng: np.random.Generator) -> Floats:
        """Train all probes for one pass over the clips, in random order.

        Returns
        -------
        ndarray, shape [N, G, K]
            The logit of each clip by each probe, before the probe learns from the clip's batch.
        """
        n_clips, n_groups = self.in_group.shape
        order = rng.permutation(n_clips)
        logits = np.empty((n_clips, self.n_probes))
        for start in range(0, n_clips, self.settings.batch_size):
            rows = order[start : start + self.settings.batch_size]
            # `backward` also sets `self.gradient`, by which the step is taken.
            logits[rows] = self.backward(rows)
            adam_step(self.parameters, self.gradient, self._adam, self.settings.learning_rate)
        # Probes are in order of groups, and of penalties within a group.
        return logits.reshape(n_clips, n_groups, len(self.penalties))

    def backward(self, rows: NDArray[np.intp]) -> Floats:
        """Compute the logits of a batch by all probes, and set `gradient` to that of their losses.

        A probe's loss is the mean cross-entropy of its group's clips in the batch, plus the penalties.

        Probes are defined on tokens that are standardised by their group. To read the same raw tokens, they
        are converted to probes on raw tokens (`_raw_layers`), which have the same logits. `gradient` is then
        computed in three steps, each of which changes it in place: the derivatives by the parameters of the
        raw probes are added up over blocks of clips (`_add_raw_gradient`); they are converted to derivatives
        by the parameters (`_from_raw_gradient`); and those of the penalties are added.

        Parameters
        ----------
        rows : ndarray of int, shape [B]
            The clips of the batch.

        Returns
        -------
        ndarray, shape [B, J]
        """
        moments = self._moments_of_probes()
        layers = self.layers_of(self.parameters)
        raw = _raw_layers(layers, moments)

        clip_weights = self._clip_weights(rows)
        logits = np.empty((len(rows), self.n_probes), self.dtype)
        self.gradient[:] = 0
        gradient = self.layers_of(self.gradient)  # views, to which each block of clips adds
        for in_block in token_blocks(len(rows), self.clips.shape[1]):
            rows_of_block = rows[in_block]
            block = read_block(self.clips, rows_of_block, self.dtype)
            attended = attend(block, raw.projection)
            logits[in_block] = attended.pooled.sum(axis=2) + raw.bias

            # The derivative of the cross-entropy by a logit is p - y.
            residuals = expit(logits[in_block]) - self.y[rows_of_block, None]
            by_logit = (residuals * clip_weights[in_block]).astype(self.dtype)  # [B, J]
            _add_raw_gradient(gradient, block, attended, by_logit)

        _from_raw_gradient(gradient, moments)
        self._add_penalty_gradients(layers, gradient)
        return logits

    def _moments_of_probes(self) -> MeanAndScale:
        """Return the mean and scale by which each of J probes standardises tokens, [D, J, 1].

        A probe is trained on a group of clips, such as those of all folds but one, with a penalty. All probes
        of a group have the mean and scale of its clips.
        """
        n_penalties = len(self.penalties)
        mean_of_probes = np.repeat(self.mean, n_penalties, axis=0)  # [J, D]
        scale_of_probes = np.repeat(self.scale, n_penalties, axis=0)  # [J, D]
        return MeanAndScale(mean_of_probes.T[:, :, None], scale_of_probes.T[:, :, None])

    def _clip_weights(self, rows: NDArray[np.intp]) -> Floats:
        """Compute the weight of each clip of a batch in each probe's mean loss, [B, J].

        It is 0 for clips that the probe is not trained on; the weights of the others add up to 1.
        """
        # Each group of clips has a probe for every penalty, one after the other.
        trains_probe = np.repeat(self.in_group[rows], len(self.penalties), axis=1)  # [B, J]
        n_clips_of_probe = np.maximum(trains_probe.sum(axis=0), 1)  # not 0, to divide by it
        return np.asarray(trains_probe / n_clips_of_probe)

    def _add_penalty_gradients(self, layers: ProbeLayers, gradient: ProbeLayers) -> None:
        """Add the gradient of the penalties on queries and evidence to `gradient`, in place.

        A penalty is a multiple of half the sum of squares, whose gradient is the multiple of the numbers
        themselves. All probes have the same penalty on queries, and different ones on evidence.
        """
        gradient.queries[:] += QUERY_PENALTY * layers.queries
        # Probes are in order of groups, each with all penalties.
        n_groups = len(self.mean)
        penalty_of_probe = np.tile(self.penalties, n_groups)[:, None]  # [J, 1]
        gradient.evidence[:] += penalty_of_probe * layers.evidence


def _clips_of_groups(n_clips: int, folds: NDArray[np.int64] | None) -> Masks:
    """Mark the clips of each group that probes are trained on, [N, G].

    There is a group for each fold, of the clips that it does not hold out; the last group is all clips.
    `folds` [N] is the fold that holds each clip out. If it is None, there is only the group of all clips.
    """
    groups = []
    if folds is not None:
        groups += [folds != fold for fold in np.unique(folds)]
    groups.append(np.ones(n_clips, bool))
    return np.column_stack(groups)


def _raw_layers(layers: ProbeLayers, moments: MeanAndScale) -> ProbeLayers:
    """Convert probes on standardised tokens to probes on raw tokens, which have the same logits.

    For a raw token x, the standardised one is z = (x - mean) / scale. With a query or evidence v,
    v . z = (v / scale) . x - (v / scale) . mean. The last term is the same for all tokens of a clip:

    - in the scores of a query it changes nothing, as a softmax ignores it;
    - in the evidence it is added to the logit once for each query, as the weights of tokens add up to 1.

    Parameters
    ----------
    layers : ProbeLayers
        Of J probes with M queries on D features: projection [D, 2, J, M] of queries and evidence, bias [J].
    moments : MeanAndScale
        Of the tokens of each probe's group, [D, J, 1].
    """
    mean, scale = moments
    raw_projection = layers.projection / scale[:, None]  # [D, 2, J, M] / [D, 1, J, 1]
    raw_evidence = raw_projection[:, 1]  # [D, J, M]
    # Summed over features and queries: what the means of tokens add to each probe's logit.
    logit_of_means = (mean * raw_evidence).sum(axis=(0, 2))
    raw_bias = layers.bias - logit_of_means  # [J]
    return ProbeLayers(raw_projection, raw_bias)


def _add_raw_gradient(gradient: ProbeLayers, block: TokenBlock, attended: Attended, by_logit: Floats) -> None:
    """Add the gradient of a block of clips by the parameters of raw probes to `gradient`, in place.

    Raw probes read tokens that are not standardised. There are J of them, with M queries and as many vectors
    of evidence each; `attend` multiplies every token with all of these.

    Parameters
    ----------
    gradient : ProbeLayers
    block : TokenBlock
        The clips [B, T, D].
    attended : Attended
        The clips pooled by the raw probes.
    by_logit : ndarray, shape [B, J]
        Derivatives of the losses by the logits.
    """
    gradient.bias[:] += by_logit.sum(axis=0)
    # products = tokens @ projection, so that the gradient is tokens' @ derivatives by the products.
    _, queries_and_evidence, n_probes, n_queries = gradient.projection.shape  # [D, 2, J, M]
    n_products = queries_and_evidence * n_probes * n_queries  # of a token
    by_products = _gradients_by_token(attended, by_logit).reshape(-1, n_products)  # [B T, 2 J M]
    tokens = block.X.reshape(len(by_products), -1)  # [B T, D]
    gradient.projection[:] += (tokens.T @ by_products).reshape(gradient.projection.shape)


def _from_raw_gradient(gradient: ProbeLayers, moments: MeanAndScale) -> None:
    """Convert the gradient by the layers of `_raw_layers` to that by the layers themselves, in place.

    Raw layers read tokens that are not standardised. They are made of the layers in two steps::

        raw projection = projection / scale         (queries and evidence)
        raw bias       = bias - mean . raw evidence

    The chain rule goes through them backwards: raw evidence also acts by the raw bias, so that it gets
    - mean * (derivative by the bias); then all derivatives by the projection are divided by the scale.

    Parameters
    ----------
    gradient : ProbeLayers
        By the raw layers of J probes; afterwards by the layers. The bias's derivative is the same for both.
    moments : MeanAndScale
        Of the tokens of each probe's group, [D, J, 1].
    """
    mean, scale = moments
    gradient.evidence[:] -= mean * gradient.bias[:, None]  # [D, J, M] -= [D, J, 1] * [J, 1]
    gradient.projection[:] /= scale[:, None]


def _gradients_by_token(attended: Attended, by_logit: Floats) -> Floats:
    """Compute the derivatives [B, T, 2, J, M] of the loss by each token's scores and evidence.

    A logit is the sum over queries and tokens of weight times evidence, plus the bias, where the weights are
    the softmax of the scores. Its derivative by a token's evidence is therefore the weight; by a token's
    score it is weight times (evidence - weighted mean evidence of the clip).

    Parameters
    ----------
    attended : Attended
        Weights and evidence of T tokens of B clips, for each of J probes and M queries, and the mean evidence
        by these weights (`pooled`).
    by_logit : ndarray, shape [B, J]
        Derivatives of the loss by the logits.

    Returns
    -------
    ndarray
        At index 0 of the third axis the derivatives by scores, at index 1 those by evidence.
    """
    n_clips, n_tokens, n_probes, n_queries = attended.weights.shape
    gradients = np.empty((n_clips, n_tokens, 2, n_probes, n_queries), by_logit.dtype)
    by_score = gradients[:, :, 0]  # views, [B, T, J, M]
    by_evidence = gradients[:, :, 1]
    by_logit_of_clip = by_logit[:, None, :, None]  # [B, 1, J, 1]
    np.multiply(attended.weights, by_logit_of_clip, out=by_evidence)
    mean_evidence = attended.pooled[:, None]  # [B, 1, J, M]
    # `by_evidence` already is the weight times the derivative by the logit.
    np.multiply(by_evidence, attended.evidence - mean_evidence, out=by_score)
    return gradients
