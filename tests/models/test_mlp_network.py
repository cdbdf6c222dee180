"""The perceptron's arithmetic equals PyTorch's, and a stack of models equals each alone."""

import numpy as np
import pytest

from obygaze_models.probes.network import (
    Adam,
    adam_step,
    initial,
    layers,
    log_loss,
    logits,
    loss_and_grad,
    n_parameters,
)

torch = pytest.importorskip("torch")

D, H, B = 7, 5, 16


@pytest.fixture
def batch():
    rng = np.random.default_rng(1)
    return rng.normal(size=(B, D)), (rng.random(B) < 0.3).astype(np.float64)


def torch_twin(parameters):
    """Build the same model with PyTorch's own layers."""
    layer = layers(parameters, D)
    twin = torch.nn.Sequential(torch.nn.Linear(D, H), torch.nn.ReLU(), torch.nn.Linear(H, 1)).double()
    values = (layer.hidden_weight.T, layer.hidden_bias[0], layer.output_weight.T, layer.output_bias)
    with torch.no_grad():
        for tensor, value in zip(twin.parameters(), values, strict=True):
            tensor.copy_(torch.from_numpy(np.array(value)))
    return twin


def flat(tensors):
    """Put PyTorch's four tensors in our order."""
    weight, bias, last_weight, last_bias = (tensor.detach().numpy() for tensor in tensors)
    return np.concatenate([weight.T.ravel(), bias, last_weight.ravel(), last_bias])


def torch_loss(twin, X, y):
    return torch.nn.functional.binary_cross_entropy_with_logits(
        twin(torch.from_numpy(X))[:, 0], torch.from_numpy(y)
    )


def test_logits_loss_and_gradient_equal_autograd(batch):
    X, y = batch
    parameters = initial(D, H, np.random.default_rng(0))
    twin = torch_twin(parameters)
    expected = torch_loss(twin, X, y)
    expected.backward()
    loss, gradient = loss_and_grad(parameters, X, y)
    np.testing.assert_allclose(
        logits(parameters, X), twin(torch.from_numpy(X))[:, 0].detach().numpy(), atol=1e-12
    )
    np.testing.assert_allclose(loss, expected.item(), atol=1e-12)
    np.testing.assert_allclose(gradient, flat(tensor.grad for tensor in twin.parameters()), atol=1e-12)


def test_two_hundred_steps_of_adam_follow_torch_to_1e_6():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, D)), (rng.random(60) < 0.3).astype(np.float64)
    parameters = initial(D, H, rng)
    twin = torch_twin(parameters)
    optimiser = torch.optim.Adam(twin.parameters(), lr=1e-3)
    state = Adam.start(parameters)
    for _ in range(200):
        rows = rng.permutation(60)[:B]
        optimiser.zero_grad()
        torch_loss(twin, X[rows], y[rows]).backward()
        optimiser.step()
        adam_step(parameters, loss_and_grad(parameters, X[rows], y[rows])[1], state, 1e-3)
    np.testing.assert_allclose(parameters, flat(twin.parameters()), atol=1e-6, rtol=0)


def test_initial_parameters_have_the_borders_and_spread_of_torch_linear():
    parameters = initial(400, 100, np.random.default_rng(0))
    layer = layers(parameters, 400)
    assert parameters.size == n_parameters(400, 100)
    for values, inputs in ((layer.hidden_weight, 400), (layer.hidden_bias, 400), (layer.output_weight, 100)):
        assert np.abs(values).max() <= inputs**-0.5
        assert values.std() == pytest.approx((3 * inputs) ** -0.5, rel=0.15)
    assert abs(layer.output_bias[0]) <= 0.1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_stack_of_models_is_computed_as_if_each_were_alone(dtype):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3, B, D)).astype(dtype)
    y = (rng.random((3, B)) < 0.5).astype(dtype)
    stacked = np.stack([initial(D, H, rng).astype(dtype) for _ in range(3)])
    alone = stacked.copy()
    state, states = Adam.start(stacked), [Adam.start(model) for model in alone]
    for _ in range(5):
        losses, gradient = loss_and_grad(stacked, X, y)
        adam_step(stacked, gradient, state, 1e-2)
        for m in range(3):
            loss, slope = loss_and_grad(alone[m], X[m], y[m])
            adam_step(alone[m], slope, states[m], 1e-2)
            assert loss == losses[m]
    assert stacked.dtype == dtype
    assert stacked.tobytes() == alone.tobytes()


def test_the_loss_survives_extreme_logits():
    scores, y = np.array([1e4, -1e4, 1e4]), np.array([1.0, 0.0, 0.0])
    assert log_loss(scores, y) == pytest.approx(1e4 / 3)


def test_the_gradient_can_be_written_into_a_given_vector(batch):
    X, y = batch
    parameters = initial(D, H, np.random.default_rng(0))
    out = np.full_like(parameters, np.nan)
    _, gradient = loss_and_grad(parameters, X, y, out=out)
    assert gradient is out
    assert np.array_equal(out, loss_and_grad(parameters, X, y)[1])
