"""p by refits: films exchange whole sequences of labels, and what is planted stays rare among them."""

from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import obygaze_features as of
import obygaze_models as om
from obygaze_models.commands.evaluate_commands import evaluate as command
from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.refits import exchanged_films, with_refits
from obygaze_models.models.registry import BUILTIN_MODELS
from tests.conftest import dataset


@pytest.fixture(scope="module")
def data(toy_films):
    return om.load_dataset(
        of.open_store(toy_films / "stores" / "films"), of.read_manifest(toy_films / "films.csv")
    )


def test_a_film_takes_the_whole_sequence_of_one_other_in_order():
    movies = np.array([*"aabbbbaacccc"])
    rows = exchanged_films(movies, np.random.default_rng(1))
    givers = [set(movies[rows[movies == movie]]) for movie in "abc"]
    assert all(len(giver) == 1 for giver in givers)
    assert set().union(*givers) == {*"abc"}
    assert all((np.diff(rows[movies == movie]) > 0).all() for movie in "abc")
    uneven = np.array([*"aabbbb"])
    taken = {tuple(exchanged_films(uneven, np.random.default_rng(seed)).tolist()) for seed in range(9)}
    assert taken == {(0, 1, 2, 3, 4, 5), (2, 4, 0, 0, 1, 1)}


@pytest.mark.long
def test_what_features_know_is_rare_among_refits_and_said(data):
    linear = BUILTIN_MODELS["linear"]
    how = {"task": "hn_s", "test": "enhn_s", "seed": 3}
    run = om.evaluate(data, [linear], **how)
    done = []
    result = with_refits(run, data, [linear], 19, done.append, **how)
    assert done == [*range(1, 20)]
    told = result.record["refits"]
    (row,) = told["models"]
    assert (row["p"], told["n"] + told["left_out"]) == (1 / (1 + told["n"]), 19)
    assert abs(row["refits"] - 0.5) < 0.15
    assert result.record == with_refits(run, data, [linear], 19, **how).record
    assert any("19 refits" in line for line in om.run_report(result).answers)
    noise = replace(data, X=np.random.default_rng(0).normal(size=data.X.shape).astype(np.float32))
    of_noise = with_refits(om.evaluate(noise, [linear], **how), noise, [linear], 9, **how)
    assert of_noise.record["refits"]["models"][0]["p"] > 0.1


def test_refits_that_cannot_be_trained_are_left_out_and_counted(data):
    """S is in three films, the fewest; where a film takes another's labels at the same places it stays so."""
    rare = np.isin(data.movies, ["film0", "film1", "film2"]) | (data.levels != "S")
    few = data.take(np.flatnonzero(rare))
    how = {"task": "hn_s"}
    run = om.evaluate(few, ["linear"], **how)
    short = few.take(np.flatnonzero(~np.isin(few.movies, ["film0"])))
    with pytest.raises(ProtocolError, match="no refit"):
        with_refits(run, short, [BUILTIN_MODELS["linear"]], 2, **how)


def test_what_no_film_defines_has_no_p():
    """Each film has one class, so that its AUC is undefined: no refit does as well, and none does worse."""
    movies = np.repeat([f"film{place}" for place in range(8)], 12)
    levels = np.repeat(["S", "EN"] * 4, 12)
    pure = dataset(np.random.default_rng(0).normal(size=(96, 6)), levels, movies)
    run = om.evaluate(pure, ["linear"], "en_s")
    result = with_refits(run, pure, [BUILTIN_MODELS["linear"]], 2, task="en_s")
    (row,) = result.record["refits"]["models"]
    assert (row["p"], row["observed"]) == (None, None)
    assert any("p - by" in line for line in om.run_report(result).answers)


def test_the_command_says_what_refits_take_and_their_p(toy_films):
    asked = [str(toy_films / "films.csv"), str(toy_films / "stores" / "films"), "--task", "hn_s"]
    quick = ["--model", "bayes=sklearn.naive_bayes:GaussianNB"]
    done = CliRunner().invoke(command, [*asked, *quick, "--refits", "19"])
    assert done.exit_code == 0, done.output
    assert "19 refits of bayes take about" in done.stderr
    assert "bayes: p 0.05" in done.stdout.replace("\n", " ")
    assert CliRunner().invoke(command, [*asked, "--refits", "19"]).exit_code == 2
    too_few = CliRunner().invoke(command, [*asked, "--model", "linear", "--refits", "18"])
    assert (too_few.exit_code, "19" in too_few.output) == (2, True)


def test_a_table_with_concepts_in_time_says_their_completeness(data):
    run = om.evaluate(data, ["linear", "concept_labels", "pcbm_lr"], "hn_s")
    (line,) = [line for line in om.run_report(run).answers if "completeness" in line]
    auc = run.metrics.query("metric == 'auc'").set_index("model")["movie_mean"]
    share = (auc["concept_labels"] - 0.5) / (auc["linear"] - 0.5)
    beyond = auc["pcbm_lr"] - auc["concept_labels"]
    assert f"completeness {share:.3f} [" in line
    assert f"pcbm_lr {beyond:+.3f}" in line
    without = om.evaluate(data, ["linear"], "hn_s")
    assert not any("completeness" in line for line in om.run_report(without).answers)
