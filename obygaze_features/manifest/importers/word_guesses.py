"""Guess which level or concept a word of a table is: by a legend, a number in front, its spelling."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import pairwise
from typing import Final

from obygaze_features.identity import plain
from obygaze_features.manifest.importers.column_contents import NO
from obygaze_features.manifest.spans.headings import bare_heading
from obygaze_features.manifest.spans.label_words import (
    LabelWords,
    further_parts,
    may_be_divided,
    texts_of_list,
)
from obygaze_features.text import number_of
from obygaze_features.workbook import Records

MIN_SIMILARITY: Final = 0.84
"""Likeness (difflib) from which on a word may be one that was mistyped."""

SHORTEST_NEAR: Final = 5
"""Letters of a word that is compared so: shorter ones are like too many."""

SHORTEST_SPELLING: Final = 3
"""Letters of a label that words are compared with."""

LONGEST_CODE: Final = 12
"""Characters of a code that a legend explains: what is longer is a text."""

LONGEST_LABEL_CODE: Final = 3
"""Characters of a label, such as EN, that a legend may explain as another one: what is longer is a word."""

LONGEST_WORDS: Final = 8
"""Words of a label; what is longer is a remark."""

MAX_PARTS: Final = 30
"""Different labels of a column of concepts: one of more is of remarks."""

MIN_REPEATS: Final = 1.5
"""How often each word of lists is there on average, at least: words of texts are repeated less."""

MIN_COMBINATIONS: Final = 3
"""Different combinations of words that lists have at least."""

_CODED = re.compile(r"\W*(?P<code>\d{1,2}|[^\W\d_]{1,3})\s*[-–—:.)=]\s*(?P<text>\D.*)")
"""A label with its code in front: `3 – Sure`, `EN: easy negative`."""

_ABBREVIATION = re.compile(r"(?:[^\W\d_]\.\s?){2,}")
"""Letters with points behind them, such as `n.s.`: no code in front of a label."""

_WORDS_FOR_NO: Final = {mark for mark in NO if mark.isalpha() and len(mark) > 1} | {
    "not",
    "nicht",
    "pas",
    "niet",
}
"""Words that deny a label behind which they stand."""

_IN_BRACKETS = re.compile(r"[(\[]([^()\[\]]+)[)\]]")

_EXPLAINED = re.compile(r"([^\W_]{1,4})\s*[=:]\s*([^,;|\n)\]]+)")
"""A code and what it means, in a heading: `(0=EN, 1=HN)`."""


def label_like(text: str, words: LabelWords) -> str:
    """Return the level or concept that a text names, ignoring a code in front or a remark; "" if none.

    A text names no label if

    - a code in front is another label: `EN-HN` names two levels, or a range of them;
    - it ends with a word for no, which denies the label: `Body (no)`.

    A letter of an abbreviation is no code: `n.s.` is not the level S.

    Examples
    --------
    >>> from obygaze_features import builtin_codebook
    >>> words = LabelWords(builtin_codebook("obygaze12"))
    >>> label_like("3 – Sure", words), label_like("sure (clearly)", words), label_like("Paris", words)
    ('S', 'S', '')
    >>> label_like("Body (yes)", words), label_like("Body (no)", words), label_like("n.s.", words)
    ('Body', '', 'NS')
    """
    if _ABBREVIATION.fullmatch(text.strip()):
        return _label_of("".join(text.replace(".", "").split()), words)
    label = _label_of(text.strip(), words)
    if label:
        return label
    if _is_denied(text):
        return ""

    # The text without its brackets; what is behind a code; what its brackets hold: the first label counts.
    forms = [bare_heading(text)]
    label_of_code = ""
    coded = _CODED.fullmatch(text.strip())
    if coded is not None:
        label_of_code = _label_of(coded["code"], words)
        text_behind_code = coded["text"]
        forms += [text_behind_code, bare_heading(text_behind_code)]
    forms += _IN_BRACKETS.findall(text)
    labels = [_label_of(form.strip(), words) for form in forms]
    label = next(filter(None, labels), "")
    is_code_another_label = label_of_code not in {"", label}
    return "" if is_code_another_label else label


def _label_of(text: str, words: LabelWords) -> str:
    """Return the level or concept that a whole text stands for; "" if none."""
    return words.level_of(text) or words.concept_of(text)


def _is_denied(text: str) -> bool:
    """Return whether a text ends with a word for no, as `Body (no)`, `Body: nein` and `sure, not` do.

    A number is none, as in `EN (0)` it is a code.
    """
    *before, last_word = re.findall(r"[^\W_]+", plain(text)) or [""]
    return bool(before) and last_word in _WORDS_FOR_NO


def label_near(text: str, words: LabelWords) -> str:
    """Return the level or concept that a text may misspell, or names with signs around it; "" if none.

    Examples
    --------
    >>> from obygaze_features import builtin_codebook
    >>> label_near("Clothign", LabelWords(builtin_codebook("obygaze12")))
    'Clothing'
    """
    if _ABBREVIATION.fullmatch(text.strip()):
        return label_like(text, words)
    without_signs = text.strip(" ?!*.~()[]")
    label = label_like(without_signs, words) or label_like(text, words)
    if label or _is_denied(text):
        return label

    plain_text = plain(text)
    if len(plain_text) < SHORTEST_NEAR:
        return ""
    spellings = [spelling for spelling in words.spellings if len(spelling) >= SHORTEST_SPELLING]
    matches = get_close_matches(plain_text, spellings, n=1, cutoff=MIN_SIMILARITY)
    if not matches:
        return ""
    nearest = matches[0]
    # A text with a further syllable in front may mean the opposite: `unsure` is not `sure`.
    if nearest.endswith(plain_text) or plain_text.endswith(nearest):
        return ""
    return words.spellings[nearest]


def explained_words(
    legend: Iterable[Sequence[str]], headings: Iterable[str], words: LabelWords
) -> dict[str, str]:
    """Return the codes that a table explains itself: code -> level or concept.

    A code may be explained by two cells of a legend beside each other, `1` and `hard negative`, or in a text
    such as `(0=EN, 1=HN)`. A text says more surely which word explains which: wherever it stands, it counts
    before cells. Of several cells the first counts, of several texts the last.

    `legend` are the rows of the workbook's other sheets, and the titles above the table.
    """
    label_of_code: dict[str, str] = {}
    for cells in legend:
        filled_cells = [cell.strip() for cell in cells if cell.strip()]
        for code, text in pairwise(filled_cells):
            label = label_like(text, words)
            may_be_code = len(code) <= LONGEST_CODE and not _label_of(code, words)
            if label and may_be_code:
                label_of_code.setdefault(code, label)  # keeps what a cell or a text said before
        for cell in filled_cells:
            label_of_code |= _meanings_in_text(cell, words)  # replaces it
    for heading in headings:
        label_of_code |= _meanings_in_text(heading, words)
    return label_of_code


def _meanings_in_text(text: str, words: LabelWords) -> dict[str, str]:
    """Return code -> level or concept for the codes that a text explains, such as `(0=EN, 1=HN)`."""
    meanings = {}
    for code, explanation in _EXPLAINED.findall(text):
        label = label_like(explanation, words)
        if label and not _label_of(code, words):
            meanings[code] = label
    return meanings


def explained_otherwise(
    legend: Iterable[Sequence[str]], headings: Iterable[str], words: LabelWords
) -> dict[str, str]:
    """Return the codes of labels that a table explains as another label: code -> that other label.

    In a table with `(S=hard negative)` the letter S is HN, and not the level S of the codebook. The
    explanation may be in a text, as here, or in two cells of a legend beside each other.

    `legend` are the rows of the workbook's other sheets, and the titles above the table.
    """
    rows = [[cell.strip() for cell in cells if cell.strip()] for cells in legend]
    n_cells_with = Counter(cell for cells in rows for cell in cells)
    explanations: list[tuple[str, str]] = []  # of a code and what it means
    for cells in rows:
        for code, text in _pairs_of_legend(cells, words):
            # If the code comes again, the pairs may be the labels that two annotators gave.
            if n_cells_with[code] == 1:
                explanations.append((code, text))
        for cell in cells:
            explanations += _EXPLAINED.findall(cell)
    for heading in headings:
        explanations += _EXPLAINED.findall(heading)

    label_of_code = {}
    for code, text in explanations:
        label = label_like(text, words)
        # A level that is explained by a concept, as in `S | objectifying (body)`, keeps its meaning. So a
        # code is looked up only among the labels of the kind that the explanation is of.
        is_level = label in words.codebook.level_names
        label_in_codebook = words.level_of(code) if is_level else words.concept_of(code)
        is_another_label = label_in_codebook not in {"", label}
        if label and is_another_label and len(code) <= LONGEST_LABEL_CODE:
            label_of_code[code] = label
    return label_of_code


def _pairs_of_legend(cells: Sequence[str], words: LabelWords) -> list[tuple[str, str]]:
    """Return the codes and explanations of a legend's row, `S | sure | HN | hard negative`.

    There are none if the cells that are labels are anything but a code, its explanation, the next code and so
    on: `EN | HN | NS | Sure` lists the labels, and `Easy negative | EN` explains a code behind its meaning.
    """
    names_of_labels = {*words.codebook.level_names, *words.codebook.concept_names}
    places = [place for place, cell in enumerate(cells) if label_like(cell, words)]
    has_label_alone = len(places) % 2 == 1
    if has_label_alone:
        return []
    places_of_codes = places[::2]  # the first, third, ... of the labels
    places_of_texts = places[1::2]
    pairs = []
    for place_of_code, place_of_text in zip(places_of_codes, places_of_texts, strict=True):
        code = cells[place_of_code]
        text = cells[place_of_text]
        is_code = len(code) <= LONGEST_LABEL_CODE
        are_neighbours = place_of_text == place_of_code + 1
        is_explanation = text not in names_of_labels  # but a title, such as `hard negative`
        if not (is_code and are_neighbours and is_explanation):
            return []
        pairs.append((code, text))
    return pairs


# --- lists
# ---------------------------------------------------------------------------
def listed_parts(cells: Sequence[str], words: LabelWords) -> list[list[str]]:
    """Split the cells of a column into the words that they list.

    A cell is first split into parts, at semicolons, line breaks and commas (`_divided_cell`). A part may have
    other signs, such as `+`, which separate words or belong to one word: they divide it into pieces. They
    separate words if each piece is in the column more than once:

    - the cells `look+body`, `body`, `look`: the first one lists two words;
    - the cells `look+body`, `look`: the first one is a single word, as `body` is nowhere else.

    Returns
    -------
    The words of each cell, [n_cells][n_words].
    """
    cells = [words.with_usual_separators(cell) for cell in cells]
    has_semicolons = len([cell for cell in cells if ";" in cell]) > 1

    # Equal cells are split once, as a column repeats them in many rows.
    n_rows_of_cell = Counter(cells)
    parts_of_cell: dict[str, list[str]] = {}
    for cell in n_rows_of_cell:
        parts_of_cell[cell] = _divided_cell(cell, words, has_semicolons=has_semicolons)

    # How often each piece would be in the column if all further signs separated words.
    n_rows_of_piece = Counter[str]()
    for cell, parts in parts_of_cell.items():
        for part in parts:
            for piece in further_parts(part):
                n_rows_of_piece[plain(piece)] += n_rows_of_cell[cell]

    words_of_cell = {}
    for cell, parts in parts_of_cell.items():
        words_of_cell[cell] = _divided_further(parts, n_rows_of_piece, words)
    return [words_of_cell[cell] for cell in cells]


def _divided_further(parts: Sequence[str], n_pieces: Counter[str], words: LabelWords) -> list[str]:
    """Split each part of a cell into the pieces between further signs, such as `+`, if all are repeated.

    `n_pieces` is piece -> how often it would be in the column, if all parts of all cells were split so. A
    part that is a concept is not split.
    """
    divided: list[str] = []
    for part in parts:
        pieces = further_parts(part)
        are_repeated = all(n_pieces[plain(piece)] > 1 for piece in pieces)
        if are_repeated and not words.concept_of(part):
            divided += pieces
        else:
            divided.append(part)
    return divided


def _divided_cell(cell: str, words: LabelWords, *, has_semicolons: bool) -> list[str]:
    """Split a cell that lists labels into its parts, at semicolons, line breaks and commas.

    - A cell that says that there is no concept, such as `none`, has no parts.
    - A list of texts as Python writes it, such as `['Look', 'Body']`, has its texts as parts.
    - If the column separates by semicolons, a comma may be within a text. Then it separates nothing, unless a
      known label stands before or after it.
    """
    if words.is_no_concept(cell):
        return []
    if cell.startswith("[") and cell.endswith("]"):
        return texts_of_list(cell)
    parts: list[str] = []
    for piece in cell.split(";"):
        piece_parts = words.parts_of(piece)  # split at line breaks and commas
        has_label = any(_label_of(part, words) for part in piece_parts)
        has_line_breaks = "\n" in piece
        is_one_text = has_semicolons and not has_label and not has_line_breaks
        if is_one_text:
            parts.append(piece.strip())
        else:
            parts += piece_parts
    return [part for part in parts if part]


def are_lists(listed: Sequence[Sequence[str]]) -> bool:
    """Return whether cells list a few words in several combinations, as cells of concepts do.

    All of these must hold, as otherwise the cells may be texts with commas in them:

    - at least two cells list several words;
    - the words are few (`are_few_words`), and each is there 1.5 times on average, or more often;
    - there are at least three combinations of words, and a word is in several of them.
    """
    filled = [words for words in listed if words]
    n_of_several_words = len([words for words in filled if len(words) > 1])
    if n_of_several_words < 2 or not are_few_words(filled):
        return False

    # Each different list once, as comparing the spelling of words takes time.
    different_lists = set(map(tuple, filled))
    combinations = {frozenset(map(plain, words)) for words in different_lists}
    n_combinations_of_word: Counter[str] = Counter()
    for combination in combinations:
        n_combinations_of_word.update(combination)

    n_words = sum(len(words) for words in filled)
    n_different_words = len(n_combinations_of_word)
    are_repeated = n_words >= MIN_REPEATS * n_different_words
    is_word_in_several = max(n_combinations_of_word.values()) > 1
    return are_repeated and len(combinations) >= MIN_COMBINATIONS and is_word_in_several


def are_few_words(listed: Sequence[Sequence[str]]) -> bool:
    """Return whether lists have few different words, and none that is a number or as long as a remark."""
    words = different_words(listed)
    if not 0 < len(words) <= MAX_PARTS:
        return False
    are_short = all(len(word.split()) <= LONGEST_WORDS for word in words)
    are_no_numbers = all(math.isnan(number_of(word)) for word in words)
    return are_short and are_no_numbers


def has_many_words(cells: Iterable[str], words: LabelWords) -> bool:
    """Return whether a column has more different words than `are_few_words` allows, by its whole cells.

    Cells that may list several words are not counted, so that this is fast: in a long table it rules out
    columns of names and remarks before their cells are split.
    """
    different = set[str]()
    for cell in cells:
        if not may_be_divided(cell) and not words.is_no_concept(cell):
            different.add(plain(cell))
            if len(different) > MAX_PARTS:
                return True
    return False


def different_words(listed: Sequence[Sequence[str]]) -> set[str]:
    """Return the different words of lists, without regard to case and blanks (`plain`)."""
    spellings = {word for words in listed for word in words}  # first, as `plain` takes time
    return set(map(plain, spellings))


def legend_rows(sheets: Iterable[Records]) -> list[list[str]]:
    """Return the rows of a workbook's other sheets, in which there may be a legend."""
    rows = []
    for sheet in sheets:
        rows += [cells for _, cells in sheet]
    return rows
