"""`obygaze film report`, `export`: pages and exports of scored films."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import click

import obygaze_film
from obygaze_features.errors import ManifestError
from obygaze_features.io import refuse_existing
from obygaze_features.options import Answer, Output, declared
from obygaze_features.plugins import points
from obygaze_features.text import file_name

FORMATS = ("eaf", "vtt", "srt", "otio", "fcpxml7", "edl", "textgrid", "rttm", "jsonld", "iiif", "csv")
"""Names of those of `exchange.registry`, which is slow to import."""
ADDED = tuple(point.name for point in points("obygaze.exporters"))


@declared(__package__, "film report")
def report(folders: tuple[Path, ...], top: int, language: str, output: Output) -> Answer:
    """Show scored films as a page that anybody can open: one HTML file that requests nothing.

    FOLDERs are what `obygaze film score` wrote: one film each, or several. The page has the timeline with its
    band, the concepts, the segments with what moved their scores, and the same numbers as tables. Several
    films get an index. To watch, correct and judge, use `obygaze film open`; `obygaze film compare` compares.

    \b
    Examples:
      obygaze film report scored --out film.html
      obygaze film report scored/tt0118715 scored/tt0212338 --top 10 \\
          --out films.html
      obygaze film report scored --language fr --out film.html
    """
    from obygaze_film.judged_rate import read_rates
    from obygaze_film.page import write_film_page
    from obygaze_film.timeline import found_films

    out = output.out or Path("report.html")
    refuse_existing(out, force=output.force)
    films_by_folder = found_films(folders)
    films = list(films_by_folder.values())
    rates = {film.movie: read_rates(folder) for folder, film in films_by_folder.items()}
    write_film_page(films, out, force=output.force, top=top, language=language, rates=rates)
    for film in films:
        click.echo("\n".join(filter(None, [film.heading, film.sentence()])), err=True)
    return Answer(None, str(out))


@declared(__package__, "film export", kind={"type": click.Choice((*FORMATS, *ADDED))})
def export(folder: Path, kind: str, tiers: str | None, fps: str, output: Output, **chosen: Any) -> Answer:
    """Write a scored film for another tool.

    Writes the passages that reach the threshold, each with the concepts that are seen in it.

    eaf: ELAN 3.0, with empty tiers for people to write on, which `obygaze manifest import spans` reads. vtt,
    srt: subtitles for any player. textgrid: Praat. rttm: turns, for pyannote and others. edl: markers with
    their lengths for DaVinci Resolve (Import, Timeline Markers from EDL), whose timelines begin at --start
    01:00:00:00. otio, fcpxml7: markers for video editors; needs the extra `interchange`. jsonld: W3C Web
    Annotation. iiif: a manifest with one canvas (Presentation API 3.0). csv: a table for spreadsheets. Every
    file says that a model wrote it, and what its scores are not. What a format loses is printed on stderr.

    \b
    Examples:
      obygaze film export scored/tt0118715 --as eaf --out tt0118715.eaf
      obygaze film export scored/tt0118715 --as fcpxml7 --fps 24000/1001 \\
          --out tt0118715.xml
      obygaze film export scored/tt0118715 --as vtt --tiers segments,shots \\
          --out tt0118715.vtt
    """
    from obygaze_film.errors import FilmError
    from obygaze_film.exchange import FORMATS as KNOWN
    from obygaze_film.exchange import write_export

    if chosen["start"] and kind != "edl":
        raise click.UsageError("--start is for --as edl")
    rate = _rate(fps)
    film, *more = obygaze_film.read_films([folder])
    if more:
        raise FilmError(f"{folder}: {len(more) + 1} films are there; give the folder of one")
    path = output.out or Path(f"{file_name(film.movie)}{KNOWN[kind].suffix}")
    refuse_existing(path, force=output.force)
    names = tuple(name.strip() for name in tiers.split(",")) if tiers else ()
    notice = write_export(film, kind, path, tiers=names, rate=rate, **chosen)
    if notice:
        click.echo(notice, err=True)
    if KNOWN[kind].loses:
        click.echo(f"{kind}: {KNOWN[kind].loses}", err=True)
    return Answer(None, str(path))


def _rate(text: str) -> Fraction:

    from obygaze_features.manifest import frame_rate

    try:
        return frame_rate(text)
    except ManifestError as error:
        raise click.BadParameter(str(error), param_hint="--fps") from None
