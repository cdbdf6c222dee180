"""Propose how to read a person's table: what each column is, by what its cells hold, then by its heading.

One place decides, for tables whose headings are none of ours and for columns that nothing reads. It looks for
times, labels, films and annotators, in this order; each takes the columns that it needs from the rest. What
comes out are the options of `manifest import spans` that read all of it, as one line.
"""

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from statistics import median
from typing import Final

from obygaze_features.cells import is_unreadable
from obygaze_features.errors import ManifestError
from obygaze_features.lines import csv_line
from obygaze_features.manifest.importers.column_contents import (
    MOST,
    NO,
    YES,
    Content,
    are_clocks,
    are_files,
    are_marks,
    are_ranges,
    are_times,
    content_of,
    is_of_marks,
    label_in_heading,
    label_of_heading,
    readable_cells,
    seconds_in,
    whole_numbers,
)
from obygaze_features.manifest.importers.columns import role_of_heading
from obygaze_features.manifest.importers.table_layout import SECTION, Layout
from obygaze_features.manifest.importers.table_rows import SUMS
from obygaze_features.manifest.importers.word_guesses import (
    are_few_words,
    are_lists,
    explained_words,
    label_like,
    label_near,
    legend_rows,
    listed_parts,
)
from obygaze_features.manifest.spans.headings import (
    DURATION,
    KNOWN_HEADINGS,
    LABEL_COLUMNS,
    Headings,
    bare_heading,
    columns_headed_by,
    names_of_heading,
    seconds_of_unit,
    without_name,
)
from obygaze_features.manifest.spans.instant import FRAME_CODE
from obygaze_features.manifest.spans.label_words import LabelWords
from obygaze_features.manifest.spans.names import plain, without_zeros
from obygaze_features.manifest.spans.span_file import SpanFile
from obygaze_features.manifest.text_tables import SHOWN_PROBLEMS, TIMES
from obygaze_features.text import first_few, number_of
from obygaze_features.workbook import SHEET

SHOWN = 4
MOST_WORDS = 12
"""Different words of a column that can be an ordered label: a column of more is of names or of texts."""

MOST_ASKED = 40
"""Different words of a column that are looked at for labels in other words."""

START, END = TIMES

UNKNOWN_HEADING: Final = "HEADING"
"""What stands in a command where only a person can say which column is meant."""

OF_ALL: Final = {
    "agree", "agreed", "agreement", "consensus", "majority", "majority vote", "mode", "modus", "final",
    "kappa", "übereinstimmung", "konsens", "mehrheit", "accord", "majorité", "accordo", "maggioranza",
    "acuerdo", "mayoría", "difference", "diff", "differenz", "différence",
}  # fmt: skip
"""Headings of columns beside those of annotators, which are computed of them."""

_RATE = re.compile(
    r"(\d{2,3}(?:[.,]\d+)?)\s*(?:fps|f/s|b/s|i/s|im/s|img/s|bilder|images|fotogr|hz)", re.IGNORECASE
)
"""A rate of frames that a heading or a title says."""

UNKNOWN_LABEL: Final = "LABEL"
"""What stands in a command where only a person can say which label a word is."""

COMMON_RATES: Final = (25, 30, 50, 60)

VAGUE: Final = {
    "note", "code", "value", "wert", "valeur", "valor", "valore", "annotation", "category", "kategorie",
    "catégorie", "categorie", "categoría", "categoria", "class", "klasse", "classe", "score", "scale",
    "skala", "échelle", "label", "labels",
}  # fmt: skip
"""Headings that mean levels only where the cells do too."""


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
        columns = {name: list(headings) for name, headings in given.columns.items()}
        for name, headings in self.columns.items():
            known = columns.setdefault(name, [])
            known += [heading for heading in headings if heading not in known]
        if DURATION in columns and END not in self.columns:
            columns.pop(END, None)
        options = [option(name, heading) for name, headings in columns.items() for heading in headings]
        annotators = [*given.wide, *(name for name in self.wide if name not in given.wide)]
        if annotators:
            options.append(wide_option(annotators))
        options += [f"--word {shlex.quote(f'{text}={label}')}" for text, label in self.words.items()]
        if self.movie:
            options.append(f"--movie {shlex.quote(self.movie)}")
        if self.rate:
            options.append(f"--rate {self.rate}")
        if self.annotator:
            options.append(f"--annotator {shlex.quote(self.annotator)}")
        return options


def option(name: str, heading: str) -> str:
    """Write the option that reads a heading as a column of ours."""
    return f"--column {shlex.quote(f'{name}={heading}')}"


def wide_option(annotators: Sequence[str]) -> str:
    """Write the option that reads columns of annotators; a name with a comma is quoted as in a CSV."""
    return f"--wide {shlex.quote(csv_line(annotators).strip())}"


def propose(
    file: SpanFile, layout: Layout, read: Iterable[str], words: LabelWords, annotator: str = ""
) -> Proposal:
    """Say what the columns of a table are that are not read.

    Parameters
    ----------
    layout
        The table, its columns by our names where they are ours or a person named them.
    read
        Columns that are read as they are.
    words
        Of the codebook.
    annotator
        Who annotated, as the person says.
    """
    proposer = _Proposer(file, layout, read, words, annotator)
    proposer.times()
    proposer.labels()
    proposer.films()
    proposer.annotators()
    proposer.explain()
    return proposer.proposal


class _Proposer:
    """Takes the columns of a table from those that are not read, one meaning after the other."""

    def __init__(
        self, file: SpanFile, layout: Layout, read: Iterable[str], words: LabelWords, annotator: str
    ) -> None:
        self._file, self._table, self._titles = file, layout.table, layout.titles
        self._known, self._given, self._annotator = words, file.reading.headings, annotator
        is_read = set(read)
        self._rest = [column for column in self._table.columns if column not in is_read]
        self._cells = {column: readable_cells(self._table, column) for column in self._table.columns}
        self._words = self._guessing()
        self._rest = [column for column in self._rest if not self._is_no_label(column)]
        self._marks = [column for column in self._rest if is_of_marks(self._table, column, self._words)]
        self.proposal = Proposal()

    def _guessing(self) -> LabelWords:
        """Return the words of the codebook, with translations, and what the table's own words seem to be."""
        words = self._known.with_guesses()
        legend = [*self._titles, *legend_rows(self._file.other_sheets)]
        guesses = explained_words(legend, self._table.columns, words)
        for column, cells in self._cells.items():
            different = list(dict.fromkeys(cells))
            for text in different if len(different) <= MOST_ASKED else ():
                if label := label_like(text, words):
                    guesses.setdefault(text, label)
            if cells and are_marks(cells):
                heading = label_like(column, words) or label_in_heading(column, words)
                if label := heading or label_near(bare_heading(column), words):
                    guesses.setdefault(column, label)
        return self._known.with_guesses(guesses)

    def _is_no_label(self, column: str) -> bool:
        """Return whether a person says that a column of marks is of no label."""
        return self._known.is_explained_as_nothing(column) and are_marks(self._cells[column])

    def _take(self, name: str, columns: Sequence[str]) -> None:
        """Let columns stand for one of ours."""
        self.proposal.columns.setdefault(name, []).extend(columns)
        self._rest = [column for column in self._rest if column not in columns]

    def _has(self, *names: str) -> bool:
        """Return whether a column of ours is there, named by a person, or proposed."""
        return any(self._is_read(name) or name in self.proposal.columns for name in names)

    def _is_read(self, name: str) -> bool:
        """Return whether a column of ours is there, or a person named the columns of its labels."""
        return name in self._table.columns or bool(self._named_columns(name))

    def _named_columns(self, name: str) -> list[str]:
        """Return the columns that a person named for one of ours, by the headings that they have."""
        named = {plain(heading) for heading in self._given.columns.get(name, ())}
        return [column for column in self._table.columns if plain(column) in named]

    def _meant(self, name: str, fits: Callable[[str], bool]) -> str:
        """Return the column that is headed as people head one of ours, and fits; "" if there is none."""
        ranked = []
        for column in self._rest:
            names = names_of_heading(column)
            if name in names and fits(column):
                ranked.append((names.index(name), not _is_exact(column, name), column))
        ranked.sort(key=lambda entry: entry[:2])
        return ranked[0][2] if ranked else ""

    # --- times
    def times(self) -> None:
        """Find the columns of starts and ends, of starts and durations, or of both in one."""
        if self._has(START) and self._has(END, DURATION):
            return
        columns = self._columns_of_times()
        if not columns:
            self._say_untimed()
            return
        for name, column in columns.items():
            if not self._has(name):
                self._take(name, [column])
        shown = ", ".join(map(repr, dict.fromkeys(columns.values())))
        self.proposal.held.append(f"times ({shown})")
        self._propose_rate(list(columns.values()))

    def _propose_rate(self, columns: Sequence[str]) -> None:
        """Propose a rate for times that end in frames: of a heading or title, or by the highest frame."""
        cells = [cell for column in columns for cell in self._cells[column]]
        codes = [code for cell in cells if (code := FRAME_CODE.fullmatch(cell))]
        are_frames = any(seconds_of_unit(column) == 0 for column in columns)
        if self._file.reading.rate is not None or not (codes or are_frames):
            return
        texts = [*self._table.columns, *(cell for cells in self._titles for cell in cells)]
        rates = [match[1] for text in texts if (match := _RATE.search(text))]
        if rates:
            self.proposal.rate = rates[0].replace(",", ".")
            return
        last = max([int(code[6]) for code in codes], default=0)
        self.proposal.rate = next((str(rate) for rate in COMMON_RATES if last < rate), "60")
        self.proposal.doubts.append("its times have frames: give the film's rate by --rate")

    def _columns_of_times(self) -> dict[str, str]:
        """Return the columns that hold times, by what they are; none where they cannot be told."""
        timed = [column for column in self._rest if self._is_timed(column)]
        start = START if self._has(START) else self._meant(START, timed.__contains__)
        others = [column for column in timed if column != start]
        end = self._meant(END, others.__contains__)
        duration = self._meant(DURATION, others.__contains__)
        if start and end and self._end_behind(start, [end]):
            return {START: start, END: end}
        if not start and duration and not end and len(timed) == 2:
            start = next(column for column in timed if column != duration)
        if start and duration:
            return {START: start, DURATION: duration}
        ranges = [column for column in self._rest if are_ranges(self._cells[column])]
        if ranges and not self._has(START, END):
            return {START: ranges[0], END: ranges[0]}
        if start:
            behind = self._end_behind(start, others)
            return {START: start, END: behind} if behind else {}
        return self._pair_of(timed)

    def _is_timed(self, column: str) -> bool:
        """Return whether a column can be of times: one of marks, or that a label heads, is none."""
        cells = self._cells[column]
        is_of_words = 2 * len(cells) < len(self._table.rows) or column in self._marks
        return not is_of_words and are_times(cells)

    def _end_behind(self, start: str, columns: Sequence[str]) -> str:
        """Return the first of some columns whose times are behind the starts; "" if there is none."""
        for column in columns:
            lengths = self._lengths(start, column)
            if lengths and sum(length >= 0 for length in lengths) >= MOST * len(lengths):
                return column
        return ""

    def _pair_of(self, columns: Sequence[str]) -> dict[str, str]:
        """Return two columns as starts and ends, by their cells alone: clocks first, the nearest two."""
        clocks = [column for column in columns if are_clocks(self._cells[column])]
        pairs = []
        for start, end in combinations(clocks if len(clocks) > 1 else columns, 2):
            lengths = self._lengths(start, end)
            if lengths and min(lengths) > 0 and not self._are_few(end):
                pairs.append((median(lengths), start, end))
        if not pairs:
            return {}
        _, start, end = min(pairs)
        return {START: start, END: end}

    def _are_few(self, column: str) -> bool:
        """Return whether a column has the same few whole numbers again and again, as ratings have."""
        numbers = whole_numbers(self._cells[column])
        return numbers is not None and 2 * len(numbers) <= len(self._cells[column]) and len(numbers) <= 10

    def _lengths(self, start: str, end: str) -> list[float]:
        """Return how long after its start each row ends, where both are times."""
        starts = seconds_in([row.cells[start].strip() for row in self._table.rows])
        ends = seconds_in([row.cells[end].strip() for row in self._table.rows])
        lengths = [last - first for first, last in zip(starts, ends, strict=True)]
        return [length for length in lengths if length == length]  # noqa: PLR0124 - not NaN

    def _say_untimed(self) -> None:
        """Say which column holds starts, where none holds ends."""
        for name in (START, END):
            other = END if name == START else START
            column = name if self._has(name) else self._meant(name, self._is_timed)
            if column and not self._has(other):
                if column != name:
                    self._take(name, [column])
                self.proposal.columns[other] = [UNKNOWN_HEADING]
                self.proposal.held.append(f"times ({column!r}), and no column {other}")
                self.proposal.doubts.append(
                    f"--column {other}=HEADING, or --column {DURATION}=HEADING, says where spans end"
                )
                return

    # --- labels
    def labels(self) -> None:
        """Find the columns of levels and concepts: of labels, of marks, of one annotator each."""
        levels = [column for column in self._rest if self._content(column).are_levels]
        levels = [column for column in levels if column not in self._marks and not self._is_of_others(column)]
        is_wide = bool(self._given.wide)
        levels = [*levels, *(column for column in self._headed_levels(levels) if not is_wide)]
        if self._given.has_none_of("level"):
            levels = []
        if levels and self._are_of_annotators():
            self._take_annotators(["level", *levels])
        elif len(levels) > 1 and not self._has("level") and not is_wide:
            self._take_annotators(levels)
        elif levels and not self._has("level") and not is_wide:
            self._take_held("level", levels[:1], "levels")
        elif levels:
            shown = ", ".join(self._counted(column) for column in levels)
            typed = " or ".join(option("level", column) for column in levels)
            self.proposal.also.append(f"columns that are not read hold levels too ({shown}): {typed}")
            self._rest = [column for column in self._rest if column not in levels]
        self._take_marks("level")
        concepts = [column for column in self._rest if self._content(column).are_concepts]
        concepts = [column for column in concepts if column not in self._marks]
        self._take_concepts(concepts)
        if not self._has("level") and not self.proposal.wide and not is_wide:
            self._take_unknown_levels()
        if not self._has("level") and not self.proposal.wide and not is_wide:
            self._take_unknown_annotators()
        if not self.proposal.wide and not is_wide:
            self._take_unknown_concepts()
        self._take_unknown_marks()
        if not self._has("level") and not self.proposal.wide and not is_wide and self._has("concepts"):
            self._take_numbers()

    def _take_numbers(self) -> None:
        """Find the one column of numbers beside concepts that can be levels, where no other is."""
        if self._given.has_none_of("level"):
            return
        names = self._words.codebook.level_names
        columns = [column for column in self._rest if self._has_few(column) and not names_of_heading(column)]
        columns = [column for column in columns if meanings_of_numbers(self._cells[column], names)]
        if len(columns) == 1:
            self._take("level", columns)
            self.proposal.held.append(f"numbers that may be levels ({columns[0]!r})")

    def _are_of_annotators(self) -> bool:
        """Return whether levels beside a column `level` are another annotator's: nobody is named."""
        is_ours = "level" in self._table.columns and not self._given.columns.get("level")
        is_signed = self._has("annotator") or bool(self._meant("annotator", self._can_be_people))
        return is_ours and not is_signed and not self._given.wide and not self._annotator

    def _is_of_others(self, column: str) -> bool:
        """Return whether a column that seems of levels is computed of others, or numbers something."""
        if bare_heading(column) in {*OF_ALL, *SUMS}:
            return True
        is_of_numbers = whole_numbers(self._cells[column]) is not None
        names = names_of_heading(column)
        is_of_ids = is_of_numbers and bool(names) and "level" not in names
        return is_of_ids or bare_heading(column).rstrip("?") in OF_ALL

    def _headed_levels(self, levels: Sequence[str]) -> list[str]:
        """Return further columns that people head as levels, and columns of numbers, one an annotator.

        Only where there are two or more in all, of the same words.
        """
        if self._has("level") or self._given.has_none_of("level"):
            return []
        can_be = [column for column in self._rest if column not in {*levels, *self._marks}]
        can_be = [
            column for column in can_be if self._can_be_levels(column) and not self._is_of_others(column)
        ]
        headed = [column for column in can_be if "level" in names_of_heading(column)[:1]]
        if not levels and len(headed) < 2:
            names = self._words.codebook.level_names
            can_be = [column for column in can_be if not names_of_heading(column)]
            headed = [column for column in can_be if meanings_of_numbers(self._cells[column], names)]
        words = {plain(cell) for column in (*levels, *headed) for cell in self._cells[column]}
        is_alike = all(len(words) <= 2 * len(set(map(plain, self._cells[column]))) for column in headed)
        is_of_annotators = len(levels) + len(headed) > 1 and is_alike
        return headed if is_of_annotators else []

    def _content(self, column: str) -> Content:
        return content_of(self._cells[column], self._words)

    def _counted(self, column: str) -> str:
        content = self._content(column)
        return f"{column!r}: {content.n_labels} of {content.n_cells} cells"

    def _take_held(self, name: str, columns: Sequence[str], what: str) -> None:
        """Let columns of labels stand for one of ours, and say what they hold."""
        self._take(name, columns)
        shown = first_few([self._counted(column) for column in columns], SHOWN)
        self.proposal.held.append(f"{what} ({shown})")

    def _take_annotators(self, levels: Sequence[str]) -> None:
        """Name the annotators who have a column of levels each; what else they head is theirs too."""
        annotators = annotators_of(levels, self._table.columns)
        own = [column for name in annotators for column in columns_headed_by(name, self._rest)]
        self._rest = [column for column in self._rest if column not in {*own, *levels}]
        self._marks = [column for column in self._marks if column not in own]
        self.proposal.wide = annotators
        self.proposal.held.append(f"levels of {len(annotators)} annotators ({', '.join(map(repr, levels))})")

    def _take_marks(self, name: str) -> None:
        """Find the columns that are headed by levels, or by concepts, and hold marks."""
        names = self._words.codebook.level_names
        own = [
            column
            for column in self._marks
            if column in self._rest and (label_of_heading(column, self._words) in names) == (name == "level")
        ]
        if not own:
            return
        shown = ", ".join(map(repr, own))
        if self._given.has_none_of(name):
            return
        if self._is_read(name) or (name == "level" and self._has("level")) or self._is_wide(name):
            typed = " ".join(option(name, column) for column in own)
            self.proposal.also.append(f"columns headed by labels are not read ({shown}): {typed}")
            return
        self._take(name, own)
        self.proposal.held.append(f"marks of {name if name == 'concepts' else 'levels'} ({shown})")

    def _take_unknown_concepts(self) -> None:
        """Find columns of concepts in other words: headed so, or lists of a few words again and again."""
        if self._given.has_none_of("concepts"):
            return
        can_be = [
            column for column in self._rest if column not in self._marks and self._can_be_concepts(column)
        ]
        headed = [column for column in can_be if "concepts" in names_of_heading(column)]
        has_other = self._is_read("concepts") or "concepts" in self.proposal.columns
        lists = [column for column in can_be if column not in headed and not names_of_heading(column)]
        lists = [column for column in lists if are_lists(self._cells[column], self._words)]
        if has_other and (headed or lists):
            typed = " ".join(option("concepts", column) for column in (*headed, *lists))
            shown = ", ".join(map(repr, (*headed, *lists)))
            self.proposal.also.append(f"columns that may be of concepts are not read ({shown}): {typed}")
        elif headed or lists:
            columns = headed or lists[:1]
            self._take("concepts", columns)
            self.proposal.held.append(f"concepts in other words ({', '.join(map(repr, columns))})")

    def _can_be_concepts(self, column: str) -> bool:
        """Return whether a column has texts of a few short words, in several rows."""
        cells = self._cells[column]
        listed = [parts for parts in listed_parts(cells, self._words) if parts]
        n_parts = sum(map(len, listed))
        n_different = len({plain(part) for parts in listed for part in parts})
        is_repeated = 4 * n_different <= 3 * n_parts or are_lists(cells, self._words)
        return are_few_words(listed) and is_repeated and not are_times(cells) and not are_files(cells)

    def _take_unknown_marks(self) -> None:
        """Find columns of marks whose headings are no labels, beside such that are, or of no others."""
        if self._given.has_none_of("concepts"):
            return
        columns = [
            column
            for column in self._rest
            if column not in self._marks and self._is_marked(column) and not names_of_heading(column)
        ]
        if not columns:
            return
        order = list(self._table.columns)
        beside = [
            order.index(column)
            for column in self.proposal.columns.get("concepts", ())
            if self._is_marked(column)
        ]
        has_labels = self._has("level", "concepts") or self._given.wide or self.proposal.wide
        near = [
            column
            for column in columns
            if beside and min(beside) - 1 <= order.index(column) <= max(beside) + 1
        ]
        taken = near if has_labels else columns
        taken = [column for column in taken if bare_heading(column).rstrip("?") not in {*OF_ALL, *SUMS}]
        if taken:
            self._take("concepts", taken)
            self.proposal.held.append(f"marks under other words ({', '.join(map(repr, taken))})")
        rest = [column for column in columns if column not in taken]
        if rest:
            shown = ", ".join(map(repr, rest))
            typed = " ".join(option("concepts", column) for column in rest)
            self.proposal.also.append(
                f"columns of marks are not read ({shown}): {typed}, if they are of concepts"
            )

    def _is_marked(self, column: str) -> bool:
        """Return whether a column says yes and no, or yes and nothing."""
        cells = {plain(cell) for cell in self._cells[column]}
        is_filled = len(self._cells[column]) == len(self._table.rows)
        return bool(cells & YES) and are_marks(self._cells[column]) and (len(cells) > 1 or not is_filled)

    def _take_concepts(self, columns: Sequence[str]) -> None:
        """Read columns of concepts and of their marks."""
        if self._given.has_none_of("concepts"):
            return
        if columns and self._is_read("concepts"):
            shown = first_few([self._counted(column) for column in columns], SHOWN)
            typed = " ".join(option("concepts", column) for column in columns)
            self.proposal.also.append(f"columns that are not read hold concepts too ({shown}): {typed}")
        elif columns:
            self._take_held("concepts", columns, "concepts")
        self._take_marks("concepts")

    def _take_unknown_levels(self) -> None:
        """Find a column of levels by its heading, where its few words are not of the codebook."""
        if self._given.has_none_of("level"):
            return
        column = self._meant("level", self._can_be_levels)
        if column:
            self._take("level", [column])
            self.proposal.held.append(f"levels in other words ({column!r})")

    def _take_unknown_annotators(self) -> None:
        """Find columns that have the same few words or numbers, none of them of the codebook."""
        if self._given.has_none_of("level"):
            return
        columns = [column for column in self._rest if not names_of_heading(column) and self._has_few(column)]
        alike = [column for column in columns if any(self._are_alike(column, other) for other in columns)]
        if len(alike) > 1:
            self._take_annotators(alike)

    def _are_alike(self, column: str, other: str) -> bool:
        """Return whether most words of a column are those of another."""
        words = set(map(plain, self._cells[column]))
        shared = words & set(map(plain, self._cells[other]))
        return column != other and 2 * len(shared) > len(words)

    def _has_few(self, column: str) -> bool:
        """Return whether the cells of a column are few words, or few numbers that can be levels."""
        cells = self._cells[column]
        different = set(map(plain, cells))
        levels = self._words.codebook.level_names
        is_of_others = are_marks(cells) or are_clocks(cells) or self._content(column).are_concepts
        are_numbers = whole_numbers(cells) is not None
        if are_numbers and not meanings_of_numbers(cells, levels):
            return False
        repeat = are_numbers or len(different) < len(cells)
        return 1 < len(different) <= len(levels) and repeat and not is_of_others

    def _can_be_levels(self, column: str) -> bool:
        """Return whether a column has few words, or whole numbers where its heading may mean much else."""
        cells = self._cells[column]
        n_words = len(set(map(plain, cells)))
        is_of_others = self._content(column).are_labels or are_clocks(cells)
        if bare_heading(column) in VAGUE and not meanings_of_numbers(cells, self._words.codebook.level_names):
            return False
        return 0 < n_words <= MOST_WORDS and not is_of_others

    def explain(self) -> None:
        """Say what words of labels mean that are no labels, so that the whole table can be read."""
        self._explain_headings()
        self._explain_levels()
        self._explain_concepts()
        self._explain_errors()

    def _explain_headings(self) -> None:
        """Say what headings of marks mean that are no words of the codebook."""
        levels = self.proposal.columns.get("level", ())
        headings = [column for column in levels if label_of_heading(column, self._words)]
        headings += self.proposal.columns.get("concepts", ())
        headings = [column for column in headings if are_marks(self._cells[column])]
        for name in self.proposal.wide:
            own = columns_headed_by(name, self._table.columns)
            headings += [without_name(name, column) for column in own if self._is_marked_by(name, column)]
        for heading in headings:
            if heading and not label_of_heading(heading, self._known):
                self.proposal.words[heading] = label_of_heading(heading, self._words) or UNKNOWN_LABEL

    def _is_marked_by(self, annotator: str, column: str) -> bool:
        """Return whether a column of an annotator is headed by a label, and holds marks."""
        is_headed = bool(label_of_heading(without_name(annotator, column), self._words))
        return is_headed and are_marks(self._cells[column])

    def _explain_levels(self) -> None:
        """Say what words in columns of levels mean that the codebook does not have."""
        columns = [
            *self.proposal.columns.get("level", ()),
            *self._read_levels(),
            *self._of_annotators("level"),
        ]
        unknown = Counter[str]()
        n_known = 0
        for column in columns:
            if column in self._marks:
                continue
            for cell in self._cells[column]:
                if self._is_known(cell):
                    n_known += 1
                else:
                    unknown[without_zeros(cell)] += 1
        if not unknown:
            return
        meanings = meanings_of_numbers(list(unknown), self._words.codebook.level_names)
        if meanings and not n_known and not all(map(self._words.level_of, unknown)):
            self.proposal.words |= meanings
            self.proposal.held.append(f"levels as numbers ({', '.join(sorted(unknown))})")
            lowest, *_, highest = meanings.items()
            self.proposal.doubts.append(
                f"if {lowest[0]} is {lowest[1]} and {highest[0]} is {highest[1]}; else change --word"
            )
            return
        is_proposed = bool(self.proposal.columns.get("level") or self.proposal.wide)
        self._propose_words(self._parts_of_levels(unknown), is_proposed=is_proposed)

    def _parts_of_levels(self, cells: Mapping[str, int]) -> Counter[str]:
        """Count the words that are not known of cells, which may hold concepts beside a level."""
        words = Counter[str]()
        for text, n in cells.items():
            if self._words.level_of(text) or self._words.labels_of(text) is None:
                words[text] += n
                continue
            for part in self._words.parts_of(text):
                if not self._known.level_of(part) and not self._known.concept_of(part):
                    words[part] += n
        return words

    def _explain_concepts(self) -> None:
        """Say what words in columns of concepts mean that the codebook does not have."""
        names = self._named_columns("concepts")
        if not names and "concepts" in self._table.columns and not self._given.has_none_of("concepts"):
            names = ["concepts"]
        columns = [*self.proposal.columns.get("concepts", ()), *names, *self._of_annotators("concepts")]
        words = Counter[str]()
        for column in columns:
            if is_of_marks(self._table, column, self._words) or self._is_marked(column):
                for cell in self._cells[column]:  # of marks alone what is neither yes nor no is asked for
                    if plain(cell) not in YES | NO and not self._known.concept_of(cell):
                        words[cell] += 1
                continue
            for parts in listed_parts(self._cells[column], self._words):
                for part in parts:
                    if not self._known.concept_of(part) and not self._known.is_no_concept(part):
                        words[part] += 1
        is_proposed = bool(self.proposal.columns.get("concepts") or self.proposal.wide)
        self._propose_words(words, is_proposed=is_proposed)

    def _of_annotators(self, role: str) -> list[str]:
        """Return the columns of levels, or of concepts, that annotators have of their own."""
        columns = []
        for name in (*self.proposal.wide, *self._given.wide):
            for column in columns_headed_by(name, self._table.columns):
                heading = without_name(name, column)
                if role_of_heading(heading) == role and not label_of_heading(heading, self._words):
                    columns.append(column)
        return columns

    def _propose_words(self, words: Counter[str], *, is_proposed: bool) -> None:
        """Propose what words mean, and ask a person about those of which nothing is known.

        Words of columns that are read already, in a few rows, are left to whom reads the rows: it names them.
        """
        texts = [text for text, _ in words.most_common()]
        known = {text: self._words.level_of(text) or self._words.concept_of(text) for text in texts}
        is_left = not is_proposed and not self.proposal.held and not any(known.values())
        if not texts or (is_left and words.total() <= SHOWN_PROBLEMS):
            return
        near = {text: label_near(text, self._words) for text in texts if not known[text]}
        for text in texts:
            self.proposal.words[text] = known[text] or near[text] or UNKNOWN_LABEL
        translated = [f"{text!r} as {label}" for text, label in known.items() if label]
        mistyped = [f"{text!r} as {label}" for text, label in near.items() if label]
        asked = [text for text, label in near.items() if not label]
        if translated:
            shown = first_few(translated, SHOWN)
            self.proposal.doubts.append(f"translated, or explained by the table: {shown}")
        if mistyped:
            self.proposal.doubts.append(f"mistyped, it seems: {', '.join(mistyped)}; else change --word")
        if asked:
            self._ask_for_words(words, asked)
        elif not self.proposal.held:
            self.proposal.held.append(f"labels in other words ({_shown_words(words, texts)})")

    def _ask_for_words(self, words: Mapping[str, int], asked: Sequence[str]) -> None:
        """Ask a person what words mean."""
        codebook = self._words.codebook
        shown = _shown_words(words, asked)
        self.proposal.held.append(f"words that the codebook {codebook.name!r} does not have ({shown})")
        labels = ", ".join([*codebook.level_names, *codebook.concept_names])
        doubt = (
            f"in place of {UNKNOWN_LABEL} type which level or concept a word is ({labels}), "
            "nothing where it is none; or make a codebook of the table's words with `obygaze codebook guess`"
        )
        if doubt not in self.proposal.doubts:
            self.proposal.doubts.append(doubt)

    def _explain_errors(self) -> None:
        """Propose to read a spreadsheet's errors in columns of labels as no label, and say where they are."""
        columns = {*self._columns_with_labels(), *self._read_levels(), *self._named_columns("concepts")}
        places: dict[str, str] = {}
        for row in self._table.rows:
            for column in sorted(columns):
                cell = row.cells[column].strip()
                if is_unreadable(cell):
                    places.setdefault(cell, f"line {row.line}, column {column}")
        if not places or not self.proposal.held:
            return
        for cell, place in places.items():
            self.proposal.words[cell] = ""
            self.proposal.doubts.append(f"{place}: {cell!r} cannot be read, and is taken as no label")

    def _columns_with_labels(self) -> list[str]:
        """Return the columns of labels that are proposed."""
        own = [column for name in LABEL_COLUMNS for column in self.proposal.columns.get(name, ())]
        for name in self.proposal.wide:
            own += columns_headed_by(name, self._table.columns)
        return own

    def _read_levels(self) -> list[str]:
        """Return the columns that are read as levels already, by a person's headings or by ours."""
        named = self._named_columns("level")
        if not named and "level" in self._table.columns:
            named = ["level"]
        return [column for column in named if not is_of_marks(self._table, column, self._words)]

    def _is_known(self, cell: str) -> bool:
        words = self._known
        is_label = bool(words.level_of(cell)) or words.labels_of(cell) is not None
        return is_label or words.is_no_level(cell)

    def _is_wide(self, name: str) -> bool:
        """Return whether levels are in columns of annotators."""
        return name == "level" and bool(self.proposal.wide or self._given.wide)

    # --- films and people
    def films(self) -> None:
        """Find the column that says which film, or which file, a row is of."""
        reading = self._file.reading
        if self._has("video") or reading.movie:
            return
        files = [column for column in self._rest if are_files(self._cells[column])]
        headed = self._meant("movie", lambda column: column not in files and self._can_be_films(column))
        if files:
            best = self._meant("video", files.__contains__) or files[0]
            self._take("video", [best])
            where = self.proposal.also if self._has("movie") else self.proposal.held
            where.append(f"files ({best!r})")
        if self._has("movie"):
            return
        if not files:
            headed = headed or self._sheet() or self._only_names()
        if headed:
            self._take("movie", [headed])
            if not files:
                self.proposal.held.append(f"films ({headed!r})")
        elif not files and not self._take_ids():
            self.proposal.movie = self._film_by_title() or self._file.path.stem
            self.proposal.held.append("rows of one film (no column video or movie says which)")
            if not self._film_by_title():
                self.proposal.doubts.append("--movie is proposed by the file's name: give the film's")

    def _sheet(self) -> str:
        """Return the column of the names of sheets, or of sections, where a table has several."""
        return next((name for name in (SECTION, SHEET) if name in self._rest), "")

    def _take_ids(self) -> bool:
        """Read a column of ids as the files of a table without times; return whether there is one."""
        column = "" if self._has(START) else self._meant("clip_id", self._are_different)
        if column:
            self._take("video", [column])
            self.proposal.held.append(f"files ({column!r})")
        return bool(column)

    def _are_different(self, column: str) -> bool:
        cells = self._cells[column]
        return bool(cells) and len(set(cells)) == len(cells) and not self._content(column).are_labels

    def _can_be_films(self, column: str) -> bool:
        cells = self._cells[column]
        is_of_labels = self._content(column).are_labels
        return bool(cells) and not is_of_labels and not are_clocks(cells)

    def _only_names(self) -> str:
        """Return the first column, where it is of names that repeat and no other meaning fits; else ""."""
        columns = [column for column in self._rest if self._has_names(column)]
        headed = [column for column in columns if not names_of_heading(column)]
        return headed[0] if headed and headed[0] == self._table.columns[0] else ""

    def _has_names(self, column: str) -> bool:
        """Return whether a column has names: texts in every row, fewer of them than rows."""
        cells = self._cells[column]
        are_texts = all(number_of(cell) != number_of(cell) for cell in cells)
        repeats = len(set(cells)) < len(cells) or len(cells) == 1
        return are_texts and repeats and len(cells) == len(self._table.rows) and not are_marks(cells)

    def _film_by_title(self) -> str:
        return said_above(self._titles, "movie")

    def annotators(self) -> None:
        """Find who annotated: the column that is headed so, or the one that tells repeated spans apart."""
        if self._has("annotator") or self._annotator or self.proposal.wide or self._given.wide:
            return
        column = self._meant("annotator", self._can_be_people)
        if not column and self._spans_repeat(()) and not self._has_one_label_a_row():
            people = [name for name in self._rest if self._can_be_people(name)]
            several = [name for name in people if self._n_different(name) < len(self._cells[name])]
            apart = [name for name in several if not self._spans_repeat((name,))]
            column = min(apart, key=self._n_different, default="")
        if column:
            is_needed = self._spans_repeat(())
            self._take("annotator", [column])
            where = self.proposal.held if is_needed else self.proposal.also
            where.append(f"annotators ({column!r})")
        else:
            self.proposal.annotator = said_above(self._titles, "annotator")

    def _can_be_people(self, column: str) -> bool:
        """Return whether a column can name annotators: no labels, no numbers with decimals, few names."""
        cells = self._cells[column]
        n_names = len(set(map(plain, cells)))
        is_of_labels = self._content(column).are_labels
        is_text = whole_numbers(cells) is not None or not are_times(cells)
        return bool(cells) and not is_of_labels and is_text and n_names <= max(MOST_WORDS, len(cells) // 4)

    def _n_different(self, column: str) -> int:
        return len(set(map(plain, self._cells[column])))

    def _has_one_label_a_row(self) -> bool:
        """Return whether rows of one span differ in the label that they say, not in who says it."""
        columns = [*self.proposal.columns.get("level", ()), *self._read_levels()]
        return any(self._content(column).are_both for column in columns)

    def _spans_repeat(self, more: Sequence[str]) -> bool:
        """Return whether two rows are of one span, or of one whole film, and equal in some more columns."""
        names = ("clip_id", "movie", "video", START, END, DURATION)
        columns = [column for name in names for column in self._column_of(name)]
        of_what = self._column_of(START) or self._column_of("video") or self._column_of("movie")
        keys = []
        for row in self._table.rows:
            key = tuple(row.cells[column].strip() for column in (*columns, *more))
            if any(row.cells[column].strip() for column in of_what):
                keys.append(key)
        return len(set(keys)) < len(keys)

    def _column_of(self, name: str) -> list[str]:
        if name in self._table.columns:
            return [name]
        proposed = self.proposal.columns.get(name, [])
        return [column for column in proposed if column in self._table.columns]


def _shown_words(words: Mapping[str, int], shown: Sequence[str]) -> str:
    return first_few([f"{text!r:.40} ({words[text]})" for text in shown], SHOWN)


def _is_exact(column: str, name: str) -> bool:
    return bare_heading(column) in KNOWN_HEADINGS.get(name, ())


# --- annotators
# ---------------------------------------------------------------------------
def annotators_of(levels: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Name the annotators who have a column of levels each: by its heading without a word for levels.

    Where the names would head columns of levels of another, headings are taken whole.
    """
    roles = {text for name in ("level", "concepts") for text in KNOWN_HEADINGS[name]}
    names = []
    for heading in levels:
        name = heading
        for role in sorted(roles, key=len, reverse=True):
            shorter = without_name(role, name)
            if shorter and shorter != name:
                name = shorter
                break
        names.append(name)
    for name, heading in zip(names, levels, strict=True):
        if [column for column in levels if column in columns_headed_by(name, columns)] != [heading]:
            return list(levels)
    if len(set(map(plain, names))) < len(names):
        return list(levels)
    return names


# --- words
# ---------------------------------------------------------------------------
def meanings_of_numbers(cells: Sequence[str], levels: Sequence[str]) -> dict[str, str]:
    """Propose which level each number is, from low to high: counted from 0, or else from 1.

    Examples
    --------
    >>> meanings_of_numbers(["0", "2"], ["EN", "HN", "S"]), meanings_of_numbers(["3", "1"], ["EN", "HN", "S"])
    ({'0': 'EN', '1': 'HN', '2': 'S'}, {'1': 'EN', '2': 'HN', '3': 'S'})
    """
    numbers = whole_numbers(cells)
    if not numbers:
        return {}
    first = 0 if numbers[0] == 0 else 1
    if numbers[-1] - first >= len(levels):
        return {}
    return {str(number): level for number, level in enumerate(levels, start=first)}


# --- titles
# ---------------------------------------------------------------------------
def said_above(titles: Iterable[Sequence[str]], name: str) -> str:
    """Return what a title row says of all rows, such as `Film: Vertigo`; "" if none does."""
    for cells in titles:
        filled = [cell.strip() for cell in cells if cell.strip()]
        texts = [part for cell in filled for part in cell.partition(":")[::2] if part.strip()]
        for heading, text in pairwise(texts):
            if bare_heading(heading) in KNOWN_HEADINGS[name]:
                return text.strip().strip('"')
    return ""
