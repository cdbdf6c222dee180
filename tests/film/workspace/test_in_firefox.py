"""The desk in Debian's Firefox, which Playwright does not drive: by its own protocol, JSON over TCP."""

import json
import os
import shutil
import socket
import subprocess
import time
from itertools import count

import pytest

from obygaze_film.workspace.decisions import JUDGEMENTS, PASSAGES
from tests.browsers import LONG_MS
from tests.files import rows_of
from tests.film.workspace.conftest import free_port
from tests.film.workspace.driving import BEGIN_HERE, CALM, END_HERE, NEXT_PASSAGE, REDO, UNDO, VIOLENT

pytestmark = pytest.mark.long

ENTER = "\ue007"


class Firefox:
    """A headless Firefox with a profile of its own, driven by Marionette, its remote protocol.

    A message is JSON with its length in bytes before it, as `7:[0,1,2]`. A command is the list [0, number,
    name, parameters], and its answer [1, number, error, result].
    """

    def __init__(self, path, folder):
        port = free_port()
        (folder / "user.js").write_text(f'user_pref("marionette.port", {port});\n')
        self.process = subprocess.Popen(
            [path, "--headless", "--marionette", "--no-remote", "--profile", str(folder)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(folder)},
        )
        self.socket = self.connect(port)
        self.file = self.socket.makefile("rwb")
        self.command_numbers = count(1)
        self.read()  # its greeting
        self.ask("WebDriver:NewSession", capabilities={})

    def connect(self, port):
        """Connect to Firefox as soon as it listens."""
        ends = time.monotonic() + LONG_MS / 1000
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port))
            except ConnectionRefusedError:
                assert self.process.poll() is None
                assert time.monotonic() < ends
                time.sleep(0.1)

    def read(self):
        """Read the next message."""
        size = b""
        while (digit := self.file.read(1)) != b":":
            size += digit
        return json.loads(self.file.read(int(size)))

    def ask(self, command, **parameters):
        """Give a command, and return its result."""
        message = json.dumps([0, next(self.command_numbers), command, parameters]).encode()
        self.file.write(b"%d:%s" % (len(message), message))
        self.file.flush()
        _, _, error, result = self.read()
        assert error is None, error
        return result

    def run(self, script):
        """Return the value of an expression of JavaScript."""
        return self.ask("WebDriver:ExecuteScript", script=f"return {script}", args=[])["value"]

    def until(self, script):
        """Wait until an expression of JavaScript is true."""
        ends = time.monotonic() + LONG_MS / 1000
        while not self.run(script):
            assert time.monotonic() < ends, script
            time.sleep(0.05)

    def until_said(self, text):
        """Wait until the page says a text to a screen reader, and empty what it said."""
        self.until(f"document.querySelector('#d-spoken').textContent.includes({text!r})")
        self.run("document.querySelector('#d-spoken').textContent = ''")

    def press(self, keys):
        """Press and release one key after the other."""
        actions = []
        for key in keys:
            actions.append({"type": "keyDown", "value": key})
            actions.append({"type": "keyUp", "value": key})
        keyboard = {"type": "key", "id": "keys", "actions": actions}
        self.ask("WebDriver:PerformActions", actions=[keyboard])

    def close(self):
        self.ask("Marionette:Quit", flags=["eForceQuit"])
        self.process.wait()
        self.file.close()
        self.socket.close()


@pytest.fixture
def firefox(tmp_path):
    """A running Firefox, if one is installed."""
    path = shutil.which("firefox-esr") or shutil.which("firefox")
    if path is None:
        pytest.skip("no Firefox here: install Debian's package firefox-esr")
    (tmp_path / "profile").mkdir()
    running = Firefox(path, tmp_path / "profile")
    yield running
    running.close()


COUNT_ROWS_OF_TABLE = "document.querySelectorAll('#d-table tbody tr').length"
"""How many decisions the table of the desk shows."""


def open_desk_in(firefox, address):
    """Open a desk, and wait until its script has given the page a title."""
    firefox.ask("WebDriver:Navigate", url=address)
    firefox.until("document.querySelector('#d-title')?.textContent")


def type_name(firefox, name):
    """Type who judges into the field that the page has asked for, and leave the field."""
    firefox.press([*name, ENTER])
    firefox.run("document.activeElement.blur()")


def wait_for_probability(firefox):
    """Wait until the desk shows the model's probability of what is looked at."""
    firefox.until("parseFloat(document.querySelector('#d-p').textContent) > 0")


def levels_in(table):
    """Return the level of each row of a table of decisions."""
    return [row["level"] for row in rows_of(table)]


def test_a_passage_is_judged_undone_and_done_again(firefox, films, serve, tmp_path):
    """The desk works in Firefox as in Chromium. AB judges the first passage that a model found in a film.

    A name is asked for first. The file of judgements, and the table on the page, have one row or none after
    each key, and the page says what it did.
    """
    folder = tmp_path / "tt1"
    shutil.copytree(films / "scored" / "tt1", folder)
    served = serve(folder, films / "violence.codebook.toml", enter=False)
    open_desk_in(firefox, served.address)

    def assert_levels_of_judgements(levels):
        assert levels_in(folder / JUDGEMENTS) == levels
        assert firefox.run(COUNT_ROWS_OF_TABLE) == len(levels)

    # The first passage is judged violent, once who judges has a name.
    firefox.press([NEXT_PASSAGE, VIOLENT])
    firefox.until_said("name")
    type_name(firefox, "AB")
    firefox.press([VIOLENT])
    firefox.until_said("kept")
    wait_for_probability(firefox)
    assert_levels_of_judgements(["violent"])

    # It is undone, done again and changed.
    firefox.press([UNDO])
    firefox.until_said("undo")
    assert_levels_of_judgements([])
    firefox.press([REDO])
    firefox.until_said("redo")
    assert_levels_of_judgements(["violent"])
    firefox.press([CALM])
    firefox.until_said("kept")
    assert_levels_of_judgements(["calm"])

    # A passage is marked, and both are there when the page is loaded again.
    firefox.press([BEGIN_HERE, END_HERE, VIOLENT])
    firefox.until_said("kept")
    assert levels_in(folder / PASSAGES) == ["violent"]
    firefox.ask("WebDriver:Refresh")
    firefox.until(f"{COUNT_ROWS_OF_TABLE} === 2")
