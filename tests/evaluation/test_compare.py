"""Two models are compared movie by movie, whatever they were trained on, if they were tested on the same."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from obygaze_models.errors import CompareError, RunError
from obygaze_models.evaluation import METRICS, Predictions, metrics
from obygaze_models.evaluation.compare import compare, side
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.evaluation.run_folder import SavedRun, read_run, saved
from obygaze_models.report import p_value
from obygaze_models.report.comparison_tables import comparison_report

RECORD = {"protocol": "strict", "codebook": {"name": "obygaze12", "digest": "0"}, "n_classes": 2}


def rows(strength, *, seed=0, model="mlp", n_movies=12, n_clips=30, noise=1):
    """Predictions of a model that tells S clips apart by `strength` SDs, a number or one a clip."""
    movie_of = np.repeat(np.arange(n_movies), n_clips)
    y = (np.arange(movie_of.size) % 3 == 0).astype(np.int64)
    score = np.random.default_rng(noise).normal(size=y.size) + strength * y
    return pd.DataFrame(
        {
            "model": model,
            "task": "hn_s>hn_s",
            "fold": movie_of,
            "seed": seed,
            "clip_id": [f"m{movie:02}-{place}" for place, movie in enumerate(movie_of)],
            "movie": [f"m{movie:02}" for movie in movie_of],
            "label": y,
            "score": score,
            "threshold": np.max(strength) / 2,
            "store": "f" * 64,
        }
    )


def kept(table, where="run", **record):
    return SavedRun(where, RECORD | record, Predictions(table))


@pytest.fixture
def strong():
    return kept(rows(3.0, noise=1), "strong")


@pytest.fixture
def weak():
    return kept(rows(0.5, noise=2), "weak")


def test_a_better_model_is_better_in_every_movie_and_metric(strong, weak):
    found = compare(side(strong), side(weak))
    assert list(found.metrics["metric"]) == list(METRICS)
    assert (found.metrics["difference"] > 0).all()
    auc = found.metrics.set_index("metric").loc["auc"]
    assert auc["p"] == 2 / 4096
    assert auc["low"] > 0
    assert (found.metrics["p_holm"] >= found.metrics["p"]).all()
    assert auc["p_holm"] == pytest.approx(6 * 2 / 4096)
    assert (found.metrics["method_low"] < found.metrics["low"]).all()
    assert (found.metrics["method_p_holm"] >= found.metrics["method_p"]).all()


def test_the_difference_is_the_mean_over_movies_of_the_movies_differences(strong, weak):
    found = compare(side(strong), side(weak))
    for metric, part in found.movies.groupby("metric"):
        row = found.metrics.set_index("metric").loc[metric]
        assert len(part) == 12
        assert row["difference"] == pytest.approx(part["difference"].mean())
        assert row["difference"] == pytest.approx(row["a"] - row["b"])


@pytest.mark.long  # simulates
def test_two_models_of_equal_strength_are_not_told_apart():
    low = 0
    for noise in range(20):
        a, b = (kept(rows(1.0, noise=noise + shift)) for shift in (100, 200))
        low += compare(side(a), side(b)).metrics["p_holm"].min() < 0.05
    assert low <= 3


def test_seeds_are_averaged_within_a_movie(weak):
    two = pd.concat([rows(3.0, seed=0, noise=1), rows(3.0, seed=1, noise=3)], ignore_index=True)
    both, *each = (
        compare(side(kept(table)), side(weak)).movies.set_index(["metric", "movie"])["a"]
        for table in (two, rows(3.0, noise=1), rows(3.0, noise=3))
    )
    np.testing.assert_allclose(both, (each[0] + each[1]) / 2)


def test_a_movie_without_positives_is_left_out_of_what_it_does_not_define():
    tables = []
    for strength, noise in ((3.0, 1), (0.5, 2)):
        table = rows(strength, noise=noise)
        table.loc[table["movie"] == "m00", "label"] = 0
        tables.append(kept(table))
    found = compare(side(tables[0]), side(tables[1]))
    assert (found.metrics["n_movies"] == 11).all()
    record = comparison_report(found).record
    assert record["smallest_p"] == 2 / 2048
    assert record["movies"][0]["a"] is None


@pytest.mark.parametrize(
    ("change", "record", "place"),
    [
        (lambda t: t, {"codebook": {"name": "other"}}, "codebook .*'obygaze12'.*'other'"),
        (lambda t: t, {"protocol": "paper"}, "protocol .*'strict'.*'paper'"),
        (lambda t: t.iloc[:-3], {}, "3 are in .*strong alone.* m11-357"),
        (lambda t: t.assign(clip_id=t["clip_id"].replace("m00-0", "other")), {}, "1 are in .*strong.* m00-0"),
        (lambda t: t.assign(label=1 - t["label"]), {}, "label of 360 clips .* m00-0"),
    ],
)
def test_runs_that_were_asked_different_things_are_refused_by_what_differs(strong, change, record, place):
    other = kept(change(rows(0.5)), "other", **record)
    with pytest.raises(CompareError, match=place):
        compare(side(strong), side(other))


def test_models_are_chosen_by_name_and_the_first_is_the_default():
    run = kept(pd.concat([rows(2.0, model="mlp"), rows(0.0, model="prior")], ignore_index=True))
    assert side(run).model == "mlp"
    assert compare(side(run), side(run, "prior")).metrics["difference"].min() > 0
    with pytest.raises(CompareError, match="'svm'"):
        side(run, "svm")
    two = kept(pd.concat([rows(1.0), rows(1.0).assign(task="x>x")], ignore_index=True))
    with pytest.raises(CompareError, match="hn_s>hn_s, x>x"):
        side(two)
    with pytest.raises(CompareError, match="'y>y'"):
        side(two, task="y>y")
    assert side(two, task="x>x").task == "x>x"


def test_no_p_is_printed_as_0():
    assert [p_value(p) for p in (0.0, 9e-5, 1e-4, math.nan)] == ["< .0001", "< .0001", "0.0001", "undefined"]


def test_a_metric_that_is_added_is_compared_too_and_moves_no_p_value(strong, weak, monkeypatch):
    before = compare(side(strong), side(weak))
    recall = metrics.Metric(
        "recall",
        "recall",
        "called",
        lambda y, called: float(np.mean(called[y == 1])) if (y == 1).any() else metrics.NAN,
        metrics.fixed(1.0),
    )
    monkeypatch.setitem(METRICS, "recall", recall)
    after = compare(side(strong), side(weak))
    assert after.metrics["metric"].tolist() == [*before.metrics["metric"], "recall"]
    old = after.metrics[after.metrics["metric"] != "recall"]
    pd.testing.assert_frame_equal(old, before.metrics)
    assert after.metrics["p_holm"].isna().tolist() == [False] * 6 + [True]


@pytest.fixture(scope="module")
def trained(wrap_arrays):
    """HN clips lie between EN and S clips along the direction that S clips lie on, EN clips far off it.

    What tells EN from S is then another direction than what tells HN from S; only the second helps among
    HN and S clips.
    """
    rng = np.random.default_rng(0)
    movies = np.repeat([f"m{place:02}" for place in range(8)], 45)
    levels = rng.choice(["EN", "HN", "S"], movies.size)
    X = rng.normal(size=(movies.size, 6))
    X[:, 0] += 4.0 * (levels != "EN")
    X[:, 1] += 1.5 * (levels == "S")
    data = wrap_arrays(X, levels, movies)
    return {name: saved(evaluate(data, ["linear"], name, "hn_s"), name) for name in ("en_s", "hn_s")}


def test_hard_negatives_improve_is_a_comparison_of_two_runs_tested_on_the_same_clips(trained):
    found = compare(side(trained["hn_s"], "linear"), side(trained["en_s"], "linear"))
    by_metric = found.metrics.set_index("metric")
    assert by_metric.loc["average_precision", "difference"] > 0.1
    assert by_metric.loc["average_precision", "p_holm"] < 0.05
    report = comparison_report(found)
    assert [report.record[letter]["trained_on"]["name"] for letter in "ab"] == ["hn_s", "en_s"]


def test_a_folder_that_is_no_run_is_refused(tmp_path, strong):
    with pytest.raises(RunError, match=r"nowhere .*predictions\.csv"):
        read_run(tmp_path / "nowhere")
    strong.predictions.write(tmp_path / "predictions.csv")
    with pytest.raises(RunError, match=r"run\.json"):
        read_run(tmp_path)
    for text in ("{", "[]", '{"record": 3}', '{"record": {}}', "[" * 100_000):
        (tmp_path / "run.json").write_text(text, "utf-8")
        with pytest.raises(RunError, match=r"run\.json"):
            read_run(tmp_path)
    (tmp_path / "run.json").write_text(json.dumps({"record": RECORD}), "utf-8")
    with pytest.raises(RunError, match=r"run\.json: 'record.train'.*'record.tests'"):
        read_run(tmp_path)
