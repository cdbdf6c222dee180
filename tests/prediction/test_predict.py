"""Models that are kept, applied to films that they have not seen, and asked why."""

import csv
import io
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from obygaze_features.errors import OutputError, StoreError
from obygaze_features.manifest import load_codebook
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays
from obygaze_models.commands.predict_remarks import remarks
from obygaze_models.dataset import load_dataset
from obygaze_models.errors import ConceptError, ModelError
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.persistence.model_file import read_model
from obygaze_models.prediction.calibration import calibration_error
from obygaze_models.prediction.explain import describe, explain, parse_settings
from obygaze_models.prediction.final import save_models, train_final
from obygaze_models.prediction.predict import COLUMNS, document, predict
from obygaze_models.prediction.saved_model import load_model
from tests.planted_models import MODELS, corpus, kept_alike

DECIDING = (*MODELS, "cav")


@pytest.fixture(scope="module")
def more(tmp_path_factory):
    """Two films that the models have not seen, and one that they have."""
    return corpus(tmp_path_factory.mktemp("more"), "more", ("g1", "g0", "f0"), seed=1, per_film=60)


@pytest.fixture(scope="module")
def alien(tmp_path_factory):
    """A film unlike the others: every feature lies 30 deviations away."""
    return corpus(tmp_path_factory.mktemp("alien"), "alien", ("g8",), seed=2, shift=30.0)[0]


@pytest.mark.parametrize("name", [*DECIDING, "bank"])
def test_a_model_that_was_kept_is_the_model_that_was_trained(shelf, tmp_path, name):
    loaded = kept_alike(shelf.paths[name], tmp_path)
    if name in MODELS:
        from obygaze_models.models.registry import BUILTIN_MODELS

        trained = train_final(shelf.data, BUILTIN_MODELS[name], shelf.run, licence="CC-BY-4.0", citation="us")
        X = shelf.data.X
        assert trained.logits(X).tobytes() == loaded.logits(X).tobytes()
        assert trained.card.to_json() == loaded.card.to_json()
        np.testing.assert_array_equal(
            trained.out_of_distribution_share(X), loaded.out_of_distribution_share(X)
        )


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


@pytest.mark.parametrize("name", DECIDING)
def test_a_film_left_out_is_called_as_planted_and_its_probabilities_are_calibrated(shelf, more, name):
    store, manifest = more
    found = predict(load_model(shelf.paths[name]), [store], manifest).table
    new = found[found["movie"] != "f0"].set_index("clip_id")
    clips = {clip.clip_id: clip for clip in manifest.clips if clip.clip_id in new.index}
    if name == "cav":
        truth = {key: int("Gun" in clip.concepts) for key, clip in clips.items()}
    else:
        truth = {key: int(clip.level == "violent") for key, clip in clips.items() if clip.level != "unsure"}
    new = new.loc[[key for key in truth if new.loc[key, "flags"] != "unlike"]]
    assert len(new) > 90
    y = np.array([truth[key] for key in new.index])
    assert (new["called"].to_numpy(dtype=int) == y).mean() > 0.8
    assert calibration_error(y, new["p"], n_bins=4) < 0.15
    assert (new["p_low"] <= new["p"]).all()
    assert (new["p"] <= new["p_high"]).all()


def test_a_table_has_the_columns_of_the_specification_in_the_order_of_movie_and_time(shelf, more):
    store, manifest = more
    table = predict(load_model(shelf.paths["pcbm_lr"]), [store], manifest).table
    concepts = [f"{c}_{part}" for c in ("Gun", "Dim light") for part in ("value", "p", "contribution")]
    assert tuple(table.columns) == (*COLUMNS, *concepts, "base_contribution")
    assert table["movie"].tolist() == ["f0"] * 60 + ["g0"] * 60 + ["g1"] * 59
    for _, film in table.groupby("movie"):
        assert film["start_s"].is_monotonic_increasing
    assert set(table["video"]) == {"f0.mp4", "g0.mp4", "g1.mp4"}
    assert set(table.loc[table["movie"] == "f0", "flags"]) <= {"trained_on", "unlike;trained_on"}
    linear = predict(load_model(shelf.paths["linear"]), [store]).table
    assert tuple(linear.columns) == COLUMNS
    assert set(linear["video"]) == {""}


@pytest.mark.parametrize("name", ["pcbm_lr", "pcbm_dt"])
def test_contributions_add_up_to_the_logit_in_the_file_too(shelf, more, name):
    text = predict(load_model(shelf.paths[name]), [more[0]]).to_csv()
    rows = list(csv.DictReader(io.StringIO(text)))
    checked = 0
    for row in rows:
        if "unlike" not in row["flags"]:
            total = sum(float(cell) for column, cell in row.items() if column.endswith("_contribution"))
            assert total == pytest.approx(float(row["logit"]), abs=1e-9)
            checked += 1
    assert checked > 150


def test_probabilities_of_concepts_are_those_of_the_planted_concepts(shelf, more):
    store, manifest = more
    table = predict(load_model(shelf.paths["bank"]), [store]).table.set_index("clip_id")
    assert table[["logit", "p", "called"]].isna().all().all()
    concepts_of = {clip.clip_id: clip.concepts for clip in manifest.clips}
    for concept in ("Gun", "Dim light"):
        p = table[f"{concept}_p"].dropna()
        there = np.array([concept in concepts_of[key] for key in p.index])
        assert ((p > 0.5) == there).mean() > 0.85
        assert calibration_error(there, p, n_bins=4) < 0.15
    assert not [column for column in table.columns if column.endswith("contribution")]


@pytest.mark.parametrize("name", DECIDING)
def test_of_a_film_unlike_the_training_films_nothing_is_said(shelf, alien, name):
    model = load_model(shelf.paths[name])
    found = predict(model, [alien])
    assert found.has("unlike").all()
    unknown = [c for c in found.table.columns if c.startswith("p") or c.endswith(("_p", "_contribution"))]
    assert found.table[[*unknown, "called"]].isna().all().all()
    assert found.table["unlike"].min() > 0.99
    # The alien film is hundreds of training deviations away in the feature that does not vary.
    if name in ("linear", "mlp"):
        assert found.table["logit"].abs().max() < 100
    shown = document(found, model, [alien])
    assert {clip["p"] for clip in shown["clips"]} == {None}
    json.dumps(shown, allow_nan=False)


def test_clips_without_features_are_counted_by_reason_and_several_stores_are_one_table(shelf, more, alien):
    model = load_model(shelf.paths["linear"])
    found = predict(model, [alien, more[0]])
    assert found.excluded == {"failed: the file is empty (0 bytes)": ["g8-00", "g1-00"]}
    assert len(found.table) == 29 + 179
    assert found.table["movie"].is_monotonic_increasing
    with pytest.raises(ModelError, match="g8-00"):
        predict(model, [alien, alien])


def test_what_is_said_beside_predictions_counts_clips_and_takes_no_name_for_a_sentence(shelf, more, alien):
    model = load_model(shelf.paths["linear"])
    predicted = predict(model, [alien, more[0]])
    broken = replace(predicted, excluded={"failed: cut.mkv\nAll is well": ["g8-00", "g1-00"]})
    lines = remarks(broken, model)
    unlike = predicted.has("unlike")
    n_unlike, n_of_alien = int(unlike.sum()), int(unlike[predicted.table["movie"] == "g8"].sum())
    n_known = int(predicted.has("trained_on").sum())
    assert all("\n" not in line and "\r" not in line for line in lines)
    assert lines[0] == predicted.evidence
    assert f"{n_unlike} not judged" in lines[1]
    assert lines[2].startswith(f"{n_known} clips")
    assert any(line.startswith("g8: ") and f"{n_of_alien} of 29" in line for line in lines)
    assert lines[-1].startswith("excluded 2: failed: cut.mkv")
    assert "All is well" in lines[-1]


def test_one_clip_is_no_plural(shelf, more):
    model = load_model(shelf.paths["linear"])
    predicted = predict(model, [more[0]])
    is_known = predicted.has("trained_on")
    one = replace(predicted, table=predicted.table[is_known].head(1))
    lines = remarks(one, model)
    assert "of 1 clip called positive" in lines[1]
    assert lines[2] == "1 clip is of a film that the model was trained on: its score is no prediction"
    assert not any(re.search(r"(?<!\d)1 (clips|films)", line) for line in lines)


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"sampling": {"policy": "uniform", "n": 8}}, r"sampling\.n is 8, was 2"),
        ({"weights_sha256": "a" * 64}, "weights_sha256"),
        ({"untrained": True}, "untrained"),
    ],
)
def test_features_made_otherwise_are_refused_by_the_first_field_that_differs(shelf, tmp_path, changed, place):
    store, _ = corpus(tmp_path, "other", ("g9",), **changed)
    with pytest.raises(ModelError, match=place):
        predict(load_model(shelf.paths["linear"]), [store])


@pytest.mark.parametrize(("backbone", "width"), [("descriptors", 9), ("clip", 8)])
def test_another_backbone_and_another_width_are_refused(shelf, tmp_path, backbone, width):
    groups = {backbone: {"pooled": np.zeros((2, width), dtype=np.float32)}}
    store = open_store(seal_arrays(tmp_path / "other", {"x": "m", "y": "m"}, groups))
    with pytest.raises(ModelError, match=f"{width} features" if width == 9 else backbone):
        predict(load_model(shelf.paths["linear"]), [store])


# Why, and what if.


@pytest.mark.parametrize("name", ["pcbm_lr", "pcbm_dt"])
def test_an_intervention_is_what_computing_anew_gives(shelf, more, name):
    model = load_model(shelf.paths[name])
    X = more[0]["descriptors"].pooled()[3:9]
    values = model.concept_values(X)
    bottleneck = model.estimator
    from obygaze_models.concepts.head_scores import head_scores

    for quantile in (0.0, 0.05, 0.5, 0.95, 1.0):
        changed = values.copy()
        changed[:, 0] = np.quantile(bottleneck.train_values_[:, 0], quantile)
        expected = head_scores(bottleneck.head_, changed)
        np.testing.assert_allclose(model.intervene(X, {"Gun": quantile}), expected, atol=1e-12)
    # The file's quantiles are those of the training clips' cross-fitted values.
    from obygaze_models.models.registry import BUILTIN_MODELS

    trained = train_final(shelf.data, BUILTIN_MODELS[name], shelf.run)
    np.testing.assert_allclose(
        trained.intervene(X, {"Gun": 0.9}), model.intervene(X, {"Gun": 0.9}), atol=1e-9
    )


def test_an_explanation_names_the_levels_of_the_calibration_and_what_is_not_shown_to_be_found(shelf, more):
    model, store = load_model(shelf.paths["pcbm_lr"]), more[0]
    found = explain(model, [store], store.clips[0].clip_id, {})
    rows = {row["task"]: row for row in model.card.metrics if "movie_chance" in row}
    for concept in model.concepts:
        row = rows[f"concept:{concept}"]
        assert (concept in found.near_chance) == (not row["movie_low"] > row["movie_chance"])
    positive = model.card.target["classes"][1]
    negative = [level for level in model.card.population["clips"] if level not in positive]
    side = positive if found.decision.called else negative
    assert f"({' or '.join(side)})" in describe(found, model)


@pytest.mark.parametrize("name", ["pcbm_lr", "pcbm_dt"])
def test_an_explanation_has_the_decision_its_parts_and_what_would_change_it(shelf, more, name):
    model, store = load_model(shelf.paths[name]), more[0]
    table = predict(model, [store]).table
    clip = table[(table["called"] == 0) & (table["Gun_value"] < 0)].iloc[0]
    found = explain(model, [store], clip["clip_id"], {"Gun": 0.95})
    assert found.decision.logit == pytest.approx(clip["logit"], abs=1e-12)
    assert found.decision.p == pytest.approx(clip["p"])
    assert found.changed.p > found.decision.p
    assert found.changed.called
    assert found.ends[0][1].logit == pytest.approx(found.changed.logit)


@pytest.mark.parametrize("name", ["pcbm_lr", "bank"])
def test_a_concept_is_seen_where_its_plane_and_its_probability_say_so(shelf, more, name):
    model = load_model(shelf.paths[name])
    X = more[0]["descriptors"].pooled()[more[0]["descriptors"].usable]
    bank = model.estimator if name == "bank" else model.estimator.bank_
    scaled = X if bank.scaler_ is None else bank.scaler_.transform(X)
    by_plane = bank.hyperplanes_.decisions(scaled) >= 0
    p = model.concept_probabilities(X)
    seen = p >= model.concept_thresholds
    np.testing.assert_array_equal(seen, by_plane & (p >= 0.5))
    assert 0 < seen.mean() < 1
    assert load_model(shelf.paths["linear"]).concept_thresholds.size == 0


def test_each_reason_has_the_direction_of_the_probability_and_what_is_seen_is(shelf, more):
    model = load_model(shelf.paths["pcbm_lr"])
    table = predict(model, [more[0]]).table
    for clip in table[table["p"].notna()].head(20).to_dict(orient="records"):
        found = explain(model, [more[0]], clip["clip_id"], {})
        there = {
            name
            for name, threshold in zip(model.concepts, model.concept_thresholds, strict=True)
            if clip[f"{name}_p"] >= threshold
        }
        assert set(found.seen) == there
        text = describe(found, model)
        reasons = dict(re.findall("^(for it|against it): (.*)$", text, re.MULTILINE))
        for part, change in zip(found.parts.contributions, found.changes, strict=True):
            logit = np.array([found.decision.logit - part.contribution])
            assert change == pytest.approx(found.decision.p - model.calibration.probability(logit)[0])
            named = [side for side, said in reasons.items() if f" {part.concept} than usual" in said]
            assert named == ([] if abs(change) < 0.01 else ["for it" if change > 0 else "against it"])
            if named:
                amount = "more" if part.value > part.usual else "less"
                assert f"{amount} {part.concept} than usual" in reasons[named[0]]


def test_of_a_clip_unlike_any_only_that_is_said(shelf, alien):
    model = load_model(shelf.paths["pcbm_lr"])
    found = explain(model, [alien], "g8-07", {"Gun": 0.5})
    assert (found.parts, found.decision.p, found.changed) == (None, None, None)
    assert found.decision.called is None


def test_what_is_out_of_distribution_is_far_from_the_clips_of_other_films(shelf, alien):
    """A clip may be so that the model was trained on: then no sentence may say that it was not."""
    model = load_model(shelf.paths["pcbm_lr"])
    told = [*remarks(predict(model, [alien]), model)]
    told.append(describe(explain(model, [alien], "g8-07", {}), model))
    far = [text for text in told if "farther from the training clips" in text]
    assert len(far) == 2
    assert all("of other films" in text for text in far)


@pytest.mark.parametrize("text", ["Gun", "Gun=", "Gun=high", "Gun=95", "=0.5", "Gun=nan", "Gun=-0.1"])
def test_settings_that_are_none_are_refused(text):
    with pytest.raises(ConceptError):
        parse_settings([text])


def test_settings_may_hold_equals_signs_and_are_set_once():
    assert parse_settings(["a=b=0.5", "Gun=1"]) == {"a=b": 0.5, "Gun": 1.0}
    with pytest.raises(ConceptError, match="Gun"):
        parse_settings(["Gun=0.5", "Gun=1"])


# What is kept.


def test_a_card_says_what_the_model_is(shelf):
    card = read_model(shelf.paths["pcbm_lr"]).card
    assert (card.codebook, card.concepts) == (shelf.run.record["codebook"], ("Gun", "Dim light"))
    assert card.movies == ("f0", "f1", "f2", "f3", "f4", "f5")
    assert (card.licence, card.citation) == ("CC-BY-4.0", "us")
    assert read_model(shelf.paths["cav"]).card.licence == "NOASSERTION"
    assert card.calibration["error"] < 0.1
    assert str(shelf.folder).encode() not in shelf.paths["pcbm_lr"].read_bytes()


def test_what_can_not_be_kept_is_refused_and_nothing_is_written(shelf, tmp_path):
    for name, place in (("movie_prior", "movie_prior"), ("liner", "'liner' .*'linear'")):
        with pytest.raises(ModelError, match=place):
            save_models(shelf.run, shelf.data, ["linear", name], tmp_path / "new")
    with pytest.raises(StoreError, match="licence"):
        save_models(shelf.run, shelf.data, ["linear"], tmp_path / "new", licence="free for all")
    assert not (tmp_path / "new").exists()
    with pytest.raises(OutputError, match=r"linear\.model"):
        save_models(shelf.run, shelf.data, ["linear"], shelf.folder / "models")


@pytest.mark.parametrize("name", [*DECIDING, "bank"])
def test_a_film_scored_alone_has_the_numbers_that_it_has_among_others(shelf, more, name):
    store, manifest = more
    model = load_model(shelf.paths[name])
    every = predict(model, [store], manifest).table
    alone = predict(model, [store], manifest, movies={"g0"}).table
    expected = every[every["movie"] == "g0"].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, expected, check_exact=True)
