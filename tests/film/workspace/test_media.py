"""Stills, colours and peaks of a film: of the right shots, made once, known by content, private."""

import io
import json
import shutil
import sys
import time
from base64 import b64decode
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import av
import numpy as np
import pandas as pd
import pytest
from PIL import Image

from obygaze_film.commands.film_open import make_missing_media
from obygaze_film.film_videos import make_media_of_films
from obygaze_film.workspace import media
from obygaze_film.workspace.media import STILLS_IN_ROW, StillSheet, make_media, media_paths
from tests.film.page.invented import fake_scored_film

STARTS_OF_SHOTS = (0.0, 1.0, 4.0, 4.4, 9.0)
"""In seconds; the shot of 4.0 to 4.4 s has no key frame."""

GREYS_OF_SHOTS = (20, 70, 120, 170, 220)
"""The grey of the pictures of each shot."""


SOUND_RATE = 48_000

X264_OPTIONS = {"g": "50", "sc_threshold": "0", "bf": "2"}
"""A picture that stands alone every two seconds, none at cuts, and pictures that refer to later ones."""


def encode_pictures(container, video):
    """Encode ten seconds of pictures, each as grey as its shot."""
    for number in range(250):
        shot = sum(start_s <= number / 25 for start_s in STARTS_OF_SHOTS) - 1
        picture = np.full((90, 160, 3), GREYS_OF_SHOTS[shot], np.uint8)
        container.mux(video.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
    container.mux(video.encode(None))


def encode_sound(container, audio):
    """Encode ten seconds of sound: silence, and a tone in the last five."""
    sample = np.arange(10 * SOUND_RATE)
    is_tone = sample >= 5 * SOUND_RATE
    wave = 0.5 * np.sin(sample / 20) * is_tone  # of about 380 Hz
    frame = av.AudioFrame.from_ndarray(wave[None].astype(np.float32), "fltp", "mono")
    frame.sample_rate = SOUND_RATE
    frame.pts = 0
    frame.time_base = Fraction(1, SOUND_RATE)
    container.mux(audio.encode(frame))
    container.mux(audio.encode(None))


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    """A film of ten seconds with sound in the last half: its file, and the film as it was scored."""
    path = tmp_path_factory.mktemp("film") / "film.mp4"
    with av.open(str(path), "w") as container:
        video = container.add_stream("libx264", rate=25, options=X264_OPTIONS)
        video.width, video.height, video.pix_fmt = 160, 90, "yuv420p"
        audio = container.add_stream("aac", rate=SOUND_RATE, layout="mono")
        encode_pictures(container, video)
        encode_sound(container, audio)
    ends_of_shots = (*STARTS_OF_SHOTS[1:], 10.0)
    shots = pd.DataFrame({"start_s": STARTS_OF_SHOTS, "end_s": ends_of_shots, "flags": ""})
    return path, replace(fake_scored_film(n_rows=10, duration_s=10.0), shots=shots)


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    """The folder in which stills, colours and peaks are kept, with nothing in it."""
    monkeypatch.setattr(media, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def media_of_film(film, tmp_path_factory):
    """The paths of what is made of the film, and what media.json holds."""
    path, scored = film
    folder = tmp_path_factory.mktemp("made") / "cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(media, "cache_folder", lambda: folder)
        make_media(path, scored)
        paths = media_paths(path, scored)
    return paths, json.loads(paths["media.json"].read_text("utf-8"))


def test_each_shot_has_its_own_still(media_of_film):
    """Five shots begin at 0, 1, 4, 4.4 and 9 s. Each is of one grey, which tells of which shot a still is.

    Stills lie beside each other on a sheet, 96 by 54 pixels each.
    """
    paths, facts = media_of_film
    assert facts["starts"] == [0.0, 1.0, 4.0, 4.4, 9.0]
    assert facts["width"] == 96
    assert facts["height"] == 54

    with Image.open(paths["stills.webp"]) as sheet:
        pixels = np.asarray(sheet.convert("L"), dtype=float)
    assert pixels.shape == (54, 96 * STILLS_IN_ROW)
    greys = []
    for index in range(5):
        left = 96 * index
        still = pixels[:, left : left + 96]
        greys.append(still.mean())
    assert greys == pytest.approx([20, 70, 120, 170, 220], abs=6)


def test_the_strip_of_colours_goes_from_the_first_shot_to_the_last(media_of_film):
    """Each shot of a film is lighter than the one before: their greys go from 20 to 220.

    A column of the strip may be a mean over several shots, so that its ends are less extreme: about 20 and
    170. Compression may make a column a little darker than the one before.
    """
    paths, _facts = media_of_film
    with Image.open(paths["colours.png"]) as colours:
        greys_of_columns = np.asarray(colours.convert("L"), dtype=float)[0]

    assert greys_of_columns[0] == pytest.approx(20, abs=60)
    assert greys_of_columns[-1] == pytest.approx(170, abs=60)
    steps = np.diff(greys_of_columns)
    assert steps.min() > -10


def test_peaks_of_sound_are_where_the_film_has_sound(media_of_film):
    """The film is silent for five seconds, and then has a tone for five.

    There are 4000 peaks, 400 a second, as percentages of the loudest. In each quarter of a second there is a
    peak of the tone. Compression smears its beginning, so half a second on either side is left out.
    """
    _paths, facts = media_of_film
    peaks = np.array(facts["peaks"])

    until_4_5_s = peaks[: int(4.5 * 400)]
    from_5_5_s = peaks[int(5.5 * 400) :]
    assert until_4_5_s.max() < 30
    for start in range(0, len(from_5_5_s), 100):
        quarter_of_a_second = from_5_5_s[start : start + 100]
        assert quarter_of_a_second.max() > 90


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such rights")
def test_stills_and_peaks_are_readable_by_the_owner_only(media_of_film):
    """Films may be private, and so may be their stills: others may not enter the folder that they are in."""
    paths, _facts = media_of_film
    cache = paths["media.json"].parent
    only_its_owner = 0o700
    assert cache.stat().st_mode & 0o777 == only_its_owner


@pytest.mark.usefixtures("empty_cache")
def test_a_moved_film_keeps_its_stills(film, tmp_path, monkeypatch):
    """A film is known by its content and not by its path, so nothing is made again at its new place."""
    path, scored = film
    make_media(path, scored)
    moved_film = shutil.copyfile(path, tmp_path / "moved.mp4")
    monkeypatch.setattr(media, "read_frames", None)  # reading a frame would fail

    make_media(moved_film, scored)

    assert media_paths(moved_film, scored)["media.json"].is_file()


def test_other_shots_get_files_of_their_own(film):
    """If a film is cut into shots anew, its old stills are of the wrong shots and must not be found.

    The film's shots begin at 0, 1, 4, 4.4 and 9 s, and then at 0, 1, 2, 3 and 4 s.
    """
    path, scored = film
    other_shots = scored.shots.assign(start_s=[0.0, 1, 2, 3, 4])
    with_other_shots = replace(scored, shots=other_shots)

    assert media_paths(path, with_other_shots) != media_paths(path, scored)


@pytest.mark.long
@pytest.mark.usefixtures("empty_cache")
def test_a_film_of_which_no_shots_are_known_has_100_upright_stills_if_it_was_recorded_upright(shared_data):
    """Stills are one for each shot; without shots there are 100, at equal distances.

    The file, which has no sound, says that its pictures are to be turned by 90 degrees: so are the stills,
    which are higher than wide.
    """
    film_with_shots = fake_scored_film(n_rows=10, duration_s=3.0)
    no_shots = film_with_shots.shots.iloc[:0]
    scored = replace(film_with_shots, shots=no_shots)
    path = shared_data / "videos" / "rotated_90.mov"

    make_media(path, scored)

    facts_of_stills = json.loads(media_paths(path, scored)["media.json"].read_text("utf-8"))
    assert len(facts_of_stills["starts"]) == 100
    assert facts_of_stills["height"] > facts_of_stills["width"]


@pytest.mark.parametrize(
    ("samples", "peak"),
    [
        (np.array([[0.25, -0.5]], np.float32), 0.5),
        (np.array([[1, -32768]], np.int16), 1.0),
        (np.array([[128, 255]], np.uint8), 1.0),
        (np.array([[128, 128]], np.uint8), 0.0),
        (np.zeros((1, 0), np.int32), 0.0),
    ],
    ids=["float32", "int16", "uint8, silent at 128", "silent uint8", "no samples"],
)
def test_a_peak_is_from_0_to_1_whatever_the_type_of_the_samples(samples, peak):
    """A peak is the largest distance from silence, as a share of the largest that the type can hold."""
    assert media._peak_amplitude(samples) == pytest.approx(peak, abs=0.01)


@pytest.mark.usefixtures("empty_cache")
def test_a_broken_film_is_named_and_the_next_one_gets_its_stills(film, tmp_path):
    """Stills of two films are to be made. Of the first one only 2000 bytes are there, as of a torn copy.

    A message names its file, and the second film gets its stills all the same.
    """
    path, scored = film
    torn_film = tmp_path / "torn.mp4"
    torn_film.write_bytes(path.read_bytes()[:2000])

    messages = []
    make_media_of_films({torn_film: scored, path: scored}, messages.append)

    (message,) = messages
    assert "torn.mp4" in str(message)
    assert media_paths(path, scored)["media.json"].is_file()


@pytest.mark.usefixtures("empty_cache")
def test_a_film_opened_without_stills_gets_them_in_the_background(film, capsys):
    """The desk opens at once, and the stills appear when they are made: within a minute here."""
    path, scored = film
    paths = media_paths(path, scored)
    film_without_stills = SimpleNamespace(path=path, timeline=scored, media=paths, has_media=False)

    make_missing_media([film_without_stills])

    assert "making stills, colours and sound of 1 film" in capsys.readouterr().err
    give_up_at = time.monotonic() + 60
    while not paths["media.json"].is_file():
        assert time.monotonic() < give_up_at
        time.sleep(0.05)


def grey_of_still(data_url):
    """Return the mean grey of a picture in a data URL, "data:image/...;base64,..."."""
    _, data = data_url.split(",")
    with Image.open(io.BytesIO(b64decode(data))) as still:
        return np.asarray(still.convert("L"), dtype=float).mean()


def test_a_still_of_a_time_is_that_of_its_shot(media_of_film):
    """Each shot is of one grey: .1 s after a shot's start, the still has the grey of this shot."""
    paths, _facts = media_of_film
    sheet = StillSheet(paths)

    assert sheet.width == 96
    assert sheet.height == 54
    grey_by_start = {0.0: 20, 1.0: 70, 4.0: 120, 4.4: 170, 9.0: 220}
    for start_s, grey_of_shot in grey_by_start.items():
        still = sheet.address(start_s + 0.1)  # as a data URL
        assert grey_of_still(still) == pytest.approx(grey_of_shot, abs=4)
