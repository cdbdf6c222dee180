"""`obygaze audit words`, `alpha`: audits of captions and of ratings, without any embedding."""

from pathlib import Path

import click

from obygaze_studies.commands.audit_output import FILE, PATH, REQUIRED_OUTPUT, TEXTS_BACKBONE, check, finish


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
    from obygaze_studies.audits.tables import read_items
    from obygaze_studies.gender_score.captions import read_captions
    from obygaze_studies.words import EMOTION_WORDS, audit_words, count_words, read_lists

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
