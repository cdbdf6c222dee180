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
    """The same as if it lay on a server, of which several files are asked at once.

    `asked_by` has the threads that ask for blocks of vectors.
    """

    asked_by: set[int] = field(default_factory=set)

    @property
    def where(self):
        return f"https://lab.example/{self.path.name}"

    def read(self, name, start=0, stop=None):
        if "/pooled/c/" in name:
            self.asked_by.add(threading.get_ident())
        return super().read(name, start, stop)


@contextmanager
def measured_memory():
    """Measure the most memory that the block takes: `peak_mb` of what is given, after the block."""
    result = SimpleNamespace(peak_mb=0.0)
    tracemalloc.start()
    try:
        yield result
        result.peak_mb = tracemalloc.get_traced_memory()[1] / MB
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """A store of 12,000 clips of 300 films, each with 512 numbers, and models of the first four films' clips.

    The vectors lie in twelve blocks, of 1,024 clips each. The clips of film number 200 are called
    tt0000200-000, tt0000200-001 and so on, to 039.
    """
    folder = tmp_path_factory.mktemp("films")
    rng = np.random.default_rng(0)
    movie_of = {f"tt{index // 40:07d}-{index % 40:03d}": f"tt{index // 40:07d}" for index in range(12_000)}
    vectors = rng.standard_normal((12_000, 512), np.float32)
    spans = {clip_id: (4.0 * int(clip_id[-3:]), 4.0 * int(clip_id[-3:]) + 8) for clip_id in movie_of}
    path = seal_arrays(folder / "films", movie_of, {"xclip": {"pooled": vectors}}, spans=spans)
    few = dict(list(movie_of.items())[:160])
    known = open_store(seal_arrays(folder / "known", few, {"xclip": {"pooled": vectors[:160]}}))
    levels = rng.choice(["EN", "S"], 160)
    clips = []
    for index, (clip_id, movie) in enumerate(few.items()):
        concepts = ("Body",) if index % 2 else ()
        clips.append(Clip(clip_id, movie, level=levels[index], concepts=concepts))
    data = om.load_dataset(known, Manifest(tuple(clips), folder))
    run = om.evaluate(data, ["linear", "pcbm_lr"], "en_s")
    files = om.save_models(run, data, ["linear", "pcbm_lr"], folder / "models")
    model, bottleneck = om.load_model(files["linear"]), om.load_model(files["pcbm_lr"])
    return SimpleNamespace(path=path, vectors=vectors, model=model, bottleneck=bottleneck)


def open_counted(path):
    """Open a store whose reads are counted: file -> times, in `store.files.n_reads`."""
    return open_files(CountedFiles(path))


def times_each_block_was_read(store):
    """List, for each block of vectors that was read, how often it was."""
    return [n for name, n in store.files.n_reads.items() if "/pooled/c/" in name]


@pytest.mark.long
def test_predicting_a_store_takes_less_memory_than_its_vectors(films):
    """12,000 clips of 512 float32 are 12,000 x 512 x 4 bytes = 24.6 MB.

    Only one block of 1,024 clips, 2.1 MB, and the table of all clips are held at once.
    """
    store = open_counted(films.path)

    with measured_memory() as memory:
        predicted = om.predict(films.model, store)
        predicted.write(films.path.parent / "predicted.csv")

    assert memory.peak_mb < 23.5
    assert (films.path.parent / "predicted.csv").read_text("utf-8") == predicted.to_csv()


@pytest.mark.long
def test_predicting_a_store_reads_each_block_and_the_table_of_clips_once(films):
    """12,000 clips lie in twelve blocks of 1,024 clips.

    The logits of the first and last clips of blocks are those that the model gives of the vectors in memory.
    """
    store = open_counted(films.path)

    table = om.predict(films.model, store).table

    assert times_each_block_was_read(store) == [1] * 12
    assert store.files.n_reads["data/clips.csv"] == 1
    assert len(table) == 12_000
    rows = [0, 1023, 1024, 11_999]
    np.testing.assert_allclose(table["logit"].iloc[rows], films.model.logits(films.vectors[rows]))


@pytest.mark.long
def test_blocks_on_a_server_are_asked_for_several_at_once_and_predict_the_same(films):
    """A server may be asked for eight files at once; more than one thread asks for the twelve blocks."""
    store_on_server = open_files(ServedFiles(films.path, readers=8))
    store_here = open_counted(films.path)

    predicted = om.predict(films.model, store_on_server)

    assert times_each_block_was_read(store_on_server) == [1] * 12
    assert len(store_on_server.files.asked_by) > 1
    assert predicted.table.equals(om.predict(films.model, store_here).table)


@pytest.mark.long
def test_one_clip_is_explained_from_the_block_that_it_lies_in(films):
    """The store has twelve blocks of 1,024 clips, each of which is read whole or not at all."""
    store = open_counted(films.path)

    explained = explain(films.bottleneck, [store], "tt0000200-007", {})

    assert times_each_block_was_read(store) == [1]
    assert store.files.n_reads["data/clips.csv"] == 1
    assert explained.clip_id == "tt0000200-007"


def test_models_of_many_folds_are_fitted_in_blocks_of_limited_memory(monkeypatch):
    """100 films of 40 clips each: a fold leaves one out. All 100 fits at once take 25 MB.

    With a limit of 8 MB at most 48 folds are fitted at once, and twice the limit is not exceeded.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 32), np.float32)
    y = (rng.random(4000) < 0.3).astype(np.int64)
    film_of_clip = np.arange(4000) % 100
    is_training = np.stack([film_of_clip != film for film in range(100)], axis=1)  # [clips, folds]
    monkeypatch.setattr(ridge_folds, "MAX_BYTES", 8 * MB)
    probes = ridge_folds.FoldLogistic(X, y, limit=5.0)

    with measured_memory() as memory:
        for fits in probes.minima(is_training, [0.01] * 100):
            n_folds_at_once = fits.logits.shape[1]
            assert n_folds_at_once <= 48

    assert memory.peak_mb < 2 * 8


def test_clips_that_look_alike_are_found_in_one_reading_of_each_chunk_of_the_store(tmp_path):
    """A store has the signatures of 300 clips of three films, by which clips that look alike are found.

    Each clip is compared with each other one, which could be done by reading the store again and again. Here
    the files of the store count how often they are read: each chunk of signatures (frames/c/...) once. The
    signatures are random signs, so that no clips are alike.
    """
    rng = np.random.default_rng(0)
    movie_of = {f"{film}-{index:03d}": film for film in ("a", "b", "c") for index in range(100)}
    signatures = rng.choice(np.array([-1, 1], np.float16), (300, 8, len(FEATURES)))
    provenance = {"n_frames": 8, "architecture": {"features": list(FEATURES)}}
    path = seal_arrays(tmp_path / "films", movie_of, {"signature": {"frames": signatures}}, **provenance)
    store = open_files(CountedFiles(path))

    duplicates(store)

    is_chunk_of_signatures = "/frames/c/"
    times_read = [n for name, n in store.files.n_reads.items() if is_chunk_of_signatures in name]
    assert times_read
    assert set(times_read) == {1}


@pytest.mark.long
def test_one_film_is_scored_from_the_blocks_that_it_lies_in(films):
    """The film has the clips 8,000 to 8,039 of the store, which lie in one of its blocks of 1,024.

    They overlap, each from 4 s after the one before: 40 clips of 8 s make a timeline of 41 rows of 4 s.
    """
    store = open_counted(films.path)

    timeline = obygaze_film.score_film(store, [films.model], movie="tt0000200")

    assert times_each_block_was_read(store) == [1]
    assert store.files.n_reads["data/clips.csv"] == 1
    assert len(timeline.table) == 41


@pytest.mark.long
def test_clips_of_one_film_cost_one_block_however_they_are_asked_for(films):
    """The film's 40 clips lie in one block: it is read once, though each clip is asked for twice."""
    store = open_counted(films.path)
    group = store["xclip"]
    clip_ids = [f"tt0000200-{number:03d}" for number in range(40)]
    last_first = clip_ids[::-1]

    one_by_one = np.stack([group.read(clip_id, "pooled") for clip_id in last_first])
    together = group.read_many(last_first, "pooled")

    assert np.array_equal(together, one_by_one)
    assert times_each_block_was_read(store) == [1]


def count_clips_that_are_measured(monkeypatch):
    """Return a list to which each call of `standardise`, which measures clips, adds their number."""
    numbers_of_clips = []

    def standardise_and_count(features, *rest, **more):
        numbers_of_clips.append(len(features))
        return scaling.standardise(features, *rest, **more)

    monkeypatch.setattr(out_of_distribution, "standardise", standardise_and_count)
    return numbers_of_clips


def test_each_training_clip_is_measured_once_whatever_the_number_of_films(monkeypatch):
    """200 films have 20 clips each: the distance of each of the 4000 clips from all other films is measured.

    It must not be that for each film all clips are measured again. The memory is that of less than four
    copies of the features.
    """
    X = np.random.default_rng(0).standard_normal((4000, 64), np.float32)
    movies = np.repeat(np.arange(200), 20).astype(str)

    numbers_of_clips_measured = count_clips_that_are_measured(monkeypatch)
    with measured_memory() as memory:
        OutOfDistribution.fit(X, movies)

    assert sum(numbers_of_clips_measured) == 4000
    assert memory.peak_mb < 4 * X.nbytes / MB


@pytest.mark.long
def test_concept_models_decompose_the_clips_of_each_fold_once(monkeypatch, make_synthetic_concepts):
    """Three models of concepts are tested in six folds, one for each movie: six decompositions, not eighteen.

    The decomposition of the last fold alone is kept, as there is no room for more.
    """
    data = make_synthetic_concepts(n_movies=6, n_per_movie=24, n_features=12)
    decompose = feature_axes._decompose
    n_decompositions = 0

    def decompose_and_count(X, clip):
        nonlocal n_decompositions
        n_decompositions += 1
        return decompose(X, clip)

    monkeypatch.setattr(feature_axes, "_decompose", decompose_and_count)
    monkeypatch.setattr(feature_axes, "CACHE_BYTES", 0)
    om.evaluate(data, ["pcbm_lr", "pcbm_dt", "pcbm_lr_shuffled"], "en_s")

    assert n_decompositions == 6


def test_agreement_of_segments_takes_no_matrix_of_all_pairs():
    """Two annotators have 2,000 segments of 5 s, near each other: all pairs in float64 would be 32 MB."""
    n_segments = 2000
    rng = np.random.default_rng(0)
    starts = np.sort(rng.random(n_segments)) * 10 * n_segments
    first = np.column_stack([starts, starts + 5])
    second = first + rng.normal(size=(n_segments, 1))
    ranks = np.zeros(n_segments, np.int64)

    with measured_memory() as memory:
        segment_f1(first, second, threshold=0.5)
        boundary_f1(first, second, collar_s=2.0)
        segment_ap(first, second, rng.random(n_segments), threshold=0.5)
        best_alignment(Units(first, ranks), Units(second, ranks), np.zeros((1, 1)))

    assert memory.peak_mb < 4


def test_annotations_are_projected_without_a_matrix_of_all_pairs():
    """1,500 clips of 5 s, one every 3 s, and 700 annotated spans of 2 s, one every 6 s, with the level S.

    All pairs in float64 would be 8 MB, and three times that on the way. Each span touches two clips, so that
    more than 700 clips get the level S.
    """
    codebook = builtin_codebook("obygaze12")
    clips = [Clip(f"c{number:04d}", "m", "", 3.0 * number, 3.0 * number + 5) for number in range(1500)]
    spans = [
        Clip(f"m{number:04d}", "m", "", 6.0 * number, 6.0 * number + 2, "S", annotator="AB")
        for number in range(700)
    ]

    with measured_memory() as memory:
        projected = project(
            Manifest(tuple(spans), root=None, codebook=codebook),
            Manifest(tuple(clips), root=None, codebook=codebook),
        )

    assert memory.peak_mb < 6
    clips_with_s = [clip for clip in projected.manifest if clip.level == "S"]
    assert len(clips_with_s) > 700


@pytest.mark.long
def test_items_are_ranked_without_a_matrix_of_all_pairs():
    """Twenty workers compare each of 2,000 items with five others. All pairs in float64 would be 32 MB.

    A judgement is a worker, the item that was chosen, and the other one.
    """
    rng = np.random.default_rng(0)
    judgements = []
    for item in range(2000):
        others = [(item + 1) % 2000, *rng.choice(2000, 4).tolist()]
        for other in others:
            if other != item:
                judgements.append((f"w{item % 20}", f"{item:04d}", f"{other:04d}"))  # noqa: PERF401

    with measured_memory() as memory:
        ranking = rank_items(judgements, draws=20)

    assert memory.peak_mb < 8
    assert len(ranking.items) == 2000


@pytest.mark.long
def test_calibration_of_8000_clips_takes_less_memory_than_their_probabilities_by_all_draws():
    """A calibration of 8,000 clips of 200 films is fitted, with 200 draws, in at most 25 MB.

    The probabilities of all clips by all draws would be 13 MB, and computing them takes four times as much.
    What is kept instead are sums over the clips of each film, 4.5 MB, also with four times that on the way;
    and the probabilities by a few draws at a time.

    The scores have skill, as a calibration needs: those of positive clips are higher by a standard deviation.
    """
    rng = np.random.default_rng(0)
    movies = np.repeat(np.arange(200), 40)
    labels = np.arange(8000) % 2
    scores = rng.normal(size=8000) + labels

    with measured_memory() as memory:
        calibration = Calibration.fit(HeldOut(scores, labels, movies))

    assert memory.peak_mb < 25
    assert calibration.p_skilled > 0.99
