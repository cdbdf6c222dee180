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
    X, y, movies, present = world
    bank = settings.pop("bank", ConceptBank("ridge", C=0.1, concepts=NAMES))
    return ConceptBottleneck(head, bank=bank, **settings).fit(X, y, movies, present=present)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("residual", [False, True])
def test_a_score_is_base_contributions_and_residual(world, head, residual):
    model = fitted(world, head, residual=residual)
    X = world[0]
    for row in (0, 77, 301):
        told = model.explain(X[row])
        parts = told.base + sum(part.contribution for part in told.contributions) + told.residual
        assert parts == pytest.approx(float(model.decision_function(X[row : row + 1])[0]), abs=1e-9)
        assert told.score == pytest.approx(parts)
        assert (told.residual != 0) == residual
        assert [part.concept for part in told.contributions] == list(NAMES)
        assert all(0 <= part.percentile <= 100 for part in told.contributions)
        assert bool(told.path) == (head == "tree")


def test_a_decision_path_is_the_trees_own(world):
    model = fitted(world, "tree")
    for row in range(20):
        told = model.explain(world[0][row])
        values = model.concept_values(world[0][row : row + 1])
        assert len(told.path) == model.head_.decision_path(values).sum() - 1
        assert all(step.above == (np.float32(step.value) > step.threshold) for step in told.path)
        assert told.path[0].n_train == len(world[0])


@pytest.mark.parametrize("head", HEADS)
def test_the_concept_that_matters_contributes_most(world, head):
    model = fitted(world, head)
    told = [model.explain(row) for row in world[0][:60]]
    sizes = np.abs([[part.contribution for part in one.contributions] for one in told]).mean(axis=0)
    assert sizes[0] == sizes.max()
    assert sizes[2] < sizes[0] / 3


@pytest.mark.parametrize("head", HEADS)
def test_an_intervention_on_the_concept_that_matters_moves_scores_up(world, head):
    model, X = fitted(world, head), world[0]
    low, high = model.intervene(X, {"Body": 0.05}), model.intervene(X, {"Body": 0.95})
    assert (high >= low).all()
    assert (high - low).mean() > 0.5
    assert np.array_equal(model.intervene(X, {}), model.decision_function(X))


def test_a_residual_adds_what_concepts_leave_out(world):
    X, y, movies, present = world
    train, test = movies < 6, movies >= 6
    part = X[train], y[train], movies[train], present[train]
    without = auc(y[test], fitted(part).decision_function(X[test]))
    with_residual = auc(y[test], fitted(part, residual=True).decision_function(X[test]))
    assert 0.6 < without < with_residual


def test_training_values_are_crossfitted_and_standardised(world):
    X, y, movies, _ = world
    rng = np.random.default_rng(1)
    noise = rng.random((len(X), 3)) < 0.5
    model = ConceptBottleneck(bank=ConceptBank("ridge", C=10.0, concepts=NAMES)).fit(
        X, y, movies, present=noise
    )
    assert np.allclose(model.train_values_.mean(axis=0), 0)
    assert np.allclose(model.train_values_.std(axis=0), 1)
    # Presences drawn at random can be fitted, but not foretold for a movie held out.
    seen = ConceptBank("ridge", C=10.0).fit_transform(X, noise)
    assert auc(noise[:, 0], seen[:, 0]) > 0.58
    assert auc(noise[:, 0], model.train_values_[:, 0]) < 0.55


def test_selection_is_inside_the_training_movies_and_kept(world):
    model = fitted(world, "logistic")
    assert [one.name for one in model.candidates_] == ["C=0.001", "C=0.01", "C=0.1", "C=1", "C=10"]
    best = min(model.candidates_, key=lambda one: one.inner_loss)
    assert [one for one in model.candidates_ if one.chosen] == [best]
    assert f"C={model.head_.C:g}" == best.name
    assert model.held_out_.scores.shape == world[1].shape
    assert f1_pos(world[1], model.held_out_.scores >= model.threshold_) >= f1_pos(
        world[1], model.held_out_.scores > 0
    )


@pytest.mark.parametrize(
    ("make", "place"),
    [
        (lambda *given: fitted(given).intervene(given[0], {"Nose": 0.5}), "'Nose'.*Body, Look, Posture"),
        (lambda *given: fitted(given).intervene(given[0], {"Body": 5}), "between 0 and 1"),
        (lambda *given: fitted(given).explain(given[0][:2]), "one clip"),
        (lambda X, y, _, present: ConceptBottleneck().fit(X, y, present=present), "movies"),
        (lambda X, y, *_: ConceptBottleneck(residual=True).fit(X, y), "residual"),
        (lambda X, y, *_: ConceptBottleneck(KNeighborsClassifier()).fit(X, y).predict(X), "KNeighbors"),
        (lambda *given: fitted((*given[:3], given[3] & (np.arange(480) < 5)[:, None])), "concept Body"),
    ],
)
def test_what_cannot_be_is_refused_by_name(world, make, place):
    with pytest.raises(ConceptError, match=place):
        make(*world)


def test_without_presences_columns_are_concept_values_taken_as_they_are(world):
    _, y, _, present = world
    values = present + 0.1 * np.arange(len(y))[:, None] / len(y)
    model = ConceptBottleneck(LogisticRegression(C=0.5)).fit(values, y)
    reference = LogisticRegression(C=0.5).fit(values, y)
    assert np.allclose(model.decision_function(values), reference.decision_function(values))
    assert np.array_equal(model.predict(values), reference.predict(values))
    assert model.concepts_ == ("concept0", "concept1", "concept2")


def test_the_annotated_concepts_themselves_stand_beside_those_that_are_found(make_planted_concepts):
    run = evaluate(make_planted_concepts(), ["concept_labels", "pcbm_lr"], "hn_s")
    auc = run.metrics.set_index(["metric", "model"])["pooled"]["within_movie_auc"]
    assert auc["concept_labels"] == 1.0  # S shows Body with another, HN others
    assert auc["pcbm_lr"] < 1.0
