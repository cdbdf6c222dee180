"""Concepts are found in few frames and in their order; each control and each limit does what it says."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from benchmarks.planted.in_time import corpus
from obygaze_models.concepts import ConceptsInTime
from obygaze_models.concepts.time_bank import TimeBank, summaries
from obygaze_models.errors import ConceptError
from obygaze_models.models.registry import BUILTIN_MODELS

N_MOVIES = 6


@pytest.fixture(scope="module")
def world():
    return corpus(np.random.default_rng(0), 24, 4.0, "order", n_movies=N_MOVIES)


def fitted(world, y, disturb="none"):
    known = world.movies > 0
    bank = TimeBank(disturb=disturb)
    return ConceptsInTime(bank=bank).fit(
        world.X[known], y[known], world.movies[known], present=world.present[known]
    )


def auc_of(world, y, model):
    rows = (world.movies == 0) & (y >= 0)
    return roc_auc_score(y[rows], model.decision_function(world.X[rows]))


def test_a_concept_in_two_frames_is_found_and_so_is_the_order_of_two(world):
    model = fitted(world, world.present[:, 0].astype(int))
    assert auc_of(world, world.present[:, 0], model) > 0.85
    frames = model.frame_values(world.X)[..., 0]
    has = world.present[:, 0] == 1
    assert roc_auc_score(world.where[has, :, 0].ravel(), frames[has].ravel()) > 0.97
    assert auc_of(world, world.y, fitted(world, world.y)) > 0.9
    assert 0.3 < auc_of(world, world.y, fitted(world, world.y, "time")) < 0.7


def test_shuffled_concepts_find_nothing(world):
    model = fitted(world, world.present[:, 0].astype(int), "concepts")
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
    told, logit = model.explain(clip[0]), float(model.decision_function(clip)[0])
    assert told.base + sum(part.contribution for part in told.contributions) == pytest.approx(logit)
    assert [part.value for part in told.contributions] == model.concept_values(clip)[0].tolist()
    assert model.intervene(clip, {"concept0": 0.99})[0] > model.intervene(clip, {"concept0": 0.01})[0]
    base, parts, _ = model.contributions(clip)
    assert base + parts.sum() == pytest.approx(logit)


def test_a_clips_score_depends_on_nothing_else(world):
    """Not on other clips, absent frames, or clips that are scored beside it."""
    model = fitted(world, world.present[:, 0].astype(int))
    whole = model.decision_function(world.X[:20])
    assert model.decision_function(world.X[7:8])[0] == pytest.approx(whole[7], rel=1e-12)
    cut = world.X[:2].copy()
    cut[:, 20:] = np.nan
    scores = model.frame_values(cut)
    assert np.isnan(scores[:, 20:]).all()
    assert np.isfinite(model.decision_function(cut)).all()
    np.testing.assert_allclose(model.concept_values(cut), model.concept_values(world.X[:2, :20]))


def test_values_that_the_head_learns_from_are_of_other_films(world):
    """With a movie's presences turned round its own cross-fitted values stay, others' change."""
    X, present, movies = world.X, world.present, world.movies
    turned = np.where((movies == 1)[:, None], 1 - present, present)
    one, two = (TimeBank().fit(X, labels, movies).cross_distances_ for labels in (present, turned))
    np.testing.assert_array_equal(one[movies == 1], two[movies == 1])
    assert np.abs(one - two)[movies != 1].max() > 1e-6


def test_values_that_the_head_learns_from_do_not_know_how_the_films_frames_vary(world):
    """The values of one feature change places within a clip: moments stay, covariances do not."""
    frames, movies = world.X.copy(), world.movies
    changed = np.flatnonzero(movies == 1)[0]
    frames[changed, :, 0] = frames[changed, ::-1, 0]
    one, two = (TimeBank().fit(X, world.present, movies).cross_distances_ for X in (world.X, frames))
    others_of_its_fold = (movies % 4 == 1) & (np.arange(len(movies)) != changed)
    np.testing.assert_allclose(one[others_of_its_fold], two[others_of_its_fold], atol=1e-5)
    assert np.abs(one - two)[movies % 4 != 1].max() > 1e-3


def test_frames_that_are_absent_everywhere_change_no_presence(world):
    padding = np.full_like(world.X, np.nan)
    padded = np.concatenate([world.X, padding], axis=1)
    one, two = (TimeBank().fit(X, world.present, world.movies) for X in (world.X, padded))
    n_concepts = world.present.shape[1]
    np.testing.assert_allclose(
        one.cross_distances_[:, :n_concepts], two.cross_distances_[:, :n_concepts], atol=1e-4
    )
    np.testing.assert_allclose(one.weights_, two.weights_, rtol=1e-3, atol=1e-4)


def test_presence_and_position_of_frames():
    scores = np.full((1, 5, 1), -9.0)
    scores[0, 4] = 9.0
    presence, position = summaries(scores)[0]
    assert presence == pytest.approx(9 - np.log(5) / 2)
    assert position == pytest.approx(0.5)
    # Frames that a clip lacks of the longest change nothing: the last that is there is its end.
    assert summaries(np.array([[[2.0], [np.nan]]])).tolist() == summaries(np.array([[[2.0]]])).tolist()
    absent = np.concatenate([scores, np.full((1, 3, 1), np.nan)], axis=1)
    np.testing.assert_allclose(summaries(absent), summaries(scores))
    assert summaries(np.array([[[2.0]]]))[0].tolist() == [2.0, 0.0]


def test_what_cannot_be_learnt_is_named(world):
    with pytest.raises(ConceptError, match="concept1"):
        TimeBank().fit(world.X, world.present * [1, 0, 1, 1], world.movies)
    with pytest.raises(ValueError, match=r"\[N, F, D\]"):
        TimeBank().fit(world.X[:, 0], world.present, world.movies)


def test_a_concept_that_is_in_one_fold_of_films_alone_has_no_value_there(world):
    rare = world.present.copy()
    rare[world.movies != 2, 0] = 0
    bank = TimeBank().fit(world.X, rare, world.movies)
    own = np.isin(world.movies, [2, 2 + 4])
    assert (bank.cross_distances_[own, 0] == 0).all()
    assert (bank.cross_distances_[~own, 0] != 0).all()
