"""What `film compare` says of single films: whose share, corrected by what, and why there is none."""

import re
from dataclasses import replace

import numpy as np
import pytest

from obygaze_features.manifest import Manifest
from obygaze_film import compare_films, score_film
from obygaze_film.claims import rate_claims, sentences
from obygaze_film.claims.kinds import ClaimTime, TimelineAgreement
from obygaze_film.claims.of_groups import timeline_agreement
from obygaze_film.claims.of_judgements import judged_share
from obygaze_film.group_report import comparison_report
from obygaze_film.judged_rate import rates_by_definition
from obygaze_film.page.side_by_side import comparison_page
from obygaze_film.windows_to_judge import choose_next
from obygaze_models.report import plain
from tests.film.films import film_store
from tests.planted_models import codebook

PLANTED_S = ((40.0, 80.0), (104.0, 136.0))


@pytest.fixture(scope="module")
def films(trained, tmp_path_factory):
    """Films of 168 s: one that two people judge, one that nobody judges, one cut off after 72 s."""
    folder = tmp_path_factory.mktemp("compared")
    stores = {
        "judged": film_store(folder, "judged", end_s=168.0, planted=PLANTED_S, seed=1),
        "unjudged": film_store(folder, "unjudged", end_s=168.0, planted=PLANTED_S, seed=2),
        "cut": film_store(folder, "cut", end_s=168.0, holes=((72.0, 168.0),), seed=3),
    }
    return [score_film(store, [trained.paths["pcbm_lr"]]) for store in stores.values()]


def calls_of_two(clip):
    """AB calls violent what is planted, and CD every other 8 seconds, whatever they show.

    So the two agree no better than by chance.
    """
    is_planted = any(start <= clip.start_s < end for start, end in PLANTED_S)
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


def printed(text):
    """Return a text on one line, as a terminal of any width would wrap it."""
    return " ".join(text.split())


@pytest.mark.long
def test_a_table_says_why_a_film_has_no_share(compared):
    """One film is not judged; the other one could not be read from 72 s on, so that the model gives no rate.

    A reason says more than an empty cell or "undefined".
    """
    text = printed(plain(comparison_report(compared)))
    assert "undefined" not in text
    assert text.count("not judged") >= 2
    assert re.search(r"cut, model alone: no rate: \d+% of the film .* could not be read", text)

    page = comparison_page(compared)
    assert re.search(r"no rate: \d+% of the film .* could not be read", page)
    assert re.search(
        r"pas de taux : \d+ % du film .* n’a pas pu être lu", comparison_page(compared, language="fr")
    )


def test_report_and_page_warn_that_judges_may_agree_by_chance(
    compared,
):
    """The interval of AB's and CD's kappa reaches down to 0: their agreement may be chance.

    Report and page say so beside the kappa and as a warning, though no group of films has a share.
    """
    (pair,) = compared.agreement
    assert pair.low is not None
    assert pair.low <= 0

    report = printed(plain(comparison_report(compared)))
    page = comparison_page(compared)
    # Beside their kappa
    assert "it may be no better than chance" in report
    assert "it may be no better than chance" in page
    # As a warning
    assert "AB and CD: they may agree no better than chance" in report
    assert "they may agree no better than chance" in page


def test_film_rate_and_page_have_one_sentence_on_two_judges(compared, films, judgements):
    """The command and the page must not differ on how far AB and CD agree."""
    claims = rate_claims(rates_by_definition(films[0], judgements))
    (sentence,) = [text for text in sentences(claims) if text.startswith("AB and CD: ")]
    assert sentence.removesuffix(".") in comparison_page(compared)


def test_the_sentence_on_a_share_says_whether_a_model_corrected_it(films, judgements):
    """The method "difference" corrects a share by the model's probabilities."""
    rates = rates_by_definition(films[0], judgements).rates
    for rate in rates:
        (english,) = sentences([judged_share(rate)], "en")
        (french,) = sentences([judged_share(rate)], "fr")
        is_corrected = rate.method == "difference"
        assert ("the share is corrected by pcbm_lr" in english) == is_corrected
        assert ("la part est corrigée par pcbm_lr" in french) == is_corrected

    (rate_of_ab,) = [rate for rate in rates if list(rate.annotators) == ["AB"]]
    assert rate_of_ab.method == "difference"


def test_a_kappa_of_timelines_is_of_the_time_that_the_model_can_judge():
    """The model can judge 280 s of 408 s; kappa says nothing of the rest."""
    time = ClaimTime("judged", 280.0)
    claim = TimelineAgreement(who=("m",), what="AB", time=time, number=0.25, n_films=2, whole_s=408.0)
    english, french = (sentences([claim], language)[0] for language in ("en", "fr"))
    assert "mean of 2 films, in the 280 s that m can judge of 408 s" in english
    assert "moyenne de 2 films, sur les 280 s que m peut juger de 408 s" in french

    # Where both mark all or nothing there is no agreement beyond chance to measure: kappa is 0 / 0.
    undefined = replace(claim, number=None)
    english, french = (sentences([undefined], language)[0] for language in ("en", "fr"))
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
    """The interval holds 0, or it lies below 0, where people agree less than by chance.

    One from .0049 is printed as from 0.00, and so is told like one that holds 0.
    """
    row = {"value": (low + high) / 2, "low": low, "high": high}
    claim = timeline_agreement("m", "AB", row, n_films=2, judged_s=149.0, whole_s=149.0)
    assert f"({doubt})" in sentences([claim], "en")[0]


def test_a_kappa_of_timelines_that_is_surely_above_chance_has_no_doubt():
    """Its interval, .1 to .5, lies above 0."""
    row = {"value": 0.3, "low": 0.1, "high": 0.5}
    claim = timeline_agreement("m", "AB", row, n_films=2, judged_s=149.0, whole_s=149.0)
    assert "0.50] (95%), mean of 2 films" in sentences([claim], "en")[0]


@pytest.mark.parametrize(
    ("kappa", "n_films", "why", "may_be_chance"),
    [
        pytest.param(-0.06, 2, ("needs 3 films", "demande 3 films"), True, id="two films"),
        pytest.param(0.66, 2, ("needs 3 films", "demande 3 films"), False, id="two films, well above 0"),
        pytest.param(0.0, 4, ("same in each film", "même dans chaque film"), True, id="all alike"),
        pytest.param(1.0, 4, ("same in each film", "même dans chaque film"), False, id="all perfect"),
    ],
)
def test_a_kappa_of_timelines_without_interval_says_why(kappa, n_films, why, may_be_chance):
    """Where it is not above 0 either, it says that it may be chance."""
    row = {"value": kappa, "low": np.nan, "high": np.nan}
    claim = timeline_agreement("m", "AB", row, n_films=n_films, judged_s=149.0, whole_s=149.0)
    for text, language in zip(why, ("en", "fr"), strict=True):
        assert text in sentences([claim], language)[0]
    assert ("no better than chance" in sentences([claim], "en")[0]) == may_be_chance
