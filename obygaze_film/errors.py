"""Define the error of whole films that users can fix."""

from obygaze_features.errors import ObygazeError


class FilmError(ObygazeError):
    """A film cannot be scored, or a scored film cannot be read or measured."""
