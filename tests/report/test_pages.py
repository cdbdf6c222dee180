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
from obygaze_models.report.pages import json_data

MARKUP = "</script><img src=x onerror=alert(1)> \"q\" 's' & <b>"


def draw_with_script(path):
    path.write_text(
        "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", encoding="utf-8"
    )


def report_with_markup(title="A title", name="made"):
    """Make a report of a block and a picture, in all of whose texts stands `MARKUP`."""
    rows = (("linear", "0.593", "0.50 [0.40, 0.60]"), (MARKUP, "-", "undefined"))
    block = Block(f"block {MARKUP}", ("model", "AP", "F1 [95 %]"), rows, (f"note {MARKUP}",))
    pictures = (Picture("curve", f"caption {MARKUP}", draw_with_script),)
    return Report(name, title, (f"notes {MARKUP}",), (block,), pd.DataFrame(), {"made": MARKUP}, pictures)


def test_every_text_of_a_page_is_escaped_and_pictures_are_embedded_without_scripts():
    page = to_html(report_with_markup(MARKUP))
    assert "<script" not in page
    assert "<img src=x" not in page
    assert "&lt;img src=x" in page
    assert page.count('<img src="data:image/svg+xml;base64,') == 1
    assert re.findall(r"https?://", page) == []  # a page requests nothing
    assert to_html(report_with_markup(MARKUP)) == page


def test_numbers_stand_right_and_names_left():
    page = to_html(report_with_markup())
    assert '<th scope="col" class="n">AP</th>' in page
    assert '<th scope="col">model</th>' in page
    assert '<td class="n">0.593</td>' in page


def test_the_policy_names_the_digest_of_the_style_and_allows_no_script():
    page = to_html(report_with_markup())
    policy = re.search('Content-Security-Policy" content="([^"]*)"', page)[1].replace("&#39;", "'")
    style = re.search("<style>(.*?)</style>", page, re.DOTALL)[1]
    digest = base64.b64encode(sha256(style.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    assert "style=" not in page


def block_with_chart():
    """Make a block of the AUC of models, with its interval; that of c is undefined, and chance is .5."""
    values = {"a": (0.7, 0.6, 0.8), "b": (0.5, 0.25, 0.75), "c": (np.nan, np.nan, np.nan)}
    rows = [{"model": name, 0: auc, 1: low, 2: high} for name, (auc, low, high) in values.items()]
    columns = [("model", "model", str), ("AUC [95 %]", (0, 1, 2), interval)]
    return block("by movie", columns, rows, reference=0.5)


def test_a_chart_draws_values_intervals_and_chance_where_its_axis_has_them():
    """It has a row for each model whose value is defined. Places are in percent of its width."""
    page = to_html(replace(report_with_markup(), blocks=(block_with_chart(),)))
    (chart,) = re.findall(r'<div class="run-dots".*?</div>\n</div>', page, re.DOTALL)
    tick_and_value = re.findall(r'<text x="([\d.]+)%"[^>]*>([\d.]+)<', chart)
    places, values = np.array(tick_and_value, float).T
    value_at = np.polynomial.Polynomial.fit(places, values, 1)

    assert re.findall(r"<div><span>(.*?)</span>", chart) == ["a", "b"]
    low_high_and_value = re.findall(r'<line x1="([\d.]+)%" x2="([\d.]+)%".*?<circle cx="([\d.]+)%"', chart)
    expected = [[0.6, 0.8, 0.7], [0.25, 0.75, 0.5]]
    np.testing.assert_allclose(value_at(np.array(low_high_and_value, float)), expected, atol=0.001)
    (place_of_chance,) = set(re.findall(r'class="run-reference" x1="([\d.]+)%"', chart))
    assert value_at(float(place_of_chance)) == pytest.approx(0.5, abs=0.001)
    assert ">chance 0.50</text>" in chart


def test_a_baseline_is_drawn_and_printed_in_a_lighter_style():
    block_with_baseline = replace(block_with_chart(), yardsticks=frozenset({"b"}))
    page = to_html(replace(report_with_markup(), blocks=(block_with_baseline,)))
    assert re.findall(r"<div class=run-beside><span>(.*?)</span>", page) == ["b"]
    assert re.findall(r'<tr class=run-beside><th scope="row">(.*?)</th>', page) == ["b"]


def test_a_page_has_answer_table_and_notes_and_a_link_in_place_of_a_table_that_comes_again():
    blocks = (block_with_chart(), block_with_chart())
    report = replace(report_with_markup(), answers=("A is better",), blocks=blocks)

    page = to_html([report, report])

    parts = ["A is better", "<table>", html.escape("notes </script>")]
    places = [page.index(part) for part in parts]
    assert places == sorted(places)
    n_tables = 4  # two equal blocks in each of two equal reports
    assert page.count("<table>") == 1
    assert page.count('href="#report-1-1"') == n_tables - 1


def test_several_reports_have_an_index():
    page = to_html([report_with_markup("One"), report_with_markup("Two")], "Both")
    assert "<title>Both</title>" in page
    assert '<a href="#report-2">Two</a>' in page
    assert page.count("<h1>") == 1
    assert page.count("<h2>") == 2


def test_a_page_is_not_replaced_unless_forced(tmp_path):
    write_html(report_with_markup(), tmp_path / "a" / "page.html")
    with pytest.raises(OutputError, match=r"page.html exists already"):
        write_html(report_with_markup(), tmp_path / "a" / "page.html")
    write_html(report_with_markup(), tmp_path / "a" / "page.html", force=True)


def test_no_text_ends_a_script_of_data():
    text = json_data({"a": "</script><!-- & \u2028"})
    assert not set("<>&\u2028") & set(text)


def test_a_number_that_is_rounded_to_0_has_no_sign():
    assert interval(-0.0001, -0.0004, 0.0002) == "0.000 [0.000, 0.000]"
    assert interval(-0.0001, -0.5, 0.5, signed=True) == "+0.000 [-0.500, +0.500]"
