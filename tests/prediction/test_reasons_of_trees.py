"""The reasons of a tree have the sign of what it does when a concept is moved, not that of a clip's path."""

import numpy as np
import pytest

from obygaze_models.concepts.bottleneck import USUAL_QUANTILES, ConceptBottleneck
from obygaze_models.prediction.explain import _concept_rows, _reasons, describe, explain
from obygaze_models.prediction.predict import predict
from obygaze_models.prediction.saved_model import load_model
from tests.planted_models import corpus


@pytest.fixture(scope="module")
def new_films(tmp_path_factory):
    """Two films that no model of the shelf has seen."""
    return corpus(tmp_path_factory.mktemp("new"), "new", ("n0", "n1"), seed=5)


def test_a_concept_speaks_for_a_clip_where_other_values_of_it_would_lower_the_probability(
    trained_models, new_films
):
    """A concept of a tree has no usual value: it is set to the values that training clips have.

    Of each concept the explanation says by how much the probability is above the mean of theirs.
    """
    model = load_model(trained_models.paths["pcbm_dt"])
    table = predict(model, [new_films.store]).table
    group = new_films.store["descriptors"]
    n_reasons = 0
    for clip_id in table["clip_id"][table["p"].notna()].head(20):
        # given a clip
        clip = group.pooled()[[list(group.clip_ids).index(clip_id)]]
        explained = explain(model, [new_films.store], clip_id, {})

        # when each concept is set to the values of training clips
        for part, change in zip(explained.parts.contributions, explained.changes, strict=True):
            probabilities = []
            for quantile in USUAL_QUANTILES.tolist():
                logit = model.intervene(clip, {part.concept: quantile})
                probabilities.append(model.calibration.probability(logit)[0])
            effect = explained.decision.p - np.mean(probabilities)

            # then the concept is a reason with the sign of the effect, without more or less
            assert change == pytest.approx(effect)
            reasons = _reasons(_concept_rows(explained), near_chance=())
            texts_for = [reason.text for reason in reasons["for it"]]
            texts_against = [reason.text for reason in reasons["against it"]]
            assert (part.concept in texts_for) == (effect >= 0.01)
            assert (part.concept in texts_against) == (effect <= -0.01)
            n_reasons += len(texts_for) + len(texts_against)
        assert "than usual" not in describe(explained, model)
    assert n_reasons > 20


def test_the_contribution_along_a_path_may_have_another_sign_than_the_effect():
    """Speech speaks for the positive class where there is a look, and against it where there is none.

    A path credits a concept with what it adds in the branch where the tree asks for it, so contributions of
    paths decide no reason.
    """
    rng = np.random.default_rng(3)
    values = rng.normal(size=(800, 2))
    look, speech = values.T
    p = 1 / (1 + np.exp(-3 * look * speech))
    movies = np.repeat(np.arange(8), 100)
    model = ConceptBottleneck("tree").fit(values, rng.random(800) < p, groups=movies)

    _, contributions, _ = model.contributions(values)
    has_other_sign = np.zeros(values.shape, np.bool_)
    for index, concept in enumerate(model.concepts_):
        usual_logits = model.logits_at_usual(values, concept).mean(axis=1)
        effects = model.decision_function(values) - usual_logits
        is_clear = (np.abs(effects) > 0.3) & (np.abs(contributions[:, index]) > 0.1)
        has_other_sign[:, index] = is_clear & (effects * contributions[:, index] < 0)
    assert has_other_sign.mean() > 0.05


def test_with_a_linear_head_the_usual_logit_is_the_logit_without_the_contribution():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(200, 2))
    labels = rng.random(200) < 1 / (1 + np.exp(-values[:, 0]))
    model = ConceptBottleneck().fit(values, labels, groups=np.repeat(np.arange(4), 50))
    _, contributions, _ = model.contributions(values)
    logits_at_usual = model.logits_at_usual(values, "concept0")
    assert logits_at_usual.shape == (200, 1)
    expected = model.decision_function(values) - contributions[:, 0]
    np.testing.assert_allclose(logits_at_usual[:, 0], expected, atol=1e-12)
