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
from tests.lazy_import import lazy_import
from tests.rounding import assert_close

torch = lazy_import("torch")
pretended_card = lazy_import("tests.backbones.pretended_card")
Card = lazy_import("tests.backbones.pretended_card", "Card")
Network = lazy_import("tests.backbones.row_network", "Network")
running = lazy_import("obygaze_features.backbones.runner")
Compute = lazy_import("obygaze_features.backbones.compute", "Compute")
Runner = lazy_import("obygaze_features.backbones.runner", "Runner")
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
"""Numbers of clips of one to three batches, which are encoded one after the other."""
CLIPS_AT_ONCE = st.integers(1, 16)
"""Clips that the runner may put into one call of the network."""


@quick
@given(
    sizes=SIZES_OF_BATCHES,
    at_once=CLIPS_AT_ONCE,
    late=st.booleans(),
    compiled=st.booleans(),
    n_waiting=st.integers(0, 3),
)
def test_any_batches_give_the_bits_of_a_cpu_in_calls_of_one_size(sizes, at_once, late, compiled, n_waiting):
    """Batches of so many clips (`sizes`) are encoded on a pretended card, `at_once` clips in each call.

    The last call of a batch is filled up to that number. Whatever the circumstances, the arrays must be those
    of a CPU to the last bit: `n_waiting` batches may wait while the next is started, the network may be
    compiled, and a `late` card does its work only when it is waited for, as real ones may.

    Each call keeps the pretended card busy for a second of its clock, which the runner must have counted. No
    upload may be left in the card's memory.
    """
    batches = [clips(n) for n in sizes]
    card = Card(late=late)

    run, results = encode_on_card(
        batches, card, n_waiting=n_waiting, clips_at_once=at_once, compiled=compiled
    )

    assert_same_bits(results, encode_on_cpu(batches))
    n_calls = sum(math.ceil(n / at_once) for n in sizes)
    sizes_of_calls = run.network.sizes
    assert sizes_of_calls == [at_once] * n_calls
    for result in results:
        clips_in_the_call_of_each_clip = result.at_once
        assert (clips_in_the_call_of_each_clip == at_once).all()
    seconds_busy = run.busy_s
    assert seconds_busy == n_calls
    uploads_that_are_kept = len(card.uploads)
    assert uploads_that_are_kept == 0


class PlannedFailures:
    """Lets some calls of a pretended card run out of memory, and counts how many have.

    A call fails if its number, counted over all calls of the card, is in `numbers`, and its kind, such as
    "upload", is in `kinds_of_calls`; but no call fails after `most` have failed.
    """

    def __init__(self, numbers, kinds_of_calls, kind_of_error, most=math.inf):
        self.numbers = numbers
        self.kinds_of_calls = kinds_of_calls
        self.kind_of_error = kind_of_error
        self.most = most
        self.n_failures = 0

    def __call__(self, kind_of_call, number):
        is_planned = number in self.numbers and kind_of_call in self.kinds_of_calls
        if not is_planned or self.n_failures >= self.most:
            return None
        self.n_failures += 1
        return out_of_memory(self.kind_of_error)


FAILING_CALLS = {
    "failing_numbers": st.sets(st.integers(1, 120), max_size=6),
    "kinds_of_failing_calls": st.sets(st.sampled_from(CALLS_OF_A_CARD), min_size=1),
    "error": st.sampled_from(sorted(OUT_OF_MEMORY_ERRORS)),
}
"""Which calls fail, by their numbers and kinds, and with the out-of-memory error of which library."""

EVERY_CALL = range(1, 10_000)
"""The numbers of all calls of a test."""


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
    sizes, at_once, late, n_waiting, failing_numbers, kinds_of_failing_calls, error
):
    """Batches of so many clips (`sizes`) are encoded on a pretended card, `at_once` clips in each call.

    Some calls of the card, drawn at random, run out of memory, at most as often as `at_once` can be halved.
    Each of these failures halves it, and the same clips are tried again. The arrays must be those of a CPU,
    however many batches wait (`n_waiting`) and even if the card works only when it is waited for (`late`).

    After a failure, and only then, PyTorch is told to give back memory. Uploads that somebody still held
    could not be given back, so there must be none at that moment.
    """
    batches = [clips(n) for n in sizes]
    failures = PlannedFailures(
        failing_numbers, kinds_of_failing_calls, error, most=n_halvings_to_one(at_once)
    )
    card = Card(late=late, fails=failures)

    run, results = encode_on_card(batches, card, n_waiting=n_waiting, clips_at_once=at_once)

    assert_same_bits(results, encode_on_cpu(batches))
    n_failures = failures.n_failures
    assert run.clips_at_once == halved(at_once, n_failures)
    sizes_of_calls = set(run.network.sizes)
    assert sizes_of_calls <= {halved(at_once, n_times) for n_times in range(n_failures + 1)}
    uploads_kept_at_each_release = card.alive_at_release
    was_memory_given_back = len(uploads_kept_at_each_release) > 0
    assert was_memory_given_back == (n_failures > 0)
    assert all(n_uploads == 0 for n_uploads in uploads_kept_at_each_release)


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
    sizes, at_once, late, n_waiting, failing_numbers, kinds_of_failing_calls, error
):
    """Every forward pass on a pretended card runs out of memory, and some other calls, so that no clip fits.

    Each failure halves the clips at once (`at_once` at first), until one is left. That one clip fails as
    well, so that there is at least one failure more than halvings.

    The rest is drawn at random, and must make no difference: the numbers of clips of the batches (`sizes`),
    how many batches wait, whether the card is `late`, and which other calls fail.
    """
    forward_fails = PlannedFailures(EVERY_CALL, {"forward"}, error)
    others_fail = PlannedFailures(failing_numbers, kinds_of_failing_calls - {"forward"}, error)

    def fails(kind_of_call, number):
        return forward_fails(kind_of_call, number) or others_fail(kind_of_call, number)

    card = Card(late=late, fails=fails)
    batches = [clips(n) for n in sizes]

    with pytest.raises(BackboneError, match="not fit in the memory"):
        encode_on_card(batches, card, n_waiting=n_waiting, clips_at_once=at_once)

    n_failures = forward_fails.n_failures + others_fail.n_failures
    assert n_failures > n_halvings_to_one(at_once)


def n_halvings_to_one(at_once):
    """Return how often clips at once can be halved until one is left: 0 of 1, 1 of 2 or 3, 2 of 4 to 7."""
    return math.floor(math.log2(at_once))


def halved(at_once, n_times):
    return max(at_once // 2**n_times, 1)


@pytest.mark.parametrize(
    ("failing_call", "error"),
    [
        *((call, "driver") for call in CALLS_OF_A_CARD),
        *(("forward", error) for error in OUT_OF_MEMORY_ERRORS),
    ],
)
@pytest.mark.parametrize(("n_failures", "clips_that_fit"), [(1, 2), (2, 1)])
def test_each_failure_halves_the_clips_at_once(failing_call, error, n_failures, clips_that_fit):
    """Starting from 4 clips at once, one failure leaves 2, and two leave 1.

    The first calls of one kind, such as the first upload to the pretended card, or the first two, run out of
    memory (`n_failures`). The error has the words of the driver, or of a library (`error`).
    """
    failures = PlannedFailures(EVERY_CALL, {failing_call}, error, most=n_failures)
    ten_clips = clips(10)

    run, (result,) = encode_on_card([ten_clips], Card(fails=failures), clips_at_once=4)

    assert_same_bits([result], encode_on_cpu([ten_clips]))
    assert run.clips_at_once == clips_that_fit
    assert result.at_once.tolist() == [clips_that_fit] * 10  # of each clip: with how many it was encoded


@pytest.mark.parametrize("failing_call", CALLS_OF_A_CARD)
def test_memory_that_never_suffices_ends_in_one_sentence(failing_call):
    """A pretended card runs out of memory each time it is asked to do one thing, such as to upload clips.

    The runner then halves the number of clips that it encodes at once, from 4 on. That can't help here, since
    a single clip does not fit either. So there is an error, of one line, which names the card.
    """
    always_fails = PlannedFailures(EVERY_CALL, {failing_call}, "driver")
    three_batches = [clips(9)] * 3

    with pytest.raises(BackboneError, match=r"not fit in the memory of cuda \(NVIDIA Pretended") as refused:
        encode_on_card(three_batches, Card(fails=always_fails), n_waiting=1, clips_at_once=4)

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
    """A batch is started while up to `n_waiting` earlier ones are still computed.

    This must not change the results of any: another runner, which encodes the same clips one after the other,
    gives the same bits.
    """
    batches = [clips(n) for n in sizes]
    overlapping = runner("cuda", clips_at_once=at_once)
    one_after_the_other = runner("cuda", clips_at_once=at_once)

    results = encode_overlapping(overlapping, batches, n_waiting)

    for result, batch in zip(results, batches, strict=True):
        arrays_of_clips = [one_after_the_other(clip[None]) for clip in batch]
        for name in ("frames", "tokens", "pooled"):
            expected = np.concatenate([arrays[name] for arrays in arrays_of_clips])
            assert np.array_equal(result.arrays[name], expected)


@pytest.mark.gpu
@pytest.mark.usefixtures("real_card")
def test_on_a_real_card_values_are_those_of_a_cpu_to_five_digits():
    """Batches of five and of nine clips; the second is started while the first is computed."""
    batches = [clips(5), clips(9)]

    results = encode_overlapping(runner("cuda", clips_at_once=4), batches, n_waiting=1)

    for result, on_cpu in zip(results, encode_on_cpu(batches), strict=True):
        assert_close(result.arrays["frames"], on_cpu["frames"], bound=1e-5)


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
def no_pause_after_a_failure(monkeypatch):
    """A call that ran out of memory is tried again at once."""
    monkeypatch.setattr(running, "PAUSE_S", 0.0)


@pytest.fixture
def card_of_3_5_gb(real_card):
    """Let PyTorch take no more than 3.5 GB of the card."""
    total = torch.cuda.mem_get_info(real_card)[1]
    torch.cuda.set_per_process_memory_fraction(min(3.5e9 / total, 1.0))
    yield
    torch.cuda.set_per_process_memory_fraction(1.0)


def network_that_takes_a_gigabyte_for_every_clip():
    """Make the tiny network, which reserves a gigabyte a clip, and fills it with nothing that counts."""

    class TakesAGigabyteForEveryClip(Network):
        def forward(self, pixels):
            gigabytes = torch.empty((len(pixels), 1 << 28), device=pixels.device)  # of float32
            gigabytes[:, 0] = 0
            zeros = gigabytes[:, 0].view(-1, 1, 1, 1, 1)
            return super().forward(pixels + zeros)

    return TakesAGigabyteForEveryClip()


@pytest.mark.gpu
@pytest.mark.usefixtures("card_of_3_5_gb", "no_pause_after_a_failure")
def test_on_a_real_card_out_of_memory_halves_the_clips_at_once_until_they_fit():
    """Of clips that take 1 GB each, 8 and 4 don't fit in 3.5 GB, and 2 do.

    There are five clips; a call that has fewer clips than it may have is filled up.
    """
    five_clips = clips(5)
    run = runner("cuda", network=network_that_takes_a_gigabyte_for_every_clip(), clips_at_once=8)

    result = run.start(five_clips).result()

    assert run.clips_at_once == 2
    assert result.at_once.tolist() == [2, 2, 2, 2, 2]
    (on_cpu,) = encode_on_cpu([five_clips])
    assert_close(result.arrays["frames"], on_cpu["frames"], bound=1e-5)


@pytest.mark.parametrize("failing_call", ["forward", "synchronize"])
def test_another_error_of_the_card_is_not_taken_for_a_lack_of_memory(failing_call):
    """The pretended card fails in a forward pass, or when it is waited for. The error is passed on."""

    def fails(call, _number):
        if call == failing_call:
            return RuntimeError("CUDA error: an illegal memory access was encountered")
        return None

    with pytest.raises(RuntimeError, match="illegal memory access"):
        encode_on_card([clips(2)], Card(fails=fails))


def test_the_next_batch_is_queued_before_the_last_one_is_waited_for():
    """Of three batches, each is uploaded once, and one may wait while the next is uploaded.

    "synchronize" is the call that waits for a batch.
    """
    card = Card()
    three_batches = [clips(4)] * 3

    encode_on_card(three_batches, card, n_waiting=1, clips_at_once=4)

    uploads_and_waits = [call for call in card.calls if call in ("upload", "synchronize")]
    assert uploads_and_waits == ["upload", "upload", "synchronize", "upload", "synchronize", "synchronize"]


def test_clips_with_values_that_are_not_finite_are_marked_in_the_result(monkeypatch):
    """Tokens are stored as float16, which ends at 65,504: values of about 1e9 become infinite."""
    card = Card()
    card.install(monkeypatch)
    network = Network(card)
    network.weight.data[0, 0] = 1e9  # by which tokens are computed
    run = runner("cuda", network=network)

    result = run.start(clips(3)).result()

    assert result.finite.tolist() == [False, False, False]


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
    """A card of a generation is pretended; neither Turing nor Volta computes in bfloat16."""
    install_card_of(capability, monkeypatch)
    compute = Compute(device="cuda", precision=precision)

    with pytest.raises(BackboneError, match=message):
        compute.torch_device()


@pytest.mark.parametrize(
    ("capability", "precision"), [(ADA, "bfloat16"), (TURING, "float16")], ids=["Ada", "Turing"]
)
def test_a_precision_that_a_card_has_is_not_refused(monkeypatch, capability, precision):
    """A card of the generation Ada is pretended, which computes in bfloat16, or a Turing, in float16.

    `torch_device` checks the precision before it returns the device; an old card's is refused there.
    """
    install_card_of(capability, monkeypatch)
    compute = Compute(device="cuda", precision=precision)

    assert compute.torch_device().type == "cuda"


def test_a_card_without_kernels_is_reported_in_one_line(monkeypatch):
    """PyTorch has no kernels for very old or very new cards, and says so in two lines.

    The error names the network, `net`, and the pretended card.
    """
    words = "CUDA error: no kernel image is available for execution on the device\nSearch for it."

    def fails(call, _number):
        return RuntimeError(words) if call == "forward" else None

    card = Card(fails=fails)
    card.install(monkeypatch)
    run = runner("cuda", card)

    with pytest.raises(BackboneError, match=f"'net' .*{pretended_card.NAME}: .*no kernel image") as refused:
        run.warm_up()

    assert "\n" not in str(refused.value)


@pytest.mark.long
@pytest.mark.nightly
def test_the_benchmark_of_cards_runs_with_tiny_networks_on_a_cpu():
    """The script is for machines with a GPU; this keeps it working as the package changes."""
    benchmark = Path(__file__).parents[2] / "benchmarks" / "gpu.py"
    command = [sys.executable, str(benchmark), "--tiny", "--device", "cpu"]
    without_compiling = {**os.environ, "TORCHDYNAMO_DISABLE": "1"}  # which takes minutes

    result = subprocess.run(command, capture_output=True, text=True, check=False, env=without_compiling)

    assert result.returncode == 0, result.stdout + result.stderr
