"""Write the page of compared films: groups with their intervals, and thin timelines by year."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from obygaze_film.claims import phrases
from obygaze_film.claims.kinds import ExpectedShare, GroupChange, GroupShare, JudgedShare
from obygaze_film.claims.of_groups import compared_share, expected_share_of, group_claims
from obygaze_film.claims.words import Words
from obygaze_film.film_groups import ALL, ComparedFilm, FilmComparison
from obygaze_film.group_report import notes_of_shares
from obygaze_film.page import charts
from obygaze_film.page.figures import axis_end, years_figure, years_legend
from obygaze_film.page.html import template_page

NOTES_OF_WINDOWS: Final = ("note_windows", "note_windows_concept")
"""Notes on a column that the page has not: it says of each film how many windows were judged."""


class GroupRow(NamedTuple):
    """A row of the table of groups, as texts; `claim` has the numbers.

    Attributes
    ----------
    claim : GroupShare
    name : str
        Name of the group.
    bar : dict or None
        The group's share with its interval as a bar (`charts.bar`); None if it has none.
    share : str
        Its mean share, corrected by judgements.
    worth : str
        How many films of equal weight its mean is worth.
    expected : str
        The share that the model expects.
    reason : str
        Why it has no share; empty if it has one.
    note : str
    """

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
    """A film with its share as text, and a note on where the share comes from."""

    film: ComparedFilm
    share: str
    note: str


def comparison_page(
    compared: FilmComparison, addresses: Mapping[str, str] | None = None, language: str = "en"
) -> str:
    """Write compared films as one HTML page.

    Parameters
    ----------
    compared : FilmComparison
        Its films are in the order of year and title, never of their rates.
    addresses : mapping, optional
        Movie -> address of the film's own page, to which its title links.
    language : str
    """
    addresses, words = addresses or {}, Words(language)
    n_films = words.counted("count_films", len(compared.films))
    highest = compared.groups["high"].max() if len(compared.groups) else np.nan
    scale = axis_end(highest)
    claims = group_claims(compared)
    styles = ["film", "figures"]
    if addresses:
        styles.append("desk")
    figure_file = years_figure(compared, words, is_own_file=True)
    return template_page(
        "compare.html.j2",
        words,
        styles,
        title=n_films
        if compared.by == ALL
        else words.say("films_by", films=n_films, by=_by(compared, words)),
        by=_by(compared, words),
        addresses=addresses,
        compared=compared,
        heading=_heading(compared, words),
        groups=[_group_row(claim, scale, words) for claim in claims if isinstance(claim, GroupShare)],
        changes=[_change_row(claim, words) for claim in claims if isinstance(claim, GroupChange)],
        films=[_film_row(film, compared, words) for film in compared.films],
        alone=_uncorrected_heading(compared, words),
        notes=_notes(compared),
        scale=scale,
        figure=years_figure(compared, words),
        legend=years_legend(compared, words),
        file=b64encode(figure_file.encode()).decode(),
        sentence=phrases.groups_sentence(claims, words),
    )


def _heading(compared: FilmComparison, words: Words) -> str:
    """Return the heading of the table of groups, with the column that they are made by.

    The column is left out if its name only says "group", in the language of the page.
    """
    if compared.by == ALL:
        return words["all_films"]
    groups = words["groups"]
    plural = groups.casefold()
    singular = plural.removesuffix("s")
    if compared.by.casefold() in {plural, singular}:
        return groups
    return words.say("groups_by", by=_by(compared, words))


def _by(compared: FilmComparison, words: Words) -> str:
    """Name the column that groups are made by; those that films have without a table have a translation."""
    key = f"column_{compared.by}"
    return words[key] if key in words else str(words.translated(compared.by))


def _group_row(claim: GroupShare, scale: float, words: Words) -> GroupRow:
    """Write what is claimed of a group of films as a row of the table; the bar's axis ends at `scale`."""
    bar = None
    if claim.number is not None and claim.interval is not None:
        bar = charts.bar(claim.number, claim.interval.low, claim.interval.high, scale)
    return GroupRow(
        claim,
        name=words.translated(claim.group),
        bar=bar,
        share=phrases.group_value(claim, words),
        worth=phrases.worth_value(claim),
        expected=phrases.group_expected(claim, words),
        reason=words.translated(claim.reason),
        note=words.translated(claim.note),
    )


def _change_row(claim: GroupChange, words: Words) -> ChangeRow:
    """Write a difference between groups, or a trend, as a row of the table."""
    return ChangeRow(
        name=words.translated(claim.change),
        n_judged=claim.n_judged,
        points=phrases.points_value(claim, words),
        note=words.translated(claim.reason or claim.note),
    )


def _uncorrected_heading(compared: FilmComparison, words: Words) -> str:
    """Return the heading of the column of shares before judgements correct them.

    They are the shares that the model expects, or those of labels that were given in place of a model.
    """
    if compared.is_of_labels:
        return words.say("labels_alone", who=words.judge(compared.model))
    return words["model_alone"]


def _notes(compared: FilmComparison) -> list[str]:
    """List the notes on how to read the numbers, then those on what was left out."""
    notes = [note for note in notes_of_shares(compared) if note.key not in NOTES_OF_WINDOWS]
    return [*notes, *compared.notes]


def _film_row(film: ComparedFilm, compared: FilmComparison, words: Words) -> FilmRow:
    """Write a film's share with its note.

    If the film was judged but on too few windows for a share, the note says how many. If the model has no
    share of a judged film, it says why.
    """
    claim = compared_share(film, compared)
    note = phrases.film_share_note(claim, words)
    share_alone = expected_share_of(film, compared)
    if isinstance(claim, JudgedShare) and share_alone.number is None:
        reason = phrases.no_share_phrase(share_alone, words)
        note = f"{note}{words['semicolon']}{words.say('without_share_alone', reason=reason)}"
    counts = film.counts
    has_judged_share = film.sample.n > 0
    if counts is not None and counts.judged and not has_judged_share and isinstance(claim, ExpectedShare):
        note = phrases.few_windows_note(claim, counts, words)
    return FilmRow(film, phrases.film_share_value(claim, words), note)
