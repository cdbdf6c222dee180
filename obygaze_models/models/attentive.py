"""Attentive probe: several learnt queries over a clip's frames or tokens, read from the store batch by batch.

Every epoch is one pass over the clips. In it all probes are trained that a choice needs: one for each penalty
and each inner fold of movies, and one for each penalty on all clips.

The movies left out of an evaluation are passes of their own. All that one pass for all would save is reading:
3 % of the time for clips of 196 tokens of 768 numbers, of which the products with 320 columns are full size
already (by a profile, 2026-11-28).
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from obygaze_models.blas import one_blas_thread
from obygaze_models.dataset.features import StoredClips
from obygaze_models.models.binary import ABOVE_ZERO, Floats, encode_labels
from obygaze_models.models.choices import candidates, log_loss
from obygaze_models.models.linear import FrameReader, differing
from obygaze_models.models.parameters import Count
from obygaze_models.models.scaling import safe_scale
from obygaze_models.models.spec import ModelSpec
from obygaze_models.models.training import Adam, LossCurve, NeuralClassifier, adam_step
from obygaze_models.protocol.held_out import HeldOut
from obygaze_models.protocol.selection import inner_folds

PENALTIES = (10.0, 1.0, 0.1, 0.01)
"""Weights of half the evidence's squares in the loss to choose among, the strongest first."""

DECAY = 0.01
"""Weight of half the queries' squares in the loss."""

N_AIMED = 2
"""Directions, each way, that the first queries look along to begin with."""

BLOCK = 2048
"""Tokens that are multiplied at a time: one clip's, or several clips' frames."""

SECONDS_A_VALUE = 21e-9
"""CPU time of an epoch of one fold for a value of a clip: 3.2 ms for [196, 768], measured on one core."""


class Attended(NamedTuple):
    """What probes made of clips."""

    weights: Floats  # [B, T, J, M], of each clip and query they add up to 1
    evidence: Floats  # [B, T, J, M]
    pooled: Floats  # [B, J, M]: weighted evidence


def attend(X: Floats, absent: NDArray[np.bool_] | None, projection: Floats) -> Attended:
    """Pool clips X [B, T, D] by the queries and evidence of J probes, `projection` [D, 2, J, M]."""
    products = (X.reshape(-1, X.shape[-1]) @ projection.reshape(len(projection), -1)).reshape(
        *X.shape[:2], *projection.shape[1:]
    )
    weights, evidence = products[:, :, 0], products[:, :, 1]
    if absent is not None:
        weights[absent] = -np.inf
    weights = np.exp(weights - weights.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return Attended(weights, evidence, np.einsum("btjm,btjm->bjm", weights, evidence))


@dataclass(eq=False, repr=False)
class AttentiveProbe(FrameReader, NeuralClassifier):
    """Decide by what several queries find among a clip's frames or tokens.

    Every query q_m weighs the standardised tokens x_t by a softmax of q_m . x_t, without a key projection
    (Psomas et al., Attention, please! Revisiting attentive probing through the lens of efficiency, ICLR
    2026), and has its own evidence u_m::

        logit = sum_m sum_t softmax_t(q_m . x_t) (u_m . x_t) + b

    which is their value projection and linear classifier in one, for two classes. The first queries look
    along the directions in which tokens of the two classes scatter most differently, one weighs all alike,
    the others are random; evidence begins at 0.

    With movies (``groups``) the penalty, the epoch and the threshold are chosen on inner folds: a held-out
    clip is scored when an epoch's pass comes to it, by the probes that never learn from its movie. The probe
    kept was trained on all clips in the same passes. Without movies `penalty` and `max_epochs` are used.

    Parameters
    ----------
    n_queries : int
        M.
    penalty : float, optional
        Weight of half the evidence's squares in the loss; None is chosen among `PENALTIES`.
    learning_rate, batch_size, max_epochs, patience, random_state
        Of the training, see `NeuralClassifier`.

    Attributes
    ----------
    parameters_ : ndarray, shape [P]
        Queries and evidence [D, 2, M], and the bias.
    mean_, scale_ : ndarray, shape [D]
        Moments of all tokens trained on.
    n_epochs_ : int
        Epochs that made the parameters.
    candidates_ : tuple of Candidate
        Every penalty with its lowest loss on held-out clips; with movies only.
    held_out_ : HeldOut
        Scores of held-out clips; with movies only.
    curves_ : tuple of LossCurve
        Of the chosen penalty, with movies only; `curve_` is the same, or the training loss alone.
    classes_, n_features_in_, threshold_
        As of the other classifiers.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> frames, y = data.read("frames"), data.levels == "S"
    >>> model = om.AttentiveProbe(max_epochs=3).fit(frames, y, groups=data.movies)
    >>> model.weights(frames).shape[2], len(model.candidates_)
    (8, 4)
    """

    n_queries: Count = 8
    _: KW_ONLY
    penalty: Annotated[float, Interval(Real, 0, None, closed="left")] | None = None
    batch_size: Count = 32
    max_epochs: Count = 40

    def fit(self, X: ArrayLike | StoredClips, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Choose and train.

        Parameters
        ----------
        X : array-like or StoredClips, shape [N, T, D]
            Frames or tokens; those of a store are read batch by batch. A frame of NaN is absent.
        y : array-like, shape [N]
            Two labels; the second in sorted order is the positive one.
        groups : array-like, shape [N], optional
            The movie of each clip.

        Raises
        ------
        ProtocolError
            The movies don't allow an inner selection.
        ValueError
            X has no frames, or a value of it is not finite.
        """
        self._validate_params()
        clips = self._first_frames(X, y)
        self.classes_, labels = encode_labels(y, type(self).__name__)
        folds = None if groups is None else inner_folds(labels, np.asarray(groups))
        penalties = PENALTIES if self.penalty is None else (float(self.penalty),)
        if folds is None and self.penalty is None:
            penalties = PENALTIES[2:3]
        for name in ("candidates_", "held_out_", "curves_"):
            self.__dict__.pop(name, None)
        with one_blas_thread():
            probes = _Probes(clips, labels, folds, penalties, self)
            self._train(probes, folds, None if groups is None else np.asarray(groups))
        return self

    def decision_function(self, X: ArrayLike | StoredClips) -> Floats:
        """Compute the logit [N] of each clip of X [N, T, D]."""
        return np.array([pooled.sum() for _, pooled in self._pool(X)], self.parameters_.dtype)

    def weights(self, X: ArrayLike | StoredClips) -> Floats:
        """Compute the weight that each query gives each frame or token of X [N, T, D]: [N, T, M]."""
        return np.stack([weights for weights, _ in self._pool(X)])

    def _pool(self, X: ArrayLike | StoredClips) -> Iterator[tuple[Floats, Floats]]:
        """Yield weights [T, M], and the queries' shares of the logit and the bias [M + 1], clip by clip."""
        check_is_fitted(self)
        clips = self._frames(X)
        projection = self.parameters_[:-1].reshape(self.n_features_in_, 2, 1, self.n_queries)
        with one_blas_thread():
            for place in range(len(clips)):
                clip, absent = _read(clips, slice(place, place + 1), self.mean_.dtype)
                # Standardised itself, and not the projection: the mean may be large against the spread.
                seen = attend((clip - self.mean_) / self.scale_, absent, projection)
                yield seen.weights[0, :, 0], np.append(seen.pooled[0, 0], self.parameters_[-1])

    def _n_parameters(self, n_features: int) -> int:
        return 2 * n_features * self.n_queries + 1

    def _train(self, probes: "_Probes", folds: NDArray[np.int64] | None, movies: NDArray[Any] | None) -> None:
        """Run epochs, and keep the probe on all clips of the best penalty and epoch."""
        y, rng = probes.y, np.random.default_rng((int(self.random_state), 1))
        best, penalty, self.n_epochs_ = np.inf, 0, 0
        losses: list[list[float]] = []
        held_losses: list[list[float]] = []
        for epoch in range(1, self.max_epochs + 1):
            logits = probes.epoch(rng)
            losses.append([log_loss(y, column) for column in logits[:, -1].T])
            if folds is None or movies is None:
                self.n_epochs_ = epoch
                continue
            held_out = logits[np.arange(len(y)), folds]
            held_losses.append([log_loss(y, column) for column in held_out.T])
            lowest = int(np.argmin(held_losses[-1]))
            if held_losses[-1][lowest] < best:
                best, penalty, self.n_epochs_ = held_losses[-1][lowest], lowest, epoch
                self.parameters_ = probes.on_all(lowest)
                zeros = np.average(logits[:, :-1, lowest], axis=0, weights=probes.learns[:, :-1])[folds]
                self.held_out_ = HeldOut(held_out[:, lowest].astype(np.float64), y, movies, folds, zeros)
            elif epoch - self.n_epochs_ >= self.patience:
                break
        self.mean_, self.scale_ = probes.mean[-1], probes.scale[-1]
        train_loss = np.array(losses)[:, penalty]
        if folds is None:
            self.parameters_, self.threshold_ = probes.on_all(0), ABOVE_ZERO
            self.curve_ = LossCurve(train_loss, np.full(len(losses), np.nan), self.n_epochs_)
            return
        self.threshold_ = self.held_out_.threshold()
        self.curve_ = LossCurve(train_loss, np.array(held_losses)[:, penalty], self.n_epochs_)
        self.curves_ = (self.curve_,)
        self.candidates_ = candidates("penalty", probes.penalties, np.min(held_losses, axis=0), penalty)


def most_cpu_hours(n_clips: int, n_vectors: int, n_features: int, n_folds: int) -> float:
    """Estimate the CPU hours of probes of all folds, of clips [T, D], if none stops before its last epoch."""
    values = float(n_clips) * n_vectors * n_features
    return values * n_folds * AttentiveProbe().max_epochs * SECONDS_A_VALUE / 3600


# --- training
# ---------------------------------------------------------------------------
class _Probes:
    """Probes of G groups of clips and K penalties [J = G K] under training by Adam in one pass an epoch.

    A group is the clips that an inner fold does not hold out; the last is all clips. Each has its own
    moments, which are worked into the projection, so that the clips are read as they are.
    """

    def __init__(
        self,
        clips: Floats | StoredClips,
        y: NDArray[np.int64],
        folds: NDArray[np.int64] | None,
        penalties: tuple[float, ...],
        settings: AttentiveProbe,
    ) -> None:
        self.clips, self.y, self.penalties, self.settings = clips, y, penalties, settings
        held_out = np.zeros((len(y), 0), bool) if folds is None else folds[:, None] == np.unique(folds)
        self.learns = np.column_stack([~held_out, np.ones(len(y), bool)])  # [N, G]
        self.dtype = np.result_type(clips.dtype, np.float32)
        self.mean, self.scale, directions = self._look()
        n_features, m, j = clips.shape[2], settings.n_queries, self.learns.shape[1] * len(penalties)
        queries = np.zeros((n_features, self.learns.shape[1], m))
        n_aimed = directions.shape[2]
        queries[:, :, :n_aimed] = directions.transpose(1, 0, 2)[..., :m]
        rng = np.random.default_rng((int(settings.random_state), 0))
        drawn = rng.standard_normal((n_features, max(m - n_aimed - 1, 0))) / np.sqrt(n_features)
        queries[:, :, n_aimed + 1 :] = drawn[:, None]  # the one before stays 0 and weighs all alike
        self.parameters = np.zeros(2 * n_features * j * m + j, self.dtype)
        projection, _ = self.views(self.parameters)
        projection[:, 0] = np.repeat(queries, len(penalties), axis=1)
        self.gradient = np.empty_like(self.parameters)
        self._state = Adam.start(self.parameters)

    def views(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Cut a vector into queries and evidence [D, 2, J, M] and biases [J], without copying."""
        j = self.learns.shape[1] * len(self.penalties)
        return parameters[:-j].reshape(self.clips.shape[2], 2, j, -1), parameters[-j:]

    def on_all(self, penalty: int) -> Floats:
        """Copy the parameters [P] of the probe on all clips."""
        projection, bias = self.views(self.parameters)
        own = bias.size - len(self.penalties) + penalty
        return np.append(projection[:, :, own].ravel(), bias[own])

    def epoch(self, rng: np.random.Generator) -> Floats:
        """Learn from all clips once, in random order; return the logits [N, G, K] of each as it was read."""
        n, size = len(self.y), self.settings.batch_size
        order, logits = rng.permutation(n), np.empty((n, self.learns.shape[1], len(self.penalties)))
        for start in range(0, n, size):
            rows = order[start : start + size]
            logits[rows] = self.backward(rows).reshape(len(rows), *logits.shape[1:])
            adam_step(self.parameters, self.gradient, self._state, self.settings.learning_rate)
        return logits

    def backward(self, rows: NDArray[np.intp]) -> Floats:
        """Compute logits [B, J] of a batch, and write the gradient of each probe's own loss.

        A probe's loss is the mean cross-entropy of its clips in the batch, and the penalties.
        """
        k = len(self.penalties)
        mean, scale = (np.repeat(each, k, axis=0).T[:, :, None] for each in (self.mean, self.scale))
        projection, bias = self.views(self.parameters)
        slope, bias_slope = self.views(self.gradient)
        scaled = projection / scale[:, None]
        shift = bias - (mean * scaled[:, 1]).sum(axis=(0, 2))
        own = np.repeat(self.learns[rows], k, axis=1)
        share = own / np.maximum(own.sum(axis=0), 1)
        logits = np.empty((len(rows), bias.size), self.dtype)
        self.gradient[:] = 0
        for block in self._blocks(len(rows)):
            X, absent = _read(self.clips, rows[block], self.dtype)
            seen = attend(X, absent, scaled)
            logits[block] = seen.pooled.sum(axis=2) + shift
            pull = ((expit(logits[block]) - self.y[rows[block], None]) * share[block]).astype(self.dtype)
            bias_slope += pull.sum(axis=0)
            by_token = np.empty((*X.shape[:2], *projection.shape[1:]), self.dtype)
            np.multiply(seen.weights, pull[:, None, :, None], out=by_token[:, :, 1])
            np.multiply(
                by_token[:, :, 1], seen.evidence - seen.pooled[:, None], out=by_token[:, :, 0]
            )  # through the softmax
            flat = by_token.reshape(-1, projection[0].size)
            slope += (X.reshape(len(flat), -1).T @ flat).reshape(slope.shape)
        # To standardised tokens: the weights of a clip's tokens add up to 1, and their slopes to 0.
        slope[:, 1] -= mean * bias_slope[:, None]
        slope /= scale[:, None]
        slope[:, 0] += DECAY * projection[:, 0]
        slope[:, 1] += np.tile(self.penalties, len(self.mean))[:, None] * projection[:, 1]
        return logits

    def _blocks(self, n: int) -> Iterator[slice]:
        size = max(BLOCK // self.clips.shape[1], 1)
        return (slice(start, start + size) for start in range(0, n, size))

    def _look(self) -> tuple[Floats, Floats, NDArray[np.float64]]:
        """Read all clips once for mean and scale [G, D], and where to look: directions [G, D, n] both ways.

        These are the eigenvectors of the largest values of the difference between the classes' scatters of
        tokens around their own clip's mean.
        """
        # What each fold holds out: a group's sums are those of all less its own.
        fold_of = np.argmin(self.learns, axis=1)  # 0 for all without folds
        shape = (max(self.learns.shape[1] - 1, 1), 2)
        n_features, first = self.clips.shape[2], None
        counts, sums = np.zeros(shape), np.zeros((2, shape[0], n_features))
        scatters = np.zeros((*shape, n_features, n_features))
        for block in self._blocks(len(self.y)):
            X, absent = _read(self.clips, block, self.dtype)
            if not np.isfinite(X).all():
                raise ValueError("a feature of a frame or token is not finite")
            first = X[0, 0].astype(np.float64) if first is None else first
            for clip, place in zip(X, range(block.start, block.start + len(X)), strict=True):
                kept = clip if absent is None else clip[~absent[place - block.start]]
                # In float64, which has all squares of float32, and against one token: squares of a large mean
                # would drown the spread.
                apart = kept - first
                sums[:, fold_of[place]] += apart.sum(axis=0), np.einsum("td,td->d", apart, apart)
                counts[fold_of[place], self.y[place]] += len(kept)
                centred = kept - kept.mean(axis=0, dtype=np.float64)
                scatters[fold_of[place], self.y[place]] += centred.T @ centred
        moments, directions = [], []
        for group in range(self.learns.shape[1]):
            own = np.arange(len(counts)) != (group if self.learns.shape[1] > 1 else -1)
            n = counts[own].sum(axis=0)
            offset, square = sums[:, own].sum(axis=1) / n.sum()
            deviation = np.sqrt(np.maximum(square - offset**2, 0))
            moments.append(safe_scale(first + offset, deviation, self.dtype))
            negative, positive = (scatters[own, label].sum(axis=0) / max(n[label], 1) for label in (0, 1))
            apart = (positive - negative) / moments[-1][1] / moments[-1][1][:, None]
            aimed = differing(apart, min(N_AIMED, (self.settings.n_queries - 1) // 2))
            directions.append(np.concatenate([aimed, -aimed], axis=1))
        mean, scale = (np.stack(each) for each in zip(*moments, strict=True))
        return mean, scale, np.stack(directions)


def _read(
    clips: Floats | StoredClips, rows: slice | NDArray[np.intp], dtype: np.dtype[Any]
) -> tuple[Floats, NDArray[np.bool_] | None]:
    """Read clips [B, T, D], and where frames are absent [B, T] (their features are 0), None if nowhere."""
    X = np.asarray(clips[rows]).astype(dtype)
    absent = np.isnan(X[..., 0])
    if not absent.any():
        return X, None
    X[absent] = 0
    return X, absent


def _make(seed: int) -> AttentiveProbe:
    return AttentiveProbe(random_state=seed)


_SHARED: dict[str, Any] = {"choose": None, "uses": ("groups",), "kinds": ()}
_BESIDE = ("linear", "mean_frames", "attention")
_OF_TOKENS: dict[str, Any] = {"reads": "tokens", "streams": True, "beside": ("linear",)}

SPECS = (
    ModelSpec("attentive", "Attentive probe", _make, reads="frames", beside=_BESIDE, **_SHARED),
    ModelSpec("attentive_tokens", "Attentive probe on tokens", _make, **_OF_TOKENS, **_SHARED),
)
