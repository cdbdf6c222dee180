"""`obygaze audit saliency`: Grad-CAM from stored activations."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from obygaze_models.commands.audit_output import FIGURE, FILE, FORCE, JSON, PATH

if TYPE_CHECKING:
    from obygaze_models.audits.results import Results
    from obygaze_models.audits.saliency import Maps


def _zarr(_: click.Context, __: click.Parameter, value: Path) -> Path:
    if value.suffix != ".zarr":
        raise click.BadParameter(
            f"'{value}' should end in .zarr; a .csv and a .json file are written beside it"
        )
    return value


@click.command()
@click.option("--acts", type=PATH, required=True, help="Store whose tokens are the images' last activations.")
@click.option("--acts-backbone", help="Which of its groups; needed when it has several.")
@click.option("--head", type=FILE, required=True, help=".npz file of the head's weights, with its space.")
@click.option("--texts", type=PATH, required=True, help="Store of the texts' embeddings, of the same space.")
@click.option("--texts-backbone", help="Which of its groups; needed when it has several.")
@click.option("--text-items", type=FILE, required=True, help="CSV of the text store's texts: text_id, text.")
@click.option("--pairs", type=FILE, required=True, help="CSV of what to map: image_id, text, perhaps group.")
@click.option(
    "--score",
    type=click.Choice(["cosine", "dot"]),
    default="cosine",
    show_default=True,
    help="What the gradient is of. cosine: as the paper says. dot: as the authors' code does.",
)
@click.option(
    "--roi", type=FILE, help="CSV of regions in pixels of the 224 x 224 map: image_id, roi, y0, x0, y1, x1."
)
@click.option("--overlays", type=PATH, help="Folder for the maps laid over their pictures.")
@click.option("--pictures", type=PATH, help="Folder of the pictures, named by image_id, for --overlays.")
@click.option(
    "--out", type=PATH, callback=_zarr, required=True, help="Zarr of the maps; CSV and JSON go beside it."
)
@FIGURE
@FORCE
@JSON
def saliency(
    acts: Path,
    acts_backbone: str | None,
    head: Path,
    texts: Path,
    texts_backbone: str | None,
    text_items: Path,
    pairs: Path,
    score: str,
    roi: Path | None,
    overlays: Path | None,
    pictures: Path | None,
    out: Path,
    figure: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Map where an image's similarity to a text comes from, and how much of it lies in given regions.

    Grad-CAM from stored activations and the weights of the head; no network runs. A map without any positive
    value is kept as zeros, marked empty, and left out of means of shares and hits. The figure shows the mean
    map of every group; pictures are shown only with --overlays.

    \b
    Examples:
      obygaze audit saliency --acts stores/acts --head head.npz --texts stores/prompts \\
        --text-items prompts.csv --pairs pairs.csv --out maps.zarr
      obygaze audit saliency --acts stores/acts --head head.npz --texts stores/prompts \\
        --text-items prompts.csv --pairs pairs.csv --roi faces.csv --out maps.zarr --figure maps.png
    """
    from obygaze_models.audits.embeddings import read_embeddings
    from obygaze_models.audits.errors import AuditError
    from obygaze_models.audits.gradcam import Score
    from obygaze_models.audits.heads import read_head
    from obygaze_models.audits.map_store import check_maps_free, write_maps
    from obygaze_models.audits.regions import read_regions
    from obygaze_models.audits.results import write_results
    from obygaze_models.audits.saliency import audit_saliency, read_activations
    from obygaze_models.audits.tables import read_rows, read_text_ids
    from obygaze_models.commands.audit_output import check

    if (overlays is None) != (pictures is None):
        raise click.UsageError("--overlays and --pictures go together.")
    table = out.with_suffix(".csv")
    check(table, figure, force=force)
    check_maps_free(out, force=force)
    if overlays and overlays.exists() and not force:
        raise AuditError(f"{overlays} exists already: give --force to write into it, or another --overlays")
    wanted = read_rows(pairs, ["image_id", "text"], unique=["image_id", "text"])
    files = _pictures([row["image_id"] for row in wanted], pictures) if pictures else {}
    results, maps = audit_saliency(
        read_activations(acts, acts_backbone),
        read_head(head),
        read_embeddings(texts, texts_backbone),
        text_ids=read_text_ids(text_items),
        pairs=wanted,
        regions=read_regions(roi) if roi else None,
        score=Score(score),
    )
    write_maps(maps, out)
    write_results(results, table)
    if figure:
        _mean_maps(results, maps, figure)
    if overlays:
        _overlays(maps, files, overlays)
    _echo(results, as_json=as_json)
    click.echo(f"{len(maps.pairs)} maps kept in {out}, results in {table}", err=True)


def _echo(results: "Results", *, as_json: bool) -> None:
    from tabulate import tabulate

    if as_json:
        click.echo(results.to_json(), nl=False)
        return
    groups: Any = results.summary["groups"]
    click.echo(tabulate(groups, headers="keys", tablefmt="simple", floatfmt=".4g", missingval="-"))


def _mean_maps(results: "Results", maps: "Maps", path: Path) -> None:
    from obygaze_models.figures.audit_maps import draw_mean_maps

    groups: Any = results.summary["groups"]
    titles = []
    for name in maps.groups:
        mine = [row for row in groups if row["group"] == name]
        shares = [f"{row['roi']} {row['mean_share']:.2f}" for row in mine if row["mean_share"] is not None]
        titles.append("\n".join([f"{name or 'all'} (n = {mine[0]['n_maps']})", *shares]))
    draw_mean_maps(titles, maps.mean_stretched, path)


def _pictures(images: list[str], folder: Path) -> dict[str, Path]:
    """Find the picture of every image before any work."""
    from obygaze_models.audits.errors import AuditError

    files = {}
    for image in images:
        names = [folder / f"{image}{ending}" for ending in ("", ".png", ".jpg", ".jpeg")]
        found = next((path for path in names if path.is_file()), None)
        if found is None:
            raise AuditError(
                f"no picture of {image} in {folder}: expected {image}, with or without .png, .jpg"
            )
        files[image] = found
    return files


def _overlays(maps: "Maps", files: Mapping[str, Path], folder: Path) -> None:
    from obygaze_models.figures.audit_maps import draw_overlay

    for place, (pair, one) in enumerate(zip(maps.pairs, maps.raw, strict=True)):
        name = pair["image_id"].replace("/", "_")
        draw_overlay(files[pair["image_id"]], one, folder / f"{place:04}-{name}.png")
