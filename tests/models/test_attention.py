"""Attention over frames: the arithmetic equals PyTorch's, and what is split in time is found."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from obygaze_models.models.attention import SPECS, AttentionPooling
from obygaze_models.models.attention_network import N_PAIRS, PROJECTION_PENALTY, AttentionNetwork
from obygaze_models.models.linear import make_frames_probe
from obygaze_models.models.registry import models_for
from obygaze_models.models.training import N_TRIAL_EPOCHS
from tests.planted_frames import planted_frames

ABSENT = np.nan


# --- against PyTorch
# ---------------------------------------------------------------------------
@pytest.fixture
def clips():
    """Frames [6, 9, 5], of which two clips lack the last ones, and labels."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6, 9, 5))
    X[1, 4:] = ABSENT
    X[2, 1:] = ABSENT
    return X, (np.arange(6) % 2).astype(np.float64)


def torch_logits_and_penalty(torch, network, prepared, tensor):
    """Compute the network's logits and its penalty by PyTorch, from its parameters as one flat tensor.

    The tensor holds, one after the other, the projection of each input to hidden units, their gates and the
    evidence; the biases of units and gates; the weights of the attention; and the bias of the logit.
    """
    n_hidden, n_inputs = network.n_hidden, network.n_inputs
    sizes = [n_inputs * (2 * n_hidden + 1), 2 * n_hidden, n_hidden, 1]
    flat_projection, hidden_bias, attention, bias = torch.split(tensor, sizes)
    projection = flat_projection.reshape(n_inputs, 2 * n_hidden + 1)
    frames = torch.from_numpy(prepared[..., :-1])
    is_absent = torch.from_numpy(prepared[..., -1] == 1)  # the last input says that a frame is absent
    hidden = frames @ projection[:, :-1] + hidden_bias
    gated = torch.tanh(hidden[..., :n_hidden]) * torch.sigmoid(hidden[..., n_hidden:])
    frame_scores = (gated @ attention).masked_fill(is_absent, -torch.inf)
    evidence = frames @ projection[:, -1]
    logits = (torch.softmax(frame_scores, dim=1) * evidence).sum(dim=1) + bias
    return logits, PROJECTION_PENALTY / 2 * (projection**2).sum()


def torch_logits_losses_and_gradient(network, prepared, parameters, y, weights):
    """Run the same network by PyTorch; what is minimised is the weighted mean of losses, and a penalty."""
    import torch

    tensor = torch.from_numpy(parameters.copy()).requires_grad_()
    logits, penalty = torch_logits_and_penalty(torch, network, prepared, tensor)
    cross_entropy = torch.nn.functional.binary_cross_entropy_with_logits
    losses = cross_entropy(logits, torch.from_numpy(y), reduction="none")
    weighted_mean = (losses * torch.from_numpy(weights)).mean()
    (weighted_mean + penalty).backward()
    return logits.detach().numpy(), losses.detach().numpy(), tensor.grad.numpy()


@pytest.mark.parametrize(
    ("n_hidden", "timed"),
    [(4, False), (4, True), (0, False)],
    ids=["four hidden units", "with the time of frames", "without hidden units"],
)
def test_logits_loss_and_gradient_equal_those_of_pytorch(clips, n_hidden, timed):
    """Six clips of nine frames, of which two lack the last ones, have weights from .5 to 2.

    The gradient is that of the weighted mean of their losses, and a penalty on large parameters.
    """
    pytest.importorskip("torch")
    X, y = clips
    weights = np.linspace(0.5, 2, 6)
    network = AttentionNetwork(n_features=5, n_hidden=n_hidden, timed=timed, clip=5.0)
    prepared = network.prepare(X, *network.mean_and_scale(X))
    parameters = network.initial_parameters(np.random.default_rng(0), prepared, y)[0]

    gradient = np.full_like(parameters, np.nan)
    scores = network.backward(
        network.layers_of(parameters), prepared, y, network.layers_of(gradient), weights
    )

    logits, losses, expected_gradient = torch_logits_losses_and_gradient(
        network, prepared, parameters, y, weights
    )
    np.testing.assert_allclose(scores, logits, rtol=1e-10)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-6, atol=1e-12)
    assert network.loss(scores, y) == pytest.approx(losses.mean(), rel=1e-10)


@pytest.mark.long
def test_attention_finds_an_event_that_the_mean_of_frames_does_not_show():
    """In a positive clip three frames, the event, are moved along a direction and the others back.

    So the mean of frames does not know the label; a model that weighs frames alike, or a probe of their mean,
    ranks clips as by chance. Films 0 to 7 are learnt from, 8 and 9 stop the training, the rest are unseen.
    """
    clips = planted_frames()
    is_train = clips.movies < 8
    is_validation = (clips.movies == 8) | (clips.movies == 9)
    is_unseen = clips.movies >= 10
    validation = {"X_val": clips.X[is_validation], "y_val": clips.y[is_validation]}

    attention = AttentionPooling().fit(clips.X[is_train], clips.y[is_train], **validation)
    uniform = AttentionPooling(attention="uniform").fit(clips.X[is_train], clips.y[is_train], **validation)
    mean_probe = make_frames_probe("mean").fit(clips.X[is_train], clips.y[is_train])

    def precision_on_unseen_films(model):
        return average_precision_score(clips.y[is_unseen], model.decision_function(clips.X[is_unseen]))

    precision_by_chance = clips.y[is_unseen].mean()  # the share of positives
    assert precision_on_unseen_films(attention) >= 0.9
    assert precision_on_unseen_films(uniform) == pytest.approx(precision_by_chance, abs=0.03)
    assert precision_on_unseen_films(mean_probe) == pytest.approx(precision_by_chance, abs=0.03)

    is_positive = is_unseen & (clips.y == 1)
    heaviest_frame = attention.weights(clips.X[is_positive]).argmax(axis=1)
    share_of_clips_whose_heaviest_frame_is_of_the_event = clips.is_event[is_positive, heaviest_frame].mean()
    assert share_of_clips_whose_heaviest_frame_is_of_the_event >= 0.9


@pytest.mark.long
@pytest.mark.parametrize("correlation", [0.0, 0.9])
@pytest.mark.nightly
def test_the_event_is_found_in_19_of_20_corpora_whatever_the_frames_correlation(correlation):
    """It trains 20 times: bad initial parameters miss the event in a few corpora, which one corpus hides.

    The event, three moved frames of a positive clip, is found if new films are ranked well, and if the frame
    with the largest weight is one of the three in 9 of 10 clips.
    """
    n_found = 0
    for seed in range(20):
        clips = planted_frames(n_per_movie=60, n_features=24, seed=seed, correlation=correlation)
        is_new = clips.movies >= 8
        model = AttentionPooling(random_state=seed).fit(clips.X[~is_new], clips.y[~is_new])
        precision = average_precision_score(clips.y[is_new], model.decision_function(clips.X[is_new]))
        is_positive = is_new & (clips.y == 1)
        heaviest_frame = model.weights(clips.X[is_positive]).argmax(axis=1)
        share_of_found_frames = clips.is_event[is_positive, heaviest_frame].mean()
        if precision >= 0.9 and share_of_found_frames >= 0.9:
            n_found += 1

    assert n_found >= 19


def test_training_goes_on_from_the_initial_parameters_that_have_the_lowest_loss_after_a_trial():
    """Initial parameters come in pairs: one attends to the event, and its mirror image away from it.

    All are trained for a few epochs, the trial. With this seed the first ones of both pairs attend away from
    the event, so that going on from the first would fail. The losses after the trial must differ by more than
    .05. The loss of the training that went on must be within .05 of the lowest one at the end of the trial,
    and below .1 at the end.
    """
    clips = planted_frames(n_movies=8, n_per_movie=60, n_features=24, seed=12)

    curve = AttentionPooling(random_state=12).fit(clips.X, clips.y).curve_

    losses_after_trial = curve.start_losses  # of all initial parameters
    assert losses_after_trial.shape == (2 * N_PAIRS,)
    lowest_loss = losses_after_trial.min()
    assert losses_after_trial.max() > lowest_loss + 0.05
    loss_at_end_of_trial = curve.train_loss[N_TRIAL_EPOCHS - 1]
    assert loss_at_end_of_trial < lowest_loss + 0.05
    assert curve.train_loss[-1] < 0.1


# --- frames that are absent
# ---------------------------------------------------------------------------
def test_absent_frames_have_no_weight_and_change_no_score():
    """Clips of different length are filled up with absent frames (NaN), here four."""
    clips = planted_frames(n_movies=3, n_per_movie=20)
    frames = clips.X.astype(np.float64)
    four_absent_frames = np.full((len(frames), 4, frames.shape[2]), ABSENT)
    longer = np.concatenate([frames, four_absent_frames], axis=1)
    attention = AttentionPooling(max_epochs=3)

    for estimator in (attention, make_frames_probe("mean")):
        expected = estimator.fit(frames, clips.y).decision_function(frames)
        scores = estimator.fit(longer, clips.y).decision_function(longer)
        np.testing.assert_allclose(scores, expected, rtol=1e-9)

    weights = attention.fit(longer, clips.y).weights(longer)
    assert (weights[:, -4:] == 0).all()


def test_one_vector_a_clip_in_place_of_frames_is_refused():
    """Attention sums the frames of a clip; here of each clip only the first frame is given."""
    clips = planted_frames(n_movies=3, n_per_movie=20)
    first_frames = clips.X[:, 0]  # [N, D]

    with pytest.raises(ValueError, match=r"expected clips' frames \[N, F, D\]"):
        AttentionPooling(max_epochs=1).fit(first_frames, clips.y)


def test_a_clip_whose_frames_are_all_absent_is_refused():
    """Of 60 clips, clip 3 has nothing to be summed. ABSENT is NaN."""
    clips = planted_frames(n_movies=3, n_per_movie=20)
    clips.X[3] = ABSENT

    with pytest.raises(ValueError, match="clip 3 has no frame"):
        AttentionPooling(max_epochs=1).fit(clips.X, clips.y)


def test_a_frame_that_is_absent_in_one_feature_alone_is_refused():
    """ABSENT is NaN; an absent frame has it in all features. Here the first feature alone is absent."""
    clips = planted_frames(n_movies=3, n_per_movie=20)
    clips.X[:, :, 0] = ABSENT

    with pytest.raises(ValueError, match="in all of its features or in none"):
        AttentionPooling(max_epochs=1).fit(clips.X, clips.y)


# --- determinism and controls
# ---------------------------------------------------------------------------


@pytest.mark.parametrize("n_frames", [1, 7, 32])
def test_a_clip_has_the_same_outputs_alone_and_among_others(n_frames):
    """The score of a clip must not depend on which others are scored with it, to the last bit.

    120 clips are scored together, and then the first alone, the sixth alone, 37 of them, and the last alone.
    """
    clips = planted_frames(n_movies=3, n_per_movie=40)
    frames = clips.X[:, :n_frames]
    model = AttentionPooling(max_epochs=2).fit(frames, clips.y)

    for outputs_of in (model.decision_function, model.weights, model.evidence):
        of_all = outputs_of(frames)
        first, sixth, many, last = slice(0, 1), slice(5, 6), slice(3, 40), slice(119, 120)
        for some_clips in (first, sixth, many, last):
            of_some = outputs_of(frames[some_clips])
            assert of_some.tobytes() == of_all[some_clips].tobytes()


def test_a_control_shuffles_the_frames_within_each_clip():
    """Each clip has the same numbers as before, in another order of frames."""
    clips = planted_frames(n_movies=3, n_per_movie=20)

    shuffled = AttentionPooling(disturb="shuffle")._disturb_frames(clips.X, clips.y, clips.movies)

    assert not np.array_equal(shuffled, clips.X)
    np.testing.assert_array_equal(np.sort(shuffled, axis=1), np.sort(clips.X, axis=1))


def test_a_control_exchanges_frames_among_the_clips_of_one_movie_and_label():
    """Clips do not have the same numbers as before, but all clips of a movie and label together have."""
    clips = planted_frames(n_movies=3, n_per_movie=20)

    exchanged = AttentionPooling(disturb="exchange")._disturb_frames(clips.X, clips.y, clips.movies)

    assert not np.array_equal(np.sort(exchanged, axis=1), np.sort(clips.X, axis=1))
    for movie in np.unique(clips.movies):
        for label in (0, 1):
            rows = (clips.movies == movie) & (clips.y == label)
            frames_before = clips.X[rows].reshape(-1, clips.X.shape[2])
            frames_after = exchanged[rows].reshape(-1, clips.X.shape[2])
            np.testing.assert_array_equal(np.sort(frames_after, axis=0), np.sort(frames_before, axis=0))


def names_of_models(asked_for):
    """List the models of levels that are evaluated, without baselines."""
    return [spec.name for spec in models_for("levels", asked_for) if spec.looks_at_features]


def test_attention_is_evaluated_beside_poolings_and_controls():
    """Poolings take the mean or the maximum of frames.

    One control gives all frames the same weight, the other exchanges frames between clips.
    """
    names = names_of_models(asked_for=["attention"])

    poolings = ["mean_frames", "max_frames"]
    controls = ["attention_uniform", "attention_exchanged"]
    assert names == ["attention", *poolings, *controls]


def test_attention_that_knows_the_time_of_frames_is_evaluated_beside_one_of_shuffled_frames():
    """Shuffling takes from a control what the time of frames tells."""
    assert "attention_shuffled" in names_of_models(["attention_time"])


def test_models_of_attention_are_evaluated_only_where_they_are_asked_for():
    """Where no model is asked for (None), the usual ones are evaluated, without those of attention."""
    names_of_attention = {spec.name for spec in SPECS}

    usual_names = {spec.name for spec in models_for("levels", wanted=None)}

    assert usual_names.isdisjoint(names_of_attention)


@pytest.mark.parametrize(("pool", "reduce"), [("mean", np.mean), ("max", np.max)])
def test_the_probe_on_pooled_frames_is_scikit_learns_regression(pool, reduce):
    """It is a logistic regression with C = 0.01 on standardised means or maxima over frames."""
    frames = np.random.default_rng(0).normal(size=(60, 4, 3))  # clips, frames, features
    y = np.arange(60) % 2
    frames[y == 1] += 0.5
    pooled = reduce(frames, axis=1)
    regression = LogisticRegression(C=0.01, tol=1e-6, max_iter=10_000)
    reference = make_pipeline(StandardScaler(), regression).fit(pooled, y)

    scores = make_frames_probe(pool).fit(frames, y).decision_function(frames)

    np.testing.assert_allclose(scores, reference.decision_function(pooled), atol=1e-6)
