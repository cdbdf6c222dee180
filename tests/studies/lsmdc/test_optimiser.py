"""The optimiser alone, against the original's (check 7), and its schedule (check 8)."""

import json

import numpy as np
import pytest

from tests.lazy_import import lazy_import

torch = lazy_import("torch")
rules = lazy_import("obygaze_studies.lsmdc.step")

RATES = {"large": 1e-3, "small": 1e-7}
DECAYS = {"weight": 0.2, "bias": 0.0}
STEPS = 30


@pytest.fixture(scope="module")
def original_run(oracle):
    return dict(np.load(oracle.folder / "bertadam.npz"))


def thirty_steps(original_run, case, dtype):
    """Take the thirty steps; yield number, parameters and optimiser after each."""
    kind = getattr(torch, dtype)
    tensors = {
        name: torch.tensor(original_run[f"{name}.0"], dtype=kind, requires_grad=True) for name in DECAYS
    }
    groups = {name: rules.ParameterGroup(RATES[case], decay) for name, decay in DECAYS.items()}
    optimiser = rules.BertAdam(tensors, groups, STEPS)
    for step in range(STEPS):
        for name, value in tensors.items():
            value.grad = torch.tensor(original_run[f"{case}.grad.{name}"][step], dtype=kind)
        optimiser.step()
        yield step + 1, {name: value.detach().numpy() for name, value in tensors.items()}, optimiser


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("case", ["large", "small"])
def test_moments_and_parameters_of_thirty_steps_are_the_originals(original_run, case, dtype):
    """A weight and a bias are trained with given gradients, at a large or a small rate.

    The original's optimiser took the same steps. Recorded are the parameters after steps 1, 3, 4 and 30, and
    the weight's moments m and v: running means of its gradients and of their squares.
    """
    steps_compared = []
    for step, parameters, optimiser in thirty_steps(original_run, case, dtype):
        if step not in (1, 3, 4, 30):
            continue
        steps_compared.append(step)
        recorded = f"{case}.{dtype}.{step}"
        assert np.array_equal(optimiser.m["weight"].numpy(), original_run[f"{recorded}.m"])
        assert np.array_equal(optimiser.v["weight"].numpy(), original_run[f"{recorded}.v"])
        for name in ("weight", "bias"):
            expected = original_run[f"{recorded}.{name}"]
            difference = np.abs(parameters[name] - expected).max()
            assert difference <= difference_of_processors(expected, case, dtype), (step, name)
    assert steps_compared == [1, 3, 4, 30]


def difference_of_processors(expected, case, dtype):
    """How far large steps in float32 may lie apart: the last place of the largest parameter.

    PyTorch's root of float32 is MKL's, which refines an approximation that differs between AMD's and Intel's
    processors (AVX-512's apart). All other steps are the same to the last bit.
    """
    return np.spacing(np.abs(expected).max()) if (case, dtype) == ("large", "float32") else 0


def test_the_schedule_is_the_originals(oracle):
    """The learning rate is multiplied by a factor in each step; some factors and the sum of all are known."""
    original = json.loads((oracle.folder / "data_order.json").read_text())["schedule"]
    n_steps = original["total"]

    factors = [rules.schedule(step, n_steps) for step in range(n_steps)]

    for step, factor in original["factors"].items():
        assert rules.schedule(int(step), n_steps) == factor
    assert sum(factors) == pytest.approx(original["sum"], abs=1e-9)


def test_the_first_step_changes_moments_but_no_parameter_as_its_rate_is_0():
    """The learning rate rises from 0 to its full height in the first steps.

    Of two tensors of ones one has a gradient, which its moment remembers in the first step and which moves it
    in the second. The tensor without a gradient is never moved.
    """
    ones = torch.ones(3)
    moving = torch.ones(3, requires_grad=True)
    moving.grad = torch.ones(3)
    frozen = torch.ones(3)
    group = rules.ParameterGroup(1e-3, 0.2)
    optimiser = rules.BertAdam(
        {"moving": moving, "frozen": frozen}, {"moving": group, "frozen": group}, STEPS
    )

    optimiser.step()
    assert torch.equal(moving, ones)
    assert optimiser.m["moving"].any()

    optimiser.step()
    assert not torch.equal(moving, ones)
    assert torch.equal(frozen, ones)


@pytest.mark.parametrize(
    ("name", "rate", "decay"),
    [("clip.a.weight", 0.5, 0.2), ("transformerClip.b.bias", 1.0, 0.0)],
    ids=["a weight of CLIP", "a bias beside CLIP"],
)
def test_tensors_of_clip_learn_at_a_lower_rate_and_biases_do_not_decay(name, rate, decay):
    """The rate is 1, and half of it for CLIP, the names of whose tensors begin with "clip.".

    Weights decay by .2 of the rate in a step.
    """
    group = rules.group_of(name, rate=1.0, clip_scale=0.5)

    assert group.rate == rate
    assert group.decay == decay
