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
from obygaze_models.protocol import HeldOut
from obygaze_models.report.run_answers import models_of_layers
from tests.planted_layers import planted_store

N_FILMS, N_LAYERS, BEST_LAYER = 8, 6, 3


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A manifest and a store of eight films; of six layers, layer 3 knows the level, 2 and 4 half as well."""
    return planted_store(tmp_path_factory.mktemp("layers"), n_layers=N_LAYERS, best=BEST_LAYER)


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


def auc_by_model(run):
    """Return the mean AUC over films of each model."""
    rows = run.metrics[run.metrics["metric"] == "auc"]
    return dict(zip(rows["model"], rows["movie_mean"], strict=True))


def test_layers_stand_side_by_side_in_the_order_of_the_network(data):
    assert [layer.name for layer in data.modalities] == ["1", "2", "3", "4", "5", "6"]
    assert data.backbone == "net"


def test_the_columns_of_a_layer_are_the_features_of_this_layer_alone(corpus, data):
    manifest, store = corpus
    (layer_3,) = [layer for layer in data.modalities if layer.name == "3"]
    alone = om.load_dataset(store, manifest, backbone="net.3")
    assert np.array_equal(data.X[:, layer_3.start : layer_3.stop], alone.X)
    assert data.clip_ids.tolist() == alone.clip_ids.tolist()


def test_layers_of_a_network_that_the_store_lacks_are_refused(corpus):
    manifest, store = corpus
    with pytest.raises(DatasetError):
        om.load_layers(store, manifest, backbone="other")


def test_a_model_of_each_layer_needs_a_dataset_of_layers(corpus):
    manifest, store = corpus
    of_one_layer = om.load_dataset(store, manifest, backbone="net.3")
    with pytest.raises(ModelError):
        om.layered(["linear"], of_one_layer, "each")


def test_a_model_of_frames_is_not_evaluated_on_layers(data):
    with pytest.raises(ModelError):
        om.layered(["attention"], data, "each")


@pytest.mark.long
def test_each_layer_has_the_numbers_of_a_run_of_it_alone(corpus, run_of_each):
    manifest, store = corpus
    run_of_layer = om.evaluate(om.load_dataset(store, manifest, backbone="net.3"), ["linear"], "en_s")
    assert auc_by_model(run_of_each)["linear:3"] == pytest.approx(
        auc_by_model(run_of_layer)["linear"], abs=1e-9
    )


@pytest.fixture(scope="module")
def best_of_each(run_of_each):
    """The best of the layers, compared with the best layers of labels that are exchanged within films."""
    names = models_of_layers(run_of_each)["linear"]
    return best_layer(run_of_each.predictions, "en_s>en_s", "linear", names)


def test_the_planted_layer_is_best_and_better_than_the_best_by_chance(run_of_each, best_of_each):
    """The best of six layers is above 0.5 by chance too.

    Chance is the best layer after labels were exchanged within films.
    """
    assert best_of_each.layer == str(BEST_LAYER)
    assert best_of_each.value == pytest.approx(auc_by_model(run_of_each)[f"linear:{BEST_LAYER}"])
    percentile_95_by_chance = best_of_each.high
    assert 0.5 < best_of_each.chance < percentile_95_by_chance < best_of_each.value
    assert best_of_each.p <= 0.001


def test_a_report_on_each_layer_answers_with_the_best_one_and_the_best_by_chance(run_of_each, best_of_each):
    (answer,) = om.run_report(run_of_each).answers
    assert f"{best_of_each.chance:.3f}" in answer
    assert f"{best_of_each.value:.3f}" in answer


def test_where_every_film_has_one_level_the_answer_is_that_no_layer_can_be_best(run_of_each):
    """Layers are ranked by what they tell apart within a film, and here there is nothing."""
    table = run_of_each.predictions.table
    one_label_a_film = table.assign(label=(table["movie"].str[-1].astype(int) % 2))
    run = replace(run_of_each, predictions=Predictions(one_label_a_film, n_classes=2))
    (answer,) = om.run_report(run).answers
    assert answer.startswith("linear: no movie")


@pytest.mark.long
def test_for_each_film_a_layer_that_knows_the_level_is_chosen_by_inner_folds(run_of_chosen):
    table = run_of_chosen.selection[run_of_chosen.selection["model"] == "linear"]
    assert table.groupby("movie")["candidate"].nunique().eq(N_LAYERS).all()
    chosen = table[table["chosen"] == 1]
    assert chosen["movie"].nunique() == len(chosen) == N_FILMS
    assert chosen["candidate"].isin(["layer 2", "layer 3", "layer 4"]).all()
    assert any("layer" in note for note in om.run_report(run_of_chosen).notes)


def test_a_model_of_chosen_layers_is_nearly_as_good_as_the_best_layer(run_of_chosen, run_of_each):
    best = max(auc_by_model(run_of_each).values())
    assert auc_by_model(run_of_chosen)["linear"] >= best - 0.05


@pytest.mark.nightly
@pytest.mark.long
def test_the_chosen_layer_does_not_depend_on_the_held_out_film(data, run_of_chosen):
    """Film 0 is changed.

    The losses by which its layer is chosen stay the same; those for film 1, which learns from film 0, change.
    """
    changed = data.X.copy()
    changed[data.movies == "film0"] *= -3
    changed_data = replace(data, X=changed)
    run_of_changed = om.evaluate(changed_data, om.layered(["linear"], changed_data, "chosen"), "en_s")

    def inner_losses(run, film):
        table = run.selection[(run.selection["model"] == "linear") & (run.selection["movie"] == film)]
        return table["inner_loss"].tolist()

    assert inner_losses(run_of_changed, "film0") == inner_losses(run_of_chosen, "film0")
    assert inner_losses(run_of_changed, "film1") != inner_losses(run_of_chosen, "film1")


def test_ordered_pairs_count_1_reversed_ones_0_and_ties_a_half():
    """A pair is a positive and a negative clip of one film."""
    y = np.array([1, 0, 1, 0, 1, 0])
    movies = np.array(["ordered", "ordered", "reversed", "reversed", "tie", "tie"])
    scores = np.array([2.0, 1.0, -5.0, -4.0, 0.0, 0.0])
    assert HeldOut(scores, y, movies).share_of_ordered_pairs() == pytest.approx((1 + 0 + 0.5) / 3)


def test_without_a_pair_of_unlike_labels_the_share_of_ordered_pairs_is_one_half():
    all_positive = np.ones(2, int)
    held_out = HeldOut(np.array([2.0, 1.0]), all_positive, np.array(["a", "a"]))
    assert held_out.share_of_ordered_pairs() == 0.5


def test_a_saved_model_of_a_chosen_layer_reads_that_layer_alone(corpus, data, run_of_chosen, tmp_path):
    _, store = corpus
    (path,) = om.save_models(run_of_chosen, data, ["linear"], tmp_path).values()
    model = om.load_model(path)

    assert model.card.backbone == f"net.{BEST_LAYER}"
    assert model.card.provenance["layer"] == str(BEST_LAYER)
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


@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_best_of_noise_layers_is_as_good_as_the_best_by_chance(n_classes):
    """Where nothing is planted, p is uniform: 5% of corpora have p below 0.05, and its mean is 0.5."""
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
    standard_error = np.sqrt(0.05 * 0.95 / n_corpora)  # of a binomial share

    assert (p <= 0.05).mean() <= 0.05 + 5 * standard_error
    assert values.mean() == pytest.approx(chances.mean(), abs=0.03)
    assert p.mean() == pytest.approx(0.5, abs=0.15)


@pytest.fixture(scope="module")
def run_of_levels(tmp_path_factory):
    """A run of layers of five films, labelled with three ordered levels; layer 3 knows the highest."""
    folder = tmp_path_factory.mktemp("levels")
    manifest, store = planted_store(folder, n_films=5, n_clips=18, n_layers=4, best=BEST_LAYER, auc=0.9)
    clips = []
    for number, clip in enumerate(manifest.clips):
        level = "HN" if clip.level == "EN" and number % 3 == 0 else clip.level
        clips.append(replace(clip, level=level))
    data = om.load_layers(store, replace(manifest, clips=tuple(clips)))
    return om.evaluate(data, om.layered(["linear"], data, "each"), "levels")


@pytest.mark.long
def test_layers_are_compared_by_rank_correlation_for_ordered_levels(run_of_levels):
    names = models_of_layers(run_of_levels)["linear"]
    best = best_layer(run_of_levels.predictions, "levels>levels", "linear", names)
    metrics = run_of_levels.metrics
    spearman = metrics[metrics["metric"] == "spearman"].set_index("model")
    assert (best.metric, best.layer) == ("spearman", str(BEST_LAYER))
    assert best.value == pytest.approx(spearman.loc[f"linear:{BEST_LAYER}", "movie_mean"])
    percentile_95_by_chance = best.high
    assert 0 < best.chance < percentile_95_by_chance < best.value < 1
    (line,) = [line for line in om.run_report(run_of_levels).answers if "by chance" in line]

    assert f"{best.chance:.3f}" in line


def test_a_layer_whose_scores_are_all_equal_leaves_the_best_layer_defined():
    noise = scores_of_noise(np.random.default_rng(0), n_classes=3)
    is_layer_1 = noise.table["model"] == "linear:1"
    table = noise.table.assign(score=np.where(is_layer_1, 1.0, noise.table["score"]))
    best = best_layer(Predictions(table, n_classes=3), "t", "linear", {"1": "linear:1", "2": "linear:2"})
    assert np.isfinite([best.value, best.chance, best.p]).all()


def with_planted_concepts(manifest):
    """Give Body and Clothing to most S clips and to few others."""
    rng = np.random.default_rng(0)
    clips = []
    for clip in manifest.clips:
        probability = 0.8 if clip.level == "S" else 0.2
        concepts = [concept for concept in ("Body", "Clothing") if rng.random() < probability]
        clips.append(replace(clip, concepts=tuple(concepts)))
    return replace(manifest, clips=tuple(clips))


@pytest.mark.nightly
@pytest.mark.long
@pytest.mark.parametrize("name", ["cav", "mlp", "pcbm_lr"])
def test_any_model_of_vectors_is_saved_with_the_layer_that_was_chosen(corpus, tmp_path, name):
    manifest, store = corpus
    data = om.load_layers(store, with_planted_concepts(manifest))
    run = om.evaluate(data, om.layered([name], data, "chosen"), "en_s")
    (path,) = om.save_models(run, data, [name], tmp_path).values()
    model = om.load_model(path)
    assert model.card.backbone in {"net.2", "net.3", "net.4"}  # the layers that know the level
    assert model.card.backbone == f"net.{model.card.provenance['layer']}"
    table = run.predictions.table
    held_out_scores = table[table["model"] == name].set_index("clip_id")["score"]
    logits = om.predict(model, [store]).table.set_index("clip_id")["logit"]

    assert np.corrcoef(held_out_scores, logits[held_out_scores.index])[0, 1] > 0.6


def test_a_bank_of_concepts_is_not_saved_of_a_run_that_chooses_layers(data, run_of_chosen, tmp_path):
    with pytest.raises(ModelError):
        om.save_models(run_of_chosen, data, ["bank"], tmp_path)


class Ending(NamedTuple):
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
        return Ending(end.value.code, *capsys.readouterr())

    return call


@pytest.mark.long
def test_the_command_evaluates_one_layer(evaluate):
    answer = evaluate("--layer", "2", "--model", "linear", "--json")
    assert answer.code == 0
    assert json.loads(answer.out)["record"]["backbone"] == "net.2"


@pytest.mark.long
def test_the_command_prints_the_best_of_each_layer_and_draws_all_on_the_page(evaluate, tmp_path):
    page = tmp_path / "page.html"
    answer = evaluate("--layer", "each", "--html", str(page))
    assert answer.code == 0
    assert "by chance" in answer.out
    assert "data:image/svg+xml" in page.read_text()


def linked_figures(report):
    """List the figures of layers that a report in Markdown links."""
    return re.findall(r"\]\(([^)]*layers-[^)]*)\)", report.read_text())


@pytest.mark.long
def test_a_report_is_replaced_together_with_the_figures_that_it_links(evaluate, tmp_path):
    run = tmp_path / "run"
    options = ["--layer", "each", "--model", "linear", "--out", str(run)]
    assert evaluate(*options).code == 0
    figures = [run / name for name in linked_figures(run / "report.md")]
    assert figures
    for figure in figures:
        assert figure.is_file()
        figure.write_text("an old figure")

    assert evaluate(*options, "--force").code == 0
    assert all(figure.read_bytes() != b"an old figure" for figure in figures)


@pytest.mark.long
def test_the_command_chooses_a_layer_and_keeps_its_model(evaluate, tmp_path):
    answer = evaluate("--layer", "chosen", "--save", "linear", "--out", str(tmp_path / "run"))
    assert answer.code == 0, answer.err
    assert (tmp_path / "run" / "linear.model").is_file()
    assert "layer 2" in (tmp_path / "run" / "selection.csv").read_text()


@pytest.mark.parametrize(
    ("layers", "saved"),
    [("chosen", "bank"), ("each", "linear")],
    ids=["a bank, for which no layer is chosen", "a model of each of several layers"],
)
def test_the_command_refuses_to_save_a_model_that_is_not_of_one_layer(evaluate, tmp_path, layers, saved):
    answer = evaluate("--layer", layers, "--save", saved, "--out", str(tmp_path / "run"))
    assert answer.code == 2
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "options",
    [["--layer", "9"], ["--layer", "first"], ["--layer", "each", "--reduce", "mean"]],
    ids=["a layer that the network lacks", "a word that names no layer", "reduced tokens of layers"],
)
def test_the_command_refuses_layers_that_cannot_be_evaluated(evaluate, options):
    answer = evaluate(*options)
    assert answer.code == 2
    assert "Traceback" not in answer.err
