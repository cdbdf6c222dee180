"""`obygaze audit`: audit embeddings, captions and saliency for bias."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import click

from obygaze_features.options import EXISTING, Answer, Number
from obygaze_features.plugins import AUDITS, offered
from obygaze_features.signatures import Json, command, go_together, needed, option
from obygaze_studies.commands.output import CSV, PICTURE, Html, Replace, ReportOutput

if TYPE_CHECKING:
    from obygaze_studies.audit_common.embeddings import Embeddings
    from obygaze_studies.audit_common.inputs import Row

Out = Annotated[
    Path, option("CSV file to write; files with the endings .json and .md are written beside it.", type=CSV)
]
OutIfAny = Annotated[
    Path | None,
    option("CSV file to write; files with the endings .json and .md are written beside it.", type=CSV),
]
Wording = Annotated[
    Literal["code", "paper"],
    option(
        "Wording of the prompts. code: as in the authors' code, to compare with the paper's "
        "tables ('an angry person'). paper: as printed in the paper ('a angry person')."
    ),
]
Figure = Annotated[Path | None, option("Draw the results in this file (.pdf, .png or .svg).", type=PICTURE)]


class Audits(click.Group):
    """The group of audits: those of this package, then those of others (entry points `obygaze.audits`)."""

    def list_commands(self, _: click.Context) -> list[str]:
        """List the names in the order of the help."""
        return [*self.commands, *offered(AUDITS, click.Command)]

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        """Return the audit of a name; this package's come before those of other packages."""
        return self.commands.get(cmd_name) or offered(AUDITS, click.Command).get(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands with the first line of their help, which click would shorten."""
        summaries = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command:
                first_line = (command.help or "").split("\n", maxsplit=1)[0]
                summaries.append((name, first_line))
        with formatter.section("Commands"):
            formatter.write_dl(summaries)


# --- what several audits do
# ---------------------------------------------------------------------------
def read_store(path: Path) -> "Embeddings":
    """Read the embeddings of a store; print a note if some are of only a part of their item.

    An image or video may have been read in part, for example. The note has the number of such items and the
    reason of the first.
    """
    from obygaze_studies.audit_common.embeddings import read_embeddings

    embeddings = read_embeddings(path)
    if embeddings.partial:
        name, reason = next(iter(embeddings.partial.items()))
        counts = f"{len(embeddings.partial)} of {len(embeddings.rows)} embeddings"
        click.echo(f"{embeddings.where}: {counts} are partial, such as {name}: {reason}", err=True)
    return embeddings


def read_objects(paths: Sequence[Path]) -> "list[Row]":
    """Read the rows of several tables of objects into one list."""
    from obygaze_studies.gender_score import belief_revision

    rows: list[Row] = []
    for path in paths:
        rows += belief_revision.read_objects(path)
    return rows


def list_needed(texts: Sequence[str], path: Path, *, force: bool) -> Answer:
    """Write the texts that need embeddings to a CSV file, each with an id; answer that they were written.

    It is the answer of an audit that is run with --list-texts, before the embeddings are made.
    """
    from obygaze_studies.audit_common.findings import write_rows

    rows = [("text_id", "text")]
    rows += [(f"t{number:06}", text) for number, text in enumerate(texts)]
    return Answer(document=None, remarks=[write_rows(rows, path, "texts", force=force)])


# --- the audits
# ---------------------------------------------------------------------------


@command()
def words(
    *,
    captions: Annotated[
        Path,
        option(
            "CSV of captions with the columns image_id and caption. With --texts: caption_id and image_id.",
            type=EXISTING,
        ),
    ],
    texts: Annotated[
        Path | None, option("Read the captions from this text store, by their caption_id.")
    ] = None,
    items: Annotated[
        Path, option("CSV of images with the columns image_id, emotion, level and condition.", type=EXISTING)
    ],
    lists: Annotated[
        Path | None,
        option(
            "JSON file with the words of each emotion: {emotion: [words]}.  [default: the authors' "
            "lists for anger, sadness, happiness]",
            type=EXISTING,
        ),
    ] = None,
    min_total: Annotated[
        int,
        option(
            "Leave out words that occur less often than this in all captions together.",
            type=click.IntRange(0),
        ),
    ] = 100,
    ratio: Annotated[
        tuple[str, str] | None,
        option(
            "Two values of the column condition: divide the rate of the first by the rate of the second.",
            type=click.STRING,
        ),
    ] = None,
    out: Out,
    html: Html = None,
    force: Replace = False,
    json: Json = False,
    figure: Figure = None,
) -> Answer:
    """Count how often captions name the emotion an image is meant to show.

    For every emotion, level and condition of the images (columns of --items), count how often their
    captions use a word of the intended emotion, per 1,000 captions (Wolfe et al., FAccT 2023, section 4.3).

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
    from obygaze_studies import caption_words as study
    from obygaze_studies.audit_common.inputs import read_items

    output = ReportOutput(out, html, force=force, json=json, figure=figure, beside=True)
    output.check(out)
    word_lists = study.read_lists(lists) if lists else study.EMOTION_WORDS
    captions_read = study.read_captions(captions, texts)
    items_read = read_items(items)
    words_of_image = study.find_words(captions_read.pairs, word_lists)
    report = study.audit_words(
        words_of_image,
        items_read,
        lists=word_lists,
        min_total=min_total,
        ratio=ratio,
        read=captions_read,
    )
    return output.finish(report)


@command()
def alpha(
    *,
    ratings: Annotated[
        Path, option("CSV of ratings: the column item_id and one column per rater.", type=EXISTING)
    ],
    pairs: Annotated[bool, option("Also report alpha for every pair of raters.")] = False,
    out: Out,
    html: Html = None,
    force: Replace = False,
    json: Json = False,
    figure: Figure = None,
) -> Answer:
    """Compute Cronbach's alpha of the ratings that several raters gave to the same items.

    Items with a missing rating (an empty cell) are left out and counted. If alpha is undefined, the reason
    is printed.

    \b
    Examples:
      obygaze audit alpha --ratings ratings.csv --out alpha.csv
      obygaze audit alpha --ratings ratings.csv --pairs --out alpha.csv \\
            --figure alpha.svg
    """
    from obygaze_studies.alpha import audit_alpha, read_ratings

    output = ReportOutput(out, html, force=force, json=json, figure=figure, beside=True)
    output.check(out)
    return output.finish(audit_alpha(read_ratings(ratings), pairs=pairs))


@command()
def saliency(
    *,
    maps: Annotated[Path, option("Zarr store of maps, written by 'obygaze gradcam'.")],
    roi: Annotated[
        Path | None,
        option(
            "CSV of regions, in pixels of the 224 x 224 map, with the columns image_id, roi, y0, x0, y1, x1.",
            type=EXISTING,
        ),
    ] = None,
    overlays: Annotated[
        Path | None, option("Write pictures of the maps, laid over their images, to this folder.")
    ] = None,
    pictures: Annotated[
        Path | None, option("For --overlays: manifest of the images (its clip_id is the image_id).")
    ] = None,
    out: Out,
    html: Html = None,
    force: Replace = False,
    json: Json = False,
    figure: Figure = None,
) -> Answer:
    """Measure Grad-CAM maps of image-text similarity in given regions.

    A map without any positive value is marked as empty, and is left out of the means of shares and hits.
    The figure shows the mean map of every group of pairs. It shows no image; overlays on the images are
    written only with --overlays.

    \b
    Examples:
      obygaze audit saliency --maps maps.zarr --roi faces.csv \\
            --out faces-found.csv --figure maps.png
      obygaze audit saliency --maps maps.zarr --out maps.csv \\
            --overlays laid --pictures stills.csv
    """
    from obygaze_studies.saliency.maps_file import audit_maps, draw_overlays, read_maps, read_regions

    go_together({"overlays": overlays, "pictures": pictures})
    output = ReportOutput(out, html, force=force, json=json, figure=figure, beside=True)
    output.check(overlays, out)
    maps_read = read_maps(maps)
    report = audit_maps(maps_read, read_regions(roi) if roi else None)
    if overlays and pictures:
        draw_overlays(maps_read, pictures, overlays)
        click.echo(f"pictures kept in {overlays}", err=True)
    return output.finish(report)


@command()
def eat(
    *,
    images: Annotated[Path | None, option("Store of the images' embeddings (the targets).")] = None,
    texts: Annotated[
        Path | None, option("Store of the prompts' embeddings (the attributes), of the same network.")
    ] = None,
    text_items: Annotated[
        Path | None,
        option(
            "CSV with the texts of --texts: columns text_id and text.  [default: the texts in the store]",
            type=EXISTING,
        ),
    ] = None,
    items: Annotated[
        Path | None,
        option(
            "CSV of the images: item_id and the columns by which tests select images.  [default: "
            "read from the file names of SOBEM]",
            type=EXISTING,
        ),
    ] = None,
    tests: Annotated[
        str,
        option(
            "table1 or table2: the tests of that table of the paper. FILE.json: your own tests.",
            type=click.STRING,
        ),
    ] = "table1",
    variant: Wording = "code",
    seed: Annotated[int, option("Seed of the sampled permutations.", type=click.IntRange(0))] = 0,
    published: Annotated[
        str | None,
        option("Also show the published values of this model of the paper's tables, such as 'CLIP RN50'."),
    ] = None,
    out: OutIfAny = None,
    html: Html = None,
    force: Replace = False,
    json: Json = False,
    figure: Figure = None,
) -> Answer | None:
    """Run embedding association tests (EAT) between two sets of images and two sets of texts.

    A test asks whether one set of images is nearer to one set of texts than the other set of images is
    (Wolfe et al., FAccT 2023). For every test, report the effect size d (their eq. 1) and two one-sided p:
    from a normal distribution, and from permutations, all of them or a sample. A star marks a normal p
    below .05 in either tail, as in the paper's tables.

    The tests need embeddings of the prompts: `obygaze audit eat prompts` writes the prompts, and `obygaze
    extract` encodes them (examples).

    \b
    Examples:
      obygaze audit eat prompts --out prompts.csv
      obygaze extract prompts.csv stores/prompts --backbone clip-text
      obygaze audit eat --images stores/sobem --texts stores/prompts --out eat.csv
      obygaze audit eat --images stores/jobs --texts stores/prompts \\
            --items jobs.csv --tests table2 \\
            --published 'CLIP RN50' --out eat.csv --figure eat.png
    """
    from obygaze_studies.audit_common.inputs import read_items, read_text_ids
    from obygaze_studies.eat import audit_eat
    from obygaze_studies.eat_stimuli import choose_tests, sobem_items

    if click.get_current_context().invoked_subcommand is not None:
        # `eat prompts`, which click calls next. It needs none of these options, so that all are optional.
        return None
    images = needed(images, "images")
    texts = needed(texts, "texts")
    out = needed(out, "out")
    output = ReportOutput(out, html, force=force, json=json, figure=figure, beside=True)
    output.check(out)
    targets = read_store(images)
    attributes = read_store(texts)
    columns_of_item = read_items(items) if items else sobem_items(tuple(targets.rows))
    listed_texts = read_text_ids(text_items) if text_items else None
    report = audit_eat(
        targets,
        attributes,
        items=columns_of_item,
        tests=choose_tests(tests),
        text_ids=attributes.text_ids(listed_texts),
        variant=variant,
        seed=seed,
        model=published,
    )
    return output.finish(report)


@command()
def groups(
    *,
    items: Annotated[
        Path, option("CSV of the items: item_id and the columns that other options name.", type=EXISTING)
    ],
    outcome: Annotated[
        str,
        option(
            "Column whose mean is estimated. If it holds only 0 and 1, the mean is a share.", metavar="COLUMN"
        ),
    ],
    by: Annotated[
        tuple[str, ...], option("Column of an attribute, such as gender; repeatable.", metavar="COLUMN")
    ],
    out: Out,
    html: Html = None,
    force: Replace = False,
) -> Answer:
    """Estimate a mean or share in every group of items, such as every combination of gender and age.

    A group (cell) is a combination of values of the attributes --by. The estimate of a group with few items
    is shrunken towards an additive model, the sum of its attributes' effects. It is shrunken more if the
    other groups follow this model more closely. If the outcome is 0 or 1, the effects add up on the logit
    scale. The 95 % intervals cover .93 to .97 of the true means in simulations. Items are taken as
    independent.

    \b
    Examples:
      obygaze audit groups --items captions.csv --outcome names_woman \\
            --by gender --by age --by skin --out groups.csv
    """
    from obygaze_studies.audit_common.inputs import read_items
    from obygaze_studies.groups import audit_groups

    output = ReportOutput(out, html, force=force, beside=True)
    output.check(out)
    return output.finish(audit_groups(read_items(items), outcome=outcome, by=by))


@command()
def erase(
    *,
    images: Annotated[Path, option("Store of the items' embeddings.")],
    items: Annotated[
        Path, option("CSV of the items: item_id and the columns that other options name.", type=EXISTING)
    ],
    attribute: Annotated[str, option("Column of --items to erase; it has two values.", metavar="COLUMN")],
    films: Annotated[str, option("Column of --items with the film of each item.", metavar="COLUMN")],
    task: Annotated[
        str | None,
        option(
            "Column of --items with two values that a probe should still predict afterwards.",
            metavar="COLUMN",
        ),
    ] = None,
    texts: Annotated[
        Path | None, option("Store of the embeddings of the texts of --tests, of the same network.")
    ] = None,
    tests: Annotated[
        str | None,
        option(
            "Embedding association tests to run: table1, table2 or a JSON file, as for 'audit eat'.",
            type=click.STRING,
        ),
    ] = None,
    erased: Annotated[Path | None, option("Write the embeddings after erasing to this CSV file.")] = None,
    seed: Annotated[
        int, option("Seed of the draw of the films that the eraser is fitted on.", type=click.IntRange(0))
    ] = 0,
    out: Out,
    html: Html = None,
    force: Replace = False,
) -> Answer:
    """Erase an attribute from embeddings (LEACE); measure what is left of the attribute, and the cost.

    Fit the eraser on two thirds of the films. Then compare three measures before and after erasing, on
    these films and on the other films: a linear probe of the attribute, a linear probe of --task, and
    embedding association tests.

    On the films that the eraser was fitted on, the probe of the attribute learns nothing and the effect d
    of the tests is 0, by construction. The other films show what is left of the attribute: by their d, and
    by probes that are trained on some of them and tested on others.

    \b
    Examples:
      obygaze audit erase --images stores/stills --items stills.csv \\
            --attribute gender --films movie --task level --out erased.csv
      obygaze audit erase --images stores/stills --items stills.csv \\
            --attribute gender --films movie --texts stores/prompts \\
            --tests mine.json --erased vectors.csv --out erased.csv
    """
    from obygaze_studies.audit_common.inputs import read_items
    from obygaze_studies.eat_stimuli import choose_tests
    from obygaze_studies.erasure import audit_erase

    go_together({"tests": tests, "texts": texts})
    output = ReportOutput(out, html, force=force, beside=True)
    output.check(out)
    report = audit_erase(
        read_store(images),
        read_items(items),
        attribute=attribute,
        films=films,
        task=task,
        texts=read_store(texts) if texts else None,
        tests=choose_tests(tests) if tests else None,
        erased=erased,
        seed=seed,
    )
    return output.finish(report)


def _check_score_options(
    sheet: Path | None, pictures: Path | None, mode: str, texts: Path | None, sims: Path | None
) -> None:
    """Raise a UsageError if options of `gender-score` do not go together.

    Each parameter is the value of the option of this name, None if it is not given.
    """
    if sheet and not pictures:
        raise click.UsageError("--sheet goes with --pictures: give both.")
    if sheet and mode != "ge":
        raise click.UsageError("--sheet goes with --mode ge: give both.")
    if (texts is None) == (sims is None):
        raise click.UsageError("Give either --texts or --sims.")


def _read_captions(path: Path) -> "tuple[Row, ...]":
    """Read the captions of `gender-score`: rows of caption_id, image_id, caption."""
    from obygaze_studies.audit_common.inputs import read_rows

    return read_rows(path, ["caption_id", "image_id", "caption"], unique=["caption_id"])


@command("gender-score")
def gender_score(
    *,
    captions: Annotated[
        Path, option("CSV of captions with the columns caption_id, image_id and caption.", type=EXISTING)
    ],
    objects: Annotated[
        tuple[Path, ...],
        option(
            "CSV of the objects that a classifier or detector found in the images, with the columns "
            "image_id, object and p_c (its confidence, 0 to 1), or usual headings such as image, label and "
            "score; repeatable.",
            type=EXISTING,
        ),
    ],
    lm: Annotated[
        Path | None,
        option(
            "CSV of the captions' priors, as `obygaze lm` writes it, with the columns text and lm_mean. "
            "Needed unless --list-texts.",
            type=EXISTING,
        ),
    ] = None,
    texts: Annotated[
        Path | None,
        option(
            "Store of the embeddings of captions and names of objects, made with 'extract --backbone "
            "sentence'. Give this or --sims."
        ),
    ] = None,
    text_items: Annotated[
        Path | None,
        option(
            "CSV with the texts of --texts: columns text_id and text.  [default: the texts in the store]",
            type=EXISTING,
        ),
    ] = None,
    sims: Annotated[
        Path | None,
        option(
            "CSV of similarities of captions and names of objects, with the columns text, object and sim, "
            "instead of --texts.",
            type=EXISTING,
        ),
    ] = None,
    mode: Annotated[
        Literal["gs", "ge"],
        option(
            "gs: score each caption as it is. ge: score each caption twice, with man and with woman in the "
            "place of [MASK], <MASK> or the gender that it names, and compare the two scores."
        ),
    ] = "gs",
    labels: Annotated[
        Literal["each", "joined"],
        option(
            "For an image with several objects. each: score the caption with each of them, and take the "
            "mean. joined: join their names to one text, and score the caption with it."
        ),
    ] = "each",
    list_texts: Annotated[
        Path | None,
        option(
            "Write the captions and names of objects that need priors and embeddings to this CSV (columns "
            "text_id and text), then stop."
        ),
    ] = None,
    objects_list: Annotated[
        Path | None,
        option(
            "Text file of the objects, one per line, for which scores are reported.  [default: "
            "every label of --objects]",
            type=EXISTING,
        ),
    ] = None,
    sheet: Annotated[
        Path | None,
        option(
            "With --mode ge and --pictures: draw the example captions with their images in this "
            "file (.pdf, .png or .svg).",
            type=PICTURE,
        ),
    ] = None,
    pictures: Annotated[
        Path | None, option("For --sheet: manifest of the images (its clip_id is the image_id).")
    ] = None,
    published: Annotated[
        str | None,
        option(
            "Also show the published values of this captioning model (Sabir and Padró, 2023): "
            "Transformer, AoANet, Vilbert, OSCAR, BLIP, TraCLIPS-Reward or BLIP-2."
        ),
    ] = None,
    out: OutIfAny = None,
    html: Html = None,
    force: Replace = False,
    json: Json = False,
    figure: Figure = None,
) -> Answer:
    """Compute Gender Scores: how likely a caption's gender is, given the objects in the image.

    A language model says how probable a caption is by itself: this is the caption's prior. The Gender Score
    is the prior, revised by how similar the caption is to the names of the objects that a classifier found
    in the image (Sabir and Padró, 2023). Scores of captions with man and with woman are then compared.
    There are three steps:

    \b
    1. --list-texts texts.csv lists all captions and names of objects.
    2. `obygaze lm texts.csv` computes their priors, and
       `obygaze extract texts.csv --backbone sentence` their embeddings.
    3. This command, with --lm and --texts, computes the scores.

    Scores are reported for each caption, gender and object. For each object and gender the mean similarity
    is reported too (Gender Object Distance). With --mode ge, example captions are shown: those scored most
    as man, most as woman, and nearest to equal. Captions without a prior, an object or an embedding are left
    out, and listed with the reason.

    \b
    Examples:
      obygaze audit gender-score --captions captions.csv --objects objects.csv \\
            --mode ge --list-texts texts.csv
      obygaze audit gender-score --captions captions.csv --objects objects.csv \\
            --mode ge --lm lm.csv --texts stores/texts --out ge.csv \\
            --figure ge.png --sheet examples.png --pictures val2014.csv
      obygaze audit gender-score --captions captions.csv --objects objects.csv \\
            --lm lm.csv --sims sims.csv --labels joined --out gs.csv
    """
    from obygaze_studies.audit_common.inputs import read_names, read_text_ids
    from obygaze_studies.gender_score import belief_revision as beliefs
    from obygaze_studies.gender_score.gender_audit import audit_gender_score, draw_sheet, needed_texts

    if list_texts:
        # The texts come first: their embeddings and priors are inputs of the audit in a later call.
        listed = needed_texts(_read_captions(captions), read_objects(objects), mode, labels)
        return list_needed(listed, list_texts, force=force)

    # Without --list-texts, some options are needed.
    lm = needed(lm, "lm")
    out = needed(out, "out")
    _check_score_options(sheet, pictures, mode, texts, sims)
    output = ReportOutput(out, html, force=force, json=json, figure=figure, beside=True)
    output.check(sheet, out)

    captions_read = _read_captions(captions)
    objects_read = read_objects(objects)
    embeddings = read_store(texts) if texts else None
    listed_texts = read_text_ids(text_items) if text_items else None
    similarities = beliefs.read_similarities(sims) if sims else ()
    # What computes the scores, and where its priors and similarities come from
    scorer, origin = beliefs.scorer_of(lm, embeddings, listed_texts, similarities)
    report = audit_gender_score(
        captions_read,
        beliefs.objects_by_image(objects_read),
        scorer,
        mode=mode,
        labels=labels,
        origin=origin,
        model=published,
        names=read_names(objects_list) if objects_list else None,
    )
    if sheet and pictures:
        draw_sheet(report, pictures, sheet)
        click.echo(f"pictures kept in {sheet}", err=True)
    return output.finish(report)


@command()
def objects(
    *,
    objects_list: Annotated[
        Path | None,
        option(
            "Text file of the objects to look for, one per line.  [default: all classes of a "
            "classifier's answers]",
            type=EXISTING,
        ),
    ] = None,
    images: Annotated[
        Path | None,
        option("Store of the images: their embeddings (backbone clip), or a classifier's answers."),
    ] = None,
    texts: Annotated[
        Path | None, option("Store of the prompts' embeddings (backbone clip-text), of the same network.")
    ] = None,
    scale: Annotated[
        float,
        option(
            "Factor of the cosines in the softmax: exp(logit_scale) of the network, which is 100 "
            "for OpenAI's CLIPs.",
            type=Number(min=0, min_open=True),
        ),
    ] = 100.0,
    least: Annotated[
        float, option("Leave out objects with a smaller probability.", type=Number(min=0, max=1))
    ] = 0.0,
    list_texts: Annotated[
        Path | None,
        option("Write the prompts that need embeddings to this CSV (columns text_id and text), then stop."),
    ] = None,
    out: Annotated[
        Path | None,
        option(
            "CSV file to write, with the columns image_id, object and p_c (probability); files "
            "with the endings .json and .md are written beside it.",
            type=CSV,
        ),
    ] = None,
    html: Html = None,
    force: Replace = False,
) -> Answer:
    """Find the objects of images with CLIP or with a classifier, for `obygaze audit gender-score`.

    The table has the three most probable objects of each image. With --texts, they are those whose
    embeddings are nearest to the image's (softmax of scaled cosines). The probabilities are then relative
    to the list: an object that is not listed cannot be found, and an object that is not in the image may
    still be the most probable.

    Without --texts, the store of --images must have the answers of a classifier (`obygaze extract
    --answers`), the probabilities of its own classes. --objects-list then limits the table to the listed
    classes.

    \b
    Examples:
      obygaze audit objects --images stores/stills --out objects.csv
      obygaze audit objects --objects-list objects.txt --list-texts prompts.csv
      obygaze extract prompts.csv stores/prompts --backbone clip-text
      obygaze extract images.csv stores/images --backbone clip
      obygaze audit objects --objects-list objects.txt --images stores/images \\
            --texts stores/prompts --out objects.csv
    """
    from obygaze_studies.audit_common.embeddings import read_answers
    from obygaze_studies.audit_common.inputs import read_names
    from obygaze_studies.gender_score.image_objects import audit_answers, audit_objects, needed_texts

    names = None if objects_list is None else read_names(objects_list)
    if list_texts:
        # The prompts come first: their embeddings are an input of the audit in a later call.
        prompts = needed_texts(needed(names, "objects-list"))
        return list_needed(prompts, list_texts, force=force)

    images = needed(images, "images")
    out = needed(out, "out")
    output = ReportOutput(out, html, force=force, beside=True)
    output.check(out)

    # The images' store may have the answers of a classifier, which are used as they are.
    if texts is None:
        answers = read_answers(images)
        if answers is not None:
            return output.finish(audit_answers(answers, names, minimum=least))

    # The images' store has embeddings, which are compared with those of the listed objects.
    texts = needed(texts, "texts")
    names = needed(names, "objects-list")
    report = audit_objects(read_store(images), read_store(texts), names, scale=scale, minimum=least)
    return output.finish(report)


@command()
def cooc(
    *,
    captions: Annotated[
        Path, option("CSV of captions with the columns caption_id and caption.", type=EXISTING)
    ],
    objects_list: Annotated[
        Path, option("Text file of the objects to look for in captions, one per line.", type=EXISTING)
    ],
    published: Annotated[
        str | None,
        option(
            "Also show the published values of this captioning model (Sabir and Padró, 2023): "
            "Transformer, AoANet, Vilbert, OSCAR, BLIP, TraCLIPS-Reward or BLIP-2."
        ),
    ] = None,
    out: Out,
    html: Html = None,
    force: Replace = False,
    json: Json = False,
    figure: Figure = None,
) -> Answer:
    """Count how often captions that name an object also name a gender.

    For every object, count the captions that name the object together with the word man, and those that
    name it with the word woman. Report the share of each gender among these (Zhao et al., EMNLP 2017). The
    first row counts all captions. The plurals men and women do not count as naming a gender.

    \b
    Examples:
      obygaze audit cooc --captions captions.csv --objects-list objects.txt \\
            --out cooc.csv
      obygaze audit cooc --captions captions.csv --objects-list objects.txt \\
            --published Vilbert \\
            --out cooc.csv --figure cooc.png
    """
    from obygaze_studies.audit_common.inputs import read_names, read_rows
    from obygaze_studies.gender_score.cooc import audit_cooc

    output = ReportOutput(out, html, force=force, json=json, figure=figure, beside=True)
    output.check(out)
    rows = read_rows(captions, ["caption_id", "caption"], unique=["caption_id"])
    return output.finish(audit_cooc(rows, read_names(objects_list), model=published))


@command("prompts")
def eat_prompts(
    *,
    variant: Wording = "code",
    out: Annotated[Path, option("CSV file to write, with the columns text_id, text and list.")],
    force: Replace = False,
) -> Answer:
    """Write the prompts of the tests of Wolfe et al. to a CSV.

    The tests are the embedding association tests (EAT) of Wolfe et al., FAccT 2023. `obygaze extract`
    encodes the prompts into a store, which `obygaze audit eat --texts` reads.

    \b
    Examples:
      obygaze audit eat prompts --out prompts.csv
      obygaze extract prompts.csv stores/prompts --backbone clip-text
      obygaze audit eat prompts --variant paper --out prompts-paper.csv
    """
    from obygaze_studies.eat_stimuli import write_prompts

    return write_prompts(variant, out, force=force)


@click.group(cls=Audits)
def audit() -> None:
    """Audit embeddings, captions and saliency for bias.

    \b
    Examples:
      obygaze audit alpha --ratings ratings.csv --out alpha.csv
    """


eat_group = click.Group(
    "eat", callback=eat.callback, params=eat.params, help=eat.help, invoke_without_command=True
)
eat_group.add_command(eat_prompts)
for audit_command in (words, alpha, saliency, eat_group, groups, erase, gender_score, objects, cooc):
    audit.add_command(audit_command)
