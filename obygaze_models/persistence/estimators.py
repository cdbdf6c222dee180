"""Convert the zoo's estimators to parameters and arrays, and back; check arrays against a card."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from obygaze_models.concepts.bank import ConceptBank
from obygaze_models.concepts.bottleneck import ConceptBottleneck
from obygaze_models.concepts.cav_fitting import Hyperplanes
from obygaze_models.concepts.dictionary import Dictionary
from obygaze_models.concepts.head_scores import node_counts
from obygaze_models.concepts.in_time import ConceptsInTime, ConceptsUnlabelled
from obygaze_models.concepts.linear_cav import LinearCAV
from obygaze_models.concepts.time_bank import TimeBank
from obygaze_models.concepts.units import UnitBank
from obygaze_models.errors import ModelError
from obygaze_models.models.attention import AttentionPooling
from obygaze_models.models.attentive import AttentiveProbe
from obygaze_models.models.frames import FramePool
from obygaze_models.models.linear_fusion import LinearFusion, LinearJoin
from obygaze_models.models.mlp import MLPProbe
from obygaze_models.models.neural_classifiers import NeuralClassifier
from obygaze_models.models.ridge_logistic import RidgeLogistic
from obygaze_models.models.scaling import ClippedScaler
from obygaze_models.models.training import LossCurve
from obygaze_models.persistence.archive import check_arrays
from obygaze_models.persistence.card import UNLABELLED, Card

Arrays = dict[str, NDArray[Any]]
Shapes = Mapping[str, tuple[int, ...]]

N_LEVELS = 201
"""Number of quantiles of the training clips' concept values that a file keeps, at equal steps from 0 to 1."""

N_VALUES_IN_TIME = 2
"""Values of a concept in time: how strongly it is present, and where in the clip."""

MAX_CLIPS_OF_NODE = 1e15
"""Most training clips of a class in a tree's node that are accepted from a file."""

CLASSES = (0, 1)
"""Classes of every model in a file."""

NETWORKS: Mapping[str, type[NeuralClassifier]] = {
    "mlp": MLPProbe,
    "attention": AttentionPooling,
    "attentive": AttentiveProbe,
}
"""The neural classifiers, by kind."""


@dataclass(frozen=True, eq=False, slots=True)
class EstimatorState:
    """An estimator as a file keeps it: its kind, its parameters as JSON values, and learnt arrays."""

    kind: str
    parameters: Mapping[str, Any]
    arrays: Arrays


class Conversion(NamedTuple):
    """How the estimators of a kind are converted to parameters and arrays, and back.

    Attributes
    ----------
    estimator_type : type
        The kind's estimators are instances of it.
    to_state : callable
        Estimator -> parameters (JSON values) and arrays.
    from_state : callable
        Card and arrays -> fitted estimator.
    """

    estimator_type: type
    to_state: Callable[[Any], tuple[dict[str, Any], Arrays]]
    from_state: Callable[[Card, Arrays], Any]


# --- linear
# ---------------------------------------------------------------------------


def is_linear(estimator: Any) -> bool:
    """Tell whether an estimator is a pipeline of a linear probe, on vectors or on pooled frames.

    Its steps are [FramePool,] ClippedScaler and a logistic regression.
    """
    if not isinstance(estimator, Pipeline):
        return False
    types: list[type] = [type(step) for _, step in estimator.steps]
    steps_of_vectors: list[type] = [ClippedScaler]
    steps_of_frames: list[type] = [FramePool, ClippedScaler]
    if types[:-1] not in (steps_of_vectors, steps_of_frames):
        return False
    return types[-1] in (RidgeLogistic, LogisticRegression)


def _linear_to_state(estimator: Any) -> tuple[dict[str, Any], Arrays]:
    """Convert a fitted linear probe to parameters (JSON values) and arrays."""
    # The steps of the pipeline: a pool of frames if it reads frames, the scaler, and the logistic regression.
    *pools, scaler, head = [step for _, step in estimator.steps]
    parameters = {"limit": float(scaler.limit), "C": float(head.C)}
    if pools:
        (only_pool,) = pools
        parameters["frames"] = only_pool.pool
    arrays = {
        "mean": scaler.mean_,
        "scale": scaler.scale_,
        "weights": head.coef_[0],
        "intercept": head.intercept_,
    }
    return parameters, arrays


def _linear_from_state(card: Card, arrays: Arrays) -> Pipeline:
    """Make a fitted linear probe from the parameters of a card, and arrays.

    They are from a file, and are not trusted: the arrays must have the shapes that belong to the card, and
    each step checks its parameters.
    """
    n_features = card.n_features
    check_arrays(arrays, mean=(n_features,), scale=(n_features,), weights=(n_features,), intercept=(1,))
    head = RidgeLogistic(C=card.parameters["C"])
    pool_of_frames = card.parameters.get("frames")
    scaler = _make_scaler(card.parameters["limit"], arrays["mean"], arrays["scale"])
    # A probe of vectors pools no frames.
    pools = [] if pool_of_frames is None else [FramePool(pool_of_frames)]
    for step in (*pools, head):
        step._validate_params()
        step.n_features_in_ = n_features
    set_linear_attributes(head, arrays["weights"], arrays["intercept"])
    return make_pipeline(*pools, scaler, head)


def set_linear_attributes(
    head: RidgeLogistic | LogisticRegression, weights: NDArray[Any], intercept: NDArray[Any]
) -> None:
    """Set the fitted attributes of a linear model of two classes: weights [D] and intercept [1]."""
    head.coef_ = weights[None]
    head.intercept_ = intercept
    head.classes_ = np.array(CLASSES)


# --- networks
# ---------------------------------------------------------------------------
def _network_to_state(estimator: Any) -> tuple[dict[str, Any], Arrays]:
    """Convert a fitted neural classifier to parameters (JSON values) and arrays.

    The parameters are those it was made with, and the number of epochs that early stopping chose. The arrays
    are the moments of the training features, and all weights of the network as one vector.
    """
    parameters = estimator.get_params() | {"n_epochs": estimator.n_epochs_}
    arrays = {"mean": estimator.mean_, "scale": estimator.scale_, "parameters": estimator.parameters_}
    return parameters, arrays


def _network_from_state(card: Card, arrays: Arrays) -> NeuralClassifier:
    """Make a fitted neural classifier from the parameters of a card, and arrays.

    They are from a file, and are not trusted: names, values and shapes are checked before anything is set.
    """
    # --- check them
    network_class = NETWORKS[card.kind]
    n_features = card.n_features
    parameters = dict(card.parameters)
    n_epochs = int(parameters.pop("n_epochs"))  # learnt, and not a parameter of the class
    _check_names_of_parameters(network_class, parameters)
    model = network_class(**parameters)
    model._validate_params()
    n_parameters = model._n_parameters(n_features)
    check_arrays(arrays, mean=(n_features,), scale=(n_features,), parameters=(n_parameters,))
    dtypes = {array.dtype for array in arrays.values()}
    if len(dtypes) > 1:
        raise ModelError("its arrays are of different dtypes")

    # --- set what the network learnt
    model.classes_ = np.array(CLASSES)
    model.n_features_in_ = n_features
    model.threshold_ = float(card.threshold)
    model.n_epochs_ = n_epochs
    model.parameters_ = arrays["parameters"]
    model.mean_ = arrays["mean"]
    model.scale_ = arrays["scale"]
    # A file does not hold the loss curve.
    model.curve_ = LossCurve(train_loss=np.empty(0), validation_loss=np.empty(0), kept=n_epochs)
    return model


def _check_names_of_parameters(network_class: type[NeuralClassifier], parameters: Mapping[str, Any]) -> None:
    """Raise unless parameters from a card have exactly the names of a class's parameters."""
    names_of_class = network_class().get_params().keys()
    names_in_one_only = sorted(names_of_class ^ parameters.keys())
    if names_in_one_only:
        first = names_in_one_only[0]
        raise ModelError(
            f"the card's parameters and those of {network_class.__name__} disagree about {first!r:.80}"
        )


# --- several modalities
# ---------------------------------------------------------------------------
def _fusion_to_state(fusion: LinearFusion) -> tuple[dict[str, Any], Arrays]:
    """Convert a linear model of several modalities to parameters and arrays.

    A clip may lack modalities, so that the model is one linear model for each set of modalities that a clip
    may have (a pattern). The names of the arrays of a set begin with the modalities' indices: "0_2_weights".
    """
    arrays = {}
    for pattern, join in fusion.joins.items():
        for name, array in join._asdict().items():
            arrays[f"{_pattern_prefix(pattern)}_{name}"] = np.asarray(array, np.float64)
    return {"largest": fusion.fused_by_max}, arrays


def _fusion_from_state(card: Card, arrays: Arrays) -> LinearFusion:
    """Make a fused model from arrays, with a linear model for each set of modalities that has arrays.

    A set has arrays if some training clip had exactly these modalities. The set of all modalities must have
    arrays in any case.
    """
    # --- which sets have arrays, and of which shapes
    widths = [modality["n_features"] for modality in card.modalities]
    shapes: dict[str, tuple[int, ...]] = {}
    patterns = []
    for pattern in _all_patterns(len(widths)):
        has_arrays = f"{_pattern_prefix(pattern)}_base" in arrays
        is_required = len(pattern) == len(widths)
        if has_arrays or is_required:
            patterns.append(pattern)
            shapes |= _shapes_of_join(pattern, widths)
    check_arrays(arrays, **shapes)

    # --- the linear model of each set
    joins = {}
    for pattern in patterns:
        prefix = _pattern_prefix(pattern)
        fields = {name: arrays[f"{prefix}_{name}"] for name in LinearJoin._fields}
        joins[pattern] = LinearJoin(**fields)
    columns = tuple(columns_of_modality for _, columns_of_modality in card.input_columns())
    return LinearFusion(columns, joins, fused_by_max=bool(card.parameters["largest"]))


def _shapes_of_join(pattern: tuple[int, ...], widths: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays of a set of modalities, by name: those of a `LinearJoin`.

    `pattern` holds the indices of the set's modalities, `widths` the number of features of every modality.
    """
    prefix = _pattern_prefix(pattern)
    n_features = sum(widths[index] for index in pattern)
    n_modalities = len(pattern)
    return {
        f"{prefix}_mean": (n_features,),
        f"{prefix}_scale": (n_features,),
        f"{prefix}_weights": (n_features,),
        f"{prefix}_factors": (n_modalities,),
        f"{prefix}_intercepts": (n_modalities,),
        f"{prefix}_base": (1,),
    }


def _all_patterns(n_modalities: int) -> Iterator[tuple[int, ...]]:
    """Yield all non-empty sets of modalities, as tuples of indices, smaller sets first.

    Of n modalities there are 2^n - 1 sets; a card lists at most 8 modalities.
    """
    for size in range(1, n_modalities + 1):
        yield from combinations(range(n_modalities), size)


def _pattern_prefix(pattern: tuple[int, ...]) -> str:
    """Return the prefix of the names of arrays of a set of modalities: "0_2" for the first and third."""
    return "_".join(map(str, pattern))


# --- concepts
# ---------------------------------------------------------------------------


def _bank_to_state(bank: Any) -> tuple[dict[str, Any], Arrays]:
    """Convert a fitted bank, which computes a clip's concept values, to parameters and arrays.

    There are banks of units (`UnitBank`), of concepts in time (`TimeBank`) and of concepts (`ConceptBank`).
    """
    # Values of concepts are standardised by these.
    moments_of_values = {"value_mean": bank.mean_, "value_scale": bank.scale_}
    if isinstance(bank, UnitBank):
        return {"n_active": bank.dictionary_.n_active}, _unit_arrays(bank) | moments_of_values
    if isinstance(bank, TimeBank):
        return {"clip": bank.clip}, _time_arrays(bank) | moments_of_values
    return {"directions": bank.kind, "clip": bank.clip}, _concept_arrays(bank) | moments_of_values


def _unit_arrays(bank: UnitBank) -> Arrays:
    """Return the learnt arrays of a bank of units: those of its dictionary, without the decoder."""
    dictionary = bank.dictionary_
    return {
        "encoder": dictionary.encoder,
        "bias": dictionary.bias,
        "centre_of_tokens": dictionary.centre,
        "token_scale": np.array([dictionary.scale]),
    }


def _time_arrays(bank: TimeBank) -> Arrays:
    """Return the learnt arrays of a bank of concepts in time."""
    return {
        "weights": bank.weights_,
        "feature_mean": bank.frame_mean_,
        "feature_scale": bank.frame_scale_,
    }


def _concept_arrays(bank: ConceptBank) -> Arrays:
    """Return the learnt arrays of a bank of concepts: its hyperplanes, and its scaler."""
    planes = bank.hyperplanes_
    arrays = {"weights": planes.weights, "intercepts": planes.intercepts}
    return arrays | _scaler_to_state(bank.scaler_)


def _bank_from_state(card: Card, arrays: Arrays, **other_shapes: tuple[int, ...]) -> Any:
    """Make a fitted bank of concepts, of concepts in time, or of units, from the arrays of a model.

    `other_shapes` are the shapes of the model's arrays that are not the bank's, by name: all arrays of a file
    are checked together.
    """
    # Models of the kind "pcbm_time" find concepts in frames, or units that were learnt without labels.
    if card.kind != "pcbm_time":
        return _concept_bank_from_state(card, arrays, other_shapes)
    if _has_units(card):
        return _unit_bank_from_state(card, arrays, other_shapes)
    return _time_bank_from_state(card, arrays, other_shapes)


def _has_units(card: Card) -> bool:
    """Tell whether a model's concepts are units of a dictionary, of which so many are active in a token."""
    return "n_active" in card.parameters


def _concept_bank_from_state(card: Card, arrays: Arrays, other_shapes: Shapes) -> ConceptBank:
    """Make a fitted bank of CAVs, a hyperplane for each concept, from a model's card and arrays.

    `other_shapes` are the shapes of the file's arrays that do not belong to the bank, such as the head's: the
    arrays are checked all together.
    """
    n_concepts = len(card.concepts)
    directions = card.parameters["directions"]
    bank = ConceptBank(directions, concepts=list(card.concepts), clip=card.parameters.get("clip"))
    shapes = {"weights": (n_concepts, card.n_features), "intercepts": (n_concepts,), **_scaler_shapes(card)}
    _set_bank_attributes(bank, card, arrays, {**shapes, **other_shapes}, n_values=n_concepts)
    bank.hyperplanes_ = Hyperplanes(arrays["weights"], arrays["intercepts"])
    bank.scaler_ = _scaler_from_state(card, arrays)
    return bank


def _unit_bank_from_state(card: Card, arrays: Arrays, other_shapes: Shapes) -> UnitBank:
    """Make a fitted bank of units from a model's card and arrays.

    A bank only computes how active units are. The decoder, which is as large as the encoder, would make
    features of these again: it is not in the file. `other_shapes` are the shapes of the file's arrays that do
    not belong to the bank, such as the head's: the arrays are checked all together.
    """
    n_features = card.n_features
    n_units = len(card.concepts)
    no_decoder = np.empty((0, n_features), np.float32)
    bank = UnitBank(n_units, card.parameters["n_active"])
    shapes = {
        "encoder": (n_units, n_features),
        "bias": (n_units,),
        "centre_of_tokens": (n_features,),
        "token_scale": (1,),
    }
    _set_bank_attributes(bank, card, arrays, {**shapes, **other_shapes}, n_values=n_units)
    if bank.n_active > n_units:
        raise ModelError(f"{bank.n_active} active units are more than there are: {n_units}")

    bank.dictionary_ = Dictionary(
        n_active=bank.n_active,
        centre=arrays["centre_of_tokens"],
        scale=float(arrays["token_scale"][0]),
        encoder=arrays["encoder"],
        decoder=no_decoder,
        bias=arrays["bias"],
    )
    return bank


def _time_bank_from_state(card: Card, arrays: Arrays, other_shapes: Shapes) -> TimeBank:
    """Make a fitted bank of concepts in time from a model's card and the arrays of its file.

    Such a bank has for each concept the weights of a frame's features, which are standardised first. Its
    values of a concept are two: how strongly the concept is present in a clip, and where in the clip.

    `other_shapes` are the shapes of the file's arrays that do not belong to the bank, such as the head's: the
    arrays are checked all together.
    """
    n_features = card.n_features
    n_concepts = len(card.concepts)
    limit_of_features = card.parameters["clip"]  # to which standardised features are clipped
    bank = TimeBank(concepts=list(card.concepts), clip=limit_of_features)
    shapes = {
        "weights": (n_concepts, n_features),
        "feature_mean": (n_features,),
        "feature_scale": (n_features,),
    }
    n_values = N_VALUES_IN_TIME * n_concepts
    _set_bank_attributes(bank, card, arrays, {**shapes, **other_shapes}, n_values)

    # Such a bank reads frames: the mean and the scale of features in the file are those of frames.
    bank.weights_ = arrays["weights"]
    bank.frame_mean_ = arrays["feature_mean"]
    bank.frame_scale_ = arrays["feature_scale"]
    return bank


def _set_bank_attributes(bank: Any, card: Card, arrays: Arrays, shapes: Shapes, n_values: int) -> None:
    """Check the arrays of a model with a bank, and set the fitted attributes that all banks have.

    Parameters
    ----------
    bank : estimator
        The unfitted bank.
    card : Card
    arrays : dict of str to ndarray
    shapes : mapping of str to tuple of int
        Expected shapes of the arrays, except for the moments of values.
    n_values : int
        Number of values of a clip.
    """
    bank._validate_params()
    check_arrays(arrays, **shapes, value_mean=(n_values,), value_scale=(n_values,))
    bank.concepts_ = np.array(card.concepts)
    bank.n_features_in_ = card.n_features
    bank.mean_ = arrays["value_mean"]
    bank.scale_ = arrays["value_scale"]


def _scaler_to_state(scaler: ClippedScaler | None) -> Arrays:
    """Return the arrays of the scaler of a bank or CAV; none if features are not standardised."""
    if scaler is None:
        return {}
    return {"feature_mean": scaler.mean_, "feature_scale": scaler.scale_}


def _scaler_shapes(card: Card) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the scaler's arrays in a file; empty if features are not standardised."""
    if card.parameters.get("clip") is None:
        return {}
    return {"feature_mean": (card.n_features,), "feature_scale": (card.n_features,)}


def _scaler_from_state(card: Card, arrays: Arrays) -> ClippedScaler | None:
    """Make the fitted scaler of a bank or CAV; None if features are not standardised."""
    clip = card.parameters.get("clip")
    if clip is None:
        return None
    return _make_scaler(clip, arrays["feature_mean"], arrays["feature_scale"])


def _make_scaler(limit: float, mean: NDArray[Any], scale: NDArray[Any]) -> ClippedScaler:
    """Make a fitted scaler from its limit, and the mean and scale [D] of features."""
    scaler = ClippedScaler(limit)
    scaler._validate_params()
    scaler.mean_ = mean
    scaler.scale_ = scale
    scaler.n_features_in_ = len(mean)
    return scaler


def _pcbm_to_state(estimator: ConceptBottleneck) -> tuple[dict[str, Any], Arrays]:
    """Convert a fitted concept bottleneck to parameters (JSON values) and arrays.

    They are those of the bank, which computes a clip's concept values, and of the head, which decides by
    these; and quantiles of the values in the training clips, by which a clip's values are described.
    """
    if estimator.bank_ is None:
        raise ModelError("a bottleneck fed with concept values can't be kept in a file")
    if estimator.residual_ is not None:
        raise ModelError("a bottleneck with a residual can't be kept in a file")
    parameters, arrays = _bank_to_state(estimator.bank_)
    if isinstance(estimator, ConceptsUnlabelled):
        parameters[UNLABELLED] = True
    arrays["values"] = _quantiles_of_values(estimator.train_values_)
    arrays["centre"] = estimator.centre_
    head = estimator.head_
    if hasattr(head, "tree_"):
        parameters["head"] = "tree"
        arrays["tree"] = _nodes_table(head)
    else:
        parameters["head"] = "linear"
        # The weights, then the intercept.
        arrays["head"] = np.concatenate([head.coef_[0], head.intercept_]).astype(np.float64)
    return parameters, arrays


def _quantiles_of_values(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute `N_LEVELS` quantiles of each concept's values [N, K] in training clips: [N_LEVELS, K].

    Values of a model that was read from a file are quantiles already, and returned as they are.
    """
    if _are_quantiles(values):
        return values
    return np.asarray(np.quantile(values, np.linspace(0, 1, N_LEVELS), axis=0))


def _are_quantiles(values: NDArray[np.float64]) -> bool:
    """Tell whether concept values [N, K] are quantiles: `N_LEVELS` of each concept, in rising order.

    Values of `N_LEVELS` clips that happen to rise in every column look the same. It does not matter: the
    quantiles of `N_LEVELS` values in rising order, at equal steps from 0 to 1, are these values.
    """
    has_as_many_rows = len(values) == N_LEVELS
    falls_somewhere = (np.diff(values, axis=0) < 0).any()
    return has_as_many_rows and not falls_somewhere


def _nodes_table(head: Any) -> NDArray[np.float64]:
    """Make the table of a decision tree's nodes [M, 6], from which `stored_tree` makes the tree again.

    Its columns are the concept, the threshold, the child below it and the child above it, and the numbers of
    clips of both classes. Concept and children of a leaf are -1.
    """
    # A tree that was read from a file keeps its table.
    if hasattr(head, "table"):
        return np.asarray(head.table)
    tree = head.tree_  # scikit-learn's tree: arrays with an entry for each node
    is_leaf = tree.children_left < 0
    concept = np.where(is_leaf, -1, tree.feature)
    threshold = np.where(is_leaf, 0.0, tree.threshold)  # a leaf has none
    # Sums of clips' weights [M, 2], without their rounding errors.
    counts = np.round(node_counts(head), 9)
    columns = (concept, threshold, tree.children_left, tree.children_right, counts)
    return np.column_stack(columns).astype(np.float64)


def _pcbm_from_state(card: Card, arrays: Arrays) -> ConceptBottleneck:
    """Make a fitted concept bottleneck from the parameters of a card, and arrays.

    It is a bank, which computes a clip's concept values, and a head, a tree or a linear model of these.
    """
    # A concept in time has two values: how strongly it is present, and where in the clip. Units have one.
    has_values_in_time = card.kind == "pcbm_time" and not _has_units(card)
    n_values = len(card.concepts)
    if has_values_in_time:
        n_values *= N_VALUES_IN_TIME
    is_tree = card.parameters["head"] == "tree"
    if is_tree:
        n_nodes = len(arrays.get("tree", ()))
        n_columns = 6  # of the table of nodes
        shape_of_head: dict[str, tuple[int, ...]] = {"tree": (n_nodes, n_columns)}
    else:
        shape_of_head = {"head": (n_values + 1,)}  # weights, then the intercept
    bank = _bank_from_state(card, arrays, values=(N_LEVELS, n_values), centre=(n_values,), **shape_of_head)

    head = "tree" if is_tree else "logistic"
    bottleneck_type = _bottleneck_type(card)
    # As after training, the parameter `bank` is an unfitted one, and the attribute `bank_` the fitted one.
    model = bottleneck_type(head, bank=clone(bank))
    model.head_ = _head_from_arrays(arrays, n_values, is_tree=is_tree)
    model.classes_ = np.array(CLASSES)
    model.n_features_in_ = card.n_features
    model.bank_ = bank
    model.concepts_ = card.concepts
    model.residual_ = None
    model.train_values_ = arrays["values"]
    model.centre_ = arrays["centre"]
    model.threshold_ = float(card.threshold)
    model.candidates_ = ()
    return model


def _bottleneck_type(card: Card) -> type[ConceptBottleneck]:
    """Return the class of a concept bottleneck, by its card.

    Its concepts are values of a whole clip, concepts in time, or units that were found without labels.
    """
    if card.kind != "pcbm_time":
        return ConceptBottleneck
    if card.parameters.get(UNLABELLED):
        return ConceptsUnlabelled
    return ConceptsInTime


def _head_from_arrays(arrays: Arrays, n_values: int, *, is_tree: bool) -> Any:
    """Make the fitted head of a concept bottleneck of `n_values` concept values: a tree, or linear."""
    if is_tree:
        _check_nodes_table(arrays["tree"], n_values)
        return stored_tree(arrays["tree"])
    head = LogisticRegression()
    set_linear_attributes(head, weights=arrays["head"][:-1], intercept=arrays["head"][-1:])
    return head


def _check_nodes_table(table: NDArray[np.float64], n_values: int) -> None:
    """Raise if a table of nodes [M, 6] (`_nodes_table`) is no valid decision tree of `n_values` values.

    In an invalid one, walking from the root might never end, or might leave the table. The columns are the
    number of the value that the node tests, its threshold, the rows of the children below and above it, and
    the numbers of negative and positive training clips.
    """
    tested_value = table[:, 0]  # the threshold, column 1, may be any number
    child_below = table[:, 2]
    child_above = table[:, 3]
    counts = table[:, 4:]

    # Each node is a leaf, or tests a value and has two children.
    nothing = -1  # in a leaf
    is_leaf = (tested_value == nothing) & (child_below == nothing) & (child_above == nothing)
    tests_value = (tested_value >= 0) & (tested_value < n_values)
    # Children come after their parent, so that a walk ends.
    is_inner = tests_value & _are_later_nodes(child_below) & _are_later_nodes(child_above)
    values_and_children = np.stack([tested_value, child_below, child_above])
    are_whole = (values_and_children == np.floor(values_and_children)).all()
    if not (is_leaf | is_inner).all() or not are_whole:
        raise ModelError("the array tree is not a table of a tree's nodes")

    # Each node has clips. No corpus has as many as MAX_CLIPS_OF_NODE.
    is_possible = (counts >= 0) & (counts <= MAX_CLIPS_OF_NODE)
    is_empty = counts.sum(axis=1) <= 0
    if not is_possible.all() or is_empty.any():
        raise ModelError("the array tree has a node without clips")


def _are_later_nodes(children: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark the children [M] that are in the table of M nodes, after their parent.

    Scikit-learn numbers nodes so. Each step of a walk from the root then leads further, until it ends.
    """
    n_nodes = len(children)
    parents = np.arange(n_nodes)
    return np.asarray((children > parents) & (children < n_nodes))


def _cav_to_state(estimator: LinearCAV) -> tuple[dict[str, Any], Arrays]:
    """Convert a fitted CAV (concept activation vector) to parameters (JSON values) and arrays.

    The array `plane` has the offset of its hyperplane, and the norm of the weights before they became a
    direction of length 1.
    """
    arrays = {
        "direction": estimator.direction_,
        "plane": np.array([estimator.offset_, estimator.norm_]),
        **_scaler_to_state(estimator.scaler_),
    }
    return estimator.get_params(), arrays


def _cav_from_state(card: Card, arrays: Arrays) -> LinearCAV:
    """Make a fitted CAV (concept activation vector) from the parameters of a card, and arrays."""
    check_arrays(arrays, direction=(card.n_features,), plane=(2,), **_scaler_shapes(card))
    cav = LinearCAV(**card.parameters)
    cav._validate_params()
    cav.scaler_ = _scaler_from_state(card, arrays)
    cav.classes_ = np.array(CLASSES)
    cav.n_features_in_ = card.n_features
    cav.direction_ = arrays["direction"]
    offset, norm = arrays["plane"].tolist()
    cav.offset_ = offset
    cav.norm_ = norm
    cav.threshold_ = float(card.threshold)
    cav.candidates_ = ()
    return cav


def stored_tree(table: NDArray[np.float64]) -> Any:
    """Make an object with the attributes of a fitted scikit-learn tree, from a table of its nodes.

    Parameters
    ----------
    table : ndarray, shape [M, 6]
        For each node: the concept that it tests, the threshold, the child for values up to the threshold, the
        child for values above it, and the numbers of training clips of both classes. Concept and children of
        a leaf are -1.
    """
    concept = table[:, 0]
    threshold = table[:, 1]
    child_below = table[:, 2]
    child_above = table[:, 3]
    counts_of_classes = table[:, 4:]  # [M, 2]
    counts = table[:, 4] + table[:, 5]
    shares_of_classes = counts_of_classes / counts[:, None]
    tree = SimpleNamespace(
        feature=concept.astype(np.intp),
        threshold=threshold,
        children_left=child_below.astype(np.intp),
        children_right=child_above.astype(np.intp),
        weighted_n_node_samples=counts,
        n_node_samples=counts.astype(np.int64),
        value=shares_of_classes[:, None, :],  # [M, 1, 2]: scikit-learn's second axis is that of the outputs
    )
    return SimpleNamespace(table=table, tree_=tree)


CONVERSIONS: Mapping[str, Conversion] = {
    **{
        kind: Conversion(network, _network_to_state, _network_from_state)
        for kind, network in NETWORKS.items()
    },
    "pcbm_time": Conversion(ConceptsInTime, _pcbm_to_state, _pcbm_from_state),
    "pcbm": Conversion(ConceptBottleneck, _pcbm_to_state, _pcbm_from_state),
    "cav": Conversion(LinearCAV, _cav_to_state, _cav_from_state),
    "bank": Conversion(ConceptBank, _bank_to_state, _bank_from_state),
    "fused": Conversion(LinearFusion, _fusion_to_state, _fusion_from_state),
    "linear": Conversion(Pipeline, _linear_to_state, _linear_from_state),
}
"""The estimators of each kind, and how they are converted to parameters and arrays, and back. The first kind
that an estimator is an instance of is its own: `pcbm_time` comes before `pcbm`, of which it is a subclass."""
