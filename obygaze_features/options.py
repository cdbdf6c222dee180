"""Types of arguments and options; commands with groups of options; print what commands return."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from obygaze_features.errors import OutputError
from obygaze_features.io import local_path
from obygaze_features.text import composed, is_address
from obygaze_features.untrusted import STANDARD

PROBLEMS_FOUND = 3
"""Exit status of a command that checks, and found something."""


class LocalPath(click.Path):
    """Parameter type of local paths; refuses URLs, which would otherwise be read as folder names."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse URLs; otherwise convert as `click.Path`."""
        if is_address(value):
            self.fail(
                f"{value} is a URL, and this needs a path on this machine; "
                "obygaze store pull brings a store here, obygaze store push sends one there",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


class NewFile(LocalPath):
    """Parameter type of files to write, whose folder must be there."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse what has no folder; otherwise convert as `LocalPath`."""
        path = Path(super().convert(value, param, ctx))
        if not local_path(path).absolute().parent.is_dir():
            self.fail(f"{path.parent}: no such folder to write {path.name} in", param, ctx)
        return path


class Name(click.types.StringParamType):
    """Parameter type of names, which are in form NFC wherever they are kept."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Write accents as names have them, whatever a terminal makes of them."""
        return composed(super().convert(value, param, ctx))


class Number(click.FloatRange):
    """Parameter type of numbers in a range; refuses nan and infinities, which lie in any range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse what is not finite; otherwise convert as `click.FloatRange`."""
        number = super().convert(value, param, ctx)
        if not isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


PATH = click.Path(path_type=Path)  # the reader reports a missing file in one line
FILE = NewFile(dir_okay=False, path_type=Path)
LOCAL = LocalPath(path_type=Path, readable=False)
EXISTING = click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True)


def completed(
    names: Callable[[click.Context], Iterable[str]], *, files: bool = False
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Make a function for `shell_complete` of an argument or option.

    Parameters
    ----------
    names
        Returns the names that may be completed, given the context.
    files
        Whether names of files are completed, too.
    """

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the completions of an incomplete word."""
        completions = [CompletionItem(name) for name in names(ctx) if name.startswith(incomplete)]
        if files:
            # The shell itself completes an item of this type to names of files.
            return [CompletionItem(incomplete, type="file"), *completions]
        return completions

    return complete


class GroupedCommand(click.Command):
    """A command whose help lists its options in groups, if there are any.

    Parameters
    ----------
    groups
        Title -> names of options without their hyphens, blanks between them; others follow at the end.
    """

    def __init__(self, *arguments: Any, groups: Mapping[str, str], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.groups = groups

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse the name of an option as the value of the option before it, whose value was forgotten."""
        takes_value = {}  # name of an option, as --out -> whether a value follows it
        for option in self.params:
            if isinstance(option, click.Option):
                for name in option.opts:
                    takes_value[name] = not option.is_flag and not option.count
        for name, value in pairwise(args):
            is_other_option = value in takes_value
            if takes_value.get(name) and is_other_option:
                raise click.BadOptionUsage(name, f"Option '{name}' requires an argument, not {value}.", ctx)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in the help text, in a section for each group of `groups`."""
        # Name of an option without hyphens -> its line in the help. Lines that are put into a section are
        # taken out, so that those of no group are left.
        line_of_option = {}
        for parameter in self.get_params(ctx):
            line = parameter.get_help_record(ctx)
            if isinstance(parameter, click.Option) and line is not None:
                line_of_option[parameter.opts[0].lstrip("-")] = line

        sections = {}
        for title, names in self.groups.items():
            sections[title] = [line_of_option.pop(name) for name in names.split()]
        title_of_others = "Other options" if self.groups else "Options"
        sections[title_of_others] = list(line_of_option.values())

        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


# --- what a command prints and writes
# ---------------------------------------------------------------------------
@dataclass(frozen=True)
class Output:
    """What a command's options of output were given; without one, as if it were not.

    Attributes
    ----------
    out, html
        Files or folders to write; None if not asked for.
    force
        Whether they may be replaced.
    json
        Whether to print a JSON document, in place of text.
    """

    out: Path | None = None
    html: Path | None = None
    force: bool = False
    json: bool = False

    @property
    def path(self) -> Path:
        """Return `out` of a command that requires it."""
        if self.out is None:
            raise click.UsageError("Missing option '--out'.")
        return self.out


def _refuse_unsafe_outputs(ctx: click.Context) -> None:
    """Raise an OutputError if a command would write over one of its inputs, or into a sealed store.

    This is checked before the command does any work.
    """
    names_of_outputs = {parameter.name for parameter in ctx.command.params if _is_written(parameter)}
    outputs = [Path(ctx.params[name]) for name in names_of_outputs if name and ctx.params[name]]
    other_values = [value for name, value in ctx.params.items() if name not in names_of_outputs]
    possible_inputs = _possible_files(other_values)
    for out in outputs:
        # Only files: an option such as --title may have the name of the output folder as its text.
        if out.is_file() and any(_is_same_file(out, name) for name in possible_inputs):
            raise OutputError(f"{out} is an input too: give another name for what is written")
        if out != STANDARD and _is_in_sealed_store(out.resolve()):
            raise OutputError(f"{out.resolve()}: inside a sealed store, which never changes; write elsewhere")


def _is_written(parameter: click.Parameter) -> bool:
    """Return whether a parameter names what a command writes."""
    return isinstance(parameter.type, NewFile) or parameter.name in {"out", "html"}


def _possible_files(values: Iterable[object]) -> set[str]:
    """Return all texts in the values of a command's parameters that may name a file that it reads.

    A value may hold several texts: `clip=onnx:a.onnx` gives `clip`, `onnx`, `a.onnx` and the whole. An ONNX
    network is read with its description, a .toml of the same name, here `a.toml`.
    """
    names = set()
    for value in values:
        items = value if isinstance(value, tuple) else (value,)  # a repeatable option is a tuple
        for item in items:
            names.add(str(item))
            names.update(re.split("[:=]", str(item)))
    networks = [name.removesuffix(".onnx") for name in names if name.endswith(".onnx")]
    names.update(f"{network}.toml" for network in networks)
    return names - {""}


def _is_same_file(out: Path, name: str) -> bool:
    """Return whether a text names the same existing file as `out`."""
    try:
        return out.samefile(name)
    except OSError:
        return False


def _is_in_sealed_store(path: Path) -> bool:
    """Return whether a path is a sealed store or in one; such a folder has a `bagit.txt`."""
    return any((folder / "bagit.txt").is_file() for folder in (path, *path.parents))


@dataclass(frozen=True)
class Answer:
    """What a command did or found, if that is no report.

    Attributes
    ----------
    document, text
        For programs, and for people, perhaps laid out on demand; None and "" if nothing is to be said.
    remarks
        What is printed beside, on stderr.
    code
        Exit status: `PROBLEMS_FOUND` if a check found something.
    """

    document: object
    text: str | Callable[[], str] = ""
    remarks: Sequence[str] = ()
    code: int = 0


def answers(command: Callable[..., Answer | None]) -> Callable[..., None]:
    """Decorate a command that returns an `Answer`, so that the answer is printed.

    Its text is printed, or with --json its document. Remarks go to stderr.
    """
    takes_json = "json" in signature(command).parameters

    @wraps(command)
    def run(**options: Any) -> None:
        """Run the command, print its answer and remarks, and end with its exit status."""
        context = click.get_current_context()
        _refuse_unsafe_outputs(context)
        as_json = bool(options.get("json"))
        if not takes_json:
            options.pop("json", None)

        answer = command(**options)
        if answer is None:
            return

        if answer.document is not None or answer.text:
            # If the results of the command go to stdout (`--out -`), its answer goes to stderr.
            results_are_on_stdout = context.params.get("out") == STANDARD
            click.echo(_format_answer(answer, as_json=as_json), err=results_are_on_stdout)
        for remark in answer.remarks:
            click.echo(remark, err=True)
        context.exit(answer.code)

    return run


def _format_answer(answer: Answer, *, as_json: bool) -> str:
    """Return the answer of a command as JSON, or as text for people."""
    if as_json:
        return json.dumps(answer.document, indent=2, ensure_ascii=False, allow_nan=False)
    return answer.text() if callable(answer.text) else answer.text
