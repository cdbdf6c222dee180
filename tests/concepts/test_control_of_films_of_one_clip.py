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


def test_films_of_one_clip_exchange_clips_among_each_other_and_change_nothing_for_longer_films():
    """The films a and c have five clips each, which are exchanged within their film; b, d and e have one.

    These three exchange theirs with each other. The clips of a and c must be exchanged as they are where b, d
    and e are missing, by the same random draws.
    """
    longer_films = np.repeat(["a", "c"], 5)  # rows 0 to 9
    films_of_one_clip = ["b", "d", "e"]  # rows 10 to 12

    rows = exchange_within_movies(np.array([*longer_films, *films_of_one_clip]), seed=3)

    rows_of_longer_films, rows_of_films_of_one_clip = rows[:10].tolist(), rows[10:].tolist()
    assert rows_of_longer_films == exchange_within_movies(longer_films, seed=3).tolist()
    assert sorted(rows_of_films_of_one_clip) == [10, 11, 12]
