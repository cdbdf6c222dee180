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
from obygaze_models.concepts.control_bank import exchange_within_movies
from obygaze_models.concepts.frame_directions import (
    N_FOLDS,
    CentredFrames,
    centre_frames,
    fit_directions,
    scale_directions,
    within_film_covariance,
)
from obygaze_models.models.frames import check_frames, mean_and_scale_of_frames, shuffle_frames
from obygaze_models.models.scaling import CLIP, Limit, standardise

Disturb = Literal["none", "concepts", "time"]
"""What a control shuffles in training (`TimeBank`)."""

PRESENCE_SHARPNESS = 2.0
"""A concept's presence is log(mean(exp(this times s))) / this of the scores s of a clip's frames.

It is a soft maximum; scores have deviation 1 within films.
"""

POSITION_SHARPNESS = 3.0
"""A concept's position is the mean position of frames, weighted by softmax(this times s) of the scores s."""


@dataclass(eq=False, repr=False)
class TimeBank(ConceptBank):
    """Fit for each concept a direction of frames, and compute its presence and position in clips.

    The direction is a discriminant (`fit_directions`): the difference between the mean frames of clips with
    and without the concept, times the inverse of the covariance of frames; film means are subtracted before.
    Presence is a soft maximum of the frames' scores s along the direction, log(mean(exp(2 s))) / 2. Position
    is when the concept occurs: the mean position of frames, from -1/2 for the first to 1/2 for the last,
    weighted by softmax(3 s). A frame of NaN is absent.

    Parameters
    ----------
    disturb : {"none", "concepts", "time"}
        For controls: "concepts" exchanges presences between the clips of a movie; "time" shuffles the frames
        of each training clip, so that positions mean nothing.
    random_state : int
        Seed of what is drawn.
    directions : ndarray, shape [K, D], optional
        Directions in the features, such as those of texts, to use in place of learnt ones. `y` is then not
        used, and `concepts` holds the names.
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
    held_out_distances_ : ndarray of float64, shape [N, 2 K]
        Each training clip's presences and positions along directions fitted without its fold of movies. If
        the clips of the other folds all have or all lack a concept, both are 0.
    """

    kind: Kind = "mean_difference"
    clip: Limit | None = CLIP
    disturb: Disturb = "none"
    random_state: Annotated[int, "random_state"] = 0
    directions: Annotated[ArrayLike, "array-like"] | None = None

    def fit(self, X: ArrayLike, y: ArrayLike | None, groups: ArrayLike | None = None) -> Self:
        """Fit directions on frames X [N, F, D] and presences y [N, K].

        `y` and the movies `groups` [N] are as `ConceptBank.fit` takes them; without movies, all clips count
        as of one movie.

        Raises
        ------
        ConceptError
            A concept is present in all clips or in none; the message names it.
        """
        self._validate_params()
        frames = check_frames(X)
        movies = np.zeros(len(frames), np.intp) if groups is None else np.asarray(groups)
        present = None
        if self.directions is None:
            present = self._read_training_presences(y, movies)
        else:
            self.concepts_ = self._concept_names(len(np.asarray(self.directions)), None)
        check_consistent_length(frames, movies, present)
        self.n_features_in_ = frames.shape[2]
        _, movie_indices = np.unique(movies, return_inverse=True)
        with one_blas_thread():
            self._fit_directions_and_values(frames, present, movie_indices)
        self.fit_moments(self.held_out_distances_)
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute each clip's presences and positions: [N, 2 K]."""
        return self._standardised(presences_and_positions(self.frame_scores(X)))

    def frame_scores(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the score of each frame of X [N, F, D] for each concept [N, F, K]; NaN where absent."""
        check_is_fitted(self)
        frames = check_frames(X)
        scores = np.empty((*frames.shape[:2], len(self.weights_)))
        with one_blas_thread():
            # One clip at a time, so that its result does not depend on the other clips to the last bit.
            for row, clip in enumerate(frames):
                standard = standardise(clip, self.frame_mean_, self.frame_scale_, self.clip)
                scores[row] = standard @ self.weights_.T
        return scores

    def _read_training_presences(
        self, y: ArrayLike | None, movies: NDArray[np.generic]
    ) -> NDArray[np.float64]:
        """Convert presences y to 0 and 1, [N, K], and check that each concept has clips of both classes.

        For the control ``disturb="concepts"`` they are exchanged within movies.
        """
        present = self._read_presences(np.asarray(y, np.float64), getattr(y, "columns", None))
        for name, column in zip(self.concepts_, present.T, strict=True):
            refuse_constant(name, column)
        if self.disturb == "concepts":
            present = present[exchange_within_movies(movies, self.random_state)]
        return present

    def _fit_directions_and_values(
        self, frames: Floats, present: NDArray[np.float64] | None, movies: NDArray[np.intp]
    ) -> None:
        """Set the directions of all clips, and each clip's values along directions fitted without its movie.

        The second are `held_out_distances_`. Movies are dealt to folds: directions are fitted without one
        fold at a time, and the clips of that fold get their presences and positions along them.

        Parameters
        ----------
        frames : ndarray, shape [N, F, D]
        present : ndarray, shape [N, K], optional
            Presence of each concept; None if directions are given.
        movies : ndarray of int, shape [N]
            The movie of each clip, numbered from 0.
        """
        self.frame_mean_, self.frame_scale_ = mean_and_scale_of_frames(frames, np.dtype(np.float32))
        standard = standardise(frames, self.frame_mean_, self.frame_scale_, self.clip)
        centred = centre_frames(standard.astype(np.float32, copy=False), movies)
        # Sum of products of the centred frames' features [D, D].
        scatter_of_all = centred.scatters.sum(axis=0)
        rng = np.random.default_rng(self.random_state)
        # Presences of the K concepts, then positions.
        self.held_out_distances_ = np.empty((len(frames), 2 * len(self.concepts_)))
        fold_of_clip = movies % N_FOLDS
        for fold in np.unique(fold_of_clip):
            is_in_fold = fold_of_clip == fold
            scatter_of_others = scatter_of_all - centred.scatters[fold]
            directions = self._directions_on(~is_in_fold, centred, present, scatter_of_others)
            scores: Floats = centred.scores(is_in_fold, movies, directions)
            if self.disturb == "time":
                scores = shuffle_frames(scores, rng)
            self.held_out_distances_[is_in_fold] = presences_and_positions(scores)
        every_clip = np.ones(len(frames), np.bool_)
        self.weights_ = self._directions_on(every_clip, centred, present, scatter_of_all)

    def _directions_on(
        self,
        clips: NDArray[np.bool_],
        centred: CentredFrames,
        present: NDArray[np.float64] | None,
        scatter: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Fit the directions [K, D] of standardised features on some clips, or scale the given directions.

        Parameters
        ----------
        clips : ndarray of bool, shape [N]
            Marks the clips to fit on.
        centred : CentredFrames
            Frames of all clips.
        present : ndarray, shape [N, K], optional
            Presence of each concept; None if directions are given.
        scatter : ndarray, shape [D, D]
            Sum of products of the frames of those clips.
        """
        if present is None:
            # The score of a frame x is d x; with x = scale z + mean it is (d scale) z, plus a constant.
            directions = np.asarray(self.directions, np.float64) * self.frame_scale_
            n_frames = centred.is_present[clips].sum()
            return scale_directions(directions, within_film_covariance(scatter, n_frames))
        # Clips whose presences are NaN are not used.
        present_of_clips = np.where(clips[:, None], present, np.nan)
        return fit_directions(centred, present_of_clips, scatter)


def presences_and_positions(scores: Floats) -> NDArray[np.float64]:
    """Summarise the scores of clips' frames as the presence and the position of each concept: [N, 2 K].

    Presence is a soft maximum of the scores over frames. Position is the mean position of frames, weighed by
    the softmax of scores, from -0.5 at the clip's first frame to 0.5 at its last.

    Parameters
    ----------
    scores : ndarray, shape [N, F, K]
        NaN for absent frames.
    """
    wide = scores.astype(np.float64)
    is_present = ~np.isnan(wide)
    # A score of minus infinity adds nothing to a sum of exponentials.
    wide = np.where(is_present, wide, -np.inf)
    n_frames = is_present.sum(axis=1)
    # log(mean(exp)) is log(sum(exp)) - log(n).
    presences = (logsumexp(PRESENCE_SHARPNESS * wide, axis=1) - np.log(n_frames)) / PRESENCE_SHARPNESS
    frame_weights: NDArray[np.float64] = softmax(POSITION_SHARPNESS * wide, axis=1)
    if is_present.all():
        positions = np.einsum("nfk,f->nk", frame_weights, _frame_positions(wide.shape[1]))
    else:
        # A frame is present or absent for all concepts alike.
        frame_positions = _positions_among_present(np.asarray(is_present.any(axis=2)))
        positions = np.einsum("nfk,nf->nk", frame_weights, frame_positions)
    return np.hstack([presences, positions])


def _frame_positions(n_frames: int) -> NDArray[np.float64]:
    """Return the positions of a clip's frames [F]: equal steps from -0.5 to 0.5, or 0 of a single frame."""
    return np.linspace(-0.5, 0.5, n_frames) if n_frames > 1 else np.zeros(n_frames)


def _positions_among_present(is_present: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the position of each present frame among the present frames of its clip, [N, F]; 0 of others."""
    positions = np.zeros(is_present.shape)
    for row, present_frames in enumerate(is_present):
        positions[row, present_frames] = _frame_positions(int(present_frames.sum()))
    return positions
