"""List the kinds of files that spans are read from, and tell a file's kind by its content."""

import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.file_kinds import XML_PROLOGUE, no_text
from obygaze_features.io import local_path
from obygaze_features.manifest.spans.account import Account
from obygaze_features.manifest.spans.elan_text import is_headless
from obygaze_features.manifest.spans.formats import MARKS, nearest_formats, unread_format_of
from obygaze_features.manifest.spans.read_in_sandbox import FileContent, read_in_sandbox
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.refi_qda import DAMAGED, is_damaged_archive
from obygaze_features.manifest.spans.span_file import KINDS, Reading, SpanFile
from obygaze_features.manifest.spans.subtitles import Subtitle
from obygaze_features.manifest.text_tables import without_gc
from obygaze_features.plugins import IMPORTERS, offered
from obygaze_features.sandbox import reader_process

Reader = Callable[[SpanFile], Iterable[RawSpan]]
"""Yields the records of a file, of those that are left out why."""


@dataclass(frozen=True)
class SpanSource:
    """A kind of file.

    Parameters
    ----------
    read
        Yields its records, of those that are left out why.
    is_of
        Whether a file is of this kind, by its first characters, or by the cells of its first rows.
    is_signed
        Whether each span needs an annotator.
    tier
        The name by which --tier means the records that name no tier.
    is_said
        Whether its texts are what a film says, or who speaks: no labels, unless --tier says so.
    leaves_texts
        Whether tiers of texts are left out; else each text is a span without labels.
    subtitles
        Suffixes of its files, such as ".srt", if they are subtitles of a film, for `read_subtitles`.
    is_of_one_film
        Whether a file is of one film, and called like it, as files of subtitles are.
    """

    read: Reader
    is_of: Callable[[SpanFile], bool]
    is_signed: bool = False
    tier: str = "label"
    is_said: bool = False
    leaves_texts: bool = False
    subtitles: tuple[str, ...] = ()
    is_of_one_film: bool = False


def _read_nothing(_: SpanFile) -> Iterable[RawSpan]:
    """Yield nothing: tables of people are read by their columns, in `importers`."""
    return ()


OTHER_MARKS: Final = ("members", "paths")
"""Marks that tell a kind, as they tell a format that is not read."""

TABLE: Final = "table"
TIMES: Final = ("start_s", "end_s")
"""Columns of times of a person's table."""

ELAN_TEXT: Final = "elan-text"
"""Without a header it is told by what its columns hold, as a person's table has times too."""


@dataclass(frozen=True)
class _KindTest:
    """Test whether a file is of a kind: it has one of the kind's marks, and the text that must be anywhere.

    Attributes
    ----------
    kind
        The kind.
    text_pattern
        A mark: pattern of the first characters.
    columns
        A mark: one of the first rows has all the names of one of these lists.
    cell_pattern
        A mark: pattern of a whole cell in the first rows.
    other_marks
        Marks of formats (`formats.MARKS`), and what each looks for.
    anywhere
        Pattern of ASCII text that the content must have besides; "" for none.
    """

    kind: str
    text_pattern: re.Pattern[str] | None
    columns: Sequence[Sequence[str]]
    cell_pattern: re.Pattern[str] | None
    other_marks: Mapping[str, Any]
    anywhere: str

    @classmethod
    def of(cls, kind: str, facts: Mapping[str, Any]) -> "_KindTest":
        """Make the test of a kind from its entry in `kinds.toml`."""
        return cls(
            kind,
            text_pattern=_pattern_of(facts, "holds"),
            columns=facts.get("columns", ()),
            cell_pattern=_pattern_of(facts, "cell"),
            other_marks={mark: facts[mark] for mark in OTHER_MARKS if mark in facts},
            anywhere=facts.get("anywhere", ""),
        )

    def __call__(self, file: SpanFile) -> bool:
        """Return whether a file is of the kind."""
        if not self._has_a_mark(file):
            return False
        return not self.anywhere or _has_anywhere(file, self.anywhere)

    def _has_a_mark(self, file: SpanFile) -> bool:
        """Return whether a file has at least one of the marks of the kind: something that only it has.

        The marks are in the kind's entry of `kinds.toml`. Two kinds have a mark besides that no entry can
        say: ELAN's text without a header, and a person's table with headings that the options name.
        """
        if self.kind == ELAN_TEXT and is_headless(file):
            return True
        if self.text_pattern is not None and self.text_pattern.search(file.head):
            return True
        if any(file.has_columns(names) for names in self.columns):
            return True
        if self.cell_pattern is not None and _has_cell(file, self.cell_pattern):
            return True
        for mark, what in self.other_marks.items():  # such as "members": the name of a file in an archive
            has_mark = MARKS[mark]
            if has_mark(file, what):
                return True
        return self.kind == TABLE and _has_named_headings(file)


def _has_named_headings(file: SpanFile) -> bool:
    """Return whether one of the first rows is a header with headings that the person's options name."""
    return any(file.reading.headings.are_in(cells) for cells in file.first_rows)


def _pattern_of(facts: Mapping[str, Any], name: str) -> re.Pattern[str] | None:
    """Return a pattern of a kind's entry in `kinds.toml`, by its key; None if the entry has no such key."""
    if name not in facts:
        return None
    text = str(facts[name]).replace("{xml}", XML_PROLOGUE)
    return re.compile(text, re.MULTILINE | re.IGNORECASE)


def _has_cell(file: SpanFile, pattern: re.Pattern[str]) -> bool:
    """Return whether a whole cell in the first rows of a file matches a pattern."""
    return any(pattern.fullmatch(name) for row in file.first_names for name in row)


def _has_anywhere(file: SpanFile, pattern: str) -> bool:
    """Return whether the content of a file, in any encoding, has a pattern of ASCII text."""
    without_zeros = file.content.replace(b"\0", b"")  # UTF-16 has one in each letter of ASCII
    return re.search(pattern.encode(), without_zeros) is not None


def _source(kind: str, facts: Mapping[str, Any]) -> SpanSource:
    """Make the source of a kind of files from its entry in `kinds.toml`.

    Parameters
    ----------
    kind
        Name of the kind, such as "eaf".
    facts
        Its entry, key -> value: the function that reads its files (`reader`, as "module:function"), the
        marks by which files are known (`_KindTest`), and properties of its spans, each of which has a
        default.
    """
    read: Reader = _read_nothing
    if "reader" in facts:
        read = pkgutil.resolve_name(facts["reader"])
    return SpanSource(
        read,
        is_of=_KindTest.of(kind, facts),  # called with a file, it returns whether this is of the kind
        is_signed=facts.get("is_signed", False),  # whether each span needs an annotator
        tier=facts.get("tier", "label"),  # the name by which --tier means records that name no tier
        is_said=facts.get("is_said", False),  # whether texts are what the film says, and so no labels
        leaves_texts=facts.get("leaves_texts", False),  # whether tiers of texts are left out
        subtitles=tuple(facts.get("subtitles", ())),  # suffixes of files, if they are subtitles
        is_of_one_film=facts.get("is_of_one_film", False),  # whether a file is of the film it is called like
    )


SOURCES: Final[Mapping[str, SpanSource]] = {
    **{kind: _source(kind, facts) for kind, facts in KINDS.items()},
    **offered(IMPORTERS, SpanSource),
}
"""Kinds of files by name: what `manifest import spans --as` takes. Kinds are looked for in this order, last
those of other packages (entry points of `obygaze.importers`)."""

SUBTITLES: Final = tuple(kind for kind, source in SOURCES.items() if source.subtitles)
"""Kinds of files that hold the subtitles of a film."""

SUFFIXES_OF_SUBTITLES: Final = tuple(suffix for kind in SUBTITLES for suffix in SOURCES[kind].subtitles)
"""Suffixes of these files, such as ".srt"."""


def kind_of(file: SpanFile) -> str:
    """Tell a file's kind by its content.

    Raises
    ------
    ManifestError
        The file is of no known kind.
    """
    for kind, source in SOURCES.items():
        if not source.is_of(file):
            continue
        # Tables of some tools look like a person's table, but are of a format that is not read.
        if kind == TABLE and _is_table_of_a_tool(file):
            continue
        return kind
    raise file.error(why_not_read(file) or _message_on_unknown_format(file))


def _is_table_of_a_tool(file: SpanFile) -> bool:
    """Return whether a table that looks like a person's is of a tool whose format is not read.

    Tables of tools may have columns `video` and `level` too. A table with start_s and end_s, or with headings
    that the person names, is always the person's.
    """
    if _has_named_headings(file) or file.has_columns(TIMES):
        return False
    return unread_format_of(file) is not None


def why_not_read(file: SpanFile) -> str:
    """Return why a file is not read: its format is known but not read, it is damaged, or it is no text.

    "" if none of these is the case: then the file may be a table, or of no known format.
    """
    unread_format = unread_format_of(file)
    if unread_format is not None:
        return unread_format.refusal
    if is_damaged_archive(file):
        return DAMAGED
    is_workbook = file.sheet is not None
    return "" if is_workbook else no_text(file.content)


def _message_on_unknown_format(file: SpanFile) -> str:
    """Return the message for a file of no known format, with the formats that it resembles most."""
    nearest = ", ".join(f"{known.name} ({known.tool})" for known in nearest_formats(file))
    notes = "".join(f"; {note}" for note in file.account.notes)
    damage = _damage(file)
    return (
        f"{damage}of no format that is known; the nearest are {nearest}. A table of yours needs the columns "
        f"start_s and end_s, and video or movie. --as KIND says what is missing: {', '.join(SOURCES)}{notes}"
    )


def _damage(file: SpanFile) -> str:
    """Return where a file that begins as JSON is damaged, as the beginning of a message; else ""."""
    begins_as_json = file.head.lstrip().startswith(("{", "["))
    if not begins_as_json:
        return ""
    try:
        _ = file.document  # reads the JSON
    except ManifestError as error:
        problem = str(error).removeprefix(f"{file.path}: ")  # the message names the file itself
        return f"{problem}; "
    return ""


@checked
@without_gc()
def read_subtitles(path: Path | str, *, encoding: str = "", account: Account | None = None) -> list[Subtitle]:
    r"""Read a file of subtitles (of the kinds `SUBTITLES`), in the order of their starts.

    Each text is on one line. Subtitles may overlap; those that start together keep the order of the file.
    Settings of fonts and positions, drawings and comments are left out.

    Parameters
    ----------
    path
        The file; its content says what it is.
    encoding
        Encoding of a file that is not UTF-8 and has no byte order mark; by default the likeliest.
    account : Account, optional
        Is filled with what was seen, left out and noted.

    Raises
    ------
    ManifestError
        It is no file of subtitles, or none of its blocks can be read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from obygaze_features.manifest import read_subtitles
    >>> _ = Path("a.srt").write_text("1\n00:00:01,000 --> 00:00:02,500\n<i>Hello</i>\n")
    >>> read_subtitles("a.srt")
    [Subtitle(start_s=1.0, end_s=2.5, text='Hello')]
    """
    with reader_process() as child:
        content = read_in_sandbox(child, local_path(path), Reading(encoding=encoding), _read_subtitles)
    if account is not None:
        account.copy_from(content.file.account)
    return [Subtitle(span.start_s, span.end_s, span.text) for span in content.records]


def _read_subtitles(file: SpanFile) -> FileContent[RawSpan]:
    """Read a file of subtitles of any kind, in the order of their starts; its account is filled.

    Raises
    ------
    ManifestError
        The file is of no kind of subtitles, or none of them is a text with times.
    """
    kinds_of_file = [kind for kind in SUBTITLES if SOURCES[kind].is_of(file)]
    kind = kinds_of_file[0] if kinds_of_file else ""
    file.account.kind = kind
    if not kind:
        suffixes = ", ".join(SUFFIXES_OF_SUBTITLES)
        raise file.error(why_not_read(file) or f"it has no subtitles of a known kind ({suffixes})")

    spans = file.account.spans(SOURCES[kind].read(file))
    spans.sort(key=lambda span: span.start_s)  # stable: those that start together keep the file's order
    file.account.used = len(spans)  # none is left out later, as of other kinds
    if not spans:
        raise ManifestError(f"{file.path}: it has no subtitles that are text: {file.account.line()}")
    if file.path.suffix.lower() == ".vtt" and kind == "srt":
        file.account.note("no line WEBVTT: read as SRT")
    return FileContent(file, spans)
