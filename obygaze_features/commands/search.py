"""`obygaze search`: rank a store's clips by their similarity to a text."""

from dataclasses import asdict
from typing import Any

import click

from obygaze_features.options import json_option, show, site
from obygaze_features.screen import table


@click.command()
@click.argument("store")
@click.argument("query")
@click.option(
    "--text-store",
    metavar="STORE",
    help="Store of texts that holds QUERY, by its text or id; no network runs then.",
)
@click.option("--backbone", metavar="NAME", help="Group of STORE; needed if several can be searched.")
@click.option(
    "--weights",
    metavar="WEIGHTS",
    help="Weights of the text half: a file, folder or repository[@revision].  [default: those that the store "
    "names on the hub]",
)
@click.option("--top", type=click.IntRange(1), default=10, help="Number of clips to print.")
@click.option(
    "--device", default="auto", metavar="auto|cpu|cuda[:N]", help="Device to run on.", **site("DEVICE")
)
@json_option
def search(store: str, query: str, as_json: bool, **chosen: Any) -> None:
    """Find the clips of STORE (a path or URL) whose pooled vectors are nearest to the text QUERY.

    QUERY is encoded with the text half of the network that made the store, which must have the same weights:
    clip, openclip, xclip and xclip-lsmdc have one. The score is the cosine, the times are those of the clip
    in its video. Scores of two texts, or of two backbones, are not in one scale.

    \b
    Examples:
      obygaze search stores/films "a woman seen from behind"
      obygaze search https://lab.example/films-1.0.0 "a kiss" --top 20 --json
      obygaze search stores/films "a kiss" --backbone xclip-lsmdc \\
          --weights runs/lsmdc
      obygaze extract queries.csv stores/queries --backbone xclip-text
      obygaze search stores/films "a kiss" --text-store stores/queries
    """
    from obygaze_features.text_search import COLUMNS
    from obygaze_features.text_search import search as ranked

    if chosen["text_store"] is not None and chosen["weights"] is not None:
        raise click.UsageError("--weights is for a text that is encoded now; leave it out with --text-store")
    ranking = ranked(store, query, **chosen)
    cells = [
        (hit.rank, hit.clip_id, hit.movie, _time(hit.start_s), _time(hit.end_s), f"{hit.score:z.4f}")
        for hit in ranking
    ]
    show(asdict(ranking), lambda: table(cells, COLUMNS, right=(0, 3, 4, 5)), as_json=as_json)
    if as_json:
        return
    without = f"; {ranking.n_without} more have no features" if ranking.n_without else ""
    click.echo(f"{ranking.n_clips} clips ranked by {ranking.backbone}{without}", err=True)
    for note in ranking.notes:
        click.echo(f"note: {note}", err=True)


def _time(seconds: float | None) -> str:
    """Write a time as h:mm:ss.s; a hyphen where it is not known."""
    if seconds is None:
        return "-"
    tenths = round(seconds * 10)
    minutes, rest = divmod(tenths, 600)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest // 10:02d}.{rest % 10}"
