"""Small models on frozen features and their baselines, as scikit-learn estimators."""

from obygaze_models.models.attention import AttentionPooling
from obygaze_models.models.baselines import AlwaysNegative, AlwaysPositive, MoviePrior, RandomGuess
from obygaze_models.models.labels import IMBALANCES, Imbalance
from obygaze_models.models.linear import ClippedScaler, linear_probe
from obygaze_models.models.mlp import MLPProbe, fit_many
from obygaze_models.models.ridge_logistic import RidgeLogistic
from obygaze_models.models.selection import EarlyStopping, Grid, GroupedSelection, Threshold
from obygaze_models.models.spec import ModelSpec
from obygaze_models.models.training import Curve

__all__ = [
    "IMBALANCES",
    "AlwaysNegative",
    "AlwaysPositive",
    "AttentionPooling",
    "ClippedScaler",
    "Curve",
    "EarlyStopping",
    "Grid",
    "GroupedSelection",
    "Imbalance",
    "MLPProbe",
    "ModelSpec",
    "MoviePrior",
    "RandomGuess",
    "RidgeLogistic",
    "Threshold",
    "fit_many",
    "linear_probe",
]
