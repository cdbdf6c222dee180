"""Keep the account of a file: every record seen is used, or left out with its place and the reason."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.text_tables import counted
from obygaze_features.text import first_few

SHOWN_REASONS = 4
SHOWN_NAMES = 8
MAX_NOTES = 100

MAX_LISTED = 10_000
"""The places of so many records that are left out are listed; further ones are only counted."""

MAX_REASONS = 1_000
"""Records whose places are not listed are counted separately for so many reasons, then together."""

FURTHER_REASONS = ""
"""Stands for all reasons beyond those, where records are counted by reason."""


@dataclass
class Account:
    """What a file held: records seen, those used, and those left out, with their places and the reasons.

    Attributes
    ----------
    path
        The file.
    kind
        The kind of the file, one of `SOURCES`.
    seen, used
        How many records there are, and how many of them became clips.
    left_out
        (place, reason) of the first `MAX_LISTED` records that are left out.
    unlisted
        Reason -> how many more records are left out; those of further reasons are counted under "".
    notes
        Further facts of the file, for people.
    shows_model_output
        Whether the file holds what a model wrote, so that whoever annotated in it saw that.
    mentioned_columns
        Columns of a table that are not read, and that a note is on already.
    uses_rate, uses_unit
        Whether a time of the file may be read by the person's rate, or by the person's unit.
    uses_start
        Whether times of the file may count from the person's time code of the film's first frame.
    """

    path: Path
    kind: str = ""
    seen: int = 0
    used: int = 0
    left_out: list[tuple[str, str]] = field(default_factory=list)
    unlisted: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    shows_model_output: bool = False
    mentioned_columns: tuple[str, ...] = ()
    uses_rate: bool = False
    uses_unit: bool = False
    uses_start: bool = False

    def copy_from(self, account: "Account") -> None:
        """Take over everything from another account, except its path."""
        for fact in fields(account):
            if fact.name != "path":
                setattr(self, fact.name, getattr(account, fact.name))

    @property
    def n_left_out(self) -> int:
        """The number of records that are left out."""
        return len(self.left_out) + sum(self.unlisted.values())

    def leave_out(self, where: str, reason: str, n: int = 1) -> None:
        """Count n records that are left out for one reason; `where` is the place of the first of them.

        The first records of the file are listed with their places (`left_out`). Of all others only their
        number for each reason is kept (`unlisted`), and once there are `MAX_REASONS`, their number for all
        further reasons together: so a crafted file cannot fill the memory.
        """
        n_not_listed = n
        if len(self.left_out) < MAX_LISTED:
            self.left_out.append((where, reason))
            n_not_listed -= 1
        if n_not_listed == 0:
            return
        is_new_reason = reason not in self.unlisted
        if is_new_reason and len(self.unlisted) >= MAX_REASONS:
            reason = FURTHER_REASONS
        self.unlisted[reason] = self.unlisted.get(reason, 0) + n_not_listed

    def note(self, *notes: str) -> None:
        """Add notes on the whole file. Empty and repeated notes are ignored.

        After `MAX_NOTES` notes, one more says that there are others.
        """
        for note in notes:
            if not note or note in self.notes:
                continue
            if len(self.notes) < MAX_NOTES:
                self.notes.append(note)
            elif len(self.notes) == MAX_NOTES:
                self.notes.append("and more, which is not listed")

    def note_unread(self, noun: str, names: Iterable[str]) -> None:
        """Add a note on the parts of records that are not read, if there are any.

        Parameters
        ----------
        noun
            What they are, in the singular, such as `column`.
        names
            Their names, each any number of times.
        """
        unread = list(dict.fromkeys(names))
        if unread:
            self.note(f"{counted(len(unread), noun)} not read ({first_few(unread, SHOWN_NAMES)})")

    def spans(self, records: Iterable[RawSpan]) -> list[RawSpan]:
        """Count the records of a file, and return those that are spans; others are counted as left out."""
        spans = []
        for record in records:
            self.seen += record.n_records
            reason = record.fault()
            if reason:
                self.leave_out(record.where, reason, record.n_records)
            else:
                spans.append(record)
        return spans

    def line(self, film: str = "") -> str:
        """Write the line that an import prints for this file.

        Parameters
        ----------
        film
            The file's film, if it is needed to tell files of one name apart.

        Raises
        ------
        ManifestError
            The numbers of used and left-out records do not add up to those that were seen.
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
        """Return a text for each of the most frequent reasons why records are left out.

        A last text counts the records of all other reasons.
        """
        first_place: dict[str, str] = {}  # reason -> place of the first record that is left out for it
        for location, reason in self.left_out:
            first_place.setdefault(reason, location)

        # Records that are listed with their places, and further ones that are only counted.
        n_records_of_reason = Counter(reason for _, reason in self.left_out)
        n_records_of_reason.update(self.unlisted)
        n_of_further_reasons = n_records_of_reason.pop(FURTHER_REASONS, 0)
        reasons_with_counts = n_records_of_reason.most_common()

        lines = []
        for reason, n in reasons_with_counts[:SHOWN_REASONS]:
            if reason not in first_place:
                lines.append(f"{n:,} left out: {reason}")
            elif n == 1:
                lines.append(f"{first_place[reason]}: {reason}")
            else:
                lines.append(f"{n:,} left out: {reason} (the first: {first_place[reason]})")
        n_not_shown = n_of_further_reasons + sum(n for _, n in reasons_with_counts[SHOWN_REASONS:])
        if n_not_shown:
            lines.append(f"{n_not_shown:,} more left out")
        return lines

    def record(self) -> dict[str, Any]:
        """Return the account as the JSON object that `--json` prints."""
        return {
            "file": str(self.path),
            "kind": self.kind,
            "seen": self.seen,
            "used": self.used,
            "left_out": [{"where": location, "why": reason} for location, reason in self.left_out],
            "unlisted": self.unlisted,
            "notes": self.notes,
        }
