"""The gradient of a step and three steps of training, against the original's (checks 2, 3, 4, 6 and 14).

The original is the published code that trains X-CLIP on LSMDC. The oracle has what it gave for a small
network and three batches of pairs of sentence and clip.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.lazy_import import lazy_import
from tests.rounding import rounding

from .three_steps import PAIRS, largest_difference, three_steps

torch = lazy_import("torch")
normalize = lazy_import("torch.nn.functional", "normalize")
rules = lazy_import("obygaze_studies.lsmdc.step")


class FirstStep(NamedTuple):
    """What our code computes in step 0.

    Attributes
    ----------
    network
        The network, whose tensors have their gradients.
    loss
        The loss.
    embeddings
        The vectors of the pairs: `sentences`, `words`, `frames` and `videos`.
    scores
        The four kinds of score of every sentence with every clip, by name.
    """

    network: Any
    loss: float
    embeddings: Any
    scores: dict[str, Any]


@pytest.fixture(scope="module")
def first_step(oracle):
    network = oracle.network()
    loss = rules.compute_gradients(network, oracle.size, oracle.batch(0), PAIRS)
    with torch.no_grad():
        embeddings = rules.embed(network, oracle.batch(0))
        s, w, f, v = embeddings
        scores = rules.similarities(network, sentences=s, words=w, frames=f, videos=v)
    return FirstStep(network, loss, embeddings, scores)


def largest_rounding_of_losses(oracle, dtype):
    """Compute how far apart the losses of two correct steps may be whose values are kept in `dtype`.

    Values are rounded six times in each layer of the vision network, and six times in norms, pooling and
    head, as in `tests.rounding.network_rounding`. The loss is a mean over four scores of each pair; a score
    is a cosine in `embed` dimensions times 100.
    """
    n_roundings = 6 * oracle.size.vision_layers + 6
    condition = 100 / (PAIRS * 4 * oracle.size.embed) ** 0.5
    return rounding(dtype, *[1] * n_roundings, condition=condition)


def recorded_in_first_step(oracle, name):
    """Return what the original code gave in step 0: a loss, a norm, scores or vectors, by their name."""
    return oracle.similarities[f"{name}.0"]


def test_in_step_0_the_loss_is_that_of_the_original_code(oracle, first_step):
    assert first_step.loss == pytest.approx(float(recorded_in_first_step(oracle, "loss")), abs=5e-5)


def test_in_step_0_the_scores_of_sentences_with_clips_are_those_of_the_original_code(oracle, first_step):
    """The network scores every sentence with every clip in four ways, such as words with frames."""
    for name, scores in first_step.scores.items():
        assert np.abs(scores.numpy() - recorded_in_first_step(oracle, name)).max() <= 2e-4, name


def test_in_step_0_the_embeddings_of_sentences_and_clips_are_those_of_the_original_code(oracle, first_step):
    """The oracle has vectors of length 1. Our vectors of clips have this length; the others get it here."""
    embeddings = first_step.embeddings
    embeddings_of_length_1 = {
        "sentence_output": normalize(embeddings.sentences, dim=-1),
        "word_features": normalize(embeddings.words, dim=-1),
        "frame_features": normalize(embeddings.frames, dim=-1),
        "video_output": embeddings.videos,
    }

    for name, vectors in embeddings_of_length_1.items():
        assert np.abs(vectors.numpy() - recorded_in_first_step(oracle, name)).max() <= 1e-5, name


def test_in_step_0_the_gradients_of_100_tensors_are_those_of_the_original_code(oracle, first_step):
    """100 tensors of the network are trained. `from_port` gives ours the names that the original has."""
    gradients = {}
    for name, tensor in first_step.network.named_parameters():
        if tensor.grad is not None:
            gradients[name] = tensor.grad

    original_gradients = oracle.load("gradients_step0")
    assert len(original_gradients) == 100
    assert largest_difference(oracle.size.from_port(gradients), original_gradients) <= 1e-4


def test_in_step_0_the_norm_of_all_gradients_is_that_of_the_original_code(oracle, first_step):
    """`clip_gradients` returns the norm of all gradients together, before it shortens them."""
    trained = [tensor for tensor in first_step.network.parameters() if tensor.requires_grad]

    norm = rules.clip_gradients(trained)

    assert norm == pytest.approx(float(recorded_in_first_step(oracle, "norm")), rel=5e-5)


def largest_relative_difference(values, expected):
    return np.abs(np.divide(values, expected) - 1).max()


@pytest.fixture
def every_cast_to_float_is_to_float64(monkeypatch):
    """Let `tensor.float()`, by which our code makes float32, make float64."""
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)


@pytest.mark.usefixtures("every_cast_to_float_is_to_float64")
def test_three_steps_in_float64_are_those_of_the_original_code_in_float64(oracle):
    """In float64, rounding is so small that losses and norms of gradients have to agree to 1e-6.

    That bound tells something: by float32, the original's own norms differ from those in float64 by more.
    """
    trained = three_steps(oracle)

    assert {tensor.dtype for tensor in trained.parameters.values()} == {torch.float64}
    original = oracle.run["float64"]
    norms_of_original = original["grad_norm_before_clip"]
    assert np.abs(np.subtract(trained.losses, original["loss"])).max() <= 1e-6
    assert largest_relative_difference(trained.norms, norms_of_original) <= 1e-6

    norms_of_original_in_float32 = oracle.run["one process"]["grad_norm_before_clip"]
    assert largest_relative_difference(norms_of_original_in_float32, norms_of_original) > 1e-6


@pytest.mark.usefixtures("every_cast_to_float_is_to_float64")
def test_parameters_in_float64_differ_from_those_in_float32_as_in_the_original_code(oracle):
    """The original's parameters after three steps were recorded in float32.

    Of those in float64 it is only known by how much they differ from these, by rounding. Ours in float64 have
    to differ by as much.
    """
    trained = three_steps(oracle)

    difference_of_original, _ = oracle.run["float32 against float64"]["params_after_3"]
    difference_of_ours = largest_difference(trained.parameters, oracle.load("after_3_steps"))
    assert difference_of_ours == pytest.approx(difference_of_original, rel=1e-4)


def test_losses_norms_parameters_and_moments_of_three_steps_are_the_originals(oracle):
    """The original took three steps with the same network, pairs and rates.

    Recorded are the loss and the norm of the gradients in each step, the parameters after the third, and the
    norms of the optimiser's moments m and v: running means of gradients and of their squares.
    """
    trained = three_steps(oracle)

    original = oracle.run["one process"]
    assert np.abs(np.subtract(trained.losses, original["loss"])).max() <= 5e-5
    assert trained.norms == pytest.approx(original["grad_norm_before_clip"], rel=5e-5)
    assert largest_difference(trained.parameters, oracle.load("after_3_steps")) <= 2e-6

    recorded = dict(np.load(oracle.folder / "norms.npz"))
    for moment, key in ((trained.optimiser.m, "m_after_3"), (trained.optimiser.v, "v_after_3")):
        norms_recorded = recorded[key]
        moment_of_tensor = oracle.size.from_port(moment)
        for name, norm in zip(recorded["names"], norms_recorded, strict=True):
            expected = pytest.approx(float(norm), rel=1e-4, abs=1e-9)
            assert float(moment_of_tensor[name].norm()) == expected, name


def test_the_learning_rates_of_the_four_groups_are_those_of_the_original_code(oracle):
    """A group is of weights or of biases, and of tensors of CLIP, which learn more slowly, or of others.

    A tensor is put into its group by its name. The original recorded the rate of each group in each step: the
    rate of the group times a factor that rises and falls during the training.
    """
    recorded = oracle.run
    names_in_order_of_groups = ("clip.weight", "weight", "clip.bias", "bias")
    groups = [
        rules.group_of(name, rate=recorded["lr"], clip_scale=recorded["coef_lr"])
        for name in names_in_order_of_groups
    ]

    for step, expected_rates in enumerate(recorded["learning_rates"]):
        factor = rules.schedule(step, recorded["total_steps"])
        assert [group.rate * factor for group in groups] == expected_rates


def test_one_process_with_half_of_the_gathered_gradient_equals_two_of_the_original_code(oracle):
    """In the original, each process gathers the embeddings of all, but keeps the gradient of its own alone.

    So with two processes, all that comes before the gather gets half of its gradient. One process of ours
    does the same if it is asked for this factor (`gather_share`).
    """
    trained = three_steps(oracle, gather_share=0.5)

    original = oracle.run["two processes"]
    assert largest_difference(trained.parameters, oracle.load("after_3_steps_two_processes")) <= 2e-6
    assert np.abs(np.subtract(trained.losses, original["loss"])).max() <= 5e-5
    assert trained.norms == pytest.approx(original["grad_norm_before_clip"], rel=5e-5)


@pytest.mark.parametrize("chunk", [1, 4])
def test_a_batch_that_is_computed_in_chunks_gives_the_parameters_of_the_original_code(oracle, chunk):
    """A chunk is the pairs that the network sees at once: one, or four, of the six pairs of a batch.

    Smaller chunks need less memory, and must not change what is learnt but by rounding. The original
    computes a batch at once.
    """
    trained = three_steps(oracle, chunk=chunk)

    assert largest_difference(trained.parameters, oracle.load("after_3_steps")) <= 2e-6


@pytest.fixture(scope="module")
def trained_in_published_arithmetic(oracle):
    """Three steps as published: most tensors in float16, with a low rate, and a much lower one for CLIP."""
    return three_steps(oracle, arithmetic="published", lr=1e-4, scale=1e-3)


@pytest.mark.long  # simulates
def test_losses_in_published_arithmetic_are_the_originals_within_the_rounding_of_float16(
    oracle, trained_in_published_arithmetic
):
    """The network, the pairs and the rates are the same; the original computes most of it in float16."""
    original_losses = oracle.run["original dtypes at the published rates"]["loss"]

    differences = np.abs(np.subtract(trained_in_published_arithmetic.losses, original_losses))

    assert differences.max() <= largest_rounding_of_losses(oracle, "float16")


@pytest.mark.long  # simulates
def test_in_published_arithmetic_as_many_second_moments_are_0_as_in_the_original_code(
    oracle, trained_in_published_arithmetic
):
    """A second moment `v` is the running mean of a parameter's squared gradients.

    In float16 what is too small becomes 0, which is so for many of them. The oracle has their share.
    """
    original = oracle.run["original dtypes"]
    moments_of_tensors = trained_in_published_arithmetic.optimiser.v.values()
    in_float16 = [moment.flatten() for moment in moments_of_tensors if moment.dtype == torch.float16]

    second_moments = torch.cat(in_float16)

    assert len(second_moments) == original["elements_float16"]
    share_of_zeros = (second_moments == 0).double().mean().item()
    assert share_of_zeros == pytest.approx(original["second_moment_zero_after_3"], abs=0.01)


@pytest.mark.long  # simulates
def test_in_published_arithmetic_as_many_parameters_stay_unchanged_as_in_the_original_code(
    oracle, trained_in_published_arithmetic
):
    """A parameter in float16 does not change where a step is smaller than its last digit.

    The oracle has the share of such parameters after three steps.
    """
    parameters_before = oracle.load("initial")
    parameters = trained_in_published_arithmetic.parameters
    is_unchanged = []
    for name, facts in oracle.tensors.items():
        if facts["dtype_original"] == "float16" and name in parameters:
            is_unchanged.append((parameters[name] == parameters_before[name].half()).flatten())

    share_unchanged = torch.cat(is_unchanged).double().mean().item()

    assert share_unchanged == pytest.approx(oracle.run["original dtypes"]["unchanged_after_3"], abs=0.02)


def test_a_training_in_bfloat16_has_the_losses_of_float32_but_for_rounding(oracle):
    """Only the network computes in bfloat16; parameters and moments are kept in float32.

    The losses are held against those of the original code in float32.
    """
    trained = three_steps(oracle, arithmetic="bfloat16")

    differences = np.abs(np.subtract(trained.losses, oracle.run["one process"]["loss"]))
    assert differences.max() <= largest_rounding_of_losses(oracle, "bfloat16")
    first_moments = trained.optimiser.m
    assert {tensor.dtype for tensor in trained.parameters.values()} == {torch.float32}
    assert {tensor.dtype for tensor in first_moments.values()} == {torch.float32}
