"""`codebook guess` takes for levels what an import takes for levels: n/a in a column of levels is none."""

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import guess_codebook


def codebook_guessed_of(tmp_path, *levels):
    """Write a table of films with these levels, one each, and guess the codebook of its labels."""
    table = tmp_path / "ratings.csv"
    rows = [f"film{index},{level}" for index, level in enumerate(levels)]
    table.write_text("\n".join(["movie,level", *rows, ""]), encoding="utf-8")
    return guess_codebook(table)


@pytest.mark.parametrize("missing", ["n/a", "N/A", "-", "?", "NA"])
def test_a_word_for_a_missing_level_is_no_level_and_is_counted(tmp_path, missing):
    """Four films have the levels 2 and 1, and twice a word that says that there is none, such as n/a.

    So the guessed codebook has the levels 1 and 2, in the order of numbers.
    """
    guessed = codebook_guessed_of(tmp_path, "2", missing, "1", missing)

    assert [level.name for level in guessed.levels] == ["1", "2"]
    assert guessed.is_in_order
    assert f"2 cells without a level ({missing!r}), as an import reads it" in guessed.notices()


@pytest.mark.parametrize("minus", ["-", "--"])
def test_a_minus_beside_a_plus_is_a_level_whose_name_is_refused(tmp_path, minus):
    """Films are rated +, - and ++. Alone, a minus would say that there is no level, and be left out.

    Beside a plus it is an answer. As no level of a codebook may be called so, the guess is refused, and the
    person can write another word: the answers are not lost.
    """
    with pytest.raises(ManifestError, match="make no codebook"):
        codebook_guessed_of(tmp_path, "+", minus, "++", minus)


def test_none_may_be_the_lowest_level(tmp_path):
    """Two of three films have "none", and one has "some".

    The word none may say that there is no level. Here it is the lower one of two.
    """
    guessed = codebook_guessed_of(tmp_path, "none", "some", "none")

    assert {level.name for level in guessed.levels} == {"none", "some"}
