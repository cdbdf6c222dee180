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

NASTY = "</script><img src=x onerror=alert(1)> \"q\" 's' & <b>"


def draw(path):
    path.write_text(
        "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", encoding="utf-8"
    )


def report(title="A title", name="made"):
    rows = (("linear", "0.593", "0.50 [0.40, 0.60]"), (NASTY, "-", "undefined"))
    block = Block(f"block {NASTY}", ("model", "AP", "F1 [95 %]"), rows, (f"note {NASTY}",))
    pictures = (Picture("curve", f"caption {NASTY}", draw),)
    return Report(name, title, (f"notes {NASTY}",), (block,), pd.DataFrame(), {"made": NASTY}, pictures)


def test_a_report_is_one_file_in_which_every_text_is_escaped():
    page = to_html(report(NASTY))
    assert page.count("<script") == 0
    assert "<img src=x" not in page
    assert "&lt;img src=x" in page
    # A picture is data in an image, in which no script runs.
    assert re.findall(r'<img src="(data:image/svg\+xml;base64,)', page) == ["data:image/svg+xml;base64,"]
    assert re.findall(r"https?://", page) == []
    assert page == to_html(report(NASTY))


def test_numbers_stand_right_and_names_left():
    page = to_html(report())
    assert '<th scope="col" class="n">AP</th>' in page
    assert '<th scope="col">model</th>' in page
    assert '<td class="n">0.593</td>' in page


def test_the_policy_names_the_digest_of_the_style_and_allows_no_script():
    page = to_html(report())
    policy = re.search('Content-Security-Policy" content="([^"]*)"', page)[1].replace("&#39;", "'")
    style = re.search("<style>(.*?)</style>", page, re.DOTALL)[1]
    digest = base64.b64encode(sha256(style.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    assert "style=" not in page


def charted():
    """Three models with an AUC, of which one is undefined, beside chance at a half."""
    values = {"a": (0.7, 0.6, 0.8), "b": (0.5, 0.25, 0.75), "c": (np.nan, np.nan, np.nan)}
    rows = [{"model": name, 0: auc, 1: low, 2: high} for name, (auc, low, high) in values.items()]
    columns = [("model", "model", str), ("AUC [95 %]", (0, 1, 2), interval)]
    return block("by movie", columns, rows, reference=0.5)


def test_a_chart_shows_the_numbers_of_the_table_on_one_axis():
    page = to_html(replace(report(), blocks=(charted(),)))
    (chart,) = re.findall(r'<div class="run-dots".*?</div>\n</div>', page, re.DOTALL)
    ticks = {float(text): float(x) for x, text in re.findall(r'<text x="([\d.]+)%"[^>]*>([\d.]+)<', chart)}
    at = np.polynomial.Polynomial.fit([*ticks], [*ticks.values()], 1)
    assert re.findall(r"<div><span>(.*?)</span>", chart) == ["a", "b"]
    drawn = re.findall(r'<line x1="([\d.]+)%" x2="([\d.]+)%".*?<circle cx="([\d.]+)%"', chart)
    expected = [[at(0.6), at(0.8), at(0.7)], [at(0.25), at(0.75), at(0.5)]]
    np.testing.assert_allclose(np.array(drawn, float), expected, atol=0.02)
    (reference,) = set(re.findall(r'class="run-reference" x1="([\d.]+)%"', chart))
    assert float(reference) == pytest.approx(at(0.5), abs=0.02)


def test_chance_is_named_and_yardsticks_have_less_ink():
    page = to_html(replace(report(), blocks=(replace(charted(), yardsticks=frozenset({"b"})),)))
    assert ">chance 0.50</text>" in page
    assert re.findall(r"<div class=run-beside><span>(.*?)</span>", page) == ["b"]
    assert re.findall(r'<tr class=run-beside><th scope="row">(.*?)</th>', page) == ["b"]


def test_the_answer_comes_first_and_a_table_once():
    answered = replace(report(), answers=("A is better",), blocks=(charted(), charted()))
    page = to_html([answered, answered])
    assert page.count("<table>") == 1
    assert page.count('href="#report-1-1"') == 3
    alone = to_html(answered)
    places = [alone.index(part) for part in ("A is better", "<table>", html.escape("notes </script>"))]
    assert places == sorted(places)


def test_several_reports_have_an_index():
    page = to_html([report("One"), report("Two")], "Both")
    assert "<title>Both</title>" in page
    assert '<a href="#report-2">Two</a>' in page
    assert page.count("<h1>") == 1
    assert page.count("<h2>") == 2


def test_a_page_is_not_replaced_unless_forced(tmp_path):
    write_html(report(), tmp_path / "a" / "page.html")
    with pytest.raises(OutputError, match=r"page.html exists already"):
        write_html(report(), tmp_path / "a" / "page.html")
    write_html(report(), tmp_path / "a" / "page.html", force=True)


def test_no_text_ends_a_script_of_data():
    text = json_data({"a": "</script><!-- & \u2028"})
    assert not set("<>&\u2028") & set(text)
