"""Define the settings of a training, and check all inputs before the first video is decoded."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from transformers import CLIPConfig

import obygaze_features.backbones as networks
from obygaze_features.arguments import checked
from obygaze_studies.errors import TrainError
from obygaze_studies.lsmdc import lsmdc16
from obygaze_studies.lsmdc.execution import ARITHMETICS, Arithmetic
from obygaze_studies.lsmdc.frame_cache import FrameCache
from obygaze_studies.lsmdc.samples import refuse_too_few_samples

PUBLISHED_BATCHES: Mapping[int, int] = {32: 300, 16: 80}
"""Patch size of the CLIP -> batch of the published script for it; the paper does not say which was used."""

PUBLISHED_PROCESSES = 4
"""Number of processes, each with a GPU, of the published training."""


@dataclass(frozen=True, slots=True)
class LsmdcSettings:
    """Settings of a training.

    Parameters
    ----------
    clip
        The CLIP to start from: a repository, a folder in the hub's format, or safetensors in OpenAI's names.
    annotations, videos
        Folder of LSMDC16's three annotation files; folder of the clips.
    out
        Folder of the run.
    batch
        Pairs per step, over all processes; None: 300 for patches of 32 pixels, 80 for 16.
    lr, clip_lr_scale
        Peak learning rate of the tensors outside CLIP; that of CLIP's tensors is `lr * clip_lr_scale`.
    gather_share
        Factor of the towers' gradients: 1/4 as published, 1 for the true gradient.
    chunk
        Pairs whose activations are held at a time; None: a quarter of the batch, as on each of the four GPUs
        of the publication.
    cache
        Folder of decoded frames; None: `cache` in the run's folder.
    exclude_movies
        File of film titles to leave out of training and validation.
    """

    clip: str
    annotations: Path
    videos: Path
    out: Path
    batch: int | None = None
    epochs: int = 5
    lr: float = 1e-4
    clip_lr_scale: float = 1e-3
    gather_share: float = 1 / PUBLISHED_PROCESSES
    arithmetic: Arithmetic = "float32"
    chunk: int | None = None
    cache: Path | None = None
    exclude_movies: Path | None = None
    resume: bool = False
    workers: int | None = None
    device: str = "auto"

    def __post_init__(self) -> None:
        """Refuse an unknown arithmetic, or a factor of the gradients that is out of range."""
        if self.arithmetic not in ARITHMETICS:
            raise TrainError(f"arithmetic '{self.arithmetic}' is not one of {', '.join(ARITHMETICS)}")
        if not 0 < self.gather_share <= 1:
            raise TrainError(f"--gather-share {self.gather_share:g}: expected a number above 0 and at most 1")


@dataclass(frozen=True, slots=True)
class LsmdcPlan:
    """A training with its inputs found and checked.

    Parameters
    ----------
    network
        The network at step 0, with CLIP's tokenizer.
    size
        Its sizes and published format.
    captions
        Split -> sentences, excluded films left out.
    videos
        Clip id -> file, for the clips that have one.
    titles, excluded
        Films to leave out; split -> title -> its sentences that are left out.
    shared_movies
        Title of an ObyGaze12 film -> number of its sentences that remain in the training set.
    """

    settings: LsmdcSettings
    network: networks.LoadedNetwork
    size: networks.LsmdcFormat
    batch: int
    captions: Mapping[str, tuple[lsmdc16.Caption, ...]]
    videos: Mapping[str, Path]
    titles: tuple[str, ...]
    excluded: Mapping[str, Mapping[str, int]]
    shared_movies: Mapping[str, int]
    cache: FrameCache

    @property
    def chunk(self) -> int:
        """Number of pairs whose activations are held at a time.

        By default a quarter of the batch: what one of the published training's four GPUs held.
        """
        quarter_of_batch = math.ceil(self.batch / PUBLISHED_PROCESSES)
        return self.settings.chunk or quarter_of_batch

    def record(self) -> dict[str, Any]:
        """Return as plain JSON what determines the weights, except the data."""
        settings = self.settings
        return {
            "backbone": "xclip-lsmdc",
            "arithmetic": settings.arithmetic,
            "gather_share": settings.gather_share,
            "batch": self.batch,
            "epochs": settings.epochs,
            "lr": settings.lr,
            "clip_lr_scale": settings.clip_lr_scale,
            "clip": self.network.weights.record() | {"tokenizer_sha256": self.network.tokenizer_sha256},
            "architecture": self.size.record(),
            "frames": self.cache.recipe,
            "movies": {
                "excluded": list(self.titles),
                "excluded_sentences": dict(self.excluded),
                "shared_with_obygaze12": dict(self.shared_movies),
            },
            "software": {name: version(name) for name in ("torch", "transformers")},
        }


@checked
def make_plan(settings: LsmdcSettings) -> LsmdcPlan:
    """Find and check all inputs of a training, without opening a video.

    Raises
    ------
    TrainError, BackboneError
        In one line, naming the file, line or option at fault.
    """
    # The data: sentences, and the videos of their clips.
    captions = lsmdc16.read_annotations(settings.annotations)
    titles: tuple[str, ...] = ()
    excluded: Mapping[str, Mapping[str, int]] = {}
    if settings.exclude_movies is not None:
        titles = lsmdc16.read_titles(settings.exclude_movies)
        captions, excluded = lsmdc16.exclude(captions, titles)
        for split, captions_of_split in captions.items():
            if not captions_of_split:
                raise TrainError(f"{settings.exclude_movies}: excludes every {split} sentence")
    all_captions = chain.from_iterable(captions.values())
    videos = lsmdc16.find_videos(settings.videos, (caption.clip_id for caption in all_captions))

    # The network at step 0, made of a CLIP.
    weights = networks.find_weights(settings.clip)
    tensors = initial_tensors(weights.name, load_clip(weights))
    size = networks.LsmdcFormat.of(weights.name, tensors)
    batch = settings.batch or _published_batch(weights.name, size.patch)
    network = networks.load_network("xclip-lsmdc", weights, tensors=tensors)

    plan = LsmdcPlan(
        settings=settings,
        network=network,
        size=size,
        batch=batch,
        captions=captions,
        videos=videos,
        titles=titles,
        excluded=excluded,
        shared_movies=lsmdc16.count_movies(captions["training"], lsmdc16.OBYGAZE12),
        cache=FrameCache(settings.cache or settings.out / "cache", network.preset, size.max_frames),
    )
    n_training_sentences = sum(caption.clip_id in videos for caption in captions["training"])
    refuse_too_few_samples(n_training_sentences, batch)
    return plan


def _published_batch(name: str, patch: int) -> int:
    """Return the published number of pairs per step for a CLIP; refuse a patch size without one.

    Parameters
    ----------
    name
        Name of the CLIP, for the message.
    patch
        Width of its patches in pixels.
    """
    if patch in PUBLISHED_BATCHES:
        return PUBLISHED_BATCHES[patch]
    sizes = " and ".join(f"{size} ({pairs})" for size, pairs in PUBLISHED_BATCHES.items())
    raise TrainError(
        f"{name}: patches of {patch} pixels, and a batch was published for {sizes} alone; "
        "name one with --batch"
    )


# --- the network at step 0
# ---------------------------------------------------------------------------
OPENAI_EXTRAS = ("input_resolution", "context_length", "vocab_size")
"""Scalars in OpenAI's files that are not weights."""

CLIP_EPS = 1e-5
"""Epsilon of the layer norms in CLIP."""


def load_clip(weights: networks.Weights) -> dict[str, torch.Tensor]:
    """Read a CLIP in the hub's format, or in OpenAI's names as safetensors.

    Returns
    -------
    Tensors by OpenAI's names (`visual.conv1.weight`), in the data type of the file.

    Raises
    ------
    TrainError
        If it is an untrained network or an executable archive.
    BackboneError
        If it is another network, or a CLIP that this package's X-CLIP cannot hold.
    """
    if weights.seed is not None:
        raise TrainError(
            f"--clip {weights.name}: training starts from a CLIP; name a file, a folder or a repository"
        )
    is_in_hub_format = weights.folder is not None and (weights.folder / "config.json").is_file()
    if is_in_hub_format:
        return _load_hub_clip(weights)
    if weights.files[0].suffix != ".safetensors":
        raise TrainError(
            f"--clip {weights.name}: OpenAI's .pt files are programs (TorchScript) and are not run; "
            "name the same network on the hub (openai/clip-vit-base-patch32), "
            "or save its state_dict() with safetensors"
        )
    tensors = networks.load_state_dict(weights)
    return {name: value for name, value in tensors.items() if name not in OPENAI_EXTRAS}


def _load_hub_clip(weights: networks.Weights) -> dict[str, torch.Tensor]:
    """Read a CLIP in the hub's format, and rename its tensors to OpenAI's names.

    A tensor is renamed twice, as this package has rules for each half of the way: from the hub's name to that
    in this package's X-CLIP (its "port" of the original), and from there to that in the published X-CLIP,
    whose CLIP has OpenAI's names behind `clip.`. So `text_model.x` becomes `text.text_model.x`, then
    `clip.y`, and `y` is returned.

    Raises
    ------
    TrainError
        A setting is not that of OpenAI's CLIPs.
    BackboneError
        It is another network, or a CLIP that this package's X-CLIP cannot hold.
    """
    size = _hub_architecture(weights)
    tensors = {}
    for path in weights.files:
        tensors.update(networks.load_state_dict(replace(weights, files=(path,))))
    tensors_by_our_name = _rename_to_ours(tensors)

    # It must have just the tensors of this package's X-CLIP that come from a CLIP.
    all_our_names = size.port()
    expected = {name for name in all_our_names if name.startswith(("vision.", "text.", "logit_scale"))}
    networks.check_keys(
        weights.name,
        missing=sorted(expected - tensors_by_our_name.keys()),
        unexpected=sorted(tensors_by_our_name.keys() - expected),
    )
    tensors_by_original_name = size.from_port(tensors_by_our_name)
    return {name.removeprefix("clip."): value for name, value in tensors_by_original_name.items()}


def _rename_to_ours(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Rename a CLIP's tensors from the hub's names to those of this package's X-CLIP.

    Only prefixes differ (`towers` in lsmdc16.toml). Tensors with another prefix are left out.
    """
    renamed = {}
    for name, value in tensors.items():
        if name.endswith("position_ids"):  # a constant, not a weight
            continue
        for their_prefix, our_prefix in lsmdc16.PUBLISHED["towers"].items():
            if name.startswith(their_prefix):
                renamed[our_prefix + name.removeprefix(their_prefix)] = value
    return renamed


def initial_tensors(
    name: str,
    clip: Mapping[str, torch.Tensor],
    *,
    temporal_layers: int = 4,
    max_frames: int = 12,
    max_words: int = 32,
) -> dict[str, torch.Tensor]:
    """Build the tensors of the whole network at step 0 from a CLIP.

    As in the original, the temporal transformer begins as a copy of the first blocks of the text tower, its
    positions as those of the text, and the matrices of the similarities as identities.

    Parameters
    ----------
    name
        Name of the CLIP in messages.
    clip
        Tensors by OpenAI's names, without the prefix `clip.`.
    temporal_layers
        Number of blocks of the temporal transformer.
    max_frames, max_words
        Numbers of frames and of tokens that the network takes; they size the matrices.

    Returns
    -------
    Every tensor of the original format, in float32.

    Raises
    ------
    BackboneError
        If the CLIP is not complete or not a ViT.
    TrainError
        If its text tower cannot become the temporal transformer.
    """
    # The names of the published checkpoints. Some tensors of the CLIP are needed here by name.
    tensors = {f"clip.{key}": value.float() for key, value in clip.items()}
    missing = [key for key in lsmdc16.PUBLISHED["needed"] if key not in tensors]
    networks.check_keys(name, missing=missing, unexpected=[])

    positions = tensors["clip.positional_embedding"]  # [positions, text width]
    n_positions, text_width = positions.shape
    embedding_width = tensors["clip.visual.proj"].shape[1]
    if text_width != embedding_width:
        raise TrainError(
            f"{name}: its text tower is {text_width} wide and its embedding {embedding_width}; "
            "the temporal transformer, which starts as text blocks, needs both to be equal"
        )
    n_needed = max(max_words, max_frames)
    if n_positions < n_needed:
        raise TrainError(f"{name}: its text tower has {n_positions} positions, expected {n_needed} or more")

    # Add the tensors that a CLIP does not have.
    tensors["frame_position_embeddings.weight"] = positions.clone()
    tensors |= _temporal_transformer(tensors, temporal_layers)
    # The names and sizes of the matrices follow from these three sizes alone.
    format_of_matrices = networks.LsmdcFormat(
        embed=embedding_width, max_frames=max_frames, max_words=max_words
    )
    for matrix_name, length in format_of_matrices.matrices().items():
        tensors[matrix_name] = torch.eye(length)

    # Check the whole, with all sizes as they are read from the tensors.
    size = networks.LsmdcFormat.of(name, tensors)
    if size.temporal_layers != temporal_layers:
        raise TrainError(
            f"{name}: its text tower has {size.temporal_layers} blocks, expected {temporal_layers} or more"
        )
    size.to_port(name, tensors)  # called for its error, on a tensor that is missing or of another shape
    return tensors


def _temporal_transformer(tensors: Mapping[str, torch.Tensor], n_layers: int) -> dict[str, torch.Tensor]:
    """Copy the first layers of CLIP's text tower as the temporal transformer.

    A tensor `clip.transformer.resblocks.0.ln_1.weight` is named `transformerClip.resblocks.0.ln_1.weight`.
    """
    text_prefix = "clip.transformer.resblocks."
    copied = {}
    for key, value in tensors.items():
        if key.startswith(text_prefix):
            layer_and_part = key.removeprefix(text_prefix)  # such as "0.ln_1.weight"
            layer = layer_and_part.split(".", maxsplit=1)[0]
            if layer.isdecimal() and int(layer) < n_layers:
                copied[f"transformerClip.resblocks.{layer_and_part}"] = value.clone()
    return copied


def _hub_architecture(weights: networks.Weights) -> networks.LsmdcFormat:
    """Read the sizes of a CLIP in the hub's format from its configuration.

    Raises
    ------
    TrainError
        A setting is not that of OpenAI's CLIPs, which the original format takes for granted.
    """
    config: Any = CLIPConfig.from_dict(weights.config())
    vision = config.vision_config
    text = config.text_config
    for tower in (vision, text):
        settings_of_openai = {
            "hidden_act": "quick_gelu",
            "num_attention_heads": tower.hidden_size // networks.LsmdcFormat.HEAD_WIDTH,
            "intermediate_size": 4 * tower.hidden_size,
            "layer_norm_eps": CLIP_EPS,
        }
        for key, expected in settings_of_openai.items():
            value = getattr(tower, key)
            if value != expected:
                name_of_tower = "text" if tower is text else "vision"
                raise TrainError(
                    f"{weights.name}: {name_of_tower} tower has {key} {value}, expected {expected}, as in "
                    "every CLIP of OpenAI's"
                )
    return networks.LsmdcFormat(
        embed=config.projection_dim,
        vision_width=vision.hidden_size,
        vision_layers=vision.num_hidden_layers,
        patch=vision.patch_size,
        image=vision.image_size,
        text_width=text.hidden_size,
        text_layers=text.num_hidden_layers,
        context=text.max_position_embeddings,
        vocabulary=text.vocab_size,
    )
