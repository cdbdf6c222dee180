"""A folder of inputs of marked name, so that no path of it is printed or written unseen; commands in it."""

import json
import re
import shlex
import shutil

import pytest

from tests.cli.table import stand_in
from tests.command import obygaze
from tests.private import MARK, SECRET_VALUES
from tests.store.serving import serving


@pytest.fixture(scope="session")
def given(tmp_path_factory):
    """The inputs."""
    pytest.importorskip("av")
    from tests.cli import shelf

    folder = tmp_path_factory.mktemp("given")
    shelf.write(folder)
    return folder


@pytest.fixture(scope="session")
def url(given):
    """The address of the inputs on a server."""
    with serving(given) as server:
        yield server.url


@pytest.fixture
def place(given, tmp_path, monkeypatch):
    """A folder of marked name to stand in, with the inputs in `in`, and marked secrets in the environment."""
    place = tmp_path / MARK
    shutil.copytree(given, place / "in", symlinks=True)
    return stand_in(place, monkeypatch)


@pytest.fixture
def run(capfd, request):
    """Run a command; gives its exit code and what it printed, with single blanks.

    What begins with in/ or out/ is typed as an absolute path; data/ is the folder of real annotations, and
    url/ a server of the inputs.
    """

    def typed(word, place):
        if word.startswith("data/"):
            return str(request.getfixturevalue("shared_data") / word.removeprefix("data/"))
        if word.startswith("url/"):
            return f"{request.getfixturevalue('url')}/{word.removeprefix('url/')}"
        return f"{place}/{word}" if word.startswith(("in/", "out/")) else word

    def run(command, place):
        words = [typed(word, place) for word in shlex.split(command)]
        code = obygaze(*words)
        printed = []
        for text in capfd.readouterr():
            assert not [word for word in SECRET_VALUES if word in text], command
            flat = re.sub(r"\s+", " ", text.replace(json.dumps(MARK)[1:-1], MARK)).replace(f"{place}/", "")
            assert MARK not in flat, (command, flat)
            printed.append(flat)
        return code, *printed

    return run
