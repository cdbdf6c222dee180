"""Leaving one movie out finds what is planted, and nothing where nothing is."""

import dataclasses
import io

import numpy as np
import pandas as pd
import pytest

from obygaze_models.experiments.evaluate import MODELS, evaluate, seed_of
from obygaze_models.experiments.result_table import caption, result_table
from obygaze_models.experiments.run_folder import FILES, RunError, document, to_json, write_run
from obygaze_models.protocol import TASKS, ProtocolError

EN_S, HN_S, ENHN_S = TASKS["en_s"], TASKS["hn_s"], TASKS["enhn_s"]
ORIGIN = {"manifest_sha256": "0" * 64, "label_policy": "raw"}


@pytest.fixture(scope="module")
def learnable(make_planted):
    return make_planted(direction=3.0, film=1.0)


@pytest.fixture(scope="module")
def run(learnable):
    return evaluate(learnable, HN_S, ENHN_S, origin=ORIGIN)


def pooled(run, metric):
    chosen = run.metrics[run.metrics["metric"] == metric]
    return dict(zip(chosen["model"], chosen["pooled"], strict=True))


def test_a_planted_direction_beats_every_baseline(run):
    for metric in ("f1_pos", "average_precision", "balanced_accuracy", "within_movie_auc"):
        values = pooled(run, metric)
        best_baseline = max(value for model, value in values.items() if model != "mlp")
        assert values["mlp"] > best_baseline + 0.1
    assert (
        pooled(run, "f1_pos")["mlp"]
        > run.metrics.set_index("metric").loc["f1_pos", "best_constant"].max() + 0.1
    )


def test_shuffled_labels_are_at_chance(make_planted, wrap_arrays):
    data = make_planted(direction=3.0, film=1.0)
    rng = np.random.default_rng(5)
    levels = data.levels.copy()
    for movie in np.unique(data.movies):
        rows = np.flatnonzero(data.movies == movie)
        levels[rows] = levels[rng.permutation(rows)]
    shuffled = evaluate(wrap_arrays(data.X, levels, data.movies), ENHN_S, ENHN_S)
    assert pooled(shuffled, "within_movie_auc")["mlp"] == pytest.approx(0.5, abs=0.1)


def test_a_store_that_tells_only_the_film_tells_nothing_within_a_film(make_planted):
    data = make_planted(direction=0.0, film=6.0)
    found = evaluate(data, ENHN_S, ENHN_S)
    assert pooled(found, "within_movie_auc")["mlp"] == pytest.approx(0.5, abs=0.1)
    assert pooled(found, "within_movie_auc")["movie_prior"] == 0.5


def test_every_clip_of_the_test_task_is_predicted_once_by_every_model(run, learnable):
    table = run.predictions.table
    assert list(dict.fromkeys(table["model"])) == list(MODELS)
    for _, part in table.groupby("model"):
        assert sorted(part["clip_id"]) == sorted(learnable.clip_ids)
    assert len(table[["fold", "movie"]].drop_duplicates()) == 6
    assert set(table["task"]) == {"hn_s>enhn_s"}
    label_of = dict(zip(learnable.clip_ids, learnable.y, strict=True))
    assert (table["label"] == table["clip_id"].map(label_of)).all()


def test_clips_outside_the_training_task_are_not_learnt_from(learnable):
    """EN clips changed beyond recognition change, for a model of HN vs S, nothing but their own scores."""
    strange = dataclasses.replace(learnable, X=learnable.X.copy())
    strange.X[learnable.levels == "EN"] = 1e3
    tables = [evaluate(data, HN_S, ENHN_S).predictions.table for data in (learnable, strange)]
    same = [table[~table["clip_id"].isin(learnable.clip_ids[learnable.levels == "EN"])] for table in tables]
    pd.testing.assert_frame_equal(same[0], same[1])


def test_the_test_movie_influences_neither_model_nor_threshold_nor_epoch(learnable, run):
    """Other features and labels in one movie change nothing of what is selected for its own fold."""
    movie = learnable.movies[0]
    here = learnable.movies == movie
    levels = np.where(here, learnable.levels[::-1], learnable.levels)
    other = dataclasses.replace(
        learnable,
        X=np.where(here[:, None], 7.0, learnable.X).astype(np.float32),
        levels=levels,
        y=(levels == "S").astype(np.int64),
    )
    changed = evaluate(other, HN_S, ENHN_S)
    before, after = (found.record["folds"][0] for found in (run, changed))
    assert before["movie"] == after["movie"] == movie
    assert (before["mlp_threshold"], before["mlp_epochs"]) == (after["mlp_threshold"], after["mlp_epochs"])
    curves = [found.inner_curves[found.inner_curves["fold"] == 0] for found in (run, changed)]
    pd.testing.assert_frame_equal(curves[0], curves[1])


def test_random_baselines_draw_anew_in_every_fold(run):
    table = run.predictions.table
    draws = table[table["model"] == "random_half"]["score"]
    assert draws.nunique() == len(draws)
    assert seed_of(0, 1) != seed_of(0, 2) != seed_of(1, 2)


def test_the_inner_curves_show_every_selection(run):
    kept = run.inner_curves[run.inner_curves["kept"] == 1]
    assert len(kept) == 6 * 4
    for _, curve in run.inner_curves.groupby(["fold", "inner_fold"]):
        assert curve["epoch"].tolist() == list(range(1, len(curve) + 1))
        assert curve.loc[curve["kept"] == 1, "validation_loss"].item() == curve["validation_loss"].min()


def test_the_record_says_what_was_done_on_what(run, learnable):
    record = run.record
    assert (record["train_task"], record["test_task"], record["label_policy"]) == ("hn_s", "enhn_s", "raw")
    assert record["store"] == learnable.store
    assert record["clips"]["tested"] == 240
    assert [fold["test_clips"] for fold in record["folds"]] == [40] * 6
    assert record["prevalence"] == learnable.y.mean()


def test_no_positive_or_too_few_movies_are_refused(learnable, wrap_arrays):
    with pytest.raises(ProtocolError, match="no positive clip to be trained on"):
        evaluate(wrap_arrays(learnable.X, np.full(240, "EN"), learnable.movies), EN_S, EN_S)
    with pytest.raises(
        ProtocolError, match="no negative clip to be trained on: 240 clips with features, of the levels S"
    ):
        evaluate(wrap_arrays(learnable.X, np.full(240, "S"), learnable.movies), EN_S, EN_S)
    two = slice(0, 80)
    with pytest.raises(ProtocolError, match="at least 3 movies"):
        evaluate(wrap_arrays(learnable.X[two], learnable.levels[two], learnable.movies[two]), ENHN_S, ENHN_S)


def test_positives_of_one_movie_alone_are_refused_by_its_name(learnable, wrap_arrays):
    levels = np.where((learnable.levels == "S") & (learnable.movies != "tt0000003"), "EN", learnable.levels)
    with pytest.raises(ProtocolError, match=r"inner selection needs both classes|without movie tt0000003"):
        evaluate(wrap_arrays(learnable.X, levels, learnable.movies), EN_S, EN_S)


def test_the_same_run_leaves_the_same_bytes(run, learnable, tmp_path):
    write_run(run, tmp_path / "first")
    write_run(evaluate(learnable, HN_S, ENHN_S, origin=ORIGIN), tmp_path / "second")
    assert sorted(path.name for path in (tmp_path / "first").iterdir()) == sorted(FILES)
    for name in FILES:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()


def test_metrics_follow_from_the_predictions_file_alone(run, tmp_path):
    from obygaze_models.evaluation import Predictions, summarise

    write_run(run, tmp_path / "run")
    again = summarise(Predictions.read(tmp_path / "run" / "predictions.csv"))
    assert again.to_csv(index=False, lineterminator="\n") == (tmp_path / "run" / "metrics.csv").read_text(
        "utf-8"
    )
    assert len(pd.read_csv(io.StringIO(again.to_csv()))) == len(MODELS) * 7


def test_an_undefined_metric_is_null_in_json(run):
    holed = dataclasses.replace(run, metrics=run.metrics.assign(movie_low=float("nan")))
    assert {row["movie_low"] for row in document(holed)["metrics"]} == {None}
    assert "NaN" not in to_json(holed)


def test_a_run_is_replaced_only_when_forced_and_nothing_else_ever(run, tmp_path):
    folder = tmp_path / "run"
    write_run(run, folder)
    with pytest.raises(RunError, match="holds a run already: give --force"):
        write_run(run, folder)
    write_run(run, folder, force=True)
    (folder / "thesis.txt").write_text("do not delete")
    with pytest.raises(RunError, match=r"holds what is not a run \(thesis.txt\)"):
        write_run(run, folder, force=True)
    assert (folder / "thesis.txt").exists()
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="is a file"):
        write_run(run, tmp_path / "file", force=True)


def test_a_failed_write_leaves_no_half_run(run, tmp_path, monkeypatch):
    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("obygaze_models.experiments.run_folder.to_json", full)
    with pytest.raises(OSError, match="No space left"):
        write_run(run, tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_the_table_names_averages_and_ends_with_the_best_constant(run):
    lines = result_table(run).splitlines()
    assert lines[0].split()[:4] == ["model", "AP", "f1_pos", "f1_pos"]
    assert [line.split()[0] for line in lines[2:-1]] == list(MODELS)
    assert lines[-1].startswith("(best constant)")
    text = "\n".join(caption(run, "HN vs S"))
    for said in (
        "raw policy",
        "strict",
        "240 clips of 6 movies",
        "with 6 films an interval is wide",
        "0 excluded",
        "mlp, pooled, 95 % bootstrap of movies and of their clips: AP 0.",
    ):
        assert said in text
