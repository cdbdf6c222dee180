"""What goes wrong in an audit."""

from obygaze_features.errors import ObygazeError


class AuditError(ObygazeError):
    """An audit can't be made of what it was given."""
