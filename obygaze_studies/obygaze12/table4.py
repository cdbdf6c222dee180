"""Reproduce Table 4: results on each movie that was not trained on."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from obygaze_models.dataset import Dataset
from obygaze_models.evaluation import METRICS, NAN
from obygaze_models.report import NOTHING, Report, block, interval, number
from obygaze_studies.obygaze12.corpus import METRIC_TITLES, PaperCorpus, by_source
from obygaze_studies.obygaze12.paper_folds import leak_caption
from obygaze_studies.obygaze12.printed_values import MOVIE_PAIRS, TABLE4, TABLE4_MEAN, title_of, trivial_f1
from obygaze_studies.obygaze12.protocol_results import PaperResults, StrictResults, pair_folds
from obygaze_studies.obygaze12.table2 import AVERAGES, by_fold

TASK = ">".join(MOVIE_PAIRS)
WEIGHTED = METRIC_TITLES["f1_weighted"]


def _printed(printed: float, movie: str) -> str:
    return NOTHING if np.isnan(printed) else str(TABLE4[movie])


def paper_report(results: Sequence[PaperResults]) -> Report:
    """Reproduce Table 4 under the `paper` protocol: mean and SD over each film's nine validation films."""
    corpus = results[0].corpus
    folds = pair_folds(corpus.manifest)
    all_positive = partial(trivial_f1, called=1.0, average="f1_pos")
    headings = corpus.columns(
        "table4", "paper", printed=_printed, all_positive=lambda p: number(all_positive(p))
    )
    blocks, data = [], []
    for result in results:
        pairs = _pairs(result)
        printed_for = corpus.printed_row(result.source) == "X-CLIP"
        rows = []
        for movie, part in pairs.groupby("movie", sort=False):
            printed = TABLE4.get(str(movie)) if printed_for else None
            row = _about(result.source, str(movie), part["n_clips"].iloc[0], part["prevalence"].iloc[0])
            row["n_pairs"] = len(part)
            for name in AVERAGES:
                row |= {name: part[name].mean(), f"{name}_sd": part[name].std(ddof=0)}
                row[f"{name}_values"] = part[name].tolist()
            row["printed"], row["printed_sd"] = (printed.mean, printed.sd) if printed else (NAN, NAN)
            rows.append(row)
        data += rows
        means = pairs.groupby("movie", sort=False)[list(AVERAGES)].mean()
        weighted, positive = (number(float(means[name].mean())) for name in AVERAGES)
        mean_printed = corpus.if_printed(str(TABLE4_MEAN) if printed_for else NOTHING)
        blocks.append(
            block(
                result.source.title,
                headings,
                rows,
                (f"{len(pairs)} film pairs; {leak_caption(folds)}, and no film is on two sides",),
                last=[("mean over films", "", "", weighted, *mean_printed, positive, "")],
            )
        )
    return corpus.report(
        "table4",
        blocks,
        pd.DataFrame(data).drop(columns=[f"{name}_values" for name in AVERAGES]),
        {"seed": results[0].seed},
        answers=_ranges(data, "f1_weighted", WEIGHTED),
        after=_printed_note(corpus),
        folds=folds,
    )


def _about(source: Dataset, movie: str, n_clips: int, prevalence: float) -> dict[str, Any]:
    about = {"features": source.title, "movie": movie, "title": title_of(movie)}
    return about | {"n_clips": n_clips, "prevalence": float(prevalence)}


def _ranges(rows: Sequence[Mapping[str, Any]], value: str, title: str) -> list[str]:
    """Say how far films differ, source by source."""
    answers = []
    for source, own in by_source(rows).items():
        known = sorted((float(row[value]), str(row["title"])) for row in own if not math.isnan(row[value]))
        if known:
            (low, lowest), (high, highest) = known[0], known[-1]
            mean = sum(one for one, _ in known) / len(known)
            answers.append(
                f"{source}: {title} is {number(mean)} on average over {len(known)} films, from {number(low)} "
                f"({lowest}) to {number(high)} ({highest})"
            )
    return answers


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


SHOWN = ("average_precision", "f1_pos", "f1_weighted", "auc")


def strict_report(results: Sequence[StrictResults]) -> Report:
    """Reproduce Table 4 under the `strict` protocol: each movie once, by models of all the others."""
    corpus = results[0].corpus
    headings = corpus.columns("table4", "strict", printed=_printed)
    blocks, data = [], []
    for result in results:
        printed_for = corpus.printed_row(result.source) == "X-CLIP"
        movies: list[dict[str, Any]] = []
        for movie, own in result.pair_rows().groupby("movie"):
            y, score, called = (own[name].to_numpy() for name in ("label", "score", "called"))
            printed = TABLE4[str(movie)].mean if printed_for and movie in TABLE4 else NAN
            row = _about(result.source, str(movie), len(y), y.mean())
            row |= {name: METRICS[name](y, score, called) for name in SHOWN}
            movies.append(row | {"printed": printed})
        data += movies
        metrics = result.runs[MOVIE_PAIRS[0]].metrics
        mine = metrics[(metrics["model"] == "mlp") & (metrics["task"] == TASK)].set_index("metric")
        means = mine.loc[list(SHOWN), ["movie_mean", "movie_low", "movie_high"]].to_numpy().tolist()
        chances = mine.loc[list(SHOWN), "movie_chance"].tolist()
        printed_mean = str(TABLE4_MEAN) if printed_for else NOTHING
        last = [
            ("mean over movies [95 %]", "", "", *(interval(*mean) for mean in means), printed_mean),
            ("chance level, mean over movies", "", "", *map(number, chances), NOTHING),
        ]
        lines = [line[: len(headings)] for line in last]
        blocks.append(
            block(result.source.title, headings, movies, ("no clip or movie is on two sides",), last=lines)
        )
    return corpus.report(
        "table4",
        blocks,
        data,
        {"seed": results[0].seed},
        answers=_ranges(data, SHOWN[0], METRIC_TITLES[SHOWN[0]]),
        after=_printed_note(corpus),
    )
