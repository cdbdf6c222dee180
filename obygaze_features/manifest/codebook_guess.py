"""Make a codebook of the words that a table has: a first draft, which a person puts in order."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

import msgspec

from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.identity import plain
from obygaze_features.io import local_path
from obygaze_features.manifest.codebook import BUILTIN, Codebook, codebook_parameters
from obygaze_features.manifest.importers.column_contents import cells_of, readable_cells
from obygaze_features.manifest.importers.columns import find_column
from obygaze_features.manifest.importers.imported import slug
from obygaze_features.manifest.importers.proposal import option, wide_option
from obygaze_features.manifest.importers.table_layout import read_layout
from obygaze_features.manifest.importers.word_guesses import listed_parts
from obygaze_features.manifest.spans.headings import Headings, columns_headed_by, meanings_of_heading
from obygaze_features.manifest.spans.label_words import LabelWords, says_no_level
from obygaze_features.manifest.spans.names import without_zeros
from obygaze_features.manifest.spans.read_in_sandbox import FileContent, read_in_sandbox
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import Reading, SpanFile
from obygaze_features.manifest.text_tables import MAX_SHOWN, OUR_COLUMNS, Table, counted, error_context
from obygaze_features.sandbox import reader_process
from obygaze_features.text import composed, first_few, number_of

MAX_LEVELS = 12
"""Words of a column that can be an ordered label: a column of more is of names or of texts."""

MIN_SIMILARITY = 0.75
"""Likeness (difflib) from which on two words may be one that was mistyped."""

MAX_COMPARED = 500
"""Words, the most frequent ones, that are compared with each other: the time grows with their square."""

LONGEST_COMPARED = 40
"""Letters of them: the time grows with their square too."""

SHOWN = 4

NO_LEVEL = "unrated"
"""The level of a codebook whose table has none: a codebook needs one."""

TIMES = ("start_s", "end_s", "duration_s")
"""Columns of times."""

DIGITS = re.compile(r"\d")

MIN_LEVELS_OF_TASK = 2
"""A task has a negative and a positive level."""


class CountedWord(NamedTuple):
    """A word of a table's labels.

    Attributes
    ----------
    name
        Its most frequent spelling.
    spellings
        Its other spellings, which differ in case or blanks.
    frequency
        How many cells have it.
    twin
        A more frequent word that it is like, so that it may be mistyped; "" for none.
    """

    name: str
    spellings: tuple[str, ...]
    frequency: int
    twin: str


@dataclass(frozen=True)
class GuessedCodebook:
    """A codebook of the words of a table, with what a person has to decide.

    Attributes
    ----------
    name
        Of the codebook: that of the table.
    levels
        In the order of numbers, else of the alphabet: which is low and which is high is not known. None where
        the table has concepts alone.
    concepts
        The most frequent first.
    columns
        Columns that the words are from.
    may_be_levels
        Of a table without levels, other columns of few words.
    missing
        What its columns of levels have where there is no level, such as `n/a`; these are no levels.
    """

    name: str
    levels: tuple[CountedWord, ...]
    concepts: tuple[CountedWord, ...]
    columns: tuple[str, ...]
    may_be_levels: tuple[str, ...] = ()
    missing: tuple[CountedWord, ...] = ()

    @property
    def is_in_order(self) -> bool:
        """Whether the order of the levels is known: they are numbers."""
        return all(not math.isnan(number_of(level.name)) for level in self.levels)

    def to_toml(self) -> str:
        """Write the codebook as the text of a codebook file, with comments where a person has to decide."""
        lines = [
            f"# Words of {self.name}, columns {', '.join(map(_quoted, self.columns))}, with their counts.",
            "# Check it with `obygaze codebook check FILE`.",
            "",
            f"name = {_quoted(self.name)}",
            'version = "1"',
            'source = ""     # where the labels are defined: a paper, a guideline',
            'construct = ""  # what the levels measure, in a few words',
            "",
        ]
        lines += self._level_lines()
        lines += self._task_to_fill_in()
        for concept in self.concepts:
            lines += ["[[concepts]]", *_toml_lines(concept)]
            lines += ["visual = true  # false where no image shows it", ""]
        return "\n".join(lines)

    def _level_lines(self) -> list[str]:
        """Return the lines of the levels in a codebook file, with a comment on their order.

        If the table has none, a level to be replaced stands there, as a codebook needs one.
        """
        if not self.levels:
            return [
                "# The table has no levels, and a codebook needs one: PUT YOURS IN, from low to high.",
                "[[levels]]",
                f"name = {_quoted(NO_LEVEL)}",
                "",
            ]
        comment = "# PUT THE LEVELS IN ORDER, from low to high: here they stand as in the alphabet."
        if self.is_in_order:
            comment = "# Levels from low to high: those of the table are numbers."
        lines = [comment]
        for level in self.levels:
            lines += ["[[levels]]", *_toml_lines(level), ""]
        return lines

    def _task_to_fill_in(self) -> list[str]:
        """Return the lines of a task, commented out: a person has to choose its levels and uncomment it."""
        if len(self.levels) < MIN_LEVELS_OF_TASK:
            return []
        return [
            "# A TASK says which levels `obygaze evaluate` tells from which others. Put your levels in, and",
            "# remove the sign # before its three lines; or type --negative and --positive each time.",
            "# [tasks.mine]",
            f"# negative = [{_quoted(self.levels[0].name)}]",
            f"# positive = [{_quoted(self.levels[-1].name)}]",
            "",
        ]

    def notices(self) -> list[str]:
        """Return a line for each thing that a person has to decide before the codebook can be used."""
        notices = []
        if self.missing:
            n_cells = sum(word.frequency for word in self.missing)
            shown_words = first_few([repr(word.name) for word in self.missing], SHOWN)
            notices.append(
                f"{counted(n_cells, 'cell')} without a level ({shown_words}), as an import reads it"
            )
        if not self.levels:
            notices.append(
                f"the table has no levels, and a codebook needs one: put yours in the place of {NO_LEVEL!r}"
            )
        if self.may_be_levels:
            typed = " or ".join(option("level", column) for column in self.may_be_levels)
            notices.append(f"if a column of it holds levels, give {typed}")
        if not self.is_in_order:
            notices.append("put the levels in order, from low to high: they stand as in the alphabet")
        if len(self.levels) >= MIN_LEVELS_OF_TASK:
            notices.append(
                "say what 'obygaze evaluate' is to tell apart: by the task in it that you can fill in, or by "
                "--negative LEVEL --positive LEVEL each time"
            )
        pairs = [
            f"{word.name!r} ({word.frequency}) and {word.twin!r}"
            for word in (*self.levels, *self.concepts)
            if word.twin
        ]
        if pairs:
            n_pairs = counted(len(pairs), "pair")
            shown_pairs = first_few(pairs, SHOWN)
            notices.append(f"{n_pairs} of words may be one ({shown_pairs}): if so, make one a synonym")
        return notices


@checked
def guess_codebook(path: Path | str, headings: Headings | None = None) -> GuessedCodebook:
    r"""Draft a codebook of the words in a table's columns of levels and concepts.

    Parameters
    ----------
    path
        A table as `import_spans` reads it: CSV or .xlsx, whatever its headings are.
    headings
        Which columns hold levels (`level`) and concepts (`concepts`), and the annotators who have a column of
        levels each (`wide`). By default columns headed as levels or concepts in several languages.

    Raises
    ------
    ManifestError
        It is no table, a heading that is named is not in it, or no column is known to hold levels or
        concepts.

    Examples
    --------
    >>> from pathlib import Path
    >>> from obygaze_features.manifest import guess_codebook
    >>> _ = Path("ratings.csv").write_text("film,rating\na,low\nb,high\nc,low\n")
    >>> [(level.name, level.frequency) for level in guess_codebook("ratings.csv").levels]
    [('high', 1), ('low', 2)]
    """
    headings = headings or Headings()
    with reader_process() as child:  # as a stranger's file may be damaged, or too large
        content = read_in_sandbox(child, local_path(path), Reading(headings=headings), _guess_in_child)
    return msgspec.convert(json.loads(content.findings), GuessedCodebook)


def _guess_in_child(file: SpanFile) -> FileContent[RawSpan]:
    """Draft the codebook of a table in the child process that reads its file; `findings` holds it as JSON."""
    guessed = _guess(file, _table(file), file.reading.headings)
    return FileContent(file, findings=json.dumps(asdict(guessed)).encode())


def _guess(file: SpanFile, table: Table, headings: Headings) -> GuessedCodebook:
    """Make a codebook of the words in a table's columns of levels and concepts; the file gives its name.

    A table without levels gets columns that may be levels as a suggestion.

    `headings` has the columns that the person says are levels or concepts.

    Raises
    ------
    ManifestError
        No column is known to hold levels or concepts, or their words make no valid codebook.
    """
    level_columns = _label_columns(table, headings, "level")
    concept_columns = _label_columns(table, headings, "concepts")
    may_be_levels: tuple[str, ...] = ()  # columns to suggest to the person
    if not level_columns:
        may_be_levels = tuple(_columns_of_few_words(table, concept_columns)[:SHOWN])
    if not level_columns and not concept_columns:
        advice = _advice_on_levels(table, may_be_levels)
        raise ManifestError(f"{file.path}: no column is known to hold levels or concepts{advice}")

    columns = (*level_columns, *concept_columns)
    words_of_levels = _count_levels(table, level_columns)
    words_for_no_level = _missing_levels(words_of_levels)  # such as n/a
    levels = [word for word in words_of_levels if word not in words_for_no_level]
    levels.sort(key=_sort_key_of_level)
    # The draft with levels alone is made first, as its levels decide how a cell of concepts is divided.
    without_concepts = GuessedCodebook(
        name=_codebook_name(file.path),
        levels=tuple(levels),
        concepts=(),
        columns=columns,
        may_be_levels=may_be_levels,
        missing=words_for_no_level,
    )
    problem = f"the words of {first_few(list(map(repr, columns)), MAX_SHOWN)} make no codebook"
    remedy = "; write ; between the concepts of a cell" if concept_columns else ""
    with error_context(f"{file.path}: {problem}", remedy):
        words = LabelWords(_codebook_of(without_concepts))
        concepts = tuple(_count_concepts(table, concept_columns, words))
        guessed = replace(without_concepts, concepts=concepts)
        _codebook_of(guessed)  # refuses words that make no valid codebook
    return guessed


def _count_levels(table: Table, columns: Sequence[str]) -> list[CountedWord]:
    """Count the levels in some columns."""
    cells: list[str] = []
    for column in columns:
        cells += _readable_labels(table, column)
    return _count_words(cells)


def _missing_levels(words: Sequence[CountedWord]) -> tuple[CountedWord, ...]:
    """Return the words that stand where there is no level, such as `n/a` or `-`.

    Where another word is `+`, `-` is an answer and no missing level. It is then taken for a level, whose name
    is refused later on: the person writes another word, and no answer is lost.
    """
    has_plus = any(word.name.startswith("+") for word in words)
    missing = [word for word in words if says_no_level(word.name)]
    if has_plus:
        missing = [word for word in missing if set(plain(word.name)) != {"-"}]  # neither `-` nor `--`
    return tuple(missing)


def _codebook_of(draft: GuessedCodebook) -> Codebook:
    """Read a draft as the codebook that its file will be; refuse it if it is not valid."""
    return Codebook(**codebook_parameters(draft.to_toml()))


def _count_concepts(table: Table, columns: Sequence[str], words: LabelWords) -> list[CountedWord]:
    """Count the concepts in some columns; cells that list several are divided as an import divides them.

    The levels (`words`) decide how a cell is divided: it may be a level and a list of concepts.
    """
    concepts: list[str] = []
    for column in columns:
        for concepts_of_cell in listed_parts(_readable_labels(table, column), words):
            concepts += concepts_of_cell
    return _count_words(concepts)


def _table(file: SpanFile) -> Table:
    """Read a table whatever its headings are; refuse a file in which no row can be the header."""
    layout = read_layout(file)
    if layout is None:
        raise file.error("no row of it is the header of a table, of two columns or more")
    return layout.table


def _label_columns(table: Table, headings: Headings, name: str) -> list[str]:
    """Return the columns of levels or concepts: those that the person names, else the one headed so.

    Only one column is taken by its heading, as another may have another annotator's labels. A column headed
    as levels must have few different words: one of many holds remarks or names.

    `name` is `level` or `concepts`.

    Raises
    ------
    ManifestError
        The table has no column of a heading, or of an annotator, that the person names.
    """
    named_columns = _columns_named_by_person(table, headings, name)
    if named_columns:
        return named_columns
    if name in table.columns:
        return [name]
    for column in table.columns:
        meanings = meanings_of_heading(column)  # the likeliest first
        if not meanings or meanings[0] != name:
            continue
        has_too_many_words = name == "level" and not _are_few(cells_of(table, column))
        if not has_too_many_words:
            return [column]
    return []


def _columns_named_by_person(table: Table, headings: Headings, name: str) -> list[str]:
    """Return the columns that the person says are levels, or concepts; none if the person does not say.

    Levels may also be in columns headed by their annotators (`Headings.wide`). Of each annotator the first
    such column is taken: others may hold concepts or remarks.

    `name` is `level` or `concepts`.

    Raises
    ------
    ManifestError
        The table has no column of a heading, or of an annotator, that the person names.
    """
    columns: list[str] = []
    for heading in headings.columns.get(name, ()):
        column = find_column(table, heading)
        if column is None:
            raise _absent_column(table, heading)
        columns.append(column)
    if name == "level":
        for annotator in headings.wide:
            columns_of_annotator = columns_headed_by(annotator, table.columns)
            if not columns_of_annotator:
                raise _absent_column(table, annotator)
            first_column, *_ = columns_of_annotator
            columns.append(first_column)
    return columns


def _absent_column(table: Table, heading: str) -> ManifestError:
    """Return the error for a heading that the person names and the table does not have."""
    columns = first_few(table.columns, MAX_SHOWN)
    return ManifestError(f"{table.path}: no column {heading!r}; found {columns}")


def _are_few(cells: Sequence[str]) -> bool:
    """Return whether cells have few different words, from 2 to 12, as those of an ordered label do."""
    return 1 < len(set(cells)) <= MAX_LEVELS


def _columns_of_few_words(table: Table, taken: Sequence[str]) -> list[str]:
    """Return the columns of few different words that may hold levels.

    Left out are columns that are `taken`, those without a heading, those of every manifest, and those headed
    as something else than levels.
    """
    columns = []
    for column in table.columns:
        if not column or column in (*taken, *OUR_COLUMNS):
            continue
        cells = cells_of(table, column)
        if _are_few(cells) and not _has_other_meaning(column, cells):
            columns.append(column)
    return columns


def _has_other_meaning(column: str, cells: Sequence[str]) -> bool:
    """Return whether a column's heading means a column of a manifest other than levels.

    A heading that means times counts only if every filled cell has a digit: "ab" is German for "from", and so
    a heading of starts, but may also be an annotator AB.
    """
    meanings = meanings_of_heading(column)
    if not meanings or meanings[0] == "level":
        return False
    if meanings[0] in TIMES:
        return all(DIGITS.search(cell) for cell in cells if cell)
    return True


def _advice_on_levels(table: Table, columns: Sequence[str]) -> str:
    """Return the end of a message: the options with which some columns would be read as levels.

    Several columns may be levels by one annotator each. They have words in common then, as all annotators
    use the same levels.
    """
    if not columns:
        return ": name it with --column level=HEADING"
    options = [option("level", column) for column in columns]
    advice = f": give {' or '.join(options)}"
    words_of_columns = [set(cells_of(table, column)) for column in columns]
    common_words = set.intersection(*words_of_columns)
    if len(columns) > 1 and common_words:
        advice += f", or {wide_option(columns)} where each is an annotator's"
    return advice


def _readable_labels(table: Table, column: str) -> list[str]:
    """Return the cells of a column that are neither empty nor errors of a spreadsheet."""
    return [composed(cell) for cell in readable_cells(table, column)]


def _count_words(cells: Iterable[str]) -> list[CountedWord]:
    """Count words, the most frequent first; spellings that differ only in case or blanks are one word.

    A word is named by its most frequent spelling. A rare word may be a misspelling of a more frequent one,
    its twin. Only short words are compared for this, and not very many, as it takes long.
    """
    counts = Counter(without_zeros(cell) for cell in cells)
    spellings_of_word: dict[str, list[str]] = {}  # word in small letters -> spellings, frequent ones first
    for spelling, _ in counts.most_common():
        spellings_of_word.setdefault(plain(spelling), []).append(spelling)

    counted_words: list[CountedWord] = []
    name_of_word: dict[str, str] = {}  # of the short words so far, which are more frequent than the next ones
    for word, spellings in spellings_of_word.items():
        name, *other_spellings = spellings
        is_short = len(word) <= LONGEST_COMPARED
        is_number = not math.isnan(number_of(name))  # 1 and 11 are no misspellings of each other
        is_compared = is_short and not is_number and len(counted_words) < MAX_COMPARED
        twin = _similar_word(word, name_of_word) if is_compared else ""

        frequency = sum(counts[spelling] for spelling in spellings)
        counted_words.append(CountedWord(name, tuple(other_spellings), frequency, twin))
        if is_short:
            name_of_word[word] = name
    return counted_words


def _similar_word(word: str, name_of_word: Mapping[str, str]) -> str:
    """Return the name of the more frequent word that another may be a misspelling of; "" if there is none."""
    near = get_close_matches(word, name_of_word, n=1, cutoff=MIN_SIMILARITY)
    return name_of_word[near[0]] if near else ""


def _sort_key_of_level(word: CountedWord) -> tuple[float, str]:
    """Return the key by which levels are sorted: numbers in rising order, then words by the alphabet."""
    number = number_of(word.name)
    if math.isnan(number):
        return (math.inf, plain(word.name))
    return (number, "")


def _codebook_name(path: Path) -> str:
    """Return a name for the codebook of a table: its file's name, changed if a built-in codebook has it."""
    name = slug(path.stem).lower()
    if name in BUILTIN:
        return f"{name}-words"
    return name


def _toml_lines(word: CountedWord) -> list[str]:
    """Return the TOML lines of a level or concept, with comments on its count, spellings and twin."""
    lines = [f"name = {_quoted(word.name)}  # {word.frequency:,}"]
    if word.spellings:
        lines.append(f"# Also written {', '.join(map(_quoted, word.spellings))}, which is read as this.")
    if word.twin:
        lines.append(
            f"# Like {_quoted(word.twin)}: if it is that, delete this entry and make it a synonym there."
        )
    return lines


def _quoted(text: str) -> str:
    """Write a text as TOML, which escapes as JSON does."""
    return json.dumps(text, ensure_ascii=False)
