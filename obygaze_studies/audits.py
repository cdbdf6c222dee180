"""The table of audits: what each reads and how that is checked, its function, what is shown and said of it.

Ours are declared in audits.toml, and tasks and further commands in the same words in tasks.toml; a package of
another's adds an audit by an entry point of the group `obygaze.audits`, whose name is the audit's and which
loads an `Audit`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from inspect import unwrap
from typing import Any, Literal

import msgspec

from obygaze_features.options import Parameter, joined
from obygaze_features.templates import packaged

READERS = {
    "table": "obygaze_studies.audit_common.inputs:read_declared",
    "lines": "obygaze_studies.audit_common.inputs:read_lines",
    "store": "obygaze_studies.audit_common.embeddings:read_embeddings",
    "path": "pathlib:Path",
}
"""Readers that a declaration names in a word; others are named as module:function."""

Number = Literal["int", "float", "share", "numbers", "pair", "span"]
"""Types of a setting that are numbers, or two of something."""


def resolve(function: Callable[..., Any] | str) -> Callable[..., Any]:
    """Return a function, imported if it is named as module:function."""
    if callable(function):
        return function
    module, _, name = function.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


class Option(Parameter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An input or a setting of an audit.

    Attributes
    ----------
    read : str
        How an input is read: of `READERS`, or a function of its path; "" for a setting.
    columns, unique, numbers : sequence of str
        Of a table: columns that must be there and filled; those that name a row together; those that are
        numbers ("*" for all but the filled ones, where an empty cell is a missing number).
    type : str
        Of a setting.
    after, folder : bool
        Whether it must be there only where texts are not just listed; whether it may be a folder.
    """

    read: str = ""
    columns: Sequence[str] = ()
    unique: Sequence[str] = ()
    numbers: Sequence[str] = ()
    type: Literal[Number, "", "text", "flag", "path", "file", "local", "picture", "csv", "task"] = ""
    after: bool = False
    folder: bool = False

    @property
    def needed(self) -> bool:
        """Whether it must be given: an input, unless it says otherwise."""
        return bool(self.read) if self.required is None else self.required

    def value(self, given: Any) -> Any:
        """Read an input; return a setting as it is."""
        if not self.read or given is None:
            return given
        reader = resolve(READERS.get(self.read, self.read))
        if self.multiple:  # rows of several tables
            return tuple(row for path in given for row in reader(path))
        return reader(given, self) if self.read == "table" else reader(given)


@dataclass(frozen=True, kw_only=True)
class Audit:
    """An audit as declared.

    Attributes
    ----------
    title, summary, help : str
    examples, before, after : sequence of str
        Examples of the command after its name, and other commands that come first, or then.
    function, prepare, lists : callable or str
        What computes it, from what `prepare` makes of the options, and returns a `Finding`; what names the
        texts that need embeddings.
    table, columns : str, sequence of str
        Title and columns of the table that is shown.
    sentence, source, figure, out : str
        What is said of a `Finding`, where the audit comes from, captions of figure and file.
    output : {"beside", "folder", "printed", "manifest", "kept"}
        Whether results are files beside the CSV of --out, files of a folder, if asked for, an `Answer`, an
        imported manifest, or a `Work`, of a function that gets the command's last word before its options.
    required : bool
        Whether there must be --out.
    needs : mapping of str to sequence of str
        Option -> others that it needs, as NAME, NAME=VALUE or, for one of several, NAME|NAME.
    one_of : sequence of str
        Inputs of which exactly one is given.
    apart : sequence of sequences of str
        Options of which at most one is.
    draws : mapping of str to callable or str
        Option -> what draws more, from the report, the options, the pictures' manifest and the path.
    """

    name: str = ""
    title: str = ""
    summary: str
    help: str = ""
    examples: Sequence[str] = ()
    before: Sequence[str] = ()
    after: Sequence[str] = ()
    function: Any
    prepare: Any = dict
    lists: Any = None
    table: str = ""
    columns: Sequence[str] = ()
    sentence: str = ""
    source: str = ""
    figure: str = ""
    output: Literal["beside", "folder", "printed", "manifest", "kept"] = "beside"
    required: bool = False
    out: str = "CSV file of the results; JSON and Markdown go beside it."
    needs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    one_of: Sequence[str] = ()
    apart: Sequence[Sequence[str]] = ()
    draws: Mapping[str, Any] = field(default_factory=dict)
    commands: Sequence[str] = ()
    options: Sequence[Option] = ()

    def find(self, **given: Any) -> Any:
        """Compute the audit from what its options were read as; return the `Finding`."""
        return unwrap(resolve(self.function))(**resolve(self.prepare)(**given))


@cache
def tasks() -> Mapping[str, Audit]:
    """Return what is declared beside the audits, by the words of its command."""
    return _declared("tasks.toml")


def _declared(file: str) -> dict[str, Audit]:
    shared = packaged(__package__, "commands.toml")
    named = {name: {"name": name, **entry} for name, entry in packaged(__package__, file).items()}
    for entry in named.values():
        entry["options"] = joined(shared, entry["options"])
    return msgspec.convert(named, dict[str, Audit])
