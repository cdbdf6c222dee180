"""Concepts are found in few frames and in their order; each control and each limit does what it says."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from benchmarks.planted.in_time import corpus
from obygaze_models.concepts import ConceptsInTime
from obygaze_models.concepts.time_bank import TimeBank, presences_and_positions
from obygaze_models.errors import ConceptError
from obygaze_models.models.registry import BUILTIN_MODELS

N_MOVIES = 6


@pytest.fixture(scope="module")
def clips():
    """Frames of clips of six movies: two concepts are planted in few frames, and their order is the label."""
    return corpus(np.random.default_rng(0), 24, 4.0, "order", n_movies=N_MOVIES)


def fitted_without_movie_0(clips, y, disturb="none"):
    """Fit labels y without movie 0; -1 is of clips that are not in the task."""
    train = clips.movies > 0
    model = ConceptsInTime(bank=TimeBank(disturb=disturb))
    return model.fit(clips.X[train], y[train], clips.movies[train], present=clips.present[train])


@pytest.fixture(scope="module")
def model_of_concept0(clips):
    """A model of whether clips have the first concept, fitted without movie 0."""
    return fitted_without_movie_0(clips, clips.present[:, 0].astype(int))


def auc_on_movie_0(clips, y, model):
    """Compute the AUC of a model on movie 0."""
    test = (clips.movies == 0) & (y >= 0)
    return roc_auc_score(y[test], model.decision_function(clips.X[test]))


def test_clips_with_a_concept_in_two_frames_are_found_by_these_frames(clips, model_of_concept0):
    assert auc_on_movie_0(clips, clips.present[:, 0], model_of_concept0) > 0.85
    has_concept = clips.present[:, 0] == 1
    frame_has_concept = clips.where[has_concept, :, 0]
    values = model_of_concept0.frame_values(clips.X)[has_concept, :, 0]
    assert roc_auc_score(frame_has_concept.ravel(), values.ravel()) > 0.97

    with_shuffled_concepts = fitted_without_movie_0(
        clips, clips.present[:, 0].astype(int), disturb="concepts"
    )
    assert 0.3 < auc_on_movie_0(clips, clips.present[:, 0], with_shuffled_concepts) < 0.75


def test_the_order_of_two_concepts_is_found_unless_frames_are_shuffled(clips):
    assert auc_on_movie_0(clips, clips.y, fitted_without_movie_0(clips, clips.y)) > 0.9
    assert 0.3 < auc_on_movie_0(clips, clips.y, fitted_without_movie_0(clips, clips.y, disturb="time")) < 0.7


def test_the_control_with_shuffled_concepts_gives_different_scores_to_the_clips_of_a_movie(clips):
    """If it gave all clips one score, its AUC would be .5 even where labels leak into it."""
    control = BUILTIN_MODELS["pcbm_time_shuffled"].estimator(0)
    control.fit(clips.X, clips.present[:, 0].astype(int), groups=clips.movies, present=clips.present)
    for movie in range(N_MOVIES):
        assert np.ptp(control.decision_function(clips.X[clips.movies == movie])) > 0.01


def test_without_movies_all_clips_count_as_of_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3, 4)).astype(np.float32)
    present = np.arange(12) % 2
    of_none = TimeBank().fit(X, present)
    of_one = TimeBank().fit(X, present, np.full(12, 7))
    assert np.array_equal(of_none.weights_, of_one.weights_)
    assert np.array_equal(of_none.held_out_distances_, of_one.held_out_distances_)


def test_a_score_is_the_sum_of_base_and_contributions_and_rises_with_the_concept(clips, model_of_concept0):
    clip = clips.X[:1]
    (score,) = model_of_concept0.decision_function(clip)
    base, contributions, _ = model_of_concept0.contributions(clip)
    assert base + contributions.sum() == pytest.approx(score)

    explanation = model_of_concept0.explain(clip[0])
    by_concepts = sum(part.contribution for part in explanation.contributions)
    assert explanation.base + by_concepts == pytest.approx(score)
    values = [part.value for part in explanation.contributions]
    assert values == model_of_concept0.concept_values(clip)[0].tolist()

    (with_little,) = model_of_concept0.intervene(clip, {"concept0": 0.01})
    (with_much,) = model_of_concept0.intervene(clip, {"concept0": 0.99})
    assert with_much > with_little


def test_a_clips_score_does_not_depend_on_clips_scored_beside_it(clips, model_of_concept0):
    scores = model_of_concept0.decision_function(clips.X[:20])
    (alone,) = model_of_concept0.decision_function(clips.X[7:8])
    assert alone == pytest.approx(scores[7], rel=1e-12)


def test_a_clip_with_absent_frames_has_the_concept_values_of_its_other_frames(clips, model_of_concept0):
    only_20_frames = clips.X[:2].copy()
    only_20_frames[:, 20:] = np.nan
    values = model_of_concept0.concept_values(only_20_frames)
    np.testing.assert_allclose(values, model_of_concept0.concept_values(clips.X[:2, :20]))
    assert np.isfinite(model_of_concept0.decision_function(only_20_frames)).all()
    assert np.isnan(model_of_concept0.frame_values(only_20_frames)[:, 20:]).all()


# The head learns from the values `held_out_distances_`: those of a film are computed by a bank that was
# learnt without the film's fold.


def test_the_presences_of_a_movie_do_not_change_its_own_held_out_values_but_those_of_others(clips):
    is_negated = clips.movies == 1
    negated = np.where(is_negated[:, None], 1 - clips.present, clips.present)
    before = TimeBank().fit(clips.X, clips.present, clips.movies).held_out_distances_
    after = TimeBank().fit(clips.X, negated, clips.movies).held_out_distances_
    np.testing.assert_array_equal(after[is_negated], before[is_negated])
    assert np.abs(after - before)[~is_negated].max() > 1e-6


def test_the_frames_of_a_clip_do_not_change_the_held_out_values_of_its_fold_but_those_of_other_folds(clips):
    """One feature of a clip is reversed in time, which changes its covariances with other features.

    Its mean and variance, by which the features of all folds are standardised, stay the same.
    """
    is_in_fold = np.isin(clips.movies, [1, 5])  # the second of four folds
    changed_clip = np.flatnonzero(clips.movies == 1)[0]
    is_other = np.arange(len(clips.movies)) != changed_clip
    changed = clips.X.copy()
    changed[changed_clip, :, 0] = changed[changed_clip, ::-1, 0]
    before = TimeBank().fit(clips.X, clips.present, clips.movies).held_out_distances_
    after = TimeBank().fit(changed, clips.present, clips.movies).held_out_distances_
    np.testing.assert_allclose(after[is_in_fold & is_other], before[is_in_fold & is_other], atol=1e-5)
    assert np.abs(after - before)[~is_in_fold].max() > 1e-3


def test_frames_that_are_absent_in_all_clips_change_no_value_of_presence(clips):
    padding = np.full_like(clips.X, np.nan)
    padded = np.concatenate([clips.X, padding], axis=1)
    bank = TimeBank().fit(clips.X, clips.present, clips.movies)
    bank_of_padded = TimeBank().fit(padded, clips.present, clips.movies)
    n_concepts = clips.present.shape[1]  # columns: the presence of each concept, then the position of each
    presences = bank.held_out_distances_[:, :n_concepts]
    presences_of_padded = bank_of_padded.held_out_distances_[:, :n_concepts]
    np.testing.assert_allclose(presences_of_padded, presences, atol=1e-4)
    np.testing.assert_allclose(bank_of_padded.weights_, bank.weights_, rtol=1e-3, atol=1e-4)


def frame_scores_of_one_clip(*scores):
    """Return scores of frames of one clip for one concept, [1, F, 1]."""
    return np.array(scores)[None, :, None]


@pytest.mark.parametrize(
    ("scores", "position"),
    [
        ([9.0, -9.0, -9.0], -0.5),
        ([-9.0, 9.0, -9.0], 0),
        ([-9.0, -9.0, 9.0], 0.5),
        ([-9.0, -9.0, 9.0, np.nan, np.nan], 0.5),
        ([2.0], 0),
    ],
    ids=[
        "at the first frame",
        "in the middle",
        "at the last frame",
        "before absent frames",
        "a single frame",
    ],
)
def test_presence_is_a_soft_maximum_and_position_runs_from_minus_a_half_to_a_half(scores, position):
    ((presence, position_of_concept),) = presences_and_positions(frame_scores_of_one_clip(*scores))
    assert position_of_concept == pytest.approx(position)
    # log(mean(exp(2 score))) / 2, to which frames of -9 add next to nothing.
    n_present = np.isfinite(scores).sum()
    assert presence == pytest.approx(np.nanmax(scores) - np.log(n_present) / 2)


def test_vectors_and_a_concept_that_no_clip_has_are_refused(clips):
    with pytest.raises(ValueError, match=r"\[N, F, D\]"):
        TimeBank().fit(clips.X[:, 0], clips.present, clips.movies)
    present = clips.present.copy()
    present[:, 1] = 0
    with pytest.raises(ConceptError, match="concept1"):
        TimeBank().fit(clips.X, present, clips.movies)


def test_clips_of_the_only_fold_with_a_concept_have_the_held_out_value_0(clips):
    """Without this fold, which is movie 2, there is no clip with the concept to learn from."""
    present = clips.present.copy()
    present[clips.movies != 2, 0] = 0
    bank = TimeBank().fit(clips.X, present, clips.movies)
    is_in_fold = clips.movies == 2
    assert (bank.held_out_distances_[is_in_fold, 0] == 0).all()
    assert (bank.held_out_distances_[~is_in_fold, 0] != 0).all()
