"""The scripts of page and desk write a probability as its texts do."""

import pandas as pd
import pytest

from obygaze_features.screen import probability
from obygaze_film.claims import Words
from obygaze_film.page import charts
from obygaze_film.page.packed import whole_percentages
from obygaze_models.commands import predict_commands
from obygaze_models.prediction.predict import Predicted


@pytest.mark.parametrize("p", [0.005, 0.125, 0.145, 0.285, 0.565, 0.575, 0.2849, 0.9949, 0.995, 1.0])
def test_a_time_of_the_timeline_has_the_percentage_of_the_passage_there(p):
    """The texts round 0.285 to 0.29; the nearest float is a little lower, which nobody sees."""
    percentage = float(whole_percentages(p))
    assert Words("en").number(percentage / 100) == Words("en").number(p)


@pytest.mark.parametrize(
    ("p", "written"), [(0.2851, 0.29), (0.285, 0.29), (0.125, 0.13), (0.714, 0.71), (0.005, 0.01), (1.0, 1.0)]
)
def test_a_figure_draws_a_probability_where_and_in_the_colour_in_which_it_is_written(p, written):
    """The scripts of page and desk get whole percentages: 0.2851 is drawn as 0.29, which is above 2/7."""
    assert charts.y_of(p) == 100 - round(100 * written)
    [step] = charts.strip([0.0], [8.0], [p])
    assert step == min(int(round(100 * written) * 7 / 100), 6) + 1  # `stripPaths` of rows.js


@pytest.mark.parametrize(
    ("seconds", "tenths"), [(0.25, 3), (0.35, 4), (0.2499996, 3), (12.04, 120), (0.0, 0)]
)
def test_a_figure_draws_a_time_where_the_script_of_the_page_draws_it(seconds, tenths):
    """The script rounds 250 ms to 3 tenths of a second, half of one up (`tenths` of rows.js)."""
    assert charts.tenths(seconds) == tenths


@pytest.mark.parametrize("p", [0.005, 0.125, 0.285, 0.575, 0.2849, 0.995, 1.0])
def test_an_explanation_in_a_terminal_has_the_probability_of_the_page(p):
    """`explain` and `predict` print the same numbers of a clip as its film's page."""
    assert probability(p) == Words("en").probability(p)
    table = predictions_table(p)
    assert Words("en").number(p) in table.splitlines()[-1].split()


def predictions_table(p):
    """Return the table that `obygaze predict` prints of one clip with a probability."""
    numbers = dict.fromkeys(("start_s", "logit", "p_low", "p_high", "unlike"), 0.0)
    row = {"clip_id": "c0", "called": 1, "flags": "", **numbers, "p": p}
    return predict_commands._predictions_table(Predicted(pd.DataFrame([row]), excluded={}))
