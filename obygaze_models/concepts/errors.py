"""The room's one exception."""


class ConceptError(ValueError):
    """A concept can't be learnt, or read, from the clips at hand."""
