"""A workspace served on loopback: scored films with planted passages, and a film that a browser plays."""

import http.client
import json
import queue
import re
import shutil
import socket
import subprocess
import sys
import threading
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import click
import numpy as np
import pytest
import uvicorn

from obygaze_features.manifest import Codebook
from obygaze_film import Timeline
from obygaze_film.commands import film_open
from obygaze_film.workspace.address import _redirecting_file
from obygaze_film.workspace.decisions import Decisions
from tests.browsers import LONG_MS
from tests.film.films import scored_film
from tests.planted_models import codebook
from tests.video.encoding import encode


@pytest.fixture(scope="session")
def films(tmp_path_factory, trained_models):
    """Two scored films in a folder, with the codebook beside them."""
    folder = tmp_path_factory.mktemp("workspace")
    codebook(folder)
    for movie in ("tt1", "tt2"):
        scored_film(folder / "scored", trained_models, movie)
    return folder


class Served:
    """A running `film open`, asked by plain HTTP.

    It prints an address like http://127.0.0.1:8000/enter/TOKEN, which opens once: it sets a cookie, and names
    the path below which all pages are.

    Attributes
    ----------
    address, host, entry
        The printed address, its name and port, and its path, /enter/TOKEN.
    said
        What was printed before the address.
    entered
        The answer to the entry, which sets the cookie; only if it was entered.
    base
        The path below which all pages are; empty if it was not entered.
    set_cookie, cookie
        The cookie as it is set, with its attributes, and as it is sent, NAME=SECRET.
    """

    def __init__(self, address: str, said: str = "", *, enter: bool = True) -> None:
        self.address = address
        self.said = said
        self.host, _, path = address.removeprefix("http://").partition("/")
        self.entry = f"/{path}"
        self.base = self.cookie = ""
        if enter:
            self._enter()

    def _enter(self) -> None:
        """Ask for the entry, as a browser does: it sets the cookie and names the path of all pages."""
        self.entered, page = self.ask("GET", self.entry)
        # The page redirects: <meta http-equiv="refresh" content="0; url=/TOKEN/films">
        self.base = re.search('url=([^"]*)"', page.decode())[1].rstrip("/")
        self.set_cookie = self.entered.getheader("set-cookie", "")
        self.cookie, *_ = self.set_cookie.split(";")

    def ask(self, method, path, body=None, *, base=None, **headers):
        """Ask as the page itself does, and return the answer and its bytes.

        Headers are given by name, with _ for -; None leaves one out. `base` replaces the path of all pages.
        """
        name, port = self.host.rsplit(":", 1)
        connection = http.client.HTTPConnection(name, int(port), timeout=600)
        sent = {"Host": self.host, "Origin": f"http://{self.host}", "Cookie": self.cookie}
        sent |= {key.replace("_", "-").title(): value for key, value in headers.items()}
        sent = {key: value for key, value in sent.items() if value is not None}
        data = json.dumps(body) if body is not None and not isinstance(body, bytes) else body
        with closing(connection):
            connection.request(method, (self.base if base is None else base) + path, data, sent)
            answer = connection.getresponse()
            return answer, answer.read()

    def next(self, number=0, **asked):
        """Ask for the next window of film `number`: who asks, and how many they judge in all."""
        return json.loads(self.ask("GET", f"/film/{number}/next?{urlencode(asked)}")[1])

    def decide(self, number=0, **body):
        """Send a decision of AB on film `number`; return the status and the answer."""
        answer, text = self.ask("POST", f"/film/{number}/decide", {"who": "AB", **body})
        return answer.status, json.loads(text)


def free_port():
    """Return a port that no program listens at now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


ADDRESS_OF_NOTHING = "http://127.0.0.1:1/ended"
"""Stands for the address of a command that ended before it printed one: no server listens there."""


@contextmanager
def desks_in_threads():
    """Give a function that runs `film open` on folders, each time in a thread; at the end all are stopped."""
    servers_and_threads = []
    created = queue.Queue()
    printed_lines = queue.Queue()

    class Stoppable(uvicorn.Server):
        """A server that is known here, so that it can be told to exit."""

        def __init__(self, config: uvicorn.Config) -> None:
            super().__init__(config)
            created.put((self, threading.current_thread()))

    def run(words: list[str]) -> None:
        try:
            film_open.open_.main(words, standalone_mode=False)
        finally:
            # If it ended before it printed an address, `start` must not wait forever.
            printed_lines.put(ADDRESS_OF_NOTHING)

    def start(scored: Path, book: Path, *more: str, enter: bool = True) -> Served:
        # Threads of earlier tests, which make copies and stills, may still run and print.
        earlier_threads = {*threading.enumerate()}

        def collect(line: object, **_: object) -> None:
            """Stand in for `click.echo`."""
            if threading.current_thread() not in earlier_threads:
                printed_lines.put(str(line))

        words = [str(scored), "--no-browser", "--codebook", str(book), *more]
        lines_before_address = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(uvicorn, "Server", Stoppable)
            patch.setattr(click, "echo", collect)
            threading.Thread(target=run, args=(words,), daemon=True).start()
            while not (line := printed_lines.get()).startswith("http://127.0.0.1:"):
                lines_before_address.append(line)
            if line != ADDRESS_OF_NOTHING:
                servers_and_threads.append(created.get(timeout=600))
        return Served(line, "\n".join(lines_before_address), enter=enter)

    yield start
    for server, thread in servers_and_threads:
        server.should_exit = True
        thread.join()


@pytest.fixture
def serve(monkeypatch, tmp_path):
    """Run `film open` on folders, each time in a thread that ends with the test; its cache goes too."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with desks_in_threads() as start:
        yield start


@pytest.fixture
def process():
    """Run `film open` on its folders as a process of its own: the process and its address."""
    running = []

    def start(scored: Path, book: Path) -> "tuple[subprocess.Popen[str], str]":
        words = [sys.executable, "-m", "obygaze", "film", "open", str(scored), "--no-browser"]
        started = subprocess.Popen(
            [*words, "--codebook", str(book)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        running.append(started)
        said = []
        for line in started.stdout:
            if line.startswith("http://127.0.0.1:"):
                return started, line.strip()
            said.append(line)
        raise AssertionError("".join(said))

    yield start
    for started in running:
        started.kill()
        started.wait()
        started.stdout.close()


@pytest.fixture(scope="session")
def scored_once(tmp_path_factory, trained_models):
    """The folder of the scored film tt1 of two minutes, and its timeline; nobody may change them."""
    return scored_film(tmp_path_factory.mktemp("scored"), trained_models, "tt1", end_s=120.0)


class ScoredFilm(NamedTuple):
    """A scored film, in the order in which `Decisions` takes what it is opened with."""

    folder: Path
    timeline: Timeline
    codebook: Codebook
    """That of the model."""


@pytest.fixture
def scored_tt1(tmp_path, scored_once):
    """A copy of the scored film tt1."""
    folder, timeline = scored_once
    return ScoredFilm(shutil.copytree(folder, tmp_path / folder.name), timeline, codebook(tmp_path))


@pytest.fixture
def decisions(scored_tt1):
    """The decisions on a copy of the scored film tt1, on which nobody has decided anything."""
    return Decisions(*scored_tt1)


def copy_scored_films(films, folder):
    """Copy the two scored films to a folder, without their features; return the copy and their codebook."""
    shutil.copytree(
        films / "scored", folder / "scored", ignore=shutil.ignore_patterns("*-1.0.0", "*.staging")
    )
    return folder / "scored", films / "violence.codebook.toml"


@pytest.fixture
def scored_films_and_codebook(films, tmp_path):
    """A copy of the folder of two scored films, without their features, and the file of their codebook."""
    return copy_scored_films(films, tmp_path)


@pytest.fixture(scope="session")
def film(tmp_path_factory):
    """Ten minutes that browsers play, five pictures a second."""
    pictures = (np.full((48, 64, 3), number % 200, np.uint8) for number in range(3000))
    quick = {"deadline": "realtime", "cpu-used": "8"}
    return encode(tmp_path_factory.mktemp("film") / "tt1.webm", pictures, "libvpx", rate=5, options=quick)


@pytest.fixture(scope="session")
def cache_of_film(tmp_path_factory):
    """A cache in which the stills of the film are made once."""
    return tmp_path_factory.mktemp("cache")


class DeskInBrowser(NamedTuple):
    """The desk of two scored films, opened in a browser."""

    page: Any
    """Playwright's, at the list of films."""
    requested_addresses: list[str]
    """Of all that the page loaded or sent so far, in order."""
    errors: list[str]
    """What scripts raised, and all that stands on the browser's console."""
    folder_of_film: Path
    """The scored film tt1, the first of the list, on which nobody has decided anything yet."""


@pytest.fixture
def desk_in_browser(serve, films, film, tmp_path, browser, cache_of_film, monkeypatch):
    """The desk of two scored films, opened in a browser: its page, and what happens on it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_of_film))
    shutil.copytree(films / "scored", tmp_path / "scored", ignore=shutil.ignore_patterns("*.staging"))
    book = films / "violence.codebook.toml"
    served = serve(tmp_path / "scored", book, "--film", str(film), enter=False)
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    context.set_default_timeout(LONG_MS)
    page = context.new_page()
    requested_addresses, errors = [], []
    page.on("request", lambda request: requested_addresses.append(request.url))
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    # As the command itself opens a browser: on a file that leads to the address.
    with _redirecting_file(served.address) as file_that_leads_there:
        page.goto(file_that_leads_there)
        page.wait_for_url("http://**/films")
    yield DeskInBrowser(page, requested_addresses, errors, tmp_path / "scored" / "tt1")
    context.close()
