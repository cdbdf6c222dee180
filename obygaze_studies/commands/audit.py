"""`obygaze audit words`, `alpha`, `saliency`, `text-directions`, `eat`, and what all audits share."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from obygaze_features.options import PATH, Result, prints_result
from obygaze_studies.commands.output import FILE, FORCE, ReportOutput, report_output

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from obygaze_studies.audit_common.embeddings import Embeddings
    from obygaze_studies.eat.eat_tests import EatTest

TEXT_ITEMS = click.option(
    "--text-items",
    type=FILE,
    help="CSV of the text store's texts: text_id, text.  [default: the texts in the store]",
)


def write_rows(rows: "Iterable[Sequence[str]]", path: Path, what: str, *, force: bool) -> str:
    """Write a table of texts, its header first, as CSV, and return what to say of it."""
    from obygaze_features.io import refuse_existing, write_whole
    from obygaze_features.lines import csv_line

    lines = [csv_line(list(cells)) for cells in rows]
    refuse_existing(path, force=force)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, "".join(lines))
    return f"{len(lines) - 1} {what} kept in {path}"


def list_texts_of(texts: "Iterable[str]", path: Path, what: str, *, force: bool) -> None:
    """Write texts that need embeddings, each with an id."""
    listed = ((f"t{number:06}", text) for number, text in enumerate(texts))
    click.echo(write_rows([("text_id", "text"), *listed], path, what, force=force), err=True)


def required(**values: Path | None) -> dict[str, Path]:
    """Return the options that a command needs, but not always; refuse a missing one as click does."""
    for name, value in values.items():
        if value is None:
            raise click.UsageError(f"Missing option '--{name}'.")
    return {name: value for name, value in values.items() if value is not None}


def read_all(*stores: Path) -> "list[Embeddings]":
    """Read embeddings; print a note with the number of those of partial rows, which are used."""
    from obygaze_studies.audit_common.embeddings import read_embeddings

    read = [read_embeddings(store) for store in stores]
    for embedded in read:
        if embedded.partial:
            name, reason = next(iter(embedded.partial.items()))
            n = f"{len(embedded.partial)} of {len(embedded.rows)} embeddings"
            click.echo(f"{embedded.where}: {n} are partial, such as {name}: {reason}", err=True)
    return read


@click.command()
@click.option(
    "--captions",
    type=FILE,
    required=True,
    help="CSV of captions: image_id, caption. With --texts: caption_id, image_id.",
)
@click.option("--texts", type=PATH, help="Text store to read the captions from, by caption_id.")
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
@report_output(required=True, figure=True)
def words(
    captions: Path,
    texts: Path | None,
    items: Path,
    lists: Path | None,
    output: ReportOutput,
    **how: Any,
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
    counts, origin = count_words(read.pairs, chosen), {"texts": read.fingerprint}
    output.finish(audit_words(counts, read_items(items), lists=chosen, origin=origin, **how))
    if read.n_unnamed:
        click.echo(f"{read.n_unnamed} texts of the store are not in --captions; they count nowhere", err=True)


@click.command()
@click.option("--ratings", type=FILE, required=True, help="CSV of ratings: item_id and one column per rater.")
@click.option("--pairs", is_flag=True, help="Also report every pair of raters.")
@report_output(required=True, figure=True)
def alpha(ratings: Path, pairs: bool, output: ReportOutput) -> None:
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
@click.option("--pictures", type=PATH, help="For --overlays: manifest of the images, by image_id.")
@report_output(required=True, figure=True)
def saliency(
    maps_path: Path, roi: Path | None, overlays: Path | None, pictures: Path | None, output: ReportOutput
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
    from obygaze_features.io import refuse_existing
    from obygaze_studies.saliency.maps_file import audit_maps, find_pictures, read_maps, read_regions

    if (overlays is None) != (pictures is None):
        raise click.UsageError("--overlays and --pictures go together.")
    output.check()
    refuse_existing(overlays, force=output.force)
    regions = read_regions(roi) if roi else None
    maps = read_maps(maps_path)
    images = [pair["image_id"] for pair in maps.pairs]
    files = find_pictures(images, pictures) if pictures else {}
    report = audit_maps(maps, regions)
    if overlays:
        from obygaze_studies.audit_common.audit_figures import draw_overlays

        draw_overlays(images, maps.raw, files, overlays)
    output.finish(report)


@click.command("text-directions")
@click.argument("manifest", type=PATH)
@click.argument("store", type=PATH)
@click.option(
    "--texts",
    type=PATH,
    required=True,
    help="Store of the texts that 'obygaze codebook texts' lists, in the space of STORE.",
)
@click.option("--backbone", help="Backbone to read; needed if STORE has several.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed.")
@report_output(required=True)
def text_directions(
    manifest: Path, store: Path, texts: Path, backbone: str | None, output: ReportOutput, **how: Any
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
    output.finish(audit_text_directions(data, open_store(texts), **how))


VARIANT = click.option(
    "--variant",
    type=click.Choice(["code", "paper"]),
    default="code",
    show_default=True,
    help="Wording of the prompts. code: as in the authors' code, used for the tables ('an angry person'). "
    "paper: as in the paper ('a angry person').",
)


@click.group(invoke_without_command=True)
@click.option("--images", type=PATH, help="Store of the targets' embeddings.")
@click.option("--texts", type=PATH, help="Store of the attributes' embeddings, in the same space.")
@TEXT_ITEMS
@click.option(
    "--items",
    type=FILE,
    help="CSV of the targets: item_id and the columns that tests select on.  [default: SOBEM's file names]",
)
@click.option(
    "--tests",
    default="table1",
    show_default=True,
    help="table1 or table2 for the tests of those tables, or your own JSON file.",
)
@VARIANT
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the sampled partitions."
)
@click.option(
    "--published",
    "model",
    help="Model of the paper's tables, such as 'CLIP RN50', to show its published values beside.",
)
@report_output(figure=True)
def eat(
    images: Path | None,
    texts: Path | None,
    text_items: Path | None,
    items: Path | None,
    tests: str,
    output: ReportOutput,
    **how: Any,
) -> None:
    """Run embedding association tests (EAT) between two sets of images and two sets of texts.

    Reports for every test the effect size d (Wolfe et al., FAccT 2023, eq. 1), its normal p and the exact or
    sampled permutation p, one-sided. A star is a normal p below .05 in either tail, as in the paper's tables.

    \b
    Examples:
      obygaze audit eat prompts --out prompts.csv
      obygaze extract prompts.csv stores/prompts --backbone clip-text
      obygaze audit eat --images stores/sobem --texts stores/prompts --out eat.csv
      obygaze audit eat --images stores/jobs --texts stores/prompts \\
          --items jobs.csv --tests table2 \\
        --published 'CLIP RN50' --out eat.csv --figure eat.png
    """
    if click.get_current_context().invoked_subcommand is not None:
        return
    # Not required=True: `prompts` below this command needs none of them.
    given = required(images=images, texts=texts, out=output.out)
    from obygaze_studies.audit_common.audit_tables import read_items
    from obygaze_studies.audit_common.embeddings import read_stored_text_ids
    from obygaze_studies.eat.eat_tests import sobem_items
    from obygaze_studies.eat.effect_size import audit_eat

    output.check()
    chosen = _tests(tests)
    targets, attributes = read_all(given["images"], given["texts"])
    named = read_items(items) if items else sobem_items(tuple(targets.rows))
    text_ids = read_stored_text_ids(given["texts"], table=text_items)
    output.finish(audit_eat(targets, attributes, items=named, text_ids=text_ids, tests=chosen, **how))


def _tests(tests: str) -> "tuple[EatTest, ...]":
    from obygaze_studies.eat.eat_tests import SELECTIONS, read_tests

    if tests in SELECTIONS:
        return SELECTIONS[tests]
    if not Path(tests).is_file():
        message = f"'{tests}' is neither {' nor '.join(SELECTIONS)} nor a JSON file of your own"
        raise click.BadParameter(message, param_hint="'--tests'")
    return read_tests(Path(tests))


@eat.command()
@VARIANT
@click.option("--out", type=PATH, required=True, help="CSV file: text_id, text, list.")
@FORCE
@prints_result
def prompts(variant: str, out: Path, force: bool) -> Result:
    """Write the prompts of the paper's tests, as input of `obygaze extract`.

    \b
    Examples:
      obygaze audit eat prompts --out prompts.csv
      obygaze audit eat prompts --variant paper --out prompts-paper.csv
    """
    from obygaze_studies.eat.eat_tests import prompt_rows

    rows = prompt_rows(variant)
    table = [list(rows[0]), *(list(row.values()) for row in rows)]
    return {"file": str(out), "prompts": len(rows)}, write_rows(table, out, "prompts", force=force)
