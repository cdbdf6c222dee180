"""Tell what the cells of a table's column are: times, labels, marks, names of files, whatever its heading."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from obygaze_features.cells import is_unreadable
from obygaze_features.errors import ManifestError
from obygaze_features.file_kinds import FILM_SUFFIXES
from obygaze_features.identity import plain
from obygaze_features.manifest.spans.headings import KNOWN_HEADINGS, bare_heading
from obygaze_features.manifest.spans.instant import FRAME_CODE, instants, is_clock, time_or_nan
from obygaze_features.manifest.spans.label_words import LabelWords
from obygaze_features.manifest.spans.names import path_of, without_zeros
from obygaze_features.manifest.text_tables import Table

SIGNS_OF_YES: Final = {
    "number": {"1", "1.0"},
    "cross": {"x", "xx", "☒"},
    "tick": {"✓", "✔", "☑"},
    "dot": {"●", "•"},
    "star": {"*"},
    "plus": {"+"},
    "word": {
        "yes", "y", "true", "ja", "j", "wahr", "oui", "vrai", "sí", "sì", "si", "vero", "verdadero",
        "verdadeiro", "sim", "present", "vorhanden", "présent", "checked",
    },
}  # fmt: skip
"""Kind of sign -> marks that say that the label in a column's heading is there, as names are compared.
Two kinds of them in one column may be a yes and a no, so that `LabelReader` asks."""

YES: Final = frozenset[str]().union(*SIGNS_OF_YES.values())
"""Marks that say that the label in a column's heading is there."""

NO: Final = {
    "", "0", "0.0", "-", "–", "—", "☐", "○", "✗", "✘", "no", "n", "false", "nein", "falsch", "non", "faux",
    "falso", "não", "nao", "absent", "nicht vorhanden", "n/a", "na",
}  # fmt: skip
"""Marks that say that the label in a column's heading is not there."""

MARKS: Final = YES | NO

MIN_SHARE = 2 / 3
"""A column is of a kind, such as times, if at least this share of its cells is; others may be mistyped."""

SHORTEST_IN_HEADING: Final = 4
"""Labels of fewer letters are not looked for inside a longer heading, as they may be ordinary words."""

_RANGE = re.compile(
    r"(.{0,40}?\d.{0,40}?)\s{0,9}(?:[-–—~→]|-->|\bto\b|\btill\b|\bbis\b|\bà\b|\ba\b|\bal?\b)\s{0,9}(\d.{0,40})"
)
"""Two times in a cell with a dash, an arrow or a word for `to` between them."""

_FROM = re.compile(r"\A(?:from|von|de|du|da(?:lle)?|desde)\b\s*", re.IGNORECASE)
"""A word for `from` before the first of two times."""

_SEPARATORS = re.compile(r"[\s:._-]+")
"""Blanks and signs between the words of a heading."""

_WORDS_OF_PROGRAMS: Final = {"answer", "answers", "response", "responses", "result", "results", "output"}
"""Words that survey programs write in front of a heading: `Answer.level.S`."""

_WORD = re.compile(r"[^\W_]+")

_DIGIT = re.compile(r"\d")
"""A digit, which each time has."""


class LabelCounts(NamedTuple):
    """How many of a column's cells are labels.

    Attributes
    ----------
    n_cells
        Cells that are neither empty nor errors, nor say that there is no label.
    n_levels
        Those of them that are levels, with concepts or without.
    n_concepts
        Those of them that are concepts alone.
    """

    n_cells: int
    n_levels: int
    n_concepts: int

    @property
    def n_labels(self) -> int:
        """How many cells are levels or concepts."""
        return self.n_levels + self.n_concepts

    @property
    def are_labels(self) -> bool:
        """Whether more than half of the cells are levels or concepts."""
        return 2 * self.n_labels > self.n_cells

    @property
    def are_levels(self) -> bool:
        """Whether most cells are labels, and at least a tenth of the labels are levels.

        If fewer of the labels are, these are rather concepts that happen to be spelled like a level.
        """
        has_enough_levels = 10 * self.n_levels >= self.n_labels
        return self.are_labels and has_enough_levels

    @property
    def are_concepts(self) -> bool:
        """Whether most cells are labels, and more than nine tenths of the labels are concepts alone.

        With fewer, the column is one of levels (`are_levels`), which may have concepts beside them.
        """
        return self.are_labels and not self.are_levels

    @property
    def are_levels_and_concepts(self) -> bool:
        """Whether the column has levels, and at least a fifth of its labels are concepts alone."""
        has_enough_concepts = 5 * self.n_concepts >= self.n_labels
        return self.are_levels and has_enough_concepts


def cells_of(table: Table, column: str) -> list[str]:
    """Return the cells of a column that are not empty."""
    cells = [row.cells[column].strip() for row in table.rows]
    return [cell for cell in cells if cell]


def readable_cells(table: Table, column: str) -> list[str]:
    """Return the cells of a column that are neither empty nor errors."""
    return [cell for cell in cells_of(table, column) if not is_unreadable(cell)]


# --- times
# ---------------------------------------------------------------------------
def is_time(cell: str) -> bool:
    """Return whether a cell is a time: seconds, a clock, or a time code with frames."""
    return not math.isnan(time_or_nan(cell)) or FRAME_CODE.fullmatch(cell.strip()) is not None


def are_times(cells: Sequence[str]) -> bool:
    """Return whether at least two thirds of the cells are times; the others may be mistyped."""
    n_times = sum(not math.isnan(seconds) for seconds in seconds_in(cells))
    return bool(cells) and n_times >= MIN_SHARE * len(cells)


def are_clocks(cells: Sequence[str]) -> bool:
    """Return whether at least two thirds of the cells are times as clocks show them, such as `00:01:05`."""
    # A text may have the form of a clock and be no time, such as `00:99:99`.
    n_clocks = sum(is_clock(cell) and is_time(cell) for cell in cells)
    return bool(cells) and n_clocks >= MIN_SHARE * len(cells)


def are_ranges(cells: Sequence[str]) -> bool:
    """Return whether at least two thirds of a column's cells hold a start and an end, such as `12.5-18`."""
    n_ranges = 0
    for cell, n_rows in Counter(cells).items():  # equal cells are read once
        if range_in(cell) is not None:
            n_ranges += n_rows
    return bool(cells) and n_ranges >= MIN_SHARE * len(cells)


def range_in(cell: str) -> tuple[str, str] | None:
    """Return the start and the end that a cell holds, as written; None if it does not hold two times.

    Examples
    --------
    >>> range_in("00:01:05 - 00:01:20"), range_in("12.5–18"), range_in("-3"), range_in("2026-11-27")
    (('00:01:05', '00:01:20'), ('12.5', '18'), None, None)
    """
    match = _RANGE.fullmatch(_FROM.sub("", cell.strip().strip("[]()")))
    if match is None:
        return None
    start = match[1].strip(" ,;")
    end = match[2].strip(" ,;")
    if not is_time(start) or not is_time(end):
        return None
    return start, end


def seconds_in(cells: Sequence[str]) -> list[float]:
    """Read the cells of a column as seconds; NaN for a cell that is no time.

    All cells together decide whether a comma or a point is the decimal sign. The frames at the end of a time
    code are read as hundredths of a second: the rate is not known here, and this is near enough to compare
    times.
    """
    # Equal cells are read once, as a column may have a few times in very many rows.
    candidates = [cell for cell in dict.fromkeys(cells) if _DIGIT.search(cell)]
    texts = [_with_frames_as_hundredths(cell) for cell in candidates]
    try:
        values = instants(texts, usual_sign="")  # the decimal sign may be a point or a comma
    except ManifestError:
        # The cells contradict each other, as in their decimal sign: each is read by itself.
        values = [time_or_nan(text) for text in texts]
    value_of = dict(zip(candidates, values, strict=True))
    seconds = []
    for cell in cells:
        value = value_of.get(cell)  # seconds, or an error; None for a cell without digits
        seconds.append(value if isinstance(value, float) else math.nan)
    return seconds


def _with_frames_as_hundredths(cell: str) -> str:
    """Write a time code that ends in frames as if these were hundredths: `00:01:05:12` as `00:01:05.12`.

    How long 12 frames are depends on the film's rate, which is not known where columns are compared. Their
    order is right so, and the error is less than a second. Other cells are returned as they are.
    """
    code = FRAME_CODE.fullmatch(cell.strip())
    if code is None:
        return cell
    return f"{code['hours']}:{code['minutes']}:{code['seconds']}.{code['frames']}"


# --- labels
# ---------------------------------------------------------------------------
def count_labels(cells: Sequence[str], words: LabelWords) -> LabelCounts:
    """Count the cells that hold a level, with or without concepts, and those that hold only concepts.

    Cells that are empty, hold a spreadsheet's error, or say that there is no label are not counted at all.
    """
    n_cells = 0
    n_levels = 0
    n_concepts = 0
    for cell, n_rows in Counter(cells).items():  # equal cells are read once
        has_no_label = words.is_no_concept(cell) and not words.level_of(cell)
        if has_no_label or is_unreadable(cell):
            continue
        n_cells += n_rows
        labels = words.labels_of(cell)
        if labels is None:
            continue
        if labels.level:
            n_levels += n_rows
        else:
            n_concepts += n_rows
    return LabelCounts(n_cells, n_levels, n_concepts)


def label_of_heading(heading: str, words: LabelWords) -> str:
    """Return the level or concept that a column's heading names; "" if it names none.

    The label may be the whole heading, or the heading without a remark in brackets, or the words behind
    a word for concepts or levels, as in `Concept: Look`. The first of these texts that is a label counts.
    """
    for text in texts_in_heading(heading):
        label = words.level_of(text) or words.concept_of(text)
        if label:
            return label
        # A text may list labels, of which some say nothing: it still names one if just one is left.
        listed = words.labels_of(text.strip())
        if listed is not None and len(listed.words) == 1:
            (label,) = listed.words
            return label
    return ""


def texts_in_heading(heading: str) -> tuple[str, str, str]:
    """Return the texts in a heading that may be a label: all of it, without remark, behind a word for labels.

    Examples
    --------
    >>> texts_in_heading("Concept: Look")
    ('Concept: Look', 'concept: look', 'Look')
    """
    return heading, bare_heading(heading), _text_after_role_word(heading)


def _text_after_role_word(heading: str) -> str:
    """Return `Look` of `Concept: Look`; "" if a heading begins with no word for labels.

    Some programs put words of their own before it.

    Examples
    --------
    >>> _text_after_role_word("Answer.concept.Look"), _text_after_role_word("Remark: Look")
    ('Look', '')
    """
    words = _SEPARATORS.split(heading.strip())
    if len(words) > 1 and plain(words[0]) in _WORDS_OF_PROGRAMS:
        words = words[1:]
    first_word, *further_words = words
    role_words = {*KNOWN_HEADINGS["level"], *KNOWN_HEADINGS["concepts"]}
    if plain(first_word) not in role_words:
        return ""
    return " ".join(further_words)


def are_marks(cells: Sequence[str]) -> bool:
    """Return whether all cells are marks of yes or no, such as `x` and `-`; cells with errors are ignored."""
    return all(plain(cell) in MARKS or is_unreadable(cell) for cell in set(cells))


def says_yes(cell: str, label: str, words: LabelWords) -> bool:
    """Return whether a mark says that the label in the heading of its column is there.

    What the person explains comes before the usual signs: with `x=` an x says no, and with `ok=yes` ok says
    yes. The label itself says yes, too.
    """
    explained = words.explained(cell)
    means_no_label = explained is not None and not explained.words
    if means_no_label:
        return False
    label_in_cell = words.level_of(cell) or words.concept_of(cell)
    return plain(cell) in YES or words.is_yes(cell) or label_in_cell == label


def abbreviated_mark(cell: str) -> str:
    """Return the answer, `yes` or `no`, that a cell abbreviates, as `s` abbreviates `sí`; else "".

    It is "" too if words for both begin so.

    Examples
    --------
    >>> abbreviated_mark("s"), abbreviated_mark("N"), abbreviated_mark("fal"), abbreviated_mark("maybe")
    ('yes', 'no', 'no', '')
    """
    mark = plain(cell)
    if not mark.isalpha():
        return ""
    begins_yes = any(word.startswith(mark) for word in SIGNS_OF_YES["word"])
    begins_no = any(word.startswith(mark) for word in NO)
    if begins_yes == begins_no:
        return ""
    return "yes" if begins_yes else "no"


def abbreviate_yes_and_no(cells: Sequence[str]) -> bool:
    """Return whether all cells begin words of yes and no (`abbreviated_mark`), and there are both."""
    marks = {abbreviated_mark(cell) for cell in set(cells)}
    return marks == {"yes", "no"}


def has_yes_marks(cells: Sequence[str]) -> bool:
    """Return whether some cell is a sign for yes, such as `x`; numbers do not count, as 1 may be a grade."""
    texts = {plain(cell) for cell in cells}
    return any(text in YES and not text.isdecimal() for text in texts)


def kinds_of_yes(cells: Sequence[str]) -> dict[str, str]:
    """Return each kind of signs for yes (crosses, ticks, words, ...) among some cells -> its first cell.

    Kinds are in the order in which cells show them.
    """
    cell_of_kind: dict[str, str] = {}
    for cell in dict.fromkeys(cells):
        for kind, signs in SIGNS_OF_YES.items():
            if plain(cell) in signs:
                cell_of_kind.setdefault(kind, cell)
    return cell_of_kind


def has_no_marks(cells: Sequence[str]) -> bool:
    """Return whether some cell is a sign for no, such as `-`; an empty cell is none."""
    return any(plain(cell) in NO for cell in set(cells) if cell)


def is_of_marks(table: Table, column: str, words: LabelWords) -> bool:
    """Return whether a column is headed by a label, and its cells say whether a row has that label.

    Such cells are marks of yes or no, as `x` and `-` under `Look`.
    """
    label = label_of_heading(column, words)
    if not label:
        return False
    cells = readable_cells(table, column)
    if label in words.codebook.concept_names:
        return _are_marks_of_concept(cells, words)
    return _are_marks_of_level(cells, words)


def _are_marks_of_concept(cells: Sequence[str], words: LabelWords) -> bool:
    """Return whether the cells of a column that is headed by a concept say whether the concept is there."""
    unexplained = _without_explained_marks(cells, words)
    # Abbreviated words for yes and no are marks even where one of them is spelled as a level, as `s` (sí)
    # beside `n`. The person is asked about them later.
    if are_marks(unexplained) or abbreviate_yes_and_no(unexplained):
        return True
    # Beside marks of yes, other cells such as `?` are allowed: the person is asked about them, too. But if
    # most cells are labels, they are the labels of rows.
    has_yes = has_yes_marks(cells) or any(words.is_yes(cell) for cell in cells)
    are_labels = count_labels(unexplained, words).are_labels
    return has_yes and not are_labels


def _are_marks_of_level(cells: Sequence[str], words: LabelWords) -> bool:
    """Return whether all cells of a column that is headed by a level are marks, such as 1 and 0."""
    unexplained = _without_explained_marks(cells, words)
    if not are_marks(unexplained):
        return False
    # A codebook may have levels that are called 0 and 1. Then a column with both has the levels of rows. But
    # one with nothing but 1 says in which rows the level of its heading is: it would tell no levels apart.
    has_one_value = len(set(cells)) <= 1
    are_labels = count_labels(unexplained, words).are_labels
    return has_one_value or not are_labels


def _without_explained_marks(cells: Sequence[str], words: LabelWords) -> list[str]:
    """Return the cells without those that the person explains as marks: `是=yes`, or `x=` for no."""
    return [cell for cell in cells if not words.is_yes(cell) and not words.is_explained_as_nothing(cell)]


def label_in_heading(heading: str, words: LabelWords) -> str:
    """Return the longest level or concept among the words of a heading; "" if there is none.

    Examples
    --------
    >>> from obygaze_features import builtin_codebook
    >>> label_in_heading("Is her body shown?", LabelWords(builtin_codebook("obygaze12")))
    'Body'
    """
    # Blanks around each word, so that a label is found only as a whole word.
    text = f" {' '.join(_WORD.findall(plain(heading)))} "
    long_spellings = [spelling for spelling in words.spellings if len(spelling) >= SHORTEST_IN_HEADING]
    found_spellings = [spelling for spelling in long_spellings if f" {spelling} " in text]
    if not found_spellings:
        return ""
    return words.spellings[max(found_spellings, key=len)]


def whole_numbers(cells: Sequence[str]) -> list[int] | None:
    """Return the different numbers of a column in rising order; None if a cell is no integer below 1000.

    Examples
    --------
    >>> whole_numbers(["3", "1", "3.0", "999"]), whole_numbers(["1", "1000"]), whole_numbers(["1.5"])
    ([1, 3, 999], None, None)
    """
    numbers = set[int]()
    for cell in cells:
        text = without_zeros(cell)
        is_number = text.isascii() and text.isdigit() and len(text) < 4
        if not is_number:
            return None
        numbers.add(int(text))
    return sorted(numbers)


# --- names
# ---------------------------------------------------------------------------
def are_files(cells: Sequence[str]) -> bool:
    """Return whether most cells name files of films."""
    # A suffix has a point, which a URL may write as %2E.
    candidates = [cell for cell in cells if "." in cell or "%" in cell]
    n_films = sum(path_of(cell).suffix.lower() in FILM_SUFFIXES for cell in candidates)
    return bool(cells) and n_films >= MIN_SHARE * len(cells)
