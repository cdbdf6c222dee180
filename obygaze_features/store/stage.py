"""Create, resume and read staging folders, which collect features clip by clip until a store is sealed.

A stage can be killed at any time and resumed. It belongs to one job on one file system and is never shared.
Its plan is fixed when it is made: the clips in the order of the store's rows.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.errors import StoreError
from obygaze_features.io import make_folder, sha256_of, store_path, whole_folder, write_new, write_whole
from obygaze_features.lines import UNREADABLE, checked_entry, encode_line, journals_in, json_bytes
from obygaze_features.locks import locked, require_locks
from obygaze_features.store.arrays import SealedArray
from obygaze_features.store.format import (
    ATTRIBUTE,
    DIGESTS,
    FEATURES,
    JOURNALS,
    LAYOUT,
    PIECE_ROWS,
    PIECES,
    PLAN,
    RAGGED_LAYOUT,
    ROW_SIZE,
    STAGE,
    STAGING_SUFFIX,
    STATUSES_WITH_FEATURES,
    TABLE,
    ZARR_METADATA,
)
from obygaze_features.store.journal import (
    NO_DIGEST,
    FrameRange,
    JournalEntry,
    PieceAttempt,
    best_entries,
    has_ended,
    read_journals,
)
from obygaze_features.store.pieces import ParentRows, StagedRows, StageLayout
from obygaze_features.store.provenance import Contrast, clipped, contrasts, validate_corpus
from obygaze_features.store.records import GroupSpec, PlannedClip, StoredClip, parse_clips_csv
from obygaze_features.store.store_files import FolderFiles, read_required, read_undamaged
from obygaze_features.store.writer import DigestLater, StageWriter
from obygaze_features.text import counted
from obygaze_features.untrusted import MAX_LINES, parse_json, read_bytes

MAX_SHOWN = 3
"""Settings that differ which a message names at most."""


@checked
def staging_path(destination: Path | str) -> Path:
    """Return the path of a future store's staging folder: `NAME.staging` beside it."""
    destination = store_path(destination)
    return destination.with_name(destination.name + STAGING_SUFFIX)


class ParentStore(msgspec.Struct, frozen=True):
    """The sealed store that a stage extends, as stage.json names it: its folder and its fingerprint."""

    path: str
    fingerprint: str

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Return the path and fingerprint of the sealed store in a folder, as a stage records them."""
        return cls(str(folder.resolve()), sha256_of(read_required(FolderFiles(folder), DIGESTS)))

    def _refuse_changed(self) -> None:
        """Raise a StoreError if the store is missing, or has other content than when the stage was begun."""
        folder = Path(self.path)
        if not (folder / DIGESTS).is_file() or ParentStore.of(folder) != self:
            raise StoreError(
                f"{folder}: gone, or no longer the store that a stage was begun to grow (--append)"
            )

    def clips(self) -> tuple[StoredClip, ...]:
        """Read the clips of the store.

        Raises
        ------
        StoreError
            If the store is missing or has changed.
        """
        self._refuse_changed()
        folder = Path(self.path)
        return parse_clips_csv([read_required(FolderFiles(folder), TABLE)], f"{folder}/{TABLE}")

    def row_sizes(self, groups: Iterable[str]) -> dict[str, NDArray[np.int64]]:
        """Read the number of frames of every clip in some ragged groups of the store.

        Returns
        -------
        dict
            Name of a group -> numbers of frames, int64 [N].

        Raises
        ------
        StoreError
            If the store is missing or has changed.
        """
        self._refuse_changed()
        files = FolderFiles(Path(self.path))
        sizes = {}
        for name in groups:
            node = read_required(files, f"{FEATURES}/{name}/{ROW_SIZE}/{ZARR_METADATA}")
            metadata = read_undamaged(f"{self.path}, {name}/{ROW_SIZE}", partial(parse_json, node))
            sizes[name] = SealedArray(files, name, ROW_SIZE, metadata).read()
        return sizes

    def attributes(self) -> dict[str, Any]:
        """Read the attributes of the store; raise a StoreError if it is missing or has changed."""
        self._refuse_changed()
        file = Path(self.path) / FEATURES / ZARR_METADATA

        def read_attributes() -> dict[str, Any]:
            """Read the attributes of the store from the metadata of its root group."""
            metadata = parse_json(read_bytes(file))
            return dict(metadata["attributes"][ATTRIBUTE])

        return read_undamaged(str(file), read_attributes)


class StageSettings(msgspec.Struct, omit_defaults=True):
    """What stage.json holds: the settings with which a stage was begun."""

    layout: int
    groups: Annotated[tuple[GroupSpec, ...], msgspec.Meta(min_length=1)]
    corpus: dict[str, Any]
    parent: ParentStore | None = None


class Stage:
    """An open stage. `Stage.open` creates or resumes one, `read_stage` opens an existing one unchanged.

    Attributes
    ----------
    path
        The staging folder.
    clips
        The plan, sorted by id: a clip's position is its row in the store.
    groups
        Arrays that every clip must have, one entry per backbone.
    corpus
        Name of the corpus and digest of the manifest.
    parent_store
        The parent store, whose clips count as done; None if the stage has no parent.
    rows
        Clip id -> row.
    layout
        The pieces, and the places of rows in them.
    attempts_with_whole_shards
        Attempts whose shards a store can have as they are; as of the last call of `best_entries`.
    """

    def __init__(self, path: Path, clips: tuple[PlannedClip, ...], settings: StageSettings) -> None:
        """Hold the plan of a stage, and read the clips of its parent store; journals are not read yet.

        Parameters
        ----------
        path
            The staging folder.
        clips
            The plan: the clips in the order of the store's rows.
        settings
            The groups, the corpus, and the parent store (which the stage extends), if any.
        """
        # The plan
        self.path = path
        self.clips = clips
        self.groups = settings.groups
        self.corpus = settings.corpus
        self.parent_store = settings.parent  # whose clips count as done; None without one
        self.rows = {clip.clip_id: row for row, clip in enumerate(clips)}
        self.layout = StageLayout(settings.groups, len(clips))  # how the arrays lie in files

        # What was done, by the journals as they were read last. Clips are written in pieces of 16 rows, and
        # every try to write a piece is an attempt with files of its own.
        self._journal_sizes: dict[str, int] | None = None  # by file name, in bytes; None before any reading
        self._attempts: set[PieceAttempt] = set()  # all that have a line in a journal
        self.attempts_with_whole_shards: set[PieceAttempt] = set()
        self._best_entries: dict[int, JournalEntry] = {}  # row -> its best entry
        self._damage: tuple[str, ...] = ()  # a sentence on each damaged line

        # The clips of the parent store, and their numbers of frames [N] in each ragged group.
        self._parent_clips: tuple[StoredClip, ...] = ()
        self._parent_sizes: dict[str, NDArray[np.int64]] = {}
        if self.parent_store is not None:
            ragged_names = [group.name for group in self.layout.ragged_groups]
            self._parent_clips = self.parent_store.clips()
            self._parent_sizes = self.parent_store.row_sizes(ragged_names)

    @classmethod
    def open(
        cls,
        path: Path | str,
        clips: Sequence[PlannedClip],
        groups: Sequence[GroupSpec],
        corpus: Mapping[str, object],
        *,
        parent: Path | None = None,
        trial: bool = False,
    ) -> Self:
        """Create a stage, or resume the existing one.

        Parameters
        ----------
        path
            The staging folder; may be missing or empty.
        clips
            The clips of the future store, in any order.
        groups
            The arrays that every clip will have, one entry per backbone, in any order.
        corpus
            Name of the corpus (`name`) and digest of the manifest (`manifest_sha256`).
        parent
            Folder of the parent store. Its clips must be in the plan and count as done.
        trial
            Whether to write nothing: for a dry run on a stage that exists.

        Raises
        ------
        StoreError
            If the stage was created for other clips, spans, arrays, provenance, corpus or parent. The message
            names the field and the stage is not changed. Only the digest of the manifest (`manifest_sha256`)
            may differ: the newest is kept.
        """
        # The plan and the settings that are asked for
        path = Path(path)
        sorted_clips = tuple(sorted(clips, key=lambda clip: clip.clip_id))
        sorted_groups = tuple(sorted(groups, key=lambda group: group.name))
        parent_store = None if parent is None else ParentStore.of(parent)
        has_ragged_group = any(group.ragged for group in sorted_groups)
        layout = RAGGED_LAYOUT if has_ragged_group else LAYOUT
        settings = StageSettings(layout, sorted_groups, validate_corpus(corpus), parent_store)
        _refuse_impossible_plan(path, sorted_clips, sorted_groups)

        is_missing_or_empty = not path.is_dir() or not any(path.iterdir())
        if is_missing_or_empty:
            _create(path, sorted_clips, settings)

        with locked(path, wait=True):  # another process may be resuming it at the same time
            staged_clips, staged_settings = _read_files(path)
            stage = cls(path, staged_clips, staged_settings)
            stage._refuse_other_plan(sorted_clips, settings)

            # The digest of the manifest may differ, if the manifest was edited without changing the plan.
            has_other_digest = settings.corpus != stage.corpus
            if has_other_digest and not trial:
                write_whole(path / STAGE, json_bytes(msgspec.to_builtins(settings)))
                stage.corpus = settings.corpus
            return stage

    def has_groups(self, groups: Sequence[GroupSpec]) -> bool:
        """Return whether groups are those of the stage: with the same names, arrays and provenance."""
        differences = contrasts(_comparable_groups(self.groups), _comparable_groups(groups))
        return not differences

    def _refuse_other_plan(self, clips: tuple[PlannedClip, ...], settings: StageSettings) -> None:
        """Raise a StoreError if the stage was created for other clips, or with other settings."""
        problem = self._describe_other_clips(clips, settings)
        if not problem:
            problem = self._describe_other_settings(clips, settings)
        if problem:
            raise StoreError(f"{self.path}: {problem}")

    def _describe_other_clips(self, clips: tuple[PlannedClip, ...], settings: StageSettings) -> str:
        """Return in words how a list of clips differs from the stage's; empty if the ids are the same."""
        clip_ids = {clip.clip_id for clip in clips}
        only_in_stage = sorted(self.rows.keys() - clip_ids)
        only_in_list = sorted(clip_ids - self.rows.keys())
        if not only_in_stage and not only_in_list:
            return ""

        corpus = self.corpus.get("name")
        corpus_of_list = settings.corpus.get("name")
        if only_in_stage:
            example = f"{only_in_stage[0]} is in it alone"
        else:
            example = f"{only_in_list[0]} is in yours alone"
        return (
            f"holds {counted(len(self.clips), 'clip')} of '{corpus}', {len(only_in_stage)} of which your "
            f"list '{corpus_of_list}' of {len(clips)} lacks; {len(only_in_list)} of yours are not in it "
            f"({example}). Nothing was changed. "
            "Resume it with the list that it was begun with, or choose another name for STORE. To add clips, "
            "seal it (obygaze store seal; --allow-missing if clips are still to do), then extract the longer "
            "list with --append STORE"
        )

    def _describe_other_settings(self, clips: tuple[PlannedClip, ...], settings: StageSettings) -> str:
        """Return in words which settings differ from the stage's; empty if none do."""
        group_names = [group.name for group in self.groups]
        other_names = [group.name for group in settings.groups]
        if set(group_names) != set(other_names):
            return (
                f"has the groups {', '.join(group_names)}, and {', '.join(other_names)} are asked for; "
                "nothing was changed: resume with what it was begun with, or choose another name for STORE"
            )

        differing = self._differing_settings(clips, settings)
        if not differing:
            return ""
        descriptions = []
        for contrast in differing[:MAX_SHOWN]:
            in_stage = clipped(contrast.first)
            in_request = clipped(contrast.second)
            descriptions.append(f"{contrast.field} is {in_stage}, not {in_request}")
        shown = "; ".join(descriptions)

        remedy = "resume with what it was begun with"
        only_corpus_differs = [contrast.field for contrast in differing] == ["corpus.name"]
        if only_corpus_differs:
            name_of_corpus = str(self.corpus.get("name"))
            remedy = f"--corpus {quote(name_of_corpus)} resumes it"
        return (
            f"was begun with other settings: {shown}; nothing was changed: {remedy}, or choose another "
            "name for STORE"
        )

    def _differing_settings(self, clips: tuple[PlannedClip, ...], settings: StageSettings) -> list[Contrast]:
        """List the fields in which settings, or the clips, differ from those of the stage.

        The spans and texts of the clips are compared only if all settings are equal.
        """
        differing = contrasts(
            _comparable_settings(self.groups, self.corpus, self.parent_store),
            _comparable_settings(settings.groups, settings.corpus, settings.parent),
        )
        if differing or clips == self.clips:
            return differing
        staged_clips = {clip.clip_id: asdict(clip) for clip in self.clips}
        other_clips = {clip.clip_id: asdict(clip) for clip in clips}
        return contrasts(staged_clips, other_clips)

    def n_writers(self) -> int:
        """Count the processes that are writing to this stage; each holds a lock on its journal."""
        journals = journals_in(self.path / JOURNALS)
        return len([journal for journal in journals if not has_ended(journal)])

    def best_entries(self) -> dict[int, JournalEntry]:
        """Return what became of each clip: row -> its best journal entry; rows without one are still to do.

        Several attempts may have tried a clip. The best entry is one with features of the whole clip (ok),
        else of a part (partial), else a failure; and of equal ones the latest.

        The journals are read again if they have changed, as other processes may write to them.

        Raises
        ------
        StoreError
            If an entry and the plan name different clips, or the parent store is missing.
        """
        self._read_changed_journals()  # which sets `_best_entries`
        return self._best_entries

    def _read_changed_journals(self) -> None:
        """Read from the journals what became of each clip, if they have changed since the last time.

        The result is stored in the attributes that hold the content of the journals: attempts at pieces, the
        best entry of each row, and the damaged lines.
        """
        # Journals only grow: while their sizes are the same, so is their content.
        sizes = {path.name: path.stat().st_size for path in journals_in(self.path / JOURNALS)}
        if sizes == self._journal_sizes:
            return

        # A line has the entries of the clips that one attempt wrote in a piece (16 neighbouring rows), so all
        # of them name the same attempt.
        all_lines, damage = read_journals(self.path / JOURNALS, len(self.layout.names))
        entries: list[JournalEntry] = []
        attempts: set[PieceAttempt] = set()
        attempts_with_whole_shards: set[PieceAttempt] = set()
        for line in all_lines:
            if not line.rows:
                continue
            entries += line.rows
            attempt = line.rows[0].holding_attempt
            attempts.add(attempt)
            if line.whole:  # a store can have the attempt's shards as they are
                attempts_with_whole_shards.add(attempt)

        # An error must leave the attributes as they were, so they change only after the check.
        self._refuse_entries_of_other_plan(entries)
        self._attempts = attempts
        self.attempts_with_whole_shards = attempts_with_whole_shards
        self._best_entries = best_entries([*self._parent_entries(), *entries])
        self._damage = tuple(damage)
        self._journal_sizes = sizes

    def _refuse_entries_of_other_plan(self, entries: Iterable[JournalEntry]) -> None:
        """Raise a StoreError if an entry names another clip than the plan has in its row."""
        for entry in entries:
            if self.rows.get(entry.clip_id) != entry.row:
                raise StoreError(
                    f"{self.path}: row {entry.row} is not clip {entry.clip_id} in {PLAN}, as a journal "
                    "says; the stage was tampered with: begin another"
                )

    def _parent_entries(self) -> Iterable[JournalEntry]:
        """Yield a journal entry for each clip that the parent store, which this stage extends, has done.

        So its clips count like those that journals of the stage name. Such an entry has no writer
        (`JournalEntry.is_in_parent`), and its frames are places in the arrays of the parent store. Nothing is
        yielded without a parent store, or for its clips that are not in the plan.
        """
        frames_of_clips = self._parent_frames()
        for clip, frames in zip(self._parent_clips, frames_of_clips, strict=True):
            if clip.status == "missing" or clip.clip_id not in self.rows:
                continue
            # The digests of the clip's rows in all arrays, joined in the order of the stage's arrays.
            # NO_DIGEST stands for an array in which the clip has none, as it is absent in the group.
            joined_digests = ""
            if clip.digests:  # it has features
                joined_digests = "".join(clip.digests.get(name, NO_DIGEST) for name in self.layout.names)
            yield JournalEntry(
                row=self.rows[clip.clip_id],
                clip_id=clip.clip_id,
                status=clip.status,  # type: ignore[arg-type]  # checked text
                reason=clip.reason,
                sha256=joined_digests,
                source=clip.source,
                absent=clip.absent,
                frames=frames,
                without_pictures_s=clip.without_pictures_s,
            )

    def _parent_frames(self) -> list[dict[str, FrameRange]]:
        """Return for each clip of the parent store: ragged group -> where its frames lie in the arrays there.

        Frames follow each other in the order of the clips. A clip without frames in a group has no entry.
        """
        frames_of_clips: list[dict[str, FrameRange]] = [{} for _ in self._parent_clips]
        for group, sizes in self._parent_sizes.items():
            first_frame = 0
            for frames_of_clip, n_frames in zip(frames_of_clips, sizes.tolist(), strict=True):
                if n_frames:
                    frames_of_clip[group] = FrameRange(first_frame, n_frames)
                first_frame += n_frames
        return frames_of_clips

    def status(self) -> dict[str, JournalEntry]:
        """Return the current status of the clips, re-read from disk; clips without an entry are missing."""
        return {entry.clip_id: entry for _, entry in sorted(self.best_entries().items())}

    def piece(self, clip_id: str) -> int:
        """Return the number of the piece (16 neighbouring rows) that a clip belongs to."""
        return self.rows[clip_id] // PIECE_ROWS

    def missing(
        self,
        shard: tuple[int, int] = (0, 1),
        *,
        retry_failed: bool = False,
        again: Callable[[JournalEntry], bool] = lambda _: False,
    ) -> list[str]:
        """Return the ids of the clips that are still to do, sorted; by default of all rows.

        Parameters
        ----------
        shard
            (i, n): only the rows of the i-th of n shares, which has the pieces i, i + n, i + 2n and so on.
        retry_failed
            Whether failed clips are done again.
        again
            Returns for a clip's best entry whether the clip is to be done again; by default never.
        """
        best = self.best_entries()
        clip_ids = []
        for row in rows_of_share(len(self.clips), shard):
            entry = best.get(row)  # None: the clip was not tried yet
            status = None if entry is None else entry.status
            is_to_do = is_to_be_done(status, retry_failed=retry_failed)
            is_to_be_repeated = entry is not None and again(entry)
            if is_to_do or is_to_be_repeated:
                clip_ids.append(self.clips[row].clip_id)
        return clip_ids

    def damage(self) -> tuple[str, ...]:
        """List the damaged lines of the journals; their clips count as missing."""
        self.best_entries()  # reads the journals anew, and notes their damaged lines
        return self._damage

    def reader(self) -> StagedRows:
        """Return a reader of the rows that this stage, and its parent store, hold."""
        parent: ParentRows | None = None
        if self.parent_store is not None:
            parent = ParentRows(
                folder=Path(self.parent_store.path),
                clips=self._parent_clips,
                n_frames={name: int(sizes.sum()) for name, sizes in self._parent_sizes.items()},
            )
        return StagedRows(self.path, self.layout, parent)

    def writer(
        self, clip_ids: Iterable[str] | None = None, digest_later: DigestLater | None = None
    ) -> StageWriter:
        """Create a writer with a new journal; one writer per process, used as a context manager.

        Parameters
        ----------
        clip_ids
            The clips that it will do; None for all that are missing. A piece is finished when all of these
            clips that are in it are written.
        digest_later
            Computes digests of large rows in another process; None computes them in this one.
        """
        best = self.best_entries()
        if clip_ids is None:
            clip_ids = self.missing()
        return StageWriter(
            self.reader(),
            self.groups,
            self.clips,
            self.rows,
            best=best,
            attempts=self._attempts,
            to_do={self.rows[clip_id] for clip_id in clip_ids},
            digest_later=digest_later,
        )

    def sweep(self, keep: Collection[int] = ()) -> int:
        """Remove the files that killed writers left unfinished.

        Parameters
        ----------
        keep
            Numbers of pieces (16 neighbouring rows each) whose files stay, because writers on other machines,
            whose locks cannot be seen here, work on them.

        Returns
        -------
        int
            Number of clips that may be lost by that. It is not known which rows of an unfinished piece were
            written, so all its clips that are still to do are counted.
        """
        files_of_attempt = self._files_of_attempts()
        writers = {attempt.writer for attempt in files_of_attempt}
        ended_writers = {writer for writer in writers if has_ended(self.path / JOURNALS / f"{writer}.jsonl")}

        # The journals are read after it is known which writers have ended: these add no more lines. Read
        # before, they might lack a line that such a writer added at its end.
        rows_to_do = {self.rows[clip_id] for clip_id in self.missing()}

        lost_rows: set[int] = set()
        for attempt, paths in files_of_attempt.items():
            has_line_in_journal = attempt in self._attempts
            is_abandoned = attempt.writer in ended_writers and not has_line_in_journal
            if not is_abandoned or attempt.piece in keep:
                continue
            for path in paths:
                path.unlink(missing_ok=True)  # another run may sweep too
            lost_rows |= rows_to_do.intersection(self.layout.rows(attempt.piece))
        return len(lost_rows)

    def _files_of_attempts(self) -> dict[PieceAttempt, list[Path]]:
        """Group the files of written rows by the attempt that they are of: attempt -> its files.

        An attempt writes a piece, 16 neighbouring rows; it may be unfinished.
        """
        files_of_attempt = defaultdict(list)
        for path in (self.path / PIECES).iterdir():
            # PIECE.WRITER.NUMBER.ENDING, as `attempt_file` names them.
            match = re.match(r"(\d+)\.(\d+)\.(\d+)\.", path.name)
            if match:  # not one of the hidden files that NFS makes
                attempt = PieceAttempt(piece=int(match[1]), writer=match[2], number=int(match[3]))
                files_of_attempt[attempt].append(path)
        return files_of_attempt


@checked
def read_stage(path: Path | str) -> Stage:
    """Open an existing stage unchanged, to inspect or seal it."""
    clips, settings = _read_files(Path(path))
    return Stage(Path(path), clips, settings)


def is_to_be_done(status: str | None, *, retry_failed: bool) -> bool:
    """Return whether a clip is still to do, by what became of it in a stage or in the store that it extends.

    Parameters
    ----------
    status
        Its status; None or `missing` if it was never done.
    retry_failed
        Whether failed clips are done again.
    """
    if status is None or status == "missing":
        return True
    return retry_failed and status not in STATUSES_WITH_FEATURES


def rows_of_share(n_clips: int, share: tuple[int, int]) -> list[int]:
    """Return the rows of share i of n: those of the pieces i, i + n, i + 2n and so on.

    A piece is 16 neighbouring rows, which are written together, so that no two shares write the same piece.

    Parameters
    ----------
    n_clips
        Number of rows of the stage.
    share
        i, counted from 0, and n.
    """
    index, n_shares = share
    if not 0 <= index < n_shares:
        raise StoreError(f"shard {index}/{n_shares}: expected 0 <= i < n")
    rows = []
    for row in range(n_clips):
        piece = row // PIECE_ROWS
        if piece % n_shares == index:
            rows.append(row)
    return rows


def _refuse_impossible_plan(
    path: Path, clips: tuple[PlannedClip, ...], groups: tuple[GroupSpec, ...]
) -> None:
    """Refuse clips and groups, sorted by name, of which no store can be made.

    Raises
    ------
    StoreError
        If there are no clips or no groups, two have the same name, or only some of the rows have a text.
    """
    _refuse_repeated(path, [clip.clip_id for clip in clips], "clip")
    _refuse_repeated(path, [group.name for group in groups], "group")
    if not clips or not groups:
        raise StoreError(f"{path}: a stage needs at least one clip and one group")
    n_with_text = len([clip for clip in clips if clip.text is not None])
    if 0 < n_with_text < len(clips):
        raise StoreError(f"{path}: some rows have a text and others none; a store has one kind of rows")


def _refuse_repeated(path: Path, names: list[str], noun: str) -> None:
    """Raise an error that names the stage if one of the sorted names of a `noun` occurs twice."""
    for name, next_name in pairwise(names):
        if name == next_name:
            raise StoreError(f"{path}: {noun} {name} is given twice: a store has each {noun} once")


def _comparable_settings(
    groups: Sequence[GroupSpec], corpus: Mapping[str, object], parent: ParentStore | None
) -> dict[str, object]:
    """Return the settings of a stage that must not change when it is resumed, to compare field by field.

    Keys are names of groups, `corpus`, and `--append` for the parent store, as messages name them.
    """
    settings = _comparable_groups(groups)
    settings["corpus"] = {**corpus, "manifest_sha256": ""}  # the digest of the manifest may change
    settings["--append"] = None if parent is None else f"{parent.path} {parent.fingerprint}"
    return settings


def _comparable_groups(groups: Sequence[GroupSpec]) -> dict[str, object]:
    """Return name of a group -> its fields, with its arrays by name, to compare groups field by field.

    By name, so that a message can say which field of which array differs.
    """
    fields_of_group: dict[str, object] = {}
    for group in groups:
        fields = asdict(group)
        fields["arrays"] = {
            spec.name: {"shape": list(spec.shape), "dtype": spec.dtype} for spec in group.arrays
        }
        fields_of_group[group.name] = fields
    return fields_of_group


# --- stage.json and the plan
# ---------------------------------------------------------------------------
def _create(path: Path, clips: tuple[PlannedClip, ...], settings: StageSettings) -> None:
    """Create a stage, whole or not at all.

    Processes that create the same stage at the same time wait for each other; the first one creates it.
    """
    if path.exists() and not path.is_dir():
        raise StoreError(f"{path}: a file is in the way; choose another name")
    require_locks(path)  # refuses a file system without locks
    make_folder(path.parent)
    with locked(path.parent, wait=True):
        was_created_meanwhile = path.is_dir() and any(path.iterdir())
        if was_created_meanwhile:
            return
        with whole_folder(path) as draft:  # is renamed to `path` when it is complete
            for folder in (JOURNALS, PIECES):
                (draft / folder).mkdir()
            write_new(draft / STAGE, json_bytes(msgspec.to_builtins(settings)))
            lines = (encode_line({"row": row, **asdict(clip)}) for row, clip in enumerate(clips))
            write_new(draft / PLAN, b"".join(lines))


class _PlanLine(msgspec.Struct):
    """The number of a row in a line of the plan, beside the clip."""

    row: int


def _read_files(path: Path) -> tuple[tuple[PlannedClip, ...], StageSettings]:
    """Read the plan and the settings of a stage.

    Raises
    ------
    StoreError
        If there is no stage, it has another layout, or its files are damaged.
    """
    if not path.exists():
        raise StoreError(f"{path}: there is no such stage; obygaze extract makes it")
    if not (path / PLAN).is_file() or not (path / STAGE).is_file():
        raise StoreError(f"{path}: not a staging folder (no {PLAN} or {STAGE} in it)")
    settings = _read_settings(path)
    return _read_plan(path), settings


def _read_settings(path: Path) -> StageSettings:
    """Read the stage.json of a stage.

    Raises
    ------
    StoreError
        If the stage has another layout, or the file is damaged.
    """
    try:
        document = msgspec.json.decode(read_bytes(path / STAGE))
        layout = document["layout"]
        if layout not in (LAYOUT, RAGGED_LAYOUT):
            raise _other_layout_error(path, layout)
        settings = msgspec.convert(document, StageSettings)
        validate_corpus(settings.corpus)
    except StoreError:  # also one of `UNREADABLE`, but its message says more
        raise
    except (*UNREADABLE, KeyError, TypeError) as error:
        raise StoreError(f"{path / STAGE}: damaged; begin another stage") from error
    return settings


def _other_layout_error(path: Path, layout: object) -> StoreError:
    """Return the error for a stage whose layout this version does not write."""
    return StoreError(
        f"{path}: a stage of layout {layout}, this obygaze writes {LAYOUT} and "
        f"{RAGGED_LAYOUT}: seal it with "
        "the obygaze that it is from (obygaze store seal NAME --allow-missing), or remove it "
        "(obygaze store rm) and extract again"
    )


def _read_plan(path: Path) -> tuple[PlannedClip, ...]:
    """Read the plan of a stage: its clips in the order of their rows.

    A damaged line is refused, because it would shift the rows of all clips after it.
    """
    clips: list[PlannedClip] = []
    for row, line in enumerate(read_bytes(path / PLAN, MAX_LINES).splitlines()):
        clip = _decode_clip(line, row)
        if clip is None:
            raise StoreError(
                f"{path / PLAN}, line {row + 1}: damaged; rows can no longer be told apart: begin another "
                "stage"
            )
        clips.append(clip)
    if not clips:
        raise StoreError(f"{path / PLAN}: no clips; begin another stage")
    return tuple(clips)


_ROW_DECODER = msgspec.json.Decoder(_PlanLine)
_CLIP_DECODER = msgspec.json.Decoder(PlannedClip)


def _decode_clip(line: bytes, row: int) -> PlannedClip | None:
    """Decode the clip in a line of a stage's plan; None if the line is damaged, or is that of another row."""
    entry = checked_entry(line)  # the JSON in it, if the line has the right checksum
    if entry is None:
        return None
    try:
        if _ROW_DECODER.decode(entry).row != row:
            return None
        return _CLIP_DECODER.decode(entry)
    except UNREADABLE:
        return None
