"""Reproduce Table 4: results on each movie that was not trained on."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from obygaze_models.dataset import Dataset
from obygaze_models.evaluation import METRICS, NAN
from obygaze_models.report import NOTHING, Report, interval, number
from obygaze_studies.obygaze12.corpus import METRIC_TITLES, PaperCorpus, Part, declared
from obygaze_studies.obygaze12.paper_folds import leak_caption
from obygaze_studies.obygaze12.printed_values import MOVIE_PAIRS, TABLE4, TABLE4_MEAN, title_of, trivial_f1
from obygaze_studies.obygaze12.protocol_results import PaperResults, StrictResults, pair_folds
from obygaze_studies.obygaze12.table2 import AVERAGES, by_fold

TASK = ">".join(MOVIE_PAIRS)

SHOWN = ("average_precision", "f1_pos", "f1_weighted", "auc")


def _printed(printed: float, movie: str) -> str:
    return NOTHING if np.isnan(printed) else str(TABLE4[movie])


def paper_report(results: Sequence[PaperResults]) -> Report:
    """Reproduce Table 4 under the `paper` protocol: mean and SD over each film's nine validation films."""
    corpus = results[0].corpus
    folds = pair_folds(corpus.manifest)
    parts = [_paper_part(result, leak_caption(folds, result.source)) for result in results]
    record = {"seed": results[0].seed}
    return corpus.report("table4", parts, record, after=_printed_note(corpus), folds=folds)


def _paper_part(result: PaperResults, leaks: str) -> Part:
    corpus = result.corpus
    source = result.source
    pairs = _pairs(result)
    printed_for = corpus.printed_row(source) == "X-CLIP"
    rows: list[dict[str, Any]] = []
    for movie, part in pairs.groupby("movie", sort=False):
        printed = TABLE4.get(str(movie)) if printed_for else None
        row = _about(source, str(movie), part["n_clips"].iloc[0], part["prevalence"].iloc[0])
        row["n_pairs"] = len(part)
        for name in AVERAGES:
            row |= {name: part[name].mean(), f"{name}_sd": part[name].std(ddof=0)}
            row[f"_{name}_values"] = part[name].tolist()
        row["printed"], row["printed_sd"] = (printed.mean, printed.sd) if printed else (NAN, NAN)
        rows.append(row)
    means = pairs.groupby("movie", sort=False)[list(AVERAGES)].mean()
    weighted, positive = (number(float(means[name].mean())) for name in AVERAGES)
    mean_printed = str(TABLE4_MEAN) if printed_for else NOTHING
    all_positive = partial(trivial_f1, called=1.0, average="f1_pos")
    table = declared(
        source.title,
        ("table4", "paper"),
        rows,
        (f"{len(pairs)} film pairs; {leaks}, and no film is on two sides",),
        last=[("mean over films", "", "", weighted, mean_printed, positive, "")],
        writers={"printed": _printed, "all_positive": lambda prevalence: number(all_positive(prevalence))},
    )
    return Part(source=source, rows=rows, blocks=[table], answers=_range(source, rows, "f1_weighted"))


def _about(source: Dataset, movie: str, n_clips: int, prevalence: float) -> dict[str, Any]:
    about = {"features": source.title, "movie": movie, "title": title_of(movie)}
    return about | {"n_clips": n_clips, "prevalence": float(prevalence)}


def _range(source: Dataset, rows: Sequence[Mapping[str, Any]], metric: str) -> list[str]:
    """Say how far films differ."""
    named_values = sorted(
        (float(row[metric]), str(row["title"])) for row in rows if not math.isnan(row[metric])
    )
    if not named_values:
        return []
    low, lowest = named_values[0]
    high, highest = named_values[-1]
    mean = sum(value for value, _ in named_values) / len(named_values)
    text = (
        f"{source.title}: {METRIC_TITLES[metric]} is {number(mean)} on average over {len(named_values)} "
        f"films, from {number(low)} ({lowest}) to {number(high)} ({highest})"
    )
    return [text]


def _printed_note(corpus: PaperCorpus) -> list[str]:
    if not corpus.printed or "X-CLIP" in corpus.printed_rows:
        return []
    rows = "; ".join(f"{title_of(movie)} {printed}" for movie, printed in TABLE4.items())
    return [f"printed for X-CLIP (arXiv, Table 4): {rows}; mean {TABLE4_MEAN}"]


def _pairs(result: PaperResults) -> pd.DataFrame:
    """Compute both F1 of each film pair, in the order of the pairs."""
    about = result.movie_pairs.table.groupby("fold").agg(
        movie=("movie", "first"), n_clips=("label", "size"), prevalence=("label", "mean")
    )
    scores = by_fold(result.movie_pairs, "mlp", f"movies:{TASK}")
    return about.reset_index(drop=True).join(scores)


def strict_report(results: Sequence[StrictResults]) -> Report:
    """Reproduce Table 4 under the `strict` protocol: each movie once, by models of all the others."""
    corpus = results[0].corpus
    parts = [_strict_part(result) for result in results]
    record = {"seed": results[0].seed}
    return corpus.report("table4", parts, record, after=_printed_note(corpus))


def _strict_part(result: StrictResults) -> Part:
    source = result.source
    printed_for = result.corpus.printed_row(source) == "X-CLIP"
    rows: list[dict[str, Any]] = []
    for movie, pairs_of_movie in result.pair_rows().groupby("movie"):
        y = pairs_of_movie["label"].to_numpy()
        score = pairs_of_movie["score"].to_numpy()
        called = pairs_of_movie["called"].to_numpy()
        row = _about(source, str(movie), len(y), y.mean())
        row |= {name: METRICS[name](y, score, called) for name in SHOWN}
        rows.append(row | {"printed": TABLE4[str(movie)].mean if printed_for and movie in TABLE4 else NAN})
    metrics = result.runs[MOVIE_PAIRS[0]].metrics
    mine = (
        metrics[(metrics["model"] == "mlp") & (metrics["task"] == TASK)].set_index("metric").loc[list(SHOWN)]
    )
    means = mine[["movie_mean", "movie_low", "movie_high"]].to_numpy().tolist()
    printed_mean = str(TABLE4_MEAN) if printed_for else NOTHING
    last = [
        ("mean over movies [95 %]", "", "", *(interval(*mean) for mean in means), printed_mean),
        ("chance level, mean over movies", "", "", *map(number, mine["movie_chance"]), NOTHING),
    ]
    notes = ("no clip or movie is on two sides",)
    table = declared(
        source.title, ("table4", "strict"), rows, notes, last=last, writers={"printed": _printed}
    )
    return Part(source=source, rows=rows, blocks=[table], answers=_range(source, rows, SHOWN[0]))
