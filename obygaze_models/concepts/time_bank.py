"""Find for each concept a direction of frames, and from it how strongly and when the concept is in a clip."""

from dataclasses import dataclass
from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, softmax
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from obygaze_models.blas import one_blas_thread
from obygaze_models.concepts.bank import ConceptBank
from obygaze_models.concepts.cav_fitting import Floats, Kind, refuse_constant
from obygaze_models.concepts.control_bank import exchanged
from obygaze_models.concepts.frame_directions import (
    N_FOLDS,
    centre_frames,
    fit_directions,
    scale_directions,
    within_film_covariance,
)
from obygaze_models.models.frames import check_frames, frame_moments, shuffle_frames
from obygaze_models.models.scaling import CLIP, Limit, standardise

Disturb = Literal["none", "concepts", "time"]

PRESENCE = 2.0
"""Sharpness of the soft maximum over frames that is a concept's presence; scores vary by 1 within films."""

POSITION = 3.0
"""Sharpness of the weights of frames whose mean place is a concept's position."""


@dataclass(eq=False, repr=False)
class TimeBank(ConceptBank):
    """Fit for each concept a direction of frames, and give its presence and position in clips.

    The direction is a discriminant: the difference between frames of clips with the concept and of clips
    without, less films' means, times the inverse of the covariance of frames within films
    (`fit_directions`). Presence is a soft maximum of the frames' scores s along it, log(mean(exp(2 s))) / 2.
    Position is the mean place of frames from -1/2 to 1/2, weighed by softmax(3 s). A frame of NaN is absent.

    Parameters
    ----------
    disturb : {"none", "concepts", "time"}
        For controls: "concepts" exchanges presences between the clips of a movie, "time" takes positions of
        frames in random order while fitting.
    random_state : int
        Seed of what is drawn.
    directions : ndarray, shape [K, D], optional
        Directions in the features, such as those of texts, to take in place of learnt ones. `y` is then not
        used, and `concepts` names them.
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
            present = self._learnable_presences(y, movies)
        else:
            self.concepts_ = self._names(len(np.asarray(self.directions)), None)
        check_consistent_length(frames, movies, present)
        self.n_features_in_ = frames.shape[2]
        _, movie_of = np.unique(movies, return_inverse=True)
        with one_blas_thread():
            self._learn(frames, present, movie_of)
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
            for row, clip in enumerate(frames):
                standard = standardise(clip, self.frame_mean_, self.frame_scale_, self.clip)
                scores[row] = standard @ self.weights_.T
        return scores

    def _learnable_presences(self, y: ArrayLike | None, movies: NDArray[np.generic]) -> NDArray[np.float64]:
        """Read presences [N, K], each of both classes; exchange them within movies for the control."""
        present = self._presences(np.asarray(y, np.float64), getattr(y, "columns", None))
        for name, column in zip(self.concepts_, present.T, strict=True):
            refuse_constant(name, column)
        if self.disturb == "concepts":
            present = present[exchanged(movies, self.random_state)]
        return present

    def _learn(self, frames: Floats, present: NDArray[np.float64] | None, movies: NDArray[np.intp]) -> None:
        """Fit the directions on all clips, and the cross-fitted values of each clip.

        Parameters
        ----------
        frames : ndarray, shape [N, F, D]
        present : ndarray, shape [N, K], optional
        movies : ndarray of int, shape [N]
            Numbered from 0.
        """
        self.frame_mean_, self.frame_scale_ = frame_moments(frames, np.dtype(np.float32))
        standard = standardise(frames, self.frame_mean_, self.frame_scale_, self.clip)
        centred = centre_frames(standard.astype(np.float32, copy=False), movies)
        scatter_of_all = centred.scatters.sum(axis=0)

        def directions_of(clips: NDArray[np.bool_], scatter: NDArray[np.float64]) -> NDArray[np.float64]:
            if present is None:
                in_standard_features = np.asarray(self.directions, np.float64) * self.frame_scale_
                n_frames = centred.is_present[clips].sum()
                return scale_directions(in_standard_features, within_film_covariance(scatter, n_frames))
            present_of_clips = np.where(clips[:, None], present, np.nan)
            return fit_directions(centred, present_of_clips, scatter)

        rng = np.random.default_rng(self.random_state)
        self.cross_distances_ = np.empty((len(frames), 2 * len(self.concepts_)))
        folds = movies % N_FOLDS
        for fold in np.unique(folds):
            held_out = folds == fold
            directions = directions_of(~held_out, scatter_of_all - centred.scatters[fold])
            scores: Floats = centred.scores(held_out, movies, directions)
            if self.disturb == "time":
                scores = shuffle_frames(scores, rng)
            self.cross_distances_[held_out] = summaries(scores)
        self.weights_ = directions_of(np.ones(len(frames), np.bool_), scatter_of_all)


def summaries(scores: Floats) -> NDArray[np.float64]:
    """Compute presences and positions [N, 2 K] of frames' scores [N, F, K]; absent frames are NaN.

    Positions are among the frames that a clip has, from -0.5 at its first to 0.5 at its last.
    """
    wide = scores.astype(np.float64)
    is_present = ~np.isnan(wide)
    wide = np.where(is_present, wide, -np.inf)
    n_frames = is_present.sum(axis=1)
    present = (logsumexp(PRESENCE * wide, axis=1) - np.log(n_frames)) / PRESENCE
    shares: NDArray[np.float64] = softmax(POSITION * wide, axis=1)
    if is_present.all():
        positions = np.einsum("nfk,f->nk", shares, _places(wide.shape[1]))
    else:
        places = _places_among_present(np.asarray(is_present.any(axis=2)))
        positions = np.einsum("nfk,nf->nk", shares, places)
    return np.hstack([present, positions])


def _places(n_frames: int) -> NDArray[np.float64]:
    """Return the places of a clip's frames, [F]: equal steps from -0.5 to 0.5, and 0 of one frame."""
    return np.linspace(-0.5, 0.5, n_frames) if n_frames > 1 else np.zeros(n_frames)


def _places_among_present(is_present: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the places of frames [N, F] among those of their clip that are present; 0 of others."""
    places = np.zeros(is_present.shape)
    for row, present_frames in enumerate(is_present):
        places[row, present_frames] = _places(int(present_frames.sum()))
    return places
