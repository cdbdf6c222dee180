"""Runs and reports in a notebook: HTML tables, every text escaped."""

from obygaze_models.evaluation.evaluate import evaluate


def test_a_run_shows_its_metrics_by_movie(make_planted):
    from sklearn.naive_bayes import GaussianNB

    run = evaluate(make_planted(), {"<bayes>": GaussianNB()}, "hn_s")
    html = run._repr_html_()
    assert "&lt;bayes&gt;" in html
    assert "<bayes>" not in html
    by_movie = run.metrics.query("model == '<bayes>' and metric == 'average_precision'")["movie_mean"].item()
    assert f"<td>{by_movie:.3f}</td>" in html
    assert html.index("&lt;bayes&gt;") < html.index("always_positive")
