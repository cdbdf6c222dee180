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
    """Read a text in the folder of a package.

    Parameters
    ----------
    package
        Whose `__package__` it lies beside.
    names
        Folders below, if there are any, and the name of the file.
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
    """Fill in a template of a package; each value is put in as `written` writes it.

    Its filter `table` lays out rows as `screen.table` does; it may include others of the package.
    """
    texts = _environment(package, written, tuple((filters or {}).items()))
    return texts.get_template(name).render(values)


@lru_cache  # to compile a template takes longer than to fill it in
def _environment(
    package: str, written: Callable[[Any], object], filters: tuple[tuple[str, Callable[..., object]], ...]
) -> "Environment":
    """Make what loads and compiles the templates of a package."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # noqa: PLC0415 - what reads files needs no templates

    texts = Environment(  # noqa: S701 - no HTML: what else a format escapes is escaped by `written`
        finalize=written,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        extensions=["jinja2.ext.do"],
        loader=FunctionLoader(partial(packaged_text, package)),
    )
    texts.filters |= {"table": table, **dict(filters)}
    return texts


def sentences(
    package: str, name: str, filters: Mapping[str, Callable[..., object]] | None = None, **values: object
) -> tuple[str, ...]:
    """Fill in a template with a sentence a line, of which some may be empty; no value makes two of one."""
    return tuple(filter(None, filled(package, name, values, _in_line, filters).split("\n")))


def _in_line(value: object) -> object:
    """Escape line breaks and control characters in a text; other values stay as they are."""
    return visible(value, lines=False) if isinstance(value, str) else value
