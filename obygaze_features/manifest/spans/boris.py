"""Read events of BORIS: aggregated ones, and tabular ones of its versions 7 to 9.

Source: BORIS user guide, "Export events".
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from obygaze_features.manifest.spans.given import KINDS, Given, RawSpan
from obygaze_features.manifest.spans.names import plain
from obygaze_features.manifest.spans.subtitles import one_line
from obygaze_features.manifest.spans.tables import first_of, table, timed
from obygaze_features.manifest.text_tables import Row
from obygaze_features.workbook import Records

BOUT, EVENT = KINDS["boris"]["columns"][:2]
NOBODY = "No focal subject"
POINT = "a point event, which has no end"
OFFSET, OBSERVATION, TYPE = "Time offset (s)", "Observation id", "Behavior type"


def read_boris(given: Given) -> Iterator[RawSpan]:
    """Yield the state events of BORIS: aggregated ones, or tabular ones whose START and STOP are paired."""
    records = given.records(("Behavior",))
    bouts = given.has_columns(BOUT)
    head = list(takewhile(lambda record: "Behavior" not in record[1], records[0]))
    events = table(given, BOUT if bouts else EVENT[:2], records)
    rows = [row for row in events.rows if not row.is_empty]
    _refuse_shifted(given, rows, head)
    if bouts:
        for row, at, why in timed(given, rows, "Start (s)", "Stop (s)"):
            yield _behaviour(row, at, POINT if row.cells.get(TYPE, "").strip().upper() == "POINT" else why)
        return
    status = next((name for name in (TYPE, "Status") if name in events.columns), None)
    if status is None:
        raise given.error(f"no column {TYPE} or Status says which events start and stop")
    yield from _paired(given, rows, status)


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
            both = {name: _joined([text, last.cells[name]]) for name, text in first.cells.items()}
            yield replace(first, end_s=at[1], why="", cells=both)
        else:
            odd = {"POINT": POINT, "STOP": "STOP without START"}
            yield _behaviour(row, at, why or odd.get(kind, f"{kind or 'nothing'} is no START or STOP"))
    yield from begun.values()


def _behaviour(row: Row, at: tuple[str, float, float], why: str) -> RawSpan:
    media = _media(row)
    cells = {"media": media[0] if media else "", "observation": first_of(row.cells, OBSERVATION)}
    cells["subject"] = first_of(row.cells, "Subject").replace(NOBODY, "")
    for name, start in (("modifiers", "modifier"), ("comment", "comment")):
        cells[name] = _joined(
            one_line(text) for column, text in row.cells.items() if plain(column).startswith(start)
        )
    text, tier = first_of(row.cells, "Behavior"), first_of(row.cells, "Behavioral category")
    return RawSpan(*at, text, tier, cells, why=why)


def _joined(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(filter(None, texts)))


def _media(row: Row) -> list[str]:
    """Return the files of the first player, which follow one another; none of live observations (`NA`)."""
    said = next(
        (
            row.cells[name]
            for name in KINDS["boris"]["media"]
            if row.cells.get(name, "").strip() not in {"", "NA"}
        ),
        "",
    )
    players = re.split(r"(?:^|;)\s*(?:player )?#\d+ *:", said.strip(), flags=re.IGNORECASE)
    first = next(filter(None, players), "")
    return [name for name in map(one_line, first.split("|")) if name]


def _refuse_shifted(given: Given, rows: Sequence[Row], head: Records) -> None:
    """Refuse observations whose times do not count from the start of one film."""
    offsets = [(row.line, row.cells.get(OFFSET, "")) for row in rows]
    offsets += [(line, cells[1]) for line, cells in head if cells[0].strip() == OFFSET and len(cells) > 1]
    for line, offset in offsets:
        if re.search(r"(?!NA\b)[^\W0]", offset):
            raise given.error(f"line {line}, {OFFSET}: {offset!r}: times are moved; set it to 0 in BORIS")
    media: dict[str, set[str]] = {}
    for row in rows:
        media.setdefault(row.cells.get(OBSERVATION, ""), set()).update(_media(row))
    if len(media) > 1 and not all(media.values()) and not given.movie:
        raise given.error("of several observations, some without media: which films they are of is unclear")
    for observation, names in media.items():
        if len(names) > 1:
            raise given.error(
                f"column {OBSERVATION}, {observation!r}: {len(names)} media; times may count from the start "
                "of the first: keep that column, and export each film as an observation of its own"
            )
