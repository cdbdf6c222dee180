"""The manifest: clips, their annotations, and the paths of their videos."""

from typing import Any

import lazy_loader

_public, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

_MOVED = {
    "import_judgements": "obygaze_film",
    "import_mediaeval15": "obygaze_studies.mediaeval15",
    "import_mobygaze": "obygaze_studies.mobygaze",
    **dict.fromkeys(
        ["PRINTED_COUNTS", "Statistics", "count_table", "grouped", "import_obygaze12", "is_obygaze12"],
        "obygaze_studies.obygaze12",
    ),
    **dict.fromkeys(("printed_count_table", "statistics"), "obygaze_studies.obygaze12"),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used (PEP 562)."""
    if name in _MOVED:
        raise AttributeError(f"obygaze_features.manifest.{name} is now {_MOVED[name]}.{name}")
    return _public(name)
