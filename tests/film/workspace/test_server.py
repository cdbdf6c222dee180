"""The workspace's server: who may enter, what is written, a second one, stops."""

import errno
import gzip
import http.client
import json
import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import url2pathname

import numpy as np
import pytest
import uvicorn
from starlette.requests import Request

import obygaze_features
from obygaze_features.manifest import write_manifest
from obygaze_features.store import open_store
from obygaze_film import Timeline
from obygaze_film.claims import Words
from obygaze_film.notes import texts
from obygaze_film.page import modules
from obygaze_film.workspace import address, server
from obygaze_film.workspace.decisions import COLUMNS, JUDGEMENTS, PASSAGES
from obygaze_film.workspace.entry import Secrets
from obygaze_film.workspace.media import MEDIA_TYPES
from obygaze_film.workspace.open_film import Job
from obygaze_models import load_model
from obygaze_models.prediction import mean_probability
from obygaze_models.prediction.explain import explain
from tests.files import rows_of
from tests.film.workspace.conftest import copy_scored_films, desks_in_threads, free_port


@pytest.fixture(scope="module")
def folder_of_desk(films, tmp_path_factory):
    """The folder of the two films of `desk`."""
    scored, _ = copy_scored_films(films, tmp_path_factory.mktemp("desk"))
    return scored


@pytest.fixture(scope="module")
def desk(films, folder_of_desk):
    """A desk on two films, for tests that decide nothing: they ask, or are refused."""
    with desks_in_threads() as start:
        yield start(folder_of_desk, films / "violence.codebook.toml")


def assert_nothing_is_decided(folder):
    assert not (folder / "tt1" / JUDGEMENTS).exists()
    assert not (folder / "tt1" / "ledger").exists()


JUDGEMENT = {"kind": "judgement", "start_s": 0, "end_s": 8, "level": "calm", "who": "AB"}
DECIDE = "/film/0/decide"


class StrangersRequest(NamedTuple):
    """A request that is refused: its method, path and body, and how it differs from one of the page."""

    method: str
    path: str
    body: object = None
    differs: Mapping[str, object] = {}


def requests_of_strangers(served):
    """Return requests of other people, sites and programs, by what gives each away."""
    _, _, port = served.host.rpartition(":")
    _, _, secret = served.cookie.partition("=")
    token = served.entry.removeprefix("/enter/")
    path = served.base.removeprefix("/")
    return {
        "no cookie": StrangersRequest("GET", "/films", differs={"cookie": None}),
        "an empty cookie": StrangersRequest("GET", "/films", differs={"cookie": "obygaze="}),
        "a beginning of the cookie": StrangersRequest(
            "GET", "/films", differs={"cookie": f"obygaze={secret[:-1]}"}
        ),
        "the path as a cookie": StrangersRequest("GET", "/films", differs={"cookie": f"obygaze={path}"}),
        "the token as a cookie": StrangersRequest("GET", "/films", differs={"cookie": f"obygaze={token}"}),
        "an empty token": StrangersRequest("GET", "/enter/", differs={"base": "", "cookie": None}),
        "a wrong token": StrangersRequest("GET", "/enter/" + "x" * 32, differs={"base": "", "cookie": None}),
        "another site's name": StrangersRequest("GET", "/films", differs={"host": f"evil.example:{port}"}),
        "no name": StrangersRequest("GET", "/films", differs={"host": ""}),
        "another site's page": StrangersRequest(
            "POST", DECIDE, JUDGEMENT, {"origin": "https://evil.example"}
        ),
        "no origin": StrangersRequest("POST", DECIDE, JUDGEMENT, {"origin": None}),
        "an empty origin": StrangersRequest("POST", DECIDE, JUDGEMENT, {"origin": ""}),
        "a page of no origin": StrangersRequest("POST", DECIDE, JUDGEMENT, {"origin": "null"}),
        "a page of another port": StrangersRequest(
            "POST", DECIDE, JUDGEMENT, {"origin": "http://127.0.0.1:1"}
        ),
    }


def test_requests_of_strangers_are_forbidden_and_write_nothing(desk, folder_of_desk):
    """The desk serves its owner's browser alone: it has the cookie, and sends the desk's own name and origin.

    Each request here is one of the page but for one thing, such as a wrong cookie or another site's origin:
    it is forbidden (403).
    """
    for what_gives_it_away, request in requests_of_strangers(desk).items():
        answer, _body = desk.ask(request.method, request.path, request.body, **request.differs)
        assert answer.status == 403, what_gives_it_away

    assert_nothing_is_decided(folder_of_desk)


def test_pages_are_served_only_below_the_secret_path(desk):
    """All pages of a desk are below a path that nobody can guess. This request has its cookie alone."""
    without_secret_path = ""
    answer, _body = desk.ask("GET", "/films", base=without_secret_path)
    assert answer.status in {403, 404}


def test_a_video_that_nobody_named_is_not_served(desk, folder_of_desk):
    """The owner chooses what the desk may read: a video that merely lies beside a film is not part of it."""
    (folder_of_desk / "tt1.mp4").write_bytes(b"not named on the command line")
    for path in (
        "/film/0/video",
        "/film/0/stream?t=0",
        "/film/../../scored/tt1.mp4",
        "/film/..%2f..%2ftt1.mp4/video",
    ):
        answer, _body = desk.ask("GET", path)
        assert answer.status in {403, 404, 405}, path


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/film/2/read"),
        ("GET", "/film/-1/read"),
        ("GET", f"/film/{'9' * 4400}/read"),
        ("GET", "/film/0/decide"),
        ("POST", "/film/0/learn"),
        ("GET", "/film/0/export/zip"),
    ],
    ids=[
        "a third film of two",
        "a negative film",
        "a number of more digits than Python reads (4300)",
        "a decision that is not posted",
        "learning, without a corpus to learn from",
        "an export of no known format",
    ],
)
def test_what_a_desk_on_two_films_does_not_have_is_refused(desk, method, path):
    """The desk has the films 0 and 1, and no corpus. Each request is one of its page but for the path."""
    answer, _body = desk.ask(method, path)
    assert answer.status in {403, 404, 405}


def test_pages_are_closed_to_other_sites_and_caches(desk):
    """Headers forbid to show a page in another site, to keep it in a cache, and to pass on its address."""
    page, _body = desk.ask("GET", "/film/0/read")

    assert page.status == 200
    assert page.getheader("content-security-policy") == "frame-ancestors 'none'"
    assert page.getheader("cache-control") == "no-store"
    assert page.getheader("x-content-type-options") == "nosniff"
    assert page.getheader("referrer-policy") == "no-referrer"
    assert page.getheader("cross-origin-resource-policy") == "same-origin"


def secrets_of(served):
    """Return the secrets of a desk: in its cookie, in the address that is printed, and in its path."""
    _, _, in_cookie = served.cookie.partition("=")
    return [in_cookie, served.entry.removeprefix("/enter/"), served.base.removeprefix("/")]


def test_the_secrets_of_desks_are_long_and_differ(desk, serve, scored_films_and_codebook):
    """A desk has three secrets: in its cookie, in the address that it prints, and in the path of its pages.

    None is used twice, and each has 24 random bytes, which are 32 characters in base64.
    """
    another_desk = serve(*scored_films_and_codebook)

    secrets = secrets_of(desk) + secrets_of(another_desk)

    assert len(set(secrets)) == 6
    for secret in secrets:
        assert len(secret) >= 32


def test_the_cookie_is_sent_to_the_desks_path_only_and_hidden_from_scripts(desk):
    """The answer to the desk's address sets the cookie, with attributes that browsers obey."""
    assert desk.entered.status == 200
    attributes = [part.strip().casefold() for part in desk.set_cookie.split(";")]

    assert f"path={desk.base}/".casefold() in attributes
    assert "httponly" in attributes
    assert "samesite=strict" in attributes


def test_the_address_opens_once_though_others_tried_before(serve, scored_films_and_codebook):
    """Requests that guess the address, or come from another site, must not use it up.

    Once its owner has entered, nobody can who finds it later, as in the history of a terminal.
    """
    served = serve(*scored_films_and_codebook, enter=False)
    address = served.entry  # such as /enter/TOKEN

    def status_of(method, path, **headers):
        answer, _body = served.ask(method, path, **headers)
        return answer.status

    assert status_of("HEAD", address) == 403
    assert status_of("GET", address, host="evil.example:80") == 403
    without_its_last_character = address[:-1]
    with_one_more = address + "x"
    for wrong_address in ("/enter/" + "x" * 32, "/enter/", without_its_last_character, with_one_more):
        assert status_of("GET", wrong_address) == 403

    assert status_of("GET", address) == 200
    assert status_of("GET", address) == 403


WRONG_FIELDS = (
    {"kind": "x"}, {"start_s": "a"}, {"level": "S"}, {"level": ""}, {"who": ""}, {"place": "x"},
    {"concepts": 1}, {"who": 3}, {"end_s": None},
)  # fmt: skip
"""Fields that no judgement has."""

NO_DECISIONS = (
    {}, [], 1, b"[" * 60_000, b'{"kind":"judgement","start_s":' + b"9" * 400 + b"}", b"{", b"\xff", b"",
    json.dumps(JUDGEMENT).encode().replace(b"}", b', "place": 1e999}'),  # infinity in JSON
)  # fmt: skip
"""Bodies of requests that are no decision: JSON values, and bytes."""


@pytest.mark.parametrize(
    "bodies",
    [[JUDGEMENT | wrong for wrong in WRONG_FIELDS], NO_DECISIONS],
    ids=["judgements with one wrong field", "what is no decision at all, such as a number or half a JSON"],
)
def test_a_wrong_decision_is_refused_with_a_reason_and_writes_nothing(desk, folder_of_desk, bodies):
    """Each body is posted to the film as a decision, and answered with 400 and what is wrong with it."""
    for body in bodies:
        answer, text = desk.ask("POST", "/film/0/decide", body)
        reason = json.loads(text)["said"]
        assert answer.status == 400, body
        assert reason, body

    assert_nothing_is_decided(folder_of_desk)


def test_a_decision_of_64_kib_is_written_and_a_longer_one_refused(serve, scored_films_and_codebook):
    """A judgement is sent with as many spaces behind its JSON, which JSON allows, as make it 64 KiB long.

    With one space more it is refused, and nothing is decided.
    """
    scored_films, codebook_file = scored_films_and_codebook
    served = serve(scored_films, codebook_file)
    of_64_kib = json.dumps(JUDGEMENT).encode().ljust(64 * 1024)

    answer, _body = served.ask("POST", "/film/0/decide", of_64_kib + b" ")
    assert answer.status == 400
    assert_nothing_is_decided(scored_films)

    answer, _body = served.ask("POST", "/film/0/decide", of_64_kib)
    assert answer.status == 200
    assert (scored_films / "tt1" / JUDGEMENTS).is_file()


@pytest.mark.parametrize(("language", "accepted"), [("en", "en"), ("fr", "fr;q=.9, en")])
def test_a_refused_decision_is_answered_in_the_browsers_language(desk, language, accepted):
    """Nobody has decided anything: there is no decision with this id that could be deleted."""
    deletion_of_nothing = {"kind": "delete", "who": "AB", "id": "0123456789abcdef-1"}

    answer, data = desk.ask("POST", "/film/0/decide", deletion_of_nothing, accept_language=accepted)

    assert answer.status == 400
    assert json.loads(data)["said"] == texts(language)["not_standing"]


@pytest.mark.parametrize(("language", "accepted"), [("en", "en"), ("fr", "fr;q=.9, en")])
def test_a_second_entry_is_refused_in_the_browsers_language(desk, language, accepted):
    """The address that the desk printed opens once, and this desk has been entered."""
    answer, page = desk.ask("GET", desk.entry, base="", cookie=None, accept_language=accepted)

    assert answer.status == 403
    assert page.decode() == Words(language)["desk_once"]


def assert_says_why_in_english_and_french(served, decision, key_of_reason):
    """Send a decision that is refused for the reason with this key; compare what is said with its text."""
    said = {}
    for language in ("en", "fr"):
        answer, data = served.ask("POST", "/film/0/decide", decision, accept_language=language)
        assert answer.status == 400
        said[language] = json.loads(data)["said"]
        around_fields = re.split("{[^}]*}", texts(language)[key_of_reason])
        assert [part for part in around_fields if part not in said[language]] == []
    assert said["en"] != said["fr"]


@pytest.mark.parametrize(
    ("wrong_fields", "key_of_reason"),
    [
        ({"note": "shalom\u200f"}, "unsuitable"),
        ({"who": "A\u202eB"}, "unsuitable"),
        ({"end_s": 1e5}, "behind"),
        ({"kind": "passage", "end_s": 0.05}, "short"),
        ({"level": "S"}, "refused"),
    ],
    ids=["a note that turns the direction of texts", "a name that turns it", "an end beyond the film's",
         "a passage that is too short", "a level of another codebook: the French text quotes an English one"],
)  # fmt: skip
def test_why_a_decision_is_refused_is_said_in_english_and_french(desk, wrong_fields, key_of_reason):
    """A person calls the first 8 s calm; one field or two of this decision are wrong, so that it is refused.

    The desk answers with the reason, in the language of the browser. Its text is in both lists of texts,
    `notes.en.toml` and `notes.fr.toml`, under a key such as "short".
    """
    wrong_decision = {"kind": "judgement", "start_s": 0, "end_s": 8, "level": "calm", "who": "AB"}
    wrong_decision |= wrong_fields
    assert_says_why_in_english_and_french(desk, wrong_decision, key_of_reason)


@pytest.mark.parametrize(
    ("error_number", "key_of_reason"),
    [(errno.ENOSPC, "disk_full"), (errno.EROFS, "disk_closed"), (errno.EIO, "disk_other")],
    ids=["no space", "no right to write", "no answer of the disk"],
)
def test_why_a_disk_keeps_no_decision_is_said_in_english_and_french(
    desk, monkeypatch, error_number, key_of_reason
):
    """A full disk, one without the right to write and a broken one need different remedies.

    So each has a text of its own. Here the ledger, the file of decisions, cannot be written to.
    """

    def refuse_to_write(*_):
        raise OSError(error_number, os.strerror(error_number), "ledger")

    monkeypatch.setattr("obygaze_film.workspace.ledger.Ledger.add", refuse_to_write)
    assert_says_why_in_english_and_french(desk, JUDGEMENT, key_of_reason)


def wait_until_threads_are_at_most(n_threads):
    """Wait until the threads that were begun since have ended, and only `n_threads` run."""
    ends = time.monotonic() + 60
    while threading.active_count() > n_threads:
        assert time.monotonic() < ends
        time.sleep(0.001)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # the terminal says it
def test_a_job_that_crashes_reports_failure_and_can_begin_again():
    """A job runs in a thread, where an error would pass unseen: the desk says that the work failed."""

    def crash(_):
        raise ZeroDivisionError

    def succeed(_):
        return ["done"]

    job = Job()
    n_threads_before = threading.active_count()

    job.begin(crash)
    wait_until_threads_are_at_most(n_threads_before)
    assert job.error == texts("en")["work_failed"]
    assert job.share is None
    assert job.notes is None

    job.begin(succeed)
    wait_until_threads_are_at_most(n_threads_before)
    assert job.error == ""
    assert job.notes == ["done"]


class JobThatEndsWhileItIsRead:
    """A stand-in for a job of learning that ends at the moment at which an answer reads its notes.

    Then the film that was scored anew is added to the desk's films.
    """

    share, error = 1.0, ""

    def __init__(self, films):
        self.films = films

    @property
    def notes(self):
        """Add a film, and return that there are no notes."""
        learnt_film = SimpleNamespace(number=len(self.films), timeline=self.films[0].timeline)
        self.films.append(learnt_film)
        return []


def learning_state(workspace, film_number):
    """Ask how far learning has come, as the desk of a film does."""
    request = Request(
        {
            "type": "http",
            "method": "GET",
            "path_params": {"number": film_number},
            "headers": [],
            "query_string": b"",
        }
    )
    return json.loads(workspace.learn(request).body)


def test_an_answer_that_calls_learning_done_names_the_film_that_came_of_it():
    """Learning scores a film anew and adds it to the desk; it may end while an answer is being made.

    The answer must read first whether learning is done, and only then which film is the last. Here the
    film is added at the moment at which the answer reads that learning is done.
    """
    first_film = SimpleNamespace(number=0, timeline=SimpleNamespace(movie="tt1"))
    films = [first_film]
    workspace = server.Workspace(films, str, lambda _: [])
    workspace.learning_job = JobThatEndsWhileItIsRead(films)

    state = learning_state(workspace, film_number=0)

    learnt_film = films[-1]
    assert learnt_film.number > first_film.number
    assert state["done"]
    assert state["film"] == learnt_film.number


@pytest.fixture
def desk_by_director(serve, scored_films_and_codebook, tmp_path):
    """A desk on the films tt1 of Agnes and tt2 of Chantal, which are compared by their directors."""
    scored_films, codebook_file = scored_films_and_codebook
    table = tmp_path / "films.csv"
    table.write_text("movie,director\ntt1,Agnes\ntt2,Chantal\n", "utf-8")
    return serve(scored_films, codebook_file, "--films", str(table), "--by", "director")


def test_the_terminal_names_each_film_as_it_is_read(desk_by_director):
    """A desk opens films from the folders tt1 and tt2, and prints "reading FOLDER" for each, in order."""
    lines_of_reading = [line for line in desk_by_director.said.splitlines() if line.startswith("reading ")]
    names_of_folders = [line[-3:] for line in lines_of_reading]
    assert names_of_folders == ["tt1", "tt2"]


def test_several_films_are_listed_and_compared_by_a_column(desk_by_director):
    """The first page leads to the list of films, and each film's page leads back to it.

    A table named the director of each film, Agnes and Chantal: both are on the page, equally often.
    """
    first_page, _ = desk_by_director.ask("GET", "/")
    assert first_page.getheader("location") == "films"

    list_of_films, text = desk_by_director.ask("GET", "/films")
    assert list_of_films.status == 200
    assert b'href="film/1/read"' in text
    assert text.count(b"Agnes") > 0
    assert text.count(b"Agnes") == text.count(b"Chantal")

    _, page_of_film = desk_by_director.ask("GET", "/film/1/read")
    assert b'href="../../films"' in page_of_film


def test_the_only_film_is_shown_at_once(serve, scored_films_and_codebook):
    """With one film there is nothing to choose, so that the first page leads to its desk (303)."""
    scored_films, codebook_file = scored_films_and_codebook
    served = serve(scored_films / "tt2", codebook_file)

    answer, _body = served.ask("GET", "/")

    assert answer.status == 303
    assert answer.getheader("location") == "film/0/read"


def test_the_server_listens_on_both_loopback_addresses(serve, scored_films_and_codebook):
    """Browsers take 127.0.0.1 or ::1 for localhost, so that the port must be open on both."""
    scored_films, codebook_file = scored_films_and_codebook
    port = free_port()

    served = serve(scored_films, codebook_file, "--port", str(port))

    assert served.host == f"127.0.0.1:{port}"
    connection = socket.create_connection(("::1", port), timeout=10)  # an error if nobody listens there
    connection.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has all of 127.0.0.0/8 for this machine")
def test_the_server_listens_on_no_other_address(desk):
    """Nobody but this machine may reach the desk, and not even its other loopback addresses."""
    _, _, port = desk.host.rpartition(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", int(port)), timeout=10)


def test_no_level_of_headings_is_skipped(desk):
    """Screen readers navigate by headings.

    After h1 comes h2 and not h3, though one may go back several levels.
    """
    _, page = desk.ask("GET", "/film/0/read")
    levels = [int(level) for level in re.findall(r"<h([1-6])", page.decode())]

    assert levels[0] == 1
    assert 2 in levels
    for level, next_level in pairwise(levels):
        assert next_level <= level + 1


def test_decisions_are_shown_in_order_of_time(serve, scored_films_and_codebook):
    """AB decides from the end of the film to its beginning: a judgement, a note and a passage.

    The model finds violence: a violent passage agrees with it, and a calm judgement disagrees.
    """
    served = serve(*scored_films_and_codebook)
    served.decide(kind="judgement", start_s=300, end_s=330, level="calm")
    served.decide(kind="note", start_s=240, end_s=270, note="a gun")
    _, answer = served.decide(kind="passage", start_s=60, end_s=90, level="violent", concepts=["Gun"])

    assert answer["said"] == "kept"
    first, second, third = answer["you"]
    assert first["kind"] == "passage"
    assert (first["start"], first["end"]) == (60, 90)
    assert first["verdict"] == "agree"
    assert first["concepts"] == ["Gun"]
    assert second["kind"] == "note"
    assert (second["start"], second["end"]) == (240, 270)
    assert second["note"] == "a gun"
    assert third["kind"] == "judgement"
    assert (third["start"], third["end"]) == (300, 330)
    assert third["verdict"] == "disagree"


def test_a_passage_names_its_origin_the_models_or_ones_own(serve, scored_films_and_codebook):
    """The first began as the model's passage 2, and the second was marked freely."""
    scored_films, codebook_file = scored_films_and_codebook
    served = serve(scored_films, codebook_file)

    served.decide(kind="passage", start_s=60, end_s=80, level="violent", origin="2")
    served.decide(kind="passage", start_s=60, end_s=90, level="violent")

    rows = rows_of(scored_films / "tt1" / PASSAGES)
    assert [row["origin"] for row in rows] == ["2", "own"]


def test_rows_of_another_film_are_not_shown(serve, scored_films_and_codebook):
    """The table of passages of the film tt1 has a row of XY on the film tt9, as by a mistake in copying.

    The desk on tt1 shows what AB decides there, and not the row.
    """
    scored_films, codebook_file = scored_films_and_codebook
    row = dict.fromkeys(COLUMNS[PASSAGES], "")
    row |= {
        "movie": "tt9",
        "start_s": "0",
        "end_s": "9",
        "level": "calm",
        "annotator": "XY",
        "seen_score": "1",
    }
    table = f"{','.join(row)}\n{','.join(row.values())}\n"
    (scored_films / "tt1" / PASSAGES).write_text(table, "utf-8")

    served = serve(scored_films, codebook_file)
    _, answer = served.decide(kind="passage", who="AB", start_s=60, end_s=90, level="violent")

    assert [decision["who"] for decision in answer["you"]] == ["AB"]


def ask_about_span(served, start, end):
    """Ask what the model finds in a span of the first film; return the status and the answer."""
    answer, text = served.ask("GET", f"/film/0/span?{urlencode({'a': start, 'b': end})}")
    return answer.status, json.loads(text)


def test_the_evidence_of_a_segments_span_is_that_of_the_segment(desk, folder_of_desk):
    """A segment (a passage that the model marks) has stored values.

    Whoever asks the desk for its span gets the same: probability, concepts, and the cuts between its ends.
    """
    film = Timeline.read(folder_of_desk / "tt1")
    first_six_segments = film.segments().to_dict("records")[:6]
    for segment in first_six_segments:
        status, evidence = ask_about_span(desk, segment["start_s"], segment["end_s"])
        assert status == 200
        assert evidence["p"] == f"{segment['p']:.2f}"
        assert [part["name"] for part in evidence["parts"]] == segment["concepts"].split(";")
        n_cuts = 0
        for cut_s in film.shots["start_s"]:
            if segment["start_s"] < cut_s < segment["end_s"]:
                n_cuts += 1
        assert evidence["cuts"] == n_cuts


def test_any_other_span_has_the_evidence_of_its_own_rows(desk):
    """A gun is planted from 150 to 190 s, which makes the model find violence there, and not at 250 s."""
    _, with_gun = ask_about_span(desk, start=155, end=165)
    _, without = ask_about_span(desk, start=250, end=260)
    assert float(with_gun["p"]) > 0.6  # likely violent
    assert float(without["p"]) < 0.3
    assert with_gun["sentence"] != without["sentence"]


def test_a_black_span_has_no_probability_and_no_concepts(desk):
    """The first shot of the film is planted black; it is longer than this second."""
    _, evidence = ask_about_span(desk, start=0, end=1)

    assert evidence["p"] == ""
    assert evidence["parts"] == []
    assert "black" in evidence["flags"]


@pytest.mark.parametrize(
    "times", ["a=nan&b=3", "a=0&b=inf", "a=5&b=2", "a=-1&b=2", "a=x&b=5", "a=1&b=", "b=2", "a=1&a=x&b=2"]
)
@pytest.mark.parametrize("asked_for", ["span", "figure.svg", "figure.pdf"])
def test_what_is_no_span_of_the_film_is_refused(desk, asked_for, times):
    """A span of the film is asked for as seconds from `a` to `b`.

    Here one of them is missing, no number, given twice or before the film, or the end is before the start.
    """
    answer, _body = desk.ask("GET", f"/film/0/{asked_for}?{times}")
    assert answer.status == 400


@pytest.fixture(scope="module")
def gun_at_160_s(films):
    """A span with a planted gun: the desk's answer, the film's store, and the span's clip there."""
    with desks_in_threads() as start:
        served = start(films / "scored" / "tt1", films / "violence.codebook.toml")
        status, answer = ask_about_span(served, start=160, end=168)
    assert status == 200
    store = open_store(films / "scored" / "tt1-1.0.0")
    (clip,) = [clip for clip in store.clips if clip.start_s == 160]
    assert clip.end_s == 168
    return answer, store, clip


class GunInAnswer(NamedTuple):
    """What the desk's answer on a span says of the concept Gun.

    Attributes
    ----------
    contribution : str
        As it is shown, with its sign.
    p, p_at_usual : float
        The span's probability, and what it would be at the gun's usual value.
    """

    contribution: str
    p: float
    p_at_usual: float


def gun_of(answer):
    """Return what an answer says of the concept Gun in its span."""
    (gun,) = [part for part in answer["parts"] if part["name"] == "Gun"]
    p, p_at_usual = (float(number) for number in gun["usual"].split(" → "))
    return GunInAnswer(contribution=gun["value"], p=p, p_at_usual=p_at_usual)


def test_the_probability_without_a_concept_is_a_mean_over_the_spans_rows(films, gun_at_160_s):
    """The desk shows what the probability of a span, 160 to 168 s, would be at a concept's usual value.

    At its usual value the gun contributes nothing to the logit of a row. From that logit the draws of the
    model's calibration make a probability. The span's is the mean over its rows, which weigh by their seconds
    within it, as rows may reach beyond.
    """
    answer, _store, _clip = gun_at_160_s
    gun = gun_of(answer)

    film = Timeline.read(films / "scored" / "tt1")
    rows = film.rows().query("start_s < 168 and end_s > 160")
    logit_without_gun = rows["logit"] - rows["Gun_contribution"]
    draws_of_calibration = np.array(film.model().calibration.draws)
    p_without_gun = mean_probability(draws_of_calibration, logit_without_gun.to_numpy())
    seconds_within = rows["end_s"].clip(upper=168) - rows["start_s"].clip(lower=160)
    expected = np.average(p_without_gun, weights=seconds_within)

    assert f"{gun.p:.2f}" == answer["p"]
    assert gun.p_at_usual == pytest.approx(expected, abs=0.0051)  # the desk shows two decimals


def test_the_desk_says_of_a_span_as_explain_says_of_its_clip_whether_a_concept_raises_the_probability(
    trained_models, gun_at_160_s
):
    """The span from 160 to 168 s is also a clip of the film's store, which `explain` can explain.

    Both say whether the gun raises the probability, and the desk's number of the gun has a minus if it does
    not.
    """
    answer, store, clip = gun_at_160_s
    gun = gun_of(answer)

    model = load_model(trained_models.paths["pcbm_lr"])
    explained = explain(model, [store], clip.clip_id, {})
    change_of_p_of_clip = explained.changes[list(model.concepts).index("Gun")]

    raises_p_of_span = gun.p > gun.p_at_usual
    has_minus_sign = gun.contribution.startswith("\N{MINUS SIGN}")
    assert raises_p_of_span == (change_of_p_of_clip > 0)
    assert raises_p_of_span == (not has_minus_sign)


def test_similar_spans_are_the_nearest_in_the_store(gun_at_160_s):
    """The desk lists the four spans whose features are nearest to those of the span, 160 to 168 s.

    Windows that overlap it are left out: windows last 8 s.
    """
    answer, store, clip = gun_at_160_s

    hits = obygaze_features.search_like(store, clip.clip_id, top=40)
    hits_that_do_not_overlap = [hit for hit in hits if hit.start_s <= 152 or hit.start_s >= 168]
    nearest = hits_that_do_not_overlap[0]

    assert len(answer["like"]) == 4
    first = answer["like"][0]
    assert first["film"] == 0
    assert first["start"] == nearest.start_s


def test_a_page_is_in_the_browsers_language_compressed_and_below_100_kb(desk):
    """The page of a film is asked for as by a French browser that takes gzip."""
    page, sent = desk.ask("GET", "/film/0/read", accept_encoding="gzip", accept_language="fr-FR,fr;q=0.9")

    assert page.getheader("content-encoding") == "gzip"
    assert len(sent) < 100_000
    assert b'lang="fr"' in gzip.decompress(sent)


def test_the_desks_scripts_are_served_and_no_other_files(desk):
    """A script is asked for as /desk/NAME.js; `modules.DESK` lists the names.

    A name that is none of these must lead to no file, neither in that folder nor above it.
    """
    for name in modules.DESK:
        script, _body = desk.ask("GET", f"/desk/{name}.js")
        assert script.status == 200
        assert script.getheader("content-type").startswith("text/javascript")

    for no_name in ("timeline.js", "../html.py", "x.js"):
        answer, _body = desk.ask("GET", f"/desk/{no_name}.js")
        assert answer.status == 404


def test_the_desk_offers_the_name_typed_last(serve, scored_films_and_codebook):
    """A browser in which nobody has typed a name is offered that of who decided last, CD.

    A browser with a name keeps its own: the page's script has it in a cookie, percent-encoded.
    """
    served = serve(*scored_films_and_codebook)
    served.decide(kind="judgement", start_s=0, end_s=8, level="calm", who="CD")

    _, page_without_a_name = served.ask("GET", "/film/0/blind")
    assert 'value="CD"' in page_without_a_name.decode()

    cookies = f"{served.cookie}; who={quote('Aña B')}"
    _, page_with_a_name = served.ask("GET", "/film/0/blind", cookie=cookies)
    assert 'id="d-who"' in page_with_a_name.decode()
    assert 'value="Aña B"' in page_with_a_name.decode()
    assert 'value="CD"' not in page_with_a_name.decode()


@pytest.mark.parametrize("n", ["words", "-1", "1000000"])
def test_a_judge_who_plans_no_proper_number_of_windows_gets_none(desk, n):
    """How many windows one judges must be fixed before the first, as stopping at will would bias a share.

    Neither a word nor -1 is such a number, and the film has no million windows.
    """
    answer = desk.next(who="EF", n=n)
    assert "window" not in answer


@pytest.fixture
def desk_with_blind_judgement_of_cd(serve, scored_films_and_codebook):
    """A desk at which CD judged a window blindly and AB marked a passage: AB is not shown CD's judgement."""
    scored_films, codebook_file = scored_films_and_codebook
    served = serve(scored_films / "tt1", codebook_file)
    window = served.next(who="CD", n=10)["window"]
    span = {"start_s": window["start"], "end_s": window["end"], "place": window["place"]}
    served.decide(kind="judgement", who="CD", level="calm", windows=10, **span)
    served.decide(
        kind="passage", who="AB", start_s=5.0, end_s=20.0, level="violent", concepts=["Gun"], note="=here"
    )
    return served


def exported_for(served, name, viewer):
    """Export the first film as a viewer may see it; return the text."""
    answer, data = served.ask("GET", f"/film/0/export/{name}?who={viewer}")
    assert answer.status == 200
    return data.decode()


def test_an_exported_table_has_only_what_its_viewer_may_see(desk_with_blind_judgement_of_cd):
    """CD judged a window blindly, and AB has marked a passage with a gun.

    AB must not see CD's judgement before being finished, not even in an export; CD sees it.
    """
    served = desk_with_blind_judgement_of_cd

    header, passage = exported_for(served, "passage", viewer="AB").splitlines()
    assert "concepts" in header
    assert "Gun" in passage

    assert "CD" not in exported_for(served, "judgement", viewer="AB")
    assert "CD" in exported_for(served, "judgement", viewer="CD")


@pytest.mark.long
def test_an_elan_export_has_only_what_its_viewer_may_see(desk_with_blind_judgement_of_cd):
    """AB's passage has a tier for each of level, concepts and note. CD's blind judgement is CD's to see.

    A tier is named by what it holds and who decided it, such as "human: note@AB".
    """
    served = desk_with_blind_judgement_of_cd

    for_ab = exported_for(served, "eaf", viewer="AB")
    tiers_of_ab = re.findall(r'TIER_ID="human: (\w+)[^"]*@AB".*?</TIER>', for_ab, re.DOTALL)
    assert tiers_of_ab == ["level", "concepts", "note"]
    assert "@CD" not in for_ab

    for_cd = exported_for(served, "eaf", viewer="CD")
    assert "human: level, blind@CD" in for_cd


@pytest.fixture
def desk_that_learns(serve, films, trained_models, tmp_path):
    """A desk with two films, and the corpus that their model was trained on."""
    shutil.copytree(films / "scored", tmp_path / "scored", ignore=shutil.ignore_patterns("*.staging"))
    write_manifest(trained_models.manifest, tmp_path / "films.csv")
    corpus = "--learn", str(tmp_path / "films.csv"), str(trained_models.store.where)
    return serve(tmp_path / "scored", films / "violence.codebook.toml", *corpus)


def state_after_learning(served):
    """Let the desk learn from what was decided on the first film, and wait until it is done or fails."""
    served.ask("POST", "/film/0/learn")
    while True:
        state = json.loads(served.ask("GET", "/film/0/learn")[1])
        if state["done"] or state["error"]:
            return state


def test_with_a_corpus_the_desk_can_learn_and_has_not_begun(desk_that_learns):
    """The desk was opened with a corpus to learn from. It tells how far learning has come: not begun."""
    answer, text = desk_that_learns.ask("GET", "/film/0/learn")

    assert answer.status == 200
    share_done = json.loads(text)["share"]
    assert share_done is None


@pytest.mark.long  # trains
def test_the_desk_learns_nothing_without_a_judgement(desk_that_learns):
    """Nobody has judged anything on the film: the error says that a judgement is missing."""
    state = state_after_learning(desk_that_learns)
    assert "judgement" in state["error"]


@pytest.mark.long  # trains
def test_learning_opens_the_film_anew_with_its_decisions(desk_that_learns, tmp_path):
    """A desk has the films 0 and 1. AB decides twice on film 0, and a model learns from what AB decided.

    Film 0 as the learnt model scores it becomes film 2. Both have one ledger, so that AB's two decisions are
    on film 2, and what is deleted there is gone from film 0.
    """
    served = desk_that_learns

    def decisions_of_ab_on(film_number):
        _status, answer = served.ask("GET", f"/film/{film_number}/decisions?who=AB")
        return json.loads(answer)["you"]

    served.decide(kind="judgement", start_s=40.0, end_s=72.0, level="violent", concepts=["Gun"])
    status, _answer = served.decide(kind="passage", start_s=200.0, end_s=216.0, level="calm")
    assert status == 200

    state = state_after_learning(served)

    assert state["error"] == ""
    assert state["film"] == 2
    assert "no change can be told" in state["said"][0]  # of so few judgements
    assert (tmp_path / "learnt-1" / "manifest.csv").is_file()
    _status, page = served.ask("GET", "/film/2/read")
    assert b'id="d-moved"' in page  # passages that moved by what was learnt
    judgement, passage = decisions_of_ab_on(film_number=2)
    assert judgement["level"] == "violent"
    assert passage["level"] == "calm"

    number_of_learnt_film = 2
    status, _answer = served.decide(number_of_learnt_film, kind="delete", id=judgement["id"])
    assert status == 200
    assert len(decisions_of_ab_on(film_number=0)) == 1


def test_a_blind_page_shows_nothing_that_gives_the_score_away(serve, scored_films_and_codebook):
    """A blind judge must not know the score, which the model's passages would give away.

    Decisions that were made in sight of the score, such as AB's judgement here, would, too.
    """
    served = serve(*scored_films_and_codebook)
    page, body = served.ask("GET", "/film/0/blind")
    text = body.decode()
    state = json.loads(re.search('id="state">(.*?)</script>', text, re.DOTALL)[1])

    assert page.status == 200
    assert "data-a" not in text  # the attribute of every span that a page marks
    assert state["passages"] == []

    served.decide(kind="judgement", who="AB", start_s=0, end_s=8, level="calm")
    _, answer = served.ask("GET", "/film/0/decisions?who=AB&mode=blind")
    assert json.loads(answer)["you"] == []


class OpenedFile(NamedTuple):
    """The file that a browser is told to open: its path, text and mode, and the thread that tells it."""

    path: Path
    text: str
    mode: int
    thread: threading.Thread


@pytest.fixture
def opened_file_and_printed_address(monkeypatch):
    """Serve a desk that opens a browser: return the file that the browser opens, and the printed address.

    Stand-ins record what the browser is told to open, and let the server end as soon as it has been told.
    """
    opened_files, printed = queue.Queue(), []
    is_told = threading.Event()

    def record_file(url):
        path = Path(url2pathname(urlsplit(url).path))
        mode = path.stat().st_mode & 0o777
        opened_files.put(OpenedFile(path, path.read_text("utf-8"), mode, threading.current_thread()))
        is_told.set()

    def serve_until_told(*_, **__):
        assert is_told.wait(timeout=600)

    monkeypatch.setattr("webbrowser.open", record_file)
    monkeypatch.setattr(uvicorn.Server, "run", serve_until_told)
    address.serve([], str, port=0, browser=True, tell=printed.append)
    return opened_files.get(timeout=600), printed[0]


def test_the_browser_opens_a_private_file_that_leads_to_the_address_and_is_removed(
    opened_file_and_printed_address,
):
    """Names of files that programs open are read by everybody on the machine.

    So the secret token, at the end of the address, is in the file, which only its owner may read, and not
    in its name.
    """
    file, printed_address = opened_file_and_printed_address
    *_, token = printed_address.split("/")

    assert f"url={printed_address}" in file.text
    assert token not in str(file.path)
    assert file.mode == 0o600 or sys.platform == "win32"
    assert not file.path.exists()  # once the browser has been told


def test_a_browser_that_hangs_does_not_keep_the_desk_from_ending(opened_file_and_printed_address):
    """The browser is started in a daemon thread, for which Python does not wait at its end."""
    file, _ = opened_file_and_printed_address
    assert file.thread.daemon


@pytest.fixture
def two_desks_on_one_folder(serve, scored_films_and_codebook):
    """Two desks on one folder, and the film's table of judgements there.

    AB has judged in the first, from 0, 1 and 2 s to 10 s, and CD in the second, in turns.
    """
    scored_films, codebook_file = scored_films_and_codebook
    first = serve(scored_films, codebook_file)
    second = serve(scored_films, codebook_file)
    for start_s in (0, 1, 2):
        status, _ = first.decide(kind="judgement", who="AB", start_s=start_s, end_s=10, level="calm")
        assert status == 200
        status, _ = second.decide(kind="judgement", who="CD", start_s=start_s, end_s=10, level="calm")
        assert status == 200
    return first, second, scored_films / "tt1" / JUDGEMENTS


def test_two_desks_on_one_folder_lose_nothing_of_each_other(two_desks_on_one_folder):
    """AB judged three spans in one desk and CD three in the other, in turns: the table has all six."""
    _, _, table = two_desks_on_one_folder
    annotators = sorted(row["annotator"] for row in rows_of(table))
    assert annotators == ["AB", "AB", "AB", "CD", "CD", "CD"]


def test_a_judgement_is_undone_in_the_desk_where_it_was_made_and_is_gone_in_both(two_desks_on_one_folder):
    """AB judged three spans in the first desk, the last from 2 s on, and CD three in the second."""
    first, second, _ = two_desks_on_one_folder

    _, answer = second.decide(kind="undo", who="AB")
    assert answer["said"].startswith("nothing")
    _, answer = first.decide(kind="undo", who="AB")
    assert answer["said"].startswith("undo: 0:00:02")

    for desk_on_folder in (first, second):
        # Without a name it undoes nothing; the answer shows what stands of everybody.
        _, answer = desk_on_folder.decide(kind="undo", who="")
        assert len(answer["you"]) == 5


def test_an_edited_table_is_reported_once_with_the_next_decision(serve, scored_films_and_codebook):
    """Somebody edits the table in a spreadsheet while the desk is open: its edits are read, and said once."""
    scored_films, codebook_file = scored_films_and_codebook
    served = serve(scored_films, codebook_file)
    served.decide(kind="judgement", who="AB", start_s=0, end_s=8, level="calm")
    table = scored_films / "tt1" / JUDGEMENTS
    edited = table.read_text("utf-8").replace(",calm,", ",violent,")
    table.write_text(edited, "utf-8")

    _, next_answer = served.decide(kind="judgement", who="CD", start_s=0, end_s=8, level="calm")
    assert next_answer["said"].startswith("kept; ")
    assert str(table) in next_answer["said"]

    _, later_answer = served.decide(kind="judgement", who="EF", start_s=0, end_s=8, level="calm")
    assert later_answer["said"] == "kept"


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals")
def test_the_command_ends_on_a_signal_with_a_line(process, scored_films_and_codebook):
    """The signal SIGTERM, of number 15, asks a program to end, which then has the exit status 128 + 15."""
    desk_process, address = process(*scored_films_and_codebook)
    connection = http.client.HTTPConnection(urlsplit(address).netloc)
    connection.request("GET", urlsplit(address).path)
    assert connection.getresponse().status < 500  # once it answers it has its handlers of signals
    connection.close()

    desk_process.send_signal(signal.SIGTERM)

    assert desk_process.wait(60) == 128 + 15
    assert desk_process.stdout.read().strip() == "obygaze: stopped"


@pytest.mark.long
def test_the_desk_starts_without_importing_scikit_learn():
    """A desk prints its address once everything is imported; scikit-learn takes longer than a long film does.

    A process of its own imports the desk and prints which of the slow packages came with it.
    """
    code = "import sys, obygaze_film.workspace.server; print({'sklearn', 'scipy.stats'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    empty = str(set())
    assert done.stdout.strip() == empty


def test_undo_and_redo_say_what_became_of_the_decision(serve, scored_films_and_codebook):
    """AB judges and then deletes the judgement. Both acts are undone, the deletion first, and done again."""
    served = serve(*scored_films_and_codebook)
    _, judged = served.decide(kind="judgement", who="AB", start_s=0, end_s=8, level="calm")
    served.decide(kind="delete", id=judged["id"], who="AB")

    def said_after(act):
        _, answer = served.decide(kind=act, who="AB")
        return answer["said"]

    deletion_undone = said_after("undo")
    assert deletion_undone.startswith("undo:")
    assert deletion_undone.endswith("stands again")

    judgement_undone = said_after("undo")
    assert judgement_undone.startswith("undo:")
    assert judgement_undone.endswith("no longer stands")

    judgement_redone = said_after("redo")
    assert judgement_redone.startswith("redo:")
    assert judgement_redone.endswith("stands again")

    deletion_redone = said_after("redo")
    assert deletion_redone.startswith("redo:")
    assert deletion_redone.endswith("no longer stands")


@pytest.mark.parametrize("name", MEDIA_TYPES)
def test_a_film_without_a_copy_of_its_video_has_no_stills_and_no_sound(desk, name):
    """The page then shows neither a strip of colours nor peaks, and waits for none."""
    answer, _body = desk.ask("GET", f"/film/0/{name}")
    assert answer.status == 404


def test_the_desk_is_served_on_a_machine_without_ipv6(monkeypatch):
    """A machine without IPv6 has no address ::1: the desk listens at the one socket of 127.0.0.1."""
    served_on = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda _, sockets: served_on.extend(sockets))

    with socket.create_server(("127.0.0.1", 0)) as only_socket:
        server.run([], str, learning=None, keys=Secrets(), sockets=[only_socket])

    assert served_on == [only_socket]
