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
from obygaze_models.prediction.saved_model import load_model
from tests.planted_models import MODELS, corpus, load_checking_round_trip

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
def test_a_model_that_was_loaded_is_saved_again_as_the_same_bytes(shelf, tmp_path, name):
    load_checking_round_trip(shelf.paths[name], tmp_path)


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_has_the_card_logits_and_shares_of_the_model_that_was_trained(shelf, name):
    loaded = load_model(shelf.paths[name])
    trained = train_final(shelf.data, BUILTIN_MODELS[name], shelf.run, licence="CC-BY-4.0", citation="us")
    X = shelf.data.X
    assert trained.card.to_json() == loaded.card.to_json()
    np.testing.assert_array_equal(trained.logits(X), loaded.logits(X))
    np.testing.assert_array_equal(trained.out_of_distribution_share(X), loaded.out_of_distribution_share(X))


def test_a_card_keeps_what_a_codebook_says_that_its_construct_and_levels_mean(tmp_path):
    store, manifest = corpus(tmp_path, "films", ("f0", "f1", "f2"), per_film=30)
    path = tmp_path / "violence.codebook.toml"
    level = 'name = "violent"\n'
    with_meaning = path.read_text("utf-8").replace(level, level + 'means = "shown"\n')
    path.write_text('construct = "violence"\n' + with_meaning, encoding="utf-8")
    data = load_dataset(store, replace(manifest, codebook=load_codebook(path)))
    run = evaluate(data, ["linear"], "calm_violent")
    model = load_model(save_models(run, data, ["linear"], tmp_path / "kept")["linear"])
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


@pytest.mark.parametrize("name", MODELS_THAT_DECIDE)
def test_most_clips_of_unseen_films_are_called_as_planted_with_calibrated_probabilities(
    shelf, new_films, name
):
    table = predict(load_model(shelf.paths[name]), [new_films.store], new_films.manifest).table
    truth = planted_truth(new_films.manifest.clips, name)
    trained_on = table["movie"] == "f0"
    has_probability = table["flags"] != "unlike"
    unseen = table[~trained_on & has_probability & table["clip_id"].isin(truth)]
    assert len(unseen) > 90
    y = np.array([truth[clip_id] for clip_id in unseen["clip_id"]], dtype=int)
    assert (unseen["called"].to_numpy(dtype=int) == y).mean() > 0.8
    assert calibration_error(y, unseen["p"], n_bins=4) < 0.15


def test_a_probability_is_inside_its_band(shelf, new_films):
    table = predict(load_model(shelf.paths["linear"]), [new_films.store]).table.dropna(subset="p")
    assert (table["p_low"] <= table["p"]).all()
    assert (table["p"] <= table["p_high"]).all()


def test_a_table_has_the_columns_of_the_specification(shelf, new_films):
    table = predict(load_model(shelf.paths["linear"]), [new_films.store]).table
    assert tuple(table.columns) == COLUMNS


def test_a_bottlenecks_table_has_three_columns_for_each_concept(shelf, new_films):
    table = predict(load_model(shelf.paths["pcbm_lr"]), [new_films.store]).table
    assert tuple(table.columns) == (
        *COLUMNS,
        *("Gun_value", "Gun_p", "Gun_contribution"),
        *("Dim light_value", "Dim light_p", "Dim light_contribution"),
        "base_contribution",
    )


def test_rows_are_in_the_order_of_movies_and_times(shelf, new_films):
    table = predict(load_model(shelf.paths["linear"]), [new_films.store], new_films.manifest).table
    assert table["movie"].tolist() == ["f0"] * 60 + ["g0"] * 60 + ["g1"] * 59
    for _, film in table.groupby("movie"):
        assert film["start_s"].is_monotonic_increasing


def test_videos_are_those_of_the_manifest(shelf, new_films):
    model = load_model(shelf.paths["linear"])
    with_manifest = predict(model, [new_films.store], new_films.manifest).table
    assert set(with_manifest["video"]) == {"f0.mp4", "g0.mp4", "g1.mp4"}
    assert set(predict(model, [new_films.store]).table["video"]) == {""}


def test_clips_of_a_training_film_are_flagged(shelf, new_films):
    table = predict(load_model(shelf.paths["linear"]), [new_films.store]).table
    is_flagged = table["flags"].str.contains("trained_on")
    assert set(table.loc[is_flagged, "movie"]) == {"f0"}
    assert is_flagged.sum() == 60


@pytest.mark.parametrize("name", ["pcbm_lr", "pcbm_dt"])
def test_the_contributions_in_a_csv_add_up_to_the_logit(shelf, new_films, name):
    text = predict(load_model(shelf.paths[name]), [new_films.store]).to_csv()
    rows_with_p = [row for row in csv.DictReader(io.StringIO(text)) if "unlike" not in row["flags"]]
    assert len(rows_with_p) > 150
    for row in rows_with_p:
        contributions = [float(row[column]) for column in row if column.endswith("_contribution")]
        assert sum(contributions) == pytest.approx(float(row["logit"]), abs=1e-9)


@pytest.mark.parametrize("concept", ["Gun", "Dim light"])
def test_a_bank_has_calibrated_probabilities_of_the_planted_concepts(shelf, new_films, concept):
    table = predict(load_model(shelf.paths["bank"]), [new_films.store]).table.set_index("clip_id")
    concepts_of = {clip.clip_id: clip.concepts for clip in new_films.manifest.clips}
    p = table[f"{concept}_p"].dropna()
    is_there = np.array([concept in concepts_of[clip_id] for clip_id in p.index])
    assert ((p > 0.5) == is_there).mean() > 0.85
    assert calibration_error(is_there, p, n_bins=4) < 0.15


def test_a_bank_of_concepts_gives_no_logit_probability_or_call(shelf, new_films):
    table = predict(load_model(shelf.paths["bank"]), [new_films.store]).table
    assert table[["logit", "p", "called"]].isna().all().all()
    assert not [column for column in table.columns if column.endswith("contribution")]


@pytest.mark.parametrize("name", MODELS_THAT_DECIDE)
def test_a_film_unlike_the_training_films_gets_no_probabilities(shelf, store_of_alien_film, name):
    table = predict(load_model(shelf.paths[name]), [store_of_alien_film]).table
    assert (table["flags"] == "unlike").all()
    assert table["unlike"].min() > 0.99
    empty_columns = [column for column in table.columns if column.endswith(("_p", "_contribution"))]
    empty_columns += ["called", "p", "p_low", "p_high"]
    assert table[empty_columns].isna().all().all()


@pytest.mark.parametrize("name", ["linear", "mlp"])
def test_a_feature_that_did_not_vary_in_training_does_not_make_logits_huge(shelf, store_of_alien_film, name):
    """The film is hundreds of training deviations away in feature 7."""
    table = predict(load_model(shelf.paths[name]), [store_of_alien_film]).table
    assert table["logit"].abs().max() < 100


def test_no_probability_is_null_in_json(shelf, store_of_alien_film):
    model = load_model(shelf.paths["linear"])
    clips = document(predict(model, [store_of_alien_film]), model, [store_of_alien_film])["clips"]
    assert {clip["p"] for clip in clips} == {None}
    json.dumps(clips, allow_nan=False)


def test_several_stores_are_one_table(shelf, new_films, store_of_alien_film):
    table = predict(load_model(shelf.paths["linear"]), [store_of_alien_film, new_films.store]).table
    n_clips_of_alien, n_clips_of_new_films = 30 - 1, 3 * 60 - 1  # of each store, one clip failed
    assert len(table) == n_clips_of_alien + n_clips_of_new_films
    assert table["movie"].is_monotonic_increasing


def test_clips_without_features_are_counted_by_reason(shelf, new_films, store_of_alien_film):
    predictions = predict(load_model(shelf.paths["linear"]), [store_of_alien_film, new_films.store])
    assert predictions.excluded == {"failed: the file is empty (0 bytes)": ["g8-00", "g1-00"]}


def test_two_stores_with_the_same_clips_are_refused(shelf, store_of_alien_film):
    with pytest.raises(ModelError, match="g8-00"):
        predict(load_model(shelf.paths["linear"]), [store_of_alien_film, store_of_alien_film])


@pytest.fixture
def predictions_and_remarks(shelf, new_films, store_of_alien_film):
    """Predictions of the linear model for the alien film and the new films, and the remarks on them."""
    model = load_model(shelf.paths["linear"])
    predictions = predict(model, [store_of_alien_film, new_films.store])
    return predictions, remarks(predictions, model)


def test_remarks_begin_with_evidence_clips_not_judged_and_clips_of_training_films(predictions_and_remarks):
    predictions, lines = predictions_and_remarks
    evidence, on_calls, on_training_films, *_others = lines
    assert evidence == predictions.evidence
    assert f"{predictions.has('unlike').sum()} not judged" in on_calls
    assert on_training_films.startswith(f"{predictions.has('trained_on').sum()} clips")


def test_a_remark_counts_the_clips_of_a_film_that_are_unlike_the_training_clips(predictions_and_remarks):
    predictions, lines = predictions_and_remarks
    n_unlike = (predictions.has("unlike") & (predictions.table["movie"] == "g8")).sum()
    (on_alien_film,) = [line for line in lines if line.startswith("g8: ")]
    assert f"{n_unlike} of 29" in on_alien_film


def test_the_last_remark_counts_excluded_clips_by_reason_and_names_the_first(predictions_and_remarks):
    _, lines = predictions_and_remarks
    assert lines[-1] == "excluded 2: failed: the file is empty (0 bytes) (g8-00, ...)"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (["p", "p", None], "3 clips in p.csv, 2 with a probability"),
        (["p", "p"], "2 clips in p.csv, each with a probability"),
        ([None], "1 clip in p.csv, none with a probability"),
    ],
    ids=["some", "all", "none"],
)
def test_a_remark_on_a_written_file_counts_clips_and_those_with_a_probability(
    shelf, new_films, store_of_alien_film, rows, expected
):
    model = load_model(shelf.paths["linear"])
    predictions = predict(model, [store_of_alien_film, new_films.store])
    with_p = predictions.table[predictions.table["p"].notna()]
    without_p = predictions.table[predictions.table["p"].isna()]
    table = pd.concat([with_p.head(rows.count("p")), without_p.head(rows.count(None))])
    assert written_remark(replace(predictions, table=table), model, "p.csv") == expected


def test_a_remark_on_a_written_file_of_a_bank_of_concepts_counts_clips_alone(shelf, new_films):
    bank = load_model(shelf.paths["bank"])
    predictions = predict(bank, [new_films.store])
    assert written_remark(predictions, bank, "p.csv") == f"{len(predictions.table)} clips in p.csv"


def test_a_line_break_in_a_reason_begins_no_remark(shelf, store_of_alien_film):
    model = load_model(shelf.paths["linear"])
    reason = "failed: cut.mkv\nAll is well"
    lines = remarks(
        replace(predict(model, [store_of_alien_film]), excluded={reason: ["g8-00", "g1-00"]}), model
    )
    assert lines[-1].startswith("excluded 2: failed: cut.mkv")
    assert "All is well" in lines[-1]
    for line in lines:
        assert "\n" not in line
        assert "\r" not in line


def test_one_clip_is_no_plural(shelf, new_films):
    model = load_model(shelf.paths["linear"])
    predictions = predict(model, [new_films.store])
    of_training_film = predictions.table[predictions.has("trained_on")]
    lines = remarks(replace(predictions, table=of_training_film.head(1)), model)
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
def test_features_extracted_in_another_way_are_refused(shelf, tmp_path, provenance, message):
    other = corpus(tmp_path, "other", ("g9",), **provenance)
    with pytest.raises(ModelError, match=message):
        predict(load_model(shelf.paths["linear"]), [other.store])


@pytest.mark.parametrize(
    ("backbone", "width", "message"),
    [("descriptors", 9, "9 features"), ("clip", 8, "clip")],
    ids=["another width", "another backbone"],
)
def test_features_of_another_kind_are_refused(shelf, tmp_path, backbone, width, message):
    groups = {backbone: {"pooled": np.zeros((2, width), dtype=np.float32)}}
    store = open_store(seal_arrays(tmp_path / "other", {"x": "m", "y": "m"}, groups))
    with pytest.raises(ModelError, match=message):
        predict(load_model(shelf.paths["linear"]), [store])


# Why, and what if.


@pytest.mark.parametrize("quantile", [0.0, 0.05, 0.5, 0.95, 1.0])
@pytest.mark.parametrize("name", ["pcbm_lr", "pcbm_dt"])
def test_an_intervention_sets_a_concept_to_a_quantile_of_the_training_clips(shelf, new_films, name, quantile):
    model = load_model(shelf.paths[name])
    gun = model.concepts.index("Gun")
    X = new_films.store["descriptors"].pooled()[3:9]
    values = model.concept_values(X)
    values[:, gun] = np.quantile(model.estimator.train_values_[:, gun], quantile)
    expected = head_scores(model.estimator.head_, values)
    np.testing.assert_allclose(model.intervene(X, {"Gun": quantile}), expected, atol=1e-12)


@pytest.mark.parametrize("name", ["pcbm_lr", "pcbm_dt"])
def test_a_loaded_model_intervenes_as_the_trained_one(shelf, new_films, name):
    X = new_films.store["descriptors"].pooled()[3:9]
    trained = train_final(shelf.data, BUILTIN_MODELS[name], shelf.run).intervene(X, {"Gun": 0.9})
    kept = load_model(shelf.paths[name]).intervene(X, {"Gun": 0.9})
    np.testing.assert_allclose(trained, kept, atol=1e-9)


def test_an_explanation_names_the_levels_of_its_decision(shelf, new_films):
    model = load_model(shelf.paths["pcbm_lr"])
    explanation = explain(model, [new_films.store], "g0-00", {})
    levels = "(violent)" if explanation.decision.called else "(calm)"
    assert levels in describe(explanation, model)


def test_an_explanation_begins_its_decision_with_the_task(shelf, new_films):
    model = load_model(shelf.paths["pcbm_lr"])
    text = describe(explain(model, [new_films.store], "g0-00", {}), model)
    (decision,) = [line for line in text.splitlines() if ": called " in line]
    assert decision.startswith(f"{model.card.target['name']}: called ")


def model_labelled_by(shelf, *annotators):
    """Load the bottleneck, and let its card name those who labelled its training clips."""
    model = load_model(shelf.paths["pcbm_lr"])
    return replace(model, card=changed_card(model.card, labelled_by=annotators))


ON_PLANTED_LABELS = pytest.mark.parametrize(
    ("annotators", "sentence"),
    [((PLANTED,), "nobody judged them"), (("AB", PLANTED), "nobody judged those")],
    ids=["all labels planted", "some labels planted"],
)


@ON_PLANTED_LABELS
def test_an_explanation_says_that_nobody_judged_planted_labels(shelf, new_films, annotators, sentence):
    model = model_labelled_by(shelf, *annotators)
    assert sentence in describe(explain(model, [new_films.store], "g0-00", {}), model)


@ON_PLANTED_LABELS
def test_remarks_and_json_say_that_nobody_judged_planted_labels(shelf, new_films, annotators, sentence):
    model = model_labelled_by(shelf, *annotators)
    predictions = predict(model, [new_films.store])
    line_in_json = document(predictions, model, [new_films.store])["model"]["labels_line"]
    assert sentence in line_in_json
    assert line_in_json in remarks(predictions, model)


def test_labels_of_people_get_no_remark(shelf, new_films):
    model = model_labelled_by(shelf, "AB")
    predictions = predict(model, [new_films.store])
    assert document(predictions, model, [new_films.store])["model"]["labels_line"] == ""
    assert not [line for line in remarks(predictions, model) if "nobody judged" in line]
    assert "nobody judged" not in describe(explain(model, [new_films.store], "g0-00", {}), model)


def test_an_explanation_lists_the_concepts_whose_evaluation_is_not_shown_to_be_better_than_chance(
    shelf, new_films
):
    model = load_model(shelf.paths["pcbm_lr"])
    explanation = explain(model, [new_films.store], "g0-00", {})
    metrics_of = {row["task"]: row for row in model.card.metrics if "movie_chance" in row}
    near_chance = []
    for concept in model.concepts:
        metrics = metrics_of[f"concept:{concept}"]
        if metrics["movie_low"] <= metrics["movie_chance"]:
            near_chance.append(concept)
    assert list(explanation.near_chance) == near_chance


@pytest.fixture(scope="module", params=["pcbm_lr", "pcbm_dt"])
def gun_added(request, shelf, new_films):
    """A clip that is called negative and in which no gun is seen, explained as if there were one.

    Returns the clip's row of predictions and the explanation, with its gun set to the .95 quantile.
    """
    model = load_model(shelf.paths[request.param])
    table = predict(model, [new_films.store]).table
    row = table[(table["called"] == 0) & (table["Gun_value"] < 0)].iloc[0]
    return row, explain(model, [new_films.store], row["clip_id"], {"Gun": 0.95})


def test_an_explanation_has_the_decision_of_the_prediction(gun_added):
    row, explanation = gun_added
    assert explanation.decision.logit == pytest.approx(row["logit"], abs=1e-12)
    assert explanation.decision.p == pytest.approx(row["p"])


def test_a_gun_would_make_the_clip_violent(gun_added):
    _, explanation = gun_added
    assert explanation.changed.p > explanation.decision.p
    assert explanation.changed.called
    (_with_little_gun, with_much_gun), _with_little_and_much_dim_light = explanation.ends
    assert with_much_gun.logit == pytest.approx(explanation.changed.logit)


@pytest.mark.parametrize("name", ["pcbm_lr", "bank"])
def test_a_concept_is_seen_where_a_clip_is_on_its_side_of_the_hyperplane_and_p_is_at_least_one_half(
    shelf, new_films, name
):
    model = load_model(shelf.paths[name])
    group = new_films.store["descriptors"]
    X = group.pooled()[group.usable]
    bank = model.estimator if name == "bank" else model.estimator.bank_
    scaled = X if bank.scaler_ is None else bank.scaler_.transform(X)
    is_on_concepts_side = bank.hyperplanes_.decisions(scaled) >= 0
    p = model.concept_probabilities(X)
    is_seen = p >= model.concept_thresholds
    np.testing.assert_array_equal(is_seen, is_on_concepts_side & (p >= 0.5))
    assert 0 < is_seen.mean() < 1


def test_a_model_without_concepts_has_no_thresholds_of_them(shelf):
    assert load_model(shelf.paths["linear"]).concept_thresholds.size == 0


@pytest.fixture(scope="module")
def twenty_explanations(shelf, new_films):
    """Rows of predictions of twenty clips by `pcbm_lr`, with their explanations."""
    model = load_model(shelf.paths["pcbm_lr"])
    table = predict(model, [new_films.store]).table
    rows = table[table["p"].notna()].head(20).to_dict(orient="records")
    return [(row, explain(model, [new_films.store], row["clip_id"], {})) for row in rows]


def test_concepts_that_reach_their_threshold_are_seen(shelf, twenty_explanations):
    model = load_model(shelf.paths["pcbm_lr"])
    for row, explanation in twenty_explanations:
        for concept, threshold in zip(model.concepts, model.concept_thresholds, strict=True):
            assert (concept in explanation.seen) == (row[f"{concept}_p"] >= threshold)


def test_what_a_concept_changes_is_the_probability_less_the_one_without_its_contribution(
    shelf, twenty_explanations
):
    calibration = load_model(shelf.paths["pcbm_lr"]).calibration
    for _, explanation in twenty_explanations:
        for part, change in zip(explanation.parts.contributions, explanation.changes, strict=True):
            logit_without = np.array([explanation.decision.logit - part.contribution])
            p_without = calibration.probability(logit_without)[0]
            assert change == pytest.approx(explanation.decision.p - p_without)


def test_concepts_that_change_the_probability_by_a_hundredth_or_more_are_reasons_for_or_against(
    shelf, twenty_explanations
):
    model = load_model(shelf.paths["pcbm_lr"])
    for _, explanation in twenty_explanations:
        lines = describe(explanation, model).splitlines()
        reasons_for = "".join(line for line in lines if line.startswith("for it: "))
        reasons_against = "".join(line for line in lines if line.startswith("against it: "))
        for part, change in zip(explanation.parts.contributions, explanation.changes, strict=True):
            amount = "more" if part.value > part.usual else "less"
            reason = f"{amount} {part.concept} than usual"
            assert (reason in reasons_for) == (change >= 0.01)
            assert (reason in reasons_against) == (change <= -0.01)


def test_a_clip_unlike_any_is_not_explained(shelf, store_of_alien_film):
    explanation = explain(load_model(shelf.paths["pcbm_lr"]), [store_of_alien_film], "g8-07", {"Gun": 0.5})
    assert explanation.parts is None
    assert explanation.decision.p is None
    assert explanation.decision.called is None
    assert explanation.changed is None


FAR_FROM_OTHER_FILMS = (
    r"farther from the training clips than [\d.]+ ?% of these are from those of other films"
)
"""It does not say that the clip is new: a clip that the model was trained on may be as far."""


def test_remarks_say_that_a_clip_is_far_from_those_of_other_films(shelf, store_of_alien_film):
    model = load_model(shelf.paths["pcbm_lr"])
    (line,) = [line for line in remarks(predict(model, [store_of_alien_film]), model) if "farther" in line]
    assert re.search(FAR_FROM_OTHER_FILMS, line)


def test_an_explanation_says_that_a_clip_is_far_from_those_of_other_films(shelf, store_of_alien_film):
    model = load_model(shelf.paths["pcbm_lr"])
    assert re.search(
        FAR_FROM_OTHER_FILMS, describe(explain(model, [store_of_alien_film], "g8-07", {}), model)
    )


@pytest.mark.parametrize("text", ["Gun", "Gun=", "Gun=high", "Gun=95", "=0.5", "Gun=nan", "Gun=-0.1"])
def test_a_setting_that_is_not_a_concept_and_a_quantile_is_refused(text):
    with pytest.raises(ConceptError):
        parse_settings([text])


def test_a_concept_may_have_equals_signs_in_its_name():
    assert parse_settings(["a=b=0.5", "Gun=1"]) == {"a=b": 0.5, "Gun": 1.0}


def test_a_concept_is_set_once():
    with pytest.raises(ConceptError, match="Gun"):
        parse_settings(["Gun=0.5", "Gun=1"])


# What is kept.


def test_a_card_says_what_the_model_is(shelf):
    card = read_model(shelf.paths["pcbm_lr"]).card
    assert card.codebook == shelf.run.record["codebook"]
    assert card.concepts == ("Gun", "Dim light")
    assert card.movies == ("f0", "f1", "f2", "f3", "f4", "f5")
    assert card.licence == "CC-BY-4.0"
    assert card.citation == "us"
    assert card.calibration["error"] < 0.1


def test_a_model_without_a_licence_has_no_assertion_of_one(shelf):
    assert read_model(shelf.paths["cav"]).card.licence == "NOASSERTION"


def test_a_model_file_holds_no_path_of_the_machine(shelf):
    assert str(shelf.folder).encode() not in shelf.paths["pcbm_lr"].read_bytes()


@pytest.mark.parametrize(
    ("name", "message"),
    [("movie_prior", "movie_prior"), ("liner", "'liner' .*'linear'")],
    ids=["a baseline", "a misspelt model"],
)
def test_a_model_that_cannot_be_kept_is_refused_and_nothing_is_written(shelf, tmp_path, name, message):
    with pytest.raises(ModelError, match=message):
        save_models(shelf.run, shelf.data, ["linear", name], tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_an_unknown_licence_is_refused_and_nothing_is_written(shelf, tmp_path):
    with pytest.raises(StoreError, match="licence"):
        save_models(shelf.run, shelf.data, ["linear"], tmp_path / "new", licence="free for all")
    assert not (tmp_path / "new").exists()


def test_a_model_that_is_there_is_not_overwritten(shelf):
    with pytest.raises(OutputError, match=r"linear\.model"):
        save_models(shelf.run, shelf.data, ["linear"], shelf.folder / "models")


@pytest.mark.parametrize("name", [*MODELS_THAT_DECIDE, "bank"])
def test_a_film_scored_alone_has_the_numbers_that_it_has_among_others(shelf, new_films, name):
    model = load_model(shelf.paths[name])
    among_others = predict(model, [new_films.store], new_films.manifest).table
    alone = predict(model, [new_films.store], new_films.manifest, movies={"g0"}).table
    expected = among_others[among_others["movie"] == "g0"].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, expected, check_exact=True)
