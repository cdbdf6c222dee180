"""Figure 6 of Tores et al. (arXiv 2401.13296): what makes a model fail or succeed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from obygaze_models.report.figure import BLUE, GREY, ORANGE, mark_undefined, save


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
