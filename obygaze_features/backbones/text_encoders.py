"""`text`: text towers that share a space with an image or video network, by the `model_type` of the weights.

`clip-text` and `xclip-text` are the same networks under names of their own.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from obygaze_features.backbones.backbone import TextBackbone, Tokens
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.encoder_specs import TEXT_VECTORS, TEXTS, TextSpec
from obygaze_features.backbones.encoders import Half
from obygaze_features.backbones.network import text_backbone
from obygaze_features.backbones.tokenizer import Tokenizer, check_end
from obygaze_features.backbones.weights import HUB, TOKENIZER_CONFIG, find_weights, object_beside
from obygaze_features.errors import BackboneError


def text(*, weights: str, compute: Compute | None = None) -> TextBackbone:
    """Build the text half of a network whose other half is `image` or `video`; both map to one space."""
    return _build("text", TEXTS, weights, compute)


def clip_text(*, weights: str = HUB["clip-text"], compute: Compute | None = None) -> TextBackbone:
    """Build the text half of the network whose image half is `clip`; both map to one space."""
    specs = {
        model_type: TEXTS[model_type]
        for model_type in ("clip", "clip_text_model", "siglip", "siglip_text_model")
    }
    return _build("clip-text", specs, weights, compute)


def xclip_text(*, weights: str = HUB["xclip-text"], compute: Compute | None = None) -> TextBackbone:
    """Build the text half of the network whose visual half is `xclip`; both map to one space.

    The network's own classifier adds a prompt to each text that depends on the video (Ni et al. 2022, section
    3.3). A store's text vector cannot depend on a video, so it is the embedding before that prompt.
    """
    return _build("xclip-text", {"xclip": TEXTS["xclip"]}, weights, compute)


def _build(name: str, specs: Mapping[str, TextSpec], weights: str, compute: Compute | None) -> TextBackbone:
    """Build the backbone that encodes texts with the text half of a network of images (or videos) and texts.

    Parameters
    ----------
    name
        Name of the backbone.
    specs
        `model_type` -> how to read the text half, for the types that this backbone takes.
    weights
        The weights of the network, as for `find_weights`.
    compute
        Device and precision.
    """
    source = find_weights(weights)
    half = Half(source, specs, default_type=name.removesuffix("-text"), config_field="text_config")
    spec = half.spec
    tokenizer = _tokenizer(half)
    model = half.network()
    family = spec.vision.family  # the space that it shares with the vision half
    return text_backbone(
        name,
        model,
        TEXT_VECTORS[spec.pooling],
        tokenizer=tokenizer,
        weights=source,
        space=family,
        compute=compute,
        attention=model.config._attn_implementation,
        head=spec.head,
        meaning=spec.meaning,
        **half.record(family),
    )


def _tokenizer(half: Half[TextSpec]) -> "Tokenizer | ByteTokenizer":
    """Load the weights' tokenizer, and set it as the network expects.

    Random weights have no tokenizer: the bytes of a text take the place of its tokens.

    Parameters
    ----------
    half
        The text half of the network: its weights, its configuration, and how it is read.

    Raises
    ------
    BackboneError
        The tokenizer and the network disagree on the padding token or on the end token.
    """
    source = half.weights
    spec = half.spec
    config = half.half_config
    limit = config.max_position_embeddings
    if source.seed is not None:
        return ByteTokenizer(limit, config.vocab_size, padded=spec.pads_to_limit)

    tokenizer = Tokenizer(source, limit, pad=spec.pads_to_limit)
    family = spec.vision.family
    # SigLIPs get texts in small letters. Some tokenizers convert capitals themselves; for the others it is
    # done before.
    if family in ("siglip", "siglip2") and _wants_lower_case(half):
        tells_capitals = tokenizer.sees_case()
        tokenizer.lower = tells_capitals
    # VideoPrism masks the padding behind a text, by the token that it is filled up with.
    if family == "videoprism":
        _check_padding(half, tokenizer)
    # Networks that are not trained with padding read the vector of a text at its end token.
    if not spec.pads_to_limit:
        check_end(source, tokenizer, config.eos_token_id)
    return tokenizer


def _check_padding(half: Half[TextSpec], tokenizer: Tokenizer) -> None:
    """Raise an error if the tokenizer pads texts with another token than the network masks.

    The network would take the padding for words.
    """
    masked_token = half.half_config.pad_token_id
    if tokenizer.pad_id != masked_token:
        raise BackboneError(
            f"{half.weights.name}: the tokenizer fills texts up with {tokenizer.pad_id}, and the network's "
            f"pad_token_id is {masked_token}"
        )


def _wants_lower_case(half: Half[TextSpec]) -> bool:
    """Return whether a SigLIP network gets texts in lower case.

    The field `do_lower_case` of its tokenizer's configuration decides. Without the field, a SigLIP 2 does: it
    was trained on lower case, and its tokenizer, Gemma's, does not convert texts itself.
    """
    fields = object_beside(half.weights, TOKENIZER_CONFIG)
    return bool(fields.get("do_lower_case", half.is_siglip2))


class ByteTokenizer:
    """A stand-in for a tokenizer where weights are random: the bytes of a text become its tokens.

    Random weights come without the files of a tokenizer.

    Parameters
    ----------
    limit
        Maximum number of tokens.
    n_vocabulary
        How many tokens the network knows; the last one ends a text, as CLIP's does.
    padded
        Whether to pad texts with 0 to the limit.
    bytes_a_token
        Bytes of a text for one token; only the first of them counts.
    """

    def __init__(self, limit: int, n_vocabulary: int, *, padded: bool, bytes_a_token: int = 1) -> None:
        """Prepare to turn every `bytes_a_token` bytes of a text into a token."""
        self.limit = limit
        self.bytes_a_token = bytes_a_token
        self.end = n_vocabulary - 1  # the token that ends a text
        self.padded = padded

    def __call__(self, texts: Sequence[str]) -> list[Tokens]:
        """Turn texts into tokens, at most `limit` for each text."""
        tokens = []
        for text in texts:
            # Every n-th byte makes a token, so that there are about as many as of a real tokenizer.
            token_bytes = text.encode("utf-8")[:: self.bytes_a_token]
            tokens.append(self._tokens_of_bytes(token_bytes))
        return tokens

    def _tokens_of_bytes(self, token_bytes: bytes) -> Tokens:
        """Make a token of each byte and add the end token; if there are too many, those behind are cut off.

        Tokens are numbers from 0 to `end`: 0 fills up a text to the limit (if texts are `padded`), and `end`
        ends it. The others stand for bytes.
        """
        max_bytes = self.limit - 1  # leaves room for the end token
        n_ordinary = self.end - 1  # the tokens 1 to end - 1
        # A small network knows fewer tokens than there are bytes: then several bytes have the same token.
        ids = [1 + byte % n_ordinary for byte in token_bytes[:max_bytes]]
        ids.append(self.end)
        n_uncut = len(token_bytes) + 1  # with the end token
        if self.padded:
            ids += [0] * (self.limit - len(ids))
        return Tokens(tuple(ids), n_uncut, self.limit)

    def record(self) -> dict[str, Any]:
        """Describe the tokenizer for the provenance."""
        return {"sha256": {}, "max_tokens": self.limit, "lower_case": False, "padded": self.padded}
