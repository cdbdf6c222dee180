"""The baseline `staging` reads a table of variables alone; every column and clip of the table has a fate."""

from contextlib import nullcontext

import numpy as np
import pytest

import obygaze_features as of
import obygaze_models as om
from obygaze_features.errors import ManifestError
from obygaze_features.store.testing import seal_arrays
from obygaze_models.dataset.beside import with_variables
from obygaze_models.errors import DatasetError, ProtocolError
from obygaze_models.models.names import STAGING

FILMS, PER_FILM = [f"f{k}" for k in range(6)], 20


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Clips whose features know nothing of their level."""
    folder, rng = tmp_path_factory.mktemp("staging"), np.random.default_rng(0)
    names = [f"{film}-{k:02}" for film in FILMS for k in range(PER_FILM)]
    X = rng.normal(size=(len(names), 4)).astype(np.float32)
    movies = {name: name.partition("-")[0] for name in names}
    store = of.open_store(seal_arrays(folder / "store", movies, {"b": {"pooled": X}}))
    levels = np.where(rng.random(len(names)) < 0.5, "S", "EN")
    clips = [
        of.Clip(name, movies[name], "", None, None, str(level), (), "a")
        for name, level in zip(names, levels, strict=True)
    ]
    return om.load_dataset(store, of.Manifest(tuple(clips), folder))


def table(path, data, *, cuts=lambda positive, n: 5.0 * positive + n % 3, extra="", skip=0):
    lines = ["clip_id,movie,start_s,end_s,cuts,black" + (",note" if extra else "")]
    for n, (clip_id, level) in enumerate(zip(data.clip_ids, data.levels, strict=True)):
        if n >= skip:
            cell = "" if n % 7 == 0 else f"{cuts(level == 'S', n)}"
            lines.append(f"{clip_id},{data.movies[n]},0,5,{cell},0" + (f",{extra}" if extra else ""))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.long  # simulates
def test_a_variable_that_tells_the_level_is_a_baseline_that_no_model_beats(data, tmp_path):
    measured, _ = with_variables(data, table(tmp_path / "v.csv", data))
    run = om.evaluate(measured, ["linear"], "en_s")
    auc = run.metrics[run.metrics["metric"] == "auc"].set_index("model")["movie_mean"]
    assert auc[STAGING] > 0.85
    assert auc["linear"] < 0.7
    assert "no model is shown to be better" in om.run_report(run).answers[0]
    assert STAGING not in set(om.evaluate(data, ["linear"], "en_s").metrics["model"])


def test_columns_and_clips_are_accounted_for(data, tmp_path):
    path = table(tmp_path / "v.csv", data, skip=3)
    path.write_text(
        path.read_text().replace("cuts", '"cuts\na minute"') + "other,f9,0,5,1,0\n" + 2 * ",,,,,\n"
    )
    measured, (account,) = with_variables(data, path)
    assert measured.variables.shape == (len(data), 1)
    assert np.isnan(measured.variables[:3]).all()
    for said in (
        "by cuts a minute (of 100 clips);",
        "left out movie, start_s, end_s, black",
        "3 clips of 120 without a row",
        "1 row of other",
    ):
        assert said in account
    assert measured.take(np.arange(5)).variables.shape == (5, 1)
    path.write_text(path.read_text().replace("f0-", " f0-").replace(",f0,", " ,f0,"))
    for text in (path.read_text(), path.read_text().replace(",", ";").replace(".0", ",0")):
        path.write_text(text)
        assert np.array_equal(with_variables(data, path)[0].variables, measured.variables, equal_nan=True)


def test_a_variable_that_is_the_label_is_refused(data, tmp_path):
    measured, _ = with_variables(data, table(tmp_path / "v.csv", data, cuts=lambda positive, _: 3 * positive))
    with pytest.raises(ProtocolError, match="variable cuts equals the label"):
        om.evaluate(measured, ["linear"], "en_s")


@pytest.mark.parametrize(
    ("clip", "said"),
    [
        (of.Clip("f0-01", "f0", "", 0, 4), r"line 3, column end_s: 5.0, and clip f0-01 has 4.0"),
        (of.Clip("f0-01", "f1", "", 0, 5), r"column movie: f0, and clip f0-01 has f1"),
        (of.Clip("f0-01", "F0", "", 0, 5.001), ""),
        (of.Clip("f0-01", "f0"), ""),
    ],
)
def test_rows_of_other_windows_than_the_clips_are_refused(data, tmp_path, clip, said):
    path = table(tmp_path / "v.csv", data)
    with pytest.raises(ManifestError, match=said) if said else nullcontext():
        with_variables(data, path, [clip])
    rows = [line.split(",") for line in path.read_text().splitlines()]
    path.write_text("\n".join(",".join([row[0], *row[4:]]) for row in rows), encoding="utf-8")
    with_variables(data, path, [clip])


def test_columns_of_a_manifest_and_a_data_frames_index_are_no_variables(data, tmp_path):
    path = table(tmp_path / "v.csv", data)
    measured, _ = with_variables(data, path)
    header, *lines = path.read_text().splitlines()
    header = header.replace("start_s,end_s", "Start_S,End_s")
    lines = [f"{n},{n + 7},{line},{n % 5 / 4}" for n, line in enumerate(lines)]
    path.write_text("\n".join([f",Unnamed: 0,{header},Level", *lines]) + "\n")
    again, _ = with_variables(data, path)
    assert again.variable_names == measured.variable_names
    with pytest.raises(ManifestError, match="column end_s"):
        with_variables(data, path, [of.Clip("f0-01", "f0", "", 0, 4)])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda text: text.replace("cuts", "level2").replace("5.0", "high", 1),
            r"column level2: 'high' is no number",
        ),
        (lambda text: text.replace(",5.0,", ",nan,", 1), r"column cuts: 'nan' is no number"),
        *(
            (
                lambda text, cell=cell: text.replace(",5.0,", f",{cell},", 1),
                f"column cuts: '{cell}' is no number",
            )
            for cell in ("1e999", "-1e200")
        ),
        (lambda text: text + text.splitlines()[1] + "\n", r"f0-00 has a row already"),
        (lambda text: text.replace("f", "g"), r"no clip of the evaluation"),
        (
            lambda text: "\n".join(
                ",".join([*line.split(",")[:4], "1"]) for line in text.splitlines()
            ).replace("end_s,1", "end_s,one"),
            r"no column of numbers that vary",
        ),
    ],
)
def test_what_is_no_number_of_a_clip_is_refused(data, tmp_path, change, said):
    path = table(tmp_path / "v.csv", data)
    path.write_text(change(path.read_text()))
    with pytest.raises((DatasetError, ManifestError), match=said):
        with_variables(data, path)


def test_a_concepts_baseline_takes_no_column_that_cannot_know_of_it(data, tmp_path):
    lines = ["clip_id,loudness,camera,mine"]
    lines += [f"{clip_id},{-n},{n % 5},{n % 3}" for n, clip_id in enumerate(data.clip_ids)]
    path = tmp_path / "v.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    columns = {}
    for name in ("concept:Body", "concept:Voice", "concept:Narratology", "en_s"):
        measured, notes = with_variables(data, path, (), om.find_target(name, data.codebook))
        columns[name] = measured.variable_names
        left_out = {"loudness", "camera"} - set(measured.variable_names)
        assert all(f"{column} (" in notes[0] for column in left_out)
    assert columns == {
        "concept:Body": ("camera", "mine"),
        "concept:Voice": ("loudness", "mine"),
        "concept:Narratology": ("mine",),
        "en_s": ("loudness", "camera", "mine"),
    }


def test_people_are_variables_of_a_visual_concept_and_the_number_of_their_frames_is_none(data, tmp_path):
    lines = ["clip_id,screen,close,face,people_frames"]
    for n, clip_id in enumerate(data.clip_ids):
        face = "" if n % 2 else f"0.{n % 9}1"
        lines.append(f"{clip_id},{n % 4 / 3:.2f},{n % 2},{face},{3 - n % 2}")
    path = tmp_path / "v.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name, columns in (("concept:Body", ("screen", "close", "face")), ("concept:Voice", ())):
        target = om.find_target(name, data.codebook)
        if columns:
            measured, notes = with_variables(data, path, (), target)
            assert measured.variable_names == columns
            assert "left out people_frames" in notes[0]
        else:
            with pytest.raises(DatasetError, match="no column of numbers"):
                with_variables(data, path, (), target)
