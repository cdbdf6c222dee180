"""The page on what numbers mean shows how to compute one without us, and it is ours."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from obygaze_models.evaluation import Predictions, summarise
from tests.evaluation.test_compare import make_predictions

PAGE = Path(__file__).parents[2] / "docs" / "evaluation.md"


@pytest.fixture
def predictions():
    """Two models and two tasks, on five films, of which one has no positive clip."""
    clips = make_predictions(strength=0.0, noise=1, n_movies=5, n_clips=20).assign(threshold=0.3)
    clips.loc[clips["movie"] == "m04", "label"] = 0
    tables = []
    for number, model in enumerate(("mlp", "movie_prior")):
        for task in ("hn_s>hn_s", "hn_s>enhn_s"):
            score = np.random.default_rng(number).normal(size=100)
            tables.append(clips.assign(model=model, task=task, score=score))
    return Predictions(pd.concat(tables, ignore_index=True))


@pytest.mark.long
def test_the_pages_lines_give_the_numbers_of_our_table(predictions, tmp_path, monkeypatch):
    """The page shows lines of Python that compute three metrics of one model without this package.

    They read the file of predictions of a run named `mine`, which is made here of five films. One of these
    has no positive clip, and so no AUC.
    """
    monkeypatch.chdir(tmp_path)
    Path("runs/mine").mkdir(parents=True)
    predictions.write(Path("runs/mine/predictions.csv"))
    page = PAGE.read_text(encoding="utf-8")
    (lines_of_page,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)

    by_the_page: dict[str, object] = {}
    exec(lines_of_page, by_the_page)  # noqa: S102 - our own page

    summary = summarise(predictions)
    is_of_model_and_task = (summary["model"] == "mlp") & (summary["task"] == "hn_s>enhn_s")
    ours = summary[is_of_model_and_task].set_index("metric")
    for metric in ("average_precision", "f1_pos", "within_movie_auc"):
        assert by_the_page[metric] == pytest.approx(ours.loc[metric, "pooled"], abs=1e-12), metric
    assert ours.loc["within_movie_auc", "n_undefined"] == 1
