"""The perceptron's arithmetic equals PyTorch's."""

import numpy as np
import pytest
from scipy.special import expit

from obygaze_models.models.adam import Adam, adam_step
from obygaze_models.models.perceptron import Perceptron
from tests.later import later, needs

torch = later("torch")
pytestmark = needs("torch")

N_FEATURES, N_HIDDEN, N_CLIPS = 7, 5, 16
ONE_LOGIT = Perceptron(N_FEATURES, N_HIDDEN)
TWO_CLASSES = Perceptron(N_FEATURES, N_HIDDEN, n_outputs=2)
"""The paper's network: its loss takes the probabilities, a softmax of two outputs, for logits."""


def initial_parameters(network, rng):
    """Draw a network's parameters; a perceptron's do not depend on the clips."""
    no_clips, no_labels = np.empty(0), np.empty(0)
    return network.initial_parameters(rng, no_clips, no_labels)[0]


@pytest.fixture
def batch():
    """Features and labels of 16 clips."""
    rng = np.random.default_rng(1)
    return rng.normal(size=(N_CLIPS, N_FEATURES)), (rng.random(N_CLIPS) < 0.3).astype(np.float64)


def torch_network(parameters, network=ONE_LOGIT):
    """Build the same network of PyTorch's own layers, with the same parameters."""
    layers = [
        torch.nn.Linear(N_FEATURES, N_HIDDEN),
        torch.nn.ReLU(),
        torch.nn.Linear(N_HIDDEN, network.n_outputs),
    ]
    if network is TWO_CLASSES:
        layers.append(torch.nn.Softmax(dim=1))
    twin = torch.nn.Sequential(*layers).double()
    views = network.layers_of(parameters)
    values = (views.hidden_weight.T, views.hidden_bias, views.output_weight.T, views.output_bias)
    with torch.no_grad():
        for tensor, value in zip(twin.parameters(), values, strict=True):
            tensor.copy_(torch.from_numpy(np.array(value)))
    return twin


def flat_parameters(tensors):
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


def gradient_of(parameters, X, y, network=ONE_LOGIT):
    """Compute the gradient of the mean loss."""
    gradient = np.full_like(parameters, np.nan)
    network.backward(network.layers_of(parameters), X, y, network.layers_of(gradient))
    return gradient


@pytest.mark.parametrize("network", [ONE_LOGIT, TWO_CLASSES], ids=["ours", "the paper's"])
def test_logits_loss_and_gradient_equal_those_of_pytorch(batch, network):
    X, y = batch
    # Three times as large as usual, so that scores are far enough from 0 for softmaxes not to be linear.
    parameters = 3 * initial_parameters(network, np.random.default_rng(0))
    twin = torch_network(parameters, network)
    expected_loss = torch_loss(twin, X, y)
    expected_loss.backward()
    expected_gradient = flat_parameters(tensor.grad for tensor in twin.parameters())
    expected_output = twin(torch.from_numpy(X))[:, -1].detach().numpy()

    gradient = np.full_like(parameters, np.nan)
    scores = network.backward(network.layers_of(parameters), X, y, network.layers_of(gradient))

    # PyTorch's network of two classes ends in the probability of the second one, ours in its logit.
    output = expit(scores) if network is TWO_CLASSES else scores
    np.testing.assert_allclose(output, expected_output, atol=1e-12)
    np.testing.assert_allclose(network.loss(scores, y), expected_loss.item(), atol=1e-12)
    np.testing.assert_allclose(gradient, expected_gradient, atol=1e-12)
    assert np.array_equal(network.logits(network.layers_of(parameters), X), scores)


@pytest.mark.long
def test_six_hundred_steps_of_adam_follow_torch_to_1e_6():
    """In so many steps our Adam rescales its running sums twice."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, N_FEATURES))
    y = (rng.random(60) < 0.3).astype(np.float64)
    parameters = initial_parameters(ONE_LOGIT, rng)
    twin = torch_network(parameters)
    optimiser = torch.optim.Adam(twin.parameters(), lr=1e-3)
    state = Adam.zeros_like(parameters)
    for _ in range(600):
        rows = rng.permutation(60)[:N_CLIPS]
        optimiser.zero_grad()
        torch_loss(twin, X[rows], y[rows]).backward()
        optimiser.step()
        adam_step(parameters, gradient_of(parameters, X[rows], y[rows]), state, 1e-3)
    np.testing.assert_allclose(parameters, flat_parameters(twin.parameters()), atol=1e-6, rtol=0)


def test_initial_parameters_are_uniform_within_the_bounds_of_torch_linear():
    network = Perceptron(400, 100)
    parameters = initial_parameters(network, np.random.default_rng(0))
    layers = network.layers_of(parameters)
    assert parameters.size == network.n_parameters == 400 * 100 + 100 + 100 + 1
    values_and_n_inputs = [
        (layers.hidden_weight, 400),
        (layers.hidden_bias, 400),
        (layers.output_weight, 100),
    ]
    for values, n_inputs in values_and_n_inputs:
        bound = n_inputs**-0.5
        assert np.abs(values).max() <= bound
        # The standard deviation of a uniform distribution between -bound and bound.
        assert values.std() == pytest.approx(bound / 3**0.5, rel=0.15)

    assert abs(layers.output_bias[0]) <= 100**-0.5


def test_losses_of_extreme_logits_are_finite_and_the_papers_stay_above_that_of_probabilities():
    """Computed naively, the exponential of 10,000 would be infinite: one of three clips is wrong by so much.

    The published code takes probabilities for logits: even certain and right predictions have 0 and 1 there.
    """
    one_of_three_is_wrong = np.array([1e4, -1e4, 1e4])
    assert ONE_LOGIT.loss(one_of_three_is_wrong, np.array([1.0, 0.0, 0.0])) == pytest.approx(1e4 / 3)

    certain_and_right = np.array([50.0, -50.0])
    loss = TWO_CLASSES.loss(certain_and_right, np.array([1.0, 0.0]))
    assert loss == pytest.approx(-np.log(np.exp(1) / (np.exp(0) + np.exp(1))))
