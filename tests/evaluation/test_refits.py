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

LINEAR = BUILTIN_MODELS["linear"]


@pytest.fixture(scope="module")
def data(toy_films):
    """The toy films."""
    store = of.open_store(toy_films / "stores" / "films")
    return om.load_dataset(store, of.read_manifest(toy_films / "films.csv"))


def test_a_film_takes_the_whole_sequence_of_one_other_in_order():
    movies = np.array([*"aabbbbaacccc"])
    rows = exchanged_films(movies, np.random.default_rng(1))
    givers = []
    for movie in "abc":
        taken_rows = rows[movies == movie]
        (giver,) = set(movies[taken_rows])
        givers.append(giver)
        assert (np.diff(taken_rows) > 0).all()
    assert sorted(givers) == ["a", "b", "c"]


def test_a_film_takes_the_labels_of_the_same_places_of_a_film_of_another_length():
    movies = np.array([*"aabbbb"])
    exchanges = {tuple(exchanged_films(movies, np.random.default_rng(seed)).tolist()) for seed in range(9)}
    assert exchanges == {(0, 1, 2, 3, 4, 5), (2, 4, 0, 0, 1, 1)}


OPTIONS = {"task": "hn_s", "test": "enhn_s", "seed": 3}


@pytest.fixture(scope="module")
def run(data):
    """A linear model of the toy films."""
    return om.evaluate(data, [LINEAR], **OPTIONS)


@pytest.mark.long
def test_what_features_know_is_rare_among_refits(data, run):
    progress = []
    refitted = with_refits(run, data, [LINEAR], 19, progress.append, **OPTIONS)
    assert progress == list(range(1, 20))
    record = refitted.record["refits"]
    assert record["n"] + record["left_out"] == 19
    (model,) = record["models"]
    assert model["p"] == 1 / (1 + record["n"])
    assert model["refits"] == pytest.approx(0.5, abs=0.15)
    assert any("19 refits" in line for line in om.run_report(refitted).answers)


@pytest.mark.long
def test_refits_are_the_same_each_time(data, run):
    first = with_refits(run, data, [LINEAR], 4, **OPTIONS)
    second = with_refits(run, data, [LINEAR], 4, **OPTIONS)
    assert first.record == second.record


@pytest.mark.long
def test_what_noise_knows_is_not_rare_among_refits(data):
    noise = replace(data, X=np.random.default_rng(0).normal(size=data.X.shape).astype(np.float32))
    refitted = with_refits(om.evaluate(noise, [LINEAR], **OPTIONS), noise, [LINEAR], 9, **OPTIONS)
    assert refitted.record["refits"]["models"][0]["p"] > 0.1


def test_without_any_refit_that_can_be_trained_there_is_no_p(data):
    """S is in two films alone: with labels of the same places each refit lacks it for some film."""
    in_three_films = np.isin(data.movies, ["film0", "film1", "film2"]) | (data.levels != "S")
    of_three_films = data.take(np.flatnonzero(in_three_films))
    of_two_films = of_three_films.take(np.flatnonzero(of_three_films.movies != "film0"))
    run = om.evaluate(of_three_films, ["linear"], task="hn_s")
    with pytest.raises(ProtocolError, match="no refit"):
        with_refits(run, of_two_films, [LINEAR], 2, task="hn_s")


def test_what_no_film_defines_has_no_p():
    """Each film has one class, so that its AUC is undefined: no refit does as well, and none does worse."""
    movies = np.repeat([f"film{place}" for place in range(8)], 12)
    levels = np.repeat(["S", "EN"] * 4, 12)
    pure = dataset(np.random.default_rng(0).normal(size=(96, 6)), levels, movies)
    run = om.evaluate(pure, ["linear"], "en_s")
    refitted = with_refits(run, pure, [LINEAR], 2, task="en_s")
    (model,) = refitted.record["refits"]["models"]
    assert model["p"] is None
    assert model["observed"] is None
    assert any("p - by" in line for line in om.run_report(refitted).answers)


@pytest.fixture(scope="module")
def command_line(toy_films):
    """The command's words for the toy films, without a model."""
    return [str(toy_films / "films.csv"), str(toy_films / "stores" / "films"), "--task", "hn_s"]


def test_the_command_says_what_refits_take_and_their_p(command_line):
    words = [*command_line, "--model", "bayes=sklearn.naive_bayes:GaussianNB", "--refits", "19"]
    result = CliRunner().invoke(command, words)
    assert result.exit_code == 0, result.output
    assert "19 refits of bayes take about" in result.stderr
    assert "bayes: p 0.05" in result.stdout.replace("\n", " ")


def test_the_command_refits_no_models_that_were_not_asked_for(command_line):
    assert CliRunner().invoke(command, [*command_line, "--refits", "19"]).exit_code == 2


def test_the_command_refuses_refits_too_few_for_a_p_of_005(command_line):
    result = CliRunner().invoke(command, [*command_line, "--model", "linear", "--refits", "18"])
    assert result.exit_code == 2
    assert "19" in result.output


def test_the_report_says_what_concepts_explain(data):
    run = om.evaluate(data, ["linear", "concept_labels", "pcbm_lr"], "hn_s")
    (line,) = [line for line in om.run_report(run).answers if "completeness" in line]
    auc = run.metrics.query("metric == 'auc'").set_index("model")["movie_mean"]
    completeness = (auc["concept_labels"] - 0.5) / (auc["linear"] - 0.5)
    beyond_labels = auc["pcbm_lr"] - auc["concept_labels"]
    assert f"completeness {completeness:.3f} [" in line
    assert f"pcbm_lr {beyond_labels:+.3f}" in line


def test_the_report_without_concepts_says_nothing_of_completeness(data):
    run = om.evaluate(data, ["linear"], "hn_s")
    assert not any("completeness" in line for line in om.run_report(run).answers)
