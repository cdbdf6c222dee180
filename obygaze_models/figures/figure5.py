"""Figure 5 of Tores et al. (arXiv 2401.13296): the decision tree over concepts, its first levels."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from obygaze_models.report.figure import BLUE, ORANGE, save

MIDDLE: Any = {"ha": "center", "va": "center", "fontsize": 7}
PAPER: Any = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}


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
    save(path, size, partial(_draw, shown, nodes, title))


def _draw(shown: Sequence[Node], nodes: Sequence[Node], title: str, figure: Figure) -> None:
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
