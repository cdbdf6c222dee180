"""Runs and reports in a notebook: HTML tables, every text escaped."""

import pandas as pd

from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.report import Block, Picture, Report


def test_a_run_shows_its_metrics_by_movie(make_planted):
    from sklearn.naive_bayes import GaussianNB

    run = evaluate(make_planted(), {"<bayes>": GaussianNB()}, "hn_s")
    html = run._repr_html_()
    assert "&lt;bayes&gt;" in html
    assert "<bayes>" not in html
    by_movie = run.metrics.query("model == '<bayes>' and metric == 'average_precision'")["movie_mean"].item()
    assert f"<td>{by_movie:.3f}</td>" in html
    assert html.index("&lt;bayes&gt;") < html.index("always_positive")


def test_a_report_shows_notes_tables_and_names_its_figures():
    block = Block("by <movie>", ("model", "AP"), (("a&b", "0.500"), ("c", "1.000")), notes=("one < two",))
    picture = Picture("bars", "shares & counts", print)
    report = Report("x", "T <1>", ("noted",), (block,), pd.DataFrame(), {}, (picture,))
    html = report._repr_html_()
    for text in ("T &lt;1&gt;", "noted", "by &lt;movie&gt;", "one &lt; two", "a&amp;b", "shares &amp;"):
        assert text in html
    assert "a&b" not in html
