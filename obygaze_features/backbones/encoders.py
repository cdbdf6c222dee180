"""`image` and `video`: networks of transformers for pictures and videos, by the `model_type` of the weights.

`clip`, `xclip` and `vivit` are the same networks under names of their own: with the defaults of the corpora
that were extracted under these names, and named presets.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import torch
import transformers
from torch import nn
from torch.func import functional_call

from obygaze_features.backbones.answers import (
    ClassifierBase,
    WithClassProbabilities,
    answers_fields,
    is_multi_label,
    named_classes,
)
from obygaze_features.backbones.any_encoder import N_FRAMES, InspectedType, inspect_type, type_of
from obygaze_features.backbones.backbone import ANSWERS, Backbone, LoadedNetwork
from obygaze_features.backbones.checkpoint import auto_config, load_pretrained, plain_config
from obygaze_features.backbones.class_calls import clip_fields
from obygaze_features.backbones.classifiers import is_of_a_classifier, load_classifier
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.conformance import Conformance, check
from obygaze_features.backbones.encoder_specs import (
    HEADS,
    IMAGES,
    INSIDE_CLASSIFIERS,
    PARTS_OF_PICTURES,
    PARTS_OF_TEXTS,
    PICTURES_BY_CLASS,
    VIDEOS,
    EncoderSpec,
    Read,
    TextSpec,
)
from obygaze_features.backbones.layered import WithLayers, find_layers, layer_group_fields
from obygaze_features.backbones.layers import Layers
from obygaze_features.backbones.network import network_backbone
from obygaze_features.backbones.presets import Preset, choose_preset
from obygaze_features.backbones.processor import is_siglip_2, preset_of_processor
from obygaze_features.backbones.weights import CONFIG, HUB, Weights, find_weights, space_of
from obygaze_features.errors import BackboneError, first_line
from obygaze_features.text import counted

AnySpec = TypeVar("AnySpec", bound=EncoderSpec | TextSpec)
VISION = "vision_config"
"""Field of a configuration of pictures and texts that holds the one of the half that sees."""

USUAL_SIDE = 224
"""Side in pixels of the pictures of a named preset, for a network that takes pictures of many sizes."""


def image(
    n_frames: int | None = None,
    *,
    weights: str,
    tokens: str = "none",
    layers: Layers | str | None = None,
    answers: bool = False,
    compute: Compute | None = None,
) -> Backbone:
    """Build the backbone of a network that encodes each frame by itself.

    Parameters
    ----------
    n_frames
        Frames per clip, any number; None is 32.
    weights
        A repository or folder with the weights of a network of transformers, such as a ViT or a CLIP;
        `random:SEED:TYPE` is untrained.
    tokens
        `patches` stores the tokens of the patches too, frame by frame and row by row; `none` does not.
    layers
        Layers to store in addition, each in its own group of the store.
    answers
        Whether to store the class probabilities of its classifier too, in a group of their own.
    """
    return _build("image", weights, n_frames, tokens=tokens, layers=layers, answers=answers, compute=compute)


def video(
    n_frames: int | None = None,
    *,
    weights: str,
    tokens: str = "none",
    layers: Layers | str | None = None,
    answers: bool = False,
    compute: Compute | None = None,
) -> Backbone:
    """Build the backbone of a network that encodes the frames of a clip together.

    Parameters
    ----------
    n_frames
        Frames per clip; None is the number of the configuration, and most networks take no other.
    weights
        A repository or folder with the weights of a network of transformers, such as a VideoMAE;
        `random:SEED:TYPE` is untrained.
    tokens
        `all` stores the tokens too, `none` does not. Of X-CLIP `frames` stores the class token of each frame,
        and `patches` the tokens of its patches.
    layers
        Layers to store in addition, each in its own group of the store.
    answers
        Whether to store the class probabilities of its classifier too, in a group of their own.
    """
    return _build("video", weights, n_frames, tokens=tokens, layers=layers, answers=answers, compute=compute)


def clip(
    n_frames: int | None = None,
    *,
    weights: str = HUB["clip"],
    preset: str | None = None,
    layers: Layers | str | None = None,
    compute: Compute | None = None,
) -> Backbone:
    """Build the image half of a CLIP or SigLIP.

    Parameters
    ----------
    n_frames
        Frames per clip, any number; None is 32.
    preset
        Preprocessing; None follows the processor's configuration in the folder of the weights. If there is
        none, it is the preset `clip`, `siglip` or `siglip2`, by the type of the network.
    layers
        Layers to store in addition, each in its own group of the store.
    """
    return _build("clip", weights, n_frames, preset=preset, layers=layers, compute=compute)


def vivit(
    n_frames: int | None = None,
    *,
    weights: str = HUB["vivit"],
    preset: str = "obygaze12",
    tokens: str = "all",
    layers: Layers | str | None = None,
    answers: bool = False,
    compute: Compute | None = None,
) -> Backbone:
    """Build ViViT-B/16x2 (Arnab et al., ICCV 2021), trained on Kinetics-400.

    For 32 frames it has 1 class token and 16 x 14 x 14 tokens of tubelets, ordered by time, row and column.
    The pooled vector is the **maximum** over all of them, as the original study read these features.

    Parameters
    ----------
    n_frames
        Must be what the network was made for (32 for the default one).
    tokens
        `all` stores the 3137 tokens too, 4.8 MB a clip; `none` stores only frames and pooled.
    layers
        Layers to store in addition, each in its own group of the store.
    answers
        Whether to store the class probabilities of its classifier too, in a group of their own.
    """
    return _build(
        "vivit",
        weights,
        n_frames,
        tokens=tokens,
        preset=preset,
        layers=layers,
        answers=answers,
        compute=compute,
    )


def xclip(
    n_frames: int | None = None,
    *,
    weights: str = HUB["xclip"],
    preset: str = "obygaze12",
    tokens: str = "none",
    layers: Layers | str | None = None,
    compute: Compute | None = None,
) -> Backbone:
    """Build X-CLIP (Ni et al., ECCV 2022).

    Parameters
    ----------
    n_frames
        Must be what the network was made for (32 for the default one), since its frames are mixed.
    tokens
        What to store besides frames and pooled, of T frames: `frames`, the projected class token of each
        frame before frames are mixed, `[T, 512]`; or `patches`, the tokens of patches, `[T * 196, 768]`.
    layers
        Layers of the vision transformer to store in addition, each in its own group of the store.
    """
    return _build("xclip", weights, n_frames, tokens=tokens, preset=preset, layers=layers, compute=compute)


def clip_network(weights: str | Path | Weights) -> LoadedNetwork:
    """Load the vision half of a CLIP for pictures `[B, 3, h, w]`; its output has `image_embeds`, `[B, D]`."""
    only_clip = {"clip": IMAGES["clip"]}
    half = VisionHalf(find_weights(weights), only_clip, default_type="clip", config_field=VISION)
    return LoadedNetwork(half.network(), half.weights, half.preset())


_CLIPS = {
    model_type: IMAGES[model_type]
    for model_type in ("clip", "clip_vision_model", "siglip", "siglip_vision_model")
}


class NamedBackbone(NamedTuple):
    """What one of the functions of this module reads.

    Attributes
    ----------
    specs
        `model_type` -> how such networks are read.
    presets
        Names of presets that may be chosen besides those of the networks.
    """

    specs: Mapping[str, EncoderSpec]
    presets: tuple[str, ...] = ()


_BACKBONES: Mapping[str, NamedBackbone] = {
    "image": NamedBackbone(IMAGES),
    "video": NamedBackbone(VIDEOS),
    "clip": NamedBackbone(_CLIPS, ("obygaze12",)),
    "vivit": NamedBackbone({"vivit": VIDEOS["vivit"]}, ("vivit-hub", "vivit-scenic", "obygaze12")),
    "xclip": NamedBackbone({"xclip": VIDEOS["xclip"]}, ("xclip", "obygaze12")),
}
"""Backbone -> the networks that it reads."""


class ClipLength(NamedTuple):
    """How long the clips of a network are.

    Attributes
    ----------
    n_frames
        Frames of a clip.
    frames_per_step
        Frames of one step in time, which a token spans.
    """

    n_frames: int
    frames_per_step: int


class Half(Generic[AnySpec]):
    """The vision half, or the text half, of a network: its weights, and how such a network is read.

    A CLIP, for example, has a half for pictures and one for texts. Weights may be those of both halves or of
    one alone, each with a `model_type` of its own. A network that has no texts counts as a vision half.

    Parameters
    ----------
    weights
        The weights of the whole network, or of this half alone.
    specs
        `model_type` -> how this half of such a network is read.
    default_type
        `model_type` of random weights that name none.
    config_field
        Field of the whole network's configuration that holds that of this half, such as `vision_config`.

    Attributes
    ----------
    type
        The `model_type` of the weights.
    spec
        How this half is read: the row of its type in `networks.toml`.
    vision_spec
        How the vision half is read, which is `spec` itself if this is the vision half. It states what
        holds of both halves: the paper, and how they are loaded.
    config
        The configuration beside the weights.
    half_config
        The part of it on this half, which is all of it if the half was saved alone.
    is_siglip2
        Whether it is a SigLIP 2, which has the `model_type` of a SigLIP.

    Raises
    ------
    BackboneError
        If `specs` has no entry for the type of the network.
    """

    def __init__(
        self, weights: Weights, specs: Mapping[str, AnySpec], default_type: str, config_field: str
    ) -> None:
        """Look up how to read this half (pictures, or texts) of such a network, and read its configuration.

        A CLIP, for example, is read by its row in `networks.toml`. The row of a text half has few columns of
        its own; what holds of the whole network is in the row of its vision half.
        """
        self.weights = weights
        self.type = _type_of_network(weights, default_type)
        if self.type not in specs:
            known = f"expected {' or '.join(specs)}"
            if weights.seed is not None:
                known += f", as random:{weights.seed}:TYPE"
            raise BackboneError(f"{weights.name}: a network of type {self.type!r} is not read here: {known}")

        self.spec = specs[self.type]
        self.vision_spec: EncoderSpec = self.spec.vision if isinstance(self.spec, TextSpec) else self.spec
        self.config: Any = auto_config(weights, self.type, self.vision_spec.untrained_config)
        self.half_config: Any = self._config_of_half(config_field)
        # SigLIP and SigLIP 2 have one `model_type`, and so one row, which alone states a paper on SigLIP 2.
        is_of_either_siglip = self.vision_spec.siglip2_citation != ""
        self.is_siglip2 = is_of_either_siglip and is_siglip_2(weights)

    def _config_of_half(self, config_field: str) -> Any:
        """Return the part of the network's configuration on this half (pictures, or texts).

        It is the whole configuration if the half was saved alone.

        Parameters
        ----------
        config_field
            Field of the whole network's configuration that holds that of this half, such as `vision_config`.

        Raises
        ------
        BackboneError
            If networks of the type have no such half.
        """
        half_config: Any = getattr(self.config, config_field, self.config)
        # Transformers converts the fields of the halves that a type has to configurations. The field of
        # another half stays a dict.
        if isinstance(half_config, dict):
            raise BackboneError(
                f"{self.weights.name}/{CONFIG}: a network of type {self.type!r} has no {config_field}"
            )
        if getattr(self.config, "projection_dim", None) and hasattr(half_config, "projection_dim"):
            # In some repositories the half's own copy is outdated.
            half_config.projection_dim = self.config.projection_dim
        return half_config

    def network(self) -> Any:
        """Load the network of this half, without the parts that only the other half uses."""
        network_class = getattr(transformers, self.spec.network)
        # The class is one of the whole network, such as `CLIPModel`, or of one half, such as
        # `CLIPVisionModel`. It takes the configuration of the same extent.
        is_class_of_whole_network = isinstance(self.config, network_class.config_class)
        config = self.config if is_class_of_whole_network else self.half_config

        is_vision_half = isinstance(self.spec, EncoderSpec)
        parts_of_other_half = PARTS_OF_TEXTS if is_vision_half else PARTS_OF_PICTURES
        # The file may hold tensors of the other half, and of classifiers. A class of one half has no place
        # for them: they may be left over. A class of the whole network loads them; they are deleted below.
        names_of_unused_tensors = [rf"{part}(\..*)?" for part in parts_of_other_half]  # regular expressions
        model = load_pretrained(
            network_class,
            self.weights,
            config,
            allow_unexpected=(*HEADS, *names_of_unused_tensors),
            **self.vision_spec.load_arguments,
        )
        for part in parts_of_other_half:
            if hasattr(model, part):
                delattr(model, part)
        return model

    def record(self, type_name: str) -> dict[str, Any]:
        """Return the provenance fields of the network: `type_name` as its type, its sizes, and its paper."""
        architecture: dict[str, Any] = {"type": type_name}
        if hasattr(self.config, "projection_dim"):
            architecture["projection_dim"] = self.config.projection_dim
        architecture |= plain_config(self.half_config)
        citation = self.vision_spec.siglip2_citation if self.is_siglip2 else self.vision_spec.citation
        return {"architecture": architecture, "citation": citation}


def _type_of_network(weights: Weights, default_type: str) -> str:
    """Return the type of network (`model_type`) that weights are of, such as `clip`.

    Trained weights have it in their configuration. Random weights have it in their name, as in
    `random:7:clip`; those that name none, such as `random:7`, are of the default type.
    """
    are_trained = weights.seed is None
    if are_trained:
        return str(weights.config().get("model_type"))
    return weights.network or default_type  # `network` is empty where the name has no type


class VisionHalf(Half[EncoderSpec]):
    """The vision half of a network, which reads pictures or clips, with its processor."""

    def input_side(self) -> int | None:
        """Return the side in pixels of the network's square input; None if it takes any multiple of a patch.

        Raises
        ------
        BackboneError
            If its input is not square.
        """
        size_field = self.spec.size_field
        if not size_field:
            return None
        configured: Any = getattr(self.half_config, size_field)
        height_and_width = configured if isinstance(configured, list | tuple) else [configured]
        is_square = len(set(height_and_width)) == 1
        if not is_square:
            raise BackboneError(
                f"{self.weights.name}/{CONFIG}: {size_field} is {configured}, expected the side of a square, "
                "in pixels"
            )
        side: int | None = height_and_width[0]
        return side

    def preset(
        self, name: str | None = None, other_presets: Sequence[str] = (), *, may_use_preset_name: bool = True
    ) -> Preset:
        """Return how pictures are prepared for the network: by a named preset, else as its processor does.

        Parameters
        ----------
        name
            Name of a preset; None reads the processor's configuration.
        other_presets
            Names that may be chosen besides those of the presets for the network's type.
        may_use_preset_name
            What to call the result if the weights' processor does the same as a named preset: by the name of
            that preset if True, by the class of the processor if False.
        """
        side = self.input_side()  # None if the network takes any multiple of its patch
        if name is not None:
            allowed_names = (*self.spec.preset_names, *other_presets)
            return choose_preset(name, allowed_names, size=side or USUAL_SIDE)

        # A processor's configuration may leave out the name of its class; then it is the usual one.
        usual_class = "SigLIP2ImageProcessor" if self.is_siglip2 else self.spec.processor
        # Pictures must have the network's side or, if it takes many sizes, be divisible into whole patches.
        # With a side, 1 adds no condition.
        side_is_multiple_of = 1 if side else int(self.half_config.patch_size)
        presets_to_compare = self.spec.preset_names if may_use_preset_name else ()
        return preset_of_processor(
            self.weights, usual_class, side=side, multiple=side_is_multiple_of, names=presets_to_compare
        )

    def clip_length(self, backbone: str, n_frames: int | None) -> ClipLength:
        """Return the number of frames of a clip, and of one step in time, such as a tubelet.

        Parameters
        ----------
        backbone
            Name of the backbone, for messages.
        n_frames
            Frames that are asked for; None is what the network was made for.

        Raises
        ------
        BackboneError
            If the network does not take the number: it would mix clips, or fail later.
        """
        if not self.spec.of_clips:
            return ClipLength(n_frames or N_FRAMES, frames_per_step=1)
        fields = clip_fields(self.half_config)
        usual_length = getattr(self.half_config, fields.frames_field)
        step = self._frames_per_step(fields.step_field)
        length = n_frames or usual_length
        has_whole_steps = length % step == 0
        takes_this_length = length == usual_length or self.spec.any_length
        if not has_whole_steps or not takes_this_length:
            lengths = f"a multiple of {step}" if self.spec.any_length else usual_length
            raise BackboneError(
                f"backbone '{backbone}' with these weights takes {lengths} frames a clip, not {length}"
            )
        return ClipLength(length, step)

    def _frames_per_step(self, step_field: str) -> int:
        """Return how many frames a step in time spans, by a field of the configuration.

        The field has a number, or the sides of a tubelet, time first. It is empty for networks whose step is
        one frame.
        """
        if not step_field:
            return 1
        configured = getattr(self.half_config, step_field)
        step = configured[0] if isinstance(configured, list | tuple) and configured else configured
        if not isinstance(step, int) or step < 1:
            raise BackboneError(
                f"{self.weights.name}/{CONFIG}: {step_field} is {configured!r:.80}, expected frames of a step"
            )
        return step

    def needs_its_classifier(self) -> bool:
        """Return whether the weights can only be loaded inside their classifier.

        Some types of networks, if they were saved for classification, lack a part that the network by itself
        would need.
        """
        return self.type in INSIDE_CLASSIFIERS and is_of_a_classifier(self.weights, self.type)

    def change_to_classifier(self) -> ClassifierBase:
        """Load the network inside its classifier, which also gives class probabilities.

        This half is a part of the classifier from now on. Of some types, `networks.toml` has another row for
        a network inside a classifier, as its vectors come from another layer there: that row becomes `spec`.

        Raises
        ------
        BackboneError
            If networks of its type have none, or the file has no classifier.
        """
        self.spec = INSIDE_CLASSIFIERS.get(self.type, self.spec)
        return load_classifier(self.weights, self.type, self.config)

    def module(
        self, backbone: str, tokens: str, frames_per_step: int, classifier: ClassifierBase | None = None
    ) -> "Pictures | Clips":
        """Make a module that takes clips `[B, F, 3, h, w]` and returns their vectors, and tokens if wanted.

        It is `Pictures` for a network that encodes each frame by itself, else `Clips`.

        Parameters
        ----------
        backbone
            Name of the backbone, for messages.
        tokens
            Which tokens to return besides vectors, such as `patches`, or `none`.
        frames_per_step
            Frames of one step in time.
        classifier
            The network inside its classifier, if that is loaded already; None loads the network by itself.

        Raises
        ------
        BackboneError
            If it has no tokens of this name.
        """
        spec = self.spec  # how this half is read, by the row of its type
        if tokens not in ("none", *spec.token_meanings):
            raise BackboneError(
                f"backbone '{backbone}' has no tokens '{tokens}'; "
                f"there is none, {', '.join(spec.token_meanings)}"
            )
        model = classifier or self.network()  # a classifier is called as the network inside it is
        # Some networks of clips encode each frame by itself, and then have a part that mixes the frames.
        has_mixing_part = spec.mixing_part != ""
        if spec.of_clips and not has_mixing_part:
            return Clips(model, spec, frames_per_step, tokens)
        return Pictures(
            model,
            read=spec.reader(),
            frame_meaning=spec.vector_meaning,
            n_prefix_tokens=self.n_prefix_tokens(),
            tokens=tokens,
            spec=spec,
        )

    def n_prefix_tokens(self) -> int:
        """Return the number of tokens before the patch tokens: class tokens and registers."""
        n_registers: int = getattr(self.half_config, "num_register_tokens", 0)
        return self.spec.n_prefix_tokens + n_registers


def _build(
    name: str,
    weights: str,
    n_frames: int | None,
    *,
    tokens: str = "none",
    preset: str | None = None,
    layers: Layers | str | None = None,
    answers: bool = False,
    compute: Compute | None,
) -> Backbone:
    """Build the backbone of a transformers network, by the row of its type in `networks.toml`.

    The public functions of this module (`image`, `video`, `clip`, `vivit`, `xclip`) only pass their options
    on, with their own name as `name`. `_backbone_of_any_type` builds networks whose type has no row.

    Parameters
    ----------
    name
        Name of the backbone, which decides the types of networks that it reads.
    weights
        The weights, as for `find_weights`.
    n_frames
        Frames of a clip; None is what the network was made for.
    tokens
        Which tokens are stored too, such as `patches`; or `none`.
    preset
        Name of the preprocessing; None follows the configuration of the network's processor.
    layers
        Layers that are stored too, each as a side group; None for none.
    answers
        Whether the class probabilities of its classifier are stored too.
    compute
        Device and precision.
    """
    source = find_weights(weights)
    type_without_row = _type_without_a_row(name, source)  # "": its type has a row
    if type_without_row:
        options_in_use = {"tokens": tokens != "none", "layers": layers is not None}
        _refuse_options_without_row(source, type_without_row, options_in_use)
        return _backbone_of_any_type(name, source, n_frames, compute or Compute(), answers=answers)

    # How such a network is read, how long its clips are, and how its pictures are prepared.
    is_clip = name == "clip"
    named_backbone = _BACKBONES[name]
    vision = VisionHalf(source, named_backbone.specs, default_type=name, config_field=VISION)
    length = vision.clip_length(name, n_frames)
    # `clip` records a processor by the name of a preset that does the same, `image` and `video` by its class.
    chosen_preset = vision.preset(preset, named_backbone.presets, may_use_preset_name=is_clip)

    # The network, loaded inside its classifier where class probabilities are wanted. Networks of a few types
    # can be loaded in no other way.
    needs_classifier = answers or (name == "image" and vision.needs_its_classifier())
    classifier = vision.change_to_classifier() if needs_classifier else None
    module = vision.module(name, tokens, length.frames_per_step, classifier)

    # Class probabilities and layers are computed by modules around this one, and stored in side groups.
    network: nn.Module = module
    side_group_fields: dict[str, dict[str, Any]] = {}  # group -> its provenance fields
    if classifier is not None and answers:
        network = WithClassProbabilities(network, classifier)
        side_group_fields[ANSWERS] = _fields_of_answers(
            classifier, source, vision.type, of_frames=not vision.spec.of_clips
        )
    wanted_layers = Layers.of(layers)
    if wanted_layers is not None:
        network_with_blocks = module.model if classifier is None else classifier.inner_network
        location = f"backbone '{name}', {source.name}"
        stored_layers = find_layers(network_with_blocks, vision.spec.stacks, wanted_layers, location)
        network = WithLayers(
            network,
            stored_layers,
            with_frames=wanted_layers.frames,
            n_prefix_tokens=vision.n_prefix_tokens(),
            n_time_steps=length.n_frames // length.frames_per_step,
        )
        side_group_fields |= layer_group_fields(stored_layers, with_frames=wanted_layers.frames)

    # `clip` also reads vision halves that were saved alone, which have a type of their own (such as
    # `clip_vision_model`); its stores call both by their family (`clip`).
    type_in_provenance = vision.spec.family if is_clip else vision.type
    return network_backbone(
        name,
        network,
        n_frames=length.n_frames,
        shapes=output_shapes(source, network, length.n_frames, chosen_preset.geometry.size),
        meanings=module.meanings,
        weights=source,
        preset=chosen_preset,
        compute=compute or Compute(),
        attention=module.model.config._attn_implementation,
        head=vision.spec.head,
        layer=vision.spec.layer,
        side_group_fields=side_group_fields,
        **vision.record(type_in_provenance),
        **_space_fields(name, vision.spec, source),
    )


def _space_fields(name: str, spec: EncoderSpec, source: Weights) -> dict[str, Any]:
    """Return the provenance field `space`: the name of the space that vectors share with those of texts.

    Empty for networks that share no space with texts. Also for `xclip`: the space of its stores follows from
    the name of the backbone and the weights.
    """
    if not spec.family or name == "xclip":
        return {}
    return {"space": space_of(spec.family, source)}


def _type_without_a_row(name: str, source: Weights) -> str:
    """Return the `model_type` of `image` or `video` weights if `networks.toml` has no row for it; else "".

    Random weights that name no type are of the backbone's default type, which has a row.
    """
    names_no_type = source.seed is not None and not source.network
    if name not in ("image", "video") or names_no_type:
        return ""
    model_type = type_of(source)
    return "" if model_type in IMAGES or model_type in VIDEOS else model_type


SAID_BY_ROWS_ONLY = {
    "tokens": "which of its outputs are tokens of patches, and in which order",
    "layers": "where its blocks are, and which of their tokens are patches",
}
"""Option -> what it needs to know of a network, and only a row of `networks.toml` says."""


def _refuse_options_without_row(source: Weights, model_type: str, options_in_use: Mapping[str, bool]) -> None:
    """Refuse `--tokens` and `--layers` for a network whose type has no row in `networks.toml`.

    A row of that table says of a type of network where its layers and the tokens of patches are. The class of
    a network does not say it, so these options can't be followed without a row.

    Parameters
    ----------
    source
        The weights, for the message.
    model_type
        The type of network.
    options_in_use
        Option -> whether the user gave it.

    Raises
    ------
    BackboneError
        If one of the options is used.
    """
    for option, is_used in options_in_use.items():
        if is_used:
            raise BackboneError(
                f"{source.name}: no --{option} for a network of type {model_type!r}: its class does not say "
                f"{SAID_BY_ROWS_ONLY[option]}; leave out --{option}, or add a row for the type "
                "(docs/backbones.md, A new family)"
            )


def _fields_of_answers(
    classifier: Any, source: Weights, model_type: str, *, of_frames: bool
) -> dict[str, Any]:
    """Return the provenance fields of the class probabilities that the classifier around a network gives.

    If the classifier takes single frames, a clip has the mean over its frames.
    """
    classes = named_classes(classifier.config, source.name)
    meaning = "probability of each class"
    if is_multi_label(classifier.config):  # the probabilities of a clip do not sum to 1
        meaning = "probability of each class alone"
    return answers_fields(classes, model_type, of_frames=of_frames, meaning=meaning)


def _backbone_of_any_type(
    name: str, source: Weights, n_frames: int | None, compute: Compute, *, answers: bool
) -> Backbone:
    """Build the backbone of a network whose type has no row in `networks.toml`, by inspecting its class.

    `inspect_type` finds out from the class how the network is called. `check` then loads it, with its
    processor, and tries it: it must give the same features again, in any batch, for every frame.

    Parameters
    ----------
    name
        Name of the backbone, `image` or `video`.
    source
        The weights.
    n_frames
        Frames of a clip; None is the network's own number.
    compute
        Device and precision.
    answers
        Whether to store the class probabilities of its classifier too.

    Raises
    ------
    BackboneError
        The network cannot be called with pictures alone, or fails the check.
    """
    inspected = inspect_type(source, type_of(source), name, answers=answers)
    clip_length = inspected.frames(name, n_frames)
    checked = check(inspected, n_frames)
    conformance = checked.conformance  # the result of the check, and what it has seen of the network
    conformance.raise_if_failed()
    module = checked.module
    processor = checked.processor
    if processor is None:  # for type checkers: a network without a processor fails the check
        raise BackboneError(f"{source.name}: no processor prepares its pictures")

    shapes = _shapes_of_clip(conformance, clip_length)
    vector_meaning = conformance.pooled
    is_of_frames = inspected.call.form != "clips"  # it takes single pictures
    network: nn.Module = module
    side_group_fields: dict[str, dict[str, Any]] = {}  # group -> its provenance fields
    if answers:
        classifier = module.model  # with `answers`, `inspect_type` loads the network inside its classifier
        network = WithClassProbabilities(module, classifier)
        fields = _fields_of_answers(classifier, source, inspected.model_type, of_frames=is_of_frames)
        side_group_fields[ANSWERS] = fields
        classes = fields["architecture"]["features"]
        shapes[f"{ANSWERS}/pooled"] = (len(classes),)

    return network_backbone(
        name,
        network,
        n_frames=clip_length,
        shapes=shapes,
        meanings=_meanings_without_row(vector_meaning, of_frames=is_of_frames),
        weights=source,
        preset=processor,
        compute=compute,
        attention=module.model.config._attn_implementation,
        head=None,
        layer=vector_meaning,
        side_group_fields=side_group_fields,
        **inspected.record(),
        **_space_fields_of_any_type(inspected, source),
    )


def _shapes_of_clip(conformance: Conformance, n_frames: int) -> dict[str, tuple[int, ...]]:
    """Return name -> shape of each array that a network gives of one clip of `n_frames` frames.

    The check has found the shapes, perhaps with another number of frames: `frames` has a row for each.
    """
    shapes = {}
    for array, shape in conformance.shapes.items():
        shapes[array] = (n_frames, *shape[1:]) if array == "frames" else tuple(shape)
    return shapes


def _meanings_without_row(vector_meaning: str, *, of_frames: bool) -> dict[str, str]:
    """Say in words what the arrays `frames` and `pooled` of a network are, for the provenance in a store.

    This is for types of networks that have no row in `networks.toml`, which would say it.

    Parameters
    ----------
    vector_meaning
        The output of the network that its vectors come from, such as `pooler_output`.
    of_frames
        Whether the network takes single frames, so that a clip's vector is the mean of theirs. Else it takes
        whole clips.

    Examples
    --------
    >>> _meanings_without_row("pooler_output", of_frames=True)
    {'frames': 'pooler_output of each frame', 'pooled': 'its mean over the frames'}
    """
    if of_frames:
        return {"frames": f"{vector_meaning} of each frame", "pooled": "its mean over the frames"}
    return {"frames": "last_hidden_state, a row a frame", "pooled": vector_meaning}


def _space_fields_of_any_type(inspected: InspectedType, source: Weights) -> dict[str, Any]:
    """Return the provenance field `space`: the name of the space that vectors share with those of texts.

    This is for a network whose class says how it reads pictures. If texts can be encoded by its text half,
    `PICTURES_BY_CLASS` has its type, and names the space. Empty for all other networks. Also for one inside a
    classifier, which leaves out the projection into the space.
    """
    spec_with_space = PICTURES_BY_CLASS.get(inspected.model_type)
    if spec_with_space is None or inspected.in_classifier:
        return {}
    return {"space": space_of(spec_with_space.family, source)}


def output_shapes(
    weights: Weights, module: nn.Module, n_frames: int, size: int
) -> dict[str, tuple[int, ...]]:
    """Return the shape of each array that a module gives for one clip, without computing any value.

    The module runs on torch's meta device, where tensors have shapes alone.

    Parameters
    ----------
    weights
        For messages.
    module
        Takes clips `[B, F, 3, h, w]`.
    n_frames, size
        Frames of a clip, and the side of its pictures in pixels.

    Raises
    ------
    BackboneError
        If the network does not take such clips.
    """
    tensors = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    meta_tensors = {name: tensor.to("meta") for name, tensor in tensors.items()}
    try:
        with torch.device("meta"), torch.inference_mode():
            clip = torch.empty(1, n_frames, 3, size, size)
            arrays = functional_call(module, meta_tensors, clip)
    except Exception as error:  # noqa: BLE001 - wrong numbers in a configuration can raise any error
        raise BackboneError(
            f"{weights.name}: the network does not take {counted(n_frames, 'frame')} of "
            f"{size} x {size} pixels: "
            f"{first_line(error)}"
        ) from None
    return {array: tuple(values.shape[1:]) for array, values in arrays.items()}


class Pictures(nn.Module):
    """A network of pictures, applied to every frame of a clip, whose frames are then averaged or mixed.

    A clip's vector is the mean over its frames' vectors. Some networks first relate the frames with each
    other by a part of their own (`mixing_part`).

    Of an X-CLIP, the class token of each frame is projected, c `[F, 512]`; its multi-frame integration
    transformer (MIT) gives t = layer(c + position) + c, `[F, 512]`; the video vector is the mean of t over
    the frames, as in `XCLIPModel.get_video_features`.

    Parameters
    ----------
    model
        The network.
    read
        Calls the network with pictures; gives tokens, and a vector of each picture or None for their mean.
    frame_meaning
        What the vector of a frame is, in words.
    n_prefix_tokens
        Tokens before those of patches.
    tokens
        Which tokens are returned: `patches`; or `frames`, the vectors of the frames before they are mixed.
        With any other word there are none.
    spec
        Row of the network's type. Only this is taken from it: the name of the part that mixes the frames of a
        clip, and in words what a clip's vector and the tokens are. The default, the row of CLIP, says that
        nothing mixes the frames.

    Attributes
    ----------
    meanings
        Array -> what it is, in words.
    """

    def __init__(
        self,
        model: Any,
        read: Read,
        frame_meaning: str = IMAGES["clip"].vector_meaning,
        n_prefix_tokens: int = 0,
        tokens: str = "",
        *,
        spec: EncoderSpec = IMAGES["clip"],
    ) -> None:
        """Hold the network, and say in words what each of its arrays is, for the provenance."""
        super().__init__()
        self.model = model
        self.read = read  # calls the network
        self.n_prefix_tokens = n_prefix_tokens
        self.tokens = tokens
        self.mixing_part = spec.mixing_part  # "": none
        self.meanings = {
            "frames": frame_meaning,
            "pooled": spec.clip_vector_meaning,
            "tokens": spec.token_meanings.get(tokens, ""),
        }

    def forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Encode clips `[B, F, 3, h, w]`: `frames` [B, F, D], `pooled` [B, D], and `tokens` if wanted."""
        n_clips, n_frames = pixels.shape[:2]
        pictures = pixels.flatten(0, 1)  # [B F, 3, h, w]
        tokens, vectors = self.read(self.model, pictures)  # [B F, T, D], [B F, D]
        if vectors is None:
            vectors = tokens.mean(dim=1)
        unmixed = vectors.view(n_clips, n_frames, -1)  # the vector of each frame, by itself
        frames = unmixed
        if self.mixing_part:  # name of the part of the network that relates the frames of a clip
            mix = getattr(self.model, self.mixing_part)
            frames = mix(unmixed).last_hidden_state
        results = {"frames": frames, "pooled": frames.float().mean(dim=1)}
        if self.tokens == "patches":
            patches = tokens[:, self.n_prefix_tokens :]
            results["tokens"] = patches.reshape(n_clips, -1, tokens.shape[-1])
        if self.tokens == "frames":
            results["tokens"] = unmixed
        return results


class Clips(nn.Module):
    """A network of clips: its tokens, their means in time, and one vector.

    Parameters
    ----------
    model
        The network, of transformers.
    spec
        How networks of its type are read.
    frames_per_step
        Frames that a token spans in time.
    tokens
        ``all`` if tokens are returned too.

    Attributes
    ----------
    meanings
        Array -> what it is, in words.
    """

    def __init__(self, model: Any, spec: EncoderSpec, frames_per_step: int, tokens: str) -> None:
        """Hold the network, and say in words what each of its arrays is, for the provenance."""
        super().__init__()
        self.model = model
        self.read = spec.reader()
        self.n_prefix_tokens = spec.n_prefix_tokens
        self.frames_per_step = frames_per_step
        self.tokens = tokens
        self.meanings = {
            "tokens": spec.token_meanings.get(tokens, ""),
            "frames": "mean of the last hidden state over the tokens of one tubelet in time",
            "pooled": spec.vector_meaning,
        }

    def forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Encode clips `[B, F, 3, h, w]`: `frames` [B, S, D], one row a step in time, and `pooled` [B, D].

        With the option for all tokens, also `tokens` [B, T, D].
        """
        n_clips, n_frames = pixels.shape[:2]
        hidden, pooled = self.read(self.model, pixels)  # [B, T, D], [B, D]
        tokens = hidden.float()
        n_steps = n_frames // self.frames_per_step
        # Tokens of patches lie time first, so that those of a step stand together.
        patches = tokens[:, self.n_prefix_tokens :]
        by_step = patches.reshape(n_clips, n_steps, -1, tokens.shape[-1])  # [B, S, positions, D]
        if pooled is None:
            pooled = tokens.mean(dim=1)
        results = {"frames": by_step.mean(dim=2), "pooled": pooled}
        if self.tokens == "all":
            results["tokens"] = tokens
        return results
