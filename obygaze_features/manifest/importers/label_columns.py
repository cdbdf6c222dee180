"""Find the columns of a table that hold levels and concepts: labels, marks, one annotator each."""

from collections.abc import Collection, Sequence
from typing import Final

from obygaze_features.identity import plain
from obygaze_features.manifest.importers.annotator_headings import (
    COMPUTED_FROM_ANNOTATORS,
    VAGUE_HEADINGS,
    annotators_of_grid,
    ends_with_label,
    is_of_model_or_doubt,
    is_of_speech,
    label_columns_of,
    names_beside_label,
    names_no_annotator,
)
from obygaze_features.manifest.importers.column_contents import (
    are_clocks,
    are_files,
    are_marks,
    label_of_heading,
    whole_numbers,
)
from obygaze_features.manifest.importers.columns import role_of_heading
from obygaze_features.manifest.importers.proposal import SHOWN, START, option, wide_option
from obygaze_features.manifest.importers.table_rows import SUMS
from obygaze_features.manifest.importers.unread_columns import MAX_WORDS, UnreadColumns, levels_by_number
from obygaze_features.manifest.importers.word_guesses import (
    are_few_words,
    are_lists,
    different_words,
    has_many_words,
)
from obygaze_features.manifest.spans.headings import (
    KNOWN_HEADINGS,
    LABEL_COLUMNS,
    bare_heading,
    columns_headed_by,
    is_headed_by,
    meanings_of_heading,
    without_name,
    words_of,
)
from obygaze_features.text import first_few

MAX_DIFFERENT_SHARE: Final = 3 / 4
"""Words of a column count as repeated, as concepts are, if at most this share of them are different words:
with 8 words in all cells, at most 6 different ones."""

MAX_SHOWN: Final = 12
"""Columns that a message names at most."""


class LabelColumns:
    """Finds the unread columns of levels and concepts: with words of the codebook first, then with others.

    Its methods write what they find into the proposal (`UnreadColumns.proposal`). A column that is proposed,
    mentioned or set aside leaves the remaining ones, so that later methods do not consider it.
    """

    def __init__(self, unread: UnreadColumns) -> None:
        """Keep what is known of the table's columns; see `UnreadColumns`."""
        self._unread = unread
        self._table = unread.table
        self._headings = unread.headings  # that the person's options name
        self._annotator = unread.annotator  # whom the person's option names; "" if it is not given
        self._cells = unread.cells  # column -> its cells that are neither empty nor errors
        # The codebook's words, with translations and guesses of what the table's own words and headings mean.
        self._words = unread.words
        # The same without guesses: a guess may take a heading such as `Anna look` as a whole for the label
        # Look, and this class looks for the annotator's name in it.
        self._translated_words = unread.known_words.with_guesses()
        self._proposal = unread.proposal

    def propose_labels(self) -> None:
        """Propose the columns of levels and concepts: columns of labels, of marks, and of one annotator each.

        The surest signs come first, as a proposed column is not considered again.
        """
        # 1. By words of the codebook, in cells or in the headings of marks.
        self._mention_words_of_speech()
        self._propose_annotators_of_marks()
        self._propose_levels(self._columns_of_levels())
        self._propose_marks("level")
        self._propose_concepts()

        # 2. By headings, then by the table's own words.
        if self._lacks_levels():
            self._propose_levels_by_heading()
        if self._lacks_levels():
            self._propose_annotators_by_words()
        if not self._has_columns_of_annotators():
            self._propose_concepts_in_unknown_words()
        self._propose_marks_under_other_words()

        # 3. By numbers, which say least, and only in a table that is known to hold labels.
        if self._lacks_levels() and self._unread.has_column_for("concepts"):
            self._propose_numbers_as_levels()
        self._ask_whose_marks()

    def _mention_words_of_speech(self) -> None:
        """Mention columns of speakers, languages and what is said, of which most cells are like labels."""
        columns = []
        for column in self._unread.remaining:
            is_of_marks = column in self._unread.mark_columns
            if is_of_speech(column) and not is_of_marks and self._unread.label_counts(column).are_labels:
                columns.append(column)
        if columns:
            options = " or ".join(option("level", column) for column in columns)
            self._proposal.mention(
                f"words of the codebook below other headings ({self._with_label_counts(columns)}): {options} "
                "if they are labels",
                columns,
            )

    def _propose_annotators_of_marks(self) -> None:
        """Propose the annotators who have a column of marks for each label, as `AB_level_S` and `CD_level_S`.

        Nothing is proposed if anything else says what the levels are, or who gave them. As the annotators
        would have their names in an option (`--wide`), their columns need no option each, and are set aside.
        """
        has_levels = not self._lacks_levels() or bool(self._columns_of_known_levels())
        if has_levels or self._unread.person_denies("level"):
            return
        columns_of_marks = [column for column in self._unread.remaining if are_marks(self._cells[column])]
        annotators = annotators_of_grid(columns_of_marks, self._translated_words)
        columns_of_annotators: list[str] = []
        for annotator in annotators:
            columns_of_annotators += label_columns_of(annotator, columns_of_marks, self._words)
        # Columns of nothing but 1, or but no, may be anything.
        tell_rows_apart = any(self._unread.has_yes_and_no(column) for column in columns_of_annotators)
        if not tell_rows_apart:
            return
        self._unread.set_aside(columns_of_annotators)
        self._proposal.annotators_with_columns = annotators
        self._proposal.require(f"marks of {len(annotators)} annotators ({_shown(columns_of_annotators)})")

    def _set_aside_with_marks(self, columns: Collection[str]) -> None:
        """Look for no further meaning in columns that belong to annotators, those of marks among them."""
        unread = self._unread
        unread.set_aside(columns)
        unread.mark_columns = [column for column in unread.mark_columns if column not in columns]

    def _ask_whose_marks(self) -> None:
        """Ask whether columns of marks with one label, such as `Anna look` and `Ben look`, are of annotators.

        As they are proposed, a row has the label if any of them says so.
        """
        columns = [*self._proposal.columns.get("level", ()), *self._proposal.columns.get("concepts", ())]
        columns_of_marks = [column for column in columns if are_marks(self._cells[column])]
        names = names_beside_label(columns_of_marks, self._translated_words)
        if names:
            self._proposal.ask(
                f"several columns say the same label: if {first_few(names, SHOWN)} are annotators, give "
                f"{wide_option(names)} in place of these columns"
            )

    def _has_columns_of_annotators(self) -> bool:
        """Return whether annotators have columns of their own, as a person says or as it is proposed."""
        return bool(self._proposal.annotators_with_columns or self._headings.wide)

    def _lacks_levels(self) -> bool:
        """Return whether no column of levels is read or proposed."""
        return not self._unread.has_column_for("level") and not self._has_columns_of_annotators()

    def _columns_of_levels(self) -> list[str]:
        """Return the unread columns of levels: with words of the codebook, then with the table's own words.

        There are none if the person says that the table has no levels.
        """
        if self._unread.person_denies("level"):
            return []
        with_known_words = self._columns_of_known_levels()
        # With --wide the person names the annotators' columns, so that no others are guessed.
        does_person_name_annotators = bool(self._headings.wide)
        if does_person_name_annotators:
            return with_known_words
        return [*with_known_words, *self._levels_in_unknown_words(with_known_words)]

    def _columns_of_known_levels(self) -> list[str]:
        """Return the unread columns of levels in words of the codebook, without columns of marks."""
        columns = []
        for column in self._unread.remaining:
            are_levels = self._unread.label_counts(column).are_levels
            is_of_something_else = is_of_speech(column) or self._is_of_sums_or_ids(column)
            is_of_marks = column in self._unread.mark_columns
            if are_levels and not is_of_marks and not is_of_something_else:
                columns.append(column)
        return columns

    def _columns_of_concepts(self) -> list[str]:
        """Return the unread columns whose cells are concepts."""
        columns = []
        for column in self._unread.remaining:
            is_of_something_else = column in self._unread.mark_columns or is_of_speech(column)
            if self._unread.label_counts(column).are_concepts and not is_of_something_else:
                columns.append(column)
        return columns

    def _propose_levels(self, columns: Sequence[str]) -> None:
        """Propose to read one column as the levels, or several columns as the levels of one annotator each.

        If levels are read already, the columns are only mentioned, with the options that would read them.
        So are columns that belong to no annotator by their headings, such as `final`, beside others.
        """
        of_annotators = [column for column in columns if not names_no_annotator(column)]
        if of_annotators and self._is_level_column_of_one_annotator():
            self._propose_annotators(["level", *of_annotators])  # the column `level` is one of theirs
        elif self._lacks_levels() and len(of_annotators) > 1:
            self._propose_annotators(of_annotators)
        elif self._lacks_levels() and columns:
            column = self._likeliest_levels(columns)
            self._doubt_levels_of_model(column)
            self._unread.propose(
                "level", [column], needed=f"levels ({self._unread.with_label_count(column)})"
            )
            self._ask_whether_of_several_people(columns)
        # What was not proposed above is only mentioned.
        self._mention_levels([column for column in columns if column in self._unread.remaining])

    def _ask_whether_of_several_people(self, columns: Sequence[str]) -> None:
        """Ask whether columns are of different people, if they differ only in words that may be names.

        As in `Round 1 AB` and `Round 1 CD`: by the word round neither is of a single annotator
        (`names_no_annotator`), but what is left without the common words, AB and CD, may be two people.
        """
        if len(columns) < 2 or any(map(is_of_model_or_doubt, columns)):
            return
        words_of_columns = [set(words_of(column)) for column in columns]
        common_words = set.intersection(*words_of_columns)
        for words in words_of_columns:
            own_words = " ".join(words - common_words)
            is_one_word = own_words.isalpha()
            if not is_one_word or names_no_annotator(own_words):
                return
        self._proposal.ask(
            f"if {first_few(list(map(repr, columns)), SHOWN)} are of different people, give "
            f"{wide_option(columns)} in place of these columns"
        )

    def _likeliest_levels(self, columns: Sequence[str]) -> str:
        """Return which of some columns of levels is most likely meant as the levels.

        It is the first whose heading may be an annotator's, else the first that is neither what a model says
        nor how sure somebody is, else the first.
        """
        for column in columns:
            if not names_no_annotator(column):
                return column
        for column in columns:
            if not is_of_model_or_doubt(column):
                return column
        return columns[0]

    def _doubt_levels_of_model(self, column: str) -> None:
        """Add a doubt to the proposal if by its heading a proposed column of levels is not of people."""
        if is_of_model_or_doubt(column):
            self._proposal.ask(
                f"by its heading {column!r} is what a model says, or how sure somebody is: read it only "
                "if people gave these levels"
            )

    def _mention_levels(self, columns: Sequence[str]) -> None:
        """Mention columns of levels beside those that are read, with the options that would read them.

        No option is shown for what a model says and how sure somebody is, which are no labels of people. The
        columns are taken out of the remaining ones, so that no further meaning is looked for.
        """
        no_labels = [column for column in columns if is_of_model_or_doubt(column)]
        labels = [column for column in columns if column not in no_labels]
        if labels:
            options = " or ".join(option("level", column) for column in labels)
            self._proposal.mention(
                f"columns that are not read hold levels too ({self._with_label_counts(labels)}): {options}",
                labels,
            )
        if no_labels:
            self._proposal.mention(
                "levels that a model gave, or how sure somebody is, by the headings "
                f"({self._with_label_counts(no_labels)}): they are no labels of people",
                no_labels,
            )
        self._unread.set_aside(columns)

    def _with_label_counts(self, columns: Sequence[str]) -> str:
        """Write some columns, each with how many of its cells are labels."""
        return ", ".join(self._unread.with_label_count(column) for column in columns)

    def _propose_numbers_as_levels(self) -> None:
        """Propose a column of numbers as levels, if exactly one column can be.

        Of several, such as ratings and ages, nothing tells which one has the levels.
        """
        if self._unread.person_denies("level"):
            return
        with_few_words = [column for column in self._unread.remaining if self._has_few_words(column)]
        columns = self._columns_that_number_levels(with_few_words)
        if len(columns) == 1:
            self._unread.propose("level", columns, needed=f"numbers that may be levels ({columns[0]!r})")

    def _is_level_column_of_one_annotator(self) -> bool:
        """Return whether the table's column `level` may be one annotator's, beside columns of others.

        As in a table with the columns `level` and `CD`. If a column or an option of the person says who
        annotated, the column `level` has the labels of those instead.
        """
        has_level_column = "level" in self._table.columns
        # By an option, in place of the column `level`.
        does_person_name_levels = bool(self._headings.columns.get("level"))
        if not has_level_column or does_person_name_levels:
            return False
        does_option_say_who = bool(self._headings.wide or self._annotator)
        if does_option_say_who or self._unread.has_column_for("annotator"):
            return False
        column_of_annotators = self._unread.column_meant_as("annotator", self._unread.can_be_people)
        return not column_of_annotators

    def _is_of_sums_or_ids(self, column: str) -> bool:
        """Return whether the heading says that a column which looks like levels has sums, or numbers of else.

        1, 2 and 3 may be levels. Below "Total" they are sums, and below "Clip" ids of clips.
        """
        if bare_heading(column) in SUMS:
            return True
        are_numbers = whole_numbers(self._cells[column]) is not None
        meanings = meanings_of_heading(column)  # the manifest's columns that the heading may mean
        means_another_column = bool(meanings) and "level" not in meanings
        return are_numbers and means_another_column

    def _levels_in_unknown_words(self, levels: Sequence[str]) -> list[str]:
        """Return further columns of levels, beside `levels`, whose words the codebook does not have.

        Each is of one annotator. A single column proves little. So these columns are taken as levels only if
        there are two or more, `levels` included, and if they have about the same words.
        """
        if self._unread.has_column_for("level") or self._unread.person_denies("level"):
            return []
        further_columns = self._further_columns_of_levels(levels)
        all_columns = [*levels, *further_columns]
        have_same_words = self._have_half_of_words(further_columns, all_columns)
        if len(all_columns) < 2 or not have_same_words:
            return []
        return further_columns

    def _further_columns_of_levels(self, levels: Sequence[str]) -> list[str]:
        """Return columns that can be levels in the table's own words, beside the known ones, `levels`.

        They are the columns headed as levels, such as `Stufe AB` and `Stufe CD`. If no levels are known and
        fewer than two columns are headed so, nothing is there to compare their words with: then they are the
        columns with numbers of levels instead.
        """
        candidates = self._candidates_for_levels(levels)
        headed_as_levels = []
        for column in candidates:
            meanings = meanings_of_heading(column)  # the likeliest first
            if meanings and meanings[0] == "level":
                headed_as_levels.append(column)
        if levels or len(headed_as_levels) > 1:
            return headed_as_levels
        return self._columns_that_number_levels(candidates)

    def _columns_that_number_levels(self, columns: Sequence[str]) -> list[str]:
        """Return the columns without a known heading whose cells may be numbers of the codebook's levels.

        With four levels, these are numbers from 0 to 3, or from 1 to 4 (`levels_by_number`).
        """
        level_names = self._words.codebook.level_names
        unnamed = [column for column in columns if not meanings_of_heading(column)]
        return [column for column in unnamed if levels_by_number(self._cells[column], level_names)]

    def _candidates_for_levels(self, levels: Sequence[str]) -> list[str]:
        """Return the unread columns not in `levels` whose cells can be levels in words of the table's own."""
        candidates = []
        for column in self._unread.remaining:
            if column in levels or column in self._unread.mark_columns:
                continue
            is_computed = bare_heading(column).rstrip("?") in COMPUTED_FROM_ANNOTATORS  # such as `agreed?`
            # Below a heading that is one label, such as `AB level S`, numbers say how often, or yes and no.
            is_of_one_label = ends_with_label(column, self._words)
            has_other_meaning = is_computed or is_of_one_label or self._is_of_sums_or_ids(column)
            if self._can_be_levels(column) and not has_other_meaning:
                candidates.append(column)
        return candidates

    def _have_half_of_words(self, columns: Sequence[str], all_columns: Sequence[str]) -> bool:
        """Return whether each of some columns has at least half of the different words of all columns.

        Annotators who use one scale use about the same words.
        """
        all_words = set[str]()
        for column in all_columns:
            all_words |= self._different_words(column)
        for column in columns:
            has_half = 2 * len(self._different_words(column)) >= len(all_words)
            if not has_half:
                return False
        return True

    def _different_words(self, column: str) -> set[str]:
        """Return the different cells of a column, without regard to case and blanks (`plain`)."""
        return {plain(cell) for cell in self._cells[column]}

    def _propose_annotators(self, levels: Sequence[str]) -> None:
        """Propose that each of some columns of levels belongs to one annotator, named by its heading.

        Other columns whose headings hold the name of such an annotator belong to them too. If the times of
        the table are of one annotator, only that annotator's labels are proposed.

        Raises
        ------
        ManifestError
            The columns are of films, so that their headings would become names of annotators.
        """
        if self._has_films_as_columns(levels):
            raise self._unread.file.error(
                f"columns of levels ({_shown(levels)}) seem to be of films, and rows of annotators: turn the "
                "table on its side, as spreadsheets do by Paste special > Transpose: a row for each film, "
                "with its name in a column 'movie' or 'video', and a column for each annotator"
            )
        annotators = annotators_of(levels, self._table.columns)
        annotator_of_times = self._annotator_of_times(annotators)
        if annotator_of_times:
            others = [annotator for annotator in annotators if annotator != annotator_of_times]
            self._propose_one_annotator(annotator_of_times, others)
            return
        columns_of_annotators = set[str]()
        for annotator in annotators:
            columns_of_annotators.update(columns_headed_by(annotator, self._unread.remaining))
            columns_of_annotators.update(label_columns_of(annotator, self._unread.remaining, self._words))
        self._set_aside_with_marks(columns_of_annotators | set(levels))

        self._proposal.annotators_with_columns = annotators
        self._proposal.require(f"levels of {len(annotators)} annotators ({_shown(levels)})")

    def _has_films_as_columns(self, levels: Sequence[str]) -> bool:
        """Return whether columns of levels belong to films, as in a table that is turned on its side.

        Usually a row is of a film and a column of an annotator. Here it is the other way round if the
        headings of the columns are names of video files; or if each row is of another annotator, and no
        column says the film or the start.
        """
        if are_files(levels):
            return True

        has_column_of_span = self._unread.has_column_for("clip_id", "movie", "video", START)
        for name in ("movie", "video", START):
            # By its heading alone, whatever its cells hold.
            column_of_span = self._unread.column_meant_as(name, fits=lambda _column: True)
            has_column_of_span = has_column_of_span or bool(column_of_span)
        if has_column_of_span:
            return False

        column = self._column_of_annotators()
        if not column:
            return False
        annotators = [row.cells[column].strip() for row in self._table.rows if not row.is_empty]
        name_different_annotators = all(annotators) and len(set(annotators)) == len(annotators)
        return len(annotators) > 1 and name_different_annotators

    def _column_of_annotators(self) -> str:
        """Return the column that says who annotated: the manifest's own, or by its heading; "" for none."""
        if "annotator" in self._table.columns:
            return "annotator"
        return self._unread.column_meant_as("annotator", self._unread.can_be_people)

    def _annotator_of_times(self, annotators: Sequence[str]) -> str:
        """Return the annotator whose name heads the table's column of starts; "" if it has no such name.

        Starts below `AB start` are of the spans that AB marked, and say nothing of what CD marked. A table
        is read with one column of starts, so that there is one such annotator at most.
        """
        columns_of_starts = [*self._proposal.columns.get(START, ()), *self._headings.columns.get(START, ())]
        for annotator in annotators:
            if any(is_headed_by(annotator, column) for column in columns_of_starts):
                return annotator
        return ""

    def _propose_one_annotator(self, annotator: str, others: Sequence[str]) -> None:
        """Propose the labels of one annotator, whose times the table is read with.

        `others` are the other annotators with columns of their own. They have times of their own too: their
        columns are set aside, and the person is told to import them apart.
        """
        label_columns = label_columns_of(annotator, self._table.columns, self._words)
        for role in LABEL_COLUMNS:
            columns_of_role = [
                column for column in label_columns if role_of_heading(without_name(annotator, column)) == role
            ]
            if columns_of_role:
                self._unread.propose(role, columns_of_role)
        columns_of_others = set[str]()
        for other in others:
            columns_of_others.update(columns_headed_by(other, self._unread.remaining))
        self._unread.set_aside(columns_of_others)
        self._proposal.annotator = annotator
        self._proposal.require(f"labels of {annotator} ({_shown(label_columns)})")
        self._proposal.ask(
            f"each annotator has times of their own: import what {first_few(others, SHOWN)} marked apart, by "
            "the same options with the other columns"
        )

    def _propose_marks(self, name: str) -> None:
        """Propose to read the columns of marks whose headings are levels or concepts.

        If such labels are read already, the columns are only mentioned, with options that would read them.

        `name` is `level` or `concepts`.
        """
        columns = self._columns_of_marks(name)
        if not columns or self._unread.person_denies(name):
            return
        shown = _shown(columns)
        # Concepts that are only proposed are no reason: a table may have lists of concepts and marks of them.
        has_other_levels = name == "level" and not self._lacks_levels()
        if self._unread.is_read(name) or has_other_levels:
            options = " ".join(option(name, column) for column in columns)
            self._proposal.mention(f"columns headed by labels are not read ({shown}): {options}", columns)
            return
        labels = "levels" if name == "level" else "concepts"
        self._unread.propose(name, columns, needed=f"marks of {labels} ({shown})")

    def _columns_of_marks(self, name: str) -> list[str]:
        """Return the unread columns of marks whose headings are levels, or those whose are concepts.

        `name` says which: `level` or `concepts`.
        """
        columns = []
        for column in self._unread.mark_columns:
            label = label_of_heading(column, self._words)
            kind_of_label = "level" if label in self._words.codebook.level_names else "concepts"
            if kind_of_label == name and column in self._unread.remaining:
                columns.append(column)
        return columns

    def _propose_concepts_in_unknown_words(self) -> None:
        """Propose columns of concepts whose words the codebook does not have.

        They are headed as concepts, or their heading means nothing known and their cells list words. If
        concepts are read already, the columns are only mentioned, with the options that would read them.
        """
        if self._unread.person_denies("concepts"):
            return

        headed_as_concepts = []
        with_lists = []
        for column in self._unread.remaining:
            if column in self._unread.mark_columns or not self._can_be_concepts(column):
                continue
            meanings = meanings_of_heading(column)
            if "concepts" in meanings:
                headed_as_concepts.append(column)
            elif not meanings and are_lists(self._unread.lists(column)):
                with_lists.append(column)
        columns = [*headed_as_concepts, *with_lists]
        if not columns:
            return

        if self._unread.has_column_for("concepts"):
            options = " ".join(option("concepts", column) for column in columns)
            self._proposal.mention(
                f"columns that may be of concepts are not read ({_shown(columns)}): {options}", columns
            )
            return

        # Without a heading that says so, only one column is taken: another may list something else.
        proposed = headed_as_concepts or with_lists[:1]
        self._unread.propose("concepts", proposed, needed=f"concepts in other words ({_shown(proposed)})")

    def _can_be_concepts(self, column: str) -> bool:
        """Return whether a column's cells can be lists of concepts in words that the codebook does not have.

        Concepts are few short words that come again in many cells; names and remarks do not. Times and paths
        of files may come again too, but are no concepts.
        """
        cells = self._cells[column]
        are_something_else = self._unread.is_of_times(column) or are_files(cells)
        # By whole cells first: that is fast, and spares splitting the cells of columns of remarks.
        if has_many_words(cells, self._words) or are_something_else:
            return False

        words_of_cells = self._unread.lists(column)  # of each cell the words that it lists
        if not are_few_words(words_of_cells):
            return False
        n_words = sum(len(words) for words in words_of_cells)
        n_different = len(different_words(words_of_cells))
        come_again = n_different <= MAX_DIFFERENT_SHARE * n_words
        # Words that come again less often are still concepts if cells combine them in several ways.
        return come_again or are_lists(words_of_cells)

    def _propose_marks_under_other_words(self) -> None:
        """Propose columns of marks as concepts whose headings are no labels of the codebook.

        If the table has other labels, only the columns between or next to those of known concepts are
        proposed. The others are mentioned, with the options that would read them; so are columns that are
        computed, such as `agreed?` and `total`.
        """
        if self._unread.person_denies("concepts"):
            return
        columns = self._columns_of_unknown_marks()
        has_labels = self._unread.has_column_for("level", "concepts") or self._has_columns_of_annotators()
        likely_concepts = self._beside_known_marks(columns) if has_labels else columns

        headings_of_computed = {*COMPUTED_FROM_ANNOTATORS, *SUMS}
        proposed = []
        for column in likely_concepts:
            is_computed = bare_heading(column).rstrip("?") in headings_of_computed
            if not is_computed:
                proposed.append(column)
        if proposed:
            self._unread.propose("concepts", proposed, needed=f"marks under other words ({_shown(proposed)})")

        not_proposed = [column for column in columns if column not in proposed]
        if not_proposed:
            shown = _shown(not_proposed)
            options = " ".join(option("concepts", column) for column in not_proposed)
            self._proposal.mention(
                f"columns of marks are not read ({shown}): {options}, if they are of concepts", not_proposed
            )

    def _columns_of_unknown_marks(self) -> list[str]:
        """Return the unread columns of marks whose headings are neither labels nor known to mean anything."""
        columns = []
        for column in self._unread.remaining:
            is_headed_by_label = column in self._unread.mark_columns
            has_known_heading = is_headed_by_label or bool(meanings_of_heading(column))
            if not has_known_heading and self._unread.has_yes_and_no(column):
                columns.append(column)
        return columns

    def _beside_known_marks(self, columns: Sequence[str]) -> list[str]:
        """Return those of some columns that are among, or directly beside, the proposed marks of concepts.

        People write the concepts of a codebook in columns beside each other, so that such a column is likely
        a further concept.
        """
        order = list(self._table.columns)
        concepts = self._proposal.columns.get("concepts", ())
        places_of_marks = [order.index(column) for column in concepts if self._unread.has_yes_and_no(column)]
        if not places_of_marks:
            return []
        first = min(places_of_marks) - 1
        last = max(places_of_marks) + 1
        return [column for column in columns if first <= order.index(column) <= last]

    def _propose_concepts(self) -> None:
        """Propose to read columns whose cells are concepts, and columns of marks whose headings are concepts.

        If the table or an option of the person has concepts already, the columns are only mentioned, with the
        options that would read them.
        """
        if self._unread.person_denies("concepts"):
            return
        columns = self._columns_of_concepts()
        shown = first_few([self._unread.with_label_count(column) for column in columns], SHOWN)
        if columns and self._unread.is_read("concepts"):
            options = " ".join(option("concepts", column) for column in columns)
            self._proposal.mention(
                f"columns that are not read hold concepts too ({shown}): {options}", columns
            )
        elif columns:
            self._unread.propose("concepts", columns, needed=f"concepts ({shown})")
        self._propose_marks("concepts")

    def _propose_levels_by_heading(self) -> None:
        """Propose as the levels the column whose heading means that, though its words are in no codebook.

        For example, the column "Rating" with the words mild and strong. The table is refused with this
        proposal, as without levels its rows say nothing.
        """
        if self._unread.person_denies("level"):
            return
        column = self._unread.column_meant_as("level", self._can_be_levels)  # "" if there is none
        if column:
            reason_of_refusal = f"levels in other words ({column!r})"
            self._unread.propose("level", [column], needed=reason_of_refusal)

    def _propose_annotators_by_words(self) -> None:
        """Propose columns with the same few unknown words as levels of one annotator each.

        A column is of an annotator if more than half of its words are also in another such column: people
        who rate on one scale use the same words. One column alone proves nothing.
        """
        if self._unread.person_denies("level"):
            return
        words_of_column = {}  # of the columns that may hold levels, whose headings mean nothing known
        for column in self._unread.remaining:
            if not meanings_of_heading(column) and self._has_few_words(column):
                words_of_column[column] = self._different_words(column)
        columns_of_levels = []
        for column, words in words_of_column.items():
            shares_words = any(
                _has_most_words_in(words, words_of_other)
                for other, words_of_other in words_of_column.items()
                if other != column
            )
            if shares_words and not names_no_annotator(column):
                columns_of_levels.append(column)
        if len(columns_of_levels) > 1:
            self._propose_annotators(columns_of_levels)

    def _has_few_words(self, column: str) -> bool:
        """Return whether a column has as few different words as a column of levels has.

        These are two words at least, and at most as many as the codebook has levels; some are repeated.
        Numbers need not be repeated, but must be possible as numbers of levels. Marks such as `x`, clocks and
        concepts are no levels, however few they are.
        """
        cells = self._cells[column]
        level_names = self._words.codebook.level_names
        n_different = len(self._different_words(column))
        has_few = 1 < n_different <= len(level_names)
        if not has_few or are_marks(cells) or are_clocks(cells):
            return False
        if self._unread.label_counts(column).are_concepts:
            return False
        are_numbers = whole_numbers(cells) is not None
        if are_numbers:
            return bool(levels_by_number(cells, level_names))
        return n_different < len(cells)  # whether words are repeated

    def _can_be_levels(self, column: str) -> bool:
        """Return whether a column can hold levels in words that the codebook does not have.

        It has few different words, which are neither clocks nor labels of the codebook. A vague heading, such
        as `Note`, may be of anything: under it, only integers that can be levels are accepted.
        """
        cells = self._cells[column]
        is_vague = bare_heading(column) in VAGUE_HEADINGS
        can_number_levels = bool(levels_by_number(cells, self._words.codebook.level_names))
        if is_vague and not can_number_levels:
            return False
        are_known_labels = self._unread.label_counts(column).are_labels
        if are_known_labels or are_clocks(cells):
            return False
        return 0 < len(self._different_words(column)) <= MAX_WORDS


def _shown(columns: Sequence[str]) -> str:
    """Write the first of some headings, and how many more there are."""
    return first_few([f"{column!r:.60}" for column in columns], MAX_SHOWN)


def _has_most_words_in(words: set[str], others: set[str]) -> bool:
    """Return whether more than half of some words are among others."""
    return 2 * len(words & others) > len(words)


def annotators_of(levels: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Name the annotators who have a column of levels each: `AB` for a column `Level AB`.

    The import finds an annotator's columns by the name. So each name must find the annotator's own column of
    levels, and no other one's. If some name does not, or two are the same, the whole headings are the names,
    which are always different.

    Parameters
    ----------
    levels
        The headings of the columns of levels.
    columns
        All headings of the table.

    Examples
    --------
    >>> annotators_of(["Level AB", "Level CD"], ["Film", "Level AB", "Level CD"])
    ['AB', 'CD']
    """
    whole_headings = list(levels)
    names = [_without_role_word(heading) for heading in levels]
    are_all_different = len(set(map(plain, names))) == len(names)
    if not are_all_different:
        return whole_headings
    for name, own_heading in zip(names, levels, strict=True):
        levels_with_name = {heading for heading in columns_headed_by(name, columns) if heading in levels}
        finds_own_column_alone = levels_with_name == {own_heading}
        if not finds_own_column_alone:
            return whole_headings
    return names


def _without_role_word(heading: str) -> str:
    """Return a heading without the longest word for levels or concepts that it begins or ends with."""
    role_words = {*KNOWN_HEADINGS["level"], *KNOWN_HEADINGS["concepts"]}
    for role_word in sorted(role_words, key=len, reverse=True):
        shorter = without_name(role_word, heading)
        if shorter and shorter != heading:
            return shorter
    return heading
