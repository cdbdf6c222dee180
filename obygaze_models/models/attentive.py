"""Attentive probe: several learnt queries over a clip's frames or tokens, read from the store batch by batch.

Every epoch is one pass over the clips. It trains all probes from which one is chosen: one for each penalty
and each inner fold of movies, and one for each penalty on all clips.

Each fold of an evaluation takes passes of its own. To share them would save the time of reading only: 3 % of
the whole for clips of 196 tokens of 768 numbers, whose matrix products are efficient already (by a profile,
2026-11-28).
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from obygaze_models.blas import one_blas_thread
from obygaze_models.dataset.features import StoredClips
from obygaze_models.models.attentive_training import ProbesInTraining, TrainingSettings, attend, read_block
from obygaze_models.models.binary import ABOVE_ZERO, Floats, encode_labels
from obygaze_models.models.choices import candidates, log_loss
from obygaze_models.models.frames import FrameReader
from obygaze_models.models.neural_classifiers import NeuralClassifier
from obygaze_models.models.parameters import Count
from obygaze_models.models.spec import ModelSpec
from obygaze_models.models.training import LossCurve
from obygaze_models.protocol.held_out import HeldOut
from obygaze_models.protocol.selection import inner_folds

PENALTIES = (10.0, 1.0, 0.1, 0.01)
"""Penalties to choose among, the strongest first: weights of half the sum of the evidence's squares."""

DEFAULT_PENALTY = 0.1
"""The penalty if there are no movies to choose it by."""

ALL_CLIPS = -1
"""Index of the group of all clips, the last of the groups of `ProbesInTraining`."""

SECONDS_PER_NUMBER = 21e-9
"""CPU seconds of an epoch of one fold, per number of the clips' features.

Measured on one core: 3.2 ms for a clip of [196, 768].
"""


@dataclass(eq=False, repr=False)
class AttentiveProbe(FrameReader, NeuralClassifier):
    """Decide by what several queries find among a clip's frames or tokens.

    Every query q_m weighs the standardised tokens x_t by a softmax of q_m . x_t, without a key projection
    (Psomas et al., Attention, please! Revisiting attentive probing through the lens of efficiency, ICLR
    2026), and has its own evidence u_m::

        logit = sum_m sum_t softmax_t(q_m . x_t) (u_m . x_t) + b

    where u_m stands for the paper's value projection and linear classifier together. Initially, the first
    queries point along the directions in which tokens of the two classes scatter most differently, one weighs
    all tokens equally, and the others are random; evidence is 0.

    With movies (``groups``) the penalty, the epoch and the threshold are chosen on inner folds: a held-out
    clip is scored when an epoch's pass comes to it, by the probes that are not trained on its movie. The
    probe that is kept was trained on all clips in the same passes. Without movies, it is trained for
    `max_epochs` epochs with `penalty`, or `DEFAULT_PENALTY` if that is None.

    Parameters
    ----------
    n_queries : int
        M.
    penalty : float, optional
        Weight of half the sum of the evidence's squares in the loss. None: chosen among `PENALTIES`.
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
    curve_ : LossCurve
        Losses of each epoch with the chosen penalty; without movies, there are training losses only.
    curves_ : tuple of LossCurve
        That curve alone; with movies only.
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
        """Train the probe; with movies, choose its penalty, epoch and threshold on inner folds.

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
        clips = self._check_frames_to_fit(X, y)
        self.classes_, labels = encode_labels(y, type(self).__name__)
        self._forget_choice()

        penalties = self._penalties_to_try(has_movies=groups is not None)
        settings = TrainingSettings(
            n_queries=self.n_queries,
            batch_size=self.batch_size,
            learning_rate=float(self.learning_rate),
            seed=int(self.random_state),
        )

        # The methods below set the fitted attributes.
        with one_blas_thread():
            if groups is None:
                probes = ProbesInTraining(clips, labels, folds=None, penalties=penalties, settings=settings)
                self._train_on_all(probes)
            else:
                movies = np.asarray(groups)
                folds = inner_folds(labels, movies)
                probes = ProbesInTraining(clips, labels, folds, penalties, settings)
                self._choose_on_folds(probes, folds, movies)
        return self

    def _penalties_to_try(self, *, has_movies: bool) -> tuple[float, ...]:
        """List the penalties to train with; without movies there are no inner folds to choose one on."""
        if self.penalty is not None:
            return (float(self.penalty),)
        return PENALTIES if has_movies else (DEFAULT_PENALTY,)

    def _forget_choice(self) -> None:
        """Remove what an earlier fit may have set: the attributes that are set with movies only."""
        for name in ("candidates_", "held_out_", "curves_"):
            self.__dict__.pop(name, None)

    def decision_function(self, X: ArrayLike | StoredClips) -> Floats:
        """Compute the logit [N] of each clip of X [N, T, D]."""
        return np.array([pooled.logit_terms.sum() for pooled in self._pool(X)], self.parameters_.dtype)

    def weights(self, X: ArrayLike | StoredClips) -> Floats:
        """Compute the weight that each query gives each frame or token of X [N, T, D]: [N, T, M]."""
        return np.stack([pooled.weights for pooled in self._pool(X)])

    def _pool(self, X: ArrayLike | StoredClips) -> Iterator["_PooledClip"]:
        """Yield the weights of each clip's tokens in X [N, T, D], and the terms of its logit.

        Clips are pooled one at a time, since the rounding of a product depends on the number of its rows.
        """
        check_is_fitted(self)
        clips = self._check_frames(X)
        # The last parameter is the bias, and the others are the queries and their evidence [D, 2, M].
        # `attend` pools clips by several probes at once, and takes [D, 2, number of probes, M]: here of one.
        n_parts = 2  # queries and evidence
        n_probes = 1
        projection = self.parameters_[:-1].reshape(self.n_features_in_, n_parts, n_probes, self.n_queries)
        bias = self.parameters_[-1]

        with one_blas_thread():
            for row in range(len(clips)):
                block = read_block(clips, slice(row, row + 1), self.mean_.dtype)
                # The projection is of standardised tokens.
                standardised = block._replace(X=(block.X - self.mean_) / self.scale_)
                attended = attend(standardised, projection)

                only_clip = 0
                only_probe = 0
                weights = attended.weights[only_clip, :, only_probe]  # [T, M]
                pooled_evidence = attended.pooled[only_clip, only_probe]  # [M]
                yield _PooledClip(weights, logit_terms=np.append(pooled_evidence, bias))

    def _n_parameters(self, n_features: int) -> int:
        """Count the numbers of queries, evidence and bias."""
        return 2 * n_features * self.n_queries + 1

    def _train_on_all(self, probes: ProbesInTraining) -> None:
        """Train on all clips for `max_epochs` epochs, and set the fitted attributes to those of the last.

        Nothing is held out by which an earlier epoch could be chosen.
        """
        rng = np.random.default_rng((int(self.random_state), 1))
        train_loss = []
        # There is one group, of all clips, and one penalty: one probe.
        all_clips = 0
        only_penalty = 0
        for _ in range(self.max_epochs):
            logits = probes.epoch(rng)  # [N, 1, 1]
            train_loss.append(log_loss(probes.y, logits[:, all_clips, only_penalty]))

        self.n_epochs_ = self.max_epochs
        self.mean_ = probes.mean[all_clips]
        self.scale_ = probes.scale[all_clips]
        self.parameters_ = probes.parameters_on_all_clips(penalty_index=only_penalty)
        self.threshold_ = ABOVE_ZERO
        no_held_out_loss = np.full(len(train_loss), np.nan)
        self.curve_ = LossCurve(np.array(train_loss), no_held_out_loss, self.n_epochs_)

    def _choose_on_folds(
        self, probes: ProbesInTraining, folds: NDArray[np.int64], movies: NDArray[Any]
    ) -> None:
        """Train with every penalty, and keep the penalty and epoch with the lowest loss on held-out clips.

        The parameters kept are those of the probe that was trained on all clips with that penalty, at that
        epoch. Training stops after `patience` epochs without a lower loss. All fitted attributes are set.

        Parameters
        ----------
        probes : ProbesInTraining
        folds : ndarray of int, shape [N]
            The inner fold that holds each clip out.
        movies : ndarray, shape [N]
        """
        y = probes.y
        clips = np.arange(len(y))
        rng = np.random.default_rng((int(self.random_state), 1))
        best_loss = np.inf
        best_epoch = 0
        best_penalty = 0  # an index, like all penalties here
        train_losses = []  # for each epoch, the losses of all penalties [K]
        held_out_losses = []
        for epoch in range(1, self.max_epochs + 1):
            # The scores of N clips by probes of G groups and K penalties. Group f is the clips that fold f
            # does not hold out, the last group is all clips. A clip is held out by the probes of the group
            # with the number of its fold.
            logits = probes.epoch(rng)  # [N, G, K]
            training_scores = logits[:, ALL_CLIPS]  # [N, K]
            held_out_scores = logits[clips, folds]  # [N, K]
            train_losses.append([log_loss(y, scores) for scores in training_scores.T])
            losses = [log_loss(y, scores) for scores in held_out_scores.T]
            held_out_losses.append(losses)

            # The best penalty of this epoch, if it is better than any in the epochs before.
            penalty = int(np.argmin(losses))
            if losses[penalty] < best_loss:
                best_loss = losses[penalty]
                best_epoch = epoch
                best_penalty = penalty
                self.parameters_ = probes.parameters_on_all_clips(penalty)
                self.held_out_ = _held_out_scores(logits[:, :, penalty], probes, folds, movies)
            elif epoch - best_epoch >= self.patience:
                break

        # What describes the probe that is kept.
        self.n_epochs_ = best_epoch
        self.mean_ = probes.mean[ALL_CLIPS]
        self.scale_ = probes.scale[ALL_CLIPS]
        self.threshold_ = self.held_out_.threshold()

        # What describes its training.
        train_loss = np.array(train_losses)[:, best_penalty]
        held_out_loss = np.array(held_out_losses)[:, best_penalty]
        self.curve_ = LossCurve(train_loss, held_out_loss, best_epoch)
        self.curves_ = (self.curve_,)
        lowest_losses = np.min(held_out_losses, axis=0)
        self.candidates_ = candidates("penalty", probes.penalties, lowest_losses, best_penalty)


def _held_out_scores(
    logits: NDArray[np.floating], probes: ProbesInTraining, folds: NDArray[np.int64], movies: NDArray[Any]
) -> HeldOut:
    """Collect the score of each clip by the probe that was not trained on its movie.

    Parameters
    ----------
    logits : ndarray, shape [N, G]
        Logits by the probe of each group, with one penalty. Group f is the clips that fold f does not hold
        out, the last group is all clips.
    probes : ProbesInTraining
    folds, movies : ndarray, shape [N]
        The inner fold that holds each clip out, and its movie.
    """
    # The group of all clips, which is the last one, holds nothing out. The others are in the order of folds.
    n_folds = probes.in_group.shape[1] - 1
    logits_of_folds = logits[:, :n_folds]
    in_training_of_folds = probes.in_group[:, :n_folds]
    # The mean logit that the probe of each fold gives to the clips that it is trained on, [F]. It makes
    # scores of different probes comparable: each counts relative to its own probe's mean.
    training_mean_of_fold = np.average(logits_of_folds, axis=0, weights=in_training_of_folds)
    clips = np.arange(len(folds))
    return HeldOut(
        scores=logits_of_folds[clips, folds].astype(np.float64),  # of each clip, the score in its own fold
        y=probes.y,
        movies=movies,
        folds=folds,
        training_means=training_mean_of_fold[folds],
    )


class _PooledClip(NamedTuple):
    """A clip pooled by the queries.

    Attributes
    ----------
    weights : ndarray, shape [T, M]
        The weight that each query gives each token.
    logit_terms : ndarray, shape [M + 1]
        The contribution of each query to the logit, and the bias: their sum is the logit.
    """

    weights: Floats
    logit_terms: Floats


def most_cpu_hours(n_clips: int, n_vectors: int, n_features: int, n_folds: int) -> float:
    """Estimate the CPU hours of training attentive probes on all folds, if none stops early.

    Parameters
    ----------
    n_clips : int
    n_vectors, n_features : int
        Frames or tokens of a clip, and numbers of each.
    n_folds : int
        Folds of the evaluation.
    """
    n_numbers = float(n_clips) * n_vectors * n_features
    return n_numbers * n_folds * AttentiveProbe().max_epochs * SECONDS_PER_NUMBER / 3600


def _make_probe(seed: int) -> AttentiveProbe:
    """Make an unfitted attentive probe with a seed."""
    return AttentiveProbe(random_state=seed)


SPECS = (
    ModelSpec(
        "attentive",
        "Attentive probe",
        _make_probe,
        choose=None,
        reads="frames",
        uses=("groups",),
        kinds=(),
        compared_with=("linear", "mean_frames", "attention"),
    ),
    ModelSpec(
        "attentive_tokens",
        "Attentive probe on tokens",
        _make_probe,
        choose=None,
        reads="tokens",
        uses=("groups",),
        kinds=(),
        compared_with=("linear",),
        streams=True,
    ),
)
