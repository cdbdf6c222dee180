"""Load networks and compute their Grad-CAM maps (Selvaraju et al., 2017) with the package grad-cam."""

import importlib
import importlib.metadata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import nn

import obygaze_features.backbones as networks
from obygaze_features.errors import BackboneError, ExtractError
from obygaze_features.extraction import of_stills
from obygaze_features.manifest import Manifest, read_texts
from obygaze_features.options import Answer
from obygaze_features.screen import progress_bar, table
from obygaze_features.video import read_frames, uniform
from obygaze_studies.audit_common.inputs import read_rows, refuse_duplicates
from obygaze_studies.errors import AuditError, regarding
from obygaze_studies.saliency.maps_file import SIDE, Maps, check_maps_free, write_maps

SOURCE = "Grad-CAM (Selvaraju et al., 2017), live through grad-cam; bicubic, a = -0.75"

Target = Callable[[torch.Tensor], torch.Tensor]
"""Function from a network's output for one image, [D], to the number whose gradient is taken."""

Embed = Callable[[str], torch.Tensor]
"""Function from a text to its embedding, [D], not normalised."""

Reshape = Callable[[torch.Tensor], torch.Tensor]
"""Function from the output of a layer to [1, C, h, w]: C channels at h x w places of the image."""


class MappedLayer(NamedTuple):
    """The image half of a network, and its layer that Grad-CAM maps.

    Attributes
    ----------
    network
        Image half: pixels [1, 3, h, w] to an embedding [1, D].
    name
        Name of the layer, for the record.
    layer
        The layer.
    reshape
        Brings the layer's output to [1, C, h, w]; None if it has that shape already.
    """

    network: nn.Module
    name: str
    layer: nn.Module
    reshape: Reshape | None


@dataclass(frozen=True, eq=False)
class MappedNetwork:
    """A network prepared for Grad-CAM.

    Attributes
    ----------
    network
        Maps float [1, 3, h, w], normalised, to [1, D].
    layer
        The module of the network whose output is weighted.
    reshape
        Function from that output to [1, C, h, w]; None if it has that shape already.
    preset
        Preprocessing of a picture.
    about
        Record of everything that affects the maps.
    """

    network: nn.Module
    layer: nn.Module
    reshape: Reshape | None
    preset: networks.Preset
    about: Mapping[str, object]

    def pixels(self, frame: NDArray[np.uint8]) -> torch.Tensor:
        """Prepare a picture, RGB uint8 [H, W, 3], for the network: [1, 3, h, w]."""
        affine = self.preset.affine
        any_weight = next(self.network.parameters())  # gives the device and type of the tensors
        scale = any_weight.new_tensor(affine.scale)[:, None, None]
        shift = any_weight.new_tensor(affine.shift)[:, None, None]
        resized = torch.from_numpy(self.preset.geometry(frame)).to(any_weight.device)  # [h, w, 3]
        prepared = resized.permute(2, 0, 1) * scale + shift
        return prepared[None]


def clip_to_map(source: str, compute: networks.Compute) -> tuple[MappedNetwork, Embed]:
    """Load a CLIP (Radford et al. 2021): its image half for Grad-CAM, and its text half to embed texts.

    The layer is the first normalisation in the last block of its vision transformer. It is the last point
    where patches affect the embedding, which depends only on the class token after that block.

    Raises
    ------
    BackboneError
        There is no such CLIP, or it lacks its tokenizer. `Embed` raises it for a text that is too long.
    """

    def find_layer(model: Any, _weights: str) -> MappedLayer:
        """Find the first normalisation of the last block of a CLIP."""
        last_block = len(model.vision_model.encoder.layers) - 1
        name = f"vision_model.encoder.layers.{last_block}.layer_norm1"
        patches_a_side = model.config.image_size // model.config.patch_size
        return MappedLayer(
            network=ImageHalf(model),
            name=name,
            layer=model.get_submodule(name),
            reshape=_tokens_to_picture(patches_a_side),
        )

    return _load_both_halves("clip", source, compute, find_layer, "transformers")


def openclip_to_map(source: str, compute: networks.Compute) -> tuple[MappedNetwork, Embed]:
    """Load a CLIP of OpenCLIP: its image half for Grad-CAM, and its text half to embed texts.

    In a ResNet the mapped layer is `layer4`, the last convolutions, from which CLIP's attention pooling makes
    the embedding, as in Wolfe et al. (FAccT 2023). In a vision transformer it is the layer of `clip_to_map`.

    Raises
    ------
    BackboneError
        There is no such network, or its embedding is made neither from its class token nor by attention
        pooling. `Embed` raises it for a text that is too long.
    """

    def find_layer(visual: Any, weights: str) -> MappedLayer:
        """Find the layer to map: a ResNet's `layer4`, or the first normalisation of the last block."""
        if hasattr(visual, "layer4"):  # a ResNet
            return MappedLayer(network=visual, name="visual.layer4", layer=visual.layer4, reshape=None)
        if getattr(visual, "pool_type", None) != "tok":
            raise BackboneError(f"{weights}: its embedding is not that of a class token, so it is not mapped")
        blocks = visual.transformer.resblocks
        return MappedLayer(
            network=visual,
            name=f"visual.transformer.resblocks.{len(blocks) - 1}.ln_1",
            layer=blocks[-1].ln_1,
            reshape=_tokens_to_picture(visual.grid_size[0]),
        )

    return _load_both_halves("openclip", source, compute, find_layer, "open_clip_torch")


def _load_both_halves(
    backbone: str,
    source: str,
    compute: networks.Compute,
    find_layer: Callable[[Any, str], MappedLayer],
    library: str,
) -> tuple[MappedNetwork, Embed]:
    """Load a CLIP: its image half to compute maps of, and a function that embeds texts.

    Parameters
    ----------
    backbone
        Name of the backbone; its text half is called by this name with "-text" after it.
    source
        Where the weights are.
    compute
        Device to compute on.
    find_layer
        Returns the layer to map, given the loaded network and the name of its weights, for messages.
    library
        Package of the network, whose version is recorded.
    """
    loaded = networks.load_network(backbone, source)
    device = compute.torch_device()
    texts = networks.load_text_backbone(f"{backbone}-text", weights=source, compute=compute)
    weights = loaded.weights.name
    mapped = find_layer(loaded.module.to(device), weights)

    def embed(text: str) -> torch.Tensor:
        """Embed a text, [D]; raise a BackboneError if it is too long."""
        (tokens,) = texts.tokenize([text])
        if tokens.is_cut:
            limit = f"has {tokens.n_tokens} tokens; {weights} takes {tokens.limit}"
            raise BackboneError(f"text {text!r} {limit}: shorten it")
        return torch.from_numpy(texts.encode(np.array([tokens.ids]))[0]).to(device)

    packages = ("grad-cam", "torch", library)
    mapped_network = MappedNetwork(
        network=mapped.network,
        layer=mapped.layer,
        reshape=mapped.reshape,
        preset=loaded.preset,
        about={
            "space": networks.space_of(backbone, loaded.weights),
            **loaded.weights.record(),
            "layer": mapped.name,
            "preset": loaded.preset.record(),
            "software": {package: importlib.metadata.version(package) for package in packages},
            "tokenizer": texts.provenance["tokenizer"],
        },
    )
    return mapped_network, embed


def similarity(text: torch.Tensor, score: Literal["cosine", "dot"]) -> Target:
    """Return a function of an image embedding [D]: its cosine or dot product with a text embedding [D].

    It is the target that Grad-CAM differentiates.
    """
    if score == "dot":
        return lambda image: image @ text
    return lambda image: (image @ text) / (image.norm() * text.norm())


def grad_cam_map(
    mapped: MappedNetwork, pixels: torch.Tensor, target: Target
) -> tuple[float, NDArray[np.float64]]:
    """Compute the Grad-CAM map of a scalar output of a network.

    Parameters
    ----------
    mapped
        The network, with the layer whose output is weighted.
    pixels
        As `MappedNetwork.pixels` gives them, [1, 3, h, w].
    target
        Computes the scalar from the network's output.

    Returns
    -------
    score, cam : float, float64 [h, w]
        The value of the target; and the map at the layer's resolution: the sum of the channels, each weighted
        by its mean gradient, with negative values set to 0.

    Raises
    ------
    BackboneError
        The target or its map is not finite, as for a zero embedding.
    ModuleNotFoundError
        The package grad-cam is not installed.
    """
    # Imported here because it is slow to import, and installed only with an extra.
    package = importlib.import_module("pytorch_grad_cam")
    grad_cam = package.GradCAM(mapped.network, [mapped.layer], mapped.reshape)
    # Runs the network, and records what comes out of the mapped layer, and its gradient.
    recorder = grad_cam.activations_and_grads
    try:
        with torch.enable_grad(), networks.matmul_precision(tf32=False):
            # The weights are frozen, so the input must require a gradient.
            embedding = recorder(pixels.detach().requires_grad_())[0]
            score = target(embedding)
            torch.autograd.backward([score])
        activations = recorder.activations[0].double().numpy()  # [1, C, h, w]
        gradients = recorder.gradients[0].double().numpy()  # [1, C, h, w]
        # Not `grad_cam(...)`: it would scale every map to 0 .. 1, so that images could not be compared.
        maps = grad_cam.get_cam_image(pixels, mapped.layer, [target], activations, gradients)
        weighted_sum = maps[0]
    finally:
        recorder.release()

    value = float(score.detach())
    if not (np.isfinite(value) and np.isfinite(weighted_sum).all()):
        raise BackboneError("the score or its gradient is not finite (an embedding of zeros?)")
    return value, np.maximum(weighted_sum, 0.0)


def enlarged(cam: NDArray[np.float64], side: int) -> NDArray[np.float32]:
    """Enlarge a map [h, w] to a square of `side` pixels by bicubic interpolation (a = -0.75).

    Interpolation overshoots next to steep edges: negative values are set to 0.
    """
    picture = torch.from_numpy(cam)[None, None]
    larger = nn.functional.interpolate(picture, size=(side, side), mode="bicubic", align_corners=False)
    square: NDArray[np.float32] = larger[0, 0].clamp(min=0.0).float().numpy()
    return square


class ImageHalf(nn.Module):
    """The image half of a CLIP: pixels [B, 3, h, w] to embeddings [B, D], not normalised."""

    def __init__(self, model: Any) -> None:
        """Keep the CLIP of transformers."""
        super().__init__()
        self.model = model

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Embed the pixels of pictures [B, 3, h, w] as vectors [B, D]."""
        embeddings: torch.Tensor = self.model(pixel_values=pixels).image_embeds
        return embeddings


def _tokens_to_picture(side: int) -> Reshape:
    """Return the function that arranges a vision transformer's tokens as an image.

    The tokens [1, 1 + side * side, C] become [1, C, side, side]; the first one, the class token, has no place
    in the image and is left out.
    """

    def arrange(tokens: torch.Tensor) -> torch.Tensor:
        """Leave out the class token, and put the others into rows of `side`."""
        tokens_of_patches = tokens[:, 1:]  # [1, side * side, C]
        channels_first = tokens_of_patches.transpose(1, 2)  # [1, C, side * side]
        return channels_first.reshape(len(tokens), -1, side, side)

    return arrange


# --- maps of pairs of image and text
# ---------------------------------------------------------------------------
Pair = Mapping[str, str]
"""An image and a text to map: image_id, text, and the group in which the map is averaged."""


def read_pairs(path: Path, images: Manifest) -> tuple[Pair, ...]:
    """Read pairs of image and text from a CSV file with image_id, text and optionally group.

    Raises
    ------
    AuditError
        An image is not in the manifest, a text is empty, a pair is repeated, or there is no pair.
    """
    pairs = []
    for row in read_rows(path, ["image_id", "text"], unique=["image_id", "text"]):
        if row["image_id"] not in images.by_id:
            raise AuditError(f"{path}: the manifest has no image {row['image_id']!r}")
        pairs.append({"group": row.get("group", ""), "image_id": row["image_id"], "text": row["text"]})
    return tuple(pairs)


def every_pair(path: Path, images: Manifest) -> tuple[Pair, ...]:
    """Pair every image with every text of a list (the format of `read_texts`); the text is also the group.

    Raises
    ------
    ManifestError
        The file is not a list of texts; names the line.
    AuditError
        A text is repeated.
    """
    texts = [text for _, text in read_texts(path).rows]
    refuse_duplicates(map(repr, texts), f"{path}: each text is mapped once, and there is twice:")
    pairs = []
    for clip, text in product(images, texts):
        pairs.append({"image_id": clip.clip_id, "text": text, "group": text})
    return tuple(pairs)


def gradcam(
    images: Manifest,
    pairs: Path | None,
    prompts: Path | None,
    out: Path,
    *,
    backbone: str = "clip",
    weights: str | None = None,
    score: Literal["cosine", "dot"] = "cosine",
    device: str = "auto",
    force: bool = False,
) -> Answer:
    """Map still images for the texts of pairs, or for all texts of a list, and write the maps.

    Parameters
    ----------
    images
        Manifest of the still images.
    pairs
        CSV file of pairs of image and text, as `read_pairs` takes it.
    prompts
        Without `pairs`, a list of texts with which every image is paired.
    out
        Zarr store to write.
    backbone
        "clip" for networks of transformers, or "openclip", which has the ResNets of the paper.
    weights
        Weights to load; None for those of the backbone.
    score
        Quantity whose gradient is taken.
    device
        Device to compute on.
    force
        Whether maps that are in `out` are replaced.

    Raises
    ------
    ExtractError
        The clips are not still images.
    BackboneError
        The network or its weights cannot be loaded, or a text is too long.
    """
    check_maps_free(out, force=force)
    if not of_stills(images):
        first = images.clips[0].clip_id
        raise ExtractError(f"the clips, such as {first}, are no still images, and only those are mapped")
    # One of both is given; Path() only satisfies the type.
    image_pairs = read_pairs(pairs, images) if pairs else every_pair(prompts or Path(), images)

    importlib.import_module("pytorch_grad_cam")  # fails early if it is missing, before weights are read
    load = openclip_to_map if backbone == "openclip" else clip_to_map
    mapped, embed = load(weights or networks.HUB[backbone], networks.Compute(device))
    different_texts = dict.fromkeys(pair["text"] for pair in image_pairs)
    targets = {text: similarity(embed(text), score) for text in different_texts}

    about = {**mapped.about, "score": score, "source": SOURCE}
    with progress_bar("mapping", "map") as progress:
        maps = map_pairs(images, image_pairs, mapped, targets, about, progress=progress)
    write_maps(maps, out)
    return Answer(
        {"maps": str(out), "about": dict(maps.about), "pairs": [dict(pair) for pair in maps.pairs]},
        text=_group_table(maps),
        remarks=[f"{len(maps.pairs)} maps kept in {out}"],
    )


def _group_table(maps: Maps) -> str:
    """Write a table with a row for each group: its number of maps, of empty maps, and its mean score."""
    rows = []
    for group, pairs_of_group in pd.DataFrame(maps.pairs).groupby("group", sort=False):
        n_empty = (pairs_of_group["peak"] == 0).sum()  # an empty map is 0 everywhere
        mean_score = pairs_of_group["score"].mean()
        rows.append((group, len(pairs_of_group), n_empty, f"{mean_score:.4g}"))
    return table(rows, ("group", "n_maps", "n_empty", "mean_score"), right=(1, 2, 3))


def map_pairs(
    images: Manifest,
    pairs: Sequence[Pair],
    mapped: MappedNetwork,
    targets: Mapping[str, Target],
    about: Mapping[str, object],
    *,
    progress: Callable[[int, int], object] = lambda *_: None,
) -> Maps:
    """Compute a Grad-CAM map for every pair of image and text.

    Parameters
    ----------
    images
        Manifest of the images.
    pairs
        The pairs; those of one image are best beside each other, so that it is read once.
    mapped
        The network.
    targets
        Text -> target of its map.
    about
        Record that is stored with the maps.
    progress
        Called with the number of maps that are made and the number of all maps.

    Raises
    ------
    VideoError
        An image cannot be read completely.
    BackboneError
        The network cannot be mapped; names image and text.
    """
    raw = np.zeros((len(pairs), SIDE, SIDE), np.float32)
    records = []
    for row, (pair, frame) in enumerate(_frames(images, pairs)):
        with regarding(BackboneError, f"image {pair['image_id']}, text {pair['text']!r}"):
            score, cam = grad_cam_map(mapped, mapped.pixels(frame), targets[pair["text"]])
        raw[row] = enlarged(cam, SIDE)
        records.append({**pair, "score": score, "peak": float(raw[row].max())})
        progress(row + 1, len(pairs))
    return Maps(dict(about), tuple(records), raw)


def _frames(images: Manifest, pairs: Sequence[Pair]) -> Iterator[tuple[Pair, NDArray[np.uint8]]]:
    """Read the image of every pair; consecutive pairs of one image share one read."""
    for image, pairs_of_image in groupby(pairs, key=itemgetter("image_id")):
        path = images.video_path(images.by_id[image])
        if path is None:
            raise ExtractError(f"clip {image}: the manifest names no image for it")
        still = read_frames(path, uniform(1), strict=True)  # read as a video of one frame
        frame = still.images[0]
        for pair in pairs_of_image:
            yield pair, frame
