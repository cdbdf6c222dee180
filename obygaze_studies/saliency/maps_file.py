"""Write and read saliency maps in a Zarr group, and audit them in regions of interest."""

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

from obygaze_features.errors import ObygazeError, StoreError
from obygaze_features.io import refuse_existing, whole_folder
from obygaze_features.text import counted
from obygaze_features.untrusted import read_bytes
from obygaze_studies.audit_common.findings import Finding, Wording, audited
from obygaze_studies.audit_common.inputs import read_rows
from obygaze_studies.errors import AuditError

SIDE = 224
"""Height and width of a map in pixels, those of the square that most networks see."""

MAP_BYTES = SIDE * SIDE * 4
"""Size of the file of a map: float32 values."""

UNCOMPRESSED = {
    "data_type": "float32",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, SIDE, SIDE]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
}
"""Metadata of the only kind of array that is read: not compressed, one file per map.

A compressed file could expand to any size in memory; of these the size is known.
"""


class _Pair(TypedDict):
    """A row of `Maps.pairs` in the attributes of the group."""

    image_id: str
    text: str
    group: str
    score: float
    peak: float


class _Attributes(TypedDict):
    """The attributes of the group: the fields of `Maps` without the maps."""

    about: dict[str, Any]
    pairs: Annotated[tuple[_Pair, ...], Meta(min_length=1)]


class _Group(TypedDict):
    """The part of the group's zarr.json that is read."""

    attributes: _Attributes


@dataclass(frozen=True, eq=False)
class Maps:
    """Saliency maps of pairs of image and text.

    Attributes
    ----------
    about
        Record of how the maps were made: network, space, kind of score.
    pairs
        For every pair its image_id, text and group, its `score`, which is the similarity whose gradient was
        taken, and the `peak` of its map.
    raw : float32 [P, 224, 224]
        The maps as computed, never negative. Not scaled, so that maps of one text can be compared.
    """

    about: Mapping[str, object]
    pairs: tuple[Mapping[str, Any], ...]
    raw: NDArray[np.float32]

    def by_group(self) -> dict[str, list[NDArray[np.float64]]]:
        """Return the maps of each group, in order of first appearance."""
        maps_of_group: dict[str, list[NDArray[np.float64]]] = {}
        for pair, saliency in zip(self.pairs, self.raw, strict=True):
            maps_of_group.setdefault(pair["group"], []).append(saliency.astype(np.float64))
        return maps_of_group


def mean_stretched(pictures: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Average maps [h, w], each stretched to 0 .. 1 first, so that every image has the same weight.

    A map whose values are all equal counts as 0 everywhere.
    """
    stretched = []
    for picture in pictures:
        value_range = float(np.ptp(picture))
        if value_range == 0:
            value_range = 1.0
        stretched.append((picture - picture.min()) / value_range)
    mean: NDArray[np.float64] = np.mean(stretched, axis=0)
    return mean


def check_maps_free(path: Path, *, force: bool) -> None:
    """Check that maps can be written to a folder: it does not exist or, with `force`, holds maps to replace.

    Raises
    ------
    ObygazeError
        The folder holds maps and `force` is not given, or it holds something else than maps.
    """
    if not path.exists():
        return
    if _attributes(path) is None:
        raise StoreError(f"{path} holds something else than saliency maps: choose another --out")
    refuse_existing(path, force=force)


def write_maps(maps: Maps, path: Path) -> None:
    """Write maps to a Zarr group (format 3), as a whole or not at all; an existing group is replaced.

    The group has the array `raw` [pair, y, x], float32, not compressed, one file per map, and the attributes
    `about` and `pairs`.
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
        The folder does not hold saliency maps, or the maps are damaged: their shape is wrong, a value is
        negative or not finite, or a map's peak differs from the recorded one, as when its file was replaced.
    """
    attributes = _attributes(path)
    if attributes is None:
        raise StoreError(f"{path}: no saliency maps, as 'obygaze gradcam' and 'obygaze audit saliency' make")
    pairs = attributes["pairs"]
    if not _is_uncompressed_array(path, len(pairs)):
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


def _read_json_file(path: Path, name: str, expected_type: Any) -> Any:
    """Read a JSON file of the group in the folder `path`; None if it does not hold a value of the type."""
    try:
        # Only a file inside the folder is read, not one that a link leads to.
        content = read_bytes(path / name, within=path)
        return msgspec.json.decode(content, type=expected_type)
    except (OSError, ObygazeError, msgspec.MsgspecError, RecursionError):  # the last if nested too deep
        return None


def _attributes(path: Path) -> _Attributes | None:
    """Read the attributes of a group of saliency maps; None if the folder does not hold one."""
    group: _Group | None = _read_json_file(path, "zarr.json", _Group)
    if group is None:
        return None
    return group["attributes"]


def _is_uncompressed_array(path: Path, n_maps: int) -> bool:
    """Return whether the array has the shape, type and layout that `write_maps` gives it."""
    array = _read_json_file(path, "raw/zarr.json", dict[str, Any]) or {}
    expected = {"shape": [n_maps, SIDE, SIDE], **UNCOMPRESSED}
    return all(array.get(name) == value for name, value in expected.items())


def _read_map(path: Path, index: int, image: str) -> NDArray[np.float32]:
    """Read a map [224, 224] from its file.

    Parameters
    ----------
    path
        Folder of the group of maps.
    index
        The map's number in the array, which names its file.
    image
        Id of its image, for messages.

    Raises
    ------
    StoreError
        The file cannot be read, or has the wrong length.
    """
    chunk_file = path / "raw" / "c" / str(index) / "0" / "0"
    try:
        data = read_bytes(chunk_file, MAP_BYTES, within=path)
    except (OSError, ObygazeError) as error:
        raise StoreError(f"{path}: map {index}, of {image}, cannot be read: {error}") from None
    if len(data) != MAP_BYTES:
        raise StoreError(f"{path}: map {index}, of {image}, has {len(data)} bytes, not {MAP_BYTES}")
    return np.frombuffer(data, "<f4").astype(np.float32).reshape(SIDE, SIDE)


# --- the audit
# ---------------------------------------------------------------------------
class Region(NamedTuple):
    """A named box in the map, in pixels of 224 x 224; y1 and x1 are the first pixels after it."""

    name: str
    y0: int
    x0: int
    y1: int
    x1: int


def read_regions(path: Path) -> dict[str, tuple[Region, ...]]:
    """Read the regions of interest of every image: image id -> regions.

    The table has the columns image_id, roi, y0, x0, y1, x1, in whole pixels of the 224 x 224 map.

    Raises
    ------
    AuditError
        Naming the image and the region: it comes twice, or is not a box in the map.
    """
    sides = ("y0", "x0", "y1", "x1")
    regions: dict[str, list[Region]] = {}
    for row in read_rows(path, ["image_id", "roi", *sides], unique=["image_id", "roi"]):
        region = Region(row["roi"], *(_pixel(row[side]) for side in sides))
        has_height_in_map = 0 <= region.y0 < region.y1 <= SIDE
        has_width_in_map = 0 <= region.x0 < region.x1 <= SIDE
        if not (has_height_in_map and has_width_in_map):
            raise AuditError(
                f"{path}: region {row['roi']} of {row['image_id']} should be whole y0 < y1, "
                f"x0 < x1 in 0 .. {SIDE}, found {', '.join(row[side] for side in sides)}"
            )
        regions.setdefault(row["image_id"], []).append(region)
    return {image: tuple(regions_of_image) for image, regions_of_image in regions.items()}


def _pixel(cell: str) -> int:
    """Parse a position in the map, a whole number; anything else gives -1, which is outside the map."""
    # A number with more digits than 224 is outside the map; it is not read, since it may have millions.
    has_few_digits = len(cell) <= len(str(SIDE))
    if cell.isdecimal() and has_few_digits:
        return int(cell)
    return -1


def energy_share(picture: NDArray[np.float64], region: Region) -> float | None:
    """Compute the share of a map's sum that lies in a region; None if the map is empty (all 0)."""
    total = float(picture.sum())
    if not total:
        return None
    inside = picture[region.y0 : region.y1, region.x0 : region.x1]
    return float(inside.sum()) / total


def pointing_hit(picture: NDArray[np.float64], region: Region) -> bool | None:
    """Return whether a map's highest pixel, the first if several, lies in a region; None for an empty map."""
    if not picture.any():
        return None
    y, x = np.unravel_index(int(picture.argmax()), picture.shape)
    return bool(region.y0 <= y < region.y1 and region.x0 <= x < region.x1)


@audited(
    Wording(  # texts of the report; what stands in braces is filled from the finding
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
        sentence="{n_maps:map} of {n_images:image}, {n_empty:,} of them empty",
        source=("Grad-CAM (Selvaraju et al., 2017) as in Wolfe et al., FAccT 2023, 4.2; bicubic, a = -0.75"),
        figure="Mean maps, each map scaled to 0 .. 1 first",
    )
)
def audit_maps(maps: Maps, regions: Mapping[str, Sequence[Region]] | None = None) -> Finding:
    """Measure how much of every map lies in every region of its image, and average by group and region.

    Images that have regions but no map are counted.

    Parameters
    ----------
    maps
        Maps of any network.
    regions
        Image id -> its regions of interest; None to count maps only.

    Raises
    ------
    AuditError
        Naming an image that has a map and no regions.
    """
    rows: list[dict[str, Any]] = []
    for pair, saliency in zip(maps.pairs, maps.raw, strict=True):
        regions_of_image = None
        if regions is not None:
            if pair["image_id"] not in regions:
                raise AuditError(f"image {pair['image_id']} has no region of interest")
            regions_of_image = regions[pair["image_id"]]
        rows += _rows_of_map(pair, saliency.astype(np.float64), regions_of_image)

    images = {pair["image_id"] for pair in maps.pairs}
    unmapped = set(regions or ()) - images
    notes = []
    if unmapped:
        notes.append(f"regions of {counted(len(unmapped), 'image')} that have no map were not used")

    group_rows = _means_by_group(rows)
    titles = [_panel_title(name, group_rows) for name in maps.by_group()]
    return Finding(
        rows=rows,
        table_rows=group_rows,
        record=maps.about,
        sentence_values={
            "n_maps": len(maps.pairs),
            "n_images": len(images),
            "n_empty": sum(not saliency.any() for saliency in maps.raw),
        },
        summary={"groups": group_rows, "n_images_with_regions_only": len(unmapped)},
        notes=notes,
        draw=partial(_draw_means, maps, titles),
    )


def _rows_of_map(
    pair: Mapping[str, Any], picture: NDArray[np.float64], regions: Sequence[Region] | None
) -> list[dict[str, Any]]:
    """Measure a map: a row for each region of its image or, without regions, one row without measures.

    Parameters
    ----------
    pair
        The row of `Maps.pairs` that belongs to the map.
    picture
        The map, [224, 224].
    """
    pair_columns = {**pair, "empty": not picture.any()}
    if regions is None:
        return [pair_columns | {"roi": None, "share": None, "hit": None}]
    rows = []
    for region in regions:
        share = energy_share(picture, region)
        hit = pointing_hit(picture, region)
        rows.append(pair_columns | {"roi": region.name, "share": share, "hit": hit})
    return rows


def _panel_title(group: str, groups: Sequence[Mapping[str, Any]]) -> str:
    """Write the title of a group's panel: its number of maps, then a line with each region's mean share.

    `groups` has a row for each group and region; the group without a name is called "all".
    """
    group_rows = [row for row in groups if row["group"] == group]
    first_line = f"{group or 'all'} (n = {group_rows[0]['n_maps']})"
    measured = [row for row in group_rows if row["mean_share"] is not None]
    shares = [f"{row['roi']} {row['mean_share']:.2f}" for row in measured]
    return "\n".join([first_line, *shares])


def _means_by_group(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Average shares and hits over the maps of each group and region; a row for each.

    Empty maps, which have no share and no hit, are counted and don't enter the means.
    """
    rows_of_group: dict[tuple[str, str | None], list[Mapping[str, Any]]] = {}  # (group, region) -> its rows
    for row in rows:
        rows_of_group.setdefault((row["group"], row["roi"]), []).append(row)
    means: list[dict[str, Any]] = []
    for (group, roi), map_rows in rows_of_group.items():
        n_empty = sum(row["empty"] for row in map_rows)
        mean_row: dict[str, Any] = {"group": group, "roi": roi, "n_maps": len(map_rows), "n_empty": n_empty}
        mean_row["mean_share"] = _mean([row["share"] for row in map_rows])
        mean_row["share_of_hits"] = _mean([row["hit"] for row in map_rows])
        means.append(mean_row)
    return means


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the values that are not None; None if all are."""
    defined = [value for value in values if value is not None]
    if not defined:
        return None
    return sum(defined) / len(defined)


def _draw_means(maps: Maps, titles: Sequence[str], path: Path) -> None:
    """Draw the mean map of each group side by side into a file; `titles` has one title for each group."""
    from obygaze_studies.audit_common import charts  # noqa: PLC0415 - matplotlib is slow

    means = [mean_stretched(pictures).astype(np.float32) for pictures in maps.by_group().values()]
    # Each group is a column of one panel.
    columns = [[charts.Panel(saliency=mean, title=title)] for mean, title in zip(means, titles, strict=True)]
    width = 1.2 + 2.4 * len(titles)  # inches: the bar of the scale, and the panels
    charts.draw_panels(columns, (width, 3), path, scale_label="mean saliency")


def draw_overlays(maps: Maps, manifest: Path, folder: Path) -> None:
    """Draw every map over the middle square of its picture, into files NUMBER-IMAGE.png of a folder.

    Raises
    ------
    AuditError
        A picture is missing.
    """
    from obygaze_studies.audit_common import charts  # noqa: PLC0415 - matplotlib is slow

    images = [pair["image_id"] for pair in maps.pairs]
    files = charts.find_pictures(images, manifest)
    for index, (image, saliency) in enumerate(zip(images, maps.raw, strict=True)):
        # The map is of the middle square, which is the part that the network saw.
        square = charts.middle_square(charts.read_picture(files[image]))
        panel = charts.Panel(picture=square, saliency=saliency)
        path = folder / f"{index:04}-{image.replace('/', '_')}.png"
        charts.draw_panels([[panel]], (3, 3), path)
