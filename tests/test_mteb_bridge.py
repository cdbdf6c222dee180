"""mteb's evaluation of a task on a store's vectors is its own by the model; run where mteb is installed."""

import hashlib
import runpy
from pathlib import Path

import numpy as np
import pytest

import obygaze_features as of
from obygaze_features.store.testing import seal_arrays

mteb = pytest.importorskip("mteb", reason="needs mteb", exc_type=ImportError)

BRIDGE = Path(__file__).parents[1] / "examples" / "mteb_bridge" / "obygaze_mteb.py"
N_CLIPS = 40
LABELS = np.arange(N_CLIPS) % 2
TRAIN, TEST = range(24), range(24, N_CLIPS)


def video(number):
    """Return the bytes of a toy video, of 64 pixels: the brightness of its label, with noise."""
    generator = np.random.default_rng(number)
    values = 100 + 12 * LABELS[number] + generator.normal(0, 20, 64)
    return values.clip(0, 255).astype(np.uint8).tobytes()


def encode_video(octets):
    """Encode a toy video as the model does, [8]."""
    means = np.frombuffer(octets, np.uint8).reshape(8, -1).mean(axis=1)
    return ((means - 106) / 10).astype(np.float32)


def toy_task(*, with_ids):
    """Make a task of mteb with videos of two kinds, and perhaps with ids of clips."""
    from datasets import Dataset, DatasetDict
    from mteb.abstasks import AbsTaskClassification
    from mteb.abstasks.task_metadata import TaskMetadata

    class ToyVideos(AbsTaskClassification):
        metadata = TaskMetadata(
            name="ToyVideos",
            description="Bright and dark clips",
            reference=None,
            dataset={"path": "lab/toy", "revision": "1"},
            type="VideoClassification",
            category="v2c",
            eval_splits=["test"],
            eval_langs=["eng-Latn"],
            main_score="accuracy",
            date=("2026-01-01", "2026-01-02"),
            domains=["Scene"],
            task_subtypes=[],
            license="cc0-1.0",
            annotations_creators="derived",
            dialect=[],
            modalities=["video"],
            sample_creation="created",
            bibtex_citation="",
        )
        input_column_name = "video"
        label_column_name = "label"

        def load_data(self, **_):
            splits = {}
            for name, numbers in (("train", TRAIN), ("test", TEST)):
                columns = {"video": [{"bytes": video(number), "path": None} for number in numbers]}
                columns["label"] = [int(LABELS[number]) for number in numbers]
                if with_ids:
                    columns["clip_id"] = [f"clip-{number:02}" for number in numbers]
                splits[name] = Dataset.from_dict(columns)
            self.dataset = DatasetDict(splits)
            self.data_loaded = True

    return ToyVideos()


@pytest.fixture(scope="module")
def bridge():
    """The names of the example's module, examples/mteb_bridge/obygaze_mteb.py."""
    return runpy.run_path(str(BRIDGE))


def seal_vectors(folder, numbers, *, with_digests=True):
    """Seal the vectors of some toy videos, as of clips clip-00, clip-01, ..., and the videos' digests."""
    ids = [f"clip-{number:02}" for number in numbers]
    features = np.array([encode_video(video(number)) for number in numbers])
    sources = {}
    if with_digests:
        for clip_id, number in zip(ids, numbers, strict=True):
            sources[clip_id] = {"sha256": hashlib.sha256(video(number)).hexdigest()}
    movie_of = dict.fromkeys(ids, "film")
    return seal_arrays(folder, movie_of, {"toy": {"pooled": features}}, sources=sources)


def evaluate_by_mteb(model, task, folder):
    """Evaluate a model; return mteb's scores of the test split."""
    results = mteb.evaluate(model, [task], cache=mteb.ResultCache(folder), overwrite_strategy="always")
    (result,) = results.task_results
    return {name: value for name, value in result.scores["test"][0].items() if isinstance(value, float)}


def toy_model(bridge):
    """A model of mteb, the library of benchmarks of vectors, that makes a vector of a video's bytes."""

    class ToyModel(bridge["AbsEncoder"]):
        mteb_model_meta = bridge["ModelMeta"].create_empty(
            overwrites={"name": "lab/toy", "revision": "1", "modalities": ["video"]}
        )

        def encode(self, inputs, **_):
            return np.stack([encode_video(row["bytes"]) for row in inputs.dataset["video"]])

    return ToyModel()


@pytest.mark.parametrize("with_ids", [True, False], ids=["by id", "by digest"])
def test_a_store_of_a_models_vectors_has_the_scores_of_the_model_itself(bridge, tmp_path, with_ids):
    """The library mteb evaluates a model on 40 videos of two labels, and a store of its vectors of them.

    The store's clips are found by the ids of the task, or, where it has none, by the digests of the videos.
    Half of the labels would be guessed right by chance.
    """
    task = toy_task(with_ids=with_ids)
    scores_of_model = evaluate_by_mteb(toy_model(bridge), task, tmp_path / "model")

    store = seal_vectors(tmp_path / "toy", range(40))
    store_model = bridge["StoreModel"](store)
    bridge["put_ids"](task)  # puts the ids of clips, if the task has them, in the place of the videos
    assert isinstance(task.dataset["test"]["video"][0], str) is with_ids
    scores_of_store = evaluate_by_mteb(store_model, task, tmp_path / "store")

    assert scores_of_store == scores_of_model
    assert 0.5 < scores_of_store["accuracy"] <= 1
    assert store_model.mteb_model_meta.revision == of.open_store(store).fingerprint


@pytest.mark.parametrize("with_ids", [True, False], ids=["by id", "by digest"])
def test_a_store_that_lacks_a_clip_of_the_task_is_refused(bridge, tmp_path, with_ids):
    """The task has the videos 0 to 39, the store those from 1 on."""
    store = seal_vectors(tmp_path / "toy", range(1, 40))
    task = toy_task(with_ids=with_ids)
    bridge["put_ids"](task)

    with pytest.raises(bridge["MissingClipsError"], match="1 of"):
        evaluate_by_mteb(bridge["StoreModel"](store), task, tmp_path / "results")


def test_without_ids_and_digests_the_option_that_stores_digests_is_named(bridge, tmp_path):
    """Neither the task has ids of clips nor the store the digests of the 40 videos: none can be found."""
    store = seal_vectors(tmp_path / "toy", range(40), with_digests=False)
    task = toy_task(with_ids=False)

    with pytest.raises(bridge["MissingClipsError"], match="--hash-sources"):
        evaluate_by_mteb(bridge["StoreModel"](store), task, tmp_path / "results")
