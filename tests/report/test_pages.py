"""Reports as pages: everything escaped, nothing requested."""

import base64
import re
from hashlib import sha256

import pandas as pd
import pytest

from obygaze_features.errors import OutputError
from obygaze_models.report import Block, Picture, Report, to_html, write_html
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
