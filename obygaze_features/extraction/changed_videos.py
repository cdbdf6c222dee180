"""Find finished clips whose video was replaced since, so that they keep the features of an earlier file.

A run does only the clips that a stage, or the store that it extends, lacks. A film that was cut or encoded
anew meanwhile would so be in the store half as it was, and half as it is, without a word.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from obygaze_features.errors import ObygazeError
from obygaze_features.store import Stage
from obygaze_features.store.format import STATUSES_WITH_FEATURES
from obygaze_features.text import counted
from obygaze_features.video.file_facts import file_state

LOOKED_UP_AT_ONCE: Final = 32
"""Files whose size is asked for at a time, as a server takes time for each."""


def note_on_changed_videos(stage: Stage, videos: Mapping[str, Path | None]) -> str:
    """Return a note on the finished clips whose video has another size than when they were done; "" if none.

    Contents are not compared, as that would take reading all videos. A video that is not there, or cannot be
    read, is left out.

    Parameters
    ----------
    stage
        The unfinished store, with the clips of the store that it extends.
    videos
        Clip id -> its video; None if the manifest names none.
    """
    # The sizes that were recorded, and those of today
    bytes_when_done: dict[str, int] = {}  # clip id -> size of its video
    for clip_id, entry in stage.status().items():
        recorded_bytes = entry.source.get("bytes")
        has_features = entry.status in STATUSES_WITH_FEATURES
        has_video = videos.get(clip_id) is not None
        if has_features and has_video and recorded_bytes is not None:
            bytes_when_done[clip_id] = int(recorded_bytes)
    bytes_now = _file_sizes(path for clip_id, path in videos.items() if path and clip_id in bytes_when_done)

    changed = []
    for clip_id, size in bytes_when_done.items():
        path = videos[clip_id]
        can_be_read = path in bytes_now
        if can_be_read and bytes_now[path] != size:
            changed.append((clip_id, path))
    if not changed:
        return ""
    clip_id, path = changed[0]
    clips = counted(len(changed), "clip keeps", "clips keep")
    return (
        f"{clips} the features of an earlier file, such as {clip_id}: {path} has {bytes_now[path]:,} bytes, "
        f"and had {bytes_when_done[clip_id]:,}. For features of the new file, extract into a store of "
        "another name"
    )


def _file_sizes(paths: Iterable[Path]) -> dict[Path | None, int]:
    """Return the size in bytes of each of some videos that are there: path -> bytes of all its files."""
    distinct_paths = list(dict.fromkeys(paths))
    with ThreadPoolExecutor(LOOKED_UP_AT_ONCE) as threads:
        sizes = threads.map(_file_size, distinct_paths)
        return {path: size for path, size in zip(distinct_paths, sizes, strict=True) if size is not None}


def _file_size(path: Path) -> int | None:
    """Return the size of a video in bytes; None if it cannot be looked at."""
    try:
        n_bytes, _ = file_state(path)
    except (OSError, ObygazeError):
        return None
    return n_bytes
