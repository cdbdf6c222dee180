"""Reproduce Figure 6 (4 in arXiv 2401.13296): concepts and levels that make the model fail."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression

from obygaze_models.blas import one_blas_thread
from obygaze_models.dataset import Dataset
from obygaze_models.evaluation import f1_weighted, holm, jackknife_error
from obygaze_models.report import Column, Report, block, number
from obygaze_studies.audit_common.findings import bar_chart, of, series_of
from obygaze_studies.obygaze12.corpus import VISUAL_CONCEPTS, Part, declared
from obygaze_studies.obygaze12.paper_folds import leak_caption
from obygaze_studies.obygaze12.printed_values import PUBLISHED, title_of
from obygaze_studies.obygaze12.protocol_results import PaperResults, StrictResults, pair_folds

FACTORS = (*VISUAL_CONCEPTS, "S", "HN", "EN")

KINDS = {"false alarms": (0, (*VISUAL_CONCEPTS, "HN")), "misses": (1, VISUAL_CONCEPTS)}
"""Kinds of errors: of which label they are, and the factors asked for."""

AXIS = "log odds ratio of an error: fewer errors \N{LEFTWARDS ARROW} 0 \N{RIGHTWARDS ARROW} more errors"

Floats = NDArray[np.float64]

LEVEL = 0.95
"""Of the intervals."""

PRIOR_SD = 2.5
"""SD of the normal prior of every effect; it keeps separable factors finite, and hardly changes others."""

LEAST_ERRORS = 5
"""With fewer errors, or fewer other clips, the prior alone would make the effects: they are undefined."""


def paper_report(results: Sequence[PaperResults]) -> Report:
    """Reproduce Figure 6 under `paper`: weights of a logistic regression of errors, movie by movie."""
    corpus = results[0].corpus
    folds = pair_folds(corpus.manifest)
    return corpus.report(
        "figure6",
        [_paper_part(result, leak_caption(folds, result.source)) for result in results],
        {"seed": results[0].seed},
        folds=folds,
    )


def _paper_part(result: PaperResults, leaks: str) -> Part:
    rows = _paper_rows(result)
    source = result.source
    movies = PUBLISHED["figures"]["figure6_movies"]
    n_failed = sum(row["n_failed"] for row in rows)
    n_clips = sum(row["n_clips"] for row in rows)
    panels = {}
    for row in rows:
        if row["movie"] in movies and not np.isnan(row["S"]):
            title = f"{row['title']}, {row['n_failed']} of {row['n_clips']} wrong"
            panels[title] = [-row[name] for name in FACTORS]
    return Part(
        source=source,
        rows=rows,
        blocks=[block(source.title, WEIGHTS, rows, (leaks,))],
        answers=[
            f"{source.title}: {n_failed:,} clips are called wrongly, of {n_clips:,} in {len(rows)} films"
        ],
        draw=bar_chart(labels=FACTORS, series=panels, axis=AXIS) if panels else None,
        drawn=f": {leaks}",
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
    parts = [_strict_part(result) for result in results]
    return results[0].corpus.report("figure6", parts, {"seed": results[0].seed})


def _strict_part(result: StrictResults) -> Part:
    source = result.source
    part = result.pair_rows()
    label = part["label"].to_numpy()
    called = part["called"].to_numpy()
    factors = described(source, source.rows(part["clip_id"].tolist()))
    movies = part["movie"].to_numpy(dtype=str)
    every: list[dict[Any, Any]] = []
    blocks = []
    answers = []
    for kind, (side, names) in KINDS.items():
        is_of_side = label == side
        errors = (label != called)[is_of_side]
        columns = [FACTORS.index(name) for name in names]
        with one_blas_thread():
            fitted = error_factors(factors[is_of_side][:, columns], errors, movies[is_of_side])
        n_errors = int(errors.sum())
        n_clips = len(errors)
        fitted.insert(0, "factor", ["HN (against EN)" if name == "HN" else name for name in names])
        fitted = fitted.assign(n_clips=n_clips, n_errors=n_errors)
        rows = [{"features": source.title, "errors": kind, **row} for row in fitted.to_dict(orient="records")]
        every += rows
        notes = [f"{n_errors} errors of {n_clips} clips"]
        scarce = _scarce(kind, n_errors, n_clips)
        if scarce:
            notes.append(scarce)
        shown = () if scarce else rows
        blocks.append(declared(f"{source.title}: {kind}", ("figure6", "strict"), shown, notes))
        answers.append(f"{source.title}, {kind}: {_in_words(rows)}")
    groups = list(dict.fromkeys(row["factor"] for row in every))
    laid_out = partial(series_of, every, condition="errors", group="factor", groups=groups)
    ends = (laid_out("low"), laid_out("high"))
    return Part(
        source=source,
        rows=every,
        blocks=blocks,
        answers=answers,
        draw=bar_chart(labels=groups, series=laid_out("effect"), ends=ends, axis=AXIS),
    )


def _scarce(kind: str, n_errors: int, n_clips: int) -> str:
    """Say why the factors of a kind of error have no effects; empty where they have."""
    if n_errors == 0:
        return f"no {kind}: nothing to explain"
    if n_errors < LEAST_ERRORS:
        return f"{n_errors} {kind}: too few to explain, undefined below {LEAST_ERRORS}"
    n_right = n_clips - n_errors
    return f"all but {n_right} are {kind}: too few others to compare" if n_right < LEAST_ERRORS else ""


def described(data: Dataset, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Describe clips by the factors, 0 or 1 [N, 11]."""
    levels = [data.levels[rows] == level for level in ("S", "HN", "EN")]
    return np.column_stack([data.labels.present[rows], *levels]).astype(np.float64)


def _in_words(rows: Sequence[Mapping[Any, Any]]) -> str:
    """Say with which factors errors go, of those that are tested."""
    sentences = []
    for row in rows:
        if row["p_holm"] < 0.05:
            change = "more" if row["effect"] > 0 else "fewer"
            sentences.append(f"{change} with {row['factor']}")
    return ", ".join(sentences) or "no factor is shown to go with them"


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
        names = np.unique(movies)
        varies = factors.max(axis=0) > factors.min(axis=0)
        design = np.column_stack([factors[:, varies], movies[:, None] == names]).astype(np.float64)
        # Of the posterior's mode, C is the prior's variance.
        settings: dict[str, Any] = {"C": PRIOR_SD**2, "fit_intercept": False, "solver": "newton-cholesky"}
        model = LogisticRegression(**settings, tol=1e-10)
        n_varying = int(varies.sum())

        def fitted(weights: Floats) -> Floats:
            coefficients: Floats = model.fit(design, errors, weights).coef_[0, :n_varying]
            return coefficients

        fit = fitted(np.ones(len(movies)))
        effect[varies] = fit
        if names.size > 1:
            without = np.stack([fitted((movies != name).astype(np.float64)) for name in names])
            error = jackknife_error(without)
            freedom = names.size - 1
            reach = student.ppf((1 + LEVEL) / 2, freedom) * error
            low[varies] = fit - reach
            high[varies] = fit + reach
            p[varies] = 2 * student.sf(np.abs(fit) / np.maximum(error, 1e-300), freedom)
    return pd.DataFrame({"effect": effect, "low": low, "high": high, "p": p, "p_holm": holm(p)})
