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
from obygaze_models.prediction.frames import FRAME_COLUMNS, frame_times, predict_frames
from obygaze_models.prediction.predict import predict
from obygaze_models.prediction.saved_model import load_model
from tests.planted_frames import planted_frames, seal_films
from tests.planted_models import load_checking_round_trip

N_FRAMES = 12
N_FEATURES = 12


@dataclass(frozen=True)
class SavedModels:
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


def pooled_and_frames(X):
    """Make the arrays of a group from frames [N, F, D]."""
    return {"pooled": X.mean(axis=1), "frames": X}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Models of films with an event of two frames; every second clip is marked with the concept Body."""
    folder = tmp_path_factory.mktemp("frames")
    X, y, movies, event = planted_frames(4, 30, N_FRAMES, N_FEATURES, n_event=2, size=7.0)
    is_unseen = movies == 3
    known = ~is_unseen
    concepts = [() if row % 2 == 0 else ("Body",) for row in range(known.sum())]
    films, manifest = seal_films(
        folder, pooled_and_frames(X[known]), movies[known], y[known], n_frames=N_FRAMES, concepts=concepts
    )
    data = load_dataset(films, manifest)
    specs = [BUILTIN_MODELS[name] for name in ("attention", "pcbm_lr", "linear")]
    specs.append(replace(BUILTIN_MODELS["pcbm_time"], compared_with=()))
    heads = [BUILTIN_MODELS["mean_frames"], BUILTIN_MODELS["max_frames"]]
    run = evaluate(data, specs, "hn_s")
    names = ["attention", "pcbm_lr", "pcbm_time", "linear", "mean_frames", "max_frames"]
    paths = save_models(run, data, names, folder / "models", models=[*specs, *heads])
    film, _ = seal_films(
        folder,
        pooled_and_frames(X[is_unseen]),
        movies[is_unseen],
        y[is_unseen],
        n_frames=N_FRAMES,
        name="unseen",
    )
    return SavedModels(paths, data, film, y[is_unseen] == 1, event[is_unseen])


def frames_of_unseen_film(saved):
    """Read the unseen film's frames, [clips, frames, features]."""
    return saved.film["toy"].frames()


KEPT_MODELS = ["attention", "pcbm_time", "mean_frames", "max_frames"]


@pytest.mark.long
@pytest.mark.parametrize("name", KEPT_MODELS)
def test_a_model_of_frames_that_was_loaded_is_saved_again_as_the_same_bytes(saved, name, tmp_path):
    load_checking_round_trip(saved.paths[name], tmp_path)


@pytest.mark.long
def test_in_an_unseen_film_the_frame_of_the_largest_weight_is_one_with_the_event(saved):
    frames = predict_frames(load_model(saved.paths["attention"]), [saved.film])
    weights = frames["weight"].to_numpy().reshape(-1, N_FRAMES)[saved.is_positive]
    is_event = saved.is_event[saved.is_positive]
    largest = weights.argmax(axis=1)
    assert is_event[np.arange(len(largest)), largest].mean() >= 0.9


def test_a_table_of_frames_begins_with_the_columns_of_the_specification(saved):
    frames = predict_frames(load_model(saved.paths["attention"]), [saved.film])
    assert tuple(frames.columns[: len(FRAME_COLUMNS)]) == FRAME_COLUMNS


def bias_of(model):
    """Return the bias of the logit of an attention model, its last parameter."""
    return model.estimator.parameters_[-1]


def test_the_contributions_of_a_clips_frames_and_a_bias_are_its_logit(saved):
    model = load_model(saved.paths["attention"])
    logits = predict(model, [saved.film]).table.set_index("clip_id")["logit"]
    frames = predict_frames(model, [saved.film])
    # A clip unlike any trained on has no contributions; that is the case for few.
    contributions = frames.dropna(subset="contribution").groupby("clip_id")["contribution"].sum()
    assert len(contributions) > 0.9 * 30
    np.testing.assert_allclose(contributions + bias_of(model), logits.loc[contributions.index], atol=1e-5)


def test_concepts_in_time_have_a_value_in_every_frame(saved):
    frames = predict_frames(load_model(saved.paths["pcbm_time"]), [saved.film])
    assert len(frames) == 30 * N_FRAMES
    assert frames["Body_value"].notna().all()
    assert frames["weight"].isna().all()


def test_contributions_of_concepts_in_time_and_the_base_are_the_logit(saved):
    table = predict(load_model(saved.paths["pcbm_time"]), [saved.film]).table
    table = table.dropna(subset="Body_p")  # without clips unlike any trained on
    total = table["Body_contribution"] + table["base_contribution"]
    np.testing.assert_allclose(total, table["logit"], atol=1e-9)


def test_the_concept_values_of_a_clip_of_one_frame_are_those_of_the_frame(saved):
    model = load_model(saved.paths["pcbm_time"])
    one_frame = frames_of_unseen_film(saved)[:1, :1].astype(np.float32)
    np.testing.assert_allclose(model.estimator.frame_values(one_frame)[:, 0], model.concept_values(one_frame))


def test_an_explanation_has_the_concepts_of_each_frame(saved):
    model = load_model(saved.paths["pcbm_time"])
    table = predict(model, [saved.film]).table.dropna(subset="Body_p")
    explanation = explain(model, [saved.film], table["clip_id"].iloc[0], {"Body": 0.95})
    assert list(explanation.frames[0]) == ["time_s", "Body_value", "Body_p"]
    assert describe(explanation, model)


@pytest.fixture(scope="module")
def film_of_concepts_in_time(saved):
    """The unseen film, scored by the model of concepts in time."""
    return score_film(saved.film, [saved.paths["pcbm_time"]], movie="film3")


def test_a_film_has_concepts_in_time(film_of_concepts_in_time):
    assert film_of_concepts_in_time.frames["Body_p"].notna().any()
    assert film_of_concepts_in_time.rows()["Body_contribution"].notna().any()


def test_a_films_record_says_whether_a_score_rises_or_falls_where_a_concept_is_absent(
    saved, film_of_concepts_in_time
):
    model = load_model(saved.paths["pcbm_time"])
    one_frame = frames_of_unseen_film(saved)[:1, :1].astype(np.float32)
    (score_without_body,) = model.intervene(one_frame, {"Body": 0.05})
    (score_with_usual_body,) = model.intervene(one_frame, {"Body": 0.5})
    (concept,) = film_of_concepts_in_time.record.models[0].concepts
    change = score_without_body - score_with_usual_body
    assert concept.absent == 0 or np.sign(concept.absent) == np.sign(change)


def test_a_film_has_no_frames_of_a_model_of_whole_clips(saved):
    assert score_film(saved.film, [saved.paths["pcbm_lr"]], movie="film3").frames.empty


@pytest.mark.parametrize(
    ("name", "pool"), [("mean_frames", np.mean), ("max_frames", np.max)], ids=["mean", "max"]
)
def test_a_probe_on_pooled_frames_scores_the_mean_or_the_maximum_of_each_feature(saved, name, pool):
    model = load_model(saved.paths[name])
    _pooling, scaler, head = [step for _, step in model.estimator.steps]
    pooled = pool(frames_of_unseen_film(saved), axis=1).astype(np.float64)
    logits = predict(model, [saved.film]).table.set_index("clip_id")["logit"]
    expected = head.decision_function(scaler.transform(pooled))
    np.testing.assert_allclose(logits.loc[list(saved.film["toy"].clip_ids)], expected, atol=1e-5)


@pytest.mark.parametrize("name", ["attention", "mean_frames", "max_frames"])
def test_a_clip_whose_last_frames_are_absent_is_scored_as_its_first_seven_frames(saved, name):
    model = load_model(saved.paths[name])
    seven_frames = frames_of_unseen_film(saved)[:1, :7]
    rest_absent = frames_of_unseen_film(saved)[:1].copy()
    rest_absent[:, 7:] = np.nan
    np.testing.assert_allclose(model.logits(rest_absent), model.logits(seven_frames), rtol=1e-5)
    np.testing.assert_allclose(
        model.out_of_distribution_share(rest_absent), model.out_of_distribution_share(seven_frames)
    )


def test_absent_frames_have_no_weight(saved):
    clip = frames_of_unseen_film(saved)[:1].copy()
    clip[:, 7:] = np.nan
    assert (load_model(saved.paths["attention"]).estimator.weights(clip)[:, 7:] == 0).all()


@pytest.fixture
def clips_of_one_frame(tmp_path):
    """A store of six clips of one frame each, of which one is partial."""
    X, _, movies, _ = planted_frames(2, 3, 1, N_FEATURES, n_event=0, seed=5)
    movie_of = {f"film{movie}-c{clip}": f"film{movie}" for clip, movie in enumerate(movies)}
    path = seal_arrays(
        tmp_path / "clips_of_one_frame",
        movie_of,
        {"toy": {"pooled": X[:, 0], "frames": X}},
        n_frames=1,
        partial={"film0-c1": "the file was cut off"},
        sampling={"policy": "uniform", "n": N_FRAMES},
    )
    return open_store(path)


def test_clips_of_one_frame_are_predicted(saved, clips_of_one_frame):
    model = load_model(saved.paths["attention"])
    assert predict(model, [clips_of_one_frame]).table["logit"].notna().all()
    assert (predict_frames(model, [clips_of_one_frame])["weight"].dropna() == 1).all()


def test_the_explanation_of_a_partial_clip_says_what_could_not_be_read(saved, clips_of_one_frame):
    model = load_model(saved.paths["attention"])
    assert "read in part: the file was cut off." in describe(
        explain(model, [clips_of_one_frame], "film0-c1", {}), model
    )
    assert "read in part" not in describe(explain(model, [clips_of_one_frame], "film0-c0", {}), model)


COUNTS_NOWHERE = "such a window counts nowhere in a scored film"


@pytest.fixture
def store_of_cut_film(tmp_path):
    """Three clips of 8 s: whole; without pictures in its last second; without them in its last 4.04 s."""
    X, _, _, _ = planted_frames(1, 3, 1, N_FEATURES, n_event=0, seed=5)
    path = seal_arrays(
        tmp_path / "cut",
        {"whole": "film", "mostly_read": "film", "hardly_read": "film"},
        {"toy": {"pooled": X[:, 0], "frames": X}},
        n_frames=1,
        partial=dict.fromkeys(["mostly_read", "hardly_read"], "the file is cut off"),
        without_pictures_s={"mostly_read": [(15.0, 16.0)], "hardly_read": [(19.96, 24.0)]},
        spans={"whole": (0.0, 8.0), "mostly_read": (8.0, 16.0), "hardly_read": (16.0, 24.0)},
        sampling={"policy": "uniform", "n": N_FRAMES},
    )
    return open_store(path)


def test_the_explanation_of_a_clip_read_by_less_than_half_says_first_that_it_counts_nowhere(
    saved, store_of_cut_film
):
    model = load_model(saved.paths["attention"])
    text = describe(explain(model, [store_of_cut_film], "hardly_read", {}), model)
    assert f"4.04 of its 8 s have no pictures: less than half was read, and {COUNTS_NOWHERE}." in text
    assert text.index(COUNTS_NOWHERE) < text.index("logit")


def test_the_explanation_of_a_clip_read_by_more_than_half_says_how_much_has_no_pictures(
    saved, store_of_cut_film
):
    model = load_model(saved.paths["attention"])
    text = describe(explain(model, [store_of_cut_film], "mostly_read", {}), model)
    assert "1 of its 8 s have no pictures." in text
    assert COUNTS_NOWHERE not in text


def test_a_remark_counts_the_clips_read_by_less_than_half(saved, store_of_cut_film):
    model = load_model(saved.paths["attention"])
    lines = remarks(predict(model, [store_of_cut_film]), model, [store_of_cut_film])
    (on_partial_clips,) = [line for line in lines if "partial" in line]
    assert on_partial_clips.endswith(f"; less than half of 1 clip was read: {COUNTS_NOWHERE}")


def test_a_partial_clip_is_flagged(saved, clips_of_one_frame):
    assert predict(load_model(saved.paths["attention"]), [clips_of_one_frame]).has("partial").sum() == 1


def test_an_explanation_has_the_contribution_of_each_frame(saved):
    model = load_model(saved.paths["attention"])
    first_positive = int(np.flatnonzero(saved.is_positive)[0])
    explanation = explain(model, [saved.film], saved.film["toy"].clip_ids[first_positive], {})
    assert len(explanation.frames) == N_FRAMES
    assert list(explanation.frames[0]) == ["time_s", "weight", "evidence", "contribution"]
    total = sum(frame["contribution"] for frame in explanation.frames) + bias_of(model)
    assert total == pytest.approx(explanation.decision.logit, abs=1e-5)
    assert "contribution" in describe(explanation, model)


def test_attention_has_no_concepts_to_set(saved):
    with pytest.raises(ConceptError):
        explain(load_model(saved.paths["attention"]), [saved.film], "film3-c000", {"Body": 0.5})


@pytest.mark.parametrize("name", ["linear", "pcbm_lr"])
def test_predicting_frames_by_a_model_of_whole_clips_is_refused(saved, name):
    with pytest.raises(ModelError, match=name):
        predict_frames(load_model(saved.paths[name]), [saved.film])


@pytest.fixture
def store_without_frames(tmp_path):
    """Two pooled clips of film 9."""
    pooled = {"toy": {"pooled": np.zeros((2, N_FEATURES), np.float32)}}
    movie_of = {"film9-c000": "film9", "film9-c001": "film9"}
    return open_store(seal_arrays(tmp_path / "bare", movie_of, pooled, n_frames=N_FRAMES))


def test_a_store_without_frames_is_refused(saved, store_without_frames):
    with pytest.raises(ModelError, match=r"storage\.frames"):
        predict_frames(load_model(saved.paths["pcbm_time"]), [store_without_frames])


def test_a_dataset_without_frames_cannot_read_them(saved, store_without_frames, tmp_path):
    clips = (
        Clip("film9-c000", "film9", "film9.mp4", 0.0, 4.0, "S"),
        Clip("film9-c001", "film9", "film9.mp4", 0.0, 4.0, "S"),
    )
    data = load_dataset(store_without_frames, Manifest(clips, tmp_path, saved.data.codebook))
    with pytest.raises(DatasetError, match="frames"):
        data.read("frames")


def test_a_vector_of_two_frames_has_their_mean_time(tmp_path):
    """Eight frames, a second apart, give four vectors of two frames each."""
    four_vectors = pooled_and_frames(np.zeros((2, 4, 3), np.float32))
    store, _ = seal_films(tmp_path, four_vectors, movies=[0, 1], y=[0, 1], n_frames=8)
    times_of_first_clip, _ = frame_times(store["toy"], np.array([0, 1]))
    np.testing.assert_allclose(times_of_first_clip, [0.5, 2.5, 4.5, 6.5])


def small_units(seed):
    """Make a model of twelve units, directions learnt without labels, of which two are active in a frame."""
    return ConceptsUnlabelled("logistic", bank=UnitBank(12, 2, 4, random_state=seed), random_state=seed)


MODEL_OF_UNITS = replace(BUILTIN_MODELS["units"], compared_with=(), make=small_units)


@pytest.fixture(scope="module")
def units_file(saved, tmp_path_factory):
    """The file of a model of units."""
    run = evaluate(saved.data, [MODEL_OF_UNITS], "hn_s")
    return save_models(run, saved.data, ["units"], tmp_path_factory.mktemp("units"), models=[MODEL_OF_UNITS])[
        "units"
    ]


def test_a_model_of_units_that_was_loaded_is_saved_again_as_the_same_bytes(units_file, tmp_path):
    load_checking_round_trip(units_file, tmp_path)


def test_contributions_of_units_and_the_base_are_the_logit(saved, units_file):
    table = predict(load_model(units_file), [saved.film]).table.dropna(subset="p")
    contributions = [name for name in table if name.endswith("_contribution")]
    np.testing.assert_allclose(table[contributions].sum(axis=1), table["logit"], atol=1e-9)


def test_units_have_no_probabilities(saved, units_file):
    model = load_model(units_file)
    table = predict(model, [saved.film]).table
    frames = predict_frames(model, [saved.film])
    assert not [name for name in (*table, *frames) if name.endswith("_p")]
    clip_id = table.loc[table["p"].notna(), "clip_id"].iloc[0]
    explanation = explain(model, [saved.film], clip_id, {"unit2": 0.95})
    assert set(explanation.concept_p) == {None}
    assert describe(explanation, model)


def test_a_film_scored_by_a_model_of_units_has_neither_frames_nor_concepts(saved, units_file):
    film = score_film(saved.film, [units_file], movie="film3")
    assert film.frames.empty
    assert not film.record.models[0].concepts


@pytest.mark.parametrize("n_active", [13, "2", 0], ids=["more than the 12 units", "a text", "none"])
def test_a_file_with_a_number_of_active_units_that_cannot_be_is_refused(saved, n_active):
    y = (saved.data.levels == "S").astype(np.int64)
    estimator = fit(MODEL_OF_UNITS, 0, saved.data.read("frames"), y, movies=saved.data.movies).estimator
    state = to_state(estimator)
    card_of_other_model = load_model(saved.paths["pcbm_time"]).card
    card = msgspec.structs.replace(
        card_of_other_model,
        concepts=estimator.concepts_,
        parameters=state.parameters | {"n_active": n_active},
    )
    with pytest.raises(ModelError, match="active"):
        construct(ModelFile("toy.model", card, state.arrays, {}))
