"""The gradient of a step and three steps of training, against the original's (checks 2, 3, 4, 6 and 14)."""

import numpy as np
import pytest

from tests.later import later
from tests.rounding import rounding

from .three_steps import PAIRS, furthest, three_steps

torch = later("torch")
normalize = later("torch.nn.functional", "normalize")
rules = later("obygaze_studies.lsmdc.step")


@pytest.fixture(scope="module")
def first(oracle):
    """Network with the gradients of step 0, its loss, and the pairs' embeddings and scores."""
    network = oracle.network()
    loss = rules.compute_gradients(network, oracle.size, oracle.batch(0), PAIRS)
    with torch.no_grad():
        embeddings = rules.embed(network, oracle.batch(0))
        s, w, f, v = embeddings
        scores = rules.similarities(network, sentences=s, words=w, frames=f, videos=v)
    return network, loss, embeddings, scores


@pytest.fixture(scope="module")
def in_bfloat16(oracle):
    """Parameters, losses, norms and optimiser of three steps in bfloat16."""
    return three_steps(oracle, arithmetic="bfloat16")


def largest_difference_of_losses(oracle, dtype):
    """Compute how far apart the losses of two correct steps may be whose values are kept in `dtype`.

    Values are rounded six times in each layer of the vision network, and six times in norms, pooling and
    head, as in `tests.rounding.network_rounding`. The loss is a mean over four scores of each pair; a score
    is a cosine in `embed` dimensions times 100.
    """
    n_roundings = 6 * oracle.size.vision_layers + 6
    condition = 100 / (PAIRS * 4 * oracle.size.embed) ** 0.5
    return rounding(dtype, *[1] * n_roundings, condition=condition)


def test_embeddings_scores_and_loss_are_the_originals(oracle, first):
    _, loss, embeddings, scores = first
    expected = oracle.similarities
    assert loss == pytest.approx(float(expected["loss.0"]), abs=5e-5)
    for name, score in scores.items():
        assert np.abs(score.numpy() - expected[f"{name}.0"]).max() <= 2e-4, name
    unit = {
        "sentence_output": normalize(embeddings.sentences, dim=-1),
        "word_features": normalize(embeddings.words, dim=-1),
        "frame_features": normalize(embeddings.frames, dim=-1),
        "video_output": embeddings.videos,
    }
    for name, value in unit.items():
        assert np.abs(value.numpy() - expected[f"{name}.0"]).max() <= 1e-5, name


def test_the_hundred_gradients_and_their_norm_are_the_originals(oracle, first):
    network, *_ = first
    gradients = {name: value.grad for name, value in network.named_parameters() if value.grad is not None}
    expected = oracle.load("gradients_step0")
    assert len(expected) == 100
    assert furthest(oracle.size.from_port(gradients), expected) <= 1e-4
    norm = rules.clip_gradients([value for value in network.parameters() if value.requires_grad])
    assert norm == pytest.approx(float(oracle.similarities["norm.0"]), rel=5e-5)


def test_in_float64_losses_norms_and_parameters_are_the_originals(oracle, monkeypatch):
    """The rules are the original's: what float32 leaves is rounding, the original's own included."""
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)  # lifts every cast, as the oracle did
    parameters, losses, norms, _ = three_steps(oracle)
    assert {value.dtype for value in parameters.values()} == {torch.float64}
    original = oracle.run["float64"]
    assert np.abs(np.subtract(losses, original["loss"])).max() <= 1e-6
    norms_in_float32 = oracle.run["one process"]["grad_norm_before_clip"]
    our_error = np.abs(np.divide(norms, original["grad_norm_before_clip"]) - 1).max()
    error_of_float32 = np.abs(np.divide(norms_in_float32, original["grad_norm_before_clip"]) - 1).max()
    assert our_error <= 1e-6
    assert our_error < error_of_float32
    # What is between us and the original in float32 is what is between the original's own two types.
    between_its_types, _ = oracle.run["float32 against float64"]["params_after_3"]
    assert furthest(parameters, oracle.load("after_3_steps")) == pytest.approx(between_its_types, rel=1e-4)


def test_three_steps_are_the_originals(oracle):
    parameters, losses, norms, optimiser = three_steps(oracle)
    assert furthest(parameters, oracle.load("after_3_steps")) <= 2e-6
    assert np.abs(np.subtract(losses, oracle.run["one process"]["loss"])).max() <= 5e-5
    assert norms == pytest.approx(oracle.run["one process"]["grad_norm_before_clip"], rel=5e-5)
    norms_of_original = dict(np.load(oracle.folder / "norms.npz"))
    for key, moments in (("m_after_3", optimiser.m), ("v_after_3", optimiser.v)):
        original = oracle.size.from_port(moments)
        for name, norm in zip(norms_of_original["names"], norms_of_original[key], strict=True):
            assert float(original[name].norm()) == pytest.approx(float(norm), rel=1e-4, abs=1e-9), (key, name)


def test_the_rates_of_the_four_groups_are_the_originals(oracle):
    for step, expected in enumerate(oracle.run["learning_rates"]):
        factor = rules.schedule(step, oracle.run["total_steps"])
        names = ("clip.weight", "weight", "clip.bias", "bias")
        groups = [rules.group_of(name, oracle.run["lr"], oracle.run["coef_lr"]) for name in names]
        rates = [group.rate * factor for group in groups]
        assert rates == expected


def test_half_the_gather_share_is_what_two_processes_of_the_original_gave(oracle):
    parameters, losses, norms, _ = three_steps(oracle, gather_share=0.5)
    assert furthest(parameters, oracle.load("after_3_steps_two_processes")) <= 2e-6
    assert np.abs(np.subtract(losses, oracle.run["two processes"]["loss"])).max() <= 5e-5
    assert norms == pytest.approx(oracle.run["two processes"]["grad_norm_before_clip"], rel=5e-5)


@pytest.mark.parametrize("chunk", [1, 4])
def test_chunks_change_nothing(oracle, chunk):
    parameters, *_ = three_steps(oracle, chunk=chunk)
    assert furthest(parameters, oracle.load("after_3_steps")) <= 2e-6


@pytest.mark.long  # simulates
def test_published_arithmetic_is_near_the_originals_mixed_one(oracle):
    parameters, losses, _, optimiser = three_steps(oracle, arithmetic="published", lr=1e-4, scale=1e-3)
    original = oracle.run["original dtypes"]
    expected = oracle.run["original dtypes at the published rates"]["loss"]
    differences = np.abs(np.subtract(losses, expected))
    assert differences.max() <= largest_difference_of_losses(oracle, "float16")

    second_moments = [value for value in optimiser.v.values() if value.dtype == torch.float16]
    n_values = sum(value.numel() for value in second_moments)
    assert n_values == original["elements_float16"]
    share_zero = sum(int((value == 0).sum()) for value in second_moments) / n_values
    assert share_zero == pytest.approx(original["second_moment_zero_after_3"], abs=0.01)

    started = oracle.load("initial")
    in_float16 = [name for name, facts in oracle.tensors.items() if facts["dtype_original"] == "float16"]
    moved = [parameters[name] != started[name].half() for name in in_float16 if name in parameters]
    share_moved = sum(int(changed.sum()) for changed in moved) / sum(changed.numel() for changed in moved)
    assert 1 - share_moved == pytest.approx(original["unchanged_after_3"], abs=0.02)


def test_losses_in_bfloat16_are_near_those_in_float32(oracle, in_bfloat16):
    _, losses, _, _ = in_bfloat16
    differences = np.abs(np.subtract(losses, oracle.run["one process"]["loss"]))
    assert differences.max() <= largest_difference_of_losses(oracle, "bfloat16")


def test_bfloat16_keeps_parameters_and_moments_in_float32(in_bfloat16):
    parameters, _, _, optimiser = in_bfloat16
    assert {value.dtype for value in parameters.values()} == {torch.float32}
    assert {value.dtype for value in optimiser.m.values()} == {torch.float32}
