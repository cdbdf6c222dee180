"""The one error of this room."""


class StoreError(ValueError):
    """A store or stage cannot be written, sealed, opened or trusted; the message says why and what to do."""


class InterruptedTransferError(StoreError):
    """A server could not be reached, or stopped in the middle: trying again may help."""


class NoRangesError(StoreError):
    """A server gives whole files only."""
