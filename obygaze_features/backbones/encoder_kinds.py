"""List the networks of transformers that see, or read texts, and how each is read; a family is one entry."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

Read = Callable[[Any, torch.Tensor], tuple[torch.Tensor, torch.Tensor | None]]
"""Calls a network; gives its tokens and one vector of a picture or clip, None for their mean."""
ReadText = Callable[[Any, torch.Tensor], torch.Tensor]
"""Calls a network with tokens, `[B, L]`; gives vectors `[B, D]`."""

HEADS = (
    *(r"classifier\..*", r"(\w+\.)?pooler\..*", r"head\..*", r"fc_norm\..*", r"(\w+\.)?mask_token"),
    r"(encoder_to_)?decoder\..*",
)
"""Patterns of tensors of classifiers and of training, after the tokens."""

SCALES = ("logit_scale", "logit_bias", "prompts_generator")
OF_TEXTS = ("text_model", "text_projection", "predictor", *SCALES)
OF_PICTURES = ("vision_model", "visual_projection", "video_model", "mit", *SCALES)
"""Parts of networks that their other half does not use."""


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
    settings
        Further arguments of the class.
    untrained
        Fields of the configuration of random weights that differ from the class's.
    family
        Of a space that texts share; empty without.
    mixes
        Part that mixes the frames of a clip, which the others read one by one.
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
    settings: Mapping[str, Any] = field(default_factory=dict)
    untrained: Mapping[str, Any] = field(default_factory=dict)
    family: str = ""
    mixes: str = ""
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
    """

    network: str
    read: ReadText
    sees: EncoderKind
    head: str = "text projection"
    meaning: str = "text embedding, not normalised"
    padded: bool = False


def _read(
    vector: Callable[[Any], Any] = lambda _: None, part: str = "", name: str = "pixel_values", **how: bool
) -> Read:
    """Read the tokens of a network or its part, which takes pixels by a name, and a vector of its output."""

    def read(model: Any, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        output = (getattr(model, part) if part else model)(**{name: pixels}, **how)
        return output.last_hidden_state, vector(output)

    return read


def _pooled(output: Any) -> Any:  # torch.compile sees through no attrgetter
    return output.pooler_output


_VIDEOS = "pixel_values_videos"


def _of_xclip(model: Any, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Read the half of an X-CLIP before its frames are integrated."""
    vision = model.vision_model(pixel_values=pixels)
    return vision.last_hidden_state, model.visual_projection(vision.pooler_output)


def _by_time(model: Any, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Read a TimeSformer, whose tokens are place by place, with time inside."""
    hidden = model(pixel_values=pixels).last_hidden_state
    patches = hidden[:, 1:].unflatten(1, (-1, pixels.shape[1])).transpose(1, 2).flatten(1, 2)
    return torch.cat([hidden[:, :1], patches], dim=1), hidden[:, 0]


EMBEDDING = "image embedding of each frame, not normalised"
CLIP = EncoderKind(
    "CLIPVisionModelWithProjection",
    _read(lambda output: output.image_embeds),
    EMBEDDING,
    "CLIPImageProcessor",
    "Radford et al., Learning transferable visual models from natural language supervision, ICML 2021",
    untrained={"patch_size": 16},
    family="clip",
    names=("clip",),
    head="visual projection",
    layer="image embedding",
)
SIGLIP = EncoderKind(
    "SiglipVisionModel",
    _read(_pooled),
    EMBEDDING,
    "SiglipImageProcessor",
    "Zhai et al., Sigmoid loss for language image pre-training, ICCV 2023",
    prefix=0,
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
    _read(_pooled),
    "class token of each frame",
    "BitImageProcessor",
    "Oquab et al., DINOv2, TMLR 2024",
    side="",
)
AIMV2 = EncoderKind(
    "Aimv2VisionModel",
    _read(_pooled),
    "attention pooling of each frame, or the mean",
    "CLIPImageProcessor",
    "Fini et al., Multimodal autoregressive pre-training of large vision encoders, CVPR 2025",
    prefix=0,
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
    "dinov3_vit": replace(
        DINOV2,
        network="DINOv3ViTModel",
        processor="DINOv3ViTImageProcessor",
        citation="Siméoni et al., DINOv3, arXiv:2508.10104, 2025",
    ),
    "aimv2": replace(
        AIMV2,
        network="Aimv2Model",
        read=_read(_pooled, "get_image_features"),
        vector=EMBEDDING,
        family="aimv2",
    ),
    "aimv2_vision_model": AIMV2,
    "vit": EncoderKind(
        "ViTModel",
        _read(lambda output: output.last_hidden_state[:, 0]),
        "class token of each frame",
        "ViTImageProcessor",
        "Dosovitskiy et al., An image is worth 16x16 words, ICLR 2021",
        settings={"add_pooling_layer": False},
    ),
    "hiera": EncoderKind(
        "HieraModel",
        _read(_pooled),
        "mean over the tokens of each frame, normalised",
        "BitImageProcessor",
        "Ryali et al., Hiera: a hierarchical vision transformer without the bells-and-whistles, ICML 2023",
        prefix=0,
    ),
}
"""`model_type` -> how its networks read pictures."""
VIDEOPRISM = EncoderKind(
    "VideoPrismVisionModel",
    _read(name=_VIDEOS),
    "mean over all tokens",
    "VideoPrismVideoProcessor",
    "Zhao et al., VideoPrism: a foundational visual encoder for video understanding, ICML 2024",
    prefix=0,
    frames=("num_frames", 1),
)
VIDEOS: Mapping[str, EncoderKind] = {
    "videomae": EncoderKind(
        "VideoMAEModel",
        _read(),
        "mean over all tokens",
        "VideoMAEImageProcessor",
        "Tong et al., VideoMAE, NeurIPS 2022",
        prefix=0,
        frames=("num_frames", "tubelet_size"),
    ),
    "vjepa2": EncoderKind(
        "VJEPA2Model",
        _read(name=_VIDEOS, skip_predictor=True),
        "mean over all tokens",
        "VJEPA2VideoProcessor",
        "Assran et al., V-JEPA 2, arXiv:2506.09985, 2025",
        side="crop_size",
        prefix=0,
        frames=("frames_per_clip", "tubelet_size"),
        flexible=True,
    ),
    "videoprism_vision_model": VIDEOPRISM,
    "videoprism": replace(
        VIDEOPRISM,
        network="VideoPrismClipModel",
        read=_read(lambda output: output.pooler_output[:, 0], "video_model", _VIDEOS),
        vector="video embedding, of length 1",
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
        _read(lambda output: output.last_hidden_state.float().amax(dim=1)),
        "max of the last hidden state over all tokens, the class token included",
        "VivitImageProcessor",
        "Arnab et al., ViViT: a video vision transformer, ICCV 2021",
        frames=("num_frames", "tubelet_size"),
        settings={"add_pooling_layer": False},  # the published checkpoint has none, it would be random
    ),
    "xclip": EncoderKind(
        "XCLIPModel",
        _of_xclip,
        "output of the multi-frame integration transformer, one a frame",
        "VideoMAEImageProcessor",
        "Ni et al., Expanding language-image pretrained models for general video recognition, ECCV 2022",
        frames=("num_frames", 1),
        untrained={"patch_size": 16, "num_frames": 32},
        family="xclip",
        mixes="mit",
        head="visual projection and multi-frame integration transformer",
        layer="multi-frame integration transformer",
    ),
}
"""`model_type` -> how its networks read videos."""


def _causal(model: Any, tokens: torch.Tensor) -> Any:
    """Read a tower that attends to what comes before only where it is given a mask."""
    return model.get_text_features(input_ids=tokens, attention_mask=torch.ones_like(tokens)).pooler_output


def _masked(model: Any, tokens: torch.Tensor) -> Any:
    seen = (tokens != model.config.text_config.pad_token_id).long()
    return model.text_model(input_ids=tokens, attention_mask=seen).pooler_output


_CLIP = TextKind(
    "CLIPTextModelWithProjection", lambda model, tokens: model(input_ids=tokens).text_embeds, CLIP
)
_SIGLIP = TextKind(
    "SiglipTextModel",
    lambda model, tokens: model(input_ids=tokens).pooler_output,
    SIGLIP,
    head="head over the last token",
    padded=True,
)
TEXTS: Mapping[str, TextKind] = {
    "clip": _CLIP,
    "clip_text_model": _CLIP,
    "metaclip_2": replace(_CLIP, network="MetaClip2TextModelWithProjection", sees=IMAGES["metaclip_2"]),
    "siglip": _SIGLIP,
    "siglip_text_model": _SIGLIP,
    "aimv2": TextKind("Aimv2Model", _causal, IMAGES["aimv2"]),
    "videoprism": TextKind(
        "VideoPrismClipModel",
        _masked,
        VIDEOS["videoprism"],
        head="last token",
        meaning="text embedding, of length 1",
        padded=True,
    ),
    "xclip": TextKind(
        "XCLIPModel",
        lambda model, tokens: model.text_projection(model.text_model(input_ids=tokens).pooler_output),
        VIDEOS["xclip"],
        meaning="text embedding before video-specific prompts, not normalised",
    ),
}
"""`model_type` -> how its networks read texts."""
REFUSED = {
    "siglip2": "a NaFlex SigLIP 2 takes pictures of any shape; its fixed-resolution weights are read",
    **dict.fromkeys(("pe_video", "pe_audio_video", "perception_encoder"), "it is made of timm's layers"),
}
"""`model_type` -> why it is not read."""
