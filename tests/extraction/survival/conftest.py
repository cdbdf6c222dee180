"""Films that are extracted while workers are killed, and what an undisturbed run makes of them."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from obygaze.demo_corpus import write_video
from obygaze_features.manifest import Clip, Manifest, write_manifest
from tests.process import execute

from ..clusters import grey_frames, python_path

KILLER = Path(__file__).parent / "killer"
CLIPS = 24


@pytest.fixture(scope="session")
def films(tmp_path_factory) -> Path:
    """A folder with 24 videos and a film of 8 s, and films.csv: the videos, and six windows of the film."""
    folder = tmp_path_factory.mktemp("films")
    clips = []
    for number in range(CLIPS):
        video = f"clip-{number:02d}.mp4"
        write_video(folder / video, grey_frames(20 + number, first_grey=7 * number), rate=24)
        clips.append(Clip(f"tt1-{number:03d}", "tt1", video))
    write_video(folder / "film.mkv", grey_frames(8 * 24), rate=24)
    clips += [
        Clip(f"tt2-{second:03d}", "tt2", "film.mkv", float(second), second + 2.0) for second in range(6)
    ]
    write_manifest(Manifest(tuple(clips), folder), folder / "films.csv")
    return folder


def extract(films: Path, folder: Path, environment: dict[str, str], *words: str) -> None:
    command = [sys.executable, "-m", "obygaze", "extract", str(films / "films.csv"), "films", "--n", "4"]
    command += ["--workers", "2", "--batch-size", "2", "--corpus", "films", "--licence", "CC0-1.0", *words]
    result = execute(*command, cwd=folder, env=environment)
    assert "Traceback" not in result.stderr


@pytest.fixture(scope="session")
def undisturbed_digests(films, tmp_path_factory, file_digests) -> dict[str, str]:
    """The digest of each file of the store, by its path, if no worker is killed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    extract(films, folder, dict(os.environ))
    return file_digests(folder / "films-1.0.0")


@pytest.fixture
def digests_after_kills(films, tmp_path, file_digests) -> Callable[[str, int, str], dict[str, str]]:
    """Extract while workers in a state are killed, so many times; return the digests of the store's files."""

    def extract_with_kills(state: str, n_kills: int, engine: str) -> dict[str, str]:
        marks_of_kills = tmp_path / "kills"
        marks_of_kills.mkdir()
        killing = {
            "KILL_STATE": state,
            "KILL_FOLDER": str(marks_of_kills),
            "KILL_MOST": str(n_kills),
            "KILL_ENGINE": engine,
            "PYTHONPATH": python_path(KILLER),
        }
        extract(films, tmp_path, os.environ | killing, "--engine", engine)
        assert len(list(marks_of_kills.iterdir())) == n_kills
        return file_digests(tmp_path / "films-1.0.0")

    return extract_with_kills
