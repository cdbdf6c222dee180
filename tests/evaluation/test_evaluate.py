"""Leaving one movie out finds what is planted, and nothing where nothing is."""

import dataclasses
import io

import numpy as np
import pandas as pd
import pytest
from obygaze_models.experiments.compare import by_film, compare, side
from obygaze_models.experiments.comparison_table import caption as comparison_caption
from obygaze_models.experiments.comparison_table import document as comparison_document
from obygaze_models.experiments.evaluate import MODELS, evaluate, seed_of
from obygaze_models.experiments.result_table import caption, result_tables
from obygaze_models.experiments.run_folder import (
    FILES,
    RunError,
    SavedRun,
    document,
    to_json,
    write_run,
)

from obygaze_models.evaluation import Predictions, PredictionsError, by_seed, summarise, t_interval
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


@pytest.fixture(scope="module")
def three(learnable):
    return evaluate(learnable, HN_S, ENHN_S, n_seeds=3, origin=ORIGIN)


def test_seeds_trained_together_are_those_trained_one_by_one(run, three, learnable):
    table = three.predictions.table
    assert three.record["seeds"] == [0, 1, 2]
    for seed, alone in ((0, run), (2, evaluate(learnable, HN_S, ENHN_S, seed=2))):
        for model in ("mlp", "random_half"):
            own = table[(table["model"] == model) & (table["seed"] == seed)].reset_index(drop=True)
            single = alone.predictions.table
            pd.testing.assert_frame_equal(own, single[single["model"] == model].reset_index(drop=True))
    # What draws nothing is the same for every seed, and there once.
    assert set(table.loc[table["model"] == "movie_prior", "seed"]) == {0}
    assert len(three.inner_curves[three.inner_curves["kept"] == 1]) == 3 * 6 * 4


def test_metrics_are_means_over_seeds_with_their_spread_beside_and_intervals_over_films(three):
    rows = three.metrics.set_index(["model", "metric"])
    each = by_seed(three.predictions).groupby(["model", "metric"])["pooled"]
    for metric in ("average_precision", "f1_pos", "auc", "within_movie_auc"):
        row = rows.loc[("mlp", metric)]
        values = each.get_group(("mlp", metric))
        assert (row["n_seeds"], len(values)) == (3, 3)
        assert row["pooled"] == pytest.approx(values.mean())
        assert row["seed_sd"] == pytest.approx(values.std())
        # Six films, not eighteen: the t interval is that of the films' means over seeds.
        assert row["n_movies"] == 6
    films = by_film(Predictions(three.predictions.table.query("model == 'mlp'").reset_index(drop=True)))
    found = t_interval(films.loc[films["metric"] == "f1_pos", "value"], bounds=(0.0, 1.0))
    row = rows.loc[("mlp", "f1_pos")]
    assert (row["movie_mean"], row["movie_low"]) == pytest.approx((found.mean, found.low))
    assert np.isnan(rows.loc[("movie_prior", "auc"), "seed_sd"])
    tables = dict(result_tables(three))
    assert list(tables)[2] == "standard deviation between 3 seeds, all clips pooled"
    assert "movie_prior" not in list(tables.values())[2]
    assert "seeds 0 to 2" in "\n".join(caption(three, "HN vs S"))


def test_an_interval_of_seeds_alike_is_that_of_one(run):
    table = run.predictions.table
    twin = pd.concat([table, table.assign(seed=1)], ignore_index=True)
    columns = ["model", "metric", "pooled", "pooled_low", "pooled_high", "movie_low", "movie_high"]
    pd.testing.assert_frame_equal(summarise(Predictions(twin))[columns], run.metrics[columns])
    with pytest.raises(PredictionsError, match="its seeds were tested on different clips"):
        summarise(Predictions(twin.iloc[:-1]))


@pytest.fixture(scope="module")
def balanced(learnable):
    return {
        remedy: evaluate(learnable, HN_S, ENHN_S, imbalance=remedy, origin=ORIGIN)
        for remedy in ("weights", "subsample")
    }


@pytest.mark.parametrize("remedy", ["weights", "subsample"])
def test_what_is_done_about_the_larger_class_is_recorded_told_and_a_matter_of_the_probe_alone(
    run, balanced, remedy
):
    found = balanced[remedy]
    assert (run.record["imbalance"], found.record["imbalance"]) == ("none", remedy)
    assert found.record["models"]["mlp"]["imbalance"] == remedy
    assert f"imbalance {remedy}: " in "\n".join(caption(found, "title"))
    assert "imbalance none: " in "\n".join(caption(run, "title"))
    tables = [one.predictions.table for one in (run, found)]
    baselines = [table[table["model"] != "mlp"].reset_index(drop=True) for table in tables]
    pd.testing.assert_frame_equal(*baselines)
    assert pooled(found, "within_movie_auc")["mlp"] > 0.9
    assert (tables[0]["score"] != tables[1]["score"]).any()
    # Every clip is tested all the same.
    assert tables[0]["clip_id"].tolist() == tables[1]["clip_id"].tolist()


def test_runs_that_differ_in_what_is_done_about_the_larger_class_can_be_compared(run, balanced, tmp_path):
    sides = [
        side(SavedRun(tmp_path / str(place), one.record, one.predictions))
        for place, one in enumerate((run, balanced["weights"]))
    ]
    found = compare(*sides)
    lines = comparison_caption(found)
    assert "imbalance" not in lines[0]
    assert lines[1].endswith(", imbalance weights")
    told = comparison_document(found)
    assert [told[letter]["imbalance"] for letter in "ab"] == ["none", "weights"]


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
    assert seed_of(0, "m1") != seed_of(0, "m2") != seed_of(1, "m2")


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
    assert sorted(path.name for path in (tmp_path / "first").iterdir()) == sorted(set(FILES) - {"seeds.csv"})
    for name in set(FILES) - {"seeds.csv"}:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()


def test_metrics_follow_from_the_predictions_file_alone(run, tmp_path):
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


def test_several_seeds_leave_each_seeds_metrics_too(three, tmp_path):
    write_run(three, tmp_path / "run")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == sorted(FILES)
    each = pd.read_csv(tmp_path / "run" / "seeds.csv")
    assert each.groupby("model")["seed"].nunique().to_dict()["mlp"] == 3
    write_run(three, tmp_path / "run", force=True)


def test_a_failed_write_leaves_no_half_run(run, tmp_path, monkeypatch):
    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("obygaze_models.experiments.run_folder.to_json", full)
    with pytest.raises(OSError, match="No space left"):
        write_run(run, tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_the_table_names_averages_and_ends_with_the_best_constant(run):
    (_, pooled_table), (_, movie_table) = result_tables(run)
    lines = pooled_table.splitlines()
    assert lines[0].split() == ["model", "AP", "f1_pos", "f1_weighted", "balanced_accuracy", "auc"]
    assert [line.split()[0] for line in lines[2:-1]] == list(MODELS)
    assert lines[-1].startswith("(best constant)")
    assert [line.split()[0] for line in movie_table.splitlines()[2:]] == list(MODELS)
    assert max(map(len, (pooled_table + "\n" + movie_table).splitlines())) <= 80
    text = "\n".join(caption(run, "HN vs S"))
    for said in (
        "raw policy",
        "strict",
        "240 clips of 6 movies",
        "with 6 films an interval is wide",
        "0 excluded",
        "mlp, pooled, 95 % jackknife over movies, of these trained models: AP 0.",
    ):
        assert said in text
