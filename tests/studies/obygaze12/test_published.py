"""The printed figures, and what can be said of them without any model."""

import pytest

from obygaze_studies.obygaze12.printed_values import TRIVIAL, trivial_f1

VERDICTS = {(figure["row"], figure["test"], figure["average"]): figure["verdict"] for figure in TRIVIAL}
"""Whether each printed figure of a trivial model follows from the formula, by row, test and average."""


def test_only_one_printed_figure_of_trivial_models_contradicts_the_formula():
    """The F1 of a model that guesses follows from the prevalence and the share that it calls positive.

    Eight such figures are printed.
    """
    assert len(VERDICTS) == 8
    differing = [figure for figure, verdict in VERDICTS.items() if verdict == "DIFFERS"]
    assert differing == [("All positive", "enhn_s", "f1_pos")]


def test_one_printed_figure_of_a_trivial_model_is_cut_off_where_the_others_are_rounded():
    """Of .086 the paper prints .08."""
    cut_off = [figure for figure, verdict in VERDICTS.items() if "cut off" in verdict]
    assert cut_off == [("All positive", "en_s", "f1_weighted")]


@pytest.mark.parametrize(("prevalence", "called"), [(0.3, 1.0), (0.3, 0.5), (0.41, 0.2)])
def test_the_f1_of_a_model_that_guesses_follows_from_its_expected_hits_and_errors(prevalence, called):
    """A share of clips is positive (prevalence), and the model calls a share of all clips positive by chance.

    So it calls the same share of the positive and of the negative clips. F1 is 2 TP / (2 TP + FP + FN); the
    weighted one is the mean of both classes' F1, by their sizes.
    """
    true_positives = prevalence * called
    false_positives = (1 - prevalence) * called
    false_negatives = prevalence - true_positives
    true_negatives = (1 - prevalence) - false_positives
    errors = false_positives + false_negatives
    f1_of_positives = 2 * true_positives / (2 * true_positives + errors)
    f1_of_negatives = 2 * true_negatives / (2 * true_negatives + errors)
    weighted_f1 = prevalence * f1_of_positives + (1 - prevalence) * f1_of_negatives

    assert trivial_f1(prevalence, called=called, average="f1_pos") == pytest.approx(f1_of_positives)
    assert trivial_f1(prevalence, called=called, average="f1_weighted") == pytest.approx(weighted_f1)
