"""The room's one exception."""

from obygaze_features.errors import ObygazeError


class ProtocolError(ObygazeError):
    """The clips at hand can't be learnt from and tested on as the protocol demands."""
