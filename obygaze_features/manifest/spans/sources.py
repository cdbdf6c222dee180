"""List the kinds of files that spans are read from, and tell a file's kind by its content."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from obygaze_features.errors import ManifestError
from obygaze_features.file_kinds import XML_PROLOGUE, no_text
from obygaze_features.io import local_path
from obygaze_features.manifest.spans.answers import read_answers
from obygaze_features.manifest.spans.boris import read_boris
from obygaze_features.manifest.spans.documents import read_activitynet, read_cvat, read_labelstudio
from obygaze_features.manifest.spans.eaf import read_eaf
from obygaze_features.manifest.spans.elan_text import read_elan_text
from obygaze_features.manifest.spans.given import KINDS, NOT_READ, Account, Given, RawSpan
from obygaze_features.manifest.spans.moviegraphs import read_moviegraphs
from obygaze_features.manifest.spans.subtitles import Subtitle, read_ass, read_cues
from obygaze_features.manifest.spans.tables import read_vian
from obygaze_features.manifest.spans.tiers import read_rttm, read_textgrid
from obygaze_features.manifest.spans.via import read_via
from obygaze_features.manifest.text_tables import uncollected
from obygaze_features.plugins import IMPORTERS, offered


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
    """

    read: Callable[[Given], Iterable[RawSpan]]
    is_of: Callable[[Given], bool]
    is_signed: bool = False


READERS: Final[Mapping[str, Callable[[Given], Iterable[RawSpan]]]] = {
    read.__name__.removeprefix("read_").replace("_", "-"): read
    for read in (
        read_eaf, read_cvat, read_answers, read_labelstudio, read_moviegraphs, read_activitynet, read_ass,
        read_textgrid, read_via, read_rttm, read_boris, read_vian, read_elan_text,
    )
} | {"vtt": read_cues, "srt": read_cues}  # fmt: skip


def _tells(facts: Mapping[str, Any]) -> Callable[[Given], bool]:
    """Return what tells whether a file is of a kind with these facts."""
    holds = re.compile(
        facts.get("holds", "(?!)").replace("{xml}", XML_PROLOGUE), re.MULTILINE | re.IGNORECASE
    )
    cell = re.compile(facts.get("cell", ""), re.IGNORECASE)

    def is_of(given: Given) -> bool:
        columns = facts.get("columns", [])
        known = holds.search(given.head) is not None or any(map(given.has_columns, columns))
        if not known and "cell" in facts:
            known = any(cell.fullmatch(each) for row in given.first_rows for each in row)
        if known and "anywhere" in facts:
            return re.search(facts["anywhere"].encode(), given.content.replace(b"\0", b"")) is not None
        return known

    return is_of


SOURCES: Final[Mapping[str, SpanSource]] = {
    **{
        kind: SpanSource(READERS.get(kind, lambda _: ()), _tells(facts), facts.get("is_signed", False))
        for kind, facts in KINDS.items()
    },
    **offered(IMPORTERS, SpanSource),
}
"""Kinds of files by name: what `manifest import spans --as` takes. Kinds are looked for in this order, last
those of other packages (entry points of `obygaze.importers`)."""

SUBTITLES: Final = ("vtt", "ass", "srt")


def kind_of(given: Given) -> str:
    """Tell a file's kind by its content.

    Raises
    ------
    ManifestError
        It is of no kind that is known.
    """
    if found := next((name for name, source in SOURCES.items() if source.is_of(given)), ""):
        return found
    raise given.error(
        _what_instead(given)
        or f"of no kind that is known: expected one of {', '.join(SOURCES)}; a table of yours needs the "
        "columns start_s and end_s, and video or movie. Name the kind with --as to see what is missing"
        + "".join(f"; {note}" for note in given.account.notes)
    )


def _what_instead(given: Given) -> str:
    """Say what a file is that is near to a kind that is read, or no text; "" if that is not known."""
    near = (each["what"] for each in NOT_READ if re.search(each["holds"], given.head))
    return (no_text(given.content) if given.sheet is None else "") or next(near, "")


@uncollected()
def read_subtitles(path: Path | str, *, encoding: str = "", account: Account | None = None) -> list[Subtitle]:
    r"""Read a file of subtitles (SRT, WebVTT, ASS), in the order of their starts.

    Every text is kept, on one line: overlaps, joiners, and several at one time in the file's order. Settings
    of fonts and places, drawings and comments are no text.

    Parameters
    ----------
    path
        The file; its content says what it is.
    encoding
        Of a file that is not UTF-8 and has no byte order mark; by default Windows-1252, with a note.
    account : Account, optional
        Gets what was seen, left out and noted.

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
    given = Given(local_path(path), encoding=encoding)
    if account is not None:
        given.account = account
    given.account.kind = next((kind for kind in SUBTITLES if SOURCES[kind].is_of(given)), "")
    if not given.account.kind:
        raise given.error(_what_instead(given) or "it has no subtitles: SRT, WebVTT or ASS was expected")
    found = given.account.spans(SOURCES[given.account.kind].read(given))
    spans = sorted(found, key=lambda span: span.start_s)  # those that begin together as in the file
    given.account.used = len(spans)
    if not spans:
        raise ManifestError(f"{given.path}: it has no subtitles that are text: {given.account.line()}")
    if given.path.suffix.lower() == ".vtt" and given.account.kind == "srt":
        given.account.note("no line WEBVTT: read as SRT")
    return [Subtitle(span.start_s, span.end_s, span.text) for span in spans]
