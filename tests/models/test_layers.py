"""Which layer knows: each is asked, beside what the best of many reaches by chance, or inner folds choose."""

import json
import re
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

import obygaze_models as om
from obygaze.cli import main
from obygaze_features import write_manifest
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
def run_of_each(data):
    """A run of a model of each layer."""
    return om.evaluate(data, om.layered(["linear"], data, "each"), "en_s")


@pytest.fixture(scope="module")
def run_of_chosen(data):
    """A run of a model whose layer inner folds choose."""
    return om.evaluate(data, om.layered(["linear"], data, "chosen"), "en_s")


def auc(run):
    """Return the mean AUC over films of each model."""
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


def test_each_layer_has_the_numbers_of_a_run_of_it_alone(corpus, run_of_each):
    manifest, store = corpus
    run_of_layer = om.evaluate(om.load_dataset(store, manifest, backbone="net.3"), ["linear"], "en_s")
    assert auc(run_of_each)["linear:3"] == pytest.approx(auc(run_of_layer)["linear"], abs=1e-9)


def test_the_best_of_each_is_named_beside_its_chance(run_of_each):
    names = models_of_layers(run_of_each)["linear"]
    best = best_layer(run_of_each.predictions, "en_s>en_s", "linear", names)
    assert best.layer == str(BEST)
    assert best.value == pytest.approx(auc(run_of_each)["linear:3"])
    assert 0.5 < best.chance < best.high < best.value
    assert best.p <= 0.001
    (line,) = om.run_report(run_of_each).answers
    assert f"{best.chance:.3f}" in line
    assert f"{best.value:.3f}" in line


def test_the_layer_is_chosen_by_inner_folds_and_the_choice_is_recorded(run_of_chosen, run_of_each):
    table = run_of_chosen.selection[run_of_chosen.selection["model"] == "linear"]
    assert table.groupby("movie")["candidate"].nunique().eq(N_LAYERS).all()
    chosen = table[table["chosen"] == 1]
    assert len(chosen) == 8  # one for each film left out
    assert chosen["candidate"].isin(["layer 2", "layer 3", "layer 4"]).all()
    assert auc(run_of_chosen)["linear"] >= max(auc(run_of_each).values()) - 0.05
    assert any("layer" in note for note in om.run_report(run_of_chosen).notes)


def test_what_is_chosen_for_a_film_does_not_depend_on_its_clips(data):
    """A film's own clips are changed: its layer, and its scores, stay."""
    held_out = data.movies == "film0"
    y = (data.levels == "S").astype(np.int64)
    columns = tuple(slice(layer.start, layer.stop) for layer in data.modalities)

    def fitted(X):
        model = LayerClassifier(LINEAR.estimator(0), columns, tuple("123456"))
        return model.fit(X[~held_out], y[~held_out], groups=data.movies[~held_out])

    changed = data.X.copy()
    changed[held_out] = 1e3
    model = fitted(data.X)
    assert model.layer_ == BEST - 1
    scores = model.decision_function(data.X[held_out])
    assert np.array_equal(fitted(changed).decision_function(data.X[held_out]), scores)


def test_pairs_are_of_one_film_and_a_tie_counts_half():
    y = np.array([1, 0, 1, 0, 1, 0])
    movies = np.array(["a", "a", "b", "b", "c", "c"])
    scores = np.array([2.0, 1.0, -5.0, -4.0, 0.0, 0.0])
    assert HeldOut(scores, y, movies).share_of_ordered_pairs() == pytest.approx(0.5)
    assert HeldOut(scores, np.ones(6, int), movies).share_of_ordered_pairs() == 0.5


def test_a_kept_model_of_a_chosen_layer_reads_that_layer_alone(corpus, data, run_of_chosen, tmp_path):
    _, store = corpus
    (path,) = om.save_models(run_of_chosen, data, ["linear"], tmp_path).values()
    model = om.load_model(path)
    assert model.card.backbone == f"net.{BEST}"
    assert model.card.provenance["layer"] == str(BEST)
    assert not model.card.modalities
    assert len(om.predict(model, [store]).table) == len(data)


def test_a_model_of_each_layer_is_kept_by_evaluating_that_layer_alone(data, run_of_each):
    with pytest.raises(ModelError):
        om.save_models(run_of_each, data, ["linear:3"], "kept")


def scores_of_noise(rng, n_films=6, n_clips=12, n_layers=5, n_classes=2):
    """Scores of layers that resemble each other and know nothing, of films with labels."""
    n = n_films * n_clips
    common = rng.normal(size=n)
    labels = (rng.random(n) < 0.4).astype(int) if n_classes == 2 else rng.integers(0, n_classes, n)
    # Columns that nothing here depends on are 0 or empty.
    unused = {}
    for name, kind in COLUMNS.items():
        unused[name] = 0 if kind.startswith(("int", "float")) else ""
    clips = unused | {
        "task": "t",
        "clip_id": [f"c{row:03d}" for row in range(n)],
        "movie": np.repeat([f"m{number}" for number in range(n_films)], n_clips),
        "label": labels,
    }
    tables = []
    for layer in range(n_layers):
        scores = {"model": f"linear:{layer}", "score": common + rng.normal(size=n)}
        tables.append(pd.DataFrame(clips | scores))
    return Predictions(pd.concat(tables, ignore_index=True)[list(COLUMNS)], n_classes)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_best_of_noise_is_found_good_no_oftener_than_it_should(n_classes):
    """Under the null p is uniform: at most .05 in 1 of 20 corpora (binomial, 5 standard errors)."""
    names = {str(layer): f"linear:{layer}" for layer in range(5)}
    n_corpora = 20
    p = np.empty(n_corpora)
    values = np.empty(n_corpora)
    chances = np.empty(n_corpora)
    for seed in range(n_corpora):
        noise = scores_of_noise(np.random.default_rng(seed), n_classes=n_classes)
        best = best_layer(noise, "t", "linear", names, seed=seed)
        p[seed] = best.p
        values[seed] = best.value
        chances[seed] = best.chance
    standard_error = np.sqrt(0.05 * 0.95 / n_corpora)
    assert (p <= 0.05).mean() <= 0.05 + 5 * standard_error
    assert values.mean() == pytest.approx(chances.mean(), abs=0.03)
    assert p.mean() == pytest.approx(0.5, abs=0.15)


@pytest.fixture(scope="module")
def run_of_levels(tmp_path_factory):
    """A run of layers of five films, labelled with three ordered levels; layer 3 knows the highest."""
    folder = tmp_path_factory.mktemp("levels")
    manifest, store = planted_store(folder, n_films=5, n_clips=18, n_layers=4, best=BEST, auc=0.9)
    clips = []
    for number, clip in enumerate(manifest.clips):
        level = "HN" if clip.level == "EN" and number % 3 == 0 else clip.level
        clips.append(replace(clip, level=level))
    data = om.load_layers(store, replace(manifest, clips=tuple(clips)))
    return om.evaluate(data, om.layered(["linear"], data, "each"), "levels")


def test_of_ordered_levels_the_best_is_named_by_ranks_beside_its_chance(run_of_levels):
    names = models_of_layers(run_of_levels)["linear"]
    best = best_layer(run_of_levels.predictions, "levels>levels", "linear", names)
    metrics = run_of_levels.metrics
    spearman = metrics[metrics["metric"] == "spearman"].set_index("model")
    assert (best.metric, best.layer) == ("spearman", str(BEST))
    assert best.value == pytest.approx(spearman.loc[f"linear:{BEST}", "movie_mean"])
    assert 0 < best.chance < best.high < best.value < 1
    (line,) = [line for line in om.run_report(run_of_levels).answers if "by chance" in line]
    assert f"{best.chance:.3f}" in line


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
        chance = 0.8 if clip.level == "S" else 0.2
        concepts = [concept for concept in ("Body", "Clothing") if rng.random() < chance]
        clips.append(replace(clip, concepts=tuple(concepts)))
    data = om.load_layers(store, replace(manifest, clips=tuple(clips)))
    run = om.evaluate(data, om.layered([name], data, "chosen"), "en_s")
    (path,) = om.save_models(run, data, [name], tmp_path).values()
    model = om.load_model(path)
    assert model.card.backbone in {"net.2", "net.3", "net.4"}
    assert model.card.backbone == f"net.{model.card.provenance['layer']}"
    table = run.predictions.table
    held_out_scores = table[table["model"] == name].set_index("clip_id")["score"]
    logits = om.predict(model, [store]).table.set_index("clip_id")["logit"]
    assert np.corrcoef(held_out_scores, logits[held_out_scores.index])[0, 1] > 0.6


def test_a_bank_of_concepts_is_of_one_layer(data, run_of_chosen, tmp_path):
    with pytest.raises(ModelError):
        om.save_models(run_of_chosen, data, ["bank"], tmp_path)


class Answer(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def evaluate(tmp_path, capsys):
    """Call `obygaze evaluate` on four films of a network of three layers, of which the second knows."""
    manifest, store = planted_store(tmp_path, n_films=4, n_clips=12, n_layers=3, best=2, auc=0.98)
    table = tmp_path / "films.csv"
    write_manifest(manifest, table)

    def call(*words):
        with pytest.raises(SystemExit) as end:
            main(["evaluate", str(table), str(store.path), "--task", "en_s", *words])
        return Answer(end.value.code, *capsys.readouterr())

    return call


def test_the_command_evaluates_one_layer(evaluate):
    answer = evaluate("--layer", "2", "--model", "linear", "--json")
    assert answer.code == 0
    assert json.loads(answer.out)["record"]["backbone"] == "net.2"


def test_the_command_evaluates_each_layer(evaluate, tmp_path):
    page = tmp_path / "page.html"
    answer = evaluate("--layer", "each", "--html", str(page))
    assert answer.code == 0
    assert "by chance" in answer.out
    assert "data:image/svg+xml" in page.read_text()


def test_a_kept_report_has_the_figures_that_it_links_and_is_replaced_with_them(evaluate, tmp_path):
    run = tmp_path / "run"
    for words in ([], ["--force"]):
        assert evaluate("--layer", "each", "--model", "linear", "--out", str(run), *words).code == 0
        linked = re.findall(r"\]\(([^)]*layers-[^)]*)\)", (run / "report.md").read_text())
        assert linked
        assert [name for name in linked if not (run / name).is_file()] == []


def test_the_command_chooses_a_layer_and_keeps_its_model(evaluate, tmp_path):
    answer = evaluate("--layer", "chosen", "--save", "linear", "--out", str(tmp_path / "run"))
    assert answer.code == 0, answer.err
    assert (tmp_path / "run" / "linear.model").is_file()
    assert "layer 2" in (tmp_path / "run" / "selection.csv").read_text()


@pytest.mark.parametrize(("layers", "saved"), [("chosen", "bank"), ("each", "linear")])
def test_the_command_refuses_to_keep_what_is_not_of_one_layer(evaluate, tmp_path, layers, saved):
    answer = evaluate("--layer", layers, "--save", saved, "--out", str(tmp_path / "run"))
    assert answer.code == 2
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "words", [["--layer", "9"], ["--layer", "first"], ["--layer", "each", "--reduce", "mean"]], ids=" ".join
)
def test_the_command_refuses_layers_that_are_not_there(evaluate, words):
    answer = evaluate(*words)
    assert answer.code == 2
    assert "Traceback" not in answer.err
