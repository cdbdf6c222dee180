"""Figure 3 of Tores et al., CVPR 2024: how well each concept is told from clips without it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from obygaze_models.report.figure import BLUE, GREY, save


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
    save(path, (8.5, 3.6), partial(_draw, concepts, solid, hatched, whisker))


def _draw(
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
