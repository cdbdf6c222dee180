"""Find segments in a timeline by hysteresis, best first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_film.schema import ModelRecord, durations, is_counted

SEGMENT_COLUMNS = (
    "movie", "model", "rank", "start_s", "end_s", "p", "p_low", "p_high", "peak_s", "reaches", "present",
    "concepts", "concepts_p", "contributions", "flags",
)  # fmt: skip
"""present: the concepts that are seen and weigh most; concepts: these, and those that weigh most whether seen
or not, with the probability of each and its contribution to the logit. Names and numbers are separated by
semicolons, the heaviest first."""

DROP = 0.1
"""Difference between the probabilities at which a segment starts and ends."""

N_CONCEPTS = 3
"""Most concepts in the column `present`, and number of those that weigh most."""

Run = tuple[int, int]
"""Index of the first row, and of the row after the last."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A concept of a segment: its mean probability and contribution to the logit, and whether it is seen."""

    concept: str
    p: float
    contribution: float
    is_present: bool


def reasons(segment: Mapping[Any, Any]) -> tuple[Reason, ...]:
    """Read the concepts of a row of `SEGMENT_COLUMNS`, the heaviest first."""
    names, p, contributions = (
        str(segment[name]).split(";") for name in ("concepts", "concepts_p", "contributions")
    )
    present = str(segment["present"]).split(";")
    return tuple(
        Reason(name, float(own_p), float(contribution), name in present)
        for name, own_p, contribution in zip(names, p, contributions, strict=True)
        if name
    )


def find_segments(
    rows: pd.DataFrame,
    model: ModelRecord,
    *,
    threshold: float | None = None,
    min_s: float = 5.0,
    gap_s: float = 5.0,
    top: int = 20,
) -> pd.DataFrame:
    """Find the segments of one model in a film.

    A segment starts where the probability reaches the threshold and goes on while it stays above the
    threshold less 0.1 (of a threshold below 0.2: above half of it). Segments at most `gap_s` apart are one;
    shorter ones than `min_s` are dropped. Where fewer than `top` are found, the highest places that stay
    below the threshold are listed too, cut out by the same rule with their own peak as the threshold.

    Parameters
    ----------
    rows : DataFrame
        The rows of the model, in time order.
    model : ModelRecord
    threshold : float, optional
        Probability; by default the model's.
    min_s, gap_s : float
        Seconds.
    top : int

    Returns
    -------
    DataFrame
        `SEGMENT_COLUMNS`; first those that reach the threshold, each part by mean probability. Empty for a
        model without probabilities.
    """
    wanted = model.threshold_p if threshold is None else threshold
    counted = is_counted(rows)
    if wanted is None or not counted.any():
        return pd.DataFrame(columns=SEGMENT_COLUMNS)
    p = np.where(counted, rows["p"].to_numpy(dtype=np.float64), -1.0)
    start, end = (rows[name].to_numpy(dtype=np.float64) for name in ("start_s", "end_s"))
    reaching = [run for run in _runs(p >= _floor(wanted)) if p[slice(*run)].max() >= wanted]
    reaching = [
        run for run in _bridge(reaching, start, end, gap_s) if end[run[1] - 1] - start[run[0]] >= min_s
    ]
    below = _peaks(np.where(p < wanted, p, -1.0), reaching, start, end, min_s=min_s, n=top - len(reaching))
    listed = [_row(rows, run, model) | {"reaches": 1} for run in reaching]
    listed += [_row(rows, run, model) | {"reaches": 0} for run in below]
    table = pd.DataFrame(listed, columns=SEGMENT_COLUMNS)
    table = table.sort_values(["reaches", "p", "start_s"], ascending=[False, False, True], ignore_index=True)
    return table.assign(rank=np.arange(1, len(table) + 1))


def _floor(threshold: float) -> float:
    return max(threshold - DROP, threshold / 2)


def _runs(marked: NDArray[np.bool_]) -> list[Run]:
    """Find runs of marked rows."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], marked, [False]]).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _bridge(
    runs: Sequence[Run], start: NDArray[np.float64], end: NDArray[np.float64], gap_s: float
) -> list[Run]:
    """Join runs at most `gap_s` apart."""
    joined: list[Run] = []
    for first, after in runs:
        if joined and start[first] - end[joined[-1][1] - 1] <= gap_s:
            joined[-1] = (joined[-1][0], after)
        else:
            joined.append((first, after))
    return joined


def _peaks(
    p: NDArray[np.float64],
    reaching: Sequence[Run],
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    *,
    min_s: float,
    n: int,
) -> list[Run]:
    """Find at most n of the highest peaks outside of `taken`."""
    left = p.copy()
    for run in reaching:
        left[slice(*run)] = -1.0
    peaks: list[Run] = []
    while len(peaks) < n:
        seed = int(np.argmax(left))
        if left[seed] <= 0:
            break
        floor = _floor(float(left[seed]))
        first, after = seed, seed + 1
        while first > 0 and left[first - 1] >= floor:
            first -= 1
        while after < len(left) and left[after] >= floor:
            after += 1
        left[first:after] = -1.0
        if end[after - 1] - start[first] >= min_s:
            peaks.append((first, after))
    return peaks


def _row(rows: pd.DataFrame, run: Run, model: ModelRecord) -> dict[str, object]:
    """Describe one segment."""
    part = rows.iloc[slice(*run)]
    part_counted = part[is_counted(part)]
    weights = durations(part_counted)
    peak = part_counted.iloc[int(np.argmax(part_counted["p"].to_numpy()))]
    means = {
        name: float(np.average(part_counted[name], weights=weights)) for name in ("p", "p_low", "p_high")
    }
    p_of: dict[str, float] = {}
    shares: dict[str, float] = {}
    seen: set[str] = set()
    for concept in model.concepts if model.by_concepts else ():
        p_of[concept.name] = float(np.average(part_counted[f"{concept.name}_p"], weights=weights))
        column = part_counted[f"{concept.name}_contribution"]
        shares[concept.name] = float(np.average(column, weights=weights))
        if p_of[concept.name] >= concept.threshold_p:
            seen.add(concept.name)
    heaviest = sorted(shares, key=lambda name: -abs(shares[name]))
    present = [name for name in heaviest if name in seen][:N_CONCEPTS]
    weighing = [name for name in heaviest[:N_CONCEPTS] if shares[name]]
    named = [name for name in heaviest if name in present or name in weighing]
    flags = dict.fromkeys(flag for cell in part["flags"] for flag in cell.split(";") if flag)
    return {
        "movie": part["movie"].iloc[0],
        "model": model.key,
        "start_s": float(part["start_s"].iloc[0]),
        "end_s": float(part["end_s"].iloc[-1]),
        **means,
        "peak_s": float((peak["start_s"] + peak["end_s"]) / 2),
        "present": ";".join(present),
        "concepts": ";".join(named),
        "concepts_p": ";".join(f"{p_of[name]:.4f}" for name in named),
        "contributions": ";".join(f"{shares[name]:.4f}" for name in named),
        "flags": ";".join(flags),
    }
