"""The room's one exception."""

from obygaze_features.errors import ObygazeError


class ModelError(ObygazeError):
    """A file does not hold a model that can be trusted to be one, or not one for the store at hand."""
