"""Labels, rankings, accuracies and chance are those of the paper and of its tool, digit for digit."""

import itertools
import math

import numpy as np
import pytest

from obygaze_models.evaluation.metrics import expected_average_precision
from obygaze_studies.errors import TaskError
from obygaze_studies.mediaeval15 import (
    CLASSES,
    accuracy,
    average_precision,
    confusion,
    discretise,
    measures,
    pivot_class,
    ranked,
)
from obygaze_studies.mediaeval15.metrics import tie_share
from obygaze_studies.mediaeval15.run_files import read_trec
from obygaze_studies.mediaeval15.score import OFFICIAL_TEST_CLIPS, PUBLISHED


def read_qrels(path):
    """Read TREC relevances by topic and clip, but for negative ones: not judged."""
    topics = {}
    for topic, _, clip, relevance in map(str.split, path.read_text("utf-8").splitlines()):
        topics.setdefault(topic, {}).update({clip: int(relevance)} if int(relevance) >= 0 else {})
    return topics


def mean_measures(topics):
    """Take the mean of topics' measures, and the sum of their counts."""
    counts = ("num_ret", "num_rel", "num_rel_ret")
    return {n: sum(t[n] for t in topics) / (1 if n in counts else len(topics)) for n in topics[0]}


def test_scores_become_the_classes_of_the_oracle(oracle):
    """The task makes three classes of a score of valence, or of arousal, from -1 to 1. A case has a score."""
    for case in oracle["discretise"]["cases"]:
        assert discretise(case["x"], "valence") == case["valence"]
        assert discretise(case["x"], "arousal") == case["arousal"]


@pytest.mark.parametrize("score", [-0.15, 0.15])
def test_a_score_at_a_limit_between_classes_is_neutral(score):
    """Below -.15 valence is negative, above .15 positive."""
    assert discretise(score, "valence") == "neutral"


@pytest.mark.parametrize("score", [1.5, -1.0001, math.nan, math.inf])
def test_a_score_outside_its_scale_is_refused(score):
    """Valence is from -1 to 1."""
    with pytest.raises(TaskError, match="valence"):
        discretise(score, "valence")


@pytest.mark.parametrize("axis", CLASSES)
def test_the_votes_of_three_judges_on_two_pivots_give_a_clip_its_class(oracle, axis):
    """Pivots are clips at the borders of the three classes of an axis, such as valence.

    Three judges said whether a clip is above the low pivot, and whether it is above the high one; majorities
    count. Above none it has the lowest class, above the low one alone the middle class, above both the
    highest. Above the high one alone is a contradiction: no class. The oracle has all cases.
    """
    for case in oracle["pivot_rule"]["cases"]:
        votes_on_low_pivot = [bool(vote) for vote in case["low"]]
        votes_on_high_pivot = [bool(vote) for vote in case["high"]]
        is_contradiction = case["cls"] is None
        expected = None if is_contradiction else CLASSES[axis][case["cls"]]

        assert pivot_class(votes_on_low_pivot, votes_on_high_pivot, axis) == expected


def test_other_than_three_judgements_of_a_pivot_are_refused():
    """Three judges said whether a clip is above the low pivot, and only two whether above the high one."""
    votes_on_low_pivot = [True, True, True]
    votes_on_high_pivot = [True, True]

    with pytest.raises(TaskError, match="high arousal pivot"):
        pivot_class(votes_on_low_pivot, votes_on_high_pivot, "arousal")


def test_average_precision_is_that_of_trec_eval_9_in_every_case(oracle):
    """A case has the scores of clips (run) and which of them are relevant (qrel).

    The task's program is version 9 of trec_eval, which compares scores as floats of 32 bits.
    """
    for case in oracle["ap_cases"]:
        result = average_precision(case["run"], case["qrel"])

        assert result == pytest.approx(case["ap_trec_eval_v9_float32"], rel=1e-12), case["name"]


def test_scores_that_are_equal_in_single_precision_are_tied():
    """The task's program keeps scores as floats of 32 bits, in which .5 and .5 + 1e-9 are the same number.

    Tied clips are ordered by name, the last one first: the only relevant clip, a, is in the second place.
    """
    run = {"b": 0.5, "a": 0.5 + 1e-9}

    assert tie_share(run) == 1.0
    assert ranked(run) == ["b", "a"]
    assert average_precision(run, {"a": 1, "b": 0}) == 0.5


def test_ties_are_ranked_by_name_in_descending_order():
    """As trec_eval does. Capitals stand before small letters, and letters with accents last."""
    assert ranked({"Z": 1, "a": 1, "é": 1, "9": 1, "10": 1}) == ["é", "a", "Z", "9", "10"]


def test_every_measure_of_the_synthetic_run_is_as_trec_eval_printed_it(oracle, synthetic):
    """A run has a score of violence for each of 600 made-up clips, and the qrels say which are violent.

    The oracle has 36 measures by trec_eval, the task's own program. Scikit-learn's average precision treats
    equal scores otherwise, and is another number.
    """
    folder, _, _ = synthetic
    scores = read_trec(folder / "run.trec")["violence"]
    is_violent = read_qrels(folder / "qrels.trec")["violence"]

    result = measures(scores, is_violent)

    expected = oracle["synthetic"]["trec"]
    assert len(expected) == 36
    for name, value in expected.items():
        assert result[name] == pytest.approx(value, rel=1e-9), name
    by_scikit_learn = oracle["synthetic"]["sklearn_ap"]
    assert result["map"] != pytest.approx(by_scikit_learn, abs=5e-3)


def measures_of_trec_evals_test(shared_data):
    """Measure the run that comes with trec_eval: topic -> measures, and their mean as "all"."""
    folder = shared_data / "audits" / "trec_eval"
    run = read_trec(folder / "results.test")
    qrels = read_qrels(folder / "qrels.test")
    of_topic = {topic: measures(run[topic], qrels[topic]) for topic in run}
    return of_topic | {"all": mean_measures(list(of_topic.values()))}


def test_measures_of_the_run_that_comes_with_trec_eval_are_those_that_trec_eval_prints(shared_data):
    """The program trec_eval comes with a run of several topics as its test, and with what it prints of it.

    Each printed line is a measure, a topic and a value with four decimals; "all" is the mean of topics. 100
    lines are of measures that we have too. The precisions at a recall ("iprec_at_recall_0.10") are left out:
    the task's version of the program prints others, which a test of their own compares.
    """
    measures_of_topic = measures_of_trec_evals_test(shared_data)

    n_compared = 0
    lines = (shared_data / "audits" / "trec_eval" / "out.test.aq").read_text("utf-8").splitlines()
    for line in lines:
        name, topic, printed = line.split()
        is_precision_at_recall = "iprec" in name
        if name not in measures_of_topic[topic] or is_precision_at_recall:
            continue
        assert f"{measures_of_topic[topic][name]:.4f}" == f"{float(printed):.4f}", (name, topic)
        n_compared += 1
    assert n_compared == 100


def test_average_precisions_of_the_run_that_comes_with_trec_eval_are_its_own_to_12_digits(
    oracle, shared_data
):
    """The oracle has the average precision ("map") of each topic, and their mean, before they are rounded."""
    measures_of_topic = measures_of_trec_evals_test(shared_data)

    expected = oracle["trec_eval_test"]
    assert measures_of_topic["all"]["map"] == pytest.approx(expected["map"], rel=1e-12)
    for topic, average_precision_of_topic in expected["ap_full_precision"].items():
        assert measures_of_topic[topic]["map"] == pytest.approx(average_precision_of_topic, rel=1e-12)


def test_precisions_at_a_recall_are_those_of_version_9_of_trec_eval(shared_data):
    """Version 9, which the task used, rounds the number of relevant clips at a recall up, unlike version 10.

    The run is the one that comes with trec_eval as its test. The numbers are those that version 9 prints.
    """
    mean_of_topics = measures_of_trec_evals_test(shared_data)["all"]

    assert f"{mean_of_topics['iprec_at_recall_0.10']:.4f}" == "0.3884"
    assert f"{mean_of_topics['iprec_at_recall_0.60']:.4f}" == "0.0822"


@pytest.mark.parametrize("measure", ["map", "Rprec", "bpref", "recip_rank", "recall_5"])
def test_measures_are_1_where_the_only_relevant_clip_is_ranked_first(measure):
    """Clip a has the highest score and is the only relevant one."""
    perfect = measures({"a": 2.0, "b": 1.0}, {"a": 1, "b": 0})

    assert perfect[measure] == 1.0


def test_bpref_counts_irrelevant_clips_above_each_relevant_one():
    """Of the relevant clips, a has no irrelevant clip above it, which gives 1, and c has the only one, 0."""
    scores = {"a": 3.0, "b": 2.0, "c": 1.0}
    is_relevant = {"a": 1, "b": 0, "c": 1}

    assert measures(scores, is_relevant)["bpref"] == (1 + 0) / 2


@pytest.mark.parametrize("score", [math.nan, math.inf, 1e300])
def test_a_clip_whose_score_is_not_finite_in_single_precision_is_refused_by_its_id(score):
    """Scores are compared as floats of 32 bits, as by the task's program; 1e300 is infinite there.

    Clip a has a good score and b the bad one, which can be neither ranked nor measured.
    """
    scores = {"a": 1.0, "b": score}

    with pytest.raises(TaskError, match="'b'"):
        measures(scores, {"a": 1})
    with pytest.raises(TaskError, match="'b'"):
        ranked(scores)


@pytest.mark.parametrize("axis", CLASSES)
def test_accuracy_and_confusion_of_the_synthetic_run_are_the_oracles(oracle, synthetic, axis):
    """Each of 600 made-up clips has a true class on the axis, and a run calls a class for each of them.

    Who always calls the most frequent class has its share as accuracy. The matrix has a row for each true
    class and a column for each one called, so that clips called rightly are on its diagonal.
    """
    _, truth, run = synthetic
    true_class = {row["clip"]: row[f"{axis}_class"] for row in truth}
    called_class = {row["clip"]: row[f"{axis}_pred"] for row in run}

    values, accuracy_of_most_frequent, _ = accuracy(called_class, true_class)
    matrix = confusion(called_class, true_class, CLASSES[axis])

    expected = oracle["synthetic"][f"{axis}_accuracy"]
    assert values["accuracy_all"] == pytest.approx(expected, rel=1e-12)
    assert values["accuracy_returned"] == values["accuracy_all"]  # no clip is missing

    n_clips_of_class = oracle["synthetic"][f"{axis}_counts"]
    assert accuracy_of_most_frequent == max(n_clips_of_class.values()) / len(true_class)
    assert np.trace(matrix) == values["num_correct"]
    n_clips_of_rows = matrix.sum(axis=1).tolist()
    assert n_clips_of_rows == [n_clips_of_class[name] for name in CLASSES[axis]]


def test_published_numbers_are_those_of_the_abstracts(oracle):
    """The package has the best published numbers of the task (`PUBLISHED`), each with its paper.

    The oracle has them as the abstracts of two papers print them, and the number of test clips of the task.
    """
    reference = oracle["reference"]
    fudan_huawei = reference["fudan_huawei_2015"]
    li = reference["li_2016_subclasses"]

    ours = {subtask_and_measure: value for subtask_and_measure, (value, _paper) in PUBLISHED.items()}

    assert ours == {
        ("violence", "map"): fudan_huawei["violence_map"],
        ("violence", "P_100"): li["p100"],
        ("valence", "accuracy_all"): fudan_huawei["valence_acc"],
        ("arousal", "accuracy_all"): fudan_huawei["arousal_acc"],
    }
    assert reference["test_clips"] == OFFICIAL_TEST_CLIPS


def test_a_clip_without_a_call_is_wrong_among_all_and_left_out_among_returned():
    """Of three clips one is called right, one wrong and one not at all, so that 2/3 are called (coverage).

    One is right, which is 1/3 of all and 1/2 of the called ones. A fourth call is of a clip that is unknown.
    Whoever calls each clip calm, as most are, is right in 2/3.
    """
    true = {"right": "calm", "wrong": "active", "not called": "calm"}
    called = {"right": "calm", "wrong": "calm", "not in the truth": "calm"}

    values, accuracy_of_majority, n_unknown = accuracy(called, true)

    assert values["accuracy_all"] == 1 / 3
    assert values["accuracy_returned"] == 1 / 2
    assert values["coverage"] == 2 / 3
    assert n_unknown == 1
    assert accuracy_of_majority == 2 / 3


def test_without_any_call_the_accuracy_of_the_called_clips_is_undefined():
    """It would be 0 of 0."""
    values, *_ = accuracy(called={}, truth={"not called": "calm"})

    assert math.isnan(values["accuracy_returned"])


def test_the_expected_average_precision_is_the_oracles_and_the_mean_of_40000_drawn_orders(oracle):
    """50 clips, of which 5 are relevant, are ranked at random. The oracle has a formula and a simulation.

    The average precision of one order has a deviation of about .09; the mean of the drawn orders may be off
    by four standard errors.
    """
    expected = oracle["expected_random_ap"]
    standard_error = 0.09 / math.sqrt(40_000)

    result = expected_average_precision(50, n_relevant=5)

    assert result == pytest.approx(expected["N50_R5"], rel=1e-12)
    assert result == pytest.approx(expected["simulated_40000"], abs=4 * standard_error)


@pytest.mark.parametrize(("n_clips", "n_relevant"), [(1, 1), (5, 1), (5, 2), (6, 6), (4, 0)])
def test_the_expected_average_precision_is_the_mean_over_all_orders(n_clips, n_relevant):
    """Who orders clips at random gets any order with the same probability; here all of them are made.

    The first clips are relevant.
    """
    is_relevant = {str(clip): int(clip < n_relevant) for clip in range(n_clips)}
    precisions = []
    for order in itertools.permutations(is_relevant):
        scores = {clip: float(-rank) for rank, clip in enumerate(order)}
        precisions.append(average_precision(scores, is_relevant))

    expected = expected_average_precision(n_clips, n_relevant)

    assert expected == pytest.approx(np.mean(precisions))
