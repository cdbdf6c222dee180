"""The user's films as the workspace sends them: themselves, or copies that browsers play."""

import json
import os
import shutil
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from obygaze_film import read_films
from obygaze_film.errors import FilmError
from obygaze_film.film_videos import videos_of_films
from obygaze_film.workspace import open_film, proxy, server
from obygaze_film.workspace.open_film import OpenFilm
from tests.film.page.invented import ten_minute_film


def wait_for_copy(served):
    """Ask how far the copy of the first film is until it is done; its share is from 0 to 1."""
    while True:
        state = json.loads(served.ask("GET", "/film/0/copy")[1])
        assert state["error"] == ""
        if state["done"]:
            return
        assert 0 <= state["share"] <= 1


@pytest.mark.long  # transcodes a film
def test_a_film_that_browsers_cannot_play_is_sent_as_a_copy(serve, copied, shared_data, monkeypatch):
    """Browsers do not play Matroska: until a copy is made there is no video (404).

    Afterwards the copy is sent in the parts that a browser asks for, here the first 100 bytes (206).
    """
    film = shared_data / "videos" / "flipping_a_pancake.mkv"
    monkeypatch.setattr(proxy, "cache_folder", lambda: copied[0] / "cache")
    served = serve(copied[0] / "tt1", copied[1], "--film", str(film))
    assert "make a copy" in served.said
    assert served.ask("GET", "/film/0/video")[0].status == 404
    assert json.loads(served.ask("POST", "/film/0/copy")[1])["share"] is not None

    wait_for_copy(served)
    part, data = served.ask("GET", "/film/0/video", range="bytes=0-99")
    assert (part.status, len(data)) == (206, 100)


class ThreadThatRunsAtOnce(threading.Thread):
    """A thread that has ended when `start` returns."""

    def start(self):
        self.run()


def test_progress_of_a_copy_is_a_share_of_the_film(monkeypatch, tmp_path):
    """Of a film of 200 s, 50 s are copied: the share that is shown is a quarter."""

    def copy_50_seconds(_film, _copy, tell_seconds):
        tell_seconds(50.0)

    monkeypatch.setattr(server, "make_proxy", copy_50_seconds)
    monkeypatch.setattr(open_film, "Thread", ThreadThatRunsAtOnce)
    film = SimpleNamespace(
        path=tmp_path,
        lost="",
        played=None,
        copying=open_film.Job(),
        for_browser=tmp_path,
        timeline=SimpleNamespace(record=SimpleNamespace(duration_s=200.0)),
    )
    server._begin_copy(film)
    assert film.copying.share == 50.0 / 200.0


@pytest.mark.long
def test_a_file_that_browsers_play_is_sent_itself_for_the_film_of_its_name(serve, copied, shared_data):
    """The file tt2.mp4 is the video of film 1, which is tt2. Film 0, tt1, has no video.

    Browsers play MP4: the desk sends the file's own bytes and offers no copy.
    """
    file = copied[0] / "tt2.mp4"
    shutil.copyfile(shared_data / "videos" / "arm_wrestling.mp4", file)
    served = serve(*copied, "--film", str(file))
    assert "make a copy" not in served.said
    assert served.ask("GET", "/film/0/video", range="bytes=0-99")[0].status == 404  # tt1
    part, data = served.ask("GET", "/film/1/video", range="bytes=0-99")
    assert (part.status, data) == (206, file.read_bytes()[:100])


def test_a_file_named_like_none_of_the_films_is_refused(copied, shared_data):
    """With two films open, a file name is the only way to know whose video it is."""
    file = copied[0] / "another.mp4"
    shutil.copyfile(shared_data / "videos" / "arm_wrestling.mp4", file)
    with pytest.raises(FilmError, match="another"):
        videos_of_films([file], read_films([copied[0]]))


@pytest.mark.long
@pytest.mark.parametrize("change", ["replaced", "removed"])
def test_judging_goes_on_when_the_video_is_replaced_or_removed(serve, copied, shared_data, change):
    """The desk says what became of the file and shows no video, but decisions are still kept."""
    file = copied[0] / "film.mp4"
    shutil.copyfile(shared_data / "videos" / "arm_wrestling.mp4", file)
    served = serve(copied[0] / "tt1", copied[1], "--film", str(file))
    assert served.ask("GET", "/film/0/video", range="bytes=0-9")[0].status == 206

    if change == "replaced":
        file.write_bytes(b"not a film")
    else:
        file.unlink()

    answer, text = served.ask("GET", "/film/0/video", range="bytes=0-9")
    assert answer.status == 404
    assert change in text.decode()
    page, text = served.ask("GET", "/film/0/read")
    assert page.status == 200
    assert change in text.decode()
    assert b"<video" not in text
    status, _ = served.decide(kind="judgement", start_s=0, end_s=8, level="calm", who="AB")
    assert status == 200


def test_copies_of_films_are_private_and_removed_after_90_days(tmp_path, shared_data):
    """Making a new copy removes the one of 91 days, and leaves that of 89.

    Films may be private: the folder of copies, which others could read, is closed to them.
    """
    folder = tmp_path / "films"
    folder.mkdir(mode=0o755)
    for name, days in (("91-days.mp4", 91), ("89-days.mp4", 89)):
        path = folder / name
        path.write_bytes(b"copy")
        written_at = time.time() - days * 86_400
        os.utime(path, (written_at, written_at))

    proxy.make_proxy(shared_data / "videos" / "arm_wrestling.mp4", folder / "new.mp4", lambda _: None)
    assert sorted(path.name for path in folder.iterdir()) == ["89-days.mp4", "new.mp4"]
    assert folder.stat().st_mode & 0o777 == 0o700 or sys.platform == "win32"


@pytest.mark.parametrize("has_file", [True, False], ids=["browsers play it", "it has no file"])
def test_a_film_gets_no_copy_if_browsers_play_it_or_it_has_no_file(shared_data, monkeypatch, has_file):
    monkeypatch.setattr(server, "make_proxy", lambda *_: pytest.fail("a copy is made"))
    path = shared_data / "videos" / "nasa_13013.mp4" if has_file else None
    opened = OpenFilm(0, ten_minute_film(), None, path)
    assert (opened.played is not None) == has_file
    server._begin_copy(opened)
    assert opened.copying.share is None
