"""Models that are kept, applied to films that they have not seen, and asked why."""

import csv
import io
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import replace as changed_card

from obygaze_features.errors import OutputError, StoreError
from obygaze_features.manifest import PLANTED, load_codebook
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays
from obygaze_models.commands.predict_remarks import remarks, written_remark
from obygaze_models.concepts.head_scores import head_scores
from obygaze_models.dataset import load_dataset
from obygaze_models.errors import ConceptError, ModelError
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.models.registry import BUILTIN_MODELS
from obygaze_models.persistence.model_file import read_model
from obygaze_models.prediction.calibration import calibration_error
from obygaze_models.prediction.explain import describe, explain, parse_settings
from obygaze_models.prediction.final import save_models, train_final
from obygaze_models.prediction.predict import COLUMNS, document, predict
from obygaze_models.prediction.saved_model import load_model, save_model
from tests.planted_models import MODELS, corpus

MODELS_THAT_DECIDE = (*MODELS, "cav")


@pytest.fixture(scope="module")
def new_films(tmp_path_factory):
    """60 clips each of g0 and g1, which the models have not seen, and of f0, which they have.

    Of these g1-00 has no features.
    """
    return corpus(tmp_path_factory.mktemp("more"), "more", ("g1", "g0", "f0"), seed=1, per_film=60)


@pytest.fixture(scope="module")
def store_of_alien_film(tmp_path_factory):
    """The store of g8, 30 clips of which one failed; every feature lies 30 deviations away."""
    return corpus(tmp_path_factory.mktemp("alien"), "alien", ("g8",), seed=2, shift=30.0).store


@pytest.mark.long
@pytest.mark.parametrize("name", [*MODELS_THAT_DECIDE, "bank"])
def test_a_model_that_was_loaded_is_saved_again_as_the_same_bytes(trained_models, tmp_path, name):
    """The models are those that decide on a clip's label, and a bank, which has CAVs of concepts alone."""
    path = trained_models.paths[name]

    save_model(load_model(path), tmp_path / "again.model")

    assert (tmp_path / "again.model").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", MODELS)
def test_a_model_loses_nothing_by_being_saved_and_loaded(trained_models, name):
    """The fixture `trained_models` has saved models to files. One is trained here again, on the same clips.

    The loaded model must have the same card, give the same logits, and say of each clip which share of the
    training clips are more usual than it (`out_of_distribution_share`).
    """
    X = trained_models.data.X
    trained = train_final(
        trained_models.data, BUILTIN_MODELS[name], trained_models.run, licence="CC-BY-4.0", citation="us"
    )

    loaded = load_model(trained_models.paths[name])

    assert trained.card.to_json() == loaded.card.to_json()
    np.testing.assert_array_equal(trained.logits(X), loaded.logits(X))
    np.testing.assert_array_equal(trained.out_of_distribution_share(X), loaded.out_of_distribution_share(X))


def test_a_card_keeps_what_a_codebook_says_that_its_construct_and_levels_mean(tmp_path):
    """Two lines are added to a codebook: that it is of violence, and that violent means shown."""
    store, manifest = corpus(tmp_path, "films", ("f0", "f1", "f2"), per_film=30)
    path = tmp_path / "violence.codebook.toml"
    level = 'name = "violent"\n'
    with_meaning = path.read_text("utf-8").replace(level, level + 'means = "shown"\n')
    path.write_text('construct = "violence"\n' + with_meaning, encoding="utf-8")
    data = load_dataset(store, replace(manifest, codebook=load_codebook(path)))

    run = evaluate(data, ["linear"], "calm_violent")
    path_of_model = save_models(run, data, ["linear"], tmp_path / "kept")["linear"]
    model = load_model(path_of_model)

    assert model.card.codebook["construct"] == "violence"
    assert model.card.codebook["means"] == {"violent": "shown"}
    assert len(predict(model, [store]).table)


def planted_truth(clips, model):
    """Return for each judged clip whether it is what a model looks for: a gun for the CAV, else violence."""
    truth = {}
    for clip in clips:
        if model == "cav":
            truth[clip.clip_id] = "Gun" in clip.concepts
        elif clip.level != "unsure":
            truth[clip.clip_id] = clip.level == "violent"
    return truth


def judged_clips_of_unseen_films(table, truth):
    """Rows of films other than f0, which have a probability and of which the truth is known."""
    is_of_unseen_film = table["movie"] != "f0"
    has_probability = table["flags"] != "unlike"
    has_truth = table["clip_id"].isin(truth)
    return table[is_of_unseen_film & has_probability & has_truth]


@pytest.mark.parametrize("name", MODELS_THAT_DECIDE)
def test_most_clips_of_unseen_films_are_called_as_planted_with_calibrated_probabilities(
    trained_models, new_films, name
):
    """Films f0, g0 and g1 have 60 clips each; the models were trained on f0, but not on g0 and g1.

    Of the 120 clips of these two, the 12 that nobody was sure of and the few without a probability don't
    count. Calibrated: of clips with about the same probability, about that share is positive.
    """
    truth = planted_truth(new_films.manifest.clips, name)

    table = predict(load_model(trained_models.paths[name]), [new_films.store], new_films.manifest).table

    unseen = judged_clips_of_unseen_films(table, truth)
    assert len(unseen) > 90
    is_positive = np.array([truth[clip_id] for clip_id in unseen["clip_id"]], dtype=int)
    is_called_positive = unseen["called"].to_numpy(dtype=int)
    assert (is_called_positive == is_positive).mean() > 0.8
    assert calibration_error(is_positive, unseen["p"], n_bins=4) < 0.15


def test_a_table_has_the_columns_of_the_specification_and_those_of_a_bottlenecks_concepts(
    trained_models, new_films
):
    """`COLUMNS` are those of every model. pcbm_lr decides by two concepts, Gun and Dim light."""
    linear = load_model(trained_models.paths["linear"])
    bottleneck = load_model(trained_models.paths["pcbm_lr"])

    of_linear = predict(linear, [new_films.store]).table
    of_bottleneck = predict(bottleneck, [new_films.store]).table

    assert tuple(of_linear.columns) == COLUMNS
    assert tuple(of_bottleneck.columns) == (
        *COLUMNS,
        *("Gun_value", "Gun_p", "Gun_contribution"),
        *("Dim light_value", "Dim light_p", "Dim light_contribution"),
        "base_contribution",
    )


def test_a_table_has_clips_in_the_order_of_movies_and_times_with_bands_flags_and_videos(
    trained_models, new_films
):
    """Of each film there are 60 clips, but one of g1 has no features. The model was trained on f0.

    The video of a clip stands in the manifest; without a manifest it is not known.
    """
    model = load_model(trained_models.paths["linear"])

    table = predict(model, [new_films.store], new_films.manifest).table

    assert table["movie"].tolist() == ["f0"] * 60 + ["g0"] * 60 + ["g1"] * 59
    for _, film in table.groupby("movie"):
        assert film["start_s"].is_monotonic_increasing
    with_p = table.dropna(subset="p")
    assert (with_p["p_low"] <= with_p["p"]).all()
    assert (with_p["p"] <= with_p["p_high"]).all()
    is_flagged = table["flags"].str.contains("trained_on")
    assert is_flagged.tolist() == (table["movie"] == "f0").tolist()
    assert set(table["video"]) == {"f0.mp4", "g0.mp4", "g1.mp4"}
    without_manifest = predict(model, [new_films.store]).table
    assert set(without_manifest["video"]) == {""}


@pytest.mark.parametrize("name", ["pcbm_lr", "pcbm_dt"])
def test_the_contributions_in_a_csv_add_up_to_the_logit(trained_models, new_films, name):
    """Of 179 clips, the few that are flagged "unlike" the training clips have no contributions."""
    model = load_model(trained_models.paths[name])

    text = predict(model, [new_films.store]).to_csv()

    rows = csv.DictReader(io.StringIO(text))
    rows_with_contributions = [row for row in rows if "unlike" not in row["flags"]]
    assert len(rows_with_contributions) > 150
    for row in rows_with_contributions:
        contributions = [float(row[column]) for column in row if column.endswith("_contribution")]
        assert sum(contributions) == pytest.approx(float(row["logit"]), abs=1e-9)


def test_a_bank_has_calibrated_probabilities_of_the_planted_concepts_and_no_calls(trained_models, new_films):
    """A bank holds two concepts, and no model of a level: a clip is neither called nor has a logit.

    Of each clip it is known whether Gun and Dim light were planted in it.
    """
    bank = load_model(trained_models.paths["bank"])
    planted_concepts = {clip.clip_id: clip.concepts for clip in new_films.manifest.clips}

    table = predict(bank, [new_films.store]).table.set_index("clip_id")

    for concept in ("Gun", "Dim light"):
        p = table[f"{concept}_p"].dropna()
        is_planted = np.array([concept in planted_concepts[clip_id] for clip_id in p.index])
        assert ((p > 0.5) == is_planted).mean() > 0.85
        assert calibration_error(is_planted, p, n_bins=4) < 0.15
    assert table[["logit", "p", "called"]].isna().all().all()
    assert not [column for column in table.columns if column.endswith("contribution")]


@pytest.mark.parametrize("name", MODELS_THAT_DECIDE)
def test_a_film_unlike_the_training_films_gets_no_probabilities(trained_models, store_of_alien_film, name):
    """Every feature of film g8 is 30 deviations away from the training films, and one is hundreds away.

    Each clip is flagged as unlike more than 99 % of training clips, and columns of probabilities, calls and
    contributions are empty; the logit is kept. It is of moderate size, as features far out are limited.
    """
    model = load_model(trained_models.paths[name])

    table = predict(model, [store_of_alien_film]).table

    assert (table["flags"] == "unlike").all()
    assert table["unlike"].min() > 0.99
    empty_columns = [column for column in table.columns if column.endswith(("_p", "_contribution"))]
    empty_columns += ["called", "p", "p_low", "p_high"]
    assert table[empty_columns].isna().all().all()
    assert table["logit"].abs().max() < 100


@pytest.mark.parametrize("name", MODELS_THAT_DECIDE)
def test_in_json_a_film_without_probabilities_has_null_for_them(trained_models, store_of_alien_film, name):
    """No clip of film g8 has a probability. JSON knows null, and no NaN as a table of pandas does."""
    model = load_model(trained_models.paths[name])
    predictions = predict(model, [store_of_alien_film])

    clips = document(predictions, model, [store_of_alien_film])["clips"]

    assert {clip["p"] for clip in clips} == {None}
    json.dumps(clips, allow_nan=False)  # raises no error


def test_several_stores_are_one_table(trained_models, new_films, store_of_alien_film):
    """One store has 30 clips of a film, the other 60 of each of three; each store's first clip failed."""
    model = load_model(trained_models.paths["linear"])

    predictions = predict(model, [store_of_alien_film, new_films.store])

    n_clips_of_alien_film = 30 - 1
    n_clips_of_new_films = 3 * 60 - 1
    assert len(predictions.table) == n_clips_of_alien_film + n_clips_of_new_films
    assert predictions.table["movie"].is_monotonic_increasing
    assert predictions.excluded == {"failed: the file is empty (0 bytes)": ["g8-00", "g1-00"]}


def test_two_stores_with_the_same_clips_are_refused(trained_models, store_of_alien_film):
    """The message names the first clip that is in both, g8-00."""
    model = load_model(trained_models.paths["linear"])
    the_same_store_twice = [store_of_alien_film, store_of_alien_film]

    with pytest.raises(ModelError, match="g8-00"):
        predict(model, the_same_store_twice)


@pytest.fixture(scope="module")
def predictions_on_new_known_and_alien_films(trained_models, new_films, store_of_alien_film):
    """Predictions of a linear model, trained on the films f0 to f5, on g0, g1, f0 and g8.

    Of g8, 29 clips have features, all far from those of any training clip; one clip failed, as did one of g1.
    """
    return predict(load_model(trained_models.paths["linear"]), [store_of_alien_film, new_films.store])


@pytest.fixture(scope="module")
def remarks_on_new_known_and_alien_films(trained_models, predictions_on_new_known_and_alien_films):
    """Remarks, a line each, on the predictions of a linear model on g0, g1, f0 and g8."""
    return remarks(predictions_on_new_known_and_alien_films, load_model(trained_models.paths["linear"]))


def test_remarks_on_predictions_begin_with_what_films_left_out_showed_of_the_model(
    predictions_on_new_known_and_alien_films, remarks_on_new_known_and_alien_films
):
    """A linear model is applied to the films g0, g1, f0 and g8: how good it is stands above all else."""
    first_line = remarks_on_new_known_and_alien_films[0]

    assert first_line == predictions_on_new_known_and_alien_films.evidence


def test_remarks_count_clips_that_are_not_judged_and_clips_of_training_films(
    predictions_on_new_known_and_alien_films, remarks_on_new_known_and_alien_films
):
    """Clips that are unlike all training clips are not judged. Those of f0 were trained on."""
    predictions = predictions_on_new_known_and_alien_films
    n_unlike = predictions.has("unlike").sum()
    n_judged = len(predictions.table) - n_unlike
    n_of_training_films = predictions.has("trained_on").sum()
    assert n_unlike > 0
    assert n_of_training_films > 0

    _evidence, on_calls, on_training_films, *_ = remarks_on_new_known_and_alien_films

    assert f"of {n_judged} clips called positive, {n_unlike} not judged" in on_calls
    assert on_training_films.startswith(f"{n_of_training_films} clips")


def test_remarks_name_a_film_that_is_far_from_the_training_clips(
    predictions_on_new_known_and_alien_films, remarks_on_new_known_and_alien_films
):
    """Of g8, 29 clips have features, all unlike any training clip. Its remark says how far they are."""
    predictions = predictions_on_new_known_and_alien_films
    is_unlike_clip_of_g8 = predictions.has("unlike") & (predictions.table["movie"] == "g8")

    (remark_on_g8,) = [line for line in remarks_on_new_known_and_alien_films if line.startswith("g8: ")]

    assert f"{is_unlike_clip_of_g8.sum()} of 29" in remark_on_g8
    assert re.search(FAR_FROM_OTHER_FILMS, remark_on_g8)


def test_remarks_end_with_the_clips_that_have_no_features(remarks_on_new_known_and_alien_films):
    """One clip of g8 and one of g1 failed, as their files were empty."""
    last_line = remarks_on_new_known_and_alien_films[-1]

    assert last_line == "excluded 2: failed: the file is empty (0 bytes) (g8-00, ...)"


def some_rows(table, *, n_with_p, n_without_p):
    """The first rows of a table of predictions that have a probability, and the first that have none."""
    with_p = table[table["p"].notna()].head(n_with_p)
    without_p = table[table["p"].isna()].head(n_without_p)
    return pd.concat([with_p, without_p])


@pytest.mark.parametrize(
    ("n_with_p", "n_without_p", "expected"),
    [
        (2, 1, "3 clips in p.csv, 2 with a probability"),
        (2, 0, "2 clips in p.csv, each with a probability"),
        (0, 1, "1 clip in p.csv, none with a probability"),
    ],
)
def test_a_remark_on_a_written_file_counts_clips_and_those_with_a_probability(
    trained_models, new_films, store_of_alien_film, n_with_p, n_without_p, expected
):
    """Predictions are written to a file p.csv, some with a probability and some without.

    Clips of a film unlike the training films, as that of `store_of_alien_film`, have none.
    """
    model = load_model(trained_models.paths["linear"])
    predictions = predict(model, [store_of_alien_film, new_films.store])
    table = some_rows(predictions.table, n_with_p=n_with_p, n_without_p=n_without_p)

    remark = written_remark(replace(predictions, table=table), model, "p.csv")

    assert remark == expected


def test_the_remark_on_a_file_of_a_banks_predictions_says_no_more_than_the_number_of_clips(
    trained_models, new_films
):
    """Of a model that decides, the remark also says how many clips it calls positive. A bank calls none.

    It gives clips the probabilities of concepts, not of a task. Of 180 clips, one has no features.
    """
    bank = load_model(trained_models.paths["bank"])
    predictions = predict(bank, [new_films.store])

    assert written_remark(predictions, bank, "p.csv") == "179 clips in p.csv"


def test_a_line_break_in_a_reason_begins_no_remark(trained_models, store_of_alien_film):
    """Reasons come from stores of others, who could write a remark of their own behind a line break."""
    model = load_model(trained_models.paths["linear"])
    reason = "failed: cut.mkv\nAll is well"
    predictions = predict(model, [store_of_alien_film])
    with_reason = replace(predictions, excluded={reason: ["g8-00", "g1-00"]})

    lines = remarks(with_reason, model)

    assert lines[-1].startswith("excluded 2: failed: cut.mkv")
    assert "All is well" in lines[-1]
    for line in lines:
        assert "\n" not in line
        assert "\r" not in line


def test_remarks_on_one_clip_are_in_the_singular(trained_models, new_films):
    """Of all predictions one row is left, of a film that the model was trained on."""
    model = load_model(trained_models.paths["linear"])
    predictions = predict(model, [new_films.store])
    of_training_film = predictions.table[predictions.has("trained_on")]
    of_one_clip = replace(predictions, table=of_training_film.head(1))

    lines = remarks(of_one_clip, model)

    assert "of 1 clip called positive" in lines[1]
    assert lines[2] == "1 clip is of a film that the model was trained on: its score is no prediction"
    for line in lines:
        assert not re.search(r"(?<!\d)1 (clips|films)", line)


@pytest.mark.parametrize(
    ("provenance", "message"),
    [
        ({"sampling": {"policy": "uniform", "n": 8}}, r"sampling\.n is 8, was 2"),
        ({"weights_sha256": "a" * 64}, "weights_sha256"),
        ({"untrained": True}, "untrained"),
    ],
)
def test_features_extracted_in_another_way_are_refused(trained_models, tmp_path, provenance, message):
    """A store's provenance says how its features were extracted.

    Those that the model was trained on are of two frames a clip, and of networks with trained weights.
    """
    model = load_model(trained_models.paths["linear"])
    other = corpus(tmp_path, "other", ("g9",), **provenance)

    with pytest.raises(ModelError, match=message):
        predict(model, [other.store])


@pytest.mark.parametrize(
    ("backbone", "width", "message"),
    [("descriptors", 9, "9 features"), ("clip", 8, "clip")],
    ids=["another width", "another backbone"],
)
def test_features_of_another_kind_are_refused(trained_models, tmp_path, backbone, width, message):
    """The model was trained on 8 features of the backbone `descriptors`."""
    model = load_model(trained_models.paths["linear"])
    features = np.zeros((2, width), dtype=np.float32)
    movie_of_clip = {"x": "m", "y": "m"}
    store = open_store(seal_arrays(tmp_path / "other", movie_of_clip, {backbone: {"pooled": features}}))

    with pytest.raises(ModelError, match=message):
        predict(model, [store])


# Why, and what if.


@pytest.mark.parametrize("name", ["pcbm_lr", "pcbm_dt"])
def test_an_intervention_sets_a_concept_to_a_quantile_of_the_training_clips(trained_models, new_films, name):
    """A bottleneck scores clips by concept values alone, in its head.

    So the expected score is that of the head where the value of Gun is replaced by hand. The model that was
    loaded and the one that was trained must both give it, for six clips.
    """
    loaded = load_model(trained_models.paths[name])
    trained = train_final(trained_models.data, BUILTIN_MODELS[name], trained_models.run)
    gun = loaded.concepts.index("Gun")
    gun_values_of_training_clips = loaded.estimator.train_values_[:, gun]
    X = new_films.store["descriptors"].pooled()[3:9]

    for quantile in (0.0, 0.05, 0.5, 0.95, 1.0):
        values = loaded.concept_values(X)
        values[:, gun] = np.quantile(gun_values_of_training_clips, quantile)
        expected = head_scores(loaded.estimator.head_, values)
        np.testing.assert_allclose(loaded.intervene(X, {"Gun": quantile}), expected, atol=1e-12)
        np.testing.assert_allclose(trained.intervene(X, {"Gun": quantile}), expected, atol=1e-9)


def test_an_explanation_names_its_task_its_levels_and_the_concepts_near_chance(trained_models, new_films):
    """A concept is near chance if its evaluation does not show it to be better.

    That is so where the interval of its metric over movies begins at chance or below. The task is to tell
    clips of the level violent from calm ones.
    """
    model = load_model(trained_models.paths["pcbm_lr"])

    explanation = explain(model, [new_films.store], clip_id="g0-00", set_to={})

    (decision,) = [line for line in describe(explanation, model).splitlines() if ": called " in line]
    assert decision.startswith(f"{model.card.target['name']}: called ")
    assert ("(violent)" if explanation.decision.called else "(calm)") in decision
    metrics_of = {row["task"]: row for row in model.card.metrics if "movie_chance" in row}
    near_chance = []
    for concept in model.concepts:
        metrics = metrics_of[f"concept:{concept}"]
        if metrics["movie_low"] <= metrics["movie_chance"]:
            near_chance.append(concept)
    assert list(explanation.near_chance) == near_chance


def model_of_labels_by(annotators, trained_models):
    """A model whose card says that these annotators gave the labels of its training clips."""
    model = load_model(trained_models.paths["pcbm_lr"])
    return replace(model, card=changed_card(model.card, labelled_by=annotators))


@pytest.mark.parametrize(
    ("annotators", "sentence"),
    [((PLANTED,), "nobody judged them"), (("AB", PLANTED), "nobody judged those")],
    ids=["all labels planted", "some labels planted"],
)
def test_explanations_remarks_and_json_say_that_nobody_judged_planted_labels(
    trained_models, new_films, annotators, sentence
):
    """The card of a model names the annotators of its training clips.

    The annotator `PLANTED` is a program that makes up labels; AB are the initials of a person.
    """
    model = model_of_labels_by(annotators, trained_models)
    predictions = predict(model, [new_films.store])

    line_in_json = document(predictions, model, [new_films.store])["model"]["labels_line"]
    text = describe(explain(model, [new_films.store], "g0-00", set_to={}), model)

    assert sentence in line_in_json
    assert line_in_json in remarks(predictions, model)
    assert sentence in text


def test_nothing_is_said_of_planted_labels_where_people_judged(trained_models, new_films):
    """The card of a model names AB, the initials of a person, as the annotator of its training clips."""
    model = model_of_labels_by(("AB",), trained_models)
    predictions = predict(model, [new_films.store])

    line_in_json = document(predictions, model, [new_films.store])["model"]["labels_line"]
    text = describe(explain(model, [new_films.store], "g0-00", set_to={}), model)

    assert line_in_json == ""
    assert not [line for line in remarks(predictions, model) if "nobody judged" in line]
    assert "nobody judged" not in text


@pytest.fixture
def calm_clip_explained_with_a_gun(trained_models, new_films, name):
    """The prediction of a clip that a model calls calm, in which it sees no gun; and how it is explained.

    A concept value below 0 is on the side of its hyperplane where the concept is absent. The explanation says
    what the model would decide if the clip had the value of Gun that only 5 % of training clips exceed.
    """
    model = load_model(trained_models.paths[name])
    table = predict(model, [new_films.store]).table
    is_calm_without_gun = (table["called"] == 0) & (table["Gun_value"] < 0)
    prediction = table[is_calm_without_gun].iloc[0]
    return prediction, explain(model, [new_films.store], prediction["clip_id"], {"Gun": 0.95})


@pytest.mark.parametrize("name", ["pcbm_lr", "pcbm_dt"])
def test_a_clip_is_explained_by_the_decision_that_was_predicted(calm_clip_explained_with_a_gun):
    """The explained clip is one that the model calls calm, and in which it sees no gun."""
    prediction, explanation = calm_clip_explained_with_a_gun

    assert explanation.decision.logit == pytest.approx(prediction["logit"], abs=1e-12)
    assert explanation.decision.p == pytest.approx(prediction["p"])


@pytest.mark.parametrize("name", ["pcbm_lr", "pcbm_dt"])
def test_a_model_would_call_a_calm_clip_violent_if_it_had_a_gun(calm_clip_explained_with_a_gun):
    """The models learnt from films in which violent clips have guns.

    Gun is set to its .95 quantile in a clip that is called calm. An explanation also has, for each concept,
    the decisions with little and with much of it (.05 and .95 quantile): for Gun, the latter is the same.
    """
    _prediction, explanation = calm_clip_explained_with_a_gun

    assert explanation.changed.p > explanation.decision.p
    assert explanation.changed.called
    little_and_much_gun, _little_and_much_dim_light = explanation.ends
    _with_little_gun, with_much_gun = little_and_much_gun
    assert with_much_gun.logit == pytest.approx(explanation.changed.logit)


@pytest.mark.parametrize("name", ["pcbm_lr", "bank"])
def test_a_model_sees_a_concept_in_clips_on_its_side_of_the_hyperplane_with_a_probability_of_one_half(
    trained_models, new_films, name
):
    """A concept's hyperplane parts training clips with the concept from those without, in scaled features.

    A concept is seen in a clip if its probability p reaches the concept's threshold. Thresholds are such that
    these are the clips on the concept's side of the hyperplane for which p is at least .5 too. The model is a
    bank of such hyperplanes, or a bottleneck that has a bank in it.
    """
    model = load_model(trained_models.paths[name])
    group = new_films.store["descriptors"]
    X = group.pooled()[group.usable]

    p = model.concept_probabilities(X)
    is_seen = p >= model.concept_thresholds

    bank = model.estimator if name == "bank" else model.estimator.bank_
    scaled_features = X if bank.scaler_ is None else bank.scaler_.transform(X)
    is_on_concepts_side = bank.hyperplanes_.decisions(scaled_features) >= 0
    np.testing.assert_array_equal(is_seen, is_on_concepts_side & (p >= 0.5))
    assert 0 < is_seen.mean() < 1


@pytest.fixture(scope="module")
def linear_model_of_concepts(trained_models):
    """A model that decides by a linear function of two concepts."""
    return load_model(trained_models.paths["pcbm_lr"])


@pytest.fixture(scope="module")
def twenty_explained_clips(linear_model_of_concepts, new_films):
    """(row of the predictions, explanation) of the first clips that have a probability."""
    table = predict(linear_model_of_concepts, [new_films.store]).table
    rows = table[table["p"].notna()].head(20).to_dict(orient="records")
    return [
        (row, explain(linear_model_of_concepts, [new_films.store], row["clip_id"], set_to={})) for row in rows
    ]


def test_a_concept_is_seen_where_its_probability_reaches_its_threshold(
    linear_model_of_concepts, twenty_explained_clips
):
    """An explanation of a clip lists the concepts that are seen; predictions have their probabilities."""
    model = linear_model_of_concepts
    for prediction, explanation in twenty_explained_clips:
        for concept, threshold in zip(model.concepts, model.concept_thresholds, strict=True):
            reaches_threshold = prediction[f"{concept}_p"] >= threshold
            assert (concept in explanation.seen) == reaches_threshold


def test_a_concept_changes_the_probability_by_what_its_contribution_to_the_logit_does(
    linear_model_of_concepts, twenty_explained_clips
):
    """A clip's logit is a sum of contributions: without that of a concept it gives another probability."""
    for _, explanation in twenty_explained_clips:
        for part, change in zip(explanation.parts.contributions, explanation.changes, strict=True):
            logit_without = np.array([explanation.decision.logit - part.contribution])
            p_without = linear_model_of_concepts.calibration.probability(logit_without)[0]
            assert change == pytest.approx(explanation.decision.p - p_without)


def test_a_concept_is_a_reason_if_it_changes_the_probability_by_a_hundredth_or_more(
    linear_model_of_concepts, twenty_explained_clips
):
    """An explanation lists reasons for a decision, which make its probability higher, and reasons against it.

    A change of probability is by moving the concept from its usual value to the clip's. The reason says
    whether the clip has more or less of the concept than usual.
    """
    for _, explanation in twenty_explained_clips:
        lines = describe(explanation, linear_model_of_concepts).splitlines()
        reasons_for = "".join(line for line in lines if line.startswith("for it: "))
        reasons_against = "".join(line for line in lines if line.startswith("against it: "))

        for part, change in zip(explanation.parts.contributions, explanation.changes, strict=True):
            amount = "more" if part.value > part.usual else "less"
            reason = f"{amount} {part.concept} than usual"
            assert (reason in reasons_for) == (change >= 0.01)
            assert (reason in reasons_against) == (change <= -0.01)


FAR_FROM_OTHER_FILMS = (
    r"farther from the training clips than [\d.]+ ?% of these are from those of other films"
)
"""It does not say that the clip is new: a clip that the model was trained on may be as far."""


def test_a_clip_unlike_any_is_not_explained(trained_models, store_of_alien_film):
    """All features of the clip lie 30 standard deviations from those of the training clips.

    It is asked what were if its gun were set to the median: of such a clip, that has no answer either.
    """
    model = load_model(trained_models.paths["pcbm_lr"])

    explanation = explain(model, [store_of_alien_film], clip_id="g8-07", set_to={"Gun": 0.5})

    assert explanation.parts is None
    assert explanation.decision.p is None
    assert explanation.decision.called is None
    assert explanation.changed is None
    assert re.search(FAR_FROM_OTHER_FILMS, describe(explanation, model))


def test_a_setting_is_a_concept_and_a_quantile_before_and_behind_the_last_equals_sign():
    """By Gun=1 a person sets a clip's Gun to the highest value. The concept "a=b" has the sign itself."""
    assert parse_settings(["Gun=1", "a=b=0.5"]) == {"Gun": 1.0, "a=b": 0.5}


@pytest.mark.parametrize("text", ["Gun", "Gun=", "Gun=95", "=0.5", "Gun=nan", "Gun=-0.1"])
def test_a_setting_without_a_concept_or_a_quantile_from_0_to_1_is_refused(text):
    """A setting, such as Gun=0.95, sets a concept of a clip to a quantile of its values."""
    with pytest.raises(ConceptError):
        parse_settings([text])


def test_two_settings_of_one_concept_are_refused():
    """A setting, such as Gun=0.5, sets a concept of a clip to a quantile of its values."""
    with pytest.raises(ConceptError, match="Gun"):
        parse_settings(["Gun=0.5", "Gun=1"])


# What is kept.


def test_a_card_says_what_the_model_is_and_no_path_of_the_machine(trained_models):
    """The model decides by the concepts Gun and Dim light and was trained on films f0 to f5.

    It was saved with a licence and the citation "us", the model `cav` without either.
    """
    card = read_model(trained_models.paths["pcbm_lr"]).card

    assert card.codebook == trained_models.run.record["codebook"]
    assert card.concepts == ("Gun", "Dim light")
    assert card.movies == ("f0", "f1", "f2", "f3", "f4", "f5")
    assert card.licence == "CC-BY-4.0"
    assert card.citation == "us"
    assert card.calibration["error"] < 0.1
    bytes_of_model = trained_models.paths["pcbm_lr"].read_bytes()
    assert str(trained_models.folder).encode() not in bytes_of_model

    without_licence = read_model(trained_models.paths["cav"]).card
    assert without_licence.licence == "NOASSERTION"


@pytest.mark.parametrize(
    ("name", "licence", "error", "message"),
    [
        ("movie_prior", "MIT", ModelError, "movie_prior"),
        ("liner", "MIT", ModelError, "'liner' .*'linear'"),
        ("mlp", "free for all", StoreError, "licence"),
    ],
    ids=["a baseline", "a misspelt model", "an unknown licence"],
)
def test_a_model_that_cannot_be_kept_is_refused_and_nothing_is_written(
    trained_models, tmp_path, name, licence, error, message
):
    """Beside it a linear model is asked for, which could be kept."""
    folder = tmp_path / "new"

    with pytest.raises(error, match=message):
        save_models(trained_models.run, trained_models.data, ["linear", name], folder, licence=licence)

    assert not folder.exists()


def test_a_model_that_is_there_is_not_overwritten(trained_models):
    """The folder `models` of the shelf has the file linear.model already."""
    before = trained_models.paths["linear"].read_bytes()

    with pytest.raises(OutputError, match=r"linear\.model"):
        save_models(trained_models.run, trained_models.data, ["linear"], trained_models.folder / "models")

    assert trained_models.paths["linear"].read_bytes() == before


@pytest.mark.parametrize("name", [*MODELS_THAT_DECIDE, "bank"])
def test_a_film_scored_alone_has_the_numbers_that_it_has_among_others(trained_models, new_films, name):
    """The store has clips of the films f0, g0 and g1. All numbers of g0 are the same to the last bit."""
    model = load_model(trained_models.paths[name])

    of_three_films = predict(model, [new_films.store], new_films.manifest).table
    of_g0_alone = predict(model, [new_films.store], new_films.manifest, movies={"g0"}).table

    expected = of_three_films[of_three_films["movie"] == "g0"].reset_index(drop=True)
    pd.testing.assert_frame_equal(of_g0_alone, expected, check_exact=True)
