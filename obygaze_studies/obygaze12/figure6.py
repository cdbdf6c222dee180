"""Reproduce Figure 6 (4 in arXiv 2401.13296): concepts and levels that make the model fail."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression

from obygaze_models.blas import one_blas_thread
from obygaze_models.dataset import Dataset
from obygaze_models.evaluation import f1_weighted, holm, jackknife_error
from obygaze_models.report import Column, Picture, Report, block, number
from obygaze_studies.columns import of
from obygaze_studies.figure import BLUE, GREY, ORANGE, WIDTH, mark_undefined, save
from obygaze_studies.obygaze12.corpus import CAPTIONS, VISUAL_CONCEPTS, by_source, columns
from obygaze_studies.obygaze12.paper_folds import leak_caption
from obygaze_studies.obygaze12.printed_values import FIGURE6_MOVIES, title_of
from obygaze_studies.obygaze12.protocol_results import PaperResults, StrictResults, pair_folds

FACTORS = (*VISUAL_CONCEPTS, "S", "HN", "EN")

KINDS = {"false alarms": "EN and HN clips called S", "misses": "S clips not called S"}

DIRECTIONS = "\N{LEFTWARDS ARROW} fewer errors      more errors \N{RIGHTWARDS ARROW}"

Floats = NDArray[np.float64]

Row = dict[Any, Any]

LEVEL = 0.95
"""Of the intervals."""

PRIOR_SD = 2.5
"""SD of the normal prior of every effect; it keeps separable factors finite, and hardly changes others."""

N_STEPS = 30

LEAST_ERRORS = 5
"""With fewer errors, or fewer other clips, the prior alone would make the effects: they are undefined."""


def paper_report(results: Sequence[PaperResults]) -> Report:
    """Reproduce Figure 6 under `paper`: weights of a logistic regression of errors, movie by movie."""
    corpus = results[0].corpus
    folds = pair_folds(corpus.manifest)
    blocks, data, pictures = [], [], []
    for result in results:
        rows = _paper_rows(result)
        data += rows
        by_movie = {row["movie"]: row for row in rows}
        blocks.append(block(result.source.title, WEIGHTS, rows, (leak_caption(folds),)))
        own = [by_movie[movie] for movie in FIGURE6_MOVIES if movie in by_movie]
        unshown = [row["title"] for row in own if np.isnan(row["S"])]
        panels = {
            f"{row['title']}\n{row['n_failed']} of {row['n_clips']} clips wrong": {
                factor: -row[factor] for factor in FACTORS
            }
            for row in own
            if row["title"] not in unshown
        }
        if panels:
            caption = f"Figure 6 under the paper protocol, {result.source.title}: {leak_caption(folds)}"
            if unshown:
                caption += f"; not drawn, without failures or without successes: {', '.join(unshown)}"
            pictures.append(
                Picture(f"figure6-paper-{result.source.label}", caption, partial(draw_weights, panels))
            )
    return corpus.report(
        "figure6",
        blocks,
        data,
        {"seed": results[0].seed},
        answers=[
            f"{source}: {sum(row['n_failed'] for row in own):,} clips are called wrongly, of "
            f"{sum(row['n_clips'] for row in own):,} in {len(own)} films"
            for source, own in by_source(data).items()
        ],
        folds=folds,
        pictures=pictures,
    )


def _of_error(weight: float) -> str:
    """Write the weight of a success as that of an error."""
    return number(weight, 2) if np.isnan(weight) else f"{-weight:+.2f}"


WEIGHTS: Sequence[Column] = (
    ("movie", "title", str),
    ("failed", ("n_failed", "n_clips"), of),
    *((factor, factor, _of_error) for factor in FACTORS),
)


def _paper_rows(result: PaperResults) -> list[dict[str, Any]]:
    table = result.movie_pairs.table.assign(called=result.movie_pairs.called)
    rows: list[dict[str, Any]] = []
    for movie, part in table.groupby("movie", sort=False):
        pairs = [pair for _, pair in part.groupby("fold")]
        values = np.array(
            [f1_weighted(pair["label"].to_numpy(), pair["called"].to_numpy()) for pair in pairs]
        )
        # A film of one class has no f1_weighted; any of its models will do.
        average = pairs[int(np.argmin(np.nan_to_num(np.abs(values - values.mean()))))]
        success = (average["label"] == average["called"]).to_numpy()
        weights = np.full(len(FACTORS), np.nan)
        if 0 < success.sum() < len(success):
            X = described(result.source, result.source.rows(average["clip_id"].tolist()))
            weights = LogisticRegression(tol=1e-8, max_iter=10_000).fit(X, success).coef_[0]
        rows.append(
            {
                "features": result.source.title,
                "movie": movie,
                "title": title_of(str(movie)),
                "fold": int(average["fold"].iloc[0]),
                "n_clips": len(success),
                "n_failed": int((~success).sum()),
                **dict(zip(FACTORS, weights.tolist(), strict=True)),
            }
        )
    return rows


def strict_report(results: Sequence[StrictResults]) -> Report:
    """Reproduce Figure 6 under `strict`: all movies, false alarms and misses apart, with intervals."""
    corpus = results[0].corpus
    blocks, data, pictures = [], [], []
    for result in results:
        panels = {}
        for kind, (rows, n_errors, n_clips) in _strict_kinds(result).items():
            data += [{"features": result.source.title, "errors": kind} | row for row in rows]
            scarce = _scarce(kind, n_errors, n_clips)
            notes = (f"{n_errors} errors of {n_clips} clips", *([scarce] if scarce else []))
            headings, shown = columns("figure6", "strict"), () if scarce else rows
            blocks.append(block(f"{result.source.title}: {kind}", headings, shown, notes))
            panels[f"{kind}: {n_errors:,} of {n_clips:,} {KINDS[kind]}"] = scarce or rows
        tuned = CAPTIONS["figure6"]["strict"][1]
        caption = f"Figure 6 under the strict protocol, {result.source.title}; {tuned}"
        pictures.append(
            Picture(f"figure6-strict-{result.source.label}", caption, partial(draw_forest, panels))
        )
    return corpus.report(
        "figure6",
        blocks,
        data,
        {"seed": results[0].seed},
        answers=_telling(data),
        pictures=pictures,
    )


def _telling(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Name the factors that are shown to go with errors, for each source and kind of error."""
    answers = []
    for source, own in by_source(rows).items():
        for kind in dict.fromkeys(row["errors"] for row in own):
            shown = [row for row in own if row["errors"] == kind and row["p_holm"] < 0.05]
            named = [f"{'more' if row['effect'] > 0 else 'fewer'} with {row['factor']}" for row in shown]
            answers.append(f"{source}, {kind}: {', '.join(named) or 'no factor is shown to go with them'}")
    return answers


def _scarce(kind: str, n_errors: int, n_clips: int) -> str:
    """Say why the factors of a kind of error have no effects; empty where they have."""
    if n_errors == 0:
        return f"no {kind}: nothing to explain"
    if n_errors < LEAST_ERRORS:
        return f"{n_errors} {kind}: too few to explain, undefined below {LEAST_ERRORS}"
    n_right = n_clips - n_errors
    return f"all but {n_right} are {kind}: too few others to compare" if n_right < LEAST_ERRORS else ""


def _strict_kinds(result: StrictResults) -> dict[str, tuple[list[Row], int, int]]:
    """Return of each kind of error the rows of its factors, and how many errors of how many clips."""
    part = result.pair_rows()
    label, called = part["label"].to_numpy(), part["called"].to_numpy()
    factors = described(result.source, result.source.rows(part["clip_id"].tolist()))
    movies = part["movie"].to_numpy(dtype=str)
    hn = FACTORS.index("HN")
    chosen = {
        "false alarms": (label == 0, [*range(len(VISUAL_CONCEPTS)), hn]),
        "misses": (label == 1, list(range(len(VISUAL_CONCEPTS)))),
    }
    kinds = {}
    for kind, (rows, asked) in chosen.items():
        errors = (label != called)[rows]
        with one_blas_thread():
            fitted = error_factors(factors[rows][:, asked], errors, movies[rows])
        names = [FACTORS[column] if column != hn else "HN (against EN)" for column in asked]
        fitted.insert(0, "factor", names)
        fitted = fitted.assign(n_clips=len(errors), n_errors=int(errors.sum()))
        kinds[kind] = (fitted.to_dict(orient="records"), int(errors.sum()), len(errors))
    return kinds


def described(data: Dataset, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Describe clips by the factors, 0 or 1 [N, 11]."""
    levels = [data.levels[rows] == level for level in ("S", "HN", "EN")]
    return np.column_stack([data.labels.present[rows], *levels]).astype(np.float64)


def error_factors(factors: Floats, errors: NDArray[np.bool_], movies: NDArray[np.str_]) -> pd.DataFrame:
    """Fit errors [N] on factors [N, K] and an intercept for each movie; intervals and tests over movies.

    Fits are the posterior mode under independent normal priors of deviation `PRIOR_SD`. Standard errors are
    the delete-one jackknife's over movies, with Student's t of one degree of freedom fewer than movies
    (MacKinnon, Nielsen and Webb 2024, arXiv 2406.00650, on logistic regression): with 6 to 12 movies the
    percentiles of a bootstrap of movies cover too little. All are undefined with one movie.

    Returns
    -------
    DataFrame
        A row a factor: `effect` on the log odds of an error, `low`, `high`, its two-sided `p`, and `p_holm`,
        adjusted for the K factors. NaN for a factor that does not vary; all, with fewer than `LEAST_ERRORS`
        errors or other clips.
    """
    n_errors = int(errors.sum())
    effect, low, high, p = np.full((4, factors.shape[1]), np.nan)
    if min(n_errors, len(errors) - n_errors) >= LEAST_ERRORS:
        names, number = np.unique(movies, return_inverse=True)
        varies = factors.max(axis=0) > factors.min(axis=0)
        of_movies = number[:, None] == np.arange(names.size)
        design = np.column_stack([factors[:, varies], of_movies]).astype(np.float64)
        # Clips that are alike in all that counts are one row with a weight: many fits, few rows.
        rows, row_of = np.unique(np.column_stack([design, errors]), axis=0, return_inverse=True)
        counts = np.bincount(row_of.ravel()).astype(np.float64)
        movie_of = np.argmax(rows[:, -1 - names.size : -1], axis=1)
        kept = np.vstack([np.ones(names.size), 1.0 - np.eye(names.size)])
        fits = _fit(rows[:, :-1], rows[:, -1], kept[:, movie_of] * counts)[:, : int(varies.sum())]
        effect[varies] = fits[0]
        if names.size > 1:
            error, freedom = jackknife_error(fits[1:]), names.size - 1
            reach = student.ppf((1 + LEVEL) / 2, freedom) * error
            low[varies], high[varies] = fits[0] - reach, fits[0] + reach
            p[varies] = 2 * student.sf(np.abs(fits[0]) / np.maximum(error, 1e-300), freedom)
    return pd.DataFrame({"effect": effect, "low": low, "high": high, "p": p, "p_holm": holm(p)})


def _fit(X: Floats, y: Floats, weights: Floats) -> Floats:
    """Fit a logistic regression [R, P] of y [N] on X [N, P] for each row of weights [R, N] (Newton)."""
    n, p = X.shape
    theta = np.zeros((len(weights), p))
    products = (X[:, :, None] * X[:, None, :]).reshape(n, p * p)
    for _ in range(N_STEPS):
        mean = expit(theta @ X.T)
        gradient = (weights * (y - mean)) @ X - theta / PRIOR_SD**2
        curvature = (weights * mean * (1 - mean)) @ products
        step = np.linalg.solve(curvature.reshape(-1, p, p) + np.eye(p) / PRIOR_SD**2, gradient[..., None])[
            ..., 0
        ]
        # The mode is unique; a step that overshoots is cut short.
        step *= np.minimum(1.0, 4.0 / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1e-300))
        theta += step
        if np.abs(step).max() < 1e-9:
            break
    return theta


def draw_weights(panels: Mapping[str, Mapping[str, float]], path: Path) -> None:
    """Draw the weights of the factors of errors, one panel per film: positive leads to errors."""

    def draw(figure: Figure) -> None:
        every = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
        for axes, (title, weights) in zip(every, panels.items(), strict=True):
            values = list(weights.values())
            axes.barh(range(len(values)), values, color=[ORANGE if value >= 0 else BLUE for value in values])
            mark_undefined(axes, values)
            axes.set_yticks(range(len(values)), list(weights))
            _finish_panel(axes, title)
        every[0].invert_yaxis()
        figure.supxlabel(f"weight in a logistic regression of errors (log odds)\n{DIRECTIONS}", fontsize=8)

    save(path, (WIDTH, 3.2), draw)


def _finish_panel(axes: Axes, title: str) -> None:
    axes.axvline(0, color=GREY, linewidth=0.8, zorder=0.9)
    axes.set_title(title, loc="left", fontsize=8)
    axes.grid(axis="y", color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)


def draw_forest(panels: Mapping[str, str | Sequence[Row]], path: Path) -> None:
    """Draw effects and intervals, one panel per kind of error; a text where there are none.

    All panels have the same rows: that of a factor which a panel does not have is empty.
    """
    drawn = [rows for rows in panels.values() if not isinstance(rows, str)]
    factors = list(dict.fromkeys(row["factor"] for rows in drawn for row in rows))

    def draw(figure: Figure) -> None:
        every = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
        for axes, (title, rows) in zip(every, panels.items(), strict=True):
            if isinstance(rows, str):
                axes.set_title(title, loc="left", fontsize=8)
                axes.text(0.5, 0.5, rows, transform=axes.transAxes, ha="center", fontsize=7, color=GREY)
                axes.tick_params(axis="y", length=0)
                continue
            for row in rows:
                y = factors.index(row["factor"])
                axes.hlines(y, row["low"], row["high"], color="black", linewidth=1)
                axes.plot(row["effect"], y, "o", color=BLUE, markersize=5)
            values = {row["factor"]: row["effect"] for row in rows}
            mark_undefined(axes, [values.get(factor, 0.0) for factor in factors])
            axes.set_yticks(range(len(factors)), factors)
            axes.set_ylim(len(factors) - 0.4, -0.6)
            _finish_panel(axes, title)
        figure.supxlabel(f"log odds ratio of an error, 95 % interval\n{DIRECTIONS}", fontsize=8)

    save(path, (WIDTH, 1.1 + 0.23 * len(factors)), draw)
