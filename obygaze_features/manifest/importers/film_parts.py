"""Tables of parts of films: scenes that become clips, and shots that lie beside a manifest."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from obygaze_features.errors import ManifestError
from obygaze_features.io import csv_line
from obygaze_features.manifest.clip import time_code
from obygaze_features.manifest.table import Problems, Row, delimiter_of, read_table

SHOT_COLUMNS = ("movie", "start_s", "end_s", "detector", "flags")
SHOT_FLAGS = ("black", "credits", "bars")

# Parts of a table whose times are rounded to milliseconds may overlap by this much.
SLACK_S = 0.001


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a film, from `start_s` to `end_s` in seconds of the player's clock.

    Parameters
    ----------
    start_s, end_s
        Times in seconds; the end is exclusive.
    flags
        Of `SHOT_FLAGS`.
    detector
        What found a shot; empty if the table does not say.
    """

    start_s: float
    end_s: float
    flags: tuple[str, ...] = ()
    detector: str = ""


def read_parts(path: Path, movies: Sequence[str] | None = None) -> dict[str, list[Part]]:
    """Read a table of scenes or shots.

    Parameters
    ----------
    path
        Columns start_s and end_s, in seconds or hh:mm:ss.ms; movie, which may be absent for a single film;
        flags, of `SHOT_FLAGS` with ";" between them, and detector, which may be absent. Other columns are
        passed over. Cells may be separated by semicolons, then with decimal commas.
    movies
        The films that need parts; those of others are left out. By default the films of the table.

    Returns
    -------
    dict
        Movie -> its parts, in the order of time; an entry for each of `movies`.

    Raises
    ------
    ManifestError
        If a time is none, a part ends before it starts or overlaps the one before, a flag is unknown, or a
        film has no part.
    """
    delimiter = delimiter_of(path)
    only = movies[0] if movies is not None and len(movies) == 1 else None
    needed = ("start_s", "end_s") if only is not None else ("movie", "start_s", "end_s")
    table = read_table(path, needed=needed, delimiter=delimiter)
    problems = Problems(path)
    if movies is None:
        movies = list(dict.fromkeys(row.cells["movie"] for row in table.rows))
    found: dict[str, list[Part]] = {movie: [] for movie in movies}
    for row in table.rows:
        part = _part(row, problems, decimal_comma=delimiter != ",")
        parts = found.get(row.cells.get("movie") or only or "")
        if part is None or parts is None:
            continue
        if parts and part.start_s < parts[-1].end_s - SLACK_S:
            problems.add(
                row.line, f"{part.start_s:g} s: the row before ends at {parts[-1].end_s:g} s", "start_s"
            )
        parts.append(part)
    problems.refuse()
    for movie, parts in found.items():
        if not parts:
            raise ManifestError(f"{path}: no row of movie {movie!r}; one for each of its parts was expected")
    return found


def _part(row: Row, problems: Problems, *, decimal_comma: bool) -> Part | None:
    """Read a row; None if it can't be read, which is noted."""
    times = []
    for column in ("start_s", "end_s"):
        text = row.cells[column].strip()
        value = problems.attempt(
            row.line, column, time_code, text.replace(",", ".") if decimal_comma else text
        )
        times.append(-1.0 if value is None else value)
    start_s, end_s = times
    if not 0 <= start_s < end_s:
        found = f"from {row.cells['start_s']!r} to {row.cells['end_s']!r}"
        problems.add(row.line, f"{found}: expected times in seconds, the start before the end", "start_s")
        return None
    flags = tuple(flag for flag in row.cells.get("flags", "").split(";") if flag)
    if unknown := [flag for flag in flags if flag not in SHOT_FLAGS]:
        problems.add(row.line, f"{unknown[0]!r}: expected {', '.join(SHOT_FLAGS)}, with ; between", "flags")
        return None
    return Part(start_s, end_s, flags, row.cells.get("detector", ""))


def shots_file(manifest: Path) -> Path:
    """Where the shots of a manifest's films lie: beside it, `films.shots.csv` for `films.csv`."""
    return manifest.with_name(f"{manifest.stem}.shots.csv")


def shots_bytes(shots: Mapping[str, Iterable[Part]], detector: str) -> bytes:
    """Write a table of shots: columns movie, start_s, end_s, detector, flags; times as they are.

    `detector` is written for shots that do not name theirs.
    """
    lines = [csv_line(SHOT_COLUMNS)]
    for movie, parts in shots.items():
        for part in parts:
            times = repr(part.start_s), repr(part.end_s)
            lines.append(csv_line((movie, *times, part.detector or detector, ";".join(part.flags))))
    return "".join(lines).encode()
