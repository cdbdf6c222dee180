"""Still images: one upright RGB frame at time 0, or a reason that a person understands."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageCms, ImageDraw, PngImagePlugin

from obygaze_features.errors import VideoError
from obygaze_features.video import at, fps, is_still, keyframes, probe, read_frames, uniform
from obygaze_features.video.stills import MAX_PIXELS
from tests.video.conftest import reason_of_refusal

ORIENTATION = 0x0112
FINE_JPEG = {"quality": 100, "subsampling": 0}
TURNS = {
    1: (0, False),
    2: (0, True),
    3: (2, False),
    4: (2, True),
    5: (1, True),
    6: (1, False),
    7: (3, True),
    8: (3, False),
}
"""EXIF's orientation -> quarters by which the stored picture is turned clockwise; whether it is mirrored."""


@pytest.fixture(scope="module")
def drawing():
    """A red disc at the top left and a blue bar at the bottom of a pale sheet, 60 x 40: no symmetry."""
    image = Image.new("RGB", (60, 40), (230, 230, 200))
    draw = ImageDraw.Draw(image)
    draw.ellipse((4, 4, 20, 20), fill=(200, 30, 30))
    draw.rectangle((10, 30, 55, 36), fill=(20, 40, 180))
    return image


def read_still(path, **settings):
    """Read the one frame of an image file."""
    return read_frames(path, uniform(1), **settings)


def mean_difference(rgb, image):
    """Compute the mean difference between pixels of a frame and of an image, in levels of 255."""
    return np.abs(rgb.astype(int) - np.asarray(image)).mean()


def save(image, path, **settings) -> Path:
    image.save(path, **settings)
    return path


EXACT, NEAR = 0, 8
"""Mean differences from the drawing, of 255 levels."""


@pytest.mark.parametrize(
    ("name", "settings", "max_off"),
    [
        ("a.png", {}, EXACT),
        ("b.bmp", {}, EXACT),
        ("c.tif", {}, EXACT),
        ("d.TIFF", {}, EXACT),
        ("e.webp", {"lossless": True}, EXACT),
        ("f.jpg", {}, NEAR),
        ("g.JPEG", {}, NEAR),
        ("h.avif", {"quality": 100, "subsampling": "4:4:4"}, NEAR),
    ],
)
def test_an_image_of_every_format_is_one_frame_at_time_0(drawing, tmp_path, name, settings, max_off):
    """A drawing of 60 x 40 pixels is saved in some format, and read as a film of one picture.

    Formats without losses give the drawing exactly; those with losses are off by up to 8 of 255 levels in the
    mean.
    """
    path = save(drawing, tmp_path / name, **settings)

    frames = read_still(path)

    (picture,) = frames.images
    assert picture.dtype == np.uint8
    assert picture.shape == (40, 60, 3)
    assert picture.flags.c_contiguous
    assert mean_difference(picture, drawing) <= max_off
    assert frames.total == 1
    assert frames.index.tolist() == [0]
    assert frames.time_s.tolist() == [0.0]
    assert frames.method == "still"
    assert frames.status == "ok"
    assert frames.notes == ()
    assert probe(path).frames == 1
    assert probe(path).bytes == path.stat().st_size


def test_a_still_is_known_by_its_suffix():
    """Capital letters make no difference, and the file need not be there."""
    assert is_still("a/B.JPeG")
    assert not is_still("a.mp4")


TURNED_AND_MIRRORED = 5
"""The orientation that asks the most of a reader: a quarter turn, and then a mirror."""


@pytest.mark.parametrize(
    ("suffix", "orientation", "settings", "tolerance"),
    [
        *(pytest.param(".png", orientation, {}, 0, id=f"png-{orientation}") for orientation in TURNS),
        pytest.param(".tif", TURNED_AND_MIRRORED, {}, 0, id="tif"),
        pytest.param(".webp", TURNED_AND_MIRRORED, {"lossless": True}, 0, id="webp"),
        pytest.param(".jpg", TURNED_AND_MIRRORED, FINE_JPEG, 30, id="jpg"),
    ],
)
def test_exifs_orientation_is_applied_and_recorded(
    drawing, tmp_path, suffix, orientation, settings, tolerance
):
    """A camera stores a picture as its sensor lay, and how it was held as a number from 1 to 8 (EXIF).

    Each number means that the picture is to be turned clockwise by some quarters, and then mirrored or not.
    JPEG loses a little: pixels may be off by 30 of 255 levels.
    """
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    path = save(drawing, tmp_path / f"o{suffix}", exif=exif, **settings)
    quarters, is_mirrored = TURNS[orientation]

    frames = read_still(path)

    upright = np.rot90(np.asarray(drawing), -quarters)
    if is_mirrored:
        upright = upright[:, ::-1]
    assert np.abs(frames.images[0].astype(int) - upright).max() <= tolerance
    assert frames.rotation == 90 * quarters
    assert frames.mirrored == is_mirrored
    assert (frames.height, frames.width) == upright.shape[:2]


GREYS_OF_16_BITS = np.arange(0, 65536, 7, dtype=np.uint16)[:9000].reshape(90, 100)


@pytest.mark.parametrize(
    ("name", "convert"),
    [
        ("grey.png", lambda image: image.convert("L")),
        ("bits.png", lambda image: image.convert("1")),
        ("palette.png", lambda image: image.quantize(4)),
    ],
    ids=["grey", "bits", "palette"],
)
def test_grey_and_palettes_become_rgb_without_a_note(drawing, tmp_path, name, convert):
    """The drawing is saved in greys, in black and white, or in a palette of four colours."""
    image = convert(drawing)
    path = save(image, tmp_path / name)

    frames = read_still(path)

    np.testing.assert_array_equal(frames.images[0], np.asarray(image.convert("RGB")))
    assert frames.status == "ok"
    assert frames.notes == ()


@pytest.mark.parametrize("name", ["deep.png", "deep.tif"])
def test_grey_of_16_bits_becomes_its_upper_byte_with_a_note(tmp_path, name):
    """The lower byte, which is finer than RGB of 8 bits, is lost: a note says so."""
    path = save(Image.fromarray(GREYS_OF_16_BITS), tmp_path / name)

    frames = read_still(path)

    upper_byte = GREYS_OF_16_BITS // 256
    red_green_blue = np.stack([upper_byte, upper_byte, upper_byte], axis=2)
    np.testing.assert_array_equal(frames.images[0], red_green_blue)
    (note,) = frames.notes
    assert note.startswith("16-bit grey")
    assert frames.status == "ok"


@pytest.mark.parametrize(("name", "max_off"), [("print.tif", 1), ("print.jpg", NEAR)])
def test_printing_colours_become_rgb_with_a_note(drawing, tmp_path, name, max_off):
    """The drawing is saved in CMYK, which in JPEG is usually stored inverted, unlike in TIFF.

    It may be off by some of 255 levels in the mean.
    """
    path = save(drawing.convert("CMYK"), tmp_path / name)

    frames = read_still(path)

    assert mean_difference(frames.images[0], drawing) <= max_off
    (note,) = frames.notes
    assert note.startswith("CMYK")
    assert frames.status == "ok"


def with_alpha(image, alpha):
    return Image.fromarray(np.dstack([np.asarray(image), alpha]))


def test_an_opaque_alpha_changes_nothing(drawing, tmp_path):
    """A drawing of 60 x 40 pixels gets an alpha channel of 255, which hides nothing."""
    opaque = np.full((40, 60), 255, np.uint8)
    path = save(with_alpha(drawing, opaque), tmp_path / "opaque.png")

    frames = read_still(path)

    np.testing.assert_array_equal(frames.images[0], np.asarray(drawing))
    assert frames.notes == ()


def test_transparent_parts_of_an_image_are_laid_over_white_with_a_note(drawing, tmp_path):
    """The left half is hidden, column 30 half hidden (128 of 255), and the rest opaque."""
    alpha = np.full((40, 60), 255, np.uint8)
    alpha[:, :30] = 0
    alpha[:, 30] = 128
    path = save(with_alpha(drawing, alpha), tmp_path / "hidden.png")

    frames = read_still(path)

    (rgb,) = frames.images
    drawn = np.asarray(drawing)
    white = 255
    assert (rgb[:, :30] == white).all()
    half_drawn_half_white = drawn[:, 30] * (128 / 255) + white * (127 / 255)
    assert np.abs(rgb[:, 30] - half_drawn_half_white).max() <= 1
    np.testing.assert_array_equal(rgb[:, 31:], drawn[:, 31:])
    assert frames.notes == ("its transparent parts were laid over white",)
    assert frames.status == "ok"


def test_pixels_without_a_rule_are_refused(tmp_path):
    """Floating-point pixels (mode F of Pillow) have no stated black and white."""
    image_of_floats = Image.fromarray(np.ones((4, 4), np.float32))
    path = save(image_of_floats, tmp_path / "float.tif")

    assert "'F'" in reason_of_refusal(path)


@pytest.mark.parametrize("name", ["m.png", "m.webp", "m.tif"])
def test_an_animation_or_pages_in_an_image_file_are_refused(drawing, tmp_path, name):
    """The file has a drawing and two turned copies of it: it is not known which of the three is meant."""
    other_pictures = [drawing.rotate(90), drawing.rotate(180)]
    path = save(drawing, tmp_path / name, save_all=True, append_images=other_pictures)

    assert "3 pictures" in reason_of_refusal(path)


def test_the_first_picture_of_a_cameras_jpeg_is_the_image(drawing, tmp_path):
    """Cameras put previews behind the image in one JPEG file (MPO); here the preview is black.

    JPEG may be off by 8 of 255 levels in the mean.
    """
    preview = Image.new("RGB", (60, 40))
    path = save(drawing, tmp_path / "m.mpo", save_all=True, append_images=[preview])
    path = path.rename(tmp_path / "m.jpg")
    with Image.open(path) as image:
        assert image.format == "MPO"

    frames = read_still(path)

    assert mean_difference(frames.images[0], drawing) <= 8


@pytest.mark.parametrize("name", ["cut.png", "cut.bmp", "cut.tif", "cut.webp", "cut.jpg"])
@pytest.mark.parametrize("share_that_is_left", [0.02, 0.3, 0.6, 0.9])
def test_a_cut_off_image_is_refused_wherever_it_is_cut(tmp_path, name, share_that_is_left):
    """A part of the bytes of a picture of noise is left.

    With its header it is "the image is ..." cut off or damaged; without, it is no image.
    """
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8))
    path = save(noise, tmp_path / name)
    whole = path.read_bytes()
    n_bytes_left = int(share_that_is_left * len(whole))
    path.write_bytes(whole[:n_bytes_left])

    reason = reason_of_refusal(path)

    assert reason.startswith(("the image is", "this is no image"))


@pytest.mark.long
def test_a_damaged_image_gives_a_frame_or_a_reason(drawing, tmp_path):
    """Sixty times for each format, 4 of the first 400 bytes of a good file are changed at random.

    Any other error than VideoError fails the test. More than two outcomes show that the damages differ.
    """
    rng = np.random.default_rng(1)
    statuses_and_reasons = set()
    for name in ("d.png", "d.bmp", "d.tif", "d.webp", "d.jpg"):
        whole = save(drawing, tmp_path / name, exif=Image.Exif()).read_bytes()
        for _trial in range(60):
            damaged = bytearray(whole)
            for position in rng.integers(0, min(len(whole), 400), 4):
                damaged[position] = int(rng.integers(256))
            (tmp_path / name).write_bytes(damaged)
            try:
                statuses_and_reasons.add(read_still(tmp_path / name).status)
            except VideoError as error:
                statuses_and_reasons.add(error.reason)

    assert len(statuses_and_reasons) > 2


@pytest.mark.parametrize(
    ("side", "words"),
    [(10_000, "10000 x 10000, that is more than"), (60_000, "several times more than")],
)
def test_an_image_that_claims_too_many_pixels_is_not_opened(tmp_path, side, words):
    """A file of a few bytes can claim a size that fills the memory when it is decoded."""
    path = save(Image.new("1", (8, 8)), tmp_path / "bomb.png")
    data = bytearray(path.read_bytes())
    data[16:24] = struct.pack(">II", side, side)  # width and height in the header of a PNG
    data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))  # the checksum of the header
    path.write_bytes(data)

    reason = reason_of_refusal(path)

    assert words in reason
    assert f"{MAX_PIXELS:,} pixels" in reason  # how many are allowed


def test_a_file_that_is_no_image_is_refused_by_what_it_is(numbered_films, tmp_path):
    """Four files have the suffix of an image: one is not there, and three hold something else."""
    absent = tmp_path / "none.png"
    empty = tmp_path / "empty.png"
    empty.write_bytes(b"")
    text = tmp_path / "text.png"
    text.write_bytes(b"clip_id,movie\n")
    film = tmp_path / "film.jpg"
    film.write_bytes(numbered_films["b1.mp4"].read_bytes())

    assert reason_of_refusal(absent) == "there is no such file"
    assert reason_of_refusal(empty) == "the file is empty (0 bytes)"
    assert "no image" in reason_of_refusal(text)
    assert "no image" in reason_of_refusal(film)


@pytest.mark.parametrize(
    ("name", "brand"),
    [("a.heic", "avif"), ("a.mp4", "heic"), ("a.heic", "mif2"), ("a.hif", "heis")],
    ids=["by its suffix", "by its brand", "of a new brand", "of several layers"],
)
def test_a_heif_picture_is_not_read_as_a_film(drawing, tmp_path, name, brand):
    """FFmpeg would read a HEIF picture as a film, and give one tile of a picture that is made of tiles.

    So such a file is refused: by its suffix, or by its brand, which says in the first box (ftyp) what the
    file is. The pictures here are AVIF, a kind of HEIF, under other brands.
    """
    path = tmp_path / name
    drawing.save(path, "AVIF")
    data = path.read_bytes().replace(b"ftypavif", b"ftyp" + brand.encode(), 1)
    path.write_bytes(data)

    with pytest.raises(VideoError, match="HEIF picture"):
        read_frames(path, uniform(1))


def test_an_animation_in_avif_is_read_as_a_film(tmp_path):
    """The animation has four grey pictures of half a second each, which its codec changes by a few levels."""
    greys = [40, 90, 140, 190]
    first, *others = [Image.new("RGB", (64, 48), (grey, grey, grey)) for grey in greys]
    path = tmp_path / "a.avif"
    first.save(path, save_all=True, append_images=others, duration=500)

    frames = read_frames(path, uniform(4))

    greys_to_the_nearest_ten = [round(float(picture.mean()), -1) for picture in frames.images]
    assert greys_to_the_nearest_ten == greys
    assert frames.time_s.tolist() == [0.0, 0.5, 1.0, 1.5]
    assert probe(path).frames == 4


def test_one_picture_in_avif_is_a_still(tmp_path):
    """The same kind of file may hold an animation, which is read as a film."""
    path = tmp_path / "a.avif"
    Image.new("RGB", (64, 48), (40, 40, 40)).save(path)

    frames = read_frames(path, uniform(1))

    assert frames.method == "still"
    assert probe(path).frames == 1


def test_one_frame_of_a_picture_can_be_asked_for_by_any_sampling(drawing, tmp_path):
    """By its number, by 25 frames a second, or as one key frame: it is the only one, frame 0."""
    picture = save(drawing, tmp_path / "a.png")

    for sampling in (at([0]), fps(rate=25), keyframes(1)):
        assert read_frames(picture, sampling).index.tolist() == [0]


def test_more_frames_of_a_picture_or_a_span_of_it_are_refused(drawing, tmp_path):
    """A picture has one frame, number 0, and no times."""
    picture = save(drawing, tmp_path / "a.png")

    assert "32 are asked" in reason_of_refusal(picture, uniform(32))
    assert "2 are asked" in reason_of_refusal(picture, keyframes(2))
    assert "frame 1 is not among" in reason_of_refusal(picture, at([1]))
    assert "no span" in reason_of_refusal(picture, start_s=0.0, end_s=1.0)


@pytest.mark.parametrize(("space", "is_noted"), [("sRGB", False), ("XYZ", True)])
@pytest.mark.parametrize("name", ["p.jpg", "p.png", "p.tif", "p.webp"])
def test_a_colour_profile_of_another_space_than_srgb_is_noted(drawing, tmp_path, name, space, is_noted):
    """Profiles are not applied, so colours of another space are a little wrong."""
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile(space)).tobytes()
    path = tmp_path / name
    drawing.save(path, icc_profile=profile)

    notes = read_still(path).notes

    has_note = any("ICC" in note for note in notes)
    assert has_note == is_noted


def png_gamma(inverse: float) -> bytes:
    """Make the content of a chunk gAMA: 1 / gamma, in 100,000ths."""
    return struct.pack(">I", round(inverse * 100_000))


def png_primaries(red, green, blue) -> bytes:
    """Make the content of a chunk cHRM: x and y of the white of D65 and of the primaries, in 100,000ths."""
    white = (0.3127, 0.3290)
    coordinates = (*white, *red, *green, *blue)
    return struct.pack(">8I", *(round(value * 100_000) for value in coordinates))


PRIMARIES_OF_SRGB = png_primaries(red=(0.64, 0.33), green=(0.30, 0.60), blue=(0.15, 0.06))
PRIMARIES_OF_DISPLAY_P3 = png_primaries(red=(0.68, 0.32), green=(0.265, 0.69), blue=(0.15, 0.06))
GAMMA_OF_SRGB = png_gamma(inverse=0.45455)
LINEAR_LIGHT = png_gamma(inverse=1.0)


@pytest.mark.parametrize(
    ("kind_of_chunk", "content", "word"),
    [
        (b"gAMA", LINEAR_LIGHT, "gamma"),
        (b"cICP", bytes([9, 16, 0, 1]), "PQ"),  # primaries of BT.2020, PQ, RGB, full range
        (b"cHRM", PRIMARIES_OF_DISPLAY_P3, "primaries"),
    ],
)
def test_colours_that_a_png_states_and_nothing_applies_are_noted(
    drawing, tmp_path, kind_of_chunk, content, word
):
    """A PNG may state what light its numbers stand for: a gamma, primaries, a transfer function (PQ).

    Pictures are decoded as if it did not. So a note says what was stated and is not applied.
    """
    notes = notes_of_png(drawing, tmp_path, {kind_of_chunk: content})

    assert any(word in note for note in notes)


@pytest.mark.parametrize(
    "chunks",
    [
        {b"gAMA": GAMMA_OF_SRGB},
        {b"cHRM": PRIMARIES_OF_SRGB},
        {b"sRGB": b"\0", b"gAMA": LINEAR_LIGHT},
    ],
    ids=["by gamma", "by primaries", "by the chunk sRGB, which overrides another gamma"],
)
def test_a_png_that_states_srgb_has_no_notes(drawing, tmp_path, chunks):
    """RGB is taken for sRGB, so there is nothing to note."""
    notes = notes_of_png(drawing, tmp_path, chunks)

    assert notes == ()


def notes_of_png(drawing, folder, chunks):
    """Save a drawing as PNG with chunks, type -> content; return the notes of reading it."""
    info = PngImagePlugin.PngInfo()
    for kind, data in chunks.items():
        info.add(kind, data)
    drawing.save(folder / "stated.png", pnginfo=info)
    return read_still(folder / "stated.png").notes
