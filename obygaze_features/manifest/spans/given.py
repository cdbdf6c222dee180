"""What a source reads and gives: a file of another tool, its spans, and the account that must add up."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeVar
from xml.etree.ElementTree import Element, ParseError, XMLParser

from obygaze_features.errors import ManifestError
from obygaze_features.file_kinds import where_damaged
from obygaze_features.manifest.spans.encodings import decoded
from obygaze_features.manifest.spans.instant import western
from obygaze_features.manifest.spans.names import plain
from obygaze_features.manifest.text_tables import content_of, counted, naming, placed
from obygaze_features.templates import packaged
from obygaze_features.text import first_few
from obygaze_features.text_records import first_rows, marked_encoding, split_records
from obygaze_features.workbook import HEADER_ROWS, Records, is_workbook, read_sheet

FACTS: Final = packaged(__package__, "kinds.toml")
KINDS, NOT_READ = FACTS["kinds"], FACTS["not_read"]
"""What is known of kinds of files, and of those that are near to one and not read."""

HEAD_BYTES = 1 << 16
"""Of a file, by which its kind is told."""

SHOWN_REASONS = 4
SHOWN_NAMES = 8
J = TypeVar("J")


@dataclass(frozen=True, slots=True)
class RawSpan:
    """One record as its file says it: a span, or why it is none.

    Parameters
    ----------
    where
        Its place in the file, for people: `line 31`.
    start_s, end_s
        Times in seconds of the film; NaN where they cannot be read.
    text
        What is said of the span: a label, a level, names of concepts, words.
    tier
        The tier, track or category that it is on.
    cells
        What else the file says: `movie`, `video` (as it is written), `annotator`, and further columns.
    own, above
        Its id, and those of the records it belongs to, where a file has such.
    why
        Why it is left out, beyond what its times say; "" for a span.
    whole
        Whether it is of a whole file, so that it has no times.
    role
        `levels` or `concepts`, where the file says which of them the text names; else its tier or its words
        tell.
    """

    where: str
    start_s: float = math.nan
    end_s: float = math.nan
    text: str = ""
    tier: str = ""
    cells: Mapping[str, str] = field(default_factory=dict)
    own: str = ""
    above: tuple[str, ...] = ()
    why: str = ""
    whole: bool = False
    role: str = ""

    def fault(self) -> str:
        """Say why it can be no span; "" if it is one."""
        if self.whole:
            return self.why
        if self.why or math.isnan(self.start_s + self.end_s):
            return self.why or "its times cannot be read"
        if min(self.start_s, self.end_s) < 0:
            return "a time below zero"
        ends = "it has no length" if self.start_s == self.end_s else "it ends before it starts"
        return ends if self.start_s >= self.end_s else ""


@dataclass
class Account:
    """What a file held: records seen, those used, and those left out, each with its place and the reason."""

    path: Path
    kind: str = ""
    seen: int = 0
    used: int = 0
    left_out: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def leave(self, where: str, why: str) -> None:
        """Count a record that is left out."""
        self.left_out.append((where, why))

    def note(self, *notes: str) -> None:
        """Say something of the whole file, once; "" says nothing."""
        self.notes += [note for note in notes if note and note not in self.notes]

    def unread(self, what: str, names: Iterable[str]) -> None:
        """Say which parts of records, if any, are not read."""
        if told := list(dict.fromkeys(names)):
            self.note(f"{counted(len(told), what)} not read ({first_few(told, SHOWN_NAMES)})")

    def spans(self, records: Iterable[RawSpan]) -> list[RawSpan]:
        """Count the records of a file; return those that are spans."""
        found = []
        for record in records:
            self.seen += 1
            if why := record.fault():
                self.leave(record.where, why)
            else:
                found.append(record)
        return found

    def line(self, of: str = "") -> str:
        """Write the one line of an import; `of` what tells the file from others of its name.

        Raises
        ------
        ManifestError
            The account does not add up.
        """
        if self.used + len(self.left_out) != self.seen:
            raise ManifestError(
                f"{self.path}: {self.seen} spans seen, {self.used} used and {len(self.left_out)} left out do "
                "not add up: this is a bug of obygaze, please report it"
            )
        first: dict[str, str] = {}
        for where, why in self.left_out:
            first.setdefault(why, where)
        counts = Counter(why for _, why in self.left_out).most_common()
        told = [
            f"{first[why]}: {why}" if n == 1 else f"{n:,} left out: {why} (the first: {first[why]})"
            for why, n in counts[:SHOWN_REASONS]
        ]
        if rest := sum(n for _, n in counts[SHOWN_REASONS:]):
            told.append(f"{rest:,} more left out")
        name = f"{self.path.name} of {of}" if of else self.path.name
        head = f"{name}: {self.used:,} of {self.seen:,} spans read ({self.kind})"
        return "; ".join([head, *told, *self.notes])

    def record(self) -> dict[str, Any]:
        """Make the document of --json."""
        left = [{"where": where, "why": why} for where, why in self.left_out]
        counts = {"seen": self.seen, "used": self.used}
        return {"file": str(self.path), "kind": self.kind, **counts, "left_out": left, "notes": self.notes}


@dataclass(eq=False)
class Given:
    """A file to read spans from, and what the person says of it."""

    path: Path
    rate: Fraction | None = None
    encoding: str = ""
    movie: str = ""
    tiers: Mapping[str, str] = field(default_factory=dict)
    usual: str = "."
    """Decimal sign of its times; "" where it may be either."""
    questions: Sequence[str] = ()
    """What its records answer, `level:NAME` or `concept:NAME`, where they are answers."""

    @cached_property
    def account(self) -> Account:
        """What becomes of its records."""
        return Account(self.path)

    @cached_property
    def content(self) -> bytes:
        """Its bytes."""
        return content_of(self.path)

    @cached_property
    def text(self) -> str:
        """Its text, without NUL and the marks that joined files have inside; what was done is noted."""
        with placed(self.path):
            text, notice = decoded(self.content, self.encoding)
        wrong = "U+0080 to U+009F left out of texts: letters that were saved in a wrong encoding"
        # U+0085 ends lines.
        wrong *= not text.isascii() and re.search("[\x80-\x84\x86-\x9f]", text) is not None
        self.account.note(notice, "characters NUL left out" * ("\0" in text), wrong)
        return text.replace("\ufeff", "").replace("\0", "")

    @property
    def lines(self) -> list[str]:
        """Its lines; line feeds and carriage returns alone end one, as texts hold other signs."""
        return re.split(r"\r*\n|\r", self.text)

    @cached_property
    def head(self) -> str:
        """Its first characters, whatever the encoding."""
        name = marked_encoding(self.content) or "utf-8-sig"
        text = self.content[:HEAD_BYTES].decode(name, "replace").replace("\0", "")
        return text.replace("\r\n", "\n").replace("\r", "\n")

    @cached_property
    def sheet(self) -> Records | None:
        """Its records, where it is a workbook; what else it holds is noted."""
        if not is_workbook(self.content):
            return None
        headers = [naming(names) for facts in KINDS.values() for names in facts.get("columns", ())]
        records, notes = read_sheet(
            self.path, self.content, ManifestError, lambda cells: any(is_one(cells) for is_one in headers)
        )
        self.account.note(*notes)
        return records

    def records(self, needed: Sequence[str]) -> tuple[Records, str]:
        """Split it into records, by what its header has between cells; "" for a workbook."""
        if self.sheet is not None:
            return self.sheet, ""
        return split_records(self.path, self.text, ManifestError, naming(needed))

    @cached_property
    def first_rows(self) -> list[set[str]]:
        """The names in each of its first rows, by each sign that may stand between them."""
        split = self.sheet[:HEADER_ROWS] if self.sheet is not None else chain(*first_rows(self.head).values())
        return [set(map(plain, cells)) for _, cells in split]

    def has_columns(self, names: Iterable[str]) -> bool:
        """Return whether one of its first rows has these names."""
        wanted = set(map(plain, names))
        return any(wanted <= row for row in self.first_rows)

    @cached_property
    def document(self) -> Any:
        """Its content as JSON."""
        try:
            return json_of(self.text)
        except (json.JSONDecodeError, RecursionError) as error:
            raise self.error(where_damaged(error, self.text.encode(), "a JSON document")) from None
        except ValueError as error:
            raise self.error(f"not a JSON document: {error}") from None

    def xml(self, root: str, what: str) -> Element:
        """Parse it as XML that declares no entity, so that none is expanded; check its root."""
        said = re.match(r"""\s*<\?xml[^>]*\sencoding\s*=\s*["'](?!utf)([\w.-]+)""", self.head, re.IGNORECASE)
        self.encoding = self.encoding or (said[1] if said else "")
        if "<!ENTITY" in self.text:
            raise self.error(f"declares entities in its document type, which {what} does not: not read")
        parser = XMLParser()  # noqa: S314 - it has no entities
        try:
            parser.feed(self.text)
            found: Element = parser.close()
        except ParseError as error:
            raise self.error(where_damaged(error, self.text.encode(), what)) from None
        if found.tag != root:
            raise self.error(f"not {what}: its root is {found.tag!r:.60}")
        if stray := next((node.tail for node in found.iter() if (node.tail or "").strip()), ""):
            self.account.note(f"text beside elements left out: {stray.strip()!r:.60}")
        return found

    def error(self, why: str) -> ManifestError:
        """Make an error that names the file."""
        return ManifestError(f"{self.path}: {why}")

    def frames(self, count: float, where: str) -> float:
        """Convert frames to seconds at the rate that the person gives."""
        if self.rate is None:
            raise self.error(f"{where}: times are in frames; give their rate, as in --rate 25")
        return float(Fraction(count) / self.rate)


def json_of(text: str) -> Any:
    """Read JSON; a ValueError for a name that an object has twice."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
            raise ValueError(f"{twice!r:.60} is there twice")
        return made

    return json.loads(text, object_pairs_hook=once)


def json_in(text: str, kind: type[J]) -> J | None:
    """Read JSON of a kind, such as a list, in a line or a cell; None where it is no such."""
    try:
        value = json_of(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, kind) else None


def number(value: object) -> float:
    """Read a JSON number, or text of one, that can be a time; NaN if it is none."""
    is_one = isinstance(value, int | float | str) and not isinstance(value, bool)
    text = western(str(value).strip()) if is_one else ""
    form = r"-?\d{1,12}(?:\.\d{0,30})?(?:[eE][+-]?\d{1,2})?"
    return float(text) if re.fullmatch(form, text, re.ASCII) else math.nan
