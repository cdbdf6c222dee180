"""A kept model says of every frame what it adds: attention in unseen films, concepts in time."""

from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from obygaze_features.manifest import Clip, Manifest
from obygaze_features.store import Store, open_store
from obygaze_features.store.testing import seal_arrays
from obygaze_film.score import score_film
from obygaze_models.commands.predict_remarks import remarks
from obygaze_models.concepts.in_time import ConceptsUnlabelled
from obygaze_models.concepts.units import UnitBank
from obygaze_models.dataset import Dataset, load_dataset
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
from tests.planted_models import load_checking_round_trip

N_FRAMES = 12
N_FEATURES = 12


@dataclass(frozen=True)
class Trained:
    """Models that learnt of the films 0, 1 and 2, and the film 3 that they have not seen.

    Attributes
    ----------
    paths
        Name of a model -> its file: attention, pcbm_lr, pcbm_time, linear, mean_frames and max_frames.
    data
        The films that they learnt of.
    film
        Store of the unseen film.
    is_positive
        Labels of its clips, [clips].
    is_event
        The frames with the planted event, [clips, frames].
    """

    paths: dict[str, Path]
    data: Dataset
    film: Store
    is_positive: np.ndarray
    is_event: np.ndarray


def arrays_of(X):
    """Make the arrays of a group from frames [N, F, D]."""
    return {"pooled": X.mean(axis=1), "frames": X}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Models of films with an event of two frames; every second clip is marked with the concept Body."""
    folder = tmp_path_factory.mktemp("frames")
    X, y, movies, event = planted_frames(4, 30, N_FRAMES, N_FEATURES, n_event=2, size=7.0)
    is_unseen = movies == 3
    known = ~is_unseen
    concepts = [() if row % 2 == 0 else ("Body",) for row in range(known.sum())]
    films, manifest = seal_films(
        folder, arrays_of(X[known]), movies[known], y[known], n_frames=N_FRAMES, concepts=concepts
    )
    data = load_dataset(films, manifest)
    specs = [BUILTIN_MODELS[name] for name in ("attention", "pcbm_lr", "linear")]
    specs.append(replace(BUILTIN_MODELS["pcbm_time"], compared_with=()))
    heads = [BUILTIN_MODELS["mean_frames"], BUILTIN_MODELS["max_frames"]]
    run = evaluate(data, specs, "hn_s")
    names = ["attention", "pcbm_lr", "pcbm_time", "linear", "mean_frames", "max_frames"]
    paths = save_models(run, data, names, folder / "models", models=[*specs, *heads])
    film, _ = seal_films(
        folder, arrays_of(X[is_unseen]), movies[is_unseen], y[is_unseen], n_frames=N_FRAMES, name="unseen"
    )
    return Trained(paths, data, film, y[is_unseen] == 1, event[is_unseen])


def frames_of(trained):
    """Read the unseen film's frames, [clips, frames, features]."""
    return trained.film["toy"].frames()


KEPT_MODELS = ["attention", "pcbm_time", "mean_frames", "max_frames"]


@pytest.mark.parametrize("name", KEPT_MODELS)
def test_a_kept_model_is_saved_again_as_it_was(trained, name, tmp_path):
    load_checking_round_trip(trained.paths[name], tmp_path)


@pytest.mark.long
def test_attention_points_at_the_event_in_an_unseen_film(trained):
    frames = predict_frames(load_model(trained.paths["attention"]), [trained.film])
    assert tuple(frames.columns[: len(FRAME_COLUMNS)]) == FRAME_COLUMNS
    weights = frames["weight"].to_numpy().reshape(-1, N_FRAMES)[trained.is_positive]
    is_event = trained.is_event[trained.is_positive]
    largest = weights.argmax(axis=1)
    assert is_event[np.arange(len(largest)), largest].mean() >= 0.9


def test_the_contributions_of_a_clips_frames_and_a_bias_are_its_logit(trained):
    model = load_model(trained.paths["attention"])
    logits = predict(model, [trained.film]).table.set_index("clip_id")["logit"]
    frames = predict_frames(model, [trained.film])
    contributions = frames.groupby("clip_id")["contribution"].sum(min_count=N_FRAMES).dropna()
    assert len(contributions) > 0.9 * 30  # the others are unlike any trained on, about which nothing is said
    bias = model.estimator.parameters_[-1]
    np.testing.assert_allclose(contributions + bias, logits.loc[contributions.index], atol=1e-5)


def test_concepts_in_time_have_a_value_in_every_frame(trained):
    frames = predict_frames(load_model(trained.paths["pcbm_time"]), [trained.film])
    assert len(frames) == 30 * N_FRAMES
    assert frames["Body_value"].notna().all()
    assert frames["weight"].isna().all()


def test_contributions_of_concepts_in_time_are_the_logit(trained):
    table = predict(load_model(trained.paths["pcbm_time"]), [trained.film]).table.dropna(subset="Body_p")
    total = table["Body_contribution"] + table["base_contribution"]
    np.testing.assert_allclose(total, table["logit"], atol=1e-9)


def test_a_clip_of_one_frame_has_that_frames_value(trained):
    model = load_model(trained.paths["pcbm_time"])
    one_frame = frames_of(trained)[:1, :1].astype(np.float32)
    np.testing.assert_allclose(model.estimator.frame_values(one_frame)[:, 0], model.concept_values(one_frame))


def test_an_explanation_has_the_concepts_of_each_frame(trained):
    model = load_model(trained.paths["pcbm_time"])
    table = predict(model, [trained.film]).table.dropna(subset="Body_p")
    explanation = explain(model, [trained.film], table["clip_id"].iloc[0], {"Body": 0.95})
    assert list(explanation.frames[0]) == ["time_s", "Body_value", "Body_p"]
    assert describe(explanation, model)


@pytest.fixture(scope="module")
def film_of_concepts_in_time(trained):
    """The unseen film, scored by the model of concepts in time."""
    return score_film(trained.film, [trained.paths["pcbm_time"]], movie="film3")


def test_a_film_has_concepts_in_time(film_of_concepts_in_time):
    assert film_of_concepts_in_time.frames["Body_p"].notna().any()
    assert film_of_concepts_in_time.rows()["Body_contribution"].notna().any()


def test_a_films_record_says_which_way_a_concepts_absence_moves_a_score(trained, film_of_concepts_in_time):
    model = load_model(trained.paths["pcbm_time"])
    one_frame = frames_of(trained)[:1, :1].astype(np.float32)
    moved = model.intervene(one_frame, {"Body": 0.05}) - model.intervene(one_frame, {"Body": 0.5})
    (concept,) = film_of_concepts_in_time.record.models[0].concepts
    assert concept.absent * moved[0] >= 0


def test_a_film_has_no_frames_of_a_model_of_whole_clips(trained):
    assert score_film(trained.film, [trained.paths["pcbm_lr"]], movie="film3").frames.empty


@pytest.mark.parametrize(
    ("name", "pool"), [("mean_frames", np.mean), ("max_frames", np.max)], ids=["mean", "max"]
)
def test_a_head_scores_the_pooled_frames(trained, name, pool):
    model = load_model(trained.paths[name])
    scaler, head = model.estimator[-2:]
    pooled = pool(frames_of(trained), axis=1).astype(np.float64)
    logits = predict(model, [trained.film]).table.set_index("clip_id")["logit"]
    expected = head.decision_function(scaler.transform(pooled))
    np.testing.assert_allclose(logits.loc[list(trained.film["toy"].clip_ids)], expected, atol=1e-5)
    assert model.card.n_clips == len(trained.data) == 90


@pytest.mark.parametrize("name", ["attention", "mean_frames", "max_frames"])
def test_absent_frames_do_not_count(trained, name):
    model = load_model(trained.paths[name])
    seven_frames = frames_of(trained)[:1, :7]
    rest_absent = frames_of(trained)[:1].copy()
    rest_absent[:, 7:] = np.nan
    np.testing.assert_allclose(model.logits(rest_absent), model.logits(seven_frames), rtol=1e-5)
    np.testing.assert_allclose(
        model.out_of_distribution_share(rest_absent), model.out_of_distribution_share(seven_frames)
    )


def test_absent_frames_have_no_weight(trained):
    clip = frames_of(trained)[:1].copy()
    clip[:, 7:] = np.nan
    assert (load_model(trained.paths["attention"]).estimator.weights(clip)[:, 7:] == 0).all()


@pytest.fixture
def stills(tmp_path):
    """A store of six clips of one frame each, of which one is partial."""
    X, _, movies, _ = planted_frames(2, 3, 1, N_FEATURES, n_event=0, seed=5)
    movie_of = {f"film{movie}-c{clip}": f"film{movie}" for clip, movie in enumerate(movies)}
    path = seal_arrays(
        tmp_path / "stills",
        movie_of,
        {"toy": {"pooled": X[:, 0], "frames": X}},
        n_frames=1,
        partial={"film0-c1": "the file was cut off"},
        sampling={"policy": "uniform", "n": N_FRAMES},
    )
    return open_store(path)


def test_clips_of_one_frame_are_predicted(trained, stills):
    model = load_model(trained.paths["attention"])
    assert predict(model, [stills]).table["logit"].notna().all()
    assert (predict_frames(model, [stills])["weight"].dropna() == 1).all()


def test_the_explanation_of_a_partial_clip_says_what_could_not_be_read(trained, stills):
    model = load_model(trained.paths["attention"])
    assert "read in part: the file was cut off." in describe(explain(model, [stills], "film0-c1", {}), model)
    assert "read in part" not in describe(explain(model, [stills], "film0-c0", {}), model)


def test_a_clip_of_which_less_than_half_was_read_is_said_to_count_nowhere_in_a_film(trained, tmp_path):
    X, _, _, _ = planted_frames(1, 3, 1, N_FEATURES, n_event=0, seed=5)
    clip_ids = [f"c{clip}" for clip in range(3)]
    path = seal_arrays(
        tmp_path / "cut",
        dict.fromkeys(clip_ids, "cut"),
        {"toy": {"pooled": X[:, 0], "frames": X}},
        n_frames=1,
        partial=dict.fromkeys(clip_ids[1:], "the file is cut off"),
        without_pictures_s={"c1": [(15.0, 16.0)], "c2": [(19.96, 24.0)]},
        spans={"c0": (0.0, 8.0), "c1": (8.0, 16.0), "c2": (16.0, 24.0)},
        sampling={"policy": "uniform", "n": N_FRAMES},
    )
    store, model = open_store(path), load_model(trained.paths["attention"])
    counts_nowhere = "such a window counts nowhere in a scored film"
    scarcely, mostly = (describe(explain(model, [store], name, {}), model) for name in ("c2", "c1"))
    assert f"4.04 of its 8 s have no pictures: less than half was read, and {counts_nowhere}." in scarcely
    assert scarcely.index(counts_nowhere) < scarcely.index("logit")  # before what the model says
    assert "1 of its 8 s have no pictures." in mostly
    assert counts_nowhere not in mostly
    (told,) = [line for line in remarks(predict(model, [store]), model, [store]) if "partial" in line]
    assert told.endswith(f"; less than half of 1 clip was read: {counts_nowhere}")


def test_a_partial_clip_is_flagged(trained, stills):
    assert predict(load_model(trained.paths["attention"]), [stills]).has("partial").sum() == 1


def test_an_explanation_has_the_contribution_of_each_frame(trained):
    model = load_model(trained.paths["attention"])
    first_positive = int(np.flatnonzero(trained.is_positive)[0])
    explanation = explain(model, [trained.film], trained.film["toy"].clip_ids[first_positive], {})
    assert len(explanation.frames) == N_FRAMES
    assert list(explanation.frames[0]) == ["time_s", "weight", "evidence", "contribution"]
    total = sum(frame["contribution"] for frame in explanation.frames) + model.estimator.parameters_[-1]
    assert total == pytest.approx(explanation.decision.logit, abs=1e-5)
    assert "contribution" in describe(explanation, model)


def test_attention_has_no_concepts_to_set(trained):
    with pytest.raises(ConceptError):
        explain(load_model(trained.paths["attention"]), [trained.film], "film3-c000", {"Body": 0.5})


@pytest.mark.parametrize("name", ["linear", "pcbm_lr"])
def test_a_model_of_whole_clips_says_nothing_of_frames(trained, name):
    with pytest.raises(ModelError, match=name):
        predict_frames(load_model(trained.paths[name]), [trained.film])


@pytest.fixture
def store_without_frames(tmp_path):
    """Two pooled clips of film 9."""
    pooled = {"toy": {"pooled": np.zeros((2, N_FEATURES), np.float32)}}
    movie_of = {"film9-c000": "film9", "film9-c001": "film9"}
    return open_store(seal_arrays(tmp_path / "bare", movie_of, pooled, n_frames=N_FRAMES))


def test_a_store_without_frames_is_refused(trained, store_without_frames):
    with pytest.raises(ModelError, match=r"storage\.frames"):
        predict_frames(load_model(trained.paths["pcbm_time"]), [store_without_frames])


def test_a_dataset_without_frames_cannot_read_them(trained, store_without_frames, tmp_path):
    clips = (
        Clip("film9-c000", "film9", "film9.mp4", 0.0, 4.0, "S"),
        Clip("film9-c001", "film9", "film9.mp4", 0.0, 4.0, "S"),
    )
    data = load_dataset(store_without_frames, Manifest(clips, tmp_path, trained.data.codebook))
    with pytest.raises(DatasetError, match="frames"):
        data.read("frames")


def test_a_tubelet_has_the_mean_time_of_its_frames(tmp_path):
    """Eight frames a second apart make four tubelets of two."""
    from obygaze_models.prediction.frames import frame_times

    store, _ = seal_films(tmp_path, arrays_of(np.zeros((2, 4, 3), np.float32)), [0, 1], [0, 1], n_frames=8)
    np.testing.assert_allclose(frame_times(store["toy"], np.array([0, 1]))[0], [0.5, 2.5, 4.5, 6.5])


def small_units(seed):
    """Make a model of twelve units, of which two are active in a frame."""
    return ConceptsUnlabelled("logistic", bank=UnitBank(12, 2, 4, random_state=seed), random_state=seed)


UNITS = replace(BUILTIN_MODELS["units"], compared_with=(), make=small_units)


@pytest.fixture(scope="module")
def units_file(trained, tmp_path_factory):
    """The file of a model of units."""
    run = evaluate(trained.data, [UNITS], "hn_s")
    return save_models(run, trained.data, ["units"], tmp_path_factory.mktemp("units"), models=[UNITS])[
        "units"
    ]


def test_units_are_saved_again_as_they_were(units_file, tmp_path):
    load_checking_round_trip(units_file, tmp_path)


def test_contributions_of_units_are_the_logit(trained, units_file):
    table = predict(load_model(units_file), [trained.film]).table
    judged = table[table["p"].notna()]
    np.testing.assert_allclose(judged.filter(like="_contribution").sum(axis=1), judged["logit"], atol=1e-9)


def test_units_have_no_probabilities(trained, units_file):
    model = load_model(units_file)
    table = predict(model, [trained.film]).table
    frames = predict_frames(model, [trained.film])
    assert not [name for name in (*table, *frames) if name.endswith("_p")]
    clip_id = table.loc[table["p"].notna(), "clip_id"].iloc[0]
    explanation = explain(model, [trained.film], clip_id, {"unit2": 0.95})
    assert set(explanation.concept_p) == {None}
    assert describe(explanation, model)


def test_a_film_has_no_concepts_of_units(trained, units_file):
    film = score_film(trained.film, [units_file], movie="film3")
    assert film.frames.empty
    assert not film.record.models[0].concepts


@pytest.mark.parametrize("n_active", [13, "2", 0], ids=["more than there are", "a text", "none"])
def test_units_that_cannot_be_are_refused(trained, n_active):
    y = (trained.data.levels == "S").astype(np.int64)
    estimator = fit(UNITS, 0, trained.data.read("frames"), y, movies=trained.data.movies).estimator
    state = to_state(estimator)
    card = msgspec.structs.replace(
        load_model(trained.paths["pcbm_time"]).card,
        concepts=estimator.concepts_,
        parameters=state.parameters | {"n_active": n_active},
    )
    with pytest.raises(ModelError, match="active"):
        construct(ModelFile("toy.model", card, state.arrays, {}))
