"""The baseline `staging` reads a table of variables alone; every column and clip of the table has a fate."""

import numpy as np
import pandas as pd
import pytest

import obygaze_features as of
import obygaze_models as om
from obygaze_features.errors import ManifestError
from obygaze_features.store.testing import seal_arrays
from obygaze_models.dataset.variables_and_answers import with_variables
from obygaze_models.errors import DatasetError, ProtocolError
from obygaze_models.models.names import STAGING

FILMS = [f"f{number}" for number in range(6)]
CLIPS_A_FILM = 20


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """120 clips f0-00 to f5-19 of six films, whose features know nothing of their level, S or EN."""
    folder = tmp_path_factory.mktemp("staging")
    rng = np.random.default_rng(0)
    clip_ids = [f"{film}-{k:02}" for film in FILMS for k in range(CLIPS_A_FILM)]
    X = rng.normal(size=(len(clip_ids), 4)).astype(np.float32)
    movie_of = {clip_id: clip_id.partition("-")[0] for clip_id in clip_ids}
    store = of.open_store(seal_arrays(folder / "store", movie_of, {"b": {"pooled": X}}))
    levels = np.where(rng.random(len(clip_ids)) < 0.5, "S", "EN")
    clips = []
    for clip_id, level in zip(clip_ids, levels, strict=True):
        clips.append(of.Clip(clip_id, movie_of[clip_id], "", None, None, str(level), (), "a"))
    return om.load_dataset(store, of.Manifest(tuple(clips), folder))


def write_rows(path, rows):
    """Write rows, each a dict of column -> cell, as a table."""
    pd.DataFrame(rows).to_csv(path, index=False, lineterminator="\n")
    return path


def rows_of_cuts(data):
    """Make a row for each clip: cuts a minute, more in S clips and empty in every seventh; black is 0."""
    rows = []
    for n, (clip_id, movie, level) in enumerate(zip(data.clip_ids, data.movies, data.levels, strict=True)):
        cuts = n % 3 + (5.0 if level == "S" else 0.0)
        cell = "" if n % 7 == 0 else str(cuts)
        rows.append({"clip_id": clip_id, "movie": movie, "start_s": 0, "end_s": 5, "cuts": cell, "black": 0})
    return rows


@pytest.fixture
def variables(data, tmp_path):
    """A table of the columns clip_id, movie, start_s, end_s, cuts and black, with a row for each clip."""
    return write_rows(tmp_path / "v.csv", rows_of_cuts(data))


@pytest.mark.long  # simulates
def test_a_variable_that_tells_the_level_is_a_baseline_that_no_model_beats(data, variables):
    measured, _ = with_variables(data, variables)
    run = om.evaluate(measured, ["linear"], "en_s")
    auc = run.metrics[run.metrics["metric"] == "auc"].set_index("model")["movie_mean"]
    assert auc[STAGING] > 0.85
    assert auc["linear"] < 0.7
    assert "no model is shown to be better" in om.run_report(run).answers[0]


@pytest.mark.long  # simulates
def test_without_variables_staging_is_no_baseline(data):
    run = om.evaluate(data, ["linear"], "en_s")
    assert STAGING not in set(run.metrics["model"])


def test_columns_and_clips_are_accounted_for(data, tmp_path):
    """Three clips have no row, one row is of another film, and two are empty."""
    rows = rows_of_cuts(data)[3:]
    rows.append({"clip_id": "other", "movie": "f9", "start_s": 0, "end_s": 5, "cuts": "1", "black": 0})
    rows += [{}, {}]
    rows = [{name.replace("cuts", "cuts\na minute"): cell for name, cell in row.items()} for row in rows]
    measured, (note,) = with_variables(data, write_rows(tmp_path / "v.csv", rows))

    assert measured.variables.shape == (120, 1)
    assert np.isnan(measured.variables[:3]).all()
    assert "by cuts a minute (of 100 clips);" in note
    assert "left out movie, start_s, end_s, black" in note
    assert "3 clips of 120 without a row" in note
    assert "1 row of other" in note


def test_a_part_of_a_dataset_keeps_its_variables(data, variables):
    measured, _ = with_variables(data, variables)
    assert measured.take(np.arange(5)).variables.shape == (5, 1)


def test_spaces_around_names_are_ignored(data, variables):
    measured, _ = with_variables(data, variables)
    text = variables.read_text()
    variables.write_text(text.replace("f0-", " f0-").replace(",f0,", " ,f0,"))
    spaced, _ = with_variables(data, variables)
    np.testing.assert_array_equal(spaced.variables, measured.variables)


def test_a_table_of_semicolons_and_decimal_commas_is_read(data, variables):
    measured, _ = with_variables(data, variables)
    text = variables.read_text()
    variables.write_text(text.replace(",", ";").replace(".0", ",0"))
    european, _ = with_variables(data, variables)
    np.testing.assert_array_equal(european.variables, measured.variables)


def test_a_variable_that_is_the_label_is_refused(data, tmp_path):
    """In clips that have the variable it is 3 for S and 0 for EN."""
    rows = rows_of_cuts(data)
    for n, (row, level) in enumerate(zip(rows, data.levels, strict=True)):
        row["cuts"] = "" if n % 7 == 0 else 3 * int(level == "S")
    measured, _ = with_variables(data, write_rows(tmp_path / "v.csv", rows))
    with pytest.raises(ProtocolError, match="variable cuts equals the label"):
        om.evaluate(measured, ["linear"], "en_s")


@pytest.mark.parametrize(
    ("clip", "message"),
    [
        (of.Clip("f0-01", "f0", "", 0, 4), r"line 3, column end_s: 5.0, and clip f0-01 has 4.0"),
        (of.Clip("f0-01", "f1", "", 0, 5), r"column movie: f0, and clip f0-01 has f1"),
    ],
    ids=["another end", "another film"],
)
def test_a_row_of_another_window_than_its_clip_is_refused(data, variables, clip, message):
    with pytest.raises(ManifestError, match=message):
        with_variables(data, variables, [clip])


@pytest.mark.parametrize(
    "clip",
    [of.Clip("f0-01", "F0", "", 0, 5.001), of.Clip("f0-01", "f0")],
    ids=["within a hundredth of a second", "a clip without times"],
)
def test_a_row_of_the_window_of_its_clip_is_read(data, variables, clip):
    measured, _ = with_variables(data, variables, [clip])
    assert measured.variable_names == ("cuts",)


def test_a_table_without_films_and_times_is_read_for_any_window(data, variables):
    rows = pd.read_csv(variables)
    rows.drop(columns=["movie", "start_s", "end_s"]).to_csv(variables, index=False)
    measured, _ = with_variables(data, variables, [of.Clip("f0-01", "f1", "", 0, 4)])
    assert measured.variable_names == ("cuts",)


@pytest.fixture
def frame_with_index(data, tmp_path):
    """A table as a data frame writes it: indices, columns of a manifest in other letters, and cuts."""
    rows = []
    for n, row in enumerate(rows_of_cuts(data)):
        rows.append(
            {
                "": n,
                "Unnamed: 0": n + 7,
                "clip_id": row["clip_id"],
                "movie": row["movie"],
                "Start_S": 0,
                "End_s": 5,
                "cuts": row["cuts"],
                "black": 0,
                "Level": n % 5 / 4,
            }
        )
    return write_rows(tmp_path / "frame.csv", rows)


def test_indices_and_columns_of_a_manifest_are_no_variables(data, frame_with_index):
    measured, _ = with_variables(data, frame_with_index)
    assert measured.variable_names == ("cuts",)


def test_times_in_other_letters_are_compared_too(data, frame_with_index):
    with pytest.raises(ManifestError, match="column end_s"):
        with_variables(data, frame_with_index, [of.Clip("f0-01", "f0", "", 0, 4)])


@pytest.mark.parametrize("cell", ["high", "nan", "1e999", "-1e200"])
def test_a_cell_that_is_no_number_is_refused(data, variables, cell):
    variables.write_text(variables.read_text().replace(",5.0,", f",{cell},", 1))
    with pytest.raises(ManifestError, match=f"column cuts: '{cell}' is no number"):
        with_variables(data, variables)


def test_a_column_named_like_levels_is_a_variable(data, variables):
    variables.write_text(variables.read_text().replace("cuts", "level2").replace("5.0", "high", 1))
    with pytest.raises(ManifestError, match="column level2: 'high' is no number"):
        with_variables(data, variables)


def test_a_second_row_of_a_clip_is_refused(data, variables):
    text = variables.read_text()
    first_row = text.splitlines()[1]
    variables.write_text(text + first_row + "\n")
    with pytest.raises(ManifestError, match="f0-00 has a row already"):
        with_variables(data, variables)


def test_a_table_of_other_clips_is_refused(data, variables):
    variables.write_text(variables.read_text().replace("f", "g"))
    with pytest.raises(DatasetError, match="no clip of the evaluation"):
        with_variables(data, variables)


def test_a_table_of_one_constant_is_refused(data, variables):
    rows = pd.read_csv(variables)
    rows.drop(columns=["cuts", "black"]).assign(one=1).to_csv(variables, index=False)
    with pytest.raises(DatasetError, match="no column of numbers that vary"):
        with_variables(data, variables)


@pytest.mark.parametrize(
    ("task", "variables", "left_out"),
    [
        ("concept:Body", ("camera", "mine"), ["loudness"]),
        ("concept:Voice", ("loudness", "mine"), ["camera"]),
        ("concept:Narratology", ("mine",), ["loudness", "camera"]),
        ("en_s", ("loudness", "camera", "mine"), []),
    ],
)
def test_a_concepts_baseline_takes_no_variable_of_another_medium(data, tmp_path, task, variables, left_out):
    """A baseline for a seen concept may use camera motion and not loudness.

    For a heard concept it is the reverse. The variable "mine" is of unknown medium and always taken;
    Narratology is neither seen nor heard.
    """
    rows = [
        {"clip_id": clip_id, "loudness": -n, "camera": n % 5, "mine": n % 3}
        for n, clip_id in enumerate(data.clip_ids)
    ]
    path = write_rows(tmp_path / "v.csv", rows)
    measured, (note,) = with_variables(data, path, (), om.find_target(task, data.codebook))

    assert measured.variable_names == variables
    for column in left_out:
        assert f"{column} (" in note


@pytest.fixture
def people(data, tmp_path):
    """A table of people on screen, with the number of frames in which they were counted.

    Every second clip has no close-up, and a face; the numbers differ from clip to clip.
    """
    rows = []
    for n, clip_id in enumerate(data.clip_ids):
        is_close_up = n % 2 == 1
        row = {
            "clip_id": clip_id,
            "screen": ["0.00", "0.33", "0.67", "1.00"][n % 4],
            "close": 1 if is_close_up else 0,
            "face": "" if is_close_up else f"0.{n % 9}1",
            "people_frames": 2 if is_close_up else 3,
        }
        rows.append(row)
    return write_rows(tmp_path / "people.csv", rows)


def test_people_are_variables_of_a_visual_concept_and_their_frames_are_not(data, people):
    target = om.find_target("concept:Body", data.codebook)
    measured, (note,) = with_variables(data, people, (), target)
    assert measured.variable_names == ("screen", "close", "face")
    assert "left out people_frames" in note


def test_people_are_no_variables_of_a_heard_concept(data, people):
    with pytest.raises(DatasetError, match="no column of numbers"):
        with_variables(data, people, (), om.find_target("concept:Voice", data.codebook))
