"""Run a prepared extraction: estimate it, extract what is missing into its stage, seal the stage."""

import os
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote

from obygaze_features.errors import ExtractError, StoreError
from obygaze_features.extraction.changed_videos import note_on_changed_videos
from obygaze_features.extraction.cost_estimate import Estimate, disk_facts
from obygaze_features.extraction.films import MEASUREMENTS_FOLDER, Films
from obygaze_features.extraction.job import Job
from obygaze_features.extraction.report import Run, RunReport, write_report
from obygaze_features.extraction.texts import TextEstimate, TextJob
from obygaze_features.io import NO_LICENCE
from obygaze_features.locks import locked
from obygaze_features.machine import clock_problem, this_machine
from obygaze_features.schema import licence_choices
from obygaze_features.screen import Progress, shown_progress
from obygaze_features.store import PlannedClip, Stage, open_store, read_stage, seal, staging_path
from obygaze_features.store.disk_usage import disk_room, existing_folder
from obygaze_features.store.format import STAGING_SUFFIX, next_patch
from obygaze_features.store.growth import StagePlan, discard, is_replaceable, plan_growth
from obygaze_features.store.missing_videos import ClipOutcome, MissingVideoCheck, clips_with_returned_video
from obygaze_features.store.provenance import Terms, terms_of_next_version
from obygaze_features.store.records import StoredClip
from obygaze_features.store.sealing import remove_leftovers, versioned_path
from obygaze_features.store.shares import (
    begin_share,
    finish_share,
    number_of_shares,
    shares_elsewhere,
)
from obygaze_features.store.stage import is_to_be_done, rows_of_share
from obygaze_features.store.store import is_store_folder, sealed_versions
from obygaze_features.video import why_not_in_stretches

OnNote = Callable[[str], object]
PERMISSIVE = frozenset(
    {"MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Unlicense", "CC0-1.0", "CC-BY-4.0"}
)
"""Licences of weights that ask for no more than to be named."""


@dataclass(frozen=True)
class Extraction:
    """A prepared extraction: inputs, settings and destination; nothing is written before `run`.

    Attributes
    ----------
    job
        Settings that determine the features.
    out, version
        The sealed store is the folder `OUT-VERSION`; the stage is `OUT.staging`.
    shard
        Share (i, n) of the rows: only the pieces k with k % n == i are processed. If there are several
        shares, the store is not sealed.
    limit
        Most rows to process now; None is all.
    append
        Folder of a sealed store to which missing clips are added; None creates a separate store.
    shots
        Table of shots to write when every clip is done; None finds no shots.
    note
        Called with each message that is not an error.
    progress
        Called with (rows done, rows to do); or whether to show a bar: by default in a notebook alone.
    """

    job: Job | TextJob
    out: Path
    engine: Callable[..., Run]
    costs: Callable[[Sequence[str]], Estimate | TextEstimate]
    version: str = "1.0.0"
    licence: str = NO_LICENCE
    citation: str = ""
    shard: tuple[int, int] = (0, 1)
    limit: int | None = None
    retry_failed: bool = False
    sealing: bool = True
    append: Path | None = None
    shots: Path | None = None
    note: OnNote = warnings.warn
    progress: Progress | bool | None = None

    @property
    def unit(self) -> str:
        """Unit of a row: clip or text."""
        return "text" if isinstance(self.job, TextJob) else "clip"

    @property
    def stage_path(self) -> Path:
        """Folder of the stage."""
        return staging_path(self.out)

    @property
    def sealed_path(self) -> Path:
        """Folder of the sealed store."""
        return versioned_path(self.out, self.version)

    @property
    def will_seal(self) -> bool:
        """Whether this extraction seals the store when every row is done."""
        _, n_shares = self.shard
        return self.sealing and n_shares == 1

    def estimate(self) -> Estimate | TextEstimate:
        """Estimate the cost of the remaining clips or texts by trying a few of them; nothing is written.

        A note says if the folder cannot be written to, or the disk is too small.

        Raises
        ------
        ExtractError
            The store is sealed (finished) already.
        """
        problem = what_forbids_writing(self.stage_path)
        if problem:
            self.note(problem)
        self.refuse_if_sealed()

        clips, _, _ = self.plan()
        resumes_stage = self.stage_path.exists() and not self.has_replaceable_stage()
        if resumes_stage:
            stage = self.open_stage(trial=True)  # which writes nothing
            ids_to_do = self.clips_to_do(stage)
        else:
            ids_to_do = self.clips_to_do_without_stage(clips)

        costs = self.costs(ids_to_do[: self.limit])
        if isinstance(costs, TextEstimate):  # texts have no videos, and small features
            return costs
        costs_with_disk = self._with_disk(costs, clips)
        self._note_second_decodings()
        return costs_with_disk

    def clips_to_do_without_stage(self, clips: Sequence[PlannedClip]) -> list[str]:
        """Return the ids of the clips to extract now if no unfinished store (stage) exists yet.

        They are those of this process's share of the rows, without what a store that is extended (`append`)
        has already.

        Parameters
        ----------
        clips
            All clips that the stage will have, including those of a store that is extended.
        """
        already_done = set[str]()
        if self.append is not None:
            already_done = self._clips_to_keep(open_store(self.append).clips)

        clip_ids = sorted(clip.clip_id for clip in clips)  # in the order of the rows
        ids_of_share = [clip_ids[row] for row in rows_of_share(len(clip_ids), self.shard)]
        return [clip_id for clip_id in ids_of_share if clip_id not in already_done]

    def _clips_to_keep(self, stored_clips: Sequence[StoredClip]) -> set[str]:
        """Return the ids of those clips of a store that is extended which stay as they are there.

        The others are extracted again: clips of the manifest whose status asks for it, as that of a failed
        one does with `retry_failed`, or whose missing video is there now.
        """
        ids_in_manifest = {clip.clip_id for clip in self.job.planned_clips()}
        ids_with_returned_video = self._clips_to_retry(stored_clips)
        ids_to_keep = set[str]()
        for clip in stored_clips:
            is_to_do_by_status = is_to_be_done(clip.status, retry_failed=self.retry_failed)
            is_to_do = is_to_do_by_status or clip.clip_id in ids_with_returned_video
            is_extracted_again = is_to_do and clip.clip_id in ids_in_manifest
            if not is_extracted_again:
                ids_to_keep.add(clip.clip_id)
        return ids_to_keep

    def _with_disk(self, costs: Estimate, clips: Sequence[PlannedClip]) -> Estimate:
        """Return an estimate with needed and free disk space, and note if the disk is too small.

        Parameters
        ----------
        costs
            The estimate.
        clips
            All clips of the store, not only those to do.
        """
        room = disk_room(self.stage_path, clips, self.job.groups())
        if not room.fits and costs.clips > 0:
            facts = ", ".join(f"{name} {value}" for name, value in disk_facts(room.needed, room.free))
            self.note(f"the disk is too small: {facts}")
        return replace(costs, room=room.needed, free=room.free)

    def _note_second_decodings(self) -> None:
        """Note which films have to be decoded once more for their shots, and why.

        Other films are decoded in parts ("stretches"), which give windows and shots together.
        """
        films = self._films()
        if films is None:
            return
        for path in dict.fromkeys(films.paths.values()):
            reason = why_not_in_stretches(path)
            if reason:
                self.note(f"{path.name} is decoded a second time for its shots: {reason}")

    def _films(self) -> Films | None:
        """Return the films whose shots are to be found; None if no table of shots is wanted."""
        if self.shots is None or isinstance(self.job, TextJob):
            return None
        return Films(self.job.manifest, self.stage_path / MEASUREMENTS_FOLDER)

    def clips_to_do(self, stage: Stage) -> list[str]:
        """Return the ids of the clips to extract now: those of this share that the store lacks.

        Clips that failed for want of their video are among them, if it is there now. If a sealed store is
        extended, only clips of the manifest are returned.

        Parameters
        ----------
        stage
            The unfinished store.
        """
        clips_to_retry = self._clips_to_retry(stage.best_entries().values())
        missing = stage.missing(
            self.shard,
            retry_failed=self.retry_failed,
            again=lambda entry: entry.clip_id in clips_to_retry,
        )
        if self.append is not None:
            ids_in_manifest = {clip.clip_id for clip in self.job.planned_clips()}
            missing = [clip_id for clip_id in missing if clip_id in ids_in_manifest]
        return missing

    def has_replaceable_stage(self) -> bool:
        """Return whether the stage can be replaced: its clips are sealed, and more are to be added."""
        return self.append is not None and is_replaceable(self.stage_path, self.append)

    def refuse_if_sealed(self) -> None:
        """Raise an error if the store is sealed (finished), and no unfinished one is left to resume.

        Raises
        ------
        ExtractError
            The store is sealed; the message names the option that makes the next version. Or something else
            is in its place, such as an empty folder.
        """
        is_path_taken = self.sealed_path.exists()
        if is_path_taken and not is_store_folder(self.sealed_path):
            raise ExtractError(
                f"{self.sealed_path}: is in the place of the store, and is none; remove it, or choose "
                "another STORE or --store-version"
            )
        has_stage_to_resume = self.stage_path.exists() and not self.has_replaceable_stage()
        if is_path_taken and not has_stage_to_resume:
            newest = quote(str(sealed_versions(self.out)[-1]))
            raise ExtractError(
                f"{self.sealed_path} is sealed, and {self.stage_path} is not its stage: "
                "nothing can be added to it. For more clips make the next version: "
                f"--append {newest} --store-version {self._next_version()}"
            )

    def _next_version(self) -> str:
        """Return the version that adds clips to the newest sealed store: 1.3.0 after 1.2.4."""
        newest_store = sealed_versions(self.out)[-1]
        _, _, version = newest_store.name.rpartition("-")  # the folder is called NAME-VERSION
        major, minor, _ = version.split(".")
        return f"{major}.{int(minor) + 1}.0"

    def plan(self) -> StagePlan:
        """Return which clips (rows) and groups of features the store will have, and the corpus's name.

        If a sealed store is extended, they are those of the job and of that store together.
        """
        clips = self.job.planned_clips()
        groups = self.job.groups()
        corpus = self.job.corpus_record()
        if self.append is None:
            return StagePlan(clips, groups, corpus)
        return plan_growth(open_store(self.append), self.version, clips, groups, corpus)

    def open_stage(self, *, trial: bool = False) -> Stage:
        """Create the stage (the unfinished store), or open it to resume an earlier run.

        A stage whose clips are all sealed is replaced, if more clips are to be added to them.

        Parameters
        ----------
        trial
            Whether the stage exists and is only to be read.

        Raises
        ------
        StoreError
            The stage was created with other settings.
        """
        clips, groups, corpus = self.plan()
        if self.has_replaceable_stage():
            with locked(self.stage_path.parent, wait=True):  # processes of other shards wait here
                if self.has_replaceable_stage():  # else another process has replaced it meanwhile
                    discard(self.stage_path)
                    self.note(f"removed {self.stage_path}: all of its clips are sealed")
        return Stage.open(self.stage_path, clips, groups, corpus, parent=self.append, trial=trial)

    def run(self, *, stopped: Callable[[], bool] = lambda: False) -> tuple[Stage, RunReport]:
        """Extract the clips or texts that the store lacks; create the stage (unfinished store) or resume it.

        Parameters
        ----------
        stopped
            Polled often; once true, the current rows are finished and the run ends.

        Raises
        ------
        ExtractError
            The stage cannot be written, or clips are missing and the store is sealed already.
        StoreError
            The stage was created with other settings.
        """
        self.refuse_if_sealed()
        problem = what_forbids_writing(self.stage_path)
        if problem:
            raise ExtractError(problem)
        self._note_licences()
        for note in self.notes_on_renamed_stages():
            self.note(note)

        stage = self.open_stage()
        with _explained_if_removed(stage.path):
            _, n_shares = self.shard
            if n_shares == 1:
                return stage, self._extract(stage, stopped)
            return stage, self._extract_share(stage, stopped)

    def _extract_share(self, stage: Stage, stopped: Callable[[], bool]) -> RunReport:
        """Extract the missing rows of one share of several, and record in the stage that it begins and ends.

        Other shares are extracted by other processes, perhaps on other machines.

        Parameters
        ----------
        stage
            The unfinished store.
        stopped
            Polled often; once true, the current rows are finished and the run ends.
        """
        machine = this_machine()
        begin_share(stage.path, self.shard, machine)
        problem = clock_problem(stage.path)
        if problem:
            self.note(problem)
        report = self._extract(stage, stopped)
        if not stage.missing(self.shard):
            finish_share(stage.path, self.shard, machine)
        return report

    def _extract(self, stage: Stage, stopped: Callable[[], bool]) -> RunReport:
        """Extract the missing rows into the open stage, and write the report and the table of shots.

        The steps stand in this order for reasons: what killed runs left is cleaned up first, so that their
        rows count as missing; what would do harm is refused before a row is written; and the report comes
        before an error on videos that were lost meanwhile, so that what was done until then is on record.

        Parameters
        ----------
        stage
            The unfinished store.
        stopped
            Polled often; once true, the current rows are finished and the run ends.

        Raises
        ------
        ExtractError
            The store is sealed already.
        StoreError
            Videos were lost during the run.
        """
        films = self._films()  # whose shots are to be found; None if no table of shots is wanted

        # Find what is to do.
        self._clean_up(stage)
        videos = self._videos()
        ids_to_do = self.clips_to_do(stage)[: self.limit]
        note = note_on_changed_videos(stage, videos)
        if note:
            self.note(note)

        # Refuse what would do harm.
        video_check = MissingVideoCheck(stage, videos, has_work=len(ids_to_do) > 0)
        if ids_to_do:
            self._note_other_writers(stage)
            self._refuse_rows_after_sealing(len(ids_to_do))

        report = self._run_engine(stage, ids_to_do, films, video_check, stopped)
        if report.clips:
            write_report(report, self.stage_path)
        video_check.refuse()  # raises an error if videos were lost
        if films is not None and self.shots is not None and not stopped():
            films.write(self.shots, self.note)
        return report

    def _clips_to_retry(self, entries: Iterable[ClipOutcome]) -> Collection[str]:
        """Return the ids of clips that failed because their video was missing, and whose video is there now.

        Empty if the store is sealed: these clips are then part of it, as failed.

        Parameters
        ----------
        entries
            What became of the clips of the unfinished store, or of the store that is extended.
        """
        if self.sealed_path.exists():
            return ()
        return clips_with_returned_video(entries, self._videos())

    def _clean_up(self, stage: Stage) -> None:
        """Note damage to the unfinished store, and remove what killed runs left half-written in it."""
        for damage in stage.damage():
            self.note(damage)
        n_lost = stage.sweep(keep=_pieces_on_other_clusters(stage))
        if n_lost:
            self.note(f"a run was killed: up to {n_lost} {self.unit}s that it had begun are done again")

    def _run_engine(
        self,
        stage: Stage,
        missing: Sequence[str],
        films: Films | None,
        video_check: MissingVideoCheck,
        stopped: Callable[[], bool],
    ) -> RunReport:
        """Extract rows with the engine, and show the progress; return the engine's report on the whole run.

        Parameters
        ----------
        stage
            The unfinished store.
        missing
            Ids of the clips or texts to extract.
        films
            Films whose shots are to be found; None if there are none.
        video_check
            Checks the results: the run ends early when a video was lost.
        stopped
            Polled often; once true, the current rows are finished and the run ends.
        """
        options = {} if films is None else {"films": films}  # only the local engine finds shots

        def must_stop() -> bool:
            """Return whether the run is to end early."""
            return stopped() or video_check.failed

        run = self.engine(self.job, stage, missing, stopped=must_stop, **options)
        last_report = RunReport()
        with shown_progress(self.progress, "extract", self.unit) as show, closing(run):
            for report, results in run:
                last_report = report
                video_check.check(results)
                percentages = report.time_percentages()
                times = " ".join(f"{name} {percent:.0f}%" for name, percent in percentages.items())
                show(report.clips, len(missing), times)
        return last_report

    def _note_other_writers(self, stage: Stage) -> None:
        """Note that other processes may do the same rows, if rows are not divided into shares."""
        _, n_shares = self.shard
        if n_shares > 1:
            return
        n_others = stage.n_writers()  # all are of other processes: this one has not begun to write
        if n_others:
            self.note(
                f"{n_others} other process(es) are writing to {self.stage_path} and may process the same "
                f"{self.unit}s: this is safe but repeats work; --shard divides it"
            )

    def _refuse_rows_after_sealing(self, n_missing: int) -> None:
        """Raise an error if rows are missing in a sealed store, and this run would seal it."""
        if self.sealed_path.exists() and self.will_seal:
            raise ExtractError(
                f"{self.sealed_path} is already sealed; {n_missing} more {self.unit}s need a new version, "
                f"such as --store-version {self._next_version()}"
            )

    def notes_on_renamed_stages(self) -> Iterator[str]:
        """Yield a note on each unfinished store (stage) nearby that the user may have renamed by mistake.

        Such a stage is in the same folder, has the same clips and groups, some of its rows are done, and it
        has no sealed store.
        """
        begins_anew = not self.stage_path.exists() and self.append is None
        if not begins_anew:
            return

        clip_ids = {clip.clip_id for clip in self.job.planned_clips()}
        groups = self.job.groups()
        for folder in sorted(self.stage_path.parent.glob(f"*{STAGING_SUFFIX}")):
            store = folder.with_name(folder.name.removesuffix(STAGING_SUFFIX))
            if sealed_versions(store):
                continue

            n_done = 0  # of the clips that are to be extracted
            with suppress(StoreError, OSError):  # a stage that cannot be read cannot be resumed either
                stage = read_stage(folder)
                is_of_same_clips = stage.rows.keys() == clip_ids
                if is_of_same_clips and stage.has_groups(groups):
                    n_done = len(stage.rows) - len(stage.missing())
            if n_done > 0:
                yield (
                    f"{folder} has {n_done} of these {self.unit}s already, and {self.stage_path} is "
                    f"begun anew. Was it renamed? Stop this, and call it {self.stage_path} again"
                )

    def _videos(self) -> dict[str, Path | None]:
        """Return clip id -> its video, None for a clip for which the manifest names none; empty for texts."""
        if isinstance(self.job, TextJob):
            return {}
        manifest = self.job.manifest
        return {clip.clip_id: manifest.video_path(clip) for clip in manifest}

    def seal(self, stage: Stage) -> Path | None:
        """Seal the stage, which makes it a finished store, if no row is missing and this extraction seals.

        A store that is sealed already stays as it is. If its sealing was killed as it ended, what that has
        left beside the store is removed.

        Parameters
        ----------
        stage
            The unfinished store.

        Returns
        -------
        Path
            Folder of the sealed store; None if it was not sealed.
        """
        if not self.will_seal or stage.missing():
            return None
        if self.sealed_path.exists():
            remove_leftovers(self.out)
            self._note_kept_licence()
            return self.sealed_path
        terms = self.terms()
        return seal(
            stage.path, self.out, version=self.version, licence=terms.licence, citation=terms.citation
        )

    def _note_kept_licence(self) -> None:
        """Tell a user who asks for another licence or citation that a sealed store keeps its own."""
        sealed_attributes = open_store(self.sealed_path).attributes
        # No licence, and an empty citation, mean that the user asks for none.
        asks_for_other_licence = self.licence not in {NO_LICENCE, "", sealed_attributes["licence"]}
        asks_for_other_citation = self.citation not in {"", sealed_attributes["citation"]}
        if not asks_for_other_licence and not asks_for_other_citation:
            return

        store = quote(str(self.out))
        command = f"obygaze store seal {store} --licence SPDX --store-version {next_patch(self.version)}"
        self.note(f"{self.sealed_path} is sealed and keeps licence and citation. For others: {command}")

    def terms(self) -> Terms:
        """Return licence and citation of the store: as the user states them, else those of the older store.

        The older store is the one that is extended (`append`), if any.
        """
        if self.append is None:
            return Terms(self.licence, self.citation)
        return terms_of_next_version(self.licence, self.citation, open_store(self.append).attributes)

    def _note_licences(self) -> None:
        """Note before the work that no licence is given, or that weights have a licence with conditions."""
        if not self.will_seal or self.sealed_path.exists():
            return
        licence = self.terms().licence
        if licence == NO_LICENCE:
            self.note(
                f"no --licence given: the store will be sealed as {NO_LICENCE}, and cannot be shared so. To "
                "state one, stop this and add --licence SPDX to 'obygaze extract', which goes on from here"
            )

        # Licences of weights that ask for no more than that of the features
        harmless = {NO_LICENCE, licence, *PERMISSIVE}
        for group in self.job.groups():
            weights_licence = str(group.provenance.get("licence", NO_LICENCE))
            # "A OR (B AND C)" offers two choices, each a set of licences that hold together.
            choices = licence_choices(weights_licence)
            has_harmless_choice = any(choice <= harmless for choice in choices)
            if weights_licence != licence and not has_harmless_choice:
                self.note(
                    f"the weights of {group.name} are under {weights_licence}, the features will be sealed "
                    f"as {licence}: look what it says of a network's outputs before you share them"
                )


def _pieces_on_other_clusters(stage: Stage) -> set[int]:
    """Return the numbers of the pieces (blocks of rows) of an unfinished store that other clusters write.

    They must be left alone, since the locks of processes there may not be visible here. Empty if the rows are
    not divided into shares.
    """
    n_shares = number_of_shares(stage.path)
    if n_shares is None:
        return set()
    other_shares = shares_elsewhere(stage.path, this_machine())
    # Share i of n has the pieces i, i + n, i + 2n and so on.
    return {piece for piece in range(stage.layout.n_pieces) if piece % n_shares in other_shares}


@contextmanager
def _explained_if_removed(stage: Path) -> Iterator[None]:
    """Replace an error in a `with` block by a clear one if the stage's folder was removed meanwhile."""
    try:
        yield
    except (OSError, StoreError) as error:
        if stage.is_dir():
            raise
        raise ExtractError(
            f"{stage}: was there when this run began, and is gone: renamed, moved or deleted? Give it this "
            "name again, and run the same command again: what is finished in it is kept"
        ) from error


def what_forbids_writing(folder: Path) -> str | None:
    """Return why a folder cannot be created or written to; None if it can."""
    nearest = existing_folder(folder)
    if not nearest.is_dir():
        return f"{nearest} is a file, so {folder} cannot be a folder; choose another STORE"
    if not os.access(nearest, os.W_OK | os.X_OK):
        return f"{nearest}: no permission to write there, where {folder} is to be; choose another STORE"
    return None
