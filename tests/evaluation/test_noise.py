"""Annotators' confusions: found with the model nearly as well as with true labels."""

from dataclasses import dataclass

import numpy as np
import pytest

from obygaze_models.evaluation.experts import annotators_noise as estimate_skills_and_labels
from obygaze_models.protocol.targets import NOT_ASKED

SKILLS = np.array([0.5, 0.6, 0.7, 0.8, 0.9])


@dataclass(frozen=True)
class Annotated:
    """Clips, and what annotators call them."""

    is_positive: np.ndarray  # the true label of each clip, [N]
    X: np.ndarray  # features, [N, D]
    movies: np.ndarray  # film of each clip, [N]
    calls: np.ndarray  # what each annotator says, [annotators, N]: 1 (positive), 0 or `NOT_ASKED`


def simulate_annotators(seed, *, n_clips=300, label_effect=2.0, n_features=16, skills=SKILLS):
    """Plant clips of ten films whose first feature tells the label, and annotators of some skills.

    A skill is the probability that an annotator's call is right, whatever the label. The first feature of
    positive clips, 40 % of all, is higher by `label_effect` standard deviations.
    """
    rng = np.random.default_rng(seed)
    is_positive = rng.random(n_clips) < 0.4
    X = rng.normal(size=(n_clips, n_features))
    X[:, 0] += label_effect * is_positive
    is_right = rng.random((len(skills), n_clips)) < skills[:, None]
    calls = np.where(is_right, is_positive, ~is_positive).astype(np.int64)
    movies = np.array([f"f{film}" for film in np.arange(n_clips) * 10 // n_clips])
    return Annotated(is_positive, X, movies, calls)


def skills_by_labels(planted):
    """Compute how often each annotator is right on negative and on positive clips, [annotator, label]."""
    skills = []
    for calls in planted.calls:
        right_on_negative = np.mean(calls[~planted.is_positive] == 0)
        right_on_positive = np.mean(calls[planted.is_positive] == 1)
        skills.append((right_on_negative, right_on_positive))
    return np.array(skills)


def accuracy_of(p_positive, planted):
    """Return how often a clip that is more probably positive than not is positive, and the reverse."""
    return np.mean((p_positive > 0.5) == planted.is_positive)


def error_of(skills):
    """Compute the mean absolute error of estimated skills [annotator, label]."""
    return np.abs(skills - SKILLS[:, None]).mean()


@pytest.mark.long
def test_skills_are_estimated_nearly_as_well_as_with_true_labels_and_better_with_features():
    """Five annotators of skills .5 to .9 (the probability that their call is right) label six corpora.

    With the calls and the features of clips the mean error is at most 1.4 times that of whoever knows the
    true labels, and smaller than with the calls alone.
    """
    errors_by_labels = []
    errors_by_features = []
    errors_by_calls_alone = []
    for seed in range(6):
        planted = simulate_annotators(seed)
        errors_by_labels.append(error_of(skills_by_labels(planted)))
        by_features, _ = estimate_skills_and_labels(planted.calls, planted.movies, planted.X)
        errors_by_features.append(error_of(by_features))
        by_calls_alone, _ = estimate_skills_and_labels(planted.calls, planted.movies)
        errors_by_calls_alone.append(error_of(by_calls_alone))

    assert np.mean(errors_by_features) < 1.4 * np.mean(errors_by_labels)
    assert np.mean(errors_by_features) < np.mean(errors_by_calls_alone)


def test_features_tell_which_of_two_annotators_is_the_better():
    """The call of one is right with a probability of .6, that of the other with .9, whatever the label.

    Their calls alone cannot tell which is which: where they differ, either may be right. The features do,
    as those of positive clips are 3 SDs higher.
    """
    planted = simulate_annotators(seed=0, n_clips=1200, label_effect=3.0, skills=np.array([0.6, 0.9]))

    skills, p_positive = estimate_skills_and_labels(planted.calls, planted.movies, planted.X)

    (first_on_negative, first_on_positive), (second_on_negative, second_on_positive) = skills
    assert first_on_negative == pytest.approx(0.6, abs=0.05)
    assert first_on_positive == pytest.approx(0.6, abs=0.05)
    assert second_on_negative == pytest.approx(0.9, abs=0.05)
    assert second_on_positive == pytest.approx(0.9, abs=0.05)
    assert accuracy_of(p_positive, planted) > 0.93


def test_skills_are_estimated_though_calls_and_features_are_missing():
    """Five annotators of skills .5 to .9 call 600 clips of ten films.

    A third of the clips was called by nobody, another third not by the first annotator, and a quarter of the
    clips has no features. Still the skills must be off by less than .06 on average, and more than 85 % of all
    clips must get the right label; 40 % are positive, so that guessing gives 60 %.
    """
    planted = simulate_annotators(seed=1, n_clips=600)
    clips = np.arange(600)
    planted.calls[:, clips % 3 == 0] = NOT_ASKED
    planted.calls[0, clips % 3 == 1] = NOT_ASKED
    planted.X[clips % 4 == 0] = np.nan

    skills, p_positive = estimate_skills_and_labels(planted.calls, planted.movies, planted.X)

    assert error_of(skills) < 0.06
    assert np.isfinite(p_positive).all()
    assert accuracy_of(p_positive, planted) > 0.85


@pytest.mark.parametrize("n_films", [10, 1], ids=["of ten films", "of a single film"])
def test_features_that_are_noise_do_not_change_the_estimated_skills(n_films):
    """No feature of 300 clips knows the label. There are 400, enough to fit any labels by chance.

    The skills must be those that are estimated by the annotators' calls alone.
    """
    planted = simulate_annotators(seed=2, n_clips=300, label_effect=0.0, n_features=400)
    movies = planted.movies if n_films == 10 else np.full(300, "f")

    by_features, _ = estimate_skills_and_labels(planted.calls, movies, planted.X)
    by_calls_alone, _ = estimate_skills_and_labels(planted.calls, planted.movies)

    assert by_features == pytest.approx(by_calls_alone, abs=0.05)
