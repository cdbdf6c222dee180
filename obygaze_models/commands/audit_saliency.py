"""`obygaze audit saliency`: Grad-CAM from stored activations, and regions of any maps."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from obygaze_models.commands.audit_output import FIGURE, FILE, FORCE, JSON, PATH, check, finish, tell_partial
from obygaze_models.commands.inputs import HTML

if TYPE_CHECKING:
    from obygaze_features.store.saliency_maps import Maps


STORED = ("acts", "head", "texts", "text_items", "pairs")
"""What maps are made of, and what maps that are there do without."""


@click.command()
@click.option("--maps", "given", type=PATH, help="Maps written by 'obygaze gradcam', to measure as they are.")
@click.option("--acts", type=PATH, help="Store whose tokens are the images' last activations.")
@click.option("--acts-backbone", help="Backbone in the store; needed if it has several.")
@click.option("--head", type=FILE, help=".npz file of the head's weights, with its space.")
@click.option("--texts", type=PATH, help="Store of the texts' embeddings, in the same space.")
@click.option("--texts-backbone", help="Which of its groups; needed when it has several.")
@click.option("--text-items", type=FILE, help="CSV of the text store's texts: text_id, text.")
@click.option("--pairs", type=FILE, help="CSV of the pairs to map: image_id, text and optionally group.")
@click.option(
    "--score",
    type=click.Choice(["cosine", "dot"]),
    help="Quantity to differentiate. cosine: as in the paper. dot: as in the authors' code.  [default: "
    "cosine]",
)
@click.option(
    "--roi", type=FILE, help="CSV of regions in pixels of the 224 x 224 map: image_id, roi, y0, x0, y1, x1."
)
@click.option("--overlays", type=PATH, help="Folder for overlays of the maps on their images.")
@click.option(
    "--pictures", type=PATH, help="For --overlays: folder of images named by image_id, or their manifest."
)
@click.option(
    "--out",
    type=PATH,
    required=True,
    help="Zarr store for the maps, with the results beside it (CSV, JSON, Markdown, LaTeX); "
    "with --maps, the CSV file.",
)
@FIGURE
@HTML
@FORCE
@JSON
def saliency(
    given: Path | None,
    acts: Path | None,
    acts_backbone: str | None,
    head: Path | None,
    texts: Path | None,
    texts_backbone: str | None,
    text_items: Path | None,
    pairs: Path | None,
    score: str | None,
    roi: Path | None,
    overlays: Path | None,
    pictures: Path | None,
    out: Path,
    figure: Path | None,
    html: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Compute Grad-CAM maps of image-text similarity and their share in given regions.

    Uses stored activations and the weights of the head (no network runs), or existing
    maps (--maps). A map without any positive value is kept as zeros, marked empty, and left out of means of
    shares and hits. The figure shows the mean map of every group; pictures are shown only with --overlays.

    \b
    Examples:
      obygaze gradcam stills.csv --prompts prompts.txt --out maps.zarr
      obygaze audit saliency --maps maps.zarr --roi faces.csv \\
          --out faces-found.csv --figure maps.png
      obygaze audit saliency --acts stores/acts --head head.npz \\
          --texts stores/prompts \\
        --text-items prompts.csv --pairs pairs.csv --roi faces.csv --out maps.zarr
    """
    from obygaze_features.store.saliency_maps import check_maps_free, read_maps, write_maps
    from obygaze_models.audits.regions import read_regions
    from obygaze_models.audits.saliency import audit_maps, find_pictures
    from obygaze_models.audits.tables import read_rows
    from obygaze_models.errors import AuditError

    sources = {"acts": acts, "head": head, "texts": texts, "text_items": text_items, "pairs": pairs}
    choices = {"acts_backbone": acts_backbone, "texts_backbone": texts_backbone, "score": score}
    _check_use(given, {**sources, **choices}, out)
    if (overlays is None) != (pictures is None):
        raise click.UsageError("--overlays and --pictures go together.")
    table = out.with_suffix(".csv")
    check(table, figure, html, force=force)
    if given is None:
        check_maps_free(out, force=force)
    if overlays and overlays.exists() and not force:
        raise AuditError(f"{overlays} exists already: give --force to write into it, or another --overlays")
    regions = read_regions(roi) if roi else None
    if given is not None:
        maps = read_maps(given)
        files = find_pictures([pair["image_id"] for pair in maps.pairs], pictures) if pictures else {}
    else:
        wanted = read_rows(cast("Path", pairs), ["image_id", "text"], unique=["image_id", "text"])
        files = find_pictures([row["image_id"] for row in wanted], pictures) if pictures else {}
        maps = _mapped(sources, acts_backbone, texts_backbone, wanted, score or "cosine")
    report = audit_maps(maps, regions)
    if given is None:
        write_maps(maps, out)
        click.echo(f"{len(maps.pairs)} maps kept in {out}", err=True)
    if overlays:
        from obygaze_models.audits.figures import draw_overlays

        draw_overlays(maps, files, overlays)
    finish(report, table, figure, html, force=force, as_json=as_json)


def _check_use(given: Path | None, sources: "Mapping[str, object]", out: Path) -> None:
    """Refuse half of a way to come by maps, and both ways at once."""
    named = {name: f"--{name.replace('_', '-')}" for name in sources}
    if given is not None:
        extra = [named[name] for name, value in sources.items() if value is not None]
        if extra:
            raise click.UsageError(f"--maps are made already: leave out {', '.join(extra)}.")
        if out.suffix.lower() != ".csv":
            raise click.BadParameter(
                f"'{out}' should end in .csv: with --maps no maps are written", param_hint="'--out'"
            )
        return
    missing = [named[name] for name in STORED if sources[name] is None]
    if missing:
        raise click.UsageError(f"Missing {', '.join(missing)}; or give --maps.")
    if out.suffix != ".zarr":
        raise click.BadParameter(
            f"'{out}' should end in .zarr; the files of the results are written beside it",
            param_hint="'--out'",
        )


def _mapped(
    sources: "Mapping[str, Path | None]",
    acts_backbone: str | None,
    texts_backbone: str | None,
    wanted: "Sequence[Mapping[str, str]]",
    score: str,
) -> "Maps":
    """Make the maps of stored activations."""
    from obygaze_models.audits.embeddings import read_embeddings
    from obygaze_models.audits.gradcam import Score
    from obygaze_models.audits.heads import read_head
    from obygaze_models.audits.saliency import map_pairs, read_activations
    from obygaze_models.audits.tables import read_text_ids

    paths = {name: path for name, path in sources.items() if path is not None}
    embedded = read_embeddings(paths["texts"], texts_backbone)
    tell_partial(embedded)
    return map_pairs(
        read_activations(paths["acts"], acts_backbone),
        read_head(paths["head"]),
        embedded,
        text_ids=read_text_ids(paths["text_items"]),
        pairs=wanted,
        score=Score(score),
    )
