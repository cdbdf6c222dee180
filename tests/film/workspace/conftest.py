"""A workspace served on loopback: scored films with planted passages, and a film that a browser plays."""

import http.client
import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.film.films import scored_film
from tests.planted_models import codebook


@pytest.fixture(scope="session")
def films(tmp_path_factory, trained):
    """Two scored films in a folder, with the codebook beside them."""
    folder = tmp_path_factory.mktemp("workspace")
    codebook(folder)
    for movie in ("tt1", "tt2"):
        scored_film(folder / "scored", trained, movie)
    return folder


class Served:
    """A running `film open`, asked by plain HTTP."""

    def __init__(self, process: "subprocess.Popen[str]", address: str) -> None:
        self.process, self.address = process, address
        self.host, _, entry = address.removeprefix("http://").partition("/")
        self.entry = f"/{entry}"
        answer, _ = self.ask("GET", self.entry, cookie="")
        self.cookie = answer.getheader("set-cookie", "").partition(";")[0]

    def ask(self, method, path, body=None, *, cookie=None, **headers):
        """Ask, as the page itself does unless told otherwise; headers by name, _ for -."""
        name, port = self.host.rsplit(":", 1)
        connection = http.client.HTTPConnection(name, int(port), timeout=60)
        sent = {"Host": self.host, "Origin": f"http://{self.host}", "Cookie": cookie or ""}
        if cookie is None:
            sent["Cookie"] = self.cookie
        sent |= {key.replace("_", "-").title(): value for key, value in headers.items()}
        with closing(connection):
            connection.request(method, path, None if body is None else json.dumps(body), sent)
            answer = connection.getresponse()
            return answer, answer.read()

    def decide(self, number=0, **body):
        answer, text = self.ask("POST", f"/film/{number}/decide", {"who": "AB", **body})
        return answer.status, json.loads(text)


@pytest.fixture
def serve():
    """Start `film open` on copies of its folders; it ends with the test."""
    running = []

    def start(scored: Path, book: Path, *more: str) -> Served:
        words = [sys.executable, "-m", "obygaze", "film", "open", str(scored), "--no-browser"]
        words += ["--codebook", str(book), *more]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        running.append(process)
        said = []
        for line in process.stdout:
            if line.startswith("http://127.0.0.1:"):
                return Served(process, line.strip())
            said.append(line)
        raise AssertionError("".join(said))

    yield start
    for process in running:
        process.kill()
        process.wait()
        process.stdout.close()
