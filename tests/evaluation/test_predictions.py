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


def table(*changes):
    rows = [ROW | {"clip_id": f"c{place}"} | change for place, change in enumerate(changes)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


@given(
    st.lists(
        st.tuples(
            st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["NA", "001", "a,b", 'q"', "é"])
        )
    )
)
def test_what_is_written_reads_back_as_the_same_bytes(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("predictions") / "predictions.csv"
    changes = [{"score": score, "movie": movie, "fold": fold} for fold, (score, movie) in enumerate(rows)]
    predictions = Predictions(table(*changes))
    predictions.write(path)
    again = Predictions.read(path)
    pd.testing.assert_frame_equal(again.table, predictions.table)
    assert again.to_csv().encode() == path.read_bytes()


def test_a_score_that_reaches_the_threshold_is_called_positive():
    assert Predictions(table({"score": 0.1}, {"score": 0.0999}, {"score": 0.2})).called.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("change", "place"),
    [({"score": np.nan}, "score"), ({"score": np.inf}, "c0"), ({"label": 2}, "2"), ({"movie": None}, "mov")],
)
def test_a_value_that_can_not_be_is_refused(change, place):
    with pytest.raises(PredictionsError, match=place):
        Predictions(table(change))


def test_two_rows_for_one_clip_in_one_fold_are_refused_and_in_two_folds_are_not():
    with pytest.raises(PredictionsError, match=r"mlp, .*clip_id same"):
        Predictions(table({"clip_id": "same"}, {"clip_id": "same"}))
    assert len(Predictions(table({"clip_id": "same"}, {"clip_id": "same", "fold": 1})).table) == 2


HEADER = ",".join(COLUMNS).encode()


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"", "empty file"),
        (b"\xff\xfe", ""),
        (b"a,b\n1,2\n", ""),
        (HEADER.replace(b"fold,", b"") + b"\n", ""),
        (HEADER + b"\nmlp,t,0,0,c,m,1,0.5,0.5,f\nmlp,t,0,0,d,m,1,0.5,0.5,f,,,\n", "line 3"),
        (HEADER + b"\nmlp,t,0,0,c,m,1,half,0.5,f\n", "column score .* row 1: 'half'"),
        (HEADER + b"\nmlp,t,x,0,c,m,1,0.5,0.5,f\n", "column fold .* row 1: 'x'"),
        (HEADER + b"\nmlp,t,0,0,c,m," + b"9" * 80 + b",0.5,0.5,f\n", "column label"),
    ],
)
def test_a_file_that_is_no_such_table_is_refused_where_it_is_none(tmp_path, content, place):
    path = tmp_path / "other.csv"
    path.write_bytes(content)
    with pytest.raises(PredictionsError, match=rf"other\.csv.*{place}"):
        Predictions.read(path)


def test_every_metric_is_computed_per_model_pooled_and_by_movie():
    changes = [
        {"movie": "a", "label": 1, "score": 0.9},
        {"movie": "a", "label": 0, "score": 0.2},
        {"movie": "b", "label": 1, "score": 0.8},
        {"movie": "b", "label": 0, "score": 0.85},
        {"movie": "c", "label": 0, "score": 0.0},
    ]
    summary = summarise(Predictions(table(*({"threshold": 0.5} | change for change in changes))))
    assert summary["metric"].tolist() == [*METRICS, "within_movie_auc"]
    by_metric = summary.set_index("metric")
    assert by_metric.loc["auc", "pooled"] == pytest.approx(5 / 6)
    assert by_metric.loc["within_movie_auc", "pooled"] == 0.5
    assert by_metric.loc["within_movie_auc", "n_movies"] == 2
    assert by_metric.loc["within_movie_auc", "n_undefined"] == 1
    assert by_metric.loc["f1_pos", "pooled"] == pytest.approx(0.8)
    assert by_metric.loc["f1_pos", "best_constant"] == pytest.approx(4 / 7)
    assert by_metric.loc["average_precision", "best_constant"] == by_metric["prevalence"].iloc[0] == 0.4


def test_of_ordered_levels_a_score_calls_the_level_it_is_nearest_to_and_labels_go_up_to_the_last():
    rows = table(*({"label": 2, "score": score, "threshold": 0.5} for score in (-1.0, 0.49, 0.5, 1.6, 9.0)))
    assert Predictions(rows, n_classes=3).called.tolist() == [0, 0, 1, 2, 2]
    with pytest.raises(PredictionsError, match="found 2"):
        Predictions(rows)
    with pytest.raises(PredictionsError, match="found 3"):
        Predictions(table({"label": 3}), n_classes=3)


def test_a_metric_that_no_movie_defines_is_nan_and_not_zero():
    summary = summarise(Predictions(table({"label": 0}, {"label": 0}))).set_index("metric")
    assert summary["pooled"].isna().all()
    assert (summary["n_movies"] == 0).all()


def test_a_movies_clips_are_predicted_in_the_order_of_the_manifest_under_both_protocols(make_planted):
    """Whatever looks at neighbouring clips relies on it."""
    data = make_planted(direction=1.0, film=1.0)
    for seen in (False, True):
        result = evaluate(data, ["linear"], "enhn_s", seen=seen).predictions.table
        for _, part in result.groupby(["model", "movie"]):
            places = [data.clip_ids.tolist().index(clip) for clip in part["clip_id"]]
            assert places == sorted(places)
