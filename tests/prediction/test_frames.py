"""A kept model says of every frame what it adds: attention in unseen films, concepts in time."""

from dataclasses import replace
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from obygaze_features.manifest import Clip, Manifest
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays
from obygaze_film.score import score_film
from obygaze_models.concepts.in_time import ConceptsUnlabelled
from obygaze_models.concepts.units import UnitBank
from obygaze_models.dataset import load_dataset
from obygaze_models.errors import ConceptError, DatasetError, ModelError
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.models.fitted import fit
from obygaze_models.models.registry import BUILTIN_MODELS
from obygaze_models.persistence.model_file import ModelFile, construct, to_state
from obygaze_models.prediction.explain import describe, explain
from obygaze_models.prediction.final import save_models
from obygaze_models.prediction.frames import FRAME_COLUMNS, predict_frames
from obygaze_models.prediction.predict import predict
from obygaze_models.prediction.saved_model import load_model
from tests.planted_frames import planted_frames, seal_films
from tests.planted_models import kept_alike

N_FRAMES = 12


def arrays_of(X):
    return {"pooled": X.mean(axis=1), "frames": X}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Attention and a bottleneck trained on three films of the four, and the fourth."""
    folder = tmp_path_factory.mktemp("frames")
    X, y, movies, event = planted_frames(4, 30, N_FRAMES, 12, n_event=2, size=7.0)
    inside = movies < 3
    # A concept that is there where the event is: its plane is not what is tested here.
    marked = [("Body",) if odd else () for odd in np.arange(inside.sum()) % 2]
    films = (arrays_of(X[inside]), movies[inside], y[inside])
    data = load_dataset(*seal_films(folder, *films, n_frames=N_FRAMES, concepts=marked))
    pcbm_time = replace(BUILTIN_MODELS["pcbm_time"], beside=())
    specs = [*(BUILTIN_MODELS[name] for name in ("attention", "pcbm_lr", "linear")), pcbm_time]
    run = evaluate(data, specs, "hn_s")
    names = ["attention", "pcbm_lr", "pcbm_time", "linear", "mean_frames", "max_frames"]
    paths = save_models(
        run, data, names, folder / "models", models=[*specs, *(BUILTIN_MODELS[name] for name in names[-2:])]
    )
    others = (arrays_of(X[~inside]), movies[~inside], y[~inside])
    left_out, _ = seal_films(folder, *others, n_frames=N_FRAMES, name="new")
    return SimpleNamespace(paths=paths, new=left_out, y=y[~inside], event=event[~inside], data=data)


@pytest.mark.long
def test_attention_is_kept_and_points_at_the_event_in_a_film_left_out(kept, tmp_path):
    model = kept_alike(kept.paths["attention"], tmp_path)
    frames = predict_frames(model, [kept.new])
    assert tuple(frames.columns[: len(FRAME_COLUMNS)]) == FRAME_COLUMNS
    weights = frames["weight"].to_numpy().reshape(-1, N_FRAMES)[kept.y == 1]
    assert kept.event[kept.y == 1][np.arange(len(weights)), weights.argmax(axis=1)].mean() >= 0.9


def test_the_contributions_of_a_clips_frames_and_a_bias_are_its_logit(kept):
    model = load_model(kept.paths["attention"])
    frames = predict_frames(model, [kept.new])
    logits = predict(model, [kept.new]).table.set_index("clip_id")["logit"]
    added = (
        frames.groupby("clip_id")["contribution"].sum(min_count=N_FRAMES) + model.estimator.parameters_[-1]
    )
    known = added.dropna()
    assert len(known) > 0.9 * len(added)  # the others are unlike any trained on, about which nothing is said
    np.testing.assert_allclose(known, logits.loc[known.index], atol=1e-5)


def test_concepts_in_time_are_kept_and_have_a_value_in_every_frame(kept, tmp_path):
    model = kept_alike(kept.paths["pcbm_time"], tmp_path)
    frames = predict_frames(model, [kept.new])
    assert frames["weight"].isna().all()
    assert frames["Body_value"].notna().all()
    assert len(frames) == len(kept.new.clips) * N_FRAMES
    table = predict(model, [kept.new]).table.dropna(subset="Body_p")
    added = table["Body_contribution"] + table["base_contribution"]
    np.testing.assert_allclose(added, table["logit"], atol=1e-9)
    # A clip of one frame alone has that frame's value.
    one = kept.new["toy"].frames()[:1, :1].astype(np.float32)
    np.testing.assert_allclose(model.estimator.frame_values(one)[:, 0], model.concept_values(one))
    found = explain(model, [kept.new], table["clip_id"].iloc[0], {"Body": 0.95})
    assert list(found.frames[0]) == ["time_s", "Body_value", "Body_p"]
    assert describe(found, model)
    films = [score_film(kept.new, [kept.paths[name]], movie="film3") for name in ("pcbm_time", "pcbm_lr")]
    assert films[0].frames["Body_p"].notna().any()
    assert films[0].rows()["Body_contribution"].notna().any()
    moved = model.intervene(one, {"Body": 0.05}) - model.intervene(one, {"Body": 0.5})
    assert films[0].record.models[0].concepts[0].absent * moved[0] >= 0
    assert films[1].frames.empty  # of a model of whole clips


@pytest.mark.parametrize("name", ["mean_frames", "max_frames"])
def test_a_head_on_the_frames_is_kept_and_applied(kept, name, tmp_path):
    model = kept_alike(kept.paths[name], tmp_path)
    frames = kept.new["toy"].frames()
    pooled = frames.mean(axis=1) if name == "mean_frames" else frames.max(axis=1)
    scaler, head = model.estimator[-2:]
    expected = head.decision_function(scaler.transform(pooled.astype(np.float64)))
    found = predict(model, [kept.new]).table.set_index("clip_id")["logit"]
    np.testing.assert_allclose(found.loc[list(kept.new["toy"].clip_ids)], expected, atol=1e-5)
    assert model.card.n_clips == len(kept.data)


def test_of_a_clip_with_absent_frames_only_the_present_ones_count(kept):
    clip = kept.new["toy"].frames()[:1].copy()
    cut = clip.copy()
    cut[:, 7:] = np.nan
    for name in ("attention", "mean_frames", "max_frames"):
        model = load_model(kept.paths[name])
        np.testing.assert_allclose(model.logits(cut), model.logits(clip[:, :7]), rtol=1e-5)
        np.testing.assert_allclose(
            model.out_of_distribution_share(cut), model.out_of_distribution_share(clip[:, :7])
        )
    assert (load_model(kept.paths["attention"]).estimator.weights(cut)[:, 7:] == 0).all()


def test_a_partial_clip_and_clips_of_one_frame_are_predicted(kept, tmp_path):
    X, _, movies, _ = planted_frames(2, 3, 1, 12, n_event=0, seed=5)
    path = seal_arrays(
        tmp_path / "stills",
        {f"film{movie}-c{clip}": f"film{movie}" for clip, movie in enumerate(movies)},
        {"toy": {"pooled": X[:, 0], "frames": X}},
        n_frames=1,
        partial={"film0-c1": "the file was cut off"},
        sampling={"policy": "uniform", "n": N_FRAMES},
    )
    store = open_store(path)
    model = load_model(kept.paths["attention"])
    found = predict(model, [store])
    assert found.table["logit"].notna().all()
    assert found.has("partial").sum() == 1
    weights = predict_frames(model, [store])["weight"].dropna()
    assert (weights == 1).all()


def test_explain_says_of_each_frame_what_it_adds(kept):
    model = load_model(kept.paths["attention"])
    clip = kept.new["toy"].clip_ids[int(np.flatnonzero(kept.y)[0])]
    found = explain(model, [kept.new], clip, {})
    added = sum(frame["contribution"] for frame in found.frames) + model.estimator.parameters_[-1]
    assert added == pytest.approx(found.decision.logit, abs=1e-5)
    assert len(found.frames) == N_FRAMES
    assert list(found.frames[0]) == ["time_s", "weight", "evidence", "contribution"]
    assert "contribution" in describe(found, model)
    with pytest.raises(ConceptError):
        explain(model, [kept.new], clip, {"Body": 0.5})


def test_a_model_that_knows_no_frames_and_stores_without_them_are_refused(kept, tmp_path):
    ids = ["film9-c000", "film9-c001"]
    pooled = {"toy": {"pooled": np.zeros((2, 12), np.float32)}}
    bare = open_store(seal_arrays(tmp_path / "bare", dict.fromkeys(ids, "film9"), pooled, n_frames=N_FRAMES))
    for path, store, place in (
        (kept.paths["linear"], kept.new, "linear"),
        (kept.paths["pcbm_lr"], kept.new, "pcbm_lr"),
        (kept.paths["pcbm_time"], bare, r"storage\.frames"),
    ):
        with pytest.raises(ModelError, match=place):
            predict_frames(load_model(path), [store])
    clips = tuple(Clip(clip_id, "film9", "film9.mp4", 0.0, 4.0, "S") for clip_id in ids)
    with pytest.raises(DatasetError, match="frames"):
        load_dataset(bare, Manifest(clips, tmp_path, kept.data.codebook)).read("frames")


def test_a_tubelet_has_the_mean_time_of_its_frames(tmp_path):
    from obygaze_models.prediction.frames import frame_times

    X = np.zeros((2, 4, 3), np.float32)
    store, _ = seal_films(tmp_path, arrays_of(X), [0, 1], [0, 1], n_frames=8)
    np.testing.assert_allclose(frame_times(store["toy"], np.array([0, 1]))[0], [0.5, 2.5, 4.5, 6.5])


def test_units_are_kept_and_have_values_and_no_probabilities(kept, tmp_path):
    spec = replace(BUILTIN_MODELS["units"], beside=(), make=small_units)
    run = evaluate(kept.data, [spec], "hn_s")
    path = save_models(run, kept.data, ["units"], tmp_path, models=[spec])["units"]
    model = kept_alike(path, tmp_path)
    table = predict(model, [kept.new]).table
    known = table[table["p"].notna()]
    added = known.filter(like="_contribution").sum(axis=1)
    np.testing.assert_allclose(added, known["logit"], atol=1e-9)
    assert not any(name.endswith("_p") for name in (*table, *predict_frames(model, [kept.new])))
    found = explain(model, [kept.new], known["clip_id"].iloc[0], {"unit2": 0.95})
    assert set(found.concept_p) == {None}
    assert describe(found, model)
    film = score_film(kept.new, [path], movie="film3")
    assert film.frames.empty
    assert not film.record.models[0].concepts


@pytest.mark.parametrize("change", [{"n_active": 13}, {"n_active": "2"}, {"n_active": 0}])
def test_units_that_cannot_be_are_refused(kept, change):
    spec = replace(BUILTIN_MODELS["units"], beside=(), make=small_units)
    trained = fit(spec, 0, kept.data.read("frames"), target_of(kept.data), movies=kept.data.movies)
    state = to_state(trained.estimator)
    card = load_model(kept.paths["pcbm_time"]).card
    about = {"concepts": trained.estimator.concepts_, "parameters": state.parameters | change}
    card = msgspec.structs.replace(card, **about)
    with pytest.raises(ModelError, match="active"):
        construct(ModelFile("toy.model", card, state.arrays, {}))


def small_units(seed):
    return ConceptsUnlabelled("logistic", bank=UnitBank(12, 2, 4, random_state=seed), random_state=seed)


def target_of(data):
    return (data.levels == "S").astype(np.int64)
