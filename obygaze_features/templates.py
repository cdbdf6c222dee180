"""Read the files that come with a package, and fill in templates of what people and other tools read."""

import tomllib
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Any

from obygaze_features.screen import table

if TYPE_CHECKING:
    from jinja2 import Environment

from obygaze_features.text import visible


def packaged_text(package: str, *names: str) -> str:
    """Read a text file that is part of a package.

    Parameters
    ----------
    package
        Name of the package, such as the `__package__` of the caller.
    names
        Path of the file in the package's folder: names of folders, if any, and of the file.
    """
    return resources.files(package).joinpath(*names).read_text(encoding="utf-8")


def packaged(package: str, name: str) -> dict[str, Any]:
    """Read a TOML file in the folder of a package."""
    return tomllib.loads(packaged_text(package, name))


def filled(
    package: str,
    name: str,
    values: Mapping[str, object],
    written: Callable[[Any], object] = lambda value: value,
    filters: Mapping[str, Callable[..., object]] | None = None,
) -> str:
    """Render a Jinja template that is part of a package.

    Parameters
    ----------
    package, name
        The package, and the file name of the template.
    values
        Names and values of the template's variables.
    written
        Called with each value that is inserted; returns how it is written, such as with escaped signs. By
        default values are inserted as they are.
    filters
        Further filters, besides `table`, which is `screen.table`.
    """
    named_filters = tuple((filters or {}).items())  # arguments of a cached function must be hashable
    environment = _environment(package, written, named_filters)
    return environment.get_template(name).render(values)


@lru_cache  # to compile a template takes longer than to fill it in
def _environment(
    package: str,
    written: Callable[[Any], object],
    named_filters: tuple[tuple[str, Callable[..., object]], ...],
) -> "Environment":
    """Make the Jinja environment that loads and compiles the templates of a package.

    Nothing is escaped by Jinja itself, which knows HTML only: `written` escapes what the format needs.

    Parameters
    ----------
    package
        The package.
    written
        Called with each value that is inserted; returns how it is written.
    named_filters
        Name and function of each further filter.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # noqa: PLC0415 - what reads files needs no templates

    environment = Environment(  # noqa: S701 - see above
        finalize=written,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        extensions=["jinja2.ext.do"],
        loader=FunctionLoader(partial(packaged_text, package)),
    )
    environment.filters["table"] = table
    environment.filters |= dict(named_filters)
    return environment


def sentences(
    package: str, name: str, filters: Mapping[str, Callable[..., object]] | None = None, **values: object
) -> tuple[str, ...]:
    """Render a template that has one sentence in each line; return the lines that are not empty.

    Line breaks in values are escaped, so that a value cannot divide a sentence.

    Parameters
    ----------
    package, name
        The package, and the file name of the template.
    filters
        Further filters of the template, by name.
    values
        The template's variables.
    """
    text = filled(package, name, values, _in_line, filters)
    return tuple(line for line in text.split("\n") if line)


def _in_line(value: object) -> object:
    """Escape line breaks and control characters in a text; other values stay as they are."""
    return visible(value, line_breaks=False) if isinstance(value, str) else value
