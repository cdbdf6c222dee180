"""The room's one exception."""


class ProtocolError(ValueError):
    """The clips at hand can't be learnt from and tested on as the protocol demands."""
