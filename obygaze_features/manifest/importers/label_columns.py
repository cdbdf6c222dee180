"""Find the columns of a table that hold levels and concepts: labels, marks, one annotator each."""

from collections.abc import Sequence
from typing import Final

from obygaze_features.manifest.importers.column_contents import (
    are_clocks,
    are_files,
    are_marks,
    are_times,
    label_of_heading,
    whole_numbers,
)
from obygaze_features.manifest.importers.proposal import SHOWN, option
from obygaze_features.manifest.importers.table_rows import SUMS
from obygaze_features.manifest.importers.unread_columns import MOST_WORDS, UnreadColumns, meanings_of_numbers
from obygaze_features.manifest.importers.word_guesses import are_few_words, are_lists, listed_parts
from obygaze_features.manifest.spans.headings import (
    KNOWN_HEADINGS,
    bare_heading,
    columns_headed_by,
    names_of_heading,
    without_name,
)
from obygaze_features.manifest.spans.names import plain
from obygaze_features.text import first_few

OF_ALL: Final = {
    "agree", "agreed", "agreement", "consensus", "majority", "majority vote", "mode", "modus", "final",
    "kappa", "übereinstimmung", "konsens", "mehrheit", "accord", "majorité", "accordo", "maggioranza",
    "acuerdo", "mayoría", "difference", "diff", "differenz", "différence",
}  # fmt: skip
"""Headings of columns beside those of annotators, which are computed of them."""

MOST_SHOWN: Final = 12
"""Columns that a sentence names."""

VAGUE: Final = {
    "note", "code", "value", "wert", "valeur", "valor", "valore", "annotation", "category", "kategorie",
    "catégorie", "categorie", "categoría", "categoria", "class", "klasse", "classe", "score", "scale",
    "skala", "échelle", "label", "labels",
}  # fmt: skip
"""Headings that mean levels only where the cells do too."""


class LabelColumns:
    """Finds levels and concepts, in words of the codebook first, then in others."""

    def __init__(self, unread: UnreadColumns) -> None:
        self._unread = unread
        self._table = unread.table
        self._given = unread.given
        self._annotator = unread.annotator
        self._cells = unread.cells
        self._words = unread.words
        self._proposal = unread.proposal

    def labels(self) -> None:
        """Find the columns of levels and concepts: of labels, of marks, of one annotator each."""
        self._take_levels(self._columns_of_levels())
        self._take_marks("level")
        concepts = [column for column in self._unread.rest if self._unread.content(column).are_concepts]
        self._take_concepts([column for column in concepts if column not in self._unread.marks])
        if self._lacks_levels():
            self._take_unknown_levels()
        if self._lacks_levels():
            self._take_unknown_annotators()
        if not self._has_columns_of_annotators():
            self._take_unknown_concepts()
        self._take_unknown_marks()
        if self._lacks_levels() and self._unread.has("concepts"):
            self._take_numbers()

    def _has_columns_of_annotators(self) -> bool:
        """Return whether annotators have columns of their own, as a person says or as it is proposed."""
        return bool(self._proposal.wide or self._given.wide)

    def _lacks_levels(self) -> bool:
        """Return whether no column of levels is read or proposed."""
        return not self._unread.has("level") and not self._has_columns_of_annotators()

    def _columns_of_levels(self) -> list[str]:
        """Return the columns that hold levels, or that people head so beside such."""
        if self._given.has_none_of("level"):
            return []
        levels = [
            column
            for column in self._unread.rest
            if self._unread.content(column).are_levels
            and column not in self._unread.marks
            and not self._is_of_others(column)
        ]
        if self._given.wide:
            return levels
        return [*levels, *self._headed_levels(levels)]

    def _take_levels(self, columns: Sequence[str]) -> None:
        """Read columns of levels: of annotators, of one, or none where levels are read already."""
        if not columns:
            return
        if self._are_of_annotators():
            self._take_annotators(["level", *columns])
        elif self._unread.has("level") or self._given.wide:
            shown = ", ".join(self._unread.counted(column) for column in columns)
            typed = " or ".join(option("level", column) for column in columns)
            self._proposal.also.append(f"columns that are not read hold levels too ({shown}): {typed}")
            self._unread.rest = [column for column in self._unread.rest if column not in columns]
        elif len(columns) > 1:
            self._take_annotators(columns)
        else:
            self._take_held("level", columns, "levels")

    def _take_numbers(self) -> None:
        """Find the one column of numbers beside concepts that can be levels, where no other is."""
        if self._given.has_none_of("level"):
            return
        names = self._words.codebook.level_names
        columns = [
            column for column in self._unread.rest if self._has_few(column) and not names_of_heading(column)
        ]
        columns = [column for column in columns if meanings_of_numbers(self._cells[column], names)]
        if len(columns) == 1:
            self._unread.take("level", columns)
            self._proposal.held.append(f"numbers that may be levels ({columns[0]!r})")

    def _are_of_annotators(self) -> bool:
        """Return whether levels beside a column `level` are another annotator's: nobody is named."""
        is_ours = "level" in self._table.columns and not self._given.columns.get("level")
        is_signed = self._unread.has("annotator") or bool(
            self._unread.meant("annotator", self._unread.can_be_people)
        )
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
        if self._unread.has("level") or self._given.has_none_of("level"):
            return []
        can_be = [column for column in self._unread.rest if column not in {*levels, *self._unread.marks}]
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

    def _take_held(self, name: str, columns: Sequence[str], what: str) -> None:
        """Let columns of labels stand for one of ours, and say what they hold."""
        self._unread.take(name, columns)
        shown = first_few([self._unread.counted(column) for column in columns], SHOWN)
        self._proposal.held.append(f"{what} ({shown})")

    def _take_annotators(self, levels: Sequence[str]) -> None:
        """Name the annotators who have a column of levels each; what else they head is theirs too."""
        annotators = annotators_of(levels, self._table.columns)
        own = [column for name in annotators for column in columns_headed_by(name, self._unread.rest)]
        self._unread.rest = [column for column in self._unread.rest if column not in {*own, *levels}]
        self._unread.marks = [column for column in self._unread.marks if column not in own]
        self._proposal.wide = annotators
        self._proposal.held.append(f"levels of {len(annotators)} annotators ({_shown(levels)})")

    def _take_marks(self, name: str) -> None:
        """Find the columns that are headed by levels, or by concepts, and hold marks."""
        names = self._words.codebook.level_names
        own = [
            column
            for column in self._unread.marks
            if column in self._unread.rest
            and (label_of_heading(column, self._words) in names) == (name == "level")
        ]
        if not own:
            return
        shown = _shown(own)
        if self._given.has_none_of(name):
            return
        if (
            self._unread.is_read(name)
            or (name == "level" and self._unread.has("level"))
            or self._is_wide(name)
        ):
            typed = " ".join(option(name, column) for column in own)
            self._proposal.also.append(f"columns headed by labels are not read ({shown}): {typed}")
            return
        self._unread.take(name, own)
        self._proposal.held.append(f"marks of {name if name == 'concepts' else 'levels'} ({shown})")

    def _take_unknown_concepts(self) -> None:
        """Find columns of concepts in other words: headed so, or lists of a few words again and again."""
        if self._given.has_none_of("concepts"):
            return
        can_be = [
            column
            for column in self._unread.rest
            if column not in self._unread.marks and self._can_be_concepts(column)
        ]
        headed = [column for column in can_be if "concepts" in names_of_heading(column)]
        has_other = self._unread.is_read("concepts") or "concepts" in self._proposal.columns
        lists = [column for column in can_be if column not in headed and not names_of_heading(column)]
        lists = [column for column in lists if are_lists(self._cells[column], self._words)]
        if has_other and (headed or lists):
            typed = " ".join(option("concepts", column) for column in (*headed, *lists))
            shown = _shown([*headed, *lists])
            self._proposal.also.append(f"columns that may be of concepts are not read ({shown}): {typed}")
        elif headed or lists:
            columns = headed or lists[:1]
            self._unread.take("concepts", columns)
            self._proposal.held.append(f"concepts in other words ({_shown(columns)})")

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
            for column in self._unread.rest
            if column not in self._unread.marks
            and self._unread.is_marked(column)
            and not names_of_heading(column)
        ]
        if not columns:
            return
        order = list(self._table.columns)
        beside = [
            order.index(column)
            for column in self._proposal.columns.get("concepts", ())
            if self._unread.is_marked(column)
        ]
        has_labels = self._unread.has("level", "concepts") or self._given.wide or self._proposal.wide
        near = [
            column
            for column in columns
            if beside and min(beside) - 1 <= order.index(column) <= max(beside) + 1
        ]
        taken = near if has_labels else columns
        taken = [column for column in taken if bare_heading(column).rstrip("?") not in {*OF_ALL, *SUMS}]
        if taken:
            self._unread.take("concepts", taken)
            self._proposal.held.append(f"marks under other words ({_shown(taken)})")
        rest = [column for column in columns if column not in taken]
        if rest:
            shown = _shown(rest)
            typed = " ".join(option("concepts", column) for column in rest)
            self._proposal.also.append(
                f"columns of marks are not read ({shown}): {typed}, if they are of concepts"
            )

    def _take_concepts(self, columns: Sequence[str]) -> None:
        """Read columns of concepts and of their marks."""
        if self._given.has_none_of("concepts"):
            return
        if columns and self._unread.is_read("concepts"):
            shown = first_few([self._unread.counted(column) for column in columns], SHOWN)
            typed = " ".join(option("concepts", column) for column in columns)
            self._proposal.also.append(f"columns that are not read hold concepts too ({shown}): {typed}")
        elif columns:
            self._take_held("concepts", columns, "concepts")
        self._take_marks("concepts")

    def _take_unknown_levels(self) -> None:
        """Find a column of levels by its heading, where its few words are not of the codebook."""
        if self._given.has_none_of("level"):
            return
        column = self._unread.meant("level", self._can_be_levels)
        if column:
            self._unread.take("level", [column])
            self._proposal.held.append(f"levels in other words ({column!r})")

    def _take_unknown_annotators(self) -> None:
        """Find columns that have the same few words or numbers, none of them of the codebook."""
        if self._given.has_none_of("level"):
            return
        columns = [
            column for column in self._unread.rest if not names_of_heading(column) and self._has_few(column)
        ]
        words = {column: set(map(plain, self._cells[column])) for column in columns}
        alike = [
            column
            for column in columns
            if any(_are_alike(words[column], words[other]) for other in columns if other != column)
        ]
        if len(alike) > 1:
            self._take_annotators(alike)

    def _has_few(self, column: str) -> bool:
        """Return whether the cells of a column are few words, or few numbers that can be levels."""
        cells = self._cells[column]
        different = set(map(plain, cells))
        levels = self._words.codebook.level_names
        is_of_others = are_marks(cells) or are_clocks(cells) or self._unread.content(column).are_concepts
        are_numbers = whole_numbers(cells) is not None
        if are_numbers and not meanings_of_numbers(cells, levels):
            return False
        repeat = are_numbers or len(different) < len(cells)
        return 1 < len(different) <= len(levels) and repeat and not is_of_others

    def _can_be_levels(self, column: str) -> bool:
        """Return whether a column has few words, or whole numbers where its heading may mean much else."""
        cells = self._cells[column]
        n_words = len(set(map(plain, cells)))
        is_of_others = self._unread.content(column).are_labels or are_clocks(cells)
        if bare_heading(column) in VAGUE and not meanings_of_numbers(cells, self._words.codebook.level_names):
            return False
        return 0 < n_words <= MOST_WORDS and not is_of_others

    def _is_wide(self, name: str) -> bool:
        """Return whether levels are in columns of annotators."""
        return name == "level" and bool(self._proposal.wide or self._given.wide)


def _shown(columns: Sequence[str]) -> str:
    """Write the first of some columns, and how many there are besides."""
    return first_few([f"{column!r:.60}" for column in columns], MOST_SHOWN)


def _are_alike(words: set[str], others: set[str]) -> bool:
    """Return whether most words of a column are those of another."""
    return 2 * len(words & others) > len(words)


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
        if set(columns_headed_by(name, columns)) & set(levels) != {heading}:
            return list(levels)
    if len(set(map(plain, names))) < len(names):
        return list(levels)
    return names
