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


@pytest.mark.parametrize("k", [1, 5, 9])
def test_with_few_windows_a_judge_has_no_number_and_both_together_have_none(timeline, tmp_path, drawn, k):
    """One marks all, the other none: no share is that of both, and none is given."""
    found = correct_rates(timeline, judged(tmp_path, drawn, AB=[YES] * 40, CD=[NO] * k))
    assert [(rate.annotators, rate.n, rate.positives) for rate in found.rates] == [(["AB"], 40, [40])]
    assert found.rates[0].low > 0.8
    assert [(few.judges, few.judged, few.sure, few.least) for few in found.too_few] == [
        (["CD"], k, k, 10),
        (["AB", "CD"], k, k, 10),
    ]


@pytest.mark.parametrize("k", [10, 20, 40])
def test_from_ten_windows_in_common_the_panel_has_the_mean_of_its_judges_shares(timeline, tmp_path, drawn, k):
    found = correct_rates(timeline, judged(tmp_path, drawn, AB=[YES] * 40, CD=[NO] * k))
    assert [rate.annotators for rate in found.rates] == [["AB"], ["CD"], ["AB", "CD"]]
    panel = found.rates[-1]
    assert (panel.n, panel.positives, found.too_few) == (k, [k, 0], ())
    assert panel.low < 0.5 < panel.high
    assert panel.value == pytest.approx(0.5, abs=0.05)
    assert main_rate(found.rates) == panel


def test_a_judges_number_is_that_of_their_judgements_alone(timeline, tmp_path, drawn):
    rng = np.random.default_rng(0)
    levels = {judge: rng.choice([YES, NO], 40) for judge in ("AB", "CD", "EF")}
    found = correct_rates(timeline, judged(tmp_path, drawn, **levels))
    for judge, own in levels.items():
        alone, _ = correct_rate(timeline, judged(tmp_path, drawn, **{judge: own}))
        (with_others,) = [rate for rate in found.rates if rate.annotators == [judge]]
        assert (with_others.value, with_others.low, with_others.high) == (alone.value, alone.low, alone.high)
        asked, _ = correct_rate(timeline, judged(tmp_path, drawn, **levels), judge=judge)
        assert asked == with_others


def test_a_panels_windows_are_those_that_all_were_sure_of(timeline, tmp_path, drawn):
    unsure = [NO] * 20
    unsure[3] = "unsure"
    judgements = judged(tmp_path, drawn, AB=[YES] * 40, CD=unsure)
    film = judged_film(timeline, judgements)
    assert (len(film.of("CD").by_cell), len(film.of("CD").unsure)) == (19, 1)
    panel = film.panel()
    assert (len(panel.by_cell), len(panel.unsure)) == (19, 1)
    assert panel.sure_cells.content[list(panel.unsure)].tolist() == [0]


def test_who_goes_on_where_another_stopped_has_no_number_and_that_is_said(timeline, tmp_path, drawn):
    """The second half of a draw is none of the whole film; a comparison that accounts for judges takes it."""
    first = judged(tmp_path, drawn[:20], AB=[YES] * 20)
    second = judged(tmp_path, drawn[20:], CD=[NO] * 20)
    both = first.with_clips([*first, *second])
    found = correct_rates(timeline, both)
    assert [rate.annotators for rate in found.rates] == [["AB"]]
    assert any("CD" in notice and "20 judgements" in notice for notice in found.notices)
    assert len(judged_film(timeline, both).together().by_cell) == 40


def test_nobody_has_a_number_before_somebody_judged_ten(timeline, tmp_path, drawn):
    with pytest.raises(FilmError, match="6 windows"):
        correct_rates(timeline, judged(tmp_path, drawn, AB=[YES] * 6, CD=[NO] * 5))
    with pytest.raises(FilmError, match="no window"):
        correct_rate(timeline, judged(tmp_path, drawn, AB=[YES] * 12), judge="CD")


def test_counts_are_those_that_a_reader_would_count(timeline, tmp_path, drawn):
    """Two who say positive 8 and 10 times of 30, of other windows: not "2 positive"."""
    one = [YES] * 8 + [NO] * 22
    other = [YES] * 2 + [NO] * 6 + [YES] * 8 + [NO] * 14
    found = correct_rates(timeline, judged(tmp_path, drawn, AB=one, CD=other))
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


def test_what_was_judged_under_two_definitions_has_a_number_under_each(timeline, tmp_path, drawn):
    before, after = "a" * 64, "b" * 64

    def under(definition, clips):
        return [replace(clip, extras=clip.extras | {"definition": definition}) for clip in clips]

    first = under(before, judged(tmp_path, drawn[:20], AB=[YES] * 20))
    again = under(after, judged(tmp_path, drawn[:12], CD=[NO] * 12))
    unknown = list(judged(tmp_path, drawn[:15], EF=[NO] * 15))
    every = judged(tmp_path, drawn).with_clips([*first, *again, *unknown])
    with pytest.raises(ManifestError, match=r"20 judgements under aaa.*12 judgements under bbb"):
        correct_rates(timeline, every)
    found = rates_by_definition(timeline, every)
    assert [(rate.definition, rate.annotators, rate.n) for rate in found.rates] == [
        (before, ["AB"], 20),
        (after, ["CD"], 12),
    ]
    assert not found.too_few
    assert any("15 judgements" in notice for notice in found.notices)
    alone = rates_by_definition(timeline, every.with_clips([*first, *unknown]))
    assert [rate.definition for rate in alone.rates] == [before] * 3


def test_agreement_under_two_definitions_says_under_which_it_is(timeline, tmp_path, drawn):
    every = []
    for definition, one, other in (("a" * 64, "AB", "CD"), ("b" * 64, "EF", "GH")):
        both = judged(tmp_path, drawn[:20], **{one: [YES, NO] * 10, other: [YES] * 15 + [NO] * 5})
        every += [replace(clip, extras=clip.extras | {"definition": definition}) for clip in both]
    found = rates_by_definition(timeline, judged(tmp_path, drawn).with_clips(every))
    first, second = [text for text in sentences(rate_claims(found)) if "kappa" in text]
    assert first.startswith("under aaaaaaaaaaaa: AB and CD: ")
    assert second.startswith("under bbbbbbbbbbbb: EF and GH: ")
    under_one = rates_by_definition(timeline, judged(tmp_path, drawn).with_clips(every[:40]))
    (pair,) = [text for text in sentences(rate_claims(under_one)) if "kappa" in text]
    assert pair.startswith("AB and CD: ")


def test_few_windows_have_no_narrower_interval_than_the_exact_one(timeline, tmp_path, drawn):
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
    assert first[:12] in said


def test_ends_of_another_time_cut_no_mean(timeline, tmp_path, drawn):
    """CD was not sure of a window of which AB was: AB's own share is of more time than that of both."""
    found = correct_rates(timeline, judged(tmp_path, drawn, AB=[NO] * 12, CD=["unsure", *[NO] * 11]))
    first, second, panel = found.rates
    alone, _ = correct_rate(timeline, judged(tmp_path, drawn, AB=[NO] * 12, CD=["unsure", *[NO] * 11]))
    assert first.content_s > second.content_s == panel.content_s
    assert panel.high == alone.high > 0
