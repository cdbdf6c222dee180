"""Write the page of scored films as one HTML file; pictures of segments only on request."""

import base64
import re
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from obygaze_features.door import read_bytes
from obygaze_features.errors import InputError
from obygaze_features.io import NO_LICENCE, local_path, refuse_existing, write_whole
from obygaze_features.text import file_name
from obygaze_film.errors import FilmError
from obygaze_film.page import charts
from obygaze_film.page.phrases import SCRIPT, Words, clock
from obygaze_film.page.view import FilmView
from obygaze_film.schema import CorrectedRate, FilmRecord
from obygaze_models.report import asset, json_data, page

if TYPE_CHECKING:
    from obygaze_film.timeline import Timeline

Rates = Mapping[str, Sequence[CorrectedRate]]
"""Rates corrected by judgements, by movie."""


def film_page(
    films: "Sequence[Timeline]",
    *,
    top: int = 20,
    language: str = "en",
    rates: Rates | None = None,
    stills: Mapping[str, Mapping[int, str]] | None = None,
) -> str:
    """Write scored films as one HTML page.

    For several films, add an index, sorted by year and title, never by rate.

    Parameters
    ----------
    films : sequence of Timeline
        At least one.
    top : int
        Segments to list for each film, if it has as many.
    language : str
        One of `LANGUAGES`.
    rates : mapping, optional
        Rates corrected by judgements (`read_rates`), by movie.
    stills : mapping, optional
        By movie and rank of segment, data URLs of pictures of the film.
    """
    words = Words(language)
    rates, stills = rates or {}, stills or {}
    ordered = sorted(films, key=lambda film: (film.record.year or 9999, film.record.title, film.movie))
    views = [
        FilmView(
            film,
            f"f{number}",
            words,
            top=top,
            corrected=next(
                (rate for rate in rates.get(film.movie, ()) if rate.model == film.model().key), None
            ),
            stills=stills.get(film.movie),
        )
        for number, film in enumerate(ordered, start=1)
    ]
    alone = len(views) == 1
    return page(
        "film.html.j2",
        asset("film.css", "obygaze_film.page"),
        _joined("time.js", "timeline.js"),
        package="obygaze_film.page",
        title=views[0].heading if alone else words.say("films_title", n=len(views)),
        language=words.language,
        w=words,
        depth=2 if alone else 3,
        films=views,
        charts=charts,
        clock=clock,
        about=_about(ordered, words),
        footer=_footer(ordered, words, with_frames=any(view.stills for view in views)),
        texts=json_data({name: words[name] for name in SCRIPT}),
    )


def _joined(*modules: str) -> str:
    """Join modules of the script to one that imports nothing: a mailed page has no other file."""
    text = "".join(asset(name, "obygaze_film.page") for name in modules)
    return re.sub("^import .*\n|^export ", "", text, flags=re.MULTILINE)


def write_film_page(
    films: "Sequence[Timeline]", path: str | Path, *, force: bool = False, **options: Any
) -> None:
    """Write the page of scored films into a file; options as of `film_page`.

    Raises
    ------
    OutputError
        The file exists, and `force` is not given.
    """
    path = local_path(path)
    refuse_existing(path, force=force)
    text = film_page(films, **options)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)


def _about(films: "Sequence[Timeline]", words: Words) -> list[str]:
    human = next((film.record.human for film in films if film.record.human), None)
    boundaries = words["about_4_unknown"]
    if human is not None:
        boundaries = words.say("about_4", boundary=words.number(human.boundary_f1))
    return [words["about_1"], words["about_2"], words["about_3"], boundaries, words["about_5"]]


def _footer(films: "Sequence[Timeline]", words: Words, *, with_frames: bool) -> list[str]:
    """List the page's software, licence, citation, and the digests of its sources."""
    record: FilmRecord = films[0].record
    lines = [words["frames" if with_frames else "no_frames"]]
    lines.append(words.say("made", version=record.versions.get("obygaze", "?"), number=record.number))
    models = {model.sha256 or model.key: model for film in films for model in film.record.models}
    for model in models.values():
        parts = [f"{model.title} ({model.key}), {model.task_title}."]
        if model.licence not in {"", NO_LICENCE}:
            parts.append(words.say("licence", licence=model.licence))
        if model.citation:
            parts.append(words.say("cite", citation=model.citation))
        lines.append(" ".join(parts))
    digests = [f"{model.key} {model.sha256[:12]}" for model in models.values() if model.sha256]
    digests += [f"{film.record.store.name} {film.record.store.fingerprint[:12]}" for film in films]
    lines.append(f"{words['digests']}: {', '.join(digests)}.")
    return lines


WIDEST: Final = 160
"""Maximum width of a picture in pixels."""

MOST_BYTES: Final = 1 << 18
"""Of a picture's file, all of which gets into the page."""

KINDS: Final = {".jpg": "jpeg", ".jpeg": "jpeg", ".png": "png"}


def read_stills(folder: Path, movie: str) -> dict[int, str]:
    """Read the pictures of a film's segments from `folder/MOVIE/RANK.jpg` (or .png).

    Returns
    -------
    dict of int to str
        Data URLs by rank of the segment.

    Raises
    ------
    FilmError
        The folder is missing, or a file is wider than `WIDEST` or not a picture; names the file.
    """
    from PIL import Image  # noqa: PLC0415 - an extra

    movie_folder = folder / file_name(movie)  # a stranger's film may have the name of any folder
    if not movie_folder.is_dir():
        raise FilmError(
            f"{movie_folder}: no such folder of pictures: expected RANK.jpg or RANK.png of each segment in it"
        )
    pictures = {}
    for path in sorted(movie_folder.iterdir()):
        kind = KINDS.get(path.suffix.lower())
        if kind is None or not path.stem.isdecimal():
            continue
        try:
            content = read_bytes(path, MOST_BYTES, within=folder)
            with Image.open(BytesIO(content), formats=[kind]) as picture:
                width = picture.width
        except InputError:
            raise FilmError(
                f"{path}: lies elsewhere, or is larger than a picture of {WIDEST} pixels"
            ) from None
        except (OSError, Image.DecompressionBombError):
            raise FilmError(f"{path}: not a {kind.upper()} picture") from None
        if width > WIDEST:
            raise FilmError(f"{path}: {width} pixels wide: make it at most {WIDEST}")
        pictures[int(path.stem)] = f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
    if not pictures:
        raise FilmError(f"{movie_folder}: no picture named by a segment's rank, such as 1.jpg")
    return pictures
