"""`sentence`: any sentence encoder of the hub; its tokens' vectors, pooled (Reimers and Gurevych 2019)."""

import inspect
from typing import Any

import torch
from torch import nn
from transformers.models.auto.modeling_auto import MODEL_MAPPING

from obygaze_features.backbones.checkpoint import ATTENTION, auto_config, load_pretrained, plain_config
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.sentence_files import Pooling, read_pooling
from obygaze_features.backbones.text_backbone import TextBackbone
from obygaze_features.backbones.text_runner import TextRunner
from obygaze_features.backbones.tokenizer import Tokenizer
from obygaze_features.backbones.weights import HUB, Weights, find_weights, space_of
from obygaze_features.errors import BackboneError

HEADS = (r".*pooler\..*", r"cls\..*", r"lm_head\..*")  # unused here
CITATION = "Reimers and Gurevych, Sentence-BERT, EMNLP 2019, and whoever trained these weights"


def sentence(*, weights: str = HUB["sentence"], compute: Compute | None = None) -> TextBackbone:
    """Build a sentence encoder.

    The mean over all tokens, scaled to length 1; where the folder has the `modules.json` of
    sentence-transformers, what that says.
    """
    found = find_weights(weights)
    compute = compute or Compute()
    config = _config(found)
    pooling = read_pooling(found)
    cls: Any = MODEL_MAPPING[type(config)]
    has_pooler = "add_pooling_layer" in inspect.signature(cls).parameters
    settings = {"add_pooling_layer": False} if has_pooler else {}
    model = load_pretrained(cls, found, config, allow_unexpected=HEADS, **settings)
    tokenizer = Tokenizer(found, _limit(model, config, pooling), lower=pooling.lower_case)
    return TextBackbone(
        name="sentence",
        width=config.hidden_size,
        tokenize=tokenizer,
        encode=TextRunner("sentence", Pooled(model, pooling), compute),
        provenance={
            "head": "normalised" if pooling.normalise else None,
            "layer": "last",
            "arrays": {"pooled": pooling.in_words()},
            "space": space_of(f"sentence-{pooling.mode}", found),
            **found.record(),
            "architecture": {"type": config.model_type, **plain_config(config)},
            "tokenizer": tokenizer.record(),
            "compute": compute.record(ATTENTION),
            "citation": CITATION,
        },
        libraries=("torch", "transformers", "tokenizers"),
    )


def _config(weights: Weights) -> Any:
    if weights.seed is not None:
        raise BackboneError(f"{weights.name}: a text backbone needs a tokenizer; name a folder or repository")
    config = auto_config(weights)
    reads = hasattr(config, "vocab_size") and hasattr(config, "hidden_size")  # and not images, or both
    if type(config) not in MODEL_MAPPING or config.is_encoder_decoder or not reads:
        raise BackboneError(f"{weights.name}: a network of type {config.model_type!r} is no sentence encoder")
    return config


def _limit(model: Any, config: Any, pooling: Pooling) -> int | None:
    """Return the maximum number of tokens, by the training and by the available positions."""
    positions = getattr(config, "max_position_embeddings", None)
    table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    if positions and table is not None and table.padding_idx is not None:
        positions -= table.padding_idx + 1  # RoBERTa-like models count positions from there
    known = [size for size in (positions, pooling.max_tokens) if size]
    return min(known) if known else None


class Pooled(nn.Module):
    """A network whose last layer is pooled over all tokens, since none is padding."""

    def __init__(self, model: Any, pooling: Pooling) -> None:
        super().__init__()
        self.model = model
        self.pooling = pooling

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Encode tokens, `[B, L]`."""
        layer: torch.Tensor = self.model(input_ids=tokens).last_hidden_state.float()
        vectors = layer.mean(dim=1) if self.pooling.mode == "mean" else layer[:, 0]
        return nn.functional.normalize(vectors, dim=1) if self.pooling.normalise else vectors
