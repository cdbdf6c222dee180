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
def drawn_windows(planted_timeline):
    """The first 40 windows of a draw, to be judged blindly."""
    return choose_next([planted_timeline], 40, blind=True)


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


VIOLENT, CALM = "violent", "calm"


@pytest.mark.parametrize("n_by_cd", [1, 9])
def test_a_share_needs_ten_windows_of_each_judge(planted_timeline, tmp_path, drawn_windows, n_by_cd):
    """AB calls 40 windows of a film violent, and CD judges the first one or nine of them: fewer than ten.

    So AB has a share alone, and neither CD nor both together have one. Of these it is recorded how many
    windows were judged, all of them surely, and that ten are needed.
    """
    judgements = judged_by(tmp_path, drawn_windows, AB=[VIOLENT] * 40, CD=[CALM] * n_by_cd)

    rates = correct_rates(planted_timeline, judgements)

    (rate_of_ab,) = rates.rates
    assert rate_of_ab.annotators == ["AB"]
    assert rate_of_ab.n == 40
    assert rate_of_ab.positives == [40]
    assert rate_of_ab.low > 0.8
    too_few_by_cd, too_few_by_both = rates.too_few
    assert too_few_by_cd.judges == ["CD"]
    assert too_few_by_both.judges == ["AB", "CD"]
    for too_few in (too_few_by_cd, too_few_by_both):
        assert too_few.judged == n_by_cd
        assert too_few.sure == n_by_cd
        assert too_few.least == 10


@pytest.mark.parametrize("n_by_cd", [10, 40])
def test_two_judges_of_ten_common_windows_have_a_mean_share(
    planted_timeline, tmp_path, drawn_windows, n_by_cd
):
    """AB calls 40 windows of a film violent, the positive level, and CD the first 10 or all 40 of them calm.

    The rate of both is of the windows that both judged, and the mean of their rates, 1 and 0. Where a film
    needs one rate (`main_rate`) it is this one.
    """
    judgements = judged_by(tmp_path, drawn_windows, AB=[VIOLENT] * 40, CD=[CALM] * n_by_cd)

    rates = correct_rates(planted_timeline, judgements)

    _rate_of_ab, _rate_of_cd, rate_of_both = rates.rates
    assert rate_of_both.annotators == ["AB", "CD"]
    assert rate_of_both.n == n_by_cd
    assert rate_of_both.positives == [n_by_cd, 0]
    assert rate_of_both.low < 0.5 < rate_of_both.high
    assert rate_of_both.value == pytest.approx(0.5, abs=0.05)
    assert main_rate(rates.rates) == rate_of_both
    assert rates.too_few == ()


@pytest.mark.parametrize("judge", ["AB", "CD", "EF"])
def test_a_judges_share_does_not_depend_on_others(planted_timeline, tmp_path, drawn_windows, judge):
    """AB, CD and EF judge the same 40 windows, each at random.

    One judge's rate is the same if only this one judged, beside the rates of the others, and if it alone is
    asked for.
    """
    rng = np.random.default_rng(0)
    levels_by_judge = {name: rng.choice([VIOLENT, CALM], 40) for name in ("AB", "CD", "EF")}
    by_three = judged_by(tmp_path, drawn_windows, **levels_by_judge)
    by_one = judged_by(tmp_path, drawn_windows, **{judge: levels_by_judge[judge]})

    rates_of_three = correct_rates(planted_timeline, by_three).rates
    (rate_beside_others,) = [rate for rate in rates_of_three if rate.annotators == [judge]]
    rate_asked_for, _notices = correct_rate(planted_timeline, by_three, judge=judge)
    rate_alone, _notices = correct_rate(planted_timeline, by_one)

    assert rate_asked_for == rate_beside_others
    assert rate_beside_others.value == rate_alone.value
    assert rate_beside_others.low == rate_alone.low
    assert rate_beside_others.high == rate_alone.high


def test_windows_of_several_judges_are_those_all_were_sure_of(planted_timeline, tmp_path, drawn_windows):
    """AB judged 40 windows, CD the first 20 of them and was not sure of the fourth.

    19 are common and sure; the unsure one has no content in the share of both.
    """
    by_cd = [CALM] * 3 + ["unsure"] + [CALM] * 16
    film = judged_film(planted_timeline, judged_by(tmp_path, drawn_windows, AB=[VIOLENT] * 40, CD=by_cd))

    windows_of_cd = film.of("CD")
    windows_of_both = film.panel()

    for windows in (windows_of_cd, windows_of_both):
        assert len(windows.by_cell) == 19
        assert len(windows.unsure) == 1
    (unsure_cell,) = windows_of_both.unsure
    assert windows_of_both.sure_cells.content_s[unsure_cell] == 0


@pytest.fixture
def half_by_each(tmp_path, drawn_windows):
    """AB judged the first 20 windows of a draw, and CD the 20 that follow."""
    by_ab = judged_by(tmp_path, drawn_windows[:20], AB=[VIOLENT] * 20)
    by_cd = judged_by(tmp_path, drawn_windows[20:], CD=[CALM] * 20)
    return by_ab.with_clips([*by_ab, *by_cd])


def test_a_judge_of_the_second_half_of_a_draw_has_no_share(planted_timeline, half_by_each):
    """AB judged the first 20 of 40 windows of a draw, and CD the 20 that follow.

    In a draw long windows tend to come first, so its second half has too many short ones. It says nothing of
    the whole film: CD's judgements do not count, and a notice says so.
    """
    rates = correct_rates(planted_timeline, half_by_each)
    assert [rate.annotators for rate in rates.rates] == [["AB"]]
    assert any("CD" in notice and "20 judgements" in notice for notice in rates.notices)


@pytest.fixture
def judged_by_ab_and_but_the_tenth_by_cd(tmp_path, drawn_windows):
    """AB judged 15 windows of a draw; CD judged all of them but the tenth, and was not sure of the fourth."""
    by_ab = judged_by(tmp_path, drawn_windows[:15], AB=[VIOLENT] * 15)
    by_cd = judged_by(
        tmp_path, drawn_windows[:9] + drawn_windows[10:15], CD=[CALM] * 3 + ["unsure"] + [CALM] * 10
    )
    return by_ab.with_clips([*by_ab, *by_cd])


def test_windows_after_a_gap_in_the_draw_do_not_count(planted_timeline, judged_by_ab_and_but_the_tenth_by_cd):
    """A share is of the windows up to the first one that a judge skipped; those after it are counted apart.

    CD skipped the tenth of 15 windows, and was not sure of the fourth. So nine windows stand before the gap,
    eight of them sure, and five after it: of CD, and of AB and CD together.
    """
    too_few_by_cd, too_few_by_both = correct_rates(
        planted_timeline, judged_by_ab_and_but_the_tenth_by_cd
    ).too_few
    for too_few in (too_few_by_cd, too_few_by_both):
        assert too_few.judged == 9
        assert too_few.sure == 8
        assert too_few.after_gap == 5


def test_sentences_say_how_many_windows_after_a_gap_do_not_count(
    planted_timeline, judged_by_ab_and_but_the_tenth_by_cd
):
    """AB judged windows 1 to 15 of a draw. CD skipped window 10, and was not sure of window 4.

    CD's gap ends what counts for CD, and for both together: of the nine windows before it CD was sure of
    eight, and the five after it (11 to 15) do not count. Two sentences say so, one on CD's share and one on
    that of both. In AB's own share all 15 count.
    """
    rates = correct_rates(planted_timeline, judged_by_ab_and_but_the_tenth_by_cd)
    english = " ".join(sentences(rate_claims(rates)))
    french = " ".join(sentences(rate_claims(rates), "fr"))

    assert "8 of them surely (5 others, after the first gap of the draw, do not count in a share)" in english
    assert "do not count in a share of all of them)" in english
    assert french.count("(5 autres, après la première lacune du tirage, ne comptent pas dans une part") == 2
    assert french.count("dans une part de tous ensemble)") == 1


def test_windows_that_count_in_a_films_and_in_a_groups_share(tmp_path, planted_timeline, drawn_windows):
    """Of 12 windows AB is not sure of the last three, and CD of the first three.

    Both are sure of 6, which is too few for a share of the film. In the share of a group each window counts
    of which any judge is sure: all 12.
    """
    by_ab = judged_by(tmp_path, drawn_windows[:12], AB=[VIOLENT] * 9 + ["unsure"] * 3)
    by_cd = judged_by(tmp_path, drawn_windows[:12], CD=["unsure"] * 3 + [CALM] * 9)
    (film,) = compare_films([planted_timeline], by_ab.with_clips([*by_ab, *by_cd])).films
    assert film.rate is None
    assert film.windows_of_share.n == 6
    assert film.windows_of_group.n == 12


def test_a_comparison_says_how_many_windows_after_a_gap_do_not_count(
    planted_timeline, judged_by_ab_and_but_the_tenth_by_cd
):
    """CD skipped the tenth of 15 windows: five after it, 11 to 15, count in no share of AB and CD.

    The notes say so, and so does the row of the film.
    """
    compared = compare_films([planted_timeline], judged_by_ab_and_but_the_tenth_by_cd)
    (film,) = compared.films
    (row,) = comparison_report(compared).data.query("table == 'Films'").to_dict("records")

    assert film.n_after_gap == 5
    assert row["n_after_gap"] == 5
    assert "5 windows that each of its judges judged, after the first gap" in " ".join(compared.notes)


def test_a_share_by_one_judge_counts_windows_after_the_one_that_another_judge_skipped(
    planted_timeline, judged_by_ab_and_but_the_tenth_by_cd
):
    """AB judged 15 windows of a draw. CD skipped the tenth, so that of CD only the first nine count.

    These are too few for a share by CD or by both, and the film has one by AB alone. What CD skipped does not
    matter to that: all 15 windows count, in the film's share and in that of its group of films.
    """
    compared = compare_films([planted_timeline], judged_by_ab_and_but_the_tenth_by_cd)

    (film,) = compared.films
    n_in_share_of_film = compared_share(film, compared).n
    n_in_share_of_group = film.windows_of_group.n
    assert n_in_share_of_film == 15
    assert n_in_share_of_group == 15


@pytest.mark.parametrize(
    ("language", "cd_has_no_share", "five_windows_do_not_count"),
    [
        (
            "en",
            "judged too few surely for a share before the first gap of the draw; 5 windows after it",
            "do not count in a share of all of them",
        ),
        (
            "fr",
            "avant la première lacune du tirage ; 5 fenêtres après elle",
            "ne comptent pas dans une part de tous ensemble",
        ),
    ],
)
def test_the_note_on_a_films_share_says_how_many_windows_after_a_gap_do_not_count(
    planted_timeline,
    judged_by_ab_and_but_the_tenth_by_cd,
    language,
    cd_has_no_share,
    five_windows_do_not_count,
):
    """AB judged 15 windows, and CD skipped the tenth of them: the share of the film is AB's alone.

    The note beside it says why CD has none, as before the gap too few windows were judged, and that the five
    windows after the gap would count in no share of AB and CD together.
    """
    compared = compare_films([planted_timeline], judged_by_ab_and_but_the_tenth_by_cd)
    (film,) = compared.films
    note = film_share_note(compared_share(film, compared), Words(language))
    assert cd_has_no_share in note
    assert five_windows_do_not_count in note


def test_windows_of_a_share_are_not_all_that_its_judges_judged(tmp_path, planted_timeline, drawn_windows):
    """AB judged the first 14 windows of a draw. CD judged 14 too, but skipped the 12th.

    After a gap no window counts: the share of both is of the first 11, and the note on it says so.
    """
    first_11_and_three_after_a_gap = drawn_windows[:11] + drawn_windows[12:15]
    by_ab = judged_by(tmp_path, drawn_windows[:14], AB=[VIOLENT] * 14)
    by_cd = judged_by(tmp_path, first_11_and_three_after_a_gap, CD=[CALM] * 14)

    compared = compare_films([planted_timeline], by_ab.with_clips([*by_ab, *by_cd]))

    (film,) = compared.films
    share = compared_share(film, compared)
    note_in_english = film_share_note(share, Words("en"))
    note_in_french = film_share_note(share, Words("fr"))
    assert share.n == 11
    assert note_in_english.startswith("11 windows judged by AB and CD in the order of the draw")
    assert note_in_french.startswith("11 fenêtres jugées par AB et CD dans l’ordre du tirage")


def test_a_comparison_counts_the_windows_of_the_judges_whose_share_it_shows_and_says_so(
    tmp_path, planted_timeline, drawn_windows
):
    """AB and CD judged 15 windows. AB was sure of the first 12, and CD of the last 9, too few for a share.

    So the share is AB's alone, and the comparison counts AB's 12 windows, not windows 7 to 12, of which both
    were sure. A note says that those are counted of which each judge of the share was sure.
    """
    levels_by_ab = [VIOLENT] * 12 + ["unsure"] * 3
    levels_by_cd = ["unsure"] * 6 + [CALM] * 9
    judgements = judged_by(tmp_path, drawn_windows[:15], AB=levels_by_ab, CD=levels_by_cd)

    compared = compare_films([planted_timeline], judgements)

    (film,) = compared.films
    assert film.rate.annotators == ["AB"]
    assert film.windows_of_share.n == 12
    notes = comparison_report(compared).notes
    (note_on_windows,) = [note for note in notes if note.key == "note_windows"]
    in_french = Words("fr").translated(note_on_windows)
    assert "of a film, those of which each judge of its share was sure" in note_on_windows
    assert "d’un film, celles dont chaque juge de sa part était sûr" in in_french


def test_a_film_judged_with_the_score_in_sight_is_not_said_to_be_unjudged(
    tmp_path, planted_timeline, drawn_windows
):
    """AB judged 12 windows and saw the score; a note says that, and the table that none counts."""
    judgements = judged_by(tmp_path, drawn_windows, AB=[VIOLENT] * 12)
    seen = [replace(clip, extras=clip.extras | {"seen_score": "1"}) for clip in judgements]
    compared = compare_films([planted_timeline], judgements.with_clips(seen))
    report = comparison_report(compared)
    assert "left out 12 judgements" in " ".join(compared.notes)
    (table_of_films,) = [block for block in report.blocks if block.title == "Films"]
    assert "not judged" not in table_of_films.rows[0]
    assert "no judgement counts" in table_of_films.rows[0]


def test_a_film_that_nobody_judged_is_said_to_be_unjudged(tmp_path, planted_timeline, drawn_windows):
    """A report compares films; the row of this one says "not judged", as there are no judgements."""
    nothing_judged = judged_by(tmp_path, drawn_windows)
    report = comparison_report(compare_films([planted_timeline], nothing_judged))
    (table_of_films,) = [block for block in report.blocks if block.title == "Films"]
    assert "not judged" in table_of_films.rows[0]


def test_a_comparison_takes_the_windows_of_all_judges_as_one_draw(planted_timeline, half_by_each):
    """AB judged the first 20 of 40 windows of a draw, and CD the 20 that follow.

    For a share of one judge, CD's windows would be no draw. A comparison of films estimates how judges
    differ, and so takes all 40 windows of the film (`together`).
    """
    assert len(judged_film(planted_timeline, half_by_each).together().by_cell) == 40


def test_a_share_is_refused_if_no_judge_judged_ten_windows(planted_timeline, tmp_path, drawn_windows):
    """AB judged six windows and CD five. A share needs ten: the refusal counts AB's, which are most."""
    judgements = judged_by(tmp_path, drawn_windows, AB=[VIOLENT] * 6, CD=[CALM] * 5)
    with pytest.raises(FilmError, match="6 windows"):
        correct_rates(planted_timeline, judgements)


@pytest.mark.parametrize(("language", "counts"), [("en", "8 and 10 of 30"), ("fr", "8 et 10 sur 30")])
def test_the_sentence_on_a_share_of_two_has_the_counts_of_each(
    planted_timeline, tmp_path, drawn_windows, language, counts
):
    """Of 30 windows AB calls 8 violent, the positive level, and CD 10, of which 2 are the same.

    The share of both is the mean of theirs: "2 positive" would mislead, and the sentence has 8 and 10.
    """
    by_ab = [VIOLENT] * 2 + [VIOLENT] * 6 + [CALM] * 22
    by_cd = [VIOLENT] * 2 + [CALM] * 6 + [VIOLENT] * 8 + [CALM] * 14
    judgements = judged_by(tmp_path, drawn_windows, AB=by_ab, CD=by_cd)

    _rate_of_ab, _rate_of_cd, rate_of_both = correct_rates(planted_timeline, judgements).rates
    sentence = judged_share_sentence(judged_share(rate_of_both), Words(language))

    assert rate_of_both.n == 30
    assert rate_of_both.positives == [8, 10]
    assert rate_of_both.n_positive_by_all == 2
    assert counts in sentence


DEFINITION_BEFORE, DEFINITION_AFTER = "a" * 64, "b" * 64
"""Digests of a level's definition before and after it was changed."""


def under_definition(definition, clips):
    """Say of judgements under which definition they were made."""
    return [replace(clip, extras=clip.extras | {"definition": definition}) for clip in clips]


@pytest.fixture
def under_two_definitions(tmp_path, drawn_windows):
    """AB judged 20 windows before the definition changed, CD 12 after, and EF 15, nobody knows when."""
    by_ab = under_definition(DEFINITION_BEFORE, judged_by(tmp_path, drawn_windows[:20], AB=[VIOLENT] * 20))
    by_cd = under_definition(DEFINITION_AFTER, judged_by(tmp_path, drawn_windows[:12], CD=[CALM] * 12))
    by_ef = list(judged_by(tmp_path, drawn_windows[:15], EF=[CALM] * 15))
    return judged_by(tmp_path, drawn_windows).with_clips([*by_ab, *by_cd, *by_ef])


def test_judgements_under_two_definitions_have_no_joint_share(planted_timeline, under_two_definitions):
    """AB judged 20 windows before the definition of a level changed, and CD 12 after.

    A name that was defined anew means something else: the two are not to be mixed. The error counts the
    judgements under each definition, which it calls by its digest, aaa... or bbb...
    """
    with pytest.raises(ManifestError, match=r"20 judgements under aaa.*12 judgements under bbb"):
        correct_rates(planted_timeline, under_two_definitions)


def test_judgements_under_two_definitions_have_a_share_under_each(planted_timeline, under_two_definitions):
    """AB judged 20 windows before the definition of a level changed, and CD 12 after.

    EF's 15 judgements, of which the definition isn't known, are left out and counted.
    """
    rates = rates_by_definition(planted_timeline, under_two_definitions)

    rate_of_ab, rate_of_cd = rates.rates
    assert rate_of_ab.definition == DEFINITION_BEFORE
    assert rate_of_ab.annotators == ["AB"]
    assert rate_of_ab.n == 20
    assert rate_of_cd.definition == DEFINITION_AFTER
    assert rate_of_cd.annotators == ["CD"]
    assert rate_of_cd.n == 12
    assert not rates.too_few
    assert any("15 judgements" in notice for notice in rates.notices)


def test_a_definition_of_judgements_in_sight_alone_gives_no_share(planted_timeline, under_two_definitions):
    """AB judged 20 windows blindly. Then the definition changed, and CD judged 12 with the score in sight.

    Shares come from blind judgements alone. So there is one share, AB's, under one definition, and a notice
    counts CD's judgements.
    """
    by_ab = [clip for clip in under_two_definitions if clip.annotator == "AB"]
    by_cd_in_sight = [
        replace(clip, extras=clip.extras | {"seen_score": "1"})
        for clip in under_two_definitions
        if clip.annotator == "CD"
    ]
    judgements = under_two_definitions.with_clips([*by_ab, *by_cd_in_sight])

    rates = rates_by_definition(planted_timeline, judgements)

    (share_of_ab,) = rates.rates
    (share_by_all_judgements,) = correct_rates(planted_timeline, judgements).rates
    assert share_of_ab.annotators == ["AB"]
    assert share_of_ab.value == share_by_all_judgements.value
    assert rates.n_definitions == 1
    assert any("12 judgements" in notice and "in sight" in notice for notice in rates.notices)


def test_judgements_that_name_no_definition_are_counted_apart_from_those_in_sight(
    planted_timeline, under_two_definitions
):
    """AB and CD judged blindly, each under a definition; EF's 15 judgements name none, and 10 are in sight.

    None of EF's counts in a share. One notice counts the ten that were made in sight of the score, another
    the five blind ones, of which nobody knows to which of the two definitions they belong.
    """
    of_ab_and_cd = [clip for clip in under_two_definitions if clip.annotator != "EF"]
    of_ef = [clip for clip in under_two_definitions if clip.annotator == "EF"]
    of_ef_in_sight = [replace(clip, extras=clip.extras | {"seen_score": "1"}) for clip in of_ef[5:]]
    judgements = under_two_definitions.with_clips([*of_ab_and_cd, *of_ef[:5], *of_ef_in_sight])

    notices = rates_by_definition(planted_timeline, judgements).notices

    assert any("10 judgements" in notice and "in sight" in notice for notice in notices)
    assert any("5 judgements" in notice and "which of several definitions" in notice for notice in notices)


def test_shares_under_two_definitions_count_rows_that_write_the_film_in_capitals(
    planted_timeline, under_two_definitions
):
    """A table writes TT0000001 for tt0000001; AB's 20 rows and CD's 12 count, each under their definition."""
    in_capitals = [replace(clip, movie=clip.movie.upper()) for clip in under_two_definitions]
    rates = rates_by_definition(planted_timeline, under_two_definitions.with_clips(in_capitals)).rates
    assert [(rate.definition, rate.n) for rate in rates] == [(DEFINITION_BEFORE, 20), (DEFINITION_AFTER, 12)]


def test_judgements_without_a_definition_count_under_the_only_known_one(
    planted_timeline, under_two_definitions
):
    """AB judged under the definition `BEFORE`, and EF's judgements do not say under which they were made.

    Without CD's, which are under another one, only the definition of AB's is known: EF's count under it.
    """
    without_cd = [clip for clip in under_two_definitions if clip.annotator != "CD"]
    rates = rates_by_definition(planted_timeline, under_two_definitions.with_clips(without_cd)).rates
    assert [rate.annotators for rate in rates] == [["AB"], ["EF"], ["AB", "EF"]]
    assert {rate.definition for rate in rates} == {DEFINITION_BEFORE}


def sentences_on_kappa(rates):
    """Return the sentences that say how far judges agree."""
    return [sentence for sentence in sentences(rate_claims(rates)) if "kappa" in sentence]


def test_agreement_under_two_definitions_says_under_which_it_is(planted_timeline, tmp_path, drawn_windows):
    """AB and CD judged 20 windows before the definition of a level changed, EF and GH the same ones after.

    A definition is known by a digest, here aaa... before and bbb... after the change. The sentence on how far
    two judges agree names theirs by twelve digits.
    """
    ten_violent = [VIOLENT, CALM] * 10
    fifteen_violent = [VIOLENT] * 15 + [CALM] * 5
    before = under_definition(
        DEFINITION_BEFORE, judged_by(tmp_path, drawn_windows[:20], AB=ten_violent, CD=fifteen_violent)
    )
    after = under_definition(
        DEFINITION_AFTER, judged_by(tmp_path, drawn_windows[:20], EF=ten_violent, GH=fifteen_violent)
    )
    judgements = judged_by(tmp_path, drawn_windows).with_clips([*before, *after])

    on_ab_and_cd, on_ef_and_gh = sentences_on_kappa(rates_by_definition(planted_timeline, judgements))

    assert on_ab_and_cd.startswith("under definition aaaaaaaaaaaa: AB and CD: ")
    assert on_ef_and_gh.startswith("under definition bbbbbbbbbbbb: EF and GH: ")


def test_agreement_under_the_only_definition_does_not_name_it(planted_timeline, tmp_path, drawn_windows):
    """AB and CD judged 20 windows under one definition: there is no other one to confuse it with."""
    judgements = judged_by(
        tmp_path, drawn_windows[:20], AB=[VIOLENT, CALM] * 10, CD=[VIOLENT] * 15 + [CALM] * 5
    )
    judgements = judgements.with_clips(under_definition(DEFINITION_BEFORE, judgements))
    (on_ab_and_cd,) = sentences_on_kappa(rates_by_definition(planted_timeline, judgements))
    assert on_ab_and_cd.startswith("AB and CD: ")


def test_few_windows_have_no_narrower_interval_than_the_exact_one(planted_timeline, tmp_path, drawn_windows):
    """Of five windows CD calls two violent: Clopper and Pearson's exact interval of 2 of 5 is .05 to .85.

    The interval of CD's share is nearly as wide or wider.
    """
    judgements = judged_by(tmp_path, drawn_windows, AB=[CALM] * 40, CD=[VIOLENT, VIOLENT, CALM, CALM, CALM])
    rate, _notices = correct_rate(planted_timeline, judgements, judge="CD")
    assert rate.low < 0.1
    assert rate.high > 0.8


@pytest.mark.parametrize("is_reversed", [False, True], ids=["in order", "the later row first"])
def test_the_later_of_two_decisions_counts_whatever_its_row(
    planted_timeline, tmp_path, drawn_windows, is_reversed
):
    """AB judged 12 windows at two desks that did not know of each other.

    At the first AB called all of them violent, and a minute later, at the second, all of them calm. The later
    decisions count, in whatever order the rows stand: none of 12 windows is positive.
    """
    clips = []
    for judged_at, level in (("2026-11-29T02:16:00+00:00", VIOLENT), ("2026-11-29T02:17:00+00:00", CALM)):
        for clip in judged_by(tmp_path, drawn_windows, AB=[level] * 12):
            extras = clip.extras | {"judged_at": judged_at}
            clips.append(replace(clip, clip_id=f"{judged_at}-{clip.clip_id}", extras=extras))
    if is_reversed:
        clips.reverse()
    (rate,) = correct_rates(planted_timeline, judged_by(tmp_path, drawn_windows).with_clips(clips)).rates

    assert rate.n == 12
    assert rate.positives == [0]


FIRST, SECOND = "1" * 64, "0" * 64
"""Digests of two definitions."""


@pytest.fixture
def first_by_cd_and_three_of_second_by_ab(tmp_path, drawn_windows):
    """CD judged all windows under the first definition; AB three, too few, under the second."""
    by_cd = under_definition(FIRST, judged_by(tmp_path, drawn_windows, CD=[VIOLENT] * 40))
    by_ab = under_definition(SECOND, judged_by(tmp_path, drawn_windows, AB=[CALM] * 3))
    return judged_by(tmp_path, drawn_windows).with_clips([*by_cd, *by_ab])


@pytest.mark.parametrize(
    ("language", "beginning"),
    [
        ("en", "under the definition of violence, version 1: CD would mark"),
        ("fr", "selon la définition de violence, version 1 : CD "),
    ],
)
def test_the_sentence_on_a_share_calls_its_definition_by_the_codebooks_name_and_version(
    planted_timeline, first_by_cd_and_three_of_second_by_ab, language, beginning
):
    """CD judged 40 windows under the definition FIRST, whose codebook is violence, version 1.

    Name and version say more to readers than the digits of a definition's digest. AB's three windows, under
    another definition without a name, are too few for a share: the only sentence is on CD's.
    """
    names = {FIRST: "violence, version 1"}
    rates = rates_by_definition(planted_timeline, first_by_cd_and_three_of_second_by_ab, names=names)
    (sentence,) = sentences(rate_claims(rates), language)
    assert sentence.startswith(beginning)


def test_a_definition_without_a_name_is_called_by_its_digest(
    planted_timeline, first_by_cd_and_three_of_second_by_ab
):
    """CD judged by a definition whose digest begins with twelve times 1, and of which no name is known.

    A sentence on CD's share calls the definition by these twelve digits.
    """
    rates = rates_by_definition(planted_timeline, first_by_cd_and_three_of_second_by_ab)
    (sentence,) = sentences(rate_claims(rates))
    assert sentence.startswith("under definition 111111111111: CD would mark")


def test_a_notice_says_under_which_definition_there_is_no_share(
    planted_timeline, first_by_cd_and_three_of_second_by_ab
):
    """AB's three judgements under the second definition, 000..., are too few for a share."""
    names = {FIRST: "violence, version 1"}
    rates = rates_by_definition(planted_timeline, first_by_cd_and_three_of_second_by_ab, names=names)

    assert rates.n_definitions == 2
    (rate,) = rates.rates
    assert rate.annotators == ["CD"]
    assert rate.definition == FIRST
    (notice,) = [notice for notice in rates.notices if "000000000000" in notice]
    assert notice.startswith("under definition 000000000000: ")


def test_intervals_of_judges_who_were_sure_of_different_windows_do_not_narrow_their_joint_interval(
    planted_timeline, tmp_path, drawn_windows
):
    """The joint interval of AB and CD ends at the mean of their own ends, where that narrows it.

    That holds only if all three shares are of the same windows. Here they are of the same time alone, as each
    judge was unsure of one window, but not of the same one: AB of window 15, which CD did not judge, and CD
    of window 7, of which AB was sure. So the upper end is as if AB had never judged window 15.
    """
    by_cd = [CALM] * 6 + ["unsure"] + [CALM] * 6
    with_window_15 = judged_by(tmp_path, drawn_windows, AB=[CALM] * 14 + ["unsure"], CD=by_cd)
    of_ab, of_cd, of_both = correct_rates(planted_timeline, with_window_15).rates
    assert of_ab.content_s == of_cd.content_s == of_both.content_s

    without_window_15 = judged_by(tmp_path, drawn_windows, AB=[CALM] * 14, CD=by_cd)
    *_, of_both_without_it = correct_rates(planted_timeline, without_window_15).rates
    assert of_both.high == of_both_without_it.high


def test_the_interval_of_a_judge_who_was_sure_of_more_time_does_not_narrow_the_joint_interval(
    planted_timeline, tmp_path, drawn_windows
):
    """AB was sure of all 12 windows, and CD of all but the first: AB's share is of more time than both's.

    The joint interval ends at the mean of the judges' own ends only where all shares are of the same time.
    Here `correct_rates`, which knows the shares of both, gives it the same upper end as `correct_rate`, which
    estimates the joint share alone and so never narrows its interval.
    """
    judgements = judged_by(tmp_path, drawn_windows, AB=[CALM] * 12, CD=["unsure", *[CALM] * 11])
    of_ab, of_cd, of_both = correct_rates(planted_timeline, judgements).rates
    assert of_ab.content_s > of_cd.content_s
    assert of_cd.content_s == of_both.content_s

    not_narrowed, _notices = correct_rate(planted_timeline, judgements)
    assert not_narrowed.high > 0
    assert of_both.high == not_narrowed.high


def assert_records_of_a_film_name_the_definition(rates, *, definition, name):
    """Check that rates, the judges without one, and the agreement of judges have this definition and name."""
    assert rates.n_definitions == 1
    assert rates.rates
    assert rates.too_few
    assert rates.agreement
    for part in (*rates.rates, *rates.too_few, *rates.agreement):
        assert part.definition == definition
        assert part.definition_name == name


@pytest.mark.parametrize(
    ("definition", "name"),
    [
        pytest.param(DEFINITION_BEFORE, "violence, version 1", id="judgements name one definition"),
        pytest.param("", "", id="judgements name none"),
    ],
)
def test_all_records_of_a_film_judged_under_one_definition_have_its_digest_and_name(
    planted_timeline, tmp_path, drawn_windows, definition, name
):
    """AB judged 20 windows and CD five, too few for a share; their judgements name one definition, or none.

    Whoever reads the numbers again must know what was judged. So AB's rate, the record that CD has none and
    the agreement of both have the definition and its name, or "" for each where none is named.
    """
    judged = judged_by(tmp_path, drawn_windows, AB=[VIOLENT, CALM] * 10, CD=[CALM] * 5)
    judgements = judged.with_clips(under_definition(definition, judged))

    rates = rates_by_definition(
        planted_timeline, judgements, names={DEFINITION_BEFORE: "violence, version 1"}
    )

    assert_records_of_a_film_name_the_definition(rates, definition=definition, name=name)


def test_rows_without_a_level_are_not_counted_among_judgements_that_name_no_definition(
    planted_timeline, under_two_definitions, drawn_windows
):
    """EF's 15 judgements name neither of two definitions, and are left out; 20 more rows have no level yet.

    The notice on judgements that name none counts EF's 15, and not the 20 rows, which nobody judged.
    """
    to_judge = drawn_windows[20:]
    without_level = [replace(clip, clip_id=f"open-{clip.clip_id}", level=None) for clip in to_judge]
    judgements = under_two_definitions.with_clips(
        [*under_two_definitions, *under_definition("", without_level)]
    )

    rates = rates_by_definition(planted_timeline, judgements)

    assert any("15 judgements" in notice for notice in rates.notices)
    assert not any("35 judgements" in notice for notice in rates.notices)
    assert rates.n_definitions == 2


def test_judges_who_are_each_alone_under_a_definition_have_no_alpha(planted_timeline, under_two_definitions):
    """AB judged under one definition, CD under another; alpha is the agreement of judges under one."""
    rates = rates_by_definition(planted_timeline, under_two_definitions)
    assert rates.n_definitions == 2
    assert rates.alpha is None


def test_no_notice_says_left_out_if_all_judgements_say_under_which_definition_they_were_made(
    planted_timeline, under_two_definitions
):
    """AB judged under one definition of a level, and CD under another one: there is a rate under each.

    Judgements of which the definition is unknown would be left out, and a notice would count them. EF's are
    such, and are taken away first.
    """
    known = [clip for clip in under_two_definitions if clip.annotator != "EF"]
    rates = rates_by_definition(planted_timeline, under_two_definitions.with_clips(known))
    assert len(rates.rates) == 2
    assert not any("left out" in notice for notice in rates.notices)


def test_too_few_judgements_under_each_of_two_definitions_are_refused_with_both(
    planted_timeline, tmp_path, drawn_windows
):
    """AB judged three windows before the definition of a level changed, and CD four after it.

    A share needs ten windows. The error says how many were judged under each definition, which it names by
    the first twelve digits of its digest.
    """
    by_ab = under_definition(DEFINITION_BEFORE, judged_by(tmp_path, drawn_windows, AB=[CALM] * 3))
    by_cd = under_definition(DEFINITION_AFTER, judged_by(tmp_path, drawn_windows, CD=[CALM] * 4))
    judgements = judged_by(tmp_path, drawn_windows).with_clips([*by_ab, *by_cd])

    with pytest.raises(FilmError) as refusal:
        rates_by_definition(planted_timeline, judgements)

    message = str(refusal.value)
    assert DEFINITION_BEFORE[:12] in message
    assert "3 windows" in message
    assert DEFINITION_AFTER[:12] in message
    assert "4 windows" in message


@pytest.mark.parametrize(("judge", "message"), [("CD", "1 window"), ("nobody", "no window")])
def test_a_judge_who_is_asked_for_and_was_sure_of_nothing_has_no_share(
    planted_timeline, tmp_path, drawn_windows, judge, message
):
    """The share of one judge is asked for: of CD, who judged one window and was not sure, or of "nobody".

    No judge is called "nobody". AB, who judged 40 windows, has a share, but it must not be given in their
    place, as it would be taken for theirs.
    """
    judgements = judged_by(tmp_path, drawn_windows, AB=[CALM] * 40, CD=["unsure"])
    with pytest.raises(FilmError, match=message):
        correct_rate(planted_timeline, judgements, judge=judge)


def test_a_judge_who_is_asked_for_by_name_has_a_share_even_of_one_window(
    planted_timeline, tmp_path, drawn_windows
):
    """CD judged one window. A share by whoever judged most needs ten, but this one is asked for as CD's.

    It is given, with an interval wider than .5, which says how little one window tells.
    """
    judgements = judged_by(tmp_path, drawn_windows, AB=[CALM] * 40, CD=[VIOLENT])

    rate, _ = correct_rate(planted_timeline, judgements, judge="CD")

    assert rate.n == 1
    assert rate.annotators == ["CD"]
    assert rate.high - rate.low > 0.5
