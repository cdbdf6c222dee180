"""Figures of layers name each layer below its mark."""

import re

import pandas as pd
import pytest

from obygaze_models.report.layer_figure import draw_layers


def test_a_figure_of_layers_names_the_layers_below_their_marks(tmp_path):
    """Layers 3, 7 and 12 are drawn side by side, and not at 3, 7 and 12 of an axis of numbers.

    Matplotlib draws the x axis before the y axis, and writes each text of an axis as a comment, too.
    """
    pytest.importorskip("matplotlib")
    model_of_layer = {"3": "net.3", "7": "net.7", "12": "net.12"}
    metrics = pd.DataFrame({"model": ["net.3", "net.7", "net.12"], "metric": "auc", "movie_chance": 0.5})
    metrics = metrics.assign(movie_mean=0.7, movie_low=0.6, movie_high=0.8)

    draw_layers(metrics, {"net": model_of_layer}, {"auc": "AUC"}, tmp_path / "layers.svg")

    svg = (tmp_path / "layers.svg").read_text(encoding="utf-8")
    start_of_x_axis = svg.index('id="matplotlib.axis_1"')
    start_of_y_axis = svg.index('id="matplotlib.axis_2"')
    texts_of_x_axis = re.findall("<!-- (.*) -->", svg[start_of_x_axis:start_of_y_axis])
    assert texts_of_x_axis == ["3", "7", "12", "layer"]
