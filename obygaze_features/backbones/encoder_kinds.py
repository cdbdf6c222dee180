"""List the networks of transformers that see, or read texts, and how each is read; a family is one entry."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

Read = Callable[[Any, torch.Tensor], tuple[torch.Tensor, torch.Tensor | None]]
"""Calls a network; gives its tokens and one vector of a picture or clip, None for their mean."""
ReadText = Callable[[Any, torch.Tensor], torch.Tensor]
"""Calls a network with tokens, `[B, L]`; gives vectors `[B, D]`."""


HEADS = (r"classifier\..*", r"(\w+\.)?pooler\..*", r"head\..*", r"fc_norm\..*", r"(\w+\.)?mask_token")
"""Heads of classifiers and of training, after the tokens."""


@dataclass(frozen=True, slots=True)
class EncoderKind:
    """How networks of one `model_type` are read.

    Parameters
    ----------
    network
        Class of transformers.
    read
        Takes the network and pixels, `[B, 3, h, w]` or `[B, T, 3, h, w]`.
    vector
        What its vector is, of each frame or of a clip.
    processor
        Class that prepares pictures where no configuration beside the weights says.
    citation
        Of the paper.
    side
        Field of the configuration with the input's side; empty where any multiple of a patch is taken.
    prefix
        Tokens before those of patches, beside registers.
    frames
        Field with the frames of a clip, and with those of one step in time, of videos; the second may be a
        number.
    flexible
        Whether any number of frames that makes whole steps is taken.
    unexpected, unused
        Patterns of tensors in the files, and parts of the network, that are not used.
    settings
        Further arguments of the class.
    untrained
        Fields of the configuration of random weights that differ from the class's.
    family
        Of a space that texts share; empty without.
    names
        Presets whose names are kept where a processor says the same.
    head, layer
        Of which the vectors are the output.
    """

    network: str
    read: Read
    vector: str
    processor: str
    citation: str
    side: str = "image_size"
    prefix: int = 1
    frames: tuple[str, str | int] | None = None
    flexible: bool = False
    unexpected: tuple[str, ...] = HEADS
    unused: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    untrained: Mapping[str, Any] = field(default_factory=dict)
    family: str = ""
    names: tuple[str, ...] = ()
    head: str | None = None
    layer: str = "last hidden state"


@dataclass(frozen=True, slots=True)
class TextKind:
    """How text towers of one `model_type` are read.

    Parameters
    ----------
    network
        Class of transformers.
    sees
        The half with the same space, whose family and citation are the text's too.
    padded
        Whether texts are filled up to the limit, as in the network's training; others are read at their end
        token.
    unexpected, unused
        As of a `EncoderKind`.
    """

    network: str
    read: ReadText
    sees: EncoderKind
    head: str = "text projection"
    meaning: str = "text embedding, not normalised"
    padded: bool = False
    unexpected: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()


def _embedded(model: Any, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    output = model(pixel_values=pixels)
    return output.last_hidden_state, output.image_embeds


def _pooled(model: Any, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
    output = model(pixel_values=pixels)
    return output.last_hidden_state, output.pooler_output


def _featured(model: Any, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    output = model.get_image_features(pixel_values=pixels)
    return output.last_hidden_state, output.pooler_output


def _first(model: Any, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    hidden = model(pixel_values=pixels).last_hidden_state
    return hidden, hidden[:, 0]


def _mean(model: Any, pixels: torch.Tensor) -> tuple[torch.Tensor, None]:
    return model(pixel_values=pixels).last_hidden_state, None


def _largest(model: Any, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    hidden = model(pixel_values=pixels).last_hidden_state.float()
    return hidden, hidden.amax(dim=1)


def _encoded(model: Any, pixels: torch.Tensor) -> tuple[torch.Tensor, None]:
    return model(pixel_values_videos=pixels, skip_predictor=True).last_hidden_state, None


def _states(model: Any, pixels: torch.Tensor) -> tuple[torch.Tensor, None]:
    return model(pixel_values_videos=pixels).last_hidden_state, None


def _aligned(model: Any, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    output = model.video_model(pixel_values_videos=pixels)
    return output.last_hidden_state, output.pooler_output[:, 0]


def frames_of_xclip(model: Any, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Read the half of an X-CLIP before its frames are integrated, frame by frame."""
    vision = model.vision_model(pixel_values=pixels.flatten(0, 1))
    return vision.last_hidden_state, model.visual_projection(vision.pooler_output)


def _by_time(model: Any, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Read a TimeSformer, whose tokens are place by place, with time inside."""
    hidden = model(pixel_values=pixels).last_hidden_state
    patches = hidden[:, 1:].unflatten(1, (-1, pixels.shape[1])).transpose(1, 2).flatten(1, 2)
    return torch.cat([hidden[:, :1], patches], dim=1), hidden[:, 0]


EMBEDDING = "image embedding of each frame, not normalised"
_AIMV2 = "Fini et al., Multimodal autoregressive pre-training of large vision encoders, CVPR 2025"
_VIDEOPRISM = "Zhao et al., VideoPrism: a foundational visual encoder for video understanding, ICML 2024"
CLIP = EncoderKind(
    "CLIPVisionModelWithProjection",
    _embedded,
    EMBEDDING,
    "CLIPImageProcessor",
    "Radford et al., Learning transferable visual models from natural language supervision, ICML 2021",
    unexpected=(r"text_model\..*", r"text_projection\.weight", r"logit_scale"),
    untrained={"patch_size": 16},
    family="clip",
    names=("clip",),
    head="visual projection",
    layer="image embedding",
)
SIGLIP = EncoderKind(
    "SiglipVisionModel",
    _pooled,
    EMBEDDING,
    "SiglipImageProcessor",
    "Zhai et al., Sigmoid loss for language image pre-training, ICCV 2023",
    prefix=0,
    unexpected=(r"text_model\..*", r"logit_scale", r"logit_bias"),
    family="siglip",
    names=("siglip", "siglip2"),
    head="attention pooling",
    layer="image embedding",
)
SIGLIP2 = (
    "Tschannen et al., SigLIP 2: Multilingual vision-language encoders with improved semantic "
    "understanding, localization, and dense features, arXiv:2502.14786, 2025"
)
DINOV2 = EncoderKind(
    "Dinov2Model",
    _pooled,
    "class token of each frame",
    "BitImageProcessor",
    "Oquab et al., DINOv2, TMLR 2024",
    side="",
)
IMAGES: Mapping[str, EncoderKind] = {
    "clip": CLIP,
    "clip_vision_model": CLIP,
    "metaclip_2": replace(
        CLIP,
        network="MetaClip2VisionModelWithProjection",
        citation="Chuang et al., MetaCLIP 2: a worldwide scaling recipe, NeurIPS 2025",
        family="metaclip_2",
        names=(),
    ),
    "siglip": SIGLIP,
    "siglip_vision_model": SIGLIP,
    "dinov2": DINOV2,
    "dinov2_with_registers": replace(
        DINOV2,
        network="Dinov2WithRegistersModel",
        citation="Darcet et al., Vision transformers need registers, ICLR 2024",
    ),
    "dinov3_vit": EncoderKind(
        "DINOv3ViTModel",
        _pooled,
        "class token of each frame",
        "DINOv3ViTImageProcessor",
        "Siméoni et al., DINOv3, arXiv:2508.10104, 2025",
        side="",
    ),
    "aimv2": EncoderKind(
        "Aimv2Model",
        _featured,
        EMBEDDING,
        "CLIPImageProcessor",
        _AIMV2,
        prefix=0,
        unused=("text_model", "text_projection"),
        family="aimv2",
    ),
    "aimv2_vision_model": EncoderKind(
        "Aimv2VisionModel",
        _pooled,
        "attention pooling of each frame, or the mean",
        "CLIPImageProcessor",
        _AIMV2,
        prefix=0,
    ),
    "vit": EncoderKind(
        "ViTModel",
        _first,
        "class token of each frame",
        "ViTImageProcessor",
        "Dosovitskiy et al., An image is worth 16x16 words, ICLR 2021",
        settings={"add_pooling_layer": False},
    ),
    "hiera": EncoderKind(
        "HieraModel",
        _pooled,
        "mean over the tokens of each frame, normalised",
        "BitImageProcessor",
        "Ryali et al., Hiera: a hierarchical vision transformer without the bells-and-whistles, ICML 2023",
        prefix=0,
    ),
}
"""`model_type` -> how its networks read pictures."""
VIDEOS: Mapping[str, EncoderKind] = {
    "videomae": EncoderKind(
        "VideoMAEModel",
        _mean,
        "mean over all tokens",
        "VideoMAEImageProcessor",
        "Tong et al., VideoMAE, NeurIPS 2022",
        prefix=0,
        frames=("num_frames", "tubelet_size"),
        unexpected=(*HEADS, r"decoder\..*", r"encoder_to_decoder\..*"),
    ),
    "vjepa2": EncoderKind(
        "VJEPA2Model",
        _encoded,
        "mean over all tokens",
        "VJEPA2VideoProcessor",
        "Assran et al., V-JEPA 2, arXiv:2506.09985, 2025",
        side="crop_size",
        prefix=0,
        frames=("frames_per_clip", "tubelet_size"),
        flexible=True,
        unused=("predictor",),
    ),
    "videoprism_vision_model": EncoderKind(
        "VideoPrismVisionModel",
        _states,
        "mean over all tokens",
        "VideoPrismVideoProcessor",
        _VIDEOPRISM,
        prefix=0,
        frames=("num_frames", 1),
    ),
    "videoprism": EncoderKind(
        "VideoPrismClipModel",
        _aligned,
        "video embedding, of length 1",
        "VideoPrismVideoProcessor",
        _VIDEOPRISM,
        prefix=0,
        frames=("num_frames", 1),
        unused=("text_model",),
        family="videoprism",
    ),
    "timesformer": EncoderKind(
        "TimesformerModel",
        _by_time,
        "class token",
        "VideoMAEImageProcessor",
        "Bertasius et al., Is space-time attention all you need for video understanding?, ICML 2021",
        frames=("num_frames", 1),
    ),
    "vivit": EncoderKind(
        "VivitModel",
        _largest,
        "max of the last hidden state over all tokens, the class token included",
        "VivitImageProcessor",
        "Arnab et al., ViViT: a video vision transformer, ICCV 2021",
        frames=("num_frames", "tubelet_size"),
        settings={"add_pooling_layer": False},  # the published checkpoint has none, it would be random
    ),
    "xclip": EncoderKind(
        "XCLIPModel",
        frames_of_xclip,
        "mean of it over the frames, the published video vector",
        "VideoMAEImageProcessor",
        "Ni et al., Expanding language-image pretrained models for general video recognition, ECCV 2022",
        frames=("num_frames", 1),
        untrained={"patch_size": 16, "num_frames": 32},
        unused=("text_model", "prompts_generator"),
        family="xclip",
        head="visual projection and multi-frame integration transformer",
        layer="multi-frame integration transformer",
    ),
}
"""`model_type` -> how its networks read videos."""


def _text_embedded(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    vectors: torch.Tensor = model(input_ids=tokens).text_embeds
    return vectors


def _text_pooled(model: Any, tokens: torch.Tensor) -> torch.Tensor:
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
_CLIP = TextKind("CLIPTextModelWithProjection", _text_embedded, CLIP, unexpected=_IMAGE_HALF)
_SIGLIP = TextKind(
    "SiglipTextModel",
    _text_pooled,
    SIGLIP,
    head="head over the last token",
    padded=True,
    unexpected=_IMAGE_HALF,
)
TEXTS: Mapping[str, TextKind] = {
    "clip": _CLIP,
    "clip_text_model": _CLIP,
    "metaclip_2": TextKind(
        "MetaClip2TextModelWithProjection", _text_embedded, IMAGES["metaclip_2"], unexpected=_IMAGE_HALF
    ),
    "siglip": _SIGLIP,
    "siglip_text_model": _SIGLIP,
    "aimv2": TextKind("Aimv2Model", _causal, IMAGES["aimv2"], unused=("vision_model", "visual_projection")),
    "videoprism": TextKind(
        "VideoPrismClipModel",
        _masked,
        VIDEOS["videoprism"],
        head="last token",
        meaning="text embedding, of length 1",
        padded=True,
        unused=("video_model",),
    ),
    "xclip": TextKind(
        "XCLIPModel",
        _projected,
        VIDEOS["xclip"],
        meaning="text embedding before video-specific prompts, not normalised",
        unused=("vision_model", "visual_projection", "prompts_generator", "mit"),
    ),
}
"""`model_type` -> how its networks read texts."""
REFUSED = {
    "siglip2": "a NaFlex SigLIP 2 takes pictures of any shape; its fixed-resolution weights are read",
    **dict.fromkeys(("pe_video", "pe_audio_video", "perception_encoder"), "it is made of timm's layers"),
}
"""`model_type` -> why it is not read."""
