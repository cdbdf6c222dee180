"""A run's answer: one row for each model, and a sentence that claims no more than its films show."""

import re
from dataclasses import replace

import numpy as np
import pytest

from obygaze_models.evaluation import compare, saved, side
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.evaluation.intervals import t_interval
from obygaze_models.models import linear_probe
from obygaze_models.report import document, plain
from obygaze_models.report.run_tables import run_report, short_report
from tests.conftest import planted


def linear_run(data, task="hn_s", **options):
    """Evaluate a linear model beside the baselines."""
    return evaluate(data, {"linear": linear_probe()}, task=task, **options)


@pytest.fixture(scope="module")
def strong():
    """A run of a linear model of six films, in which S clips are moved by two standard deviations."""
    return linear_run(planted(direction=2.0), test="enhn_s")


def lead_over(run, baseline):
    """Return the interval of the linear model's lead over a baseline in AUC, and its films ahead."""
    comparison = compare(side(saved(run), "linear"), side(saved(run), baseline))
    by_film = comparison.movies.query("metric == 'auc'")["difference"]
    return t_interval(by_film, covers="method"), (by_film > 0).sum()


def nearest_baseline(sentence):
    """Return the baseline that a sentence compares the best model with."""
    return re.search(r"nearest of these, (\w+),", sentence)[1]


BASELINES = "always_positive, always_negative, movie_prior"
"""All baselines but random guesses, of which one draw's luck would decide."""


@pytest.mark.long
def test_a_model_that_is_better_than_all_baselines_is_named_with_its_lead_over_the_nearest(strong):
    """The lead is the AUC less .5, but its interval is another: that of an AUC stays within 0 and 1.

    Random guesses are in the run, but never the nearest baseline.
    """
    report = short_report(strong)
    (sentence,) = report.answers
    assert f"better than each of the baselines {BASELINES}: linear;" in sentence
    assert "no model is shown" not in sentence

    assert {"random_half", "random_prevalence"} < set(strong.metrics["model"])
    nearest = nearest_baseline(sentence)
    assert nearest in BASELINES.split(", ")
    assert any(f"each of the baselines {BASELINES}" in note for note in document(report)["notes"])

    lead, n_films_ahead = lead_over(strong, nearest)
    assert f"ahead of the nearest of these, {nearest}, by {lead.mean:+.3f} [{lead.low:+.3f}, " in sentence
    assert f"on {n_films_ahead} of 6 movies" in sentence
    comparison = compare(side(saved(strong), "linear"), side(saved(strong), nearest))
    auc = t_interval(comparison.movies.query("metric == 'auc'")["a"], covers="method", bounds=(0, 1))
    assert lead.mean == pytest.approx(auc.mean - 0.5)
    assert lead.low != pytest.approx(auc.low - 0.5, abs=0.001)
    assert "retrained; on another scale than the AUC's own interval)" in sentence


@pytest.mark.long
def test_a_model_that_knows_nothing_is_behind_the_nearest_baseline_and_not_said_to_beat_any():
    run = linear_run(planted(direction=0.0), test="enhn_s")
    (sentence,) = short_report(run).answers
    assert "no model is shown" in sentence
    assert f"{BASELINES}: linear;" not in sentence
    nearest = nearest_baseline(sentence)
    assert nearest in BASELINES.split(", ")
    lead, n_films_ahead = lead_over(run, nearest)
    assert lead.mean < 0
    assert f"behind the nearest of these, {nearest}, by {-lead.mean:.3f} [{-lead.high:.3f}, " in sentence
    assert f"on {n_films_ahead} of 6 movies" in sentence


def test_a_short_report_has_a_row_for_each_model_and_chance(strong):
    report = short_report(strong)
    (table,) = report.blocks
    model, chance = table.rows
    assert model[0] == "linear"
    assert chance[0] == "(chance)"
    auc = strong.metrics.set_index(["model", "metric"]).loc[("linear", "auc")]
    assert model[1] == f"{auc.movie_mean:.3f} [{auc.movie_low:.3f}, {auc.movie_high:.3f}]"
    assert len(plain(report).splitlines()) <= 11  # it stays short


def test_the_long_report_says_in_words_what_an_auc_means(strong):
    answer, meaning = run_report(strong).answers
    assert answer == short_report(strong).answers[0]
    auc = strong.metrics.set_index(["model", "metric"]).loc[("linear", "auc")]
    assert f" {100 * auc.movie_mean:.0f} of 100 " in meaning


@pytest.mark.long
def test_the_same_lead_on_every_film_has_no_interval():
    (sentence,) = short_report(linear_run(planted(direction=50.0))).answers
    assert "by +0.500 [undefined] in AUC by movie, on 6 of 6 movies" in sentence


def lead_in(report):
    """Read the lead of the best model, and its interval, in a report's sentence."""
    lead = re.search(r"by .* in AUC", report.answers[0])[0]
    return [float(number) for number in re.findall(r"-?\d\.\d+", lead)]


@pytest.mark.long
def test_the_more_models_the_wider_the_interval_of_the_best():
    """Of many models without knowledge the best is ahead by chance."""
    data = planted(direction=0.0)
    four_models = {f"copy{number}": linear_probe() for number in range(4)}
    lead, low, high = lead_in(short_report(linear_run(data)))
    lead_of_four, low_of_four, high_of_four = lead_in(short_report(evaluate(data, four_models, task="hn_s")))
    assert lead_of_four == lead
    assert low_of_four < low < high < high_of_four


@pytest.mark.long
def test_ordered_levels_are_answered_by_their_error():
    report = short_report(linear_run(planted(direction=3.0), task="levels"))
    assert "MAE" in report.answers[0]
    assert report.blocks[0].headers[0] == "model"


@pytest.mark.long
def test_seen_movies_are_said_to_be_seen():
    report = short_report(linear_run(planted(direction=3.0), seen=True))
    assert any("SEEN" in note for note in report.notes)


@pytest.mark.long
def test_a_report_on_films_of_one_clip_has_no_metric_within_films():
    data = planted(direction=3.0, n_movies=24)
    first_clips = np.unique(data.movies, return_index=True)[1]
    run = linear_run(data.take(first_clips), task="enhn_s")
    for report in (short_report(run), run_report(run)):
        text = plain(report)
        assert "undefined" not in text
        assert " by movie, mean of" not in text
        for block in report.blocks:
            assert "AP" not in block.headers
            assert "AUC" not in block.headers
        assert "linear" in [row[0] for row in report.blocks[0].rows]


CONTROL = "pcbm_lr_shuffled"


@pytest.mark.long
def test_a_control_has_a_row_or_a_note_if_it_has_one_score_for_all_clips_of_a_fold():
    """A linear model is evaluated under the name of a control, too."""
    models = {"linear": linear_probe(), CONTROL: linear_probe()}
    run = evaluate(planted(direction=2.0), models, task="hn_s")
    table = run.predictions.table
    one_score_a_fold = table["score"].where(table["model"] != CONTROL, table["fold"].astype(float))
    predictions = replace(run.predictions, table=table.assign(score=one_score_a_fold))
    run_of_constant = replace(run, predictions=predictions)

    for block in short_report(run).blocks:
        assert CONTROL in [row[0] for row in block.rows]
        assert not any(CONTROL in note for note in block.notes)
    for block in (*short_report(run_of_constant).blocks, *run_report(run_of_constant).blocks):
        assert CONTROL not in [row[0] for row in block.rows]
        assert any(CONTROL in note for note in block.notes)


@pytest.mark.long
def test_an_interval_of_the_best_of_several_models_says_of_how_many():
    data = planted(direction=0.0)
    two_models = {"first": linear_probe(), "second": linear_probe()}
    assert "for 2 models together" in short_report(evaluate(data, two_models, task="hn_s")).answers[0]
    assert "models together" not in short_report(linear_run(data)).answers[0]
