"""On a CUDA card the runner gives the bits that it gives on a CPU, whatever streams, batches and memory do.

Everything runs on a pretended card (`pretended_card.py`), whose calls can be told to fail and whose clock
takes a second for each call; under the marker `gpu` the same properties run on a real one.
"""

import math
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
from tests.rounding import assert_close

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
OUT_OF_MEMORY_ERRORS = {
    "allocator": ("OutOfMemoryError", "CUDA out of memory. Tried to allocate 20.00 MiB."),
    "driver": ("AcceleratorError", "CUDA error: out of memory"),
    "runtime": ("", "CUDA error: out of memory"),
    "cublas": ("", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    "cudnn": ("", "cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
}
CALLS_OF_A_CARD = ("weights", "pin", "upload", "event", "forward", "download")
quick = settings(deadline=None, max_examples=10, suppress_health_check=list(HealthCheck))


def runner(device, card=None, network=None, **options):
    """Make a runner of the tiny network, which notes its calls on a pretended card."""
    return Runner(
        "net",
        network or Network(card),
        Affine.of(*IMAGENET),
        OUTPUTS,
        n_frames=F,
        size=SIZE,
        compute=Compute(device=device, **options),
    )


def out_of_memory(kind):
    name, words = OUT_OF_MEMORY_ERRORS[kind]
    return getattr(torch, name, RuntimeError)(words)


def clips(n):
    """Return n clips of noise, the same for the same n."""
    return np.random.default_rng(n).integers(0, 256, (n, F, SIZE, SIZE, 3), dtype=np.uint8)


def encode_on_cpu(batches):
    run = runner("cpu")
    return [run(batch) for batch in batches]


def encode_on_card(batches, card, *, n_waiting=0, **compute):
    """Encode batches on a pretended card, overwritten once started; return the runner and results."""
    with pytest.MonkeyPatch.context() as patch:
        card.install(patch)
        patch.setattr(running, "PAUSE_S", 0.0)
        if compute.get("compiled"):
            patch.setattr(torch, "compile", lambda network, **_: network)
        run = runner("cuda", card, **compute)
        result, waiting = [], []
        for batch in batches:
            frames = batch.copy()
            waiting.append(run.start(list(frames)))
            frames[:] = 0
            if len(waiting) > n_waiting:
                result.append(waiting.pop(0).result())
        result += [each.result() for each in waiting]
        return run, result


def assert_same_bits(results, expected):
    for result, arrays in zip(results, expected, strict=True):
        for output in OUTPUTS:
            values = result.arrays[output.name]
            assert values.dtype == np.dtype(output.dtype)
            assert np.array_equal(values, arrays[output.name]), output.name
        assert result.finite.all()


SIZES_OF_BATCHES = st.lists(st.integers(1, 24), min_size=1, max_size=3)
CLIPS_AT_ONCE = st.integers(1, 16)


@quick
@given(
    sizes=SIZES_OF_BATCHES,
    at_once=CLIPS_AT_ONCE,
    late=st.booleans(),
    compiled=st.booleans(),
    n_waiting=st.integers(0, 3),
)
def test_any_batches_give_the_bits_of_a_cpu_in_calls_of_one_size(sizes, at_once, late, compiled, n_waiting):
    """A batch that leaves places free is filled up; a `late` card works only when it is waited for."""
    batches = [clips(n) for n in sizes]
    card = Card(late=late)
    run, results = encode_on_card(
        batches, card, n_waiting=n_waiting, clips_at_once=at_once, compiled=compiled
    )
    assert_same_bits(results, encode_on_cpu(batches))
    n_calls = sum(math.ceil(n / at_once) for n in sizes)

    assert run.network.sizes == [at_once] * n_calls
    assert all((result.at_once == at_once).all() for result in results)
    assert run.busy_s == n_calls  # a second each
    assert len(card.uploads) == 0  # none is kept in memory


class PlannedFailures:
    """Lets the calls of these numbers and kinds run out of memory, `most` times at most."""

    def __init__(self, numbers, calls, kind_of_error, most=math.inf):
        self.numbers = numbers
        self.calls = calls
        self.kind_of_error = kind_of_error
        self.most = most
        self.n_failures = 0

    def __call__(self, call, number):
        is_planned = number in self.numbers and call in self.calls
        if not is_planned or self.n_failures >= self.most:
            return None
        self.n_failures += 1
        return out_of_memory(self.kind_of_error)


FAILING_CALLS = {
    "numbers": st.sets(st.integers(1, 120), max_size=6),
    "calls": st.sets(st.sampled_from(CALLS_OF_A_CARD), min_size=1),
    "kind": st.sampled_from(sorted(OUT_OF_MEMORY_ERRORS)),
}
"""Arguments of PlannedFailures."""


@pytest.mark.long
@quick
@given(
    sizes=SIZES_OF_BATCHES,
    at_once=CLIPS_AT_ONCE,
    late=st.booleans(),
    n_waiting=st.integers(0, 2),
    **FAILING_CALLS,
)
def test_out_of_memory_halves_the_clips_at_once_and_changes_no_bit(
    sizes, at_once, late, n_waiting, numbers, calls, kind
):
    batches = [clips(n) for n in sizes]
    failures = PlannedFailures(numbers, calls, kind, most=n_halvings_to_one(at_once))
    card = Card(late=late, fails=failures)
    run, results = encode_on_card(batches, card, n_waiting=n_waiting, clips_at_once=at_once)

    assert_same_bits(results, encode_on_cpu(batches))
    assert run.clips_at_once == halved(at_once, failures.n_failures)
    assert set(run.network.sizes) <= {halved(at_once, n) for n in range(failures.n_failures + 1)}
    # The allocator gives memory back after a failure and only then, and no upload is kept in it by then.
    uploads_kept_at_each_release = card.alive_at_release
    was_released = len(uploads_kept_at_each_release) > 0

    assert was_released == (failures.n_failures > 0)
    assert all(n == 0 for n in uploads_kept_at_each_release)


@pytest.mark.long
@quick
@given(
    sizes=SIZES_OF_BATCHES,
    at_once=CLIPS_AT_ONCE,
    late=st.booleans(),
    n_waiting=st.integers(0, 2),
    **FAILING_CALLS,
)
def test_a_single_clip_that_runs_out_of_memory_ends_the_run(
    sizes, at_once, late, n_waiting, numbers, calls, kind
):
    """Every forward pass fails, and some other calls, so that no number of clips ever fits."""
    forward_fails = PlannedFailures(range(1, 10_000), {"forward"}, kind)
    others_fail = PlannedFailures(numbers, calls - {"forward"}, kind)

    def fails(call, number):
        return forward_fails(call, number) or others_fail(call, number)

    card = Card(late=late, fails=fails)

    with pytest.raises(BackboneError, match="not fit in the memory"):
        encode_on_card([clips(n) for n in sizes], card, n_waiting=n_waiting, clips_at_once=at_once)

    # One failure for every halving, and at least one more with a single clip.
    assert forward_fails.n_failures + others_fail.n_failures > n_halvings_to_one(at_once)


def n_halvings_to_one(at_once):
    """Return how often clips at once can be halved until one is left: 0 of 1, 1 of 2 or 3, 2 of 4 to 7."""
    return math.floor(math.log2(at_once))


def halved(at_once, n_times):
    return max(at_once // 2**n_times, 1)


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        *((place, "driver") for place in CALLS_OF_A_CARD),
        *(("forward", kind) for kind in OUT_OF_MEMORY_ERRORS),
    ],
)
@pytest.mark.parametrize(("n_failures", "at_once"), [(1, 2), (2, 1)])
def test_each_failure_halves_the_clips_at_once(place, kind, n_failures, at_once):
    """Starting from 4 clips at once, one failure leaves 2, and two leave 1."""
    failures = PlannedFailures(range(1, 10_000), {place}, kind, most=n_failures)
    batches = [clips(10)]

    run, (result,) = encode_on_card(batches, Card(fails=failures), clips_at_once=4)

    assert_same_bits([result], encode_on_cpu(batches))
    assert run.clips_at_once == at_once
    assert set(result.at_once.tolist()) == {at_once}  # as the result says of each clip


@pytest.mark.parametrize("place", CALLS_OF_A_CARD)
def test_memory_that_never_suffices_ends_in_one_sentence(place):
    """If a single clip does not fit either, halving can't help. The error is one line that names the card."""
    card = Card(fails=lambda what, _number: out_of_memory("driver") if what == place else None)
    with pytest.raises(
        BackboneError, match=rf"not fit in the memory of cuda \({pretended_card.NAME}"
    ) as refused:
        encode_on_card([clips(9)] * 3, card, n_waiting=1, clips_at_once=4)
    assert "\n" not in str(refused.value)


@pytest.fixture(scope="module")
def real_card():
    """A real CUDA device; these tests are the only ones that need it."""
    if reason := Compute().fallback():
        pytest.skip(reason)
    return torch.device("cuda")


@pytest.mark.gpu
@quick
@given(sizes=SIZES_OF_BATCHES, at_once=CLIPS_AT_ONCE, n_waiting=st.integers(0, 3))
@pytest.mark.usefixtures("real_card")
def test_on_a_real_card_batches_that_overlap_give_the_bits_of_single_clips(sizes, at_once, n_waiting):
    """A batch is started while earlier ones are still computed, which must not change their results."""
    batches = [clips(n) for n in sizes]
    results = encode_overlapping(runner("cuda", clips_at_once=at_once), batches, n_waiting)
    of_single_clips = runner("cuda", clips_at_once=at_once)
    for result, batch in zip(results, batches, strict=True):
        singles = [of_single_clips(clip[None]) for clip in batch]
        for output in OUTPUTS:
            expected = np.concatenate([single[output.name] for single in singles])
            assert np.array_equal(result.arrays[output.name], expected)


@pytest.mark.gpu
@pytest.mark.usefixtures("real_card")
def test_on_a_real_card_values_are_those_of_a_cpu_to_five_digits():
    batches = [clips(5), clips(9)]
    results = encode_overlapping(runner("cuda", clips_at_once=4), batches, n_waiting=1)
    for result, on_cpu in zip(results, encode_on_cpu(batches), strict=True):
        assert_close(result.arrays["frames"], on_cpu["frames"], 1e-5)


def encode_overlapping(run, batches, n_waiting):
    """Start batches, and wait for the oldest whenever more than `n_waiting` are waiting."""
    waiting = deque()
    results = []
    for batch in batches:
        waiting.append(run.start(list(batch)))
        if len(waiting) > n_waiting:
            results.append(waiting.popleft().result())
    results += [pending.result() for pending in waiting]
    return results


@pytest.fixture
def card_of_3_5_gb(real_card):
    """Let PyTorch take no more than 3.5 GB of the card."""
    total = torch.cuda.mem_get_info(real_card)[1]
    torch.cuda.set_per_process_memory_fraction(min(3.5e9 / total, 1.0))
    yield
    torch.cuda.set_per_process_memory_fraction(1.0)


@pytest.mark.gpu
@pytest.mark.usefixtures("card_of_3_5_gb")
def test_on_a_real_card_out_of_memory_halves_the_clips_at_once_until_they_fit(monkeypatch):
    """Of clips that take 1 GB each, 8 and 4 don't fit in 3.5 GB, and 2 do."""
    monkeypatch.setattr(running, "PAUSE_S", 0.0)

    class TakesAGigabyteForEveryClip(Network):
        def forward(self, pixels):
            gigabytes = torch.empty((len(pixels), 1 << 28), device=pixels.device)  # of float32
            gigabytes[:, 0] = 0
            zeros = gigabytes[:, 0].view(-1, 1, 1, 1, 1)
            return super().forward(pixels + zeros)

    run = runner("cuda", network=TakesAGigabyteForEveryClip(), clips_at_once=8)
    result = run.start(clips(5)).result()
    assert run.clips_at_once == 2
    assert result.at_once.tolist() == [2] * 5
    (on_cpu,) = encode_on_cpu([clips(5)])

    assert_close(result.arrays["frames"], on_cpu["frames"], 1e-5)


@pytest.mark.parametrize("place", ["forward", "synchronize"])
def test_another_error_of_the_card_is_not_taken_for_a_lack_of_memory(place):
    def fails(what, _number):
        return RuntimeError("CUDA error: an illegal memory access was encountered") if what == place else None

    with pytest.raises(RuntimeError, match="illegal memory access"):
        encode_on_card([clips(2)], Card(fails=fails))


def test_the_next_batch_is_queued_before_the_last_one_is_waited_for():
    card = Card()
    encode_on_card([clips(4)] * 3, card, n_waiting=1, clips_at_once=4)
    order = [call for call in card.calls if call in ("upload", "synchronize")]  # start, and wait for, a batch
    assert order == ["upload", "upload", "synchronize", "upload", "synchronize", "synchronize"]


def test_clips_with_values_that_are_not_finite_are_marked_in_the_result(monkeypatch):
    """Values of 1e9 become infinite in float16, which ends at 65,504."""
    card = Card()
    card.install(monkeypatch)
    network = Network(card)
    network.weight.data[0, 0] = 1e9  # tokens are stored as float16
    run = runner("cuda", network=network)
    assert not run.start(clips(3)).result().finite.any()


VOLTA, TURING, ADA = (7, 0), (7, 5), (8, 9)
"""Compute capabilities of generations of cards."""


def install_card_of(capability, monkeypatch):
    """Put a pretended card of a generation in place of torch's."""
    Card().install(monkeypatch)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device=None: capability)


@pytest.mark.parametrize(
    ("capability", "precision", "message"),
    [(TURING, "bfloat16", "--dtype fp16 or fp32"), (VOLTA, "bfloat16-weights", "bfloat16")],
    ids=["Turing", "Volta"],
)
def test_a_precision_that_an_old_card_does_not_have_is_refused(monkeypatch, capability, precision, message):
    install_card_of(capability, monkeypatch)
    with pytest.raises(BackboneError, match=message):
        Compute(device="cuda", precision=precision).torch_device()


@pytest.mark.parametrize(
    ("capability", "precision"), [(ADA, "bfloat16"), (TURING, "float16")], ids=["Ada", "Turing"]
)
def test_a_precision_that_a_card_has_is_taken(monkeypatch, capability, precision):
    install_card_of(capability, monkeypatch)
    assert Compute(device="cuda", precision=precision).torch_device().type == "cuda"


def test_a_card_without_kernels_is_reported_in_one_line(monkeypatch):
    """PyTorch has no kernels for very old or very new cards."""
    words = "CUDA error: no kernel image is available for execution on the device\nSearch for it."
    card = Card(fails=lambda what, _number: RuntimeError(words) if what == "forward" else None)
    card.install(monkeypatch)
    with pytest.raises(BackboneError, match=f"'net' .*{pretended_card.NAME}: .*no kernel image") as refused:
        runner("cuda", card).warm_up()
    assert "\n" not in str(refused.value)


@pytest.mark.long
@pytest.mark.nightly
def test_the_benchmark_of_cards_runs_with_tiny_networks_on_a_cpu():
    """The script is for machines with a GPU; this keeps it working as the package changes."""
    benchmark = Path(__file__).parents[2] / "benchmarks" / "gpu.py"
    environment = {**os.environ, "TORCHDYNAMO_DISABLE": "1"}  # a compiler takes minutes
    command = [sys.executable, str(benchmark), "--tiny", "--device", "cpu"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert result.returncode == 0, result.stdout + result.stderr
