"""The tasks and visual concepts of ObyGaze12's codebook."""

from obygaze_features.manifest import Task, builtin_codebook
from obygaze_models.protocol.errors import ProtocolError

__all__ = ["OBYGAZE12", "TASKS", "VISUAL_CONCEPTS", "Task", "find_task"]

OBYGAZE12 = builtin_codebook("obygaze12")
VISUAL_CONCEPTS: tuple[str, ...] = OBYGAZE12.visual_concepts
TASKS: dict[str, Task] = {task.name: task for task in OBYGAZE12.tasks}


def find_task(name: str) -> Task:
    """Find a task by its name.

    Raises
    ------
    ProtocolError
        There is no such task.
    """
    try:
        return TASKS[name]
    except KeyError:
        raise ProtocolError(f"unknown task {name!r}: expected one of {', '.join(TASKS)}") from None
