"""Tell whether ends in frames are the last frames of spans, or the first frames after them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from obygaze_features.manifest.text_tables import TIMES, Row, Table, counted
from obygaze_features.text import number_of

START, END = TIMES


class _FrameSpan(NamedTuple):
    """The film of a row, and its start and end as numbers of frames."""

    film: tuple[str, str]
    start: int
    end: int


class _SpansOfMeaning(NamedTuple):
    """How many spans show which of two frames is written as their end.

    Attributes
    ----------
    n_by_last_frame
        Spans that show that it is their last frame: those of a single frame, whose end is their start, and
        those whose next span begins one frame later.
    n_by_frame_after
        Spans that show that it is the first frame after them: their end is the start of the next.
    """

    n_by_last_frame: int
    n_by_frame_after: int


def with_ends_after_last_frames(table: Table) -> Table:
    """Return a table whose ends in frames are the first frames after the spans, counted from 0.

    People and tools write the last frame of a span, or the first after it. The table shows which: in the
    first case the next span begins one frame after an end, in the second case with it. If it shows nothing,
    ends stay as they are, with a note.

    If ends are last frames, and each film's first span begins with frame 1, frames count from 1.

    Parameters
    ----------
    table
        A table whose columns of starts and ends have the manifest's names. Rows in which one of them is no
        whole number are left as they are.
    """
    span_of_row = [_frame_span(row) for row in table.rows]
    spans = [span for span in span_of_row if span is not None]
    if not spans:
        return table
    shown_by = _count_spans_of_meaning(spans)
    if shown_by.n_by_last_frame == shown_by.n_by_frame_after:
        note = "ends in frames are read as the first frame after a span: add 1 if they are its last frame"
        return replace(table, notes=(*table.notes, note))
    if shown_by.n_by_last_frame < shown_by.n_by_frame_after:
        return table

    first_number = 1 if _begin_with_frame_1(spans) else 0
    rows = []
    for row, span in zip(table.rows, span_of_row, strict=True):
        cells = dict(row.cells)
        if span is not None:
            cells[START] = str(span.start - first_number)
            cells[END] = str(span.end + 1 - first_number)
        rows.append(Row(row.line, cells))
    n_of_all = f"{shown_by.n_by_last_frame} of {counted(len(spans), 'span')}"
    note = (
        "ends in frames are read as the last frame of each span, as the next begins one frame later or it "
        f"has one frame ({n_of_all}); frames count from {first_number}"
    )
    return replace(table, rows=tuple(rows), notes=(*table.notes, note))


def _frame_span(row: Row) -> _FrameSpan | None:
    """Return the span of a row; None if its start or end is no whole number."""
    start = number_of(row.cells[START])
    end = number_of(row.cells[END])
    if not start.is_integer() or not end.is_integer():
        return None
    film = (row.cells.get("movie", "").strip(), row.cells.get("video", "").strip())
    return _FrameSpan(film, int(start), int(end))


def _count_spans_of_meaning(spans: Sequence[_FrameSpan]) -> _SpansOfMeaning:
    """Count the spans that show that an end is the last frame, and those that show that it is the one after.

    In a film that is divided into adjoining spans, 10-19 and 20-29 end with their last frame, and 10-20 and
    20-30 with the frame after it. An end that is its own start, 10-10, is a last frame, as a span is not
    empty.
    """
    starts_of_film: dict[tuple[str, str], set[int]] = defaultdict(set)
    for span in spans:
        starts_of_film[span.film].add(span.start)
    n_by_last_frame = 0
    n_by_frame_after = 0
    for span in spans:
        starts = starts_of_film[span.film]
        has_one_frame = span.start == span.end
        begins_one_later = span.end + 1 in starts and span.end not in starts  # another span does
        if has_one_frame or begins_one_later:
            n_by_last_frame += 1
        elif span.end in starts:
            n_by_frame_after += 1
    return _SpansOfMeaning(n_by_last_frame, n_by_frame_after)


def _begin_with_frame_1(spans: Sequence[_FrameSpan]) -> bool:
    """Return whether the first span of each film begins with frame 1."""
    first_start_of_film: dict[tuple[str, str], int] = {}
    for span in spans:
        first_start_of_film[span.film] = min(span.start, first_start_of_film.get(span.film, span.start))
    return set(first_start_of_film.values()) == {1}
