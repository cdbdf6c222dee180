"""A model whose scores do not vary is level with a constant baseline, and that is no estimate."""

import numpy as np

from obygaze_models import evaluate
from obygaze_models.report.run_tables import run_report
from tests.conftest import dataset


def test_the_lead_of_a_constant_model_over_a_constant_baseline_is_exactly_0():
    """Features that are the same for all clips leave a probe nothing but its intercept."""
    movies = np.repeat([f"tt{number}" for number in range(4)], 20)
    levels = np.tile(["EN", "S"], 40)
    clips = dataset(np.ones((80, 3)), levels, movies)

    report = run_report(evaluate(clips, ["linear"], task="en_s"))

    first_answer = report.answers[0]
    assert "no model is shown to be better" in first_answer
    assert "by +0.000 [+0.000, +0.000] in AUC by movie" in first_answer
