"""What is said of judges' shares holds of their judgements, in each language and on the page."""

import html
import re
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from obygaze.cli import main
from obygaze_features.manifest import Manifest, builtin_codebook, write_manifest
from obygaze_film.cells import cells_of
from obygaze_film.claims import (
    LANGUAGES,
    Words,
    document,
    group_claims,
    phrases,
    rate_claims,
    sentences,
)
from obygaze_film.claims import (
    kinds as claim_kinds,
)
from obygaze_film.claims.of_groups import compared_share
from obygaze_film.claims.of_judgements import decision, pair_agreement
from obygaze_film.errors import FilmError
from obygaze_film.film_groups import compare_films
from obygaze_film.group_report import comparison_report
from obygaze_film.judged_rate import FilmRates, correct_rates
from obygaze_film.notes import Message, texts
from obygaze_film.page.figures import years_figure, years_legend
from obygaze_film.page.side_by_side import comparison_page
from obygaze_film.page.view import FilmView
from obygaze_film.schema import JudgesAgreement
from obygaze_film.timeline import Timeline
from obygaze_film.windows_to_judge import choose_next
from obygaze_models.report import plain
from tests.film.page.invented import fake_scored_film

FILM = fake_scored_film(n_rows=60, duration_s=900.0)
WINDOWS = choose_next([FILM], 10**6, blind=True)
"""All windows of the film that can be drawn, in the order of the draw."""

N_WINDOWS = len(WINDOWS)
"""How many windows of the film can be drawn."""

POSITIVE, NEGATIVE, NOT_SURE = "S", "HN", "NS"
SEVEN_OF_14_POSITIVE = [POSITIVE, NEGATIVE] * 7
"""Levels of 14 windows, more than the ten that a share needs."""


def judgements_by(windows=WINDOWS, **judges):
    """Judge the first windows of a draw: of each judge the levels that they give."""
    clips = []
    for judge, levels in judges.items():
        for clip, level in zip(windows, levels, strict=False):
            clips.append(replace(clip, clip_id=f"{judge}-{clip.clip_id}", level=level, annotator=judge))
    return Manifest(tuple(clips), Path())


def rates_by(film=FILM, windows=WINDOWS, **judges):
    """Estimate a film's rates from the levels that each judge gives to the first windows of a draw."""
    return correct_rates(film, judgements_by(windows, **judges))


def claims_of_kind(rates, kind):
    """Return the claims of one class that are made of a film's rates."""
    return [claim for claim in rate_claims(rates) if isinstance(claim, kind)]


def shares_in(rates):
    """Claim each judge's share and, as the last one, that of all of them together where there is one."""
    return claims_of_kind(rates, claim_kinds.JudgedShare)


@pytest.mark.parametrize(
    ("by_ab", "by_cd"),
    [
        ([POSITIVE] * 10, [POSITIVE] * 10),
        (
            [POSITIVE] * 4 + [NEGATIVE] * 8,
            [NEGATIVE] * 2 + [POSITIVE] * 4 + [NEGATIVE] * 6,
        ),
    ],
    ids=["alike", "unlike"],
)
def test_a_panels_interval_lies_within_the_mean_of_its_judges(by_ab, by_cd):
    """AB and CD judge the first windows of a film's draw, alike or not; together they are a panel.

    The panel's share is the mean of theirs. So its interval, which the sentence on the share gives, lies
    between the mean of the two lower ends and the mean of the two upper ends.
    """
    rates = rates_by(AB=by_ab, CD=by_cd)

    rate_of_ab, rate_of_cd, rate_of_panel = rates.rates
    assert rate_of_panel.is_of_panel
    mean_low = np.mean([rate_of_ab.low, rate_of_cd.low])
    mean_high = np.mean([rate_of_ab.high, rate_of_cd.high])
    assert mean_low <= rate_of_panel.low <= rate_of_panel.value
    assert rate_of_panel.value <= rate_of_panel.high <= mean_high

    *_, share_of_panel = shares_in(rates)
    for language in LANGUAGES:
        words = Words(language)
        written_interval = words.shares(share_of_panel.interval)
        assert written_interval in phrases.sentence(share_of_panel, words)


SURE = {"en": "S (Sure)", "fr": "S (Sûr)"}
"""The level of the invented film as pages name it."""


def texts_of_figure(rates, language="en"):
    """Return all texts of the page's first figure: a judged share, its interval and what is said of it."""
    figure = FilmView(FILM, "f1", Words(language), top=1, rates=[rates]).figures[0]
    return f"{figure.value} {figure.interval} {figure.what} {figure.note}"


@pytest.mark.parametrize(
    ("language", "agreement"), [("en", "alike as to S (100%)"), ("fr", "même avis quant à S")]
)
def test_judges_with_different_negative_levels_are_alike(language, agreement):
    """Of twelve windows AB calls every other one EN and the rest HN; CD says HN for EN, and EN for HN.

    Both levels are negative, and judges are compared as to the positive level, S, alone: AB and CD are alike
    in all twelve windows. Nor does a text speak of their levels.
    """
    rates = rates_by(AB=["EN", "HN"] * 6, CD=["HN", "EN"] * 6)

    (agreement_of_ab_and_cd,) = claims_of_kind(rates, claim_kinds.PairKappa)
    sentence = phrases.sentence(agreement_of_ab_and_cd, Words(language))
    figure = texts_of_figure(rates, language)

    assert agreement_of_ab_and_cd.positive == "S"
    assert agreement_of_ab_and_cd.n == 12
    assert agreement_of_ab_and_cd.alike == 12
    assert agreement in sentence
    for text in (sentence, figure):
        assert "level" not in text
        assert "niveau" not in text


@st.composite
def levels_of_a_judge(draw, least_sure=10):
    """Draw what a judge calls the first windows of a draw: of `least_sure` or more the judge is sure."""
    n = draw(st.integers(least_sure, N_WINDOWS))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    positive_share = draw(st.floats(0, 1))
    levels = np.where(rng.random(n) < positive_share, POSITIVE, NEGATIVE)
    n_unsure = draw(st.integers(0, n - least_sure))
    unsure_windows = rng.permutation(n)[:n_unsure]
    levels[unsure_windows] = NOT_SURE
    return levels.tolist()


def content_seconds(clip):
    """Count the seconds of a window that are neither black nor credits."""
    cells = cells_of(FILM)
    return cells.content_s[cells.index_of(clip.start_s, clip.end_s)]


def seconds_by_level(levels):
    """Add up the content of the windows that were given each level."""
    seconds = {POSITIVE: 0.0, NEGATIVE: 0.0, NOT_SURE: 0.0}
    for clip, level in zip(WINDOWS, levels, strict=False):
        seconds[level] += content_seconds(clip)
    return seconds


FILM_CONTENT_S = cells_of(FILM).content_s.sum()
"""Seconds of the film that are neither black nor credits."""


@pytest.mark.long
@given(levels_of_a_judge())
def test_the_interval_of_a_share_lies_between_what_the_unjudged_windows_allow(levels):
    """AB judges the first windows of a film; windows that AB is not sure of (NS) are left out of the share.

    The share is least if all windows that are left to judge are negative, and largest if all are positive.
    The interval lies between the two. With one window left or none it reaches from one to the other. With
    more, any one of them may still turn out either way, so it is at least as wide as the longest of them.
    """
    (rate,) = rates_by(AB=levels).rates

    rounding = 1e-6
    seconds_judged = seconds_by_level(levels)
    seconds_without_unsure = FILM_CONTENT_S - seconds_judged[NOT_SURE]
    share_if_rest_is_negative = seconds_judged[POSITIVE] / seconds_without_unsure
    share_if_rest_is_positive = 1 - seconds_judged[NEGATIVE] / seconds_without_unsure
    assert share_if_rest_is_negative - rounding <= rate.low <= rate.value
    assert rate.value <= rate.high <= share_if_rest_is_positive + rounding

    windows_left = WINDOWS[len(levels) :]
    if len(windows_left) <= 1:
        assert rate.low == pytest.approx(share_if_rest_is_negative, abs=rounding)
        assert rate.high == pytest.approx(share_if_rest_is_positive, abs=rounding)
    else:
        longest_s = max(content_seconds(window) for window in windows_left)
        assert rate.high - rate.low >= longest_s / seconds_without_unsure - rounding


@given(levels_of_a_judge())
def test_the_worth_of_a_share_lies_between_judged_and_all_windows(levels):
    """AB judges some of a film's windows; a model that helps makes the interval of AB's share narrower.

    `worth` is how many windows AB would have to judge for as narrow an interval without the model: more than
    AB judged surely, and at most all but those of which AB was not sure. It is None if the model is no help.
    """
    words = Words("en")
    (rate,) = rates_by(AB=levels).rates
    if rate.worth is None:
        return

    worth = round(rate.worth)
    n_judged_surely = rate.n
    n_windows_but_unsure = N_WINDOWS - levels.count(NOT_SURE)
    assert n_judged_surely < worth <= n_windows_but_unsure

    (share,) = shares_in(FilmRates((rate,)))
    note = phrases.judged_share_note(share, [], words)
    assert words.say("worth", worth=worth) in note


@given(levels_of_a_judge())
def test_a_share_leaves_out_unsure_windows_and_their_seconds(levels):
    """AB judges windows of a film; one that AB is not sure of (NS) is neither positive nor negative.

    So the share counts the other windows and their seconds. Programs read it as JSON, and must know that it
    is of the time that AB was sure of, and not of all content.
    """
    n_judged = len(levels)
    n_unsure = levels.count(NOT_SURE)
    unsure_s = seconds_by_level(levels)[NOT_SURE]

    (share,) = shares_in(rates_by(AB=levels))
    as_json = document(share)

    assert share.n == n_judged - n_unsure
    assert share.n_unsure == n_unsure
    assert share.n_windows == N_WINDOWS - n_unsure
    assert share.unsure_s == pytest.approx(unsure_s)
    assert share.time.seconds == pytest.approx(FILM_CONTENT_S - unsure_s)
    assert share.has(claim_kinds.ALL_JUDGED) == (n_judged == N_WINDOWS)

    some_are_unsure = n_unsure > 0
    assert (claim_kinds.NOT_SURE in as_json["conditions"]) == some_are_unsure
    assert (as_json["time"]["part"] == "sure") == some_are_unsure


def assert_names_content_or_unsure_seconds_and_if_many_sure_ones(text, levels, words):
    """Check that a text on AB's share says of which time it is.

    - If AB was sure of all windows: that it is of the film's content.
    - If not: how many seconds are left out, as AB was not sure of them.
    - If these are over a fifth of the content: also how many seconds the share is of.
    """
    unsure_s = seconds_by_level(levels)[NOT_SURE]
    sure_duration, unsure_duration = words.durations(float(FILM_CONTENT_S) - unsure_s, unsure_s)
    if unsure_s > FILM_CONTENT_S / 5:
        assert sure_duration in text
        assert unsure_duration in text
        assert words["of_content"] not in text
    elif NOT_SURE in levels:
        assert words.duration(unsure_s) in text
        assert words["unsure_judge"].format(who="AB") in text
    else:
        assert words["of_content"] in text


@given(levels_of_a_judge(), st.sampled_from(LANGUAGES))
def test_the_sentence_on_a_share_says_what_time_it_is_of(levels, language):
    """AB judges windows of a film, and may not be sure of some (NS). AB's share is without these.

    If AB was sure of all, the sentence says that it is of the film's content. Else it says how many seconds
    are left out, as AB was not sure of them; and where these are over a fifth of the content, it also gives
    the seconds that the share is of.
    """
    words = Words(language)
    (share_of_ab,) = shares_in(rates_by(AB=levels))

    sentence = phrases.sentence(share_of_ab, words)

    assert_names_content_or_unsure_seconds_and_if_many_sure_ones(sentence, levels, words)


@pytest.mark.parametrize("n_unsure", [0, 1, 4], ids=["all sure", "one unsure", "over a fifth unsure"])
def test_the_figure_of_a_share_says_what_time_it_is_of(n_unsure):
    """AB is sure of 14 windows of a film, and not of none, one or four more.

    The share is of all content of the film, or of all but the windows that AB was not sure of.
    """
    levels = SEVEN_OF_14_POSITIVE + [NOT_SURE] * n_unsure

    figure = texts_of_figure(rates_by(AB=levels))

    assert_names_content_or_unsure_seconds_and_if_many_sure_ones(figure, levels, Words("en"))


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", "of the windows that all of them judged, 2 windows"),
        ("fr", "parmi les fenêtres que tous ont jugées, 2 fenêtres"),
    ],
)
def test_the_sentence_on_a_panels_share_says_how_many_windows_it_leaves_out(language, words):
    """AB and CD judge 14 windows. AB is not sure of one, and CD of another one.

    A share of both is of the windows that both were sure of: two are left out.
    """
    by_ab = [NOT_SURE, NEGATIVE] + [POSITIVE, NEGATIVE] * 6
    by_cd = [NEGATIVE, NOT_SURE] + [POSITIVE, NEGATIVE] * 6
    *_, share_of_panel = shares_in(rates_by(AB=by_ab, CD=by_cd))
    assert words in phrases.sentence(share_of_panel, Words(language))


@st.composite
def some_judges(draw):
    """Draw what two or three judges call the first windows of a draw; each judges 12 or more.

    Each calls at least two of the first twelve positive, and is not sure of about three in ten.
    """
    levels_by_judge = {}
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n_judges = draw(st.integers(2, 3))
    for judge in ("AB", "CD", "EF")[:n_judges]:
        n_windows = draw(st.integers(12, N_WINDOWS))
        levels = rng.choice([POSITIVE, NEGATIVE, NOT_SURE], n_windows, p=[0.4, 0.3, 0.3])
        two_of_first_twelve = rng.permutation(12)[:2]
        levels[two_of_first_twelve] = POSITIVE
        levels_by_judge[judge] = levels.tolist()
    return levels_by_judge


class Counts(NamedTuple):
    """Windows that were judged, and those of them that were judged surely."""

    judged: int
    sure: int

    @property
    def unsure(self):
        return self.judged - self.sure


def counts_by_all(levels_by_judge, names):
    """Count the windows that all of these judges judged, and those of which all were sure."""
    windows = list(zip(*[levels_by_judge[name] for name in names], strict=False))
    return Counts(judged=len(windows), sure=sum(NOT_SURE not in levels for levels in windows))


def counts_by_two_or_more(levels_by_judge):
    """Count the windows that two judges or more judged, and those of which two or more were sure."""
    n_judged = n_sure = 0
    for index in range(N_WINDOWS):
        levels = [by_judge[index] for by_judge in levels_by_judge.values() if index < len(by_judge)]
        n_sure_judges = len(levels) - levels.count(NOT_SURE)
        n_judged += len(levels) >= 2
        n_sure += n_sure_judges >= 2
    return Counts(judged=n_judged, sure=n_sure)


def rates_of_some(levels_by_judge):
    """Estimate the rates of some judges; the example is discarded if none was sure of ten windows.

    Then no judge has a share.
    """
    n_sure = [counts_by_all(levels_by_judge, [judge]).sure for judge in levels_by_judge]
    assume(max(n_sure) >= 10)
    return rates_by(**levels_by_judge)


def integers_in(text):
    """Return all whole numbers in a text."""
    return set(re.findall(r"\d+", text))


def test_judges_who_were_never_sure_of_ten_windows_have_no_rates():
    """A share needs ten sure windows, and both judges were sure of nine of the twelve that they judged."""
    nine_of_twelve = SEVEN_OF_14_POSITIVE[:9] + [NOT_SURE] * 3
    with pytest.raises(FilmError):
        rates_by(AB=nine_of_twelve, CD=nine_of_twelve)


@given(some_judges())
def test_shares_and_kappas_count_the_windows_that_all_their_judges_were_sure_of(levels_by_judge):
    """Two or three judges call windows positive or negative, or are not sure of them.

    A share is by one judge or more, and a kappa (how far they agree) by two. Each counts the windows that all
    of its judges judged surely (`n`); windows that all of them judged, but not all surely, are counted apart
    (`n_unsure`). If there are any, the claim has this as a condition and is of the part "sure" of the film's
    time, and not of all its content.
    """
    rates = rates_of_some(levels_by_judge)
    kappas = claims_of_kind(rates, claim_kinds.PairKappa)

    for share_or_kappa in [*shares_in(rates), *kappas]:
        windows_judged_by_all = counts_by_all(levels_by_judge, names=share_or_kappa.who)
        some_are_unsure = windows_judged_by_all.unsure > 0
        assert share_or_kappa.n == windows_judged_by_all.sure
        assert share_or_kappa.n_unsure == windows_judged_by_all.unsure
        assert share_or_kappa.has(claim_kinds.NOT_SURE) == some_are_unsure
        assert (share_or_kappa.time.part == "sure") == some_are_unsure


@given(some_judges())
def test_the_sentence_on_a_kappa_counts_the_windows_that_its_judges_were_not_sure_of(levels_by_judge):
    """Two or three judges judge windows; of some that two of them judged, one or both were not sure."""
    for kappa in claims_of_kind(rates_of_some(levels_by_judge), claim_kinds.PairKappa):
        if kappa.n_unsure > 0:
            sentence = phrases.sentence(kappa, Words("en"))
            assert str(kappa.n_unsure) in integers_in(sentence)


@given(some_judges(), st.sampled_from(LANGUAGES))
def test_alpha_counts_the_windows_that_two_judges_or_more_were_sure_of(levels_by_judge, language):
    """Alpha measures how far three judges or more agree; a window counts if two or more were sure of it.

    Windows that two or more judged, but of which at most one was sure, are counted apart, and the sentence
    on alpha says how many these are. (Of two judges there is no claim on alpha, and nothing to check.)
    """
    judged_by_two_or_more = counts_by_two_or_more(levels_by_judge)

    claims_on_alpha = claims_of_kind(rates_of_some(levels_by_judge), claim_kinds.PanelAgreement)

    for alpha in claims_on_alpha:
        assert alpha.n_windows == judged_by_two_or_more.sure
        assert alpha.n_unsure == judged_by_two_or_more.unsure
        if judged_by_two_or_more.unsure > 0:
            sentence = phrases.sentence(alpha, Words(language))
            assert str(judged_by_two_or_more.unsure) in integers_in(sentence)


@given(some_judges(), st.sampled_from(LANGUAGES))
def test_a_judge_without_a_share_is_told_what_was_judged_and_is_left(levels_by_judge, language):
    """Two or three judges judge windows of a film, and are not sure of some.

    Judges, alone or together, have no share if fewer than ten windows were judged surely by all of them. Then
    a claim says how many they judged, how many of these surely, and how many are left to judge.
    """
    rates = rates_of_some(levels_by_judge)

    for no_share in claims_of_kind(rates, claim_kinds.NoJudgedShare):
        windows_judged_by_all = counts_by_all(levels_by_judge, names=no_share.who)
        n_judged = windows_judged_by_all.judged
        n_sure = windows_judged_by_all.sure
        assert no_share.judged == n_judged
        assert no_share.sure == n_sure
        assert no_share.left == N_WINDOWS - n_judged
        assert no_share.left > 0

        numbers_in_sentence = integers_in(phrases.sentence(no_share, Words(language)))
        assert str(n_judged) in numbers_in_sentence
        assert str(n_sure) in numbers_in_sentence


def test_a_share_of_little_sure_time_is_not_of_the_film():
    """AB calls the first window of a short film positive, and is not sure of the only other one.

    All that AB was sure of is positive: 100%. As over a fifth of the film is left out of it, "100% of the
    film" would mislead.
    """
    film = fake_scored_film(n_rows=8, duration_s=120.0)
    windows = all_windows_of(film)
    assert len(windows) == 2

    (share,) = shares_in(rates_by(film, windows, AB=[POSITIVE, NOT_SURE]))
    sentence = phrases.sentence(share, Words("en"))

    sure_s = share.time.seconds
    unsure_s = share.unsure_s
    assert unsure_s > (sure_s + unsure_s) / 5
    assert f"100% of the {sure_s:.0f} s that AB was sure of, without 1 window ({unsure_s:.0f} s)" in sentence
    assert "of the film" not in sentence


def test_the_time_of_a_share_is_called_left_without_unsure_windows_if_a_window_is_not_judged():
    """AB was sure of 12 windows, not sure of nearly all others, and has not judged the last.

    AB's share is an estimate for all windows but those that AB was not sure of. The last one is among them,
    although AB may turn out to be unsure of it: so the sentence does not say "that AB was sure of", but "that
    are left without" the unsure windows.
    """
    n_judged = N_WINDOWS - 1
    by_ab = [POSITIVE] * 12 + [NOT_SURE] * (n_judged - 12)
    (share_of_ab,) = shares_in(rates_by(AB=by_ab))
    assert "that are left without" in phrases.sentence(share_of_ab, Words("en"))


@pytest.mark.parametrize(("n_sure", "are_enough"), [(1, False), (9, False), (10, True)])
def test_kappa_and_alpha_need_ten_windows(n_sure, are_enough):
    """Three judges judge all windows of a film alike, and are sure of the first 1, 9 or 10 of them alone.

    Kappa says how far two judges agree, here each of three pairs, and alpha how far all three do. Either is
    given if the judges were sure of ten windows or more.
    """
    by_each = SEVEN_OF_14_POSITIVE[:n_sure] + [NOT_SURE] * (N_WINDOWS - n_sure)

    rates = rates_by(AB=by_each, CD=by_each, EF=by_each)

    alpha = rates.alpha
    assert (alpha is not None) == are_enough
    kappas = claims_of_kind(rates, claim_kinds.PairKappa)
    assert len(kappas) == 3
    for kappa in kappas:
        assert kappa.n == n_sure
        assert (kappa.number is not None) == are_enough
        assert kappa.has(claim_kinds.TOO_FEW) == (not are_enough)
        beginning_of_interval = " ["  # as in "0.80 [0.50, 0.95]"
        assert (beginning_of_interval in phrases.sentence(kappa, Words("en"))) == are_enough


def test_a_stored_kappa_of_one_window_is_not_said():
    """A file may hold a kappa of one window, which a version of this program wrote: it means nothing."""
    stored = JudgesAgreement(annotators=["AB", "CD"], n=1, alike=1, kappa=0.0, low=-0.82, high=0.52)
    claim = pair_agreement(stored, "S")
    assert claim.number is None
    sentence = phrases.sentence(claim, Words("en"))
    assert sentence == "AB and CD: 1 window judged by both, too few for kappa, which needs 10."


NO_SHARE_OF_CD = claim_kinds.NoJudgedShare(
    who=("CD",), what="share", time=claim_kinds.ClaimTime("content"), judged=1, sure=1, left=29, least=10
)
"""CD judged one window, surely, of a film of 30."""


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_sentence_on_a_missing_share_says_that_ten_sure_windows_are_needed_or_all_of_a_short_film(
    language,
):
    """CD judged one window surely, too few for a share.

    Of a film of 30 windows, 29 of which are left, ten judged surely are needed, or all. Of a film of two
    windows, one of which is left, both are needed.
    """
    words = Words(language)
    of_30_windows = replace(NO_SHARE_OF_CD, judged=1, left=29, least=10)
    of_two_windows = replace(NO_SHARE_OF_CD, judged=1, left=1, least=2)

    assert words.say("windows_needed", least=10, all=30) in phrases.sentence(of_30_windows, words)
    assert words.say("windows_needed_all_1", all=2) in phrases.sentence(of_two_windows, words)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("annotator", "advice"), [(("AB",), "first_elsewhere_judge"), (("AB", "CD"), "first_elsewhere_panel")]
)
def test_a_judge_under_another_definition_is_told_where_to_begin(annotator, advice, language):
    """No window of these judges counts: they may have judged under another definition, a wording of levels.

    The advice is to begin with the list's first windows. It is given only if there are several definitions:
    then a claim names its own by the digest.
    """
    words = Words(language)
    under_the_only_definition = replace(NO_SHARE_OF_CD, who=annotator, judged=0, sure=0, left=30)
    under_one_of_several = replace(under_the_only_definition, definition="f793a5b5a5d4")
    assert words[advice] in phrases.sentence(under_one_of_several, words)
    assert words[advice] not in phrases.sentence(under_the_only_definition, words)


def share_of(names, number, **changes):
    """Claim the share of some judges of the same ten windows, 5 of which each called positive."""
    (counted,) = shares_in(rates_by(AB=[POSITIVE] * N_WINDOWS))
    interval = claim_kinds.Bounds(low=0.1, high=0.9, level=0.95)
    positives = (5,) * len(names)
    return replace(counted, who=names, number=number, interval=interval, positives=positives, n=10, **changes)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("number", "changes", "explanations"),
    [
        (0.5, {}, []),
        (0.53, {}, ["windows_by_content"]),
        (0.53, {"is_corrected": True}, ["windows_corrected"]),
        (0.53, {"is_corrected": True, "is_of_labels": True, "model": "vlm"}, ["windows_corrected_by_labels"]),
    ],
    ids=["the quotient of its counts", "by the windows' lengths", "by a model", "by labels of a program"],
)
def test_a_share_unlike_its_counts_is_explained(number, changes, explanations, language):
    """AB called 5 of 10 windows positive, which readers would take for a share of .5.

    The share is of the time, and windows differ in length; a model, or a program's labels, may correct it.
    """
    words = Words(language)
    share = share_of(("AB",), number, **changes)
    expected = [words.say(key, who="vlm") for key in explanations]
    assert phrases.why_not_as_computed([share], words) == expected


@pytest.mark.parametrize(("joint_share", "is_explained"), [(0.51, False), (0.5, True)])
def test_a_joint_share_that_is_not_the_mean_is_explained(joint_share, is_explained):
    """AB's share is .53 and CD's .49, of which the mean is .51.

    A share of both of .5 looks wrong until the reader knows that each is an estimate.
    """
    words = Words("en")
    shares = [share_of(("AB", "CD"), joint_share), share_of(("AB",), 0.53), share_of(("CD",), 0.49)]
    explanations = phrases.why_not_as_computed(shares, words)
    assert (words["each_estimated"] in explanations) == is_explained


@pytest.mark.parametrize(("n_by_ab", "n_by_cd", "is_said"), [(12, 12, False), (14, 10, True)])
def test_a_figure_says_if_a_joint_share_is_of_fewer_windows(n_by_ab, n_by_cd, is_said):
    """AB and CD judge 12 windows each, or AB 14 and CD 10 of them.

    A share of both is of the windows that both judged: with 14 and 10 it is of fewer than AB's own, and the
    figure says why the two differ.
    """
    rates = rates_by(AB=SEVEN_OF_14_POSITIVE[:n_by_ab], CD=SEVEN_OF_14_POSITIVE[:n_by_cd])
    why_it_differs = Words("en")["own_shares"]
    assert (why_it_differs in texts_of_figure(rates)) == is_said


def test_the_terminal_says_that_a_joint_share_is_of_common_windows(tmp_path, capsys):
    """AB judges 14 windows, 7 of them positive, and CD the first ten of them.

    The share of both is of these ten, and need not be the mean of the two shares of their own: the terminal
    says why. Beside AB's own share it says that it rests on 7 positive windows of 14.
    """
    FILM.write(tmp_path / "f1")
    judgements = judgements_by(AB=[POSITIVE, NEGATIVE] * 7, CD=[NEGATIVE, POSITIVE] * 5)
    judgements = replace(judgements, codebook=builtin_codebook("obygaze12"))
    write_manifest(judgements, tmp_path / "judgements.csv")

    with pytest.raises(SystemExit) as ended:  # as every command ends
        main(["film", "rate", str(tmp_path / "f1"), str(tmp_path / "judgements.csv")])

    assert not ended.value.code
    printed = capsys.readouterr().out
    why_the_joint_share_differs = Words("en")["own_shares"]
    assert why_the_joint_share_differs in printed
    assert f", of {N_WINDOWS} that do not overlap (positive: 7 of 14)" in printed


@pytest.mark.parametrize("n_sure", [1, 9])
def test_few_sure_windows_have_a_share_if_all_were_judged(n_sure):
    """AB judged all windows, called the first ones positive and was not sure of the others.

    The share is counted over the sure ones, and so has no interval.
    """
    n_unsure = N_WINDOWS - n_sure
    (claim,) = shares_in(rates_by(AB=[POSITIVE] * n_sure + [NOT_SURE] * n_unsure))

    assert claim.number == 1.0
    assert claim.interval is None
    assert claim.n == n_sure
    assert claim.n_windows == n_sure
    assert claim.has(claim_kinds.ALL_JUDGED)


@pytest.mark.parametrize("n_sure", [1, 9])
def test_few_sure_windows_have_no_share_if_one_is_left_to_judge(n_sure):
    """AB judged all windows of a film but one, called 1 or 9 of them positive, and was not sure of the rest.

    A share is estimated from ten windows or more that are judged surely; fewer suffice only if none is left
    to judge. The last window is left, so there is an error, which says how many windows AB judged.
    """
    n_judged = N_WINDOWS - 1
    by_ab = [POSITIVE] * n_sure + [NOT_SURE] * (n_judged - n_sure)
    with pytest.raises(FilmError, match=f"{n_judged} windows"):
        rates_by(AB=by_ab)


def test_a_judge_who_was_never_sure_is_told_to_judge_more_if_windows_are_left():
    """AB judged all windows of a film but one, and was sure of none, so that there is no share.

    The command `film next` would choose the last window: the error names it.
    """
    with pytest.raises(FilmError, match="film next"):
        rates_by(AB=[NOT_SURE] * (N_WINDOWS - 1))


def test_a_judge_who_was_never_sure_of_any_window_is_not_told_to_judge_more():
    """AB judged all windows of a film and was sure of none, so that there is no share.

    The error has their number, and does not name `film next`, which would choose more: none is left.
    """
    all_unsure = [NOT_SURE] * N_WINDOWS
    with pytest.raises(FilmError, match=f"{N_WINDOWS}") as refused:
        rates_by(AB=all_unsure)
    assert "film next" not in str(refused.value)


@st.composite
def calls_of_three(draw):
    """Draw whether each of three judges calls each of 14 windows positive.

    CD differs from AB at few windows or at every other one. EF calls windows as AB does, or the opposite, or
    all of them positive, or any at random.
    """
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    by_ab = rng.random(14) < 0.5
    share_that_differs = rng.choice([0.02, 0.5])
    differs = rng.random(14) < share_that_differs
    by_cd = np.where(differs, ~by_ab, by_ab)
    all_positive = np.ones(14, bool)
    at_random = rng.random(14) < 0.5
    by_ef = (by_ab, ~by_ab, all_positive, at_random)[rng.integers(4)]
    return {"AB": by_ab, "CD": by_cd, "EF": by_ef}


def rates_of_calls(calls):
    """Estimate rates where each judge calls windows positive or negative."""
    return rates_by(
        **{judge: np.where(is_positive, POSITIVE, NEGATIVE) for judge, is_positive in calls.items()}
    )


def doubtful_pairs(rates, doubt):
    """Name the pairs of judges whose agreement has a doubt: "AB–CD"."""
    return ["–".join(pair.who) for pair in claims_of_kind(rates, claim_kinds.PairKappa) if pair.has(doubt)]


def text_on_doubt_of_all(doubt, words):
    """Return what the sentence on a panel's share says of a doubt that all pairs of judges have."""
    return words[phrases.PANEL_DOUBTS[doubt]]


def text_on_doubt_of_some(doubt, pairs, words):
    """Return what the sentence on a panel's share says of a doubt that these pairs alone have."""
    return words.say(phrases.PANEL_DOUBTS[doubt], pairs=words.listed(pairs))


@pytest.mark.parametrize(
    ("doubt_of_all", "doubt_of_some"),
    [
        pytest.param(claim_kinds.AGREE_LESS, claim_kinds.SOME_LESS, id="they agree less than by chance"),
        pytest.param(claim_kinds.AGREE_BY_CHANCE, claim_kinds.SOME_BY_CHANCE, id="they may agree by chance"),
        pytest.param(
            claim_kinds.UNDEFINED, claim_kinds.SOME_UNDEFINED, id="it is undefined how far they agree"
        ),
    ],
)
@given(calls_of_three(), st.sampled_from(LANGUAGES))
def test_the_sentence_on_a_panels_share_names_the_pairs_of_judges_in_doubt_unless_all_are(
    doubt_of_all, doubt_of_some, calls, language
):
    """A panel of three judges has three pairs. Of each pair the agreement may be in doubt in one way.

    If all three pairs are, the claim on the panel's share has `doubt_of_all` as a condition, and its sentence
    says so of the panel. If one or two are, it has `doubt_of_some`, and the sentence names them.
    """
    words = Words(language)
    rates = rates_of_calls(calls)
    assert len(claims_of_kind(rates, claim_kinds.PairKappa)) == 3
    *_, share_of_panel = shares_in(rates)

    sentence = phrases.judged_share_sentence(share_of_panel, words)

    pairs_in_doubt = doubtful_pairs(rates, doubt_of_all)
    are_all_in_doubt = len(pairs_in_doubt) == 3
    are_some_in_doubt = len(pairs_in_doubt) in (1, 2)
    assert share_of_panel.has(doubt_of_all) == are_all_in_doubt
    assert share_of_panel.has(doubt_of_some) == are_some_in_doubt
    says_so_of_the_panel = text_on_doubt_of_all(doubt_of_all, words) in sentence
    assert says_so_of_the_panel == are_all_in_doubt
    if are_some_in_doubt:
        assert text_on_doubt_of_some(doubt_of_some, pairs_in_doubt, words) in sentence


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_sentence_on_kappa_has_its_level_and_that_on_alpha_says_nothing_of_chance(language):
    """Three judges agree on all of 14 windows, 7 of them positive; kappa is of two judges, alpha of all.

    Kappa has an interval, and its sentence says that this is of 95 %. Alpha has none by which chance could be
    excluded: though it is 1, its sentence says nothing of chance.
    """
    words = Words(language)
    rates = rates_by(AB=SEVEN_OF_14_POSITIVE, CD=SEVEN_OF_14_POSITIVE, EF=SEVEN_OF_14_POSITIVE)
    (alpha,) = claims_of_kind(rates, claim_kinds.PanelAgreement)
    kappas = claims_of_kind(rates, claim_kinds.PairKappa)

    level_of_interval = words.share(0.95)
    for kappa in kappas:
        assert level_of_interval in phrases.sentence(kappa, words)
    assert rates.alpha.value == 1
    assert re.search("chance|hasard", phrases.sentence(alpha, words)) is None


def rates_of_four_without_a_share_together():
    """AB, CD and EF judge 14 windows, and GH judges 3, so that all four together have too few."""
    return rates_by(
        AB=SEVEN_OF_14_POSITIVE,
        CD=[POSITIVE] * 6 + [NEGATIVE] * 8,
        EF=[POSITIVE] * 10 + [NEGATIVE] * 4,
        GH=[NEGATIVE] * 3,
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_without_a_joint_share_a_page_shows_that_of_each_judge_and_how_they_agree(language):
    """AB, CD and EF judged 14 windows each, and GH three: too few for a share of GH, and for one of all four.

    The page's figure has the share of each of the three, and every other sentence on the judges: on the
    shares that are missing, and on how far the judges agree.
    """
    words = Words(language)
    rates = rates_of_four_without_a_share_together()
    judges_without_a_share = [too_few.judges for too_few in rates.too_few]
    assert judges_without_a_share == [["GH"], ["AB", "CD", "EF", "GH"]]

    figure = texts_of_figure(rates, language)

    for share in shares_in(rates):
        (judge,) = share.who
        assert f"{judge} {words.share(share.number)}" in figure
        sentence_on_share = phrases.judged_share_sentence(share, words)
        assert sentence_on_share.removesuffix(".") in figure
    other_claims = [claim for claim in rate_claims(rates) if not isinstance(claim, claim_kinds.JudgedShare)]
    for claim in other_claims:
        sentence = phrases.sentence(claim, words)
        assert sentence.removesuffix(".") in figure


def rates_beside_three_others(by_ab):
    """Estimate rates of AB beside CD and EF, each sure of 14 windows, and GH, who judged three: too few."""
    return rates_by(AB=by_ab, CD=SEVEN_OF_14_POSITIVE, EF=SEVEN_OF_14_POSITIVE, GH=[NEGATIVE] * 3)


@pytest.mark.parametrize(
    ("language", "of_film"),
    [("en", "of the film without black and credits, "), ("fr", "du film sans noir ni générique, ")],
    ids=LANGUAGES,
)
def test_shares_beside_each_other_say_that_all_are_of_the_film(language, of_film):
    """AB, CD and EF judged 14 windows surely, and GH three, too few.

    So three shares are shown beside each other, all of the film without black and credits.
    """
    figure = texts_of_figure(rates_beside_three_others(by_ab=SEVEN_OF_14_POSITIVE), language)
    assert of_film in figure


@pytest.mark.parametrize(
    ("language", "without_unsure_windows", "of"),
    [
        ("en", "of the film without black, credits and windows ", "of"),
        ("fr", "du film sans noir, ni générique, ni fenêtres ", "de"),
    ],
    ids=LANGUAGES,
)
def test_the_figure_of_judged_shares_says_how_much_time_a_share_without_unsure_windows_is_of(
    language, without_unsure_windows, of
):
    """AB is sure of ten of 14 windows. CD and EF are sure of all 14. GH judged three, too few for a share.

    The figure lists the shares of AB, CD and EF. AB's is of less time than the others', and this time is
    written beside it, as in "AB 50% of 10 min".
    """
    words = Words(language)
    first_ten_surely = [POSITIVE, NEGATIVE] * 5 + [NOT_SURE] * 4
    rates_of_four = rates_beside_three_others(by_ab=first_ten_surely)
    share_of_ab, share_of_cd, _share_of_ef = shares_in(rates_of_four)

    figure = texts_of_figure(rates_of_four, language)

    sure_time_of_ab = words.duration(share_of_ab.time.seconds)
    by_ab = f"AB {words.share(share_of_ab.number)} {of} {sure_time_of_ab}"
    by_cd = f"CD {words.share(share_of_cd.number)}"
    assert f"{by_ab} · {by_cd} · EF" in figure
    assert without_unsure_windows in figure


JUDGES = ["AB", "CD", "EF", "GH", "IJ", "KL"]


def rates_of_judges_of_14_windows(n_judges, seed):
    """Let AB, CD, ... (up to six) each call another share of the same 14 windows positive."""
    rng = np.random.default_rng(seed)
    names = JUDGES[:n_judges]
    shares = rng.random(n_judges)
    levels_by_judge = {}
    for name, share in zip(names, shares, strict=True):
        levels_by_judge[name] = np.where(rng.random(14) < share, POSITIVE, NEGATIVE)
    return rates_by(**levels_by_judge)


def shares_of_each_judge(rates):
    """Claim each judge's share, but not the one of all of them together."""
    return [share for share in shares_in(rates) if not share.is_of_panel]


SEEDS = st.integers(0, 10**6)


@given(seed=SEEDS, language=st.sampled_from(LANGUAGES))
def test_the_figure_of_one_judge_says_what_the_share_is(seed, language):
    """AB alone judged 14 windows. The share is what AB would call positive: its sentence names AB."""
    words = Words(language)
    rates = rates_of_judges_of_14_windows(n_judges=1, seed=seed)
    (share_of_ab,) = shares_of_each_judge(rates)

    figure = texts_of_figure(rates, language)

    assert "AB" in phrases.judged_share_sentence(share_of_ab, words)
    assert phrases.judged_share_what(share_of_ab, SURE[language], words) in figure


@pytest.mark.long
@given(n_judges=st.integers(2, 4), seed=SEEDS, language=st.sampled_from(LANGUAGES))
def test_a_figure_has_a_sentence_on_each_of_up_to_four_shares(n_judges, seed, language):
    """Two to four judges judged the same 14 windows. The figure has the sentence on the share of each.

    It names the judge: the share is what this person would call positive, not the film's.
    """
    words = Words(language)
    rates = rates_of_judges_of_14_windows(n_judges, seed)
    shares = shares_of_each_judge(rates)
    assert len(shares) == n_judges

    figure = texts_of_figure(rates, language)

    for share in shares:
        (judge,) = share.who
        sentence = phrases.judged_share_sentence(share, words)
        assert judge in sentence
        assert sentence in figure


@pytest.mark.long
@given(n_judges=st.integers(5, 6), seed=SEEDS, language=st.sampled_from(LANGUAGES))
def test_a_figure_has_three_of_more_than_four_shares_and_the_range_of_the_others(n_judges, seed, language):
    """Five or six judges judged the same 14 windows, and so many sentences would fill the figure.

    It has those on the first three shares, and the lowest and the highest of the others.
    """
    words = Words(language)
    rates = rates_of_judges_of_14_windows(n_judges, seed)
    shares = shares_of_each_judge(rates)
    assert len(shares) == n_judges
    first_three, others = shares[:3], shares[3:]

    figure = texts_of_figure(rates, language)

    for share in first_three:
        (judge,) = share.who
        sentence = phrases.judged_share_sentence(share, words)
        assert judge in sentence
        assert sentence in figure
    for share in others:
        assert phrases.judged_share_sentence(share, words) not in figure
    numbers_of_others = [share.number for share in others]
    range_of_others = phrases.other_shares_sentence(others, words)
    assert range_of_others in figure
    assert words.share(min(numbers_of_others)) in range_of_others
    assert words.share(max(numbers_of_others)) in range_of_others


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_calls_the_mean_of_a_panel_a_mean(language):
    """AB and CD judge all windows of a film: AB calls every other one positive, and CD none.

    The share of both, which is the mean of theirs, is what neither would mark: the figure calls it a mean,
    and names both.
    """
    words = Words(language)
    every_other_one = ([POSITIVE, NEGATIVE] * N_WINDOWS)[:N_WINDOWS]
    rates = rates_by(AB=every_other_one, CD=[NEGATIVE] * N_WINDOWS)
    (share_of_panel,) = [claim for claim in shares_in(rates) if claim.is_of_panel]

    figure = texts_of_figure(rates, language)

    mean_of_both = phrases.judged_share_what(share_of_panel, SURE[language], words)
    assert mean_of_both in figure
    assert words.listed(["AB", "CD"]) in mean_of_both
    both_judged_all_windows = words["judged_all_panel"]
    assert both_judged_all_windows in figure


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_models_expectation_is_of_the_time_that_it_can_judge(language):
    """The first 15 % of the film are unlike the model's training clips, and have no probability (p).

    AB judges twelve windows of the film. The sentence on AB's share ends with what the model expects, after a
    semicolon, and says that this is of the time that has a probability, without black and credits.
    """
    words = Words(language)
    film = fake_scored_film(n_rows=60, duration_s=900.0, unlike_parts=((0.0, 0.15),))
    twelve_windows = choose_next([film], 12, blind=True)
    rows = film.rows()
    has_probability = rows["p"].notna() & ~rows["flags"].str.contains("black|credits")
    seconds_with_probability = (rows["end_s"] - rows["start_s"])[has_probability].sum()

    (share,) = shares_in(rates_by(film, twelve_windows, AB=[POSITIVE, NEGATIVE] * 6))

    assert share.expected_s == pytest.approx(seconds_with_probability)
    *_, what_the_model_expects = phrases.sentence(share, words).split(";")
    assert words.duration(seconds_with_probability) in what_the_model_expects


def decision_of_ab(*, is_blind, has_score):
    """Claim that AB called ten seconds Sure, where the model has a score or none."""
    return decision(
        ["AB"],
        "Sure",
        claim_kinds.ClaimTime("span", seconds=10.0, start_s=0.0, end_s=10.0),
        is_blind=is_blind,
        has_score=has_score,
        is_agreed=False,
    )


def test_a_decision_is_blind_in_sight_or_without_a_score():
    """Where the model has no score, a judge can neither see it nor be blind to it: a third condition.

    Its sentence says nothing of a score.
    """
    blind = decision_of_ab(is_blind=True, has_score=False)
    in_sight = decision_of_ab(is_blind=False, has_score=True)
    without_score = decision_of_ab(is_blind=False, has_score=False)

    assert blind.conditions == (claim_kinds.BLIND,)
    assert in_sight.conditions == (claim_kinds.IN_SIGHT,)
    assert without_score.conditions == (claim_kinds.NO_SCORE,)
    for language in LANGUAGES:
        on_blind, on_in_sight, on_without_score = sentences([blind, in_sight, without_score], language)
        assert len({on_blind, on_in_sight, on_without_score}) == 3
        assert "score" not in on_without_score


# --- of several films
# ---------------------------------------------------------------------------
@pytest.fixture(scope="module")
def ten_films_and_judgements():
    """Ten films, m1980 to m1989, and AB's blind judgements of 14 windows of each, not sure of the fifth."""
    films = [
        fake_scored_film(f"m{year}", year=year, n_rows=60, duration_s=900.0, seed=year)
        for year in range(1980, 1990)
    ]
    rng = np.random.default_rng(0)
    clips = []
    for film in films:
        for index, clip in enumerate(choose_next([film], 14, blind=True)):
            level = NOT_SURE if index == 4 else str(rng.choice([POSITIVE, NEGATIVE]))
            clips.append(replace(clip, level=level, annotator="AB"))
    return films, Manifest(tuple(clips), Path())


@pytest.fixture(scope="module")
def comparison_of_ten_films(ten_films_and_judgements):
    """The ten films as one group."""
    return compare_films(*ten_films_and_judgements)


@pytest.fixture(scope="module")
def compared_by_year(ten_films_and_judgements):
    """The ten films as one group, with the trend along their years."""
    return compare_films(*ten_films_and_judgements, trend="year")


def year_of(clip):
    return int(clip.movie.removeprefix("m"))


def judged_by(judge, clip, level=None):
    """Let a judge give a window a level, or the one that it has."""
    return replace(clip, annotator=judge, clip_id=f"{judge}-{clip.clip_id}", level=level or clip.level)


def group_shares(comparison):
    """Claim the share of each group of films."""
    return [claim for claim in group_claims(comparison) if isinstance(claim, claim_kinds.GroupShare)]


def all_windows_of(film):
    """Return all windows of a film that can be drawn, in the order of the draw."""
    return choose_next([film], 10**6, blind=True)


@pytest.mark.long
def test_a_group_counts_a_window_if_one_of_its_judges_was_sure(ten_films_and_judgements):
    """AB judged 14 windows of each of ten films, and was not sure of one of each.

    CD is sure of this one, too: it counts, for CD alone.
    """
    films, by_ab = ten_films_and_judgements
    by_cd = []
    for clip in by_ab:
        level = NEGATIVE if clip.level == NOT_SURE else clip.level
        by_cd.append(judged_by("CD", clip, level))

    (share_of_both,) = group_shares(compare_films(films, by_ab.with_clips([*by_ab, *by_cd])))
    (share_of_cd,) = group_shares(compare_films(films, by_ab.with_clips(by_cd)))

    assert share_of_both.n_windows == 140  # 14 of each of ten films
    assert share_of_both.has(claim_kinds.NOT_SURE)
    assert not share_of_cd.has(claim_kinds.NOT_SURE)


def text_keys_of(notes):
    """Return the names of the texts that notes are written by, as in notes.en.toml."""
    return [note.key for note in notes if isinstance(note, Message)]


def with_a_second_judge_of_few_windows(by_ab):
    """Let CD judge the first nine windows of each film as AB does, and be sure of no later one.

    AB is not sure of the fifth, and so CD is sure of eight: too few for a share of a film.
    """
    by_cd = []
    for clip in by_ab:
        is_among_first_nine = int(clip.extras["place"]) <= 9
        by_cd.append(judged_by("CD", clip, clip.level if is_among_first_nine else NOT_SURE))
    return by_ab.with_clips([*by_ab, *by_cd])


@pytest.mark.parametrize(
    "kind_of_claim", [claim_kinds.GroupShare, claim_kinds.GroupChange], ids=["share", "trend"]
)
def test_shares_of_groups_and_their_trend_say_that_unsure_windows_are_left_out(
    compared_by_year, kind_of_claim
):
    """AB was not sure of one window of each of ten films: the numbers are of the time that AB was sure of."""
    claims = [claim for claim in group_claims(compared_by_year) if isinstance(claim, kind_of_claim)]
    assert claims
    for claim in claims:
        assert claim.has(claim_kinds.NOT_SURE)
        assert claim.time.part == "sure"


@pytest.fixture(scope="module")
def compared_with_cd_left_out(ten_films_and_judgements):
    """Ten films of which the share is AB's alone, as CD was sure of too few windows."""
    films, by_ab = ten_films_and_judgements
    compared = compare_films(films, with_a_second_judge_of_few_windows(by_ab), trend="year")
    assert {film.judges_left_out for film in compared.films} == {("CD",)}
    return compared


@pytest.mark.long
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_share_of_each_film_says_that_a_judge_is_left_out(
    compared_by_year, compared_with_cd_left_out, language
):
    """AB judged 14 windows of each of ten films; CD was sure of too few of them, so that shares are AB's.

    The note on each film, and the text at its dot in the figure, say that it is not known what both would
    mark together. In the figure of films that AB judged alone there is nothing to say.
    """
    words = Words(language)
    not_of_both = words.say("judged_together", who=words.listed(["AB", "CD"]))

    figure = years_figure(compared_with_cd_left_out, words, is_own_file=True)
    figure_of_ab_alone = years_figure(compared_by_year, words, is_own_file=True)

    for film in compared_with_cd_left_out.films:
        share = compared_share(film, compared_with_cd_left_out)
        assert not_of_both in phrases.film_share_note(share, words)
    assert figure.count(not_of_both) == 10
    assert not_of_both not in figure_of_ab_alone


def test_report_and_page_on_compared_films_say_that_a_judge_is_left_out(compared_with_cd_left_out):
    """AB and CD judged ten films. CD was sure of eight windows of each, too few: the shares are AB's alone.

    A note, `note_judges`, says why judges are left out, and the report's table calls them "AB (without CD)".
    """
    report = comparison_report(compared_with_cd_left_out)
    page = comparison_page(compared_with_cd_left_out)

    assert "note_judges" in text_keys_of(report.notes)
    text_of_report = plain(report)
    assert "AB (without CD)" in text_of_report
    assert html.escape(texts("en")["note_judges"]) in page


def test_a_report_on_films_that_one_person_judged_has_no_note_on_judges_left_out(compared_by_year):
    """AB alone judged the ten films. The note "note_judges" would explain that some judges do not count."""
    keys_of_notes = text_keys_of(comparison_report(compared_by_year).notes)
    assert "note_judges" not in keys_of_notes


@pytest.mark.parametrize("language", LANGUAGES)
def test_only_shares_of_a_level_leave_out_unsure_windows(compared_by_year, language):
    """Ten films are compared by the share of the level S, or as if S were a concept.

    A window counts for a concept even if its judge was not sure of its level: the note on shares and the
    legend say so by other texts.
    """
    words = Words(language)
    positive = replace(compared_by_year.positive, is_concept=True)
    of_concept = replace(compared_by_year, positive=positive)

    note_on_level, *_ = comparison_report(compared_by_year).notes
    note_on_concept, *_ = comparison_report(of_concept).notes

    assert text_keys_of([note_on_level, note_on_concept]) == ["note_share", "note_share_concept"]
    assert "not sure" not in str(note_on_concept)
    assert words["years_dots"] in years_legend(compared_by_year, words)
    assert words["years_dots_concept"] in years_legend(of_concept, words)


def test_the_share_of_a_group_counts_sure_windows(comparison_of_ten_films):
    """AB judged 14 windows of each of ten films, and was not sure of one of each.

    The share is of the 13 others of each film, and the claim says that unsure windows are left out.
    """
    (share,) = group_shares(comparison_of_ten_films)
    assert share.n_windows == 10 * 13
    assert share.has(claim_kinds.NOT_SURE)
    assert share.time.part == "sure"


def test_the_worth_of_a_groups_share_is_none_or_more_windows_than_were_judged(comparison_of_ten_films):
    """AB was sure of 13 windows of each of ten films, which are one group and have one share.

    Its worth is how many windows would have to be judged without the model for as narrow an interval. That is
    more than were judged; where it is not, the model is no help, and None is said instead of a number.
    """
    (share,) = group_shares(comparison_of_ten_films)
    model_is_no_help = share.worth is None
    assert model_is_no_help or round(share.worth) > share.n_windows


@pytest.mark.parametrize("language", LANGUAGES)
def test_sentence_and_page_on_a_group_say_that_windows_are_left_out(comparison_of_ten_films, language):
    """AB judged 14 windows of each of ten films, and was not sure of the fifth.

    The sentence on the films as one group says that unsure windows are left out, and the page that AB judged
    14 windows of a film, 13 of them surely.
    """
    words = Words(language)
    page = comparison_page(comparison_of_ten_films, language=language)
    assert words["unsure_left_out"] in phrases.groups_sentence(group_shares(comparison_of_ten_films), words)
    assert words.counted("windows_judged_surely", 14, sure=13, who="AB") in page


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_on_films_without_a_trend_does_not_explain_blocks_of_years(comparison_of_ten_films, language):
    """Only the figure of a trend along years draws blocks of years. Here films are one group, without one."""
    page = comparison_page(comparison_of_ten_films, language=language)
    assert Words(language)["years_blocks"] not in page


def test_the_note_on_a_compared_films_share_names_its_time_only_if_judges_were_sure_of_little():
    """Beside each of several films that are compared stands a note on its share.

    AB and CD judged all nine windows of a film. They were both sure of three, which are 24 s; the other six
    are 50 s, most of the film, so that the note names these times. If the three were 500 s, the share would
    be of nearly all of the film, and no time is named.
    """
    words = Words("en")
    seldom_sure = replace(
        share_of(("AB", "CD"), 0.0),
        n=3,
        n_unsure=6,
        time=claim_kinds.ClaimTime("sure", seconds=24.0),
        unsure_s=50.0,
        conditions=(claim_kinds.NOT_SURE, claim_kinds.ALL_JUDGED),
    )
    mostly_sure = replace(seldom_sure, time=claim_kinds.ClaimTime("sure", seconds=500.0))

    note = phrases.film_share_note(seldom_sure, words)
    note_if_mostly_sure = phrases.film_share_note(mostly_sure, words)

    assert "9 windows judged by AB and CD in the order of the draw, 3 of them surely" in note
    assert "the share is of the 24 s that each of them was sure of, without 6 windows (50 s)" in note
    assert "the share is of" not in note_if_mostly_sure


class FewFilmsJudged(NamedTuple):
    """Ten films, of which four are judged enough: a share needs five.

    Of one all windows are judged and none surely, so that no more can be judged. Of another one six windows
    are judged, too few. Of four nothing is judged.
    """

    judged_wholly: str
    judged_in_part: str
    judged_enough: list[str]
    films: list[Timeline]
    judgements: Manifest


@pytest.fixture(scope="module")
def few_films_judged(ten_films_and_judgements):
    """Six of ten films are judged by AB: one wholly but never surely, one in part, and four enough."""
    films, judgements = ten_films_and_judgements
    judged_wholly, judged_in_part, *judged_enough = films[:6]
    names_of_enough = [film.movie for film in judged_enough]
    first_six_windows = all_windows_of(judged_in_part)[:6]
    clips = [clip for clip in judgements if clip.movie in names_of_enough]
    clips += [judged_by("AB", clip, NOT_SURE) for clip in all_windows_of(judged_wholly)]
    clips += [judged_by("AB", clip, POSITIVE) for clip in first_six_windows]
    return FewFilmsJudged(
        judged_wholly=judged_wholly.movie,
        judged_in_part=judged_in_part.movie,
        judged_enough=names_of_enough,
        films=films,
        judgements=Manifest(tuple(clips), Path()),
    )


def test_a_group_of_too_few_films_names_one_to_judge(few_films_judged):
    """Four films are judged, and a share needs five: one more is named.

    It is not the film that is judged wholly already, nor one that is judged enough.
    """
    (share,) = group_claims(compare_films(few_films_judged.films, few_films_judged.judgements))

    assert share.number is None
    assert share.n_judged == 4
    (film_to_judge,) = [film.movie for film in few_films_judged.films if film.movie in share.reason]
    assert film_to_judge != few_films_judged.judged_wholly
    assert film_to_judge not in few_films_judged.judged_enough


def test_a_page_says_of_films_without_a_share_how_many_windows_were_judged(few_films_judged):
    """Of one film all windows are judged and none surely, so that none is left to judge; of another one six.

    Neither has a share, and the page says of each how many windows were judged.
    """
    compared = compare_films(few_films_judged.films, few_films_judged.judgements)
    page = comparison_page(compared)

    by_movie = {film.timeline.movie: film for film in compared.films}
    judged_wholly = by_movie[few_films_judged.judged_wholly]
    judged_in_part = by_movie[few_films_judged.judged_in_part]
    assert (judged_wholly.counts.sure, judged_wholly.counts.left) == (0, 0)
    assert judged_in_part.counts.sure == 6
    for film in (judged_wholly, judged_in_part):
        note = phrases.few_windows_note(compared_share(film, compared), film.counts, Words("en"))
        assert str(film.counts.judged) in note
        assert note in page


def odd_and_even_years(films):
    """Group films by a column `side` of facts: of odd and of even years."""
    return {film.movie: {"side": "odd" if int(film.movie[1:]) % 2 else "even"} for film in films}


@pytest.fixture(scope="module")
def compared_by_ab(ten_films_and_judgements):
    """Films of odd years compared with those of even years; AB judges all."""
    films, judgements = ten_films_and_judgements
    return compare_films(films, judgements, odd_and_even_years(films), by="side")


@pytest.fixture(scope="module")
def compared_by_different_judges(ten_films_and_judgements):
    """The same, but AB judges the films of 1980 to 1986, and CD those of 1983 to 1989."""
    films, judgements = ten_films_and_judgements
    clips = [judged_by("AB", clip) for clip in judgements if year_of(clip) <= 1986]
    clips += [judged_by("CD", clip) for clip in judgements if year_of(clip) >= 1983]
    return compare_films(films, Manifest(tuple(clips), Path()), odd_and_even_years(films), by="side")


def test_a_share_by_one_judge_is_what_this_judge_would_mark(compared_by_ab):
    """AB judged all films of two groups, and so the share of each is what AB would mark of it.

    The difference of the groups has no note on its judges.
    """
    for share in group_shares(compared_by_ab):
        assert not share.has(claim_kinds.OTHER_JUDGES)
    sentence = phrases.groups_sentence(group_claims(compared_by_ab), Words("en"))
    assert sentence.startswith("AB would mark")
    (difference,) = compared_by_ab.changes.to_dict("records")
    assert difference["note"] == ""


def test_a_share_by_different_judges_is_not_what_one_would_mark(compared_by_different_judges):
    """AB judged some films and CD others, so that no one person would mark the share of a group."""
    shares = group_shares(compared_by_different_judges)
    assert len(shares) == 2
    for share in shares:
        assert share.has(claim_kinds.OTHER_JUDGES)
    sentence = phrases.groups_sentence(group_claims(compared_by_different_judges), Words("en"))
    assert not sentence.startswith("AB would mark")
    assert not sentence.startswith("AB and CD would mark")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_says_how_a_difference_accounts_for_different_judges(compared_by_different_judges, language):
    """AB judged some films of two groups, and CD others: the difference of the groups has a note on this."""
    (difference,) = compared_by_different_judges.changes.to_dict("records")
    assert difference["note"]
    page = comparison_page(compared_by_different_judges, language=language)
    assert Words(language).translated(difference["note"]) in page


def opposite_of_every_third(by_ab):
    """Let CD judge the windows that AB judged: every third one the opposite way, the others alike.

    A window that AB was not sure of, CD is not sure of either.
    """
    opposite = {POSITIVE: NEGATIVE, NEGATIVE: POSITIVE, NOT_SURE: NOT_SURE}
    by_cd = []
    for index, clip in enumerate(by_ab):
        level = opposite[clip.level] if index % 3 == 0 else clip.level
        by_cd.append(judged_by("CD", clip, level))
    return by_cd


@pytest.mark.long
def test_means_over_two_judges_say_how_far_these_agree(ten_films_and_judgements):
    """AB judged windows of ten films, and CD the same windows: every third one opposite to AB.

    A share of the ten films is then the mean of both judges, and the sentence on it says in how many windows
    they agree. Windows that they are not sure of do not count.
    """
    films, by_ab = ten_films_and_judgements
    by_cd = opposite_of_every_third(by_ab)
    sure_pairs = [(ab, cd) for ab, cd in zip(by_ab, by_cd, strict=True) if ab.level != NOT_SURE]
    n_alike = sum(ab.level == cd.level for ab, cd in sure_pairs)

    claims = group_claims(compare_films(films, by_ab.with_clips([*by_ab, *by_cd])))

    (agreement,) = [claim for claim in claims if isinstance(claim, claim_kinds.PairKappa)]
    assert agreement.who == ("AB", "CD")
    assert agreement.n == len(sure_pairs)
    assert agreement.alike == n_alike
    for language in LANGUAGES:
        words = Words(language)
        sentence_on_shares = phrases.groups_sentence(claims, words)
        assert phrases.sentence(agreement, words) in sentence_on_shares
        assert words["mean_of_sure_judges"] in sentence_on_shares


def test_a_group_of_films_that_one_person_judged_has_no_agreement_and_no_mean_of_judges(
    comparison_of_ten_films,
):
    """AB alone judged the ten films: no claim is on the kappa of two judges.

    Nor does the sentence call the group's share a mean of its judges, as it does if there are several.
    """
    claims = group_claims(comparison_of_ten_films)
    assert not any(isinstance(claim, claim_kinds.PairKappa) for claim in claims)
    sentence = phrases.groups_sentence(claims, Words("en"))
    assert Words("en")["mean_of_judges"] not in sentence


def all_windows_judged(films):
    """Let AB judge all windows of films: those after 300 s are positive."""
    clips = []
    for film in films:
        windows = all_windows_of(film)
        clips += [judged_by("AB", clip, POSITIVE if clip.start_s > 300 else NEGATIVE) for clip in windows]
    return Manifest(tuple(clips), Path())


@pytest.mark.long
@pytest.mark.parametrize("is_trend_asked_for", [True, False], ids=["trend", "no trend"])
@pytest.mark.parametrize(
    "last_judged_year", [1989, 1984], ids=["all films judged", "half of the films judged"]
)
@pytest.mark.parametrize("are_judged_wholly", [True, False], ids=["wholly judged", "drawn"])
def test_the_legend_explains_only_what_is_drawn(
    ten_films_and_judgements, are_judged_wholly, last_judged_year, is_trend_asked_for
):
    """A figure shows ten films, of 1980 to 1989, along their years; its legend explains what it draws.

    Films that are judged in part have intervals, films that are not judged hollow dots, and a line is drawn
    if a trend is asked for. The figure is SVG, in which each of these has a class of its own.
    """
    words = Words("en")
    films, judgements = ten_films_and_judgements
    if are_judged_wholly:
        judgements = all_windows_judged(films)
    judgements = judgements.with_clips(clip for clip in judgements if year_of(clip) <= last_judged_year)
    compared = compare_films(films, judgements, trend="year" if is_trend_asked_for else None)

    figure = years_figure(compared, words)
    legend = years_legend(compared, words)

    on_intervals = words["years_intervals"]
    on_hollow_dots = words["years_hollow"]
    on_the_line_of_the_trend = words["years_line"].rstrip(".")  # it may go on with a note
    assert (on_intervals in legend) == ("c-interval" in figure)
    assert (on_hollow_dots in legend) == ("c-alone" in figure)
    assert (on_the_line_of_the_trend in legend) == ("c-trend" in figure)


@pytest.mark.parametrize(
    ("language", "trend"),
    [
        ("en", "the trend, of all who judged, through the mean of the full dots"),
        ("fr", "la tendance, de tous ceux qui ont jugé, par la moyenne des points pleins"),
    ],
)
def test_the_legend_says_whose_the_trend_is_and_where_its_line_lies(compared_by_year, language, trend):
    """The figure of ten films along their years has a dot for each film's share, and a line of the trend.

    A dot may be of one judge alone, where others judged too few of the film's windows; the trend is of all.
    """
    assert trend in years_legend(compared_by_year, Words(language))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_figure_that_is_a_file_of_its_own_has_room_for_its_legend(compared_by_year, language):
    """The figure of ten films along their years is SVG; what lies below its height is cut off.

    On a page it has no legend in it, and ends below the word "year".
    """
    words = Words(language)
    height_of_figure = re.compile(r'viewBox="0 0 \d+ (\d+)"')
    lines = re.compile(r'<text class="c-start" x="10" y="([\d.]+)">')

    figure = years_figure(compared_by_year, words, is_own_file=True)
    figure_on_page = years_figure(compared_by_year, words)

    height = int(height_of_figure.search(figure)[1])
    height_on_page = int(height_of_figure.search(figure_on_page)[1])
    baselines = [float(baseline) for baseline in lines.findall(figure)]
    assert len(baselines) > 1
    assert lines.findall(figure_on_page) == []
    assert height == height_on_page + 14 * len(baselines)  # 14 units a line
    assert max(baselines) < height


def judged_before_1986(judgements):
    """Keep the judgements of six of the ten films."""
    return judgements.with_clips(clip for clip in judgements if year_of(clip) < 1986)


@pytest.fixture(scope="module")
def compared_with_model(ten_films_and_judgements):
    """Ten films: of six the share is AB's, of four the model's alone."""
    films, judgements = ten_films_and_judgements
    return compare_films(films, judged_before_1986(judgements), trend="year")


@pytest.fixture(scope="module")
def compared_with_labels(ten_films_and_judgements):
    """Ten films: of six the share is AB's, of four that of labels by a machine, vlm, in the model's place."""
    films, judgements = ten_films_and_judgements
    windows = [clip for film in films for clip in all_windows_of(film)]
    labels = []
    for index, clip in enumerate(windows):
        labels.append(judged_by("vlm", clip, NEGATIVE if index % 2 == 0 else POSITIVE))
    return compare_films(
        films, judged_before_1986(judgements), trend="year", labels=Manifest(tuple(labels), Path())
    )


@pytest.mark.long
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("fixture", ["compared_with_model", "compared_with_labels"])
def test_the_figure_of_films_along_years_says_at_each_films_dot_whose_share_it_shows(
    request, fixture, language
):
    """AB judged six of ten films, whose shares are AB's. The share of the four others is not by people.

    It is the model's alone, or that of labels by a machine, vlm. Readers must not take these four for AB's:
    the text at each dot says whose share it is.
    """
    words = Words(language)
    compared = request.getfixturevalue(fixture)
    if fixture == "compared_with_model":
        not_by_people = words["model_only"]
    else:
        not_by_people = words.say("labels_only", who="vlm")

    figure = years_figure(compared, words, is_own_file=True)

    texts_at_dots = re.findall("<title>(.*?)</title>", figure)
    for film, text in zip(compared.films, texts_at_dots, strict=True):
        is_judged = film.rate is not None
        share = film.rate.value if is_judged else film.expected
        assert film.facts["title"] in text
        assert words.share(share) in text
        assert ("AB" in text) == is_judged
        assert (not_by_people in text) != is_judged


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("fixture", "names_vlm"), [("compared_with_model", False), ("compared_with_labels", True)]
)
def test_a_figure_that_is_its_own_file_has_the_legend_in_it(request, fixture, names_vlm, language):
    """An article has no page around it. The legend names who made the labels, vlm, if there are any."""
    words = Words(language)
    compared = request.getfixturevalue(fixture)

    figure = years_figure(compared, words, is_own_file=True)

    legend = " ".join(re.findall('<text class="c-start"[^>]*>(.*?)</text>', figure))
    assert legend == years_legend(compared, words)
    assert words["years_dots"] in legend
    assert ("vlm" in legend) == names_vlm


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_of_a_comparison_with_labels_names_their_maker_and_no_model(compared_with_labels, language):
    """Labels by a machine, vlm, take the place of the model.

    A column of the page, which else is the model's alone, has the name of vlm, and no note speaks of a model.
    """
    words = Words(language)
    page = comparison_page(compared_with_labels, language=language)
    assert f">{words.say('labels_alone', who='vlm')}</th>" in page
    assert words["note_alone"] not in page


def test_a_report_has_notes_on_the_share_of_a_group_if_one_has_one(comparison_of_ten_films):
    """Ten films are one group, and have one share, with an interval and a worth.

    Worth is how many windows would be needed without the model. Two notes explain both.
    """
    keys = text_keys_of(comparison_report(comparison_of_ten_films).notes)
    assert "note_worth" in keys
    assert "note_group_interval" in keys


def test_a_report_has_no_notes_on_the_share_of_a_group_if_no_group_has_one(ten_films_and_judgements):
    """Three films are too few for a share of their group, though each has a share of its own.

    Notes explain the numbers of a report: those on the interval and the worth of a group's share are left
    out, as there is none. That on the intervals of single films stands.
    """
    films, judgements = ten_films_and_judgements
    three_films = films[:3]
    keys_of_notes = text_keys_of(comparison_report(compare_films(three_films, judgements)).notes)
    assert "note_worth" not in keys_of_notes
    assert "note_group_interval" not in keys_of_notes
    assert "note_film_interval" in keys_of_notes


def test_the_note_on_worth_names_who_made_the_labels_where_they_take_the_place_of_the_model(
    compared_with_labels,
):
    """Worth is how many windows would be needed without the help of labels, which a machine, vlm, made."""
    notes = comparison_report(compared_with_labels).notes
    (note_on_worth,) = [note for note in notes if note.startswith("worth")]
    assert "vlm" in note_on_worth
    assert "model" not in note_on_worth


def test_a_change_is_not_headed_as_a_share(compared_by_year):
    """Shares of groups and of films have a common heading, which has an interval: "... [95%]".

    Changes have an interval, too, and another heading.
    """
    headings = {block.title: set(block.headers) for block in comparison_report(compared_by_year).blocks}
    headings_of_shares = headings["Groups"] & headings["Films"]
    assert any("[95%]" in heading for heading in headings_of_shares)
    for heading in headings["Changes"]:
        if "95%" in heading:
            assert heading not in headings_of_shares


@pytest.fixture(scope="module")
def compared_with_half_unlike():
    """One film, the first half of which is unlike training; AB judged 14 windows all the same."""
    film = fake_scored_film("m", n_rows=60, duration_s=900.0, unlike_parts=((0.0, 0.5),))
    windows = choose_next([film], 14, blind=True)
    by_ab = []
    for clip, level in zip(windows, [NEGATIVE, POSITIVE] * 7, strict=True):
        by_ab.append(judged_by("AB", clip, level))
    compared = compare_films([film], Manifest(tuple(by_ab), Path()))
    assert compared.films[0].rate is not None
    return compared


def test_the_report_on_a_judged_film_says_why_the_model_alone_has_no_share(compared_with_half_unlike):
    """Half of the film is unlike training, so that the model expects no share of it; AB judged it.

    Beside the share by AB's judgements the report has a reason for which there is none by the model alone.
    """
    report = plain(comparison_report(compared_with_half_unlike))
    on_one_line = " ".join(report.split())
    assert re.search("model alone: no rate: .* unlike", on_one_line)


@pytest.mark.parametrize(
    ("language", "reason"),
    [
        ("en", "model alone: no rate: .* unlike"),
        ("fr", "modèle seul : pas de taux : .* ne ressemble pas"),
    ],
)
def test_the_page_on_a_judged_film_says_why_the_model_alone_has_no_share(
    compared_with_half_unlike, language, reason
):
    """Half of the film is unlike training, so that the model expects no share of it; AB judged it.

    The page says in its language why there is no share by the model alone.
    """
    page = comparison_page(compared_with_half_unlike, language=language)
    assert re.search(reason, page)


def test_a_french_page_has_no_english_column_and_french_signs(ten_films_and_judgements):
    """Films are grouped by decade; AB judged those of one, and CD those of the other.

    French has a blank before a colon.
    """
    films, judgements = ten_films_and_judgements
    clips = []
    for clip in judgements:
        judge = "AB" if year_of(clip) < 1985 else "CD"
        clips.append(judged_by(judge, clip))
    facts = {film.movie: {"decade": "1980s" if film.record.year >= 1985 else "1970s"} for film in films}
    compared = compare_films(films, Manifest(tuple(clips), Path()), facts, by="decade")

    page = comparison_page(compared, language="fr")

    assert "Ce que les juges marqueraient" in page
    assert "AB : " in page
    assert "AB: " not in page
    assert "par décennie" in page
    assert "decade" not in page


JUDGES_OF_YEARS = {
    1980: ("AB", "CD"),
    1981: ("CD",),
    1982: ("AB",),
    1983: ("CD",),
    1984: ("AB", "CD"),
    1985: ("AB",),
    1986: ("AB", "CD"),
    1987: ("CD",),
    1988: ("AB",),
    1989: ("CD",),
}
"""Who judged the film of each year: films differ in their judges, but not along the years."""


def judged_by_two(judgements):
    """Let AB and CD judge the films as `JUDGES_OF_YEARS` says."""
    clips = []
    for clip in judgements:
        clips += [judged_by(judge, clip) for judge in JUDGES_OF_YEARS[year_of(clip)]]
    return Manifest(tuple(clips), Path())


@pytest.mark.long
@pytest.mark.parametrize("is_by_two", [True, False], ids=["AB and CD judged", "AB judged"])
def test_a_trend_says_whether_it_accounts_for_judges(ten_films_and_judgements, is_by_two):
    """Films of ten years are judged by AB, by CD or by both; one of the two may mark more than the other.

    The trend along the years is then without this difference: the sentence on it and the figure's legend say
    so. If AB alone judged all films, there is nothing to account for.
    """
    films, judgements = ten_films_and_judgements
    if is_by_two:
        judgements = judged_by_two(judgements)

    compared = compare_films(films, judgements, trend="year")

    for language in LANGUAGES:
        words = Words(language)
        difference_of_judges_is_accounted_for = words["note_accounts"]
        sentence = phrases.groups_sentence(group_claims(compared), words)
        legend = years_legend(compared, words)
        assert words["later_name"] in sentence
        assert (difference_of_judges_is_accounted_for in sentence) == is_by_two
        assert (difference_of_judges_is_accounted_for in legend) == is_by_two


@pytest.mark.parametrize(
    ("heaviest", "unit"), [(0.0227, "0.01"), (3.0, "1"), (40.0, "10"), (1.3e7, "10000000")]
)
def test_the_unit_of_a_trend_is_no_larger_than_the_range(ten_films_and_judgements, heaviest, unit):
    """The unit is ..., 10, 1, .1, ...: the largest that is not above the range of the number.

    Ten films weigh from 0 to `heaviest`, in equal steps. A trend per 1 would tell nothing where the films
    differ by .0227 at most, as a share changes by at most 1 over a unit.
    """
    films, judgements = ten_films_and_judgements
    weights = np.linspace(0, heaviest, 10)
    facts = {film.movie: {"weight": str(weight)} for film, weight in zip(films, weights, strict=True)}

    compared = compare_films(films, judgements, facts, trend="weight")

    (change,) = compared.changes.to_dict("records")
    assert change["change"] == f"weight + {unit}"
    assert abs(change["value"]) <= 1
