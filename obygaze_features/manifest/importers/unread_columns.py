"""Hold the columns of a table that nothing reads yet: what they hold, and what they are proposed to be."""

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import pairwise

from obygaze_features.identity import plain
from obygaze_features.manifest.importers.column_contents import (
    YES,
    LabelCounts,
    are_files,
    are_marks,
    are_times,
    count_labels,
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
    listed_parts,
)
from obygaze_features.manifest.spans.headings import KNOWN_HEADINGS, bare_heading, meanings_of_heading
from obygaze_features.manifest.spans.label_words import LabelWords
from obygaze_features.manifest.spans.names import has_doubt
from obygaze_features.manifest.spans.span_file import SpanFile

MAX_WORDS = 12
"""A column of levels has at most so many different words: one with more holds names or texts."""

MAX_ASKED = 40
"""A column with more different words is not searched for labels in other words, as it holds texts."""


class UnreadColumns:
    """The columns of a table that the import does not read yet, and the proposal of what they mean.

    The classes that find meanings (`TimeColumns`, `LabelColumns`, ...) call `propose`, which moves a column
    from `remaining` to `proposal`.

    Attributes
    ----------
    file, table, titles
        The file, its table, and the rows of titles above the table.
    headings
        Headings that the person's options name.
    annotator
        The annotator's name from the person's option; "" if it is not given.
    known_words
        The words of labels that the codebook has.
    words
        The same, with translations and guesses of what the table's own words mean.
    cells
        Column -> its cells that are neither empty nor errors.
    remaining
        Columns that have no meaning yet.
    mark_columns
        Columns that have a label as heading, and as cells marks that say yes or no (1 and 0, x).
    proposal
        The meanings that were found so far.
    """

    def __init__(
        self, file: SpanFile, layout: Layout, read: Iterable[str], words: LabelWords, annotator: str
    ) -> None:
        """Find the columns that are not among `read`, the columns that the import reads.

        Parameters
        ----------
        file, layout
            The file, and its table with the titles above it.
        read
            The columns that are read, by their names in the table.
        words
            The words of labels that the codebook has.
        annotator
            The annotator's name from the person's option; "" if it is not given.
        """
        # 1. What is given.
        self.file = file
        self.table = layout.table
        self.titles = layout.titles
        self.headings = file.reading.headings
        self.annotator = annotator
        self.cells = {column: readable_cells(self.table, column) for column in self.table.columns}
        self.known_words = words

        # 2. What follows from it: the guesses from the cells, the columns of marks from the guesses.
        self.words = self._words_with_guesses()
        read_columns = set(read)
        unread = [column for column in self.table.columns if column not in read_columns]
        self.remaining = [column for column in unread if not self._is_explained_as_no_label(column)]
        self.mark_columns = [name for name in self.remaining if is_of_marks(self.table, name, self.words)]

        # 3. What is found out later. Facts on a column are cached, as several classes ask for them and a
        # column may be long.
        self.proposal = Proposal()
        self._label_counts: dict[str, LabelCounts] = {}
        self._are_times: dict[str, bool] = {}
        self._lists: dict[str, list[list[str]]] = {}

    def _words_with_guesses(self) -> LabelWords:
        """Return the words of the codebook, with translations and guesses of what the table's words mean.

        Guesses come from the table's legend, from its cells and from the headings of its columns of marks. If
        two of them differ on a word, the one that comes first in this order counts; of cells and headings,
        those of the columns on the left.
        """
        translated_words = self.known_words.with_guesses()
        legend = [*self.titles, *legend_rows(self.file.other_sheets)]
        guesses = explained_words(legend, self.table.columns, translated_words)
        for column, cells in self.cells.items():
            for text, label in _guesses_of_cells(cells, translated_words).items():
                guesses.setdefault(text, label)
            if cells and are_marks(cells):
                label = _label_of_marks(column, translated_words)
                if label:
                    guesses.setdefault(column, label)
        return self.known_words.with_guesses(guesses)

    def _is_explained_as_no_label(self, column: str) -> bool:
        """Return whether a column holds marks, and the person says that its heading stands for no label."""
        return self.known_words.is_explained_as_nothing(column) and are_marks(self.cells[column])

    def propose(self, name: str, columns: Sequence[str], *, needed: str = "") -> None:
        """Propose to read columns of the table as a manifest's column, and remove them from `remaining`.

        If rows lack their times, labels or films without these columns, `needed` describes them, and the
        import is refused until the person names them (`Proposal.require`).
        """
        if needed:
            self.proposal.require(needed)
        self.proposal.columns.setdefault(name, []).extend(columns)
        self.set_aside(columns)

    def set_aside(self, columns: Collection[str]) -> None:
        """Look for no further meaning in some columns."""
        self.remaining = [column for column in self.remaining if column not in columns]

    def person_denies(self, name: str) -> bool:
        """Return whether the person says that the table has no levels, or no concepts: `--column level=`.

        Then no column is proposed as these, whatever its cells look like.
        """
        return self.headings.has_none_of(name)

    def has_column_for(self, *names: str) -> bool:
        """Return whether one of a manifest's columns is in the table, named by the person, or proposed."""
        return any(self.is_read(name) or name in self.proposal.columns for name in names)

    def is_read(self, name: str) -> bool:
        """Return whether a manifest's column is in the table, or an option names columns for it."""
        return name in self.table.columns or bool(self.named_columns(name))

    def named_columns(self, name: str) -> list[str]:
        """Return the table's columns that the person's options read as a manifest's column."""
        named = {plain(heading) for heading in self.headings.columns.get(name, ())}
        return [column for column in self.table.columns if plain(column) in named]

    def column_meant_as(self, name: str, fits: Callable[[str], bool]) -> str:
        """Return the unread column whose heading most likely means a manifest's column; "" if none does.

        `fits` tells whether a column's cells can be of that kind.
        """
        ranked = []
        for column in self.remaining:
            # A heading may mean several of a manifest's columns, the likeliest first.
            meanings = meanings_of_heading(column)
            if name in meanings and fits(column):
                # Of equally likely headings a whole one, such as `Film`, comes before `Film (my list)`.
                is_inexact = bare_heading(column) not in KNOWN_HEADINGS.get(name, ())
                ranked.append(((meanings.index(name), is_inexact), column))
        if not ranked:
            return ""
        _, likeliest = min(ranked, key=lambda entry: entry[0])
        return likeliest

    def label_counts(self, column: str) -> LabelCounts:
        """Return how many cells of a column are labels, translated and guessed ones included."""
        if column not in self._label_counts:
            self._label_counts[column] = count_labels(self.cells[column], self.words)
        return self._label_counts[column]

    def is_of_times(self, column: str) -> bool:
        """Return whether most cells of a column are times."""
        if column not in self._are_times:
            self._are_times[column] = are_times(self.cells[column])
        return self._are_times[column]

    def lists(self, column: str) -> list[list[str]]:
        """Return for each cell of a column the words that it lists, [n_cells][n_words]."""
        if column not in self._lists:
            self._lists[column] = listed_parts(self.cells[column], self.words)
        return self._lists[column]

    def with_label_count(self, column: str) -> str:
        """Describe a column by how many of its cells are labels: `'Note': 8 of 9 cells`."""
        counts = self.label_counts(column)
        return f"{column!r}: {counts.n_labels} of {counts.n_cells} cells"

    def has_yes_and_no(self, column: str) -> bool:
        """Return whether a column holds marks of two kinds: yes and no, or yes and empty cells."""
        cells = self.cells[column]
        if not are_marks(cells):
            return False
        marks = {plain(cell) for cell in cells}
        has_yes = not marks.isdisjoint(YES)
        has_empty_cells = len(cells) < len(self.table.rows)
        has_anything_else = len(marks) > 1 or has_empty_cells
        return has_yes and has_anything_else

    def can_be_people(self, column: str) -> bool:
        """Return whether a column can name annotators: few texts, not labels, marks, times or files.

        They are few if there are at most `MAX_WORDS`, or if each is in four rows on average. Integers may be
        the numbers of annotators, though they could be read as times.
        """
        cells = self.cells[column]
        if not cells or self.label_counts(column).are_labels:
            return False
        if are_files(cells):
            return False
        are_integers = whole_numbers(cells) is not None
        if not are_integers and (self.is_of_times(column) or are_marks(cells)):
            return False
        n_names = len(set(map(plain, cells)))
        return n_names <= max(MAX_WORDS, len(cells) // 4)

    def read_levels(self) -> list[str]:
        """Return the columns that are read as levels without a proposal, by an option or their heading.

        Columns of marks, such as x or 1 in the rows of a level, are left out.
        """
        columns = self.named_columns("level")
        if not columns and "level" in self.table.columns:
            columns = ["level"]
        return [column for column in columns if not is_of_marks(self.table, column, self.words)]

    def columns_for(self, name: str) -> list[str]:
        """Return the table's columns that are read, or proposed to be read, as a manifest's column."""
        if name in self.table.columns:  # a column that is read has its manifest's name
            return [name]
        proposed = self.proposal.columns.get(name, [])
        return [column for column in proposed if column in self.table.columns]


def _guesses_of_cells(cells: Sequence[str], words: LabelWords) -> dict[str, str]:
    """Return text -> label for the cells of a column that look like a label (`label_like`).

    It is empty for a column of very many different texts, which are no labels.
    """
    different_texts = list(dict.fromkeys(cells))
    if len(different_texts) > MAX_ASKED:
        return {}
    guesses = {}
    for text in different_texts:
        label = "" if has_doubt(text, words.codebook.spellings) else label_like(text, words)
        if label:
            guesses[text] = label
    return guesses


def _label_of_marks(column: str, words: LabelWords) -> str:
    """Return the label that the heading of a column of marks means, even if mistyped; "" if it means none."""
    label = label_like(column, words) or label_in_heading(column, words)
    if label:
        return label
    return label_near(bare_heading(column), words)


def value_in_titles(titles: Iterable[Sequence[str]], name: str) -> str:
    """Return what a title above a table says of all rows, such as its film; "" if no title says it.

    A title is a known heading with its value, in one cell (`Film: Vertigo`) or in two neighbouring cells.

    `name` is the manifest's column, such as `movie` or `annotator`.

    Examples
    --------
    >>> value_in_titles([["Film: Vertigo", ""]], "movie"), value_in_titles([["Film", "Vertigo"]], "movie")
    ('Vertigo', 'Vertigo')
    """
    for cells in titles:
        # `Film: Vertigo` in one cell becomes two texts, as if it were in two cells.
        texts = []
        for cell in cells:
            before_colon, _, behind_colon = cell.strip().partition(":")
            texts += [part for part in (before_colon, behind_colon) if part.strip()]
        for heading, value in pairwise(texts):
            if bare_heading(heading) in KNOWN_HEADINGS[name]:
                return value.strip().strip('"')
    return ""


def levels_by_number(cells: Sequence[str], levels: Sequence[str]) -> dict[str, str]:
    """Return the level that each number means in a column of integers: they count levels from low to high.

    The lowest level is 0 if the column has a 0, else 1. Empty if a cell is no integer, or if its highest
    number is higher than that of the highest level.

    Examples
    --------
    >>> levels_by_number(["0", "2"], ["EN", "HN", "S"]), levels_by_number(["3", "1"], ["EN", "HN", "S"])
    ({'0': 'EN', '1': 'HN', '2': 'S'}, {'1': 'EN', '2': 'HN', '3': 'S'})
    """
    numbers = whole_numbers(cells)
    if not numbers:
        return {}
    lowest = 0 if numbers[0] == 0 else 1
    highest = lowest + len(levels) - 1
    if numbers[-1] > highest:
        return {}
    return {str(number): level for number, level in enumerate(levels, start=lowest)}
