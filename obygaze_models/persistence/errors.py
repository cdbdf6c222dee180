"""The room's one exception."""


class ModelError(ValueError):
    """A file does not hold a model that can be trusted to be one, or not one for the store at hand."""
