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
    monkeypatch.chdir(prepared)
    thing = getattr(package, name)
    assert ">>>" in (inspect.getdoc(thing) or ""), f"{package.__name__}.{name} has no example"
    result = [
        test for test in doctest.DocTestFinder(recurse=True).find(thing, name, globs={}) if test.examples
    ]
    assert result
    for test in result:
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        said = []
        runner.run(test, out=said.append)
        assert not runner.failures, "".join(said)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_the_package_itself_has_an_example_that_runs(package):
    tests = doctest.DocTestFinder(recurse=False).find(package)
    assert any(test.examples for test in tests)
    assert doctest.testmod(package).failed == 0
