"""Words of tables that hold a label and deny it, or whose letters are an abbreviation."""

import pytest

from obygaze_features.manifest import builtin_codebook
from obygaze_features.manifest.importers.word_guesses import label_like, label_near
from obygaze_features.manifest.spans.label_words import LabelWords

WORDS = LabelWords(builtin_codebook("obygaze12")).with_guesses()


@pytest.mark.parametrize(
    "text",
    ["Body (no)", "Body [nein]", "Body: non", "Clothing no", "Expression of emotion (não)", "sure (not)"],
)
def test_a_label_behind_which_stands_no_is_not_guessed(text):
    """A list of all concepts says of each whether it is there."""
    assert label_like(text, WORDS) == ""
    assert label_near(text, WORDS) == ""


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Body (yes)", "Body"),
        ("Body [x]", "Body"),
        ("EN (0)", "EN"),
        ("not sure", "NS"),
        ("1. EN", "EN"),
        ("a. sure", "S"),
        ("S.", "S"),
    ],
)
def test_codes_and_signs_of_yes_deny_nothing(text, label):
    """A number in brackets is the code of a level, and `not sure` is a level itself."""
    assert label_near(text, WORDS) == label


@pytest.mark.parametrize(("text", "label"), [("n.s.", "NS"), ("N. S.", "NS"), ("e.n.", "EN"), ("s.o.", "")])
def test_the_letters_of_an_abbreviation_are_read_together(text, label):
    """`n.s.` is no level S with a code n in front."""
    assert label_like(text, WORDS) == label
    assert label_near(text, WORDS) == label


def test_the_person_is_asked_what_a_denied_concept_means(refusal_of):
    """The first clip of a table has the concept "Body (no)", the second "Body (yes)"; the codebook has Body.

    The refusal proposes what to type so that the table is read, as `--word WORD=MEANING`. "Body (yes)" is
    taken for Body. "Body (no)" may not be, or Body would be marked where it is not there: LABEL stands in
    its place, for which the person types a concept, or nothing.
    """
    table = "movie,start_s,end_s,level,concepts\nf,1,2,S,Body (no)\nf,3,4,EN,Body (yes)\n"

    refusal = refusal_of({"t.csv": table})

    option_for_denied, option_for_confirmed = refusal.options
    assert option_for_denied == "--word 'Body (no)=LABEL'"
    assert option_for_confirmed == "--word 'Body (yes)=Body'"
