"""Reports as pages: everything escaped, nothing requested."""

import base64
import html
import re
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pandas as pd
import pytest

from obygaze_features.errors import OutputError
from obygaze_models.report import Block, Picture, Report, block, interval, to_html, write_html
from obygaze_models.report.blocks import signed
from obygaze_models.report.pages import json_data

MARKUP = "</script><img src=x onerror=alert(1)> \"q\" 's' & <b>"
"""A text that would be a picture, with a script, if a page did not escape it."""


def draw_with_script(path):
    """Draw a picture, in SVG, that would run a script."""
    path.write_text(
        "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", encoding="utf-8"
    )


def report_with_markup(title="A title", name="made"):
    """Make a report of a block and a picture, in all of whose texts stands `MARKUP`.

    The block is a table of the columns model, AP and F1, with a row "linear" whose AP is 0.593.
    """
    rows = (("linear", "0.593", "0.50 [0.40, 0.60]"), (MARKUP, "-", "undefined"))
    block = Block(f"block {MARKUP}", ("model", "AP", "F1 [95 %]"), rows, (f"note {MARKUP}",))
    pictures = (Picture("curve", f"caption {MARKUP}", draw_with_script),)
    return Report(name, title, (f"notes {MARKUP}",), (block,), pd.DataFrame(), {"made": MARKUP}, pictures)


def test_every_text_of_a_page_is_escaped():
    """All texts of the report, its title too, have an element <img src=x ...> and an end of a script."""
    page = to_html(report_with_markup(title=MARKUP))

    assert "<script" not in page
    assert "<img src=x" not in page
    assert "&lt;img src=x" in page


def test_a_picture_is_embedded_without_its_script_and_a_page_requests_nothing():
    """The report has one picture, an SVG with a script. Any other request would need an address."""
    page = to_html(report_with_markup())

    assert page.count('<img src="data:image/svg+xml;base64,') == 1
    assert "<script" not in page
    assert re.findall(r"https?://", page) == []


def test_the_same_report_gives_the_same_page_each_time():
    """A page is made twice of a report: neither the time nor a random name may stand in it."""
    first_page = to_html(report_with_markup(MARKUP))
    second_page = to_html(report_with_markup(MARKUP))

    assert second_page == first_page


def test_numbers_stand_right_and_names_left():
    """The class "n" of a cell is that of numbers, which stand right.

    The report's table has a column of names, model, and one of numbers, AP.
    """
    page = to_html(report_with_markup())

    assert '<th scope="col">model</th>' in page
    assert '<th scope="col" class="n">AP</th>' in page
    assert '<td class="n">0.593</td>' in page


def test_the_policy_names_the_digest_of_the_style_and_allows_no_script():
    """A browser applies the style only if its SHA-256 is that in the page's Content-Security-Policy."""
    page = to_html(report_with_markup())

    policy = re.search('Content-Security-Policy" content="([^"]*)"', page)[1].replace("&#39;", "'")
    style = re.search("<style>(.*?)</style>", page, re.DOTALL)[1]
    digest = base64.b64encode(sha256(style.encode()).digest()).decode()

    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    assert "style=" not in page  # of an element, which the policy would forbid


def block_with_chart():
    """Make a block of the AUC of models, with its interval; that of c is undefined, and chance is .5."""
    values = {"a": (0.7, 0.6, 0.8), "b": (0.5, 0.25, 0.75), "c": (np.nan, np.nan, np.nan)}
    rows = [{"model": name, 0: auc, 1: low, 2: high} for name, (auc, low, high) in values.items()]
    columns = [("model", "model", str), ("AUC [95 %]", (0, 1, 2), interval)]
    return block("by movie", columns, rows, reference=0.5)


@pytest.fixture
def chart():
    """The chart of a page whose only block is `block_with_chart`."""
    page = to_html(replace(report_with_markup(), blocks=(block_with_chart(),)))
    (chart,) = re.findall(r'<div class="run-dots".*?</div>\n</div>', page, re.DOTALL)
    return chart


def value_by_place_on_axis(chart):
    """Return a function from a place in a chart, in percent of its width, to its axis's value there."""
    places, values = [], []
    for place, value in re.findall(r'<text x="([\d.]+)%"[^>]*>([\d.]+)<', chart):
        places.append(float(place))
        values.append(float(value))
    return np.polynomial.Polynomial.fit(places, values, 1)


def test_a_chart_draws_values_and_intervals_where_its_axis_has_them(chart):
    """Model a has an AUC of .7 [.6, .8], model b one of .5 [.25, .75], and that of c is undefined.

    A line is an interval, and a circle on it the value. c has no row in the chart.
    """
    value_at = value_by_place_on_axis(chart)

    assert re.findall(r"<div><span>(.*?)</span>", chart) == ["a", "b"]
    lines_and_circles = re.findall(r'<line x1="([\d.]+)%" x2="([\d.]+)%".*?<circle cx="([\d.]+)%"', chart)
    drawn = []
    for line_start, line_end, circle in lines_and_circles:
        drawn.append([value_at(float(line_start)), value_at(float(line_end)), value_at(float(circle))])
    np.testing.assert_allclose(drawn, [[0.6, 0.8, 0.7], [0.25, 0.75, 0.5]], atol=0.001)


def test_a_chart_has_a_line_at_chance(chart):
    """Chance is .5 for the AUC that is drawn; all parts of the line are at one place."""
    value_at = value_by_place_on_axis(chart)

    (place_of_line,) = set(re.findall(r'class="run-reference" x1="([\d.]+)%"', chart))

    assert value_at(float(place_of_line)) == pytest.approx(0.5, abs=0.001)
    assert ">chance 0.50</text>" in chart


@pytest.mark.parametrize(
    ("format_cell", "label"),
    [
        pytest.param(interval, "chance 0.00", id="a correlation"),
        pytest.param(signed, "no difference", id="a difference, which is written with its sign"),
    ],
)
def test_the_line_at_0_of_a_drawn_table_is_labelled_as_chance_or_as_no_difference(format_cell, label):
    """A page draws the intervals of a table, here .1 [-.1, .3] of the models a and b, with a line at 0.

    Correlations and kappas are 0 by chance. A difference of two models is 0 if there is none, not by chance.
    """
    rows = [{"model": name, "mean": 0.1, "low": -0.1, "high": 0.3} for name in ("a", "b")]
    columns = [("model", "model", str), ("number [95 %]", ("mean", "low", "high"), format_cell)]
    table = block("by movie", columns, rows, reference=0.0)

    page = to_html(replace(report_with_markup(), blocks=(table,)))

    assert f">{label}</text>" in page


def test_a_page_shows_a_baseline_in_a_lighter_style_in_chart_and_table():
    """A table of the AUC of the models a, b and c has a chart beside it. The model b is a baseline.

    Baselines are a block's `yardsticks`. On the page, bars and rows of the HTML class `run-beside` are
    lighter than others: b alone must have it.
    """
    block_with_baseline = replace(block_with_chart(), yardsticks=frozenset({"b"}))

    page = to_html(replace(report_with_markup(), blocks=(block_with_baseline,)))

    lighter_in_chart = re.findall(r"<div class=run-beside><span>(.*?)</span>", page)
    lighter_in_table = re.findall(r'<tr class=run-beside><th scope="row">(.*?)</th>', page)
    assert lighter_in_chart == ["b"]
    assert lighter_in_table == ["b"]


def test_a_page_has_the_answer_before_the_table_and_the_notes_after_it():
    """The note of this report is "notes </script>", which stands in the page with its < and > escaped."""
    report = replace(report_with_markup(), answers=("A is better",), blocks=(block_with_chart(),))

    page = to_html(report)

    place_of_answer = page.index("A is better")
    place_of_table = page.index("<table>")
    place_of_notes = page.index(html.escape("notes </script>"))
    assert place_of_answer < place_of_table < place_of_notes


def test_a_page_shows_equal_tables_once_and_links_to_the_first_in_place_of_the_others():
    """Two equal reports of two equal blocks have four equal tables: one is shown, and three are links."""
    blocks = (block_with_chart(), block_with_chart())
    report = replace(report_with_markup(), blocks=blocks)

    page = to_html([report, report])

    assert page.count("<table>") == 1
    assert page.count('href="#report-1-1"') == 3


def test_several_reports_have_an_index():
    """The page has the title Both, and each report a heading of its own, to which the index leads."""
    page = to_html([report_with_markup("One"), report_with_markup("Two")], "Both")

    assert "<title>Both</title>" in page
    assert '<a href="#report-2">Two</a>' in page
    assert page.count("<h1>") == 1
    assert page.count("<h2>") == 2


def test_a_page_is_not_replaced_unless_forced(tmp_path):
    """Two reports, of the titles Old and New, are written to one file."""
    path = tmp_path / "a" / "page.html"
    write_html(report_with_markup("Old"), path)

    with pytest.raises(OutputError, match=r"page.html exists already"):
        write_html(report_with_markup("New"), path)
    assert "Old" in path.read_text(encoding="utf-8")

    write_html(report_with_markup("New"), path, force=True)
    assert "New" in path.read_text(encoding="utf-8")


def test_no_text_ends_a_script_of_data():
    """Data stand in a page as JSON in a <script>, which "</script>" would end and "<!--" confuse.

    So no such sign is in the JSON, nor U+2028, an end of a line in JavaScript.
    """
    text = json_data({"a": "</script><!-- & \u2028"})

    for sign in ("<", ">", "&", "\u2028"):
        assert sign not in text


def test_a_number_that_is_rounded_to_0_has_no_minus_sign():
    """The arguments are a value and the ends of its interval, which are printed with three decimals."""
    assert interval(-0.0001, low=-0.0004, high=0.0002) == "0.000 [0.000, 0.000]"
    assert interval(-0.0001, low=-0.5, high=0.5, signed=True) == "+0.000 [-0.500, +0.500]"


def test_the_ticks_of_a_chart_are_round_numbers_side_by_side_from_end_to_end(chart):
    """What is drawn goes from .25 to .8: the ticks are .2, .3 ... .8, equally far apart within the chart."""
    places_and_labels = re.findall(r'<text x="([\d.]+)%"[^>]*>([\d.]+)<', chart)

    assert [label for _, label in places_and_labels] == ["0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8"]
    places = np.array([float(place) for place, _ in places_and_labels])
    assert 0 < places[0] < 10
    assert 90 < places[-1] < 100
    np.testing.assert_allclose(np.diff(places), (places[-1] - places[0]) / 6, atol=0.011)
