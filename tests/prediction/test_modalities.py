"""A model of several modalities is kept, asks for their stores, and says what each is worth."""

import numpy as np
import pytest

import obygaze_features as of
import obygaze_models as om
from obygaze_features.store.testing import seal_arrays
from obygaze_models.errors import ConceptError, ModelError
from obygaze_models.models.fusion import FusedClassifier
from obygaze_models.models.joined_model import HOW
from obygaze_models.models.linear import PENALTIES
from obygaze_models.prediction.explain import describe, explain
from tests.planted_modalities import planted
from tests.planted_models import kept_alike

pytestmark = pytest.mark.long  # trains a model of each fusion

LACKING = 32
"""Clips of the corpus that are not heard."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("modalities"), n_films=4)


@pytest.fixture(scope="module")
def kept(corpus, tmp_path_factory):
    """A file of each way to fuse."""
    manifest, stores = corpus
    data = om.load_dataset([stores["seen"], stores["heard"]], manifest)
    files = {}
    for how in HOW:
        specs = om.fused(["linear"], data, how)
        run = om.evaluate(data, specs, "en_s")
        folder = tmp_path_factory.mktemp(how)
        files[how] = om.save_models(run, data, ["linear"], folder, models=specs, licence="CC0-1.0")["linear"]
    return files


@pytest.mark.parametrize("how", HOW)
def test_a_kept_model_scores_as_the_one_that_was_trained(corpus, kept, how, tmp_path):
    manifest, stores = corpus
    data = om.load_dataset([stores["seen"], stores["heard"]], manifest)
    model = kept_alike(kept[how], tmp_path)
    (spec, *_) = om.fused(["linear"], data, how)
    trained = spec.make(0).fit(data.X, data.levels == "S", groups=data.movies)
    assert isinstance(trained, FusedClassifier)
    np.testing.assert_allclose(model.logits(data.X), trained.decision_function(data.X), atol=1e-6)


@pytest.mark.parametrize("how", ["concat", "late", "mean"])
def test_contributions_of_modalities_add_up_to_the_logit(corpus, kept, how):
    manifest, stores = corpus
    data = om.load_dataset([stores["seen"], stores["heard"]], manifest)
    model = om.load_model(kept[how])
    base, parts = model.estimator.contributions(data.X)
    assert np.isnan(parts[:, 1]).sum() == LACKING
    np.testing.assert_allclose(base + np.nansum(parts, axis=1), model.logits(data.X), atol=1e-9)


@pytest.mark.parametrize("how", ["late", "mean", "max"])
def test_a_contribution_has_the_sign_of_its_evidence(corpus, kept, how):
    """It is above 0 where the modality's own model scores a clip higher than the mean training clip."""
    manifest, stores = corpus
    data = om.load_dataset([stores["seen"], stores["heard"]], manifest)
    _, parts = om.load_model(kept[how]).estimator.contributions(data.X)
    whole = np.isfinite(parts).all(axis=1)
    # The model of clips that lack what is heard was trained on all clips, by what is seen.
    for place, known, asked in ((0, whole, whole), (1, whole, whole), (0, whole | True, ~whole)):
        X, y = data.X[:, slice(0, 6) if place == 0 else slice(6, 10)], data.levels == "S"
        alone = om.GroupedSelection(om.linear_probe(), PENALTIES)
        alone.fit(X[known], y[known], groups=data.movies[known])
        evidence = alone.decision_function(X[asked]) - alone.decision_function(X[known]).mean()
        assert (parts[asked, place] * evidence >= -1e-6).all()
        assert np.corrcoef(parts[asked, place], evidence)[0, 1] > 1 - 1e-6


def test_predictions_take_the_stores_in_any_order_and_say_what_is_lacking(corpus, kept):
    manifest, stores = corpus
    model = om.load_model(kept["late"])
    one = om.predict(model, [stores["seen"], stores["heard"]], manifest)
    other = om.predict(model, [stores["heard"], stores["seen"]], manifest)
    assert one.to_csv() == other.to_csv()
    assert one.has("without_heard").sum() == LACKING
    assert one.has("unlike").mean() < 0.02
    assert one.table["p"].notna().mean() > 0.98
    assert len(one.table) == len(manifest)
    assert not one.excluded


def test_one_store_of_both_gives_the_same_as_two_and_as_pieces(corpus, kept, tmp_path):
    """A film's windows lie in one store of all its modalities; a corpus may lie in several."""
    _, stores = corpus
    heard = stores["heard"]
    movie_of = {clip.clip_id: clip.movie for clip in heard.clips}
    row_of = {clip.clip_id: row for row, clip in enumerate(stores["seen"].clips)}
    rows = [row_of[clip_id] for clip_id in movie_of]
    arrays = {
        "seen": {"pooled": stores["seen"]["seen"].pooled()[rows]},
        "heard": {"pooled": heard["heard"].pooled()},
    }
    whole = of.open_store(seal_arrays(tmp_path / "both", movie_of, arrays))
    pieces = []
    for number, movies in enumerate((("f0",), ("f1", "f2", "f3"))):
        own = [place for place, movie in enumerate(movie_of.values()) if movie in movies]
        ids = list(movie_of)
        piece = {name: {"pooled": array["pooled"][own]} for name, array in arrays.items()}
        named = {ids[place]: movie_of[ids[place]] for place in own}
        pieces.append(of.open_store(seal_arrays(tmp_path / f"piece{number}", named, piece)))
    model = om.load_model(kept["concat"])
    joined = om.predict(model, whole).table
    assert om.predict(model, pieces).table.equals(joined)
    apart = om.predict(model, [stores["seen"], stores["heard"]]).table
    apart = apart[apart["clip_id"].isin(movie_of)].reset_index(drop=True)
    assert apart["logit"].equals(joined["logit"])


def test_what_is_missing_or_twice_is_said(corpus, kept):
    _, stores = corpus
    model = om.load_model(kept["late"])
    with pytest.raises(ModelError, match="no store given has features of heard"):
        om.predict(model, stores["seen"])
    with pytest.raises(ModelError, match="noise has no features of seen"):
        om.predict(model, [stores["seen"], stores["heard"], stores["noise"]])
    with pytest.raises(ModelError, match="in two stores"):
        om.predict(model, [stores["seen"], stores["heard"], stores["heard"]])


def test_a_decision_is_explained_by_modality(corpus, kept):
    _, stores = corpus
    both = [stores["seen"], stores["heard"]]
    model = om.load_model(kept["late"])
    explained = explain(model, both, "f0-01", {})
    assert sum(explained.modalities.values()) == pytest.approx(explained.decision.logit)
    assert {*explained.modalities} == {"seen", "heard", "base"}
    table = om.predict(model, both).table
    lacking = explain(
        model, both, table.loc[table["flags"] == "trained_on;without_heard", "clip_id"].iloc[0], {}
    )
    assert lacking.modalities["heard"] is None
    assert "absent" in describe(lacking, model)
    largest = om.load_model(kept["max"])
    explained = explain(largest, both, "f0-01", {})
    base = explained.modalities.pop("base")
    assert base + max(explained.modalities.values()) == pytest.approx(explained.decision.logit)
    with pytest.raises(ConceptError):
        explain(model, both, "f0-01", {"Body": 0.5})


def test_models_that_cannot_be_kept_are_refused_before_they_are_trained(corpus, tmp_path):
    manifest, stores = corpus
    data = om.load_dataset([stores["seen"], stores["heard"]], manifest)
    specs = om.fused(["linear", "mlp"], data, "late")
    run = om.evaluate(data, specs, "en_s")
    for name in ("mlp", "linear:seen"):
        with pytest.raises(ModelError, match=f"model {name}"):
            om.save_models(run, data, [name], tmp_path, models=om.fused(["linear", "mlp"], data, "late"))
