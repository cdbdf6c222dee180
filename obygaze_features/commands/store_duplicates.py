"""`obygaze store duplicates`: find clips that look alike."""

from collections.abc import Sequence
from dataclasses import asdict, astuple
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

import obygaze_features as of
from obygaze_features.io import refuse_existing, write_whole
from obygaze_features.lines import csv_line
from obygaze_features.manifest import counted
from obygaze_features.options import FILE, Answer
from obygaze_features.screen import table
from obygaze_features.signatures import Force, argument, command, option

if TYPE_CHECKING:
    from obygaze_features.same_pictures import Duplicates


@command()
def duplicates(
    store: Annotated[str, argument(type=click.STRING)],
    other: Annotated[str | None, argument(type=click.STRING)] = None,
    *,
    out: Annotated[
        Path | None, option("Write all clips that were found to this CSV file.", type=FILE)
    ] = None,
    force: Force = False,
) -> Answer:
    """Find the clips of STORE that look like clips of OTHER or, without OTHER, of other movies of STORE.

    Use it before you evaluate: a test on a film is not fair if the model has learnt from the same pictures
    in another film. The stores need features of the backbone `signature`. Clips of credits, titles and
    black are not compared.

    A clip is also found if it was re-encoded, graded, made black and white, letterboxed, slightly cropped,
    mirrored or subtitled, or if it begins a little later. Other moments of one scene look alike too, so
    look at what is found. The command names movies that share several such clips in a row.

    \b
    Examples:
      obygaze store duplicates stores/films
      obygaze store duplicates stores/films stores/trailers --out same.csv
      obygaze store duplicates stores/films https://lab.example.org/films-1.0.0
    """
    from obygaze_features.commands.extract_output import note
    from obygaze_features.same_pictures import SameClip, expected_s
    from obygaze_features.same_pictures import duplicates as find

    refuse_existing(out, force=force)
    stores = [of.open_store(store)]
    if other is not None:
        stores.append(of.open_store(other))
    min_s, most_s = expected_s(*stores)
    if most_s >= MIN_ANNOUNCED_S:
        note(f"all clips are compared with all: {min_s:.0f} CPU s, up to {most_s:.0f} where all look alike")
    result = find(*stores, progress=True)
    columns = tuple(SameClip.__dataclass_fields__)
    rows = [astuple(clip) for clip in result.clips]
    if out is not None:
        write_whole(out, _csv_table([columns, *rows]))
    summary = _summary_line(result)
    has_one_movie = len({clip.movie for clip in stores[0].clips}) == 1
    if other is None and has_one_movie:
        summary += "; all are of one movie, which is not compared with itself: give OTHER"
    lines = [*_table_lines(rows, columns), *_lines_on_movies(result), summary]
    return Answer(asdict(result), "\n".join(lines))


def _csv_table(rows: Sequence[tuple[Any, ...]]) -> str:
    """Format rows as the text of a CSV file; the first row holds the headings."""
    lines = []
    for row in rows:
        cells = [str(cell) for cell in row]
        lines.append(csv_line(cells))
    return "".join(lines)


def _table_lines(rows: Sequence[tuple[Any, ...]], names: Sequence[str]) -> list[str]:
    """Format the first clips that were found as a table, and say how many more there are.

    Parameters
    ----------
    rows
        The clips, as tuples of the fields of `SameClip`.
    names
        Names of these fields, the headings.
    """
    if not rows:
        return []
    shown = []
    for *other_cells, likeness in rows[:MAX_SHOWN]:  # the last field is a likeness
        shown.append((*other_cells, f"{likeness:.3f}"))
    columns_of_numbers = (0, 3, 4)  # they are aligned at the right
    lines = [table(shown, names, right=columns_of_numbers)]
    if len(rows) > MAX_SHOWN:
        lines.append(f"and {len(rows) - MAX_SHOWN} more: --out FILE has all")
    return lines


def _lines_on_movies(result: "Duplicates") -> list[str]:
    """Name the pairs of movies that share several clips in a row."""
    return [
        f"{pair.movie_a} and {pair.movie_b} share {counted(pair.clips, 'clip')} in a row"
        for pair in result.movies
    ]


def _summary_line(result: "Duplicates") -> str:
    """Return a line with the numbers of clips that look alike, were compared, and could not be compared."""
    n_groups = len({clip.group for clip in result.clips})
    compared = " and ".join(str(n_clips) for n_clips in result.compared)
    summary = (
        f"{counted(len(result.clips), 'clip')} in {counted(n_groups, 'group')} that look alike, "
        f"among {compared}"
    )
    n_plain = sum(result.plain)
    if n_plain:
        summary += f"; {counted(n_plain, 'clip shows', 'clips show')} too little to be compared"
    n_without = sum(result.without)
    if n_without:
        summary += f"; {counted(n_without, 'clip has', 'clips have')} no signature"
    return summary


MAX_SHOWN = 40
"""Largest number of clips that are printed."""

MIN_ANNOUNCED_S = 10
"""CPU seconds from which on a note announces how long the comparison takes."""
