"""`obygaze paper claims | all | figure4`: reproduce tables and figures of Tores et al., CVPR 2024."""

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import click

from obygaze_features.options import Answer, Number
from obygaze_features.signatures import Json, argument, command, option
from obygaze_studies.commands.output import Html, Replace, ReportOutput

OutOfAll = Annotated[Path, option("Write all results to this folder; only a part of them is printed.")]


def parse_tables(text: str) -> list[str]:
    """Parse names of tables and figures, joined by commas; return them in order of making."""
    from obygaze_studies.obygaze12.paper import TABLES

    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in TABLES:
            raise click.BadParameter(f"{name!r} is not one of {', '.join(TABLES)}, joined by commas")
    return [name for name in TABLES if name in names]


@command()
def claims(
    files: Annotated[tuple[Path, ...], argument()] = (),
    *,
    out: Annotated[
        Path | None, option("Write the results to this folder (CSV, JSON, Markdown, LaTeX).")
    ] = None,
    html: Html = None,
    force: Replace = False,
    json: Json = False,
) -> Answer:
    """Test sentences of the papers against released data; print an interval and a verdict for each.

    FILES can be a manifest of ObyGaze12, a manifest of MObyGaze's segments, predictions-strict-*.csv of
    `obygaze paper all`, the table of `obygaze film variables` for ObyGaze12's clips, and the counts of
    emotion words released with Wolfe et al. The command recognises them by their columns. If the file of a
    sentence is not given, the sentence is listed with the file that it needs. A few sentences need only the
    papers' printed tables.

    A sentence holds if all of its parts do. Each part is a number. A part holds if the number's 95 % interval
    lies inside the range that makes the part true, and the number outside of what chance gives. It fails if
    the interval lies outside of the range. Otherwise it is undecided, also if p (Holm over the tests on a
    file) is .05 or more.

    \b
    Examples:
      obygaze paper claims obygaze12.csv
      obygaze paper claims obygaze12.csv segments.csv --out claims
      obygaze paper claims obygaze12.csv segments.csv words.csv \\
            paper/predictions-strict-xclip.csv --json
    """
    from obygaze_studies.claims import claims_report

    output = ReportOutput(out, html, force=force, json=json)
    output.check()
    return output.finish(claims_report.claims(files))


@command("all")
def all_(
    manifest: Annotated[Path, argument()],
    stores: Annotated[tuple[Path, ...], argument(metavar="[STORE]...")] = (),
    *,
    only: Annotated[
        list[str] | None,
        option(
            "Make only these tables and figures, joined by commas: figure2, table2, table4, "
            "figure3, figure5, figure6.  [default: all of them]",
            metavar="NAME,...",
            type=parse_tables,
        ),
    ] = None,
    protocol: Annotated[
        Literal["strict", "paper", "both"],
        option(
            "strict: leave one movie out. paper: the published folds, which leak; needs a manifest imported "
            "from ObyGaze12's folder."
        ),
    ] = "both",
    policy: Annotated[
        Literal["paper", "released", "raw"],
        option(
            "Label policy for --protocol strict, as in `obygaze evaluate`. The protocol paper uses "
            "the labels of the split files."
        ),
    ] = "paper",
    seed: Annotated[int, option("Random seed.", type=click.IntRange(0))] = 0,
    out: OutOfAll,
    html: Html = None,
    force: Replace = False,
    json: Json = False,
) -> Answer:
    """Reproduce all tables and figures of section 4 and its appendices from STOREs, with an index.md.

    The labels of MANIFEST must have the levels, visual concepts and tasks of ObyGaze12. If the clips are
    ObyGaze12's, the papers' printed numbers are shown beside ours. The same command gives the same bytes,
    with any number of threads. Each table is written to OUT.partial as soon as it is made; if the command
    is stopped, the same command resumes from there.

    \b
    figure2  Figure 2 and section 3.4, levels and concepts by label policy;
             it needs no store
    table2   models, bottlenecks and baselines, beside the published numbers;
             with the LSMDC store also Table 5
    table4   90 pairs of films (paper) or each film left out once (strict)
    figure3  detection of each concept against clips without it
    figure5  the decision tree on concepts, drawn to four levels
    figure6  error analysis of the MLP by concept and level

    \b
    Examples:
      obygaze paper all obygaze12.csv stores/obygaze12-xclip --out paper
      obygaze paper all films.csv stores/films --protocol strict --policy raw \\
            --out paper
      obygaze paper all obygaze12.csv stores/xclip stores/vivit \\
            --only table2,figure6 --protocol strict --out table2
      obygaze paper all obygaze12.csv --only figure2 --out figure2
    """
    from obygaze_studies.obygaze12 import paper

    names = only or paper.TABLES
    needs_store = names != ["figure2"]
    if needs_store and not stores:
        raise click.UsageError("Missing argument 'STORE...': only figure2 needs none.")
    output = ReportOutput(out, html, force=force, json=json)
    prepare = partial(
        paper.prepare_study, names, manifest, stores, protocol=protocol, policy=policy, seed=seed
    )
    return output.run_study(prepare)


@command()
def figure4(
    segments: Annotated[Path, argument()],
    *,
    movie: Annotated[str, option("Id of the film to draw, as in SEGMENTS.")],
    onto: Annotated[
        Path | None, option("Manifest of the clips to project onto.  [default: windows of 46 s]")
    ] = None,
    span: Annotated[
        tuple[float, float] | None,
        option("Draw only this part of the film, in seconds.", metavar="START END", type=Number(min=0)),
    ] = None,
    out: OutOfAll,
    html: Html = None,
    force: Replace = False,
    json: Json = False,
) -> Answer:
    """Draw Figure 4 of arXiv 2401.13296: how the annotations of a film become labels of clips.

    The figure has a timeline of the free segments of each annotator, a timeline of their projection onto
    clips, and one of the merged labels. SEGMENTS is a manifest of free annotations, such as MObyGaze's. The
    free annotations of ObyGaze12 are not public.

    \b
    Examples:
      obygaze paper figure4 segments.csv --movie tt0467406 --out figure4
      obygaze paper figure4 segments.csv --movie tt0467406 --onto scenes.csv \\
            --span 600 1200 --out figure4-part
    """
    from obygaze_studies.obygaze12 import paper

    output = ReportOutput(out, html, force=force, json=json)
    return output.run_study(partial(paper.prepare_figure4, segments, movie, onto=onto, span=span))
