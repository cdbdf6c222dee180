"""List the folds of either protocol for any target, with their record (`obygaze folds`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from obygaze_features.manifest import LabelPolicy, Manifest, apply_policy
from obygaze_models.errors import ProtocolError
from obygaze_models.protocol import Fold, Target, labels_of, strict_folds
from obygaze_studies.obygaze12.corpus import TASKS, refuse_other_codebook
from obygaze_studies.obygaze12.paper_folds import (
    CONCEPT_COLUMN,
    Negatives,
    classifier_folds,
    concept_folds,
    count_leaks,
    leak_caption,
    movie_folds,
    without_video,
)

NEGATIVES = {(): Negatives.ALL, ("EN",): Negatives.EN, ("HN", "S"): Negatives.HN_S}
"""Levels of the clips without a concept, sorted -> which of the paper's choices they are."""


@dataclass(frozen=True, eq=False, slots=True)
class FoldList:
    """Folds, the manifest as they read it, and where they come from.

    Attributes
    ----------
    record : mapping
        JSON values: protocol, label policy, manifest, codebook, task, test, and notes on leaks.
    by_movie : bool
        Whether a fold's test and validation sides are one movie each.
    """

    folds: tuple[Fold, ...]
    manifest: Manifest
    trained: Target
    tested: Target
    record: Mapping[str, Any]
    by_movie: bool

    def rows(self) -> list[list[str]]:
        """Write each fold as cells: name, sizes of its sides, test clips in training and in validation."""
        rows = []
        for fold in self.folds:
            leaks = count_leaks(fold)
            name = str(fold.name)
            if self.record["protocol"] == "strict":
                name = f"{name} {self.manifest.by_id[fold.test[0]].movie}"
            sizes = [len(side) for side in sides_of(fold).values()]
            rows.append([name, *map(str, [*sizes, leaks.in_training, leaks.in_validation])])
        return rows

    def document(self) -> dict[str, Any]:
        """Return the record with every clip of every fold, and each clip's label."""
        used = {clip_id for fold in self.folds for side in sides_of(fold).values() for clip_id in side}
        labels = labels_of(self.manifest)
        rows = zip(*(target.of(labels).tolist() for target in (self.trained, self.tested)), strict=True)
        label_of = {name: max(codes) for name, codes in zip(labels.clip_ids.tolist(), rows, strict=True)}
        return {
            **self.record,
            "folds": [self._fold(fold) for fold in self.folds],
            "labels": {name: label for name, label in label_of.items() if name in used},
        }

    def _fold(self, fold: Fold) -> dict[str, Any]:
        leaks = count_leaks(fold)
        record: dict[str, Any] = {"fold": fold.name}
        if self.by_movie:
            record |= {
                f"{side}_movie": self.manifest.by_id[ids[0]].movie
                for side, ids in sides_of(fold).items()
                if side != "train" and ids
            }
        sides = {side: list(ids) for side, ids in sides_of(fold).items()}
        seen = {"test_in_training": leaks.in_training, "test_in_validation": leaks.in_validation}
        return record | sides | {"leaks": seen}


def list_folds(
    manifest: Manifest,
    trained: Target,
    tested: Target,
    protocol: Literal["strict", "paper"] = "strict",
    *,
    policy: LabelPolicy = LabelPolicy.RAW,
    movies: bool = False,
) -> FoldList:
    """List the folds in which models learn one target and are asked another.

    Parameters
    ----------
    manifest : Manifest
        Its levels as annotated.
    protocol : {"strict", "paper"}
        One movie left out at a time; or the folds of the released split files, with the labels of those.
    policy : LabelPolicy
        How the strict protocol reads labels.
    movies : bool
        Under the paper protocol, a fold for each pair of movies.

    Raises
    ------
    ProtocolError
        The paper protocol has no such folds, or the manifest does not have them.
    """
    if protocol == "paper":
        folds, columns = _published(manifest, trained, tested, movies=movies)
        labelled, policy = manifest, LabelPolicy.RELEASED
        notes = [
            f"paper: {leak_caption(folds)}",
            f"{without_video(manifest, columns)} clips of the split files are left out, having no video",
        ]
    else:
        labelled = apply_policy(manifest, policy)
        folds = strict_folds(labelled, trained, tested)
        used = {clip_id for fold in folds for side in sides_of(fold).values() for clip_id in side}
        nameless = sum(not labelled.by_id[clip_id].video for clip_id in used)
        notes = [
            "strict: no clip and no movie is on two sides of a fold; validation is an inner loop",
            f"{nameless} of {len(used)} clips have no video known; runs exclude clips without features",
        ]
    record = {
        "protocol": protocol,
        "policy": str(policy),
        "manifest_sha256": manifest.digest(),
        "codebook": {"name": manifest.codebook.name, "digest": manifest.codebook.digest()},
        "task": trained.name,
        "test": tested.name,
        "notes": notes,
    }
    return FoldList(folds, labelled, trained, tested, record, movies or protocol == "strict")


def sides_of(fold: Fold) -> dict[str, tuple[str, ...]]:
    """Return the clip ids of each side of a fold."""
    return {"train": fold.train, "validation": fold.validation, "test": fold.test}


def _published(
    manifest: Manifest, trained: Target, tested: Target, *, movies: bool
) -> tuple[tuple[Fold, ...], Sequence[str]]:
    """Make the paper's folds, and name the columns of the manifest that they are in."""
    refuse_other_codebook(manifest.codebook, "the paper protocol")
    if trained.kind == "concept":
        if movies:
            raise ProtocolError("--movies pairs films to train on a task of levels, not on a concept")
        negatives = NEGATIVES.get(tuple(sorted(trained.against)))
        if negatives is None or tested != trained:
            raise ProtocolError(
                "the paper protocol tells a concept's clips from EN (--against EN), "
                "from HN and S, or from all of them"
            )
        return concept_folds(manifest, trained.concept, negatives), [CONCEPT_COLUMN]
    for target in (trained, tested):
        if target.name not in TASKS:
            raise ProtocolError(f"the paper protocol has the tasks {', '.join(TASKS)}, and no {target.name}")
    tasks = TASKS[trained.name], TASKS[tested.name]
    if movies:
        return movie_folds(manifest, *tasks), [f"fold_movieset_{task.name}" for task in tasks]
    return classifier_folds(manifest, *tasks), [f"fold_{task.name}" for task in tasks]
