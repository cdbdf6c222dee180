"""Define the errors of the studies that users can fix."""

from obygaze_features.errors import ObygazeError
from obygaze_models.errors import ProtocolError


class AuditError(ObygazeError):
    """The inputs of an audit are invalid."""


class TaskError(ObygazeError):
    """Labels, runs or a store cannot be used for a benchmark task."""


class FoldsError(ProtocolError):
    """Too few clips of a published fold have features."""


class TrainError(ObygazeError):
    """A training cannot start from its inputs, or cannot resume."""
