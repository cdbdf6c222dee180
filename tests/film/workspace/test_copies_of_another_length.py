"""A copy that can't be the film that was scored is named so, at the desk and before its page is written."""

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from obygaze_film.film_videos import ScoredLength, scored_length, why_other_film
from obygaze_film.workspace.open_film import OpenFilm
from tests.command import obygaze
from tests.video.encoding import encode

FILM_S = 120
WINDOW_S = 8


@pytest.fixture(scope="module")
def film_of(tmp_path_factory):
    """Encode a film of some seconds, two pictures a second, which browsers play; return its path."""
    folder = tmp_path_factory.mktemp("copies")

    def encoded(seconds):
        pictures = (np.full((48, 64, 3), number % 200, np.uint8) for number in range(round(2 * seconds)))
        return encode(folder / f"{seconds}.mp4", pictures, rate=2)

    return encoded


@pytest.mark.parametrize(
    ("seconds", "why"),
    [
        (120, ""),
        (126, ""),  # behind the last window there may be less than another window
        (135, "another cut"),
        (90, "another cut"),
        (115, "another speed"),  # 120 s at 25 instead of 24 pictures a second are 115.2 s
    ],
)
def test_a_copy_of_another_length_is_another_speed_or_another_cut(scored_once, film_of, seconds, why):
    """The film that was scored has two minutes, as far as its windows tell."""
    _, timeline = scored_once

    note = why_other_film(film_of(seconds), timeline, [])

    assert bool(note) == bool(why)
    assert why in note


class StoreOfVideos(NamedTuple):
    """Stand in for a store of windows: its fingerprint, and the lengths of its windows' videos."""

    fingerprint: str
    lengths_s: tuple[float, ...]

    def each_clip(self):
        """List the windows."""
        return [SimpleNamespace(movie="tt1", source={"duration_s": length_s}) for length_s in self.lengths_s]


def test_the_store_of_the_windows_tells_how_long_the_film_is(scored_once):
    """A leader of 6 s is as long as what may follow the last window, but not as the video that was read.

    Windows of several videos tell nothing: then the end of the last one counts, and a window more.
    """
    _, timeline = scored_once
    fingerprint = timeline.record.store.fingerprint
    end_of_windows = ScoredLength(FILM_S, unknown_s=WINDOW_S)

    assert scored_length(timeline, []) == end_of_windows
    assert scored_length(timeline, [StoreOfVideos(fingerprint, (121.5, 121.5))]) == ScoredLength(
        121.5, unknown_s=0
    )
    assert scored_length(timeline, [StoreOfVideos(fingerprint, (60.0, 61.5))]) == end_of_windows
    assert scored_length(timeline, [StoreOfVideos(fingerprint, (8.0, 8.0))]) == end_of_windows
    assert scored_length(timeline, [StoreOfVideos("another", (121.5, 121.5))]) == end_of_windows


@pytest.mark.parametrize("mode", ["read", "blind"])
def test_the_desk_of_another_film_says_so_on_its_page_and_in_the_terminal(
    serve, scored_tt1, film_of, tmp_path, mode
):
    """The only film and the only file are taken for each other, whatever their names.

    Who judges it would judge scenes of another film at the times of this one.
    """
    served = serve(scored_tt1.folder, tmp_path / "violence.codebook.toml", "--film", str(film_of(90)))

    assert "90.mp4 is 0:01:30 long, and the film that was scored 0:02:00: another cut" in served.said
    _, page = served.ask("GET", f"/film/0/{mode}")
    assert "the film that was scored 0:02:00: another cut" in page.decode()
    _, french = served.ask("GET", f"/film/0/{mode}", accept_language="fr")
    assert "une autre version" in french.decode()


def test_a_copy_as_long_as_the_film_is_opened_without_a_note(decisions, film_of):
    """`note_on_other_length` says at the desk that the user's copy must be another film than the scored one.

    The copy has 120 s, as the film that was scored: it may well be that film, and nothing is noted.
    """
    copy = film_of(seconds=120)

    opened = OpenFilm(number=0, timeline=decisions.film, decisions=decisions, path=copy)

    assert opened.note_on_other_length == ""


def test_a_film_without_a_copy_is_opened_without_a_note(decisions):
    """The user has no video of the film, so that `note_on_other_length` has nothing to say."""
    opened = OpenFilm(number=0, timeline=decisions.film, decisions=decisions, path=None)
    assert opened.note_on_other_length == ""


def test_a_page_is_not_written_for_a_copy_of_another_film(scored_tt1, film_of, tmp_path, capsys):
    """The page would say "this is the file that was scored" to everybody who opens that other film in it."""
    page = tmp_path / "film.html"

    assert obygaze("film", "report", scored_tt1.folder, "--film", film_of(90), "--out", page) == 1
    assert "another cut, or another film" in capsys.readouterr().err
    assert not page.exists()

    assert obygaze("film", "report", scored_tt1.folder, "--film", film_of(120), "--out", page) == 0
