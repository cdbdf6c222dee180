"""Reproduce Figure 6 (4 in arXiv 2401.13296): which concepts and levels go with errors of the model."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression

from obygaze_features.text import counted
from obygaze_models.blas import one_blas_thread
from obygaze_models.dataset import Dataset
from obygaze_models.evaluation import f1_weighted, holm, jackknife_error
from obygaze_models.report import Column, Report, block, number
from obygaze_studies.audit_common.findings import bar_chart, part_of_total, series_of
from obygaze_studies.obygaze12.corpus import VISUAL_CONCEPTS, SourcePart, declared_block
from obygaze_studies.obygaze12.paper_folds import leak_caption
from obygaze_studies.obygaze12.printed_values import PUBLISHED, title_of
from obygaze_studies.obygaze12.protocol_results import PaperResults, StrictResults, pair_folds

FACTORS = (*VISUAL_CONCEPTS, "S", "HN", "EN")
"""The properties of a clip that may go with errors."""

KINDS_OF_ERROR = {"false alarms": (0, (*VISUAL_CONCEPTS, "HN")), "misses": (1, VISUAL_CONCEPTS)}
"""Kind of error -> the label of the clips in which it occurs, and the factors that are estimated for it."""

AXIS_LABEL = "log odds ratio of an error: fewer errors \N{LEFTWARDS ARROW} 0 \N{RIGHTWARDS ARROW} more errors"

Floats = NDArray[np.float64]

INTERVAL_LEVEL = 0.95
"""Level of the intervals."""

PRIOR_SD = 2.5
"""SD of the normal prior of every effect; it keeps separable factors finite, and hardly changes others."""

LEAST_ERRORS = 5
"""Effects are undefined with fewer errors, or fewer other clips: they would come from the prior alone."""


def paper_report(results: Sequence[PaperResults]) -> Report:
    """Reproduce Figure 6 under `paper`: weights of a logistic regression of errors, for each movie."""
    corpus = results[0].corpus
    folds = pair_folds(corpus.manifest)
    parts = [_paper_part(result, leak_caption(folds, result.source)) for result in results]
    return corpus.report("figure6", parts, {"seed": results[0].seed}, folds=folds)


def _paper_part(result: PaperResults, leaks: str) -> SourcePart:
    """Make the part of one source under `paper`; the figure has the movies that the paper draws."""
    rows = _paper_rows(result)
    source = result.source
    movies = PUBLISHED["figures"]["figure6_movies"]
    n_failed = sum(row["n_failed"] for row in rows)
    n_clips = sum(row["n_clips"] for row in rows)
    panels = {}
    for row in rows:
        if row["movie"] in movies and not np.isnan(row["S"]):
            title = f"{row['title']}, {row['n_failed']} of {row['n_clips']} wrong"
            # The rows hold weights of a success, the figure shows those of an error.
            panels[title] = [-row[name] for name in FACTORS]
    return SourcePart(
        source=source,
        rows=rows,
        blocks=[block(source.title, WEIGHTS, rows, (leaks,))],
        answers=[
            (
                f"{source.title}: {counted(n_failed, 'clip is', 'clips are')} called wrongly, of "
                f"{n_clips:,} in {counted(len(rows), 'film')}"
            )
        ],
        draw=bar_chart(labels=FACTORS, series=panels, axis=AXIS_LABEL) if panels else None,
        caption_words=f": {leaks}",
    )


def _weight_of_error(weight: float) -> str:
    """Format the weight of a success as that of an error, with the opposite sign; NaN as a dash."""
    if np.isnan(weight):
        return number(weight, 2)
    return f"{-weight:+.2f}"


WEIGHTS: Sequence[Column] = (
    ("movie", "title", str),
    ("failed", ("n_failed", "n_clips"), part_of_total),
    *((factor, factor, _weight_of_error) for factor in FACTORS),
)


def _paper_rows(result: PaperResults) -> list[dict[str, Any]]:
    """List the movies with the weights of a logistic regression of which clips one model calls correctly.

    Of the models that are tested on a movie, it is the one whose F1 is nearest to their mean. The weights are
    NaN if that model calls all clips of the movie correctly, or none.
    """
    table = result.movie_pairs.table.assign(called=result.movie_pairs.called)
    rows: list[dict[str, Any]] = []
    for movie, rows_of_movie in table.groupby("movie", sort=False):
        # The movie's clips as each model calls them.
        calls_of_models = [calls for _, calls in rows_of_movie.groupby("fold")]
        f1_of_models = [
            f1_weighted(calls["label"].to_numpy(), calls["called"].to_numpy()) for calls in calls_of_models
        ]
        distances = np.abs(np.array(f1_of_models) - np.mean(f1_of_models))
        # In a movie of one class f1_weighted is undefined, and the first model is taken.
        average_calls = calls_of_models[int(np.argmin(np.nan_to_num(distances)))]
        success = (average_calls["label"] == average_calls["called"]).to_numpy()
        weights = np.full(len(FACTORS), np.nan)
        if 0 < success.sum() < len(success):
            X = factors_of_clips(result.source, result.source.rows(average_calls["clip_id"].tolist()))
            weights = LogisticRegression(tol=1e-8, max_iter=10_000).fit(X, success).coef_[0]
        rows.append(
            {
                "features": result.source.title,
                "movie": movie,
                "title": title_of(str(movie)),
                "fold": int(average_calls["fold"].iloc[0]),
                "n_clips": len(success),
                "n_failed": int((~success).sum()),
                **dict(zip(FACTORS, weights.tolist(), strict=True)),
            }
        )
    return rows


def strict_report(results: Sequence[StrictResults]) -> Report:
    """Reproduce Figure 6 under `strict`: effects over all movies, for false alarms and for misses."""
    parts = [_strict_part(result) for result in results]
    return results[0].corpus.report("figure6", parts, {"seed": results[0].seed})


def _strict_part(result: StrictResults) -> SourcePart:
    """Make the part of one source under `strict`: a table for each kind of error, and one figure."""
    source = result.source
    all_rows: list[dict[Any, Any]] = []
    blocks = []
    answers = []
    for kind in KINDS_OF_ERROR:
        rows = _effect_rows(result, kind)
        all_rows += rows
        n_errors = rows[0]["n_errors"]
        n_clips = rows[0]["n_clips"]
        notes = [f"{n_errors} errors of {counted(n_clips, 'clip')}"]
        undefined = _why_undefined(kind, n_errors, n_clips)
        if undefined:
            notes.append(undefined)
        shown_rows = () if undefined else rows
        blocks.append(declared_block(f"{source.title}: {kind}", ("figure6", "strict"), shown_rows, notes))
        answers.append(f"{source.title}, {kind}: {_significant_factors(rows)}")
    factors = list(dict.fromkeys(row["factor"] for row in all_rows))
    values_by_kind = partial(series_of, all_rows, condition="errors", group="factor", groups=factors)
    intervals = (values_by_kind("low"), values_by_kind("high"))
    return SourcePart(
        source=source,
        rows=all_rows,
        blocks=blocks,
        answers=answers,
        draw=bar_chart(labels=factors, series=values_by_kind("effect"), intervals=intervals, axis=AXIS_LABEL),
    )


def _effect_rows(result: StrictResults, kind: str) -> list[dict[Any, Any]]:
    """Estimate the effect of each factor on a kind of error: a row per factor."""
    source = result.source
    label_of_kind, names = KINDS_OF_ERROR[kind]
    clips = result.pair_rows()
    clips = clips[clips["label"] == label_of_kind]
    errors = (clips["label"] != clips["called"]).to_numpy()
    columns = [FACTORS.index(name) for name in names]
    factors = factors_of_clips(source, source.rows(clips["clip_id"].tolist()))[:, columns]
    with one_blas_thread():
        effects = error_factors(factors, errors, clips["movie"].to_numpy(dtype=str))
    effects.insert(0, "factor", ["HN (against EN)" if name == "HN" else name for name in names])
    effects = effects.assign(n_clips=len(errors), n_errors=int(errors.sum()))
    return [{"features": source.title, "errors": kind, **row} for row in effects.to_dict(orient="records")]


def _why_undefined(kind: str, n_errors: int, n_clips: int) -> str:
    """Write why the effects of a kind of error are undefined; "" if they are defined."""
    if n_errors == 0:
        return f"no {kind}: nothing to explain"
    if n_errors < LEAST_ERRORS:
        return f"{n_errors} {kind}: too few to explain, undefined below {LEAST_ERRORS}"
    n_others = n_clips - n_errors
    if n_others < LEAST_ERRORS:
        return f"all but {n_others} are {kind}: too few others to compare"
    return ""


def factors_of_clips(data: Dataset, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the `FACTORS` of some clips of the data as 0 or 1, [N, factors]."""
    levels = [data.levels[rows] == level for level in ("S", "HN", "EN")]
    return np.column_stack([data.labels.present[rows], *levels]).astype(np.float64)


def _significant_factors(rows: Sequence[Mapping[Any, Any]]) -> str:
    """Write which factors go with significantly more or fewer errors."""
    sentences = []
    for row in rows:
        if row["p_holm"] < 0.05:
            change = "more" if row["effect"] > 0 else "fewer"
            sentences.append(f"{change} with {row['factor']}")
    return ", ".join(sentences) or "no factor is shown to go with them"


def error_factors(factors: Floats, errors: NDArray[np.bool_], movies: NDArray[np.str_]) -> pd.DataFrame:
    """Estimate the effects of factors on errors by a logistic regression with an intercept per movie.

    The estimate is the posterior mode under independent normal priors with standard deviation `PRIOR_SD`.
    Standard errors come from the jackknife that leaves out one movie at a time, with Student's t of one
    degree of freedom fewer than there are movies (MacKinnon, Nielsen and Webb 2024, arXiv 2406.00650, on
    logistic regression): with 6 to 12 movies, percentiles of a bootstrap of movies cover too little. With one
    movie intervals and p are undefined.

    Parameters
    ----------
    factors : ndarray, shape [N, K]
        Factors of the clips, 0 or 1.
    errors : bool ndarray, shape [N]
        Whether a clip is called wrongly.
    movies : ndarray of str, shape [N]
        Movie of each clip.

    Returns
    -------
    DataFrame
        A row per factor: its `effect` on the log odds of an error, the interval from `low` to `high`, the
        two-sided `p`, and `p_holm`, adjusted for the K factors. NaN for a factor that does not vary, and for
        all factors with fewer than `LEAST_ERRORS` errors or other clips.
    """
    n_errors = int(errors.sum())
    effect, low, high, p = np.full((4, factors.shape[1]), np.nan)
    if min(n_errors, len(errors) - n_errors) >= LEAST_ERRORS:
        names = np.unique(movies)  # of the movies
        varies = factors.max(axis=0) > factors.min(axis=0)
        # The varying factors, then an indicator of each movie, [N, varying + movies].
        design = np.column_stack([factors[:, varies], movies[:, None] == names]).astype(np.float64)
        # A penalty of C is a normal prior with variance C.
        settings: dict[str, Any] = {"C": PRIOR_SD**2, "fit_intercept": False, "solver": "newton-cholesky"}
        model = LogisticRegression(**settings, tol=1e-10)
        n_varying = int(varies.sum())

        def coefficients(weights: Floats) -> Floats:
            """Fit with a weight for each clip, and return the coefficients of the varying factors."""
            coefficients_of_factors: Floats = model.fit(design, errors, weights).coef_[0, :n_varying]
            return coefficients_of_factors

        estimates = coefficients(np.ones(len(movies)))
        effect[varies] = estimates
        if names.size > 1:
            without_movie = [coefficients((movies != name).astype(np.float64)) for name in names]
            standard_error = jackknife_error(np.stack(without_movie))
            degrees_of_freedom = names.size - 1
            reach = student.ppf((1 + INTERVAL_LEVEL) / 2, degrees_of_freedom) * standard_error
            low[varies] = estimates - reach
            high[varies] = estimates + reach
            t = np.abs(estimates) / np.maximum(standard_error, 1e-300)
            p[varies] = 2 * student.sf(t, degrees_of_freedom)
    return pd.DataFrame({"effect": effect, "low": low, "high": high, "p": p, "p_holm": holm(p)})
