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

EXTRACT_UNTIL_KILLED = """
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
"""Extracts with shots, and kills itself when the second stretch is measured, or when a clip is done."""


def pictures() -> Iterator[np.ndarray]:
    """Yield pictures of 96 x 64 pixels: shots of 1 to 4 s, each a pan over a texture of blocks of its own."""
    rng = np.random.default_rng(4)
    n_left_of_shot = 0
    for _ in range(N_FRAMES):
        if n_left_of_shot == 0:
            n_left_of_shot = int(rng.integers(RATE, 4 * RATE))
            colours = rng.integers(0, 256, (8, 40, 3), np.uint8)
            texture = colours.repeat(8, axis=0).repeat(8, axis=1)
        n_left_of_shot -= 1
        left_edge = n_left_of_shot  # moves by a pixel a picture
        yield np.ascontiguousarray(texture[:, left_edge : left_edge + 96])


def windows(film: Path) -> Manifest:
    """Windows of six seconds that begin every second."""
    starts = range(0, SECONDS - WINDOW_S + 1, HOP_S)
    clips = [Clip(f"film-{start:04d}", "film", film.name, start, start + WINDOW_S) for start in starts]
    return Manifest(tuple(clips), film.parent)


def shots_of(film: Path) -> bytes:
    """Return the table of a film's shots as `manifest import film` writes it."""
    shots = [FilmPart(shot.start_s, shot.end_s, shot.flags) for shot in find_shots(film)]
    return shots_bytes({"film": shots}, "own")  # by our own detector


def bytes_below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def film(tmp_path_factory) -> Path:
    options = {"preset": "ultrafast", "g": str(RATE), "bf": "2", "sc_threshold": "0"}
    return encode(tmp_path_factory.mktemp("film") / "film.mp4", pictures(), rate=RATE, options=options)


@pytest.fixture(scope="module")
def store_without_shots(film, tmp_path_factory) -> dict[str, bytes]:
    """The files of the store of the film's windows, extracted without shots."""
    out = tmp_path_factory.mktemp("plain") / "features"
    return bytes_below(extract(windows(film), out, n_frames=4, workers=1, **NAMED).path)


@pytest.mark.long
def test_each_frame_is_decoded_once_for_windows_and_shots(film, store_without_shots, tmp_path):
    """Windows overlap, and shots need all 1,440 frames. Up to 2 % more may be decoded, where workers meet."""
    table = tmp_path / "shots.csv"
    work = prepare(windows(film), tmp_path / "features", n_frames=4, workers=2, **NAMED, shots=table)
    stage, report = work.run()

    assert report.n_decoded <= 1.02 * N_FRAMES
    assert bytes_below(work.seal(stage)) == store_without_shots
    assert table.read_bytes() == shots_of(film)

    _, report_of_second_run = work.run()  # which may find the table there
    assert report_of_second_run.n_decoded == 0


@pytest.mark.long
def test_a_killed_extraction_with_shots_resumes_to_the_same_store_and_shots(
    film, store_without_shots, tmp_path
):
    """A process is killed twice, once between a stretch's measurement and the commit of its clips.

    The differences between pictures that were measured in stretches of the film are kept in the stage.
    """
    (tmp_path / "film.mp4").symlink_to(film)
    write_manifest(Manifest(windows(film).clips, tmp_path), tmp_path / "windows.csv")
    script = tmp_path / "killed.py"
    script.write_text(EXTRACT_UNTIL_KILLED, encoding="utf-8")
    shots = tmp_path / "shots.csv"
    for killed_at in ("measured", "commit"):
        python(script, tmp_path, killed_at, code=-signal.SIGKILL)
        assert not shots.exists()
        assert len(list((tmp_path / "features.staging" / MEASUREMENTS_FOLDER).iterdir())) >= 2

    notes: list[str] = []
    settings = {"n_frames": 4, "workers": 1, "shots": shots, "note": notes.append, **NAMED}
    store = extract(tmp_path / "windows.csv", tmp_path / "features", **settings)
    assert len(notes) == 1  # how many clips of the piece that was open are done again
    assert bytes_below(store.path) == store_without_shots
    assert shots.read_bytes() == shots_of(film)


def done_with_shots_lost(film, folder, **settings):
    """Extract the windows with shots and remove the table of shots; gives the work, to be run again."""
    work = prepare(windows(film), folder / "features", workers=1, shots=folder / "shots.csv", **settings)
    work.run()
    (folder / "shots.csv").unlink()
    return work


@pytest.mark.long  # decodes a film twice
def test_a_damaged_measurement_of_shots_decodes_the_film_again(film, tmp_path):
    """A measurement that cannot be read counts as one of a stretch that could not be decoded."""
    notes: list[str] = []
    fewest_frames = {"n_frames": 1}  # to save time
    work = done_with_shots_lost(film, tmp_path, note=notes.append, **fewest_frames)

    first_measurement = min((tmp_path / "features.staging" / MEASUREMENTS_FOLDER).iterdir())
    cut_off = first_measurement.read_bytes()[:1000]
    first_measurement.write_bytes(cut_off)

    work.run()
    assert "film.mp4 is decoded a second time for its shots: it could not be decoded without errors" in notes
    assert (tmp_path / "shots.csv").read_bytes() == shots_of(film)


@pytest.mark.long
@pytest.mark.parametrize("backbone", ["descriptors", "sound"], ids=["seen", "heard"])
def test_only_stretches_without_a_measurement_are_decoded_again(film, tmp_path, backbone):
    """Workers measure shots in stretches of a film. All but the first measurement are removed."""
    work = done_with_shots_lost(film, tmp_path, backbones=[backbone], licence="CC0-1.0")
    _, *lost = sorted((tmp_path / "features.staging" / MEASUREMENTS_FOLDER).iterdir())
    for measurement in lost:
        measurement.unlink()

    _, report = work.run()
    assert 0 < report.n_decoded < N_FRAMES
    assert (tmp_path / "shots.csv").read_bytes() == shots_of(film)


@pytest.mark.parametrize(
    "settings",
    [{"shard": (0, 2)}, {"limit": 3}, {"gpus": (0,)}, {"engine": "ray"}],
    ids=["shard", "limit", "gpus", "engine"],
)
def test_options_that_do_not_go_with_shots_are_refused_before_any_work(film, tmp_path, settings):
    """Shots need the whole film in one run: no share, no limit, and no engine of several processes."""
    (option,) = settings
    with pytest.raises(ExtractError, match=f"--{option}"):
        prepare(windows(film), tmp_path / "f", shots=tmp_path / "s.csv", **settings)
    assert not list(tmp_path.iterdir())
