"""Convert linear probes and networks to parameters and arrays, and back; check arrays against a card."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

from obygaze_models.errors import ModelError
from obygaze_models.models.attention import AttentionPooling
from obygaze_models.models.attentive import AttentiveProbe
from obygaze_models.models.fusion import LinearFusion, LinearJoin
from obygaze_models.models.linear import ClippedScaler, FramePool, linear_probe, make_frames_probe
from obygaze_models.models.mlp import MLPProbe
from obygaze_models.models.ridge_logistic import RidgeLogistic
from obygaze_models.models.training import LossCurve, NeuralClassifier
from obygaze_models.persistence.archive import expect
from obygaze_models.persistence.card import Card

Arrays = dict[str, NDArray[Any]]

N_LEVELS = 201
"""Quantiles of the training clips' concept values that a file keeps, at equal steps from 0 to 1."""

CLASSES = (0, 1)

NETWORKS: Mapping[str, type[NeuralClassifier]] = {
    "mlp": MLPProbe,
    "attention": AttentionPooling,
    "attentive": AttentiveProbe,
}
"""The neural classifiers, by kind."""


@dataclass(frozen=True, eq=False, slots=True)
class EstimatorState:
    """An estimator as parameters and learnt arrays."""

    kind: str
    parameters: Mapping[str, Any]
    arrays: Arrays


StateFunctions = tuple[Callable[[Any], tuple[dict[str, Any], Arrays]], Callable[[Card, Arrays], Any]]
"""From an estimator to parameters and arrays, and from card and arrays to the estimator."""


# --- linear
# ---------------------------------------------------------------------------
def is_linear(estimator: Any) -> bool:
    """Whether an estimator is a linear probe, on vectors or on pooled frames."""
    steps = [type(step) for _, step in estimator.steps] if isinstance(estimator, Pipeline) else []
    if steps[-2:-1] != [ClippedScaler] or steps[:-2] not in ([], [FramePool]):
        return False
    return steps[-1] in (RidgeLogistic, LogisticRegression)


def _linear_to_state(estimator: Any) -> tuple[dict[str, Any], Arrays]:
    *pools, scaler, head = (step for _, step in estimator.steps)
    pooled = {"frames": pools[0].pool} if pools else {}
    return {"limit": float(scaler.limit), "C": float(head.C), **pooled}, {
        "mean": scaler.mean_,
        "scale": scaler.scale_,
        "weights": head.coef_[0],
        "intercept": head.intercept_,
    }


def _linear_from_state(card: Card, arrays: Arrays) -> Pipeline:
    d = card.n_features
    expect(arrays, mean=(d,), scale=(d,), weights=(d,), intercept=(1,))
    C, frames = card.parameters["C"], card.parameters.get("frames")
    pipeline = (
        linear_probe(C=C) if frames is None else make_frames_probe(frames).set_params(ridgelogistic__C=C)
    )
    *pools, scaler, head = (step for _, step in pipeline.steps)
    for pool in pools:
        pool._validate_params()
        pool.n_features_in_ = d
    scaler.set_params(limit=card.parameters["limit"])._validate_params()
    head._validate_params()
    scaler.mean_, scaler.scale_ = arrays["mean"], arrays["scale"]
    scaler.n_features_in_ = head.n_features_in_ = d
    fill_linear(head, arrays["weights"], arrays["intercept"])
    return pipeline


def fill_linear(
    head: RidgeLogistic | LogisticRegression, weights: NDArray[Any], intercept: NDArray[Any]
) -> None:
    """Give a linear model of two classes what it learnt."""
    head.coef_, head.intercept_, head.classes_ = weights[None], intercept, np.array(CLASSES)


# --- networks
# ---------------------------------------------------------------------------
def _network_to_state(estimator: Any) -> tuple[dict[str, Any], Arrays]:
    arrays = {"mean": estimator.mean_, "scale": estimator.scale_, "parameters": estimator.parameters_}
    return estimator.get_params() | {"n_epochs": estimator.n_epochs_}, arrays


def _network_from_state(card: Card, arrays: Arrays) -> NeuralClassifier:
    kind, d, n_epochs = NETWORKS[card.kind], card.n_features, int(card.parameters["n_epochs"])
    parameters = {key: value for key, value in card.parameters.items() if key != "n_epochs"}
    wrong = sorted(kind().get_params().keys() ^ parameters.keys())
    if wrong:
        raise ModelError(
            f"the card's parameters and those of {kind.__name__} disagree about {wrong[0]!r:.80}"
        )
    model = kind(**parameters)
    model._validate_params()
    expect(arrays, mean=(d,), scale=(d,), parameters=(model._network(d).n_parameters,))
    if len({array.dtype for array in arrays.values()}) > 1:
        raise ModelError("its arrays are of different dtypes")
    model.classes_, model.n_features_in_ = np.array(CLASSES), d
    model.threshold_, model.n_epochs_ = float(card.threshold), n_epochs
    model.parameters_, model.mean_, model.scale_ = (arrays[name] for name in ("parameters", "mean", "scale"))
    # Training curves are not kept.
    model.curve_ = LossCurve(np.empty(0), np.empty(0), n_epochs)
    return model


# --- several modalities
# ---------------------------------------------------------------------------
def _fusion_to_state(fusion: LinearFusion) -> tuple[dict[str, Any], Arrays]:
    return {"largest": fusion.largest}, {
        f"{_label(pattern)}_{name}": np.asarray(array, np.float64)
        for pattern, join in fusion.joins.items()
        for name, array in join._asdict().items()
    }


def _fusion_from_state(card: Card, arrays: Arrays) -> LinearFusion:
    widths = [modality["n_features"] for modality in card.modalities]
    every = range(len(widths))
    shapes: dict[str, tuple[int, ...]] = {}
    patterns = []
    for pattern in (some for size in every for some in combinations(every, size + 1)):
        if len(pattern) < len(widths) and f"{_label(pattern)}_base" not in arrays:
            continue  # no training clip had these modalities alone
        patterns.append(pattern)
        d, m = (sum(widths[index] for index in pattern),), (len(pattern),)
        own = zip(LinearJoin._fields, (d, d, d, m, m, (1,)), strict=True)
        shapes |= {f"{_label(pattern)}_{name}": shape for name, shape in own}
    expect(arrays, **shapes)
    joins = {
        pattern: LinearJoin(*(arrays[f"{_label(pattern)}_{name}"] for name in LinearJoin._fields))
        for pattern in patterns
    }
    columns = tuple(place for _, place in card.input_columns())
    return LinearFusion(columns, joins, largest=bool(card.parameters["largest"]))


def _label(pattern: tuple[int, ...]) -> str:
    return "_".join(map(str, pattern))


STATES: Mapping[str, StateFunctions] = {
    "linear": (_linear_to_state, _linear_from_state),
    "fused": (_fusion_to_state, _fusion_from_state),
    **dict.fromkeys(NETWORKS, (_network_to_state, _network_from_state)),
}
"""How the estimators of each kind are converted to parameters and arrays, and back."""
