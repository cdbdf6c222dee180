"""Still images: one upright RGB frame at time 0, or a reason that a person understands."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageCms, ImageDraw, PngImagePlugin

from obygaze_features.errors import VideoError
from obygaze_features.video import at, fps, is_still, keyframes, probe, read_frames, uniform
from obygaze_features.video.stills import MOST_PIXELS
from tests.video.conftest import refused

ORIENTATION = 0x0112
# What each EXIF orientation does to the picture that is stored: turns clockwise, mirrored after that.
TURNS = {1: (0, 0), 2: (0, 1), 3: (2, 0), 4: (2, 1), 5: (1, 1), 6: (1, 0), 7: (3, 1), 8: (3, 0)}


@pytest.fixture(scope="module")
def drawing():
    """A red disc at the top left and a blue bar at the bottom of a pale sheet, 60 x 40: no symmetry."""
    image = Image.new("RGB", (60, 40), (230, 230, 200))
    draw = ImageDraw.Draw(image)
    draw.ellipse((4, 4, 20, 20), fill=(200, 30, 30))
    draw.rectangle((10, 30, 55, 36), fill=(20, 40, 180))
    return image


def one(path, **settings):
    return read_frames(path, uniform(1), **settings)


def difference(rgb, image):
    return np.abs(rgb.astype(int) - np.asarray(image)).mean()


def kept(image, path, **settings) -> Path:
    image.save(path, **settings)
    return path


@pytest.mark.parametrize("name", ["a.png", "b.bmp", "c.tif", "d.TIFF", "e.webp", "f.jpg", "g.JPEG", "h.avif"])
def test_every_format_gives_one_frame_at_time_0(drawing, tmp_path, name):
    settings = {".webp": {"lossless": True}, ".avif": {"quality": 100, "subsampling": "4:4:4"}}
    path = kept(drawing, tmp_path / name, **settings.get(Path(name).suffix, {}))
    frames = one(path)
    (rgb,) = frames.images
    assert (rgb.dtype, rgb.shape) == (np.uint8, (40, 60, 3))
    assert rgb.flags.c_contiguous
    assert (frames.index.tolist(), frames.time_s.tolist()) == ([0], [0.0])
    assert (frames.status, frames.notes, frames.method, frames.total) == ("ok", (), "still", 1)
    lossy = path.suffix.lower() in {".jpg", ".jpeg", ".avif"}
    assert difference(rgb, drawing) <= (8 if lossy else 0)
    assert probe(path).frames == 1
    assert probe(path).bytes == path.stat().st_size


def test_a_still_is_known_by_its_suffix():
    assert is_still("a/B.JPeG")
    assert not is_still("a.mp4")


@pytest.mark.parametrize("orientation", TURNS)
@pytest.mark.parametrize("suffix", [".png", ".tif", ".webp", ".jpg"])
def test_exifs_orientation_is_applied_and_recorded(drawing, tmp_path, orientation, suffix):
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    more = {".webp": {"lossless": True}, ".jpg": {"quality": 100, "subsampling": 0}}.get(suffix, {})
    frames = one(kept(drawing, tmp_path / f"o{suffix}", exif=exif, **more))
    turns, mirrored = TURNS[orientation]
    expected = np.rot90(np.asarray(drawing), -turns)
    expected = expected[:, ::-1] if mirrored else expected
    assert np.abs(frames.images[0].astype(int) - expected).max() <= (30 if suffix == ".jpg" else 0)
    assert (frames.rotation, frames.mirrored) == (90 * turns, bool(mirrored))
    assert (frames.height, frames.width) == expected.shape[:2]


DEEP = np.arange(0, 65536, 7, dtype=np.uint16)[:9000].reshape(90, 100)


@pytest.mark.parametrize(
    ("make", "name", "expected", "note"),
    [
        (lambda image: image.convert("L"), "grey.png", lambda image: image.convert("RGB"), None),
        (lambda image: image.convert("1"), "bits.png", lambda image: image.convert("RGB"), None),
        (lambda image: image.quantize(4), "palette.png", lambda image: image.convert("RGB"), None),
        (lambda _: Image.fromarray(DEEP), "deep.png", lambda _: DEEP[..., None] >> 8, "16-bit grey"),
        (lambda _: Image.fromarray(DEEP), "deep.tif", lambda _: DEEP[..., None] >> 8, "16-bit grey"),
        (lambda image: image.convert("CMYK"), "print.tif", lambda image: image.convert("RGB"), "CMYK"),
    ],
)
def test_pixels_of_every_kind_become_rgb(drawing, tmp_path, make, name, expected, note):
    image = make(drawing)
    frames = one(kept(image, tmp_path / name))
    rounding = 2 if note == "CMYK" else 0
    assert np.abs(frames.images[0].astype(int) - np.asarray(expected(image))).max() <= rounding
    assert frames.status == "ok"
    assert [one.startswith(note) for one in frames.notes] == ([True] if note else [])


def test_a_jpeg_of_printing_colours_is_not_inverted(drawing, tmp_path):
    frames = one(kept(drawing.convert("CMYK"), tmp_path / "print.jpg", quality=95))
    assert difference(frames.images[0], drawing) <= 8
    assert [note.startswith("CMYK") for note in frames.notes] == [True]


def test_transparency_is_laid_over_white_and_an_opaque_alpha_changes_nothing(drawing, tmp_path):
    alpha = np.full((40, 60), 255, np.uint8)
    opaque = Image.fromarray(np.dstack([np.asarray(drawing), alpha]))
    frames = one(kept(opaque, tmp_path / "opaque.png"))
    np.testing.assert_array_equal(frames.images[0], np.asarray(drawing))
    assert frames.notes == ()
    alpha[:, :30] = 0
    alpha[:, 30] = 128
    hidden = Image.fromarray(np.dstack([np.asarray(drawing), alpha]))
    frames = one(kept(hidden, tmp_path / "hidden.png"))
    (rgb,) = frames.images
    assert (rgb[:, :30] == 255).all()
    np.testing.assert_array_equal(rgb[:, 31:], np.asarray(drawing)[:, 31:])
    half = np.asarray(drawing)[:, 30] * (128 / 255) + 255 * (127 / 255)
    assert np.abs(rgb[:, 30] - half).max() <= 1
    assert frames.notes == ("its transparent parts were laid over white",)
    assert frames.status == "ok"


def test_pixels_without_a_rule_are_refused(tmp_path):
    path = kept(Image.fromarray(np.ones((4, 4), np.float32)), tmp_path / "float.tif")
    assert "'F'" in refused(path)


@pytest.mark.parametrize("name", ["m.png", "m.webp", "m.tif"])
def test_what_moves_or_has_pages_is_refused(drawing, tmp_path, name):
    path = kept(
        drawing, tmp_path / name, save_all=True, append_images=[drawing.rotate(turn) for turn in (90, 180)]
    )
    assert "3 pictures" in refused(path)


def test_of_a_cameras_jpeg_with_more_pictures_the_first_is_the_image(drawing, tmp_path):
    path = kept(drawing, tmp_path / "m.mpo", save_all=True, append_images=[Image.new("RGB", (60, 40))])
    path = path.rename(tmp_path / "m.jpg")
    with Image.open(path) as image:
        assert image.format == "MPO"
    assert difference(one(path).images[0], drawing) <= 8


@pytest.mark.parametrize("name", ["cut.png", "cut.bmp", "cut.tif", "cut.webp", "cut.jpg"])
def test_a_cut_off_image_is_refused_wherever_it_is_cut(tmp_path, name):
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8))
    data = kept(noise, tmp_path / name).read_bytes()
    path = tmp_path / name
    reasons = set()
    for share in (0.02, 0.3, 0.6, 0.9):
        path.write_bytes(data[: int(share * len(data))])
        reasons.add(refused(path))
    assert all(reason.startswith(("the image is", "this is no image")) for reason in reasons)


def test_damage_ends_in_a_frame_or_a_reason(drawing, tmp_path):
    rng = np.random.default_rng(1)
    outcomes = set()
    for name in ("d.png", "d.bmp", "d.tif", "d.webp", "d.jpg"):
        data = kept(drawing, tmp_path / name, exif=Image.Exif()).read_bytes()
        for _ in range(60):
            broken = bytearray(data)
            for position in rng.integers(0, min(len(data), 400), 4):
                broken[position] = int(rng.integers(256))
            (tmp_path / name).write_bytes(broken)
            try:
                outcomes.add(one(tmp_path / name).status)
            except VideoError as error:
                outcomes.add(error.reason)
    assert len(outcomes) > 2


def test_a_bomb_is_not_opened(tmp_path):
    for side, words in ((10_000, "10000 x 10000, that is more than"), (60_000, "several times more than")):
        path = kept(Image.new("1", (8, 8)), tmp_path / "bomb.png")
        data = bytearray(path.read_bytes())
        data[16:24] = struct.pack(">II", side, side)
        data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
        path.write_bytes(data)
        assert words in refused(path)
        assert f"{MOST_PIXELS:,} pixels" in refused(path)


def test_no_file_text_and_a_film_by_another_name(films, tmp_path):
    assert refused(tmp_path / "none.png") == "there is no such file"
    for name, data in (("a.png", b"clip_id,movie\n"), ("b.jpg", films["b1.mp4"].read_bytes())):
        (tmp_path / name).write_bytes(data)
        assert "no image" in refused(tmp_path / name)
    (tmp_path / "empty.png").write_bytes(b"")
    assert refused(tmp_path / "empty.png") == "the file is empty (0 bytes)"


@pytest.mark.parametrize(
    ("name", "brand"), [("a.heic", "avif"), ("a.mp4", "heic"), ("a.heic", "mif2"), ("a.hif", "heis")]
)
def test_a_picture_of_heif_is_no_film(drawing, tmp_path, name, brand):
    """FFmpeg gives one tile of those that are made of tiles."""
    drawing.save(tmp_path / name, "AVIF")
    data = (tmp_path / name).read_bytes().replace(b"ftypavif", b"ftyp" + brand.encode(), 1)
    (tmp_path / name).write_bytes(data)
    with pytest.raises(VideoError, match="HEIF picture"):
        read_frames(tmp_path / name, uniform(1))


def test_an_animation_in_avif_is_read_as_a_film(tmp_path):
    greys = [40, 90, 140, 190]
    first, *others = [Image.new("RGB", (64, 48), (grey,) * 3) for grey in greys]
    path = tmp_path / "a.avif"
    first.save(path, save_all=True, append_images=others, duration=500)
    frames = read_frames(path, uniform(4))
    assert [round(float(picture.mean()), -1) for picture in frames.images] == greys
    assert frames.time_s.tolist() == [0.0, 0.5, 1.0, 1.5]
    assert probe(path).frames == 4
    first.save(path)
    assert (probe(path).frames, read_frames(path, uniform(1)).method) == (1, "still")


def test_several_frames_or_a_span_are_never_made_of_one_picture(drawing, tmp_path):
    path = kept(drawing, tmp_path / "a.png")
    for sampling in (uniform(32), keyframes(2)):
        assert f"{sampling.n} are asked" in refused(path, sampling)
    assert "frame 1 is not among" in refused(path, at([1]))
    assert "no span" in refused(path, start_s=0.0, end_s=1.0)
    for sampling in (at([0]), fps(25), keyframes(1)):
        assert read_frames(path, sampling).index.tolist() == [0]


@pytest.mark.parametrize("name", ["p.jpg", "p.png", "p.tif", "p.webp"])
def test_a_profile_of_another_space_than_srgb_is_noted(drawing, tmp_path, name):
    for space, is_noted in (("sRGB", False), ("XYZ", True)):
        profile = ImageCms.ImageCmsProfile(ImageCms.createProfile(space)).tobytes()
        drawing.save(tmp_path / name, icc_profile=profile)
        assert any("ICC" in note for note in one(tmp_path / name).notes) == is_noted


@pytest.mark.parametrize(
    ("kind", "data", "word"),
    [
        (b"gAMA", struct.pack(">I", 100_000), "gamma"),
        (b"cICP", bytes([9, 16, 0, 1]), "PQ"),
        (b"cHRM", struct.pack(">8I", 31270, 32900, 68000, 32000, 26500, 69000, 15000, 6000), "primaries"),
    ],
)
def test_colours_that_a_png_states_and_nothing_applies_are_noted(drawing, tmp_path, kind, data, word):
    notes = notes_of_png(drawing, tmp_path, {kind: data})
    assert any(word in note for note in notes)


@pytest.mark.parametrize(
    "chunks",
    [
        {b"gAMA": struct.pack(">I", 45_455)},
        {b"cHRM": struct.pack(">8I", 31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000)},
        {b"sRGB": b"\0", b"gAMA": struct.pack(">I", 100_000)},  # the first goes before
    ],
)
def test_a_png_that_states_srgb_has_no_notes(drawing, tmp_path, chunks):
    assert not notes_of_png(drawing, tmp_path, chunks)


def notes_of_png(drawing, folder, chunks):
    """Save a drawing as PNG with chunks, type -> content; return the notes of reading it."""
    info = PngImagePlugin.PngInfo()
    for kind, data in chunks.items():
        info.add(kind, data)
    drawing.save(folder / "stated.png", pnginfo=info)
    return one(folder / "stated.png").notes
