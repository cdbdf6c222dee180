"""The page of words, docs/vocabulary.md: in alphabetical order, each word once; what it names is there."""

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path
from pkgutil import resolve_name

import click
import pytest

from tests.cli.walk import all_commands

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "vocabulary.md").read_text(encoding="utf-8")
PACKAGES = ("obygaze_features", "obygaze_models", "obygaze_film", "obygaze_studies")

ENTRY = re.compile(r"^\| (?P<word>.+?) \| (?P<meaning>.+) \|$", re.MULTILINE)
HEADS_OF_TABLE = ("word", "---")
CODE = re.compile(r"`([^`]+)`")
IS_DOTTED = re.compile(r"obygaze_\w+(\.\w+)*")
NOT_OF_PACKAGES = re.compile(r"obygaze .*|make \w+")
"""Commands, which tests/test_documented_commands.py reads, and targets of make."""


def words_of(text):
    """List the words that the tables of a text explain, in their order."""
    return [match["word"] for match in ENTRY.finditer(text) if match["word"] not in HEADS_OF_TABLE]


SECTIONS = {section.partition("\n")[0]: words_of(section) for section in PAGE.split("\n## ")[1:]}
NAMED = sorted(set(CODE.findall(PAGE)))


@pytest.fixture(scope="module")
def known_words():
    """Every name and every text of the packages' code, the words of their facts, and all options."""
    words = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            words |= words_of_module(ast.parse(path.read_text(encoding="utf-8")))
        for path in (ROOT / package).rglob("*.toml"):
            words |= words_of_facts(tomllib.loads(path.read_text(encoding="utf-8")))
    for _, command, _ in all_commands():
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                words.update(parameter.opts)
    return words


def words_of_module(tree):
    """Return the names of a module, of whatever it defines or uses, and its texts."""
    words = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words.add(node.value)
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            words.add(node.name)
        elif isinstance(node, ast.arg | ast.keyword):
            words.add(node.arg)
        elif isinstance(node, ast.Name):
            words.add(node.id)
    return words


def words_of_facts(facts):
    """Return the keys and texts of a TOML document, at any depth."""
    if isinstance(facts, dict):
        return set(facts).union(*map(words_of_facts, facts.values()))
    if isinstance(facts, list):
        return set().union(*map(words_of_facts, facts))
    return {facts} if isinstance(facts, str) else set()


def test_each_section_is_in_alphabetical_order_and_no_word_is_explained_twice():
    assert len(SECTIONS) == 10
    for title, words in SECTIONS.items():
        assert words == sorted(words, key=str.casefold), title
    counts = Counter(word.casefold() for words in SECTIONS.values() for word in words)
    assert [word for word, n in counts.items() if n > 1] == []


def test_a_class_function_or_module_that_the_page_names_is_there():
    places = [name for name in NAMED if IS_DOTTED.fullmatch(name)]
    assert len(places) > 100
    for place in places:
        resolve_name(place)  # raises an error that names what is not there


def test_every_other_word_of_code_is_one_of_the_packages_or_a_path(known_words):
    for name in NAMED:
        if IS_DOTTED.fullmatch(name) or NOT_OF_PACKAGES.fullmatch(name):
            continue
        is_path = "/" in name and (ROOT / name).exists()
        assert is_path or name in known_words, name
