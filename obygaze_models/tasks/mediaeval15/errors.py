"""The room's one exception."""

from obygaze_features.errors import ObygazeError


class TaskError(ObygazeError):
    """Labels, runs or a store can't be used for the task; the message is one line for the user."""
