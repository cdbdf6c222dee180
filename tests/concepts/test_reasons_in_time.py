"""A reason of a concept in time says whether it is how much of it there is, or when, that moves the score."""

from dataclasses import replace

import numpy as np
import pytest

from obygaze_film.score import score_film
from obygaze_film.segments import _reasons_by_contribution
from obygaze_models.dataset import load_dataset
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.models.registry import BUILTIN_MODELS
from obygaze_models.prediction.explain import describe, explain
from obygaze_models.prediction.final import save_models
from obygaze_models.prediction.saved_model import load_model
from tests.planted_frames import seal_films

pytestmark = pytest.mark.long  # trains a concept bottleneck in time

N_FRAMES = 12
FILMS = range(5)
NEW_FILM = 8


def early_or_late_bodies(folder, name, films, n_per_film, seed):
    """Plant bodies whose time decides: a clip is S where its body comes early."""
    rng = np.random.default_rng(seed)
    movies = np.repeat(films, n_per_film)
    frames = rng.normal(size=(len(movies), N_FRAMES, 8)).astype(np.float32)
    frame_of_body = rng.integers(N_FRAMES, size=len(movies))
    has_body = rng.random(len(movies)) < 0.5
    clips_with_body = np.flatnonzero(has_body)
    frames[clips_with_body, frame_of_body[clips_with_body], 0] += 8

    logit = np.where(has_body, 0.8 * (N_FRAMES / 2 - frame_of_body), 0.0)
    is_sexualised = rng.random(len(movies)) < 1 / (1 + np.exp(-logit))
    concepts = [("Body",) if present else () for present in has_body]
    arrays = {"pooled": frames.mean(axis=1), "frames": frames}
    return seal_films(folder, arrays, movies, is_sexualised, n_frames=N_FRAMES, name=name, concepts=concepts)


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    """The file of a `pcbm_time` that learnt that early bodies are S."""
    folder = tmp_path_factory.mktemp("early")
    store, manifest = early_or_late_bodies(folder, "films", FILMS, n_per_film=80, seed=0)
    data = load_dataset(store, manifest)
    spec = replace(BUILTIN_MODELS["pcbm_time"], compared_with=())
    run = evaluate(data, [spec], "hn_s")
    return save_models(run, data, ["pcbm_time"], folder / "models", models=[spec])["pcbm_time"]


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    """The store of a film that the model has not seen."""
    store, _ = early_or_late_bodies(tmp_path_factory.mktemp("new"), "new", [NEW_FILM], n_per_film=40, seed=1)
    return store


def test_more_body_is_a_reason_only_where_the_presence_of_the_body_moves_the_score_that_way(model_file, film):
    """The model knows one concept, Body, and learnt that the time of a body decides: an early one is S.

    If an early body raises the score, "earlier Body than usual" is the reason. "More Body than usual" would
    be wrong where the score stays, or rises, when the presence is set to its usual value. Most reasons here
    are of time.
    """
    model = load_model(model_file)
    frames = film["toy"].frames()
    presence = 0  # column of the concept values of a clip: the presence of the body, then its position
    n_amounts = 0
    n_times = 0
    for row, clip_id in enumerate(film["toy"].clip_ids):
        explained = explain(model, [film], clip_id, {})
        if explained.is_unlike:
            continue
        (part,) = explained.parts.contributions  # of the body

        # when the presence of the body alone is set to its usual value
        clip_alone = frames[row : row + 1]
        values = model.estimator._concept_values(clip_alone)
        values[0, presence] = part.usual
        (logit_with_usual_presence,) = model.estimator._logits(clip_alone, values)
        effect_of_presence = explained.decision.logit - logit_with_usual_presence

        # then a word on the amount has the sign of that effect, and the text has the words
        assert part.contribution - part.position_contribution == pytest.approx(effect_of_presence)
        if part.amount:
            n_amounts += 1
            assert np.sign(effect_of_presence) == np.sign(part.contribution)
        if part.time:
            n_times += 1
            assert np.sign(part.position_contribution) == np.sign(part.contribution)
        is_reason = abs(explained.changes[0]) >= 0.01
        if is_reason and part.time and not part.amount:
            assert f"Body {part.time} than usual" in describe(explained, model)
    assert n_times > n_amounts


def test_early_bodies_speak_for_s_and_late_ones_against_it(model_file, film):
    """The training films were made so: a clip is S mostly if its body comes in the first half of the frames.

    The contribution of Body, the only concept, must have the sign that was planted wherever the time alone is
    named as what makes it, and not how much of the body there is.
    """
    model = load_model(model_file)
    for clip_id in film["toy"].clip_ids:
        explained = explain(model, [film], clip_id, {})
        if explained.is_unlike:
            continue
        (part,) = explained.parts.contributions
        is_made_by_time_alone = part.time and not part.amount
        if is_made_by_time_alone:
            assert (part.time == "earlier") == (part.contribution > 0)


def test_a_scored_film_says_more_or_less_only_where_the_amount_has_the_sign_of_the_effect(model_file, film):
    """The reason of a passage says "more" or "less" Body, or no amount if its time is what counts.

    Here each step of a scored film is taken as a passage. The amount of the body adds to the logit the weight
    of the concept times (value - usual value); it is named exactly if this has the sign of the whole
    contribution. More than 5 steps have such a word and more than 5 have none, so that both are tested.
    """
    scored = score_film(film, [model_file], movie=f"film{NEW_FILM}")
    (model,) = scored.record.models
    (concept,) = model.concepts
    steps = scored.rows().dropna(subset="Body_contribution")
    n_with_amount = 0
    n_without_amount = 0
    for row in range(len(steps)):
        step = steps.iloc[[row]]
        columns_of_step = {name: step[name].to_numpy() for name in steps.columns}  # each of one row
        (reason,) = _reasons_by_contribution(columns_of_step, weights=np.ones(1), model=model)
        (value,) = columns_of_step["Body_value"]
        effect_of_amount = concept.weight * (value - concept.usual)
        has_sign_of_amount = effect_of_amount * reason.contribution > 0
        names_amount = reason.amount != ""
        assert names_amount == has_sign_of_amount
        if names_amount:
            n_with_amount += 1
        else:
            n_without_amount += 1
    assert n_without_amount > 5
    assert n_with_amount > 5
