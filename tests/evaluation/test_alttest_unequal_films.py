"""The alternative annotator test on films of unequal sizes: one long film is not many films."""

import tracemalloc

import numpy as np
import pytest

from obygaze_models.evaluation.alttest import alt_test


def machine_at_the_margin(rng, films):
    """Draw labels of two annotators, and of a machine whose balanced agreement is .1 below theirs.

    Annotators are right in 95 % of clips and so agree in 90.5 %. The machine is right in 83.9 % of clips on
    average over films, and so agrees with each in 80.5 %; in a film it is right in 74 to 94 % of clips.
    """
    n_films = films.max() + 1
    skill_of_film = 0.7 + 0.125 / 0.9 + rng.choice([-0.1, 0, 0.1], size=n_films)
    truth = rng.random(len(films)) < 0.5

    def labels_of_skill(skill):
        is_right = rng.random(len(films)) < skill
        return np.where(is_right, truth, ~truth).astype(np.int64)

    annotators = {"AB": labels_of_skill(0.95), "CD": labels_of_skill(0.95)}
    return labels_of_skill(skill_of_film[films]), annotators


@pytest.mark.long
@pytest.mark.parametrize("sizes", [[300] + [15] * 6, [1, 2, 4, 8, 16, 32, 64]])
def test_a_machine_at_the_margin_passes_on_unequal_films_no_more_often_than_stated(sizes):
    """With a degree of freedom for each film but one, .11 of such machines would pass."""
    rng = np.random.default_rng(5)
    films = np.repeat(np.arange(len(sizes)), sizes)
    n_corpora = 300

    n_passed = 0
    for _ in range(n_corpora):
        machine, annotators = machine_at_the_margin(rng, films)
        n_passed += alt_test(machine, annotators, films).answer == "may stand in"

    assert n_passed / n_corpora <= 0.05


@pytest.mark.parametrize(
    ("sizes", "degrees_of_freedom"),
    [
        ([20] * 12, pytest.approx(11)),
        ([30, 40, 50, 60, 70, 80, 90, 100, 110, 120], pytest.approx(5.9, abs=0.1)),
        ([4000] + [5] * 10, pytest.approx(1, abs=0.01)),  # the long film against the others
    ],
)
def test_the_degrees_of_freedom_are_those_that_the_sizes_of_films_leave(sizes, degrees_of_freedom):
    """Of equal films there is one less than films, whatever their number of clips."""
    rng = np.random.default_rng(6)
    films = np.repeat(np.arange(len(sizes)), sizes)
    machine, annotators = machine_at_the_margin(rng, films)

    comparison, *_ = alt_test(machine, annotators, films).comparisons

    assert comparison.by_form["films"].degrees_of_freedom[0] == degrees_of_freedom


def test_many_films_of_unequal_sizes_take_no_matrix_of_films_by_films():
    """20,000 films, as of trailers, have a matrix of 3 GB, which once was made for every comparison."""
    rng = np.random.default_rng(7)
    films = np.repeat(np.arange(20_000), rng.integers(1, 4, 20_000))
    machine, annotators = machine_at_the_margin(rng, films)

    tracemalloc.start()
    comparison, *_ = alt_test(machine, annotators, films).comparisons
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak_bytes < 200e6
    assert comparison.by_form["films"].degrees_of_freedom[0] > 10_000
