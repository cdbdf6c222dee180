"""Draw the audits' figures: bars by condition, effect sizes in rows, saliency maps, sheets of examples.

Made without a screen; the same numbers give the same bytes.
"""

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image, ImageOps

from obygaze_studies.errors import AuditError
from obygaze_studies.figure import WIDTH, save

OURS, GREY, PRINTED = "#4477aa", "#dddddd", "#ee6677"
"""Colours of our values, of the background, and of published values."""

SERIES = ((OURS, ""), ("#ccbb44", "////"), ("#228833", "...."), ("#aa3377", "xxxx"), ("#66ccee", "||||"))
"""Colour and hatching of each condition, distinct in print without colours too."""

SHEET_PIXELS = 640
"""Longest side of a picture on a sheet of examples."""


def draw(path: Path, size: tuple[float, float], fill: Callable[[Figure, Axes], None]) -> None:
    """Make a figure with one panel, let `fill` draw into it, and save it.

    Parameters
    ----------
    path
        A .pdf, .png or .svg file.
    size
        Width and height in inches.
    """

    def panel(figure: Figure) -> None:
        axes = figure.subplots()
        fill(figure, axes)

    path.parent.mkdir(parents=True, exist_ok=True)
    save(path, size, panel)


def draw_bars(
    labels: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    axis: str,
    path: Path,
    published: Mapping[str, Sequence[float | None]] | None = None,
) -> None:
    """Draw groups of horizontal bars, their values beside them; a dash where there is none.

    Parameters
    ----------
    labels
        Of the groups, from top to bottom.
    series
        Condition -> one value per group.
    axis
        What the bars measure.
    path
        A .pdf, .png or .svg file.
    published
        Condition -> a published value a group, marked by a diamond.
    """
    height = 0.8 / len(series)
    digits = _digits([value for values in series.values() for value in values if value is not None])

    def fill(figure: Figure, axes: Axes) -> None:
        marks = []
        for index, (name, values) in enumerate(series.items()):
            rows = [row + (index - (len(series) - 1) / 2) * height for row in range(len(values))]
            colour, hatch = SERIES[index % len(SERIES)]
            lengths = [value or 0.0 for value in values]
            axes.barh(rows, lengths, height=height, color=colour, hatch=hatch, edgecolor="white", label=name)
            for row, value in zip(rows, values, strict=True):
                # In a column of their own, where no diamond and no bar hides them.
                place = axes.get_yaxis_transform()
                axes.text(1.01, row, _shown(value, digits), transform=place, va="center", fontsize=7)
            printed = (published or {}).get(name, ())
            marks += [(value, row) for value, row in zip(printed, rows, strict=False) if value is not None]
        if marks:
            axes.plot(
                *zip(*marks, strict=True), "d", color=PRINTED, markerfacecolor="white", label="published"
            )
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set_yticks(range(len(labels)), labels)
        axes.set_ylim(len(labels) - 0.5, -0.5)
        axes.set_xlabel(axis)
        if len(series) > 1 or marks:
            figure.legend(loc="outside upper right", ncols=4)

    draw(path, (WIDTH, 1.0 + 0.28 * len(labels) * max(1, len(series) / 2)), fill)


def _digits(values: Sequence[float]) -> int:
    """Count the decimals of all values: three significant digits of the largest."""
    largest = max(map(abs, values), default=0.0)
    return 2 if largest in {0.0, 1.0} else max(0, 2 - math.floor(math.log10(largest)))


def _shown(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}".replace("-", "\N{MINUS SIGN}")


def draw_forest(rows: Sequence[Mapping[str, Any]], bands: Sequence[float], path: Path) -> None:
    """Draw d of every test, filled where p is below .05, the band where it is not, and published values.

    Parameters
    ----------
    rows
        Of the results of `audit_eat`.
    bands
        Of each test, the d up to which p is not below .05.
    path
        A .pdf, .png or .svg file.
    """

    def fill(figure: Figure, axes: Axes) -> None:
        places = range(len(rows))
        lefts = [-band for band in bands]
        axes.barh(places, [2 * band for band in bands], left=lefts, height=0.7, color=GREY, label="p ≥ .05")
        axes.axvline(0, color="black", linewidth=0.8)
        printed = [row["published_d"] for row in rows if row["published_d"] is not None]
        looks = [("", "d", "o", OURS), *([("published_", "published", "d", PRINTED)] if printed else [])]
        for (before, what, marker, colour), starred in product(looks, (True, False)):
            points = {
                index: row[f"{before}d"]
                for index, row in enumerate(rows)
                if row[f"{before}d"] is not None and row[f"{before}star"] is starred
            }
            # A star is a normal p below .05 in either tail.
            label = f"{what}, p below .05 in either tail" if starred else f"{what}, p ≥ .05"
            face = colour if starred else "white"
            x, y = list(points.values()), list(points)
            axes.plot(x, y, marker, color=colour, markerfacecolor=face, label=label)
        widest = max(abs(value) for value in (*bands, *printed, *(row["d"] for row in rows)))
        axes.set_xlim(-1.08 * widest, 1.08 * widest)
        axes.set_yticks(places, [_test(row) for row in rows], fontsize=6)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel(
            "effect size d, in standard deviations\n"
            "\N{LEFTWARDS ARROW} Y closer to A      X closer to A \N{RIGHTWARDS ARROW}"
        )
        figure.legend(loc="outside upper right", ncols=3)

    draw(path, (WIDTH, 1.1 + 0.5 * len(rows)), fill)


def _test(row: Mapping[str, Any]) -> str:
    """Describe what a test compares: its name, its images and how many, its texts."""
    lines = (
        row["test"],
        f"X: {row['x']} (n = {row['n_x']})",
        f"Y: {row['y']} (n = {row['n_y']})",
        f"A: {row['a']}, B: {row['b']}",
    )
    return "\n".join(lines).replace("_", " ")


def draw_mean_maps(titles: Sequence[str], maps: NDArray[np.float32], path: Path) -> None:
    """Draw one panel per group, side by side, in one scale of colours.

    Parameters
    ----------
    titles
        Of the groups.
    maps : float32 [G, H, W]
    path
        A .pdf, .png or .svg file.
    """

    def fill(figure: Figure, axes: Axes) -> None:
        axes.remove()
        top = max(float(maps.max()), 1e-30)
        shown: Any = None
        panels = figure.subplots(1, len(titles), squeeze=False)[0]
        for panel, title, mean_map in zip(panels, titles, maps, strict=True):
            shown = panel.imshow(mean_map, cmap="viridis", vmin=0, vmax=top)
            panel.set_title(title, fontsize=8)
            panel.set_axis_off()
        figure.colorbar(shown, ax=panels, shrink=0.8, label="mean saliency")

    draw(path, (1.2 + 2.4 * len(titles), 3), fill)


def read_picture(path: Path) -> NDArray[np.uint8]:
    """Read any file that Pillow reads, upright, as uint8 [H, W, 3].

    Raises
    ------
    AuditError
        It is no such file, or damaged.
    """
    try:
        with Image.open(path) as image:
            return np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
    except (OSError, Image.DecompressionBombError, SyntaxError, ValueError) as error:
        raise AuditError(f"{path}: not a picture that can be read ({error})") from None


def draw_overlay(picture: Path, saliency: NDArray[np.float32], path: Path) -> None:
    """Lay a map over its picture, of which the networks see the square in the middle.

    Parameters
    ----------
    picture
        A file as for `read_picture`.
    saliency : float32 [H, W]
    path
        A .pdf, .png or .svg file.
    """
    pixels = read_picture(picture)
    side = min(pixels.shape[:2])
    y, x = ((length - side) // 2 for length in pixels.shape[:2])
    square = pixels[y : y + side, x : x + side]

    def fill(_: Figure, axes: Axes) -> None:
        extent = (0, side, side, 0)
        axes.imshow(square, extent=extent)
        axes.imshow(saliency, cmap="jet", alpha=0.45, extent=extent)
        axes.set_axis_off()

    draw(path, (3, 3), fill)


def draw_overlays(
    images: Sequence[str], maps: NDArray[np.float32], pictures: Mapping[str, Path], folder: Path
) -> None:
    """Lay every map [P, H, W] over the picture of its image, as files PLACE-IMAGE.png of a folder."""
    for index, (image, saliency) in enumerate(zip(images, maps, strict=True)):
        draw_overlay(pictures[image], saliency, folder / f"{index:04}-{image.replace('/', '_')}.png")


def draw_examples(rows: Sequence[Mapping[str, Any]], pictures: Mapping[str, Path], path: Path) -> None:
    """Draw examples of captions under their pictures, a column each for those nearest to man, woman, neither.

    Parameters
    ----------
    rows
        As `examples` gives them.
    pictures
        Image id -> its file.
    path
        A .pdf, .png or .svg file.
    """
    columns: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        columns.setdefault(row["nearest_to"], []).append(row)
    images = {name: _small(pictures[name]) for name in dict.fromkeys(row["image_id"] for row in rows)}

    def fill(figure: Figure, axes: Axes) -> None:
        axes.remove()
        panels = figure.subplots(max(map(len, columns.values())), len(columns), squeeze=False)
        for panel in panels.flat:
            panel.set_axis_off()
        for column, (kind, own) in enumerate(columns.items()):
            for number, row in enumerate(own):
                panel = panels[number, column]
                panel.imshow(images[row["image_id"]])
                panel.set_title(f"nearest to {kind}" if number == 0 else "", fontsize=9)
                words = [*textwrap.wrap(row["caption"], 40), *textwrap.wrap(f"visual: {row['visual']}", 40)]
                for what in ("distance", "gs"):
                    title = what.replace("gs", "GS")
                    values = (
                        f"{title} {gender} {row[f'{what}_{gender}']:.2f}" for gender in ("man", "woman")
                    )
                    words.append("   ".join(values))
                text = "\n".join(words).replace("$", r"\$")
                panel.text(0.5, -0.03, text, transform=panel.transAxes, ha="center", va="top", fontsize=6)

    draw(path, (WIDTH, 2.6 * max(map(len, columns.values()))), fill)


def _small(path: Path) -> NDArray[np.uint8]:
    """Read a picture at no more than the resolution of a sheet."""
    pixels = Image.fromarray(read_picture(path))
    pixels.thumbnail((SHEET_PIXELS, SHEET_PIXELS))
    return np.asarray(pixels)
