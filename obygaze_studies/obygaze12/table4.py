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
    Printed,
    title_of,
    trivial_f1,
)
from obygaze_studies.obygaze12.protocol_results import PaperResults, StrictResults, pair_folds
from obygaze_studies.obygaze12.table2 import F1_OF_AVERAGE, f1_by_fold

TRAIN, TEST = MOVIE_PAIR_CELL

TASK = f"{TRAIN}>{TEST}"
"""The cell of Table 4 in the table of predictions."""

SHOWN_METRICS = ("average_precision", "f1_pos", "f1_weighted", "auc")
"""Metrics of the table under the `strict` protocol."""


def _format_printed(printed: float, movie: str) -> str:
    """Write the printed number of a movie as in the paper, mean and SD; a dash if a row has none (NaN).

    A row holds the printed mean alone, so that the text with the SD is looked up by the movie.
    """
    has_no_printed_number = np.isnan(printed)
    if has_no_printed_number:
        return NOTHING
    return str(TABLE4[movie])


def paper_report(results: Sequence[PaperResults]) -> Report:
    """Reproduce Table 4 under the `paper` protocol: mean and SD over each film's nine validation films.

    `results` are those of each source, all of the same corpus.
    """
    corpus = results[0].corpus
    folds = pair_folds(corpus.manifest)
    parts = [_paper_part(result, leak_caption(folds, result.source)) for result in results]
    record = {"seed": results[0].seed}
    return corpus.report("table4", parts, record, after=_printed_note(corpus), folds=folds)


def _paper_part(result: PaperResults, leaks: str) -> SourcePart:
    """Make the table of one source under the `paper` protocol: a row per tested film.

    `leaks` is the note on test clips that are seen in training.
    """
    source = result.source
    pairs = _film_pairs(result)
    shows_printed = _shows_printed(result)
    rows: list[dict[str, Any]] = []
    for movie, pairs_of_movie in pairs.groupby("movie", sort=False):
        printed = TABLE4.get(str(movie)) if shows_printed else None
        rows.append(_paper_row(source, str(movie), pairs_of_movie, printed))

    table = declared_block(
        source.title,
        rows,
        (f"{len(pairs)} film pairs; {leaks}, and no film is on two sides",),
        columns_of=("table4", "paper"),
        last=[_paper_mean_line(pairs, shows_printed=shows_printed)],
        writers={"printed": _format_printed, "all_positive": _format_all_positive},
    )
    answers = _mean_and_range(source, rows, "f1_weighted")
    return SourcePart(source=source, rows=rows, blocks=[table], answers=answers)


def _shows_printed(result: PaperResults | StrictResults) -> bool:
    """Return whether a source's table shows the paper's numbers, which are of X-CLIP."""
    return result.corpus.printed_backbone(result.source) == "X-CLIP"


def _paper_row(source: Dataset, movie: str, pairs: pd.DataFrame, printed: Printed | None) -> dict[str, Any]:
    """Make the row of a tested film: mean and SD of both F1 over its pairs, and the printed number.

    Parameters
    ----------
    source
        The features.
    movie
        The film.
    pairs
        The pairs in which it is tested, as `_film_pairs` describes them.
    printed
        The printed number; None if there is none, or none of these features.
    """
    # All pairs of a tested movie have the same test clips.
    row = _film_row(source, movie, pairs["n_clips"].iloc[0], pairs["prevalence"].iloc[0])
    row["n_pairs"] = len(pairs)
    for name in F1_OF_AVERAGE:  # "f1_weighted" and "f1_pos"
        row[name] = pairs[name].mean()
        row[f"{name}_sd"] = pairs[name].std(ddof=0)
        row[f"_{name}_values"] = pairs[name].tolist()
    row["printed"] = printed.mean if printed else NAN
    row["printed_sd"] = printed.sd if printed else NAN
    return row


def _paper_mean_line(pairs: pd.DataFrame, *, shows_printed: bool) -> tuple[str, ...]:
    """Write the last line of the table under `paper`: the means over films, blank where there is none.

    `pairs` are all film pairs, as `_film_pairs` describes them.
    """
    both_f1 = list(F1_OF_AVERAGE)  # "f1_weighted" and "f1_pos"
    means_of_films = pairs.groupby("movie", sort=False)[both_f1].mean()
    cells = {
        "movie": "mean over films",
        "clips": "",
        "prevalence": "",
        "weighted F1": number(float(means_of_films["f1_weighted"].mean())),
        "printed": str(TABLE4_MEAN) if shows_printed else NOTHING,
        "F1 of S": number(float(means_of_films["f1_pos"].mean())),
        "all positive": "",
    }
    return tuple(cells.values())


def _format_all_positive(prevalence: float) -> str:
    """Format the F1 of calling all clips positive, for a prevalence."""
    return number(trivial_f1(prevalence, called=1.0, average="f1_pos"))


def _film_row(source: Dataset, movie: str, n_clips: int, prevalence: float) -> dict[str, Any]:
    """Make the first columns of a film's row: features, film, number of its clips and share of positives."""
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
    """Describe each film pair, in their order, as a table.

    Its columns are the tested movie, the number of its clips, the share of positive ones (prevalence), and
    the weighted F1 and the F1 of S of the perceptron.
    """
    tested_movies = result.movie_pairs.table.groupby("fold").agg(
        movie=("movie", "first"), n_clips=("label", "size"), prevalence=("label", "mean")
    )
    scores = f1_by_fold(result.movie_pairs, "mlp", f"movies:{TASK}")
    # Both tables have a row per fold, in the order of the folds.
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
    shows_printed = _shows_printed(result)
    rows: list[dict[str, Any]] = []
    for movie, predictions in result.pair_rows().groupby("movie"):
        printed = TABLE4.get(str(movie)) if shows_printed else None
        rows.append(_strict_row(source, str(movie), predictions, printed))

    table = declared_block(
        source.title,
        rows,
        ("no clip or movie is on two sides",),
        columns_of=("table4", "strict"),
        last=_strict_last_lines(result, shows_printed=shows_printed),  # the mean and the chance level
        writers={"printed": _format_printed},  # how the cells of printed numbers are formatted
    )
    main_metric = SHOWN_METRICS[0]  # the answer in a sentence is by this one
    answers = _mean_and_range(source, rows, main_metric)
    return SourcePart(source=source, rows=rows, blocks=[table], answers=answers)


def _strict_row(
    source: Dataset, movie: str, predictions: pd.DataFrame, printed: Printed | None
) -> dict[str, Any]:
    """Make the row of a movie under `strict`: the metrics of its predictions, and the printed number.

    `printed` is None if the paper prints none, or none of these features.
    """
    labels = predictions["label"].to_numpy()
    scores = predictions["score"].to_numpy()
    predicted = predictions["called"].to_numpy()
    row = _film_row(source, movie, len(labels), labels.mean())
    for name in SHOWN_METRICS:
        row[name] = METRICS[name].of_movie(labels, scores, predicted)  # as in the mean over movies
    row["printed"] = printed.mean if printed else NAN
    return row


def _strict_last_lines(result: StrictResults, *, shows_printed: bool) -> list[tuple[str, ...]]:
    """Write the last lines of the table under `strict`: means over movies with intervals, and chance levels.

    The columns are the movie, two of its clips that stay blank, the shown metrics, and the printed number.
    """
    # The run of the models that are trained on Table 4's training task; TASK is its part in that table.
    metrics = result.runs[TRAIN].metrics
    is_of_mlp = (metrics["model"] == "mlp") & (metrics["task"] == TASK)
    metrics_of_mlp = metrics[is_of_mlp].set_index("metric").to_dict(orient="index")
    means = []
    chance_levels = []
    for name in SHOWN_METRICS:
        metric = metrics_of_mlp[name]
        means.append(interval(metric["movie_mean"], metric["movie_low"], metric["movie_high"]))
        chance_levels.append(number(metric["movie_chance"]))

    printed_mean = str(TABLE4_MEAN) if shows_printed else NOTHING
    return [
        ("mean over movies [95 %]", "", "", *means, printed_mean),
        ("chance level, mean over movies", "", "", *chance_levels, NOTHING),
    ]
