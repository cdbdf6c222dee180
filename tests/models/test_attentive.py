"""Attentive probe: its gradient, what it finds, what it never sees, and clips read from a store as needed."""

from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import average_precision_score

from obygaze_features.store import Store
from obygaze_models.commands.evaluate_commands import _announce_hours
from obygaze_models.dataset import Dataset, load_dataset
from obygaze_models.dataset.features import StoredClips
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.models.attentive import AttentiveProbe, most_cpu_hours
from obygaze_models.models.attentive_training import QUERY_PENALTY, ProbesInTraining, TrainingSettings
from obygaze_models.models.choices import log_loss
from obygaze_models.prediction import reading
from obygaze_models.prediction.final import save_models
from obygaze_models.prediction.predict import predict
from obygaze_models.prediction.saved_model import load_model
from tests.planted_frames import planted_frames, seal_films

PENALTIES = (1.0, 0.1)


def probes_of(X, y, folds):
    """Make probes of two penalties, in which nothing is trained yet."""
    settings = TrainingSettings(n_queries=6, batch_size=32, learning_rate=1e-3, seed=0)
    return ProbesInTraining(X, y, folds, PENALTIES, settings)


@pytest.fixture
def clips():
    """Clips of large mean, some frames absent, in three folds."""
    rng = np.random.default_rng(3)
    X = 20 + rng.normal(size=(12, 7, 5)) * np.arange(1, 6)
    X[2, 4:] = np.nan
    X[5, 1:] = np.nan
    return X, np.arange(12) % 2, np.arange(12) // 4


# --- arithmetic
# ---------------------------------------------------------------------------
def loss_by_definition(probes, X, y, rows):
    """Add up every probe's mean cross-entropy on the clips that it learns from, and its penalties."""
    projection, biases = probes.layers_of(probes.parameters)
    total = 0.0
    for group in range(len(probes.mean)):
        rows_of_group = rows[probes.in_group[rows, group]]
        labels = y[rows_of_group]
        for index, penalty in enumerate(PENALTIES):
            probe = group * len(PENALTIES) + index
            queries, evidence = projection[:, :, probe].transpose(1, 2, 0)  # [M, D] each
            logits = []
            for clip in X[rows_of_group]:
                present = clip[~np.isnan(clip[:, 0])]
                tokens = (present - probes.mean[group]) / probes.scale[group]
                weights = np.exp(tokens @ queries.T)
                weights /= weights.sum(axis=0)
                logits.append((weights * (tokens @ evidence.T)).sum())
            logits = np.array(logits) + biases[probe]
            total += np.logaddexp(0, logits).mean() - (labels * logits).mean()
            total += penalty / 2 * (evidence**2).sum() + QUERY_PENALTY / 2 * (queries**2).sum()
    return total


def test_the_gradient_is_that_of_the_loss_by_finite_differences(clips):
    X, y, folds = clips
    rows = np.array([0, 2, 5, 7, 8, 11])
    probes = probes_of(X, y, folds)
    probes.parameters += np.random.default_rng(0).normal(size=probes.parameters.size) * 0.3
    probes.backward(rows)
    step = 1e-6
    expected = np.empty_like(probes.gradient)
    for index, parameter in enumerate(probes.parameters.copy()):
        probes.parameters[index] = parameter + step
        loss_above = loss_by_definition(probes, X, y, rows)
        probes.parameters[index] = parameter - step
        loss_below = loss_by_definition(probes, X, y, rows)
        probes.parameters[index] = parameter
        expected[index] = (loss_above - loss_below) / (2 * step)
    np.testing.assert_allclose(probes.gradient, expected, rtol=1e-5, atol=1e-7)


def test_moments_are_those_of_the_tokens_that_a_group_learns_from(clips):
    X, y, folds = clips
    probes = probes_of(X.astype(np.float32), y, folds)
    # Group 3 holds no clip out, as there is no fold 3.
    for group in range(4):
        tokens = X[folds != group].reshape(-1, 5)
        np.testing.assert_allclose(probes.mean[group], np.nanmean(tokens, axis=0), rtol=1e-5)
        np.testing.assert_allclose(probes.scale[group], np.nanstd(tokens, axis=0), rtol=1e-4)


def test_the_kept_probe_scores_as_the_one_that_was_trained(clips):
    X, y, folds = clips
    probes = probes_of(X, y, folds)
    probes.parameters += np.random.default_rng(0).normal(size=probes.parameters.size) * 0.3
    model = AttentiveProbe(n_queries=6)
    model.parameters_ = probes.parameters_on_all_clips(1)
    model.mean_ = probes.mean[-1]
    model.scale_ = probes.scale[-1]
    model.n_features_in_ = 5
    model.classes_ = np.array([0, 1])
    logits_in_training = probes.backward(np.arange(12))[:, -1]
    np.testing.assert_allclose(model.decision_function(X), logits_in_training, rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expit(logits_in_training), rtol=1e-9)


# --- what it finds
# ---------------------------------------------------------------------------
@pytest.mark.long  # simulates
def test_an_event_of_three_frames_is_found_where_the_mean_knows_nothing():
    X, y, movies, is_event = planted_frames(n_per_movie=60)
    train = movies < 10
    model = AttentiveProbe().fit(X[train], y[train], groups=movies[train])
    assert average_precision_score(y[~train], model.decision_function(X[~train])) >= 0.95
    positive = ~train & (y == 1)
    heaviest_frames = model.weights(X[positive]).argmax(axis=1)  # [N, M]
    hits = np.take_along_axis(is_event[positive], heaviest_frames, axis=1)
    assert hits.mean(axis=0).max() >= 0.9  # of the query that finds it


class Films(NamedTuple):
    """A store of four films, whose positive clips have one token that says so."""

    store: Store
    data: Dataset
    telling_token: np.ndarray  # [N]: its index
    y: np.ndarray


def films_of(folder, n_tokens):
    """Seal clips of four films with their tokens, and label them."""
    rng = np.random.default_rng(5)
    n_clips, width = 96, 16
    y = np.arange(n_clips) // 2 % 2
    telling_token = rng.integers(n_tokens, size=n_clips)
    tokens = rng.normal(size=(n_clips, n_tokens, width))
    axis = rng.normal(size=width)
    tokens[np.arange(n_clips), telling_token] += 10 * y[:, None] * axis / np.linalg.norm(axis)
    tokens = tokens.astype(np.float16)
    arrays = {"pooled": tokens.mean(axis=1).astype(np.float32), "tokens": tokens}
    store, manifest = seal_films(folder, arrays, np.arange(n_clips) // 24, y, n_frames=8)
    return Films(store, load_dataset(store, manifest), telling_token, y)


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    return films_of(tmp_path_factory.mktemp("tokens"), 1568)


@pytest.mark.long  # simulates
def test_a_single_token_among_1568_is_found(films):
    y, movies = films.y, films.data.movies
    tokens = films.data.read("tokens", stream=True)
    train = movies != "film3"
    model = AttentiveProbe(max_epochs=12).fit(tokens[train], y[train], groups=movies[train])
    np.testing.assert_array_equal(model.predict(tokens[~train]), y[~train])
    positive = ~train & (y == 1)
    heaviest_tokens = model.weights(tokens[positive]).argmax(axis=1)  # [N, M]
    hits = heaviest_tokens == films.telling_token[positive, None]
    assert hits.mean(axis=0).max() == 1  # of the query that finds it


@pytest.mark.long
@pytest.mark.nightly
def test_a_probe_on_tokens_is_evaluated_kept_and_applied(tmp_path, monkeypatch):
    store, data, _, _ = films_of(tmp_path, 200)
    run = evaluate(data, ["attentive_tokens"], "hn_s")
    auc = run.metrics[run.metrics["metric"] == "auc"].set_index("model")["pooled"]
    assert auc["attentive_tokens"] >= 0.95
    assert auc["linear"] <= 0.8
    (path,) = save_models(run, data, ["attentive_tokens"], tmp_path).values()
    model = load_model(path)
    scores = model.estimator.decision_function(store["toy"].tokens())
    monkeypatch.setattr(reading, "BYTES_OF_TOKENS", 200 * 16 * 2 * 7)  # seven clips at a time
    predicted = predict(model, store).table.set_index("clip_id")["logit"]
    np.testing.assert_array_equal(predicted.loc[list(store["toy"].clip_ids)], scores)


def test_clips_read_from_a_store_as_needed_give_the_bytes_of_an_array(films, monkeypatch):
    sizes_read = []
    read = StoredClips.__array__

    def counted(clips, *args, **kwargs):
        sizes_read.append(len(clips))
        return read(clips, *args, **kwargs)

    monkeypatch.setattr(StoredClips, "__array__", counted)
    stored = films.data.read("tokens", stream=True)
    array = films.store["toy"].tokens()
    movies = films.data.movies
    streamed = AttentiveProbe(max_epochs=2).fit(stored, films.y, groups=movies)
    assert max(sizes_read) == 1  # a clip has a block of tokens, and no more is read at a time
    in_memory = AttentiveProbe(max_epochs=2).fit(array, films.y, groups=movies)
    assert streamed.held_out_.scores.tobytes() == in_memory.held_out_.scores.tobytes()
    for name in ("parameters_", "mean_", "scale_"):
        assert getattr(streamed, name).tobytes() == getattr(in_memory, name).tobytes()


# --- what it never sees
# ---------------------------------------------------------------------------
def test_probes_learn_nothing_from_the_clips_that_their_fold_holds_out(clips):
    X, y, folds = clips
    X = X.astype(np.float32)
    # Clips and labels of fold 1 are changed. Moments are against the first token read, which is not of it.
    changed_X = X.copy()
    changed_X[folds == 1] += 7
    changed_y = np.where(folds == 1, 1 - y, y)

    def trained_projection(X, y):
        probes = probes_of(X, y, folds)
        for _ in range(3):
            probes.epoch(np.random.default_rng(0))
        return probes.layers_of(probes.parameters).projection  # [D, 2, J, M]

    before = trained_projection(X, y)
    after = trained_projection(changed_X, changed_y)
    is_same = [np.array_equal(before[:, :, probe], after[:, :, probe]) for probe in range(8)]
    # Two probes each, one a penalty, hold out fold 0, fold 1, fold 2 and nothing.
    assert is_same == [False, False, True, True, False, False, False, False]


def test_penalty_and_epoch_are_those_of_the_lowest_loss_on_held_out_movies():
    X, y, movies, _ = planted_frames(n_movies=6, n_per_movie=30, n_features=8)
    model = AttentiveProbe(max_epochs=12).fit(X, y, groups=movies)
    losses = [candidate.inner_loss for candidate in model.candidates_]
    (chosen,) = [candidate for candidate in model.candidates_ if candidate.chosen]
    assert chosen.inner_loss == min(losses) == model.curve_.validation_loss[model.n_epochs_ - 1]
    assert log_loss(y, model.held_out_.scores) == pytest.approx(chosen.inner_loss, rel=1e-12)
    again = AttentiveProbe(max_epochs=12).fit(X, y, groups=movies)
    assert again.parameters_.tobytes() == model.parameters_.tobytes()


def test_without_movies_nothing_is_chosen():
    X, y, _, _ = planted_frames(n_movies=2, n_per_movie=30, n_features=8)
    model = AttentiveProbe(max_epochs=3, penalty=0.5).fit(X, y)
    assert model.n_epochs_ == 3
    assert not hasattr(model, "candidates_")
    assert np.isnan(model.curve_.validation_loss).all()


def test_what_is_not_finite_is_refused(films):
    tokens = films.data.read("tokens")
    tokens[5, 700, 3] = np.inf
    with pytest.raises(ValueError, match="infin"):
        AttentiveProbe().fit(tokens, films.y)


def test_hours_of_a_probe_on_tokens_are_those_that_were_measured():
    """ViViT's 3,137 tokens of 1,914 clips and 20 movies: 51 ms a clip, fold and epoch."""
    hours = most_cpu_hours(1914, 3137, 768, 20)
    assert hours == pytest.approx(1914 * 20 * 40 * 0.051 / 3600, rel=0.02)


def test_what_takes_hours_is_said_before_it_begins(capsys):
    class DataOfManyTokens:
        reduction = None
        movies = np.arange(20)

        def read(self, what, *, stream):
            assert (what, stream) == ("tokens", True)
            return np.broadcast_to(np.float16(0), (1914, 3137, 768))

    _announce_hours(DataOfManyTokens(), {"pooled", "tokens"})
    assert "--reduce" in capsys.readouterr().err
    _announce_hours(DataOfManyTokens(), {"pooled"})
    assert capsys.readouterr().err == ""
