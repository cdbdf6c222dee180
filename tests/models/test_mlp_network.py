"""The perceptron's arithmetic equals PyTorch's."""

import numpy as np
import pytest
from scipy.special import expit

from obygaze_models.models.adam import Adam, adam_step
from obygaze_models.models.perceptron import Perceptron
from tests.lazy_import import lazy_import, needs

torch = lazy_import("torch")
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
    reference = torch.nn.Sequential(*layers).double()
    views = network.layers_of(parameters)
    values = (views.hidden_weight.T, views.hidden_bias, views.output_weight.T, views.output_bias)
    with torch.no_grad():
        for tensor, value in zip(reference.parameters(), values, strict=True):
            tensor.copy_(torch.from_numpy(np.array(value)))
    return reference


def flat_parameters(tensors):
    """Put PyTorch's four tensors, weight and bias of two layers, in our order."""
    hidden_weight, hidden_bias, output_weight, output_bias = (tensor.detach().numpy() for tensor in tensors)
    return np.concatenate([hidden_weight.T.ravel(), hidden_bias, output_weight.T.ravel(), output_bias])


def torch_loss(reference, X, y):
    """Compute the loss by PyTorch; the paper's cross entropy takes the probabilities for logits."""
    outputs = reference(torch.from_numpy(X))
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
    """The same network is built of PyTorch's layers, with the same parameters, and runs on the same 16 clips.

    Ours ends in one logit; that of the paper has an output for each of two classes. PyTorch's network of two
    classes ends in the probability of the second one, ours in its logit.
    """
    X, y = batch
    # Three times as large as initial parameters are. With these, logits are near 0, where sigmoid and softmax
    # are nearly linear, and a wrong formula might pass.
    parameters = 3 * initial_parameters(network, np.random.default_rng(0))

    gradient = np.full_like(parameters, np.nan)  # to be filled in by `backward`
    scores = network.backward(network.layers_of(parameters), X, y, network.layers_of(gradient))

    network_of_torch = torch_network(parameters, network)
    expected_loss = torch_loss(network_of_torch, X, y)
    expected_loss.backward()
    expected_gradient = flat_parameters(tensor.grad for tensor in network_of_torch.parameters())
    expected_output = network_of_torch(torch.from_numpy(X))[:, -1].detach().numpy()
    output = expit(scores) if network is TWO_CLASSES else scores
    np.testing.assert_allclose(output, expected_output, atol=1e-12)
    np.testing.assert_allclose(network.loss(scores, y), expected_loss.item(), atol=1e-12)
    np.testing.assert_allclose(gradient, expected_gradient, atol=1e-12)
    assert np.array_equal(network.logits(network.layers_of(parameters), X), scores)


@pytest.mark.long
def test_six_hundred_steps_of_adam_follow_torch_to_1e_6():
    """Our network and PyTorch's begin with the same parameters, and are trained by Adam on the same clips.

    Each of 600 steps is on 16 of 60 clips. In so many steps our Adam, which keeps its running sums scaled,
    rescales them twice, and may not drift off for that.
    """
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, N_FEATURES))
    y = (rng.random(60) < 0.3).astype(np.float64)
    parameters = initial_parameters(ONE_LOGIT, rng)
    our_adam = Adam.zeros_like(parameters)
    network_of_torch = torch_network(parameters)
    adam_of_torch = torch.optim.Adam(network_of_torch.parameters(), lr=1e-3)

    for _ in range(600):
        rows = rng.permutation(60)[:16]
        adam_step(parameters, gradient_of(parameters, X[rows], y[rows]), our_adam, learning_rate=1e-3)

        adam_of_torch.zero_grad()
        torch_loss(network_of_torch, X[rows], y[rows]).backward()
        adam_of_torch.step()

    parameters_of_torch = flat_parameters(network_of_torch.parameters())
    np.testing.assert_allclose(parameters, parameters_of_torch, atol=1e-6, rtol=0)


def test_initial_parameters_are_uniform_within_the_bounds_of_torch_linear():
    """The bound is 1 / root(number of inputs): 400 features, and then 100 hidden units.

    The standard deviation of a uniform distribution between -bound and bound is bound / root(3).
    """
    network = Perceptron(n_features=400, n_hidden=100)

    parameters = initial_parameters(network, np.random.default_rng(0))

    assert parameters.size == 400 * 100 + 100 + 100 + 1
    assert network.n_parameters == parameters.size
    layers = network.layers_of(parameters)
    bound_of_hidden = 1 / 400**0.5
    bound_of_output = 1 / 100**0.5
    for values, bound in (
        (layers.hidden_weight, bound_of_hidden),
        (layers.hidden_bias, bound_of_hidden),
        (layers.output_weight, bound_of_output),
    ):
        assert np.abs(values).max() <= bound
        assert values.std() == pytest.approx(bound / 3**0.5, rel=0.15)
    assert abs(layers.output_bias[0]) <= bound_of_output


def test_the_loss_of_extreme_logits_is_finite():
    """Computed naively, the exponential of 10,000 would be infinite.

    The third of three clips is wrong by so much, and the others cost nothing.
    """
    logits = np.array([1e4, -1e4, 1e4])
    labels = np.array([1.0, 0.0, 0.0])

    assert ONE_LOGIT.loss(logits, labels) == pytest.approx(1e4 / 3)


def test_the_papers_loss_of_certain_and_right_predictions_is_not_0():
    """The published code takes the probabilities of the two classes, here 0 and 1, for logits.

    The softmax of the right class is then exp(1) / (exp(0) + exp(1)), about .73.
    """
    certain_logits = np.array([50.0, -50.0])
    labels = np.array([1.0, 0.0])

    loss = TWO_CLASSES.loss(certain_logits, labels)

    assert loss == pytest.approx(-np.log(np.exp(1) / (np.exp(0) + np.exp(1))))
