"""`openclip` and `openclip-text`: both halves of a CLIP of OpenCLIP (Ilharco et al. 2021).

transformers has no CLIP with a ResNet (Radford et al. 2021, section 2.4): this backbone has.
"""

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from torch import nn

from obygaze_features.backbones.backbone import Backbone, LoadedNetwork, TextBackbone, Tokens
from obygaze_features.backbones.checkpoint import check_size, frozen, load_exactly, untrained
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.encoders import Pictures, output_shapes
from obygaze_features.backbones.layered import WithLayers, find_layers, layer_group_fields
from obygaze_features.backbones.layers import Layers, LayerStack
from obygaze_features.backbones.network import network_backbone, text_backbone
from obygaze_features.backbones.presets import OPENAI, Preset, choose_preset
from obygaze_features.backbones.weights import (
    HUB,
    OPEN_CLIP,
    OPENCLIP,
    Weights,
    digest,
    find_weights,
    named_architecture,
    space_of,
)
from obygaze_features.errors import BackboneError

CITATION = (
    "Ilharco et al., OpenCLIP, 2021, doi:10.5281/zenodo.5143773; architectures and OpenAI's weights: "
    "Radford et al., Learning transferable visual models from natural language supervision, ICML 2021"
)
LIBRARIES = ("torch", "open_clip_torch")
FOREIGN_FIELDS = {"timm_model_name", "hf_model_name", "hf_tokenizer_name", "tokenizer_kwargs"}
"""Fields of the configuration of a half that ask for networks or tokenizers of other packages."""
USUAL_FIELDS = {
    "mean": list(OPENAI[0]),
    "std": list(OPENAI[1]),
    "resize_mode": "shortest",
    "interpolation": "bicubic",
}
"""Fields of a configuration of preprocessing that fits the preset `clip`; a field may also be absent."""


BLOCKS = LayerStack("transformer.resblocks", norm="ln_post")
"""Where a vision transformer of OpenCLIP has its layers, whose first token is the class token."""

STAGES = tuple(LayerStack(f"layer{number}", order="maps", unit="residual block") for number in (1, 2, 3, 4))
"""Where a ResNet of OpenCLIP has its layers, stage after stage; it has no final normalisation."""


def openclip(
    n_frames: int | None = None,
    *,
    weights: str = HUB["openclip"],
    preset: str | None = None,
    layers: Layers | str | None = None,
    compute: Compute | None = None,
) -> Backbone:
    """Build the image half of a CLIP of OpenCLIP.

    Parameters
    ----------
    n_frames
        Frames per clip, any number; None is 32.
    weights
        One of the nine models of Wolfe et al. by its name there (`CLIP RN50`), a repository of OpenCLIP's
        format, or a folder with `open_clip_config.json` and the weights.
    preset
        Preprocessing, `clip`; None checks that the configuration states nothing else.
    layers
        Layers that are stored too, each as a side group: blocks of a vision transformer, residual blocks of a
        ResNet.
    """
    n_frames = n_frames or 32
    source = find_openclip(weights)
    config = configuration(source)
    pictures = Pictures(load_openclip(source, config).visual, _read_vectors)
    width = int(config["embed_dim"])
    chosen_preset = _preset(source, config, preset)
    # A ResNet lists the numbers of blocks of its stages; a vision transformer has one number.
    is_resnet = isinstance(config["vision_cfg"].get("layers"), list)

    network: nn.Module = pictures
    shapes: dict[str, tuple[int, ...]] = {"frames": (n_frames, width), "pooled": (width,)}
    side_group_fields: dict[str, dict[str, Any]] = {}
    wanted_layers = Layers.of(layers)
    if wanted_layers is not None:
        stacks = STAGES if is_resnet else (BLOCKS,)
        stored_layers = find_layers(
            pictures.model, stacks, wanted_layers, f"backbone 'openclip', {source.name}"
        )
        n_class_tokens = 0 if is_resnet else 1
        network = WithLayers(
            pictures,
            stored_layers,
            with_frames=wanted_layers.frames,
            n_prefix_tokens=n_class_tokens,
            n_time_steps=n_frames,
        )
        shapes = output_shapes(source, network, n_frames, chosen_preset.geometry.size)
        side_group_fields = layer_group_fields(stored_layers, with_frames=wanted_layers.frames)

    return network_backbone(
        "openclip",
        network,
        n_frames=n_frames,
        shapes=shapes,
        meanings=pictures.meanings,
        weights=source,
        preset=chosen_preset,
        compute=compute or Compute(),
        head="attention pooling" if is_resnet else "visual projection",
        side_group_fields=side_group_fields,
        layer="image embedding",
        architecture={"type": "openclip", **config},
        citation=CITATION,
        libraries=LIBRARIES,
        space=space_of("openclip", source),
    )


def _read_vectors(visual: Any, pixels: Any) -> tuple[Any, Any]:
    """Encode pictures by the image half of an OpenCLIP network; return tokens and vectors, for `Pictures`.

    OpenCLIP does not return the tokens, and nothing here reads them: the pixels stand in their place.
    """
    return pixels, visual(pixels)


def openclip_network(weights: str | Path | Weights) -> LoadedNetwork:
    """Load the image half of an OpenCLIP network, with its preprocessing; its output is `[B, D]`.

    Parameters
    ----------
    weights
        As for `openclip`, or weights that were found before.
    """
    source = weights if isinstance(weights, Weights) else find_openclip(str(weights))
    config = configuration(source)
    return LoadedNetwork(load_openclip(source, config).visual, source, _preset(source, config))


def openclip_text(*, weights: str = HUB["openclip-text"], compute: Compute | None = None) -> TextBackbone:
    """Build the text half of an OpenCLIP network; its vectors share a space with those of `openclip`.

    Parameters
    ----------
    weights
        As for `openclip`.
    """
    source = find_openclip(weights)
    config = configuration(source)
    model = load_openclip(source, config)
    tokenizer = OpenClipTokenizer(source.name, config["text_cfg"])
    del model.visual  # not used for texts
    return text_backbone(
        "openclip-text",
        model,
        lambda clip_model, tokens: clip_model.encode_text(tokens),
        tokenizer=tokenizer,
        weights=source,
        space="openclip",
        compute=compute,
        head="text projection",
        meaning="text embedding, not normalised",
        architecture={"type": "openclip", **config},
        citation=CITATION,
        libraries=(*LIBRARIES, "ftfy", "regex"),
    )


class OpenClipTokenizer:
    """OpenCLIP's own byte-pair tokenizer, with the network's limit of tokens.

    Parameters
    ----------
    name
        The weights, for messages.
    config
        The configuration of the text half.

    Raises
    ------
    BackboneError
        If the network was made for another vocabulary.
    """

    def __init__(self, name: str, config: dict[str, Any]) -> None:
        """Read the vocabulary, and raise an error for a network that has another number of tokens."""
        self.limit = int(config.get("context_length", 77))
        self._tokenizer, path = _read_vocabulary()
        size = config.get("vocab_size", self._tokenizer.vocab_size)
        if size != self._tokenizer.vocab_size:
            raise BackboneError(
                f"{name}: the network has {size} tokens, and OpenCLIP's tokenizer "
                f"{self._tokenizer.vocab_size}: only networks of this tokenizer are read"
            )
        self._digests = {path.name: digest([path])}

    def __call__(self, texts: Sequence[str]) -> list[Tokens]:
        """Turn texts into tokens, cut at the limit and padded with 0 to it."""
        if not texts:
            return []
        ids_of_texts = self._tokenizer(list(texts), self.limit).tolist()
        tokens = []
        for ids, text in zip(ids_of_texts, texts, strict=True):
            # Number of tokens of the whole text, before it was cut; begin and end tokens count.
            n_tokens = len(self._tokenizer.encode(text)) + 2
            tokens.append(Tokens(tuple(ids), n_tokens, self.limit))
        return tokens

    def record(self) -> dict[str, Any]:
        """Return the digest of the tokenizer's vocabulary, and its settings, for the provenance."""
        return {"sha256": self._digests, "max_tokens": self.limit, "lower_case": True, "padded": True}


def find_openclip(source: str) -> Weights:
    """Find weights in OpenCLIP's format by the name of a known model, a repository or a folder.

    The known models, in `OPENCLIP`, have names such as `CLIP RN50`.

    Raises
    ------
    BackboneError
        If there is nothing of that name, or it cannot be fetched.
    """
    if source in OPENCLIP:
        return find_weights(OPENCLIP[source].repository, OPEN_CLIP)
    if "/" not in source and ":" not in source and not Path(source).expanduser().exists():
        raise BackboneError(
            f"weights '{source}': no folder, and no model of this name; there is {', '.join(OPENCLIP)}"
        )
    return find_weights(source, OPEN_CLIP)


def configuration(weights: Weights) -> dict[str, Any]:
    """Return the configuration of an OpenCLIP network, from the package itself or from a file.

    The package has those of the models in `OPENCLIP`; random weights have that of the default model. Else it
    is in the file in the weights' folder.

    Raises
    ------
    BackboneError
        If there is none, or the network uses parts of other packages.
    """
    import open_clip  # noqa: PLC0415 - an extra, and slow

    if weights.seed is not None:
        architecture: str | None = OPENCLIP[HUB["openclip"]].architecture
    else:
        architecture = named_architecture(weights.repository)
    if architecture is not None:
        named: dict[str, Any] = open_clip.get_model_config(architecture)
        return named
    config = weights.config(OPEN_CLIP.config).get("model_cfg")
    if not isinstance(config, dict):
        raise BackboneError(f"{weights.name}: {OPEN_CLIP.config} has no model_cfg")
    _refuse_foreign_parts(weights, config)
    return config


def _refuse_foreign_parts(weights: Weights, config: dict[str, Any]) -> None:
    """Raise an error if a CLIP's configuration asks for a network or tokenizer of another package.

    Parameters
    ----------
    weights
        The weights, for messages.
    config
        Name of a half of the CLIP, such as `vision_cfg` -> its fields; and further fields.
    """
    for half, fields in config.items():
        if not isinstance(fields, dict):
            continue
        for field in FOREIGN_FIELDS.intersection(fields):
            is_set = bool(fields[field])
            if is_set:
                raise BackboneError(
                    f"{weights.name}: its configuration asks for {half}.{field}; "
                    "only CLIPs made of OpenCLIP's own layers are read (try --backbone clip)"
                )


def load_openclip(weights: Weights, config: dict[str, Any]) -> Any:
    """Build a CLIP with OpenCLIP, and load its weights or random ones.

    Parameters
    ----------
    weights
        The weights.
    config
        The network's configuration, as `configuration` returns it.

    Raises
    ------
    BackboneError
        If the configuration cannot be built, or a tensor is missing, unexpected or of another shape.
    """
    import open_clip  # noqa: PLC0415 - an extra, and slow

    make = partial(open_clip.CLIP, **config)
    if weights.seed is not None:
        return untrained(make, weights.seed)
    check_size(weights, OPEN_CLIP.config, make)  # before memory is allocated for the network
    network = untrained(make, seed=0)  # the seed does not matter: every tensor is loaded
    load_exactly(network, weights)
    return frozen(network, weights.name)


def _preset(weights: Weights, config: dict[str, Any], name: str | None = None) -> Preset:
    """Return how pictures are prepared for a CLIP: by the preset of a name, or by `clip` without a name.

    Parameters
    ----------
    weights
        The weights, whose folder may have a configuration of the preprocessing.
    config
        The network's configuration.
    name
        Name of the preset; None for `clip`, if the preprocessing is configured in no other way.

    Raises
    ------
    BackboneError
        No name is given and the configuration asks for other preprocessing, or the network does not take
        square pictures.
    """
    size = config["vision_cfg"].get("image_size", 224)
    if not isinstance(size, int):
        raise BackboneError(f"image_size {size}: only networks of square pictures are read")
    has_configuration = weights.folder is not None and named_architecture(weights.repository) is None
    if name is None and has_configuration:
        preprocessing = weights.config(OPEN_CLIP.config).get("preprocess_cfg") or {}
        for field, usual in USUAL_FIELDS.items():  # as the preset `clip` prepares pictures
            stated = preprocessing.get(field, usual)
            if stated != usual:
                raise BackboneError(
                    f"{weights.name}: its preprocess_cfg has {field} {stated}, expected {usual}; "
                    "name a preset to take it all the same: --preset clip"
                )
    return choose_preset(name or "clip", ("clip",), size=size)


@cache
def _read_vocabulary() -> tuple[Any, Path]:
    """Read the vocabulary of OpenCLIP's tokenizer; return the tokenizer and the path of the vocabulary.

    It is read once in a process, since that takes a second.
    """
    from open_clip import tokenizer  # noqa: PLC0415 - an extra, and slow

    path = tokenizer.default_bpe()
    return tokenizer.SimpleTokenizer(path), Path(path)
