"""How Figures 3, 5 and 6 are drawn (Tores et al., CVPR 2024, and arXiv 2401.13296)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from obygaze_models.report.figure import BLUE, GREY, ORANGE, mark_undefined, save

MIDDLE: Any = {"ha": "center", "va": "center", "fontsize": 7}
PAPER: Any = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its height, the ends of its whisker, what a constant gives, and a mark above.

    A height of NaN is drawn as the word "undefined".
    """

    value: float
    low: float
    high: float
    constant: float
    mark: str = ""


def draw_figure3(
    concepts: Sequence[str], solid: Sequence[Bar], hatched: Sequence[Bar], whisker: str, path: Path
) -> None:
    """Draw a pair of bars a concept: solid against EN clips, hatched against all, as printed.

    Parameters
    ----------
    whisker : str
        What the whiskers show.
    path
        A .png or .svg file.
    """
    save(path, (8.5, 3.6), partial(_bars, concepts, solid, hatched, whisker))


def _bars(
    concepts: Sequence[str], solid: Sequence[Bar], hatched: Sequence[Bar], whisker: str, figure: Figure
) -> None:
    axes = figure.subplots()
    sides = ((-0.2, solid, "", "against EN"), (0.2, hatched, "////", "against EN, and S and HN without it"))
    for shift, bars, hatch, label in sides:
        x = [place + shift for place in range(len(bars))]
        axes.bar(
            x,
            [bar.value for bar in bars],
            0.38,
            color=BLUE if not hatch else "white",
            edgecolor=BLUE,
            hatch=hatch,
            label=label,
        )
        axes.vlines(x, [bar.low for bar in bars], [bar.high for bar in bars], color="black", linewidth=1)
        axes.hlines(
            [bar.constant for bar in bars],
            [place - 0.19 for place in x],
            [place + 0.19 for place in x],
            color="black",
            linestyle=":",
            label="all positive" if hatch else "_",
        )
        for place, bar in zip(x, bars, strict=True):
            if math.isnan(bar.value):
                axes.text(
                    place, 0.02, "undefined", rotation=90, ha="center", va="bottom", fontsize=7, color=GREY
                )
            else:
                top = max(value for value in (bar.value, bar.high) if not math.isnan(value))
                axes.text(place, top + 0.01, bar.mark, ha="center", va="bottom")
    axes.set_xticks(range(len(concepts)), [concept.replace(" of ", "\nof ") for concept in concepts])
    axes.set_xlim(-0.6, len(concepts) - 0.4)
    axes.set_ylim(0, 1)
    axes.set_ylabel("f1_pos")
    axes.set_title(f"whiskers: {whisker}", loc="left", fontsize=8, pad=14)  # marks stand above whiskers
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a tree.

    Attributes
    ----------
    number, depth : int
    parent : int
        -1 for the root.
    side : str
        "low" where the parent's concept is at most its threshold, "high" where it is above; "" for the root.
    concept : str
        What it asks for; "" for a leaf.
    threshold : float
        NaN for a leaf.
    n_train : int
    share_positive : float
    """

    number: int
    depth: int
    parent: int
    side: str
    concept: str
    threshold: float
    n_train: int
    share_positive: float


def draw_figure5(nodes: Sequence[Node], n_levels: int, title: str, path: Path) -> None:
    """Draw the first levels of a tree: orange where negatives are most, blue where positives are.

    The low side is on the left; a dotted line says that the tree goes on.
    """
    shown = [node for node in nodes if node.depth < n_levels]
    depth = max(node.depth for node in shown)
    size = (max(5.6, 1.15 * 2**depth), 1.3 * (depth + 1))
    save(path, size, partial(_tree, shown, nodes, title))


def _tree(shown: Sequence[Node], nodes: Sequence[Node], title: str, figure: Figure) -> None:
    axes = figure.subplots()
    places = _places(shown)
    depth = max(node.depth for node in shown)
    inner = {node.parent for node in nodes}
    for node in shown:
        x, y = places[node.number], float(-node.depth)
        if node.parent in places:
            start = places[node.parent]
            axes.plot([start, x], [y + 1, y], color="black", linewidth=0.8, zorder=1)
            axes.text((start + x) / 2, y + 0.5, "≤" if node.side == "low" else ">", bbox=PAPER, **MIDDLE)
        if node.depth == depth and node.number in inner:
            axes.plot([x, x], [y, y - 0.45], color="black", linestyle=":", linewidth=0.8, zorder=1)
        _box(axes, node, x, y)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-depth - 0.6, 0.5)
    axes.set_axis_off()
    axes.set_title(title, loc="left", fontsize=8)


def _box(axes: Axes, node: Node, x: float, y: float) -> None:
    question = f"{node.concept}\n≤ {node.threshold:.2f}\n" if node.concept else ""
    question = question.replace(" of ", "\nof ").replace("-", "\N{MINUS SIGN}")
    share = node.share_positive
    # The purer the node, the stronger its colour.
    strength = 0.15 + 0.55 * abs(2 * share - 1)  # black stays readable on it
    colour = [1 - strength * (1 - part) for part in to_rgb(BLUE if share > 0.5 else ORANGE)]
    axes.text(
        x,
        y,
        f"{question}{node.n_train} clips\n{share:.0%} S",
        bbox={"boxstyle": "round,pad=0.35", "facecolor": colour, "edgecolor": "black", "linewidth": 0.6},
        zorder=2,
        **MIDDLE,
    )


def _places(shown: Sequence[Node]) -> dict[int, float]:
    """Put every node in the middle of its half of its parent's place."""
    places, width = {}, {}
    for node in sorted(shown, key=lambda one: one.depth):
        if node.parent not in places:
            places[node.number], width[node.number] = 0.5, 0.5
            continue
        half = width[node.parent] / 2
        places[node.number] = places[node.parent] + (half if node.side == "high" else -half)
        width[node.number] = half
    return places


def draw_weights(panels: Mapping[str, Mapping[str, float]], path: Path) -> None:
    """Draw the weights of the factors of success, a panel a film, as printed: negative leads to failure."""
    save(path, (3.0 * len(panels) + 1.6, 3.4), partial(_weights, panels))


def _weights(panels: Mapping[str, Mapping[str, float]], figure: Figure) -> None:
    every = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    for axes, (film, weights) in zip(every, panels.items(), strict=True):
        values = list(weights.values())
        axes.barh(range(len(values)), values, color=[BLUE if value >= 0 else ORANGE for value in values])
        mark_undefined(axes, values)
        axes.set_yticks(range(len(values)), list(weights))
        axes.axvline(0, color=GREY, linewidth=0.8)
        axes.set_title(film, loc="left", fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    every[0].invert_yaxis()
    every[len(every) // 2].set_xlabel("weight: negative leads to failure")


@dataclass(frozen=True, slots=True)
class Effect:
    """A factor's log odds ratio of an error, with its interval; NaN for one that does not vary."""

    factor: str
    value: float
    low: float
    high: float


def draw_forest(panels: Mapping[str, Sequence[Effect]], path: Path) -> None:
    """Draw effects and intervals, a panel for each kind of error."""
    save(path, (4.2 * len(panels), 3.4), partial(_forest, panels))


def _forest(panels: Mapping[str, Sequence[Effect]], figure: Figure) -> None:
    every = figure.subplots(1, len(panels), sharex=True, squeeze=False)[0]
    for axes, (title, effects) in zip(every, panels.items(), strict=True):
        y = range(len(effects))
        axes.hlines(
            y, [one.low for one in effects], [one.high for one in effects], color="black", linewidth=1
        )
        axes.plot([one.value for one in effects], y, "o", color=BLUE, markersize=5)
        mark_undefined(axes, [one.value for one in effects])
        axes.set_yticks(y, [one.factor for one in effects])
        axes.set_ylim(-0.6, len(effects) - 0.4)
        axes.axvline(0, color=GREY, linewidth=0.8)
        axes.invert_yaxis()
        axes.set_title(title, loc="left", fontsize=9)
        axes.set_xlabel("log odds ratio of an error, 95 % interval")
        axes.spines[["top", "right"]].set_visible(False)
