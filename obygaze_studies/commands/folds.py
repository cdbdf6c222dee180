"""`obygaze folds`: print the clips of every fold, to check them or to evaluate other models on them."""

import json
from pathlib import Path
from typing import Literal

import click

from obygaze_features.screen import table
from obygaze_models.commands import TASK_OPTIONS

PAPER_LABELS = "the paper protocol's folds are those of the released split files: its --policy is released"
MOVIES_ARE_PAPERS = "--movies is for the paper protocol; strict leaves one movie out anyway"
ONLY_CONCEPTS = "--against is for --task concept:NAME: the levels of the clips without the concept"


@click.command()
@click.argument("manifest", type=click.Path(path_type=Path))
@click.option(
    "--protocol",
    type=click.Choice(["strict", "paper"]),
    default="strict",
    show_default=True,
    help="strict: one movie left out at a time. paper: the published folds of ObyGaze12, which leak.",
)
@TASK_OPTIONS
@click.option(
    "--against",
    multiple=True,
    metavar="LEVEL",
    help="With concept:NAME, take negatives only from clips of this level; repeatable.",
)
@click.option(
    "--movies", is_flag=True, help="Use the paper's movie set: 90 pairs of a test film and a validation film."
)
@click.option(
    "--policy",
    type=click.Choice(["raw", "paper", "released"]),
    help="Label policy, as in `obygaze evaluate`.  [default: raw; released with --protocol paper]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, with every clip id.")
def folds(
    manifest: Path,
    protocol: Literal["strict", "paper"],
    task: str | None,
    test: str | None,
    negative: tuple[str, ...],
    positive: tuple[str, ...],
    test_negative: tuple[str, ...],
    test_positive: tuple[str, ...],
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
    from obygaze_studies.obygaze12.fold_list import list_folds

    if protocol == "paper" and policy not in {None, "released"}:
        raise click.UsageError(PAPER_LABELS)
    if movies and protocol == "strict":
        raise click.UsageError(MOVIES_ARE_PAPERS)
    clips, _ = read_inputs(manifest, [])
    learnt, asked = choose_targets(
        clips.codebook, task, test, sides=(negative, positive), test_sides=(test_negative, test_positive)
    )
    if learnt.kind != asked.kind:
        raise click.UsageError(f"a model of {learnt.name} can't be tested on {asked.name}")
    if against and (learnt.kind != "concept" or asked != learnt):
        raise click.UsageError(ONLY_CONCEPTS)
    if against:
        learnt = asked = concept_target(learnt.concept, clips.codebook, against)
    listed = list_folds(clips, learnt, asked, protocol, policy=LabelPolicy(policy or "raw"), movies=movies)
    if as_json:
        click.echo(json.dumps(listed.document(), indent=1, ensure_ascii=False))
        return
    headers = ["fold", "train", "validation", "test", "test clips\nin training", "test clips\nin validation"]
    click.echo(table(listed.rows(), headers, right=range(1, 6)))
    click.echo()
    click.echo(f"task {learnt.name}, test {asked.name}")
    click.echo(f"protocol {protocol}, label policy {listed.record['policy']}")
    for note in listed.record["notes"]:
        click.echo(note)
