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

pytestmark = pytest.mark.long

ENTER, ESCAPE = "\ue007", "\ue00c"


class Firefox:
    """A headless Firefox with a profile of its own."""

    def __init__(self, path, folder):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        (folder / "user.js").write_text(f'user_pref("marionette.port", {port});\n')
        words = [path, "--headless", "--marionette", "--no-remote", "--profile", str(folder)]
        self.process = subprocess.Popen(
            words,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(folder)},
        )
        self.numbers, ends = count(1), time.monotonic() + LONG_MS / 1000
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", port))
                break
            except ConnectionRefusedError:
                assert self.process.poll() is None
                assert time.monotonic() < ends
                time.sleep(0.1)
        self.file = self.socket.makefile("rwb")
        self.read()  # its greeting
        self.ask("WebDriver:NewSession", capabilities={})

    def read(self):
        size = b""
        while (digit := self.file.read(1)) != b":":
            size += digit
        return json.loads(self.file.read(int(size)))

    def ask(self, name, **asked):
        data = json.dumps([0, next(self.numbers), name, asked]).encode()
        self.file.write(b"%d:%s" % (len(data), data))
        self.file.flush()
        _, _, error, answer = self.read()
        assert error is None, error
        return answer

    def run(self, script):
        return self.ask("WebDriver:ExecuteScript", script=f"return {script}", args=[])["value"]

    def until(self, script):
        ends = time.monotonic() + LONG_MS / 1000
        while not self.run(script):
            assert time.monotonic() < ends, script
            time.sleep(0.05)

    def press(self, keys):
        acts = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.ask("WebDriver:PerformActions", actions=[{"type": "key", "id": "keys", "actions": acts}])

    def close(self):
        self.ask("Marionette:Quit", flags=["eForceQuit"])
        self.process.wait()
        self.file.close()
        self.socket.close()


@pytest.fixture
def firefox(tmp_path):
    path = shutil.which("firefox-esr") or shutil.which("firefox")
    if path is None:
        pytest.skip("no Firefox here: install Debian's package firefox-esr")
    (tmp_path / "profile").mkdir()
    running = Firefox(path, tmp_path / "profile")
    yield running
    running.close()


def test_a_passage_is_judged_undone_and_done_again(firefox, films, serve, tmp_path):
    shutil.copytree(films / "scored" / "tt1", tmp_path / "tt1")
    served = serve(tmp_path / "tt1", films / "violence.codebook.toml", enter=False)
    firefox.ask("WebDriver:Navigate", url=served.address)
    firefox.until("document.querySelector('#d-title')?.textContent")

    def said(text):
        firefox.until(f"document.querySelector('#d-spoken').textContent.includes({text!r})")
        firefox.run("document.querySelector('#d-spoken').textContent = ''")

    rows = "document.querySelectorAll('#d-table tbody tr').length"
    firefox.press("n3")
    said("name")
    firefox.press("AB" + ENTER)
    firefox.run("document.activeElement.blur()")
    firefox.press("3")
    said("kept")
    firefox.until("document.querySelector('#d-p').textContent > '0'")
    assert [row["level"] for row in rows_of(tmp_path / "tt1" / JUDGEMENTS)] == ["violent"]
    assert firefox.run(rows) == 1
    for key, text, left in (("z", "undo", []), ("y", "redo", ["violent"]), ("1", "kept", ["calm"])):
        firefox.press(key)
        said(text)
        assert [row["level"] for row in rows_of(tmp_path / "tt1" / JUDGEMENTS)] == left
        assert firefox.run(rows) == len(left)
    firefox.press("io3")
    said("kept")
    assert [row["level"] for row in rows_of(tmp_path / "tt1" / PASSAGES)] == ["violent"]
    firefox.ask("WebDriver:Refresh")
    firefox.until(f"{rows} === 2")
