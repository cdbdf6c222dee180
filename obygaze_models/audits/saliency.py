"""Compute saliency maps of stored activations, and the share of any maps in regions of interest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from obygaze_features.manifest import read_manifest
from obygaze_features.store import Group, open_store
from obygaze_features.store.saliency_maps import SIDE, Maps, with_means
from obygaze_models.audits.embeddings import Embeddings, choose_group, group_space
from obygaze_models.audits.gradcam import Saliency, Score, enlarge, gradcam
from obygaze_models.audits.heads import Array, Head, SpacedHead
from obygaze_models.audits.regions import Region, energy_share, pointing_hit
from obygaze_models.audits.results import audit_report, table
from obygaze_models.audits.tables import Row
from obygaze_models.errors import AuditError
from obygaze_models.report import Picture, Report

SOURCE = "Grad-CAM (Selvaraju et al., 2017) as in Wolfe et al., FAccT 2023, 4.2; bicubic, a = -0.75"
GRID = "grid"
"""Field of a group's provenance: [h, w] of the places that its tokens are, row by row."""


@dataclass(frozen=True, eq=False)
class Activations:
    """A store's group whose tokens are the last activations of images.

    Attributes
    ----------
    group
        Its array `tokens` is [N, h w, C].
    grid
        h and w.
    """

    where: str
    space: str
    fingerprint: str
    group: Group
    grid: tuple[int, int]

    def read(self, image: str) -> Array:
        """Return the activations of one image, [C, h, w]."""
        tokens = self.group.read(image, "tokens").astype(np.float64)
        if not np.isfinite(tokens).all():
            raise AuditError(f"{self.where}: an activation of {image} is not finite")
        return tokens.T.reshape(-1, *self.grid)


def read_activations(path: Path, backbone: str | None = None) -> Activations:
    """Open a store of activations.

    Raises
    ------
    AuditError
        The group's provenance has no `space`, or no `grid` that fits its tokens.
    """
    store = open_store(path)
    group = choose_group(store, backbone)
    where = f"{store.where}, group {group.name}"
    grid = group.provenance.get(GRID)
    n_tokens = group.shape("tokens")[1]
    whole = isinstance(grid, list) and len(grid) == 2 and all(isinstance(side, int) for side in grid)
    if not isinstance(grid, list) or not whole or grid[0] * grid[1] != n_tokens:
        raise AuditError(
            f"{where}: its provenance should say with {GRID!r} [h, w] where its {n_tokens} tokens lie, "
            f"found {grid}"
        )
    return Activations(where, group_space(group, where), store.fingerprint, group, (grid[0], grid[1]))


def map_pairs(
    activations: Activations,
    head: SpacedHead,
    texts: Embeddings,
    *,
    text_ids: Mapping[str, str],
    pairs: Sequence[Row],
    score: Score = Score.COSINE,
) -> Maps:
    """Map every pair of image and text.

    Parameters
    ----------
    activations, head, texts
        Of one space.
    text_ids
        Text -> its id among `texts`.
    pairs
        Rows with image_id, text and perhaps group.

    Raises
    ------
    AuditError
        The spaces or sizes don't fit; naming the image or text that is missing.
    """
    _check_spaces(activations, head, texts)
    mapped: list[dict[str, object]] = []
    raw = np.zeros((len(pairs), SIDE, SIDE), np.float32)
    for place, pair in enumerate(pairs):
        text = _text(pair, texts, text_ids)
        found = _saliency(pair["image_id"], activations, head.head, text, score)
        raw[place] = np.maximum(enlarge(found.cam, (SIDE, SIDE)), 0.0)
        names = {"image_id": pair["image_id"], "text": pair["text"], "group": pair.get("group", "")}
        mapped.append({**names, "score": found.score})
    about: dict[str, object] = {
        "space": texts.space,
        "activations": activations.fingerprint,
        "texts": texts.fingerprint,
        "score": str(score),
        "source": SOURCE,
    }
    return with_means(about, mapped, raw)


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
        from obygaze_models.audits.figures import draw_mean_maps  # noqa: PLC0415 - matplotlib is slow

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


def _check_spaces(activations: Activations, head: SpacedHead, texts: Embeddings) -> None:
    for space, what in ((activations.space, activations.where), (head.space, "the head")):
        if space != texts.space:
            raise AuditError(
                f"embeddings of two spaces don't compare: {what} is of {space!r}, "
                f"{texts.where} of {texts.space!r}"
            )
    n_channels = activations.group.shape("tokens")[2]
    if n_channels != head.head.n_channels:
        raise AuditError(
            f"{activations.where} has {n_channels} channels, the head takes {head.head.n_channels}"
        )


def _text(pair: Mapping[str, str], texts: Embeddings, text_ids: Mapping[str, str]) -> Array:
    if pair["text"] not in text_ids:
        raise AuditError(f"the pair of {pair['image_id']}: the table of texts has no {pair['text']!r}")
    text: Array = texts.take([text_ids[pair["text"]]], f"the text {pair['text']!r}")[0]
    return text


def _saliency(image: str, activations: Activations, head: Head, text: Array, score: Score) -> Saliency:
    try:
        return gradcam(activations.read(image), head, text, score)
    except AuditError as error:
        raise AuditError(f"image {image}: {error}") from error


def _measured(
    image: str, picture: Array, regions: Mapping[str, Sequence[Region]] | None
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
