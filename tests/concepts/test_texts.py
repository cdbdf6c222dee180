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
def folder_of_stores(tmp_path_factory):
    """Stores of clips (films, with_frames) and of texts (thesaurus; the others are wrong in one respect)."""
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
    seal_arrays(folder / "with_frames", movie_of, {"xclip": arrays}, space=SPACE, n_frames=4)
    listed = concept_texts(builtin_codebook("obygaze12"))
    texts = {f"t{number}": text.text for number, text in enumerate(listed)}
    vectors = text_vectors(rng)
    seal_texts(folder / "thesaurus", texts, vectors)
    seal_texts(folder / "first_five_texts", dict(list(texts.items())[:5]), vectors)
    seal_texts(folder / "noise", texts, rng.normal(size=vectors.shape).astype(np.float32))
    seal_texts(folder / "texts_of_other_weights", texts, vectors, space="xclip sha256:9")
    return folder


@pytest.fixture(scope="module")
def data(folder_of_stores):
    return load_dataset(open_store(folder_of_stores / "films"), read_manifest(folder_of_stores / "films.csv"))


def test_every_text_of_the_codebook_has_its_own_id_and_every_visual_concept_has_texts():
    """The texts are the definitions and instances of concepts, as annotators read them."""
    texts = concept_texts(builtin_codebook("obygaze12"))

    ids = {text.text_id for text in texts}
    assert len(ids) == len(texts)
    assert {text.concept for text in texts} == set(builtin_codebook("obygaze12").visual_concepts)


def test_the_texts_of_body_are_its_name_and_its_instances_in_the_papers_table():
    """Table 1 of the ObyGaze12 paper has 22 instances, typical forms of concepts, with examples."""
    codebook = builtin_codebook("obygaze12")

    texts_of_body = [(text.kind, text.text) for text in concept_texts(codebook) if text.concept == "Body"]

    assert texts_of_body[:2] == [("definition", "Body"), ("instances", "Suggested nudity")]
    assert ("instances", "silhouette behind shower curtain") in texts_of_body
    n_instances = sum(len(concept.instances) for concept in codebook.concepts)
    assert n_instances == 22


def test_the_score_of_a_clip_is_its_cosine_with_its_nearest_text():
    """The two texts are the directions (1, 0) and (0, 1). A vector of zeros has no direction, scored 0."""
    two_texts = TextVectors(("a", "b"), np.array([[1.0, 0.0], [0.0, 1.0]]))
    any_clips = [[1.0, 0.0], [0.0, 1.0]]
    model = TextSimilarity(two_texts).fit(any_clips, [0, 1])

    clips = [
        [3.0, 0.0],  # along the first text, whatever its length
        [0.0, -2.0],  # opposite to the second, at a right angle to the first
        [1.0, 1.0],  # halfway: cos(45 degrees) is the root of .5
        [0.0, 0.0],
    ]
    scores = model.decision_function(clips)

    np.testing.assert_allclose(scores, [1, 0, np.sqrt(0.5), 0], atol=1e-12)


def test_clips_of_more_numbers_than_the_texts_are_refused():
    """A clip is scored by the cosine between its vector and a text's, which need the same length."""
    texts_of_two_numbers = TextVectors(("a", "b"), np.array([[1.0, 0.0], [0.0, 1.0]]))
    clips_of_three_numbers = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]

    with pytest.raises(ConceptError, match="2 values, the clips 3"):
        TextSimilarity(texts_of_two_numbers).fit(clips_of_three_numbers, [0, 1])


@pytest.fixture(scope="module")
def run_of_texts_and_cav(folder_of_stores, data):
    """A run of models that find the concept Body by its texts, and of one that is trained on its labels."""
    zero_shot = zero_shot_models(data, open_store(folder_of_stores / "thesaurus"), "concept:Body")
    return evaluate(data, [*zero_shot, "cav"], "concept:Body")


@pytest.mark.long
def test_texts_of_a_concept_and_a_cav_trained_on_labels_both_find_it_in_planted_clips(run_of_texts_and_cav):
    """Clips with the concept Body are moved along the direction of its texts."""
    auc_of = run_of_texts_and_cav.metrics.query("metric == 'auc'").set_index("model")["pooled"]
    assert auc_of["zero_shot_instances"] > 0.8
    assert auc_of["zero_shot_definition"] > 0.8
    assert auc_of["cav"] > 0.8


@pytest.mark.long
def test_zero_shot_models_are_tested_on_the_same_clips_and_folds_as_trained_ones(run_of_texts_and_cav):
    """There are six films, each of which is a fold. The model `cav` is trained, the others read texts."""
    by_model = run_of_texts_and_cav.predictions.table.groupby("model")
    tested_clips = by_model["clip_id"].apply(lambda ids: tuple(sorted(ids)))
    assert len(set(tested_clips)) == 1
    assert by_model["fold"].nunique().eq(6).all()


def test_levels_are_scored_by_the_texts_of_all_concepts(folder_of_stores, data):
    """A store of texts ("thesaurus") has vectors of the concepts' names and of their 22 instances.

    Of it two zero-shot models are made: "definition" reads the names alone, the other one names and
    instances, so more than 22 texts.
    """
    specs = zero_shot_models(data, open_store(folder_of_stores / "thesaurus"), "en_s")
    of_definitions, of_instances = [spec.make(0) for spec in specs]

    assert of_definitions.texts.texts == builtin_codebook("obygaze12").visual_concepts
    assert len(of_instances.texts.texts) > 22


def test_labels_do_not_change_a_zero_shot_score(folder_of_stores, data):
    """A zero-shot model compares clips with texts; it is given labels like any other, and ignores them."""
    has_body = data.present["Body"].to_numpy().astype(int)
    opposite_labels = 1 - has_body
    definition, _instances = zero_shot_models(data, open_store(folder_of_stores / "thesaurus"), "en_s")

    scores = definition.make(0).fit(data.X, has_body).decision_function(data.X)
    scores_of_opposite_labels = definition.make(0).fit(data.X, opposite_labels).decision_function(data.X)

    np.testing.assert_array_equal(scores_of_opposite_labels, scores)


def test_texts_whose_vectors_are_noise_do_not_find_a_concept(folder_of_stores, data):
    """The store `noise` has the texts of concepts with random vectors. The AUC is near that of chance, .5."""
    has_body = data.present["Body"].to_numpy().astype(int)
    _definition, instances = zero_shot_models(data, open_store(folder_of_stores / "noise"), "concept:Body")

    scores = instances.make(0).fit(data.X, has_body).decision_function(data.X)

    assert roc_auc_score(has_body, scores) == pytest.approx(0.5, abs=0.15)


@pytest.fixture(scope="module")
def data_with_frames(folder_of_stores):
    """The planted clips with four frames each: what a clip shows is in one of them."""
    return load_dataset(
        open_store(folder_of_stores / "with_frames"), read_manifest(folder_of_stores / "films.csv")
    )


def test_clips_with_frames_have_models_of_texts_in_time_beside_those_of_whole_clips(
    folder_of_stores, data_with_frames
):
    """A concept has a definition and instances; each has a model of whole clips and one in time."""
    specs = zero_shot_models(data_with_frames, open_store(folder_of_stores / "thesaurus"), "en_s")

    of_definitions = ["zero_shot_definition", "pcbm_time_definition"]
    of_instances = ["zero_shot_instances", "pcbm_time_instances"]
    assert [spec.name for spec in specs] == [*of_definitions, *of_instances]


def pcbm_time_of_texts(folder, data_with_frames):
    """Return the spec of the bottleneck whose concepts are the texts, found in frames."""
    specs = zero_shot_models(data_with_frames, open_store(folder / "thesaurus"), "en_s")
    (spec,) = [spec for spec in specs if spec.name == "pcbm_time_definition"]
    return spec


@pytest.mark.long
def test_a_bottleneck_of_texts_has_the_same_auc_if_no_concept_is_annotated(
    folder_of_stores, data_with_frames
):
    """The concepts of a bottleneck in time ("pcbm_time_definition") are texts, whose vectors frames are near.

    So it learns from the levels of clips, and not from annotated concepts: if all of these are removed, the
    AUC must be above .8 and the same to the last bit.
    """
    spec = pcbm_time_of_texts(folder_of_stores, data_with_frames)
    labels = data_with_frames.labels
    labels_without_concepts = replace(labels, present=np.zeros_like(labels.present))
    data_without_concepts = replace(data_with_frames, labels=labels_without_concepts)

    def auc(data):
        metrics = evaluate(data, [spec], "en_s").metrics
        return metrics.query("metric == 'auc'").set_index("model")["movie_mean"]["pcbm_time_definition"]

    auc_without_concepts = auc(data_without_concepts)
    assert auc_without_concepts > 0.8
    assert auc_without_concepts == auc(data_with_frames)


@pytest.mark.long
def test_a_saved_bottleneck_of_texts_finds_a_concept_in_the_frames_of_clips_that_have_it(
    folder_of_stores, data_with_frames, tmp_path
):
    """The highest value of Body in a clip's frames is larger where annotators marked Body."""
    spec = pcbm_time_of_texts(folder_of_stores, data_with_frames)
    run = evaluate(data_with_frames, [spec], "en_s")
    (path,) = save_models(run, data_with_frames, [spec.name], tmp_path, models=[spec]).values()

    model = load_model(path)
    frames = predict_frames(model, open_store(folder_of_stores / "with_frames"))

    assert model.concepts == tuple(builtin_codebook("obygaze12").visual_concepts)
    best_of_clip = frames.groupby("clip_id")["Body_value"].max().loc[data_with_frames.clip_ids]
    has_body = data_with_frames.present["Body"].to_numpy() == 1
    assert best_of_clip[has_body].mean() > best_of_clip[~has_body].mean() + 0.5


def test_texts_of_another_space_than_the_clips_are_refused(folder_of_stores, data):
    """The clips are of the weights sha256:0123, the texts of sha256:9: their vectors cannot be compared."""
    texts_of_other_weights = open_store(folder_of_stores / "texts_of_other_weights")

    with pytest.raises(ConceptError, match=r"sha256:9.*sha256:0123"):
        read_concept_texts(texts_of_other_weights, data)


def test_a_store_of_the_first_five_texts_alone_is_refused(folder_of_stores, data):
    """The message names the command that writes all texts."""
    with pytest.raises(ConceptError, match="obygaze codebook texts"):
        read_concept_texts(open_store(folder_of_stores / "first_five_texts"), data)


def test_a_store_of_clips_is_refused_where_a_store_of_texts_is_needed(folder_of_stores, data):
    """The store of films has vectors of clips in its group xclip, which the message names, and no texts."""
    with pytest.raises(ConceptError, match="group xclip"):
        read_concept_texts(open_store(folder_of_stores / "films"), data)
