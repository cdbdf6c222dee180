"""Define targets, folds, and selection without the test fold."""

from obygaze_models.protocol.folds import (
    Fold,
    FoldTable,
    Split,
    check_split,
    leave_one_movie_out,
    splits,
    strict_folds,
)
from obygaze_models.protocol.seen import scene_blocks, seen_splits
from obygaze_models.protocol.selection import best_threshold, inner_folds
from obygaze_models.protocol.targets import (
    Labels,
    Target,
    concept_target,
    find_target,
    labels_of,
    level_target,
    task_target,
)

__all__ = [
    "Fold",
    "FoldTable",
    "Labels",
    "Split",
    "Target",
    "best_threshold",
    "check_split",
    "concept_target",
    "find_target",
    "inner_folds",
    "labels_of",
    "leave_one_movie_out",
    "level_target",
    "scene_blocks",
    "seen_splits",
    "splits",
    "strict_folds",
    "task_target",
]
