"""Zero-shot rows: a planted space is read by its texts, noise is not, nothing leaks."""

from dataclasses import replace

import numpy as np
import pytest

from obygaze_features.manifest import (
    Clip,
    Manifest,
    builtin_codebook,
    concept_texts,
    read_manifest,
    write_manifest,
)
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays
from obygaze_models.concepts.texts import TextSimilarity, TextVectors, read_concept_texts, zero_shot_models
from obygaze_models.dataset import load_dataset
from obygaze_models.errors import ConceptError
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.prediction.final import save_models
from obygaze_models.prediction.frames import predict_frames
from obygaze_models.prediction.saved_model import load_model

SPACE = "xclip sha256:0123"
D, MOVIES, CLIPS = 24, 6, 40
CONCEPTS = builtin_codebook("obygaze12").visual_concepts
PLANTED = ("Body", "Clothing", "Look")
"""Concepts that move a clip along their text's direction; the others are marked at random."""


def direction(concept, rng_of=np.random.default_rng):
    vector = rng_of([*concept.encode()]).normal(size=D)
    return vector / np.linalg.norm(vector)


def text_vectors(rng):
    """Each text near its concept's direction, with a common part as real text embeddings have."""
    common = direction("what all texts share") * 3
    return np.array(
        [
            2 * direction(one.concept) + common + 0.1 * rng.normal(size=D)
            for one in concept_texts(builtin_codebook("obygaze12"))
        ],
        np.float32,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    rng = np.random.default_rng(0)
    clips, rows = [], []
    for movie in range(MOVIES):
        own = rng.normal(size=D)
        for place in range(CLIPS):
            there = [concept for concept in CONCEPTS if rng.random() < 0.3]
            level = "S" if "Body" in there else "EN"
            clips.append(Clip(f"f{movie}-{place:02}", f"f{movie}", level=level, concepts=tuple(there)))
            signal = sum((2 * direction(concept) for concept in there if concept in PLANTED), np.zeros(D))
            rows.append(signal + own + 0.6 * rng.normal(size=D))
    write_manifest(Manifest(tuple(clips), folder), folder / "films.csv")
    movie_of = {clip.clip_id: clip.movie for clip in clips}
    pooled = np.array(rows, np.float32)
    seal_arrays(folder / "films", movie_of, {"xclip": {"pooled": pooled}}, space=SPACE)
    # What a clip shows is in one of its frames.
    frames = 0.3 * rng.normal(size=(len(pooled), 4, D)).astype(np.float32)
    frames[np.arange(len(pooled)), rng.integers(4, size=len(pooled))] += pooled
    arrays = {"pooled": pooled, "frames": frames}
    seal_arrays(folder / "shown", movie_of, {"xclip": arrays}, space=SPACE, n_frames=4)
    texts = {f"t{place}": one.text for place, one in enumerate(concept_texts(builtin_codebook("obygaze12")))}
    vectors = text_vectors(rng)
    for name, said in (("thesaurus", texts), ("partly", dict(list(texts.items())[:5]))):
        arrays = {"xclip-text": {"pooled": vectors[: len(said)]}}
        seal_arrays(folder / name, dict.fromkeys(said, ""), arrays, texts=said, space=SPACE)
    noise = {"xclip-text": {"pooled": rng.normal(size=vectors.shape).astype(np.float32)}}
    seal_arrays(folder / "noise", dict.fromkeys(texts, ""), noise, texts=texts, space=SPACE)
    arrays = {"xclip-text": {"pooled": vectors}}
    seal_arrays(folder / "other", dict.fromkeys(texts, ""), arrays, texts=texts, space="xclip sha256:9")
    return folder


@pytest.fixture(scope="module")
def data(folder):
    return load_dataset(open_store(folder / "films"), read_manifest(folder / "films.csv"))


def test_the_thesaurus_is_a_list_of_the_papers_table():
    texts = concept_texts(builtin_codebook("obygaze12"))
    assert len({one.text_id for one in texts}) == len(texts)
    assert {one.concept for one in texts} == set(CONCEPTS)
    body = [(one.kind, one.text) for one in texts if one.concept == "Body"]
    assert body[:2] == [("definition", "Body"), ("instances", "Suggested nudity")]
    assert ("instances", "silhouette behind shower curtain") in body
    named = sum(len(concept.instances) for concept in builtin_codebook("obygaze12").concepts)
    assert named == 22, "Table 1 has 22 instances"


def test_a_clip_is_as_near_as_its_nearest_text():
    texts = TextVectors(("a", "b"), np.array([[1.0, 0.0], [0.0, 1.0]]))
    model = TextSimilarity(texts).fit(np.eye(2), [0, 1])
    scores = model.decision_function([[3.0, 0.0], [0.0, -2.0], [1.0, 1.0], [0.0, 0.0]])
    np.testing.assert_allclose(scores, [1, 0, np.sqrt(0.5), 0], atol=1e-12)
    other = TextSimilarity(texts).fit(np.eye(2), [1, 0])
    np.testing.assert_array_equal(other.decision_function(np.eye(2)), model.decision_function(np.eye(2)))
    with pytest.raises(ConceptError, match="2 values, the clips 3"):
        TextSimilarity(texts).fit(np.eye(3)[:2], [0, 1])


def test_zero_shot_rows_stand_beside_labelled_cavs_under_the_same_folds(folder, data):
    texts = open_store(folder / "thesaurus")
    models = [*zero_shot_models(data, texts, "concept:Body"), "cav"]
    run = evaluate(data, models, "concept:Body")
    pooled = run.metrics.query("metric == 'auc'").set_index("model")["pooled"]
    assert pooled["zero_shot_instances"] > 0.8
    assert pooled["zero_shot_definition"] > 0.8
    assert pooled["cav"] > 0.8
    table = run.predictions.table
    clips = table.groupby("model")["clip_id"].apply(lambda ids: tuple(sorted(ids)))
    assert len(set(clips)) == 1, "the same clips are tested for every row"
    assert table.groupby("model")["fold"].nunique().eq(MOVIES).all()


def test_labels_of_the_test_movie_and_even_all_labels_do_not_change_a_zero_shot_score(folder, data):
    (spec, _) = zero_shot_models(data, open_store(folder / "thesaurus"), "concept:Look")
    y = data.present["Look"].to_numpy().astype(int)
    scores = [spec.make(0).fit(data.X, labels).decision_function(data.X) for labels in (y, 1 - y)]
    np.testing.assert_array_equal(*scores)


def test_texts_are_concepts_of_frames_whose_annotation_nobody_needs(folder, tmp_path):
    store = open_store(folder / "shown")
    shown = load_dataset(store, read_manifest(folder / "films.csv"))
    specs = zero_shot_models(shown, open_store(folder / "thesaurus"), "en_s")
    names = [
        f"{model}_{kind}" for kind in ("definition", "instances") for model in ("zero_shot", "pcbm_time")
    ]
    assert [spec.name for spec in specs] == names
    unmarked = replace(shown.labels, present=np.zeros_like(shown.labels.present))
    runs = [evaluate(each, specs[1:2], "en_s") for each in (shown, replace(shown, labels=unmarked))]
    auc = [run.metrics.query("metric == 'auc'").set_index("model")["movie_mean"] for run in runs]
    assert auc[0]["pcbm_time_definition"] == auc[1]["pcbm_time_definition"] > 0.8
    path = save_models(runs[0], shown, names[1:2], tmp_path, models=specs[1:2])[names[1]]
    model = load_model(path)
    assert model.concepts == tuple(CONCEPTS)
    kept, present = predict_frames(model, store), shown.present["Body"].to_numpy() == 1
    best = kept.groupby("clip_id")["Body_value"].max().loc[shown.clip_ids]
    assert best[present].mean() > best[~present].mean() + 0.5


def test_texts_of_noise_find_nothing_and_levels_are_scored_by_all_concepts(folder, data):
    noise = zero_shot_models(data, open_store(folder / "noise"), "concept:Body")
    auc = evaluate(data, noise, "concept:Body").metrics.query("metric == 'auc'").set_index("model")["pooled"]
    assert abs(auc["zero_shot_instances"] - 0.5) < 0.15
    whole = zero_shot_models(data, open_store(folder / "thesaurus"), "en_s")
    said = [one.make(0).texts.texts for one in whole]
    assert said[0] == CONCEPTS
    assert len(said[1]) > 22


@pytest.mark.parametrize(
    ("name", "place"),
    [("other", "sha256:9.*sha256:0123"), ("partly", "obygaze codebook texts"), ("films", "group xclip")],
)
def test_texts_that_do_not_fit_are_refused(folder, data, name, place):
    with pytest.raises(ConceptError, match=place):
        read_concept_texts(open_store(folder / name), data)
