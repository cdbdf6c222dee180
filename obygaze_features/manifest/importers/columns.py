"""Read the columns of a person's table: those that are ours, those that are named so, and what others hold.

A column is looked at, not only its heading: where most cells of one that is not read are levels or concepts
of the codebook, it is named with what to type. A hint is given only where the cells fit what it proposes.
"""

import math
import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from obygaze_features.cells import is_unreadable
from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.headings import LABEL_COLUMNS, Headings
from obygaze_features.manifest.spans.instant import is_clock, time_or_nan
from obygaze_features.manifest.spans.label_words import LabelWords
from obygaze_features.manifest.spans.names import nearest, path_of, plain
from obygaze_features.manifest.text_tables import OUR_COLUMNS, TIMES, Row, Table
from obygaze_features.templates import packaged
from obygaze_features.text import first_few, number_of

HEADINGS: Final[Mapping[str, Sequence[str]]] = packaged("obygaze_features.manifest.spans", "headings.toml")
"""Column of ours -> headings that people give it."""

YES = {
    "1",
    "1.0",
    "x",
    "✓",
    "✔",
    "yes",
    "y",
    "true",
    "ja",
    "j",
    "wahr",
    "oui",
    "vrai",
    "sí",
    "si",
    "vero",
    "sim",
}
NO = {"", "0", "0.0", "-", "–", "no", "n", "false", "nein", "falsch", "non", "faux", "falso", "não"}
"""What the cells of a column of marks say of its heading: that it is there, or not."""

SHOWN_COLUMNS = 4
SHOWN_WORDS = 3


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
    def are_levels(self) -> bool:
        """Whether most are levels."""
        return 2 * self.n_levels > self.n_cells

    @property
    def are_concepts(self) -> bool:
        """Whether most are concepts, and no levels."""
        return not self.are_levels and 2 * self.n_labels > self.n_cells


# --- what a person names
# ---------------------------------------------------------------------------
def renamed(table: Table, headings: Headings) -> Table:
    """Call columns by our names, as the person says which they are; columns of labels stay.

    A column of ours that another heading stands for is left out, and noted.
    """
    new_names: dict[str, str] = {}
    for name, (heading, *_) in headings.columns.items():
        column = find_column(table, heading)
        if name not in LABEL_COLUMNS and column is not None:
            new_names[column] = name
    if not new_names:
        return table
    notes = list(table.notes)
    for column, name in list(new_names.items()):
        if name in table.columns and name not in new_names:
            new_names[name] = ""
            notes.append(f"column {name!r} left out: {column!r} is read as {name}")
    columns = [new_names.get(column, column) for column in table.columns]
    rows = []
    for row in table.rows:
        cells = {new_names.get(column, column): cell for column, cell in row.cells.items()}
        cells.pop("", None)
        rows.append(Row(row.line, cells))
    return replace(table, columns=tuple(filter(None, columns)), rows=tuple(rows), notes=tuple(notes))


def with_labels(table: Table, headings: Headings, words: LabelWords) -> Table:
    """Fill the columns level and concepts from those that the person names, which are left out.

    A column whose heading is a label, and whose cells are marks (1 and 0, x, yes and no), says where that
    label is; the cells of another are labels themselves. Two levels of a row are refused.
    """
    columns = {
        name: present
        for name in LABEL_COLUMNS
        if (present := _present(table, headings.columns.get(name, ())))
    }
    if not columns:
        return table
    notes = list(table.notes)
    used = {column for present in columns.values() for column in present}
    marks = {column for column in used if is_of_marks(table, column, words)}
    for name, present in columns.items():
        if name in table.columns and name not in used:
            used.add(name)
            notes.append(f"column {name!r} left out: {', '.join(present)} is read as {name}")
    rows = []
    for row in table.rows:
        cells = {column: cell for column, cell in row.cells.items() if column not in used}
        for name, present in columns.items():
            cells[name] = _labels_in(row, present, marks)
        rows.append(Row(row.line, cells))
    kept = [column for column in table.columns if column not in used]
    return replace(table, columns=(*kept, *columns), rows=tuple(rows), notes=tuple(notes))


def _present(table: Table, headings: Sequence[str]) -> list[str]:
    """Return the columns of a table that headings name."""
    columns = [find_column(table, heading) for heading in headings]
    return [column for column in columns if column is not None]


def _labels_in(row: Row, columns: Sequence[str], marks: Collection[str]) -> str:
    """Join the labels that cells say, or that are marked in them; one that cannot be read stands alone."""
    labels = []
    for column in columns:
        cell = row.cells[column].strip()
        if is_unreadable(cell):
            return cell
        if column not in marks:
            labels.append(cell)
        elif plain(cell) in YES:
            labels.append(column)
    return ";".join(label for label in labels if label)


def is_of_marks(table: Table, column: str, words: LabelWords) -> bool:
    """Return whether a column is headed by a label, and says by marks where it is."""
    if words.labels_of(column) is None:
        return False
    cells = {plain(row.cells[column]) for row in table.rows if not is_unreadable(row.cells[column])}
    are_labels = any(words.labels_of(cell) is not None for cell in cells)
    return cells <= YES | NO and not are_labels


def wide_columns(table: Table, headings: Headings) -> list[str]:
    """Return the columns that each hold an annotator's labels.

    Raises
    ------
    ManifestError
        One is not there, or the table says besides what labels are, or whose.
    """
    wide = _present(table, headings.wide)
    taken = [name for name in ("level", "concepts", "annotator") if name in table.columns]
    if wide and taken:
        raise ManifestError(
            f"{table.path}: --wide {','.join(wide)}: each is an annotator's labels, and the table has a "
            f"column {taken[0]} besides: leave one of them out"
        )
    return wide


def find_column(table: Table, heading: str) -> str | None:
    """Find a column by its heading, as names are compared."""
    return next((column for column in table.columns if plain(column) == plain(heading)), None)


# --- what columns hold
# ---------------------------------------------------------------------------
def cells_of(table: Table, column: str) -> list[str]:
    """Return the cells of a column that are not empty."""
    cells = [row.cells[column].strip() for row in table.rows]
    return [cell for cell in cells if cell]


def content_of(cells: Sequence[str], words: LabelWords) -> Content:
    """Count the cells that are levels (with concepts or without), and those that are concepts."""
    labels = [words.labels_of(cell) for cell in cells]
    n_levels = sum(label is not None and bool(label.level) for label in labels)
    n_concepts = sum(label is not None and not label.level for label in labels)
    return Content(len(cells), n_levels, n_concepts)


def hints(table: Table, read: Iterable[str], words: LabelWords) -> Iterator[str]:
    """Say which columns that are not read hold labels, or are ours by another heading, and what to type.

    Parameters
    ----------
    read
        Columns that are read.
    """
    unread = [column for column in table.columns if column not in set(read)]
    contents = {column: content_of(cells_of(table, column), words) for column in unread}
    levels = [column for column, content in contents.items() if content.are_levels]
    concepts = [column for column, content in contents.items() if content.are_concepts]
    marks = [column for column in unread if words.labels_of(column) is not None]
    shown = {
        column: f"{column!r}: {content.n_labels} of {content.n_cells} cells"
        for column, content in contents.items()
    }
    if len(levels) == 1:
        yield f"a column that is not read holds levels ({shown[levels[0]]}): {option('level', levels[0])}"
    elif levels:
        names = first_few([shown[column] for column in levels], SHOWN_COLUMNS)
        yield (
            f"{len(levels)} columns that are not read hold levels ({names}): {wide_option(levels)} where "
            f"each is an annotator's, {option('level', levels[0])} reads one"
        )
    if concepts:
        names = first_few([shown[column] for column in concepts], SHOWN_COLUMNS)
        typed = " ".join(option("concepts", column) for column in concepts)
        yield f"columns that are not read hold concepts ({names}): {typed}"
    if marks:
        yield f"columns named as labels are not read ({', '.join(marks)}): {_marks_options(marks, words)}"
    labelled = {*levels, *concepts, *marks}
    rest = [column for column in unread if column not in labelled]
    absent = [name for name in OUR_COLUMNS if name not in table.columns]
    proposed = proposals(table, rest, absent, words)
    if proposed:
        yield f"not read, though it fits: {' '.join(proposed)}"


def _marks_options(columns: Sequence[str], words: LabelWords) -> str:
    """Write the options that read columns of marks."""
    typed = []
    for column in columns:
        labels = words.labels_of(column)
        typed.append(option("level" if labels and labels.level else "concepts", column))
    return " ".join(typed)


def option(name: str, heading: str) -> str:
    """Write the option that reads a heading as a column of ours."""
    return f"--column {shlex.quote(f'{name}={heading}')}"


def wide_option(headings: Sequence[str]) -> str:
    """Write the option that reads a column an annotator."""
    return f"--wide {shlex.quote(','.join(headings))}"


def proposals(table: Table, columns: Sequence[str], absent: Sequence[str], words: LabelWords) -> list[str]:
    """Write options for the columns whose headings people give to ours that are absent, where cells fit."""
    typed, taken = [], set[str]()
    for column in columns:
        name = name_of_heading(column, [name for name in absent if name not in taken])
        if name and _fits(name, cells_of(table, column), words):
            taken.add(name)
            typed.append(option(name, column))
    return typed


def name_of_heading(heading: str, absent: Sequence[str]) -> str:
    """Return which column of ours people mean by a heading; "" if that is not known."""
    bare = re.sub(r"[(\[{][^)\]}]*[)\]}]", "", plain(heading)).strip(" .:")
    for name in absent:
        if bare in HEADINGS.get(name, ()) or bare == plain(name):
            return name
    return nearest(heading, absent)


def _fits(name: str, cells: Sequence[str], words: LabelWords) -> bool:
    """Return whether cells can be those of a column of ours."""
    if not cells:
        return False
    content = content_of(cells, words)
    are_labels = content.are_levels or content.are_concepts
    are_times = all(not math.isnan(time_or_nan(cell)) for cell in cells)
    fits: Mapping[str, Callable[[], bool]] = {
        "clip_id": lambda: len(set(cells)) == len(cells) and not are_labels and not any(map(is_clock, cells)),
        "movie": lambda: not are_labels and not any(map(is_clock, cells)),
        "video": lambda: not are_labels and all(path_of(cell).suffix for cell in cells),
        "start_s": lambda: are_times,
        "end_s": lambda: are_times,
        "level": lambda: content.are_levels,
        "concepts": lambda: content.are_concepts,
        "annotator": lambda: not are_labels and all(math.isnan(number_of(cell)) for cell in cells),
        "seen_score": lambda: all(cell in {"0", "1"} for cell in cells),
    }
    return name in fits and fits[name]()


def columns_of_times(table: Table, columns: Sequence[str]) -> tuple[str, str] | None:
    """Find two columns that hold starts and ends: by their headings, or as clocks; None if there are none."""
    times = {}
    for column in columns:
        cells = cells_of(table, column)
        values = [time_or_nan(cell) for cell in cells]
        if cells and not any(map(math.isnan, values)):
            times[column] = all(map(is_clock, cells))
    by_heading = {name_of_heading(column, TIMES): column for column in times}
    if TIMES[0] in by_heading and TIMES[1] in by_heading:
        return by_heading[TIMES[0]], by_heading[TIMES[1]]
    clocks = [column for column, is_of_clocks in times.items() if is_of_clocks]
    return (clocks[0], clocks[1]) if len(clocks) > 1 else None


def without_labels(table: Table, read: Iterable[str]) -> str:
    """Say which columns might hold the labels of a table in which none is read; "" if there are none."""
    samples = []
    for column in table.columns:
        cells = cells_of(table, column)
        if column in set(read) or not cells:
            continue
        words = [word for word, _ in Counter(cells).most_common(SHOWN_WORDS)]
        samples.append((len(set(cells)), f"{column!r} ({', '.join(f'{word:.20}' for word in words)})"))
    if not samples:
        return ""
    samples.sort(key=lambda sample: sample[0])  # columns of few words first
    shown = first_few([text for _, text in samples], SHOWN_COLUMNS)
    return (
        f"no row has a level or concepts; not read are {shown}: --column level=HEADING reads one, and "
        "`obygaze codebook guess` writes a codebook of its words"
    )
