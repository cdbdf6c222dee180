"""Read the temporal segments of VIA 3, saved as CSV.

Source: VIA 3, `export_to_via3_csv` and `export_to_temporal_segments_csv`.
"""

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping

from obygaze_features.manifest.spans.given import Given, RawSpan, json_in, number
from obygaze_features.manifest.spans.subtitles import one_line

VIA_HEADER = "# CSV_HEADER = metadata_id"
SEGMENT = ("temporal_segment_start", "temporal_segment_end")


def read_via(given: Given) -> Iterator[RawSpan]:
    """Yield the temporal segments of VIA 3, whose attributes and options are named by ids."""
    lines = given.lines
    about = next((line for line in lines if re.match(r"# ATTRIBUTES? = ", line)), "")
    given.account.note("no line ATTRIBUTE: options stand by numbers; VIA3 (CSV) has words" * (not about))
    attributes = json_in(about.partition("=")[2] or "{}", dict)
    if attributes is None:
        raise given.error("its line ATTRIBUTE, which names attributes and options, cannot be read")
    header = next((line for line in lines if line.startswith(VIA_HEADER)), VIA_HEADER)
    names = header.partition("=")[2].strip().split(",")
    for at, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith(("#", '"#')):
            continue
        cells = dict(zip(names, row := next(csv.reader(io.StringIO(line)), []), strict=False))
        told = [cell for name in SEGMENT if (cell := cells.get(name, ""))]  # if there are segments alone
        ends = [*map(number, json_in(cells.get("temporal_coordinates", ""), list) or told)]
        media, metadata = json_in(cells.get("file_list", ""), list), json_in(cells.get("metadata", ""), dict)
        why = "its file_list is not of one file" if media is None or len(media) != 1 else ""
        why = "its metadata cannot be read" if metadata is None else why
        if len(ends) != 2:
            why = "a frame, which is no span" if len(ends) == 1 else "no start and end"
        why = why if len(row) == len(names) else "not VIA's cells, with commas between: export it again"
        start, end = ends if len(ends) == 2 else (math.nan, math.nan)
        film = {"media": str(media[0])} if media else {}
        for tier, text in _via_texts(metadata or {}, attributes) or [("", "")]:
            yield RawSpan(f"line {at}", start, end, text, tier, film, why=why)


def _via_texts(metadata: Mapping[str, object], attributes: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return each attribute of a segment with its value, options in their words, several joined by `;`."""
    texts = []
    for key, value in metadata.items():
        about = attributes.get(key)
        name = about.get("aname", key) if isinstance(about, dict) else about or key
        options = about.get("options") if isinstance(about, dict) else {}
        options = options if isinstance(options, dict) else {}
        said = ",".join(key for key, on in value.items() if on) if isinstance(value, dict) else str(value)
        parts = [said] if said in options or not options else said.split(",")
        words = [one_line(str(options.get(part, part))) for part in parts]
        texts.append((one_line(str(name)), ";".join(filter(None, words))))
    return texts
