"""Propose what words of labels mean that the codebook does not have."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from obygaze_features.cells import is_unreadable
from obygaze_features.manifest.importers.column_contents import (
    NO,
    YES,
    are_marks,
    is_of_marks,
    label_of_heading,
)
from obygaze_features.manifest.importers.columns import role_of_heading
from obygaze_features.manifest.importers.proposal import SHOWN, UNKNOWN_LABEL
from obygaze_features.manifest.importers.unread_columns import UnreadColumns, meanings_of_numbers
from obygaze_features.manifest.importers.word_guesses import label_near, listed_parts
from obygaze_features.manifest.spans.headings import LABEL_COLUMNS, columns_headed_by, without_name
from obygaze_features.manifest.spans.names import plain, without_zeros
from obygaze_features.manifest.text_tables import SHOWN_PROBLEMS
from obygaze_features.text import first_few

MOST_COMPARED: Final = 200
"""Words, the most frequent ones, that are looked for among mistyped labels: each takes a millisecond."""


class WordProposals:
    """Says what words of labels mean that are no labels, so that the whole table can be read."""

    def __init__(self, unread: UnreadColumns) -> None:
        self._unread = unread
        self._table = unread.table
        self._known_words = unread.known_words
        self._given = unread.given
        self._cells = unread.cells
        self._words = unread.words
        self._proposal = unread.proposal

    def explain(self) -> None:
        """Say what words of labels mean that are no labels, so that the whole table can be read."""
        self._explain_headings()
        self._explain_levels()
        self._explain_concepts()
        self._explain_errors()

    def _explain_headings(self) -> None:
        """Say what headings of marks mean that are no words of the codebook."""
        levels = self._proposal.columns.get("level", ())
        headings = [column for column in levels if label_of_heading(column, self._words)]
        headings += self._proposal.columns.get("concepts", ())
        headings = [column for column in headings if are_marks(self._cells[column])]
        for name in self._proposal.wide:
            own = columns_headed_by(name, self._table.columns)
            headings += [without_name(name, column) for column in own if self._is_marked_by(name, column)]
        for heading in headings:
            if heading and not label_of_heading(heading, self._known_words):
                self._proposal.words[heading] = label_of_heading(heading, self._words) or UNKNOWN_LABEL

    def _is_marked_by(self, annotator: str, column: str) -> bool:
        """Return whether a column of an annotator is headed by a label, and holds marks."""
        is_headed = bool(label_of_heading(without_name(annotator, column), self._words))
        return is_headed and are_marks(self._cells[column])

    def _explain_levels(self) -> None:
        """Say what words in columns of levels mean that the codebook does not have."""
        columns = [
            *self._proposal.columns.get("level", ()),
            *self._unread.read_levels(),
            *self._of_annotators("level"),
        ]
        unknown = Counter[str]()
        n_known = 0
        for column in columns:
            if column in self._unread.marks:
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
            self._proposal.words |= meanings
            self._proposal.held.append(f"levels as numbers ({', '.join(sorted(unknown))})")
            lowest, *_, highest = meanings.items()
            self._proposal.doubts.append(
                f"if {lowest[0]} is {lowest[1]} and {highest[0]} is {highest[1]}; else change --word"
            )
            return
        is_proposed = bool(self._proposal.columns.get("level") or self._proposal.wide)
        self._propose_words(self._parts_of_levels(unknown), is_proposed=is_proposed)

    def _parts_of_levels(self, cells: Mapping[str, int]) -> Counter[str]:
        """Count the words that are not known of cells, which may hold concepts beside a level."""
        words = Counter[str]()
        for text, n in cells.items():
            if self._words.level_of(text) or self._words.labels_of(text) is None:
                words[text] += n
                continue
            for part in self._words.parts_of(text):
                if not self._known_words.level_of(part) and not self._known_words.concept_of(part):
                    words[part] += n
        return words

    def _explain_concepts(self) -> None:
        """Say what words in columns of concepts mean that the codebook does not have."""
        names = self._unread.named_columns("concepts")
        if not names and "concepts" in self._table.columns and not self._given.has_none_of("concepts"):
            names = ["concepts"]
        columns = [*self._proposal.columns.get("concepts", ()), *names, *self._of_annotators("concepts")]
        words = Counter[str]()
        for column in columns:
            if is_of_marks(self._table, column, self._words) or self._unread.is_marked(column):
                for cell in self._cells[column]:  # of marks alone what is neither yes nor no is asked for
                    if plain(cell) not in YES | NO and not self._known_words.concept_of(cell):
                        words[cell] += 1
                continue
            for parts in listed_parts(self._cells[column], self._words):
                for part in parts:
                    if not self._known_words.concept_of(part) and not self._known_words.is_no_concept(part):
                        words[part] += 1
        is_proposed = bool(self._proposal.columns.get("concepts") or self._proposal.wide)
        self._propose_words(words, is_proposed=is_proposed)

    def _of_annotators(self, role: str) -> list[str]:
        """Return the columns of levels, or of concepts, that annotators have of their own."""
        columns = []
        for name in (*self._proposal.wide, *self._given.wide):
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
        is_left = not is_proposed and not self._proposal.held and not any(known.values())
        if not texts or (is_left and words.total() <= SHOWN_PROBLEMS):
            return
        unknown = [text for text in texts if not known[text]]
        near = dict.fromkeys(unknown, "")
        near |= {text: label_near(text, self._words) for text in unknown[:MOST_COMPARED]}
        for text in texts:
            self._proposal.words[text] = known[text] or near[text] or UNKNOWN_LABEL
        translated = [f"{text!r} as {label}" for text, label in known.items() if label]
        mistyped = [f"{text!r} as {label}" for text, label in near.items() if label]
        asked = [text for text, label in near.items() if not label]
        if translated:
            shown = first_few(translated, SHOWN)
            self._proposal.doubts.append(f"translated, or explained by the table: {shown}")
        if mistyped:
            shown = first_few(mistyped, SHOWN)
            self._proposal.doubts.append(f"mistyped, it seems: {shown}; else change --word")
        if asked:
            self._ask_for_words(words, asked)
        elif not self._proposal.held:
            self._proposal.held.append(f"labels in other words ({_shown_words(words, texts)})")

    def _ask_for_words(self, words: Mapping[str, int], asked: Sequence[str]) -> None:
        """Ask a person what words mean."""
        codebook = self._words.codebook
        shown = _shown_words(words, asked)
        self._proposal.held.append(f"words that the codebook {codebook.name!r} does not have ({shown})")
        labels = ", ".join([*codebook.level_names, *codebook.concept_names])
        doubt = (
            f"in place of {UNKNOWN_LABEL} type which level or concept a word is ({labels}), "
            "nothing where it is none; or make a codebook of the table's words with `obygaze codebook guess`"
        )
        if doubt not in self._proposal.doubts:
            self._proposal.doubts.append(doubt)

    def _explain_errors(self) -> None:
        """Propose to read a spreadsheet's errors in columns of labels as no label, and say where they are."""
        columns = {
            *self._columns_with_labels(),
            *self._unread.read_levels(),
            *self._unread.named_columns("concepts"),
        }
        places: dict[str, str] = {}
        for row in self._table.rows:
            for column in sorted(columns):
                cell = row.cells[column].strip()
                if is_unreadable(cell):
                    places.setdefault(cell, f"line {row.line}, column {column}")
        if not places or not self._proposal.held:
            return
        for cell, place in places.items():
            self._proposal.words[cell] = ""
            self._proposal.doubts.append(f"{place}: {cell!r} cannot be read, and is taken as no label")

    def _columns_with_labels(self) -> list[str]:
        """Return the columns of labels that are proposed."""
        own = [column for name in LABEL_COLUMNS for column in self._proposal.columns.get(name, ())]
        for name in self._proposal.wide:
            own += columns_headed_by(name, self._table.columns)
        return own

    def _is_known(self, cell: str) -> bool:
        words = self._known_words
        is_label = bool(words.level_of(cell)) or words.labels_of(cell) is not None
        return is_label or words.is_no_level(cell)


def _shown_words(words: Mapping[str, int], shown: Sequence[str]) -> str:
    return first_few([f"{text!r:.40} ({words[text]})" for text in shown], SHOWN)
