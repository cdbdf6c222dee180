"""A bottleneck sees clips through their concepts, says so for each clip, and chooses without cheating."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from obygaze_models.concepts import ConceptBank, ConceptBottleneck
from obygaze_models.errors import ConceptError
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.evaluation.metrics import auc, f1_pos

HEADS = ["logistic", "elastic_net", "tree"]
NAMES = ("Body", "Look", "Posture")


@pytest.fixture(scope="module")
def world():
    """The label follows Body, a little Look, and never Posture; each concept has a direction of its own.

    A direction beyond concepts carries some of the label as well.
    """
    rng = np.random.default_rng(0)
    movies = np.repeat(np.arange(8), 60)
    axes = np.linalg.qr(rng.normal(size=(24, 24)))[0][:4]
    present = rng.random((movies.size, 3)) < 0.4
    logit = 3.0 * present[:, 0] + 1.0 * present[:, 1] - 2.0
    y = (rng.random(movies.size) < 1 / (1 + np.exp(-logit))).astype(int)
    X = rng.normal(size=(movies.size, 24)) + 2.5 * present @ axes[:3] + 1.5 * y[:, None] * axes[3]
    X += rng.normal(size=(8, 24))[movies] * 0.3
    return X, y, movies, present


def fitted(world, head="logistic", **settings):
    """Fit a bottleneck on all clips of a world."""
    X, y, movies, present = world
    bank = settings.pop("bank", ConceptBank("ridge", C=0.1, concepts=NAMES))
    return ConceptBottleneck(head, bank=bank, **settings).fit(X, y, movies, present=present)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("residual", [False, True])
def test_a_score_is_base_contributions_and_residual(world, head, residual):
    model = fitted(world, head, residual=residual)
    X = world[0]
    for row in (0, 77, 301):
        explanation = model.explain(X[row])
        by_concepts = sum(part.contribution for part in explanation.contributions)
        total = explanation.base + by_concepts + explanation.residual
        assert total == pytest.approx(float(model.decision_function(X[row : row + 1])[0]), abs=1e-9)
        assert explanation.score == pytest.approx(total)
        assert (explanation.residual != 0) == residual


@pytest.mark.parametrize("head", HEADS)
def test_an_explanation_has_every_concept_with_its_percentile_and_a_path_of_a_tree(world, head):
    explanation = fitted(world, head).explain(world[0][77])
    assert [part.concept for part in explanation.contributions] == list(NAMES)
    assert all(0 <= part.percentile <= 100 for part in explanation.contributions)
    assert bool(explanation.path) == (head == "tree")


def test_a_decision_path_is_the_trees_own(world):
    model = fitted(world, "tree")
    X = world[0]
    for row in range(20):
        path = model.explain(X[row]).path
        values = model.concept_values(X[row : row + 1])
        n_nodes = model.head_.decision_path(values).sum()
        assert len(path) == n_nodes - 1  # the leaf tests nothing
        assert all(step.above == (np.float32(step.value) > step.threshold) for step in path)
        assert path[0].n_train == len(X)


@pytest.mark.parametrize("head", HEADS)
def test_the_concept_that_matters_contributes_most(world, head):
    model = fitted(world, head)
    _, parts, _ = model.contributions(world[0][:60])
    body, look, posture = np.abs(parts).mean(axis=0)
    assert body > look
    assert posture < body / 3


@pytest.mark.parametrize("head", HEADS)
def test_an_intervention_on_the_concept_that_matters_moves_scores_up(world, head):
    X = world[0]
    model = fitted(world, head)
    low = model.intervene(X, {"Body": 0.05})
    high = model.intervene(X, {"Body": 0.95})
    assert (high >= low).all()
    assert (high - low).mean() > 0.5
    assert np.array_equal(model.intervene(X, {}), model.decision_function(X))


def test_a_residual_adds_what_concepts_leave_out(world):
    X, y, movies, present = world
    train = movies < 6
    world_of_training = X[train], y[train], movies[train], present[train]

    def auc_on_new_movies(model):
        return auc(y[~train], model.decision_function(X[~train]))

    without = auc_on_new_movies(fitted(world_of_training))
    with_residual = auc_on_new_movies(fitted(world_of_training, residual=True))
    assert 0.6 < without < with_residual


def test_training_values_are_crossfitted_and_standardised(world):
    X, y, movies, _ = world
    noise = np.random.default_rng(1).random((len(X), 3)) < 0.5
    bank = ConceptBank("ridge", C=10.0, concepts=NAMES)
    model = ConceptBottleneck(bank=bank).fit(X, y, movies, present=noise)
    assert np.allclose(model.train_values_.mean(axis=0), 0)
    assert np.allclose(model.train_values_.std(axis=0), 1)
    # Presences drawn at random can be fitted, but not foretold for a movie held out.
    values_of_fitted_clips = bank.fit_transform(X, noise)
    assert auc(noise[:, 0], values_of_fitted_clips[:, 0]) > 0.58
    assert auc(noise[:, 0], model.train_values_[:, 0]) < 0.55


def test_selection_is_inside_the_training_movies_and_kept(world):
    model = fitted(world, "logistic")
    names = [candidate.name for candidate in model.candidates_]
    assert names == ["C=0.001", "C=0.01", "C=0.1", "C=1", "C=10"]
    best = min(model.candidates_, key=lambda candidate: candidate.inner_loss)
    assert [candidate for candidate in model.candidates_ if candidate.chosen] == [best]
    assert f"C={model.head_.C:g}" == best.name
    y = world[1]
    scores = model.held_out_.scores
    assert scores.shape == y.shape
    assert f1_pos(y, scores >= model.threshold_) >= f1_pos(y, scores > 0)


def test_a_concept_that_is_not_there_is_refused_with_those_that_are(world):
    with pytest.raises(ConceptError, match=r"'Nose'.*Body, Look, Posture"):
        fitted(world).intervene(world[0], {"Nose": 0.5})


def test_a_quantile_is_between_0_and_1(world):
    with pytest.raises(ConceptError, match="between 0 and 1"):
        fitted(world).intervene(world[0], {"Body": 5})


def test_one_clip_is_explained_at_a_time(world):
    with pytest.raises(ConceptError, match="one clip"):
        fitted(world).explain(world[0][:2])


def test_concepts_are_not_learnt_without_movies(world):
    X, y, _, present = world
    with pytest.raises(ConceptError, match="movies"):
        ConceptBottleneck().fit(X, y, present=present)


def test_a_residual_needs_features_beside_the_concepts(world):
    X, y, *_ = world
    with pytest.raises(ConceptError, match="residual"):
        ConceptBottleneck(residual=True).fit(X, y)


def test_a_head_that_is_neither_linear_nor_a_tree_is_refused(world):
    X, y, *_ = world
    with pytest.raises(ConceptError, match="KNeighbors"):
        ConceptBottleneck(KNeighborsClassifier()).fit(X, y).predict(X)


def test_a_concept_of_a_single_movie_is_refused_by_name(world):
    X, y, movies, present = world
    in_first_clips = (np.arange(len(X)) < 5)[:, None]
    with pytest.raises(ConceptError, match="concept Body"):
        fitted((X, y, movies, present & in_first_clips))


def test_without_presences_columns_are_concept_values_taken_as_they_are(world):
    _, y, _, present = world
    # A little is added, so that no two clips are alike.
    values = present + np.linspace(0, 0.1, len(y))[:, None]
    model = ConceptBottleneck(LogisticRegression(C=0.5)).fit(values, y)
    reference = LogisticRegression(C=0.5).fit(values, y)
    assert np.allclose(model.decision_function(values), reference.decision_function(values))
    assert np.array_equal(model.predict(values), reference.predict(values))
    assert model.concepts_ == ("concept0", "concept1", "concept2")


def test_the_annotated_concepts_themselves_stand_beside_those_that_are_found(make_planted_concepts):
    run = evaluate(make_planted_concepts(), ["concept_labels", "pcbm_lr"], "hn_s")
    auc_of = run.metrics.set_index(["metric", "model"])["pooled"]["within_movie_auc"]
    assert auc_of["concept_labels"] == 1.0  # S shows Body with another, HN others
    assert auc_of["pcbm_lr"] < 1.0
