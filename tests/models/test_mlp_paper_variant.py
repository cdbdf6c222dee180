"""The paper's perceptron: the published model's arithmetic, and the published code's numbers."""

import numpy as np
import pytest

from obygaze_models.models import MLPProbe
from obygaze_models.models.mlp_network import backward, initial, layers, log_loss, logits
from tests.models.test_mlp_probe import y_of


def test_loss_and_gradient_equal_autograd_of_softmax_then_cross_entropy():
    torch = pytest.importorskip("torch")
    from tests.models.test_mlp_network import B, D, H, flat, torch_twin

    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(B, D)), (rng.random(B) < 0.4).astype(np.float64)
    parameters = initial(D, H, rng, 2)
    parameters *= 3  # far enough from 0 for the two softmaxes to bend
    layer = layers(parameters, D, 2)
    twin = torch.nn.Sequential(*torch_twin(parameters, 2), torch.nn.Softmax(dim=1))
    probabilities = twin(torch.from_numpy(X))
    expected = torch.nn.functional.cross_entropy(probabilities, torch.from_numpy(y).long())
    expected.backward()
    gradient = np.empty_like(parameters)
    scores = backward(layer, X, y, layers(gradient, D, 2))
    np.testing.assert_allclose(gradient, flat(tensor.grad for tensor in twin.parameters()), atol=1e-12)
    assert np.array_equal(scores, logits(layer, X))
    np.testing.assert_allclose(log_loss(scores, y, 2), expected.item(), atol=1e-12)
    np.testing.assert_allclose(1 / (1 + np.exp(-scores)), probabilities.detach().numpy()[:, 1], atol=1e-12)


def test_no_certainty_brings_the_double_softmax_below_its_floor():
    sure = np.array([50.0, -50.0])
    assert log_loss(sure, np.array([1.0, 0.0]), 2) == pytest.approx(np.log1p(np.exp(-1)))


@pytest.fixture(scope="module")
def learnable(make_planted):
    return make_planted(direction=3.0)


@pytest.fixture(scope="module")
def fitted(learnable):
    out = learnable.movies == learnable.movies[-1]
    probe = MLPProbe(variant="paper", learning_rate=0.01)
    return probe.fit(
        learnable.X[~out], y_of(learnable)[~out], X_val=learnable.X[out], y_val=y_of(learnable)[out]
    )


def test_the_last_epoch_is_kept_patience_past_the_best(fitted):
    losses = fitted.curve_.validation_loss
    assert fitted.n_epochs_ == len(losses) == np.argmin(losses) + 1 + 5


def test_features_are_taken_as_they_are_and_the_likelier_class_is_called(fitted, learnable):
    assert not fitted.mean_.any()
    assert (fitted.scale_ == 1).all()
    probabilities = fitted.predict_proba(learnable.X)
    assert np.array_equal(fitted.predict(learnable.X), (probabilities[:, 1] >= 0.5).astype(int))


def test_an_unknown_variant_is_refused(learnable):
    with pytest.raises(ValueError, match="'variant' parameter"):
        MLPProbe(variant="papier").fit(learnable.X, y_of(learnable))
