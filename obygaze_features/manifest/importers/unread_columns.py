"""Hold the columns of a table that nothing reads yet: what they hold, and what they are proposed to be."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from obygaze_features.manifest.importers.column_contents import (
    YES,
    Content,
    are_marks,
    are_times,
    content_of,
    is_of_marks,
    label_in_heading,
    readable_cells,
    whole_numbers,
)
from obygaze_features.manifest.importers.proposal import Proposal
from obygaze_features.manifest.importers.table_layout import Layout
from obygaze_features.manifest.importers.word_guesses import (
    explained_words,
    label_like,
    label_near,
    legend_rows,
)
from obygaze_features.manifest.spans.headings import KNOWN_HEADINGS, bare_heading, names_of_heading
from obygaze_features.manifest.spans.label_words import LabelWords
from obygaze_features.manifest.spans.names import plain
from obygaze_features.manifest.spans.span_file import SpanFile

MOST_WORDS = 12
"""Different words of a column that can be an ordered label: a column of more is of names or of texts."""

MOST_ASKED = 40
"""Different words of a column that are looked at for labels in other words."""


class UnreadColumns:
    """The columns of a table that nothing reads; each meaning that is found takes some of them.

    Attributes
    ----------
    file, table, titles
        What is read.
    given
        Headings that a person named.
    annotator
        Who annotated, as the person says.
    known_words, words
        Of the codebook; and with translations, and what the table's own words seem to be.
    cells
        Readable cells of each column of the table.
    rest
        Columns that nothing has taken.
    marks
        Those of them that hold marks of a label.
    proposal
        What was found.
    """

    def __init__(
        self, file: SpanFile, layout: Layout, read: Iterable[str], words: LabelWords, annotator: str
    ) -> None:
        self.file, self.table, self.titles = file, layout.table, layout.titles
        self.known_words, self.given, self.annotator = words, file.reading.headings, annotator
        is_read = set(read)
        self.rest = [column for column in self.table.columns if column not in is_read]
        self.cells = {column: readable_cells(self.table, column) for column in self.table.columns}
        self.words = self._guessing()
        self.rest = [column for column in self.rest if not self._is_no_label(column)]
        self.marks = [column for column in self.rest if is_of_marks(self.table, column, self.words)]
        self.proposal = Proposal()

    def _guessing(self) -> LabelWords:
        """Return the words of the codebook, with translations, and what the table's own words seem to be."""
        words = self.known_words.with_guesses()
        legend = [*self.titles, *legend_rows(self.file.other_sheets)]
        guesses = explained_words(legend, self.table.columns, words)
        for column, cells in self.cells.items():
            different = list(dict.fromkeys(cells))
            for text in different if len(different) <= MOST_ASKED else ():
                if label := label_like(text, words):
                    guesses.setdefault(text, label)
            if cells and are_marks(cells):
                heading = label_like(column, words) or label_in_heading(column, words)
                if label := heading or label_near(bare_heading(column), words):
                    guesses.setdefault(column, label)
        return self.known_words.with_guesses(guesses)

    def _is_no_label(self, column: str) -> bool:
        """Return whether a person says that a column of marks is of no label."""
        return self.known_words.is_explained_as_nothing(column) and are_marks(self.cells[column])

    def take(self, name: str, columns: Sequence[str]) -> None:
        """Let columns stand for one of ours."""
        self.proposal.columns.setdefault(name, []).extend(columns)
        self.rest = [column for column in self.rest if column not in columns]

    def has(self, *names: str) -> bool:
        """Return whether a column of ours is there, named by a person, or proposed."""
        return any(self.is_read(name) or name in self.proposal.columns for name in names)

    def is_read(self, name: str) -> bool:
        """Return whether a column of ours is there, or a person named the columns of its labels."""
        return name in self.table.columns or bool(self.named_columns(name))

    def named_columns(self, name: str) -> list[str]:
        """Return the columns that a person named for one of ours, by the headings that they have."""
        named = {plain(heading) for heading in self.given.columns.get(name, ())}
        return [column for column in self.table.columns if plain(column) in named]

    def meant(self, name: str, fits: Callable[[str], bool]) -> str:
        """Return the column that is headed as people head one of ours, and fits; "" if there is none."""
        ranked = []
        for column in self.rest:
            names = names_of_heading(column)
            if name in names and fits(column):
                ranked.append((names.index(name), not _is_exact(column, name), column))
        ranked.sort(key=lambda entry: entry[:2])
        return ranked[0][2] if ranked else ""

    def content(self, column: str) -> Content:
        """Say what labels a column holds."""
        return content_of(self.cells[column], self.words)

    def counted(self, column: str) -> str:
        """Write a column with how many of its cells are labels."""
        content = self.content(column)
        return f"{column!r}: {content.n_labels} of {content.n_cells} cells"

    def is_marked(self, column: str) -> bool:
        """Return whether a column says yes and no, or yes and nothing."""
        cells = {plain(cell) for cell in self.cells[column]}
        is_filled = len(self.cells[column]) == len(self.table.rows)
        return bool(cells & YES) and are_marks(self.cells[column]) and (len(cells) > 1 or not is_filled)

    def can_be_people(self, column: str) -> bool:
        """Return whether a column can name annotators: no labels, no numbers with decimals, few names."""
        cells = self.cells[column]
        n_names = len(set(map(plain, cells)))
        is_of_labels = self.content(column).are_labels
        is_text = whole_numbers(cells) is not None or not are_times(cells)
        return bool(cells) and not is_of_labels and is_text and n_names <= max(MOST_WORDS, len(cells) // 4)

    def read_levels(self) -> list[str]:
        """Return the columns that are read as levels already, by a person's headings or by ours."""
        named = self.named_columns("level")
        if not named and "level" in self.table.columns:
            named = ["level"]
        return [column for column in named if not is_of_marks(self.table, column, self.words)]

    def column_of(self, name: str) -> list[str]:
        """Return the columns of the table that are read, or proposed, as one of ours."""
        if name in self.table.columns:
            return [name]
        proposed = self.proposal.columns.get(name, [])
        return [column for column in proposed if column in self.table.columns]


def _is_exact(column: str, name: str) -> bool:
    return bare_heading(column) in KNOWN_HEADINGS.get(name, ())


def said_above(titles: Iterable[Sequence[str]], name: str) -> str:
    """Return what a title row says of all rows, such as `Film: Vertigo`; "" if none does."""
    for cells in titles:
        filled = [cell.strip() for cell in cells if cell.strip()]
        texts = [part for cell in filled for part in cell.partition(":")[::2] if part.strip()]
        for heading, text in pairwise(texts):
            if bare_heading(heading) in KNOWN_HEADINGS[name]:
                return text.strip().strip('"')
    return ""


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
