"""Every public name has an example that runs, in a folder with a corpus of toy films and models of it."""

import doctest
import inspect
from pathlib import Path

import pytest

import obygaze_features as of
import obygaze_film
import obygaze_models as om
import obygaze_studies

ROOT = Path(__file__).parents[1]
PACKAGES = (of, om, obygaze_film, obygaze_studies)
PUBLIC = [(package, name) for package in PACKAGES for name in package.__all__ if name != "__version__"]


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
    for test in with_examples:
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        report = []
        runner.run(test, out=report.append)
        assert not runner.failures, "".join(report)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_the_docstring_of_a_package_has_an_example_that_runs(package):
    """A package is one of ours, such as `obygaze_features`; examples are lines with >>> and their output."""
    docstrings = doctest.DocTestFinder(recurse=False).find(package)
    with_examples = [test for test in docstrings if test.examples]
    assert with_examples

    assert doctest.testmod(package).failed == 0
