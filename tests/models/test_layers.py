"""Which layer knows: each is asked, beside what the best of many reaches by chance, or inner folds choose."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import obygaze_models as om
from obygaze.cli import main
from obygaze_models.errors import DatasetError, ModelError
from obygaze_models.evaluation.best_layer import best_layer
from obygaze_models.evaluation.predictions import COLUMNS, Predictions
from obygaze_models.models.layers import LayerClassifier
from obygaze_models.models.linear import SPECS
from obygaze_models.protocol import HeldOut
from obygaze_models.report.run_answers import models_of_layers
from tests.planted_layers import planted_store

(LINEAR,) = SPECS
N_LAYERS, BEST = 6, 3


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Eight films; layer 3 of six knows the level, 2 and 4 half."""
    return planted_store(tmp_path_factory.mktemp("layers"), n_layers=N_LAYERS, best=BEST)


@pytest.fixture(scope="module")
def data(corpus):
    manifest, store = corpus
    return om.load_layers(store, manifest)


@pytest.fixture(scope="module")
def each(data):
    return om.evaluate(data, om.layered(["linear"], data, "each"), "en_s")


@pytest.fixture(scope="module")
def chosen(data):
    return om.evaluate(data, om.layered(["linear"], data, "chosen"), "en_s")


def auc(run):
    rows = run.metrics[run.metrics["metric"] == "auc"]
    return dict(zip(rows["model"], rows["movie_mean"], strict=True))


def test_layers_stand_side_by_side_in_the_order_of_the_network(corpus, data):
    manifest, store = corpus
    assert [layer.name for layer in data.modalities] == ["1", "2", "3", "4", "5", "6"]
    assert data.backbone == "net"
    alone = om.load_dataset(store, manifest, backbone="net.3")
    layer = data.modalities[2]
    assert np.array_equal(data.X[:, layer.start : layer.stop], alone.X)
    assert data.clip_ids.tolist() == alone.clip_ids.tolist()


def test_a_store_that_has_no_layers_says_so(corpus):
    manifest, store = corpus
    with pytest.raises(DatasetError):
        om.load_layers(store, manifest, backbone="other")
    with pytest.raises(ModelError):
        om.layered(["linear"], om.load_dataset(store, manifest, backbone="net.3"), "each")
    with pytest.raises(ModelError):
        om.layered(["attention"], om.load_layers(store, manifest), "each")


def test_each_layer_has_the_numbers_of_a_run_of_it_alone(corpus, each):
    manifest, store = corpus
    alone = om.evaluate(om.load_dataset(store, manifest, backbone="net.3"), ["linear"], "en_s")
    assert auc(each)["linear:3"] == pytest.approx(auc(alone)["linear"], abs=1e-9)


def test_the_best_of_each_is_named_beside_its_chance(each):
    best = best_layer(each.predictions, "en_s>en_s", "linear", models_of_layers(each)["linear"])
    assert best.layer == str(BEST)
    assert best.value == pytest.approx(auc(each)["linear:3"])
    assert 0.5 < best.chance < best.high < best.value
    assert best.p <= 0.001
    (line,) = om.run_report(each).answers
    assert f"{best.chance:.3f}" in line
    assert f"{best.value:.3f}" in line


def test_the_layer_is_chosen_by_inner_folds_and_the_choice_is_recorded(chosen, each):
    table = chosen.selection[chosen.selection["model"] == "linear"]
    taken = table[table["chosen"] == 1]
    assert len(taken) == 8  # films
    assert taken["candidate"].isin(["layer 2", "layer 3", "layer 4"]).all()
    assert table.groupby("movie")["candidate"].nunique().eq(N_LAYERS).all()
    assert auc(chosen)["linear"] >= max(auc(each).values()) - 0.05
    assert any("layer" in note for note in om.run_report(chosen).notes)


def test_what_is_chosen_for_a_film_does_not_depend_on_its_labels(data):
    """A film's own labels and clips are turned round: its layer, and its scores, stay."""
    rows = np.flatnonzero(data.movies != "film0")
    held = np.flatnonzero(data.movies == "film0")
    labels = (data.levels == "S").astype(np.int64)
    columns = tuple(slice(layer.start, layer.stop) for layer in data.modalities)
    model = LayerClassifier(LINEAR.estimator(0), columns, tuple("123456"))
    fitted = model.fit(data.X[rows], labels[rows], groups=data.movies[rows])
    assert fitted.layer_ == BEST - 1
    changed = data.X.copy()
    changed[held] = 1e3
    again = LayerClassifier(LINEAR.estimator(0), columns, tuple("123456"))
    again.fit(changed[rows], labels[rows], groups=data.movies[rows])
    assert np.array_equal(again.decision_function(data.X[held]), fitted.decision_function(data.X[held]))


def test_pairs_are_of_one_film_and_a_tie_counts_half():
    y = np.array([1, 0, 1, 0, 1, 0])
    movies = np.array(["a", "a", "b", "b", "c", "c"])
    scores = np.array([2.0, 1.0, -5.0, -4.0, 0.0, 0.0])
    assert HeldOut(scores, y, movies).ordered_pairs() == pytest.approx(0.5)
    assert HeldOut(scores, np.ones(6, int), movies).ordered_pairs() == 0.5


def test_a_kept_model_of_a_chosen_layer_reads_that_layer_alone(corpus, data, chosen, tmp_path):
    _, store = corpus
    (path,) = om.save_models(chosen, data, ["linear"], tmp_path).values()
    model = om.load_model(path)
    assert model.card.backbone == f"net.{BEST}"
    assert model.card.provenance["layer"] == str(BEST)
    assert not model.card.modalities
    assert len(om.predict(model, [store]).table) == len(data)


def test_a_model_of_each_layer_is_kept_by_evaluating_that_layer_alone(data, each):
    with pytest.raises(ModelError):
        om.save_models(each, data, ["linear:3"], "kept")


def scores_of_noise(rng, n_films=6, n_clips=12, n_layers=5, n_classes=2):
    """Scores of layers that resemble each other and know nothing, of films with labels."""
    n = n_films * n_clips
    common = rng.normal(size=n)
    labels = (rng.random(n) < 0.4).astype(int) if n_classes == 2 else rng.integers(0, n_classes, n)
    movies = np.repeat([f"m{number}" for number in range(n_films)], n_clips)
    tables = []
    for layer in range(n_layers):
        own = {name: 0 if kind.startswith(("int", "float")) else "" for name, kind in COLUMNS.items()}
        own |= {"clip_id": [f"c{row:03d}" for row in range(n)], "movie": movies, "label": labels}
        own |= {"task": "t", "model": f"linear:{layer}", "score": common + rng.normal(size=n)}
        tables.append(pd.DataFrame(own))
    return Predictions(pd.concat(tables, ignore_index=True)[list(COLUMNS)], n_classes)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_best_of_noise_is_found_good_no_oftener_than_it_should(n_classes):
    """Under the null p is uniform: at most .05 in 1 of 20 corpora (binomial, 5 standard errors)."""
    names = {str(layer): f"linear:{layer}" for layer in range(5)}
    found = []
    for seed in range(30):
        noise = scores_of_noise(np.random.default_rng(seed), n_classes=n_classes)
        found.append(best_layer(noise, "t", "linear", names, seed=seed))
    p = np.array([best.p for best in found])
    assert (p <= 0.05).mean() <= 0.05 + 5 * np.sqrt(0.05 * 0.95 / len(p))
    assert np.mean([best.value for best in found]) == pytest.approx(
        np.mean([b.chance for b in found]), abs=0.03
    )
    assert p.mean() == pytest.approx(0.5, abs=0.15)


@pytest.fixture(scope="module")
def of_levels(tmp_path_factory):
    """Layers of five films under labels of three ordered levels, of which layer 3 knows the highest."""
    folder = tmp_path_factory.mktemp("levels")
    manifest, store = planted_store(folder, n_films=5, n_clips=18, n_layers=4, best=BEST, auc=0.9)
    clips = []
    for number, clip in enumerate(manifest.clips):
        level = "HN" if clip.level == "EN" and number % 3 == 0 else clip.level
        clips.append(replace(clip, level=level))
    data = om.load_layers(store, replace(manifest, clips=tuple(clips)))
    return om.evaluate(data, om.layered(["linear"], data, "each"), "levels")


def test_of_ordered_levels_the_best_is_named_by_ranks_beside_its_chance(of_levels):
    best = best_layer(of_levels.predictions, "levels>levels", "linear", models_of_layers(of_levels)["linear"])
    rows = of_levels.metrics[of_levels.metrics["metric"] == "spearman"].set_index("model")
    assert (best.metric, best.layer) == ("spearman", str(BEST))
    assert best.value == pytest.approx(rows.loc[f"linear:{BEST}", "movie_mean"])
    assert 0 < best.chance < best.high < best.value < 1
    lines = [line for line in om.run_report(of_levels).answers if "by chance" in line]
    assert len(lines) == 1
    assert f"{best.chance:.3f}" in lines[0]


def test_scores_that_are_all_equal_rank_nothing():
    noise = scores_of_noise(np.random.default_rng(0), n_classes=3)
    table = noise.table.assign(score=np.where(noise.table["model"] == "linear:1", 1.0, noise.table["score"]))
    names = {"1": "linear:1", "2": "linear:2"}
    best = best_layer(Predictions(table, 3), "t", "linear", names)
    assert np.isfinite([best.value, best.chance, best.p]).all()


@pytest.mark.parametrize("name", ["cav", "mlp", "pcbm_lr"])
def test_any_model_of_vectors_is_kept_with_the_layer_that_was_chosen(corpus, tmp_path, name):
    manifest, store = corpus
    rng = np.random.default_rng(0)
    clips = []
    for clip in manifest.clips:
        marked = rng.random(2) < (0.8 if clip.level == "S" else 0.2)
        named = tuple(np.array(["Body", "Clothing"])[marked].tolist())
        clips.append(replace(clip, concepts=named))
    data = om.load_layers(store, replace(manifest, clips=tuple(clips)))
    specs = om.layered([name], data, "chosen")
    run = om.evaluate(data, specs, "en_s")
    (path,) = om.save_models(run, data, [name], tmp_path).values()
    model = om.load_model(path)
    assert model.card.backbone in {"net.2", "net.3", "net.4"}
    assert model.card.backbone == f"net.{model.card.provenance['layer']}"
    predicted = om.predict(model, [store]).table
    table = run.predictions.table
    held_out = table[table["model"] == name].set_index("clip_id")["score"]
    kept = predicted.set_index("clip_id")["logit"]
    assert np.corrcoef(held_out, kept[held_out.index])[0, 1] > 0.6


def test_a_bank_of_concepts_is_of_one_layer(data, chosen, tmp_path):
    with pytest.raises(ModelError):
        om.save_models(chosen, data, ["bank"], tmp_path)


def test_the_command_asks_one_layer_each_or_a_chosen_one(tmp_path, capsys):
    manifest, store = planted_store(tmp_path, n_films=4, n_clips=12, n_layers=3, best=2, auc=0.98)
    from obygaze_features import write_manifest

    table = tmp_path / "films.csv"
    write_manifest(manifest, table)

    def evaluate(*words):
        with pytest.raises(SystemExit) as left:
            main(["evaluate", str(table), str(store.path), "--task", "en_s", *words])
        return left.value.code, capsys.readouterr()

    code, told = evaluate("--layer", "2", "--model", "linear", "--json")
    assert code == 0
    assert json.loads(told.out)["record"]["backbone"] == "net.2"
    page = tmp_path / "page.html"
    code, told = evaluate("--layer", "each", "--html", str(page))
    assert code == 0
    assert "by chance" in told.out
    assert "data:image/svg+xml" in page.read_text()
    code, told = evaluate("--layer", "chosen", "--save", "linear", "--out", str(tmp_path / "run"))
    assert code == 0, told.err
    assert (tmp_path / "run" / "linear.model").is_file()
    assert "layer 2" in (tmp_path / "run" / "selection.csv").read_text()
    for layers, saved in (("chosen", "bank"), ("each", "linear")):
        code, told = evaluate("--layer", layers, "--save", saved, "--out", str(tmp_path / "no"))
        assert code == 2
        assert not (tmp_path / "no").exists()
    for wrong in (["--layer", "9"], ["--layer", "first"], ["--layer", "each", "--reduce", "mean"]):
        code, told = evaluate(*wrong)
        assert code == 2
        assert "Traceback" not in told.err
