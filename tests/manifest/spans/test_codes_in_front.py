"""A code in front of a label is left out where a word's meaning is proposed, unless it is a label itself."""

import pytest

from obygaze_features.manifest import builtin_codebook
from obygaze_features.manifest.importers.word_guesses import label_like
from obygaze_features.manifest.spans.label_words import LabelWords


@pytest.fixture
def words():
    """The words for the labels of ObyGaze12, of which S has the title Sure."""
    return LabelWords(builtin_codebook("obygaze12"))


@pytest.mark.parametrize("text", ["3 – Sure", "a) sure", "S: sure", "S - S", "sure (clearly)"])
def test_a_code_that_is_no_other_label_is_left_out(words, text):
    """Each text means the level S, whose title is Sure, with a number, a letter or a remark beside it."""
    assert label_like(text, words) == "S"


@pytest.mark.parametrize("text", ["EN-HN", "HN - sure", "NS: S", "S-NS"])
def test_a_cell_of_two_levels_is_not_taken_for_the_second_with_a_code_in_front(words, text):
    """In "1 - Sure" the part in front is a code, and left out. In "HN - sure" both parts are levels.

    That is a range of levels, or what somebody hesitates between. So no level is guessed (""), and the
    person is asked what the cell means.
    """
    assert label_like(text, words) == ""
