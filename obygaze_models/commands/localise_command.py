"""`obygaze localise`: compare frames' scores with the segments that people marked."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from obygaze_features.options import json_option
from obygaze_features.screen import table

if TYPE_CHECKING:
    from obygaze_models.evaluation.localise import Localisation


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
    beside what frames in random order have, for each annotator.

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
                "measures": [
                    {key: None if value != value else value for key, value in row.items()}  # noqa: PLR0124 - NaN
                    for row in result.pooled.to_dict(orient="records")
                ],
                "movies": result.by_movie.to_dict(orient="records"),
                "left_out": result.n_left_out,
            }
            for name, result in results.items()
        }
        click.echo(json_bytes(document).decode(), nl=False)
    else:
        click.echo(_table(results))
    for name, result in results.items():
        click.echo(f"{name}: {result.n_left_out} clips without a boundary left out", err=True)
    if out is not None:
        click.echo(f"{len(by_movie)} movies in {out}", err=True)


def _table(results: "dict[str, Localisation]") -> str:
    rows = [
        [
            name,
            str(row["measure"]).replace("_", " "),
            f"{row['value']:.3f}",
            "" if math.isnan(row["low"]) else f"[{row['low']:.3f}, {row['high']:.3f}]",
            f"{row['chance']:.3f}",
            str(len(result.by_movie)),
            str(int(result.by_movie["n_clips"].sum())),
        ]
        for name, result in results.items()
        for row in result.pooled.to_dict(orient="records")
    ]
    return table(
        rows, ["annotator", "measure", "mean", "95 %", "chance", "movies", "clips"], right=range(2, 7)
    )
