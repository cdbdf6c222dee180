"""Compare which videos the machines of one extraction find, so that no store is sealed with clips missing.

A machine with a lost mount finds no videos. A single process cannot distinguish this from videos that do not
exist. Each run therefore first checks for its videos and records the result in the stage, where other
machines and the sealing read it.
"""

import errno
import json
import os
import re
import socket
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from obygaze_features.errors import StoreError
from obygaze_features.io import NO_SUCH_FILE, write_whole
from obygaze_features.store.records import ClipResult
from obygaze_features.store.stage import Stage
from obygaze_features.store.stage_files import JournalEntry

VIDEO_CHECKS: Final = "sights"
"""Folder of a stage with one file per machine that extracted into it."""

LOST: Final = (
    NO_SUCH_FILE,
    *(
        words.format(os.strerror(number))
        for number in (errno.ESTALE, errno.ENOTCONN, errno.ENODEV, errno.EHOSTDOWN)
        for words in ("the file cannot be reached ({})", "the file cannot be read: {}")
    ),
)
"""Reasons of failed clips that either an absent file or a lost mount can cause."""


def host_name() -> str:
    """Return the name of this machine; under Slurm the node name, as used by `scontrol show node`."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


@dataclass(frozen=True)
class VideoCheck:
    """Result of one machine's check for the videos of a plan, at the start of its last run.

    Parameters
    ----------
    host
        Name of the machine.
    manifest_sha256
        Digest of the manifest that named the videos; checks of other manifests are ignored.
    n_clips
        Rows of the plan at that time.
    absent
        Rows whose video was absent.
    """

    host: str
    manifest_sha256: str
    n_clips: int
    absent: frozenset[int]

    @classmethod
    def run(cls, stage: Stage, videos: Mapping[str, Path | None], *, working: bool = True) -> Self:
        """Check for the videos of all clips, and record the result in the stage for other machines.

        Parameters
        ----------
        videos
            Clip id -> its video; None if the manifest names none.
        working
            Whether there is work to do; if not, nothing is refused.

        Raises
        ------
        StoreError
            If no video is found, or another machine finds videos that are absent here.
        """
        gone = missing_files(path for path in videos.values() if path is not None)
        absent = frozenset(stage.rows[clip] for clip, path in videos.items() if path in gone)
        check = cls(host_name(), str(stage.corpus.get("manifest_sha256")), len(stage.clips), absent)
        check._record(stage.path)
        if not working:
            return check
        if absent and len(absent) == sum(path is not None for path in videos.values()):
            raise StoreError(
                f"{check.host} finds none of the videos of {len(absent)} clips, such as {min(gone)}: "
                "is their file system mounted there? Nothing was extracted"
            )
        check.refuse_if_found_elsewhere(stage, videos)
        return check

    def refuse_if_found_elsewhere(self, stage: Stage, videos: Mapping[str, Path | None]) -> None:
        """Raise a StoreError if another machine finds videos that are absent here."""
        for elsewhere in read_video_checks(stage) if self.absent else []:
            unseen = sorted(row for row in self.absent if elsewhere.finds(row))
            if unseen:
                raise StoreError(
                    f"{self.host} does not find the videos of {len(unseen)} clips, such as "
                    f"{videos[stage.clips[unseen[0]].clip_id]}, and {elsewhere.host} does: mount them on "
                    f"{self.host} or leave it out. If they were removed everywhere, delete "
                    f"{stage.path / VIDEO_CHECKS / _file_name(elsewhere.host)}"
                )

    def finds(self, row: int) -> bool:
        """Return whether the video of a row was found."""
        return row < self.n_clips and row not in self.absent

    def _record(self, stage_path: Path) -> None:
        folder = stage_path / VIDEO_CHECKS
        folder.mkdir(exist_ok=True)
        record = {
            "host": self.host,
            "manifest_sha256": self.manifest_sha256,
            "n_clips": self.n_clips,
            "absent": sorted(self.absent),
        }
        write_whole(folder / _file_name(self.host), json.dumps(record) + "\n")


class MissingVideoCheck:
    """Detect, while clips are written, that videos found at the start are no longer accessible.

    Parameters
    ----------
    videos
        Clip id -> its video; empty if rows are not videos, which disables the check.
    working
        Whether there is work to do.

    Raises
    ------
    StoreError
        As in `VideoCheck.run`.
    """

    def __init__(self, stage: Stage, videos: Mapping[str, Path | None], *, working: bool = True) -> None:
        self._stage = stage
        self._videos = videos
        self._working = working
        self._check = VideoCheck.run(stage, videos, working=working) if videos else None
        self._lost: ClipResult | None = None

    @property
    def failed(self) -> bool:
        """Whether to stop the run."""
        return self._lost is not None

    def check(self, results: Iterable[ClipResult]) -> None:
        """Check clips that were just written."""
        for result in results:
            if self._check and is_lost(result) and self._check.finds(self._stage.rows[result.clip_id]):
                self._lost = self._lost or result

    def refuse(self) -> None:
        """Raise a StoreError after a run that lost videos, or on a machine that lacks videos others find."""
        if self._lost is not None and self._check is not None:
            raise StoreError(
                f"clip {self._lost.clip_id}: {self._videos[self._lost.clip_id]} was there on "
                f"{self._check.host} when the run began and is not any more ({self._lost.reason}): is its "
                "file system still mounted? The same command goes on, and tries such clips again"
            )
        if self._check is not None and self._working:
            self._check.refuse_if_found_elsewhere(self._stage, self._videos)


def missing_files(paths: Iterable[Path]) -> frozenset[Path]:
    """Return the paths that do not exist; listing folders is faster than a query for each file."""
    by_folder: dict[Path, list[Path]] = defaultdict(list)
    for path in dict.fromkeys(paths):
        by_folder[path.parent].append(path)
    gone: set[Path] = set()
    for folder, wanted in by_folder.items():
        listed: set[str] = set()
        if len(wanted) > 1:
            with suppress(OSError), os.scandir(folder) as entries:
                listed = {entry.name for entry in entries if not entry.is_symlink()}
        # A link may be broken, and a listing may show another Unicode form of a name: query the file.
        gone.update(path for path in wanted if path.name not in listed and not _is_there(path))
    return frozenset(gone)


def read_video_checks(stage: Stage) -> list[VideoCheck]:
    """Read the checks of all machines for the stage's current manifest, sorted by machine name."""
    checks = []
    for path in sorted((stage.path / VIDEO_CHECKS).glob("*.json")):
        with suppress(OSError, ValueError, KeyError, TypeError):  # incomplete, or written by another release
            record = json.loads(path.read_bytes())
            check = VideoCheck(
                str(record["host"]),
                str(record["manifest_sha256"]),
                int(record["n_clips"]),
                frozenset(int(row) for row in record["absent"]),
            )
            if check.manifest_sha256 == str(stage.corpus.get("manifest_sha256")):
                checks.append(check)
    return checks


def is_lost(entry: JournalEntry | ClipResult) -> bool:
    """Return whether a clip failed for a reason that a lost mount can also cause."""
    return entry.status == "failed" and entry.reason in LOST


def refuse_missing_videos(stage: Stage, attempts: Mapping[int, Sequence[JournalEntry]]) -> None:
    """Refuse to seal clips that failed for an absent video that some machine finds.

    Raises
    ------
    StoreError
        If there is such a clip; names the clip and the machine.
    """
    lost = [row for row, entries in attempts.items() if is_lost(entries[0])]
    for check in read_video_checks(stage) if lost else []:
        rows = sorted(row for row in lost if check.finds(row))
        if rows:
            clip = stage.clips[rows[0]].clip_id
            raise StoreError(
                f"{stage.path}: {len(rows)} clips, such as {clip}, failed because a machine did not find "
                f"their videos, and {check.host} finds them: extract again there, which does only these; "
                "or seal them as failed with --allow-missing"
            )


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except OSError:
        return False
    return True


def _file_name(host: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]", "_", host) + ".json"
