"""`obygaze store duplicates`: find clips that look alike."""

from dataclasses import asdict, astuple

import click

import obygaze_features as of
from obygaze_features.io import write_whole
from obygaze_features.lines import csv_line
from obygaze_features.options import LOCAL, Output, output
from obygaze_features.screen import progress_bar, table


@click.command()
@click.argument("store")
@click.argument("other", required=False)
@output("Write all pairs to a CSV file.", kind=LOCAL, json=True)
def duplicates(store: str, other: str | None, output: Output) -> None:
    """Find the clips of STORE that look like clips of OTHER, or of other movies of STORE.

    Found are clips that were re-encoded, cropped by a tenth, mirrored, or shifted in time, by the frames of
    `descriptors` in both stores; not those with other brightness, contrast or colours. End credits and skies
    of different movies look alike too: look at what is found. A model tested on a film whose pictures it has
    learnt from is tested on what it knows. Within a store, clips of different movies are compared.

    \b
    Examples:
      obygaze store duplicates stores/films
      obygaze store duplicates stores/films stores/trailers --out same.csv
      obygaze store duplicates stores/films https://lab.example.org/films-1.0.0
    """
    from obygaze_features.same_pictures import Duplicate
    from obygaze_features.same_pictures import duplicates as find

    output.refuse_existing()
    with progress_bar("comparing", "clip") as progress:
        found = find(of.open_store(store), None if other is None else of.open_store(other), progress=progress)
    rows = [astuple(pair) for pair in found.pairs]
    names = tuple(Duplicate.__dataclass_fields__)
    if output.out is not None:
        write_whole(output.out, "".join(csv_line([str(cell) for cell in row]) for row in [names, *rows]))
    n, more = found.clips, f" and {found.clips[1]}" if other is not None else ""
    plain = sum(found.plain) if other is not None else found.plain[0]
    said = f"{len(rows)} pairs of clips that look alike among {n[0]}{more}"
    said += f"; {plain} clips show too little to be compared" if plain else ""

    def text() -> str:
        shown = [(*row[:4], f"{row[4]:.3f}") for row in rows[:MOST]]
        listed = [table(shown, names, right=(4,))] if shown else []
        rest = [f"and {len(rows) - MOST} more: --out FILE has all"] if len(rows) > MOST else []
        return "\n".join([*listed, *rest, said])

    output.show(asdict(found), text)


MOST = 40
"""Pairs that are printed."""
