"""Create, resume and read staging folders, which collect features clip by clip until a store is sealed.

A stage can be killed at any time and resumed. It belongs to one job on one file system and is never shared.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Self

from obygaze_features.errors import StoreError
from obygaze_features.locks import locked
from obygaze_features.store.format import CONSUMED, JOURNALS, PLAN, STAGING_SUFFIX
from obygaze_features.store.provenance import clipped, contrasts, validate_corpus
from obygaze_features.store.records import GroupSpec, PlannedClip
from obygaze_features.store.stage_files import (
    JournalEntry,
    Journals,
    Parent,
    array_names,
    create,
    is_done,
    parent_clips,
    parent_of,
    read_files,
    valid_attempts,
    write_plan,
    write_stage,
)
from obygaze_features.store.writer import StageWriter


def staging_path(destination: Path | str) -> Path:
    """Return the path of a future store's staging folder: `NAME.staging` beside it."""
    destination = Path(destination)
    return destination.with_name(destination.name + STAGING_SUFFIX)


class Stage:
    """An open stage. `Stage.open` creates or resumes one, `read_stage` opens an existing one unchanged.

    Attributes
    ----------
    path
        The staging folder.
    clips
        The plan: a clip's position is its row and never changes.
    groups
        Arrays that every clip must have, one entry per backbone.
    corpus
        Name of the corpus and digest of the manifest.
    grows
        The parent store, whose clips count as done; None if the stage has no parent.
    """

    def __init__(
        self,
        path: Path,
        clips: tuple[PlannedClip, ...],
        groups: tuple[GroupSpec, ...],
        corpus: dict[str, object],
        grows: Parent | None = None,
    ) -> None:
        self.path = path
        self.clips = clips
        self.groups = groups
        self.corpus = corpus
        self.grows = grows
        self.rows = {clip.clip_id: row for row, clip in enumerate(clips)}
        self.names = array_names(groups)
        self._journals = Journals(path / JOURNALS, self.names)
        self._attempts: dict[int, tuple[JournalEntry, ...]] | None = None
        self._attempts_version = 0
        self._inherited: list[JournalEntry] | None = None

    @classmethod
    def open(
        cls,
        path: Path | str,
        clips: Sequence[PlannedClip],
        groups: Sequence[GroupSpec],
        corpus: Mapping[str, object],
        *,
        parent: Path | None = None,
    ) -> Self:
        """Create a stage, or resume the existing one and add new clips.

        Parameters
        ----------
        parent
            Folder of the parent store. Its clips must be in the plan and count as done.

        Raises
        ------
        StoreError
            If the stage was created for other clips, spans, arrays, provenance, corpus or parent. The message
            names the field and the stage is not changed. Only `manifest_sha256` may differ: the newest is
            kept.
        """
        path = Path(path)
        wanted, kinds, about = tuple(clips), tuple(groups), validate_corpus(corpus)
        _refuse_twins([clip.clip_id for clip in wanted], "clip")
        _refuse_twins([group.name for group in kinds], "group")
        if not wanted or not kinds:
            raise StoreError(f"{path}: a stage needs at least one clip and one group")
        if len({clip.text is None for clip in wanted}) > 1:
            raise StoreError(f"{path}: some rows have a text and others none; a store has one kind of rows")
        grows = None if parent is None else parent_of(parent)
        if not path.is_dir() or not any(path.iterdir()):
            create(path, wanted, kinds, about, grows)
        with locked(path, wait=True):  # another process may be adding clips at the same time
            stage = cls._read(path)
            stage._compare(kinds, about, grows)
            new = stage._new_clips(wanted)
            if not new and about == stage.corpus:
                return stage
            if new and (path / CONSUMED).exists():
                raise StoreError(
                    f"{path}: is being sealed with --consume, so no clip can be added: seal it first "
                    "(obygaze store seal), then extract with --append"
                )
            planned = (*stage.clips, *new)
            if new:
                write_plan(path, planned)
            if about != stage.corpus:
                write_stage(path, stage.groups, about, grows)
            return cls(path, planned, stage.groups, about, stage.grows)

    @classmethod
    def _read(cls, path: Path) -> Self:
        return cls(path, *read_files(path))

    def _compare(
        self, groups: tuple[GroupSpec, ...], corpus: dict[str, object], grows: Parent | None
    ) -> None:
        def compare(what: str, here: object, requested: object) -> None:
            if contrast := _told(here, requested):
                raise StoreError(
                    f"{self.path}: was begun with other settings of {what}: {contrast}; nothing was changed: "
                    "resume with what it was begun with, or choose another name"
                )

        here, requested = ({group.name: group for group in kinds} for kinds in (self.groups, groups))
        if here.keys() != requested.keys():
            raise StoreError(
                f"{self.path}: was begun for {', '.join(here)}, "
                f"not for {', '.join(sorted(requested))}; choose another name"
            )
        for name, group in here.items():
            compare(name, _settings(group), _settings(requested[name]))
        neutral = {"manifest_sha256": None}
        compare("the corpus", self.corpus | neutral, corpus | neutral)
        prints = [None if parent is None else parent.fingerprint for parent in (self.grows, grows)]
        if prints[0] != prints[1]:
            raise StoreError(
                f"{self.path}: was begun {_growing(self.grows)}, not {_growing(grows)}; nothing was changed: "
                "resume with what it was begun with, or choose another name"
            )

    def _new_clips(self, wanted: tuple[PlannedClip, ...]) -> list[PlannedClip]:
        requested = {clip.clip_id: clip for clip in wanted}
        for clip in self.clips:
            if clip.clip_id not in requested:
                raise StoreError(
                    f"{self.path}: clip {clip.clip_id} is planned "
                    "here but was not asked for; a plan only grows"
                )
            if clip != requested[clip.clip_id]:
                contrast = _told(asdict(clip), asdict(requested[clip.clip_id]))
                raise StoreError(
                    f"{self.path}: clip {clip.clip_id} was planned otherwise: {contrast}; choose another name"
                )
        return [clip for clip in wanted if clip.clip_id not in self.rows]

    def n_writers(self) -> int:
        """Count the processes that are writing to this stage; each holds a lock on its journal."""
        n = 0
        for journal in (self.path / JOURNALS).glob("*.jsonl"):
            with locked(journal, wait=False) as gone:
                n += not gone
        return n

    def attempts(self) -> dict[int, tuple[JournalEntry, ...]]:
        """Read new journal lines; return row -> the valid lines, best first.

        Raises
        ------
        StoreError
            If a line and the plan name different clips, or the parent store is missing.
        """
        self._journals.refresh()
        if self._attempts is None or self._attempts_version != self._journals.version:
            known = [entry for entry in self._journals.entries() if 0 <= entry.row < len(self.clips)]
            for entry in known:
                if self.clips[entry.row].clip_id != entry.clip_id:
                    raise StoreError(
                        f"{self.path}: row {entry.row} is clip {self.clips[entry.row].clip_id} in {PLAN} "
                        f"but {entry.clip_id} in a journal; the stage was tampered with: begin another"
                    )
            self._attempts = valid_attempts([*self._inherit(), *known])
            self._attempts_version = self._journals.version
        return dict(self._attempts)

    def _inherit(self) -> list[JournalEntry]:
        """Return the lines of the parent's clips; the slot is the row in the parent."""
        if self._inherited is None:
            clips = () if self.grows is None else parent_clips(self.grows)
            self._inherited = [
                JournalEntry(
                    row=self.rows[clip.clip_id],
                    clip_id=clip.clip_id,
                    status=clip.status,
                    reason=clip.reason,
                    attempt=0,
                    source=clip.source,
                    slot=slot if clip.digests else -1,
                    names=self.names,
                    sha256="".join(clip.digests.get(name, "") for name in self.names),
                )
                for slot, clip in enumerate(clips)
                if clip.status != "missing" and clip.clip_id in self.rows
            ]
        return self._inherited

    def status(self) -> dict[str, JournalEntry]:
        """Return the current status of the clips, re-read from disk; clips without a line are missing."""
        attempts = self.attempts()
        return {self.clips[row].clip_id: attempts[row][0] for row in sorted(attempts)}

    def missing(
        self,
        shard: tuple[int, int] = (0, 1),
        *,
        retry_failed: bool = False,
        again: Callable[[JournalEntry], bool] = lambda _: False,
    ) -> list[str]:
        """List the clips still to do in shard (i, n), which has the rows with row % n == i, in planned order.

        Failed clips are included if `retry_failed` is set, or if `again` returns true for their line.
        """
        index, count = shard
        if not 0 <= index < count:
            raise StoreError(f"shard {index}/{count}: expected 0 <= i < n")
        attempts = self.attempts()
        return [
            clip.clip_id
            for row, clip in enumerate(self.clips)
            if row % count == index
            and (
                row not in attempts
                or (retry_failed and not is_done(attempts[row][0]))
                or again(attempts[row][0])
            )
        ]

    def damage(self) -> tuple[str, ...]:
        """List the damaged lines of the journals; their clips count as missing."""
        self._journals.refresh()
        return tuple(self._journals.damage())

    def writer(self) -> StageWriter:
        """Create a writer with a new journal; one writer per process, used as a context manager."""
        self._journals.refresh()
        return StageWriter(self.path, self.rows, self.groups, [*self._inherit(), *self._journals.entries()])


def read_stage(path: Path | str) -> Stage:
    """Open an existing stage unchanged, to inspect or seal it."""
    return Stage._read(Path(path))


def _refuse_twins(names: list[str], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise StoreError(f"{what} {name}: given twice; ids are unique")
        seen.add(name)


def _settings(group: GroupSpec) -> dict[str, object]:
    settings: dict[str, object] = {"n_frames": group.n_frames, "provenance": group.provenance}
    return settings | {spec.name: {"shape": list(spec.shape), "dtype": spec.dtype} for spec in group.arrays}


def _told(here: object, requested: object) -> str:
    """Return every field in which a stage and the request differ, with both values."""
    return "; ".join(
        f"{field} is {clipped(old)}, not {clipped(new)}" for field, old, new in contrasts(here, requested)
    )


def _growing(parent: Parent | None) -> str:
    return "from nothing" if parent is None else f"to grow {parent.path} (--append)"
