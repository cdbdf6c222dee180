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
WITHIN = "within_movie_auc"
ORIGIN = {"manifest_sha256": "0" * 64, "label_policy": "raw"}


def perceptron(seed):
    """Make a small perceptron that trains fast."""
    return MLPProbe(16, max_epochs=15, learning_rate=0.01, random_state=seed)


@pytest.fixture(scope="module")
def learnable(make_planted):
    """240 clips of six films, in which one direction tells S clips from others."""
    return make_planted(direction=3.0, film=1.0)


@pytest.fixture(scope="module")
def run(learnable):
    """A linear model and a perceptron, trained on HN vs S and tested on EN and HN vs S."""
    return evaluate(learnable, ["linear", "mlp"], "hn_s", "enhn_s", origin=ORIGIN)


def pooled_metric(run, metric):
    """Return the value of a metric over all clips, by model."""
    rows = run.metrics[run.metrics["metric"] == metric]
    return dict(zip(rows["model"], rows["pooled"], strict=True))


def with_levels(data, levels):
    """Give other levels to a dataset's clips."""
    return dataclasses.replace(data, labels=dataclasses.replace(data.labels, levels=levels))


@pytest.mark.long
@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_a_planted_direction_beats_every_baseline_and_the_best_constant(run, model):
    for metric in ("f1_pos", "average_precision", "balanced_accuracy", WITHIN):
        values = pooled_metric(run, metric)
        best_baseline = max(values[name] for name in BASELINES)
        assert values[model] > best_baseline + 0.1, metric

    best_constant = run.metrics.set_index("metric").loc["f1_pos", "best_constant"].max()
    assert pooled_metric(run, "f1_pos")[model] > best_constant + 0.1


@pytest.mark.long  # simulates
def test_over_null_data_sets_the_auc_within_movies_is_one_half(make_planted):
    """Of 8 data sets of 240 clips the mean has a standard error of about .015."""
    linear_aucs = []
    for seed in range(8):
        null_data = make_planted(film=2.0, n_movies=4, n_per_movie=60, seed=seed)
        aucs = pooled_metric(evaluate(null_data, "linear", "enhn_s"), WITHIN)
        linear_aucs.append(aucs["linear"])
        assert aucs["movie_prior"] == 0.5
        assert aucs["always_positive"] == 0.5

    assert np.mean(linear_aucs) == pytest.approx(0.5, abs=0.045)


def test_every_clip_of_the_test_task_is_predicted_once_by_every_model(run, learnable):
    table = run.predictions.table
    assert list(dict.fromkeys(table["model"])) == ["linear", "mlp", *BASELINES]
    for _, part in table.groupby("model"):
        assert sorted(part["clip_id"]) == sorted(learnable.clip_ids)
    assert len(table[["fold", "movie"]].drop_duplicates()) == 6
    assert set(table["task"]) == {"hn_s>enhn_s"}
    label_of = dict(zip(learnable.clip_ids, learnable.levels == "S", strict=True))

    assert (table["label"] == table["clip_id"].map(label_of)).all()


def test_clips_outside_the_training_task_are_not_learnt_from(learnable, run):
    """EN clips changed beyond recognition change, for a model of HN vs S, nothing but their own scores."""
    is_easy = learnable.levels == "EN"
    X = learnable.X.copy()
    X[is_easy] = 1e3
    changed = evaluate(dataclasses.replace(learnable, X=X), ["linear"], "hn_s", "enhn_s")

    def other_clips(run):
        table = run.predictions.table
        is_other = ~table["clip_id"].isin(learnable.clip_ids[is_easy])
        return table[is_other & (table["model"] != "mlp")].reset_index(drop=True)

    pd.testing.assert_frame_equal(other_clips(run), other_clips(changed))


@pytest.mark.long
@pytest.mark.parametrize(
    "models",
    [["linear", "pcbm_lr", "pcbm_dt"], {"mlp": perceptron}],
    ids=["linear models", "a perceptron"],
)
def test_nothing_of_the_test_movie_influences_its_fold(make_planted_concepts, models):
    """Other features, levels and concepts in one movie change nothing of what is learnt for its own fold."""
    data = make_planted_concepts(n_movies=4)
    movie = data.movies[0]
    in_movie = data.movies == movie
    labels = dataclasses.replace(
        data.labels,
        levels=np.where(in_movie, data.levels[::-1], data.levels),
        present=np.where(in_movie[:, None], ~data.labels.present, data.labels.present),
    )
    X = np.where(in_movie[:, None], 7.0, data.X).astype(np.float32)

    before = evaluate(data, models, "hn_s", "enhn_s")
    after = evaluate(dataclasses.replace(data, X=X, labels=labels), models, "hn_s", "enhn_s")

    fold_before = before.record["folds"][0]
    fold_after = after.record["folds"][0]
    assert fold_before["movie"] == fold_after["movie"] == movie
    # Linear probes begin with the fit on all clips, and end within rounding of their own minimum.
    assert fold_before["thresholds"] == pytest.approx(fold_after["thresholds"], rel=1e-5)
    assert fold_before["concepts_left_out"] == fold_after["concepts_left_out"]
    for table in ("selection", "curves"):
        rows_before = getattr(before, table).query("fold == 0")
        rows_after = getattr(after, table).query("fold == 0")
        pd.testing.assert_frame_equal(rows_before, rows_after, rtol=1e-5)


@pytest.mark.parametrize("n_clips", [5, 8, 14])
def test_scene_blocks_that_leave_no_clip_to_learn_from_are_refused(make_planted, n_clips):
    """Four clips on either side of a tested block are in no training set: short films have none left."""
    short_films = make_planted(n_movies=8, n_per_movie=n_clips)
    with pytest.raises(ProtocolError):
        evaluate(short_films, ["linear"], "hn_s", seen=True)


def test_several_tests_share_the_models(learnable, run):
    table = evaluate(learnable, ["linear"], "hn_s", ["hn_s", "enhn_s"]).predictions.table
    assert list(dict.fromkeys(table["task"])) == ["hn_s>hn_s", "hn_s>enhn_s"]
    of_second_test = table.query("model == 'linear' and task == 'hn_s>enhn_s'").reset_index(drop=True)
    of_one_test = run.predictions.table.query("model == 'linear'").reset_index(drop=True)
    pd.testing.assert_frame_equal(of_second_test, of_one_test)


@pytest.mark.long
def test_each_of_several_seeds_gives_what_it_gives_alone(learnable):
    """The third of seeds 0, 1 and 2 gives the same predictions as a run with seed 2."""
    models = {"mlp": perceptron}
    run_of_three = evaluate(learnable, models, "hn_s", "enhn_s", n_seeds=3)
    run_of_third = evaluate(learnable, models, "hn_s", "enhn_s", seed=2)

    assert run_of_three.record["seeds"] == [0, 1, 2]
    table = run_of_three.predictions.table
    for model in ("mlp", "random_half"):
        of_three = table.query(f"model == '{model}' and seed == 2")
        alone = run_of_third.predictions.table.query(f"model == '{model}'")
        pd.testing.assert_frame_equal(of_three.reset_index(drop=True), alone.reset_index(drop=True))
    # A model that draws nothing would give the same predictions with each seed.
    assert set(table.loc[table["model"] == "movie_prior", "seed"]) == {0}


def test_two_seeds_that_predict_the_same_have_the_intervals_of_one(run):
    """Repeating the same predictions adds no information, so intervals must not become narrower."""
    table = run.predictions.table
    both_seeds = pd.concat([table, table.assign(seed=1)], ignore_index=True)
    metrics = summarise(Predictions(both_seeds))
    columns = ["model", "metric", "pooled", "pooled_low", "pooled_high", "movie_low", "movie_high"]
    pd.testing.assert_frame_equal(metrics[columns], run.metrics[columns])
    with pytest.raises(PredictionsError, match="different clips"):
        summarise(Predictions(both_seeds.iloc[:-1]))  # of which one seed lacks a clip


def test_every_candidate_and_every_epoch_of_the_inner_folds_is_kept(run):
    is_chosen = run.selection["chosen"] == 1
    assert run.selection[is_chosen].groupby("model").size().to_dict() == {"linear": 6, "mlp": 6}
    for _, candidates in run.selection.query("model == 'linear'").groupby("fold"):
        assert candidates["candidate"].iloc[0] == "C=0.0001"
        chosen = candidates[candidates["chosen"] == 1]
        assert chosen["inner_loss"].item() == candidates["inner_loss"].min()

    assert set(run.curves["model"]) == {"mlp"}
    curves = run.curves.groupby(["fold", "inner_fold"])
    assert len(curves) == 6 * 4  # six outer folds have four inner ones each
    for _, curve in curves:
        assert curve["epoch"].tolist() == list(range(1, len(curve) + 1))


def test_the_record_says_what_was_done_on_what(run, learnable):
    record = run.record
    assert record["train"]["name"] == "hn_s"
    assert record["train"]["classes"] == [["HN"], ["S"]]
    assert record["tests"][0]["name"] == "enhn_s"
    assert record["label_policy"] == "raw"
    assert record["codebook"] == {"name": "obygaze12", "digest": learnable.codebook.digest()}
    assert record["store"] == learnable.store
    assert record["clips"]["tested"] == 240
    assert [fold["tested"] for fold in record["folds"]] == [{"enhn_s": 40}] * 6
    assert record["prevalence"] == {"enhn_s": np.mean(learnable.levels == "S")}
    assert list(record["models"]) == ["linear", "mlp", *BASELINES]
    assert record["models"]["mlp"]["n_hidden"] == "128"


def test_ordered_levels_have_their_own_baselines_and_metrics_and_a_model_for_each_step(make_planted):
    """EN, HN and S have two steps: EN to HN, and HN to S."""
    run = evaluate(make_planted(direction=3.0, film=1.0, n_movies=4), ["linear"], "levels")

    assert run.record["n_classes"] == 3
    assert set(run.predictions.table["label"]) == {0, 1, 2}
    kappa = pooled_metric(run, "quadratic_kappa")
    assert set(kappa) == {"linear", "median_level", "random_level"}
    assert kappa["linear"] > 0.2
    assert abs(kappa["median_level"]) < 0.2
    assert {candidate.split(":")[0] for candidate in run.selection["candidate"]} == {"step 1", "step 2"}


@pytest.mark.long
def test_bottlenecks_see_through_concepts_and_controls_do_not(make_planted_concepts):
    models = ["pcbm_lr", "pcbm_lr_random", "pcbm_lr_shuffled"]
    aucs = pooled_metric(evaluate(make_planted_concepts(n_features=120), models, "hn_s"), WITHIN)
    assert aucs["pcbm_lr"] > aucs["pcbm_lr_random"] + 0.05
    assert aucs["pcbm_lr"] > aucs["pcbm_lr_shuffled"] + 0.05


def test_a_concept_can_be_learnt_if_it_varies_whatever_movie_is_left_out(learnable):
    """Concept 0 is in the first film alone, and all other films have concept 1.

    Without the first film neither varies; concept 2, in every third clip, does.
    """
    in_first_movie = learnable.movies == np.unique(learnable.movies)[0]
    present = np.zeros_like(learnable.labels.present)
    present[:, 0] = in_first_movie  # without the first movie, no clip has concept 0
    present[:, 1] = ~in_first_movie  # and all clips have concept 1
    present[::3, 2] = True
    data = dataclasses.replace(learnable, labels=dataclasses.replace(learnable.labels, present=present))
    all_rows = np.arange(len(data))

    assert varying(data, all_rows) == [data.labels.concepts[2]]


@pytest.mark.long
def test_models_of_concepts_are_left_out_or_refused_by_name_where_there_are_too_few_features(learnable):
    few_features = dataclasses.replace(learnable, X=learnable.X[:, :3])
    run = evaluate(few_features, None, "hn_s", progress=lambda *_: None)
    assert set(run.record["models_left_out"]) == {"pcbm_lr", "pcbm_dt", "pcbm_lr_random", "pcbm_lr_shuffled"}
    with pytest.raises(ConceptError, match="model pcbm_lr"):
        evaluate(learnable, ["pcbm_lr"], "hn_s")


def test_clips_and_movies_too_few_to_learn_from_are_refused(learnable):
    """Where S is in one film alone, there is no positive clip to train on when that film is left out."""
    is_elsewhere = learnable.movies != "tt0000003"
    s_in_one_movie = np.where((learnable.levels == "S") & is_elsewhere, "EN", learnable.levels)
    two_movies = learnable.take(np.arange(80))
    for data, message in (
        (with_levels(learnable, np.full(240, "EN")), "no positive clip to be trained on"),
        (with_levels(learnable, np.full(240, "S")), "no negative clip to be trained on"),
        (with_levels(learnable, s_in_one_movie), r"both classes|tt0000003"),
        (two_movies, "3 movies"),
    ):
        with pytest.raises(ProtocolError, match=message):
            evaluate(data, ["linear"], "en_s")


S_VS_EN = level_target(("S",), ("EN",), builtin_codebook("obygaze12"))


@pytest.mark.parametrize(
    ("tasks", "message"),
    [([], "--task"), (["hn_s", "levels"], r"hn_s .* levels"), (["en_s", S_VS_EN], r"'EN'|'S'")],
    ids=["no task", "two classes tested on ordered levels", "classes exchanged in the test"],
)
def test_tasks_that_cannot_be_evaluated_are_refused(learnable, tasks, message):
    with pytest.raises(ProtocolError, match=message):
        evaluate(learnable, ["linear"], *tasks)


def test_a_run_appears_when_it_is_complete_even_if_its_model_cannot_be_saved(run, tmp_path):
    """A full disk leaves nothing behind."""
    with pytest.raises(OSError, match="full"), new_run(run, tmp_path / "run", {}, force=False):
        raise OSError(28, "full")
    assert list(tmp_path.iterdir()) == []

    with pytest.raises(ModelError), new_run(run, tmp_path / "run", {}, force=False):
        raise ModelError("nothing to keep")
    assert (tmp_path / "run" / "run.json").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]

    with new_run(run, tmp_path / "another", {}, force=False):
        assert not (tmp_path / "another").exists()
    assert (tmp_path / "another").exists()


def test_metrics_follow_from_the_predictions_file_alone(run, tmp_path):
    write_run(run, tmp_path / "run")
    metrics = summarise(Predictions.read(tmp_path / "run" / "predictions.csv"))
    written = (tmp_path / "run" / "metrics.csv").read_text("utf-8")
    assert metrics.to_csv(index=False, lineterminator="\n") == written
    n_models = 2 + len(BASELINES)
    n_metrics = len(METRICS) + 1  # with within_movie_auc
    assert len(metrics) == n_models * n_metrics


def test_an_undefined_metric_is_null_in_json(run):
    undefined = dataclasses.replace(run, metrics=run.metrics.assign(movie_low=float("nan")))
    text = to_json(undefined)
    assert "NaN" not in text
    assert {row["movie_low"] for row in json.loads(text)["metrics"]} == {None}


def test_the_report_has_every_model_and_chance(run):
    pooled_table = run_report(run).blocks[-1]
    assert [row[0] for row in pooled_table.rows] == ["linear", "mlp", *BASELINES, "(chance)"]
    # A shift between folds would decide what compares scores of different folds.
    assert "AP" not in pooled_table.headers
    assert "AUC" not in pooled_table.headers


@pytest.mark.long
def test_folds_may_hold_several_movies_and_the_record_says_so(make_planted):
    data = make_planted(direction=3.0, n_movies=40, n_per_movie=4)
    run = evaluate(data, ["linear"], "enhn_s", folds=20)
    assert run.record["protocol"].startswith("strict: 20 folds of whole movies")
    assert [fold["movie"] for fold in run.record["folds"]] == [f"fold {number}" for number in range(20)]
    table = run.predictions.table

    assert sorted(table[table["model"] == "linear"]["clip_id"]) == sorted(data.clip_ids)
    assert table.groupby("movie")["fold"].nunique().max() == 1


def test_a_run_shows_its_metrics_by_movie(make_planted):
    from sklearn.naive_bayes import GaussianNB

    run = evaluate(make_planted(), {"<bayes>": GaussianNB()}, "hn_s")
    html = run._repr_html_()
    assert "&lt;bayes&gt;" in html
    assert "<bayes>" not in html
    by_movie = run.metrics.query("model == '<bayes>' and metric == 'average_precision'")["movie_mean"].item()
    assert f"<td>{by_movie:.3f}</td>" in html
    assert html.index("&lt;bayes&gt;") < html.index("always_positive")


@pytest.mark.long
def test_a_model_without_skill_gives_the_rate_of_films_and_says_so(tmp_path, capsys):
    """A model that may be no better than chance is calibrated to the share of S clips, whatever its score."""
    rng = np.random.default_rng(5)
    clips = []
    for film in range(6):
        for n in range(24):
            level = ["HN", "S"][int(rng.integers(2))]
            clips.append(Clip(f"f{film}-{n:02}", f"f{film}", "", level=level))
    write_manifest(Manifest(tuple(clips), tmp_path), tmp_path / "films.csv")
    noise = {"descriptors": {"pooled": rng.normal(size=(144, 8)).astype("f4")}}
    store = seal_arrays(tmp_path / "films", {clip.clip_id: clip.movie for clip in clips}, noise)

    words = ["evaluate", tmp_path / "films.csv", store, "--task", "hn_s", "--model", "linear"]
    assert obygaze(*words, "--save", "linear", "--out", tmp_path / "run") == 0

    assert "may be no better than chance" in capsys.readouterr().err
    model = load_model(tmp_path / "run" / "linear.model")
    assert model.card.no_skill
    share_of_s = np.mean([clip.level == "S" for clip in clips])
    np.testing.assert_allclose(model.calibration.probability([-9.0, 9.0]), share_of_s, atol=0.05)


@pytest.mark.long
@pytest.mark.parametrize(
    ("known_models", "is_warned"), [((), True), (("linear",), False)], ids=["unknown", "known"]
)
def test_a_kept_model_that_commands_do_not_know_is_named(
    toy_films, tmp_path, monkeypatch, capsys, known_models, is_warned
):
    """A kept model of kind "arrays" is of another package: commands read it if its name is installed."""
    card = SimpleNamespace(kind="arrays", calibration={"p_skilled": 1.0}, evidence=None, levels_left_out=None)
    monkeypatch.setattr(model_file, "read_model", lambda _path: SimpleNamespace(card=card))
    monkeypatch.setattr(names, "model_names", lambda: known_models)
    words = ["evaluate", toy_films / "films.csv", toy_films / "stores" / "films", "--task", "hn_s"]
    assert obygaze(*words, "--model", "linear", "--save", "linear", "--out", tmp_path / "run") == 0
    assert ("linear is read back in Python alone" in capsys.readouterr().err) == is_warned


@pytest.mark.parametrize(("scale", "dtype"), [(1, np.float32), (-0.37, np.float16), (1e-4, np.float64)])
def test_a_label_among_the_features_is_refused_by_its_number(learnable, scale, dtype):
    """A feature that is the label, in any unit and precision, makes every number of the run meaningless."""
    X = learnable.X.copy()
    X[:, 3] = np.where(learnable.levels == "S", dtype(scale), 0) + dtype(0.1)
    with pytest.raises(ProtocolError, match=r"feature 3 .*hn_s"):
        evaluate(dataclasses.replace(learnable, X=X), ["linear"], "hn_s")


@pytest.mark.parametrize(("out", "named"), [(Path("runs/a"), "runs/a"), (None, "--out")])
def test_an_evaluation_says_where_its_run_is_or_how_to_keep_it(out, named):
    run = SimpleNamespace(record={"excluded": []})
    data = SimpleNamespace(modalities=(), parts=())
    nothing_else = {"policy_notes": (), "other_notes": (), "saved_models": ()}
    (remark,) = remarks(run, data, (), film_problems=FilmProblems((), (), (), ()), **nothing_else, out=out)
    assert named in remark
