"""What is learnt from what and tested on what: targets, folds, selection without the test fold."""

from obygaze_models.protocol.folds import FoldTable, Split, check_split, leave_one_movie_out, splits
from obygaze_models.protocol.seen import scene_blocks, seen_splits
from obygaze_models.protocol.selection import best_threshold, inner_folds
from obygaze_models.protocol.targets import Labels, Target, find_target, labels_of, level_target, task_target

__all__ = [
    "FoldTable",
    "Labels",
    "Split",
    "Target",
    "best_threshold",
    "check_split",
    "find_target",
    "inner_folds",
    "labels_of",
    "leave_one_movie_out",
    "level_target",
    "scene_blocks",
    "seen_splits",
    "splits",
    "task_target",
]
