"""Tell a video that does not exist from a lost mount, so that no store is sealed with clips missing.

A machine with a lost mount finds no videos, which a single process cannot distinguish from videos that do not
exist. So each run notes in the stage which videos are absent where it begins, for the other machines and for
the sealing; a clip that failed as absent is tried again by a run that finds its video.
"""

import errno
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from obygaze_features.door import parse_json, read_bytes
from obygaze_features.errors import StoreError
from obygaze_features.io import NO_SUCH_FILE, write_whole
from obygaze_features.machine import host_name
from obygaze_features.store.journal import JournalEntry
from obygaze_features.store.records import ClipResult
from obygaze_features.store.stage import Stage

LOST: Final = (
    NO_SUCH_FILE,
    *(
        words.format(os.strerror(number))
        for number in (errno.ESTALE, errno.ENOTCONN, errno.ENODEV, errno.EHOSTDOWN)
        for words in ("the file cannot be reached ({})", "the file cannot be read: {}")
    ),
)
"""Reasons of failed clips that either an absent file or a lost mount can cause."""


QUERIES: Final = 32
"""Files that are asked for at a time."""

ABSENT: Final = "absent"
"""Folder of a stage with a file per machine: the clips whose video was absent there when it last began."""


class MissingVideoCheck:
    """Detect that this machine lacks videos which others find, or which were there when it began.

    Parameters
    ----------
    videos
        Clip id -> its video; None if the manifest names none. Empty if rows are not videos.
    working
        Whether there is work to do; if not, nothing is refused.

    Raises
    ------
    StoreError
        If this machine finds no video, or lacks some that another machine found.
    """

    def __init__(self, stage: Stage, videos: Mapping[str, Path | None], *, working: bool = True) -> None:
        self._stage = stage
        self._videos = {clip: path for clip, path in videos.items() if path is not None}
        gone = missing_files(self._videos.values())
        self._absent = {clip for clip, path in self._videos.items() if path in gone}
        self._working = working
        self._lost: ClipResult | None = None
        if self._videos:
            folder = stage.path / ABSENT
            folder.mkdir(exist_ok=True)
            name = re.sub(r"[^A-Za-z0-9.-]", "_", host_name())
            lost = {entry.clip_id for entry in stage.best().values() if is_lost(entry)}
            # Clips that failed before this store grew, and that no manifest names now, are found nowhere.
            not_found = self._absent | (lost - self._videos.keys())
            write_whole(folder / f"{name}.json", json.dumps(sorted(not_found)) + "\n")
        if working and self._absent and len(self._absent) == len(self._videos):
            raise StoreError(
                f"{host_name()} finds none of the videos of {len(self._videos)} clips, such as {min(gone)}: "
                "is their file system mounted there? Nothing was extracted"
            )
        self._refuse_found_elsewhere()

    @property
    def failed(self) -> bool:
        """Whether to stop the run."""
        return self._lost is not None

    def check(self, results: Iterable[ClipResult]) -> None:
        """Check clips that were just written."""
        for result in results:
            if is_lost(result) and result.clip_id in self._videos.keys() - self._absent:
                self._lost = self._lost or result

    def refuse(self) -> None:
        """Raise a StoreError after a run that lost videos, or on a machine that lacks videos others find."""
        if self._lost is not None:
            raise StoreError(
                f"clip {self._lost.clip_id}: {self._videos[self._lost.clip_id]} was there on {host_name()} "
                f"when the run began and is not any more ({self._lost.reason}): is its file system still "
                "mounted? The same command goes on, and tries such clips again"
            )
        self._refuse_found_elsewhere()

    def _refuse_found_elsewhere(self) -> None:
        for machine, absent in _absent_by_machine(self._stage) if self._working else ():
            if unseen := sorted(self._absent - absent):
                raise StoreError(
                    f"{host_name()} does not find the videos of {len(unseen)} clips, such as "
                    f"{self._videos[unseen[0]]}, and {machine} does: mount them on {host_name()} or leave it "
                    f"out. If they were removed everywhere, delete {self._stage.path / ABSENT}"
                )


def missing_files(paths: Iterable[Path]) -> frozenset[Path]:
    """Return the paths that do not exist, asking for many at a time: a server needs a while for each."""
    files = list(dict.fromkeys(paths))
    with ThreadPoolExecutor(QUERIES) as threads:
        return frozenset(
            path for path, exists in zip(files, threads.map(os.path.exists, files), strict=True) if not exists
        )


def is_lost(entry: JournalEntry | ClipResult) -> bool:
    """Return whether a clip failed for a reason that a lost mount can also cause."""
    return entry.status == "failed" and entry.reason in LOST


def tried_again(stage: Stage, videos: Mapping[str, Path | None]) -> set[str]:
    """Return the clips that failed because their video was absent, and whose video is there now."""
    lost = [entry.clip_id for entry in stage.best().values() if is_lost(entry)]
    gone = missing_files(path for clip in lost if (path := videos.get(clip)) is not None)
    return {clip for clip in lost if videos.get(clip) not in {None, *gone}}


def refuse_missing_videos(stage: Stage) -> None:
    """Refuse to seal clips that failed for an absent video that some machine finds.

    Raises
    ------
    StoreError
        If there is such a clip; names the clip and the machine.
    """
    lost = {entry.clip_id for entry in stage.best().values() if is_lost(entry)}
    for machine, absent in _absent_by_machine(stage):
        found_elsewhere = sorted(lost - absent)
        if found_elsewhere:
            raise StoreError(
                f"{stage.path}: {len(found_elsewhere)} clips, such as {found_elsewhere[0]}, failed because a "
                f"machine did not find their videos, and {machine} finds them: extract again there, which "
                "does only these; or seal them as failed with --allow-missing"
            )


def _absent_by_machine(stage: Stage) -> Iterator[tuple[str, set[str]]]:
    for path in sorted((stage.path / ABSENT).glob("*.json")):
        yield path.stem, set(parse_json(read_bytes(path)))
