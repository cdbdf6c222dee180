"""What the sentences of `film learn` say of a change that has no interval."""

import numpy as np
import pandas as pd
import pytest

from obygaze_film.claims import document, sentences
from obygaze_film.learning import learnt_claims


def films_of_corpus(*, before, after):
    """Make the table `Learnt.films` of films of the corpus, from their AUC before and after learning."""
    return pd.DataFrame({"judged": 0, "before": before, "after": after})


def sentence_of(films, language="en"):
    """Return the only sentence on what learning changed in these films."""
    (text,) = sentences(learnt_claims("linear", films), language)
    return text


def test_the_sentence_on_the_change_of_auc_over_three_films_says_what_its_interval_covers():
    """Three films of the corpus are enough for an interval of the mean change by learning.

    It would hold the change of models that are both trained anew, and the sentence says so.
    """
    films = films_of_corpus(before=[0.6, 0.7, 0.8], after=[0.62, 0.75, 0.81])

    assert "], 95% if both are trained anew, 3 films)" in sentence_of(films)


@pytest.mark.parametrize(
    ("language", "level", "reason"),
    [("en", "95%", "an interval needs 3 films"), ("fr", "95 %", "un intervalle demande 3 films")],
)
def test_a_change_over_two_films_says_that_an_interval_needs_three(language, level, reason):
    """A level without an interval would make readers look for one."""
    text = sentence_of(films_of_corpus(before=[0.6, 0.7], after=[0.62, 0.75]), language)

    assert level not in text
    assert text.endswith(f"2 films, {reason})")


def test_the_sentence_on_learning_says_that_the_change_is_the_same_in_each_film_in_place_of_an_interval():
    """The AUC rose from .5 to .75 in each of three films: an interval would have no width."""
    text = sentence_of(films_of_corpus(before=[0.5, 0.5, 0.5], after=[0.75, 0.75, 0.75]))

    assert "95%" not in text
    assert text.endswith("AUC +0.250, 3 films, the same in each film, without an interval)")


def test_the_sentence_on_learning_calls_the_auc_undefined_if_no_film_has_one():
    """The only film of the corpus has clips of one class, so that neither AUC of it is defined (NaN)."""
    text = sentence_of(films_of_corpus(before=[np.nan], after=[np.nan]))

    assert text.endswith("AUC undefined, 0 films, an interval needs 3 films)")


def test_the_document_of_a_claim_on_learning_over_two_films_says_why_it_has_no_interval():
    """Claims are written as JSON documents, too, which programs read; `conditions` has what limits a claim.

    The linear model's AUC changed in two films of the corpus, and an interval needs three.
    """
    (claim,) = learnt_claims("linear", films_of_corpus(before=[0.6, 0.7], after=[0.62, 0.75]))

    (condition,) = document(claim)["conditions"]
    assert condition == "without an interval, which needs 3 films"
