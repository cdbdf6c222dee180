"""The error of this room, which is defined with all others."""

from obygaze_features.errors import ManifestError

__all__ = ["ManifestError"]
