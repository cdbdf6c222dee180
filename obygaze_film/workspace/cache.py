"""Keep what the desk makes of films, such as copies and stills, in a folder that only its owner can read."""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

KEPT_S: Final = 90 * 86_400
"""Seconds (90 days) after which a copy that nobody played is removed, when another is made."""


def cache_folder() -> Path:
    """Return the folder for copies of films, in the system's folder for caches."""
    if sys.platform == "win32":
        caches = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        caches = str(Path.home() / "Library" / "Caches")
    else:
        caches = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(caches) / "obygaze" / "films"


def prepare_cache(folder: Path) -> dict[Path, int]:
    """Make the folder of copies for its owner alone, and remove copies unused for `KEPT_S`; list the others.

    Returns
    -------
    dict
        Path of each copy that is kept -> its size in bytes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)  # which films somebody watches is nobody else's business
    kept = {}
    for path in folder.iterdir():
        with suppress(OSError):  # somebody has the copy open, or removed it just now
            status = path.stat()
            unused_s = time.time() - max(status.st_atime, status.st_mtime)
            if path.is_file() and unused_s > KEPT_S:
                path.unlink()
            else:
                kept[path] = status.st_size
    return kept
