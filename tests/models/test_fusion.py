"""Fused models find what is planted in one modality or in both, and mask what clips lack."""

import functools
from dataclasses import replace

import numpy as np
import pytest

import obygaze_models as om
from obygaze_features.errors import ObygazeError
from obygaze_models.errors import DatasetError, ModelError
from obygaze_models.models.fusion import FusedClassifier
from obygaze_models.models.joined_model import HOW
from obygaze_models.models.linear import PENALTIES
from tests.planted_modalities import planted


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("fusion"), n_films=4)


def load(corpus, *names):
    manifest, stores = corpus
    return om.load_dataset([stores[name] for name in names], manifest)


def auc(run):
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
    assert [(each.name, each.start, each.stop, each.missing) for each in data.modalities] == [
        ("seen", 0, 6, 0),
        ("heard", 6, 10, 32),
    ]
    for name, start, stop in (("seen", 0, 6), ("heard", 6, 10)):
        alone = om.load_dataset(stores[name], manifest)
        assert np.array_equal(data.X[data.rows(alone.clip_ids.tolist()), start:stop], alone.X)
    assert np.isnan(data.X[:, 6:]).all(axis=1).sum() == 32
    assert np.isfinite(data.X[:, :6]).all()


@pytest.mark.long
@pytest.mark.parametrize("how", HOW)
def test_both_are_worth_more_than_each(evaluated, how):
    found = auc(evaluated(how, "seen", "heard"))
    each = max(found["linear:seen"], found["linear:heard"])
    assert each > 0.8
    assert found["linear"] > (each - 0.05 if how == "max" else each + 0.01)  # the larger of two noises


@pytest.mark.parametrize("how", ["concat", "late"])
def test_noise_beside_a_signal_gains_nothing_and_loses_little(evaluated, how):
    found = auc(evaluated(how, "seen", "noise"))
    assert abs(found["linear"] - found["linear:seen"]) < 0.03
    assert 0.35 < found["linear:noise"] < 0.65


@pytest.mark.long  # simulates
def test_of_three_each_is_left_out_in_turn(evaluated):
    found = auc(evaluated("late", "seen", "heard", "noise"))
    assert {name for name in found if name.startswith("linear")} == {
        *("linear", "linear:seen", "linear:heard", "linear:noise"),
        *("linear:-seen", "linear:-heard", "linear:-noise"),
    }
    assert found["linear:-noise"] > found["linear:-heard"] > found["linear:noise"]


def test_a_clip_without_a_modality_is_scored_by_a_model_of_the_others(corpus):
    data = load(corpus, "seen", "heard")
    (spec, *_) = om.fused(["linear"], data, "late")
    model = spec.make(0).fit(data.X, data.levels == "S", groups=data.movies)
    lacking = np.isnan(data.X[:, 6])
    scores = model.decision_function(data.X)
    other = data.X.copy()
    other[lacking, 6:] = np.nan
    assert np.array_equal(model.decision_function(other), scores)
    alone = om.linear_probe()
    by_seen = om.GroupedSelection(alone, PENALTIES)
    by_seen.fit(data.X[:, :6], data.levels == "S", groups=data.movies)
    assert np.array_equal(scores[lacking], by_seen.decision_function(data.X[lacking, :6]))


@pytest.mark.parametrize("how", HOW)
def test_a_clip_that_a_model_has_nothing_of_is_scored_as_the_mean_clip(corpus, how):
    """At 0 it would be called more surely positive than most, and lacking would tell the label."""
    data = load(corpus, "seen", "heard")
    (_, _, spec) = om.fused(["linear"], data, how)
    model = spec.make(0).fit(data.X, data.levels == "S", groups=data.movies)
    scores, lacking = model.decision_function(data.X), np.isnan(data.X[:, 6])
    assert scores[lacking] == pytest.approx(scores[~lacking].mean(), abs=1e-6)


@pytest.mark.parametrize("n_films", [1, 2])
def test_a_modality_of_too_few_films_is_said(corpus, n_films):
    data = load(corpus, "seen", "heard")
    X = data.X.copy()
    X[~np.isin(data.movies, np.unique(data.movies)[:n_films]), 6:] = np.nan
    few = replace(data, X=X)
    with pytest.raises(ObygazeError, match="modalit"):
        om.evaluate(few, om.fused(["linear"], few, "late"), "en_s")


def test_concatenation_weakens_the_penalty_of_the_modality_that_matters(tmp_path):
    corpus = planted(tmp_path, weights=(0.0, 2.0))
    data = load(corpus, "noise", "heard")
    whole = np.isfinite(data.X).all(axis=1)
    (spec, *_) = om.fused(["linear"], data, "concat")
    model = spec.make(0).fit(data.X[whole], data.levels[whole] == "S", groups=data.movies[whole])
    assert model.models_[0, 1].models[0].relative_ == (1.0, 10.0)


def test_a_fold_never_sees_the_movie_it_tests(corpus):
    data = load(corpus, "seen", "heard")
    changed = data.X.copy()
    held_out = data.movies == "f0"
    changed[held_out] *= -3
    specs = om.fused(["linear"], data, "late")
    fit = {}
    for X in (data.X, changed):
        rows = ~held_out
        fit[X is changed] = specs[0].make(0).fit(X[rows], data.levels[rows] == "S", groups=data.movies[rows])
    assert np.array_equal(fit[0].decision_function(data.X), fit[1].decision_function(data.X))


def test_the_run_names_its_modalities_and_their_stores(corpus, evaluated):
    _, stores = corpus
    record = evaluated("mean", "seen", "heard").record
    assert [(each["name"], each["store"], each["missing"]) for each in record["modalities"]] == [
        ("seen", stores["seen"].fingerprint, 0),
        ("heard", stores["heard"].fingerprint, 32),
    ]


def test_what_cannot_be_fused_is_refused(corpus):
    manifest, stores = corpus
    data = load(corpus, "seen", "heard")
    with pytest.raises(DatasetError):
        om.load_dataset([stores["seen"], stores["seen"]], manifest)
    with pytest.raises(DatasetError):
        data.read("frames")
    with pytest.raises(ModelError):
        om.fused(["attention"], data, "late")
    with pytest.raises(ModelError):
        om.fused(["linear"], om.load_dataset(stores["seen"], manifest), "late")
    with pytest.raises(ValueError, match="modality"):
        FusedClassifier(om.linear_probe(), (slice(0, 2),)).fit(
            np.full((4, 2), np.nan), [0, 1, 0, 1], list("abcd")
        )
