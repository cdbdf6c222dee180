"""Reproduce Figure 6 (4 in arXiv 2401.13296): which concepts and levels go with errors of the model."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression

from obygaze_features.text import counted, signed
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

ALPHA = 0.05
"""Level of the tests: an adjusted p below it is significant."""

SMALLEST_ERROR = 1e-300
"""What stands for a standard error of 0, so that t is huge and not undefined."""

PRIOR_SD = 2.5
"""SD of the normal prior of every effect; it keeps separable factors finite, and hardly changes others."""

MIN_ERRORS = 5
"""Effects are undefined with fewer errors, or fewer other clips: they would come from the prior alone."""


def paper_report(results: Sequence[PaperResults]) -> Report:
    """Reproduce Figure 6 under `paper`: for each movie, a logistic regression of errors on the factors.

    The table and the figure show its weights.
    """
    corpus = results[0].corpus
    folds = pair_folds(corpus.manifest)
    parts = [_paper_part(result, leak_caption(folds, result.source)) for result in results]
    return corpus.report("figure6", parts, {"seed": results[0].seed}, folds=folds)


def _paper_part(result: PaperResults, leaks: str) -> SourcePart:
    """Make the table of one source under `paper`, and its figure of the movies that the paper draws.

    `leaks` is the note on test clips that are seen in training.
    """
    rows = _paper_rows(result)
    source = result.source
    movies = PUBLISHED["figures"]["figure6_movies"]
    n_failed = sum(row["n_failed"] for row in rows)
    n_clips = sum(row["n_clips"] for row in rows)

    panels = {}  # title of a movie's panel -> a value for each factor
    for row in rows:
        has_weights = not np.isnan(row[FACTORS[0]])  # all weights of a movie are NaN, or none
        if row["movie"] in movies and has_weights:
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
        return number(weight, digits=2)
    return signed(-weight, 2)


WEIGHTS: Sequence[Column] = (
    ("movie", "title", str),
    ("failed", ("n_failed", "n_clips"), part_of_total),
    *((factor, factor, _weight_of_error) for factor in FACTORS),
)


def _paper_rows(result: PaperResults) -> list[dict[str, Any]]:
    """Explain for each movie on which clips a model succeeds: a row with a weight for each factor.

    A factor is a concept or a level that a clip may have. The weights are those of a logistic regression of
    "the model's call is correct" on the factors, over the movie's clips. Several models are tested on a
    movie, each trained on another pair of movies; the typical one of them is explained
    (`_predictions_of_typical_model`).
    """
    table = result.movie_pairs.table.assign(called=result.movie_pairs.called)
    rows: list[dict[str, Any]] = []
    for movie, predictions in table.groupby("movie", sort=False):
        typical = _predictions_of_typical_model(predictions)
        is_correct = (typical["label"] == typical["called"]).to_numpy()
        weights = _weights_of_success(result.source, typical["clip_id"].tolist(), is_correct)

        rows.append(
            {
                "features": result.source.title,
                "movie": movie,
                "title": title_of(str(movie)),
                "fold": int(typical["fold"].iloc[0]),
                "n_clips": len(is_correct),
                "n_failed": int((~is_correct).sum()),
                **dict(zip(FACTORS, weights.tolist(), strict=True)),
            }
        )
    return rows


def _predictions_of_typical_model(predictions: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of one model: that whose weighted F1 is nearest to the mean of all models.

    In a movie of one class the F1 is undefined, and the first model is taken.

    Parameters
    ----------
    predictions
        Predictions of all models that are tested on a movie; each model has a fold of its own.
    """
    predictions_of_models = [rows_of_model for _, rows_of_model in predictions.groupby("fold")]
    f1_of_models = [
        f1_weighted(rows["label"].to_numpy(), rows["called"].to_numpy()) for rows in predictions_of_models
    ]
    distances_to_mean = np.abs(np.array(f1_of_models) - np.mean(f1_of_models))
    nearest = int(np.argmin(np.nan_to_num(distances_to_mean)))  # of undefined distances the first
    return predictions_of_models[nearest]


def _weights_of_success(data: Dataset, clip_ids: Sequence[str], is_correct: NDArray[np.bool_]) -> Floats:
    """Fit a logistic regression of which clips are called correctly, and return a weight per factor.

    The factors are the visual concepts and the levels of clips (`FACTORS`). The weights are NaN if all clips
    are called correctly, or none, as nothing can be learnt then.
    """
    if is_correct.all() or not is_correct.any():
        return np.full(len(FACTORS), np.nan)
    factors = factors_of_clips(data, data.rows(clip_ids))
    weights: Floats = LogisticRegression(tol=1e-8, max_iter=10_000).fit(factors, is_correct).coef_[0]
    return weights


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
    for kind in KINDS_OF_ERROR:  # false alarms and misses
        rows = _effect_rows(result, kind)  # a row for each factor, such as a concept
        all_rows += rows

        # How many clips there are, and errors among them, is the same for all factors.
        first_row = rows[0]
        n_errors = first_row["n_errors"]
        n_clips = first_row["n_clips"]
        notes = [f"{n_errors} errors of {counted(n_clips, 'clip')}"]

        # If all of the clips are errors, or none, no effect is defined: a note stands in place of the rows.
        shown_rows: Sequence[Mapping[Any, Any]] = rows
        why_undefined = _why_undefined(kind, n_errors, n_clips)
        if why_undefined:
            notes.append(why_undefined)
            shown_rows = ()

        title = f"{source.title}: {kind}"
        blocks.append(declared_block(title, shown_rows, notes, columns_of=("figure6", "strict")))
        answers.append(f"{source.title}, {kind}: {_write_significant(rows)}")

    factors = list(dict.fromkeys(row["factor"] for row in all_rows))  # each once

    def bars_of(column: str) -> dict[str, Any]:
        """Return the values of a column for the chart: kind of error -> a value per factor."""
        return series_of(all_rows, column, condition="errors", group="factor", groups=factors)

    draw = bar_chart(
        labels=factors,
        series=bars_of("effect"),
        intervals=(bars_of("low"), bars_of("high")),
        axis=AXIS_LABEL,
    )
    return SourcePart(source=source, rows=all_rows, blocks=blocks, answers=answers, draw=draw)


def _effect_rows(result: StrictResults, kind: str) -> list[dict[Any, Any]]:
    """Estimate the effect of each factor on a kind of error: a row per factor.

    A factor is a concept that a clip may have, or its level HN. `kind` is "false alarms", which are errors on
    negative clips, or "misses", on positive ones.
    """
    # The clips in which this kind of error can occur, and whether it did
    source = result.source
    label_of_clips, factor_names = KINDS_OF_ERROR[kind]
    predictions = result.pair_rows()
    clips = predictions[predictions["label"] == label_of_clips]
    is_error = (clips["label"] != clips["called"]).to_numpy()

    # The factors of these clips, [clips, factors]
    all_factors = factors_of_clips(source, source.rows(clips["clip_id"].tolist()))
    columns = [FACTORS.index(name) for name in factor_names]
    factors = all_factors[:, columns]
    with one_blas_thread():
        effects = error_factors(factors, is_error, clips["movie"].to_numpy(dtype=str))

    # False alarms are errors on clips of the levels EN and HN: the effect of HN is its difference from EN,
    # and its row says so.
    titles = ["HN (against EN)" if name == "HN" else name for name in factor_names]
    effects.insert(0, "factor", titles)
    effects = effects.assign(n_clips=len(is_error), n_errors=int(is_error.sum()))
    return [{"features": source.title, "errors": kind, **row} for row in effects.to_dict(orient="records")]


def _why_undefined(kind: str, n_errors: int, n_clips: int) -> str:
    """Write why the effects of a kind of error are undefined; "" if they are defined."""
    if n_errors == 0:
        return f"no {kind}: nothing to explain"
    if n_errors < MIN_ERRORS:
        return f"{n_errors} {kind}: too few to explain, undefined below {MIN_ERRORS}"
    n_others = n_clips - n_errors
    if n_others < MIN_ERRORS:
        return f"all but {n_others} are {kind}: too few others to compare"
    return ""


def factors_of_clips(data: Dataset, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the `FACTORS` of some clips as 0 or 1, [N, factors]: first visual concepts, then levels."""
    levels = [data.levels[rows] == level for level in ("S", "HN", "EN")]
    return np.column_stack([data.labels.present[rows], *levels]).astype(np.float64)


def _write_significant(rows: Sequence[Mapping[Any, Any]]) -> str:
    """Write which factors go with significantly more or fewer errors."""
    sentences = []
    for row in rows:
        if row["p_holm"] < ALPHA:
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
        all factors with fewer than `MIN_ERRORS` errors or other clips.
    """
    columns = {name: np.full(factors.shape[1], np.nan) for name in _Effects._fields}
    n_errors = int(errors.sum())
    n_others = len(errors) - n_errors
    if min(n_errors, n_others) >= MIN_ERRORS:
        varies = factors.max(axis=0) > factors.min(axis=0)
        effects = _estimate_effects(factors[:, varies], errors, movies)
        for name, values in effects._asdict().items():
            columns[name][varies] = values
    return pd.DataFrame({**columns, "p_holm": holm(columns["p"])})


class _Effects(NamedTuple):
    """Effects of K factors on the log odds of an error, with their intervals and p, [K] each."""

    effect: Floats
    low: Floats
    high: Floats
    p: Floats


def _estimate_effects(factors: Floats, errors: NDArray[np.bool_], movies: NDArray[np.str_]) -> _Effects:
    """Estimate the effects of factors that vary; intervals and p are NaN with one movie.

    The parameters are those of `error_factors`.
    """
    movie_names = np.unique(movies)
    # The factors, then an indicator of each movie as its intercept, [N, K + movies].
    design = np.column_stack([factors, movies[:, None] == movie_names]).astype(np.float64)
    estimates = _fit_effects(design, errors, np.ones(len(movies)), factors.shape[1])
    if movie_names.size == 1:
        undefined = np.full(len(estimates), np.nan)
        return _Effects(estimates, low=undefined, high=undefined, p=undefined)

    estimates_without_movie = []
    for name in movie_names:
        is_of_other_movie = (movies != name).astype(np.float64)
        estimates_without_movie.append(_fit_effects(design, errors, is_of_other_movie, factors.shape[1]))
    standard_error = jackknife_error(np.stack(estimates_without_movie))

    degrees_of_freedom = movie_names.size - 1
    reach = student.ppf((1 + INTERVAL_LEVEL) / 2, degrees_of_freedom) * standard_error
    t = np.abs(estimates) / np.maximum(standard_error, SMALLEST_ERROR)
    p = 2 * student.sf(t, degrees_of_freedom)
    return _Effects(estimates, low=estimates - reach, high=estimates + reach, p=p)


def _fit_effects(design: Floats, errors: NDArray[np.bool_], weights: Floats, n_factors: int) -> Floats:
    """Fit a logistic regression with a weight for each clip, and return the coefficients of the factors.

    Parameters
    ----------
    design : ndarray, shape [N, n_factors + movies]
        The factors of each clip, then an indicator of each movie.
    errors : bool ndarray, shape [N]
        Whether a clip is called wrongly.
    weights : ndarray, shape [N]
        The weights; a clip of weight 0 is left out.
    n_factors
        Number of factors.
    """
    # A penalty of C is a normal prior with variance C.
    model = LogisticRegression(C=PRIOR_SD**2, fit_intercept=False, solver="newton-cholesky", tol=1e-10)
    coefficients: Floats = model.fit(design, errors, weights).coef_[0]
    return coefficients[:n_factors]
