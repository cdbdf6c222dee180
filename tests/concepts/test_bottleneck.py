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
def planted_clips():
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
def test_a_score_is_the_sum_of_base_contributions_and_residual(planted_clips, head, residual):
    """A bottleneck scores by contributions of concepts; a residual, if any, adds what they leave out."""
    model = fitted_bottleneck(planted_clips, head, residual=residual)

    for row in (0, 77, 301):  # any clips
        (score,) = model.decision_function(planted_clips.X[[row]])
        explanation = model.explain(planted_clips.X[row])

        by_concepts = sum(part.contribution for part in explanation.contributions)
        total = explanation.base + by_concepts + explanation.residual
        assert total == pytest.approx(score, abs=1e-9)
        assert explanation.score == pytest.approx(total)
        assert (explanation.residual != 0) == residual


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("residual", [False, True], ids=["concepts alone", "with a residual"])
def test_an_explanation_has_each_concept_and_of_a_tree_also_the_path_through_it(
    planted_clips, head, residual
):
    """The bottleneck has three concepts. A percentile is the place of a clip's value among training clips."""
    model = fitted_bottleneck(planted_clips, head, residual=residual)

    for row in (0, 77, 301):  # any clips
        explanation = model.explain(planted_clips.X[row])

        concepts = [part.concept for part in explanation.contributions]
        assert concepts == ["Body", "Look", "Posture"]
        for part in explanation.contributions:
            assert 0 <= part.percentile <= 100
        has_path = len(explanation.path) > 0
        assert has_path == (head == "tree")


def test_a_decision_path_has_a_step_for_each_node_of_the_tree_that_a_clip_passes_before_its_leaf(
    planted_clips,
):
    """scikit-learn's `decision_path` counts the nodes, with the leaf."""
    model = fitted_bottleneck(planted_clips, "tree")
    tree = model.head_

    for clip in planted_clips.X[:20]:
        path = model.explain(clip).path

        concept_values = model.concept_values(clip[None])
        n_nodes_with_leaf = tree.decision_path(concept_values).sum()
        assert len(path) == n_nodes_with_leaf - 1
        assert path[0].n_train == len(planted_clips.X)  # all training clips pass the root
        for step in path:
            assert step.above == (np.float32(step.value) > step.threshold)  # a tree compares in float32


@pytest.mark.parametrize("head", HEADS)
def test_body_which_the_label_follows_contributes_more_than_look_and_far_more_than_posture(
    planted_clips, head
):
    """In the planted clips, Body adds 3 to the logit of the label, Look 1, and Posture nothing."""
    model = fitted_bottleneck(planted_clips, head)

    _base, contributions, _residuals = model.contributions(planted_clips.X[:60])

    body, look, posture = np.abs(contributions).mean(axis=0)
    assert body > look
    assert body > 3 * posture


@pytest.mark.parametrize("head", HEADS)
def test_more_of_the_concept_that_the_label_follows_moves_scores_up(planted_clips, head):
    """Body is set to the value that 5 %, or 95 %, of the training clips stay below."""
    model = fitted_bottleneck(planted_clips, head)

    with_little_body = model.intervene(planted_clips.X, {"Body": 0.05})
    with_much_body = model.intervene(planted_clips.X, {"Body": 0.95})

    assert (with_much_body >= with_little_body).all()
    assert (with_much_body - with_little_body).mean() > 0.5


@pytest.mark.parametrize("head", HEADS)
def test_an_intervention_on_no_concept_leaves_the_scores_as_they_are(planted_clips, head):
    """To intervene is to score clips as if concepts had other values; `{}` changes none."""
    model = fitted_bottleneck(planted_clips, head)

    scores = model.intervene(planted_clips.X, {})

    assert np.array_equal(scores, model.decision_function(planted_clips.X))


def test_on_new_movies_a_residual_adds_what_concepts_leave_out(planted_clips):
    """One direction of the features carries some of the label beyond the concepts.

    Movies 0 to 5 are trained on, 6 and 7 are new.
    """
    is_new = planted_clips.movies >= 6
    training_clips = PlantedClips(
        planted_clips.X[~is_new],
        planted_clips.y[~is_new],
        planted_clips.movies[~is_new],
        planted_clips.present[~is_new],
    )
    concepts_alone = fitted_bottleneck(training_clips)
    with_residual = fitted_bottleneck(training_clips, residual=True)

    auc_of_concepts = auc(planted_clips.y[is_new], concepts_alone.decision_function(planted_clips.X[is_new]))
    auc_with_residual = auc(planted_clips.y[is_new], with_residual.decision_function(planted_clips.X[is_new]))

    assert auc_of_concepts > 0.6
    assert auc_with_residual > auc_of_concepts


def test_the_head_learns_from_concept_values_that_a_bank_of_the_other_movies_gives(planted_clips):
    """Concepts are marked at random: a bank can fit its own movies' marks, and cannot predict others'.

    So a bank that was fitted on all movies tells them to some degree (AUC above .58). The values that the
    head of a bottleneck is trained on come from banks of the other movies, and must not (AUC of .5 and some
    noise).
    """
    present = np.random.default_rng(1).random(planted_clips.present.shape) < 0.5
    bank = ConceptBank("ridge", C=10.0, concepts=CONCEPT_NAMES)

    model = ConceptBottleneck(bank=bank).fit(
        planted_clips.X, planted_clips.y, planted_clips.movies, present=present
    )
    values_by_a_bank_of_all_movies = bank.fit_transform(planted_clips.X, present)

    has_body = present[:, 0]
    assert auc(has_body, values_by_a_bank_of_all_movies[:, 0]) > 0.58
    assert auc(has_body, model.train_values_[:, 0]) < 0.55


def test_the_head_learns_from_standardised_concept_values(planted_clips):
    """The values that it is trained on have the mean 0 and the standard deviation 1 for each concept."""
    present_at_random = np.random.default_rng(1).random(planted_clips.present.shape) < 0.5
    bank = ConceptBank("ridge", C=10.0, concepts=CONCEPT_NAMES)

    model = ConceptBottleneck(bank=bank).fit(
        planted_clips.X, planted_clips.y, planted_clips.movies, present=present_at_random
    )

    assert np.allclose(model.train_values_.mean(axis=0), 0)
    assert np.allclose(model.train_values_.std(axis=0), 1)


def test_the_head_has_the_penalty_of_the_lowest_loss_on_inner_folds(planted_clips):
    """Five values of C, the inverse of the penalty, are candidates."""
    model = fitted_bottleneck(planted_clips, "logistic")

    names = [candidate.name for candidate in model.candidates_]
    assert names == ["C=0.001", "C=0.01", "C=0.1", "C=1", "C=10"]
    best = min(model.candidates_, key=lambda candidate: candidate.inner_loss)
    assert [candidate for candidate in model.candidates_ if candidate.chosen] == [best]
    assert f"C={model.head_.C:g}" == best.name


def test_the_threshold_has_an_f1_on_held_out_clips_that_is_not_below_that_of_threshold_0(planted_clips):
    """It is chosen for the highest F1 on scores that models without the clip's movie gave."""
    model = fitted_bottleneck(planted_clips, "logistic")

    held_out_scores = model.held_out_.scores
    assert held_out_scores.shape == planted_clips.y.shape
    f1_of_threshold = f1_pos(planted_clips.y, held_out_scores >= model.threshold_)
    f1_of_0 = f1_pos(planted_clips.y, held_out_scores > 0)
    assert f1_of_threshold >= f1_of_0


def test_an_intervention_on_an_unknown_concept_or_beyond_the_quantiles_is_refused(planted_clips):
    """The concepts are Body, Look and Posture; a quantile is between 0 and 1."""
    model = fitted_bottleneck(planted_clips)

    with pytest.raises(ConceptError, match=r"'Nose'.*Body, Look, Posture"):
        model.intervene(planted_clips.X, {"Nose": 0.5})
    with pytest.raises(ConceptError, match="between 0 and 1"):
        model.intervene(planted_clips.X, {"Body": 5})


def test_an_explanation_of_two_clips_at_once_is_refused(planted_clips):
    """An explanation is of one clip's features, [D]; here they are [2, D]."""
    model = fitted_bottleneck(planted_clips)

    with pytest.raises(ConceptError, match="one clip"):
        model.explain(planted_clips.X[:2])


def test_concepts_without_the_movies_of_their_clips_are_refused(planted_clips):
    """The head learns from values of banks of the other movies, so movies must be known."""
    with pytest.raises(ConceptError, match="movies"):
        ConceptBottleneck().fit(planted_clips.X, planted_clips.y, present=planted_clips.present)


def test_a_residual_without_presences_of_concepts_is_refused(planted_clips):
    """Without `present`, the columns of X are taken for concepts: there are no features for a residual."""
    with pytest.raises(ConceptError, match="residual"):
        ConceptBottleneck(residual=True).fit(planted_clips.X, planted_clips.y)


def test_a_head_whose_scores_are_no_sum_of_contributions_is_refused(planted_clips):
    """A classifier by nearest neighbours has no weights."""
    with pytest.raises(ConceptError, match="KNeighbors"):
        ConceptBottleneck(KNeighborsClassifier()).fit(planted_clips.X, planted_clips.y).predict(
            planted_clips.X
        )


def test_a_concept_that_is_in_one_movie_alone_is_refused(planted_clips):
    """A bank of the other movies could not learn it."""
    is_in_movie_0 = planted_clips.movies == 0
    present_in_movie_0_alone = planted_clips.present & is_in_movie_0[:, None]

    with pytest.raises(ConceptError, match="concept Body"):
        fitted_bottleneck(planted_clips._replace(present=present_in_movie_0_alone))


def test_without_presences_the_head_is_trained_on_the_columns_of_x(planted_clips):
    """The columns are taken for values of concepts, which have no names then."""
    concept_values = (
        planted_clips.present + np.linspace(0, 0.1, len(planted_clips.y))[:, None]
    )  # different for each clip
    reference = LogisticRegression(C=0.5).fit(concept_values, planted_clips.y)

    model = ConceptBottleneck(LogisticRegression(C=0.5)).fit(concept_values, planted_clips.y)

    expected_scores = reference.decision_function(concept_values)
    assert np.allclose(model.decision_function(concept_values), expected_scores)
    assert np.array_equal(model.predict(concept_values), reference.predict(concept_values))
    assert model.concepts_ == ("concept0", "concept1", "concept2")


@pytest.mark.long
def test_annotated_concepts_tell_planted_levels_without_an_error_and_found_concepts_do_not(
    make_synthetic_concepts,
):
    """Clips of level S have Body and another concept, clips of level HN have others: Body tells them apart.

    The model `concept_labels` reads what annotators marked, `pcbm_lr` concept values found in the features.
    """
    data = make_synthetic_concepts()

    run = evaluate(data, ["concept_labels", "pcbm_lr"], "hn_s")

    auc_of = run.metrics.set_index(["metric", "model"])["pooled"]["within_movie_auc"]
    assert auc_of["concept_labels"] == 1.0
    assert auc_of["pcbm_lr"] < 1.0
