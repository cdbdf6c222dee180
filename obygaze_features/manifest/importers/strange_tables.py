"""Propose how to read a table whose headings are none of ours, by what its columns hold."""

import math
from collections.abc import Sequence

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.importers.columns import (
    cells_of,
    columns_of_times,
    content_of,
    option,
    proposals,
    wide_option,
)
from obygaze_features.manifest.spans.label_words import LabelWords
from obygaze_features.manifest.spans.span_file import SpanFile
from obygaze_features.manifest.text_tables import OUR_COLUMNS, TIMES, Table, table_of
from obygaze_features.text import number_of
from obygaze_features.text_records import split_records


def proposals_for(file: SpanFile, words: LabelWords) -> list[str]:
    """Write the options by which a file may be read as a table of ours; none where it is no table."""
    table = _table(file)
    if table is None:
        return []
    columns = list(table.columns)
    times = columns_of_times(table, columns)
    typed = []
    if times is not None:
        typed = [option(name, column) for name, column in zip(TIMES, times, strict=True)]
        columns = [column for column in columns if column not in times]
    absent = [name for name in OUR_COLUMNS if name not in table.columns and name not in TIMES]
    levels = [column for column in columns if content_of(cells_of(table, column), words).are_levels]
    if levels:
        typed.append(option("level", levels[0]) if len(levels) == 1 else wide_option(levels))
        absent = [name for name in absent if name != "level"]
        columns = [column for column in columns if column not in levels]
    return typed + proposals(table, columns, absent, words)


def _table(file: SpanFile) -> Table | None:
    """Read a file as a table, whose header is its first row of several texts; None where it is none."""
    try:
        if file.sheet is not None:
            records, delimiter = file.sheet, ""
        else:
            records, delimiter = split_records(file.path, file.text, ManifestError, _is_header)
        if not any(_is_header(cells) for _, cells in records):
            return None
        table = table_of(
            file.path, records, delimiter, (), known=OUR_COLUMNS, named=False, is_header=_is_header
        )
    except ManifestError:
        return None
    return table if table.rows else None


def _is_header(cells: Sequence[str]) -> bool:
    """Return whether a row may be a header: two cells or more, all different, and no numbers."""
    texts = [cell.strip() for cell in cells if cell.strip()]
    is_of_words = all(math.isnan(number_of(text)) for text in texts)
    return len(texts) > 1 and is_of_words and len(set(texts)) == len(texts)
