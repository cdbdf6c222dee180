"""Read events of BORIS: aggregated ones, and tabular ones of its versions 7 to 9.

A tier is a behavioural category; behaviours without a category are of one tier, `behavior`. Source: BORIS
user guide, "Export events"; BORIS 7.13 to 9.12, export_observation.py.
"""

import dataclasses
import math
import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from msgspec.structs import replace

from obygaze_features.identity import plain
from obygaze_features.manifest.spans.instant import time_or_nan
from obygaze_features.manifest.spans.names import stem_of
from obygaze_features.manifest.spans.one_line import one_line
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import KINDS, SpanFile
from obygaze_features.manifest.spans.tool_tables import (
    TimedRow,
    added_label_columns,
    decimal_sign,
    first_filled_cell,
    timed,
    tool_table,
    with_added_labels,
)
from obygaze_features.manifest.text_tables import Row, Table
from obygaze_features.workbook import Records

FACTS = KINDS["boris"]
NOTHING = FACTS["none"]
"""What stands in a cell for no media or no offset, as `plain` writes it."""
AGGREGATED, TABULAR = FACTS["columns"][:2]
BEHAVIOR_AND_TIME = TABULAR[:2]
"""Columns of all tabular events; which column says START and STOP differs between versions (`_paired`)."""
MEDIA_COLUMNS = FACTS["media"]
NOBODY = "No focal subject"
POINT = "a point event, which has no end"
OFFSET = "Time offset (s)"
OBSERVATION = "Observation id"
TYPE = "Behavior type"
STATUS = "Status"
SOURCE = "Source"
LENGTHS = "Media duration (s)"
ABOVE = {OBSERVATION: OBSERVATION, OFFSET: OFFSET, SOURCE: "Player #1"}
"""Column of later versions -> the title of the line above the table in which version 7 writes the same."""

_PLAYER = re.compile(r"player #\d+ *:", re.IGNORECASE)
_BETWEEN_PLAYERS = f"|;{string.whitespace}"
"""Signs that may stand between the media of a player and the next player."""


class Medium(NamedTuple):
    """A media file of an observation: its path, and where in the observation it begins and ends."""

    place: str
    begin_s: float
    end_s: float


class Event(NamedTuple):
    """An event with the rows of the table that it was read from: one row, or a START and a STOP."""

    span: RawSpan
    rows: tuple[Row, ...]


@dataclass
class Observation:
    """The media that the rows of an observation list.

    Attributes
    ----------
    lengths_of_media
        A list of media as a row writes it, `a.mp4;b.mp4` -> the list of their lengths in seconds as that row
        writes it, `10;12.5`. The list is "" if a row names no media. All rows should write the same list.
    """

    name: str
    lengths_of_media: dict[str, str] = field(default_factory=dict)

    @property
    def has_media(self) -> bool:
        """Whether at least one row lists media."""
        return any(list_of_media != "" for list_of_media in self.lengths_of_media)


def read_boris(file: SpanFile) -> Iterator[RawSpan]:
    """Yield the state events of BORIS.

    A row of a table of aggregated events is an event with its start and stop. In a table of tabular events,
    two rows are one: START and STOP, which are paired here.
    """
    is_aggregated = file.has_columns(AGGREGATED)
    table = _table_of_events(file, AGGREGATED if is_aggregated else BEHAVIOR_AND_TIME)
    media = _media(file, table.rows)
    label_columns = added_label_columns(file, table)
    events = _aggregated(file, table) if is_aggregated else _paired(file, table)
    for event in events:
        # Times of BORIS count from the start of the observation, in which several films may be played.
        media_of_observation = media[event.span.cells["observation"]]
        for span in _in_media(event.span, media_of_observation):
            yield from with_added_labels(span, event.rows, label_columns)


def _table_of_events(file: SpanFile, needed: Sequence[str]) -> Table:
    """Read the table of a file; the cells on media are filled in from the lines above it.

    BORIS adds the offset of an observation to its times: it moves them, so that they are not those of the
    film. Versions before 8.22.17 do not write the offset; that the times may be moved is then noted.

    `needed` are the columns that the table must have.
    """
    records, delimiter = file.records(("Behavior",))
    facts_above = _facts_above_table(records)
    table = tool_table(file, needed, (records, delimiter))
    del records  # frees memory: they take as much as the table
    is_offset_stated = OFFSET in table.columns or bool(facts_above[OFFSET])
    if not is_offset_stated:
        file.account.note(f"no {OFFSET}: where an observation has one in BORIS, its times are moved by it")
    rows = tuple(_with_media_cells(file, row, facts_above) for row in table.rows)
    return dataclasses.replace(table, rows=rows)


def _facts_above_table(records: Records) -> dict[str, str]:
    """Read the lines above the table, in which version 7 of BORIS writes what later versions have as columns.

    Such a line has a title and a text in two cells: `Player #1`, `a.mp4`.

    Returns
    -------
    Column of later versions (`ABOVE`) -> its text; several texts are joined by semicolons, and "" if no line
    has one.
    """
    texts_of_column = {name: list[str]() for name in ABOVE}
    for _, cells in records:
        is_header_of_table = "Behavior" in cells
        if is_header_of_table:
            break
        for name, title in ABOVE.items():
            if len(cells) > 1 and plain(cells[0]) == plain(title):
                texts_of_column[name].append(cells[1])
    return {name: ";".join(texts) for name, texts in texts_of_column.items()}


def _with_media_cells(file: SpanFile, row: Row, facts_above: Mapping[str, str]) -> Row:
    """Return a row whose cells on media are filled in.

    The column `Source` lists all media of the row's observation; other columns name the one in which its
    event is. If no media are listed, the latter stands for the list, which the file's account notes.

    `facts_above` is column -> what the lines above the table say of it (`_facts_above_table`).
    """
    cells = {**facts_above, **row.cells}  # a column of the table counts before the lines above
    for name in (*MEDIA_COLUMNS, SOURCE, OFFSET):
        if plain(cells.get(name, "")) in NOTHING:  # words for "no media" and "no offset"
            cells[name] = ""
    medium_of_event = first_filled_cell(cells, *MEDIA_COLUMNS)
    lists_media = bool(cells[SOURCE])
    if medium_of_event and not lists_media:
        file.account.note(f"no {SOURCE} lists media: times are taken to count from the start of each")
        cells[SOURCE] = medium_of_event
    return Row(row.line, cells)


def _aggregated(file: SpanFile, events: Table) -> Iterator[Event]:
    """Yield an event for each row of a table of aggregated events, as BORIS calls events with both times.

    A row that is left out has a reason: times that cannot be read, or a point in time, which is no span.
    """
    decimal = decimal_sign(events.delimiter)
    for timed_row in timed(file, events.rows, "Start (s)", "Stop (s)", decimal=decimal):
        is_point = timed_row.row.cells.get(TYPE, "").strip().upper() == "POINT"
        reason = POINT if is_point else timed_row.reason
        yield _event_of_row(timed_row, reason)


def _paired(file: SpanFile, events: Table) -> Iterator[Event]:
    """Yield an event for each START and its STOP, which is the next one with the same `_pairing_key`.

    Rows that cannot be paired are yielded with a reason: times that cannot be read, a START before another
    START of its key or without a STOP, a STOP without a START, and points.

    Raises
    ------
    ManifestError
        No column says START, STOP or POINT.
    """
    status_columns = [name for name in (TYPE, STATUS) if name in events.columns]
    if not status_columns:
        raise file.error(f"no column {TYPE} or {STATUS} says which events start and stop")
    status_column = status_columns[0]
    started: dict[tuple[str, ...], Event] = {}  # pairing key -> event whose STOP was not there yet
    for timed_row in timed(file, events.rows, "Time", "Time", decimal=decimal_sign(events.delimiter)):
        status = timed_row.row.cells[status_column].strip().upper()
        key = _pairing_key(timed_row.row)
        if timed_row.reason:
            yield _event_of_row(timed_row, timed_row.reason)
        elif status == "START":
            if key in started:
                yield started[key]
            started[key] = _event_of_row(timed_row, "START without STOP")
        elif status == "STOP" and key in started:
            yield _joined(started.pop(key), _event_of_row(timed_row, ""))
        elif status == "STOP":
            yield _event_of_row(timed_row, "STOP without START")
        elif status == "POINT":
            yield _event_of_row(timed_row, POINT)
        else:
            yield _event_of_row(timed_row, f"{status or 'nothing'} is no START or STOP")
    yield from started.values()


def _pairing_key(row: Row) -> tuple[str, ...]:
    """Return the cells that are the same in the START and the STOP of an event.

    These are observation, subject, behaviour and modifiers: a subject shows one behaviour once at a time.
    """
    names = [OBSERVATION, "Subject", "Behavior"]
    modifiers = [cell for name, cell in row.cells.items() if plain(name).startswith("modifier")]
    return tuple([row.cells.get(name, "") for name in names] + modifiers)


def _joined(first: Event, last: Event) -> Event:
    """Make one event of a START and its STOP, with the comments of both.

    A table of BORIS may have an event with a length in two rows, its START and its STOP, with others between
    them. All but the end and the comment is as the START has it.
    """
    comment = _distinct([first.span.cells["comment"], last.span.cells["comment"]])
    cells = {**first.span.cells, "comment": comment}
    # Until its STOP came, the START had the reason to be left out "START without STOP". It goes away.
    span = replace(first.span, end_s=last.span.end_s, reason="", cells=cells)
    return Event(span, (*first.rows, *last.rows))


def _event_of_row(timed_row: TimedRow, reason: str) -> Event:
    """Make an event of one row of a table: the whole event, or its START or its STOP.

    Its text is the behaviour that somebody showed, and its tier the category of the behaviour. `reason` is
    why it is left out; "" if it is not.
    """
    row = timed_row.row
    cells = {
        "media": first_filled_cell(row.cells, *MEDIA_COLUMNS),
        "observation": first_filled_cell(row.cells, OBSERVATION),
        "subject": first_filled_cell(row.cells, "Subject").replace(NOBODY, ""),
        "modifiers": _texts_of_columns(row, "modifier"),
        "comment": _texts_of_columns(row, "comment"),
    }
    span = RawSpan(
        timed_row.where,
        timed_row.start_s,
        timed_row.end_s,
        text=first_filled_cell(row.cells, "Behavior"),
        tier=first_filled_cell(row.cells, "Behavioral category"),
        cells=cells,
        reason=reason,
    )
    return Event(span, rows=(row,))


def _texts_of_columns(row: Row, begins: str) -> str:
    """Join the different texts of a row in the columns whose names begin with a word."""
    return _distinct(one_line(cell) for name, cell in row.cells.items() if plain(name).startswith(begins))


def _distinct(texts: Iterable[str]) -> str:
    """Join texts by `;`, each once, without the empty ones."""
    return "; ".join(dict.fromkeys(text for text in texts if text))


# --- media
# ---------------------------------------------------------------------------
def _media(file: SpanFile, rows: Sequence[Row]) -> dict[str, list[Medium]]:
    """Return name of an observation -> its media, in the order in which they were played.

    In BORIS several players may show media side by side, of which the first one counts. Where the rows list
    no media of players, they are the media that the events name.

    Raises
    ------
    ManifestError
        An observation has an offset; or there are several observations, some of which have no media and may
        be of any film.
    """
    observations = _observations(file, rows)
    all_have_media = all(observation.has_media for observation in observations)
    if len(observations) > 1 and not all_have_media and not file.reading.movie:
        raise file.error("of several observations, some without media: which films they are of is unclear")
    return {observation.name: _media_in_order(file, observation) for observation in observations}


def _observations(file: SpanFile, rows: Sequence[Row]) -> list[Observation]:
    """Collect the lists of media of each observation, and of their lengths, from its rows.

    A row has them as `player #1:a.mp4;b.mp4` and `10;12.5`. All rows of an observation should have the same.

    Raises
    ------
    ManifestError
        A row's observation has an offset, so that its times are moved.
    """
    observations: dict[str, Observation] = {}
    media_of_first_player = cache(_media_of_first_player)  # cached, as many rows have the same source
    for row in rows:
        _refuse_offset(file, row)
        name = first_filled_cell(row.cells, OBSERVATION)
        observation = observations.setdefault(name, Observation(name))
        list_of_media = media_of_first_player(row.cells[SOURCE])
        # The lengths of the first player's media stand before the first "|".
        list_of_lengths, _, _ = row.cells.get(LENGTHS, "").partition("|")
        observation.lengths_of_media[list_of_media] = list_of_lengths
    return list(observations.values())


def _refuse_offset(file: SpanFile, row: Row) -> None:
    """Refuse a row whose observation has an offset other than zero, by which BORIS moves its times.

    An offset that cannot be read is NaN, which is not zero either.
    """
    offset = row.cells[OFFSET]
    if offset and time_or_nan(offset.strip().lstrip("+-")) != 0:
        raise file.error(f"line {row.line}, {OFFSET}: {offset!r}: times are moved; set it to 0 in BORIS")


def _media_of_first_player(source: str) -> str:
    """Return the media of the first player: `a.mp4` of `player #1:a.mp4;player #2:b.mp4`."""
    *earlier_texts, last_text = _PLAYER.split(source)
    for text in earlier_texts:
        media = text.rstrip(_BETWEEN_PLAYERS)
        if media:
            return media
    return last_text  # a sign at its end belongs to the name, as no other player follows


def _media_in_order(file: SpanFile, observation: Observation) -> list[Medium]:
    """Return the media of an observation, which are played one after the other, with their begins and ends.

    The last medium has no end, so that spans after its stated length are kept.

    Raises
    ------
    ManifestError
        There are several media of unknown lengths, so that it is unclear when the second begins.
    """
    lists_of_media = list(observation.lengths_of_media)  # each such as `a.mp4;b.mp4`
    names = [one_line(name) for name in re.split("[;|]", ";".join(lists_of_media))]
    names = [name for name in names if name]
    if not names:
        return []
    if len(names) == 1:
        return [Medium(names[0], begin_s=0.0, end_s=math.inf)]
    lengths_s = _lengths_of_media(observation, len(names))
    if not lengths_s:
        raise file.error(
            f"column {OBSERVATION}, {observation.name!r}: {len(names)} media; times may count from the start "
            f"of the first: keep that column, {SOURCE} and {LENGTHS}, or export each film as an "
            "observation of its own"
        )
    file.account.note("times of media one after the other are counted in each")

    # Each medium begins where the one before it ends; the last one has no end.
    ends_s = list(accumulate(lengths_s))
    begins_s = [0.0, *ends_s[:-1]]
    ends_s[-1] = math.inf
    media = []
    for name, begin_s, end_s in zip(names, begins_s, ends_s, strict=True):
        media.append(Medium(name, begin_s, end_s))
    return media


def _lengths_of_media(observation: Observation, n_media: int) -> list[float]:
    """Return the lengths of the media of an observation in seconds; empty if they are not all known.

    They are not known either if the rows of the observation list different media.
    """
    if len(observation.lengths_of_media) != 1:
        return []
    (list_of_lengths,) = observation.lengths_of_media.values()  # such as "10;12.5"
    lengths_s = [time_or_nan(length) for length in list_of_lengths.split(";")]
    are_positive = all(length > 0 for length in lengths_s)  # NaN is not
    return lengths_s if len(lengths_s) == n_media and are_positive else []


def _in_media(span: RawSpan, media: Sequence[Medium]) -> Iterator[RawSpan]:
    """Yield the parts of a span in the media of its observation, with times from the start of each medium.

    The media of an observation were played one after the other, and the span counts its times from the start
    of the first. If its row names another media file than those in which its time lies, it is left out with
    the reason.
    """
    is_no_span = bool(span.fault())
    if is_no_span:
        yield span
        return

    parts = []
    for medium in media:
        start_s = max(span.start_s, medium.begin_s) - medium.begin_s
        end_s = min(span.end_s, medium.end_s) - medium.begin_s
        if start_s < end_s:
            cells = {**span.cells, "media": medium.place}
            # Rounded to nanoseconds, as differences such as 12.3 - 10 have digits that no table wrote.
            parts.append(replace(span, start_s=round(start_s, 9), end_s=round(end_s, 9), cells=cells))
    if not parts:  # its time is in none of the media
        yield span
        return
    named_medium = span.cells["media"]
    stems = {stem_of(part.cells["media"]) for part in parts}
    if named_medium and stem_of(named_medium) not in stems:
        yield replace(span, reason=f"of {named_medium!r}, and its time is in {parts[0].cells['media']!r}")
    else:
        yield from parts
