"""Whose number it is: each judge's own, and the panel's from windows that all of it judged."""

from dataclasses import replace

import numpy as np
import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Manifest
from obygaze_film.claims import Words, rate_claims, sentences
from obygaze_film.claims.of_judgements import judged_share
from obygaze_film.claims.phrases import judged_share_sentence
from obygaze_film.errors import FilmError
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


def judged(tmp_path, clips, **judges):
    """Judgements by name of judge: a level of each window from the first of the draw on."""
    rows = []
    for judge, levels in judges.items():
        for clip, level in zip(clips, levels, strict=False):
            extras = clip.extras | {"definition": ""}
            rows.append(
                replace(clip, clip_id=f"{judge}-{clip.clip_id}", level=level, annotator=judge, extras=extras)
            )
    return Manifest(tuple(rows), tmp_path, codebook(tmp_path))


YES, NO = "violent", "calm"


@pytest.mark.parametrize("n_by_cd", [1, 5, 9])
def test_with_fewer_than_ten_windows_a_judge_has_no_number_and_both_together_have_none(
    timeline, tmp_path, drawn, n_by_cd
):
    """AB marks all of 40 windows, CD none of a few: no share is that of both, and none is given."""
    found = correct_rates(timeline, judged(tmp_path, drawn, AB=[YES] * 40, CD=[NO] * n_by_cd))
    assert [(rate.annotators, rate.n, rate.positives) for rate in found.rates] == [(["AB"], 40, [40])]
    assert found.rates[0].low > 0.8
    assert [(few.judges, few.judged, few.sure, few.least) for few in found.too_few] == [
        (["CD"], n_by_cd, n_by_cd, 10),
        (["AB", "CD"], n_by_cd, n_by_cd, 10),
    ]


@pytest.mark.parametrize("n_by_cd", [10, 20, 40])
def test_from_ten_windows_in_common_the_panel_has_the_mean_of_its_judges_shares(
    timeline, tmp_path, drawn, n_by_cd
):
    found = correct_rates(timeline, judged(tmp_path, drawn, AB=[YES] * 40, CD=[NO] * n_by_cd))
    assert [rate.annotators for rate in found.rates] == [["AB"], ["CD"], ["AB", "CD"]]
    panel = found.rates[-1]
    assert (panel.n, panel.positives, found.too_few) == (n_by_cd, [n_by_cd, 0], ())
    assert panel.low < 0.5 < panel.high
    assert panel.value == pytest.approx(0.5, abs=0.05)
    assert main_rate(found.rates) == panel


def test_a_judges_number_is_that_of_their_judgements_alone(timeline, tmp_path, drawn):
    rng = np.random.default_rng(0)
    levels = {judge: rng.choice([YES, NO], 40) for judge in ("AB", "CD", "EF")}
    found = correct_rates(timeline, judged(tmp_path, drawn, **levels))
    for judge, own in levels.items():
        alone, _ = correct_rate(timeline, judged(tmp_path, drawn, **{judge: own}))
        (beside_others,) = [rate for rate in found.rates if rate.annotators == [judge]]
        numbers = (beside_others.value, beside_others.low, beside_others.high)
        assert numbers == (alone.value, alone.low, alone.high)
        asked_for, _ = correct_rate(timeline, judged(tmp_path, drawn, **levels), judge=judge)
        assert asked_for == beside_others


def test_a_panels_windows_are_those_that_all_were_sure_of(timeline, tmp_path, drawn):
    unsure = [NO] * 20
    unsure[3] = "unsure"
    judgements = judged(tmp_path, drawn, AB=[YES] * 40, CD=unsure)
    film = judged_film(timeline, judgements)
    assert (len(film.of("CD").by_cell), len(film.of("CD").unsure)) == (19, 1)
    panel = film.panel()
    assert (len(panel.by_cell), len(panel.unsure)) == (19, 1)
    assert panel.sure_cells.content_s[list(panel.unsure)].tolist() == [0]


def test_who_goes_on_where_another_stopped_has_no_number_and_that_is_said(timeline, tmp_path, drawn):
    """CD's windows are the second half of a draw, which is no draw of the whole film.

    A comparison of films that accounts for who judged takes all 40.
    """
    by_ab = judged(tmp_path, drawn[:20], AB=[YES] * 20)
    by_cd = judged(tmp_path, drawn[20:], CD=[NO] * 20)
    both = by_ab.with_clips([*by_ab, *by_cd])
    found = correct_rates(timeline, both)
    assert [rate.annotators for rate in found.rates] == [["AB"]]
    assert any("CD" in notice and "20 judgements" in notice for notice in found.notices)
    assert len(judged_film(timeline, both).together().by_cell) == 40


def test_where_nobody_judged_ten_windows_no_number_is_given(timeline, tmp_path, drawn):
    with pytest.raises(FilmError, match="6 windows"):
        correct_rates(timeline, judged(tmp_path, drawn, AB=[YES] * 6, CD=[NO] * 5))


def test_the_number_of_a_judge_who_judged_nothing_is_refused(timeline, tmp_path, drawn):
    with pytest.raises(FilmError, match="no window"):
        correct_rate(timeline, judged(tmp_path, drawn, AB=[YES] * 12), judge="CD")


def test_counts_are_those_that_a_reader_would_count(timeline, tmp_path, drawn):
    """Of 30 windows AB calls 8 positive and CD 10, and two of these are the same: not "2 positive"."""
    by_ab = [YES] * 8 + [NO] * 22
    by_cd = [YES] * 2 + [NO] * 6 + [YES] * 8 + [NO] * 14
    found = correct_rates(timeline, judged(tmp_path, drawn, AB=by_ab, CD=by_cd))
    panel = found.rates[-1]
    assert (panel.positives, panel.n, panel.n_positive_by_all) == ([8, 10], 30, 2)
    assert "8 and 10 of 30" in judged_share_sentence(judged_share(panel), Words("en"))
    assert "8 et 10 sur 30" in judged_share_sentence(judged_share(panel), Words("fr"))


@pytest.mark.parametrize("agree", [True, False])
def test_where_two_may_agree_no_better_than_chance_the_sentence_says_so(timeline, tmp_path, drawn, agree):
    one = [YES, NO] * 15
    other = one if agree else [YES, YES, NO, NO] * 7 + [YES, NO]
    found = correct_rates(timeline, judged(tmp_path, drawn, AB=one, CD=other))
    pair = found.agreement[0]
    panel = judged_share_sentence(judged_share(found.rates[-1]), Words("en"))
    assert (pair.low > 0) == agree
    assert ("chance" in panel) == (not agree)
    assert sum("chance" in line for line in sentences(rate_claims(found))) == (0 if agree else 2)


BEFORE, AFTER = "a" * 64, "b" * 64
"""Digests of a level's definition before and after it was changed."""


def under(definition, clips):
    """Judge the same under a definition."""
    return [replace(clip, extras=clip.extras | {"definition": definition}) for clip in clips]


@pytest.fixture
def under_two_definitions(tmp_path, drawn):
    """AB judged 20 windows before the definition changed, CD 12 after; of EF's 15 none is known."""
    by_ab = under(BEFORE, judged(tmp_path, drawn[:20], AB=[YES] * 20))
    by_cd = under(AFTER, judged(tmp_path, drawn[:12], CD=[NO] * 12))
    by_ef = list(judged(tmp_path, drawn[:15], EF=[NO] * 15))
    return judged(tmp_path, drawn).with_clips([*by_ab, *by_cd, *by_ef])


def test_what_was_judged_under_two_definitions_has_no_number_together(timeline, under_two_definitions):
    with pytest.raises(ManifestError, match=r"20 judgements under aaa.*12 judgements under bbb"):
        correct_rates(timeline, under_two_definitions)


def test_what_was_judged_under_two_definitions_has_a_number_under_each(timeline, under_two_definitions):
    found = rates_by_definition(timeline, under_two_definitions)
    assert [(rate.definition, rate.annotators, rate.n) for rate in found.rates] == [
        (BEFORE, ["AB"], 20),
        (AFTER, ["CD"], 12),
    ]
    assert not found.too_few
    assert any("15 judgements" in notice for notice in found.notices)  # EF's are left out


def test_judgements_without_a_definition_count_under_the_only_one_that_is_known(
    timeline, under_two_definitions
):
    """Of AB, of EF and of both."""
    without_cd = [clip for clip in under_two_definitions if clip.annotator != "CD"]
    found = rates_by_definition(timeline, under_two_definitions.with_clips(without_cd))
    assert [rate.definition for rate in found.rates] == [BEFORE] * 3


def sentences_on_kappa(found):
    return [text for text in sentences(rate_claims(found)) if "kappa" in text]


def test_agreement_under_two_definitions_says_under_which_it_is(timeline, tmp_path, drawn):
    one, other = [YES, NO] * 10, [YES] * 15 + [NO] * 5
    before = under(BEFORE, judged(tmp_path, drawn[:20], AB=one, CD=other))
    after = under(AFTER, judged(tmp_path, drawn[:20], EF=one, GH=other))
    manifest = judged(tmp_path, drawn)
    found = rates_by_definition(timeline, manifest.with_clips([*before, *after]))
    of_ab_and_cd, of_ef_and_gh = sentences_on_kappa(found)
    assert of_ab_and_cd.startswith("under definition aaaaaaaaaaaa: AB and CD: ")
    assert of_ef_and_gh.startswith("under definition bbbbbbbbbbbb: EF and GH: ")
    # Where all judged under one, it is not named.
    (alone,) = sentences_on_kappa(rates_by_definition(timeline, manifest.with_clips(before)))
    assert alone.startswith("AB and CD: ")


def test_few_windows_have_no_narrower_interval_than_the_exact_one(timeline, tmp_path, drawn):
    """CD calls two of five windows positive: Clopper and Pearson's exact interval is .05 to .85."""
    judgements = judged(tmp_path, drawn, AB=[NO] * 40, CD=[YES, YES, NO, NO, NO])
    rate, _ = correct_rate(timeline, judgements, judge="CD")
    assert rate.low < 0.1
    assert rate.high > 0.8


@pytest.mark.parametrize("is_reversed", [False, True], ids=["in order", "the later row first"])
def test_of_two_decisions_the_later_counts_whatever_row_it_is_in(timeline, tmp_path, drawn, is_reversed):
    """Two desks that did not know of each other: a judge said yes there, and, a minute later, no here."""
    earlier = judged(tmp_path, drawn, AB=[YES] * 12)
    later = judged(tmp_path, drawn, AB=[NO] * 12)
    clips = [
        replace(clip, clip_id=f"{time}-{clip.clip_id}", extras=clip.extras | {"judged_at": time})
        for time, both in (("2026-11-29T02:16:00+00:00", earlier), ("2026-11-29T02:17:00+00:00", later))
        for clip in both
    ]
    (rate,) = correct_rates(timeline, earlier.with_clips(clips[::-1] if is_reversed else clips)).rates
    assert (rate.n, rate.positives) == (12, [0])


def test_the_mean_of_two_judges_goes_no_further_than_the_mean_of_their_own_ends(timeline, tmp_path, drawn):
    """One judged forty windows and marks few of them, the other the first ten of these and marks none."""
    found = correct_rates(timeline, judged(tmp_path, drawn, AB=[YES, *[NO] * 39], CD=[NO] * 10))
    first, second, panel = found.rates
    assert panel.high <= (first.high + second.high) / 2 + 1e-12
    assert panel.low <= panel.value <= panel.high


def test_a_share_names_its_definition_also_where_there_is_none_under_the_other(timeline, tmp_path, drawn):
    """CD judged all under the first definition; under the second AB judged three windows, too few."""
    first, second = codebook(tmp_path).definition(), "0" * 64
    before = [
        replace(clip, extras=clip.extras | {"definition": first})
        for clip in judged(tmp_path, drawn, CD=[YES] * 40)
    ]
    since = judged(tmp_path, drawn, AB=[NO] * 3)
    clips = [*before, *(replace(clip, extras=clip.extras | {"definition": second}) for clip in since)]
    found = rates_by_definition(timeline, since.with_clips(clips))
    assert found.n_definitions == 2
    assert [rate.annotators for rate in found.rates] == [["CD"]]
    (said,) = sentences(rate_claims(found))
    assert said.startswith(f"under definition {first[:12]}: CD would mark")
    named = rates_by_definition(timeline, since.with_clips(clips), names={first: "violence, version 1"})
    assert named.rates[0].definition == first  # which --json gives
    english, french = (sentences(rate_claims(named), language)[0] for language in ("en", "fr"))
    assert english.startswith("under the definition of violence, version 1: CD would mark")
    assert french.startswith("selon la définition de violence, version 1 : CD ")
    of_second = next(notice for notice in named.notices if second[:12] in notice)
    assert of_second.startswith(f"under definition {second[:12]}: ")


def test_ends_of_another_time_cut_no_mean(timeline, tmp_path, drawn):
    """CD was not sure of a window of which AB was: AB's own share is of more time than that of both."""
    found = correct_rates(timeline, judged(tmp_path, drawn, AB=[NO] * 12, CD=["unsure", *[NO] * 11]))
    first, second, panel = found.rates
    alone, _ = correct_rate(timeline, judged(tmp_path, drawn, AB=[NO] * 12, CD=["unsure", *[NO] * 11]))
    assert first.content_s > second.content_s == panel.content_s
    assert panel.high == alone.high > 0
