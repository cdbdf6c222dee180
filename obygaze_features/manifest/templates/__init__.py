"""Fill in templates of the files that other tools read."""

from collections.abc import Callable
from importlib import resources


def filled(name: str, escape: Callable[[object], str], **facts: object) -> str:
    """Fill in a template; every value is written as `escape` writes it."""
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 - reading manifests needs no templates

    texts = Environment(  # noqa: S701 - escaped here
        finalize=escape, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True, undefined=StrictUndefined,
    )  # fmt: skip
    template = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    return texts.from_string(template).render(facts)
