"""Read regions of interest, and measure the share of a saliency map in each."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from obygaze_studies.audits.tables import read_rows
from obygaze_studies.errors import AuditError
from obygaze_studies.saliency.maps_file import SIDE


@dataclass(frozen=True)
class Region:
    """A named box in the map, in pixels of 224 x 224; y1 and x1 lie outside."""

    name: str
    y0: int
    x0: int
    y1: int
    x1: int


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
