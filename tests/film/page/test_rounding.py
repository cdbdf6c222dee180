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
def test_a_probability_is_rounded_alike_on_the_timeline_and_in_a_sentence(p):
    """Sentences round .285 to .29, though the float nearest to .285 is a little below it.

    The timeline has whole percentages, which the page's script writes as numbers of two decimals: 29 % as
    .29. They must be what the sentence on a passage there says of p.
    """
    percentage = float(whole_percentages(p))
    on_timeline = Words("en").number(percentage / 100)
    in_sentence = Words("en").number(p)
    assert on_timeline == in_sentence


@pytest.mark.parametrize(
    ("p", "written"), [(0.2851, 0.29), (0.285, 0.29), (0.125, 0.13), (0.714, 0.71), (0.005, 0.01), (1.0, 1.0)]
)
def test_a_figure_places_and_colours_a_probability_as_its_written_number(p, written):
    """A probability is written with two decimals. A figure's line and colour are of that whole percentage.

    For the colour, 0 to 1 is cut into seven steps, 1 to 7: step 3 begins at 2/7 = .2857. So .2851, written
    .29, must have step 3, though it is below .2857 itself. The scripts of page and desk (`stripPaths` of
    rows.js) get whole percentages, and a figure must look like them.
    """
    percentage = round(100 * written)
    assert charts.y_of(p) == 100 - percentage  # y points down: 100 is probability 0

    row_starts_s, row_ends_s = [0.0], [8.0]
    [step] = charts.strip(row_starts_s, row_ends_s, [p])
    n_steps_below = min(int(percentage * 7 / 100), 6)  # 100 % belongs to the last step
    assert step == n_steps_below + 1


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
