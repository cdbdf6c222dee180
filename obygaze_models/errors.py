"""Define the errors of the zoo that users can fix; anything else is a bug and keeps its traceback."""

from obygaze_features import errors

ObygazeError = errors.ObygazeError


class DatasetError(ObygazeError):
    """A store and a manifest do not provide the requested clips."""


class ProtocolError(ObygazeError):
    """Clips or movies do not allow a fair evaluation, or a fold leaks."""


class ConceptError(ObygazeError):
    """Concepts cannot be learnt or read from these clips."""


class ModelError(ObygazeError):
    """A model is missing or cannot be used for the request."""


class PredictionsError(ObygazeError):
    """A table is not a valid table of predictions."""


class RunError(ObygazeError):
    """A run cannot be found or saved at the given place."""


class CompareError(ObygazeError):
    """Two models cannot be compared."""
