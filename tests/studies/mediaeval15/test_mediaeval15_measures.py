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


def test_scores_become_classes_and_the_limits_are_neutral(oracle):
    for case in oracle["discretise"]["cases"]:
        assert discretise(case["x"], "valence") == case["valence"]
        assert discretise(case["x"], "arousal") == case["arousal"]


@pytest.mark.parametrize("score", [1.5, -1.0001, math.nan, math.inf])
def test_a_score_outside_its_scale_is_refused(score):
    with pytest.raises(TaskError, match="valence"):
        discretise(score, "valence")


def test_pivot_judgements_go_by_majority_and_contradictory_ones_give_no_class(oracle):
    for case in oracle["pivot_rule"]["cases"]:
        for axis, names in CLASSES.items():
            expected = None if case["cls"] is None else names[case["cls"]]
            low = [bool(vote) for vote in case["low"]]
            high = [bool(vote) for vote in case["high"]]
            assert pivot_class(low, high, axis) == expected


def test_other_than_three_judgements_of_a_pivot_are_refused():
    with pytest.raises(TaskError, match="high arousal pivot"):
        pivot_class([True] * 3, [True] * 2, "arousal")


def test_average_precision_is_the_tools_in_every_case(oracle):
    for case in oracle["ap_cases"]:
        run = case["run"]
        qrels = case["qrel"]
        nine = case["ap_trec_eval_v9_float32"]
        assert average_precision(run, qrels) == pytest.approx(nine, rel=1e-12), case["name"]


def test_float32_ties_what_doubles_tell_apart_and_ties_go_by_name_descending():
    run = {"b": 0.5, "a": 0.5 + 1e-9}
    qrels = {"a": 1, "b": 0}
    assert ranked(run) == ["b", "a"]
    assert (average_precision(run, qrels), tie_share(run)) == (0.5, 1.0)
    assert ranked({"Z": 1, "a": 1, "é": 1, "9": 1, "10": 1}) == ["é", "a", "Z", "9", "10"]


def test_every_measure_of_the_synthetic_run_is_as_printed(oracle, synthetic):
    folder, _, _ = synthetic
    result = measures(
        read_trec(folder / "run.trec")["violence"], read_qrels(folder / "qrels.trec")["violence"]
    )
    expected = oracle["synthetic"]["trec"]
    assert len(expected) == 36
    assert {name: result[name] for name in expected} == pytest.approx(expected, rel=1e-9)
    assert result["map"] != pytest.approx(oracle["synthetic"]["sklearn_ap"], abs=5e-3)


def test_trec_evals_own_test_files_come_out_as_it_prints_them(oracle, shared_data):
    folder = shared_data / "audits" / "trec_eval"
    run = read_trec(folder / "results.test")
    qrels = read_qrels(folder / "qrels.test")
    result = {topic: measures(run[topic], qrels[topic]) for topic in run}
    result["all"] = mean_measures(list(result.values()))
    expected = oracle["trec_eval_test"]
    for topic, value in expected["ap_full_precision"].items():
        assert result[topic]["map"] == pytest.approx(value, rel=1e-12)
    assert result["all"]["map"] == pytest.approx(expected["map"], rel=1e-12)
    printed = [line.split() for line in (folder / "out.test.aq").read_text("utf-8").splitlines()]
    compared = [
        (f"{result[topic][name]:.4f}", f"{float(value):.4f}")
        for name, topic, value in printed
        if name in result[topic] and "iprec" not in name  # which version 10 rounds otherwise
    ]
    assert len(compared) == 100
    assert all(ours == theirs for ours, theirs in compared)


def test_version_9_rounds_a_share_of_the_relevant_clips_up_where_10_rounds_to_the_nearest(shared_data):
    folder = shared_data / "audits" / "trec_eval"
    run = read_trec(folder / "results.test")
    qrels = read_qrels(folder / "qrels.test")
    nine = mean_measures([measures(run[topic], qrels[topic]) for topic in run])
    shown = {recall: f"{nine[f'iprec_at_recall_{recall}']:.4f}" for recall in ("0.10", "0.60")}
    assert shown == {"0.10": "0.3884", "0.60": "0.0822"}


def test_one_relevant_clip_at_the_top_is_all_there_is_to_find():
    result = measures({"a": 2.0, "b": 1.0}, {"a": 1, "b": 0})
    assert {result[name] for name in ("map", "Rprec", "bpref", "recip_rank", "recall_5")} == {1.0}
    two = measures({"a": 3.0, "b": 2.0, "c": 1.0}, {"a": 1, "b": 0, "c": 1})
    assert two["bpref"] == 0.5  # the one rejected clip is above one of both


@pytest.mark.parametrize("score", [math.nan, math.inf])
def test_scores_that_are_not_finite_are_refused(score):
    with pytest.raises(TaskError, match="clip 'b'"):
        measures({"a": 1.0, "b": score}, {"a": 1})


def test_a_score_too_large_for_float32_is_refused():
    with pytest.raises(TaskError, match="'a'"):
        ranked({"a": 1e300})


def test_accuracies_of_the_synthetic_run_are_as_printed(oracle, synthetic):
    _, truth, run = synthetic
    for axis in CLASSES:
        true = {row["clip"]: row[f"{axis}_class"] for row in truth}
        called = {row["clip"]: row[f"{axis}_pred"] for row in run}
        values, majority, _ = accuracy(called, true)
        expected = oracle["synthetic"][f"{axis}_accuracy"]
        assert values["accuracy_all"] == values["accuracy_returned"] == pytest.approx(expected, rel=1e-12)
        counts = oracle["synthetic"][f"{axis}_counts"]
        assert {name: list(true.values()).count(name) for name in counts} == counts
        assert majority == max(counts.values()) / 600
        matrix = confusion(called, true, CLASSES[axis])
        assert (int(np.trace(matrix)), int(matrix.sum())) == (values["num_correct"], 600)
        assert matrix.sum(axis=1).tolist() == [counts[name] for name in CLASSES[axis]]


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


def test_missing_clips_are_wrong_among_all_and_absent_among_returned():
    called = {"a": "calm", "b": "calm", "x": "calm"}
    values, majority, unknown = accuracy(called, {"a": "calm", "b": "active", "c": "calm"})
    shares = (values["accuracy_returned"], values["accuracy_all"], values["coverage"])
    assert shares == (1 / 2, 1 / 3, 2 / 3)
    assert (unknown, majority) == (1, 2 / 3)
    assert math.isnan(accuracy({}, {"a": "calm"})[0]["accuracy_returned"])


def test_the_expected_average_precision_is_the_oracles(oracle):
    expected = oracle["expected_random_ap"]["N50_R5"]
    assert expected_average_precision(50, 5) == pytest.approx(expected, rel=1e-12)


def test_the_expected_average_precision_is_the_mean_of_40000_drawn_orders(oracle):
    simulated = oracle["expected_random_ap"]["simulated_40000"]
    standard_error = 0.09 / math.sqrt(40_000)  # the precision of one order has a deviation of about .09
    assert expected_average_precision(50, 5) == pytest.approx(simulated, abs=4 * standard_error)


@pytest.mark.parametrize(("n", "n_relevant"), [(1, 1), (5, 1), (5, 2), (6, 6), (4, 0)])
def test_the_expected_average_precision_is_the_mean_over_all_orders(n, n_relevant):
    relevant = {str(clip): int(clip < n_relevant) for clip in range(n)}
    precisions = []
    for order in itertools.permutations(relevant):
        scores = {clip: float(-rank) for rank, clip in enumerate(order)}
        precisions.append(average_precision(scores, relevant))
    assert expected_average_precision(n, n_relevant) == pytest.approx(np.mean(precisions))
