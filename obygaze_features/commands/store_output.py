"""Make the summaries that several `obygaze store` commands print."""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import obygaze_features as of
from obygaze_features import store as stores
from obygaze_features.options import Answer
from obygaze_features.text import counted


def fingerprint(path: Path) -> str:
    """Read the fingerprint of the store at a path."""
    return of.open_store(path).fingerprint


def sealed_result(path: Path, older: Path | str | None = None, **more: object) -> Answer:
    """Return what to print of a newly made store: its path, clips by status, backbones and fingerprint.

    Parameters
    ----------
    path
        The store.
    older
        The version that it grew from; the chunks that both share are then reported.
    more
        Further fields of the answer's JSON document.
    """
    from obygaze_features.store.records import absent_counts

    store = of.open_store(path)
    statuses = Counter(clip.status for clip in store.clips)
    n_by_status = {status: statuses[status] for status in stores.STATUSES}
    counts = [f"{number:,} {status}" for status, number in n_by_status.items() if number]
    n_absent = absent_counts(store.clips)
    for name, number in n_absent.items():
        counts.append(f"{number:,} absent in {name}")

    document = {
        "store": str(path),
        "clips": n_by_status,
        "groups": store.names,
        "fingerprint": store.fingerprint,
        **more,
    }
    if n_absent:
        document["absent"] = n_absent

    clips = f"{counted(len(store.clips), 'clip')} of {', '.join(store.names)} ({', '.join(counts)})"
    repeated = repeated_clips(store)
    document |= repeated.document
    lines = [f"{path}: {clips}, fingerprint {store.fingerprint}", *repeated.lines]
    if older is not None:
        grown = growth_of(path, older)
        document |= grown.document
        lines += grown.lines
    return Answer(document, "\n".join(lines))


class RepeatedClips(NamedTuple):
    """Which clips are in a store under two ids.

    Attributes
    ----------
    document
        Fields for `--json`; none if there are no such clips.
    lines
        Lines of text.
    """

    document: dict[str, object]
    lines: list[str]


def repeated_clips(store: "of.Store") -> RepeatedClips:
    """Say which clips are in a store under two ids; nothing if there are none."""
    from obygaze_features.store.growth import clips_under_two_ids

    repeated = clips_under_two_ids(store)
    if not repeated:
        return RepeatedClips({}, [])
    clip_id, first_id = repeated[0]
    clips = counted(len(repeated), "clip is", "clips are")
    line = (
        f"warning: {clips} there twice, under two ids, such as {first_id} and {clip_id}, with the same film, "
        "times and features: training and scores count them double; give each clip one id"
    )
    return RepeatedClips({"there_twice": dict(repeated)}, [line])


class Growth(NamedTuple):
    """Which parts of its older version a grown store had to write again.

    Attributes
    ----------
    document
        Fields for `--json`.
    lines
        Lines of text.
    """

    document: dict[str, object]
    lines: list[str]


def growth_of(path: Path, older: Path | str) -> Growth:
    """Describe how many chunks of frames a store shares with the older version that it grew from.

    A chunk is a file with the frames of some clips.

    If clips have different numbers of frames, their frames are stored one after the other. A new clip in
    between then moves the frames of all later clips, whose chunks are written anew.

    Parameters
    ----------
    path
        Path of the store.
    older
        Path or URL of the older version.

    Returns
    -------
    Growth
        The description as fields of a JSON document, and as lines of text.
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
    document: dict[str, object] = {}
    if moved:
        document["moved"] = [group._asdict() for group in moved]
    return Growth(document, lines)
