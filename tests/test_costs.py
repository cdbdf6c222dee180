"""What reading costs, of each door: files, bytes, memory; docs/large.md has the same numbers."""

import threading
import tracemalloc
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

import obygaze_film
import obygaze_models as om
from obygaze_features.backbones.signature import FEATURES
from obygaze_features.manifest import Clip, Manifest, builtin_codebook, project
from obygaze_features.same_pictures import duplicates
from obygaze_features.store import open_store
from obygaze_features.store.store import open_files
from obygaze_features.store.store_files import FolderFiles
from obygaze_features.store.testing import seal_arrays
from obygaze_film.agreement import boundary_f1, segment_ap, segment_f1
from obygaze_models.concepts import feature_axes
from obygaze_models.evaluation.ranking import rank_items
from obygaze_models.evaluation.unitising import Units, best_alignment
from obygaze_models.models import ridge_folds, scaling
from obygaze_models.prediction import out_of_distribution
from obygaze_models.prediction.calibration import Calibration
from obygaze_models.prediction.explain import explain
from obygaze_models.prediction.out_of_distribution import OutOfDistribution
from obygaze_models.protocol import HeldOut

WIDTH = 512
N_CLIPS = 12_000
MB = 1_000_000


@dataclass(frozen=True)
class CountedFiles(FolderFiles):
    """A store in a folder that counts how often each of its files is read."""

    n_reads: Counter[str] = field(default_factory=Counter)

    def read(self, name, start=0, stop=None):
        self.n_reads[name] += 1
        return super().read(name, start, stop)

    def stream(self, name, start=0):
        self.n_reads[name] += 1
        return super().stream(name, start)


@dataclass(frozen=True)
class ServedFiles(CountedFiles):
    """The same as if it lay on a server, of which several files are asked at once."""

    asked_by: set[int] = field(default_factory=set)

    @property
    def where(self):
        return f"https://lab.example/{self.path.name}"

    def read(self, name, start=0, stop=None):
        if "/pooled/c/" in name:
            self.asked_by.add(threading.get_ident())
        return super().read(name, start, stop)


@contextmanager
def memory():
    """Give the most memory that the block takes, in MB."""
    result = SimpleNamespace(peak=0.0)
    tracemalloc.start()
    try:
        yield result
        result.peak = tracemalloc.get_traced_memory()[1] / MB
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """A store of 12,000 clips of 300 films in twelve blocks, and models of the first four films' clips."""
    folder = tmp_path_factory.mktemp("films")
    rng = np.random.default_rng(0)
    movie_of = {f"tt{place // 40:07d}-{place % 40:03d}": f"tt{place // 40:07d}" for place in range(N_CLIPS)}
    vectors = rng.standard_normal((N_CLIPS, WIDTH), np.float32)
    spans = {clip_id: (4.0 * int(clip_id[-3:]), 4.0 * int(clip_id[-3:]) + 8) for clip_id in movie_of}
    path = seal_arrays(folder / "films", movie_of, {"xclip": {"pooled": vectors}}, spans=spans)
    few = dict(list(movie_of.items())[:160])
    known = open_store(seal_arrays(folder / "known", few, {"xclip": {"pooled": vectors[:160]}}))
    levels = rng.choice(["EN", "S"], 160)
    clips = []
    for place, (clip_id, movie) in enumerate(few.items()):
        concepts = ("Body",) if place % 2 else ()
        clips.append(Clip(clip_id, movie, level=levels[place], concepts=concepts))
    data = om.load_dataset(known, Manifest(tuple(clips), folder))
    run = om.evaluate(data, ["linear", "pcbm_lr"], "en_s")
    files = om.save_models(run, data, ["linear", "pcbm_lr"], folder / "models")
    model, bottleneck = om.load_model(files["linear"]), om.load_model(files["pcbm_lr"])
    return SimpleNamespace(path=path, vectors=vectors, model=model, bottleneck=bottleneck)


def counted(path):
    """Open a store whose reads are counted."""
    return open_files(CountedFiles(path))


def blocks_read(store):
    """List how often each block of vectors was read that was."""
    return [n for name, n in store.files.n_reads.items() if "/pooled/c/" in name]


@pytest.mark.long
def test_predict_holds_a_block_and_its_table_and_reads_each_block_once(films):
    store = counted(films.path)
    with memory() as during:
        predicted = om.predict(films.model, store)
        predicted.write(films.path.parent / "predicted.csv")
    assert during.peak < 23.5, "the vectors are 24.6 MB, in float64 twice that"
    assert blocks_read(store) == [1] * 12
    assert store.files.n_reads["data/clips.csv"] == 1
    assert len(predicted.table) == N_CLIPS
    some = [0, 1023, 1024, N_CLIPS - 1]
    np.testing.assert_allclose(predicted.table["logit"].iloc[some], films.model.logits(films.vectors[some]))
    assert (films.path.parent / "predicted.csv").read_text("utf-8") == predicted.to_csv()


@pytest.mark.long
def test_blocks_on_a_server_are_asked_for_several_at_once_and_predict_the_same(films):
    there, here = open_files(ServedFiles(films.path, readers=8)), counted(films.path)
    predicted = om.predict(films.model, there)
    assert blocks_read(there) == [1] * 12
    assert len(there.files.asked_by) > 1
    assert predicted.table.equals(om.predict(films.model, here).table)


@pytest.mark.long
def test_one_clip_is_explained_from_the_block_that_it_lies_in(films):
    store = counted(films.path)
    explained = explain(films.bottleneck, [store], "tt0000200-007", {})
    assert blocks_read(store) == [1]
    assert store.files.n_reads["data/clips.csv"] == 1
    assert explained.clip_id == "tt0000200-007"


def test_fits_of_a_block_of_folds_take_the_memory_that_a_block_may_take(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 32), np.float32)
    y = (rng.random(4000) < 0.3).astype(np.int64)
    films = np.arange(4000) % 100
    subsets = np.stack([films != film for film in range(100)], axis=1)
    monkeypatch.setattr(ridge_folds, "MOST_BYTES", 8 * MB)
    probes = ridge_folds.FoldLogistic(X, y, 5.0)
    with memory() as during:
        for fits in probes.minima(subsets, [0.01] * 100):
            assert fits.logits.shape[1] <= 48
    assert during.peak < 2 * 8, "all at once take 25 MB"


def test_clips_that_look_alike_are_found_in_one_reading_of_each_block(tmp_path):
    rng = np.random.default_rng(0)
    movie_of = {f"{film}-{place:03d}": film for film in ("a", "b", "c") for place in range(100)}
    frames = rng.choice(np.array([-1, 1], np.float16), (300, 8, len(FEATURES)))
    known = {"n_frames": 8, "architecture": {"features": list(FEATURES)}}
    path = seal_arrays(tmp_path / "films", movie_of, {"signature": {"frames": frames}}, **known)
    store = open_files(CountedFiles(path))
    duplicates(store)
    read = [n for name, n in store.files.n_reads.items() if "/frames/c/" in name]
    assert read
    assert set(read) == {1}


@pytest.mark.long
def test_one_film_is_scored_from_the_blocks_that_it_lies_in(films):
    store = counted(films.path)
    timeline = obygaze_film.score_film(store, [films.model], movie="tt0000200")
    assert blocks_read(store) == [1], "clips 8,000 to 8,039 lie in one block of 1,024"
    assert store.files.n_reads["data/clips.csv"] == 1
    assert len(timeline.table) == 41


@pytest.mark.long
def test_clips_of_one_film_cost_one_block_however_they_are_asked_for(films):
    store = counted(films.path)
    group = store["xclip"]
    clip_ids = [f"tt0000200-{place:03d}" for place in range(40)]
    one_by_one = np.stack([group.read(clip_id, "pooled") for clip_id in clip_ids])
    assert np.array_equal(group.read_many(clip_ids[::-1], "pooled"), one_by_one[::-1])
    assert blocks_read(store) == [1]


def test_each_training_clip_is_measured_once_whatever_the_number_of_films(monkeypatch):
    rng = np.random.default_rng(0)
    X, movies = rng.standard_normal((4000, 64), np.float32), np.repeat(np.arange(200), 20).astype(str)
    measured = []

    def count(features, *rest, **more):
        measured.append(len(features))
        return scaling.standardise(features, *rest, **more)

    monkeypatch.setattr(out_of_distribution, "standardise", count)
    with memory() as during:
        OutOfDistribution.fit(X, movies)
    assert sum(measured) == len(X)
    assert during.peak < 4 * X.nbytes / MB


@pytest.mark.long
def test_concept_models_decompose_the_clips_of_each_fold_once(monkeypatch, make_planted_concepts):
    """Whatever the number of models, though the decomposition of the last fold alone is kept."""
    data = make_planted_concepts(n_movies=6, n_per_movie=24, n_features=12)
    decompose = feature_axes._decompose
    decomposed = []

    def count(X, clip):
        decomposed.append(len(X))
        return decompose(X, clip)

    monkeypatch.setattr(feature_axes, "_decompose", count)
    monkeypatch.setattr(feature_axes, "CACHE_BYTES", 0)
    om.evaluate(data, ["pcbm_lr", "pcbm_dt", "pcbm_lr_shuffled"], "en_s")
    assert len(decomposed) == 6


def test_segments_are_compared_with_near_ones_alone():
    """All pairs in float64 would be 32 MB."""
    n = 2000
    rng = np.random.default_rng(0)
    starts = np.sort(rng.random(n)) * 10 * n
    first = np.column_stack([starts, starts + 5])
    second = first + rng.normal(size=(n, 1))
    ranks = np.zeros(n, np.int64)
    with memory() as during:
        segment_f1(first, second, 0.5)
        boundary_f1(first, second, 2.0)
        segment_ap(first, second, rng.random(n), 0.5)
        best_alignment(Units(first, ranks), Units(second, ranks), np.zeros((1, 1)))
    assert during.peak < 4


def test_annotations_are_projected_onto_the_clips_that_they_touch():
    book = builtin_codebook("obygaze12")
    clips = [Clip(f"c{place:04d}", "m", "", 3.0 * place, 3.0 * place + 5) for place in range(1500)]
    marks = [
        Clip(f"m{place:04d}", "m", "", 6.0 * place, 6.0 * place + 2, "S", annotator="AB")
        for place in range(700)
    ]
    with memory() as during:
        result = project(Manifest(tuple(marks), None, book), Manifest(tuple(clips), None, book))
    assert during.peak < 6, "all pairs in float64 would be 8 MB, and three times that on the way"
    assert sum(clip.level == "S" for clip in result.manifest) > 700


@pytest.mark.long
def test_items_are_ranked_by_the_pairs_that_were_judged_alone():
    """A matrix of all pairs in float64 would be 32 MB."""
    rng = np.random.default_rng(0)
    judgements = []
    for item in range(2000):
        others = [(item + 1) % 2000, *rng.choice(2000, 4).tolist()]
        judgements += [(f"w{item % 20}", f"{item:04d}", f"{other:04d}") for other in others if other != item]
    with memory() as during:
        ranking = rank_items(judgements, draws=20)
    assert during.peak < 8
    assert len(ranking.items) == 2000


@pytest.mark.long
def test_calibration_holds_sums_of_films_and_the_probabilities_of_a_few_draws():
    """Probabilities of 8,000 clips by all 200 draws would be 13 MB, and four times that on the way."""
    n_films = 200
    n_clips = 40 * n_films
    rng = np.random.default_rng(0)
    movies = np.repeat(np.arange(n_films), 40)
    labels = np.arange(n_clips) % 2
    scores = rng.normal(size=n_clips) + labels
    with memory() as during:
        fitted = Calibration.fit(HeldOut(scores, labels, movies))
    assert during.peak < 25, "sums of films are 4.5 MB, and four times that on the way"
    assert fitted.p_skilled > 0.99, "scores of positive clips are higher by a standard deviation"
