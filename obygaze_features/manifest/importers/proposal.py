"""Keep what the columns of a table seem to be, and write it as options of `manifest import spans`."""

import json
import shlex
from collections.abc import Iterable, Sequence
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

MAX_TYPED_WORDS: Final = 40
"""Words of a table that options say one by one; of more they say `FIRST_TYPED`, and how to give the rest."""

FIRST_TYPED: Final = 8

UNKNOWN_HEADING: Final = "HEADING"
"""What stands in a command where only a person can say which column is meant."""

UNKNOWN_LABEL: Final = "LABEL"
"""What stands in a command where only a person can say which label a word is."""

UNKNOWN_ANSWER: Final = "ANSWER"
"""What stands in a command where only a person can say whether a word means yes or no."""

UNKNOWN_UNIT: Final = "UNIT"
"""What stands in a command where only a person can say in which unit times are."""

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
        """Write the message: what the table holds, the options that read it, and what a person has to add."""
        super().__init__(reason)
        self.reason = reason
        self.options = tuple(options)
        self.doubts = tuple(doubts)
        remedy = f": give {' '.join(options)}" if options else ""
        further = "".join(f"; {doubt}" for doubt in doubts)
        # Set here, as ManifestError shortens long messages, and the options must be complete.
        self.args = (f"{reason}{remedy}{further}",)

    def __reduce__(self) -> tuple[type[Self], tuple[str, tuple[str, ...], tuple[str, ...]]]:
        """Pickle the three arguments, as a process that reads a table sends its errors to another one."""
        return type(self), (self.reason, self.options, self.doubts)


@dataclass
class Proposal:
    """What the unread columns of a table seem to be, and what a person should type to read them.

    Attributes
    ----------
    columns
        Manifest's column -> headings of the table that stand for it.
    annotators_with_columns
        Annotators who have columns of their own, named in the headings of these.
    words
        Words of the table -> what they mean: a label of the codebook, yes or no, or "" for no label;
        `UNKNOWN_LABEL` or `UNKNOWN_ANSWER` where a person has to say it.
    movie, annotator, rate, unit
        The film, or the annotator, of all rows; the rate of times that end in frames; the unit of times that
        are numbers.
    needed_unread
        Descriptions of unread columns without which rows have no times, labels or films. If there is one,
        the import is refused.
    optional_unread
        Descriptions of unread columns that the import does not need. They are only mentioned (`mention`).
    mentioned
        The headings of these columns.
    doubts
        What only a person can say.
    """

    columns: dict[str, list[str]] = field(default_factory=dict)
    annotators_with_columns: list[str] = field(default_factory=list)
    words: dict[str, str] = field(default_factory=dict)
    movie: str = ""
    annotator: str = ""
    rate: str = ""
    unit: str = ""
    needed_unread: list[str] = field(default_factory=list)
    optional_unread: list[str] = field(default_factory=list)
    mentioned: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)

    def require(self, description: str) -> None:
        """Describe what must be read, so that the import is refused until the person says how."""
        self.needed_unread.append(description)

    @property
    def is_import_refused(self) -> bool:
        """Whether the table has what must be read first, so that the import is refused with this proposal."""
        return bool(self.needed_unread)

    def ask(self, request: str) -> None:
        """Ask the person to say or check something, in the message of the refusal."""
        self.doubts.append(request)

    def mention(self, description: str, columns: Iterable[str]) -> None:
        """Describe unread columns that the import does not need; `columns` are their headings."""
        self.optional_unread.append(description)
        self.mentioned += columns

    def to_json(self) -> bytes:
        """Write the proposal as JSON for another process.

        JSON escapes unpaired surrogates, which a cell may hold and UTF-8 cannot.
        """
        return json.dumps(asdict(self)).encode()

    def add(self, other: "Proposal") -> bool:
        """Add the proposal of another table to this one, if one command can read both tables.

        Returns
        -------
        Whether it was added. It is not, and nothing is changed, if the tables need different headings or
        films (`_fits`).
        """
        if not self._fits(other):
            return False
        for name, headings in other.columns.items():
            own_headings = self.columns.setdefault(name, [])
            _add_new(own_headings, headings)
        _add_new(self.annotators_with_columns, other.annotators_with_columns)
        for word, meaning in other.words.items():
            # A meaning that one of the tables tells is kept, rather than the request to a person to say it.
            has_meaning = word in self.words and self.words[word] not in {UNKNOWN_LABEL, UNKNOWN_ANSWER}
            if not has_meaning:
                self.words[word] = meaning
        _add_new(self.doubts, other.doubts)
        return True

    def _fits(self, other: "Proposal") -> bool:
        """Return whether one command can have the options of two proposals: for the tables of one import.

        An option names one heading for each of a manifest's columns, except levels and concepts, which may
        have several, and one film.
        """
        for name, headings in other.columns.items():
            can_have_several_headings = name in LABEL_COLUMNS
            if name in self.columns and self.columns[name] != headings and not can_have_several_headings:
                return False
        return self.movie == other.movie

    def options(self, given: Headings) -> list[str]:
        """Write all options of `manifest import spans` that read the table.

        `given` are the headings that the person's options name already. Their options are written too, as a
        person types all of them again.
        """
        options = []
        for name, headings in self._all_columns(given).items():
            options += [option(name, heading) for heading in headings]
        options += self._annotator_options(given)
        for text, label in self._words_with_option():
            options.append(f"--word {shlex.quote(f'{text}={label}')}")
        if self.movie:
            options.append(f"--movie {shlex.quote(self.movie)}")
        if self.unit:
            options.append(f"--unit {self.unit}")
        if self.rate:
            options.append(f"--rate {self.rate}")
        if self.annotator:
            options.append(f"--annotator {shlex.quote(self.annotator)}")
        return options

    def _all_columns(self, given: Headings) -> dict[str, list[str]]:
        """Return manifest's column -> its headings: those in the person's options, then those proposed.

        `given` has the headings that the person's options name.
        """
        columns_with_options = {name: list(headings) for name, headings in given.columns.items()}
        for name, proposed_headings in self.columns.items():
            headings_so_far = columns_with_options.setdefault(name, [])
            _add_new(headings_so_far, proposed_headings)
        # A span ends by its end or by its duration, and options that name both are refused. Where there are
        # durations, ends that only the person's options name give way to them.
        are_ends_proposed = END in self.columns
        if DURATION in columns_with_options and not are_ends_proposed:
            columns_with_options.pop(END, None)
        return columns_with_options

    def _annotator_options(self, given: Headings) -> list[str]:
        """Return the option that names the annotators who have columns of their own, as `--wide AB,CD`.

        Those whom the person's options (`given`) name already come first, and the proposed ones follow. [] if
        there is no such annotator.
        """
        annotators = list(given.wide)
        _add_new(annotators, self.annotators_with_columns)
        if not annotators:
            return []
        return [wide_option(annotators)]

    def _words_with_option(self) -> list[tuple[str, str]]:
        """Return the words of the table, each with the label proposed for it, for which `--word` is proposed.

        If there are very many, these are the first few: nobody would type the others.
        """
        words = list(self.words.items())
        if len(words) > MAX_TYPED_WORDS:
            return words[:FIRST_TYPED]
        return words

    def notice_on_words_without_option(self, path: Path, given: Headings) -> str:
        """Say that some words have no option, as there are too many to type, and how to give them; else "".

        They are to be put into a codebook, of which `obygaze codebook guess` makes a draft.

        Parameters
        ----------
        path
            The file of the table.
        given
            The headings that the person's options name.
        """
        n_without_option = len(self.words) - len(self._words_with_option())
        if not n_without_option:
            return ""
        columns = self._all_columns(given)
        options_of_labels = []
        for name in LABEL_COLUMNS:
            options_of_labels += [option(name, heading) for heading in columns.get(name, ()) if heading]
        arguments = " ".join([shlex.quote(str(path)), *options_of_labels, *self._annotator_options(given)])
        command = f"obygaze codebook guess {arguments} --out FILE"
        return (
            f"{n_without_option:,} more words are not shown: if they are labels, put them into a codebook "
            f"(`{command}` drafts one), and give it by --codebook"
        )


def _add_new(known: list[str], further: Iterable[str]) -> None:
    """Add to a list the texts that are not in it yet, in their order."""
    known += [text for text in further if text not in known]


def proposal_from_json(message: bytes) -> Proposal:
    """Read a proposal that `Proposal.to_json` wrote; empty bytes give an empty proposal.

    Examples
    --------
    >>> proposal_from_json(Proposal(movie="Vertigo").to_json()).movie
    'Vertigo'
    """
    if not message:
        return Proposal()
    return msgspec.convert(json.loads(message), Proposal)


def option(name: str, heading: str) -> str:
    """Write the option that reads a heading as a manifest's column: `--column level=Stufe`."""
    return f"--column {shlex.quote(f'{name}={heading}')}"


def wide_option(annotators: Sequence[str]) -> str:
    """Write the option that names annotators with columns of their own; commas in names are quoted."""
    return f"--wide {shlex.quote(csv_line(annotators).strip())}"
