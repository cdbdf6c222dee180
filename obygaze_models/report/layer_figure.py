"""Draw how much each layer of a network knows: two metrics by layer, with intervals."""

from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from obygaze_models.evaluation.metrics import metrics_of
from obygaze_models.evaluation.run import Run
from obygaze_models.report.blocks import Picture
from obygaze_models.report.run_answers import models_of_layers, title_prefix

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DRAWN_METRICS = ("auc", "average_precision")
"""Metrics of two classes that are drawn, side by side."""

DRAWN_METRICS_OF_LEVELS = ("spearman", "quadratic_kappa")
"""Metrics of ordered levels that are drawn."""

METADATA_OF: Mapping[str, Any] = {
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
}
"""Suffix -> metadata (version, date) that matplotlib leaves out, so that bytes do not vary."""
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#aa3377", "#66ccee")
"""Colours of the models: Paul Tol's bright scheme, which colour-blind readers tell apart."""


def layer_pictures(run: Run) -> tuple[Picture, ...]:
    """Return the figures of a run that has a model of each layer: one for each task.

    Without matplotlib (`obygaze[figures]`) there are no figures; the tables have the numbers.
    """
    layers = models_of_layers(run)
    if not layers or find_spec("matplotlib") is None:
        return ()

    titles = shown_metrics(run.predictions.n_classes)
    metrics = " and ".join(titles.values())
    pictures = []
    for number, task in enumerate(run.metrics["task"].unique(), start=1):
        table = run.metrics[run.metrics["task"] == task]
        caption = (
            f"{title_prefix(run, task)}{metrics} by movie of each layer, with 95 % intervals; dashed: chance "
            "of one layer, not of the best"
        )
        # Takes the path of the file, as `Picture.draw` must.
        draw = partial(draw_layers, table, layers, titles)
        pictures.append(Picture(f"layers-{number}", caption, draw))
    return tuple(pictures)


def shown_metrics(n_classes: int) -> dict[str, str]:
    """Return the metrics that are drawn, name -> title, for a target of two classes or of ordered levels."""
    names = DRAWN_METRICS if n_classes == 2 else DRAWN_METRICS_OF_LEVELS
    metrics = metrics_of(n_classes)
    return {name: metrics[name].title for name in names}


def draw_layers(
    metrics: pd.DataFrame, layers: Mapping[str, Mapping[str, str]], titles: Mapping[str, str], path: Path
) -> None:
    """Draw metrics of one task by layer.

    Parameters
    ----------
    metrics : DataFrame
        Rows of `Run.metrics`, of one task.
    layers : mapping
        Model -> layer -> the name of the layer's model in the metrics.
    titles : mapping
        Metric that is drawn -> its title.
    path : Path
        A .pdf, .png or .svg file; for a path without such a suffix all three files are drawn.
    """
    from matplotlib import rc_context  # noqa: PLC0415 - obygaze[figures], and slow
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    # Identifiers in an SVG file are random without a salt, and texts depend on the reader's fonts if they are
    # not drawn as paths.
    with rc_context({"svg.hashsalt": "obygaze", "svg.fonttype": "path", "font.size": 8}):
        figure = Figure(figsize=(7.2, 2.8), layout="constrained")
        FigureCanvasAgg(figure)
        for position, (metric, title) in enumerate(titles.items(), start=1):
            axes = figure.add_subplot(1, len(titles), position)
            _draw_metric(axes, metrics[metrics["metric"] == metric].set_index("model"), layers)
            axes.set_xlabel("layer")
            axes.set_ylabel(f"{title} by movie")
        if len(layers) > 1:
            last_axes = figure.axes[-1]
            last_axes.legend(frameon=False)

        path.parent.mkdir(parents=True, exist_ok=True)
        for file in _figure_files(path):
            figure.savefig(file, dpi=300, metadata=METADATA_OF[file.suffix])


def _figure_files(path: Path) -> list[Path]:
    """Return the files to draw for a path: itself, or one of each format if it has none of their suffixes."""
    if path.suffix in METADATA_OF:
        return [path]
    return [path.with_name(path.name + suffix) for suffix in METADATA_OF]


def _draw_metric(axes: "Axes", metrics: pd.DataFrame, layers: Mapping[str, Mapping[str, str]]) -> None:
    """Draw one metric by layer into axes: a line with intervals for each model, and one at chance.

    Parameters
    ----------
    axes : Axes
    metrics : DataFrame
        The metric's rows, by the names of models.
    layers : mapping
        Model -> layer -> the name of the layer's model. Models beyond the number of `COLOURS` are not drawn.
    """
    for colour, (model, model_of_layer) in zip(COLOURS, layers.items(), strict=False):
        rows = metrics.loc[list(model_of_layer.values())]
        mean = rows["movie_mean"].to_numpy()
        interval_ends = rows[["movie_low", "movie_high"]].to_numpy().T
        lengths_of_bars = abs(interval_ends - mean)  # below and above the mean
        positions = range(len(model_of_layer))
        axes.errorbar(
            positions,
            mean,
            lengths_of_bars,
            color=colour,
            marker="o",
            ms=3,
            lw=1,
            label=model,
        )
        axes.set_xticks(positions, list(model_of_layer))

    chance = float(metrics["movie_chance"].iloc[0])  # the same for all models
    axes.axhline(chance, color="#777777", lw=0.8, ls="--")
