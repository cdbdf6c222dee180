"""A metric of another package, or of a script, is in a run's files and tables as ours are."""

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import obygaze_models as om
from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation import METRICS
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.evaluation.metrics import Metric, fixed, metrics_of
from obygaze_models.report.comparison_tables import comparison_report
from obygaze_models.report.run_tables import run_report

from .. import lab_package

SOURCE = """
import numpy as np
from obygaze_models.evaluation.metrics import Metric, fixed

def recall(y, called):
    return float(called[y == 1].mean()) if (y == 1).any() else float("nan")

lab_recall = Metric("lab_recall", "lab's recall", "called", recall, fixed(0.5))
"""


def accuracy(y, called):
    return float(np.mean(y == called))


ACCURACY = Metric("accuracy", "accuracy", "called", accuracy, fixed(0.5))
HIDDEN = Metric("hidden", "a hidden one", "called", accuracy, fixed(0.5), shown=False)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Return a function that installs the package lab_metrics with entry points of obygaze.metrics."""

    def install(entry_points, source=SOURCE):
        lab_package.install(
            tmp_path, monkeypatch, "lab_metrics", source, f"[obygaze.metrics]\n{entry_points}\n"
        )

    return install


@pytest.mark.long
def test_own_metrics_are_computed_for_every_model_and_reported_unless_hidden(make_planted, installed):
    """Two metrics are of a script, one of them hidden, and one of another package."""
    installed("lab_recall = lab_metrics:lab_recall")
    run = evaluate(make_planted(direction=3.0), ["linear"], "hn_s", metrics=[ACCURACY, HIDDEN])

    values = run.metrics.set_index(["model", "metric"])["pooled"]
    is_linear = run.predictions.table["model"] == "linear"
    share_right = np.mean(run.predictions.called[is_linear] == run.predictions.table["label"][is_linear])
    assert values["linear", "accuracy"] == share_right
    assert values["linear", "hidden"] == share_right
    assert values["always_positive", "lab_recall"] == 1
    assert values["always_negative", "lab_recall"] == 0

    headers = {header for block in run_report(run).blocks for header in block.headers}
    assert {"accuracy", "lab's recall"} <= headers
    assert "a hidden one" not in headers


@pytest.mark.long
def test_runs_are_compared_by_a_metric_of_another_package_without_a_test(make_planted, installed):
    """It is in no family of tests, so that it does not change the corrected p of built-in metrics."""
    installed("lab_recall = lab_metrics:lab_recall")
    run = om.saved(evaluate(make_planted(direction=3.0), ["linear"], "hn_s"))
    report = comparison_report(om.compare(om.side(run, "linear"), om.side(run, "movie_prior")))
    (row_of_recall,) = [row for row in report.blocks[0].rows if row[0] == "lab's recall"]
    corrected_p = row_of_recall[-1]

    assert corrected_p == "undefined"
    assert report.answers


def test_a_metric_of_levels_is_computed_for_ordered_levels_only():
    of_levels = Metric("off", "off", "called", accuracy, fixed(0.5), of_levels=True)
    assert "off" in metrics_of(4, [of_levels])
    assert list(metrics_of(2, [of_levels])) == list(METRICS)


@pytest.mark.parametrize(
    ("reads", "bounds", "message"),
    [
        ("scores", (0.0, 1.0), "metric off: reads 'scores': expected 'score' or 'called'"),
        ("called", (1.0, 0.0), "metric off: bounds"),
    ],
    ids=["it reads a misspelt `score`", "its bounds are the wrong way round"],
)
def test_a_metric_that_cannot_be_computed_is_refused(reads, bounds, message):
    with pytest.raises(ProtocolError, match=message):
        Metric("off", "off", reads, accuracy, fixed(0.5), bounds=bounds)


def test_a_value_outside_the_bounds_is_refused_with_what_to_state(make_planted):
    """A metric's bounds are 0 and 1 unless it states others."""

    def below(y, called):
        return accuracy(y, called) - 2

    metric = Metric("below", "below", "called", below, fixed(-1.5))
    with pytest.raises(ProtocolError, match=r"metric below: -\S+ is outside its bounds, 0 to 1: state them"):
        evaluate(make_planted(direction=3.0), ["linear"], "hn_s", metrics=[metric])


@pytest.mark.parametrize("least", [-3.0, -math.inf])
def test_a_metric_with_its_own_bounds_has_intervals(make_planted, least):
    def squared_skill(y, called):
        return 1 - float(np.mean((y - called) ** 2)) / 0.25

    bounds = (least, 1.0)
    metric = Metric(
        "skill", "skill", "called", squared_skill, fixed(0.0), bounds=bounds, method_interval=True
    )
    run = evaluate(make_planted(direction=1.0), ["linear"], "hn_s", metrics=[metric])
    row = run.metrics.set_index(["model", "metric"]).loc["linear", "skill"]
    assert row["pooled_low"] < row["pooled"] < row["pooled_high"] < 1
    assert row["method_low"] < row["movie_mean"] < row["method_high"] < 1


@pytest.mark.parametrize(
    "own_metrics",
    [[METRICS["auc"]], [accuracy], [ACCURACY, ACCURACY]],
    ids=["the name of a built-in metric", "a function that is no metric", "one name twice"],
)
def test_a_metric_of_a_known_name_or_no_metric_is_refused(own_metrics):
    with pytest.raises(ProtocolError):
        metrics_of(2, own_metrics)


def test_a_metric_of_a_known_name_is_refused_before_models_are_trained(make_planted):
    class NeverTrained(LogisticRegression):
        def fit(self, *_, **__):
            pytest.fail("it was trained")

    never = om.ModelSpec("never", "never", make=lambda _seed: NeverTrained())
    with pytest.raises(ProtocolError, match="there is a metric auc already"):
        evaluate(make_planted(direction=3.0), [never], "hn_s", metrics=[METRICS["auc"]])


def test_an_entry_point_that_is_no_metric_is_refused_by_its_name(installed):
    installed("odd = lab_metrics:recall")
    with pytest.raises(ProtocolError, match="odd"):
        metrics_of(2)
