"""The room's one exception."""

from obygaze_features.errors import ObygazeError


class ConceptError(ObygazeError):
    """A concept can't be learnt, or read, from the clips at hand."""
