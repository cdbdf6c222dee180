"""What is learnt from what, and tested on what: tasks, folds, and selection that never sees the test fold."""

from obygaze_models.protocol.errors import ProtocolError
from obygaze_models.protocol.folds import FoldTable, Split, check_split, leave_one_movie_out, splits
from obygaze_models.protocol.seen import scene_blocks, seen_splits
from obygaze_models.protocol.selection import best_threshold, inner_folds
from obygaze_models.protocol.tasks import OBYGAZE12, TASKS, VISUAL_CONCEPTS, Task, find_task

__all__ = [
    "OBYGAZE12",
    "TASKS",
    "VISUAL_CONCEPTS",
    "FoldTable",
    "ProtocolError",
    "Split",
    "Task",
    "best_threshold",
    "check_split",
    "find_task",
    "inner_folds",
    "leave_one_movie_out",
    "scene_blocks",
    "seen_splits",
    "splits",
]
