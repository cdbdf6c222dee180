"""The perceptron's arithmetic equals PyTorch's."""

import numpy as np
import pytest
from scipy.special import expit

from obygaze_models.models.adam import Adam, adam_step
from obygaze_models.models.perceptron import Perceptron
from tests.later import later, needs

torch = later("torch")
pytestmark = needs("torch")

D, H, B = 7, 5, 16
NETWORK, PAPERS = Perceptron(D, H), Perceptron(D, H, 2)


@pytest.fixture
def batch():
    rng = np.random.default_rng(1)
    return rng.normal(size=(B, D)), (rng.random(B) < 0.3).astype(np.float64)


def torch_twin(parameters, network=NETWORK):
    """Build the same model with PyTorch's own layers; the paper's ends in a softmax of two classes."""
    layers = [torch.nn.Linear(D, H), torch.nn.ReLU(), torch.nn.Linear(H, network.n_outputs)]
    if network is PAPERS:
        layers.append(torch.nn.Softmax(dim=1))
    twin = torch.nn.Sequential(*layers).double()
    views = network.layers_of(parameters)
    values = (views.hidden_weight.T, views.hidden_bias, views.output_weight.T, views.output_bias)
    with torch.no_grad():
        for tensor, value in zip(twin.parameters(), values, strict=True):
            tensor.copy_(torch.from_numpy(np.array(value)))
    return twin


def flat(tensors):
    """Put PyTorch's four tensors, weight and bias of two layers, in our order."""
    hidden_weight, hidden_bias, output_weight, output_bias = (tensor.detach().numpy() for tensor in tensors)
    return np.concatenate([hidden_weight.T.ravel(), hidden_bias, output_weight.T.ravel(), output_bias])


def torch_loss(twin, X, y):
    """Compute the loss by PyTorch; the paper's cross entropy takes the probabilities for logits."""
    outputs = twin(torch.from_numpy(X))
    if outputs.shape[1] == 2:
        return torch.nn.functional.cross_entropy(outputs, torch.from_numpy(y).long())
    cross_entropy = torch.nn.functional.binary_cross_entropy_with_logits
    return cross_entropy(outputs[:, 0], torch.from_numpy(y))


def gradient_of(parameters, X, y, network=NETWORK):
    """Compute the gradient of the mean loss."""
    gradient = np.full_like(parameters, np.nan)
    network.backward(network.layers_of(parameters), X, y, network.layers_of(gradient))
    return gradient


@pytest.mark.parametrize("network", [NETWORK, PAPERS], ids=["ours", "the paper's"])
def test_logits_loss_and_gradient_equal_autograd(batch, network):
    X, y = batch
    # 3: far enough from 0 for two softmaxes to bend.
    parameters = 3 * network.initial_parameters(np.random.default_rng(0), np.empty(0), np.empty(0))[0]
    twin = torch_twin(parameters, network)
    expected = torch_loss(twin, X, y)
    expected.backward()
    layers = network.layers_of(parameters)
    scores = network.backward(layers, X, y, network.layers_of(np.empty_like(parameters)))
    # A logit, or the probability of the second class.
    last_output = twin(torch.from_numpy(X))[:, -1].detach().numpy()
    np.testing.assert_allclose(scores if network is NETWORK else expit(scores), last_output, atol=1e-12)
    assert np.array_equal(scores, network.logits(layers, X))
    np.testing.assert_allclose(network.loss(scores, y), expected.item(), atol=1e-12)
    gradient = flat(tensor.grad for tensor in twin.parameters())
    np.testing.assert_allclose(gradient_of(parameters, X, y, network), gradient, atol=1e-12)


@pytest.mark.long
def test_six_hundred_steps_of_adam_follow_torch_to_1e_6():
    """Long enough for the sums to be brought back to scale twice."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, D))
    y = (rng.random(60) < 0.3).astype(np.float64)
    parameters = NETWORK.initial_parameters(rng, np.empty(0), np.empty(0))[0]
    twin = torch_twin(parameters)
    optimiser = torch.optim.Adam(twin.parameters(), lr=1e-3)
    state = Adam.zeros_like(parameters)
    for _ in range(600):
        rows = rng.permutation(60)[:B]
        optimiser.zero_grad()
        torch_loss(twin, X[rows], y[rows]).backward()
        optimiser.step()
        adam_step(parameters, gradient_of(parameters, X[rows], y[rows]), state, 1e-3)
    np.testing.assert_allclose(parameters, flat(twin.parameters()), atol=1e-6, rtol=0)


def test_initial_parameters_have_the_borders_and_spread_of_torch_linear():
    network = Perceptron(400, 100)
    parameters = network.initial_parameters(np.random.default_rng(0), np.empty(0), np.empty(0))[0]
    layers = network.layers_of(parameters)
    assert parameters.size == network.n_parameters == 40_201
    inputs_of = ((layers.hidden_weight, 400), (layers.hidden_bias, 400), (layers.output_weight, 100))
    for values, n_inputs in inputs_of:
        border = n_inputs**-0.5
        assert np.abs(values).max() <= border
        # The deviation of a uniform law between -border and border.
        assert values.std() == pytest.approx(border / 3**0.5, rel=0.15)
    assert abs(layers.output_bias[0]) <= 0.1


def test_the_loss_survives_extreme_logits():
    scores, y = np.array([1e4, -1e4, 1e4]), np.array([1.0, 0.0, 0.0])
    assert NETWORK.loss(scores, y) == pytest.approx(1e4 / 3)
    # No certainty brings the double softmax below its floor.
    assert PAPERS.loss(np.array([50.0, -50.0]), y[:2]) == pytest.approx(np.log1p(np.exp(-1)))
