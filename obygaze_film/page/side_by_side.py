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
"""Keys of notes on the column of judged windows, which a printed table has and the page has not."""


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
    """A row of the table of differences and trends, as texts; `points` is in percentage points."""

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
        One of `claims.LANGUAGES`.

    Returns
    -------
    str
        The page as HTML.
    """
    addresses = addresses or {}
    words = Words(language)
    claims = group_claims(compared)

    # All bars of the groups have one axis, which ends above the highest interval.
    highest = compared.groups["high"].max() if len(compared.groups) else np.nan
    bars_end = axis_end(highest)

    styles = ["film", "figures"]
    if addresses:
        styles.append("desk")  # for the navigation to the films' pages

    # The figure is in the page as a part of it, and once more as a file that the reader can save.
    figure_file = years_figure(compared, words, is_own_file=True)

    return template_page(
        "compare.html.j2",
        words,
        styles,
        title=_page_title(compared, words),
        sentence=phrases.groups_sentence(claims, words),
        addresses=addresses,
        compared=compared,
        # The tables of groups and of changes
        heading=_heading_of_groups(compared, words),
        by=_name_of_column(compared, words),
        groups=[_group_row(claim, bars_end, words) for claim in claims if isinstance(claim, GroupShare)],
        scale=bars_end,
        alone=_uncorrected_heading(compared, words),
        changes=[_change_row(claim, words) for claim in claims if isinstance(claim, GroupChange)],
        # The figure of years
        figure=years_figure(compared, words),
        legend=years_legend(compared, words),
        file=b64encode(figure_file.encode()).decode(),
        # The films, and how to read the page
        films=[_film_row(film, compared, words) for film in compared.films],
        notes=_notes(compared),
    )


def _page_title(compared: FilmComparison, words: Words) -> str:
    """Return the title of the page: the number of films, and the column by which they are grouped."""
    n_films = words.counted("count_films", len(compared.films))
    if compared.by == ALL:
        return n_films
    return words.say("films_by", films=n_films, by=_name_of_column(compared, words))


def _heading_of_groups(compared: FilmComparison, words: Words) -> str:
    """Return the heading of the table of groups, such as "Groups by decade".

    A column that is called "group" or "groups", in the language of the page, is not named: the heading is
    "Groups", not "Groups by group".
    """
    if compared.by == ALL:
        return words["all_films"]
    heading = words["groups"]
    plural = heading.casefold()
    singular = plural.removesuffix("s")  # right in all languages of the page
    if compared.by.casefold() in {plural, singular}:
        return heading
    return words.say("groups_by", by=_name_of_column(compared, words))


def _name_of_column(compared: FilmComparison, words: Words) -> str:
    """Name the column by which films are grouped, in the language of the page (`words`).

    Built-in columns, such as the decade, have translations; a column of the user's table has its own name.
    """
    key = f"column_{compared.by}"
    return words[key] if key in words else str(words.translated(compared.by))


def _group_row(claim: GroupShare, bars_end: float, words: Words) -> GroupRow:
    """Write what is claimed of a group of films as a row of the table, in the language of `words`.

    The axis of the bar goes from a share of 0 to `bars_end`, which is the same for all rows.
    """
    bar = None
    if claim.number is not None and claim.interval is not None:
        bar = charts.bar(claim.number, claim.interval.low, claim.interval.high, bars_end)
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
    """Write a difference between two groups, or a trend, as a row of the table of changes.

    The note says why there is no estimate, if there is none, or else what the estimate rests on.
    """
    return ChangeRow(
        name=words.translated(claim.change),
        n_judged=claim.n_judged,
        points=phrases.points_value(claim, words),
        note=words.translated(claim.reason or claim.note),
    )


def _uncorrected_heading(compared: FilmComparison, words: Words) -> str:
    """Return the heading of the column of shares before judgements correct them.

    A comparison of labels, which has no model, names who labelled the films.
    """
    if compared.is_of_labels:
        return words.say("labels_alone", who=words.judge(compared.model))
    return words["model_alone"]


def _notes(compared: FilmComparison) -> list[str]:
    """List the notes on how to read the numbers, then those on what was left out.

    Notes on the column of judged windows are for the printed table alone: the page has no such column.
    """
    reading_notes = [note for note in notes_of_shares(compared) if note.key not in NOTES_OF_WINDOWS]
    return [*reading_notes, *compared.notes]


def _film_row(film: ComparedFilm, compared: FilmComparison, words: Words) -> FilmRow:
    """Write a film's row in the table of films: its share, and a note on where the share comes from."""
    claim = compared_share(film, compared)
    value = phrases.film_share_value(claim, words)
    return FilmRow(film, value, _film_note(film, claim, compared, words))


def _film_note(
    film: ComparedFilm, claim: JudgedShare | ExpectedShare, compared: FilmComparison, words: Words
) -> str:
    """Write where a film's share comes from: from people's judgements, or from the model alone.

    `claim` says what the share is, and which of the two it is. `words` has the texts of the page's language.
    """
    if isinstance(claim, ExpectedShare):
        counts = film.counts
        has_judged_share = film.sample.n > 0
        # It was judged on too few windows for a share: the note says on how many.
        if counts is not None and counts.judged and not has_judged_share:
            return phrases.few_windows_note(claim, counts, words)
        return phrases.film_share_note(claim, words)

    note = phrases.film_share_note(claim, words)
    # Without the judgements the model may have no share of this film: the note says why.
    share_of_model_alone = expected_share_of(film, compared)
    if share_of_model_alone.number is None:
        reason = phrases.no_share_phrase(share_of_model_alone, words)
        note += words["semicolon"] + words.say("without_share_alone", reason=reason)
    return note
