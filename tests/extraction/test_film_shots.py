"""Shots are found on the frames decoded for a film's windows: each once, and nothing else changes."""

import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from obygaze_features.errors import ExtractError
from obygaze_features.extraction import extract, prepare
from obygaze_features.extraction.films import MEASUREMENTS_FOLDER
from obygaze_features.manifest import Clip, FilmPart, Manifest, shots_bytes, write_manifest
from obygaze_features.video import find_shots
from tests.process import python
from tests.video.encoding import encode

RATE, SECONDS, WINDOW_S, HOP_S = 24, 60, 6, 1
N_FRAMES = RATE * SECONDS

NAMED = {"corpus": "windows", "licence": "CC0-1.0"}

KILLED = """
import os, signal, sys
from obygaze_features.extraction import prepare
from obygaze_features.extraction.films import Films

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def watch(done, total):
    if sys.argv[2] == "commit":
        die()

def write_measurements(self, *args, write=Films.write_measurements, left=[2]):
    write(self, *args)
    left[0] -= 1
    if sys.argv[2] == "measured" and not left[0]:
        die()

if __name__ == "__main__":
    Films.write_measurements = write_measurements
    folder = sys.argv[1]
    prepare(folder + "/windows.csv", folder + "/features", n_frames=4, workers=2, batch_size=2,
            shots=folder + "/shots.csv", progress=watch, note=print).run()
"""


def pictures() -> Iterator[np.ndarray]:
    """Shots of 1 to 4 s of moving texture."""
    rng = np.random.default_rng(4)
    left = 0
    for _ in range(N_FRAMES):
        if not left:
            left, wide = int(rng.integers(RATE, 4 * RATE)), rng.integers(0, 256, (8, 40, 3), np.uint8)
            wide = wide.repeat(8, axis=0).repeat(8, axis=1)
        left -= 1
        yield np.ascontiguousarray(wide[:, left : left + 96])


def windows(film: Path) -> Manifest:
    starts = range(0, SECONDS - WINDOW_S + 1, HOP_S)
    clips = [Clip(f"film-{start:04d}", "film", film.name, start, start + WINDOW_S) for start in starts]
    return Manifest(tuple(clips), film.parent)


def shots_of(film: Path) -> bytes:
    """The table as `manifest import film` writes it."""
    return shots_bytes(
        {"film": [FilmPart(one.start_s, one.end_s, one.flags) for one in find_shots(film)]}, "own"
    )


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def film(tmp_path_factory) -> Path:
    options = {"preset": "ultrafast", "g": str(RATE), "bf": "2", "sc_threshold": "0"}
    return encode(tmp_path_factory.mktemp("film") / "film.mp4", pictures(), rate=RATE, options=options)


@pytest.fixture(scope="module")
def plain(film, tmp_path_factory) -> dict[str, bytes]:
    """The store of the film's windows, extracted without shots."""
    out = tmp_path_factory.mktemp("plain") / "features"
    return content(extract(windows(film), out, n_frames=4, workers=1, **NAMED).path)


@pytest.mark.long
def test_each_frame_is_decoded_once_for_windows_and_shots(film, plain, tmp_path):
    work = prepare(
        windows(film), tmp_path / "features", n_frames=4, workers=2, **NAMED, shots=tmp_path / "s.csv"
    )
    stage, report = work.run()
    assert report.n_decoded <= 1.02 * N_FRAMES
    assert content(work.seal(stage)) == plain
    assert (tmp_path / "s.csv").read_bytes() == shots_of(film)
    assert (tmp_path / "s.csv").read_bytes().count(b"\n") > 15
    # Again: nothing is left to decode, and the same table may be there.
    _, report = work.run()
    assert report.n_decoded == 0


@pytest.mark.long
def test_a_killed_extraction_with_shots_resumes_to_the_same_files_and_keeps_measured_stretches(
    film, plain, tmp_path
):
    """Only here is a process killed between a stretch's measurement and the commit of its clips."""
    (tmp_path / "film.mp4").symlink_to(film)
    write_manifest(Manifest(windows(film).clips, tmp_path), tmp_path / "windows.csv")
    script = tmp_path / "killed.py"
    script.write_text(KILLED, encoding="utf-8")
    for killed_at in ("measured", "commit"):
        python(script, tmp_path, killed_at, code=-signal.SIGKILL)
        assert not (tmp_path / "shots.csv").exists()
        assert len(list((tmp_path / "features.staging" / MEASUREMENTS_FOLDER).iterdir())) >= 2
    made = tmp_path / "windows.csv", tmp_path / "features"
    notes: list[str] = []
    how = {"shots": tmp_path / "shots.csv", "note": notes.append}
    store = extract(*made, n_frames=4, workers=1, **NAMED, **how)
    assert len(notes) == 1  # how many clips of the piece that was open are done again
    assert content(store.path) == plain
    assert (tmp_path / "shots.csv").read_bytes() == shots_of(film)


@pytest.mark.long  # decodes a film twice
def test_a_measurement_that_was_cut_off_is_made_again_by_a_second_pass(film, tmp_path):
    notes: list[str] = []
    work = prepare(
        windows(film), tmp_path / "f", n_frames=1, workers=1, shots=tmp_path / "s.csv", note=notes.append
    )
    work.run()
    (tmp_path / "s.csv").unlink()
    first = next((tmp_path / "f.staging" / MEASUREMENTS_FOLDER).iterdir())
    first.write_bytes(first.read_bytes()[:1000])
    work.run()
    assert "film.mp4 is decoded a second time for its shots: it could not be decoded without errors" in notes
    assert (tmp_path / "s.csv").read_bytes() == shots_of(film)


@pytest.mark.long
@pytest.mark.parametrize("backbone", ["descriptors", "sound"])
def test_a_measurement_that_was_lost_after_its_windows_were_kept_is_made_again(film, tmp_path, backbone):
    work = prepare(
        windows(film),
        tmp_path / "f",
        backbones=[backbone],
        workers=1,
        shots=tmp_path / "s.csv",
        licence="CC0-1.0",
    )
    work.run()
    (tmp_path / "s.csv").unlink()
    for measured in sorted((tmp_path / "f.staging" / MEASUREMENTS_FOLDER).iterdir())[1:]:
        measured.unlink()
    _, report = work.run()
    assert 0 < report.n_decoded < N_FRAMES
    assert (tmp_path / "s.csv").read_bytes() == shots_of(film)


def test_options_that_do_not_go_with_shots_are_refused_before_any_work(film, tmp_path):
    for settings in ({"shard": (0, 2)}, {"limit": 3}, {"gpus": (0,)}, {"engine": "ray"}):
        with pytest.raises(ExtractError, match=f"--{next(iter(settings))}"):
            prepare(windows(film), tmp_path / "f", shots=tmp_path / "s.csv", **settings)
    assert not list(tmp_path.iterdir())
