"""`obygaze audit words`, `alpha`, `saliency`, `text-directions`, and the options that all audits share."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from obygaze_features.options import Command, html_option, join_options
from obygaze_models.commands import write_page

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from obygaze_models.report import Report
    from obygaze_studies.audit_common.embeddings import Embeddings

SUFFIXES = (".csv", ".json", ".md", ".tex")
"""Endings of the files of a report, the one that --out names first."""

PATH = click.Path(path_type=Path)

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


def csv_file(_: click.Context, __: click.Parameter, value: Path | None) -> Path | None:
    """Refuse an output file that is not a CSV."""
    if value is not None and value.suffix.lower() != ".csv":
        raise click.BadParameter(
            f"'{value}' should end in .csv; .json, .md and .tex files are written beside it"
        )
    return value


def picture_file(_: click.Context, __: click.Parameter, value: Path | None) -> Path | None:
    """Refuse figure formats other than .pdf, .png and .svg."""
    if value is not None and value.suffix.lower() not in {".pdf", ".png", ".svg"}:
        raise click.BadParameter(f"'{value}' should end in .pdf, .png or .svg")
    return value


def _out(*, required: bool) -> "Callable[[Command], Command]":
    return click.option(
        "--out",
        type=PATH,
        callback=csv_file,
        required=required,
        help="CSV file of the results; JSON, Markdown and LaTeX go beside it.",
    )


TEXT_ITEMS = click.option(
    "--text-items",
    type=FILE,
    help="CSV of the text store's texts: text_id, text.  [default: the texts in the store]",
)

TEXTS_BACKBONE = click.option(
    "--texts-backbone", help="Backbone in the text store; needed if it has several."
)

FIGURE = click.option(
    "--figure", type=PATH, callback=picture_file, help="Figure of the results to draw (.pdf, .png or .svg)."
)

FORCE = click.option("--force", is_flag=True, help="Replace existing files.")

JSON = click.option("--json", "as_json", is_flag=True, help="Print the results as one JSON document.")

OUT = _out(required=True)

OUTPUT = join_options(_out(required=False), FIGURE, html_option, FORCE, JSON)

REQUIRED_OUTPUT = join_options(OUT, FIGURE, html_option, FORCE, JSON)


def check(out: Path, figure: Path | None, html: Path | None, *, force: bool) -> None:
    """Refuse to replace files before the work starts."""
    from obygaze_features.io import refuse_existing

    refuse_existing(*(out.with_suffix(suffix) for suffix in SUFFIXES), figure, html, force=force)
    if figure:
        import matplotlib as _  # noqa: F401, ICN001 - missing without the extra `figures`


def write_rows(rows: "Sequence[Mapping[str, str]]", path: Path, *, force: bool) -> None:
    """Write a table of texts as CSV."""
    from obygaze_features.io import csv_line, refuse_existing, write_whole

    refuse_existing(path, force=force)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, "".join(csv_line(list(cells)) for cells in (rows[0], *(row.values() for row in rows))))


def tell_partial(embedded: "Embeddings") -> None:
    """Print a note with the number of embeddings of partial rows, which are used."""
    if embedded.partial:
        name, reason = next(iter(embedded.partial.items()))
        n = f"{len(embedded.partial)} of {len(embedded.rows)} embeddings"
        click.echo(f"{embedded.where}: {n} are partial, such as {name}: {reason}", err=True)


def finish(
    report: "Report", out: Path, figure: Path | None, html: Path | None, *, force: bool, as_json: bool
) -> None:
    """Write a report's files, its figure and page if requested, and print it."""
    from obygaze_models.report import plain, to_json, write_beside

    write_beside(report, out.with_suffix(""))
    if figure:
        report.pictures[0].draw(figure)
    write_page(report, html, force=force)
    click.echo(to_json(report) if as_json else plain(report), nl=False)
    click.echo(f"results kept in {out}", err=True)


@click.command()
@click.option(
    "--captions",
    type=FILE,
    required=True,
    help="CSV of captions: image_id, caption. With --texts: caption_id, image_id.",
)
@click.option("--texts", type=PATH, help="Text store to read the captions from, by caption_id.")
@TEXTS_BACKBONE
@click.option("--items", type=FILE, required=True, help="CSV of images: image_id, emotion, level, condition.")
@click.option(
    "--lists", type=FILE, help="JSON object {emotion: [words]}.  [default: anger, sadness, happiness]"
)
@click.option(
    "--min-total",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    help="Exclude words with fewer occurrences in all captions.",
)
@click.option("--ratio", nargs=2, help="Two conditions: divide the rate of the first by that of the second.")
@REQUIRED_OUTPUT
def words(
    captions: Path,
    texts: Path | None,
    texts_backbone: str | None,
    items: Path,
    lists: Path | None,
    min_total: int,
    ratio: tuple[str, str] | None,
    out: Path,
    figure: Path | None,
    html: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Count how often captions name the emotion an image is meant to show.

    Counts occurrences of the words of the intended emotion per 1,000 captions, by emotion, level and
    condition (Wolfe et al., FAccT 2023, section 4.3).

    \b
    Examples:
      obygaze audit words --captions captions.csv --items sobem.csv \\
          --out words.csv
      obygaze audit words --captions captions.csv --items sobem.csv \\
          --ratio Objectified Nonobjectified \\
        --out words.csv --figure words.png
      obygaze audit words --texts stores/captions --captions images.csv \\
          --items sobem.csv --out words.csv
    """
    from obygaze_studies.audit_common.audit_tables import read_items
    from obygaze_studies.caption_words import (
        EMOTION_WORDS,
        audit_words,
        count_words,
        read_captions,
        read_lists,
    )

    check(out, figure, html, force=force)
    chosen = read_lists(lists) if lists else EMOTION_WORDS
    read = read_captions(captions, texts, texts_backbone)
    report = audit_words(
        count_words(read.pairs, chosen),
        read_items(items),
        lists=chosen,
        min_total=min_total,
        ratio=ratio,
        origin={"texts": read.fingerprint},
    )
    finish(report, out, figure, html, force=force, as_json=as_json)
    if read.n_unnamed:
        click.echo(f"{read.n_unnamed} texts of the store are not in --captions; they count nowhere", err=True)


@click.command()
@click.option("--ratings", type=FILE, required=True, help="CSV of ratings: item_id and one column per rater.")
@click.option("--pairs", is_flag=True, help="Also report every pair of raters.")
@REQUIRED_OUTPUT
def alpha(
    ratings: Path, pairs: bool, out: Path, figure: Path | None, html: Path | None, force: bool, as_json: bool
) -> None:
    """Compute Cronbach's alpha of raters of the same items.

    Items with a missing rating (an empty cell) are left out and counted. If alpha is undefined, the reason
    is printed.

    \b
    Examples:
      obygaze audit alpha --ratings ratings.csv --out alpha.csv
      obygaze audit alpha --ratings ratings.csv --pairs --out alpha.csv \\
          --figure alpha.svg
    """
    from obygaze_studies.alpha import audit_alpha, read_ratings

    check(out, figure, html, force=force)
    finish(audit_alpha(*read_ratings(ratings), pairs=pairs), out, figure, html, force=force, as_json=as_json)


@click.command()
@click.option(
    "--maps", "maps_path", type=PATH, required=True, help="Zarr store of maps, written by 'obygaze gradcam'."
)
@click.option(
    "--roi", type=FILE, help="CSV of regions in pixels of the 224 x 224 map: image_id, roi, y0, x0, y1, x1."
)
@click.option("--overlays", type=PATH, help="Folder for overlays of the maps on their images.")
@click.option(
    "--pictures", type=PATH, help="For --overlays: folder of images named by image_id, or their manifest."
)
@REQUIRED_OUTPUT
def saliency(
    maps_path: Path,
    roi: Path | None,
    overlays: Path | None,
    pictures: Path | None,
    out: Path,
    figure: Path | None,
    html: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Measure Grad-CAM maps of image-text similarity in given regions.

    A map without any positive value is marked empty, and left out of means of shares and hits. The figure
    shows the mean map of every group; pictures are shown only with --overlays.

    \b
    Examples:
      obygaze gradcam stills.csv --prompts prompts.txt --backbone openclip \\
          --weights "CLIP RN50" --out maps.zarr
      obygaze audit saliency --maps maps.zarr --roi faces.csv \\
          --out faces-found.csv --figure maps.png
      obygaze audit saliency --maps maps.zarr --out maps.csv \\
          --overlays laid --pictures stills.csv
    """
    from obygaze_studies.errors import AuditError
    from obygaze_studies.saliency.map_audit import audit_maps, find_pictures, read_regions
    from obygaze_studies.saliency.maps_file import read_maps

    if (overlays is None) != (pictures is None):
        raise click.UsageError("--overlays and --pictures go together.")
    check(out, figure, html, force=force)
    if overlays and overlays.exists() and not force:
        raise AuditError(f"{overlays} exists already: give --force to write into it, or another --overlays")
    regions = read_regions(roi) if roi else None
    maps = read_maps(maps_path)
    files = find_pictures([pair["image_id"] for pair in maps.pairs], pictures) if pictures else {}
    report = audit_maps(maps, regions)
    if overlays:
        from obygaze_studies.audit_common.audit_figures import draw_overlays

        draw_overlays(maps, files, overlays)
    finish(report, out, figure, html, force=force, as_json=as_json)


@click.command("text-directions")
@click.argument("manifest", type=click.Path(path_type=Path))
@click.argument("store", type=click.Path(path_type=Path))
@click.option(
    "--texts",
    type=click.Path(path_type=Path),
    required=True,
    help="Store of the texts that 'obygaze codebook texts' lists, in the space of STORE.",
)
@click.option("--backbone", help="Backbone to read; needed if STORE has several.")
@click.option(
    "--shifts",
    "n_permutations",
    type=click.IntRange(100),
    default=1000,
    show_default=True,
    help="Number of circular shifts of the labels.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed.")
@OUT
@html_option
@FORCE
@JSON
def text_directions(
    manifest: Path,
    store: Path,
    texts: Path,
    backbone: str | None,
    n_permutations: int,
    seed: int,
    out: Path,
    html: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Compare the texts of the codebook's concepts with CAVs learnt from the labels of MANIFEST.

    The cosine of each concept's labelled CAV with the direction of its texts, beside what circular shifts of
    the labels within movies give, and the place of its own texts among those of all concepts.

    \b
    Examples:
      obygaze codebook texts obygaze12 --out thesaurus.csv
      obygaze extract thesaurus.csv stores/thesaurus --backbone xclip-text
      obygaze audit text-directions films.csv stores/films \\
          --texts stores/thesaurus --out agreement.csv
    """
    from obygaze_features.store import open_store
    from obygaze_models.commands import read_inputs
    from obygaze_models.dataset import load_dataset
    from obygaze_studies.text_directions import audit_text_directions

    check(out, None, html, force=force)
    clips, (opened,) = read_inputs(manifest, [store])
    data = load_dataset(opened, clips, backbone=backbone)
    report = audit_text_directions(data, open_store(texts), n_permutations=n_permutations, seed=seed)
    finish(report, out, None, html, force=force, as_json=as_json)
