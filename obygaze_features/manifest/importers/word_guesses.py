"""Guess which level or concept a word of a table is: by a legend, a number in front, its spelling."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import pairwise
from typing import Final

from obygaze_features.manifest.spans.headings import bare_heading
from obygaze_features.manifest.spans.label_words import (
    LabelWords,
    further_parts,
    may_be_divided,
    texts_of_list,
)
from obygaze_features.manifest.spans.names import plain
from obygaze_features.text import number_of
from obygaze_features.workbook import Records

NEAR: Final = 0.84
"""Likeness (difflib) from which on a word may be one that was mistyped."""

SHORTEST_NEAR: Final = 5
"""Letters of a word that is compared so: shorter ones are like too many."""

LONGEST_WORDS: Final = 8
"""Words of a label; what is longer is a remark."""

MOST_PARTS: Final = 30
"""Different labels of a column of concepts: one of more is of remarks."""

_CODED = re.compile(r"\W*(?:\d{1,2}|[^\W\d_]{1,3})\s*[-–—:.)=]\s*(?P<text>\D.*)")
"""A label with its code in front: `3 – Sure`, `EN: easy negative`."""

_EXPLAINED = re.compile(r"([^\W_]{1,4})\s*[=:]\s*([^,;|\n)\]]+)")
"""A code and what it means, in a heading: `(0=EN, 1=HN)`."""


def label_like(text: str, words: LabelWords) -> str:
    """Return the level or concept that a text says, with a code in front or a remark in brackets; "" if none.

    Examples
    --------
    >>> from obygaze_features import builtin_codebook
    >>> words = LabelWords(builtin_codebook("obygaze12"))
    >>> label_like("3 – Sure", words), label_like("sure (clearly)", words), label_like("Paris", words)
    ('S', 'S', '')
    """
    forms = [text, bare_heading(text)]
    if coded := _CODED.fullmatch(text.strip()):
        forms += [coded["text"], bare_heading(coded["text"])]
    inside = re.findall(r"[(\[]([^()\[\]]+)[)\]]", text)
    forms += inside
    for form in forms:
        label = words.level_of(form.strip()) or words.concept_of(form.strip())
        if label:
            return label
    return ""


def label_near(text: str, words: LabelWords) -> str:
    """Return the level or concept that a text is nearly: mistyped, or with a sign of doubt; "" if none is.

    Examples
    --------
    >>> from obygaze_features import builtin_codebook
    >>> label_near("Clothign", LabelWords(builtin_codebook("obygaze12")))
    'Clothing'
    """
    bare = text.strip(" ?!*.~()[]")
    doubted = label_like(bare, words) or label_like(text, words)
    if doubted:
        return doubted
    written = plain(text)
    if len(written) < SHORTEST_NEAR:
        return ""
    spellings = words.spellings
    near = get_close_matches(written, [known for known in spellings if len(known) > 2], n=1, cutoff=NEAR)
    if not near or near[0].endswith(written) or written.endswith(near[0]):  # `unsure` is not `sure`
        return ""
    return spellings[near[0]]


def explained_words(
    legend: Iterable[Sequence[str]], headings: Iterable[str], words: LabelWords
) -> dict[str, str]:
    """Return what a table's own legend says of its codes: rows of code and label, headings that list them.

    Parameters
    ----------
    legend
        Rows of the sheets beside the table, and of titles above it.
    headings
        Of the table's columns.
    words
        Of the codebook, with translations.
    """
    meanings: dict[str, str] = {}
    for cells in legend:
        filled = [cell.strip() for cell in cells if cell.strip()]
        for code, text in pairwise(filled):
            label = label_like(text, words)
            if label and len(code) <= 12 and not words.level_of(code) and not words.concept_of(code):
                meanings.setdefault(code, label)
        for cell in filled:
            meanings |= _explained_in(cell, words)
    for heading in headings:
        meanings |= _explained_in(heading, words)
    return meanings


def _explained_in(text: str, words: LabelWords) -> dict[str, str]:
    """Return the codes that a text explains."""
    meanings = {}
    for code, meant in _EXPLAINED.findall(text):
        label = label_like(meant, words)
        if label and not words.level_of(code) and not words.concept_of(code):
            meanings[code] = label
    return meanings


# --- lists
# ---------------------------------------------------------------------------
def listed_parts(cells: Sequence[str], words: LabelWords) -> list[list[str]]:
    """Divide the cells of a column into the words that they list.

    Signs besides semicolons and commas divide where that gives words that the column has elsewhere too; and
    a comma is part of a word, where semicolons divide and none of the words around it is known.
    """
    has_semicolons = sum(";" in cell for cell in cells) > 1
    n_cells = Counter(cells)
    first = {cell: _first_parts(cell, words, has_semicolons=has_semicolons) for cell in n_cells}
    counts = Counter[str]()
    for cell, parts in first.items():
        for part in parts:
            for piece in further_parts(part):
                counts[plain(piece)] += n_cells[cell]
    divided = {cell: _further_divided(parts, counts, words) for cell, parts in first.items()}
    return [divided[cell] for cell in cells]


def _further_divided(parts: Sequence[str], counts: Counter[str], words: LabelWords) -> list[str]:
    """Divide parts of a cell at further signs, where that gives words that the column has elsewhere too."""
    divided: list[str] = []
    for part in parts:
        pieces = further_parts(part)
        is_list = not words.concept_of(part) and all(counts[plain(piece)] > 1 for piece in pieces)
        divided += pieces if is_list else [part]
    return divided


def _first_parts(cell: str, words: LabelWords, *, has_semicolons: bool) -> list[str]:
    """Divide a cell at semicolons, line breaks and commas; `has_semicolons` is of several cells."""
    if words.is_no_concept(cell):
        return []
    if cell.startswith("[") and cell.endswith("]"):
        return texts_of_list(cell)
    parts: list[str] = []
    for piece in cell.split(";"):
        inside = words.parts_of(piece)
        is_one = has_semicolons and not any(words.concept_of(part) or words.level_of(part) for part in inside)
        parts += [piece.strip()] if is_one and "\n" not in piece else inside
    return [part for part in parts if part]


def are_lists(listed: Sequence[Sequence[str]]) -> bool:
    """Return whether cells list a few words that come in several combinations, such as concepts.

    Parameters
    ----------
    listed
        The words that each cell lists (`listed_parts`); those without words are ignored.
    """
    listed = [parts for parts in listed if parts]
    n_lists = sum(len(parts) > 1 for parts in listed)
    if n_lists < 2 or not are_few_words(listed):
        return False
    combinations = {frozenset(map(plain, parts)) for parts in set(map(tuple, listed))}
    counts = Counter(plain(part) for parts in combinations for part in parts)
    n_parts = sum(map(len, listed))
    are_repeated = 3 * len(counts) <= 2 * n_parts
    return are_repeated and len(combinations) > 2 and max(counts.values()) > 1


def are_few_words(listed: Sequence[Sequence[str]]) -> bool:
    """Return whether lists are of a few different words, none of them a number or as long as a remark."""
    words = different_words(listed)
    if not 0 < len(words) <= MOST_PARTS:
        return False
    are_short = all(len(word.split()) <= LONGEST_WORDS for word in words)
    return are_short and all(math.isnan(number_of(word)) for word in words)


def has_many_words(cells: Iterable[str], words: LabelWords) -> bool:
    """Return whether cells that nothing divides are more different words than `are_few_words` takes.

    This tells the columns of names and remarks of a long table before their cells are divided.
    """
    different = set[str]()
    for cell in cells:
        if not may_be_divided(cell) and not words.is_no_concept(cell):
            different.add(plain(cell))
            if len(different) > MOST_PARTS:
                return True
    return False


def different_words(listed: Sequence[Sequence[str]]) -> set[str]:
    """Return the different words of lists, as words are compared."""
    written = {part for parts in listed for part in parts}
    return set(map(plain, written))


def legend_rows(records: Iterable[Records]) -> list[list[str]]:
    """Return the rows of some sheets."""
    return [cells for sheet in records for _, cells in sheet]
