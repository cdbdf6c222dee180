"""`obygaze manifest stats` and `obygaze folds`: count a corpus, list its folds."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from obygaze_features.screen import table
from obygaze_models.commands import TASK_OPTIONS
from obygaze_studies.commands.declared import declared
from obygaze_studies.commands.output import ReportOutput, report_output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from obygaze_features.manifest import LabelPolicy, Manifest
    from obygaze_models.report import Report
    from obygaze_studies.obygaze12.statistics import Statistics

PAPER_LABELS = "the paper protocol's folds are those of the released split files: its --policy is released"

MOVIES_ARE_PAPERS = "--movies is for the paper protocol; strict leaves one movie out anyway"

ONLY_CONCEPTS = "--against is for --task concept:NAME: the levels of the clips without the concept"


@click.command()
@declared("manifest stats")
@report_output(
    "With --by, --sets or --sweep: write the results to this folder (CSV, JSON, Markdown, LaTeX).",
    beside=False,
)
def stats(
    manifest: Path,
    policy: str,
    column: str | None,
    sets: bool,
    sweep: str | None,
    onto: Path | None,
    window: float | None,
    output: ReportOutput,
) -> None:
    """Count levels and concepts, as in section 3.4 and Figure 2 of Tores et al., CVPR 2024.

    Label policies are for the codebooks that list them: `paper` (obygaze12, mobygaze) makes a clip with no
    visual concept EN; `released` (obygaze12) leaves out the clips whose concepts are all non-visual, as the
    released split files do; `raw` is as annotated. For the films of ObyGaze12 the printed numbers, which
    follow `paper`, stand beside ours.

    --by, --sets and --sweep are reports of one policy, by default the first of the codebook. --by tests in
    each group whether more concepts are marked at higher levels; --sets tests which concepts are marked
    together, and whether a concept with others is more often of the highest level than alone. All tests are
    exact and keep films apart.

    \b
    Examples:
      obygaze manifest stats obygaze12.csv
      obygaze manifest stats obygaze12.csv --policy paper
      obygaze manifest stats segments.csv --by annotator
      obygaze manifest stats obygaze12.csv --by genres --out by-genre
      obygaze manifest stats obygaze12.csv --sets --html sets.html
      obygaze manifest stats segments.csv --sweep 0.1,0.2,0.3,0.4 --window 46
      obygaze manifest stats obygaze12.csv --json
    """
    from obygaze_features.manifest import (
        LabelPolicy,
        apply_policy,
        policies_of,
        read_manifest,
    )
    from obygaze_studies.obygaze12.statistics import printed_count_table, statistics

    given = {"--by": column, "--sets": sets or None, "--sweep": sweep}
    views = [name for name, value in given.items() if value is not None]
    if len(views) > 1:
        raise click.UsageError(f"{' and '.join(views)} are different reports: ask for one at a time")
    for needed, asked, more in (
        ("--sweep", sweep is not None, {"--onto": onto, "--window": window}),
        ("--by, --sets or --sweep", bool(views), {"--out": output.out, "--html": output.html}),
    ):
        if not asked and (misplaced := [name for name, value in more.items() if value is not None]):
            raise click.UsageError(f"{misplaced[0]} is for {needed}")
    output.check()
    clips = read_manifest(manifest)
    if views:
        from obygaze_studies.obygaze12.composition import composition_report, group_report

        chosen = policies_of(clips.codebook)[0] if policy == "all" else LabelPolicy(policy)
        if sweep is not None:
            report = _sweep(clips, sweep, onto, window, chosen)
        else:
            report = group_report(clips, column, chosen) if column else composition_report(clips, chosen)
        output.finish(report)
        return
    policies = policies_of(clips.codebook) if policy == "all" else (LabelPolicy(policy),)
    counted = {str(name): statistics(apply_policy(clips, name)) for name in policies}
    printed = printed_count_table(clips)
    document = {
        "manifest": str(manifest),
        "digest": clips.digest(),
        "codebook": clips.codebook.name,
        "policies": {name: counts.record(printed) for name, counts in counted.items()},
    }
    named: dict[str, list[str]] = {}  # the same numbers once, under the names of all policies that give them
    for name, counts in counted.items():
        named.setdefault(_policy_text(counts, len(clips), printed), []).append(name)
    shown = (f"label policy {', '.join(names)}: {text}" for text, names in named.items())
    output.show(document, lambda: "\n".join(shown))


def _sweep(
    annotations: "Manifest", thresholds: str, onto: Path | None, window: float | None, policy: "LabelPolicy"
) -> "Report":
    from obygaze_features.manifest import sweep
    from obygaze_studies.obygaze12.composition import sweep_report

    try:
        values = [float(part) for part in thresholds.split(",")]
    except ValueError:
        raise click.BadParameter(
            f"numbers joined by commas are expected, such as 0.1,0.2,0.3,0.4, not {thresholds!r}",
            param_hint="--sweep",
        ) from None
    clips, what = clips_onto(annotations, onto, window)
    return sweep_report(sweep(annotations, clips, values), what, policy)


def clips_onto(annotations: "Manifest", onto: Path | None, window: float | None) -> "tuple[Manifest, str]":
    """Return the clips to project annotations onto, by default windows of them, and what they are."""
    from obygaze_features.manifest import DEFAULT_WINDOW_S, read_manifest, windows

    if onto is not None and window is not None:
        raise click.UsageError("--onto and --window cannot be combined: each says what to project onto")
    if onto is not None:
        return read_manifest(onto), f"the clips of {onto.name}"
    seconds = DEFAULT_WINDOW_S if window is None else window
    return windows(annotations, seconds), f"windows of {seconds:g} s"


def _policy_text(counted: "Statistics", n_read: int, printed: "Mapping[str, str]") -> str:
    """Write the counts under a label policy: a line, and tables, each with an empty line after it."""
    from obygaze_studies.columns import share
    from obygaze_studies.obygaze12.statistics import count_table

    levels, visual = counted.codebook.level_names, counted.codebook.visual_concepts
    title = (
        f"{counted.n_clips:,} clips, {counted.unlabelled:,} without level, "
        f"{n_read - counted.n_clips:,} left out by the policy"
    )
    numbers = [
        [number.name, number.shown, *([printed.get(number.name, "")] if printed else [])]
        for number in count_table(counted)
    ]
    tables = [
        (["level", *levels], [["clips", *(f"{counted.clips[level]:,}" for level in levels)]]),
        (["share or mean", *(["ours", "printed"] if printed else ["value"])], numbers),
    ]
    if counted.codebook.concepts:
        with_any = [level for level in levels if any(counted.with_concept[level].values())]
        with_visual = [level for level in with_any if counted.mean_concepts(level)]
        rows = []
        for concept in counted.codebook.concept_names:
            clips = [share(counted.share_of_clips(level, concept)) for level in with_any]
            marks = [share(counted.share_of_marks(level, concept)) for level in with_visual]
            if concept in visual:
                rows.append([concept, *clips, *marks])
            else:
                rows.append([f"{concept} (not visual)", *clips, *("" for _ in marks)])
        headings = [f"of {level}\nclips" for level in with_any]
        headings += [f"of {level}\nmarks" for level in with_visual]
        tables.append((["concept", *headings], rows))
    texts = [table(rows, headers, right=range(1, len(headers))) for headers, rows in tables]
    return "\n\n".join([title, *texts]) + "\n"


@click.command()
@declared("folds before")
@TASK_OPTIONS
@declared("folds after")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, with every clip id.")
def folds(
    manifest: Path,
    protocol: Literal["strict", "paper"],
    task: str | None,
    test: str | None,
    negative: tuple[str, ...],
    positive: tuple[str, ...],
    against: tuple[str, ...],
    movies: bool,
    policy: str | None,
    as_json: bool,
) -> None:
    """Print the training and test folds of the clips of MANIFEST.

    Under strict, every movie is tested once against all others and folds have no validation side: selection
    uses an inner loop over the training movies. Under paper, the folds are those behind the published
    numbers: eight for the classifiers (fold 9 for test, fold k for validation), nine for the CAVs, and with
    --movies one fold per pair of films, named after both. They need a manifest imported from
    ObyGaze12's folder, and leave out the clips without a video, as the paper did. Test clips that a fold also
    trains or validates on are counted.

    \b
    Examples:
      obygaze folds obygaze12.csv --task hn_s --test enhn_s
      obygaze folds films.csv --task concept:Gun --json
      obygaze folds obygaze12.csv --protocol paper --task hn_s --test enhn_s \\
          --movies
      obygaze folds obygaze12.csv --protocol paper --task concept:Body \\
          --against EN --json
    """
    from obygaze_features.manifest import LabelPolicy
    from obygaze_models.commands import read_inputs
    from obygaze_models.protocol import choose_targets, concept_target
    from obygaze_studies.obygaze12.paper_folds import list_folds

    if protocol == "paper" and policy not in {None, "released"}:
        raise click.UsageError(PAPER_LABELS)
    if movies and protocol == "strict":
        raise click.UsageError(MOVIES_ARE_PAPERS)
    clips, _ = read_inputs(manifest, [])
    trained, tested = choose_targets(clips.codebook, task, test, sides=(negative, positive))
    if trained.kind != tested.kind:
        raise click.UsageError(f"a model of {trained.name} can't be tested on {tested.name}")
    if against and (trained.kind != "concept" or tested != trained):
        raise click.UsageError(ONLY_CONCEPTS)
    if against:
        trained = tested = concept_target(trained.concept, clips.codebook, against)
    listed = list_folds(clips, trained, tested, protocol, policy=LabelPolicy(policy or "raw"), movies=movies)
    if as_json:
        click.echo(json.dumps(listed, indent=1, ensure_ascii=False))
        return
    rows = [
        [
            f"{fold['fold']} {fold['test_movie']}" if protocol == "strict" else fold["fold"],
            *(len(fold[side]) for side in ("train", "validation", "test")),
            *fold["leaks"].values(),
        ]
        for fold in listed["folds"]
    ]
    headers = ["fold", "train", "validation", "test", "test clips\nin training", "test clips\nin validation"]
    click.echo(table(rows, headers, right=range(1, 6)))
    click.echo()
    click.echo(f"task {trained.name}, test {tested.name}")
    click.echo(f"protocol {protocol}, label policy {listed['policy']}")
    for note in listed["notes"]:
        click.echo(note)
