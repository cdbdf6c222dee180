"""`obygaze folds`: list the clips of each fold."""

from pathlib import Path
from typing import Annotated, Literal

import click

from obygaze_features.options import Answer
from obygaze_features.signatures import argument, command, option
from obygaze_models.commands import complete_task


@command()
def folds(
    manifest: Annotated[Path, argument()],
    *,
    protocol: Annotated[
        Literal["strict", "paper"],
        option(
            "strict: one movie left out at a time. paper: the published folds of ObyGaze12, which "
            "leak: test clips can also be training clips."
        ),
    ] = "strict",
    task: Annotated[
        str | None,
        option(
            "Task to train on: a task of the manifest's codebook, concept:NAME, levels (ordered) or "
            "scale:NAME. `obygaze codebook show MANIFEST` lists them.  [default: the codebook's only task]",
            shell_complete=complete_task,
        ),
    ] = None,
    test: Annotated[
        str | None, option("Task to test on.  [default: as trained]", shell_complete=complete_task)
    ] = None,
    against: Annotated[
        tuple[str, ...],
        option(
            "With concept:NAME, take negatives only from clips of this level; repeatable.", metavar="LEVEL"
        ),
    ] = (),
    movies: Annotated[
        bool,
        option(
            "With --protocol paper: print the folds of the paper's movie set, 90 pairs of a test "
            "film and a validation film."
        ),
    ] = False,
    policy: Annotated[
        Literal["raw", "paper", "released"] | None,
        option("Label policy, as in `obygaze evaluate`.  [default: raw; released with --protocol paper]"),
    ] = None,
) -> Answer:
    """Print the training and test folds of the clips of MANIFEST.

    With --protocol strict, every movie is the test set of one fold, and all others are its training set.
    These folds have no validation set, because models are selected by inner folds of the training movies.
    Clips whose annotators saw a model's score (column seen_score) are not tested, and are trained on if the
    task has their level.

    With --protocol paper, the folds are those of the published numbers: eight for the classifiers (fold 9
    for test, fold k for validation) and nine for the CAVs (concept:NAME); with --movies, one fold for each
    pair of films. They need a manifest imported from ObyGaze12's folder. Clips without a video are left
    out, as in the paper. Test clips that a fold also trains or validates on are counted.

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

    if movies and protocol != "paper":
        raise click.UsageError("--movies goes with --protocol paper: give both.")
    if protocol == "paper" and policy not in {None, "released"}:
        raise click.UsageError(
            "the paper protocol's folds are those of the released split files: its --policy is released"
        )

    # What the models are trained on, and what they are tested on
    loaded_manifest = read_inputs(manifest, []).manifest
    trained, tested = choose_targets(loaded_manifest.codebook, task, test)
    if trained.kind != tested.kind:
        raise click.UsageError(f"a model of {trained.name} can't be tested on {tested.name}")
    if against:
        if trained.kind != "concept" or tested != trained:
            raise click.UsageError(
                "--against is for --task concept:NAME: the levels of the clips without the concept"
            )
        trained = concept_target(trained.concept, loaded_manifest.codebook, against)
        tested = trained

    if policy is None:
        policy = "released" if protocol == "paper" else "raw"
    return list_folds(loaded_manifest, trained, tested, protocol, policy=LabelPolicy(policy), movies=movies)
