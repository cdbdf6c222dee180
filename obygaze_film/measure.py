"""Compare scored films with annotations, other annotators and uninformative baselines."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from obygaze_features.manifest import Manifest
from obygaze_film.agreement import (
    COLLARS_S,
    THRESHOLDS,
    Spans,
    boundary_f1,
    kappa,
    second_f1,
    segment_ap,
    segment_f1,
    top_precision,
)
from obygaze_film.errors import FilmError
from obygaze_film.marks import Marks, annotated, ends, human_marks, marks_of
from obygaze_film.timeline import Timeline
from obygaze_models.evaluation import auc, average_precision, t_interval

N_SHIFTS = 200
N_DRAWS = 2000
TOP = 10
ALL, NONE, PRIOR, SHIFTED = "all", "none", "movie_prior", "shifted"
"""Baselines: every second, no second, the other films' share, the model's own timeline shifted."""


@dataclass(frozen=True, eq=False)
class Measured:
    """The agreement of timelines with annotators.

    Attributes
    ----------
    by_film : DataFrame
        Columns truth (annotator), who (model, ``human: NAME`` or a rule), movie, metric, value. Those of
        ``shifted`` are means over the shifts.
    summary : DataFrame
        Columns truth, who, metric, value (mean over films; Spearman's correlation over films for
        ``rate_rank``), low, high (95 %), n_films, and p: how often the model moved in time does at least as
        well (Phipson and Smyth 2010), NaN for others.
    record : dict
        Films, annotators, levels, and what was left out.
    """

    by_film: pd.DataFrame
    summary: pd.DataFrame
    record: Mapping[str, object] = field(default_factory=dict)


def evaluate_films(
    films: Sequence[Timeline],
    truth: Manifest,
    *,
    key: str | None = None,
    collars: Sequence[float] = COLLARS_S,
    n_shifts: int = N_SHIFTS,
    seed: int = 0,
) -> Measured:
    """Measure a model's timelines against annotations.

    Each annotator is the reference once; the others are measured like the model. A clip counts if its level
    is one that the model calls positive; every other second of a film that the annotator watched is negative.

    Parameters
    ----------
    films : sequence of Timeline
    truth : Manifest
        Clips with spans. Without annotator names they count as one annotator's.
    key : str, optional
        Model; by default the first that decides.
    collars : sequence of float
        Seconds.
    n_shifts : int
        Circular shifts of each film's timeline.
    seed : int
        Of the shifts and of the bootstrap.

    Raises
    ------
    FilmError
        No film is annotated, the codebook lacks the positive levels, or a clip has no span.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_film
    >>> films = obygaze_film.score_films(of.open_store("stores/more"), ["kept/linear.model"])
    >>> found = obygaze_film.evaluate_films(films, of.read_manifest("more.csv"), n_shifts=20)
    >>> f1 = found.summary.set_index(["who", "metric"])["value"]
    >>> bool(f1["linear", "second_f1"] > f1["shifted", "second_f1"])
    True
    """
    positive = set(films[0].model(key).positive)
    people = annotated(truth, positive)
    own = [film for film in films if film.movie in people]
    if not own:
        raise FilmError(
            f"no scored film is annotated: the films are {', '.join(film.movie for film in films)}; "
            f"the manifest has {', '.join(list(people)[:5])}"
        )
    lengths = {
        film.movie: int(
            np.ceil(max(film.record.duration_s, *(ends(spans) for spans in people[film.movie].values())))
        )
        for film in own
    }
    machine = {film.movie: marks_of(film, key, lengths[film.movie]) for film in own}
    humans = {
        movie: {name: human_marks(spans, lengths[movie]) for name, spans in people[movie].items()}
        for movie in machine
    }
    name = films[0].model(key).key
    record = {
        "model": name,
        "positive": sorted(positive),
        "films": list(machine),
        "left_out": [film.movie for film in films if film.movie not in machine],
        "without_rate": [movie for movie, marks in machine.items() if np.isnan(marks.rate)],
        "collars": list(collars),
        "n_shifts": n_shifts,
        "seed": seed,
    }
    return compare_marks(
        machine, humans, name=name, collars=collars, n_shifts=n_shifts, seed=seed, record=record
    )


def compare_marks(
    machine: Mapping[str, Marks],
    humans: Mapping[str, Mapping[str, Marks]],
    *,
    name: str,
    collars: Sequence[float] = COLLARS_S,
    n_shifts: int = N_SHIFTS,
    seed: int = 0,
    record: Mapping[str, object] | None = None,
) -> Measured:
    """Measure marks against annotators, by film; parameters as in `evaluate_films`."""
    rows: list[dict[str, object]] = []
    nulls: dict[tuple[str, str], list[NDArray[np.float64]]] = {}
    for truth in sorted({name for people in humans.values() for name in people}):
        watched = [movie for movie in machine if truth in humans[movie]]
        shares = np.array([humans[movie][truth].rate for movie in watched])
        for place, movie in enumerate(watched):
            reference = humans[movie][truth]
            n = len(reference.seconds)
            others = np.delete(shares, place)
            every = {
                name: machine[movie],
                **{f"human: {one}": marks for one, marks in humans[movie].items() if one != truth},
                ALL: Marks(np.ones(n, np.bool_), np.array([[0.0, n]]), 1.0, np.ones(n)),
                NONE: Marks(np.zeros(n, np.bool_), np.empty((0, 2)), 0.0, np.zeros(n)),
                PRIOR: Marks(
                    np.zeros(n, np.bool_), np.empty((0, 2)), float(others.mean()) if len(others) else np.nan
                ),
            }
            references = [marks.segments for marks in humans[movie].values()]
            about = {"truth": truth, "movie": movie}
            for who, marks in every.items():
                found = agreement(reference, marks, references, collars)
                if who == PRIOR:
                    found = {"rate": found["rate"], "rate_error": found["rate_error"]}
                rows += [
                    {**about, "who": who, "metric": metric, "value": value} for metric, value in found.items()
                ]
            rows.append({**about, "who": f"human: {truth}", "metric": "rate", "value": reference.rate})
            shifted = _shifts(
                reference, machine[movie], collars, n_shifts, np.random.default_rng([seed, place])
            )
            for metric, values in shifted.items():
                nulls.setdefault((truth, metric), []).append(values)
                rows.append({**about, "who": SHIFTED, "metric": metric, "value": float(np.mean(values))})
    by_film = pd.DataFrame(rows, columns=["truth", "who", "movie", "metric", "value"])
    return Measured(by_film, _summary(by_film, nulls, name, seed), record or {})


def agreement(
    reference: Marks, found: Marks, references: Sequence[Spans], collars: Sequence[float]
) -> dict[str, float]:
    """Compute every metric of one film."""
    metrics = _of_seconds(reference, found) | {"kappa": kappa(reference.seconds, found.seconds)}
    metrics |= _of_segments(reference, found, collars)
    if found.listed is not None and found.listed_scores is not None:
        aps = [segment_ap(reference.segments, found.listed, found.listed_scores, t) for t in THRESHOLDS]
        metrics["segment_map"] = float(np.mean(aps))
        metrics[f"top{TOP}_precision"] = top_precision(references, found.listed, TOP)
    metrics["rate"] = found.rate
    metrics["rate_error"] = abs(found.rate - reference.rate)
    return metrics


def _of_seconds(reference: Marks, found: Marks) -> dict[str, float]:
    scores = found.seconds.astype(np.float64) if found.scores is None else found.scores
    said = ~np.isnan(scores)
    y = reference.seconds[said].astype(np.int64)
    return {
        "second_ap": average_precision(y, scores[said]),
        "second_auc": auc(y, scores[said]),
        "second_f1": second_f1(reference.seconds, found.seconds),
    }


def _of_segments(reference: Marks, found: Marks, collars: Sequence[float]) -> dict[str, float]:
    return {
        **{f"segment_f1_{t:g}": segment_f1(reference.segments, found.segments, t) for t in THRESHOLDS},
        **{f"boundary_f1_{c:g}s": boundary_f1(reference.segments, found.segments, c) for c in collars},
    }


def _shifts(
    reference: Marks, found: Marks, collars: Sequence[float], n: int, rng: np.random.Generator
) -> dict[str, NDArray[np.float64]]:
    """Measure `n` random circular shifts of a timeline, which keep its autocorrelation."""
    size = len(found.seconds)
    values: dict[str, list[float]] = {}
    for by in rng.integers(1, size, size=n) if size > 1 else ():
        scores = None if found.scores is None else np.roll(found.scores, by)
        moved = Marks(np.roll(found.seconds, by), _moved(found.segments, float(by), size), found.rate, scores)
        for metric, value in (
            _of_seconds(reference, moved) | _of_segments(reference, moved, collars)
        ).items():
            values.setdefault(metric, []).append(value)
    return {metric: np.array(one) for metric, one in values.items()}


def _moved(spans: Spans, by: float, size: float) -> Spans:
    """Shift spans circularly; a span that passes the end is cut in two."""
    starts, ends = (spans[:, 0] + by) % size, (spans[:, 0] + by) % size + spans[:, 1] - spans[:, 0]
    over = ends > size
    whole = np.column_stack([starts, np.minimum(ends, size)])
    return np.concatenate([whole, np.column_stack([np.zeros(over.sum()), ends[over] - size])])


def _summary(
    by_film: pd.DataFrame, nulls: Mapping[tuple[str, str], list[NDArray[np.float64]]], name: str, seed: int
) -> pd.DataFrame:
    """Average over films, with intervals; correlate rates over films; rank the model among its shifts."""
    rows: list[dict[str, object]] = []
    for (truth, who, metric), part in by_film.groupby(["truth", "who", "metric"], sort=False):
        values = part["value"].to_numpy(dtype=np.float64)
        mean = t_interval(values, bounds=None if metric == "kappa" else (0.0, 1.0))
        p = np.nan
        if who == name and (str(truth), str(metric)) in nulls:
            moved = np.nanmean(np.array(nulls[str(truth), str(metric)]), axis=0)
            p = (1 + int((moved >= mean.mean).sum())) / (1 + len(moved))
        rows.append(
            {"truth": truth, "who": who, "metric": metric, "value": mean.mean, "low": mean.low,
             "high": mean.high, "n_films": mean.n_movies, "p": p}
        )  # fmt: skip
    rows += _ranks(by_film, seed)
    return pd.DataFrame(rows, columns=["truth", "who", "metric", "value", "low", "high", "n_films", "p"])


def _ranks(by_film: pd.DataFrame, seed: int) -> Iterator[dict[str, object]]:
    """Correlate rates with the truth's over films, with the percentiles of a bootstrap of films."""
    rates = by_film[(by_film["metric"] == "rate") & ~by_film["who"].isin([ALL, NONE, PRIOR])]
    for truth, part in rates.groupby("truth", sort=False):
        table = part.pivot_table(index="movie", columns="who", values="value", sort=False)
        true = table.pop(f"human: {truth}")
        for who, column in table.items():
            both = np.column_stack([column, true])
            both = both[~np.isnan(both).any(axis=1)]
            rng = np.random.default_rng(seed)
            drawn = [spearman(*both[rng.integers(len(both), size=len(both))].T) for _ in range(N_DRAWS)]
            known = np.array(drawn)[~np.isnan(drawn)]
            low, high = np.quantile(known, (0.025, 0.975)) if known.size else (np.nan, np.nan)
            yield {
                "truth": truth,
                "who": who,
                "metric": "rate_rank",
                "value": spearman(*both.T),
                "low": float(low),
                "high": float(high),
                "n_films": len(both),
                "p": np.nan,
            }


def spearman(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Compute Spearman's rank correlation; NaN if either input is constant."""
    x, y = rankdata(a), rankdata(b)
    if len(x) < 3 or x.std() == 0 or y.std() == 0:
        return np.nan
    return float(np.corrcoef(x, y)[0, 1])
