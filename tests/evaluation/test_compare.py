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


def make_predictions(strength, *, noise=1, seed=0, model="mlp", n_movies=12, n_clips=30):
    """Make predictions of a model that tells S clips apart by `strength` SDs.

    A third of each film's clips is positive; `noise` seeds the scores' noise.
    """
    movie_of = np.repeat(np.arange(n_movies), n_clips)
    y = (np.arange(movie_of.size) % 3 == 0).astype(np.int64)
    score = np.random.default_rng(noise).normal(size=y.size) + strength * y
    return pd.DataFrame(
        {
            "model": model,
            "task": "hn_s>hn_s",
            "fold": movie_of,
            "seed": seed,
            "clip_id": [f"m{movie:02}-{index}" for index, movie in enumerate(movie_of)],
            "movie": [f"m{movie:02}" for movie in movie_of],
            "label": y,
            "score": score,
            "threshold": strength / 2,
            "store": "f" * 64,
        }
    )


def run_of(table, name="run", **record):
    """Make a saved run of a table of predictions."""
    return SavedRun(name, RECORD | record, Predictions(table))


@pytest.fixture
def run_of_strong_model():
    """A run whose model tells S clips apart by 3 SDs."""
    return run_of(make_predictions(strength=3.0, noise=1), "strong")


@pytest.fixture
def run_of_weak_model():
    """A run whose model tells S clips apart by half an SD."""
    return run_of(make_predictions(strength=0.5, noise=2), "weak")


@pytest.fixture
def strong_compared_with_weak(run_of_strong_model, run_of_weak_model):
    """The strong model compared with the weak one."""
    return compare(side(run_of_strong_model), side(run_of_weak_model))


def test_a_better_model_is_ahead_in_every_metric_by_the_mean_of_its_leads_by_movie(
    strong_compared_with_weak,
):
    """A strong model, a, is compared with a weak one, b. Both were tested on the same 12 movies.

    A difference is a less b, for each movie, and its mean over movies stands in the table of metrics.
    """
    metrics = strong_compared_with_weak.metrics.set_index("metric")
    assert list(metrics.index) == list(METRICS)
    assert (metrics["difference"] > 0).all()

    for metric, movies in strong_compared_with_weak.movies.groupby("metric"):
        row = metrics.loc[metric]
        assert len(movies) == 12
        assert row["difference"] == pytest.approx(movies["difference"].mean())
        assert row["difference"] == pytest.approx(row["a"] - row["b"])


def test_the_smallest_p_of_twelve_movies_is_2_of_4096_sign_changes(strong_compared_with_weak):
    """A strong model is compared with a weak one on 12 films. The sign-flip test has 2^12 = 4096 patterns.

    Where all films favour one model, the pattern itself and its opposite reach the mean. Holm's correction
    multiplies the smallest p by the 6 metrics.
    """
    auc = strong_compared_with_weak.metrics.set_index("metric").loc["auc"]
    assert auc["low"] > 0
    assert auc["p"] == 2 / 4096
    assert auc["p_holm"] == pytest.approx(6 * 2 / 4096)


def test_the_interval_of_methods_reaches_lower_than_that_of_models(strong_compared_with_weak):
    """A strong model is compared with a weak one: as two trained models, on these films, and as two methods.

    Two methods would be trained on other films too, which adds uncertainty.
    """
    metrics = strong_compared_with_weak.metrics
    assert (metrics["method_low"] < metrics["low"]).all()


def test_a_corrected_p_is_not_smaller_than_the_p_itself(strong_compared_with_weak):
    """Two models are compared by several metrics, each with a p of the models and one of the methods.

    Holm's correction is of the metrics of a family; others have no corrected p.
    """
    metrics = strong_compared_with_weak.metrics
    of_family = metrics[metrics["p_holm"].notna()]
    assert len(of_family) > 0
    assert (of_family["p_holm"] >= of_family["p"]).all()
    assert (of_family["method_p_holm"] >= of_family["method_p"]).all()


@pytest.mark.long  # simulates
def test_two_models_of_equal_strength_are_not_told_apart():
    """Twenty pairs of models that tell S clips apart by 1 SD, and differ by noise alone.

    At 5% one of 20 comparisons is expected to be significant by chance; three may be.
    """
    n_found_different = 0
    for seed in range(20):
        run_a = run_of(make_predictions(strength=1.0, noise=seed + 100))
        run_b = run_of(make_predictions(strength=1.0, noise=seed + 200))
        comparison = compare(side(run_a), side(run_b))
        if comparison.metrics["p_holm"].min() < 0.05:
            n_found_different += 1

    assert n_found_different <= 3


def test_seeds_are_averaged_within_a_movie(run_of_weak_model):
    """A run of two seeds is compared with another run: its metrics of a movie are the means of the seeds'."""
    with_seed_0 = make_predictions(strength=3.0, seed=0, noise=1)
    with_seed_1 = make_predictions(strength=3.0, seed=1, noise=3)
    with_both_seeds = pd.concat([with_seed_0, with_seed_1], ignore_index=True)

    def metrics_by_movie(table):
        movies = compare(side(run_of(table)), side(run_of_weak_model)).movies
        return movies.set_index(["metric", "movie"])["a"]

    of_seed_0 = metrics_by_movie(with_seed_0)
    of_seed_1 = metrics_by_movie(with_seed_1.assign(seed=0))  # as the only seed of a run
    of_both = metrics_by_movie(with_both_seeds)

    np.testing.assert_allclose(of_both, (of_seed_0 + of_seed_1) / 2)


def test_a_movie_without_positives_is_left_out():
    """The first of 12 films, m00, has no positive clip, and so no AUC.

    With 11 films left there are 2^11 = 2048 patterns of signs.
    """
    strong_predictions = make_predictions(strength=3.0, noise=1)
    weak_predictions = make_predictions(strength=0.5, noise=2)
    for table in (strong_predictions, weak_predictions):
        table.loc[table["movie"] == "m00", "label"] = 0

    comparison = compare(side(run_of(strong_predictions)), side(run_of(weak_predictions)))
    record = comparison_report(comparison).record

    assert (comparison.metrics["n_movies"] == 11).all()
    assert record["smallest_p"] == 2 / 2048
    first_movie = record["movies"][0]
    assert first_movie["a"] is None


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"codebook": {"name": "other"}}, "codebook .*'obygaze12'.*'other'"),
        ({"protocol": "paper"}, "protocol .*'strict'.*'paper'"),
    ],
    ids=["codebook", "protocol"],
)
def test_runs_of_different_records_are_refused(run_of_strong_model, record, message):
    """The first run is of the protocol "strict", and of the codebook obygaze12."""
    other_run = run_of(make_predictions(strength=0.5, noise=1), "other", **record)
    with pytest.raises(CompareError, match=message):
        compare(side(run_of_strong_model), side(other_run))


def without_last_three_clips(table):
    return table.iloc[:-3]


def with_a_renamed_clip(table):
    return table.assign(clip_id=table["clip_id"].replace("m00-0", "other"))


def with_one_more_clip(table):
    one_more = table.iloc[-1:].assign(clip_id="m11-one-more")
    return pd.concat([table, one_more], ignore_index=True)


def with_labels_exchanged(table):
    return table.assign(label=1 - table["label"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without_last_three_clips, r"3 are in .*strong alone.* m11-357"),
        (with_one_more_clip, r"1 are in other alone.* m11-one-more"),
        (with_a_renamed_clip, r"1 are in .*strong.* m00-0"),
        (with_labels_exchanged, r"label of 360 clips .* m00-0"),
    ],
)
def test_runs_of_different_clips_or_labels_are_refused(run_of_strong_model, change, message):
    """The run "strong" has predictions of 360 clips of twelve films, from m00-0 to m11-359.

    The run "other" has other clips or labels, as `change` says. Two models are compared on the same clips
    alone; the first clip that differs is named.
    """
    predictions = make_predictions(strength=0.5, noise=1)
    other_run = run_of(change(predictions), "other")

    with pytest.raises(CompareError, match=message):
        compare(side(run_of_strong_model), side(other_run))


@pytest.fixture
def run_of_mlp_and_prior():
    """A run of a good model, mlp, and one that knows nothing, prior."""
    good = make_predictions(strength=2.0, noise=1, model="mlp")
    knows_nothing = make_predictions(strength=0.0, noise=1, model="prior")
    return run_of(pd.concat([good, knows_nothing], ignore_index=True))


def test_a_model_is_chosen_by_name_and_the_first_one_by_default(run_of_mlp_and_prior):
    """Models of one run can be compared, too: the good one is ahead of that which knows nothing."""
    mlp = side(run_of_mlp_and_prior)
    prior = side(run_of_mlp_and_prior, "prior")

    assert mlp.model == "mlp"
    assert prior.model == "prior"
    assert compare(mlp, prior).metrics["difference"].min() > 0


def test_a_model_that_a_run_does_not_have_is_refused(run_of_mlp_and_prior):
    """The run has the models mlp and prior."""
    with pytest.raises(CompareError, match="'svm'"):
        side(run_of_mlp_and_prior, "svm")


@pytest.fixture
def run_of_two_tasks():
    """A run that was tested on the tasks hn_s>hn_s and x>x."""
    of_first_task = make_predictions(strength=1.0, noise=1)
    of_second_task = of_first_task.assign(task="x>x")
    return run_of(pd.concat([of_first_task, of_second_task], ignore_index=True))


def test_one_of_two_tasks_must_be_chosen_by_its_name(run_of_two_tasks):
    """The run was tested on the tasks hn_s>hn_s and x>x. Without a choice the refusal names both."""
    chosen = side(run_of_two_tasks, task="x>x")

    assert chosen.task == "x>x"
    with pytest.raises(CompareError, match="hn_s>hn_s, x>x"):
        side(run_of_two_tasks)


def test_a_task_that_a_run_does_not_have_is_refused(run_of_two_tasks):
    """The run was tested on the tasks hn_s>hn_s and x>x."""
    with pytest.raises(CompareError, match="'y>y'"):
        side(run_of_two_tasks, task="y>y")


@pytest.mark.parametrize(
    ("p", "text"), [(0.0, "< .0001"), (9e-5, "< .0001"), (1e-4, "0.0001"), (math.nan, "undefined")]
)
def test_no_p_is_printed_as_0(p, text):
    """A p is printed with four decimals, or as smaller than the smallest number with these."""
    assert p_value(p) == text


def recall(y, called):
    """Return the share of positive clips that are called positive."""
    return float(np.mean(called[y == 1])) if (y == 1).any() else metrics.NAN


def test_an_added_metric_does_not_change_the_p_values_of_others(
    run_of_strong_model, run_of_weak_model, monkeypatch
):
    """P-values of several metrics are made larger for the number of tests, by Holm's correction.

    A metric of one's own, here the recall, does not count among these tests, and gets no corrected p-value.
    """
    strong, weak = side(run_of_strong_model), side(run_of_weak_model)
    before = compare(strong, weak).metrics

    metric_of_ones_own = metrics.Metric("recall", "recall", "called", recall, metrics.fixed(1.0))
    monkeypatch.setitem(METRICS, "recall", metric_of_ones_own)
    with_recall = compare(strong, weak).metrics

    is_recall = with_recall["metric"] == "recall"
    pd.testing.assert_frame_equal(with_recall[~is_recall], before)
    corrected_p_of_recall = with_recall[is_recall]["p_holm"].item()
    assert math.isnan(corrected_p_of_recall)


@pytest.fixture(scope="module")
def planted_levels(wrap_arrays):
    """360 clips of eight films, in which HN clips lie between EN and S clips.

    Feature 0 tells EN clips from HN and S clips, feature 1 tells S clips from EN and HN clips: what tells EN
    from S is another direction than what tells HN from S; only the second helps among HN and S clips.
    """
    rng = np.random.default_rng(0)
    movies = np.repeat([f"m{number:02}" for number in range(8)], 45)
    levels = rng.choice(["EN", "HN", "S"], 360)
    X = rng.normal(size=(360, 6))
    X[levels != "EN", 0] += 4.0
    X[levels == "S", 1] += 1.5
    return wrap_arrays(X, levels, movies)


@pytest.mark.long
def test_training_on_hard_negatives_is_shown_to_help(planted_levels):
    """A model is trained on HN vs S, and another on EN vs S. Both are tested on HN vs S.

    What tells EN from S was planted in another feature than what tells HN from S.
    """
    trained_on_hn = saved(evaluate(planted_levels, ["linear"], "hn_s", "hn_s"), "hn_s")
    trained_on_en = saved(evaluate(planted_levels, ["linear"], "en_s", "hn_s"), "en_s")

    comparison = compare(side(trained_on_hn, "linear"), side(trained_on_en, "linear"))

    ap = comparison.metrics.set_index("metric").loc["average_precision"]
    assert ap["difference"] > 0.1
    assert ap["p_holm"] < 0.05
    record = comparison_report(comparison).record
    assert record["a"]["trained_on"]["name"] == "hn_s"
    assert record["b"]["trained_on"]["name"] == "en_s"


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    """A run is read from its folder. The error names the file that was looked for there first."""
    with pytest.raises(RunError, match=r"nowhere .*predictions\.csv"):
        read_run(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, ""),
        ("{", ""),
        ("[]", ""),
        ('{"record": 3}', ""),
        ("[" * 100_000, ""),
        (json.dumps({"record": RECORD}), ": 'record.train'.*'record.tests'"),
    ],
    ids=["no file", "half a file", "a list", "a number", "a deep file", "without tasks"],
)
def test_a_file_that_is_no_record_is_refused(tmp_path, run_of_strong_model, text, message):
    """The folder of a run has its predictions and its record, run.json."""
    run_of_strong_model.predictions.write(tmp_path / "predictions.csv")
    if text is not None:
        (tmp_path / "run.json").write_text(text, "utf-8")
    with pytest.raises(RunError, match=rf"run\.json{message}"):
        read_run(tmp_path)


def test_no_difference_from_constant_scores_is_larger_than_one_half_of_the_auc():
    """A model "mlp" ranks clips well, and "prior" gives all of them one score.

    One score for all has an AUC of .5 in any film, and no AUC is above 1. So the interval of mlp's lead ends
    at .5, and that of the lead of "prior" begins at -.5. (Average precision has no such limit: there the
    lead is above .5.)
    """
    good = make_predictions(strength=2.5, model="mlp", n_movies=4)
    constant = make_predictions(strength=0.0, model="prior", n_movies=4).assign(score=0.25)
    run = run_of(pd.concat([good, constant], ignore_index=True))

    leads = compare(side(run, "mlp"), side(run, "prior")).metrics.set_index("metric")
    behind = compare(side(run, "prior"), side(run, "mlp")).metrics.set_index("metric")

    assert leads.loc["auc", "method_high"] == 0.5
    assert behind.loc["auc", "method_low"] == -0.5
    assert leads.loc["average_precision", "method_high"] > leads.loc["average_precision", "difference"] > 0.5


def test_a_run_without_predictions_is_refused():
    """Such a run is left by a task without a clip: nothing of it can be compared."""
    empty = run_of(make_predictions(strength=1.0).iloc[:0], "empty")
    with pytest.raises(CompareError, match="empty: the run has no predictions"):
        side(empty)
