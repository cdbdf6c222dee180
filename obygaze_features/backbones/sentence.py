"""`sentence`: any sentence encoder of the hub; its tokens' vectors, pooled (Reimers and Gurevych 2019).

The files of sentence-transformers say how: `modules.json` lists the steps and `sentence_bert_config.json` the
limit; the library itself is not needed. Unsupported steps raise an error that names them.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch.nn.functional import normalize
from transformers.models.auto.modeling_auto import MODEL_MAPPING

from obygaze_features.backbones.backbone import TextBackbone
from obygaze_features.backbones.checkpoint import auto_config, load_pretrained, plain_config
from obygaze_features.backbones.class_calls import pooler_off_arguments
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.network import text_backbone
from obygaze_features.backbones.text_encoders import ByteTokenizer
from obygaze_features.backbones.tokenizer import Tokenizer
from obygaze_features.backbones.weights import (
    HUB,
    SENTENCE_FILES,
    SENTENCE_KINDS,
    Weights,
    file_of,
    find_weights,
    object_beside,
    read_json,
)
from obygaze_features.errors import BackboneError

CITATION = "Reimers and Gurevych, Sentence-BERT, EMNLP 2019, and whoever trained these weights"
HEADS = (r".*pooler\..*", r"cls\..*", r"lm_head\..*")
"""Patterns of tensors that are not used here."""
MODULES, PROMPTS = SENTENCE_FILES[:2]
"""Files that say how vectors are pooled, and which prompts are put before texts."""
SETTINGS_FILES = tuple(f"sentence_{kind}_config.json" for kind in SENTENCE_KINDS)
"""Files that may say how many tokens a text has at most."""
UNTRAINED = {
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "vocab_size": 30522,
}
"""Configuration of a network with random weights: that of all-MiniLM-L6-v2, by its config.json on the hub."""

UNTRAINED_TOKENS = 256
"""Most tokens of a text of that network, by its sentence_bert_config.json."""

BYTES_A_TOKEN = 4
"""Bytes of English for a token of its vocabulary, on average."""

MODES: tuple[Literal["mean"], Literal["cls"]] = ("mean", "cls")
"""The poolings that are supported; older versions have a flag such as `pooling_mode_mean_tokens` for each."""


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
        """Describe the pooling in words, for the provenance."""
        vector = "mean over all tokens" if self.mode == "mean" else "first token"
        scale = "scaled to length 1" if self.normalise else "not normalised"
        return f"{vector}, {scale}"


def sentence(*, weights: str = HUB["sentence"], compute: Compute | None = None) -> TextBackbone:
    """Build a backbone that encodes each text, such as a sentence, to one vector.

    A text's vector is pooled as the `modules.json` of sentence-transformers says; if the folder has none, it
    is the mean over all tokens, scaled to length 1. Random weights have the default network's sizes.

    Parameters
    ----------
    weights
        A repository or folder with the weights, or `random:SEED`.
    compute
        Device and precision.
    """
    source = find_weights(weights)
    config = _config(source)
    is_untrained = source.seed is not None
    pooling = Pooling(max_tokens=UNTRAINED_TOKENS) if is_untrained else read_pooling(source)

    model_class: Any = MODEL_MAPPING[type(config)]
    # Some classes add a layer that pools tokens in another way. It is left out where it can be.
    settings = pooler_off_arguments(model_class)
    model = load_pretrained(model_class, source, config, allow_unexpected=HEADS, **settings)

    limit = _max_tokens(model, config, pooling)
    tokenizer = _tokenizer(source, limit, pooling, config.vocab_size)
    return text_backbone(
        "sentence",
        model,
        partial(_pooled, pooling),
        tokenizer=tokenizer,
        weights=source,
        space=f"sentence-{pooling.mode}",
        compute=compute,
        head="normalised" if pooling.normalise else None,
        layer="last",
        meaning=pooling.in_words(),
        architecture={"type": config.model_type, **plain_config(config)},
        citation=CITATION,
    )


def _tokenizer(
    weights: Weights, limit: int | None, pooling: Pooling, vocabulary: int
) -> Tokenizer | ByteTokenizer:
    """Load the weights' tokenizer; for random weights, make one that gives about as many tokens.

    Parameters
    ----------
    weights
        The weights.
    limit
        Most tokens of a text; None if nothing states it.
    pooling
        Says whether texts are lower-cased first.
    vocabulary
        Number of tokens that the network knows.
    """
    if weights.seed is None:
        return Tokenizer(weights, limit, lower=pooling.lower_case)
    return ByteTokenizer(limit or UNTRAINED_TOKENS, vocabulary, padded=False, bytes_a_token=BYTES_A_TOKEN)


def _config(weights: Weights) -> Any:
    """Read the configuration of the network; untrained weights (`random:7`) get a BERT's, with `UNTRAINED`.

    Raises
    ------
    BackboneError
        If the network does not encode texts; or the user named a type of untrained network (`random:7:clip`),
        of which there is no choice here.
    """
    # Trained weights have a configuration beside them. For untrained ones, `auto_config` makes that of a type
    # of network, a small BERT (`UNTRAINED`). If the user has named a type, as `clip` in `random:7:clip`, it
    # gets none: so it looks for a file, finds none, and raises the error.
    has_named_type = bool(weights.network)
    type_of_untrained = "" if has_named_type else "bert"
    config = auto_config(weights, random_type=type_of_untrained, changes=UNTRAINED)
    # Networks of images have no vocabulary; those of images and texts have it in their `text_config`.
    reads_texts = hasattr(config, "vocab_size") and hasattr(config, "hidden_size")
    is_encoder = type(config) in MODEL_MAPPING and not config.is_encoder_decoder
    if not is_encoder or not reads_texts:
        raise BackboneError(f"{weights.name}: a network of type {config.model_type!r} is no sentence encoder")
    return config


def _max_tokens(model: Any, config: Any, pooling: Pooling) -> int | None:
    """Return how many tokens a text may have: the trained limit, or the network's positions if fewer.

    None if neither is stated.

    Parameters
    ----------
    model, config
        The network and its configuration, which tell for how many positions it has embeddings.
    pooling
        States the limit of the training.
    """
    n_positions = getattr(config, "max_position_embeddings", None)
    embeddings = getattr(model, "embeddings", None)
    position_table = getattr(embeddings, "position_embeddings", None)
    padding_index = getattr(position_table, "padding_idx", None)
    if n_positions and padding_index is not None:
        # In models like RoBERTa the rows up to that of the padding stand for no position of a text.
        n_positions -= padding_index + 1
    limits = [limit for limit in (n_positions, pooling.max_tokens) if limit]
    return min(limits, default=None)


def _pooled(pooling: Pooling, model: Any, tokens: torch.Tensor) -> torch.Tensor:
    """Encode texts of the same number of tokens, [B, L], and pool the last layer to vectors [B, D].

    `pooling` says whether a text has the mean of its tokens or the first, and whether it is scaled to length
    1. `model` is a network of transformers.
    """
    token_vectors: torch.Tensor = model(input_ids=tokens).last_hidden_state.float()  # [B, L, D]
    text_vectors = token_vectors.mean(dim=1) if pooling.mode == "mean" else token_vectors[:, 0]
    return normalize(text_vectors, dim=1) if pooling.normalise else text_vectors


def read_pooling(weights: Weights) -> Pooling:
    """Read from the files of sentence-transformers how the vectors of tokens are pooled to one vector.

    Without the file `modules.json` the default `Pooling` is returned.

    Raises
    ------
    BackboneError
        If the files ask for an unsupported step; the message names it.
    """
    path = file_of(weights, MODULES)
    if path is None:
        return Pooling()
    modules = _read_modules(weights, path)
    kinds = [module.kind for module in modules]  # the steps from a text to its vector
    is_supported = kinds in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])
    if not is_supported or modules[0].folder != "":
        shown = ", ".join(f"{module.kind} in {module.folder!r}" for module in modules)
        raise BackboneError(
            f"{weights.name}/{MODULES}: asks for {shown}; "
            "only Transformer in '', Pooling and perhaps Normalize are supported"
        )
    settings = _text_settings(weights)
    prompt = object_beside(weights, PROMPTS).get("default_prompt_name")
    if prompt is not None:
        raise BackboneError(
            f"{weights.name}/{PROMPTS}: puts the prompt {prompt!r} first, which is not supported"
        )
    pooling_module = modules[1]
    return Pooling(
        _pooling_mode(weights, pooling_module.folder),
        normalise="Normalize" in kinds,
        lower_case=bool(settings.get("do_lower_case")),
        max_tokens=_stated_max_tokens(weights, settings),
    )


class _Module(NamedTuple):
    """A step of sentence-transformers from a text to its vector.

    Attributes
    ----------
    kind
        Name of its class, without the package, such as `Pooling`.
    folder
        Folder of its files, below that of the weights; empty for this folder itself.
    """

    kind: str
    folder: str


def _read_modules(weights: Weights, path: Path) -> list[_Module]:
    """Read the steps of sentence-transformers from the file `modules.json`.

    An entry is, for example, `{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}`.

    Parameters
    ----------
    weights
        The weights, for messages.
    path
        The file.

    Raises
    ------
    BackboneError
        It is no list of such entries.
    """
    modules = []
    try:
        for entry in read_json(path, list):
            _, _, kind = str(entry["type"]).rpartition(".")  # the name of the class
            modules.append(_Module(kind, str(entry["path"])))
    except (TypeError, KeyError):
        raise BackboneError(f"{weights.name}/{MODULES}: expected a list of modules") from None
    return modules


def _text_settings(weights: Weights) -> dict[str, Any]:
    """Read the settings of texts, such as `max_seq_length`, from the file beside the weights that has them.

    The file has a name of its own for each kind of network, such as `sentence_bert_config.json`; the first
    that is there and not empty is read. Empty if there is none.
    """
    for file_name in SETTINGS_FILES:
        fields = object_beside(weights, file_name)
        if fields:
            return fields
    return {}


def _stated_max_tokens(weights: Weights, settings: dict[str, Any]) -> int | None:
    """Return the maximum number of tokens of a text that the settings state; None if they state none.

    Raises
    ------
    BackboneError
        What they state is no number of tokens.
    """
    limit = settings.get("max_seq_length")
    if limit is not None and (type(limit) is not int or limit < 1):
        raise BackboneError(
            f"{weights.name}: max_seq_length should be a whole number of tokens, found {limit!r}"
        )
    return limit


def _pooling_mode(weights: Weights, folder: str) -> Literal["mean", "cls"]:
    """Read how the vectors of tokens are pooled: `mean`, or `cls`, the vector of the first token.

    Parameters
    ----------
    weights
        The weights.
    folder
        Folder of the pooling step's configuration, below that of the weights.

    Raises
    ------
    BackboneError
        The pooling is not supported.
    """
    name = f"{folder}/config.json"
    config = object_beside(weights, name)
    configured_mode = config.get("pooling_mode")
    if isinstance(configured_mode, list):
        modes = configured_mode
    elif configured_mode:
        modes = [configured_mode]
    else:  # older versions have a flag for each pooling
        modes = [key for key, value in config.items() if key.startswith("pooling_mode_") and value is True]
    for mode in MODES:
        names_of_mode = (mode, f"pooling_mode_{mode}_tokens", f"pooling_mode_{mode}_token")
        if len(modes) == 1 and modes[0] in names_of_mode:
            return mode
    raise BackboneError(
        f"{weights.name}/{name}: asks for {', '.join(map(str, modes)) or 'no pooling'}; "
        f"one of {', '.join(MODES)} is supported"
    )
