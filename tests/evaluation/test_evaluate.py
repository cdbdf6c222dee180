"""Leaving one movie out finds what is planted, and nothing where nothing is."""

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from obygaze_features.manifest import Clip, Manifest, builtin_codebook, write_manifest
from obygaze_features.store.testing import seal_arrays
from obygaze_models.commands.evaluate_remarks import FilmProblems, remarks
from obygaze_models.errors import ConceptError, ModelError, PredictionsError, ProtocolError
from obygaze_models.evaluation import METRICS, Predictions, summarise
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.evaluation.plan import varying
from obygaze_models.evaluation.run_folder import new_run, to_json, write_run
from obygaze_models.models import MLPProbe, baselines, names
from obygaze_models.persistence import model_file
from obygaze_models.prediction.saved_model import load_model
from obygaze_models.protocol.targets import level_target
from obygaze_models.report.run_tables import run_report
from tests.command import obygaze

BASELINES = [spec.name for spec in baselines.SPECS if "levels" in spec.kinds]
ORIGIN = {"manifest_sha256": "0" * 64, "label_policy": "raw"}


def perceptron(seed):
    """Make a small perceptron that trains fast."""
    return MLPProbe(n_hidden=16, max_epochs=15, learning_rate=0.01, random_state=seed)


@pytest.fixture(scope="module")
def learnable_clips(make_synthetic_data):
    """240 clips of six films, in which one direction tells S clips from others."""
    return make_synthetic_data(direction=3.0, film=1.0)


@pytest.fixture(scope="module")
def run_of_linear_and_mlp(learnable_clips):
    """A linear model and a perceptron, trained on HN vs S and tested on EN and HN vs S."""
    return evaluate(learnable_clips, ["linear", "mlp"], "hn_s", "enhn_s", origin=ORIGIN)


def pooled_metric(run, metric):
    """Return the value of a metric over all clips, by model."""
    rows = run.metrics[run.metrics["metric"] == metric]
    return dict(zip(rows["model"], rows["pooled"], strict=True))


def with_levels(data, levels):
    """Give other levels to a dataset's clips."""
    return dataclasses.replace(data, labels=dataclasses.replace(data.labels, levels=levels))


@pytest.mark.long
@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_a_planted_direction_beats_every_baseline_and_the_best_constant(run_of_linear_and_mlp, model):
    """In the features of 240 clips one direction tells S clips from others: both models find it.

    They are better than each baseline, and than the same call of all clips, by more than .1.
    """
    run = run_of_linear_and_mlp
    for metric in ("f1_pos", "average_precision", "balanced_accuracy", "within_movie_auc"):
        values = pooled_metric(run, metric)
        best_baseline = max(values[name] for name in BASELINES)
        assert values[model] > best_baseline + 0.1, metric

    best_constant = run.metrics.set_index("metric").loc["f1_pos", "best_constant"].max()
    assert pooled_metric(run, "f1_pos")[model] > best_constant + 0.1


@pytest.mark.long  # simulates
def test_over_null_data_sets_the_auc_within_movies_is_one_half(make_synthetic_data):
    """The features of 240 clips of four films know the film, and nothing of the level.

    So within films a linear model's AUC is one half, but for chance: over 8 such data sets the mean has a
    standard error of about .015, and three of these are allowed. Baselines that give all clips of a film one
    score have exactly one half.
    """
    linear_aucs = []
    for seed in range(8):
        null_data = make_synthetic_data(film=2.0, n_movies=4, n_per_movie=60, seed=seed)
        run = evaluate(null_data, "linear", "enhn_s")
        aucs = pooled_metric(run, "within_movie_auc")
        linear_aucs.append(aucs["linear"])
        assert aucs["movie_prior"] == 0.5
        assert aucs["always_positive"] == 0.5

    assert np.mean(linear_aucs) == pytest.approx(0.5, abs=3 * 0.015)


def test_every_clip_of_the_test_task_is_predicted_once_by_every_model(run_of_linear_and_mlp, learnable_clips):
    """Models were trained on HN vs S and tested on EN and HN vs S: on all clips of six films."""
    table = run_of_linear_and_mlp.predictions.table

    assert table["model"].unique().tolist() == ["linear", "mlp", *BASELINES]
    for _, rows_of_model in table.groupby("model"):
        assert sorted(rows_of_model["clip_id"]) == sorted(learnable_clips.clip_ids)
    folds_and_movies = table[["fold", "movie"]].drop_duplicates()
    assert len(folds_and_movies) == 6  # a fold for each movie
    assert set(table["task"]) == {"hn_s>enhn_s"}


def test_the_label_of_a_prediction_is_1_for_clips_of_the_positive_level(
    run_of_linear_and_mlp, learnable_clips
):
    """Models of HN vs S were tested on EN and HN vs S, whose positive level is S: all other clips have 0."""
    table = run_of_linear_and_mlp.predictions.table
    is_s_by_clip = dict(zip(learnable_clips.clip_ids, learnable_clips.levels == "S", strict=True))
    assert (table["label"] == table["clip_id"].map(is_s_by_clip)).all()


def test_clips_outside_the_training_task_are_not_learnt_from(learnable_clips, run_of_linear_and_mlp):
    """A model is trained on HN vs S, and tested on EN clips, too. All features of the EN clips become 1000.

    That changes nothing but their own scores: predictions of HN and S clips are the same. `mlp` is left out,
    as the second run does not have it.
    """
    is_en = learnable_clips.levels == "EN"
    X = learnable_clips.X.copy()
    X[is_en] = 1e3
    with_other_en_clips = dataclasses.replace(learnable_clips, X=X)

    run_with_other_en_clips = evaluate(with_other_en_clips, ["linear"], "hn_s", "enhn_s")

    def predictions_of_hn_and_s(run):
        table = run.predictions.table
        is_en_clip = table["clip_id"].isin(learnable_clips.clip_ids[is_en])
        return table[~is_en_clip & (table["model"] != "mlp")].reset_index(drop=True)

    pd.testing.assert_frame_equal(
        predictions_of_hn_and_s(run_of_linear_and_mlp), predictions_of_hn_and_s(run_with_other_en_clips)
    )


def with_one_movie_changed(data, movie):
    """Change all that is known of the clips of one movie: features, levels and concepts.

    All features are 7, levels are those of the clips from the other end of the table, and each concept is
    marked where it was not.
    """
    is_of_movie = data.movies == movie
    changed_labels = dataclasses.replace(
        data.labels,
        levels=np.where(is_of_movie, data.levels[::-1], data.levels),
        present=np.where(is_of_movie[:, None], ~data.labels.present, data.labels.present),
    )
    changed_X = np.where(is_of_movie[:, None], 7.0, data.X).astype(np.float32)
    return dataclasses.replace(data, X=changed_X, labels=changed_labels)


@pytest.mark.long
@pytest.mark.parametrize(
    "models",
    [["linear", "pcbm_lr", "pcbm_dt"], {"mlp": perceptron}],
    ids=["linear models", "a perceptron"],
)
def test_nothing_of_the_test_movie_influences_its_fold(make_synthetic_concepts, models):
    """Fold 0 tests the first of four movies. Its models must stay the same if this movie is changed.

    The movie gets other features, levels and concepts. What models learnt is seen by their thresholds, the
    concepts left out, the candidates of inner folds and the curves of training. Numbers may differ by 1e-5 of
    their size, since the fits of linear probes start from a fit on the clips of all movies, and stop when
    they are that near to their minimum.
    """
    data = make_synthetic_concepts(n_movies=4)
    first_movie = data.movies[0]
    changed_data = with_one_movie_changed(data, first_movie)

    run = evaluate(data, models, "hn_s", "enhn_s")
    run_of_changed = evaluate(changed_data, models, "hn_s", "enhn_s")

    fold = run.record["folds"][0]
    fold_of_changed = run_of_changed.record["folds"][0]
    assert fold["movie"] == first_movie
    assert fold_of_changed["movie"] == first_movie
    assert fold["thresholds"] == pytest.approx(fold_of_changed["thresholds"], rel=1e-5)
    assert fold["concepts_left_out"] == fold_of_changed["concepts_left_out"]
    pd.testing.assert_frame_equal(
        run.selection.query("fold == 0"), run_of_changed.selection.query("fold == 0"), rtol=1e-5
    )
    pd.testing.assert_frame_equal(
        run.curves.query("fold == 0"), run_of_changed.curves.query("fold == 0"), rtol=1e-5
    )


@pytest.mark.parametrize("n_clips", [5, 14])
def test_scene_blocks_that_leave_no_clip_to_learn_from_are_refused(make_synthetic_data, n_clips):
    """With `seen=True` a film is tested by blocks of its clips, and other clips of it are trained on.

    Four clips on either side of a tested block are in no training set: short films have none left.
    """
    short_films = make_synthetic_data(n_movies=8, n_per_movie=n_clips)
    with pytest.raises(ProtocolError):
        evaluate(short_films, ["linear"], "hn_s", seen=True)


def test_a_model_that_is_tested_on_two_tasks_predicts_as_one_that_is_tested_on_one_of_them(
    learnable_clips, run_of_linear_and_mlp
):
    """A linear model is trained on HN vs S, and tested on two tasks: on HN vs S, and on EN and HN vs S.

    The table of predictions calls them "hn_s>hn_s" and "hn_s>enhn_s" (trained on > tested on). The run
    `run_of_linear_and_mlp` trains the same model, and tests it on the latter task alone. The predictions of
    this task must be the same in both runs: one trained model serves all tasks that it is tested on.
    """
    run_of_two_tasks = evaluate(learnable_clips, ["linear"], "hn_s", ["hn_s", "enhn_s"])

    table = run_of_two_tasks.predictions.table
    assert table["task"].unique().tolist() == ["hn_s>hn_s", "hn_s>enhn_s"]
    tested_on_both = table.query("model == 'linear' and task == 'hn_s>enhn_s'")
    tested_on_one = run_of_linear_and_mlp.predictions.table.query("model == 'linear'")
    pd.testing.assert_frame_equal(tested_on_both.reset_index(drop=True), tested_on_one.reset_index(drop=True))


@pytest.mark.long
def test_a_run_of_three_seeds_predicts_with_the_third_as_a_run_of_this_seed_alone(learnable_clips):
    """A run of the seeds 0, 1 and 2 trains a perceptron with each; another run has the seed 2 alone.

    With the seed 2 both must predict the same. A baseline that draws nothing, such as `movie_prior`, would
    predict the same with each seed, and is there once, with the seed 0.
    """
    models = {"mlp": perceptron}
    run_of_three_seeds = evaluate(learnable_clips, models, "hn_s", "enhn_s", n_seeds=3)
    run_of_seed_2 = evaluate(learnable_clips, models, "hn_s", "enhn_s", seed=2)

    assert run_of_three_seeds.record["seeds"] == [0, 1, 2]
    table = run_of_three_seeds.predictions.table
    for model in ("mlp", "random_half"):
        among_three = table.query(f"model == '{model}' and seed == 2")
        alone = run_of_seed_2.predictions.table.query(f"model == '{model}'")
        pd.testing.assert_frame_equal(among_three.reset_index(drop=True), alone.reset_index(drop=True))
    assert set(table.loc[table["model"] == "movie_prior", "seed"]) == {0}


def test_two_seeds_that_predict_the_same_have_the_intervals_of_one(run_of_linear_and_mlp):
    """The predictions of a run are there twice, as of seed 0 and of seed 1.

    Repeating them adds no information, so intervals must not become narrower.
    """
    table = run_of_linear_and_mlp.predictions.table
    with_two_seeds = pd.concat([table, table.assign(seed=1)], ignore_index=True)

    metrics = summarise(Predictions(with_two_seeds))

    columns = ["model", "metric", "pooled", "pooled_low", "pooled_high", "movie_low", "movie_high"]
    pd.testing.assert_frame_equal(metrics[columns], run_of_linear_and_mlp.metrics[columns])


def test_predictions_of_two_seeds_for_different_clips_are_not_summarised(run_of_linear_and_mlp):
    """A table has the predictions of a seed, and those of a second one, in which the last clip is missing.

    A mean over seeds would be of one prediction for that clip, and of two for all others.
    """
    table = run_of_linear_and_mlp.predictions.table
    of_second_seed = table.assign(seed=1).iloc[:-1]
    with_second_seed = pd.concat([table, of_second_seed], ignore_index=True)

    with pytest.raises(PredictionsError, match="different clips"):
        summarise(Predictions(with_second_seed))


def test_every_candidate_of_the_inner_folds_is_kept(run_of_linear_and_mlp):
    """Of the candidates of a model, such as C=0.0001, one is chosen in each of six folds.

    It is that with the smallest loss in the inner folds.
    """
    selection = run_of_linear_and_mlp.selection
    n_chosen_of_model = selection[selection["chosen"] == 1].groupby("model").size()
    assert n_chosen_of_model.to_dict() == {"linear": 6, "mlp": 6}

    for _, candidates in selection.query("model == 'linear'").groupby("fold"):
        assert candidates["candidate"].iloc[0] == "C=0.0001"
        chosen = candidates[candidates["chosen"] == 1]
        assert chosen["inner_loss"].item() == candidates["inner_loss"].min()


def test_every_epoch_of_the_inner_folds_is_kept(run_of_linear_and_mlp):
    """A linear model and a perceptron, mlp, were trained in six folds. Only the perceptron learns in epochs.

    Each fold has four inner ones, each with a curve: a row for each epoch, from 1 on.
    """
    curves = run_of_linear_and_mlp.curves
    assert set(curves["model"]) == {"mlp"}

    curves_of_inner_folds = curves.groupby(["fold", "inner_fold"])
    assert len(curves_of_inner_folds) == 6 * 4
    for _, curve in curves_of_inner_folds:
        assert curve["epoch"].tolist() == list(range(1, len(curve) + 1))


def test_the_record_says_what_was_done_on_what(run_of_linear_and_mlp, learnable_clips):
    """A linear model and a perceptron were trained on HN vs S, and tested on EN and HN vs S.

    240 clips of six films, 40 of each, were tested, each film in a fold of its own.
    """
    record = run_of_linear_and_mlp.record
    assert record["train"]["name"] == "hn_s"
    assert record["train"]["classes"] == [["HN"], ["S"]]
    assert record["tests"][0]["name"] == "enhn_s"
    assert record["label_policy"] == "raw"
    assert record["codebook"] == {"name": "obygaze12", "digest": learnable_clips.codebook.digest()}
    assert record["store"] == learnable_clips.store
    assert record["clips"]["tested"] == 240
    assert [fold["tested"] for fold in record["folds"]] == [{"enhn_s": 40}] * 6
    for fold in record["folds"]:
        is_learnt_from = learnable_clips.movies != fold["movie"]
        levels = learnable_clips.levels[is_learnt_from]
        assert fold["train_clips"] == np.isin(levels, ["HN", "S"]).sum()
        assert fold["train_positives"] == (levels == "S").sum()
    assert record["prevalence"] == {"enhn_s": np.mean(learnable_clips.levels == "S")}
    assert list(record["models"]) == ["linear", "mlp", *BASELINES]
    assert record["models"]["mlp"]["n_hidden"] == "128"


def test_ordered_levels_have_their_own_baselines_and_metrics_and_a_model_for_each_step(make_synthetic_data):
    """The ordered levels EN, HN and S have two steps: EN to HN, and HN to S. A model is trained for each.

    S clips differ from others in the features, so that the kappa of the linear model is well above 0, which
    is chance. That of a constant level, the median, is near it.
    """
    run = evaluate(make_synthetic_data(direction=3.0, film=1.0, n_movies=4), ["linear"], "levels")

    assert run.record["n_classes"] == 3
    assert set(run.predictions.table["label"]) == {0, 1, 2}
    kappa = pooled_metric(run, "quadratic_kappa")
    assert set(kappa) == {"linear", "median_level", "random_level"}
    assert kappa["linear"] > 0.2
    assert abs(kappa["median_level"]) < 0.2
    steps = {candidate.split(":")[0] for candidate in run.selection["candidate"]}
    assert steps == {"step 1", "step 2"}


@pytest.mark.long
def test_bottlenecks_see_through_concepts_and_controls_do_not(make_synthetic_concepts):
    """The level follows from concepts, which are planted in the features. A bottleneck (pcbm_lr) finds it.

    One control reads random directions in place of concepts, and the other one concepts that were shuffled.
    """
    models = ["pcbm_lr", "pcbm_lr_random", "pcbm_lr_shuffled"]
    run = evaluate(make_synthetic_concepts(n_features=120), models, "hn_s")

    aucs = pooled_metric(run, "within_movie_auc")
    assert aucs["pcbm_lr"] > aucs["pcbm_lr_random"] + 0.05
    assert aucs["pcbm_lr"] > aucs["pcbm_lr_shuffled"] + 0.05


def test_a_concept_can_be_learnt_if_it_varies_whatever_movie_is_left_out(learnable_clips):
    """Concept 0 is in the first film alone, and all other films have concept 1.

    Without the first film neither varies; concept 2, in every third clip, does.
    """
    in_first_movie = learnable_clips.movies == np.unique(learnable_clips.movies)[0]
    present = np.zeros_like(learnable_clips.labels.present)
    present[:, 0] = in_first_movie  # without the first movie, no clip has concept 0
    present[:, 1] = ~in_first_movie  # and all clips have concept 1
    present[::3, 2] = True
    data = dataclasses.replace(
        learnable_clips, labels=dataclasses.replace(learnable_clips.labels, present=present)
    )
    all_rows = np.arange(len(data))

    assert varying(data, all_rows) == [data.labels.concepts[2]]


@pytest.mark.long
def test_models_of_concepts_are_left_out_of_all_models_where_there_are_too_few_features(learnable_clips):
    """Without a choice of models (None) all are evaluated that can be. Three features hold no concepts."""
    three_features = dataclasses.replace(learnable_clips, X=learnable_clips.X[:, :3])

    run = evaluate(three_features, models=None, task="hn_s", progress=lambda *_: None)

    left_out = set(run.record["models_left_out"])
    assert left_out == {"pcbm_lr", "pcbm_dt", "pcbm_lr_random", "pcbm_lr_shuffled"}


def test_a_model_of_concepts_that_was_asked_for_is_refused_by_name_where_no_clip_has_a_concept(
    learnable_clips,
):
    """A model of concepts (pcbm_lr) decides by concepts, and nobody marked one in these 240 clips."""
    with pytest.raises(ConceptError, match="model pcbm_lr"):
        evaluate(learnable_clips, ["pcbm_lr"], "hn_s")


@pytest.mark.parametrize(
    ("level", "message"),
    [("EN", "no positive clip to be trained on"), ("S", "no negative clip to be trained on")],
)
def test_clips_of_one_level_are_refused(learnable_clips, level, message):
    """The task is EN vs S, and all 240 clips have one of the two levels."""
    data = with_levels(learnable_clips, np.full(240, level))
    with pytest.raises(ProtocolError, match=message):
        evaluate(data, ["linear"], "en_s")


def test_a_positive_level_in_one_film_alone_is_refused(learnable_clips):
    """When that film is left out, there is no positive clip to train on. S clips of others become EN."""
    levels = learnable_clips.levels.copy()
    levels[(levels == "S") & (learnable_clips.movies != "tt0000003")] = "EN"
    data = with_levels(learnable_clips, levels)
    with pytest.raises(ProtocolError, match=r"both classes|tt0000003"):
        evaluate(data, ["linear"], "en_s")


def test_two_films_are_refused(learnable_clips):
    """Each film has 40 clips, so that the first 80 are of two films. Three are needed.

    Where one is tested, the others must be divided once more to choose hyperparameters.
    """
    clips_of_two_films = learnable_clips.take(np.arange(80))
    with pytest.raises(ProtocolError, match="3 movies"):
        evaluate(clips_of_two_films, ["linear"], "en_s")


def test_an_evaluation_without_a_task_is_refused_with_the_option_that_gives_one(learnable_clips):
    """Nothing says which levels are to be told from each other."""
    with pytest.raises(ProtocolError, match="--task"):
        evaluate(learnable_clips, ["linear"])


def test_a_model_of_two_classes_is_not_tested_on_ordered_levels(learnable_clips):
    """A model that tells HN from S cannot say which of the three levels EN, HN and S a clip has."""
    with pytest.raises(ProtocolError, match=r"hn_s .* levels"):
        evaluate(learnable_clips, ["linear"], task="hn_s", test="levels")


def test_a_test_that_exchanges_the_classes_of_training_is_refused(learnable_clips):
    """In training S is the positive class and EN the negative one; in the test it is the other way round.

    The message names a level that changes sides.
    """
    codebook = builtin_codebook("obygaze12")
    en_is_positive = level_target(negatives=("S",), positives=("EN",), codebook=codebook)

    with pytest.raises(ProtocolError, match=r"'EN'|'S'"):
        evaluate(learnable_clips, ["linear"], task="en_s", test=en_is_positive)


def test_a_run_appears_when_it_is_complete(run_of_linear_and_mlp, tmp_path):
    """A run is written in a `with` block. While more is added in it, such as a model, there is no folder."""
    with new_run(run_of_linear_and_mlp, tmp_path / "run", {}, force=False):
        assert not (tmp_path / "run").exists()
    assert (tmp_path / "run").exists()


def test_a_full_disk_leaves_no_run_behind(run_of_linear_and_mlp, tmp_path):
    """While a model is added to a run that is being written, the disk is full (error 28 of the system)."""
    with (
        pytest.raises(OSError, match="full"),
        new_run(run_of_linear_and_mlp, tmp_path / "run", {}, force=False),
    ):
        raise OSError(28, "full")
    assert list(tmp_path.iterdir()) == []


def test_a_run_is_kept_even_if_its_model_cannot_be_saved(run_of_linear_and_mlp, tmp_path):
    """While a model is added to a run that is being written, it turns out that the model cannot be kept.

    The results of the run are complete without it. Nothing else is left in the folder.
    """
    with pytest.raises(ModelError), new_run(run_of_linear_and_mlp, tmp_path / "run", {}, force=False):
        raise ModelError("nothing to keep")

    assert (tmp_path / "run" / "run.json").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_metrics_follow_from_the_predictions_file_alone(run_of_linear_and_mlp, tmp_path):
    """They are those that the run has written. A row is a metric of one of two models or of a baseline."""
    write_run(run_of_linear_and_mlp, tmp_path / "run")
    written_metrics = (tmp_path / "run" / "metrics.csv").read_text("utf-8")

    metrics = summarise(Predictions.read(tmp_path / "run" / "predictions.csv"))

    assert metrics.to_csv(index=False, lineterminator="\n") == written_metrics
    n_models = 2 + len(BASELINES)
    n_metrics = len(METRICS) + 1  # within_movie_auc is no part of METRICS
    assert len(metrics) == n_models * n_metrics


def test_an_undefined_metric_is_null_in_json(run_of_linear_and_mlp):
    """JSON has no NaN. Here the lower end of the interval by movie is undefined for every metric."""
    metrics_without_intervals = run_of_linear_and_mlp.metrics.assign(movie_low=float("nan"))
    run = dataclasses.replace(run_of_linear_and_mlp, metrics=metrics_without_intervals)

    text = to_json(run)

    assert "NaN" not in text
    for row in json.loads(text)["metrics"]:
        assert row["movie_low"] is None


def test_the_report_has_every_model_and_chance(run_of_linear_and_mlp):
    """The last table is of all clips at once: a row for each model and each baseline, and one of chance."""
    pooled_table = run_report(run_of_linear_and_mlp).blocks[-1]

    names_of_rows = [row[0] for row in pooled_table.rows]
    assert names_of_rows == ["linear", "mlp", *BASELINES, "(chance)"]


def test_the_report_compares_no_scores_of_different_folds(run_of_linear_and_mlp):
    """The last table of the report is of all clips at once, which different folds scored.

    A shift of the scores between folds would decide AP and AUC there, so that the table has neither.
    """
    pooled_table = run_report(run_of_linear_and_mlp).blocks[-1]
    assert "AP" not in pooled_table.headers
    assert "AUC" not in pooled_table.headers


@pytest.mark.long
def test_folds_may_hold_several_movies_and_the_record_says_so(make_synthetic_data):
    """40 movies of four clips are tested in 20 folds: each clip once, and a movie's clips together."""
    data = make_synthetic_data(direction=3.0, n_movies=40, n_per_movie=4)

    run = evaluate(data, ["linear"], "enhn_s", folds=20)

    assert run.record["protocol"].startswith("strict: 20 folds of whole movies")
    names_of_folds = [fold["movie"] for fold in run.record["folds"]]
    assert names_of_folds == [f"fold {number}" for number in range(20)]
    table = run.predictions.table
    tested_by_linear = table[table["model"] == "linear"]["clip_id"]
    assert sorted(tested_by_linear) == sorted(data.clip_ids)
    n_folds_of_movie = table.groupby("movie")["fold"].nunique()
    assert n_folds_of_movie.max() == 1


def test_a_run_shows_its_metrics_by_movie(make_synthetic_data):
    """A notebook shows a run as HTML: a model's name is text there, and models are before baselines."""
    from sklearn.naive_bayes import GaussianNB

    run = evaluate(make_synthetic_data(), {"<bayes>": GaussianNB()}, "hn_s")

    html = run._repr_html_()

    assert "&lt;bayes&gt;" in html
    assert "<bayes>" not in html
    ap = run.metrics.query("model == '<bayes>' and metric == 'average_precision'")
    assert f"<td>{ap['movie_mean'].item():.3f}</td>" in html
    assert html.index("&lt;bayes&gt;") < html.index("always_positive")


def films_of_noise(folder):
    """Write a manifest of six films of 24 clips, with levels HN or S by chance, and a store of noise."""
    rng = np.random.default_rng(5)
    clips = []
    for film in range(6):
        for n in range(24):
            level = ["HN", "S"][int(rng.integers(2))]
            clips.append(Clip(f"f{film}-{n:02}", f"f{film}", "", level=level))
    write_manifest(Manifest(tuple(clips), folder), folder / "films.csv")
    noise = {"descriptors": {"pooled": rng.normal(size=(144, 8)).astype("f4")}}
    store = seal_arrays(folder / "films", {clip.clip_id: clip.movie for clip in clips}, noise)
    return clips, store


@pytest.mark.long
def test_a_model_without_skill_gives_every_clip_the_share_of_s_and_is_said_to_have_none(tmp_path, capsys):
    """A model learns S or HN, given by chance, from features that are noise, of six films of 24 clips.

    The command says that it may be no better than chance, and so does the flag of its card. Whatever the
    score of a clip, be it -9 or 9, the calibrated probability is nearly the share of S clips.
    """
    clips, store = films_of_noise(tmp_path)

    words = ["evaluate", tmp_path / "films.csv", store, "--task", "hn_s", "--model", "linear"]
    assert obygaze(*words, "--save", "linear", "--out", tmp_path / "run") == 0

    assert "may be no better than chance" in capsys.readouterr().err
    model = load_model(tmp_path / "run" / "linear.model")
    assert model.card.no_skill
    share_of_s = np.mean([clip.level == "S" for clip in clips])
    low_and_high_score = [-9.0, 9.0]
    np.testing.assert_allclose(model.calibration.probability(low_and_high_score), share_of_s, atol=0.05)


def pretend_that_saved_models_are_of_a_labs_own_class(monkeypatch):
    """Let each saved model be read back as one that a class of another package made: of the kind "arrays"."""
    card = SimpleNamespace(
        kind="arrays",
        movies=["f0", "f1"],
        calibration={"p_skilled": 1.0},
        evidence=None,
        levels_left_out=None,
    )
    monkeypatch.setattr(model_file, "read_model", lambda _path: SimpleNamespace(card=card))


@pytest.mark.long
@pytest.mark.parametrize(
    ("models_of_installed_packages", "is_warned"),
    [((), True), (("linear",), False)],
    ids=["no package offers the model", "a package offers it"],
)
def test_evaluate_warns_of_a_saved_model_that_commands_cannot_read(
    toy_films, tmp_path, monkeypatch, capsys, models_of_installed_packages, is_warned
):
    """The command saves a model "linear", whose class is here said to be a lab's own.

    Commands read the file of such a model only if an installed package offers a model of that name. Otherwise
    a script in Python must give the class, and the command says that the model is read back there alone.
    """
    pretend_that_saved_models_are_of_a_labs_own_class(monkeypatch)
    monkeypatch.setattr(names, "model_names", lambda: models_of_installed_packages)
    words = ["evaluate", toy_films / "films.csv", toy_films / "stores" / "films", "--task", "hn_s"]

    exit_code = obygaze(*words, "--model", "linear", "--save", "linear", "--out", tmp_path / "run")

    has_warning = "linear is read back in Python alone" in capsys.readouterr().err
    assert exit_code == 0
    assert has_warning == is_warned


@pytest.mark.parametrize(("scale", "dtype"), [(1, np.float32), (-0.37, np.float16), (1e-4, np.float64)])
def test_a_label_among_the_features_is_refused_by_its_number(learnable_clips, scale, dtype):
    """A feature that is the label, in any unit and precision, makes every number of the run meaningless."""
    X = learnable_clips.X.copy()
    X[:, 3] = np.where(learnable_clips.levels == "S", dtype(scale), 0) + dtype(0.1)
    with pytest.raises(ProtocolError, match=r"feature 3 .*hn_s"):
        evaluate(dataclasses.replace(learnable_clips, X=X), ["linear"], "hn_s")


@pytest.mark.parametrize(
    ("out", "words"),
    [(Path("runs/a"), "runs/a"), (None, "--out")],
    ids=["the run was written to a folder", "it was not written"],
)
def test_an_evaluation_says_where_its_run_is_or_how_to_keep_it(out, words):
    """There is nothing else to remark on: no film has a problem, and no clip was left out."""
    run = SimpleNamespace(record={"excluded": []})
    data = SimpleNamespace(modalities=(), parts=())
    no_problems = FilmProblems((), (), (), ())
    no_notes = {"policy_notes": (), "other_notes": (), "saved_models": ()}

    (remark,) = remarks(run, data, (), film_problems=no_problems, **no_notes, out=out)

    assert words in remark


@pytest.mark.parametrize("n_seeds", [1, 2])
def test_a_runs_folder_has_metrics_by_seed_if_there_are_several(run_of_linear_and_mlp, tmp_path, n_seeds):
    """Of one seed it would repeat the metrics. The predictions of the second seed are those of the first."""
    table = run_of_linear_and_mlp.predictions.table
    of_seeds = pd.concat([table.assign(seed=seed) for seed in range(n_seeds)], ignore_index=True)
    record = {**run_of_linear_and_mlp.record, "seeds": [*range(n_seeds)]}
    run = dataclasses.replace(run_of_linear_and_mlp, predictions=Predictions(of_seeds), record=record)

    write_run(run, tmp_path / "run")

    assert (tmp_path / "run" / "seeds.csv").exists() == (n_seeds > 1)
