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

RATE = 24
"""Pictures of a second."""
SECONDS = 60

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
    for _ in range(RATE * SECONDS):
        if n_left_of_shot == 0:
            n_left_of_shot = int(rng.integers(RATE, 4 * RATE))
            colours = rng.integers(0, 256, (8, 40, 3), np.uint8)
            texture = colours.repeat(8, axis=0).repeat(8, axis=1)
        n_left_of_shot -= 1
        left_edge = n_left_of_shot  # moves by a pixel a picture
        yield np.ascontiguousarray(texture[:, left_edge : left_edge + 96])


def overlapping_windows(film: Path) -> Manifest:
    """Return a manifest of windows of six seconds that begin every second."""
    starts = range(SECONDS - 6 + 1)
    clips = [Clip(f"film-{start:04d}", "film", film.name, start, start + 6) for start in starts]
    return Manifest(tuple(clips), film.parent)


def table_of_shots(film: Path) -> bytes:
    """Return the table of a film's shots as `manifest import film` writes it, without extracting."""
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
    return bytes_below(extract(overlapping_windows(film), out, n_frames=4, workers=1, **NAMED).path)


@pytest.mark.long
def test_each_frame_is_decoded_once_for_windows_and_shots(film, store_without_shots, tmp_path):
    """A film of 60 s at 24 frames a second has windows of 6 s, one a second; shots need all 1,440 frames.

    Windows and shots are made in one run, which may decode up to 2 % more, where the stretches of two workers
    meet. The store is that of a run without shots, and the shots are those of a run without windows. A second
    run finds both there.
    """
    table = tmp_path / "shots.csv"
    work = prepare(
        overlapping_windows(film), tmp_path / "features", n_frames=4, workers=2, **NAMED, shots=table
    )
    stage, report = work.run()

    assert report.n_decoded <= 1.02 * 1440
    assert bytes_below(work.seal(stage)) == store_without_shots
    assert table.read_bytes() == table_of_shots(film)

    _, report_of_second_run = work.run()  # which finds the table there
    assert report_of_second_run.n_decoded == 0


@pytest.mark.long
def test_a_killed_extraction_with_shots_resumes_to_the_same_store_and_shots(
    film, store_without_shots, tmp_path
):
    """Windows of a film are extracted and its shots found in one run, which measures the film part by part.

    The script EXTRACT_UNTIL_KILLED is such a run that kills itself. The first time it does so once two parts
    are measured, the second time once a clip is done. Each time the measurements stay in files, and there is
    no table of shots yet.

    The third run is not killed. It gives the very bytes of the store that an extraction without shots makes
    (`store_without_shots`), and the shots that are found by themselves.
    """
    (tmp_path / "film.mp4").symlink_to(film)
    write_manifest(Manifest(overlapping_windows(film).clips, tmp_path), tmp_path / "windows.csv")
    script_that_kills_itself = tmp_path / "killed.py"
    script_that_kills_itself.write_text(EXTRACT_UNTIL_KILLED, encoding="utf-8")
    table = tmp_path / "shots.csv"
    measurements = tmp_path / "features.staging" / MEASUREMENTS_FOLDER
    for killed_at in ("measured", "commit"):
        python(script_that_kills_itself, tmp_path, killed_at, code=-signal.SIGKILL)
        assert not table.exists()
        n_measured_parts = len(list(measurements.iterdir()))
        assert n_measured_parts >= 2

    notes: list[str] = []
    settings = {"n_frames": 4, "workers": 1, "shots": table, "note": notes.append, **NAMED}
    store = extract(tmp_path / "windows.csv", tmp_path / "features", **settings)

    # A note says how many clips that killed runs had begun are done again: rows that were not flushed yet.
    assert len(notes) == 1
    assert bytes_below(store.path) == store_without_shots
    assert table.read_bytes() == table_of_shots(film)


def done_but_for_its_table_of_shots(film, folder, **settings):
    """Extract the windows with shots and remove the table of shots; return the work, to be run again."""
    work = prepare(
        overlapping_windows(film), folder / "features", workers=1, shots=folder / "shots.csv", **settings
    )
    work.run()
    (folder / "shots.csv").unlink()
    return work


@pytest.mark.long  # decodes a film twice
def test_a_film_of_which_a_file_of_measurements_is_damaged_is_decoded_again_for_its_shots(film, tmp_path):
    """An extraction has all clips, and in its stage a file of measurements for each part of the film.

    Only the table of shots, which is made of these, was not written yet. The first of the files is then cut
    off. It counts as one of a part that could not be decoded, so the film is decoded once more for its shots,
    which a note says, and the table is right.
    """
    notes: list[str] = []
    work = done_but_for_its_table_of_shots(film, tmp_path, note=notes.append, n_frames=1)
    first_measurement = min((tmp_path / "features.staging" / MEASUREMENTS_FOLDER).iterdir())
    cut_off = first_measurement.read_bytes()[:1000]
    first_measurement.write_bytes(cut_off)

    work.run()

    assert "film.mp4 is decoded a second time for its shots: it could not be decoded without errors" in notes
    assert (tmp_path / "shots.csv").read_bytes() == table_of_shots(film)


@pytest.mark.long
@pytest.mark.parametrize("backbone", ["descriptors", "sound"], ids=["seen", "heard"])
def test_only_stretches_without_a_measurement_are_decoded_again(film, tmp_path, backbone):
    """Workers measure a film of 1,440 frames in stretches. All measurements but the first are removed."""
    work = done_but_for_its_table_of_shots(film, tmp_path, backbones=[backbone], licence="CC0-1.0")
    measurements = sorted((tmp_path / "features.staging" / MEASUREMENTS_FOLDER).iterdir())
    for measurement in measurements[1:]:
        measurement.unlink()

    _, report = work.run()

    assert 0 < report.n_decoded < 1440
    assert (tmp_path / "shots.csv").read_bytes() == table_of_shots(film)


@pytest.mark.parametrize(
    "settings",
    [{"shard": (0, 2)}, {"limit": 3}, {"gpus": (0,)}, {"engine": "ray"}],
    ids=["shard", "limit", "gpus", "engine"],
)
def test_options_that_do_not_go_with_shots_are_refused_before_any_work(film, tmp_path, settings):
    """Shots need the whole film in one run: no share, no limit, and no engine of several processes."""
    (option,) = settings

    with pytest.raises(ExtractError, match=f"--{option}"):
        prepare(overlapping_windows(film), tmp_path / "f", shots=tmp_path / "s.csv", **settings)

    assert list(tmp_path.iterdir()) == []
