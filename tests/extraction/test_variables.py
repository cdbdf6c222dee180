"""`film_variables` on films with planted cuts, black, pans and sound."""

import numpy as np
import pytest

from benchmarks.planted.staging import filmed, leaves, spoken
from obygaze_features.backbones.camera import camera_values
from obygaze_features.backbones.sound_measures import RATE
from obygaze_features.extraction import extract
from obygaze_features.extraction import variables as module
from obygaze_features.extraction.variables import film_variables
from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.video import find_shots
from tests.video.encoding import encode
from tests.video.sounding import tone, write_film

STEPS, SPEED = 25, 0.1
NAMED = {"corpus": "film", "licence": "CC0-1.0"}
SPANS = [(0.0, 3.0), (3.0, 6.0), (4.0, 8.0)]


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    """Three seconds of a pan, one of black, four of another picture; a voice for 3 s, then a quiet tone."""
    stills = [leaves(np.random.default_rng(number)) for number in (0, 1)]
    pictures = [filmed(stills[0], right=320 * SPEED * (frame / STEPS - 1.5)) for frame in range(3 * STEPS)]
    pictures += [np.zeros_like(pictures[0])] * STEPS + [filmed(stills[1])] * (4 * STEPS)
    sound = np.concatenate([np.resize(spoken("en-us"), 3 * RATE), tone(997, 5, 0.01, RATE)]).astype(
        np.float32
    )
    path = tmp_path_factory.mktemp("film") / "film.mp4"
    return write_film(path, {"eng": sound}, seconds=8, rate=RATE, pictures=pictures, wide_high=(320, 180))


def test_every_variable_is_that_which_is_planted(film):
    pan, mixed, still = film_variables(film, SPANS, speech=True)
    assert (pan["cuts"], pan["black"]) == (0, 0)
    assert (mixed["cuts"], mixed["black"]) == (pytest.approx(20, abs=0.1), pytest.approx(1 / 3, abs=0.02))
    assert pan["pan"] == pytest.approx(SPEED, rel=0.05)
    assert pan["camera"] == pytest.approx(SPEED, rel=0.05)
    assert still["camera"] < 0.005
    assert pan["speech"] > 0.8
    assert still["speech"] < 0.1
    assert still["loudness"] == pytest.approx(-43.0, abs=0.3)
    assert -30 < pan["loudness"] < -20


def test_shots_and_camera_that_are_known_are_not_measured_again(film, monkeypatch):
    whole = film_variables(film, SPANS)
    clips = tuple(Clip(f"film-{number}", "film", film.name, *span) for number, span in enumerate(SPANS))
    write_manifest(Manifest(clips, film.parent), film.parent / "windows.csv")
    store = extract(
        film.parent / "windows.csv", film.parent / "store", backbones=("camera",), workers=1, **NAMED
    )
    cameras = [
        camera_values(store["camera"].read(clip.clip_id, "frames"), store["camera"].time_s[row])
        for row, clip in enumerate(clips)
    ]
    shots = find_shots(film)
    for name in ("read_stretch", "read_windows"):
        monkeypatch.setattr(module, name, None)
        known = cameras if name == "read_windows" else None
        assert film_variables(film, SPANS, shots=shots, camera=known) == whole


def test_a_film_is_decoded_once_for_all_that_is_seen(film, monkeypatch):
    class Faces:
        def prepare(self, frame):
            return frame.mean(axis=2)

        def __call__(self, pictures):
            return {"faces": float(len(pictures)), "face": float(np.max(pictures) > 16)}

    for name in ("read_windows", "find_shots"):
        monkeypatch.setattr(module, name, None)
    shown, notes = [], []
    spans = [*SPANS, (3.2, 3.8)]
    found = film_variables(
        film, spans, faces=Faces(), note=notes.append, show=lambda *done: shown.append(done)
    )
    assert [(each["faces"], each["face"], "camera" in each) for each in found] == [
        *[(2.0, 1.0, True)] * 3,
        (2.0, 0.0, False),
    ]
    assert shown[-1] == (4, 4)
    assert "1 of 4 windows" in "".join(notes)


def test_of_a_window_that_ends_after_the_film_what_is_there_counts(film):
    notes = []
    spans = [(2.0, 8.0), (2.0, 14.0), (40.0, 50.0)]
    whole, late, later = film_variables(film, spans, speech=True, note=notes.append)
    assert (late["cuts"], late["black"]) == pytest.approx((whole["cuts"], whole["black"]))
    assert late["speech"] == pytest.approx(whole["speech"] / 2, abs=0.01)
    assert later == {}
    assert "2 of 3 windows end after the film" in "".join(notes)


def test_a_film_without_sound_and_a_machine_without_opencv_lack_columns(tmp_path, monkeypatch):
    notes = []
    silent = encode(tmp_path / "silent.mp4", [np.full((48, 64, 3), 90, np.uint8)] * 50)
    monkeypatch.setattr(module, "opencv", lambda: None)
    assert film_variables(silent, [(0.0, 2.0)], note=notes.append) == [{"cuts": 0.0, "black": 0.0}]
    assert "OpenCV" in notes[0]
    assert "no sound track" in notes[1]
