"""`xclip-lsmdc` and `xclip-lsmdc-text`: X-CLIP for retrieval (Ma et al., ACM MM 2022), of LSMDC; not `xclip`.

Every frame is embedded by CLIP on its own, v `[12, 512]`; a small transformer relates the frames, u =
transformer(v + position) + v; the video vector is the unit mean of the unit u. One group of the store holds
all three: `frames` is u, `pooled` the video vector, and `tokens` v, in float16, which is what the original's
CLIP half computes in.

The network compares a sentence s with a video vector v by s^T G v, G a learnt matrix (their section 3.2). The
stored vector of a text is G^T s of the unit s, so that its dot product with `pooled` is that score. The three
other scores need every word and every frame; `obygaze_studies.lsmdc.similarities` computes all four.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError, safe_open
from torch import nn
from torch.nn.functional import normalize

from obygaze_features.backbones.backbone import Backbone, LoadedNetwork, TextBackbone
from obygaze_features.backbones.checkpoint import frozen, load_state_dict, untrained
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.layered import WithLayers, find_layers, layer_group_fields
from obygaze_features.backbones.layers import Layers, LayerStack
from obygaze_features.backbones.network import network_backbone, text_backbone
from obygaze_features.backbones.presets import choose_preset
from obygaze_features.backbones.tokenizer import CaptionTokenizer
from obygaze_features.backbones.weights import Weights, find_weights
from obygaze_features.backbones.xclip_lsmdc_network import LsmdcFormat, XClipLsmdc
from obygaze_features.errors import BackboneError
from obygaze_features.untrusted import parse_json

CITATION = (
    "Ma et al., X-CLIP: end-to-end multi-grained contrastive learning for video-text retrieval, ACM MM 2022"
)
MEANINGS = {
    "frames": "u: output of the temporal transformer plus its input without positions, one a frame",
    "pooled": "unit mean of the unit u, the video vector of the retrieval model",
    "tokens": "v: CLIP image embedding of each frame, before the temporal transformer, not normalised",
}
"""Array of a clip -> what it holds, for the provenance."""

STACK = LayerStack("vision.vision_model.encoder.layers", "vision.vision_model.post_layernorm")
"""Where its layers are: in CLIP, which sees each frame alone. The temporal transformer has no patches."""


def load(
    weights: Weights, tensors: Mapping[str, torch.Tensor] | None = None
) -> tuple[XClipLsmdc, LsmdcFormat]:
    """Load the LSMDC X-CLIP, both halves, from a checkpoint of its published code, or make it untrained.

    Parameters
    ----------
    weights
        The weights.
    tensors
        The checkpoint's tensors by name, in place of those of `weights`.

    Returns
    -------
    tuple
        The network, and the format of its checkpoint, which states the network's sizes.

    Raises
    ------
    BackboneError
        If the file is of another format, or a tensor is missing, unexpected or of another shape.
    """
    if tensors is None and weights.seed is not None:
        usual_format = LsmdcFormat()
        return untrained(lambda: XClipLsmdc(usual_format), weights.seed), usual_format

    if tensors is None:
        # Distributed training puts `module.` before every name.
        tensors = {key.removeprefix("module."): value for key, value in load_state_dict(weights).items()}
    lsmdc_format = LsmdcFormat.of(weights.name, tensors)
    # This checks all tensors, before memory is taken for a network of these sizes.
    tensors_by_our_names = lsmdc_format.to_port(weights.name, tensors)

    network = XClipLsmdc(lsmdc_format)
    network.load_state_dict(tensors_by_our_names, strict=True)
    return frozen(network, weights.name), lsmdc_format


def xclip_lsmdc_network(
    weights: str | Path | Weights, tensors: Mapping[str, torch.Tensor] | None = None
) -> LoadedNetwork:
    """Load the LSMDC X-CLIP with its tokenizer and preprocessing, to train it or to score texts by it.

    Parameters
    ----------
    weights
        The weights.
    tensors
        The checkpoint's tensors by name, in place of those of `weights`.
    """
    source = find_weights(weights)
    network, lsmdc_format = load(source, tensors)
    tokenizer = CaptionTokenizer(source, vocabulary=lsmdc_format.vocabulary, max_words=lsmdc_format.max_words)
    preset = choose_preset("clip", ("clip",), size=lsmdc_format.image)
    return LoadedNetwork(network, source, preset, tokenizer, tokenizer.digests)


def _training_field(weights: Weights) -> dict[str, Any]:
    """Return the provenance field `training`: how `obygaze train` trained these weights.

    `obygaze train` writes the record into its files. Weights of another origin have none: an empty dict.
    """
    if not weights.files or weights.files[0].suffix != ".safetensors":
        return {}
    try:
        with safe_open(weights.files[0], framework="pt") as file:
            metadata = file.metadata() or {}
        record = metadata.get(LsmdcFormat.RECORD_KEY)
        if record is None:
            return {}
        return {"training": parse_json(record)}
    except (SafetensorError, OSError, ValueError, RecursionError):  # loading reports the error
        return {}


def xclip_lsmdc(
    n_frames: int | None = None,
    *,
    weights: str,
    preset: str = "clip",
    tokens: Literal["none", "frames"] = "frames",
    layers: Layers | str | None = None,
    compute: Compute | None = None,
) -> Backbone:
    """Build the backbone of the LSMDC X-CLIP, which encodes clips for retrieval by texts.

    Parameters
    ----------
    n_frames
        Must be what the network was made for (12 for the published one).
    weights
        A checkpoint of the original code (`pytorch_model.bin.4`, or the same tensors as safetensors), the
        folder of a run of `obygaze train xclip-lsmdc`, or `random:SEED`. There is no public one to fetch.
    tokens
        `frames` also stores the vectors of single frames, before the temporal transformer; `none` does not.
    layers
        Layers of CLIP's vision transformer to store in addition, each in its own group of the store.
    """
    source = find_weights(weights)
    network, lsmdc_format = load(source)
    frames = n_frames or lsmdc_format.max_frames
    if frames != lsmdc_format.max_frames:  # the network mixes the frames of a clip
        raise BackboneError(
            f"backbone 'xclip-lsmdc' with these weights takes {lsmdc_format.max_frames} frames a clip, "
            f"not {frames}"
        )
    if tokens not in ("none", "frames"):
        raise BackboneError(f"backbone 'xclip-lsmdc' has no tokens '{tokens}'; there is none, frames")

    shapes: dict[str, tuple[int, ...]] = {
        "frames": (frames, lsmdc_format.embed),
        "pooled": (lsmdc_format.embed,),
    }
    if tokens == "frames":
        shapes["tokens"] = (frames, lsmdc_format.embed)

    module: nn.Module = XClipLsmdcTokens(network)
    side_group_fields: dict[str, dict[str, Any]] = {}
    wanted_layers = Layers.of(layers)
    if wanted_layers is not None:
        stored_layers = find_layers(
            network, (STACK,), wanted_layers, f"backbone 'xclip-lsmdc', {source.name}"
        )
        # The first token is the class token.
        module = WithLayers(
            module, stored_layers, with_frames=wanted_layers.frames, n_prefix_tokens=1, n_time_steps=frames
        )
        side_group_fields = layer_group_fields(stored_layers, with_frames=wanted_layers.frames)
        for layer in stored_layers:
            shapes[f"{layer.number}/pooled"] = (lsmdc_format.vision_width,)
            if wanted_layers.frames:
                shapes[f"{layer.number}/frames"] = (frames, lsmdc_format.vision_width)

    return network_backbone(
        "xclip-lsmdc",
        module,
        n_frames=frames,
        shapes=shapes,
        meanings=MEANINGS,
        weights=source,
        preset=choose_preset(preset, ("clip", "obygaze12"), size=lsmdc_format.image),
        compute=compute or Compute(),
        head="visual projection and temporal transformer",
        layer="temporal transformer",
        architecture=lsmdc_format.record(),
        citation=CITATION,
        side_group_fields=side_group_fields,
        **_training_field(source),
    )


class XClipLsmdcTokens(nn.Module):
    """The visual half of the network; every clip has the full number of frames."""

    def __init__(self, network: XClipLsmdc) -> None:
        """Hold `network`, and delete its text half, which frames do not need."""
        super().__init__()
        del network.text  # 63 million parameters
        self.network = network

    def forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Encode clips `[B, F, 3, h, w]`.

        `tokens` [B, F, E] are the vectors of single frames (v in the paper), `frames` [B, F, E] those after
        the temporal transformer (u), and `pooled` [B, E] is the vector of the clip.
        """
        single_frames = self.network.encode_frames(pixels)
        related_frames = self.network.relate_frames(single_frames)  # all frames of a clip see each other
        return {
            "frames": related_frames,
            "pooled": self.network.video_vector(related_frames),
            "tokens": single_frames,
        }


def xclip_lsmdc_text(*, weights: str, compute: Compute | None = None) -> TextBackbone:
    """Build the text half of the network whose visual half is `xclip-lsmdc`; both map to one space.

    The network scores a sentence s for a video v by s^T G v, where G is a matrix that it has learnt. The
    vector of a text is G^T s (`sentence_vectors`), so that its dot product with a video vector is that score.

    Parameters
    ----------
    weights
        As for `xclip-lsmdc`, with CLIP's tokenizer (vocab.json, merges.txt, tokenizer_config.json) beside the
        file or in the folder. `obygaze train` puts the tokenizer there.
    """
    source = find_weights(weights)
    network, lsmdc_format = load(source)
    tokenizer = CaptionTokenizer(source, vocabulary=lsmdc_format.vocabulary, max_words=lsmdc_format.max_words)
    del network.vision, network.temporal  # not used for texts
    return text_backbone(
        "xclip-lsmdc-text",
        network,
        sentence_vectors,
        tokenizer=tokenizer,
        weights=source,
        space="xclip-lsmdc",
        compute=compute,
        head="text projection and matrix of the video-sentence score",
        layer="sentence embedding",
        meaning="unit sentence embedding times the matrix of the video-sentence score",
        architecture=lsmdc_format.record(),
        citation=CITATION,
        libraries=("torch", "transformers", "tokenizers", "ftfy"),
        **_training_field(source),
    )


def sentence_vectors(network: Any, tokens: torch.Tensor) -> torch.Tensor:
    """Encode texts so that a dot product with a video vector is the network's score, `[B, E]`.

    The network compares a unit sentence vector s with a video vector v by s^T G v, where G is a learnt matrix
    (Ma et al. 2022, section 3.2). The returned vector is G^T s.

    Parameters
    ----------
    network
        The network.
    tokens
        `[B, W]`, padded with 0.
    """
    sentences, _ = network.encode_text(tokens)
    unit_sentences = normalize(sentences, dim=-1)  # rows, so that the matrix stands behind them
    vectors: torch.Tensor = unit_sentences @ network.global_mat_weight
    return vectors
