"""The runner: any batch, any memory, one result."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from obygaze_features.backbones import Output
from obygaze_features.backbones import compute as computing
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.presets import IMAGENET, MINUS_ONE_TO_ONE
from obygaze_features.backbones.runner import Runner
from obygaze_features.errors import BackboneError

F, SIZE = 4, 8
OUTPUTS = (Output("frames", (F, 3)), Output("pooled", (3,)))


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(computing, "PAUSE_S", 0.0)


class Means(nn.Module):
    """The mean colour of every frame, and a memory that holds only so many clips."""

    def __init__(self, fits=1000, gain=1.0):
        super().__init__()
        self.fits = fits
        self.gain = gain
        self.sizes = []

    def forward(self, pixels):
        self.sizes.append(len(pixels))
        if len(pixels) > self.fits:
            raise torch.OutOfMemoryError
        frames = self.gain * pixels.mean(dim=(3, 4))
        return {"frames": frames, "pooled": frames.mean(dim=1)}


def runner(network=None, affine=MINUS_ONE_TO_ONE, outputs=OUTPUTS, **compute):
    return Runner(
        "means",
        network or Means(),
        affine,
        outputs,
        n_frames=F,
        size=SIZE,
        compute=Compute(device="cpu", **compute),
    )


def clips(n):
    return np.random.default_rng(n).integers(0, 256, (n, F, SIZE, SIZE, 3), dtype=np.uint8)


def test_frames_are_normalised_in_their_own_channels():
    batch = clips(3)
    expected = (batch / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    found = runner(affine=IMAGENET)(batch)
    assert found["frames"] == pytest.approx(expected.mean(axis=(2, 3)), abs=1e-5)
    assert found["pooled"] == pytest.approx(expected.mean(axis=(1, 2, 3)), abs=1e-5)


def test_out_of_memory_waits_then_halves_says_so_and_remembers(caplog):
    network = Means(fits=3)
    run = runner(network, clips_at_once=16)
    batch = clips(10)
    assert np.array_equal(run(batch)["frames"], runner(clips_at_once=2)(batch)["frames"])
    assert network.sizes == [16, 16, 8, 8, 4, 4, 2, 2, 2, 2, 2]
    told = [record.getMessage() for record in caplog.records]
    assert told == [f"means: out of memory, going on with {n} clips at once" for n in (8, 4, 2)]
    network.sizes.clear()
    run(batch)
    assert network.sizes == [2] * 5


def test_a_neighbours_peak_costs_a_pause_and_halving_is_undone(monkeypatch, caplog):
    monkeypatch.setattr(computing, "PATIENCE", 3)
    network = Means(fits=4)
    run = runner(network, clips_at_once=8)
    for n in (8, 4):
        run(clips(n))
    network.fits = 1000
    run(clips(8))
    assert network.sizes == [8, 8, 4, 4, 4, 8]  # the last 4 clips are filled up to 8 again
    assert caplog.records[-1].getMessage() == "means: trying again with 8 clips at once"


def test_each_further_try_of_a_size_that_failed_waits_twice_as_long(monkeypatch):
    monkeypatch.setattr(computing, "PATIENCE", 2)
    network = Means(fits=1)
    run = runner(network, clips_at_once=2)
    run(clips(12))
    tries = [place for place, n in enumerate(network.sizes) if n == 2 and network.sizes[place + 1] == 2]
    good = [network.sizes[a:b].count(1) for a, b in pairwise(tries)]
    assert good == [2, 4]


def test_one_clip_that_does_not_fit_is_an_error():
    with pytest.raises(BackboneError, match="one clip does not fit in the memory of cpu"):
        runner(Means(fits=0), clips_at_once=4)(clips(2))


@pytest.mark.parametrize(
    "batch",
    [
        np.zeros((2, F + 1, SIZE, SIZE, 3), np.uint8),
        np.zeros((2, 2 * F, SIZE, SIZE, 3), np.uint8),
        np.zeros((2, F, SIZE, SIZE + 1, 3), np.uint8),
        np.zeros((2, F, SIZE, SIZE, 3), np.float32),
        np.zeros((F, SIZE, SIZE, 3), np.uint8),
        np.zeros((0, F, SIZE, SIZE, 3), np.uint8),
    ],
)
def test_frames_of_another_number_size_or_type_are_refused(batch):
    with pytest.raises(BackboneError, match=r"takes clips of uint8 \[4, 8, 8, 3\]"):
        runner()(batch)


def test_a_network_that_gives_another_shape_than_it_announced_is_refused():
    with pytest.raises(BackboneError, match=r"announced 'frames' as \[4, 5\] a clip and gave \[4, 3\]"):
        runner(outputs=(Output("frames", (F, 5)),))(clips(1))


def test_beyond_float16_is_infinite_and_not_silently_something_else():
    found = runner(Means(gain=1e9), outputs=(Output("frames", (F, 3), "float16"),))(clips(1))
    assert found["frames"].dtype == np.float16
    assert np.isinf(found["frames"]).all()
    outputs = (Output("frames", (F, 3), "float16"),)
    assert runner(Means(gain=1e9), outputs=outputs).start(clips(2)).result().finite.tolist() == [False] * 2


def test_a_batch_that_nobody_may_write_is_taken_and_left_alone():
    batch = clips(2)
    before = batch.copy()
    batch.setflags(write=False)
    runner()(batch)
    assert np.array_equal(batch, before)


@pytest.mark.parametrize("at_once", [1, 3, 8])
def test_the_same_clips_in_any_batches_get_the_same_bytes(at_once):
    """With a product whose rounding depends on the batch, as matrix libraries choose by size."""

    class Rounds(nn.Module):
        def forward(self, pixels):
            frames = pixels.mean(dim=(3, 4)) * (1 + 1e-3 * len(pixels))
            return {"frames": frames, "pooled": frames.mean(dim=1)}

    batch = clips(11)
    whole = runner(Rounds(), clips_at_once=at_once)(batch)
    for cuts in ([1, 2, 9], [5], list(range(1, 11))):
        run = runner(Rounds(), clips_at_once=at_once)
        parts = [run(part) for part in np.split(batch, cuts)]
        for name, values in whole.items():
            assert np.array_equal(np.concatenate([part[name] for part in parts]), values)


def test_clips_may_be_overwritten_once_they_are_begun():
    batch = clips(3)
    expected = runner()(batch)["frames"]
    pending = runner().start(list(batch))
    batch[:] = 0
    found = pending.result()
    assert np.array_equal(found.arrays["frames"], expected)
    assert (found.finite.tolist(), found.at_once.tolist()) == ([True] * 3, [1] * 3)


def test_a_compiled_network_sees_one_shape_only(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda network, **_: network)
    network = Means()
    batch = clips(5)
    found = runner(network, clips_at_once=4, compiled=True)(batch)
    assert network.sizes == [4, 4]
    assert np.array_equal(found["frames"], runner(clips_at_once=4)(batch)["frames"])


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_autocast_is_close_and_recorded_and_stored_in_half(precision):
    layer = nn.Linear(3, 3)

    class Linear(nn.Module):
        def forward(self, pixels):
            return {"frames": layer(pixels.mean(dim=(3, 4)))}

    outputs = (Output("frames", (F, 3)),)
    exact = runner(Linear(), outputs=outputs)(clips(2))["frames"]
    close = runner(Linear(), outputs=outputs, precision=precision)(clips(2))["frames"]
    assert 0 < np.abs(exact - close).max() < 0.02
    compute = Compute(device="cpu", precision=precision)
    assert compute.record("sdpa")["autocast"] == precision
    assert compute.frames_dtype() == "float16"


def test_a_network_that_cannot_be_compiled_is_one_sentence(monkeypatch):
    def compile_(_network, **_settings):
        def fail(_pixels):
            raise RuntimeError("Failed to find C compiler.\nPlease specify via CC environment variable")

        return fail

    monkeypatch.setattr(torch, "compile", compile_)
    words = r"torch.compile failed \(Failed to find C compiler\.\); it needs a C compiler"
    with pytest.raises(BackboneError, match=words):
        runner(compiled=True).warm_up()


def test_the_seconds_of_work_are_counted():
    run = runner()
    run(clips(2))
    assert run.busy_s > 0


def test_the_record_says_what_decides_the_numbers():
    assert Compute(device="cpu").record("sdpa") == {
        "dtype": "float32",
        "autocast": None,
        "attention": "sdpa",
        "tf32": False,
        "compiled": False,
        "device": "cpu",
    }


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"device": "gpu"}, "expected auto, cpu, cuda or cuda:NUMBER"),
        ({"device": "mps"}, "expected auto, cpu, cuda or cuda:NUMBER"),
        ({"device": "cuda:99"}, "torch sees|no CUDA device"),
        ({"precision": "int8"}, "precision 'int8' is not one of"),
        ({"clips_at_once": 0}, "at least one"),
    ],
)
def test_what_cannot_be_computed_with_is_an_error(settings, words):
    with pytest.raises(BackboneError, match=words):
        Compute(**settings).torch_device()
