"""Figures show what there is, say what is undefined, and don't draw one thing twice."""

import os
import re
from html import unescape

import pytest
from PIL import Image

from obygaze_studies.obygaze12.corpus import VISUAL_CONCEPTS
from tests.later import later
from tests.process import python

draw_figure3 = later("obygaze_studies.obygaze12.figure3", "draw_figure3")
Node = later("obygaze_studies.obygaze12.figure5", "Node")
draw_figure5 = later("obygaze_studies.obygaze12.figure5", "draw_figure5")
threshold_digits = later("obygaze_studies.obygaze12.figure5", "threshold_digits")
draw_forest = later("obygaze_studies.obygaze12.figure6", "draw_forest")
draw_weights = later("obygaze_studies.obygaze12.figure6", "draw_weights")

NAN = float("nan")


def texts(path):
    """The text elements of an SVG and where each one stands: (x, y, text)."""
    found = re.findall(
        r"<text [^>]*?(?:translate\(|x=\")([\d.]+)[ \"]+(?:y=\")?([\d.]+)[^>]*>(.*?)</text>",
        path.read_text("utf-8"),
        flags=re.DOTALL,
    )
    return [(float(x), float(y), unescape(text)) for x, y, text in found]


def words(path):
    return [text for _, _, text in texts(path)]


@pytest.fixture
def svg(tmp_path):
    return tmp_path / "figure.svg"


def effect(factor, value, low, high):
    return {"factor": factor, "effect": value, "low": low, "high": high}


def test_figure_6_has_one_row_per_factor_for_all_panels_and_says_what_the_sign_means(svg):
    effects = [effect("Body", 0.5, 0.1, 0.9), effect("Activity", NAN, NAN, NAN)]
    level = effect("HN (against EN)", 0.1, -0.3, 0.6)
    draw_forest({"false alarms": [*effects, level], "misses": effects}, svg)
    assert [words(svg).count(factor) for factor in ("Body", "Activity", level["factor"])] == [1, 1, 1]
    undefined = [y for _, y, text in texts(svg) if text == "undefined"]
    assert len(undefined) == 2
    assert undefined[0] == undefined[1]
    assert any("more errors" in word for word in words(svg))
    draw_weights({"film": {"Body": 0.5, "Activity": NAN}}, svg)
    assert words(svg).count("undefined") == 1
    assert any("more errors" in word for word in words(svg))


def test_a_path_without_the_suffix_of_a_file_gives_a_figure_in_every_kind_of_file(tmp_path):
    draw_weights({"film": {"Body": 0.5}}, tmp_path / "figure6-lab.16")
    assert {path.name: path.read_bytes()[:5] for path in tmp_path.iterdir()} == {
        "figure6-lab.16.pdf": b"%PDF-",
        "figure6-lab.16.png": b"\x89PNG\r",
        "figure6-lab.16.svg": b"<?xml",
    }


def test_figure_3_keeps_the_place_of_a_concept_that_is_undefined_and_counts_clips_under_the_bars(svg):
    values = {"f1_pos": 0.5, "f1_pos_low": 0.4, "f1_pos_high": NAN, "all_positive": 0.2, "p_holm": 0.01}
    rows = [
        {"negatives": negatives, "concept": concept, "positives": 17, "n_clips": 1057} | values
        for negatives in ("en", "all")
        for concept in VISUAL_CONCEPTS
        if concept != "Look"
    ]
    draw_figure3(rows, "strict", svg)
    drawn = 2 * (len(VISUAL_CONCEPTS) - 1)
    assert [words(svg).count(word) for word in ("undefined", "*", "17", "1,057")] == [2, drawn, drawn, drawn]
    assert {"Look", "every clip called positive"} <= set(words(svg))


def tree():
    return (
        Node(0, 0, -1, "", "Type of shot", -1.0061, 1030, 0.4),
        Node(1, 1, 0, "low", "Type of shot", -1.0074, 20, 0.1),
        Node(2, 2, 1, "low", "", NAN, 12, 0.0),
        Node(3, 2, 1, "high", "", NAN, 8, 0.25),
        Node(4, 1, 0, "high", "", NAN, 10, 1.0),
    )


def test_figure_5_says_on_every_branch_which_side_it_is_and_tells_thresholds_apart(svg):
    assert threshold_digits(tree()) == 3
    draw_figure5(tree(), 4, "a tree", svg)
    assert [words(svg).count(side) for side in ("≤", ">")] == [2, 2]
    assert {"≤ \N{MINUS SIGN}1.006", "≤ \N{MINUS SIGN}1.007", "1,030 clips", "a tree"} <= set(words(svg))
    assert not any("goes on" in word for word in words(svg))
    draw_figure5(tree(), 2, "its top", svg)
    assert "goes on, to depth 2" in words(svg)


SAVE = """
import sys
from pathlib import Path
from obygaze_studies.obygaze12.figure3 import draw_figure3
row = {"negatives": "en", "concept": "Look", "f1_pos": 0.5, "f1_pos_low": 0.4, "f1_pos_high": 0.6}
row |= {"all_positive": 0.2, "p_holm": 0.5, "positives": 3, "n_clips": 9}
for suffix in ("pdf", "png", "svg"):
    path = Path(sys.argv[1]) / f"f.{suffix}"
    draw_figure3([row], "strict", path)
"""


@pytest.mark.long
def test_a_figure_has_the_same_bytes_in_every_process_no_date_and_letters_that_stay_letters(tmp_path):
    kept = []
    for name in ("1", "2"):
        folder = tmp_path / name
        folder.mkdir()
        if name == "1":  # in another process, whose strings have other hashes
            python("-c", SAVE, folder, env=os.environ | {"PYTHONHASHSEED": "1"})
        else:
            exec(SAVE.replace("sys.argv[1]", repr(str(folder))), {})  # noqa: S102 - our own
        kept.append({path.name: path.read_bytes() for path in folder.iterdir()})
    files = kept[0]
    assert [name for name in files if files[name] != kept[1][name]] == []
    assert not re.search(rb"CreationDate|/Creator|/Producer|matplotlib", files["f.pdf"])
    assert b"/FontFile2" in files["f.pdf"]
    assert b"dc:date" not in files["f.svg"]
    assert b">every clip called positive</text>" in files["f.svg"]
    with Image.open(tmp_path / "1" / "f.png") as png:
        assert png.info["dpi"] == pytest.approx((300, 300), abs=0.1)
        assert "Software" not in png.info
