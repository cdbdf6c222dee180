"""`obygaze manifest agreement`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from obygaze_features.screen import table

if TYPE_CHECKING:
    from obygaze_features.manifest import Gamma


@click.command()
@click.argument("manifest", type=click.Path(path_type=Path))
@click.option(
    "--window",
    type=click.FloatRange(0, min_open=True),
    help="Length in seconds of the windows that free segments are projected onto first. [default: "
    "46, the mean MovieGraphs clip, if annotators' segments differ; otherwise no projection]",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    default=0.2,
    show_default=True,
    help="Minimum share of a window that an annotation must cover to count.",
)
@click.option(
    "--shuffles",
    type=click.IntRange(2),
    default=62,
    show_default=True,
    help="Number of random orders for the paper's estimate, reported beside the closed form.",
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the random orders."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def agreement(
    manifest: Path, window: float | None, threshold: float, shuffles: int, seed: int, as_json: bool
) -> None:
    """Measure the agreement gamma of every two annotators of a film (Tores et al., CVPR 2024, App. 7.3).

    gamma = 1 - observed / expected disorder: 1 is perfect, 0 is chance. The expected disorder is exact, from
    how often each annotator used each level; beside it stands the paper's estimate by shuffling, with the
    standard error that the number of shuffles leaves. Where the codebook has levels that are in no task, such
    as NS, "without NS" compares only the clips that neither annotator left at one. The 0.42 and 0.69 that the
    paper prints are of the separate annotations of ObyGaze12, which are not public.

    \b
    Examples:
      obygaze manifest agreement segments.csv
      obygaze manifest agreement segments.csv --window 60 --json
    """
    from obygaze_features.manifest import agreement as compared
    from obygaze_features.manifest import project as projected
    from obygaze_features.manifest import read_manifest, windows
    from obygaze_features.manifest.agreement import DEFAULT_WINDOW_S, is_aligned, mean_defined

    labels = read_manifest(manifest)
    if window is None and not is_aligned(labels):
        window = DEFAULT_WINDOW_S
    if window is not None:
        click.echo(f"projected onto windows of {window:g} s, threshold {threshold:g}", err=True)
        labels = projected(labels, windows(labels, window), threshold, per_annotator=True).manifest
    pairs = compared(labels, shuffles=shuffles, seed=seed)
    codebook = labels.codebook
    aside = [level for level in codebook.level_names if level not in codebook.labels]
    parts = ["all_levels", *(["labels_only"] if aside else [])]
    means = {part: mean_defined(getattr(pair, part) for pair in pairs) for part in parts}
    if as_json:
        document = {
            "manifest": str(manifest),
            "codebook": codebook.name,
            "window_s": window,
            "threshold": None if window is None else threshold,
            "shuffles": shuffles,
            "seed": seed,
            "pairs": [
                {
                    "movie": pair.movie,
                    "annotators": pair.annotators,
                    **{part: _gamma_record(getattr(pair, part)) for part in parts},
                }
                for pair in pairs
            ],
            "mean_gamma": means,
        }
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    rows = [
        (
            pair.movie,
            " / ".join(pair.annotators),
            *(cell for part in parts for cell in _gamma_cells(getattr(pair, part))),
        )
        for pair in pairs
    ]
    mean_row = ["mean", "", *(cell for part in parts for cell in ("", _number(means[part]), ""))]
    compared_on = ["clips", "gamma", "shuffled"]
    without = [f"{name}\nwithout {', '.join(aside)}" for name in compared_on if aside]
    headers = ["movie", "annotators", *compared_on, *without]
    click.echo(table([*rows, mean_row], headers))
    undefined = sum(any(getattr(pair, part).value is None for part in parts) for pair in pairs)
    if undefined:
        click.echo(
            f"undefined for {undefined} of {len(pairs)} pairs, which the means leave out: both annotators "
            "used one and the same level throughout, or share no clip, so that chance has no disorder",
            err=True,
        )


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


def _gamma_cells(gamma: "Gamma") -> tuple[str, str, str]:
    if gamma.shuffled is None or gamma.standard_error is None:
        return str(gamma.n_clips), _number(gamma.value), ""
    return str(gamma.n_clips), _number(gamma.value), f"{gamma.shuffled:.3f} ± {gamma.standard_error:.3f}"


def _gamma_record(gamma: "Gamma") -> "dict[str, Any]":
    from dataclasses import asdict

    return {("gamma" if name == "value" else name): value for name, value in asdict(gamma).items()}
