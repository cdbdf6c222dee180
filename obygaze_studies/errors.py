"""Define the errors of the studies that users can fix."""

from collections.abc import Iterator
from contextlib import contextmanager

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


@contextmanager
def regarding(kind: type[ObygazeError], subject: str) -> Iterator[None]:
    """Put `subject` before the message of an error of type `kind` that is raised in the block."""
    try:
        yield
    except kind as error:
        raise kind(f"{subject}: {error}") from None
