"""What a source reads and gives: a file of another tool, its spans, and the account that must add up."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError, XMLParser

from obygaze_features.door import read_bytes
from obygaze_features.errors import ManifestError
from obygaze_features.file_kinds import where_damaged
from obygaze_features.manifest.spans.encodings import decoded, marked_encoding
from obygaze_features.manifest.spans.workbook import Records, read_sheet

HEAD_BYTES = 1 << 16
"""Of a file, by which its kind is told."""

SHOWN_REASONS = 4


@dataclass(frozen=True, slots=True)
class RawSpan:
    """One record as its file says it.

    Parameters
    ----------
    where
        Its place in the file, for people: `line 31`.
    start_s, end_s
        Times in seconds of the film.
    text
        What is said of the span: a label, a level, names of concepts, words.
    tier
        The tier, track or category that it is on.
    cells
        What else the file says: `movie`, `video` (as it is written), `annotator`, and further columns.
    own, above
        Its id, and those of the records it belongs to, where a file has such.
    """

    where: str
    start_s: float
    end_s: float
    text: str = ""
    tier: str = ""
    cells: Mapping[str, str] = field(default_factory=dict)
    own: str = ""
    above: tuple[str, ...] = ()


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

    def line(self) -> str:
        """Write the one line of an import.

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
        parts = [
            f"{self.path.name}: {self.used:,} of {self.seen:,} spans read ({self.kind})",
            *told,
            *self.notes,
        ]
        return "; ".join(parts)

    def record(self) -> dict[str, Any]:
        """Make the document of --json."""
        left = [{"where": where, "why": why} for where, why in self.left_out]
        counts = {"seen": self.seen, "used": self.used}
        return {"file": str(self.path), "kind": self.kind, **counts, "left_out": left, "notes": self.notes}


@dataclass
class Given:
    """A file to read spans from, and what the person says of it."""

    path: Path
    rate: Fraction | None = None
    encoding: str = ""
    movie: str = ""
    tiers: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def account(self) -> Account:
        """What becomes of its records."""
        return Account(self.path)

    @cached_property
    def content(self) -> bytes:
        """Its bytes."""
        if self.path.is_dir():
            raise ManifestError(f"{self.path}: is a folder, and a file was expected")
        content = read_bytes(self.path)
        if not content:
            raise ManifestError(f"{self.path}: the file is empty (0 bytes)")
        return content

    @cached_property
    def text(self) -> str:
        """Its text; how it was decoded is noted where that is a guess."""
        try:
            text, notice = decoded(self.content, self.encoding)
        except ManifestError as error:
            raise self.error(str(error)) from None
        self.account.notes += [notice] if notice else []
        return text

    @cached_property
    def head(self) -> str:
        """Its first characters, whatever the encoding."""
        name = marked_encoding(self.content) or "utf-8-sig"
        text = self.content[:HEAD_BYTES].decode(name, "replace").replace("\0", "")
        return text.replace("\r\n", "\n").replace("\r", "\n")

    @cached_property
    def sheet(self) -> Records:
        """Its records, where it is a workbook; what else it holds is noted."""
        records, notes = read_sheet(self.path, self.content)
        self.account.notes += notes
        return records

    @cached_property
    def document(self) -> Any:
        """Its content as JSON."""

        def no_number(name: str) -> None:
            raise ValueError(f"{name} is no number of JSON")

        def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            made = dict(pairs)
            if len(made) < len(pairs):
                twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
                raise ValueError(f"{twice!r:.60} is there twice")
            return made

        try:
            return json.loads(self.text, parse_constant=no_number, object_pairs_hook=once)
        except (json.JSONDecodeError, RecursionError) as error:
            raise self.error(where_damaged(error, self.text.encode(), "a JSON document")) from None
        except ValueError as error:
            raise self.error(f"not a JSON document: {error}") from None

    def xml(self, root: str, what: str) -> Element:
        """Parse it as XML without a document type, so that no entity is expanded; check its root."""
        bare = self.content.replace(b"\0", b"")
        if b"<!DOCTYPE" in bare or b"<!ENTITY" in bare:
            raise self.error(f"has a document type, which {what} has not: not read")
        parser = XMLParser()  # noqa: S314 - it has no entities
        try:
            marked = marked_encoding(self.content)  # whatever its declaration says
            parser.feed(self.content.decode(marked) if marked else self.content)
            found: Element = parser.close()
        except ParseError as error:
            raise self.error(f"not {what} ({error})") from None
        except (LookupError, ValueError) as error:  # an encoding that there is not
            raise self.error(f"not {what} ({error})") from None
        if found.tag != root:
            raise self.error(f"not {what}: its root is {found.tag!r:.60}")
        return found

    def error(self, why: str) -> ManifestError:
        """Make an error that names the file."""
        return ManifestError(f"{self.path}: {why}")

    def frames(self, count: float, where: str) -> float:
        """Convert frames to seconds at the rate that the person gives."""
        if self.rate is None:
            raise self.error(f"{where}: times are in frames; give their rate, as in --rate 25")
        return float(Fraction(count) / self.rate)


def number(value: object) -> float | None:
    """Read a JSON number, or text of one, that can be a time; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    text = str(value).strip()
    if not re.fullmatch(r"-?\d{1,12}(?:\.\d{0,30})?(?:[eE][+-]?\d{1,2})?", text, re.ASCII):
        return None
    return float(text)
