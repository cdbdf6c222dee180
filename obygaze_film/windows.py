"""Convert overlapping windows to disjoint rows (shots or steps), with the overlap of each pair."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array

from obygaze_features.manifest import read_parts
from obygaze_features.store import Store
from obygaze_film.errors import FilmError
from obygaze_film.rows import SHOT_COLUMNS

SLACK_S = 0.001
"""Times that differ by less are equal: manifests round to milliseconds."""

Spans = NDArray[np.float64]
"""Starts and ends in seconds, shape [N, 2], in time order."""


@dataclass(frozen=True, eq=False, slots=True)
class Windows:
    """The windows of one film in a store.

    Attributes
    ----------
    clip_ids : tuple of str, length N
    spans : ndarray, shape [N, 2]
    """

    clip_ids: tuple[str, ...]
    spans: Spans

    @property
    def end_s(self) -> float:
        """End of the last window in seconds."""
        return float(self.spans[:, 1].max())

    @property
    def window_s(self) -> float:
        """Median length in seconds."""
        return round(float(np.median(self.spans[:, 1] - self.spans[:, 0])), 3)

    @property
    def hop_s(self) -> float | None:
        """Median time between two starts in seconds; None for a single window."""
        return round(float(np.median(np.diff(self.spans[:, 0]))), 3) if len(self.spans) > 1 else None


def windows_of(store: Store) -> dict[str, Windows]:
    """Find the windows of each film of a store; films are sorted by name.

    Raises
    ------
    FilmError
        A clip is a whole file, so its position in the film is unknown; or the store has no clip.
    """
    found: dict[str, list[tuple[float, float, str]]] = {}
    for clip in store.clips:
        if clip.start_s is None or clip.end_s is None:
            raise FilmError(
                f"store {store.name}: clip {clip.clip_id} is a whole file and has no place in a film: "
                "cut films into windows first (obygaze manifest import film)"
            )
        found.setdefault(clip.movie, []).append((clip.start_s, clip.end_s, clip.clip_id))
    if not found:
        raise FilmError(f"store {store.name} has no clip")
    return {
        movie: Windows(tuple(clip_id for *_, clip_id in rows), np.array([row[:2] for row in rows]))
        for movie, rows in sorted((movie, sorted(rows)) for movie, rows in found.items())
    }


def rows_of(windows: Windows, shots: Spans | None) -> tuple[str, Spans]:
    """Cut a film into rows that do not overlap and cover it.

    With shots, a row is a shot; one longer than a window is cut into equal parts. Without, a row is a window
    where windows do not overlap, and otherwise a step from one window's start to the next, the last steps as
    long as the hop. What neither shots nor windows reach is a row of its own.

    Parameters
    ----------
    windows : Windows
    shots : ndarray, shape [S, 2], optional

    Returns
    -------
    kind : str
        "shots", "windows" or "steps".
    rows : ndarray, shape [R, 2]
    """
    spans, window_s = windows.spans, windows.window_s
    if shots is not None and len(shots):
        parts = [
            _equal_parts(start, end, max(1, int(np.ceil((end - start) / window_s - 0.01))))
            for start, end in shots
        ]
        return "shots", _filled(np.concatenate(parts), windows.end_s)
    if len(spans) == 1 or (spans[1:, 0] >= spans[:-1, 1] - SLACK_S).all():
        return "windows", _filled(spans, windows.end_s)
    hop_s = windows.hop_s or window_s
    starts = [float(spans[0, 0])]
    for start in spans[1:, 0].tolist():
        if start - starts[-1] >= hop_s - SLACK_S:  # the last window is moved back: its start is no step
            starts.append(start)
    while windows.end_s - starts[-1] >= 1.5 * hop_s:
        starts.append(starts[-1] + hop_s)
    edges = np.round([*starts, windows.end_s], 3)
    return "steps", _filled(np.column_stack([edges[:-1], edges[1:]]), windows.end_s)


def _equal_parts(start: float, end: float, n: int) -> Spans:
    edges = np.round(np.linspace(start, end, n + 1), 3) if n > 1 else np.array([start, end])
    edges[0], edges[-1] = start, end
    return np.column_stack([edges[:-1], edges[1:]])


def _filled(spans: Spans, end_s: float) -> Spans:
    """Add the gaps between spans, and before and after them, as spans."""
    ends = np.concatenate([[0.0], spans[:, 1]])
    starts = np.concatenate([spans[:, 0], [max(end_s, spans[-1, 1])]])
    gaps = np.column_stack([ends, starts])[starts - ends > SLACK_S]
    every = np.concatenate([spans, gaps])
    return every[np.argsort(every[:, 0], kind="stable")]


def overlaps(rows: Spans, windows: Spans) -> csr_array:
    """Compute how many seconds of each row each window covers, [R, N]."""
    places: list[NDArray[np.intp]] = []
    columns: list[NDArray[np.intp]] = []
    seconds: list[Spans] = []
    for first in range(0, len(rows), 256):  # in parts, so that memory stays small for a day of film
        part = rows[first : first + 256]
        common = np.minimum(part[:, None, 1], windows[None, :, 1]) - np.maximum(
            part[:, None, 0], windows[None, :, 0]
        )
        row, column = np.nonzero(common > 1e-9)
        places.append(row + first)
        columns.append(column)
        seconds.append(common[row, column])
    index = np.concatenate(places), np.concatenate(columns)
    return csr_array((np.concatenate(seconds), index), shape=(len(rows), len(windows)))


def read_shots(path: Path, movies: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Read a table of shots (see `read_parts`) for some films, which need not all be in it.

    Raises
    ------
    ManifestError
        As `read_parts`; or there is one film and the table is of others.
    """
    parts = read_parts(path, movies if len(movies) == 1 else None)
    return {
        movie: pd.DataFrame(
            [
                (movie, part.start_s, part.end_s, part.detector or path.name, ";".join(part.flags))
                for part in shots
            ],
            columns=SHOT_COLUMNS,
        )
        for movie, shots in parts.items()
    }


def flagged_seconds(rows: Spans, shots: pd.DataFrame, flag: str) -> NDArray[np.float64]:
    """Compute how many seconds of each row [R] lie in shots with a flag."""
    marked = shots.loc[[flag in flags.split(";") for flags in shots["flags"]], ["start_s", "end_s"]]
    if marked.empty:
        return np.zeros(len(rows))
    return np.asarray(overlaps(rows, marked.to_numpy(dtype=np.float64)).sum(axis=1), dtype=np.float64)
