"""Check clips' frames, and pool them for models that read one vector a clip."""

from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import Tags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_array

from obygaze_models.models.linear import ClippedScaler
from obygaze_models.models.network import Floats
from obygaze_models.models.ridge_logistic import RidgeLogistic


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


class FramePool(TransformerMixin, BaseEstimator):
    """Reduce a clip's frames to one vector.

    Parameters
    ----------
    pool : {"mean", "max"}
        Over the frames that are present.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"pool": [StrOptions({"mean", "max"})]}

    def __init__(self, pool: Literal["mean", "max"] = "mean") -> None:
        self.pool = pool

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
        pooled: Floats = reduce(frames, axis=1)
        return pooled


def make_frames_probe(pool: Literal["mean", "max"]) -> Pipeline:
    """Make the linear probe on the mean or the maximum over frames, unfitted."""
    return make_pipeline(FramePool(pool), ClippedScaler(), RidgeLogistic(C=0.01))
