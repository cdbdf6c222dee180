"""Lay out tables that fit the terminal, write probabilities, and show progress."""

import shutil
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import compress, zip_longest
from typing import Final, Protocol

from obygaze_features.text import rounded, unescaped, visible

QUIET_S: Final = 60.0
"""Seconds between two lines of progress where stderr is no terminal, as in a Slurm log."""

GAP = "  "
NARROWEST = 8
"""Columns are wrapped to no fewer characters than this."""


MIN_WRITTEN_P: Final = 0.005
"""A probability below it would be written as 0.00: "below 0.01" is written in its place."""


def probability(p: float, under: str = "below ") -> str:
    """Write a probability with two decimals; one that would round to 0.00 is written as "below 0.01".

    `under` is what stands before 0.01 then, such as "below " or "< ".
    """
    is_written_out = p >= MIN_WRITTEN_P
    return rounded(p, digits=2) if is_written_out else f"{under}0.01"


def terminal_width() -> int:
    """Return the columns of the terminal; 80 if unknown."""
    return shutil.get_terminal_size((80, 24)).columns


def table(
    rows: Sequence[Sequence[object]],
    headers: Sequence[str] = (),
    width: int | None = None,
    *,
    right: Collection[int] = (),
    drop_empty_columns: bool = False,
) -> str:
    """Lay out a table as text that fits a width; long cells wrap.

    Other columns are narrowed before the first one, which names the row.

    Parameters
    ----------
    rows
        The cells of each row.
    headers
        Headings of the columns; without, the table has none.
    width
        Characters of a line; None for the width of the terminal.
    right
        Numbers of the columns that are aligned to the right.
    drop_empty_columns
        Whether columns without any text are left out.
    """
    lines = [list(map(str, row)) for row in rows]
    if drop_empty_columns:
        is_filled = [any(column) for column in zip(*lines, strict=True)]
        headers = list(compress(headers, is_filled))
        lines = [list(compress(line, is_filled)) for line in lines]
    if headers:
        lines.insert(0, list(headers))

    widths = [_longest_line(column) for column in zip(*lines, strict=True)]
    n_gaps = len(widths) - 1
    room = (width or terminal_width()) - n_gaps * len(GAP)  # for the columns, without the gaps between them
    _narrow(widths, range(1, len(widths)), room)
    _narrow(widths, range(len(widths)), room)  # also the first one, if this was not enough

    if headers:
        rules = ["-" * column_width for column_width in widths]
        lines.insert(1, rules)
    return "\n".join(_line(line, widths, right) for line in lines)


def _longest_line(column: Iterable[str]) -> int:
    """Return the length of the longest line of a column's cells."""
    return max(len(line) for cell in column for line in cell.split("\n"))


def _narrow(widths: list[int], columns: range, room: int) -> None:
    """Narrow the widest of some columns, a character at a time, until a row of the table fits.

    Parameters
    ----------
    widths
        Width of each column of the table; this list is changed.
    columns
        The columns that may be narrowed, to no less than `NARROWEST`. If this is not enough, the row stays
        too wide.
    room
        Characters that the row may have.
    """
    while columns and sum(widths) > room:
        widest = max(columns, key=widths.__getitem__)
        if widths[widest] <= NARROWEST:
            return
        widths[widest] -= 1


def _line(row: Sequence[str], widths: Sequence[int], right: Collection[int]) -> str:
    """Lay out a row of a table, in as many lines of text as its longest cell needs."""
    lines_of_cells = [_wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
    lines = []
    for texts in zip_longest(*lines_of_cells, fillvalue=""):  # of each cell its first line, then its second
        aligned = []
        for column, text in enumerate(texts):
            width = widths[column]
            aligned.append(text.rjust(width) if column in right else text.ljust(width))
        lines.append(GAP.join(aligned).rstrip())
    return "\n".join(lines)


def _wrapped(cell: str, width: int) -> list[str]:
    """Break a cell into lines of at most `width` characters: at blanks if possible."""
    lines = []
    for line in cell.split("\n"):
        remaining = line
        while len(remaining) > width:
            end = remaining.rfind(" ", 1, width + 1)  # the last blank at which a line may end
            if end < 0:  # a word that is longer than a line
                end = width
            lines.append(remaining[:end].rstrip())
            remaining = remaining[end:].lstrip()
        lines.append(remaining)
    return lines


class ShowProgress(Protocol):
    """Show how much is done, with a note beside the numbers."""

    def __call__(self, done: int, total: int, note: str = "", /) -> None:
        """Show `done` of `total`."""


EARLY = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"
"""A bar without the time left, which a tenth of the work does not tell yet."""


def _can_tell_time_left(done: int, total: int) -> bool:
    """Return whether a tenth of the work is done, from which on the time left can be told."""
    return 0 < total <= 10 * done


Progress = Callable[[int, int], None]
"""Called now and then with how much is done, and of how much."""


def in_notebook() -> bool:
    """Return whether the code runs in a Jupyter notebook."""
    ipython = sys.modules.get("IPython")  # imported already if so
    if ipython is None or not hasattr(ipython, "get_ipython"):
        return False
    shell = ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


@contextmanager
def shown_progress(
    progress: Progress | bool | None, description: str, unit: str = "it", *, scaled: bool = False
) -> Iterator[ShowProgress]:
    """Yield a function that reports progress, for a library function with a parameter `progress`.

    Parameters
    ----------
    progress
        That parameter: a function to call, or whether to show a bar. None shows one only in a notebook.
    description, unit, scaled
        As for `progress_bar`.
    """
    if callable(progress):

        def report(done: int, total: int, _note: str = "", /) -> None:
            """Call the function, which takes no note."""
            progress(done, total)

        yield report
        return
    shows_bar = in_notebook() if progress is None else progress
    if shows_bar:
        with progress_bar(description, unit, scaled=scaled) as show:
            yield show
    else:
        yield _show_nothing


def _show_nothing(_done: int, _total: int, _note: str = "", /) -> None:
    """Show no progress."""


@contextmanager
def progress_bar(description: str, unit: str = "it", *, scaled: bool = False) -> Iterator[ShowProgress]:
    """Show progress: a bar in a notebook or on a terminal, elsewhere a line per minute on stderr.

    Parameters
    ----------
    description
        What is done, in front of the bar.
    unit
        The word for one of the things that are counted.
    scaled
        Whether large numbers are written with a prefix, as for bytes.

    Yields
    ------
    ShowProgress
        Called with (number done, number in all, an optional note).
    """
    notebook = in_notebook()
    if not notebook and not sys.stderr.isatty():
        yield _MinuteLines(description, unit, scaled=scaled).show
        return
    # Slow, and most processes need none.
    from tqdm import TqdmWarning  # noqa: PLC0415

    file = None if notebook else unescaped(sys.stderr)
    with warnings.catch_warnings(action="ignore", category=TqdmWarning):  # of a notebook without ipywidgets
        from tqdm.auto import tqdm  # noqa: PLC0415

        bar = tqdm(desc=description, unit=unit, unit_scale=scaled, leave=False, file=file)
    with bar:

        def show(done: int, total: int, note: str = "", /) -> None:
            """Move the bar. If the number done falls, another step has begun, and its time begins anew."""
            is_other_step = done < bar.n
            if is_other_step:
                bar.reset(total)
            elif total != bar.total:
                start = bar.start_t
                bar.reset(total)  # the only way to change the total, but it sets the start to now
                bar.start_t = start
            bar.bar_format = None if _can_tell_time_left(done, total) else EARLY
            bar.set_postfix_str(visible(note, line_breaks=False), refresh=False)
            bar.update(done - bar.n)

        yield show


class _MinuteLines:
    """Writes lines of progress to stderr, at most one a minute.

    Parameters
    ----------
    description
        What is done.
    unit
        The word for one of what is counted.
    scaled
        Whether millions are counted, as of bytes.
    """

    def __init__(self, description: str, unit: str, *, scaled: bool) -> None:
        """Begin to count the time of the first step, and up to the first line."""
        self._what = description
        self._counted_at_once = 1e6 if scaled else 1  # by which numbers are divided before they are written
        self._units = f"M{unit}" if scaled else f"{unit}s"
        # Work may have several steps, each of which counts from 0. The time left is told by the current one.
        self._step_start_s = self._last_line_s = time.monotonic()
        self._done_before = 0  # what the last call of `show` was told

    def show(self, done: int, total: int, note: str = "", /) -> None:
        """Write a line if a minute has passed since the last one."""
        now_s = time.monotonic()
        if done < self._done_before:  # another step has begun, whose pace differs
            self._step_start_s = now_s
        self._done_before = done
        if now_s - self._last_line_s < QUIET_S:
            return
        self._last_line_s = now_s

        numbers = f"{done / self._counted_at_once:.0f} of {total / self._counted_at_once:.0f} {self._units}"
        passed_s = now_s - self._step_start_s
        time_left = ""
        if _can_tell_time_left(done, total):
            left_s = passed_s * (total - done) / done
            time_left = f", about {left_s / 60:.0f} min left"
        bracketed_note = f" ({note})" if note else ""
        sys.stderr.write(f"{self._what}: {numbers} in {passed_s / 60:.0f} min{time_left}{bracketed_note}\n")
        sys.stderr.flush()
