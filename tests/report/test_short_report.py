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


@pytest.mark.parametrize(("direction", "beats"), [(2.0, True), (0.0, False)])
def test_a_sentence_says_which_models_beat_the_baselines_and_on_how_many_films(direction, beats):
    run = evaluate(planted(direction=direction), {"linear": linear_probe()}, task="hn_s", test="enhn_s")
    report = short_report(run)
    (sentence,) = report.answers
    # Which baselines it is compared with: all of the run but random guesses.
    named = "always_positive, always_negative, movie_prior"
    assert (f"better than each of the baselines {named}: linear;" in sentence) == beats
    assert any(f"each of the baselines {named}" in note for note in document(report)["notes"])
    assert {"random_half", "random_prevalence"} < set(run.metrics["model"])
    assert ("no model is shown" in sentence) != beats
    # The same by `compare`, against the baseline that the sentence names.
    nearest = re.search(r"nearest of these, (\w+),", sentence)[1]
    by_film = compare(side(saved(run), "linear"), side(saved(run), nearest)).movies.query("metric == 'auc'")
    above = t_interval(by_film["difference"], covers="method")
    assert not nearest.startswith("random_")  # one draw's luck
    if beats:
        assert (
            f"ahead of the nearest of these, {nearest}, by {above.mean:+.3f} [{above.low:+.3f}, " in sentence
        )
    else:  # the difference the other way round
        assert above.mean < 0
        assert (
            f"behind the nearest of these, {nearest}, by {-above.mean:.3f} [{-above.high:.3f}, " in sentence
        )
    assert f"on {(by_film['difference'] > 0).sum()} of 6 movies" in sentence
    answer, meaning = run_report(run).answers
    assert answer == sentence
    (block,) = report.blocks
    assert [row[0] for row in block.rows] == ["linear", "(chance)"]
    auc = run.metrics.set_index(["model", "metric"]).loc[("linear", "auc")]
    assert f" {100 * auc.movie_mean:.0f} of 100 " in meaning
    assert block.rows[0][1] == f"{auc.movie_mean:.3f} [{auc.movie_low:.3f}, {auc.movie_high:.3f}]"
    assert len(plain(report).splitlines()) <= 11


def test_the_same_lead_on_every_film_has_no_interval():
    (sentence,) = short_report(
        evaluate(planted(direction=50.0), {"linear": linear_probe()}, task="hn_s")
    ).answers
    assert "by +0.500 [undefined] in AUC by movie, on 6 of 6 movies" in sentence


def test_the_more_models_the_less_one_interval_is_worth():
    """Of many models without knowledge the best is ahead by chance."""
    data = planted(direction=0.0)
    models = {f"copy{i}": linear_probe() for i in range(4)}
    sentence = re.search(
        r"by .* in AUC", short_report(evaluate(data, ({"copy0": linear_probe()}), task="hn_s")).answers[0]
    )[0]
    four = re.search(r"by .* in AUC", short_report(evaluate(data, models, task="hn_s")).answers[0])[0]
    alone = [float(number) for number in re.findall(r"-?\d\.\d+", sentence)]
    together = [float(number) for number in re.findall(r"-?\d\.\d+", four)]
    assert alone[0] == together[0]
    assert together[1] < alone[1] < alone[2] < together[2]


def test_levels_are_answered_by_their_error_and_seen_movies_are_said_to_be_seen():
    data = planted(direction=3.0)
    report = short_report(evaluate(data, {"linear": linear_probe()}, task="levels"))
    assert "MAE" in report.answers[0]
    assert report.blocks[0].headers[0] == "model"
    seen = short_report(evaluate(data, {"linear": linear_probe()}, task="hn_s", seen=True))
    assert any("SEEN" in note for note in seen.notes)


def test_films_of_one_clip_are_not_compared_within_films_and_no_number_is_undefined():
    data = planted(direction=3.0, n_movies=24)
    run = evaluate(data.take(np.unique(data.movies, return_index=True)[1]), ["linear"], task="enhn_s")
    for report in (short_report(run), run_report(run)):
        text = plain(report)
        assert "undefined" not in text
        assert " by movie, mean of" not in text
        assert not {"AP", "AUC"} & {name for block in report.blocks for name in block.headers}
        assert "linear" in [row[0] for row in report.blocks[0].rows]


def test_a_control_whose_scores_do_not_vary_is_printed_as_none():
    models = {"linear": linear_probe(), "pcbm_lr_shuffled": linear_probe()}
    run = evaluate(planted(direction=2.0), models, task="hn_s")
    table = run.predictions.table
    is_control = table["model"] == "pcbm_lr_shuffled"
    constant = table.assign(score=table["score"].where(~is_control, table["fold"].astype(float)))
    flat = replace(run, predictions=replace(run.predictions, table=constant))
    for report, has_row in (
        (short_report(run), True),
        (short_report(flat), False),
        (run_report(flat), False),
    ):
        for block in report.blocks:
            assert ("pcbm_lr_shuffled" in [row[0] for row in block.rows]) == has_row
            assert any("pcbm_lr_shuffled" in note for note in block.notes) != has_row
