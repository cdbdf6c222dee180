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
    """A machine agrees with the annotators by .1 less than they do with each other: just too little to pass.

    That is the margin of the test that decides, so that at most .05 of such machines may pass by chance. The
    films have very unequal numbers of clips. If each film but one counted as a degree of freedom, as if films
    were equal, .11 of the machines would pass.
    """
    rng = np.random.default_rng(5)
    films = np.repeat(np.arange(len(sizes)), sizes)
    n_corpora = 300

    n_passed = 0
    for _ in range(n_corpora):
        machine, annotators = machine_at_the_margin(rng, films)
        n_passed += alt_test(machine, annotators, films).answer == "may stand in"

    assert n_passed / n_corpora <= 0.05


def degrees_by_satterthwaite(shares):
    """Compute degrees of freedom by their definition, from the matrix B of changes of the mean.

    If films with these shares of the clips have the means m, the mean of all clips changes by B m when each
    film is left out. Var[V] of the jackknife's variance V gives trace(B B')^2 / trace(B B' B B').
    """
    n_films = len(shares)
    changes = (shares / (1 - shares))[:, None] * (np.eye(n_films) - shares)
    products = changes @ changes.T
    return np.trace(products) ** 2 / np.trace(products @ products)


@pytest.mark.parametrize(
    ("sizes", "degrees_of_freedom"),
    [
        ([20] * 12, pytest.approx(11)),
        ([30, 40, 50, 60, 70, 80, 90, 100, 110, 120], pytest.approx(5.9, abs=0.1)),
        ([4000] + [5] * 10, pytest.approx(1, abs=0.01)),  # the long film against the others
    ],
)
def test_unequal_films_leave_fewer_degrees_of_freedom_than_equal_ones(sizes, degrees_of_freedom):
    """Twelve films of equal size leave eleven, one less than there are films, as for any Student's t.

    Ten films of 30 to 120 clips leave 5.9 instead of nine, and a film of 4000 clips beside ten of 5 clips
    leaves one. Any labels will do: the degrees of freedom depend on the numbers of clips alone.
    """
    rng = np.random.default_rng(6)
    films = np.repeat(np.arange(len(sizes)), sizes)
    machine, annotators = machine_at_the_margin(rng, films)

    comparison, *_ = alt_test(machine, annotators, films).comparisons

    of_each_annotator = comparison.by_form["films"].degrees_of_freedom
    assert of_each_annotator[0] == degrees_of_freedom
    shares = np.array(sizes) / np.sum(sizes)
    assert of_each_annotator[0] == pytest.approx(degrees_by_satterthwaite(shares))


def test_many_films_of_unequal_sizes_take_no_matrix_of_films_by_films():
    """20,000 films of one to three clips, such as trailers, are compared in less than 200 MB.

    The degrees of freedom are a sum over all pairs of films; a matrix of these pairs would have 3 GB. Nearly
    every film counts as one degree of freedom, as no film is much longer than the others.
    """
    rng = np.random.default_rng(7)
    films = np.repeat(np.arange(20_000), rng.integers(1, 4, 20_000))
    machine, annotators = machine_at_the_margin(rng, films)

    tracemalloc.start()
    comparison, *_ = alt_test(machine, annotators, films).comparisons
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak_bytes < 200e6
    assert comparison.by_form["films"].degrees_of_freedom[0] > 10_000
