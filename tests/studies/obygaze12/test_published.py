"""The printed figures, and what can be said of them without any model."""

import pytest

from obygaze_studies.obygaze12.printed_values import TRIVIAL, trivial_f1


def test_seven_of_the_eight_trivial_figures_come_out_as_printed_and_the_eighth_does_not():
    verdicts = {(one["row"], one["test"], one["average"]): one["verdict"] for one in TRIVIAL}
    assert len(verdicts) == 8
    differing = [key for key, verdict in verdicts.items() if verdict == "DIFFERS"]
    assert differing == [("All positive", "enhn_s", "f1_pos")]
    # 001 cuts .086 off where it rounds the others.
    assert [key for key, verdict in verdicts.items() if "cut off" in verdict] == [
        ("All positive", "en_s", "f1_weighted")
    ]


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
