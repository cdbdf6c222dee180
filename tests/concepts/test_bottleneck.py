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
NAMES = ("Body", "Look", "Posture")


class PlantedClips(NamedTuple):
    """Clips in which concepts are planted.

    Attributes
    ----------
    X
        Features, [N, 24].
    y
        Labels, [N].
    movies
        Movie of each clip, [N].
    present
        Whether each clip has the concepts Body, Look and Posture, [N, 3].
    """

    X: np.ndarray
    y: np.ndarray
    movies: np.ndarray
    present: np.ndarray


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


def fitted(clips, head="logistic", *, residual=False):
    """Fit a bottleneck with a bank of ridge CAVs on planted clips."""
    bank = ConceptBank("ridge", C=0.1, concepts=NAMES)
    model = ConceptBottleneck(head, bank=bank, residual=residual)
    return model.fit(clips.X, clips.y, clips.movies, present=clips.present)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("residual", [False, True], ids=["concepts alone", "with a residual"])
def test_a_score_is_the_sum_of_base_contributions_and_residual(clips, head, residual):
    model = fitted(clips, head, residual=residual)
    for row in (0, 77, 301):
        explanation = model.explain(clips.X[row])
        by_concepts = sum(part.contribution for part in explanation.contributions)
        total = explanation.base + by_concepts + explanation.residual
        (score,) = model.decision_function(clips.X[[row]])
        assert total == pytest.approx(score, abs=1e-9)
        assert explanation.score == pytest.approx(total)
        assert (explanation.residual != 0) == residual


@pytest.mark.parametrize("head", HEADS)
def test_an_explanation_has_every_concept_with_its_percentile(clips, head):
    explanation = fitted(clips, head).explain(clips.X[77])
    assert [part.concept for part in explanation.contributions] == list(NAMES)
    assert all(0 <= part.percentile <= 100 for part in explanation.contributions)


@pytest.mark.parametrize("head", HEADS)
def test_only_a_trees_explanation_has_a_decision_path(clips, head):
    explanation = fitted(clips, head).explain(clips.X[77])
    assert bool(explanation.path) == (head == "tree")


def test_a_decision_path_is_the_trees_own(clips):
    model = fitted(clips, "tree")
    for clip in clips.X[:20]:
        path = model.explain(clip).path
        values = model.concept_values(clip[None])
        n_nodes = model.head_.decision_path(values).sum()
        assert len(path) == n_nodes - 1  # the leaf tests nothing
        assert path[0].n_train == len(clips.X)  # all training clips pass the root
        for step in path:
            assert step.above == (np.float32(step.value) > step.threshold)  # a tree compares in float32


@pytest.mark.parametrize("head", HEADS)
def test_the_concept_that_the_label_follows_contributes_most(clips, head):
    _, contributions, _ = fitted(clips, head).contributions(clips.X[:60])
    body, look, posture = np.abs(contributions).mean(axis=0)
    assert body > look
    assert posture < body / 3


@pytest.mark.parametrize("head", HEADS)
def test_more_of_the_concept_that_the_label_follows_moves_scores_up(clips, head):
    """A concept is set to a quantile of its values in the training clips."""
    model = fitted(clips, head)
    with_little_body = model.intervene(clips.X, {"Body": 0.05})
    with_much_body = model.intervene(clips.X, {"Body": 0.95})
    assert (with_much_body >= with_little_body).all()
    assert (with_much_body - with_little_body).mean() > 0.5


@pytest.mark.parametrize("head", HEADS)
def test_without_a_concept_that_is_set_scores_stay(clips, head):
    model = fitted(clips, head)
    assert np.array_equal(model.intervene(clips.X, {}), model.decision_function(clips.X))


def test_a_residual_adds_what_concepts_leave_out(clips):
    is_train = clips.movies < 6
    training_clips = PlantedClips(*(array[is_train] for array in clips))

    def auc_on_new_movies(model):
        return auc(clips.y[~is_train], model.decision_function(clips.X[~is_train]))

    without_residual = auc_on_new_movies(fitted(training_clips))
    with_residual = auc_on_new_movies(fitted(training_clips, residual=True))
    assert 0.6 < without_residual < with_residual


@pytest.fixture(scope="module")
def clips_with_random_concepts(clips):
    """The same clips, whose concepts are drawn at random."""
    return clips._replace(present=np.random.default_rng(1).random(clips.present.shape) < 0.5)


def test_the_concept_values_that_the_head_learns_from_are_standardised(clips_with_random_concepts):
    values = fitted(clips_with_random_concepts).train_values_
    assert np.allclose(values.mean(axis=0), 0)
    assert np.allclose(values.std(axis=0), 1)


def test_the_concept_values_that_the_head_learns_from_are_of_movies_held_out(clips_with_random_concepts):
    """Presences drawn at random can be fitted, but not foretold for a movie held out."""
    X, y, movies, present = clips_with_random_concepts
    bank = ConceptBank("ridge", C=10.0, concepts=NAMES)
    model = ConceptBottleneck(bank=bank).fit(X, y, movies, present=present)
    values_of_fitted_clips = bank.fit_transform(X, present)
    assert auc(present[:, 0], values_of_fitted_clips[:, 0]) > 0.58
    assert auc(present[:, 0], model.train_values_[:, 0]) < 0.55


def test_the_penalty_of_the_lowest_inner_loss_is_chosen(clips):
    model = fitted(clips, "logistic")
    names = [candidate.name for candidate in model.candidates_]
    assert names == ["C=0.001", "C=0.01", "C=0.1", "C=1", "C=10"]
    best = min(model.candidates_, key=lambda candidate: candidate.inner_loss)
    assert [candidate for candidate in model.candidates_ if candidate.chosen] == [best]
    assert f"C={model.head_.C:g}" == best.name


def test_the_threshold_is_at_least_as_good_as_0_on_held_out_scores(clips):
    model = fitted(clips, "logistic")
    scores = model.held_out_.scores
    assert scores.shape == clips.y.shape
    assert f1_pos(clips.y, scores >= model.threshold_) >= f1_pos(clips.y, scores > 0)


def test_a_concept_that_is_not_there_is_refused_with_those_that_are(clips):
    with pytest.raises(ConceptError, match=r"'Nose'.*Body, Look, Posture"):
        fitted(clips).intervene(clips.X, {"Nose": 0.5})


def test_a_quantile_is_between_0_and_1(clips):
    with pytest.raises(ConceptError, match="between 0 and 1"):
        fitted(clips).intervene(clips.X, {"Body": 5})


def test_one_clip_is_explained_at_a_time(clips):
    with pytest.raises(ConceptError, match="one clip"):
        fitted(clips).explain(clips.X[:2])


def test_concepts_are_not_learnt_without_movies(clips):
    X, y, _, present = clips
    with pytest.raises(ConceptError, match="movies"):
        ConceptBottleneck().fit(X, y, present=present)


def test_a_residual_needs_features_beside_the_concepts(clips):
    X, y, *_ = clips
    with pytest.raises(ConceptError, match="residual"):
        ConceptBottleneck(residual=True).fit(X, y)


def test_a_head_that_is_neither_linear_nor_a_tree_is_refused(clips):
    X, y, *_ = clips
    with pytest.raises(ConceptError, match="KNeighbors"):
        ConceptBottleneck(KNeighborsClassifier()).fit(X, y).predict(X)


def test_a_concept_of_a_single_movie_is_refused_by_name(clips):
    is_among_first_five = (np.arange(len(clips.X)) < 5)[:, None]
    with pytest.raises(ConceptError, match="concept Body"):
        fitted(clips._replace(present=clips.present & is_among_first_five))


def test_without_presences_columns_are_concept_values_taken_as_they_are(clips):
    _, y, _, present = clips
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
