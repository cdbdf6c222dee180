"""Keep what the columns of a table seem to be, and write it as options of `manifest import spans`."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final, Self

import msgspec

from obygaze_features.errors import ManifestError
from obygaze_features.lines import csv_line
from obygaze_features.manifest.spans.headings import DURATION, LABEL_COLUMNS, Headings
from obygaze_features.manifest.text_tables import TIMES

SHOWN = 4
"""Examples that a sentence names."""

MOST_TYPED: Final = 40
"""Words of a table that options say one by one; of more they say `FIRST_TYPED`, and how to give the rest."""

FIRST_TYPED: Final = 8

UNKNOWN_HEADING: Final = "HEADING"
"""What stands in a command where only a person can say which column is meant."""

UNKNOWN_LABEL: Final = "LABEL"
"""What stands in a command where only a person can say which label a word is."""

START, END = TIMES


class UnreadColumnsError(ManifestError):
    """A table holds what nothing reads; `options` of `manifest import spans` read it.

    Attributes
    ----------
    reason
        What the table holds.
    options
        All options that read it, in place of those of its columns that were given.
    doubts
        What a person has to add.
    """

    def __init__(self, reason: str, options: Sequence[str], doubts: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.reason, self.options, self.doubts = reason, tuple(options), tuple(doubts)
        more = "".join(f"; {doubt}" for doubt in doubts)
        self.args = (f"{reason}: give {' '.join(options)}{more}" if options else f"{reason}{more}",)

    def __reduce__(self) -> tuple[type[Self], tuple[str, tuple[str, ...], tuple[str, ...]]]:
        """Pickle what it was made of, not the sentence: whoever reads tables in a pool gets it whole."""
        return type(self), (self.reason, self.options, self.doubts)


@dataclass
class Proposal:
    """What columns are, and what a person should type to read them.

    Attributes
    ----------
    columns
        Column of ours -> headings that stand for it.
    wide
        Annotators who have columns of their own.
    words
        Words of the table -> labels of the codebook.
    movie, annotator, rate
        The film, or the annotator, of all rows; the rate of times that end in frames.
    held
        What the table holds and nothing reads: without it, rows have no times, labels or films.
    also
        What would be read besides.
    doubts
        What only a person can say.
    """

    columns: dict[str, list[str]] = field(default_factory=dict)
    wide: list[str] = field(default_factory=list)
    words: dict[str, str] = field(default_factory=dict)
    movie: str = ""
    annotator: str = ""
    rate: str = ""
    held: list[str] = field(default_factory=list)
    also: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)

    def packed(self) -> bytes:
        """Write it for another process; as JSON, which can hold halves of letters that no UTF-8 has."""
        return json.dumps(asdict(self)).encode()

    def add(self, other: "Proposal") -> bool:
        """Add what another table needs besides; return False where its headings or film say otherwise."""
        for name, headings in other.columns.items():
            if name not in LABEL_COLUMNS and self.columns.get(name, headings) != headings:
                return False
        if self.movie != other.movie:
            return False
        for name, headings in other.columns.items():
            own = self.columns.setdefault(name, [])
            own += [heading for heading in headings if heading not in own]
        self.wide += [name for name in other.wide if name not in self.wide]
        for text, label in other.words.items():
            if self.words.get(text, UNKNOWN_LABEL) == UNKNOWN_LABEL:
                self.words[text] = label
        self.doubts += [doubt for doubt in other.doubts if doubt not in self.doubts]
        return True

    def options(self, given: Headings) -> list[str]:
        """Write the options, with those that a person gave."""
        columns = self._columns(given)
        options = [option(name, heading) for name, headings in columns.items() for heading in headings]
        options += self._of_annotators(given)
        options += [f"--word {shlex.quote(f'{text}={label}')}" for text, label in self._typed_words()]
        if self.movie:
            options.append(f"--movie {shlex.quote(self.movie)}")
        if self.rate:
            options.append(f"--rate {self.rate}")
        if self.annotator:
            options.append(f"--annotator {shlex.quote(self.annotator)}")
        return options

    def _columns(self, given: Headings) -> dict[str, list[str]]:
        """Return column of ours -> headings that stand for it, with those that a person gave."""
        columns = {name: list(headings) for name, headings in given.columns.items()}
        for name, headings in self.columns.items():
            known = columns.setdefault(name, [])
            known += [heading for heading in headings if heading not in known]
        if DURATION in columns and END not in self.columns:
            columns.pop(END, None)
        return columns

    def _of_annotators(self, given: Headings) -> list[str]:
        """Write the option that names annotators who have columns of their own, if any do."""
        annotators = [*given.wide, *(name for name in self.wide if name not in given.wide)]
        return [wide_option(annotators)] if annotators else []

    def _typed_words(self) -> list[tuple[str, str]]:
        """Return the words that options say, with their labels: all, or the first of very many."""
        words = list(self.words.items())
        return words if len(words) <= MOST_TYPED else words[:FIRST_TYPED]

    def untyped_words(self, path: Path, given: Headings) -> list[str]:
        """Say how many words the options do not say, and how to give them; nothing where they say all."""
        n_untyped = len(self.words) - len(self._typed_words())
        if not n_untyped:
            return []
        columns = self._columns(given)
        labels = [
            option(name, heading) for name in LABEL_COLUMNS for heading in columns.get(name, ()) if heading
        ]
        typed = " ".join([shlex.quote(str(path)), *labels, *self._of_annotators(given)])
        drafted = f"`obygaze codebook guess {typed} --out FILE` drafts one"
        what = f"{n_untyped:,} more words are not shown: if they are labels, put them into a codebook"
        return [f"{what} ({drafted}), and give it by --codebook"]


def unpacked(message: bytes) -> Proposal:
    """Read what `Proposal.packed` wrote; of no bytes, a proposal of nothing.

    Examples
    --------
    >>> unpacked(Proposal(movie="Vertigo").packed()).movie
    'Vertigo'
    """
    return msgspec.convert(json.loads(message), Proposal) if message else Proposal()


def option(name: str, heading: str) -> str:
    """Write the option that reads a heading as a column of ours."""
    return f"--column {shlex.quote(f'{name}={heading}')}"


def wide_option(annotators: Sequence[str]) -> str:
    """Write the option that reads columns of annotators; a name with a comma is quoted as in a CSV."""
    return f"--wide {shlex.quote(csv_line(annotators).strip())}"
