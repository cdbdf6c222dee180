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


@pytest.fixture(scope="module")
def tree(trained_models):
    """A model that decides by a tree of concepts."""
    return load_model(trained_models.paths["pcbm_dt"])


@pytest.fixture(scope="module")
def twenty_explanations(tree, new_films):
    """(features, explanation) of the first clips of new films that have a probability."""
    group = new_films.store["descriptors"]
    table = predict(tree, [new_films.store]).table
    explanations = []
    for clip_id in table["clip_id"][table["p"].notna()].head(20):
        row = list(group.clip_ids).index(clip_id)
        explained = explain(tree, [new_films.store], clip_id, set_to={})
        explanations.append((group.pooled()[[row]], explained))
    return explanations


def mean_probability_at_values_of_training_clips(model, clip, concept):
    """Set a clip's concept to the values of which 2.5 %, 7.5 %, ... 97.5 % of training clips are below."""
    probabilities = []
    for quantile in USUAL_QUANTILES.tolist():
        logit = model.intervene(clip, {concept: quantile})
        probabilities.append(model.calibration.probability(logit)[0])
    return np.mean(probabilities)


def texts_of_reasons(explained):
    """Return the concepts that speak for the decision, and those that speak against it."""
    reasons = _reasons(_concept_rows(explained), near_chance=())
    texts_for = [reason.text for reason in reasons["for it"]]
    texts_against = [reason.text for reason in reasons["against it"]]
    return texts_for, texts_against


def test_a_tree_compares_a_clips_probability_with_the_mean_over_the_usual_values_of_a_concept(
    tree, twenty_explanations
):
    """The explanation of a clip says for each concept by how much it changes the clip's probability.

    The concept is set to twenty values that training clips have, their quantiles, and all else stays. The
    change is the clip's probability less the mean of the twenty: a tree jumps between values, so that one
    usual value would say little.
    """
    for clip, explained in twenty_explanations:
        concepts = [contribution.concept for contribution in explained.parts.contributions]
        for concept, change in zip(concepts, explained.changes, strict=True):
            usual_probability = mean_probability_at_values_of_training_clips(tree, clip, concept)
            assert change == pytest.approx(explained.decision.p - usual_probability)


def test_a_concept_speaks_for_a_clip_where_other_values_of_it_would_lower_the_probability(
    tree, twenty_explanations
):
    """A concept is a reason if its value moves the probability by .01 or more, up for and down against.

    That is compared with the mean over the values that training clips have of it. A tree has reasons without
    "more than usual", since more of a concept may speak for a clip as well as against it.
    """
    n_reasons = 0
    for clip, explained in twenty_explanations:
        texts_for, texts_against = texts_of_reasons(explained)
        n_reasons += len(texts_for) + len(texts_against)

        for part in explained.parts.contributions:
            usual = mean_probability_at_values_of_training_clips(tree, clip, part.concept)
            effect = explained.decision.p - usual
            assert (part.concept in texts_for) == (effect >= 0.01)
            assert (part.concept in texts_against) == (effect <= -0.01)
        assert "than usual" not in describe(explained, tree)

    assert n_reasons > 10


def tree_of_two_concepts_that_matter_together():
    """Fit a tree on 800 clips of eight films; return it, and the values of Look and Speech of each clip.

    Speech speaks for the positive class where there is a look, and against it where there is none.
    """
    rng = np.random.default_rng(3)
    values = rng.normal(size=(800, 2))
    look, speech = values.T
    p = 1 / (1 + np.exp(-3 * look * speech))
    movies = np.repeat(np.arange(8), 100)
    tree = ConceptBottleneck("tree").fit(values, rng.random(800) < p, groups=movies)
    return tree, values


def test_what_a_concept_adds_along_the_path_of_a_tree_may_have_another_sign_than_its_effect():
    """That is why the reasons of a tree are effects, and not contributions along a clip's path.

    The contribution is what a concept adds to the logit in the branches where the tree asks for it. The
    effect is the clip's logit less its logit with the concept at usual values (a mean over several of these).
    Of a tree of two concepts that matter together, the two have opposite signs for more than 5 % of clips and
    concepts, even where both are clearly not 0 (.3 and .1).
    """
    tree, values = tree_of_two_concepts_that_matter_together()

    _, contributions, _ = tree.contributions(values)
    logits = tree.decision_function(values)

    has_other_sign = np.zeros(values.shape, np.bool_)
    for index, concept in enumerate(tree.concepts_):
        usual_logits = tree.logits_at_usual(values, concept).mean(axis=1)
        effects = logits - usual_logits
        are_clear = (np.abs(effects) > 0.3) & (np.abs(contributions[:, index]) > 0.1)
        has_other_sign[:, index] = are_clear & (effects * contributions[:, index] < 0)
    assert has_other_sign.mean() > 0.05


def test_with_a_linear_head_the_usual_logit_is_the_logit_without_the_contribution():
    """A model decides by two concepts and a linear function of them; 200 clips are of four films.

    Where concept 0 is set to its usual value, its contribution is 0, and the rest of the logit stays.
    """
    rng = np.random.default_rng(1)
    values = rng.normal(size=(200, 2))
    labels = rng.random(200) < 1 / (1 + np.exp(-values[:, 0]))
    movies = np.repeat(np.arange(4), 50)
    model = ConceptBottleneck().fit(values, labels, groups=movies)

    logits_at_usual = model.logits_at_usual(values, "concept0")

    _, contributions, _ = model.contributions(values)
    contributions_of_concept_0 = contributions[:, 0]
    expected = model.decision_function(values) - contributions_of_concept_0
    assert logits_at_usual.shape == (200, 1)
    np.testing.assert_allclose(logits_at_usual[:, 0], expected, atol=1e-12)
