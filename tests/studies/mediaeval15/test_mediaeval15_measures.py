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


def test_scores_become_classes_and_a_score_at_a_limit_between_classes_is_neutral(oracle):
    for case in oracle["discretise"]["cases"]:
        assert discretise(case["x"], "valence") == case["valence"]
        assert discretise(case["x"], "arousal") == case["arousal"]


@pytest.mark.parametrize("score", [1.5, -1.0001, math.nan, math.inf])
def test_a_score_outside_its_scale_is_refused(score):
    with pytest.raises(TaskError, match="valence"):
        discretise(score, "valence")


@pytest.mark.parametrize("axis", CLASSES)
def test_the_majority_of_three_judges_places_a_clip_between_two_pivots(oracle, axis):
    """Above the low pivot and below the high one it is of the middle class; contradictions give no class."""
    for case in oracle["pivot_rule"]["cases"]:
        is_above_low_pivot = [bool(vote) for vote in case["low"]]
        is_above_high_pivot = [bool(vote) for vote in case["high"]]
        expected = None if case["cls"] is None else CLASSES[axis][case["cls"]]
        assert pivot_class(is_above_low_pivot, is_above_high_pivot, axis) == expected


def test_other_than_three_judgements_of_a_pivot_are_refused():
    with pytest.raises(TaskError, match="high arousal pivot"):
        pivot_class([True] * 3, [True] * 2, "arousal")


def test_average_precision_is_that_of_trec_eval_9_in_every_case(oracle):
    for case in oracle["ap_cases"]:
        expected = case["ap_trec_eval_v9_float32"]
        assert average_precision(case["run"], case["qrel"]) == pytest.approx(expected, rel=1e-12), case[
            "name"
        ]


def test_scores_that_are_equal_in_single_precision_are_tied():
    run = {"b": 0.5, "a": 0.5 + 1e-9}
    assert tie_share(run) == 1.0
    assert ranked(run) == ["b", "a"]
    assert average_precision(run, {"a": 1, "b": 0}) == 0.5


def test_ties_are_ranked_by_name_in_descending_order():
    """As trec_eval does. Capitals stand before small letters, and letters with accents last."""
    assert ranked({"Z": 1, "a": 1, "é": 1, "9": 1, "10": 1}) == ["é", "a", "Z", "9", "10"]


def test_every_measure_of_the_synthetic_run_is_as_trec_eval_printed_it(oracle, synthetic):
    folder, _, _ = synthetic
    result = measures(
        read_trec(folder / "run.trec")["violence"], read_qrels(folder / "qrels.trec")["violence"]
    )
    expected = oracle["synthetic"]["trec"]

    assert len(expected) == 36
    assert {name: result[name] for name in expected} == pytest.approx(expected, rel=1e-9)
    # Scikit-learn's average precision, which treats ties otherwise, is another one.
    assert result["map"] != pytest.approx(oracle["synthetic"]["sklearn_ap"], abs=5e-3)


def test_measures_of_trec_evals_test_files_are_those_that_it_prints(oracle, shared_data):
    """The run comes with trec_eval as its test.

    Version 9 rounds the number of relevant clips up for the precision at a recall; the printed file is of
    version 10, which does otherwise.
    """
    folder = shared_data / "audits" / "trec_eval"
    run = read_trec(folder / "results.test")
    qrels = read_qrels(folder / "qrels.test")
    by_topic = {topic: measures(run[topic], qrels[topic]) for topic in run}
    by_topic["all"] = mean_measures(list(by_topic.values()))

    n_compared = 0
    lines = (folder / "out.test.aq").read_text("utf-8").splitlines()  # of measure, topic and value
    for name, topic, printed in map(str.split, lines):
        if name in by_topic[topic] and "iprec" not in name:
            assert f"{by_topic[topic][name]:.4f}" == f"{float(printed):.4f}", (name, topic)
            n_compared += 1
    assert n_compared == 100
    assert f"{by_topic['all']['iprec_at_recall_0.10']:.4f}" == "0.3884"  # as version 9 prints
    assert f"{by_topic['all']['iprec_at_recall_0.60']:.4f}" == "0.0822"
    expected = oracle["trec_eval_test"]
    for topic, value in (expected["ap_full_precision"] | {"all": expected["map"]}).items():
        assert by_topic[topic]["map"] == pytest.approx(value, rel=1e-12)


def test_measures_are_1_where_the_only_relevant_clip_is_ranked_first_and_bpref_counts_those_above():
    perfect = measures({"a": 2.0, "b": 1.0}, {"a": 1, "b": 0})
    for measure in ("map", "Rprec", "bpref", "recip_rank", "recall_5"):
        assert perfect[measure] == 1.0
    # One of two relevant clips has no irrelevant clip above it (1), the other has the only one (0).
    assert measures({"a": 3.0, "b": 2.0, "c": 1.0}, {"a": 1, "b": 0, "c": 1})["bpref"] == (1 + 0) / 2


@pytest.mark.parametrize("score", [math.nan, math.inf, 1e300])
def test_scores_that_are_not_finite_in_single_precision_are_refused(score):
    with pytest.raises(TaskError, match="'b'"):
        measures({"a": 1.0, "b": score}, {"a": 1})
    with pytest.raises(TaskError, match="'b'"):
        ranked({"a": 1.0, "b": score})


@pytest.mark.parametrize("axis", CLASSES)
def test_accuracy_and_confusion_of_the_synthetic_run_are_the_oracles(oracle, synthetic, axis):
    """Of 600 clips. Calling always the most frequent class has its share as accuracy."""
    _, truth, run = synthetic
    true = {row["clip"]: row[f"{axis}_class"] for row in truth}
    called = {row["clip"]: row[f"{axis}_pred"] for row in run}

    values, majority, _ = accuracy(called, true)
    matrix = confusion(called, true, CLASSES[axis])

    expected = oracle["synthetic"][f"{axis}_accuracy"]
    assert values["accuracy_all"] == pytest.approx(expected, rel=1e-12)
    assert values["accuracy_returned"] == values["accuracy_all"]  # no clip is missing
    counts = oracle["synthetic"][f"{axis}_counts"]
    assert majority == max(counts.values()) / len(true)
    assert np.trace(matrix) == values["num_correct"]
    assert matrix.sum(axis=1).tolist() == [counts[name] for name in CLASSES[axis]]  # rows are true classes


def test_published_numbers_are_those_of_the_abstracts(oracle):
    reference = oracle["reference"]
    fudan = reference["fudan_huawei_2015"]
    li = reference["li_2016_subclasses"]

    assert {on: value for on, (value, _) in PUBLISHED.items()} == {
        ("violence", "map"): fudan["violence_map"],
        ("violence", "P_100"): li["p100"],
        ("valence", "accuracy_all"): fudan["valence_acc"],
        ("arousal", "accuracy_all"): fudan["arousal_acc"],
    }
    assert reference["test_clips"] == OFFICIAL_TEST_CLIPS


def test_a_clip_without_a_call_is_wrong_among_all_and_left_out_among_returned():
    """Of three clips one is called right, one wrong and one not at all.

    That is 1/3 of all and 1/2 of the returned ones.
    """
    true = {"right": "calm", "wrong": "active", "not called": "calm"}
    called = {"right": "calm", "wrong": "calm", "not in the truth": "calm"}
    values, majority, n_unknown = accuracy(called, true)
    assert values["accuracy_all"] == 1 / 3
    assert values["accuracy_returned"] == 1 / 2
    assert values["coverage"] == 2 / 3
    assert n_unknown == 1
    assert majority == 2 / 3
    of_no_call, *_ = accuracy({}, true)
    assert math.isnan(of_no_call["accuracy_returned"])


def test_the_expected_average_precision_is_the_oracles_and_the_mean_of_40000_drawn_orders(oracle):
    expected = oracle["expected_random_ap"]
    standard_error = 0.09 / math.sqrt(40_000)  # the precision of one order has a deviation of about .09
    result = expected_average_precision(50, n_relevant=5)
    assert result == pytest.approx(expected["N50_R5"], rel=1e-12)
    assert result == pytest.approx(expected["simulated_40000"], abs=4 * standard_error)


@pytest.mark.parametrize(("n", "n_relevant"), [(1, 1), (5, 1), (5, 2), (6, 6), (4, 0)])
def test_the_expected_average_precision_is_the_mean_over_all_orders(n, n_relevant):
    relevant = {str(clip): int(clip < n_relevant) for clip in range(n)}
    precisions = []
    for order in itertools.permutations(relevant):
        scores = {clip: float(-rank) for rank, clip in enumerate(order)}
        precisions.append(average_precision(scores, relevant))
    assert expected_average_precision(n, n_relevant) == pytest.approx(np.mean(precisions))
