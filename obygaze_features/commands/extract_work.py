"""What `obygaze extract` has to do: clips for backbones that take frames, texts for those that read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from obygaze_features.commands.extract_options import read_recipes
from obygaze_features.commands.extract_output import show_text_estimate

if TYPE_CHECKING:
    from obygaze_features.extract import Job, RunReport
    from obygaze_features.extract.texts import TextJob

TEXTS_AT_ONCE = 64
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


def text_work(
    ctx: click.Context,
    texts: Path,
    corpus: str,
    names: Sequence[str],
    weights: tuple[str, ...],
    *,
    device: str | None,
    dtype: str | None,
    batch_size: int,
    as_json: bool,
) -> Work:
    """Read a list of texts and build the backbones that read them.

    Raises
    ------
    click.UsageError
        If an option was given that is about frames.
    """
    from obygaze_features.backbones import load_text_backbone
    from obygaze_features.extract import ExtractError
    from obygaze_features.extract.texts import TextJob, estimate_texts, run_texts
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
        partial(run_texts, job, batch_size=batch_size),
        lambda todo: show_text_estimate(estimate_texts(job, todo), as_json=as_json),
        "text",
    )
