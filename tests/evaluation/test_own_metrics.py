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
    def install(entry_points, source=SOURCE):
        lab_package.install(
            tmp_path, monkeypatch, "lab_metrics", source, f"[obygaze.metrics]\n{entry_points}\n"
        )

    return install


def test_own_metrics_are_computed_and_shown_as_ours_are(make_planted, installed):
    installed("lab_recall = lab_metrics:lab_recall")
    run = evaluate(make_planted(direction=3.0), ["linear"], "hn_s", metrics=[ACCURACY, HIDDEN])
    values = run.metrics.set_index(["model", "metric"])["pooled"]
    table = run.predictions.table[run.predictions.table["model"] == "linear"]
    called = run.predictions.called[table.index]
    assert values["linear", "accuracy"] == values["linear", "hidden"] == np.mean(called == table["label"])
    assert values["always_positive", "lab_recall"] == 1
    assert values["always_negative", "lab_recall"] == 0
    headers = {header for block in run_report(run).blocks for header in block.headers}
    assert {"accuracy", "lab's recall"} <= headers
    assert "a hidden one" not in headers


def test_runs_are_compared_by_metrics_of_other_packages_too(make_planted, installed):
    installed("lab_recall = lab_metrics:lab_recall")
    run = om.saved(evaluate(make_planted(direction=3.0), ["linear"], "hn_s"))
    report = comparison_report(om.compare(om.side(run, "linear"), om.side(run, "movie_prior")))
    (row,) = (row for row in report.blocks[0].rows if row[0] == "lab's recall")
    assert row[-1] == "undefined"  # in no family of tests
    assert report.answers


def test_a_metric_of_levels_is_not_one_of_two_classes():
    levels = Metric("off", "off", "called", accuracy, fixed(0.5), of_levels=True)
    assert "off" not in metrics_of(2, [levels])
    assert "off" in metrics_of(4, [levels])
    assert list(metrics_of(2)) == list(METRICS)


def test_a_metric_that_reads_something_else_or_has_no_bounds_is_refused():
    """It would silently have been computed of the calls, or have no interval."""
    with pytest.raises(ProtocolError, match="metric off: reads 'scores': expected 'score' or 'called'"):
        Metric("off", "off", "scores", accuracy, fixed(0.5))
    with pytest.raises(ProtocolError, match="metric off: bounds"):
        Metric("off", "off", "called", accuracy, fixed(0.5), bounds=(1.0, 0.0))


def test_a_value_outside_the_bounds_is_refused_with_what_to_state(make_planted):
    def below(y, called):
        return accuracy(y, called) - 2

    metric = Metric("below", "below", "called", below, fixed(-1.5))
    with pytest.raises(ProtocolError, match=r"metric below: -\S+ is outside its bounds, 0 to 1: state them"):
        evaluate(make_planted(direction=3.0), ["linear"], "hn_s", metrics=[metric])


@pytest.mark.parametrize("least", [-3.0, -math.inf])
def test_a_metric_with_its_own_bounds_has_intervals(make_planted, least):
    def squared_skill(y, called):
        return 1 - float(np.mean((y - called) ** 2)) / 0.25

    metric = Metric("skill", "skill", "called", squared_skill, fixed(0.0), bounds=(least, 1.0))
    run = evaluate(make_planted(direction=1.0), ["linear"], "hn_s", metrics=[metric])
    row = run.metrics.set_index(["model", "metric"]).loc["linear", "skill"]
    assert row["pooled_low"] < row["pooled"] < row["pooled_high"] < 1
    assert row["method_low"] < row["movie_mean"] < row["method_high"] < 1


@pytest.mark.parametrize("own", [[METRICS["auc"]], [accuracy], [ACCURACY, ACCURACY]])
def test_a_metric_of_a_known_name_or_no_metric_is_refused(own):
    with pytest.raises(ProtocolError):
        metrics_of(2, own)


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
