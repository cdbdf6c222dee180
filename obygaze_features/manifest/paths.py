"""Resolve the video paths of a manifest."""

import os
from pathlib import Path


def absolute(path: Path) -> Path:
    """Make a path absolute and free of "..", following no links."""
    return Path(os.path.normpath(path.absolute()))


def stored_path(video: Path, root: Path) -> str:
    """Write a video's path as a manifest in folder `root` should hold it.

    Relative where the video lies beneath the folder or in a neighbour of it, so that manifest and films move
    together; absolute elsewhere.
    """
    here, there = absolute(root), absolute(video)
    if there.is_relative_to(here):
        return there.relative_to(here).as_posix()
    # From here on the way leads upwards, where the system follows the real folders and not their links.
    real_here, real_there = here.resolve(), there.parent.resolve() / there.name
    beside = real_here.parent
    if beside != beside.parent and real_there.is_relative_to(beside):
        return (Path("..") / real_there.relative_to(beside)).as_posix()
    return there.as_posix()
