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
    """A body is seen and a soundtrack heard; a clip is of level S where one of them is there."""
    folder, rng = tmp_path_factory.mktemp("conveyed"), np.random.default_rng(0)
    n = len(FILMS) * PER_FILM
    body, music = rng.random((2, n)) < 0.35
    clips = [
        of.Clip(
            f"c{row:03}",
            FILMS[row % len(FILMS)],
            "",
            level="S" if body[row] or music[row] else "EN",
            concepts=tuple(name for name, there in (("Body", body), ("Soundtrack", music)) if there[row]),
        )
        for row in range(n)
    ]
    arrays = {name: rng.normal(size=(n, 5)).astype(np.float32) for name in ("eyes", "ears")}
    arrays["eyes"][:, 0] += 4 * body
    arrays["ears"][:, 1] += 4 * music
    # The eyes alone keep frames: a body is in the last of three.
    frames = rng.normal(size=(n, 3, 5)).astype(np.float32)
    frames[:, 2, 0] += 4 * body
    heard = {"eyes": n, "ears": n - NOT_HEARD}
    stores = [
        of.open_store(
            seal_arrays(
                folder / name,
                {clip.clip_id: clip.movie for clip in clips[: heard[name]]},
                {name: {"pooled": array[: heard[name]], **({"frames": frames} if name == "eyes" else {})}},
                n_frames=3,
            )
        )
        for name, array in arrays.items()
    ]
    return om.load_dataset(stores, of.Manifest(tuple(clips), folder)).named(["visual", "heard"])


@pytest.mark.long  # simulates
def test_concepts_of_both_modalities_are_worth_more_than_of_each(data):
    run = om.evaluate(data, om.fused_by_concepts(data), "en_s")
    rows = run.metrics[run.metrics["metric"] == "auc"].set_index("model")["movie_mean"]
    each = max(rows["concepts:visual"], rows["concepts:heard"])
    assert 0.65 < each < 0.9
    assert rows["concepts"] > each + 0.05


def test_a_concept_is_learnt_from_its_own_modality_alone(data):
    (spec, *_) = om.fused_by_concepts(data)
    y = (data.levels == "S").astype(np.int64)
    model = spec.make(0).fit(data.X, y, data.movies, present=data.present)
    (eyes, by_eye), (ears, by_ear) = model.banks_
    assert (eyes, ears) == (slice(0, 5), slice(5, 10))
    assert len(by_eye.concepts_) == len(by_ear.concepts_) == 1
    assert np.argmax(np.abs(by_eye.hyperplanes_.weights[0])) == 0
    assert np.argmax(np.abs(by_ear.hyperplanes_.weights[0])) == 1
    deaf = np.isnan(data.X[:, 5])
    assert deaf.sum() == NOT_HEARD
    (_, alone, _) = om.fused_by_concepts(data)
    assert np.isfinite(model.decision_function(data.X)).all()
    assert alone.name == "concepts:visual"


def test_concepts_are_found_in_frames_of_each_modality(data):
    (spec, seen, _) = om.fused_by_concepts(data, in_time=True)
    assert (spec.name, seen.name) == ("concepts_in_time", "concepts_in_time:visual")
    X = data.read(spec.reads)
    assert X.shape == (len(data), 3, 10)
    assert np.isnan(X[:, 1:, 5:]).all()  # what the ears have is one vector a clip
    few = data.take(np.arange(100, 0, -3))
    np.testing.assert_array_equal(few.read("frames"), X[100:0:-3])
    y = (data.levels == "S").astype(np.int64)
    model = spec.make(0).fit(X, y, data.movies, present=data.present)
    (_, by_eye), (_, by_ear) = model.banks_
    assert np.argmax(np.abs(by_eye.weights_[0])) == 0
    assert np.argmax(np.abs(by_ear.weights_[0])) == 1
    aucs = {}
    for each in (spec, seen):
        known = data.movies != "f5"
        fitted = each.make(0).fit(X[known], y[known], data.movies[known], present=data.present[known])
        aucs[each.name] = auc(y[~known], fitted.decision_function(X[~known]))
    assert aucs["concepts_in_time"] > aucs["concepts_in_time:visual"] > 0.6


def test_clips_out_of_the_task_teach_concepts_alone(data):
    (spec, *_) = om.fused_by_concepts(data)
    y = (data.levels == "S").astype(np.int64)
    out = data.movies == "f5"
    all_clips = spec.make(0).fit(data.X, np.where(out, -1, y), data.movies, present=data.present)
    few = spec.make(0).fit(data.X[~out], y[~out], data.movies[~out], present=data.present[~out])
    weights = [model.banks_[0][1].hyperplanes_.weights for model in (all_clips, few)]
    assert not np.array_equal(*weights)
    assert len(all_clips.head_.held_out_.scores) == len(few.head_.held_out_.scores)


def test_a_store_that_perceives_nobody_knows_what_is_refused(data):
    unknown = tuple(replace(each, provenance={}) for each in data.named(["visual", "ears"]).modalities)
    with pytest.raises(ModelError, match="heard=STORE"):
        om.fused_by_concepts(replace(data, modalities=unknown))
