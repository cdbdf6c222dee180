"""Part a film's time once, for every sentence, flag and drawing: judged, not judged, black or credits."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_film import schema
from obygaze_film.schema import (
    MAX_UNRELIABLE_SHARE,
    NO_CONTENT,
    UNRELIABLE,
    durations,
    has_flag,
    is_counted,
    shared_seconds,
)

JUDGED: Final = "judged"
"""The part of a film's time that has a probability."""

UNJUDGED: Final = "unlike"
"""The part that has content and no probability: it is unlike the training clips, or could not be read."""

BLACK_OR_CREDITS: Final = "nothing"
"""The part where pictures are black or show credits, whatever its other flags are."""

UNREAD: Final = "unread"
"""The reason why a film is not judged if all of its content could not be read."""

MIN_SAID_S: Final = 0.5
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
    unjudged_s : float
        Of content that the model cannot judge.
    black_or_credits_s : float
        Where pictures are black or show credits.
    unread_s : float
        Seconds of `unjudged_s` that no window with features covers: they could not be read.
    unread_from_s : float or None
        Second from which nothing could be read up to the film's end, as where its file is cut off; None if
        the film's end was read.
    """

    judged_s: float
    unjudged_s: float
    black_or_credits_s: float
    unread_s: float = 0.0
    unread_from_s: float | None = None

    @property
    def whole_s(self) -> float:
        """The film's length."""
        return self.judged_s + self.unjudged_s + self.black_or_credits_s

    @property
    def is_whole(self) -> bool:
        """Whether all of the film is judged, but for less than `MIN_SAID_S`."""
        return self.unjudged_s + self.black_or_credits_s < MIN_SAID_S

    @property
    def why_unjudged(self) -> str:
        """Why no second of the film is judged; empty if any second is.

        `BLACK_OR_CREDITS` if there is nothing else in it; `UNREAD` if none of its content could be read;
        `schema.UNLIKE` if what was read is unlike the training clips.
        """
        if self.judged_s:
            return ""
        if not self.unjudged_s:
            return BLACK_OR_CREDITS
        is_all_unread = self.unread_s >= self.unjudged_s
        return UNREAD if is_all_unread else schema.UNLIKE

    @property
    def is_mostly_judged(self) -> bool:
        """Whether at most a fifth of the film's content is unjudged, so that it may have a rate."""
        return self.unjudged_s <= MAX_UNRELIABLE_SHARE * self._content_s

    @property
    def _content_s(self) -> float:
        """Seconds that are neither black nor credits."""
        return self.judged_s + self.unjudged_s

    def share_of_content(self, seconds: float) -> float:
        """Divide seconds by the seconds of the film that are neither black nor credits; 0 if it has none."""
        return seconds / self._content_s if self._content_s else 0.0

    def share(self, seconds: float) -> float:
        """Divide seconds by the film's length."""
        return seconds / self.whole_s if self.whole_s else 0.0


def parts_of(rows: pd.DataFrame) -> NDArray[np.str_]:
    """Return which part of a film's time each row [N] of a model is in.

    The row is judged (`JUDGED`), has content that could not be judged (`UNJUDGED`), or is black pictures or
    credits (`BLACK_OR_CREDITS`), whatever its other flags are.
    """
    parts = np.where(is_counted(rows), JUDGED, UNJUDGED)
    return np.where(has_flag(rows, *NO_CONTENT), BLACK_OR_CREDITS, parts)


def film_time(rows: pd.DataFrame) -> FilmTime:
    """Add up the parts of a film's time, of the rows of one model.

    Examples
    --------
    >>> import pandas as pd
    >>> from obygaze_film.film_time import film_time
    >>> times = {"start_s": [0.0, 6.0, 8.0], "end_s": [6.0, 8.0, 10.0]}
    >>> rows = pd.DataFrame({**times, "p": [0.2, None, None], "flags": ["", "unlike", "unlike;credits"]})
    >>> film_time(rows)
    FilmTime(judged_s=6.0, unjudged_s=2.0, black_or_credits_s=2.0, unread_s=0.0, unread_from_s=None)
    """
    seconds = durations(rows)
    parts = parts_of(rows)
    # A row may have two windows: one unlike the training, and one that could not be read. It counts as read.
    is_unread = (parts == UNJUDGED) & has_flag(rows, schema.MISSING) & ~has_flag(rows, schema.UNLIKE)
    return FilmTime(
        judged_s=float(seconds[parts == JUDGED].sum()),
        unjudged_s=float(seconds[parts == UNJUDGED].sum()),
        black_or_credits_s=float(seconds[parts == BLACK_OR_CREDITS].sum()),
        unread_s=float(seconds[is_unread].sum()),
        unread_from_s=_unread_from_s(rows, is_unread),
    )


def _unread_from_s(rows: pd.DataFrame, is_unread: NDArray[np.bool_]) -> float | None:
    """Return the second from which nothing of a film could be read up to its end; its file may be cut off.

    None if the film's last row was read, if no row was, or if the unread rest is too short to be mentioned.

    Parameters
    ----------
    rows : DataFrame
        The rows of one model, in any order.
    is_unread : ndarray of bool, shape [N]
        Rows that could not be read.
    """
    starts = rows["start_s"].to_numpy(dtype=np.float64)
    in_time_order = np.argsort(starts, kind="stable")
    places_read = np.flatnonzero(~is_unread[in_time_order])  # places in the order of time
    if len(places_read) == 0:
        return None
    after_last_read = int(places_read[-1]) + 1
    if after_last_read == len(rows):
        return None

    start_s = float(starts[in_time_order[after_last_read]])
    unread_s = float(rows["end_s"].max()) - start_s
    return start_s if unread_s >= MIN_SAID_S else None


def share_of_black(rows: pd.DataFrame) -> float:
    """Return the share of a film's time that is black, by the rows of one model.

    Every page and table of a film with shots uses this number. A mean over the windows that staging was
    measured in would differ, as those overlap and may begin within black pictures.
    """
    seconds = durations(rows)
    return float(seconds[has_flag(rows, schema.BLACK)].sum() / seconds.sum())


def staging_means(variables: pd.DataFrame, rows: pd.DataFrame | None = None) -> dict[str, float]:
    """Average variables of staging, such as brightness, over a film's time; return variable -> mean.

    Windows may overlap: a second that several windows cover is shared between them, and so counts once
    (`schema.shared_seconds`). A variable that is known in no window is left out.

    Parameters
    ----------
    variables : DataFrame
        `Timeline.variables`: the values in each window.
    rows : DataFrame, optional
        Rows of a film with shots, by one model. They give the share of black pictures (`share_of_black`) in
        place of the windows.
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
    """Compute for how many seconds each of N rows overlaps a span; returns [N].

    An overlap of at most `EDGE_S` may come from rounding and counts as 0. Of a span that itself lasts at most
    twice `EDGE_S`, every overlap counts.
    """
    row_starts = rows["start_s"].to_numpy(dtype=np.float64)
    row_ends = rows["end_s"].to_numpy(dtype=np.float64)
    # Below 0 for rows apart from the span
    overlap_s: NDArray[np.float64] = np.minimum(row_ends, end_s) - np.maximum(row_starts, start_s)
    is_long_span = end_s - start_s > 2 * EDGE_S
    min_s = EDGE_S if is_long_span else 0.0
    return np.where(overlap_s > min_s, overlap_s, 0.0).astype(np.float64)


def is_enough_judged(judged_s: NDArray[np.float64], overlap_s: NDArray[np.float64]) -> bool:
    """Whether enough of a span is judged for a mean over it: half a second, or half of the span if less.

    Parameters
    ----------
    judged_s : ndarray, shape [N]
        Seconds of each row in the span that have a probability.
    overlap_s : ndarray, shape [N]
        All seconds of each row in the span.
    """
    needed_s = min(MIN_SAID_S, float(overlap_s.sum()) / 2)
    return needed_s > 0 and float(judged_s.sum()) >= needed_s


def mean_probability(rows: pd.DataFrame, start_s: float, end_s: float) -> float | None:
    """Return a model's mean probability in a span, weighted by the seconds of each row in the span.

    Only rows that count have a part in it (`is_counted`): of a film that the model was trained on, black
    pictures and credits have a probability too.

    Parameters
    ----------
    rows : DataFrame
        The rows of one model.
    start_s, end_s : float
        Ends of the span, in seconds.

    Returns
    -------
    float or None
        None if too little of the span is judged (`is_enough_judged`).
    """
    seconds = seconds_inside(rows, start_s, end_s)  # [N rows]
    is_used = (seconds > 0) & is_counted(rows)
    if not is_enough_judged(seconds[is_used], seconds):
        return None
    p = rows["p"].to_numpy(dtype=np.float64)
    return float(np.average(p[is_used], weights=seconds[is_used]))


def informative_flags_in(rows: pd.DataFrame) -> list[str]:
    """List the flags of some rows, each once, in the order of the first row that has it.

    A row's redundant flags, which follow from its others, do not count (`informative_flags`).
    """
    flags: list[str] = []
    for cell in rows["flags"]:
        for flag in informative_flags(cell).split(";"):
            if flag and flag not in flags:
                flags.append(flag)
    return flags


def informative_flags(cell: str) -> str:
    """Remove redundant flags from a row's cell.

    Black pictures and credits are always unlike the training clips, or without features. So a row with the
    flag of either needs no `UNRELIABLE` flag, which would say just that.

    Examples
    --------
    >>> from obygaze_film.film_time import informative_flags
    >>> informative_flags("unlike;black"), informative_flags("unlike;bars")
    ('black', 'unlike;bars')
    """
    flags = cell.split(";")
    is_black_or_credits = any(flag in NO_CONTENT for flag in flags)
    if not is_black_or_credits:
        return cell
    return ";".join(flag for flag in flags if flag not in UNRELIABLE)
