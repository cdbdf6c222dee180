"""Docstrings: public names have examples, all examples run, and private names that texts mention are there.

Examples that read files run in a folder with a corpus of toy films and models of it.
"""

import ast
import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

import obygaze_features as of
import obygaze_film
import obygaze_models as om
import obygaze_studies

ROOT = Path(__file__).parents[1]
PACKAGES = (of, om, obygaze_film, obygaze_studies)
PUBLIC = [(package, name) for package in PACKAGES for name in package.__all__ if name != "__version__"]
FOLDERS = ("obygaze", "obygaze_features", "obygaze_models", "obygaze_film", "obygaze_studies")

SOURCES = {
    path.relative_to(ROOT): path.read_text(encoding="utf-8")
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*.py"))
}
"""Module's path -> its source, of all modules."""

TOY_FILES = re.compile(r">>> .*(stores/|films\.csv|videos/|kept/|random:0)")
"""What an example has that reads the corpus of toy films, or makes a whole network."""


def examples_of_module(path):
    """Return the docstrings of a module that have examples, but for those of public names."""
    parts = path.with_suffix("").parts
    module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
    public_names = {name for _, name in PUBLIC}
    with_examples = []
    for docstring in doctest.DocTestFinder().find(module):
        own_name = docstring.name.removeprefix(f"{module.__name__}.").split(".")[0]
        if docstring.examples and own_name not in public_names:
            with_examples.append(docstring)
    return with_examples


def run_examples(docstrings):
    """Run the examples of docstrings, each with its own names; where one is wrong, show what it gives."""
    for docstring in docstrings:
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        report = []
        runner.run(docstring, out=report.append)
        assert not runner.failures, "".join(report)


@pytest.mark.long
@pytest.mark.parametrize(("package", "name"), PUBLIC, ids=lambda part: getattr(part, "__name__", part))
def test_a_public_name_has_an_example_that_runs(package, name, prepared, monkeypatch):
    """The examples stand in the docstring of a name of `__all__`, and in those of its methods.

    They run in a folder of toy films, with their tables, stores and models, each without any import made.
    """
    folder_of_toy_films = prepared
    monkeypatch.chdir(folder_of_toy_films)
    public_object = getattr(package, name)
    docstring = inspect.getdoc(public_object) or ""
    assert ">>>" in docstring, f"{package.__name__}.{name} has no example"

    docstrings = doctest.DocTestFinder(recurse=True).find(public_object, name, globs={})
    with_examples = [test for test in docstrings if test.examples]
    assert with_examples
    run_examples(with_examples)


def modules_with_examples(*, of_toy_files):
    """List the modules that have examples, of those that read toy films in any of them, or of the others."""
    paths = []
    for path, source in SOURCES.items():
        if ">>>" in source and bool(TOY_FILES.search(source)) == of_toy_files:
            paths.append(path)
    return paths


@pytest.mark.parametrize("path", modules_with_examples(of_toy_files=False), ids=str)
def test_examples_of_names_that_are_not_public_give_what_they_say(path, tmp_path, monkeypatch):
    """People who change the code read these examples, of functions within a module, to learn what they do."""
    monkeypatch.chdir(tmp_path)
    run_examples(examples_of_module(path))


@pytest.mark.long
@pytest.mark.parametrize("path", modules_with_examples(of_toy_files=True), ids=str)
def test_examples_on_toy_films_of_names_that_are_not_public_give_what_they_say(path, prepared, monkeypatch):
    """In these modules some example reads the corpus of toy films, in whose folder they run."""
    folder_of_toy_films = prepared
    monkeypatch.chdir(folder_of_toy_films)
    run_examples(examples_of_module(path))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_the_docstring_of_a_package_has_an_example(package):
    """A package is one of ours, such as `obygaze_features`; examples are lines with >>> and their output."""
    assert ">>>" in package.__doc__


PRIVATE_NAME = re.compile(r"`(?:\w+\.)?(_[a-z]\w+)(?:\(\))?`")
"""A private name of ours between backticks, maybe with its class before it: `_read_rows`, `Table._rows`."""


def names_and_texts(source):
    """Return the names in a module's code, and the texts that mention names: comments and docstrings.

    A string that is no docstring is code: it may name a key.
    """
    nodes = list(ast.walk(ast.parse(source)))
    expressions = [node.value for node in nodes if isinstance(node, ast.Expr)]
    docstrings = [expression for expression in expressions if isinstance(expression, ast.Constant)]
    texts = [str(docstring.value) for docstring in docstrings] + re.findall(r"#.*", source)

    names = set()
    for node in set(nodes).difference(docstrings):
        for _, value in ast.iter_fields(node):
            if isinstance(value, str):
                names.update(re.findall(r"\w+", value))
    return names, texts


def test_a_private_name_that_a_comment_or_docstring_mentions_is_in_the_code():
    """A function that was renamed, or put into its caller, may still be mentioned where nobody looks.

    So a name with an underscore that a comment or docstring has in backticks must be in the code of some
    module. Parsing all modules would take long. First those with such a mention are parsed, which mostly have
    the name itself too; then those whose source has a name that was not found yet.
    """
    names = set()
    mentions = set()
    for path, source in SOURCES.items():
        if PRIVATE_NAME.search(source):
            names_of_module, texts = names_and_texts(source)
            names |= names_of_module
            for text in texts:
                mentions.update((name, str(path)) for name in PRIVATE_NAME.findall(text))
    mentioned_names = {name for name, _path in mentions}
    for source in SOURCES.values():
        may_have_missing_name = any(name in source for name in mentioned_names - names)
        if may_have_missing_name:
            names_of_module, _texts = names_and_texts(source)
            names |= names_of_module

    assert len(mentions) > 50  # else they would be written in another way
    mentions_of_nothing = [(name, path) for name, path in sorted(mentions) if name not in names]
    assert mentions_of_nothing == []
