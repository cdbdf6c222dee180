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
def test_the_trivial_formula_is_the_f1_of_expected_counts(prevalence, called):
    tp = prevalence * called
    fp = (1 - prevalence) * called
    fn = prevalence - tp
    tn = (1 - prevalence) - fp
    positive = 2 * tp / (2 * tp + fp + fn)
    negative = 2 * tn / (2 * tn + fp + fn)
    assert trivial_f1(prevalence, called, "f1_pos") == pytest.approx(positive)
    weighted = prevalence * positive + (1 - prevalence) * negative

    assert trivial_f1(prevalence, called, "f1_weighted") == pytest.approx(weighted)
