"""The result of an audit in one sentence says "1 image" and "2 images", whatever was counted."""

import pytest

from obygaze_studies.alpha import audit_alpha
from obygaze_studies.audit_common.findings import Finding, Wording, report
from obygaze_studies.gender_score.cooc import audit_cooc


def sentence_of(wording, **values):
    """Fill values into the sentence of an audit that has no results but this sentence."""
    wording = Wording(name="a", title="An audit", columns=("n",), sentence=wording)
    return report(wording, Finding(rows=[{"n": 1}], sentence_values=values)).answers[0]


@pytest.mark.parametrize(("n", "sentence"), [(0, "0 maps"), (1, "1 map"), (1200, "1,200 maps")])
def test_a_number_has_its_noun_in_the_singular_or_plural(n, sentence):
    """In the sentence of an audit, "{n:map}" is to be filled with the number n and the noun "map"."""
    assert sentence_of("{n:map}", n=n) == sentence


@pytest.mark.parametrize(("n", "sentence"), [(1, "1 test has a star"), (2, "2 tests have a star")])
def test_a_noun_may_include_its_verb(n, sentence):
    """In the sentence of an audit, the text behind a colon has the words for one and those for several."""
    assert sentence_of("{n:test has|tests have} a star", n=n) == sentence


def test_numbers_without_a_noun_are_written_as_python_does():
    assert sentence_of("{n} {n:,} {share}", n=1200, share=0.5) == "1200 1,200 0.5"


def test_alpha_of_one_rater_of_one_item_counts_both_in_the_singular():
    ratings = [{"item_id": "a", "AB": 1.0}]

    (sentence,) = audit_alpha(ratings).answers

    assert sentence.startswith("Cronbach's alpha of 1 rater: ")
    assert sentence.endswith("on 1 item that all of them rated")


def test_one_caption_that_names_a_man_is_counted_in_the_singular():
    (sentence,) = audit_cooc([{"caption_id": "a", "caption": "a man on a horse"}], ["horse"]).answers

    assert sentence.startswith("of 1 caption 1 names a man and 0 a woman")
