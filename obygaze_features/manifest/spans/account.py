"""Keep the account of a file: every record seen is used, or left out with its place and the reason."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.text_tables import counted
from obygaze_features.text import first_few

SHOWN_REASONS = 4
SHOWN_NAMES = 8
MOST_NOTES = 100

MOST_LISTED = 10_000
"""Records that are left out of which an account has the place; others are counted."""

MOST_REASONS = 1_000
"""Reasons for which records without a place are counted apart."""


@dataclass
class Account:
    """What a file held: records seen, those used, and those left out, with their places and the reasons.

    Attributes
    ----------
    left_out
        Place and reason of each record that is left out; of very many those of the first `MOST_LISTED`.
    unlisted
        Reason -> how many more records are left out; of very many reasons the others are under "".
    is_beside_model
        Whether it holds what a model wrote: whatever people changed in it since was in the sight of that.
    """

    path: Path
    kind: str = ""
    seen: int = 0
    used: int = 0
    left_out: list[tuple[str, str]] = field(default_factory=list)
    unlisted: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    is_beside_model: bool = False

    def take(self, account: "Account") -> None:
        """Become what another account says, but for its path."""
        self.kind = account.kind
        self.seen = account.seen
        self.used = account.used
        self.left_out = account.left_out
        self.unlisted = account.unlisted
        self.notes = account.notes
        self.is_beside_model = account.is_beside_model

    @property
    def n_left_out(self) -> int:
        """How many records are left out."""
        return len(self.left_out) + sum(self.unlisted.values())

    def leave(self, where: str, reason: str, n: int = 1) -> None:
        """Count a record that is left out, or n of them for one reason, of which `where` is the first."""
        if len(self.left_out) < MOST_LISTED:
            self.left_out.append((where, reason))
            n -= 1
        if n:
            is_known = reason in self.unlisted or len(self.unlisted) < MOST_REASONS
            key = reason if is_known else ""
            self.unlisted[key] = self.unlisted.get(key, 0) + n

    def note(self, *notes: str) -> None:
        """Say something of the whole file, once; "" says nothing. Of very much only that there is more."""
        for note in notes:
            if note and note not in self.notes and len(self.notes) <= MOST_NOTES:
                self.notes.append(note if len(self.notes) < MOST_NOTES else "and more, which is not listed")

    def unread(self, noun: str, names: Iterable[str]) -> None:
        """Say which parts of records, if any, are not read."""
        unread = list(dict.fromkeys(names))
        if unread:
            self.note(f"{counted(len(unread), noun)} not read ({first_few(unread, SHOWN_NAMES)})")

    def spans(self, records: Iterable[RawSpan]) -> list[RawSpan]:
        """Count the records of a file; return those that are spans."""
        spans = []
        for record in records:
            self.seen += record.n_records
            reason = record.fault()
            if reason:
                self.leave(record.where, reason, record.n_records)
            else:
                spans.append(record)
        return spans

    def line(self, film: str = "") -> str:
        """Write the one line of an import; `film` tells the file from others of its name.

        Raises
        ------
        ManifestError
            The account does not add up.
        """
        if self.used + self.n_left_out != self.seen:
            raise ManifestError(
                f"{self.path}: {counted(self.seen, 'span')} seen, {self.used} used and "
                f"{self.n_left_out} left out do "
                "not add up: this is a bug of obygaze, please report it"
            )
        name = f"{self.path.name} of {film}" if film else self.path.name
        head = f"{name}: {self.used:,} of {counted(self.seen, 'span')} read ({self.kind})"
        return "; ".join([head, *self._reasons(), *self.notes])

    def _reasons(self) -> list[str]:
        """Say why records are left out: the most frequent reasons, each with its first place."""
        first: dict[str, str] = {}
        for where, reason in self.left_out:
            first.setdefault(reason, where)
        counts = Counter(reason for _, reason in self.left_out)
        counts.update(self.unlisted)
        n_of_others = counts.pop("", 0)
        in_order = counts.most_common()
        lines = []
        for reason, n in in_order[:SHOWN_REASONS]:
            if reason not in first:
                lines.append(f"{n:,} left out: {reason}")
            elif n == 1:
                lines.append(f"{first[reason]}: {reason}")
            else:
                lines.append(f"{n:,} left out: {reason} (the first: {first[reason]})")
        n_rest = n_of_others + sum(n for _, n in in_order[SHOWN_REASONS:])
        if n_rest:
            lines.append(f"{n_rest:,} more left out")
        return lines

    def record(self) -> dict[str, Any]:
        """Make the document of --json."""
        return {
            "file": str(self.path),
            "kind": self.kind,
            "seen": self.seen,
            "used": self.used,
            "left_out": [{"where": where, "why": reason} for where, reason in self.left_out],
            "unlisted": self.unlisted,
            "notes": self.notes,
        }
