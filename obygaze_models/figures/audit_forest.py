"""Effect sizes of association tests, one below the other."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from obygaze_models.audits.eat import critical_d
from obygaze_models.figures.audit_canvas import GREY, OURS, PRINTED, draw


def draw_forest(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw d of every test: filled if starred, with the band in which none would be, and published values.

    Parameters
    ----------
    rows
        Of the results of `audit_eat`.
    path
        A .png or .svg file.
    """

    def fill(figure: Figure, axes: Axes) -> None:
        places = range(len(rows))
        bands = [critical_d(row["n_x"], row["n_y"]) for row in rows]
        axes.barh(
            places,
            [2 * band for band in bands],
            left=[-band for band in bands],
            height=0.7,
            color=GREY,
            label="no star",
        )
        axes.axvline(0, color="black", linewidth=0.8)
        for place, row in zip(places, rows, strict=True):
            face = OURS if row["star"] else "white"
            axes.plot(row["d"], place, "o", color=OURS, markerfacecolor=face, label="" if place else "d")
        printed = [
            (row["published_d"], place)
            for place, row in zip(places, rows, strict=True)
            if row["published_d"] is not None
        ]
        if printed:
            axes.plot(
                *zip(*printed, strict=True), "d", color=PRINTED, markerfacecolor="none", label="published d"
            )
        axes.set_yticks(places, [row["test"] for row in rows])
        axes.invert_yaxis()
        axes.set_xlabel("effect size d: X closer to A than Y is, in standard deviations")
        figure.legend(loc="outside upper right", ncols=3, frameon=False)

    draw(path, (7, 1.2 + 0.3 * len(rows)), fill)
