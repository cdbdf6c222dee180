"""The runner on a card: the CPU path's bits, whatever streams, batches and memory do.

Everything runs on the pretended card; under the marker `gpu` the same properties run on a real one.
"""

import os
import subprocess
import sys
from collections import deque
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from obygaze_features.backbones import BackboneOutput
from obygaze_features.backbones.presets import IMAGENET, Affine
from obygaze_features.errors import BackboneError
from tests.later import later

torch = later("torch")
pretended_card = later("tests.backbones.pretended_card")
Card = later("tests.backbones.pretended_card", "Card")
Network = later("tests.backbones.row_network", "Network")
running = later("obygaze_features.backbones.runner")
Compute = later("obygaze_features.backbones.compute", "Compute")
Runner = later("obygaze_features.backbones.runner", "Runner")

F, SIZE = 3, 4
OUTPUTS = (
    BackboneOutput("frames", (F, 3)),
    BackboneOutput("tokens", (F, 5), "float16"),
    BackboneOutput("pooled", (3,)),
)
KINDS = {
    "allocator": ("OutOfMemoryError", "CUDA out of memory. Tried to allocate 20.00 MiB."),
    "driver": ("AcceleratorError", "CUDA error: out of memory"),
    "runtime": ("", "CUDA error: out of memory"),
    "cublas": ("", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    "cudnn": ("", "cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
}
PLACES = ("weights", "pin", "upload", "event", "forward", "download")
quick = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))


def runner(device, card=None, **compute):
    way = Compute(device=device, **compute)
    return Runner("net", Network(card), Affine.of(*IMAGENET), OUTPUTS, n_frames=F, size=SIZE, compute=way)


def out_of_memory(kind):
    name, words = KINDS[kind]
    return getattr(torch, name, RuntimeError)(words)


def clips(n):
    return np.random.default_rng(n).integers(0, 256, (n, F, SIZE, SIZE, 3), dtype=np.uint8)


def on_a_cpu(batches):
    run = runner("cpu")
    return [run(batch) for batch in batches]


def on_the_card(batches, card, *, ahead=0, **compute):
    """Encode batches, each taken `ahead` batches later, as an engine does; overwrite what was begun."""
    with pytest.MonkeyPatch.context() as patch:
        card.install(patch)
        patch.setattr(running, "PAUSE_S", 0.0)
        if compute.get("compiled"):
            patch.setattr(torch, "compile", lambda network, **_: network)
        run = runner("cuda", card, **compute)
        result, waiting = [], []
        for batch in batches:
            mine = batch.copy()
            waiting.append(run.start(list(mine)))
            mine[:] = 0
            if len(waiting) > ahead:
                result.append(waiting.pop(0).result())
        result += [each.result() for each in waiting]
        return run, result


def same(result, expected):
    for here, there in zip(result, expected, strict=True):
        for output in OUTPUTS:
            values = here.arrays[output.name]
            assert values.dtype == np.dtype(output.dtype)
            assert np.array_equal(values, there[output.name]), output.name
        assert here.finite.all()


@quick
@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    at_once=st.integers(1, 16),
    late=st.booleans(),
    compiled=st.booleans(),
    ahead=st.integers(0, 3),
)
def test_any_batches_on_any_streams_give_the_bits_of_a_cpu(sizes, at_once, late, compiled, ahead):
    batches = [clips(n) for n in sizes]
    card = Card(late=late)
    run, result = on_the_card(batches, card, ahead=ahead, clips_at_once=at_once, compiled=compiled)
    same(result, on_a_cpu(batches))
    parts = sum(-(-n // at_once) for n in sizes)
    assert run.network.sizes == [at_once] * parts  # always filled up: one shape, one choice of kernels
    assert all((each.at_once == at_once).all() for each in result)
    assert len(card.uploads) == 0
    assert run.busy_s == parts  # the pretended card takes a second for each call


@quick
@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=3),
    at_once=st.integers(1, 16),
    late=st.booleans(),
    ahead=st.integers(0, 2),
    failing=st.sets(st.integers(1, 120), max_size=6),
    kind=st.sampled_from(sorted(KINDS)),
    places=st.sets(st.sampled_from(PLACES), min_size=1),
)
def test_out_of_memory_of_any_kind_anywhere_changes_no_bit(
    sizes, at_once, late, ahead, failing, kind, places
):
    batches = [clips(n) for n in sizes]
    hits = []

    def fails(place, number):
        if place in places and number in failing:
            hits.append(place)
            return out_of_memory(kind)
        return None

    card = Card(late=late, fails=fails)
    refused = ""
    try:
        run, result = on_the_card(batches, card, ahead=ahead, clips_at_once=at_once)
    except BackboneError as error:
        refused = str(error)
    if refused:
        assert "not fit in the memory" in refused
        assert len(hits) > max(k for k in range(5) if at_once >> k)  # each failure halves, and one is the end
        return
    same(result, on_a_cpu(batches))
    assert bool(hits) == bool(card.alive_at_release)  # what the allocator keeps is given back first
    assert set(run.network.sizes) <= {max(at_once >> k, 1) for k in range(5)}
    assert run.clips_at_once == max(at_once >> len(hits), 1)
    assert all(n == 0 for n in card.alive_at_release), "memory was kept while it was short"


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("times", [1, 2])
def test_each_failure_halves(place, kind, times):
    hits = []

    def fails(what, _number):
        if what == place and len(hits) < times:
            hits.append(what)
            return out_of_memory(kind)
        return None

    batches = [clips(10)]
    run, result = on_the_card(batches, Card(fails=fails), clips_at_once=4)
    same(result, on_a_cpu(batches))
    assert run.clips_at_once == 4 >> times
    assert set(result[0].at_once.tolist()) == {4 >> times}  # which clips got fewer is known


@pytest.mark.parametrize("place", PLACES)
def test_memory_that_never_suffices_ends_in_one_sentence(place):
    card = Card(fails=lambda what, _number: out_of_memory("driver") if what == place else None)
    with pytest.raises(
        BackboneError, match=rf"not fit in the memory of cuda \({pretended_card.NAME}"
    ) as refused:
        on_the_card([clips(9)] * 3, card, ahead=1, clips_at_once=4)
    assert "\n" not in str(refused.value)


@pytest.fixture(scope="module")
def real_card():
    """A real CUDA device; these tests are the only ones that need it."""
    if reason := Compute().fallback():
        pytest.skip(reason)
    return torch.device("cuda")


@pytest.mark.gpu
@quick
@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    at_once=st.integers(1, 16),
    ahead=st.integers(0, 3),
)
@pytest.mark.usefixtures("real_card")
def test_on_a_real_card_any_batches_give_the_same_bits(sizes, at_once, ahead):
    """Batches that overlap give the bits of single clips, and a CPU's values within 1e-5 of the largest."""
    batches = [clips(n) for n in sizes]

    results = overlapping(runner("cuda", clips_at_once=at_once), batches, ahead)

    of_single_clips = runner("cuda", clips_at_once=at_once)
    for result, batch in zip(results, batches, strict=True):
        single_results = [of_single_clips(clip[None]) for clip in batch]
        for output in OUTPUTS:
            expected = np.concatenate([single[output.name] for single in single_results])
            assert np.array_equal(result.arrays[output.name], expected)
    for result, on_cpu in zip(results, on_a_cpu(batches), strict=True):
        largest = np.abs(on_cpu["frames"]).max()
        assert np.abs(result.arrays["frames"] - on_cpu["frames"]).max() <= 1e-5 * largest


def overlapping(run, batches, ahead):
    """Start batches, and wait for the oldest whenever more than `ahead` are waiting."""
    waiting = deque()
    results = []
    for batch in batches:
        waiting.append(run.start(list(batch)))
        if len(waiting) > ahead:
            results.append(waiting.popleft().result())
    results += [pending.result() for pending in waiting]
    return results


@pytest.mark.gpu
def test_on_a_real_card_out_of_memory_halves_and_changes_nothing(real_card, monkeypatch):
    monkeypatch.setattr(running, "PAUSE_S", 0.0)

    class Greedy(Network):
        """Takes 1 GB for every clip."""

        def forward(self, pixels):
            room = torch.empty((len(pixels), 1 << 28), device=pixels.device)
            room[:, 0] = 0
            return super().forward(pixels + room[:, :1, None, None, None])

    total = torch.cuda.mem_get_info(real_card)[1]
    torch.cuda.set_per_process_memory_fraction(min(3.5e9 / total, 1.0))
    try:
        way = Compute(device="cuda", clips_at_once=8)
        run = Runner("net", Greedy(), Affine.of(*IMAGENET), OUTPUTS, n_frames=F, size=SIZE, compute=way)
        result = run.start(clips(5)).result()
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert run.clips_at_once == 2
    assert result.at_once.tolist() == [2] * 5
    (there,) = on_a_cpu([clips(5)])
    assert np.abs(result.arrays["frames"] - there["frames"]).max() <= 1e-5 * np.abs(there["frames"]).max()


@pytest.mark.parametrize("place", ["forward", "synchronize"])
def test_another_error_of_the_card_is_not_taken_for_a_lack_of_memory(place):
    def fails(what, _number):
        return RuntimeError("CUDA error: an illegal memory access was encountered") if what == place else None

    with pytest.raises(RuntimeError, match="illegal memory access"):
        on_the_card([clips(2)], Card(fails=fails))


def test_the_next_batch_is_queued_before_the_last_one_is_waited_for():
    card = Card()
    on_the_card([clips(4)] * 3, card, ahead=1, clips_at_once=4)
    order = [call for call in card.calls if call in ("upload", "synchronize")]
    assert order == ["upload", "upload", "synchronize", "upload", "synchronize", "synchronize"]


def test_values_that_are_not_finite_are_seen_by_the_card(monkeypatch):
    card = Card()
    card.install(monkeypatch)
    network = Network(card)
    network.weight.data[0, 0] = 1e9  # beyond float16
    way = Compute(device="cuda")
    run = Runner("net", network, Affine.of(*IMAGENET), OUTPUTS, n_frames=F, size=SIZE, compute=way)
    assert not run.start(clips(3)).result().finite.any()


@pytest.mark.parametrize(
    ("capability", "precision", "place"),
    [
        ((7, 5), "bfloat16", "--dtype fp16 or fp32"),
        ((7, 0), "bfloat16-weights", "bfloat16"),
        ((8, 9), "bfloat16", None),
        ((7, 5), "float16", None),
    ],
)
def test_old_cards_are_named_with_the_remedy(monkeypatch, capability, precision, place):
    Card().install(monkeypatch)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device=None: capability)
    compute = Compute(device="cuda", precision=precision)
    if place is None:
        assert compute.torch_device().type == "cuda"
        return
    with pytest.raises(BackboneError, match=place):
        compute.torch_device()


def test_a_card_without_kernels_ends_in_one_line_before_anything_is_decoded(monkeypatch):
    words = "CUDA error: no kernel image is available for execution on the device\nSearch for it."
    card = Card(fails=lambda what, _number: RuntimeError(words) if what == "forward" else None)
    card.install(monkeypatch)
    with pytest.raises(BackboneError, match=f"'net' .*{pretended_card.NAME}: .*no kernel image") as refused:
        runner("cuda", card).warm_up()
    assert "\n" not in str(refused.value)


@pytest.mark.long
@pytest.mark.nightly
def test_what_measures_a_card_runs_with_tiny_networks_on_a_cpu():
    benchmark = Path(__file__).parents[2] / "benchmarks" / "gpu.py"
    environment = {**os.environ, "TORCHDYNAMO_DISABLE": "1"}  # a compiler takes minutes
    command = [sys.executable, str(benchmark), "--tiny", "--device", "cpu"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert result.returncode == 0, result.stdout + result.stderr
