"""Write the page of compared films: groups with their intervals, and thin timelines by year."""

from base64 import b64encode
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from obygaze_film.claims import phrases
from obygaze_film.claims.kinds import ExpectedShare, GroupChange, GroupShare
from obygaze_film.claims.of_groups import compared_share, group_claims
from obygaze_film.claims.words import Words
from obygaze_film.film_groups import ALL, ComparedFilm, FilmComparison
from obygaze_film.group_report import notes_of_shares
from obygaze_film.page import charts
from obygaze_film.page.figures import scale_of, years_figure, years_legend
from obygaze_film.page.html import template_page


class GroupRow(NamedTuple):
    """A row of the table of groups; `bar` is None where the group has no share, and `reason` says why."""

    claim: GroupShare
    name: str
    bar: dict[str, str] | None
    share: str
    worth: str
    expected: str
    reason: str
    note: str


class ChangeRow(NamedTuple):
    """A row of the table of differences and trends."""

    name: str
    n_judged: int
    points: str
    note: str


class FilmRow(NamedTuple):
    """A film with its share, and from what it is."""

    film: ComparedFilm
    share: str
    note: str


def comparison_page(
    compared: FilmComparison, addresses: Mapping[str, str] | None = None, language: str = "en"
) -> str:
    """Write compared films as one HTML page; films stand by year and title, never by rate.

    `addresses` of films' own pages, by movie, make their titles links.
    """
    addresses, words = addresses or {}, Words(language)
    n_films = words.counted("count_films", len(compared.films))
    highest = compared.groups["high"].max() if len(compared.groups) else np.nan
    scale = scale_of(highest)
    claims = group_claims(compared)
    styles = ["film", "figures"]
    if addresses:
        styles.append("desk")
    return template_page(
        "compare.html.j2",
        words,
        styles,
        title=n_films if compared.by == ALL else words.say("films_by", films=n_films, by=compared.by),
        addresses=addresses,
        compared=compared,
        heading=_heading(compared, words),
        groups=[_group_row(claim, scale, words) for claim in claims if isinstance(claim, GroupShare)],
        changes=[_change_row(claim, words) for claim in claims if isinstance(claim, GroupChange)],
        films=[_film_row(film, compared, words) for film in compared.films],
        alone=_alone(compared, words),
        notes=_notes(compared),
        scale=scale,
        figure=years_figure(compared, words),
        legend=years_legend(compared, words),
        file=b64encode(years_figure(compared, words, alone=True).encode()).decode(),
        sentence=phrases.groups_sentence(claims, words),
    )


def _heading(compared: FilmComparison, words: Words) -> str:
    """Head the table of groups: by which column they are, unless that says no more than the word group."""
    if compared.by == ALL:
        return words["all_films"]
    groups = words["groups"]
    if compared.by.casefold() in {groups.casefold(), groups.casefold().removesuffix("s")}:
        return groups
    return words.say("groups_by", by=compared.by)


def _group_row(claim: GroupShare, scale: float, words: Words) -> GroupRow:
    """Write what is claimed of a group of films as a row of the table, with a bar up to `scale`."""
    bar = None
    if claim.number is not None and claim.interval is not None:
        bar = charts.bar(claim.number, claim.interval.low, claim.interval.high, scale)
    return GroupRow(
        claim,
        name=words.again(claim.group),
        bar=bar,
        share=phrases.group_value(claim, words),
        worth=phrases.worth_value(claim),
        expected=phrases.group_expected(claim, words),
        reason=words.again(claim.reason),
        note=words.again(claim.note),
    )


def _change_row(claim: GroupChange, words: Words) -> ChangeRow:
    note = words.again(claim.reason or claim.note)
    return ChangeRow(words.again(claim.change), claim.n_judged, phrases.points_value(claim, words), note)


def _alone(compared: FilmComparison, words: Words) -> str:
    """Head the column of shares that need no judge: the model's, or those of labels in its place."""
    if compared.is_of_labels:
        return words.say("labels_alone", who=words.judge(compared.model))
    return words["model_alone"]


def _notes(compared: FilmComparison) -> list[str]:
    """Say how the numbers are to be read, then what was left out."""
    return [*notes_of_shares(compared), *compared.notes]


def _film_row(film: ComparedFilm, compared: FilmComparison, words: Words) -> FilmRow:
    claim = compared_share(film, compared)
    note = phrases.film_share_note(claim, words)
    has_few = film.counts is not None and film.counts.judged and not film.sample.n
    if has_few and film.counts is not None and isinstance(claim, ExpectedShare):
        note = phrases.few_windows_note(claim, film.counts.judged, film.counts.sure, words)
    return FilmRow(film, phrases.film_share_value(claim, words), note)
