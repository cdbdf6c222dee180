"""The `strict` protocol's folds by clip id, so that anybody can run a model of their own on them."""

from collections.abc import Mapping

import numpy as np

from obygaze_features.manifest import Manifest
from obygaze_models.protocol.folds import leave_one_movie_out, splits
from obygaze_models.protocol.paper import Fold, Negatives, concept_labels
from obygaze_models.protocol.tasks import Task


def strict_folds(manifest: Manifest, train: Task, test: Task) -> tuple[Fold, ...]:
    """Leave one movie out: its clips of the test task against the others' clips of the training task.

    No fold has a validation side: what is selected is selected by an inner loop over the training movies.

    Raises
    ------
    ProtocolError
        There are fewer than 3 movies with clips of the tasks, or a clip or a movie is on two sides.
    """
    return _folds(
        manifest,
        {clip.clip_id for clip in manifest if clip.level in train.levels},
        {clip.clip_id for clip in manifest if clip.level in test.levels},
    )


def strict_concept_folds(manifest: Manifest, concept: str, negatives: Negatives) -> tuple[Fold, ...]:
    """Leave one movie out for the clips that a concept's CAV is fitted on; see `strict_folds`."""
    labels: Mapping[str, int] = concept_labels(manifest, concept, negatives)
    return _folds(manifest, set(labels), set(labels))


def _folds(manifest: Manifest, train: set[str], test: set[str]) -> tuple[Fold, ...]:
    clips = [clip for clip in manifest if clip.clip_id in train | test]
    ids = [clip.clip_id for clip in clips]
    table = leave_one_movie_out(ids, [clip.movie for clip in clips])
    sides = splits(table, np.array([name in train for name in ids]), np.array([name in test for name in ids]))
    return tuple(
        Fold(
            name=split.fold,
            train=tuple(ids[row] for row in split.train.tolist()),
            validation=(),
            test=tuple(ids[row] for row in split.test.tolist()),
        )
        for split in sides
    )
