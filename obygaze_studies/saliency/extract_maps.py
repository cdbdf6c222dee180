"""Compute saliency maps of still images from a manifest, pairs of image and text, and a network."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones import HUB, Compute
from obygaze_features.errors import BackboneError, ExtractError
from obygaze_features.manifest import Manifest, Problems, read_table, read_texts
from obygaze_features.video import read_frames, uniform
from obygaze_studies.saliency.class_activation import (
    MappedNetwork,
    Target,
    class_score,
    classifier_to_map,
    clip_to_map,
    enlarged,
    live_map,
    openclip_to_map,
    similarity,
)
from obygaze_studies.saliency.maps_file import SIDE, Maps, with_means


@dataclass(frozen=True, slots=True)
class Pair:
    """Image, target text, and the group in which the map is averaged."""

    image_id: str
    text: str
    group: str


def read_pairs(path: Path, images: Manifest) -> tuple[Pair, ...]:
    """Read unique pairs of image and text: a CSV with image_id, text and optionally group.

    Raises
    ------
    ManifestError
        If the manifest lacks the image, the text is empty or the pair is repeated; names the line.
    ExtractError
        If there is no pair.
    """
    problems = Problems(path)
    pairs: dict[tuple[str, str], Pair] = {}
    for row in read_table(path, needed=("image_id", "text")).rows:
        image, text = row.cells["image_id"], row.cells["text"]
        if image not in images.by_id:
            problems.add(row.line, f"the manifest has no image {image!r}", "image_id")
        if not text.strip():
            problems.add(row.line, "is empty", "text")
        if (image, text) in pairs:
            problems.add(row.line, f"{image!r} with {text!r} is there twice")
        pairs[image, text] = Pair(image, text, row.cells.get("group", ""))
    problems.refuse()
    if not pairs:
        raise ExtractError(f"{path}: a header, and no pair to map")
    return tuple(pairs.values())


def every_pair(path: Path, images: Manifest) -> tuple[Pair, ...]:
    """Pair every image with every text of a list (the format of `read_texts`); the text is also the group.

    Raises
    ------
    ManifestError
        If the file is not a list of texts; names the line.
    ExtractError
        If a text is repeated.
    """
    texts = [text for _, text in read_texts(path).rows]
    for index, text in enumerate(texts):
        if text in texts[:index]:
            raise ExtractError(f"{path}: the text {text!r} is there twice; each is mapped once")
    return tuple(Pair(clip.clip_id, text, text) for clip in images for text in texts)


def network_to_map(
    texts: Iterable[str],
    network: str | None = None,
    *,
    backbone: Literal["clip", "openclip"] = "clip",
    layer: str | None = None,
    weights: str | None = None,
    score: Literal["cosine", "dot"] = "cosine",
    device: str = "auto",
) -> tuple[MappedNetwork, Mapping[str, Target]]:
    """Load the network to map, and create a target for every text.

    Parameters
    ----------
    network
        `module:function` of an image classifier, whose texts are class indices from 0; None is a CLIP.
    backbone
        Which CLIP: one of transformers, or one of OpenCLIP, whose ResNets are mapped as in the paper.
    layer, weights
        Layer and weights of the network. A CLIP needs no layer; None loads the backbone's own weights.

    Raises
    ------
    BackboneError
        If the network, its layer or its weights cannot be loaded.
    ExtractError
        If a text is not a class index.
    """
    import_module("pytorch_grad_cam")  # may be missing: check before weights are read
    compute, distinct = Compute(device), dict.fromkeys(texts)
    if network is None:
        load = openclip_to_map if backbone == "openclip" else clip_to_map
        mapped, embed = load(weights or HUB[backbone], compute)
        return mapped, {text: similarity(embed(text), score) for text in distinct}
    for text in distinct:
        if not (text.isascii() and text.isdigit()):
            raise ExtractError(f"text {text!r} is not the number of a class, as --network wants")
    mapped = classifier_to_map(network, weights or "", layer or "", compute)
    return mapped, {text: class_score(int(text)) for text in distinct}


def map_pairs(
    images: Manifest,
    pairs: Sequence[Pair],
    mapped: MappedNetwork,
    targets: Mapping[str, Target],
    about: Mapping[str, object],
    *,
    on_map: Callable[[], object] = lambda: None,
) -> Maps:
    """Map every pair of image and text.

    Parameters
    ----------
    targets
        Text -> target of its map.
    about
        Record that is stored with the maps.
    on_map
        Called after each map.

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
        try:
            live = live_map(mapped, mapped.pixels(frame), targets[pair.text])
        except BackboneError as error:
            raise BackboneError(f"image {pair.image_id}, text {pair.text!r}: {error}") from error
        raw[row] = enlarged(live.cam, SIDE)
        records.append({**asdict(pair), "score": live.score})
        on_map()
    return with_means(about, records, raw)


def _frames(images: Manifest, pairs: Sequence[Pair]) -> Iterator[tuple[Pair, NDArray[np.uint8]]]:
    """Read the image of every pair; consecutive pairs of one image share one read."""
    last, frame = "", None
    for pair in pairs:
        if frame is None or pair.image_id != last:
            path = images.video_path(images.by_id[pair.image_id])
            if path is None:
                raise ExtractError(f"clip {pair.image_id}: the manifest names no image for it")
            frame, last = read_frames(path, uniform(1), strict=True).images[0], pair.image_id
        yield pair, frame
