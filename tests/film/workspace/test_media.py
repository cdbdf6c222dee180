"""Stills, colours and peaks of a film: of the right shots, made once, known by content, private."""

import io
import json
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

from obygaze_film.commands.film_open import make_media_of_films, make_missing_media
from obygaze_film.workspace import media
from obygaze_film.workspace.media import STILLS_IN_ROW, StillSheet, make_media, media_paths
from tests.film.page.invented import invented_film

SHOTS = (0.0, 1.0, 4.0, 4.4, 9.0)
"""Starts in seconds. Each shot has a grey of its own, 20, 70, 120, ...; the one of 0.4 s has no key frame."""


@pytest.fixture
def film(tmp_path):
    """Ten seconds with sound in the last half: the file, and the film as it was scored."""
    path = tmp_path / "film.mp4"
    with av.open(str(path), "w") as made:
        video = made.add_stream("libx264", rate=25, options={"g": "50", "sc_threshold": "0", "bf": "2"})
        video.width, video.height, video.pix_fmt = 160, 90, "yuv420p"
        audio = made.add_stream("aac", rate=48_000, layout="mono")
        for number in range(250):
            grey = 20 + 50 * (np.searchsorted(SHOTS, number / 25, side="right") - 1)
            picture = np.full((90, 160, 3), grey, np.uint8)
            made.mux(video.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
        made.mux(video.encode(None))
        wave = 0.5 * np.sin(np.arange(480_000) / 20) * (np.arange(480_000) >= 240_000)
        frame = av.AudioFrame.from_ndarray(wave[None].astype(np.float32), "fltp", "mono")
        frame.sample_rate, frame.pts, frame.time_base = 48_000, 0, Fraction(1, 48_000)
        made.mux(audio.encode(frame))
        made.mux(audio.encode(None))
    table = pd.DataFrame({"start_s": SHOTS, "end_s": (*SHOTS[1:], 10.0), "flags": ""})
    return path, replace(invented_film(n_rows=10, duration_s=10.0), shots=table)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The folder in which stills, colours and peaks are kept."""
    monkeypatch.setattr(media, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def made(film):
    """The paths of what is made of the film, and what media.json says."""
    path, scored = film
    make_media(path, scored)
    paths = media_paths(path, scored)
    return paths, json.loads(paths["media.json"].read_text("utf-8"))


def test_each_shot_has_its_own_still(made):
    """Stills lie beside each other on a sheet, 96 by 54 pixels each."""
    paths, about = made
    assert (about["starts"], about["width"], about["height"]) == (list(SHOTS), 96, 54)
    with Image.open(paths["stills.webp"]) as sheet:
        pixels = np.asarray(sheet.convert("L"), dtype=float)
    assert pixels.shape == (54, 96 * STILLS_IN_ROW)
    greys = [pixels[:, 96 * place : 96 * (place + 1)].mean() for place in range(len(SHOTS))]
    assert greys == pytest.approx([20, 70, 120, 170, 220], abs=6)


def test_colours_go_from_the_first_shots_to_the_last_shots(made):
    """Each shot is lighter than the one before; a column may be a mean over several."""
    paths, _ = made
    with Image.open(paths["colours.png"]) as colours:
        line = np.asarray(colours.convert("L"), dtype=float)[0]
    assert (line[0], line[-1]) == pytest.approx((20, 170), abs=60)
    assert np.all(np.diff(line) > -10)


def test_peaks_of_the_sound_are_where_there_is_any(made):
    """Sound is from 5 s on. Of each hundred peaks the largest is looked at: forty of the film."""
    _, about = made
    peaks = np.array(about["peaks"]).reshape(-1, 100).max(axis=1)
    assert peaks[:18].max() < 30
    assert peaks[22:].min() > 90


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such rights")
@pytest.mark.usefixtures("made")
def test_only_the_owner_reads_what_is_made(cache):
    assert cache.stat().st_mode & 0o777 == 0o700


def test_media_are_made_once_and_found_again_where_the_film_was_moved(film, tmp_path, monkeypatch):
    path, scored = film
    make_media(path, scored)
    moved = path.rename(tmp_path / "moved.mp4")
    monkeypatch.setattr(media, "read_frames", None)
    make_media(moved, scored)
    other = replace(scored, shots=scored.shots.assign(start_s=[0.0, 1, 2, 3, 4]))
    assert media_paths(moved, other) != media_paths(moved, scored)


def test_a_film_without_shots_or_sound_has_stills_all_the_same(shared_data):
    scored = invented_film(n_rows=10, duration_s=3.0)
    scored = replace(scored, shots=scored.shots.iloc[:0])
    path = shared_data / "videos" / "rotated_90.mov"
    make_media(path, scored)
    about = json.loads(media_paths(path, scored)["media.json"].read_text("utf-8"))
    assert len(about["starts"]) == 100
    assert about["height"] > about["width"]  # upright


@pytest.mark.parametrize(
    ("samples", "most"),
    [
        (np.array([[0.25, -0.5]], np.float32), 0.5),
        (np.array([[1, -32768]], np.int16), 1.0),
        (np.array([[128, 255]], np.uint8), 1.0),
        (np.array([[128, 128]], np.uint8), 0.0),
        (np.zeros((1, 0), np.int32), 0.0),
    ],
)
def test_sound_is_as_loud_whatever_its_numbers(samples, most):
    assert media._peak_amplitude(samples) == pytest.approx(most, abs=0.01)


def test_what_cannot_be_decoded_is_said_and_the_next_film_gets_its_stills(film, tmp_path):
    path, scored = film
    torn, said = tmp_path / "torn.mp4", []
    torn.write_bytes(path.read_bytes()[:2000])
    make_media_of_films({torn: scored, path: scored}, said.append)
    assert len(said) == 1
    assert "torn.mp4" in str(said[0])
    assert media_paths(path, scored)["media.json"].is_file()


def test_a_film_opened_without_stills_gets_them_in_the_background(film, capsys):
    path, scored = film
    paths = media_paths(path, scored)
    make_missing_media([SimpleNamespace(path=path, timeline=scored, media=paths)])
    assert "making stills, colours and sound of 1 film" in capsys.readouterr().err
    given_up_at = time.monotonic() + 60
    while not paths["media.json"].is_file() and time.monotonic() < given_up_at:
        time.sleep(0.05)
    assert paths["media.json"].is_file()


def test_a_still_of_a_time_is_that_of_its_shot(film):
    path, scored = film
    make_media(path, scored)
    sheet = StillSheet(media_paths(path, scored))
    assert (sheet.width, sheet.height) == (96, 54)
    for number, start_s in enumerate(SHOTS):
        address = sheet.address(start_s + 0.1)
        with Image.open(io.BytesIO(b64decode(address.partition(",")[2]))) as still:
            assert np.asarray(still.convert("L"), dtype=float).mean() == pytest.approx(
                20 + 50 * number, abs=4
            )
