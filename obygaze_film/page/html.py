"""Write the page of scored films as one HTML file; no frame of a film is in it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from obygaze_features.arguments import checked
from obygaze_features.io import local_path, refuse_existing, write_whole
from obygaze_film.claims import phrases
from obygaze_film.claims.words import Words, clock
from obygaze_film.judged_rate import FilmRates
from obygaze_film.page import charts
from obygaze_film.page.view import FilmView
from obygaze_models.report import asset, json_data, page

if TYPE_CHECKING:
    from obygaze_film.timeline import Timeline

SCRIPT: Final = ("decimal", "hundredth", "probability_low", "probability_band")
"""Texts that the page's script shows."""

Rates = Mapping[str, Sequence[FilmRates]]
"""Rates corrected by judgements, by movie."""


def template_page(template: str, words: Words, styles: Iterable[str], script: str = "", **values: Any) -> str:
    """Fill a template of this package in a language, with style sheets of it."""
    style = "".join(asset(f"{name}.css", "obygaze_film.page") for name in styles)
    values |= {"package": "obygaze_film.page", "language": words.language, "w": words}
    return page(template, style, script, charts=charts, clock=clock, **values)


@checked
def film_page(
    films: "Sequence[Timeline]",
    *,
    top: int = 20,
    language: str = "en",
    rates: Rates | None = None,
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
        One of `claims.LANGUAGES`.
    rates : mapping, optional
        Rates corrected by judgements (`read_rates`), by movie.
    """
    words = Words(language)
    ordered = sorted(films, key=lambda film: (film.record.year or 9999, film.record.title, film.movie))
    views = [
        FilmView(film, f"f{number}", words, top=top, rates=(rates or {}).get(film.movie, ()))
        for number, film in enumerate(ordered, start=1)
    ]
    models = {model.sha256 or model.key: model for film in ordered for model in film.record.models}
    alone = len(views) == 1
    return template_page(
        "film.html.j2",
        words,
        ["film"],
        _joined("time.js", "drawing.js", "timeline.js"),
        title=views[0].heading if alone else words.say("films_title", n=len(views)),
        depth=2 if alone else 3,
        films=views,
        models=models.values(),
        boundaries=_boundaries(views, words),
        texts=json_data({name: words[name] for name in SCRIPT}),
    )


def _boundaries(views: Sequence[FilmView], words: Words) -> str:
    """Say how sharp the ends of passages are, beside what is known of experts."""
    for view in views:
        if view.experts is not None:
            return phrases.boundaries_sentence(view.experts, words)
    return words["about_4_unknown"]


def _joined(*modules: str) -> str:
    """Join modules of the script to one that imports nothing: a mailed page has no other file."""
    text = "".join(asset(name, "obygaze_film.page") for name in modules)
    return re.sub("^import .*\n|^export ", "", text, flags=re.MULTILINE)


@checked
def write_film_page(
    films: "Sequence[Timeline]",
    path: str | Path,
    *,
    force: bool = False,
    top: int = 20,
    language: str = "en",
    rates: Rates | None = None,
) -> None:
    """Write the page of scored films into a file; options as of `film_page`.

    Raises
    ------
    OutputError
        The file exists, and `force` is not given.
    """
    path = local_path(path)
    refuse_existing(path, force=force)
    text = film_page(films, top=top, language=language, rates=rates)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)
