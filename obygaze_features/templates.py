"""Read the files that come with a package, and fill in templates of what people and other tools read."""

import tomllib
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Any, ClassVar

from obygaze_features.screen import table

if TYPE_CHECKING:
    from jinja2 import BytecodeCache

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
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # noqa: PLC0415 - what reads files needs no templates

    texts = Environment(  # noqa: S701 - no HTML: what else a format escapes is escaped by `written`
        finalize=written,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        extensions=["jinja2.ext.do"],
        loader=FunctionLoader(partial(packaged_text, package)),
        bytecode_cache=_compiled(),
    )
    texts.filters |= {"table": table, **(filters or {})}
    return texts.get_template(name).render(values)


@cache
def _compiled() -> "BytecodeCache":
    """Keep what templates compile to, which takes longer than all the rest."""
    from jinja2 import BytecodeCache  # noqa: PLC0415 - as above

    class Kept(BytecodeCache):
        codes: ClassVar[dict[tuple[str, str], Any]] = {}

        def load_bytecode(self, bucket: Any) -> None:
            bucket.code = self.codes.get((bucket.key, bucket.checksum))

        def dump_bytecode(self, bucket: Any) -> None:
            self.codes[bucket.key, bucket.checksum] = bucket.code

    return Kept()


def sentences(
    package: str, name: str, filters: Mapping[str, Callable[..., object]] | None = None, **values: object
) -> tuple[str, ...]:
    """Fill in a template with a sentence a line, of which some may be empty; no value makes two of one."""

    def in_line(value: object) -> object:
        return visible(value, lines=False) if isinstance(value, str) else value

    return tuple(filter(None, filled(package, name, values, in_line, filters).split("\n")))
