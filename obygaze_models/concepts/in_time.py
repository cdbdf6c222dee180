"""Find concepts in time: which are in a clip and when, by channels that do not mix before the head.

A concept that is there in 2 of 32 frames is lost in the mean over frames, and so is the order of two. Each
concept gets a direction of frames, learnt from labels of whole clips, and of each clip two numbers: how
strongly the concept is there at its best, and at what time. What needs two concepts at the same moment can't
be seen (docs/when.md).
"""

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import logsumexp, softmax
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import HasMethods, Options
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from obygaze_models.blas import one_blas_thread
from obygaze_models.concepts.bank import ConceptBank, exchanged
from obygaze_models.concepts.bottleneck import ConceptBottleneck
from obygaze_models.concepts.cav_fitting import Floats, Kind, refuse_constant
from obygaze_models.concepts.heads import HeadName
from obygaze_models.models.linear import FrameReader, check_frames, frame_moments
from obygaze_models.models.scaling import CLIP, Limit, standardise
from obygaze_models.models.spec import ModelSpec

Disturb = Literal["none", "concepts", "time"]

SHRINKAGE = 0.05
"""Share of the mean variance that is added to every variance before the covariance is inverted."""

ROUNDS = 6
"""How often frames are weighed anew by the direction last found."""

LEARNING, PRESENCE, POSITION = 4.0, 2.0, 3.0
"""Sharpness of the soft maximum over frames: of the weights that a direction is learnt with, of presence, and
of the weights of position. Scores have a deviation of 1 within films."""

N_FOLDS = 4
"""Folds of movies for cross-fitted values, by movies' names in order."""

BLOCK = 256
"""Clips that are standardised at once."""


@dataclass(eq=False, repr=False)
class TimeBank(ConceptBank):
    """Fit for each concept a direction of frames, and give its presence and position in clips.

    The direction is a discriminant: the difference between frames of clips with the concept and of clips
    without, less films' means, times the inverse of the covariance of frames within films. First all frames
    of a clip count alike; then, six times over, they are weighed by the softmax of their scores along the
    direction. Presence is a soft maximum of the scores, log(mean(exp(2 s))) / 2; position is the mean place
    of frames from -1/2 to 1/2, weighed by softmax(3 s). A frame of NaN is absent.

    Parameters
    ----------
    disturb : {"none", "concepts", "time"}
        For controls: "concepts" exchanges presences between the clips of a movie, "time" takes positions of
        frames in random order while fitting.
    random_state : int
        Seed of what is drawn.
    directions : ndarray, shape [K, D], optional
        Directions in the features that are taken in place of learnt ones, as those of texts: `y` is not used,
        and `concepts` names them.
    concepts, clip
        As of a `ConceptBank`.

    Attributes
    ----------
    weights_ : ndarray of float64, shape [K, D]
        Directions in standardised features; along each, frames have a deviation of 1 within films.
    frame_mean_, frame_scale_ : ndarray, shape [D]
        Moments of all frames, by which they are standardised.
    mean_, scale_ : ndarray, shape [2 K]
        Moments of the training clips' presences and positions.
    cross_distances_ : ndarray of float64, shape [N, 2 K]
        Each training clip's presences and positions along directions fitted without its fold of movies. A
        concept that a fold leaves with one class has no direction there, and 0 for both.
    """

    kind: Kind = "mean_difference"
    clip: Limit | None = CLIP
    disturb: Disturb = "none"
    random_state: Annotated[int, "random_state"] = 0
    directions: Annotated[ArrayLike, "array-like"] | None = None

    def fit(self, X: ArrayLike, y: ArrayLike | None, groups: ArrayLike | None = None) -> Self:
        """Fit directions on frames X [N, F, D] and presences y [N, K], as `ConceptBank.fit`.

        Raises
        ------
        ConceptError
            A concept, named, is in all clips or in none.
        """
        self._validate_params()
        frames = check_frames(X)
        movies = np.zeros(len(frames), np.intp) if groups is None else np.asarray(groups)
        present = None
        if self.directions is None:
            present = self._presences(np.asarray(y, np.float64), getattr(y, "columns", None))
            for name, column in zip(self.concepts_, present.T, strict=True):
                refuse_constant(name, column)
            if self.disturb == "concepts":
                present = present[exchanged(movies, self.random_state)]
        else:
            self.concepts_ = self._names(len(np.asarray(self.directions)), None)
        check_consistent_length(frames, movies, present)
        self.n_features_in_ = frames.shape[2]
        with one_blas_thread():
            self._learn(frames, present, np.unique(movies, return_inverse=True)[1])
        self.rescale(self.cross_distances_)
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute each clip's presences and positions: [N, 2 K]."""
        return self._standardised(summaries(self.frame_scores(X)))

    def frame_scores(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the score of each frame of X [N, F, D] for each concept [N, F, K]; NaN where absent."""
        check_is_fitted(self)
        frames = check_frames(X)
        scores = np.empty((*frames.shape[:2], len(self.weights_)))
        with one_blas_thread():
            # Matrix libraries choose kernels by size: a clip at a time has the same bytes alone and together.
            for clip, out in zip(frames, scores, strict=True):
                out[:] = standardise(clip, self.frame_mean_, self.frame_scale_, self.clip) @ self.weights_.T
        return scores

    def _learn(self, frames: Floats, present: NDArray[np.float64] | None, movies: NDArray[np.intp]) -> None:
        """Fit the directions, and cross-fitted values."""
        there = ~np.isnan(frames[..., 0])
        self.frame_mean_, self.frame_scale_ = frame_moments(frames, np.dtype(np.float32))
        z = standardise(frames, self.frame_mean_, self.frame_scale_, self.clip).astype(np.float32, copy=False)
        z[~there] = 0
        centres = np.empty((movies.max() + 1, z.shape[2]), np.float32)
        folds = movies % N_FOLDS
        scatters = np.zeros((N_FOLDS, z.shape[2], z.shape[2]))
        for movie in range(len(centres)):
            own = np.flatnonzero(movies == movie)
            centres[movie] = z[own].sum(axis=(0, 1), dtype=np.float64) / there[own].sum()
            for rows in np.array_split(own, -(-len(own) // BLOCK)):
                z[rows] = block = (z[rows] - centres[movie]) * there[rows, :, None]
                flat = block.reshape(-1, z.shape[2])
                scatters[movie % N_FOLDS] += flat.T @ flat

        def found(known: NDArray[np.bool_], scatter: NDArray[np.float64]) -> NDArray[np.float64]:
            if present is None:
                given = np.asarray(self.directions, np.float64) * self.frame_scale_
                return _scaled(given, _covariance(scatter, there[known].sum()))
            return _directions(z, there, np.where(known[:, None], present, np.nan), scatter)

        rng = np.random.default_rng(self.random_state)
        self.cross_distances_ = np.empty((len(z), 2 * len(self.concepts_)))
        for fold in np.unique(folds):
            out = folds == fold
            weights = found(~out, scatters.sum(axis=0) - scatters[fold])
            scores = z[out] @ weights.T.astype(np.float32) + (centres @ weights.T)[movies[out], None]
            scores[~there[out]] = np.nan
            if self.disturb == "time":
                order = rng.permuted(np.tile(np.arange(z.shape[1]), (len(scores), 1)), axis=1)
                scores = np.take_along_axis(scores, order[..., None], axis=1)
            self.cross_distances_[out] = summaries(scores)
        self.weights_ = found(np.ones(len(z), np.bool_), scatters.sum(axis=0))


def _directions(
    z: Floats, there: NDArray[np.bool_], present: NDArray[np.float64], scatter: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Find a direction [K, D] for each concept from frames z [N, F, D], less films' means; absent ones are 0.

    Clips of which `present` [N, K] is NaN do not count; of one class alone comes a direction of zeros.
    """
    d = len(scatter)
    covariance = _covariance(scatter, there[~np.isnan(present).all(axis=1)].sum())
    factor = cho_factor(covariance)
    sides = [present == 1, present == 0]
    sizes = [side.sum(axis=0) for side in sides]
    both = np.minimum(*sizes) > 0
    contrast = (sides[0] / np.maximum(sizes[0], 1) - sides[1] / np.maximum(sizes[1], 1)) * both
    flat, weights = z.reshape(-1, d), np.zeros((present.shape[1], d), np.float32)
    for _ in range(ROUNDS + 1):  # at first all frames have the same score
        scores = (flat @ weights.T).reshape(*there.shape, -1)
        pull = contrast[:, None] * softmax(np.where(there[..., None], LEARNING * scores, -np.inf), axis=1)
        found = cho_solve(factor, (pull.reshape(len(flat), -1).T.astype(np.float32) @ flat).T.astype(float)).T
        found = _scaled(found, covariance)
        weights = found.astype(np.float32)
    return np.asarray(found, np.float64)


def _covariance(scatter: NDArray[np.float64], n_frames: int) -> NDArray[np.float64]:
    """Compute the covariance [D, D] of frames less films' means, shrunk; of frames that are alike, 1."""
    covariance = scatter / max(n_frames, 1)
    variance = covariance.trace() / len(scatter)
    return covariance + (SHRINKAGE * variance or 1.0) * np.eye(len(scatter))


def _scaled(directions: NDArray[np.float64], covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale directions [K, D] so that frames have a deviation of 1 along each."""
    lengths = np.sqrt(np.einsum("kd,de,ke->k", directions, covariance, directions))
    return directions / np.where(lengths > 0, lengths, 1.0)[:, None]


def summaries(scores: Floats) -> NDArray[np.float64]:
    """Compute presences and positions [N, 2 K] of frames' scores [N, F, K]; absent frames are NaN.

    Positions are among the frames that a clip has, from -0.5 at its first to 0.5 at its last.
    """
    wide = scores.astype(np.float64)
    there = ~np.isnan(wide)
    wide = np.where(there, wide, -np.inf)
    present = (logsumexp(PRESENCE * wide, axis=1) - np.log(there.sum(axis=1))) / PRESENCE
    shares: NDArray[np.float64] = softmax(POSITION * wide, axis=1)
    if there.all():
        return np.hstack([present, np.einsum("nfk,f->nk", shares, _places(wide.shape[1]))])
    places = _places_among(np.asarray(there.any(axis=2)))
    return np.hstack([present, np.einsum("nfk,nf->nk", shares, places)])


def _places(n_frames: int) -> NDArray[np.float64]:
    """Return the positions of frames in a clip [F]."""
    return np.linspace(-0.5, 0.5, n_frames) if n_frames > 1 else np.zeros(n_frames)


def _places_among(there: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the positions of frames [N, F] among those of their clips that are there; 0 of others."""
    places = np.zeros(there.shape)
    for clip, own in zip(there, places, strict=True):
        own[clip] = _places(int(clip.sum()))
    return places


@dataclass(eq=False, repr=False)
class ConceptsInTime(FrameReader, ConceptBottleneck):
    """Classify clips by their concepts and when these are, from frames.

    A `ConceptBottleneck` on frames [N, F, D], whose head reads two values of each concept, presence and
    position (`TimeBank`). What a concept contributes is the sum of both; `intervene` sets its presence.

    Parameters
    ----------
    head, bank, residual, residual_C, inner_folds, random_state
        As of a `ConceptBottleneck`; the head is sparse by default, and there is no residual.

    Attributes
    ----------
    train_values_, centre_ : ndarray, shapes [N, 2 K] and [2 K]
        Presences, then positions.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> frames, present = data.read("frames"), data.present[["Body", "Clothing"]]
    >>> model = om.ConceptsInTime().fit(frames, data.levels == "S", data.movies, present=present)
    >>> model.frame_values(frames).shape == (*frames.shape[:2], 2)
    True
    """

    _clip_ndim: ClassVar[int] = 2
    _default_bank: ClassVar[type[ConceptBank]] = TimeBank

    head: HeadName | BaseEstimator = "elastic_net"
    _: KW_ONLY
    bank: Annotated[Any, HasMethods("frame_scores")] | None = None
    residual: Annotated[bool, Options(bool, {False})] = False

    def frame_values(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute each frame's value on each concept [N, F, K]: the presence of a clip of this frame alone.

        In the units of `concept_values`; NaN for absent frames.
        """
        check_is_fitted(self)
        bank: Any = self.bank_
        scores, k = bank.frame_scores(self._checked(X)), len(self.concepts_)
        return np.asarray((scores - bank.mean_[:k]) / bank.scale_[:k])

    def _given(self, X: ArrayLike, y: ArrayLike) -> tuple[Any, NDArray[Any]]:
        return self._first_frames(X, y), np.asarray(y)

    _checked = FrameReader._frames


class ConceptsUnlabelled(ConceptsInTime):
    """The same of a bank that needs no labels of concepts: of units (`UnitBank`), or directions of texts."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True, "present": False}


def _spec(
    name: str, title: str, disturb: Disturb = "none", head: HeadName = "elastic_net", **about: Any
) -> ModelSpec:
    def make(seed: int) -> ConceptsInTime:
        return ConceptsInTime(head, bank=TimeBank(disturb=disturb, random_state=seed), random_state=seed)

    uses = ("groups", "present", "unlabelled")
    control = disturb != "none"
    return ModelSpec(name, title, make, None, "frames", uses, kinds=(), control=control, **about)


BESIDE = ("pcbm_lr", "attention", "attentive", "pcbm_time_unordered", "pcbm_time_shuffled", "concept_labels")

SPECS = (
    _spec("pcbm_time", "PCBM in time", beside=BESIDE),
    _spec("pcbm_time_unordered", "PCBM in time, trained in random order", "time"),
    # A sparse head drops concepts that know nothing: its scores would not vary, and show no leak.
    _spec("pcbm_time_shuffled", "PCBM in time, shuffled concepts", "concepts", head="logistic"),
)
