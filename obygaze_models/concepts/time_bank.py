"""Find for each concept a direction of frames, and from it how strongly and when the concept is in a clip."""

from dataclasses import dataclass
from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, softmax
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from obygaze_models.blas import one_blas_thread
from obygaze_models.concepts.bank import ConceptBank, read_presences
from obygaze_models.concepts.cav_fitting import Floats, Kind, refuse_constant
from obygaze_models.concepts.control_bank import exchange_within_movies
from obygaze_models.concepts.frame_directions import (
    CentredFrames,
    centre_frames,
    fit_directions,
    folds_of_movies,
    scale_directions,
    within_film_covariance,
)
from obygaze_models.models.frames import check_frames, mean_and_scale_of_frames, shuffle_frames
from obygaze_models.models.scaling import CLIP, Limit, standardise

Disturb = Literal["none", "concepts", "time"]
"""What a control shuffles in training (`TimeBank`)."""

PRESENCE_SHARPNESS = 2.0
"""Factor of scores in the soft maximum over a clip's frames; scores have deviation 1 within films.

The larger it is, the nearer is the soft maximum to the maximum.
"""

POSITION_SHARPNESS = 3.0
"""Factor of scores in the softmax that weighs a clip's frames for the position of a concept."""


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
        as of one movie. If the bank was made with given directions, such as those of texts, nothing is
        learnt from y, and only the moments of frames and values are computed.

        Raises
        ------
        ConceptError
            A concept is present in all clips or in none; the message names it.
        """
        self._validate_params()
        frames = check_frames(X)
        movies = np.zeros(len(frames), np.intp) if groups is None else np.asarray(groups)
        if self.directions is None:
            labels = np.asarray(y, np.float64)
            table = labels.reshape(len(labels), -1)  # [N, K], with K = 1 for labels [N]
            self.concepts_ = self._concept_names(table.shape[1], getattr(y, "columns", None))
            present = self._training_presences(table, movies)
        else:
            self.concepts_ = self._concept_names(len(np.asarray(self.directions)), None)
            present = None  # nothing is learnt from presences
        check_consistent_length(frames, movies, present)
        self.n_features_in_ = frames.shape[2]

        _, movie_indices = np.unique(movies, return_inverse=True)
        all_clips = np.ones(len(frames), np.bool_)
        with one_blas_thread():
            centred = self._standardise_and_centre(frames, movie_indices)
            self.held_out_distances_ = self._held_out_presences_and_positions(centred, present, movie_indices)
            # The scatter of all frames is the sum of those of the folds.
            scatter = centred.fold_scatters.sum(axis=0)
            self.weights_ = self._directions_on(all_clips, centred, present, scatter)
        # Values of clips are standardised by the mean and deviation of held-out clips.
        self.set_moments(self.held_out_distances_)
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
            # One clip at a time: the rounding of a product depends on the number of its rows.
            for row, clip in enumerate(frames):
                standard = standardise(clip, self.frame_mean_, self.frame_scale_, self.clip)
                scores[row] = standard @ self.weights_.T
        return scores

    def _training_presences(
        self, table: NDArray[np.float64], movies: NDArray[np.generic]
    ) -> NDArray[np.float64]:
        """Convert the presences of the concepts to 0 and 1, [N, K]; refuse concepts without both classes.

        For the control ``disturb="concepts"`` presences are exchanged between the clips of each movie.

        Parameters
        ----------
        table : ndarray, shape [N, K]
            Presences of `concepts_`, of two values for each concept.
        movies : ndarray, shape [N]
        """
        present = read_presences(self.concepts_, table)
        for name, column in zip(self.concepts_, present.T, strict=True):
            refuse_constant(name, column)
        if self.disturb == "concepts":
            present = present[exchange_within_movies(movies, self.random_state)]
        return present

    def _standardise_and_centre(self, frames: Floats, movies: NDArray[np.intp]) -> CentredFrames:
        """Standardise the frames [N, F, D] by their moments, and subtract the means of films.

        The moments are kept as `frame_mean_` and `frame_scale_`, by which frames of other clips are
        standardised later. `movies` [N] numbers the movie of each clip from 0.
        """
        self.frame_mean_, self.frame_scale_ = mean_and_scale_of_frames(frames, np.dtype(np.float32))
        standard = standardise(frames, self.frame_mean_, self.frame_scale_, self.clip)
        return centre_frames(standard.astype(np.float32, copy=False), movies)

    def _held_out_presences_and_positions(
        self, centred: CentredFrames, present: NDArray[np.float64] | None, movies: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """Compute each clip's presences and positions along directions fitted without its movie, [N, 2 K].

        They are what the distances of clips are in a bank without time. One fold of movies is left out at a
        time (`folds_of_movies`). For the control ``disturb="time"`` the frames of each clip are shuffled.

        Parameters
        ----------
        centred : CentredFrames
        present : ndarray, shape [N, K], optional
            Presence of each concept; None if directions are given.
        movies : ndarray of int, shape [N]
            The movie of each clip, numbered from 0.
        """
        # The scatter is the sum of products of centred frames, x x' [D, D], from which covariances are made.
        scatter_of_all = centred.fold_scatters.sum(axis=0)
        rng = np.random.default_rng(self.random_state)  # for the control
        values = np.empty((len(movies), 2 * len(self.concepts_)))
        fold_of_clip = folds_of_movies(movies)
        for fold in np.unique(fold_of_clip):
            is_held_out = fold_of_clip == fold
            scatter_of_others = scatter_of_all - centred.fold_scatters[fold]
            directions = self._directions_on(~is_held_out, centred, present, scatter_of_others)
            scores: Floats = centred.scores(is_held_out, movies, directions)
            if self.disturb == "time":
                # Shuffled scores have the same presences, and positions that mean nothing.
                scores = shuffle_frames(scores, rng)
            values[is_held_out] = presences_and_positions(scores)
        return values

    def _directions_on(
        self,
        clips: NDArray[np.bool_],
        centred: CentredFrames,
        present: NDArray[np.float64] | None,
        scatter: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Fit a direction of each concept in standardised features on some clips, [K, D].

        If the parameter `directions` gives directions, nothing is fitted: they are only scaled by the
        covariance of these clips' frames.

        Parameters
        ----------
        clips : ndarray of bool, shape [N]
            Marks the clips to fit on.
        centred : CentredFrames
            Frames of all clips.
        present : ndarray, shape [N, K], optional
            Presence of each concept; None if directions are given.
        scatter : ndarray, shape [D, D]
            Sum of products of the features of those clips' frames, x x'.
        """
        if present is None:  # then the parameter `directions` is given
            n_frames = centred.is_present[clips].sum()
            return self._scaled_directions(within_film_covariance(scatter, n_frames))
        # Clips whose presences are NaN are not used.
        present_of_clips = np.where(clips[:, None], present, np.nan)
        return fit_directions(centred, present_of_clips, scatter)

    def _scaled_directions(self, covariance: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert the parameter `directions` to standardised features, and scale them, [K, D].

        A frame is x = scale * z + mean, with the standardised frame z. Its score along a direction d is
        therefore d x = (d * scale) z, plus a constant: d * scale is the direction of standardised features.
        It is then scaled so that frames with this covariance [D, D] have a deviation of 1 along it.
        """
        directions = np.asarray(self.directions, np.float64) * self.frame_scale_
        return scale_directions(directions, covariance)


def presences_and_positions(scores: Floats) -> NDArray[np.float64]:
    """Compute each concept's presence and position from the scores of clips' frames: [N, 2 K].

    Presence is a soft maximum over a clip's scores s, log(mean(exp(a s))) / a with a = `PRESENCE_SHARPNESS`.
    Position is the mean position of frames, from -0.5 at the clip's first frame to 0.5 at its last, weighed
    by softmax(b s) with b = `POSITION_SHARPNESS`.

    Parameters
    ----------
    scores : ndarray, shape [N, F, K]
        NaN for absent frames.
    """
    is_absent = np.isnan(scores)
    n_frames = (~is_absent).sum(axis=1)  # of each clip, the same for all concepts, [N, K]
    # Below, exp(-inf) is 0: absent frames add nothing to sums of exponentials.
    scores_of_present = np.where(is_absent, -np.inf, scores.astype(np.float64))

    presences = _soft_maxima(scores_of_present, n_frames)
    positions = _weighted_positions(scores_of_present)
    return np.hstack([presences, positions])


def _soft_maxima(scores: NDArray[np.float64], n_frames: NDArray[np.intp]) -> NDArray[np.float64]:
    """Compute the soft maximum of the scores of each clip's frames, [N, K].

    With the sharpness a it is log(mean(exp(a s))) / a. The logarithm of the mean is the logarithm of the sum,
    less that of the number of frames.

    Parameters
    ----------
    scores : ndarray, shape [N, F, K]
        Minus infinity for absent frames.
    n_frames : ndarray, shape [N, K]
        Number of present frames.
    """
    log_sums = logsumexp(PRESENCE_SHARPNESS * scores, axis=1)
    return np.asarray((log_sums - np.log(n_frames)) / PRESENCE_SHARPNESS)


def _weighted_positions(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the mean position of each clip's frames, weighed by the softmax of their scores, [N, K].

    `scores` [N, F, K] are minus infinity for absent frames.
    """
    frame_weights: NDArray[np.float64] = softmax(POSITION_SHARPNESS * scores, axis=1)
    is_present = scores > -np.inf
    if is_present.all():
        # The frames of all clips have the same positions, [F], as in most stores. A loop over clips, as
        # below, would be slower.
        positions = _frame_positions(scores.shape[1])
        return np.asarray(np.einsum("nfk,f->nk", frame_weights, positions))

    # A frame is present or absent for all concepts alike.
    is_present_frame = np.asarray(is_present.any(axis=2))
    positions_in_clips = _positions_among_present(is_present_frame)  # [N, F]
    return np.asarray(np.einsum("nfk,nf->nk", frame_weights, positions_in_clips))


def _frame_positions(n_frames: int) -> NDArray[np.float64]:
    """Return the positions of a clip's frames [F]: equal steps from -0.5 to 0.5, or 0 of a single frame."""
    return np.linspace(-0.5, 0.5, n_frames) if n_frames > 1 else np.zeros(n_frames)


def _positions_among_present(is_present: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the position of each present frame among the present frames of its clip, [N, F]; 0 of others.

    In a clip whose frames are present, absent, present, present they are -0.5, 0, 0, 0.5.
    """
    positions = np.zeros(is_present.shape)
    for row, present_frames in enumerate(is_present):
        positions[row, present_frames] = _frame_positions(int(present_frames.sum()))
    return positions
