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
from tests.video.test_stream import clap, with_box


def times(path):
    with opened(path) as source:
        frames = source.container.decode(source.stream)
        return np.array(
            [float(frame.pts * frame.time_base - source.origin) for frame in frames if frame.pts is not None]
        )


def with_sounds(path, codec, milliseconds, *sounds):
    """Encode noise at these times beside two seconds of silence by each codec of sound."""
    rng = np.random.default_rng(0)
    with av.open(str(path), "w") as made:
        video = made.add_stream(codec, rate=25)
        video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
        video.time_base = video.codec_context.time_base = Fraction(1, 1000)
        tracks = [made.add_stream(name, rate=48_000, layout="mono") for name in sounds]
        for ms in milliseconds:
            frame = av.VideoFrame.from_ndarray(rng.integers(0, 255, (72, 64), np.uint8), "yuv420p")
            frame.pts, frame.time_base = int(ms), Fraction(1, 1000)
            made.mux(video.encode(frame))
        made.mux(video.encode(None))
        for track in tracks:
            silence = av.AudioFrame.from_ndarray(np.zeros((1, 96_000), np.float32), "fltp", "mono")
            silence.sample_rate, silence.pts, silence.time_base = 48_000, 0, Fraction(1, 48_000)
            made.mux(track.encode(silence))
            made.mux(track.encode(None))
    return path


@pytest.mark.parametrize("codec", ["mpeg2video", "libx264"])  # encoded anew, and copied
def test_a_copy_of_a_film_that_begins_late_begins_at_0(tmp_path, codec):
    """Its frames begin at 10 s, as recordings from the air do."""
    pictures = (np.full((48, 64, 3), 5 * number, np.uint8) for number in range(50))
    film = encode(tmp_path / "late.ts", pictures, codec, times=range(250, 300))
    seen = []
    make_proxy(film, tmp_path / "copy.mp4", seen.append)
    assert np.abs(times(film) - times(tmp_path / "copy.mp4")).max() < 0.001
    assert max(seen) == pytest.approx(49 / 25)


def test_times_are_the_films(tmp_path, monkeypatch):
    """Uneven ones, the first at 0.5 s, behind sound that starts at 0: an edit list in MP4."""
    monkeypatch.setattr(proxy, "cache_folder", lambda: tmp_path / "cache")
    uneven = np.cumsum([500, *np.random.default_rng(0).integers(20, 140, 60)])
    film = with_sounds(tmp_path / "uneven.mp4", "mpeg4", uneven, "aac")
    assert needs_copy(film)
    seen = []
    make_proxy(film, proxy_path(film), seen.append)
    assert not needs_copy(proxy_path(film))
    a, b = times(film), times(proxy_path(film))
    assert len(a) == len(b) == 61
    assert np.abs(a - b).max() < 0.001
    assert a[0] > 0.4
    assert seen == sorted(seen)


@pytest.mark.long  # transcodes films
@pytest.mark.parametrize("name", ["flipping_a_pancake.mkv", "test.avi"])
def test_real_files(tmp_path, shared_data, name):
    film = shared_data / "videos" / name
    assert needs_copy(film)
    make_proxy(film, tmp_path / "copy.mp4", lambda _: None)
    a, b = np.sort(times(film)), times(tmp_path / "copy.mp4")
    if name == "test.avi":  # FFmpeg adds the decoder's delay, a frame
        a -= 1 / 25
    assert np.abs(a - b).max() < 0.01
    with av.open(str(film)) as source, av.open(str(tmp_path / "copy.mp4")) as copy:
        for before, after in zip(source.streams.audio[:1], copy.streams.audio, strict=True):
            first, last = (
                [float(frame.time) for frame in container.decode(stream)]
                for container, stream in ((source, before), (copy, after))
            )
            assert last[-1] == pytest.approx(first[-1], abs=0.1)


@pytest.mark.parametrize("kind", ["container", "sound", "pictures"])
@pytest.mark.parametrize("late", [0, 500])
def test_no_more_is_made_anew_than_browsers_do_not_play(tmp_path, monkeypatch, kind, late):
    """Uneven times and B frames, from 0 or later on: in a copy they are the film's."""
    uneven = late + np.cumsum([0, *np.random.default_rng(0).integers(20, 140, 60)])
    codecs = {"container": ("libx264", "aac"), "sound": ("libx264", "ac3"), "pictures": ("mpeg4", "aac")}
    film = with_sounds(tmp_path / "film.mkv", codecs[kind][0], uneven, codecs[kind][1])
    assert remade_part(film) == kind
    done = []
    monkeypatch.setattr(proxy, "_transcode", lambda *asked: done.append(transcode(*asked)))
    make_proxy(film, tmp_path / "copy.mp4", lambda _: None)
    assert len(done) == (kind == "pictures")
    assert not needs_copy(tmp_path / "copy.mp4")
    assert np.abs(times(film) - times(tmp_path / "copy.mp4")).max() < 0.002
    with av.open(str(film)) as before, av.open(str(tmp_path / "copy.mp4")) as after:
        codec = [each.streams.audio[0].codec_context.codec.canonical_name for each in (before, after)]
        packets = [[bytes(packet) for packet in each.demux(video=0)] for each in (before, after)]
        assert codec == [codecs[kind][1], "aac"]
        assert (sum(map(len, packets[0])) == sum(map(len, packets[1]))) == (kind != "pictures")


transcode = proxy._transcode


def test_a_film_that_is_moved_is_known_by_its_content(tmp_path, shared_data):
    film = shared_data / "videos" / "arm_wrestling.mp4"
    moved = tmp_path / "elsewhere.mp4"
    moved.write_bytes(film.read_bytes())
    assert content_key(moved) == content_key(film)
    moved.write_bytes(film.read_bytes()[:-1] + b"x")
    assert content_key(moved) != content_key(film)
    (tmp_path / "empty").touch()
    assert len({content_key(tmp_path / "empty"), content_key(film)}) == 2


def test_a_dvd_s_folder_is_the_film_of_all_its_files(tmp_path):
    first, second = (tmp_path / f"VTS_01_{n}.VOB" for n in (1, 2))
    first.write_bytes(b"one")
    alone = content_key(first)
    second.write_bytes(b"two")
    both = content_key(tmp_path)
    assert both == content_key(first) != alone
    second.write_bytes(b"ten")
    assert content_key(tmp_path) not in {alone, both}


def test_a_film_taken_upright_stands_upright(tmp_path, shared_data):
    film = shared_data / "videos" / "rotated_90.mov"
    make_proxy(film, tmp_path / "copy.mp4", lambda _: None)
    a, b = (read_frames(path, uniform(2)) for path in (film, tmp_path / "copy.mp4"))
    assert b.width / b.height == pytest.approx(a.width / a.height, rel=0.02)
    small = [np.asarray(Image.fromarray(frames.images[0]).resize((16, 28)), dtype=float) for frames in (a, b)]
    assert np.abs(small[0] - small[1]).mean() < 6


def test_a_copy_that_fails_leaves_nothing(tmp_path, shared_data):
    there = []

    def stop(seconds):
        there.extend(path.suffix for path in tmp_path.iterdir())
        if seconds > 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_proxy(shared_data / "videos" / "flipping_a_pancake.mkv", tmp_path / "copy.mp4", stop)
    assert ".part" in there
    assert list(tmp_path.iterdir()) == []


def test_the_first_sound_decides_what_browsers_play_and_the_last_samples_are_kept(tmp_path):
    film = with_sounds(tmp_path / "two.mp4", "libx264", range(0, 2000, 40), "aac", "ac3")
    assert not needs_copy(film)
    make_proxy(film, tmp_path / "copy.mp4", lambda _: None)
    with av.open(str(tmp_path / "copy.mp4")) as copy:
        samples = sum(frame.samples for frame in copy.decode(audio=0))
    assert samples >= 96_000


@pytest.mark.parametrize(("turned", "shape"), [(0, (512, 288)), (90, (288, 512)), (270, (288, 512))])
def test_pixels_that_are_no_squares_are_made_square_upright(tmp_path, turned, shape):
    width, height = (352, 288) if turned == 0 else (288, 352)
    first = SimpleNamespace(width=width, height=height, rotation=turned, stream={"sample_aspect": "16:11"})
    with av.open(str(tmp_path / "made.mp4"), "w") as made:
        pictures = _Pictures(made, first, 25.0)
        assert pictures.width / pictures.height == pytest.approx(shape[0] / shape[1], rel=0.01)


@pytest.mark.parametrize("kind", ["ten bits", "full range", "BT.2020", "crop", "transparent"])
def test_a_copy_shows_the_pictures_that_are_read_from_the_film(tmp_path, kind):
    picture = np.full((96, 128, 3), 40, np.uint8)
    picture[:, 40:90] = 200, 60, 90
    pixels = {"ten bits": "yuv420p10le", "full range": "yuvj420p", "transparent": "rgba"}.get(kind, "yuv420p")
    frame = av.VideoFrame.from_ndarray(picture)
    if kind == "transparent":
        opaque = np.where(np.arange(128) < 64, 255, 0).astype(np.uint8)
        frame = av.VideoFrame.from_ndarray(np.dstack([picture, np.tile(opaque, (96, 1))]), "rgba")
    frames = [frame.reformat(format=pixels, dst_colorspace=9 if kind == "BT.2020" else 5) for _ in range(5)]
    codec = "qtrle" if kind == "transparent" else "libx264"
    frames = [each.reformat(format="argb") if codec == "qtrle" else each for each in frames]
    tags = {"colorspace": 9} if kind == "BT.2020" else {}
    film = encode(
        tmp_path / "film.mov", frames, codec, options={"crf": "4"} if codec != "qtrle" else {}, **tags
    )
    if kind == "crop":
        film = with_box(film, tmp_path / "clap.mov", b"avc1", clap(64, 40, 4, -6))
        assert needs_copy(film)
    make_proxy(film, tmp_path / "copy.mp4", lambda _: None)
    (mine,), (copy,) = (read_frames(path, uniform(1)).images for path in (film, tmp_path / "copy.mp4"))
    assert mine.shape == copy.shape
    assert np.median(np.abs(mine.astype(int) - copy), axis=(0, 1)).max() <= 3
