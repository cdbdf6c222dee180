"""Tell what the cells of a table's column are: times, labels, marks, names of files, whatever its heading."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from obygaze_features.cells import is_unreadable
from obygaze_features.errors import ManifestError
from obygaze_features.file_kinds import FILM_SUFFIXES
from obygaze_features.manifest.spans.headings import KNOWN_HEADINGS, bare_heading
from obygaze_features.manifest.spans.instant import FRAME_CODE, instants, is_clock, time_or_nan
from obygaze_features.manifest.spans.label_words import LabelWords
from obygaze_features.manifest.spans.names import path_of, plain, without_zeros
from obygaze_features.manifest.text_tables import Table

YES: Final = {
    "1", "1.0", "x", "xx", "✓", "✔", "☑", "☒", "●", "•", "*", "+", "yes", "y", "true", "ja", "j", "wahr",
    "oui", "vrai", "sí", "sì", "si", "vero", "verdadero", "verdadeiro", "sim", "present", "vorhanden",
    "présent", "checked",
}  # fmt: skip
NO: Final = {
    "", "0", "0.0", "-", "–", "—", "☐", "○", "✗", "✘", "no", "n", "false", "nein", "falsch", "non", "faux",
    "falso", "não", "nao", "absent", "nicht vorhanden", "n/a", "na",
}  # fmt: skip
"""What the cells of a column of marks say of its heading: that it is there, or not."""

MOST = 2 / 3
"""Share of a column's cells from which on they say what the column is: others are remarks, or mistyped."""

SHORTEST: Final = 4
"""Letters of a label that is looked for inside a longer heading."""

_RANGE = re.compile(
    r"(.{0,40}?\d.{0,40}?)\s{0,9}(?:[-–—~→]|-->|\bto\b|\btill\b|\bbis\b|\bà\b|\ba\b|\bal?\b)\s{0,9}(\d.{0,40})"
)
"""Two times in a cell, and what stands between them."""

_FROM = re.compile(r"\A(?:from|von|de|du|da(?:lle)?|desde)\b\s*", re.IGNORECASE)
"""What may stand before the first of two times."""


_DIGIT = re.compile(r"\d")
"""A cell without one is no time."""


class Content(NamedTuple):
    """What the cells of a column that are not empty are."""

    n_cells: int
    n_levels: int
    n_concepts: int

    @property
    def n_labels(self) -> int:
        """How many are levels or concepts."""
        return self.n_levels + self.n_concepts

    @property
    def are_labels(self) -> bool:
        """Whether most are levels or concepts."""
        return 2 * self.n_labels > self.n_cells

    @property
    def are_levels(self) -> bool:
        """Whether most are labels, and levels are among them."""
        return self.are_labels and 10 * self.n_levels >= self.n_labels

    @property
    def are_concepts(self) -> bool:
        """Whether most are concepts, and no levels."""
        return self.are_labels and not self.are_levels

    @property
    def are_both(self) -> bool:
        """Whether levels and concepts stand one below the other."""
        return self.are_levels and 5 * self.n_concepts >= self.n_labels


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
    """Return whether most cells are times."""
    n_times = sum(not math.isnan(value) for value in seconds_in(cells))
    return bool(cells) and n_times >= MOST * len(cells)


def are_clocks(cells: Sequence[str]) -> bool:
    """Return whether most cells are times as clocks show them."""
    return bool(cells) and sum(is_clock(cell) and is_time(cell) for cell in cells) >= MOST * len(cells)


def are_ranges(cells: Sequence[str]) -> bool:
    """Return whether most cells hold two times."""
    return bool(cells) and sum(range_in(cell) is not None for cell in cells) >= MOST * len(cells)


def range_in(cell: str) -> tuple[str, str] | None:
    """Return the two times of a cell; None if it does not hold two.

    Examples
    --------
    >>> range_in("00:01:05 - 00:01:20"), range_in("12.5–18"), range_in("-3"), range_in("2026-11-27")
    (('00:01:05', '00:01:20'), ('12.5', '18'), None, None)
    """
    match = _RANGE.fullmatch(_FROM.sub("", cell.strip().strip("[]()")))
    if match is None:
        return None
    start, end = match[1].strip(" ,;"), match[2].strip(" ,;")
    return (start, end) if is_time(start) and is_time(end) else None


def seconds_in(cells: Sequence[str]) -> list[float]:
    """Read cells as times, their decimal sign decided by all of them; NaN where one is none.

    Frames behind a clock count as hundredths: nearly, as their rate is not known. Equal cells are read once.
    """
    timed = [cell for cell in dict.fromkeys(cells) if _DIGIT.search(cell)]
    texts = [_with_hundredths(cell) for cell in timed]
    try:
        values = instants(texts, "")
    except ManifestError:
        values = [time_or_nan(text) for text in texts]
    seconds_of = {cell: value for cell, value in zip(timed, values, strict=True) if isinstance(value, float)}
    return [seconds_of.get(cell, math.nan) for cell in cells]


def _with_hundredths(cell: str) -> str:
    code = FRAME_CODE.fullmatch(cell.strip())
    return cell if code is None else f"{code[1]}:{code[3]}:{code[4]}.{code[6]}"


# --- labels
# ---------------------------------------------------------------------------
def content_of(cells: Sequence[str], words: LabelWords) -> Content:
    """Count the cells that are levels (with concepts or without), and those that are concepts.

    Cells that say that there is no label count as none.
    """
    n_cells = n_levels = n_concepts = 0
    for cell, n in Counter(cells).items():
        is_empty = words.is_no_concept(cell) and not words.level_of(cell)
        if is_empty or is_unreadable(cell):
            continue
        n_cells += n
        labels = words.labels_of(cell)
        if labels is not None and labels.level:
            n_levels += n
        elif labels is not None:
            n_concepts += n
    return Content(n_cells, n_levels, n_concepts)


def label_of_heading(heading: str, words: LabelWords) -> str:
    """Return the level or concept that heads a column; "" if none does.

    What stands in brackets does not count, nor a word for concepts or levels in front: `Concept: Look`.
    """
    for text in (heading, bare_heading(heading), _without_role(heading)):
        label = words.level_of(text) or words.concept_of(text)
        if label:
            return label
        labels = words.labels_of(text.strip())
        if labels is not None and len(labels.words) == 1:
            return labels.words[0]
    return ""


def _without_role(heading: str) -> str:
    """Leave out a word for levels or concepts at the beginning of a heading."""
    first, _, rest = re.sub(r"[\s:._-]+", " ", heading.strip()).partition(" ")
    is_role = any(plain(first) in KNOWN_HEADINGS[name] for name in ("level", "concepts"))
    return rest if is_role else ""


def are_marks(cells: Sequence[str]) -> bool:
    """Return whether all cells say yes or no."""
    return {plain(cell) for cell in cells if not is_unreadable(cell)} <= YES | NO


def has_marks(cells: Sequence[str]) -> bool:
    """Return whether a cell says yes by more than a number, which may be a grade."""
    return any(plain(cell) in YES and not plain(cell).isdecimal() for cell in cells)


def is_of_marks(table: Table, column: str, words: LabelWords) -> bool:
    """Return whether a column is headed by a label, and says by marks where it is."""
    label = label_of_heading(column, words)
    if not label:
        return False
    cells = readable_cells(table, column)
    are_labels = content_of(cells, words).are_labels
    if label in words.codebook.concept_names:
        # A cell that is no mark, such as "?", is asked about where it is read.
        return are_marks(cells) or (has_marks(cells) and not are_labels)
    return are_marks(cells) and (not are_labels or len(set(cells)) < 2)


def label_in_heading(heading: str, words: LabelWords) -> str:
    """Return the level or concept that a heading holds among other words; the longest, "" if none.

    Examples
    --------
    >>> from obygaze_features import builtin_codebook
    >>> label_in_heading("Is her body shown?", LabelWords(builtin_codebook("obygaze12")))
    'Body'
    """
    text = " ".join(["", *re.findall(r"[^\W_]+", plain(heading)), ""])
    known = [
        spelling for spelling in words.spellings if len(spelling) >= SHORTEST and f" {spelling} " in text
    ]
    return words.spellings[max(known, key=len)] if known else ""


def whole_numbers(cells: Sequence[str]) -> list[int] | None:
    """Return the different whole numbers that cells are, in rising order; None if one is no such number."""
    numbers = set[int]()
    for cell in cells:
        text = without_zeros(cell)
        if not (text.isascii() and text.isdigit() and len(text) < 4):
            return None
        numbers.add(int(text))
    return sorted(numbers)


# --- names
# ---------------------------------------------------------------------------
def are_files(cells: Sequence[str]) -> bool:
    """Return whether most cells name files of films."""
    named = sum(path_of(cell).suffix.lower() in FILM_SUFFIXES for cell in cells)
    return bool(cells) and named >= MOST * len(cells)
