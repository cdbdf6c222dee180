"""The one error of this room."""


class ManifestError(ValueError):
    """A manifest, or annotations that should become one, cannot be used as they are.

    The message is one line for the user. `column` is the manifest column at fault, where there is one.
    """

    def __init__(self, message: str, column: str = "") -> None:
        super().__init__(message)
        self.column = column
