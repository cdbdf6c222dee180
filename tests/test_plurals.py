"""A message writes a number with its noun by `counted`: "1 clip", never "1 clips"."""

import ast
import itertools
import re
from pathlib import Path

import pytest

from obygaze_features.text import counted

ROOT = Path(__file__).resolve().parent.parent

NOUNS = re.compile(
    r"(more |other |test )?(clips|films|movies|rows|windows|files|shots|videos|texts|images|items|captions"
    r"|records|pictures|pairs|questions|frames|folds|units|subtitles|objects)\b"
)

ALWAYS_SEVERAL = {
    "obygaze_features/manifest/identity.py",
    "obygaze_features/manifest/importers/span_films.py",
    "obygaze_features/manifest/spans/names.py",
}
"""Modules whose messages say that several things are one, or that one name is of several."""


def numbers_before_plural_nouns(path):
    """Yield the numbers of a module's f-strings that are followed by a noun in the plural."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.JoinedStr):
            continue
        parts = node.values
        for number, text in itertools.pairwise(parts):
            if not isinstance(number, ast.FormattedValue) or not isinstance(text, ast.Constant):
                continue
            source = ast.unparse(number.value)
            is_number = re.match(r"len\(|sum\(|(\w+\.)*n_\w+$|n$", source)
            if is_number and re.match(" " + NOUNS.pattern, str(text.value)):
                yield f"{path.relative_to(ROOT)}:{number.lineno}: {{{source}}}{text.value}"


@pytest.mark.long
@pytest.mark.parametrize("package", ["obygaze", "obygaze_features", "obygaze_models", "obygaze_studies"])
def test_no_message_can_say_1_clips(package):
    """No f-string has a number before a plural noun, as f"{n} clips" has: `counted(n, "clip")` writes both.

    Three modules are left out, whose messages always have a number above 1.
    """
    found = []
    for path in sorted((ROOT / package).rglob("*.py")):
        if str(path.relative_to(ROOT)) not in ALWAYS_SEVERAL:
            found += numbers_before_plural_nouns(path)

    assert found == []


@pytest.mark.parametrize(("n", "written"), [(0, "0 films"), (1, "1 film"), (2, "2 films")])
def test_a_number_is_written_with_its_noun(n, written):
    assert counted(n, "film") == written


@pytest.mark.parametrize(("n", "written"), [(0, "0 films are"), (1, "1 film is"), (2, "2 films are")])
def test_a_number_is_written_with_its_noun_and_verb(n, written):
    assert counted(n, "film is", "films are") == written
