"""Share options and parameter types of click between the commands of all packages."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

__all__ = ["LOCAL", "PATH", "Command", "html_option", "join_options", "json_option", "removed_option"]

Command = TypeVar("Command", bound=Callable[..., object])

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class LocalPath(click.Path):
    """Parameter type of local paths; refuses URLs, which would otherwise be read as folder names."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse URLs; otherwise convert as `click.Path`."""
        if _URL.match(str(value)):
            self.fail(
                f"{value} is a URL, and this needs a path on this machine; "
                "obygaze store pull brings a store here, obygaze store push sends one there",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


PATH = click.Path(path_type=Path)  # the reader reports a missing file in one line
LOCAL = LocalPath(path_type=Path, readable=False)

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")

html_option = click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the results as a page: one HTML file that loads nothing from elsewhere.",
)


def removed_option(name: str, remedy: str, *, value: bool = False) -> Callable[[Command], Command]:
    """Refuse an option that is gone, with what to do instead; `value` if it took one."""

    def refuse(_context: click.Context, _option: click.Parameter, given: object) -> None:
        if given:
            raise click.UsageError(f"{name} is gone: {remedy}")

    return click.option(name, is_flag=not value, hidden=True, expose_value=False, callback=refuse)


def join_options(*parts: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Join arguments and options of click, in the order of the help text."""

    def apply(command: Command) -> Command:
        for part in reversed(parts):
            command = part(command)
        return command

    return apply
