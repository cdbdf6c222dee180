"""Compare the figures of `decode.py` with their goals, and the goals with what any reader can reach."""

from collections.abc import Iterator, Mapping, Sequence
from math import isnan, nan
from typing import Any, NamedTuple

AT_LEAST: dict[str, tuple[str, float]] = {
    "h264.mp4": ("decord", 1.5),
    "h264-1280x544.mp4": ("decord", 1.5),
    "h264-open.mkv": ("decord", 1.5),
    "hevc.mp4": ("decord", 1.8),
    "mpeg2.mkv": ("decord", 3.0),
    "vp9.webm": ("decord", 1.15),
    "av1.mkv": ("PyAV", 1.15),  # decord cannot decode it
    "mpeg4-b.avi": ("decord", 1.0),
}
"""The reader to which a clip is compared, and the least ratio of its time to ours."""

OF_LIMIT = 1.15
"""The largest ratio of our time to FFmpeg's on exactly the packets that are needed. None is asked of MPEG-2:
reading the packets that are not needed takes more than that by itself."""

MET, MISSED, BEYOND = "met", "missed", "beyond the limit"


class Figure(NamedTuple):
    """A measured ratio with its goal.

    Parameters
    ----------
    what, ratio
        What was measured, and which ratio it is.
    seen
        The ratio.
    goal
        The least that is asked; negative for the most that is allowed.
    best
        The best ratio that a reader can reach on this machine; NaN if it is not known.
    """

    what: str
    ratio: str
    seen: float
    goal: float
    best: float = nan

    @property
    def verdict(self) -> str:
        """Whether the goal is met, missed, or beyond what a reader can reach."""
        sign = 1 if self.goal > 0 else -1
        if sign * self.seen >= self.goal:
            return MET
        return BEYOND if sign * self.best < self.goal else MISSED

    def row(self) -> dict[str, object]:
        """Return the line of a table."""
        goal = f"{'at least' if self.goal > 0 else 'at most'} {abs(self.goal)}"
        columns = {"what": self.what, "ratio": self.ratio, "seen": self.seen, "goal": goal}
        return columns | {"best possible": self.best, "verdict": self.verdict}


def figures(rows: Sequence[Mapping[str, Any]], films: Sequence[Mapping[str, Any]]) -> Iterator[Figure]:
    """Yield all figures that have goals.

    The best that a reader can reach is FFmpeg's time on the packets that it needs, and the time to read the
    others: it must see all packets to know which frames there are.

    Parameters
    ----------
    rows
        Measured clips: milliseconds by reader, `limit`, `demuxing` and `demuxing needed`.
    films
        Measured spans and windows: their `ratio` and what it is `at most`.
    """
    for row in rows:
        limit = row.get("limit", nan)
        least = limit + row["demuxing"] - row.get("demuxing needed", nan)
        if row["clip"] in AT_LEAST:
            reader, goal = AT_LEAST[row["clip"]]
            yield Figure(row["clip"], f"to {reader}", row[f"to {reader}"], goal, row[reader] / least)
        if not isnan(limit) and row["clip"] != "mpeg2.mkv":
            yield Figure(row["clip"], "of limit", row["of limit"], -OF_LIMIT, least / limit)
    for film in films:
        yield Figure(film["what"], "ratio", film["ratio"], -film["at most"])
