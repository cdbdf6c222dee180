"""A name is proposed for a misspelt one, and none where a person who takes it would say something else."""

import pytest

from obygaze_features.manifest.spans.names import nearest

LEVELS = ["EN", "HN", "NS", "S"]
LIKERT = ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize("text", ["sí", "si", "S?", "N"])
def test_a_word_of_one_or_two_letters_is_not_taken_for_a_level_that_is_nearly_spelled_so(text):
    """The levels are EN, HN, NS and S. These words differ from one or several by a single letter.

    In words so short that is no slip: `sí` is yes in Spanish, `S?` may be less than sure, and `N` may be any
    of three. No level is proposed ("").
    """
    assert nearest(text, LEVELS) == ""


@pytest.mark.parametrize("text", ["-1", "11", "12", "1.5", "0"])
def test_a_number_outside_of_a_scale_is_not_taken_for_a_misspelt_one(text):
    """On a scale from 1 to 5, -1 may be no answer and 1.5 a mean: no number is proposed for them ("")."""
    assert nearest(text, LIKERT) == ""


@pytest.mark.parametrize("text", ["++", "--"])
def test_a_sign_written_twice_is_another_degree(text):
    """On a scale with + and -, `++` is more than `+`, and no key that was pressed too long."""
    assert nearest(text, ["-", "0", "+"]) == ""


@pytest.mark.parametrize(
    ("misspelt", "names", "meant"),
    [
        ("ENN", ["EN", "HN", "NS", "S"], "EN"),
        ("SS", ["EN", "HN", "NS", "S"], "S"),
        ("ns?", ["EN", "HN", "NS", "S"], "NS"),
        ("vilent", ["calm", "violent"], "violent"),
        ("2.0", ["1", "2", "3", "4", "5"], "2"),
        ("1990", ["1980s", "1990s"], "1990s"),
        ("54215", ["tt0054215"], "tt0054215"),
    ],
)
def test_a_misspelt_name_is_proposed(misspelt, names, meant):
    """A table has a word that is none of the names of levels or films, and one of the names is near it."""
    assert nearest(misspelt, names) == meant
