"""The scripts of page and desk write a probability as its texts do."""

import pytest

from obygaze_film.claims import Words
from obygaze_film.page.packed import whole_percentages


@pytest.mark.parametrize("p", [0.005, 0.125, 0.145, 0.285, 0.565, 0.575, 0.2849, 0.9949, 0.995, 1.0])
def test_a_time_of_the_timeline_has_the_percentage_of_the_passage_there(p):
    """The texts round 0.285 to 0.29; the nearest float is a little lower, which nobody sees."""
    percentage = float(whole_percentages(p))
    assert Words("en").number(percentage / 100) == Words("en").number(p)
