"""What is said of judges' shares holds of their judgements, in each language and on the page."""

import html
import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from obygaze.cli import main
from obygaze_features.manifest import Manifest, builtin_codebook, write_manifest
from obygaze_film.cells import cells_of
from obygaze_film.claims import (
    LANGUAGES,
    Words,
    document,
    group_claims,
    kinds,
    phrases,
    rate_claims,
    sentences,
)
from obygaze_film.claims.of_groups import compared_share
from obygaze_film.claims.of_judgements import decision, pair_agreement
from obygaze_film.errors import FilmError
from obygaze_film.film_groups import compare_films
from obygaze_film.group_report import comparison_report
from obygaze_film.judged_rate import correct_rate, correct_rates
from obygaze_film.notes import Message, texts
from obygaze_film.page.figures import years_figure, years_legend
from obygaze_film.page.side_by_side import comparison_page
from obygaze_film.page.view import FilmView
from obygaze_film.schema import JudgesAgreement
from obygaze_film.windows_to_judge import choose_next
from obygaze_models.report import plain
from tests.film.page.invented import invented_film

FILM = invented_film(n_rows=60, duration_s=900.0)
WINDOWS = choose_next([FILM], 10**6, blind=True)
N = len(WINDOWS)
POSITIVE, NEGATIVE, NOT_SURE = "S", "HN", "NS"


def judgements_by(windows=WINDOWS, **judges):
    """Judge the first windows of a draw: of each judge the levels that they give."""
    clips = []
    for judge, levels in judges.items():
        for clip, level in zip(windows, levels, strict=False):
            clips.append(replace(clip, clip_id=f"{judge}-{clip.clip_id}", level=level, annotator=judge))
    return Manifest(tuple(clips), Path())


def judged(film=FILM, windows=WINDOWS, **judges):
    """Rates of a film by what judges say of the first windows of a draw."""
    return correct_rates(film, judgements_by(windows, **judges))


def shares_in(found):
    return [claim for claim in rate_claims(found) if isinstance(claim, kinds.JudgedShare)]


@pytest.mark.parametrize(("first", "second"), [("S" * 10, "S" * 10), ("SSSSHHHHHHHH", "HHSSSSHHHHHH")],
                         ids=["alike", "unlike"])  # fmt: skip
def test_the_share_of_all_goes_no_further_than_the_mean_of_the_judges_own_ends(first, second):
    levels = {"S": POSITIVE, "H": NEGATIVE}
    judges = {"AB": [levels[one] for one in first], "CD": [levels[one] for one in second]}
    found = judged(**judges)
    *own, panel = found.rates
    assert panel.is_of_panel
    assert np.mean([one.low for one in own]) <= panel.low <= panel.value
    assert panel.value <= panel.high <= np.mean([one.high for one in own])
    rate_of_film, _ = correct_rate(FILM, judgements_by(**judges))
    assert rate_of_film.high == panel.high
    claim = shares_in(found)[-1]
    for language in LANGUAGES:
        assert Words(language).shares(claim.interval) in sentences([claim], language)[0]


SURE = {"en": "S (Sure)", "fr": "S (Sûr)"}
"""The level of the invented film as pages name it."""


def figure_of(found, language="en"):
    """The texts of the page's first figure."""
    figure = FilmView(FILM, "f1", Words(language), top=1, rates=[found]).figures[0]
    return f"{figure.value} {figure.interval} {figure.what} {figure.note}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_two_judges_are_alike_as_to_what_is_positive_whatever_else_they_say(language):
    """Planted: they give no window one level, and call none positive."""
    found = judged(FILM, WINDOWS[:12], AB=["EN", "HN"] * 6, CD=["HN", "EN"] * 6)
    (pair,) = (claim for claim in rate_claims(found) if isinstance(claim, kinds.PairKappa))
    assert (pair.n, pair.alike, pair.positive) == (12, 12, "S")
    said = phrases.sentence(pair, Words(language))
    assert {"en": "alike as to S (100%)", "fr": "même avis quant à S"}[language] in said
    assert not any("level" in text or "niveau" in text for text in (said, figure_of(found, language)))


@st.composite
def levels(draw, least=10):
    """Levels of the first windows of a draw, of some of which the judge is not sure."""
    n = draw(st.integers(least, N))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    share = draw(st.floats(0, 1))
    given_levels = np.where(rng.random(n) < share, POSITIVE, NEGATIVE)
    n_unsure = draw(st.integers(0, n - least))
    given_levels[rng.permutation(n)[:n_unsure]] = NOT_SURE
    return given_levels.tolist()


@settings(max_examples=60, deadline=None)
@given(levels())
def test_of_a_share_the_interval_is_open_as_long_as_a_window_is_and_worth_no_more_windows_than_there_are(own):
    found = judged(AB=own)
    (rate,) = found.rates
    content = cells_of(FILM).content_s
    whole_s = content.sum()
    seconds = dict.fromkeys((POSITIVE, NEGATIVE, NOT_SURE), 0.0)
    for clip, level in zip(WINDOWS, own, strict=False):
        seconds[level] += content[cells_of(FILM).index_of(clip.start_s, clip.end_s)]
    sure_s = whole_s - seconds[NOT_SURE]
    least, most = seconds[POSITIVE] / sure_s, 1 - seconds[NEGATIVE] / sure_s
    assert least - 1e-6 <= rate.low <= rate.value <= rate.high <= most + 1e-6
    n_left = N - len(own)
    if n_left == 0:
        assert (rate.low, rate.high) == pytest.approx((least, least), abs=1e-6)
    elif n_left == 1:
        assert (rate.low, rate.high) == pytest.approx((least, most), abs=1e-6)
    else:
        longest = max(
            content[cells_of(FILM).index_of(clip.start_s, clip.end_s)] for clip in WINDOWS[len(own) :]
        )
        assert rate.high - rate.low >= longest / sure_s - 1e-6
    if rate.worth is not None:
        assert rate.n < round(rate.worth) <= N - own.count(NOT_SURE)


@settings(max_examples=40, deadline=None)
@given(levels(), st.sampled_from(LANGUAGES))
def test_windows_of_which_a_judge_was_not_sure_are_said_wherever_the_share_is(own, language):
    found, words = judged(AB=own), Words(language)
    (claim,) = shares_in(found)
    content = cells_of(FILM).content_s
    unsure_s = 0.0
    for clip, level in zip(WINDOWS, own, strict=False):
        if level == NOT_SURE:
            unsure_s += content[cells_of(FILM).index_of(clip.start_s, clip.end_s)]
    n_unsure = own.count(NOT_SURE)
    kept = document(claim)
    assert (claim.n_unsure, claim.unsure_s) == (n_unsure, pytest.approx(unsure_s))
    assert (claim.n, claim.n_windows) == (len(own) - n_unsure, N - n_unsure)
    assert kept["time"]["seconds"] == pytest.approx(content.sum() - unsure_s)
    is_left_out = n_unsure > 0
    assert (kinds.NOT_SURE in kept["conditions"]) == (kept["time"]["part"] == "sure") == is_left_out
    sure_s = float(content.sum()) - unsure_s
    are_many = unsure_s > 0.2 * float(content.sum())
    for text in (phrases.sentence(claim, words), figure_of(found, language)):
        if are_many:
            sure, unsure = words.durations(sure_s, unsure_s)
            assert sure in text
            assert unsure in text
            assert words["of_content"] not in text
        elif is_left_out:
            assert words.duration(unsure_s) in text
            assert words["unsure_judge"].format(who="AB") in text
        else:
            assert words["of_content"] in text
    assert rate_claims(found)[0].has(kinds.ALL_JUDGED) == (len(own) == N)


def test_a_panels_share_is_of_the_windows_that_each_was_sure_of():
    """Planted: AB is not sure of one window, CD of another; each has more than both have."""
    one = [NOT_SURE, NEGATIVE, *[POSITIVE, NEGATIVE] * 6]
    other = [NEGATIVE, NOT_SURE, *[POSITIVE, NEGATIVE] * 6]
    of_one, of_other, of_both = shares_in(judged(AB=one, CD=other))
    assert [claim.n_unsure for claim in (of_one, of_other, of_both)] == [1, 1, 2]
    assert [claim.n for claim in (of_one, of_other, of_both)] == [13, 13, 12]
    assert of_both.time.seconds < of_one.time.seconds
    for language in LANGUAGES:
        words = Words(language)
        assert words["unsure_panel"] in phrases.sentence(of_both, words)


@st.composite
def some_judges(draw):
    """Two or three judges of so many windows of a draw, each not sure of some."""
    every = {}
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    for judge in ("AB", "CD", "EF")[: draw(st.integers(2, 3))]:
        own = rng.choice([POSITIVE, NEGATIVE, NOT_SURE], draw(st.integers(12, N)), p=[0.4, 0.3, 0.3])
        own[rng.permutation(12)[:2]] = POSITIVE
        every[judge] = own.tolist()
    return every


def counts_of(*judges):
    """Windows that all of some judges judged, and those of which all were sure."""
    judged_by_all = list(zip(*judges, strict=False))
    return len(judged_by_all), sum(NOT_SURE not in levels for levels in judged_by_all)


@settings(max_examples=60, deadline=None)
@given(some_judges(), st.sampled_from(LANGUAGES))
def test_each_number_of_windows_is_of_what_the_sentence_says(judges, language):
    """Judged, judged surely, and left: of one judge, of two, of a panel and of any two of it."""
    words, own_counts = Words(language), {name: counts_of(own) for name, own in judges.items()}
    if not any(sure >= 10 for _, sure in own_counts.values()):
        with pytest.raises(FilmError):
            judged(**judges)
        return
    found = judged(**judges)
    for claim in rate_claims(found):
        said = phrases.sentence(claim, words)
        if isinstance(claim, kinds.PanelAgreement):
            placed = [[own[k] for own in judges.values() if k < len(own)] for k in range(N)]
            n_sure = sum(sum(level != NOT_SURE for level in levels) >= 2 for levels in placed)
            n_judged = sum(len(levels) >= 2 for levels in placed)
            assert (claim.n_windows, claim.n_unsure) == (n_sure, n_judged - n_sure)
            assert (str(claim.n_unsure) in re.findall(r"\d+", said)) or not claim.n_unsure
            continue
        n_judged, n_sure = counts_of(*[judges[name] for name in claim.who])
        if isinstance(claim, kinds.PairKappa):
            assert (claim.n, claim.n_unsure) == (n_sure, n_judged - n_sure)
            assert (str(claim.n_unsure) in re.findall(r"\d+", said)) or not claim.n_unsure
        elif isinstance(claim, kinds.NoJudgedShare):
            assert (claim.judged, claim.sure, claim.left) == (n_judged, n_sure, N - n_judged)
            assert {str(n_judged), str(n_sure)} <= set(re.findall(r"\d+", said))
            assert claim.left
        else:
            assert (claim.n, claim.n_unsure) == (n_sure, n_judged - n_sure)
        if not isinstance(claim, kinds.NoJudgedShare):
            is_left_out = n_sure < n_judged
            assert claim.has(kinds.NOT_SURE) == (claim.time.part == "sure") == is_left_out


def test_where_a_judge_was_sure_of_little_the_share_is_of_that_time_and_not_of_the_film():
    """Planted: a film of two windows that do not overlap, of one of which its judge is not sure."""
    film = invented_film(n_rows=8, duration_s=120.0)
    windows = choose_next([film], 9, blind=True)
    (claim,) = shares_in(judged(film, windows, AB=[POSITIVE] + [NOT_SURE] * (len(windows) - 1)))
    assert claim.unsure_s > 0.2 * (claim.time.seconds + claim.unsure_s)
    said = phrases.sentence(claim, Words("en"))
    left = f"{claim.time.seconds:.0f} s"
    assert f"100% of the {left} that AB was sure of, without 1 window ({claim.unsure_s:.0f} s)" in said
    assert "of the film" not in said
    # A window more, and nobody knows whether they would be sure of it.
    levels = [POSITIVE] * 12 + [NOT_SURE] * (N - 13)
    (claim,) = shares_in(judged(AB=levels))
    assert "that are left without" in phrases.sentence(claim, Words("en"))


def test_fewer_windows_than_an_interval_needs_have_no_kappa_and_no_alpha():
    """Planted: all judge all of a film, and are all sure of the first nine, or ten, windows."""
    coin = [POSITIVE, NEGATIVE] * 5
    rest = [NOT_SURE] * (N - 10)
    for n_sure in (1, 9, 10):
        own = [*coin[:n_sure], *[NOT_SURE] * (10 - n_sure), *rest]
        found = judged(AB=own, CD=own, EF=own)
        assert (found.alpha is None) == (n_sure < 10)
        claims = [claim for claim in rate_claims(found) if isinstance(claim, kinds.PairKappa)]
        for claim, language in product(claims, LANGUAGES):
            said = phrases.sentence(claim, Words(language))
            assert claim.n == n_sure
            assert claim.has(kinds.TOO_FEW) == (claim.number is None) == (n_sure < 10)
            assert (" [" in said) == (n_sure == 10)
    # What an earlier version kept is not said either.
    kept = JudgesAgreement(["AB", "CD"], 1, 1, 0.0, -0.82, 0.52)
    assert pair_agreement(kept, "S").number is None
    said = phrases.sentence(pair_agreement(kept, "S"), Words("en"))
    assert said == "AB and CD: 1 window judged by both, too few for kappa, which needs 10."


@pytest.mark.parametrize("language", LANGUAGES)
def test_who_has_no_share_is_told_what_one_needs(language):
    """So many windows judged surely, or all of the film: of a film of few windows all."""
    words = Words(language)
    known = {"who": ("CD",), "what": "share", "time": kinds.ClaimTime("content"), "judged": 1, "sure": 1}
    few = kinds.NoJudgedShare(left=1, least=2, **known)
    assert "2" in phrases.sentence(few, words)
    assert words.say("windows_needed_all_1", all=2) in phrases.sentence(few, words)
    many = kinds.NoJudgedShare(left=29, least=10, **known)
    assert words.say("windows_needed", least=10, all=30) in phrases.sentence(many, words)
    with pytest.raises(FilmError, match="10 judged surely are needed, or all"):
        judged(AB=[POSITIVE])
    # Under a second definition somebody may have judged windows, but not the first ones of the list.
    known |= {"judged": 0, "sure": 0, "left": 30, "least": 10}
    for who, key in ((("AB",), "first_elsewhere_judge"), (("AB", "CD"), "first_elsewhere_panel")):
        of_one = kinds.NoJudgedShare(**known | {"who": who})
        of_several = replace(of_one, definition="f793a5b5a5d4")
        assert words[key] in phrases.sentence(of_several, words)
        assert words[key] not in phrases.sentence(of_one, words)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_share_that_is_not_the_quotient_of_its_counts_says_why_of_one_judge_too(language):
    words = Words(language)
    (share,) = shares_in(judged(AB=[POSITIVE] * N))
    assert phrases.own_shares_sentences([share], words) == []  # all of the time, and all windows
    # Of two windows of 12 and 8 s one is positive.
    other = replace(share, number=0.6, positives=(1,), n=2)
    assert phrases.own_shares_sentences([other], words) == [words["windows_by_content"]]


@pytest.mark.parametrize("language", LANGUAGES)
def test_labels_in_the_models_place_correct_a_share_and_no_model_does(language):
    """Of ten windows two are positive, and with the labels of "vlm" the share is .25, not .2."""
    words = Words(language)
    (counted,) = shares_in(judged(AB=[POSITIVE] * N))
    interval = kinds.Bounds(0.1, 0.5, 0.95)
    of_labels = replace(
        counted, number=0.25, interval=interval, positives=(2,), n=10, model="vlm", is_of_labels=True
    )
    (said,) = phrases.own_shares_sentences([of_labels], words)
    assert said == words.say("windows_corrected_by_labels", who="vlm")


def test_the_share_together_is_not_said_to_differ_where_all_judged_the_same_windows():
    same = judged(FILM, WINDOWS, AB=[POSITIVE, NEGATIVE] * 6, CD=[POSITIVE, NEGATIVE] * 6)
    assert Words("en")["own_shares"] not in figure_of(same)
    fewer = judged(FILM, WINDOWS, AB=[POSITIVE, NEGATIVE] * 7, CD=[POSITIVE, NEGATIVE] * 5)
    assert Words("en")["own_shares"] in figure_of(fewer)


def test_the_terminal_says_why_the_share_together_is_below_both(tmp_path, capsys):
    """Planted: AB judges 14 windows, CD the first ten of them, of which alone their share together is."""
    FILM.write(tmp_path / "f1")
    by_ab, by_cd = [POSITIVE, NEGATIVE] * 7, [NEGATIVE, POSITIVE] * 5

    def printed(**judges):
        table = tmp_path / "judgements.csv"
        judgements = replace(judgements_by(**judges), codebook=builtin_codebook("obygaze12"))
        write_manifest(judgements, table)
        with pytest.raises(SystemExit) as ended:
            main(["film", "rate", str(tmp_path / "f1"), str(table)])
        assert not ended.value.code
        return capsys.readouterr().out

    of_both = printed(AB=by_ab, CD=by_cd)
    assert Words("en")["own_shares"] in of_both
    assert f", of {N} that do not overlap (positive: 7 of 14)" in of_both
    assert Words("en")["own_shares"] not in printed(AB=by_ab)


@pytest.mark.parametrize("n_sure", [1, 4, 9])
def test_of_a_film_that_was_judged_wholly_what_the_judge_was_sure_of_is_counted(n_sure):
    own = [POSITIVE] * n_sure + [NOT_SURE] * (N - n_sure)
    (claim,) = shares_in(judged(AB=own))
    assert (claim.number, claim.interval, claim.n, claim.n_windows) == (1.0, None, n_sure, n_sure)
    assert claim.has(kinds.ALL_JUDGED)
    # One window less, and there is no share: what is left might say otherwise.
    with pytest.raises(FilmError, match=f"{N - 1} windows"):
        judged(AB=own[:-1])


def test_nobody_is_sent_to_judge_what_is_judged():
    with pytest.raises(FilmError) as refused:
        judged(AB=[NOT_SURE] * N)
    message = refused.value.args[0]
    assert str(N) in message
    assert "film next" not in message
    with pytest.raises(FilmError, match="film next"):
        judged(AB=[NOT_SURE] * (N - 1))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(LANGUAGES))
def test_it_is_said_which_judges_of_a_panel_agree_no_better_than_chance(seed, language):
    """Planted: CD turns few of AB's calls of 14 windows, or every other one.

    EF calls windows as AB does, the other way round, all of them positive, or as a coin falls.
    """
    rng, words = np.random.default_rng(seed), Words(language)
    by_ab = rng.random(14) < 0.5
    share_turned = rng.choice([0.02, 0.5])
    by_cd = np.where(rng.random(14) < share_turned, ~by_ab, by_ab)
    all_positive, by_coin = np.ones(14, bool), rng.random(14) < 0.5
    by_ef = [by_ab, ~by_ab, all_positive, by_coin][rng.integers(4)]
    calls = {"AB": by_ab, "CD": by_cd, "EF": by_ef}
    found = judged(**{judge: np.where(own, POSITIVE, NEGATIVE) for judge, own in calls.items()})
    panel = shares_in(found)[-1]
    said = phrases.judged_share_sentence(panel, words)
    pairs = [claim for claim in rate_claims(found) if isinstance(claim, kinds.PairKappa)]
    assert len(pairs) == 3
    for of_all_pairs, of_some_pairs in (
        (kinds.AGREE_LESS, kinds.SOME_LESS),
        (kinds.AGREE_BY_CHANCE, kinds.SOME_BY_CHANCE),
        (kinds.UNDEFINED, kinds.SOME_UNDEFINED),
    ):
        doubtful = ["–".join(pair.who) for pair in pairs if pair.has(of_all_pairs)]
        are_all, are_some = len(doubtful) == 3, len(doubtful) in (1, 2)
        assert panel.has(of_all_pairs) == are_all
        assert (words[phrases.PANEL_DOUBTS[of_all_pairs]] in said) == are_all
        assert panel.has(of_some_pairs) == are_some
        if are_some:  # then the pairs are named
            named = words.say(phrases.PANEL_DOUBTS[of_some_pairs], pairs=words.listed(doubtful))
            assert named in said


@pytest.mark.parametrize("language", LANGUAGES)
def test_alpha_has_no_verdict_and_kappa_says_its_level(language):
    alike = [POSITIVE, NEGATIVE] * 7
    found = judged(AB=alike, CD=alike, EF=alike)
    *_, pair, alpha = sentences(rate_claims(found), language)
    assert found.alpha.value == 1
    assert re.search("chance|hasard", alpha) is None
    assert Words(language).share(0.95) in pair


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_shows_all_judges_where_they_have_no_share_together(language):
    """Planted: three judges of 14 windows, and a fourth of 3."""
    judges = {
        "AB": [POSITIVE, NEGATIVE] * 7,
        "CD": [POSITIVE] * 6 + [NEGATIVE] * 8,
        "EF": [POSITIVE] * 10 + [NEGATIVE] * 4,
        "GH": [NEGATIVE] * 3,
    }
    found, words = judged(**judges), Words(language)
    figure = figure_of(found, language)
    for claim in rate_claims(found):
        told = phrases.sentence(claim, words)
        if isinstance(claim, kinds.JudgedShare):
            told = phrases.judged_share_sentence(claim, words)
            assert f"{claim.who[0]} {words.share(claim.number)}" in figure
        assert told.removesuffix(".") in figure
    assert [few.judges for few in found.too_few] == [["GH"], ["AB", "CD", "EF", "GH"]]


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 9), st.integers(0, 10**6), st.sampled_from(LANGUAGES))
def test_a_figure_hides_no_judges_share_and_calls_none_the_films(n_judges, seed, language):
    """Each judge's share is there, or lies between the two ends that are said of the others."""
    rng, words = np.random.default_rng(seed), Words(language)
    names = ["AB", "CD", "EF", "GH", "IJ", "KL", "MN", "OP", "QR"][:n_judges]
    shares = rng.random(n_judges)
    calls = {
        name: np.where(rng.random(14) < share, POSITIVE, NEGATIVE)
        for name, share in zip(names, shares, strict=True)
    }
    found = judged(**calls)
    figure = figure_of(found, language)
    own = [claim for claim in shares_in(found) if not claim.is_of_panel]
    hidden = [claim for claim in own if phrases.judged_share_sentence(claim, words) not in figure]
    if n_judges == 1:
        assert "AB" in phrases.judged_share_what(own[0], "S", words)
        assert phrases.judged_share_what(own[0], SURE[language], words) in figure
    elif hidden:
        assert n_judges > 4
        assert phrases.other_shares_sentence(hidden, words) in figure
        numbers = [claim.number for claim in hidden]
        assert words.share(min(numbers)) in phrases.other_shares_sentence(hidden, words)
        assert words.share(max(numbers)) in phrases.other_shares_sentence(hidden, words)
    for claim in own:
        assert claim.who[0] in phrases.judged_share_sentence(claim, words)
        assert claim.what == "S"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_calls_the_mean_of_a_panel_a_mean(language):
    found = judged(AB=[POSITIVE, NEGATIVE] * N, CD=[NEGATIVE] * N)
    figure, words = figure_of(found, language), Words(language)
    (panel,) = [claim for claim in shares_in(found) if claim.is_of_panel]
    assert phrases.judged_share_what(panel, SURE[language], words) in figure
    assert words.listed(["AB", "CD"]) in phrases.judged_share_what(panel, "S", words)
    assert words["judged_all_panel"] in figure


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_a_model_alone_expected_is_of_the_time_that_it_can_judge(language):
    film = invented_film(n_rows=60, duration_s=900.0, unlike_parts=((0.0, 0.15),))
    found, words = (
        judged(film, choose_next([film], 12, blind=True), AB=[POSITIVE, NEGATIVE] * 6),
        Words(language),
    )
    rows = film.rows()
    is_judged = rows["p"].notna() & ~rows["flags"].str.contains("black|credits")
    seconds = (rows["end_s"] - rows["start_s"])[is_judged].sum()
    (claim,) = shares_in(found)
    assert claim.expected_s == pytest.approx(seconds)
    assert words.duration(seconds) in phrases.sentence(claim, words).rsplit(";", 1)[1]


def test_what_was_decided_where_the_model_has_no_score_was_decided_in_sight_of_none():
    time = kinds.ClaimTime("span", 10.0, 0.0, 10.0)
    known = {"is_agreed": False}
    blind = decision(["AB"], "Sure", time, is_blind=True, has_score=False, **known)
    in_sight = decision(["AB"], "Sure", time, is_blind=False, has_score=True, **known)
    neither = decision(["AB"], "Sure", time, is_blind=False, has_score=False, **known)
    assert [claim.conditions for claim in (blind, in_sight, neither)] == [
        (kinds.BLIND,),
        (kinds.IN_SIGHT,),
        (kinds.NO_SCORE,),
    ]
    for language in LANGUAGES:
        said = sentences([blind, in_sight, neither], language)
        assert len(set(said)) == 3
        assert "score" not in said[2]


# --- of several films
# ---------------------------------------------------------------------------
@pytest.fixture(scope="module")
def judged_films():
    """Ten films whose judge is not sure of a window each, and their blind judgements."""
    films = [
        invented_film(f"m{year}", year=year, n_rows=60, duration_s=900.0, seed=year)
        for year in range(1980, 1990)
    ]
    rng = np.random.default_rng(0)
    clips = []
    for film in films:
        for place, clip in enumerate(choose_next([film], 14, blind=True)):
            level = NOT_SURE if place == 4 else str(rng.choice([POSITIVE, NEGATIVE]))
            clips.append(replace(clip, level=level, annotator="AB"))
    return films, Manifest(tuple(clips), Path())


def test_a_group_says_that_what_one_of_two_judges_was_not_sure_of_is_left_out(judged_films):
    """CD is sure of the window that AB is not sure of, so it counts, for CD alone."""
    films, by_ab = judged_films
    by_cd = [
        replace(clip, annotator="CD", level=NEGATIVE if clip.level == NOT_SURE else clip.level)
        for clip in by_ab
    ]
    (claim,) = group_claims(compare_films(films, by_ab.with_clips([*by_ab, *by_cd])))[:1]
    assert claim.n_windows == 140
    assert claim.has(kinds.NOT_SURE)
    (sure_claim,) = group_claims(compare_films(films, by_ab.with_clips(by_cd)))[:1]
    assert not sure_claim.has(kinds.NOT_SURE)


def keys_of(notes):
    return [note.key for note in notes if isinstance(note, Message)]


def with_doubts_of_cd(by_ab):
    """Let CD judge what AB does, and be sure of 9 windows of each film: too few for a share of a film."""
    doubts = {(clip.movie, int(clip.extras["place"])) for clip in by_ab if clip.level == NOT_SURE}
    clips = []
    for clip in by_ab:
        place = int(clip.extras["place"])
        level = NOT_SURE if place > 9 or (clip.movie, place) in doubts else clip.level
        clips.append(replace(clip, annotator="CD", clip_id=f"CD-{clip.clip_id}", level=level))
    return by_ab.with_clips([*by_ab, *clips])


def test_a_change_of_shares_has_the_condition_of_its_groups(judged_films):
    films, judgements = judged_films
    claims = group_claims(compare_films(films, judgements, trend="year"))
    shares = [claim for claim in claims if isinstance(claim, kinds.GroupShare)]
    changes = [claim for claim in claims if isinstance(claim, kinds.GroupChange)]
    assert shares
    assert changes
    for claim in (*shares, *changes):
        assert claim.has(kinds.NOT_SURE)
        assert claim.time.part == "sure"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_films_share_that_leaves_a_judge_out_says_so_wherever_it_is(judged_films, language):
    films, by_ab = judged_films
    words = Words(language)
    compared = compare_films(films, with_doubts_of_cd(by_ab), trend="year")
    assert {film.judges_left_out for film in compared.films} == {("CD",)}
    said_of_both = words.say("judged_together", who=words.listed(["AB", "CD"]))
    figure = years_figure(compared, words, is_own_file=True)
    for film in compared.films:
        assert said_of_both in phrases.film_share_note(compared_share(film, compared), words)
    assert figure.count(said_of_both) == len(films)
    report = comparison_report(compared)
    assert "note_judges" in keys_of(report.notes)
    assert "AB (without CD)" in plain(report)
    assert html.escape(texts(language)["note_judges"]) in comparison_page(compared, language=language)
    alone = compare_films(films, by_ab, trend="year")
    assert "note_judges" not in keys_of(comparison_report(alone).notes)
    assert said_of_both not in years_figure(alone, words, is_own_file=True)


@pytest.mark.parametrize("language", LANGUAGES)
def test_of_a_concept_no_window_is_said_to_be_left_out(judged_films, language):
    """A doubt of the level is none of a concept: the share of a concept counts all windows."""
    films, by_ab = judged_films
    words = Words(language)
    compared = compare_films(films, by_ab, trend="year")
    of_concept = replace(compared, positive=replace(compared.positive, is_concept=True))
    for of_what, key in ((compared, ""), (of_concept, "_concept")):
        assert keys_of(comparison_report(of_what).notes)[0] == f"note_share{key}"
        assert words[f"years_dots{key}"] in years_legend(of_what, words)
    assert "not sure" not in str(comparison_report(of_concept).notes[0])


def test_groups_say_that_windows_were_left_out_and_what_is_worth_is_more_than_was_judged(judged_films):
    compared = compare_films(*judged_films)
    (claim,) = group_claims(compared)
    assert (claim.n_windows, claim.has(kinds.NOT_SURE), claim.time.part) == (130, True, "sure")
    assert claim.worth is None or round(claim.worth) > claim.n_windows
    for language in LANGUAGES:
        words = Words(language)
        assert words["unsure_left_out"] in phrases.groups_sentence([claim], words)
        page = comparison_page(compared, language=language)
        assert words.counted("windows_judged_surely", 14, sure=13, who="AB") in page
        assert words["years_blocks"] not in page  # a decade has too few films here, or none is asked for


def test_films_that_are_judged_in_part_are_not_called_unjudged_nor_those_judged_wholly_to_be_judged(
    judged_films,
):
    """Of ten films one is judged wholly and never surely, one in part, four enough, four not at all."""
    films, judgements = judged_films
    whole, part, *rest = [film.movie for film in films]
    enough = rest[:4]
    clips = [clip for clip in judgements if clip.movie in enough]
    windows = {film.movie: choose_next([film], 10**6, blind=True) for film in films[:2]}
    clips += [replace(clip, level=NOT_SURE, annotator="AB") for clip in windows[whole]]
    clips += [replace(clip, level=POSITIVE, annotator="AB") for clip in windows[part][:6]]
    compared = compare_films(films, Manifest(tuple(clips), Path()))

    # The share needs one film more, and the one that is named can still be judged.
    (claim,) = group_claims(compared)
    assert (claim.n_judged, claim.number) == (4, None)
    (advised,) = [film.movie for film in films if film.movie in claim.reason]
    assert advised not in (whole, *enough)

    # The page says of both films how many of their windows were judged.
    film_of = {film.timeline.movie: film for film in compared.films}
    assert (film_of[whole].counts.sure, film_of[whole].counts.left) == (0, 0)
    assert film_of[part].counts.sure == 6
    for language in LANGUAGES:
        words, page = Words(language), comparison_page(compared, language=language)
        for movie in (whole, part):
            of_model, counts = compared_share(film_of[movie], compared), film_of[movie].counts
            note = phrases.few_windows_note(of_model, counts.judged, counts.sure, words)
            assert str(counts.judged) in note
            assert note in page


def test_means_of_films_of_different_judges_are_of_no_judge_and_differences_say_what_they_do(judged_films):
    """Films of ten years are compared by odd and even years; AB judges all, or AB and CD judge some each.

    Then AB judges those of 1980 to 1986 and CD those of 1983 to 1989.
    """
    films, judgements = judged_films
    clips = []
    for clip in judgements:
        year = int(clip.movie[1:])
        if year < 1987:
            clips.append(replace(clip, annotator="AB", clip_id=f"a-{clip.clip_id}"))
        if year > 1982:
            clips.append(replace(clip, annotator="CD", clip_id=f"c-{clip.clip_id}"))
    facts = {film.movie: {"side": "odd" if int(film.movie[1:]) % 2 else "even"} for film in films}
    by_ab = compare_films(films, judgements, facts, by="side")
    by_both = compare_films(films, Manifest(tuple(clips), Path()), facts, by="side")
    for compared, is_by_both in ((by_ab, False), (by_both, True)):
        shares = [claim for claim in group_claims(compared) if isinstance(claim, kinds.GroupShare)]
        assert [claim.has(kinds.OTHER_JUDGES) for claim in shares] == [is_by_both] * 2
        (change,) = compared.changes.to_dict("records")
        assert bool(change["note"]) == is_by_both
        said = phrases.groups_sentence(group_claims(compared), Words("en"))
        assert said.startswith("AB would mark") == (not is_by_both)
        assert not said.startswith("AB and CD would mark")
    (change,) = by_both.changes.to_dict("records")
    for language in LANGUAGES:
        assert Words(language).again(change["note"]) in comparison_page(by_both, language=language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_means_over_judges_say_so_and_how_far_the_judges_agree_over_all_films(judged_films, language):
    """Planted: CD judges each window of ten films as AB does, but for every third."""
    films, judgements = judged_films
    words, both = Words(language), []
    n_alike = n_sure = 0
    for place, clip in enumerate(judgements):
        other = clip.level
        if clip.level != NOT_SURE and place % 3 == 0:
            other = NEGATIVE if clip.level == POSITIVE else POSITIVE
        if clip.level != NOT_SURE:
            n_sure += 1
            n_alike += other == clip.level
        both.append(replace(clip, annotator="AB", clip_id=f"a-{clip.clip_id}"))
        both.append(replace(clip, annotator="CD", clip_id=f"c-{clip.clip_id}", level=other))
    alone = group_claims(compare_films(films, judgements))
    mixed = group_claims(compare_films(films, Manifest(tuple(both), Path())))
    assert not [claim for claim in alone if isinstance(claim, kinds.PairKappa)]
    (pair,) = [claim for claim in mixed if isinstance(claim, kinds.PairKappa)]
    assert (pair.who, pair.n, pair.alike) == (("AB", "CD"), n_sure, n_alike)
    said = phrases.groups_sentence(mixed, words)
    assert phrases.sentence(pair, words) in said
    assert words["mean_of_judges"] in said
    assert words["mean_of_judges"] not in phrases.groups_sentence(alone, words)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_legend_tells_of_what_is_drawn(judged_films, language):
    films, judgements = judged_films
    wholly = []
    for clip in choose_next(films, 10**6, blind=True):
        level = POSITIVE if clip.start_s > 300 else NEGATIVE
        wholly.append(replace(clip, level=level, annotator="AB"))
    words = Words(language)
    drawn = {"years_intervals": "c-interval", "years_hollow": "c-alone", "years_line": "c-trend"}
    for table, trend in ((judgements, "year"), (Manifest(tuple(wholly), Path()), None)):
        for some in (table, table.with_clips(clip for clip in table if clip.movie < "m1985")):
            compared = compare_films(films, some, trend=trend)
            figure, legend = years_figure(compared, words), years_legend(compared, words)
            for key, drawing in drawn.items():
                said = words[key].rstrip(".")  # the trend may go on with a note
                assert (said in legend) == (drawing in figure), (key, len(some.clips))


@pytest.mark.parametrize(
    ("language", "whose"),
    [
        ("en", "the trend, of all who judged, through the mean of the full dots"),
        ("fr", "la tendance, de tous ceux qui ont jugé, par la moyenne des points pleins"),
    ],
)
def test_the_legend_says_of_whom_the_trend_is_and_where_its_line_lies(judged_films, language, whose):
    """Dots may be of one judge, where the others of a film judged too little of it alone."""
    films, judgements = judged_films
    compared = compare_films(films, judgements, trend="year")
    assert whose in years_legend(compared, Words(language))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_figure_for_an_article_says_whose_shares_its_dots_are_and_of_what_time(judged_films, language):
    """Of ten films six are judged; of the others the model, or a machine's labels, has a share alone."""
    films, judgements = judged_films
    words = Words(language)
    some = judgements.with_clips(clip for clip in judgements if clip.movie < "m1986")
    every = choose_next(films, 10**6, blind=True)
    labels = [
        replace(clip, level=(NEGATIVE, POSITIVE)[k % 2], annotator="vlm") for k, clip in enumerate(every)
    ]
    of_model = compare_films(films, some, trend="year")
    of_labels = compare_films(films, some, trend="year", labels=Manifest(tuple(labels), Path()))
    for compared, alone in (
        (of_model, words["model_only"]),
        (of_labels, words.say("labels_only", who="vlm")),
    ):
        figure = years_figure(compared, words, is_own_file=True)
        labels_of_dots = re.findall("<title>(.*?)</title>", figure)
        assert len(labels_of_dots) == len(films)
        for film, label in zip(compared.films, labels_of_dots, strict=True):
            assert film.facts["title"] in label
            assert ("AB" in label) == (film.rate is not None)
            assert (alone in label) == (film.rate is None)
            share = film.expected if film.rate is None else film.rate.value
            assert words.share(share) in label
        # The legend is in the file: an article has no page around it.
        drawn = " ".join(re.findall('<text class="c-start"[^>]*>(.*?)</text>', figure))
        assert drawn == years_legend(compared, words)
        assert words["years_dots"] in drawn
        assert ("vlm" in drawn) == (compared is of_labels)
    page = comparison_page(of_labels, language=language)
    assert f">{words.say('labels_alone', who='vlm')}</th>" in page
    assert words["note_alone"] not in page


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_trend_that_accounts_for_who_judged_says_so_in_the_sentence(judged_films, language):
    films, judgements = judged_films
    words, clips = Words(language), []
    for clip in judgements:  # AB judges the films of even years, CD those that a third divides
        year = int(clip.movie[1:])
        names = [name for name, is_theirs in (("AB", year % 2 == 0), ("CD", year % 3 < 2)) if is_theirs]
        clips += [replace(clip, annotator=name, clip_id=f"{name}-{clip.clip_id}") for name in names]
    table = [clip for clip in judgements if not any(one.movie == clip.movie for one in clips)]
    within = compare_films(films, Manifest((*clips, *table), Path()), trend="year")
    alone = compare_films(films, judgements, trend="year")
    for compared, is_within in ((within, True), (alone, False)):
        said = phrases.groups_sentence(group_claims(compared), words)
        assert words["later_name"] in said
        assert (words["note_accounts"] in said) == is_within
        assert (words["note_accounts"] in years_legend(compared, words)) == is_within


@pytest.mark.parametrize(("extent", "step"), [(0.0227, "0.01"), (0.4, "0.1"), (3.0, "1"), (40.0, "1")])
def test_a_trend_is_by_no_more_than_the_films_lie_apart(judged_films, extent, step):
    films, judgements = judged_films
    facts = {film.movie: {"weight": str(place * extent / 9)} for place, film in enumerate(films)}
    compared = compare_films(films, judgements, facts, trend="weight")
    (change,) = compared.changes.to_dict("records")
    assert change["change"] == f"weight + {step}"
    assert abs(change["value"]) <= 1
