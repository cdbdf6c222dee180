"""Extract the features of a manifest or a list of texts into a sealed store: prepare, estimate, run, seal."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import Any, Literal

from obygaze_features.backbones import TEXT_BACKBONES, Backbone, TextBackbone, load_text_backbone
from obygaze_features.errors import ExtractError, ManifestError
from obygaze_features.extraction.decoders import PYAV, load_decoder
from obygaze_features.extraction.distributed import run_ray
from obygaze_features.extraction.encode import clips_at_once, fallback
from obygaze_features.extraction.estimate import Estimate, estimate_clips
from obygaze_features.extraction.gpus import on_gpus, run_gpus
from obygaze_features.extraction.job import Job, Recipe, frames_of
from obygaze_features.extraction.local import run_local
from obygaze_features.extraction.recording import OnCommit
from obygaze_features.extraction.report import RunReport
from obygaze_features.extraction.texts import TextEstimate, TextJob, estimate_texts, run_texts
from obygaze_features.io import NO_LICENCE, usable_cores
from obygaze_features.manifest import Manifest, TextList, read_manifest, read_texts
from obygaze_features.store import ClipResult, Stage, Store, open_store, read_stage, seal, staging_path
from obygaze_features.store.format import STATUSES
from obygaze_features.store.growth import Growth, plan_growth
from obygaze_features.store.journal import JournalEntry
from obygaze_features.store.provenance import validate_licence
from obygaze_features.store.records import StoredClip
from obygaze_features.store.room import free_at, room_of
from obygaze_features.store.sealing import versioned
from obygaze_features.store.sights import HoleGuard, absent_files, is_lost

CLIPS_AT_ONCE, TEXTS_AT_ONCE = 8, 64
VIDEOS = (".mp4", ".mkv", ".avi", ".mov", ".webm", ".ts")  # refused where a manifest is expected

AnyBackbone = str | Recipe | Backbone | TextBackbone
Note = Callable[[str], object]
Watch = Callable[[int, str], AbstractContextManager[OnCommit]]


@contextmanager
def _unwatched(_n_rows: int, _unit: str) -> Iterator[OnCommit]:
    yield lambda *_: None


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
        (i, n): process only rows with row % n == i. With several shards the store is not sealed.
    limit
        Most rows to process now; None is all.
    append
        Folder of a sealed store to which missing clips are added; None creates a separate store.
    consume
        Whether sealing frees the stage progressively and removes it.
    note
        Called with each message that is not an error.
    """

    job: Job | TextJob
    out: Path
    engine: Callable[..., RunReport]
    costs: Callable[[Sequence[str]], Estimate | TextEstimate]
    version: str = "1.0.0"
    licence: str = NO_LICENCE
    citation: str = ""
    shard: tuple[int, int] = (0, 1)
    limit: int | None = None
    retry_failed: bool = False
    sealing: bool = True
    append: Path | None = None
    consume: bool = False
    note: Note = warnings.warn

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
        growth = self._growth()
        if self.stage_path.exists():
            missing = self._missing(read_stage(self.stage_path))
        else:
            first, step = self.shard
            clips = self.job.planned_clips() if growth is None else growth.clips
            done = {clip.clip_id for clip in self._parent_clips() if clip.status != STATUSES[0]}
            missing = [clip.clip_id for clip in clips[first::step] if clip.clip_id not in done]
        found = self.costs(missing[: self.limit])
        if isinstance(found, TextEstimate):
            return found
        clips = self.job.planned_clips() if growth is None else growth.clips
        room = room_of(clips, self.job.groups(), consume=self.consume)
        found = replace(found, room=room, free=free_at(self.stage_path))
        if obstacle := found.obstacle():
            self.note(obstacle)
        return found

    def _missing(self, stage: Stage, again: Callable[[JournalEntry], bool] = lambda _: False) -> list[str]:
        """List the clips to do now; if a store grows, only clips of the manifest."""
        missing = stage.missing(self.shard, retry_failed=self.retry_failed, again=again)
        if self.append is not None:
            asked = {clip.clip_id for clip in self.job.planned_clips()}
            missing = [clip for clip in missing if clip in asked]
        return missing

    def _parent_clips(self) -> Sequence[StoredClip]:
        return () if self.append is None else open_store(self.append).clips

    def _growth(self) -> Growth | None:
        if self.append is None:
            return None
        parts = self.job.planned_clips(), self.job.groups(), self.job.corpus_record()
        return plan_growth(open_store(self.append), self.version, *parts)

    def _open_stage(self) -> Stage:
        growth = self._growth()
        if growth is None or self.append is None:
            parts = self.job.planned_clips(), self.job.groups(), self.job.corpus_record()
            return Stage.open(self.stage_path, *parts)
        parent = open_store(self.append).path
        return Stage.open(self.stage_path, growth.clips, growth.groups, growth.corpus, parent=parent)

    def run(
        self, *, stopped: Callable[[], bool] = lambda: False, watch: Watch = _unwatched
    ) -> tuple[Stage, RunReport]:
        """Extract the missing rows into the stage; create the stage or resume it.

        Parameters
        ----------
        stopped
            Polled often; once true, the current rows are finished and the run ends.
        watch
            Called with the number of rows to do and the unit. Returns a context manager that yields a
            callback, which receives the report so far and the rows just written.

        Raises
        ------
        ExtractError
            The stage cannot be written, or clips are missing and the store is sealed already.
        StoreError
            The stage was created with other settings.
        """
        place, sealed = self.stage_path, self.sealed_path
        if sealed.exists() and not place.exists():
            raise ExtractError(
                f"{sealed} is sealed, and its staging folder is gone: nothing can be added to it. "
                f"For more clips make its next version: --append {quote(str(sealed))} --store-version 1.1.0"
            )
        if obstacle := what_forbids_writing(place):
            raise ExtractError(obstacle)
        stage = self._open_stage()
        for damage in stage.damage():
            self.note(damage)
        videos = self._videos()
        missing = self._to_do(stage, videos)[: self.limit]
        guard = HoleGuard(stage, videos, working=bool(missing))
        if missing and self.shard[1] == 1 and (others := stage.n_writers()):
            self.note(
                f"{others} other process(es) are writing to {place} and may process the same {self.unit}s: "
                "this is safe but repeats work; --shard divides it"
            )
        if missing and sealed.exists() and self.seals:
            raise ExtractError(
                f"{sealed} is already sealed; {len(missing)} more {self.unit}s need a new version, "
                "such as --store-version 1.1.0"
            )
        with watch(len(missing), self.unit) as on_commit:

            def committed(report: RunReport, results: list[ClipResult]) -> None:
                guard.check(results)
                on_commit(report, results)

            report = self.engine(
                self.job, stage, missing, stopped=lambda: stopped() or guard.tripped, on_commit=committed
            )
        guard.refuse()
        return stage, report

    def _to_do(self, stage: Stage, videos: Mapping[str, Path | None]) -> list[str]:
        """List the clips to do, in planned order; retry those that failed while their video was absent."""
        missing = self._missing(stage)
        if self.sealed_path.exists() or not videos:
            return missing
        tried = self._missing(stage, again=is_lost)
        lost = {clip: videos[clip] for clip in set(tried) - set(missing)}
        gone = absent_files(path for path in lost.values() if path is not None)
        return [clip for clip in tried if lost.get(clip) not in gone]

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
        if self.sealed_path.exists():
            return self.sealed_path
        licence, citation = self.licence, self.citation
        if self.append is not None:  # fields not given are taken from the parent store
            said = open_store(self.append).attributes
            licence = said["licence"] if licence == NO_LICENCE else licence
            citation = citation or said["citation"]
        if licence == NO_LICENCE:
            self.note(
                f"no --licence given: the store is sealed as {NO_LICENCE}. Before you share it: "
                f"obygaze store seal {quote(str(self.out))} --licence SPDX --store-version 1.0.1"
            )
        return seal(
            stage.path,
            self.out,
            version=self.version,
            licence=licence,
            citation=citation,
            consume=self.consume,
        )


def prepare(
    manifest: Path | str | Manifest | TextList,
    out: Path | str,
    backbones: Sequence[AnyBackbone] = ("descriptors",),
    *,
    n_frames: int | None = None,
    sampling: Literal["uniform", "keyframes"] = "uniform",
    engine: Literal["local", "ray"] = "local",
    workers: int | None = None,
    gpus: Sequence[int] = (),
    batch_size: int | None = None,
    timeout_s: float = 600.0,
    decoder: str = PYAV,
    strict: bool = False,
    hash_sources: bool = False,
    corpus: str | None = None,
    version: str = "1.0.0",
    licence: str = NO_LICENCE,
    note: Note = warnings.warn,
    **settings: Any,
) -> Extraction:
    """Read the manifest, build the backbones and check the settings before the work starts.

    The parameters are those of `extract`; `settings` are the other fields of `Extraction`.

    Raises
    ------
    ManifestError
        The manifest or the list of texts cannot be read.
    BackboneError
        A backbone cannot be built.
    ExtractError
        The manifest is empty or not a manifest, the backbones cannot be combined, or the engine needs
        recipes.
    StoreError
        The licence or the version is invalid.
    """
    validate_licence(licence)
    versioned(Path(out), version)
    corpus = corpus or (Path(manifest).stem if isinstance(manifest, str | Path) else Path(out).name)
    finish = partial(Extraction, out=Path(out), version=version, licence=licence, note=note, **settings)
    if reads_texts(backbones):
        texts = manifest if isinstance(manifest, TextList) else _texts_of(manifest)
        text_job = TextJob(texts, corpus, _text_backbones(backbones))
        run_some = partial(run_texts, batch_size=batch_size or TEXTS_AT_ONCE)
        return finish(job=text_job, engine=run_some, costs=partial(estimate_texts, text_job))
    run = _engine(engine)
    load_decoder(decoder)
    clips = manifest if isinstance(manifest, Manifest) else _clips_of(manifest, backbones)
    if not clips:
        raise ExtractError(f"{manifest}: there is no clip in it, only a header")
    recipes = tuple(_recipe(one, frames_of(clips, n_frames)) for one in backbones)
    if engine == "ray" and None in recipes:
        raise ExtractError("the engine 'ray' builds backbones on every node: give their names, or a Recipe")
    for recipe in recipes if engine == "ray" else ():
        device = "" if recipe is None else getattr(recipe.options.get("compute"), "device", "")
        if device.startswith("cuda:"):
            raise ExtractError(
                f"--device {device} with the engine 'ray': each encoder sees one card alone; "
                "give --device cuda"
            )
    if gpus and (engine == "ray" or None in recipes):
        raise ExtractError(
            "--gpus is for the engine local, and for backbones given by their names or a Recipe"
        )
    led = on_gpus([recipe for recipe in recipes if recipe], gpus) if gpus else recipes
    built = tuple(recipe.build() if recipe else one for recipe, one in zip(led, backbones, strict=True))
    job = Job(
        clips,
        corpus,
        built,  # type: ignore[arg-type]  # names and recipes are built by now; text backbones are handled above
        sampling,
        strict,
        hash_sources,
        tuple(recipe for recipe in recipes if recipe),
        decoder,
    )
    if len({backbone.n_frames for backbone in job.backbones}) > 1:
        counts = ", ".join(f"{backbone.name} {backbone.n_frames}" for backbone in job.backbones)
        note(
            f"the backbones take different frames of a clip ({sampling}: {counts}); "
            "it is decoded once for all of them"
        )
    if reason := fallback(job.backbones):
        note(reason)
    if engine == "local" and workers is None:
        workers = usable_cores(settings.get("shard", (0, 1))[1])
    how: dict[str, Any] = {
        "workers": workers,
        "batch_size": max(batch_size or CLIPS_AT_ONCE, clips_at_once(job.backbones)),
        "timeout_s": timeout_s,
        **({"note": note} if engine == "ray" else {}),
        **({"gpus": tuple(gpus)} if gpus else {}),
    }
    return finish(
        job=job,
        engine=partial(run_gpus if gpus else run, **how),
        costs=partial(estimate_clips, job, workers=workers or usable_cores()),
    )


def extract(
    manifest: Path | str | Manifest | TextList,
    out: Path | str,
    backbones: Sequence[AnyBackbone] = ("descriptors",),
    *,
    n_frames: int | None = None,
    sampling: Literal["uniform", "keyframes"] = "uniform",
    engine: Literal["local", "ray"] = "local",
    workers: int | None = None,
    gpus: Sequence[int] = (),
    batch_size: int | None = None,
    timeout_s: float = 600.0,
    decoder: str = PYAV,
    strict: bool = False,
    hash_sources: bool = False,
    retry_failed: bool = False,
    corpus: str | None = None,
    licence: str = NO_LICENCE,
    citation: str = "",
    version: str = "1.0.0",
    append: Path | str | None = None,
    consume: bool = False,
    watch: Watch = _unwatched,
) -> Store:
    """Extract the features of clips or texts and seal them into a store; resume an interrupted call.

    Finished clips are written to `OUT.staging` at once, so calling again resumes where the last call stopped.
    A clip that cannot be read gets the status failed and the reason; the store is still sealed.

    Parameters
    ----------
    manifest
        Manifest of clips or still images, or list of texts; or the path of either.
    out
        The sealed store is the folder `OUT-VERSION`.
    backbones
        Names, results of `load_backbone`, or `Recipe` objects. Each clip is decoded once for all of them.
    n_frames
        Frames per clip [F]; None is the backbone's default, and 1 for still images.
    sampling
        `uniform`: exact frames; `keyframes`: the key frame nearest to each, which is faster.
    engine
        `local`, or `ray` for a cluster.
    workers
        Decode processes; None is one per usable core.
    gpus
        Indices of GPUs that share the work, with one process and a share of the cores each; empty is one
        process, on the device of the backbones.
    batch_size
        Rows encoded together; None is 8 clips or 64 texts. Features do not depend on it. On a GPU it is at
        least the largest number of clips that a backbone encodes at once.
    timeout_s
        Time limit for decoding one clip, in seconds.
    decoder
        Video decoder: `pyav`, or one from an installed package.
    strict
        Mark damaged files as failed instead of keeping the readable part as partial.
    hash_sources
        Record the SHA-256 of every video file.
    retry_failed
        Retry clips that failed in an earlier call.
    corpus
        Name of the corpus in the store; None is the manifest's name.
    licence
        SPDX expression of the features' licence.
    append
        Path of a sealed store in a folder. The result is its next version, with the clips of the manifest
        that it lacks added. Files whose rows do not change are linked.
    consume
        Free the staging folder while the store is sealed, then remove it: needs disk space for only one copy.
    watch
        Progress callback, as in `Extraction.run`.

    Raises
    ------
    ManifestError, BackboneError, StoreError, ExtractError
        If the manifest, the backbones, the licence, the folder or the settings are invalid; raised before any
        work.

    Examples
    --------
    >>> from pathlib import Path
    >>> import obygaze_features as of
    >>> clips = of.Manifest((of.Clip("tt1-0", "tt1", "videos/clip.mp4"),), Path())
    >>> store = of.extract(clips, "stores/own", ["descriptors"], n_frames=4, workers=1, licence="CC0-1.0")
    >>> store["descriptors"].read("tt1-0", "frames").shape
    (4, 103)
    """
    work = prepare(
        manifest,
        out,
        backbones,
        n_frames=n_frames,
        sampling=sampling,
        engine=engine,
        workers=workers,
        gpus=gpus,
        batch_size=batch_size,
        timeout_s=timeout_s,
        decoder=decoder,
        strict=strict,
        hash_sources=hash_sources,
        retry_failed=retry_failed,
        corpus=corpus,
        licence=licence,
        citation=citation,
        version=version,
        append=None if append is None else open_store(append).path,
        consume=consume,
    )
    stage, _ = work.run(watch=watch)
    sealed = work.seal(stage)
    if sealed is None:
        raise ExtractError(f"{stage.path}: {len(stage.missing())} {work.unit}s are left to do; extract again")
    return open_store(sealed)


def estimate(
    manifest: Path | str | Manifest | TextList,
    out: Path | str,
    backbones: Sequence[AnyBackbone] = ("descriptors",),
    **settings: Any,
) -> Estimate | TextEstimate:
    """Estimate the cost of the remaining work of `extract`; nothing is written.

    The parameters are those of `extract`. Up to eight passes over files, or sixteen texts, are tried.

    Examples
    --------
    >>> from pathlib import Path
    >>> from obygaze_features.extraction import estimate
    >>> from obygaze_features.manifest import Clip, Manifest
    >>> clips = Manifest((Clip("tt1-0", "tt1", "absent.mp4"),), Path("films"))
    >>> found = estimate(clips, "stores/films", n_frames=4)
    >>> found.clips, found.absent, found.seconds
    (1, 1, None)
    """
    return prepare(manifest, out, backbones, **settings).estimate()


def reads_texts(backbones: Sequence[AnyBackbone]) -> bool:
    """Return whether these backbones read texts.

    Raises
    ------
    ExtractError
        If some read texts and others frames.
    """
    texts = [
        _name(one)
        for one in backbones
        if isinstance(one, TextBackbone) or (not isinstance(one, Backbone) and _name(one) in TEXT_BACKBONES)
    ]
    others = [_name(one) for one in backbones if _name(one) not in texts]
    if texts and others:
        raise ExtractError(
            f"{', '.join(texts)} reads texts and {', '.join(others)} takes frames: "
            "the rows of a store are one or the other; extract two stores"
        )
    return bool(texts)


def what_forbids_writing(place: Path) -> str | None:
    """Explain why a folder cannot be created or written; None if it can."""
    nearest = place.absolute()
    while not os.path.lexists(nearest):
        nearest = nearest.parent
    if not nearest.is_dir():
        return f"{nearest} is a file, so {place} cannot be a folder; choose another STORE"
    if not os.access(nearest, os.W_OK | os.X_OK):
        return f"{nearest}: no permission to write there, where {place} is to be; choose another STORE"
    return None


def _name(backbone: AnyBackbone) -> str:
    return backbone if isinstance(backbone, str) else backbone.name


def _recipe(backbone: AnyBackbone, n_frames: int | None) -> Recipe | None:
    """Return the recipe of a backbone; None if it is built already."""
    if isinstance(backbone, str):
        return Recipe(backbone, n_frames)
    if isinstance(backbone, Recipe):
        return backbone if backbone.n_frames is not None else replace(backbone, n_frames=n_frames)
    return None


def _text_backbones(backbones: Sequence[AnyBackbone]) -> tuple[TextBackbone, ...]:
    names = [_name(one) for one in backbones]
    if len(set(names)) < len(names):
        raise ExtractError(f"two backbones have the same name: {', '.join(names)}")
    built = []
    for one in backbones:
        if isinstance(one, TextBackbone):
            built.append(one)
        else:
            options = one.options if isinstance(one, Recipe) else {}
            built.append(load_text_backbone(_name(one), **options))
    return tuple(built)


def _engine(name: str) -> Callable[..., RunReport]:
    """Return an engine; a missing package is noticed here, before any work."""
    if name == "ray" and find_spec("ray") is None:
        raise ModuleNotFoundError("No module named 'ray'", name="ray")
    return run_ray if name == "ray" else run_local


def _texts_of(source: Path | str | Manifest) -> TextList:
    if isinstance(source, Manifest):
        raise ExtractError("backbones that read texts need a list of texts, not a manifest of clips")
    return read_texts(Path(source))


def _clips_of(source: Path | str | TextList, backbones: Sequence[AnyBackbone]) -> Manifest:
    """Read a manifest of clips; refuse a video, a folder and a list of texts."""
    names = ", ".join(_name(one) for one in backbones)
    if isinstance(source, TextList):
        raise ExtractError(f"{names} takes frames, and a list of texts has none")
    path = Path(source)
    if path.is_dir() or path.suffix.lower() in VIDEOS:
        folder = path if path.is_dir() else path.parent
        raise ExtractError(
            f"{path} is not a manifest; make one first: "
            f"obygaze manifest import folder {quote(str(folder))} --out {quote(path.stem or 'films')}.csv"
        )
    try:
        return read_manifest(path)
    except ManifestError as error:
        try:
            read_texts(path)
        except ManifestError:
            raise error from None
        raise ExtractError(
            f"{path} is a list of texts, and what takes frames ({names}) reads none; "
            "give --backbone clip-text or --backbone sentence"
        ) from error
