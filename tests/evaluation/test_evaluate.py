"""Leaving one movie out finds what is planted, and nothing where nothing is."""

import dataclasses
import io
import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.store.testing import seal_arrays
from obygaze_models.errors import ConceptError, ModelError, PredictionsError, ProtocolError
from obygaze_models.evaluation import METRICS, Predictions, summarise
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.evaluation.plan import varying
from obygaze_models.evaluation.run_folder import new_run, to_json, write_run
from obygaze_models.models import MLPProbe, baselines, names
from obygaze_models.persistence import model_file
from obygaze_models.prediction.saved_model import load_model
from obygaze_models.protocol import find_target
from obygaze_models.protocol.targets import level_target
from obygaze_models.report.run_tables import run_report
from obygaze_models.report.write import tables
from tests.command import obygaze

BASELINES = [spec.name for spec in baselines.SPECS if "levels" in spec.kinds]
WITHIN = "within_movie_auc"
ORIGIN = {"manifest_sha256": "0" * 64, "label_policy": "raw"}


def perceptron(seed):
    """Make a small perceptron that trains fast."""
    return MLPProbe(16, max_epochs=15, learning_rate=0.01, random_state=seed)


@pytest.fixture(scope="module")
def learnable(make_planted):
    return make_planted(direction=3.0, film=1.0)


@pytest.fixture(scope="module")
def run(learnable):
    return evaluate(learnable, ["linear", "mlp"], "hn_s", "enhn_s", origin=ORIGIN)


def pooled(run, metric):
    chosen = run.metrics[run.metrics["metric"] == metric]
    return dict(zip(chosen["model"], chosen["pooled"], strict=True))


def with_levels(data, levels):
    """Give other levels to a dataset's clips."""
    return dataclasses.replace(data, labels=dataclasses.replace(data.labels, levels=levels))


@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_a_planted_direction_beats_every_baseline(run, model):
    for metric in ("f1_pos", "average_precision", "balanced_accuracy", "within_movie_auc"):
        values = pooled(run, metric)
        assert values[model] > max(values[name] for name in BASELINES) + 0.1
    constant = run.metrics.set_index("metric").loc["f1_pos", "best_constant"].max()
    assert pooled(run, "f1_pos")[model] > constant + 0.1


@pytest.mark.long  # simulates
def test_over_null_data_sets_the_auc_within_movies_is_one_half(make_planted):
    """8 data sets of 240 clips: the mean has a standard error of about .015."""
    found = [
        pooled(
            evaluate(make_planted(film=2.0, n_movies=4, n_per_movie=60, seed=seed), "linear", "enhn_s"),
            WITHIN,
        )
        for seed in range(8)
    ]
    assert np.mean([values["linear"] for values in found]) == pytest.approx(0.5, abs=0.045)
    assert {values[name] for values in found for name in ("movie_prior", "always_positive")} == {0.5}


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
    strange = dataclasses.replace(learnable, X=learnable.X.copy())
    strange.X[learnable.levels == "EN"] = 1e3
    changed = evaluate(strange, ["linear"], "hn_s", "enhn_s").predictions.table
    same = [
        table[
            ~table["clip_id"].isin(learnable.clip_ids[learnable.levels == "EN"]) & (table["model"] != "mlp")
        ].reset_index(drop=True)
        for table in (run.predictions.table, changed)
    ]
    pd.testing.assert_frame_equal(*same)


def test_nothing_of_the_test_movie_influences_its_fold(make_planted_concepts):
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
    changed_data = dataclasses.replace(data, X=X, labels=labels)
    for models in (["linear", "pcbm_lr", "pcbm_dt"], {"mlp": perceptron}):
        before = evaluate(data, models, "hn_s", "enhn_s")
        after = evaluate(changed_data, models, "hn_s", "enhn_s")
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


@pytest.mark.parametrize("clips", [5, 8, 14])
def test_scene_blocks_that_leave_no_clip_to_learn_from_are_refused(make_planted, clips):
    """Four clips on either side of a tested block are in no training set: short films have none left."""
    short = make_planted(n_movies=8, n_per_movie=clips)
    with pytest.raises(ProtocolError):
        evaluate(short, ["linear"], "hn_s", seen=True)


def test_several_tests_share_the_models(learnable, run):
    both = evaluate(learnable, ["linear"], "hn_s", ["hn_s", "enhn_s"]).predictions.table
    assert list(dict.fromkeys(both["task"])) == ["hn_s>hn_s", "hn_s>enhn_s"]
    one = both[(both["model"] == "linear") & (both["task"] == "hn_s>enhn_s")].reset_index(drop=True)
    alone = run.predictions.table.query("model == 'linear'").reset_index(drop=True)
    pd.testing.assert_frame_equal(one, alone)


@pytest.fixture(scope="module")
def three(learnable):
    return evaluate(learnable, {"mlp": perceptron}, "hn_s", "enhn_s", n_seeds=3)


def test_seeds_of_one_run_are_those_of_three(three, learnable):
    table = three.predictions.table
    assert three.record["seeds"] == [0, 1, 2]
    alone = evaluate(learnable, {"mlp": perceptron}, "hn_s", "enhn_s", seed=2).predictions.table
    for model in ("mlp", "random_half"):
        own = table[(table["model"] == model) & (table["seed"] == 2)].reset_index(drop=True)
        pd.testing.assert_frame_equal(own, alone[alone["model"] == model].reset_index(drop=True))
    # What draws nothing is the same for every seed, and there once.
    assert set(table.loc[table["model"] == "movie_prior", "seed"]) == {0}


def test_an_interval_of_seeds_alike_is_that_of_one(run):
    table = run.predictions.table
    twin = pd.concat([table, table.assign(seed=1)], ignore_index=True)
    columns = ["model", "metric", "pooled", "pooled_low", "pooled_high", "movie_low", "movie_high"]
    pd.testing.assert_frame_equal(summarise(Predictions(twin))[columns], run.metrics[columns])
    with pytest.raises(PredictionsError, match="different clips"):
        summarise(Predictions(twin.iloc[:-1]))


def test_every_candidate_and_every_epoch_of_the_inner_folds_is_kept(run):
    chosen = run.selection[run.selection["chosen"] == 1]
    assert chosen.groupby("model").size().to_dict() == {"linear": 6, "mlp": 6}
    linear = run.selection[run.selection["model"] == "linear"]
    for _, part in linear.groupby("fold"):
        assert part["candidate"].iloc[0] == "C=0.0001"
        assert part.loc[part["chosen"] == 1, "inner_loss"].item() == part["inner_loss"].min()
    assert set(run.curves["model"]) == {"mlp"}
    curves = run.curves.groupby(["fold", "inner_fold"])
    assert len(curves) == 6 * 4
    for _, curve in curves:
        assert curve["epoch"].tolist() == list(range(1, len(curve) + 1))


def test_the_record_says_what_was_done_on_what(run, learnable):
    record = run.record
    assert (record["train"]["name"], record["tests"][0]["name"]) == ("hn_s", "enhn_s")
    assert record["train"]["classes"] == [["HN"], ["S"]]
    assert record["label_policy"] == "raw"
    assert record["codebook"] == {"name": "obygaze12", "digest": learnable.codebook.digest()}
    assert record["store"] == learnable.store
    assert record["clips"]["tested"] == 240
    assert [fold["tested"] for fold in record["folds"]] == [{"enhn_s": 40}] * 6
    assert record["prevalence"] == {"enhn_s": np.mean(learnable.levels == "S")}
    assert list(record["models"]) == ["linear", "mlp", *BASELINES]
    assert record["models"]["mlp"]["n_hidden"] == "128"


def test_ordered_levels_are_evaluated_by_their_own_metrics_and_baselines(make_planted):
    data = make_planted(direction=3.0, film=1.0, n_movies=4)
    found = evaluate(data, ["linear"], "levels")
    assert found.record["n_classes"] == 3
    assert set(found.predictions.table["label"]) == {0, 1, 2}
    assert set(found.metrics["model"]) == {"linear", "median_level", "random_level"}
    kappa = pooled(found, "quadratic_kappa")
    assert kappa["linear"] > 0.2 > abs(kappa["median_level"])
    assert {one.split(":")[0] for one in found.selection["candidate"]} == {"step 1", "step 2"}


def test_bottlenecks_see_through_concepts_and_controls_do_not(make_planted_concepts):
    models = ["pcbm_lr", "pcbm_lr_random", "pcbm_lr_shuffled"]
    found = evaluate(make_planted_concepts(n_features=120), models, "hn_s")
    values = pooled(found, "within_movie_auc")
    assert values["pcbm_lr"] > max(values["pcbm_lr_random"], values["pcbm_lr_shuffled"]) + 0.05


def test_a_concept_can_be_learnt_if_it_varies_whatever_movie_is_left_out(learnable):
    movies = np.unique(learnable.movies)
    present = np.zeros_like(learnable.labels.present)
    present[:, 0] = learnable.movies == movies[0]  # in one movie alone
    present[:, 1] = learnable.movies != movies[0]  # in every clip of all movies but one
    present[::3, 2] = True
    data = dataclasses.replace(learnable, labels=dataclasses.replace(learnable.labels, present=present))
    assert varying(data, np.arange(len(data))) == [data.labels.concepts[2]]


def test_models_of_concepts_are_left_out_unless_asked_for(learnable):
    few = dataclasses.replace(learnable, X=learnable.X[:, :3])
    found = evaluate(few, None, "hn_s", progress=lambda *_: None)
    of_concepts = {"pcbm_lr", "pcbm_dt", "pcbm_lr_random", "pcbm_lr_shuffled"}
    assert set(found.record["models_left_out"]) == of_concepts
    with pytest.raises(ConceptError, match="model pcbm_lr"):
        evaluate(learnable, ["pcbm_lr"], "hn_s")


def test_what_cannot_be_trained_or_tested_is_refused(learnable):
    rare = np.where((learnable.levels == "S") & (learnable.movies != "tt0000003"), "EN", learnable.levels)
    for levels, place in (
        (np.full(240, "EN"), "no positive clip"),
        (np.full(240, "S"), "no negative clip"),
        (rare, "both classes|tt0000003"),
    ):
        with pytest.raises(ProtocolError, match=place):
            evaluate(with_levels(learnable, levels), ["linear"], "en_s")
    with pytest.raises(ProtocolError, match="3 movies"):
        evaluate(learnable.take(np.arange(80)), ["linear"], "enhn_s")
    with pytest.raises(ProtocolError, match=r"hn_s .* levels"):
        evaluate(learnable, ["linear"], "hn_s", "levels")
    with pytest.raises(ProtocolError, match="--task"):
        evaluate(learnable, ["linear"])
    turned = level_target(("S",), ("EN",), learnable.codebook)
    with pytest.raises(ProtocolError, match=r"'EN'|'S'"):
        evaluate(learnable, ["linear"], "en_s", turned)
    target = find_target("hn_s", learnable.codebook)
    assert evaluate(learnable, ["linear"], target).record["train"]["name"] == "hn_s"


@pytest.mark.parametrize(
    ("error", "kept"), [(ModelError("nothing to keep"), True), (OSError(28, "full"), False)]
)
def test_a_run_is_kept_though_its_model_cannot_be_but_not_on_a_full_disk(run, tmp_path, error, kept):
    def save():
        with new_run(run, tmp_path / "run", {}, force=False):
            assert not (tmp_path / "run").exists()
            raise error

    with pytest.raises(type(error)):
        save()
    assert (tmp_path / "run" / "run.json").exists() == kept
    assert len(list(tmp_path.iterdir())) == kept


def test_metrics_follow_from_the_predictions_file_alone(run, tmp_path):
    write_run(run, tmp_path / "run")
    again = summarise(Predictions.read(tmp_path / "run" / "predictions.csv"))
    written = (tmp_path / "run" / "metrics.csv").read_text("utf-8")
    assert again.to_csv(index=False, lineterminator="\n") == written
    # within_movie_auc beside the others.
    assert len(pd.read_csv(io.StringIO(written))) == 7 * (len(METRICS) + 1)


def test_an_undefined_metric_is_null_in_json(run):
    holed = dataclasses.replace(run, metrics=run.metrics.assign(movie_low=float("nan")))
    assert {row["movie_low"] for row in json.loads(to_json(holed))["metrics"]} == {None}
    assert "NaN" not in to_json(holed)


def test_the_report_has_every_model_and_chance_within_80_columns(run):
    report = run_report(run)
    pooled = report.blocks[-1]
    assert [row[0] for row in pooled.rows] == ["linear", "mlp", *BASELINES, "(chance)"]
    # A shift between folds would decide what compares scores of different folds.
    assert not {"AP", "AUC"} & {*pooled.headers}
    assert max(len(line) for block in report.blocks for line in "\n".join(tables(block)).splitlines()) <= 80


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


def test_a_model_that_does_not_tell_clips_of_a_film_apart_gives_the_rate_of_films_and_is_said_to(
    tmp_path, capsys
):
    """Noise, in which held-out scores happen to fall with the label within films."""
    rng = np.random.default_rng(5)
    clips = [
        Clip(f"f{film}-{n:02}", f"f{film}", "", level=["HN", "S"][int(rng.integers(2))])
        for film in range(6)
        for n in range(24)
    ]
    write_manifest(Manifest(tuple(clips), tmp_path), tmp_path / "films.csv")
    noise = {"descriptors": {"pooled": rng.normal(size=(len(clips), 8)).astype("f4")}}
    store = seal_arrays(tmp_path / "films", {clip.clip_id: clip.movie for clip in clips}, noise)
    words = ["evaluate", tmp_path / "films.csv", store, "--task", "hn_s", "--model", "linear"]
    assert obygaze(*words, "--save", "linear", "--out", tmp_path / "run") == 0
    model = load_model(tmp_path / "run" / "linear.model")
    assert model.card.no_skill
    calibration = model.calibration
    share = np.mean([clip.level == "S" for clip in clips])
    np.testing.assert_allclose(calibration.probability([-9.0, 9.0]), share, atol=0.05)
    assert "may be no better than chance" in capsys.readouterr().err


@pytest.mark.parametrize("known", [(), ("linear",)])
def test_a_model_that_no_command_reads_back_is_said_when_it_is_kept(
    toy_films, tmp_path, monkeypatch, capsys, known
):
    card = SimpleNamespace(kind="arrays", calibration={"p_skilled": 1.0}, evidence=None, levels_left_out=None)
    monkeypatch.setattr(model_file, "read_model", lambda _: SimpleNamespace(card=card))
    monkeypatch.setattr(names, "model_names", lambda: known)
    words = ["evaluate", toy_films / "films.csv", toy_films / "stores" / "films", "--task", "hn_s"]
    assert obygaze(*words, "--model", "linear", "--save", "linear", "--out", tmp_path / "run") == 0
    assert ("linear is read back in Python alone" in capsys.readouterr().err) == (not known)


@pytest.mark.parametrize(("scale", "dtype"), [(1, np.float32), (-0.37, np.float16), (1e-4, np.float64)])
def test_a_label_among_the_features_is_refused_by_its_number(learnable, scale, dtype):
    X = learnable.X.copy()
    X[:, 3] = (learnable.levels == "S") * dtype(scale) + dtype(0.1)
    with pytest.raises(ProtocolError, match=r"feature 3 .*hn_s"):
        evaluate(dataclasses.replace(learnable, X=X), ["linear"], "hn_s")
