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
        lefts = [-band for band in bands]
        axes.barh(places, [2 * band for band in bands], left=lefts, height=0.7, color=GREY, label="no star")
        axes.axvline(0, color="black", linewidth=0.8)
        printed = [row["published_d"] for row in rows if row["published_d"] is not None]
        for field, what, marker, colour in (
            ("d", "d", "o", OURS),
            ("published_d", "published", "d", PRINTED),
        ):
            if field == "d" or printed:
                for starred, face in ((True, colour), (False, "white")):
                    _points(axes, rows, field, what, starred=starred, look=(marker, colour, face))
        widest = max(abs(value) for value in (*bands, *printed, *(row["d"] for row in rows)))
        axes.set_xlim(-1.08 * widest, 1.08 * widest)
        axes.set_yticks(places, [row["test"] for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel("effect size d, in standard deviations: right of 0, X is closer to A than Y is")
        figure.legend(loc="outside upper right", ncols=5, frameon=False)

    draw(path, (7, 1.2 + 0.3 * len(rows)), fill)


def _points(
    axes: Axes,
    rows: Sequence[Mapping[str, Any]],
    field: str,
    what: str,
    *,
    starred: bool,
    look: tuple[str, str, str],
) -> None:
    """Draw the values with a star, or those without; the legend names both, whether there are any or not."""
    stars = field.removesuffix("d") + "star"
    found = [
        (row[field], place)
        for place, row in enumerate(rows)
        if row[field] is not None and row[stars] is starred
    ]
    marker, colour, face = look
    label = f"{what}, star" if starred else what
    x, y = [value for value, _ in found], [place for _, place in found]
    axes.plot(x, y, marker, color=colour, markerfacecolor=face, label=label)
