"""The baseline `staging` reads a table of variables alone; every column and clip of the table has a fate."""

import re

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

    without_variables = om.evaluate(data, ["linear"], "en_s")
    assert STAGING not in set(without_variables.metrics["model"])


def test_columns_and_clips_are_accounted_for(data, tmp_path):
    """Three clips have no row, one row is of another film, and two are empty."""
    rows = rows_of_cuts(data)[3:]
    rows.append({"clip_id": "other", "movie": "f9", "start_s": 0, "end_s": 5, "cuts": "1", "black": 0})
    rows += [{}, {}]
    rows = [{name.replace("cuts", "cuts\na minute"): cell for name, cell in row.items()} for row in rows]

    measured, (note,) = with_variables(data, write_rows(tmp_path / "v.csv", rows))

    assert measured.variables.shape == (120, 1)
    assert measured.take(np.arange(5)).variables.shape == (5, 1)
    assert np.isnan(measured.variables[:3]).all()
    assert "by cuts a minute (of 100 clips);" in note
    assert "left out movie, start_s, end_s, black" in note
    assert "3 clips of 120 without a row" in note
    assert "1 row of other" in note


def with_spaces_around_names(text):
    return text.replace("f0-", " f0-").replace(",f0,", " ,f0,")


def with_semicolons_and_decimal_commas(text):
    return text.replace(",", ";").replace(".0", ",0")


@pytest.mark.parametrize("rewrite", [with_spaces_around_names, with_semicolons_and_decimal_commas])
def test_a_table_as_other_tools_write_it_has_the_same_variables(data, variables, rewrite):
    measured, _ = with_variables(data, variables)
    variables.write_text(rewrite(variables.read_text()))
    rewritten, _ = with_variables(data, variables)
    np.testing.assert_array_equal(rewritten.variables, measured.variables)


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
    ("clip", "columns"),
    [
        (of.Clip("f0-01", "F0", "", 0, 5.001), ["movie", "start_s", "end_s"]),
        (of.Clip("f0-01", "f0"), ["movie", "start_s", "end_s"]),
        (of.Clip("f0-01", "f1", "", 0, 4), []),
    ],
    ids=["within a hundredth of a second", "a clip without times", "a table without films and times"],
)
def test_a_row_of_the_window_of_its_clip_is_read(data, variables, clip, columns):
    rows = pd.read_csv(variables)
    rows[["clip_id", *columns, "cuts"]].to_csv(variables, index=False)
    measured, _ = with_variables(data, variables, [clip])
    assert measured.variable_names == ("cuts",)


def test_indices_and_columns_of_a_manifest_in_other_letters_are_no_variables(data, tmp_path):
    """A data frame writes its index as a column. Times are compared with those of clips all the same."""
    rows = []
    for n, row in enumerate(rows_of_cuts(data)):
        of_frame = {"": n, "Unnamed: 0": n + 7, "clip_id": row["clip_id"], "movie": row["movie"]}
        of_frame |= {"Start_S": 0, "End_s": 5, "cuts": row["cuts"], "black": 0, "Level": n % 5 / 4}
        rows.append(of_frame)
    frame = write_rows(tmp_path / "frame.csv", rows)

    measured, _ = with_variables(data, frame)
    assert measured.variable_names == ("cuts",)
    with pytest.raises(ManifestError, match="column end_s"):
        with_variables(data, frame, [of.Clip("f0-01", "f0", "", 0, 4)])


@pytest.mark.parametrize("cell", ["high", "nan", "1e999", "-1e200"])
def test_a_cell_that_is_no_number_is_refused(data, variables, cell):
    variables.write_text(variables.read_text().replace(",5.0,", f",{cell},", 1))
    with pytest.raises(ManifestError, match=f"column cuts: '{cell}' is no number"):
        with_variables(data, variables)


def with_first_row_twice(text):
    _header, first_row, *_ = text.splitlines()
    return text + first_row + "\n"


def with_clips_renamed(text):
    return text.replace("f", "g")


def with_cuts_constant(text):
    return re.sub(r"5,[\d.]*,0\n", "5,1,0\n", text)


def with_a_word_in_a_column_named_like_levels(text):
    return text.replace("cuts", "level2").replace("5.0", "high", 1)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (with_first_row_twice, ManifestError, "f0-00 has a row already"),
        (with_clips_renamed, DatasetError, "no clip of the evaluation"),
        (with_cuts_constant, DatasetError, "no column of numbers that vary"),
        (with_a_word_in_a_column_named_like_levels, ManifestError, "column level2: 'high' is no number"),
    ],
)
def test_a_table_without_variables_of_the_clips_is_refused(data, variables, change, error, message):
    variables.write_text(change(variables.read_text()))
    with pytest.raises(error, match=message):
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


def test_people_are_variables_of_a_visual_concept_alone_and_their_frames_are_none(data, tmp_path):
    """Every second clip has no close-up, and a face; the numbers differ from clip to clip.

    `people_frames` is the number of frames in which people were counted.
    """
    rows = []
    for n, clip_id in enumerate(data.clip_ids):
        screen = ["0.00", "0.33", "0.67", "1.00"][n % 4]
        if n % 2 == 1:
            rows.append({"clip_id": clip_id, "screen": screen, "close": 1, "face": "", "people_frames": 2})
        else:
            face = f"0.{n % 9}1"
            rows.append({"clip_id": clip_id, "screen": screen, "close": 0, "face": face, "people_frames": 3})
    people = write_rows(tmp_path / "people.csv", rows)

    measured, (note,) = with_variables(data, people, (), om.find_target("concept:Body", data.codebook))
    assert measured.variable_names == ("screen", "close", "face")
    assert "left out people_frames" in note
    with pytest.raises(DatasetError, match="no column of numbers"):
        with_variables(data, people, (), om.find_target("concept:Voice", data.codebook))
