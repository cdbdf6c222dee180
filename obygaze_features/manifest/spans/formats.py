"""Tell which format of others a file is of, by the table of formats, and what to do where it is not read.

Formats that are read are told by their kinds (kinds.toml). The table of the others (formats.toml) has one
entry for each: its name, its tool, the marks that tell it, and the way out by the tool's own menu.
"""

import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice
from json import JSONDecodeError
from typing import Any, Final

from obygaze_features.errors import ManifestError
from obygaze_features.file_kinds import XML_PROLOGUE
from obygaze_features.manifest.spans.json_values import json_of
from obygaze_features.manifest.spans.span_file import KINDS, SpanFile
from obygaze_features.templates import packaged

MAX_LINES: Final = 40
"""How many of the first lines that are not empty tell a format of lines."""

MAX_ITEMS: Final = 8
"""How many items of a list, or names of an object, are looked into along a path of JSON."""

MAX_MEMBERS: Final = 1000
"""How many names of a zip archive are looked at."""

GZIP: Final = b"\x1f\x8b"
"""How a file that is compressed with gzip begins. Source: RFC 1952, 2.3.1."""

UNPACKED_BYTES: Final = 4096
"""How much of such a file is unpacked to look for its root."""

SHOWN_FORMATS: Final = 3
"""How many of the nearest formats are named where a file is of none."""

_WORD: Final = re.compile(r"[A-Za-z_]{3,30}")
_STEP: Final = re.compile(r"([^\[\]]*+)((?:\[\])*+)")
"""A step of a path of JSON: a name, or `*` for any, and `[]` for each list that stands there."""


@dataclass(frozen=True)
class Format:
    """A format that people annotate in: an entry of kinds.toml or formats.toml.

    Attributes
    ----------
    name, tool
        What it is called, and by what it is written.
    kind
        The kind of files as which it is read (kinds.toml); "" if it is not read.
    way_out
        What to do with a file that is not read, by the tool's own menu.
    source
        Where the format and the way out are documented.
    marks
        Name of a mark -> what it looks for, as formats.toml describes them. All of them must be there. Empty
        if the format is read.
    """

    name: str
    tool: str
    kind: str
    way_out: str
    source: str
    marks: Mapping[str, Any]

    @property
    def refusal(self) -> str:
        """The message for a file of this format, if the format is not read."""
        return f"{self.name} ({self.tool}): {self.way_out}"

    def tells(self, file: SpanFile) -> bool:
        """Return whether a file is of this format: it has all of its marks.

        A format that is read has no marks here, as its kind tells it: then the result is False.
        """
        if not self.marks:
            return False
        return all(MARKS[mark](file, wanted) for mark, wanted in self.marks.items())

    def likeness(self, words: frozenset[str]) -> float:
        """Return how much a text resembles this format: the largest share of a mark's words that it has.

        The words of a mark are those in its patterns. The marks `paths` and `columns` are several lists of
        patterns, of which a file needs only one, so that each list counts as a mark of its own.

        Parameters
        ----------
        words
            The words of the text, in lower case.

        Examples
        --------
        A file of one format begins with two words; that of another has a path of two words, or one of a
        single word. The text has one word of the first, and the single one.

        >>> words = frozenset({"annotations", "frame"})
        >>> Format("", "", "", "", "", {"begins": ["annotations version"]}).likeness(words)
        0.5
        >>> Format("", "", "", "", "", {"paths": [["tracks.frame"], ["annotations"]]}).likeness(words)
        1.0
        >>> Format("", "", "", "", "", {"lacks": ["annotations"]}).likeness(words)
        0.0
        """
        shares = [0.0]
        for mark, wanted in self.marks.items():
            if mark == "lacks":  # words that a text of the format does not have
                continue
            lists_of_patterns = wanted if mark in {"paths", "columns"} else [wanted]
            for patterns in lists_of_patterns:
                words_of_mark = frozenset(_words_in(patterns))
                if words_of_mark:
                    shares.append(len(words_of_mark & words) / len(words_of_mark))
        return max(shares)


def _read_format(kind: str, facts: Mapping[str, Any]) -> Format:
    """Make the format of a kind of files that is read, from the kind's entry in kinds.toml."""
    return Format(facts["name"], facts["tool"], kind, way_out="", source=facts["source"], marks={})


def _unread_format(facts: Mapping[str, Any]) -> Format:
    """Make a format that we know and do not read, given its entry in formats.toml.

    Its marks are what tells a file of it, so that a refusal can name the tool and the way out.
    """
    marks = {mark: facts[mark] for mark in MARKS if mark in facts}
    kind = ""  # formats that are read have one
    return Format(facts["name"], facts["tool"], kind, facts["way_out"], facts["source"], marks)


def _words_in(values: object) -> Iterator[str]:
    """Yield the words of a text, or of texts in nested lists, in lower case."""
    if isinstance(values, str):
        for word in _WORD.findall(values):
            yield word.casefold()
    else:
        for value in values:  # type: ignore[attr-defined]
            yield from _words_in(value)


# --- marks
# ---------------------------------------------------------------------------
@cache
def root_pattern(name: str) -> re.Pattern[str]:
    """Return a pattern for the beginning of XML whose root element has this name, with any prefix.

    With the name `tt` it matches `<?xml version="1.0"?><!DOCTYPE tt><x:tt` in front of a blank, `/` or `>`.
    """
    # The quantifiers `*+`, `++` and `?+` give nothing back, so that the time stays linear.
    byte_order_mark = r"\A[\ufeff\s]*+"
    declarations = r"\[[^\]]*+\]\s*+"  # of a doctype, in square brackets
    doctype = rf"<!DOCTYPE\b[^>\[]*+(?:{declarations})?+>\s*+"
    prefix = r"[\w.-]++:"
    root = rf"<(?:{prefix})?(?:{name})(?=[\s/>])"
    # Comments and processing instructions (`XML_PROLOGUE`) may stand before the doctype and behind it.
    return re.compile(f"{byte_order_mark}{XML_PROLOGUE}(?:{doctype})?+{XML_PROLOGUE}{root}")


@cache
def beginning_pattern(pattern: str) -> re.Pattern[str]:
    """Return a pattern for a text that begins with `pattern`, after any blanks."""
    return re.compile(rf"\A\s*+(?:{pattern})", re.IGNORECASE)


@cache
def anywhere_pattern(pattern: str) -> re.Pattern[str]:
    """Return a pattern that is searched anywhere in a text; its `^` is the beginning of a line."""
    return re.compile(pattern, re.MULTILINE)


def _has_root(file: SpanFile, name: str) -> bool:
    """Return whether a file is XML whose root element has a name, also if it is compressed with gzip."""
    head = _unpacked_head(file) if file.content.startswith(GZIP) else file.head
    return root_pattern(name).match(head) is not None


def _unpacked_head(file: SpanFile) -> str:
    """Return the first characters of a text that is compressed with gzip, as Premiere Pro saves projects.

    It is "" if the file is damaged.
    """
    try:
        head = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(file.content, UNPACKED_BYTES)
    except zlib.error:
        return ""
    return head.decode(errors="replace")


def _begins(file: SpanFile, pattern: str) -> bool:
    """Return whether the text of a file begins with a pattern."""
    return beginning_pattern(pattern).match(file.head) is not None


def _has_within(file: SpanFile, pattern: str) -> bool:
    """Return whether a pattern is found anywhere in the first characters of a file."""
    return anywhere_pattern(pattern).search(file.head) is not None


def _has_lines(file: SpanFile, pattern: str) -> bool:
    """Return whether all of the first non-empty lines of a file match a pattern as a whole."""
    lines = first_lines(file)
    return bool(lines) and all(re.fullmatch(pattern, line) for line in lines)


def first_lines(file: SpanFile) -> list[str]:
    """Return the first non-empty lines of a file, without outer blanks; none of a workbook."""
    if file.sheet is not None:
        return []
    texts = (line.strip() for line in file.head.split("\n"))
    return list(islice(filter(None, texts), MAX_LINES))


def _has_columns(file: SpanFile, headers: Sequence[Sequence[str]]) -> bool:
    """Return whether one of the first rows of a file has all names of one of several headers."""
    return any(file.has_columns(names) for names in headers)


def _has_cell(file: SpanFile, pattern: str) -> bool:
    """Return whether a cell in the first row of a file matches a pattern; False if the file has no rows."""
    if not file.first_names:
        return False
    first_row = file.first_names[0]
    return any(re.fullmatch(pattern, cell, re.IGNORECASE) for cell in first_row)


def has_paths(file: SpanFile, alternatives: Sequence[Sequence[str]]) -> bool:
    """Return whether a file is JSON in which all paths of at least one list exist.

    Examples
    --------
    >>> from pathlib import Path
    >>> from obygaze_features.manifest.spans.span_file import SpanFile
    >>> _ = Path("a.json").write_text('{"items": [{"start": 1}]}')
    >>> has_paths(SpanFile(Path("a.json")), [["items[].start"]])
    True
    """
    value = json_value(file)
    if value is None:
        return False
    for paths in alternatives:
        has_all_paths = all(_has_path(value, path.split(".")) for path in paths)
        if has_all_paths:
            return True
    return False


def _lacks_paths(file: SpanFile, paths: Sequence[str]) -> bool:
    """Return whether a file is JSON that holds none of some paths."""
    return not any(has_paths(file, [[path]]) for path in paths)


def json_value(file: SpanFile) -> Any:
    """Return the JSON value of a file, else of its first non-empty line; None if neither is JSON."""
    if file.sheet is not None or not file.head.lstrip().startswith(("{", "[")):
        return None
    with suppress(ManifestError):
        return file.document
    lines = first_lines(file)
    try:
        return json_of(lines[0]) if lines else None
    except (JSONDecodeError, ValueError, RecursionError):
        return None


def _has_path(value: Any, steps: Sequence[str]) -> bool:
    """Return whether a path exists in a JSON value.

    Parameters
    ----------
    value
        The value.
    steps
        The steps of the path. Each is a name, or `*` for any name, and `[]` for each list in which the next
        step is looked for: `items[]` for the items of the list `items`.

    Examples
    --------
    >>> _has_path({"items": [{"id": 1}, {"name": "a"}]}, ["items[]", "name"])
    True
    """
    if not steps:
        return True
    first_step, *further_steps = steps
    return any(_has_path(inner, further_steps) for inner in _values_at(value, first_step))


def _values_at(value: Any, step: str) -> list[Any]:
    """Return the values to which a step of a path leads from a JSON value; empty if it leads nowhere.

    A step has one of these forms:

    - `items`: the member of that name;
    - `*`: all members, whatever their names;
    - `items[]`: the items of the list that is the member; `items[][]` those of the lists in it;
    - `[]`: the items of the value itself, if it is a list.

    Of many values only the first few are returned, as they are enough to tell a format.

    Examples
    --------
    >>> _values_at({"items": [1, 2]}, "items[]"), _values_at([1, 2], "[]"), _values_at({}, "items[]")
    ([1, 2], [1, 2], [])
    """
    match = _STEP.fullmatch(step)
    assert match is not None  # noqa: S101 - any text is a name with or without brackets
    name, brackets = match.groups()
    n_lists = brackets.count("[]")

    members = value if isinstance(value, dict) else {}
    if name == "*":
        values = list(islice(members.values(), MAX_ITEMS))
    elif name:
        values = [members[name]] if name in members else []
    else:  # nothing but brackets
        values = [value]

    for _ in range(n_lists):
        items: list[Any] = []
        for inner_value in values:
            if isinstance(inner_value, list):
                items += inner_value[:MAX_ITEMS]
        values = items
    return values


def _has_member(file: SpanFile, pattern: str) -> bool:
    """Return whether a file is a zip archive with a member of a name that a pattern describes."""
    return any(re.fullmatch(pattern, name) for name in member_names(file))


def member_names(file: SpanFile) -> list[str]:
    """Return the names of the first members of a zip archive; an empty list if a file is no archive."""
    if not file.content.startswith(b"PK\x03\x04"):
        return []
    try:
        with zipfile.ZipFile(io.BytesIO(file.content)) as archive:
            return [member.filename for member in archive.infolist()[:MAX_MEMBERS]]
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        return []


def _begins_with_bytes(file: SpanFile, pattern: str) -> bool:
    """Return whether the bytes of a file begin with a pattern, of which each character stands for a byte."""
    first_bytes = file.content[:1024]
    return re.match(pattern.encode("latin-1"), first_bytes, re.DOTALL) is not None


MARKS: Final = {
    "bytes": _begins_with_bytes,
    "members": _has_member,
    "root": _has_root,
    "begins": _begins,
    "within": _has_within,
    "lines": _has_lines,
    "columns": _has_columns,
    "cells": _has_cell,
    "paths": has_paths,
    "lacks": _lacks_paths,
}
"""Name of a mark -> whether a file has it. Marks that are found out fastest stand first."""

_UNREAD: Final = packaged(__package__, "formats.toml")["formats"]
FORMATS: Final[Sequence[Format]] = [
    *(_read_format(kind, facts) for kind, facts in sorted(KINDS.items())),
    *(_unread_format(facts) for facts in _UNREAD),
]
"""All formats that are known, first those that are read, by their kinds."""


# --- what a file is
# ---------------------------------------------------------------------------
def unread_format_of(file: SpanFile) -> Format | None:
    """Return the format of a file if it is one that is known and not read; else None."""
    for known in FORMATS:
        is_read = known.kind != ""  # the kind of files as which it is read
        if not is_read and known.tells(file):
            return known
    return None


def nearest_formats(file: SpanFile) -> list[Format]:
    """Return the formats that a file of no known format is most like, the nearest first.

    Formats of the file's syntax (XML, JSON, a table, lines) come before others. They are ranked by the share
    of the words of their marks that are in the file (`Format.likeness`).
    """
    words = frozenset(_words_in(file.head))
    marks_of_syntax = _marks_of_syntax(file)

    def nearness(known: Format) -> tuple[bool, float]:
        """Return by what formats are ranked: the syntax first, then the words."""
        has_same_syntax = bool(known.marks.keys() & marks_of_syntax)
        return has_same_syntax, known.likeness(words)

    compared = [known for known in FORMATS if known.marks]
    ranked = sorted(compared, key=nearness, reverse=True)  # equal ones stay in the order of the table
    return ranked[:SHOWN_FORMATS]


def _marks_of_syntax(file: SpanFile) -> frozenset[str]:
    """Return the marks (`MARKS`) by which formats with the syntax of a file are known: `root` for XML."""
    beginning = file.head.lstrip()
    if beginning.startswith("<"):
        return frozenset({"root"})
    if beginning.startswith(("{", "[")):
        return frozenset({"paths"})
    if any(len(row) > 1 for row in file.first_rows):
        return frozenset({"columns", "cells"})
    return frozenset({"lines", "begins"})
