"""Each concept is learnt from what conveys it, and one model decides by all of them."""

from dataclasses import replace

import numpy as np
import pytest

import obygaze_features as of
import obygaze_models as om
from obygaze_features.store.testing import seal_arrays
from obygaze_models.errors import ModelError
from obygaze_models.evaluation import auc

FILMS, PER_FILM = [f"f{k}" for k in range(6)], 50
NOT_HEARD = 60


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A body is seen and a soundtrack heard; a clip is of level S where one of them is there.

    The last clips are not heard. The eyes alone keep frames: a body is in the last of three.
    """
    folder = tmp_path_factory.mktemp("conveyed")
    rng = np.random.default_rng(0)
    n = len(FILMS) * PER_FILM
    has_body, has_music = rng.random((2, n)) < 0.35
    clips = []
    for row in range(n):
        concepts = []
        if has_body[row]:
            concepts.append("Body")
        if has_music[row]:
            concepts.append("Soundtrack")
        film = FILMS[row % len(FILMS)]
        level = "S" if concepts else "EN"
        clips.append(of.Clip(f"c{row:03}", film, "", level=level, concepts=tuple(concepts)))
    eyes = rng.normal(size=(n, 5)).astype(np.float32)
    ears = rng.normal(size=(n, 5)).astype(np.float32)
    eyes[:, 0] += 4 * has_body
    ears[:, 1] += 4 * has_music
    frames = rng.normal(size=(n, 3, 5)).astype(np.float32)
    frames[:, 2, 0] += 4 * has_body
    n_heard = n - NOT_HEARD

    def sealed(name, n_clips, arrays):
        movie_of = {clip.clip_id: clip.movie for clip in clips[:n_clips]}
        return of.open_store(seal_arrays(folder / name, movie_of, {name: arrays}, n_frames=3))

    stores = [
        sealed("eyes", n, {"pooled": eyes, "frames": frames}),
        sealed("ears", n_heard, {"pooled": ears[:n_heard]}),
    ]
    return om.load_dataset(stores, of.Manifest(tuple(clips), folder)).named(["visual", "heard"])


@pytest.mark.long  # simulates
def test_concepts_of_both_modalities_are_worth_more_than_of_each(data):
    run = om.evaluate(data, om.fused_by_concepts(data), "en_s")
    aucs = run.metrics[run.metrics["metric"] == "auc"].set_index("model")["movie_mean"]
    best_alone = max(aucs["concepts:visual"], aucs["concepts:heard"])
    assert 0.65 < best_alone < 0.9
    assert aucs["concepts"] > best_alone + 0.05


def test_a_concept_is_learnt_from_its_own_modality_alone(data):
    (spec, *_) = om.fused_by_concepts(data)
    y = (data.levels == "S").astype(np.int64)
    model = spec.make(0).fit(data.X, y, data.movies, present=data.present)
    (eyes, by_eye), (ears, by_ear) = model.banks_
    assert (eyes, ears) == (slice(0, 5), slice(5, 10))
    assert len(by_eye.concepts_) == len(by_ear.concepts_) == 1
    assert np.argmax(np.abs(by_eye.hyperplanes_.weights[0])) == 0
    assert np.argmax(np.abs(by_ear.hyperplanes_.weights[0])) == 1


def test_clips_that_are_not_heard_have_a_score(data):
    (spec, *_) = om.fused_by_concepts(data)
    y = (data.levels == "S").astype(np.int64)
    model = spec.make(0).fit(data.X, y, data.movies, present=data.present)
    assert np.isnan(data.X[:, 5]).sum() == NOT_HEARD
    assert np.isfinite(model.decision_function(data.X)).all()


def test_models_of_each_modality_stand_beside_that_of_all(data):
    names = [spec.name for spec in om.fused_by_concepts(data)]
    assert names == ["concepts", "concepts:visual", "concepts:heard"]
    names_in_time = [spec.name for spec in om.fused_by_concepts(data, in_time=True)]
    assert names_in_time == ["concepts_in_time", "concepts_in_time:visual", "concepts_in_time:heard"]


def test_frames_of_modalities_stand_side_by_side(data):
    frames = data.read("frames")
    assert frames.shape == (len(data), 3, 10)
    assert np.isnan(frames[:, 1:, 5:]).all()  # what the ears have is one vector a clip
    some_clips = np.arange(100, 0, -3)
    np.testing.assert_array_equal(data.take(some_clips).read("frames"), frames[some_clips])


def test_concepts_are_found_in_frames_of_their_modality(data):
    (spec, *_) = om.fused_by_concepts(data, in_time=True)
    y = (data.levels == "S").astype(np.int64)
    model = spec.make(0).fit(data.read("frames"), y, data.movies, present=data.present)
    (_, by_eye), (_, by_ear) = model.banks_
    assert np.argmax(np.abs(by_eye.weights_[0])) == 0
    assert np.argmax(np.abs(by_ear.weights_[0])) == 1


def test_concepts_in_frames_of_both_modalities_are_worth_more_than_of_one(data):
    (of_both, of_visual, _) = om.fused_by_concepts(data, in_time=True)
    frames = data.read("frames")
    y = (data.levels == "S").astype(np.int64)
    train = data.movies != "f5"

    def auc_on_new_film(spec):
        model = spec.make(0)
        model.fit(frames[train], y[train], data.movies[train], present=data.present[train])
        return auc(y[~train], model.decision_function(frames[~train]))

    assert auc_on_new_film(of_both) > auc_on_new_film(of_visual) > 0.6


def test_clips_out_of_the_task_teach_concepts_alone(data):
    (spec, *_) = om.fused_by_concepts(data)
    y = (data.levels == "S").astype(np.int64)
    in_task = data.movies != "f5"
    of_all = spec.make(0).fit(data.X, np.where(in_task, y, -1), data.movies, present=data.present)
    X, movies, present = data.X[in_task], data.movies[in_task], data.present[in_task]
    of_task = spec.make(0).fit(X, y[in_task], movies, present=present)
    (_, bank_of_all), _ = of_all.banks_
    (_, bank_of_task), _ = of_task.banks_
    assert not np.array_equal(bank_of_all.hyperplanes_.weights, bank_of_task.hyperplanes_.weights)
    assert len(of_all.head_.held_out_.scores) == len(of_task.head_.held_out_.scores)


def test_a_store_that_perceives_nobody_knows_what_is_refused(data):
    modalities = data.named(["visual", "ears"]).modalities
    without_provenance = tuple(replace(modality, provenance={}) for modality in modalities)
    with pytest.raises(ModelError, match="heard=STORE"):
        om.fused_by_concepts(replace(data, modalities=without_provenance))
