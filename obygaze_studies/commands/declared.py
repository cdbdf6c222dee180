"""Make click's parameters of the options that audits.toml and tasks.toml declare."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from obygaze_features.options import LOCAL, PATH, site
from obygaze_models.commands import complete_task
from obygaze_studies.audits import Option

FILE = click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True)

Declare = Callable[[Any], Any]


def share(text: str) -> float:
    """Parse a factor, as a number or a fraction such as 1/4."""
    try:
        return float(Fraction(text))
    except ZeroDivisionError:
        raise ValueError(text) from None  # which click words


def numbers(text: str) -> list[float]:
    """Parse numbers joined by commas."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"numbers joined by commas are expected, not {text!r}") from None


def picture_file(_: click.Context, __: click.Parameter, value: Path | None) -> Path | None:
    """Refuse figure formats other than .pdf, .png and .svg."""
    if value is not None and value.suffix.lower() not in {".pdf", ".png", ".svg"}:
        raise click.BadParameter(f"'{value}' should end in .pdf, .png or .svg")
    return value


def parameter(option: Option, *, required: bool | None = None, to: str = "") -> Declare:
    """Make the parameter of an option; `required` in place of what is declared, `to` its name in Python."""
    several = {"metavar": option.metavar} if option.metavar else {}
    if option.argument:
        kind = None if option.type == "text" else PATH
        several |= {"nargs": -1, "required": option.required is not False} if option.multiple else {}  # type: ignore[dict-item]
        return click.argument(option.key, type=kind, **several)  # type: ignore[arg-type]
    low = option.least if option.above is None else option.above
    kinds: dict[str, Any] = {
        "flag": {"is_flag": True},
        "int": {"type": click.IntRange(option.least, option.most)},  # type: ignore[arg-type]
        "float": {"type": click.FloatRange(low, option.most, min_open=option.above is not None)},
        "pair": {"nargs": 2},
        "span": {"nargs": 2, "type": float},
        "path": {"type": PATH},
        "local": {"type": LOCAL},
        "share": {"type": share},
        "numbers": {"type": numbers},
        "task": {"shell_complete": complete_task},
        "picture": {"type": PATH, "callback": picture_file},
    }
    how = kinds.get(option.type, {}) | several | (site(option.site) if option.site else {})
    if option.choices:
        how["type"] = click.Choice(option.choices)
    elif option.read and not option.type:
        how["type"] = PATH if option.folder or option.read == "store" else FILE
    if option.default is not None:
        how |= {"default": option.default, "show_default": not option.quiet}
    how |= {"multiple": True} if option.multiple else {}
    needed = option.needed if required is None else required
    return click.option(f"--{option.name}", *filter(None, [to]), required=needed, help=option.help, **how)
