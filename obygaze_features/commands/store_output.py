"""Share summaries between the `obygaze store` commands."""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import obygaze_features as of
from obygaze_features import store as stores
from obygaze_features.options import Answer


def fingerprint(path: Path) -> str:
    """Read the fingerprint of the store at a path."""
    return of.open_store(path).fingerprint


def sealed_result(path: Path, older: Path | str | None = None, **more: object) -> Answer:
    """Return what a newly made store holds, shares with an older one, and what else is known of it."""
    from obygaze_features.store.records import absent_counts

    store = of.open_store(path)
    statuses = Counter(clip.status for clip in store.clips)
    counts = [f"{statuses[status]:,} {status}" for status in stores.STATUSES if statuses[status]]
    counts += [f"{n_absent:,} absent in {name}" for name, n_absent in absent_counts(store.clips).items()]
    document = {
        "store": str(path),
        "clips": statuses,
        "groups": store.names,
        "fingerprint": store.fingerprint,
        **more,
    }
    lines = []
    if older is not None:
        grown = growth_of(path, older)
        document |= grown.document
        lines = grown.lines
    clips = f"{len(store.clips)} clips of {', '.join(store.names)} ({', '.join(counts)})"
    return Answer(document, "\n".join([f"{path}: {clips}, fingerprint {store.fingerprint}", *lines]))


class Growth(NamedTuple):
    """What a grown store had to write anew of its older version: for `--json`, and for people."""

    document: dict[str, object]
    lines: list[str]


def growth_of(path: Path, older: Path | str) -> Growth:
    """Say which frames of an older version a grown store has elsewhere, and what it shares with it.

    Frames of any number a clip lie one behind the other, so a clip that is inserted moves those behind it.
    """
    from obygaze_features.store.growth import moved_frames

    parent = of.open_store(older)
    moved = moved_frames(parent, of.open_store(path))
    lines = []
    for group in moved:
        shared = f"{group.chunks_kept:,} of {group.chunks:,} chunks of frames are those of"
        line = f"{group.group}: {shared} {parent.name}-{parent.version}"
        if group.first:
            line += (
                "; the others are written anew, for new clips move the frames of "
                f"{group.clips:,} of its clips ({group.first} and later)"
            )
        lines.append(line)
    return Growth({"moved": [group._asdict() for group in moved]} if moved else {}, lines)
