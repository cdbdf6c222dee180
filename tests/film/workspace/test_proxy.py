"""Copies for the browser: the film's own times, with varying rates, late starts and edit lists."""

from fractions import Fraction
from types import SimpleNamespace

import av
import numpy as np
import pytest
from PIL import Image

from obygaze_features.video import opened, read_frames, uniform
from obygaze_film.workspace import proxy
from obygaze_film.workspace.proxy import (
    _Pictures,
    content_key,
    make_proxy,
    needs_copy,
    proxy_path,
    remade_part,
)
from tests.video.encoding import encode
from tests.video.test_stream import clean_aperture_box, with_box


def times_of(path):
    """Return the times of a film's pictures in seconds, as they are decoded."""
    with opened(path) as source:
        frames = source.container.decode(source.stream)
        return np.array(
            [float(frame.pts * frame.time_base - source.origin) for frame in frames if frame.pts is not None]
        )


def noise_frame(rng, time_ms):
    """Make a picture of 64 by 48 pixels of noise.

    In yuv420p 48 lines of brightness are followed by 24 with both halves of colour: 72 lines of 64 bytes.
    """
    frame = av.VideoFrame.from_ndarray(rng.integers(0, 255, (48 + 24, 64), np.uint8), "yuv420p")
    frame.pts = int(time_ms)
    frame.time_base = Fraction(1, 1000)
    return frame


def two_seconds_of_silence():
    """Make one frame of sound that is silent."""
    rate = 48_000
    frame = av.AudioFrame.from_ndarray(np.zeros((1, 2 * rate), np.float32), "fltp", "mono")
    frame.sample_rate = rate
    frame.pts = 0
    frame.time_base = Fraction(1, rate)
    return frame


def film_with_sounds(path, codec, times_ms, *sounds):
    """Encode pictures of noise at these times, beside two seconds of silence by each codec of sound."""
    rng = np.random.default_rng(0)
    with av.open(str(path), "w") as container:
        video = container.add_stream(codec, rate=25)
        video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
        video.time_base = video.codec_context.time_base = Fraction(1, 1000)
        tracks = [container.add_stream(name, rate=48_000, layout="mono") for name in sounds]
        for time_ms in times_ms:
            container.mux(video.encode(noise_frame(rng, time_ms)))
        container.mux(video.encode(None))
        for track in tracks:
            container.mux(track.encode(two_seconds_of_silence()))
            container.mux(track.encode(None))
    return path


def uneven_times_ms(first_ms, n):
    """Draw times of pictures that are 20 to 139 ms apart."""
    return np.cumsum([first_ms, *np.random.default_rng(0).integers(20, 140, n - 1)])


def ignore_progress(_seconds):
    """Take the seconds that are copied, and do nothing with them."""


@pytest.mark.parametrize("codec", ["mpeg2video", "libx264"], ids=["encoded anew", "copied"])
def test_a_copy_of_a_film_that_begins_late_begins_at_0(tmp_path, codec):
    """Times are counted from the first picture, in the film and in its copy.

    The film's 50 pictures, 25 a second, begin at 10 s, as recordings from the air do. The last one is
    49/25 s after the first.
    """
    pictures = (np.full((48, 64, 3), 5 * number, np.uint8) for number in range(50))
    film = encode(tmp_path / "late.ts", pictures, codec, times=range(10 * 25, 10 * 25 + 50))
    copy = tmp_path / "copy.mp4"

    reported_seconds = []
    make_proxy(film, copy, reported_seconds.append)

    assert np.abs(times_of(film) - times_of(copy)).max() < 0.001
    assert max(reported_seconds) == pytest.approx(49 / 25)


def test_pictures_of_a_copy_have_the_films_times(tmp_path, monkeypatch):
    """Decisions are on times of the film, so that each picture of the copy must be at its time.

    The 61 times are uneven, the first at .5 s, behind sound that starts at 0: MP4 has an edit list for
    it.
    """
    monkeypatch.setattr(proxy, "cache_folder", lambda: tmp_path / "cache")
    film = film_with_sounds(tmp_path / "uneven.mp4", "mpeg4", uneven_times_ms(first_ms=500, n=61), "aac")

    reported_seconds = []
    make_proxy(film, proxy_path(film), reported_seconds.append)

    times_of_film = times_of(film)
    times_of_copy = times_of(proxy_path(film))
    assert times_of_film[0] > 0.4
    assert len(times_of_film) == 61
    assert len(times_of_copy) == 61
    assert np.abs(times_of_film - times_of_copy).max() < 0.001
    assert reported_seconds == sorted(reported_seconds)


def times_of_sound(path):
    """Return the times of the frames of a film's first sound, in seconds."""
    with av.open(str(path)) as container:
        return [float(frame.time) for frame in container.decode(audio=0)]


@pytest.mark.long  # transcodes films
@pytest.mark.parametrize(("name", "decoder_delay_s"), [("flipping_a_pancake.mkv", 0.0), ("test.avi", 1 / 25)])
def test_pictures_and_sound_of_a_copy_of_a_real_film_have_its_times(
    tmp_path, shared_data, name, decoder_delay_s
):
    """A copy in MP4 of an MKV or AVI shows each picture at the film's own time, and ends with its sound.

    FFmpeg, which reads the film here, shifts all times of an AVI by a frame of 1/25 s. The copy must not have
    this shift.
    """
    film = shared_data / "videos" / name
    copy = tmp_path / "copy.mp4"
    assert needs_copy(film)

    make_proxy(film, copy, ignore_progress)

    times_of_film = np.sort(times_of(film)) - decoder_delay_s
    assert np.abs(times_of_film - times_of(copy)).max() < 0.01
    end_of_sound_s = times_of_sound(film)[-1]
    end_of_sound_of_copy_s = times_of_sound(copy)[-1]
    assert end_of_sound_of_copy_s == pytest.approx(end_of_sound_s, abs=0.1)


@pytest.fixture
def films_encoded_anew(monkeypatch):
    """Record of which films the pictures are encoded anew, and encode them."""
    films = []
    transcode = proxy._transcode

    def record_and_transcode(film, *arguments):
        films.append(film)
        return transcode(film, *arguments)

    monkeypatch.setattr(proxy, "_transcode", record_and_transcode)
    return films


@pytest.mark.parametrize("first_ms", [0, 500], ids=["begins at 0", "begins at 0.5 s"])
@pytest.mark.parametrize(
    ("codec_of_film", "sound_of_film", "unplayable_part"),
    [("libx264", "aac", "container"), ("libx264", "ac3", "sound"), ("mpeg4", "aac", "pictures")],
)
def test_only_the_part_that_browsers_do_not_play_is_encoded_anew(
    tmp_path, films_encoded_anew, codec_of_film, sound_of_film, unplayable_part, first_ms
):
    """Browsers play no MKV file, no sound in AC-3 and no pictures in MPEG-4 Part 2: such a film is copied.

    To encode pictures anew is slow and loses quality, so their bytes are copied where browsers play them;
    sound is always AAC in a copy. The copy keeps the times of the film's 61 pictures, which are uneven.
    """
    times_ms = uneven_times_ms(first_ms, n=61)
    film = film_with_sounds(tmp_path / "film.mkv", codec_of_film, times_ms, sound_of_film)
    copy = tmp_path / "copy.mp4"
    assert remade_part(film) == unplayable_part
    assert codec_of_sound(film) == sound_of_film

    make_proxy(film, copy, ignore_progress)

    assert not needs_copy(copy)
    assert codec_of_sound(copy) == "aac"
    largest_shift_s = np.abs(times_of(film) - times_of(copy)).max()
    assert largest_shift_s < 0.002
    if unplayable_part == "pictures":
        assert len(films_encoded_anew) == 1
        assert n_bytes_of_pictures(copy) != n_bytes_of_pictures(film)
    else:
        assert films_encoded_anew == []
        assert n_bytes_of_pictures(copy) == n_bytes_of_pictures(film)


def n_bytes_of_pictures(path):
    """Return the size of all encoded pictures: a copy of the same bytes has the same size."""
    with av.open(str(path)) as container:
        return sum(len(bytes(packet)) for packet in container.demux(video=0))


def codec_of_sound(path):
    with av.open(str(path)) as container:
        return container.streams.audio[0].codec_context.codec.canonical_name


def test_a_film_is_known_by_its_content_alone(tmp_path, shared_data):
    """Copies are kept by a key of the film's bytes, whatever its path, and never shown for another film."""
    film = shared_data / "videos" / "arm_wrestling.mp4"
    moved_film = tmp_path / "moved.mp4"
    moved_film.write_bytes(film.read_bytes())
    with_another_last_byte = tmp_path / "changed.mp4"
    with_another_last_byte.write_bytes(film.read_bytes()[:-1] + b"x")
    empty_file = tmp_path / "empty"
    empty_file.touch()

    assert content_key(moved_film) == content_key(film)
    different_keys = {content_key(film), content_key(with_another_last_byte), content_key(empty_file)}
    assert len(different_keys) == 3


def test_a_dvd_s_folder_is_the_film_of_all_its_files(tmp_path):
    """A film on a DVD is cut into files, which belong together.

    The key of the folder, and of its first file, is that of all files together.
    """
    dvd = tmp_path
    first_file = dvd / "VTS_01_1.VOB"
    first_file.write_bytes(b"one")
    key_of_first_alone = content_key(first_file)
    second_file = dvd / "VTS_01_2.VOB"
    second_file.write_bytes(b"two")
    key_of_both = content_key(dvd)
    assert content_key(first_file) == key_of_both
    assert key_of_both != key_of_first_alone

    second_file.write_bytes(b"ten")
    key_with_other_second_file = content_key(dvd)
    assert key_with_other_second_file != key_of_first_alone
    assert key_with_other_second_file != key_of_both


def test_a_copy_of_an_upright_film_is_upright(tmp_path, shared_data):
    """A telephone stores the picture lying on its side, with a note to turn it by 90 degrees to show it.

    `read_frames` turns it, and the copy must have the turned picture. But for the losses of compression it is
    the same: thumbnails differ by less than 6 of 255 on average.
    """
    film = shared_data / "videos" / "rotated_90.mov"
    copy = tmp_path / "copy.mp4"

    make_proxy(film, copy, ignore_progress)

    frames_of_film = read_frames(film, uniform(2))
    frames_of_copy = read_frames(copy, uniform(2))
    width_to_height_of_film = frames_of_film.width / frames_of_film.height
    width_to_height_of_copy = frames_of_copy.width / frames_of_copy.height
    assert width_to_height_of_copy == pytest.approx(width_to_height_of_film, rel=0.02)
    differences = thumbnail(frames_of_film.images[0]) - thumbnail(frames_of_copy.images[0])
    assert np.abs(differences).mean() < 6


def thumbnail(image):
    """Return a picture in 16 by 28 pixels."""
    return np.asarray(Image.fromarray(image).resize((16, 28)), dtype=float)


def test_a_copy_that_fails_leaves_nothing(tmp_path, shared_data):
    """A copy is written under another name, .part, and gets its own when it is whole.

    A part is never played. Here somebody stops the program once a second of the film is copied.
    """
    film = shared_data / "videos" / "flipping_a_pancake.mkv"
    suffixes_meanwhile = set()

    def stop_after_a_second(copied_s):
        suffixes_meanwhile.update(path.suffix for path in tmp_path.iterdir())
        if copied_s > 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_proxy(film, tmp_path / "copy.mp4", stop_after_a_second)

    assert ".part" in suffixes_meanwhile
    assert list(tmp_path.iterdir()) == []


def test_only_the_first_sound_of_a_film_counts(tmp_path):
    """Browsers play the first sound (AAC here) and ignore the second (AC-3), which they could not play.

    A copy has the first one with its last samples.
    """
    two_seconds_ms = range(0, 2000, 40)
    film = film_with_sounds(tmp_path / "two.mp4", "libx264", two_seconds_ms, "aac", "ac3")
    assert not needs_copy(film)

    make_proxy(film, tmp_path / "copy.mp4", ignore_progress)

    with av.open(str(tmp_path / "copy.mp4")) as copy:
        n_samples = sum(frame.samples for frame in copy.decode(audio=0))
    assert n_samples >= 2 * 48_000  # of two seconds


@pytest.mark.parametrize(
    ("size", "rotation", "shown_shape"),
    [((352, 288), 0, 16 / 9), ((288, 352), 90, 9 / 16), ((288, 352), 270, 9 / 16)],
)
def test_pictures_of_oblong_pixels_are_copied_in_their_shown_shape(tmp_path, size, rotation, shown_shape):
    """352 by 288 pixels, each 16/11 as wide as high, are shown as 16 to 9.

    Turned by 90 or 270 degrees, they are shown as 9 to 16.
    """
    width, height = size
    first_frame = SimpleNamespace(
        width=width, height=height, rotation=rotation, stream={"sample_aspect": "16:11"}
    )

    with av.open(str(tmp_path / "copy.mp4"), "w") as copy:
        pictures_of_copy = _Pictures(copy, first_frame, frames_per_s=25.0)

    shape_of_copy = pictures_of_copy.width / pictures_of_copy.height
    assert shape_of_copy == pytest.approx(shown_shape, rel=0.01)


BT_601, BT_2020 = 5, 9
"""FFmpeg's numbers of how colours are made of brightness and two differences."""


def red_bar():
    """Return a picture of a red bar on black, 128 by 96 pixels."""
    picture = np.full((96, 128, 3), 40, np.uint8)
    picture[:, 40:90] = 200, 60, 90
    return picture


def encode_five(path, pixel_format, colours=BT_601, **tags):
    """Encode five times the red bar by H.264."""
    frame = av.VideoFrame.from_ndarray(red_bar())
    frames = [frame.reformat(format=pixel_format, dst_colorspace=colours) for _ in range(5)]
    return encode(path, frames, "libx264", options={"crf": "4"}, **tags)


def encode_transparent(path):
    """Encode five times the red bar, of which the right half is transparent."""
    opaque = np.where(np.arange(128) < 64, 255, 0).astype(np.uint8)
    frame = av.VideoFrame.from_ndarray(np.dstack([red_bar(), np.tile(opaque, (96, 1))]), "rgba")
    frames = [frame.reformat(format="argb") for _ in range(5)]
    return encode(path, frames, "qtrle")


def encode_cropped(path):
    """Encode five times the red bar, in a file that says that only a part of the picture is shown.

    Its `clap` box shows 64 by 40 pixels, whose middle is 4 right of that of the picture and 6 above it.
    """
    film = encode_five(path.with_name("whole.mov"), "yuv420p")
    cropped = with_box(film, path, b"avc1", clean_aperture_box(width=64, height=40, right=4, down=-6))
    assert needs_copy(cropped)  # browsers would show all of the picture
    return cropped


ENCODERS = {
    "ten bits": lambda path: encode_five(path, "yuv420p10le"),
    "full range": lambda path: encode_five(path, "yuvj420p"),
    "BT.2020": lambda path: encode_five(path, "yuv420p", BT_2020, colorspace=BT_2020),
    "crop": encode_cropped,
    "transparent": encode_transparent,
}
"""Kinds of films whose pictures are converted when they are read."""


@pytest.mark.parametrize("encode_film", ENCODERS.values(), ids=ENCODERS)
def test_a_copy_shows_the_pictures_that_are_read_from_the_film(tmp_path, encode_film):
    """The model reads the film, while a judge sees its copy: both must have the same picture.

    The pictures of these films are converted as they are read: they are cropped, partly transparent, or store
    colours in another way. In each of red, green and blue, half of the pixels differ by 3 of 255 at most.
    """
    film = encode_film(tmp_path / "film.mov")
    copy = tmp_path / "copy.mp4"

    make_proxy(film, copy, ignore_progress)

    (picture_of_film,) = read_frames(film, uniform(1)).images
    (picture_of_copy,) = read_frames(copy, uniform(1)).images
    assert picture_of_film.shape == picture_of_copy.shape
    differences = np.abs(picture_of_film.astype(int) - picture_of_copy)
    median_by_colour = np.median(differences, axis=(0, 1))
    assert median_by_colour.max() <= 3
