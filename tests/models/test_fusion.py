"""Fused models find what is planted in one modality or in both, and mask what clips lack."""

import functools
from dataclasses import replace

import numpy as np
import pytest

import obygaze_models as om
from obygaze_features.errors import ObygazeError
from obygaze_models.errors import DatasetError, ModelError
from obygaze_models.models.fusion import FusedClassifier
from obygaze_models.models.joined_model import WAYS_TO_FUSE
from obygaze_models.models.linear import PENALTIES
from tests.planted_modalities import planted


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("fusion"), n_films=4)


def load(corpus, *names):
    manifest, stores = corpus
    return om.load_dataset([stores[name] for name in names], manifest)


def auc(run):
    """Return the mean AUC over films of each model."""
    rows = run.metrics[run.metrics["metric"] == "auc"]
    return dict(zip(rows["model"], rows["movie_mean"], strict=True))


@pytest.fixture(scope="module")
def evaluated(corpus):
    """Evaluate stores fused in a way, once."""

    @functools.cache
    def run(how, *names):
        data = load(corpus, *names)
        return om.evaluate(data, om.fused(["linear"], data, how), "en_s")

    return run


def test_a_dataset_of_stores_has_every_clip_once_and_nan_where_one_is_missing(corpus):
    manifest, stores = corpus
    data = load(corpus, "seen", "heard")
    assert data.clip_ids.tolist() == [clip.clip_id for clip in manifest]
    seen, heard = data.modalities
    assert (seen.name, seen.start, seen.stop, seen.missing) == ("seen", 0, 6, 0)
    assert (heard.name, heard.start, heard.stop, heard.missing) == ("heard", 6, 10, 32)
    for modality in (seen, heard):
        alone = om.load_dataset(stores[modality.name], manifest)
        rows = data.rows(alone.clip_ids.tolist())
        assert np.array_equal(data.X[rows, modality.start : modality.stop], alone.X)
    assert np.isnan(data.X[:, 6:]).all(axis=1).sum() == 32
    assert np.isfinite(data.X[:, :6]).all()


@pytest.mark.long
@pytest.mark.parametrize("how", WAYS_TO_FUSE)
def test_both_are_worth_more_than_each(evaluated, how):
    aucs = auc(evaluated(how, "seen", "heard"))
    best_alone = max(aucs["linear:seen"], aucs["linear:heard"])
    assert best_alone > 0.8
    if how == "max":
        # The largest of two scores has the larger of two noises.
        assert aucs["linear"] > best_alone - 0.05
    else:
        assert aucs["linear"] > best_alone + 0.01


@pytest.mark.parametrize("how", ["concat", "late"])
def test_noise_beside_a_signal_gains_nothing_and_loses_little(evaluated, how):
    aucs = auc(evaluated(how, "seen", "noise"))
    assert abs(aucs["linear"] - aucs["linear:seen"]) < 0.03
    assert 0.35 < aucs["linear:noise"] < 0.65


@pytest.mark.long  # simulates
def test_of_three_each_is_left_out_in_turn(evaluated):
    aucs = auc(evaluated("late", "seen", "heard", "noise"))
    assert {name for name in aucs if name.startswith("linear")} == {
        "linear",
        "linear:seen",
        "linear:heard",
        "linear:noise",
        "linear:-seen",
        "linear:-heard",
        "linear:-noise",
    }
    assert aucs["linear:-noise"] > aucs["linear:-heard"] > aucs["linear:noise"]


def test_a_clip_without_a_modality_is_scored_by_a_model_of_the_others(corpus):
    data = load(corpus, "seen", "heard")
    (spec, *_) = om.fused(["linear"], data, "late")
    model = spec.make(0).fit(data.X, data.levels == "S", groups=data.movies)
    is_unheard = np.isnan(data.X[:, 6])
    probe_of_seen = om.GroupedSelection(om.linear_probe(), PENALTIES)
    probe_of_seen.fit(data.X[:, :6], data.levels == "S", groups=data.movies)
    scores = model.decision_function(data.X)
    assert np.array_equal(scores[is_unheard], probe_of_seen.decision_function(data.X[is_unheard, :6]))


@pytest.mark.parametrize("how", WAYS_TO_FUSE)
def test_a_clip_that_a_model_has_nothing_of_is_scored_as_the_mean_clip(corpus, how):
    """At 0 it would be called more surely positive than most, and lacking would tell the label."""
    data = load(corpus, "seen", "heard")
    (_, _, spec) = om.fused(["linear"], data, how)
    model = spec.make(0).fit(data.X, data.levels == "S", groups=data.movies)
    scores = model.decision_function(data.X)
    is_unheard = np.isnan(data.X[:, 6])
    assert scores[is_unheard] == pytest.approx(scores[~is_unheard].mean(), abs=1e-6)


@pytest.mark.parametrize("n_films", [1, 2])
def test_a_modality_of_too_few_films_is_said(corpus, n_films):
    data = load(corpus, "seen", "heard")
    X = data.X.copy()
    first_films = np.unique(data.movies)[:n_films]
    X[~np.isin(data.movies, first_films), 6:] = np.nan
    few = replace(data, X=X)
    with pytest.raises(ObygazeError, match="modalit"):
        om.evaluate(few, om.fused(["linear"], few, "late"), "en_s")


def test_concatenation_weakens_the_penalty_of_the_modality_that_matters(tmp_path):
    corpus = planted(tmp_path, weights=(0.0, 2.0))
    data = load(corpus, "noise", "heard")
    has_both = np.isfinite(data.X).all(axis=1)
    (spec, *_) = om.fused(["linear"], data, "concat")
    y = data.levels[has_both] == "S"
    model = spec.make(0).fit(data.X[has_both], y, groups=data.movies[has_both])
    assert model.models_[0, 1].models[0].relative_ == (1.0, 10.0)


def test_a_fold_never_sees_the_movie_it_tests(corpus):
    data = load(corpus, "seen", "heard")
    held_out = data.movies == "f0"
    changed = data.X.copy()
    changed[held_out] *= -3
    (spec, *_) = om.fused(["linear"], data, "late")

    def scores_without_film(X):
        y = data.levels[~held_out] == "S"
        model = spec.make(0).fit(X[~held_out], y, groups=data.movies[~held_out])
        return model.decision_function(data.X)

    assert np.array_equal(scores_without_film(data.X), scores_without_film(changed))


def test_the_run_names_its_modalities_and_their_stores(corpus, evaluated):
    _, stores = corpus
    record = evaluated("mean", "seen", "heard").record
    seen, heard = record["modalities"]
    assert (seen["name"], seen["store"], seen["missing"]) == ("seen", stores["seen"].fingerprint, 0)
    assert (heard["name"], heard["store"], heard["missing"]) == ("heard", stores["heard"].fingerprint, 32)


def test_a_store_is_not_fused_with_itself(corpus):
    manifest, stores = corpus
    with pytest.raises(DatasetError):
        om.load_dataset([stores["seen"], stores["seen"]], manifest)


def test_fused_features_have_no_frames(corpus):
    data = load(corpus, "seen", "heard")
    with pytest.raises(DatasetError):
        data.read("frames")


@pytest.mark.parametrize(
    ("model", "names"),
    [("attention", ["seen", "heard"]), ("linear", ["seen"])],
    ids=["a model of frames", "features of one store"],
)
def test_what_cannot_be_fused_is_refused(corpus, model, names):
    with pytest.raises(ModelError):
        om.fused([model], load(corpus, *names), "late")


def test_a_modality_that_no_clip_has_is_refused():
    absent = np.full((4, 2), np.nan)
    classifier = FusedClassifier(om.linear_probe(), (slice(0, 2),))
    with pytest.raises(ValueError, match="modality"):
        classifier.fit(absent, [0, 1, 0, 1], ["a", "b", "c", "d"])
