"""Every public name has an example that runs, in a folder with a corpus of toy films and models of it."""

import doctest
import inspect
import sys
from pathlib import Path

import numpy as np
import pytest

import obygaze_features as of
import obygaze_film
import obygaze_models as om
import obygaze_studies
from obygaze.demo_corpus import write_video

ROOT = Path(__file__).parents[1]
PACKAGES = (of, om, obygaze_film, obygaze_studies)
PUBLIC = [(package, name) for package in PACKAGES for name in package.__all__ if name != "__version__"]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Make a folder with films.csv and more.csv, stores of both, kept models and a video of 16 frames."""
    folder = tmp_path_factory.mktemp("doctests")
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        from toy_films import write_toy_films
    finally:
        sys.path.remove(str(ROOT / "examples"))
    write_toy_films(folder)
    write_toy_films(folder, "more", first=6)
    for name in ("videos", "copies", "shared"):
        (folder / name).mkdir()
    data = om.load_dataset(of.open_store(folder / "stores" / "films"), of.read_manifest(folder / "films.csv"))
    names = ["linear", "attention"]
    om.save_models(
        om.evaluate(data, names, task="hn_s", test="enhn_s"), data, names, folder / "kept", licence="MIT"
    )
    frames = (np.full((48, 64, 3), 5 * place, np.uint8) for place in range(16))
    write_video(folder / "videos" / "clip.mp4", frames, 8)
    return folder


@pytest.mark.parametrize(("package", "name"), PUBLIC, ids=lambda part: getattr(part, "__name__", part))
def test_a_public_name_has_an_example_that_runs(package, name, prepared, monkeypatch):
    monkeypatch.chdir(prepared)
    thing = getattr(package, name)
    assert ">>>" in (inspect.getdoc(thing) or ""), f"{package.__name__}.{name} has no example"
    found = [
        test for test in doctest.DocTestFinder(recurse=True).find(thing, name, globs={}) if test.examples
    ]
    assert found
    for test in found:
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        said = []
        runner.run(test, out=said.append)
        assert not runner.failures, "".join(said)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_the_package_itself_has_an_example_that_runs(package):
    tests = doctest.DocTestFinder(recurse=False).find(package)
    assert any(test.examples for test in tests)
    assert doctest.testmod(package).failed == 0
