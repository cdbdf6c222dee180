"""Convert concept banks, CAVs and bottlenecks to parameters and arrays, and back."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from obygaze_models.concepts.bank import ConceptBank, LinearCAV
from obygaze_models.concepts.bottleneck import ConceptBottleneck
from obygaze_models.concepts.cav_fitting import Hyperplanes
from obygaze_models.concepts.dictionary import Dictionary
from obygaze_models.concepts.heads import node_counts, walk
from obygaze_models.concepts.in_time import ConceptsInTime, ConceptsUnlabelled, TimeBank
from obygaze_models.concepts.units import UnitBank
from obygaze_models.errors import ModelError
from obygaze_models.models.linear import ClippedScaler
from obygaze_models.persistence.archive import expect
from obygaze_models.persistence.card import UNLABELLED, Card
from obygaze_models.persistence.estimators import (
    CLASSES,
    N_LEVELS,
    Arrays,
    StateFunctions,
    fill_linear,
)

TIME_BANK = ("weights", "value_mean", "value_scale")
UNITS = ("encoder", "bias", "centre_of_tokens", "token_scale", "value_mean", "value_scale")
BANK = ("weights", "intercepts", "value_mean", "value_scale")
SCALER = ("feature_mean", "feature_scale")


def _bank_to_state(bank: ConceptBank) -> tuple[dict[str, Any], Arrays]:
    planes = bank.hyperplanes_
    arrays = (planes.weights, planes.intercepts, bank.mean_, bank.scale_)
    parameters = {"directions": bank.kind, "clip": bank.clip}
    return parameters, dict(zip(BANK, arrays, strict=True)) | _scaler_to_state(bank.scaler_)


def _time_bank_to_state(bank: TimeBank) -> tuple[dict[str, Any], Arrays]:
    arrays = dict(zip(TIME_BANK, (bank.weights_, bank.mean_, bank.scale_), strict=True))
    moments = zip(SCALER, (bank.frame_mean_, bank.frame_scale_), strict=True)
    return {"clip": bank.clip}, arrays | dict(moments)


def _time_bank_from_state(card: Card, arrays: Arrays) -> TimeBank:
    d, k = card.n_features, len(card.concepts)
    moments = {"feature_mean": (d,), "feature_scale": (d,)}
    expect(arrays, weights=(k, d), value_mean=(2 * k,), value_scale=(2 * k,), **moments)
    bank = TimeBank(concepts=list(card.concepts), clip=card.parameters["clip"])
    bank._validate_params()
    bank.concepts_, bank.n_features_in_ = np.array(card.concepts), d
    bank.weights_, bank.mean_, bank.scale_ = (arrays[name] for name in TIME_BANK)
    bank.frame_mean_, bank.frame_scale_ = (arrays[name] for name in SCALER)
    return bank


def _units_to_state(bank: UnitBank) -> tuple[dict[str, Any], Arrays]:
    made = bank.dictionary_
    arrays = (made.encoder, made.bias, made.centre, np.array([made.scale]), bank.mean_, bank.scale_)
    return {"n_active": made.n_active}, dict(zip(UNITS, arrays, strict=True))


def _units_from_state(card: Card, arrays: Arrays) -> UnitBank:
    """Make units again: what they encode by; they are not learnt further."""
    h, d, n_active = len(card.concepts), card.n_features, card.parameters["n_active"]
    wide = {"encoder": (h, d), "bias": (h,), "centre_of_tokens": (d,), "token_scale": (1,)}
    expect(arrays, **wide, value_mean=(h,), value_scale=(h,))
    bank = UnitBank(h, n_active)
    bank._validate_params()
    if n_active > h:
        raise ModelError(f"{n_active} of {h} units can't be active")
    encoder, bias, centre, scale, bank.mean_, bank.scale_ = (arrays[name] for name in UNITS)
    none = np.empty((0, d), np.float32)
    bank.dictionary_ = Dictionary(
        n_active, centre, float(scale[0]), encoder, none, bias, none, np.ones(2), 0, 0, np.zeros(h), np.nan
    )
    bank.concepts_, bank.n_features_in_ = np.array(card.concepts), d
    return bank


def _scaler_to_state(scaler: ClippedScaler | None) -> Arrays:
    return {} if scaler is None else dict(zip(SCALER, (scaler.mean_, scaler.scale_), strict=True))


def _scaler_from_state(card: Card, arrays: Arrays) -> ClippedScaler | None:
    """Take the scaler's arrays, which are there where features are standardised first."""
    clip = card.parameters.get("clip")
    if clip is None:
        return None
    scaler, d = ClippedScaler(clip), card.n_features
    scaler._validate_params()
    own = {name: arrays.pop(name) for name in SCALER if name in arrays}
    expect(own, feature_mean=(d,), feature_scale=(d,))
    scaler.mean_, scaler.scale_, scaler.n_features_in_ = own["feature_mean"], own["feature_scale"], d
    return scaler


def _bank_from_state(card: Card, arrays: Arrays) -> ConceptBank:
    d, k = card.n_features, len(card.concepts)
    scaler = _scaler_from_state(card, arrays)
    expect(arrays, weights=(k, d), intercepts=(k,), value_mean=(k,), value_scale=(k,))
    bank = ConceptBank(
        card.parameters["directions"], concepts=list(card.concepts), clip=card.parameters.get("clip")
    )
    bank._validate_params()
    bank.scaler_ = scaler
    bank.concepts_, bank.n_features_in_ = np.array(card.concepts), d
    bank.hyperplanes_ = Hyperplanes(arrays["weights"], arrays["intercepts"])
    bank.mean_, bank.scale_ = arrays["value_mean"], arrays["value_scale"]
    return bank


def _pcbm_to_state(estimator: ConceptBottleneck) -> tuple[dict[str, Any], Arrays]:
    if estimator.bank_ is None or estimator.residual_ is not None:
        what = "with a residual" if estimator.bank_ is not None else "fed with concept values"
        raise ModelError(f"a bottleneck {what} can't be kept in a file")
    to_state = next(to_state for kind, to_state, _ in BANKS if isinstance(estimator.bank_, kind))
    parameters, arrays = to_state(estimator.bank_)
    if isinstance(estimator, ConceptsUnlabelled):
        parameters[UNLABELLED] = True
    values = estimator.train_values_
    if len(values) != N_LEVELS or (np.diff(values, axis=0) < 0).any():  # else they are their own quantiles
        values = np.quantile(values, np.linspace(0, 1, N_LEVELS), axis=0)
    arrays |= {"values": values, "centre": estimator.centre_}
    head = estimator.head_
    if hasattr(head, "tree_"):
        return parameters | {"head": "tree"}, arrays | {"tree": _table(head)}
    return parameters | {"head": "linear"}, arrays | {
        "head": np.concatenate([head.coef_[0], head.intercept_]).astype(np.float64)
    }


def _table(head: Any) -> NDArray[np.float64]:
    """Write a tree's nodes as `StoredNodes` reads them."""
    if isinstance(head, StoredTree):
        return head.table
    tree = head.tree_
    leaf = tree.children_left < 0
    concept, threshold = np.where(leaf, -1, tree.feature), np.where(leaf, 0.0, tree.threshold)
    columns = (concept, threshold, tree.children_left, tree.children_right)
    return np.column_stack([*columns, np.round(node_counts(head), 9)]).astype(np.float64)


def _pcbm_from_state(card: Card, arrays: Arrays) -> ConceptBottleneck:
    in_time, is_tree = card.kind == "pcbm_time", card.parameters["head"] == "tree"
    of_units = in_time and "n_active" in card.parameters
    own = {name: arrays.pop(name) for name in (*BANK, *SCALER, *UNITS) if name in arrays}
    _, _, from_state = BANKS[0 if of_units else 1 if in_time else 2]
    bank = from_state(card, own)
    k = len(bank.mean_)
    of_frames = ConceptsUnlabelled if card.parameters.get(UNLABELLED) else ConceptsInTime
    made = of_frames if in_time else ConceptBottleneck
    model = made("tree" if is_tree else "logistic", bank=clone(bank))
    if is_tree:
        table = arrays.get("tree", np.empty(0))
        expect(arrays, values=(N_LEVELS, k), centre=(k,), tree=(len(table), 6))
        _check_tree(table, k)
        model.head_ = StoredTree(table)
    else:
        expect(arrays, values=(N_LEVELS, k), centre=(k,), head=(k + 1,))
        model.head_ = LogisticRegression()
        fill_linear(model.head_, arrays["head"][:-1], arrays["head"][-1:])
    model.classes_, model.n_features_in_ = np.array(CLASSES), card.n_features
    model.bank_, model.concepts_, model.residual_ = bank, card.concepts, None
    model.train_values_, model.centre_ = arrays["values"], arrays["centre"]
    model.threshold_, model.candidates_ = float(card.threshold), ()
    return model


def _check_tree(table: NDArray[np.float64], k: int) -> None:
    """Refuse a table of nodes that is no tree: a walk in it would not end, or leave it."""
    concept, below, above, counts = table[:, 0], table[:, 2], table[:, 3], table[:, 4:]
    here = np.arange(len(table))
    leaf = (concept == -1) & (below == -1) & (above == -1)
    # Children come after their parent, as scikit-learn numbers them: no walk comes back.
    inner = (concept >= 0) & (concept < k) & (below > here) & (above > here)
    inner &= (below < len(table)) & (above < len(table))
    numbers = table[:, [0, 2, 3]]
    if not ((leaf | inner).all() and (numbers == np.floor(numbers)).all()):
        raise ModelError("the array tree is not a table of a tree's nodes")
    if (counts < 0).any() or (counts.sum(axis=1) <= 0).any() or (counts > 1e15).any():
        raise ModelError("the array tree has a node without clips")


def _cav_to_state(estimator: LinearCAV) -> tuple[dict[str, Any], Arrays]:
    plane = np.array([estimator.offset_, estimator.norm_])
    arrays = {"direction": estimator.direction_, "plane": plane} | _scaler_to_state(estimator.scaler_)
    return estimator.get_params(), arrays


def _cav_from_state(card: Card, arrays: Arrays) -> LinearCAV:
    scaler = _scaler_from_state(card, arrays)
    expect(arrays, direction=(card.n_features,), plane=(2,))
    cav = LinearCAV(**card.parameters)
    cav._validate_params()
    cav.scaler_ = scaler
    cav.classes_, cav.n_features_in_ = np.array(CLASSES), card.n_features
    cav.direction_, (cav.offset_, cav.norm_) = arrays["direction"], arrays["plane"].tolist()
    cav.threshold_, cav.candidates_ = float(card.threshold), ()
    return cav


BANKS: tuple[tuple[type, Any, Any], ...] = (
    (UnitBank, _units_to_state, _units_from_state),
    (TimeBank, _time_bank_to_state, _time_bank_from_state),
    (ConceptBank, _bank_to_state, _bank_from_state),
)
"""Kinds of banks, and how they are converted; of a kind that is another's too, it comes first."""


class StoredNodes:
    """The nodes of a tree, under the names that scikit-learn gives them.

    Parameters
    ----------
    table : ndarray, shape [M, 6]
        For each node: concept and threshold asked for, node below and above it (-1 in a leaf, as is the
        concept), and the training clips of each class in it.
    """

    def __init__(self, table: NDArray[np.float64]) -> None:
        whole = table[:, [0, 2, 3]].astype(np.intp)
        self.feature, self.children_left, self.children_right = whole.T
        self.threshold = table[:, 1]
        self.weighted_n_node_samples = table[:, 4] + table[:, 5]
        self.n_node_samples = self.weighted_n_node_samples.astype(np.int64)
        self.value = (table[:, 4:] / self.weighted_n_node_samples[:, None])[:, None, :]


class StoredTree:
    """A decision tree that was read from a file: what heads ask of scikit-learn's."""

    def __init__(self, table: NDArray[np.float64]) -> None:
        self.table, self.tree_ = table, StoredNodes(table)

    def apply(self, P: NDArray[Any]) -> NDArray[np.intp]:
        """Find the leaf of each row of concept values P [N, K]."""
        nodes = np.zeros(len(P), dtype=np.intp)
        for rows, _, below in walk(self.tree_, P):
            nodes[rows] = below
        return nodes


STATES: Mapping[str, StateFunctions] = {
    "pcbm": (_pcbm_to_state, _pcbm_from_state),
    "pcbm_time": (_pcbm_to_state, _pcbm_from_state),
    "cav": (_cav_to_state, _cav_from_state),
    "bank": (_bank_to_state, _bank_from_state),
}
"""How the estimators of each kind are converted to parameters and arrays, and back."""
