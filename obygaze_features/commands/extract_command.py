"""`obygaze extract`: extract features of a manifest's clips, or of texts, to a store."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any, Literal

import click
from click.core import ParameterSource

import obygaze_features as of
from obygaze_features import backbones, extraction
from obygaze_features.commands.extract_output import NOTE, estimated, logs_as_notes, note, outcome
from obygaze_features.errors import ExtractError
from obygaze_features.io import NO_LICENCE
from obygaze_features.options import PROBLEMS_FOUND, Answer, Output, completed, declared

PRECISIONS: Mapping[str, Literal["float32", "bfloat16", "float16", "bfloat16-weights"]] = {
    "fp32": "float32",
    "bf16": "bfloat16",
    "fp16": "float16",
    "bf16-weights": "bfloat16-weights",
}
COMPUTE = ("device", "dtype", "tf32", "compiled", "clips_at_once", "same_device")
"""Parameters about how networks run."""
OF_FRAMES = (
    *("n_frames", "sampling", "preset", "tokens", "track", "questions", "tf32", "compiled", "same_device"),
    *("engine", "workers", "gpus", "timeout_s", "decoder", "strict", "hash_sources", "shots", "keep_frames"),
)
"""Parameters that mean nothing where no video is decoded."""


def _shard(context: click.Context, option: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """Parse `i/n`: shard i (0-based) of n jobs that share the clips."""
    if value is None:
        return None
    part, _, parts = value.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and int(part) < int(parts)):
        raise click.BadParameter(f"'{value}' is not i/n with i from 0 to n-1, as in 0/4", context, option)
    return int(part), int(parts)


def _numbers(context: click.Context, option: click.Parameter, value: str) -> tuple[int, ...]:
    """Parse numbers of GPUs: `0,1,3`."""
    parts = [part.strip() for part in value.split(",")] if value else []
    if not all(part.isdecimal() for part in parts):
        raise click.BadParameter(f"'{value}' is no list of numbers such as 0,1", context, option)
    return tuple(map(int, parts))


@declared(
    __package__,
    "extract",
    names={"shell_complete": completed(lambda _: of.backbone_names())},
    gpus={"callback": _numbers},
    shard={"callback": _shard},
)
@click.pass_context
def extract(
    ctx: click.Context,
    /,
    manifest: Path,
    store: Path,
    names: tuple[str, ...],
    n_frames: int | None,
    shard: tuple[int, int] | None,
    dry_run: bool,
    append: Path | None,
    output: Output,
    **settings: Any,
) -> Answer:
    """Extract the clips of MANIFEST, or the texts of a list, into STORE; resumes where it stopped.

    Finished clips are saved in STORE.staging at once. When every clip is done or failed with a reason,
    the staging folder is sealed as STORE-VERSION, which never changes.

    With several backbones, each clip is decoded once for all. Several GPUs of one machine share the clips
    with --gpus 0,1; several machines with a job array (--shard) or --engine ray. docs/slurm.md has complete
    job scripts.

    The backbones sentence, text, clip-text, openclip-text, xclip-text and xclip-lsmdc-text read texts:
    MANIFEST is then a CSV with text_id and text, or with caption_id and caption, or a .txt with one text per
    line. Texts longer than the backbone's limit are cut and marked 'partial'.

    \b
    Exit codes: 0 all done, 1 error, 2 usage, 3 done but some clips failed,
    130 or 143 stopped by SIGINT or SIGTERM.

    \b
    Examples:
      obygaze extract films.csv stores/films --dry-run
      obygaze extract films.csv stores/films --licence CC-BY-4.0
      obygaze extract films.csv stores/films --retry-failed --store-version 1.1.0
      obygaze extract films.csv stores/films --backbone xclip --backbone vivit \\
          --dtype bf16
      obygaze extract films.csv stores/films --backbone xclip-lsmdc \\
          --weights pytorch_model.bin.4
      obygaze extract more.csv stores/films --append stores/films-1.0.0 \\
          --store-version 1.1.0
      obygaze extract films.csv stores/films --backbone xclip --gpus 0,1
      obygaze extract windows.csv stores/film --shots windows.shots.csv
      obygaze extract films.csv stores/films --shard 3/8         one of eight jobs
      obygaze extract films.csv stores/films --backbone descriptors \\
          --backbone sound
      obygaze extract stills.csv stores/stills --backbone clip        still images
      obygaze extract prompts.csv stores/prompts --backbone clip-text    texts
    """
    from obygaze_features.extraction.extract import reads_texts

    if store.is_file():
        raise click.UsageError(f"the order is MANIFEST STORE: {store} is a file, and a store is a new folder")
    try:
        texts = reads_texts(names)
    except ExtractError as error:
        raise click.UsageError(str(error)) from None
    if texts:
        _refuse_options_of_frames(ctx, names)
    named = {option: settings.pop(option) for option in ("weights", "preset", "tokens", "track", "questions")}
    compute = {option: settings.pop(option) for option in COMPUTE}
    if ctx.get_parameter_source("device") == ParameterSource.ENVIRONMENT:
        takers = [name for name in names if "compute" in backbones.backbone_options(name)]
        compute["device"] = compute["device"] if takers and not settings["gpus"] else None
    recipes = read_recipes(names, n_frames, named, compute)
    shard = choose_shard(shard)
    of_array = "SLURM_ARRAY_TASK_ID" in os.environ  # other tasks may write: a later job seals
    work = extraction.prepare(
        manifest,
        store,
        recipes,
        n_frames=n_frames,
        shard=shard,
        sealing=not of_array,
        append=append,
        note=note,
        progress=True,
        **settings,
    )
    if dry_run:
        return estimated(work.estimate(), work.unit)
    with extraction.stop_on_signals() as stop, logs_as_notes():
        stage, report = work.run(stopped=stop)
    sealed = None if stop() else work.seal(stage)
    answer = outcome(stage, report, sealed, stop, work.unit)
    told = [] if output.json else [*answer.remarks]
    if stop():
        left = len(stage.missing())
        told += [f"obygaze: stopped; {left} {work.unit}s are left. Run the same command again to go on."]
    elif (shard[1] > 1 or of_array) and not stage.missing(shard):
        stated = "SPDX" if work.licence == NO_LICENCE else quote(work.licence)
        then = f"obygaze store seal {quote(str(store))} --licence {stated}"
        told += [f"{NOTE}shard {shard[0]}/{shard[1]} is done. Once all are: {then}"]
    mine = [entry for entry in stage.status().values() if stage.piece(entry.clip_id) % shard[1] == shard[0]]
    failed = any(entry.status == "failed" for entry in mine)
    return replace(answer, remarks=told, code=stop.exit_code or (PROBLEMS_FOUND if failed else 0))


def _refuse_options_of_frames(ctx: click.Context, names: Sequence[str]) -> None:
    default = (ParameterSource.DEFAULT, ParameterSource.ENVIRONMENT, None)
    given = [_option(name) for name in OF_FRAMES if ctx.get_parameter_source(name) not in default]
    if given:
        raise click.UsageError(f"{', '.join(given)}: about frames, and {', '.join(names)} reads texts")


def _option(name: str) -> str:
    """Return the option that sets a parameter."""
    return next(parameter.opts[0] for parameter in extract.params if parameter.name == name)


def choose_shard(given: tuple[int, int] | None) -> tuple[int, int]:
    """Return the given shard, else that of the Slurm array task, else everything."""
    if given is not None:
        return given
    shard = extraction.array_shard(os.environ)
    if shard is not None:
        note(f"--shard {shard[0]}/{shard[1]}, as this is a task of a Slurm job array")
    return shard or (0, 1)


def read_recipes(
    names: Sequence[str],
    n_frames: int | None,
    named: Mapping[str, tuple[str, ...]],
    compute: Mapping[str, Any],
) -> "tuple[extraction.Recipe, ...]":
    """Build a recipe per backbone from the options.

    Parameters
    ----------
    named
        Option (`weights`, `preset`, `tokens`, `track`) -> its values as typed, `VALUE` or `NAME=VALUE`.
    compute
        Option of `COMPUTE` -> its value, for every backbone with a network; None or False if not given.

    Raises
    ------
    click.UsageError
        If a backbone does not take an option that was given for it.
    """
    taken = {name: backbones.backbone_options(name) for name in names}
    options: dict[str, dict[str, Any]] = {name: {} for name in names}
    for option, values in named.items():
        for written in values:
            for name, value in addressed(written, names).items():
                if option not in taken[name]:
                    raise click.UsageError(_not_taken(name, option, value, names))
                options[name][option] = _absolute(value) if option in {"weights", "questions"} else value
    given = {option: value for option, value in compute.items() if value}
    if given:
        takers = [name for name in names if "compute" in taken[name]]
        if not takers:
            raise click.UsageError(f"{', '.join(names)}: takes no {', '.join(map(_option, given))}")
        if "dtype" in given:
            given["precision"] = PRECISIONS[given.pop("dtype")]
        for name in takers:
            options[name]["compute"] = backbones.Compute(**given)
    return tuple(extraction.Recipe(name, n_frames, options[name]) for name in names)


def addressed(written: str, names: Iterable[str]) -> dict[str, str]:
    """Split `NAME=VALUE`; a plain value applies to every backbone."""
    name, _, value = written.partition("=")
    return {name: value} if name in names and name != written else dict.fromkeys(names, written)


def _not_taken(name: str, option: str, value: str, names: Sequence[str]) -> str:
    told = f"backbone '{name}' takes no --{option}"
    others = [other for other in names if other != name]
    return f"{told}; write for whom it is, as in --{option} {others[0]}={value}" if others else told


def _absolute(weights: str) -> str:
    """Make a path to weights absolute, for other processes."""
    path = Path(weights).expanduser()
    return str(path.absolute()) if path.exists() else weights
