"""The alternative annotator test on few films: means that are equal by chance prove nothing."""

import numpy as np
import pytest

from obygaze_models.evaluation.alttest import alt_test


def machine_at_the_margin(rng, films):
    """Draw labels of two annotators, and of a machine whose balanced agreement is .1 below theirs.

    Annotators are right in 95 % of clips and so agree in 90.5 %; a machine that is right in 83.9 % agrees
    with each in 80.5 %.
    """
    truth = rng.random(len(films)) < 0.5

    def labels_of_skill(skill):
        is_right = rng.random(len(films)) < skill
        return np.where(is_right, truth, ~truth).astype(np.int64)

    annotators = {"AB": labels_of_skill(0.95), "CD": labels_of_skill(0.95)}
    return labels_of_skill(0.7 + 0.125 / 0.9), annotators


@pytest.mark.long
def test_a_machine_at_the_margin_passes_on_two_short_films_no_more_often_than_stated():
    """A machine agrees with the annotators by .1 less than they do with each other: just too little to pass.

    At most .05 of such machines may pass by chance. With 15 clips a film, the mean has few possible values,
    and is equal in both films in every fifth corpus. If that were taken for certainty, .1 would pass.
    """
    rng = np.random.default_rng(3)
    films = np.repeat(["one", "two"], 15)
    n_corpora = 300

    n_passed = 0
    for _ in range(n_corpora):
        machine, annotators = machine_at_the_margin(rng, films)
        n_passed += alt_test(machine, annotators, films).answer == "may stand in"

    assert n_passed / n_corpora <= 0.05


def with_other_labels(labels, *, clips):
    """Return labels of 0 and 1 that are changed in some clips."""
    changed = labels.copy()
    changed[clips] = 1 - changed[clips]
    return changed


def test_two_films_in_which_a_machine_does_equally_well_do_not_prove_that_it_is_as_good():
    """In both films of 15 clips the machine differs from AB and CD in 3 clips, and CD from the others in 4.

    The machine's mean shortfall is the same in both films, so that films do not seem to differ. By chance
    that is often so with 15 clips: the p of its being worse than either annotator by .1 must stay above .05.
    """
    films = np.repeat(["one", "two"], 15)
    AB = np.tile([0, 1, 0], 10)
    machine = with_other_labels(AB, clips=[0, 1, 2, 15, 16, 17])
    CD = with_other_labels(AB, clips=[3, 4, 5, 6, 18, 19, 20, 21])

    result = alt_test(machine, {"AB": AB, "CD": CD}, films)

    of_machine, *_of_controls = result.comparisons
    p_of_annotators = of_machine.p("films", margin=0.1)
    assert p_of_annotators.min() > 0.05


def test_a_machine_that_says_all_that_an_annotator_says_is_as_good_as_this_one_for_certain():
    """AB and CD label two films of 15 clips, and differ in two clips. The machine says whatever AB says.

    It agrees with CD wherever AB does: its shortfall against AB is 0 in each clip, without any error. So the
    p of its being worse than AB by .1 is 0.
    """
    films = np.repeat(["one", "two"], 15)
    AB = np.tile([0, 1, 0], 10)
    CD = with_other_labels(AB, clips=[0, 17])

    result = alt_test(AB.copy(), {"AB": AB, "CD": CD}, films)

    of_machine, *_of_controls = result.comparisons
    p_of_ab, _p_of_cd = of_machine.p("films", margin=0.1)
    assert p_of_ab == 0
