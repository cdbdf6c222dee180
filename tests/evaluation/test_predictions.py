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
    """Whatever finite scores and names of movies they have, predictions equal those in their file."""
    path = tmp_path_factory.mktemp("predictions") / "predictions.csv"
    rows = []
    for fold, (score, movie) in enumerate(scores_and_movies):
        rows.append({"score": score, "movie": movie, "fold": fold})
    predictions = Predictions(predictions_table(*rows))

    predictions.write(path)
    read_back = Predictions.read(path)

    pd.testing.assert_frame_equal(read_back.table, predictions.table)
    assert read_back.to_csv().encode() == path.read_bytes()


def test_a_score_that_reaches_the_threshold_is_called_positive():
    """The threshold is .5: of three clips the first reaches it, the second does not, the third is above."""
    table = predictions_table(
        {"score": 0.5, "threshold": 0.5},
        {"score": 0.4999, "threshold": 0.5},
        {"score": 0.6, "threshold": 0.5},
    )
    assert Predictions(table, n_classes=2).called.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("score", "called_level"),
    [(-1.0, 0), (0.49, 0), (0.5, 1), (1.6, 2), (9.0, 2)],
    ids=["below all levels", "nearest to 0", "half way from 0 to 1", "nearest to 2", "above all levels"],
)
def test_of_ordered_levels_the_one_nearest_to_the_score_is_called(score, called_level):
    """The scores of clips are on the scale of the levels 0, 1 and 2.

    The table's threshold, .5, is how far above a level a score calls the next one: half way to it.
    """
    table = predictions_table({"score": score, "threshold": 0.5})

    assert Predictions(table, n_classes=3).called.tolist() == [called_level]


@pytest.mark.parametrize(
    ("impossible_cell", "message"),
    [({"score": np.nan}, "score"), ({"score": np.inf}, "c0"), ({"movie": None}, "mov")],
    ids=["a score that is NaN", "an infinite score", "a row without a movie"],
)
def test_a_value_that_cannot_be_is_refused_by_its_column_or_clip(impossible_cell, message):
    """The table has one row, of the clip c0."""
    table = predictions_table(impossible_cell)
    with pytest.raises(PredictionsError, match=message):
        Predictions(table)


def test_a_clip_may_be_tested_in_two_folds():
    """Two rows of a table are predictions of the clip "same", by the models of the folds 0 and 1."""
    table = predictions_table({"clip_id": "same", "fold": 0}, {"clip_id": "same", "fold": 1})

    predictions = Predictions(table)

    assert len(predictions.table) == 2


def test_a_clip_tested_twice_in_one_fold_is_refused_with_its_model_and_id():
    """The model is named "mlp"."""
    table = predictions_table({"clip_id": "same", "fold": 0}, {"clip_id": "same", "fold": 0})
    with pytest.raises(PredictionsError, match=r"mlp, .*clip_id same"):
        Predictions(table)


HEADER = ",".join(COLUMNS).encode() + b"\n"


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe", b"a,b\n1,2\n", HEADER.replace(b"fold,", b"")],
    ids=["other bytes than text", "other columns", "without the column fold"],
)
def test_a_file_that_is_no_table_of_predictions_is_refused_by_its_name(tmp_path, content):
    """A table of predictions has ten columns, of which `HEADER` is the line of names."""
    path = tmp_path / "other.csv"
    path.write_bytes(content)
    with pytest.raises(PredictionsError, match=r"other\.csv"):
        Predictions.read(path)


def line_of_prediction(**changed_cells):
    """Write the line of a good prediction, `ROW`, but for these cells."""
    cells = ROW | changed_cells
    return ",".join(str(cells[column]) for column in COLUMNS).encode() + b"\n"


@pytest.mark.parametrize(
    ("column", "faulty_cell", "place"),
    [
        ("score", "half", "column score .* row 1: 'half'"),
        ("fold", "x", "column fold .* row 1: 'x'"),
        ("label", "9" * 80, "column label"),
    ],
    ids=["a word for a score", "a letter for a fold", "an endless label"],
)
def test_a_faulty_prediction_is_refused_with_its_column_and_row(tmp_path, column, faulty_cell, place):
    """The file has the line of column names and one prediction, row 1, with a fault in one cell."""
    path = tmp_path / "other.csv"
    path.write_bytes(HEADER + line_of_prediction(**{column: faulty_cell}))

    with pytest.raises(PredictionsError, match=rf"other\.csv.*{place}"):
        Predictions.read(path)


def test_a_line_of_too_many_cells_is_refused_by_its_number(tmp_path):
    """Line 1 has the names of the columns, line 2 a good prediction, and line 3 one with three more cells."""
    too_long_line = line_of_prediction(clip_id="d").replace(b"\n", b",,,\n")
    path = tmp_path / "other.csv"
    path.write_bytes(HEADER + line_of_prediction(clip_id="c") + too_long_line)

    with pytest.raises(PredictionsError, match=r"other\.csv.*line 3"):
        Predictions.read(path)


def test_the_message_on_an_empty_file_of_predictions_says_that_the_file_is_empty(tmp_path):
    """The file has not even the line of column names, so that no column could be named as missing."""
    path = tmp_path / "other.csv"
    path.write_bytes(b"")

    with pytest.raises(PredictionsError, match=r"other\.csv.*empty file"):
        Predictions.read(path)


@pytest.fixture
def summary_of_five_clips():
    """The summary of five clips of three movies at a threshold of .5, a row for each metric."""
    rows = predictions_table(
        {"movie": "a", "label": 1, "score": 0.9},
        {"movie": "a", "label": 0, "score": 0.2},
        {"movie": "b", "label": 1, "score": 0.8},
        {"movie": "b", "label": 0, "score": 0.85},
        {"movie": "c", "label": 0, "score": 0.0},
    )
    return summarise(Predictions(rows.assign(threshold=0.5))).set_index("metric")


def test_a_summary_of_five_clips_has_the_metrics_that_follow_by_hand(summary_of_five_clips):
    """Positive clips have the scores .9 and .8, negative ones .2, .85 and 0.

    Of the 2 * 3 pairs only .8 and .85 are in the wrong order. The threshold is .5: three clips are called
    positive, both positive ones among them.
    """
    summary = summary_of_five_clips
    assert summary.index.tolist() == [*METRICS, "within_movie_auc"]
    assert summary.loc["auc", "pooled"] == pytest.approx(5 / 6)
    precision, recall = 2 / 3, 2 / 2
    f1 = 2 * precision * recall / (precision + recall)
    assert summary.loc["f1_pos", "pooled"] == pytest.approx(f1)


def test_within_movies_a_summary_counts_those_that_define_the_auc(summary_of_five_clips):
    """The clips of movie a are in the right order (AUC 1), and those of b in the wrong one (AUC 0).

    The third movie has no positive clip, and so no AUC.
    """
    within = summary_of_five_clips.loc["within_movie_auc"]
    assert within["pooled"] == (1.0 + 0.0) / 2
    assert within["n_movies"] == 2
    assert within["n_undefined"] == 1


def test_a_summary_has_the_values_of_the_best_constant_call(summary_of_five_clips):
    """Two of five clips are positive. The best constant calls every clip positive.

    Its precision is the prevalence, and its recall 1.
    """
    summary = summary_of_five_clips
    prevalence = 2 / 5
    assert summary["prevalence"].iloc[0] == prevalence
    assert summary.loc["average_precision", "best_constant"] == prevalence
    assert summary.loc["f1_pos", "best_constant"] == pytest.approx(2 * prevalence * 1 / (prevalence + 1))


@pytest.mark.parametrize(("n_classes", "last_label"), [(2, 1), (3, 2)])
def test_a_label_above_the_last_class_is_refused(n_classes, last_label):
    """Labels count from 0 on: of two classes they are 0 and 1, of three 0, 1 and 2. The last one is taken."""
    with_last_label = predictions_table({"label": last_label})
    assert len(Predictions(with_last_label, n_classes=n_classes).table) == 1

    with_a_label_too_high = predictions_table({"label": last_label + 1})
    with pytest.raises(PredictionsError, match=f"found {last_label + 1}"):
        Predictions(with_a_label_too_high, n_classes=n_classes)


def test_a_metric_that_no_movie_defines_is_nan_and_not_zero():
    """Neither of two clips is positive, so that no metric of positive clips is defined."""
    without_a_positive_clip = Predictions(predictions_table({"label": 0}, {"label": 0}))

    summary = summarise(without_a_positive_clip).set_index("metric")

    undefined = ["average_precision", "f1_pos", "f1_weighted", "f1_macro", "balanced_accuracy", "auc"]
    assert summary.loc[undefined, "pooled"].isna().all()
    assert (summary.loc[undefined, "n_movies"] == 0).all()


@pytest.mark.parametrize("seen", [False, True], ids=["new films", "seen films"])
def test_clips_of_a_movie_are_predicted_in_the_order_of_the_manifest(make_synthetic_data, seen):
    """The rows of a movie are in the manifest's order, which is that of time, for new films and seen ones.

    Tests that look at neighbouring clips of a movie, such as by shifts, rely on it.
    """
    data = make_synthetic_data(direction=1.0, film=1.0)
    place_in_manifest = {clip_id: index for index, clip_id in enumerate(data.clip_ids.tolist())}

    predictions = evaluate(data, ["linear"], "enhn_s", seen=seen).predictions

    for _, rows_of_movie in predictions.table.groupby(["model", "movie"]):
        places = [place_in_manifest[clip_id] for clip_id in rows_of_movie["clip_id"]]
        assert places == sorted(places)
