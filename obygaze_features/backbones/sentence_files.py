"""Read the files of sentence-transformers: pooling of token vectors and maximum text length.

`modules.json` lists the steps and `sentence_bert_config.json` the limit; the library itself is not needed.
Unsupported steps raise an error that names them.
"""

import json
from dataclasses import dataclass
from typing import Any, Literal

from obygaze_features.backbones.weights import SENTENCE_FILES, Weights, file_of
from obygaze_features.errors import BackboneError

MODULES, PROMPTS, _, *LIMITS = SENTENCE_FILES
MODES: dict[str, Literal["mean", "cls"]] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "mean": "mean",
    "cls": "cls",
}
"""The poolings that are supported, by their names in the files of older and of newer versions."""


@dataclass(frozen=True, slots=True)
class Pooling:
    """Pooling of the last layer to one vector.

    Parameters
    ----------
    mode
        `mean` over all tokens, or `cls`, the first.
    normalise
        Scale to length 1.
    lower_case
        Lower-case texts before they are tokenised.
    max_tokens
        Maximum number of tokens per text, if the files state it.
    """

    mode: Literal["mean", "cls"] = "mean"
    normalise: bool = True
    lower_case: bool = False
    max_tokens: int | None = None

    def in_words(self) -> str:
        """Return a description for the provenance."""
        what = "mean over all tokens" if self.mode == "mean" else "first token"
        return f"{what}, scaled to length 1" if self.normalise else f"{what}, not normalised"


def read_pooling(weights: Weights) -> Pooling:
    """Read the files beside the weights; without `modules.json` it is the mean, scaled to length 1.

    Raises
    ------
    BackboneError
        If they use an unsupported feature; the message names it.
    """
    modules = _read(weights, MODULES)
    if modules is None:
        return Pooling()
    try:
        steps = [(str(step["type"]).rpartition(".")[2], str(step["path"])) for step in modules]
    except (TypeError, KeyError):
        raise BackboneError(f"{weights.name}/{MODULES}: expected a list of modules") from None
    kinds = [kind for kind, _ in steps]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]) or steps[0][1]:
        shown = ", ".join(f"{kind} in {path!r}" for kind, path in steps)
        raise BackboneError(
            f"{weights.name}/{MODULES}: asks for {shown}; "
            "only Transformer in '', Pooling and perhaps Normalize are supported"
        )
    limits = next(filter(None, (_object(weights, name) for name in LIMITS)), {})
    if (prompt := _object(weights, PROMPTS).get("default_prompt_name")) is not None:
        raise BackboneError(
            f"{weights.name}/{PROMPTS}: puts the prompt {prompt!r} first, which is not supported"
        )
    return Pooling(
        _mode(weights, steps[1][1]),
        normalise="Normalize" in kinds,
        lower_case=bool(limits.get("do_lower_case")),
        max_tokens=_limit(weights, limits),
    )


def _limit(weights: Weights, limits: dict[str, Any]) -> int | None:
    found = limits.get("max_seq_length")
    if found is not None and (type(found) is not int or found < 1):
        raise BackboneError(
            f"{weights.name}: max_seq_length should be a whole number of tokens, found {found!r}"
        )
    return found


def _mode(weights: Weights, folder: str) -> Literal["mean", "cls"]:
    name = f"{folder}/config.json"
    found = _object(weights, name)
    newer = found.get("pooling_mode")  # one name or several, where older versions have a flag for each
    flags = [key for key, value in found.items() if key.startswith("pooling_mode_") and value is True]
    asked = newer if isinstance(newer, list) else [newer] if newer else flags
    if len(asked) != 1 or str(asked[0]) not in MODES:
        raise BackboneError(
            f"{weights.name}/{name}: asks for {', '.join(map(str, asked)) or 'no pooling'}; "
            f"one of {', '.join(MODES)} is supported"
        )
    return MODES[str(asked[0])]


def _object(weights: Weights, name: str) -> dict[str, Any]:
    found = _read(weights, name)
    if found is not None and not isinstance(found, dict):
        raise BackboneError(f"{weights.name}/{name}: expected a JSON object")
    return found or {}


def _read(weights: Weights, name: str) -> Any:
    path = file_of(weights, name)
    if path is None:
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BackboneError(f"{path}: not readable as JSON ({error})") from None
