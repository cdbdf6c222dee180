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


def test_a_film_takes_the_whole_sequence_of_one_film_in_order():
    """For a refit, films exchange their labels as whole sequences, so that neighbours stay alike.

    Each film gives its labels to one film.
    """
    movies = np.array(list("aabbbbaacccc"))
    rows = exchanged_films(movies, np.random.default_rng(1))  # of each clip, the row whose label it takes
    givers = []
    for movie in ("a", "b", "c"):
        taken_rows = rows[movies == movie]
        (giver,) = set(movies[taken_rows])
        givers.append(giver)
        assert (np.diff(taken_rows) > 0).all()

    assert sorted(givers) == ["a", "b", "c"]


def test_a_film_takes_labels_of_a_longer_or_shorter_one_at_the_same_relative_places():
    """Film a has the rows 0 and 1, b has 2 to 5: each keeps its labels, or they exchange them."""
    movies = np.array(["a", "a", "b", "b", "b", "b"])
    exchanges = set()
    for seed in range(9):
        rows = exchanged_films(movies, np.random.default_rng(seed))
        exchanges.add(tuple(rows.tolist()))
    of_own_film = (0, 1, 2, 3, 4, 5)
    of_the_other_film = (2, 4, 0, 0, 1, 1)

    assert exchanges == {of_own_film, of_the_other_film}


OPTIONS = {"task": "hn_s", "test": "enhn_s", "seed": 3}


@pytest.fixture(scope="module")
def run(data):
    """A linear model of the toy films."""
    return om.evaluate(data, [LINEAR], **OPTIONS)


@pytest.mark.long
def test_a_model_that_knows_the_label_is_better_than_every_refit(data, run):
    """With n refits that are all worse, p is 1 / (1 + n), the smallest that is possible."""
    progress = []
    refitted = with_refits(run, data, [LINEAR], 9, progress.append, **OPTIONS)

    refits = refitted.record["refits"]
    (model,) = refits["models"]
    assert model["p"] == 1 / (1 + refits["n"])
    assert model["refits"] == pytest.approx(0.5, abs=0.2)  # their mean AUC is that of chance
    assert progress == list(range(1, 10))
    assert refits["n"] + refits["left_out"] == 9
    assert any("9 refits" in line for line in om.run_report(refitted).answers)


@pytest.mark.long
def test_refits_are_the_same_each_time(data, run):
    first = with_refits(run, data, [LINEAR], 2, **OPTIONS)
    second = with_refits(run, data, [LINEAR], 2, **OPTIONS)
    assert first.record == second.record


@pytest.mark.long
def test_a_model_of_noise_is_not_better_than_its_refits(data):
    noise = replace(data, X=np.random.default_rng(0).normal(size=data.X.shape).astype(np.float32))
    run_of_noise = om.evaluate(noise, [LINEAR], **OPTIONS)
    refitted = with_refits(run_of_noise, noise, [LINEAR], 9, **OPTIONS)
    (model,) = refitted.record["refits"]["models"]
    assert model["p"] > 0.1


@pytest.mark.long
def test_where_no_refit_can_be_trained_there_is_no_p(data):
    """S is in three films for the run, and in two of them for the refits.

    Whichever films exchange labels, some film is left without an S clip in its training films.
    """
    is_s = data.levels == "S"
    is_of_three_films = np.isin(data.movies, ["film0", "film1", "film2"])
    s_in_three_films = data.take(np.flatnonzero(~is_s | is_of_three_films))
    s_in_two_films = s_in_three_films.take(np.flatnonzero(s_in_three_films.movies != "film0"))
    run = om.evaluate(s_in_three_films, ["linear"], task="hn_s")

    with pytest.raises(ProtocolError, match="no refit"):
        with_refits(run, s_in_two_films, [LINEAR], 2, task="hn_s")


@pytest.mark.long
def test_where_every_film_has_one_class_there_is_no_p():
    """The AUC of each film is undefined: no refit does as well, and none does worse."""
    movies = np.repeat([f"film{number}" for number in range(8)], 12)
    levels = np.repeat(["S", "EN"] * 4, 12)
    films_of_one_class = dataset(np.random.default_rng(0).normal(size=(96, 6)), levels, movies)
    run = om.evaluate(films_of_one_class, ["linear"], "en_s")
    refitted = with_refits(run, films_of_one_class, [LINEAR], 2, task="en_s")
    (model,) = refitted.record["refits"]["models"]

    assert model["observed"] is None
    assert model["p"] is None
    assert any("p - by" in line for line in om.run_report(refitted).answers)


@pytest.mark.long
def test_the_command_says_what_refits_take_and_their_p(toy_films):
    words = [str(toy_films / "films.csv"), str(toy_films / "stores" / "films"), "--task", "hn_s"]
    words += ["--model", "bayes=sklearn.naive_bayes:GaussianNB", "--refits", "19"]
    result = CliRunner().invoke(command, words)
    assert result.exit_code == 0, result.output
    assert "19 refits of bayes take about" in result.stderr
    assert "bayes: p 0.05" in result.stdout.replace("\n", " ")


@pytest.mark.parametrize(
    "options",
    [["--model", "linear", "--refits", "18"], ["--refits", "19"]],
    ids=["too few for a p of .05: 18 give 1/19 at best", "of no model that was asked for"],
)
def test_the_command_refuses_refits_that_cannot_answer(toy_films, options):
    words = [str(toy_films / "films.csv"), str(toy_films / "stores" / "films"), "--task", "hn_s"]
    result = CliRunner().invoke(command, [*words, *options])
    assert result.exit_code == 2
    assert "refits" in result.output


@pytest.mark.long
def test_the_report_says_what_concepts_explain(data, run):
    run_with_concepts = om.evaluate(data, ["linear", "concept_labels", "pcbm_lr"], "hn_s")

    (line,) = [line for line in om.run_report(run_with_concepts).answers if "completeness" in line]
    auc = run_with_concepts.metrics.query("metric == 'auc'").set_index("model")["movie_mean"]
    completeness = (auc["concept_labels"] - 0.5) / (auc["linear"] - 0.5)
    beyond_labels = auc["pcbm_lr"] - auc["concept_labels"]
    assert f"completeness {completeness:.3f} [" in line
    assert f"pcbm_lr {beyond_labels:+.3f}" in line
    assert not any("completeness" in line for line in om.run_report(run).answers)  # without concepts
