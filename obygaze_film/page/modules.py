"""List the modules of the scripts of the mailed page and of the desk, most of which both have."""

from typing import Final

COMMON: Final = (
    "time",
    "drawing",
    "rows",
    "lazy",
    "strips",
    "list",
    "store",
    "player",
    "stills",
    "tiers",
    "table",
    "evidence",
    "keys",
    "minutes",
)
"""Modules that page and desk both have, each after those that it imports from."""

PAGE: Final = (*COMMON, "subtitles", "own_film", "page")
"""Modules of the mailed page, in the order in which they are joined to one."""

DESK: Final = (*COMMON, "stream", "media", "panel", "desk")
"""Modules that the desk's server sends."""
