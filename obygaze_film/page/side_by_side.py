"""Write the page of compared films: groups with their intervals, and thin timelines by year."""

from base64 import b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from obygaze_features.manifest import counted
from obygaze_film.film_groups import ALL, FilmComparison
from obygaze_film.page import charts
from obygaze_film.page.cards import NONE, bar
from obygaze_film.page.figures import SCALES, years_figure
from obygaze_film.page.phrases import LATER, Words, compared_sentence
from obygaze_models.report import asset, page

if TYPE_CHECKING:
    from obygaze_film.film_groups import ComparedFilm


def comparison_page(
    compared: FilmComparison, addresses: Mapping[str, str] | None = None, language: str = "en"
) -> str:
    """Write compared films as one HTML page; films stand by year and title, never by rate.

    `addresses` of films' own pages, by movie, make their titles links.
    """
    addresses, words = addresses or {}, Words(language)
    title = words.say("films_by", films=counted(len(compared.films), "film"), by=compared.by)
    title = title if compared.by != ALL else counted(len(compared.films), "film")
    highest = compared.groups["high"].max() if len(compared.groups) else np.nan
    scale = next((limit for limit in SCALES if highest <= limit), 1.0)
    groups = []
    for row in compared.groups.to_dict("records"):
        ends = (row["value"], row["low"], row["high"])
        is_known = not np.isnan(row["value"])
        share, dots = (_share(words, *ends), bar(*ends, scale)) if is_known else (NONE, None)
        worth = NONE if np.isnan(row["worth"]) else f"{row['worth']:.0f}"
        expected = words.share(row["expected"])
        reason = words.again(row["reason"])
        groups.append(
            {**row, "reason": reason, "share": share, "bar": dots, "expected": expected, "worth": worth}
        )
    return page(
        "compare.html.j2",
        "".join(
            asset(f"{name}.css", "obygaze_film.page")
            for name in ("film", "compare", "figures", *["desk"] * bool(addresses))
        ),
        package="obygaze_film.page",
        title=title,
        language=language,
        w=words,
        desks=bool(addresses),
        compared=compared,
        groups=groups,
        ends=(words.share(0), words.share(scale)),
        figure=years_figure(compared, words),
        file=b64encode(years_figure(compared, words, alone=True).encode()).decode(),
        changes=[_change(row, words) for row in compared.changes.to_dict("records")],
        films=[
            {**_film(film, compared.model, words), "address": addresses.get(film.timeline.movie)}
            for film in compared.films
        ],
        sentence=compared_sentence(compared, words),
        notes=[words["note_share"], words["note_worth"], *map(words.again, compared.notes)],
        charts=charts,
    )


def _change(row: Mapping[Any, Any], words: Words) -> dict[str, Any]:
    name = words["later_name"] if row["change"] == LATER else row["change"]
    notes = {key: words.again(row[key]) for key in ("reason", "note")}
    return {**row, **notes, "change": name, "points": NONE if np.isnan(row["value"]) else words.points(row)}


def _film(film: "ComparedFilm", model: str, words: Words) -> dict[str, Any]:
    """Draw a film's timeline, and write its share: judged, or the model's alone."""
    rows, rate = film.timeline.rows(model), film.rate
    starts, ends, p = (rows[name].to_numpy(dtype=np.float64) for name in ("start_s", "end_s", "p"))
    share = _share(words, rate.value, rate.low, rate.high) if rate else words.share(film.sample.expected)
    return {
        "year": film.facts["year"] or NONE,
        "title": film.facts["title"],
        "group": film.group,
        "whole_s": film.timeline.record.duration_s,
        "paths": charts.strip(starts, ends, p),
        "share": share,
        "windows": rate.n if rate else 0,
    }


def _share(words: Words, value: float, low: float, high: float) -> str:
    return f"{words.share(value)} [{words.share(low)}–{words.share(high)}]"
