"""Measure timelines and annotators of films against each other, and report it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.manifest import Manifest, name_hint, refuse_twins
from obygaze_features.templates import packaged
from obygaze_film.agreement import (
    best_top_precision,
    boundary_f1,
    kappa,
    merged,
    second_f1,
    seconds_in,
    segment_ap,
    segment_f1,
    top_precision,
)
from obygaze_film.claims import document, sentences
from obygaze_film.claims.of_groups import timeline_agreement
from obygaze_film.errors import FilmError
from obygaze_film.schema import Spans, is_counted
from obygaze_film.timeline import Timeline
from obygaze_models.evaluation import auc, average_precision, jackknife_interval, spearman, t_interval
from obygaze_models.report import Block, Report, interval, number

THRESHOLDS = (0.1, 0.3, 0.5)
"""Temporal intersections over unions (tIoU) at which segments count as found."""

COLLARS_S = (5.0, 15.0)
"""Tolerances of onsets and offsets, in seconds."""

N_LISTED = 100
"""Maximum number of ranked segments of a model."""

N_SHIFTS = 200

SEED = 0
"""With the film's name, of the shifts."""

ROUNDING = 1e-9
"""By how much less a shift may score, and still as high."""

TOP = 10

ALL = "all"
NONE = "none"
PRIOR = "movie_prior"
SHIFTED = "shifted"
"""Baselines: every second, no second, the other films' share, the model's own timeline shifted."""

TITLES: Mapping[str, str] = packaged(__package__, "assets/evaluation.toml")
"""Titles of metrics and baselines."""


@dataclass(frozen=True, eq=False)
class Marks:
    """The marks of a model, an annotator or a rule in a film.

    Attributes
    ----------
    seconds : ndarray of bool, shape [n]
        The seconds marked.
    segments : ndarray, shape [S, 2]
        The segments marked.
    rate : float
        Share of the film; NaN if it is refused.
    scores : ndarray, shape [n], optional
        A score for each second, NaN where it is missing.
    listed : DataFrame, optional
        Segments (`Timeline.segments`), best first, including those below the threshold.
    """

    seconds: NDArray[np.bool_]
    segments: Spans
    rate: float
    scores: NDArray[np.float64] | None = None
    listed: pd.DataFrame | None = None


def annotated(truth: Manifest, positive: set[str], ids: Sequence[str] = ()) -> dict[str, dict[str, Spans]]:
    """Collect positive spans by film and annotator; annotators without any are included.

    Films are named as in `ids`, however the truth spells them.

    Raises
    ------
    FilmError
        The codebook lacks the levels, an annotated clip has no span, or annotators differ in case alone.
    """
    if unknown := sorted(positive - set(truth.codebook.level_names)):
        raise FilmError(
            f"the model calls {unknown[0]!r} positive, which is no level of the truth's codebook "
            f"{truth.codebook.name!r}"
        )
    by_movie: dict[str, dict[str, list[tuple[float, float]]]] = {}
    signed: dict[str, tuple[object, str]] = {}
    for clip in truth.spelled_as(ids):
        if clip.level is None:
            continue
        if clip.start_s is None or clip.end_s is None:
            raise FilmError(f"clip {clip.clip_id} of the truth has no span: start_s and end_s are needed")
        annotator = clip.annotator or "annotator"
        signed.setdefault(annotator, ("the truth", f"clip {clip.clip_id}"))
        spans_of_annotator = by_movie.setdefault(clip.movie, {}).setdefault(annotator, [])
        if clip.level in positive:
            spans_of_annotator.append((clip.start_s, clip.end_s))
    refuse_twins("annotator", signed)
    merged_by_movie = {}
    for movie, spans_of in by_movie.items():
        merged_by_movie[movie] = {annotator: merged(spans) for annotator, spans in spans_of.items()}
    return merged_by_movie


def ends(spans: Spans) -> float:
    """Return the end of the last span; 0 without any."""
    return float(spans[:, 1].max()) if len(spans) else 0.0


def human_marks(spans: Spans, n: int) -> Marks:
    """Collect the marks of an annotator in a film of n seconds, at whose end they are cut."""
    spans = np.minimum(spans[spans[:, 0] < n], n)
    seconds = seconds_in(spans, n)
    return Marks(seconds, spans, float(seconds.mean()))


def marks_of(film: Timeline, key: str | None, n: int) -> Marks:
    """Collect the marks of a model in a film of n seconds: called rows, segments, probabilities."""
    rows = film.rows(key)
    spans = rows[["start_s", "end_s"]].to_numpy(dtype=np.float64)
    row_of = np.clip(np.searchsorted(spans[:, 0], np.arange(n) + 0.5, side="right") - 1, 0, None)
    inside = np.arange(n) + 0.5 < spans[row_of, 1]
    counted = is_counted(rows)
    p = np.where(counted, rows["p"].to_numpy(dtype=np.float64), np.nan)
    called = counted & (rows["called"].to_numpy(dtype=np.float64, na_value=np.nan) == 1)
    listed = film.segments(key, top=N_LISTED)
    reaching = listed[listed["reaches"] == 1]
    rate = film.rate(key).value
    return Marks(
        seconds=np.where(inside, called[row_of], False),
        segments=merged(zip(reaching["start_s"].astype(float), reaching["end_s"].astype(float), strict=True)),
        rate=np.nan if rate is None else rate,
        scores=np.where(inside, p[row_of], np.nan),
        listed=listed,
    )


@dataclass(frozen=True, eq=False)
class FilmEvaluation:
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


@checked
def evaluate_films(
    films: Sequence[Timeline],
    truth: Manifest,
    *,
    key: str | None = None,
    collars: Sequence[float] = COLLARS_S,
    n_shifts: int = N_SHIFTS,
) -> FilmEvaluation:
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

    Raises
    ------
    FilmError
        No film is annotated, the codebook lacks the positive levels, or a clip has no span, or one behind its
        film.

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
    model = films[0].model(key)
    ids = [film.movie for film in films]
    people = annotated(truth, set(model.positive), ids)
    annotated_films = [film for film in films if film.movie in people]
    unknown_names = [f"{name}{name_hint(name, ids)}" for name in people if name not in ids]
    if not annotated_films:
        raise FilmError(
            f"no scored film is annotated: the films are {', '.join(ids)}; "
            f"the manifest has {', '.join(unknown_names[:5])}"
        )
    machine = {}
    humans = {}
    cut = []
    for film in annotated_films:
        spans_of = people[film.movie]
        whole_s = film.record.duration_s
        for annotator, spans in spans_of.items():
            if len(spans) and spans[-1, 0] > whole_s + 1:
                where = (
                    f"film {film.movie} lasts {whole_s:g} s, and {annotator} marks it from {spans[-1, 0]:g} s"
                )
                raise FilmError(f"{where}: is this another cut, or does its time code not begin at 0?")
            if ends(spans) > whole_s + 1:
                cut.append(f"{film.movie} ({annotator}: {ends(spans):g} s)")
        n = int(np.ceil(whole_s))
        machine[film.movie] = marks_of(film, key, n)
        humans[film.movie] = {name: human_marks(spans, n) for name, spans in spans_of.items()}
    record = {
        "model": model.key,
        "positive": sorted(model.positive),
        "films": list(machine),
        "left_out": [film.movie for film in films if film.movie not in machine],
        "not_scored": unknown_names,
        "cut": cut,
        "without_rate": [movie for movie, marks in machine.items() if np.isnan(marks.rate)],
        "collars": list(collars),
        "n_shifts": n_shifts,
        "seed": SEED,
    }
    return compare_marks(machine, humans, name=model.key, collars=collars, n_shifts=n_shifts, record=record)


def compare_marks(
    machine: Mapping[str, Marks],
    humans: Mapping[str, Mapping[str, Marks]],
    *,
    name: str,
    collars: Sequence[float] = COLLARS_S,
    n_shifts: int = N_SHIFTS,
    record: Mapping[str, object] | None = None,
) -> FilmEvaluation:
    """Measure marks against annotators, by film; parameters as in `evaluate_films`."""
    rows: list[tuple[object, ...]] = []
    nulls: dict[tuple[str, str], list[NDArray[np.float64]]] = {}
    for truth in sorted({name for people in humans.values() for name in people}):
        watched = [movie for movie in machine if truth in humans[movie]]
        shares = np.array([humans[movie][truth].rate for movie in watched])
        for index, movie in enumerate(watched):
            reference = humans[movie][truth]
            n = len(reference.seconds)
            other_shares = np.delete(shares, index)
            nothing = np.zeros(n, np.bool_)
            spans = np.empty((0, 2))
            people = {f"human: {rater}": marks for rater, marks in humans[movie].items() if rater != truth}
            every = {name: machine[movie]} | people
            every[ALL] = Marks(np.ones(n, np.bool_), np.array([[0.0, n]]), 1.0, np.ones(n))
            every[NONE] = Marks(nothing, spans, 0.0, np.zeros(n))
            every[PRIOR] = Marks(nothing, spans, float(other_shares.mean()) if len(other_shares) else np.nan)
            references = [marks.segments for marks in humans[movie].values()]
            measured = {
                who: film_metrics(reference, marks, references, collars) for who, marks in every.items()
            }
            measured[PRIOR] = {metric: measured[PRIOR][metric] for metric in ("rate", "rate_error")}
            for who, metrics in measured.items():
                rows += [(truth, who, movie, metric, value) for metric, value in metrics.items()]
            rows.append((truth, f"human: {truth}", movie, "rate", reference.rate))
            rng = np.random.default_rng([SEED, *movie.encode()])
            for metric, values in _shifts(reference, machine[movie], collars, n_shifts, rng).items():
                if not np.isnan(measured[name][metric]):  # of the films that are in the model's mean
                    nulls.setdefault((truth, metric), []).append(values)
                rows.append((truth, SHIFTED, movie, metric, float(np.mean(values))))
    by_film = pd.DataFrame(rows, columns=["truth", "who", "movie", "metric", "value"])
    return FilmEvaluation(by_film, _summary(by_film, nulls, name), record or {})


def film_metrics(
    reference: Marks, estimated: Marks, references: Sequence[Spans], collars: Sequence[float]
) -> dict[str, float]:
    """Compute every metric of one film."""
    metrics = _measured(reference, estimated, collars)
    if estimated.listed is not None:
        p = estimated.listed["p"]
        listed = estimated.listed[["start_s", "end_s"]].to_numpy(dtype=np.float64)
        metrics["segment_map"] = float(
            np.mean([segment_ap(reference.segments, listed, p, t) for t in THRESHOLDS])
        )
        metrics[f"top{TOP}_precision"] = top_precision(references, listed, TOP)
        metrics[f"top{TOP}_best"] = best_top_precision(references, listed, TOP)
    metrics["rate"] = estimated.rate
    metrics["rate_error"] = abs(estimated.rate - reference.rate)
    return metrics


def _measured(reference: Marks, estimated: Marks, collars: Sequence[float]) -> dict[str, float]:
    """Compute the metrics of seconds and segments, which depend on where they are."""
    scores = estimated.seconds.astype(np.float64) if estimated.scores is None else estimated.scores
    is_scored = ~np.isnan(scores)
    y = reference.seconds[is_scored].astype(np.int64)
    segments = (reference.segments, estimated.segments)
    return {
        "second_ap": average_precision(y, scores[is_scored]),
        "second_auc": auc(y, scores[is_scored]),
        "second_f1": second_f1(reference.seconds, estimated.seconds),
        "kappa": kappa(reference.seconds, estimated.seconds),
        **{f"segment_f1_{t:g}": segment_f1(*segments, t) for t in THRESHOLDS},
        **{f"boundary_f1_{c:g}s": boundary_f1(*segments, c) for c in collars},
    }


def _shifts(
    reference: Marks, estimated: Marks, collars: Sequence[float], n: int, rng: np.random.Generator
) -> dict[str, NDArray[np.float64]]:
    """Measure `n` random circular shifts of a timeline, which keep its autocorrelation."""
    size = len(estimated.seconds)
    values: dict[str, list[float]] = {}
    for by in rng.integers(1, size, size=n) if size > 1 else ():
        scores = None if estimated.scores is None else np.roll(estimated.scores, by)
        segments = _moved(estimated.segments, float(by), size)
        moved = Marks(np.roll(estimated.seconds, by), segments, estimated.rate, scores)
        for metric, value in _measured(reference, moved, collars).items():
            values.setdefault(metric, []).append(value)
    return {metric: np.array(metric_values) for metric, metric_values in values.items()}


def _moved(spans: Spans, by: float, size: float) -> Spans:
    """Shift spans circularly; a span that passes the end is cut in two."""
    starts = (spans[:, 0] + by) % size
    ends = (spans[:, 0] + by) % size + spans[:, 1] - spans[:, 0]
    over = ends > size
    moved = np.column_stack([starts, np.minimum(ends, size)])
    return np.concatenate([moved, np.column_stack([np.zeros(over.sum()), ends[over] - size])])


def _summary(
    by_film: pd.DataFrame, nulls: Mapping[tuple[str, str], list[NDArray[np.float64]]], name: str
) -> pd.DataFrame:
    """Average over films, with intervals; correlate rates over films; rank the model among its shifts."""
    rows: list[tuple[object, ...]] = []
    for (truth, who, metric), part in by_film.groupby(["truth", "who", "metric"], sort=False):
        values = part["value"].to_numpy(dtype=np.float64)
        mean = t_interval(values, bounds=(-1.0 if metric == "kappa" else 0.0, 1.0))
        p = np.nan
        if who == name and (str(truth), str(metric)) in nulls and not np.isnan(mean.mean):
            moved = pd.DataFrame(nulls[str(truth), str(metric)]).mean().dropna()
            p = (1 + int((moved >= mean.mean - ROUNDING).sum())) / (1 + len(moved))
        rows.append((truth, who, metric, mean.mean, mean.low, mean.high, mean.n_movies, p))
    rows += _ranks(by_film)
    return pd.DataFrame(rows, columns=["truth", "who", "metric", "value", "low", "high", "n_films", "p"])


def _ranks(by_film: pd.DataFrame) -> Iterator[tuple[object, ...]]:
    """Correlate rates with the truth's over films, with an interval from leaving out one film at a time."""
    rates = by_film[(by_film["metric"] == "rate") & ~by_film["who"].isin([ALL, NONE, PRIOR])]
    for truth, part in rates.groupby("truth", sort=False):
        table = part.pivot_table(index="movie", columns="who", values="value", sort=False)
        true = table.pop(f"human: {truth}")
        for who, column in table.items():
            pairs = np.column_stack([column, true])
            pairs = pairs[~np.isnan(pairs).any(axis=1)]

            def ranked(rows: NDArray[np.bool_], pairs: NDArray[np.float64] = pairs) -> float:
                return spearman(*pairs[rows].T)

            interval = jackknife_interval(ranked, np.arange(len(pairs)), bounds=(-1.0, 1.0))
            value = (
                interval.mean if len(pairs) > 2 else np.nan
            )  # two films are always in order, or in the other
            yield truth, who, "rate_rank", value, interval.low, interval.high, len(pairs), np.nan


def evaluation_report(measured: FilmEvaluation) -> Report:
    """Make a report: for each annotator a table of metrics and one of films, and what is left out."""
    record = measured.record
    summary = measured.summary
    model = str(record.get("model", "model"))
    blocks: list[Block] = []
    is_claimed = (summary["who"] == model) & (summary["metric"] == "kappa")
    rows = summary[is_claimed].to_dict("records")
    claims = [timeline_agreement(model, str(row["truth"]), row) for row in rows]
    for truth in dict.fromkeys(summary["truth"]):
        blocks += _blocks(str(truth), summary[summary["truth"] == truth], measured.by_film, model)
    return Report(
        name="film-agreement",
        title=f"Timelines of {model} against {', '.join(map(str, dict.fromkeys(summary['truth'])))}",
        notes=tuple(_notes(record, summary)),
        blocks=tuple(blocks),
        data=pd.concat([summary.assign(movie=""), measured.by_film], ignore_index=True),
        record={**record, "claims": [document(claim) for claim in claims]},
        answers=tuple(sentences(claims)),
    )


def _blocks(truth: str, summary: pd.DataFrame, by_film: pd.DataFrame, model: str) -> Iterator[Block]:
    who = [rater for rater in dict.fromkeys(summary["who"]) if rater != f"human: {truth}"]
    cells = {(row.who, row.metric): row for row in summary.itertuples(index=False)}
    rows = []
    for metric in dict.fromkeys(summary["metric"]):
        row_cells: list[Any] = [cells.get((rater, metric)) for rater in who]
        values = ["" if cell is None else interval(cell.value, cell.low, cell.high) for cell in row_cells]
        mine: Any = cells.get((model, metric))
        rows.append((_title(str(metric)), *values, "" if mine is None or pd.isna(mine.p) else number(mine.p)))
    headers = ("metric", *(TITLES.get(rater, rater) for rater in who), "p")
    notes = ["mean over films and its 95 % interval; p: how often the model, moved in time, does as well"]
    if summary["low"].isna().all():
        n = int(summary["n_films"].max())
        notes.append(f"{n} film{'' if n == 1 else 's'}: no interval")
    yield Block(f"Truth: {truth}", headers, tuple(rows), tuple(notes))
    mine = by_film[(by_film["truth"] == truth) & (by_film["who"] == model)]
    table = mine.pivot_table(index="movie", columns="metric", values="value", sort=False)
    titles = ("film", *map(_title, map(str, table.columns)))
    cells_of = tuple((str(row[0]), *map(number, row[1:])) for row in table.itertuples(name=None))
    yield Block(f"{model}, film by film; truth: {truth}", titles, cells_of)


def _title(metric: str) -> str:
    if metric.startswith("boundary_f1_"):
        return f"boundaries, {metric.removeprefix('boundary_f1_').removesuffix('s')} s"
    return TITLES.get(metric, metric)


def _notes(record: Mapping[str, Any], summary: pd.DataFrame) -> Iterator[str]:
    positive = ", ".join(record.get("positive", ()))
    yield f"Positive: clips of level {positive}; negative: all other seconds of an annotated film."
    people = [rater for rater in dict.fromkeys(summary["who"]) if str(rater).startswith("human: ")]
    if len(people) < 2:
        yield "One annotator only: nothing says how far people agree on these films."
    else:
        yield "'human' is another annotator, measured as the model is: a yardstick, not an upper bound."
    yield (
        "F1 of segments and boundaries: those that reach the model's threshold, matched one to one; segments "
        "that touch are one."
    )
    for what, words in (
        ("left_out", "not annotated, left out"),
        ("not_scored", "annotated, not scored"),
        ("cut", "annotated to behind the film's end, cut there (another cut?)"),
        ("without_rate", "no rate (most of it unlike)"),
    ):
        films: Sequence[str] = record.get(what, ())
        if films:
            yield f"{words}: {', '.join(films)}"
