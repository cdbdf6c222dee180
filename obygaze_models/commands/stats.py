"""`obygaze manifest stats`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from obygaze_features.screen import table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from obygaze_features.manifest import Statistics


@click.command()
@click.argument("manifest", type=click.Path(path_type=Path))
@click.option(
    "--policy",
    type=click.Choice(["paper", "released", "raw", "all"]),
    default="all",
    show_default=True,
    help="Label policy for clips without a visual concept; all: every policy of the codebook.",
)
@click.option(
    "--figure",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also draw Figure 2 to this file (.pdf, .png or .svg).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def stats(manifest: Path, policy: str, figure: Path | None, as_json: bool) -> None:
    """Count levels and concepts, as in section 3.4 and Figure 2 of Tores et al., CVPR 2024.

    Label policies are for the codebooks that list them: `paper` (obygaze12, mobygaze) makes a clip with no
    visual concept EN; `released` (obygaze12) leaves out the clips whose concepts are all non-visual, as the
    released split files do; `raw` is as annotated. For the films of ObyGaze12 the printed numbers, which
    follow `paper`, stand beside ours.

    \b
    Examples:
      obygaze manifest stats obygaze12.csv
      obygaze manifest stats obygaze12.csv --policy paper --figure figure2.svg
      obygaze manifest stats obygaze12.csv --json
    """
    from obygaze_features.manifest import LabelPolicy, apply_policy, policies_of, read_manifest, statistics
    from obygaze_features.manifest.statistics import printed_numbers

    if figure is not None and figure.suffix.lower() not in {".pdf", ".png", ".svg"}:
        raise click.UsageError(f"--figure {figure}: name it .pdf, .png or .svg")
    clips = read_manifest(manifest)
    policies = policies_of(clips.codebook) if policy == "all" else (LabelPolicy(policy),)
    counted = {str(name): statistics(apply_policy(clips, name)) for name in policies}
    printed = printed_numbers(clips)
    if figure is not None:
        # Before the tables, which would hide why it could not be drawn.
        from obygaze_models.obygaze12.corpus import refuse_other_codebook
        from obygaze_models.obygaze12.figure2 import draw_figure2

        refuse_other_codebook(clips.codebook, "--figure: Figure 2")
        draw_figure2(counted, figure)
        click.echo(f"figure written to {figure}", err=True)
    if as_json:
        document = {
            "manifest": str(manifest),
            "digest": clips.digest(),
            "codebook": clips.codebook.name,
            "policies": {name: one.record(printed) for name, one in counted.items()},
        }
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        for name, one in counted.items():
            _show(name, one, len(clips), printed)


def _show(policy: str, counted: "Statistics", n_read: int, printed: "Mapping[str, str]") -> None:
    from obygaze_features.manifest.statistics import numbers

    levels, visual = counted.codebook.level_names, counted.codebook.visual_concepts
    left_out = n_read - counted.n_clips
    click.echo(
        f"label policy {policy}: {counted.n_clips:,} clips, {counted.unlabelled:,} without level, "
        f"{left_out:,} left out by the policy"
    )
    click.echo()
    _echo_table([["clips", *(f"{counted.clips[level]:,}" for level in levels)]], ["level", *levels])
    rows = [
        [number.name, number.shown, *([printed.get(number.name, "")] if printed else [])]
        for number in numbers(counted)
    ]
    headers = ["share or mean", "ours", *(["printed"] if printed else [])]
    _echo_table(rows, headers)
    if not counted.codebook.concepts:
        return
    with_any = [level for level in levels if any(counted.with_concept[level].values())]
    with_visual = [level for level in with_any if counted.mean_concepts(level)]
    concepts = [
        [
            concept if concept in visual else f"{concept} (not visual)",
            *(_percent(counted.share_of_clips(level, concept)) for level in with_any),
            *(
                _percent(counted.share_of_marks(level, concept)) if concept in visual else ""
                for level in with_visual
            ),
        ]
        for concept in counted.codebook.concept_names
    ]
    headers = [
        "concept",
        *(f"of {level}\nclips" for level in with_any),
        *(f"of {level}\nmarks" for level in with_visual),
    ]
    _echo_table(concepts, headers)


def _echo_table(rows: list[list[str]], headers: list[str]) -> None:
    click.echo(table(rows, headers, right=range(1, len(headers))))
    click.echo()


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
