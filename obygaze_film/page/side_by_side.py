"""Write the page of compared films: groups with their intervals, and thin timelines by year."""

from base64 import b64encode
from collections.abc import Mapping

import numpy as np

from obygaze_features.manifest import counted
from obygaze_film.film_groups import ALL, FilmComparison
from obygaze_film.page.figures import scale_of, years_figure
from obygaze_film.page.html import template_page
from obygaze_film.page.phrases import Words, compared_sentence


def comparison_page(
    compared: FilmComparison, addresses: Mapping[str, str] | None = None, language: str = "en"
) -> str:
    """Write compared films as one HTML page; films stand by year and title, never by rate.

    `addresses` of films' own pages, by movie, make their titles links.
    """
    addresses, words, films = addresses or {}, Words(language), counted(len(compared.films), "film")
    return template_page(
        "compare.html.j2",
        words,
        ("film", "figures", *["desk"] * bool(addresses)),
        title=films if compared.by == ALL else words.say("films_by", films=films, by=compared.by),
        addresses=addresses,
        compared=compared,
        scale=scale_of(compared.groups["high"].max() if len(compared.groups) else np.nan),
        figure=years_figure(compared, words),
        file=b64encode(years_figure(compared, words, alone=True).encode()).decode(),
        sentence=compared_sentence(compared, words),
    )
