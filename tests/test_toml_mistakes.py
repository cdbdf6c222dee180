"""Mistakes that people make in a codebook or a list of models that they write by hand (TOML)."""

import pytest

from obygaze_features.untrusted import parse_toml

MISTAKES = {
    "a text without quotes": ('name = "a"\nlevel = calm', "line 2", "text in quotes"),
    "no closing quote": ('name = "a\nversion = "1"', "line 1", "closing quote"),
    "a name twice": ('name = "a"\nname = "b"\nversion = "1"', "line 2", "each name"),
    "a table twice": ("[level]\na = 1\n[level]\nb = 2\n[c]", "line 3", "each name"),
    "a colon": ("name: 1\nversion = 2", "line 1", "NAME = VALUE"),
    "a sentence": ("These are the levels.\nname = 1", "line 1", "NAME = VALUE"),
    "a path of Windows": ('folder = "C:\\videos"\nname = "a"', "line 1", "backslash"),
    "no closing bracket": ("[levels\nname = 1", "line 1", "closing bracket"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_with_its_line_and_what_was_expected(mistake):
    text, line, expected = MISTAKES[mistake]

    with pytest.raises(ValueError, match=rf"^damaged at {line}: .*{expected}"):
        parse_toml(text)


def test_the_message_on_damaged_toml_quotes_nothing_of_the_file():
    """A TOML file of a stranger has a key twice, in the lines 1 and 2; so it is damaged at line 2.

    The key is the character U+202E, which makes a terminal write from right to left. Quoted in the message,
    it would change what the user sees.
    """
    right_to_left = "\u202e"
    text = f'"{right_to_left}" = "a"\n"{right_to_left}" = "b"\nname = "c"'

    with pytest.raises(ValueError, match="damaged at line 2") as refusal:
        parse_toml(text)

    assert right_to_left not in str(refusal.value)
