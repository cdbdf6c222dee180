"""Read events of BORIS: aggregated ones, and tabular ones of its versions 7 to 9.

Source: BORIS user guide, "Export events"; BORIS 7.13 to 9.12, export_observation.py.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, takewhile

from obygaze_features.manifest.spans.given import KINDS, Given, RawSpan
from obygaze_features.manifest.spans.instant import time_or_nan
from obygaze_features.manifest.spans.names import plain, stem_of
from obygaze_features.manifest.spans.subtitles import one_line
from obygaze_features.manifest.spans.tables import first_of, table, timed
from obygaze_features.manifest.text_tables import Row

FACTS = KINDS["boris"]
BOUT, EVENT = FACTS["columns"][:2]
PLACES = FACTS["media"]
NOBODY = "No focal subject"
POINT = "a point event, which has no end"
OFFSET, OBSERVATION, TYPE = "Time offset (s)", "Observation id", "Behavior type"
SOURCE, LENGTHS = "Source", "Media duration (s)"
ABOVE = {OBSERVATION: OBSERVATION, OFFSET: OFFSET, SOURCE: "Player #1"}
"""Columns, and what stands in their place above the table of version 7."""
Media = Sequence[tuple[str, float, float]]
"""Files of an observation in their order, each with its begin and end in the observation's time."""


def read_boris(given: Given) -> Iterator[RawSpan]:
    """Yield the state events of BORIS: aggregated ones, or tabular ones whose START and STOP are paired."""
    records = given.records(("Behavior",))
    bouts = given.has_columns(BOUT)
    head = takewhile(lambda record: "Behavior" not in record[1], records[0])
    said = [(plain(cells[0]), cell) for _, cells in head for cell in cells[1:2]]
    above = {name: ";".join(cell for key, cell in said if key == plain(by)) for name, by in ABOVE.items()}
    events = table(given, BOUT if bouts else EVENT[:2], records)
    if OFFSET not in events.columns and not above[OFFSET]:  # as in versions before 8.22.17
        given.account.note(f"no {OFFSET}: where an observation has one in BORIS, its times are moved by it")
    rows = [_with_places(given, row, above) for row in events.rows]
    media = _media(given, rows)
    status = next((name for name in (TYPE, "Status") if name in events.columns), "")
    if not (status or bouts):
        raise given.error(f"no column {TYPE} or Status says which events start and stop")
    for span in _bouts(given, rows) if bouts else _paired(given, rows, status):
        yield from _in_media(span, media[span.cells["observation"]])


def _with_places(given: Given, row: Row, above: Mapping[str, str]) -> Row:
    """Add what stands above the table; the file of an event stands for a list of them that is not there."""
    cells = {**above, **row.cells}
    cells |= {name: "" for name in (*PLACES, SOURCE, OFFSET) if plain(cells.get(name, "")) in FACTS["none"]}
    if (named := first_of(cells, *PLACES)) and not cells[SOURCE]:
        given.account.note(f"no {SOURCE} lists media: times are taken to count from the start of each")
    return Row(row.line, {**cells, SOURCE: cells[SOURCE] or named})


def _bouts(given: Given, rows: Sequence[Row]) -> Iterator[RawSpan]:
    for row, at, why in timed(given, rows, "Start (s)", "Stop (s)"):
        yield _behaviour(row, at, POINT if row.cells.get(TYPE, "").strip().upper() == "POINT" else why)


def _paired(given: Given, rows: Sequence[Row], status: str) -> Iterator[RawSpan]:
    """Pair each START with the next STOP of the same observation, subject, behaviour and modifiers."""
    begun: dict[tuple[str, ...], RawSpan] = {}
    for row, at, why in timed(given, rows, "Time", "Time"):
        kind = row.cells[status].strip().upper()
        said = [cell for name, cell in row.cells.items() if plain(name).startswith("modifier")]
        key = (*(row.cells.get(name, "") for name in (OBSERVATION, "Subject", "Behavior")), *said)
        if kind == "START" and not why:
            if key in begun:
                yield begun[key]
            begun[key] = _behaviour(row, at, "START without STOP")
        elif kind == "STOP" and not why and key in begun:
            first, last = begun.pop(key), _behaviour(row, at, "")
            comment = _joined([first.cells["comment"], last.cells["comment"]])
            yield replace(first, end_s=at[1], why="", cells={**first.cells, "comment": comment})
        else:
            odd = {"POINT": POINT, "STOP": "STOP without START"}
            yield _behaviour(row, at, why or odd.get(kind, f"{kind or 'nothing'} is no START or STOP"))
    yield from begun.values()


def _behaviour(row: Row, at: tuple[str, float, float], why: str) -> RawSpan:
    cells = {"media": first_of(row.cells, *PLACES), "observation": first_of(row.cells, OBSERVATION)}
    cells["subject"] = first_of(row.cells, "Subject").replace(NOBODY, "")
    for name, start in (("modifiers", "modifier"), ("comment", "comment")):
        cells[name] = _joined(
            one_line(text) for column, text in row.cells.items() if plain(column).startswith(start)
        )
    text, tier = first_of(row.cells, "Behavior"), first_of(row.cells, "Behavioral category")
    return RawSpan(*at, text, tier, cells, why=why)


def _joined(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(filter(None, texts)))


def _media(given: Given, rows: Sequence[Row]) -> dict[str, Media]:
    """Find the media of observations: those that each lists of its first player, or that its events name."""
    lists: dict[str, dict[str, str]] = {}
    for row in rows:
        if (offset := row.cells[OFFSET]) and time_or_nan(offset.strip().lstrip("+-")) != 0:
            raise given.error(f"line {row.line}, {OFFSET}: {offset!r}: times are moved; set it to 0 in BORIS")
        players = re.split(r"[|;\s]*player #\d+ *:", row.cells[SOURCE], flags=re.IGNORECASE)
        own = lists.setdefault(first_of(row.cells, OBSERVATION), {})
        own[next(filter(None, players), "")] = row.cells.get(LENGTHS, "").partition("|")[0]
    if len(lists) > 1 and not all(map(any, lists.values())) and not given.movie:
        raise given.error("of several observations, some without media: which films they are of is unclear")
    media: dict[str, Media] = {}
    for observation, own in lists.items():
        names = [*filter(None, map(one_line, re.split("[;|]", ";".join(own))))]
        lengths = [*map(time_or_nan, ";".join(own.values()).split(";"))]
        is_told = len(own) == 1 and len(lengths) == len(names) and all(length > 0 for length in lengths)
        if len(names) > 1 and not is_told:
            raise given.error(
                f"column {OBSERVATION}, {observation!r}: {len(names)} media; times may count from the start "
                f"of the first: keep that column, {SOURCE} and {LENGTHS}, or export each film as an "
                "observation of its own"
            )
        borders = [*accumulate(lengths[: len(names) - 1], initial=0.0), math.inf]
        media[observation] = list(zip(names, borders, borders[1:], strict=False))
        given.account.note("times of media one after the other are counted in each" * (len(names) > 1))
    return media


def _in_media(span: RawSpan, media: Media) -> Iterator[RawSpan]:
    """Give a span to the media that it is in, in their own times."""
    parts = []
    for name, begin, end in media if not span.fault() else ():
        start, stop = max(span.start_s, begin) - begin, min(span.end_s, end) - begin
        if start < stop:
            cells = {**span.cells, "media": name}
            parts.append(replace(span, start_s=round(start, 9), end_s=round(stop, 9), cells=cells))
    named, found = span.cells["media"], [part.cells["media"] for part in parts]
    if found and named and stem_of(named) not in map(stem_of, found):
        parts = [replace(span, why=f"of {named!r}, and its time is in {found[0]!r}")]
    yield from parts or [span]
