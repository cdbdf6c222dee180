"""Find the segments of a scored film: where a probability reaches its threshold, and by which concepts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_film.schema import ModelRecord, Run, durations, flags_in, is_counted, runs

SEGMENT_COLUMNS = (
    "movie", "model", "rank", "start_s", "end_s", "p", "p_low", "p_high", "peak_s", "reaches", "present",
    "concepts", "concepts_p", "contributions", "flags",
)  # fmt: skip
"""present: the concepts that are seen and weigh most; concepts: these, and those that weigh most whether seen
or not, with the probability of each and its contribution to the logit. Names and numbers are separated by
semicolons, the heaviest first."""

DROP = 0.1
"""Difference between the probabilities at which a segment starts and ends."""

MIN_S, GAP_S = 5.0, 5.0
"""Seconds of the shortest segment, and of the longest gap in one."""

N_CONCEPTS = 3
"""Most concepts in the column `present`, and number of those that weigh most."""


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


def find_segments(rows: pd.DataFrame, model: ModelRecord, top: int = 20) -> pd.DataFrame:
    """Find the segments of one model in a film.

    A segment starts where the probability reaches the model's threshold and goes on while it stays above the
    threshold less 0.1 (of a threshold below 0.2: above half of it). Segments at most 5 s apart are one;
    shorter ones than 5 s are dropped. Where fewer than `top` are found, the highest places that stay below
    the threshold are listed too, cut out by the same rule with their own peak as the threshold.

    Parameters
    ----------
    rows : DataFrame
        The rows of the model, in time order.
    model : ModelRecord
    top : int

    Returns
    -------
    DataFrame
        `SEGMENT_COLUMNS`; first those that reach the threshold, each part by mean probability. Empty for a
        model without probabilities.
    """
    threshold, counted = model.threshold_p, is_counted(rows)
    if threshold is None or not counted.any():
        return pd.DataFrame(columns=SEGMENT_COLUMNS)
    p = np.where(counted, rows["p"].to_numpy(dtype=np.float64), -1.0)
    start, end = (rows[name].to_numpy(dtype=np.float64) for name in ("start_s", "end_s"))
    reaching = [run for run in runs(p >= _floor(threshold)) if p[slice(*run)].max() >= threshold]
    reaching = [run for run in _bridge(reaching, start, end) if end[run[1] - 1] - start[run[0]] >= MIN_S]
    below = _peaks(np.where(p < threshold, p, -1.0), reaching, start, end, top - len(reaching))
    listed = [_row(rows, run, model) | {"reaches": 1} for run in reaching]
    listed += [_row(rows, run, model) | {"reaches": 0} for run in below]
    table = pd.DataFrame(listed, columns=SEGMENT_COLUMNS)
    table = table.sort_values(["reaches", "p", "start_s"], ascending=[False, False, True], ignore_index=True)
    return table.assign(rank=np.arange(1, len(table) + 1))


def _floor(threshold: float) -> float:
    return max(threshold - DROP, threshold / 2)


def _bridge(separate: Sequence[Run], start: NDArray[np.float64], end: NDArray[np.float64]) -> list[Run]:
    """Join runs that are near each other."""
    bridged: list[Run] = []
    for first, after in separate:
        if bridged and start[first] - end[bridged[-1][1] - 1] <= GAP_S:
            bridged[-1] = (bridged[-1][0], after)
        else:
            bridged.append((first, after))
    return bridged


def _peaks(
    p: NDArray[np.float64],
    reaching: Sequence[Run],
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    n: int,
) -> list[Run]:
    """Find at most n of the highest peaks outside of the segments that reach the threshold."""
    left = p.copy()
    for run in reaching:
        left[slice(*run)] = -1.0
    peaks: list[Run] = []
    while len(peaks) < n:
        seed = int(np.argmax(left))
        if left[seed] <= 0:
            break
        above = runs(left >= _floor(float(left[seed])))
        first, after = next(run for run in above if run[0] <= seed < run[1])
        left[first:after] = -1.0
        if end[after - 1] - start[first] >= MIN_S:
            peaks.append((first, after))
    return peaks


def _row(rows: pd.DataFrame, run: Run, model: ModelRecord) -> dict[str, object]:
    """Describe one segment."""
    part = rows.iloc[slice(*run)]
    reliable = part[is_counted(part)]
    peak = reliable.iloc[int(np.argmax(reliable["p"].to_numpy()))]
    return {
        "movie": part["movie"].iloc[0],
        "model": model.key,
        "start_s": float(part["start_s"].iloc[0]),
        "end_s": float(part["end_s"].iloc[-1]),
        "peak_s": float((peak["start_s"] + peak["end_s"]) / 2),
        **means_of(reliable, durations(reliable), model),
        "flags": ";".join(flags_in(part)),
    }


def means_of(rows: pd.DataFrame, weights: NDArray[np.float64], model: ModelRecord) -> dict[str, object]:
    """Average rows that are counted by weights [N]: probability, band, and the concepts that weigh most."""

    def mean(column: str) -> float:
        return float(np.average(rows[column], weights=weights))

    every = []
    for concept in model.concepts if model.by_concepts else ():
        p = mean(f"{concept.name}_p")
        every.append(Reason(concept.name, p, mean(f"{concept.name}_contribution"), p >= concept.threshold_p))
    every.sort(key=lambda reason: -abs(reason.contribution))
    present = [reason for reason in every if reason.is_present][:N_CONCEPTS]
    weighing = [reason for reason in every[:N_CONCEPTS] if reason.contribution]
    named = [reason for reason in every if reason in present or reason in weighing]
    return {
        **{name: mean(name) for name in ("p", "p_low", "p_high")},
        "present": ";".join(reason.concept for reason in present),
        "concepts": ";".join(reason.concept for reason in named),
        "concepts_p": ";".join(f"{reason.p:.4f}" for reason in named),
        "contributions": ";".join(f"{reason.contribution:.4f}" for reason in named),
    }
