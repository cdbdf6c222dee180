"""Read the rows of a timeline: columns, flags, durations."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_film.record import NO_CONTENT, UNRELIABLE

COLUMNS = (
    "movie", "start_s", "end_s", "level_task", "model", "logit", "p", "p_low", "p_high", "called", "unlike",
    "flags",
)  # fmt: skip
"""First columns of `timeline.csv`, followed by those of the concepts and `LAST`."""

LAST = ("base_contribution", "n_windows", "status")

SHOT_COLUMNS = ("movie", "start_s", "end_s", "detector", "flags")

TRACE_COLUMNS = ("movie", "model", "start_s", "end_s", "n_frames", "weight", "contribution")
"""Columns of `frames.csv`, followed by ``<concept>_p``."""

NO_TRACES = pd.DataFrame(columns=list(TRACE_COLUMNS))


def has_flag(table: pd.DataFrame, *names: str) -> NDArray[np.bool_]:
    """Mark the rows [N] that have any of the flags."""
    wanted = set(names)
    return np.array([not wanted.isdisjoint(flags.split(";")) for flags in table["flags"]], dtype=np.bool_)


def durations(table: pd.DataFrame) -> NDArray[np.float64]:
    """Compute the length of each row [N] in seconds."""
    found: NDArray[np.float64] = (table["end_s"] - table["start_s"]).to_numpy(dtype=np.float64)
    return found


def is_counted(table: pd.DataFrame) -> NDArray[np.bool_]:
    """Mark the rows [N] that a film's rate and segments count."""
    counted: NDArray[np.bool_] = ~has_flag(table, *UNRELIABLE, *NO_CONTENT) & table["p"].notna().to_numpy()
    return counted


def csv_bytes(table: pd.DataFrame) -> bytes:
    """Write a table as CSV: numbers unrounded, missing values empty."""
    return str(table.to_csv(index=False, lineterminator="\n")).encode("utf-8")
