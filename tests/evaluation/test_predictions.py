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


@pytest.mark.parametrize(
    ("n_classes", "called_of_score"),
    [(2, {0.5: 1, 0.4999: 0, 0.6: 1}), (3, {-1.0: 0, 0.49: 0, 0.5: 1, 1.6: 2, 9.0: 2})],
    ids=["two classes", "ordered levels"],
)
def test_a_score_that_reaches_the_threshold_is_called_positive_or_the_nearest_level(
    n_classes, called_of_score
):
    table = predictions_table(*[{"score": score, "threshold": 0.5} for score in called_of_score])
    assert Predictions(table, n_classes).called.tolist() == list(called_of_score.values())


@pytest.mark.parametrize(
    ("change", "message"),
    [({"score": np.nan}, "score"), ({"score": np.inf}, "c0"), ({"label": 2}, "2"), ({"movie": None}, "mov")],
    ids=["a score that is NaN", "an infinite score", "a third label", "a row without a movie"],
)
def test_a_value_that_cannot_be_is_refused_by_its_column_or_clip(change, message):
    with pytest.raises(PredictionsError, match=message):
        Predictions(predictions_table(change))


def test_a_clip_is_tested_once_in_a_fold():
    in_two_folds = Predictions(
        predictions_table({"clip_id": "same", "fold": 0}, {"clip_id": "same", "fold": 1})
    )
    assert len(in_two_folds.table) == 2
    with pytest.raises(PredictionsError, match=r"mlp, .*clip_id same"):
        Predictions(predictions_table({"clip_id": "same", "fold": 0}, {"clip_id": "same", "fold": 0}))


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


def test_a_summary_of_five_clips_has_the_values_that_follow_by_hand():
    """Clips of a are in the right order, those of b in the wrong one, and c has no positive clip."""
    rows = predictions_table(
        {"movie": "a", "label": 1, "score": 0.9},
        {"movie": "a", "label": 0, "score": 0.2},
        {"movie": "b", "label": 1, "score": 0.8},
        {"movie": "b", "label": 0, "score": 0.85},
        {"movie": "c", "label": 0, "score": 0.0},
    )
    summary = summarise(Predictions(rows.assign(threshold=0.5))).set_index("metric")

    assert summary.index.tolist() == [*METRICS, "within_movie_auc"]
    assert summary.loc["auc", "pooled"] == pytest.approx(5 / 6)  # .8 and .85 are in the wrong order
    precision, recall = 2 / 3, 2 / 2
    assert summary.loc["f1_pos", "pooled"] == pytest.approx(2 * precision * recall / (precision + recall))

    within = summary.loc["within_movie_auc"]
    assert within["pooled"] == (1.0 + 0.0) / 2
    assert (within["n_movies"], within["n_undefined"]) == (2, 1)

    # The best constant calls every clip positive: its precision is the prevalence, its recall is 1.
    prevalence = 2 / 5
    assert summary["prevalence"].iloc[0] == prevalence
    assert summary.loc["average_precision", "best_constant"] == prevalence
    assert summary.loc["f1_pos", "best_constant"] == pytest.approx(2 * prevalence / (prevalence + 1))


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
