"""List the kinds of files that spans are read from, and tell a file's kind by its content."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from obygaze_features.errors import ManifestError
from obygaze_features.file_kinds import XML_PROLOGUE, no_text
from obygaze_features.io import local_path
from obygaze_features.manifest.spans.answers import ANSWERS, read_answers
from obygaze_features.manifest.spans.boris import BORIS_BOUT, BORIS_EVENT, read_boris
from obygaze_features.manifest.spans.documents import read_activitynet, read_cvat, read_labelstudio
from obygaze_features.manifest.spans.eaf import read_eaf
from obygaze_features.manifest.spans.elan_text import TIME, read_elan_text
from obygaze_features.manifest.spans.given import Account, Given, RawSpan
from obygaze_features.manifest.spans.moviegraphs import KEY, read_moviegraphs
from obygaze_features.manifest.spans.subtitles import Subtitle, in_order, read_ass, read_cues
from obygaze_features.manifest.spans.tables import VIAN_PROJECT, VIAN_SEGMENTS, read_vian
from obygaze_features.manifest.spans.tiers import read_rttm, read_textgrid
from obygaze_features.manifest.spans.via import VIA_HEADER, read_via
from obygaze_features.manifest.text_tables import SEEN_SCORE, TIMES
from obygaze_features.plugins import offered


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


def _starts(pattern: str) -> Callable[[Given], bool]:
    return _holds(rf"\A[\ufeff \t\r\n]*(?:{pattern})")


def _holds(pattern: str) -> Callable[[Given], bool]:
    found = re.compile(pattern, re.MULTILINE | re.IGNORECASE)
    return lambda given: found.search(given.head) is not None


def _columns(*forms: Sequence[str]) -> Callable[[Given], bool]:
    return lambda given: any(map(given.has_columns, forms))


def _is_activitynet(given: Given) -> bool:
    """Return whether it is an object with a database, which may stand behind much else."""
    database = re.search(rb'"database"\s*:\s*\{', given.content.replace(b"\0", b""))
    return database is not None and _starts(r"\{")(given)


def _is_elan_text(given: Given) -> bool:
    named = any(TIME.fullmatch(cell) for row in given.first_rows for cell in row)
    return named or _holds(r"^[^\t\n]*\t[^\t\n]*\t[\d:.]+\t[\d:.]+(?:\t|$)")(given)


SOURCES: Final[Mapping[str, SpanSource]] = {
    "eaf": SpanSource(read_eaf, _starts(rf"{XML_PROLOGUE}<ANNOTATION_DOCUMENT\b"), is_signed=True),
    "cvat": SpanSource(read_cvat, _starts(rf"{XML_PROLOGUE}<annotations\b")),
    "answers": SpanSource(read_answers, _holds(ANSWERS), is_signed=True),
    "labelstudio": SpanSource(read_labelstudio, _starts(r"\[\s*(?:\{|\])")),
    "moviegraphs": SpanSource(read_moviegraphs, _starts(rf'\{{\s*"{KEY}"\s*:')),
    "activitynet": SpanSource(read_activitynet, _is_activitynet),
    "vtt": SpanSource(read_cues, _starts(r"WEBVTT")),
    "ass": SpanSource(read_ass, _holds(r"^\s*\[(?:Script Info|Events|V4\+? Styles)\]")),
    "textgrid": SpanSource(read_textgrid, _holds(r'"ooTextFile|\AooBinaryFile')),
    "via": SpanSource(read_via, _holds(f"^{re.escape(VIA_HEADER)}")),
    "rttm": SpanSource(read_rttm, _holds(r"^SPEAKER[ \t]+\S+[ \t]+\S.*[ \t]<NA>")),
    "srt": SpanSource(read_cues, _holds(r"^[-\d:.,; ]*\d[^\S\n]*-->|^\s*\{\d+\}\{\d+\}")),
    "boris": SpanSource(
        read_boris, _columns(BORIS_BOUT, (*BORIS_EVENT, "Behavior type"), (*BORIS_EVENT, "Status"))
    ),
    "vian": SpanSource(read_vian, _columns(VIAN_SEGMENTS, VIAN_PROJECT)),
    # Tables of our own, which `import_spans` reads by their columns.
    "judgements": SpanSource(lambda _: (), _columns((*TIMES, SEEN_SCORE)), is_signed=True),
    "table": SpanSource(lambda _: (), _columns(TIMES)),
    "elan-text": SpanSource(read_elan_text, _is_elan_text),
    **offered("obygaze.importers", SpanSource),
}
"""Kinds of files by name: what `manifest import spans --as` takes. Kinds are looked for in this order, last
those of other packages (entry points of `obygaze.importers`)."""

NOT_READ: Final = {
    r'\A\s*\{[^\0]*(?:"vid_list"|"metadata"\s*:\s*\{[^\0]*"z"\s*:)': (
        "a project of VIA: export its temporal segments as CSV"
    ),
    r'\A\s*\{[^\0]*"results"\s*:': "results of a model, which are no labels: give ActivityNet's database",
    r"\A\W*Praat chronological": "a chronological TextGrid: save it in Praat as a text file",
    r"\A[^\n]*\bannotation_id\b": "a table of Label Studio: export its annotations as JSON",
    r"\A\s*TITLE:[^\n]*\n\s*(?:FCM:|\d{3} )": "a list of cuts (EDL): export its markers as a table",
    r"\A\s*\{": (
        "a JSON object of no kind that is read: tasks of Label Studio, a database of ActivityNet, answers or "
        "moviegraphs were expected"
    ),
    r"(?im)<(?:tt|sami)\b|^\[(?:\d+:\d+|\d+\]\[\d+\]|subtitle\])|^\d+:\d+:[\d.]+,\d+:\d+:[\d.]+\s*$": (
        "subtitles of a kind that is not read: convert them to SRT or WebVTT"
    ),
}
"""What is near to a kind that is read, by its first characters, and what to do."""

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
    )


def _what_instead(given: Given) -> str:
    """Say what a file is that is near to a kind that is read, or no text; "" if that is not known."""
    hints = (hint for sign, hint in NOT_READ.items() if re.search(sign, given.head))
    return no_text(given.content) or next(hints, "")


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
    spans = in_order(given.account.spans(SOURCES[given.account.kind].read(given)))
    given.account.used = len(spans)
    if not spans:
        raise ManifestError(f"{given.path}: it has no subtitles that are text: {given.account.line()}")
    if given.path.suffix.lower() == ".vtt" and given.account.kind == "srt":
        given.account.note("no line WEBVTT: read as SRT")
    return [Subtitle(span.start_s, span.end_s, span.text) for span in spans]
