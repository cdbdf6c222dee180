"""`xclip-lsmdc` and `xclip-lsmdc-text`: X-CLIP for retrieval (Ma et al., ACM MM 2022), of LSMDC; not `xclip`.

Every frame is embedded by CLIP on its own, v `[12, 512]`; a small transformer relates the frames, u =
transformer(v + position) + v; the video vector is the unit mean of the unit u. One group of the store holds
all three: `frames` is u, `pooled` the video vector, and `tokens` v, in float16, which is what the original's
CLIP half computes in.

The network compares a sentence s with a video vector v by s^T G v, G a learnt matrix (their section 3.2). The
stored vector of a text is G^T s of the unit s, so that its dot product with `pooled` is that score. The three
other scores need every word and every frame; `obygaze_studies.lsmdc.similarities` computes all four.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError, safe_open
from torch import nn
from torch.nn.functional import normalize
from transformers import (
    CLIPTextConfig,
    CLIPTextModelWithProjection,
    CLIPVisionConfig,
    CLIPVisionModelWithProjection,
)
from transformers.models.clip.modeling_clip import CLIPEncoder

from obygaze_features.backbones.backbone import Backbone, LoadedNetwork, TextBackbone
from obygaze_features.backbones.checkpoint import frozen, load_state_dict, untrained
from obygaze_features.backbones.compute import ATTENTION, Compute
from obygaze_features.backbones.network import network_backbone, text_backbone
from obygaze_features.backbones.presets import choose_preset
from obygaze_features.backbones.tokenizer import CaptionTokenizer, refuse_untrained
from obygaze_features.backbones.weights import Weights, find_weights
from obygaze_features.backbones.xclip_lsmdc_checkpoint import LsmdcFormat, without_prefix
from obygaze_features.errors import BackboneError

CITATION = (
    "Ma et al., X-CLIP: end-to-end multi-grained contrastive learning for video-text retrieval, ACM MM 2022"
)
MEANINGS = {
    "frames": "u: output of the temporal transformer plus its input without positions, one a frame",
    "pooled": "unit mean of the unit u, the video vector of the retrieval model",
    "tokens": "v: CLIP image embedding of each frame, before the temporal transformer, not normalised",
}
TEMPORAL_EPS = 1e-12  # of the layer norms between frames; CLIP's own is 1e-5
MASKED = -1e6


class XClipLsmdc(nn.Module):
    """The network on the CLIP towers of transformers, with all parameters of the original.

    Its parts can be called one by one. Of the original's choices it has the published ones,
    `sim_header=seqTransf`, `loose_type` and `linear_patch=2d`.
    """

    def __init__(self, size: LsmdcFormat) -> None:
        super().__init__()
        common: dict[str, Any] = {
            "hidden_act": "quick_gelu",
            "attn_implementation": ATTENTION,
            "projection_dim": size.embed,
        }
        vision: Any = CLIPVisionConfig(
            hidden_size=size.vision_width,
            intermediate_size=4 * size.vision_width,
            num_hidden_layers=size.vision_layers,
            num_attention_heads=size.vision_width // size.HEAD_WIDTH,
            image_size=size.image,
            patch_size=size.patch,
            **common,
        )
        text: Any = CLIPTextConfig(
            hidden_size=size.text_width,
            intermediate_size=4 * size.text_width,
            num_hidden_layers=size.text_layers,
            num_attention_heads=size.text_width // size.HEAD_WIDTH,
            max_position_embeddings=size.context,
            vocab_size=size.vocabulary,
            bos_token_id=None,
            pad_token_id=0,
            eos_token_id=2,  # transformers' word for: the sentence is at the largest id, as in the original
            **common,
        )
        temporal: Any = CLIPTextConfig(
            hidden_size=size.embed,
            intermediate_size=4 * size.embed,
            num_hidden_layers=size.temporal_layers,
            num_attention_heads=size.embed // size.HEAD_WIDTH,
            layer_norm_eps=TEMPORAL_EPS,
            bos_token_id=None,
            eos_token_id=None,
            **common,
        )
        self.vision: Any = CLIPVisionModelWithProjection(vision)
        self.text: Any = CLIPTextModelWithProjection(text)
        self.temporal: Any = CLIPEncoder(temporal)
        self.frame_position_embeddings = nn.Embedding(size.temporal_positions, size.embed)
        self.logit_scale = nn.Parameter(torch.tensor(4.6052))
        for name, extent in size.matrices().items():
            self.register_parameter(name, nn.Parameter(torch.eye(extent)))

    def encode_frames(self, pixels: torch.Tensor) -> torch.Tensor:
        """Embed each frame of `[B, F, 3, h, w]` on its own: v, `[B, F, E]`, not normalised."""
        vectors: torch.Tensor = self.vision(pixel_values=pixels.flatten(0, 1)).image_embeds
        return vectors.view(*pixels.shape[:2], -1).float()

    def relate_frames(self, frames: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Let frames attend to each other: u = transformer(v + position) + v, `[B, F, E]`.

        Parameters
        ----------
        mask
            True where a frame is one, `[B, F]`; None where all are.
        """
        positions = torch.arange(frames.shape[1], device=frames.device)
        bias = None
        if mask is not None:
            bias = ((1.0 - mask.float()) * MASKED)[:, None, None, :].expand(-1, 1, frames.shape[1], -1)
        added = self.frame_position_embeddings(positions)
        x = (frames + added).to(added.dtype)  # weights in bfloat16 need bfloat16 inputs
        related: torch.Tensor = self.temporal(inputs_embeds=x, attention_mask=bias).last_hidden_state
        return related.float() + frames

    @staticmethod
    def video_vector(related: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Average the unit vectors of the frames and make the mean a unit vector, `[B, E]`."""
        unit = normalize(related.float(), dim=-1)
        if mask is None:
            return normalize(unit.mean(dim=1), dim=-1)
        weight = mask.float()[..., None]
        return normalize((unit * weight).sum(dim=1) / weight.sum(dim=1).clamp(min=1), dim=-1)

    def encode_text(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Embed captions, ids `[N, W]` padded with 0: sentences `[N, E]` and words `[N, W, E]`, as they come.

        Attention is causal and nothing else: padding takes part, as in the original.
        """
        hidden = self.text.text_model(input_ids=ids).last_hidden_state
        words: torch.Tensor = self.text.text_projection(hidden)
        return words[torch.arange(len(ids), device=ids.device), ids.argmax(dim=1)], words


def load(
    weights: Weights, tensors: Mapping[str, torch.Tensor] | None = None
) -> tuple[XClipLsmdc, LsmdcFormat]:
    """Load the whole network, text half included, from the original's format; or make an untrained one.

    Parameters
    ----------
    tensors
        The network's tensors in the original's format, in place of those of `weights`.

    Raises
    ------
    BackboneError
        If the file is of another format, or a tensor is missing, unexpected or of another shape.
    """
    if tensors is None:
        if weights.seed is not None:
            size = LsmdcFormat()
            return untrained(lambda: XClipLsmdc(size), weights.seed), size
        if weights.folder is not None and training_record(weights) is None:
            raise BackboneError(
                f"{weights.name}: backbone 'xclip-lsmdc' loads one file of the original's format, "
                "or the folder of a run of obygaze train xclip-lsmdc"
            )
        tensors = without_prefix(load_state_dict(weights))
    size = LsmdcFormat.of(weights.name, tensors)
    port = size.to_port(weights.name, tensors)  # before a network of these sizes is made: it checks them
    network = XClipLsmdc(size)
    network.load_state_dict(port, strict=True)
    return frozen(network), size


def xclip_lsmdc_network(
    weights: str | Path | Weights, tensors: Mapping[str, torch.Tensor] | None = None
) -> LoadedNetwork:
    """Load the network itself with its tokenizer; parameters as for `load`."""
    source = find_weights(weights)
    network, size = load(source, tensors)
    tokenizer = CaptionTokenizer(source, vocabulary=size.vocabulary, max_words=size.max_words)
    preset = choose_preset("clip", ("clip",), size=size.image)
    return LoadedNetwork(network, source, preset, tokenizer, tokenizer.digests)


def training_record(weights: Weights) -> dict[str, Any] | None:
    """Read the training record that `obygaze train` wrote to a file; None for other files."""
    if not weights.files or weights.files[0].suffix != ".safetensors":
        return None
    try:
        with safe_open(weights.files[0], framework="pt") as file:
            written = (file.metadata() or {}).get(LsmdcFormat.RECORD_KEY)
        record: dict[str, Any] | None = None if written is None else json.loads(written)
    except (SafetensorError, OSError, ValueError, RecursionError):  # loading reports the error
        return None
    return record


def xclip_lsmdc(
    n_frames: int | None = None,
    *,
    weights: str | None = None,
    preset: str = "clip",
    tokens: Literal["none", "frames"] = "frames",
    compute: Compute | None = None,
) -> Backbone:
    """Build the LSMDC X-CLIP.

    Parameters
    ----------
    n_frames
        Must be what the network was made for (12 for the published one).
    weights
        A checkpoint of the original code (`pytorch_model.bin.4`, or the same tensors as safetensors), the
        folder of a run of `obygaze train xclip-lsmdc`, or `random:SEED`. There is no public one to fetch.
    tokens
        `frames` stores v; `none` leaves it out.
    """
    if weights is None:
        raise BackboneError(
            "backbone 'xclip-lsmdc' has no public weights: name a checkpoint file, or random:SEED"
        )
    source = find_weights(weights)
    network, size = load(source)
    frames = n_frames or size.max_frames
    if frames != size.max_frames:  # its frames are mixed
        raise BackboneError(
            f"backbone 'xclip-lsmdc' with these weights takes {size.max_frames} frames a clip, not {frames}"
        )
    if tokens not in ("none", "frames"):
        raise BackboneError(f"backbone 'xclip-lsmdc' has no tokens '{tokens}'; there is none, frames")
    shapes: dict[str, tuple[int, ...]] = {"frames": (frames, size.embed), "pooled": (size.embed,)}
    if tokens == "frames":
        shapes["tokens"] = (frames, size.embed)
    return network_backbone(
        "xclip-lsmdc",
        XClipLsmdcTokens(network),
        n_frames=frames,
        shapes=shapes,
        meanings=MEANINGS,
        weights=source,
        preset=choose_preset(preset, ("clip", "obygaze12"), size=size.image),
        compute=compute or Compute(),
        head="visual projection and temporal transformer",
        layer="temporal transformer",
        architecture=size.record(),
        citation=CITATION,
        **_training(source),
    )


def _training(weights: Weights) -> dict[str, Any]:
    record = training_record(weights)
    return {"training": record} if record else {}


class XClipLsmdcTokens(nn.Module):
    """The visual half, over clips of which every frame is one."""

    def __init__(self, network: XClipLsmdc) -> None:
        super().__init__()
        del network.text  # 63 million parameters that are not used for frames
        self.network = network

    def forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Encode clips, `[B, F, 3, h, w]`."""
        frames = self.network.encode_frames(pixels)
        related = self.network.relate_frames(frames)
        return {"frames": related, "pooled": self.network.video_vector(related), "tokens": frames}


def xclip_lsmdc_text(*, weights: str | None = None, compute: Compute | None = None) -> TextBackbone:
    """Build the text half of the network whose visual half is `xclip-lsmdc`; both map to one space.

    Parameters
    ----------
    weights
        As for `xclip-lsmdc`, with CLIP's tokenizer (vocab.json, merges.txt, tokenizer_config.json) beside the
        file or in the folder. `obygaze train` puts it there.
    """
    if weights is None:
        raise BackboneError("backbone 'xclip-lsmdc-text' has no public weights: name a checkpoint file")
    source = find_weights(weights)
    refuse_untrained(source)
    network, size = load(source)
    tokenizer = CaptionTokenizer(source, vocabulary=size.vocabulary, max_words=size.max_words)
    return text_backbone(
        "xclip-lsmdc-text",
        XClipLsmdcText(network),
        width=size.embed,
        tokenizer=tokenizer,
        tokenize=tokenizer.tokens,
        weights=source,
        space="xclip-lsmdc",
        compute=compute,
        head="text projection and matrix of the video-sentence score",
        layer="sentence embedding",
        meaning="unit sentence embedding times the matrix of the video-sentence score",
        architecture=size.record(),
        citation=CITATION,
        libraries=("torch", "transformers", "tokenizers", "ftfy"),
        **_training(source),
    )


class XClipLsmdcText(nn.Module):
    """The text half, with the matrix that compares sentences with videos."""

    def __init__(self, network: XClipLsmdc) -> None:
        super().__init__()
        del network.vision, network.temporal  # not used for texts
        self.network: Any = network

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Encode tokens, `[B, W]` padded with 0."""
        sentences, _ = self.network.encode_text(tokens)
        vectors: torch.Tensor = normalize(sentences, dim=-1) @ self.network.global_mat_weight
        return vectors
