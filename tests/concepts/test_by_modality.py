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


@pytest.fixture(scope="module")
def seen_and_heard_clips(tmp_path_factory):
    """A body is seen and a soundtrack heard; a clip is of level S where one of them is there.

    The first five features are of what is seen, of which a body moves the first; the others are of what is
    heard, of which music moves the second. The last 60 clips are not heard. The eyes alone keep frames: a
    body is in the last of three.
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
    n_heard = n - 60

    def make_sealed_store(name, n_clips, arrays):
        movie_of = {clip.clip_id: clip.movie for clip in clips[:n_clips]}
        return of.open_store(seal_arrays(folder / name, movie_of, {name: arrays}, n_frames=3))

    stores = [
        make_sealed_store("eyes", n, {"pooled": eyes, "frames": frames}),
        make_sealed_store("ears", n_heard, {"pooled": ears[:n_heard]}),
    ]
    return om.load_dataset(stores, of.Manifest(tuple(clips), folder)).named(["visual", "heard"])


@pytest.mark.long  # simulates
def test_concepts_of_both_modalities_tell_the_level_better_than_those_of_either_alone(seen_and_heard_clips):
    """A clip is S if a body is seen or music is heard, so that the concepts of eyes, or ears, miss half of S.

    Alone they tell the level better than chance, but not well (AUC of .65 to .9). Together they must be
    clearly better than the better one of them.
    """
    run = om.evaluate(seen_and_heard_clips, om.fused_by_concepts(seen_and_heard_clips), "en_s")

    aucs = run.metrics[run.metrics["metric"] == "auc"].set_index("model")["movie_mean"]
    best_alone = max(aucs["concepts:visual"], aucs["concepts:heard"])
    assert 0.65 < best_alone < 0.9
    assert aucs["concepts"] > best_alone + 0.05


@pytest.fixture(scope="module")
def is_s(seen_and_heard_clips):
    """Whether clips are of level S, as 1 or 0."""
    return (seen_and_heard_clips.levels == "S").astype(np.int64)


def feature_of_largest_weight(weights):
    return int(np.argmax(np.abs(weights)))


def fit_concepts_of_both_modalities(data, is_s):
    """Fit the model that decides by the concepts of pictures and of sound together."""
    spec_of_both, _spec_of_visual, _spec_of_heard = om.fused_by_concepts(data)
    return spec_of_both.make(0).fit(data.X, is_s, data.movies, present=data.present)


@pytest.mark.long
def test_each_concept_is_learnt_from_the_features_of_its_own_modality(seen_and_heard_clips, is_s):
    """Columns 0 to 4 are of what is seen, 5 to 9 of what is heard.

    A body moves the first feature of what is seen, music the second of what is heard.
    """
    model = fit_concepts_of_both_modalities(seen_and_heard_clips, is_s)

    (columns_of_visual, visual_bank), (columns_of_heard, heard_bank) = model.banks_
    assert columns_of_visual == slice(0, 5)
    assert columns_of_heard == slice(5, 10)
    (weights_of_body,) = visual_bank.hyperplanes_.weights
    (weights_of_soundtrack,) = heard_bank.hyperplanes_.weights
    assert feature_of_largest_weight(weights_of_body) == 0
    assert feature_of_largest_weight(weights_of_soundtrack) == 1


@pytest.mark.long
def test_clips_without_features_of_sound_are_scored_by_what_is_seen(seen_and_heard_clips, is_s):
    """A model reads what is seen and what is heard; 60 clips have no sound, and NaN as its features."""
    model = fit_concepts_of_both_modalities(seen_and_heard_clips, is_s)
    features_of_sound = seen_and_heard_clips.X[:, 5:10]
    is_unheard = np.isnan(features_of_sound).all(axis=1)
    assert is_unheard.sum() == 60

    scores = model.decision_function(seen_and_heard_clips.X[is_unheard])

    assert np.isfinite(scores).all()


@pytest.mark.parametrize(("in_time", "name"), [(False, "concepts"), (True, "concepts_in_time")])
def test_the_model_of_all_concepts_is_evaluated_beside_one_of_each_modality(
    seen_and_heard_clips, in_time, name
):
    """Clips have two modalities, visual and heard. There is a model of both, and one of either alone."""
    specs = om.fused_by_concepts(seen_and_heard_clips, in_time=in_time)

    assert [spec.name for spec in specs] == [name, f"{name}:visual", f"{name}:heard"]


def test_a_modality_without_frames_has_its_vector_of_a_clip_in_the_first_frame_and_nan_in_others(
    seen_and_heard_clips,
):
    """Two modalities of five features each are read together, frame by frame.

    What is seen (features 0 to 4) has three frames a clip. What is heard (features 5 to 9) has one vector a
    clip, which stands in the first frame.
    """
    n_clips, n_frames, n_features_seen, n_features_heard = len(seen_and_heard_clips), 3, 5, 5

    frames = seen_and_heard_clips.read("frames")

    assert frames.shape == (n_clips, n_frames, n_features_seen + n_features_heard)
    heard_in_frames = frames[:, :, n_features_seen:]
    vector_of_sound = seen_and_heard_clips.X[:, n_features_seen:]
    np.testing.assert_array_equal(heard_in_frames[:, 0], vector_of_sound)
    assert np.isnan(heard_in_frames[:, 1:]).all()


def test_frames_of_two_modalities_are_read_in_the_order_in_which_clips_are_taken(seen_and_heard_clips):
    """Clips 100, 97, ... 1 are taken, and their frames must be those of these clips in this order."""
    frames = seen_and_heard_clips.read("frames")
    every_third_backwards = np.arange(100, 0, -3)

    frames_of_taken = seen_and_heard_clips.take(every_third_backwards).read("frames")

    np.testing.assert_array_equal(frames_of_taken, frames[every_third_backwards])


def fit_without_film_f5(spec, data, is_s):
    """Fit a model on the frames of all films but f5."""
    is_known = data.movies != "f5"
    frames = data.read("frames")[is_known]
    model = spec.make(0)
    return model.fit(frames, is_s[is_known], data.movies[is_known], present=data.present[is_known])


def test_each_concept_in_time_is_found_in_the_frames_of_its_own_modality(seen_and_heard_clips, is_s):
    """A body moves the first feature of what is seen, music the second of what is heard."""
    spec_of_both, _, _ = om.fused_by_concepts(seen_and_heard_clips, in_time=True)

    model = fit_without_film_f5(spec_of_both, seen_and_heard_clips, is_s)

    (_, visual_bank), (_, heard_bank) = model.banks_
    (weights_of_body,) = visual_bank.weights_
    (weights_of_soundtrack,) = heard_bank.weights_
    assert feature_of_largest_weight(weights_of_body) == 0
    assert feature_of_largest_weight(weights_of_soundtrack) == 1


def test_concepts_in_time_of_both_modalities_tell_a_new_film_better_than_visual_ones(
    seen_and_heard_clips, is_s
):
    """Film f5 is new: the models are fitted on the other films."""
    spec_of_both, spec_of_visual, _ = om.fused_by_concepts(seen_and_heard_clips, in_time=True)
    model_of_both = fit_without_film_f5(spec_of_both, seen_and_heard_clips, is_s)
    model_of_visual = fit_without_film_f5(spec_of_visual, seen_and_heard_clips, is_s)
    is_new = seen_and_heard_clips.movies == "f5"
    new_frames = seen_and_heard_clips.read("frames")[is_new]

    auc_of_both = auc(is_s[is_new], model_of_both.decision_function(new_frames))
    auc_of_visual = auc(is_s[is_new], model_of_visual.decision_function(new_frames))

    assert auc_of_both > auc_of_visual > 0.6


def test_clips_that_are_not_in_the_task_teach_concepts_but_not_the_level(seen_and_heard_clips, is_s):
    """One model is fitted on six films, in which clips of film f5 have no label (-1); another without f5.

    The direction of the concept Body differs between the two, as the bodies in f5 were learnt from. The
    threshold of levels is chosen by held-out scores, of which there is none of f5.
    """
    spec_of_both, *_ = om.fused_by_concepts(seen_and_heard_clips)
    in_task = seen_and_heard_clips.movies != "f5"
    not_in_task = -1
    labels = np.where(in_task, is_s, not_in_task)

    of_all_films = spec_of_both.make(0).fit(
        seen_and_heard_clips.X, labels, seen_and_heard_clips.movies, present=seen_and_heard_clips.present
    )
    without_f5 = spec_of_both.make(0).fit(
        seen_and_heard_clips.X[in_task],
        is_s[in_task],
        seen_and_heard_clips.movies[in_task],
        present=seen_and_heard_clips.present[in_task],
    )

    def weights_of_body(model):
        of_seen, _of_heard = model.banks_
        _columns_of_features, bank = of_seen
        return bank.hyperplanes_.weights

    assert not np.array_equal(weights_of_body(of_all_films), weights_of_body(without_f5))
    assert len(of_all_films.head_.held_out_.scores) == in_task.sum()


def test_a_store_that_does_not_say_whether_it_is_seen_or_heard_is_refused(seen_and_heard_clips):
    """The second store is named "ears", which is no modality, and has no provenance to tell it."""
    modalities = seen_and_heard_clips.named(["visual", "ears"]).modalities
    without_provenance = tuple(replace(modality, provenance={}) for modality in modalities)

    with pytest.raises(ModelError, match="heard=STORE"):
        om.fused_by_concepts(replace(seen_and_heard_clips, modalities=without_provenance))
