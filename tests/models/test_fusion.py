"""Fused models find what is planted_corpus in one modality or in both, and mask what clips lack."""

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
from tests.planted_modalities import PER_FILM, WIDTHS
from tests.planted_modalities import planted as planted_corpus

N_FILMS = 4
N_UNHEARD = N_FILMS * PER_FILM // 5
"""Clips, every fifth, that the store of what is heard lacks."""
FIRST_HEARD = WIDTHS["seen"]
"""First column of what is heard, where it stands after what is seen."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Four films whose level is planted in the stores `seen` and `heard`, and a store of `noise`."""
    return planted_corpus(tmp_path_factory.mktemp("fusion"), n_films=N_FILMS)


def load(corpus, *names):
    """Load the stores of these names side by side, in this order."""
    manifest, stores = corpus
    return om.load_dataset([stores[name] for name in names], manifest)


def auc_by_model(run):
    """Return the mean AUC over films of each model."""
    rows = run.metrics[run.metrics["metric"] == "auc"]
    return dict(zip(rows["model"], rows["movie_mean"], strict=True))


@pytest.fixture(scope="module")
def evaluated(corpus):
    """Return a function that evaluates linear probes of stores that are fused in a way."""

    @functools.cache
    def evaluate_fused(how, *names):
        data = load(corpus, *names)
        return om.evaluate(data, om.fused(["linear"], data, how), "en_s")

    return evaluate_fused


def test_a_dataset_of_stores_has_every_clip_once_and_nan_where_one_is_missing(corpus):
    manifest, stores = corpus
    data = load(corpus, "seen", "heard")
    assert data.clip_ids.tolist() == [clip.clip_id for clip in manifest]
    seen, heard = data.modalities
    assert (seen.name, seen.start, seen.stop, seen.missing) == ("seen", 0, 6, 0)
    assert (heard.name, heard.start, heard.stop, heard.missing) == ("heard", 6, 10, N_UNHEARD)
    for modality in (seen, heard):
        alone = om.load_dataset(stores[modality.name], manifest)
        rows = data.rows(alone.clip_ids.tolist())
        assert np.array_equal(data.X[rows, modality.start : modality.stop], alone.X)

    assert np.isnan(data.X[:, FIRST_HEARD:]).all(axis=1).sum() == N_UNHEARD
    assert np.isfinite(data.X[:, :FIRST_HEARD]).all()


@pytest.mark.nightly
@pytest.mark.long
@pytest.mark.parametrize("how", WAYS_TO_FUSE)
def test_seen_and_heard_together_tell_the_level_better_than_either_alone(evaluated, how):
    aucs = auc_by_model(evaluated(how, "seen", "heard"))
    best_alone = max(aucs["linear:seen"], aucs["linear:heard"])
    assert best_alone > 0.8
    if how == "max":
        # The largest of two scores has the larger of two noises: fusing may cost a little.
        assert aucs["linear"] > best_alone - 0.05
    else:
        assert aucs["linear"] > best_alone + 0.01


@pytest.mark.long
@pytest.mark.parametrize("how", ["concat", "late"])
def test_noise_beside_a_signal_gains_nothing_and_loses_little(corpus, evaluated, how):
    _, stores = corpus
    run = evaluated(how, "seen", "noise")
    aucs = auc_by_model(run)
    assert abs(aucs["linear"] - aucs["linear:seen"]) < 0.03
    assert 0.35 < aucs["linear:noise"] < 0.65
    seen, noise = run.record["modalities"]
    assert (seen["name"], seen["store"], seen["missing"]) == ("seen", stores["seen"].fingerprint, 0)
    assert (noise["name"], noise["store"]) == ("noise", stores["noise"].fingerprint)


@pytest.mark.nightly
@pytest.mark.long  # simulates
def test_of_three_modalities_each_is_evaluated_alone_and_left_out_in_turn(evaluated):
    aucs = auc_by_model(evaluated("late", "seen", "heard", "noise"))
    of_all = "linear"
    of_one = {"linear:seen", "linear:heard", "linear:noise"}
    without_one = {"linear:-seen", "linear:-heard", "linear:-noise"}
    assert {name for name in aucs if name.startswith("linear")} == {of_all} | of_one | without_one
    assert aucs["linear:-noise"] > aucs["linear:-heard"] > aucs["linear:noise"]


def test_a_clip_without_sound_is_scored_by_the_visual_probe(corpus):
    """A fifth of the clips is missing in the store "heard"."""
    data = load(corpus, "seen", "heard")
    (spec, *_) = om.fused(["linear"], data, "late")
    model = spec.make(0).fit(data.X, data.levels == "S", groups=data.movies)
    is_unheard = np.isnan(data.X[:, FIRST_HEARD])
    seen = data.X[:, :FIRST_HEARD]
    probe_of_seen = om.GroupedSelection(om.linear_probe(), PENALTIES)
    probe_of_seen.fit(seen, data.levels == "S", groups=data.movies)
    scores = model.decision_function(data.X)

    assert np.array_equal(scores[is_unheard], probe_of_seen.decision_function(seen[is_unheard]))


@pytest.mark.parametrize("how", WAYS_TO_FUSE)
def test_the_model_of_one_modality_gives_the_mean_score_to_clips_that_lack_it(corpus, how):
    """S clips are the fewer, so that most scores are below 0: a 0 would make such a clip look like S."""
    data = load(corpus, "seen", "heard")
    _of_both, _of_seen, spec_of_heard = om.fused(["linear"], data, how)
    model = spec_of_heard.make(0).fit(data.X, data.levels == "S", groups=data.movies)
    scores = model.decision_function(data.X)
    is_unheard = np.isnan(data.X[:, FIRST_HEARD])
    assert scores[is_unheard] == pytest.approx(scores[~is_unheard].mean(), abs=1e-6)


@pytest.mark.parametrize("n_films", [1, 2])
def test_a_modality_of_too_few_films_is_refused(corpus, n_films):
    data = load(corpus, "seen", "heard")
    X = data.X.copy()
    first_films = np.unique(data.movies)[:n_films]
    X[~np.isin(data.movies, first_films), FIRST_HEARD:] = np.nan
    few = replace(data, X=X)

    with pytest.raises(ObygazeError, match="modalit"):
        om.evaluate(few, om.fused(["linear"], few, "late"), "en_s")


@pytest.mark.long
def test_the_telling_modality_is_penalised_less_than_noise(tmp_path):
    """Features are concatenated, and each modality has a penalty of its own, chosen on inner folds."""
    corpus = planted_corpus(tmp_path, weights=(0.0, 2.0))
    data = load(corpus, "noise", "heard")
    has_both = np.isfinite(data.X).all(axis=1)
    (spec, *_) = om.fused(["linear"], data, "concat")
    y = data.levels[has_both] == "S"
    model = spec.make(0).fit(data.X[has_both], y, groups=data.movies[has_both])
    (estimator,) = model.models_[0, 1].models  # of the clips that have modalities 0 and 1
    strength_of_noise, strength_of_heard = estimator.relative_  # C, the inverse of the penalty

    assert strength_of_heard > strength_of_noise


@pytest.mark.long
def test_weights_of_modalities_do_not_depend_on_the_held_out_film(corpus, evaluated):
    """Film f0 is changed.

    The weights chosen for testing f0 stay the same; those for f1, which learn from f0, change.
    """
    data = load(corpus, "seen", "heard")
    changed = data.X.copy()
    changed[data.movies == "f0"] *= -3
    changed_data = replace(data, X=changed)
    run = evaluated("late", "seen", "heard")
    run_of_changed = om.evaluate(changed_data, om.fused(["linear"], changed_data, "late"), "en_s")

    def candidates(run, film):
        is_of_film = (run.selection["model"] == "linear") & (run.selection["movie"] == film)
        return run.selection.loc[is_of_film, "candidate"].tolist()  # weights of the modalities

    assert candidates(run_of_changed, "f0") == candidates(run, "f0")
    assert candidates(run_of_changed, "f1") != candidates(run, "f1")


def test_fusing_takes_models_of_vectors_and_two_different_stores(corpus):
    manifest, stores = corpus
    data = load(corpus, "seen", "heard")
    with pytest.raises(DatasetError):
        data.read("frames")
    with pytest.raises(ModelError):
        om.fused(["attention"], data, "late")
    with pytest.raises(ModelError):
        om.fused(["linear"], load(corpus, "seen"), "late")
    with pytest.raises(DatasetError):
        om.load_dataset([stores["seen"], stores["seen"]], manifest)


def test_a_modality_that_no_clip_has_is_refused():
    absent = np.full((4, 2), np.nan)
    classifier = FusedClassifier(om.linear_probe(), columns=(slice(0, 2),))
    with pytest.raises(ValueError, match="modality"):
        classifier.fit(absent, [0, 1, 0, 1], ["a", "b", "c", "d"])
