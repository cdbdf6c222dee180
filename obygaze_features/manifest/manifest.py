"""The manifest: the table of clips, with labels and where the video is."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from .clip import FIELDS, Clip
from .errors import ManifestError
from .paths import absolute, stored_path
from .rows import Collected, canonical_bytes, clip_of
from .table import Problems, read_table


@dataclass(frozen=True)
class Manifest:
    """Clips in order, and the folder that their relative video paths are under.

    Raises
    ------
    ManifestError
        If two clips share an id, or clips differ in their extra columns.
    """

    clips: tuple[Clip, ...]
    root: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "clips", tuple(self.clips))
        seen: set[str] = set()
        for clip in self.clips:
            if clip.clip_id in seen:
                raise ManifestError(
                    f"clip {clip.clip_id!r} is there twice: clip ids must be unique", "clip_id"
                )
            seen.add(clip.clip_id)
            if tuple(clip.extras) != tuple(self.clips[0].extras):
                raise ManifestError(
                    f"clip {clip.clip_id!r} has extra columns {list(clip.extras)} "
                    f"where the first clip has {list(self.clips[0].extras)}"
                )

    def __len__(self) -> int:
        return len(self.clips)

    def __iter__(self) -> Iterator[Clip]:
        return iter(self.clips)

    @cached_property
    def by_id(self) -> Mapping[str, Clip]:
        """The clips by their ids."""
        return {clip.clip_id: clip for clip in self.clips}

    @property
    def movies(self) -> tuple[str, ...]:
        """The movies, in order of first appearance."""
        return tuple(dict.fromkeys(clip.movie for clip in self.clips))

    def with_clips(self, clips: Iterable[Clip]) -> "Manifest":
        """Make a manifest of other clips in the same folder."""
        return Manifest(tuple(clips), self.root)

    def video_path(self, clip: Clip) -> Path | None:
        """Find a clip's video file, None where the manifest knows none; it may be missing on disk."""
        return self.root / clip.video if clip.video else None

    def placed_in(self, folder: Path) -> "Manifest":
        """Rewrite video paths for a manifest that lies in another folder."""
        if absolute(folder) == absolute(self.root):
            return self
        moved = (
            replace(clip, video=stored_path(self.root / clip.video, folder)) if clip.video else clip
            for clip in self.clips
        )
        return Manifest(tuple(moved), folder)

    def digest(self) -> str:
        """Hash the canonical CSV bytes: SHA-256, hexadecimal."""
        return hashlib.sha256(canonical_bytes(self.clips)).hexdigest()


ADVICE = "make a manifest of it with 'obygaze manifest import' (of a table of spans: import folder --spans)"


def read_manifest(path: str | Path) -> Manifest:
    """Read and check a manifest file.

    Raises
    ------
    ManifestError
        Naming file, line and column of the first few problems, and how many there are.
    """
    path = Path(path)
    table = read_table(path, needed=FIELDS, advice=ADVICE)
    problems = Problems(path)
    collected = Collected(problems)
    for row in table.rows:
        collected.add(clip_of(row, problems), row.line)
    problems.refuse()
    return Manifest(tuple(collected.clips), absolute(path).parent)


def write_manifest(manifest: Manifest, path: str | Path) -> Manifest:
    """Write a manifest, whole or not at all, and return it as it was written.

    Video paths are rewritten if the file lies in another folder than the manifest's.
    """
    path = Path(path)
    placed = manifest.placed_in(absolute(path).parent)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(canonical_bytes(placed.clips))
        partial.replace(path)
    except OSError as error:
        # The user knows the manifest by name, and not the partial file.
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        partial.unlink(missing_ok=True)
    return placed
