"""What `film compare` says of single films: whose share, corrected by what, and why there is none."""

import re
from dataclasses import replace

import numpy as np
import pytest

from obygaze_features.manifest import Manifest
from obygaze_film import compare_films, score_film
from obygaze_film.claims import Words, group_claims, phrases, rate_claims, sentences
from obygaze_film.claims.kinds import ClaimTime, TimelineAgreement
from obygaze_film.claims.of_groups import timeline_agreement
from obygaze_film.claims.of_judgements import judged_share
from obygaze_film.group_report import comparison_report
from obygaze_film.judged_rate import rates_by_definition
from obygaze_film.page.side_by_side import comparison_page
from obygaze_film.windows_to_judge import choose_next
from obygaze_models.report import interval, number, plain, signed
from tests.film.films import film_store
from tests.planted_models import codebook

WITH_GUN_S = ((40.0, 80.0), (104.0, 136.0))
"""From second to second of a film: a gun is planted there, which is violent."""


@pytest.fixture(scope="module")
def films(trained_models, tmp_path_factory):
    """Films of 168 s: one that two people judge, one that nobody judges, one cut off after 72 s."""
    folder = tmp_path_factory.mktemp("compared")
    stores = {
        "judged": film_store(folder, "judged", end_s=168.0, planted=WITH_GUN_S, seed=1),
        "unjudged": film_store(folder, "unjudged", end_s=168.0, planted=WITH_GUN_S, seed=2),
        "cut": film_store(folder, "cut", end_s=168.0, holes=((72.0, 168.0),), seed=3),
    }
    return [score_film(store, [trained_models.paths["pcbm_lr"]]) for store in stores.values()]


def calls_of_two(clip):
    """Judge a window: AB calls violent what is planted, and CD every other 8 seconds, whatever they show.

    So the two agree no better than by chance.
    """
    is_planted = any(start <= clip.start_s < end for start, end in WITH_GUN_S)
    is_odd = round(clip.start_s / 8) % 2 == 1
    by_ab = "violent" if is_planted else "calm"
    by_cd = "violent" if is_odd else "calm"
    return [replace(clip, level=by_ab, annotator="AB"), replace(clip, level=by_cd, annotator="CD")]


@pytest.fixture(scope="module")
def judgements(films, tmp_path_factory):
    """The judgements of 15 windows of the first film by AB and CD."""
    folder = tmp_path_factory.mktemp("book")
    drawn = choose_next(films[:1], 15, blind=True)
    clips = [judged for clip in drawn for judged in calls_of_two(clip)]
    return Manifest(tuple(clips), folder, codebook(folder))


@pytest.fixture(scope="module")
def compared(films, judgements):
    """The three films as they are compared, with the judgements of AB and CD."""
    return compare_films(films, judgements)


def on_one_line(text):
    """Join the lines of a text, which a terminal may have wrapped anywhere."""
    return " ".join(text.split())


@pytest.mark.long
def test_the_report_says_why_a_film_has_no_share(compared):
    """Nobody judged two of three films. One of the two, "cut", could be read for 72 of its 168 s alone.

    The report says of both that they were not judged. For "cut", it also says why the model gives no rate:
    what share of the film could not be read. Nowhere does it leave a share "undefined".
    """
    text = on_one_line(plain(comparison_report(compared)))
    assert "undefined" not in text
    assert text.count("not judged") >= 2
    assert re.search(r"cut, model alone: no rate: \d+% of the film .* could not be read", text)


@pytest.mark.long
def test_the_page_says_why_a_film_has_no_share(compared):
    """The last of three films could not be read from 72 s of 168 s on, so that the model gives no rate."""
    english = comparison_page(compared)
    french = comparison_page(compared, language="fr")
    assert re.search(r"no rate: \d+% of the film .* could not be read", english)
    assert re.search(r"pas de taux : \d+ % du film .* n’a pas pu être lu", french)


def test_report_and_page_warn_that_judges_may_agree_by_chance(compared):
    """AB called violent what was planted, and CD every other window: they agree by chance alone.

    The interval of their kappa reaches down to 0. Report and page say so beside the kappa ("it may ...") and
    as a warning ("they may ..."), though no group of films has a share.
    """
    (pair,) = compared.agreement
    assert pair.low is not None
    assert pair.low <= 0

    report = on_one_line(plain(comparison_report(compared)))
    page = comparison_page(compared)

    assert "it may be no better than chance" in report
    assert "it may be no better than chance" in page
    assert "AB and CD: they may agree no better than chance" in report
    assert "they may agree no better than chance" in page


def test_film_rate_and_page_have_one_sentence_on_two_judges(compared, films, judgements):
    """The command `film rate` and the page must not differ on how far AB and CD agree.

    The two judged the first of the three films that the page compares.
    """
    judged_film = films[0]
    claims_of_film_rate = rate_claims(rates_by_definition(judged_film, judgements))
    (sentence,) = [text for text in sentences(claims_of_film_rate) if text.startswith("AB and CD: ")]

    page = comparison_page(compared)

    assert sentence.removesuffix(".") in page


def test_the_sentence_on_a_share_says_whether_a_model_corrected_it(films, judgements):
    """The method "difference" corrects a share by the model's probabilities.

    AB's share is so corrected; those of CD, and of both, may be or not.
    """
    judged_film = films[0]
    rates = rates_by_definition(judged_film, judgements).rates
    (rate_of_ab,) = [rate for rate in rates if list(rate.annotators) == ["AB"]]
    assert rate_of_ab.method == "difference"

    for rate in rates:
        is_corrected = rate.method == "difference"
        (english,) = sentences([judged_share(rate)], "en")
        (french,) = sentences([judged_share(rate)], "fr")
        assert ("the share is corrected by pcbm_lr" in english) == is_corrected
        assert ("la part est corrigée par pcbm_lr" in french) == is_corrected


KAPPA_OF_280_S = TimelineAgreement(
    who=("m",), what="AB", time=ClaimTime("judged", seconds=280.0), number=0.25, n_films=2, whole_s=408.0
)
"""Model m and person AB agree with kappa .25, in the 280 s of 408 s that m can judge of two films."""


def test_a_kappa_of_timelines_is_of_the_time_that_the_model_can_judge():
    """Of two films of 408 s together, model m gives probabilities in 280 s; kappa says nothing of the rest.

    KAPPA_OF_280_S is such a claim: m and the person AB agree with kappa .25.
    """
    (english,) = sentences([KAPPA_OF_280_S], "en")
    (french,) = sentences([KAPPA_OF_280_S], "fr")
    assert "mean of 2 films, in the 280 s that m can judge of 408 s" in english
    assert "moyenne de 2 films, sur les 280 s que m peut juger de 408 s" in french


def test_a_difference_is_rounded_in_a_table_as_in_its_sentence():
    """A trend of .0625, of films at 1/16 and 2/16: +6.3 points in a sentence, +0.063 in a table.

    Halves go up. What rounds to 0 is +0.000 in tables, and never -0.000.
    """
    words = Words("en")
    assert words.points(0.0625, None) == "+6.3"
    assert words.difference(0.0625, None) == "+0.063"
    assert signed(0.0625, low=-0.0004, high=0.2845) == "+0.063 [+0.000, +0.285]"
    assert interval(0.2845, low=0.0625, high=0.5) == "0.285 [0.063, 0.500]"
    assert (number(0.2845), number(-0.0625, digits=3), number(-0.0004)) == ("0.285", "-0.063", "0.000")


@pytest.mark.long
def test_the_worth_of_a_groups_judgements_is_one_number_in_report_and_page(compared):
    """30.5 windows would be needed without the model: 31 in the report's table and on the page."""
    compared = replace(compared, groups=compared.groups.assign(worth=30.5))
    of_group, *_ = group_claims(compared)
    table, *_ = comparison_report(compared).blocks
    assert {row[table.headers.index("worth")] for row in table.rows} == {"31"}
    assert phrases.worth_value(of_group) == "31"


def test_a_kappa_of_timelines_that_are_all_or_nothing_is_undefined():
    """Where model and person both mark all of a film, or nothing, chance agreement is 1.

    Kappa, (agreement - chance) / (1 - chance), is 0 / 0 then. The claim is KAPPA_OF_280_S without its number.
    """
    undefined = replace(KAPPA_OF_280_S, number=None)
    (english,) = sentences([undefined], "en")
    (french,) = sentences([undefined], "fr")
    assert "kappa undefined (in each film both mark all, or both mark nothing)" in english
    assert "indéfini (dans chaque film, tous deux marquent tout, ou tous deux rien)" in french


@pytest.mark.parametrize(
    ("low", "high", "doubt"),
    [
        pytest.param(-0.15, 0.21, "it may be no better than chance", id="around 0"),
        pytest.param(-0.54, -0.28, "less than by chance", id="below 0"),
        pytest.param(0.0049, 0.21, "it may be no better than chance", id="printed as from 0.00"),
    ],
)
def test_a_kappa_of_timelines_that_may_be_chance_says_so(low, high, doubt):
    """The interval holds 0, or it lies below 0, where model and person agree less than by chance.

    One from .0049 is printed as from 0.00, and so is told like one that holds 0.
    """
    kappa = {"value": (low + high) / 2, "low": low, "high": high}
    claim = timeline_agreement("m", "AB", kappa, n_films=2, judged_s=149.0, whole_s=149.0)
    (sentence,) = sentences([claim], "en")
    assert f"({doubt})" in sentence


def test_a_kappa_of_timelines_that_is_surely_above_chance_has_no_doubt():
    """The interval of a kappa of .3 is .1 to .5, and lies above 0.

    A doubt would stand between the interval and the number of films, and none does.
    """
    kappa = {"value": 0.3, "low": 0.1, "high": 0.5}
    claim = timeline_agreement("m", "AB", kappa, n_films=2, judged_s=149.0, whole_s=149.0)
    (sentence,) = sentences([claim], "en")
    assert "0.50] (95%), mean of 2 films" in sentence


@pytest.mark.parametrize(
    ("kappa", "n_films", "reason_in_english", "reason_in_french", "may_be_chance"),
    [
        pytest.param(-0.06, 2, "needs 3 films", "demande 3 films", True, id="two films"),
        pytest.param(0.66, 2, "needs 3 films", "demande 3 films", False, id="two films, well above 0"),
        pytest.param(0.0, 4, "same in each film", "même dans chaque film", True, id="all alike"),
        pytest.param(1.0, 4, "same in each film", "même dans chaque film", False, id="all perfect"),
    ],
)
def test_a_kappa_of_timelines_without_interval_says_why(
    kappa, n_films, reason_in_english, reason_in_french, may_be_chance
):
    """Kappa says how far model m and annotator AB mark the same seconds of films; 0 is what chance gives.

    It has no interval if it is of fewer than three films, or is the same in each. The sentence gives the
    reason, and says of a kappa of 0 or less that it is no better than chance.
    """
    without_interval = {"value": kappa, "low": np.nan, "high": np.nan}
    claim = timeline_agreement("m", "AB", without_interval, n_films=n_films, judged_s=149.0, whole_s=149.0)

    (english,) = sentences([claim], "en")
    (french,) = sentences([claim], "fr")

    assert reason_in_english in english
    assert reason_in_french in french
    assert ("no better than chance" in english) == may_be_chance
