"""Public films by name: the script brings and compares them; at night it does so for those on the list."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from benchmarks.public_films import (
    Pictures,
    PublicFilm,
    bring,
    compare,
    compared,
    difference,
    digest,
    known_differences,
    listed,
    unknown,
)

FOLDER = os.environ.get("OBYGAZE_PUBLIC_FILMS", "")
"""Where `python benchmarks/public_films.py bring` has put them."""
needs_ffmpeg = pytest.mark.skipif(
    shutil.which("ffmpeg") is None, reason="the command of FFmpeg is not installed"
)


def named(path: Path, folder: Path) -> PublicFilm:
    return PublicFilm("lab/films", "HEAD", path.relative_to(folder / "lab/films").as_posix(), digest(path))


def test_each_file_of_the_list_is_one_file_of_one_commit():
    """Each repository is listed at one commit, so that the files never change."""
    films = listed()
    assert len({film.name for film in films}) == len(films) > 500
    assert all(re.fullmatch(r"[0-9a-f]{64}", film.sha256) for film in films)
    assert len({(film.repository, film.commit) for film in films}) == len({film.repository for film in films})
    assert {name for name, _ in known_differences()} <= {film.name for film in films}


def test_files_are_brought_by_git_and_checked(tmp_path):
    """A listed file is fetched, another one is not, and a file of another digest is given back as wrong."""
    origin = tmp_path / "host/lab/films"
    (origin / "a").mkdir(parents=True)
    (origin / "a/b [1].mp4").write_bytes(b"film")
    (origin / "other.mp4").write_bytes(b"not listed")
    words = ("-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false")
    for command in (("init", "-q"), ("add", "."), (*words, "commit", "-qm", "films")):
        subprocess.run(["git", "-C", origin, *command], check=True)
    process = subprocess.run(
        ["git", "-C", origin, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    )

    right = PublicFilm("lab/films", process.stdout.strip(), "a/b [1].mp4", digest(origin / "a/b [1].mp4"))

    host = f"file://{tmp_path / 'host'}"
    assert bring([right], tmp_path / "here", host) == []
    assert (tmp_path / "here" / right.name).read_bytes() == b"film"
    assert not (tmp_path / "here/lab/films/other.mp4").exists()
    assert bring([right._replace(sha256="0" * 64)], tmp_path / "here", host) == [right.name]


@needs_ffmpeg
@pytest.mark.parametrize("name", ["pyramid.mp4", "b2.mkv", "mpeg2.ts", "vp9.webm", "sp.avi"])
def test_a_film_that_is_read_right_is_judged_equal(films, tmp_path, name):
    (tmp_path / "lab/films").mkdir(parents=True)
    path = Path(shutil.copy(films[name], tmp_path / "lab/films"))
    verdict = compared(named(path, tmp_path), tmp_path)
    assert verdict.status == "ok"
    assert verdict.outcome in {"equal", "as PyAV"}  # the command may be of another version


@needs_ffmpeg
def test_a_film_that_is_refused_has_a_verdict(tmp_path):
    (tmp_path / "lab/films").mkdir(parents=True)
    empty = tmp_path / "lab/films/empty.mp4"
    empty.write_bytes(b"")
    assert compared(named(empty, tmp_path), tmp_path).outcome == "refused"


@needs_ffmpeg
def test_frames_read_wrong_in_silence_are_an_unknown_difference(films, tmp_path, monkeypatch):
    """A film that is said to be partial may differ from what FFmpeg gives; a whole one may not."""
    (tmp_path / "lab/films").mkdir(parents=True)
    path = Path(shutil.copy(films["pyramid.mp4"], tmp_path / "lab/films"))
    monkeypatch.setattr("benchmarks.public_films.sparse_difference", lambda *_: "frames [3]")

    wrong = compared(named(path, tmp_path), tmp_path)
    assert (wrong.outcome, wrong.status) == ("sparse", "ok")

    read_right = wrong._replace(outcome="equal")
    said_to_be_damaged = wrong._replace(status="partial")

    assert unknown([wrong, read_right, said_to_be_damaged]) == [wrong]


@pytest.mark.parametrize(
    ("digests", "time_s", "outcome"),
    [
        (["a", "b", "c"], [0.0, 1.0, 2.0], "equal"),
        (["a", "b"], [0.0, 1.0], "count"),
        (["a", "c", "b"], [0.0, 1.0, 2.0], "order"),
        (["a", "b", "d"], [0.0, 1.0, 2.0], "pixels"),
        (["a", "b", "c"], [0.0, 1.0, 2.1], "times"),
        (["a", "b", "c"], [0.0, np.nan, 2.0], "times"),
    ],
)
def test_what_differs_first_is_named(digests, time_s, outcome):
    """Compared are the number of pictures, then their order, their pixels, and their times."""
    right = Pictures(["a", "b", "c"], np.arange(3.0))
    assert difference(Pictures(digests, np.array(time_s)), right)[0] == outcome


@needs_ffmpeg
@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.skipif(not FOLDER, reason="OBYGAZE_PUBLIC_FILMS names no folder of public films")
def test_public_films_differ_from_ffmpeg_in_known_ways_alone():
    films = listed()
    verdicts = list(compare(films, Path(FOLDER), workers=os.cpu_count() or 1))
    assert len(verdicts) == len(films)
    assert unknown(verdicts) == []
