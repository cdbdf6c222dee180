"""A parameter is what its type says, or is refused by its name."""

import numpy as np
import pytest

from obygaze_models import concepts, models
from obygaze_models.concepts.time_bank import TimeBank
from obygaze_models.concepts.units import UnitBank
from obygaze_models.models.frames import FramePool


@pytest.mark.parametrize(
    ("estimator", "wrong_values"),
    [
        (
            models.AttentionPooling,
            {"n_hidden": 0, "attention": "soft", "timed": "yes", "disturb": "all", "clip": 0},
        ),
        (
            models.AttentiveProbe,
            {"n_queries": 1.5, "penalty": -1.0, "learning_rate": 0.0, "patience": 0},
        ),
        (
            models.MLPProbe,
            {"variant": "papier", "imbalance": "smote", "min_epochs": 0, "random_state": -1},
        ),
        (models.RidgeLogistic, {"C": 0.0, "tol": "small", "max_iter": 0}),
        (models.ClippedScaler, {"limit": None}),
        (models.RandomGuess, {"probability": 1.1, "random_state": 0.5}),
        (FramePool, {"pool": "median"}),
        (
            concepts.ConceptBank,
            {"kind": "lda", "C": -1.0, "balanced": 2, "concepts": "Body", "clip": 1e7},
        ),
        (concepts.LinearCAV, {"kind": None, "clip": np.inf}),
        (
            concepts.ConceptBottleneck,
            {"head": "forest", "bank": UnitBank(), "residual": 1, "inner_folds": 1},
        ),
        (concepts.ConceptsInTime, {"bank": concepts.ConceptBank(), "residual": True}),
        (TimeBank, {"disturb": "all", "random_state": "a", "directions": "text"}),
        (UnitBank, {"n_units": 0, "n_active": 0, "n_epochs": 0}),
    ],
)
def test_a_parameter_of_another_type_or_out_of_range_is_refused_by_its_name(estimator, wrong_values):
    """Parameters are checked by `_validate_params`, as in scikit-learn; those by default are right."""
    estimator()._validate_params()

    for name, wrong_value in wrong_values.items():
        with pytest.raises(ValueError, match=f"'{name}' parameter of {estimator.__name__}"):
            estimator(**{name: wrong_value})._validate_params()
