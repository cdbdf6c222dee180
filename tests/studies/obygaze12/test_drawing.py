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
    """There are two bars of Look and two of Body, for the conditions "en" and "all".

    Both bars of Body are undefined (NaN or None): a dash keeps their place. The bar of Look at "en" has a
    star. Ends of intervals, and the published values that diamonds show, may be undefined too.
    """
    low_ends = {"en": [0.4, NAN], "all": [0.2, None]}
    high_ends = {"en": [NAN, NAN], "all": [0.3, None]}

    charts.draw_bars(
        labels=["Look", "Body"],
        series={"en": [0.5, NAN], "all": [0.25, None]},
        axis="F1",
        path=svg,
        published={"en": [0.2, NAN]},
        published_label="every clip called positive",
        intervals=(low_ends, high_ends),
        starred={"en": [True, False]},
    )

    written = words(svg)
    assert written.count("0.500 *") == 1
    assert written.count("0.250") == 1
    assert written.count("–") == 2
    assert written.count("Look") == 1
    assert written.count("Body") == 1
    assert {"F1", "en", "all", "every clip called positive"} <= set(written)


def test_stacks_name_parts_and_the_shares_that_have_room(svg):
    """A stacked bar has parts of 60 %, 39 % and 1 %, the last of which is too narrow for its number."""
    charts.draw_stacks({"levels": {"raw": {"EN": 0.6, "S": 0.39, "NS": 0.01}}}, "share", svg)
    assert {"levels", "raw", "60%", "39%", "EN", "NS", "share"} <= set(words(svg))
    assert "1%" not in words(svg)


def test_timelines_have_a_row_each_and_a_key(svg):
    """One timeline has a span of S from minute 0 to 1.5, one has none. The key shows the colour of levels."""
    rows = {"Annotation 1": [(0.0, 1.5, "S")], "Merged": []}
    charts.draw_timelines(rows, {"EN": "#deebf7", "S": "#08519c"}, svg)
    assert {"Annotation 1", "Merged", "EN", "S", "minutes"} <= set(words(svg))


def test_a_tree_shows_its_first_levels(svg):
    """A decision tree tells four clips by two concepts: two without Body are EN, two with it S."""
    X = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [1.0, 1.0]])
    tree = DecisionTreeClassifier(random_state=0).fit(X, [0, 0, 1, 1])
    charts.draw_tree(tree, ["Look", "Body"], ("EN", "S"), 2, svg)
    assert {"Body <= 0.5", "samples = 4", "class = S"} <= set(words(svg))


DRAW_BARS_INTO_FOLDER = """
import sys
from pathlib import Path
from obygaze_studies.audit_common.charts import draw_bars
draw_bars(["Look"], {"en": [0.5], "all": [0.4]}, "F1", Path(sys.argv[1]) / "figure-lab.16")
"""
"""A program that draws a figure into the folder that is its argument."""


@pytest.fixture
def files_of_figure(tmp_path):
    """The files of a figure whose path, figure-lab.16, has no suffix of a figure, by their kind."""
    folder = tmp_path / "figure"
    folder.mkdir()
    charts.draw_bars(["Look"], {"en": [0.5], "all": [0.4]}, "F1", folder / "figure-lab.16")
    return {path.suffix: path for path in folder.iterdir()}


@pytest.mark.long
def test_a_figure_has_the_same_bytes_in_every_process(tmp_path, files_of_figure):
    """Names in files could depend on the hashes of strings, which differ from process to process.

    The figure is drawn once more in another process, with hashes of its own.
    """
    folder = tmp_path / "of another process"
    folder.mkdir()
    python("-c", DRAW_BARS_INTO_FOLDER, folder, env=os.environ | {"PYTHONHASHSEED": "1"})

    files_of_other_process = {path.suffix: path.read_bytes() for path in folder.iterdir()}
    assert files_of_other_process == {suffix: path.read_bytes() for suffix, path in files_of_figure.items()}


@pytest.mark.long
def test_a_figure_whose_path_has_no_suffix_is_drawn_in_every_kind_of_file(files_of_figure):
    assert files_of_figure.keys() == {".pdf", ".png", ".svg"}
    for suffix, path in files_of_figure.items():
        assert path.name == f"figure-lab.16{suffix}"


@pytest.mark.long
def test_files_of_a_figure_name_neither_their_date_nor_the_program_that_drew_them(files_of_figure):
    """These would differ from day to day, and from version to version."""
    assert not re.search(rb"CreationDate|/Creator|/Producer|matplotlib", files_of_figure[".pdf"].read_bytes())
    assert b"dc:date" not in files_of_figure[".svg"].read_bytes()
    with Image.open(files_of_figure[".png"]) as png:
        assert "Software" not in png.info


@pytest.mark.long
def test_words_of_a_figure_stay_text_and_its_pixels_have_the_resolution_of_print(files_of_figure):
    """A PDF carries its font (FontFile2), an SVG has words as text, and a PNG has 300 dots an inch."""
    assert b"/FontFile2" in files_of_figure[".pdf"].read_bytes()
    assert b">Look</text>" in files_of_figure[".svg"].read_bytes()
    with Image.open(files_of_figure[".png"]) as png:
        assert png.info["dpi"] == pytest.approx((300, 300), abs=0.1)
