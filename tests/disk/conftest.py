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
    made(runner, folder, "make_inputs")
    return folder


@pytest.fixture(scope="session")
def films_too(runner, inputs):
    """Films, models and scores beside them, which take seconds."""
    made(runner, inputs, "make_films")


def made(runner, folder, call):
    """Make inputs."""
    answer = runner.ask(folder, call=call)
    assert answer["code"] == 0, answer["said"]
