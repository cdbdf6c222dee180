"""Fit directions that separate the frames of clips with a concept from others, after removing film means."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import softmax

from obygaze_models.concepts.cav_fitting import Floats

SHRINKAGE = 0.05
"""Share of the mean variance that is added to every variance before the covariance is inverted.

Without it, directions in which frames hardly vary would get huge weights.
"""

N_REWEIGHTINGS = 6
"""Rounds after the first, in which frames are weighed by their scores along the directions of the last."""

WEIGHT_SHARPNESS = 4.0
"""Factor of the scores in the softmax that weighs a clip's frames; scores have deviation 1 within films."""

N_FOLDS = 4
"""Number of folds of movies for cross-fitted values (`folds_of_movies`)."""

N_CLIPS_AT_ONCE = 256
"""Clips that are centred at once, to need little memory."""


class CentredFrames(NamedTuple):
    """Standardised frames of N clips of M films, each less the mean frame of its film.

    Attributes
    ----------
    frames : ndarray of float32, shape [N, F, D]
        0 where a frame is absent.
    is_present : ndarray of bool, shape [N, F]
    film_means : ndarray of float32, shape [M, D]
        The mean frame of each film, which was subtracted.
    fold_scatters : ndarray, shape [N_FOLDS, D, D]
        For each fold of films, the sum over its frames x of the products of features, x x'.
    """

    frames: Floats
    is_present: NDArray[np.bool_]
    film_means: Floats
    fold_scatters: NDArray[np.float64]

    def scores(
        self, clips: NDArray[np.bool_], movies: NDArray[np.intp], directions: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Compute the scores [n, F, K] of some clips' frames along directions [K, D]; NaN for absent frames.

        The scores are those of the frames before centring: the score of the film's mean is added back.

        Parameters
        ----------
        clips : ndarray of bool, shape [N]
            Marks the clips.
        movies : ndarray of int, shape [N]
            The number of each clip's film.
        directions : ndarray, shape [K, D]
        """
        scores_of_means = self.film_means @ directions.T  # [M, K]
        scores_of_centred = self.frames[clips] @ directions.T.astype(np.float32)  # [n, F, K]
        # The mean frame of the clip's film was subtracted from its frames: its score is added again.
        scores_of_film = scores_of_means[movies[clips]]  # [n, K]
        scores: NDArray[np.float64] = scores_of_centred + scores_of_film[:, None]
        scores[~self.is_present[clips]] = np.nan
        return scores


def folds_of_movies(movies: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the fold in which each movie is left out, for cross-fitted values.

    Movies, numbered from 0, are dealt to the `N_FOLDS` folds in turn.
    """
    return movies % N_FOLDS


def centre_frames(frames: Floats, movies: NDArray[np.intp]) -> CentredFrames:
    """Subtract each film's mean frame, in place, and sum the products of features for each fold of films.

    The sums by fold are those from which `fit_directions` gets the covariance: of all films, or of all but
    those of one fold.

    Parameters
    ----------
    frames : ndarray of float32, shape [N, F, D]
        Standardised; NaN where absent. To save memory it is overwritten with the centred frames.
    movies : ndarray of int, shape [N]
        The film of each clip, numbered from 0.

    Examples
    --------
    Two clips of a film, of one feature. The second frame of the first clip is absent.

    >>> frames = np.array([[[1.0], [np.nan]], [[2.0], [6.0]]], np.float32)
    >>> centred = centre_frames(frames, np.array([0, 0]))
    >>> centred.frames.tolist(), centred.film_means.tolist()
    ([[[-2.0], [-0.0]], [[-1.0], [3.0]]], [[3.0]])
    >>> centred.is_present.tolist()
    [[True, False], [True, True]]
    >>> centred.fold_scatters.ravel().tolist()[0]  # 4 + 1 + 9, of the first fold
    14.0
    """
    is_present = ~np.isnan(frames[..., 0])  # all features of an absent frame are NaN
    frames[~is_present] = 0
    n_features = frames.shape[2]
    n_films = movies.max() + 1

    film_means = np.empty((n_films, n_features), np.float32)
    fold_scatters = np.zeros((N_FOLDS, n_features, n_features))
    fold_of_film = folds_of_movies(np.arange(n_films))
    for film in range(n_films):
        rows_of_film = np.flatnonzero(movies == film)
        total = frames[rows_of_film].sum(axis=(0, 1), dtype=np.float64)
        film_means[film] = total / is_present[rows_of_film].sum()

        # A film's clips are centred in blocks, to need little memory.
        scatter = fold_scatters[fold_of_film[film]]  # a view, to which products are added
        n_blocks = math.ceil(len(rows_of_film) / N_CLIPS_AT_ONCE)
        for rows in np.array_split(rows_of_film, n_blocks):
            centred = (frames[rows] - film_means[film]) * is_present[rows, :, None]  # absent frames stay 0
            frames[rows] = centred
            centred_frames = centred.reshape(-1, n_features)
            scatter += centred_frames.T @ centred_frames
    return CentredFrames(frames, is_present, film_means, fold_scatters)


def fit_directions(
    centred: CentredFrames, present: NDArray[np.float64], scatter: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Fit for each of K concepts a direction that separates frames of clips with and without it, [K, D].

    A direction is Fisher's linear discriminant: the inverse covariance of frames within films, times the
    difference of the mean frames of the two classes. It is scaled so that frames deviate by 1 along it. A
    concept whose clips are all of one class gets a direction of zeros.

    As a concept shows in few frames of a clip, directions are fitted in several rounds. In the first round,
    all frames of a clip weigh the same. In the `N_REWEIGHTINGS` further rounds, frames weigh more if they
    have a high score along the direction of the round before.

    Parameters
    ----------
    centred : CentredFrames
    present : ndarray, shape [N, K]
        1 for clips with the concept, 0 for clips without, NaN for clips that are not used.
    scatter : ndarray, shape [D, D]
        Sum over the frames x of the clips that are used of the products of features, x x'.
    """
    is_used = ~np.isnan(present).all(axis=1)
    covariance = within_film_covariance(scatter, centred.is_present[is_used].sum())
    factor_of_covariance = cho_factor(covariance)  # of Cholesky, with which the inverse is applied

    # A weighted sum of clips with these weights is the difference between the means of the two classes.
    clip_weights = _contrast_weights(present)  # [N, K]
    # Along directions of 0 all scores are 0, so that in the first round all frames of a clip weigh the same.
    directions = np.zeros((present.shape[1], len(scatter)))
    for _ in range(1 + N_REWEIGHTINGS):
        frame_weights = _weigh_frames(centred, directions)  # [N, F, K], each clip's add up to 1
        contrast = clip_weights[:, None] * frame_weights
        difference_of_means = _difference_of_means(centred, contrast)  # [K, D]
        # cho_solve multiplies by the inverse covariance.
        discriminants = cho_solve(factor_of_covariance, difference_of_means.T.astype(float)).T
        directions = scale_directions(discriminants, covariance)
    return np.asarray(directions, np.float64)


def _weigh_frames(centred: CentredFrames, directions: NDArray[np.float64]) -> Floats:
    """Weigh the frames of each clip by the softmax of their scores along directions [K, D]: [N, F, K].

    The weights of a clip's frames add up to 1 for each concept; absent frames weigh 0.
    """
    n_clips, n_frames = centred.is_present.shape
    n_concepts, n_features = directions.shape
    # One matrix product of all frames of all clips.
    frames = centred.frames.reshape(n_clips * n_frames, n_features)
    scores = frames @ directions.T.astype(np.float32)
    scores = scores.reshape(n_clips, n_frames, n_concepts)
    # exp(-inf) is 0: absent frames weigh nothing.
    log_weights = np.where(centred.is_present[..., None], WEIGHT_SHARPNESS * scores, -np.inf)
    return np.asarray(softmax(log_weights, axis=1))


def _difference_of_means(centred: CentredFrames, weights: Floats) -> Floats:
    """Compute the mean frame of the clips with each concept, less that of the clips without it: [K, D].

    Both means come out of one weighted sum of frames: `weights` [N, F, K] are positive in clips with the
    concept, where they add up to 1, and negative in clips without it, where they add up to -1. Each frame is
    taken less the mean of its film (`centred`), so that what differs between films only does not count.
    """
    n_frames = weights.shape[0] * weights.shape[1]
    frames = centred.frames.reshape(n_frames, -1)
    difference: Floats = weights.reshape(n_frames, -1).T.astype(np.float32) @ frames
    return difference


def _contrast_weights(present: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute clip weights [N, K] that contrast clips with and without each concept.

    They are 1 / n for the n clips with the concept, and -1 / m for the m clips without it: the weighted sum
    of clips is the difference of the two means. They are 0 if all clips are of one class, and 0 for clips
    whose presence (`present` [N, K], 1 or 0) is NaN.
    """
    is_with = present == 1
    is_without = present == 0
    n_with = is_with.sum(axis=0)
    n_without = is_without.sum(axis=0)
    # Without clips of a class the weights are set to 0 below; the maximum only avoids a division by 0.
    contrast = is_with / np.maximum(n_with, 1) - is_without / np.maximum(n_without, 1)
    has_both_classes = np.minimum(n_with, n_without) > 0
    return np.asarray(contrast * has_both_classes.astype(np.float64))


def within_film_covariance(scatter: NDArray[np.float64], n_frames: int) -> NDArray[np.float64]:
    """Compute the shrunk covariance [D, D] of frames within films.

    `scatter` [D, D] is the sum of products of `n_frames` frames less their film's mean. `SHRINKAGE` times the
    mean variance is added to each variance; if all frames are equal, the result is the identity.
    """
    covariance = scatter / max(n_frames, 1)
    average_variance = covariance.trace() / len(scatter)
    added = SHRINKAGE * average_variance
    if not added:
        added = 1.0  # all frames are equal
    return np.asarray(covariance + added * np.eye(len(scatter)))


def scale_directions(directions: NDArray[np.float64], covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale directions [K, D] so that frames with this covariance [D, D] have deviation 1 along each."""
    # The variance along a direction d is d' C d, with the covariance C. Directions of 0 stay 0.
    deviations = np.sqrt(np.einsum("kd,de,ke->k", directions, covariance, directions))
    return directions / np.where(deviations > 0, deviations, 1.0)[:, None]
