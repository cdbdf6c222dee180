"""Inputs of commands in a folder of marked name, so that no path of it is printed or written unseen."""

import json
import re
import shlex
import shutil

import pytest

from tests.cli.table import stand_in
from tests.command import EndedCommand, obygaze
from tests.private import MARK, SECRET_VALUES
from tests.store.serving import serving


@pytest.fixture(scope="session")
def inputs(tmp_path_factory):
    """The folder of all inputs of commands (`inputs.py`); it must not be changed."""
    pytest.importorskip("av")
    from tests.cli import inputs as input_files

    folder = tmp_path_factory.mktemp("inputs")
    input_files.write(folder)
    return folder


@pytest.fixture(scope="session")
def url(inputs):
    """The address of the inputs on a server."""
    with serving(inputs) as server:
        yield server.url


@pytest.fixture
def workdir(inputs, tmp_path, monkeypatch):
    """The current folder: its name is `MARK`, the inputs are in `in`, `out` is empty.

    The environment holds `SECRETS`, which no command may print or write.
    """
    workdir = tmp_path / MARK
    shutil.copytree(inputs, workdir / "in", symlinks=True)
    return stand_in(workdir, monkeypatch)


@pytest.fixture
def run(capfd, request):
    """Run a command line in a folder; output and messages are by `without_place`.

    What begins with in/ or out/ is typed as an absolute path; data/ is the folder of real annotations, and
    url/ a server of the inputs. Fails if a secret or the name of the folder is printed.
    """

    def typed(word, workdir):
        if word.startswith("data/"):
            return str(request.getfixturevalue("shared_data") / word.removeprefix("data/"))
        if word.startswith("url/"):
            return f"{request.getfixturevalue('url')}/{word.removeprefix('url/')}"
        if word.startswith(("in/", "out/")):
            return f"{workdir}/{word}"
        return word

    def run_command(command, workdir):
        words = [typed(word, workdir) for word in shlex.split(command)]
        code = obygaze(*words)
        out, err = (without_place(text, workdir) for text in capfd.readouterr())
        check_that_nothing_private_is_printed(out + err, command)
        return EndedCommand(code, out, err)

    return run_command


MARK_IN_JSON = json.dumps(MARK).strip('"')
"""The mark as JSON writes it, without umlauts."""


def without_place(text, workdir):
    """Return a text in which paths are relative to a folder, and all white space is single blanks."""
    single_blanks = re.sub(r"\s+", " ", text.replace(MARK_IN_JSON, MARK))
    return single_blanks.replace(f"{workdir}/", "")


def check_that_nothing_private_is_printed(text, command):
    """Check that a text has no secret and, outside of typed paths, no part of the folder's name."""
    assert not [secret for secret in SECRET_VALUES if secret in text], command
    assert MARK not in text, (command, text)
