"""`obygaze manifest agreement` and `obygaze localise`: compare marked segments."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from obygaze_features.options import json_option
from obygaze_features.screen import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from obygaze_features.manifest import Gamma, PairAgreement
    from obygaze_models.evaluation.localise import Localisation
    from obygaze_models.evaluation.unitising import PairUnits, UnitGamma


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
    "--alpha",
    type=click.FloatRange(0),
    default=0,
    show_default=True,
    help="Weight of position (eq. 1). Above 0 free segments are aligned as they are, without projection.",
)
@click.option(
    "--beta",
    type=click.FloatRange(0),
    default=1,
    show_default=True,
    help="Weight of the level where --alpha is above 0.",
)
@click.option(
    "--shuffles",
    type=click.IntRange(2),
    default=62,
    show_default=True,
    help="Number of chance annotations: random orders, reported beside the closed form; "
    "with --alpha, annotations moved along the film.",
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the random orders."
)
@json_option
def agreement(
    manifest: Path,
    window: float | None,
    threshold: float,
    alpha: float,
    beta: float,
    shuffles: int,
    seed: int,
    as_json: bool,
) -> None:
    """Measure the agreement gamma of every two annotators of a film (Tores et al., CVPR 2024, App. 7.3).

    gamma = 1 - observed / expected disorder: 1 is perfect, 0 is chance. The expected disorder is exact, from
    how often each annotator used each level; beside it stands the paper's estimate by shuffling, with the
    standard error that the number of shuffles leaves. Where the codebook has levels that are in no task, such
    as NS, "without NS" compares only the clips that neither annotator left at one. The 0.42 and 0.69 that the
    paper prints are of the separate annotations of ObyGaze12, which are not public.

    With --alpha above 0 annotators also disagree by what they mark and where it begins and ends: segments
    above the lowest level are aligned one with one or with none (Mathet et al. 2015).

    \b
    Examples:
      obygaze manifest agreement segments.csv
      obygaze manifest agreement segments.csv --alpha 1
      obygaze manifest agreement segments.csv --window 60 --json
    """
    from obygaze_features.manifest import agreement as compared
    from obygaze_features.manifest import project as projected
    from obygaze_features.manifest import read_manifest, windows
    from obygaze_features.manifest.agreement import DEFAULT_WINDOW_S, is_aligned, mean_defined
    from obygaze_models.evaluation.unitising import unitised_agreement

    labels = read_manifest(manifest)
    pairs: Sequence[PairAgreement | PairUnits]
    if alpha > 0:
        if window is not None:
            raise click.UsageError("--window projects segments, which --alpha compares as they are")
        pairs = unitised_agreement(labels, alpha=alpha, beta=beta, samples=shuffles, seed=seed)
        how: dict[str, Any] = {"alpha": alpha, "beta": beta, "samples": shuffles, "seed": seed}
    else:
        if window is None and not is_aligned(labels):
            window = DEFAULT_WINDOW_S
        if window is not None:
            click.echo(f"projected onto windows of {window:g} s, threshold {threshold:g}", err=True)
            labels = projected(labels, windows(labels, window), threshold, per_annotator=True).manifest
        pairs = compared(labels, shuffles=shuffles, seed=seed)
        how = {
            "window_s": window,
            "threshold": None if window is None else threshold,
            "shuffles": shuffles,
            "seed": seed,
        }
    codebook = labels.codebook
    aside = [level for level in codebook.level_names if level not in codebook.labels]
    parts = ["all_levels", *(["labels_only"] if aside else [])]
    means = {part: mean_defined(getattr(pair, part) for pair in pairs) for part in parts}
    if as_json:
        document = {
            "manifest": str(manifest),
            "codebook": codebook.name,
            **how,
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
    names = {" / ".join(pair.annotators) for pair in pairs}
    same = len(names) == 1
    if same:
        click.echo(f"annotators of every movie: {names.pop()}")
    rows = [
        (
            pair.movie,
            *([] if same else [" / ".join(pair.annotators)]),
            *(cell for part in parts for cell in _gamma_cells(getattr(pair, part))),
        )
        for pair in pairs
    ]
    compared_on = ["segments", "aligned", "gamma"] if alpha > 0 else ["clips", "gamma", "shuffled"]
    column = compared_on.index("gamma")
    blank = [""] * len(compared_on)
    mean_row = [
        "mean",
        *([] if same else [""]),
        *(cell for part in parts for cell in (*blank[:column], _number(means[part]), *blank[column + 1 :])),
    ]
    without = [f"{name}\nwithout\n{', '.join(aside)}" for name in compared_on if aside]
    headers = ["movie", *([] if same else ["annotators"]), *compared_on, *without]
    click.echo(table([*rows, mean_row], headers))
    undefined = sum(any(getattr(pair, part).value is None for part in parts) for pair in pairs)
    if undefined:
        why = (
            "they marked nothing"
            if alpha > 0
            else "both annotators used one and the same level throughout, or share no clip, "
            "so that chance has no disorder"
        )
        click.echo(
            f"undefined for {undefined} of {len(pairs)} pairs, which the means leave out: {why}", err=True
        )


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


def _gamma_cells(gamma: "Gamma | UnitGamma") -> tuple[str, str, str]:
    from obygaze_features.manifest import Gamma

    error = "" if gamma.standard_error is None else f" ± {gamma.standard_error:.3f}"
    if isinstance(gamma, Gamma):
        shuffled = "" if gamma.shuffled is None else f"{gamma.shuffled:.3f}{error}"
        return str(gamma.n_clips), _number(gamma.value), shuffled
    return (
        " / ".join(map(str, gamma.n_units)),
        str(gamma.n_aligned),
        f"{_number(gamma.value)}{error}",
    )


def _gamma_record(gamma: "Gamma | UnitGamma") -> "dict[str, Any]":
    from dataclasses import asdict

    return {("gamma" if name == "value" else name): value for name, value in asdict(gamma).items()}


@click.command()
@click.argument("frames", type=click.Path(path_type=Path))
@click.argument("manifest", type=click.Path(path_type=Path))
@click.option("--positive", multiple=True, metavar="LEVEL", help="Level to find; repeatable.")
@click.option("--concept", help="Concept to find, instead of --positive.")
@click.option(
    "--score",
    default="weight",
    show_default=True,
    metavar="COLUMN",
    help="Column of FRAMES to rank frames by: weight, contribution, Body_value, ...",
)
@click.option("--out", type=click.Path(path_type=Path), help="Write the numbers of each movie as CSV.")
@click.option("--force", is_flag=True, help="Replace an earlier --out.")
@json_option
def localise(
    frames: Path,
    manifest: Path,
    positive: tuple[str, ...],
    concept: str | None,
    score: str,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Compare FRAMES, written by `obygaze predict --frames`, with the segments of MANIFEST.

    Only clips with frames inside and outside of segments count. Average precision ranks the frames of each
    clip; pointing is the share of clips whose highest frame lies in a segment. Both are means over movies,
    for each annotator. Chance is the same with the scores of the movie's other clips; p, from circular
    shifts of the clips' scores within each movie, says whether a mean differs from it.

    \b
    Examples:
      obygaze predict run/attention.model stores/more --frames frames.csv
      obygaze localise frames.csv marked.csv --positive S
      obygaze localise frames.csv marked.csv --concept Body --score Body_value
    """
    from obygaze_features.io import json_bytes, refuse_existing, write_whole
    from obygaze_features.manifest import read_manifest
    from obygaze_models.evaluation.localise import localise as compare
    from obygaze_models.evaluation.localise import marked_segments, movies_table, read_frames

    refuse_existing(out, force=force)
    marked = marked_segments(read_manifest(manifest), positive, concept)
    scored = read_frames(frames)
    results = {name: compare(scored, segments, score) for name, segments in marked.items()}
    by_movie = movies_table(results)
    if out is not None:
        write_whole(out, str(by_movie.to_csv(index=False, lineterminator="\n")))
    if as_json:
        document = {
            name: {
                "measures": _records(result.pooled),
                "movies": _records(result.by_movie),
                "left_out": result.n_left_out,
                "n_shifts": result.n_shifts,
                "seed": result.seed,
            }
            for name, result in results.items()
        }
        click.echo(json_bytes(document).decode(), nl=False)
    else:
        click.echo(_localisation_table(results))
    for name, result in results.items():
        click.echo(f"{name}: {result.n_left_out} clips without a boundary left out", err=True)
    if out is not None:
        click.echo(f"{len(by_movie)} movies in {out}", err=True)


def _records(rows: "pd.DataFrame") -> "list[dict[Any, Any]]":
    """Make rows that JSON can hold: None for NaN."""
    return rows.astype(object).where(rows.notna(), None).to_dict(orient="records")


def _localisation_table(results: "dict[str, Localisation]") -> str:
    rows = [
        [
            name,
            str(row["measure"]).replace("_", " "),
            f"{row['value']:.3f}",
            "" if math.isnan(row["low"]) else f"[{row['low']:.3f}, {row['high']:.3f}]",
            "" if math.isnan(row["chance"]) else f"{row['chance']:.3f}",
            f"{row['p']:.3f}",
            str(len(result.by_movie)),
            str(int(result.by_movie["n_clips"].sum())),
        ]
        for name, result in results.items()
        for row in result.pooled.to_dict(orient="records")
    ]
    headers = ["annotator", "measure", "mean", "95 %", "chance", "p", "movies", "clips"]
    first = next(iter(results.values()))
    return "\n".join(
        [
            table(rows, headers, right=range(2, 8)),
            "",
            "above chance: the mean is larger than chance, and p is at most .05",
            "chance: mean with the scores of the movie's other clips; blank where there are none",
            f"p: two-sided, {first.n_shifts} shifts of the clips' scores within movies (seed {first.seed})",
            "95 %: interval of the mean over movies like these, not a test against chance",
        ]
    )
