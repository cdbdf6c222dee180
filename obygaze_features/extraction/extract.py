"""Extract the features of a manifest or a list of texts into a sealed store: prepare, estimate, run, seal."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, wraps
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from shlex import quote
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar

from obygaze_features.arguments import checked
from obygaze_features.backbones import TEXT_BACKBONES, Backbone, TextBackbone, load_text_backbone
from obygaze_features.cores import usable_cores
from obygaze_features.errors import ExtractError, ManifestError
from obygaze_features.extraction.cost_estimate import Estimate, estimate_clips
from obygaze_features.extraction.decoders import CUDA, PYAV, load_decoder
from obygaze_features.extraction.encode import clips_at_once, cpu_fallback_note
from obygaze_features.extraction.gpu_pool import refuse_without_gpu
from obygaze_features.extraction.gpus import on_gpus, run_gpus
from obygaze_features.extraction.job import Job, Recipe, frames_of, refuse_duplicates
from obygaze_features.extraction.loop import run_local
from obygaze_features.extraction.prepared import Extraction, OnNote
from obygaze_features.extraction.ray_leader import run_ray
from obygaze_features.extraction.report import Run
from obygaze_features.extraction.texts import TextEstimate, TextJob, estimate_texts, run_texts
from obygaze_features.file_kinds import VIDEO_SUFFIXES
from obygaze_features.io import NO_LICENCE, local_folder, local_path, store_path
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
from obygaze_features.store.sealing import versioned_path
from obygaze_features.store.shares import check_shares

CLIPS_AT_ONCE = 8
"""Clips that are encoded together, unless a backbone takes more."""
TEXTS_AT_ONCE = 64
"""Texts that are encoded together."""

MaybeNone = Any
"""In a union: None in a rare case. Type checkers would make every caller check for None, but not for Any."""

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
    # Check what can be checked before anything is loaded.
    validate_licence(licence)
    out = store_path(out)
    check_shares(staging_path(out), shard, this_machine())
    versioned_path(out, version)  # only for its check of the version; the path is not needed yet
    takes_texts = reads_texts(backbones)
    options_in_use = {
        "--engine ray": engine == "ray",
        "--gpus": len(gpus) > 0,
        "--shard": shard[1] > 1,
        "--limit": limit is not None,
        "--append": append is not None,
        "--decoder": decoder != PYAV,
        "backbones that read texts": takes_texts,
    }
    shots_path = _path_if_shots_can_be_found(shots, options_in_use)
    if not corpus:
        corpus = Path(manifest).stem if isinstance(manifest, str | Path) else out.name
    parent = None if append is None else open_store(append).path

    # Read the rows, and build the backbones.
    if takes_texts:
        work = _work_on_texts(manifest, corpus, backbones, batch_size)
    else:
        job = _clip_job(
            manifest,
            corpus,
            backbones,
            n_frames=n_frames,
            per_second=per_second,
            sampling=sampling,
            engine=engine,
            gpus=gpus,
            decoder=decoder,
            strict=strict,
            hash_sources=hash_sources,
            keep_frames=keep_frames,
            note=note,
        )
        if engine == "local" and workers is None:
            workers = usable_cores(shard[1])
        work = _work_on_clips(
            job,
            engine,
            gpus,
            workers=workers,
            batch_size=batch_size,
            timeout_s=timeout_s,
            note=note,
        )

    return Extraction(
        job=work.job,
        out=out,
        engine=work.extract_rows,
        costs=work.estimate_costs,
        version=version,
        licence=licence,
        citation=citation,
        shard=shard,
        limit=limit,
        retry_failed=retry_failed,
        sealing=sealing,
        append=parent,
        shots=shots_path,
        note=note,
        progress=progress,
    )


class _Work(NamedTuple):
    """The parts of an `Extraction` that differ for clips and texts.

    Attributes
    ----------
    job
        What determines the features.
    extract_rows
        Extracts rows, as `run_local` does.
    estimate_costs
        Estimates the cost of extracting the rows with given ids.
    """

    job: Job | TextJob
    extract_rows: Callable[..., Run]
    estimate_costs: Callable[[Sequence[str]], Estimate | TextEstimate]


def _work_on_texts(
    texts_or_path: Path | str | Manifest | TextList,
    corpus: str,
    backbones: Sequence[AnyBackbone],
    batch_size: int | None,
) -> _Work:
    """Read a list of texts and build the backbones; return what to extract, and how.

    Parameters
    ----------
    texts_or_path
        The texts, or the path of their table.
    corpus
        Name of the corpus in the store.
    backbones
        Backbones that read texts, or their names.
    batch_size
        Texts that are encoded together; None for `TEXTS_AT_ONCE`.
    """
    texts = texts_or_path if isinstance(texts_or_path, TextList) else _texts_of(texts_or_path)
    job = TextJob(texts, corpus, _text_backbones(backbones))
    extract_rows = partial(run_texts, batch_size=batch_size or TEXTS_AT_ONCE)
    estimate_costs = partial(estimate_texts, job)
    return _Work(job, extract_rows, estimate_costs)


def _clip_job(
    manifest_or_path: Path | str | Manifest | TextList,
    corpus: str,
    backbones: Sequence[AnyBackbone],
    *,
    n_frames: int | None,
    per_second: float | None,
    sampling: Literal["uniform", "keyframes"],
    engine: Literal["local", "ray"],
    gpus: Sequence[int],
    decoder: str,
    strict: bool,
    hash_sources: bool,
    keep_frames: Path | str | None,
    note: OnNote,
) -> Job:
    """Read the manifest, build the backbones, and return the job that extracts its clips.

    Settings that do not go together are refused before a backbone is built, which may take minutes. The
    keyword arguments are those of `extract`, which describes them.

    Parameters
    ----------
    manifest_or_path
        The manifest of the clips, or the path of its file.
    corpus
        Name of the corpus in the store.
    backbones
        Names, recipes, or backbones that are built already.
    """
    load_decoder(decoder)  # only for its check; each worker loads the decoder itself
    manifest = _checked_manifest(manifest_or_path, backbones, note)
    recipes = _recipes(backbones, manifest, n_frames, per_second, sampling)
    _check_engine(engine, recipes, gpus, decoder)

    built_backbones = _build_all(backbones, recipes, gpus)

    frames_folder = None  # of frames that are kept for later runs
    if keep_frames is not None:
        frames_folder = _folder_of_frames(local_folder(keep_frames))
    job = Job(
        manifest=manifest,
        corpus=corpus,
        backbones=built_backbones,
        policy=sampling,
        strict=strict,
        hash_sources=hash_sources,
        recipes=tuple(recipe for recipe in recipes if recipe is not None),
        decoder=decoder,
        keep_frames=frames_folder,
        per_second=per_second,
    )

    if decoder == CUDA:
        refuse_without_gpu(job.backbones)
    _note_on_backbones(job, note)
    return job


def _checked_manifest(
    manifest_or_path: Path | str | Manifest | TextList, backbones: Sequence[AnyBackbone], note: OnNote
) -> Manifest:
    """Return the manifest (table of clips) with one row for each clip, and note doubts about its films.

    A manifest may have a row for each annotator of a clip. A doubt is, for example, that two films seem to be
    the same.

    Parameters
    ----------
    manifest_or_path
        The manifest, or the path of its file.
    backbones
        The backbones, for messages.
    note
        Called with each doubt, as a sentence.

    Raises
    ------
    ManifestError
        The manifest cannot be read.
    ExtractError
        The manifest has no clips, or the path is not that of a manifest.
    """
    merged_manifest = merge_annotators(_manifest_of(manifest_or_path, backbones))
    if not merged_manifest:
        raise ExtractError(f"{manifest_or_path}: there is no clip in it, only a header")
    for doubt in check_identity(merged_manifest, merged_manifest.root):
        note(doubt)
    return merged_manifest


def _recipes(
    backbones: Sequence[AnyBackbone],
    manifest: Manifest,
    n_frames: int | None,
    per_second: float | None,
    sampling: str,
) -> tuple[Recipe | None, ...]:
    """Return a recipe (arguments to build a backbone) for each backbone, with the wanted number of frames.

    A backbone that is built already has None in place of a recipe.

    Parameters
    ----------
    backbones
        Names, recipes, or backbones that are built already.
    manifest
        The clips; if these are still images, each has one frame.
    n_frames
        Frames of a clip; None for what the backbone takes by default.
    per_second
        Frames of each second, in place of a number for each clip; None for `n_frames`.
    sampling
        `uniform` or `keyframes`; the latter only with a number for each clip.
    """
    if per_second is not None:
        _check_rate(per_second, n_frames, sampling)
        return tuple(_recipe_of_each_frame(backbone) for backbone in backbones)
    n_frames = frames_of(manifest, n_frames)
    return tuple(_recipe(backbone, n_frames) for backbone in backbones)


def _build_all(
    backbones: Sequence[AnyBackbone], recipes: Sequence[Recipe | None], gpus: Sequence[int]
) -> tuple[Backbone, ...]:
    """Build the backbones that have a recipe, and return all backbones; the others are built already.

    Parameters
    ----------
    backbones, recipes
        The backbones, and the recipe of each; None if it is built already.
    gpus
        Backbones are built on the first of these GPUs; empty builds them where their recipes say. With GPUs
        every backbone has a recipe.
    """
    if gpus:  # `_check_engine` has refused backbones without a recipe
        recipes = on_gpus([recipe for recipe in recipes if recipe is not None], gpus)
    built = []
    for backbone, recipe in zip(backbones, recipes, strict=True):
        built.append(backbone if recipe is None else recipe.build())
    return tuple(built)  # type: ignore[arg-type]  # names and recipes are built, text backbones handled before


def _note_on_backbones(job: Job, note: OnNote) -> None:
    """Tell the user what may surprise in the backbones, by calls of `note`.

    Told are that they take different numbers of frames, that a backbone leaves out questions of the codebook,
    and that networks run on the CPU for lack of a GPU.

    Raises
    ------
    ExtractError
        A backbone is asked about a concept that it cannot perceive.
    """
    distinct_numbers = {backbone.n_frames for backbone in job.backbones}
    if len(distinct_numbers) > 1:
        numbers_text = ", ".join(f"{backbone.name} {backbone.n_frames}" for backbone in job.backbones)
        note(
            f"the backbones take different frames of a clip ({job.policy}: {numbers_text}); "
            "it is decoded once for all of them"
        )

    for backbone in job.backbones:
        _refuse_imperceptible_questions(backbone, job.manifest.codebook)
        skipped = _note_on_skipped_questions(backbone)
        if skipped:
            note(skipped)

    cpu_note = cpu_fallback_note(job.backbones)
    if cpu_note:
        note(cpu_note)


def _work_on_clips(
    job: Job,
    engine: Literal["local", "ray"],
    gpus: Sequence[int],
    *,
    workers: int | None,
    batch_size: int | None,
    timeout_s: float,
    note: OnNote,
) -> _Work:
    """Choose what extracts the clips: several GPUs, a Ray cluster, or this process.

    Parameters
    ----------
    job
        What determines the features.
    engine
        `local`, or `ray` for a cluster.
    gpus
        Numbers of the GPUs that share the work; empty for one process.
    workers
        Decode processes; None for one on each usable core.
    batch_size
        Clips that are encoded together; None for the default.
    timeout_s
        Time limit for decoding one clip, in seconds.
    note
        Called with messages for the user during the run.
    """
    settings: dict[str, Any] = {
        "workers": workers,
        # A batch has at least the clips that a backbone encodes in one call.
        "batch_size": max(batch_size or CLIPS_AT_ONCE, clips_at_once(job.backbones)),
        "timeout_s": timeout_s,
    }
    extract_rows: Callable[..., Run]
    if gpus:
        extract_rows = partial(run_gpus, gpus=tuple(gpus), **settings)
    elif engine == "ray":
        extract_rows = partial(run_ray, note=note, **settings)
    else:
        extract_rows = partial(run_local, **settings)
    estimate_costs = partial(estimate_clips, job, workers=workers or usable_cores())
    return _Work(job, extract_rows, estimate_costs)


def _refuse_imperceptible_questions(backbone: Backbone, codebook: Codebook) -> None:
    """Raise an error if a backbone is asked about a concept that it cannot perceive.

    An example is a question about a sound to a backbone that takes pictures.

    Parameters
    ----------
    backbone
        A backbone; one that answers questions has them in its provenance, by names such as "concept:Music".
    codebook
        The codebook, which says how each concept is conveyed: seen, heard or told.

    Raises
    ------
    ExtractError
        There is such a question.
    """
    # Concept -> why the backbone cannot perceive it.
    reason_of_concept = unperceived(codebook, perceived(backbone.provenance))
    for question in backbone.provenance.get("questions", {}):
        is_about_concept = question.startswith("concept:")
        concept = question.removeprefix("concept:")
        if is_about_concept and concept in reason_of_concept:
            raise ExtractError(
                f"backbone {backbone.name} is asked {question!r}, and {reason_of_concept[concept]}: "
                "write the questions again with 'obygaze codebook questions', which leaves it out"
            )


def _note_on_skipped_questions(backbone: Backbone) -> str:
    """Return a note on the questions of a codebook that a backbone is not asked, with the reasons.

    They are about concepts that it cannot perceive. "" if there are none.
    """
    reason_of_question = backbone.provenance.get("absent", {})
    if not reason_of_question:
        return ""
    n_questions = counted(len(reason_of_question), "question")
    return f"{backbone.name}: {n_questions} not asked: {'; '.join(reason_of_question.values())}"


def _folder_of_frames(folder: Path) -> Path:
    """Return the absolute path of the folder in which sampled frames are kept; raise an error for a file."""
    if folder.exists() and not folder.is_dir():
        raise ExtractError(f"{folder}: a file, and frames are kept in a folder; choose another")
    return folder.absolute()


def _path_if_shots_can_be_found(shots: Path | str | None, options_in_use: Mapping[str, bool]) -> Path | None:
    """Check that a run can find shots, if they are wanted, and return the path of their table.

    Shots are found only by a plain run over whole films on one machine: an error names the options that
    exclude it.

    Parameters
    ----------
    shots
        The file to write; None if no shots are wanted.
    options_in_use
        Option that cannot be combined with shots -> whether it is used.

    Returns
    -------
    Path or None
        The file to write; None if no shots are wanted.
    """
    if shots is None:
        return None
    conflicts = [option for option, is_used in options_in_use.items() if is_used]
    if conflicts:
        raise ExtractError(
            f"--shots cannot be combined with {', '.join(conflicts)}: shots are found while one machine "
            "decodes whole films; use 'obygaze manifest import film --shots own' instead"
        )
    return local_path(shots)


Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def _with_parameters_of(
    preparing: Callable[Parameters, Extraction],
) -> Callable[[Callable[[Extraction], Result]], Callable[Parameters, Result]]:
    """Return a decorator: the decorated function takes the arguments of `prepare`, and prepares first.

    So the many parameters of `prepare` are written down once. For example, `extract` is defined as
    `extract(work)`, where `work` is a prepared `Extraction`, and called as `extract(manifest, out, ...)`:
    this is `work = prepare(manifest, out, ...)`, and then the body of `extract`. In the types, `Parameters`
    are those of `prepare`, and `Result` is what the decorated function returns.

    Above it stands `@checked`, which refuses arguments of other types than the annotations of a function say.
    So the decorated function must have the annotations of `prepare`.

    Parameters
    ----------
    preparing
        `prepare`, or a function with its parameters. Its signature and annotations become those of the
        decorated function, except for what is returned.
    """

    def decorate(function: Callable[[Extraction], Result]) -> Callable[Parameters, Result]:
        """Wrap a function of an `Extraction`."""

        # The annotations of `function` are not copied: it takes one `Extraction`, and what callers see takes
        # the arguments of `preparing`, whose annotations are set below.
        @wraps(function, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
        def prepare_and_call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            """Prepare the extraction, and call the function with it."""
            return function(preparing(*args, **kwargs))

        # `(*args, **kwargs)` tells nobody what to pass. Python's `help` and notebooks show the signature that
        # is set here, and `checked` reads the annotations.
        result_type = signature(function).return_annotation
        shown_signature = signature(preparing).replace(return_annotation=result_type)
        prepare_and_call.__signature__ = shown_signature  # type: ignore[attr-defined]
        prepare_and_call.__annotations__ = preparing.__annotations__ | {"return": result_type}
        return prepare_and_call

    return decorate


@checked
@_with_parameters_of(prepare)
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
        Frames of each second, in place of a number a clip: for clips of different lengths. Each frame is
        encoded alone, and its vector stored; clips then have different numbers of them (`Group.ragged`).
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
        Video decoder: `pyav`; `cuda`, an NVIDIA GPU beside the cores, which gives the same bits and is not
        tried on a GPU yet; or one from an installed package.
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
    shard
        For `prepare` alone: (i, n) does only shard i of n, i from 0. The rows are divided into pieces, and
        piece k belongs to shard k % n.
    sealing
        For `prepare` alone: whether to seal at the end.
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
    # `work` is what `prepare` has made of the parameters above.
    if not work.will_seal:  # the work is one shard of several, or `sealing` is False
        raise ExtractError("extract seals a store: for one shard, or without sealing, use prepare(...).run()")
    stage, _ = work.run()
    sealed_path = work.seal(stage)  # None if clips are left to do
    if sealed_path is not None:
        return open_store(sealed_path)

    # That is an error, unless a limit was set.
    message = f"{stage.path}: {counted(len(stage.missing()), work.unit)} left to do; extract again"
    if work.limit is None:
        raise ExtractError(message)
    work.note(message)
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
    """Prepare an extraction whose cost is to be estimated; the parameters are those of `prepare`.

    Default weights that are not on this machine are replaced by random ones, so that nothing is downloaded.
    """
    from obygaze_features.extraction.trial_weights import with_untrained_networks  # noqa: PLC0415 - heavy

    trial_backbones: list[AnyBackbone] = []
    for name_or_backbone in backbones:
        backbone = Recipe(name_or_backbone) if isinstance(name_or_backbone, str) else name_or_backbone
        if isinstance(backbone, Recipe):
            trial_backbones += with_untrained_networks([backbone], note)
        else:  # built already
            trial_backbones.append(backbone)
    return prepare(manifest, out, trial_backbones, note=note, **settings)


@checked
@_with_parameters_of(_prepare_trial)
def estimate(work: Extraction) -> Estimate | TextEstimate:
    """Estimate the cost of the remaining work of `extract`; nothing is written.

    The parameters are those of `extract`. Up to eight passes over files, or sixteen texts, are tried: they
    are decoded and encoded as `extract` would, and their times are those of all others. Usual weights that
    are not here are replaced by random ones of the same network, which cost the same.

    Examples
    --------
    >>> from pathlib import Path
    >>> from obygaze_features.extraction import estimate
    >>> from obygaze_features.manifest import Clip, Manifest
    >>> clips = Manifest((Clip("tt1-0", "tt1", "absent.mp4"),), Path("films"))
    >>> found = estimate(clips, "stores/new", n_frames=4)
    >>> found.clips, found.absent, found.seconds
    (1, 1, None)
    """
    # The decorator has prepared `work` from these parameters, as for `extract`.
    return work.estimate()


def reads_texts(backbones: Sequence[AnyBackbone]) -> bool:
    """Return whether these backbones read texts (True) or take frames of videos (False).

    Raises
    ------
    ExtractError
        Some read texts and others take frames.
    """
    text_backbones = []
    frame_backbones = []
    for backbone in backbones:
        if _reads_texts(backbone):
            text_backbones.append(_name(backbone))
        else:
            frame_backbones.append(_name(backbone))
    if text_backbones and frame_backbones:
        raise ExtractError(
            f"{', '.join(text_backbones)} reads texts and {', '.join(frame_backbones)} takes frames: "
            "the rows of a store are one or the other; extract two stores"
        )
    return len(text_backbones) > 0


def _reads_texts(backbone: AnyBackbone) -> bool:
    """Return whether a backbone reads texts; one that is not built yet is known by its name."""
    if isinstance(backbone, Backbone | TextBackbone):
        return isinstance(backbone, TextBackbone)
    return _name(backbone) in TEXT_BACKBONES


def _name(backbone: AnyBackbone) -> str:
    """Return the name of a backbone, built or not."""
    return backbone if isinstance(backbone, str) else backbone.name


def _recipe(backbone: AnyBackbone, n_frames: int | None) -> Recipe | None:
    """Return the recipe (arguments to build a backbone) of a backbone; None if it is built already.

    Parameters
    ----------
    backbone
        A name, a recipe or a backbone.
    n_frames
        Frames of a clip, unless the recipe has a number of its own.
    """
    if isinstance(backbone, str):
        return Recipe(backbone, n_frames)
    if not isinstance(backbone, Recipe):
        return None
    if backbone.n_frames is not None:
        return backbone
    return replace(backbone, n_frames=n_frames)


def _recipe_of_each_frame(backbone: AnyBackbone) -> Recipe:
    """Return a recipe (arguments to build a backbone) for a backbone that encodes each frame alone.

    It is for frames a second, where clips have different numbers of frames.

    Raises
    ------
    ExtractError
        The backbone is built already, or its recipe has a number of frames.
    """
    recipe = _recipe(backbone, n_frames=None)
    if recipe is None:
        raise ExtractError(
            f"backbone '{_name(backbone)}' is built already; for frames a second give its name, or a Recipe"
        )
    if recipe.n_frames is not None:
        raise ExtractError(
            f"backbone '{recipe.name}': {counted(recipe.n_frames, 'frame')} of a clip, or "
            "frames a second, not both"
        )
    return replace(recipe, n_frames=1, each_frame=True)


def _check_rate(per_second: float, n_frames: int | None, sampling: str) -> None:
    """Raise an error if the number of frames a second is not above 0, or is combined with another rule.

    Parameters
    ----------
    per_second
        Frames of each second of a clip.
    n_frames
        Frames of each clip, which excludes `per_second`; None if it is not set.
    sampling
        How frames are chosen; only `uniform` goes with `per_second`.
    """
    if not 0 < per_second < math.inf:
        raise ExtractError(f"{per_second:g} frames a second (--per-second): expected a number above 0")
    if n_frames is not None:
        raise ExtractError("a number of frames a clip (--n), or frames a second (--per-second), not both")
    if sampling != "uniform":
        raise ExtractError(f"--sampling {sampling} is of a number of frames a clip; leave out --per-second")


def _check_engine(engine: str, recipes: Sequence[Recipe | None], gpus: Sequence[int], decoder: str) -> None:
    """Raise an error for settings that the engine cannot run, and for a missing Ray.

    Parameters
    ----------
    engine
        `local`, or `ray` for a cluster.
    recipes
        Recipe of each backbone; None for one that is built already, which cannot be sent to other processes.
    gpus
        Numbers of the GPUs that share the work; each has a process.
    decoder
        Name of the video decoder.
    """
    uses_ray = engine == "ray"
    if uses_ray and find_spec("ray") is None:
        raise ModuleNotFoundError("No module named 'ray'", name="ray")
    others_build_backbones = uses_ray or len(gpus) > 0
    if others_build_backbones and None in recipes:
        raise ExtractError("other processes build the backbones: give their names, or a Recipe")
    if not uses_ray:
        return

    if gpus:
        raise ExtractError("--gpus is for the engine local")
    if decoder == CUDA:
        raise ExtractError(f"--decoder {CUDA} is for the engine local")

    for recipe in recipes:
        compute = None if recipe is None else recipe.options.get("compute")
        if compute is None:  # no network, or one on the default device
            continue
        # A process on a Ray cluster sees only the GPU that it was given, always as cuda:0.
        if compute.device.startswith("cuda:"):
            raise ExtractError(
                f"--device {compute.device} with the engine 'ray': each encoder sees one card alone; "
                "give --device cuda"
            )


def _text_backbones(backbones: Sequence[AnyBackbone]) -> tuple[TextBackbone, ...]:
    """Return the text backbones; those that are given by name or recipe are built."""
    refuse_duplicates([_name(backbone) for backbone in backbones])
    built = []
    for backbone in backbones:
        if isinstance(backbone, TextBackbone):
            built.append(backbone)
        elif isinstance(backbone, Recipe):
            built.append(load_text_backbone(backbone.name, **backbone.options))
        else:
            built.append(load_text_backbone(_name(backbone)))
    return tuple(built)


def _texts_of(texts_or_path: Path | str | Manifest) -> TextList:
    """Read a list of texts; refuse a manifest of clips."""
    if isinstance(texts_or_path, Manifest):
        raise ExtractError("backbones that read texts need a list of texts, not a manifest of clips")
    return read_texts(local_path(texts_or_path))


def _manifest_of(
    manifest_or_path: Path | str | Manifest | TextList, backbones: Sequence[AnyBackbone]
) -> Manifest:
    """Return a manifest (table of clips), read from its file; refuse a video, a folder or a list of texts.

    The error says what to do instead: make a manifest of the videos, or use a backbone that reads texts.

    Parameters
    ----------
    manifest_or_path
        The manifest, which is returned as it is, or the path of its file; a list of texts is refused.
    backbones
        The backbones, which take frames; for messages.
    """
    if isinstance(manifest_or_path, Manifest):
        return manifest_or_path
    names = ", ".join(_name(backbone) for backbone in backbones)
    if isinstance(manifest_or_path, TextList):
        raise ExtractError(f"{names} takes frames, and a list of texts has none")
    path = local_path(manifest_or_path)
    if path.is_dir():
        raise _not_a_manifest_error(path, folder_of_videos=path)
    if path.suffix.lower() in VIDEO_SUFFIXES:
        raise _not_a_manifest_error(path, folder_of_videos=path.parent)

    try:
        return read_manifest(path)
    except ManifestError as error:
        if not _is_list_of_texts(path):
            raise
        suggestion = " or ".join(f"--backbone {name}" for name in _suggested_text_backbones(backbones))
        raise ExtractError(
            f"{path} is a list of texts, and {names} reads frames; give {suggestion}"
        ) from error


def _not_a_manifest_error(path: Path, folder_of_videos: Path) -> ExtractError:
    """Return the error for a video or a folder, with the command that makes a manifest of the folder."""
    return ExtractError(
        f"{path} is not a manifest; make one first: obygaze manifest import folder "
        f"{quote(str(folder_of_videos))} --out {quote(path.stem or 'films')}.csv"
    )


def _is_list_of_texts(path: Path) -> bool:
    """Return whether a file can be read as a list of texts, by reading it."""
    try:
        read_texts(path)
    except ManifestError:
        return False
    return True


def _suggested_text_backbones(backbones: Sequence[AnyBackbone]) -> Sequence[str]:
    """Return text backbones to suggest to somebody who gave a list of texts to backbones of frames.

    They are the text counterparts of these backbones, such as `clip-text` of `clip`; if there are none, two
    common text backbones.
    """
    counterparts = [f"{_name(backbone)}-text" for backbone in backbones]
    existing = [name for name in counterparts if name in TEXT_BACKBONES]
    return existing or ("clip-text", "sentence")
