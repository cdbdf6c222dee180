"""Run a prepared extraction: estimate it, extract what is missing into its stage, seal the stage."""

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from obygaze_features.errors import ExtractError, StoreError
from obygaze_features.extraction.cost_estimate import Estimate
from obygaze_features.extraction.films import MEASURED, Films
from obygaze_features.extraction.job import Job
from obygaze_features.extraction.report import Run, RunReport, write_report
from obygaze_features.extraction.texts import TextEstimate, TextJob
from obygaze_features.io import NO_LICENCE
from obygaze_features.locks import locked
from obygaze_features.machine import clock_problem, this_machine
from obygaze_features.screen import Progress, shown_progress
from obygaze_features.store import Stage, open_store, read_stage, seal, staging_path
from obygaze_features.store.disk_usage import estimate_disk, existing_folder, free_space, links_work
from obygaze_features.store.format import STAGING_SUFFIX, STATUSES
from obygaze_features.store.growth import Plan, discard, is_outlived, plan_growth
from obygaze_features.store.journal import JournalEntry
from obygaze_features.store.missing_videos import MissingVideoCheck, tried_again
from obygaze_features.store.sealing import versioned
from obygaze_features.store.shares import (
    begin_share,
    finish_share,
    number_of_shares,
    shares_elsewhere,
)
from obygaze_features.store.stage import shard_rows
from obygaze_features.store.store import sealed_versions
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
        (i, n): process only the pieces k with k % n == i. With several shards the store is not sealed.
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
        return versioned(self.out, self.version)

    @property
    def seals(self) -> bool:
        """Whether the store is sealed when every row is done."""
        return self.sealing and self.shard[1] == 1

    def estimate(self) -> Estimate | TextEstimate:
        """Estimate the remaining work from a few trial rows; nothing is written."""
        if obstacle := what_forbids_writing(self.stage_path):
            self.note(obstacle)
        self.refuse_sealed()
        clips = self.plan()[0]
        if self.stage_path.exists() and not self.outlived():
            missing = self._missing(self.open_stage(trial=True))
        else:
            ids = sorted(clip.clip_id for clip in clips)
            grown = () if self.append is None else open_store(self.append).clips
            done = {clip.clip_id for clip in grown if clip.status != STATUSES[0]}
            missing = [ids[row] for row in shard_rows(len(ids), self.shard) if ids[row] not in done]
        costs = self.costs(missing[: self.limit])
        if isinstance(costs, TextEstimate):
            return costs
        links = links_work(existing_folder(self.stage_path))
        costs.room = room = estimate_disk(clips, self.job.groups(), links=links)
        costs.free = free = free_space(self.stage_path)
        fits = room.peak_bytes <= free.bytes and (free.files is None or room.files <= free.files)
        if costs.clips and not fits:
            needs = ", ".join(f"{name} {value}" for name, value in costs.facts()[-3:])
            self.note(f"the disk is too small: {needs}")
        if films := self._films():
            for path in dict.fromkeys(films.paths.values()):
                if reason := why_not_in_stretches(path):
                    self.note(f"{path.name} is decoded a second time for its shots: {reason}")
        return costs

    def _films(self) -> Films | None:
        if self.shots is None or isinstance(self.job, TextJob):
            return None
        return Films(self.job.manifest, self.stage_path / MEASURED)

    def _missing(self, stage: Stage, again: Callable[[JournalEntry], bool] = lambda _: False) -> list[str]:
        """List the clips to do now; if a store grows, only clips of the manifest."""
        missing = stage.missing(self.shard, retry_failed=self.retry_failed, again=again)
        if self.append is not None:
            planned = {clip.clip_id for clip in self.job.planned_clips()}
            missing = [clip for clip in missing if clip in planned]
        return missing

    def outlived(self) -> bool:
        """Return whether the stage is that of a store, in whose place one that grows a store is begun."""
        return self.append is not None and is_outlived(self.stage_path, self.append)

    def refuse_sealed(self) -> None:
        """Refuse a store that is sealed, whose stage is gone.

        Raises
        ------
        ExtractError
            It names the option that makes the next version.
        """
        folder, sealed = self.stage_path, self.sealed_path
        if sealed.exists() and (not folder.exists() or self.outlived()):
            newest = quote(str(sealed_versions(self.out)[-1]))
            raise ExtractError(
                f"{sealed} is sealed, and {folder} is not its stage: nothing can be added to it. For more "
                f"clips make the next version: --append {newest} --store-version {self._next_version()}"
            )

    def _next_version(self) -> str:
        """Name the version that adds clips to the newest sealed store."""
        major, minor, _ = sealed_versions(self.out)[-1].name.rpartition("-")[2].split(".")
        return f"{major}.{int(minor) + 1}.0"

    def plan(self) -> Plan:
        """Return the clips, groups and corpus of the stage."""
        own = self.job.planned_clips(), self.job.groups(), self.job.corpus_record()
        return own if self.append is None else plan_growth(open_store(self.append), self.version, *own)

    def open_stage(self, *, trial: bool = False) -> Stage:
        """Create the stage, or resume it; in a trial it is there, and only looked at.

        Raises
        ------
        StoreError
            The stage was created with other settings.
        """
        plan = self.plan()
        if self.outlived():
            with locked(self.stage_path.parent, wait=True):  # as stages are made, by other shards too
                if self.outlived():
                    discard(self.stage_path)
                    self.note(f"removed {self.stage_path}: all of its clips are sealed")
        return Stage.open(self.stage_path, *plan, parent=self.append, trial=trial)

    def run(self, *, stopped: Callable[[], bool] = lambda: False) -> tuple[Stage, RunReport]:
        """Extract the missing rows into the stage; create the stage or resume it.

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
        self.refuse_sealed()
        if obstacle := what_forbids_writing(self.stage_path):
            raise ExtractError(obstacle)
        self._note_licences()
        for twin in self.renamed_stages():
            self.note(twin)
        stage = self.open_stage()
        with _there_to_the_end(stage.path):
            if self.shard[1] == 1:
                return stage, self._extract(stage, stopped)
            machine = this_machine()
            begin_share(stage.path, self.shard, machine)
            if problem := clock_problem(stage.path):
                self.note(problem)
            report = self._extract(stage, stopped)
            if not stage.missing(self.shard):
                finish_share(stage.path, self.shard, machine)
            return stage, report

    def _extract(self, stage: Stage, stopped: Callable[[], bool]) -> RunReport:
        """Extract the missing rows into the open stage."""
        folder, sealed = self.stage_path, self.sealed_path
        films = self._films()
        for damage in stage.damage():
            self.note(damage)
        if lost := stage.sweep(_pieces_elsewhere(stage)):
            self.note(f"a run was killed: up to {lost} {self.unit}s that it had begun are done again")
        videos = self._videos()
        again = set() if sealed.exists() else tried_again(stage, videos)  # their video was absent
        missing = self._missing(stage, again=lambda entry: entry.clip_id in again)[: self.limit]
        guard = MissingVideoCheck(stage, videos, working=bool(missing))
        if missing and self.shard[1] == 1 and (others := stage.n_writers()):
            self.note(
                f"{others} other process(es) are writing to {folder} and may process the same {self.unit}s: "
                "this is safe but repeats work; --shard divides it"
            )
        if missing and sealed.exists() and self.seals:
            raise ExtractError(
                f"{sealed} is already sealed; {len(missing)} more {self.unit}s need a new version, "
                f"such as --store-version {self._next_version()}"
            )
        report, how = RunReport(), {} if films is None else {"films": films}
        run = self.engine(self.job, stage, missing, stopped=lambda: stopped() or guard.failed, **how)
        with shown_progress(self.progress, "extract", self.unit) as show, closing(run):
            for report, results in run:
                guard.check(results)
                shares = " ".join(f"{name} {percent:.0f}%" for name, percent in report.shares().items())
                show(report.clips, len(missing), shares)
        if report.clips:
            write_report(report, folder)
        guard.refuse()
        if films is not None and self.shots is not None and not stopped():
            films.write(self.shots, self.note)
        return report

    def renamed_stages(self) -> Iterator[str]:
        """Say which stages beside one that is to be made have its clips and groups: one may be it, renamed.

        A stage of a store that is sealed has its own name.
        """
        if self.stage_path.exists() or self.append is not None:
            return
        planned = {clip.clip_id for clip in self.job.planned_clips()}
        groups = self.job.groups()
        for folder in sorted(self.stage_path.parent.glob(f"*{STAGING_SUFFIX}")):
            if sealed_versions(folder.with_name(folder.name.removesuffix(STAGING_SUFFIX))):
                continue
            with suppress(StoreError, OSError):  # not ours to judge
                stage = read_stage(folder)
                n_done = len(stage.rows) - len(stage.missing())
                if n_done and stage.rows.keys() == planned and stage.has_groups(groups):
                    yield (
                        f"{folder} has {n_done} of these {self.unit}s already, and {self.stage_path} is "
                        f"begun anew. Was it renamed? Stop this, and call it {self.stage_path} again"
                    )

    def _videos(self) -> dict[str, Path | None]:
        """Map every clip to its video; empty for texts."""
        if isinstance(self.job, TextJob):
            return {}
        manifest = self.job.manifest
        return {clip.clip_id: manifest.video_path(clip) for clip in manifest}

    def seal(self, stage: Stage) -> Path | None:
        """Seal the stage if every row is done and this extraction seals; return the store's folder."""
        if not self.seals or stage.missing():
            return None
        minor, _, patch = self.version.rpartition(".")
        to = f"{minor}.{int(patch) + 1}"
        anew = f"obygaze store seal {quote(str(self.out))} --licence SPDX --store-version {to}"
        if self.sealed_path.exists():
            held = open_store(self.sealed_path).attributes
            if {self.licence, self.citation} - {NO_LICENCE, "", held["licence"], held["citation"]}:
                self.note(f"{self.sealed_path} is sealed and keeps licence and citation. For others: {anew}")
            return self.sealed_path
        licence, citation = self._terms()
        return seal(stage.path, self.out, version=self.version, licence=licence, citation=citation)

    def _terms(self) -> tuple[str, str]:
        """Return licence and citation of the store; those not given are taken from the parent store."""
        licence, citation = self.licence, self.citation
        if self.append is not None:
            attributes = open_store(self.append).attributes
            licence = attributes["licence"] if licence == NO_LICENCE else licence
            citation = citation or attributes["citation"]
        return licence, citation

    def _note_licences(self) -> None:
        """Say under which licence the features will be sealed, while it can still be stated."""
        if not self.seals or self.sealed_path.exists():
            return
        licence = self._terms()[0]
        if licence == NO_LICENCE:
            self.note(
                f"no --licence given: the store will be sealed as {NO_LICENCE}, and cannot be shared so. To "
                "state one, stop this and add --licence SPDX to 'obygaze extract', which goes on from here"
            )
        for group in self.job.groups():
            of_weights = str(group.provenance.get("licence", NO_LICENCE))
            if of_weights not in {NO_LICENCE, licence, *PERMISSIVE}:
                self.note(
                    f"the weights of {group.name} are under {of_weights}, the features will be sealed as "
                    f"{licence}: look what it says of a network's outputs before you share them"
                )


def _pieces_elsewhere(stage: Stage) -> set[int]:
    """List the pieces that tasks of another cluster do, whose locks this machine may not see."""
    number, elsewhere = number_of_shares(stage.path), shares_elsewhere(stage.path, this_machine())
    if number is None:
        return set()
    return {piece for piece in range(stage.layout.n_pieces) if piece % number in elsewhere}


@contextmanager
def _there_to_the_end(stage: Path) -> Iterator[None]:
    """Say of a stage that was taken away during the work what happened, in place of which file is absent."""
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
    """Explain why a folder cannot be created or written; None if it can."""
    nearest = existing_folder(folder)
    if not nearest.is_dir():
        return f"{nearest} is a file, so {folder} cannot be a folder; choose another STORE"
    if not os.access(nearest, os.W_OK | os.X_OK):
        return f"{nearest}: no permission to write there, where {folder} is to be; choose another STORE"
    return None
