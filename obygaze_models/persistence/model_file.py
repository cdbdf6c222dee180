"""Write a probe to a file, and read it in two phases: audit the file, then construct the estimator."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_models.errors import ModelError
from obygaze_models.persistence.archive import MAX_FILE, pack_archive, unpack_archive
from obygaze_models.persistence.card import Card, parse_card
from obygaze_models.probes import MLPProbe
from obygaze_models.probes.network import n_parameters

ARRAYS = ("mean", "parameters", "scale")


@dataclass(frozen=True, eq=False)
class ModelFile:
    """An audited file: a card and arrays that fit it, nothing constructed yet."""

    card: Card
    arrays: Mapping[str, NDArray[Any]]


def pack(probe: MLPProbe, card: Card) -> bytes:
    """Give a fitted probe and its card as the bytes of a model file: the same model, the same bytes."""
    arrays = {"mean": probe.mean_, "parameters": probe.parameters_, "scale": probe.scale_}
    listed = {
        name: {"dtype": array.dtype.newbyteorder("<").str, "shape": list(array.shape)}
        for name, array in arrays.items()
    }
    return pack_archive(card.to_json() | {"arrays": listed}, arrays)


def write_model(path: Path, probe: MLPProbe, card: Card) -> None:
    """Write a model file, all of it or nothing."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        partial.write_bytes(pack(probe, card))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def read_model(path: Path) -> ModelFile:
    """Read and audit a model file; no byte of it is executed, and memory is bounded by its size.

    Raises
    ------
    ModelError
        The file is not a model's, is damaged, newer than this reader, or contradicts itself.
    """
    size = path.stat().st_size
    if size > MAX_FILE:
        raise ModelError(f"{path}: {size} bytes are more than any model has ({MAX_FILE})")
    found, arrays = unpack_archive(path.read_bytes(), str(path))
    card = parse_card(found, str(path))
    _check(card, arrays, str(path))
    return ModelFile(card, arrays)


def construct(model: ModelFile) -> MLPProbe:
    """Make the fitted estimator of an audited file; its training curves stay behind."""
    probe = MLPProbe(**model.card.parameters)
    probe.classes_ = np.array([0, 1])
    probe.n_features_in_ = model.card.n_features
    probe.threshold_, probe.n_epochs_ = float(model.card.threshold), model.card.n_epochs
    probe.parameters_ = model.arrays["parameters"]
    probe.mean_, probe.scale_ = model.arrays["mean"], model.arrays["scale"]
    probe.curves_ = ()
    return probe


def _check(card: Card, arrays: Mapping[str, NDArray[Any]], name: str) -> None:
    """Refuse parameters that the estimator does, and arrays that don't fit them."""
    expected = MLPProbe().get_params()
    wrong = sorted(expected.keys() ^ card.parameters.keys())
    if wrong:
        raise ModelError(
            f"{name}: the card's parameters and those of MLPProbe disagree about {wrong[0]!r:.80}"
        )
    try:
        MLPProbe(**card.parameters)._validate_params()
    except ValueError as error:
        raise ModelError(f"{name}: {error}") from error
    if tuple(sorted(arrays)) != ARRAYS:
        raise ModelError(
            f"{name}: expected the arrays {', '.join(ARRAYS)}; found {', '.join(sorted(arrays))}"
        )
    outputs = 2 if card.parameters["variant"] == "paper" else 1
    size = n_parameters(card.n_features, card.parameters["n_hidden"], outputs)
    for label, shape in (
        ("mean", (card.n_features,)),
        ("scale", (card.n_features,)),
        ("parameters", (size,)),
    ):
        if arrays[label].shape != shape:
            raise ModelError(
                f"{name}: {card.n_features} features and {card.parameters['n_hidden']} hidden units need "
                f"{label} of shape {list(shape)}; found {list(arrays[label].shape)}"
            )
    if len({array.dtype for array in arrays.values()}) > 1:
        raise ModelError(f"{name}: its arrays are of different dtypes")
    if not (arrays["scale"] > 0).all():
        raise ModelError(f"{name}: scale holds values that are not above 0")
