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
def world():
    return corpus(np.random.default_rng(0), 24, 4.0, "order", n_movies=N_MOVIES)


def fitted(world, y, disturb="none"):
    """Fit labels y without movie 0; -1 is of clips that are not in the task."""
    train = world.movies > 0
    model = ConceptsInTime(bank=TimeBank(disturb=disturb))
    return model.fit(world.X[train], y[train], world.movies[train], present=world.present[train])


def auc_of(world, y, model):
    """Compute the AUC of a model on movie 0."""
    test = (world.movies == 0) & (y >= 0)
    return roc_auc_score(y[test], model.decision_function(world.X[test]))


def test_a_concept_in_two_frames_is_found(world):
    model = fitted(world, world.present[:, 0].astype(int))
    assert auc_of(world, world.present[:, 0], model) > 0.85
    values = model.frame_values(world.X)[..., 0]
    has_concept = world.present[:, 0] == 1
    is_in_frame = world.where[has_concept, :, 0]
    assert roc_auc_score(is_in_frame.ravel(), values[has_concept].ravel()) > 0.97


def test_the_order_of_two_concepts_is_found_unless_time_is_disturbed(world):
    assert auc_of(world, world.y, fitted(world, world.y)) > 0.9
    assert 0.3 < auc_of(world, world.y, fitted(world, world.y, disturb="time")) < 0.7


def test_shuffled_concepts_find_nothing(world):
    model = fitted(world, world.present[:, 0].astype(int), disturb="concepts")
    assert 0.3 < auc_of(world, world.present[:, 0], model) < 0.75


def test_the_control_of_shuffled_concepts_varies_where_a_sparse_head_would_not(world):
    """A score that is alike for all clips has an AUC of .5 whatever leaks."""
    control = BUILTIN_MODELS["pcbm_time_shuffled"].estimator(0)
    y = world.present[:, 0].astype(int)
    control.fit(world.X, y, groups=world.movies, present=world.present)
    for movie in np.unique(world.movies):
        assert np.ptp(control.decision_function(world.X[world.movies == movie])) > 0.01


def test_scores_are_base_and_contributions_and_a_set_concept_moves_them(world):
    model = fitted(world, world.present[:, 0].astype(int))
    clip = world.X[:1]
    logit = float(model.decision_function(clip)[0])
    explanation = model.explain(clip[0])
    by_concepts = sum(part.contribution for part in explanation.contributions)
    assert explanation.base + by_concepts == pytest.approx(logit)
    assert [part.value for part in explanation.contributions] == model.concept_values(clip)[0].tolist()
    base, parts, _ = model.contributions(clip)
    assert base + parts.sum() == pytest.approx(logit)
    assert model.intervene(clip, {"concept0": 0.99})[0] > model.intervene(clip, {"concept0": 0.01})[0]


def test_a_clips_score_does_not_depend_on_clips_scored_beside_it(world):
    model = fitted(world, world.present[:, 0].astype(int))
    together = model.decision_function(world.X[:20])
    assert model.decision_function(world.X[7:8])[0] == pytest.approx(together[7], rel=1e-12)


def test_absent_frames_have_no_value_and_change_no_concepts_value(world):
    model = fitted(world, world.present[:, 0].astype(int))
    cut = world.X[:2].copy()
    cut[:, 20:] = np.nan
    scores = model.frame_values(cut)
    assert np.isnan(scores[:, 20:]).all()
    assert np.isfinite(model.decision_function(cut)).all()
    np.testing.assert_allclose(model.concept_values(cut), model.concept_values(world.X[:2, :20]))


def test_values_that_the_head_learns_from_are_of_other_films(world):
    """With a movie's presences turned round its own cross-fitted values stay, others' change."""
    X, present, movies = world.X, world.present, world.movies
    is_turned = movies == 1
    turned = np.where(is_turned[:, None], 1 - present, present)
    values = TimeBank().fit(X, present, movies).held_out_distances_
    values_of_turned = TimeBank().fit(X, turned, movies).held_out_distances_
    np.testing.assert_array_equal(values_of_turned[is_turned], values[is_turned])
    assert np.abs(values_of_turned - values)[~is_turned].max() > 1e-6


def test_values_that_the_head_learns_from_do_not_know_how_the_films_frames_vary(world):
    """The values of one feature change places within a clip: moments stay, covariances do not."""
    movies = world.movies
    changed_clip = np.flatnonzero(movies == 1)[0]
    changed = world.X.copy()
    changed[changed_clip, :, 0] = changed[changed_clip, ::-1, 0]
    values = TimeBank().fit(world.X, world.present, movies).held_out_distances_
    values_of_changed = TimeBank().fit(changed, world.present, movies).held_out_distances_
    is_in_its_fold = movies % 4 == 1
    others_of_its_fold = is_in_its_fold & (np.arange(len(movies)) != changed_clip)
    np.testing.assert_allclose(values_of_changed[others_of_its_fold], values[others_of_its_fold], atol=1e-5)
    assert np.abs(values_of_changed - values)[~is_in_its_fold].max() > 1e-3


def test_frames_that_are_absent_everywhere_change_no_presence(world):
    padding = np.full_like(world.X, np.nan)
    padded = np.concatenate([world.X, padding], axis=1)
    bank = TimeBank().fit(world.X, world.present, world.movies)
    bank_of_padded = TimeBank().fit(padded, world.present, world.movies)
    n_concepts = world.present.shape[1]
    presences = bank.held_out_distances_[:, :n_concepts]
    presences_of_padded = bank_of_padded.held_out_distances_[:, :n_concepts]
    np.testing.assert_allclose(presences_of_padded, presences, atol=1e-4)
    np.testing.assert_allclose(bank_of_padded.weights_, bank.weights_, rtol=1e-3, atol=1e-4)


def scores_of_one_clip(*scores):
    """Return scores of frames of one clip for one concept, [1, F, 1]."""
    return np.array(scores)[None, :, None]


def test_presence_is_the_best_of_frames_and_position_is_where_it_is():
    presence, position = presences_and_positions(scores_of_one_clip(-9.0, -9.0, -9.0, -9.0, 9.0))[0]
    assert presence == pytest.approx(9 - np.log(5) / 2)
    assert position == pytest.approx(0.5)


def test_a_single_frame_is_in_the_middle():
    assert presences_and_positions(scores_of_one_clip(2.0))[0].tolist() == [2.0, 0.0]


def test_the_last_frame_that_is_there_is_a_clips_end():
    whole = scores_of_one_clip(-9.0, -9.0, 9.0)
    followed_by_absent = scores_of_one_clip(-9.0, -9.0, 9.0, np.nan, np.nan)
    np.testing.assert_allclose(presences_and_positions(followed_by_absent), presences_and_positions(whole))


def test_a_concept_that_no_clip_has_is_refused_by_name(world):
    present = world.present.copy()
    present[:, 1] = 0
    with pytest.raises(ConceptError, match="concept1"):
        TimeBank().fit(world.X, present, world.movies)


def test_vectors_are_refused(world):
    with pytest.raises(ValueError, match=r"\[N, F, D\]"):
        TimeBank().fit(world.X[:, 0], world.present, world.movies)


def test_a_concept_that_is_in_one_fold_of_films_alone_has_no_value_there(world):
    rare = world.present.copy()
    rare[world.movies != 2, 0] = 0
    bank = TimeBank().fit(world.X, rare, world.movies)
    # Of four folds, that of movie 2 has every fourth.
    is_in_its_fold = world.movies % 4 == 2
    assert (bank.held_out_distances_[is_in_its_fold, 0] == 0).all()
    assert (bank.held_out_distances_[~is_in_its_fold, 0] != 0).all()
