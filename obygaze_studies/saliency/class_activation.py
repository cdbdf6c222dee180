"""Load networks and compute their Grad-CAM maps (Selvaraju et al., 2017) with the package grad-cam."""

import importlib
import importlib.metadata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

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
from obygaze_studies.audit_common.inputs import read_rows, refuse_twins
from obygaze_studies.errors import AuditError, regarding
from obygaze_studies.saliency.maps_file import SIDE, Maps, check_maps_free, write_maps

SOURCE = "Grad-CAM (Selvaraju et al., 2017), live through grad-cam; bicubic, a = -0.75"

Target = Callable[[torch.Tensor], torch.Tensor]
"""From a network's output for one image, [D], to the number whose gradient is taken."""
Embed = Callable[[str], torch.Tensor]
"""From a text to its embedding, [D], not normalised."""

Found = tuple[nn.Module, str, nn.Module, Callable[[torch.Tensor], torch.Tensor] | None]
"""A network, the name of the layer to map, the layer, and what makes places of its output."""


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
        Description of what affects the maps.
    """

    network: nn.Module
    layer: nn.Module
    reshape: Callable[[torch.Tensor], torch.Tensor] | None
    preset: networks.Preset
    about: Mapping[str, object]

    def pixels(self, frame: NDArray[np.uint8]) -> torch.Tensor:
        """Prepare a picture, RGB uint8 [H, W, 3], for the network: [1, 3, h, w]."""
        affine = self.preset.affine
        weight = next(self.network.parameters())
        scale = weight.new_tensor(affine.scale)[:, None, None]
        shift = weight.new_tensor(affine.shift)[:, None, None]
        prepared = torch.from_numpy(self.preset.geometry(frame)).to(weight.device).permute(2, 0, 1)
        return (prepared * scale + shift)[None]


def clip_to_map(source: str, compute: networks.Compute) -> tuple[MappedNetwork, Embed]:
    """Load the image half of a CLIP (Radford et al. 2021), and its text half.

    The layer is the first normalisation in the last block of its vision transformer. It is the last point
    where patches affect the embedding, which depends only on the class token after that block.

    Raises
    ------
    BackboneError
        There is no such CLIP, or it lacks its tokenizer. `Embed` raises it for a text that is too long.
    """

    def find(model: Any, _: str) -> Found:
        places = _patches(model.config.image_size // model.config.patch_size)
        name = f"vision_model.encoder.layers.{len(model.vision_model.encoder.layers) - 1}.layer_norm1"
        return ImageHalf(model), name, model.get_submodule(name), places

    return _halves("clip", source, compute, find, "transformers")


def openclip_to_map(source: str, compute: networks.Compute) -> tuple[MappedNetwork, Embed]:
    """Load the image half of a CLIP of OpenCLIP, and its text half.

    Of a ResNet the layer is `layer4`, the last convolutions, from which CLIP's attention pooling makes the
    embedding, as in Wolfe et al. (FAccT 2023). Of a vision transformer it is that of `clip_to_map`.

    Raises
    ------
    BackboneError
        There is no such network, or its embedding is not made of its class token or by attention pooling.
        `Embed` raises it for a text that is too long.
    """

    def find(visual: Any, weights: str) -> Found:
        if hasattr(visual, "layer4"):  # a ResNet
            return visual, "visual.layer4", visual.layer4, None
        if getattr(visual, "pool_type", None) != "tok":
            raise BackboneError(f"{weights}: its embedding is not that of a class token, so it is not mapped")
        blocks = visual.transformer.resblocks
        name = f"visual.transformer.resblocks.{len(blocks) - 1}.ln_1"
        return visual, name, blocks[-1].ln_1, _patches(visual.grid_size[0])

    return _halves("openclip", source, compute, find, "open_clip_torch")


def _halves(
    backbone: str, source: str, compute: networks.Compute, find: Callable[[Any, str], Found], library: str
) -> tuple[MappedNetwork, Embed]:
    """Load both halves of a CLIP, and find the layer to map in the image half."""
    loaded = networks.load_network(backbone, source)
    device = compute.torch_device()
    texts = networks.load_text_backbone(f"{backbone}-text", weights=source, compute=compute)
    weights = loaded.weights.name
    network, name, layer, reshape = find(loaded.module.to(device), weights)

    def embed(text: str) -> torch.Tensor:
        (tokens,) = texts.tokenize([text])
        if tokens.is_cut:
            limit = f"has {tokens.n_tokens} tokens; {weights} takes {tokens.limit}"
            raise BackboneError(f"text {text!r} {limit}: shorten it")
        return torch.from_numpy(texts.encode(np.array([tokens.ids]))[0]).to(device)

    about = {
        "space": networks.space_of(backbone, loaded.weights),
        **loaded.weights.record(),
        "layer": name,
        "preset": loaded.preset.record(),
        "software": {
            package: importlib.metadata.version(package) for package in ("grad-cam", "torch", library)
        },
        "tokenizer": texts.provenance["tokenizer"],
    }
    return MappedNetwork(network, layer, reshape, loaded.preset, about), embed


def similarity(text: torch.Tensor, score: Literal["cosine", "dot"]) -> Target:
    """Compute the cosine or dot product of an image embedding and a text embedding [D]."""
    if score == "dot":
        return lambda image: image @ text
    return lambda image: (image @ text) / (image.norm() * text.norm())


def live_map(
    mapped: MappedNetwork, pixels: torch.Tensor, target: Target
) -> tuple[float, NDArray[np.float64]]:
    """Compute the Grad-CAM map of a scalar output of a network.

    Parameters
    ----------
    pixels
        As `MappedNetwork.pixels` gives them, [1, 3, h, w].

    Returns
    -------
    score, cam : float, float64 [h, w]
        The target value whose gradient was taken; and the sum of the channels weighted by their mean
        gradients, clipped at 0, at the layer's resolution.

    Raises
    ------
    BackboneError
        The target or its map is not finite, as for a zero embedding.
    ModuleNotFoundError
        Without the package grad-cam.
    """
    package = importlib.import_module("pytorch_grad_cam")  # slow, and an extra
    cam = package.GradCAM(mapped.network, [mapped.layer], mapped.reshape)
    hooks = cam.activations_and_grads
    try:
        with torch.enable_grad(), networks.matmul_precision(tf32=False):
            # The weights are frozen, so the input must require a gradient.
            score = target(hooks(pixels.detach().requires_grad_())[0])
            torch.autograd.backward([score])
        acts = hooks.activations[0].double().numpy()
        gradients = hooks.gradients[0].double().numpy()
        # Calling `cam` itself scales every map to 0 .. 1, which makes images incomparable.
        summed = cam.get_cam_image(pixels, mapped.layer, [target], acts, gradients)[0]
    finally:
        hooks.release()
    value = float(score.detach())
    if not (np.isfinite(value) and np.isfinite(summed).all()):
        raise BackboneError("the score or its gradient is not finite (an embedding of zeros?)")
    return value, np.maximum(summed, 0.0)


def enlarged(cam: NDArray[np.float64], side: int) -> NDArray[np.float32]:
    """Enlarge a map [h, w] to a square, bicubic with a = -0.75; clip negative values to 0."""
    picture = torch.from_numpy(cam)[None, None]
    big = nn.functional.interpolate(picture, size=(side, side), mode="bicubic", align_corners=False)
    square: NDArray[np.float32] = big[0, 0].clamp(min=0.0).float().numpy()
    return square


class ImageHalf(nn.Module):
    """The image half of a CLIP: pixels [B, 3, h, w] to embeddings [B, D], not normalised."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Embed pictures."""
        embeddings: torch.Tensor = self.model(pixel_values=pixels).image_embeds
        return embeddings


def _patches(side: int) -> Callable[[torch.Tensor], torch.Tensor]:
    """Make the function from the tokens [1, 1 + h w, C] of a square picture to [1, C, h, w]."""
    return lambda tokens: tokens[:, 1:].transpose(1, 2).reshape(len(tokens), -1, side, side)


# --- maps of pairs of image and text
# ---------------------------------------------------------------------------
PAIR = ("image_id", "text", "group")
Pair = Mapping[str, str]
"""image_id, text, and the group in which the map is averaged."""


def read_pairs(path: Path, images: Manifest) -> tuple[Pair, ...]:
    """Read unique pairs of image and text: a CSV with image_id, text and optionally group.

    Raises
    ------
    AuditError
        The manifest lacks the image, a text is empty, a pair is repeated, or there is none.
    """
    rows = read_rows(path, ["image_id", "text"], unique=["image_id", "text"])
    if unknown := [row["image_id"] for row in rows if row["image_id"] not in images.by_id]:
        raise AuditError(f"{path}: the manifest has no image {unknown[0]!r}")

    def pair_of(row: Pair) -> Pair:
        return {"group": ""} | {name: row[name] for name in PAIR if name in row}

    return tuple(map(pair_of, rows))


def every_pair(path: Path, images: Manifest) -> tuple[Pair, ...]:
    """Pair every image with every text of a list (the format of `read_texts`); the text is also the group.

    Raises
    ------
    ManifestError
        If the file is not a list of texts; names the line.
    AuditError
        If a text is repeated.
    """
    texts = [text for _, text in read_texts(path).rows]
    refuse_twins(map(repr, texts), f"{path}: each text is mapped once, and there is twice:")
    return tuple({"image_id": clip.clip_id, "text": text, "group": text} for clip in images for text in texts)


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
    backbone
        clip, of transformers, or openclip, whose ResNets are mapped as in the paper.
    weights
        None loads the backbone's own.

    Raises
    ------
    ExtractError
        The clips are not still images.
    BackboneError
        If the network or its weights cannot be loaded, or a text is too long.
    """
    check_maps_free(out, force=force)
    if not of_stills(images):
        first = images.clips[0].clip_id
        raise ExtractError(f"the clips, such as {first}, are no still images, and only those are mapped")
    image_pairs = read_pairs(pairs, images) if pairs else every_pair(prompts or Path(), images)
    importlib.import_module("pytorch_grad_cam")  # may be missing: check before weights are read
    load = openclip_to_map if backbone == "openclip" else clip_to_map
    mapped, embed = load(weights or networks.HUB[backbone], networks.Compute(device))
    texts = dict.fromkeys(pair["text"] for pair in image_pairs)
    targets = {text: similarity(embed(text), score) for text in texts}
    about = {**mapped.about, "score": score, "source": SOURCE}
    with progress_bar("mapping", "map") as progress:
        maps = map_pairs(images, image_pairs, mapped, targets, about, progress=progress)
    write_maps(maps, out)
    rows = []
    for group, pairs_of_group in pd.DataFrame(maps.pairs).groupby("group", sort=False):
        n_empty = (pairs_of_group["peak"] == 0).sum()
        mean_score = pairs_of_group["score"].mean()
        rows.append((group, len(pairs_of_group), n_empty, f"{mean_score:.4g}"))
    return Answer(
        {"maps": str(out), "about": dict(maps.about), "pairs": [dict(pair) for pair in maps.pairs]},
        text=table(rows, ("group", "n_maps", "n_empty", "mean_score"), right=(1, 2, 3)),
        remarks=[f"{len(maps.pairs)} maps kept in {out}"],
    )


def map_pairs(
    images: Manifest,
    pairs: Sequence[Pair],
    mapped: MappedNetwork,
    targets: Mapping[str, Target],
    about: Mapping[str, object],
    *,
    progress: Callable[[int, int], object] = lambda *_: None,
) -> Maps:
    """Map every pair of image and text.

    Parameters
    ----------
    targets
        Text -> target of its map.
    about
        Record that is stored with the maps.
    progress
        Called with how many maps are made, and of how many.

    Raises
    ------
    VideoError
        If an image cannot be read completely.
    BackboneError
        If the network cannot be mapped; names image and text.
    """
    raw = np.zeros((len(pairs), SIDE, SIDE), np.float32)
    records = []
    for row, (pair, frame) in enumerate(_frames(images, pairs)):
        with regarding(BackboneError, f"image {pair['image_id']}, text {pair['text']!r}"):
            score, cam = live_map(mapped, mapped.pixels(frame), targets[pair["text"]])
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
        frame = read_frames(path, uniform(1), strict=True).images[0]
        yield from ((pair, frame) for pair in pairs_of_image)
