"""A run's answer: one row for each model, and a sentence that claims no more than its films show."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from obygaze_models.evaluation import compare, saved, side
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.evaluation.intervals import Interval, t_interval
from obygaze_models.evaluation.metrics import METRICS
from obygaze_models.models import linear_probe
from obygaze_models.report import document, plain, run_answers
from obygaze_models.report.run_answers import (
    _BaselineComparison,
    _compare_with_baselines,
    _describe_interval,
    _describe_lead,
    _describe_movies,
    _Lead,
    _Task,
)
from obygaze_models.report.run_tables import run_report, short_report
from tests.conftest import planted


def evaluate_linear(data, task="hn_s", **options):
    """Evaluate a linear model beside the baselines."""
    return evaluate(data, {"linear": linear_probe()}, task=task, **options)


@pytest.fixture(scope="module")
def run_of_good_model():
    """A run of a linear model of six films, in which S clips are moved by two standard deviations."""
    return evaluate_linear(planted(direction=2.0), test="enhn_s")


@pytest.fixture(scope="module")
def sentence_on_good_model(run_of_good_model):
    """The sentence by which a report of `run_of_good_model` answers which model is better."""
    (sentence,) = short_report(run_of_good_model).answers
    return sentence


def aucs_by_film(run, baseline):
    """Return the AUCs of the linear model, film by film, and their differences from a baseline's."""
    comparison = compare(side(saved(run), "linear"), side(saved(run), baseline))
    films = comparison.movies.query("metric == 'auc'")
    return films["a"], films["difference"]


def nearest_baseline(sentence):
    """Return the baseline that a sentence compares the best model with."""
    return re.search(r"nearest of these, (\w+),", sentence)[1]


def auc_of_linear_model(run):
    """Return the row of the linear model's AUC in a run's metrics."""
    return run.metrics.set_index(["model", "metric"]).loc[("linear", "auc")]


@pytest.mark.long
def test_a_model_that_is_better_than_all_baselines_is_named(run_of_good_model, sentence_on_good_model):
    """Three baselines count. Random guesses do not, though the run has two: one draw's luck would decide."""
    baselines = "always_positive, always_negative, movie_prior"
    assert {"random_half", "random_prevalence"} < set(run_of_good_model.metrics["model"])

    assert f"better than each of the baselines {baselines}: linear;" in sentence_on_good_model
    assert "no model is shown" not in sentence_on_good_model
    assert nearest_baseline(sentence_on_good_model) in baselines.split(", ")
    notes = document(short_report(run_of_good_model))["notes"]
    assert any(f"each of the baselines {baselines}" in note for note in notes)


@pytest.mark.long
def test_a_good_models_lead_over_the_nearest_baseline_has_an_interval_over_films(
    run_of_good_model, sentence_on_good_model
):
    """The lead is the mean, over six films, of the difference of two AUCs, with the films it is ahead on."""
    nearest = nearest_baseline(sentence_on_good_model)
    _, differences = aucs_by_film(run_of_good_model, nearest)
    lead = t_interval(differences, covers="method")
    n_films_ahead = (differences > 0).sum()

    sentence = sentence_on_good_model
    assert f"ahead of the nearest of these, {nearest}, by {lead.mean:+.3f} [{lead.low:+.3f}, " in sentence
    assert f"on {n_films_ahead} of 6 movies" in sentence


@pytest.mark.long
def test_a_report_says_that_the_interval_of_a_lead_is_on_another_scale_than_that_of_the_auc(
    run_of_good_model, sentence_on_good_model
):
    """The report's sentence says by how much a model's AUC is above that of the nearest baseline: its lead.

    The baseline's AUC is .5 in every film, so the mean lead is the mean AUC less .5. But the ends of the two
    intervals don't differ by .5: that of the AUC is computed on a scale that keeps it within 0 and 1, that of
    the lead is not. A reader who compares the two is told so.
    """
    aucs, leads = aucs_by_film(run_of_good_model, nearest_baseline(sentence_on_good_model))
    interval_of_lead = t_interval(leads, covers="method")
    interval_of_auc = t_interval(aucs, covers="method", bounds=(0, 1))

    assert interval_of_lead.mean == pytest.approx(interval_of_auc.mean - 0.5)
    assert interval_of_lead.low != pytest.approx(interval_of_auc.low - 0.5, abs=0.001)
    assert "retrained; on another scale than the AUC's own interval)" in sentence_on_good_model


@pytest.fixture(scope="module")
def run_of_guessing_model():
    """A run of a linear model that can only guess: in all six films, S clips have features like others."""
    return evaluate_linear(planted(direction=0.0), test="enhn_s")


@pytest.fixture(scope="module")
def sentence_on_guessing_model(run_of_guessing_model):
    """The sentence by which a report of `run_of_guessing_model` answers which model is better."""
    (sentence,) = short_report(run_of_guessing_model).answers
    return sentence


@pytest.mark.long
def test_a_model_that_can_only_guess_is_not_said_to_beat_any_baseline(sentence_on_guessing_model):
    """Features of S clips are like those of all others. Models that win are listed behind the baselines."""
    baselines = "always_positive, always_negative, movie_prior"

    assert "no model is shown" in sentence_on_guessing_model
    assert f"{baselines}: linear;" not in sentence_on_guessing_model
    assert nearest_baseline(sentence_on_guessing_model) in baselines.split(", ")


@pytest.mark.long
def test_a_model_that_can_only_guess_is_said_to_be_behind_the_nearest_baseline(
    run_of_guessing_model, sentence_on_guessing_model
):
    """The model's mean AUC is below the baseline's: the sentence says by how much, without a minus sign."""
    nearest = nearest_baseline(sentence_on_guessing_model)
    _, leads = aucs_by_film(run_of_guessing_model, nearest)
    lead = t_interval(leads, covers="method")
    assert lead.mean < 0

    distance = f"by {-lead.mean:.3f} [{-lead.high:.3f}, "
    n_films_ahead = (leads > 0).sum()

    assert f"behind the nearest of these, {nearest}, {distance}" in sentence_on_guessing_model
    assert f"on {n_films_ahead} of 6 movies" in sentence_on_guessing_model


def test_a_short_report_has_a_row_for_each_model_and_chance(run_of_good_model):
    """Baselines have no rows, so that the report stays short: 11 lines at most."""
    report = short_report(run_of_good_model)
    (table,) = report.blocks
    row_of_model, row_of_chance = table.rows

    assert row_of_model[0] == "linear"
    auc = auc_of_linear_model(run_of_good_model)
    assert row_of_model[1] == f"{auc.movie_mean:.3f} [{auc.movie_low:.3f}, {auc.movie_high:.3f}]"
    assert row_of_chance[0] == "(chance)"
    assert len(plain(report).splitlines()) <= 11


def test_the_long_report_says_in_words_what_an_auc_means(run_of_good_model):
    """An AUC of .87 means: of 100 pairs of a positive and a negative clip, 87 are in the right order."""
    answer, meaning = run_report(run_of_good_model).answers

    assert answer == short_report(run_of_good_model).answers[0]
    pairs_in_order = 100 * auc_of_linear_model(run_of_good_model).movie_mean
    assert f" {pairs_in_order:.0f} of 100 " in meaning


@pytest.mark.long
def test_a_lead_that_is_the_same_on_every_film_has_an_interval_as_wide_as_random_rankings_would_vary():
    """S clips are so far from all others that the AUC is 1 on all six films; a baseline has .5 on each.

    The model leads by .5 everywhere. Leads that do not differ do not show how they may vary from film to
    film. So the interval takes the variance that AUCs of random rankings of so many clips have, which here
    makes it reach down from .5 to somewhere above .3.
    """
    run = evaluate_linear(planted(direction=50.0))

    (sentence,) = short_report(run).answers

    assert "better than each of the baselines" in sentence
    lead = re.search(r"by \+0\.500 \[\+(0\.\d+), \+0\.500\] in AUC by movie, on 6 of 6 movies", sentence)
    assert lead is not None
    lower_end = float(lead[1])
    assert 0.3 < lower_end < 0.5


def lead_and_its_bounds(report):
    """Read the lead of the best model, and the ends of its interval, in a report's sentence."""
    lead = re.search(r"by .* in AUC", report.answers[0])[0]
    return [float(number) for number in re.findall(r"-?\d\.\d+", lead)]


@pytest.fixture(scope="module")
def report_on_one():
    """The report on a model without knowledge: S clips have the features of all others."""
    return short_report(evaluate_linear(planted(direction=0.0)))


@pytest.fixture(scope="module")
def report_on_four():
    """The report on four copies of the model of `report_on_one`."""
    copies = {f"copy{number}": linear_probe() for number in range(4)}
    return short_report(evaluate(planted(direction=0.0), copies, task="hn_s"))


@pytest.mark.long
def test_the_more_models_the_wider_the_interval_of_the_best(report_on_one, report_on_four):
    """Of many models without knowledge the best is ahead by chance, which its interval must allow for.

    Here four models are copies of the one, so that their best has the same lead.
    """
    lead, low, high = lead_and_its_bounds(report_on_one)
    lead_of_four, low_of_four, high_of_four = lead_and_its_bounds(report_on_four)
    assert lead_of_four == lead
    assert low_of_four < low < high < high_of_four


@pytest.mark.long
def test_an_interval_of_the_best_of_several_models_says_of_how_many(report_on_one, report_on_four):
    """The best of four is ahead by chance, so that its interval is made wider for all of them together."""
    assert "for 4 models together" in report_on_four.answers[0]
    assert "models together" not in report_on_one.answers[0]


@pytest.mark.long
def test_the_answer_of_a_report_on_ordered_levels_compares_models_by_their_mean_absolute_error():
    """Models tell levels in an order, EN, HN and S, by a score on their scale: with an error, not an AUC."""
    run = evaluate_linear(planted(direction=3.0), task="levels")

    report = short_report(run)

    assert "MAE" in report.answers[0]
    assert report.blocks[0].headers[0] == "model"


@pytest.mark.long
def test_both_intervals_of_a_table_write_an_end_that_rounds_to_0_without_a_minus():
    """A table has two intervals of a rank correlation: of these models, after its value, and of the method.

    Both begin a little below 0, at -.0004, which is written 0.000, not -0.000.
    """
    run = evaluate_linear(planted(direction=3.0), task="levels")
    ends_of_these_models = {"movie_low": -0.0004, "movie_high": 0.2}
    ends_of_the_method = {"method_low": -0.0004, "method_high": 0.3}
    metrics = run.metrics.assign(**ends_of_these_models, **ends_of_the_method)

    report = run_report(replace(run, metrics=metrics))

    (table,) = [table for table in report.blocks if table.title.startswith("Spearman by movie")]
    _model, value_and_interval_of_these_models, interval_of_the_method = table.rows[0]
    assert value_and_interval_of_these_models.endswith("[0.000, 0.200]")
    assert interval_of_the_method == "[0.000, 0.300]"


def test_seen_movies_are_said_to_be_seen():
    """With `seen` a film is tested by models that were trained on other scenes of it; a note warns of it."""
    run = evaluate_linear(planted(direction=3.0), seen=True)

    report = short_report(run)

    assert any("SEEN" in note for note in report.notes)


@pytest.mark.long
def test_a_report_on_films_of_one_clip_has_no_columns_of_metrics_that_rank_clips_of_a_film():
    """AUC and AP are computed film by film, and need a positive and a negative clip of the film.

    Each of the 24 films has one clip here. So the columns AUC and AP are left out rather than filled with
    "undefined", as is the caption " by movie, mean of ..."; the model "linear" still has its row.
    """
    data = planted(direction=3.0, n_movies=24)
    _, first_clip_of_each_film = np.unique(data.movies, return_index=True)
    run = evaluate_linear(data.take(first_clip_of_each_film), task="enhn_s")

    for report in (short_report(run), run_report(run)):
        text = plain(report)
        assert "undefined" not in text
        assert " by movie, mean of" not in text
        for block in report.blocks:
            assert "AP" not in block.headers
            assert "AUC" not in block.headers
        names_of_models = [row[0] for row in report.blocks[0].rows]
        assert "linear" in names_of_models


CONTROL = "pcbm_lr_shuffled"


@pytest.fixture(scope="module")
def run_with_control():
    """A run of a linear model, which is also evaluated under the name of a control."""
    models = {"linear": linear_probe(), CONTROL: linear_probe()}
    return evaluate(planted(direction=2.0), models, task="hn_s")


@pytest.mark.long
def test_a_control_has_a_row(run_with_control):
    """pcbm_lr_shuffled is the name of a control; here a linear model is evaluated under it.

    A control is no baseline, and has a row like other models.
    """
    for block in short_report(run_with_control).blocks:
        assert "pcbm_lr_shuffled" in [row[0] for row in block.rows]
        assert not any("pcbm_lr_shuffled" in note for note in block.notes)


@pytest.mark.long
def test_a_control_that_gives_all_clips_of_a_fold_one_score_has_a_note_in_place_of_a_row(run_with_control):
    """Such a control ranks no clips of a film, so that comparing a model with it would show nothing.

    The control is the model pcbm_lr_shuffled. Its scores are replaced by the number of the clip's fold, which
    all test clips of a fold have in common.
    """
    predictions = run_with_control.predictions
    table = predictions.table.copy()
    is_of_control = table["model"] == "pcbm_lr_shuffled"
    table.loc[is_of_control, "score"] = table.loc[is_of_control, "fold"].astype(float)
    run = replace(run_with_control, predictions=replace(predictions, table=table))

    for block in (*short_report(run).blocks, *run_report(run).blocks):
        names_of_models = [row[0] for row in block.rows]
        assert "pcbm_lr_shuffled" not in names_of_models
        assert any("pcbm_lr_shuffled" in note for note in block.notes)


@pytest.mark.long
@pytest.mark.parametrize("report_of", [short_report, run_report], ids=["the short report", "the long one"])
def test_a_run_of_baselines_alone_names_no_best_model(report_of):
    """A run evaluates the baselines alone, so that no answer compares a model with the nearest of them.

    The report still has the baselines' rows, such as that of `movie_prior`.
    """
    run = evaluate(planted(direction=2.0), {}, task="hn_s")

    report = report_of(run)

    assert not any("nearest of these" in answer for answer in report.answers)
    assert "movie_prior" in plain(report)


def planted_comparison(*, mean, low=-0.1, high=0.1, n_models=1, is_auc_above_half=False):
    """What a run's best model of a few is ahead of the nearest baseline, on 4 of 6 films."""
    difference = Interval(mean, low, high, n_movies=6, n_undefined=0)
    return _BaselineComparison(
        n_models,
        ["movie_prior"],
        [],
        "linear",
        "movie_prior",
        difference,
        n_better=4,
        mean=0.6,
        is_auc_above_half=is_auc_above_half,
    )


@pytest.mark.parametrize(
    ("mean_lead", "lead", "movies"),
    [
        pytest.param(0.05, "ahead", "on 4 of", id="ahead"),
        pytest.param(0.0, "ahead", "on 4 of", id="equal on average"),
        pytest.param(-0.05, "behind", "ahead on 4 of", id="behind"),
    ],
)
def test_a_model_whose_mean_lead_is_0_is_not_said_to_be_behind_a_baseline(mean_lead, lead, movies):
    """A model is ahead of a baseline on 4 of 6 films; on average it is ahead, equal or behind.

    "ahead ..., on 4 of 6 movies" says of which films. After "behind ..." the number needs a word of its own,
    "ahead on 4 of 6 movies", as it would be read as that of the films on which the model is behind.
    """
    comparison = planted_comparison(mean=mean_lead)

    assert _describe_lead(comparison).startswith(lead)
    assert _describe_movies(comparison).startswith(movies)


@pytest.mark.parametrize(
    ("is_auc_above_half", "low", "names_scale"),
    [
        pytest.param(True, 0.01, True, id="AUC less .5"),
        pytest.param(False, 0.01, False, id="another lead"),
        pytest.param(True, np.nan, False, id="AUC less .5, without an interval"),
        pytest.param(False, np.nan, False, id="another lead, without an interval"),
    ],
)
def test_the_interval_of_an_auc_above_one_half_is_said_to_be_on_another_scale_than_that_of_the_auc(
    is_auc_above_half, low, names_scale
):
    """If a baseline's AUC is always .5, a model's lead over it is the model's AUC less .5.

    Then the table, which has an interval of the AUC itself, invites a comparison of the two intervals. Of any
    other lead the table has no such interval. An undefined interval (`low` is NaN) can't be compared.
    """
    comparison = planted_comparison(mean=0.1, low=low, high=0.2, is_auc_above_half=is_auc_above_half)

    assert ("another scale" in _describe_interval(comparison)) == names_scale


def test_a_model_beats_the_baselines_if_the_interval_of_its_lead_over_each_is_above_0(monkeypatch):
    """Three models lead over two baselines by intervals whose lower ends are planted.

    Only both intervals of `beats` are above 0. One of `touches` begins at 0, and one of `undefined` has no
    ends, as that of equal differences, and shows nothing. The baseline over which the interval begins lowest
    is the nearest one; both intervals of `beats` begin at .05, and then the last baseline is named.
    """
    beginning_of_interval = {
        "touches": {"movie_prior": 0.2, "always_negative": 0.0},
        "beats": {"movie_prior": 0.05, "always_negative": 0.05},
        "undefined": {"movie_prior": 0.3, "always_negative": np.nan},
    }

    def planted_lead(_task, _metric, model, baseline, *, n_models):
        assert n_models == 3
        low = beginning_of_interval[model][baseline]
        mean = 0.5 if np.isnan(low) else low + 0.1
        return _Lead(Interval(mean, low, mean + 0.1, n_movies=6, n_undefined=0), baseline, n_better=5)

    monkeypatch.setattr(run_answers, "_lead_over", planted_lead)
    models_and_baselines = [*beginning_of_interval, "movie_prior", "always_negative", "random_half"]
    values = {name: pd.Series([0.6, 0.7]) for name in models_and_baselines}
    task = _Task(prefix="", name="hn_s", values=values, constant=[], variance_by_chance=np.nan)

    comparison = _compare_with_baselines(task, METRICS["average_precision"])

    assert comparison.beating == ["beats"]
    assert comparison.best == "beats"
    assert comparison.nearest == "always_negative"
    assert comparison.baselines == ["movie_prior", "always_negative"]
