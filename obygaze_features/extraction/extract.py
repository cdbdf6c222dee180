"""Extract the features of a manifest or a list of texts into a sealed store: prepare, estimate, run, seal."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, wraps
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from shlex import quote
from typing import Any, Literal, ParamSpec, TypeVar

from obygaze_features.arguments import checked
from obygaze_features.backbones import TEXT_BACKBONES, Backbone, TextBackbone, load_text_backbone
from obygaze_features.cores import usable_cores
from obygaze_features.errors import ExtractError, ManifestError
from obygaze_features.extraction.cost_estimate import Estimate, estimate_clips
from obygaze_features.extraction.decoders import PYAV, load_decoder
from obygaze_features.extraction.encode import clips_at_once, fallback
from obygaze_features.extraction.gpus import on_gpus, run_gpus
from obygaze_features.extraction.job import Job, Recipe, frames_of, refuse_twins
from obygaze_features.extraction.loop import run_local
from obygaze_features.extraction.prepared import Extraction, OnNote
from obygaze_features.extraction.ray_leader import run_ray
from obygaze_features.extraction.texts import TextEstimate, TextJob, estimate_texts, run_texts
from obygaze_features.io import NO_LICENCE, local_path, store_path
from obygaze_features.machine import this_machine
from obygaze_features.manifest import (
    Codebook,
    Manifest,
    TextList,
    counted,
    merge_annotators,
    perceived,
    read_manifest,
    read_texts,
    unperceived,
)
from obygaze_features.manifest.identity import check_identity
from obygaze_features.screen import Progress
from obygaze_features.store import Store, open_store, staging_path
from obygaze_features.store.provenance import validate_licence
from obygaze_features.store.sealing import versioned
from obygaze_features.store.shares import check_shares

CLIPS_AT_ONCE, TEXTS_AT_ONCE = 8, 64
VIDEOS = (".mp4", ".mkv", ".avi", ".mov", ".webm", ".ts")  # refused where a manifest is expected

MaybeNone = Any
"""None in a rare case, which type checkers do not make every caller look at."""

AnyBackbone = str | Recipe | Backbone | TextBackbone


@checked
def prepare(
    manifest: Path | str | Manifest | TextList,
    out: Path | str,
    backbones: Sequence[AnyBackbone] = ("descriptors",),
    *,
    n_frames: int | None = None,
    per_second: float | None = None,
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
    shard: tuple[int, int] = (0, 1),
    limit: int | None = None,
    sealing: bool = True,
    shots: Path | str | None = None,
    keep_frames: Path | str | None = None,
    note: OnNote = warnings.warn,
    progress: Progress | bool | None = None,
) -> Extraction:
    """Read the manifest, build the backbones and check the settings before the work starts.

    The parameters are those of `extract`.

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
    WorkerError
        A backbone needs a function in decode workers that the running script defines.
    """
    validate_licence(licence)
    out = store_path(out)
    check_shares(staging_path(out), shard, this_machine())
    versioned(out, version)
    others = {
        "--engine ray": engine == "ray",
        "--gpus": bool(gpus),
        "--shard": shard[1] > 1,
        "--limit": limit is not None,
        "--append": append is not None,
        "--decoder": decoder != PYAV,
        "backbones that read texts": reads_texts(backbones),
    }
    table = _table_of_shots(shots, [name for name, given in others.items() if given])
    corpus = corpus or (Path(manifest).stem if isinstance(manifest, str | Path) else out.name)
    finish = partial(
        Extraction,
        out=out,
        version=version,
        licence=licence,
        citation=citation,
        shard=shard,
        limit=limit,
        retry_failed=retry_failed,
        sealing=sealing,
        append=None if append is None else open_store(append).path,
        shots=table,
        note=note,
        progress=progress,
    )
    if reads_texts(backbones):
        texts = manifest if isinstance(manifest, TextList) else _texts_of(manifest)
        text_job = TextJob(texts, corpus, _text_backbones(backbones))
        run_some = partial(run_texts, batch_size=batch_size or TEXTS_AT_ONCE)
        return finish(job=text_job, engine=run_some, costs=partial(estimate_texts, text_job))
    load_decoder(decoder)
    clips = merge_annotators(manifest if isinstance(manifest, Manifest) else _clips_of(manifest, backbones))
    if not clips:
        raise ExtractError(f"{manifest}: there is no clip in it, only a header")
    for doubt in check_identity(clips, clips.root):
        note(doubt)
    recipes: tuple[Recipe | None, ...]
    if per_second is not None:
        _check_rate(per_second, n_frames, sampling)
        recipes = tuple(_recipe_of_each_frame(backbone) for backbone in backbones)
    else:
        recipes = tuple(_recipe(backbone, frames_of(clips, n_frames)) for backbone in backbones)
    _check_engine(engine, recipes, gpus)
    led = on_gpus([recipe for recipe in recipes if recipe], gpus) if gpus else recipes
    built = tuple(
        recipe.build() if recipe else backbone for recipe, backbone in zip(led, backbones, strict=True)
    )
    job = Job(
        clips,
        corpus,
        built,  # type: ignore[arg-type]  # names and recipes are built by now; text backbones are handled above
        sampling,
        strict,
        hash_sources,
        tuple(recipe for recipe in recipes if recipe),
        decoder,
        None if keep_frames is None else _folder_of_frames(local_path(keep_frames)),
        per_second,
    )
    if len({backbone.n_frames for backbone in job.backbones}) > 1:
        counts = ", ".join(f"{backbone.name} {backbone.n_frames}" for backbone in job.backbones)
        note(
            f"the backbones take different frames of a clip ({sampling}: {counts}); "
            "it is decoded once for all of them"
        )
    for backbone in job.backbones:
        for absent in _unasked(backbone, clips.codebook):
            note(absent)
    if reason := fallback(job.backbones):
        note(reason)
    if engine == "local" and workers is None:
        workers = usable_cores(shard[1])
    how: dict[str, Any] = {
        "workers": workers,
        "batch_size": max(batch_size or CLIPS_AT_ONCE, clips_at_once(job.backbones)),
        "timeout_s": timeout_s,
        **({"note": note} if engine == "ray" else {}),
        **({"gpus": tuple(gpus)} if gpus else {}),
    }
    return finish(
        job=job,
        engine=partial(run_gpus if gpus else run_ray if engine == "ray" else run_local, **how),
        costs=partial(estimate_clips, job, workers=workers or usable_cores()),
    )


def _unasked(backbone: Backbone, codebook: Codebook) -> list[str]:
    """Say what a backbone of a codebook's questions does not ask, since it cannot perceive that.

    Raises
    ------
    ExtractError
        It asks of a concept that it cannot perceive: its file of questions does not say what conveys it.
    """
    provenance = backbone.provenance
    reasons = unperceived(codebook, perceived(provenance))
    for question in provenance.get("questions", {}):
        name = question.removeprefix("concept:")
        if question != name and name in reasons:
            raise ExtractError(
                f"backbone {backbone.name} is asked {question!r}, and {reasons[name]}: write the questions "
                "again with 'obygaze codebook questions', which leaves it out"
            )
    absent = provenance.get("absent", {})
    if not absent:
        return []
    return [f"{backbone.name}: {counted(len(absent), 'question')} not asked: {'; '.join(absent.values())}"]


def _folder_of_frames(folder: Path) -> Path:
    if folder.exists() and not folder.is_dir():
        raise ExtractError(f"{folder}: a file, and frames are kept in a folder; choose another")
    return folder.absolute()


def _table_of_shots(shots: Path | str | None, others: Sequence[str]) -> Path | None:
    """Return where the table of shots goes; refuse settings under which shots cannot be found."""
    if shots is None:
        return None
    if others:
        raise ExtractError(
            f"--shots cannot be combined with {', '.join(others)}: shots are found while one machine decodes "
            "whole films; use 'obygaze manifest import film --shots own' instead"
        )
    return local_path(shots)


P = ParamSpec("P")
R = TypeVar("R")


def _after(preparing: Callable[P, Extraction]) -> Callable[[Callable[[Extraction], R]], Callable[P, R]]:
    """Give a function of a prepared extraction the parameters that prepare it, also in its signature."""

    def decorate(function: Callable[[Extraction], R]) -> Callable[P, R]:
        @wraps(function, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
        def prepared(*args: P.args, **kwargs: P.kwargs) -> R:
            return function(preparing(*args, **kwargs))

        returned = signature(function).return_annotation
        prepared.__annotations__ = preparing.__annotations__ | {"return": returned}
        shown = signature(preparing).replace(return_annotation=returned)
        prepared.__signature__ = shown  # type: ignore[attr-defined]  # what inspect, help and notebooks read
        return prepared

    return decorate


@checked
@_after(prepare)
def extract(work: Extraction) -> Store | MaybeNone:
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
    per_second
        Frames of each second, in place of a number a clip: for clips of unlike length. Each frame is encoded
        alone, and its vector stored, of each clip as many as it has (`Group.ragged`).
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
    shard, sealing
        For `prepare` alone: shard (i, n) does the pieces k with k % n == i; whether to seal at the end.
    limit
        Most rows to process now; None is all. While clips are left to do, a note says how many, and there is
        no store to return: the next call goes on.
    shots
        CSV file to write: the shots of the films whose windows the manifest holds, found on the frames that
        are decoded for the windows, each frame once.
    keep_frames
        Folder in which the sampled frames stay, at most 256 pixels at the short side and as JPEG, and from
        which later calls read them. Features are those of these frames; None is the frames themselves.
    note
        Called with each message that is not an error.
    progress
        Called with (rows done, rows to do); or whether to show a bar: by default in a notebook alone.

    Returns
    -------
    Store
        The sealed store; None while `limit` leaves clips to do.

    Raises
    ------
    ManifestError, BackboneError, StoreError, ExtractError, WorkerError
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
    if not work.seals:
        raise ExtractError("extract seals a store: for one shard, or without sealing, use prepare(...).run()")
    stage, _ = work.run()
    sealed = work.seal(stage)
    if sealed is not None:
        return open_store(sealed)
    left = f"{stage.path}: {counted(len(stage.missing()), work.unit)} left to do; extract again"
    if work.limit is None:
        raise ExtractError(left)
    work.note(left)
    return None


@wraps(prepare)
def _prepare_trial(
    manifest: Path | str | Manifest | TextList,
    out: Path | str,
    backbones: Sequence[AnyBackbone] = ("descriptors",),
    *,
    note: OnNote = warnings.warn,
    **settings: Any,
) -> Extraction:
    """Prepare an extraction that is only to be estimated."""
    from obygaze_features.extraction.trial_weights import with_untrained_networks  # noqa: PLC0415 - heavy

    tried: list[AnyBackbone] = []
    for backbone in backbones:
        recipe = Recipe(backbone) if isinstance(backbone, str) else backbone
        tried += with_untrained_networks([recipe], note) if isinstance(recipe, Recipe) else [recipe]
    return prepare(manifest, out, tried, note=note, **settings)


@checked
@_after(_prepare_trial)
def estimate(work: Extraction) -> Estimate | TextEstimate:
    """Estimate the cost of the remaining work of `extract`; nothing is written.

    The parameters are those of `extract`. Up to eight passes over files, or sixteen texts, are tried. Usual
    weights that are not here are replaced by random ones of the same network, which cost the same.

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
    return work.estimate()


def reads_texts(backbones: Sequence[AnyBackbone]) -> bool:
    """Return whether these backbones read texts.

    Raises
    ------
    ExtractError
        If some read texts and others frames.
    """
    texts = [
        _name(backbone)
        for backbone in backbones
        if isinstance(backbone, TextBackbone)
        or (not isinstance(backbone, Backbone) and _name(backbone) in TEXT_BACKBONES)
    ]
    others = [_name(backbone) for backbone in backbones if _name(backbone) not in texts]
    if texts and others:
        raise ExtractError(
            f"{', '.join(texts)} reads texts and {', '.join(others)} takes frames: "
            "the rows of a store are one or the other; extract two stores"
        )
    return bool(texts)


def _name(backbone: AnyBackbone) -> str:
    return backbone if isinstance(backbone, str) else backbone.name


def _recipe(backbone: AnyBackbone, n_frames: int | None) -> Recipe | None:
    """Return the recipe of a backbone; None if it is built already."""
    if isinstance(backbone, str):
        return Recipe(backbone, n_frames)
    if isinstance(backbone, Recipe):
        return backbone if backbone.n_frames is not None else replace(backbone, n_frames=n_frames)
    return None


def _recipe_of_each_frame(backbone: AnyBackbone) -> Recipe:
    """Return the recipe of a backbone that encodes each frame alone.

    Raises
    ------
    ExtractError
        If it is built already, or its number of frames was said.
    """
    recipe = _recipe(backbone, None)
    if recipe is None:
        raise ExtractError(
            f"backbone '{_name(backbone)}' is built already; for frames a second give its name, or a Recipe"
        )
    if recipe.n_frames is not None:
        raise ExtractError(
            f"backbone '{recipe.name}': {recipe.n_frames} frames of a clip, or frames a second, not both"
        )
    return replace(recipe, n_frames=1, each_frame=True)


def _check_rate(per_second: float, n_frames: int | None, sampling: str) -> None:
    """Refuse a rate that is none, or stands beside another rule for frames."""
    if not 0 < per_second < math.inf:
        raise ExtractError(f"{per_second:g} frames a second (--per-second): expected a number above 0")
    if n_frames is not None:
        raise ExtractError("a number of frames a clip (--n), or frames a second (--per-second), not both")
    if sampling != "uniform":
        raise ExtractError(f"--sampling {sampling} is of a number of frames a clip; leave out --per-second")


def _check_engine(engine: str, recipes: Sequence[Recipe | None], gpus: Sequence[int]) -> None:
    """Refuse what the engine cannot run, and notice a missing package, before any work."""
    if engine == "ray" and find_spec("ray") is None:
        raise ModuleNotFoundError("No module named 'ray'", name="ray")
    if None in recipes and (engine == "ray" or gpus):
        raise ExtractError("other processes build the backbones: give their names, or a Recipe")
    if engine == "ray" and gpus:
        raise ExtractError("--gpus is for the engine local")
    for recipe in recipes if engine == "ray" else ():
        device = "" if recipe is None else getattr(recipe.options.get("compute"), "device", "")
        if device.startswith("cuda:"):
            raise ExtractError(
                f"--device {device} with the engine 'ray': each encoder sees one card alone; "
                "give --device cuda"
            )


def _text_backbones(backbones: Sequence[AnyBackbone]) -> tuple[TextBackbone, ...]:
    refuse_twins([_name(backbone) for backbone in backbones])
    return tuple(
        backbone
        if isinstance(backbone, TextBackbone)
        else load_text_backbone(_name(backbone), **(backbone.options if isinstance(backbone, Recipe) else {}))
        for backbone in backbones
    )


def _texts_of(source: Path | str | Manifest) -> TextList:
    if isinstance(source, Manifest):
        raise ExtractError("backbones that read texts need a list of texts, not a manifest of clips")
    return read_texts(local_path(source))


def _clips_of(source: Path | str | TextList, backbones: Sequence[AnyBackbone]) -> Manifest:
    """Read a manifest of clips; refuse a video, a folder and a list of texts."""
    names = ", ".join(_name(backbone) for backbone in backbones)
    if isinstance(source, TextList):
        raise ExtractError(f"{names} takes frames, and a list of texts has none")
    path = local_path(source)
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
        halves = [text for name in map(_name, backbones) if (text := f"{name}-text") in TEXT_BACKBONES]
        choice = " or ".join(f"--backbone {name}" for name in halves or ("clip-text", "sentence"))
        raise ExtractError(f"{path} is a list of texts, and {names} reads frames; give {choice}") from error
