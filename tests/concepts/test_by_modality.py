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
N_UNHEARD = 60
EYES, EARS = slice(0, 5), slice(5, 10)
"""Columns of the features of what is seen and of what is heard."""
BODY_FEATURE, MUSIC_FEATURE = 0, 1
"""The feature of the eyes that a body moves, and the one of the ears that music moves."""


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
    eyes[:, BODY_FEATURE] += 4 * has_body
    ears[:, MUSIC_FEATURE] += 4 * has_music
    frames = rng.normal(size=(n, 3, 5)).astype(np.float32)
    frames[:, 2, BODY_FEATURE] += 4 * has_body
    n_heard = n - N_UNHEARD

    def sealed(name, n_clips, arrays):
        movie_of = {clip.clip_id: clip.movie for clip in clips[:n_clips]}
        return of.open_store(seal_arrays(folder / name, movie_of, {name: arrays}, n_frames=3))

    stores = [
        sealed("eyes", n, {"pooled": eyes, "frames": frames}),
        sealed("ears", n_heard, {"pooled": ears[:n_heard]}),
    ]
    return om.load_dataset(stores, of.Manifest(tuple(clips), folder)).named(["visual", "heard"])


@pytest.mark.long  # simulates
def test_concepts_of_both_modalities_tell_the_level_better_than_those_of_either_alone(data):
    run = om.evaluate(data, om.fused_by_concepts(data), "en_s")
    aucs = run.metrics[run.metrics["metric"] == "auc"].set_index("model")["movie_mean"]
    best_alone = max(aucs["concepts:visual"], aucs["concepts:heard"])
    assert 0.65 < best_alone < 0.9
    assert aucs["concepts"] > best_alone + 0.05


@pytest.fixture(scope="module")
def y(data):
    """Whether clips are of level S."""
    return (data.levels == "S").astype(np.int64)


def feature_of_largest_weight(weights):
    return int(np.argmax(np.abs(weights)))


@pytest.mark.long
def test_each_concept_is_learnt_from_the_features_of_its_own_modality(data, y):
    spec_of_both, *_of_each = om.fused_by_concepts(data)
    model = spec_of_both.make(0).fit(data.X, y, data.movies, present=data.present)

    (columns_of_visual, visual_bank), (columns_of_heard, heard_bank) = model.banks_
    assert (columns_of_visual, columns_of_heard) == (EYES, EARS)
    (weights_of_body,) = visual_bank.hyperplanes_.weights
    (weights_of_soundtrack,) = heard_bank.hyperplanes_.weights
    assert feature_of_largest_weight(weights_of_body) == BODY_FEATURE
    assert feature_of_largest_weight(weights_of_soundtrack) == MUSIC_FEATURE
    is_unheard = np.isnan(data.X[:, EARS]).all(axis=1)
    assert is_unheard.sum() == N_UNHEARD
    assert np.isfinite(model.decision_function(data.X[is_unheard])).all()


@pytest.mark.parametrize(("in_time", "name"), [(False, "concepts"), (True, "concepts_in_time")])
def test_the_model_of_all_concepts_is_evaluated_beside_one_of_each_modality(data, in_time, name):
    names = [spec.name for spec in om.fused_by_concepts(data, in_time=in_time)]
    assert names == [name, f"{name}:visual", f"{name}:heard"]


def test_a_modality_of_one_vector_a_clip_has_this_vector_as_first_frame_and_no_other_frame(data):
    frames = data.read("frames")
    assert frames.shape == (len(data), 3, 5 + 5)
    np.testing.assert_array_equal(frames[:, 0, EARS], data.X[:, EARS])
    assert np.isnan(frames[:, 1:, EARS]).all()
    some_clips = np.arange(100, 0, -3)
    np.testing.assert_array_equal(data.take(some_clips).read("frames"), frames[some_clips])


def test_concepts_are_found_in_frames_of_their_modality_and_tell_a_new_film_together_better(data, y):
    spec_of_both, spec_of_visual, _ = om.fused_by_concepts(data, in_time=True)
    frames = data.read("frames")
    is_new = data.movies == "f5"

    def fitted_without_new_film(spec):
        model = spec.make(0)
        return model.fit(frames[~is_new], y[~is_new], data.movies[~is_new], present=data.present[~is_new])

    of_both = fitted_without_new_film(spec_of_both)
    of_visual = fitted_without_new_film(spec_of_visual)

    (_, visual_bank), (_, heard_bank) = of_both.banks_
    (weights_of_body,) = visual_bank.weights_
    (weights_of_soundtrack,) = heard_bank.weights_
    assert feature_of_largest_weight(weights_of_body) == BODY_FEATURE
    assert feature_of_largest_weight(weights_of_soundtrack) == MUSIC_FEATURE
    auc_of_both = auc(y[is_new], of_both.decision_function(frames[is_new]))
    auc_of_visual = auc(y[is_new], of_visual.decision_function(frames[is_new]))
    assert auc_of_both > auc_of_visual > 0.6


def test_clips_that_are_not_in_the_task_teach_concepts_but_not_the_level(data, y):
    spec_of_both, *_of_each = om.fused_by_concepts(data)
    in_task = data.movies != "f5"
    not_asked = -1  # the label of clips that are not in the task
    with_others = spec_of_both.make(0)
    with_others.fit(data.X, np.where(in_task, y, not_asked), data.movies, present=data.present)
    of_task = spec_of_both.make(0)
    of_task.fit(data.X[in_task], y[in_task], data.movies[in_task], present=data.present[in_task])

    def weights_of_body(model):
        (_, visual_bank), _ = model.banks_
        return visual_bank.hyperplanes_.weights

    assert not np.array_equal(weights_of_body(with_others), weights_of_body(of_task))
    assert len(with_others.head_.held_out_.scores) == in_task.sum()


def test_a_store_that_does_not_say_whether_it_is_seen_or_heard_is_refused(data):
    modalities = data.named(["visual", "ears"]).modalities
    without_provenance = tuple(replace(modality, provenance={}) for modality in modalities)
    with pytest.raises(ModelError, match="heard=STORE"):
        om.fused_by_concepts(replace(data, modalities=without_provenance))
