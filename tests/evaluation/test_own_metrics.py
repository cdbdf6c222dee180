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


@pytest.fixture
def install_lab_metrics(tmp_path, monkeypatch):
    """Return a function that installs the package lab_metrics with entry points of obygaze.metrics."""

    def install(entry_points, source=SOURCE):
        lab_package.install(
            tmp_path, monkeypatch, "lab_metrics", source, f"[obygaze.metrics]\n{entry_points}\n"
        )

    return install


@pytest.fixture
def run_with_own_metrics(make_synthetic_data, install_lab_metrics):
    """A run of a linear model with the accuracy, once shown and once hidden, and a package's recall."""
    install_lab_metrics("lab_recall = lab_metrics:lab_recall")  # with the title "lab's recall"
    shown = Metric("accuracy", "accuracy", "called", accuracy, fixed(0.5))
    hidden = Metric("hidden", "a hidden one", "called", accuracy, fixed(0.5), shown=False)
    return evaluate(make_synthetic_data(direction=3.0), ["linear"], "hn_s", metrics=[shown, hidden])


@pytest.mark.long
def test_own_metrics_are_computed_for_every_model(run_with_own_metrics):
    """The run has two metrics of a script, which are both the accuracy, and a package's, which is the recall.

    The script's are named "accuracy" and "hidden", the package's "lab_recall". Beside the linear model there
    are baselines: one that calls every clip positive has a recall of 1, one that calls none positive a recall
    of 0.
    """
    run = run_with_own_metrics
    is_linear = run.predictions.table["model"] == "linear"
    called = run.predictions.called[is_linear]
    labels = run.predictions.table["label"][is_linear]

    values = run.metrics.set_index(["model", "metric"])["pooled"]
    assert values["linear", "accuracy"] == np.mean(called == labels)
    assert values["linear", "hidden"] == np.mean(called == labels)
    assert values["always_positive", "lab_recall"] == 1
    assert values["always_negative", "lab_recall"] == 0


@pytest.mark.long
def test_own_metrics_are_reported_unless_hidden(run_with_own_metrics):
    """The run has a metric "accuracy", one "a hidden one", which is not shown, and a package's recall."""
    headers = []
    for block in run_report(run_with_own_metrics).blocks:
        headers += block.headers

    assert "accuracy" in headers
    assert "lab's recall" in headers
    assert "a hidden one" not in headers


@pytest.mark.long
def test_two_models_are_compared_by_a_metric_of_another_package_but_without_a_p(
    make_synthetic_data, install_lab_metrics
):
    """A package has the metric "lab's recall". A linear model and a baseline of one run are compared by it.

    The p of several metrics are corrected together: one test more would raise those of the built-in metrics,
    whenever such a package is installed. So the metric has a row in the table, whose p is undefined.
    """
    install_lab_metrics("lab_recall = lab_metrics:lab_recall")  # with the title "lab's recall"
    run = om.saved(evaluate(make_synthetic_data(direction=3.0), ["linear"], "hn_s"))

    report = comparison_report(om.compare(om.side(run, "linear"), om.side(run, "movie_prior")))

    (row_of_recall,) = [row for row in report.blocks[0].rows if row[0] == "lab's recall"]
    corrected_p = row_of_recall[-1]
    assert corrected_p == "undefined"
    assert report.answers


def test_a_metric_of_levels_is_computed_for_ordered_levels_only():
    """The metric of a script says that it is of levels. Four classes are levels in an order.

    Two classes are not, and have the built-in metrics alone.
    """
    metric = Metric("off", "off", "called", accuracy, fixed(0.5), of_levels=True)

    metrics_of_four_levels = metrics_of(n_classes=4, own=[metric])
    metrics_of_two_classes = metrics_of(n_classes=2, own=[metric])

    assert "off" in metrics_of_four_levels
    assert list(metrics_of_two_classes) == list(METRICS)


@pytest.mark.parametrize(
    ("reads", "bounds", "message"),
    [
        ("scores", (0.0, 1.0), "metric off: reads 'scores': expected 'score' or 'called'"),
        ("called", (1.0, 0.0), "metric off: bounds"),
    ],
    ids=["it reads a misspelt `score`", "its bounds are the wrong way round"],
)
def test_a_metric_that_cannot_be_computed_is_refused(reads, bounds, message):
    """A metric states whether it reads scores or calls, and between which bounds its values are."""
    with pytest.raises(ProtocolError, match=message):
        Metric("off", "off", reads, accuracy, fixed(0.5), bounds=bounds)


def test_a_value_outside_the_bounds_is_refused_with_what_to_state(make_synthetic_data):
    """A metric's bounds are 0 and 1 unless it states others. This one has values from -2 to -1."""

    def accuracy_less_two(y, called):
        return float(np.mean(y == called)) - 2

    metric = Metric("below", "below", "called", accuracy_less_two, fixed(-1.5))
    with pytest.raises(ProtocolError, match=r"metric below: -\S+ is outside its bounds, 0 to 1: state them"):
        evaluate(make_synthetic_data(direction=3.0), ["linear"], "hn_s", metrics=[metric])


def skill_of_calls(y, called):
    """1 less the mean squared error in quarters: 1 if all calls are right, -3 if all are wrong."""
    mean_squared_error = float(np.mean((y - called) ** 2))
    return 1 - mean_squared_error / 0.25


@pytest.mark.parametrize("lower_bound", [-3.0, -math.inf])
def test_a_metric_with_its_own_bounds_has_intervals(make_synthetic_data, lower_bound):
    """A metric of one's own, the skill of calls, is at most 1; below it has a bound, -3, or none.

    It is computed for a model that knows the level of most clips. Its two intervals, that of the trained
    models ("pooled") and that of the method that trains them, lie around the value and stay below 1.
    """
    skill = Metric(
        "skill",
        "skill",
        "called",
        skill_of_calls,
        fixed(0.0),  # the skill of chance
        bounds=(lower_bound, 1.0),
        method_interval=True,
    )

    run = evaluate(make_synthetic_data(direction=1.0), ["linear"], "hn_s", metrics=[skill])

    row = run.metrics.set_index(["model", "metric"]).loc["linear", "skill"]
    assert row["pooled_low"] < row["pooled"] < row["pooled_high"] < 1
    assert row["method_low"] < row["movie_mean"] < row["method_high"] < 1


@pytest.mark.parametrize(
    "own_metrics",
    [[METRICS["auc"]], [accuracy], [ACCURACY, ACCURACY]],
    ids=["the name of a built-in metric", "a function that is no metric", "one name twice"],
)
def test_a_metric_of_a_known_name_or_no_metric_is_refused(own_metrics):
    """A script gives its own metrics, to be computed beside the built-in ones of two classes.

    `METRICS` are the built-in ones, `ACCURACY` is a metric, and `accuracy` the function that it computes.
    """
    n_classes = 2
    with pytest.raises(ProtocolError):
        metrics_of(n_classes, own_metrics)


def test_a_metric_of_a_known_name_is_refused_before_models_are_trained(make_synthetic_data):
    """The only model fails this test if somebody trains it."""

    class NeverTrained(LogisticRegression):
        def fit(self, *_, **__):
            pytest.fail("it was trained")

    never_trained = om.ModelSpec("never", "never", make=lambda _seed: NeverTrained())
    built_in_auc = METRICS["auc"]
    with pytest.raises(ProtocolError, match="there is a metric auc already"):
        evaluate(make_synthetic_data(direction=3.0), [never_trained], "hn_s", metrics=[built_in_auc])


def test_an_entry_point_that_is_no_metric_is_refused_by_its_name(install_lab_metrics):
    """A package offers its function `recall` as a metric, which it is not: it only computes one."""
    install_lab_metrics("odd = lab_metrics:recall")
    n_classes = 2
    with pytest.raises(ProtocolError, match="odd"):
        metrics_of(n_classes)
