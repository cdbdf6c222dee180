"""Levels that are called 0, 1, 2 are texts in a codebook: TOML tells numbers from texts by their quotes."""

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.codebook import codebook_of_text

CODEBOOK_OF_LEVELS = 'name = "v"\nversion = "1"\nlevels = [0, 1, 2]\n'
CODEBOOK_OF_CONCEPTS = 'name = "v"\nversion = "1"\nlevels = ["a", "b"]\nconcepts = [0, 1, 2]\n'


@pytest.mark.parametrize(
    ("key", "codebook"), [("levels", CODEBOOK_OF_LEVELS), ("concepts", CODEBOOK_OF_CONCEPTS)]
)
def test_a_number_in_place_of_a_name_is_refused_with_what_to_type(key, codebook):
    """The codebook calls its levels, or its concepts, [0, 1, 2], without quotes."""
    with pytest.raises(ManifestError) as refusal:
        codebook_of_text(codebook)

    assert str(refusal.value) == f'{key}: 0 is a number, and a name was expected: write "0"'


def test_numbers_in_quotes_are_names():
    """TOML takes "0" in quotes for a text, and a text may be the name of a level."""
    codebook = codebook_of_text('name = "v"\nversion = "1"\nlevels = ["0", "1", "2"]\n')

    assert codebook.level_names == ("0", "1", "2")
