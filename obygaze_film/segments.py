"""Find the segments of a scored film: where a probability reaches its threshold, and by which concepts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_film.schema import ConceptRecord, ModelRecord, Run, durations, flags_in, is_counted, runs
from obygaze_models import prediction

SEGMENT_COLUMNS = (
    "movie", "model", "number", "rank", "start_s", "end_s", "p", "p_low", "p_high", "peak_s", "judged_s",
    "reaches", "present", "concepts", "concepts_p", "usual_p", "amounts", "contributions", "changes", "flags",
)  # fmt: skip
"""number: the passage's one number, by time: 1, 2, ... of those that reach the threshold, w1, w2, ... of the
others; rank: by strength, those that reach first; judged_s: its seconds with a probability, less than its
length where it goes on over others; present: the concepts that are seen; concepts: these, all that are a
reason (`Reason.moves`), and those that weigh most whether seen or not. Of each of these: its probability; the
one at its usual value, where it adds nothing; whether there is more, less or, in some rows more and in others
less, mixed amounts of it than usual; its
contribution to the logit; and how much of the segment's probability is due to it: p less what p were at its
usual value. Names and numbers are separated by semicolons, heaviest first; empty without a usual value, as of
a tree."""

DROP = 0.1
"""Difference between the probabilities at which a segment starts and ends."""

MIN_S = 5.0
GAP_S = 5.0
"""Seconds of the shortest segment, and of the longest gap in one."""

LISTED = 20
"""Places of a film that are listed, if it has as many: passages that reach the threshold, and weaker ones."""

N_CONCEPTS = 3
"""Concepts of those that weigh most, whether seen or not, and whatever they change."""


LEAST_CHANGE = 0.01
"""Change of the probability from which on a concept is a reason."""

LEAST_CONTRIBUTION = 0.05
"""Contribution to the logit from which on a concept without a usual value is a reason."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A concept of a segment, and its two signs: more or less than usual, for or against.

    Attributes
    ----------
    concept : str
    p, contribution : float
        Mean probability, and mean contribution to the logit.
    is_present : bool
        Whether it is seen: its probability reaches the concept's threshold.
    usual_p : float or None
        Its probability at its usual value, where the contribution is 0.
    amount : str
        ``more``, ``less`` or ``mixed`` than usual (`_amount`); empty where no usual value is known.
    change : float or None
        Of the segment's probability, what is due to it: less the probability with the concept at its usual
        value.
    """

    concept: str
    p: float
    contribution: float
    is_present: bool
    usual_p: float | None = None
    amount: str = ""
    change: float | None = None

    @property
    def is_for(self) -> bool:
        """Whether it raises the probability."""
        return (self.contribution if self.change is None else self.change) > 0

    @property
    def parts(self) -> bool:
        """Whether it raises the probability in some rows and lowers it in others.

        Then its mean change and its mean contribution may have two signs, and it is on neither side.
        """
        return self.change is not None and self.change * self.contribution < 0

    @property
    def moves(self) -> bool:
        """Whether it moves the probability enough to be a reason."""
        if self.change is None:
            return abs(self.contribution) >= LEAST_CONTRIBUTION
        return abs(self.change) >= LEAST_CHANGE


def reasons(segment: Mapping[Any, Any]) -> tuple[Reason, ...]:
    """Read the concepts of a row of `SEGMENT_COLUMNS`, the heaviest first."""
    if not segment["concepts"]:
        return ()
    columns = ("concepts", "concepts_p", "contributions", "usual_p", "amounts", "changes")
    cells = [str(segment[name]).split(";") for name in columns]
    present = str(segment["present"]).split(";")
    read = []
    for name, p, contribution, usual_p, amount, change in zip(*cells, strict=True):
        reason = Reason(
            name,
            float(p),
            float(contribution),
            name in present,
            usual_p=float(usual_p) if usual_p else None,
            amount=amount,
            change=float(change) if change else None,
        )
        read.append(reason)
    return tuple(read)


def find_segments(rows: pd.DataFrame, model: ModelRecord, top: int = LISTED) -> pd.DataFrame:
    """Find the segments of one model in a film.

    A segment starts where the probability reaches the model's threshold and goes on while it stays above the
    threshold less 0.1 (of a threshold below 0.2: above half of it). Segments at most 5 s apart are one;
    shorter ones than 5 s are dropped. Where fewer than `top` are found, the highest places that stay below
    the threshold are listed too, cut out by the same rule with their own peak as the threshold.

    A place has one number, whatever `top` is: by time among those that reach the threshold, and among the
    others of the `LISTED` first ones; further ones follow.

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
    threshold = model.threshold_p
    counted = is_counted(rows)
    if threshold is None or not counted.any():
        return pd.DataFrame(columns=SEGMENT_COLUMNS)
    p = np.where(counted, rows["p"].to_numpy(dtype=np.float64), -1.0)
    start = rows["start_s"].to_numpy(dtype=np.float64)
    end = rows["end_s"].to_numpy(dtype=np.float64)
    reaching = _reaching(p, threshold, start, end)
    n_below = max(top, LISTED) - len(reaching)
    below = _peaks(np.where(p < threshold, p, -1.0), reaching, start, end, n_below)
    # Numbered by time are those that are always found, and then, by time too, those that a larger `top` adds.
    n_always = max(LISTED - len(reaching), 0)
    numbers = _by_time(below[:n_always]) + [n_always + n for n in _by_time(below[n_always:])]
    listed = [
        _row(rows, run, model) | {"reaches": 1, "number": str(number)}
        for run, number in zip(reaching, _by_time(reaching), strict=True)
    ]
    shown = max(top - len(reaching), 0)
    listed += [
        _row(rows, run, model) | {"reaches": 0, "number": f"w{number}"}
        for run, number in zip(below[:shown], numbers[:shown], strict=True)
    ]
    table = pd.DataFrame(listed, columns=SEGMENT_COLUMNS)
    table = table.sort_values(["reaches", "p", "start_s"], ascending=[False, False, True], ignore_index=True)
    return table.assign(rank=np.arange(1, len(table) + 1))


def n_reaching(rows: pd.DataFrame, model: ModelRecord, column: str = "p") -> int:
    """Count the passages that a curve gives by the rule of `find_segments`.

    Parameters
    ----------
    rows : DataFrame
        The rows of the model, in time order.
    model : ModelRecord
    column : str
        The curve: ``p``, or an edge of its band, ``p_low`` or ``p_high``. A higher curve may join
        passages, and so have fewer.
    """
    counted = is_counted(rows)
    if model.threshold_p is None or not counted.any():
        return 0
    curve = np.where(counted, rows[column].to_numpy(dtype=np.float64), -1.0)
    start = rows["start_s"].to_numpy(dtype=np.float64)
    end = rows["end_s"].to_numpy(dtype=np.float64)
    return len(_reaching(curve, model.threshold_p, start, end))


def _reaching(
    p: NDArray[np.float64], threshold: float, start: NDArray[np.float64], end: NDArray[np.float64]
) -> list[Run]:
    """Find the passages of a curve [N] that reach a threshold."""
    reaching = [run for run in runs(p >= _floor(threshold)) if p[slice(*run)].max() >= threshold]
    return [run for run in _bridge(reaching, start, end) if end[run[1] - 1] - start[run[0]] >= MIN_S]


def _by_time(places: Sequence[Run]) -> list[int]:
    """Give places the numbers from 1 on in the order of time."""
    in_order = sorted(places)
    return [in_order.index(place) + 1 for place in places]


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
    p_left = p.copy()
    for run in reaching:
        p_left[slice(*run)] = -1.0
    peaks: list[Run] = []
    while len(peaks) < n:
        seed = int(np.argmax(p_left))
        if p_left[seed] <= 0:
            break
        above = runs(p_left >= _floor(float(p_left[seed])))
        first, after = next(run for run in above if run[0] <= seed < run[1])
        p_left[first:after] = -1.0
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
        "judged_s": float(durations(reliable).sum()),
        "peak_s": float((peak["start_s"] + peak["end_s"]) / 2),
        **means_of(reliable, durations(reliable), model),
        "flags": ";".join(flags_in(part)),
    }


def means_of(rows: pd.DataFrame, weights: NDArray[np.float64], model: ModelRecord) -> dict[str, object]:
    """Average rows that are counted by weights [N]: probability, band, and the concepts that are to be named.

    Those are all that are seen, all that are a reason, and those that weigh most.
    """

    def mean(column: str) -> float:
        return float(np.average(rows[column], weights=weights))

    every = []
    changes = _changes(rows, weights, model)
    for concept in model.concepts if model.by_concepts else ():
        p = mean(f"{concept.name}_p")
        amount = ""
        if concept.usual is not None:
            amount = _amount(rows, weights, concept, changes.get(concept.name))
        reason = Reason(
            concept.name,
            p,
            mean(f"{concept.name}_contribution"),
            p >= concept.threshold_p,
            usual_p=concept.usual_p,
            amount=amount,
            change=changes.get(concept.name),
        )
        every.append(reason)
    every.sort(key=lambda reason: -abs(reason.contribution))
    present = [reason for reason in every if reason.is_present]
    weighing = [reason for reason in every[:N_CONCEPTS] if reason.contribution]
    named = [reason for reason in every if reason.is_present or reason.moves or reason in weighing]
    low, high = band_of_mean(rows, weights, model)
    return {
        "p": mean("p"),
        "p_low": low,
        "p_high": high,
        "present": ";".join(reason.concept for reason in present),
        "concepts": ";".join(reason.concept for reason in named),
        "concepts_p": ";".join(f"{reason.p:.4f}" for reason in named),
        "usual_p": ";".join(_cell(reason.usual_p) for reason in named),
        "amounts": ";".join(reason.amount for reason in named),
        "contributions": ";".join(f"{reason.contribution:.4f}" for reason in named),
        "changes": ";".join(_cell(reason.change) for reason in named),
    }


def band_of_mean(rows: pd.DataFrame, weights: NDArray[np.float64], model: ModelRecord) -> tuple[float, float]:
    """Compute the ends of the 80 % band of the mean probability of rows that are counted, by weights [N].

    Without a calibration, the means of the rows' own bands.
    """
    p = float(np.average(rows["p"], weights=weights))
    if model.calibration is None:
        low, high = (float(np.average(rows[name], weights=weights)) for name in ("p_low", "p_high"))
        return low, high
    logits = rows["logit"].to_numpy(dtype=np.float64)
    _, low, high = prediction.mean_and_band(np.array(model.calibration.draws), logits, weights)
    return min(low, p), max(high, p)


def _amount(
    rows: pd.DataFrame, weights: NDArray[np.float64], concept: ConceptRecord, change: float | None
) -> str:
    """Tell whether rows [N] have more or less of a concept than usual, by weights [N].

    The mean of its values decides. Where values lie on both sides of the usual one, the mean of its
    probabilities, or what it changes, may say the opposite: then it is ``mixed``.
    """
    values = rows[f"{concept.name}_value"].to_numpy(dtype=np.float64)
    is_more = bool(np.average(values, weights=weights) > concept.usual)
    counted = values[weights > 0]
    if counted.min() < concept.usual < counted.max():
        p = float(np.average(rows[f"{concept.name}_p"], weights=weights))
        contribution = float(np.average(rows[f"{concept.name}_contribution"], weights=weights))
        if concept.usual_p is not None and p != concept.usual_p and (p > concept.usual_p) != is_more:
            return "mixed"
        if change and contribution and (change > 0) != (contribution > 0):
            return "mixed"
    return "more" if is_more else "less"


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _changes(rows: pd.DataFrame, weights: NDArray[np.float64], model: ModelRecord) -> dict[str, float]:
    """Average how much of the probability of rows [N] is due to each concept, by weights [N]."""
    changes = changes_of_rows(rows, model)
    return {name: float(np.average(change, weights=weights)) for name, change in changes.items()}


def changes_of_rows(rows: pd.DataFrame, model: ModelRecord) -> dict[str, NDArray[np.float64]]:
    """Compute how much of the probability of each row [N] is due to each concept.

    It is the probability less that with the concept at its usual value. Concepts without a usual value are
    left out.
    """
    names = [concept.name for concept in model.concepts if concept.usual is not None]
    if not (names and model.by_concepts and model.calibration):
        return {}
    logits = rows["logit"].to_numpy(dtype=np.float64)
    added = rows[[f"{name}_contribution" for name in names]].to_numpy(dtype=np.float64).T
    every = np.concatenate([logits[None], logits - added])
    p = prediction.mean_probability(np.array(model.calibration.draws), every.ravel()).reshape(every.shape)
    return dict(zip(names, p[0] - p[1:], strict=True))
