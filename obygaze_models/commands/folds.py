"""`obygaze folds`: the clips of every fold, to check us or to run another model on the same folds."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from obygaze_features.manifest import Manifest
    from obygaze_models.protocol.paper import Fold

NOT_USED = "--train and --test are not used with --concept: a concept's clips are told apart by the concept"
PAPER_LABELS = "the paper protocol's folds are those of the released split files: its --policy is released"
MOVIES_ARE_PAPERS = "--movies is for the paper protocol; strict leaves one movie out anyway"
MOVIES_OR_CONCEPT = "--movies pairs films to train classifiers on; it has no --concept"
ONLY_CONCEPTS = "--negatives says what a --concept is told from; name the concept as well"


@click.command()
@click.argument("manifest", type=click.Path(path_type=Path))
@click.option(
    "--protocol",
    type=click.Choice(["strict", "paper"]),
    default="strict",
    show_default=True,
    help="strict: one movie left out at a time. paper: the published folds, which leak.",
)
@click.option("--train", help="Task to train on: en_s, hn_s or enhn_s.  [default: hn_s]")
@click.option("--test", help="Task to test on.  [default: the task trained on]")
@click.option(
    "--movies", is_flag=True, help="The paper's movie set: a film tested, a film validated on, 90 pairs."
)
@click.option("--concept", help="The folds of a visual concept's CAV instead, e.g. body or 'type of shot'.")
@click.option(
    "--negatives",
    type=click.Choice(["en", "all", "hn_s"]),
    help="What the S and HN clips with the concept are told from. en: EN clips. all: these and the S and HN "
    "clips without the concept. hn_s: the latter alone.  [default: all]",
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
    train: str | None,
    test: str | None,
    movies: bool,
    concept: str | None,
    negatives: str | None,
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
      obygaze folds obygaze12.csv --train hn_s --test enhn_s
      obygaze folds obygaze12.csv --protocol paper --train hn_s --test enhn_s --json
      obygaze folds obygaze12.csv --protocol paper --train hn_s --test enhn_s --movies
      obygaze folds obygaze12.csv --protocol paper --concept body --negatives en --json
    """
    from obygaze_features.manifest import LabelPolicy, apply_policy, read_manifest
    from obygaze_models.protocol.paper import Negatives, concept_labels
    from obygaze_models.protocol.tasks import find_task

    _check_usage(protocol, movies=movies, concept=concept, negatives=negatives, policy=policy)
    label_policy = LabelPolicy(policy or ("released" if protocol == "paper" else "raw"))
    clips = read_manifest(manifest)
    # The split files' clips are the released ones already, and their levels are as annotated.
    labelled = clips if protocol == "paper" else apply_policy(clips, label_policy)
    record: dict[str, Any] = {
        "protocol": protocol,
        "policy": str(label_policy),
        "manifest_sha256": clips.digest(),
    }
    if concept is not None:
        if train or test:
            click.echo(NOT_USED, err=True)
        name, against = _concept(concept), Negatives(negatives or "all")
        record |= {"concept": name, "negatives": str(against)}
        labels = dict(concept_labels(labelled, name, against))
        made, columns = _concept_folds(labelled, protocol, name, against)
    else:
        train_task = find_task(train or "hn_s")
        test_task = find_task(test or train_task.name)
        record |= {"train": train_task.name, "test": test_task.name, "movies": movies}
        labels = {clip.clip_id: int(clip.level in train_task.positives) for clip in labelled}
        made, columns = _task_folds(labelled, protocol, train_task.name, test_task.name, movies=movies)
    record["notes"] = _notes(labelled, protocol, made, columns)
    if as_json:
        used = {clip_id for fold in made for side in _sides(fold).values() for clip_id in side}
        record["folds"] = [_record(fold, labelled, by_movie=movies or protocol == "strict") for fold in made]
        record["labels"] = {clip_id: label for clip_id, label in labels.items() if clip_id in used}
        click.echo(json.dumps(record, indent=1, ensure_ascii=False))
    else:
        _show(made, record, labelled)


def _check_usage(
    protocol: str, *, movies: bool, concept: str | None, negatives: str | None, policy: str | None
) -> None:
    if protocol == "paper" and policy not in {None, "released"}:
        raise click.UsageError(PAPER_LABELS)
    if movies and protocol == "strict":
        raise click.UsageError(MOVIES_ARE_PAPERS)
    if movies and concept is not None:
        raise click.UsageError(MOVIES_OR_CONCEPT)
    if negatives and concept is None:
        raise click.UsageError(ONLY_CONCEPTS)


def _concept(text: str) -> str:
    """Find a visual concept by its name, with spaces, hyphens or underscores."""
    from obygaze_models.protocol import OBYGAZE12, VISUAL_CONCEPTS, ProtocolError

    name = OBYGAZE12.concept_spelled(text.replace("-", " ").replace("_", " "))
    if name not in VISUAL_CONCEPTS:
        raise ProtocolError(
            f"concept {name} is not visual: no CAV is fitted for it; "
            f"expected one of {', '.join(VISUAL_CONCEPTS)}"
        )
    return name


def _concept_folds(
    manifest: "Manifest", protocol: str, concept: str, negatives: Any
) -> tuple[tuple["Fold", ...], list[str]]:
    from obygaze_models.protocol.paper import CONCEPT_COLUMN, concept_folds
    from obygaze_models.protocol.strict import strict_concept_folds

    if protocol == "strict":
        return strict_concept_folds(manifest, concept, negatives), []
    return concept_folds(manifest, concept, negatives), [CONCEPT_COLUMN]


def _task_folds(
    manifest: "Manifest", protocol: str, train: str, test: str, *, movies: bool
) -> tuple[tuple["Fold", ...], list[str]]:
    from obygaze_models.protocol import find_task
    from obygaze_models.protocol.paper import classifier_folds, movie_folds
    from obygaze_models.protocol.strict import strict_folds

    tasks = find_task(train), find_task(test)
    if protocol == "strict":
        return strict_folds(manifest, *tasks), []
    if movies:
        return movie_folds(manifest, *tasks), [f"fold_movieset_{task.name}" for task in tasks]
    return classifier_folds(manifest, *tasks), [f"fold_{task.name}" for task in tasks]


def _notes(manifest: "Manifest", protocol: str, made: tuple["Fold", ...], columns: list[str]) -> list[str]:
    """Say what leaks and what was left out."""
    from obygaze_models.protocol.paper import leak_caption, without_video

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
    from obygaze_models.protocol.paper import count_leaks

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

    from obygaze_models.protocol.paper import count_leaks

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
    if "concept" in record:
        click.echo(f"concept {record['concept']}, negatives {record['negatives']}")
    else:
        click.echo(f"train {record['train']}, test {record['test']}")
    click.echo(f"protocol {record['protocol']}, label policy {record['policy']}")
    for note in record["notes"]:
        click.echo(note)
