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
from obygaze_film.workspace.open_film import Job
from obygaze_models import load_model
from obygaze_models.prediction import mean_probability
from obygaze_models.prediction.explain import explain
from tests.files import rows_of
from tests.film.workspace.conftest import copy_scored_films, desks_in_threads


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


def free_port():
    """Return a port that no program listens at now."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        return held.getsockname()[1]


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

    Requests that lack one of these are answered with 403.
    """
    for name, request in requests_of_strangers(desk).items():
        answer, _ = desk.ask(request.method, request.path, request.body, **request.differs)
        assert answer.status == 403, name
    assert_nothing_is_decided(folder_of_desk)


def test_only_pages_of_the_given_films_are_served(desk, folder_of_desk):
    """A video beside a film is not served, since nobody named it.

    The owner chooses what the desk may read.
    """
    (folder_of_desk / "tt1.mp4").write_bytes(b"not named on the command line")
    for method, path, base in (
        ("GET", "/films", ""),  # below another path than the secret one
        ("GET", "/film/2/read", None),  # there are films 0 and 1
        ("GET", "/film/-1/read", None),
        ("GET", f"/film/{'9' * 4400}/read", None),  # Python reads numbers of 4300 digits at most
        ("GET", "/film/0/video", None),
        ("GET", "/film/0/stream?t=0", None),
        ("GET", "/film/../../scored/tt1.mp4", None),
        ("GET", "/film/..%2f..%2ftt1.mp4/video", None),
        ("GET", DECIDE, None),  # decisions are posted
        ("POST", "/film/0/learn", None),  # learning needs a corpus, which `--learn` names
        ("GET", "/film/0/export/zip", None),
    ):
        answer, _ = desk.ask(method, path, base=base)
        assert answer.status in {403, 404, 405}, path


def test_pages_are_closed_to_other_sites_and_caches(desk):
    """Headers forbid to show a page in another site, to keep it in a cache, and to pass on its address."""
    page, _ = desk.ask("GET", "/film/0/read")

    assert page.status == 200
    for name, value in {
        "content-security-policy": "frame-ancestors 'none'",
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-resource-policy": "same-origin",
    }.items():
        assert page.getheader(name) == value


def secrets_of(served):
    """Return the secrets of a desk: in its cookie, in the address that is printed, and in its path."""
    _, _, in_cookie = served.cookie.partition("=")
    return in_cookie, served.entry.removeprefix("/enter/"), served.base.removeprefix("/")


def test_the_secrets_of_desks_are_long_and_differ(desk, serve, copied):
    """Each desk has three secrets, and none is used twice: two desks have six.

    They are too long to be guessed.
    """
    secrets = [*secrets_of(desk), *secrets_of(serve(*copied))]
    assert len(set(secrets)) == 6  # three of each of two desks
    assert min(map(len, secrets)) >= 32  # 24 random bytes


def test_the_cookie_is_sent_to_the_desks_path_only_and_hidden_from_scripts(desk):
    assert desk.entered.status == 200
    attributes = {part.strip().casefold() for part in desk.set_cookie.split(";")}
    assert {f"path={desk.base}/".casefold(), "httponly", "samesite=strict"} <= attributes


def test_the_address_opens_once_though_others_tried_before(serve, copied):
    """Requests that guess the address, or come from elsewhere, must not use it up.

    Who finds it later, as in the history of a terminal, cannot enter with it.
    """
    served = serve(*copied, enter=False)
    assert served.ask("HEAD", served.entry)[0].status == 403
    assert served.ask("GET", served.entry, host="evil.example:80")[0].status == 403
    too_short, too_long = served.entry[:-1], served.entry + "x"
    for wrong in ("/enter/" + "x" * 32, "/enter/", too_short, too_long):
        assert served.ask("GET", wrong)[0].status == 403

    assert served.ask("GET", served.entry)[0].status == 200
    assert served.ask("GET", served.entry)[0].status == 403


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


def test_a_wrong_decision_is_refused_with_a_reason_and_writes_nothing(desk, folder_of_desk):
    for body in (*(JUDGEMENT | wrong for wrong in WRONG_FIELDS), *NO_DECISIONS):
        answer, text = desk.ask("POST", DECIDE, body)
        assert answer.status == 400, body
        assert json.loads(text)["said"], body
    assert_nothing_is_decided(folder_of_desk)


def test_a_decision_of_64_kib_is_written_and_a_longer_one_refused(serve, copied):
    served = serve(*copied)
    of_64_kib = json.dumps(JUDGEMENT).encode().ljust(64 * 1024)  # with spaces after it
    assert served.ask("POST", DECIDE, of_64_kib + b" ")[0].status == 400
    assert_nothing_is_decided(copied[0])
    assert served.ask("POST", DECIDE, of_64_kib)[0].status == 200
    assert (copied[0] / "tt1" / JUDGEMENTS).is_file()


@pytest.mark.parametrize(("language", "accepted"), [("en", "en"), ("fr", "fr;q=.9, en")])
def test_refusals_are_in_the_browsers_language(desk, language, accepted):
    """Nothing stands that could be deleted, and the address has been entered before."""
    no_decision = {"kind": "delete", "who": "AB", "id": "0123456789abcdef-1"}
    answer, data = desk.ask("POST", DECIDE, no_decision, accept_language=accepted)
    assert answer.status == 400
    assert json.loads(data)["said"] == texts(language)["not_standing"]

    answer, page = desk.ask("GET", desk.entry, base="", cookie=None, accept_language=accepted)
    assert answer.status == 403
    assert page.decode() == Words(language)["desk_once"]


def assert_says_why_in_english_and_french(served, body, key):
    """Send a decision that is refused for the reason with this key; compare what is said with its text."""
    said = {}
    for language in ("en", "fr"):
        answer, data = served.ask("POST", DECIDE, body, accept_language=language)
        assert answer.status == 400
        said[language] = json.loads(data)["said"]
        around_fields = re.split("{[^}]*}", texts(language)[key])
        assert [part for part in around_fields if part not in said[language]] == []
    assert said["en"] != said["fr"]


@pytest.mark.parametrize(
    ("wrong", "key"),
    [
        ({"note": "shalom\u200f"}, "unsuitable"),
        ({"who": "A\u202eB"}, "unsuitable"),
        ({"end_s": 1e5}, "behind"),
        ({"kind": "passage", "end_s": 0.05}, "short"),
        ({"level": "S"}, "refused"),  # the reason is in English, and that is said
    ],
    ids=["a note that turns the direction of texts", "a name that does", "beyond the film", "too short",
         "another codebook's level"],
)  # fmt: skip
def test_why_a_decision_is_refused_is_said_in_english_and_french(desk, wrong, key):
    """`key` names the reason's text, which exists in both languages."""
    assert_says_why_in_english_and_french(desk, JUDGEMENT | wrong, key)


@pytest.mark.parametrize(
    ("code", "key"),
    [(errno.ENOSPC, "disk_full"), (errno.EROFS, "disk_closed"), (errno.EIO, "disk_other")],
    ids=["no space", "no right to write", "no answer of the disk"],
)
def test_why_a_disk_keeps_no_decision_is_said_in_english_and_french(desk, monkeypatch, code, key):
    """A full disk, one without the right to write and a broken one need different remedies.

    Each has a text.
    """

    def fail(*_):
        raise OSError(code, os.strerror(code), "ledger")

    monkeypatch.setattr("obygaze_film.workspace.ledger.Ledger.add", fail)
    assert_says_why_in_english_and_french(desk, JUDGEMENT, key)


def wait_until_threads_are_at_most(n_threads):
    """Wait until the threads that were begun since have ended, and only `n_threads` run."""
    ends = time.monotonic() + 60
    while threading.active_count() > n_threads:
        assert time.monotonic() < ends
        time.sleep(0.001)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # the terminal says it
def test_a_job_that_crashes_reports_failure_and_can_begin_again():
    """A job runs in a thread, where an error would pass unseen: the desk says that the work failed."""

    def fail(_):
        raise ZeroDivisionError

    job, n_threads = Job(), threading.active_count()
    job.begin(fail)
    wait_until_threads_are_at_most(n_threads)
    assert (job.error, job.share, job.notes) == (texts("en")["work_failed"], None, None)
    job.begin(lambda _: ["done"])
    wait_until_threads_are_at_most(n_threads)
    assert (job.error, job.notes) == ("", ["done"])


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

    The answer must read first whether learning is done, and only then which film is the last.
    """
    films = [SimpleNamespace(number=0, timeline=SimpleNamespace(movie="tt1"))]
    workspace = server.Workspace(films, str, lambda _: [])
    workspace.learning_job = JobThatEndsWhileItIsRead(films)
    state = learning_state(workspace, film_number=0)
    assert state["done"]

    learnt_film = films[-1]
    assert learnt_film.number > 0
    assert state["film"] == learnt_film.number


def test_several_films_are_listed_and_compared_by_a_column(serve, copied, tmp_path):
    """The table names the director of each film: both appear equally often on the page of films.

    The terminal names each film as it is read.
    """
    table = tmp_path / "films.csv"
    table.write_text("movie,director\ntt1,Agnes\ntt2,Chantal\n", "utf-8")
    served = serve(*copied, "--films", str(table), "--by", "director")
    reading = [line for line in served.said.splitlines() if line.startswith("reading ")]
    assert [line[-3:] for line in reading] == ["tt1", "tt2"]
    assert served.ask("GET", "/")[0].getheader("location") == "films"

    page, text = served.ask("GET", "/films")
    assert page.status == 200
    assert b'href="film/1/read"' in text
    assert text.count(b"Agnes") == text.count(b"Chantal") > 0
    assert b'href="../../films"' in served.ask("GET", "/film/1/read")[1]


def test_the_only_film_is_shown_at_once(serve, copied):
    """With one film there is nothing to choose, so that the first page leads to its desk (303)."""
    served = serve(copied[0] / "tt2", copied[1])
    answer = served.ask("GET", "/")[0]
    assert (answer.status, answer.getheader("location")) == (303, "film/0/read")


def test_the_server_listens_on_both_loopback_addresses(serve, copied):
    """Browsers take 127.0.0.1 or ::1 for localhost, so that the port must be open on both."""
    port = free_port()
    served = serve(*copied, "--port", str(port))
    assert served.host == f"127.0.0.1:{port}"
    with socket.create_connection(("::1", port), timeout=10):
        pass


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
    text = desk.ask("GET", "/film/0/read")[1].decode()
    levels = [int(level) for level in re.findall(r"<h([1-6])", text)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert 2 in levels


def decide_of_each_kind(served):
    """Decide a judgement, a note before it, and a passage before both."""
    served.decide(kind="judgement", start_s=300, end_s=330, level="calm")
    served.decide(kind="note", start_s=240, end_s=270, note="a gun")
    _, answer = served.decide(kind="passage", start_s=60, end_s=90, level="violent", concepts=["Gun"])
    return answer


def test_decisions_are_shown_in_order_of_time_and_undone_in_order_of_making(serve, copied):
    """They are decided in the reverse order. The model finds "violent": a violent passage agrees with it.

    A calm judgement disagrees. The fourth undo has nothing to undo, and says so.
    """
    served = serve(*copied)
    answer = decide_of_each_kind(served)
    assert answer["said"] == "kept"
    passage, note, judgement = answer["you"]
    assert (passage["kind"], passage["verdict"], passage["start"], passage["end"]) == (
        "passage", "agree", 60, 90,
    )  # fmt: skip
    assert passage["concepts"] == ["Gun"]
    assert (note["kind"], note["start"], note["end"], note["note"]) == ("note", 240, 270, "a gun")
    assert (judgement["kind"], judgement["verdict"], judgement["start"], judgement["end"]) == (
        "judgement", "disagree", 300, 330,
    )  # fmt: skip

    answers = [served.decide(kind="undo")[1] for _ in range(4)]
    kinds_left = [[decision["kind"] for decision in answer["you"]] for answer in answers]
    assert kinds_left == [["note", "judgement"], ["judgement"], [], []]
    assert answers[3]["said"] != answers[0]["said"]  # nothing is left to undo


def test_a_passage_names_its_origin_the_models_or_ones_own(serve, copied):
    """The first began as the model's passage 2, and the second was marked freely."""
    served = serve(*copied)
    span = {"kind": "passage", "start_s": 60, "level": "violent"}
    served.decide(**span, end_s=80, origin="2")
    served.decide(**span, end_s=90)
    assert [row["origin"] for row in rows_of(copied[0] / "tt1" / PASSAGES)] == ["2", "own"]


def test_rows_of_another_film_are_not_shown(serve, copied):
    """The table of tt1 has a passage of XY in the film tt9: only AB's decisions on tt1 are shown."""
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
    (copied[0] / "tt1" / PASSAGES).write_text(table, "utf-8")
    answer = decide_of_each_kind(serve(*copied))

    assert {decision["who"] for decision in answer["you"]} == {"AB"}


def ask_about_span(served, start, end):
    """Ask what the model finds in a span of the first film; return the status and the answer."""
    answer, text = served.ask("GET", f"/film/0/span?{urlencode({'a': start, 'b': end})}")
    return answer.status, json.loads(text)


def test_the_evidence_of_a_segments_span_is_that_of_the_segment(desk, folder_of_desk):
    """A segment (a passage of the timeline) has stored values, and asking for its span must give the same."""
    film = Timeline.read(folder_of_desk / "tt1")
    for row in film.segments().to_dict("records")[:6]:
        status, evidence = ask_about_span(desk, row["start_s"], row["end_s"])
        assert status == 200
        assert evidence["p"] == f"{row['p']:.2f}"
        assert [part["name"] for part in evidence["parts"]] == row["concepts"].split(";")
        assert evidence["cuts"] == sum(row["start_s"] < cut < row["end_s"] for cut in film.shots["start_s"])


def test_any_other_span_has_the_evidence_of_its_own_rows(desk):
    """A gun is planted from 150 to 190 s, which makes the model find violence there, and not at 250 s."""
    _, with_gun = ask_about_span(desk, 155, 165)
    _, without = ask_about_span(desk, 250, 260)
    assert float(with_gun["p"]) > 0.6  # likely violent
    assert float(without["p"]) < 0.3
    assert with_gun["sentence"] != without["sentence"]


def test_a_black_span_has_no_probability_and_no_concepts(desk):
    _, black = ask_about_span(desk, 0, 1)  # the first shot is planted black
    assert black["p"] == ""
    assert black["parts"] == []
    assert "black" in black["flags"]


@pytest.mark.parametrize(
    "times", ["a=nan&b=3", "a=0&b=inf", "a=5&b=2", "a=-1&b=2", "a=x&b=5", "a=1&b=", "b=2", "a=1&a=x&b=2"]
)
@pytest.mark.parametrize("answer", ["span", "figure.svg", "figure.pdf"])
def test_what_is_no_span_of_the_film_is_refused(desk, answer, times):
    assert desk.ask("GET", f"/film/0/{answer}?{times}")[0].status == 400


@pytest.fixture(scope="module")
def gun_at_160_s(films):
    """A span with a planted gun: the desk's answer, the film's store, and the span's clip there."""
    with desks_in_threads() as start:
        served = start(films / "scored" / "tt1", films / "violence.codebook.toml")
        status, answer = ask_about_span(served, 160, 168)
    assert status == 200
    store = open_store(films / "scored" / "tt1-1.0.0")
    (clip,) = [clip for clip in store.clips if clip.start_s == 160]
    assert clip.end_s == 168
    return answer, store, clip


def gun_of(answer):
    """Return what an answer says of the gun, with the span's probability now and at its usual value."""
    (gun,) = [part for part in answer["parts"] if part["name"] == "Gun"]
    p, p_at_usual = (float(number) for number in gun["usual"].split(" → "))
    return gun, p, p_at_usual


def test_the_probability_without_a_concept_is_a_mean_over_the_spans_rows(films, gun_at_160_s):
    """The desk shows what the probability would be at a concept's usual value.

    At its usual value the gun contributes nothing to the logit of a row. Rows that reach beyond the span,
    160 to 168 s, weigh by their seconds within it.
    """
    answer, _, _ = gun_at_160_s
    film = Timeline.read(films / "scored" / "tt1")
    rows = film.rows().query("start_s < 168 and end_s > 160")
    seconds_within = rows["end_s"].clip(upper=168) - rows["start_s"].clip(lower=160)
    draws = np.array(film.model().calibration.draws)
    logit_without_gun = rows["logit"] - rows["Gun_contribution"]
    p_without_gun = mean_probability(draws, logit_without_gun.to_numpy())
    _, p, p_at_usual = gun_of(answer)

    assert f"{p:.2f}" == answer["p"]
    expected = np.average(p_without_gun, weights=seconds_within)
    assert p_at_usual == pytest.approx(expected, abs=0.0051)  # the desk has two decimals


def test_a_concept_changes_clip_and_span_in_the_same_direction(trained, gun_at_160_s):
    """The clip and the span are the same 8 s: what the model's explanation says of one holds for the other.

    The sign that the desk shows is that of the change.
    """
    answer, store, clip = gun_at_160_s
    model = load_model(trained.paths["pcbm_lr"])
    explained = explain(model, [store], clip.clip_id, {})
    change_of_clip = explained.changes[list(model.concepts).index("Gun")]
    gun, p, p_at_usual = gun_of(answer)

    raises_p_of_span = p > p_at_usual
    has_minus_sign = gun["value"].startswith("\N{MINUS SIGN}")
    assert raises_p_of_span == (change_of_clip > 0)
    assert raises_p_of_span == (not has_minus_sign)


def test_similar_spans_are_the_nearest_in_the_store(gun_at_160_s):
    """The desk lists the four spans whose features are nearest to those of the span, 160 to 168 s.

    Windows that overlap it are left out: windows last 8 s.
    """
    answer, store, clip = gun_at_160_s

    hits = obygaze_features.search_like(store, clip.clip_id, top=40)
    nearest, *_ = [hit for hit in hits if hit.start_s <= 152 or hit.start_s >= 168]
    assert len(answer["like"]) == 4
    first = answer["like"][0]
    assert first["film"] == 0
    assert first["start"] == nearest.start_s


def test_a_page_is_in_the_browsers_language_compressed_and_below_100_kb(desk):
    page, text = desk.ask("GET", "/film/0/read", accept_encoding="gzip", accept_language="fr-FR,fr;q=0.9")
    assert page.getheader("content-encoding") == "gzip"
    assert b'lang="fr"' in gzip.decompress(text)
    assert len(text) < 100_000


def test_the_desks_scripts_are_served_and_no_other_files(desk):
    for name in modules.DESK:
        script, _ = desk.ask("GET", f"/desk/{name}.js")
        assert script.status == 200
        assert script.getheader("content-type").startswith("text/javascript")

    for name in ("timeline.js", "../html.py", "x.js"):
        assert desk.ask("GET", f"/desk/{name}.js")[0].status == 404


def test_the_desk_offers_the_name_typed_last(serve, copied):
    """CD decided last, and so is offered to a browser without a name. This browser has typed another name.

    The page's script keeps the name in a cookie, percent-encoded.
    """
    served = serve(*copied)
    served.decide(kind="judgement", start_s=0, end_s=8, level="calm", who="CD")
    nobody_typed = served.ask("GET", "/film/0/blind")[1].decode()
    with_name = f"{served.cookie}; who={quote('Aña B')}"
    named = served.ask("GET", "/film/0/blind", cookie=with_name)[1].decode()

    assert 'id="d-who"' in named
    assert 'value="CD"' in nobody_typed
    assert 'value="Aña B"' in named
    assert 'value="CD"' not in named


@pytest.mark.parametrize("n", ["words", "-1", "1000000"])
def test_a_judge_who_plans_no_proper_number_of_windows_gets_none(desk, n):
    """How many windows one judges must be fixed before the first, as stopping at will would bias a share."""
    assert "window" not in desk.next(who="EF", n=n)


@pytest.fixture
def blind_of_cd(serve, copied):
    """A desk at which CD judged a window blindly and AB marked a passage: AB is not shown CD's judgement."""
    served = serve(copied[0] / "tt1", copied[1])
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


def test_an_exported_table_has_only_what_its_viewer_may_see(blind_of_cd):
    """AB must not see CD's blind judgement before being finished, not even in an export; CD sees it."""
    header, passage = exported_for(blind_of_cd, "passage", "AB").splitlines()
    assert "concepts" in header
    assert "Gun" in passage
    assert "CD" not in exported_for(blind_of_cd, "judgement", "AB")
    assert "CD" in exported_for(blind_of_cd, "judgement", "CD")


@pytest.mark.long
def test_an_elan_export_has_only_what_its_viewer_may_see(blind_of_cd):
    """AB's passage has a tier for each of level, concepts and note. CD's blind judgement is CD's to see."""
    for_ab = exported_for(blind_of_cd, "eaf", "AB")
    tiers = re.findall(r'TIER_ID="human: (\w+)[^"]*@AB".*?</TIER>', for_ab, re.DOTALL)
    assert tiers == ["level", "concepts", "note"]
    assert "@CD" not in for_ab
    assert "human: level, blind@CD" in exported_for(blind_of_cd, "eaf", "CD")


@pytest.fixture
def desk_that_learns(serve, films, trained, tmp_path):
    """A desk with two films, and the corpus that their model was trained on."""
    shutil.copytree(films / "scored", tmp_path / "scored", ignore=shutil.ignore_patterns("*.staging"))
    write_manifest(trained.manifest, tmp_path / "films.csv")
    corpus = "--learn", str(tmp_path / "films.csv"), str(trained.store.where)
    return serve(tmp_path / "scored", films / "violence.codebook.toml", *corpus)


def learn(served):
    """Let the desk learn from what was decided on the first film, and wait until it is done or fails."""
    served.ask("POST", "/film/0/learn")
    while True:
        state = json.loads(served.ask("GET", "/film/0/learn")[1])
        if state["done"] or state["error"]:
            return state


def test_with_a_corpus_the_desk_can_learn_and_has_not_begun(desk_that_learns):
    answer, text = desk_that_learns.ask("GET", "/film/0/learn")
    assert answer.status == 200
    assert json.loads(text)["share"] is None


@pytest.mark.long  # trains
def test_the_desk_learns_nothing_without_a_judgement(desk_that_learns):
    assert "judgement" in learn(desk_that_learns)["error"]


@pytest.mark.long  # trains
def test_learning_opens_the_film_anew_with_its_decisions(desk_that_learns, tmp_path):
    """The desk has films 0 and 1; film 0 as the learnt model scores it becomes film 2."""
    served = desk_that_learns

    def decisions_of(film_number):
        _, answer = served.ask("GET", f"/film/{film_number}/decisions?who=AB")
        return json.loads(answer)["you"]

    served.decide(kind="judgement", start_s=40.0, end_s=72.0, level="violent", concepts=["Gun"])
    status, _ = served.decide(kind="passage", start_s=200.0, end_s=216.0, level="calm")
    assert status == 200

    state = learn(served)
    assert state["error"] == ""
    assert state["film"] == 2
    assert "no change can be told" in state["said"][0]
    assert (tmp_path / "learnt-1" / "manifest.csv").is_file()
    _, page = served.ask("GET", "/film/2/read")
    assert b'id="d-moved"' in page  # passages that moved by what was learnt
    assert [decision["level"] for decision in decisions_of(2)] == ["violent", "calm"]

    # Both films have one ledger: what is deleted of one is gone from the other.
    first, _ = decisions_of(2)
    status, _ = served.decide(2, kind="delete", id=first["id"])
    assert status == 200
    assert len(decisions_of(0)) == 1


def test_a_blind_page_shows_nothing_that_gives_the_score_away(serve, copied):
    """A blind judge must not know the score, which the model's passages would give away.

    Decisions that were made in sight of the score would, too.
    """
    served = serve(*copied)
    page, body = served.ask("GET", "/film/0/blind")
    assert page.status == 200
    text = body.decode()
    assert "data-a" not in text  # what marks a span on the page
    state = json.loads(re.search('id="state">(.*?)</script>', text, re.DOTALL)[1])
    assert state["passages"] == []

    served.decide(kind="judgement", start_s=0, end_s=8, level="calm")
    assert json.loads(served.ask("GET", "/film/0/decisions?who=AB&mode=blind")[1])["you"] == []


class OpenedFile(NamedTuple):
    """The file that a browser is told to open: its path, text and mode, and the thread that tells it."""

    path: Path
    text: str
    mode: int
    thread: threading.Thread


@pytest.fixture
def opened_by_browser(monkeypatch):
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


def test_the_browser_opens_a_private_file_that_leads_to_the_address_and_is_removed(opened_by_browser):
    """Names of files that programs open are read by everybody on the machine.

    So the secret is in the file, which only its owner may read, and not in its name. The browser is started
    in a daemon thread, for which Python does not wait at its end: one that hangs does not keep the desk.
    """
    file, printed_address = opened_by_browser
    *_, token = printed_address.split("/")
    assert f"url={printed_address}" in file.text
    assert token not in str(file.path)
    assert file.mode == 0o600 or sys.platform == "win32"
    assert file.thread.daemon
    assert not file.path.exists()


def test_two_workspaces_of_one_folder_lose_nothing_of_each_other(serve, copied):
    """AB judges from 0, 1 and 2 s in one workspace and CD in another, in turns: the table has all six.

    What AB judged is undone where it was judged, from 2 s on first, and is then gone in both.
    """
    one, other = serve(*copied), serve(*copied)
    for start_s in range(3):
        assert one.decide(**JUDGEMENT | {"start_s": start_s, "end_s": 10, "who": "AB"})[0] == 200
        assert other.decide(**JUDGEMENT | {"start_s": start_s, "end_s": 10, "who": "CD"})[0] == 200
    rows = rows_of(copied[0] / "tt1" / JUDGEMENTS)
    assert sorted(row["annotator"] for row in rows) == ["AB"] * 3 + ["CD"] * 3

    _, answer = other.decide(kind="undo", who="AB")
    assert answer["said"].startswith("nothing")
    _, answer = one.decide(kind="undo", who="AB")
    assert answer["said"].startswith("undo: 0:00:02")
    for workspace in (one, other):
        _, answer = workspace.decide(kind="undo", who="")  # without a name it undoes nothing, and shows all
        assert len(answer["you"]) == 2 + 3


def test_an_edited_table_is_reported_once_with_the_next_decision(serve, copied):
    """Somebody edits the table in a spreadsheet while the desk is open: its edits are read, and said once."""
    served, path = serve(*copied), copied[0] / "tt1" / JUDGEMENTS
    served.decide(**JUDGEMENT)
    path.write_text(path.read_text("utf-8").replace(",calm,", ",violent,"), "utf-8")

    _, next_answer = served.decide(**JUDGEMENT | {"who": "CD"})
    assert next_answer["said"].startswith("kept; ")
    assert str(path) in next_answer["said"]
    _, later_answer = served.decide(**JUDGEMENT | {"who": "EF"})
    assert later_answer["said"] == "kept"


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals")
def test_the_command_ends_on_a_signal_with_a_line(process, copied):
    """143 is the exit status of a program that SIGTERM ended: 128 + 15."""
    started, address = process(*copied)
    connection = http.client.HTTPConnection(urlsplit(address).netloc)
    connection.request("GET", urlsplit(address).path)
    assert connection.getresponse().status < 500  # once it answers it has its handlers of signals

    connection.close()
    started.send_signal(signal.SIGTERM)
    assert started.wait(60) == 143
    assert started.stdout.read().strip() == "obygaze: stopped"


@pytest.mark.long
def test_the_desk_starts_without_importing_scikit_learn():
    """Its address waits for what it imports, and scikit-learn takes longer than a film of twelve hours."""
    code = "import sys, obygaze_film.workspace.server; print({'sklearn', 'scipy.stats'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"


def test_undo_and_redo_say_what_became_of_the_decision(serve, copied):
    """AB judges and deletes the judgement; both acts are undone and done again."""
    served = serve(*copied)
    _, judged = served.decide(**JUDGEMENT | {"who": "AB"})
    served.decide(kind="delete", id=judged["id"], who="AB")

    def answer_to(kind):
        _, answer = served.decide(kind=kind, who="AB")
        act, _, outcome = answer["said"].partition(":")
        return act, outcome

    for kind, becomes in (
        ("undo", "stands again"),  # the deletion is undone
        ("undo", "no longer stands"),  # the judgement is undone
        ("redo", "stands again"),
        ("redo", "no longer stands"),
    ):
        act, outcome = answer_to(kind)
        assert act == kind
        assert outcome.endswith(becomes)
