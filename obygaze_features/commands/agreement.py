"""`obygaze manifest agreement`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from obygaze_features.manifest import Gamma


@click.command()
@click.argument("manifest", type=click.Path(path_type=Path))
@click.option(
    "--window",
    type=click.FloatRange(0, min_open=True),
    help="Project free segments onto windows of so many seconds first "
    "[default: 46, the mean MovieGraphs clip, where annotators' segments differ; else none].",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    default=0.2,
    show_default=True,
    help="Smallest share of a window that an annotation must cover to count.",
)
@click.option(
    "--shuffles",
    type=click.IntRange(2),
    default=62,
    show_default=True,
    help="Random orders for the paper's estimate, beside the closed form.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the random orders.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def agreement(
    manifest: Path, window: float | None, threshold: float, shuffles: int, seed: int, as_json: bool
) -> None:
    """Measure the agreement gamma of every two annotators of a film (Tores et al., CVPR 2024, App. 7.3).

    gamma = 1 - observed / expected disorder: 1 is perfect, 0 is chance. The expected disorder is exact, from
    how often each annotator used each level; beside it stands the paper's estimate by shuffling, with the
    standard error that the number of shuffles leaves. "without NS" compares only the clips that neither
    annotator called Not Sure. The 0.42 and 0.69 that the paper prints are of the separate annotations of
    ObyGaze12, which are not public.

    \b
    Examples:
      obygaze manifest agreement segments.csv
      obygaze manifest agreement segments.csv --window 60 --json
    """
    from tabulate import tabulate

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
    means = {
        "all_levels": mean_defined(pair.all_levels for pair in pairs),
        "without_ns": mean_defined(pair.without_ns for pair in pairs),
    }
    if as_json:
        document = {
            "manifest": str(manifest),
            "window_s": window,
            "threshold": None if window is None else threshold,
            "shuffles": shuffles,
            "seed": seed,
            "pairs": [
                {
                    "movie": pair.movie,
                    "annotators": pair.annotators,
                    "all_levels": _gamma_record(pair.all_levels),
                    "without_ns": _gamma_record(pair.without_ns),
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
            *_gamma_cells(pair.all_levels),
            *_gamma_cells(pair.without_ns),
        )
        for pair in pairs
    ]
    mean_row = ["mean", "", "", _number(means["all_levels"]), "", "", _number(means["without_ns"]), ""]
    compared_on = ["clips", "gamma", "shuffled"]
    without_ns = [f"{name}\nwithout NS" for name in compared_on]
    headers = ["movie", "annotators", *compared_on, *without_ns]
    click.echo(
        tabulate([*rows, mean_row], headers, tablefmt="simple", disable_numparse=True, stralign="left")
    )
    undefined = sum(pair.all_levels.value is None or pair.without_ns.value is None for pair in pairs)
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
