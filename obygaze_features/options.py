"""Share options and parameter types of click between the commands of all packages."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar, cast

import click
from click.shell_completion import CompletionItem

from obygaze_features.door import STANDARD
from obygaze_features.io import refuse_existing

PROBLEMS_FOUND = 3
"""Exit status of a command that checks, and found something."""

Result = tuple[object, str] | tuple[object, str, bool]
"""What a command prints, as a JSON document and as text, and whether a check found something."""
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


class Number(click.FloatRange):
    """Parameter type of numbers in a range; refuses nan and infinities, which lie in any range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse what is not finite; otherwise convert as `click.FloatRange`."""
        if not isfinite(number := super().convert(value, param, ctx)):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


PATH = click.Path(path_type=Path)  # the reader reports a missing file in one line
FILE = click.Path(dir_okay=False, path_type=Path)
LOCAL = LocalPath(path_type=Path, readable=False)

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def site(name: str) -> dict[str, Any]:
    """Return settings of an option that a site sets once, in the environment: docs/command-line.md."""
    return {"envvar": f"OBYGAZE_{name}", "show_envvar": True}


html_option = click.option(
    "--html",
    type=FILE,
    help="Also write the results as a page: one HTML file that loads nothing from elsewhere.",
)


def completed(
    names: Callable[[click.Context], Iterable[str]], *, files: bool = False
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Make the `shell_complete` of an argument or option: these names; with `files`, those of files too."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found = [CompletionItem(name) for name in names(ctx) if name.startswith(incomplete)]
        return [*([CompletionItem(incomplete, type="file")] * files), *found]

    return complete


class GroupedCommand(click.Command):
    """A command whose help lists its options in groups.

    Parameters
    ----------
    groups
        Title -> names of options without their hyphens, blanks between them; others follow at the end.
    """

    def __init__(self, *arguments: Any, groups: Mapping[str, str], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.groups = groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each group."""
        records = {
            parameter.opts[0].lstrip("-"): record
            for parameter in self.get_params(ctx)
            if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx))
        }
        sections = {
            title: [records.pop(name) for name in names.split()] for title, names in self.groups.items()
        }
        for title, rows in (sections | {"Other options": list(records.values())}).items():
            with formatter.section(title):
                formatter.write_dl(rows)


def join_options(*parts: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Join arguments and options of click, in the order of the help text."""

    def apply(command: Command) -> Command:
        for part in reversed(parts):
            command = part(command)
        return command

    return apply


@dataclass(frozen=True)
class Output:
    """What the options of `output` were given.

    Attributes
    ----------
    out, html
        Files or folders to write; None if not asked for.
    force
        Whether they may be replaced.
    as_json
        Whether to print a JSON document, in place of text.
    """

    out: Path | None = None
    html: Path | None = None
    force: bool = False
    as_json: bool = False

    @property
    def path(self) -> Path:
        """Return `out` of a command that requires it."""
        if self.out is None:
            raise click.UsageError("Missing option '--out'.")
        return self.out

    def refuse_existing(self, *more: Path | None) -> None:
        """Refuse to replace what is there, before any work is done."""
        refuse_existing(self.out, self.html, *more, force=self.force)

    def show(self, document: object, text: Callable[[], str]) -> None:
        """Print the document or the text."""
        show(document, text, as_json=self.as_json)


def show(document: object, text: Callable[[], str], *, as_json: bool) -> None:
    """Print a JSON document, or a text; on stderr if stdout gets the file of --out."""
    shown = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) if as_json else text()
    click.echo(shown, err=click.get_current_context().params.get("out") == STANDARD)


def prints_result(command: Callable[..., Result]) -> Callable[..., None]:
    """Add `--json` to a command that returns its result, print that, and exit with `PROBLEMS_FOUND` if so."""

    @wraps(command)
    def printed(*arguments: object, as_json: bool, **given: object) -> None:
        document, text, *found = command(*arguments, **given)
        show(document, lambda: text, as_json=as_json)
        if any(found):
            click.get_current_context().exit(PROBLEMS_FOUND)

    return json_option(printed)


def output(
    out: str = "",
    *,
    kind: click.Path = PATH,
    required: bool = False,
    force: str = "Replace earlier output.",
    html: bool = False,
    json: bool | str = False,
) -> Callable[[Command], Command]:
    """Add the options of a command's output; the command gets them as one `output`.

    Parameters
    ----------
    out, force
        Help of `--out` and `--force`; without a help there is no such option.
    kind, required
        Of `--out`.
    html, json
        Whether there are `--html` and `--json`; the help of the latter.
    """
    options = [
        click.option("--out", type=kind, required=required, help=out) if out else None,
        html_option if html else None,
        click.option("--force", is_flag=True, help=force) if force else None,
        click.option("--json", "as_json", is_flag=True, help=json) if isinstance(json, str) else None,
        json_option if json is True else None,
    ]

    names = ("out", "html", "force", *(["as_json"] if json else []))

    def decorate(command: Command) -> Command:
        @wraps(command)
        def gathered(*arguments: object, **given: Any) -> object:
            own = {name: given.pop(name) for name in names if name in given}
            return command(*arguments, output=Output(**own), **given)

        return cast("Command", join_options(*filter(None, options))(gathered))

    return decorate
