"""The workspace's server: who may enter, what is written, a second one, stops."""

import json
import shutil
import signal
import subprocess
import sys

import pytest

from obygaze_film.workspace.decisions import JUDGEMENTS


@pytest.fixture
def copied(films, tmp_path):
    shutil.copytree(
        films / "scored", tmp_path / "scored", ignore=shutil.ignore_patterns("*-1.0.0", "*.staging")
    )
    return tmp_path / "scored", films / "violence.codebook.toml"


def test_only_the_owner_enters_and_only_from_its_pages(serve, copied):
    video = copied[0] / "tt1.mp4"
    video.write_bytes(b"not named on the command line")
    served = serve(*copied)
    asked = {"kind": "judge", "start_s": 0, "end_s": 8, "level": "calm", "who": "AB"}
    decide = "/film/0/decide"
    refused = {
        "no token": ("GET", "/films", None, {"cookie": "none=1"}),
        "wrong token": ("GET", "/enter/" + "x" * 32, None, {"cookie": "none=1"}),
        "another site's name": ("GET", "/films", None, {"host": f"evil.example:{served.host[-5:]}"}),
        "another site's page": ("POST", decide, asked, {"origin": "https://evil.example"}),
        "no origin": ("POST", decide, asked, {"origin": ""}),
        "a page of another port": ("POST", decide, asked, {"origin": "http://127.0.0.1:1"}),
        "a film that is not named": ("GET", "/film/2/read", None, {}),
        "a film that was not given": ("GET", "/film/0/video", None, {}),
        "a path": ("GET", "/film/../../scored/tt1.mp4", None, {}),
        "a coded path": ("GET", "/film/..%2f..%2ftt1.mp4/video", None, {}),
        "a GET that writes": ("GET", decide, asked, {}),
    }
    statuses = {name: served.ask(*words[:3], **words[3])[0].status for name, words in refused.items()}
    assert set(statuses.values()) <= {403, 404, 405}, statuses
    assert not (copied[0] / "tt1" / JUDGEMENTS).exists()
    page, _ = served.ask("GET", "/film/0/read")
    assert page.status == 200
    assert page.getheader("content-security-policy") == "frame-ancestors 'none'"
    assert page.getheader("cache-control") == "no-store"
    assert served.decide(**asked)[0] == 200
    assert (copied[0] / "tt1" / JUDGEMENTS).is_file()


def test_a_wrong_decision_is_refused_with_a_reason_and_writes_nothing(serve, copied):
    served = serve(*copied)
    good = {"kind": "judge", "start_s": 0, "end_s": 8, "level": "calm"}
    for wrong in (
        {"kind": "x"},
        {"start_s": "a"},
        {"level": "S"},
        {"who": ""},
        {"place": "x"},
        {"concepts": 1},
    ):
        status, answer = served.decide(**{**good, **wrong})
        assert (status, bool(answer["said"])) == (400, True), wrong
    assert served.ask("POST", "/film/0/decide", "x" * 100_000)[0].status == 400
    assert not (copied[0] / "tt1" / JUDGEMENTS).exists()


def test_ten_windows_give_a_share_and_blind_pages_show_no_score(serve, copied):
    served = serve(*copied)
    text = served.ask("GET", "/film/0/blind")[1].decode()
    assert "data-a" not in text
    assert 'class="data"' not in text
    for number in range(10):
        answer = served.ask("GET", "/film/0/next?who=AB&n=10")[1]
        found = json.loads(answer)
        assert "share" not in found
        window = found["window"]
        assert (found["done"], window["place"]) == (number, number + 1)
        level = "violent" if number < 3 else "calm"
        served.decide(
            kind="judge", start_s=window["start"], end_s=window["end"], level=level, place=number + 1
        )
    found = json.loads(served.ask("GET", "/film/0/next?who=AB&n=10")[1])
    assert "window" not in found
    assert "from 10 windows" in found["share"]
    assert "whenever you stop" in found["sofar"]


def test_a_second_workspace_is_refused_by_name(serve, copied):
    serve(*copied)
    words = [sys.executable, "-m", "obygaze", "film", "open", str(copied[0] / "tt2"), "--no-browser"]
    done = subprocess.run(
        [*words, "--codebook", str(copied[1])], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    assert "tt2" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals")
def test_it_ends_on_a_signal_with_a_line(serve, copied):
    served = serve(*copied)
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(60) == 143
    assert served.process.stdout.read().strip() == "obygaze: stopped"
