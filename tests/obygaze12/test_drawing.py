"""Figures show what there is, say what is undefined, and don't draw one thing twice."""

import re
from pathlib import Path

import pytest

from obygaze_features.manifest import Clip, LabelPolicy, Manifest, apply_policy
from obygaze_features.manifest import statistics as count
from obygaze_models.obygaze12.corpus import VISUAL_CONCEPTS
from obygaze_models.obygaze12.drawing import (
    Bar,
    Effect,
    Node,
    draw_figure3,
    draw_figure5,
    draw_forest,
    draw_weights,
)
from obygaze_models.obygaze12.figure2 import draw_figure2
from obygaze_models.obygaze12.figure3 import UNDEFINED

NAN = float("nan")


def words(path):
    """The text of an SVG, which draws letters as paths and keeps the words in comments."""
    return re.findall("<!-- (.*?) -->", path.read_text("utf-8"), flags=re.DOTALL)


@pytest.fixture
def svg(tmp_path):
    return tmp_path / "figure.svg"


def test_figure_6_keeps_the_row_of_a_factor_that_does_not_vary_and_says_undefined(svg):
    effects = [Effect("Body", 0.5, 0.1, 0.9), Effect("Activity", NAN, NAN, NAN)]
    draw_forest({"false alarms": effects, "misses": effects}, svg)
    assert words(svg).count("undefined") == 2
    assert words(svg).count("Activity") == 2
    draw_weights({"film": {"Body": 0.5, "Activity": NAN}}, svg)
    assert words(svg).count("undefined") == 1


def test_figure_3_keeps_the_place_of_a_concept_that_is_undefined(svg):
    bars = [UNDEFINED if concept == "Look" else Bar(0.5, 0.4, NAN, 0.2, "*") for concept in VISUAL_CONCEPTS]
    draw_figure3(VISUAL_CONCEPTS, bars, bars, "none", svg)
    assert words(svg).count("undefined") == 2
    assert words(svg).count("*") == 2 * (len(VISUAL_CONCEPTS) - 1)
    assert "Look" in words(svg)


def counted(concepts):
    clips = tuple(
        Clip(f"m-{place}", "m", level=level, concepts=concepts if level != "EN" else ())
        for place, level in enumerate(("EN", "HN", "NS", "S"))
    )
    manifest = Manifest(clips, Path())
    return {str(policy): count(apply_policy(manifest, policy)) for policy in LabelPolicy}


def test_figure_2_has_one_panel_for_policies_that_give_the_same_numbers(svg):
    draw_figure2(counted(("Look",)), svg)
    assert "label policy: paper, released, raw" in words(svg)
    # Where concepts are only heard, every policy reads the labels in its own way.
    draw_figure2(counted(("Speech",)), svg)
    assert [word for word in words(svg) if word.startswith("label policy")] == [
        "label policy: paper",
        "label policy: released",
        "label policy: raw",
    ]


def test_figure_5_says_on_every_branch_which_side_it_is(svg):
    nodes = [
        Node(0, 0, -1, "", "Type of shot", -0.25, 30, 0.4),
        Node(1, 1, 0, "low", "", NAN, 20, 0.1),
        Node(2, 1, 0, "high", "", NAN, 10, 1.0),
    ]
    draw_figure5(nodes, 4, "a tree", svg)
    assert {"≤", "&gt;"} <= set(words(svg)) or {"≤", ">"} <= set(words(svg))
    assert any("\N{MINUS SIGN}0.25" in word for word in words(svg))
