"""`obygaze manifest stats`: count levels and concepts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import click

from obygaze_features.options import Answer, Number
from obygaze_features.signatures import Json, argument, command, option
from obygaze_studies.commands.output import Html, Replace, ReportOutput

if TYPE_CHECKING:
    from obygaze_features.manifest import LabelPolicy, Manifest


def parse_numbers(text: str) -> list[float]:
    """Parse numbers joined by commas."""
    try:
        return [Number().convert(part, None, None) for part in text.split(",")]
    except click.BadParameter:
        raise click.BadParameter(f"numbers joined by commas are expected, not {text!r}") from None


@command()
def stats(
    manifest: Annotated[Path, argument()],
    *,
    policy: Annotated[
        Literal["paper", "released", "raw", "all"],
        option(
            "Label policy for clips without a visual concept (see above). all: print the counts "
            "under every policy of the codebook."
        ),
    ] = "all",
    by: Annotated[
        str | None,
        option(
            "Count for each value of this column: annotator, movie, or an extra column such as "
            "year or genres.",
            metavar="COLUMN",
        ),
    ] = None,
    sets: Annotated[
        bool, option("Count sets and pairs of visual concepts by level, with exact tests.")
    ] = False,
    sweep: Annotated[
        list[float] | None,
        option(
            "Project free annotations onto clips at each of these thresholds, such as "
            "0.1,0.2,0.3,0.4, and count the clips of each level. A threshold is the share of a "
            "clip that an annotation must cover.",
            metavar="LIST",
            type=parse_numbers,
        ),
    ] = None,
    onto: Annotated[
        Path | None,
        option("With --sweep: manifest of the clips to label.  [default: windows of 46 s]"),
    ] = None,
    out: Annotated[
        Path | None,
        option(
            "With --by, --sets or --sweep: write the results to this folder (CSV, JSON, Markdown, LaTeX)."
        ),
    ] = None,
    html: Html = None,
    force: Replace = False,
    json: Json = False,
) -> Answer:
    """Count levels and concepts, as in section 3.4 and Figure 2 of Tores et al., CVPR 2024.

    A label policy says how clips without a visual concept are counted, if the codebook lists it:

    \b
    raw       as annotated
    paper     as EN (obygaze12, mobygaze)
    released  left out if all of their concepts are non-visual, as in the
              released split files (obygaze12)

    For the films of ObyGaze12, the numbers printed in the paper (policy `paper`) are shown beside ours.

    --by, --sets and --sweep print a report of one policy, by default the first of the codebook. --by tests
    for each value of the column whether more concepts are marked at higher levels. --sets tests which
    concepts are marked together, and whether a concept that is marked with others has the highest level
    more often than alone. All tests are exact, and compare clips only within films.

    \b
    Examples:
      obygaze manifest stats obygaze12.csv
      obygaze manifest stats obygaze12.csv --policy paper
      obygaze manifest stats segments.csv --by annotator
      obygaze manifest stats obygaze12.csv --by genres --out by-genre
      obygaze manifest stats obygaze12.csv --sets --html sets.html
      obygaze manifest stats segments.csv --sweep 0.1,0.2,0.3,0.4
      obygaze manifest stats obygaze12.csv --json
    """
    from obygaze_features.manifest import LabelPolicy, policies_of, read_manifest
    from obygaze_features.manifest import sweep as project_at
    from obygaze_studies.obygaze12 import composition
    from obygaze_studies.obygaze12.statistics import clips_onto

    _check_options(
        {"--by": by, "--sets": sets, "--sweep": sweep}, onto=onto, outputs={"--out": out, "--html": html}
    )
    output = ReportOutput(out, html, force=force, json=json)
    output.check()
    clips = read_manifest(manifest)
    policies = policies_of(clips.codebook) if policy == "all" else (LabelPolicy(policy),)
    report_policy = policies[0]  # a report is of one policy: the given one, or the codebook's first
    if by:
        return output.finish(composition.group_report(clips, by, report_policy))
    if sets:
        return output.finish(composition.composition_report(clips, report_policy))
    if sweep:
        target_clips, name_of_targets = clips_onto(clips, onto)
        projections = project_at(clips, target_clips, sweep)
        return output.finish(composition.sweep_report(projections, name_of_targets, report_policy))
    return _counts(manifest, clips, policies)


def _check_options(
    reports: Mapping[str, object], *, onto: Path | None, outputs: Mapping[str, Path | None]
) -> None:
    """Raise a UsageError if options of `stats` do not go together.

    Parameters
    ----------
    reports
        Option that asks for a report -> its value: --by, --sets and --sweep, of which one may be given.
    onto
        Value of --onto, which only --sweep takes.
    outputs
        Option that says where a report goes -> its value: --out and --html, which only reports take.
    """
    given_reports = [name for name, value in reports.items() if value]
    if len(given_reports) > 1:
        raise click.UsageError(f"{' and '.join(given_reports)} cannot be combined: give one.")
    if onto and "--sweep" not in given_reports:
        raise click.UsageError("--onto goes with --sweep: give both.")
    for name, value in outputs.items():
        if value and not given_reports:
            raise click.UsageError(f"{name} goes with --by or --sets or --sweep: give both.")


def _counts(path: Path, clips: "Manifest", policies: "Sequence[LabelPolicy]") -> Answer:
    """Count levels and concepts under each label policy; policies of equal counts are printed together.

    Parameters
    ----------
    path
        File of the manifest, named in the answer.
    clips
        The manifest.
    policies
        The label policies to count under.
    """
    from obygaze_features.manifest import apply_policy
    from obygaze_studies.obygaze12.statistics import as_text, printed_count_table, statistics

    printed = printed_count_table(clips)  # the numbers in the paper, if the films are those of ObyGaze12
    policies_with_text: dict[str, list[str]] = {}  # text of the counts -> the policies that have them
    records = {}
    for policy in policies:
        counts = statistics(apply_policy(clips, policy))
        records[str(policy)] = counts.record(printed)
        text = as_text(counts, len(clips), printed)
        policies_with_text.setdefault(text, []).append(str(policy))

    document = {
        "manifest": str(path),
        "digest": clips.digest(),
        "codebook": clips.codebook.name,
        "policies": records,
    }
    lines = [f"label policy {', '.join(names)}: {text}" for text, names in policies_with_text.items()]
    return Answer(document, text="\n".join(lines))
