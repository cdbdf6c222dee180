"""Reproduce Figure 5: the decision tree on concepts for S against EN, its first four levels."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from obygaze_models.concepts import node_counts
from obygaze_models.dataset import Dataset
from obygaze_models.protocol import Fold
from obygaze_models.report import Block, Picture, Report, block
from obygaze_studies.figure import BLUE, ORANGE, WIDTH, save
from obygaze_studies.obygaze12.corpus import TASKS, VISUAL_CONCEPTS, PaperCorpus, columns
from obygaze_studies.obygaze12.paper_concepts import TREES
from obygaze_studies.obygaze12.paper_folds import Negatives, head_fold, leak_caption
from obygaze_studies.obygaze12.protocol_results import PaperResults, StrictResults

TASK = "en_s"

N_LEVELS = 4

PRINTED_DEPTH = 10

MIDDLE: Any = {"ha": "center", "va": "center", "fontsize": 7}

PAPER: Any = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}

MOST_DIGITS = 6


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


def paper_report(results: Sequence[PaperResults]) -> Report:
    """Reproduce Figure 5 under the `paper` protocol."""
    corpus, depth, limits = results[0].corpus, results[0].depth, TREES[TASK]
    fold = head_fold(corpus.manifest, TASKS[TASK], TASKS[TASK])
    leaks = f"{leak_caption([fold])}; its CAVs are fitted on its training clips"
    trees = [(result.source, result.tree(TASK, Negatives.EN), VISUAL_CONCEPTS, leaks) for result in results]
    limited = "" if depth is None else f"here the depth is limited to {depth} (--depth); "
    trained = (
        f"trained on the head's clips of EN vs S, CAVs against EN; {limited}"
        f"the original code's limits for this task are depth {limits['max_depth']} "
        f"and {limits['min_samples_leaf']} clips a leaf"
    )
    max_depth = limits["max_depth"] if depth is None else depth
    if corpus.printed and max_depth < PRINTED_DEPTH:
        trained += ", which can't give the printed depth of 10"
    return _report(corpus, trees, trained, {"max_depth": max_depth}, [fold])


def strict_report(results: Sequence[StrictResults]) -> Report:
    """Reproduce Figure 5 under `strict`: one tree of all movies, its depth chosen by inner folds."""
    trees = []
    for result in results:
        model = result.tree
        losses = ", ".join(f"{tried.name} {tried.inner_loss:.4f}" for tried in model.candidates_)
        note = f"log loss of the inner loop by depth: {losses}"
        trees.append((result.source, model.head_, model.concepts_, note))
    trained = (
        "trained on all movies, to be read and not scored: the scores of such trees are PCBM-DT in Table 2; "
        "concept values are cross-fitted by movie, CAVs against all"
    )
    return _report(results[0].corpus, trees, trained, {})


def _report(
    corpus: PaperCorpus,
    trees: Sequence[tuple[Dataset, Any, Sequence[str], str]],
    trained: str,
    record: Mapping[str, object],
    folds: Sequence[Fold] | None = None,
) -> Report:
    """Show trees: of each its source, the estimator, the concepts that it asks for, and a note."""
    protocol, unit = (
        ("strict", "in standard deviations") if folds is None else ("paper", "decision value of its CAV")
    )
    blocks, data, pictures, answers = [], [], [], []
    for source, tree, concepts, note in trees:
        nodes = tree_nodes(tree, concepts)
        depth = "" if folds is None else f", depth {max(node.depth for node in nodes)}"
        blocks.append(_block(source.title + depth, nodes, note))
        data += [{"features": source.title} | asdict(node) for node in nodes]
        asked = "no concept" if len(nodes) == 1 else f"{nodes[0].concept} first"
        size = "" if len(nodes) == 1 else f" of {len(nodes)} nodes"
        answers.append(f"{source.title}: the tree{size} asks for {asked}")
        caption = (
            f"Figure 5 under the {protocol} protocol, {source.title}{'' if folds is None else f': {note}'}"
        )
        title = f"PCBM-DT, EN vs S, {protocol} protocol\n"
        title += f"boxes: concept and threshold ({unit}), training clips, share of S"
        draw = partial(draw_figure5, nodes, N_LEVELS, title)
        pictures.append(Picture(f"figure5-{protocol}-{source.label}", caption, draw))
    return corpus.report(
        "figure5",
        blocks,
        data,
        {"task": TASK, **record},
        answers=answers,
        notes=[trained],
        folds=folds,
        pictures=pictures,
    )


def tree_nodes(tree: Any, concepts: Sequence[str]) -> list[Node]:
    """List the nodes of a scikit-learn tree, parents first, the low side before the high one."""
    counts, arrays = node_counts(tree), tree.tree_
    nodes: list[Node] = []

    def visit(number: int, depth: int, parent: int, side: str) -> None:
        low, high = int(arrays.children_left[number]), int(arrays.children_right[number])
        leaf = low == high
        nodes.append(
            Node(
                number=number,
                depth=depth,
                parent=parent,
                side=side,
                concept="" if leaf else concepts[int(arrays.feature[number])],
                threshold=float("nan") if leaf else float(arrays.threshold[number]),
                n_train=int(arrays.n_node_samples[number]),
                share_positive=float(counts[number, 1] / counts[number].sum()),
            )
        )
        if not leaf:
            visit(low, depth + 1, number, "low")
            visit(high, depth + 1, number, "high")

    visit(0, 0, -1, "")
    return nodes


def threshold_digits(nodes: Sequence[Node], least: int = 2) -> int:
    """Count the decimals with which two thresholds of one concept that differ are written differently."""
    thresholds = sorted({(node.concept, node.threshold) for node in nodes if node.concept})
    for digits in range(least, MOST_DIGITS):
        if len({(concept, f"{value:.{digits}f}") for concept, value in thresholds}) == len(thresholds):
            return digits
    return MOST_DIGITS


def _block(title: str, nodes: Sequence[Node], note: str) -> Block:
    digits = threshold_digits(nodes, least=3)
    headings = columns(
        "figure5",
        "nodes",
        branch=lambda depth, side: f"{'. ' * depth}{side or 'all'}",
        asked=lambda concept: concept or "(leaf)",
        threshold=lambda at: "" if math.isnan(at) else f"{at:.{digits}f}",
    )
    return block(title, headings, [asdict(node) for node in nodes if node.depth < N_LEVELS], (note,))


def draw_figure5(nodes: Sequence[Node], n_levels: int, title: str, path: Path) -> None:
    """Draw the first levels of a tree: orange nodes have mostly negatives, blue nodes mostly positives.

    The low side is on the left; a dotted line marks a tree that continues.
    """
    shown = [node for node in nodes if node.depth < n_levels]
    depth, deepest = (max(node.depth for node in some) for some in (shown, nodes))
    inner, digits, places = {node.parent for node in nodes}, threshold_digits(shown), _places(shown)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
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
        axes.set_ylim(-depth - (0.52 if deepest > depth else 0.25), 0.4)
        axes.set_axis_off()
        keys: list[Patch | Line2D] = [
            Patch(facecolor=_tint(colour, 0.6), edgecolor="black", linewidth=0.6, label=label)
            for colour, label in ((BLUE, "more S than EN"), (ORANGE, "more EN than S"))
        ]
        if deepest > depth:
            keys.append(Line2D([], [], color="black", linestyle=":", label=f"goes on, to depth {deepest}"))
        legend = figure.legend(
            handles=keys, loc="outside upper left", ncols=3, fontsize=7, title=title, title_fontsize=7
        )
        legend.set_alignment("left")

    width = min(WIDTH, max(5.0, 0.95 * (max(places.values()) + 1)))
    save(path, (width, 0.95 + 0.85 * depth + 0.55), draw)


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
