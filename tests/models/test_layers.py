"""Which layer knows: each is asked, beside what the best of many reaches by chance, or inner folds choose."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import obygaze_models as om
from obygaze_features import write_manifest
from obygaze_models.errors import DatasetError, ModelError
from obygaze_models.evaluation.best_layer import best_layer
from obygaze_models.evaluation.predictions import COLUMNS, Predictions
from obygaze_models.protocol import HeldOut
from obygaze_models.report.run_answers import models_of_layers
from tests.command import obygaze
from tests.planted_layers import planted_store


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A manifest and a store of six films; of four layers, layer 3 knows the level, 2 and 4 half as well."""
    return planted_store(tmp_path_factory.mktemp("layers"), n_films=6, n_layers=4, best=3)


@pytest.fixture(scope="module")
def data(corpus):
    """The four layers of the planted network as one dataset."""
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


def test_layers_stand_side_by_side_in_the_order_of_the_network(corpus, data):
    """The columns of a layer are those that the layer has when it is loaded alone, as `net.3`."""
    manifest, store = corpus

    assert data.backbone == "net"
    assert [layer.name for layer in data.modalities] == ["1", "2", "3", "4"]
    layer_3 = data.modalities[2]
    alone = om.load_dataset(store, manifest, backbone="net.3")
    assert np.array_equal(data.X[:, layer_3.start : layer_3.stop], alone.X)
    assert data.clip_ids.tolist() == alone.clip_ids.tolist()


def test_layers_of_a_network_that_the_store_does_not_have_are_refused(corpus):
    """The store has layers of the network `net` alone. One of them, net.3, has no layers of its own."""
    manifest, store = corpus

    for without_layers in ("other", "net.3"):
        with pytest.raises(DatasetError, match=f"no layers of {without_layers}: .* STORE:net$"):
            om.load_layers(store, manifest, backbone=without_layers)


def test_models_of_layers_of_a_dataset_without_several_layers_are_refused(corpus):
    """The dataset is of layer 3 of the network `net`."""
    manifest, store = corpus
    data_of_layer_3 = om.load_dataset(store, manifest, backbone="net.3")

    with pytest.raises(ModelError):
        om.layered(["linear"], data_of_layer_3, "each")


def test_a_model_that_reads_frames_is_refused_for_layers(data):
    """Attention sums frames, and layers have one vector a clip."""
    with pytest.raises(ModelError):
        om.layered(["attention"], data, "each")


@pytest.mark.long
def test_each_layer_has_the_numbers_of_a_run_of_it_alone(corpus, run_of_each):
    """In the run of each layer, the linear model of layer 3 is called linear:3."""
    manifest, store = corpus
    data_of_layer_3 = om.load_dataset(store, manifest, backbone="net.3")

    run_of_layer_3 = om.evaluate(data_of_layer_3, ["linear"], "en_s")

    auc_alone = auc_by_model(run_of_layer_3)["linear"]
    assert auc_by_model(run_of_each)["linear:3"] == pytest.approx(auc_alone, abs=1e-9)


@pytest.mark.long
def test_the_planted_layer_is_best_and_better_than_the_best_by_chance(run_of_each):
    """The level is planted in layer 3. The best of four layers is above 0.5 by chance too.

    Chance is the best layer after labels were exchanged within films.
    """
    model_of_layer = models_of_layers(run_of_each)["linear"]

    best = best_layer(run_of_each.predictions, "en_s>en_s", "linear", model_of_layer)

    assert best.layer == "3"
    assert best.value == pytest.approx(auc_by_model(run_of_each)["linear:3"])
    percentile_95_by_chance = best.high
    assert 0.5 < best.chance < percentile_95_by_chance < best.value
    assert best.p <= 0.001


@pytest.mark.long
def test_the_report_states_the_best_layer_beside_the_best_by_chance(run_of_each):
    """A linear model was evaluated on each of four layers.

    `best.value` is the AUC of the best, and `best.chance` that of the best where labels say nothing.
    """
    model_of_layer = models_of_layers(run_of_each)["linear"]
    best = best_layer(run_of_each.predictions, "en_s>en_s", "linear", model_of_layer)

    (answer,) = om.run_report(run_of_each).answers

    assert f"{best.chance:.3f}" in answer
    assert f"{best.value:.3f}" in answer


def test_where_every_film_has_one_level_the_answer_is_that_no_layer_can_be_best(run_of_each):
    """Layers are ranked by what they tell apart within a film, and here there is nothing.

    All clips of film0, film2 and film4 are labelled 0, those of the other films 1.
    """
    table = run_of_each.predictions.table
    number_of_film = table["movie"].str[-1].astype(int)
    one_label_a_film = table.assign(label=number_of_film % 2)
    run = replace(run_of_each, predictions=Predictions(one_label_a_film, n_classes=2))

    (answer,) = om.run_report(run).answers

    assert answer.startswith("linear: no movie")


@pytest.mark.long
def test_for_each_film_a_layer_that_knows_the_level_is_chosen_by_inner_folds(run_of_chosen):
    """Of four layers, layer 3 knows the level, layers 2 and 4 half as well, and layer 1 nothing of it.

    For each of six films, all four layers must have been candidates, and one must have been chosen by the
    other films: 2, 3 or 4, as inner folds are small. The report has a note on the layers.
    """
    table = run_of_chosen.selection[run_of_chosen.selection["model"] == "linear"]
    assert table.groupby("movie")["candidate"].nunique().eq(4).all()

    chosen = table[table["chosen"] == 1]

    assert len(chosen) == 6
    assert chosen["movie"].nunique() == 6
    assert chosen["candidate"].isin(["layer 2", "layer 3", "layer 4"]).all()
    assert any("layer" in note for note in om.run_report(run_of_chosen).notes)


@pytest.mark.long
def test_a_chosen_layer_is_nearly_as_good_as_the_best_of_all(run_of_chosen, run_of_each):
    """The best of all is chosen with the labels of the tested films; inner folds do not have these.

    They may so choose a layer that is a little worse, by .05 of AUC at most.
    """
    best_of_each = max(auc_by_model(run_of_each).values())

    assert auc_by_model(run_of_chosen)["linear"] >= best_of_each - 0.05


@pytest.mark.nightly
@pytest.mark.long
def test_the_chosen_layer_does_not_depend_on_the_held_out_film(data, run_of_chosen):
    """The features of film0 are changed.

    The losses by which its layer is chosen stay the same; those for film1, which learns from film0, change.
    """
    changed_X = data.X.copy()
    changed_X[data.movies == "film0"] *= -3
    changed_data = replace(data, X=changed_X)

    run_of_changed = om.evaluate(changed_data, om.layered(["linear"], changed_data, "chosen"), "en_s")

    def inner_losses(run, film):
        table = run.selection[(run.selection["model"] == "linear") & (run.selection["movie"] == film)]
        return table["inner_loss"].tolist()

    assert inner_losses(run_of_changed, "film0") == inner_losses(run_of_chosen, "film0")
    assert inner_losses(run_of_changed, "film1") != inner_losses(run_of_chosen, "film1")


def test_ordered_pairs_count_1_reversed_ones_0_and_ties_a_half():
    """A pair is a positive and a negative clip of one film, ordered if the positive one scores higher."""
    movies = np.array(["ordered", "ordered", "reversed", "reversed", "tie", "tie"])
    labels = np.array([1, 0, 1, 0, 1, 0])
    scores = np.array([2.0, 1.0, -5.0, -4.0, 0.0, 0.0])

    share = HeldOut(scores, labels, movies).share_of_ordered_pairs()

    assert share == pytest.approx((1 + 0 + 0.5) / 3)


def test_where_no_film_has_both_labels_the_share_of_ordered_pairs_is_a_half():
    """A pair is a positive and a negative clip of one film. Here there is none: a half is chance."""
    movies = np.array(["first", "first", "second", "second"])
    labels = np.array([1, 1, 1, 1])
    scores = np.array([2.0, 1.0, -5.0, -4.0])

    assert HeldOut(scores, labels, movies).share_of_ordered_pairs() == pytest.approx(0.5)


@pytest.mark.long
def test_a_saved_model_of_a_chosen_layer_reads_that_layer_alone(corpus, data, run_of_chosen, tmp_path):
    """The store has four layers of a network `net`. A linear model that chooses its layer is saved.

    It is trained on all films, and chooses layer 3, which knows the level best. Its card must be that of a
    model of the features `net.3`, and of no further modality, and it must score all clips of the store.
    """
    _manifest, store = corpus
    (path,) = om.save_models(run_of_chosen, data, ["linear"], tmp_path).values()

    model = om.load_model(path)

    assert model.card.backbone == "net.3"
    assert model.card.provenance["layer"] == "3"
    has_several_modalities = bool(model.card.modalities)
    assert not has_several_modalities
    assert len(om.predict(model, [store]).table) == len(data)


@pytest.mark.long
def test_neither_a_model_of_each_layer_nor_a_bank_of_chosen_layers_is_saved(
    data, run_of_each, run_of_chosen, tmp_path
):
    """A run of one model for each of four layers compares them: "linear:3", that of layer 3, is not saved.

    In a run whose models choose their layer, such a model can be saved. A bank of CAVs ("bank") chooses no
    layer, and cannot.
    """
    with pytest.raises(ModelError):
        om.save_models(run_of_each, data, ["linear:3"], tmp_path)
    with pytest.raises(ModelError):
        om.save_models(run_of_chosen, data, ["bank"], tmp_path)


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
    """In 20 corpora, five layers know nothing of two labels, or of four ordered levels.

    Where nothing is planted, p is uniform: 5 % of corpora have p below 0.05, and its mean is 0.5. Five
    standard errors of the share are allowed.
    """
    model_of_layer = {str(layer): f"linear:{layer}" for layer in range(5)}
    n_corpora = 20
    p = np.empty(n_corpora)
    best_values = np.empty(n_corpora)
    values_by_chance = np.empty(n_corpora)

    for seed in range(n_corpora):
        noise = scores_of_noise(np.random.default_rng(seed), n_classes=n_classes)
        best = best_layer(noise, "t", "linear", model_of_layer, seed=seed)
        p[seed] = best.p
        best_values[seed] = best.value
        values_by_chance[seed] = best.chance

    standard_error = np.sqrt(0.05 * 0.95 / n_corpora)  # of a binomial share
    assert (p <= 0.05).mean() <= 0.05 + 5 * standard_error
    assert best_values.mean() == pytest.approx(values_by_chance.mean(), abs=0.03)
    assert p.mean() == pytest.approx(0.5, abs=0.15)


@pytest.fixture(scope="module")
def run_of_levels(tmp_path_factory):
    """A run of layers of five films, labelled with three ordered levels; layer 3 knows the highest."""
    folder = tmp_path_factory.mktemp("levels")
    manifest, store = planted_store(folder, n_films=5, n_clips=18, n_layers=4, best=3, auc=0.9)
    clips = []
    for number, clip in enumerate(manifest.clips):
        level = "HN" if clip.level == "EN" and number % 3 == 0 else clip.level
        clips.append(replace(clip, level=level))
    data = om.load_layers(store, replace(manifest, clips=tuple(clips)))
    return om.evaluate(data, om.layered(["linear"], data, "each"), "levels")


@pytest.mark.long
def test_layers_are_compared_by_rank_correlation_for_ordered_levels(run_of_levels):
    """Clips have three ordered levels, of which layer 3 knows the highest.

    The best layer is that of the highest Spearman correlation, the mean over films.
    """
    model_of_layer = models_of_layers(run_of_levels)["linear"]

    best = best_layer(run_of_levels.predictions, "levels>levels", "linear", model_of_layer)

    assert best.metric == "spearman"
    assert best.layer == "3"
    metrics = run_of_levels.metrics
    spearman = metrics[metrics["metric"] == "spearman"].set_index("model")["movie_mean"]
    assert best.value == pytest.approx(spearman["linear:3"])
    percentile_95_by_chance = best.high
    assert 0 < best.chance < percentile_95_by_chance < best.value < 1
    (answer,) = [line for line in om.run_report(run_of_levels).answers if "by chance" in line]
    assert f"{best.chance:.3f}" in answer


def test_a_layer_whose_scores_are_all_equal_leaves_the_best_layer_defined():
    """Such scores have no rank correlation. Layer 1 gives each clip the score 1, layer 2 gives noise."""
    noise = scores_of_noise(np.random.default_rng(0), n_classes=3)
    is_layer_1 = noise.table["model"] == "linear:1"
    scores = np.where(is_layer_1, 1.0, noise.table["score"])
    predictions = Predictions(noise.table.assign(score=scores), n_classes=3)

    best = best_layer(predictions, "t", "linear", {"1": "linear:1", "2": "linear:2"})

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
    """Layers 2 to 4 know the level. The saved model ranks clips much as the models without their film did."""
    manifest, store = corpus
    data = om.load_layers(store, with_planted_concepts(manifest))
    run = om.evaluate(data, om.layered([name], data, "chosen"), "en_s")

    (path,) = om.save_models(run, data, [name], tmp_path).values()
    model = om.load_model(path)

    assert model.card.backbone in {"net.2", "net.3", "net.4"}
    assert model.card.backbone == f"net.{model.card.provenance['layer']}"
    table = run.predictions.table
    held_out_scores = table[table["model"] == name].set_index("clip_id")["score"]
    scores = om.predict(model, [store]).table.set_index("clip_id")["logit"]
    correlation = np.corrcoef(held_out_scores, scores[held_out_scores.index])[0, 1]
    assert correlation > 0.6


@pytest.fixture
def evaluate_command(tmp_path):
    """Call `obygaze evaluate` on four films of a network of three layers, of which the second knows."""
    manifest, store = planted_store(tmp_path, n_films=4, n_clips=12, n_layers=3, best=2, auc=0.98)
    table = tmp_path / "films.csv"
    write_manifest(manifest, table)

    def call(*words):
        """Return the exit code."""
        return obygaze("evaluate", table, store.path, "--task", "en_s", *words)

    return call


@pytest.mark.long
def test_the_command_evaluates_one_layer(evaluate_command, capsys):
    """The store has three layers of the network `net`."""
    exit_code = evaluate_command("--layer", "2", "--model", "linear", "--json")

    assert exit_code == 0
    assert json.loads(capsys.readouterr().out)["record"]["backbone"] == "net.2"


@pytest.mark.long
def test_the_command_evaluates_each_layer_and_draws_all_on_the_page(evaluate_command, tmp_path, capsys):
    """The figure stands in the page itself, as an SVG; the report names what the best layer has by chance."""
    page = tmp_path / "page.html"

    exit_code = evaluate_command("--layer", "each", "--model", "linear", "--html", page)

    assert exit_code == 0
    assert "by chance" in capsys.readouterr().out
    assert "data:image/svg+xml" in page.read_text()


@pytest.mark.long
def test_a_report_is_replaced_together_with_the_figures_that_it_links(evaluate_command, tmp_path):
    """The command runs twice into one folder; before the second run, figures are overwritten by a text."""
    run = tmp_path / "run"
    options = ["--layer", "each", "--model", "linear", "--out", run]
    assert evaluate_command(*options) == 0
    links_of_figures = re.findall(r"\]\(([^)]*layers-[^)]*)\)", (run / "report.md").read_text())
    assert links_of_figures
    for link in links_of_figures:
        assert (run / link).is_file()
        (run / link).write_text("an old figure")

    assert evaluate_command(*options, "--force") == 0

    for link in links_of_figures:
        assert (run / link).read_bytes() != b"an old figure"


@pytest.mark.long
def test_the_command_chooses_a_layer_and_keeps_its_model(evaluate_command, tmp_path):
    """The level of a clip was planted in the second of three layers.

    So `--layer chosen` chooses layer 2, which the table of choices says. `--save` keeps the model that reads
    this layer.
    """
    run = tmp_path / "run"

    exit_code = evaluate_command("--layer", "chosen", "--save", "linear", "--out", run)

    assert exit_code == 0
    assert "layer 2" in (run / "selection.csv").read_text()
    assert (run / "linear.model").is_file()


@pytest.mark.parametrize(
    "options",
    [
        ["--layer", "9"],
        ["--layer", "first"],
        ["--layer", "each", "--reduce", "mean"],
        ["--layer", "chosen", "--save", "bank"],
        ["--layer", "each", "--save", "linear"],
    ],
    ids=[
        "a layer that the network lacks",
        "a word that names no layer",
        "reduced tokens of layers",
        "a bank, for which no layer is chosen, to be saved",
        "a model of each of several layers to be saved",
    ],
)
def test_the_command_refuses_layers_that_cannot_be_evaluated(evaluate_command, tmp_path, options):
    """Exit code 2 is for wrong usage. The network has layers 1 to 3."""
    run = tmp_path / "run"

    exit_code = evaluate_command(*options, "--out", run)

    assert exit_code == 2
    assert not run.exists()
