"""What the extraction says to its user when it cannot go on."""


class ExtractError(ValueError):
    """An extraction cannot start, or must not go on."""
