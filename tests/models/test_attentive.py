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
from obygaze_models.models.attentive_training import (
    QUERY_PENALTY,
    ProbesInTraining,
    TrainingSettings,
    _TokenSums,
)
from obygaze_models.models.choices import log_loss
from obygaze_models.prediction import reading
from obygaze_models.prediction.final import save_models
from obygaze_models.prediction.predict import predict
from obygaze_models.prediction.saved_model import load_model
from tests.planted_frames import planted_frames, seal_films

PENALTIES = (1.0, 0.1)


def untrained_probes(X, y, folds):
    """Make the probes of each fold and penalty, 4 x 2 of them, before any training.

    Two probes, one of each penalty, learn from all clips but those of fold 0; then two from all but those of
    fold 1, two from all but those of fold 2, and the last two from all clips.
    """
    settings = TrainingSettings(n_queries=6, batch_size=32, learning_rate=1e-3, seed=0)
    return ProbesInTraining(X, y, folds, PENALTIES, settings)


@pytest.fixture
def clips():
    """Frames [12, 7, 5] of large mean, of which some are absent, labels, and folds 0 to 2."""
    rng = np.random.default_rng(3)
    X = 20 + rng.normal(size=(12, 7, 5)) * np.arange(1, 6)
    X[2, 4:] = np.nan
    X[5, 1:] = np.nan
    return X, np.arange(12) % 2, np.arange(12) // 4


# --- arithmetic
# ---------------------------------------------------------------------------
def loss_clip_by_clip(probes, X, y, rows):
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


@pytest.mark.long
def test_the_gradient_equals_finite_differences_of_the_loss(clips):
    """The loss is computed clip by clip, with each parameter a little above and below its value."""
    X, y, folds = clips
    rows_of_batch = np.array([0, 2, 5, 7, 8, 11])
    probes = untrained_probes(X, y, folds)
    probes.parameters += np.random.default_rng(0).normal(size=probes.parameters.size) * 0.3

    probes.backward(rows_of_batch)

    step = 1e-6
    expected = np.empty_like(probes.gradient)
    for index, parameter in enumerate(probes.parameters.copy()):
        probes.parameters[index] = parameter + step
        loss_above = loss_clip_by_clip(probes, X, y, rows_of_batch)
        probes.parameters[index] = parameter - step
        loss_below = loss_clip_by_clip(probes, X, y, rows_of_batch)
        probes.parameters[index] = parameter
        expected[index] = (loss_above - loss_below) / (2 * step)
    np.testing.assert_allclose(probes.gradient, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("held_out_fold", [0, 1, 2, None])
def test_tokens_are_standardised_by_the_clips_a_probe_learns_from(clips, held_out_fold):
    """Clips held out for a probe must not influence it, not even by their mean.

    Groups 0 to 2 of probes hold out the fold of their number, group 3 nothing. A token has five numbers.
    """
    X, y, folds = clips
    if held_out_fold is None:
        group = 3
        training_clips = X
    else:
        group = held_out_fold
        training_clips = X[folds != held_out_fold]

    probes = untrained_probes(X.astype(np.float32), y, folds)

    tokens = training_clips.reshape(-1, 5)
    np.testing.assert_allclose(probes.mean[group], np.nanmean(tokens, axis=0), rtol=1e-5)
    np.testing.assert_allclose(probes.scale[group], np.nanstd(tokens, axis=0), rtol=1e-4)


def test_a_fitted_model_has_the_scores_it_had_in_training(clips):
    """In training, probes of all folds and penalties are computed together, on raw frames of 12 clips.

    The last of them has the last penalty and learns from all clips. Its random parameters, and the mean and
    scale of its frames, are put into a model, which computes scores of standardised frames on its own.
    """
    X, y, folds = clips
    probes = untrained_probes(X, y, folds)
    probes.parameters += np.random.default_rng(0).normal(size=probes.parameters.size) * 0.3
    all_clips = np.arange(len(y))
    last_probe = -1
    logits_in_training = probes.backward(all_clips)[:, last_probe]

    last_penalty = len(PENALTIES) - 1
    last_group = -1  # of all clips
    model = AttentiveProbe(n_queries=6)
    model.parameters_ = probes.parameters_on_all_clips(last_penalty)
    model.mean_ = probes.mean[last_group]
    model.scale_ = probes.scale[last_group]
    model.n_features_in_ = X.shape[2]
    model.classes_ = np.array([0, 1])

    np.testing.assert_allclose(model.decision_function(X), logits_in_training, rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expit(logits_in_training), rtol=1e-9)


# --- what it finds
# ---------------------------------------------------------------------------
@pytest.mark.long  # simulates
@pytest.mark.nightly
def test_one_query_finds_an_event_that_the_mean_does_not_show():
    """Three frames of a positive clip are moved so that the mean over frames stays the same.

    A query gives a weight to each frame. In new movies, the frame with the largest weight of one query is
    among the three moved ones in 9 of 10 positive clips.
    """
    clips = planted_frames(n_per_movie=60)
    is_new = clips.movies >= 10

    model = AttentiveProbe().fit(clips.X[~is_new], clips.y[~is_new], groups=clips.movies[~is_new])

    assert average_precision_score(clips.y[is_new], model.decision_function(clips.X[is_new])) >= 0.95
    is_positive = is_new & (clips.y == 1)
    heaviest_frames = model.weights(clips.X[is_positive]).argmax(axis=1)  # [clips, queries]
    is_found = np.take_along_axis(clips.is_event[is_positive], heaviest_frames, axis=1)
    share_found_by_query = is_found.mean(axis=0)
    assert share_found_by_query.max() >= 0.9


class FilmsWithTellingTokens(NamedTuple):
    """A store of 96 clips of four films; of a positive clip, one token is moved far along one direction."""

    store: Store
    data: Dataset
    telling_token: np.ndarray  # [N]: index of the moved token
    y: np.ndarray


TOKEN_WIDTH = 16


def make_films(folder, n_tokens):
    """Make four films of 24 clips of `n_tokens` tokens; of a positive clip, one token tells the label.

    Tokens are noise; of each positive clip one, at a random place, is moved by 10 along one direction. Two
    clips in a row are negative, two positive, and so on.
    """
    rng = np.random.default_rng(5)
    n_clips = 96
    film_of_clip = np.arange(n_clips) // 24
    y = np.arange(n_clips) // 2 % 2
    telling_token = rng.integers(n_tokens, size=n_clips)
    tokens = rng.normal(size=(n_clips, n_tokens, TOKEN_WIDTH))
    axis = rng.normal(size=TOKEN_WIDTH)
    tokens[np.arange(n_clips), telling_token] += 10 * y[:, None] * axis / np.linalg.norm(axis)
    tokens = tokens.astype(np.float16)
    arrays = {"pooled": tokens.mean(axis=1).astype(np.float32), "tokens": tokens}
    store, manifest = seal_films(folder, arrays, film_of_clip, y, n_frames=8)
    return FilmsWithTellingTokens(store, load_dataset(store, manifest), telling_token, y)


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """Clips of 1568 tokens, of which one tells the label."""
    return make_films(tmp_path_factory.mktemp("tokens"), n_tokens=1568)


@pytest.mark.long  # simulates
@pytest.mark.nightly
def test_one_query_finds_the_single_telling_token_among_1568(films):
    """One token of a positive clip is moved far; a query gives a weight to each token.

    In film3, which is not trained on, one query has its largest weight at this token in every positive clip.
    """
    y, movies = films.y, films.data.movies
    tokens = films.data.read("tokens", stream=True)
    is_new = movies == "film3"

    model = AttentiveProbe(max_epochs=12).fit(tokens[~is_new], y[~is_new], groups=movies[~is_new])

    np.testing.assert_array_equal(model.predict(tokens[is_new]), y[is_new])
    is_positive = is_new & (y == 1)
    heaviest_tokens = model.weights(tokens[is_positive]).argmax(axis=1)  # [clips, queries]
    is_found = heaviest_tokens == films.telling_token[is_positive, None]
    share_found_by_query = is_found.mean(axis=0)
    assert share_found_by_query.max() == 1


@pytest.mark.long
@pytest.mark.nightly
def test_in_an_evaluation_tokens_tell_what_their_mean_does_not(tmp_path):
    """One of 200 tokens tells the label. The linear probe, which stands beside, reads their mean."""
    films = make_films(tmp_path, n_tokens=200)

    run = evaluate(films.data, ["attentive_tokens"], "hn_s")

    auc = run.metrics[run.metrics["metric"] == "auc"].set_index("model")["pooled"]
    assert auc["attentive_tokens"] >= 0.95
    assert auc["linear"] <= 0.8


@pytest.mark.long
@pytest.mark.nightly
def test_clips_that_are_scored_in_blocks_have_the_scores_of_all_at_once(tmp_path, monkeypatch):
    """A block is limited to the bytes of seven clips: 200 tokens of 16 numbers of 2 bytes each."""
    films = make_films(tmp_path, n_tokens=200)
    run = evaluate(films.data, ["attentive_tokens"], "hn_s")
    (path,) = save_models(run, films.data, ["attentive_tokens"], tmp_path).values()
    model = load_model(path)
    scores_at_once = model.estimator.decision_function(films.store["toy"].tokens())

    monkeypatch.setattr(reading, "BYTES_OF_TOKENS", 7 * 200 * 16 * 2)
    scores_in_blocks = predict(model, films.store).table.set_index("clip_id")["logit"]

    clip_ids = list(films.store["toy"].clip_ids)
    np.testing.assert_array_equal(scores_in_blocks.loc[clip_ids], scores_at_once)


@pytest.mark.long
def test_a_probe_that_streams_clips_equals_one_trained_in_memory(films, monkeypatch):
    """The tokens of a large store do not fit in memory, so they are read in blocks, here of one clip."""
    sizes_of_blocks = []
    read_block = StoredClips.__array__

    def count_clips_and_read_block(clips, *args, **kwargs):
        sizes_of_blocks.append(len(clips))
        return read_block(clips, *args, **kwargs)

    monkeypatch.setattr(StoredClips, "__array__", count_clips_and_read_block)
    tokens_in_store = films.data.read("tokens", stream=True)
    tokens_in_memory = films.store["toy"].tokens()
    movies = films.data.movies

    streamed = AttentiveProbe(max_epochs=2).fit(tokens_in_store, films.y, groups=movies)
    assert max(sizes_of_blocks) == 1
    in_memory = AttentiveProbe(max_epochs=2).fit(tokens_in_memory, films.y, groups=movies)

    assert streamed.held_out_.scores.tobytes() == in_memory.held_out_.scores.tobytes()
    assert streamed.parameters_.tobytes() == in_memory.parameters_.tobytes()
    assert streamed.mean_.tobytes() == in_memory.mean_.tobytes()
    assert streamed.scale_.tobytes() == in_memory.scale_.tobytes()


# --- what it never sees
# ---------------------------------------------------------------------------
def projections_of_trained_probes(X, y, folds):
    """Train the 4 x 2 probes for three epochs; return the projection of each, a matrix that it learnt."""
    probes = untrained_probes(X, y, folds)
    for _ in range(3):
        probes.epoch(np.random.default_rng(0))
    projection = probes.layers_of(probes.parameters).projection  # [D, 2, 4 x 2, M]
    return np.moveaxis(projection, 2, 0)


def test_probes_learn_nothing_from_the_clips_that_their_fold_holds_out(clips):
    """Eight probes are trained together: two (of two penalties) without fold 0, two without 1, two without 2.

    The last two learn from all clips. Where clips and labels of fold 1 are changed, only the probes without
    fold 1 learn the same.
    """
    X, y, folds = clips
    X = X.astype(np.float32)
    changed_X = X.copy()
    changed_X[folds == 1] += 7
    changed_y = np.where(folds == 1, 1 - y, y)

    before = projections_of_trained_probes(X, y, folds)
    after = projections_of_trained_probes(changed_X, changed_y, folds)

    is_unchanged = []
    for projection_before, projection_after in zip(before, after, strict=True):
        is_unchanged.append(np.array_equal(projection_before, projection_after))
    without_fold_0, without_fold_1 = is_unchanged[0:2], is_unchanged[2:4]
    without_fold_2, of_all_clips = is_unchanged[4:6], is_unchanged[6:8]
    assert without_fold_1 == [True, True]
    assert without_fold_0 == without_fold_2 == of_all_clips == [False, False]


def test_the_penalty_and_the_number_of_epochs_have_the_lowest_loss_on_held_out_movies():
    """Each candidate is a penalty, with the loss of the best of its epochs."""
    clips = planted_frames(n_movies=6, n_per_movie=30, n_features=8)

    model = AttentiveProbe(max_epochs=12).fit(clips.X, clips.y, groups=clips.movies)

    (chosen,) = [candidate for candidate in model.candidates_ if candidate.chosen]
    assert chosen.inner_loss == min(candidate.inner_loss for candidate in model.candidates_)
    loss_after_chosen_epochs = model.curve_.validation_loss[model.n_epochs_ - 1]
    assert chosen.inner_loss == loss_after_chosen_epochs
    assert log_loss(clips.y, model.held_out_.scores) == pytest.approx(chosen.inner_loss, rel=1e-12)


def test_without_movies_all_epochs_are_run_with_the_given_penalty():
    """Nothing can be held out, so nothing is chosen and there is no loss of validation."""
    clips = planted_frames(n_movies=2, n_per_movie=30, n_features=8)

    model = AttentiveProbe(max_epochs=3, penalty=0.5).fit(clips.X, clips.y)

    assert model.n_epochs_ == 3
    assert not hasattr(model, "candidates_")
    assert np.isnan(model.curve_.validation_loss).all()


def test_a_token_that_is_infinite_is_refused(clips):
    """NaN stands for an absent token; an infinite number is an error."""
    X, y, _ = clips
    X[5, 0, 3] = np.inf

    with pytest.raises(ValueError, match="infin"):
        AttentiveProbe().fit(X, y)


def test_the_estimated_hours_of_a_probe_on_tokens_are_near_the_measured_ones():
    """Of ViViT's 3,137 tokens of 768 numbers, a clip took 51 ms in each epoch of each fold."""
    n_clips = 1914
    n_folds = 20
    n_epochs = AttentiveProbe().max_epochs
    measured_hours = n_clips * n_folds * n_epochs * 0.051 / 3600

    estimated_hours = most_cpu_hours(n_clips, n_vectors=3137, n_features=768, n_folds=n_folds)

    assert estimated_hours == pytest.approx(measured_hours, rel=0.02)


class DataOfManyTokens:
    """A dataset of 1914 clips of 20 movies; its array takes no memory, as all numbers are the same one."""

    reduction = None
    movies = np.arange(20)

    def read(self, what, *, stream):
        assert (what, stream) == ("tokens", True)
        return np.broadcast_to(np.float16(0), (1914, 3137, 768))


def test_before_a_model_of_tokens_takes_hours_a_note_names_the_option_that_makes_tokens_smaller(capsys):
    """A model of tokens is to be trained on 1914 clips of 3,137 tokens, beside one of pooled features.

    That takes hours, which the option `--reduce` makes fewer. The note is printed before the training begins.
    """
    arrays_that_models_read = {"pooled", "tokens"}

    _announce_hours(DataOfManyTokens(), arrays_that_models_read)

    assert "--reduce" in capsys.readouterr().err


def test_a_model_of_pooled_vectors_is_not_announced(capsys):
    """It takes seconds, however many tokens the store has."""
    _announce_hours(DataOfManyTokens(), {"pooled"})

    assert capsys.readouterr().err == ""


def test_the_scatter_of_tokens_is_around_the_mean_of_their_own_clip():
    """Tokens of (0, 0) and (2, 4) lie 1 and 2 to each side of their mean: the products add up to 2, 4 and 8.

    A second clip with the same tokens moved far away adds the same.
    """
    tokens = np.array([[0.0, 0.0], [2.0, 4.0]])
    sums = _TokenSums(n_folds=1, origin=np.zeros(2))

    sums.add(tokens, fold=0, label=1)
    sums.add(tokens + 1000, fold=0, label=1)

    assert sums.scatters[0, 1].tolist() == [[4.0, 8.0], [8.0, 16.0]]
    assert sums.counts.tolist() == [[0, 4]]
