"""Measure the share of saliency maps in regions of interest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.manifest import read_manifest
from obygaze_models.report import Picture, Report
from obygaze_studies.audit_common.audit_tables import audit_report, drawn_by, read_rows, table
from obygaze_studies.errors import AuditError
from obygaze_studies.saliency.maps_file import SIDE, Maps

SOURCE = "Grad-CAM (Selvaraju et al., 2017) as in Wolfe et al., FAccT 2023, 4.2; bicubic, a = -0.75"


@dataclass(frozen=True)
class Region:
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
        try:
            region = Region(row["roi"], *(int(row[side]) for side in sides))
            fits = 0 <= region.y0 < region.y1 <= SIDE and 0 <= region.x0 < region.x1 <= SIDE
        except ValueError:
            fits = False
        if not fits:
            box = ", ".join(row[side] for side in sides)
            raise AuditError(
                f"{path}: region {row['roi']} of {row['image_id']} should be whole y0 < y1, "
                f"x0 < x1 in 0 .. {SIDE}, found {box}"
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


def audit_maps(maps: Maps, regions: Mapping[str, Sequence[Region]] | None = None) -> Report:
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
    rows: list[dict[str, object]] = []
    for pair, saliency in zip(maps.pairs, maps.raw, strict=True):
        picture = saliency.astype(np.float64)
        about = {**pair, "empty": not picture.any()}
        rows += [about | measured for measured in _measured(pair["image_id"], picture, regions)]
    unmapped = set(regions or ()) - {pair["image_id"] for pair in maps.pairs}
    groups = _by_group(rows)
    titles = [_title(name, groups) for name in maps.groups]
    means = drawn_by("draw_mean_maps", titles=titles, maps=maps.mean_stretched)
    return audit_report(
        "saliency",
        "Saliency in regions of interest",
        rows,
        [table("Means over the maps that are not empty", groups, tuple(groups[0]))],
        {"source": SOURCE, **maps.about},
        summary={"groups": groups, "n_images_with_regions_only": len(unmapped)},
        notes=[f"regions of {len(unmapped)} images that have no map were not used"] if unmapped else (),
        picture=Picture("saliency", "Mean maps, each map scaled to 0 .. 1 first", means),
    )


def find_pictures(images: Sequence[str], source: Path) -> dict[str, Path]:
    """Find the picture of every image, in a folder or as a manifest says.

    Raises
    ------
    AuditError
        An image has none.
    """
    if source.is_dir():
        endings = ("", ".png", ".jpg", ".jpeg")
        paths = {image: [source / f"{image}{ending}" for ending in endings] for image in images}
        expected = "with or without .png, .jpg"
    else:
        manifest = read_manifest(source)
        listed = {clip.clip_id: [manifest.root / clip.video] for clip in manifest if clip.video}
        paths = {image: listed.get(image, []) for image in images}
        expected = "a file that it names and that is there"
    files = {}
    for image, candidates in paths.items():
        file = next((path for path in candidates if path.is_file()), None)
        if file is None:
            raise AuditError(f"no picture of {image} in {source}: expected {image}, {expected}")
        files[image] = file
    return files


def _title(group: str, groups: Sequence[Mapping[str, Any]]) -> str:
    """Name a group's panel, with the shares of its regions."""
    mine = [row for row in groups if row["group"] == group]
    shares = [f"{row['roi']} {row['mean_share']:.2f}" for row in mine if row["mean_share"] is not None]
    return "\n".join([f"{group or 'all'} (n = {mine[0]['n_maps']})", *shares])


def _measured(
    image: str, picture: NDArray[np.float64], regions: Mapping[str, Sequence[Region]] | None
) -> list[dict[str, object]]:
    if regions is None:
        return [{"roi": None, "share": None, "hit": None}]
    if image not in regions:
        raise AuditError(f"image {image} has no region of interest")
    return [
        {"roi": region.name, "share": energy_share(picture, region), "hit": pointing_hit(picture, region)}
        for region in regions[image]
    ]


def _by_group(rows: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """Average shares and hits over the maps that are not empty, by group and region."""
    means: list[dict[str, object]] = []
    for group, roi in dict.fromkeys((row["group"], row["roi"]) for row in rows):
        mine = [row for row in rows if (row["group"], row["roi"]) == (group, roi)]
        shares = [share for row in mine if isinstance(share := row["share"], float)]
        hits = [hit for row in mine if isinstance(hit := row["hit"], bool)]
        means.append(
            {
                "group": group,
                "roi": roi,
                "n_maps": len(mine),
                "n_empty": sum(row["empty"] is True for row in mine),
                "mean_share": sum(shares) / len(shares) if shares else None,
                "share_of_hits": sum(hits) / len(hits) if hits else None,
            }
        )
    return means
