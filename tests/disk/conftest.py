"""One runner and one set of inputs for all tests of this folder."""

import shutil
import sys

import pytest

from .harness import Runner, compiled


@pytest.fixture(scope="session")
def runner(tmp_path_factory):
    """The process that does the work; it costs a second to start."""
    if not sys.platform.startswith("linux") or shutil.which("cc") is None:
        pytest.skip("the disk can't be made to fail here: that needs Linux and a C compiler")
    started = Runner(compiled(tmp_path_factory.mktemp("library")))
    yield started
    started.close()


@pytest.fixture(scope="session")
def inputs(runner, tmp_path_factory):
    """Stores, a stage, a zip, a partial copy, files to import."""
    folder = tmp_path_factory.mktemp("inputs").resolve()
    run_in_runner(runner, folder, "make_inputs")
    return folder


@pytest.fixture(scope="session")
def films_too(runner, inputs):
    """Films, models and scores beside them, which take seconds."""
    run_in_runner(runner, inputs, "make_films")


@pytest.fixture(scope="session")
def lab_too(runner, inputs, films_too):  # noqa: ARG001 - films are made first
    """A lab's folder beside them: a film, its scores, judgements of it, and what trained the model."""
    run_in_runner(runner, inputs, "make_lab")


def run_in_runner(runner, folder, function):
    """Run a function of runner.py, by its name, on a folder; if it fails, show what it wrote to stderr."""
    answer = runner.ask(folder, call=function)
    stderr = answer["said"]
    assert answer["code"] == 0, stderr
