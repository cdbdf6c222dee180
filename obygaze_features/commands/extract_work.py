"""What `obygaze extract` has to do: clips for backbones that take frames, texts for those that read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource

from obygaze_features.commands.extract_options import read_recipes
from obygaze_features.commands.extract_output import note_samplings, show_estimate, show_text_estimate

if TYPE_CHECKING:
    from obygaze_features.extraction import Job, RunReport
    from obygaze_features.extraction.texts import TextJob
    from obygaze_features.manifest import Manifest

CLIPS_AT_ONCE, TEXTS_AT_ONCE = 8, 64
VIDEOS = (".mp4", ".mkv", ".avi", ".mov", ".webm", ".ts")  # somebody forgot the manifest
OF_FRAMES = {
    "n_frames": "--n",
    "policy": "--sampling",
    "presets": "--preset",
    "tokens": "--tokens",
    "compiled": "--compile",
    "engine": "--engine",
    "workers": "--workers",
    "timeout": "--timeout",
    "strict": "--strict",
    "hash_sources": "--hash-sources",
}
"""Options that mean nothing where no video is decoded, by the names of the command's parameters."""


@dataclass(frozen=True)
class Work:
    """A job and how it is done.

    Attributes
    ----------
    job
        What decides the numbers.
    run
        Takes the stage and the ids to do, and `stopped` and `on_commit` as the engines do.
    show_cost
        Says what some ids would cost.
    unit
        What a row is.
    """

    job: "Job | TextJob"
    run: "Callable[..., RunReport]"
    show_cost: Callable[[Sequence[str]], None]
    unit: str = "clip"


def reads_texts(names: Sequence[str]) -> bool:
    """Say whether these backbones read texts.

    Raises
    ------
    click.UsageError
        If some read texts and others frames.
    """
    from obygaze_features.backbones import TEXT_BACKBONES

    texts = [name for name in names if name in TEXT_BACKBONES]
    others = [name for name in names if name not in TEXT_BACKBONES]
    if texts and others:
        raise click.UsageError(
            f"{', '.join(texts)} reads texts and {', '.join(others)} takes frames: the rows of a store are "
            "one or the other; extract two stores"
        )
    return bool(texts)


def clip_work(
    _: click.Context,
    manifest: Path,
    corpus: str,
    names: Sequence[str],
    *,
    n_frames: int | None,
    policy: Literal["uniform", "keyframes"],
    weights: tuple[str, ...],
    presets: tuple[str, ...],
    tokens: tuple[str, ...],
    device: str | None,
    dtype: str | None,
    compiled: bool,
    engine: Literal["local", "ray"],
    workers: int | None,
    batch_size: int | None,
    timeout: float,
    strict: bool,
    hash_sources: bool,
    as_json: bool,
) -> Work:
    """Read a manifest and build the backbones that take frames of its clips.

    Raises
    ------
    ManifestError
        It cannot be read.
    ExtractError
        It is a video, a folder or a list of texts, or has no clip.
    """
    from obygaze_features.extraction import ExtractError, Job, estimate, usable_cores
    from obygaze_features.extraction.job import frames_of

    _refuse_videos(manifest)
    run = _engine(engine)
    clips = _read_clips(manifest, names)
    recipes = read_recipes(
        names,
        frames_of(clips, n_frames),
        {"weights": weights, "preset": presets, "tokens": tokens},
        device=device,
        dtype=dtype,
        compiled=compiled,
    )
    backbones = tuple(recipe.build() for recipe in recipes)
    job = Job(clips, corpus, backbones, policy, strict, hash_sources, recipes)
    note_samplings(job)
    if not clips:
        raise ExtractError(f"{manifest}: there is no clip in it, only a header")
    cores = workers or usable_cores()
    return Work(
        job,
        partial(run, job, workers=workers, batch_size=batch_size or CLIPS_AT_ONCE, timeout_s=timeout),
        lambda todo: show_estimate(estimate(job, todo, cores), cores, as_json=as_json),
    )


def text_work(
    ctx: click.Context,
    texts: Path,
    corpus: str,
    names: Sequence[str],
    *,
    weights: tuple[str, ...],
    device: str | None,
    dtype: str | None,
    batch_size: int | None,
    as_json: bool,
    **_of_frames: Any,
) -> Work:
    """Read a list of texts and build the backbones that read them.

    Raises
    ------
    click.UsageError
        If an option was given that is about frames.
    """
    from obygaze_features.backbones import load_text_backbone
    from obygaze_features.extraction import ExtractError
    from obygaze_features.extraction.texts import TextJob, estimate_texts, run_texts
    from obygaze_features.manifest import read_texts

    asked = [
        option
        for parameter, option in OF_FRAMES.items()
        if ctx.get_parameter_source(parameter) not in (ParameterSource.DEFAULT, None)
    ]
    if asked:
        raise click.UsageError(f"{', '.join(asked)}: about frames, and {', '.join(names)} reads texts")
    if len(set(names)) < len(names):
        raise ExtractError(f"two backbones have the same name: {', '.join(names)}")
    recipes = read_recipes(names, None, {"weights": weights}, device=device, dtype=dtype, compiled=False)
    found = read_texts(texts)
    backbones = tuple(load_text_backbone(recipe.name, **recipe.options) for recipe in recipes)
    job = TextJob(found, corpus, backbones)
    return Work(
        job,
        partial(run_texts, job, batch_size=batch_size or TEXTS_AT_ONCE),
        lambda todo: show_text_estimate(estimate_texts(job, todo), as_json=as_json),
        "text",
    )


def _refuse_videos(manifest: Path) -> None:
    from obygaze_features.extraction import ExtractError

    if manifest.is_dir() or manifest.suffix.lower() in VIDEOS:
        folder = manifest if manifest.is_dir() else manifest.parent
        raise ExtractError(
            f"{manifest} is not a manifest; make one first: "
            f"obygaze manifest import folder {quote(str(folder))} --out {quote(manifest.stem or 'films')}.csv"
        )


def _engine(name: str) -> "Callable[..., RunReport]":
    """Import an engine, before anything else is done that its absence would waste."""
    if name == "ray":
        from obygaze_features.extraction.distributed import run_ray

        return run_ray
    from obygaze_features.extraction import run_local

    return run_local


def _read_clips(path: Path, names: Sequence[str]) -> "Manifest":
    """Read a manifest of clips for backbones that take frames.

    Raises
    ------
    ManifestError
        It cannot be read.
    ExtractError
        It is a list of texts.
    """
    from obygaze_features.extraction import ExtractError
    from obygaze_features.manifest import ManifestError, read_manifest, read_texts

    try:
        return read_manifest(path)
    except ManifestError as error:
        try:
            read_texts(path)
        except ManifestError:
            raise error from None
        raise ExtractError(
            f"{path} is a list of texts, and what takes frames ({', '.join(names)}) reads none; "
            "give --backbone clip-text or --backbone sentence"
        ) from error
