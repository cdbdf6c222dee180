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


def test_a_scored_film_is_as_long_as_the_video_that_its_store_was_made_of(scored_once):
    """The film's windows end at 120 s, and its store says that their video lasts 121.5 s: that is known."""
    _, timeline = scored_once
    of_one_video = StoreOfVideos(timeline.record.store.fingerprint, lengths_s=(121.5, 121.5))
    assert scored_length(timeline, [of_one_video]) == ScoredLength(121.5, unknown_s=0)


@pytest.mark.parametrize(
    ("is_store_of_film", "lengths_s"),
    [
        pytest.param(True, None, id="there is no store"),
        pytest.param(True, (60.0, 61.5), id="its windows are of two videos"),
        pytest.param(True, (8.0, 8.0), id="each window is a video of its own"),
        pytest.param(False, (121.5, 121.5), id="the store is another one"),
    ],
)
def test_a_scored_film_may_be_a_window_longer_than_its_windows_if_no_store_tells_the_videos_length(
    scored_once, is_store_of_film, lengths_s
):
    """The film's windows end at 120 s. What follows the last window may be as long as a window, 8 s."""
    _, timeline = scored_once
    fingerprint = timeline.record.store.fingerprint if is_store_of_film else "another"
    stores = [] if lengths_s is None else [StoreOfVideos(fingerprint, lengths_s)]
    assert scored_length(timeline, stores) == ScoredLength(FILM_S, unknown_s=WINDOW_S)


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
    """The desk notes if the user's copy of a film has another length than the film that was scored.

    Here the user has no video of the film: there is nothing to note.
    """
    opened = OpenFilm(number=0, timeline=decisions.film, decisions=decisions, path=None)
    assert opened.note_on_other_length == ""


def test_a_page_is_not_written_for_a_copy_of_another_film(scored_tt1, film_of, tmp_path, capsys):
    """A film of 120 s was scored. A video of 90 s is given as its copy, and then one of 120 s.

    The page knows the copy again in a browser and says that it is the file that was scored: of the other film
    that would be wrong.
    """
    page = tmp_path / "film.html"
    copy_of_another_film, copy = film_of(seconds=90), film_of(seconds=FILM_S)

    assert obygaze("film", "report", scored_tt1.folder, "--film", copy_of_another_film, "--out", page) == 1
    assert "another cut, or another film" in capsys.readouterr().err
    assert not page.exists()

    assert obygaze("film", "report", scored_tt1.folder, "--film", copy, "--out", page) == 0
