"""Propose what words of labels mean that the codebook does not have."""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from obygaze_features.cells import is_unreadable
from obygaze_features.identity import plain
from obygaze_features.manifest.importers.annotator_headings import label_columns_of
from obygaze_features.manifest.importers.column_contents import (
    NO,
    YES,
    abbreviate_yes_and_no,
    abbreviated_mark,
    are_marks,
    is_of_marks,
    label_of_heading,
    whole_numbers,
)
from obygaze_features.manifest.importers.columns import role_of_heading
from obygaze_features.manifest.importers.proposal import SHOWN, UNKNOWN_ANSWER, UNKNOWN_LABEL
from obygaze_features.manifest.importers.unread_columns import UnreadColumns, levels_by_number
from obygaze_features.manifest.importers.word_guesses import explained_otherwise, label_near, legend_rows
from obygaze_features.manifest.spans.headings import LABEL_COLUMNS, without_name
from obygaze_features.manifest.spans.names import has_doubt, without_zeros
from obygaze_features.manifest.text_tables import SHOWN_PROBLEMS
from obygaze_features.text import first_few

MAX_COMPARED: Final = 200
"""So many unknown words, the most frequent, are compared with labels: each comparison takes a millisecond."""


MAX_ANSWERS: Final = 3
"""Different words of a column that may answer yes and no below a concept's heading: yes, no and a doubt."""


class _UnknownWords(NamedTuple):
    """Unknown words, each with its number of rows, and whether they may be levels."""

    words: Counter[str]
    may_be_levels: bool


class WordProposals:
    """Proposes which label each word means that the codebook does not have, so that a table can be read.

    Its methods write into the proposal (`UnreadColumns.proposal`): meanings of words, what must be read, so
    that the import is refused (`Proposal.require`), and what a person should say or check (`Proposal.ask`).
    """

    def __init__(self, unread: UnreadColumns) -> None:
        """Keep what is known of the table's columns; see `UnreadColumns`."""
        self._unread = unread
        self._table = unread.table
        self._headings = unread.headings  # that the person's options name
        self._cells = unread.cells  # column -> its cells that are neither empty nor errors
        # A word is unknown if it is not among the known ones, by which the table would be read. What it is
        # proposed to mean is looked up in the words with translations and guesses.
        self._known_words = unread.known_words
        self._words_with_guesses = unread.words
        self._proposal = unread.proposal
        # Few words in columns that are read anyway, which are proposed only beside something else.
        self._held_back: list[_UnknownWords] = []

    def propose_meanings(self) -> None:
        """Propose which label each unknown word means, in columns of labels and in headings of marks.

        The last two steps depend on the others: few unknown words (`_propose_words`), and a spreadsheet's
        errors such as `#N/A`, are proposed only if the table is refused anyway.
        """
        self._propose_labels_of_headings()
        self._propose_codes_explained_otherwise()
        self._propose_unknown_levels()
        self._propose_unknown_concepts()
        self._propose_what_was_held_back()
        self._propose_errors_as_no_label()

    def _propose_labels_of_headings(self) -> None:
        """Propose a label for each heading of a column of marks that is no label of the codebook.

        The marks of a row say yes or no to this label. A heading without a guess is left to the person.
        """
        headings = [*self._headings_of_shared_marks(), *self._headings_of_annotators_marks()]
        for heading in headings:
            is_known = bool(label_of_heading(heading, self._known_words))
            if heading and not is_known:
                guess = label_of_heading(heading, self._words_with_guesses)
                self._proposal.words[heading] = guess or UNKNOWN_LABEL

    def _headings_of_shared_marks(self) -> list[str]:
        """Return the headings of proposed columns of marks that belong to no single annotator.

        A column that is proposed for levels has them in its cells, or it has marks and its heading names the
        level: only the latter is looked for.
        """
        columns = []
        for column in self._proposal.columns.get("level", ()):
            is_headed_by_label = bool(label_of_heading(column, self._words_with_guesses))
            if is_headed_by_label:
                columns.append(column)
        columns += self._proposal.columns.get("concepts", ())
        return [column for column in columns if are_marks(self._cells[column])]

    def _headings_of_annotators_marks(self) -> list[str]:
        """Return the headings of annotators' own columns of marks, without the name: `look` of `AB look`."""
        headings = []
        for annotator in self._proposal.annotators_with_columns:
            for column in label_columns_of(annotator, self._table.columns, self._words_with_guesses):
                heading = without_name(annotator, column)
                is_label = bool(label_of_heading(heading, self._words_with_guesses))
                if is_label and are_marks(self._cells[column]):
                    headings.append(heading)
        return headings

    def _propose_codes_explained_otherwise(self) -> None:
        """Propose the meaning of codes that the table's legend explains otherwise than the codebook.

        If the legend says that S is easy negative, while the codebook has a level S, the table would be read
        wrongly without anybody noticing. So it is refused, and the person has to say which of both holds.
        """
        legend = [*self._unread.titles, *legend_rows(self._unread.file.other_sheets)]
        label_in_legend = explained_otherwise(legend, self._table.columns, self._known_words)
        if not label_in_legend:
            return
        words_used = set[str]()
        for cell in self._cells_of_labels():
            words_used.add(cell)
            words_used.update(self._known_words.parts_of(cell))
        label_of_code = {}  # of the codes that the table uses, and that no option of the person explains
        for code in label_in_legend:
            is_explained_by_person = self._known_words.explained(code) is not None
            if code in words_used and not is_explained_by_person:
                label_of_code[code] = label_in_legend[code]
        if not label_of_code:
            return

        options_for_codebook = []  # that would read the codes by the codebook
        for code in label_of_code:
            label_in_codebook = self._known_words.level_of(code) or self._known_words.concept_of(code)
            options_for_codebook.append(f"--word {shlex.quote(f'{code}={label_in_codebook}')}")
        self._proposal.words |= label_of_code
        self._proposal.require(f"labels that it explains as others ({_shown_labels(label_of_code)})")
        self._proposal.ask(f"if they are those of the codebook, give {' '.join(options_for_codebook)}")

    def _cells_of_labels(self) -> list[str]:
        """Return the different cells of all columns of levels and concepts, except columns of marks."""
        cells = dict.fromkeys(self._cells_of_levels())
        for column in self._columns_of_concepts():
            if column not in self._unread.mark_columns:
                cells.update(dict.fromkeys(self._cells[column]))
        return list(cells)

    def _propose_unknown_levels(self) -> None:
        """Propose a level for each unknown word in columns of levels; numbers count from low to high.

        2.0 and 2 are one word (`without_zeros`), as programs add decimals to columns of numbers.
        """
        cells = self._cells_of_levels()
        unknown_cells = [cell for cell in cells if not self._is_known(cell)]
        if not unknown_cells:
            return
        n_rows_of_word = Counter(without_zeros(cell) for cell in unknown_cells)

        # Where a legend explains all words, it says enough, also of numbers.
        level_in_legend = {word: self._words_with_guesses.level_of(word) for word in n_rows_of_word}
        are_all_explained = all(level_in_legend.values())
        if not are_all_explained:
            numbers = self._numbers_to_explain(cells, unknown_cells)
            level_of_number = self._levels_by_number(numbers, level_in_legend)
            if level_of_number:
                self._propose_numbers(level_of_number, sorted(numbers))
                return

        # Else they are proposed one by one.
        is_proposed = bool(self._proposal.columns.get("level") or self._proposal.annotators_with_columns)
        self._propose_words(self._unknown_words_of_levels(n_rows_of_word), is_proposed=is_proposed)

    def _levels_by_number(self, numbers: Sequence[str], level_in_legend: Mapping[str, str]) -> dict[str, str]:
        """Return number -> level; {} if the numbers cannot count the levels.

        They count the levels from low to high; but from high to low if a legend of the table explains some
        of them so. With the levels EN, HN and S, 1 is EN, unless the legend says `1 = S`.

        `level_in_legend` is number -> the level that the legend says it is; "" if it says nothing of it.
        """
        from_low_to_high = self._known_words.codebook.level_names
        from_high_to_low = from_low_to_high[::-1]
        for level_names in (from_low_to_high, from_high_to_low):
            level_of_number = levels_by_number(numbers, level_names)
            contradicts_legend = any(
                level_in_legend.get(number, "") not in {"", level}
                for number, level in level_of_number.items()
            )
            if level_of_number and not contradicts_legend:
                return level_of_number
        return {}

    def _numbers_to_explain(self, cells: Sequence[str], unknown_cells: Sequence[str]) -> list[str]:
        """Return the different cells of columns of levels, if they may be numbers that count levels; else [].

        That no cell is a known level is enough for that; whether they are numbers, `levels_by_number` tells.
        Known levels beside them show what the scale is, and that other numbers are mistyped. But if the
        codebook's own levels are numbers, such as 0, 1 and 2, and the table has 1, 2 and 3, the scale of the
        table may begin at 1, and its 1 be the level 0: then known numbers prove nothing, unless the person
        explains one.

        `unknown_cells` are those of the cells that are no levels.
        """
        words = self._known_words
        texts = [without_zeros(cell) for cell in cells if not words.is_no_level(cell)]
        known_texts = set(texts) - {without_zeros(cell) for cell in unknown_cells}
        if known_texts:
            does_person_explain_one = any(words.explained(text) is not None for text in known_texts)
            are_levels_numbers = whole_numbers(words.codebook.level_names) is not None
            if does_person_explain_one or not are_levels_numbers:
                return []
        return list(dict.fromkeys(texts))

    def _cells_of_levels(self) -> list[str]:
        """Return the cells of all columns of levels, proposed or read anyway, except columns of marks."""
        columns = [
            *self._proposal.columns.get("level", ()),
            *self._unread.read_levels(),
            *self._columns_of_annotators("level"),
        ]
        cells: list[str] = []
        for column in columns:
            if column not in self._unread.mark_columns:
                cells += self._cells[column]
        return cells

    def _propose_numbers(self, level_of_number: Mapping[str, str], numbers: Sequence[str]) -> None:
        """Propose what level each number means, and ask the person to check the first and the last one.

        Nobody but the person knows whether a scale counts from low to high. So the table is refused, with
        "levels as numbers (0, 1, 2, 3)" among the reasons and "if 0 is EN and 3 is S" among the conditions.

        `numbers` are all that the columns of levels have.
        """
        self._proposal.words |= level_of_number
        self._proposal.require(f"levels as numbers ({', '.join(numbers)})")
        meanings = [f"{number} is {level}" for number, level in level_of_number.items()]
        # A condition of the proposal: "if 0 is EN and 3 is S".
        self._proposal.ask(f"if {meanings[0]} and {meanings[-1]}; else change --word")

    def _unknown_words_of_levels(self, n_rows_of_cell: Mapping[str, int]) -> Counter[str]:
        """Count the unknown words of cells of levels, which may list concepts too.

        A cell that lists labels, such as `S; Kuss`, is divided, and only its unknown words count: `Kuss`. Any
        other cell is one word.

        Parameters
        ----------
        n_rows_of_cell
            Unknown cell -> its number of rows.

        Returns
        -------
        Unknown word -> its number of rows.
        """
        words = self._words_with_guesses
        n_rows_of_word = Counter[str]()
        for cell, n_rows in n_rows_of_cell.items():
            is_one_level = bool(words.level_of(cell))
            lists_labels = not is_one_level and words.labels_of(cell) is not None
            if not lists_labels:
                n_rows_of_word[cell] += n_rows
                continue
            for part in words.parts_of(cell):
                is_known = self._known_words.level_of(part) or self._known_words.concept_of(part)
                if not is_known:
                    n_rows_of_word[part] += n_rows
        return n_rows_of_word

    def _propose_unknown_concepts(self) -> None:
        """Propose what each unknown word in columns of concepts means: a concept, or yes or no.

        It is yes or no in a column that answers whether the concept in its heading is there. In a column of
        usual marks, such as x, an unknown cell is rather a concept or a remark.
        """
        n_rows_of_word = Counter[str]()  # of words that may be concepts
        n_rows_of_answer = Counter[str]()  # of words that may be yes or no
        for column in self._columns_of_concepts():
            has_abbreviated_answers = abbreviate_yes_and_no(self._cells[column])
            has_marks_of_label = is_of_marks(self._table, column, self._words_with_guesses)
            has_marks = has_marks_of_label or self._unread.has_yes_and_no(column)
            if has_abbreviated_answers or (not has_marks and self._may_answer(column)):
                n_rows_of_answer.update(self._unknown_marks(column))
            elif has_marks:
                n_rows_of_word.update(self._unknown_marks(column))
            else:
                n_rows_of_word.update(self._unknown_concepts(column))
        is_proposed = bool(self._proposal.columns.get("concepts") or self._proposal.annotators_with_columns)
        self._propose_answers(n_rows_of_answer)
        self._propose_words(n_rows_of_word, is_proposed=is_proposed, may_be_levels=False)

    def _may_answer(self, column: str) -> bool:
        """Return whether a column's cells may be other words for yes and no, such as `seen` and `not seen`.

        They may if the heading is a concept of the codebook, which they say is there or not, and if they are
        at most `MAX_ANSWERS` different words, of which none is a concept, by the codebook or by a guess.
        """
        label = label_of_heading(column, self._known_words)
        is_headed_by_concept = label in self._known_words.codebook.concept_names
        if not is_headed_by_concept:
            return False
        different_cells = set(self._cells[column])
        has_concepts = any(self._words_with_guesses.concept_of(cell) for cell in different_cells)
        return len(different_cells) <= MAX_ANSWERS and not has_concepts

    def _propose_answers(self, answers: Counter[str]) -> None:
        """Propose yes or no for words below concepts that begin a word for it; ask about the others.

        `answers` has the number of rows of each word.
        """
        if not answers:
            return
        words = [word for word, _ in answers.most_common()]
        meanings = {word: abbreviated_mark(word) or UNKNOWN_ANSWER for word in words}
        self._proposal.words |= meanings
        shown = _shown_words(answers, words)
        self._proposal.require(f"words below concepts that may say yes and no ({shown})")
        guesses = {word: meaning for word, meaning in meanings.items() if meaning != UNKNOWN_ANSWER}
        if guesses:
            self._proposal.ask(f"abbreviated: {_shown_labels(guesses)}; else change --word")
        if len(guesses) < len(words):
            self._proposal.ask(
                f"in place of {UNKNOWN_ANSWER} type yes if the word says that the concept is there, no if "
                "it says that it is not, nothing if it says neither"
            )

    def _columns_of_concepts(self) -> list[str]:
        """Return the columns of concepts: those proposed, those read anyway, and those of one annotator each.

        The columns that are read anyway are those that the person names, else the column `concepts`.
        """
        read_columns = self._unread.named_columns("concepts")
        if not read_columns and "concepts" in self._table.columns:
            person_says_none = self._unread.person_denies("concepts")
            read_columns = [] if person_says_none else ["concepts"]
        proposed_columns = self._proposal.columns.get("concepts", ())
        return [*proposed_columns, *read_columns, *self._columns_of_annotators("concepts")]

    def _unknown_marks(self, column: str) -> list[str]:
        """Return the cells of a column of marks that are neither yes, no, nor a concept of the codebook."""
        words = self._known_words
        unknown_marks = []
        for cell in self._cells[column]:
            is_usual_mark = plain(cell) in YES or plain(cell) in NO
            is_explained = words.is_yes(cell) or words.explained(cell) is not None  # by the person
            if not is_usual_mark and not is_explained and not words.concept_of(cell):
                unknown_marks.append(cell)
        return unknown_marks

    def _unknown_concepts(self, column: str) -> list[str]:
        """Return the words in a column's cells that the codebook does not have, repeated ones included.

        Words that people write for no concept do not count.
        """
        listed_words: list[str] = []
        for words_of_cell in self._unread.lists(column):
            listed_words += words_of_cell
        words = self._known_words
        return [word for word in listed_words if not (words.concept_of(word) or words.is_no_concept(word))]

    def _columns_of_annotators(self, role: str) -> list[str]:
        """Return annotators' own columns that hold levels, or concepts, as cells and not as marks.

        The annotators are those who are proposed to have columns of their own, and those whom the person's
        option says to have them (`--wide`). `role` is `level` or `concepts`.
        """
        columns = []
        for annotator in (*self._proposal.annotators_with_columns, *self._headings.wide):
            for column in label_columns_of(annotator, self._table.columns, self._words_with_guesses):
                heading = without_name(annotator, column)
                has_marks = bool(label_of_heading(heading, self._words_with_guesses))  # of the label in it
                if role_of_heading(heading) == role and not has_marks:
                    columns.append(column)
        return columns

    def _propose_words(self, words: Counter[str], *, is_proposed: bool, may_be_levels: bool = True) -> None:
        """Propose a label for each unknown word; ask the person about words that are like no label.

        Parameters
        ----------
        words
            Unknown word -> its number of rows.
        is_proposed
            Whether a column with these words is only proposed, so that the table is refused, and the person
            is asked about the words in the same step. If all their columns are read anyway, a few words
            need no proposal: reading their rows refuses them. They are held back
            (`_propose_what_was_held_back`).
        may_be_levels
            Whether the words may be levels. A level is refused in a column of concepts.
        """
        if not words:
            return
        texts = [text for text, _ in words.most_common()]
        translations = self._translations(texts, may_be_levels=may_be_levels)
        will_be_refused = is_proposed or self._proposal.is_import_refused or bool(translations)
        can_errors_show_all = words.total() <= SHOWN_PROBLEMS
        if not will_be_refused and can_errors_show_all:
            self._held_back.append(_UnknownWords(words, may_be_levels))
            return

        untranslated = [text for text in texts if text not in translations]
        corrections = self._corrections(untranslated, may_be_levels=may_be_levels)
        label_of_word = translations | corrections
        for text in texts:
            self._proposal.words[text] = label_of_word.get(text, UNKNOWN_LABEL)

        if translations:
            shown = _shown_labels(translations)
            self._proposal.ask(f"translated, or explained by the table: {shown}")
        if corrections:
            shown = _shown_labels(corrections)
            self._proposal.ask(f"mistyped, it seems: {shown}; else change --word")
        unexplained = [text for text in texts if text not in label_of_word]
        if unexplained:
            self._ask_for_words(words, unexplained)
        elif not self._proposal.is_import_refused:
            self._proposal.require(f"labels in other words ({_shown_words(words, texts)})")

    def _propose_what_was_held_back(self) -> None:
        """Propose a label for each of the few words that were held back, if the table is refused anyway.

        It is refused before its rows are read, whose errors would name these words. So all is asked in one
        step.
        """
        if not self._proposal.is_import_refused:
            return
        for held_back in self._held_back:
            # As if their columns were proposed, so that they are not held back again.
            self._propose_words(held_back.words, is_proposed=True, may_be_levels=held_back.may_be_levels)

    def _translations(self, texts: Sequence[str], *, may_be_levels: bool) -> dict[str, str]:
        """Return word -> label, of the words that are translations of labels or that the table explains."""
        label_of_word = {}
        for text in texts:
            level = self._words_with_guesses.level_of(text) if may_be_levels else ""
            label = level or self._words_with_guesses.concept_of(text)
            if label:
                label_of_word[text] = label
        return label_of_word

    def _corrections(self, texts: Sequence[str], *, may_be_levels: bool) -> dict[str, str]:
        """Return word -> the label that it is a slip of, as `Bodi` is of Body; only the first are compared.

        Words that say that somebody was not sure, such as `S?`, are no slips.
        """
        words = self._words_with_guesses
        label_of_word = {}
        for text in texts[:MAX_COMPARED]:
            if has_doubt(text, words.codebook.spellings):
                continue
            label = label_near(text, words)
            is_possible = may_be_levels or label in words.codebook.concept_names
            if label and is_possible:
                label_of_word[text] = label
        return label_of_word

    def _ask_for_words(self, n_rows_of_word: Mapping[str, int], unexplained: Sequence[str]) -> None:
        """Ask the person, in the proposal, what some words mean; the import is refused with this question.

        The options have `UNKNOWN_LABEL` for these words already. `n_rows_of_word` is unknown word -> its
        number of rows, and `unexplained` are those that are like no label.
        """
        codebook = self._known_words.codebook
        shown = _shown_words(n_rows_of_word, unexplained)
        self._proposal.require(f"words that the codebook {codebook.name!r} does not have ({shown})")
        labels = ", ".join([*codebook.level_names, *codebook.concept_names])
        doubt = (
            f"in place of {UNKNOWN_LABEL} type which level or concept a word is ({labels}), "
            "nothing where it is none; or make a codebook of the table's words with `obygaze codebook guess`"
        )
        if doubt not in self._proposal.doubts:
            self._proposal.ask(doubt)

    def _propose_errors_as_no_label(self) -> None:
        """Propose to read a spreadsheet's errors, such as `#N/A`, in columns of labels as no label.

        They are proposed only if the table is refused for something else. Alone they need no proposal, as
        reading their rows refuses them.
        """
        if not self._proposal.is_import_refused:
            return
        for error_value, place in self._first_places_of_errors().items():
            self._proposal.words[error_value] = ""  # no label
            self._proposal.ask(f"{place}: {error_value!r} cannot be read, and is taken as no label")

    def _first_places_of_errors(self) -> dict[str, str]:
        """Return error value -> the line and column where it is first, of all columns of labels.

        An error value is what a spreadsheet writes into a cell that it cannot compute: `#N/A`, `#REF!`.
        """
        columns_of_labels = {
            *self._proposed_columns_of_labels(),
            *self._unread.read_levels(),
            *self._unread.named_columns("concepts"),
        }
        first_places: dict[str, str] = {}
        for row in self._table.rows:
            for column in sorted(columns_of_labels):
                cell = row.cells[column].strip()
                if is_unreadable(cell):
                    first_places.setdefault(cell, f"line {row.line}, column {column}")
        return first_places

    def _proposed_columns_of_labels(self) -> list[str]:
        """Return the proposed columns of labels: of all annotators, and of each one."""
        columns: list[str] = []
        for role in LABEL_COLUMNS:
            columns += self._proposal.columns.get(role, ())
        for annotator in self._proposal.annotators_with_columns:
            columns += label_columns_of(annotator, self._table.columns, self._words_with_guesses)
        return columns

    def _is_known(self, cell: str) -> bool:
        """Return whether all labels in a cell are of the codebook, or the cell says that it has no level."""
        words = self._known_words
        is_label = bool(words.level_of(cell)) or words.labels_of(cell) is not None
        return is_label or words.is_no_level(cell)


def _shown_words(words: Mapping[str, int], shown: Sequence[str]) -> str:
    """Write the first of some words with their numbers of rows: `'Kuss' (12), 'Arm' (3)`."""
    return first_few([f"{text!r:.40} ({words[text]})" for text in shown], SHOWN)


def _shown_labels(label_of_word: Mapping[str, str]) -> str:
    """Write the first of some words with the labels that are proposed for them: `'Kuss' as Kiss`."""
    return first_few([f"{text!r} as {label}" for text, label in label_of_word.items()], SHOWN)
