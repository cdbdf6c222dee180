"""p by refits: films exchange whole sequences of labels, and what is planted stays rare among them."""

from dataclasses import replace
from typing import NamedTuple

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

LINEAR_MODEL = BUILTIN_MODELS["linear"]


@pytest.fixture(scope="module")
def toy_dataset(toy_films):
    """Features and labels of the toy films, in which a linear model finds the levels."""
    store = of.open_store(toy_films / "stores" / "films")
    return om.load_dataset(store, of.read_manifest(toy_films / "films.csv"))


def test_a_film_takes_the_whole_sequence_of_one_film_in_order():
    """For a refit, films exchange their labels as whole sequences, so that neighbours stay alike.

    Each of three films takes the labels of one film, in their order, and no two films take those of the same.
    """
    movies = np.array(["a", "a", "b", "b", "b", "b", "a", "a", "c", "c", "c", "c"])

    rows = exchanged_films(movies, np.random.default_rng(1))  # of each clip, the row whose label it takes

    givers = []
    for movie in ("a", "b", "c"):
        taken_rows = rows[movies == movie].tolist()
        assert taken_rows == sorted(set(taken_rows))
        (giver,) = set(movies[taken_rows])
        givers.append(giver)
    assert sorted(givers) == ["a", "b", "c"]


def test_a_film_takes_labels_of_a_longer_or_shorter_one_at_the_same_relative_places():
    """Film a has the rows 0 and 1, b has 2 to 5: each keeps its labels, or they exchange them.

    Then the clips of a take every second label of b, and those of b take each label of a twice.
    """
    movies = np.array(["a", "a", "b", "b", "b", "b"])

    exchanges = set()
    for seed in range(9):
        rows = exchanged_films(movies, np.random.default_rng(seed))
        exchanges.add(tuple(rows.tolist()))

    each_keeps_its_own = (0, 1, 2, 3, 4, 5)
    each_takes_the_others = (2, 4, 0, 0, 1, 1)
    assert exchanges == {each_keeps_its_own, each_takes_the_others}


TRAINED_AND_TESTED = {"task": "hn_s", "test": "enhn_s", "seed": 3}


@pytest.fixture(scope="module")
def run_of_linear(toy_dataset):
    """A run of a linear model of the toy films."""
    return om.evaluate(toy_dataset, [LINEAR_MODEL], **TRAINED_AND_TESTED)


class Refitted(NamedTuple):
    """A run with refits, and the numbers of refits by which progress was told, one after the other."""

    run: om.Run
    progress: list[int]


@pytest.fixture(scope="module")
def nine_refits(toy_dataset, run_of_linear):
    """The run of a linear model, with nine refits."""
    progress = []
    run = with_refits(run_of_linear, toy_dataset, [LINEAR_MODEL], 9, progress.append, **TRAINED_AND_TESTED)
    return Refitted(run, progress)


@pytest.mark.long
def test_a_model_that_knows_the_label_is_better_than_every_refit(nine_refits):
    """A linear model finds the levels of the toy films in their features. It is trained anew nine times.

    Of n refits p is (1 + those as good) / (1 + n): if all are worse, 1 / (1 + n), the smallest possible.
    Refits learn labels that were exchanged between films, so that their mean AUC is that of chance, .5.
    """
    refits = nine_refits.run.record["refits"]
    (model,) = refits["models"]
    assert model["p"] == 1 / (1 + refits["n"])
    assert model["refits"] == pytest.approx(0.5, abs=0.2)


@pytest.mark.long
def test_every_refit_is_counted_and_reported(nine_refits):
    """Nine refits are asked for; each is trained, or left out if its labels cannot be trained on."""
    refits = nine_refits.run.record["refits"]
    assert nine_refits.progress == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert refits["n"] + refits["left_out"] == 9
    assert any("9 refits" in line for line in om.run_report(nine_refits.run).answers)


@pytest.mark.long
def test_refits_are_the_same_each_time(toy_dataset, run_of_linear):
    """A linear model is trained anew, twice, with labels that films exchange at random, by a seed."""
    first = with_refits(run_of_linear, toy_dataset, [LINEAR_MODEL], 2, **TRAINED_AND_TESTED)
    second = with_refits(run_of_linear, toy_dataset, [LINEAR_MODEL], 2, **TRAINED_AND_TESTED)
    assert first.record == second.record


@pytest.mark.long
def test_a_model_of_noise_is_not_better_than_its_refits(toy_dataset):
    """The features are replaced by noise: trained on the true labels, the model knows no more than refits do.

    If it were better than all nine refits, p would be .1.
    """
    features = np.random.default_rng(0).normal(size=toy_dataset.X.shape).astype(np.float32)
    noise = replace(toy_dataset, X=features)
    run_of_noise = om.evaluate(noise, [LINEAR_MODEL], **TRAINED_AND_TESTED)

    refitted = with_refits(run_of_noise, noise, [LINEAR_MODEL], 9, **TRAINED_AND_TESTED)

    (model,) = refitted.record["refits"]["models"]
    assert model["p"] > 0.1


@pytest.mark.long
def test_refits_of_which_none_can_be_trained_are_refused(toy_dataset):
    """A refit exchanges the labels of films; p is the share of refits as good as the run.

    The run can be trained, as clips of S are in three films. The data for the refits lack one of these. With
    S in two films, whichever they are after an exchange, the model that leaves out one of them finds S in a
    single film, which an inner fold cannot hold out.
    """
    is_s = toy_dataset.levels == "S"
    is_of_three_films = np.isin(toy_dataset.movies, ["film0", "film1", "film2"])
    s_in_three_films = toy_dataset.take(np.flatnonzero(~is_s | is_of_three_films))
    s_in_two_films = s_in_three_films.take(np.flatnonzero(s_in_three_films.movies != "film0"))
    run = om.evaluate(s_in_three_films, ["linear"], task="hn_s")

    with pytest.raises(ProtocolError, match="no refit"):
        with_refits(run, s_in_two_films, [LINEAR_MODEL], n=2, task="hn_s")


@pytest.mark.long
def test_where_every_film_has_one_class_there_is_no_p():
    """Eight films have 12 clips each, all S or all EN, in turns: no film has an AUC.

    A refit exchanges the labels of films, and p is the share of refits with an AUC by film at least as good
    as the run's. Without any AUC there is no such share: it is None in the record, and "-" in the report.
    """
    movies = np.repeat([f"film{number}" for number in range(8)], 12)
    levels = np.repeat(["S", "EN", "S", "EN", "S", "EN", "S", "EN"], 12)
    noise = np.random.default_rng(0).normal(size=(8 * 12, 6))
    films_of_one_class = dataset(noise, levels, movies)
    run = om.evaluate(films_of_one_class, ["linear"], "en_s")

    refitted = with_refits(run, films_of_one_class, [LINEAR_MODEL], n=2, task="en_s")

    (model,) = refitted.record["refits"]["models"]
    assert model["observed"] is None
    assert model["p"] is None
    assert any("p - by" in line for line in om.run_report(refitted).answers)


@pytest.mark.long
def test_the_command_says_what_refits_take_and_their_p(toy_films):
    """It says how long they take before it begins. All 19 refits are worse, so p is 1 / (1 + 19) = .05."""
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
    """The command trains a model anew with labels exchanged: --refits says how often, --model which model."""
    words = [str(toy_films / "films.csv"), str(toy_films / "stores" / "films"), "--task", "hn_s"]
    result = CliRunner().invoke(command, [*words, *options])
    assert result.exit_code == 2
    assert "refits" in result.output


@pytest.mark.long
def test_the_report_says_what_concepts_explain(toy_dataset):
    """Completeness is how much of the label the annotated concepts hold.

    It is the AUC above chance of a model on the annotated concepts, in units of that of a model on the
    features. What a bottleneck (pcbm_lr) has beyond it stands beside.
    """
    run = om.evaluate(toy_dataset, ["linear", "concept_labels", "pcbm_lr"], "hn_s")

    (line,) = [line for line in om.run_report(run).answers if "completeness" in line]

    auc = run.metrics.query("metric == 'auc'").set_index("model")["movie_mean"]
    completeness = (auc["concept_labels"] - 0.5) / (auc["linear"] - 0.5)
    beyond_labels = auc["pcbm_lr"] - auc["concept_labels"]
    assert f"completeness {completeness:.3f} [" in line
    assert f"pcbm_lr {beyond_labels:+.3f}" in line


@pytest.mark.long
def test_the_report_on_models_without_concepts_names_no_completeness(run_of_linear):
    """Completeness compares a model on concepts with one on features. This run has a linear model alone."""
    answers = om.run_report(run_of_linear).answers
    assert not any("completeness" in line for line in answers)


@pytest.mark.parametrize(("n_left_out", "are_named"), [(0, False), (2, True)])
def test_refits_that_could_not_be_trained_are_counted_beside_the_p(run_of_linear, n_left_out, are_named):
    """A p was asked for from nine refits of a model. Two of them could not be trained, or all could.

    A p from seven is coarser than one from nine: the sentence must say how many refits there are, and that
    two are missing.
    """
    of_linear = {"model": "linear", "task": "hn_s", "observed": 0.9, "refits": 0.5, "p": 0.125}
    n_trained = 9 - n_left_out
    refits = {"metric": "auc", "n": n_trained, "left_out": n_left_out, "models": [of_linear]}
    refitted = replace(run_of_linear, record={**run_of_linear.record, "refits": refits})

    (sentence,) = [answer for answer in om.run_report(refitted).answers if "refits" in answer]

    assert f"{n_trained} refits" in sentence
    assert ("2 could not be trained" in sentence) == are_named
