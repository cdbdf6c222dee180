"""Attention over frames: the arithmetic equals PyTorch's, and what is planted in time is found."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from obygaze_models.models.attention import SPECS, AttentionPooling
from obygaze_models.models.attention_network import DECAY, N_PAIRS, AttentionNetwork
from obygaze_models.models.linear import make_frames_probe
from obygaze_models.models.registry import models_for
from obygaze_models.models.training import N_TRIAL_EPOCHS
from tests.planted_frames import planted_frames

ABSENT = np.nan


# --- against PyTorch
# ---------------------------------------------------------------------------
@pytest.fixture
def clips():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6, 9, 5))
    X[1, 4:] = ABSENT
    X[2, 1:] = ABSENT
    return X, (np.arange(6) % 2).astype(np.float64)


@pytest.mark.parametrize(("n_hidden", "timed"), [(4, False), (4, True), (0, False)])
def test_logits_loss_and_gradient_equal_autograd(clips, n_hidden, timed):
    torch = pytest.importorskip("torch")
    X, y = clips
    network = AttentionNetwork(5, n_hidden, timed, 5.0)
    ready = network.prepare(X, *network.moments(X))
    parameters = network.starts(np.random.default_rng(0), ready, y)[0]
    weights = np.linspace(0.5, 2, 6)
    gradient = np.full_like(parameters, np.nan)
    scores = network.backward(network.views(parameters), ready, y, network.views(gradient), weights)

    twin = torch.from_numpy(parameters.copy()).requires_grad_()
    n_inputs, n_columns = network.n_inputs, 2 * n_hidden + 1
    projection = twin[: n_inputs * n_columns].reshape(n_inputs, n_columns)
    gate_bias = twin[n_inputs * n_columns :][: 2 * n_hidden]
    attention, bias = twin[n_inputs * n_columns + 2 * n_hidden : -1], twin[-1]
    frames, absent = torch.from_numpy(ready[..., :-1]), torch.from_numpy(ready[..., -1] == 1)
    half = frames @ projection[:, :-1] + gate_bias
    score = (torch.tanh(half[..., :n_hidden]) * torch.sigmoid(half[..., n_hidden:])) @ attention
    share = torch.softmax(score.masked_fill(absent, -torch.inf), dim=1)
    logits = (share * (frames @ projection[:, -1])).sum(dim=1) + bias
    losses = torch.nn.functional.binary_cross_entropy_with_logits(
        logits, torch.from_numpy(y), reduction="none"
    )
    ((losses * torch.from_numpy(weights)).mean() + DECAY / 2 * (projection**2).sum()).backward()

    np.testing.assert_allclose(scores, logits.detach().numpy(), rtol=1e-10)
    np.testing.assert_allclose(gradient, twin.grad.numpy(), rtol=1e-6, atol=1e-12)
    assert network.loss(scores, y) == pytest.approx(losses.mean().item(), rel=1e-10)


# --- what is planted
# ---------------------------------------------------------------------------
def test_an_event_of_three_frames_is_found_where_the_mean_knows_nothing():
    X, y, movies, event = planted_frames()
    train, val, test = movies < 8, (movies == 8) | (movies == 9), movies >= 10
    held_out = {"X_val": X[val], "y_val": y[val]}
    model = AttentionPooling().fit(X[train], y[train], **held_out)
    equal = AttentionPooling(attention="uniform").fit(X[train], y[train], **held_out)
    mean = make_frames_probe("mean").fit(X[train], y[train])
    share = y[test].mean()
    assert average_precision_score(y[test], model.decision_function(X[test])) >= 0.9
    for blind in (equal, mean):
        found = average_precision_score(y[test], blind.decision_function(X[test]))
        assert found == pytest.approx(share, abs=0.03)
    positive = test & (y == 1)
    first = model.weights(X[positive]).argmax(axis=1)
    assert event[positive, first].mean() >= 0.9


@pytest.mark.long
@pytest.mark.parametrize("correlation", [0.0, 0.9])
@pytest.mark.nightly
def test_the_event_is_found_in_19_of_20_corpora_whatever_the_frames_correlation(correlation):
    """Alone it finds starts that lead nowhere in a few corpora."""
    n_found = 0
    for seed in range(20):
        X, y, movies, event = planted_frames(
            n_per_movie=60, n_features=24, seed=seed, correlation=correlation
        )
        train, positive = movies < 8, (movies >= 8) & (y == 1)
        model = AttentionPooling(random_state=seed).fit(X[train], y[train])
        precision = average_precision_score(y[~train], model.decision_function(X[~train]))
        pointing = event[positive, model.weights(X[positive]).argmax(axis=1)].mean()
        n_found += precision >= 0.9 and pointing >= 0.9
    assert n_found >= 19


def test_the_start_of_the_lowest_training_loss_is_trained_on():
    # With this seed the first start of each pair looks away from the event, and stays there.
    X, y, _, _ = planted_frames(n_movies=8, n_per_movie=60, n_features=24, seed=12)
    model = AttentionPooling(random_state=12).fit(X, y)
    losses = model.curve_.start_losses
    assert losses.shape == (2 * N_PAIRS,)
    assert losses.max() > losses.min() + 0.05
    assert model.curve_.train_loss[N_TRIAL_EPOCHS - 1] < losses.min() + 0.05
    assert model.curve_.train_loss[-1] < 0.1


# --- frames that are absent
# ---------------------------------------------------------------------------
def test_an_absent_frame_has_no_weight_and_changes_nothing():
    X, y, *_ = planted_frames(n_movies=3, n_per_movie=20)
    X = X.astype(np.float64)
    longer = np.concatenate([X, np.full((len(X), 4, X.shape[2]), ABSENT)], axis=1)
    short, long = (AttentionPooling(max_epochs=3).fit(given, y) for given in (X, longer))
    np.testing.assert_allclose(long.decision_function(longer), short.decision_function(X), rtol=1e-9)
    assert (long.weights(longer)[:, -4:] == 0).all()
    np.testing.assert_allclose(
        make_frames_probe("mean").fit(longer, y).decision_function(longer),
        make_frames_probe("mean").fit(X, y).decision_function(X),
        rtol=1e-9,
    )


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X: X[:, 0], r"expected clips' frames \[N, F, D\]"),
        (lambda X: np.where(np.arange(len(X))[:, None, None] == 3, np.nan, X), "clip 3 has no frame"),
        (lambda X: np.where(np.arange(X.shape[2]) == 0, np.nan, X), "in all of its features or in none"),
    ],
    ids=["vectors", "empty clip", "half a frame"],
)
def test_what_are_no_frames_is_refused(spoil, message):
    X, y, *_ = planted_frames(n_movies=3, n_per_movie=20)
    with pytest.raises(ValueError, match=message):
        AttentionPooling(max_epochs=1).fit(spoil(X), y)


# --- determinism and controls
# ---------------------------------------------------------------------------


@pytest.mark.parametrize("n_frames", [1, 7, 32])
def test_a_clip_has_the_same_bytes_alone_and_together(n_frames):
    X, y, *_ = planted_frames(n_movies=3, n_per_movie=40)
    X = X[:, :n_frames]
    model = AttentionPooling(max_epochs=2).fit(X, y)
    for outcome in (model.decision_function, model.weights, model.evidence):
        together = outcome(X)
        for part in (slice(0, 1), slice(5, 6), slice(3, 40), slice(len(X) - 1, None)):
            assert outcome(X[part]).tobytes() == together[part].tobytes()


@pytest.mark.parametrize("disturb", ["exchange", "shuffle"])
def test_a_control_is_trained_on_frames_that_were_moved_and_on_no_others(disturb):
    X, y, movies, _ = planted_frames(n_movies=3, n_per_movie=20)
    model = AttentionPooling(disturb=disturb)
    moved = model._disturbed(X, y, movies)
    assert not np.array_equal(moved, X)
    if disturb == "shuffle":
        np.testing.assert_array_equal(np.sort(moved, axis=1), np.sort(X, axis=1))
    for movie in np.unique(movies):
        for label in (0, 1):
            rows = (movies == movie) & (y == label)
            np.testing.assert_array_equal(
                np.sort(moved[rows].reshape(-1, X.shape[2]), axis=0),
                np.sort(X[rows].reshape(-1, X.shape[2]), axis=0),
            )


def test_in_every_table_controls_stand_beside_attention():
    named = [spec.name for spec in models_for("levels", ["attention"]) if spec.looks_at_features]
    assert named == ["attention", "mean_frames", "max_frames", "attention_uniform", "attention_exchanged"]
    timed = [spec.name for spec in models_for("levels", ["attention_time"])]
    assert "attention_shuffled" in timed
    assert not {spec.name for spec in SPECS} & {spec.name for spec in models_for("levels", None)}


@pytest.mark.parametrize(("pool", "reduce"), [("mean", np.mean), ("max", np.max)])
def test_the_probe_on_pooled_frames_is_the_linear_probe_of_one_penalty(pool, reduce):
    rng = np.random.default_rng(0)
    frames, y = rng.normal(size=(60, 4, 3)), np.arange(60) % 2
    frames[y == 1] += 0.5
    pooled = reduce(frames, axis=1)
    head = LogisticRegression(C=0.01, tol=1e-6, max_iter=10_000)
    plain = make_pipeline(StandardScaler(), head).fit(pooled, y)
    ours = make_frames_probe(pool).fit(frames, y)
    np.testing.assert_allclose(ours.decision_function(frames), plain.decision_function(pooled), atol=1e-6)
