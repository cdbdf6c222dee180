"""The room's one exception."""


class TaskError(ValueError):
    """Labels, runs or a store can't be used for the task; the message is one line for the user."""
