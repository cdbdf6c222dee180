"""What goes wrong in an audit."""


class AuditError(ValueError):
    """An audit can't be made of what it was given."""
