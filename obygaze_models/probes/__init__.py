"""Small trained heads on frozen features, and the baselines that they must beat: scikit-learn estimators."""

from obygaze_models.probes.baselines import AlwaysNegative, AlwaysPositive, MoviePrior, RandomGuess
from obygaze_models.probes.imbalance import IMBALANCES, Imbalance
from obygaze_models.probes.mlp import MLPProbe, fit_many
from obygaze_models.probes.training import Curve

__all__ = [
    "IMBALANCES",
    "AlwaysNegative",
    "AlwaysPositive",
    "Curve",
    "Imbalance",
    "MLPProbe",
    "MoviePrior",
    "RandomGuess",
    "fit_many",
]
