"""Errors for users: one base, so that a caller can catch them all."""


class ObygazeError(ValueError):
    """Something a user can mend; its message says what, where and how."""
