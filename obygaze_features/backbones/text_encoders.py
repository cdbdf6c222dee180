"""`text`: text towers that share a space with an image or video network, by the `model_type` of the weights.

`clip-text` and `xclip-text` are the same networks under names of their own. A new family is one entry of
`TEXTS`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import transformers
from torch import nn

from obygaze_features.backbones.backbone import TextBackbone, Tokens
from obygaze_features.backbones.checkpoint import auto_config, load_pretrained, plain_config
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.encoder_kinds import IMAGES, SIGLIP2, VIDEOS
from obygaze_features.backbones.encoders import projection, type_of
from obygaze_features.backbones.network import text_backbone
from obygaze_features.backbones.processor import second_siglip
from obygaze_features.backbones.tokenizer import Tokenizer, check_end
from obygaze_features.backbones.weights import (
    HUB,
    TOKENIZER_CONFIG,
    Weights,
    find_weights,
    object_beside,
)
from obygaze_features.errors import BackboneError

Read = Callable[[Any, torch.Tensor], torch.Tensor]
"""Calls a network with tokens, `[B, L]`; gives vectors `[B, D]`."""


@dataclass(frozen=True, slots=True)
class TextKind:
    """How text towers of one `model_type` are read.

    Parameters
    ----------
    network
        Class of transformers.
    sees
        `model_type` of the networks with the same space, and of their citation.
    padded
        Whether texts are filled up to the limit, as in the network's training.
    ends
        Whether the network reads a text at its end token.
    unexpected, unused
        Patterns of tensors in the files, and parts of the network, that are not used.
    """

    network: str
    read: Read
    sees: str
    head: str = "text projection"
    meaning: str = "text embedding, not normalised"
    padded: bool = False
    ends: bool = True
    unexpected: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()


def _embedded(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    vectors: torch.Tensor = model(input_ids=tokens).text_embeds
    return vectors


def _pooled(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    vectors: torch.Tensor = model(input_ids=tokens).pooler_output
    return vectors


def _projected(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    vectors: torch.Tensor = model.text_projection(model.text_model(input_ids=tokens).pooler_output)
    return vectors


def _causal(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    """Read a tower that attends to what comes before only where it is given a mask."""
    found = model.get_text_features(input_ids=tokens, attention_mask=torch.ones_like(tokens))
    vectors: torch.Tensor = found.pooler_output
    return vectors


def _masked(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    seen = (tokens != model.config.text_config.pad_token_id).long()
    vectors: torch.Tensor = model.text_model(input_ids=tokens, attention_mask=seen).pooler_output
    return vectors


_IMAGE_HALF = (r"vision_model\..*", r"visual_projection\.weight", r"logit_scale", r"logit_bias")
_CLIP = TextKind("CLIPTextModelWithProjection", _embedded, "clip", unexpected=_IMAGE_HALF)
_SIGLIP = TextKind(
    "SiglipTextModel",
    _pooled,
    "siglip",
    head="head over the last token",
    padded=True,
    ends=False,
    unexpected=_IMAGE_HALF,
)
TEXTS: Mapping[str, TextKind] = {
    "clip": _CLIP,
    "clip_text_model": _CLIP,
    "metaclip_2": TextKind(
        "MetaClip2TextModelWithProjection", _embedded, "metaclip_2", unexpected=_IMAGE_HALF
    ),
    "siglip": _SIGLIP,
    "siglip_text_model": _SIGLIP,
    "aimv2": TextKind("Aimv2Model", _causal, "aimv2", unused=("vision_model", "visual_projection")),
    "videoprism": TextKind(
        "VideoPrismClipModel",
        _masked,
        "videoprism",
        head="last token",
        meaning="text embedding, of length 1",
        padded=True,
        ends=False,
        unused=("video_model",),
    ),
    "xclip": TextKind(
        "XCLIPModel",
        _projected,
        "xclip",
        meaning="text embedding before video-specific prompts, not normalised",
        unused=("vision_model", "visual_projection", "prompts_generator", "mit"),
    ),
}
"""`model_type` -> how its networks read texts."""


def text(*, weights: str, compute: Compute | None = None) -> TextBackbone:
    """Build the text half of a network whose other half is `image` or `video`; both map to one space."""
    return _build("text", TEXTS, find_weights(weights), compute)


def clip_text(*, weights: str = HUB["clip-text"], compute: Compute | None = None) -> TextBackbone:
    """Build the text half of the network whose image half is `clip`; both map to one space."""
    kinds = {kind: TEXTS[kind] for kind in ("clip", "clip_text_model", "siglip", "siglip_text_model")}
    return _build("clip-text", kinds, find_weights(weights), compute)


def xclip_text(*, weights: str = HUB["xclip-text"], compute: Compute | None = None) -> TextBackbone:
    """Build the text half of the network whose visual half is `xclip`; both map to one space.

    The network's own classifier adds a prompt to each text that depends on the video (Ni et al. 2022, section
    3.3). A store's text vector cannot depend on a video, so it is the embedding before that prompt.
    """
    return _build("xclip-text", {"xclip": TEXTS["xclip"]}, find_weights(weights), compute)


def _build(
    name: str, kinds: Mapping[str, TextKind], source: Weights, compute: Compute | None
) -> TextBackbone:
    usual = name.removesuffix("-text")
    found = type_of(source, kinds, usual)
    kind = kinds[found]
    seeing = {**IMAGES, **VIDEOS}[kind.sees]
    config = auto_config(source, found, seeing.untrained)
    own = getattr(config, "text_config", config)
    if getattr(config, "projection_dim", None) and hasattr(own, "projection_dim"):
        own.projection_dim = config.projection_dim
    cls: Any = getattr(transformers, kind.network)
    given = config if isinstance(config, cls.config_class) else own
    second = kind is _SIGLIP and second_siglip(source)
    tokenizer = _tokenizer(source, kind, own, second=second)
    network = TextTower(load_pretrained(cls, source, given, allow_unexpected=kind.unexpected), kind)
    with torch.inference_mode():
        width = network(torch.zeros(1, tokenizer.limit, dtype=torch.int64)).shape[1]
    return text_backbone(
        name,
        network,
        width=width,
        tokenizer=tokenizer,
        weights=source,
        space=kind.sees,
        compute=compute,
        attention=network.model.config._attn_implementation,
        head=kind.head,
        meaning=kind.meaning,
        architecture={"type": kind.sees, **projection(config), **plain_config(own)},
        citation=SIGLIP2 if second else seeing.citation,
    )


def _tokenizer(source: Weights, kind: TextKind, config: Any, *, second: bool) -> "Tokenizer | ByteTokenizer":
    limit = config.max_position_embeddings
    if source.seed is not None:
        return ByteTokenizer(limit, config.vocab_size, padded=kind.padded)
    tokenizer = Tokenizer(source, limit, pad=kind.padded)
    # SigLIP 2 was trained on lower case, and Gemma's tokenizer ignores its own do_lower_case.
    asked = object_beside(source, TOKENIZER_CONFIG).get("do_lower_case", second)
    tokenizer.lower = kind is _SIGLIP and bool(asked) and tokenizer.sees_case()
    if kind.read is _masked and tokenizer.filling != config.pad_token_id:
        raise BackboneError(
            f"{source.name}: the tokenizer fills texts up with {tokenizer.filling}, and the network's "
            f"pad_token_id is {config.pad_token_id}"
        )
    if kind.ends:
        check_end(source, tokenizer, config.eos_token_id)
    return tokenizer


class ByteTokenizer:
    """What stands in for a tokenizer where weights are random: the bytes of a text, and an end.

    Parameters
    ----------
    limit
        Maximum number of tokens.
    vocabulary
        Number of tokens of the network; the last one ends a text, as CLIP's does.
    padded
        Fill texts up with 0.
    """

    def __init__(self, limit: int, vocabulary: int, *, padded: bool) -> None:
        self.limit = limit
        self.end = vocabulary - 1
        self.padded = padded

    def __call__(self, texts: Sequence[str]) -> list[Tokens]:
        """Turn texts into tokens, cut at the limit."""
        return [self._row(text.encode("utf-8")) for text in texts]

    def _row(self, octets: bytes) -> Tokens:
        ids = [1 + octet % (self.end - 1) for octet in octets[: self.limit - 1]] + [self.end]
        filling = [0] * (self.limit - len(ids)) if self.padded else []
        return Tokens((*ids, *filling), len(octets) + 1, self.limit)

    def record(self) -> dict[str, Any]:
        """Return what it is, in the store's terms."""
        return {"sha256": {}, "max_tokens": self.limit, "lower_case": False, "padded": self.padded}


class TextTower(nn.Module):
    """A text network that gives one vector a text."""

    def __init__(self, model: Any, kind: TextKind) -> None:
        super().__init__()
        self.model = model
        self.read = kind.read
        for part in kind.unused:
            delattr(model, part)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Encode tokens, `[B, L]`."""
        return self.read(self.model, tokens)
