"""Fit the linear probe: L2-regularised logistic regression on standardised, clipped features.

It reads pooled vectors, or the mean or maximum over a clip's frames.
"""

from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, validate_data

from obygaze_features.arguments import checked
from obygaze_models.dataset.features import StoredClips
from obygaze_models.models.binary import Floats, rows_for
from obygaze_models.models.grouped_selection import Grid
from obygaze_models.models.parameters import Estimator
from obygaze_models.models.ridge_logistic import RidgeLogistic
from obygaze_models.models.spec import ModelSpec

CLIP = 5.0
"""Deviations at which a standardised feature is cut off.

A feature that hardly varies in training is tiny in scale: one clip unlike the others would otherwise have a
standardised value of thousands and a score to match. Measured in docs/evaluation.md.
"""

MOST = 1e6
"""The largest limit: beyond it nothing is bounded, and float32 overflows."""

Limit = Annotated[float, Interval(Real, 0, MOST, closed="right")]

ROWS = 256
"""Clips that are standardised at a time: their copies in float64 stay in the processor's cache."""

FRAMES_OF = 64
"""Clips of whose frames moments are computed at a time."""

PENALTIES = Grid("ridgelogistic__C", (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0))
"""Inverse strengths to choose among; of equal losses the strongest penalty is taken."""

# --- standardising
# ---------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class ClippedScaler(OneToOneFeatureMixin, TransformerMixin, Estimator):
    """Standardise features and clip them at a number of standard deviations.

    Parameters
    ----------
    limit : float
        Standardised values are cut to [-limit, limit].

    Attributes
    ----------
    mean_, scale_ : ndarray, shape [D]
        Moments of the training clips; a constant feature's scale is 1.
    n_features_in_ : int
        D.

    Examples
    --------
    >>> import obygaze_models as om
    >>> om.ClippedScaler(limit=2).fit_transform([[0.0], [1.0], [100.0]]).round(2).tolist()
    [[-0.72], [-0.7], [1.41]]
    """

    limit: Limit = CLIP

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Learn the moments of X [N, D]; y is not used."""
        del y
        self._validate_params()
        features = validate_data(self, X, dtype=(np.float64, np.float32))
        self.mean_, self.scale_ = moments(features)
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Standardise and clip X [N, D] in float64 (in float32, solvers stop early)."""
        check_is_fitted(self)
        features = rows_for(self, X, np.float64, np.float32)
        scaled = np.empty(features.shape)
        standardise(features, self.mean_, self.scale_, self.limit, out=scaled)
        return scaled


def moments(X: NDArray[np.floating[Any]]) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
    """Compute mean and standard deviation of each column of X [N, D]; 1 for constant columns."""
    mean = _column_sums(X, np.zeros(X.shape[1]), power=1) / len(X)
    scale = np.sqrt(_column_sums(X, mean, power=2) / len(X))
    return safe_scale(mean, scale, X.dtype)


def _column_sums(
    X: NDArray[np.floating[Any]], centre: NDArray[np.float64], *, power: int
) -> NDArray[np.float64]:
    """Add up each column of (X - centre) ** power, row after row as numpy does, without a copy of X."""
    work = np.zeros((ROWS + 1, X.shape[1]))
    for start in range(0, len(X), ROWS):
        rows = work[1 : 1 + len(X) - start]
        np.subtract(X[start : start + ROWS], centre, out=rows)
        if power == 2:
            rows *= rows
        work[0] = np.add.reduce(work[: 1 + len(rows)], axis=0)
    return np.asarray(work[0])


def safe_scale(
    mean: NDArray[np.float64], scale: NDArray[np.float64], dtype: np.dtype[Any]
) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
    """Give mean and deviation [D] of features of a data type in that type; 1 for constant features."""
    # Rounding leaves a constant column a tiny deviation, which would blow it up.
    constant = scale <= 10 * np.finfo(dtype).eps * np.abs(mean)
    return mean.astype(dtype), np.where(constant, 1.0, scale).astype(dtype)


def standardise(
    X: NDArray[np.floating[Any]],
    mean: NDArray[np.floating[Any]],
    scale: NDArray[np.floating[Any]],
    limit: float | None,
    out: NDArray[np.floating[Any]] | None = None,
) -> NDArray[np.floating[Any]]:
    """Subtract the mean, divide by the scale, and clip at `limit` deviations unless it is None.

    The result is written into `out`, or into an array of the type of X and mean together.
    """
    if out is None:
        out = np.empty(X.shape, np.result_type(X, mean))
    for start in range(0, len(X), ROWS):
        rows = out[start : start + ROWS]
        np.subtract(X[start : start + ROWS], mean, out=rows, dtype=out.dtype)
        rows /= scale
        if limit is not None:
            np.clip(rows, -limit, limit, out=rows)
    return out


# --- frames
# ---------------------------------------------------------------------------


def check_frames(X: ArrayLike) -> Floats:
    """Take clips' frames [N, F, D] as floats of at least 32 bits.

    Raises
    ------
    ValueError
        They have another number of dimensions, are infinite, or a clip has no present frame.
    """
    frames = check_array(
        X, dtype=(np.float32, np.float64), ensure_2d=False, allow_nd=True, ensure_all_finite="allow-nan"
    )
    if frames.ndim != 3 or 0 in frames.shape:
        raise ValueError(f"expected clips' frames [N, F, D]; found an array of shape {list(frames.shape)}")
    absent = np.isnan(frames)
    whole = absent.all(axis=2)
    if (absent.any(axis=2) & ~whole).any():
        raise ValueError("a frame is absent (NaN) in all of its features or in none")
    if whole.all(axis=1).any():
        raise ValueError(f"clip {int(np.flatnonzero(whole.all(axis=1))[0])} has no frame that is present")
    return frames  # type: ignore[no-any-return]  # check_array is untyped


def frame_moments(
    X: Floats, dtype: np.dtype[Any] | None = None
) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
    """Compute mean and deviation [D] of all present frames of X [N, F, D]; 1 for constant features."""
    blocks = [X[first : first + FRAMES_OF] for first in range(0, len(X), FRAMES_OF)]
    n = int((~np.isnan(X[..., 0])).sum())
    mean = sum(np.nansum(block.astype(np.float64), axis=(0, 1)) for block in blocks) / n
    squares = sum(np.nansum((block.astype(np.float64) - mean) ** 2, axis=(0, 1)) for block in blocks)
    return safe_scale(mean, np.sqrt(squares / n), dtype or X.dtype)


def differing(difference: Floats, n: int) -> NDArray[np.float64]:
    """Return the directions [D, n] in which two scatters with this difference [D, D] differ most."""
    sizes, vectors = np.linalg.eigh(difference.astype(np.float64))
    return vectors[:, np.argsort(-np.abs(sizes), kind="stable")[:n]]


class FrameReader(Estimator):
    """Base class of the classifiers of clips' frames or tokens [N, F, D]."""

    n_features_in_: int

    def __sklearn_tags__(self) -> Tags:
        """Clips of several frames."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags

    def _first_frames(self, X: ArrayLike | StoredClips, y: ArrayLike | None = None) -> Any:
        """Take clips to fit on, as many as labels."""
        clips = X if isinstance(X, StoredClips) else check_frames(X)
        check_consistent_length(clips, y)
        self.n_features_in_ = clips.shape[2]
        return clips

    def _frames(self, X: ArrayLike | StoredClips) -> Any:
        """Take clips of as many features as those fitted on; those of a store stay unread."""
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
        """Clips of several frames."""
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Look at the shape of X [N, F, D]; y is not used."""
        del y
        self._validate_params()
        self.n_features_in_ = check_frames(X).shape[2]
        return self

    def transform(self, X: ArrayLike) -> Floats:
        """Reduce X [N, F, D] to [N, D]."""
        frames = check_frames(X)
        reduce = np.nanmean if self.pool == "mean" else np.nanmax
        return np.asarray(reduce(frames, axis=1))


# --- probes
# ---------------------------------------------------------------------------


@checked
def linear_probe(C: float = 0.01) -> Pipeline:
    """Make the linear probe, unfitted; its penalty is tuned over `PENALTIES`.

    Examples
    --------
    >>> import obygaze_models as om
    >>> om.linear_probe(C=0.01)[-1].C
    0.01
    """
    return make_pipeline(ClippedScaler(), RidgeLogistic(C=C))


def variables_probe() -> Pipeline:
    """Make a linear probe whose absent numbers are the training clips' means, unfitted."""
    return make_pipeline(SimpleImputer(keep_empty_features=True), *(step for _, step in linear_probe().steps))


def make_frames_probe(pool: Literal["mean", "max"]) -> Pipeline:
    """Make the linear probe on the mean or the maximum over frames, unfitted."""
    return make_pipeline(FramePool(pool), ClippedScaler(), RidgeLogistic(C=0.01))


SPECS = (ModelSpec("linear", "Logistic regression", lambda _: linear_probe(), choose=PENALTIES),)
