"""Write and read saliency maps in a Zarr group, for live Grad-CAM and the saliency audit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict

import msgspec
import numpy as np
import zarr
from msgspec import Meta
from numpy.typing import NDArray

from obygaze_features.door import read_bytes
from obygaze_features.errors import ObygazeError, StoreError
from obygaze_features.io import refuse_existing, whole_folder
from obygaze_studies.audit_common.findings import Finding, Wording, audited
from obygaze_studies.audit_common.inputs import read_rows
from obygaze_studies.errors import AuditError

SIDE = 224
"""Height and width of a map in pixels, those of the square that most networks see."""

MAP_BYTES = SIDE * SIDE * 4
PLAIN = {
    "data_type": "float32",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, SIDE, SIDE]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
}
"""An array that is not compressed: a file is one map, and takes no more memory than it is long."""


class _Pair(TypedDict):
    image_id: str
    text: str
    group: str
    score: float
    peak: float


class _Attributes(TypedDict):
    about: dict[str, Any]
    pairs: Annotated[tuple[_Pair, ...], Meta(min_length=1)]


class _Group(TypedDict):
    attributes: _Attributes


@dataclass(frozen=True, eq=False)
class Maps:
    """Saliency maps of pairs of image and text.

    Attributes
    ----------
    about
        What made them: network or activations, space, score.
    pairs
        image_id, text and group of every pair; its `score`, the similarity whose gradient was taken; and the
        `peak` of its map.
    raw : float32 [P, 224, 224]
        As computed: comparable between images of one text and score. Never negative.
    """

    about: Mapping[str, object]
    pairs: tuple[Mapping[str, Any], ...]
    raw: NDArray[np.float32]

    def by_group(self) -> dict[str, list[NDArray[np.float64]]]:
        """Return the maps of each group, in order of first appearance."""
        shares_of: dict[str, list[NDArray[np.float64]]] = {}
        for pair, picture in zip(self.pairs, self.raw, strict=True):
            shares_of.setdefault(pair["group"], []).append(picture.astype(np.float64))
        return shares_of


def mean_stretched(pictures: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Average maps, each scaled to 0 .. 1 first, so that every image counts alike; 0 without contrast."""
    scaled = [(picture - picture.min()) / (float(np.ptp(picture)) or 1.0) for picture in pictures]
    mean: NDArray[np.float64] = np.mean(scaled, axis=0)
    return mean


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

    Its array is `raw` [pair, y, x], float32, a file a map, not compressed; its attributes are `about` and,
    row by row, `pairs`.
    """
    with whole_folder(path) as partial:
        group = zarr.open_group(str(partial), mode="w", zarr_format=3)
        group.update_attributes({"about": dict(maps.about), "pairs": [dict(pair) for pair in maps.pairs]})
        group.create_array(
            "raw",
            data=maps.raw.astype("<f4"),
            chunks=(1, SIDE, SIDE),
            compressors=None,
            dimension_names=("pair", "y", "x"),
            config={"write_empty_chunks": True},
        )


def read_maps(path: Path) -> Maps:
    """Read the maps that `write_maps` wrote.

    Raises
    ------
    StoreError
        There are no saliency maps, or they are not whole: of another shape, negative, not finite, or of
        another peak than is written down, as where a chunk is lost.
    """
    attributes = _attributes(path)
    if attributes is None:
        raise StoreError(f"{path}: no saliency maps, as 'obygaze gradcam' and 'obygaze audit saliency' make")
    pairs = attributes["pairs"]
    if not _is_plain(path, len(pairs)):
        raise StoreError(
            f"{path}: array 'raw' should be float32 {[len(pairs), SIDE, SIDE]}, a map for each pair, not "
            "compressed; make the maps anew with 'obygaze gradcam'"
        )
    raw = np.stack([_read_map(path, index, pair["image_id"]) for index, pair in enumerate(pairs)])
    for index, (pair, picture) in enumerate(zip(pairs, raw, strict=True)):
        if not (np.isfinite(picture).all() and (picture >= 0).all()):
            raise StoreError(f"{path}: map {index}, of {pair['image_id']}, has values below 0 or not finite")
        if float(picture.max()) != pair["peak"]:
            raise StoreError(f"{path}: map {index}, of {pair['image_id']}, is not the one that was written")
    return Maps(attributes["about"], tuple(dict(pair) for pair in pairs), raw)


def _document(path: Path, name: str, kind: Any) -> Any:
    """Read a JSON file of a group as a type of msgspec's; None of anything else."""
    try:
        return msgspec.json.decode(read_bytes(path / name, within=path), type=kind)
    except (OSError, ObygazeError, msgspec.MsgspecError, RecursionError):
        return None


def _attributes(path: Path) -> _Attributes | None:
    """Read the attributes of saliency maps; None of anything else."""
    group: _Group | None = _document(path, "zarr.json", _Group)
    return group and group["attributes"]


def _is_plain(path: Path, n_maps: int) -> bool:
    """Return whether the array is of maps as they are written here."""
    array = _document(path, "raw/zarr.json", dict[str, Any]) or {}
    expected = {"shape": [n_maps, SIDE, SIDE], **PLAIN}
    return {name: array.get(name) for name in expected} == expected


def _read_map(path: Path, index: int, image: str) -> NDArray[np.float32]:
    """Read a map [224, 224]; what has the wrong length is refused."""
    place = path / "raw" / "c" / str(index) / "0" / "0"
    try:
        data = read_bytes(place, MAP_BYTES, within=path)
    except (OSError, ObygazeError) as error:
        raise StoreError(f"{path}: map {index}, of {image}, cannot be read: {error}") from None
    if len(data) != MAP_BYTES:
        raise StoreError(f"{path}: map {index}, of {image}, has {len(data)} bytes, not {MAP_BYTES}")
    return np.frombuffer(data, "<f4").astype(np.float32).reshape(SIDE, SIDE)


# --- the audit
# ---------------------------------------------------------------------------
class Region(NamedTuple):
    """A named box in the map, in pixels of 224 x 224; y1 and x1 lie outside."""

    name: str
    y0: int
    x0: int
    y1: int
    x1: int


def read_regions(path: Path) -> dict[str, tuple[Region, ...]]:
    """Read regions by image: image_id, roi, y0, x0, y1, x1, in whole pixels of the 224 x 224 map.

    Raises
    ------
    AuditError
        Naming the image and the region: it comes twice, or is empty or no box in the map.
    """
    sides = ("y0", "x0", "y1", "x1")
    regions: dict[str, tuple[Region, ...]] = {}
    for row in read_rows(path, ["image_id", "roi", *sides], unique=["image_id", "roi"]):
        box = [int(row[side]) if row[side].isdecimal() and len(row[side]) < 4 else -1 for side in sides]
        region = Region(row["roi"], *box)
        if not (0 <= region.y0 < region.y1 <= SIDE and 0 <= region.x0 < region.x1 <= SIDE):
            raise AuditError(
                f"{path}: region {row['roi']} of {row['image_id']} should be whole y0 < y1, "
                f"x0 < x1 in 0 .. {SIDE}, found {', '.join(row[side] for side in sides)}"
            )
        regions[row["image_id"]] = (*regions.get(row["image_id"], ()), region)
    return regions


def energy_share(picture: NDArray[np.float64], region: Region) -> float | None:
    """Return the share of a map's sum that lies in a region; None of an empty map."""
    total = float(picture.sum())
    inside = picture[region.y0 : region.y1, region.x0 : region.x1]
    return float(inside.sum()) / total if total else None


def pointing_hit(picture: NDArray[np.float64], region: Region) -> bool | None:
    """Return whether a map's (first) highest place lies in a region; None of an empty map."""
    if not picture.any():
        return None
    y, x = np.unravel_index(int(picture.argmax()), picture.shape)
    return bool(region.y0 <= y < region.y1 and region.x0 <= x < region.x1)


@audited(
    Wording(
        name="saliency",
        title="Saliency in regions of interest",
        table="Means over the maps that are not empty",
        columns=(
            "group",
            "roi",
            "n_maps",
            "n_empty",
            "mean_share",
            "share_of_hits",
        ),
        sentence="{n_maps:,} maps of {n_images:,} images, {n_empty:,} of them empty",
        source=("Grad-CAM (Selvaraju et al., 2017) as in Wolfe et al., FAccT 2023, 4.2; bicubic, a = -0.75"),
        figure="Mean maps, each map scaled to 0 .. 1 first",
    )
)
def audit_maps(maps: Maps, regions: Mapping[str, Sequence[Region]] | None = None) -> Finding:
    """Measure every map in every region of its image, whatever network the maps were made with.

    Regions of images without a map are counted, and measured nowhere.

    Parameters
    ----------
    regions
        Image id -> its regions of interest.

    Raises
    ------
    AuditError
        Naming an image without regions.
    """
    rows: list[dict[str, Any]] = []
    for pair, saliency in zip(maps.pairs, maps.raw, strict=True):
        if regions is not None and pair["image_id"] not in regions:
            raise AuditError(f"image {pair['image_id']} has no region of interest")
        picture = saliency.astype(np.float64)
        about = {**pair, "empty": not picture.any()}
        for region in (None,) if regions is None else regions[pair["image_id"]]:
            measured = {"share": region and energy_share(picture, region)}
            measured |= {"hit": region and pointing_hit(picture, region)}
            rows.append(about | {"roi": region and region.name} | measured)
    images = {pair["image_id"] for pair in maps.pairs}
    unmapped = set(regions or ()) - images
    groups = _by_group(rows)
    return Finding(
        rows=rows,
        shown=groups,
        record=maps.about,
        said={
            "n_maps": len(maps.pairs),
            "n_images": len(images),
            "n_empty": sum(not saliency.any() for saliency in maps.raw),
        },
        summary={"groups": groups, "n_images_with_regions_only": len(unmapped)},
        notes=[f"regions of {len(unmapped)} images that have no map were not used"] if unmapped else [],
        draw=partial(_draw_means, maps, [_title(name, groups) for name in maps.by_group()]),
    )


def _title(group: str, groups: Sequence[Mapping[str, Any]]) -> str:
    """Name a group's panel, with the shares of its regions."""
    mine = [row for row in groups if row["group"] == group]
    shares = [f"{row['roi']} {row['mean_share']:.2f}" for row in mine if row["mean_share"] is not None]
    return "\n".join([f"{group or 'all'} (n = {mine[0]['n_maps']})", *shares])


def _by_group(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Average shares and hits over the maps that are not empty, by group and region."""
    means: list[dict[str, Any]] = []
    for group, roi in dict.fromkeys((row["group"], row["roi"]) for row in rows):
        mine = [row for row in rows if (row["group"], row["roi"]) == (group, roi)]
        about = {"group": group, "roi": roi, "n_maps": len(mine)}
        means.append(about | {"n_empty": sum(row["empty"] for row in mine)})
        for name, column in (("mean_share", "share"), ("share_of_hits", "hit")):
            values = [row[column] for row in mine if row[column] is not None]
            means[-1][name] = sum(values) / len(values) if values else None
    return means


def _draw_means(maps: Maps, titles: Sequence[str], path: Path) -> None:
    from obygaze_studies.audit_common import charts  # noqa: PLC0415 - matplotlib is slow

    means = [mean_stretched(pictures).astype(np.float32) for pictures in maps.by_group().values()]
    panels = [[charts.Panel(saliency=mean, title=title)] for mean, title in zip(means, titles, strict=True)]
    charts.draw_panels(panels, (1.2 + 2.4 * len(titles), 3), path, scale="mean saliency")


def draw_overlays(maps: Maps, manifest: Path, folder: Path) -> None:
    """Lay every map over the middle square of its picture, as files PLACE-IMAGE.png of a folder.

    Raises
    ------
    AuditError
        A picture is missing.
    """
    from obygaze_studies.audit_common import charts  # noqa: PLC0415 - matplotlib is slow

    images = [pair["image_id"] for pair in maps.pairs]
    files = charts.find_pictures(images, manifest)
    for index, (image, saliency) in enumerate(zip(images, maps.raw, strict=True)):
        square = charts.middle_square(charts.read_picture(files[image]))
        path = folder / f"{index:04}-{image.replace('/', '_')}.png"
        charts.draw_panels([[charts.Panel(picture=square, saliency=saliency)]], (3, 3), path)
