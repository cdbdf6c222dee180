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
from tests.planted_modalities import planted as planted_corpus


@pytest.fixture(scope="module")
def corpus_of_four_films(tmp_path_factory):
    """Four films whose level is planted in the stores `seen` and `heard`, and a store of `noise`.

    The store of what is heard lacks every fifth clip.
    """
    return planted_corpus(tmp_path_factory.mktemp("fusion"), n_films=4)


def load(corpus, *names):
    """Load the stores of these names side by side, in this order."""
    manifest, stores = corpus
    return om.load_dataset([stores[name] for name in names], manifest)


def auc_by_model(run):
    """Return the mean AUC over films of each model."""
    rows = run.metrics[run.metrics["metric"] == "auc"]
    return dict(zip(rows["model"], rows["movie_mean"], strict=True))


@pytest.fixture(scope="module")
def evaluate_fusion(corpus_of_four_films):
    """Return a function that evaluates linear probes of stores that are fused in a way."""

    @functools.cache
    def evaluate_fused(how, *names):
        data = load(corpus_of_four_films, *names)
        return om.evaluate(data, om.fused(["linear"], data, how), "en_s")

    return evaluate_fused


def test_two_stores_are_loaded_side_by_side_with_every_clip_once(corpus_of_four_films):
    """What is seen has 6 features, what is heard 4. Every fifth of 160 clips has no sound.

    The columns of a modality are those that it has when it is loaded alone.
    """
    manifest, stores = corpus_of_four_films

    data = load(corpus_of_four_films, "seen", "heard")

    assert data.clip_ids.tolist() == [clip.clip_id for clip in manifest]
    seen, heard = data.modalities
    assert (seen.name, heard.name) == ("seen", "heard")
    assert (seen.start, seen.stop) == (0, 6)
    assert (heard.start, heard.stop) == (6, 10)
    assert (seen.missing, heard.missing) == (0, 160 // 5)
    for modality in (seen, heard):
        alone = om.load_dataset(stores[modality.name], manifest)
        rows = data.rows(alone.clip_ids.tolist())
        assert np.array_equal(data.X[rows, modality.start : modality.stop], alone.X)


def test_clips_that_a_store_lacks_have_nan_in_its_columns(corpus_of_four_films):
    """What is seen has 6 features of all 160 clips, what is heard 4 of all but every fifth clip."""
    data = load(corpus_of_four_films, "seen", "heard")

    seen = data.X[:, 0:6]
    heard = data.X[:, 6:10]
    is_unheard = np.isnan(heard).all(axis=1)
    assert is_unheard.sum() == 160 // 5
    assert np.isfinite(seen).all()


@pytest.mark.nightly
@pytest.mark.long
@pytest.mark.parametrize("how", WAYS_TO_FUSE)
def test_seen_and_heard_together_tell_the_level_better_than_either_alone(evaluate_fusion, how):
    """The level is planted in both modalities.

    Fusing by the maximum may cost a little: the largest of two scores has the larger of two noises.
    """
    aucs = auc_by_model(evaluate_fusion(how, "seen", "heard"))

    best_alone = max(aucs["linear:seen"], aucs["linear:heard"])
    assert best_alone > 0.8
    least = best_alone - 0.05 if how == "max" else best_alone + 0.01
    assert aucs["linear"] > least


@pytest.mark.long
@pytest.mark.parametrize("how", ["concat", "late"])
def test_noise_beside_a_signal_gains_nothing_and_loses_little(evaluate_fusion, how):
    """`linear` is the model of both modalities, `linear:seen` and `linear:noise` are those of one.

    By chance the AUC is .5.
    """
    run = evaluate_fusion(how, "seen", "noise")

    aucs = auc_by_model(run)
    assert abs(aucs["linear"] - aucs["linear:seen"]) < 0.03
    assert 0.35 < aucs["linear:noise"] < 0.65


@pytest.mark.long
@pytest.mark.parametrize("how", ["concat", "late"])
def test_a_run_of_fused_models_records_the_store_of_each_modality(corpus_of_four_films, evaluate_fusion, how):
    """A model of the stores `seen` and `noise` was evaluated; both have features of every clip."""
    _manifest, stores = corpus_of_four_films

    run = evaluate_fusion(how, "seen", "noise")

    seen, noise = run.record["modalities"]
    assert seen["name"] == "seen"
    assert seen["store"] == stores["seen"].fingerprint
    assert seen["missing"] == 0
    assert noise["name"] == "noise"
    assert noise["store"] == stores["noise"].fingerprint


@pytest.mark.nightly
@pytest.mark.long  # simulates
def test_of_three_modalities_each_is_evaluated_alone_and_left_out_in_turn(evaluate_fusion):
    """`linear` is the model of all, `linear:-noise` that without the store of noise."""
    aucs = auc_by_model(evaluate_fusion("late", "seen", "heard", "noise"))

    names = {name for name in aucs if name.startswith("linear")}
    of_one = {"linear:seen", "linear:heard", "linear:noise"}
    without_one = {"linear:-seen", "linear:-heard", "linear:-noise"}
    assert names == {"linear"} | of_one | without_one
    assert aucs["linear:-noise"] > aucs["linear:-heard"] > aucs["linear:noise"]


def test_a_clip_without_sound_is_scored_by_the_visual_probe(corpus_of_four_films):
    """What is seen has features 0 to 5, what is heard 6 to 9, which a fifth of the clips lacks.

    A linear probe of what is seen is fitted beside.
    """
    data = load(corpus_of_four_films, "seen", "heard")
    is_s = data.levels == "S"
    seen = data.X[:, 0:6]
    is_unheard = np.isnan(data.X[:, 6])
    visual_probe = om.GroupedSelection(om.linear_probe(), PENALTIES)
    visual_probe.fit(seen, is_s, groups=data.movies)

    spec_of_both, *_of_each = om.fused(["linear"], data, "late")
    model = spec_of_both.make(0).fit(data.X, is_s, groups=data.movies)
    scores = model.decision_function(data.X)

    assert np.array_equal(scores[is_unheard], visual_probe.decision_function(seen[is_unheard]))


@pytest.mark.parametrize("how", WAYS_TO_FUSE)
def test_the_model_of_one_modality_gives_the_mean_score_to_clips_that_lack_it(corpus_of_four_films, how):
    """A model reads what is heard alone, features 6 to 9, which are NaN in a fifth of the clips.

    These clips must get the mean score of the others. As fewer clips are S than not, most scores are below 0:
    a score of 0 would make a clip look like S, of which nothing is known.
    """
    data = load(corpus_of_four_films, "seen", "heard")
    first_heard_feature = 6
    is_unheard = np.isnan(data.X[:, first_heard_feature])
    _spec_of_both, _spec_of_seen, spec_of_heard = om.fused(["linear"], data, how)

    model = spec_of_heard.make(0).fit(data.X, data.levels == "S", groups=data.movies)
    scores = model.decision_function(data.X)

    mean_of_heard = scores[~is_unheard].mean()
    assert scores[is_unheard] == pytest.approx(mean_of_heard, abs=1e-6)


@pytest.mark.parametrize("n_films", [1, 2])
def test_a_modality_of_too_few_films_is_refused(corpus_of_four_films, n_films):
    """Of four films, all are seen, and the first one or two are heard (features 6 to 9)."""
    data = load(corpus_of_four_films, "seen", "heard")
    heard_films = np.unique(data.movies)[:n_films]
    X = data.X.copy()
    X[~np.isin(data.movies, heard_films), 6:10] = np.nan
    data_of_few_heard_films = replace(data, X=X)
    specs = om.fused(["linear"], data_of_few_heard_films, "late")

    with pytest.raises(ObygazeError, match="modalit"):
        om.evaluate(data_of_few_heard_films, specs, "en_s")


@pytest.mark.long
def test_the_telling_modality_is_penalised_less_than_noise(tmp_path):
    """The level is planted in what is heard; the other modality is noise. Features are concatenated.

    Each modality has a C of its own, the inverse of its penalty, that inner folds choose: that of what is
    heard must be larger. Only clips that have both modalities are trained on, so that one model is fitted.
    """
    corpus = planted_corpus(tmp_path, weights=(0.0, 2.0))
    data = load(corpus, "noise", "heard")
    has_both = np.isfinite(data.X).all(axis=1)
    is_s = data.levels[has_both] == "S"
    spec_of_both, *_ = om.fused(["linear"], data, "concat")

    model = spec_of_both.make(0).fit(data.X[has_both], is_s, groups=data.movies[has_both])

    noise_and_heard = (0, 1)  # the modalities of the clips that the model is for
    (estimator,) = model.models_[noise_and_heard].models
    C_of_noise, C_of_heard = estimator.relative_  # relative to a common C
    assert C_of_heard > C_of_noise


@pytest.mark.long
def test_weights_of_modalities_do_not_depend_on_the_held_out_film(corpus_of_four_films, evaluate_fusion):
    """The features of film f0 are changed.

    The weights chosen for testing f0 stay the same; those for f1, which learn from f0, change.
    """
    data = load(corpus_of_four_films, "seen", "heard")
    changed_X = data.X.copy()
    changed_X[data.movies == "f0"] *= -3
    changed_data = replace(data, X=changed_X)

    run = evaluate_fusion("late", "seen", "heard")
    run_of_changed = om.evaluate(changed_data, om.fused(["linear"], changed_data, "late"), "en_s")

    def weights_of_modalities(run, film):
        is_of_film = (run.selection["model"] == "linear") & (run.selection["movie"] == film)
        return run.selection.loc[is_of_film, "candidate"].tolist()

    assert weights_of_modalities(run_of_changed, "f0") == weights_of_modalities(run, "f0")
    assert weights_of_modalities(run_of_changed, "f1") != weights_of_modalities(run, "f1")


def test_frames_that_the_stores_do_not_have_are_refused(corpus_of_four_films):
    """The two stores have one vector a clip."""
    data = load(corpus_of_four_films, "seen", "heard")

    with pytest.raises(DatasetError):
        data.read("frames")


def test_a_model_of_frames_is_not_fused(corpus_of_four_films):
    """Attention sums frames; models of one vector a clip are fused."""
    data = load(corpus_of_four_films, "seen", "heard")

    with pytest.raises(ModelError):
        om.fused(["attention"], data, "late")


def test_one_modality_alone_is_not_fused(corpus_of_four_films):
    """The dataset is of the store `seen` alone."""
    data = load(corpus_of_four_films, "seen")

    with pytest.raises(ModelError):
        om.fused(["linear"], data, "late")


def test_a_store_that_is_given_twice_is_refused(corpus_of_four_films):
    """Two modalities must be of two stores, or one would count twice."""
    manifest, stores = corpus_of_four_films

    with pytest.raises(DatasetError):
        om.load_dataset([stores["seen"], stores["seen"]], manifest)


def test_a_modality_that_no_clip_has_is_refused():
    """Its two columns are NaN, which stands for absent, in all four clips."""
    absent = np.full((4, 2), np.nan)
    classifier = FusedClassifier(om.linear_probe(), columns=(slice(0, 2),))

    with pytest.raises(ValueError, match="modality"):
        classifier.fit(absent, [0, 1, 0, 1], ["a", "b", "c", "d"])
