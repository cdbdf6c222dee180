"""The runner gives a network batches of frames, and the same numbers whatever the batch and the memory."""

import numpy as np
import pytest

from obygaze_features.backbones import BackboneOutput
from obygaze_features.backbones.presets import IMAGENET, Affine
from obygaze_features.errors import BackboneError
from tests.lazy_import import lazy_import

from .test_runner_on_gpu import OUTPUTS, SIZE, F, clips

torch = lazy_import("torch")
Small = lazy_import("tests.backbones.row_network", "Small")
nn = lazy_import("torch.nn")
running = lazy_import("obygaze_features.backbones.runner")
Compute = lazy_import("obygaze_features.backbones.compute", "Compute")
Runner = lazy_import("obygaze_features.backbones.runner", "Runner")


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(running, "PAUSE_S", 0.0)


def runner(network=None, outputs=OUTPUTS, **compute):
    """Make a runner of the tiny network on the CPU; `compute` are options such as the precision."""
    return Runner(
        "net",
        network or Small(),
        Affine.of(*IMAGENET),
        outputs,
        n_frames=F,
        size=SIZE,
        compute=Compute(device="cpu", **compute),
    )


def test_frames_are_normalised_in_their_own_channels():
    """Each channel has a mean and a deviation of its own, those of ImageNet.

    The tiny network averages the pixels of each frame, by channel, and frames over the clip.
    """
    three_clips = clips(3)

    arrays = runner()(three_clips)

    normalised = (three_clips / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    assert arrays["frames"] == pytest.approx(normalised.mean(axis=(2, 3)), abs=1e-5)
    assert arrays["pooled"] == pytest.approx(normalised.mean(axis=(1, 2, 3)), abs=1e-5)


def test_a_lack_of_memory_halves_the_clips_at_once_for_good():
    """The network runs out of memory above 3 clips at once. `sizes` are the clips of each call.

    Calls of 8 and of 4 clips fail, and 2 fit; the size stays 2 when there is more memory later.
    """
    network = Small()
    run = runner(network, clips_at_once=8)

    network.fits = 3
    run(clips(8))
    assert network.sizes == [8, 4, 2, 2, 2, 2]

    network.fits = 1000
    run(clips(4))
    assert network.sizes == [8, 4, 2, 2, 2, 2, 2, 2]


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((2, 3 + 1, 4, 4, 3), np.uint8),
        ((2, 3 * 2, 4, 4, 3), np.uint8),
        ((2, 3, 4, 4 + 1, 3), np.uint8),
        ((2, 3, 4, 4, 3), np.float32),
        ((3, 4, 4, 3), np.uint8),
        ((0, 3, 4, 4, 3), np.uint8),
    ],
    ids=["a frame more", "twice the frames", "wider", "floats", "one clip, no batch", "no clips"],
)
def test_frames_of_another_number_size_or_type_are_refused(shape, dtype):
    """The network takes batches of clips of 3 frames of 4 x 4 pixels of three channels, in uint8."""
    batch = np.zeros(shape, dtype)

    with pytest.raises(BackboneError, match=r"uint8 \[3, 4, 4, 3\]"):
        runner()(batch)


def test_a_network_that_gives_another_shape_than_stated_is_refused():
    """A store reserves the stated shape, [3, 5], before anything is encoded; the network gives [3, 3]."""
    stated_output = BackboneOutput("frames", (3, 5))
    run = runner(outputs=(stated_output,))

    with pytest.raises(BackboneError, match=r"'frames' as \[3, 5\] .*'frames': \[3, 3\]"):
        run(clips(1))


def test_a_read_only_batch_is_encoded():
    """Frames that workers share in memory can't be written to."""
    read_only = clips(3)
    read_only.setflags(write=False)

    frames = runner()(read_only)["frames"]

    assert np.array_equal(frames, runner()(clips(3))["frames"])


def test_frames_may_be_overwritten_as_soon_as_their_batch_is_started():
    """Decoders reuse the memory of frames while the network computes."""
    batch = clips(3)

    pending = runner().start(list(batch))
    batch[:] = 0
    frames = pending.result().arrays["frames"]

    assert np.array_equal(frames, runner()(clips(3))["frames"])


def test_a_result_marks_finite_clips_and_has_the_number_of_clips_in_a_call():
    """On a CPU one clip is computed at a time by default."""
    three_clips = list(clips(3))

    result = runner().start(three_clips).result()

    assert result.finite.tolist() == [True, True, True]
    assert result.at_once.tolist() == [1, 1, 1]


def test_a_runner_on_a_cpu_has_kept_no_gpu_busy():
    """`busy_s` is the time in which a GPU computed."""
    run = runner()

    run(clips(2))

    assert run.busy_s == 0


def linear_network():
    """Make a network that is a linear layer on the mean of each channel of a frame."""
    layer = nn.Linear(3, 3)

    class LinearOfMeans(nn.Module):
        def forward(self, pixels):
            return {"frames": layer(pixels.mean(dim=(3, 4)))}

    return LinearOfMeans()


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_autocast_is_close_to_float32(precision):
    """The layer's products are in 16 bits, so they differ, by less than .02."""
    network = linear_network()
    outputs = (BackboneOutput("frames", (3, 3)),)

    in_float32 = runner(network, outputs)(clips(2))["frames"]
    in_16_bits = runner(network, outputs, precision=precision)(clips(2))["frames"]

    largest_difference = np.abs(in_float32 - in_16_bits).max()
    assert 0 < largest_difference < 0.02


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_autocast_is_recorded_and_frames_are_stored_in_float16(precision):
    """Vectors of frames that were computed in 16 bits need no more to be stored."""
    compute = Compute(device="cpu", precision=precision)

    assert compute.record("sdpa")["autocast"] == precision
    assert compute.frames_dtype() == "float16"


def test_the_record_has_all_that_decides_the_numbers():
    """The network uses the attention sdpa; the other values are those by default."""
    assert Compute(device="cpu").record("sdpa") == {
        "device": "cpu",
        "dtype": "float32",
        "autocast": None,
        "attention": "sdpa",
        "tf32": False,
        "compiled": False,
    }
