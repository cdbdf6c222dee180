"""Groups of scored films: too few judged films are refused; films that cannot be compared are named."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec import structs

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Manifest, read_manifest, write_manifest
from obygaze_film import compare_films
from obygaze_film.cells import cells_of
from obygaze_film.claims import Words, group_claims
from obygaze_film.claims.of_groups import compared_share
from obygaze_film.commands.film_open import years_of
from obygaze_film.comparison import estimate_groups
from obygaze_film.errors import FilmError
from obygaze_film.film_groups import (
    ALL,
    FEW_FILMS,
    _advice,
    _n_needed_without_model,
    _step,
    _year,
    read_facts,
)
from obygaze_film.group_report import comparison_report, notes_of_shares
from obygaze_film.judged_rate import correct_rates
from obygaze_film.judged_windows import needed_windows
from obygaze_film.page import side_by_side
from obygaze_film.scored_files import write_films
from obygaze_film.windows_to_judge import choose_next
from tests.command import obygaze
from tests.film.page.invented import fake_scored_film
from tests.film.saying import sentence_on_groups

# --- scored films
# ---------------------------------------------------------------------------
N_FILMS, N_JUDGED = 14, 11

MORE_THAN_ALL_WINDOWS = 10**6
"""So many windows are asked for to get all that films have."""


@pytest.fixture(scope="module")
def fourteen_films():
    """Films tt00 to tt13 of 1995 to 2008: five of the 1990s and nine of the 2000s."""
    return [
        fake_scored_film(f"tt{n:02}", f"Film {n}", year=1995 + n, n_rows=60, duration_s=1500, seed=n)
        for n in range(N_FILMS)
    ]


def number_of(clip):
    """Return the number of a window's film: 3 of tt03."""
    return int(clip.movie.removeprefix("tt"))


def judged_by_ab(clip):
    """Let AB call the first windows of a draw S, the more the later the film: one of tt00, four of tt10."""
    n_positive = 1 + number_of(clip) // 3
    level = "S" if int(clip.extras["place"]) <= n_positive else "HN"
    return replace(clip, level=level, annotator="AB")


@pytest.fixture(scope="module")
def judgements_of_eleven_films(fourteen_films):
    """AB's judgements of ten windows of each of the first eleven films, tt00 to tt10."""
    windows = choose_next(fourteen_films[:N_JUDGED], 10, blind=True)
    return Manifest(tuple(judged_by_ab(clip) for clip in windows), Path())


@pytest.fixture(scope="module")
def compared_as_one_group(fourteen_films, judgements_of_eleven_films):
    """The films compared as one group."""
    return compare_films(fourteen_films, judgements_of_eleven_films)


@pytest.fixture(scope="module")
def compared_by_decade(fourteen_films, judgements_of_eleven_films):
    """The films compared by decade, with the trend along their years."""
    return compare_films(fourteen_films, judgements_of_eleven_films, by="decade", trend="year")


@pytest.mark.parametrize(
    ("language", "beginning", "reason"),
    [
        ("en", "tt00: left out 1 judgement", "drawn after place 11, which is not judged"),
        ("fr", "tt00 : 1 jugement hors du compte", "tiré après place 11, qui n’est pas jugé"),
    ],
)
def test_a_judgement_after_a_gap_in_the_draw_is_left_out_and_counted(
    fourteen_films, language, beginning, reason
):
    """AB judged all but the eleventh of twelve windows drawn of the film tt00: the twelfth does not count.

    A judge might skip windows that are hard, and what remains would be no random draw. A note says that one
    judgement is left out, and why.
    """
    twelve_windows = choose_next(fourteen_films[:1], 12, blind=True)
    judgements = [judged_by_ab(window) for window in twelve_windows if window.extras["place"] != "11"]

    comparison = compare_films(fourteen_films, Manifest(tuple(judgements), Path()))

    (note,) = [note for note in comparison.notes if "drawn after" in note]
    note_in_language = Words(language).translated(note)
    assert note_in_language.startswith(beginning)
    assert reason in note_in_language


def test_a_comparison_says_that_not_all_pairs_of_many_judges_were_compared(fourteen_films):
    """Fifteen judges are 105 pairs, of which 100 are drawn: the film's own rate has the same note."""
    windows = choose_next(fourteen_films[:1], 10, blind=True)
    clips = []
    for number in range(15):
        judge = f"J{number}"
        clips += [
            replace(clip, clip_id=f"{judge}-{clip.clip_id}", level="S", annotator=judge) for clip in windows
        ]
    judgements = Manifest(tuple(clips), Path())

    (note,) = [note for note in correct_rates(fourteen_films[0], judgements).notices if "105 pairs" in note]

    assert note in compare_films(fourteen_films[:1], judgements).notes


@pytest.mark.parametrize("judge", ["Doe, Jane", ""], ids=["a name with a comma", "no name"])
def test_the_claim_on_a_group_has_the_same_judge_as_the_claims_on_its_films(fourteen_films, judge):
    """One person judged ten windows of each of five films, which are compared as one group.

    The claims hold the name as it is in the judgements: one name even if it has a comma, and "" if there is
    none. Only sentences put words for a judge without a name.
    """
    judged = [
        replace(clip, level="HN", annotator=judge) for clip in choose_next(fourteen_films[:5], 10, blind=True)
    ]

    compared = compare_films(fourteen_films[:5], Manifest(tuple(judged), Path()))

    share_of_group, *_ = group_claims(compared)
    assert share_of_group.who == (judge,)
    assert share_of_group.who == compared_share(compared.films[0], compared).who


@pytest.mark.parametrize(
    ("unsure_place", "has_unsure"),
    [pytest.param("13", False, id="after the gap"), pytest.param("3", True, id="before the gap")],
)
def test_a_group_has_unsure_windows_only_if_one_comes_before_the_gap_in_its_films_draw(
    fourteen_films, unsure_place, has_unsure
):
    """Of the first film AB judged places 1 to 11 and 13 of the draw, and was not sure (NS) of one of them.

    The missing place 12 is a gap, and what comes after it counts in no share. Unsure of place 3, AB leaves a
    part of what counts unsaid, and the group has unsure windows; unsure of place 13, nothing that counts is
    missing. Of the four other films ten windows were judged surely each.
    """
    first_film, *others = fourteen_films[:5]
    clips = []
    for clip in choose_next([first_film], 13, blind=True):
        if clip.extras["place"] != "12":
            level = "NS" if clip.extras["place"] == unsure_place else "HN"
            clips.append(replace(clip, level=level, annotator="AB"))
    of_others = [replace(clip, level="HN", annotator="AB") for clip in choose_next(others, 10, blind=True)]

    compared = compare_films([first_film, *others], Manifest((*clips, *of_others), Path()))

    assert compared.groups["has_unsure"].tolist() == [has_unsure]


@pytest.mark.long
def test_groups_of_scored_films_have_shares_with_intervals(compared_by_decade):
    """Films are of 1995 to 2008. Five are of the 1990s, all judged, and nine of the 2000s, of which six are.

    AB judged ten windows of each.
    """
    nineties, noughties = compared_by_decade.groups.to_dict("records")

    assert nineties["group"] == "1990s"
    assert nineties["n_films"] == 5
    assert nineties["n_judged"] == 5
    assert nineties["n_windows"] == 50
    assert nineties["low"] < nineties["value"] < nineties["high"]

    assert noughties["group"] == "2000s"
    assert noughties["n_films"] == 9
    assert noughties["n_judged"] == 6
    assert noughties["n_windows"] == 60
    assert noughties["low"] < noughties["value"] < noughties["high"]


@pytest.mark.long
def test_groups_of_scored_films_have_a_difference_and_a_trend(compared_by_decade):
    """AB calls more windows positive the later the film is, so that the 1990s have less than the 2000s.

    The difference is that of the 1990s minus the 2000s; the trend is by ten years.
    """
    difference, trend = compared_by_decade.changes.to_dict("records")
    assert difference["low"] < difference["value"] < 0
    assert 0 < trend["value"] < trend["high"]


@pytest.mark.long
def test_compared_films_are_in_the_order_of_their_years(compared_by_decade):
    """14 films are compared, one of each year from 1995 to 2008."""
    years_of_films = [film.facts["year"] for film in compared_by_decade.films]
    assert years_of_films == [str(year) for year in range(1995, 2009)]


@pytest.mark.long
def test_a_group_says_how_many_windows_its_judgements_are_worth(compared_by_decade):
    """`worth` is how many judged windows would be needed without the model for as narrow an interval.

    An estimate has a factor, `sample_size_ratio`: `worth` is the group's windows times it. Where the factor
    is 1 or less, the model does not help, and there is no number. Five films are of the 1990s, the others of
    the 2000s.
    """
    samples = [film.sample for film in compared_by_decade.films]
    of_nineties, of_noughties = samples[:5], samples[5:]

    estimates = estimate_groups([of_nineties, of_noughties])

    for group, estimate in zip(compared_by_decade.groups.itertuples(), estimates, strict=True):
        if estimate.sample_size_ratio > 1:
            assert group.worth == pytest.approx(group.n_windows * estimate.sample_size_ratio)
        else:
            assert np.isnan(group.worth)


@pytest.mark.long
def test_what_the_model_expects_of_a_film_does_not_depend_on_judgements(
    fourteen_films, judgements_of_eleven_films, compared_as_one_group
):
    """AB judged ten windows of each of eleven films, the third as S or HN.

    If AB is not sure of the third (NS), the judgements are others, and what the model expects is the same.
    """
    clips = [
        replace(clip, level="NS") if clip.extras["place"] == "3" else clip
        for clip in judgements_of_eleven_films
    ]
    unsure_of_the_third = judgements_of_eleven_films.with_clips(clips)

    compared = compare_films(fourteen_films, unsure_of_the_third)

    expected_if_sure = [film.expected for film in compared_as_one_group.films]
    assert [film.expected for film in compared.films] == expected_if_sure


def headings_of(comparison):
    """Return the headings of each table of a report, by the table's title."""
    return {block.title: list(block.headers) for block in comparison_report(comparison).blocks}


@pytest.mark.long
def test_a_report_says_by_what_films_are_grouped(compared_by_decade, compared_as_one_group):
    """Films are grouped by decade, or not at all: then all are in the group `ALL`."""
    assert compared_by_decade.by == "decade"
    assert "by decade" in comparison_report(compared_by_decade).title
    assert "decade" in headings_of(compared_by_decade)["Films"]

    assert compared_as_one_group.by == ALL
    assert " by " not in comparison_report(compared_as_one_group).title
    assert ALL not in headings_of(compared_as_one_group)["Films"]


@pytest.mark.long
def test_a_report_has_no_empty_columns_of_reasons_and_notes(compared_by_decade):
    """The table of changes has columns for why there is no number ("none") and for notes on a number.

    Of these films each change has a number and none a note: both columns would be empty, and are left out.
    """
    headings = headings_of(compared_by_decade)["Changes"]
    assert "none" not in headings
    assert "note" not in headings


@pytest.mark.long
def test_rows_of_a_reports_data_have_numbers_of_their_own(compared_by_decade):
    """The data of a report are those of several tables in one: their rows are numbered throughout."""
    assert comparison_report(compared_by_decade).data.index.is_unique


@pytest.mark.long
def test_the_order_of_films_and_judgements_changes_no_share(
    fourteen_films, judgements_of_eleven_films, compared_by_decade
):
    """The films are compared by decade, and once more with films and judgements in reverse."""
    judgements_reversed = Manifest(judgements_of_eleven_films.clips[::-1], Path())
    of_reversed = compare_films(fourteen_films[::-1], judgements_reversed, by="decade", trend="year")
    assert of_reversed.groups.equals(compared_by_decade.groups)


@pytest.fixture(scope="module")
def with_one_positive_film_of_the_nineties(fourteen_films, judgements_of_eleven_films):
    """Of the 1990s only tt02 has positive windows, of the 2000s tt05, tt06 and tt07."""
    positive = {"tt02", "tt05", "tt06", "tt07"}
    clips = [
        clip if clip.movie in positive else replace(clip, level="HN") for clip in judgements_of_eleven_films
    ]
    comparison = compare_films(fourteen_films, Manifest(tuple(clips), Path()), by="decade", trend="year")
    assert comparison.groups["group"].tolist() == ["1990s", "2000s"]
    return comparison


@pytest.mark.parametrize(("language", "note"), [("en", "rests on 1 film"), ("fr", "repose sur 1 film")])
def test_a_group_with_one_positive_film_has_a_note_on_it(
    with_one_positive_film_of_the_nineties, language, note
):
    """All positive windows of the 1990s are of one film: their share says little of the other films.

    Sentence, page and report have a note on it beside the 1990s, which they name before the 2000s. Of these
    three films have positive windows, and there is no note.
    """
    compared = with_one_positive_film_of_the_nineties
    note_on_nineties, note_on_noughties = compared.groups["note"]
    assert Words(language).translated(note_on_nineties) == note
    assert note_on_noughties == ""

    sentence = sentence_on_groups(compared, language)
    page = side_by_side.comparison_page(compared, language=language)
    report = comparison_report(compared)

    assert sentence.count(f"({note})") == 1
    assert sentence.index(f"({note})") < sentence.index("2000")
    assert page.count(f"<small>{note}</small>") == 1
    assert "rests on 1 film" in str(report.blocks[0])


def test_a_note_explains_changes_if_the_comparison_shows_some(with_one_positive_film_of_the_nineties):
    """Films are compared by decade. The difference of two decades' shares and the trend are changes.

    A note ("note_changes") explains how they are estimated.
    """
    compared = with_one_positive_film_of_the_nineties
    assert compared.changes["value"].notna().any()
    assert "note_changes" in {note.key for note in notes_of_shares(compared)}


@pytest.mark.parametrize(
    "removed",
    [
        pytest.param(lambda changes: changes.iloc[:0], id="the table of changes has no row"),
        pytest.param(lambda changes: changes.assign(value=np.nan), id="no change has a value"),
    ],
)
def test_no_note_explains_changes_if_the_comparison_shows_none(
    with_one_positive_film_of_the_nineties, removed
):
    """Changes are the difference of two decades' shares and the trend of shares along the films' years.

    A note ("note_changes") explains how they are estimated. The comparison loses its two changes, or their
    values: then that note is missing, and no other speaks of a trend.
    """
    compared = with_one_positive_film_of_the_nineties
    notes = notes_of_shares(replace(compared, changes=removed(compared.changes)))
    assert "note_changes" not in {note.key for note in notes}
    assert "trend" not in " ".join(notes)


def test_a_group_of_too_few_judged_films_names_films_to_judge(fourteen_films, judgements_of_eleven_films):
    """Fourteen films, tt00 to tt13, are compared by decade; the nine from tt05 on are of the 2000s.

    The judgements are of tt00 to tt07, so that of the 2000s tt05, tt06 and tt07 are judged. A group's share
    needs five films: its reason names two more to judge, of tt08 to tt13.
    """
    eight_judged = judgements_of_eleven_films.with_clips(
        clip for clip in judgements_of_eleven_films if clip.movie < "tt08"
    )
    compared = compare_films(fourteen_films, eight_judged, by="decade", trend="year")

    _nineties, noughties = compared.groups.to_dict("records")
    assert noughties["n_judged"] == 3
    assert np.isnan(noughties["value"])
    films_to_judge = [film.movie for film in fourteen_films if film.movie in noughties["reason"]]
    assert len(films_to_judge) == 2
    for movie in films_to_judge:
        assert movie >= "tt08"


def test_a_trend_of_too_few_judged_films_is_refused(fourteen_films, judgements_of_eleven_films):
    """Eight of fourteen films are judged, tt00 to tt07. A trend needs ten: it has a reason, and no value."""
    eight_judged = judgements_of_eleven_films.with_clips(
        clip for clip in judgements_of_eleven_films if clip.movie < "tt08"
    )
    compared = compare_films(fourteen_films, eight_judged, by="decade", trend="year")
    trend = compared.changes.iloc[-1]
    assert np.isnan(trend["value"])
    assert "a trend needs 10 films" in trend["reason"]


@pytest.mark.parametrize(
    ("language", "needed", "hidden"),
    [
        ("en", "a rate needs 5 films", "of 14 films here 14 have judgements that are hidden"),
        ("fr", "un taux demande 5 films", "sur 14 films ici, 14 ont des jugements cachés"),
    ],
)
def test_a_group_with_hidden_judgements_names_no_film_to_judge(
    fourteen_films, judgements_of_eleven_films, language, needed, hidden
):
    """Whoever judges blindly does not see others' judgements: here those of all 14 films are hidden.

    The films have no rate, as none is seen to be judged. But they may be judged enough, and so the reason
    says how many have hidden judgements, and asks nobody to judge one of them.
    """
    names_of_films = [film.movie for film in fourteen_films]
    no_judgements = judgements_of_eleven_films.with_clips([])

    comparison = compare_films(fourteen_films, no_judgements, hidden=names_of_films)

    (reason,) = comparison.groups["reason"]
    reason_in_language = Words(language).translated(reason)
    assert needed in reason_in_language
    assert hidden in reason_in_language
    for name in names_of_films:
        assert name not in reason_in_language


def notes_on_shares(comparison):
    """Return the notes of a report on how shares of groups are estimated."""
    beginning = "share of a group: estimated from its films together"
    return [note for note in comparison_report(comparison).notes if note.startswith(beginning)]


def test_a_comparison_without_judgements_has_no_share(fourteen_films):
    """A share of a group rests on judgements, and nobody has judged a film: nothing explains shares."""
    nothing_judged = Manifest((), Path())
    comparison = compare_films(fourteen_films, nothing_judged)
    assert comparison.groups["value"].isna().all()
    assert len(comparison.changes) == 0
    assert "%" not in sentence_on_groups(comparison)
    assert notes_on_shares(comparison) == []


def test_a_comparison_with_judgements_has_a_share_and_says_how_it_is_estimated(compared_as_one_group):
    """Films are compared as one group, eleven of which AB judged: the sentence has a share, as "30%"."""
    assert "%" in sentence_on_groups(compared_as_one_group)
    assert len(notes_on_shares(compared_as_one_group)) == 1


@pytest.mark.long
def test_a_film_with_nine_judged_windows_counts_as_not_judged(fourteen_films, judgements_of_eleven_films):
    """AB judged ten windows of eleven films, five of the 1990s and six of the 2000s, but nine of tt00.

    A share needs ten, so that four films of the 1990s count. A note on tt00 says how many are needed, in the
    words that the command `film rate` and the desk have.
    """
    with_nine_of_tt00 = judgements_of_eleven_films.with_clips(
        clip for clip in judgements_of_eleven_films if (clip.movie, clip.extras["place"]) != ("tt00", "10")
    )

    comparison = compare_films(fourteen_films, with_nine_of_tt00, by="decade")

    assert comparison.groups["n_judged"].tolist() == [4, 6]
    (note_on_tt00,) = [note for note in comparison.notes if "tt00" in note]
    n_windows_of_tt00 = int((cells_of(fourteen_films[0]).content_s > 0).sum())
    ten_are_needed = needed_windows(judged=9, left=n_windows_of_tt00 - 9, minimum=10)
    french = Words("fr")
    assert ten_are_needed in note_on_tt00
    assert french.translated(ten_are_needed) in french.translated(note_on_tt00)


def test_two_films_whose_names_differ_by_capitals_are_refused(fourteen_films, judgements_of_eleven_films):
    """The names tt00 and TT00 may be of one film, which would be counted twice."""
    tt00_in_capitals = fake_scored_film("TT00", year=1990, n_rows=60, duration_s=1500)
    with pytest.raises(FilmError, match="TT00"):
        compare_films([*fourteen_films, tt00_in_capitals], judgements_of_eleven_films)


def test_two_films_of_one_video_are_refused(fourteen_films, judgements_of_eleven_films):
    """Films that were scored from one file, called by two names, have the same digest of it."""
    digest = "a" * 64
    of_one_video = [
        replace(film, record=structs.replace(film.record, source_sha256=digest))
        for film in fourteen_films[:2]
    ]
    with pytest.raises(FilmError, match="one video"):
        compare_films([*of_one_video, *fourteen_films[2:]], judgements_of_eleven_films)


def by_ab_and_one_by_cd_under_another_definition(judgements_of_eleven_films, *, seen_score):
    """Let AB's judgements name one definition, and add one by CD that names another one.

    CD's is of the first window. It is blind if `seen_score` is "0", and in sight of the score if it is "1".
    """
    by_ab = [
        replace(clip, extras=clip.extras | {"definition": "a" * 64}) for clip in judgements_of_eleven_films
    ]
    extras_by_cd = by_ab[0].extras | {"definition": "b" * 64, "seen_score": seen_score}
    by_cd = replace(by_ab[0], annotator="CD", extras=extras_by_cd)
    return judgements_of_eleven_films.with_clips([*by_ab, by_cd])


@pytest.mark.long
def test_a_judgement_in_sight_under_another_definition_changes_no_share_of_compared_films(
    fourteen_films, judgements_of_eleven_films, compared_as_one_group
):
    """AB judged blindly under one definition, and CD one window in sight of the score under another one.

    Only blind judgements count in shares, so that films are compared as if CD had judged nothing.
    """
    judgements = by_ab_and_one_by_cd_under_another_definition(judgements_of_eleven_films, seen_score="1")
    compared = compare_films(fourteen_films, judgements)
    assert compared.groups["value"].tolist() == compared_as_one_group.groups["value"].tolist()


def test_films_that_were_judged_blindly_under_two_definitions_are_not_compared(
    fourteen_films, judgements_of_eleven_films
):
    """AB judged under one definition, and CD one window under another one: their shares mean two things."""
    judgements = by_ab_and_one_by_cd_under_another_definition(judgements_of_eleven_films, seen_score="0")
    with pytest.raises(ManifestError, match="what a label means was changed"):
        compare_films(fourteen_films, judgements)


def test_films_that_cannot_be_grouped_are_left_out_and_named(fourteen_films, judgements_of_eleven_films):
    """Films are compared by genre. The model was trained on tt99, and the genre of tt03 is empty.

    Notes name both. tt04, too, is left out, as no row of the table of genres is on it; no note here names it,
    as whoever reads that table does.
    """
    trained_on = fake_scored_film("tt99", year=1990, n_rows=60, duration_s=1500, trained_on=True)
    facts = {film.movie: {"genre": "drama"} for film in [*fourteen_films, trained_on] if film.movie != "tt04"}
    facts["tt03"]["genre"] = ""
    comparison = compare_films([*fourteen_films, trained_on], judgements_of_eleven_films, facts, by="genre")
    compared = {film.timeline.movie for film in comparison.films}

    assert compared.isdisjoint({"tt99", "tt03", "tt04"})
    for movie in ("tt99", "tt03"):
        assert any(movie in note for note in comparison.notes)


def facts_with_budgets(films):
    """Give each film its number as its budget; that of tt03 is not known."""
    facts = {film.movie: {"budget": str(int(film.movie.removeprefix("tt")))} for film in films}
    facts["tt03"]["budget"] = ""
    return facts


@pytest.fixture(scope="module")
def compared_along_budgets(fourteen_films, judgements_of_eleven_films):
    """The films compared as one group, with the trend along their budgets; that of tt03 is not known."""
    return compare_films(
        fourteen_films, judgements_of_eleven_films, facts_with_budgets(fourteen_films), trend="budget"
    )


@pytest.mark.long
def test_trends_along_years_and_along_budgets_that_rise_alike_are_nearly_the_same(
    compared_along_budgets, compared_by_decade
):
    """From film to film the year rises by one, from 1995, and the budget by one, from 0.

    Each trend is the change of the share per ten, of years or of budget. They differ a little (`rel`), as the
    trend along budgets is without tt03, whose budget is not known.
    """
    (by_budget,) = compared_along_budgets.changes.to_dict("records")
    _difference_of_decades, by_year = compared_by_decade.changes.to_dict("records")
    assert by_budget["change"] == "budget + 10"
    assert by_year["change"] == "10 years later"
    assert by_year["value"] == pytest.approx(by_budget["value"], rel=0.2)


@pytest.mark.long
def test_a_film_without_the_number_of_a_trend_is_named_and_counts_in_its_group(compared_along_budgets):
    """The budget of tt03 is not known: a note says that the trend is without it; the group has all 14 films.

    The budget of tt02 is known, and no note names it.
    """
    assert compared_along_budgets.groups["n_films"].tolist() == [14]
    assert any("tt03" in note for note in compared_along_budgets.notes)
    assert not any("tt02" in note for note in compared_along_budgets.notes)


def test_the_same_year_in_a_record_and_in_the_users_table_is_one_year(fourteen_films):
    """The desk counts the years of films, as it offers a trend only if there are three different ones.

    The table has no year of a film whose record says 1996 (a number), and 1996 (a text) for a film whose
    record has none: they are of one year.
    """
    of_1996 = fourteen_films[1]
    of_no_year = replace(of_1996, record=structs.replace(of_1996.record, movie="other", year=None))
    table = {of_1996.movie: {"title": "Film 1"}, "other": {"title": "Other", "year": "1996"}}

    assert years_of([of_1996, of_no_year], facts=table) == {"1996"}
    assert years_of([of_1996, of_no_year], facts=None) == {"1996"}


def test_a_film_with_an_unreadable_year_has_no_decade(fourteen_films, judgements_of_eleven_films):
    """20010 and 1995-6 may be misprints: a film in a wrong decade would be worse than one in none."""
    facts = {"tt00": {"year": "20010"}, "tt01": {"year": "1995-6"}}
    comparison = compare_films(fourteen_films, judgements_of_eleven_films, facts, by="decade")
    assert any("tt00, tt01" in note for note in comparison.notes)


def test_films_of_two_models_are_refused(fourteen_films, judgements_of_eleven_films):
    """Shares that two models corrected are not comparable."""
    record = fourteen_films[0].record
    another_model = structs.replace(record.models[0], sha256="0" * 64)
    other = replace(fourteen_films[0], record=structs.replace(record, movie="x", models=[another_model]))
    with pytest.raises(FilmError, match="model"):
        compare_films([*fourteen_films, other], judgements_of_eleven_films)


@pytest.mark.parametrize(
    ("options", "column"),
    [({"by": "author"}, "author"), ({"trend": "title"}, "title")],
    ids=["that no table has", "a trend along no numbers"],
)
def test_a_column_that_films_cannot_be_compared_by_is_refused(
    fourteen_films, judgements_of_eleven_films, options, column
):
    """Films have a year and a title, and no author; titles are no numbers. The message names the column."""
    with pytest.raises(FilmError, match=column):
        compare_films(fourteen_films, judgements_of_eleven_films, **options)


UNREADABLE_YEARS = (
    "1960-09-08", "c. 1960", "1960 (US)", '"1,960"', "1960/61", "1960\u201361", "9/8/1960", "1960?", "'1960",
    "MCMLX", "60", "n/a", "1960.5", "inf",
)  # fmt: skip


def test_a_table_of_films_is_matched_by_title(fourteen_films, tmp_path):
    """The table has a row for Film 1 (tt01), and one of no scored film.

    The notes name it, and films without a row.
    """
    path = tmp_path / "films.csv"
    path.write_text("title;genre\nFilm 1;drama\nElsewhere;comedy\n", encoding="utf-8")

    facts, (note_on_rows, note_on_films, *_) = read_facts(path, fourteen_films)

    assert list(facts) == ["tt01"]
    assert facts["tt01"]["genre"] == "drama"
    assert "Elsewhere" in note_on_rows  # a row of no film
    assert "tt02" in note_on_films  # a film without a row


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("name,genre\na,b\n", ManifestError, id="no column movie"),
        pytest.param("movie,genre\ntt01\n", ManifestError, id="a row with a cell too few"),
        pytest.param("movie,genre\ntt01,dra\x1bma\n", ManifestError, id="a control character in a cell"),
        pytest.param("movie,genre\ntt09,\u202edrama\n", ManifestError, id="a sign that reverses text"),
        pytest.param("movie,ge\x07nre\ntt01,drama\n", ManifestError, id="a control character in a heading"),
        pytest.param("movie,genre\ntt01,a\ntt01,b\n", FilmError, id="two rows on one film"),
    ],
)
def test_a_table_of_films_that_cannot_be_read_is_refused(fourteen_films, tmp_path, text, error):
    """The films tt00 to tt13 are scored, and a table is to give their genres.

    What is wrong in any table is a ManifestError; two rows that say two things of one film are a FilmError.
    """
    (tmp_path / "films.csv").write_text(text, encoding="utf-8")
    with pytest.raises(error):
        read_facts(tmp_path / "films.csv", fourteen_films)


@pytest.mark.parametrize("year", UNREADABLE_YEARS)
def test_an_ambiguous_year_is_refused(fourteen_films, tmp_path, year):
    """By its year a row is matched to a film of its title: what is no plain year is refused, as "c. 1960"."""
    (tmp_path / "films.csv").write_text(f"title,year\nFilm 1,{year}\n", encoding="utf-8")
    with pytest.raises(FilmError):
        read_facts(tmp_path / "films.csv", fourteen_films)


@pytest.fixture
def psycho(fourteen_films):
    """A scored film, tt02, called Psycho, of 1998."""
    record = structs.replace(fourteen_films[2].record, title="Psycho", year=1998)
    return replace(fourteen_films[2], record=record)


def read_table(folder, text, film):
    """Read a table for one scored film: the facts of each film that has a row, and the notes."""
    path = folder / "films.csv"
    path.write_text(text, encoding="utf-8")
    facts, notes = read_facts(path, [film])
    return facts, "".join(notes)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("movie,year\nPsycho,1998\n", id="in a column movie"),
        pytest.param("title,year\nPsycho,1998.0\n", id="a year as a data frame writes it"),
        pytest.param("title,year\nPsycho,\uff11\uff19\uff19\uff18\n", id="a year in wide digits"),
        pytest.param("My films,,\n\nTitle,Year,note\nPSYCHO,1998,x\n", id="capitals, below a heading"),
        pytest.param("title;year;votes;sound\nPsycho;1998;1.234,5;5.1\n", id="semicolons"),
    ],
)
def test_a_row_is_matched_by_title_and_year_in_many_forms(psycho, tmp_path, text):
    """The only scored film is Psycho of 1998, the id of which is tt02."""
    facts, _ = read_table(tmp_path, text, psycho)
    assert list(facts) == ["tt02"]
    assert facts["tt02"]["year"] == "1998"


def test_a_table_with_semicolons_has_decimal_commas(psycho, tmp_path):
    """Spreadsheets that write 1.234,5 for 1234.5 separate cells by semicolons. Psycho is the film tt02."""
    text = "title;year;votes;sound\nPsycho;1998;1.234,5;5.1\n"

    facts, _notes = read_table(tmp_path, text, psycho)

    assert facts["tt02"]["votes"] == "1234.5"


@pytest.mark.parametrize(
    ("text", "note"),
    [
        pytest.param(
            "title,year\nPsycho,1960\n",
            "Psycho (1960) (did you mean 'Psycho (1998)'?)",
            id="the title with another year",
        ),
        pytest.param("movie,year\nPsycho,1960\n", "Psycho (1960)", id="another year, in a column movie"),
        pytest.param(
            "title,year\nPsycho (1998),1960\n", "Psycho (1960)", id="two years, of which the column counts"
        ),
        pytest.param("movie,year\nTT2x,1998\n", "did you mean 'tt02'", id="a misspelled id"),
    ],
)
def test_a_row_of_another_film_is_not_matched_but_named(psycho, tmp_path, text, note):
    """The only scored film is Psycho of 1998, the id of which is tt02: that of 1960 is another film."""
    facts, notes = read_table(tmp_path, text, psycho)
    assert facts == {}
    assert note in notes


def test_two_rows_of_a_film_that_is_not_scored_are_no_mistake_and_both_are_noted(psycho, tmp_path):
    """The table has a film called 2, and twice Déjà vu: with whole letters, and with letters and accents.

    The only scored film is Psycho, of which two rows would be refused. Here no row is matched, and a note
    counts and names all three.
    """
    whole_letters = "D\u00e9j\u00e0 vu"
    letters_and_accents = "De\u0301ja\u0300 vu"

    facts, notes = read_table(tmp_path, f"title\n2\n{whole_letters}\n{letters_and_accents}\n", psycho)

    assert facts == {}
    assert "films of films.csv not scored: 3 (2, " in notes
    assert notes.count(" vu") == 2


@pytest.mark.parametrize(
    ("text", "matched_year", "note"),
    [
        pytest.param(
            "title,year\nPsycho,1960\nPsycho,1997\n",
            "1997",
            "Psycho (1960)",
            id="a year off by one, where no row has the film's year",
        ),
        pytest.param(
            "title,note\nPsycho (1998),x\nPsycho (1960),y\n",
            None,  # the table has no column of years
            "Psycho (1960)",
            id="years behind titles",
        ),
        pytest.param(
            "title,year\nPsycho,1998\nFargo,\\N\nLost,2010\u20132012\n",
            "1998",
            "Fargo, Lost",
            id="other rows without a year or with two",
        ),
    ],
)
def test_of_several_rows_that_of_the_films_year_is_matched(psycho, tmp_path, text, matched_year, note):
    """The only scored film is Psycho (1998), tt02. Tables have several rows, and notes name those of others.

    If no row of the title has the film's year, one with a year off by one is matched.
    """
    facts, notes = read_table(tmp_path, text, psycho)

    assert [*facts] == ["tt02"]
    assert facts["tt02"].get("year") == matched_year
    assert note in notes


def test_a_table_without_years_is_matched_by_title_alone(psycho, tmp_path):
    """`release_year` is not read as the year, so that 1960 does not exclude the film of 1998."""
    facts, notes = read_table(tmp_path, "title,release_year\nPsycho,1960\n", psycho)
    assert [*facts] == ["tt02"]
    assert "title alone" in notes


@pytest.mark.long
def test_of_5000_films_that_are_not_scored_a_few_are_named(psycho, tmp_path):
    """The note has their number and some names, and stays short enough to be read."""
    others = "".join(f"Psycho {number},1998\n" for number in range(5000))
    facts, note = read_table(tmp_path, f"title,year\n{others}Psycho,1998\n", psycho)
    assert [*facts] == ["tt02"]
    assert "5000" in note
    assert len(note) < 5000
    assert "did you mean" not in note  # the only scored film has its row


@pytest.mark.long
def test_cells_that_look_alike_are_one_group(fourteen_films, judgements_of_eleven_films):
    """An accented letter may be one character or two, and spaces around a cell do not show: one group.

    Films have four such spellings of one genre in turn.
    """
    spellings = ["Com\u00e9die", "Come\u0301die", "Com\u00e9die \n", "  Com\u00e9die"]
    facts = {film.movie: {"genre": spellings[number % 4]} for number, film in enumerate(fourteen_films)}
    comparison = compare_films(fourteen_films, judgements_of_eleven_films, facts, by="genre")
    assert comparison.groups["group"].tolist() == ["Com\u00e9die"]


@pytest.mark.long
def test_cells_that_differ_by_capitals_are_two_groups_and_named(fourteen_films, judgements_of_eleven_films):
    """The first film is of the genre "comédie", all others of "Comédie": this may be a slip."""
    facts = {film.movie: {"genre": "Com\u00e9die"} for film in fourteen_films}
    facts["tt00"]["genre"] = "com\u00e9die"
    comparison = compare_films(fourteen_films, judgements_of_eleven_films, facts, by="genre")
    assert len(comparison.groups) == 2
    assert any("Com\u00e9die" in note and "com\u00e9die" in note for note in comparison.notes)


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e300", "19x0", "0,5"])
def test_what_is_no_number_of_a_trend_is_refused(fourteen_films, judgements_of_eleven_films, text):
    """The first film's cell is no finite number: leaving it out silently would change the trend."""
    facts = {film.movie: {"x": "1"} for film in fourteen_films}
    facts["tt00"]["x"] = text
    with pytest.raises(FilmError, match=f"column x: '{text}'"):
        compare_films(fourteen_films, judgements_of_eleven_films, facts, trend="x")


def test_films_that_are_judged_and_not_scored_are_named(fourteen_films, judgements_of_eleven_films):
    """The name tt01x is like tt01, which is scored and has no judgements: it may be meant."""
    clips = [
        replace(clip, movie="tt01x") if clip.movie == "tt01" else clip for clip in judgements_of_eleven_films
    ]
    comparison = compare_films(fourteen_films, judgements_of_eleven_films.with_clips(clips))
    notes = [note for note in comparison.notes if "(tt01x (did you mean 'tt01'?))" in note]
    assert len(notes) == 1


@pytest.mark.long
def test_judgements_may_spell_a_films_id_without_zeros(
    fourteen_films, judgements_of_eleven_films, compared_as_one_group
):
    """The id 3 is that of the film tt03: judgements of it count as before."""
    spelled = judgements_of_eleven_films.with_clips(
        replace(clip, movie=clip.movie.removeprefix("tt0")) for clip in judgements_of_eleven_films
    )
    assert compare_films(fourteen_films, spelled).groups.equals(compared_as_one_group.groups)


def test_film_compare_exits_with_3_if_a_table_has_none_of_the_films(fourteen_films, tmp_path, monkeypatch):
    """Exit code 3 is that of a command that left something out."""
    monkeypatch.chdir(tmp_path)
    write_films(fourteen_films[:2], "scored")
    Path("films.csv").write_text("movie,genre\nelsewhere,a\n", "utf-8")
    assert obygaze("film", "compare", "scored", "--films", "films.csv", "--by", "genre") == 3


BY_GENRE_AND_YEAR = (
    *("film", "compare", "scored", "--films", "films.csv"),
    *("--by", "genre", "--trend", "year"),
)
"""A command, to be run in the folder of `scored_and_judged`."""


@pytest.fixture
def scored_and_judged(fourteen_films, judgements_of_eleven_films, tmp_path, monkeypatch):
    """Change to a folder with the scored films, judgements beside each judged one, and a table of genres.

    Every other film is of genre a, the others of genre b.
    """
    monkeypatch.chdir(tmp_path)
    write_films(fourteen_films, "scored")
    for film in fourteen_films[:N_JUDGED]:
        clips_of_film = tuple(clip for clip in judgements_of_eleven_films if clip.movie == film.movie)
        write_manifest(
            replace(judgements_of_eleven_films, clips=clips_of_film),
            Path("scored", film.movie, "judgements.csv"),
        )
    lines = ["movie,genre"]
    for number, film in enumerate(fourteen_films):
        genre = "a" if number % 2 == 0 else "b"
        lines.append(f"{film.movie},{genre}")
    Path("films.csv").write_text("\n".join([*lines, ""]), "utf-8")
    return "scored"


@pytest.mark.long
@pytest.mark.usefixtures("scored_and_judged")
def test_the_command_writes_the_same_page_tables_and_figure_again_only_with_force():
    """The command compares the scored films by genre and year. Exit code 1: it did not write over files."""
    command = (*BY_GENRE_AND_YEAR, "--html", "page.html", "--out", "tables")
    paths = [Path("page.html"), Path("tables/film-compare.csv"), Path("tables/years.svg")]

    assert obygaze(*command) == 0
    first_bytes = [path.read_bytes() for path in paths]

    assert obygaze(*command) == 1
    assert obygaze(*command, "--force") == 0
    assert [path.read_bytes() for path in paths] == first_bytes


@pytest.mark.long
@pytest.mark.usefixtures("scored_and_judged")
def test_the_commands_page_has_a_row_for_each_film_by_year(fourteen_films):
    """All 14 films are on it, in the order of their years."""
    assert obygaze(*BY_GENRE_AND_YEAR, "--html", "page.html") == 0
    page = Path("page.html").read_text("utf-8")
    assert page.count('class="row film"') == N_FILMS
    places = [page.index(f"{film.record.year} {film.record.title}<") for film in fourteen_films]
    assert places == sorted(places)


@pytest.fixture
def options_of_judgements(scored_and_judged, fourteen_films):
    """Move judgements from beside their films into the folder; return the options that name their files."""
    options = []
    for film in fourteen_films[:N_JUDGED]:
        Path(scored_and_judged, film.movie, "judgements.csv").rename(f"{film.movie}.csv")
        options += ["--judged", f"{film.movie}.csv"]
    return options


@pytest.mark.long
def test_the_command_reads_the_files_of_judgements_that_options_name(options_of_judgements, capsys):
    """Judgements of eleven films are in files of their own, tt00.csv to tt10.csv, and not beside the films.

    Without the options the command finds no judgement, and so has nothing to compare: exit code 3. With
    `--judged FILE` for each of them it writes the page, into folders that it makes, and says where. It only
    reads the files: tt00.csv still has its ten judgements.
    """
    nothing_to_compare = 3
    assert obygaze("film", "compare", "scored", "--json") == nothing_to_compare

    page = Path("new/folder/page.html")
    assert obygaze(*BY_GENRE_AND_YEAR, *options_of_judgements, "--html", str(page)) == 0
    assert page.is_file()
    assert str(page) in capsys.readouterr().err
    judgements_of_tt00 = read_manifest(Path("tt00.csv")).clips
    assert len(judgements_of_tt00) == 10


def by_nobody_in_the_nineties_and_cd_later(judgements_of_eleven_films):
    """Name nobody as who judged films of the 1990s, tt00 to tt04, and CD as who judged the later ones."""
    clips = []
    for clip in judgements_of_eleven_films:
        is_of_the_nineties = number_of(clip) < 5
        clips.append(replace(clip, annotator="" if is_of_the_nineties else "CD"))
    return Manifest(tuple(clips), Path())


@pytest.fixture(scope="module")
def compared_by_decade_of_different_judges(fourteen_films, judgements_of_eleven_films):
    """A comparison by decade. Who judged films of the 1990s gave no name; CD judged those of the 2000s."""
    judgements = by_nobody_in_the_nineties_and_cd_later(judgements_of_eleven_films)
    return compare_films(fourteen_films, judgements, by="decade", trend="year")


@pytest.mark.long
def test_groups_of_different_judges_have_no_difference(compared_by_decade_of_different_judges):
    """The 1990s were judged by one person, without a name, and the 2000s by CD.

    A difference may be one of judges, and is refused. The trend accounts for who judged, and is not.
    """
    why_no_difference, why_no_trend = compared_by_decade_of_different_judges.changes["reason"]
    assert why_no_difference != ""
    assert why_no_trend == ""


@pytest.mark.long
def test_groups_of_different_judges_keep_their_shares_and_name_their_judges(
    compared_by_decade, compared_by_decade_of_different_judges
):
    """The 1990s were judged by one person, without a name, and the 2000s by CD.

    Their judgements are those that AB alone gave in the other comparison.
    """
    assert compared_by_decade_of_different_judges.groups["judges"].tolist() == [
        "a judge without a name",
        "CD",
    ]
    assert (
        compared_by_decade_of_different_judges.groups["value"].tolist()
        == compared_by_decade.groups["value"].tolist()
    )
    assert "CD" in sentence_on_groups(compared_by_decade_of_different_judges)


@pytest.mark.long
def test_groups_of_one_judge_have_a_difference_and_a_trend(compared_by_decade):
    """AB judged the films of both decades, so that their shares can be compared.

    Neither the difference of the decades nor the trend is refused: no change has a reason.
    """
    assert compared_by_decade.groups["judges"].tolist() == ["AB", "AB"]
    assert compared_by_decade.changes["reason"].tolist() == ["", ""]
    assert sentence_on_groups(compared_by_decade).startswith("AB ")


@pytest.mark.long
def test_the_page_has_the_share_and_the_interval_of_every_group(compared_by_decade):
    """Groups are the 1990s and the 2000s. A share stands in a cell as 30% [20%–42%]."""
    words = Words("en")
    groups = compared_by_decade.groups.itertuples()
    expected = [
        (words.share(group.value), words.share(group.low), words.share(group.high)) for group in groups
    ]

    page = side_by_side.comparison_page(compared_by_decade)

    assert re.findall(r'class="n">([^–<]+) \[([^<]+)–([^<]+)\]<', page) == expected
    assert "1990s minus 2000s" in page


@pytest.mark.long
def test_the_french_page_of_decades_has_no_english_words(compared_by_decade):
    """English words that the page might have are "minus", "model", and decades as "1990s".

    The difference of two decades is called "les années 1990 moins les années 2000".
    """
    page = side_by_side.comparison_page(compared_by_decade, language="fr")
    _head, body = page.split("<body", 1)
    text = re.sub("<[^>]*>", " ", body)
    assert "les années 1990 moins les années 2000" in page
    assert "minus" not in page
    assert re.findall(r"\d0s\b|\bmodel\b", text) == []


@pytest.mark.long
def test_the_french_page_of_one_group_has_no_english_name_for_it(compared_as_one_group):
    """Films are compared as one group, whose name in English is "all films"."""
    page = side_by_side.comparison_page(compared_as_one_group, language="fr")
    assert "all films" not in page


@pytest.mark.long
@pytest.mark.parametrize(
    ("language", "column", "heading"),
    [
        ("en", "decade", "Groups by decade"),
        ("en", "group", "Groups"),  # not "Groups by group"
        ("fr", "Groupes", "Groupes"),
    ],
)
def test_the_heading_names_the_column_that_films_are_grouped_by(
    compared_by_decade, language, column, heading
):
    """Films are grouped by a column of the user's table, and the heading is "Groups by COLUMN".

    A column may itself be called "group", or "Groupes" in a French table: then the word stands once.
    """
    comparison = replace(compared_by_decade, by=column)
    assert f"<h2>{heading}</h2>" in side_by_side.comparison_page(comparison, language=language)


def test_the_expected_share_of_a_group_is_a_mean_of_known_shares():
    """Of the films a, b and c the second is wholly unlike training: the model expects nothing of it.

    Its row on the page has no number.
    """
    film_a = fake_scored_film("a", n_rows=60, duration_s=1500, seed=0)
    unlike = fake_scored_film("b", year=1991, unlike_parts=((0.0, 1.0),), n_rows=60, duration_s=1500)
    film_c = fake_scored_film("c", n_rows=60, duration_s=1500, seed=1)
    nobody_judged = Manifest((), Path())

    compared = compare_films([film_a, unlike, film_c], nobody_judged)

    expected = {film.timeline.movie: film.expected for film in compared.films}
    assert np.isnan(expected["b"])
    assert compared.groups["expected"].item() == pytest.approx((expected["a"] + expected["c"]) / 2)
    page = side_by_side.comparison_page(compared)
    assert page.count('class="row film"') == 3
    assert "nan" not in page.lower()
    assert np.isnan(compare_films([unlike], nobody_judged).groups["expected"].item())


def test_the_claim_on_an_unjudged_film_by_a_machines_labels_has_neither_interval_nor_errors_of_the_model(
    fourteen_films,
):
    """Nobody judged the films. The labels of a machine, vlm, take the model's place and call all windows S.

    So vlm says that the whole film is positive. The model's interval, its error in films left out and the
    clips on which that was measured say nothing of vlm.
    """
    two_films = fourteen_films[:2]
    all_windows = choose_next(two_films, MORE_THAN_ALL_WINDOWS, blind=True)
    labels = [replace(clip, level="S", annotator="vlm") for clip in all_windows]
    compared = compare_films(two_films, Manifest((), Path()), labels=Manifest(tuple(labels), Path()))

    claim = compared_share(compared.films[0], compared)

    assert claim.who == ("vlm",)
    assert claim.number == 1.0
    assert claim.interval is None
    assert claim.error is None
    assert claim.clips == {}


@pytest.mark.long
def test_a_machines_labels_can_take_the_models_place(fourteen_films, judgements_of_eleven_films):
    """A program, vlm, labelled all windows of the 14 films and called two of three S.

    Labels correct the shares as a model's probabilities do: the comparison names vlm as its model, and its
    page has a row for each film.
    """
    all_windows = choose_next(fourteen_films, MORE_THAN_ALL_WINDOWS, blind=True)
    labels = [
        replace(clip, level="HN" if index % 3 == 0 else "S", annotator="vlm")
        for index, clip in enumerate(all_windows)
    ]
    comparison = compare_films(
        fourteen_films, judgements_of_eleven_films, labels=Manifest(tuple(labels), Path())
    )

    assert comparison.model == "vlm"
    n_rows_of_films = side_by_side.comparison_page(comparison).count('class="row film"')
    assert n_rows_of_films == len(fourteen_films)


@pytest.mark.long
def test_a_group_of_films_is_of_mixed_judges_if_its_films_have_different_judges(
    fourteen_films, judgements_of_eleven_films, compared_as_one_group, compared_by_decade_of_different_judges
):
    """One person, without a name, judged the films of the 1990s, and CD those of the 2000s.

    All films as one group have mixed judges: neither person would mark that share, and it must not be called
    one that they would mark. Each decade by itself has one judge; so has the group if AB judged all films.
    """
    judgements = by_nobody_in_the_nineties_and_cd_later(judgements_of_eleven_films)
    compared_by_two_judges = compare_films(fourteen_films, judgements)

    assert compared_by_two_judges.groups["is_mixed"].tolist() == [True]
    assert compared_by_decade_of_different_judges.groups["is_mixed"].tolist() == [False, False]
    assert compared_as_one_group.groups["is_mixed"].tolist() == [False]


@pytest.mark.long
def test_the_report_has_the_share_of_each_film_with_its_interval(compared_by_decade):
    """Ten windows of the first eleven films are judged. The other three films have no share."""
    of_films = comparison_report(compared_by_decade).data.dropna(subset=["movie"]).set_index("movie")

    for film in compared_by_decade.films:
        row = of_films.loc[film.timeline.movie]
        if film.rate is None:
            assert row[["value", "low", "high"]].isna().all()
        else:
            assert tuple(row[["value", "low", "high"]]) == (film.rate.value, film.rate.low, film.rate.high)
    assert sum(film.rate is not None for film in compared_by_decade.films) == N_JUDGED


@pytest.mark.parametrize(
    ("n_positive_films", "is_noted"), [(1, True), (FEW_FILMS - 1, True), (FEW_FILMS, False)]
)
def test_a_trend_that_rests_on_few_films_has_a_note_on_it(
    fourteen_films, judgements_of_eleven_films, n_positive_films, is_noted
):
    """Of eleven judged films only the first have positive windows, and all others have none (HN).

    A trend along the films' years is then that of these few. If they are fewer than three (`FEW_FILMS`), it
    has a note with their number.
    """
    clips = []
    for clip in judgements_of_eleven_films:
        may_be_positive = number_of(clip) < n_positive_films
        clips.append(clip if may_be_positive else replace(clip, level="HN"))

    compared = compare_films(fourteen_films, Manifest(tuple(clips), Path()), trend="year")

    (trend,) = compared.changes.to_dict("records")
    assert trend["reason"] == ""
    assert (trend["note"] != "") == is_noted
    assert (str(n_positive_films) in trend["note"]) == is_noted


@pytest.mark.parametrize(
    ("text", "year"),
    [
        ("1869", np.nan),
        ("1870", 1870),
        ("2100", 2100),
        ("2101", np.nan),
        ("1999.5", np.nan),
        ("soon", np.nan),
        ("", np.nan),
    ],
)
def test_a_year_in_a_row_counts_if_a_film_can_be_of_it(text, year):
    """Of films of one title the year tells which one is meant: by no year all are, by a wrong one none is."""
    assert _year(SimpleNamespace(cells={"year": text})) == pytest.approx(year, nan_ok=True)


@pytest.mark.parametrize(
    ("values_of_films", "step"),
    [
        pytest.param([], 1, id="no film"),
        pytest.param([5.0], 1, id="one film"),
        pytest.param([5.0, 5.0], 1, id="all films have one value"),
        pytest.param([0.0, 0.02], 0.01, id="a range of .02"),
        pytest.param([1.0, 10.9], 1, id="a range of 9.9"),
        pytest.param([0.0, 10.0], 10, id="a range of 10"),
    ],
)
def test_the_step_of_a_trend_is_the_largest_power_of_ten_within_the_range(values_of_films, step):
    """A trend says by how much the share changes in a step of a number that each film has, such as its votes.

    The step fits the number's range: .01, .1, 1, 10, ... Without a range it is 1.
    """
    assert _step(np.array(values_of_films)) == pytest.approx(step)


@pytest.mark.parametrize(
    ("ratio", "n_needed"),
    [
        pytest.param(np.nan, np.nan, id="unknown"),
        pytest.param(0.9, np.nan, id="9, fewer than were judged"),
        pytest.param(1.04, np.nan, id="10.4, printed as the 10 that were judged"),
        pytest.param(1.06, 10.6, id="10.6, printed as 11"),
        pytest.param(3.0, 30.0, id="30"),
    ],
)
def test_a_worth_is_given_if_it_is_printed_as_more_windows_than_were_judged(ratio, n_needed):
    """Ten windows were judged. Their worth is how many would be needed without the model, `ratio` times ten.

    Where that is not known, or would be printed as ten or less, the model saves nobody a window: NaN.
    """
    worth = _n_needed_without_model(n_windows=10, estimate=SimpleNamespace(sample_size_ratio=ratio))
    assert worth == pytest.approx(n_needed, nan_ok=True)


def as_compared(movie, *, n_left, n_in_share):
    """Stand in for a compared film: how many windows are left to judge and how many count in its share.

    `n_left` is None for a film of which nobody judged any window.
    """
    counts = None if n_left is None else SimpleNamespace(left=n_left)
    timeline = SimpleNamespace(movie=movie)
    return SimpleNamespace(timeline=timeline, counts=counts, sample=SimpleNamespace(n=n_in_share))


@pytest.mark.parametrize(("n_more", "key"), [(1, "advice_judge"), (2, "advice_judge"), (3, "advice_score")])
def test_films_are_advised_that_are_not_judged_and_have_windows_left(n_more, key):
    """Which `n_more` films should be judged next, of four: two have no share yet and windows left to judge.

    These are film b, of which no window was judged, and film d, of which one window is left. Film a has a
    share. Of film c all windows were judged, too few of them surely for a share, and more cannot be judged.
    If more than two films are asked for, the advice is to score others.
    """
    films = [
        as_compared("film-a", n_left=5, n_in_share=10),
        as_compared("film-b", n_left=None, n_in_share=0),
        as_compared("film-c", n_left=0, n_in_share=0),
        as_compared("film-d", n_left=1, n_in_share=0),
    ]

    advice = _advice(films, n_more)

    assert advice.key == key
    if key == "advice_judge":
        named = set(re.findall("film-[a-d]", str(advice)))
        assert len(named) == n_more
        assert named <= {"film-b", "film-d"}


@pytest.mark.parametrize(("n_values", "is_refused"), [(2, True), (3, False)])
def test_a_trend_needs_three_different_values_of_judged_films(
    fourteen_films, judgements_of_eleven_films, n_values, is_refused
):
    """Films have budgets of a few sizes. Those that nobody judged have others, and do not count."""
    budget_of = {}
    for n, film in enumerate(fourteen_films):
        budget = n % n_values if n < N_JUDGED else 100 + n
        budget_of[film.movie] = {"budget": f"{budget}"}

    compared = compare_films(fourteen_films, judgements_of_eleven_films, facts=budget_of, trend="budget")

    (trend,) = compared.changes.to_dict("records")
    assert (trend["reason"] != "") == is_refused


def test_the_desk_takes_a_films_year_from_the_users_table_or_else_from_its_record():
    """Films have the years 1990, 1994 and 2003 in their records, made when they were scored.

    The user's table has 1985 for the first film and an empty year for the second, which keeps 1994. It has no
    row of the third film: that is not compared, and its year does not count.
    """
    films = [
        fake_scored_film("tt01", n_rows=60, duration_s=600.0, year=1990),
        fake_scored_film("tt02", n_rows=60, duration_s=600.0, year=1994),
        fake_scored_film("tt03", n_rows=60, duration_s=600.0, year=2003),
    ]
    table = {"tt01": {"year": "1985"}, "tt02": {"year": ""}}

    assert years_of(films, facts=table) == {"1985", "1994"}
    assert years_of(films, facts=None) == {"1990", "1994", "2003"}
