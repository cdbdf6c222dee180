"""Zero-shot rows: a planted space is read by its texts, noise is not, nothing leaks."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

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

TWO_TEXTS = TextVectors(("a", "b"), np.array([[1.0, 0.0], [0.0, 1.0]]))


def direction(name):
    """Draw a unit vector [D] that depends on a name alone."""
    seed = list(name.encode())
    vector = np.random.default_rng(seed).normal(size=D)
    return vector / np.linalg.norm(vector)


def text_vectors(rng):
    """Draw each text near its concept's direction, with a common part as real text embeddings have."""
    common = 3 * direction("what all texts share")
    texts = concept_texts(builtin_codebook("obygaze12"))
    directions = np.array([direction(text.concept) for text in texts])
    noise = 0.1 * rng.normal(size=directions.shape)
    return (2 * directions + common + noise).astype(np.float32)


def planted_clips(rng):
    """Draw clips whose vectors move along the directions of the planted concepts, and with their movie.

    Returns clips and vectors [N, D].
    """
    clips = []
    vectors = []
    for movie in range(MOVIES):
        shift_of_movie = rng.normal(size=D)
        for number in range(CLIPS):
            concepts = [concept for concept in CONCEPTS if rng.random() < 0.3]
            level = "S" if "Body" in concepts else "EN"
            clip_id = f"f{movie}-{number:02}"
            clips.append(Clip(clip_id, f"f{movie}", level=level, concepts=tuple(concepts)))
            signal = np.zeros(D)
            for concept in concepts:
                if concept in PLANTED:
                    signal += 2 * direction(concept)
            vectors.append(signal + shift_of_movie + 0.6 * rng.normal(size=D))
    return clips, np.array(vectors, np.float32)


def seal_texts(folder, texts, vectors, space=SPACE):
    """Seal a store of texts by id, with the first of the vectors."""
    arrays = {"xclip-text": {"pooled": vectors[: len(texts)]}}
    seal_arrays(folder, dict.fromkeys(texts, ""), arrays, texts=texts, space=space)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Stores of clips (films; shown, with frames) and of texts (thesaurus, partly, noise, other)."""
    folder = tmp_path_factory.mktemp("texts")
    rng = np.random.default_rng(0)
    clips, pooled = planted_clips(rng)
    write_manifest(Manifest(tuple(clips), folder), folder / "films.csv")
    movie_of = {clip.clip_id: clip.movie for clip in clips}
    seal_arrays(folder / "films", movie_of, {"xclip": {"pooled": pooled}}, space=SPACE)
    # What a clip shows is in one of its frames.
    frames = 0.3 * rng.normal(size=(len(pooled), 4, D)).astype(np.float32)
    frames[np.arange(len(pooled)), rng.integers(4, size=len(pooled))] += pooled
    arrays = {"pooled": pooled, "frames": frames}
    seal_arrays(folder / "shown", movie_of, {"xclip": arrays}, space=SPACE, n_frames=4)
    listed = concept_texts(builtin_codebook("obygaze12"))
    texts = {f"t{number}": text.text for number, text in enumerate(listed)}
    vectors = text_vectors(rng)
    seal_texts(folder / "thesaurus", texts, vectors)
    seal_texts(folder / "partly", dict(list(texts.items())[:5]), vectors)
    seal_texts(folder / "noise", texts, rng.normal(size=vectors.shape).astype(np.float32))
    seal_texts(folder / "other", texts, vectors, space="xclip sha256:9")
    return folder


@pytest.fixture(scope="module")
def data(folder):
    return load_dataset(open_store(folder / "films"), read_manifest(folder / "films.csv"))


def test_the_thesaurus_is_a_list_of_the_papers_table():
    codebook = builtin_codebook("obygaze12")
    texts = concept_texts(codebook)
    assert len({text.text_id for text in texts}) == len(texts)
    assert {text.concept for text in texts} == set(CONCEPTS)
    texts_of_body = [(text.kind, text.text) for text in texts if text.concept == "Body"]
    assert texts_of_body[:2] == [("definition", "Body"), ("instances", "Suggested nudity")]
    assert ("instances", "silhouette behind shower curtain") in texts_of_body
    n_instances = sum(len(concept.instances) for concept in codebook.concepts)
    assert n_instances == 22, "Table 1 has 22 instances"


def test_a_clip_is_as_near_as_its_nearest_text():
    model = TextSimilarity(TWO_TEXTS).fit(np.eye(2), [0, 1])
    scores = model.decision_function([[3.0, 0.0], [0.0, -2.0], [1.0, 1.0], [0.0, 0.0]])
    np.testing.assert_allclose(scores, [1, 0, np.sqrt(0.5), 0], atol=1e-12)
    with pytest.raises(ConceptError, match="2 values, the clips 3"):
        TextSimilarity(TWO_TEXTS).fit(np.eye(3)[:2], [0, 1])


@pytest.mark.long
def test_zero_shot_rows_stand_beside_labelled_cavs_under_the_same_folds(folder, data):
    texts = open_store(folder / "thesaurus")
    models = [*zero_shot_models(data, texts, "concept:Body"), "cav"]
    run = evaluate(data, models, "concept:Body")
    auc_of = run.metrics.query("metric == 'auc'").set_index("model")["pooled"]
    assert auc_of["zero_shot_instances"] > 0.8
    assert auc_of["zero_shot_definition"] > 0.8
    assert auc_of["cav"] > 0.8
    table = run.predictions.table
    tested_clips = table.groupby("model")["clip_id"].apply(lambda ids: tuple(sorted(ids)))
    assert len(set(tested_clips)) == 1, "the same clips are tested for every row"
    assert table.groupby("model")["fold"].nunique().eq(MOVIES).all()


def test_labels_do_not_change_a_zero_shot_score_and_texts_of_noise_find_nothing(folder, data):
    y = data.present["Body"].to_numpy().astype(int)
    definition, instances = zero_shot_models(data, open_store(folder / "thesaurus"), "en_s")
    assert definition.make(0).texts.texts == CONCEPTS  # levels are scored by the texts of all concepts
    assert len(instances.make(0).texts.texts) > 22

    scores = definition.make(0).fit(data.X, y).decision_function(data.X)
    scores_of_other_labels = definition.make(0).fit(data.X, 1 - y).decision_function(data.X)
    np.testing.assert_array_equal(scores_of_other_labels, scores)

    _, instances_of_noise = zero_shot_models(data, open_store(folder / "noise"), "concept:Body")
    scores_of_noise = instances_of_noise.make(0).fit(data.X, y).decision_function(data.X)
    assert abs(roc_auc_score(y, scores_of_noise) - 0.5) < 0.15


@pytest.fixture(scope="module")
def shown(folder):
    """Clips with frames."""
    return load_dataset(open_store(folder / "shown"), read_manifest(folder / "films.csv"))


@pytest.mark.long
def test_texts_are_concepts_of_frames_whose_annotation_nobody_needs(folder, shown, tmp_path):
    specs = zero_shot_models(shown, open_store(folder / "thesaurus"), "en_s")
    zero_shot_definition, in_time, zero_shot_instances, instances_in_time = specs
    assert (zero_shot_definition.name, in_time.name) == ("zero_shot_definition", "pcbm_time_definition")
    assert (zero_shot_instances.name, instances_in_time.name) == (
        "zero_shot_instances",
        "pcbm_time_instances",
    )
    no_marks = replace(shown.labels, present=np.zeros_like(shown.labels.present))

    run = evaluate(shown, [in_time], "en_s")
    run_without_marks = evaluate(replace(shown, labels=no_marks), [in_time], "en_s")

    def auc_of(run):
        return run.metrics.query("metric == 'auc'").set_index("model")["movie_mean"][in_time.name]

    assert auc_of(run_without_marks) == auc_of(run) > 0.8

    (path,) = save_models(run, shown, [in_time.name], tmp_path, models=[in_time]).values()
    model = load_model(path)
    assert model.concepts == tuple(CONCEPTS)
    frames = predict_frames(model, open_store(folder / "shown"))
    best_of_clip = frames.groupby("clip_id")["Body_value"].max().loc[shown.clip_ids]
    has_body = shown.present["Body"].to_numpy() == 1
    assert best_of_clip[has_body].mean() > best_of_clip[~has_body].mean() + 0.5


@pytest.mark.parametrize(
    ("name", "words"),
    [("other", "sha256:9.*sha256:0123"), ("partly", "obygaze codebook texts"), ("films", "group xclip")],
)
def test_texts_that_do_not_fit_are_refused(folder, data, name, words):
    with pytest.raises(ConceptError, match=words):
        read_concept_texts(open_store(folder / name), data)
