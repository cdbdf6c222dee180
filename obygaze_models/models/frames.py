"""Check clips' frames or tokens, compute their moments, reduce them to vectors, and read them in estimators.

Frames are arrays [N, F, D] of N clips; a frame that a clip lacks is NaN.
"""

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_consistent_length

from obygaze_models.dataset.features import StoredClips
from obygaze_models.models.binary import Floats
from obygaze_models.models.parameters import Estimator
from obygaze_models.models.scaling import MeanAndScale, as_mean_and_scale

N_CLIPS_AT_ONCE = 64
"""Clips whose frames are copied in float64 at a time, to compute means and deviations."""


def check_frames(X: ArrayLike) -> Floats:
    """Validate clips' frames and return them as an array [N, F, D] of float32 or float64.

    Raises
    ------
    ValueError
        X has not three dimensions, or one of them is 0; a value is infinite; a frame is NaN in some of its
        features only; or a clip has no present frame.
    """
    frames = check_array(
        X, dtype=(np.float32, np.float64), ensure_2d=False, allow_nd=True, ensure_all_finite="allow-nan"
    )
    if frames.ndim != 3 or 0 in frames.shape:
        raise ValueError(f"expected clips' frames [N, F, D]; found an array of shape {list(frames.shape)}")

    is_nan = np.isnan(frames)
    is_absent = is_nan.all(axis=2)  # [N, F]
    is_partly_nan = is_nan.any(axis=2) & ~is_absent
    if is_partly_nan.any():
        raise ValueError("a frame is absent (NaN) in all of its features or in none")
    is_empty = is_absent.all(axis=1)  # [N]
    if is_empty.any():
        first_empty = int(np.flatnonzero(is_empty)[0])
        raise ValueError(f"clip {first_empty} has no frame that is present")
    return frames  # type: ignore[no-any-return]  # check_array is untyped


def mean_and_scale_of_frames(X: Floats, dtype: np.dtype[Any] | None = None) -> MeanAndScale:
    """Compute mean and standard deviation [D] over all present frames of X [N, F, D].

    The deviation of a constant feature is 1. Both results are of type `dtype`, by default that of X.
    """
    if dtype is None:
        dtype = X.dtype
    # A frame is NaN in all of its features or in none, so that the first one tells which are present.
    is_present = ~np.isnan(X[..., 0])
    n_frames = int(is_present.sum())

    # In blocks of clips, whose copies in float64 are small. Absent frames do not count.
    blocks = [X[first : first + N_CLIPS_AT_ONCE] for first in range(0, len(X), N_CLIPS_AT_ONCE)]
    total = np.zeros(X.shape[2])
    for block in blocks:
        total += np.nansum(block.astype(np.float64), axis=(0, 1))
    mean = total / n_frames

    squares = np.zeros(X.shape[2])
    for block in blocks:
        deviations = block.astype(np.float64) - mean
        squares += np.nansum(deviations**2, axis=(0, 1))

    return as_mean_and_scale(mean, np.sqrt(squares / n_frames), dtype)


def most_differing_directions(difference: Floats, n: int) -> NDArray[np.float64]:
    """Return the n directions [D, n] in which two scatter matrices differ most.

    Parameters
    ----------
    difference : ndarray, shape [D, D]
        One scatter matrix less the other.
    n : int

    Returns
    -------
    ndarray, shape [D, n]
        The eigenvectors of the difference with the eigenvalues of largest absolute value, largest first.
    """
    eigenvalues, eigenvectors = np.linalg.eigh(difference.astype(np.float64))
    largest_first = np.argsort(-np.abs(eigenvalues), kind="stable")
    return eigenvectors[:, largest_first[:n]]


class FrameReader(Estimator):
    """Base class of the classifiers of clips' frames or tokens [N, F, D]."""

    n_features_in_: int

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that a clip has several frames."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags

    def _check_frames_to_fit(self, X: ArrayLike | StoredClips, y: ArrayLike | None = None) -> Any:
        """Validate the clips [N, F, D] and labels y [N] to fit on, and return the clips.

        The number of features is kept, as `n_features_in_`. The frames of stored clips are not checked here,
        as they are only read when they are needed.
        """
        clips = X if isinstance(X, StoredClips) else check_frames(X)
        check_consistent_length(clips, y)
        self.n_features_in_ = clips.shape[2]
        return clips

    def _check_frames(self, X: ArrayLike | StoredClips) -> Any:
        """Validate clips [N, F, D] to score; raise if frames have not as many features as in `fit`."""
        clips = X if isinstance(X, StoredClips) else check_frames(X)
        if clips.shape[2] != self.n_features_in_:
            raise ValueError(
                f"X has {clips.shape[2]} features a frame; {type(self).__name__} was fitted with "
                f"{self.n_features_in_}"
            )
        return clips


@dataclass(eq=False, repr=False)
class FramePool(TransformerMixin, Estimator):
    """Reduce a clip's frames to one vector.

    Parameters
    ----------
    pool : {"mean", "max"}
        Over the frames that are present.
    """

    pool: Literal["mean", "max"] = "mean"

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that a clip has several frames."""
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.requires_fit = False
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Note the number of features of X [N, F, D]; y is not used."""
        del y
        self._validate_params()
        self.n_features_in_ = check_frames(X).shape[2]
        return self

    def transform(self, X: ArrayLike) -> Floats:
        """Reduce the frames X [N, F, D] to the mean or maximum over each clip's present frames, [N, D]."""
        frames = check_frames(X)
        reduce = np.nanmean if self.pool == "mean" else np.nanmax
        return np.asarray(reduce(frames, axis=1))


def shuffle_frames(frames: Floats, rng: np.random.Generator) -> Floats:
    """Return the frames [N, F, ...] with those of each clip in a random order of its own."""
    n_clips, n_frames = frames.shape[:2]
    in_order = np.tile(np.arange(n_frames), (n_clips, 1))
    order = rng.permuted(in_order, axis=1)
    return np.take_along_axis(frames, order[..., None], axis=1)
