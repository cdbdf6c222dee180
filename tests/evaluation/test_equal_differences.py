"""Differences that are equal in all movies prove nothing: of few clips, a metric has few possible values."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from obygaze_features.manifest import builtin_codebook
from obygaze_models import Dataset, evaluate
from obygaze_models.evaluation.intervals import t_interval
from obygaze_models.evaluation.metrics import metrics_of
from obygaze_models.evaluation.paired_tests import corrected_t
from obygaze_models.protocol.targets import Labels
from obygaze_models.report.run_answers import _compare_with_baselines, _Task
from obygaze_models.report.run_tables import run_report

POSSIBLE = (-0.5, 0.5)
"""Ends of the difference between an AUC and .5."""


def test_equal_differences_have_no_interval_as_nothing_is_known_of_their_variance():
    """In each of three movies an AUC is .25 above .5. The mean is known, and its interval is undefined."""
    interval = t_interval([0.25, 0.25, 0.25], covers="method", possible=POSSIBLE)

    assert interval.mean == 0.25
    assert np.isnan(interval.low)
    assert np.isnan(interval.high)


def test_differences_of_0_in_all_movies_have_no_interval():
    """Two models may rank the few clips of three movies equally well by luck."""
    interval = t_interval([0.0, 0.0, 0.0], covers="method", possible=POSSIBLE)

    assert interval.mean == 0
    assert np.isnan(interval.low)
    assert np.isnan(interval.high)


@pytest.mark.parametrize(
    ("n_positive", "n_negative", "is_above_0"),
    [(1, 1, False), (2, 2, False), (10, 20, True)],
)
def test_equal_differences_have_the_interval_of_rankings_by_chance(n_positive, n_negative, is_above_0):
    """In each of three movies a model has an AUC of 1, which is .5 above chance.

    The differences are equal, so that their interval is as wide as if clips had been ranked by chance: with
    two or four clips a movie an AUC of 1 in all movies may be luck, with thirty hardly.
    """
    lead = 1.0 - 0.5
    # Of the AUC of a random ranking, as of the statistic of Mann and Whitney.
    variance = (n_positive + n_negative + 1) / (12 * n_positive * n_negative)

    interval = t_interval([lead, lead, lead], covers="method", possible=POSSIBLE, variance_by_chance=variance)

    assert (interval.low > 0) == is_above_0


def test_the_p_of_a_difference_that_is_the_same_in_all_movies_is_that_of_equal_signs_by_chance():
    """A model is better by .5 in each of three movies. A t test would divide by a variance of 0.

    All that equal differences show is that they have the same sign. By chance three signs are equal with a
    probability of .25, as three coins that show the same side. Differences of 0 have no sign: p is 1.
    """
    assert corrected_t([0.5, 0.5, 0.5]).p == 2 * 0.5**3
    assert corrected_t([0.0, 0.0, 0.0]).p == 1


def noise(rng, n_clips_of_movie, n_movies):
    """Draw features that know nothing of labels; each movie has one positive clip."""
    n_clips = n_clips_of_movie * n_movies
    movies = np.repeat([f"film{number}" for number in range(n_movies)], n_clips_of_movie)
    levels = np.concatenate(
        [rng.permutation(["S"] + ["EN"] * (n_clips_of_movie - 1)) for _ in range(n_movies)]
    )
    ids = np.array([f"clip{number}" for number in range(n_clips)])
    codebook = builtin_codebook("obygaze12")
    concepts = tuple(concept.name for concept in codebook.concepts)
    labels = Labels(ids, movies, levels, np.zeros((n_clips, len(concepts)), np.bool_), concepts, {})
    features = rng.normal(size=(n_clips, 6)).astype(np.float32)
    return Dataset(features, labels, codebook, "toy", "pooled", "as stored", "0" * 64)


def first_answer(data):
    """Return the sentence of a report that says whether the linear model is better than all baselines."""
    return run_report(evaluate(data, ["linear"], "en_s")).answers[0]


@pytest.mark.long
def test_noise_on_four_movies_of_two_clips_is_not_called_better_than_baselines():
    """Ten corpora of noise: a model ranks both clips of all four movies rightly by luck in one of sixteen."""
    rng = np.random.default_rng(0)

    answers = [first_answer(noise(rng, n_clips_of_movie=2, n_movies=4)) for _ in range(10)]

    n_better = sum(answer.startswith("better than") for answer in answers)
    assert n_better == 0


@pytest.mark.long
@pytest.mark.parametrize(("n_clips_of_movie", "is_better"), [(2, False), (15, True)])
def test_a_model_that_ranks_all_clips_of_four_movies_rightly_is_better_only_if_movies_have_many_clips(
    n_clips_of_movie, is_better
):
    """Each of four movies has one positive clip, which the first feature tells from the others without error.

    With two clips a movie, somebody who tosses a coin ranks all four movies rightly in one of 2^4 = 16
    corpora: too often for the model to be called better than baselines. With 15 clips a movie it is.
    """
    data = noise(np.random.default_rng(0), n_clips_of_movie, n_movies=4)
    features = data.X.copy()
    far_from_noise = 20
    features[:, 0] += far_from_noise * (data.labels.levels == "S")

    assert first_answer(replace(data, X=features)).startswith("better than") == is_better


@pytest.mark.parametrize("baselines", [("median_level", "length"), ("length", "median_level")])
def test_an_undefined_lead_over_one_baseline_is_not_hidden_by_a_clear_lead_over_another(baselines):
    """A model has a rank correlation of 1 in three movies, and leads over two baselines, in either order.

    It leads over `length` by .88 to .90, an interval clearly above 0. It leads over `median_level` by 1 in
    all movies: equal leads have no interval, as a correlation of few clips has few possible values. So
    `median_level` is named as the nearest baseline, and no model is said to beat the baselines.
    """
    of_baseline = {"median_level": [0.0, 0.0, 0.0], "length": [0.10, 0.11, 0.12]}
    correlations = {"linear": pd.Series([1.0, 1.0, 1.0])}
    for name in baselines:
        correlations[name] = pd.Series(of_baseline[name])
    task = _Task(prefix="", name="levels", values=correlations, constant=[], variance_by_chance=np.nan)

    comparison = _compare_with_baselines(task, metrics_of(n_classes=4)["spearman"])

    assert comparison.nearest == "median_level"
    assert comparison.beating == []
