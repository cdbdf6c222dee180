"""Write and read saliency maps in a Zarr group, for live Grad-CAM and the saliency audit."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from obygaze_features.errors import StoreError
from obygaze_features.io import refuse_existing, whole_folder

SIDE = 224
"""Height and width of a map in pixels, those of the square that most networks see."""
RAW, MEAN_RAW, MEAN_STRETCHED = "raw", "mean_raw", "mean_stretched"
ABOUT, PAIRS, GROUPS = "about", "pairs", "groups"
TEXTS_OF_A_PAIR = ("image_id", "text", "group")


@dataclass(frozen=True, eq=False)
class Maps:
    """Saliency maps of pairs of image and text, and their means by group.

    Attributes
    ----------
    about
        What made them: network or activations, space, score.
    pairs
        image_id, text and group of every pair; its `score`, the similarity whose gradient was taken; and the
        `peak` of its map.
    raw : float32 [P, 224, 224]
        As computed: comparable between images of one text and score. Never negative.
    groups
        Names, in order of first appearance.
    mean_raw, mean_stretched : float32 [G, 224, 224]
        Means of the raw maps, and of the maps each scaled to 0 .. 1 first, where every image counts alike.
    """

    about: Mapping[str, object]
    pairs: tuple[Mapping[str, Any], ...]
    raw: NDArray[np.float32]
    groups: tuple[str, ...]
    mean_raw: NDArray[np.float32]
    mean_stretched: NDArray[np.float32]


def stretched(picture: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale a map to 0 .. 1, for display; a map without any contrast becomes 0."""
    span = float(np.ptp(picture))
    return (picture - picture.min()) / span if span else np.zeros_like(picture)


def with_means(
    about: Mapping[str, object], pairs: Sequence[Mapping[str, Any]], raw: NDArray[np.float32]
) -> Maps:
    """Put maps together with their peaks, and their means by group."""
    groups = tuple(dict.fromkeys(pair["group"] for pair in pairs))
    shape = (len(groups), *raw.shape[1:])
    mean_raw, mean_stretched = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    for row, name in enumerate(groups):
        mine = [raw[index].astype(np.float64) for index, pair in enumerate(pairs) if pair["group"] == name]
        mean_raw[row] = np.mean(mine, axis=0)
        mean_stretched[row] = np.mean([stretched(picture) for picture in mine], axis=0)
    peaks = [{**pair, "peak": float(picture.max())} for pair, picture in zip(pairs, raw, strict=True)]
    return Maps(dict(about), tuple(peaks), raw, groups, mean_raw, mean_stretched)


def check_maps_free(path: Path, *, force: bool) -> None:
    """Refuse to replace maps unless forced, and always refuse anything else.

    Raises
    ------
    ObygazeError
        Naming the folder.
    """
    if not path.exists():
        return
    if _attributes(path) is None:
        raise StoreError(f"{path} holds something else than saliency maps: choose another --out")
    refuse_existing(path, force=force)


def write_maps(maps: Maps, path: Path) -> None:
    """Write maps to a new Zarr group (format 3), all of it or nothing; one that is there is replaced.

    Arrays: `raw` [pair, y, x], `mean_raw` and `mean_stretched` [group, y, x], float32. Attributes: `about`,
    and `pairs` and `groups` in the order of the rows.
    """
    with whole_folder(path) as partial:
        group = zarr.open_group(str(partial), mode="w", zarr_format=3)
        pairs = [dict(pair) for pair in maps.pairs]
        group.update_attributes({ABOUT: dict(maps.about), PAIRS: pairs, GROUPS: list(maps.groups)})
        for name, first, values in (
            (RAW, "pair", maps.raw),
            (MEAN_RAW, "group", maps.mean_raw),
            (MEAN_STRETCHED, "group", maps.mean_stretched),
        ):
            array = group.create_array(
                name,
                shape=values.shape,
                dtype="float32",
                chunks=(1, SIDE, SIDE),
                dimension_names=(first, "y", "x"),
            )
            array[...] = values


def read_maps(path: Path) -> Maps:
    """Read the maps that `write_maps` wrote; the means are taken anew.

    Raises
    ------
    StoreError
        There are no saliency maps, or they are not whole: of another shape, negative, not finite, or of
        another peak than is written down, as where a chunk is lost.
    """
    attributes = _attributes(path)
    if attributes is None:
        raise StoreError(f"{path}: no saliency maps, as 'obygaze gradcam' and 'obygaze audit saliency' make")
    pairs = attributes[PAIRS]
    array = zarr.open_group(str(path), mode="r").get(RAW)
    shape = (len(pairs), SIDE, SIDE)
    if not isinstance(array, zarr.Array) or array.shape != shape or array.dtype != np.float32:
        raise StoreError(f"{path}: array {RAW!r} should be float32 {list(shape)}, a map for each pair")
    raw: NDArray[np.float32] = np.asarray(array[...])
    for index, (pair, picture) in enumerate(zip(pairs, raw, strict=True)):
        if not (np.isfinite(picture).all() and (picture >= 0).all()):
            raise StoreError(f"{path}: map {index}, of {pair['image_id']}, has values below 0 or not finite")
        if float(picture.max()) != pair["peak"]:
            raise StoreError(f"{path}: map {index}, of {pair['image_id']}, is not the one that was written")
    return with_means(attributes[ABOUT], pairs, raw)


def _attributes(path: Path) -> dict[str, Any] | None:
    """Read the attributes of saliency maps; None of anything else."""
    try:
        attributes = json.loads((path / "zarr.json").read_text(encoding="utf-8"))["attributes"]
        pairs, about = attributes[PAIRS], attributes[ABOUT]
        whole = (
            isinstance(about, dict)
            and bool(pairs)
            and all(isinstance(pair[key], str) for pair in pairs for key in TEXTS_OF_A_PAIR)
            and all(isinstance(pair[key], float) for pair in pairs for key in ("score", "peak"))
            and attributes[GROUPS] == list(dict.fromkeys(pair["group"] for pair in pairs))
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return attributes if whole else None
