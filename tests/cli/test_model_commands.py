"""`obygaze evaluate --save`, `predict` and `compare`, from a sealed store to what is printed."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from obygaze.cli import main
from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.store.testing import seal_arrays

LEVELS = ("S", "HN", "EN", "HN", "EN")
D = 6


def films(
    folder: Path,
    name: str,
    movies: tuple[str, ...],
    *,
    seed: int = 0,
    n_features: int = D,
    shift: float = 0.0,
    **changed,
) -> Path:
    """Keep NAME.csv and the store NAME-1.0.0: S clips lie 4 deviations away; the first clip failed."""
    rng = np.random.default_rng(seed)
    clips, rows = [], []
    for movie in movies:
        for place in range(20):
            level = LEVELS[place % 5]
            clips.append(Clip(f"{movie}-{place:02}", movie, level=level))
            pooled = (rng.normal(size=n_features) + shift).astype(np.float32)
            pooled[0] += 4.0 * (level == "S")
            rows.append(pooled)
    write_manifest(Manifest(tuple(clips), folder), folder / f"{name}.csv")
    movie_of = {clip.clip_id: clip.movie for clip in clips}
    failed = {clips[0].clip_id: "the file is empty (0 bytes)"}
    groups = {"descriptors": {"pooled": np.stack(rows)}}
    return seal_arrays(folder / name, movie_of, groups, failed=failed, **changed)


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return left.value.code, captured.out, captured.err


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """Two corpora of other movies; the model and the run of an evaluation of the first."""
    folder = tmp_path_factory.mktemp("shelf")
    films(folder, "films", ("m0", "m1", "m2", "m3"))
    films(folder, "more", ("m3", "m4"), seed=1)
    with pytest.raises(SystemExit) as left:
        main(
            [
                "evaluate",
                str(folder / "films"),
                str(folder / "films.csv"),
                "--out",
                str(folder / "run"),
                "--save",
                str(folder / "films.model"),
            ]
        )
    assert left.value.code == 0
    return folder


@pytest.fixture
def obygaze(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: run(capsys, *arguments)


def test_a_saved_model_scores_the_clips_of_another_store(obygaze, shelf):
    code, out, err = obygaze("predict", shelf / "films.model", shelf / "more", "--out", "scores.csv")
    assert (code, out) == (0, "")
    rows = list(csv.DictReader(Path("scores.csv").read_text("utf-8").splitlines()))
    assert len(rows) == 39
    wrong = sum((row["called"] == "1") != (int(row["clip_id"][-2:]) % 5 == 0) for row in rows)
    assert wrong <= 4
    assert {row["movie"]: row["movie_trained_on"] for row in rows} == {"m3": "1", "m4": "0"}
    assert "MLPProbe trained for hn_s on 47 clips of 4 movies (raw labels)" in err
    assert "19 clips are of movies that the model was trained on: their scores are no predictions" in err
    assert "excluded m3-00: failed: the file is empty (0 bytes)" in err
    command = ("predict", shelf / "films.model", shelf / "more", "--out", "scores.csv")
    code, _, err = obygaze(*command)
    assert code == 1
    assert err.startswith("obygaze: error: scores.csv exists already")
    assert obygaze(*command, "--force")[0] == 0


def test_clips_unlike_any_that_the_model_was_trained_on_are_counted(obygaze, shelf, tmp_path):
    """Features of another store 20 deviations away; those of the store trained on lie where they did."""
    _, out, _ = obygaze("predict", shelf / "films.model", shelf / "films", "--json")
    # Of the 79 clips 32 are EN, which a model of HN vs S was not trained on.
    assert json.loads(out)["n_beyond"] < 5
    films(tmp_path, "far", ("m8", "m9"), shift=20.0)
    _, out, err = obygaze("predict", shelf / "films.model", tmp_path / "far", "--json")
    assert json.loads(out)["n_beyond"] == 39
    assert "39 of 39 clips lie farther from the mean of the clips trained on than any of these did" in err


def test_scores_of_clips_that_are_damaged_are_counted(obygaze, shelf, tmp_path):
    damaged = {"m8-03": "the decoder refused 1 packet on the way"}
    films(tmp_path, "damaged", ("m8",), partial=damaged)
    _, out, err = obygaze("predict", shelf / "films.model", tmp_path / "damaged", "--json")
    assert json.loads(out)["n_partial"] == 1
    assert "1 clips are partial: a part of their video could not be read" in err


def test_scores_are_printed_as_a_table_or_as_one_json_document(obygaze, shelf):
    code, out, _ = obygaze("predict", shelf / "films.model", shelf / "more")
    assert code == 0
    assert out.splitlines()[0].split() == [
        "clip_id",
        "movie",
        "score",
        "threshold",
        "called",
        "movie_trained_on",
    ]
    assert len(out.splitlines()) == 41
    code, out, _ = obygaze("predict", shelf / "films.model", shelf / "more", "--json")
    document = json.loads(out)
    assert code == 0
    assert len(document["clips"]) == 39
    assert document["excluded"] == [{"clip_id": "m3-00", "reason": "failed: the file is empty (0 bytes)"}]
    assert document["model"]["train_task"] == "hn_s"


def test_the_same_command_saves_the_same_bytes_and_replaces_only_when_forced(obygaze, shelf):
    command = ("evaluate", shelf / "films", shelf / "films.csv", "--out", "run", "--save", "again.model")
    assert obygaze(*command)[0] == 0
    assert Path("again.model").read_bytes() == (shelf / "films.model").read_bytes()
    assert str(shelf).encode() not in Path("again.model").read_bytes()
    code, _, err = obygaze(*command[:3], "--out", "other", "--save", "again.model")
    assert code == 1
    assert err.splitlines()[-1].startswith("obygaze: error: again.model exists already: give --force")
    assert not Path("other").exists()
    assert obygaze(*command, "--force")[0] == 0


def test_the_card_says_what_the_model_is(shelf):
    from obygaze_models.persistence import read_model

    card = read_model(shelf / "films.model").card
    record = json.loads((shelf / "run" / "metrics.json").read_text("utf-8"))["record"]
    assert (card.train_task, card.test_task, card.label_policy, card.seed) == ("hn_s", "hn_s", "raw", 0)
    assert (card.store, card.manifest_sha256) == (record["store"], record["manifest_sha256"])
    assert card.movies == ("m0", "m1", "m2", "m3")
    assert (card.n_clips, card.n_positives) == (47, 15)
    assert {row["metric"] for row in card.metrics} >= {"f1_pos", "average_precision", "within_movie_auc"}
    assert {row["model"] for row in card.metrics} == {"mlp"}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sampling": {"policy": "uniform", "n": 8}}, "sampling.n is 8, was 2"),
        ({"weights_sha256": "a" * 64}, "weights_sha256 is 'aaaaaaaaaa"),
        ({"untrained": True}, "untrained is True, was absent"),
        ({"n_features": D + 1}, "has 7 features a clip of descriptors; the model reads 6"),
    ],
)
def test_features_made_otherwise_are_refused_by_the_field_that_differs(
    obygaze, shelf, tmp_path, changed, message
):
    films(tmp_path, "other", ("m8",), **changed)
    code, out, err = obygaze("predict", shelf / "films.model", "other")
    assert (code, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert err.startswith("obygaze: error: store other")
    assert message in err


def test_fields_that_make_no_number_differ_may_differ(obygaze, shelf, tmp_path):
    films(tmp_path, "other", ("m8",), citation="somebody", contact="me")
    assert obygaze("predict", shelf / "films.model", "other")[0] == 0


def test_a_file_that_is_no_model_and_one_that_is_missing_are_one_line(obygaze, shelf):
    for name in ("films.csv", "nothing.model", "films-1.0.0"):
        code, out, err = obygaze("predict", shelf / name, shelf / "more")
        assert (code, out) == (1, "")
        assert len(err.splitlines()) == 1
        assert err.startswith("obygaze: error: ")


def test_two_models_of_a_run_are_compared_film_by_film(obygaze, shelf):
    command = ("compare", shelf / "run", shelf / "run", "--against", "always_positive")
    code, out, _ = obygaze(*command)
    assert code == 0
    assert "4 films are few: no p can be below 0.12" in out
    code, out, _ = obygaze(*command, "--json")
    assert code == 0
    found = json.loads(out)
    assert (found["a"]["model"], found["b"]["model"], found["n_movies"]) == ("mlp", "always_positive", 4)
    assert {row["metric"] for row in found["metrics"]} >= {"f1_pos", "auc"}
    assert all(row["p_holm"] >= row["p"] >= 2 / 16 for row in found["metrics"])


def test_runs_of_different_tasks_and_policies_are_refused_by_what_differs(obygaze, shelf):
    command = ("evaluate", shelf / "films", shelf / "films.csv")
    obygaze(*command, "--task", "en_s", "--out", "en")
    code, out, err = obygaze("compare", shelf / "run", "en")
    assert (code, out) == (1, "")
    assert "their tasks differ, hn_s>hn_s and en_s>en_s" in err
    code, _, err = obygaze("compare", shelf / "run", "nowhere")
    assert code == 1
    assert err == "obygaze: error: nowhere is not the folder of a run: it has no predictions.csv\n"
