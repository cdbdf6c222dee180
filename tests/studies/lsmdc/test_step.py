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
    network = first[0]
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
    expected = oracle.run["float64"]
    assert np.abs(np.subtract(losses, expected["loss"])).max() <= 1e-6
    double = oracle.run["float64"]["grad_norm_before_clip"]
    single = oracle.run["one process"]["grad_norm_before_clip"]
    ours = np.abs(np.divide(norms, double) - 1).max()
    rounding = np.abs(np.divide(single, double) - 1).max()
    assert ours <= 1e-6
    assert ours < rounding
    far, _ = oracle.run["float32 against float64"]["params_after_3"]
    assert furthest(parameters, oracle.load("after_3_steps")) == pytest.approx(far, rel=1e-4)


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
    expected = oracle.run["original dtypes at the published rates"]["loss"]
    # The mean over six pairs of four scores: cosines in 64 directions, times a scale of 100.
    condition = 100 / (PAIRS * 4 * oracle.size.embed) ** 0.5
    assert np.abs(np.subtract(losses, expected)).max() <= rounding("float16", *[1] * 18, condition=condition)
    half = [name for name, value in optimiser.v.items() if value.dtype == torch.float16]
    elements = sum(optimiser.v[name].numel() for name in half)
    assert elements == oracle.run["original dtypes"]["elements_float16"]
    zero = sum(int((optimiser.v[name] == 0).sum()) for name in half) / elements
    assert zero == pytest.approx(oracle.run["original dtypes"]["second_moment_zero_after_3"], abs=0.01)
    started = oracle.load("initial")
    halves = [name for name, facts in oracle.tensors.items() if facts["dtype_original"] == "float16"]
    moved = [parameters[name] != started[name].half() for name in halves if name in parameters]
    still = 1 - sum(int(changed.sum()) for changed in moved) / sum(changed.numel() for changed in moved)
    assert still == pytest.approx(oracle.run["original dtypes"]["unchanged_after_3"], abs=0.02)


def test_bfloat16_is_near_float32_and_keeps_float32_weights(oracle):
    parameters, losses, _, optimiser = three_steps(oracle, arithmetic="bfloat16")
    condition = 100 / (PAIRS * 4 * oracle.size.embed) ** 0.5
    bound = rounding("bfloat16", *[1] * 18, condition=condition)
    assert np.abs(np.subtract(losses, oracle.run["one process"]["loss"])).max() <= bound
    assert {value.dtype for value in (*parameters.values(), *optimiser.m.values())} == {torch.float32}
