"""What films left out show travels with a model, to every door that states its numbers."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from obygaze_features.manifest import Clip, Manifest
from obygaze_features.store import Store, open_store
from obygaze_features.store.testing import seal_arrays
from obygaze_models.commands.predict_commands import _predictions_table
from obygaze_models.dataset import load_dataset
from obygaze_models.evaluation import Run
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
from obygaze_models.prediction.saved_model import Model, load_model


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


class SavedBottleneck(NamedTuple):
    """A saved bottleneck, its run, and the store of two films, new1 and new2, that it was not trained on."""

    model: Model
    new_films: Store
    run: Run


def keep_bottleneck(folder, *, n_films, n_clips, shift):
    """Train and keep a bottleneck on films whose S clips lie `shift` higher in one feature."""
    films = [f"film{number}" for number in range(n_films)]
    store, manifest = corpus(folder, "films", films, n_clips, shift)
    new_films, _ = corpus(folder, "new", ["new1", "new2"], n_clips=20, shift=shift, seed=1)
    data = load_dataset(store, manifest)
    run = evaluate(data, ["pcbm_lr"], "hn_s")
    (path,) = save_models(run, data, ["pcbm_lr"], folder / "models").values()
    return SavedBottleneck(load_model(path), new_films, run)


@pytest.fixture(scope="module")
def noise(tmp_path_factory):
    """A bottleneck of 24 clips whose features are noise."""
    return keep_bottleneck(tmp_path_factory.mktemp("noise"), n_films=4, n_clips=6, shift=0.0)


@pytest.fixture(scope="module")
def skilled(tmp_path_factory):
    """A bottleneck of 100 clips, in which S is told by four SDs of one feature."""
    return keep_bottleneck(tmp_path_factory.mktemp("skilled"), n_films=5, n_clips=20, shift=4.0)


@pytest.mark.long
def test_a_model_of_noise_gives_the_share_of_positives_and_every_clip_is_flagged(noise):
    """Features say nothing of the level, and half of the training clips are S: p is about one half.

    Two new films have 40 clips, of which a few may be unlike the training clips and get no p.
    """
    predictions = predict(noise.model, [noise.new_films])

    p = predictions.table["p"].dropna()
    assert len(p) > 30
    assert p.between(0.3, 0.7).all()
    assert predictions.has(NO_SKILL).all()
    in_json = document(predictions, noise.model, [noise.new_films])
    assert in_json["model"]["no_skill"] is True
    card = noise.model.card
    assert predictions.evidence == evidence_line(card.evidence, card.levels_left_out)


@pytest.mark.long
def test_the_evidence_of_a_card_is_the_auc_and_the_numbers_of_clips_and_films_of_the_evaluation(skilled):
    """The model was evaluated on five films of 20 clips, in which one feature tells the level."""
    evidence = skilled.model.card.evidence

    metrics = skilled.run.metrics.set_index(["model", "metric"])
    auc_of_evaluation = metrics.loc[("pcbm_lr", "auc"), "movie_mean"]
    assert evidence["auc"] == pytest.approx(auc_of_evaluation)
    assert evidence["n_clips"] == 5 * 20
    assert evidence["n_movies"] == 5
    assert evidence["p_skilled"] > 0.99


@pytest.mark.long
def test_clips_that_a_skilled_model_scores_are_not_flagged(skilled):
    """One feature tells the level in the training clips and in the two new films."""
    predictions = predict(skilled.model, [skilled.new_films])

    assert not predictions.has(NO_SKILL).any()


@pytest.mark.parametrize("name", ["noise", "skilled"])
def test_an_explanation_begins_with_the_evidence(request, name):
    """Evidence is how well the model told clips of films left out; its card has it, and one line states it.

    One model was trained on noise, the other on features that tell the level.
    """
    saved = request.getfixturevalue(name)
    card = saved.model.card

    explanation = explain(saved.model, [saved.new_films], clip_id="new1-03", set_to={})

    first_line = describe(explanation, saved.model).split("\n")[0]
    assert first_line == evidence_line(card.evidence, card.levels_left_out)
    assert explanation.no_skill == card.no_skill


def test_an_explanation_writes_its_threshold_as_a_probability(skilled):
    """A threshold of 0.004 is below 0.01, and not 0.00, which any clip would reach."""
    explanation = explain(skilled.model, [skilled.new_films], clip_id="new1-03", set_to={})
    text = describe(replace(explanation, threshold_p=0.004), skilled.model)
    assert "; threshold below 0.01\n" in text


def test_an_explanation_writes_no_minus_before_what_rounds_to_0(skilled):
    """A logit of -0.0001 is 0.000, as the numbers of tables and sentences are."""
    explanation = explain(skilled.model, [skilled.new_films], clip_id="new1-03", set_to={})
    text = describe(
        replace(explanation, decision=replace(explanation.decision, logit=-0.0001)), skilled.model
    )
    assert "  logit        0.000; threshold" in text


def test_a_table_of_predictions_never_writes_a_probability_above_0_as_0(skilled):
    """A clip is given the probability .285, with an interval from .004 to .3.

    The printed table has two decimals: .285 is rounded up, and .004 is "<0.01", not "0.00".
    """
    predictions = predict(skilled.model, [skilled.new_films])
    row_of_clip = predictions.table.head(1).assign(p=0.285, p_low=0.004, p_high=0.3)

    table = _predictions_table(replace(predictions, table=row_of_clip))

    last_line = table.split("\n")[-1]
    _clip, _film, p, p_low, p_high, *_others = last_line.split()
    assert p == "0.29"
    assert (p_low, p_high) == ("<0.01", "0.30")


def test_the_interval_of_an_auc_of_1_or_0_on_all_films_ends_where_that_has_a_probability_of_2_5_percent():
    """On each of six films a model has an AUC of 1; another has an AUC of 0 on each of two films.

    The films' AUCs do not vary, so the interval is computed otherwise. If the true AUC is A, a pair of clips
    is in the right order with the probability A, and one pair of each of six films is with A**6. The lower
    end of the interval is the A for which that is .025, the upper end 1. Of two films, both pairs are in the
    wrong order with the probability (1 - A)**2, which gives the upper end.
    """
    of_six_films_always_right = auc_interval([1.0] * 6)
    of_two_films_always_wrong = auc_interval([0.0, 0.0])

    assert of_six_films_always_right.low**6 == pytest.approx(0.025)
    assert of_six_films_always_right.high == 1
    assert of_two_films_always_wrong.low == 0
    assert (1 - of_two_films_always_wrong.high) ** 2 == pytest.approx(0.025)


def test_films_of_one_class_leave_the_auc_undefined_and_are_counted_as_tested():
    """Film A has negative clips alone, film B positive ones: within neither are there pairs to order."""
    clip_ids = np.array(["a", "b", "c", "d"])
    movies = np.array(["A", "A", "B", "B"])
    labels = np.array([0, 0, 1, 1])
    scores = np.array([0.0, 1.0, 2.0, 3.0])

    evidence = collect_evidence(as_left_out(clip_ids, movies, labels, scores), p_skilled=None)

    assert evidence["n_clips"] == 4
    assert evidence["n_movies"] == 2
    assert evidence["auc"] is None
    assert may_be_chance(evidence)


def test_scores_worse_than_chance_are_no_skill():
    """In six films, positive clips score about three standard deviations lower than negative ones."""
    clip_ids = np.arange(60)
    movies = np.repeat(np.arange(6), 10)
    labels = np.tile([0, 1], 30)
    scores = np.random.default_rng(0).normal(size=60) - 3 * labels

    evidence = collect_evidence(as_left_out(clip_ids, movies, labels, scores), p_skilled=0.02)

    assert evidence["auc_high"] < 0.5
    assert may_be_chance(evidence)


def test_the_interval_says_its_level_and_that_it_is_of_the_models_that_were_tested():
    """The AUC of a model on films left out is .67, with an interval from .5 to .8."""
    evidence = Evidence(n_clips=7, n_movies=4, auc=0.67, auc_low=0.5, auc_high=0.8, p_skilled=0.95)

    text = describe_evidence(evidence)

    assert "[.50, .80] (95 %, of the models" in text
