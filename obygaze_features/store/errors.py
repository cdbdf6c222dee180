"""The one error of this room."""


class StoreError(ValueError):
    """A store or stage cannot be written, sealed, opened or trusted; the message says why and what to do."""
