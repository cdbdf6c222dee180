"""A bottleneck sees clips through their concepts, says so for each clip, and chooses without cheating."""

from typing import NamedTuple

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from obygaze_models.concepts import ConceptBank, ConceptBottleneck
from obygaze_models.errors import ConceptError
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.evaluation.metrics import auc, f1_pos

HEADS = ["logistic", "elastic_net", "tree"]
CONCEPT_NAMES = ("Body", "Look", "Posture")


class PlantedClips(NamedTuple):
    """Clips in which concepts are planted."""

    X: np.ndarray  # features, [N, 24]
    y: np.ndarray  # labels, [N]
    movies: np.ndarray  # movie of each clip, [N]
    present: np.ndarray  # whether each clip has the concepts Body, Look and Posture, [N, 3]


@pytest.fixture(scope="module")
def clips():
    """The label follows Body, a little Look, and never Posture; each concept has a direction of its own.

    A direction beyond concepts carries some of the label as well.
    """
    rng = np.random.default_rng(0)
    movies = np.repeat(np.arange(8), 60)
    directions = np.linalg.qr(rng.normal(size=(24, 24)))[0][:4]
    present = rng.random((movies.size, 3)) < 0.4
    logit = 3.0 * present[:, 0] + 1.0 * present[:, 1] - 2.0
    y = (rng.random(movies.size) < 1 / (1 + np.exp(-logit))).astype(int)
    X = rng.normal(size=(movies.size, 24))
    X += 2.5 * present @ directions[:3] + 1.5 * y[:, None] * directions[3]
    X += rng.normal(size=(8, 24))[movies] * 0.3
    return PlantedClips(X, y, movies, present)


def fitted_bottleneck(clips, head="logistic", *, residual=False):
    """Fit a bottleneck with a bank of ridge CAVs on planted clips."""
    bank = ConceptBank("ridge", C=0.1, concepts=CONCEPT_NAMES)
    model = ConceptBottleneck(head, bank=bank, residual=residual)
    return model.fit(clips.X, clips.y, clips.movies, present=clips.present)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("residual", [False, True], ids=["concepts alone", "with a residual"])
def test_a_score_is_the_sum_of_base_contributions_and_residual(clips, head, residual):
    model = fitted_bottleneck(clips, head, residual=residual)
    for row in (0, 77, 301):  # any clips
        explanation = model.explain(clips.X[row])
        by_concepts = sum(part.contribution for part in explanation.contributions)
        total = explanation.base + by_concepts + explanation.residual
        (score,) = model.decision_function(clips.X[[row]])
        assert total == pytest.approx(score, abs=1e-9)
        assert explanation.score == pytest.approx(total)
        assert (explanation.residual != 0) == residual
        assert [part.concept for part in explanation.contributions] == list(CONCEPT_NAMES)
        assert all(0 <= part.percentile <= 100 for part in explanation.contributions)
        assert bool(explanation.path) == (head == "tree")


def test_a_decision_path_has_a_step_for_each_node_of_the_tree_that_a_clip_passes_before_its_leaf(clips):
    model = fitted_bottleneck(clips, "tree")
    for clip in clips.X[:20]:
        path = model.explain(clip).path
        concept_values = model.concept_values(clip[None])
        n_nodes_passed = model.head_.decision_path(concept_values).sum()
        assert len(path) == n_nodes_passed - 1
        assert path[0].n_train == len(clips.X)  # all training clips pass the root
        for step in path:
            assert step.above == (np.float32(step.value) > step.threshold)  # a tree compares in float32


@pytest.mark.parametrize("head", HEADS)
def test_body_which_the_label_follows_contributes_more_than_look_and_far_more_than_posture(clips, head):
    _, contributions, _ = fitted_bottleneck(clips, head).contributions(clips.X[:60])
    body, look, posture = np.abs(contributions).mean(axis=0)
    assert body > look
    assert body > 3 * posture


@pytest.mark.parametrize("head", HEADS)
def test_more_of_the_concept_that_the_label_follows_moves_scores_up(clips, head):
    """A concept is set to a quantile of its values in the training clips."""
    model = fitted_bottleneck(clips, head)
    with_little_body = model.intervene(clips.X, {"Body": 0.05})
    with_much_body = model.intervene(clips.X, {"Body": 0.95})
    assert (with_much_body >= with_little_body).all()
    assert (with_much_body - with_little_body).mean() > 0.5
    assert np.array_equal(model.intervene(clips.X, {}), model.decision_function(clips.X))


def test_on_new_movies_a_residual_adds_what_concepts_leave_out(clips):
    is_new = clips.movies >= 6
    training_clips = PlantedClips(*(array[~is_new] for array in clips))
    without_residual = fitted_bottleneck(training_clips).decision_function(clips.X[is_new])
    with_residual = fitted_bottleneck(training_clips, residual=True).decision_function(clips.X[is_new])
    assert auc(clips.y[is_new], without_residual) > 0.6
    assert auc(clips.y[is_new], with_residual) > auc(clips.y[is_new], without_residual)


def test_the_head_learns_from_standardised_concept_values_that_a_bank_of_the_other_movies_gives(clips):
    """A bank can fit concepts that were drawn at random, but cannot predict them in other movies."""
    present = np.random.default_rng(1).random(clips.present.shape) < 0.5
    bank = ConceptBank("ridge", C=10.0, concepts=CONCEPT_NAMES)
    model = ConceptBottleneck(bank=bank).fit(clips.X, clips.y, clips.movies, present=present)

    values_by_a_bank_of_all_movies = bank.fit_transform(clips.X, present)
    assert auc(present[:, 0], values_by_a_bank_of_all_movies[:, 0]) > 0.58
    assert auc(present[:, 0], model.train_values_[:, 0]) < 0.55
    assert np.allclose(model.train_values_.mean(axis=0), 0)
    assert np.allclose(model.train_values_.std(axis=0), 1)


def test_the_head_has_the_penalty_of_the_lowest_loss_on_inner_folds(clips):
    model = fitted_bottleneck(clips, "logistic")
    names = [candidate.name for candidate in model.candidates_]
    assert names == ["C=0.001", "C=0.01", "C=0.1", "C=1", "C=10"]
    best = min(model.candidates_, key=lambda candidate: candidate.inner_loss)
    assert [candidate for candidate in model.candidates_ if candidate.chosen] == [best]
    assert f"C={model.head_.C:g}" == best.name

    held_out_scores = model.held_out_.scores
    assert held_out_scores.shape == clips.y.shape
    f1_of_threshold = f1_pos(clips.y, held_out_scores >= model.threshold_)
    assert f1_of_threshold >= f1_pos(clips.y, held_out_scores > 0)


def test_interventions_and_explanations_of_what_is_not_there_are_refused(clips):
    model = fitted_bottleneck(clips)
    with pytest.raises(ConceptError, match=r"'Nose'.*Body, Look, Posture"):
        model.intervene(clips.X, {"Nose": 0.5})
    with pytest.raises(ConceptError, match="between 0 and 1"):
        model.intervene(clips.X, {"Body": 5})
    with pytest.raises(ConceptError, match="one clip"):
        model.explain(clips.X[:2])


def test_clips_from_which_no_concepts_can_be_learnt_are_refused(clips):
    """Without `present`, the columns of X are taken for concepts: there are no features for a residual."""
    X, y, movies, present = clips
    with pytest.raises(ConceptError, match="movies"):
        ConceptBottleneck().fit(X, y, present=present)
    with pytest.raises(ConceptError, match="residual"):
        ConceptBottleneck(residual=True).fit(X, y)
    with pytest.raises(ConceptError, match="KNeighbors"):
        ConceptBottleneck(KNeighborsClassifier()).fit(X, y).predict(X)
    in_one_movie_alone = present & (movies[:, None] == 0)
    with pytest.raises(ConceptError, match="concept Body"):
        fitted_bottleneck(clips._replace(present=in_one_movie_alone))


def test_without_presences_the_head_is_trained_on_the_columns_of_x(clips):
    _, y, _, present = clips
    values = present + np.linspace(0, 0.1, len(y))[:, None]  # different for each clip
    model = ConceptBottleneck(LogisticRegression(C=0.5)).fit(values, y)
    reference = LogisticRegression(C=0.5).fit(values, y)
    assert np.allclose(model.decision_function(values), reference.decision_function(values))
    assert np.array_equal(model.predict(values), reference.predict(values))
    assert model.concepts_ == ("concept0", "concept1", "concept2")


@pytest.mark.long
def test_annotated_concepts_tell_planted_levels_without_an_error_and_found_concepts_do_not(
    make_planted_concepts,
):
    """Clips of level S have Body and another concept; clips of level HN have others."""
    run = evaluate(make_planted_concepts(), ["concept_labels", "pcbm_lr"], "hn_s")
    auc_of = run.metrics.set_index(["metric", "model"])["pooled"]["within_movie_auc"]
    assert auc_of["concept_labels"] == 1.0
    assert auc_of["pcbm_lr"] < 1.0
