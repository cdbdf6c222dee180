"""The gradient of a step and three steps of training, against the original's (checks 2, 3, 4, 6 and 14)."""

import numpy as np
import pytest

from tests.lazy_import import lazy_import
from tests.rounding import rounding

from .three_steps import PAIRS, furthest, three_steps

torch = lazy_import("torch")
normalize = lazy_import("torch.nn.functional", "normalize")
rules = lazy_import("obygaze_studies.lsmdc.step")


@pytest.fixture(scope="module")
def first_step(oracle):
    """Network with the gradients of step 0, its loss, and the pairs' embeddings and scores."""
    network = oracle.network()
    loss = rules.compute_gradients(network, oracle.size, oracle.batch(0), PAIRS)
    with torch.no_grad():
        embeddings = rules.embed(network, oracle.batch(0))
        s, w, f, v = embeddings
        scores = rules.similarities(network, sentences=s, words=w, frames=f, videos=v)
    return network, loss, embeddings, scores


def largest_difference_of_losses(oracle, dtype):
    """Compute how far apart the losses of two correct steps may be whose values are kept in `dtype`.

    Values are rounded six times in each layer of the vision network, and six times in norms, pooling and
    head, as in `tests.rounding.network_rounding`. The loss is a mean over four scores of each pair; a score
    is a cosine in `embed` dimensions times 100.
    """
    n_roundings = 6 * oracle.size.vision_layers + 6
    condition = 100 / (PAIRS * 4 * oracle.size.embed) ** 0.5
    return rounding(dtype, *[1] * n_roundings, condition=condition)


def test_embeddings_scores_and_loss_are_the_originals(oracle, first_step):
    """In step 0 a network embeds pairs of sentence and clip, and scores every sentence with every clip.

    The oracle has the embeddings, scores and loss of the original with the same network and pairs. Its
    vectors have length 1.
    """
    _, loss, embeddings, scores = first_step
    of_length_1 = {
        "sentence_output": normalize(embeddings.sentences, dim=-1),
        "word_features": normalize(embeddings.words, dim=-1),
        "frame_features": normalize(embeddings.frames, dim=-1),
        "video_output": embeddings.videos,
    }

    original = oracle.similarities
    assert loss == pytest.approx(float(original["loss.0"]), abs=5e-5)
    for name, score in scores.items():
        assert np.abs(score.numpy() - original[f"{name}.0"]).max() <= 2e-4, name
    for name, vectors in of_length_1.items():
        assert np.abs(vectors.numpy() - original[f"{name}.0"]).max() <= 1e-5, name


def test_the_hundred_gradients_and_their_norm_are_the_originals(oracle, first_step):
    """The original's network has 100 tensors that are trained, whose gradients in step 0 were recorded.

    `clip_gradients` returns the norm of all of them together. `from_port` renames ours as the original's.
    """
    network, *_ = first_step
    gradients = {name: value.grad for name, value in network.named_parameters() if value.grad is not None}
    gradients_by_original_names = oracle.size.from_port(gradients)

    original_gradients = oracle.load("gradients_step0")
    assert len(original_gradients) == 100
    assert furthest(gradients_by_original_names, original_gradients) <= 1e-4

    norm = rules.clip_gradients([value for value in network.parameters() if value.requires_grad])
    assert norm == pytest.approx(float(oracle.similarities["norm.0"]), rel=5e-5)


def largest_relative_difference(values, expected):
    return np.abs(np.divide(values, expected) - 1).max()


def test_three_steps_in_float64_are_those_of_the_original_in_float64(oracle, monkeypatch):
    """Every cast is to float64.

    The original's run in float32 differs from its own in float64 by rounding. Ours in float64 must differ
    from it by as much.
    """
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    parameters, losses, norms, _ = three_steps(oracle)

    original = oracle.run["float64"]
    assert np.abs(np.subtract(losses, original["loss"])).max() <= 1e-6
    assert largest_relative_difference(norms, original["grad_norm_before_clip"]) <= 1e-6
    norms_in_float32 = oracle.run["one process"]["grad_norm_before_clip"]
    assert largest_relative_difference(norms_in_float32, original["grad_norm_before_clip"]) > 1e-6
    assert {value.dtype for value in parameters.values()} == {torch.float64}
    difference_of_original, _ = oracle.run["float32 against float64"]["params_after_3"]
    difference = furthest(parameters, oracle.load("after_3_steps"))
    assert difference == pytest.approx(difference_of_original, rel=1e-4)


def test_losses_norms_parameters_and_moments_of_three_steps_are_the_originals(oracle):
    """The original took three steps with the same network, pairs and rates.

    Recorded are the loss and the norm of the gradients in each step, the parameters after the third, and the
    norms of the optimiser's moments m and v: running means of gradients and of their squares.
    """
    parameters, losses, norms_of_gradients, optimiser = three_steps(oracle)

    original = oracle.run["one process"]
    assert np.abs(np.subtract(losses, original["loss"])).max() <= 5e-5
    assert norms_of_gradients == pytest.approx(original["grad_norm_before_clip"], rel=5e-5)
    assert furthest(parameters, oracle.load("after_3_steps")) <= 2e-6

    recorded = dict(np.load(oracle.folder / "norms.npz"))
    for moment, key in ((optimiser.m, "m_after_3"), (optimiser.v, "v_after_3")):
        norms_recorded = recorded[key]
        moment_of_tensor = oracle.size.from_port(moment)
        for name, norm in zip(recorded["names"], norms_recorded, strict=True):
            expected = pytest.approx(float(norm), rel=1e-4, abs=1e-9)
            assert float(moment_of_tensor[name].norm()) == expected, name


def test_the_rates_of_the_four_groups_are_the_originals(oracle):
    """The groups are of tensors of CLIP, which learn more slowly, and of others, and of weights and biases.

    The original recorded the four rates in each step.
    """
    names = ("clip.weight", "weight", "clip.bias", "bias")
    groups = [rules.group_of(name, rate=oracle.run["lr"], clip_scale=oracle.run["coef_lr"]) for name in names]

    for step, expected_rates in enumerate(oracle.run["learning_rates"]):
        factor = rules.schedule(step, oracle.run["total_steps"])
        assert [group.rate * factor for group in groups] == expected_rates


def test_half_of_the_gathered_gradient_is_that_of_two_processes(oracle):
    """In the original, each process keeps the gradient of its own embeddings alone.

    With two processes that is half of it.
    """
    parameters, losses, norms, _ = three_steps(oracle, gather_share=0.5)
    assert furthest(parameters, oracle.load("after_3_steps_two_processes")) <= 2e-6
    assert np.abs(np.subtract(losses, oracle.run["two processes"]["loss"])).max() <= 5e-5
    assert norms == pytest.approx(oracle.run["two processes"]["grad_norm_before_clip"], rel=5e-5)


@pytest.mark.parametrize("chunk", [1, 4])
def test_computing_a_batch_in_chunks_gives_the_same_parameters(oracle, chunk):
    parameters, *_ = three_steps(oracle, chunk=chunk)
    assert furthest(parameters, oracle.load("after_3_steps")) <= 2e-6


@pytest.mark.long  # simulates
def test_three_steps_in_published_arithmetic_are_the_originals_within_the_rounding_of_float16(oracle):
    """The original trains partly in float16, whose numbers are coarse: what is too small becomes 0.

    So of many parameters the mean of squared gradients (second moment) is 0, and many others don't change, as
    a step is smaller than their last digit. Both shares, and the losses, are the original's.
    """
    parameters, losses, _, optimiser = three_steps(oracle, arithmetic="published", lr=1e-4, scale=1e-3)

    original_losses = oracle.run["original dtypes at the published rates"]["loss"]
    largest_difference = np.abs(np.subtract(losses, original_losses)).max()
    assert largest_difference <= largest_difference_of_losses(oracle, "float16")

    original = oracle.run["original dtypes"]
    in_float16 = [value.flatten() for value in optimiser.v.values() if value.dtype == torch.float16]
    second_moments = torch.cat(in_float16)
    assert len(second_moments) == original["elements_float16"]
    share_zero = (second_moments == 0).double().mean().item()
    assert share_zero == pytest.approx(original["second_moment_zero_after_3"], abs=0.01)

    parameters_before = oracle.load("initial")
    is_unchanged = []
    for name, facts in oracle.tensors.items():
        if facts["dtype_original"] == "float16" and name in parameters:
            is_unchanged.append((parameters[name] == parameters_before[name].half()).flatten())
    share_unchanged = torch.cat(is_unchanged).double().mean().item()
    assert share_unchanged == pytest.approx(original["unchanged_after_3"], abs=0.02)


def test_losses_in_bfloat16_are_near_those_in_float32(oracle):
    """Parameters and moments are kept in float32."""
    parameters, losses, _, optimiser = three_steps(oracle, arithmetic="bfloat16")
    differences = np.abs(np.subtract(losses, oracle.run["one process"]["loss"]))
    assert differences.max() <= largest_difference_of_losses(oracle, "bfloat16")
    assert {value.dtype for value in parameters.values()} == {torch.float32}
    assert {value.dtype for value in optimiser.m.values()} == {torch.float32}
