"""The page of words, docs/vocabulary.md: in alphabetical order, each word once; what it names is there."""

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path
from pkgutil import resolve_name

import click

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


WORDS_OF_SECTION = {section.partition("\n")[0]: words_of(section) for section in PAGE.split("\n## ")[1:]}
"""Title of a section -> the words that it explains, in their order."""
IN_BACKTICKS = sorted(set(CODE.findall(PAGE)))
"""What the page has between backticks: names of code, options, paths."""


def those_known(words):
    """Return which words are options, words of the packages' facts, or names or texts of their code.

    Only a module that has a word of which nothing is known yet is taken apart.
    """
    known = set()
    for _, command, _ in all_commands():
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                known.update(parameter.opts)
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.toml"):
            known |= words_of_facts(tomllib.loads(path.read_text(encoding="utf-8")))
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            source = path.read_text(encoding="utf-8")
            if any(word in source for word in words - known):
                known |= words_of_module(ast.parse(source))
    return words & known


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


def test_the_words_of_each_section_are_in_alphabetical_order():
    """The page docs/vocabulary.md has ten sections; capitals are sorted as small letters."""
    assert len(WORDS_OF_SECTION) == 10
    for title, words in WORDS_OF_SECTION.items():
        assert words == sorted(words, key=str.casefold), title


def test_no_word_is_explained_twice():
    """A word with several meanings has them all in one place."""
    all_words = []
    for words in WORDS_OF_SECTION.values():
        all_words += [word.casefold() for word in words]

    explained_twice = [word for word, n in Counter(all_words).items() if n > 1]
    assert explained_twice == []


def test_a_class_function_or_module_that_the_page_names_exists():
    """The page has them in backticks with their whole path, such as `obygaze_features.store.store.Store`.

    IN_BACKTICKS is all that stands so, and IS_DOTTED the form of such a path.
    """
    paths = [name for name in IN_BACKTICKS if IS_DOTTED.fullmatch(name)]

    assert len(paths) > 100
    for path in paths:
        resolve_name(path)  # raises an error that names what is not there


def test_each_short_name_in_backticks_on_the_page_is_a_name_of_the_packages():
    """The page has in backticks (IN_BACKTICKS) also short names, such as `clip_id` or `--seen`.

    Each must be a word of the packages' code or facts, which `those_known` looks up. Left out are dotted
    names of modules, classes and functions, which another test imports, commands and targets of make
    (NOT_OF_PACKAGES), and paths of files that are there, such as `tests/store/frozen`.
    """
    short_names = set()
    for name in IN_BACKTICKS:
        is_class_function_or_module = IS_DOTTED.fullmatch(name)
        is_command = NOT_OF_PACKAGES.fullmatch(name)
        is_path = "/" in name and (ROOT / name).exists()
        if not (is_class_function_or_module or is_command or is_path):
            short_names.add(name)

    assert len(short_names) > 50
    unknown_names = short_names - those_known(short_names)
    assert unknown_names == set()
