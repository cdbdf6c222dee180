"""A model of several modalities is kept, asks for their stores, and says what each is worth."""

import numpy as np
import pytest

import obygaze_features as of
import obygaze_models as om
from obygaze_features.store.testing import seal_arrays
from obygaze_models.errors import ConceptError, ModelError
from obygaze_models.models.fusion import FusedClassifier
from obygaze_models.models.joined_model import WAYS_TO_FUSE
from obygaze_models.models.linear import PENALTIES
from obygaze_models.prediction.explain import describe, explain
from tests.planted_modalities import planted
from tests.planted_models import load_checking_round_trip

pytestmark = pytest.mark.long  # trains a model of each fusion

N_UNHEARD = 32
"""Clips of the corpus that have no sound: every fifth of 160."""

SEEN = slice(0, 6)
HEARD = slice(6, 10)
"""Columns of the modalities among a dataset's features."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """160 clips of four films, f0 to f3."""
    return planted(tmp_path_factory.mktemp("modalities"), n_films=4)


@pytest.fixture(scope="module")
def model_files(corpus, tmp_path_factory):
    """The file of a model of each way to fuse."""
    data = corpus.dataset()
    files = {}
    for how in WAYS_TO_FUSE:
        specs = om.fused(["linear"], data, how)
        run = om.evaluate(data, specs, "en_s")
        folder = tmp_path_factory.mktemp(how)
        files[how] = om.save_models(run, data, ["linear"], folder, models=specs, licence="CC0-1.0")["linear"]
    return files


@pytest.mark.parametrize("how", WAYS_TO_FUSE)
def test_a_kept_model_scores_as_the_one_that_was_trained(corpus, model_files, how, tmp_path):
    data = corpus.dataset()
    (spec, *_) = om.fused(["linear"], data, how)
    trained = spec.make(0).fit(data.X, data.levels == "S", groups=data.movies)
    assert isinstance(trained, FusedClassifier)
    kept = load_checking_round_trip(model_files[how], tmp_path)
    np.testing.assert_allclose(kept.logits(data.X), trained.decision_function(data.X), atol=1e-6)


@pytest.mark.parametrize("how", ["concat", "late", "mean"])
def test_contributions_of_modalities_add_up_to_the_logit(corpus, model_files, how):
    data = corpus.dataset()
    model = om.load_model(model_files[how])
    base, contributions = model.estimator.contributions(data.X)
    assert np.isnan(contributions[:, 1]).sum() == N_UNHEARD
    np.testing.assert_allclose(base + np.nansum(contributions, axis=1), model.logits(data.X), atol=1e-9)


@pytest.mark.parametrize("how", ["late", "mean", "max"])
def test_a_contribution_has_the_sign_of_its_evidence(corpus, model_files, how):
    """It is above 0 where the modality's own model scores a clip higher than the mean training clip."""
    data = corpus.dataset()
    _, contributions = om.load_model(model_files[how]).estimator.contributions(data.X)
    has_both = np.isfinite(contributions).all(axis=1)
    all_clips = np.ones(len(data), bool)

    def agrees(place, columns, trained_on, asked):
        X = data.X[:, columns]
        own_model = om.GroupedSelection(om.linear_probe(), PENALTIES)
        own_model.fit(X[trained_on], data.levels[trained_on] == "S", groups=data.movies[trained_on])
        evidence = own_model.decision_function(X[asked]) - own_model.decision_function(X[trained_on]).mean()
        contribution = contributions[asked, place]
        assert (contribution * evidence >= -1e-6).all()
        assert np.corrcoef(contribution, evidence)[0, 1] > 1 - 1e-6

    agrees(0, SEEN, trained_on=has_both, asked=has_both)
    agrees(1, HEARD, trained_on=has_both, asked=has_both)
    # The model of clips that lack what is heard was trained on all clips, by what is seen.
    agrees(0, SEEN, trained_on=all_clips, asked=~has_both)


def test_stores_are_taken_in_any_order(corpus, model_files):
    model = om.load_model(model_files["late"])
    seen, heard = corpus.stores["seen"], corpus.stores["heard"]
    seen_first = om.predict(model, [seen, heard], corpus.manifest)
    heard_first = om.predict(model, [heard, seen], corpus.manifest)
    assert seen_first.to_csv() == heard_first.to_csv()


def test_clips_without_sound_are_predicted_and_flagged(corpus, model_files):
    model = om.load_model(model_files["late"])
    predictions = om.predict(model, [corpus.stores["seen"], corpus.stores["heard"]], corpus.manifest)
    assert len(predictions.table) == len(corpus.manifest) == 160
    assert not predictions.excluded
    assert predictions.has("without_heard").sum() == N_UNHEARD
    assert predictions.has("unlike").mean() < 0.02
    assert predictions.table["p"].notna().mean() > 0.98


@pytest.fixture(scope="module")
def heard_clips(corpus):
    """Film by clip, and the arrays of both modalities, of the 128 clips that have sound."""
    heard = corpus.stores["heard"]
    movie_of = {clip.clip_id: clip.movie for clip in heard.clips}
    row_of = {clip.clip_id: row for row, clip in enumerate(corpus.stores["seen"].clips)}
    rows = [row_of[clip_id] for clip_id in movie_of]
    arrays = {"seen": corpus.stores["seen"]["seen"].pooled()[rows], "heard": heard["heard"].pooled()}
    return movie_of, arrays


def seal(path, movie_of, arrays, movies):
    """Seal one store of both modalities, of the clips of some films."""
    is_in = np.isin(list(movie_of.values()), movies)
    films = {clip_id: movie for clip_id, movie in movie_of.items() if movie in movies}
    return of.open_store(seal_arrays(path, films, {name: {"pooled": X[is_in]} for name, X in arrays.items()}))


def test_one_store_of_both_modalities_gives_the_same_as_two(corpus, model_files, heard_clips, tmp_path):
    movie_of, arrays = heard_clips
    model = om.load_model(model_files["concat"])
    together = om.predict(model, seal(tmp_path / "all", movie_of, arrays, ["f0", "f1", "f2", "f3"])).table
    apart = om.predict(model, [corpus.stores["seen"], corpus.stores["heard"]]).table
    apart = apart[apart["clip_id"].isin(movie_of)].reset_index(drop=True)
    assert apart["logit"].equals(together["logit"])


def test_a_corpus_may_lie_in_several_stores_of_both_modalities(model_files, heard_clips, tmp_path):
    movie_of, arrays = heard_clips
    model = om.load_model(model_files["concat"])
    whole = seal(tmp_path / "all", movie_of, arrays, ["f0", "f1", "f2", "f3"])
    first = seal(tmp_path / "first", movie_of, arrays, ["f0"])
    others = seal(tmp_path / "others", movie_of, arrays, ["f1", "f2", "f3"])
    assert om.predict(model, [first, others]).table.equals(om.predict(model, whole).table)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["seen"], "no store given has features of heard"),
        (["seen", "heard", "noise"], "noise has no features of seen"),
        (["seen", "heard", "heard"], "in two stores"),
    ],
    ids=["a modality is missing", "a store of another modality", "a store twice"],
)
def test_stores_that_do_not_fit_the_model_are_refused(corpus, model_files, names, message):
    with pytest.raises(ModelError, match=message):
        om.predict(om.load_model(model_files["late"]), [corpus.stores[name] for name in names])


def test_a_decision_is_the_sum_of_its_modalities(corpus, model_files):
    stores = [corpus.stores["seen"], corpus.stores["heard"]]
    explanation = explain(om.load_model(model_files["late"]), stores, "f0-01", {})
    assert {*explanation.modalities} == {"seen", "heard", "base"}
    assert sum(explanation.modalities.values()) == pytest.approx(explanation.decision.logit)


def test_a_decision_of_the_largest_is_that_of_one_modality(corpus, model_files):
    stores = [corpus.stores["seen"], corpus.stores["heard"]]
    explanation = explain(om.load_model(model_files["max"]), stores, "f0-01", {})
    largest = max(explanation.modalities["seen"], explanation.modalities["heard"])
    assert explanation.modalities["base"] + largest == pytest.approx(explanation.decision.logit)


def test_an_explanation_says_which_modality_is_absent(corpus, model_files):
    stores = [corpus.stores["seen"], corpus.stores["heard"]]
    model = om.load_model(model_files["late"])
    table = om.predict(model, stores).table
    unheard = table.loc[table["flags"] == "trained_on;without_heard", "clip_id"].iloc[0]
    explanation = explain(model, stores, unheard, {})
    assert explanation.modalities["heard"] is None
    assert "absent" in describe(explanation, model)


def test_a_model_of_modalities_has_no_concepts_to_set(corpus, model_files):
    stores = [corpus.stores["seen"], corpus.stores["heard"]]
    with pytest.raises(ConceptError):
        explain(om.load_model(model_files["late"]), stores, "f0-01", {"Body": 0.5})


@pytest.mark.parametrize("name", ["mlp", "linear:seen"])
def test_models_that_cannot_be_kept_are_refused_before_they_are_trained(corpus, tmp_path, name):
    data = corpus.dataset()
    specs = om.fused(["linear", "mlp"], data, "late")
    run = om.evaluate(data, specs, "en_s")
    with pytest.raises(ModelError, match=f"model {name}"):
        om.save_models(run, data, [name], tmp_path, models=specs)
