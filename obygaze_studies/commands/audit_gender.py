"""`obygaze audit gender-score`, `cooc`, `objects`: which gender captions go with which objects."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from obygaze_features.options import PATH
from obygaze_studies.commands.audit import (
    TEXT_ITEMS,
    list_texts_of,
    read_all,
    required,
)
from obygaze_studies.commands.output import FILE, ReportOutput, picture_file, report_output

if TYPE_CHECKING:
    from obygaze_models.report import Report
    from obygaze_studies.gender_score.belief_revision import Similarity

PUBLISHED = click.option(
    "--published",
    "model",
    help="Captioner of the published tables, such as Vilbert, to show its values beside.",
)


@click.command("gender-score")
@click.option("--captions", type=FILE, required=True, help="CSV of captions: caption_id, image_id, caption.")
@click.option("--objects", type=FILE, required=True, help="CSV of detected objects: image_id, object, p_c.")
@click.option("--lm", type=FILE, help="CSV of priors: text, lm_mean, as written by `obygaze lm`.")
@click.option("--texts", type=PATH, help="Store of sentence embeddings of captions and labels.")
@TEXT_ITEMS
@click.option("--sims", type=FILE, help="CSV of similarities (text, object, sim), instead of --texts.")
@click.option(
    "--mode",
    type=click.Choice(["gs", "ge"]),
    default="gs",
    show_default=True,
    help="gs: score captions as they are. ge: replace [MASK], <MASK> or the gender a caption names by man, "
    "then woman.",
)
@click.option(
    "--labels",
    type=click.Choice(["each", "joined"]),
    default="each",
    show_default=True,
    help="How to combine several objects of an image: mean of their scores, or labels joined into one.",
)
@click.option(
    "--list-texts",
    type=PATH,
    help="Write the texts that need embeddings and priors to this CSV (text_id, text), then stop.",
)
@click.option(
    "--objects-list",
    type=FILE,
    help="Text file of objects to sum up by, one per line.  [default: every label of --objects]",
)
@click.option(
    "--sheet",
    type=PATH,
    callback=picture_file,
    help="With --mode ge and --pictures: sheet of the examples with their pictures (.pdf, .png or .svg).",
)
@click.option("--pictures", type=PATH, help="For --sheet: manifest of the images, by image_id.")
@PUBLISHED
@report_output(figure=True)
def gender_score(
    captions: Path,
    objects: Path,
    lm: Path | None,
    texts: Path | None,
    text_items: Path | None,
    sims: Path | None,
    list_texts: Path | None,
    objects_list: Path | None,
    sheet: Path | None,
    pictures: Path | None,
    model: str | None,
    output: ReportOutput,
    **how: Any,
) -> None:
    """Compute Gender Scores: how much an image's objects raise the likelihood of a caption's gender.

    Revises a language model's prior of the caption by its similarity to the object labels (Sabir and Padró,
    2023). The priors are an input: `obygaze lm` computes them for the texts that
    --list-texts writes. Captions without a prior, an object or an embedding are listed with the reason and
    never count as 0. Scores and distances are also summed up by object, and with --mode ge the captions
    nearest to man, to woman and to neither are shown, with their pictures on a sheet if --sheet asks for it.

    \b
    Examples:
      obygaze audit gender-score --captions captions.csv --objects objects.csv \\
          --mode ge \\
        --list-texts texts.csv
      obygaze extract texts.csv stores/texts --backbone sentence
      obygaze audit gender-score --captions captions.csv --objects objects.csv \\
          --mode ge --lm lm.csv \\
        --texts stores/texts --out ge.csv --figure ge.png \\
        --sheet examples.png --pictures val2014.csv
      obygaze audit gender-score --captions captions.csv --objects objects.csv \\
          --lm lm.csv --sims sims.csv \\
        --labels joined --out gs.csv
    """
    from obygaze_features.io import file_sha256, refuse_existing
    from obygaze_studies.audit_common.audit_tables import read_rows
    from obygaze_studies.gender_score.belief_revision import Scorer, read_objects, read_priors
    from obygaze_studies.gender_score.cooc import read_objects_list
    from obygaze_studies.gender_score.gender_audit import audit_gender_score, needed_texts

    rows = read_rows(captions, ["caption_id", "image_id", "caption"], unique=["caption_id"])
    detected = read_objects(objects)
    if list_texts:
        list_texts_of(needed_texts(rows, detected, **how), list_texts, "texts", force=output.force)
        return
    priors = required(lm=lm, out=output.out)["lm"]
    if sheet and not (pictures and how["mode"] == "ge"):
        raise click.UsageError("--sheet draws the examples of --mode ge with their --pictures: give both.")
    output.check()
    refuse_existing(sheet, force=output.force)
    similarity, origin = _similarity(texts, text_items, sims)
    scorer = Scorer(read_priors(priors), similarity)
    origin["priors_sha256"] = file_sha256(priors)
    names = read_objects_list(objects_list) if objects_list else None
    report = audit_gender_score(rows, detected, scorer, origin=origin, model=model, names=names, **how)
    if sheet and pictures:
        draw_sheet(report, pictures, sheet)
    output.finish(report)
    for reason, left_out in report.data.dropna(subset="left_out").groupby("left_out", sort=False):
        first, n = left_out["caption_id"].iloc[0], len(left_out)
        click.echo(f"left out {first if n == 1 else f'{n:,}, such as {first}'}: {reason}", err=True)


def draw_sheet(report: "Report", source: Path, sheet: Path) -> None:
    """Draw the examples of a report with their pictures, or raise where there are none."""
    from obygaze_studies.audit_common.audit_figures import draw_examples
    from obygaze_studies.errors import AuditError
    from obygaze_studies.saliency.maps_file import find_pictures

    summary: Any = report.record["summary"]
    rows = summary["examples"]
    if not rows:
        raise AuditError("no caption was scored with both genders: there are no examples for --sheet")
    draw_examples(rows, find_pictures([row["image_id"] for row in rows], source), sheet)
    click.echo(f"examples with their pictures kept in {sheet}", err=True)


def _similarity(
    texts: Path | None, text_items: Path | None, sims: Path | None
) -> "tuple[Similarity, dict[str, object]]":
    from obygaze_studies.audit_common.embeddings import read_stored_text_ids
    from obygaze_studies.gender_score.belief_revision import embedded_similarity, read_similarities

    if sims is not None and texts is None:
        return read_similarities(sims), {"space": None, "texts": None, "n_partial": None}
    if sims is not None or texts is None:
        raise click.UsageError("Give either --texts or --sims.")
    (embedded,) = read_all(texts)
    origin: dict[str, object] = {
        "space": embedded.space,
        "texts": embedded.fingerprint,
        "n_partial": len(embedded.partial),
    }
    return embedded_similarity(embedded, read_stored_text_ids(texts, table=text_items)), origin


@click.command()
@click.option("--captions", type=FILE, required=True, help="CSV of captions: caption_id, caption.")
@click.option("--objects-list", type=FILE, required=True, help="Text file of objects, one per line.")
@PUBLISHED
@report_output(required=True, figure=True)
def cooc(captions: Path, objects_list: Path, model: str | None, output: ReportOutput) -> None:
    """Count co-occurrences of genders and objects in captions.

    Counts captions with the words man and woman, over all and for every object named in the caption, and the
    share of each (Zhao et al., EMNLP 2017).

    \b
    Examples:
      obygaze audit cooc --captions captions.csv --objects-list objects.txt \\
          --out cooc.csv
      obygaze audit cooc --captions captions.csv --objects-list objects.txt \\
          --published Vilbert \\
        --out cooc.csv --figure cooc.png
    """
    from obygaze_studies.audit_common.audit_tables import read_rows
    from obygaze_studies.gender_score.cooc import audit_cooc, read_objects_list

    output.check()
    rows = read_rows(captions, ["caption_id", "caption"], unique=["caption_id"])
    output.finish(audit_cooc([row["caption"] for row in rows], read_objects_list(objects_list), model=model))


@click.command()
@click.option(
    "--objects-list", type=FILE, required=True, help="Text file of the objects to tell apart, one per line."
)
@click.option("--images", type=PATH, help="Store of the images' embeddings (backbone clip).")
@click.option("--texts", type=PATH, help="Store of the prompts' embeddings (clip-text), in the same space.")
@click.option(
    "--prompt", default="a photo of a {}", show_default=True, help="Text of an object, which replaces {}."
)
@click.option(
    "--scale",
    type=click.FloatRange(0, min_open=True),
    default=100.0,
    show_default=True,
    help="Factor of the cosines in the softmax: exp(logit_scale) of the network, 100 for OpenAI's CLIPs.",
)
@click.option(
    "--top", type=click.IntRange(min=1), default=3, show_default=True, help="Number of objects per image."
)
@click.option(
    "--least",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="Smallest probability of an object.",
)
@click.option(
    "--list-texts",
    type=PATH,
    help="Write the prompts that need embeddings to this CSV (text_id, text), then stop.",
)
@report_output("CSV file of the objects (image_id, object, p_c); JSON, Markdown and LaTeX go beside it.")
def objects(
    objects_list: Path,
    images: Path | None,
    texts: Path | None,
    list_texts: Path | None,
    output: ReportOutput,
    **how: Any,
) -> None:
    """Find the objects of images with CLIP: objects.csv for gender-score.

    Compares each image's embedding with those of the listed objects and keeps the most probable ones
    (softmax of scaled cosines). The probabilities are relative to the list: an object that is not listed
    cannot be found, and one that is not there may still be the most probable.

    \b
    Examples:
      obygaze audit objects --objects-list objects.txt --list-texts prompts.csv
      obygaze extract prompts.csv stores/prompts --backbone clip-text
      obygaze extract images.csv stores/images --backbone clip
      obygaze audit objects --objects-list objects.txt --images stores/images \\
          --texts stores/prompts --out objects.csv
    """
    from obygaze_studies.audit_common.embeddings import read_stored_text_ids
    from obygaze_studies.gender_score.cooc import read_objects_list
    from obygaze_studies.gender_score.image_objects import audit_objects, prompts

    listed = read_objects_list(objects_list)
    if list_texts:
        list_texts_of(prompts(listed, how["prompt"]).values(), list_texts, "texts", force=output.force)
        return
    given = required(images=images, texts=texts, out=output.out)
    output.check()
    pictures, embedded = read_all(given["images"], given["texts"])
    output.finish(audit_objects(pictures, embedded, read_stored_text_ids(given["texts"]), listed, **how))
