"""`obygaze folds`: the clips of every fold, to check us or to run another model on the same folds."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from obygaze_features.manifest import Manifest
    from obygaze_models.protocol import Fold, Target

PAPER_LABELS = "the paper protocol's folds are those of the released split files: its --policy is released"
MOVIES_ARE_PAPERS = "--movies is for the paper protocol; strict leaves one movie out anyway"
MOVIES_OR_CONCEPT = "--movies pairs films to train on a task of levels, not on a concept"
ONLY_CONCEPTS = "--against is for --task concept:NAME: the levels of the clips without the concept"
NEGATIVES = (
    "the paper protocol tells a concept's clips from EN (--against EN), from HN and S, or from all of them"
)


@click.command()
@click.argument("manifest", type=click.Path(path_type=Path))
@click.option(
    "--protocol",
    type=click.Choice(["strict", "paper"]),
    default="strict",
    show_default=True,
    help="strict: one movie left out at a time. paper: the published folds of ObyGaze12, which leak.",
)
@click.option(
    "--task",
    help="What models learn: a task of the manifest's codebook, concept:NAME, levels or scale:NAME. `obygaze "
    "codebook show MANIFEST` lists them.  [default: the codebook's only task]",
)
@click.option("--test", help="What they are tested on.  [default: as trained]")
@click.option("--negative", multiple=True, help="Level that is negative, in place of --task; repeatable.")
@click.option("--positive", multiple=True, help="Level that is positive; repeatable.")
@click.option("--test-negative", multiple=True, help="The same for the test; repeatable.")
@click.option("--test-positive", multiple=True, help="The same for the test; repeatable.")
@click.option(
    "--against",
    multiple=True,
    metavar="LEVEL",
    help="With concept:NAME, keep the clips without the concept of this level alone (repeatable).",
)
@click.option(
    "--movies", is_flag=True, help="The paper's movie set: a film tested, a film validated on, 90 pairs."
)
@click.option(
    "--policy",
    type=click.Choice(["raw", "paper", "released"]),
    help="How labels are read, as in `obygaze evaluate`.  [default: raw; released under paper]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, with every clip id.")
def folds(
    manifest: Path,
    protocol: str,
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
    """Print the folds in which models are trained and tested on the clips of MANIFEST.

    Under strict every movie is tested once against all the others, and no fold has a validation side: what is
    selected is selected by an inner loop over the training movies. Under paper the folds are those behind the
    published numbers: eight for the classifiers (fold 9 tested, fold k validated on), nine for the CAVs, and
    with --movies a fold for each pair of films, named after both. They need a manifest imported from
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
    from obygaze_features.manifest import LabelPolicy, apply_policy
    from obygaze_models.commands.inputs import read_inputs
    from obygaze_models.protocol import concept_target, labels_of, strict_folds
    from obygaze_models.protocol.targets import choose_targets

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
    label_policy = LabelPolicy(policy or ("released" if protocol == "paper" else "raw"))
    # The split files' clips are the released ones already, and their levels are as annotated.
    labelled = clips if protocol == "paper" else apply_policy(clips, label_policy)
    if protocol == "paper":
        made, columns = _paper_folds(labelled, learnt, asked, movies=movies)
    else:
        made, columns = strict_folds(labelled, learnt, asked), []
    record: dict[str, Any] = {
        "protocol": protocol,
        "policy": str(label_policy),
        "manifest_sha256": clips.digest(),
        "codebook": {"name": clips.codebook.name, "digest": clips.codebook.digest()},
        "task": learnt.name,
        "test": asked.name,
        "notes": _notes(labelled, protocol, made, columns),
    }
    if as_json:
        used = {clip_id for fold in made for side in _sides(fold).values() for clip_id in side}
        labels = labels_of(labelled)
        rows = zip(*(one.of(labels).tolist() for one in (learnt, asked)), strict=True)
        label_of = {name: max(codes) for name, codes in zip(labels.clip_ids.tolist(), rows, strict=True)}
        record["folds"] = [_record(fold, labelled, by_movie=movies or protocol == "strict") for fold in made]
        record["labels"] = {name: label for name, label in label_of.items() if name in used}
        click.echo(json.dumps(record, indent=1, ensure_ascii=False))
    else:
        _show(made, record, labelled)


def _paper_folds(
    manifest: "Manifest", learnt: "Target", asked: "Target", *, movies: bool
) -> tuple[tuple["Fold", ...], list[str]]:
    """Make the paper's folds, and name the columns of the manifest that they are in."""
    from obygaze_models.obygaze12.corpus import TASKS, refuse_other_codebook
    from obygaze_models.obygaze12.folds import (
        CONCEPT_COLUMN,
        Negatives,
        classifier_folds,
        concept_folds,
        movie_folds,
    )

    refuse_other_codebook(manifest.codebook, "the paper protocol")
    if learnt.kind == "concept":
        of_levels = {(): Negatives.ALL, ("EN",): Negatives.EN, ("HN", "S"): Negatives.HN_S}
        negatives = of_levels.get(tuple(sorted(learnt.against)))
        if movies:
            raise click.UsageError(MOVIES_OR_CONCEPT)
        if negatives is None or asked != learnt:
            raise click.UsageError(NEGATIVES)
        return concept_folds(manifest, learnt.concept, negatives), [CONCEPT_COLUMN]
    for one in (learnt, asked):
        if one.name not in TASKS:
            raise click.UsageError(f"the paper protocol has the tasks {', '.join(TASKS)}, and no {one.name}")
    tasks = TASKS[learnt.name], TASKS[asked.name]
    if movies:
        return movie_folds(manifest, *tasks), [f"fold_movieset_{task.name}" for task in tasks]
    return classifier_folds(manifest, *tasks), [f"fold_{task.name}" for task in tasks]


def _notes(manifest: "Manifest", protocol: str, made: tuple["Fold", ...], columns: list[str]) -> list[str]:
    """Say what leaks and what was left out."""
    from obygaze_models.obygaze12.folds import leak_caption, without_video

    if protocol == "strict":
        used = {clip_id for fold in made for side in _sides(fold).values() for clip_id in side}
        nameless = sum(not manifest.by_id[clip_id].video for clip_id in used)
        return [
            "strict: no clip and no movie is on two sides of a fold; validation is an inner loop",
            f"{nameless} of {len(used)} clips have no video known; runs exclude clips without features",
        ]
    return [
        f"paper: {leak_caption(made)}",
        f"{without_video(manifest, columns)} clips of the split files are left out, having no video",
    ]


def _sides(fold: "Fold") -> dict[str, tuple[str, ...]]:
    return {"train": fold.train, "validation": fold.validation, "test": fold.test}


def _record(fold: "Fold", manifest: "Manifest", *, by_movie: bool) -> dict[str, Any]:
    from obygaze_models.obygaze12.folds import count_leaks

    leaks = count_leaks(fold)
    record: dict[str, Any] = {"fold": fold.name}
    if by_movie:
        # The sides that hold one movie alone.
        record |= {
            f"{side}_movie": manifest.by_id[ids[0]].movie
            for side, ids in _sides(fold).items()
            if side != "train" and ids
        }
    sides = {side: list(ids) for side, ids in _sides(fold).items()}
    seen = {"test_in_training": leaks.in_training, "test_in_validation": leaks.in_validation}
    return record | sides | {"leaks": seen}


def _show(made: tuple["Fold", ...], record: dict[str, Any], manifest: "Manifest") -> None:
    from tabulate import tabulate

    from obygaze_models.obygaze12.folds import count_leaks

    rows = []
    for fold in made:
        leaks = count_leaks(fold)
        name = fold.name
        if record["protocol"] == "strict":
            name = f"{name} {manifest.by_id[fold.test[0]].movie}"
        sizes = [len(side) for side in _sides(fold).values()]
        rows.append([str(name), *map(str, [*sizes, leaks.in_training, leaks.in_validation])])
    headers = ["fold", "train", "validation", "test", "test clips\nin training", "test clips\nin validation"]
    alignment = ["left"] + ["right"] * 5
    click.echo(tabulate(rows, headers, tablefmt="simple", disable_numparse=True, colalign=alignment))
    click.echo()
    click.echo(f"task {record['task']}, test {record['test']}")
    click.echo(f"protocol {record['protocol']}, label policy {record['policy']}")
    for note in record["notes"]:
        click.echo(note)
