"""Make the linear probe: L2-regularised logistic regression on standardised, clipped features.

It reads pooled vectors, or the mean or maximum over a clip's frames.
"""

from typing import Literal

from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline

from obygaze_features.arguments import checked
from obygaze_models.models.choices import Grid
from obygaze_models.models.frames import FramePool
from obygaze_models.models.ridge_logistic import RidgeLogistic
from obygaze_models.models.scaling import ClippedScaler
from obygaze_models.models.spec import ModelSpec

PENALTIES = Grid("ridgelogistic__C", (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0))
"""Inverse strengths to choose among; of equal losses the strongest penalty is taken."""


@checked
def linear_probe(C: float = 0.01) -> Pipeline:
    """Make the linear probe, unfitted.

    The zoo's ``linear`` model chooses C, the inverse strength of the penalty, from `PENALTIES`.

    Examples
    --------
    >>> import obygaze_models as om
    >>> om.linear_probe(C=0.01)[-1].C
    0.01
    """
    return make_pipeline(ClippedScaler(), RidgeLogistic(C=C))


def variables_probe() -> Pipeline:
    """Make the linear probe for variables of a table, unfitted: some values may be missing (NaN).

    A missing value is replaced by the mean of the training clips.
    """
    # A variable that is missing in all training clips is kept, as 0: the number of features stays the same.
    imputer = SimpleImputer(keep_empty_features=True)
    steps_of_probe = [step for _, step in linear_probe().steps]
    return make_pipeline(imputer, *steps_of_probe)


def make_frames_probe(pool: Literal["mean", "max"]) -> Pipeline:
    """Make the linear probe on the mean or the maximum over frames, unfitted."""
    return make_pipeline(FramePool(pool), ClippedScaler(), RidgeLogistic(C=0.01))


SPECS = (ModelSpec("linear", "Logistic regression", lambda _: linear_probe(), choose=PENALTIES),)
