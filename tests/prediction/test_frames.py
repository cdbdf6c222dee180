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
    """Models that learnt of the films 0, 1 and 2, and the film 3 that they have not seen."""

    # name of a model -> its file: attention, pcbm_lr, pcbm_time, linear, mean_frames and max_frames
    paths: dict[str, Path]
    data: Dataset  # the films that they learnt of
    film: Store  # store of the unseen film
    is_positive: np.ndarray  # labels of its clips, [clips]
    is_event: np.ndarray  # the frames with the planted event, [clips, frames]


def pooled_and_frames(X):
    """Make the arrays of a group from frames [N, F, D]."""
    return {"pooled": X.mean(axis=1), "frames": X}


@pytest.fixture(scope="module")
def models_and_unseen_film(tmp_path_factory):
    """Models of films with an event of two frames; every second clip is marked with the concept Body."""
    folder = tmp_path_factory.mktemp("frames")
    clips = planted_frames(
        n_movies=4, n_per_movie=30, n_frames=N_FRAMES, n_features=N_FEATURES, n_event=2, size=7.0
    )
    is_unseen = clips.movies == 3
    known = ~is_unseen
    concepts = [() if row % 2 == 0 else ("Body",) for row in range(known.sum())]
    films, manifest = seal_films(
        folder,
        pooled_and_frames(clips.X[known]),
        clips.movies[known],
        clips.y[known],
        n_frames=N_FRAMES,
        concepts=concepts,
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
        pooled_and_frames(clips.X[is_unseen]),
        clips.movies[is_unseen],
        clips.y[is_unseen],
        n_frames=N_FRAMES,
        name="unseen",
    )
    return SavedModels(paths, data, film, clips.y[is_unseen] == 1, clips.is_event[is_unseen])


def frames_of_unseen_film(saved):
    """Read the unseen film's frames, [clips, frames, features]."""
    return saved.film["toy"].frames()


KEPT_MODELS = ["attention", "pcbm_time", "mean_frames", "max_frames"]


@pytest.mark.long
@pytest.mark.parametrize("name", KEPT_MODELS)
def test_a_model_of_frames_that_was_loaded_is_saved_again_as_the_same_bytes(
    models_and_unseen_film, name, tmp_path
):
    """`models_and_unseen_film` holds models of four films, each in a file."""
    load_checking_round_trip(models_and_unseen_film.paths[name], tmp_path)


@pytest.mark.long
def test_in_an_unseen_film_the_frame_of_the_largest_weight_is_one_with_the_event(models_and_unseen_film):
    """Positive clips have an event in two of twelve frames. The film was not among those learnt of.

    By chance, one frame in six has the event; here at least nine in ten must have it.
    """
    model = load_model(models_and_unseen_film.paths["attention"])

    frames = predict_frames(model, [models_and_unseen_film.film])

    weights_of_clips = frames["weight"].to_numpy().reshape(-1, 12)  # [clips, frames]
    has_event = []
    for clip in np.flatnonzero(models_and_unseen_film.is_positive):
        frame_of_largest_weight = weights_of_clips[clip].argmax()
        has_event.append(models_and_unseen_film.is_event[clip, frame_of_largest_weight])
    assert np.mean(has_event) >= 0.9


def bias_of(model):
    """Return the bias of the logit of an attention model, its last parameter."""
    return model.estimator.parameters_[-1]


def test_the_contributions_of_a_clips_frames_and_a_bias_are_its_logit(models_and_unseen_film):
    """Of the film's 30 clips, a few are unlike any trained on: their frames have no contributions."""
    model = load_model(models_and_unseen_film.paths["attention"])

    logits = predict(model, [models_and_unseen_film.film]).table.set_index("clip_id")["logit"]
    frames = predict_frames(model, [models_and_unseen_film.film])

    assert tuple(frames.columns[: len(FRAME_COLUMNS)]) == FRAME_COLUMNS
    contributions = frames.dropna(subset="contribution").groupby("clip_id")["contribution"].sum()
    assert len(contributions) > 0.9 * 30
    np.testing.assert_allclose(contributions + bias_of(model), logits.loc[contributions.index], atol=1e-5)


def test_concepts_in_time_have_a_value_in_every_frame_and_no_weights(models_and_unseen_film):
    """pcbm_time decides by one concept, Body. The film has 30 clips of 12 frames each."""
    model = load_model(models_and_unseen_film.paths["pcbm_time"])

    frames = predict_frames(model, [models_and_unseen_film.film])

    assert len(frames) == 30 * 12
    assert frames["Body_value"].notna().all()
    assert frames["weight"].isna().all()


def test_the_contributions_of_concepts_in_time_and_the_base_are_the_logit(models_and_unseen_film):
    """pcbm_time decides by one concept, Body."""
    model = load_model(models_and_unseen_film.paths["pcbm_time"])

    table = predict(model, [models_and_unseen_film.film]).table

    like_training_clips = table.dropna(subset="Body_p")
    total = like_training_clips["Body_contribution"] + like_training_clips["base_contribution"]
    np.testing.assert_allclose(total, like_training_clips["logit"], atol=1e-9)


def test_the_value_of_a_concept_in_a_clip_of_one_frame_is_that_of_the_frame(models_and_unseen_film):
    """pcbm_time decides by one concept, whose value in a clip is a soft maximum over its frames."""
    model = load_model(models_and_unseen_film.paths["pcbm_time"])
    clip_of_one_frame = frames_of_unseen_film(models_and_unseen_film)[:1, :1].astype(np.float32)

    values_of_frames = model.estimator.frame_values(clip_of_one_frame)
    values_of_clip = model.concept_values(clip_of_one_frame)

    np.testing.assert_allclose(values_of_frames[:, 0], values_of_clip)


def test_an_explanation_has_the_concepts_of_each_frame(models_and_unseen_film):
    """The model decides by one concept, Body; a clip is explained that is like those it was trained on."""
    model = load_model(models_and_unseen_film.paths["pcbm_time"])
    table = predict(model, [models_and_unseen_film.film]).table
    clip_id = table.dropna(subset="Body_p")["clip_id"].iloc[0]

    explanation = explain(model, [models_and_unseen_film.film], clip_id, set_to={"Body": 0.95})

    assert list(explanation.frames[0]) == ["time_s", "Body_value", "Body_p"]
    lines = describe(explanation, model).splitlines()
    for frame in explanation.frames:
        assert f"{frame['time_s']:6.2f}  {frame['Body_p']:.3f}" in lines
    assert any(line.startswith("With Body at quantile 0.95: called") for line in lines)


def test_a_film_scored_by_concepts_in_time_has_them_in_frames_and_in_clips(models_and_unseen_film):
    """pcbm_time decides by the concept Body in each frame."""
    film = score_film(models_and_unseen_film.film, [models_and_unseen_film.paths["pcbm_time"]], movie="film3")

    assert film.frames["Body_p"].notna().any()
    assert film.rows()["Body_contribution"].notna().any()


def test_a_film_scored_by_a_model_of_whole_clips_has_no_values_of_single_frames(models_and_unseen_film):
    """`frames` of a scored film is a table of what each frame of a clip adds to the score.

    The model pcbm_lr decides by concept values of one vector a clip, so that it says nothing of frames.
    """
    path = models_and_unseen_film.paths["pcbm_lr"]

    film = score_film(models_and_unseen_film.film, [path], movie="film3")

    assert film.frames.empty


def test_a_scored_film_says_how_the_score_changes_where_a_concept_is_absent(models_and_unseen_film):
    """The record of a scored film has for each concept the number `absent`.

    It is the score of a clip with as little Body as 5 % of the training clips have (quantile .05), less the
    score of the same clip with their mean value. Here the score falls where Body is absent. The model is
    pcbm_lr, of whole clips; the difference is the same for every clip, so a clip of zeros is asked about.
    """
    path = models_and_unseen_film.paths["pcbm_lr"]
    model = load_model(path)
    clip = np.zeros((1, N_FEATURES), np.float32)
    (score_without_body,) = model.intervene(clip, {"Body": 0.05})
    (score_with_usual_body,) = model.estimator.logits_at_usual(clip, "Body")[0]

    film = score_film(models_and_unseen_film.film, [path], movie="film3")

    (body,) = film.record.models[0].concepts
    assert body.absent == pytest.approx(score_without_body - score_with_usual_body)
    assert body.absent < -0.1


@pytest.mark.parametrize(
    ("name", "pool"), [("mean_frames", np.mean), ("max_frames", np.max)], ids=["mean", "max"]
)
def test_a_probe_on_pooled_frames_scores_the_mean_or_the_maximum_of_each_feature(
    models_and_unseen_film, name, pool
):
    """The probe is a pipeline of three steps: it pools the frames of a clip, scales features, and scores.

    Here frames are pooled by hand, and the two other steps are those of the probe.
    """
    model = load_model(models_and_unseen_film.paths[name])
    _pooling, scaler, head = [step for _name_of_step, step in model.estimator.steps]
    pooled = pool(frames_of_unseen_film(models_and_unseen_film), axis=1).astype(np.float64)
    expected = head.decision_function(scaler.transform(pooled))

    logits = predict(model, [models_and_unseen_film.film]).table.set_index("clip_id")["logit"]

    clip_ids = list(models_and_unseen_film.film["toy"].clip_ids)
    np.testing.assert_allclose(logits.loc[clip_ids], expected, atol=1e-5)


@pytest.mark.parametrize("name", ["attention", "mean_frames", "max_frames"])
def test_a_clip_whose_last_frames_are_absent_is_scored_as_its_first_seven_frames(
    models_and_unseen_film, name
):
    """Of the twelve frames of a clip, the last five are NaN."""
    model = load_model(models_and_unseen_film.paths[name])
    seven_frames = frames_of_unseen_film(models_and_unseen_film)[:1, :7]
    rest_absent = frames_of_unseen_film(models_and_unseen_film)[:1].copy()
    rest_absent[:, 7:] = np.nan

    np.testing.assert_allclose(model.logits(rest_absent), model.logits(seven_frames), rtol=1e-5)
    np.testing.assert_allclose(
        model.out_of_distribution_share(rest_absent), model.out_of_distribution_share(seven_frames)
    )


def test_absent_frames_have_the_weight_zero(models_and_unseen_film):
    """Of the twelve frames of a clip, the last five are NaN."""
    model = load_model(models_and_unseen_film.paths["attention"])
    rest_absent = frames_of_unseen_film(models_and_unseen_film)[:1].copy()
    rest_absent[:, 7:] = np.nan

    weights = model.estimator.weights(rest_absent)

    assert (weights[:, 7:] == 0).all()


def store_of_single_frames(folder):
    """Keep a store of six clips of one frame each, c0 to c5 of two films, of which c1 of film0 is partial."""
    clips = planted_frames(n_movies=2, n_per_movie=3, n_frames=1, n_features=N_FEATURES, n_event=0, seed=5)
    path = seal_arrays(
        folder / "clips_of_one_frame",
        {f"film{movie}-c{clip}": f"film{movie}" for clip, movie in enumerate(clips.movies)},
        {"toy": {"pooled": clips.X[:, 0], "frames": clips.X}},
        n_frames=1,
        partial={"film0-c1": "the file was cut off"},
        sampling={"policy": "uniform", "n": N_FRAMES},
    )
    return open_store(path)


def test_the_only_frame_of_a_clip_has_the_weight_1(models_and_unseen_film, tmp_path):
    """A model of attention sums frames by weights that add up to 1. Clips have one frame each."""
    store = store_of_single_frames(tmp_path)
    model = load_model(models_and_unseen_film.paths["attention"])

    predictions = predict(model, [store])
    frames = predict_frames(model, [store])

    assert predictions.table["logit"].notna().all()
    assert (frames["weight"].dropna() == 1).all()


def test_a_clip_that_was_read_in_part_is_flagged_and_its_explanation_says_why(
    models_and_unseen_film, tmp_path
):
    """Of six clips, c1 of film0 is partial, and c0 is whole."""
    store = store_of_single_frames(tmp_path)
    model = load_model(models_and_unseen_film.paths["attention"])

    predictions = predict(model, [store])
    of_partial = describe(explain(model, [store], "film0-c1", set_to={}), model)
    of_whole = describe(explain(model, [store], "film0-c0", set_to={}), model)

    assert predictions.has("partial").sum() == 1
    assert "read in part: the file was cut off." in of_partial
    assert "read in part" not in of_whole


def store_of_clips_cut_off(folder):
    """Three clips of 8 s of one film, of one frame each.

    "whole" has all pictures, "mostly_read" none in its last second, "hardly_read" none in its last 4.04 s.
    """
    clips = planted_frames(n_movies=1, n_per_movie=3, n_frames=1, n_features=N_FEATURES, n_event=0, seed=5)
    path = seal_arrays(
        folder / "cut",
        {"whole": "film", "mostly_read": "film", "hardly_read": "film"},
        {"toy": {"pooled": clips.X[:, 0], "frames": clips.X}},
        n_frames=1,
        partial=dict.fromkeys(["mostly_read", "hardly_read"], "the file is cut off"),
        without_pictures_s={"mostly_read": [(15.0, 16.0)], "hardly_read": [(19.96, 24.0)]},
        spans={"whole": (0.0, 8.0), "mostly_read": (8.0, 16.0), "hardly_read": (16.0, 24.0)},
        sampling={"policy": "uniform", "n": N_FRAMES},
    )
    return open_store(path)


def test_an_explanation_says_that_a_clip_read_by_less_than_half_counts_nowhere(
    models_and_unseen_film, tmp_path
):
    """Of three clips of 8 s, one has no pictures in its last second, and one none in its last 4.04 s.

    A window of a film of which less than half was read does not count in the film's figures; that is said
    before the model's score.
    """
    store = store_of_clips_cut_off(tmp_path)
    model = load_model(models_and_unseen_film.paths["attention"])

    of_hardly_read = describe(explain(model, [store], "hardly_read", set_to={}), model)
    of_mostly_read = describe(explain(model, [store], "mostly_read", set_to={}), model)

    counts_nowhere = "such a window counts nowhere in a scored film"
    hardly_read = f"4.04 of its 8 s have no pictures: less than half was read, and {counts_nowhere}."
    assert hardly_read in of_hardly_read
    assert of_hardly_read.index(counts_nowhere) < of_hardly_read.index("logit")
    assert "1 of its 8 s have no pictures." in of_mostly_read
    assert counts_nowhere not in of_mostly_read


def test_remarks_count_the_clips_read_by_less_than_half(models_and_unseen_film, tmp_path):
    """Of three clips of 8 s, one has no pictures in its last second, and one none in its last 4.04 s."""
    store = store_of_clips_cut_off(tmp_path)
    model = load_model(models_and_unseen_film.paths["attention"])

    lines = remarks(predict(model, [store]), model, [store])

    (on_partial_clips,) = [line for line in lines if "partial" in line]
    less_than_half = "less than half of 1 clip was read: such a window counts nowhere in a scored film"
    assert on_partial_clips.endswith(f"; {less_than_half}")


def first_positive_clip(saved):
    """Return the id of the unseen film's first positive clip."""
    row = int(np.flatnonzero(saved.is_positive)[0])
    return saved.film["toy"].clip_ids[row]


def test_setting_a_concept_of_a_model_without_concepts_is_refused(models_and_unseen_film):
    """A model of attention decides by frames, not by concepts such as Body."""
    model = load_model(models_and_unseen_film.paths["attention"])

    with pytest.raises(ConceptError):
        explain(
            model,
            [models_and_unseen_film.film],
            first_positive_clip(models_and_unseen_film),
            set_to={"Body": 0.5},
        )


def test_an_explanation_has_the_contribution_of_each_frame(models_and_unseen_film):
    """A clip has twelve frames; their contributions and the model's bias add up to the logit."""
    model = load_model(models_and_unseen_film.paths["attention"])

    explanation = explain(
        model, [models_and_unseen_film.film], first_positive_clip(models_and_unseen_film), set_to={}
    )

    assert len(explanation.frames) == 12
    assert list(explanation.frames[0]) == ["time_s", "weight", "evidence", "contribution"]
    total = sum(frame["contribution"] for frame in explanation.frames) + bias_of(model)
    assert total == pytest.approx(explanation.decision.logit, abs=1e-5)
    assert "contribution" in describe(explanation, model)


@pytest.mark.parametrize("name", ["linear", "pcbm_lr"])
def test_predicting_frames_by_a_model_of_whole_clips_is_refused(models_and_unseen_film, name):
    """The message names the model."""
    model = load_model(models_and_unseen_film.paths[name])

    with pytest.raises(ModelError, match=name):
        predict_frames(model, [models_and_unseen_film.film])


def store_without_frames(folder):
    """Keep a store of two clips of film9, which has one vector a clip and no frames."""
    pooled = {"toy": {"pooled": np.zeros((2, N_FEATURES), np.float32)}}
    movie_of_clip = {"film9-c000": "film9", "film9-c001": "film9"}
    return open_store(seal_arrays(folder / "bare", movie_of_clip, pooled, n_frames=N_FRAMES))


def test_predicting_frames_of_a_store_without_frames_is_refused(models_and_unseen_film, tmp_path):
    """The message names what the store lacks, and what it has."""
    model = load_model(models_and_unseen_film.paths["pcbm_time"])
    store = store_without_frames(tmp_path)

    with pytest.raises(ModelError, match=r"has no frames features of toy, .* but pooled"):
        predict_frames(model, [store])


def test_reading_frames_of_a_store_without_frames_is_refused(models_and_unseen_film, tmp_path):
    """The store has one vector a clip."""
    store = store_without_frames(tmp_path)
    clips = tuple(
        Clip(clip_id, "film9", "film9.mp4", start_s=0.0, end_s=4.0, level="S")
        for clip_id in store["toy"].clip_ids
    )
    data = load_dataset(store, Manifest(clips, tmp_path, models_and_unseen_film.data.codebook))

    with pytest.raises(DatasetError, match="frames"):
        data.read("frames")


def test_a_vector_of_two_frames_has_their_mean_time(tmp_path):
    """Eight frames, at 0, 1, ... 7 s, give four vectors, of 0 and 1 s, of 2 and 3 s, and so on."""
    n_clips, n_vectors, n_features = 2, 4, 3
    four_vectors = pooled_and_frames(np.zeros((n_clips, n_vectors, n_features), np.float32))
    store, _ = seal_films(tmp_path, four_vectors, movies=[0, 1], y=[0, 1], n_frames=8)

    times_of_first_clip, _ = frame_times(store["toy"], np.array([0, 1]))

    np.testing.assert_allclose(times_of_first_clip, [0.5, 2.5, 4.5, 6.5])


def small_units(seed):
    """Make a model of twelve units, directions learnt without labels, of which two are active in a frame."""
    return ConceptsUnlabelled(
        "logistic", bank=UnitBank(n_units=12, n_active=2, n_epochs=4, random_state=seed), random_state=seed
    )


MODEL_OF_UNITS = replace(BUILTIN_MODELS["units"], compared_with=(), make=small_units)


@pytest.fixture(scope="module")
def path_of_model_of_units(models_and_unseen_film, tmp_path_factory):
    """The file of a model of twelve units, directions that are learnt without labels."""
    run = evaluate(models_and_unseen_film.data, [MODEL_OF_UNITS], "hn_s")
    folder = tmp_path_factory.mktemp("units")
    return save_models(run, models_and_unseen_film.data, ["units"], folder, models=[MODEL_OF_UNITS])["units"]


def test_a_model_of_units_that_was_loaded_is_saved_again_as_the_same_bytes(path_of_model_of_units, tmp_path):
    """The model decides by twelve units: directions that it learnt without labels."""
    load_checking_round_trip(path_of_model_of_units, tmp_path)


def test_contributions_of_units_to_a_clip_add_up_to_its_logit(models_and_unseen_film, path_of_model_of_units):
    """A model decides by twelve units, directions that it learnt without labels, on a film it hasn't seen.

    For each clip and unit, a column "..._contribution" says what the unit adds to the clip's logit.
    """
    model = load_model(path_of_model_of_units)

    table = predict(model, [models_and_unseen_film.film]).table

    clips_with_features = table.dropna(subset="p")
    contributions = [column for column in table if column.endswith("_contribution")]
    sums = clips_with_features[contributions].sum(axis=1)
    np.testing.assert_allclose(sums, clips_with_features["logit"], atol=1e-9)


def test_predictions_by_units_have_no_probability_of_a_unit(models_and_unseen_film, path_of_model_of_units):
    """Units are directions that are learnt without labels, so that nobody knows how probable one is.

    A concept that was learnt with labels has a column "..._p" with its probability, of clips or of frames.
    """
    model = load_model(path_of_model_of_units)

    table_of_clips = predict(model, [models_and_unseen_film.film]).table
    table_of_frames = predict_frames(model, [models_and_unseen_film.film])

    columns = [*table_of_clips, *table_of_frames]
    assert [column for column in columns if column.endswith("_p")] == []


@pytest.fixture
def explained_by_units(models_and_unseen_film, path_of_model_of_units):
    """How a model of units explains its decision on the first clip of a film that it hasn't seen.

    Unit2 is also set to the value that 95 % of training clips are below, to see what the model would say.
    """
    model = load_model(path_of_model_of_units)
    table = predict(model, [models_and_unseen_film.film]).table
    first_clip = table.dropna(subset="p")["clip_id"].iloc[0]
    return explain(model, [models_and_unseen_film.film], first_clip, set_to={"unit2": 0.95})


def test_the_description_of_a_decision_by_units_has_their_values_in_time_and_that_of_one_set_by_hand(
    explained_by_units, path_of_model_of_units
):
    """Units are directions that a model learnt without labels. Unit2 is set to its .95 quantile by hand."""
    description = describe(explained_by_units, load_model(path_of_model_of_units))

    assert "time s  value of" in description
    assert "With unit2 at quantile 0.95: called" in description


def test_no_unit_is_said_to_be_seen_in_a_clip(explained_by_units, path_of_model_of_units):
    """A concept is seen where its probability reaches a threshold. Units have neither, without labels."""
    assert set(explained_by_units.concept_p) == {None}
    assert "seen: " not in describe(explained_by_units, load_model(path_of_model_of_units))


def test_a_film_scored_by_a_model_of_units_has_neither_values_of_frames_nor_of_concepts(
    models_and_unseen_film, path_of_model_of_units
):
    """Units are directions that a model learnt without labels: they have no meaning that could be shown.

    So a scored film has no table of what units add in single frames, and its record lists no concepts.
    """
    film = score_film(models_and_unseen_film.film, [path_of_model_of_units], movie="film3")

    assert film.frames.empty
    assert not film.record.models[0].concepts


def file_of_units_with(n_active, saved):
    """A model of twelve units as its file would hold it, but for the number of active units in its card."""
    y = (saved.data.levels == "S").astype(np.int64)
    estimator = fit(
        MODEL_OF_UNITS, seed=0, X=saved.data.read("frames"), y=y, movies=saved.data.movies
    ).estimator
    state = to_state(estimator)
    card_of_other_model = load_model(saved.paths["pcbm_time"]).card
    card = msgspec.structs.replace(
        card_of_other_model,
        concepts=estimator.concepts_,
        parameters=state.parameters | {"n_active": n_active},
    )
    return ModelFile("toy.model", card, state.arrays, {})


@pytest.mark.parametrize("n_active", [13, "2", 0], ids=["more than the 12 units", "a text", "none"])
def test_a_file_with_a_number_of_active_units_that_cannot_be_is_refused(models_and_unseen_film, n_active):
    """A model has twelve units, of which in each frame the same number are active, from 1 to 12.

    The file says otherwise.
    """
    file = file_of_units_with(n_active, models_and_unseen_film)

    with pytest.raises(ModelError, match="active"):
        construct(file)
