"""`obygaze audit words`, `alpha`, `saliency`, `text-directions`, and the options that all audits share."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from obygaze_features.options import removed_option
from obygaze_studies.commands.output import FILE, PATH, Output, output

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from obygaze_studies.audit_common.embeddings import Embeddings

TEXT_ITEMS = click.option(
    "--text-items",
    type=FILE,
    help="CSV of the text store's texts: text_id, text.  [default: the texts in the store]",
)

ONE_BACKBONE = "a store of several backbones is not read: extract the one to audit into a store of its own"

TEXTS_BACKBONE = removed_option("--texts-backbone", ONE_BACKBONE, value=True)


def write_rows(rows: "Iterable[Sequence[str]]", path: Path, what: str, *, force: bool) -> None:
    """Write a table of texts, its header first, as CSV, and say so."""
    from obygaze_features.io import csv_line, refuse_existing, write_whole

    lines = [csv_line(list(cells)) for cells in rows]
    refuse_existing(path, force=force)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, "".join(lines))
    click.echo(f"{len(lines) - 1} {what} kept in {path}", err=True)


def list_texts_of(texts: "Iterable[str]", path: Path, what: str, *, force: bool) -> None:
    """Write texts that need embeddings, each with an id."""
    listed = ((f"t{number:06}", text) for number, text in enumerate(texts))
    write_rows([("text_id", "text"), *listed], path, what, force=force)


def tell_partial(embedded: "Embeddings") -> None:
    """Print a note with the number of embeddings of partial rows, which are used."""
    if embedded.partial:
        name, reason = next(iter(embedded.partial.items()))
        n = f"{len(embedded.partial)} of {len(embedded.rows)} embeddings"
        click.echo(f"{embedded.where}: {n} are partial, such as {name}: {reason}", err=True)


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
@output(required=True, figure=True)
def words(
    captions: Path,
    texts: Path | None,
    items: Path,
    lists: Path | None,
    min_total: int,
    ratio: tuple[str, str] | None,
    output: Output,
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

    output.check()
    chosen = read_lists(lists) if lists else EMOTION_WORDS
    read = read_captions(captions, texts)
    report = audit_words(
        count_words(read.pairs, chosen),
        read_items(items),
        lists=chosen,
        min_total=min_total,
        ratio=ratio,
        origin={"texts": read.fingerprint},
    )
    output.finish(report)
    if read.n_unnamed:
        click.echo(f"{read.n_unnamed} texts of the store are not in --captions; they count nowhere", err=True)


@click.command()
@click.option("--ratings", type=FILE, required=True, help="CSV of ratings: item_id and one column per rater.")
@click.option("--pairs", is_flag=True, help="Also report every pair of raters.")
@output(required=True, figure=True)
def alpha(ratings: Path, pairs: bool, output: Output) -> None:
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

    output.check()
    output.finish(audit_alpha(*read_ratings(ratings), pairs=pairs))


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
@output(required=True, figure=True)
def saliency(
    maps_path: Path,
    roi: Path | None,
    overlays: Path | None,
    pictures: Path | None,
    output: Output,
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
    output.check()
    if overlays and overlays.exists() and not output.force:
        raise AuditError(f"{overlays} exists already: give --force to write into it, or another --overlays")
    regions = read_regions(roi) if roi else None
    maps = read_maps(maps_path)
    files = find_pictures([pair["image_id"] for pair in maps.pairs], pictures) if pictures else {}
    report = audit_maps(maps, regions)
    if overlays:
        from obygaze_studies.audit_common.audit_figures import draw_overlays

        draw_overlays(maps, files, overlays)
    output.finish(report)


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
@output(required=True)
def text_directions(
    manifest: Path,
    store: Path,
    texts: Path,
    backbone: str | None,
    n_permutations: int,
    seed: int,
    output: Output,
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

    output.check()
    clips, (opened,) = read_inputs(manifest, [store])
    data = load_dataset(opened, clips, backbone=backbone)
    report = audit_text_directions(data, open_store(texts), n_permutations=n_permutations, seed=seed)
    output.finish(report)
