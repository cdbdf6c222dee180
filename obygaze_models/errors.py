"""Every error of the zoo that is a user's to mend; anything else is a bug and keeps its traceback."""

from obygaze_features.errors import ObygazeError


class DatasetError(ObygazeError):
    """A store and a manifest don't give the clips that were asked for."""


class ProtocolError(ObygazeError):
    """Clips or movies don't allow a fair evaluation, or a fold leaks."""


class ConceptError(ObygazeError):
    """Concepts can't be learnt or read from these clips."""


class ModelError(ObygazeError):
    """A model is not there, or can't be used for what it was asked."""


class PredictionsError(ObygazeError):
    """A table is not one of predictions."""


class RunError(ObygazeError):
    """A run is not where it was looked for, or can't be kept where it was asked to be."""


class CompareError(ObygazeError):
    """Two models can't be compared."""


class AuditError(ObygazeError):
    """An audit can't be made of what it was given."""


class TaskError(ObygazeError):
    """Labels, runs or a store can't be used for a benchmark task."""
