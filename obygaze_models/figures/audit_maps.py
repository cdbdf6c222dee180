"""Mean saliency maps, and maps laid over their pictures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image, ImageOps

from obygaze_models.figures.audit_canvas import draw


def draw_mean_maps(titles: Sequence[str], maps: NDArray[np.float32], path: Path) -> None:
    """Draw one panel a group, side by side, in one scale of colours.

    Parameters
    ----------
    titles
        Of the groups.
    maps : float32 [G, H, W]
    path
        A .png or .svg file.
    """

    def fill(figure: Figure, axes: Axes) -> None:
        axes.remove()
        top = max(float(maps.max()), 1e-30)
        shown: Any = None
        panels = figure.subplots(1, len(titles), squeeze=False)[0]
        for panel, title, one in zip(panels, titles, maps, strict=True):
            shown = panel.imshow(one, cmap="viridis", vmin=0, vmax=top)
            panel.set_title(title, fontsize=8)
            panel.set_axis_off()
        figure.colorbar(shown, ax=panels, shrink=0.8, label="mean saliency")

    draw(path, (1.2 + 2.4 * len(titles), 3), fill)


def draw_overlay(picture: Path, one: NDArray[np.float32], path: Path) -> None:
    """Lay a map over its picture, of which the networks see the square in the middle.

    Parameters
    ----------
    picture
        Any file that Pillow reads, shown upright.
    one : float32 [H, W]
    path
        A .png or .svg file.
    """
    with Image.open(picture) as image:
        pixels = np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
    side = min(pixels.shape[:2])
    y, x = ((length - side) // 2 for length in pixels.shape[:2])
    square = pixels[y : y + side, x : x + side]

    def fill(_: Figure, axes: Axes) -> None:
        extent = (0, side, side, 0)
        axes.imshow(square, extent=extent)
        axes.imshow(one, cmap="jet", alpha=0.45, extent=extent)
        axes.set_axis_off()

    draw(path, (3, 3), fill)
