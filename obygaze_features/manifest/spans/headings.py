"""Tell which headings of a table stand for columns of ours: by their names, and as a person says it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from obygaze_features.errors import ManifestError
from obygaze_features.identity import plain
from obygaze_features.manifest.spans.names import name_hint
from obygaze_features.manifest.text_tables import OUR_COLUMNS, TIMES, heading_name
from obygaze_features.templates import packaged

FILM_COLUMNS: Final = ("movie", "video")
LABEL_COLUMNS: Final = ("level", "concepts")

DURATION: Final = "duration_s"
"""A column of people's tables that stands in place of `end_s`: how long after its start a span ends."""

NAMED_COLUMNS: Final = (*OUR_COLUMNS, DURATION)
"""Columns that a heading may stand for."""

KNOWN_HEADINGS: Final[Mapping[str, Sequence[str]]] = packaged(__package__, "headings.toml")
"""Column of ours -> headings that people give it, as names are compared."""

MAX_WORDS = 40
"""A text of more words than this is no heading of ours."""
_SHORTEST_WORD = 3
"""Letters of a known heading that is looked for inside a longer one: `a` and `in` are in too many."""

_WHOLE_HEADING = 1000
"""Rank of a column with this very heading; a part of a heading has its number of characters as its rank."""

SIGNS_AROUND_NAMES = " _-:.@()[]/|"
"""Signs that people write between an annotator's name and the rest of a heading."""

_BRACKETS = re.compile(r"[(\[{][^()\[\]{}]*+[)\]}]")


@dataclass(frozen=True)
class Headings:
    """Headings of tables that a person names.

    Parameters
    ----------
    columns
        Column of ours (or `duration_s`) -> the headings that stand for it. Several stand for `level` or
        `concepts` alone: each is a column of marks, or of labels, and what all say together counts. One
        heading may be both `start_s` and `end_s`: its cells hold both times. The heading "" says that a table
        has no column of `level`, or of `concepts`, whatever its cells look like.
    wide
        Annotators who each have a column of labels, headed by their name, or several whose headings begin or
        end with it (`Level AB`, `Concepts AB`).

    Raises
    ------
    ManifestError
        A column is none of ours, several headings stand for another than `level` and `concepts`, or a heading
        is named twice.
    """

    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    wide: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Refuse unknown columns, columns with a wrong number of headings, and headings named twice."""
        for name, headings in self.columns.items():
            if name not in NAMED_COLUMNS:
                hint = name_hint(name, NAMED_COLUMNS) or f": expected one of {', '.join(NAMED_COLUMNS)}"
                raise ManifestError(f"column {name!r} is none of a manifest{hint}")
            if name in LABEL_COLUMNS:
                continue  # labels may be in several columns, or in none, which the heading "" says
            if len(headings) > 1:
                several = ", ".join(map(repr, headings))
                raise ManifestError(f"column {name!r}: one heading was expected, not {several}")
            if "" in headings:
                raise ManifestError(f"column {name!r}: the heading that stands for it was expected")
        if DURATION in self.columns and "end_s" in self.columns:
            raise ManifestError(f"end_s and {DURATION} are named: a span ends at one, or after the other")
        headings_before = set[str]()
        for heading in self.named():
            if plain(heading) in headings_before:
                raise ManifestError(f"heading {heading!r} is named twice")
            headings_before.add(plain(heading))

    @property
    def has_one_column_of_times(self) -> bool:
        """Whether the person names one heading for both starts and ends."""
        start = self.columns.get(TIMES[0], ())
        end = self.columns.get(TIMES[1], ())
        return bool(start) and list(map(plain, start)) == list(map(plain, end))

    def named(self) -> list[str]:
        """Return all headings that the person names, each once, and the names of annotators (`wide`).

        Annotators' names are a part of headings, such as `Level AB`. The heading "" is left out, as it says
        that a table has no such column.
        """
        _, end = TIMES
        named_headings: list[str] = []
        for name, headings in self.columns.items():
            # One column may hold both times: its heading is there already, as that of starts.
            repeats_start = name == end and self.has_one_column_of_times
            if not repeats_start:
                named_headings += [heading for heading in headings if heading]
        return [*named_headings, *self.wide]

    def has_none_of(self, name: str) -> bool:
        """Return whether the person says that the table has no column of `name`: level, or concepts.

        The person says so by an empty heading, as in `--column level=`.
        """
        return "" in self.columns.get(name, ())

    def are_in(self, cells: Sequence[str]) -> bool:
        """Return whether a row is the header that the person's options mean: it has two of their headings.

        One is enough if the options name only one. If they name several, a row with one of them may be a line
        of a legend.
        """
        n_named = len(self.named())
        n_needed = min(2, n_named)
        return n_named > 0 and self.n_in(cells) >= n_needed

    def are_of(self, column: str) -> bool:
        """Return whether a column's heading is one of those that the person's options name."""
        return any(self.is_in(heading, [column]) for heading in self.named())

    def is_in(self, heading: str, cells: Iterable[str]) -> bool:
        """Return whether a row of cells has a heading that the person's options name.

        An annotator's name (one of `wide`) need not be a whole cell: it may be the beginning or end of one.
        """
        cells = list(cells)
        is_a_cell = any(plain(heading) == plain(cell) for cell in cells)
        is_annotator = heading in self.wide
        return is_a_cell or (is_annotator and any(is_headed_by(heading, cell) for cell in cells))

    def n_in(self, cells: Sequence[str]) -> int:
        """Count the headings of the person's options (`named`) that a row of cells has."""
        return sum(self.is_in(heading, cells) for heading in self.named())

    def is_header(self, cells: Sequence[str]) -> bool:
        """Return whether a row of cells is the header of a table of spans.

        It is the header if it has one of these:

        - a manifest's columns of both times, `start_s` and `end_s`;
        - a manifest's column of films and one of labels, such as `movie` and `level`;
        - headings that the person's options name (`are_in`).
        """
        names = {heading_name(cell) for cell in cells}
        has_times = set(map(plain, TIMES)) <= names
        has_films = not names.isdisjoint(FILM_COLUMNS)
        has_labels = not names.isdisjoint(LABEL_COLUMNS)
        return has_times or (has_films and has_labels) or self.are_in(cells)


# --- columns of annotators
# ---------------------------------------------------------------------------
def is_headed_by(annotator: str, heading: str) -> bool:
    """Return whether a heading is an annotator's name, or begins or ends with it.

    Examples
    --------
    >>> is_headed_by("AB", "Level AB"), is_headed_by("AB", "AB_concepts"), is_headed_by("AB", "ABC")
    (True, True, False)
    """
    name = words_of(annotator)
    words = words_of(heading)
    return bool(name) and (words[: len(name)] == name or words[-len(name) :] == name)


def without_name(annotator: str, heading: str) -> str:
    """Return a heading without the annotator's name at its beginning or end, and without signs around it.

    A heading without the name is returned as it is.

    Examples
    --------
    >>> without_name("AB", "Type of shot (AB)"), without_name("AB", "AB")
    ('Type of shot', '')
    """
    heading = heading.strip()
    annotator = annotator.strip()
    name = re.escape(annotator)
    # The name must be a whole word: no further digit next to a number, no further letter next to letters.
    digit = r"\d"
    letter = r"[^\W\d_]"
    same_kind = digit if annotator.isdecimal() else letter
    name_at_beginning = rf"\A\W*{name}(?!{same_kind})"
    name_at_end = rf"(?<!{same_kind}){name}\W*\Z"
    for pattern in (name_at_beginning, name_at_end):
        rest = re.sub(pattern, "", heading, flags=re.IGNORECASE)
        if rest != heading:
            return rest.strip(SIGNS_AROUND_NAMES)
    return heading


def columns_headed_by(annotator: str, columns: Sequence[str]) -> list[str]:
    """Return an annotator's columns: those headed by the name alone, else those that begin or end with it.

    Parameters
    ----------
    annotator
        The annotator's name.
    columns
        The headings of all columns of the table.
    """
    exact = [column for column in columns if plain(column) == plain(annotator)]
    return exact or [column for column in columns if is_headed_by(annotator, column)]


@lru_cache(1 << 14)
def words_of(text: str) -> tuple[str, ...]:
    """Split a text into its words and numbers, in the form in which names are compared (`plain`)."""
    return tuple(re.findall(r"[^\W\d_]+|\d+", plain(text)))


# --- headings that people give
# ---------------------------------------------------------------------------
def bare_heading(heading: str) -> str:
    """Return a heading in the form of `KNOWN_HEADINGS`: as `plain` writes it, without texts in brackets.

    Examples
    --------
    >>> bare_heading("Anfang (s):")
    'anfang'
    """
    return _BRACKETS.sub("", plain(heading)).strip(" .:*#")


@lru_cache(1 << 12)  # more headings than the tables have that are read at a time
def meanings_of_heading(heading: str) -> tuple[str, ...]:
    """Return the columns of a manifest that people may mean by a heading, the likeliest first.

    A column with this very heading comes first. Then come columns with a heading that is a part of this one,
    that with the longest part first: `début`, a heading of `start_s`, is a part of `Temps de début`.
    """
    bare = bare_heading(heading)
    words = words_of(bare)
    is_too_long_for_heading = len(words) > MAX_WORDS
    if is_too_long_for_heading:
        return ()
    rank_of_column: dict[str, int] = {}  # column of a manifest -> how well the heading fits
    for name, spellings in KNOWN_HEADINGS.items():
        known_headings = (*spellings, plain(name))
        lengths_of_parts = [len(known) for known in known_headings if _has_part(words, known, bare)]
        if bare in known_headings:
            rank_of_column[name] = _WHOLE_HEADING
        elif lengths_of_parts:
            rank_of_column[name] = max(lengths_of_parts)
    return tuple(sorted(rank_of_column, key=lambda name: -rank_of_column[name]))


def columns_meant(cells: Iterable[str]) -> set[str]:
    """Return the columns of a manifest that a row of cells names.

    Only a cell that is as a whole a heading that we know counts, not one that has a known heading as a part.

    Examples
    --------
    >>> sorted(columns_meant(["Film", "Anfang (s)", "Bemerkung"]))
    ['movie', 'start_s']
    """
    meant = set()
    for cell in cells:
        bare = bare_heading(cell)
        for name, spellings in KNOWN_HEADINGS.items():
            if bare in spellings or bare == plain(name):
                meant.add(name)
                break
    return meant


def _has_part(words: Sequence[str], known_heading: str, bare: str) -> bool:
    """Return whether a known heading is a part of a heading: whole words of it, one after the other.

    Parameters
    ----------
    words
        Words of the heading.
    known_heading
        The known heading. A very short one, such as `in`, would be a part of too many headings.
    bare
        The whole heading, from `bare_heading`. A heading is no part of itself.
    """
    if len(known_heading) < _SHORTEST_WORD or bare == known_heading:
        return False
    known_words = words_of(known_heading)
    n_known = len(known_words)
    for start in range(len(words) - n_known + 1):
        if tuple(words[start : start + n_known]) == known_words:
            return True
    return False
