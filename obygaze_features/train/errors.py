"""What the training says to its user when it cannot go on."""


class TrainError(ValueError):
    """A training cannot start, or must not go on."""
