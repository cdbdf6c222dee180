"""Fill in templates of files that people and other tools read."""

from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any


def filled(
    package: str,
    name: str,
    values: Mapping[str, object],
    written: Callable[[Any], object] = lambda value: value,
    filters: Mapping[str, Callable[..., object]] | None = None,
) -> str:
    """Fill in a template of a package; each value is put in as `written` writes it."""
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 - what reads files needs no templates

    texts = Environment(  # noqa: S701 - no HTML: what else a format escapes is escaped by `written`
        finalize=written,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    texts.filters.update(filters or {})
    template = resources.files(package).joinpath(name).read_text(encoding="utf-8")
    return texts.from_string(template).render(values)
