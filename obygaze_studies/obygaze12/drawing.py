"""Draw Figures 3, 5 and 6 (Tores et al., CVPR 2024, and arXiv 2401.13296)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import Normal, Stroke

from obygaze_studies.figure import BLUE, GREY, ORANGE, WIDTH, mark_undefined, save

MIDDLE: Any = {"ha": "center", "va": "center", "fontsize": 7}
PAPER: Any = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}
HALO: Any = [Stroke(linewidth=2.4, foreground="white"), Normal()]
DIRECTIONS = "\N{LEFTWARDS ARROW} fewer errors      more errors \N{RIGHTWARDS ARROW}"
MOST_DIGITS = 6


# --- Figure 3
# ---------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its height, the ends of its whisker, what a constant gives, and a mark above.

    A height of NaN is drawn as the word "undefined". `positives` of `n_clips` clips have the concept; both
    stand under the bar.
    """

    value: float
    low: float
    high: float
    constant: float
    mark: str = ""
    positives: int | None = None
    n_clips: int | None = None


def draw_figure3(
    concepts: Sequence[str], solid: Sequence[Bar], hatched: Sequence[Bar], notes: Sequence[str], path: Path
) -> None:
    """Draw a pair of bars per concept: solid against EN clips, hatched against all, as printed.

    Parameters
    ----------
    notes : sequence of str
        The meaning of bars and whiskers, one line each.
    path
        A .pdf, .png or .svg file.
    """
    save(path, (WIDTH, 3.6), partial(_bars, concepts, solid, hatched, notes))


def _bars(
    concepts: Sequence[str],
    solid: Sequence[Bar],
    hatched: Sequence[Bar],
    notes: Sequence[str],
    figure: Figure,
) -> None:
    axes = figure.subplots()
    sides = (
        (-0.2, solid, "", "against EN clips"),
        (0.2, hatched, "////", "against EN clips, and HN and S clips without the concept"),
    )
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
        axes.vlines(
            x, [bar.low for bar in bars], [bar.high for bar in bars], "black", linewidth=1, path_effects=HALO
        )
        axes.hlines(
            [bar.constant for bar in bars],
            [place - 0.19 for place in x],
            [place + 0.19 for place in x],
            ORANGE,
            linewidth=2,
            label="every clip called positive" if hatch else "_",
            path_effects=[Stroke(linewidth=3.4, foreground="black"), Normal()],
        )
        for place, bar in zip(x, bars, strict=True):
            _write_on(axes, place, bar)
    under: Any = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "center", "fontsize": 6}
    axes.text(-0.006, -0.055, "with it", **under)
    axes.text(-0.006, -0.1, "clips", **under)
    axes.set_xticks(range(len(concepts)), [concept.replace(" of ", "\nof ") for concept in concepts])
    axes.tick_params(axis="x", length=0, pad=23)
    axes.set_xlim(-0.5, len(concepts) - 0.5)
    axes.set_ylim(0, 1)
    axes.set_ylabel("F1 of the clips with the concept")
    axes.set_title("\n".join(notes), loc="left", fontsize=7, pad=10)  # marks stand above whiskers
    axes.spines[["top", "right"]].set_visible(False)
    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda place: isinstance(handles[place], LineCollection))
    figure.legend(
        [handles[place] for place in order],
        [labels[place] for place in order],
        loc="outside upper left",
        ncols=3,
        frameon=False,
    )


def _write_on(axes: Axes, x: float, bar: Bar) -> None:
    """Write a bar's mark above it and its clips under it."""
    if math.isnan(bar.value):
        axes.text(x, 0.02, "undefined", rotation=90, ha="center", va="bottom", fontsize=7, color=GREY)
    else:
        top = max(value for value in (bar.value, bar.high, bar.constant) if not math.isnan(value))
        axes.text(x, top + 0.01, bar.mark, ha="center", va="bottom", fontsize=7)
    for y, count in ((-0.055, bar.positives), (-0.1, bar.n_clips)):
        if count is not None:
            axes.text(x, y, f"{count:,}", ha="center", va="center", fontsize=6)


# --- Figure 5
# ---------------------------------------------------------------------------
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
        The concept of its test; "" for a leaf.
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


def threshold_digits(nodes: Sequence[Node], least: int = 2) -> int:
    """Count the decimals with which two thresholds of one concept that differ are written differently."""
    asked = sorted({(node.concept, node.threshold) for node in nodes if node.concept})
    for digits in range(least, MOST_DIGITS):
        if len({(concept, f"{value:.{digits}f}") for concept, value in asked}) == len(asked):
            return digits
    return MOST_DIGITS


def draw_figure5(nodes: Sequence[Node], n_levels: int, title: str, path: Path) -> None:
    """Draw the first levels of a tree: orange nodes have mostly negatives, blue nodes mostly positives.

    The low side is on the left; a dotted line marks a tree that continues.
    """
    shown = [node for node in nodes if node.depth < n_levels]
    depth = max(node.depth for node in shown)
    places = _places(shown)
    width = min(WIDTH, max(5.0, 0.95 * (max(places.values()) + 1)))
    save(path, (width, 0.95 + 0.85 * depth + 0.55), partial(_tree, shown, places, nodes, title))


def _tree(
    shown: Sequence[Node], places: Mapping[int, float], nodes: Sequence[Node], title: str, figure: Figure
) -> None:
    axes = figure.subplots()
    depth = max(node.depth for node in shown)
    inner = {node.parent for node in nodes}
    digits = threshold_digits(shown)
    for node in shown:
        x, y = places[node.number], float(-node.depth)
        if node.parent in places:
            start = places[node.parent]
            axes.plot([start, x], [y + 1, y], color="black", linewidth=0.8, zorder=1)
            axes.text((start + x) / 2, y + 0.5, "≤" if node.side == "low" else ">", bbox=PAPER, **MIDDLE)
        if node.depth == depth and node.number in inner:
            axes.plot([x, x], [y, y - 0.5], color="black", linestyle=":", linewidth=0.8, zorder=1)
        _box(axes, node, x, y, digits)
    axes.set_xlim(-0.5, max(places.values()) + 0.5)
    axes.set_ylim(-depth - (0.52 if any(node.depth > depth for node in nodes) else 0.25), 0.4)
    axes.set_axis_off()
    keys: list[Patch | Line2D] = [
        Patch(facecolor=_tint(BLUE, 0.6), edgecolor="black", linewidth=0.6, label="more S than EN"),
        Patch(facecolor=_tint(ORANGE, 0.6), edgecolor="black", linewidth=0.6, label="more EN than S"),
    ]
    if any(node.depth > depth for node in nodes):
        deepest = max(node.depth for node in nodes)
        keys.append(Line2D([], [], color="black", linestyle=":", label=f"goes on, to depth {deepest}"))
    legend = figure.legend(
        handles=keys, loc="outside upper left", ncols=3, frameon=False, fontsize=7, title=title
    )
    legend.set_alignment("left")
    legend.get_title().set_fontsize(7)


def _tint(colour: str, strength: float) -> tuple[float, float, float]:
    red, green, blue = (1 - strength * (1 - part) for part in to_rgb(colour))
    return red, green, blue


def _box(axes: Axes, node: Node, x: float, y: float, digits: int) -> None:
    question = f"{node.concept}\n≤ {node.threshold:.{digits}f}\n" if node.concept else ""
    question = question.replace(" of ", "\nof ").replace("-", "\N{MINUS SIGN}")
    share = node.share_positive
    # The purer the node, the stronger its colour; black stays readable on it.
    strength = 0.15 + 0.55 * abs(2 * share - 1)
    axes.text(
        x,
        y,
        f"{question}{node.n_train:,} clips\n{share:.0%} S",
        bbox={
            "boxstyle": "round,pad=0.3",
            "facecolor": _tint(BLUE if share > 0.5 else ORANGE, strength),
            "edgecolor": "black",
            "linewidth": 0.6,
        },
        zorder=2,
        **MIDDLE,
    )


def _places(shown: Sequence[Node]) -> dict[int, float]:
    """Place leaves side by side from 0, and every other node above the middle of its children."""
    children: dict[int, list[int]] = {}
    for node in shown:
        children.setdefault(node.parent, []).append(node.number)
    places: dict[int, float] = {}
    # Nodes are listed parents first, the low side before the high one.
    for node in shown:
        if node.number not in children:
            places[node.number] = float(len(places))
    for node in sorted(shown, key=lambda one: -one.depth):
        if node.number in children:
            own = [places[child] for child in children[node.number]]
            places[node.number] = sum(own) / len(own)
    return places


# --- Figure 6
# ---------------------------------------------------------------------------
def draw_weights(panels: Mapping[str, Mapping[str, float]], path: Path) -> None:
    """Draw the weights of the factors of errors, one panel per film: positive leads to errors."""
    save(path, (WIDTH, 3.2), partial(_weights, panels))


def _weights(panels: Mapping[str, Mapping[str, float]], figure: Figure) -> None:
    every = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    for axes, (title, weights) in zip(every, panels.items(), strict=True):
        values = list(weights.values())
        axes.barh(range(len(values)), values, color=[ORANGE if value >= 0 else BLUE for value in values])
        mark_undefined(axes, values)
        axes.set_yticks(range(len(values)), list(weights))
        _finish_panel(axes, title)
    every[0].invert_yaxis()
    figure.supxlabel(f"weight in a logistic regression of errors (log odds)\n{DIRECTIONS}", fontsize=8)


def _finish_panel(axes: Axes, title: str) -> None:
    axes.axvline(0, color=GREY, linewidth=0.8, zorder=0.9)
    axes.set_title(title, loc="left", fontsize=8)
    axes.grid(axis="y", color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right"]].set_visible(False)


@dataclass(frozen=True, slots=True)
class Effect:
    """A factor's log odds ratio of an error, with its interval; NaN for one that does not vary."""

    factor: str
    value: float
    low: float
    high: float


def draw_forest(panels: Mapping[str, Sequence[Effect]], path: Path) -> None:
    """Draw effects and intervals, one panel per kind of error.

    All panels have the same rows: that of a factor which a panel does not have is empty.
    """
    factors = list(dict.fromkeys(one.factor for effects in panels.values() for one in effects))
    save(path, (WIDTH, 1.1 + 0.23 * len(factors)), partial(_forest, panels, factors))


def _forest(panels: Mapping[str, Sequence[Effect]], factors: Sequence[str], figure: Figure) -> None:
    every = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    for axes, (title, effects) in zip(every, panels.items(), strict=True):
        for one in effects:
            y = factors.index(one.factor)
            axes.hlines(y, one.low, one.high, color="black", linewidth=1)
            axes.plot(one.value, y, "o", color=BLUE, markersize=5)
        values = {one.factor: one.value for one in effects}
        mark_undefined(axes, [values.get(factor, 0.0) for factor in factors])
        axes.set_yticks(range(len(factors)), factors)
        axes.set_ylim(len(factors) - 0.4, -0.6)
        _finish_panel(axes, title)
    figure.supxlabel(f"log odds ratio of an error, 95 % interval\n{DIRECTIONS}", fontsize=8)
