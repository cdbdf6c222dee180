"""Part a film's time once, for every sentence, flag and drawing: judged, not judged, black or credits."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_film import schema
from obygaze_film.schema import (
    MOST_UNRELIABLE,
    NO_CONTENT,
    UNRELIABLE,
    durations,
    has_flag,
    is_counted,
    shared_seconds,
)

JUDGED: Final = "judged"
UNLIKE: Final = "unlike"
NOTHING: Final = "nothing"
UNREAD: Final = "unread"
"""Parts of a film's time: with a probability; unlike what a model was trained on, or not read; black
pictures or credits, whatever else they are. Of what is not judged a part may be unread."""

LEAST_SAID_S: Final = 0.5
"""Seconds that a part must have for sentences to mention it."""

EDGE_S: Final = 0.01
"""Seconds by which rounding may move the end of a span away from the end of a row or shot where it lies."""


@dataclass(frozen=True, slots=True)
class FilmTime:
    """The parts of a film's time by one model, in seconds; the first three add up to the film.

    Attributes
    ----------
    judged_s : float
        With a probability.
    unlike_s : float
        Of content that the model cannot judge.
    nothing_s : float
        Black pictures and credits.
    unread_s : float
        Of `unlike_s`, what no window with features covers: it could not be read.
    unread_from_s : float or None
        Second from which nothing could be read up to the film's end, as where its file is cut off; None if
        its end was read.
    """

    judged_s: float
    unlike_s: float
    nothing_s: float
    unread_s: float = 0.0
    unread_from_s: float | None = None

    @property
    def whole_s(self) -> float:
        """The film's length."""
        return self.judged_s + self.unlike_s + self.nothing_s

    @property
    def is_whole(self) -> bool:
        """Whether all of the film is judged, but for less than is worth saying."""
        return self.unlike_s + self.nothing_s < LEAST_SAID_S

    @property
    def why_nothing(self) -> str:
        """Why nothing is judged: `NOTHING` to see, all of it `UNREAD`, or `UNLIKE`; empty if something is."""
        if self.judged_s:
            return ""
        if not self.unlike_s:
            return NOTHING
        return UNREAD if self.unread_s >= self.unlike_s else UNLIKE

    @property
    def is_mostly_judged(self) -> bool:
        """Whether so much of the film's content is judged that it may have a rate."""
        return self.unlike_s <= MOST_UNRELIABLE * (self.judged_s + self.unlike_s)

    def share_of_content(self, seconds: float) -> float:
        """Return the share of the film without black and credits that some seconds are."""
        content_s = self.judged_s + self.unlike_s
        return seconds / content_s if content_s else 0.0

    def share(self, seconds: float) -> float:
        """Return the share of the film that some seconds are."""
        return seconds / self.whole_s if self.whole_s else 0.0


def parts_of(rows: pd.DataFrame) -> NDArray[np.str_]:
    """Name the part of a film's time that each row [N] of a model is in."""
    parts = np.where(is_counted(rows), JUDGED, UNLIKE)
    return np.where(has_flag(rows, *NO_CONTENT), NOTHING, parts)


def film_time(rows: pd.DataFrame) -> FilmTime:
    """Add up the parts of a film's time, of the rows of one model.

    Examples
    --------
    >>> import pandas as pd
    >>> from obygaze_film.film_time import film_time
    >>> times = {"start_s": [0.0, 6.0, 8.0], "end_s": [6.0, 8.0, 10.0]}
    >>> rows = pd.DataFrame({**times, "p": [0.2, None, None], "flags": ["", "unlike", "unlike;credits"]})
    >>> film_time(rows)
    FilmTime(judged_s=6.0, unlike_s=2.0, nothing_s=2.0, unread_s=0.0, unread_from_s=None)
    """
    seconds = durations(rows)
    parts = parts_of(rows)
    judged = float(seconds[parts == JUDGED].sum())
    unlike = float(seconds[parts == UNLIKE].sum())
    nothing = float(seconds[parts == NOTHING].sum())
    is_unread = (parts == UNLIKE) & has_flag(rows, schema.MISSING) & ~has_flag(rows, schema.UNLIKE)
    return FilmTime(judged, unlike, nothing, float(seconds[is_unread].sum()), _unread_from_s(rows, is_unread))


def _unread_from_s(rows: pd.DataFrame, is_unread: NDArray[np.bool_]) -> float | None:
    """Return the start of the unread rows at the end of a film; None if there are none, or no others."""
    in_time = np.argsort(rows["start_s"].to_numpy(dtype=np.float64), kind="stable")
    was_read = np.flatnonzero(~is_unread[in_time])
    first_unread = int(was_read[-1]) + 1 if len(was_read) else 0
    if first_unread in (0, len(rows)):
        return None
    start_s = float(rows["start_s"].iloc[in_time[first_unread]])
    is_worth_saying = float(rows["end_s"].max()) - start_s >= LEAST_SAID_S
    return start_s if is_worth_saying else None


def share_of_black(rows: pd.DataFrame) -> float:
    """Return the share of a film's time that is black, of the rows of one model.

    This is the one share of black of a film with shots, wherever it is told. A mean over the windows of its
    staging would be another number: they overlap, and begin within black pictures.
    """
    seconds = durations(rows)
    return float(seconds[has_flag(rows, schema.BLACK)].sum() / seconds.sum())


def staging_means(variables: pd.DataFrame, rows: pd.DataFrame | None = None) -> dict[str, float]:
    """Average what was measured of a film's staging over its time; return variable -> mean.

    A second in several windows counts once: windows may overlap, and the last one begins before the one
    before it has ended. A variable that is known in no window is left out.

    Parameters
    ----------
    variables : DataFrame
        As of `Timeline`.
    rows : DataFrame, optional
        Rows of a film with shots, by one model: the share of black is then theirs (`share_of_black`).
    """
    means = {}
    for name in variables.columns.drop(["start_s", "end_s"]):
        known = variables[variables[name].notna()]
        if len(known):
            means[str(name)] = float(np.average(known[name], weights=shared_seconds(known)))
    if rows is not None and schema.BLACK in means:
        means[schema.BLACK] = share_of_black(rows)
    return means


def seconds_inside(rows: pd.DataFrame, start_s: float, end_s: float) -> NDArray[np.float64]:
    """Compute for how many seconds each of N rows lies in a span; returns [N].

    A row that the span enters by `EDGE_S` or less, which may be rounding, counts as outside. A span of no
    more than twice `EDGE_S` itself keeps even these.
    """
    row_starts = rows["start_s"].to_numpy(dtype=np.float64)
    row_ends = rows["end_s"].to_numpy(dtype=np.float64)
    overlap_s: NDArray[np.float64] = np.minimum(row_ends, end_s) - np.maximum(row_starts, start_s)
    least_s = EDGE_S if end_s - start_s > 2 * EDGE_S else 0.0
    return np.where(overlap_s > least_s, overlap_s, 0.0).astype(np.float64)


def is_enough(judged_s: NDArray[np.float64], overlap_s: NDArray[np.float64]) -> bool:
    """Whether enough of a span is judged for a mean over it: half a second, or half of a shorter span.

    Parameters
    ----------
    judged_s, overlap_s : ndarray, shape [N]
        Seconds of each row in the span: those with a probability, and all.
    """
    needed_s = min(LEAST_SAID_S, float(overlap_s.sum()) / 2)
    return needed_s > 0 and float(judged_s.sum()) >= needed_s


def told_flags_in(rows: pd.DataFrame) -> list[str]:
    """List the flags that are told of any of the rows (`told_flags`), in the order of their first row."""
    flags: dict[str, None] = {}  # a dict keeps the order
    for cell in rows["flags"]:
        flags |= dict.fromkeys(told_flags(cell).split(";"))
    return [flag for flag in flags if flag]


def told_flags(cell: str) -> str:
    """Keep the flags of a row that are worth telling.

    Where pictures are black or credits, it goes without saying that they are unlike all content or that
    nothing could be read.

    Examples
    --------
    >>> from obygaze_film.film_time import told_flags
    >>> told_flags("unlike;black"), told_flags("unlike;bars")
    ('black', 'unlike;bars')
    """
    flags = cell.split(";")
    has_content = not set(flags) & set(NO_CONTENT)
    if has_content:
        return cell
    return ";".join(flag for flag in flags if flag not in UNRELIABLE)
