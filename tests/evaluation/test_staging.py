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

FILMS = [f"f{number}" for number in range(6)]
CLIPS_A_FILM = 20


@pytest.fixture(scope="module")
def data_of_120_clips(tmp_path_factory):
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
        clips.append(
            of.Clip(clip_id, movie_of[clip_id], "", start_s=None, end_s=None, level=str(level), annotator="a")
        )
    return om.load_dataset(store, of.Manifest(tuple(clips), folder))


def write_rows(path, rows):
    """Write rows, each a dict of column -> cell, or a data frame, as a table."""
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
def table_of_cuts(data_of_120_clips, tmp_path):
    """A table of the columns clip_id, movie, start_s, end_s, cuts and black, with a row for each clip."""
    return write_rows(tmp_path / "v.csv", rows_of_cuts(data_of_120_clips))


@pytest.mark.long  # simulates
def test_a_variable_that_tells_the_level_is_a_baseline_that_no_model_beats(data_of_120_clips, table_of_cuts):
    """S clips have more cuts than others, and the features know nothing of the level.

    The baseline `staging` reads the cuts alone, and the linear model the features.
    """
    measured, _ = with_variables(data_of_120_clips, table_of_cuts)

    run = om.evaluate(measured, ["linear"], "en_s")

    auc = run.metrics[run.metrics["metric"] == "auc"].set_index("model")["movie_mean"]
    assert auc["staging"] > 0.85
    assert auc["linear"] < 0.7
    assert "no model is shown to be better" in om.run_report(run).answers[0]


@pytest.mark.long  # simulates
def test_without_a_table_of_variables_there_is_no_baseline_of_staging(data_of_120_clips):
    """The baseline `staging` reads variables, such as the number of cuts; the data have features alone."""
    run = om.evaluate(data_of_120_clips, ["linear"], "en_s")
    assert "staging" not in set(run.metrics["model"])


def test_the_note_on_variables_counts_clips_without_a_row_and_names_columns_that_are_left_out(
    data_of_120_clips, tmp_path
):
    """A table of variables has rows of 117 of 120 clips, one row of another clip, and two empty rows.

    Its columns are those of a manifest (clip_id, movie, start_s, end_s), `black`, which is 0 everywhere, and
    `cuts`, with the name on two lines, as a spreadsheet may have it. Only `cuts` becomes a variable, as the
    others are no variables or do not vary. Every seventh clip has no number of cuts: 100 clips have one. The
    first three clips, which the table lacks, get NaN. The note must say all of this.
    """
    rows = rows_of_cuts(data_of_120_clips)[3:]
    rows.append({"clip_id": "other", "movie": "f9", "start_s": 0, "end_s": 5, "cuts": "1", "black": 0})
    empty_row = {}
    rows += [empty_row, empty_row]
    table = write_rows(tmp_path / "v.csv", pd.DataFrame(rows).rename(columns={"cuts": "cuts\na minute"}))

    measured, (note,) = with_variables(data_of_120_clips, table)

    assert measured.variables.shape == (120, 1)
    assert np.isnan(measured.variables[:3]).all()
    first_five_clips = measured.take(np.arange(5))
    assert first_five_clips.variables.shape == (5, 1)
    assert "by cuts a minute (of 100 clips);" in note
    assert "left out movie, start_s, end_s, black" in note
    assert "3 clips of 120 without a row" in note
    assert "1 row of other" in note


def with_spaces_around_names(text):
    return text.replace("f0-", " f0-").replace(",f0,", " ,f0,")


def with_semicolons_and_decimal_commas(text):
    return text.replace(",", ";").replace(".0", ",0")


@pytest.mark.parametrize("rewrite", [with_spaces_around_names, with_semicolons_and_decimal_commas])
def test_a_table_as_other_tools_write_it_has_the_same_variables(data_of_120_clips, table_of_cuts, rewrite):
    """A table of 120 clips has their cuts a minute. Another tool writes it otherwise, as `rewrite` does."""
    as_ours, _ = with_variables(data_of_120_clips, table_of_cuts)

    table_of_cuts.write_text(rewrite(table_of_cuts.read_text()))
    as_of_other_tool, _ = with_variables(data_of_120_clips, table_of_cuts)

    np.testing.assert_array_equal(as_of_other_tool.variables, as_ours.variables)


def test_a_variable_that_is_the_label_is_refused(data_of_120_clips, tmp_path):
    """In clips that have the variable (all but every seventh) it is 3 for S and 0 for EN."""
    rows = rows_of_cuts(data_of_120_clips)
    for number, (row, level) in enumerate(zip(rows, data_of_120_clips.levels, strict=True)):
        if number % 7 == 0:
            row["cuts"] = ""
        else:
            row["cuts"] = 3 if level == "S" else 0
    measured, _ = with_variables(data_of_120_clips, write_rows(tmp_path / "v.csv", rows))

    with pytest.raises(ProtocolError, match="variable cuts equals the label"):
        om.evaluate(measured, ["linear"], "en_s")


@pytest.mark.parametrize(
    ("clip", "message"),
    [
        (
            of.Clip("f0-01", "f0", "", start_s=0, end_s=4),
            r"line 3, column end_s: 5.0, and clip f0-01 has 4.0",
        ),
        (of.Clip("f0-01", "f1", "", start_s=0, end_s=5), r"column movie: f0, and clip f0-01 has f1"),
    ],
    ids=["another end", "another film"],
)
def test_a_row_of_another_window_than_its_clip_is_refused(data_of_120_clips, table_of_cuts, clip, message):
    """In the table the clip f0-01, on line 3, is of the film f0 and lasts from 0 to 5 s."""
    with pytest.raises(ManifestError, match=message):
        with_variables(data_of_120_clips, table_of_cuts, [clip])


@pytest.mark.parametrize(
    "clip",
    [
        pytest.param(of.Clip("f0-01", "f0", "", start_s=0, end_s=5.001), id="within .01 s"),
        pytest.param(of.Clip("f0-01", "F0", "", start_s=0, end_s=5), id="a film in another case"),
        pytest.param(of.Clip("f0-01", "f0"), id="a clip without times"),
    ],
)
def test_a_row_that_agrees_with_its_clip_on_film_and_times_is_read(data_of_120_clips, table_of_cuts, clip):
    """In the table, whose variable is `cuts`, the clip f0-01 is of the film f0 and lasts from 0 to 5 s."""
    measured, _ = with_variables(data_of_120_clips, table_of_cuts, [clip])

    assert measured.variable_names == ("cuts",)


def test_a_table_that_states_no_films_and_times_is_read_whatever_the_manifest_says_of_them(
    data_of_120_clips, table_of_cuts
):
    """A table that states a clip's film and times is refused if the manifest says others.

    This one has only the ids of clips and their cuts, so nothing contradicts the manifest, by which the clip
    f0-01 is of the film f1 and ends at 4 s. The cuts are read as a variable.
    """
    rows = pd.read_csv(table_of_cuts)
    rows[["clip_id", "cuts"]].to_csv(table_of_cuts, index=False)
    clip_of_manifest = of.Clip("f0-01", "f1", "", start_s=0, end_s=4)

    measured, _ = with_variables(data_of_120_clips, table_of_cuts, [clip_of_manifest])

    assert measured.variable_names == ("cuts",)


@pytest.fixture
def table_of_data_frame(data_of_120_clips, tmp_path):
    """A table of cuts that a data frame wrote twice, and in which a person renamed columns of the manifest.

    Each time, the frame wrote its index: as a column without a name, and as "Unnamed: 0". The manifest's
    columns start_s, end_s and level are called Start_S, End_s and Level. Black is 0 in all clips.
    """
    rows = []
    for number, row in enumerate(rows_of_cuts(data_of_120_clips)):
        rows.append(
            {
                "": number,
                "Unnamed: 0": number + 7,
                "clip_id": row["clip_id"],
                "movie": row["movie"],
                "Start_S": 0,
                "End_s": 5,
                "cuts": row["cuts"],
                "black": 0,
                "Level": number % 5 / 4,
            }
        )
    return write_rows(tmp_path / "frame.csv", rows)


def test_an_index_and_columns_of_a_manifest_in_capitals_are_not_read_as_variables(
    data_of_120_clips, table_of_data_frame
):
    """Of a table's columns of numbers, two are indices of a data frame: one without a name, and "Unnamed: 0".

    Three are those of a manifest, called Start_S, End_s and Level, which would give the label away. Only the
    column of cuts measures something of the clips; that of black is 0 in all.
    """
    measured, _ = with_variables(data_of_120_clips, table_of_data_frame)

    assert measured.variable_names == ("cuts",)


def test_times_under_names_in_other_letters_are_compared_with_those_of_clips(
    data_of_120_clips, table_of_data_frame
):
    """In the table f0-01 ends at 5 s, in a column named End_s, and the clip at 4 s."""
    clip = of.Clip("f0-01", "f0", "", start_s=0, end_s=4)
    with pytest.raises(ManifestError, match="column end_s"):
        with_variables(data_of_120_clips, table_of_data_frame, [clip])


@pytest.mark.parametrize("cell", ["high", "nan", "1e999", "-1e200"])
def test_a_cell_that_is_no_number_is_refused(data_of_120_clips, table_of_cuts, cell):
    """A number of cuts, 5.0, is replaced by a word, or by what is not a number of a sensible size."""
    text = table_of_cuts.read_text().replace(",5.0,", f",{cell},", 1)
    table_of_cuts.write_text(text)
    with pytest.raises(ManifestError, match=f"column cuts: '{cell}' is no number"):
        with_variables(data_of_120_clips, table_of_cuts)


def with_first_row_twice(text):
    """Write the row below the header once more, at the end."""
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
def test_a_table_without_variables_of_the_clips_is_refused(
    data_of_120_clips, table_of_cuts, change, error, message
):
    """The table has a row for each clip, f0-00 to f5-19, with its cuts."""
    table_of_cuts.write_text(change(table_of_cuts.read_text()))
    with pytest.raises(error, match=message):
        with_variables(data_of_120_clips, table_of_cuts)


@pytest.mark.parametrize(
    ("task", "variables", "left_out"),
    [
        ("concept:Body", ("camera", "mine"), ["loudness"]),
        ("concept:Voice", ("loudness", "mine"), ["camera"]),
        ("concept:Narratology", ("mine",), ["loudness", "camera"]),
        ("en_s", ("loudness", "camera", "mine"), []),
    ],
)
def test_a_concepts_baseline_takes_no_variable_of_another_medium(
    data_of_120_clips, tmp_path, task, variables, left_out
):
    """A baseline for a seen concept may use camera motion and not loudness.

    For a heard concept it is the reverse. The variable "mine" is of unknown medium and always taken;
    Narratology is neither seen nor heard. A task of levels takes all.
    """
    data = data_of_120_clips
    rows = []
    for number, clip_id in enumerate(data.clip_ids):
        rows.append({"clip_id": clip_id, "loudness": -number, "camera": number % 5, "mine": number % 3})
    table = write_rows(tmp_path / "v.csv", rows)

    measured, (note,) = with_variables(data, table, (), om.find_target(task, data.codebook))

    assert measured.variable_names == variables
    for column in left_out:
        assert f"{column} (" in note


@pytest.fixture
def table_of_people(data_of_120_clips, tmp_path):
    """A table of the people in each clip: the share of time on screen, close-ups, and the size of a face.

    Every second clip has no close-up, and a face; the numbers differ from clip to clip. `people_frames` is
    the number of frames in which people were counted.
    """
    rows = []
    for number, clip_id in enumerate(data_of_120_clips.clip_ids):
        row = {"clip_id": clip_id, "screen": ["0.00", "0.33", "0.67", "1.00"][number % 4]}
        if number % 2 == 1:
            row |= {"close": 1, "face": "", "people_frames": 2}
        else:
            row |= {"close": 0, "face": f"0.{number % 9}1", "people_frames": 3}
        rows.append(row)
    return write_rows(tmp_path / "people.csv", rows)


def test_a_model_of_a_visual_concept_reads_the_columns_of_people_but_for_the_number_of_counted_frames(
    data_of_120_clips, table_of_people
):
    """A table has four columns on people: three measure what is seen of them, as their faces' size.

    The fourth, `people_frames`, says in how many frames people were counted, and so nothing of the clip. It
    is left out, and a note says so. The concept Body is visual, so that what is seen may convey it.
    """
    body = om.find_target("concept:Body", data_of_120_clips.codebook)

    measured, (note,) = with_variables(data_of_120_clips, table_of_people, (), body)

    assert measured.variable_names == ("screen", "close", "face")
    assert "left out people_frames" in note


def test_people_are_no_variables_of_a_concept_that_is_heard(data_of_120_clips, table_of_people):
    """How many people are seen, and how large, is measured of pictures, and the concept Voice is heard."""
    voice = om.find_target("concept:Voice", data_of_120_clips.codebook)
    with pytest.raises(DatasetError, match="no column of numbers"):
        with_variables(data_of_120_clips, table_of_people, (), voice)
