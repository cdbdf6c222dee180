"""Concepts are found in few frames and in their order; each control and each limit does what it says."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from benchmarks.planted.in_time import corpus
from obygaze_models.concepts import ConceptsInTime
from obygaze_models.concepts.time_bank import TimeBank, presences_and_positions
from obygaze_models.errors import ConceptError
from obygaze_models.models.registry import BUILTIN_MODELS


@pytest.fixture(scope="module")
def planted_clips():
    """Clips of 32 frames of six movies: four concepts are planted, each in two frames in a row.

    The label of a clip with the first two concepts says which of them comes first; other clips have -1.
    """
    return corpus(np.random.default_rng(0), 24, 4.0, "order", n_movies=6)


def fitted_without_movie_0(clips, y, disturb="none"):
    """Fit labels y without movie 0; -1 is of clips that are not in the task."""
    train = clips.movies > 0
    model = ConceptsInTime(bank=TimeBank(disturb=disturb))
    return model.fit(clips.X[train], y[train], clips.movies[train], present=clips.present[train])


@pytest.fixture(scope="module")
def model_of_concept0(planted_clips):
    """A model of whether clips have the first concept, fitted without movie 0."""
    return fitted_without_movie_0(planted_clips, planted_clips.present[:, 0].astype(int))


def auc_on_movie_0(clips, y, model):
    """Compute the AUC of a model on movie 0."""
    test = (clips.movies == 0) & (y >= 0)
    return roc_auc_score(y[test], model.decision_function(clips.X[test]))


def test_a_model_of_one_concept_tells_which_clips_of_a_new_movie_have_it(planted_clips, model_of_concept0):
    """A clip that has the concept shows it in two of its 32 frames. Movie 0 was left out of the training."""
    has_concept = planted_clips.present[:, 0]

    assert auc_on_movie_0(planted_clips, has_concept, model_of_concept0) > 0.85


def test_the_frames_in_which_a_concept_is_planted_get_the_highest_values(planted_clips, model_of_concept0):
    """In the clips that have the first concept, it was planted in two of 32 frames.

    A model of this concept gives each frame a value, by which an AUC tells these frames from the others.
    """
    has_concept = planted_clips.present[:, 0] == 1
    frame_has_concept = planted_clips.where[has_concept, :, 0]

    values = model_of_concept0.frame_values(planted_clips.X)[has_concept, :, 0]

    assert roc_auc_score(frame_has_concept.ravel(), values.ravel()) > 0.97


def test_a_model_of_shuffled_concepts_is_near_chance_on_a_new_movie(planted_clips):
    """It learns concepts from presences that were exchanged between clips. Chance is an AUC of .5."""
    presence = planted_clips.present[:, 0].astype(int)

    model = fitted_without_movie_0(planted_clips, presence, disturb="concepts")

    assert 0.3 < auc_on_movie_0(planted_clips, presence, model) < 0.75


def test_the_order_of_two_concepts_is_found_unless_frames_are_shuffled(planted_clips):
    """The label says which of the first two concepts comes first, in clips that have both."""
    model = fitted_without_movie_0(planted_clips, planted_clips.y)
    model_of_shuffled_frames = fitted_without_movie_0(planted_clips, planted_clips.y, disturb="time")

    assert auc_on_movie_0(planted_clips, planted_clips.y, model) > 0.9
    assert 0.3 < auc_on_movie_0(planted_clips, planted_clips.y, model_of_shuffled_frames) < 0.7


def test_the_control_with_shuffled_concepts_gives_different_scores_to_the_clips_of_a_movie(planted_clips):
    """A control learns concepts whose marks are shuffled, to show how well a model does that knows none.

    If it gave all clips one score, its AUC would be .5 even where labels leak into it, and show nothing.
    """
    presence = planted_clips.present[:, 0].astype(int)
    control = BUILTIN_MODELS["pcbm_time_shuffled"].estimator(0)

    control.fit(planted_clips.X, presence, groups=planted_clips.movies, present=planted_clips.present)

    for movie in range(6):
        scores = control.decision_function(planted_clips.X[planted_clips.movies == movie])
        assert scores.max() - scores.min() > 0.01


def test_a_bank_of_concepts_takes_clips_whose_movies_are_not_given_for_clips_of_one_movie():
    """A bank is fitted on twelve clips without their movies, and once more as clips of one movie, 7."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3, 4)).astype(np.float32)  # clips, frames, features
    present = np.arange(12) % 2

    without_movies = TimeBank().fit(X, present)
    of_movie_7 = TimeBank().fit(X, present, np.full(12, 7))

    assert np.array_equal(without_movies.weights_, of_movie_7.weights_)
    assert np.array_equal(without_movies.held_out_distances_, of_movie_7.held_out_distances_)


def test_a_score_of_concepts_in_time_is_the_sum_of_its_base_and_the_contributions_of_four_concepts(
    planted_clips, model_of_concept0
):
    """Explanations show these contributions: what they do not add up to would be unexplained."""
    clip = planted_clips.X[:1]

    (score,) = model_of_concept0.decision_function(clip)
    base, contributions, _ = model_of_concept0.contributions(clip)

    assert base + contributions.sum() == pytest.approx(score)


def test_an_explanation_has_the_value_of_each_concept_and_contributions_that_add_up_to_the_score(
    planted_clips, model_of_concept0
):
    """A clip is 32 frames of features; the model decides by four concepts in them."""
    clip = planted_clips.X[:1]

    explanation = model_of_concept0.explain(clip[0])

    (score,) = model_of_concept0.decision_function(clip)
    sum_of_contributions = sum(part.contribution for part in explanation.contributions)
    assert explanation.base + sum_of_contributions == pytest.approx(score)
    values = [part.value for part in explanation.contributions]
    assert values == model_of_concept0.concept_values(clip)[0].tolist()


def test_the_score_of_a_concept_rises_when_the_concept_is_set_to_a_higher_value(
    planted_clips, model_of_concept0
):
    """It is set to the value that 1 %, or 99 %, of the training clips stay below."""
    clip = planted_clips.X[:1]

    (score_with_little,) = model_of_concept0.intervene(clip, {"concept0": 0.01})
    (score_with_much,) = model_of_concept0.intervene(clip, {"concept0": 0.99})

    assert score_with_much > score_with_little


def test_a_clips_score_does_not_depend_on_clips_scored_beside_it(planted_clips, model_of_concept0):
    """Clip 7 is scored among 20 clips, and alone; sums may be rounded otherwise, in their last bits."""
    scores_of_20_clips = model_of_concept0.decision_function(planted_clips.X[:20])
    (score_alone,) = model_of_concept0.decision_function(planted_clips.X[7:8])

    assert score_alone == pytest.approx(scores_of_20_clips[7], rel=1e-12)


def test_a_clip_with_absent_frames_has_the_concept_values_of_its_other_frames(
    planted_clips, model_of_concept0
):
    """Absent frames are NaN; here all but the first 20 are."""
    first_20_frames = planted_clips.X[:2, :20]
    others_absent = planted_clips.X[:2].copy()
    others_absent[:, 20:] = np.nan

    values = model_of_concept0.concept_values(others_absent)

    np.testing.assert_allclose(values, model_of_concept0.concept_values(first_20_frames))
    assert np.isfinite(model_of_concept0.decision_function(others_absent)).all()
    assert np.isnan(model_of_concept0.frame_values(others_absent)[:, 20:]).all()


def held_out_values(X, present, movies):
    """Return the values that a bottleneck's head learns from: a film's are of a bank without its fold."""
    return TimeBank().fit(X, present, movies).held_out_distances_


def test_the_presences_of_a_movie_do_not_change_its_own_held_out_values_but_those_of_others(planted_clips):
    """A held-out value is given by a bank without the clip's movie. Presences of movie 1 are reversed."""
    is_movie_1 = planted_clips.movies == 1
    changed_presences = planted_clips.present.copy()
    changed_presences[is_movie_1] = 1 - planted_clips.present[is_movie_1]

    before = held_out_values(planted_clips.X, planted_clips.present, planted_clips.movies)
    after = held_out_values(planted_clips.X, changed_presences, planted_clips.movies)

    np.testing.assert_array_equal(after[is_movie_1], before[is_movie_1])
    assert np.abs(after - before)[~is_movie_1].max() > 1e-6


def test_directions_that_give_a_folds_held_out_values_are_not_learnt_from_the_frames_of_its_clips(
    planted_clips,
):
    """Movies 1 and 5 are one of four folds. In a clip of movie 1, the first feature is reversed in time.

    The directions of concepts are learnt from covariances of features, which change so, as the clip's frames
    have other pairs of features. The mean and the variance of the feature, by which all folds are
    standardised, do not. So the values of the other clips in the fold must stay the same, as they are by
    directions of the other folds. The values of other folds must change.
    """
    changed_clip = np.flatnonzero(planted_clips.movies == 1)[0]
    changed_X = planted_clips.X.copy()
    changed_X[changed_clip, :, 0] = planted_clips.X[changed_clip, ::-1, 0]

    before = held_out_values(planted_clips.X, planted_clips.present, planted_clips.movies)
    after = held_out_values(changed_X, planted_clips.present, planted_clips.movies)

    is_in_fold = np.isin(planted_clips.movies, [1, 5])
    is_other_clip = np.arange(len(planted_clips.movies)) != changed_clip
    others_in_fold = is_in_fold & is_other_clip
    np.testing.assert_allclose(after[others_in_fold], before[others_in_fold], atol=1e-5)
    assert np.abs(after - before)[~is_in_fold].max() > 1e-3


def test_frames_that_are_absent_in_all_clips_change_no_value_of_presence(planted_clips):
    """As many frames as each clip has are added, all of them NaN.

    A bank's values are the presence of each concept, and after these the position of each.
    """
    absent_frames = np.full_like(planted_clips.X, np.nan)
    with_absent_frames = np.concatenate([planted_clips.X, absent_frames], axis=1)
    n_concepts = planted_clips.present.shape[1]

    bank = TimeBank().fit(planted_clips.X, planted_clips.present, planted_clips.movies)
    bank_of_padded = TimeBank().fit(with_absent_frames, planted_clips.present, planted_clips.movies)

    presences = bank.held_out_distances_[:, :n_concepts]
    presences_of_padded = bank_of_padded.held_out_distances_[:, :n_concepts]
    np.testing.assert_allclose(presences_of_padded, presences, atol=1e-4)
    np.testing.assert_allclose(bank_of_padded.weights_, bank.weights_, rtol=1e-3, atol=1e-4)


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
def test_position_runs_from_minus_a_half_at_the_first_frame_to_a_half_at_the_last(scores, position):
    """A frame of 9 has the concept, one of -9 has not; absent frames (NaN) do not count."""
    frame_scores = np.array(scores).reshape(1, -1, 1)  # one clip, its frames, one concept

    ((_presence, position_of_concept),) = presences_and_positions(frame_scores)

    assert position_of_concept == pytest.approx(position)


@pytest.mark.parametrize(
    "scores",
    [
        [9.0, -9.0, -9.0],
        [-9.0, 9.0, -9.0],
        [-9.0, -9.0, 9.0],
        [-9.0, -9.0, 9.0, np.nan, np.nan],
        [2.0],
    ],
    ids=[
        "largest at the first frame",
        "largest in the middle",
        "largest at the last frame",
        "absent frames at the end",
        "a single frame",
    ],
)
def test_presence_is_a_soft_maximum_of_the_scores_of_frames(scores):
    """It is log(mean(exp(2 score))) / 2. Frames of -9 add next to nothing to the mean.

    So of n frames with a largest score s it is s - log(n) / 2; absent frames (NaN) do not count.
    """
    frame_scores = np.array(scores).reshape(1, -1, 1)  # one clip, its frames, one concept

    ((presence, _position),) = presences_and_positions(frame_scores)

    n_frames = np.isfinite(scores).sum()
    assert presence == pytest.approx(np.nanmax(scores) - np.log(n_frames) / 2)


def test_one_vector_a_clip_in_place_of_frames_is_refused(planted_clips):
    """The message says which shape is wanted: clips, frames, features."""
    first_frames = planted_clips.X[:, 0]  # [N, D]

    with pytest.raises(ValueError, match=r"\[N, F, D\]"):
        TimeBank().fit(first_frames, planted_clips.present, planted_clips.movies)


def test_a_concept_that_no_clip_has_is_refused(planted_clips):
    """It is the second of four concepts, which are called concept0 to concept3."""
    present = planted_clips.present.copy()
    present[:, 1] = 0

    with pytest.raises(ConceptError, match="concept1"):
        TimeBank().fit(planted_clips.X, present, planted_clips.movies)


def test_clips_of_the_only_fold_with_a_concept_have_the_held_out_value_0(planted_clips):
    """Clips with the concept are in movie 2 alone, so the bank without its fold has nothing to learn from."""
    present = planted_clips.present.copy()
    present[planted_clips.movies != 2, 0] = 0

    values = held_out_values(planted_clips.X, present, planted_clips.movies)[:, 0]

    is_movie_2 = planted_clips.movies == 2
    assert (values[is_movie_2] == 0).all()
    assert (values[~is_movie_2] != 0).all()
