"""A summary of predictions: whole movies are the unit of its intervals, and chance stands beside."""

import numpy as np
import pandas as pd
import pytest

from obygaze_models.evaluation import Predictions, summarise
from obygaze_models.evaluation.metrics import METRICS
from obygaze_models.evaluation.summary import by_seed
from tests.evaluation.test_compare import make_predictions


def planted_predictions(*, film_sd, n_movies=12, n_clips=60, seed=0):
    """Make predictions of a model that tells the clips of some films better apart than those of others.

    The scores of S clips are higher than those of other clips by d standard deviations of the noise; from
    film to film, d has a mean of 1 and a standard deviation of `film_sd`.
    """
    film_effects = np.random.default_rng(seed).normal(size=n_movies).repeat(n_clips) * film_sd
    table = make_predictions(1 + film_effects, n_movies=n_movies, n_clips=n_clips, noise=seed)
    return Predictions(table.assign(threshold=0.5))


@pytest.fixture(scope="module")
def predictions_of_12_films():
    """Predictions whose quality differs between films by half an SD."""
    return planted_predictions(film_sd=0.5)


@pytest.fixture(scope="module")
def summary_by_metric(predictions_of_12_films):
    """The summary of `predictions_of_12_films`, a row for each metric."""
    return summarise(predictions_of_12_films).set_index("metric")


def width_of_auc_interval(predictions):
    """Return how wide the interval of the pooled AUC is."""
    auc = summarise(predictions).set_index("metric").loc["auc"]
    assert auc["pooled_low"] < auc["pooled"] < auc["pooled_high"]
    return auc["pooled_high"] - auc["pooled_low"]


def test_films_that_differ_widen_the_interval():
    """Films are the unit of intervals: the more they differ, the less sure is the mean.

    `film_sd` is how much the model's quality differs from film to film.
    """
    films_alike = planted_predictions(film_sd=0.0)
    films_that_differ = planted_predictions(film_sd=1.0)
    assert width_of_auc_interval(films_that_differ) > 1.5 * width_of_auc_interval(films_alike)


def test_clips_tested_in_two_folds_do_not_narrow_the_interval(predictions_of_12_films):
    """Each clip has a second row, of another fold. That is not twice as much evidence.

    Films are the unit of intervals, and both rows of a clip are of the same film.
    """
    table = predictions_of_12_films.table
    in_a_second_fold = table.assign(fold=table["fold"] + 100)
    tested_twice = Predictions(pd.concat([table, in_a_second_fold], ignore_index=True))

    width = width_of_auc_interval(predictions_of_12_films)
    assert width_of_auc_interval(tested_twice) == pytest.approx(width, rel=1e-9)


def test_every_metric_is_within_its_intervals(summary_by_metric):
    """A metric is given once over all clips (pooled), and once as the mean of the films' values."""
    for row in summary_by_metric.to_dict(orient="index").values():
        assert 0 <= row["pooled_low"] < row["pooled"] < row["pooled_high"] <= 1
        assert 0 <= row["movie_low"] < row["movie_mean"] < row["movie_high"] <= 1


def test_metrics_that_compare_scores_of_different_models_are_marked(summary_by_metric):
    """Pooled AP and AUC compare scores of different folds, which come from different models."""
    marked = summary_by_metric.index[summary_by_metric["across_models"]]
    assert set(marked) == {"average_precision", "auc"}


def test_the_chance_level_of_a_metric_stands_beside_it(summary_by_metric):
    """Without knowledge, AUC is one half, and F1 that of the best constant call.

    A random ranking has a higher AP than the prevalence, by the more the fewer its clips: a film has fewer
    than all films together.
    """
    summary = summary_by_metric
    assert summary.loc["auc", "pooled_chance"] == 0.5
    assert summary.loc["within_movie_auc", "movie_chance"] == 0.5
    assert summary.loc["f1_pos", "pooled_chance"] == summary.loc["f1_pos", "best_constant"]
    ap = summary.loc["average_precision"]
    assert ap["movie_chance"] > ap["pooled_chance"] > ap["prevalence"]


METRICS_WITHOUT_METHOD_INTERVAL = [name for name, metric in METRICS.items() if not metric.method_interval]


def test_the_interval_of_the_method_is_wider_than_that_of_the_trained_models(summary_by_metric):
    """A row of the summary has a metric with two intervals of 95 %, for all metrics that have both.

    The method, retrained on other films, varies more than these trained models on other films.
    """
    with_interval = summary_by_metric.drop(METRICS_WITHOUT_METHOD_INTERVAL)
    assert len(with_interval) > 0
    assert (with_interval["method_low"] < with_interval["movie_low"]).all()
    assert (with_interval["movie_high"] < with_interval["method_high"]).all()


def test_metrics_that_depend_on_a_threshold_have_no_interval_of_the_method(summary_by_metric):
    """The thresholds of folds move together, so that such an interval would cover .73 to .95 in place of .95.

    benchmarks/planted/scores.py measures it.
    """
    without_interval = summary_by_metric.loc[METRICS_WITHOUT_METHOD_INTERVAL]
    assert without_interval["method_low"].isna().all()
    assert without_interval["method_high"].isna().all()


def test_several_seeds_have_the_mean_of_their_metrics_and_its_interval(predictions_of_12_films):
    """A run of three seeds is summarised by the mean of the seeds, with their standard deviation beside.

    Seeds differ by noise that is added to the scores.
    """
    table = predictions_of_12_films.table
    rng = np.random.default_rng(1)
    tables = []
    for seed in range(3):
        noisy_score = table["score"] + 0.3 * rng.normal(size=len(table))
        tables.append(table.assign(seed=seed, score=noisy_score))
    of_three_seeds = Predictions(pd.concat(tables, ignore_index=True))

    auc = summarise(of_three_seeds).set_index("metric").loc["auc"]

    metrics_of_seeds = by_seed(of_three_seeds)
    aucs = metrics_of_seeds[metrics_of_seeds["metric"] == "auc"]["pooled"]
    assert auc["pooled"] == pytest.approx(aucs.mean())
    assert auc["seed_sd"] == pytest.approx(aucs.std())
    assert auc["pooled_low"] < aucs.min()


def test_perfect_predictions_have_no_interval_rather_than_one_of_width_0(predictions_of_12_films):
    """The score of each clip is its label. All films have the same metrics, which says nothing of others."""
    table = predictions_of_12_films.table
    perfect = Predictions(table.assign(score=table["label"]))

    summary = summarise(perfect)

    assert (summary["pooled"] == 1).all()
    assert summary[["pooled_low", "pooled_high", "movie_low", "method_high"]].isna().all(axis=None)
