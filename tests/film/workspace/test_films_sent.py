"""The user's films as the workspace sends them: themselves, or copies that browsers play."""

import json
import os
import shutil
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from obygaze_features.manifest import builtin_codebook
from obygaze_film import film_videos, read_films
from obygaze_film.commands import film_open
from obygaze_film.commands.film_open import make_missing_media, print_notices
from obygaze_film.errors import FilmError
from obygaze_film.film_videos import videos_of_films
from obygaze_film.workspace import media, open_film, proxy, server
from obygaze_film.workspace.decisions import Decisions
from obygaze_film.workspace.open_film import OpenFilm
from tests.film.page.invented import ten_minute_film

BOOK = builtin_codebook("obygaze12")


def wait_for_copy(served):
    """Ask how far the copy of the first film is until it is done; its share is from 0 to 1."""
    while True:
        state = json.loads(served.ask("GET", "/film/0/copy")[1])
        assert state["error"] == ""
        if state["done"]:
            return
        assert 0 <= state["share"] <= 1


@pytest.mark.long  # transcodes a film
def test_a_film_that_browsers_cannot_play_is_sent_as_a_copy(
    serve, scored_films_and_codebook, shared_data, monkeypatch
):
    """Browsers do not play Matroska: until a copy is made there is no video (404).

    Afterwards the copy is sent in the parts that a browser asks for, here the first 100 bytes (206).
    """
    scored_films, codebook_file = scored_films_and_codebook
    film = shared_data / "videos" / "flipping_a_pancake.mkv"
    monkeypatch.setattr(proxy, "cache_folder", lambda: scored_films / "cache")

    served = serve(scored_films / "tt1", codebook_file, "--film", str(film))
    assert "make a copy" in served.said
    no_video, _body = served.ask("GET", "/film/0/video")
    assert no_video.status == 404

    _, text = served.ask("POST", "/film/0/copy")
    assert json.loads(text)["share"] is not None  # the copy is begun
    wait_for_copy(served)
    part, data = served.ask("GET", "/film/0/video", range="bytes=0-99")
    assert part.status == 206
    assert len(data) == 100


class ThreadThatRunsAtOnce(threading.Thread):
    """A thread that has ended when `start` returns."""

    def start(self):
        self.run()


def let_copies_stop_at_50_seconds(monkeypatch):
    """Let the program that copies films tell that it has copied 50 s, and no more, without a thread."""

    def copy_50_seconds(_film, _copy, tell_seconds):
        tell_seconds(50.0)

    monkeypatch.setattr(server, "make_proxy", copy_50_seconds)
    monkeypatch.setattr(open_film, "Thread", ThreadThatRunsAtOnce)


def film_to_copy(path, duration_s):
    """Make as much of an open film as its copy needs: no copy of it is there."""
    return SimpleNamespace(
        path=path,
        lost="",
        played=None,
        copying=open_film.Job(),
        for_browser=path,
        timeline=SimpleNamespace(record=SimpleNamespace(duration_s=duration_s)),
    )


def test_progress_of_a_copy_is_a_share_of_the_film(monkeypatch, tmp_path):
    """While a film of 200 s is copied for the browser, 50 s are done: the share that is shown is a quarter.

    In place of FFmpeg a stand-in tells that it has copied 50 s, and the copy is made without a thread.
    """
    let_copies_stop_at_50_seconds(monkeypatch)
    film = film_to_copy(tmp_path, duration_s=200.0)

    server._begin_copy(film)

    assert film.copying.share == 50.0 / 200.0


@pytest.mark.long
def test_a_file_that_browsers_play_is_sent_itself_for_the_film_of_its_name(
    serve, scored_films_and_codebook, shared_data
):
    """The file tt2.mp4 is the video of film 1, which is tt2. Film 0, tt1, has no video.

    Browsers play MP4: the desk sends the file's own bytes and offers no copy.
    """
    scored_films, codebook_file = scored_films_and_codebook
    file = scored_films / "tt2.mp4"
    shutil.copyfile(shared_data / "videos" / "arm_wrestling.mp4", file)

    served = serve(scored_films, codebook_file, "--film", str(file))

    assert "make a copy" not in served.said
    video_of_tt1, _body = served.ask("GET", "/film/0/video", range="bytes=0-99")
    assert video_of_tt1.status == 404
    video_of_tt2, data = served.ask("GET", "/film/1/video", range="bytes=0-99")
    assert video_of_tt2.status == 206  # a part of a file
    assert data == file.read_bytes()[:100]


def test_a_file_named_like_none_of_the_films_is_refused(scored_films_and_codebook, shared_data):
    """With the films tt1 and tt2 open, a file's name is the only way to know whose video it is."""
    scored_films, _ = scored_films_and_codebook
    file = scored_films / "another.mp4"
    shutil.copyfile(shared_data / "videos" / "arm_wrestling.mp4", file)
    films = read_films([scored_films])
    with pytest.raises(FilmError, match="another"):
        videos_of_films([file], films)


@pytest.mark.long
@pytest.mark.parametrize("change", ["replaced", "removed"])
def test_judging_goes_on_when_the_video_is_replaced_or_removed(
    serve, scored_films_and_codebook, shared_data, change
):
    """The desk says what became of the file and shows no video, but decisions are still kept."""
    scored_films, codebook_file = scored_films_and_codebook
    file = scored_films / "film.mp4"
    shutil.copyfile(shared_data / "videos" / "arm_wrestling.mp4", file)
    served = serve(scored_films / "tt1", codebook_file, "--film", str(file))
    video, _body = served.ask("GET", "/film/0/video", range="bytes=0-9")
    assert video.status == 206  # a part of the file is sent

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


@pytest.mark.parametrize(
    ("name", "is_played"), [("flipping_a_pancake.mkv", False), ("arm_wrestling.mp4", True)]
)
def test_people_are_told_that_browsers_do_not_play_their_film_until_its_copy_is_there(
    shared_data, tmp_path, monkeypatch, capsys, name, is_played
):
    """Browsers play MP4, and of Matroska a copy only. Who has no file of the film needs no copy either."""
    monkeypatch.setattr(proxy, "cache_folder", lambda: tmp_path)
    timeline = ten_minute_film()
    film = OpenFilm(0, timeline, Decisions(tmp_path, timeline, BOOK), path=shared_data / "videos" / name)
    film.note_on_other_length = ""  # that the file is shorter than the scored film is another note
    without_file = OpenFilm(1, timeline, Decisions(tmp_path, timeline, BOOK), path=None)

    print_notices(film)
    print_notices(without_file)
    assert ("browsers don't play this" in capsys.readouterr().err) != is_played

    film.for_browser.parent.mkdir(exist_ok=True)
    film.for_browser.touch()  # as when the copy is made
    print_notices(film)
    assert capsys.readouterr().err == ""


def test_stills_that_were_made_are_not_made_again(shared_data, tmp_path, monkeypatch):
    """Of the stills, colours and sound of a film, media.json is written last: with it all are there."""
    monkeypatch.setattr(media, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(film_open, "Thread", ThreadThatRunsAtOnce)
    made = []
    monkeypatch.setattr(film_videos, "make_media_of_films", lambda missing, _note: made.extend(missing))
    path = shared_data / "videos" / "arm_wrestling.mp4"
    film = OpenFilm(0, ten_minute_film(), decisions=None, path=path)
    without_file = OpenFilm(1, ten_minute_film(), decisions=None, path=None)

    make_missing_media([film, without_file])
    assert made == [path]

    film.media["media.json"].parent.mkdir(parents=True, exist_ok=True)
    film.media["media.json"].write_text("{}")
    make_missing_media([film, without_file])
    assert made == [path]  # and no second time


def test_copies_of_films_are_private_and_removed_after_90_days(tmp_path, shared_data):
    """Making a new copy removes the one of 91 days, and leaves that of 89.

    Films may be private: the folder of copies, which others could read, is closed to them.
    """
    folder = tmp_path / "films"
    folder.mkdir(mode=0o755)
    for name, age_in_days in (("91-days.mp4", 91), ("89-days.mp4", 89)):
        path = folder / name
        path.write_bytes(b"copy")
        written_at = time.time() - age_in_days * 24 * 60 * 60
        os.utime(path, (written_at, written_at))

    film = shared_data / "videos" / "arm_wrestling.mp4"
    proxy.make_proxy(film, folder / "new.mp4", lambda _seconds: None)

    assert sorted(path.name for path in folder.iterdir()) == ["89-days.mp4", "new.mp4"]
    only_its_owner = 0o700
    assert folder.stat().st_mode & 0o777 == only_its_owner or sys.platform == "win32"


@pytest.fixture
def making_a_copy_fails(monkeypatch):
    """Let the test fail as soon as a copy is made."""
    monkeypatch.setattr(server, "make_proxy", lambda *_: pytest.fail("a copy is made"))


@pytest.mark.usefixtures("making_a_copy_fails")
def test_a_film_that_browsers_play_gets_no_copy(shared_data):
    """The desk sends an MP4 itself. A copy is asked for all the same; the fixture fails if one is made."""
    film = OpenFilm(0, ten_minute_film(), decisions=None, path=shared_data / "videos" / "arm_wrestling.mp4")
    assert film.played is not None  # the file that is sent

    server._begin_copy(film)

    assert film.copying.share is None  # nothing is copied


@pytest.mark.usefixtures("making_a_copy_fails")
def test_a_film_without_a_file_gets_no_copy():
    """A film may be judged without its video. A copy is asked for; the fixture fails if one is made."""
    film = OpenFilm(0, ten_minute_film(), decisions=None, path=None)
    assert film.played is None

    server._begin_copy(film)

    assert film.copying.share is None  # nothing is copied
