"""Measure the share of saliency maps in regions of interest."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.manifest import read_manifest
from obygaze_models.report import Picture, Report
from obygaze_studies.audits.results import audit_report, table
from obygaze_studies.errors import AuditError
from obygaze_studies.saliency.maps_file import Maps
from obygaze_studies.saliency.regions import Region, energy_share, pointing_hit

SOURCE = "Grad-CAM (Selvaraju et al., 2017) as in Wolfe et al., FAccT 2023, 4.2; bicubic, a = -0.75"


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
    for pair, one in zip(maps.pairs, maps.raw, strict=True):
        picture = one.astype(np.float64)
        about = {**pair, "empty": not picture.any()}
        rows += [about | measured for measured in _measured(pair["image_id"], picture, regions)]
    unmapped = set(regions or ()) - {pair["image_id"] for pair in maps.pairs}
    groups = _by_group(rows)

    def means(path: Path) -> None:
        from obygaze_studies.audits.audit_figures import draw_mean_maps  # noqa: PLC0415 - matplotlib is slow

        draw_mean_maps([_title(name, groups) for name in maps.groups], maps.mean_stretched, path)

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
        {"roi": one.name, "share": energy_share(picture, one), "hit": pointing_hit(picture, one)}
        for one in regions[image]
    ]


def _by_group(rows: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """Average shares and hits over the maps that are not empty, by group and region."""
    found: list[dict[str, object]] = []
    for group, roi in dict.fromkeys((row["group"], row["roi"]) for row in rows):
        mine = [row for row in rows if (row["group"], row["roi"]) == (group, roi)]
        shares = [share for row in mine if isinstance(share := row["share"], float)]
        hits = [hit for row in mine if isinstance(hit := row["hit"], bool)]
        found.append(
            {
                "group": group,
                "roi": roi,
                "n_maps": len(mine),
                "n_empty": sum(row["empty"] is True for row in mine),
                "mean_share": sum(shares) / len(shares) if shares else None,
                "share_of_hits": sum(hits) / len(hits) if hits else None,
            }
        )
    return found


def find_pictures(images: Sequence[str], source: Path) -> dict[str, Path]:
    """Find the picture of every image, in a folder or as a manifest says.

    Raises
    ------
    AuditError
        An image has none.
    """
    if source.is_dir():
        endings = ("", ".png", ".jpg", ".jpeg")
        places = {image: [source / f"{image}{ending}" for ending in endings] for image in images}
        expected = "with or without .png, .jpg"
    else:
        manifest = read_manifest(source)
        listed = {clip.clip_id: [manifest.root / clip.video] for clip in manifest if clip.video}
        places = {image: listed.get(image, []) for image in images}
        expected = "a file that it names and that is there"
    files = {}
    for image, candidates in places.items():
        found = next((path for path in candidates if path.is_file()), None)
        if found is None:
            raise AuditError(f"no picture of {image} in {source}: expected {image}, {expected}")
        files[image] = found
    return files
