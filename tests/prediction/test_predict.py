"""Models that are kept, applied to films that they have not seen, and asked why."""

import csv
import io
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import replace as changed

from obygaze_features.errors import OutputError, StoreError
from obygaze_features.manifest import PLANTED, load_codebook
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays
from obygaze_models.commands.predict_remarks import remarks, written_remark
from obygaze_models.dataset import load_dataset
from obygaze_models.errors import ConceptError, ModelError
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.persistence.model_file import read_model
from obygaze_models.prediction.calibration import calibration_error
from obygaze_models.prediction.explain import describe, explain, parse_settings
from obygaze_models.prediction.final import save_models, train_final
from obygaze_models.prediction.predict import COLUMNS, document, predict
from obygaze_models.prediction.saved_model import load_model
from tests.planted_models import MODELS, corpus, load_checking_round_trip

DECIDING = (*MODELS, "cav")


@pytest.fixture(scope="module")
def new_films(tmp_path_factory):
    """60 clips each of g0 and g1, which the models have not seen, and of f0, which they have.

    Of these g1-00 has no features.
    """
    return corpus(tmp_path_factory.mktemp("more"), "more", ("g1", "g0", "f0"), seed=1, per_film=60)


@pytest.fixture(scope="module")
def alien(tmp_path_factory):
    """The store of g8, 30 clips of which one failed; every feature lies 30 deviations away."""
    return corpus(tmp_path_factory.mktemp("alien"), "alien", ("g8",), seed=2, shift=30.0).store


@pytest.mark.parametrize("name", [*DECIDING, "bank"])
def test_a_kept_model_is_saved_again_as_it_was(shelf, tmp_path, name):
    load_checking_round_trip(shelf.paths[name], tmp_path)


@pytest.mark.parametrize("name", MODELS)
def test_a_kept_model_is_the_model_that_was_trained(shelf, name):
    from obygaze_models.models.registry import BUILTIN_MODELS

    kept = load_model(shelf.paths[name])
    trained = train_final(shelf.data, BUILTIN_MODELS[name], shelf.run, licence="CC-BY-4.0", citation="us")
    X = shelf.data.X
    assert trained.logits(X).tobytes() == kept.logits(X).tobytes()
    assert trained.card.to_json() == kept.card.to_json()
    np.testing.assert_array_equal(trained.out_of_distribution_share(X), kept.out_of_distribution_share(X))


def test_a_model_of_a_codebook_that_says_what_its_words_mean_is_read_back(tmp_path):
    store, manifest = corpus(tmp_path, "films", ("f0", "f1", "f2"), per_film=30)
    path = tmp_path / "violence.codebook.toml"
    text = path.read_text("utf-8").replace('name = "violent"\n', 'name = "violent"\nmeans = "shown"\n')
    path.write_text('construct = "violence"\n' + text, encoding="utf-8")
    data = load_dataset(store, replace(manifest, codebook=load_codebook(path)))
    run = evaluate(data, ["linear"], "calm_violent")
    model = load_model(save_models(run, data, ["linear"], tmp_path / "kept")["linear"])
    assert model.card.codebook["construct"] == "violence"
    assert model.card.codebook["means"] == {"violent": "shown"}
    assert len(predict(model, [store]).table)


def planted_truth(clips, model):
    """Return whether a clip is what a model looks for, by clip; of the CAV a gun, else violence."""
    truth = {}
    for clip in clips:
        if model == "cav":
            truth[clip.clip_id] = "Gun" in clip.concepts
        elif clip.level != "unsure":
            truth[clip.clip_id] = clip.level == "violent"
    return truth


@pytest.mark.parametrize("name", DECIDING)
def test_an_unseen_film_is_called_as_planted_with_calibrated_probabilities(shelf, new_films, name):
    table = predict(load_model(shelf.paths[name]), [new_films.store], new_films.manifest).table
    unseen = table[(table["movie"] != "f0") & (table["flags"] != "unlike")].set_index("clip_id")
    truth = planted_truth(new_films.manifest.clips, name)
    unseen = unseen[unseen.index.isin(truth)]
    assert len(unseen) > 90
    y = np.array([truth[clip_id] for clip_id in unseen.index], dtype=int)
    assert (unseen["called"].to_numpy(dtype=int) == y).mean() > 0.8
    assert calibration_error(y, unseen["p"], n_bins=4) < 0.15
    assert (unseen["p_low"] <= unseen["p"]).all()
    assert (unseen["p"] <= unseen["p_high"]).all()


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
def test_contributions_add_up_to_the_logit_in_the_file_too(shelf, new_films, name):
    text = predict(load_model(shelf.paths[name]), [new_films.store]).to_csv()
    judged = [row for row in csv.DictReader(io.StringIO(text)) if "unlike" not in row["flags"]]
    assert len(judged) > 150
    for row in judged:
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


def test_a_bank_decides_nothing(shelf, new_films):
    table = predict(load_model(shelf.paths["bank"]), [new_films.store]).table
    assert table[["logit", "p", "called"]].isna().all().all()
    assert not [column for column in table.columns if column.endswith("contribution")]


@pytest.mark.parametrize("name", DECIDING)
def test_a_film_unlike_the_training_films_gets_no_probabilities(shelf, alien, name):
    table = predict(load_model(shelf.paths[name]), [alien]).table
    assert (table["flags"] == "unlike").all()
    assert table["unlike"].min() > 0.99
    for column in table.columns:
        if column == "called" or column.startswith("p") or column.endswith(("_p", "_contribution")):
            assert table[column].isna().all(), column


@pytest.mark.parametrize("name", ["linear", "mlp"])
def test_a_feature_that_did_not_vary_does_not_blow_up_logits(shelf, alien, name):
    """The alien film is hundreds of training deviations away in feature 7."""
    table = predict(load_model(shelf.paths[name]), [alien]).table
    assert table["logit"].abs().max() < 100


def test_no_probability_is_null_in_json(shelf, alien):
    model = load_model(shelf.paths["linear"])
    clips = document(predict(model, [alien]), model, [alien])["clips"]
    assert {clip["p"] for clip in clips} == {None}
    json.dumps(clips, allow_nan=False)


def test_several_stores_are_one_table(shelf, new_films, alien):
    table = predict(load_model(shelf.paths["linear"]), [alien, new_films.store]).table
    assert len(table) == 29 + 179
    assert table["movie"].is_monotonic_increasing


def test_clips_without_features_are_counted_by_reason(shelf, new_films, alien):
    predictions = predict(load_model(shelf.paths["linear"]), [alien, new_films.store])
    assert predictions.excluded == {"failed: the file is empty (0 bytes)": ["g8-00", "g1-00"]}


def test_two_stores_with_the_same_clips_are_refused(shelf, alien):
    with pytest.raises(ModelError, match="g8-00"):
        predict(load_model(shelf.paths["linear"]), [alien, alien])


def test_remarks_count_clips(shelf, new_films, alien):
    model = load_model(shelf.paths["linear"])
    predictions = predict(model, [alien, new_films.store])
    is_unlike = predictions.has("unlike")
    is_of_alien = predictions.table["movie"] == "g8"
    evidence, judged, known, *others = remarks(predictions, model)
    assert evidence == predictions.evidence
    assert f"{is_unlike.sum()} not judged" in judged
    assert known.startswith(f"{predictions.has('trained_on').sum()} clips")
    (of_alien,) = [line for line in others if line.startswith("g8: ")]
    assert f"{(is_unlike & is_of_alien).sum()} of 29" in of_alien
    assert others[-1] == "excluded 2: failed: the file is empty (0 bytes) (g8-00, ...)"


def test_a_written_file_is_said_to_have_so_many_clips_and_probabilities(shelf, new_films, alien):
    linear, bank = load_model(shelf.paths["linear"]), load_model(shelf.paths["bank"])
    both, unlike = predict(linear, [alien, new_films.store]), predict(linear, [alien])
    n_known = int(both.table["p"].notna().sum())
    assert 0 < n_known < len(both.table)
    assert (
        written_remark(both, linear, "p.csv")
        == f"{len(both.table)} clips in p.csv, {n_known} with a probability"
    )
    known = replace(both, table=both.table[both.table["p"].notna()])
    assert written_remark(known, linear, "p.csv") == f"{n_known} clips in p.csv, each with a probability"
    unknown = replace(unlike, table=unlike.table[unlike.table["p"].isna()].head(1))
    assert written_remark(unknown, linear, "p.csv") == "1 clip in p.csv, none with a probability"
    concepts = predict(bank, [new_films.store])
    assert written_remark(concepts, bank, "p.csv") == f"{len(concepts.table)} clips in p.csv"


def test_a_line_break_in_a_reason_begins_no_remark(shelf, alien):
    model = load_model(shelf.paths["linear"])
    reason = "failed: cut.mkv\nAll is well"
    lines = remarks(replace(predict(model, [alien]), excluded={reason: ["g8-00", "g1-00"]}), model)
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
    from obygaze_models.concepts.head_scores import head_scores

    model = load_model(shelf.paths[name])
    X = new_films.store["descriptors"].pooled()[3:9]
    values = model.concept_values(X)
    values[:, 0] = np.quantile(model.estimator.train_values_[:, 0], quantile)
    expected = head_scores(model.estimator.head_, values)
    np.testing.assert_allclose(model.intervene(X, {"Gun": quantile}), expected, atol=1e-12)


@pytest.mark.parametrize("name", ["pcbm_lr", "pcbm_dt"])
def test_a_kept_model_intervenes_as_the_trained_one(shelf, new_films, name):
    """The file's quantiles are those of the training clips' cross-fitted values."""
    from obygaze_models.models.registry import BUILTIN_MODELS

    X = new_films.store["descriptors"].pooled()[3:9]
    trained = train_final(shelf.data, BUILTIN_MODELS[name], shelf.run).intervene(X, {"Gun": 0.9})
    kept = load_model(shelf.paths[name]).intervene(X, {"Gun": 0.9})
    np.testing.assert_allclose(trained, kept, atol=1e-9)


def test_an_explanation_names_the_levels_of_its_decision(shelf, new_films):
    model = load_model(shelf.paths["pcbm_lr"])
    explanation = explain(model, [new_films.store], "g0-00", {})
    levels = "(violent)" if explanation.decision.called else "(calm)"
    assert levels in describe(explanation, model)


def test_an_explanation_names_its_task_and_says_that_nobody_judged_planted_labels(shelf, new_films):
    model = load_model(shelf.paths["pcbm_lr"])
    explanation = explain(model, [new_films.store], "g0-00", {})
    (line,) = (line for line in describe(explanation, model).splitlines() if ": called " in line)
    assert line.startswith(f"{model.card.target['name']}: called ")
    planted = replace(model, card=changed(model.card, labelled_by=(PLANTED,)))
    assert "nobody judged them" in describe(explanation, planted)
    assert "nobody judged them" not in describe(explanation, model)
    partly = replace(model, card=changed(model.card, labelled_by=("AB", PLANTED)))
    assert "nobody judged those" in describe(explanation, partly)


def test_predictions_say_that_nobody_judged_planted_labels(shelf, new_films):
    model = load_model(shelf.paths["pcbm_lr"])
    predicted = predict(model, [new_films.store])
    said_of = {("AB",): "", ("AB", PLANTED): "nobody judged those", (PLANTED,): "nobody judged them"}
    for labelled_by, said in said_of.items():
        labelled = replace(model, card=changed(model.card, labelled_by=labelled_by))
        in_terminal = [line for line in remarks(predicted, labelled) if "nobody judged" in line]
        in_json = document(predicted, labelled, [new_films.store])["model"]["labels_line"]
        assert in_terminal == ([in_json] if said else [])
        assert said in in_json
        assert bool(in_json) == bool(said)


def test_an_explanation_names_concepts_that_are_not_shown_to_be_found(shelf, new_films):
    model = load_model(shelf.paths["pcbm_lr"])
    explanation = explain(model, [new_films.store], "g0-00", {})
    metrics_of = {row["task"]: row for row in model.card.metrics if "movie_chance" in row}
    for concept in model.concepts:
        metrics = metrics_of[f"concept:{concept}"]
        is_shown = metrics["movie_low"] > metrics["movie_chance"]
        assert (concept in explanation.near_chance) != is_shown


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
    assert explanation.ends[0][1].logit == pytest.approx(explanation.changed.logit)


@pytest.mark.parametrize("name", ["pcbm_lr", "bank"])
def test_a_concept_is_seen_where_its_plane_and_its_probability_agree(shelf, new_films, name):
    model = load_model(shelf.paths[name])
    group = new_films.store["descriptors"]
    X = group.pooled()[group.usable]
    bank = model.estimator if name == "bank" else model.estimator.bank_
    scaled = X if bank.scaler_ is None else bank.scaler_.transform(X)
    by_plane = bank.hyperplanes_.decisions(scaled) >= 0
    p = model.concept_probabilities(X)
    is_seen = p >= model.concept_thresholds
    np.testing.assert_array_equal(is_seen, by_plane & (p >= 0.5))
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


def test_a_contributions_change_is_that_of_the_probability_without_it(shelf, twenty_explanations):
    calibration = load_model(shelf.paths["pcbm_lr"]).calibration
    for _, explanation in twenty_explanations:
        for part, change in zip(explanation.parts.contributions, explanation.changes, strict=True):
            logit_without = np.array([explanation.decision.logit - part.contribution])
            p_without = calibration.probability(logit_without)[0]
            assert change == pytest.approx(explanation.decision.p - p_without)


def test_reasons_are_for_or_against_by_the_direction_of_their_change(shelf, twenty_explanations):
    """What changes the probability by less than .01 is no reason."""
    model = load_model(shelf.paths["pcbm_lr"])
    for _, explanation in twenty_explanations:
        text = describe(explanation, model)
        reasons = dict(re.findall("^(for it|against it): (.*)$", text, re.MULTILINE))
        for part, change in zip(explanation.parts.contributions, explanation.changes, strict=True):
            amount = "more" if part.value > part.usual else "less"
            reason = f"{amount} {part.concept} than usual"
            assert (reason in reasons.get("for it", "")) == (change >= 0.01)
            assert (reason in reasons.get("against it", "")) == (change <= -0.01)


def test_a_clip_unlike_any_is_not_explained(shelf, alien):
    explanation = explain(load_model(shelf.paths["pcbm_lr"]), [alien], "g8-07", {"Gun": 0.5})
    assert explanation.parts is None
    assert explanation.decision.p is None
    assert explanation.decision.called is None
    assert explanation.changed is None


FAR_FROM_OTHER_FILMS = (
    r"farther from the training clips than [\d.]+ ?% of these are from those of other films"
)
"""A clip may be so that the model was trained on: then no sentence may say that it was not."""


def test_remarks_say_that_a_clip_is_far_from_those_of_other_films(shelf, alien):
    model = load_model(shelf.paths["pcbm_lr"])
    (line,) = [line for line in remarks(predict(model, [alien]), model) if "farther" in line]
    assert re.search(FAR_FROM_OTHER_FILMS, line)


def test_an_explanation_says_that_a_clip_is_far_from_those_of_other_films(shelf, alien):
    model = load_model(shelf.paths["pcbm_lr"])
    assert re.search(FAR_FROM_OTHER_FILMS, describe(explain(model, [alien], "g8-07", {}), model))


@pytest.mark.parametrize("text", ["Gun", "Gun=", "Gun=high", "Gun=95", "=0.5", "Gun=nan", "Gun=-0.1"])
def test_settings_without_a_quantile_are_refused(text):
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


@pytest.mark.parametrize("name", [*DECIDING, "bank"])
def test_a_film_scored_alone_has_the_numbers_that_it_has_among_others(shelf, new_films, name):
    model = load_model(shelf.paths[name])
    among_others = predict(model, [new_films.store], new_films.manifest).table
    alone = predict(model, [new_films.store], new_films.manifest, movies={"g0"}).table
    expected = among_others[among_others["movie"] == "g0"].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, expected, check_exact=True)
