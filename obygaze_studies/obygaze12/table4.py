"""Reproduce Table 4: results on each movie that was not trained on."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from obygaze_features.text import counted
from obygaze_models.dataset import Dataset
from obygaze_models.evaluation import METRICS, NAN
from obygaze_models.report import NOTHING, Report, interval, number
from obygaze_studies.obygaze12.corpus import METRIC_TITLES, PaperCorpus, SourcePart, declared_block
from obygaze_studies.obygaze12.paper_folds import leak_caption
from obygaze_studies.obygaze12.printed_values import (
    MOVIE_PAIR_CELL,
    TABLE4,
    TABLE4_MEAN,
    title_of,
    trivial_f1,
)
from obygaze_studies.obygaze12.protocol_results import PaperResults, StrictResults, pair_folds
from obygaze_studies.obygaze12.table2 import F1_OF_AVERAGE, f1_by_fold

TASK = ">".join(MOVIE_PAIR_CELL)
"""The cell of Table 4: its training task and its test task."""

SHOWN_METRICS = ("average_precision", "f1_pos", "f1_weighted", "auc")
"""Metrics of the table under the `strict` protocol."""


def _format_printed(printed: float, movie: str) -> str:
    """Format the printed number of a movie as the paper does; a dash if there is none (NaN)."""
    if np.isnan(printed):
        return NOTHING
    return str(TABLE4[movie])


def paper_report(results: Sequence[PaperResults]) -> Report:
    """Reproduce Table 4 under the `paper` protocol: mean and SD over each film's nine validation films."""
    corpus = results[0].corpus
    folds = pair_folds(corpus.manifest)
    parts = [_paper_part(result, leak_caption(folds, result.source)) for result in results]
    record = {"seed": results[0].seed}
    return corpus.report("table4", parts, record, after=_printed_note(corpus), folds=folds)


def _paper_part(result: PaperResults, leaks: str) -> SourcePart:
    """Make the table of one source under the `paper` protocol: a row per tested film."""
    corpus = result.corpus
    source = result.source
    pairs = _film_pairs(result)
    shows_printed = corpus.printed_backbone(source) == "X-CLIP"
    rows: list[dict[str, Any]] = []
    for movie, pairs_of_movie in pairs.groupby("movie", sort=False):
        printed = TABLE4.get(str(movie)) if shows_printed else None
        # All pairs of a tested movie have the same test clips.
        n_clips = pairs_of_movie["n_clips"].iloc[0]
        prevalence = pairs_of_movie["prevalence"].iloc[0]
        row = _film_row(source, str(movie), n_clips, prevalence)
        row["n_pairs"] = len(pairs_of_movie)
        for name in F1_OF_AVERAGE:
            row[name] = pairs_of_movie[name].mean()
            row[f"{name}_sd"] = pairs_of_movie[name].std(ddof=0)
            row[f"_{name}_values"] = pairs_of_movie[name].tolist()
        row["printed"] = printed.mean if printed else NAN
        row["printed_sd"] = printed.sd if printed else NAN
        rows.append(row)
    means = pairs.groupby("movie", sort=False)[list(F1_OF_AVERAGE)].mean()
    mean_weighted = number(float(means["f1_weighted"].mean()))
    mean_positive = number(float(means["f1_pos"].mean()))
    mean_printed = str(TABLE4_MEAN) if shows_printed else NOTHING
    last_row = ("mean over films", "", "", mean_weighted, mean_printed, mean_positive, "")

    def all_positive(prevalence: float) -> str:
        """Format the F1 of calling all clips positive, for a prevalence."""
        return number(trivial_f1(prevalence, called=1.0, average="f1_pos"))

    table = declared_block(
        source.title,
        ("table4", "paper"),
        rows,
        (f"{len(pairs)} film pairs; {leaks}, and no film is on two sides",),
        last=[last_row],
        writers={"printed": _format_printed, "all_positive": all_positive},
    )
    return SourcePart(
        source=source, rows=rows, blocks=[table], answers=_mean_and_range(source, rows, "f1_weighted")
    )


def _film_row(source: Dataset, movie: str, n_clips: int, prevalence: float) -> dict[str, Any]:
    """Make the first columns of a film's row."""
    return {
        "features": source.title,
        "movie": movie,
        "title": title_of(movie),
        "n_clips": n_clips,
        "prevalence": float(prevalence),
    }


def _mean_and_range(source: Dataset, rows: Sequence[Mapping[str, Any]], metric: str) -> list[str]:
    """Write a metric's mean over films, and its lowest and highest film; nothing if it is undefined."""
    films = [(float(row[metric]), str(row["title"])) for row in rows if not math.isnan(row[metric])]
    if not films:
        return []
    films.sort()  # by the metric's value
    lowest_value, lowest_film = films[0]
    highest_value, highest_film = films[-1]
    mean = sum(value for value, _ in films) / len(films)
    text = (
        f"{source.title}: {METRIC_TITLES[metric]} is {number(mean)} on average over "
        f"{counted(len(films), 'film')}, from {number(lowest_value)} ({lowest_film}) to "
        f"{number(highest_value)} ({highest_film})"
    )
    return [text]


def _printed_note(corpus: PaperCorpus) -> list[str]:
    """Write a note with the paper's numbers, which are of X-CLIP, if no source's rows show them."""
    if not corpus.has_printed_numbers or "X-CLIP" in corpus.printed_backbones:
        return []
    rows = "; ".join(f"{title_of(movie)} {printed}" for movie, printed in TABLE4.items())
    return [f"printed for X-CLIP (arXiv, Table 4): {rows}; mean {TABLE4_MEAN}"]


def _film_pairs(result: PaperResults) -> pd.DataFrame:
    """Describe each film pair, in their order: the tested movie, its clips, their prevalence, and both F1."""
    tested_movies = result.movie_pairs.table.groupby("fold").agg(
        movie=("movie", "first"), n_clips=("label", "size"), prevalence=("label", "mean")
    )
    scores = f1_by_fold(result.movie_pairs, "mlp", f"movies:{TASK}")
    return tested_movies.reset_index(drop=True).join(scores)


def strict_report(results: Sequence[StrictResults]) -> Report:
    """Reproduce Table 4 under the `strict` protocol: each movie is tested by models of all other movies."""
    corpus = results[0].corpus
    parts = [_strict_part(result) for result in results]
    record = {"seed": results[0].seed}
    return corpus.report("table4", parts, record, after=_printed_note(corpus))


def _strict_part(result: StrictResults) -> SourcePart:
    """Make the table of one source under `strict`: a row per movie, then their mean and the chance level."""
    source = result.source
    shows_printed = result.corpus.printed_backbone(source) == "X-CLIP"
    rows: list[dict[str, Any]] = []
    for movie, clips in result.pair_rows().groupby("movie"):
        labels = clips["label"].to_numpy()
        scores = clips["score"].to_numpy()
        predicted = clips["called"].to_numpy()
        row = _film_row(source, str(movie), len(labels), labels.mean())
        row |= {name: METRICS[name](labels, scores, predicted) for name in SHOWN_METRICS}
        row["printed"] = TABLE4[str(movie)].mean if shows_printed and movie in TABLE4 else NAN
        rows.append(row)
    metrics = result.runs[MOVIE_PAIR_CELL[0]].metrics
    metrics_of_mlp = metrics[(metrics["model"] == "mlp") & (metrics["task"] == TASK)].set_index("metric")
    shown = metrics_of_mlp.loc[list(SHOWN_METRICS)]
    intervals = shown[["movie_mean", "movie_low", "movie_high"]].to_numpy().tolist()
    printed_mean = str(TABLE4_MEAN) if shows_printed else NOTHING
    last = [
        ("mean over movies [95 %]", "", "", *(interval(*ends) for ends in intervals), printed_mean),
        ("chance level, mean over movies", "", "", *map(number, shown["movie_chance"]), NOTHING),
    ]
    notes = ("no clip or movie is on two sides",)
    table = declared_block(
        source.title, ("table4", "strict"), rows, notes, last=last, writers={"printed": _format_printed}
    )
    return SourcePart(
        source=source, rows=rows, blocks=[table], answers=_mean_and_range(source, rows, SHOWN_METRICS[0])
    )
