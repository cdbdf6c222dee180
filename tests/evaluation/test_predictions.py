"""The one table of predictions refuses what it can't stand for, and survives its file byte for byte."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_models.errors import PredictionsError
from obygaze_models.evaluation import COLUMNS, METRICS, Predictions, summarise
from obygaze_models.evaluation.evaluate import evaluate

ROW = {
    "model": "mlp",
    "task": "hn_s>hn_s",
    "fold": 0,
    "seed": 0,
    "clip_id": "tt1-001",
    "movie": "tt1",
    "label": 1,
    "score": 0.1,
    "threshold": 0.1,
    "store": "f",
}


def predictions_table(*changes):
    """Make a table of predictions, a row for each dict of `changes`.

    The rows are about the clips c0, c1, ..., and have the values of `ROW` in columns that the dict lacks.
    """
    rows = []
    for number, change in enumerate(changes):
        rows.append(ROW | {"clip_id": f"c{number}"} | change)
    return pd.DataFrame(rows, columns=list(COLUMNS))


SCORES_AND_MOVIES = st.lists(
    st.tuples(
        st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["NA", "001", "a,b", 'q"', "é"])
    )
)


@given(SCORES_AND_MOVIES)
def test_what_is_written_reads_back_as_the_same_bytes(tmp_path_factory, scores_and_movies):
    path = tmp_path_factory.mktemp("predictions") / "predictions.csv"
    changes = []
    for fold, (score, movie) in enumerate(scores_and_movies):
        changes.append({"score": score, "movie": movie, "fold": fold})
    predictions = Predictions(predictions_table(*changes))
    predictions.write(path)
    read_back = Predictions.read(path)
    pd.testing.assert_frame_equal(read_back.table, predictions.table)

    assert read_back.to_csv().encode() == path.read_bytes()


def test_a_score_that_reaches_the_threshold_is_called_positive():
    predictions = Predictions(
        predictions_table(
            {"score": 0.1, "threshold": 0.1},
            {"score": 0.0999, "threshold": 0.1},
            {"score": 0.2, "threshold": 0.1},
        )
    )
    assert predictions.called.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [({"score": np.nan}, "score"), ({"score": np.inf}, "c0"), ({"label": 2}, "2"), ({"movie": None}, "mov")],
    ids=["a score that is NaN", "an infinite score", "a third label", "a row without a movie"],
)
def test_a_value_that_cannot_be_is_refused_by_its_column_or_clip(change, message):
    with pytest.raises(PredictionsError, match=message):
        Predictions(predictions_table(change))


def test_a_clip_tested_twice_in_a_fold_is_refused():
    with pytest.raises(PredictionsError, match=r"mlp, .*clip_id same"):
        Predictions(predictions_table({"clip_id": "same", "fold": 0}, {"clip_id": "same", "fold": 0}))


def test_a_clip_may_be_tested_in_two_folds():
    predictions = Predictions(
        predictions_table({"clip_id": "same", "fold": 0}, {"clip_id": "same", "fold": 1})
    )
    assert len(predictions.table) == 2


HEADER = ",".join(COLUMNS).encode() + b"\n"


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe", b"a,b\n1,2\n", HEADER.replace(b"fold,", b"")],
    ids=["other bytes than text", "other columns", "without the column fold"],
)
def test_a_file_that_is_no_table_of_predictions_is_refused_by_its_name(tmp_path, content):
    path = tmp_path / "other.csv"
    path.write_bytes(content)
    with pytest.raises(PredictionsError, match=r"other\.csv"):
        Predictions.read(path)


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"", "empty file"),
        (HEADER + b"mlp,t,0,0,c,m,1,0.5,0.5,f\nmlp,t,0,0,d,m,1,0.5,0.5,f,,,\n", "line 3"),
        (HEADER + b"mlp,t,0,0,c,m,1,half,0.5,f\n", "column score .* row 1: 'half'"),
        (HEADER + b"mlp,t,x,0,c,m,1,0.5,0.5,f\n", "column fold .* row 1: 'x'"),
        (HEADER + b"mlp,t,0,0,c,m," + b"9" * 80 + b",0.5,0.5,f\n", "column label"),
    ],
    ids=["nothing", "too many cells", "a word for a score", "a letter for a fold", "an endless label"],
)
def test_a_faulty_table_of_predictions_is_refused_with_the_place_of_the_fault(tmp_path, content, place):
    path = tmp_path / "other.csv"
    path.write_bytes(content)
    with pytest.raises(PredictionsError, match=rf"other\.csv.*{place}"):
        Predictions.read(path)


@pytest.fixture
def summary_of_five_clips():
    """Metrics of five clips: a's are in the right order, b's in the wrong one, and c has no positive clip."""
    predictions = Predictions(
        predictions_table(
            {"movie": "a", "label": 1, "score": 0.9, "threshold": 0.5},
            {"movie": "a", "label": 0, "score": 0.2, "threshold": 0.5},
            {"movie": "b", "label": 1, "score": 0.8, "threshold": 0.5},
            {"movie": "b", "label": 0, "score": 0.85, "threshold": 0.5},
            {"movie": "c", "label": 0, "score": 0.0, "threshold": 0.5},
        )
    )
    return summarise(predictions)


def test_a_summary_has_a_row_for_every_metric(summary_of_five_clips):
    assert summary_of_five_clips["metric"].tolist() == [*METRICS, "within_movie_auc"]


def test_pooled_metrics_are_of_the_clips_of_all_movies(summary_of_five_clips):
    pooled = summary_of_five_clips.set_index("metric")["pooled"]
    assert pooled["auc"] == pytest.approx(5 / 6)  # of 2 x 3 pairs, .8 and .85 are in the wrong order
    precision, recall = 2 / 3, 2 / 2
    assert pooled["f1_pos"] == pytest.approx(2 * precision * recall / (precision + recall))


def test_the_auc_within_movies_is_the_mean_over_movies_with_both_classes(summary_of_five_clips):
    within = summary_of_five_clips.set_index("metric").loc["within_movie_auc"]
    assert within["pooled"] == (1.0 + 0.0) / 2
    assert within["n_movies"] == 2
    assert within["n_undefined"] == 1


def test_the_best_constant_calls_every_clip_positive(summary_of_five_clips):
    metrics = summary_of_five_clips.set_index("metric")
    prevalence = 2 / 5
    assert metrics["prevalence"].iloc[0] == prevalence
    assert metrics.loc["average_precision", "best_constant"] == prevalence
    # Its precision is the prevalence, and its recall is 1.
    assert metrics.loc["f1_pos", "best_constant"] == pytest.approx(2 * prevalence / (prevalence + 1))


def test_a_score_of_ordered_levels_calls_the_nearest_level():
    rows = predictions_table({"score": -1.0}, {"score": 0.49}, {"score": 0.5}, {"score": 1.6}, {"score": 9.0})
    predictions = Predictions(rows.assign(threshold=0.5), n_classes=3)
    assert predictions.called.tolist() == [0, 0, 1, 2, 2]


@pytest.mark.parametrize(("n_classes", "label"), [(2, 2), (3, 3)])
def test_a_label_above_the_last_class_is_refused(n_classes, label):
    Predictions(predictions_table({"label": n_classes - 1}), n_classes=n_classes)
    with pytest.raises(PredictionsError, match=f"found {label}"):
        Predictions(predictions_table({"label": label}), n_classes=n_classes)


def test_a_metric_that_no_movie_defines_is_nan_and_not_zero():
    without_a_positive_clip = Predictions(predictions_table({"label": 0}, {"label": 0}))
    summary = summarise(without_a_positive_clip).set_index("metric")
    undefined = ["average_precision", "f1_pos", "f1_weighted", "f1_macro", "balanced_accuracy", "auc"]
    assert summary.loc[undefined, "pooled"].isna().all()
    assert (summary.loc[undefined, "n_movies"] == 0).all()


@pytest.mark.parametrize("seen", [False, True], ids=["new films", "seen films"])
def test_clips_of_a_movie_are_predicted_in_the_order_of_the_manifest(make_planted, seen):
    """Whatever looks at neighbouring clips relies on it."""
    data = make_planted(direction=1.0, film=1.0)
    row_of = {clip_id: row for row, clip_id in enumerate(data.clip_ids.tolist())}
    predictions = evaluate(data, ["linear"], "enhn_s", seen=seen).predictions
    for _, of_movie in predictions.table.groupby(["model", "movie"]):
        rows = [row_of[clip_id] for clip_id in of_movie["clip_id"]]
        assert rows == sorted(rows)
