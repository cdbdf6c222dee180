"""Figures show what there is, say what is undefined, and have the same bytes in every process."""

import os
import re
from html import unescape

import numpy as np
import pytest
from PIL import Image
from sklearn.tree import DecisionTreeClassifier

from tests.lazy_import import lazy_import
from tests.process import python

charts = lazy_import("obygaze_studies.audit_common.charts")

NAN = float("nan")


def words(path):
    """The text elements of an SVG."""
    return [unescape(text) for text in re.findall(r"<text [^>]*>(.*?)</text>", path.read_text("utf-8"))]


@pytest.fixture
def svg(tmp_path):
    return tmp_path / "figure.svg"


def test_bars_show_values_stars_and_dashes_for_undefined_ones(svg):
    """Two values are undefined and shown as a dash, so that each bar keeps its place."""
    charts.draw_bars(
        ["Look", "Body"],
        {"en": [0.5, NAN], "all": [0.25, None]},
        "F1",
        svg,
        published={"en": [0.2, NAN]},
        published_label="every clip called positive",
        intervals=({"en": [0.4, NAN], "all": [0.2, None]}, {"en": [NAN, NAN], "all": [0.3, None]}),
        starred={"en": [True, False]},
    )
    written = words(svg)

    assert [written.count(word) for word in ("0.500 *", "0.250", "–", "Look", "Body")] == [1, 1, 2, 1, 1]
    assert {"F1", "en", "all", "every clip called positive"} <= set(written)


def test_stacks_name_parts_and_the_shares_that_have_room(svg):
    charts.draw_stacks({"levels": {"raw": {"EN": 0.6, "S": 0.39, "NS": 0.01}}}, "share", svg)
    assert {"levels", "raw", "60%", "39%", "EN", "NS", "share"} <= set(words(svg))
    assert "1%" not in words(svg)


def test_timelines_have_a_row_each_and_a_key(svg):
    rows = {"Annotation 1": [(0.0, 1.5, "S")], "Merged": []}
    charts.draw_timelines(rows, {"EN": "#deebf7", "S": "#08519c"}, svg)
    assert {"Annotation 1", "Merged", "EN", "S", "minutes"} <= set(words(svg))


def test_a_tree_shows_its_first_levels(svg):
    X = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [1.0, 1.0]])
    tree = DecisionTreeClassifier(random_state=0).fit(X, [0, 0, 1, 1])
    charts.draw_tree(tree, ["Look", "Body"], ("EN", "S"), 2, svg)
    assert {"Body <= 0.5", "samples = 4", "class = S"} <= set(words(svg))


SAVE = """
import sys
from pathlib import Path
from obygaze_studies.audit_common.charts import draw_bars
draw_bars(["Look"], {"en": [0.5], "all": [0.4]}, "F1", Path(sys.argv[1]) / "figure-lab.16")
"""


@pytest.mark.long
def test_a_figure_has_the_same_bytes_in_every_process(tmp_path):
    """Of a path without the suffix of a figure, it is drawn in every kind of file."""
    kept = []
    for name in ("1", "2"):
        folder = tmp_path / name
        folder.mkdir()
        if name == "1":  # in another process, whose strings have other hashes
            python("-c", SAVE, folder, env=os.environ | {"PYTHONHASHSEED": "1"})
        else:
            exec(SAVE.replace("sys.argv[1]", repr(str(folder))), {})  # noqa: S102 - our own
        kept.append({path.suffix: path.read_bytes() for path in folder.iterdir()})
    files = kept[0]
    assert files.keys() == {".pdf", ".png", ".svg"}
    assert [name for name in files if files[name] != kept[1][name]] == []
    assert not re.search(rb"CreationDate|/Creator|/Producer|matplotlib", files[".pdf"])
    assert b"/FontFile2" in files[".pdf"]
    assert b"dc:date" not in files[".svg"]
    assert b">Look</text>" in files[".svg"]
    with Image.open(tmp_path / "1" / "figure-lab.16.png") as png:
        assert png.info["dpi"] == pytest.approx((300, 300), abs=0.1)
        assert "Software" not in png.info
