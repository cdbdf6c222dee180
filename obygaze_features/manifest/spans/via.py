"""Read the temporal segments of VIA 3, saved as CSV; a tier is an attribute.

Source: VIA 3, `export_to_via3_csv` and `export_to_temporal_segments_csv`.
"""

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from obygaze_features.manifest.spans.json_values import json_in, number, object_of, text_of
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import SpanFile

HEADER = "# CSV_HEADER = metadata_id"
SEGMENT = ("temporal_segment_start", "temporal_segment_end")
"""Columns of times in an export of temporal segments alone."""


def read_via(file: SpanFile) -> Iterator[RawSpan]:
    """Yield the temporal segments of VIA 3 (CSV): a span for each attribute of a segment.

    The file has two lines of comments that are read, and a line of cells for each segment:

        # ATTRIBUTE = {"1": {"aname": "gaze", ...}}
        # CSV_HEADER = metadata_id,file_list,...
        "1_a","[""film.mp4""]",...

    If it has no line of the header, the usual columns are taken.
    """
    lines = file.lines
    attributes = _attributes(file, lines)
    header_lines = [line for line in lines if line.startswith(HEADER)]
    header = header_lines[0] if header_lines else HEADER
    _, _, names = header.partition("=")
    columns = names.strip().split(",")
    for line_number, line in enumerate(lines, start=1):
        is_comment = line.startswith(("#", '"#'))  # a spreadsheet puts comments in quotes
        if line.strip() and not is_comment:
            yield from _segment(f"line {line_number}", columns, _cells(line), attributes)


def _cells(line: str) -> list[str]:
    """Split a line of CSV into its cells; an empty list if a cell is too long to be read."""
    try:
        return next(csv.reader(io.StringIO(line)), [])
    except csv.Error:
        return []


def _attributes(file: SpanFile, lines: Sequence[str]) -> Mapping[str, object]:
    """Return id -> attribute, with its name and options, from the line that lists them.

    Without such a line there are none, which the file's account notes.

    Raises
    ------
    ManifestError
        The line cannot be read.
    """
    lines_of_attributes = [line for line in lines if re.match(r"# ATTRIBUTES? = ", line)]
    if not lines_of_attributes:
        file.account.note("no line ATTRIBUTE: options stand by numbers; VIA3 (CSV) has words")
        return {}
    _, _, text = lines_of_attributes[0].partition("=")
    attributes = json_in(text, dict)
    if attributes is None:
        raise file.error("its line ATTRIBUTE, which names attributes and options, cannot be read")
    return attributes


def _segment(
    location: str, names: Sequence[str], row: Sequence[str], attributes: Mapping[str, object]
) -> Iterator[RawSpan]:
    """Yield a span for each attribute of a segment.

    Parameters
    ----------
    location
        The place of the segment, for messages.
    names
        Names of the columns.
    row
        Cells of the segment's line.
    attributes
        Id -> attribute.
    """
    cells = dict(zip(names, row, strict=False))
    times = _times(cells)
    files = json_in(cells.get("file_list", ""), list)
    metadata = json_in(cells.get("metadata", ""), dict)
    reason = ""
    if len(row) != len(names):
        reason = "not VIA's cells, with commas between: export it again"
    elif len(times) == 1:
        reason = "a frame, which is no span"
    elif len(times) != 2:
        reason = "no start and end"
    elif metadata is None:
        reason = "its metadata cannot be read"
    elif files is None or len(files) != 1:
        reason = "its file_list is not of one file"

    start_s, end_s = times if len(times) == 2 else (math.nan, math.nan)
    film = {"media": text_of(files)} if files else {}
    texts_by_tier = _texts(metadata or {}, attributes)
    if not texts_by_tier:
        texts_by_tier = [("", "")]  # one span without a tier, so that the segment is not lost
    for tier, text in texts_by_tier:
        yield RawSpan(location, start_s, end_s, text, tier, film, reason=reason)


def _times(cells: Mapping[str, str]) -> list[float]:
    """Return the times of a segment in seconds: start and end, or fewer; NaN for one that is no number."""
    texts = json_in(cells.get("temporal_coordinates", ""), list)
    if not texts:
        texts = [cells[name] for name in SEGMENT if cells.get(name)]
    return [number(text) for text in texts]


def _texts(metadata: Mapping[str, object], attributes: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return the name and the value of each attribute of a segment.

    For an attribute with options, VIA stores the ids of those that are chosen. They are replaced by the words
    of the options, joined by `;`.
    """
    texts = []
    for attribute_id, value in metadata.items():
        attribute = attributes.get(attribute_id)
        options = object_of(object_of(attribute).get("options"))
        chosen_ids = _chosen_options(value, options)
        words = [text_of(options.get(option_id, option_id)) for option_id in chosen_ids]
        text = ";".join(word for word in words if word)
        texts.append((_name_of(attribute, attribute_id), text))
    return texts


def _chosen_options(value: object, options: Mapping[str, object]) -> list[str]:
    """Return the ids of the options that are chosen, or the text of an attribute without options.

    Parameters
    ----------
    value
        What VIA stores of an attribute: the ids separated by commas, or an object of id -> whether it is
        ticked.
    options
        Id -> option of the attribute.
    """
    if isinstance(value, dict):
        ids = ",".join(option for option, is_ticked in value.items() if is_ticked)
    else:
        ids = text_of(value)
    is_one_id = ids in options  # with a comma in it, perhaps
    if is_one_id or not options:
        return [ids]
    return ids.split(",")


def _name_of(attribute: object, attribute_id: str) -> str:
    """Return the name of an attribute; its id if it has none.

    VIA writes an attribute as an object with the key `aname`. Other programs write the name itself.
    """
    if isinstance(attribute, dict):
        return text_of(attribute.get("aname", attribute_id))
    return text_of(attribute or attribute_id)
