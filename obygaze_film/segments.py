"""Find the segments of a scored film: where a probability reaches its threshold, and by which concepts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_film.schema import ConceptRecord, ModelRecord, Run, distinct_flags, is_counted, runs

Columns = Mapping[str, NDArray[Any]]
"""Columns of a table by name, each an array [N]: many spans of a film are cut out of it quickly."""

SEGMENT_COLUMNS = (
    "movie", "model", "number", "rank", "start_s", "end_s", "p", "p_low", "p_high", "peak_s", "judged_s",
    "reaches", "present", "concepts", "concepts_p", "usual_p", "amounts", "contributions", "changes", "flags",
)  # fmt: skip
"""Columns of a table of segments.

number: the passage's one number, by time: 1, 2, ... of those that reach the threshold, w1, w2, ... of the
others; rank: by strength, those that reach first; judged_s: its seconds with a probability, fewer than its
length where it goes on over rows without one; reaches: 1 if it reaches the threshold, else 0; present: the
concepts that are seen.

concepts: those that are seen, all that are a reason (`Reason.moves`), and those that weigh most whether seen
or not. Names are separated by semicolons, the largest contribution first. The next columns have one value
for each of these: concepts_p: its probability; usual_p: its probability at its usual value, where it adds
nothing; amounts: whether there is more or less of it than usual, or mixed, as rows differ; contributions: its
contribution to the logit; changes: how much of the segment's probability is due to it, which is p minus what
p would be at its usual value, or, of a tree, at the values that training clips have. Values that rest on the
usual value alone are empty where there is none, as of a tree."""

COLUMNS_OF_REASONS = ("concepts", "concepts_p", "contributions", "usual_p", "amounts", "changes")
"""Columns of a table of segments that have a value for each concept."""

DROP = 0.1
"""How far below the threshold a probability may fall without ending a segment."""

MIN_S = 5.0
"""Seconds of the shortest segment."""

GAP_S = 5.0
"""Seconds of the longest gap in a segment."""

LISTED = 20
"""Places of a film that are listed, if it has as many: passages that reach the threshold, and weaker ones."""

N_CONCEPTS = 3
"""Concepts that a segment names because they weigh most, whether or not they are seen or a reason."""

DECIMALS = 4
"""Decimals of the numbers of concepts in files of segments (`with_rounded_lists`)."""

LISTS_OF_NUMBERS = ("concepts_p", "usual_p", "contributions", "changes")
"""Columns of segments that have a number for each concept."""

MIN_CHANGE = 0.01
"""Change of the probability from which on a concept is a reason."""

MIN_CONTRIBUTION = 0.05
"""Contribution to the logit from which on a concept is a reason, where its change of p is not known."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A concept of a segment: how much of it there is, and how far it raises or lowers the probability.

    Attributes
    ----------
    concept : str
    p, contribution : float
        Mean probability, and mean contribution to the logit (above 0 where it raises the probability).
    is_present : bool
        Whether it is seen: its probability reaches the concept's threshold.
    usual_p : float or None
        Its probability at its usual value, where the contribution is 0.
    amount : str
        ``more``, ``less`` or ``mixed`` than usual (`_amount`); empty where no usual value is known, and
        where not the amount but the time of the concept makes it a reason.
    change : float or None
        The segment's probability minus what it would be with the concept at its usual value, or, of a tree,
        at the values that training clips have. None if it is not known.
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
        """Whether the concept raises the probability, and so is a reason for the passage.

        If the change of the probability is not known, its contribution to the logit tells.
        """
        effect = self.contribution if self.change is None else self.change
        return effect > 0

    @property
    def goes_both_ways(self) -> bool:
        """Whether the concept raises the passage's probability by one mean and lowers it by another.

        The two means are those of its change of the probability and of its contribution to the logit. They
        contradict each other if the concept raises the probability in some rows and lowers it in others: it
        is then a reason neither for the passage nor against it.

        Of a tree, a concept has no usual value, and its contribution only says which way clips took through
        the tree: it contradicts nothing.
        """
        if self.change is None or self.usual_p is None:
            return False
        return _have_opposite_signs(round(self.change, DECIMALS), round(self.contribution, DECIMALS))

    @property
    def moves(self) -> bool:
        """Whether the concept changes the probability enough to be a reason."""
        return is_reason(self.contribution, self.change)


def is_reason(contribution: float, change: float | None) -> bool:
    """Whether a concept changes the probability of a span enough to be a reason, for it or against it.

    Both numbers are rounded to four decimals, as in tables: read from a table, they give the same result, and
    the last digits, which differ between machines, decide nothing.

    Parameters
    ----------
    contribution : float
        Mean of what the concept adds to the logit; it is used if `change` is not known.
    change : float, optional
        Mean of how much of the probability is due to the concept.
    """
    if change is None:
        return abs(round(contribution, DECIMALS)) >= MIN_CONTRIBUTION
    return abs(round(change, DECIMALS)) >= MIN_CHANGE


def reasons(segment: Mapping[Any, Any]) -> tuple[Reason, ...]:
    """Read the concepts of a row of `SEGMENT_COLUMNS`, the largest contribution first.

    Its cells are lists: `Body;Look` in the column `concepts` and `0.62;0.40` in `concepts_p` say that Body
    has the probability 0.62.
    """
    if not segment["concepts"]:
        return ()
    values_of = {name: str(segment[name]).split(";") for name in COLUMNS_OF_REASONS}
    present = str(segment["present"]).split(";")
    reasons_of_row = []
    for index, concept in enumerate(values_of["concepts"]):
        usual_p = values_of["usual_p"][index]
        change = values_of["changes"][index]
        reason = Reason(
            concept=concept,
            p=float(values_of["concepts_p"][index]),
            contribution=float(values_of["contributions"][index]),
            is_present=concept in present,
            usual_p=float(usual_p) if usual_p else None,
            amount=values_of["amounts"][index],
            change=float(change) if change else None,
        )
        reasons_of_row.append(reason)
    return tuple(reasons_of_row)


def find_segments(rows: pd.DataFrame, model: ModelRecord, top: int = LISTED) -> pd.DataFrame:
    """Find the segments of one model in a film: where its probability reaches the threshold and stays high.

    Segments that are at most 5 s apart are one; those shorter than 5 s are left out. If there are fewer than
    `top`, stretches around the highest peaks below the threshold are added. Segments that reach the threshold
    are numbered 1, 2, ... by time, the weaker ones w1, w2 and so on. A weaker one has the same number however
    many are listed (`_numbers_of_weaker`), as people cite segments by their numbers.

    Parameters
    ----------
    rows : DataFrame
        The rows of the model, in time order.
    model : ModelRecord
    top : int
        How many segments to list, if the film has as many; all that reach the threshold are listed.

    Returns
    -------
    DataFrame
        `SEGMENT_COLUMNS`; first those that reach the threshold, the highest mean probability first, then the
        others in the same order. Empty for a model without probabilities.
    """
    threshold = model.threshold_p
    has_p = is_counted(rows)
    if threshold is None or not has_p.any():
        return pd.DataFrame(columns=SEGMENT_COLUMNS)
    columns = columns_of(rows)
    p = np.where(has_p, columns["p"], np.nan)
    start_s = columns["start_s"]
    end_s = columns["end_s"]

    # Runs of rows that stay above a lower threshold and reach the threshold somewhere
    strong = _runs_reaching(p, threshold, start_s, end_s)

    # Runs around peaks below the threshold, in rows of no strong run
    may_be_in_weaker = p < threshold
    for first_row, row_after in strong:
        may_be_in_weaker[first_row:row_after] = False
    n_listed = max(top - len(strong), 0)
    n_usually_listed = max(LISTED - len(strong), 0)
    # A weaker segment is numbered by its place in time among all that are usually listed. So these are found
    # even if fewer are listed.
    n_weaker = max(n_listed, n_usually_listed)
    weaker = _runs_around_peaks(p, may_be_in_weaker, start_s, end_s, n=n_weaker)
    numbers_of_weaker = _numbers_of_weaker(weaker, n_usually_listed)

    segments = []
    for run, number in zip(strong, _numbers_by_time(strong), strict=True):
        segments.append(_row(columns, has_p, run, model) | {"reaches": 1, "number": str(number)})
    for run, number in zip(weaker[:n_listed], numbers_of_weaker[:n_listed], strict=True):
        segments.append(_row(columns, has_p, run, model) | {"reaches": 0, "number": f"w{number}"})
    table = pd.DataFrame(segments, columns=SEGMENT_COLUMNS)
    table = table.sort_values(["reaches", "p", "start_s"], ascending=[False, False, True], ignore_index=True)
    return table.assign(rank=np.arange(1, len(table) + 1))


def _numbers_of_weaker(weaker: Sequence[Run], n_usually_listed: int) -> list[int]:
    """Return the number of each segment below the threshold; the segments come with the highest peak first.

    Numbers are by time, so that a reader finds a segment in the film. But a segment keeps its number if a
    longer list is asked for: those that are usually listed are numbered first, then those that only a longer
    list has. Two usual ones at 60 s and 20 s, and further ones at 40 s and 10 s, have the numbers 2, 1, 4, 3.
    """
    numbers_of_usual = _numbers_by_time(weaker[:n_usually_listed])
    numbers_of_further = [n_usually_listed + number for number in _numbers_by_time(weaker[n_usually_listed:])]
    return [*numbers_of_usual, *numbers_of_further]


def n_reaching(rows: pd.DataFrame, model: ModelRecord, column: str = "p") -> int:
    """Count the segments that reach the threshold, by a model's probability or by an edge of its band.

    Parameters
    ----------
    rows : DataFrame
        The rows of the model, in time order.
    model : ModelRecord
    column : str
        Column of the rows to count by: ``p``, ``p_low`` or ``p_high``. The higher edge may give fewer
        segments, as it may join two into one.
    """
    has_p = is_counted(rows)
    if model.threshold_p is None or not has_p.any():
        return 0
    p = np.where(has_p, rows[column].to_numpy(dtype=np.float64), np.nan)
    start_s = rows["start_s"].to_numpy(dtype=np.float64)
    end_s = rows["end_s"].to_numpy(dtype=np.float64)
    return len(_runs_reaching(p, model.threshold_p, start_s, end_s))


def _runs_reaching(
    p: NDArray[np.float64], threshold: float, start_s: NDArray[np.float64], end_s: NDArray[np.float64]
) -> list[Run]:
    """Find the segments that reach a threshold somewhere, as runs of the rows [N].

    A segment goes on as long as the probability stays above a lower threshold: a single one would cut a
    passage in pieces wherever the probability dips. Those with short gaps between them are joined, and only
    those of `MIN_S` or more remain.

    `p` is NaN of rows without a probability: NaN reaches no threshold, so that these rows end a run.
    """
    may_go_on = p >= _lower_threshold(threshold)
    reaching = []
    for first, after in runs(may_go_on):
        if p[first:after].max() >= threshold:
            reaching.append((first, after))

    long_enough = []
    for first, after in _joined(reaching, start_s, end_s):
        length_s = end_s[after - 1] - start_s[first]
        if length_s >= MIN_S:
            long_enough.append((first, after))
    return long_enough


def _numbers_by_time(segments: Sequence[Run]) -> list[int]:
    """Return the number of each segment by time, from 1 on; the segments may be in any order."""
    number_of = {segment: number for number, segment in enumerate(sorted(segments), start=1)}
    return [number_of[segment] for segment in segments]


def _lower_threshold(threshold: float) -> float:
    """Return the probability down to which a segment goes on: .1 below the threshold, or half of it."""
    return max(threshold - DROP, threshold / 2)


def _joined(separate: Sequence[Run], start_s: NDArray[np.float64], end_s: NDArray[np.float64]) -> list[Run]:
    """Join runs that are at most `GAP_S` seconds apart.

    Parameters
    ----------
    separate : sequence of Run
        In time order; each is its first row, and the first row after it.
    start_s, end_s : ndarray, shape [N]
        Of the rows.
    """
    joined: list[Run] = []
    for first, after in separate:
        if joined:
            former_first, former_after = joined[-1]
            gap_s = start_s[first] - end_s[former_after - 1]
            if gap_s <= GAP_S:
                joined[-1] = (former_first, after)  # goes on to the end of this run
                continue
        joined.append((first, after))
    return joined


def _runs_around_peaks(
    p: NDArray[np.float64],
    may_be_in_run: NDArray[np.bool_],
    start_s: NDArray[np.float64],
    end_s: NDArray[np.float64],
    n: int,
) -> list[Run]:
    """Find at most n runs of rows around the highest peaks, the highest first.

    Parameters
    ----------
    p : ndarray, shape [N]
        Probabilities.
    may_be_in_run : ndarray of bool, shape [N]
        Rows that may be in a run: they have a probability and are in no other segment.
    start_s, end_s : ndarray, shape [N]
        Of the rows.
    n : int
    """
    is_left = may_be_in_run.copy()
    found: list[Run] = []
    while len(found) < n and is_left.any():
        peak = int(np.argmax(np.where(is_left, p, -1.0)))  # the row left of highest probability
        if p[peak] <= 0:
            break  # all rows left have probability 0: there is no peak among them

        # The run around it is not searched again, even if it is too short to be found.
        is_high_enough = p >= _lower_threshold(float(p[peak]))
        first, after = _run_around(peak, is_left & is_high_enough)
        is_left[first:after] = False
        if end_s[after - 1] - start_s[first] >= MIN_S:
            found.append((first, after))
    return found


def _run_around(row: int, is_marked: NDArray[np.bool_]) -> Run:
    """Return the run of neighbouring marked rows [N] that a row is in: its first, and the row after it."""
    first = row
    while first > 0 and is_marked[first - 1]:
        first -= 1
    after = row + 1
    while after < len(is_marked) and is_marked[after]:
        after += 1
    return first, after


def columns_of(rows: pd.DataFrame) -> Columns:
    """Return the columns of a table as arrays [N], by name: floats for numbers, objects for anything else."""
    columns: dict[str, NDArray[Any]] = {}
    for name in rows:
        dtype = np.float64 if pd.api.types.is_numeric_dtype(rows[name]) else object
        columns[str(name)] = rows[name].to_numpy(dtype=dtype)
    return columns


def _row(columns: Columns, has_p: NDArray[np.bool_], run: Run, model: ModelRecord) -> dict[str, object]:
    """Make the row of one segment, without its `number`, `rank` and `reaches`.

    Parameters
    ----------
    columns : mapping of str to ndarray, each of shape [N]
        Of the rows of a model.
    has_p : ndarray of bool, shape [N]
        Rows that are counted.
    run : Run
        First row of the segment, and the first after it.
    model : ModelRecord
    """
    first, after = run
    # The segment may go on over rows without a probability, which do not count in its means.
    counted_rows = first + np.flatnonzero(has_p[first:after])
    counted = {name: values[counted_rows] for name, values in columns.items()}
    seconds = counted["end_s"] - counted["start_s"]
    peak = int(np.argmax(counted["p"]))
    return {
        "movie": columns["movie"][first],
        "model": model.key,
        "start_s": float(columns["start_s"][first]),
        "end_s": float(columns["end_s"][after - 1]),
        "judged_s": float(seconds.sum()),
        "peak_s": float((counted["start_s"][peak] + counted["end_s"][peak]) / 2),
        **mean_columns(counted, seconds, model),
        "flags": ";".join(distinct_flags(columns["flags"][first:after])),
    }


def mean_columns(rows: Columns, weights: NDArray[np.float64], model: ModelRecord) -> dict[str, object]:
    """Average rows [N] with a probability, by weights [N], for a row of a table of segments.

    The row names three kinds of concepts: those that are seen, those that change the probability enough to be
    a reason, and the few (`N_CONCEPTS`) that contribute most to the logit, whether or not they are either.

    Returns
    -------
    dict
        Those of `SEGMENT_COLUMNS` that are averages: the probability with its band, and lists with a value
        for each concept that is named, joined by semicolons.
    """
    p_low, p_high = band_of_mean(rows, weights, model)
    named = []
    if model.by_concepts:
        by_contribution = _reasons_by_contribution(rows, weights, model)  # the largest first
        for place, reason in enumerate(by_contribution):
            is_among_largest = place < N_CONCEPTS and reason.contribution != 0
            is_named = reason.is_present or reason.moves or is_among_largest
            if is_named:
                named.append(reason)
    return {
        "p": _mean(rows, "p", weights),
        "p_low": p_low,
        "p_high": p_high,
        "present": ";".join(reason.concept for reason in named if reason.is_present),
        "concepts": ";".join(reason.concept for reason in named),
        "concepts_p": ";".join(_cell(reason.p) for reason in named),
        "usual_p": ";".join(_cell(reason.usual_p) for reason in named),
        "amounts": ";".join(reason.amount for reason in named),
        "contributions": ";".join(_cell(reason.contribution) for reason in named),
        "changes": ";".join(_cell(reason.change) for reason in named),
    }


def _mean(rows: Columns, column: str, weights: NDArray[np.float64]) -> float:
    """Average a column of rows by weights [N]."""
    return float(np.average(rows[column], weights=weights))


def _reasons_by_contribution(rows: Columns, weights: NDArray[np.float64], model: ModelRecord) -> list[Reason]:
    """Average each concept of a model over rows; those that contribute most to the logit come first.

    Parameters
    ----------
    rows : mapping of str to ndarray, each of shape [N]
        Columns of the model's rows.
    weights : ndarray, shape [N]
        Of the rows in the averages, such as their seconds.
    model : ModelRecord
    """
    changes = _mean_changes(rows, weights, model)
    reasons_of_rows = []
    for concept in model.concepts:
        p = _mean(rows, f"{concept.name}_p", weights)
        change = changes.get(concept.name)
        amount = "" if concept.usual is None else _amount(rows, weights, concept, change)
        reason = Reason(
            concept=concept.name,
            p=p,
            contribution=_mean(rows, f"{concept.name}_contribution", weights),
            is_present=p >= concept.threshold_p,
            usual_p=concept.usual_p,
            amount=amount,
            change=change,
        )
        reasons_of_rows.append(reason)
    return sorted(reasons_of_rows, key=lambda reason: -abs(reason.contribution))


def band_of_mean(rows: Columns, weights: NDArray[np.float64], model: ModelRecord) -> tuple[float, float]:
    """Compute the low and the high end of the 80 % band of a mean probability.

    The mean is that of rows [N] with a probability, by weights [N]. Without a calibration, the ends are the
    means of the ends of the rows' own bands.
    """
    p = _mean(rows, "p", weights)
    if model.calibration is None:
        return _mean(rows, "p_low", weights), _mean(rows, "p_high", weights)
    from obygaze_models.prediction import mean_and_band  # noqa: PLC0415 - slow, and films are opened without it

    _, low, high = mean_and_band(np.array(model.calibration.draws), rows["logit"], weights)
    return min(low, p), max(high, p)  # so that the band contains the mean probability itself


def _amount(rows: Columns, weights: NDArray[np.float64], concept: ConceptRecord, change: float | None) -> str:
    """Say in a word how much of a concept a passage has: ``more`` than usual, ``less``, ``mixed`` or nothing.

    It is "more" if the mean of the concept's values is above its usual value, else "less". Two cases are
    neither:

    - The amount does not explain the contribution: alone, it would move the logit the other way. So it may be
      with a concept in time, as when it occurs contributes too. The word is then empty.
    - Some rows have more than usual and others less, and a second mean contradicts the first: the mean of the
      concept's probabilities, or the mean change of the probability. The word is then "mixed".

    Parameters
    ----------
    rows : mapping of str to ndarray, each of shape [N]
        Columns of the passage's rows.
    weights : ndarray, shape [N]
        Of the rows in all means.
    concept : ConceptRecord
        A concept with a usual value.
    change : float, optional
        How much of the passage's mean probability is due to the concept.
    """
    values = rows[f"{concept.name}_value"]
    mean_value = np.average(values, weights=weights)
    amount = "more" if mean_value > concept.usual else "less"
    contribution = _mean(rows, f"{concept.name}_contribution", weights)
    if concept.weight is not None:
        contribution_of_amount = concept.weight * float(mean_value - concept.usual)
        does_amount_explain_contribution = contribution_of_amount * contribution > 0  # of the same sign
        if not does_amount_explain_contribution:
            return ""

    counted_values = values[weights > 0]
    are_rows_on_both_sides = counted_values.min() < concept.usual < counted_values.max()
    if not are_rows_on_both_sides:
        return amount

    # Does the mean probability contradict the mean value? If it equals the usual one, it does not.
    if concept.usual_p is not None:
        p = _mean(rows, f"{concept.name}_p", weights)
        says_less = p < concept.usual_p
        says_more = p > concept.usual_p
        contradicts_amount = says_less if amount == "more" else says_more
        if contradicts_amount:
            return "mixed"
    # Does the concept raise the mean probability, but lower the mean logit (or the other way round)?
    if change is not None and _have_opposite_signs(change, contribution):
        return "mixed"
    return amount


def _have_opposite_signs(number: float, other: float) -> bool:
    """Whether one number is above 0 and the other below."""
    return (number > 0 > other) or (number < 0 < other)


def _cell(value: float | None) -> str:
    """Write a number for a table, not rounded: whoever prints it rounds it once; empty for None."""
    return "" if value is None else repr(float(value))


def with_rounded_lists(segments: pd.DataFrame) -> pd.DataFrame:
    """Return a table of segments as it is written to files, with the numbers of concepts rounded.

    A cell has a list of numbers, one for each concept, joined by semicolons.
    """
    columns: dict[str, list[str]] = {}
    for name in LISTS_OF_NUMBERS:
        columns[name] = [_rounded_list(str(cell)) for cell in segments[name]]
    return segments.assign(**columns)


def _rounded_list(cell: str) -> str:
    """Round the numbers of a list to four decimals; what is empty stays so."""
    return ";".join(f"{float(text):.{DECIMALS}f}" if text else "" for text in cell.split(";"))


def _mean_changes(rows: Columns, weights: NDArray[np.float64], model: ModelRecord) -> dict[str, float]:
    """Return concept -> how much of the mean probability of rows is due to it (`changes_of_rows`).

    The mean is over rows [N], by weights [N].
    """
    changes = changes_of_rows(rows, model)
    return {name: float(np.average(change, weights=weights)) for name, change in changes.items()}


def changes_of_rows(rows: Columns, model: ModelRecord) -> dict[str, NDArray[np.float64]]:
    """Return concept -> how much of the probability of each row [N] is due to it.

    It is the row's probability minus what it would be with the concept at its usual value. There the concept
    adds 0 to the logit, so that the logit would be the row's minus the concept's contribution.

    For a model without usual values, such as a tree, the changes were computed when the film was scored, and
    are columns of its rows. Films that earlier versions scored lack these columns: such concepts are left
    out.
    """
    if model.has_changes:
        return {concept.name: rows[f"{concept.name}_change"] for concept in model.concepts}
    names = [concept.name for concept in model.concepts if concept.usual is not None]
    has_usual_values = len(names) > 0
    if not has_usual_values or not model.by_concepts or model.calibration is None:
        return {}  # they cannot be computed
    from obygaze_models.prediction import mean_probability  # noqa: PLC0415 - slow, and films are opened without it

    logits = rows["logit"]
    contributions = np.stack([rows[f"{name}_contribution"] for name in names])  # [concepts, N]
    logits_at_usual = logits - contributions

    # The calibration turns logits into probabilities. It takes a single list: the rows' logits, and behind
    # them those of each concept at its usual value.
    all_logits = np.concatenate([logits[None], logits_at_usual])  # [1 + concepts, N]
    draws = np.array(model.calibration.draws)
    all_p = mean_probability(draws, all_logits.ravel()).reshape(all_logits.shape)
    p = all_p[0]
    p_at_usual = all_p[1:]
    return dict(zip(names, p - p_at_usual, strict=True))
