"""Public films by name: the script brings and compares them; at night it does so for those on the list."""

import os
import re
import shutil
import subprocess
from collections import defaultdict
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


def list_as_public_film(path: Path, folder: Path) -> PublicFilm:
    """Return a file of the repository lab/films, in a folder, as the list of public films would name it.

    The benchmark looks for a public film at FOLDER/OWNER/REPOSITORY/PATH.
    """
    return PublicFilm("lab/films", "HEAD", path.relative_to(folder / "lab/films").as_posix(), digest(path))


def test_each_public_film_is_listed_once_with_the_digest_of_its_file():
    """The list has more than 500 films. A SHA-256 has 64 hexadecimal digits."""
    films = listed()

    names = [film.name for film in films]
    assert len(films) > 500
    assert len(set(names)) == len(names)
    for film in films:
        assert re.fullmatch(r"[0-9a-f]{64}", film.sha256)


def test_each_repository_of_public_films_is_listed_at_one_commit():
    """At one commit, files never change."""
    commits_of_repository = defaultdict(set)
    for film in listed():
        commits_of_repository[film.repository].add(film.commit)

    for commits in commits_of_repository.values():
        assert len(commits) == 1


def test_known_differences_are_of_films_that_are_listed():
    """A known difference is a film whose frames differ from FFmpeg's for a reason that is written down."""
    names = {film.name for film in listed()}

    for name, _ in known_differences():
        assert name in names


@pytest.fixture
def repository_of_two_files(tmp_path):
    """The folder of a repository of git, lab/films, with the files `a/b [1].mp4` and other.mp4."""
    folder = tmp_path / "host/lab/films"
    (folder / "a").mkdir(parents=True)
    (folder / "a/b [1].mp4").write_bytes(b"film")
    (folder / "other.mp4").write_bytes(b"not listed")
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false")
    for command in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "films")):
        subprocess.run(["git", "-C", folder, *command], check=True)
    return folder


def test_files_are_brought_by_git_and_checked(repository_of_two_files, tmp_path):
    """A listed file is fetched, another one is not. `bring` returns the names of files of another digest."""
    process = subprocess.run(
        ["git", "-C", repository_of_two_files, "rev-parse", "HEAD"],
        check=True,
        capture_output=True,
        text=True,
    )
    commit = process.stdout.strip()
    digest_of_file = digest(repository_of_two_files / "a/b [1].mp4")
    right = PublicFilm("lab/films", commit, "a/b [1].mp4", digest_of_file)
    with_another_digest = PublicFilm("lab/films", commit, "a/b [1].mp4", "0" * 64)
    host = f"file://{tmp_path / 'host'}"

    assert bring([right], tmp_path / "here", host) == []
    assert (tmp_path / "here" / right.name).read_bytes() == b"film"
    assert not (tmp_path / "here/lab/films/other.mp4").exists()

    assert bring([with_another_digest], tmp_path / "here", host) == [with_another_digest.name]


@needs_ffmpeg
@pytest.mark.parametrize("name", ["pyramid.mp4", "b2.mkv", "mpeg2.ts", "vp9.webm", "sp.avi"])
def test_the_benchmark_judges_a_film_that_is_read_right_equal(numbered_films, tmp_path, name):
    """The benchmark reads a film with our code, and compares the frames with those of FFmpeg's command.

    That command may be of another version than the FFmpeg in PyAV, which we use. So frames that differ from
    its own are also compared with those of a plain loop of PyAV. If they equal these, the verdict is "as
    PyAV".
    """
    (tmp_path / "lab/films").mkdir(parents=True)
    path = Path(shutil.copy(numbered_films[name], tmp_path / "lab/films"))

    verdict = compared(list_as_public_film(path, tmp_path), tmp_path)

    assert verdict.status == "ok"
    assert verdict.outcome in {"equal", "as PyAV"}


@needs_ffmpeg
def test_a_public_film_that_cannot_be_read_has_the_outcome_refused_in_the_benchmark(tmp_path):
    """The benchmark of public films compares our frames of each film with those of FFmpeg (`compared`).

    Its verdict on a film has an outcome, such as "equal". This film is an empty file, of which nothing can be
    compared: reading it is an error, which must not end the benchmark.
    """
    (tmp_path / "lab/films").mkdir(parents=True)
    empty_film = tmp_path / "lab/films/empty.mp4"
    empty_film.write_bytes(b"")

    verdict = compared(list_as_public_film(empty_film, tmp_path), tmp_path)

    assert verdict.outcome == "refused"


@needs_ffmpeg
def test_wrong_frames_of_a_film_that_is_called_whole_are_an_unknown_difference(
    numbered_films, tmp_path, monkeypatch
):
    """A film that is said to be partial may differ from what FFmpeg gives; one that is called whole may not.

    The benchmark also compares frames that are decoded sparsely with the same frames decoded in order. Here
    it is made to find that frame 3 differs: the outcome is "sparse". Of three verdicts, this one alone is an
    unknown difference, and not those of a film that is read right or is said to be damaged.
    """
    (tmp_path / "lab/films").mkdir(parents=True)
    path = Path(shutil.copy(numbered_films["pyramid.mp4"], tmp_path / "lab/films"))

    def find_that_frame_3_differs(*_):
        return "frames [3]"

    monkeypatch.setattr("benchmarks.public_films.sparse_difference", find_that_frame_3_differs)

    wrong = compared(list_as_public_film(path, tmp_path), tmp_path)
    read_right = wrong._replace(outcome="equal")
    said_to_be_damaged = wrong._replace(status="partial")

    assert wrong.outcome == "sparse"
    assert wrong.status == "ok"
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
    """Compared are the number of pictures, then their order, their pixels, and their times.

    The right pictures, by their digests, are a, b and c, at 0, 1 and 2 s.
    """
    right = Pictures(["a", "b", "c"], np.array([0.0, 1.0, 2.0]))
    pictures = Pictures(digests, np.array(time_s))

    first_difference, *_ = difference(pictures, right)

    assert first_difference == outcome


@needs_ffmpeg
@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.skipif(not FOLDER, reason="OBYGAZE_PUBLIC_FILMS names no folder of public films")
def test_public_films_differ_from_ffmpeg_in_known_ways_alone():
    """Several hundred public films are read by our code and by FFmpeg's command, and their frames compared.

    The films lie in the folder that OBYGAZE_PUBLIC_FILMS names. Each gets a verdict, such as equal, refused,
    or what differs first. A difference is known if the benchmark's table lists the film with a reason; there
    must be no other.
    """
    films = listed()
    n_workers = os.cpu_count() or 1

    verdicts = list(compare(films, Path(FOLDER), workers=n_workers))

    assert len(verdicts) == len(films)
    assert unknown(verdicts) == []
