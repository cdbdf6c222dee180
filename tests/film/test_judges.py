"""Whose number it is: each judge's own, and the panel's from windows that all of it judged."""

from dataclasses import replace

import numpy as np
import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Manifest
from obygaze_film.claims import Words, rate_claims, sentences
from obygaze_film.claims.of_groups import compared_share
from obygaze_film.claims.of_judgements import judged_share
from obygaze_film.claims.phrases import film_share_note, judged_share_sentence
from obygaze_film.errors import FilmError
from obygaze_film.film_groups import compare_films
from obygaze_film.group_report import comparison_report
from obygaze_film.judged_rate import (
    correct_rate,
    correct_rates,
    main_rate,
    rates_by_definition,
)
from obygaze_film.judged_windows import judged_film
from obygaze_film.windows_to_judge import choose_next
from tests.planted_models import codebook


@pytest.fixture
def drawn(timeline):
    """The first 40 windows of a draw, to be judged blindly."""
    return choose_next([timeline], 40, blind=True)


def judged_by(tmp_path, clips, **judges):
    """Let judges give levels to the first of these windows; no judgement names a definition."""
    rows = []
    for judge, levels in judges.items():
        for clip, level in zip(clips, levels, strict=False):
            extras = clip.extras | {"definition": ""}
            rows.append(
                replace(clip, clip_id=f"{judge}-{clip.clip_id}", level=level, annotator=judge, extras=extras)
            )
    return Manifest(tuple(rows), tmp_path, codebook(tmp_path))


YES, NO = "violent", "calm"


@pytest.mark.parametrize("n_by_cd", [1, 9])
def test_a_share_needs_ten_windows_of_each_judge(timeline, tmp_path, drawn, n_by_cd):
    """AB marks all of 40 windows and has a share alone; CD marks none of a few."""
    rates = correct_rates(timeline, judged_by(tmp_path, drawn, AB=[YES] * 40, CD=[NO] * n_by_cd))
    (of_ab,) = rates.rates
    assert (of_ab.annotators, of_ab.n, of_ab.positives) == (["AB"], 40, [40])
    assert of_ab.low > 0.8

    of_cd, of_both = rates.too_few
    assert of_cd.judges == ["CD"]
    assert of_both.judges == ["AB", "CD"]
    for few in (of_cd, of_both):
        assert (few.judged, few.sure, few.least) == (n_by_cd, n_by_cd, 10)


@pytest.mark.parametrize("n_by_cd", [10, 40])
def test_two_judges_of_ten_common_windows_have_a_mean_share(timeline, tmp_path, drawn, n_by_cd):
    """AB marks all and CD none of the windows: .5. It is the film's rate where one is to be given."""
    rates = correct_rates(timeline, judged_by(tmp_path, drawn, AB=[YES] * 40, CD=[NO] * n_by_cd))
    _, _, of_both = rates.rates

    assert of_both.annotators == ["AB", "CD"]
    assert (of_both.n, of_both.positives) == (n_by_cd, [n_by_cd, 0])
    assert of_both.low < 0.5 < of_both.high
    assert of_both.value == pytest.approx(0.5, abs=0.05)
    assert main_rate(rates.rates) == of_both
    assert rates.too_few == ()


@pytest.mark.parametrize("judge", ["AB", "CD", "EF"])
def test_a_judges_share_does_not_depend_on_others(timeline, tmp_path, drawn, judge):
    """AB's share is AB's own, whether CD and EF judged the same windows or not. It can be asked for."""
    rng = np.random.default_rng(0)
    levels = {name: rng.choice([YES, NO], 40) for name in ("AB", "CD", "EF")}
    by_three = judged_by(tmp_path, drawn, **levels)

    rates = correct_rates(timeline, by_three).rates
    asked_for, _ = correct_rate(timeline, by_three, judge=judge)
    alone, _ = correct_rate(timeline, judged_by(tmp_path, drawn, **{judge: levels[judge]}))

    (beside_others,) = [rate for rate in rates if rate.annotators == [judge]]
    assert asked_for == beside_others
    assert (beside_others.value, beside_others.low, beside_others.high) == (
        alone.value,
        alone.low,
        alone.high,
    )


def test_windows_of_several_judges_are_those_all_were_sure_of(timeline, tmp_path, drawn):
    """AB judged 40 windows, CD the first 20 of them and was not sure of the fourth.

    19 are common and sure.
    """
    by_cd = [NO] * 3 + ["unsure"] + [NO] * 16
    film = judged_film(timeline, judged_by(tmp_path, drawn, AB=[YES] * 40, CD=by_cd))
    of_cd, of_both = film.of("CD"), film.panel()
    assert (len(of_cd.by_cell), len(of_cd.unsure)) == (19, 1)
    assert (len(of_both.by_cell), len(of_both.unsure)) == (19, 1)
    assert of_both.sure_cells.content_s[list(of_both.unsure)].tolist() == [0]


@pytest.fixture
def half_by_each(tmp_path, drawn):
    """AB judged the first 20 windows of a draw, and CD the 20 that follow."""
    by_ab = judged_by(tmp_path, drawn[:20], AB=[YES] * 20)
    by_cd = judged_by(tmp_path, drawn[20:], CD=[NO] * 20)
    return by_ab.with_clips([*by_ab, *by_cd])


def test_a_judge_of_the_second_half_of_a_draw_has_no_share(timeline, half_by_each):
    """The second half of a draw is no draw of the whole film: long windows come first.

    So CD's 20 judgements do not count, and a notice says so.
    """
    rates = correct_rates(timeline, half_by_each)
    assert [rate.annotators for rate in rates.rates] == [["AB"]]
    assert any("CD" in notice and "20 judgements" in notice for notice in rates.notices)


@pytest.fixture
def all_but_the_tenth(tmp_path, drawn):
    """AB judged 15 windows of a draw; CD judged all of them but the tenth, and was not sure of the fourth."""
    by_ab = judged_by(tmp_path, drawn[:15], AB=[YES] * 15)
    by_cd = judged_by(tmp_path, drawn[:9] + drawn[10:15], CD=[NO] * 3 + ["unsure"] + [NO] * 10)
    return by_ab.with_clips([*by_ab, *by_cd])


def test_windows_after_a_gap_in_the_draw_do_not_count(timeline, all_but_the_tenth):
    """A share is of the windows up to the first one that a judge skipped; those after it are counted apart.

    Nine windows stand before CD's gap, five after it: of CD, and of AB and CD together.
    """
    rates = correct_rates(timeline, all_but_the_tenth)
    of_cd, of_both = rates.too_few
    for few in (of_cd, of_both):
        assert (few.judged, few.sure, few.after_gap) == (9, 8, 5)

    english = " ".join(sentences(rate_claims(rates)))
    assert "8 of them surely (5 others, after the first gap of the draw, do not count in a share)" in english
    assert "do not count in a share of all of them)" in english  # AB's own share counts them

    french = " ".join(sentences(rate_claims(rates), "fr"))
    assert french.count("(5 autres, après la première lacune du tirage, ne comptent pas dans une part") == 2
    assert french.count("dans une part de tous ensemble)") == 1


def test_windows_that_count_in_a_films_and_in_a_groups_share(tmp_path, timeline, drawn):
    """Of 12 windows AB is not sure of the last three, and CD of the first three.

    Both are sure of 6, which is too few for a share of the film. In the share of a group each window counts
    of which any judge is sure: all 12.
    """
    by_ab = judged_by(tmp_path, drawn[:12], AB=[YES] * 9 + ["unsure"] * 3)
    by_cd = judged_by(tmp_path, drawn[:12], CD=["unsure"] * 3 + [NO] * 9)
    (film,) = compare_films([timeline], by_ab.with_clips([*by_ab, *by_cd])).films
    assert film.rate is None
    assert film.windows_of_share.n == 6
    assert film.windows_of_group.n == 12


def test_a_comparison_says_how_many_windows_after_a_gap_do_not_count(timeline, all_but_the_tenth):
    """In its notes, in the row of the film, and beside the film's share on the page, which is AB's alone."""
    compared = compare_films([timeline], all_but_the_tenth)
    (film,) = compared.films
    assert film.n_after_gap == 5  # windows 11 to 15 of the draw
    assert "5 windows that each of its judges judged, after the first gap" in " ".join(compared.notes)

    (row,) = comparison_report(compared).data.query("table == 'Films'").to_dict("records")
    assert row["n_after_gap"] == 5

    claim = compared_share(film, compared)
    english = film_share_note(claim, Words("en"))
    assert "judged too few surely for a share before the first gap of the draw; 5 windows after it" in english
    assert "avant la première lacune du tirage ; 5 fenêtres après elle" in film_share_note(claim, Words("fr"))

    # They count in AB's own share, which the film has here, and in that of its group.
    assert (claim.n, film.windows_of_group.n) == (15, 15)
    assert "do not count in a share of all of them" in english
    assert "ne comptent pas dans une part de tous ensemble" in film_share_note(claim, Words("fr"))


def test_windows_of_a_share_are_not_all_that_its_judges_judged(tmp_path, timeline, drawn):
    """AB and CD both judged 14 windows, of which the last three, after CD's gap, are in no share of both."""
    by_ab = judged_by(tmp_path, drawn[:14], AB=[YES] * 14)
    by_cd = judged_by(tmp_path, drawn[:11] + drawn[12:15], CD=[NO] * 14)
    compared = compare_films([timeline], by_ab.with_clips([*by_ab, *by_cd]))
    (film,) = compared.films
    claim = compared_share(film, compared)
    assert claim.n == 11
    assert film_share_note(claim, Words("en")).startswith(
        "11 windows judged by AB and CD in the order of the draw"
    )
    assert film_share_note(claim, Words("fr")).startswith(
        "11 fenêtres jugées par AB et CD dans l’ordre du tirage"
    )


def test_windows_of_one_judges_share_are_explained_as_that_judges(tmp_path, timeline, drawn):
    """Of 15 windows AB was sure of the first 12 and CD of the last 9: the share is AB's alone.

    So the film's windows are these 12, and not the 6 of which both were sure.
    """
    by_ab = judged_by(tmp_path, drawn[:15], AB=[YES] * 12 + ["unsure"] * 3)
    by_cd = judged_by(tmp_path, drawn[:15], CD=["unsure"] * 6 + [NO] * 9)
    compared = compare_films([timeline], by_ab.with_clips([*by_ab, *by_cd]))
    (film,) = compared.films
    assert film.rate.annotators == ["AB"]
    assert film.windows_of_share.n == 12
    (note,) = [note for note in comparison_report(compared).notes if note.key == "note_windows"]
    assert "of a film, those of which each judge of its share was sure" in note
    assert "d’un film, celles dont chaque juge de sa part était sûr" in Words("fr").translated(note)


def test_a_film_judged_with_the_score_in_sight_is_not_said_to_be_unjudged(tmp_path, timeline, drawn):
    """AB judged 12 windows and saw the score; a note says that, and the table that none counts."""
    judgements = judged_by(tmp_path, drawn, AB=[YES] * 12)
    seen = [replace(clip, extras=clip.extras | {"seen_score": "1"}) for clip in judgements]
    compared = compare_films([timeline], judgements.with_clips(seen))
    report = comparison_report(compared)
    assert "left out 12 judgements" in " ".join(compared.notes)
    (films,) = [block for block in report.blocks if block.title == "Films"]
    assert "not judged" not in films.rows[0]
    assert "no judgement counts" in films.rows[0]

    nobody = comparison_report(compare_films([timeline], judgements.with_clips([])))
    (films,) = [block for block in nobody.blocks if block.title == "Films"]
    assert "not judged" in films.rows[0]


def test_a_comparison_takes_the_windows_of_all_judges_as_one_draw(timeline, half_by_each):
    """AB judged the first half of the draw and CD the second.

    A comparison accounts for who judged which, and so may take all 40.
    """
    assert len(judged_film(timeline, half_by_each).together().by_cell) == 40


def test_without_ten_windows_of_a_judge_no_number_is_given(timeline, tmp_path, drawn):
    """AB judged six windows and CD five, and a share needs ten. EF judged nothing."""
    with pytest.raises(FilmError, match="6 windows"):
        correct_rates(timeline, judged_by(tmp_path, drawn, AB=[YES] * 6, CD=[NO] * 5))
    with pytest.raises(FilmError, match="no window"):
        correct_rate(timeline, judged_by(tmp_path, drawn, AB=[YES] * 12), judge="EF")


@pytest.mark.parametrize(("language", "counts"), [("en", "8 and 10 of 30"), ("fr", "8 et 10 sur 30")])
def test_the_sentence_on_a_share_of_two_has_the_counts_of_each(timeline, tmp_path, drawn, language, counts):
    """Of 30 windows AB calls 8 positive and CD 10, of which 2 are the same: "2 positive" would mislead."""
    by_ab = [YES] * 2 + [YES] * 6 + [NO] * 22
    by_cd = [YES] * 2 + [NO] * 6 + [YES] * 8 + [NO] * 14
    *_, of_both = correct_rates(timeline, judged_by(tmp_path, drawn, AB=by_ab, CD=by_cd)).rates
    assert (of_both.n, of_both.positives, of_both.n_positive_by_all) == (30, [8, 10], 2)
    assert counts in judged_share_sentence(judged_share(of_both), Words(language))


BEFORE, AFTER = "a" * 64, "b" * 64
"""Digests of a level's definition before and after it was changed."""


def under(definition, clips):
    """Say of judgements under which definition they were made."""
    return [replace(clip, extras=clip.extras | {"definition": definition}) for clip in clips]


@pytest.fixture
def under_two_definitions(tmp_path, drawn):
    """AB judged 20 windows before the definition changed, CD 12 after, and EF 15, nobody knows when."""
    by_ab = under(BEFORE, judged_by(tmp_path, drawn[:20], AB=[YES] * 20))
    by_cd = under(AFTER, judged_by(tmp_path, drawn[:12], CD=[NO] * 12))
    by_ef = list(judged_by(tmp_path, drawn[:15], EF=[NO] * 15))
    return judged_by(tmp_path, drawn).with_clips([*by_ab, *by_cd, *by_ef])


def test_judgements_under_two_definitions_have_no_joint_share(timeline, under_two_definitions):
    """After a level was defined anew its name means something else: the two are not to be mixed."""
    with pytest.raises(ManifestError, match=r"20 judgements under aaa.*12 judgements under bbb"):
        correct_rates(timeline, under_two_definitions)


def test_judgements_under_two_definitions_have_a_share_under_each(timeline, under_two_definitions):
    """EF's 15 judgements, of which the definition isn't known, are left out and counted."""
    rates = rates_by_definition(timeline, under_two_definitions)
    of_ab, of_cd = rates.rates
    assert (of_ab.definition, of_ab.annotators, of_ab.n) == (BEFORE, ["AB"], 20)
    assert (of_cd.definition, of_cd.annotators, of_cd.n) == (AFTER, ["CD"], 12)
    assert not rates.too_few
    assert any("15 judgements" in notice for notice in rates.notices)


def test_judgements_without_a_definition_count_under_the_only_known_one(timeline, under_two_definitions):
    """Without CD's judgements only the definition of AB's is known: EF's count under it."""
    without_cd = [clip for clip in under_two_definitions if clip.annotator != "CD"]
    rates = rates_by_definition(timeline, under_two_definitions.with_clips(without_cd)).rates
    assert [rate.annotators for rate in rates] == [["AB"], ["EF"], ["AB", "EF"]]
    assert {rate.definition for rate in rates} == {BEFORE}


def sentences_on_kappa(rates):
    """Return the sentences that say how far judges agree."""
    return [sentence for sentence in sentences(rate_claims(rates)) if "kappa" in sentence]


def test_agreement_under_two_definitions_says_under_which_it_is(timeline, tmp_path, drawn):
    """AB and CD judged under the first definition, EF and GH under the second.

    Each definition is named by the first twelve digits of its digest.
    """
    first, second = [YES, NO] * 10, [YES] * 15 + [NO] * 5
    before = under(BEFORE, judged_by(tmp_path, drawn[:20], AB=first, CD=second))
    after = under(AFTER, judged_by(tmp_path, drawn[:20], EF=first, GH=second))
    judgements = judged_by(tmp_path, drawn).with_clips([*before, *after])
    of_ab_and_cd, of_ef_and_gh = sentences_on_kappa(rates_by_definition(timeline, judgements))

    assert of_ab_and_cd.startswith(f"under definition {BEFORE[:12]}: AB and CD: ")
    assert of_ef_and_gh.startswith(f"under definition {AFTER[:12]}: EF and GH: ")

    # With only one definition there is nothing to confuse it with.
    (of_ab_and_cd,) = sentences_on_kappa(rates_by_definition(timeline, judgements.with_clips(before)))
    assert of_ab_and_cd.startswith("AB and CD: ")


def test_few_windows_have_no_narrower_interval_than_the_exact_one(timeline, tmp_path, drawn):
    """CD calls two of five windows positive: Clopper and Pearson's exact interval is .05 to .85."""
    judgements = judged_by(tmp_path, drawn, AB=[NO] * 40, CD=[YES, YES, NO, NO, NO])
    rate, _ = correct_rate(timeline, judgements, judge="CD")
    assert rate.low < 0.1
    assert rate.high > 0.8


@pytest.mark.parametrize("is_reversed", [False, True], ids=["in order", "the later row first"])
def test_the_later_of_two_decisions_counts_whatever_its_row(timeline, tmp_path, drawn, is_reversed):
    """Two desks that did not know of each other: a judge said yes there, and, a minute later, no here."""
    clips = []
    for judged_at, level in (("2026-11-29T02:16:00+00:00", YES), ("2026-11-29T02:17:00+00:00", NO)):
        for clip in judged_by(tmp_path, drawn, AB=[level] * 12):
            extras = clip.extras | {"judged_at": judged_at}
            clips.append(replace(clip, clip_id=f"{judged_at}-{clip.clip_id}", extras=extras))
    if is_reversed:
        clips.reverse()
    (rate,) = correct_rates(timeline, judged_by(tmp_path, drawn).with_clips(clips)).rates

    assert rate.n == 12
    assert rate.positives == [0]


FIRST, SECOND = "1" * 64, "0" * 64
"""Digests of two definitions."""


@pytest.fixture
def first_by_cd_and_three_of_second_by_ab(tmp_path, drawn):
    """CD judged all windows under the first definition; AB three, too few, under the second."""
    by_cd = under(FIRST, judged_by(tmp_path, drawn, CD=[YES] * 40))
    by_ab = under(SECOND, judged_by(tmp_path, drawn, AB=[NO] * 3))
    return judged_by(tmp_path, drawn).with_clips([*by_cd, *by_ab])


@pytest.mark.parametrize(
    ("language", "beginning"),
    [
        ("en", "under the definition of violence, version 1: CD would mark"),
        ("fr", "selon la définition de violence, version 1 : CD "),
    ],
)
def test_a_definition_that_has_a_name_is_called_by_it(
    timeline, first_by_cd_and_three_of_second_by_ab, language, beginning
):
    """Name and version of a codebook say more to readers than the digits of a digest.

    Only the first definition has a name. AB's judgements under the second are too few for a share.
    """
    names = {FIRST: "violence, version 1"}
    rates = rates_by_definition(timeline, first_by_cd_and_three_of_second_by_ab, names=names)
    without_names = rates_by_definition(timeline, first_by_cd_and_three_of_second_by_ab)

    assert rates.n_definitions == 2
    assert [rate.annotators for rate in rates.rates] == [["CD"]]
    assert rates.rates[0].definition == FIRST  # which --json gives
    (sentence,) = sentences(rate_claims(rates), language)
    assert sentence.startswith(beginning)
    (notice,) = [notice for notice in rates.notices if SECOND[:12] in notice]
    assert notice.startswith(f"under definition {SECOND[:12]}: ")
    (by_digest,) = sentences(rate_claims(without_names))
    assert by_digest.startswith(f"under definition {FIRST[:12]}: CD would mark")


def test_a_joint_interval_is_not_cut_by_shares_of_other_windows(timeline, tmp_path, drawn):
    """The interval of both is cut at the mean of the judges' own ends if all shares are of the same windows.

    Here they are only of the same time. AB was not sure of window 15, which CD did not judge, and CD not of
    window 7, of which AB was. So the interval must be as if AB had not judged window 15.
    """
    by_cd = [NO] * 6 + ["unsure"] + [NO] * 6
    with_window_15 = judged_by(tmp_path, drawn, AB=[NO] * 14 + ["unsure"], CD=by_cd)
    of_ab, of_cd, of_both = correct_rates(timeline, with_window_15).rates
    assert of_ab.content_s == of_cd.content_s == of_both.content_s

    without_window_15 = judged_by(tmp_path, drawn, AB=[NO] * 14, CD=by_cd)
    *_, of_both_without_it = correct_rates(timeline, without_window_15).rates
    assert of_both.high == of_both_without_it.high


def test_a_joint_interval_is_not_cut_by_a_share_of_more_time(timeline, tmp_path, drawn):
    """CD was not sure of a window of which AB was, so that AB's own share is of more time than that of both.

    Only where all are of the same time, the interval of both is cut at the mean of the judges' own ends.
    """
    judgements = judged_by(tmp_path, drawn, AB=[NO] * 12, CD=["unsure", *[NO] * 11])
    of_ab, of_cd, of_both = correct_rates(timeline, judgements).rates
    assert of_ab.content_s > of_cd.content_s
    assert of_cd.content_s == of_both.content_s

    uncut, _ = correct_rate(timeline, judgements)
    assert uncut.high > 0
    assert of_both.high == uncut.high
