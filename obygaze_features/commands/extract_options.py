"""How `obygaze extract` reads its options."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from obygaze_features.commands.extract_output import note

if TYPE_CHECKING:
    from obygaze_features.extraction import Recipe

PRECISIONS = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


class Shard(click.ParamType[tuple[int, int]]):
    """One of n jobs that share the clips: `i/n`, with i from 0."""

    name = "i/n"

    def convert(
        self, value: str | tuple[int, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        """Read `i/n`."""
        if isinstance(value, tuple):
            return value
        part, _, parts = value.partition("/")
        if not (part.isdecimal() and parts.isdecimal() and int(part) < int(parts)):
            self.fail(f"'{value}' is not i/n with i from 0 to n-1, as in 0/4", param, ctx)
        return int(part), int(parts)


def choose_shard(given: tuple[int, int] | None) -> tuple[int, int]:
    """Take the shard that was given, or that of a task of a Slurm job array, or everything."""
    from obygaze_features.extraction import array_shard

    if given is not None:
        return given
    shard = array_shard(os.environ)
    if shard is not None:
        note(f"--shard {shard[0]}/{shard[1]}, as this is a task of a Slurm job array")
    return shard or (0, 1)


def read_recipes(
    names: Sequence[str],
    n_frames: int | None,
    named: dict[str, tuple[str, ...]],
    *,
    device: str | None,
    dtype: str | None,
    compiled: bool,
) -> "tuple[Recipe, ...]":
    """Say how the backbones are built.

    Parameters
    ----------
    named
        Option (`weights`, `preset`, `tokens`) -> its values as written, `VALUE` or `NAME=VALUE`.

    Raises
    ------
    click.UsageError
        If a backbone does not take an option that was given for it.
    """
    from obygaze_features.backbones import backbone_options
    from obygaze_features.extraction import Recipe

    taken = {name: backbone_options(name) for name in names}
    options: dict[str, dict[str, Any]] = {name: {} for name in names}
    for option, values in named.items():
        for written in values:
            whom, value = _addressed(written, names)
            for name in whom:
                if option not in taken[name]:
                    raise click.UsageError(_not_taken(name, option, value, names))
                options[name][option] = _absolute(value) if option == "weights" else value
    if device or dtype or compiled:
        takers = [name for name in names if "compute" in taken[name]]
        if not takers:
            raise click.UsageError(f"{', '.join(names)}: takes no --device, --dtype or --compile")
        from obygaze_features.backbones.compute import Compute

        compute = Compute(device or "auto", PRECISIONS[dtype or "fp32"], compiled=compiled)  # type: ignore[arg-type]
        for name in takers:
            options[name]["compute"] = compute
    return tuple(Recipe(name, n_frames, options[name]) for name in names)


def _addressed(written: str, names: Sequence[str]) -> tuple[Sequence[str], str]:
    """Split `NAME=VALUE`; a value alone is for every backbone."""
    name, equals, value = written.partition("=")
    return ([name], value) if equals and name in names else (names, written)


def _not_taken(name: str, option: str, value: str, names: Sequence[str]) -> str:
    told = f"backbone '{name}' takes no --{option}"
    others = [other for other in names if other != name]
    return f"{told}; write for whom it is, as in --{option} {others[0]}={value}" if others else told


def what_forbids_writing(place: Path) -> str | None:
    """Say why a folder cannot be made or written, before an hour of work finds out; None if it can."""
    found = place.absolute()
    while not os.path.lexists(found):
        found = found.parent
    if not found.is_dir():
        return f"{found} is a file, so {place} cannot be a folder; choose another STORE"
    if not os.access(found, os.W_OK | os.X_OK):
        return f"{found}: no permission to write there, where {place} is to be; choose another STORE"
    return None


def _absolute(weights: str) -> str:
    """Name weights that are a path so that another process finds them too."""
    path = Path(weights).expanduser()
    return str(path.absolute()) if path.exists() else weights
