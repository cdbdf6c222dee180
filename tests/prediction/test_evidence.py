"""What films left out show travels with a model, to every door that states its numbers."""

import re

import numpy as np
import pytest

from obygaze_features.manifest import Clip, Manifest
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays
from obygaze_models.dataset import load_dataset
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.evaluation.intervals import auc_interval
from obygaze_models.persistence.evidence import (
    NO_SKILL,
    Evidence,
    describe_evidence,
    evidence_line,
    may_be_chance,
)
from obygaze_models.prediction.evidence import as_left_out, collect_evidence
from obygaze_models.prediction.explain import describe, explain
from obygaze_models.prediction.final import save_models
from obygaze_models.prediction.predict import document, predict
from obygaze_models.prediction.saved_model import load_model


def corpus(folder, name, films, n_clips, shift, seed=0):
    """Films whose first feature alone lies `shift` higher in clips of S, most of which have Body."""
    rng = np.random.default_rng(seed)
    clips = []
    rows = []
    for film in films:
        for number in range(n_clips):
            level = ["HN", "S"][number % 2]
            concepts = ("Body",) if rng.random() < (0.9 if level == "S" else 0.1) else ()
            clips.append(Clip(f"{film}-{number:02}", film, level=level, concepts=concepts))
            row = rng.normal(size=6)
            if level == "S":
                row[0] += shift
            rows.append(row)
    arrays = {"descriptors": {"pooled": np.array(rows, np.float32)}}
    seal_arrays(folder / name, {clip.clip_id: clip.movie for clip in clips}, arrays)
    return open_store(folder / name), Manifest(tuple(clips), folder)


def kept(folder, n_films, n_clips, shift):
    """A bottleneck of such films, and the store of two new ones."""
    store, manifest = corpus(folder, "films", [f"film{number}" for number in range(n_films)], n_clips, shift)
    new, _ = corpus(folder, "new", ["new1", "new2"], 20, shift, seed=1)
    data = load_dataset(store, manifest)
    run = evaluate(data, ["pcbm_lr"], "hn_s")
    (path,) = save_models(run, data, ["pcbm_lr"], folder / "models").values()
    return load_model(path), new, run


@pytest.fixture(scope="module")
def noise(tmp_path_factory):
    return kept(tmp_path_factory.mktemp("noise"), 4, 6, 0.0)


@pytest.fixture(scope="module")
def skilled(tmp_path_factory):
    return kept(tmp_path_factory.mktemp("skilled"), 5, 20, 4.0)


def test_a_model_of_noise_keeps_its_probabilities_near_the_share_and_every_clip_is_flagged(noise):
    model, new, _ = noise
    predicted = predict(model, [new])
    assert predicted.has(NO_SKILL).all()
    assert predicted.evidence == evidence_line(model.card.evidence, model.card.levels_left_out)
    p = predicted.table["p"].dropna()
    assert len(p) > 30
    assert p.between(0.3, 0.7).all()
    assert document(predicted, model, [new])["model"]["no_skill"] is True


def test_a_skilled_model_is_not_flagged(skilled):
    model, new, run = skilled
    predicted = predict(model, [new])
    assert not predicted.has(NO_SKILL).any()
    metrics = run.metrics[(run.metrics["model"] == "pcbm_lr") & (run.metrics["metric"] == "auc")]
    assert model.card.evidence["auc"] == pytest.approx(metrics["movie_mean"].item())
    assert (model.card.evidence["n_clips"], model.card.evidence["n_movies"]) == (100, 5)
    assert model.card.evidence["p_skilled"] > 0.99


def test_an_explanation_begins_with_the_evidence(noise, skilled):
    for model, new, _ in (noise, skilled):
        explained = explain(model, [new], "new1-03", {})
        assert explained.no_skill == model.card.no_skill
        assert describe(explained, model).split("\n")[0] == evidence_line(
            model.card.evidence, model.card.levels_left_out
        )


def test_an_interval_of_films_that_are_all_right_has_the_bound_of_as_many_pairs():
    """In 6 of 6 films a random pair is right with chance A ** 6: 2.5 % at the bound."""
    interval = auc_interval([1.0] * 6)
    assert interval.low**6 == pytest.approx(0.025)
    assert interval.high == 1
    wrong = auc_interval([0.0, 0.0])
    assert (wrong.low, wrong.high) == (0, pytest.approx(1 - 0.025**0.5))


def test_films_of_one_class_leave_the_auc_undefined_and_are_counted_as_tested():
    labels = np.array([0, 0, 1, 1])
    clips = as_left_out(np.array(list("abcd")), np.array(list("AABB")), labels, np.arange(4.0))
    evidence = collect_evidence(clips, None)
    assert (evidence["n_clips"], evidence["n_movies"], evidence["auc"]) == (4, 2, None)
    assert may_be_chance(evidence)


def test_scores_worse_than_chance_are_no_skill():
    movies = np.repeat(np.arange(6), 10)
    labels = np.tile([0, 1], 30)
    scores = np.random.default_rng(0).normal(size=60) - 3 * labels
    evidence = collect_evidence(as_left_out(np.arange(60), movies, labels, scores), 0.02)
    assert evidence["auc_high"] < 0.5
    assert may_be_chance(evidence)


def test_the_interval_says_its_level_and_that_it_is_of_the_models_that_were_tested():
    few = Evidence(n_clips=7, n_movies=4, auc=0.67, auc_low=0.5, auc_high=0.8, p_skilled=0.95)
    assert re.search(r"\[\.50, \.80\] \(95 %, of the models", describe_evidence(few))
