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
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlencode, urlsplit
from urllib.request import url2pathname

import numpy as np
import pytest
import uvicorn
from starlette.requests import Request

import obygaze_features as of
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


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as held:
        return held.getsockname()[1]


JUDGED = {"kind": "judgement", "start_s": 0, "end_s": 8, "level": "calm", "who": "AB"}
DECIDE = "/film/0/decide"


def test_only_the_owner_enters_and_only_from_its_pages(serve, copied):
    video = copied[0] / "tt1.mp4"
    video.write_bytes(b"not named on the command line")
    served = serve(*copied)
    port, secret = served.host.rpartition(":")[2], served.cookie.partition("=")[2]
    refused = {
        "no cookie": ("GET", "/films", None, {"cookie": None}),
        "an empty cookie": ("GET", "/films", None, {"cookie": "obygaze="}),
        "a beginning of the cookie": ("GET", "/films", None, {"cookie": f"obygaze={secret[:-1]}"}),
        "the path as a cookie": ("GET", "/films", None, {"cookie": f"obygaze={served.base[1:]}"}),
        "the token as a cookie": ("GET", "/films", None, {"cookie": f"obygaze={served.entry[7:]}"}),
        "another path": ("GET", "/films", None, {"base": ""}),
        "the address again": ("GET", served.entry, None, {"base": ""}),
        "an empty token": ("GET", "/enter/", None, {"base": "", "cookie": None}),
        "a wrong token": ("GET", "/enter/" + "x" * 32, None, {"base": "", "cookie": None}),
        "another site's name": ("GET", "/films", None, {"host": f"evil.example:{port}"}),
        "no name": ("GET", "/films", None, {"host": ""}),
        "another site's page": ("POST", DECIDE, JUDGED, {"origin": "https://evil.example"}),
        "no origin": ("POST", DECIDE, JUDGED, {"origin": None}),
        "an empty origin": ("POST", DECIDE, JUDGED, {"origin": ""}),
        "a page of no origin": ("POST", DECIDE, JUDGED, {"origin": "null"}),
        "a page of another port": ("POST", DECIDE, JUDGED, {"origin": "http://127.0.0.1:1"}),
        "a film that is not named": ("GET", "/film/2/read", None, {}),
        "a film that was not given": ("GET", "/film/0/video", None, {}),
        "a path out": ("GET", "/film/../../scored/tt1.mp4", None, {}),
        "a coded path": ("GET", "/film/..%2f..%2ftt1.mp4/video", None, {}),
        "a GET that writes": ("GET", DECIDE, JUDGED, {}),
    }
    statuses = {name: served.ask(*words[:3], **words[3])[0].status for name, words in refused.items()}
    assert set(statuses.values()) <= {403, 404, 405}, statuses
    assert {name for name, status in statuses.items() if status != 403} <= {
        "another path", "the address again", "a film that is not named", "a film that was not given",
        "a path out", "a coded path", "a GET that writes",
    }  # fmt: skip
    assert not (copied[0] / "tt1" / JUDGEMENTS).exists()
    page, _ = served.ask("GET", "/film/0/read")
    assert page.status == 200
    for name, value in {
        "content-security-policy": "frame-ancestors 'none'",
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-resource-policy": "same-origin",
    }.items():
        assert page.getheader(name) == value
    assert served.decide(**JUDGED)[0] == 200
    assert (copied[0] / "tt1" / JUDGEMENTS).is_file()


def test_the_secrets_are_long_and_differ_and_the_cookie_goes_to_no_other_path(serve, copied):
    served = serve(*copied)
    secret, token, path = served.cookie.partition("=")[2], served.entry.rpartition("/")[2], served.base[1:]
    assert len({secret, token, path}) == 3
    assert min(map(len, (secret, token, path))) >= 32  # 24 random bytes
    said = {part.strip().casefold() for part in served.set_cookie.split(";")}
    assert {f"path=/{path}/".casefold(), "httponly", "samesite=strict"} <= said
    assert served.entered.status == 200
    again = serve(*copied)
    assert {again.cookie, again.entry, again.base}.isdisjoint({served.cookie, served.entry, served.base})


def test_looking_at_the_address_without_entering_spends_nothing(serve, copied):
    served = serve(*copied, enter=False)
    for method, host in (("HEAD", served.host), ("GET", "evil.example:80")):
        assert served.ask(method, served.entry, host=host)[0].status == 403
    for wrong in ("/enter/" + "x" * 32, "/enter/", served.entry[:-1], served.entry + "x"):
        assert served.ask("GET", wrong)[0].status == 403
    assert served.ask("GET", served.entry)[0].status == 200
    assert served.ask("GET", served.entry)[0].status == 403


def test_a_wrong_decision_is_refused_with_a_reason_and_writes_nothing(serve, copied):
    served = serve(*copied)
    window = served.next(who="AB", n=10)["window"]
    blind = JUDGED | {"start_s": window["start"], "end_s": window["end"]}
    for wrong in (
        *(JUDGED | more for more in (
            {"kind": "x"}, {"start_s": "a"}, {"level": "S"}, {"level": ""}, {"who": ""}, {"place": "x"},
            {"concepts": 1}, {"who": 3}, {"end_s": None},
        )),
        blind | {"place": 2}, blind | {"place": 10**6}, blind | {"place": -1}, {}, [], 1,
        b"[" * 60_000, b'{"kind":"judgement","start_s":' + b"9" * 400 + b"}", b"{", b"\xff", b"",
        json.dumps(blind).encode().replace(b"}", b', "place": 1e999}'),
    ):  # fmt: skip
        answer, text = served.ask("POST", DECIDE, wrong)
        assert (answer.status, bool(json.loads(text)["said"])) == (400, True), wrong
    padded = {size: json.dumps(JUDGED).encode().ljust(size) for size in (1 << 16, (1 << 16) + 1)}
    assert served.ask("POST", DECIDE, padded[(1 << 16) + 1])[0].status == 400
    assert not (copied[0] / "tt1" / JUDGEMENTS).exists()
    assert served.ask("POST", DECIDE, padded[1 << 16])[0].status == 200


def test_what_is_refused_is_said_in_the_browsers_language(serve, copied):
    served, gone = serve(*copied), {"kind": "delete", "who": "AB", "id": "0123456789abcdef-1"}
    answers = [served.ask("POST", DECIDE, gone, accept_language=name) for name in ("en", "fr;q=.9, en")]
    assert [answer.status for answer, _ in answers] == [400, 400]
    said = [json.loads(data)["said"] for _, data in answers]
    assert said == [texts(name)["not_standing"] for name in ("en", "fr")]
    for name in ("en", "fr"):
        once = served.ask("GET", served.entry, base="", cookie=None, accept_language=name)[1]
        assert once.decode() == Words(name)["desk_once"]


@pytest.mark.parametrize(
    ("asked", "key"),
    [
        ({"note": "shalom\u200f"}, "unsuitable"),
        ({"who": "A\u202eB"}, "unsuitable"),
        ({"end_s": 1e5}, "behind"),
        ({"kind": "passage", "end_s": 0.05}, "short"),
        ({"level": "S"}, "refused"),  # in English, and that is said
        ({"note": "no space"}, "disk_full"),
        ({"note": "no right"}, "disk_closed"),
        ({"note": "no disk"}, "disk_other"),
    ],
)
def test_whatever_is_not_kept_is_said_in_french(serve, copied, monkeypatch, asked, key):
    codes = {"no space": errno.ENOSPC, "no right": errno.EROFS, "no disk": errno.EIO}
    if code := codes.get(asked.get("note")):

        def add(*_):
            raise OSError(code, os.strerror(code), "ledger")

        monkeypatch.setattr("obygaze_film.workspace.ledger.Ledger.add", add)
    said = {}
    served = serve(*copied)
    for name in ("en", "fr"):
        body = {**JUDGED, **asked}
        answer, data = served.ask("POST", DECIDE, body, accept_language=name)
        assert answer.status == 400
        said[name] = json.loads(data)["said"]
        assert all(part in said[name] for part in re.split("{[^}]*}", texts(name)[key])), said
    assert said["en"] != said["fr"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # the terminal says it
def test_work_that_ends_by_a_fault_of_ours_is_said_to_have_failed():
    job, began = Job(), threading.active_count()
    job.begin(lambda _: 1 / 0)
    while threading.active_count() > began:
        pass
    assert (job.error, job.share, job.notes) == (texts("en")["work_failed"], None, None)
    job.begin(lambda _: ["done"])  # again
    while threading.active_count() > began:
        pass
    assert (job.error, job.notes) == ("", ["done"])


def test_an_answer_that_calls_learning_done_names_the_film_that_came_of_it():
    films = [SimpleNamespace(number=0, timeline=SimpleNamespace(movie="tt1"))]

    class Ends:
        """Ends while it is looked at."""

        share, error = 1.0, ""

        @property
        def notes(self):
            films.append(SimpleNamespace(number=len(films), timeline=films[0].timeline))
            return []

    work = server.Workspace(films, str, lambda _: [])
    work.learning_job = Ends()
    scope = {
        "type": "http",
        "method": "GET",
        "path_params": {"number": 0},
        "headers": [],
        "query_string": b"",
    }
    state = json.loads(work.learn(Request(scope)).body)
    assert state["done"]
    assert state["film"] == films[-1].number > 0


def test_of_several_films_all_are_shown_and_compared_by_what_a_table_says_of_them(serve, copied, tmp_path):
    table = tmp_path / "films.csv"
    table.write_text("movie,director\ntt1,Agnes\ntt2,Chantal\n", "utf-8")
    both = serve(*copied, "--films", str(table), "--by", "director")
    assert both.ask("GET", "/")[0].getheader("location") == "films"
    page, text = both.ask("GET", "/films")
    assert page.status == 200
    assert b'href="film/1/read"' in text
    assert text.count(b"Agnes") == text.count(b"Chantal") > 0
    assert b'href="../../films"' in both.ask("GET", "/film/1/read")[1]
    read = [line for line in both.said.splitlines() if line.startswith("reading ")]
    assert [line.rpartition("tt")[2] for line in read] == ["1", "2"]


def test_the_only_film_is_shown_at_once(serve, copied):
    served = serve(copied[0] / "tt2", copied[1])
    answer = served.ask("GET", "/")[0]
    assert (answer.status, answer.getheader("location")) == (303, "film/0/read")


def test_it_listens_on_both_loopback_addresses_at_the_port_that_is_asked_for(serve, copied):
    port = free_port()
    served = serve(*copied, "--port", str(port))
    assert served.host == f"127.0.0.1:{port}"
    with socket.create_connection(("::1", port), timeout=10):
        pass
    if sys.platform == "linux":  # where all of 127.0.0.0/8 is this machine's
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port), timeout=10)


def test_no_level_of_headings_is_skipped(serve, copied):
    text = serve(*copied).ask("GET", "/film/0/read")[1].decode()
    levels = [int(level) for level in re.findall(r"<h([1-6])", text)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert 2 in levels


def test_what_is_decided_stands_in_time_order_and_is_taken_back_in_turn(serve, copied):
    columns = COLUMNS[PASSAGES]
    other = dict.fromkeys(columns, "") | {"movie": "tt9", "start_s": "0", "end_s": "9", "level": "calm"}
    other |= {"annotator": "XY", "seen_score": "1"}
    (copied[0] / "tt1" / PASSAGES).write_text(f"{','.join(columns)}\n{','.join(other.values())}\n", "utf-8")
    served = serve(*copied)
    served.decide(kind="judgement", start_s=300, end_s=330, level="calm")
    served.decide(kind="note", start_s=240, end_s=270, note="a gun")
    served.decide(kind="passage", start_s=60, end_s=80, level="violent", origin="2")
    assert ",1,2,20" in (copied[0] / "tt1" / PASSAGES).read_text("utf-8")
    served.decide(kind="undo")
    _, answer = served.decide(kind="passage", start_s=60, end_s=90, level="violent", concepts=["Gun"])
    assert ",1,own,20" in (copied[0] / "tt1" / PASSAGES).read_text("utf-8")
    assert answer["said"] == "kept"
    shown = [(one["kind"], one["verdict"], one["start"], one["end"]) for one in answer["you"]]
    assert shown == [
        ("passage", "agree", 60, 90),
        ("note", "note", 240, 270),
        ("judgement", "disagree", 300, 330),
    ]
    assert answer["you"][0]["concepts"] == ["Gun"]
    assert answer["you"][1]["note"] == "a gun"
    said = [served.decide(kind="undo")[1] for _ in range(4)]
    assert [len(answer["you"]) for answer in said] == [2, 1, 0, 0]
    assert said[-1]["said"] != said[0]["said"]


def test_any_span_gets_the_evidence_of_its_own_rows(serve, copied):
    served = serve(*copied)
    film = Timeline.read(copied[0] / "tt1")

    def asked(**span):
        answer, text = served.ask("GET", f"/film/0/span?{urlencode(span)}")
        return answer.status, json.loads(text)

    for row in film.segments().to_dict("records")[:6]:
        status, found = asked(a=row["start_s"], b=row["end_s"])
        assert (status, found["p"]) == (200, f"{row['p']:.2f}")
        assert [part["name"] for part in found["parts"]] == row["concepts"].split(";")
        assert found["cuts"] == sum(row["start_s"] < cut < row["end_s"] for cut in film.shots["start_s"])
    within, apart = (asked(a=a, b=a + 10)[1] for a in (155, 250))
    assert float(within["p"]) > 0.6
    assert float(apart["p"]) < 0.3
    assert within["sentence"] != apart["sentence"]
    _, black = asked(a=0, b=1)
    assert (black["p"], black["parts"], "black" in black["flags"]) == ("", [], True)
    for start, end in ((20, 10), (-1, 5), ("x", 5), ("nan", 5), (1, ""), (1, "inf")):
        assert asked(a=start, b=end)[0] == 400, (start, end)


def test_a_concept_at_its_usual_value_changes_what_its_reason_says(films, trained, serve):
    served = serve(films / "scored" / "tt1", films / "violence.codebook.toml")
    store, model = open_store(films / "scored" / "tt1-1.0.0"), load_model(trained.paths["pcbm_lr"])
    clip = next(clip for clip in store.clips if clip.start_s == 160)
    explained = explain(model, [store], clip.clip_id, {})
    film = Timeline.read(films / "scored" / "tt1")
    place = list(model.concepts).index("Gun")
    at_usual = explained.decision.p - explained.changes[place]
    rows = film.rows().query("start_s < 168 and end_s > 160")
    weights = rows["end_s"].clip(upper=168) - rows["start_s"].clip(lower=160)
    draws = np.array(film.model().calibration.draws)
    moved = mean_probability(draws, (rows["logit"] - rows["Gun_contribution"]).to_numpy())
    answer = json.loads(served.ask("GET", "/film/0/span?a=160&b=168")[1])
    gun = next(part for part in answer["parts"] if part["name"] == "Gun")
    before, after = (float(text) for text in gun["usual"].split(" → "))
    assert (f"{before:.2f}", after < before) == (answer["p"], at_usual < explained.decision.p)
    assert after == pytest.approx(np.average(moved, weights=weights), abs=0.0051)
    # Its sign is that of its weight.
    assert (after < before) == (not gun["value"].startswith("−"))
    like = [(one["film"], one["start"]) for one in answer["like"]]
    ranked = [hit for hit in of.search_like(store, clip.clip_id, top=40) if not 152 < hit.start_s < 168]
    assert like[0] == (0, ranked[0].start_s)
    assert len(like) == 4


def test_scripts_are_served_and_pages_are_small(serve, copied):
    served = serve(*copied)
    page, text = served.ask("GET", "/film/0/read", accept_encoding="gzip", accept_language="fr-FR,fr;q=0.9")
    assert page.getheader("content-encoding") == "gzip"
    assert b'lang="fr"' in gzip.decompress(text)
    assert len(text) < 100_000
    for name in modules.DESK:
        script, text = served.ask("GET", f"/desk/{name}.js")
        assert (script.status, script.getheader("content-type")[:15]) == (200, "text/javascript")
    for name in ("timeline.js", "../html.py", "x.js"):
        assert served.ask("GET", f"/desk/{name}.js")[0].status == 404


def test_only_own_blind_judgements_of_the_draw_count_as_done(serve, copied):
    served = serve(*copied)
    window = json.loads(served.ask("GET", "/film/0/next?who=AB&n=10")[1])["window"]
    assert window["place"] == 1
    span = {"kind": "judgement", "start_s": window["start"], "end_s": window["end"], "level": "calm"}
    served.decide(**span)  # in sight of the score
    served.decide(**span | {"place": 1, "who": "CD"})
    next_of = {who: json.loads(served.ask("GET", f"/film/0/next?who={who}&n=10")[1]) for who in ("AB", "CD")}
    assert {who: found["done"] for who, found in next_of.items()} == {"AB": 0, "CD": 1}
    assert next_of["AB"]["window"] == window
    assert next_of["CD"]["window"]["place"] == 2
    assert "window" not in json.loads(served.ask("GET", "/film/0/next?who=CD&n=1")[1])
    for n in ("words", "-1", "1000000"):  # no number of windows
        assert "window" not in json.loads(served.ask("GET", f"/film/0/next?who=EF&n={n}")[1])


def test_what_is_decided_is_sent_as_tables_and_to_elan_without_what_is_hidden(serve, copied):
    served = serve(copied[0] / "tt1", copied[1])
    window = served.next(who="CD", n=10)["window"]
    ends = {"start_s": window["start"], "end_s": window["end"], "place": window["place"]}
    served.decide(kind="judgement", who="CD", level="calm", windows=10, **ends)
    span = {"start_s": 5.0, "end_s": 20.0, "level": "violent", "note": "=here"}
    served.decide(kind="passage", concepts=["Gun"], **span)

    def sent(name, who):
        answer, data = served.ask("GET", f"/film/0/export/{name}?who={who}")
        assert answer.status == 200
        return data.decode()

    assert "Gun" in sent("passage", "AB")
    assert len(sent("passage", "AB").splitlines()) == 2
    assert "CD" not in sent("judgement", "AB")  # AB judges first
    assert "CD" in sent("judgement", "CD")
    tiers = re.findall(r'TIER_ID="human: (\w+)[^"]*@AB".*?</TIER>', sent("eaf", "AB"), re.DOTALL)
    assert tiers == ["level", "concepts", "note"]
    assert "@CD" not in sent("eaf", "AB")
    assert "human: level, blind@CD" in sent("eaf", "CD")
    assert served.ask("GET", "/film/0/export/zip")[0].status == 404
    assert served.ask("POST", "/film/0/learn")[0].status == 404  # no corpus was given


@pytest.mark.long  # trains
def test_the_desk_learns_and_opens_the_film_anew_with_its_decisions(serve, films, trained, tmp_path):
    shutil.copytree(films / "scored", tmp_path / "scored", ignore=shutil.ignore_patterns("*.staging"))
    write_manifest(trained.manifest, tmp_path / "films.csv")
    corpus = "--learn", str(tmp_path / "films.csv"), str(trained.store.where)
    served = serve(tmp_path / "scored", films / "violence.codebook.toml", *corpus)

    def learn():
        served.ask("POST", "/film/0/learn")
        while (state := json.loads(served.ask("GET", "/film/0/learn")[1])) and not state["done"]:
            if state["error"]:
                return state
        return state

    assert "judgement" in learn()["error"]  # there is none
    served.decide(kind="judgement", start_s=40.0, end_s=72.0, level="violent", concepts=["Gun"])
    assert served.decide(kind="passage", start_s=200.0, end_s=216.0, level="calm")[0] == 200
    state = learn()
    assert (state["film"], state["error"]) == (2, "")
    assert "no change can be told" in state["said"][0]
    assert (tmp_path / "learnt-1" / "manifest.csv").is_file()
    assert b'id="d-moved"' in served.ask("GET", "/film/2/read")[1]
    shown = json.loads(served.ask("GET", "/film/2/decisions?who=AB")[1])["you"]
    assert [one["level"] for one in shown] == ["violent", "calm"]
    assert served.decide(2, kind="delete", id=shown[0]["id"])[0] == 200
    assert len(json.loads(served.ask("GET", "/film/0/decisions?who=AB")[1])["you"]) == 1


def test_ten_windows_give_a_share_and_blind_pages_show_no_score(serve, copied):
    served = serve(*copied)
    page, body = served.ask("GET", "/film/0/blind")
    text = body.decode()
    assert (page.status, 'lang="' in text) == (200, True)
    assert "data-a" not in text
    assert json.loads(text.partition('id="state">')[2].partition("</script>")[0])["passages"] == []
    served.decide(kind="judgement", start_s=0, end_s=8, level="calm")  # in sight of the score
    assert json.loads(served.ask("GET", "/film/0/decisions?who=AB&mode=blind")[1])["you"] == []
    for number in range(10):
        answer = served.ask("GET", "/film/0/next?who=AB&n=10")[1]
        found = json.loads(answer)
        assert "share" not in found
        window = found["window"]
        assert (found["done"], window["place"]) == (number, number + 1)
        level = "violent" if number < 3 else "calm"
        served.decide(
            kind="judgement", start_s=window["start"], end_s=window["end"], level=level, place=number + 1
        )
    found = json.loads(served.ask("GET", "/film/0/next?who=AB&n=10")[1])
    assert "window" not in found
    assert "from 10 windows" in found["share"]
    assert "whenever you stop" in found["sofar"]


def test_the_browser_is_opened_by_a_file_of_its_owner_and_may_hang(monkeypatch):
    opened, said = queue.Queue(), []

    def found(address):
        path = Path(url2pathname(urlsplit(address).path))
        opened.put((path, path.read_text("utf-8"), path.stat().st_mode & 0o777, threading.current_thread()))

    monkeypatch.setattr("webbrowser.open", found)
    monkeypatch.setattr(uvicorn.Server, "run", lambda *_, **__: opened.put(opened.get(timeout=600)))
    address.serve([], str, port=0, browser=True, tell=said.append)
    path, text, mode, thread = opened.get(timeout=600)
    assert (f"url={said[0]}" in text, thread.daemon, path.exists()) == (True, True, False)
    assert said[0].rpartition("/")[2] not in str(path)
    assert mode == 0o600 or sys.platform == "win32"


def test_two_workspaces_of_one_folder_lose_nothing_of_each_other(serve, copied):
    one, other = serve(*copied), serve(*copied)
    for number in range(3):
        for served, who in ((one, "AB"), (other, "CD")):
            assert served.decide(**JUDGED | {"start_s": number, "end_s": 10, "who": who})[0] == 200
    assert other.decide(kind="undo", who="AB")[1]["said"].startswith("nothing")
    assert one.decide(kind="undo", who="AB")[1]["said"].startswith("undo: 0:00:02")
    counts = [len(served.decide(kind="undo", who="")[1]["you"]) for served in (one, other)]
    assert counts == [5, 5]
    rows = (copied[0] / "tt1" / JUDGEMENTS).read_text("utf-8").splitlines()
    assert len(rows) == 6


def test_two_people_in_one_workspace_take_back_their_own(serve, copied):
    served = serve(*copied)
    served.decide(**JUDGED)
    served.decide(**JUDGED | {"who": "CD"})
    _, answer = served.decide(kind="undo", who="AB")
    assert [one["who"] for one in answer["you"]] == ["CD"]


def test_what_was_edited_meanwhile_is_said_where_one_decides(serve, copied):
    served, path = serve(*copied), copied[0] / "tt1" / JUDGEMENTS
    served.decide(**JUDGED)
    path.write_text(path.read_text("utf-8").replace(",calm,", ",violent,"), "utf-8")
    said = [served.decide(**JUDGED | {"who": who})[1]["said"] for who in ("CD", "EF")]
    assert (said[0].startswith("kept; "), str(path) in said[0], said[1]) == (True, True, "kept")


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals")
def test_it_ends_on_a_signal_with_a_line(process, copied):
    started, address = process(*copied)
    connection = http.client.HTTPConnection(urlsplit(address).netloc)
    connection.request("GET", urlsplit(address).path)
    assert connection.getresponse().status < 500  # once it answers it has its handlers of signals
    connection.close()
    started.send_signal(signal.SIGTERM)
    assert started.wait(60) == 143
    assert started.stdout.read().strip() == "obygaze: stopped"


def test_an_address_with_a_number_of_thousands_of_digits_is_no_film(serve, copied):
    served = serve(*copied)
    assert served.ask("GET", f"/film/{'9' * 4400}/read")[0].status == 404
    assert served.ask("GET", "/film/-1/read")[0].status == 404


@pytest.mark.parametrize("times", ["a=nan&b=3", "a=0&b=inf", "a=5&b=2", "a=-1&b=2", "b=2", "a=1&a=x&b=2"])
@pytest.mark.parametrize("kind", ["svg", "pdf"])
def test_a_figure_of_no_span_is_refused(serve, copied, kind, times):
    served = serve(*copied)
    assert served.ask("GET", f"/film/0/figure.{kind}?{times}")[0].status == 400


def test_a_film_without_a_copy_is_not_encoded(serve, copied):
    served = serve(*copied)
    for time in ("0", "nan", "-1", "1e999", "x", ""):
        assert served.ask("GET", f"/film/0/stream?t={time}")[0].status == 404


def test_the_desk_begins_without_what_trains_models():
    """Its address waits for what it imports, and scikit-learn takes longer than a film of twelve hours."""
    code = "import sys, obygaze_film.workspace.server; print({'sklearn', 'scipy.stats'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"


def test_undo_and_redo_say_what_became_of_the_decision(serve, copied):
    served = serve(*copied)
    name = served.decide(**JUDGED | {"who": "AB"})[1]["id"]
    served.decide(kind="delete", id=name, who="AB")
    said = [served.decide(kind=kind, who="AB")[1]["said"] for kind in ("undo", "undo", "redo", "redo")]
    assert [text.partition(":")[0] for text in said] == ["undo", "undo", "redo", "redo"]
    assert [text.endswith("stands again") for text in said] == [True, False, True, False]
    assert [text.endswith("no longer stands") for text in said] == [False, True, False, True]
