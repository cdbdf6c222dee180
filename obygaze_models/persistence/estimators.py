"""Take the zoo's estimators apart into parameters and arrays, and put them together again."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

from obygaze_features.errors import first_line
from obygaze_models.concepts.bank import ConceptBank
from obygaze_models.concepts.bottleneck import ConceptBottleneck
from obygaze_models.concepts.cav import LinearCAV
from obygaze_models.concepts.heads import node_counts
from obygaze_models.concepts.hyperplanes import Hyperplanes
from obygaze_models.errors import ModelError
from obygaze_models.models.attention import AttentionPooling
from obygaze_models.models.attention_network import AttentionNetwork
from obygaze_models.models.linear import ClippedScaler, FramePool, linear_probe, make_frames_probe
from obygaze_models.models.mlp import MLPProbe
from obygaze_models.models.mlp_network import n_parameters
from obygaze_models.models.ridge_logistic import RidgeLogistic
from obygaze_models.models.training import LossCurve
from obygaze_models.persistence.card import Card

Arrays = dict[str, NDArray[Any]]

N_LEVELS = 201
"""Quantiles of the training clips' concept values that a file keeps, at equal steps from 0 to 1."""

CLASSES = (0, 1)


@dataclass(frozen=True, eq=False, slots=True)
class Parts:
    """An estimator taken apart: what it is made with, and what it learnt."""

    kind: str
    parameters: Mapping[str, Any]
    arrays: Arrays


class Nodes:
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
        self.table, self.tree_ = table, Nodes(table)

    def apply(self, P: NDArray[Any]) -> NDArray[np.intp]:
        """Find the leaf of each row of concept values P [N, K]."""
        tree, nodes = self.tree_, np.zeros(len(P), dtype=np.intp)
        narrow, rows = P.astype(np.float32), np.arange(len(P))  # the tree compares in float32
        while (inner := tree.children_left[nodes] >= 0).any():
            at = nodes[inner]
            above = narrow[rows[inner], tree.feature[at]] > tree.threshold[at]
            nodes[inner] = np.where(above, tree.children_right[at], tree.children_left[at])
        return nodes


def take_apart(estimator: Any) -> Parts | None:
    """Return an estimator of the zoo as parts; None for any other."""
    for kind, (is_one, apart, _) in KINDS.items():
        if is_one(estimator):
            parameters, arrays = apart(estimator)
            return Parts(kind, parameters, arrays)
    return None


def put_together(card: Card, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """Make the fitted estimator that a card and arrays are of.

    Raises
    ------
    ModelError
        They don't fit together.
    """
    try:
        return KINDS[card.kind][2](card, dict(arrays))
    except KeyError as error:
        raise ModelError(f"the card's parameter {error} is missing") from error
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(first_line(error)) from error


def expect(card: Card, arrays: Arrays, **shapes: tuple[int, ...]) -> None:
    """Refuse arrays of other names or shapes.

    Raises
    ------
    ModelError
        Naming the first.
    """
    if arrays.keys() != shapes.keys():
        raise ModelError(
            f"a model of kind {card.kind} has the arrays {', '.join(sorted(shapes))}; "
            f"found {', '.join(sorted(arrays)) or 'none'}"
        )
    for label, shape in shapes.items():
        if arrays[label].shape != shape:
            raise ModelError(
                f"{card.n_features} features need {label} of shape {list(shape)}; "
                f"found {list(arrays[label].shape)}"
            )
        if arrays[label].dtype.kind != "f":
            raise ModelError(f"array {label} holds {arrays[label].dtype}; expected floats")


def above_0(arrays: Arrays, label: str) -> None:
    """Refuse an array of scales that are not above 0."""
    if not (arrays[label] > 0).all():
        raise ModelError(f"{label} holds values that are not above 0")


# --- linear
# ---------------------------------------------------------------------------
def _is_linear(estimator: Any) -> bool:
    steps = [type(step) for _, step in estimator.steps] if isinstance(estimator, Pipeline) else []
    if steps[-2:-1] != [ClippedScaler] or steps[:-2] not in ([], [FramePool]):
        return False
    return steps[-1] in (RidgeLogistic, LogisticRegression)


def _linear_apart(estimator: Any) -> tuple[dict[str, Any], Arrays]:
    *pools, scaler, head = (step for _, step in estimator.steps)
    pooled = {"frames": pools[0].pool} if pools else {}
    return {"limit": float(scaler.limit), "C": float(head.C), **pooled}, {
        "mean": scaler.mean_,
        "scale": scaler.scale_,
        "weights": head.coef_[0],
        "intercept": head.intercept_,
    }


def _linear(card: Card, arrays: Arrays) -> Pipeline:
    d = card.n_features
    expect(card, arrays, mean=(d,), scale=(d,), weights=(d,), intercept=(1,))
    above_0(arrays, "scale")
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
    _fill_linear(head, arrays["weights"], arrays["intercept"])
    return pipeline


def _fill_linear(
    head: RidgeLogistic | LogisticRegression, weights: NDArray[Any], intercept: NDArray[Any]
) -> None:
    head.coef_, head.intercept_, head.classes_ = weights[None], intercept, np.array(CLASSES)


# --- networks
# ---------------------------------------------------------------------------
Probe = TypeVar("Probe", MLPProbe, AttentionPooling)


def _network_apart(estimator: Any) -> tuple[dict[str, Any], Arrays]:
    arrays = {"mean": estimator.mean_, "scale": estimator.scale_, "parameters": estimator.parameters_}
    return estimator.get_params() | {"n_epochs": estimator.n_epochs_}, arrays


def _mlp(card: Card, arrays: Arrays) -> MLPProbe:
    probe = _made(MLPProbe, card)
    size = n_parameters(card.n_features, probe.n_hidden, 2 if probe.variant == "paper" else 1)
    return _filled(probe, card, arrays, size)


def _attention(card: Card, arrays: Arrays) -> AttentionPooling:
    model = _made(AttentionPooling, card)
    n_hidden = model.n_hidden if model.attention == "gated" else 0
    return _filled(
        model,
        card,
        arrays,
        AttentionNetwork(card.n_features, n_hidden, model.timed, model.clip).n_parameters,
    )


def _made(kind: type[Probe], card: Card) -> Probe:
    """Make an unfitted network by a card's parameters."""
    given = {name: value for name, value in card.parameters.items() if name != "n_epochs"}
    wrong = sorted(kind().get_params().keys() ^ given.keys())
    if wrong:
        raise ModelError(
            f"the card's parameters and those of {kind.__name__} disagree about {wrong[0]!r:.80}"
        )
    made = kind(**given)
    made._validate_params()
    return made


def _filled(made: Probe, card: Card, arrays: Arrays, size: int) -> Probe:
    """Give a network what it learnt."""
    d, n_epochs = card.n_features, int(card.parameters["n_epochs"])
    expect(card, arrays, mean=(d,), scale=(d,), parameters=(size,))
    if len({array.dtype for array in arrays.values()}) > 1:
        raise ModelError("its arrays are of different dtypes")
    above_0(arrays, "scale")
    made.classes_, made.n_features_in_ = np.array(CLASSES), d
    made.threshold_, made.n_epochs_ = float(card.threshold), n_epochs
    made.parameters_, made.mean_, made.scale_ = (arrays[name] for name in ("parameters", "mean", "scale"))
    # Training curves stay behind.
    made.curve_ = LossCurve(np.empty(0), np.empty(0), n_epochs)
    return made


# --- concepts
# ---------------------------------------------------------------------------
BANK = ("weights", "intercepts", "value_mean", "value_scale")
SCALER = ("feature_mean", "feature_scale")


def _bank_apart(bank: ConceptBank) -> tuple[dict[str, Any], Arrays]:
    planes = bank.hyperplanes_
    arrays = (planes.weights, planes.intercepts, bank.mean_, bank.scale_)
    parameters = {"directions": bank.kind, "clip": bank.clip}
    return parameters, dict(zip(BANK, arrays, strict=True)) | _scaler_apart(bank.scaler_)


def _scaler_apart(scaler: ClippedScaler | None) -> Arrays:
    return {} if scaler is None else dict(zip(SCALER, (scaler.mean_, scaler.scale_), strict=True))


def _scaler(card: Card, arrays: Arrays) -> ClippedScaler | None:
    """Take the scaler's arrays, which are there where features are standardised first."""
    clip = card.parameters.get("clip")
    if clip is None:
        return None
    scaler, d = ClippedScaler(clip), card.n_features
    scaler._validate_params()
    own = {name: arrays.pop(name) for name in SCALER if name in arrays}
    expect(card, own, feature_mean=(d,), feature_scale=(d,))
    above_0(own, "feature_scale")
    scaler.mean_, scaler.scale_, scaler.n_features_in_ = own["feature_mean"], own["feature_scale"], d
    return scaler


def _bank(card: Card, arrays: Arrays) -> ConceptBank:
    d, k = card.n_features, len(card.concepts)
    scaler = _scaler(card, arrays)
    expect(card, arrays, weights=(k, d), intercepts=(k,), value_mean=(k,), value_scale=(k,))
    above_0(arrays, "value_scale")
    bank = ConceptBank(
        card.parameters["directions"], concepts=list(card.concepts), clip=card.parameters.get("clip")
    )
    bank._validate_params()
    bank.scaler_ = scaler
    bank.concepts_, bank.n_features_in_ = np.array(card.concepts), d
    bank.hyperplanes_ = Hyperplanes(arrays["weights"], arrays["intercepts"])
    bank.mean_, bank.scale_ = arrays["value_mean"], arrays["value_scale"]
    return bank


def _pcbm_apart(estimator: ConceptBottleneck) -> tuple[dict[str, Any], Arrays]:
    if estimator.bank_ is None or estimator.residual_ is not None:
        what = "with a residual" if estimator.bank_ is not None else "fed with concept values"
        raise ModelError(f"a bottleneck {what} can't be kept in a file")
    parameters, arrays = _bank_apart(estimator.bank_)
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
    """Write a tree's nodes as `Nodes` reads them."""
    if isinstance(head, StoredTree):
        return head.table
    tree = head.tree_
    leaf = tree.children_left < 0
    concept, threshold = np.where(leaf, -1, tree.feature), np.where(leaf, 0.0, tree.threshold)
    columns = (concept, threshold, tree.children_left, tree.children_right)
    return np.column_stack([*columns, np.round(node_counts(head), 9)]).astype(np.float64)


def _pcbm(card: Card, arrays: Arrays) -> ConceptBottleneck:
    k, is_tree = len(card.concepts), card.parameters["head"] == "tree"
    bank = _bank(card, {name: arrays.pop(name) for name in (*BANK, *SCALER) if name in arrays})
    model = ConceptBottleneck("tree" if is_tree else "logistic", bank=ConceptBank(bank.kind))
    if is_tree:
        table = arrays.get("tree", np.empty(0))
        expect(card, arrays, values=(N_LEVELS, k), centre=(k,), tree=(len(table), 6))
        _check_tree(table, k)
        model.head_ = StoredTree(table)
    else:
        expect(card, arrays, values=(N_LEVELS, k), centre=(k,), head=(k + 1,))
        model.head_ = LogisticRegression()
        _fill_linear(model.head_, arrays["head"][:-1], arrays["head"][-1:])
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


def _cav_apart(estimator: LinearCAV) -> tuple[dict[str, Any], Arrays]:
    plane = np.array([estimator.offset_, estimator.norm_])
    arrays = {"direction": estimator.direction_, "plane": plane} | _scaler_apart(estimator.scaler_)
    return estimator.get_params(), arrays


def _cav(card: Card, arrays: Arrays) -> LinearCAV:
    scaler = _scaler(card, arrays)
    expect(card, arrays, direction=(card.n_features,), plane=(2,))
    cav = LinearCAV(**card.parameters)
    cav._validate_params()
    cav.scaler_ = scaler
    cav.classes_, cav.n_features_in_ = np.array(CLASSES), card.n_features
    cav.direction_, (cav.offset_, cav.norm_) = arrays["direction"], arrays["plane"].tolist()
    cav.threshold_, cav.candidates_ = float(card.threshold), ()
    return cav


KINDS: Mapping[
    str,
    tuple[
        Callable[[Any], bool],
        Callable[[Any], tuple[dict[str, Any], Arrays]],
        Callable[[Card, Arrays], Any],
    ],
] = {
    "linear": (_is_linear, _linear_apart, _linear),
    "mlp": (lambda made: isinstance(made, MLPProbe), _network_apart, _mlp),
    "attention": (lambda made: isinstance(made, AttentionPooling), _network_apart, _attention),
    "pcbm": (lambda made: isinstance(made, ConceptBottleneck), _pcbm_apart, _pcbm),
    "cav": (lambda made: isinstance(made, LinearCAV), _cav_apart, _cav),
    "bank": (lambda made: isinstance(made, ConceptBank), _bank_apart, _bank),
}
