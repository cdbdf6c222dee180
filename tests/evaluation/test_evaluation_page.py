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
    clips = make_predictions(0.0, noise=1, n_movies=5, n_clips=20).assign(threshold=0.3)
    clips.loc[clips["movie"] == "m04", "label"] = 0
    tables = []
    for number, model in enumerate(("mlp", "movie_prior")):
        for task in ("hn_s>hn_s", "hn_s>enhn_s"):
            score = np.random.default_rng(number).normal(size=100)
            tables.append(clips.assign(model=model, task=task, score=score))
    return Predictions(pd.concat(tables, ignore_index=True))


@pytest.mark.long
def test_the_pages_lines_give_the_numbers_of_our_table(predictions, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("runs/mine").mkdir(parents=True)
    predictions.write(Path("runs/mine/predictions.csv"))
    (lines,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    result: dict[str, object] = {}
    exec(lines, result)  # noqa: S102 - our own page
    table = summarise(predictions)
    ours = table[(table["model"] == "mlp") & (table["task"] == "hn_s>enhn_s")].set_index("metric")
    for name in ("average_precision", "f1_pos", "within_movie_auc"):
        assert result[name] == pytest.approx(ours.loc[name, "pooled"], abs=1e-12), name
    assert ours.loc["within_movie_auc", "n_undefined"] == 1
