"""Words of tables that hold a label and deny it, or whose letters are an abbreviation."""

import pytest

from obygaze_features.manifest import builtin_codebook
from obygaze_features.manifest.importers.word_guesses import label_like, label_near
from obygaze_features.manifest.spans.label_words import LabelWords

WORDS_OF_OBYGAZE12 = LabelWords(builtin_codebook("obygaze12")).with_guesses()
"""The words for the labels of ObyGaze12, and their translations."""


@pytest.mark.parametrize(
    "text",
    ["Body (no)", "Body [nein]", "Body: non", "Clothing no", "Expression of emotion (não)", "sure (not)"],
)
def test_a_label_behind_which_stands_no_is_not_guessed(text):
    """A cell lists a concept, or a level, and says behind it that it is not there: "Body (no)".

    Such lists name all concepts and say of each whether it is there, so that Body must not be guessed of it.
    """
    assert label_like(text, WORDS_OF_OBYGAZE12) == ""
    assert label_near(text, WORDS_OF_OBYGAZE12) == ""


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
    """Beside a label stands a yes, a number or a letter: it is still the label.

    A number in brackets is the code of a level, and "not sure" is the title of a level, NS.
    """
    assert label_near(text, WORDS_OF_OBYGAZE12) == label


@pytest.mark.parametrize(("text", "label"), [("n.s.", "NS"), ("N. S.", "NS"), ("e.n.", "EN"), ("s.o.", "")])
def test_the_letters_of_an_abbreviation_are_read_together(text, label):
    """Letters with points between abbreviate a level: n.s. is NS, and not S with a code n in front.

    The letters s.o. abbreviate no level, so nothing is guessed.
    """
    assert label_like(text, WORDS_OF_OBYGAZE12) == label
    assert label_near(text, WORDS_OF_OBYGAZE12) == label


def test_the_person_is_asked_what_a_denied_concept_means(refusal_of):
    """The clips of a table have the concepts "Body (no)" and "Body (yes)". The codebook has Body.

    The refusal proposes options --word WORD=MEANING, with Body for the second. The first has LABEL, which
    the person replaces by a concept or nothing, or Body would be marked where it is not there.
    """
    table = "movie,start_s,end_s,level,concepts\nf,1,2,S,Body (no)\nf,3,4,EN,Body (yes)\n"

    refusal = refusal_of({"t.csv": table})

    option_for_denied, option_for_confirmed = refusal.options
    assert option_for_denied == "--word 'Body (no)=LABEL'"
    assert option_for_confirmed == "--word 'Body (yes)=Body'"
