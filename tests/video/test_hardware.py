"""What a GPU gives becomes what a core gives: formats, groups of pictures, files that are not for a GPU."""

import math

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_features.video import hardware
from obygaze_features.video.hardware import (
    NotDecoded,
    NotOnGpu,
    NvidiaGpu,
    check_for_gpu,
    find_difference,
    group_around,
    to_core_format,
)
from obygaze_features.video.index import index_packets

from .conftest import draw_number
from .encoding import encode

DEPTHS = {"yuv420p": ("nv12", 8, 8), "yuv420p10le": ("p010le", 10, 16), "yuv420p12le": ("p016le", 12, 16)}
"""Format that a core gives -> that of a GPU, the bits of a sample, and the bits that it has in memory."""


def samples_of(plane, kind) -> np.ndarray:
    """Return the samples of a plane [H, W], with the padding of its rows."""
    return np.frombuffer(memoryview(plane), kind).reshape(plane.height, -1)


def random_gpu_frame(pixels, width, height, seed) -> av.VideoFrame:
    """Make a frame of random samples in the GPU's format, which keeps them in high bits."""
    gpu_format, bits, bits_in_memory = DEPTHS[pixels]
    empty_low_bits = bits_in_memory - bits
    kind = sample_type(bits)
    frame = av.VideoFrame(width, height, gpu_format)
    rng = np.random.default_rng(seed)
    for plane in frame.planes:
        samples = rng.integers(0, 1 << bits, samples_of(plane, kind).shape).astype(kind)
        plane.update((samples << empty_low_bits).tobytes())
    return frame


def samples_of_gpu(frame, pixels) -> list[np.ndarray]:
    """Return the samples of each plane of a frame in the GPU's format, moved to the low bits."""
    _gpu_format, bits, bits_in_memory = DEPTHS[pixels]
    empty_low_bits = bits_in_memory - bits
    return [samples_of(plane, sample_type(bits)) >> empty_low_bits for plane in frame.planes]


def sample_type(bits) -> np.dtype:
    return np.dtype("u1") if bits == 8 else np.dtype("<u2")


@given(
    pixels=st.sampled_from([*DEPTHS]),
    width=st.integers(1, 70),
    height=st.integers(1, 40),
    seed=st.integers(0, 9),
)
def test_every_sample_of_a_gpu_becomes_that_of_a_core(pixels, width, height, seed):
    """A picture has a brightness for each pixel, and a blue and a red difference for each 2 x 2 of them.

    A GPU has blue and red in turn in one plane, and samples in the high bits of their 16 (or all of 8) bits;
    a core has three planes, and samples in the low bits. Rows are padded behind the picture's width.
    """
    gpu_format, bits, _bits_in_memory = DEPTHS[pixels]
    gpu_frame = random_gpu_frame(pixels, width, height, seed)

    core_frame = to_core_format(gpu_frame, gpu_format, pixels)

    assert core_frame.format.name == pixels
    half_width = math.ceil(width / 2)
    half_height = math.ceil(height / 2)
    brightness, blue_and_red_in_turn = samples_of_gpu(gpu_frame, pixels)
    blue_and_red_in_turn = blue_and_red_in_turn[:half_height, : 2 * half_width]
    blue = blue_and_red_in_turn[:, 0::2]
    red = blue_and_red_in_turn[:, 1::2]
    core_brightness, core_blue, core_red = (
        samples_of(plane, sample_type(bits)) for plane in core_frame.planes
    )
    np.testing.assert_array_equal(core_brightness[:, :width], brightness[:, :width])
    np.testing.assert_array_equal(core_blue[:, :half_width], blue)
    np.testing.assert_array_equal(core_red[:, :half_width], red)


@given(colour_range=st.sampled_from([0, 1, 2]), colorspace=st.sampled_from([1, 2, 5, 6, 9]))
def test_a_frame_of_a_gpu_keeps_its_time_and_colours(colour_range, colorspace):
    """Colours are described by numbers of FFmpeg: the range of levels, and the matrix that leads to RGB."""
    gpu_frame = random_gpu_frame("yuv420p", width=16, height=16, seed=0)
    gpu_frame.color_range = colour_range
    gpu_frame.colorspace = colorspace
    gpu_frame.pts = 7

    core_frame = to_core_format(gpu_frame, "nv12", "yuv420p")

    for fact in ("pts", "colorspace", "color_range", "interlaced_frame", "is_corrupt"):
        assert getattr(core_frame, fact) == getattr(gpu_frame, fact)


@pytest.mark.parametrize(
    ("gpu_format", "core_format"),
    [("nv12", "gbrp"), ("p010le", "yuv422p10le"), ("", "yuv420p")],
    ids=["RGB", "more chroma", "the card does not say its format"],
)
def test_formats_that_may_lose_bits_are_left_to_cores(gpu_format, core_format):
    """A GPU gives fewer samples of colour than these films have, or does not say what it gives.

    The whole film, and not only this frame, is then left to a core.
    """
    frame = av.VideoFrame(64, 48, gpu_format or "nv12")

    with pytest.raises(NotOnGpu) as refused:
        to_core_format(frame, gpu_format, core_format)

    assert refused.value.for_whole_file


def test_a_frame_in_memory_was_not_decoded_on_a_gpu():
    """A frame that a GPU has decoded lies in the GPU's own memory. The format, nv12, does not say so."""
    frame_in_memory = av.VideoFrame(64, 48, "nv12")

    assert not NvidiaGpu().is_from_gpu(frame_in_memory)


def test_groups_cover_a_film_and_begin_where_decoding_can_start(tmp_path):
    """A film of 60 pictures has key frames at 0, 20 and 40: three groups of 20."""
    film = encode(tmp_path / "f.mp4", map(draw_number, range(60)), options={"g": "20", "sc_threshold": "0"})
    table = index_packets(film)

    for frame in range(60):
        key_frame = 20 * (frame // 20)
        numbers_in_group = list(group_around(table, frame))
        assert numbers_in_group == list(range(key_frame, key_frame + 20))


def test_only_films_of_enough_pixels_go_to_a_gpu(tmp_path):
    """For small pictures a GPU is slower than a core; a still is no film.

    The film is 96 pixels wide and 64 high. The reason why it is not for a GPU is empty if it is.
    """
    film = encode(tmp_path / "f.mp4", map(draw_number, range(10)))

    verdict = check_for_gpu(film, min_pixels=96 * 64)
    verdict_if_one_pixel_more_is_needed = check_for_gpu(film, min_pixels=96 * 64 + 1)
    verdict_on_still = check_for_gpu(tmp_path / "still.png", min_pixels=0)

    assert verdict == ("", 96, 64)
    assert verdict_if_one_pixel_more_is_needed.reason != ""
    assert verdict_on_still.reason != ""


@pytest.mark.parametrize(
    ("libraries_of_driver", "number_of_gpu", "named"),
    [(("libabsent.so.1",), 0, "libabsent.so.1"), ((), 99, "card 99")],
    ids=["a driver's library that is not there", "more cards than any machine has"],
)
def test_what_is_missing_to_decode_on_a_gpu_is_named(monkeypatch, libraries_of_driver, number_of_gpu, named):
    """The machine has a GPU, by its files; what decoding needs is looked for afterwards."""
    monkeypatch.setattr(hardware, "no_gpu_here", lambda: "")
    monkeypatch.setattr(hardware, "DRIVER", libraries_of_driver)

    missing = NvidiaGpu(number_of_gpu).missing()

    assert named in missing


@pytest.mark.gpu
@pytest.mark.parametrize("codec", ["libx264", "libx265", "libvpx-vp9"])
def test_on_a_real_gpu_all_bits_are_those_of_a_core(tmp_path, codec):
    """A film of 60 numbered pictures is decoded by a GPU and by a core; "" says that no bit differs.

    Pictures are four times as wide and high as usual, since GPUs refuse small ones.
    """
    gpu = NvidiaGpu(min_pixels=0)
    if gpu.missing():
        pytest.skip(gpu.missing())
    pictures = (draw_number(number).repeat(4, axis=0).repeat(4, axis=1) for number in range(60))
    a_key_picture_every_25 = {"g": "25"}
    film = encode(tmp_path / "f.mkv", pictures, codec, options=a_key_picture_every_25)

    try:
        difference = find_difference(film, range(60), gpu)
    except NotDecoded as reason:
        pytest.skip(str(reason))

    assert difference == ""
