"""Tell a video that does not exist from a lost mount, so that no store is sealed with clips missing.

A machine with a lost mount finds no videos, which a single process cannot distinguish from videos that do not
exist. So each run notes in the stage which videos its machine lacks when it begins. The other machines and
the sealing read these notes. A clip that failed as absent is tried again by a run that finds its video.
"""

import errno
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Protocol

from obygaze_features.errors import StoreError
from obygaze_features.io import NO_SUCH_FILE, write_whole
from obygaze_features.machine import host_name
from obygaze_features.store.records import ClipResult
from obygaze_features.store.stage import Stage
from obygaze_features.text import counted
from obygaze_features.untrusted import parse_json, read_bytes

LOST_MOUNT_ERRORS: Final = (errno.ESTALE, errno.ENOTCONN, errno.ENODEV, errno.EHOSTDOWN)
"""Errors of the system for files of a lost mount."""


def _absent_video_reasons() -> Iterator[str]:
    """Yield the reasons with which clips fail if their file is absent, or its file system is not mounted."""
    yield NO_SUCH_FILE
    for number in LOST_MOUNT_ERRORS:
        yield f"the file cannot be reached ({os.strerror(number)})"
        yield f"the file cannot be read: {os.strerror(number)}"


ABSENT_VIDEO_REASONS: Final = tuple(_absent_video_reasons())
"""Reasons of failed clips that either an absent file or a lost mount can cause."""

LOOKED_UP_AT_ONCE: Final = 32
"""Files whose existence is asked for at a time."""

ABSENT_FOLDER: Final = "absent"
"""Folder of a stage with a file per machine: the clips whose video was absent there when it last began."""


class ClipOutcome(Protocol):
    """What became of a clip: an entry of a journal, a row of a store, a result, or a decoded clip."""

    @property
    def clip_id(self) -> str:
        """Id of the clip."""

    @property
    def status(self) -> str:
        """Such as ok or failed."""

    @property
    def reason(self) -> str:
        """Why it is not ok."""


class MissingVideoCheck:
    """Check that no video is missing only because its file system is not mounted on this machine.

    A video is absent if this machine did not find it when the run began, and lost if it was found then and
    cannot be read any more. Absent videos are noted in the stage, so that runs on different machines can
    compare what they find.

    Parameters
    ----------
    stage
        The stage that the run works on.
    videos
        Clip id -> its video; None if the manifest names none. Empty if rows are not videos.
    has_work
        Whether there is work to do; if not, nothing is refused.

    Raises
    ------
    StoreError
        If this machine finds no video, or lacks some that another machine found.
    """

    def __init__(self, stage: Stage, videos: Mapping[str, Path | None], *, has_work: bool = True) -> None:
        """Look for all videos, and note in the stage which of them this machine does not find.

        Raises
        ------
        StoreError
            This machine finds no video, or lacks some that another machine found.
        """
        self._stage = stage
        self._has_work = has_work
        # Clip id -> its video, of the clips that have one
        self._videos = {clip_id: path for clip_id, path in videos.items() if path is not None}
        files_not_found = missing_files(self._videos.values())
        # Ids of the clips whose video was absent here when the run began
        self._absent = {clip_id for clip_id, path in self._videos.items() if path in files_not_found}
        # The first result that failed because its video was lost during the run; None if there is none
        self._lost_result: ClipResult | None = None
        if self._videos:
            self._write_absent_ids()

        finds_none = len(self._absent) > 0 and len(self._absent) == len(self._videos)
        if has_work and finds_none:  # a run without work needs no video
            raise StoreError(
                f"{host_name()} finds none of the videos of {counted(len(self._videos), 'clip')}, "
                f"such as {min(files_not_found)}: is their file system mounted there? Nothing was extracted"
            )
        self._refuse_found_elsewhere()

    def _write_absent_ids(self) -> None:
        """Write the ids of clips whose videos are absent into this machine's file in the stage.

        Other machines compare it with what they find.
        """
        folder = self._stage.path / ABSENT_FOLDER
        folder.mkdir(exist_ok=True)
        machine = re.sub(r"[^A-Za-z0-9.-]", "_", host_name())

        # Clips of the stage that are not in this manifest, such as those of a parent store, have no path to
        # look for. If they failed because their video was absent, it is taken to be absent here too.
        entries = self._stage.best_entries().values()
        not_in_manifest = _ids_failed_for_absent_video(entries) - self._videos.keys()
        absent = sorted(self._absent | not_in_manifest)
        write_whole(folder / f"{machine}.json", json.dumps(absent) + "\n")

    @property
    def failed(self) -> bool:
        """Whether a video was lost, so that the run must stop."""
        return self._lost_result is not None

    def check(self, results: Iterable[ClipResult]) -> None:
        """Look among some results for one that failed because its video was lost, and remember the first.

        After that `failed` is true, and `refuse` raises.
        """
        if self._lost_result is not None:
            return
        for result in results:
            was_found = result.clip_id in self._videos and result.clip_id not in self._absent
            if was_found and failed_for_absent_video(result):
                self._lost_result = result
                return

    def refuse(self) -> None:
        """Raise a StoreError if a video was lost, or if another machine finds videos that are absent here."""
        lost = self._lost_result
        if lost is not None:
            raise StoreError(
                f"clip {lost.clip_id}: {self._videos[lost.clip_id]} was there on {host_name()} "
                f"when the run began and is not any more ({lost.reason}): is its file system still "
                "mounted? The same command goes on, and tries such clips again"
            )
        self._refuse_found_elsewhere()

    def _refuse_found_elsewhere(self) -> None:
        """Raise a StoreError if another machine finds a video that is absent here, and there is work to do.

        Without the error the clip would be stored as failed, although the other machine could do it.
        """
        if not self._has_work:
            return
        for machine, absent_there in _absent_by_machine(self._stage):
            found_there = sorted(self._absent - absent_there)
            if found_there:
                notes = self._stage.path / ABSENT_FOLDER
                raise StoreError(
                    f"{host_name()} does not find the videos of {counted(len(found_there), 'clip')}, such as "
                    f"{self._videos[found_there[0]]}, and {machine} does: mount them on {host_name()} or "
                    f"leave it out. If they were removed everywhere, delete {notes}"
                )


def missing_files(paths: Iterable[Path]) -> frozenset[Path]:
    """Return the paths that do not exist.

    Several are looked up at a time, as a server takes time for each.
    """
    distinct_paths = list(dict.fromkeys(paths))
    with ThreadPoolExecutor(LOOKED_UP_AT_ONCE) as threads:
        exist = list(threads.map(os.path.exists, distinct_paths))
    return frozenset(path for path, is_there in zip(distinct_paths, exist, strict=True) if not is_there)


def failed_for_absent_video(entry: ClipOutcome) -> bool:
    """Return whether a clip failed because its video was not there, or could not be reached.

    Such a failure says nothing of the video if its file system is not mounted on the machine.
    """
    return entry.status == "failed" and entry.reason in ABSENT_VIDEO_REASONS


def _ids_failed_for_absent_video(entries: Iterable[ClipOutcome]) -> set[str]:
    """Return the ids of the clips that failed because their video was not there or not reached."""
    return {entry.clip_id for entry in entries if failed_for_absent_video(entry)}


def clips_with_returned_video(entries: Iterable[ClipOutcome], videos: Mapping[str, Path | None]) -> set[str]:
    """Return the ids of clips that failed because their video was absent, and whose video is there now.

    Parameters
    ----------
    entries
        What became of the clips of a stage, or of a store that is to grow.
    videos
        Clip id -> its video; None if the manifest names none.
    """
    videos_to_look_for = {}
    for clip in _ids_failed_for_absent_video(entries):
        video = videos.get(clip)
        if video is not None:
            videos_to_look_for[clip] = video
    missing = missing_files(videos_to_look_for.values())
    return {clip for clip, video in videos_to_look_for.items() if video not in missing}


def refuse_missing_videos(stage: Stage) -> None:
    """Refuse to seal a stage if a clip failed because its video was absent, and another machine finds it.

    Raises
    ------
    StoreError
        If there is such a clip; names the clip and the machine.
    """
    failed_ids = _ids_failed_for_absent_video(stage.best_entries().values())
    for machine, absent_there in _absent_by_machine(stage):
        found_elsewhere = sorted(failed_ids - absent_there)
        if found_elsewhere:
            raise StoreError(
                f"{stage.path}: {counted(len(found_elsewhere), 'clip')}, such as "
                f"{found_elsewhere[0]}, failed because a "
                f"machine did not find their videos, and {machine} finds them: extract again there, which "
                "does only these; or seal them as failed with --allow-missing"
            )


def _absent_by_machine(stage: Stage) -> Iterator[tuple[str, set[str]]]:
    """Yield the name of each machine that worked on a stage, and the ids of clips whose videos it lacks.

    Each machine has left a file in the stage, named after it, when its run began.
    """
    for path in sorted((stage.path / ABSENT_FOLDER).glob("*.json")):
        yield path.stem, set(parse_json(read_bytes(path)))
