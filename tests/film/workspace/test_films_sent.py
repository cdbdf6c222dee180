"""The user's films as the workspace sends them: themselves, or copies that browsers play."""

import json
import os
import shutil
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from obygaze_film import read_films
from obygaze_film.commands import film_open
from obygaze_film.errors import FilmError
from obygaze_film.workspace import open_film, proxy, server
from obygaze_film.workspace.open_film import OpenFilm
from tests.film.page.invented import invented_film


@pytest.mark.long  # transcodes a film
def test_a_copy_that_browsers_do_not_play_is_made_and_sent_in_parts(serve, copied, shared_data, monkeypatch):
    film = shared_data / "videos" / "flipping_a_pancake.mkv"
    monkeypatch.setattr(proxy, "cache_folder", lambda: copied[0] / "cache")
    served = serve(copied[0] / "tt1", copied[1], "--film", str(film))
    assert "make a copy" in served.said
    assert served.ask("GET", "/film/0/video")[0].status == 404
    assert json.loads(served.ask("POST", "/film/0/copy")[1])["share"] is not None
    while not (state := json.loads(served.ask("GET", "/film/0/copy")[1]))["done"]:
        assert state["error"] == ""
        assert 0 <= state["share"] <= 1
    part, data = served.ask("GET", "/film/0/video", range="bytes=0-99")
    assert (part.status, len(data)) == (206, 100)


def test_how_far_a_copy_is_is_a_share_of_the_film(monkeypatch, tmp_path):
    def quarter(*asked):
        asked[-1](50.0)

    class Now(threading.Thread):
        def start(self):
            self.run()

    monkeypatch.setattr(server, "make_proxy", quarter)
    monkeypatch.setattr(open_film, "Thread", Now)
    job, timeline = open_film.Job(), SimpleNamespace(record=SimpleNamespace(duration_s=200.0))
    film = SimpleNamespace(
        path=tmp_path, lost="", played=None, copying=job, for_browser=tmp_path, timeline=timeline
    )
    server._begin_copy(film)
    assert job.share == 0.25


def test_a_film_that_browsers_play_is_sent_itself(serve, copied, shared_data):
    film = shared_data / "videos" / "arm_wrestling.mp4"
    served = serve(copied[0] / "tt1", copied[1], "--film", str(film))
    assert "make a copy" not in served.said
    part, data = served.ask("GET", "/film/0/video", range="bytes=0-99")
    assert (part.status, data) == (206, film.read_bytes()[:100])


def test_of_several_films_each_file_is_that_of_its_name(serve, copied, shared_data):
    film = copied[0] / "tt2.mp4"
    film.write_bytes((shared_data / "videos" / "arm_wrestling.mp4").read_bytes())
    served = serve(*copied, "--film", str(film))
    status = [served.ask("GET", f"/film/{n}/video", range="bytes=0-9")[0].status for n in (0, 1)]
    assert status == [404, 206]
    other = Path(shutil.copy(film, copied[0] / "another.mp4"))  # Windows renames no file that is being sent
    with pytest.raises(FilmError, match="another"):
        film_open.match_files([other], read_films([copied[0]]))


def test_a_film_that_is_replaced_or_removed_while_it_is_open_is_said(serve, copied, shared_data):
    film = copied[0] / "film.mp4"
    film.write_bytes((shared_data / "videos" / "arm_wrestling.mp4").read_bytes())
    served = serve(copied[0] / "tt1", copied[1], "--film", str(film))
    assert served.ask("GET", "/film/0/video", range="bytes=0-9")[0].status == 206
    for become in ("replaced", "removed"):
        film.write_bytes(b"not a film") if become == "replaced" else film.unlink()
        answer, text = served.ask("GET", "/film/0/video", range="bytes=0-9")
        assert (answer.status, become in text.decode()) == (404, True)
        page, text = served.ask("GET", "/film/0/read")
        assert (page.status, become in text.decode(), b"<video" in text) == (200, True, False)
        assert served.decide(kind="judgement", start_s=0, end_s=8, level="calm", who="AB")[0] == 200


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other rights")
def test_copies_of_films_are_their_owners_and_are_not_kept_for_ever(tmp_path, shared_data):
    folder = tmp_path / "films"
    folder.mkdir(mode=0o755)
    old, new = folder / "a.mp4", folder / "b.mp4"
    for path, days in ((old, 91), (new, 89)):
        path.write_bytes(b"copy")
        os.utime(path, (time.time() - days * 86_400,) * 2)
    proxy.make_proxy(shared_data / "videos" / "arm_wrestling.mp4", folder / "c.mp4", lambda _: None)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert sorted(path.name for path in folder.iterdir()) == ["b.mp4", "c.mp4"]


def test_a_film_that_browsers_play_gets_no_copy(shared_data, monkeypatch):
    begun = []
    monkeypatch.setattr(server, "make_proxy", lambda *_: begun.append(1))
    timeline = invented_film(n_rows=60, duration_s=600.0)
    for film in (None, shared_data / "videos" / "nasa_13013.mp4"):
        opened = OpenFilm(0, timeline, None, film)
        assert (film is None) == (opened.played is None)
        server._begin_copy(opened)
        assert opened.copying.share is None
    assert not begun
