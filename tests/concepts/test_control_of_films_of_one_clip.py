"""Shuffled concepts where films have one clip each: the control must not be the model itself."""

import numpy as np

from obygaze_models.concepts.bank import ConceptBank
from obygaze_models.concepts.control_bank import ControlBank, exchange_within_movies

N_FILMS = 80


def test_shuffled_directions_do_not_know_a_concept_of_films_of_one_clip():
    """Each film has one clip, such as a trailer, in which a concept is there or not; it moves a feature by 4.

    A control bank learns directions from presences that clips exchange within films. Films of one clip must
    exchange theirs with each other: otherwise all presences stay in place, and the control knows the concept.
    The gap between clips with and without it must be less than half of the gap along the concept's direction.
    """
    rng = np.random.default_rng(0)
    movies = np.array([f"film{number:02}" for number in range(N_FILMS)])
    has_concept = rng.random(N_FILMS) < 0.5
    X = rng.normal(size=(N_FILMS, 12))
    X[:, 0] += 4 * has_concept
    present = has_concept[:, None].astype(float)

    def gap_of(bank):
        """How much farther along its direction clips with the concept are than clips without it."""
        distances = bank.fit(X, present, movies).transform(X)[:, 0]
        return distances[has_concept].mean() - distances[~has_concept].mean()

    gap_of_concept = gap_of(ConceptBank(kind="ridge"))
    gaps_of_controls = [gap_of(ControlBank(random_state=seed)) for seed in range(5)]

    assert np.mean(np.abs(gaps_of_controls)) < 0.5 * gap_of_concept


def test_clips_of_longer_films_are_exchanged_within_them_as_if_the_short_ones_were_not_there():
    """Two films have five clips each, and three have one."""
    long_films = np.repeat(["a", "c"], 5)
    all_films = np.array([*long_films, "b", "d", "e"])

    rows = exchange_within_movies(all_films, seed=3)

    assert rows[:10].tolist() == exchange_within_movies(long_films, seed=3).tolist()
    assert sorted(rows[10:].tolist()) == [10, 11, 12]
